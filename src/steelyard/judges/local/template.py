"""The questions put to a local model: Markdown files, with examples if there are any, the sample last.

What many questions share comes first, because the model reads a common beginning only once: the instruction, then the
passages, then the claim.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from steelyard.errors import PromptError

Message = dict[str, str]

HEADER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
MARK = re.compile(r"^<!-- (user|reply|sample) -->[ \t]*$", re.MULTILINE)
PLACEHOLDER = re.compile(r"\$\$\$(\w+)\$\$\$")
ROLES = {"user": "user", "reply": "assistant"}
# What the marks of chat templates are made of: a judged text that held one could put words into our mouth.
BRACKETS = str.maketrans("<>", "＜＞")
INSTRUCTION = re.compile(r"\[(/?INST)\]", re.IGNORECASE)
SPACE = re.compile(r"\s+")


class Template(NamedTuple):
    """One question, read from its file."""

    task: str
    language: str
    version: int
    labels: tuple[str, ...]
    beginning: tuple[tuple[str, str], ...]
    sample: str
    sha256: str

    def messages(self, values: Mapping[str, str]) -> list[Message]:
        """The chat that asks it of these values."""
        asked = PLACEHOLDER.sub(lambda match: harmless(values[match[1]]), self.sample)
        return [*({"role": role, "content": text} for role, text in self.beginning), {"role": "user", "content": asked}]


def harmless(text: str) -> str:
    """Judged text on one line without anything that a chat template would take for the end of a turn."""
    readable = text.encode("utf-8", "replace").decode().translate(BRACKETS)
    return SPACE.sub(" ", INSTRUCTION.sub(r"(\1)", readable)).strip()


def parsed(text: str, source: str) -> Template:
    """The template in a file's text."""
    text = text.replace("\r\n", "\n")
    header = HEADER.match(text)
    fields = dict(line.split(": ", 1) for line in header[1].splitlines()) if header else {}
    if not header or not {"task", "language", "version", "labels"} <= fields.keys():
        raise PromptError(f"{source}: must begin with a header that gives task, language, version and labels")
    first, *rest = MARK.split(text[header.end() :])
    turns = list(zip(rest[::2], (part.strip() for part in rest[1::2]), strict=True))
    if [kind for kind, _ in turns].count("sample") != 1 or turns[-1][0] != "sample":
        raise PromptError(f"{source}: must end with its one <!-- sample --> part")
    return Template(
        task=fields["task"],
        language=fields["language"],
        version=int(fields["version"]),
        labels=tuple(fields["labels"].split()),
        beginning=(("system", first.strip()), *((ROLES[kind], part) for kind, part in turns[:-1])),
        sample=turns[-1][1],
        sha256=hashlib.sha256(text.encode()).hexdigest(),
    )


@cache
def template(task: str, language: Literal["zh", "en"]) -> Template:
    """A shipped question by its name: `support`, `relevance` …"""
    name = f"{task}.{language}.md"
    return parsed((files("steelyard.judges.local") / "prompts" / name).read_text("utf-8"), name)
