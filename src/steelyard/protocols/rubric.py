"""`rubric:FILE`: a user's own criteria. Each is a question with labels that earn points; a failed veto takes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from steelyard.errors import ConfigError, InputError
from steelyard.protocols import Protocol
from steelyard.protocols.common import (
    Collected,
    Options,
    PromptLanguage,
    collect,
    confident,
    in_parts,
    marked,
    numbered,
    prompt_language,
    rag_size,
    status_of,
    too_long,
    why_open,
)
from steelyard.protocols.rubric_file import (
    INLINE,
    NOT_APPLICABLE,
    Rubric,
    RubricCriterion,
    find_rubric,
    inline_rubric,
    read_rubric_file,
)
from steelyard.protocols.scoring import Number, plain
from steelyard.protocols.vocabulary import UNJUDGED, Aspect, Kind, Label, Metric, Tone, Words
from steelyard.records import (
    AnyItem,
    Ask,
    CustomItem,
    Data,
    Evidence,
    RagSample,
    Rounds,
    Sample,
    Verdict,
)
from steelyard.tasks import Exchange, RubricData, RubricDialogueData, RubricReply, RubricVerdict, rubric_reply
from steelyard.text import contains_quote
from steelyard.text.suspicion import shows_injection, signs

TOLD = {
    "en": {"when": "only if", "labels": "labels", "unmet": "the condition is not met", "colon": ": "},
    "zh": {"when": "仅当", "labels": "标签", "unmet": "条件不成立", "colon": "："},
}


class RubricOptions(Options):
    """Nothing of its own: what is judged, and how it counts, is in the rubric."""


def judge_rubric(rubric: Rubric, sample: Sample, options: RubricOptions) -> Rounds:
    answers = [sample.answer] if isinstance(sample, RagSample) else [turn.answer for turn in sample.turns]
    language = rubric.language or prompt_language(*answers, *_others(sample))
    flags = ["injection_suspected"] if _suspected(sample) else []
    if not any(answer.strip() for answer in answers):
        flags.append("empty_answer")
    scores = tuple(metric.name for metric in _metrics(rubric))
    if (size := _size(sample)) > options.max_chars:
        unread = (_item(one, id, language, "too_long") for id, one in enumerate(rubric.criteria, start=1))
        return too_long(sample.id, rubric.protocol, scores, flags, size, tuple(unread))

    asking = ask_about(rubric, sample, language)

    def misquoted(_: str, label: RubricVerdict) -> bool:
        return bool(label.quote) and not any(contains_quote(answer, label.quote or "") for answer in answers)

    collected = yield from collect(in_parts(asking, options.part_size), misquoted)
    items = tuple(_labelled(one, id, language, collected) for id, one in enumerate(rubric.criteria, start=1))
    return _verdict(rubric, sample.id, items, flags, collected)


def ask_about(rubric: Rubric, sample: Sample, language: PromptLanguage) -> Ask:
    """All criteria in one ask. Neither weights nor points are told, and none changes what is asked."""
    criteria = numbered(criterion_text(one, language) for one in rubric.criteria)
    data: Data
    if isinstance(sample, RagSample):
        task = "rubric.judge"
        data = RubricData(
            question=sample.question,
            references=sample.references,
            reference_answer=sample.reference_answer,
            answer=sample.answer,
            criteria=criteria,
        )
    else:
        task = "rubric.dialogue"
        turns = tuple(Exchange(prompt=turn.prompt, answer=turn.answer) for turn in sample.turns)
        data = RubricDialogueData(system_prompt=sample.system_prompt, turns=turns, criteria=criteria)
    return Ask(task=task, language=language, data=data, reply=reply_of(rubric))


def reply_of(rubric: Rubric) -> type[RubricReply]:
    failing = (tuple(label.name for label in _labels(one) if label.tone == "bad") for one in rubric.criteria)
    return rubric_reply(tuple(one.names for one in rubric.criteria), tuple(failing))


def criterion_text(criterion: RubricCriterion, language: PromptLanguage, ask: str = "") -> str:
    """A criterion as the judge reads it: the question, its condition, its labels with what they mean."""
    phrases = TOLD[language]
    labels = [
        f"{label.name} = {label.means.in_language(language)}" if label.means else label.name
        for label in criterion.labels
    ]
    parts = [ask or criterion.ask.in_language(language)]
    if criterion.when:
        parts.append(f"{phrases['when']}{phrases['colon']}{criterion.when.in_language(language)}")
        labels.append(f"{NOT_APPLICABLE} = {phrases['unmet']}")
    return " | ".join([*parts, f"{phrases['labels']}{phrases['colon']}{'; '.join(labels)}"])


def _item(criterion: RubricCriterion, id: int, language: PromptLanguage, reason: str, **fields: Any) -> CustomItem:
    """A criterion's item, unjudged unless the fields say otherwise."""
    labelled = {"label": UNJUDGED, "points": None, **fields}
    return CustomItem(
        kind=criterion.name,
        id=id,
        text=criterion.ask.in_language(language),
        name=criterion.name,
        reason=reason,
        **labelled,
    )


def _labelled(criterion: RubricCriterion, id: int, language: PromptLanguage, collected: Collected) -> CustomItem:
    said: RubricVerdict | None = collected.label("criteria", id)
    mark = collected.mark("criteria", id)
    if said is None:
        return _item(criterion, id, language, collected.reason("criteria", id))
    if mark.open:
        return marked(_item(criterion, id, language, why_open(mark)), mark)
    unverified = id in collected.unverified.get("criteria", ())
    quote = (said.quote or "").strip()
    item = _item(
        criterion,
        id,
        language,
        said.reason,
        label=said.label,
        points=plain(criterion.shares.get(said.label)),
        evidence=Evidence(quote=quote, verified=not unverified, source="answer") if quote else None,
        flags=("evidence_unverified",) if unverified and quote else (),
    )
    return marked(confident(item, said.confidence), mark)


def _verdict(
    rubric: Rubric, id: str, items: tuple[CustomItem, ...], flags: Sequence[str], collected: Collected
) -> Verdict:
    counted = Counted.of(rubric, items)
    of_asks, notes = collected.remarks()
    return Verdict(
        id=id,
        protocol=rubric.protocol,
        status=status_of(items),
        scores=counted.scores(),
        items=items,
        flags=(
            *flags,
            *(["vetoed"] if counted.vetoed else []),
            *of_asks,
            *(flag for item in items for flag in item.flags),
        ),
        notes={"criteria": counted.as_notes(), **notes},
    )


# --- counting --------------------------------------------------------------------------------------


class Counted(NamedTuple):
    """The points of a sample, exactly. Labels without points are left out and counted."""

    earned: Fraction
    possible: Fraction
    scored: int
    unscored: int
    not_applicable: int
    unjudged: int
    vetoed: tuple[str, ...]
    """The criteria that failed with a veto."""
    undecided: bool
    """Whether a criterion that could have failed the sample is unjudged."""
    has_vetoes: bool

    @classmethod
    def of(cls, rubric: Rubric, items: Iterable[AnyItem]) -> Counted:
        labels = {item.kind: str(getattr(item, "label", UNJUDGED)) for item in items}
        given = [(one, labels.get(one.name, UNJUDGED)) for one in rubric.criteria]
        scored = [(one.weight, one.shares[label]) for one, label in given if label in one.shares]
        not_applicable = sum(label == NOT_APPLICABLE for _, label in given)
        unjudged = sum(label == UNJUDGED for _, label in given)
        return cls(
            earned=sum((weight * share for weight, share in scored), Fraction(0)),
            possible=sum((weight for weight, _ in scored), Fraction(0)),
            scored=len(scored),
            unscored=len(given) - len(scored) - not_applicable - unjudged,
            not_applicable=not_applicable,
            unjudged=unjudged,
            vetoed=tuple(one.name for one, label in given if label in one.veto),
            undecided=any(one.veto and label == UNJUDGED for one, label in given),
            has_vetoes=any(one.veto for one in rubric.criteria),
        )

    def scores(self) -> dict[str, Number]:
        """Null where nothing was scored, and where a veto is open: the sample may have failed."""
        share = self.earned / self.possible if self.possible else None
        if not self.has_vetoes:
            return {"score": plain(share)}
        if self.vetoed:
            score: Number = 0
        else:
            score = None if self.undecided else plain(share)
        return {"score": score, "raw_score": plain(share)}

    def as_notes(self) -> dict[str, object]:
        """For the notes of a verdict."""
        counts = {name: getattr(self, name) for name in ("scored", "unscored", "not_applicable", "unjudged")}
        return {**counts, **({"vetoed": list(self.vetoed)} if self.vetoed else {})}


# --- the sample ------------------------------------------------------------------------------------


def _others(sample: Sample) -> Iterator[str]:
    """What an answer is about."""
    if isinstance(sample, RagSample):
        yield sample.question
    else:
        yield from (sample.system_prompt, *(turn.prompt for turn in sample.turns))


def _size(sample: Sample) -> int:
    if isinstance(sample, RagSample):
        return rag_size(sample)
    return len(sample.system_prompt) + sum(len(turn.prompt) + len(turn.answer) for turn in sample.turns)


def _suspected(sample: Sample) -> bool:
    if isinstance(sample, RagSample):
        return shows_injection([sample.answer], sample.references)
    prompts = (turn.prompt for turn in sample.turns)
    # A user may well tell the assistant to ignore its rules; only words meant for a judge are suspect there.
    return shows_injection(turn.answer for turn in sample.turns) or any(
        signs(one, instruction=False) for one in prompts
    )


# --- vocabulary ------------------------------------------------------------------------------------

YES_OR_NO = {"yes": Words("yes", "是", "是"), "no": Words("no", "否", "否")}
DOES_NOT_APPLY = Label(NOT_APPLICABLE, "neutral", Words("does not apply", "不适用", "不適用"))
SCORE = Metric(
    "score",
    "ratio",
    Words("Score", "得分", "得分"),
    Words(
        "The weighted share of points; a veto that failed makes it 0.",
        "按权重计的得分比例；否决项未通过则为 0。",
        "按權重計的得分比例；否決項未通過則為 0。",
    ),
    main=True,
)
RAW_SCORE = Metric(
    "raw_score",
    "ratio",
    Words("Score before vetoes", "得分（不计否决）", "得分（不計否決）"),
    Words(
        "The weighted share of points, vetoes left aside.",
        "按权重计的得分比例，不计否决。",
        "按權重計的得分比例，不計否決。",
    ),
)


def make_protocol(rubric: Rubric, source: str = INLINE) -> Protocol:
    """The protocol that a rubric stands for, with the labels that only it knows."""
    return Protocol(
        name=rubric.protocol,
        title=rubric.title.words or Words(rubric.name),
        kind="dialogue" if rubric.sample == "dialogue" else "rag",
        rounds=partial(judge_rubric, rubric),
        options=RubricOptions,
        needs_question=False,
        kinds=tuple(map(_kind, rubric.criteria)),
        metrics=_metrics(rubric),
        tasks=("rubric.dialogue" if rubric.sample == "dialogue" else "rubric.judge",),
        rescore=lambda verdict: Counted.of(rubric, verdict.items).scores(),
        origin={"source": source, "sha256": rubric.digest, "rubric": rubric.model_dump(mode="json")},
    )


def _kind(criterion: RubricCriterion) -> Kind:
    words = criterion.ask.words
    aspect = Aspect(criterion.name, _labels(criterion), words=words, one=words, ask=words)
    names = {criterion.name: words}
    return Kind(criterion.name, (aspect,), words, listed_as="criteria", identity="name", names=names)


def _labels(criterion: RubricCriterion) -> tuple[Label, ...]:
    def tone(name: str) -> Tone:
        share = criterion.shares.get(name)
        if name in criterion.veto or share == 0:
            return "bad"
        return "neutral" if share is None else "good" if share == 1 else "half"

    is_plain = {label.name for label in criterion.labels} == YES_OR_NO.keys()
    found = (
        Label(label.name, tone(label.name), YES_OR_NO[label.name] if is_plain else Words())
        for label in criterion.labels
    )
    return (*found, *([DOES_NOT_APPLY] if criterion.when else []))


def _metrics(rubric: Rubric) -> tuple[Metric, ...]:
    reads = tuple(one.name for one in rubric.criteria if one.shares or one.veto)
    metrics = (SCORE, RAW_SCORE) if any(one.veto for one in rubric.criteria) else (SCORE,)
    return tuple(replace(metric, reads=reads) for metric in metrics)


# --- finding ---------------------------------------------------------------------------------------


def find(named: str, *, paths: bool = True) -> Protocol:
    """The protocol for what stands after `rubric:`."""
    return make_protocol(*find_rubric(named, paths=paths))


def rubric(given: str | PathLike[str] | Mapping[str, Any]) -> Protocol:
    """The protocol for a rubric: a file, the name of a shipped one, its text, or its table as a mapping.

    steelyard.evaluate(rows, steelyard.rubric({"polite": {"ask": "Is the answer polite?"}}), judge)
    """
    if isinstance(given, PathLike) or (isinstance(given, str) and "\n" not in given):
        return find(str(given))
    return inline(given)


def inline(given: str | Mapping[str, Any]) -> Protocol:
    """The same for a rubric that is sent: it never names a file."""
    return make_protocol(inline_rubric(given))


def restored(origin: Mapping[str, Any]) -> Protocol | None:
    """The protocol of an earlier run, from what its manifest keeps; None where that is no rubric."""
    rubric = Rubric.stored(origin.get("rubric"))
    return make_protocol(rubric, str(origin.get("source", INLINE))) if rubric else None


def check_unchanged(origin: Mapping[str, Any], run: str) -> None:
    """A run goes on by the rubric it began with; a file that says something else by now is an error."""
    path = Path(str(origin.get("source", INLINE)))
    if not path.is_file():
        return
    try:
        digest = read_rubric_file(path).digest
    except InputError as error:
        raise ConfigError(f"the rubric of run {run} cannot be read any more: {error}") from None
    if digest != origin.get("sha256"):
        raise ConfigError(f"the rubric {path} has changed since run {run}; put it back, or start a new run")
