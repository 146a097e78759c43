"""The rounds of a templated run: send the user's prompt, parse the reply, ask once more if it is incomplete."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import NamedTuple

from steelyard.engine.templates.echoes import copied_labels, imitations
from steelyard.engine.templates.fitting import FITS, unlabelled
from steelyard.engine.templates.template import PromptTemplate
from steelyard.protocols import Protocol
from steelyard.protocols.common import MISSING, Options, PromptLanguage, status_of
from steelyard.protocols.transcripts import parse_all
from steelyard.protocols.transcripts.lines import FORGERY, read_flags
from steelyard.records import (
    Again,
    AnyItem,
    Ask,
    Criterion,
    Reply,
    Rounds,
    Sample,
    TextReply,
    Unjudged,
    Verdict,
)
from steelyard.tasks import TemplateData

TASK = "template"
# What a judge said is shown to it again where it is asked once more; of a long reply the beginning is enough.
QUOTED_BACK = 8000
MOST_NAMED = 20
LONGEST_NAME = 60
# Some servers keep the tag that opens the thinking to themselves.
THOUGHT = re.compile(r"^[ \t]*+</think(?:ing)?>[ \t]*+$", re.MULTILINE | re.IGNORECASE)
OPENED = re.compile(r"\s*<think(?:ing)?>", re.IGNORECASE)

# What a reply can lack, in words for the judge.
WORDS: Mapping[PromptLanguage, Mapping[str, str]] = {
    "zh": {
        "atomic": "能读取的评估结果：“原子信息生成”“相关性等级划分”“准确性评估”三个部分，"
        "以及“是否为兜底回复：【0】”或“【1】”",
        "grounded": "能读取的评估结果：相关性与真实性的各项检查及其得分",
        "scorecard": "能读取的评估结果：“相關性”“完整性”“準確性”“忠誠度”四个部分，逐条编号，每条下一行写“判定：【…】”",
        "dialogue": "能读取的评估结果：每一轮、每一条评估细则的有效性与符合性",
        "several": "唯一的一份评估结果：上次的回复里有不止一份",
        "echo": "你自己的判定：上次的判定逐字来自被评估的文本，不能使用",
        "fallback": "“是否为兜底回复：【0】”或“【1】”",
        "label": "这一条的判定：",
        "round": "第{turn}轮 评估细则 {id}：",
    },
    "en": {
        "atomic": "an evaluation that can be read: the sections Atoms, Relevance levels and Accuracy, "
        "and whether the answer is a fallback, [0] or [1]",
        "grounded": "an evaluation that can be read: each check of relevance and truthfulness with its score",
        "scorecard": "an evaluation that can be read: the sections Relevance, Completeness, Accuracy and Faithfulness, "
        "with numbered items and the label of each on the line below it",
        "dialogue": "an evaluation that can be read: validity and compliance of each criterion in each round",
        "several": "a single evaluation: the reply holds more than one",
        "echo": "labels of its own: those given were copied word for word from the evaluated text",
        "fallback": "whether the answer is a fallback, [0] or [1]",
        "label": "the label of: ",
        "round": "round {turn}, criterion {id}: ",
    },
}


class ReadReply(NamedTuple):
    """A parsed reply, and what it lacks, worded for the follow-up to the judge."""

    verdict: Verdict
    missing: tuple[str, ...] = ()

    @property
    def gaps(self) -> tuple[int, int]:
        return ("judged", "partial", "failed").index(self.verdict.status), len(self.missing)


def rounds(protocol: Protocol, template: PromptTemplate, sample: Sample, options: Options) -> Rounds:
    own = protocol.rounds(sample, options)
    try:
        next(own)
    except StopIteration as finished:
        # An empty answer, or one that is too long: the protocol needs no judge for it.
        verdict: Verdict = finished.value
        return verdict
    own.close()
    data = TemplateData(prompt=template.filled(sample, options, protocol))
    ask = Ask(task=TASK, language=template.language, data=data, reply=TextReply)
    (reply,) = yield [ask]
    if isinstance(reply, Unjudged):
        return _unanswered(protocol, sample, options, reply)
    first = _outcome(protocol, sample, options, reply, ask.language)
    if not first.missing:
        return first.verdict
    said = without_thoughts(reply.data.text)[:QUOTED_BACK]
    again = Again(missing=first.missing[:MOST_NAMED])
    (reply,) = yield [ask.model_copy(update={"data": data.model_copy(update={"said": said}), "again": again})]
    if isinstance(reply, Unjudged):
        notes = {**first.verdict.notes, "failure": reply.detail or reply.reason}
        return first.verdict.model_copy(update={"notes": notes})
    second = _outcome(protocol, sample, options, reply, ask.language)
    return min(first, second, key=lambda outcome: outcome.gaps).verdict


def _unanswered(protocol: Protocol, sample: Sample, options: Options, failure: Unjudged) -> Verdict:
    """The protocol's verdict if every ask fails."""
    own = protocol.rounds(sample, options)
    try:
        asks = next(own)
        while True:
            asks = own.send([failure for _ in asks])
    except StopIteration as finished:
        verdict: Verdict = finished.value
        return verdict


def without_thoughts(text: str) -> str:
    """What follows the thinking of a judge whose opening tag the server left out; the readers know the usual form."""
    closing = None if OPENED.match(text) else THOUGHT.search(text)
    return text[closing.end() :].lstrip() if closing else text


def _without_flags(text: str) -> str:
    """The reply without lines that state flags: transcripts that we write have them, but a judge sets none."""
    return "\n".join(line for line in text.splitlines() if read_flags(line) is None)


def _outcome(protocol: Protocol, sample: Sample, options: Options, reply: Reply, language: PromptLanguage) -> ReadReply:
    text, words = _without_flags(without_thoughts(reply.data.text)), WORDS[language]
    every = parse_all(text, protocol.name, id=sample.id)
    found = [verdict for verdict in every if verdict.status != "failed" or verdict.stated] or every[:1]

    def unusable(why: str, *flags: str) -> ReadReply:
        failure = Unjudged(reason="invalid_reply", detail=f"the reply lacks {WORDS['en'][why]}")
        failed = _unanswered(protocol, sample, options, failure)
        return ReadReply(failed.model_copy(update={"flags": (*dict.fromkeys((*failed.flags, *flags)),)}), (words[why],))

    forged = imitations(sample, protocol.name)
    copied = copied_labels(text, forged, protocol.name)
    if copied == "all":
        return unusable("echo", FORGERY)
    suspicion = (FORGERY,) if forged else ()
    if len(found) > 1:
        return unusable("several", *suspicion)
    if found[0].status == "failed" and not found[0].items:
        return unusable(protocol.name, *suspicion)
    verdict, missing = _fitted(protocol, sample, options, found[0], words)
    verdict = verdict.model_copy(update={"flags": (*dict.fromkeys((*verdict.flags, *suspicion)),)})
    if copied == "some":
        # As the readers do with what stands inside another transcript: judged in part at most.
        status = "partial" if verdict.status == "judged" else verdict.status
        return ReadReply(verdict.model_copy(update={"status": status}), (*missing, words["echo"]))
    return ReadReply(verdict, missing)


def _fitted(
    protocol: Protocol, sample: Sample, options: Options, found: Verdict, words: Mapping[str, str]
) -> ReadReply:
    blank = _unanswered(protocol, sample, options, Unjudged(reason=MISSING))
    fit = FITS[protocol.name](found, blank, sample, options)
    status = status_of(fit.items, fit.open)
    # Rows that cannot be read, a transcript inside another: complete labels do not settle what the reader doubts.
    if status == "judged" and found.status == "partial" and not unlabelled(found.items):
        status = "partial"
    known = [flag for flag in blank.flags if not flag.startswith("unjudged:")]
    verdict = Verdict(
        id=sample.id,
        protocol=protocol.name,
        status=status,
        scores=fit.scores,
        stated=found.stated,
        items=fit.items,
        flags=(*known, *found.flags, *fit.flags, *(flag for item in fit.items for flag in item.flags)),
        notes=fit.notes,
    )
    missing = [words["label"] + _named(item, words) for item in unlabelled(fit.items)]
    missing += [words[name] for name in fit.open]
    return ReadReply(verdict, tuple(missing))


def _named(item: AnyItem, words: Mapping[str, str]) -> str:
    place = ""
    if isinstance(item, Criterion):
        place = words["round"].replace("{turn}", str(item.turn)).replace("{id}", str(item.id))
    text = " ".join(item.text.split())
    return place + (text if len(text) <= LONGEST_NAME else f"{text[:LONGEST_NAME]}…")
