"""`scorecard`: relevance, completeness, accuracy and faithfulness from 0 to 100, by band."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import field_validator

from steelyard.protocols.atomic import NOT_GIVEN
from steelyard.protocols.atoms import Split, atom_item, evidence_of, finish_split, lacks_evidence, split_ask
from steelyard.protocols.common import (
    Collected,
    Options,
    collect,
    in_parts,
    numbered,
    prompt_language,
    status_of,
    too_long,
)
from steelyard.records import (
    AnyItem,
    Ask,
    Evidence,
    KeyPoint,
    Numbered,
    RagSample,
    Rounds,
    Sentence,
    SupportLabel,
    Unjudged,
    Verdict,
)
from steelyard.scoring import composite, scorecard_scores, shallow
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
from steelyard.text import find_quote, normalise, sentences

METRICS = ("relevance", "completeness", "accuracy", "faithfulness")
SCORES = (*METRICS, "faithfulness_soft")


class ScorecardOptions(Options):
    """`weights` (metric → weight) asks for a composite score; without them there is none."""

    strict: bool = False
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
        if any(weight < 0 for weight in weights.values()):
            raise ValueError("a weight cannot be negative")
        return weights


def scorecard(sample: RagSample, options: ScorecardOptions) -> Rounds:
    flags = ["injection_suspected"] if suspected([sample.answer], sample.references) else []
    if not sample.answer.strip():
        return _verdict(sample, options, (), [*flags, "empty_answer"], {}, empty_answer=True)
    size = len(sample.question) + len(sample.answer) + sum(map(len, sample.references))
    if size > options.max_chars:
        return too_long(sample.id, "scorecard", SCORES, flags, size)
    if not sample.references:
        flags.append("no_references")
    language = prompt_language(sample.question, sample.answer)

    # First round: what is to be labelled. Key points are drawn without sight of the answer.
    derives = sample.key_points is None and options.derive_key_points
    checks_atoms = bool(sample.references)
    first: dict[str, Ask] = {}
    if checks_atoms:
        first["atoms"] = split_ask(sample, language)
    if derives:
        source = KeyPointsData(
            question=sample.question,
            # The reference answer alone is enough, and far shorter than the passages.
            references=() if sample.reference_answer else sample.references,
            reference_answer=sample.reference_answer,
        )
        first["key_points"] = Ask(task="scorecard.key_points", language=language, data=source, reply=KeyPointsReply)
    replies = dict(zip(first, (yield list(first.values())), strict=True)) if first else {}
    notes: dict[str, Any] = {}
    failures = [name for name, reply in replies.items() if isinstance(reply, Unjudged)]
    split = Split(())
    if isinstance(atoms := replies.get("atoms"), Unjudged):
        flags.append(f"unjudged:atoms:{atoms.reason}")
    elif atoms is not None:
        done = yield from finish_split(first["atoms"], atoms)
        split = done if isinstance(done, Split) else split
    points = sample.key_points or ()
    if isinstance(derived := replies.get("key_points"), Unjudged):
        flags.append(f"unjudged:key_points:{derived.reason}")
    elif derived is not None:
        points = tuple(point.text.strip() for point in derived.data.key_points if point.text.strip())
    points = tuple({normalise(point) or point: point for point in points}.values())

    # Second round: one reading labels everything.
    data = ScorecardData(
        question=sample.question,
        references=sample.references,
        reference_answer=sample.reference_answer,
        answer=sample.answer,
        date=sample.date or options.date or NOT_GIVEN[language],
        place=sample.place or options.place or NOT_GIVEN[language],
        sentences=numbered(sentences(sample.answer)),
        key_points=numbered(points),
        atoms=split.atoms,
    )
    judging = Ask(task="scorecard.judge", language=language, data=data, reply=ScorecardReply)
    collected = yield from collect(
        in_parts(judging, options.part_size), lambda name, label: _unproven(name, label, sample)
    )
    items: tuple[AnyItem, ...] = (
        *(_sentence(sentence, collected, sample) for sentence in data.sentences),
        *(_key_point(point, collected, "derived" if derives else "given") for point in data.key_points),
        *(
            atom_item(
                atom,
                collected,
                sample.references,
                strict=options.strict,
                causal_of=split.causal_of.get(atom.id),
            )
            for atom in data.atoms
        ),
    )
    summaries: list[str] = [reply.summary for reply in collected.replies if reply.summary]
    if summaries:
        notes["summary"] = summaries[0]
    if data.key_points:
        notes["keypoints_source"] = "derived" if derives else "given"
    if split.uncovered:
        flags.append("answer_not_covered")
        notes["uncovered"] = list(split.uncovered)
    if collected.invented:
        flags.append("invented_items")
        notes["invented"] = collected.invented
    if collected.failures:
        notes["failure"] = collected.failures[0].detail or collected.failures[0].reason
    return _verdict(sample, options, items, flags, notes, failures=failures)


def _unproven(name: str, label: AtomVerdict | SentenceVerdict | KeyPointVerdict, sample: RagSample) -> bool:
    if not sample.references or isinstance(label, KeyPointVerdict):
        return False
    if isinstance(label, AtomVerdict):
        return lacks_evidence(label, sample.references)
    return label.support in ("supported", "partial") and (
        not label.quote or find_quote(sample.references, label.quote, label.reference) is None
    )


def _sentence(sentence: Numbered, collected: Collected, sample: RagSample) -> Sentence:
    label: SentenceVerdict | None = collected.label("sentences", sentence.id)
    if label is None:
        reason = collected.reason("sentences", sentence.id)
        return Sentence(id=sentence.id, text=sentence.text, on_topic="unjudged", support="unjudged", reason=reason)
    support: SupportLabel = label.support
    flags: tuple[str, ...] = ()
    if support != "no_claim" and not sample.references:
        support, flags = "unsupported", ("no_references",)
    evidence: Evidence | None = None
    if support in ("supported", "partial"):
        as_atom = AtomVerdict(id=label.id, reference=label.reference, quote=label.quote, label="correct")
        evidence = evidence_of(as_atom, sample.references)
        flags = () if evidence.verified else ("evidence_unverified",)
    return Sentence(
        id=sentence.id,
        text=sentence.text,
        on_topic="on_topic" if label.on_topic else "off_topic",
        support=support,
        reason=label.reason,
        evidence=evidence,
        flags=flags,
    )


def _key_point(point: Numbered, collected: Collected, source: Literal["given", "derived"]) -> KeyPoint:
    label: KeyPointVerdict | None = collected.label("key_points", point.id)
    if label is None:
        return KeyPoint(
            id=point.id,
            text=point.text,
            label="unjudged",
            reason=collected.reason("key_points", point.id),
            keypoints_source=source,
        )
    return KeyPoint(
        id=point.id,
        text=point.text,
        label=label.label,
        depth=label.depth if label.label != "missing" else None,
        reason=label.reason,
        keypoints_source=source,
    )


def _verdict(
    sample: RagSample,
    options: ScorecardOptions,
    items: tuple[AnyItem, ...],
    flags: list[str],
    notes: dict[str, Any],
    *,
    failures: list[str] | None = None,
    empty_answer: bool = False,
) -> Verdict:
    scores = scorecard_scores(items, empty_answer=empty_answer)
    if options.weights:
        scores["composite"] = composite(scores, options.weights)
    if shallow(items):
        flags.append("shallow_cap")
    return Verdict(
        id=sample.id,
        protocol="scorecard",
        status=status_of(items, failures or ()),
        scores=scores,
        items=items,
        flags=(*flags, *(flag for item in items for flag in item.flags)),
        notes=notes,
    )
