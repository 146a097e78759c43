"""The transcript of `grounded`: 回答问题 → 相关性评价 → 真实性评价, with three totals in {{}}.

A check is known by its words, never by its number, and its score is the one its line ends with.
"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.protocols.counts import grounded_scores
from steelyard.protocols.grounded import CHECK
from steelyard.protocols.transcripts.grounded_reader import (
    IDS,
    KINDS,
    OPEN,
    PARTS,
    TITLES,
    CheckMention,
    GroundedReader,
    LineKind,
    heading_of,
    hidden,
)
from steelyard.protocols.transcripts.lines import (
    FENCE,
    THOUGHT,
    Reading,
    escape,
    escape_first,
    flags_line,
    lines_of,
    unescape,
    with_flags,
)
from steelyard.protocols.transcripts.tables import readers_of, rules_of
from steelyard.records import Check, Verdict

# --- writing ---------------------------------------------------------------------------------------


def render(verdict: Verdict) -> str:
    checks = [item for item in verdict.items if isinstance(item, Check)]
    totals = {name: "未知" if total is None else total for name, total in grounded_scores(checks).items()}
    out = ["## 回答问题：", *_body(str(verdict.notes.get("own_answer") or "")), ""]
    for group, title in TITLES.items():
        out.append(f"## {title}评价：")
        own = [check for check in checks if check.group == group]
        out += [line for number, check in enumerate(own, start=1) for line in _check_lines(number, check)]
        out += [f"总结：{title}得分: {{{{{totals[group]}}}}}", ""]
    out.append(f"综上，准确性得分: {{{{{totals['accuracy']}}}}}")
    if verdict.flags:
        out.append(flags_line(verdict.flags))
    return "\n".join(out) + "\n"


def _body(text: str) -> list[str]:
    """Several lines stay several lines; one that would open a section is disguised."""
    lines = [escape(line) for line in text.split("\n")] if text else []
    return [escape_first(line) if _is_structure(line) else line for line in lines]


def _is_structure(line: str) -> bool:
    return bool(heading_of(line) or FENCE.fullmatch(line) or line in THOUGHT or rules_of(line))


def _check_lines(number: int, check: Check) -> Iterator[str]:
    kind = KINDS[IDS[check.group, check.name] - 1]  # type: ignore[index]
    title = TITLES[kind.group]
    ending = OPEN if check.label == "unjudged" else f"，因此{title}得分为{check.label}。"
    yield f"({number}).{kind.words}：{escape(check.reason) if check.reason else ''}{ending}"
    if check.text != _default_text(check.name):
        yield hidden(f"    名称：{escape(check.text)}")
    for part in check.parts:
        yield hidden(f"    句子·{PARTS[part.label]}：{escape(part.text)}")
        if part.reason:
            yield hidden(f"    句子理由：{escape(part.reason)}")
    if check.flags:
        yield hidden(f"    {flags_line(check.flags)}")


def _default_text(name: str) -> str:
    return CHECK.names[name].in_language("zh-Hans")


# --- reading ---------------------------------------------------------------------------------------


def parse(text: str) -> list[Reading]:
    readers = readers_of(lines_of(text), GroundedReader)
    # Instructions have the headings of the form too, and rules in the place of judgements.
    return [_reading(reader) for reader in readers if reader.said or reader.totals.values] or [_reading(readers[0])]


def _reading(reader: GroundedReader) -> Reading:
    checks = tuple(_check(kind, reader.said.get((kind.group, kind.name), [])) for kind in KINDS)
    read_anything = bool(reader.said)
    scores = grounded_scores(checks) if read_anything else dict.fromkeys(grounded_scores(()))
    stated, odd = reader.totals.beside(scores)
    own_answer = "\n".join(reader.own_answer).strip("\n")
    return Reading(
        checks if read_anything or stated else (),
        scores,
        with_flags(reader.flags, *odd),
        {"own_answer": unescape(own_answer)} if own_answer else {},
        stated,
        read_anything,
        # A reason that names another check hands its own score to that one.
        suspect=reader.suspect or any(len(mentions) > 1 for mentions in reader.said.values()),
    )


def _check(kind: LineKind, mentions: list[CheckMention]) -> Check:
    readings = [said.read() for said in mentions]
    label, reason, flags = readings[0] if readings else ("unjudged", "", ("not_in_transcript",))
    if len({reading[0] for reading in readings}) > 1:
        label, flags = "unjudged", ("blocks_conflict",)
    first = mentions[0] if mentions else CheckMention([])
    return Check(
        id=IDS[kind.group, kind.name],
        name=kind.name,
        group=kind.group,
        text=_default_text(kind.name) if first.text is None else first.text,
        label=label,
        reason=reason or (flags[0] if flags else ""),
        parts=tuple(first.parts),
        flags=with_flags(first.flags, *flags),
    )
