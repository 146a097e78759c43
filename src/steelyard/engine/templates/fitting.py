"""What a transcript says, checked against its sample: quotes looked up, values compared, given items found
again, and the scores counted from what then stands.

`found` is the transcript as its reader sees it, `blank` the verdict that the protocol gives where nobody answers: it
has the items that are known beforehand, and what code decides without a judge.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from steelyard.protocols.atoms import Rules, atom_item, evidence_of, is_quoted, uncovered
from steelyard.protocols.common import MISSING, Collected, has_question, has_text, is_unjudged
from steelyard.protocols.counts import atomic_scores, dialogue_scores, grounded_scores, scorecard_scores, shallow
from steelyard.protocols.dialogue import RESULTS, split_type
from steelyard.protocols.rules import rule_on
from steelyard.protocols.scoring import composite
from steelyard.protocols.transcripts.matching import ListedItems
from steelyard.records import (
    AnyItem,
    Atom,
    Check,
    ComplianceLabel,
    Criterion,
    Evidence,
    KeyPoint,
    Numbered,
    Scores,
    Sentence,
    Verdict,
)
from steelyard.tasks import AtomVerdict, Difference, SplitAtom
from steelyard.text import contains_quote, normalise, sentences

UNVERIFIED, NO_QUOTE = "evidence_unverified", "no_quote"
QUOTATION = re.compile(r"“([^“”]+)”|「([^「」]+)」|『([^『』]+)』|\"([^\"]+)\"|‘([^‘’]+)’|'([^']+)'")

# Each is looked up in every passage.
MOST_QUOTATIONS = 20


class Fitted(NamedTuple):
    """Items and scores of a verdict; `open` names what else the transcript should have said."""

    items: tuple[AnyItem, ...]
    scores: Scores
    flags: tuple[str, ...] = ()
    notes: Mapping[str, Any] = {}
    open: tuple[str, ...] = ()


Fit = Callable[[Verdict, Verdict, Any, Any], Fitted]


def quote_in(reason: str, references: Sequence[str]) -> str | None:
    """The quotation in a reason that stands in a passage: prompts that ask for no evidence often get it there."""
    found = (next(filter(None, match.groups())) for match in islice(QUOTATION.finditer(reason), MOST_QUOTATIONS))
    return next((quote for quote in found if is_quoted(quote, None, references)), None)


def _with(item: Any, *flags: str, **update: Any) -> Any:
    return item.model_copy(update={**update, "flags": tuple(dict.fromkeys((*item.flags, *flags)))})


# --- atoms -----------------------------------------------------------------------------------------


def fit_atom(atom: Atom, references: Sequence[str], rules: Rules) -> Atom:
    """The atom after the rules that code applies: evidence, tolerance, strictness, no references."""
    level = {"level": atom.level, "level_reason": atom.level_reason} if rules.has_question else {"level": None}
    if atom.label == "unjudged":
        return atom.model_copy(update=level)
    claimed = atom.evidence or Evidence(quote=quote_in(atom.reason, references) or "")
    source = atom.evidence.source if atom.evidence else None
    quote = claimed.quote or None
    label = AtomVerdict(
        id=atom.id,
        quote=quote,
        reason=atom.reason,
        label=atom.label,
        source=source,
        difference=Difference(**atom.difference.model_dump()) if atom.difference else None,
    )
    rests_on_passages = atom.label in ("correct", "wrong") and source != "own_knowledge" and has_text(references)
    proven = not rests_on_passages or is_quoted(quote, claimed.reference, references)
    collected = Collected(labels={"atoms": {atom.id: label}})
    item = atom_item(Numbered(id=atom.id, text=atom.text), collected, references, rules, atom.causal_of)
    odd = () if proven else (UNVERIFIED,) if quote else (NO_QUOTE,)
    return atom.model_copy(
        update={
            **level,
            "label": item.label,
            "evidence": item.evidence if quote or source else None,
            "difference": item.difference,
            "flags": tuple(dict.fromkeys((*atom.flags, *item.flags, *odd))),
        }
    )


def fit_atomic(found: Verdict, blank: Verdict, sample: Any, options: Any) -> Fitted:
    rules = Rules(options.strict, options.tolerance, has_question(sample))
    atoms = tuple(fit_atom(item, sample.references, rules) for item in found.items if isinstance(item, Atom))
    said = found.scores.get("fallback")
    fallback = int(said) if said is not None else None
    left_out = uncovered(sample.answer, (SplitAtom(id=atom.id, text=atom.text) for atom in atoms))
    open_ = () if fallback is not None else ("fallback",)
    flags = tuple(f"unjudged:{name}:{MISSING}" for name in open_)
    if left_out and (atoms or not fallback):
        return Fitted(
            atoms, atomic_scores(atoms, fallback), (*flags, "answer_not_covered"), {"uncovered": left_out}, open_
        )
    return Fitted(atoms, atomic_scores(atoms, fallback), flags, {}, open_)


# --- checks ----------------------------------------------------------------------------------------


def fit_grounded(found: Verdict, blank: Verdict, sample: Any, options: Any) -> Fitted:
    said = {(item.group, item.name): item for item in found.items if isinstance(item, Check)}
    checks = tuple(_check(item, said.get((item.group, item.name))) for item in blank.items if isinstance(item, Check))
    declined = any(check.name == "not_fallback" and check.label == 0 for check in checks)
    own_answer = {name: found.notes[name] for name in ("own_answer",) if name in found.notes}
    return Fitted(checks, grounded_scores(checks), ("fallback",) if declined else (), own_answer)


def _check(known: Check, said: Check | None) -> Check:
    # What code decided beforehand, such as that nothing comes from an empty background, stands.
    if known.label != "unjudged" or said is None:
        return known
    return said.model_copy(update={"id": known.id, "text": known.text})


# --- sentences and key points ----------------------------------------------------------------------


def fit_scorecard(found: Verdict, blank: Verdict, sample: Any, options: Any) -> Fitted:
    rules = Rules(options.strict, options.tolerance)
    judged, invented = _sentences([item for item in found.items if isinstance(item, Sentence)], sample)
    points, more = _key_points(
        [item for item in found.items if isinstance(item, KeyPoint)],
        [item for item in blank.items if isinstance(item, KeyPoint)],
        given=sample.key_points is not None,
    )
    atoms = [fit_atom(item, sample.references, rules) for item in found.items if isinstance(item, Atom)]
    items: tuple[AnyItem, ...] = (*judged, *points, *(atom.model_copy(update={"level": None}) for atom in atoms))
    scores = scorecard_scores(items, asked=has_question(sample))
    if options.weights:
        scores["composite"] = composite(scores, options.weights)
    notes: dict[str, Any] = {name: found.notes[name] for name in ("summary",) if name in found.notes}
    if points:
        notes["keypoints_source"] = points[0].keypoints_source
    if invented + more:
        notes["invented"] = invented + more
    flags = [*(["shallow_cap"] if shallow(items) else []), *(["invented_items"] if invented + more else [])]
    return Fitted(items, scores, tuple(flags), notes)


def _sentences(said: Sequence[Sentence], sample: Any) -> tuple[list[Sentence], int]:
    """The judge's sentences that the answer has, then those of the answer that the judge left out; and how many it made
    up. A judge may cut the answer in other places than code does."""
    answer = normalise(sample.answer)
    own = [sentence for sentence in said if normalise(sentence.text) in answer]
    read = "\n".join(normalise(sentence.text) for sentence in own)
    kept = [_sentence(sentence, sample) for sentence in own]
    # One that was cut in pieces is read where its pieces are.
    left_out = [
        text
        for text in sentences(sample.answer)
        if (key := normalise(text)) and key not in read and not any(normalise(one.text) in key for one in own)
    ]
    free = max((sentence.id for sentence in kept), default=0)
    topic = "unjudged" if has_question(sample) else None
    kept += [
        Sentence(id=id, text=text, on_topic=topic, support="unjudged", reason=MISSING)
        for id, text in enumerate(left_out, start=free + 1)
    ]
    return kept, len(said) - len(own)


def _sentence(sentence: Sentence, sample: Any) -> Sentence:
    topic = {} if has_question(sample) else {"on_topic": None}
    claims = sentence.support in ("supported", "partial")
    if sentence.support not in ("no_claim", "unjudged") and not has_text(sample.references):
        return _with(sentence, "no_references", support="unsupported", evidence=None, **topic)  # type: ignore[no-any-return]
    if not claims:
        return sentence.model_copy(update={"evidence": None, **topic})
    quote = sentence.evidence.quote if sentence.evidence else quote_in(sentence.reason, sample.references)
    evidence = evidence_of(quote, sentence.evidence.reference if sentence.evidence else None, sample.references)
    odd = () if evidence.verified else (UNVERIFIED,) if quote else (NO_QUOTE,)
    return _with(sentence, *odd, evidence=evidence if quote else None, **topic)  # type: ignore[no-any-return]


def _key_points(said: Sequence[KeyPoint], wanted: Sequence[KeyPoint], *, given: bool) -> tuple[list[KeyPoint], int]:
    """The given key points with what is said of each, and how many the judge made up; all that it drew up itself where
    none are given."""
    if not given:
        return [point.model_copy(update={"keypoints_source": "derived"}) for point in said], 0
    listed = ListedItems()
    for point in wanted:
        listed.add(point.id, point.text)
    found: dict[int, KeyPoint] = {}
    for point in said:
        if match := listed.find(point.id, point.text):
            found.setdefault(match.id, _with(point, *match.flags))
    kept = [
        found[one.id].model_copy(update={"id": one.id, "text": one.text, "keypoints_source": "given"})
        if one.id in found
        else one.model_copy(update={"reason": MISSING})
        for one in wanted
    ]
    return kept, len(said) - len(found)


# --- criteria --------------------------------------------------------------------------------------


def fit_dialogue(found: Verdict, blank: Verdict, sample: Any, options: Any) -> Fitted:
    wanted = [item for item in blank.items if isinstance(item, Criterion)]
    listed: dict[int, ListedItems] = {}
    for criterion in wanted:
        listed.setdefault(criterion.turn, ListedItems()).add(criterion.id, criterion.text)
    said: dict[tuple[int, int], Criterion] = {}
    given = [item for item in found.items if isinstance(item, Criterion)]
    for criterion in given:
        turn = listed.get(criterion.turn)
        if turn and (match := turn.find(criterion.id, criterion.text)):
            said.setdefault((criterion.turn, match.id), _with(criterion, *match.flags))
    criteria = tuple(_criterion(one, said.get((one.turn, one.id)), sample, options) for one in wanted)
    invented = len(given) - len(said)
    flags, notes = (("invented_items",), {"invented": invented}) if invented else ((), {})
    return Fitted(criteria, dialogue_scores(criteria), flags, {"turns": len(sample.turns), **notes})


def _criterion(known: Criterion, said: Criterion | None, sample: Any, options: Any) -> Criterion:
    if said is None:
        return known.model_copy(update={"reason": MISSING})
    verified = bool(said.quote) and contains_quote(sample.system_prompt, said.quote)
    odd = () if verified or said.validity != "valid" else (UNVERIFIED,) if said.quote else (NO_QUOTE,)
    item = _with(
        said,
        *odd,
        id=known.id,
        text=known.text,
        type=known.type,
        quote_verified=verified,
        decided_by="judge",
    )
    ruling = rule_on(split_type(known.text)[0], sample.turns[known.turn - 1].answer) if options.rules else None
    if ruling and said.validity == "valid":
        label: ComplianceLabel = "satisfied" if ruling.satisfied else "violated"
        item = _with(item, label=label, result=RESULTS[label], reason=ruling.reason, decided_by="rule")
    return item  # type: ignore[no-any-return]


FITS: Mapping[str, Fit] = {
    "atomic": fit_atomic,
    "grounded": fit_grounded,
    "scorecard": fit_scorecard,
    "dialogue": fit_dialogue,
}


def unlabelled(items: Iterable[AnyItem]) -> list[AnyItem]:
    return [item for item in items if is_unjudged(item)]
