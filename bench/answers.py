"""What the stub says: JSON that satisfies whatever the client asked for.

Steelyard and most peers send a JSON schema or a tool; a few only describe the wanted form in prose, and
for those a phrase of their prompt picks a fixed answer (peers.toml).
"""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any

SENTENCES = (
    "The device was released in the year the manual states.",
    "It weighs what the manual says.",
    "Its warranty covers two years.",
    "It can be repaired at any authorised centre.",
)
PREFERRED = ("yes", "correct", "supported", "covered", "adequate", "from_background", "fully", "relevant", "C", "A", 1)
FIXED = {"verdict": "yes", "statement": SENTENCES[0], "claim": SENTENCES[0], "noncommittal": 0, "level": 1}
BLOCK = r"<{name} [0-9a-f]{{16}}>\n(.*?)\n</{name} [0-9a-f]{{16}}>"
LIST = 4


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
    """(content, tool name or None)."""
    tools = request.get("tools")
    if tools and request.get("tool_choice") != "none":
        function = tools[0].get("function", tools[0])
        return json.dumps(Builder(function.get("parameters", {}), text).build()), function["name"]
    format = request.get("response_format") or {}
    if format.get("type") == "json_schema":
        return json.dumps(Builder(format["json_schema"]["schema"], text).build(), ensure_ascii=False), None
    from prose import prose_answer

    return prose_answer(text), None


@lru_cache(maxsize=64)
def _block(name: str) -> re.Pattern[str]:
    return re.compile(BLOCK.format(name=name), re.DOTALL)


class Builder:
    """One instance of a schema. Lists whose name heads a numbered block of the prompt answer it id by id."""

    def __init__(self, root: dict[str, Any], text: str) -> None:
        self.root, self.text = root, text
        self.defs = root.get("$defs") or root.get("definitions") or {}

    def build(self, node: dict[str, Any] | None = None, name: str = "") -> Any:
        node = self.root if node is None else node
        if "$ref" in node:
            return self.build(self.defs[node["$ref"].rsplit("/", 1)[-1]], name)
        if "const" in node:
            return node["const"]
        if "enum" in node:
            return next((value for value in PREFERRED if value in node["enum"]), node["enum"][0])
        for key in ("anyOf", "oneOf", "allOf"):
            if key in node:
                options = node[key]
                if any(option.get("type") == "null" for option in options) and name in ("difference", "causal_of"):
                    return None
                return self.build(next(o for o in options if o.get("type") != "null"), name)
        kind = node.get("type", "object")
        if isinstance(kind, list):
            if "null" in kind and name in ("difference", "causal_of"):
                return None
            kind = next(k for k in kind if k != "null")
        if name in FIXED and kind in ("string", "integer"):
            return FIXED[name]
        if kind == "object":
            return {key: self.build(value, key) for key, value in node.get("properties", {}).items()}
        if kind == "array":
            return self.rows(node.get("items", {"type": "string"}), name)
        if kind in ("integer", "number"):
            return max(node.get("minimum", 0), min(1, node.get("maximum", 1)))
        if kind == "boolean":
            return name not in ("fallback",)
        if name == "quote":
            return self.first_reference()
        return SENTENCES[0] if name != "text" else ""

    def rows(self, items: dict[str, Any], name: str) -> list[Any]:
        if items.get("type") == "string" and "enum" not in items:
            return list(SENTENCES)
        ids = self.numbered(name)
        rows = [self.build(items, name) for _ in range(len(ids) or LIST)]
        for index, row in enumerate(rows):
            if isinstance(row, dict):
                if "id" in row:
                    row["id"] = ids[index] if ids else index + 1
                if "text" in row:
                    row["text"] = self.sentence(index)
                for key in ("statement", "claim"):
                    if key in row:
                        row[key] = SENTENCES[index % LIST]
        return rows

    def numbered(self, name: str) -> list[int]:
        found = _block(name).search(self.text) if name else None
        return [int(n) for n in re.findall(r"(?m)^(\d+)\. ", found[1])] if found else []

    def sentence(self, index: int) -> str:
        """The answer's own sentences, so that a split covers it."""
        found = _block("answer").search(self.text)
        spoken = re.split(r"(?<=\.) ", found[1]) if found else list(SENTENCES)
        return spoken[index % len(spoken)]

    def first_reference(self) -> str:
        found = _block("reference 0").search(self.text)
        return found[1][:60] if found else SENTENCES[0]
