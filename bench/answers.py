"""What the stub says: JSON that satisfies whatever the client asked for.

Steelyard and most peers send a JSON schema or a tool; a few only describe the wanted form, see prose.py.
One label in five is an unfavourable one, drawn from the sample and the item and from nothing else: values
differ from sample to sample, and asking again, in other words, gets the same ones.
"""

from __future__ import annotations

import json
import re
import zlib
from functools import cached_property, lru_cache
from typing import Any

from prose import SENTENCES, prompt_to_mend, prose_answer, quoted_schema

GOOD = ("yes", "Yes", "correct", "supported", "covered", "adequate", "from_background", "fully", "faithful", "relevant")
BAD = ("no", "No", "wrong", "unsupported", "missing", "outside", "unfaithful", "unrelated")
# Fields that would make a client do more than its usual work if they were filled in.
NULL = ("difference", "causal_of")
TEXTS = {"verdict": "yes", "question": "When did it come out and how long is its warranty?"}
WHOLE_NUMBERS = {"noncommittal": 0, "level": 1, "score": 3, "reference": 0}
BLOCK = r"<{name} [0-9a-f]+>\n(.*?)\n</{name} [0-9a-f]+>"
UNIT = re.compile(r"Unit-\d+")
# Steelyard's fences carry the code that a reply must send back.
FENCE = re.compile(r"<[a-z_]+(?: \d+)? ([0-9a-f]{12})>")


def text_of(request: dict[str, Any]) -> str:
    """All that the client wrote, as one text."""
    parts = []
    for message in request.get("messages", []):
        content = message.get("content") or ""
        if isinstance(content, list):
            content = "\n".join(part.get("text", "") for part in content)
        parts.append(content)
    return "\n".join(parts)


def answer_to(request: dict[str, Any], text: str) -> tuple[str, str | None]:
    """The content of the reply, and the name of the tool it calls, if any."""
    tools = request.get("tools")
    if tools and request.get("tool_choice") != "none":
        function = tools[0].get("function", tools[0])
        return _instance(function.get("parameters", {}), text), function["name"]
    form = request.get("response_format") or {}
    if form.get("type") == "json_schema":
        return _instance(form["json_schema"]["schema"], text), None
    if broken := prompt_to_mend(text):
        return json.dumps({"text": answer_to({}, broken)[0]}), None
    if schema := quoted_schema(text):
        return _instance(schema, text), None
    return prose_answer(text), None


def _instance(schema: dict[str, Any], text: str) -> str:
    return json.dumps(Builder(schema, text).build(), ensure_ascii=False)


@lru_cache(maxsize=64)
def _block(name: str) -> re.Pattern[str]:
    return re.compile(BLOCK.format(name=name), re.DOTALL)


class Builder:
    """One instance of a schema. A list whose name heads a numbered block of the prompt answers it id by id."""

    def __init__(self, root: dict[str, Any], text: str) -> None:
        self.root, self.text = root, text
        self.defs = {**root.get("definitions", {}), **root.get("$defs", {})}

    def build(self, node: dict[str, Any] | None = None, name: str = "", index: int = 0) -> Any:
        node = self.root if node is None else node
        if "$ref" in node:
            return self.build(self.defs[node["$ref"].rsplit("/", 1)[-1]], name, index)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return self.choice(node["enum"], name, index)
        for key in ("anyOf", "oneOf", "allOf"):
            if options := node.get(key):
                may_be_null = any(option.get("type") == "null" for option in options)
                chosen = next(option for option in options if option.get("type") != "null")
                return None if may_be_null and name in NULL else self.build(chosen, name, index)
        kind = node.get("type", "object")
        if isinstance(kind, list):
            if "null" in kind and name in NULL:
                return None
            kind = next(one for one in kind if one != "null")
        if kind == "object":
            return {key: self.build(value, key, index) for key, value in node.get("properties", {}).items()}
        if kind == "array":
            return self.rows(node.get("items", {"type": "string"}), name)
        if kind in ("integer", "number"):
            wanted = WHOLE_NUMBERS.get(name, 1) if kind == "integer" else 1
            return max(node.get("minimum", wanted), min(wanted, node.get("maximum", wanted)))
        if kind == "boolean":
            return name != "fallback"
        if name == "code" and (fence := FENCE.search(self.text)):
            return fence[1]
        return self.passage[:60] if name == "quote" else TEXTS.get(name, SENTENCES[0])

    def choice(self, options: list[Any], name: str, index: int) -> Any:
        wanted = BAD if self.doubtful(name, index) else GOOD
        return next((word for word in (*wanted, *GOOD) if word in options), options[0])

    def rows(self, items: dict[str, Any], name: str) -> list[Any]:
        if items.get("type") == "string" and "enum" not in items:
            return list(SENTENCES)
        ids = self.numbered(name) or list(range(1, len(SENTENCES) + 1))
        rows = [self.build(items, name, id) for id in ids]
        for place, (id, row) in enumerate(zip(ids, rows, strict=True)):
            if isinstance(row, dict):
                own = {"id": id, "text": self.sentence(place)}
                own |= dict.fromkeys(("statement", "claim"), SENTENCES[place % len(SENTENCES)])
                row.update({key: value for key, value in own.items() if key in row})
        return rows

    def doubtful(self, name: str, index: int) -> bool:
        """Depends on the sample and the item alone."""
        return zlib.crc32(f"{self.unit} {name} {index}".encode()) % 5 == 0

    def numbered(self, name: str) -> list[int]:
        found = _block(name).search(self.text) if name else None
        return [int(id) for id in re.findall(r"(?m)^(\d+)\. ", found[1])] if found else []

    def sentence(self, place: int) -> str:
        """The answer's own sentences, so that a split covers it."""
        spoken = re.split(r"(?<=\.) ", self.answer) if self.answer else SENTENCES
        return spoken[place % len(spoken)]

    @cached_property
    def unit(self) -> str:
        # The last one: prompts may show examples first.
        found = UNIT.findall(self.text)
        return found[-1] if found else ""

    @cached_property
    def answer(self) -> str:
        found = _block("answer").search(self.text)
        return found[1] if found else ""

    @cached_property
    def passage(self) -> str:
        found = _block("reference 0").search(self.text)
        return found[1] if found else SENTENCES[0]
