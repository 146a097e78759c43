"""Atoms, for `atomic` and `scorecard` alike: splitting an answer, and turning a judge's labels into items."""

from __future__ import annotations

from collections.abc import Generator, Sequence

from steelyard.protocols.common import Collected, PromptLanguage
from steelyard.quantities import dates_agree, quantities_agree
from steelyard.records import Again, Ask, Atom, AtomLabel, Evidence, Numbered, RagSample, Reply, Unjudged
from steelyard.tasks import AtomVerdict, SplitAtom, SplitData, SplitReply
from steelyard.text import find_quote, normalise, overlap, sentences

Splitting = Generator[list[Ask], list[Reply | Unjudged], "Split | Unjudged"]

# An atom rewords its sentence, so little overlap is normal; this little means that nobody spoke of it.
COVERED = 0.35
SHORTEST_STATEMENT = 7


class Split:
    """The atoms of one answer, numbered from 1, duplicates removed."""

    def __init__(self, found: Sequence[SplitAtom], uncovered: Sequence[str] = ()) -> None:
        kept: dict[str, SplitAtom] = {}
        for atom in found:
            if atom.text.strip():
                kept.setdefault(normalise(atom.text) or atom.text, atom)
        number = {atom.id: index for index, atom in enumerate(kept.values(), start=1)}
        self.atoms = tuple(
            Numbered(id=index, text=atom.text.strip()) for index, atom in enumerate(kept.values(), start=1)
        )
        self.causal_of = {
            number[atom.id]: number[atom.causal_of]
            for atom in kept.values()
            if atom.causal_of in number and atom.causal_of != atom.id
        }
        self.uncovered = tuple(uncovered)


def split_ask(sample: RagSample, language: PromptLanguage) -> Ask:
    return Ask(
        task="atomic.split",
        language=language,
        data=SplitData(question=sample.question, answer=sample.answer),
        reply=SplitReply,
    )


def finish_split(ask: Ask, reply: Reply | Unjudged) -> Splitting:
    """The atoms of a reply; where it left out part of the answer, the judge is asked once more."""
    if isinstance(reply, Unjudged):
        return reply
    left_out = uncovered(ask, reply.data)
    if left_out:
        (second,) = yield [ask.model_copy(update={"again": Again(uncovered=tuple(left_out))})]
        if isinstance(second, Reply) and len(still := uncovered(ask, second.data)) < len(left_out):
            reply, left_out = second, still
    return Split(reply.data.atoms, left_out)


def uncovered(ask: Ask, reply: SplitReply) -> list[str]:
    """The sentences of the answer that no atom speaks of.

    Questions and short courtesies hold no atom, and a reply without any atom is a judgement of its own:
    nothing in the answer is a statement.
    """
    if not isinstance(ask.data, SplitData) or not reply.atoms:
        return []
    said = " ".join(atom.text for atom in reply.atoms)
    return [
        sentence
        for sentence in sentences(ask.data.answer)
        if len(normalise(sentence)) > SHORTEST_STATEMENT
        and not sentence.endswith(("?", "？"))
        and overlap(sentence, said) < COVERED
    ]


def lacks_evidence(label: AtomVerdict, references: Sequence[str]) -> bool:
    """A correct or wrong label must quote the references, unless it says that it rests on own knowledge."""
    if label.label not in ("correct", "wrong") or label.source == "own_knowledge":
        return False
    return not label.quote or find_quote(references, label.quote, label.reference) is None


def atom_item(
    atom: Numbered, collected: Collected, references: Sequence[str], *, strict: bool, causal_of: int | None
) -> Atom:
    """One atom with its label, after the rules that are code's: evidence, tolerance, strictness, no references."""
    label: AtomVerdict | None = collected.label("atoms", atom.id)
    if label is None:
        reason = collected.reason("atoms", atom.id)
        return Atom(id=atom.id, text=atom.text, label="unjudged", reason=reason, causal_of=causal_of)
    final, flags = _tolerated(label)
    if final in ("correct", "wrong") and not references:
        final, flags = "undetermined", [*flags, "no_references"]
    if strict and label.source == "own_knowledge" and final in ("correct", "wrong"):
        final, flags = "undetermined", [*flags, "own_knowledge_ignored"]
    if final in ("correct", "wrong") and atom.id in collected.unverified.get("atoms", ()):
        flags.append("evidence_unverified")
    return Atom(
        id=atom.id,
        text=atom.text,
        label=final,
        level=getattr(label, "level", None),
        level_reason=getattr(label, "level_reason", ""),
        reason=label.reason,
        evidence=evidence_of(label, references) if final in ("correct", "wrong") else None,
        causal_of=causal_of,
        flags=tuple(flags),
    )


def _tolerated(label: AtomVerdict) -> tuple[AtomLabel, list[str]]:
    """Where judge and code can both compare two values, code's arithmetic stands."""
    difference = label.difference
    if difference is None or label.label not in ("correct", "wrong") or difference.kind == "political_date":
        return label.label, []
    agree = quantities_agree if difference.kind == "quantity" else dates_agree
    agrees = agree(difference.claimed, difference.stated)
    if agrees is True and label.label == "wrong":
        return "correct", ["within_tolerance"]
    if agrees is False and label.label == "correct":
        return "wrong", ["beyond_tolerance"]
    return label.label, []


def evidence_of(label: AtomVerdict, references: Sequence[str]) -> Evidence:
    quote = label.quote or ""
    at = find_quote(references, quote, label.reference) if quote else None
    return Evidence(
        reference=at if at is not None else label.reference,
        quote=quote,
        verified=at is not None,
        source=label.source or ("reference" if at is not None else "inference"),
    )
