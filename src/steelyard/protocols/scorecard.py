"""`scorecard`: relevance, completeness, accuracy and faithfulness from 0 to 100, by band."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isfinite
from typing import Any, Literal

from pydantic import field_validator

from steelyard.protocols.atomic import NOT_GIVEN
from steelyard.protocols.atoms import (
    Rules,
    Split,
    atom_item,
    evidence_of,
    finish_split,
    is_quoted,
    lacks_evidence,
    split_ask,
)
from steelyard.protocols.common import (
    Collected,
    Options,
    PromptLanguage,
    collect,
    confident,
    has_question,
    has_text,
    in_parts,
    marked,
    numbered,
    prompt_language,
    rag_size,
    same_words,
    status_of,
    too_long,
    why_open,
)
from steelyard.records import (
    AnyItem,
    Ask,
    Evidence,
    KeyPoint,
    Numbered,
    RagSample,
    Reply,
    Rounds,
    Sentence,
    SupportLabel,
    Tolerance,
    TopicLabel,
    Unjudged,
    Verdict,
)
from steelyard.scoring import Number, composite, scorecard_scores, shallow
from steelyard.suspicion import suspected
from steelyard.tasks import (
    AtomVerdict,
    KeyPointsData,
    KeyPointsReply,
    KeyPointVerdict,
    ScorecardData,
    ScorecardReply,
    SentenceVerdict,
)
from steelyard.text import language_of, sentences
from steelyard.wording import say

METRICS = ("relevance", "completeness", "accuracy", "faithfulness")
SCORES = (*METRICS, "faithfulness_soft")
CLAIMS = ("supported", "partial", "unsupported")
KeyPointsSource = Literal["given", "derived"]


class ScorecardOptions(Options):
    """`weights` (metric → weight) asks for a composite score; without them there is none."""

    strict: bool = False
    tolerance: Tolerance = Tolerance()
    derive_key_points: bool = True
    weights: Mapping[str, float] = {}
    date: str = ""
    place: str = ""

    @field_validator("weights")
    @classmethod
    def _known_metrics(cls, weights: Mapping[str, float]) -> Mapping[str, float]:
        unknown = sorted(weights.keys() - set(METRICS))
        if unknown:
            raise ValueError(f"unknown metric {unknown[0]!r}; weights can be given to {', '.join(METRICS)}")
        if any(weight < 0 or not isfinite(weight) for weight in weights.values()):
            raise ValueError("a weight is a number of 0 or more")
        if weights and not any(weights.values()):
            raise ValueError("at least one weight must be above 0")
        return weights


def scorecard(sample: RagSample, options: ScorecardOptions) -> Rounds:
    flags = ["injection_suspected"] if suspected([sample.answer], sample.references) else []
    if not sample.answer.strip():
        return _empty(sample, options, [*flags, "empty_answer"])
    if (size := rag_size(sample)) > options.max_chars:
        return too_long(sample.id, "scorecard", _score_names(options), flags, size)
    checkable = has_text(sample.references)
    if not checkable:
        flags.append("no_references")
    if not has_question(sample):
        flags.append("no_question")
    language = prompt_language(sample.question, sample.answer)

    # First round: what is to be labelled.
    derives = _derives(sample, options) and (checkable or bool(sample.reference_answer))
    first: dict[str, Ask] = {}
    if checkable:
        first["atoms"] = split_ask(sample, language)
    if derives:
        first["key_points"] = _key_points_ask(sample, language)
    replies = dict(zip(first, (yield list(first.values())), strict=True)) if first else {}
    failures = {name: reply for name, reply in replies.items() if isinstance(reply, Unjudged)}
    flags += [f"unjudged:{name}:{failure.reason}" for name, failure in failures.items()]
    split = Split(())
    if isinstance(atoms := replies.get("atoms"), Reply):
        split = yield from finish_split(first["atoms"], sample.answer, atoms)
    points = sample.key_points or ()
    if isinstance(derived := replies.get("key_points"), Reply):
        points = tuple(point.text for point in derived.data.key_points)
    source: KeyPointsSource = "derived" if derives else "given"

    # Second round: one reading labels everything.
    data = ScorecardData(
        question=sample.question,
        references=sample.references,
        date=sample.date or options.date or NOT_GIVEN[language],
        place=sample.place or options.place or NOT_GIVEN[language],
        sentences=numbered(sentences(sample.answer)),
        key_points=_distinct(points),
        atoms=split.atoms,
    )
    collected = Collected()
    if data.items():
        judging = Ask(
            task="scorecard.judge", language=language, data=data, reply=ScorecardReply, tolerance=options.tolerance
        )
        collected = yield from collect(
            in_parts(judging, options.part_size),
            lambda _, label: checkable and _unproven(label, sample.references),
        )
    judged = tuple(_sentence(sentence, collected, sample) for sentence in data.sentences)
    rules = Rules(options.strict, options.tolerance)
    items: tuple[AnyItem, ...] = (
        *judged,
        *(_key_point(point, collected, source) for point in data.key_points),
        *(atom_item(atom, collected, sample.references, rules, split.causal_of.get(atom.id)) for atom in data.atoms),
    )
    notes: dict[str, Any] = {}
    if votes := collected.votes():
        notes["votes"] = votes
    if summaries := [reply.summary for reply in collected.replies if reply.summary]:
        notes["summary"] = summaries[0]
    if data.key_points:
        notes["keypoints_source"] = source
    # An answer that claims nothing has no atoms, and should have none.
    if split.uncovered and (split.atoms or any(sentence.support in CLAIMS for sentence in judged)):
        flags.append("answer_not_covered")
        notes["uncovered"] = list(split.uncovered)
    if collected.invented:
        flags.append("invented_items")
        notes["invented"] = collected.invented
    if failed := [*failures.values(), *collected.failures]:
        notes["failure"] = failed[0].detail or failed[0].reason
    return _verdict(sample, options, items, flags, notes, scorecard_scores(items), failures)


def _derives(sample: RagSample, options: ScorecardOptions) -> bool:
    """Without a question nobody can tell which of all that the passages say had to be said."""
    known = has_question(sample) or bool(sample.reference_answer)
    return sample.key_points is None and options.derive_key_points and known


def _empty(sample: RagSample, options: ScorecardOptions, flags: list[str]) -> Verdict:
    """Nothing was said: off topic, every key point missing, nothing to check; no judge is needed for that."""
    reason = say(language_of(sample.question, *(sample.key_points or ())), "flag.empty_answer")
    items = tuple(
        KeyPoint(id=point.id, text=point.text, label="missing", reason=reason)
        for point in _distinct(sample.key_points or ())
    )
    scores = scorecard_scores(items, empty_answer=True, asked=has_question(sample))
    if not items and not _derives(sample, options):
        scores["completeness"] = None
    if not has_question(sample):
        flags.append("no_question")
    return _verdict(sample, options, items, flags, {}, scores)


def _key_points_ask(sample: RagSample, language: PromptLanguage) -> Ask:
    """Key points are drawn without sight of the answer, or it would set its own standard."""
    data = KeyPointsData(
        question=sample.question,
        # The reference answer alone is enough, and far shorter than the passages.
        references=() if sample.reference_answer else sample.references,
        reference_answer=sample.reference_answer,
    )
    return Ask(task="scorecard.key_points", language=language, data=data, reply=KeyPointsReply)


def _distinct(points: Iterable[str]) -> tuple[Numbered, ...]:
    kept: dict[str, str] = {}
    for point in points:
        if point.strip():
            kept.setdefault(same_words(point), point.strip())
    return numbered(kept.values())


def _unproven(label: AtomVerdict | SentenceVerdict | KeyPointVerdict, references: Sequence[str]) -> bool:
    if isinstance(label, AtomVerdict):
        return lacks_evidence(label, references)
    if isinstance(label, SentenceVerdict) and label.support in ("supported", "partial"):
        return not is_quoted(label.quote, None, references)
    return False


def _sentence(sentence: Numbered, collected: Collected, sample: RagSample) -> Sentence:
    label: SentenceVerdict | None = collected.label("sentences", sentence.id)
    references, asked = sample.references, has_question(sample)
    if label is None:
        reason, topic = collected.reason("sentences", sentence.id), "unjudged" if asked else None
        return Sentence(id=sentence.id, text=sentence.text, on_topic=topic, support="unjudged", reason=reason)
    mark = collected.mark("sentences", sentence.id)
    support: SupportLabel = "unjudged" if "support" in mark.open else label.support
    on_topic: TopicLabel = "unjudged" if "on_topic" in mark.open else "on_topic" if label.on_topic else "off_topic"
    fields = {"on_topic": "on_topic", "support": "support"} if asked else {"support": "support"}
    flags: tuple[str, ...] = ()
    evidence: Evidence | None = None
    if support not in ("no_claim", "unjudged") and not has_text(references):
        support, flags = "unsupported", ("no_references",)
    if support in ("supported", "partial"):
        evidence = evidence_of(label.quote, None, references)
        flags = () if evidence.verified else ("evidence_unverified",)
    item = Sentence(
        id=sentence.id,
        text=sentence.text,
        on_topic=on_topic if asked else None,
        support=support,
        reason=why_open(mark) if set(mark.open) & fields.keys() else label.reason,
        evidence=evidence,
        flags=flags,
    )
    if "on_topic" in mark.first:
        mark = mark.model_copy(update={"first": {**mark.first, "on_topic": "off_topic"}})
    return marked(confident(item, label.confidence if support == label.support else None), mark, fields=fields)


def _key_point(point: Numbered, collected: Collected, source: KeyPointsSource) -> KeyPoint:
    label: KeyPointVerdict | None = collected.label("key_points", point.id)
    if label is None:
        return KeyPoint(
            id=point.id,
            text=point.text,
            label="unjudged",
            reason=collected.reason("key_points", point.id),
            keypoints_source=source,
        )
    mark = collected.mark("key_points", point.id)
    item = KeyPoint(
        id=point.id,
        text=point.text,
        label="unjudged" if mark.open else label.label,
        depth=label.depth if label.label != "missing" and not mark.open else None,
        reason=why_open(mark) if mark.open else label.reason,
        keypoints_source=source,
    )
    return marked(confident(item, None if mark.open else label.confidence), mark)


def _score_names(options: ScorecardOptions) -> tuple[str, ...]:
    return (*SCORES, "composite") if options.weights else SCORES


def _verdict(
    sample: RagSample,
    options: ScorecardOptions,
    items: tuple[AnyItem, ...],
    flags: list[str],
    notes: dict[str, Any],
    scores: dict[str, Number],
    failures: Iterable[str] = (),
) -> Verdict:
    if options.weights:
        scores["composite"] = composite(scores, options.weights)
    if shallow(items):
        flags.append("shallow_cap")
    return Verdict(
        id=sample.id,
        protocol="scorecard",
        status=status_of(items, failures),
        scores=scores,
        items=items,
        flags=(*flags, *(flag for item in items for flag in item.flags)),
        notes=notes,
    )
