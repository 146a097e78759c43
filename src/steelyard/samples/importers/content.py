"""What was asked, answered and retrieved, out of the free-form inputs and outputs that tracing tools keep."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

_DEEPEST: Final = 6
_LONGEST_JSON: Final = 50_000_000
_USER: Final = frozenset(("user", "human"))
_ASSISTANT: Final = frozenset(("assistant", "ai", "aimessagechunk", "model", "bot", "chatbot"))
_SYSTEM: Final = frozenset(("system", "developer"))
_ROLES: Final = {
    **dict.fromkeys(_USER, "user"),
    **dict.fromkeys(_ASSISTANT, "assistant"),
    **dict.fromkeys(_SYSTEM, "system"),
    **dict.fromkeys(("tool", "function", "toolmessage"), "tool"),
    "humanmessage": "user",
    "aimessage": "assistant",
    "systemmessage": "system",
}
_ASKED: Final = (
    *("question", "query", "user_input", "user_query", "sys.query", "input", "prompt", "text", "content", "user"),
    *("message", "value", "request", "问题", "kwargs", "inputs", "args"),
)
_SAID: Final = (
    *("answer", "response", "actual_output", "output", "output_text", "result", "completion", "text", "content"),
    *("reply", "message", "assistant", "generated_answer", "value", "回答", "outputs", "kwargs"),
)
_PASSAGE: Final = ("page_content", "pageContent", "content", "text", "passage", "chunk", "body", "content_with_weight")
_HOLDING: Final = ("document", "node", "kwargs", "payload", "metadata")
_LISTED: Final = (
    *("documents", "docs", "source_documents", "retrieved_documents", "retrieval_documents", "chunks", "contexts"),
    *("context", "passages", "nodes", "matches", "results", "data", "hits", "output", "result", "outputs"),
)
_PASSAGES_BESIDE: Final = (
    *("contexts", "context", "retrieved_contexts", "retrieval_context", "documents", "source_documents", "passages"),
    *("references", "chunks", "docs"),
)

ChatMessage = dict[str, str]
"""`role` (system, user, assistant, tool) and `content`."""


def decoded(value: object) -> object:
    """A list or object that was written as text, as CSV cells and span attributes hold it; anything else as it is."""
    if not isinstance(value, str) or len(value) > _LONGEST_JSON or value.strip()[:1] not in ("{", "["):
        return value
    try:
        return json.loads(value, strict=False)
    except (ValueError, RecursionError):
        return value


def question_in(value: object, depth: int = 0) -> str | None:
    """What the user asked."""
    return _spoken(value, "user", _ASKED, depth)


def answer_in(value: object, depth: int = 0) -> str | None:
    """What the assistant said."""
    return _spoken(value, "assistant", _SAID, depth)


def _spoken(value: object, role: str, names: Sequence[str], depth: int) -> str | None:
    if depth > _DEEPEST:
        return None
    value = decoded(value)
    if isinstance(value, str):
        return value
    if messages := messages_in(value):
        said = [message["content"] for message in messages if message["role"] == role]
        return said[-1] if said else None
    if isinstance(value, list):
        # Several choices, generations or parts: the last one that says something.
        found = (_spoken(part, role, names, depth + 1) for part in reversed(value))
        return next((text for text in found if text), None)
    if not isinstance(value, Mapping):
        return None
    for name in ("choices", "generations"):
        if isinstance(value.get(name), list) and role == "assistant":
            return _spoken(value[name][:1], role, names, depth + 1)
    for name in names:
        if value.get(name) is not None and (text := _spoken(value[name], role, names, depth + 1)) is not None:
            return text
    only = [part for part in value.values() if isinstance(part, str)]
    return only[0] if len(value) == 1 and only else None


def messages_in(value: object, depth: int = 0) -> list[ChatMessage]:
    """The messages of a chat, wherever they stand in the value; empty where there is none."""
    if depth > _DEEPEST:
        return []
    value = decoded(value)
    if isinstance(value, Mapping):
        if role := _role(value):
            return [{"role": role, "content": _content(value)}]
        for name in ("messages", "chat_messages", "input", "output", "inputs", "outputs", "kwargs", "message"):
            if isinstance(value.get(name), list | dict | str) and (found := messages_in(value[name], depth + 1)):
                return found
        return []
    if not isinstance(value, list) or not value:
        return []
    if isinstance(value[0], list):
        return messages_in(value[0], depth + 1)
    if not all(isinstance(part, Mapping) and _role(part) for part in value):
        return []
    return [{"role": _role(part), "content": _content(part)} for part in value]


def _role(message: Mapping[str, Any]) -> str:
    """The speaker, as OpenAI, LangChain (plain or serialised) and Gemini write it; empty where it is no message."""
    if isinstance(of := message.get("message"), Mapping) and "role" in of:
        message = of
    named = message.get("role")
    if named is None and isinstance(message.get("id"), list) and message["id"]:
        named = message["id"][-1]
    if named is None and ({"content", "data"} & message.keys()):
        named = message.get("type")
    return _ROLES.get(str(named).casefold(), "") if isinstance(named, str) else ""


def _content(message: Mapping[str, Any]) -> str:
    for name in ("message", "data", "kwargs"):
        if isinstance(message.get(name), Mapping) and "content" not in message:
            message = message[name]
    content = message.get("content", message.get("parts"))
    if isinstance(content, str):
        return content
    if isinstance(content, Mapping):
        content = [content]
    if not isinstance(content, list):
        return ""
    parts = (part.get("text", part.get("content")) if isinstance(part, Mapping) else part for part in content)
    return "".join(part for part in parts if isinstance(part, str))


def has_more_than_text(value: object) -> bool:
    """Whether messages hold images, sounds or files: what is said around them is still taken."""
    value = decoded(value)
    rest: list[object] = [value]
    for _ in range(10_000):
        if not rest:
            return False
        part = rest.pop()
        if isinstance(part, Mapping):
            kind = part.get("type")
            if isinstance(kind, str) and kind in ("image_url", "image", "input_image", "audio", "input_audio", "file"):
                return True
            rest += part.values()
        elif isinstance(part, list):
            rest += part
    return False


def passages_in(value: object, depth: int = 0) -> list[str]:
    """The passages of a retriever's output: texts, documents of LangChain, LlamaIndex and OpenInference, or lists."""
    if depth > _DEEPEST:
        return []
    value = decoded(value)
    if isinstance(value, str):
        return [value] if value.strip() else []
    if isinstance(value, list):
        return [text for part in value for text in passages_in(part, depth + 1)]
    if not isinstance(value, Mapping):
        return []
    text = next((value[name] for name in _PASSAGE if isinstance(value.get(name), str)), None)
    if text is not None:
        return [text] if text.strip() else []
    for name in (*_LISTED, *_HOLDING):
        if isinstance(value.get(name), list | dict) and (found := passages_in(value[name], depth + 1)):
            return found
    return passages_in(value["document"]) if isinstance(value.get("document"), str) else []


def passages_beside(value: object) -> list[str]:
    """Passages that stand in an input or output under a name of their own."""
    value = decoded(value)
    if not isinstance(value, Mapping):
        return []
    found = (passages_in(value[name]) for name in _PASSAGES_BESIDE if value.get(name) is not None)
    return next((passages for passages in found if passages), [])


def without_repeats(passages: Iterable[str]) -> list[str]:
    """Each passage once: several retrievers often bring the same."""
    return list(dict.fromkeys(passages))


def system_in(messages: Sequence[ChatMessage]) -> str:
    return "\n\n".join(message["content"] for message in messages if message["role"] == "system")


def exchanges_in(messages: Sequence[ChatMessage]) -> Iterator[tuple[str, str, int]]:
    """Each question with its answer, and the place where the answer ends. What one side says in several messages
    running is one question or answer; greetings before the first question and what nobody answered are left out."""
    asked: list[str] = []
    said: list[str] = []
    end = 0
    for at, message in enumerate(messages):
        if message["role"] == "user":
            if said:
                yield "\n\n".join(asked), "\n\n".join(said), end
                asked, said = [], []
            asked.append(message["content"])
        elif message["role"] == "assistant" and asked and message["content"]:
            said.append(message["content"])
            end = at
    if said:
        yield "\n\n".join(asked), "\n\n".join(said), end
