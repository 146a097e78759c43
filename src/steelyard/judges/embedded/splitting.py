"""An answer into atoms: stretches of it, word for word, that are checked one by one; together they are all of it.

What an atom leans on (its question, the sentence before it) is read beside it by whoever judges it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from steelyard.judges.embedded.blocks import Block, blocks, unmarked
from steelyard.judges.embedded.clauses import Link, clauses
from steelyard.judges.embedded.kinds import is_fallback, is_yes, kind_of
from steelyard.tasks import SplitAtom
from steelyard.text import HAN, LETTER_OR_DIGIT, THINKING, fold, normalise, sentences, wording

# A question or a courtesy this short holds no statement; longer ones are kept, so that nothing is passed over.
SHORTEST_STATEMENT = 7
# So many of a sentence's words must recur in the atoms; the protocols ask again below .35.
COVERED = 0.4
# 根据提供的资料，… says where the answer comes from, not what it is.
OPENER = re.compile(r"[^，,:：]{2,40}[，,]\s*")
END = " \t\u3000。；;，,、:："


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

    def link(self, cause: int | None, effect: int | None) -> None:
        if cause and effect and cause != effect and self.effects.get(effect) != cause:
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
    for part in THINKING.split(answer):
        _read(part, atoms)
    _cover(answer, atoms)
    if not atoms.texts and is_yes(answer) is not None:
        atoms.add(answer)
    return tuple(
        SplitAtom(id=number, text=text, causal_of=atoms.effects.get(number))
        for number, text in enumerate(atoms.texts, 1)
    )


def _read(text: str, atoms: _Atoms) -> None:
    previous: int | None = None
    headings: list[str] = []
    for block in blocks(text):
        if block.kind == "heading":
            headings.append(block.text)
            continue
        if headings:
            _announce(headings, block, atoms)
            headings = []
        if block.kind in ("code", "row"):
            previous = atoms.add(_under(block.prefix, block.text))
            continue
        for at, sentence in enumerate(sentences(block.text)):
            if not states_nothing(sentence):
                # Every sentence of a list item completes its introduction; of a paragraph only the first does.
                prefix = block.prefix if block.kind == "item" or at == 0 else ""
                previous = _take(sentence, prefix, atoms, previous) or previous


def _announce(headings: Sequence[str], block: Block, atoms: _Atoms) -> None:
    """Add headings that say more than the first sentence under them; the protocols read both as one sentence."""
    first = next(iter(sentences(block.text)), "")
    if not _is_covered(" ".join((*headings, first)), wording(_under(block.prefix, first))):
        for sentence in (sentence for heading in headings for sentence in sentences(heading)):
            atoms.add(sentence)


def states_nothing(sentence: str) -> bool:
    """A question, a greeting or a word too short to inform."""
    if sentence.endswith(("?", "？")) and kind_of(sentence) == "question":
        return True
    return len(normalise(sentence)) <= SHORTEST_STATEMENT and kind_of(sentence) in ("greeting", "meta", "question")


def _take(sentence: str, prefix: str, atoms: _Atoms, previous: int | None) -> int | None:
    """Add the atoms of one sentence and link them; `previous` is the last atom before it."""
    opener = OPENER.match(sentence)
    if opener and kind_of(opener.group()) == "meta":
        sentence = sentence[opener.end() :]
    found: list[tuple[int | None, Link]] = [
        (atoms.add(_under(prefix, clause.text)), clause.link) for clause in clauses(sentence)
    ]
    for at, (number, link) in enumerate(found):
        before = found[at - 1][0] if at else previous
        if link == "effect":
            atoms.link(before, number)
        elif link == "cause":
            # 因为甲，乙 and 乙，因为甲.
            atoms.link(number, found[at + 1][0] if at == 0 and len(found) > 1 else before)
    return found[-1][0]


def _under(prefix: str, text: str) -> str:
    """An item or a row after the heading or introduction that it completes; one that repeats it needs no more."""
    name = prefix.rstrip(":： ")
    return text if not name or name in text or kind_of(prefix) == "meta" else f"{prefix}{text}"


def _cover(answer: str, atoms: _Atoms) -> None:
    """Add each sentence whole that the atoms do not speak of."""
    said = wording("\n".join(atoms.texts))
    for sentence in sentences(answer):
        for added in (unmarked(sentence), sentence):
            if not _is_covered(sentence, said) and not states_nothing(sentence):
                atoms.add(added)
                said |= wording(added)


def _is_covered(text: str, said: set[str]) -> bool:
    wanted = wording(text)
    return len(wanted & said) >= COVERED * len(wanted)


def tidy(text: str) -> str:
    """An atom without the stop that ended its sentence, in Chinese; English keeps its full stop."""
    text = text.strip()
    return text.rstrip(END) if HAN.search(text) else text.rstrip(" ,;:\t")
