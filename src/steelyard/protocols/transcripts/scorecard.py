"""The transcript of `scorecard`. The seed has tables but no transcript; this one keeps its four sections and words.

Every item stands on a numbered line, its label on the line below; ratio and score end the section.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from steelyard.protocols.counts import ROWS, scorecard_scores, shallow
from steelyard.protocols.scoring import Number, band_of_score
from steelyard.protocols.transcripts.forms import word_of
from steelyard.protocols.transcripts.lines import (
    TRADITIONAL,
    Reading,
    cause_line,
    difference_line,
    escape,
    evidence_line,
    flags_line,
    lines_of,
    with_flags,
)
from steelyard.protocols.transcripts.scorecard_reader import (
    DEPTHS,
    DERIVED,
    OPEN,
    SECTIONS,
    WORDS,
    ItemEntry,
    ScorecardReader,
)
from steelyard.protocols.transcripts.tables import readers_of
from steelyard.records import AnyItem, Atom, Evidence, KeyPoint, Sentence, Verdict
from steelyard.text.wording import band_description

# --- writing ---------------------------------------------------------------------------------------


def render(verdict: Verdict) -> str:
    scores = _scores(verdict.items, verdict.flags)
    out: list[str] = []
    for metric, section in SECTIONS.items():
        out += [f"## {section.heading}", ""]
        for item in verdict.items:
            out += _item_lines(metric, item)
        out += [*_totals(metric, verdict.items, scores), ""]
    if summary := verdict.notes.get("summary"):
        out += [f"總結：{escape(str(summary))}"]
    if verdict.flags:
        out += [flags_line(verdict.flags, TRADITIONAL)]
    return "\n".join(out).rstrip("\n") + "\n"


def _scores(items: Sequence[AnyItem], flags: Sequence[str]) -> dict[str, Number]:
    return scorecard_scores(items, empty_answer="empty_answer" in flags, asked="no_question" not in flags)


def _item_lines(metric: str, item: AnyItem) -> Iterator[str]:
    label = ROWS[metric].read(item)
    if label is None:
        return
    word = SECTIONS[metric].labels.get(label, OPEN)
    depth = DEPTHS[item.depth] if isinstance(item, KeyPoint) and item.depth else ""
    derived = DERIVED if isinstance(item, KeyPoint) and item.keypoints_source == "derived" else ""
    yield f"{item.id}. {escape(item.text)}"
    yield f"   判定：【{word}】" + (f"，深度：【{depth}】" if depth else "") + derived
    # A sentence stands in two sections; what belongs to it as a whole is said in the second.
    if metric == "relevance":
        return
    if item.reason:
        yield f"   理由：{escape(item.reason)}"
    evidence = getattr(item, "evidence", None)
    if isinstance(evidence, Evidence):
        yield f"   {evidence_line(evidence, TRADITIONAL)}"
    if isinstance(item, Atom) and item.causal_of is not None:
        yield f"   {cause_line(item.causal_of).translate(TRADITIONAL)}"
    if isinstance(item, Atom) and item.difference is not None:
        yield f"   {difference_line(item.difference, traditional=True)}"
    if item.flags:
        yield f"   {flags_line(item.flags, TRADITIONAL)}"


def _totals(metric: str, items: Sequence[AnyItem], scores: Mapping[str, Number]) -> Iterator[str]:
    value = ROWS[metric].ratio(items)
    yield f"{SECTIONS[metric].ratio} = {'不適用' if value is None else value}"
    score = scores[metric]
    if score is None:
        yield "分數：不適用"
        return
    band = band_of_score(int(score))
    cap = "，說明淺薄，上限 89 分" if metric == "completeness" and shallow(items) else ""
    yield f"分數：{score} 分（{10 * band} - {100 if band == 9 else 10 * band + 9} 分{cap}）"
    if metric == "faithfulness":
        yield f"計入部分支撐的分數：{scores['faithfulness_soft']} 分"
    yield f"等級說明：{band_description(metric, band, 'zh-Hant')}"


# --- reading ---------------------------------------------------------------------------------------


def parse(text: str) -> list[Reading]:
    return [_reading(reader) for reader in readers_of(lines_of(text), ScorecardReader)]


def _reading(found: ScorecardReader) -> Reading:
    items = tuple(
        build(found, id, text)
        for kind, build in (("sentence", _sentence), ("key_point", _key_point), ("atom", _atom))
        for id, text in found.lists[kind].texts.items()
    )
    scores = _scores(items, found.flags)
    stated, odd = found.totals.beside(scores)
    notes: dict[str, Any] = {}
    if unmatched := found.unmatched + found.broken_rows:
        odd, notes["unmatched"] = (*odd, "unmatched_blocks"), unmatched
    if found.misnumbered:
        notes["misnumbered"] = found.misnumbered
    if found.summary is not None:
        notes["summary"] = found.summary
    return Reading(
        items,
        scores,
        with_flags(found.flags, *odd),
        notes,
        stated,
        # Only an empty answer has nothing to label.
        read_anything=bool(items) or "empty_answer" in found.flags,
        incomplete=found.broken_rows > 0 or found.misnumbered > 0,
        suspect=found.suspect,
    )


def _label(metric: str, entry: ItemEntry) -> tuple[Any, tuple[str, ...]]:
    """The label a section gives; where it gives none, two, or an unknown one, that is said instead."""
    labels = {WORDS[metric].get(word_of(word)) for word in entry.words}
    if not labels:
        return "unjudged", ("label_missing",)
    if len(labels) > 1:
        return "unjudged", ("blocks_conflict",)
    label = labels.pop()
    return (label, ()) if label else ("unjudged", ("label_unknown",))


def _flags(found: ScorecardReader, kind: str, id: int, entry: ItemEntry, *odd: str) -> tuple[str, ...]:
    return with_flags(entry.flags, *found.lists[kind].flags.get(id, ()), *entry.odd, *odd)


def _why(entry: ItemEntry, odd: tuple[str, ...]) -> str:
    return entry.reason if entry.reason is not None else (odd[0] if odd else "")


def _sentence(found: ScorecardReader, id: int, text: str) -> AnyItem:
    relevance = found.entries["relevance"].get(id, ItemEntry())
    entry = found.entries["faithfulness"].get(id, ItemEntry())
    on_topic, odd_topic = _label("relevance", relevance)
    if "no_question" in found.flags and not relevance.words:
        on_topic, odd_topic = None, ()
    support, odd_support = _label("faithfulness", entry)
    odd = (*odd_topic, *odd_support)
    return Sentence(
        id=id,
        text=text,
        on_topic=on_topic,
        support=support,
        reason=_why(entry if entry.reason is not None else relevance, odd),
        evidence=entry.evidence,
        flags=_flags(found, "sentence", id, entry, *relevance.odd, *odd),
    )


def _key_point(found: ScorecardReader, id: int, text: str) -> AnyItem:
    entry = found.entries["completeness"][id]
    label, odd = _label("completeness", entry)
    return KeyPoint(
        id=id,
        text=text,
        label=label,
        depth=entry.depth,
        keypoints_source="derived" if entry.derived else "given",
        reason=_why(entry, odd),
        flags=_flags(found, "key_point", id, entry, *odd),
    )


def _atom(found: ScorecardReader, id: int, text: str) -> AnyItem:
    entry = found.entries["accuracy"][id]
    label, odd = _label("accuracy", entry)
    return Atom(
        id=id,
        text=text,
        label=label,
        reason=_why(entry, odd),
        evidence=entry.evidence,
        causal_of=entry.causal_of,
        difference=entry.difference,
        flags=_flags(found, "atom", id, entry, *odd),
    )
