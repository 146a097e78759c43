"""Two answers compared: the one that passages contradict is the less correct one. The rest is left open."""

from __future__ import annotations

from typing import Literal, NamedTuple

from steelyard.judges.embedded.atomic import atom_verdicts
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.support import Read
from steelyard.judges.embedded.voice import PromptLanguage, Voice
from steelyard.records import Numbered
from steelyard.tasks import AtomVerdict, PairData, PairReply, PairVerdict, Unsure

# How the aspect begins that can be decided by reading.
CORRECTNESS = ("correctness", "正确性")
BEYOND = (
    "本评判者只在参考资料与其中一个回答矛盾时比较正确性，其余不判断",
    "this judge compares correctness only, and only where the passages contradict one of the answers",
)


class _Checked(NamedTuple):
    """An answer's statements that passages contradict, and whether they support any."""

    answer: str
    wrong: list[AtomVerdict]
    texts: dict[int, str]
    is_supported: bool


def judge(data: PairData, language: PromptLanguage, read: Read) -> PairReply:
    voice = Voice(language, data.question, data.first, data.second, sources=data.references)
    found = None
    if data.references and any(one.text.startswith(CORRECTNESS) for one in data.criteria):
        found = _compared(data, language, read, voice)
    given = [
        found.model_copy(update={"id": one.id}) for one in data.criteria if found and one.text.startswith(CORRECTNESS)
    ]
    told = {one.id for one in given}
    open_ = [Unsure(items="criteria", id=one.id, reason=voice(*BEYOND)) for one in data.criteria if one.id not in told]
    return PairReply(criteria=given, unsure=open_)


def _compared(data: PairData, language: PromptLanguage, read: Read, voice: Voice) -> PairVerdict | None:
    """Which of the two is more correct, where exactly one of them is contradicted and the other one supported."""
    first, second = (_checked(answer, data, language, read) for answer in (data.first, data.second))
    if second.wrong and not first.wrong and first.is_supported:
        return _preferred("first", second, voice)
    if first.wrong and not second.wrong and second.is_supported:
        return _preferred("second", first, voice)
    return None


def _preferred(better: Literal["first", "second"], other: _Checked, voice: Voice) -> PairVerdict:
    seen = other.wrong[0]
    claim = other.texts[seen.id]
    said = voice("另一个回答说“{claim}”：", 'the other answer says "{claim}": ', claim=claim)
    quote = claim if claim in other.answer else None
    return PairVerdict(id=0, quote=quote, reason=said + seen.reason, label=better, confidence=seen.confidence)


def _checked(answer: str, data: PairData, language: PromptLanguage, read: Read) -> _Checked:
    atoms = tuple(Numbered(id=atom.id, text=atom.text) for atom in split(answer, data.question))
    reading = read(data.references, data.question, answer)
    verdicts = atom_verdicts(atoms, data.question, reading, language, data.references)
    return _Checked(
        answer,
        [one for one in verdicts if one.label == "wrong"],
        {atom.id: atom.text for atom in atoms},
        any(one.label == "correct" for one in verdicts),
    )
