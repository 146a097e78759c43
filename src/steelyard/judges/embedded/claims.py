"""What kind of saying a statement is, and whether an answer as a whole declines.

Precision first: what is not clearly an opinion, advice or courtesy is a claim, and claims are checked.
"""

from __future__ import annotations

import re
from typing import Literal

from steelyard.judges.embedded.grammar import FINITE_WORD, STATED
from steelyard.judges.embedded.meaning import plain, words
from steelyard.judges.embedded.phrases import (
    ADVICE,
    ADVISED_BY,
    APOLOGY,
    BUT,
    CODE,
    COURTESY,
    ELSEWHERE,
    HEDGE,
    IN_SPITE,
    META,
    OPENING,
    OPINION,
    QUESTION_END,
    QUOTED,
    REFUSAL,
    REFUSAL_EN,
    REPORTED,
    TURN,
    TURNED,
)
from steelyard.text import HAN, LETTER_OR_DIGIT, sentences

Kind = Literal["claim", "opinion", "advice", "greeting", "hedge", "question", "meta"]

PIECE = re.compile(r"[，,；;。！!~～…]+|(?<=[a-z])\.(?=\s|\Z)|(?<=\s)[-–—](?=\s)")
ANSWERED = re.compile(r"[。.!！]\s*\S.{3,}[?？]")
ASKING = re.compile(
    r"谁|什么|哪|怎|咋|啥|几(?![乎个])|多少|为何|何时|何处|是否|是不是|有没有|能不能|要不要|会不会|还是"
)
SHORTEST_STORY = 5
EDGE = " \t\n\u3000\"'“”‘’「」『』*_()（）.。,，!！~～:：😊🙂😀👋"


def kind_of(text: str, question: str = "") -> Kind:
    """What the text is. `question` is there for judges that need it; these rules read the text alone."""
    if CODE.search(text):
        return "meta"
    said = plain(text).strip()
    bare = said.strip(EDGE)
    if not bare:
        return "meta"
    if (asked := QUESTION_END.search(said)) and _asks(said, asked["quoted"]):
        return "question"
    pieces = [piece.strip(EDGE) for piece in PIECE.split(bare) if LETTER_OR_DIGIT.search(piece)]
    if pieces and all(COURTESY.fullmatch(piece) for piece in pieces):
        return "greeting"
    if META.fullmatch(bare) or META.fullmatch(said):
        return "meta"
    # What is quoted or reported is somebody else's view: that they hold it is a fact.
    own = QUOTED.sub("“”", said).strip(" 。.！!")
    if not LETTER_OR_DIGIT.search(own):
        own = bare
    if REPORTED.match(own):
        return "claim"
    if (hedge := HEDGE.search(own)) and not BUT.search(own, hedge.end()):
        return "hedge"
    if _advises(own):
        return "advice"
    return "opinion" if OPINION.search(own) else "claim"


def _asks(said: str, closing: str) -> bool:
    """Whether the question at the end is the whole of it: not the last of several sentences, not a quotation's."""
    is_quotation = bool(closing.strip(" )）")) and said[0] not in "\"'“‘「『"
    if is_quotation or ANSWERED.search(said):
        return False
    # 正剥虾呢 says what goes on; 你呢 and 放哪儿呢 ask.
    return not said.rstrip(EDGE).endswith("呢") or len(said) <= SHORTEST_STORY or bool(ASKING.search(said))


def _advises(said: str) -> bool:
    """Advice to the reader; what others advise is a claim about them."""
    for advice in ADVICE.finditer(said):
        word = re.search(r"不?(?:建议|推荐)", advice.group())
        if word is None or not ADVISED_BY.search(said[: advice.start() + word.start()]):
            return True
    return False


# --- declining ------------------------------------------------------------------------------------

LONGEST_FALLBACK = 600
SHORTEST_OF_ITS_OWN = 3


def is_fallback(answer: str, question: str = "") -> bool:
    """Whether the answer as a whole declines. An apology or a gap that is followed by a real answer does not count."""
    if len(answer) > LONGEST_FALLBACK * 4:
        return False
    declines = False
    for sentence in sentences(answer):
        said = _said(sentence)
        if said == "answers":
            return False
        declines = declines or said == "declines"
    return declines


def _said(sentence: str) -> Literal["declines", "answers", "nothing"]:
    """What a sentence does: declines, says something of substance, or neither (courtesy, where else to look)."""
    if kind_of(sentence) in ("question", "greeting", "meta"):
        return "nothing"
    parts = [part.strip(EDGE) for part in TURN.split(plain(sentence).strip())]
    parts = [part for part in parts if LETTER_OR_DIGIT.search(part)]
    own = [bool(IN_SPITE.match(part)) for part in parts]
    parts = [TURNED.sub("", part, count=1) for part in parts]
    refuses = any(map(_refuses, parts))
    declines = began = False
    for part, is_own in zip(parts, own, strict=True):
        if _refuses(part):
            declines = began = True
        elif APOLOGY.fullmatch(part):
            declines = True
        elif _is_beside(part):
            began = True
        elif not (refuses and OPENING.match(part)) and not (began and _goes_on(part, is_own)):
            return "answers"
    return "declines" if declines else "nothing"


def _refuses(part: str) -> bool:
    return bool(REFUSAL.match(part) if HAN.search(part) else REFUSAL_EN.search(part))


def _is_beside(part: str) -> bool:
    return bool(COURTESY.fullmatch(part) or META.fullmatch(part) or ELSEWHERE.match(part))


def _goes_on(part: str, is_own: bool) -> bool:
    """Whether a piece only continues the one before it: …, NY. After a "but" three words say something of their own."""
    if is_own and len(words(part)) >= SHORTEST_OF_ITS_OWN:
        return False
    return not (STATED.search(part) if HAN.search(part) else FINITE_WORD.search(part))
