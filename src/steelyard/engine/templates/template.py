"""A user's own judge prompt, and how a sample is put into it.

`$$$name$$$` is replaced literally and in one pass: what is put in is never read again. A prompt without a place for
what is judged gets the sample appended, in the form of the protocol's source document (`forms/`).
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from os import PathLike
from pathlib import Path
from typing import Any, Literal, NamedTuple, Self

from steelyard.errors import ConfigError
from steelyard.prompts import INLINE, NOTHING, PLACEHOLDER, SYNONYMS, fence, fill
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options, PromptLanguage, prompt_language
from steelyard.records import DialogueSample, RagSample, Sample

# What can be put in, by kind of sample; the first one is what is judged, and must be shown.
FIELDS: Mapping[str, tuple[str, ...]] = {
    "rag": ("answer", "question", "references", "key_points", "date", "place"),
    "dialogue": ("turns", "system_prompt", "criteria"),
}
# Also `$$$ question $$$` and `$$$my-field$$$`: a slip is named rather than sent.
LOOKS_LIKE_ONE = re.compile(r"\$\$\$[^$\n]{1,40}\$\$\$")
UNNAMED = "(text)"


class PromptTemplate(NamedTuple):
    """A prompt with `$$$placeholders$$$`. With `fence`, each text that is put in stands between tags that carry a code
    which no judged text can contain."""

    text: str
    source: str = UNNAMED
    fence: bool = False

    @classmethod
    def read(cls, path: str | PathLike[str], *, fence: bool = False) -> Self:
        try:
            text = Path(path).read_text("utf-8-sig")
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
            raise ConfigError(f"the template {path} cannot be read: {reason}") from error
        return cls(text, str(path), fence)

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "replace")).hexdigest()

    def described(self) -> dict[str, Any]:
        """For a run's manifest: identifies the template and lets the run continue without the file."""
        return {"source": self.source, "sha256": self.sha256, "fence": self.fence, "text": self.text}

    @classmethod
    def of_manifest(cls, stored: Mapping[str, Any]) -> Self:
        return cls(str(stored["text"]), str(stored["source"]), bool(stored["fence"]))

    @property
    def language(self) -> PromptLanguage:
        return prompt_language(self.text)

    def check(self, protocol: Protocol) -> None:
        """A prompt that is empty or asks for what a sample does not have is refused before anything is sent."""
        if not self.text.strip():
            raise ConfigError(f"the template {self.source} is empty")
        known = FIELDS[protocol.kind]
        for found in LOOKS_LIKE_ONE.finditer(self.text):
            name = PLACEHOLDER.fullmatch(found[0])
            if not name or SYNONYMS.get(name[1], name[1]) not in known:
                shown = ", ".join(_shown(field) for field in sorted(known))
                raise ConfigError(
                    f"the template {self.source}: {found[0]} has no value in {protocol.name}; known: {shown}"
                )

    def filled(self, sample: Sample, options: Options, protocol: Protocol) -> str:
        """The whole prompt for this sample."""
        text = self.text
        judged = FIELDS[protocol.kind][0]
        if judged not in PLACEHOLDER.findall(text):
            text = f"{text.rstrip()}\n\n{_form(protocol.name, self.language)}"
        values = _values(sample, options, self.language)
        if self.fence:
            code = hashlib.sha256(f"template {self.sha256} {sample.model_dump_json()}".encode("utf-8", "replace"))
            values = {
                name: value if name in INLINE else fence(_tag(name), value, code.hexdigest()[:12])
                for name, value in values.items()
            }
        return fill(text, values, self.source)


def _tag(name: str) -> str:
    return "references" if name.startswith("references") else name


def _shown(field: str) -> str:
    also = next((synonym for synonym, name in SYNONYMS.items() if name == field), "")
    return f"$$${field}$$$" + (f" (or $$${also}$$$)" if also else "")


def form_names() -> list[str]:
    """The protocols whose samples can be appended to a template."""
    found = {file.name.partition(".")[0] for file in files(__package__).joinpath("forms").iterdir()}
    return sorted(found)


@cache
def _form(protocol: str, language: Literal["zh", "en"]) -> str:
    return files(__package__).joinpath("forms", f"{protocol}.{language}.txt").read_text("utf-8")


def _values(sample: Sample, options: Options, language: PromptLanguage) -> dict[str, str]:
    """Every field as it is written into a prompt. Passages are counted from 1, as the source documents do."""
    from steelyard.protocols.atomic import NOT_GIVEN

    nothing = NOTHING[language]
    if isinstance(sample, DialogueSample):
        return {
            "system_prompt": sample.system_prompt,
            "turns": _turns(sample, language),
            "criteria": _criteria(sample, language) or nothing,
        }
    references, given = sample.references, NOT_GIVEN[language]
    return {
        "question": sample.question,
        "answer": sample.answer,
        "references": "\n".join(f"[{n}] {text}" for n, text in enumerate(references, start=1)) or nothing,
        # As the two source documents write a list of passages.
        "references_numbered": "[" + ",".join(f"['{n}.{text}']" for n, text in enumerate(references, start=1)) + "]",
        "references_listed": "[[" + ", ".join(f"'{text}'" for text in references) + "]]",
        "key_points": _numbered(sample.key_points or ()) or nothing,
        "date": _of(sample, options, "date") or given,
        "place": _of(sample, options, "place") or given,
    }


def _of(sample: RagSample, options: Options, name: str) -> str:
    return str(getattr(sample, name) or getattr(options, name, ""))


def _numbered(texts: Iterable[str]) -> str:
    return "\n".join(f"{number}. {text}" for number, text in enumerate(texts, start=1))


def _turns(sample: DialogueSample, language: PromptLanguage) -> str:
    named = {"zh": "评估细则", "en": "criteria"}[language]
    turns = [{"prompt": turn.prompt, "answer": turn.answer, named: list(turn.criteria)} for turn in sample.turns]
    return json.dumps(turns, ensure_ascii=False, indent=2)


def _criteria(sample: DialogueSample, language: PromptLanguage) -> str:
    rounds = [(n, turn.criteria) for n, turn in enumerate(sample.turns, start=1) if turn.criteria]
    return "\n".join(f"{f'第{n}轮' if language == 'zh' else f'Round {n}'}\n{_numbered(lines)}" for n, lines in rounds)
