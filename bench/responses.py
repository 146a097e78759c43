"""The other wire form of OpenAI, which trulens speaks: requests made into those of chat, replies made from them."""

from __future__ import annotations

from typing import Any


def as_chat(request: dict[str, Any]) -> dict[str, Any]:
    said = request.get("input") or ""
    messages = said if isinstance(said, list) else [{"role": "user", "content": said}]
    if instructions := request.get("instructions"):
        messages = [{"role": "system", "content": instructions}, *messages]
    chat = {"model": request.get("model"), "messages": messages, "tools": request.get("tools")}
    form = (request.get("text") or {}).get("format") or {}
    if form.get("type") == "json_schema":
        chat["response_format"] = {"type": "json_schema", "json_schema": form}
    return chat


def as_response(reply: dict[str, Any]) -> dict[str, Any]:
    if "choices" not in reply:
        return reply
    message, usage = reply["choices"][0]["message"], reply["usage"]
    item: dict[str, Any] = {"id": "item_1", "status": "completed"}
    if calls := message.get("tool_calls"):
        item |= {"type": "function_call", "call_id": "call_1", **calls[0]["function"]}
    else:
        text = {"type": "output_text", "text": message["content"], "annotations": []}
        item |= {"type": "message", "role": "assistant", "content": [text]}
    return {
        "id": "resp_stub",
        "object": "response",
        "created_at": 0,
        "status": "completed",
        "model": reply["model"],
        "output": [item],
        "parallel_tool_calls": True,
        "tools": [],
        "tool_choice": "auto",
        "usage": {
            "input_tokens": usage["prompt_tokens"],
            "input_tokens_details": {"cached_tokens": 0},
            "output_tokens": usage["completion_tokens"],
            "output_tokens_details": {"reasoning_tokens": 0},
            "total_tokens": usage["total_tokens"],
        },
    }
