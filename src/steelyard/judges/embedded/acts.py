"""What shows in an answer: that it asks, declines, greets, lists, names a thing, keeps to a language or a form."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from steelyard.judges.embedded.meaning import plain
from steelyard.text import HAN, KANA, LATIN_WORD, normalise, sentences


class Exchanged(NamedTuple):
    """The turn that is judged."""

    system_prompt: str
    prompt: str
    answer: str


class Seen(NamedTuple):
    """Whether a feature is there, and the words that show it; `there` is None where that cannot be seen."""

    there: bool | None
    shown: str = ""
    sought: tuple[str, ...] = ()
    """The words that were looked for; empty where it was a feature."""
    why: tuple[str, str] | None = None
    """What was counted, in Chinese and English, where no words of the answer show it."""
    called_for: bool = True


Look = Callable[[re.Match[str], Exchanged], Seen]


def _pattern(pattern: str, flags: int = 0) -> Look:
    compiled = re.compile(pattern, flags)

    def seen(match: re.Match[str], turn: Exchanged) -> Seen:
        found = compiled.search(plain(turn.answer))
        return Seen(bool(found), found.group().strip()[:30] if found else "")

    return seen


ASKING = re.compile(r"[?？]|请(?:您|你)?(?:先|再)?(?:告诉|提供|补充|说明|描述|选择|确认|发|给|输入|回答)|告诉我|说说|说清楚|说一下|麻烦(?:您|你)|能否|可否|\b(?:please (?:tell|provide|share|let|give|describe|confirm|specify)|let me know|tell me|could you|would you)\b")  # fmt: skip


def asks(match: re.Match[str], turn: Exchanged) -> Seen:
    asking = [text for text in sentences(turn.answer) if ASKING.search(plain(text))]
    return Seen(bool(asking), asking[0] if asking else "")


def _last_is(pattern: str) -> Look:
    compiled = re.compile(pattern)

    def seen(match: re.Match[str], turn: Exchanged) -> Seen:
        last = (sentences(turn.answer) or [turn.answer])[-1].strip()
        return Seen(bool(compiled.search(last)), last[-30:])

    return seen


QUOTE = r"(?:“([^”]{1,60})”|「([^」]{1,60})」|『([^』]{1,60})』|\"([^\"]{1,60})\"|‘([^’]{1,60})’|'([^']{1,60})')"


# One word after another: “可能”“也许”, "maybe" or "perhaps".
QUOTES = rf"{QUOTE}(?:(?: ?[、,/和及与或] ?|, | and | or |, (?:and|or) )?{QUOTE}){{0,9}}"
NOT = re.compile(
    r"(?:不(?:要|得|能|可以?|应该?|允许|会|再)?|禁止|严禁|避免|切勿|勿|别|没有|未|无需|不必)[^，,。]{0,6}$"
    r"|\b(?:no|not|never|don't|doesn't|avoid|avoids|without|refrain from|must not|cannot|should not|shouldn't)\b"
    r"(?: \w+){0,3} ?$"
)
STAND_IN = re.compile(r"X{2,}|[某…_\[\]{}]")


def _quoted(match: re.Match[str]) -> tuple[str, ...]:
    return tuple(next(filter(None, groups)).strip() for groups in re.findall(QUOTE, match.group()))


def _says(match: re.Match[str], turn: Exchanged) -> Seen:
    """Of several words each must be there; of several that are forbidden, or offered for choice, one is enough."""
    wanted = _quoted(match)
    if any(not normalise(one) or STAND_IN.search(one) for one in wanted):
        return Seen(None)
    answer = normalise(plain(turn.answer))
    found = [one for one in wanted if normalise(plain(one)) in answer]
    if NOT.search(match.string[: match.start()]) or re.search(r"[”」』\"’'] ?(?:或|or\b)", match.group()):
        return Seen(bool(found), "、".join(found), wanted)
    missing = tuple(one for one in wanted if one not in found)
    return Seen(not missing, "、".join(found), missing or wanted)


# Brackets hold what is done, not what is said; emoji and marks after the last word are not part of it.
ASIDE = re.compile(r"[（(][^（()）\n]{0,60}[）)]|\*[^*\n]{1,60}\*")


def _at_edge(edge: Callable[[str, str], bool], *, each: bool = False) -> Look:
    def seen(match: re.Match[str], turn: Exchanged) -> Seen:
        (wanted,) = _quoted(match)[:1]
        if STAND_IN.search(wanted):
            return Seen(None)
        spoken = ASIDE.sub(" ", turn.answer)
        texts = [normalise(plain(one)) for one in (sentences(spoken) if each else [spoken])]
        texts = [one for one in texts if one]
        if not texts:
            return Seen(None)
        right = [one for one in texts if edge(one, normalise(plain(wanted)))]
        n, k = len(texts), len(right)
        why = (f"{n}句中有{k}句做到“{wanted}”", f"{k} of {n} sentences have “{wanted}” there") if each else None
        return Seen(k == n, wanted, (wanted,), why)

    return seen


def _says_last(match: re.Match[str], turn: Exchanged) -> Seen:
    return _says(match, turn._replace(answer=(sentences(turn.answer) or [turn.answer])[-1]))


SCRIPTS = {
    "中": HAN, "汉": HAN, "chinese": HAN, "日": KANA, "japanese": KANA,
    "韩": re.compile(r"[\uac00-\ud7af]"), "korean": re.compile(r"[\uac00-\ud7af]"),
    "俄": re.compile(r"[\u0400-\u04ff]"), "russian": re.compile(r"[\u0400-\u04ff]"),
}  # fmt: skip
NATIVE = 0.6


def _in_language(match: re.Match[str], turn: Exchanged) -> Seen:
    named = match["language"]
    letters = len(re.findall(r"[^\W\d_]", turn.answer))
    script = next((script for name, script in SCRIPTS.items() if named.startswith(name)), None)
    own = sum(map(len, LATIN_WORD.findall(turn.answer))) if script is None else len(script.findall(turn.answer))
    share = NATIVE if script in (None, HAN) else NATIVE / 3
    why = (f"{letters}个字母或汉字中有{own}个是{named}", f"{own} of {letters} letters are {named}")
    return Seen(own >= share * letters if letters else None, named, why=why)


BRACKETED = re.compile(r"[（(*]([^（()）*\n\d]{1,20})[）)*]")


def _in_brackets(match: re.Match[str], turn: Exchanged) -> Seen:
    found = BRACKETED.search(turn.answer)
    return Seen(bool(found), found.group() if found else "")


# What a body does; where none of it is told, there was nothing to put into brackets.
BODILY = re.compile(
    r"[摇点低抬歪转]了?[摇点]?头|摇.{0,3}尾|[微苦大偷]笑|笑了|笑着|[眨瞪]|挥.{0,2}手|[伸握拍搓]了?.{0,2}手|拥抱|抱[住着]|叹|耸|鞠躬"
    r"|[走跑跳坐站躺蹲趴][了着到过向上下]|[看望盯]着|拿[起出]|递给|脸红|皱|\b(?:smil|nod|wav|wink|shrug|sigh|hug|blink|laugh|frown|bow)\w*"
)


def _put_in_brackets(match: re.Match[str], turn: Exchanged) -> Seen:
    """Where something belongs, not that it must be there: an answer without any does nothing wrong."""
    outside = BODILY.search(plain(BRACKETED.sub(" ", turn.answer)))
    if outside:
        return Seen(None)
    found = re.search(r"[（(][^（()）\n\d]{1,40}[）)]", turn.answer)
    return Seen(True, found.group()) if found else Seen(True, called_for=False)


def _formal_you(match: re.Match[str], turn: Exchanged) -> Seen:
    return Seen("您" in turn.answer and "你" not in turn.answer, "您" if "您" in turn.answer else "你")


SHORT, LONG = 80, 600


def _brief(match: re.Match[str], turn: Exchanged) -> Seen:
    size = len(re.findall(r"[\u4e00-\u9fff]|[^\W\u4e00-\u9fff]+", turn.answer))
    return Seen(True if size <= SHORT else False if size >= LONG else None, f"{size}")


IS_AI = r"(?:我是|作为|身为)[^，。]{0,6}(?:ai|人工智能|语言模型|机器人|聊天助手|虚拟助手)|\b(?:as an?|i am an?|i'm an?) (?:ai|artificial|language model|large language model|bot|virtual assistant)"
REFUSES = r"抱歉|对不起|很遗憾|不好意思|无法|不能|不便|不可以|不予|拒绝|恕|没法|做不到|不方便|\b(?:sorry|can't|cannot|can not|unable|won't|not able|not allowed|not permitted|decline|apologi[sz]e|i must refuse)\b"
declines = _pattern(REFUSES)
LISTED = r"(?m)^\s{0,12}(?:[-*+•]|\d{1,3}[.)、]|[（(]\d{1,3}[）)]|[①-⑳]|第[一二三四五六七八九十]+[,，:：、步])\s*\S"

QUESTION_LAST = re.compile(
    r"(?:结尾|末尾|最后)处?(?:要|需|必须|应|都)*(?:附上|加上|提出|提|有|抛出|留下?)(?:一个|一句)?(?:问题|问句|疑问句)"
    r"|(?:以|用)?(?:一个|一句)?(?:问句|疑问句|提问|反问|问题)(?:来)?(?:结尾|结束|收尾)|(?:ends?|closes?|finish(?:es)?)(?: \w+){0,2} with an? (?:\w+ )?question"
)

# What a criterion names, and how it shows. The first that matches is looked for.
FEATURES: tuple[tuple[str, Look], ...] = (
    (rf"(?:称呼|称|叫|喊)[^“「『\"，]{{0,6}}?(?:为|作|做|成)? ?{QUOTE}|(?:以|使?用) ?{QUOTE} ?(?:来)?(?:称呼|自称)|自称(?:为|是)? ?{QUOTE}|(?:address|call|refer to)(?:es|s)? (?:the user|the customer|them|itself|yourself|himself|herself) (?:as )?{QUOTE}", _says),
    (rf"每一?(?:句话?|个句子)(?:话)?(?:的?(?:结尾|末尾|最后))?(?:都|均|应|需|必须|须|要)*(?:以|用|加上?|带上?) ?{QUOTE} ?(?:来|作为)?(?:结尾|结束|收尾|$)|(?:every|each) sentence (?:must |should )?(?:ends?|closes?|finish(?:es)?) with {QUOTE}|(?:ends?|closes?|finish(?:es)?) (?:every|each) sentence with {QUOTE}", _at_edge(str.endswith, each=True)),
    (rf"每一?(?:句话?|个句子)(?:都|均|应|需|必须|须|要)*(?:以|用) ?{QUOTE} ?(?:来|作为)?(?:开头|开始|起头)|(?:every|each) sentence (?:must |should )?(?:begins?|starts?) with {QUOTE}|(?:begins?|starts?) (?:every|each) sentence with {QUOTE}", _at_edge(str.startswith, each=True)),
    (rf"(?:在|于)?(?:结尾|末尾|最后|文末)处?(?:要|需|必须|应|都)*(?:加上|附上|写上|带上|加|说|使用|用) ?{QUOTE}", _says_last),
    (rf"(?:提到|提及|包含|含有|出现|使用|说出?|写出|附上|加上|带有|mentions?|includes?|contains?|uses?|says?|the (?:words?|phrase|sentence)s?) ?(?:the (?:words?|phrase|sentence)s? )?{QUOTES}(?: ?(?:等|之类)?的?(?:词语?|字眼|字样|一词|说法))?", _says),
    (rf"(?:以|用) ?{QUOTE}.{{0,6}}?(?:开头|开始|开场)|(?:begins?|starts?|opens?) with ?(?:the (?:words?|phrase|sentence) )?{QUOTE}", _at_edge(str.startswith)),
    (rf"(?:以|用) ?{QUOTE}.{{0,6}}?(?:结尾|结束|收尾)|(?:ends?|closes?) with ?(?:the (?:words?|phrase|sentence) )?{QUOTE}", _at_edge(str.endswith)),
    (QUESTION_LAST.pattern, _last_is(r"[?？][\W_]*$")),
    (r"自我介绍|介绍(?:一下)?自己|(?:报出|说出|告知|表明)(?:自己的)?(?:名字|身份|姓名)|introduces? (?:itself|yourself|himself|herself|themselves)|(?:state|give)s? (?:its|your) name", _pattern(r"我是|我叫|本人|在下|我的名字|\bi am\b|\bi'm\b|\bmy name is\b|\bthis is\b")),
    (r"(?:承认|透露|暴露|声称|说|提及|表明)?(?:自己)?(?:是|为)(?:一个)?(?:ai|人工智能|语言模型|机器人)|(?:admit|reveal|mention|say|state|claim)s? (?:that )?(?:it|you|he|she)(?:'s| is| are|'re) an? (?:ai|bot|language model)", _pattern(IS_AI)),
    (r"拒绝|婉拒|回绝|不予回答|\bdeclin(?:es?|ing)\b|\brefus(?:es?|ing|al)\b", declines),
    (r"道歉|致歉|表示歉意|apologi[sz]e?s?|an apology", _pattern(r"抱歉|对不起|不好意思|歉意|致歉|\b(?:sorry|apolog\w+)\b")),
    (r"感谢|致谢|道谢|表示谢意|thanks?\b", _pattern(r"谢|感激|\bthank\w*\b|\bappreciate\b|\bgrateful\b")),
    (r"问候|打招呼|问好|欢迎语|greets?\b|a greeting|welcomes?\b", _pattern(r"你好|您好|大家好|早上好|上午好|下午好|晚上好|嗨|哈[喽啰]|欢迎|\b(?:hello|hi|hey|greetings|welcome|good (?:morning|afternoon|evening|day))\b")),
    (r"告别|道别|祝福|farewell|say(?:s)? goodbye|wish(?:es)? the user", _pattern(r"再见|拜拜|祝|愿你|愿您|保重|\b(?:goodbye|bye|farewell|take care|wish you|all the best|have a)\b")),
    (r"询问|追问|反问|提问|发问|要求用户(?:提供|补充|说明|给出|上传|选择|确认)|(?:让|请|引导)用户(?:提供|补充|说明|选择|确认)|\basks?\b(?: (?:the user|them|for|about|at least))?|(?:a|one) (?:follow-up |clarifying )?question|requests? (?:more |further )?information", asks),
    (r"表格|\btables?\b", _pattern(r"(?m)^\s*\|.*\|\s*$")),
    (r"代码块|code blocks?|fenced code", _pattern(r"```")),
    (r"加粗|粗体|\bbold(?:face)?\b", _pattern(r"\*\*[^*\n]+\*\*|__[^_\n]+__|<b>")),
    (r"markdown", _pattern(r"(?m)^#{1,6} |\*\*[^*\n]+\*\*|^\s*[-*+] \S|^\s*\d+\. \S|```|^\s*\|.*\|\s*$|^> ")),
    (r"列表|分点|分条|条列|逐条|编号|要点形式|bullet(?:s|ed)?(?: points?| list)?|numbered(?: list| steps)?|\blists?\b(?= format)|as a list", _pattern(LISTED)),
    (r"链接|网址|\burls?\b|\blinks?\b|hyperlinks?", _pattern(r"https?://|www\.|\]\(")),
    (r"(?:动作|神态|表情|心理|情绪|描写|描述|活动|或|和|与|、)+(?:都|均|应|需|必须|须|要)*(?:放|写|置|标注|标)(?:在|于|入|进) ?(?:[(（]\s*[)）]|圆?括号)(?:中|内|里)?|(?:puts?|writes?|place[sd]?) (?:all )?(?:actions?|gestures?|expressions?) (?:in|inside) (?:parentheses|brackets)", _put_in_brackets),
    (r"(?:[(（]\s*[)）]|括号)(?:中|内|里)?(?:需|要|必须|应)?(?:含有|包含|写出|有|描写|描述)?(?:表情|动作|神态|心理|情绪|描写|描述|或|和|与|、)*|(?:actions?|expressions?|gestures?)(?: (?:or|and) (?:actions?|expressions?|gestures?))? in (?:parentheses|brackets|asterisks)", _in_brackets),
    (r"第一人称|first[- ]person", _pattern(r"我|俺|咱|\b(?:i|i'm|my|me|we|our)\b")),
    (r"第二人称|second[- ]person", _pattern(r"你|您|\b(?:you|your|you're)\b")),
    (r"敬语|敬称|[“\"「]?您[”\"」]?(?:来)?称呼|用[“\"「]您[”\"」]", _formal_you),
    (r"(?:使用|用|以|说|in|use|using) ?(?P<language>中文|汉语|英文|英语|日文|日语|韩文|韩语|俄文|俄语|chinese|english|japanese|korean|russian)", _in_language),
    (r"简短|简洁|简练|精炼|言简意赅|\bconcise(?:ly)?\b|\bbrief(?:ly)?\b|\bshort\b|\bsuccinct", _brief),
)  # fmt: skip
NAMED = tuple((re.compile(pattern), look) for pattern, look in FEATURES)
