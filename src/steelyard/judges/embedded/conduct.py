"""Whether one constraint on an answer is met, as far as that shows; where it does not show, it is left open."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.acts import NAMED, NOT, QUESTION_LAST, QUOTE, REFUSES, Exchanged, Seen, asks, declines
from steelyard.judges.embedded.clashes import Clash, clashes
from steelyard.judges.embedded.meaning import plain, similarity, simplified, words
from steelyard.judges.embedded.support import Read
from steelyard.judges.embedded.voice import Voice
from steelyard.text import sentences

Complies = Literal["fully", "partly", "no"]


class Found(NamedTuple):
    """Whether one constraint is met; None where this judge cannot tell."""

    complies: Complies | None
    reason: str
    triggered: bool = True


# What is asked for is often asked in other words: 多大 for 年龄.
NEAR_ASKED = 0.2
NO_OBJECT = re.compile(
    r"是否|必要|相关|更多|详细|进一步|信息|资料|补充|情况|细节|\b(?:more|further|necessary|relevant|missing|information"
    r"|details?|clarification|question|clarifying|guiding|follow-up)\b"
)

# --- frames around a feature -----------------------------------------------------------------------

WHO = r"观众|读者|学员|患者|家长|孩子|用户|客人|客户|顾客|对方|玩家|学生|来访者"
WHO_OR_WHAT = rf"{WHO}|问|提到|提及|遇到|涉及|出现|要求|不足|不够"
CONDITION = re.compile(
    r"(?:如果|若|假如|当|一旦|每当|遇到|针对|对于)(?P<given>[^，,]{2,40}?)"
    r"(?:的?时候?|后|的情况下|的话|的问题|的请求)?[，,](?P<then>.+)"
    rf"|(?:当|在)?(?P<upon>[^，,]*?(?:{WHO_OR_WHAT})[^，,]{{0,30}}?)(?<![同小及按随实准临当])"
    r"(?:的?时候?|之?后|的情况下|的话)[，,]?(?P<do>.+)"
    r"|(?:if|when|whenever|once) (?P<en>[^,]{3,80}), ?(?P<act>.+)"
    r"|(?P<first>.{4,80}?) (?:if|when|whenever|once) (?P<late>.{3,80})"
)
EITHER = re.compile(r"或|\bor\b|\beither\b")
CHOICE = re.compile(r"除非|除了|\bunless\b|\bexcept\b|尽量|适当|必要时|\bif possible\b|\bwhere appropriate\b")
TONE = re.compile(
    r"风格|语气|口吻|语调|情绪|态度|性格|幽默|温柔|热情|活泼|严肃|亲切|礼貌|友好|专业|生动|自然|通俗"
    r"|\b(?:tone|style|polite|friendly|humou?r|warm|formal|casual|professional|enthusias|empath|sarcas|playful|natural|vivid"
    r"|character|persona)"
)
# What may stand around a feature without adding a demand.
FRAME = re.compile(
    r"使用者|送上|提供|请求|叙述|表达|回答|回复|答案|输出|内容|形式|方式|格式|助手|模型|用户|对方|应该?|必须|需要?|要|请|都"
    r"|每次|始终|一直|全程|使用|采用|用|以|进行|来|的|了|并|先|再|然后|最后|首先|主动|中(?![文国])|里|内|在|向|对|为|是|有|含|包含|给出"
    r"|表示|写出?|\b(?:the|a|an|answer|response|reply|assistant|model|user|should|must|shall|will|to|it|its|be|is|are|use|uses"
    r"|using|always|every|each|time|in|with|of|for|at|from|by|on|and|then|first|also|contain|contains|include|includes"
    r"|provides?|gives?|writes?|requests?|repl(?:y|ies)|responds?|answers?|speaks?|does|do|not|format|form)\b"
    r"|不(?:要|得|能|可以?|应该?|允许|会)?|禁止|严禁|避免|切勿|勿|别|没有|\b(?:no|never|don't|doesn't|avoid|avoids|without|any)\b"
)
NEAR = 0.45
SAID = 0.8
# With half of its words there, another number among them is in the place of the one demanded.
SPOKEN_OF = 0.5
UNSAID = 0.2
UNHEARD = 0.1
CALLED_FOR = 0.5
NOT_CALLED_FOR = 0.15


def look(constraint: str, turn: Exchanged, voice: Voice, read: Read) -> Found:
    """Whether one constraint is met in this turn, as far as it shows."""
    text = plain(constraint)
    if condition := CONDITION.fullmatch(text.strip(" .。")):
        when = condition["given"] or condition["upon"] or condition["en"] or condition["late"]
        then = condition["then"] or condition["do"] or condition["act"] or condition["first"]
        called, done = _called_for(when, turn), look(then, turn, voice, read)
        if called or done.complies == "fully":
            return done
        if called is False:
            return Found(
                "fully", voice("本轮没有出现“{when}”", "“{when}” does not arise in this turn", when=when), False
            )
        return Found(None, voice("看不出本轮是否属于“{when}”", "cannot tell whether “{when}” applies", when=when))
    if CHOICE.search(text):
        return Found(
            None,
            voice("带有选择或例外，本评判者看不出来", "has a choice or an exception, which this judge cannot weigh"),
        )
    if statement := stated(constraint):
        return _said(statement, turn, voice, read)
    text, turn = _at_its_place(text, turn)
    for pattern, seen in NAMED:
        if match := pattern.search(text):
            # Whatever is declined stands in the question, not in the answer.
            near = NEAR_ASKED if seen is asks else -1.0 if seen is declines else NEAR
            return _decided(constraint, match, seen(match, turn), near, turn, voice)
    return _by_content(constraint, text, turn, voice)


AT_END = re.compile(
    r"(?:在|于)?(?:结尾|末尾|最后|文末)(?:处|时)?|\b(?:at the end|in closing|finally)\b"
    r"|\bends? (?:by|with) (?=\w+ing\b|an? (?:thank|greet|wish|farewell|apolog))"
)
AT_START = re.compile(
    r"(?:在|于)?(?:开头|开场|开始|首先)(?:处|时)?|\b(?:at the (?:beginning|start)|first)\b"
    r"|\b(?:begins?|starts?|opens?) (?:by|with) (?=\w+ing\b|an? (?:thank|greet|wish|apolog))"
)
EDGE = 2


def _at_its_place(text: str, turn: Exchanged) -> tuple[str, Exchanged]:
    """A constraint on the beginning or the end looks there alone; a quotation there has a rule of its own."""
    spoken = sentences(turn.answer) or [turn.answer]
    if re.search(QUOTE, text) or QUESTION_LAST.search(text):
        return text, turn
    if AT_END.search(text):
        return AT_END.sub(" ", text), turn._replace(answer="\n".join(spoken[-EDGE:]))
    if AT_START.search(text):
        return AT_START.sub(" ", text), turn._replace(answer="\n".join(spoken[:EDGE]))
    return text, turn


def _called_for(when: str, turn: Exchanged) -> bool | None:
    """Whether a condition holds in this turn, judged by what the user said."""
    bare = " ".join(FRAME.sub(" ", when).split())
    wanted = set(words(bare)) or set(words(when))
    overlap = len(wanted & set(words(turn.prompt))) / max(1, len(wanted))
    cosine = float(similarity([when], [turn.prompt or " "])[0, 0])
    if overlap >= CALLED_FOR or cosine >= CALLED_FOR:
        return True
    return False if not overlap and cosine < NOT_CALLED_FOR else None


def _decided(constraint: str, match: re.Match[str], seen: Seen, near: float, turn: Exchanged, voice: Voice) -> Found:
    """From the feature to the constraint: negation turns it round, whatever else is demanded must show too."""
    text = match.string
    rest = _rest(text, match)
    if not seen.called_for:
        return Found("fully", voice("本轮没有这样的内容", "there is nothing of the kind in this turn"), triggered=False)
    if seen.there is None:
        return (
            _cannot_tell(constraint, voice)
            if rest
            else Found(None, voice("不长不短，难下判断", "neither clearly one nor the other"))
        )
    if NOT.search(text[: match.start()]):
        if not seen.there:
            return Found("fully", _absent(match, seen, voice))
        return _cannot_tell(constraint, voice) if rest else Found("no", _present(seen, voice))
    if not seen.there:
        # 使用列表或表格: the other one may be there.
        elsewhere = text[: match.start()] + text[match.end() :]
        return Found(None if EITHER.search(elsewhere) else "no", _absent(match, seen, voice))
    if rest and not _shown(rest, seen.shown, near, turn):
        return _cannot_tell(constraint, voice)
    return Found("fully", _present(seen, voice))


def _cannot_tell(constraint: str, voice: Voice) -> Found:
    told = voice("“{rest}”是否做到，本评判者看不出来", "this judge cannot tell about “{rest}”", rest=constraint.strip())
    return Found(None, told)


def _present(seen: Seen, voice: Voice) -> str:
    if seen.why:
        return voice(*seen.why)
    return voice("回答中有：{shown}", "the answer has: {shown}", shown=seen.shown)


def _absent(match: re.Match[str], seen: Seen, voice: Voice) -> str:
    if seen.why:
        return voice(*seen.why)
    if seen.sought:
        sought = "、".join(seen.sought)
        return voice("回答中没有：{sought}", "the answer does not have: {sought}", sought=sought)
    named = match.group().strip()
    return voice("回答中看不到“{named}”", "nothing in the answer shows “{named}”", named=named)


def _rest(text: str, match: re.Match[str]) -> str:
    """What a constraint demands beside the feature; empty where only its frame is left."""
    rest = NO_OBJECT.sub(" ", f"{text[: match.start()]} {text[match.end() :]}")
    rest = " ".join(FRAME.sub(" ", rest).split())
    return rest if words(rest) else ""


def _shown(rest: str, shown: str, near: float, turn: Exchanged) -> bool:
    """Whether the sentence that shows the feature also shows the rest."""
    spoken = [one for one in sentences(turn.answer) if shown and shown in (one, plain(one))] or [
        one for one in sentences(turn.answer) if shown and shown in plain(one)
    ]
    wanted = set(words(rest))
    return any(
        len(wanted & set(words(one))) >= SAID * len(wanted) or float(similarity([rest], [one])[0, 0]) >= near
        for one in spoken or [turn.answer]
    )


# --- what is to be said ----------------------------------------------------------------------------

STATEMENT = re.compile(
    r"(?:说明|告知|告诉|指出|写明|表示|说|提到|提及)(?:了|清楚)?(?:用户|客人|对方|使用者|读者|观众)?\s*[:：]\s*(?P<told>\S.{3,400})"
    r"|\b(?:says?|states?|mentions?|explains?|notes?|confirms?|points? out|makes? (?:it )?clear"
    r"|(?:tells?|informs?) the \w+)(?::| that\b)\s*(?P<said>\S.{7,600})",
    re.IGNORECASE | re.DOTALL,
)
# Below this the answer says nothing of the kind.
NOT_SAID = 0.1


class Statement(NamedTuple):
    """What an answer is to say, or not to say."""

    text: str
    forbidden: bool


def stated(constraint: str) -> Statement | None:
    """The statement that a constraint wants said word by word or by sense: says that X, 说明：X."""
    text = simplified(constraint)
    match = STATEMENT.search(text)
    if match is None:
        return None
    return Statement((match["told"] or match["said"]).strip(), bool(NOT.search(plain(text[: match.start()]))))


def _said(statement: Statement, turn: Exchanged, voice: Voice, read: Read) -> Found:
    """Check the statement against the answer, as a claim against a passage."""
    found = read([turn.answer]).support(statement.text)
    if found.label == "supported":
        reason = voice("回答这样说：{quote}", "the answer says so: {quote}", quote=found.quote or "")
        return Found("no" if statement.forbidden else "fully", reason)
    if found.label == "contradicted":
        reason = voice("回答说的与此不同：{quote}", "the answer says otherwise: {quote}", quote=found.quote or "")
        return Found("fully" if statement.forbidden else "no", reason)
    if found.probability < NOT_SAID:
        return Found("fully" if statement.forbidden else "no", voice("回答没有这样说", "the answer does not say so"))
    told = voice("回答是否说到“{said}”，看不出来", "cannot tell whether the answer says “{said}”", said=statement.text)
    return Found(None, told)


MENTION = re.compile(
    r"(?:提到|提及|说明|指出|介绍|告知|列出|推荐|强调|讲到|涉及|透露|泄露|讨论|谈论|建议|引导|提醒|索要|索取|请(?:其|用户|客人|观众|对方)"
    r"|(?:mention|state|name|list|recommend|explain|describe|reveal|disclose|discuss|suggest|advise|remind)(?:s|ed|es)?\b)"
    r"(?: the| that| a| an)?(?P<thing>.{2,60})"
)


def _by_content(constraint: str, text: str, turn: Exchanged, voice: Voice) -> Found:
    """A demand to mention something, or not to: decided only where its words are all there, or nothing like it is."""
    match = MENTION.search(text)
    thing = " ".join(FRAME.sub(" ", match["thing"] if match else text).split())
    wanted = set(words(thing))
    if TONE.search(text):
        return Found(None, voice("语气和风格超出本评判者的能力", "tone and style are beyond this judge"))
    if not match or not wanted:
        return Found(None, voice("从字面上看不出是否做到", "the wording alone does not show whether this is met"))
    spoken = sentences(turn.answer) or [turn.answer]
    share = len(wanted & set(words(turn.answer))) / len(wanted)
    nearest = max(float(cosine) for cosine in similarity([thing], spoken)[0])
    forbidden = bool(NOT.search(text[: match.start()]))
    if forbidden and share == 1 and not re.search(REFUSES, plain(turn.answer)):
        return Found("no", voice("回答说到了“{thing}”", "the answer speaks of “{thing}”", thing=thing))
    if forbidden and not share and nearest < UNSAID:
        return Found("fully", voice("回答没有说到“{thing}”", "the answer says nothing of “{thing}”", thing=thing))
    if not forbidden and not share and nearest < UNHEARD:
        return Found("no", voice("回答没有说到“{thing}”", "the answer says nothing of “{thing}”", thing=thing))
    if not forbidden and share >= SPOKEN_OF and (clash := _otherwise(match["thing"], spoken, turn.answer)):
        said = voice(
            "回答说的是“{stated}”，不是“{claimed}”", "the answer has “{stated}”, not “{claimed}”", **clash._asdict()
        )
        return Found("no", said)
    if not forbidden and share >= SAID:
        return Found("fully", voice("回答说到了“{thing}”", "the answer speaks of “{thing}”", thing=thing))
    return _cannot_tell(constraint, voice)


def _otherwise(thing: str, spoken: Sequence[str], answer: str) -> Clash | None:
    """What the sentence that speaks of it says in its place: another number, day, rank or name, or the opposite."""
    wanted = set(words(thing))
    best = max(spoken, key=lambda one: len(wanted & set(words(one))))
    return next(iter(clashes(thing, best, answer)), None)
