"""Every regular expression of the package, how each is used, and texts made to slow it down."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import random
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import steelyard
from steelyard.errors import MissingExtra
from steelyard.judges.parsing import _field_names
from steelyard.protocols.constraints import COUNTERS
from steelyard.protocols.forms import MARKS
from steelyard.protocols.transcripts.forms import FormPattern
from steelyard.tasks import AtomicReply, ComplianceReply, GroundedReply, ScorecardReply, SplitReply

# What is tried of a method: a match at one place, a search from every place, or all matches.
LOOKS = {"match": "match", "fullmatch": "fullmatch", "search": "search"} | dict.fromkeys(
    ("findall", "finditer", "sub", "subn", "split"), "findall"
)
REPLIES = (AtomicReply, ComplianceReply, GroundedReply, ScorecardReply, SplitReply)

# Patterns that a function makes of what it is given: what that may be, by function and variable.
GIVEN: Mapping[tuple[str, str], Mapping[str, Iterable[Any]]] = {
    ("judges.masking", "__init__"): {"secret": ["a-b", "9b+9Xk2/efGH34==", "&#0; 密码%5C\\\\++"]},
    ("judges.parsing", "_key_patterns"): {"name": sorted({name for one in REPLIES for name in _field_names(one)})},
    ("judges.parsing", "_quoted_keys"): {"name": sorted({name for one in REPLIES for name in _field_names(one)})},
    ("judges.terms", "other_terms"): {"name": ["max_tokens"]},
    ("reports.families", "_patterns"): {"names": [["gpt", "o1"]]},
    ("protocols.constraints", "_words"): {"joint": [r"'’\-", "'’"]},
    ("protocols.constraints", "_count"): {"names": list(COUNTERS)},
    ("protocols.constraints", "_is_there"): {"words": ["hello", "a a a a"]},
    ("protocols.constraints", "gives"): {"figures": ["4001234567", "1" * 40]},
    ("protocols.rubric_file", "_toml_line"): {"criterion": ["polite", "a b"], "field": ["ask", "labels.yes"]},
    ("protocols.forms", "_mark"): {"names": list(MARKS)},
    ("protocols.forms", "no_marks"): {"pattern": [mark[0] for mark in MARKS.values()]},
    ("protocols.forms", "ends_in_mark"): {"pattern": [mark[0] for mark in MARKS.values()]},
}
# Functions that are called while their module is loaded: what they make stands in its tables.
CALLED_AT_IMPORT = {("protocols.rules", "_compiled"), ("protocols.transcripts.forms", "__init__")}


@dataclass(frozen=True)
class Use:
    """One pattern and one way in which the package looks for it."""

    where: str
    pattern: re.Pattern[str]
    look: str


def uses() -> list[Use]:
    """All patterns that stand in modules or are given to `re`, with the methods that are called on them."""
    modules = list(_modules())
    found: dict[tuple[str, int], Use] = {}
    looks: dict[int, set[str]] = defaultdict(set)
    unnamed: dict[str, set[tuple[str, str]]] = {}
    held: dict[int, tuple[set[str], str, re.Pattern[str]]] = {}
    for module in modules:
        tree = ast.parse(Path(str(module.__file__)).read_text("utf-8"))
        called, unnamed[module.__name__] = _calls(tree, module)
        for pattern, look in called:
            looks[id(pattern)].add(look)
        for pattern, field in _held(vars(module)):
            held.setdefault(id(pattern), (set(), field, pattern))[0].add(module.__name__)
        for pattern, look, line in _given(tree, module):
            found[pattern.pattern, look] = Use(f"{module.__name__}:{line}", pattern, look)
    for key, (homes, field, pattern) in held.items():
        # Of a pattern in a table it is not seen which method is meant: any that its modules call on a variable, or on
        # a field of that name.
        called_there = {look for home in homes for name, look in unnamed[home] if name == field}
        for look in looks[key] or called_there or {"search", "fullmatch"}:
            found[pattern.pattern, look] = Use(min(homes), pattern, look)
    return sorted(found.values(), key=lambda use: (use.where, use.pattern.pattern, use.look))


def _modules() -> Iterator[ModuleType]:
    for info in pkgutil.walk_packages(steelyard.__path__, "steelyard."):
        if not info.name.endswith("__main__"):
            # The frameworks of `make integrations` are not here; no pattern stands in their modules.
            with suppress(MissingExtra):
                yield importlib.import_module(info.name)
    yield steelyard


def _held(value: object, field: str = "", depth: int = 0) -> Iterator[tuple[re.Pattern[str], str]]:
    """The patterns in a value and the field that holds each: in tables, records, what a function closes over."""
    parts: Iterable[tuple[object, str]] = ()
    if isinstance(value, FormPattern):
        value = value.pattern
    if isinstance(value, re.Pattern):
        if isinstance(value.pattern, str):
            yield value, field
    elif depth > 6 or isinstance(value, str | bytes | int | ModuleType):
        return
    elif isinstance(value, Mapping):
        parts = [(part, "") for part in (*value.keys(), *value.values())]
    elif isinstance(value, tuple | list | set | frozenset):
        parts = zip(value, getattr(value, "_fields", [""] * len(value)), strict=True)
    elif isinstance(value, FunctionType):
        parts = [(cell.cell_contents, "") for cell in value.__closure__ or ()]
    elif getattr(value if isinstance(value, type) else type(value), "__module__", "").startswith("steelyard."):
        parts = [(part, name) for name, part in dict(getattr(value, "__dict__", {})).items()]
    for part, name in parts:
        yield from _held(part, name, depth + 1)


def _calls(tree: ast.AST, module: ModuleType) -> tuple[list[tuple[re.Pattern[str], str]], set[tuple[str, str]]]:
    """Methods called on patterns of this module, and those called on what only running it would tell, by field."""
    named, unnamed = [], set()
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Attribute) and node.attr in LOOKS):
            continue
        try:
            value = eval(compile(ast.Expression(node.value), "", "eval"), vars(module))
        except Exception:
            if node.attr != "split":  # of a string
                unnamed.add((getattr(node.value, "attr", ""), LOOKS[node.attr]))
            continue
        named += [(pattern, LOOKS[node.attr]) for pattern, _ in _held(value)]
    return named, unnamed


def _given(tree: ast.AST, module: ModuleType) -> Iterator[tuple[re.Pattern[str], str, int]]:
    """What functions give to `re.search` and the like, or compile when they are called."""
    place = module.__name__.removeprefix("steelyard.")
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if (place, function.name) in CALLED_AT_IMPORT:
            continue
        for node in ast.walk(function):
            if not (isinstance(node, ast.Call) and ast.unparse(node.func).startswith("re.")):
                continue
            method = ast.unparse(node.func).removeprefix("re.")
            if method not in (*LOOKS, "compile"):
                continue
            flags = next((part for part in map(ast.unparse, node.args[1:]) if part.startswith("re.")), "0")
            for pattern in _values(node.args[0], module, GIVEN.get((place, function.name), {})):
                compiled = re.compile(getattr(pattern, "pattern", pattern), eval(flags))
                yield compiled, LOOKS.get(method, "search"), node.lineno


def _values(given: ast.expr, module: ModuleType, known: Mapping[str, Iterable[Any]]) -> Iterator[Any]:
    code = compile(ast.Expression(given), "", "eval")
    names = [name for name in known if name in code.co_names]
    for value in known[names[0]] if names else [None]:
        try:
            yield eval(code, vars(module), dict(zip(names, [value], strict=bool(names))))
        except NameError as error:
            raise AssertionError(
                f"{module.__name__}:{given.lineno}: {error}; tests/patterns.py (GIVEN) must say what it may be"
            ) from None


# --- texts that are made to slow a pattern down --------------------------------------------------------

COMMON = " \n\t<>\"'`{}[]()（）a一0,，.。-_*#|\\$:：;/&="
SAMPLES = 4
LONGEST_WORD = 10


def attacks(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    """How slow texts begin and what is repeated in them: what begins a match, and whatever may stand inside one."""
    random_ = random.Random(repr(pattern.pattern))
    tree = re._parser.parse(pattern.pattern, pattern.flags & ~re.UNICODE)  # type: ignore[attr-defined]
    words = [_word(tree, random_)[:LONGEST_WORD] for _ in range(SAMPLES)]
    starts = list(dict.fromkeys(word[:end] for word in words for end in range(1, len(word) + 1)))
    own = list(dict.fromkeys("".join(words)))[:8]
    pieces = dict.fromkeys((*own, *COMMON, *starts))
    return list(dict.fromkeys([*(("", piece) for piece in pieces), *((start, one) for start in starts for one in own)]))


def attack(begins: str, repeated: str, size: int) -> str:
    """A text of this size that ends as no pattern wants it to."""
    return begins + repeated * (size // len(repeated)) + "\x00"


def _word(tree: Iterable[Any], random_: random.Random) -> str:
    """A text that the pattern would match, nearly: what it looks ahead for is written too."""
    return "".join(_piece(str(kind).lower(), value, random_) for kind, value in tree)


def _piece(kind: str, value: Any, random_: random.Random) -> str:
    match kind:
        case "literal":
            return chr(value)
        case "not_literal":
            return "x" if value != ord("x") else "y"
        case "any":
            return random_.choice("a <")
        case "in":
            return _letter(value, random_)
        case "branch":
            return _word(random_.choice(value[1]), random_)
        case "subpattern":
            return _word(value[3], random_)
        case "max_repeat" | "min_repeat" | "possessive_repeat":
            least, most, inner = value
            times = min(int(most), least + random_.randrange(3))
            return "".join(_word(inner, random_) for _ in range(min(times, 6)))
        case "assert":
            return _word(value[1], random_)
        case "atomic_group":
            return _word(value, random_)
        case _:  # anchors, negative looks, back references
            return ""


CLASSES = {"digit": "0", "space": " ", "word": "a", "not_digit": "a", "not_space": "a", "not_word": "-"}


def _letter(members: list[Any], random_: random.Random) -> str:
    kind, value = random_.choice(members)
    if str(members[0][0]).lower() == "negate":
        return next(letter for letter in (*random_.sample("a <1-", 5), "一", "\x01") if not _within(letter, members))
    match str(kind).lower():
        case "literal":
            return chr(value)
        case "range":
            return chr(random_.choice(value))
        case _:
            return CLASSES[str(value).lower().removeprefix("category_").replace("uni_", "")]


def _within(letter: str, members: list[Any]) -> bool:
    """Whether a class without its `^` has this letter."""
    for kind, value in members[1:]:
        match str(kind).lower():
            case "literal" if chr(value) == letter:
                return True
            case "range" if value[0] <= ord(letter) <= value[1]:
                return True
            case "category":
                name = str(value).lower().removeprefix("category_").replace("uni_", "")
                escape = {"digit": r"\d", "space": r"\s", "word": r"\w"}[name.removeprefix("not_")]
                if bool(re.match(escape, letter)) != name.startswith("not_"):
                    return True
    return False
