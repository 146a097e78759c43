"""An answer into atoms: statements that can be read and checked one by one, together the whole of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache

from steelyard.judges.embedded.blocks import Block, blocks, unmarked
from steelyard.judges.embedded.claims import is_fallback, kind_of
from steelyard.judges.embedded.clauses import Clause, Link, clauses
from steelyard.judges.embedded.lists import listed
from steelyard.judges.embedded.names import Names
from steelyard.judges.embedded.subjects import complete
from steelyard.tasks import SplitAtom
from steelyard.text import HAN, LETTER_OR_DIGIT, THINKING, fold, normalise, sentences, word_pieces

# A question or a courtesy this short holds no statement; longer ones are kept, so that nothing is passed over.
SHORTEST_STATEMENT = 7
LONGEST_CONTEXT = 40
# So many of a sentence's words must recur in the atoms; what falls below is kept as it stands. The protocols ask
# again below .35.
COVERED = 0.4
INTRODUCES = re.compile(
    r"(?:有)?(?:以下|如下|下列|下面)(?:几|[一二三四五六七八九十\d])?[个种点项类条]?(?:方面)?|所示"
    r"|(?:the )?following\b",
    re.IGNORECASE,
)
GOES_ON = re.compile(
    r"(?:包括|包含|有|含|是|为|如|例如|比如|支持|提供|需要|可以|能)\Z|\b(?:include|includes|including|are|is|offers"
    r"|supports|has)\Z"
)
END = " \t\u3000。；;，,、"


class _Atoms:
    """Atoms as they are found: numbered, each once, with the links between causes and effects."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.effects: dict[int, int] = {}
        self._known: dict[str, int] = {}

    def add(self, text: str) -> int | None:
        text = tidy(text)
        if not LETTER_OR_DIGIT.search(text):
            return None
        # As in a reader's eyes: width, case and the last stop do not make another statement.
        key = "".join(fold(text).casefold().split()).rstrip(".。;；,，!！")
        if key not in self._known:
            self.texts.append(text)
            self._known[key] = len(self.texts)
        return self._known[key]

    def link(self, causes: Sequence[int], effect: int | None) -> None:
        for cause in causes:
            if effect is not None and cause != effect and self.effects.get(effect) != cause:
                self.effects.setdefault(cause, effect)


def split(answer: str, question: str = "") -> list[SplitAtom]:
    """The atoms of an answer in its own order. An answer that declines as a whole states nothing."""
    return list(_split(answer, question))


# Splitting and judging ask about the same answer one after the other.
@lru_cache(maxsize=64)
def _split(answer: str, question: str) -> tuple[SplitAtom, ...]:
    if is_fallback(answer, question):
        return ()
    atoms = _Atoms()
    headings: list[str] = []
    # Whoever was thought of before the answer is not yet named in it.
    for part in THINKING.split(answer):
        headings += _read(part, atoms, Names.about(question))
    _cover(answer, headings, atoms)
    return tuple(
        SplitAtom(id=number, text=text, causal_of=atoms.effects.get(number))
        for number, text in enumerate(atoms.texts, 1)
    )


def _read(text: str, atoms: _Atoms, names: Names) -> list[str]:
    """Add the atoms of a text; what comes back are its headings."""
    previous: list[int] = []
    headings: list[str] = []
    for block in blocks(text):
        if block.kind == "heading":
            headings.append(block.text)
            continue
        for sentence in _sentences(block):
            if not states_nothing(sentence):
                previous = _take(sentence, block, atoms, names, previous) or previous
    return headings


def _cover(answer: str, headings: Sequence[str], atoms: _Atoms) -> None:
    """Add what the atoms do not speak of: a heading that announces more than its items say, or a sentence whole."""
    said = word_pieces("\n".join(atoms.texts))
    for sentence in sentences(answer):
        wanted = word_pieces(sentence)
        if len(wanted & said) >= COVERED * len(wanted) or states_nothing(sentence):
            continue
        plain = unmarked(sentence)
        for added in (*(heading for heading in headings if heading in plain), plain):
            if len(wanted & said) < COVERED * len(wanted):
                atoms.add(added.rstrip(":： "))
                said |= word_pieces(added)
        if len(wanted & said) < COVERED * len(wanted):
            atoms.add(sentence)
            said |= wanted


def _sentences(block: Block) -> list[str]:
    return [block.text] if block.kind in ("code", "row") else sentences(block.text)


def states_nothing(sentence: str) -> bool:
    """A question, a greeting or a word too short to inform."""
    if sentence.endswith(("?", "？")) and kind_of(sentence) == "question":
        return True
    return len(normalise(sentence)) <= SHORTEST_STATEMENT and kind_of(sentence) in ("greeting", "meta", "question")


def _take(sentence: str, block: Block, atoms: _Atoms, names: Names, previous: list[int]) -> list[int]:
    """The atoms of one sentence, added and linked; `previous` are those of the sentence before it."""
    if block.kind in ("code", "row"):
        whole = atoms.add(_in_context(sentence, block.heading))
        return [whole] if whole else []
    names.next_sentence()
    found: list[tuple[list[int], Link]] = []
    for text, link in _statements(sentence, names):
        added = [atoms.add(_in_context(part, block.heading)) for part in listed(text)]
        found.append(([number for number in added if number], link))
    for at, (numbers, link) in enumerate(found):
        if link == "effect":
            causes = [number for earlier, _ in found[:at] for number in earlier] or previous[-1:]
            atoms.link(causes, numbers[0] if len(numbers) == 1 else None)
        elif link == "cause":
            after = found[at + 1][0] if at + 1 < len(found) else found[at - 1][0] if at else previous[-1:]
            atoms.link(numbers, after[0] if len(after) == 1 else None)
    return [number for numbers, _ in found for number in numbers]


def _statements(sentence: str, names: Names) -> Iterator[tuple[str, Link]]:
    """The clauses made complete; one whose subject nobody knows stays with the clause before it."""
    waiting: tuple[str, Link] | None = None
    for at, clause in enumerate(clauses(sentence)):
        if kind_of(clause.opener) == "meta":
            clause = clause._replace(opener="")
        text = complete(clause, names, first=at == 0)
        names.hear(clause.opener + clause.core)
        if text is None and waiting is not None:
            waiting = (_joined(waiting[0], clause), waiting[1])
            continue
        if waiting is not None:
            yield waiting
        waiting = (clause.opener + clause.core if text is None else text, clause.link)
    if waiting is not None:
        yield waiting


def _joined(text: str, clause: Clause) -> str:
    whole = clause.opener + clause.core
    return f"{text}，{whole}" if HAN.search(text + whole) else f"{text}, {whole}"


def _in_context(text: str, heading: str) -> str:
    """A list item or a row under its heading; an item that names its heading's subject needs no more."""
    name = heading.rstrip(":： ")
    if not name or len(name) > LONGEST_CONTEXT or kind_of(heading) == "meta" or name in text:
        return text
    if GOES_ON.search(name):
        return f"{name}{text}" if HAN.search(name) else f"{name} {text}"
    name = INTRODUCES.sub("", name).strip("，, 的") or name
    return f"{name}：{text}" if HAN.search(name + text) else f"{name}: {text}"


def tidy(text: str) -> str:
    """An atom without the stop that ended its sentence, in Chinese; English keeps its full stop."""
    text = text.strip()
    if HAN.search(text):
        return text.rstrip(END)
    text = text.rstrip(" ,;\t")
    return text if not text or text[-1] in ".!?:\"')]" or not text[-1].isalnum() or "\n" in text else f"{text}."
