"""Prompts: one Markdown file per task and language, and how an ask becomes messages.

A file has a header (task, language, version), a static part that becomes the system message, and after
`<!-- sample -->` the part that becomes the user message, with `$$$field$$$` placeholders. Judged text goes
only into the latter, between tags that carry a code no judged text can contain. The reply must carry the same code:
what an answer holds can then never pass for it.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, lru_cache
from importlib.resources import files
from pathlib import Path
from typing import Literal, NamedTuple, Self

from steelyard.errors import PromptError
from steelyard.records import Again, Ask, Data, Numbered, item_fields
from steelyard.tasks import TASKS, TemplateData

Message = dict[str, str]
PLACEHOLDER = re.compile(r"\$\$\$(\w+)\$\$\$")
SAMPLE_MARK = "<!-- sample -->"
SAMPLE_LINE = re.compile(rf"^{SAMPLE_MARK}[ \t]*$", re.MULTILINE)
HEADER = re.compile(r"\A---\n(.*?)\n---\n", re.DOTALL)
CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
# The seed's own names for what our data calls otherwise.
SYNONYMS = {"pos": "place", "background": "references"}
# Short facts about the sample that read naturally inside a sentence; everything else is fenced.
INLINE = frozenset({"date", "place", "turn"})
# Texts that are items too, whose ids count from 1; references are counted from 0, as in the source documents.
COUNTED_FROM_ONE = frozenset({"passages"})
# A place is a few words; a paragraph of them, outside the fences, would be somebody talking to the judge.
LONGEST_INLINE = 80
# The prompt that asks once more for a reply to a user's own prompt.
TEMPLATE = "template"
NOTHING = {"zh": "（无）", "en": "(none)"}


class Prompt(NamedTuple):
    """One prompt file, read."""

    task: str
    language: str
    version: int
    sha256: str
    static: str
    sample: str
    source: str
    text: str

    @property
    def id(self) -> str:
        return f"{self.task}.{self.language}"

    @classmethod
    def read(cls, text: str, source: str) -> Self:
        """The prompt in a file's text; an error names the file and what it lacks."""
        text = text.removeprefix("\ufeff").replace("\r\n", "\n")
        header = HEADER.match(text)
        pairs = (line.partition(":") for line in (header[1].splitlines() if header else ()))
        fields = {name.strip(): value.strip() for name, _, value in pairs}
        if not header or not all(fields.get(name) for name in ("task", "language", "version")):
            raise PromptError(f"{source}: must begin with a header that gives task, language and version")
        if fields["language"] not in NOTHING:
            raise PromptError(f"{source}: language must be zh or en, not {fields['language']!r}")
        if not re.fullmatch(r"[0-9]{1,6}", fields["version"]):
            raise PromptError(f"{source}: version must be a whole number, not {fields['version']!r}")
        parts = SAMPLE_LINE.split(text[header.end() :])
        if len(parts) != 2:
            raise PromptError(f"{source}: needs exactly one line {SAMPLE_MARK}, where the sample part begins")
        prompt = cls(
            task=fields["task"],
            language=fields["language"],
            version=int(fields["version"]),
            sha256=hashlib.sha256(text.encode()).hexdigest(),
            static=parts[0].strip(),
            sample=parts[1].strip(),
            source=source,
            text=text,
        )
        prompt._check_placeholders()
        return prompt

    def _check_placeholders(self) -> None:
        """A template that cannot be filled, or that hides what is to be judged, is better refused before a run."""
        if "$$$" in PLACEHOLDER.sub("", f"{self.static}\n{self.sample}"):
            raise PromptError(f"{self.source}: a placeholder is written $$$name$$$; there is a stray $$$ in the text")
        if self.task == "reply" and "code" not in PLACEHOLDER.findall(self.sample):
            raise PromptError(f"{self.source}: must tell the judge the code to send back; add $$$code$$$")
        if self.task not in TASKS:
            return
        fields = TASKS[self.task][0].model_fields
        used = {_canonical(name) for name in PLACEHOLDER.findall(self.static + self.sample)}
        unknown = sorted(used - fields.keys() - {"code", "ids"})
        if unknown:
            known = ", ".join(sorted([*fields, "code", "ids"]))
            raise PromptError(f"{self.source}: $$${unknown[0]}$$$ has no value in {self.task}; known: {known}")
        hidden = sorted(set(item_fields(TASKS[self.task][0])) - used)
        if hidden:
            raise PromptError(f"{self.source}: must show the items to judge; add $$${hidden[0]}$$$")


class Prompts:
    """A set of prompts by task and language: the shipped ones, with a user's own laid over them."""

    def __init__(self, prompts: Iterable[Prompt]) -> None:
        self._by_id = {prompt.id: prompt for prompt in prompts}

    @classmethod
    def shipped(cls) -> Self:
        return cls(_shipped())

    def with_texts(self, texts: Mapping[str, str]) -> Self:
        """The same prompts with further ones (source → text) added or replaced."""
        added: dict[str, Prompt] = {}
        for prompt in (Prompt.read(text, source) for source, text in texts.items()):
            if first := added.get(prompt.id):
                raise PromptError(f"{prompt.source}: {prompt.id} is already given by {first.source}; keep one of them")
            added[prompt.id] = prompt
        return type(self)([*self, *added.values()])

    def with_files(self, paths: Iterable[Path]) -> Self:
        """The same prompts with a user's files, or a folder's `*.zh.md` and `*.en.md`, added or replaced."""
        found = [file for path in paths for file in (_prompt_files(path) if path.is_dir() else [path])]
        return self.with_texts({str(file): _read(file) for file in found})

    def __iter__(self) -> Iterator[Prompt]:
        return iter(self._by_id.values())

    def get(self, task: str, language: str) -> Prompt:
        prompt = self._by_id.get(f"{task}.{language}")
        if prompt is None:
            known = ", ".join(sorted(self._by_id))
            raise PromptError(f"there is no prompt for {task} in {language}; known: {known}")
        return prompt

    def identity(self, ask: Ask) -> str:
        """The hash of the files this ask is worded by: with the ask's key it stands for the rendered prompt."""
        if isinstance(ask.data, TemplateData):
            return self.get(TEMPLATE, ask.language).sha256 if ask.again else ""
        again = self.get("again", ask.language).sha256 if ask.again else ""
        verify = self.get("verify", ask.language).sha256 if ask.verify else ""
        return self.get(ask.task, ask.language).sha256 + again + verify + self.get("reply", ask.language).sha256

    def messages(self, ask: Ask) -> list[Message]:
        """The ask as a system and a user message; a user's own prompt as the one message that it is."""
        if isinstance(ask.data, TemplateData):
            return self._template(ask.data, ask.again, ask.language)
        prompt = self.get(ask.task, ask.language)
        code, fields = nonce(ask), list(_fields(ask.data))
        values = {name: _shown(name, value, ask.language, code) for name, value in fields}
        values |= {"code": code, "ids": _ids(ask.data)}
        sample = prompt.sample
        for name, value in fields:
            if value is None:
                sample = sample.replace(f"$$${name}$$$\n", "")
        # The head of every ask, also of a user's own prompt: a reply without the code is no reply.
        head = self.get("reply", ask.language)
        user = fill(head.sample, {"code": code}, head.source) + "\n" + fill(sample, values, prompt.source)
        if ask.again:
            user += "\n\n" + self._again(ask.again, ask.language, code)
        if ask.verify:
            recheck = self.get("verify", ask.language)
            user += "\n\n" + fill(recheck.sample, {"findings": "; ".join(ask.verify)}, recheck.source)
        # A user's own static part may mention the date or place, as the seeds do; ours never does.
        static = prompt.static
        if "$$$" in static:
            static = fill(static, values, prompt.source)
        return [{"role": "system", "content": static}, {"role": "user", "content": user}]

    def _template(self, data: TemplateData, again: Again | None, language: Literal["zh", "en"]) -> list[Message]:
        messages = [{"role": "user", "content": data.prompt}]
        if again:
            retry = self.get(TEMPLATE, language)
            missing = fill(retry.sample, {"missing": "\n".join(f"- {one}" for one in again.missing)}, retry.source)
            # Some servers refuse an empty message of the assistant.
            messages += [{"role": "assistant", "content": data.said}] if data.said else []
            messages += [{"role": "user", "content": missing}]
        return messages

    def _again(self, again: Again, language: Literal["zh", "en"], code: str) -> str:
        """The lines of the follow-up prompt that have something to say."""
        prompt = self.get("again", language)
        values = {
            "missing": ", ".join(again.missing),
            "unverified": ", ".join(again.unverified),
            "uncovered": again.uncovered and _shown("uncovered", again.uncovered, language, code),
        }
        said = {name: str(value) for name, value in values.items() if value}
        lines = (line for line in prompt.sample.splitlines() if set(PLACEHOLDER.findall(line)) <= said.keys())
        return fill("\n".join(lines), said, prompt.source)


@cache
def _shipped() -> tuple[Prompt, ...]:
    folder = Path(str(files(__name__)))
    return tuple(Prompt.read(_read(file), file.name) for file in _prompt_files(folder))


def _prompt_files(folder: Path) -> list[Path]:
    found = sorted(file for file in folder.iterdir() if file.name.endswith((".zh.md", ".en.md")))
    if not found:
        raise PromptError(f"{folder}: holds no prompt; their names end in .zh.md or .en.md")
    return found


def _read(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise PromptError(f"{file}: cannot be read ({error.strerror})") from error
    except UnicodeDecodeError as error:
        raise PromptError(f"{file}: is not UTF-8 text; save it as UTF-8") from error


def _canonical(name: str) -> str:
    return SYNONYMS.get(name, name)


def fill(template: str, values: Mapping[str, str], source: str) -> str:
    """The template with each `$$$name$$$` replaced, literally and in one pass: what is put in is never read again."""
    pieces = list(_pieces(template))
    for at in range(1, len(pieces), 2):
        name = _canonical(pieces[at])
        if name not in values:
            known = ", ".join(sorted(values))
            raise PromptError(f"{source}: $$${pieces[at]}$$$ has no value here; known: {known}")
        pieces[at] = values[name]
    return "".join(pieces)


@lru_cache(maxsize=256)
def _pieces(template: str) -> tuple[str, ...]:
    """What stands between placeholders, and every other one a placeholder's name."""
    return tuple(PLACEHOLDER.split(template))


def nonce(ask: Ask) -> str:
    """The code of this ask, for its fences and for the reply to it: repeatable, yet an author of judged text cannot
    have written it, because it depends on every character of that text."""
    return _code(ask.key)


@lru_cache(maxsize=4096)
def _code(key: str) -> str:
    return hashlib.sha256(b"fence" + key.encode()).hexdigest()[:12]


def _fields(data: Data) -> Iterable[tuple[str, object]]:
    return iter(data)


def _ids(data: Data) -> str:
    """What is to be labelled, by list and id: small models otherwise label as many items as the example has.

    Without the colon, `sentences 1` was taken for an id.
    """
    return "; ".join(f"{name}: {_listed(getattr(data, name))}" for name in item_fields(type(data)))


def _listed(items: tuple[Numbered, ...]) -> str:
    return ", ".join(str(item.id) for item in items) or "[]"


def _shown(name: str, value: object, language: str, code: str) -> str:
    """One field of the data as the judge sees it."""
    if name in INLINE:
        return " ".join(CONTROL.sub(" ", str(value)).split())[:LONGEST_INLINE]
    if value is None or value == () or value == "":
        return fence(name, NOTHING[language], code)
    if isinstance(value, tuple):
        if isinstance(value[0], Numbered):
            lines = "\n".join(f"{item.id}. {_one_line(item.text)}" for item in value)
            return fence(name, lines, code)
        if isinstance(value[0], Data):
            return "\n".join(_exchange(index, entry, code) for index, entry in enumerate(value, start=1))
        singular, first = name.removesuffix("s"), 1 if name in COUNTED_FROM_ONE else 0
        return "\n".join(fence(f"{singular} {index}", str(text), code) for index, text in enumerate(value, first))
    return fence(name, str(value), code)


def _exchange(number: int, exchange: Data, code: str) -> str:
    parts = (fence(name, str(value), code) for name, value in _fields(exchange))
    return fence(f"turn {number}", "\n".join(parts), code)


def fence(name: str, text: str, code: str) -> str:
    """Text between tags that carry the code. Control characters go: they carry no meaning a judge should see."""
    # Most texts are printable throughout, and to ask that is ten times as fast as to search.
    clean = text if text.isprintable() else CONTROL.sub(" ", text)
    return f"<{name} {code}>\n{clean}\n</{name} {code}>"


def _one_line(text: str) -> str:
    return " ".join(text.split())
