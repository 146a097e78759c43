"""Whether an answer does what one constraint asks for: what shows is decided, the rest is left open with a reason.

"No" needs a fact: a form that is or is not there, words that are missing, a statement that the answer contradicts. An
act that was not recognised (a greeting, a question to the user) may be there in other words, so it is left open.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.figures import missing
from steelyard.judges.embedded.kinds import is_fallback, kind_of, plain
from steelyard.judges.embedded.reasons import Voice
from steelyard.judges.embedded.support import Claim, Reading
from steelyard.text import HAN, LETTER_OR_DIGIT, in_simplified, normalise, sentences

Vectors = Callable[[Sequence[str]], Any]
"""Texts into rows of a matrix, as `Network.vectors` does."""


class Spoken(NamedTuple):
    """The turn that is judged, and what reads it."""

    number: int
    prompt: str
    answer: str
    reading: Reading
    vectors: Vectors


class Found(NamedTuple):
    """Whether one constraint is met; None where this judge cannot tell."""

    complies: Literal["fully", "partly", "no"] | None
    reason: str
    triggered: bool = True


# --- reading a criterion ---------------------------------------------------------------------------

LONGEST_CONSTRAINT, STEM = 300, 5
# Words that any criterion may have, as characters and stems.
FRAMING = frozenset("的了是在和与及或也都就而但这那其之于以为被把将对从到向由等着过吗呢吧们个很一不有用时要先请说出给并且会能可没无包含使语气风格答复") | frozenset(
    "use uses say says state menti inclu conta sound stay stays keep keeps refer repl reply respo answe consi write writt name names tone".split()
)  # fmt: skip
QUOTE = re.compile(
    r"“([^”]{1,60})”|「([^」]{1,60})」|『([^』]{1,60})』|\"([^\"]{1,60})\"|‘([^’]{1,60})’|(?<!\w)'([^']{1,60})'(?!\w)|([\w.+-]{1,40}@[\w.-]{3,60})"
)
MARK = "▢"
"""Stands for a quotation while a criterion is matched."""
# What is quoted may stand for something else: “亲爱的XX”.
STAND_IN = re.compile(r"[\[\]{}<>【】_…×]|x{2,}|\.\.\.|某|姓名|昵称|\bname\b", re.IGNORECASE)
CHOICE = re.compile(r"或|除非|除了|尽量|适当|必要时|\b(?:or|either|unless|except|if possible|where appropriate)\b")
STYLE = re.compile(r"风格|语气|口吻|态度|性格|情绪|\b(?:tone|style|persona|voice|manner|mood)\b")


def content(text: str) -> frozenset[str]:
    """What a text is about: stems, numbers and single Chinese characters that not any criterion may have."""
    said = plain(text)
    return frozenset(
        {*HAN.findall(said), *(word.removesuffix("ly")[:STEM] for word in words(HAN.sub(" ", said)))} - FRAMING
    )


def shared(wanted: str, *texts: str) -> float:
    """The share of what a text is about that stands in one of the others."""
    own = content(wanted)
    return max((len(own & content(text)) / len(own) for text in texts), default=0.0) if own else 0.0


def quotations(text: str) -> list[str]:
    return [next(filter(None, groups)).strip() for groups in QUOTE.findall(text)]


# Whom an answer speaks to, and words that may stand around a demand without adding to it.
TO_ZH = r"(?:使用者|候选人|[用客住]户|[顾旅游]客|客人|对方|玩家|学[生员]|读者|[观听]众|家长|孩子|患者|来访者|主人|他|她|ta)?"
TO_EN = r"(?:(?:the|its|his|her|an?|new) )?(?:users?|customers?|guests?|students?|readers?|players?|visitors?|patients?|candidates?|children|child|them|him|itself|herself|himself)"
FRAME_ZH = r"(?:回答|回复|答案|输出|助手|模型|内容|全文|[中里地的在处]|应该?|必须|需要?|[要请都均先再]|始终|一律|首先|然后|最后|主动|明确|清楚|礼貌|友好|热情|亲切|真诚|诚恳|委婉|及时|详细|开头|结尾|末尾){0,6}"
FRAME_EN = r"(?:(?:the|its|each|every|answer|assistant|reply|response|it|must|should|shall|always|first|then|also|clearly|politely|warmly|explicitly|kindly|gently) ){0,6}"
NOT_ZH = r"(?P<not_zh>[不没未](?:要|得|能|可以?|应|再|有)?|禁止|避免)?"
NOT_EN = r"(?P<not_en>(?:does|do|is|are|must|should) not |never |avoids? |without |no )?"


def _demand(zh: str, en: str) -> re.Pattern[str]:
    """A criterion that asks for this and nothing else, or forbids it."""
    return re.compile(rf"{FRAME_ZH}{NOT_ZH}(?:{zh})|{FRAME_EN}{NOT_EN}(?:{en})")


def _form(zh: str, en: str) -> re.Pattern[str]:
    """A form that is to be used, perhaps for something that is named: 以表格列出行程, presents the plan as a table."""
    return _demand(
        rf"(?:步骤|要点|选项|行程)?(?:有|带有|包含|含有|使用|采用|以|用|为)?(?:{zh})(?:的?(?:形式|格式|方式))?(?:来|进行)?(?:回答|作答|回复|呈现|展示|列出|给出|解释|说明|输出|整理|介绍|撰写|写)?(?:(?![或和与并及且])[\u4e00-\u9fff]){{0,10}}",
        rf"(?:us(?:e|es|ing) |ha(?:s|ve) |contains? |includes? |is |are |(?:steps|options|points|items) are )?(?:(?:presents?|shows?|gives?|lists?|writes?|offers?|puts?|provides?|begins?|starts?)(?: [\w']+){{0,4}} (?:as|in|with|using) )?(?:an? |any |the )?(?:[a-z]+ in )?(?:{en})(?: format| form)?",
    )  # fmt: skip


def _is_denied(match: re.Match[str]) -> bool:
    return bool(match["not_zh"] or match["not_en"])


# --- features: what shows on the surface -----------------------------------------------------------


Shown = tuple[bool | None, str, str, str]
"""Whether a feature is there (None: in doubt); how to say so, in Chinese and English; what was seen."""
Look = Callable[[str, Sequence[str]], Shown]
"""Looks at an answer; what the criterion quotes is given too."""


def _has(zh: str, en: str, pattern: str, doubtful: str = r"(?!)") -> Look:
    sure, maybe = re.compile(pattern, re.MULTILINE), re.compile(doubtful, re.MULTILINE)

    def look(answer: str, quotes: Sequence[str]) -> Shown:
        if sure.search(answer):
            return True, f"回答中有{zh}", f"the answer has {en}", ""
        return None if maybe.search(answer) else False, f"回答中没有{zh}", f"the answer does not have {en}", ""

    return look


def _asks_last(answer: str, quotes: Sequence[str]) -> Shown:
    last = (sentences(answer) or [""])[-1]
    bare = BRACKETED.sub("", last).rstrip(" *_\"'”」』）)~～")
    asks = True if bare.endswith(("?", "？")) else None if QUESTION.search(last) else False
    return asks, "最后一句是：{shown}", "the last sentence is: {shown}", last


def _says(answer: str, quotes: Sequence[str]) -> Shown:
    if quotes == ["您"] and "您" not in answer:
        return False if re.search("你(?!好)", answer) else None, "回答用的是“你”", "the answer says 你", ""
    there = normalise(in_simplified(answer))
    lacking = [one for one in quotes if normalise(in_simplified(one)) not in there]
    if any(STAND_IN.search(one) or not normalise(one) for one in quotes):
        return None, "", "", ""
    if lacking:
        return False, "回答中没有“{shown}”", "the answer does not have “{shown}”", lacking[0]
    return True, "回答中有“{shown}”", "the answer has “{shown}”", quotes[0]


def _says_each_time(answer: str, quotes: Sequence[str]) -> Shown:
    """Brackets hold what is done, not what is said. In a list it is not clear what a sentence is."""
    wanted = normalise(in_simplified(quotes[0]))
    spoken = [normalise(in_simplified(one)) for one in sentences(BRACKETED.sub(" ", answer))]
    right, n = sum(one.endswith(wanted) for one in spoken), len(spoken)
    is_met = None if not n or (0 < right < n and "\n" in answer) else right == n
    return is_met, "做到的句子：{shown}", "sentences that do so: {shown}", f"{right}/{n}"


ITEM = r"^[ \t]{0,12}(?:[-*+•·▪◦][ \t]|\d{1,3}[.)、）][ \t]*\S|[（(]\d{1,3}[）)]|[①-⑳])"
NUMBERED = r"^[ \t]{0,12}(?:\*\*)?(?:\d{1,3}[.)、）:：]|[（(]\d{1,3}[）)]|[①-⑳]|第?[一二三四五六七八九十]{1,3}[、.步]|[Ss]tep \d)"
# A list to some readers: 第一，…；第二，… in one line, or short lines without marks.
LIKE_ITEMS = r"第[一二三][,，、]|[；;。：:]\s?\d[.)、）]|\b(?:First|Second)ly\b|其次|^[^\n]{1,60}\n[^\n]{1,60}\n"
MARKDOWN = rf"^#{{1,6}} |\*\*[^*\n]{{1,200}}\*\*|```|^[ \t]*\|.*\|[ \t]*$|^> |\]\(|{ITEM}"
BRACKETED = re.compile(r"[（(][^（()）\n\d]{1,40}[）)]")
QUESTION = re.compile(r"[?？吗呢么]")
DEED = r"(?:表情|动作|神态|心理|情绪|活动|描写|描述|的|或|和|与|、){1,8}"

FEATURES: tuple[tuple[re.Pattern[str], Look], ...] = (
    (_form("表格", "tables?"), _has("表格", "a table", r"^[ \t]*\|?[^|\n]{1,200}\|[^\n]*\n[ \t]*\|?[ \t:|]*--", r"\|[^|\n]{1,200}\||\t|<table")),
    (_form("代码块", "(?:fenced )?code blocks?"), _has("代码块", "a code block", r"^[ \t]{0,12}(?:```|~~~)", r"^(?: {4}|\t)\S|`")),
    (_form("加粗|粗体", "bold(?:face)?(?: text)?"), _has("粗体", "bold text", r"\*\*[^*\n]{1,200}\*\*|__[^_\n]{1,200}__|<b>|<strong>", r"\*\*|__")),
    (_form("编号", "numbered(?: (?:list|steps|points|options))?"), _has("编号", "numbering", NUMBERED, rf"{ITEM}|{LIKE_ITEMS}")),
    (_form("(?:无序|有序)?列表|分点|分条|条列式?|项目符号", "bullets?|bullet(?:ed)? ?points?|(?:bullet(?:ed)? )?lists?"), _has("列表", "a list", ITEM, LIKE_ITEMS)),
    (_form("markdown", "markdown"), _has("Markdown 标记", "Markdown", MARKDOWN, r"^[^\n。.!?！？]{1,40}\n|\*\*|`")),
    (_form("标题", "(?:markdown )?headings?"), _has("标题", "a heading", r"^#{1,6} \S|<h[1-6]", r"^[^\n。.!?！？]{1,40}\n|\*\*")),
    (_form("日[语文]", "(?:replies in )?japanese"), _has("日文", "Japanese", r"(?:[ぁ-ゖァ-ヺ][^ぁ-ゖァ-ヺ\n]{0,12}){6}", r"[ぁ-ゖァ-ヺ]|\A\W*\Z")),
    (_demand("(?:以|用)?(?:一个|一句)?(?:开放式)?(?:疑?问句|提问|反问|问题)(?:来)?(?:结尾|结束|收尾)", rf"(?:ends?|closes?|finish(?:es)?) with an? (?:\w+ )?question(?: (?:for|to) {TO_EN})?"), _asks_last),
    (_demand(f"每一?(?:句话?|个句子)的?(?:结尾|末尾|最后)?(?:都|均|要)?(?:以|用|加上?|带上?)?{MARK}(?:来|作为)?(?:结尾|结束|收尾)?", f"ends? (?:every|each) sentence with {MARK}|sentence ends with {MARK}"), _says_each_time),
    (_demand(f"(?:以|用|使用){MARK}来?称呼{TO_ZH}|称呼?{TO_ZH}(?:为|作|做)?{MARK}", f"(?:address(?:es)?|calls?) {TO_EN} (?:as )?{MARK}"), _says),
    (_demand(f"(?:说出?|包含|含有|自称|写上?|注明|附上|加上|以|用){MARK}(?:一词|字样|作结)?", f"(?:says?|uses?|contains?|includes?|signs? (?:with|off with)) (?:the (?:words?|phrase) )?{MARK}"), _says),
    (_demand(rf"(?:在|用)?(?:\( ?\)|圆?括号)[中内里]?(?:含有|包含|有|写出|描写|描述)?{DEED}|{DEED}(?:写|放|标注)[在于](?:\( ?\)|圆?括号)[中内里]?", r"(?:puts?|writes?|gives?|describes?) (?:actions?|expressions?|gestures?)(?: (?:or|and) \w+)? in (?:parentheses|brackets)"), _has("括号里的话", "words in brackets", BRACKETED.pattern, "")),
)  # fmt: skip


def _by_feature(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    """What a feature decides, where the constraint is about nothing else."""
    masked = QUOTE.sub(MARK, plain(constraint))
    for pattern, look in FEATURES:
        if match := pattern.fullmatch(masked):
            is_there, zh, en, shown = look(turn.answer, quotations(constraint))
            if is_there is None:
                return None
            return Found("no" if is_there is _is_denied(match) else "fully", voice(zh, en, shown=shown))
    return None


# --- acts: what is done by saying it ---------------------------------------------------------------

# Criteria that ask for an act, and sentences that do it.
ACTS: dict[str, tuple[re.Pattern[str], tuple[str, ...]]] = {
    "greeting": (_demand(f"(?:向|对|跟|和)?{TO_ZH}(?:表示)?(?:问候|问好|打招呼|欢迎){TO_ZH}(?:的到来)?", f"(?:greets?|welcomes?) {TO_EN}|says hello|begins with a greeting"),
        ("您好，欢迎光临！", "你好呀，很高兴见到你。", "大家早上好！", "Hello, nice to meet you!", "Good evening, and welcome to our shop.", "Hi there!")),
    "thanks": (_demand(f"(?:向|对)?{TO_ZH}(?:表示|表达)?(?:感谢|致谢|道谢|谢意|谢谢){TO_ZH}", f"(?:thanks|expresses thanks to) {TO_EN}"),
        ("谢谢您的支持。", "感谢您的提问！", "多谢惠顾。", "Thank you for your question!", "We appreciate your patience.")),
    "apology": (_demand(f"(?:向|对)?{TO_ZH}(?:表示|表达)?(?:道歉|致歉|歉意)", f"apologi[sz]es(?: to {TO_EN})?|says sorry"),
        ("非常抱歉给您带来不便。", "对不起，是我弄错了。", "不好意思，让您久等了。", "I'm sorry for the trouble.", "We apologise for the delay.")),
    "wishes": (_demand(rf"(?:向|对|跟|和)?{TO_ZH}(?:表示|表达|送上)?(?:祝福|告别|道别|祝愿|再见)|祝{TO_ZH}[\u4e00-\u9fff]{{2,8}}", f"wishes {TO_EN} well|says goodbye(?: to {TO_EN})?"),
        ("祝您生活愉快！", "再见，期待下次见到您。", "祝你一路顺风。", "Have a nice day!", "Goodbye and take care.")),
    "introduction": (_demand("(?:作|做)?(?:个)?自我介绍|介绍自己|(?:报出|报上|说出)自己的名字", "introduces (?:itself|himself|herself)|gives (?:its|his|her) name"),
        ("我是客服小云。", "我叫阿明，是您的助手。", "我是老王，专门帮人修车的！", "My name is Ada, your guide.", "I'm Tom from the help desk.")),
    "refusal": (_demand(rf"(?:拒绝|婉拒|回绝){TO_ZH}的?(?:回答|请求|问题|要求)?[\u4e00-\u9fff]{{0,12}}", r"(?:declines|refuses)(?: [\w']+){0,8}"),
        ("抱歉，这个问题我不能回答。", "我只回答数学问题，别的不方便谈。", "这里不便透露。", "I'm sorry, I can't help with that.", "I'm not able to share that information.")),
    "comfort": (_demand(f"(?:对|向)?{TO_ZH}(?:表示|表达)?(?:安慰|关心|同情|理解|关切){TO_ZH}", f"(?:comforts|consoles|shows (?:sympathy|concern)(?: for)?) {TO_EN}"),
        ("别难过，这很正常。", "听到这个消息，您一定很不好受。", "I'm sorry to hear that, it must be hard.", "Don't worry, it happens to everyone.")),
    "praise": (_demand(f"(?:对)?{TO_ZH}(?:表示|给予)?(?:表扬|夸奖|鼓励|肯定|称赞){TO_ZH}", f"(?:praises|compliments|encourages) {TO_EN}"),
        ("真棒，你答对了！", "做得非常好！", "Well done, great job!", "Excellent answer!")),
    # What is not to be taken for any of these.
    "statement": (re.compile("(?!)"),
        ("这座塔高45米。", "门票每张80元。", "先把面粉和鸡蛋拌匀。", "这款耳机很轻。", "可以申请劳动仲裁。", "请问您的订单号是多少？", "The tower is 45 metres high.",
         "Mix the flour and the eggs.", "Work starts in May.", "He opened the door and went in.", "Could you tell me your order number?")),
}  # fmt: skip
LIKE, CLEARLY, MOST_PIECES = 0.5, 0.08, 60
PIECES = re.compile(r"[，,：:]")


def act_asked(constraint: str) -> str | None:
    """The act that a constraint asks for; None where it asks for something else, or forbids it."""
    asked = ((name, pattern.fullmatch(plain(constraint))) for name, (pattern, _) in ACTS.items())
    return next((name for name, match in asked if match and not _is_denied(match)), None)


def _by_act(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    """An act is there if a piece of the answer is clearly more like it than like any other."""
    name = act_asked(constraint)
    pieces = [piece.strip() for one in sentences(turn.answer) for piece in (one, *PIECES.split(one))]
    pieces = list(dict.fromkeys(filter(LETTER_OR_DIGIT.search, pieces)))[:MOST_PIECES]
    if name is None or not pieces:
        return None
    done = [(of, one) for of, (_, examples) in ACTS.items() for one in examples]
    known, found = turn.vectors([one for _, one in done]), turn.vectors(pieces)
    # Less what all sentences have in common, which would hide how they differ.
    common = known.mean(0)
    likeness = _unit(found - common) @ _unit(known - common).T
    own = likeness[:, [at for at, (of, _) in enumerate(done) if of == name]].max(1)
    others = likeness[:, [at for at, (of, _) in enumerate(done) if of != name]].max(1)
    best = int((own - others).argmax())
    if own[best] >= max(LIKE, others[best] + CLEARLY):
        return Found("fully", voice("回答这样做了：{shown}", "the answer does so: {shown}", shown=pieces[best]))
    if name == "refusal" and is_fallback(turn.answer, turn.prompt):
        return Found("fully", voice("回答拒绝了：{shown}", "the answer declines: {shown}", shown=turn.answer))
    return None


def _unit(matrix: Any) -> Any:
    return matrix / ((matrix**2).sum(1, keepdims=True) ** 0.5 + 1e-6)


# --- what is asked, said or left unsaid ------------------------------------------------------------

ASKS = _demand(
    f"(?:询问|追问|问清?){TO_ZH}(?P<of>.{{2,60}})|(?:要求|请|让|引导){TO_ZH}(?P<give>.{{2,60}})",
    f"asks?(?: {TO_EN})?(?: for| about| to| whether| which| what)? (?P<en>.{{3,80}})",
)
# Not every request is a question.
REQUEST = re.compile(r"请|麻烦|告诉|说清|\b(?:please|let me know|tell me|send me)\b", re.IGNORECASE)
SAYS = _demand(
    f"(?:说明|告知|告诉|指出|写明|注明|表示|提到|提及|提醒|强调|介绍|建议|推荐|提出|承认|透露|泄露|讨论|谈论|谈及|承诺|保留|说){TO_ZH}[:：]?(?P<of>.{{2,200}})",
    f"(?:says?|states?|mentions?|explains?|notes?|confirms?|points? out|reveals?|discuss(?:es)?|recommends?|suggests?|advises?|admits?|keeps?|promises?|(?:tells?|informs?|reminds?|warns?|advises?) {TO_EN})(?: that| to| of| about|:)? (?P<en>.{{3,300}})",
)  # fmt: skip
STATEMENT = re.compile(r"\bthat\b|[:：]")
ASKED, SAID, SURELY = 0.5, 0.75, 0.85


def _by_asking(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    match = ASKS.fullmatch(plain(constraint))
    if match is None or _is_denied(match):
        return None
    for asking in sentences(turn.answer):
        is_asking = kind_of(asking) == "question" or REQUEST.search(asking)
        if is_asking and shared(match["of"] or match["give"] or match["en"], asking) >= ASKED:
            return Found("fully", voice("回答问到了：{shown}", "the answer asks: {shown}", shown=asking))
    return None


def _by_saying(constraint: str, turn: Spoken, voice: Voice) -> Found | None:
    """What is to be said, or not to be said, read as a claim beside the answer."""
    match = SAYS.fullmatch(plain(constraint))
    if match is None:
        return None
    said = match["of"] or match["en"]
    found = turn.reading.support(Claim(constraint[-len(said) :]))
    spoken, is_denied, quote = sentences(turn.answer), _is_denied(match), found.quote or turn.answer
    if found.label == "contradicted" and (found.difference or found.odds.contradicted >= SURELY):
        # Who is not to say something and says otherwise has not said it.
        told = voice("回答说的与此不同：{quote}", "the answer says otherwise: {quote}", quote=quote)
        return Found("fully" if is_denied else "no", told)
    is_said = found.odds.supported >= SURELY or (found.label == "supported" and shared(said, *spoken) >= SAID)
    # A thing that is not to be spoken of may be named in declining to; a statement is made or not.
    is_plain = not is_denied or (STATEMENT.search(constraint) and found.odds.supported >= SURELY)
    if is_said and is_plain and not missing(said, spoken):
        told = voice("回答这样说：{quote}", "the answer says so: {quote}", quote=quote)
        return Found("no" if is_denied else "fully", told)
    if is_denied and found.label == "unknown" and not shared(said, turn.answer):
        return Found("fully", voice("回答没有说到“{said}”", "the answer says nothing of “{said}”", said=said))
    return None


# --- one constraint --------------------------------------------------------------------------------

CONDITION = re.compile(
    r"(?:如果|若|假如|当|一旦|每当|遇到|在)(?P<if_zh>[^，,]{2,40}?)(?:的?时候?|的?情况下|的话|后)?[，,](?P<then_zh>.{2,200})"
    r"|(?P<when_zh>[^，,]{3,40}?)(?:时候?|的?情况下|的话)[，,]?(?P<do_zh>[^间代刻而].{1,200})"
    r"|(?:if|when|whenever|once) (?P<if_en>[^,]{3,80}), ?(?P<then_en>.{3,200})|(?P<do_en>.{4,100}?) (?:if|when|whenever|once) (?P<when_en>.{3,100})"
)
AT_FIRST = re.compile(r"第一次|首次|首轮|初次|(?:第一|首)[轮句]|\bfirst (?:turn|message|reply|contact|time)\b")
BY_WORDS = re.compile(f"{TO_ZH}(?:说|输入|发送|提到|问){MARK}|{TO_EN} (?:says?|types?|sends?|enters?|mentions?) {MARK}")


def is_one(demanded: str) -> bool:
    """Whether a criterion is one constraint with all its commas: something to be said, or a condition."""
    text = plain(demanded).rstrip(".。")[:LONGEST_CONSTRAINT]
    return bool(SAYS.fullmatch(text) or CONDITION.fullmatch(text))


def look(constraint: str, kind: str, turn: Spoken, voice: Voice) -> Found:
    """Whether one constraint is met, as far as that shows; `kind` is the type that the criterion names."""
    text = constraint.strip().rstrip(".。")
    if len(text) <= LONGEST_CONSTRAINT:
        if condition := CONDITION.fullmatch(plain(text)):
            return _conditional(condition, kind, turn, voice)
        is_open = CHOICE.search(QUOTE.sub(MARK, plain(text)))
        for decide in (_by_feature,) if is_open else (_by_feature, _by_act, _by_asking, _by_saying):
            if found := decide(text, turn, voice):
                return found
    if STYLE.search(plain(f"{kind} {text}")):
        return Found(None, voice("语气和风格超出本评判者的能力", "tone and style are beyond this judge"))
    return Found(None, voice("看不出是否做到“{text}”", "cannot tell whether “{text}” is met", text=text))


def _conditional(condition: re.Match[str], kind: str, turn: Spoken, voice: Voice) -> Found:
    named = {name.partition("_")[0]: part for name, part in condition.groupdict().items() if part}
    when, then = named.get("if") or named["when"], named.get("then") or named["do"]
    done, is_called_for = look(then, kind, turn, voice), _called_for(when, turn)
    if is_called_for is False and done.complies != "fully":
        return Found("fully", voice("本轮没有出现“{when}”", "“{when}” does not arise in this turn", when=when), False)
    if done.complies == "fully" or is_called_for:
        return done
    return Found(None, voice("看不出本轮是否属于“{when}”", "cannot tell whether “{when}” applies", when=when))


def _called_for(when: str, turn: Spoken) -> bool | None:
    """Whether a condition holds where that is exact: the first turn, words that the user said; otherwise None."""
    if AT_FIRST.search(when):
        return False if turn.number > 1 else None
    return _says(turn.prompt, quotations(when))[0] if BY_WORDS.fullmatch(QUOTE.sub(MARK, when)) else None
