"""The JSON schema of a reply, in the strict and small form that structured output wants."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from steelyard.judges.parsing import CODE
from steelyard.records import ReplyData

# Everything else (titles, defaults, lengths, patterns) is refused by some server, costs tokens, or both;
# pydantic checks the reply in full afterwards.
KEPT = ("type", "enum", "const", "anyOf", "items", "properties", "required", "additionalProperties")


@cache
def strict_schema(model: type[ReplyData]) -> dict[str, Any]:
    """Every property required, no others allowed, references resolved, nothing that only people read.

    The code of the call comes first. It is a plain string: one that names the code would be a schema of its own for
    every ask, and no provider's cache would know it.
    """
    if CODE in model.model_fields:
        raise TypeError(f"{model.__name__}.{CODE}: this key carries the code of the call; name the field otherwise")
    schema = model.model_json_schema()
    strict = _strict(schema, schema.get("$defs", {}), ())
    return strict | {
        "properties": {CODE: {"type": "string"}, **strict["properties"]},
        "required": [CODE, *strict["required"]],
    }


def _strict(schema: Mapping[str, Any], defs: Mapping[str, Any], inside: tuple[str, ...]) -> dict[str, Any]:
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        if name in inside:
            raise TypeError(f"{name} contains itself; a reply that nests without end has no strict schema")
        return _strict(defs[name], defs, (*inside, name))
    strict = {key: schema[key] for key in KEPT if key in schema}
    options = schema.get("anyOf") or schema.get("oneOf")
    if options:
        strict = _either([_strict(option, defs, inside) for option in options])
    if isinstance(strict.get("items"), dict):
        strict["items"] = _strict(strict["items"], defs, inside)
    if "properties" in schema:
        strict["properties"] = {name: _strict(part, defs, inside) for name, part in schema["properties"].items()}
        strict["required"] = list(schema["properties"])
        strict["additionalProperties"] = False
    elif isinstance(strict.get("additionalProperties"), dict):
        strict["additionalProperties"] = _strict(strict["additionalProperties"], defs, inside)
    return strict


def _either(options: list[dict[str, Any]]) -> dict[str, Any]:
    """One of several; a plain type that may be null is written in the short way, which every server knows."""
    others = [option for option in options if option != {"type": "null"}]
    if len(others) != 1 or len(options) != 2 or not others[0].keys() <= {"type", "enum"}:
        return {"anyOf": options}
    (simple,) = others
    nullable = {"type": [simple["type"], "null"]}
    return nullable | {"enum": [*simple["enum"], None]} if "enum" in simple else nullable
