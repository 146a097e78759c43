"""Atoms, for `atomic` and `scorecard` alike: splitting an answer, and turning a judge's labels into items."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import NamedTuple

from steelyard.protocols.common import Collected, PromptLanguage, confident, has_text, marked, same_words, why_open
from steelyard.protocols.vocabulary import Aspect, Kind, Label, Words
from steelyard.records import (
    Again,
    Ask,
    Atom,
    AtomLabel,
    Evidence,
    Numbered,
    RagSample,
    Reply,
    Source,
    Tolerance,
    Unjudged,
    ValueDifference,
)
from steelyard.tasks import AtomVerdict, GradedAtomVerdict, SplitAtom, SplitData, SplitReply
from steelyard.text import find_quote, normalise, sentences, word_pieces
from steelyard.text.suspicion import signs
from steelyard.text.tolerance import ruling

Splitting = Generator[list[Ask], list[Reply | Unjudged], "Split"]

# An atom rewords its sentence, so little in common is normal; this little means that nobody spoke of it.
COVERED = 0.35
SHORTEST_STATEMENT = 7


class Split:
    """The atoms of one answer, numbered from 1, duplicates removed, links between causes and effects kept."""

    def __init__(self, found: Sequence[SplitAtom], uncovered: Sequence[str] = ()) -> None:
        kept: dict[str, Numbered] = {}
        numbers: dict[int, set[int]] = {}
        for atom in found:
            if text := atom.text.strip():
                twin = kept.setdefault(same_words(text), Numbered(id=len(kept) + 1, text=text))
                numbers.setdefault(atom.id, set()).add(twin.id)
        self.atoms = tuple(kept.values())
        self.uncovered = tuple(uncovered)
        self.causal_of: dict[int, int] = {}
        for atom in found:
            effects = numbers.get(atom.causal_of, set()) if atom.causal_of is not None else set()
            cause = kept.get(same_words(atom.text))
            # A judge that gives two atoms one id has not said which of them is the effect.
            if cause and len(effects) == 1 and cause.id not in effects:
                self.causal_of.setdefault(cause.id, *effects)


def split_ask(sample: RagSample, language: PromptLanguage) -> Ask:
    return Ask(
        task="atomic.split",
        language=language,
        data=SplitData(question=sample.question, answer=sample.answer),
        reply=SplitReply,
    )


def finish_split(ask: Ask, answer: str, reply: Reply) -> Splitting:
    """The atoms of a reply; where it left out part of the answer, the judge is asked once more.

    A reply without any atom is a judgement of its own (a refusal states nothing), so it is not asked again.
    """
    found, left_out = reply.data.atoms, uncovered(answer, reply.data.atoms)
    if left_out and found:
        (second,) = yield [ask.model_copy(update={"again": Again(uncovered=tuple(left_out))})]
        if isinstance(second, Reply) and len(still := uncovered(answer, second.data.atoms)) < len(left_out):
            found, left_out = second.data.atoms, still
    return Split(found, left_out)


def uncovered(answer: str, atoms: Iterable[SplitAtom]) -> list[str]:
    """The sentences of the answer that no atom speaks of; questions, courtesies and words to the judge hold none."""
    text = " ".join(atom.text for atom in atoms)
    reworded = [sentence for sentence in sentences(answer) if sentence[:-1] not in text]
    said = word_pieces(text) if reworded else set()
    return [
        sentence
        for sentence in reworded
        if len(normalise(sentence)) > SHORTEST_STATEMENT
        and not sentence.endswith(("?", "？"))
        and (words := word_pieces(sentence))
        and len(words & said) < COVERED * len(words)
        and not signs(sentence)
    ]


AnyAtomVerdict = AtomVerdict | GradedAtomVerdict

# --- labels ----------------------------------------------------------------------------------------


def is_quoted(quote: str | None, named: int | None, references: Sequence[str]) -> bool:
    return bool(quote) and find_quote(references, quote or "", named) is not None


def lacks_evidence(label: AnyAtomVerdict, references: Sequence[str]) -> bool:
    """A correct or wrong label must quote the references, unless it says that it rests on own knowledge."""
    if label.label not in ("correct", "wrong") or label.source == "own_knowledge":
        return False
    return not is_quoted(label.quote, _named(label), references)


def _named(label: AnyAtomVerdict) -> int | None:
    """The passage the judge named, where it was asked to."""
    return label.reference if isinstance(label, GradedAtomVerdict) else None


class Rules(NamedTuple):
    """The options that affect the labels of atoms."""

    strict: bool = False
    tolerance: Tolerance = Tolerance()
    has_question: bool = True


USUAL = Rules()


def atom_item(
    atom: Numbered,
    collected: Collected,
    references: Sequence[str],
    rules: Rules = USUAL,
    causal_of: int | None = None,
) -> Atom:
    """One atom with its label, after the rules that are code's: evidence, tolerance, strictness, no references."""
    label: AnyAtomVerdict | None = collected.label("atoms", atom.id)
    if label is None:
        reason = collected.reason("atoms", atom.id)
        return Atom(id=atom.id, text=atom.text, label="unjudged", reason=reason, causal_of=causal_of)
    mark = collected.mark("atoms", atom.id)
    is_open = "label" in mark.open
    final, flags = ("undetermined", ()) if is_open else _decided(label, references, rules)
    evidence: Evidence | None = None
    if final in ("correct", "wrong"):
        evidence = evidence_of(label.quote, _named(label), references, label.source)
        if atom.id in collected.unverified.get("atoms", ()):
            flags = (*flags, "evidence_unverified")
    graded = label if isinstance(label, GradedAtomVerdict) and rules.has_question else None
    item = Atom(
        id=atom.id,
        text=atom.text,
        label=final,
        level=graded.level if graded else None,
        level_reason=graded.level_reason if graded else "",
        reason=why_open(mark) if is_open else label.reason,
        evidence=evidence,
        causal_of=causal_of,
        difference=_difference(label) if final in ("correct", "wrong") else None,
        flags=flags,
    )
    # What code made of the label has no probability.
    return marked(confident(item, label.confidence if final == label.label else None), mark)


def _difference(label: AnyAtomVerdict) -> ValueDifference | None:
    return ValueDifference(**label.difference.model_dump()) if label.difference else None


def _decided(label: AnyAtomVerdict, references: Sequence[str], rules: Rules) -> tuple[AtomLabel, tuple[str, ...]]:
    """The final label, and the flag that says how code changed it."""
    if label.label not in ("correct", "wrong"):
        return label.label, ()
    if not has_text(references):
        return "undetermined", ("no_references",)
    if rules.strict and label.source == "own_knowledge":
        return "undetermined", ("own_knowledge_ignored",)
    match ruling(label.difference, rules.tolerance) if label.difference else None:
        case "within":
            return "correct", ("within_tolerance",)
        case "beyond":
            return "wrong", () if label.label == "wrong" else ("beyond_tolerance",)
        case "same":
            return "correct", () if label.label == "correct" else ("same_value",)
        case None:
            return label.label, ()


def evidence_of(
    quote: str | None, named: int | None, references: Sequence[str], source: Source | None = None
) -> Evidence:
    """The evidence as code found it: a quote says more reliably than a number which passage is meant."""
    at = find_quote(references, quote, named) if quote else None
    claimed = named if named is not None and 0 <= named < len(references) else None
    return Evidence(
        reference=claimed if at is None else at,
        quote=quote or "",
        verified=at is not None,
        source=source or ("inference" if at is None else "reference"),
    )


# --- vocabulary ------------------------------------------------------------------------------------

ATOM_LABEL = Aspect(
    "atom",
    (
        Label("correct", "good", Words("correct", "正确", "正確")),
        Label("wrong", "bad", Words("wrong", "错误", "錯誤")),
        Label("undetermined", "open", Words("undetermined", "无法判断", "無法判斷"), against=True),
        Label("exempt", "neutral", Words("exempt", "无需核查", "無須查核")),
    ),
    words=Words("Statements", "原子信息", "原子資訊"),
    one=Words("Statement", "陈述", "陳述"),
    ask=Words(
        "Is this statement correct, going by the passages?", "对照资料，这条陈述正确吗？", "對照資料，這條陳述正確嗎？"
    ),
)
WITHIN_TOLERANCE = Label("within", "good", Words("within tolerance", "容许范围内", "容許範圍內"), "≈")
ATOM = Kind(
    "atom",
    (ATOM_LABEL,),
    Words("Statements", "原子信息", "原子資訊"),
    listed_as="atoms",
    by_judge=True,
    place="statement",
    flagged={"within_tolerance": ("tolerance", WITHIN_TOLERANCE)},
)
