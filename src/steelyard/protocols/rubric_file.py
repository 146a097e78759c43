"""Rubric files: a user's own criteria, in TOML or Markdown, read into a `Rubric` (docs/rubric.md).

Whatever does not fit is refused with its file, line and field, never guessed.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import math
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping
from fractions import Fraction
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import ValidationError

from steelyard.errors import ConfigError, InputError
from steelyard.protocols.vocabulary import UNJUDGED, Words
from steelyard.records import DialogueSample, RagSample, Record, Sample, Turn
from steelyard.text import language_of

PREFIX = "rubric:"
INLINE = "(inline)"
NOT_APPLICABLE = "not_applicable"
SETTINGS = ("title", "for")
FIELDS = ("ask", "scale", "labels", "yes", "no", "good", "weight", "veto", "when")
OF_A_LABEL = ("points", "means", "en", "zh")
ENDINGS = (".toml", ".md", ".markdown")

MOST_BYTES = 200_000
MOST_CRITERIA = 100
MOST_LABELS = 20
LONGEST = 2_000
LARGEST = 1_000_000
NAME = re.compile(r"\w[\w.-]{0,39}")
# What separates labels in the prompt cannot be part of one.
LABEL = re.compile(r"\w(?:[\w +./-]{0,38}[\w+])?")
# Kinds of items that have a shape of their own (records.py).
TAKEN = frozenset({"atom", "check", "sentence", "key_point", "criterion", UNJUDGED, NOT_APPLICABLE})

HEADING, TABLE = re.compile(r"^## *\S", re.MULTILINE), re.compile(r"^[ \t]*+\[[^]\n]+\]", re.MULTILINE)

PromptLanguage = Literal["zh", "en"]
LineOf = Callable[[str, str], int | None]
"""The line of a criterion's field, as far as it is known."""


class Phrase(Record):
    """A text in English, in Chinese, or in both."""

    en: str = ""
    zh: str = ""

    def __bool__(self) -> bool:
        return bool(self.en or self.zh)

    def in_language(self, language: PromptLanguage) -> str:
        return (self.zh or self.en) if language == "zh" else (self.en or self.zh)

    @property
    def words(self) -> Words:
        return Words(self.in_language("en"), self.in_language("zh")) if self else Words()


class RubricLabel(Record):
    """One label of a criterion; one without points is counted but not scored."""

    name: str
    points: Fraction | None = None
    means: Phrase = Phrase()


class RubricCriterion(Record):
    """A question with its labels."""

    name: str
    ask: Phrase
    labels: tuple[RubricLabel, ...]
    weight: Fraction = Fraction(1)
    veto: tuple[str, ...] = ()
    """The labels that fail the sample."""
    when: Phrase = Phrase()

    @cached_property
    def shares(self) -> dict[str, Fraction]:
        """The share of the criterion's points that each label earns; labels without points are left out."""
        points = {label.name: label.points for label in self.labels if label.points is not None}
        most = max(points.values(), default=Fraction(0))
        return {name: value / most for name, value in points.items()} if most else {}

    @property
    def names(self) -> tuple[str, ...]:
        """Every label that a judge may give."""
        return (*(label.name for label in self.labels), *([NOT_APPLICABLE] if self.when else []))


class Rubric(Record):
    """The criteria of one file."""

    name: str
    title: Phrase = Phrase()
    sample: Literal["answer", "dialogue"] = "answer"
    criteria: tuple[RubricCriterion, ...]

    @cached_property
    def digest(self) -> str:
        """Changes with everything that shapes labels or scores; comments, layout and the file's name do not count."""
        return hashlib.sha256(self.model_dump_json(exclude={"name"}).encode()).hexdigest()

    @property
    def protocol(self) -> str:
        """The name of the protocol: of two versions of a file, each has its own."""
        return f"{PREFIX}{self.name}@{self.digest[:8]}"

    @cached_property
    def language(self) -> PromptLanguage | None:
        """The language that it is written in; None where it is in both, and samples decide."""
        known: tuple[PromptLanguage, ...] = ("en", "zh")
        whole = [one for one in known if all(getattr(criterion.ask, one) for criterion in self.criteria)]
        return whole[0] if len(whole) == 1 else None

    @classmethod
    def stored(cls, table: object) -> Self | None:
        """A rubric as a manifest keeps it; None where what is there is none."""
        try:
            return cls.model_validate(table)
        except ValidationError:
            return None


# --- finding ---------------------------------------------------------------------------------------


@cache
def shipped_rubrics() -> dict[str, str]:
    """The shipped rubrics by name: their text."""
    folder = files("steelyard.protocols") / "rubrics"
    found = sorted((file for file in folder.iterdir() if file.name.endswith(".toml")), key=lambda file: file.name)
    return {file.name.removesuffix(".toml"): file.read_text("utf-8") for file in found}


def trial_samples(rubric: Rubric) -> list[Sample]:
    """A few answers, good and bad, in the rubric's language: for whoever has none yet."""
    lines = (files("steelyard.protocols") / "rubrics" / "trial.jsonl").read_text("utf-8").splitlines()
    rows = [row for row in map(json.loads, lines) if row.pop("language") == (rubric.language or "en")]
    answers = [RagSample(id=f"trial-{number}", **row) for number, row in enumerate(rows, start=1)]
    if rubric.sample == "answer":
        return [*answers]
    return [
        DialogueSample(
            id=one.id, system_prompt="\n".join(one.references), turns=(Turn(prompt=one.question, answer=one.answer),)
        )
        for one in answers
    ]


def find_rubric(named: str, *, paths: bool = True) -> tuple[Rubric, str]:
    """The rubric that stands after `rubric:`, and where it comes from: a shipped name or, where allowed, a file."""
    shipped = shipped_rubrics()
    name, _, digest = named.partition("@")
    if name in shipped:
        rubric = read_rubric(shipped[name], name, f"{name}.toml")
        if digest and not rubric.digest.startswith(digest):
            raise ConfigError(f"the shipped rubric {name} is not the one of {named!r}; take {PREFIX}{name}")
        return rubric, PREFIX + name
    known = f"shipped are {', '.join(shipped)}"
    if not named:
        raise ConfigError(
            f"rubric needs a file or a name, such as {PREFIX}tone.toml or {PREFIX}{next(iter(shipped))}; {known}"
        )
    if not paths:
        raise ConfigError(f"there is no rubric {named!r} here: send one inline, or name a shipped one; {known}")
    path = Path(named)
    if not path.is_file():
        hint = "`steelyard rubric new FILE` writes an example"
        raise ConfigError(f"there is no rubric file {named} and no shipped rubric of that name; {known}; {hint}")
    return read_rubric_file(path), named


def read_rubric_file(path: Path) -> Rubric:
    if path.suffix.lower() not in ENDINGS:
        raise InputError(f"a rubric is a TOML or Markdown file; its name ends in {', '.join(ENDINGS)}", file=str(path))
    try:
        with path.open("rb") as file:
            content = file.read(MOST_BYTES + 1)
        text = content.decode("utf-8-sig")
    except OSError as error:
        raise InputError(f"cannot be read ({error.strerror})", file=str(path)) from error
    except UnicodeDecodeError:
        raise InputError("is not UTF-8 text; save it as UTF-8", file=str(path)) from None
    return read_rubric(text, _slug(path.stem), str(path))


def read_rubric(text: str, name: str, source: str) -> Rubric:
    """The rubric in a file's text: Markdown where the source says so, else TOML."""
    if len(text.encode(errors="replace")) > MOST_BYTES:
        raise InputError(f"has more than {MOST_BYTES:,} bytes; a rubric is short", file=source)
    text = text.replace("\r\n", "\n")
    if source.lower().endswith((".md", ".markdown")):
        return _Reader(name, source, *_markdown(text, source)).rubric()
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        line = re.search(r"at line (\d+)", str(error))
        problem = f"not valid TOML: {str(error).partition(' (at ')[0]}"
        raise InputError(problem, file=source, line=int(line[1]) if line else None) from None
    except (ValueError, RecursionError):
        raise InputError("not valid TOML: a number or a table is too large", file=source) from None
    return _Reader(name, source, table, lambda criterion, field: _toml_line(text, criterion, field)).rubric()


def inline_rubric(given: str | Mapping[str, Any]) -> Rubric:
    """A rubric that is no file: its TOML or Markdown as text, or the same table as a mapping."""
    if isinstance(given, str):
        # In TOML a line that begins with ## is a comment, and there are tables besides.
        is_markdown = HEADING.search(given) and not TABLE.search(given)
        found = read_rubric(given, "inline", f"{INLINE}.md" if is_markdown else INLINE)
    else:
        found = _Reader("inline", INLINE, given, lambda criterion, field: None).rubric()
    return found.model_copy(update={"name": _slug(found.title.in_language("en")) if found.title else "inline"})


def _slug(text: str) -> str:
    return re.sub(r"[^\w.-]+", "-", text).strip("-.")[:40].lower() or "rubric"


# --- from a table to a rubric ----------------------------------------------------------------------


class _Reader:
    """Reads the table that both forms become."""

    def __init__(self, name: str, source: str, table: Mapping[str, Any], line_of: LineOf) -> None:
        self.name, self.source, self.table, self.line_of = name, source, table, line_of

    def rubric(self) -> Rubric:
        for key, value in self.table.items():
            if key not in SETTINGS and not isinstance(value, Mapping):
                raise self._error(
                    "", key, f"is not a setting of a rubric (title, for); a criterion is a table [{key}] with ask"
                )
        criteria = [(key, value) for key, value in self.table.items() if key not in SETTINGS]
        if not criteria:
            raise self._error("", "", 'holds no criterion; one is a table with a question: [polite] and ask = "…"')
        if len(criteria) > MOST_CRITERIA:
            raise self._error("", "", f"holds {len(criteria)} criteria; at most {MOST_CRITERIA} are judged together")
        sample = self.table.get("for", "answer")
        if sample not in ("answer", "dialogue"):
            raise self._error("", "for", f'must be "answer" or "dialogue", not {_shown(sample)}')
        title = self._phrase("", "title", self.table["title"]) if "title" in self.table else Phrase()
        found = tuple(self._criterion(key, value) for key, value in criteria)
        folded = [criterion.name.casefold() for criterion in found]
        for at, criterion in enumerate(found):
            if folded.index(folded[at]) != at:
                raise self._error(
                    criterion.name, "", "is there twice, in another case; give each criterion its own name"
                )
        return Rubric(name=self.name, title=title, sample=sample, criteria=found)

    def _criterion(self, name: str, given: Mapping[str, Any]) -> RubricCriterion:
        if not NAME.fullmatch(name):
            raise self._error(name[:40], "", "is not a name for a criterion: use letters, digits, _ - . (at most 40)")
        if name.casefold() in TAKEN:
            raise self._error(name, "", "this name is taken; choose another")
        if unknown := [key for key in given if key not in FIELDS]:
            close = difflib.get_close_matches(str(unknown[0]), FIELDS, 1)
            hint = f"; did you mean {close[0]}?" if close else f"; it has {', '.join(FIELDS)}"
            raise self._error(name, str(unknown[0])[:40], f"is not a field of a criterion{hint}")
        if "ask" not in given:
            raise self._error(name, "ask", "is missing: the question that the judge answers")
        labels = self._labels(name, given)
        when = self._phrase(name, "when", given["when"]) if "when" in given else Phrase()
        criterion = RubricCriterion(
            name=name,
            ask=self._phrase(name, "ask", given["ask"]),
            labels=labels,
            weight=self._weight(name, given.get("weight", 1)),
            when=when,
        )
        return criterion.model_copy(update={"veto": self._veto(criterion, given.get("veto", False))})

    def _labels(self, name: str, given: Mapping[str, Any]) -> tuple[RubricLabel, ...]:
        forms = [form for form in ("scale", "labels") if form in given]
        yes_or_no = [key for key in ("yes", "no", "good") if key in given]
        if len(forms) > 1 or (forms and yes_or_no):
            raise self._error(name, yes_or_no[0] if yes_or_no else "labels", f"does not go with {forms[0]}; keep one")
        if "scale" in given:
            return self._scale(name, given["scale"])
        if "labels" in given:
            return self._categories(name, given["labels"])
        good = given.get("good", "yes")
        if good not in ("yes", "no"):
            raise self._error(
                name, "good", f'must be "yes" or "no", the label that earns the points, not {_shown(good)}'
            )
        return tuple(
            RubricLabel(
                name=word,
                points=Fraction(int(word == good)),
                means=self._phrase(name, word, given[word]) if word in given else Phrase(),
            )
            for word in ("yes", "no")
        )

    def _scale(self, name: str, given: object) -> tuple[RubricLabel, ...]:
        if not isinstance(given, list) or not 2 <= len(given) <= MOST_LABELS:
            problem = f"must be a list of 2 to {MOST_LABELS} descriptions, from the worst to the best"
            raise self._error(name, "scale", problem)
        return tuple(
            RubricLabel(name=str(at), points=Fraction(at - 1), means=self._phrase(name, "scale", one))
            for at, one in enumerate(given, start=1)
        )

    def _categories(self, name: str, given: object) -> tuple[RubricLabel, ...]:
        if not isinstance(given, Mapping) or not 2 <= len(given) <= MOST_LABELS:
            problem = f"must be a table of 2 to {MOST_LABELS} labels, such as {{ granted = 1, refused = 0 }}"
            raise self._error(name, "labels", problem)
        found = tuple(self._category(name, label, value) for label, value in given.items())
        if len({label.name.casefold() for label in found}) < len(found):
            raise self._error(name, "labels", "has a label twice, in another case")
        if any(label.points is not None for label in found) and not any(label.points for label in found):
            raise self._error(name, "labels", "has points, but none above 0: nothing could be earned")
        return found

    def _category(self, name: str, label: str, value: object) -> RubricLabel:
        place = f"labels.{label[:40]}"
        if not LABEL.fullmatch(label):
            raise self._error(
                name, place, "is not a label: use letters, digits, spaces and + - . / (at most 40 characters)"
            )
        if label.casefold() in (UNJUDGED, NOT_APPLICABLE):
            raise self._error(name, place, "this label is taken; choose another")
        points: object = None
        means = Phrase()
        if isinstance(value, Mapping):
            if unknown := [key for key in value if key not in OF_A_LABEL]:
                raise self._error(
                    name, f"{place}.{unknown[0]}", f"is not a field of a label; it has {', '.join(OF_A_LABEL)}"
                )
            points = value.get("points")
            meaning = value.get("means") or {key: value[key] for key in ("en", "zh") if key in value}
            means = self._phrase(name, place, meaning) if meaning else Phrase()
        elif isinstance(value, str):
            means = self._phrase(name, place, value) if value.strip() else Phrase()
        else:
            points = value
        if points is None:
            return RubricLabel(name=label, means=means)
        return RubricLabel(name=label, points=self._number(name, place, points, "points"), means=means)

    def _weight(self, name: str, given: object) -> Fraction:
        weight = self._number(name, "weight", given, "a weight")
        if not weight:
            raise self._error(name, "weight", "must be above 0; leave the criterion out, or give its labels no points")
        return weight

    def _veto(self, criterion: RubricCriterion, given: object) -> tuple[str, ...]:
        if given is False:
            return ()
        names = [label.name for label in criterion.labels]
        if given is True:
            failing = tuple(name for name, share in criterion.shares.items() if not share)
            if not failing:
                problem = f"needs a label without points; name the labels that fail the sample: veto = [{names[-1]!r}]"
                raise self._error(criterion.name, "veto", problem)
            return failing
        listed = [given] if isinstance(given, str) else given
        if not isinstance(listed, list) or not listed or any(one not in names for one in listed):
            raise self._error(criterion.name, "veto", f"must be true or labels of this criterion: {', '.join(names)}")
        return tuple(dict.fromkeys(listed))

    def _number(self, name: str, field: str, given: object, what: str) -> Fraction:
        # By its shortest text: 0.1 means a tenth.
        is_number = isinstance(given, int | float) and not isinstance(given, bool) and math.isfinite(given)
        if not is_number or not 0 <= given <= LARGEST:  # type: ignore[operator]
            raise self._error(name, field, f"{what} must be a number from 0 to {LARGEST:,}, not {_shown(given)}")
        return Fraction(str(given))

    def _phrase(self, name: str, field: str, given: object) -> Phrase:
        texts = given if isinstance(given, Mapping) else {"": given}
        for key, text in texts.items():
            if not isinstance(text, str) or not text.strip():
                raise self._error(name, field, f"must be text, not {_shown(text)}")
            if len(text) > LONGEST:
                raise self._error(name, field, f"has {len(text):,} characters; at most {LONGEST:,}")
            if key not in ("", "en", "zh"):
                raise self._error(
                    name, f"{field}.{key}"[:60], "is not a language; a text is a string or { en = …, zh = … }"
                )
        if isinstance(given, Mapping):
            return Phrase(**{key: _line(text) for key, text in given.items()})
        text = _line(str(given))
        return Phrase(en=text) if language_of(text) == "en" else Phrase(zh=text)

    def _error(self, criterion: str, field: str, problem: str) -> InputError:
        place = ".".join(part for part in (criterion, field) if part)
        return InputError(problem, file=self.source, line=self.line_of(criterion, field), field=place or None)


def _line(text: str) -> str:
    return " ".join(text.split())


def _shown(value: object) -> str:
    try:
        return repr(value)[:40]
    except ValueError:  # a whole number of thousands of digits
        return "this"


def _toml_line(text: str, criterion: str, field: str) -> int | None:
    """Where a field of a criterion is written, else where the criterion begins."""
    header = re.compile(rf"\A\s*+\[\s*+([\"']?){re.escape(criterion)}\1\s*[.\]]")
    key = re.compile(rf"\A\s*+([\"']?){re.escape(field.partition('.')[0])}\1\s*[=.]")
    begins, inside = None, not criterion
    for number, line in enumerate(text.splitlines(), start=1):
        if re.match(r"\s*\[", line):
            inside = bool(criterion) and bool(header.match(line))
            if inside and begins is None:
                begins = number
        elif inside and field and key.match(line):
            return number
    return begins


# --- Markdown --------------------------------------------------------------------------------------

COMMENT = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
KEYS = ("for", "weight", "veto", "when", "good")
SETTING = re.compile(r"(\w+)\s*[:：]\s*(.*)")
POINT = re.compile(r"(\d{1,3})[.)、]\s*(.*)")
BULLET = re.compile(r"[-*]\s+(.*)")
CATEGORY = re.compile(r"([^(（:：\s]++(?:\s++[^(（:：\s]++)*+)\s*+(?:[(（]([^)）]*)[)）])?\s*+(?:[:：]\s*+(.*))?")


def _markdown(text: str, source: str) -> tuple[dict[str, Any], LineOf]:
    """The table that a Markdown rubric stands for, and where its fields are written."""
    table: dict[str, Any] = {}
    lines: dict[tuple[str, str], int] = {}
    name = ""

    def error(line: int, field: str, problem: str) -> InputError:
        return InputError(problem, file=source, line=line, field=".".join(filter(None, (name, field))) or None)

    # Lines keep their numbers.
    plain = COMMENT.sub(lambda found: "\n" * found[0].count("\n"), text)
    for number, line in enumerate(plain.split("\n"), start=1):
        line = line.strip()
        if line.startswith("##"):
            name = line.lstrip("#").strip()
            if name in table:
                raise error(number, "", "is there twice; give each criterion its own name")
            if name in SETTINGS:
                raise error(number, "", "this name is taken; choose another")
            table[name], lines[name, ""] = {}, number
        elif line.startswith("# "):
            if "title" in table or name:
                raise error(
                    number, "title", "a rubric has one title, at the top; a criterion begins with ## and its name"
                )
            table["title"], lines["", "title"] = line[2:].strip(), number
        elif line:
            for field, value in _markdown_line(table.get(name, {}) if name else None, line, number, error):
                lines.setdefault((name, field), number)
                (table[name] if name else table)[field] = value
    for held in (table[key] for key in table if isinstance(table[key], dict)):
        labels = held.get("labels", {})
        if labels and labels.keys() <= {"yes", "no"} and all(isinstance(means, str) for means in labels.values()):
            # Without points they only say what yes and no mean.
            held |= {word: means for word, means in held.pop("labels").items() if means}

    def line_of(criterion: str, field: str) -> int | None:
        return lines.get((criterion, field.partition(".")[0]), lines.get((criterion, "")))

    return table, line_of


def _markdown_line(
    held: Mapping[str, Any] | None, line: str, number: int, error: Callable[[int, str, str], InputError]
) -> Iterator[tuple[str, Any]]:
    """What one line of a criterion says: field and value."""
    setting = SETTING.fullmatch(line)
    key = setting[1].lower() if setting else line.lower()
    if held is None:
        if setting and key == "for":
            yield "for", setting[2].strip()
            return
        raise error(number, "", "stands before the first criterion, which begins with ## and its name")
    if key == "veto":
        labels = setting[2].strip() if setting else ""
        is_plain = labels.lower() in ("", "true")
        yield "veto", True if is_plain else [part.strip() for part in re.split(r"[,，、]", labels)]
    elif setting and key == "weight":
        yield "weight", _as_number(setting[2])
    elif setting and key in KEYS:
        yield key, setting[2].strip()
    elif point := POINT.fullmatch(line):
        scale = [*held.get("scale", []), point[2].strip()]
        if int(point[1]) != len(scale):
            raise error(number, "scale", f"this point should be number {len(scale)}: 1 is the worst, the last the best")
        yield "scale", scale
    elif bullet := BULLET.fullmatch(line):
        parts = CATEGORY.fullmatch(bullet[1].strip())
        if parts is None:
            raise error(number, "labels", "a label is written `- name (points): what it means`")
        label, points, means = parts[1].strip(), parts[2], (parts[3] or "").strip()
        if label in held.get("labels", {}):
            raise error(number, f"labels.{label[:40]}", "is there twice")
        value = means if points is None else {"points": _as_number(points), **({"means": means} if means else {})}
        yield "labels", {**held.get("labels", {}), label: value}
    else:
        if setting and held.get("ask") and (close := difflib.get_close_matches(key, KEYS, 1, 0.75)):
            raise error(number, setting[1][:40], f"is not a field of a criterion; did you mean {close[0]}?")
        yield "ask", f"{held['ask']} {line}" if "ask" in held else line


def _as_number(text: str) -> object:
    text = text.strip()
    if re.fullmatch(r"\d{1,12}", text):
        return int(text)
    return float(text) if re.fullmatch(r"\d{1,12}\.\d{1,12}", text) else text
