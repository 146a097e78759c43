"""Whether an answer does what one constraint asks for: what shows is decided, the rest is left open with a reason.

"No" needs a fact: a form that is or is not there, words that are missing, a statement that the answer contradicts. An
act that was not recognised (a greeting, a question to the user) may be there in other words, so it is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Literal, NamedTuple

from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.figures import missing
from steelyard.judges.embedded.reasons import Voice
from steelyard.judges.embedded.support import Claim, Reading
from steelyard.text import HAN, KANA, LETTER_OR_DIGIT, fold, in_simplified, normalise, sentences

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = Callable[[Sequence[str]], NDArray[np.float32]]

Complies = Literal["fully", "partly", "no"]


class Spoken(NamedTuple):
    """The turn that is judged, and what reads it."""

    prompt: str
    answer: str
    reading: Reading
    vectors: Vectors


class Found(NamedTuple):
    """Whether one constraint is met; None where this judge cannot tell."""

    complies: Complies | None
    reason: str
    triggered: bool = True


# --- reading a criterion ---------------------------------------------------------------------------

# Words of any criterion, in stems.
FRAMING = frozenset("的了是在和与及或也都就而但这那其之于以为被把将对从到向由等着过吗呢吧们个很一不有用时要先请说出给并且会能可没无包含使语气风格答复") | frozenset(
    "use uses say says state menti inclu conta sound stay stays keep keeps refer repl reply respo answe consi write writt name names tone".split()
)  # fmt: skip
QUOTE = re.compile(
    r"“([^”]{1,60})”|「([^」]{1,60})」|『([^』]{1,60})』|\"([^\"]{1,60})\"|‘([^’]{1,60})’|(?<!\w)'([^']{1,60})'(?!\w)|([\w.+-]{1,40}@[\w.-]{3,60})"
)
# What is quoted may stand for something else: “亲爱的XX”.
STAND_IN = re.compile(r"[\[\]{}<>【】_…×]|x{2,}|\.\.\.|某|姓名|昵称|\bname\b", re.IGNORECASE)
NEGATION = re.compile(
    r"不(?!断|同|仅|只|超过|少于|多于|低于|高于)|没有?|未|无需|勿|(?<![分特个级性区])别(?!人|的|家)|禁止|严禁|避免|拒绝|婉拒|n't\b"
    r"|\b(?:no(?! more| fewer| less| longer)|not|nothing(?! else)|never|cannot|without|avoid|refrain|refus|declin)(?:e?s|ing|e)?\b"
)
CHOICE = re.compile(r"或|除非|除了|尽量|适当|必要时|\b(?:or|either|unless|except|if possible|where appropriate)\b")
LONGEST_CONSTRAINT, STEM = 300, 5
MARK = "▢"
"""Stands for a quotation while a criterion is matched."""


def plain(text: str) -> str:
    """Text in half width, Simplified characters and lower case, to be compared."""
    return in_simplified(fold(text)).lower()


def content(text: str) -> frozenset[str]:
    """What a text is about: stems and numbers, single Chinese characters; without words that any criterion may have."""
    latin = {word.removesuffix("ly")[:STEM] for word in words(HAN.sub(" ", plain(text)))}
    return frozenset({*HAN.findall(plain(text)), *latin} - FRAMING)


def shared(wanted: str, *texts: str) -> float:
    """The share of what a text is about that stands in one of the others."""
    own = content(wanted)
    return max((len(own & content(text)) / len(own) for text in texts), default=0.0) if own else 0.0


def quotations(text: str) -> list[str]:
    return [next(filter(None, groups)).strip() for groups in QUOTE.findall(text)]


# Whom an answer speaks to, and words that may stand around a demand without adding to it.
TO_ZH = r"(?:使用者|候选人|[用客住]户|[顾旅游]客|客人|对方|玩家|学[生员]|读者|[观听]众|家长|孩子|患者|来访者|主人|他|她|ta)?"
TO_EN = r"(?:(?:the|its|his|her|an?|new) )?(?:users?|customers?|guests?|students?|readers?|players?|visitors?|patients?|candidates?|children|child|them|him|itself|herself|himself)"  # fmt: skip
FRAME_ZH = r"(?:回答|回复|答案|输出|助手|模型|内容|全文|中|里|应该?|必须|需要?|要|请|都|均|始终|一律|首先|先|再|然后|最后|主动|明确|清楚|礼貌|友好|热情|亲切|真诚|诚恳|委婉|及时|详细|地|的|在|开头|结尾|末尾|处){0,6}"  # fmt: skip
FRAME_EN = r"(?:(?:the|its|each|every|answer|assistant|reply|response|it|must|should|shall|always|first|then|also|clearly|politely|warmly|explicitly|kindly|gently) ){0,6}"  # fmt: skip
DENIED = r"(?P<denied{}>不(?:要|得|能|可以?|应|再)?|禁止|避免|没有|未|(?:does|do|is|are|must|should) not |never |avoids? |without |no )?"


def _demand(zh: str, en: str) -> re.Pattern[str]:
    """A criterion that asks for this and nothing else, or forbids it."""
    return re.compile(rf"{FRAME_ZH}{DENIED.format('_zh')}(?:{zh})|{FRAME_EN}{DENIED.format('_en')}(?:{en})")


def _form(zh: str, en: str) -> re.Pattern[str]:
    """A form that is to be used, perhaps for something that is named: 以表格列出行程, presents the plan as a table."""
    return _demand(
        rf"(?:有|带有|包含|含有|使用|采用|以|用|为)?(?:{zh})(?:的?(?:形式|格式|方式))?(?:来|进行)?(?:回答|作答|回复|呈现|展示|列出|给出|解释|说明|输出|整理|介绍|撰写|写)?[\u4e00-\u9fff]{{0,10}}",
        rf"(?:us(?:e|es|ing) |ha(?:s|ve) |contains? |includes? |is |are |(?:steps|options|points|items) are )?(?:(?:presents?|shows?|gives?|lists?|writes?|offers?|puts?|provides?|begins?|starts?)(?: [\w']+){{0,4}} (?:as|in|with|using) )?(?:an? |any |the )?(?:[a-z]+ in )?(?:{en})(?: format| form)?",
    )  # fmt: skip


# --- what shows on the surface ---------------------------------------------------------------------


class Shown(NamedTuple):
    """Whether a feature is there (None: in doubt), and what was seen, in Chinese and English."""

    is_there: bool | None
    zh: str = ""
    en: str = ""
    shown: str = ""


Look = Callable[[str, Sequence[str]], Shown]


def _has(zh: str, en: str, pattern: str, doubtful: str = r"(?!)") -> Look:
    sure, maybe = re.compile(pattern, re.MULTILINE), re.compile(doubtful, re.MULTILINE)

    def look(answer: str, quotes: Sequence[str]) -> Shown:
        if sure.search(answer):
            return Shown(True, f"回答中有{zh}", f"the answer has {en}")
        return Shown(None if maybe.search(answer) else False, f"回答中没有{zh}", f"the answer does not have {en}")

    return look


def _asks_last(answer: str, quotes: Sequence[str]) -> Shown:
    last = (sentences(answer) or [""])[-1]
    bare = BRACKETED.sub("", last).rstrip(" *_\"'”」』）)~～")
    asks = True if bare.endswith(("?", "？")) else None if QUESTION.search(last) else False
    return Shown(asks, "最后一句是：{shown}", "the last sentence is: {shown}", last)


def _says(answer: str, quotes: Sequence[str]) -> Shown:
    there = normalise(in_simplified(answer))
    lacking = [one for one in quotes if normalise(in_simplified(one)) not in there]
    if any(STAND_IN.search(one) or not normalise(one) for one in quotes):
        return Shown(None)
    if lacking:
        return Shown(False, "回答中没有“{shown}”", "the answer does not have “{shown}”", lacking[0])
    return Shown(True, "回答中有“{shown}”", "the answer has “{shown}”", quotes[0])


def _says_each_time(answer: str, quotes: Sequence[str]) -> Shown:
    """Brackets hold what is done, not what is said. In lists, or under a heading, what a sentence is, is not clear."""
    wanted = normalise(in_simplified(quotes[0]))
    spoken = [normalise(in_simplified(one)) for one in sentences(BRACKETED.sub(" ", answer))]
    right, n = sum(one.endswith(wanted) for one in spoken), len(spoken)
    is_met = None if not n or (0 < right < n and "\n" in answer) else right == n
    return Shown(is_met, "做到的句子：{shown}", "sentences that do so: {shown}", f"{right}/{n}")


def _calls(answer: str, quotes: Sequence[str]) -> Shown:
    if quotes != ["您"]:
        return _says(answer, quotes)
    polite, familiar = "您" in answer, re.search("你(?!好)", answer)
    is_met = None if polite == bool(familiar) else polite
    return Shown(is_met, "回答用的是“{shown}”", "the answer says “{shown}”", "您" if polite else "你")


def _in_brackets(answer: str, quotes: Sequence[str]) -> Shown:
    found = BRACKETED.search(answer)
    return Shown(True, "回答中有{shown}", "the answer has {shown}", found.group()) if found else Shown(None)


def _in_script(zh: str, en: str, script: re.Pattern[str]) -> Look:
    def look(answer: str, quotes: Sequence[str]) -> Shown:
        own, letters = len(script.findall(answer)), sum(map(str.isalpha, answer))
        # A translation may stand beside it, and Japanese has Chinese characters too.
        is_there = True if own * 4 > letters else False if not own and letters > 1 else None
        return Shown(is_there, f"字母中的{zh}：{{shown}}", f"letters that are {en}: {{shown}}", f"{own}/{letters}")

    return look


ITEM = r"^[ \t]{0,12}(?:[-*+•·▪◦][ \t]|\d{1,3}[.)、）][ \t]*\S|[（(]\d{1,3}[）)]|[①-⑳])"
NUMBERED = r"^[ \t]{0,12}(?:\*\*)?(?:\d{1,3}[.)、）:：]|[（(]\d{1,3}[）)]|[①-⑳]|第?[一二三四五六七八九十]{1,3}[、.步]|[Ss]tep \d)"
# A list to some readers: 第一，…；第二，… in one line, or short lines without marks.
LIKE_ITEMS = r"第[一二三][,，、]|[；;。：:]\s?\d[.)、）]|\b(?:First|Second)ly\b|其次|^[^\n]{1,60}\n[^\n]{1,60}\n"
MARKDOWN = rf"^#{{1,6}} |\*\*[^*\n]+\*\*|```|^[ \t]*\|.*\|[ \t]*$|^> |\]\(|{ITEM}"
BRACKETED = re.compile(r"[（(][^（()）\n\d]{1,40}[）)]")
QUESTION = re.compile(r"[?？吗呢么]")
DEED = r"(?:表情|动作|神态|心理|情绪|活动|描写|描述|的|或|和|与|、){1,8}"
HANGUL, CYRILLIC = re.compile(r"[\uac00-\ud7af]"), re.compile(r"[\u0400-\u04ff]")

FEATURES: tuple[tuple[re.Pattern[str], Look], ...] = (
    (_form("表格", "tables?"), _has("表格", "a table", r"^[ \t]*\|?[^|\n]+\|[^\n]*\n[ \t]*\|?[ \t:|-]*--", r"^[^|\n]*\|[^|\n]*\||\t|<table")),
    (_form("代码块", "(?:fenced )?code blocks?"), _has("代码块", "a code block", r"^[ \t]*(?:```|~~~)", r"^(?: {4}|\t)\S|`")),
    (_form("加粗|粗体", "bold(?:face)?(?: text)?"), _has("粗体", "bold text", r"\*\*[^*\n]+\*\*|__[^_\n]+__|<b>|<strong>")),
    (_form("编号", "numbered(?: (?:list|steps|points|options))?"), _has("编号", "numbering", NUMBERED, rf"{ITEM}|{LIKE_ITEMS}")),
    (_form("(?:无序|有序)?列表|分点|分条|条列式?|项目符号", "bullets?|bullet(?:ed)? ?points?|(?:bullet(?:ed)? )?lists?"), _has("列表", "a list", ITEM, LIKE_ITEMS)),
    (_form("markdown", "markdown"), _has("Markdown 标记", "Markdown", MARKDOWN, r"^[^\n。.!?！？]{1,40}\n")),
    (_form("链接|网址", "links?|urls?"), _has("链接", "a link", r"https?://|www\.|\]\(", r"\.(?:com|org|net|cn|tw)\b")),
    (_demand("(?:以|用)?(?:一个|一句)?(?:开放式)?(?:疑?问句|提问|反问|问题)(?:来)?(?:结尾|结束|收尾)", rf"(?:ends?|closes?|finish(?:es)?) with an? (?:\w+ )?question(?: (?:for|to) {TO_EN})?"), _asks_last),
    (_demand(f"每一?(?:句话?|个句子)的?(?:结尾|末尾|最后)?(?:都|均|要)?(?:以|用|加上?|带上?)?{MARK}(?:来|作为)?(?:结尾|结束|收尾)?", f"ends? (?:every|each) sentence with {MARK}|sentence ends with {MARK}"), _says_each_time),
    (_demand(f"(?:以|用|使用){MARK}来?称呼{TO_ZH}|称呼?{TO_ZH}(?:为|作|做)?{MARK}", f"(?:address(?:es)?|calls?) {TO_EN} (?:as )?{MARK}"), _calls),
    (_demand(f"(?:说出?|包含|含有|自称|写上?|以|用){MARK}(?:一词|字样|作结)?", f"(?:says?|uses?|contains?|includes?|signs? (?:with|off with)) (?:the (?:words?|phrase) )?{MARK}"), _says),
    (_demand(rf"(?:在|用)?(?:\( ?\)|圆?括号)[中内里]?(?:含有|包含|有|写出|描写|描述)?{DEED}|{DEED}(?:写|放|标注)[在于](?:\( ?\)|圆?括号)[中内里]?", r"(?:puts?|writes?|gives?|describes?) (?:actions?|expressions?|gestures?)(?: (?:or|and) \w+)? in (?:parentheses|brackets)"), _in_brackets),
    (_form("日[语文]", "(?:replies in )?japanese"), _in_script("假名", "kana", KANA)),
    (_form("韩[语文]", "(?:replies in )?korean"), _in_script("韩文", "Hangul", HANGUL)),
    (_form("俄[语文]", "(?:replies in )?russian"), _in_script("俄文", "Cyrillic", CYRILLIC)),
)  # fmt: skip


def _by_feature(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    """What a feature decides, where the constraint is about nothing else."""
    masked = QUOTE.sub(MARK, plain(constraint))
    for pattern, look in FEATURES:
        if match := pattern.fullmatch(masked):
            is_there, zh, en, shown = look(turn.answer, quotations(constraint))
            if is_there is None:
                return None
            is_denied = bool(match["denied_zh"] or match["denied_en"])
            return Found("fully" if is_there is not is_denied else "no", voice(zh, en, shown=shown))
    return None


# --- acts ------------------------------------------------------------------------------------------


class Act(NamedTuple):
    """Something that is done by saying it: criteria that ask for it, and sentences that do it."""

    asked: re.Pattern[str]
    done: tuple[str, ...]


ACTS = {
    "greeting": Act(
        _demand(f"(?:向|对|跟|和)?{TO_ZH}(?:表示)?(?:问候|问好|打招呼|欢迎){TO_ZH}(?:的到来)?", f"(?:greets?|welcomes?) {TO_EN}|says hello|begins with a greeting"),
        ("您好，欢迎光临！", "你好呀，很高兴见到你。", "大家早上好！", "Hello, nice to meet you!", "Good evening, and welcome to our shop.", "Hi there!"),
    ),
    "thanks": Act(
        _demand(f"(?:向|对)?{TO_ZH}(?:表示|表达)?(?:感谢|致谢|道谢|谢意|谢谢){TO_ZH}", f"(?:thanks|expresses thanks to) {TO_EN}"),
        ("谢谢您的支持。", "感谢您的提问！", "多谢惠顾。", "Thank you for your question!", "We appreciate your patience."),
    ),
    "apology": Act(
        _demand(f"(?:向|对)?{TO_ZH}(?:表示|表达)?(?:道歉|致歉|歉意)", f"apologi[sz]es(?: to {TO_EN})?|says sorry"),
        ("非常抱歉给您带来不便。", "对不起，是我弄错了。", "不好意思，让您久等了。", "I'm sorry for the trouble.", "We apologise for the delay."),
    ),
    "wishes": Act(
        _demand(f"(?:向|对|跟|和)?{TO_ZH}(?:表示|表达|送上)?(?:祝福|告别|道别|祝愿|再见)", f"(?:wishes {TO_EN} well|says goodbye(?: to {TO_EN})?)"),
        ("祝您生活愉快！", "再见，期待下次见到您。", "祝你一路顺风。", "Have a nice day!", "Goodbye and take care."),
    ),
    "introduction": Act(
        _demand("(?:作|做)?(?:个)?自我介绍|介绍自己|(?:报出|报上|说出)自己的名字", "introduces (?:itself|himself|herself)|gives (?:its|his|her) name"),
        ("我是客服小云。", "我叫阿明，是您的助手。", "我是老王，专门帮人修车的！", "My name is Ada, your guide.", "I'm Tom from the help desk."),
    ),
    "refusal": Act(
        _demand(f"(?:拒绝|婉拒|回绝){TO_ZH}的?(?:回答|请求|问题|要求)?[\u4e00-\u9fff]{{0,12}}", r"(?:declines|refuses)(?: [\w']+){0,8}"),
        ("抱歉，这个问题我不能回答。", "我只回答数学问题，别的不方便谈。", "这里不便透露。", "I'm sorry, I can't help with that.", "I'm not able to share that information."),
    ),
    "comfort": Act(
        _demand(f"(?:对|向)?{TO_ZH}(?:表示|表达)?(?:安慰|关心|同情|理解|关切){TO_ZH}", f"(?:comforts|consoles|shows (?:sympathy|concern)(?: for)?) {TO_EN}"),
        ("别难过，这很正常。", "听到这个消息，您一定很不好受。", "I'm sorry to hear that, it must be hard.", "Don't worry, it happens to everyone."),
    ),
    "praise": Act(
        _demand(f"(?:对)?{TO_ZH}(?:表示|给予)?(?:表扬|夸奖|鼓励|肯定|称赞){TO_ZH}", f"(?:praises|compliments|encourages) {TO_EN}"),
        ("真棒，你答对了！", "做得非常好！", "Well done, great job!", "Excellent answer!"),
    ),
    # What is not to be taken for any of these.
    "statement": Act(
        re.compile("(?!)"),
        ("这座塔高45米。", "门票每张80元。", "先把面粉和鸡蛋拌匀。", "这款耳机很轻。", "可以申请劳动仲裁。", "请问您的订单号是多少？", "The tower is 45 metres high.",
         "Mix the flour and the eggs.", "Work starts in May.", "He opened the door and went in.", "Could you tell me your order number?"),
    ),
}  # fmt: skip
CLEARLY = 0.01
MOST_PIECES = 60
PIECES = re.compile(r"[，,：:]")


def _by_act(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    name = next((name for name, act in ACTS.items() if act.asked.fullmatch(plain(constraint))), None)
    if name is None or NEGATION.match(plain(constraint)):
        return None
    pieces = [piece.strip() for one in sentences(turn.answer) for piece in (one, *PIECES.split(one))]
    pieces = list(dict.fromkeys(filter(LETTER_OR_DIGIT.search, pieces)))[:MOST_PIECES]
    if not pieces:
        return None
    names = [name for name, act in ACTS.items() for _ in act.done]
    likeness = turn.vectors(pieces) @ turn.vectors([done for act in ACTS.values() for done in act.done]).T
    for piece, row in zip(pieces, likeness, strict=True):
        own = max(value for value, of in zip(row, names, strict=True) if of == name)
        if own >= CLEARLY + max(value for value, of in zip(row, names, strict=True) if of != name):
            return Found("fully", voice("回答这样做了：{shown}", "the answer does so: {shown}", shown=piece))
    return None


# --- what is asked, said or left unsaid ------------------------------------------------------------

ASKS = _demand(
    f"(?:询问|追问|问清?){TO_ZH}(?P<of>.{{2,60}})|(?:要求|请|让|引导){TO_ZH}(?:重新)?(?:提供|补充|说明|选择|确认|留下|输入|发|给出)(?P<give>.{{0,60}})",
    f"asks?(?: {TO_EN})?(?: for| about| to| whether| which| what)? (?P<en>.{{3,80}})",
)
ASKING = re.compile(r"[?？]|请|麻烦|告诉|说清|\b(?:please|let me know|tell me|send me)\b", re.IGNORECASE)
SAYS = _demand(
    f"(?:说明|告知|告诉|指出|写明|注明|表示|提到|提及|提醒|强调|介绍|建议|推荐|提出|透露|泄露|讨论|谈论|谈及|承诺|保留|说){TO_ZH}[:：]?(?P<of>.{{2,200}})",
    f"(?:says|states|mentions?|explains?|notes|confirms?|points out|reveals?|discuss(?:es)?|recommends?|suggests?|advises|keeps?|promises?"
    f"|(?:tells|informs|reminds|warns|advises) {TO_EN})(?: that| to| of| about|:)? (?P<en>.{{3,300}})",
)
SAID = 0.75
ASKED = 0.5
SURELY = 0.85


def _by_asking(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    match = ASKS.fullmatch(plain(constraint))
    if match is None or match["denied_zh"] or match["denied_en"]:
        return None
    thing = match["of"] or match["give"] or match["en"] or ""
    for asking in filter(ASKING.search, sentences(turn.answer)):
        if shared(thing, asking) >= ASKED or not words(thing):
            return Found("fully", voice("回答问到了：{shown}", "the answer asks: {shown}", shown=asking))
    return None


def _by_saying(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    """What is to be said, read as a claim beside the answer."""
    match = SAYS.fullmatch(plain(constraint))
    if match is None:
        return None
    start = match.start("of") if match["of"] else match.start("en")
    said = constraint[start:] if len(plain(constraint)) == len(constraint) else (match["of"] or match["en"])
    found = turn.reading.support(Claim(said))
    is_denied = bool(match["denied_zh"] or match["denied_en"])
    share = shared(said, turn.answer)
    if found.label == "contradicted" and (found.difference or found.odds.contradicted >= SURELY):
        # Who must not say it and says the opposite has not said it.
        return Found(
            "fully" if is_denied else "no",
            voice("回答说的与此不同：{quote}", "the answer says otherwise: {quote}", quote=found.quote or ""),
        )
    is_said = found.label == "supported" or (share >= SAID and not missing(said, [turn.answer]))
    if is_said and not is_denied:
        quote = found.quote if found.label == "supported" else None
        return Found(
            "fully", voice("回答说到了：{quote}", "the answer speaks of it: {quote}", quote=quote or turn.answer)
        )
    if is_denied and found.odds.supported >= SURELY:
        return Found("no", voice("回答这样说了：{quote}", "the answer says so: {quote}", quote=found.quote or ""))
    if is_denied and not share and found.label == "unknown":
        return Found("fully", voice("回答没有说到“{said}”", "the answer says nothing of “{said}”", said=said))
    return None


# --- one constraint --------------------------------------------------------------------------------

CONDITION = re.compile(
    r"(?:如果|若|假如|当|一旦|每当|遇到|在)(?P<if_zh>[^，,]{2,40}?)(?:的?时候?|的?情况下|的话|后)?[，,](?P<then_zh>.{2,200})"
    r"|(?P<when_zh>[^，,]{3,40}?)(?:时候?|的?情况下|的话)[，,]?(?P<do_zh>[^间代刻而].{1,200})"
    r"|(?:if|when|whenever|once) (?P<if_en>[^,]{3,80}), ?(?P<then_en>.{3,200})|(?P<do_en>.{4,100}?) (?:if|when|whenever|once) (?P<when_en>.{3,100})"
)
STYLE = re.compile(r"风格|语气|口吻|态度|性格|情绪|\b(?:tone|style|persona|voice|manner|mood)\b")


def is_one(content: str) -> bool:
    """Whether a criterion is one constraint, whatever commas it has: a condition, or something to be said."""
    text = plain(content).strip().rstrip(".。")[:LONGEST_CONSTRAINT]
    return bool(CONDITION.fullmatch(text) or SAYS.fullmatch(text))


def look(constraint: str, kind: str, turn: Spoken, voice: Voice) -> Found:
    """Whether one constraint is met, as far as that shows; `kind` is the type that the criterion names."""
    text = constraint.strip().rstrip(".。")
    if len(text) <= LONGEST_CONSTRAINT:
        if condition := CONDITION.fullmatch(plain(text)):
            return _conditional(condition, kind, turn, voice)
        if not CHOICE.search(QUOTE.sub(MARK, plain(text))):
            for decide in (_by_feature, _by_act, _by_asking, _by_saying):
                if found := decide(text, turn, voice):
                    return found
    if STYLE.search(plain(f"{kind} {text}")):
        return Found(None, voice("语气和风格超出本评判者的能力", "tone and style are beyond this judge"))
    return Found(None, voice("看不出是否做到“{text}”", "cannot tell whether “{text}” is met", text=text))


def _conditional(condition: re.Match[str], kind: str, turn: Spoken, voice: Voice) -> Found:
    named = {name.partition("_")[0]: part for name, part in condition.groupdict().items() if part}
    when, then = named.get("if") or named["when"], named.get("then") or named["do"]
    done = look(then, kind, turn, voice)
    if done.complies == "fully":
        return done
    is_called_for = _called_for(when, turn)
    if is_called_for is False:
        return Found("fully", voice("本轮没有出现“{when}”", "“{when}” does not arise in this turn", when=when), False)
    if is_called_for:
        return done
    return Found(None, voice("看不出本轮是否属于“{when}”", "cannot tell whether “{when}” applies", when=when))


CALLED_FOR = 0.6
TOPIC = re.compile(
    f"{TO_ZH}(?:提到|提及|问到|问起|询问|谈到|涉及|说到)(?P<zh>.{{2,20}})"
    f"|{TO_EN} (?:asks? about|mentions?|talks? about|speaks? of) (?P<en>.{{3,40}})|(?P<passive>.{{3,40}}) (?:is|are) mentioned"
)


def _called_for(when: str, turn: Spoken) -> bool | None:
    """Whether a condition holds, by what the user said; None where that is not clear."""
    topic = TOPIC.fullmatch(when)
    about = (topic["zh"] or topic["en"] or topic["passive"]) if topic else when
    share = shared(about, turn.prompt)
    return True if share >= CALLED_FOR else None
