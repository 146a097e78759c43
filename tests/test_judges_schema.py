"""The strict schema that goes out with an ask."""

import json
from typing import Any, Literal

import pytest
from pydantic import Field

from steelyard import tasks
from steelyard.judges.schema import strict_schema
from steelyard.records import ReplyData

REPLIES = [
    model
    for model in vars(tasks).values()
    if isinstance(model, type) and issubclass(model, ReplyData) and model.__name__.endswith("Reply")
]


def parts(schema: Any) -> list[dict[str, Any]]:
    """A schema and every schema in it; the map of properties is not one."""
    inner = [*schema.get("properties", {}).values(), *schema.get("anyOf", [])]
    inner += [schema["items"]] if "items" in schema else []
    return [schema, *(deeper for part in inner for deeper in parts(part))]


@pytest.mark.parametrize("model", REPLIES, ids=lambda model: model.__name__)
def test_every_reply_has_a_strict_schema(model: type[ReplyData]) -> None:
    """All properties required, no others allowed, nothing left that is only for people or needs looking up."""
    schema = strict_schema(model)
    for part in parts(schema):
        assert not part.keys() - {"type", "enum", "const", "anyOf", "items", "properties", "required",
                                  "additionalProperties"}  # fmt: skip
        if part.get("type") == "object":
            assert part["additionalProperties"] is False
            assert part["required"] == list(part["properties"])
    assert "$" not in json.dumps(schema)


def test_replies_are_all_covered() -> None:
    """The list of replies above is not empty by accident."""
    assert len(REPLIES) >= 7


def test_null_stays_allowed_and_order_is_kept() -> None:
    """A nullable field may be null; fields stand in the order the judge should think."""
    atom = strict_schema(tasks.AtomicReply)["properties"]["atoms"]["items"]
    assert atom["properties"]["reference"] == {"type": ["integer", "null"]}
    assert atom["properties"]["level"] == {"type": "integer", "enum": [1, 2, 3]}
    assert list(atom["properties"]).index("reason") < list(atom["properties"]).index("label")


class Tricky(ReplyData):
    """Field names that are also words of JSON schema, and constraints."""

    title: str = Field(max_length=3, description="gone")
    description: int = Field(ge=1)
    required: list[Literal["a"]]
    counts: dict[str, int]


def test_fields_may_be_named_like_words_of_the_schema() -> None:
    """A property called title is a property; a constraint is left to the check afterwards."""
    assert strict_schema(Tricky) == {
        "type": "object",
        "properties": {
            "code": {"type": "string"},
            "title": {"type": "string"},
            "description": {"type": "integer"},
            "required": {"type": "array", "items": {"type": "string", "const": "a"}},
            "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        },
        "required": ["code", "title", "description", "required", "counts"],
        "additionalProperties": False,
    }


class Endless(ReplyData):
    inner: list["Endless"]


def test_a_reply_that_contains_itself_is_refused() -> None:
    """An author of a task learns it at once."""
    with pytest.raises(TypeError, match="Endless contains itself"):
        strict_schema(Endless)


@pytest.mark.parametrize("model", REPLIES, ids=lambda model: model.__name__)
def test_the_code_comes_first_and_is_any_string(model: type[ReplyData]) -> None:
    """The same schema for every ask, so that a provider's cache of schemas hits."""
    schema = strict_schema(model)
    assert next(iter(schema["properties"].items())) == ("code", {"type": "string"})
    assert schema["required"][0] == "code"


class Coded(ReplyData):
    code: str


def test_a_field_cannot_take_the_place_of_the_code() -> None:
    """An author of a task learns it at once."""
    with pytest.raises(TypeError, match=r"Coded\.code: .* name the field otherwise"):
        strict_schema(Coded)


def test_the_schema_is_made_once() -> None:
    """It is the same object for every ask."""
    assert strict_schema(tasks.SplitReply) is strict_schema(tasks.SplitReply)
