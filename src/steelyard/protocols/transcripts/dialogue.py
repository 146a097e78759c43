"""The two reports of `dialogue`: report 1 is the seed's JSON, report 2 its Markdown. Both come from one verdict.

Report 1 holds content and result only; report 2 all five fields. A text may hold either or both.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from steelyard.protocols.counts import dialogue_scores
from steelyard.protocols.transcripts.dialogue_json import DialogueReport, DialogueRow, PlacedReport, find_reports
from steelyard.protocols.transcripts.dialogue_markdown import (
    LABEL_OF,
    OPEN,
    RESULTS,
    DialogueReader,
    criterion_of,
    render_markdown,
    rounds_of,
    type_of,
)
from steelyard.protocols.transcripts.forms import word_of
from steelyard.protocols.transcripts.lines import FORGERY, Reading, after_thinking, lines_of, with_flags
from steelyard.protocols.transcripts.matching import ListedItems
from steelyard.protocols.transcripts.tables import readers_of
from steelyard.records import Criterion, Validity, Verdict

__all__ = ["parse", "render_json", "render_markdown"]


def render_json(verdict: Verdict) -> str:
    report = [
        {
            "round": turn,
            "criteria_results": [
                {"criterion_id": c.id, "content": c.text, "result": RESULTS.get(c.label, OPEN)} for c in criteria
            ],
        }
        for turn, criteria in rounds_of(verdict).items()
    ]
    text = json.dumps({"evaluation_report": report}, ensure_ascii=False, indent=2)
    # A lone surrogate cannot be written as UTF-8, but JSON has a spelling for it.
    return re.sub("[\ud800-\udfff]", lambda match: f"\\u{ord(match.group()):04x}", text) + "\n"


# --- both reports ----------------------------------------------------------------------------------


@dataclass
class ReportPair:
    """One transcript: report 1, report 2, or both."""

    report: DialogueReport | None = None
    reader: DialogueReader | None = None

    def takes(self, part: DialogueReport | DialogueReader) -> bool:
        """Whether this report belongs to the same dialogue as the other one."""
        if isinstance(part, DialogueReader):
            return self.reader is None and (self.report is None or _share(part, self.report))
        return self.report is None and (self.reader is None or _share(self.reader, part))


def _share(reader: DialogueReader, report: DialogueReport) -> bool:
    """Whether the two reports speak of the same criteria; one that has none is no stranger."""
    listed: dict[int, ListedItems] = {}
    for entry in reader.entries:
        listed.setdefault(entry.turn, ListedItems()).add(entry.id, entry.text)
    known = any(row.turn in listed and listed[row.turn].find(row.id, row.content) for row in report.rows)
    return known or not listed or not report.rows


def parse(text: str) -> list[Reading]:
    plain = after_thinking(text)
    own_line = any(reader.entries or reader.flags for reader in readers_of(lines_of(plain), DialogueReader))
    found = find_reports(plain, own_line=own_line)
    interrupted = own_line and _is_interrupted(plain, found)
    pairs = [ReportPair()]
    for part in _parts(plain, [] if interrupted else found):
        if isinstance(part, DialogueReader):
            part.suspect = part.suspect or interrupted
        if isinstance(part, DialogueReport) and part == pairs[-1].report:
            # The same report again says nothing new.
            continue
        if not pairs[-1].takes(part):
            pairs.append(ReportPair())
        if isinstance(part, DialogueReader):
            pairs[-1].reader = part
        else:
            pairs[-1].report = part
    return [_reading(pair.reader or DialogueReader(), pair.report) for pair in pairs]


def _is_interrupted(text: str, found: list[PlacedReport]) -> bool:
    """Whether a report 1 stands inside a report 2, which goes on behind it: a field of that one quotes it."""
    start, reader = 0, DialogueReader()
    for report, following in zip(found, [*found[1:], None], strict=False):
        between = [one for one in readers_of(lines_of(text[start : report.start]), DialogueReader) if one.entries]
        reader = between[-1] if between else reader
        rest = lines_of(text[report.end : following.start if following else len(text)])
        if reader.entries and (not reader.finished or reader.goes_on(rest)):
            return True
        start = report.end
    return False


def _parts(text: str, found: list[PlacedReport]) -> Iterator[DialogueReport | DialogueReader]:
    """Both kinds of reports in the order of the text; what stands between them is passed over."""
    start = 0
    for report in (*found, None):
        between = text[start : report.start if report else len(text)]
        yield from (reader for reader in readers_of(lines_of(between), DialogueReader) if reader.rounds or reader.flags)
        if report:
            yield report.report
            start = report.end


def _reading(reader: DialogueReader, report: DialogueReport | None) -> Reading:
    detailed = _numbered(criterion_of(entry) for entry in reader.entries)
    brief = _numbered(_from_row(row) for row in report.rows) if report else []
    criteria = _merged(detailed, brief) if reader.entries and report else detailed or brief
    rounds = [*reader.rounds, *(report.rounds if report else [])]
    unread = reader.unread + (report.unread if report else 0)
    forged = report is not None and report.forged
    return Reading(
        tuple(criteria),
        dialogue_scores(criteria),
        with_flags(
            reader.flags,
            *(["json_repaired"] if report and report.repaired else []),
            *([FORGERY] if forged else []),
        ),
        {"turns": max(rounds, default=0)},
        # A report without criteria is a report; one whose criteria could not be read is not.
        read_anything=bool(criteria) or (not unread and (bool(rounds) or (report is not None and not report.repaired))),
        incomplete=forged,
        suspect=reader.suspect,
    )


def _from_row(row: DialogueRow) -> Criterion:
    label = LABEL_OF.get(word_of(row.result or "").strip("。."))
    validity: Validity = "unjudged"
    if label in RESULTS:
        validity = "invalid" if label == "undetermined" else "valid"
    flags = ("validity_inferred",) if label in RESULTS else () if label else ("result_unknown",)
    return Criterion(
        id=row.id,
        turn=row.turn,
        text=row.content,
        type=type_of(row.content),
        validity=validity,
        label=label or "unjudged",
        result=RESULTS.get(label) if label else None,
        reason="" if label else "result_unknown",
        flags=flags,
    )


def _numbered(criteria: Iterable[Criterion]) -> list[Criterion]:
    """Each criterion of a turn once, with a number of its own; two that contradict each other are not judged."""
    listed: dict[int, ListedItems] = {}
    found: dict[tuple[int, int], Criterion] = {}
    for criterion in criteria:
        turn = listed.setdefault(criterion.turn, ListedItems())
        id = turn.add(criterion.id, criterion.text)
        earlier = found.get((criterion.turn, id))
        if earlier is None:
            flags = with_flags(criterion.flags, *turn.flags.get(id, ()))
            found[criterion.turn, id] = criterion.model_copy(update={"id": id, "flags": flags})
        elif earlier.label != criterion.label:
            found[criterion.turn, id] = _unbelieved(earlier, "blocks_conflict")
    return list(found.values())


def _unbelieved(criterion: Criterion, flag: str) -> Criterion:
    update = {"label": "unjudged", "result": None, "flags": with_flags(criterion.flags, flag)}
    return criterion.model_copy(update=update)


def _merged(detailed: list[Criterion], brief: list[Criterion]) -> list[Criterion]:
    """Report 2 has more to say; report 1 must agree with it."""
    listed: dict[int, ListedItems] = {}
    for criterion in detailed:
        listed.setdefault(criterion.turn, ListedItems()).add(criterion.id, criterion.text)
    found = {(criterion.turn, criterion.id): criterion for criterion in detailed}
    unconfirmed = set(found)
    for row in brief:
        turn = listed.setdefault(row.turn, ListedItems())
        match = turn.find(row.id, row.text)
        if match is None:
            id = turn.add(row.id, row.text)
            flags = with_flags(row.flags, "one_report_only")
            found[row.turn, id] = row.model_copy(update={"id": id, "flags": flags})
            continue
        key = (row.turn, match.id)
        unconfirmed.discard(key)
        if found[key].label != row.label:
            found[key] = _unbelieved(found[key], "reports_differ")
    for key in unconfirmed:
        update = {"flags": with_flags(found[key].flags, "one_report_only")}
        found[key] = found[key].model_copy(update=update)
    return [found[key] for key in sorted(found)]
