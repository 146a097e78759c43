"""One report from a stream of verdicts. Memory does not grow with their number: sums and bounded tables."""

from __future__ import annotations

import json
import re
from bisect import insort
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping
from hashlib import blake2b
from typing import Any, NamedTuple

from steelyard.errors import InputError
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, UNJUDGED_LIST, Vocabulary, name_of
from steelyard.records import AnyItem, Language, RagSample, Sample, Usage, Verdict
from steelyard.reports.model import (
    UNUSABLE,
    WITHIN,
    BadRow,
    LowSample,
    Report,
    RunFacts,
    RunFailure,
    TellingItem,
    agreement_notes,
    remedy,
    why,
)
from steelyard.reports.tally import (
    GROUPS_PER_TAG,
    AtomsTally,
    BandsTally,
    BoundedTallies,
    ChecksTally,
    DialogueTally,
    DistributionTally,
    GroupTally,
    OutcomesTally,
    RankingTally,
    SpendingTally,
    count_bounded,
)
from steelyard.reports.voices import RoutingTally, VotesTally
from steelyard.stats import Cluster
from steelyard.text import language_of
from steelyard.text.wording import words

MOST_BAD_ROWS = 100
MOST_LOW_SAMPLES = 20
LONGEST_TEXT = 300
# A thousand samples settle what language the data is in; reading a million would only take longer.
MOST_LANGUAGE_VOTES = 1000


class Low(NamedTuple):
    """A sample among the lowest, in the order they are listed."""

    goodness: float
    minus_bad: int
    id: str
    metric: str
    score: float
    scores: dict[str, float | int | None]
    flags: tuple[str, ...]
    telling: TellingItem | None


def unjudged_code(reason: str) -> str:
    """The code at the front of an unjudged item's reason; prose is a judge's own word on why it cannot tell."""
    first = reason.split(maxsplit=1)[0].rstrip(":") if reason.strip() else ""
    if first in words("en")["unjudged"] or re.fullmatch(r"[a-z][a-z0-9_]{0,40}", reason):
        return first
    return "cannot_tell" if reason.strip() else "unknown"


def unjudged_reasons(verdict: Verdict) -> Iterator[str]:
    """Why each item of the verdict that has no label has none."""
    found = False
    for item in verdict.items:
        if UNJUDGED in (label for _, label in words_of(verdict).labels_of(item)):
            found = True
            yield unjudged_code(item.reason)
    for flag in verdict.flags:
        if flag.startswith(UNJUDGED_LIST):
            found = True
            yield unjudged_code(flag.rpartition(":")[2])
    if verdict.status == "failed" and not found:
        failure = str(verdict.notes.get("failure", ""))
        yield "too_long" if "too_long" in verdict.flags else unjudged_code(failure)


def main_reason(verdict: Verdict) -> str:
    """Why a sample was not fully judged, in one word."""
    return next(unjudged_reasons(verdict), "unknown")


class ReportBuilder:
    """Takes verdicts one by one, in any order, and makes the report of them."""

    def __init__(self, protocol: str, language: Language | None = None) -> None:
        self._protocol, self._language = protocol, language
        self._words = vocab = vocabulary(protocol)
        self._statuses = Counter[str]()
        self._judges = Counter[str]()
        self._languages = Counter[Language]()
        self._unjudged = Counter[str]()
        self._gaps = Counter[str]()
        self._within_tolerance = 0
        self._labels = defaultdict[str, Counter[str]](Counter)
        self._all = GroupTally(vocab)
        self._distributions = DistributionTally(vocab)
        self._tags = BoundedTallies(lambda: GroupTally(vocab, GROUPS_PER_TAG))
        self._flags = BoundedTallies(lambda: GroupTally(vocab, GROUPS_PER_TAG))
        self._atoms = AtomsTally() if "levels" in vocab.sections else None
        self._checks = ChecksTally(vocab)
        self._outcomes = OutcomesTally(vocab) if vocab.outcome else None
        self._votes = VotesTally(vocab)
        self._routing = RoutingTally(vocab)
        self._bands = BandsTally(vocab.metrics)
        self._dialogue = DialogueTally(vocab) if "turns" in vocab.sections else None
        self._ranking = RankingTally(vocab) if "ranking" in vocab.sections else None
        self._worst: list[Low] = []
        self._bad_rows: list[BadRow] = []
        self._n_bad_rows = 0
        self._usage = Usage()
        self._spending = SpendingTally()

    def add(self, verdict: Verdict, sample: Sample | None = None) -> None:
        """One verdict; its sample tells tags, language, and which samples share a question."""
        cluster = cluster_of(sample)
        self._statuses[verdict.status] += 1
        if verdict.judge:
            count_bounded(self._judges, verdict.judge)
        self._usage += verdict.usage
        self._spending.add(verdict)
        self._count_language(verdict, sample)
        self._all.add(verdict, cluster)
        self._distributions.add(verdict)
        for tag in dict.fromkeys(sample.tags if sample else ()):
            self._tags[tag].add(verdict, cluster)
        for flag in verdict.flags:
            if not flag.startswith(UNJUDGED_LIST):
                self._flags[flag].add(verdict, cluster)
        for reason in unjudged_reasons(verdict):
            count_bounded(self._unjudged, reason)
        if verdict.status != "judged":
            count_bounded(self._gaps, main_reason(verdict))
        for item in verdict.items:
            self._within_tolerance += WITHIN in item.flags
            for aspect, label in self._words.kind_of(item).shown_labels(item):
                self._labels[aspect.name][label] += 1
        self._checks.add(verdict, cluster)
        if self._outcomes:
            self._outcomes.add(verdict, cluster)
        self._votes.add(verdict)
        self._routing.add(verdict)
        if self._atoms:
            self._atoms.add(verdict, cluster)
        self._bands.add(verdict)
        if self._dialogue:
            self._dialogue.add(verdict)
        if self._ranking:
            self._ranking.add(verdict, sample, cluster)
        self._rank(verdict)

    def add_bad_row(self, error: InputError) -> None:
        """A row of the input that could not be read."""
        self._n_bad_rows += 1
        if len(self._bad_rows) < MOST_BAD_ROWS:
            self._bad_rows.append(
                BadRow(file=error.file, line=error.line, field=error.field, problem=error.problem[:LONGEST_TEXT])
            )

    def build(self, manifest: Mapping[str, Any] | None = None, run: RunFacts | None = None) -> Report:
        """The report of what was added so far."""
        language = self._language or self._majority()
        return Report(
            protocol=self._protocol,
            language=language,
            scale=self._words.scale,
            judges=dict(self._judges),
            agreement=agreement_notes(self._judges, language),
            n=self._all.n,
            statuses={status: self._statuses[status] for status in ("judged", "partial", "failed")},
            scores=self._all.scores(),
            distributions=self._distributions.summary(),
            labels={kind: in_declared_order(self._words, kind, counts) for kind, counts in self._labels.items()},
            atoms=self._atoms.summary() if self._atoms else None,
            checks=self._checks.summary(),
            outcomes=self._outcomes.summary() if self._outcomes else (),
            bands=self._bands.summary(language),
            dialogue=self._dialogue.summary() if self._dialogue else None,
            ranking=self._ranking.summary() if self._ranking else (),
            tags={tag: tally.group() for tag, tally in self._tags.sorted()},
            flags={flag: tally.group() for flag, tally in self._flags.sorted()},
            unjudged=dict(self._unjudged.most_common()),
            within_tolerance=self._within_tolerance,
            votes=self._votes.summary(),
            routing=self._routing.summary((manifest or {}).get("routing", ())),
            worst=tuple(
                LowSample(
                    id=low.id,
                    metric=low.metric,
                    main_score=low.score,
                    scores=low.scores,
                    flags=low.flags,
                    telling=low.telling,
                    why=why(low.telling, low.flags, language, self._words),
                )
                for low in self._worst
            ),
            n_bad_rows=self._n_bad_rows,
            bad_rows=tuple(self._bad_rows),
            usage=self._usage,
            spending=self._spending.summary(),
            run=run,
            failure=self._failure(manifest or {}, run, language),
            manifest=None if manifest is None else json.loads(json.dumps(dict(manifest), default=str)),
        )

    def _failure(self, manifest: Mapping[str, Any], run: RunFacts | None, language: Language) -> RunFailure | None:
        """Why nothing was labelled: as recorded in the run, else the commonest reason of its samples."""
        state = run.state if run else ""
        none_judged = 0 < self._all.n == self._statuses["failed"] and state != "running"
        if state != "failed" and not none_judged:
            return None
        noted = manifest.get("failure") or {}
        reason, n = (noted.get("reason", "unknown"), 0)
        if self._gaps and reason != UNUSABLE:
            ((reason, n),) = self._gaps.most_common(1)
        detail = noted.get("detail", "") if reason == noted.get("reason") else ""
        return RunFailure(reason=reason, n=n, of=self._all.n, detail=detail, remedy=remedy(reason, language))

    def _count_language(self, verdict: Verdict, sample: Sample | None) -> None:
        if self._language or self._languages.total() >= MOST_LANGUAGE_VOTES:
            return
        if isinstance(sample, RagSample):
            texts = [sample.question, sample.answer, sample.other_answer or ""]
        elif sample:
            texts = [sample.system_prompt, *(turn.prompt for turn in sample.turns[:3])]
        else:
            texts = [item.text for item in verdict.items[:3]]
        if any(text.strip() for text in texts):
            self._languages[language_of(*texts)] += 1

    def _majority(self) -> Language:
        ((language, _),) = self._languages.most_common(1) or [("en", 0)]
        return language

    def _rank(self, verdict: Verdict) -> None:
        main = self._words.main_score(verdict.scores)
        # What has full marks is not among the worst, however short the list.
        if main is None or main[1] == self._words.metric(main[0]).best:
            return
        metric, score = main
        goodness = self._words.metric(metric).goodness(score)
        if len(self._worst) == MOST_LOW_SAMPLES and goodness > self._worst[-1].goodness:
            return
        bad = bad_labels(verdict)
        rank = (goodness, -len(bad), verdict.id)
        if len(self._worst) == MOST_LOW_SAMPLES and rank >= self._worst[-1][:3]:
            return
        telling = most_telling(verdict, metric)
        low = Low(*rank, metric, score, dict(verdict.scores), shown_flags(verdict), telling)
        insort(self._worst, low, key=lambda entry: entry[:3])
        del self._worst[MOST_LOW_SAMPLES:]


def cluster_of(sample: Sample | None) -> Cluster | None:
    """What makes samples depend on each other: the same question. A dialogue, or a sample without one, stands alone."""
    if not isinstance(sample, RagSample) or not sample.question.strip():
        return None
    question = sample.question.strip().encode("utf-8", "surrogatepass")
    return int.from_bytes(blake2b(question, digest_size=8).digest())


def words_of(verdict: Verdict) -> Vocabulary:
    return vocabulary(verdict.protocol)


def in_declared_order(vocab: Vocabulary, aspect: str, counts: Mapping[str, int]) -> dict[str, int]:
    """Every label of the aspect, also those that never occurred."""
    known = [*vocab.aspect(aspect).names, *(label.name for of, label in vocab.flagged() if of == aspect), UNJUDGED]
    return {label: counts.get(label, 0) for label in known} | {
        label: n for label, n in counts.items() if label not in known
    }


def shown_flags(verdict: Verdict) -> tuple[str, ...]:
    return tuple(flag for flag in verdict.flags if not flag.startswith(UNJUDGED_LIST))


def bad_labels(verdict: Verdict) -> list[tuple[str, str, AnyItem]]:
    """Every label that counts against the sample, with its item."""
    vocab = words_of(verdict)
    return [(*pair, item) for item in verdict.items for pair in vocab.against(item)]


def most_telling(verdict: Verdict, metric: str | None = None) -> TellingItem | None:
    """The first item with the gravest label; where a metric ranks the sample, among those that it is counted from."""
    vocab, bad = words_of(verdict), bad_labels(verdict)
    if not bad:
        return None
    preferred = vocab.metric(metric).reads if metric else ()
    kind, label, item = min(bad, key=lambda entry: (entry[0] not in preferred, vocab.severity(*entry[:2])))
    return TellingItem(
        kind=kind,
        label=label,
        text=name_of(item) or item.text[:LONGEST_TEXT],
        reason=item.reason[:LONGEST_TEXT],
        more=sum(entry[:2] == (kind, label) for entry in bad) - 1,
    )
