"""60 dialogues whose answers follow their system prompt, with criteria that are all valid and all met.

A block is `== id`, then sections headed `>> system`, and for each turn `>> user`, `>> assistant`, `>> criteria`.
A criterion is a line `content | type`. What can be counted carries a check in braces behind it, such as
`{chars<=60}` or `{starts:Dispatch: & words<=34}`; the check is not part of the criterion. A file whose answer
fails a check is refused.
"""

from __future__ import annotations

import json
import operator
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from . import HERE, Block, Script, blocks

SECTION = re.compile(r"^>> (system|user|assistant|criteria)$", re.MULTILINE)
CRITERION = re.compile(r"(?P<content>.+ \| [^|{}]+?)(?: \{(?P<checks>.+)\})?")
COUNTED = re.compile(
    r"(?P<what>chars|words|sentences|lines|paragraphs|items|emoji)(?P<relation><=|>=|==)(?P<number>\d+)"
)
OCCURRENCES = re.compile(r"count:(?P<text>.+)==(?P<number>\d+)")
ITEM = re.compile(r"^(?:[-•・] |・|\d+[.)] )", re.MULTILINE)
EMOJI = re.compile("[\U0001f300-\U0001faff\u2600-\u27bf]")
# A full stop ends a sentence only before a space or the end: 8.40 and tolm-customs.example have none.
SENTENCE_END = re.compile(r"[。！？!?]+[”」’\"]?|\.[\"”]?(?=\s|$)")


class Criterion(NamedTuple):
    """As an evaluator words it, and what code can check of it."""

    text: str
    checks: tuple[str, ...]


class GoodTurn(NamedTuple):
    prompt: str
    answer: str
    criteria: tuple[Criterion, ...]


class GoodDialogue(NamedTuple):
    """A dialogue in which every criterion of every turn is met."""

    id: str
    script: Script
    system_prompt: str
    turns: tuple[GoodTurn, ...]


def good_dialogues(folder: Path = HERE) -> Iterator[GoodDialogue]:
    """All dialogues, script by script."""
    return (_read(block) for block in blocks("good_dialogues", folder))


def _read(block: Block) -> GoodDialogue:
    head, *parts = SECTION.split("\n".join(block.lines))
    names, texts = parts[::2], [text.strip() for text in parts[1::2]]
    turns = (len(names) - 1) // 3
    if head.strip() or not 1 <= turns <= 4 or names != ["system", *["user", "assistant", "criteria"] * turns]:
        raise block.error("needs one system section, then one to four times user, assistant, criteria")
    if not all(texts):
        raise block.error("a section is empty")
    system_prompt, *rest = texts
    read = tuple(
        GoodTurn(prompt, answer, tuple(_criterion(block, line, answer) for line in criteria.splitlines() if line))
        for prompt, answer, criteria in zip(rest[::3], rest[1::3], rest[2::3], strict=True)
    )
    return GoodDialogue(block.id, block.script, system_prompt, read)


def _criterion(block: Block, line: str, answer: str) -> Criterion:
    match = CRITERION.fullmatch(line)
    if not match:
        raise block.error(f"a criterion is `content | type`: {line!r}")
    checks = tuple(match["checks"].split(" & ")) if match["checks"] else ()
    for check in checks:
        try:
            met = holds(check, answer)
        except ValueError as error:
            raise block.error(str(error)) from error
        if not met:
            raise block.error(f"{match['content']!r}: {check!r} does not hold for {answer!r}")
    return Criterion(match["content"], checks)


def holds(check: str, answer: str) -> bool:
    """Whether the answer passes a check; an unknown check is an error."""
    if match := COUNTED.fullmatch(check):
        return RELATIONS[match["relation"]](COUNTS[match["what"]](answer), int(match["number"]))
    if match := OCCURRENCES.fullmatch(check):
        return answer.count(match["text"]) == int(match["number"])
    name, _, text = check.partition(":")
    if name not in TESTS or (name != "json" and not text):
        raise ValueError(f"unknown check {check!r}")
    return TESTS[name](answer, text)


def sentences(answer: str) -> int:
    return sum(bool(re.search(r"\w", part)) for part in SENTENCE_END.split(answer))


def _is_json_object(answer: str, _: str) -> bool:
    try:
        return isinstance(json.loads(answer), dict)
    except json.JSONDecodeError:
        return False


RELATIONS: dict[str, Callable[[int, int], bool]] = {"<=": operator.le, ">=": operator.ge, "==": operator.eq}
COUNTS: dict[str, Callable[[str], int]] = {
    # With punctuation, which makes an upper limit hold under every way of counting.
    "chars": lambda answer: len(re.sub(r"\s", "", answer)),
    "words": lambda answer: len(answer.split()),
    "sentences": sentences,
    "lines": lambda answer: sum(bool(line.strip()) for line in answer.splitlines()),
    "paragraphs": lambda answer: len(re.split(r"\n\s*\n", answer)),
    "items": lambda answer: len(ITEM.findall(answer)),
    "emoji": lambda answer: len(EMOJI.findall(answer)),
}
TESTS: dict[str, Callable[[str, str], bool]] = {
    "starts": lambda answer, text: answer.startswith(text),
    "ends": lambda answer, text: answer.endswith(text),
    "has": lambda answer, text: text in answer,
    "lacks": lambda answer, text: text.lower() not in answer.lower(),
    "not": lambda answer, text: not re.search(text, answer),
    "json": _is_json_object,
}
