"""A calibration as a page: one plain sentence for each thing that matters, then the figures behind it."""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Scale, Vocabulary
from steelyard.records import Language
from steelyard.reports.blocks import (
    NOT_APPLICABLE,
    Block,
    Curve,
    Heading,
    Lines,
    Table,
    interval,
    minus,
    number,
    one_line,
)
from steelyard.reports.calibration.model import (
    LEAST_LABELS,
    Calibration,
    ConfidenceThreshold,
    CorrectedScore,
    Figure,
    Reliability,
    Task,
)
from steelyard.reports.model import Estimate, bracketed
from steelyard.stats import Interval
from steelyard.text.wording import say

LONGEST_TEXT = 200
# A label that judge and people give about equally often is no habit worth a sentence.
LEAST_LEANING = 0.1
Row = tuple[str, ...]


def blocks(found: Calibration) -> Iterator[Block]:
    """The page, for a terminal or as Markdown."""
    return (block for block in _Page(found).blocks() if block != Lines((), listed=True))


def _plain(value: float | None) -> str:
    return NOT_APPLICABLE if value is None else f"{value:.2f}"


def _plain_interval(ends: Interval | None) -> str:
    return NOT_APPLICABLE if ends is None else minus(f"{ends[0]:.2f} … {ends[1]:.2f}")


def _points(change: float | None) -> str:
    """A change of a share, in percentage points."""
    return NOT_APPLICABLE if change is None else minus(f"{100 * change:+.1f}")


def _points_interval(ends: Interval | None) -> str:
    return NOT_APPLICABLE if ends is None else f"{_points(ends[0])} … {_points(ends[1])}"


class _Page:
    def __init__(self, found: Calibration) -> None:
        self.found, self.language, self.vocab = found, found.language, vocabulary(found.protocol)

    def say(self, key: str, **values: object) -> str:
        return say(self.language, f"calibrate.{key}").format(**values)

    def report(self, key: str) -> str:
        return say(self.language, f"report.{key}")

    def task(self, task: str) -> str:
        return task_words(self.vocab, task, self.language)

    def label(self, task: str, label: str) -> str:
        return self.vocab.label_words(task.partition(".")[0], label, self.language)

    def metric(self, name: str) -> str:
        return self.vocab.metric_words(name, self.language)

    def scale(self, score: CorrectedScore) -> Scale:
        return self.vocab.metric(score.metric).mean_scale

    def within(self, ends: Interval | None, scale: str = "ratio") -> str:
        return bracketed(self.language, interval(ends, scale)) if ends else ""  # type: ignore[arg-type]

    def blocks(self) -> Iterator[Block]:
        yield Heading(f"{self.say('title')} · {self.vocab.title_words(self.language)}", 1)
        yield Lines(tuple(self._plain_words()))
        yield Lines(tuple(self._warnings()), listed=True)
        yield Lines(tuple(self._facts()))
        yield from self._scores()
        yield from self._agreement()
        yield from self._confusions()
        yield from self._by_label()
        yield from self._second_look()
        yield from self._disputes()
        yield from self._groups()
        yield from self._votes()
        yield from ReliabilityPage(self.found).blocks()
        yield from self._rates()
        yield from self._unmatched()

    # --- sentences ---------------------------------------------------------------------------------

    def _plain_words(self) -> Iterator[str]:
        for task in self.found.tasks:
            if task.raw.value is None:
                continue
            yield self.say(
                "agree",
                task=self.task(task.task),
                raw=number(task.raw.value, "ratio"),
                n=task.n,
                interval=self.within(task.raw.interval),
            )
            yield from self._ceiling(task)
            yield from self._leaning(task)
        for score in self.found.scores:
            # A score that people's labels leave as it is stands in the table below.
            if score.value is not None and score.value != score.judge:
                yield self.say(
                    "corrected",
                    metric=self.metric(score.metric),
                    judge=number(score.judge, self.scale(score)),
                    value=number(score.value, self.scale(score)),
                    interval=self.within(score.interval, self.scale(score)),
                )

    def _ceiling(self, task: Task) -> Iterator[str]:
        people, judge, gap = task.person_person, task.judge_person, task.gap
        if people is None or judge is None or gap is None or people.raw.value is None or judge.raw.value is None:
            return
        if people.raw.value == judge.raw.value == 1:
            return
        low, high = gap.interval or (-1.0, 1.0)
        verdict = "below" if high < 0 else "above" if low > 0 else "same"
        values = {"people": number(people.raw.value, "ratio"), "judge": number(judge.raw.value, "ratio")}
        yield self.say("one_of_two", task=self.task(task.task), **values) + self.say(f"ceiling_{verdict}")

    def _leaning(self, task: Task) -> Iterator[str]:
        """The label that the judge overuses most, if it does by more than a tenth of the items."""
        most = max(task.by_label, key=lambda label: label.n_judge - label.n_people, default=None)
        if most and most.n_judge - most.n_people > LEAST_LEANING * task.n:
            label, name = self.label(task.task, most.label), self.task(task.task)
            yield self.say("leans", task=name, label=label, judge=most.n_judge, people=most.n_people)

    def _warnings(self) -> Iterator[str]:
        found = self.found
        if found.skewed:
            yield self.say("skewed")
        if found.weighted:
            yield self.say("weighted")
        if all(task.person_person is None for task in found.tasks):
            yield self.say("no_ceiling")
        for task in found.tasks:
            if task.n_split:
                yield self.say("split", task=self.task(task.task), n=task.n_split)
            if task.n_unjudged:
                yield self.say("unjudged", task=self.task(task.task), n=task.n_unjudged)

    def _facts(self) -> Iterator[str]:
        found, colon, comma = self.found, self.report("colon"), self.report("comma")
        used = self.say("of", part=found.n_used, whole=found.n_labels)
        yield self.report("judge") + colon + comma.join(one_line(judge, 60) for judge in found.judges)
        people = comma.join(f"{one_line(name, 40) or NOT_APPLICABLE} {n}" for name, n in found.annotators.items())
        yield self.say("people") + colon + people
        yield self.say("labels_used") + colon + used
        if found.policy:
            yield self.say("policy") + colon + one_line(found.policy, 60)

    # --- tables ------------------------------------------------------------------------------------

    def _scores(self) -> Iterator[Block]:
        if not self.found.scores:
            return
        yield Heading(self.say("scores"))
        columns = (self.report("score"), self.say("by_judge"), self.report("interval"))
        yield Table(
            (*columns, self.say("by_people"), self.report("interval"), self.say("n_labelled")),
            "lrrrrr",
            tuple(
                (
                    self.metric(score.metric),
                    number(score.judge, self.scale(score)),
                    interval(score.judge_interval, self.scale(score)),
                    number(score.value, self.scale(score)),
                    interval(score.interval, self.scale(score)),
                    f"{score.n_labelled} / {score.n}",
                )
                for score in self.found.scores
            ),
        )
        yield Lines((self.say("note_corrected"),))
        yield Heading(self.say("more"), 3)
        yield Lines(tuple(self._needed(score) for score in self.found.scores), listed=True)

    def _needed(self, score: CorrectedScore) -> str:
        low, high = self.vocab.metric(score.metric).bounds
        half = self.found.width * (high - low) / 2
        reach = number(half, self.scale(score))
        metric = self.metric(score.metric)
        if score.value is None or score.interval is None:
            return self.say("uncorrected", metric=metric)
        if score.interval[1] - score.interval[0] <= 2 * half:
            return self.say("enough", metric=metric, reach=reach)
        if score.n_needed is None or score.n_needed > score.n:
            return self.say("unreachable", metric=metric, reach=reach)
        more = max(1, score.n_needed - score.n_labelled)
        return self.say("needed", metric=metric, reach=reach, more=more, all=score.n_labelled + more)

    def _agreement(self) -> Iterator[Block]:
        rows: list[Row] = []
        for task in self.found.tasks:
            rows += [(self.task(task.task), *cells) for cells in self._figures(task)]
        yield Heading(self.say("agreement"))
        columns = (self.say("task"), self.say("figure"), self.report("value"), self.report("interval"), "n")
        yield Table(columns, "llrrr", tuple(rows), grouped=True)
        yield Lines((self.say("note_kappa"), self.say("note_balanced"), self.say("note_interval")))

    def _figures(self, task: Task) -> Iterator[Row]:
        yield self._share("raw", task.raw, task.n)
        yield self._coefficient("kappa", task.kappa, task.n)
        yield self._share("balanced_accuracy", task.balanced_accuracy, task.n)
        yield self._coefficient("alpha", task.alpha, task.n)
        if task.judge_person:
            yield self._share("pair_raw", task.judge_person.raw, task.judge_person.n)
            yield self._coefficient("pair_kappa", task.judge_person.kappa, task.judge_person.n)
        if task.person_person:
            yield self._share("people_raw", task.person_person.raw, task.person_person.n)
            yield self._coefficient("people_kappa", task.person_person.kappa, task.person_person.n)
        if task.alpha_people:
            yield self._coefficient("alpha_people", task.alpha_people, task.n)

    def _share(self, name: str, figure: Figure, n: int) -> Row:
        return self.say(name), number(figure.value, "ratio"), interval(figure.interval, "ratio"), str(n)

    def _coefficient(self, name: str, figure: Figure, n: int) -> Row:
        return self.say(name), _plain(figure.value), _plain_interval(figure.interval), str(n)

    def _confusions(self) -> Iterator[Block]:
        yield Heading(self.say("confusion"))
        for task in self.found.tasks:
            yield Heading(self.task(task.task), 3)
            names = tuple(self.label(task.task, label) for label in task.labels)
            yield Table(
                (self.say("judge_says"), *names),
                "l" + "r" * len(names),
                tuple(
                    (name, *(str(task.confusion[judge][people]) for people in task.labels))
                    for name, judge in zip(names, task.labels, strict=True)
                ),
            )

    def _by_label(self) -> Iterator[Block]:
        yield Heading(self.say("by_label"))
        for task in self.found.tasks:
            yield Heading(self.task(task.task), 3)
            rows: list[Row] = []
            for label in task.by_label:
                name = self.label(task.task, label.label)
                for kind, figure, n in (
                    ("precision", label.precision, label.n_judge),
                    ("recall", label.recall, label.n_people),
                    ("f1", label.f1, label.n_judge + label.n_people),
                ):
                    rows.append((name, *self._share(kind, figure, n)))
            columns = (self.report("label"), self.say("figure"), self.report("value"), self.report("interval"), "n")
            yield Table(columns, "llrrr", tuple(rows), grouped=True)
        yield Lines((self.say("note_label"),))

    def _second_look(self) -> Iterator[Block]:
        rows: list[Row] = []
        for task in self.found.tasks:
            for look in task.second_look:
                label = self.label(task.task, look.label)
                for kind, (before, after), change in (
                    ("precision", look.precision, look.precision_change),
                    ("recall", look.recall, look.recall_change),
                ):
                    cells = (number(before.value, "ratio"), number(after.value, "ratio"))
                    moved = (_points(change.value), _points_interval(change.interval), str(look.n_changed))
                    rows.append((self.task(task.task), label, self.say(kind), *cells, *moved))
        if not rows:
            return
        yield Heading(self.say("second_look"))
        columns = (self.say("task"), self.report("label"), self.say("figure"), self.say("before"), self.say("after"))
        yield Table((*columns, self.say("change"), self.report("interval"), "n"), "lllrrrrr", tuple(rows), grouped=True)
        yield Lines((self.say("note_second"),))

    def _disputes(self) -> Iterator[Block]:
        if not self.found.disputes:
            return
        yield Heading(self.say("disputes"))
        for dispute in self.found.disputes:
            judge, people = self.label(dispute.task, dispute.judge), self.label(dispute.task, dispute.people)
            yield Heading(self.say("dispute", task=self.task(dispute.task), judge=judge, people=people, n=dispute.n), 3)
            yield Table(
                (self.report("id"), self.say("item"), self.say("text"), self.say("reason_of_judge")),
                "lrll",
                tuple(
                    (
                        one_line(item.sample, 60),
                        _place(item.turn, item.item),
                        one_line(item.text, LONGEST_TEXT) or NOT_APPLICABLE,
                        one_line(item.reason, LONGEST_TEXT) or NOT_APPLICABLE,
                    )
                    for item in dispute.items
                ),
            )

    def _groups(self) -> Iterator[Block]:
        if len(self.found.groups) < 2:
            return
        yield Heading(self.say("tags"))
        rows = ((one_line(group.tag, 60), *self._share("raw", group.raw, group.n)[1:]) for group in self.found.groups)
        yield Table((self.report("tag"), self.say("raw"), self.report("interval"), "n"), "lrrr", tuple(rows))

    def _votes(self) -> Iterator[Block]:
        if not self.found.votes:
            return
        yield Heading(self.say("votes"))
        rows = ((self.say(group.tag), *self._share("raw", group.raw, group.n)[1:]) for group in self.found.votes)
        yield Table((self.say("judges"), self.say("raw"), self.report("interval"), "n"), "lrrr", tuple(rows))

    def _rates(self) -> Iterator[Block]:
        yield Heading(self.say("rates"))
        columns = (self.say("task"), self.report("label"), self.say("by_judge"), self.say("by_people"))
        yield Table(
            (*columns, self.report("interval"), self.say("n_labelled")),
            "llrrrr",
            tuple(
                (
                    self.task(rate.task),
                    self.label(rate.task, rate.label),
                    number(rate.judge, "ratio"),
                    number(rate.value, "ratio"),
                    interval(rate.interval, "ratio"),
                    f"{rate.n_labelled} / {rate.n}",
                )
                for rate in self.found.rates
            ),
            grouped=True,
        )

    def _unmatched(self) -> Iterator[Block]:
        unmatched = self.found.unmatched
        if not unmatched:
            return
        yield Heading(self.say("unmatched", n=sum(unmatched.values()), all=self.found.n_labels))
        rows = []
        for reason, n in unmatched.items():
            ids = dict.fromkeys(one_line(u.sample, 40) for u in self.found.unmatched_examples if u.reason == reason)
            rows.append((self.say(f"reason.{reason}"), str(n), self.report("comma").join(list(ids)[:5])))
        yield Table((self.report("reason"), self.report("count"), self.report("id")), "lrl", tuple(rows))


def _place(turn: int | None, item: int | None) -> str:
    return "/".join(str(part) for part in (turn, item) if part is not None) or NOT_APPLICABLE


def task_words(vocab: Vocabulary, task: str, language: Language) -> str:
    """What people labelled: an aspect, or one of the named items that have it."""
    aspect, _, name = task.partition(".")
    kind = vocab.kind_with(aspect)
    named = vocab.name_words(kind.name, name, language) if kind and name else name
    return named or name or vocab.kind_words(aspect, language)


class ReliabilityPage:
    """The curves of a calibration in words and tables."""

    def __init__(self, found: Calibration) -> None:
        self.found, self.language, self.vocab = found, found.language, vocabulary(found.protocol)

    def say(self, key: str, **values: object) -> str:
        return say(self.language, f"calibrate.{key}").format(**values)

    def task(self, task: str) -> str:
        return task_words(self.vocab, task, self.language)

    def title(self, curve: Reliability) -> str:
        return f"{one_line(curve.judge, 60)} · {self.task(curve.task)}"

    def said(self, curve: Reliability) -> str:
        """The curve in a sentence."""
        return self.say(
            "curve",
            confidence=number(curve.confidence, "ratio"),
            right=number(curve.right, "ratio"),
            n=curve.n,
            error=f"{curve.error:.3f}",
        )

    def drawn(self, curve: Reliability) -> Curve:
        points = (
            (each.confidence, Estimate(value=each.right, interval=each.interval, n=each.n)) for each in curve.bins
        )
        return Curve(tuple(points), self.said(curve), (self.say("mean_confidence"), self.say("share_right")))

    def blocks(self) -> Iterator[Block]:
        if not self.found.reliability:
            return
        yield Heading(self.say("reliability"))
        yield Lines((self.say("note_reliability"),))
        for curve in self.found.reliability:
            yield from self._curve(curve)

    def _curve(self, curve: Reliability) -> Iterator[Block]:
        yield Heading(self.title(curve), 3, self.drawn(curve))
        yield Lines((self.said(curve), *([self.say("from_votes")] if curve.source == "votes" else [])))
        ends = say(self.language, "report.interval")
        columns = (self.say("confidence"), "n", self.say("mean_confidence"), self.say("share_right"), ends)
        yield Table(
            columns,
            "lrrrr",
            tuple(
                (
                    f"{each.low:.1f}–{each.high:.1f}",
                    str(each.n),
                    number(each.confidence, "ratio"),
                    number(each.right, "ratio"),
                    interval(each.interval, "ratio"),
                )
                for each in curve.bins
            ),
        )
        wanted = number(self.found.precision, "ratio")
        kind = curve.task.partition(".")[0]
        yield Table(
            (
                say(self.language, "report.label"),
                self.say("sure_from", precision=wanted),
                self.say("precision"),
                ends,
                self.say("kept"),
            ),
            "lrrrr",
            tuple(
                (
                    self.vocab.label_words(kind, each.label, self.language),
                    self._least(each),
                    number(each.precision, "ratio"),
                    interval(each.interval, "ratio"),
                    f"{each.n} / {each.of}",
                )
                for each in curve.sure_from
            ),
        )

    def _least(self, each: ConfidenceThreshold) -> str:
        if each.least is not None:
            return f"{each.least:.2f}"
        return self.say("never") if each.of >= LEAST_LABELS else NOT_APPLICABLE
