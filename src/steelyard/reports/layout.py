"""A report as a page: which tables in which order, in the reader's language. Terminal and Markdown share it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

from steelyard.protocols.scoring import band_of_score
from steelyard.protocols.vocabulary import Scale
from steelyard.records import Language
from steelyard.reports.blocks import (
    NOT_APPLICABLE,
    Block,
    Heading,
    Lines,
    Table,
    TonedText,
    estimate_cells,
    number,
    one_line,
    score,
    share,
)
from steelyard.reports.model import (
    OTHERS,
    Estimate,
    Group,
    Report,
    agreement_notes,
    check_words,
    is_broken_down,
    named,
    routing_notes,
    self_judged_note,
    tolerance_note,
    votes_notes,
)
from steelyard.text.wording import band_description, say

NUMBERS = "rrrrr"
BRIEF_GROUPS = 20
BRIEF_WHY = 100
BRIEF_LOW = 10
LONGEST_CELL = 300
Row = tuple[str | TonedText, ...]


class Page:
    """Lays out one report. `brief` leaves out what only a longer document has room for."""

    def __init__(self, report: Report, *, brief: bool) -> None:
        self.report, self.brief = report, brief
        self.language: Language = report.language
        self.words = report.words

    def say(self, key: str) -> str:
        return say(self.language, f"report.{key}")

    def named(self, table: str, name: str) -> str:
        return named(self.language, table, name)

    def blocks(self) -> Iterator[Block]:
        yield Heading(f"{self.say('title')} · {self.words.title_words(self.language)}", 1)
        if self.report.failure:
            # The first thing to know; scores of nothing would only hide it.
            title, reason, remedy = self.report.failure.sentences(self.language)
            yield Heading(title)
            yield Lines((one_line(reason, LONGEST_CELL * 2), remedy))
        yield self.summary()
        if self.report.n and not self.report.failure:
            yield from self._outcomes()
            yield from self._scores()
            # A document is read from the top; in a terminal the end is what one sees.
            yield from () if self.brief else self.worst()
            yield from self._ranking()
            yield from self._atoms()
            yield from self._checks()
            yield from self._dialogue()
            yield from self._bands()
            yield from self._labels()
            yield from self._groups("tags", "tag", self.report.tags)
            yield from self._flags()
            yield from self.worst() if self.brief else ()
        elif not self.report.failure:
            yield Lines((self.say("nothing"),))
        yield from self._unjudged()
        yield from self._bad_rows()
        yield from self._usage()
        yield from self._manifest()

    def _pair(self, key: str, value: str) -> str:
        return self.say(key) + self.say("colon") + value

    def summary(self) -> Lines:
        r = self.report
        states = self.say("comma").join(f"{self.named('status', s)} {n}" for s, n in r.statuses.items())
        lines = [self._pair("samples", f"{r.n} = {states}")]
        judges = [self._other(judge) for judge in r.judges]
        if judges:
            lines.append(self._pair("judge", self.say("comma").join(judges)))
            lines += agreement_notes(r.judges, r.language).values()
        lines += votes_notes(r)
        lines += routing_notes(r)
        lines += [note for note in (tolerance_note(r), self_judged_note(r)) if note]
        if r.n_bad_rows:
            lines.append(self._pair("bad_rows", str(r.n_bad_rows)))
        return Lines(tuple(lines))

    # --- tables of estimates -----------------------------------------------------------------------

    def _estimates(self, first: tuple[str, ...], rows: tuple[Row, ...], value: str = "mean") -> Table:
        numbers = (self.say(value), self.say("interval"), "n", self.say("n_null"), self.say("n_unjudged"))
        return Table((*first, *numbers), "l" * len(first) + NUMBERS, rows, grouped=len(first) > 1)

    def _cells(self, estimate: Estimate, scale: Scale = "ratio") -> tuple[str, ...]:
        return estimate_cells(estimate, scale)

    def _score_cells(self, metric: str, estimate: Estimate) -> tuple[str, ...]:
        return self._metric(metric), *estimate_cells(estimate, self.report.scale_of(metric))

    def _metric(self, name: str) -> str:
        return self.words.metric_words(name, self.language)

    def _outcomes(self) -> Iterator[Block]:
        if not self.report.outcomes:
            return
        aspect, lang = self.words.outcome, self.language
        yield Heading(self.words.kind_words(aspect, lang))
        rows = tuple(
            (self.words.label_words(aspect, one.label, lang), str(one.n), *self._cells(one.share)[:2])
            for one in self.report.outcomes
        )
        columns = (self.say("label"), self.say("count"), self.say("share"), self.say("interval"))
        yield Table(columns, "lrrr", rows)

    def _scores(self) -> Iterator[Block]:
        yield Heading(self.say("scores"))
        scores = self.report.scores
        rows = tuple(self._score_cells(n, e) for n, e in scores.items())
        yield self._estimates((self.say("score"),), rows)
        if meanings := tuple(line for n, e in scores.items() for line in self._meaning(n, e)):
            yield Lines(meanings, listed=True)
        notes = ("note_mean", "note_null") + (() if self.report.dialogue else ("note_shared",))
        yield Lines(tuple(map(self.say, notes)))

    def _meaning(self, name: str, estimate: Estimate) -> Iterator[str]:
        metric = self._metric(name)
        if explained := self.words.metric_about(name, self.language):
            yield metric + self.say("colon") + explained
        if name in self.report.bands and estimate.value is not None:
            band = band_of_score(int(estimate.value))
            value = number(estimate.value, self.report.scale_of(name))
            yield f"{metric} {value}{self.say('colon')}{band_description(name, band, self.language)}"

    def _ranking(self) -> Iterator[Block]:
        found = self.report.ranking
        if not found:
            return
        yield Heading(self.say("ranking"))
        rate, ends = self.say("win_rate"), self.say("interval")
        yield Table(
            (self.say("contestant"), rate, ends, "n", self.say("strength"), ends),
            "lrrrrr",
            tuple(
                (
                    self._other(one.name),
                    *self._cells(one.win_rate)[:3],
                    *estimate_cells(one.strength, "number")[:2],
                )
                for one in found
            ),
        )
        unknown = all(one.strength.value is None for one in found)
        notes = ("note_no_strength" if unknown else "note_strength", *(("note_several",) if len(found) > 2 else ()))
        yield Lines(tuple(map(self.say, notes)))

    def _atoms(self) -> Iterator[Block]:
        atoms = self.report.atoms
        if atoms is None:
            return
        yield Heading(self.say("levels"))
        labels = tuple(label.removeprefix("n_") for label in atoms.overall.counts)
        graded = self.words.kinds[0].leading.name
        groups = {self.named("level", level): group for level, group in atoms.levels.items()}
        yield Table(
            (self.say("level"), *(self.words.label_words(graded, label, self.language) for label in labels)),
            "l" + "r" * len(labels),
            tuple(
                (name, *map(str, group.counts.values()))
                for name, group in {**groups, self.say("overall"): atoms.overall}.items()
            ),
        )
        rows: list[Row] = []
        for level, group in {**atoms.levels, self.say("overall"): atoms.overall}.items():
            for name in ("accuracy", "accuracy_strict", "coverage"):
                rows.append((level, self._metric(name), *self._cells(getattr(group, name))))
        yield self._estimates((self.say("level"), self.say("score")), tuple(rows), "value")

    def _checks(self) -> Iterator[Block]:
        if not self.report.checks:
            return
        yield Heading(self.say("checks"))
        rows = tuple(
            (self.words.group_words(c.group, self.language), check_words(self.report, c), *self._cells(c.passed))
            for c in self.report.checks
        )
        yield self._estimates((self.say("group"), self.say("named_item")), rows, "passed")

    def _dialogue(self) -> Iterator[Block]:
        d = self.report.dialogue
        if d is None:
            return
        yield Heading(self.say("rates"))
        rates = {"csr": d.csr, "isr": d.isr, "ssr": d.ssr}
        rows: list[Row] = [(self._metric(name), *self._cells(rate)) for name, rate in rates.items()]
        rows.append((self.say("by_rule"), *self._cells(d.by_rule)))
        yield self._estimates((self.say("rate"),), tuple(rows), "value")
        counts = (("n_open", d.n_undetermined), ("vacuous", d.n_vacuous))
        yield Lines(tuple(self._pair(key, str(n)) for key, n in counts))
        if d.by_type:
            yield Heading(self.say("by_type"), 3)
            rows = [(self._type(name), *self._cells(rate)) for name, rate in d.by_type.items()]
            yield self._estimates((self.say("type"),), tuple(rows), "value")
        if d.by_turn:
            yield Heading(self.say("by_turn"), 3)
            rows = []
            for turn, of_turn in d.by_turn.items():
                rows.append((self._other(turn), "CSR", *self._cells(of_turn.csr)))
                rows.append((self._other(turn), "ISR", *self._cells(of_turn.isr)))
            yield self._estimates((self.say("turn"), self.say("rate")), tuple(rows), "value")

    def _type(self, name: str) -> str:
        return self._other(name) if name else self.say("no_type")

    def _other(self, name: str) -> str:
        return self.say("others") if name == OTHERS else one_line(name, 60)

    def _groups(self, heading: str, column: str, groups: Mapping[str, Group]) -> Iterator[Block]:
        if not groups:
            return
        yield Heading(self.say(heading))
        shown = list(groups.items())[: BRIEF_GROUPS if self.brief else None]
        rows = tuple(
            (self._other(name), *self._score_cells(metric, estimate))
            for name, group in shown
            for metric, estimate in group.scores.items()
        )
        yield self._estimates((self.say(column), self.say("score")), rows)
        if len(groups) > len(shown):
            yield Lines((f"… +{len(groups) - len(shown)}",))

    # --- counts ------------------------------------------------------------------------------------

    def _bands(self) -> Iterator[Block]:
        for metric, lines in self.report.bands.items():
            shown = [line for line in lines if line.n or not self.brief]
            if not shown:
                continue
            total = sum(line.n for line in lines)
            yield Heading(self.say("bands") + self.say("colon") + self._metric(metric), 3)
            yield Table(
                (self.say("band"), self.say("count"), self.say("share"), self.say("description")),
                "rrrl",
                tuple((f"{b.scores[0]}–{b.scores[1]}", str(b.n), share(b.n, total), b.description) for b in shown),
            )

    def _labels(self) -> Iterator[Block]:
        # The tables of outcomes, levels and checks have said these already.
        labels = {
            aspect: counts
            for aspect, counts in self.report.labels.items()
            if aspect != self.words.outcome and not is_broken_down(self.report, aspect)
        }
        if not labels:
            return
        yield Heading(self.say("labels"))
        kind_words, lang = self.words.kind_words, self.language
        rows = tuple(
            (kind_words(kind, lang), self.words.label_words(kind, label, lang), str(n), share(n, sum(counts.values())))
            for kind, counts in labels.items()
            for label, n in counts.items()
        )
        yield Table(("", self.say("label"), self.say("count"), self.say("share")), "llrr", rows, grouped=True)

    def _flags(self) -> Iterator[Block]:
        flags = self.report.flags
        if not flags:
            return
        yield Heading(self.say("flags"))
        yield Table(
            (self.say("flag"), "n", self.say("share"), self.say("meaning")),
            "lrrl",
            tuple(
                (
                    self._other(flag),
                    str(group.n),
                    share(group.n, self.report.n),
                    named(self.language, "flag", flag, ""),
                )
                for flag, group in flags.items()
            ),
        )
        if not self.brief:
            yield from self._groups("by_flag", "flag", flags)

    def _unjudged(self) -> Iterator[Block]:
        reasons = self.report.unjudged
        if not reasons:
            return
        yield Heading(self.say("unjudged"))
        rows = tuple((self.named("unjudged", self._other(reason)), str(n)) for reason, n in reasons.items())
        yield Table((self.say("reason"), self.say("count")), "lr", rows)

    def worst(self) -> Iterator[Block]:
        if not self.report.worst:
            return
        metrics = {low.metric for low in self.report.worst}
        ranked_by = self.say("colon") + self._metric(*metrics) if len(metrics) == 1 else ""
        yield Heading(self.say("worst") + ranked_by)
        rows: list[Row] = []
        for low in self.report.worst[: BRIEF_LOW if self.brief else None]:
            scores = score(low.main_score, self.report.scale_of(low.metric))
            if self.brief and not ranked_by:
                scores = f"{self._metric(low.metric)} {scores}"
            elif not self.brief:
                scores = self.say("comma").join(
                    f"{self._metric(name)} {score(value, self.report.scale_of(name))}"
                    for name, value in low.scores.items()
                )
            why = one_line(low.why, BRIEF_WHY if self.brief else LONGEST_CELL)
            flags = ", ".join(one_line(flag, 40) for flag in low.flags)
            rows.append((one_line(low.id, 80), scores, why, flags or NOT_APPLICABLE))
        columns = (self.say("id"), self.say("scores"), self.say("why"), self.say("flag_names"))
        yield Table(columns, "lrll" if self.brief else "llll", tuple(rows))

    def _bad_rows(self) -> Iterator[Block]:
        r = self.report
        if not r.n_bad_rows:
            return
        yield Heading(self.say("bad_rows"))
        yield Table(
            (self.say("file"), self.say("line"), self.say("field"), self.say("problem")),
            "lrll",
            tuple(
                (
                    one_line(row.file or NOT_APPLICABLE, LONGEST_CELL),
                    NOT_APPLICABLE if row.line is None else str(row.line),
                    one_line(row.field or NOT_APPLICABLE, 80),
                    one_line(row.problem, LONGEST_CELL),
                )
                for row in r.bad_rows
            ),
        )
        if r.n_bad_rows > len(r.bad_rows):
            yield Lines((self.say("bad_rows_more").format(n=r.n_bad_rows - len(r.bad_rows)),))

    def _usage(self) -> Iterator[Block]:
        usage = self.report.usage
        if not usage.calls:
            return
        yield Heading(self.say("usage"))
        counts = ("calls", "prompt_tokens", "completion_tokens", "cached_tokens")
        lines = [self._pair(name, f"{getattr(usage, name):,}") for name in counts]
        cost = NOT_APPLICABLE if usage.cost is None else f"{usage.cost:.4f}"
        yield Lines((*lines, self._pair("cost", cost)))

    def _manifest(self) -> Iterator[Block]:
        if self.brief or not self.report.manifest:
            return
        yield Heading(self.say("manifest"))
        rows = tuple(
            (one_line(key, 80), one_line(value if isinstance(value, str) else _compact(value), LONGEST_CELL))
            for key, value in self.report.manifest.items()
        )
        yield Table((self.say("key"), self.say("value")), "ll", rows)


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)
