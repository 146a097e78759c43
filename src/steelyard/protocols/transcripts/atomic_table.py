"""The columns an `atomic` table may have, and what stands in their cells."""

from __future__ import annotations

from steelyard.protocols.transcripts.atomic_lines import (
    LABELS,
    OPEN,
    Judgement,
    LevelNote,
    level_of,
    read_accuracy,
    read_need,
)
from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.protocols.transcripts.lines import SIGNS, unescape
from steelyard.protocols.transcripts.tables import TableRow
from steelyard.records import AtomLabel

ATOM = r"原子(?:信息|资讯|讯息|事实)"
ATOM_TITLE = FormPattern(rf"(?:{ATOM})(?:内容)?|atom|atomic\s(?:information|fact|claim)|claim")
COLUMNS = {
    "id": FormPattern(rf"(?:{ATOM})?(?:编号|序号)|#|no\.?|id|number"),
    "text": FormPattern(rf"(?:{ATOM})(?:内容)?|内容|信息|atom|atomic\s(?:information|fact|claim)|claim|statement|fact"),
    "level": FormPattern(r"(?:相关性)?(?:等级|级别)(?:划分)?|相关性|(?:relevance\s)?level|relevance"),
    "level_reason": FormPattern(r"(?:等级|划分|等级划分|相关性)(?:的)?理由|level\sreason|relevance\sreason"),
    "need": FormPattern(
        r"是否(?:需要|需|要)?(?:进行)?(?:事实性?)?(?:判断|核查|评估)|(?:factual|needs?\scheck(?:ing)?)\??"
    ),
    "accuracy": FormPattern(
        r"准确性(?:评估|判断|评价)?(?:结果)?|(?:判断|评估)?结[果论]|判定|判断"
        r"|accuracy(?:\s(?:assessment|label))?|label|verdict|result|judge?ment"
    ),
    "score": FormPattern(r"(?:准确性)?(?:打分|得分|评分|分数)|(?:accuracy\s)?score"),
    "reason": FormPattern(r"(?:准确性|评估|判断)?(?:理由|原因|依据|说明)|reason(?:ing)?|explanation|evidence"),
}
ID = FormPattern(r"\D{0,12}(\d{1,9})\D{0,3}")
LEVEL = FormPattern(r"(?:相关性)?(?:等级|(?:relevance\s)?level)?\s?[【\[（(]?\s?([1-3一二三])\s?[】\]）)]?\s?级?")
SCORE = FormPattern(r"(?:打分|得分|score)?[:：]?\s?[【\[〖（({]{0,2}\s?(-?\d{1,4})\s?[】\]〗）)}]{0,2}\s?分?")
NOTHING = FormPattern(r"[-—–/]{0,4}|无|n/?a|none")
EXEMPT = FormPattern(
    r"(?:不需要|无需|不用|无须|不)(?:进行)?(?:准确性|事实性?)?(?:判断|评估|核查|打分)?|exempt|not\s(?:needed|required|applicable)"
)


def id_of(cell: str) -> int | None:
    match = ID.fullmatch(cell)
    return int(match.word(1)) if match else None


def note_of(row: TableRow, judges: bool) -> LevelNote:
    """The level of a row; its one reason belongs to the level where the table does not judge."""
    match = LEVEL.fullmatch(row["level"])
    level = level_of(match.word(1)) if match else None
    reason = row["level_reason"] or ("" if judges else row["reason"])
    return LevelNote(level, unescape(reason), readable=level is not None or row["level"] == OPEN)


def judgement_of(row: TableRow) -> Judgement:
    """What the cells of a row say: exempt by its own column, then the score, then the word."""
    reason = unescape(row["reason"])
    if row["need"] and (exempt := read_need(row["need"])):
        scored = bool(SCORE.fullmatch(row["score"]) or SCORE.fullmatch(row["accuracy"]))
        return Judgement("exempt", reason or exempt.reason, ("score_after_exempt",) if scored else ())
    said, odd = _read_cell(row["accuracy"])
    score, odd_score = _read_cell(row["score"])
    if score is None or said is None:
        label, flags = (said, odd) if score is None else (score, odd_score)
        if label is None:
            return Judgement("unjudged", reason, ("score_missing",))
        return Judgement(label, reason, flags)
    if row.has("score") and row["score"] and score != said:
        known = score != "unjudged" and said not in ("unjudged", "exempt")
        return Judgement(score, reason, ("prose_contradicts_score",) if known else odd_score or odd)
    # A score beside the word means that nothing was inferred.
    return Judgement(score, reason, odd_score)


def _read_cell(cell: str) -> tuple[AtomLabel | None, tuple[str, ...]]:
    """A label by its number, or by the word the cell begins with; None where the cell is empty."""
    cell = cell.lstrip(SIGNS)
    if NOTHING.fullmatch(cell):
        return None, ()
    if EXEMPT.fullmatch(cell):
        return "exempt", ()
    if score := SCORE.fullmatch(cell):
        label = LABELS.get(score.word(1))
        return (label, ()) if label else ("unjudged", ("score_out_of_range",))
    said = read_accuracy(cell)
    return said.label, tuple(flag for flag in said.flags if flag != "label_inferred")
