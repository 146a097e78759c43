"""OpenAI's `messages` as a question with its answer, or as the turns of a dialogue."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from steelyard.errors import InputError
from steelyard.records import Turn
from steelyard.samples import values

_SYSTEM = ("system", "developer")
_ROLES = (*_SYSTEM, "user", "assistant", "tool", "function")


class Message(NamedTuple):
    """One message with something said in it; `data` is the whole object, `path` where it stands."""

    role: str
    text: str
    data: Mapping[str, object]
    path: str


def has_roles(listed: Sequence[object]) -> bool:
    """Whether a list of turns is in truth a list of messages."""
    return bool(listed) and all(isinstance(part, Mapping) and "role" in part for part in listed)


def messages_of(value: object, field: str) -> list[Message]:
    """The messages that people and models said; tool calls and what tools returned are left out."""
    found = []
    for index, data in enumerate(values.structured(value, field)):
        path = f"{field}[{index}]"
        if not isinstance(data, Mapping):
            raise InputError(f"expected an object with a role, got {values.kind_of(data)}", field=path)
        role = data.get("role")
        if role not in _ROLES:
            raise InputError(f"expected one of {', '.join(_ROLES)}, got {role!r}", field=f"{path}.role")
        calls_tool = data.get("content") is None and (data.get("tool_calls") or data.get("function_call"))
        if role not in ("tool", "function") and not calls_tool:
            found.append(Message(str(role), _content(data, path), data, path))
    return found


def exchange(messages: Sequence[Message], *, answered: bool) -> tuple[str, str]:
    """The last question and its answer. With `answered` the answer stands elsewhere in the row."""
    said = [message for message in messages if message.role not in _SYSTEM]
    last = next((message for message in reversed(said) if message.role == "user"), None)
    if last is None:
        raise InputError("no message has the role user", field="messages")
    if not last.text.strip():
        raise InputError("is empty", field=f"{last.path}.content")
    if answered:
        return last.text, ""
    # The last user message and the last answer would otherwise be paired across turns.
    if said[-1].role == "user":
        raise InputError("the last user message has no answer", field=last.path)
    return last.text, said[-1].text


def system_of(messages: Sequence[Message]) -> str:
    return "\n\n".join(message.text for message in messages if message.role in _SYSTEM)


def turns_of(
    messages: Sequence[Message],
    field: str,
    criteria_of: Callable[[Mapping[str, object], str], tuple[str, ...]],
) -> tuple[Turn, ...]:
    """User and assistant in pairs. What one side says in several messages running is one prompt or answer."""
    turns: list[Turn] = []
    prompts: list[str] = []
    answers: list[str] = []
    criteria: tuple[str, ...] = ()
    for message in messages:
        if message.role == "user":
            if answers:
                turns.append(_turn(prompts, answers, criteria))
                prompts, answers, criteria = [], [], ()
            prompts.append(message.text)
        elif message.role == "assistant":
            answers.append(message.text)
            criteria += criteria_of(message.data, message.path)
    if answers:
        turns.append(_turn(prompts, answers, criteria))
    elif prompts:
        raise InputError("the last user message has no answer", field=field)
    return tuple(turns)


def _turn(prompts: Sequence[str], answers: Sequence[str], criteria: tuple[str, ...]) -> Turn:
    return Turn(prompt="\n\n".join(prompts), answer="\n\n".join(answers), criteria=criteria)


def _content(data: Mapping[str, object], path: str) -> str:
    content = data.get("content")
    if content is None and data.get("refusal") is not None:
        return values.text(data["refusal"], f"{path}.refusal")
    if not isinstance(content, list):
        return values.text(content, f"{path}.content")
    parts = (part.get("text", part.get("refusal")) if isinstance(part, Mapping) else part for part in content)
    # Images and sounds have no text; the words around them are still judged.
    return "".join(
        values.text(part, f"{path}.content[{index}]") for index, part in enumerate(parts) if part is not None
    )
