"""The questions put to a local model: Markdown files with an instruction and, after it, the sample.

What many questions share comes first, because the model reads a common beginning only once: the instruction, then the
passages, then the claim.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Literal, NamedTuple

from steelyard.errors import PromptError

Message = dict[str, str]

SAMPLE = "\n<!-- sample -->\n"
PLACEHOLDER = re.compile(r"\$\$\$(\w+)\$\$\$")
# What the marks of chat templates are made of: a judged text that held one could put words into our mouth.
BRACKETS = str.maketrans("<>", "＜＞")
INSTRUCTION = re.compile(r"\[(/?INST)\]", re.IGNORECASE)
SPACE = re.compile(r"\s+")


class Template(NamedTuple):
    """One question, read from its file."""

    version: int
    labels: tuple[str, ...]
    instruction: str
    sample: str

    def messages(self, values: Mapping[str, str]) -> list[Message]:
        """The chat that asks it of these values. A line whose value is empty is left out."""
        lines = (line for line in self.sample.split("\n") if all(values[name] for name in PLACEHOLDER.findall(line)))
        asked = PLACEHOLDER.sub(lambda match: harmless(values[match[1]]), "\n".join(lines))
        return [{"role": "system", "content": self.instruction}, {"role": "user", "content": asked}]


def harmless(text: str) -> str:
    """Judged text on one line without anything that a chat template would take for the end of a turn."""
    readable = text.encode("utf-8", "replace").decode().translate(BRACKETS)
    return SPACE.sub(" ", INSTRUCTION.sub(r"(\1)", readable)).strip()


def parsed(text: str, source: str) -> Template:
    """The template in a file's text."""
    _, opens, rest = ("\n" + text.replace("\r\n", "\n")).partition("\n---\n")
    header, closes, body = rest.partition("\n---\n")
    instruction, mark, sample = body.partition(SAMPLE)
    fields = dict(line.split(": ", 1) for line in header.splitlines() if ": " in line)
    if not (opens and closes and mark) or not {"version", "labels"} <= fields.keys():
        raise PromptError(f"{source}: must have a header with version and labels, and a <!-- sample --> part")
    return Template(int(fields["version"]), tuple(fields["labels"].split()), instruction.strip(), sample.strip())


@cache
def template(task: str, language: Literal["zh", "en"]) -> Template:
    """A shipped question by its name: `support` or `compliance`."""
    name = f"{task}.{language}.md"
    return parsed((files("steelyard.judges.local") / "prompts" / name).read_text("utf-8"), name)
