"""The OpenAPI document, made exact: which protocols, judges, options and fields there are is known only here."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

from steelyard.engine.templates import form_names
from steelyard.errors import SteelyardError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.protocols import get_protocol, protocol_names
from steelyard.samples import known_fields
from steelyard.web.actions import judge_name, judge_names
from steelyard.web.api.bodies import RunBody
from steelyard.web.api.running import MULTIPART, UploadBody
from steelyard.web.viewer import Viewer

PER_PROTOCOL = ("EvaluateBody", "RunBody", "SetRunBody")


def document(found: dict[str, Any], viewer: Viewer) -> dict[str, Any]:
    """The generated document with what it cannot know by itself."""
    schemas = found["components"]["schemas"]
    judges, protocols = judge_names(viewer.config), protocol_names()
    schemas["RunBody"] = RunBody.model_json_schema()
    schemas["UploadBody"] = _with_template(_upload(judges, protocols), protocols, viewer)
    for name in PER_PROTOCOL:
        whole = schemas[name]
        variants = {protocol: f"{name}_{protocol.replace(':', '_')}" for protocol in protocols}
        for protocol, variant in variants.items():
            schemas[variant] = _with_template(_variant(whole, protocol, judges), [protocol], viewer)
        schemas[name] = {
            "title": whole["title"],
            "description": whole.get("description", ""),
            "oneOf": [{"$ref": f"#/components/schemas/{variant}"} for variant in variants.values()],
            "discriminator": {
                "propertyName": "protocol",
                "mapping": {protocol: f"#/components/schemas/{variant}" for protocol, variant in variants.items()},
            },
        }
    found["paths"]["/runs"]["post"]["requestBody"] = {
        "required": True,
        "content": {
            "application/json": {"schema": {"$ref": "#/components/schemas/RunBody"}},
            MULTIPART: {"schema": {"$ref": "#/components/schemas/UploadBody"}},
        },
    }
    for unused in ("HTTPValidationError", "ValidationError"):
        schemas.pop(unused, None)
    if viewer.token or viewer.accounts:
        found["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
        found["security"] = [{"token": []}]
    return found


def _variant(whole: dict[str, Any], name: str, judges: list[str]) -> dict[str, Any]:
    """The body for one protocol: its own options, its own fields."""
    protocol, variant = get_protocol(name), deepcopy(whole)
    options = _inlined(protocol.options.model_json_schema())
    properties = variant["properties"]
    # A rubric that is sent goes with a protocol of its own, whose labels no document can know.
    del properties["rubric"]
    properties["protocol"] = {"const": name, "type": "string"}
    properties["judge"] = {"enum": [*judges, None], "description": properties["judge"]["description"]}
    properties["options"] = options
    properties["fields"] = {
        "type": "object",
        "properties": {field: {"type": "string"} for field in known_fields(protocol.kind)},
        "additionalProperties": False,
        "description": properties["fields"]["description"],
    }
    return variant


def _with_template(body: dict[str, Any], protocols: list[str], viewer: Viewer) -> dict[str, Any]:
    """The body of these protocols with its `template`, for the judges that can follow one; without it where there is
    none."""
    following = [name for name in judge_names(viewer.config) if _follows_prompts(name, viewer)]
    with_form = [name for name in protocols if name in form_names()]
    if not (following and with_form):
        body["properties"].pop("template")
        return body
    named = {"required": ["judge"], "properties": {"judge": {"enum": following}}}
    by_default = {"properties": {"judge": {"enum": [*following, None]}}}
    return body | {
        "if": {"properties": {"template": {"type": "string"}}, "required": ["template"]},
        "then": {
            "properties": {"protocol": {"enum": with_form}},
            "allOf": [by_default if judge_name(viewer.config, None) in following else named],
        },
    }


def _follows_prompts(name: str, viewer: Viewer) -> bool:
    try:
        return JudgeFactory(viewer.config, store=viewer.store_location).judge(name).follows_prompts
    except SteelyardError:
        return False  # it cannot be asked at all


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema without definitions of its own: inside a larger document its references would lead nowhere."""
    defined = {f"#/$defs/{name}": part for name, part in schema.pop("$defs", {}).items()}

    def filled(part: Any) -> Any:
        if isinstance(part, dict):
            whole = {**defined.get(part.get("$ref", ""), {}), **{k: v for k, v in part.items() if k != "$ref"}}
            return {name: filled(value) for name, value in whole.items()}
        return [filled(one) for one in part] if isinstance(part, list) else part

    found: dict[str, Any] = filled(schema)
    return found


def _upload(judges: list[str], protocols: list[str]) -> dict[str, Any]:
    schema = UploadBody.model_json_schema()
    properties = schema["properties"]
    properties["protocol"] = {"type": "string", "enum": protocols}
    properties["judge"] = {"type": "string", "enum": judges}
    properties["format"] = {"type": "string", "enum": ["jsonl", "json", "csv", "tsv"]}
    properties["template"] = {"type": "string", "pattern": r"\S", "description": properties["template"]["description"]}
    properties["file"] = {"type": "string", "format": "binary", "description": "a file of samples"}
    schema["required"] = ["file", "protocol"]
    return schema
