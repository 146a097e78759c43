"""Text from outside costs time in proportion to its length, whatever it holds."""

from __future__ import annotations

import gc
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from types import FrameType

import pytest

from patterns import Use, attack, attacks, uses
from reading import FixedReader
from report_fixtures import atomic, rag
from steelyard.errors import TranscriptError
from steelyard.judges import parsing
from steelyard.judges.embedded.kinds import is_fallback, kind_of
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.judges.embedded.splitting import split
from steelyard.judges.embedded.statements import in_context
from steelyard.judges.embedded.support import ClaimInContext, PassageReading
from steelyard.judges.payload import readable
from steelyard.judges.tidy import tidy
from steelyard.prompts import Prompts, fence, fill
from steelyard.protocols import get_protocol, transcripts
from steelyard.protocols.rules import rule_on
from steelyard.records import Ask, Evidence, Numbered, Tolerance, ValueDifference
from steelyard.reports.blocks import clean, one_line
from steelyard.reports.markdown import escape
from steelyard.reports.marking import Searched, evidence_marks, segments
from steelyard.samples import samples_from
from steelyard.tasks import AtomicData, AtomicReply, ComplianceReply, ScorecardReply
from steelyard.text import (
    contains_quote,
    find_quote,
    fold,
    language_of,
    normalise,
    reason_in_traditional,
    sentences,
    word_pieces,
)
from steelyard.text.figures import Values, stated
from steelyard.text.measures import measure
from steelyard.text.quantities import quantity
from steelyard.text.suspicion import shows_injection, signs
from steelyard.text.tolerance import ruling
from steelyard.text.values import figures, read
from steelyard.trust.audit.changes import planted

# A look that takes four times the text may take so many times the time: 4 where it is linear, 16 where it is not.
MOST_GROWTH = 8.0
NOTHING = 100e-6
FAR_TOO_LONG = 0.5


class TooSlow(BaseException):
    """Not an Exception: whatever is being timed must not catch it."""


@pytest.fixture(autouse=True)
def _interrupted() -> Iterator[None]:
    """What takes exponential time is interrupted; counted is the time of this process, not of a busy machine."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGVTALRM, stop)
    yield
    signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    signal.signal(signal.SIGVTALRM, before)


def seconds(work: Callable[[str], object], text: str, most: float) -> float:
    signal.setitimer(signal.ITIMER_VIRTUAL, most)
    gc.disable()  # what it looks through grows with the tests that ran before
    began = time.thread_time()
    try:
        work(text)
    except TooSlow:
        return float("inf")
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        gc.enable()
    return time.thread_time() - began


def slow_on(use: Use) -> tuple[str, str] | None:
    """A text on which the look takes more than linear time: how it begins and what is repeated in it."""
    look: Callable[[str], object] = getattr(use.pattern, use.look)
    for begins, repeated in attacks(use.pattern):

        def takes(size: int, begins: str = begins, repeated: str = repeated) -> float:
            return seconds(look, attack(begins, repeated, size), FAR_TOO_LONG)

        first = takes(1000)
        if first < NOTHING:
            continue
        # Of several tries the fastest: another process may have had the core meanwhile.
        if first > FAR_TOO_LONG or all(takes(2000) > MOST_GROWTH * min(takes(500) for _ in range(3)) for _ in range(4)):
            return begins, repeated
    return None


@pytest.mark.parametrize(
    ("pattern", "look"),
    [
        (r"<[^>]*>", "findall"),
        (r'"(?:[^"\\]|\\.)*"', "findall"),
        (r"[A-Za-z.]+\Z", "search"),
        (r"[ \t]*(```+|~~~+)[ \t]*([\w+#.-]*)[ \t]*", "fullmatch"),
        (r"<(?:script|style)\b.*?</(?:script|style)>", "findall"),
        (r"(“[^”]*”|：(?:“[^”]*”|[^；“])*)", "findall"),
        (r"(?:a|aa)+b", "match"),
    ],
)
def test_what_is_slow_is_found(pattern: str, look: str) -> None:
    """Patterns that the package once had, and a classic: the texts tried below do slow them down."""
    assert slow_on(Use("here", re.compile(pattern, re.DOTALL), look))


def test_every_pattern_takes_linear_time() -> None:
    """Whatever the text is, and however the package looks: from one place, from everywhere, for all matches."""
    found = uses()
    assert len(found) > 300
    slow = [
        f"{use.where}: {use.look} {use.pattern.pattern[:120]!r} on {tried[0]!r} + {tried[1]!r} × n"
        for use in found
        if (tried := slow_on(use))
    ]
    assert not slow, "\n".join(slow)


# --- whole functions -------------------------------------------------------------------------------

PIECES = {
    "spaces": " ", "tabs and lines": "\t\n", "lines": "\n", "less": "<", "tags": "<script ", "think": "<think>",
    "quotes": '"', "escaped quotes": '"\\', "apostrophes": "'", "opening quotes": "“", "braces": "{", "brackets": "[",
    "objects": '{"atoms": [', "keys": '{"label":', "fullwidth brackets": "【", "parentheses": "（", "letters": "a",
    "capitals": "A-", "han": "一", "zeros": "0", "ones": "1,", "decimals": "1.", "eleven": "x11", "commas": ",",
    "stops": "。", "dots": ".", "dashes": "-", "stars": "*", "underscores": "_*", "hashes": "#", "backslashes": "\\",
    "unicode escapes": "\\ud", "pipes": "|", "fences": "```\n", "fence": "`", "dollars": "$$$", "ampersands": "&",
    "entities": "&#1", "colons": "：", "combining": "\u0301", "base64": "aGVsbG8=", "words": "one ", "numbers": "1 ",
    "items": "1. a\n", "atoms": "原子信息1：", "rounds": "第1轮", "scores": "得分：【1】", "ellipses": "…",
}  # fmt: skip
SIZE = 25_000
REPLIES = (AtomicReply, ComplianceReply, ScorecardReply)
CODE = "0123456789ab"


def _ask(text: str) -> Ask:
    data = AtomicData(
        question=text, references=(text,), answer=text, date="", place="", atoms=(Numbered(id=1, text=text),)
    )
    return Ask(task="atomic.judge", language="zh", data=data, reply=AtomicReply)


def _parse(text: str, protocol: str | None) -> None:
    try:
        transcripts.parse_all(text, protocol)
    except TranscriptError:
        return


def _read_reply(text: str) -> None:
    for reply in REPLIES:
        parsing.read(text, reply, CODE)
        parsing.read(f'{{"code": "{CODE}", "atoms": [{{"id": 1, "label": "{text}', reply, CODE)
        parsing.read(f'{text}{{"code": "{CODE}", {text}', reply, CODE)
        parsing.read(json.dumps({"code": CODE, "atoms": [{"id": text, "label": text}]}), reply, CODE)


def _mark(text: str) -> None:
    searched = Searched(text)
    for wanted in (text[: len(text) // 2], text[1:], f"{text[::-1]} b"):
        searched.quote(wanted)
        searched.sentence(wanted)
    verdict = atomic("x", ["correct"])
    evidence = Evidence(source="reference", reference=0, quote=text[:100], verified=True)
    verdict = verdict.model_copy(update={"items": (verdict.items[0].model_copy(update={"evidence": evidence}),)})
    segments(text, [])
    evidence_marks(text, 0, verdict)


def _quote(text: str) -> None:
    half = text[: len(text) // 2 - 1]
    contains_quote(text, half)
    contains_quote(text, f"{half}…{half}")
    find_quote((text, "b"), text[1:])


def _rule(text: str) -> None:
    criteria = (
        "回答不超过100字", "必须以“您好”开头", "不得出现“可能”", "使用列表，至少3条", "提供电话4001234567",
        "回答必须是合法的JSON", "the answer must have at most 3 sentences", "must contain 'hello'", "no emoji",
        "ends with a question mark",
    )  # fmt: skip
    for criterion in criteria:
        rule_on(criterion, text)
    rule_on(text, "ok")
    rule_on(text[:300], "ok")


def _sample(text: str) -> None:
    list(samples_from([{"question": text, "answer": text, "references": text, "tags": text}], "rag"))
    list(samples_from([{"question": "?", "answer": "!", "references": f"['a' '{text}]"}], "rag"))
    list(samples_from([{"question": "?", "answer": "!", "references": f'a","{text}'}], "rag"))
    list(samples_from([{"messages": f"[{text}]", "criteria": text}], "dialogue"))


def _first_round(text: str) -> None:
    (sample,) = samples_from([{"question": text, "answer": text, "references": [text]}], "rag")
    for name in ("atomic", "grounded", "scorecard"):
        protocol = get_protocol(name)
        options = protocol.parse_options({"max_chars": 10**6})
        if not isinstance(sample, Exception):
            # Each ask holds the whole context, so that many of them are long together; one is enough.
            for asked in next(iter(protocol.rounds(sample, options)), ())[:1]:
                Prompts.shipped().messages(asked)


def _differ(text: str) -> None:
    for kind in ("statistic", "specification", "date"):
        difference = ValueDifference.model_validate({"kind": kind, "claimed": f"1{text}", "stated": f"{text}1"})
        ruling(difference, Tolerance())


def _values(text: str) -> None:
    figures(text)
    stated(text)
    Values([text[at : at + 200] for at in range(0, len(text), 200)]).missing(f"{text[:2000]} 1.5 2.5")


def _reading(text: str) -> None:
    reading = PassageReading([text[: len(text) // 2], text], Phrasing("zh", text, sources=(text,)), FixedReader())
    # What has no value in it is decided by the reader alone: no weights are needed.
    reading.evidence([ClaimInContext(text[:2000], text), ClaimInContext(text[-50:]), ClaimInContext("1 2 3 4 a b c")])
    in_context([text[at : at + 100] for at in range(0, len(text), 100)], text, "?")


FUNCTIONS: dict[str, Callable[[str], object]] = {
    "sentences": sentences,
    "normalise": normalise,
    "fold": fold,
    "language_of": language_of,
    "word_pieces": word_pieces,
    "reason_in_traditional": reason_in_traditional,
    "quotes": _quote,
    "signs": signs,
    "suspected": lambda text: shows_injection([text], [text]),
    "replies": _read_reply,
    "tidy": lambda text: tidy({"atoms": [{"id": text, "label": text}]}, AtomicReply),
    "error bodies": lambda text: readable(text.encode("utf-8", "replace")),
    "transcripts": lambda text: _parse(text, None),
    "atomic": lambda text: _parse(f"一、原子信息生成\n1. {text}\n三、准确性评估\n1. {text}", "atomic"),
    "grounded": lambda text: _parse(f"二、相关性评价\n1. {text}\n{text}", "grounded"),
    "scorecard": lambda text: _parse(f"## 忠实度\n1. {text}\n{text}", "scorecard"),
    "dialogue": lambda text: _parse(f"第1轮对话分析\n细则1：{text}\n理由：{text}", "dialogue"),
    "prompts": lambda text: Prompts.shipped().messages(_ask(text)),
    "fences": lambda text: fence("answer", text, "c") + fill("$$$a$$$", {"a": text}, "x"),
    "samples": _sample,
    "rules": _rule,
    "quantities": lambda text: (quantity(text), measure(text), read(text)),
    "values": _values,
    "reading": _reading,
    "splitting": lambda text: split(text, text[:100]),
    "kinds": lambda text: (kind_of(text, text), is_fallback(text, text)),
    "differences": lambda text: _differ(text),
    "marking": _mark,
    "clean": lambda text: (clean(text), one_line(text), escape(text)),
    "planted errors": lambda text: planted(rag("x", answer=text, references=(text,))),
    "first round": _first_round,
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_takes_linear_time(name: str) -> None:
    """A hundred thousand characters of anything: not four times as long as a quarter of it, and seconds at most."""
    work, slow = FUNCTIONS[name], []
    for what, piece in PIECES.items():
        took = seconds(work, piece * (SIZE * 4 // len(piece)), 30)
        if took < 0.1:
            continue
        # What looks slow is looked at again: another process may have had the core meanwhile.
        for _ in range(2):
            small = seconds(work, piece * (SIZE // len(piece)), 30)
            if took <= MOST_GROWTH * small:
                break
            took = seconds(work, piece * (SIZE * 4 // len(piece)), 30)
        else:
            if took > MOST_GROWTH * small:
                slow.append(f"{what}: {small:.3f} s, then {took:.3f} s")
    assert not slow, "\n".join(slow)
