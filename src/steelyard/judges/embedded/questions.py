"""What a question asks for: its kind, the words it is about, and whether a text offers an answer of that kind."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from steelyard.judges.embedded.meaning import plain, words

Kind = Literal["why", "price", "how_many", "when", "where", "who", "which", "how", "yes_no", "what"]

# Tried in this order: 什么时候 before 什么, 怎么会 (why) before 怎么 (how), 是否 before 什么, a final 吗 last.
KINDS: tuple[tuple[Kind, str], ...] = (
    ("why", r"为什么|为何|为啥|何以|(?:是)?什么(?:的)?(?:原因|缘故)|原因(?:是什么|有哪些|何在)|怎么会|\bwhy\b|\bhow come\b|\bwhat(?:'s| is| are| was| were)? the reasons?\b|\bwhat causes?\b"),
    ("when", r"(?:在|是|从)?(?:什么时候|什么时间|何时|何年|何日|哪一?年|哪一?天|哪一?[月日]|几点|几月|几号|哪个(?:年份|月份|时候|世纪|朝代))|\bwhen\b|\b(?:what|which) (?:year|date|day|time|month|century|decade)\b"),
    ("price", r"多少钱|什么价格?|(?:价格|票价|价钱|费用|售价|收费|资费)(?:是|为|要)?(?:多少|怎么样?|如何|怎样)|怎么收费|\bhow much (?:is|are|was|were|does .{1,40} cost|do .{1,40} cost|(?:do|does|will|would) .{1,30} (?:pay|charge))|\bhow expensive\b|\bwhat(?:'s| is| are| does)? (?:the )?(?:\w+ ){0,2}(?:price|cost|fee|fare)\b"),
    ("how_many", r"多少|多大|多长|多高|多远|多久|多重|多宽|多深|多快|多厚|几(?=[个位次种年天人条项款座节张排层级岁小时分名家本台辆斤公里元块])|(?:哪|第)几|比例是|价格是?什么|\bhow (?:many|much|long|far|old|tall|high|deep|wide|big|large|fast|heavy|often|expensive)\b|\bwhat(?:'s| is| was)? the (?:number|price|cost|amount|population|size|length|height|distance|percentage|capacity|total)\b"),
    ("where", r"(?:在|位于|从|去|到)?(?:哪里|哪儿|(?<!如)何处|(?<!如)何地|什么地方|什么位置|哪个(?:地方|城市|省份?|位置|区域))|(?:在|位于|来自)哪个国家|在哪|\bwhere\b|\b(?:what|which) (?:city|country|state|place|town|region|province)\b"),
    ("who", r"谁|哪一?位|何人|什么人|哪个人|\bwho(?:m|se)?\b"),
    ("yes_no", r"是否|能否|可否|有没有|有无|是不是|能不能|会不会|要不要|该不该|需不需要|可不可以|用不用|行不行|好不好|对不对"),
    ("how", r"怎么样?|怎样|如何|咋|怎么办|什么(?:办法|方法|步骤|方式)|\bhow\b|\bwhat (?:steps|method|procedure)\b"),
    ("which", r"哪(?:一?些|一?个|一?种|一?款|一?项|几|一|家|本|部|条)|\bwhich\b"),
    ("what", r"什么|啥|何|\bwhat\b"),
    ("yes_no", r"吗|(?<![什怎这那多要])么(?=\W*$)|\A\W*(?:(?:please )?tell me (?:if|whether)|is|are|am|was|were|do|does|did|can|could|should|shall|will|would|has|have|had|may|might|must)\b|\bwhether\b"),
)  # fmt: skip
PATTERNS = tuple((kind, re.compile(pattern)) for kind, pattern in KINDS)
# 介绍一下这家酒店, tell me about the museum: whatever is said of the thing serves.
OPEN = re.compile(
    r"\A\W*(?:请|帮我|给我|麻烦|能否|可以)*(?:简单|详细|简要)?(?:介绍|讲讲|说说|谈谈|聊聊)(?:一下|下)?|的?(?:介绍|简介|概况|概览)(?=\W*$)"
    r"|\btell me (?:more |something )?about\b|\A\W*(?:please )?(?:describe|introduce)\b|\boverview of\b"
)
COURTESY = re.compile(
    r"请问|你好|您好|我想(?:知道|问|了解)|想(?:知道|问)一?下|告诉我|请(?:介绍|说明|解释|列出)|麻烦|[吗呢吧啊呀]+(?=\W*$)"
    r"|\b(?:please|tell me|can you|could you|i want to know|i'd like to know|explain|describe)\b"
)
# 哪个国家, which country: the thing asked for; what is said about it is the rest.
HEAD = re.compile(r"\A\s*(?:的)?([\u4e00-\u9fff]{2}|[a-z]+)")

NAMED = re.compile(r"《[^》]+》|“[^”]+”|「[^」]+」|(?<=\s)[A-Z][\w'-]+|[A-Z][A-Za-z]*\d+")
LOOSE_END = re.compile(r"[的是在有]+(?=\W|$)|[?？]")

NUMBER = r"\d|[一二两三四五六七八九十百千万亿半几数]+(?:[个位次种年天人条项款座节张排层级岁名家本台辆斤公里元块万亿余多]|分之|%)|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|million|billion|twice|once|half|several|many|no|none|zero)\b|没有|无数|所有|全部"
YEAR = re.compile(r"\d{4} ?年|\b(?:in|since|from|by|of|until) \d{4}\b")
ANSWERS: dict[str, re.Pattern[str]] = {
    kind: re.compile(pattern)
    for kind, pattern in {
        "why": r"因为|由于|所以|因此|因而|导致|造成|原因|源于|为了|以便|从而|以免|使得?|有助于|目的|影响|\b(?:because|due to|since|as a result|therefore|thus|so that|in order to|caus|owing|result|reason|leads? to|led to|to (?:avoid|prevent|protect|keep|make|allow|reduce))",
        "when": r"\d{3,4}|\d+ ?[年月日号点:]|[一二三四五六七八九十]+(?:月|日|点|年)|世纪|年代|昨天|今天|明天|周[一二三四五六日末]|星期|上午|下午|早上|晚上|春|夏|秋|冬|期间|之[前后]|时候|朝|\b(?:january|february|march|april|may|june|july|august|september|october|november|december|monday|tuesday|wednesday|thursday|friday|saturday|sunday|century|today|tomorrow|yesterday|morning|noon|evening|night|spring|summer|autumn|winter|before|after|during|ago|a\.?m|p\.?m|bc|ad|\d+s?)\b",
        "price": r"\d ?(?:元|块|美元|欧元|日元|港元|人民币|刀|%|折)|[$€£¥]|免费|半价|不收|不要钱|[一二三四五六七八九十百千万]+(?:元|块|折|成)|\b(?:free|euros?|dollars?|pounds?|yen|cents?|usd|eur|rmb|cny|percent|half[- ]price)\b",
        "how_many": NUMBER,
        "where": r"位于|坐落|在|于|[省市县区镇村路街国州楼层排]|处|东|南|西|北|旁|附近|\b(?:in|at|on|near|from|to|under|behind|beside|between|north|south|east|west|inside|outside|located|next to)\b",
        "how": r"通过|利用|使用|用|先|再|然后|接着|步骤|点击|按|打开|进入|选择|需要|可以|应|方式|方法|将|把|\b(?:by|using|use|first|then|next|step|click|press|open|select|choose|go to|need to|should|can|with|through|via|must|set|turn|hold|enter)\b",
        "yes_no": r"(?<!可)能|可以|不|没有?|无|有|是的|是|会|建议|支持|允许|需要?|应该?|禁止|必须|请勿|配备|标配|提供|\b(?:yes|no|not|never|can|cannot|can't|is|are|was|were|does|do|did|will|should|must|has|have|had|may|isn't|aren't|doesn't|don't|didn't|won't|recommend|allow|support|include|offer|provide)",
    }.items()
}  # fmt: skip
EXPLANATORY: frozenset[Kind] = frozenset(("why", "how", "yes_no", "what"))


class Question(NamedTuple):
    """A question as read: what kind of answer it wants, about what."""

    text: str
    kind: Kind
    focus: frozenset[str]
    about: str
    """The question without its question words; for `which X`, without X too."""
    names: frozenset[str]
    """The words that only say of whom or what: titles in 《》, quotations, capitalised words."""
    is_open: bool = False
    """Whether it asks for anything about a thing: 介绍, tell me about."""

    def typed(self, text: str) -> bool | None:
        """Whether a text holds the kind of thing that is asked for; None where its kind shows nowhere."""
        pattern = ANSWERS.get(self.kind)
        if pattern is None:
            return None
        # A year is a number that counts nothing.
        said = YEAR.sub(" ", plain(text)) if self.kind == "how_many" else plain(text)
        return bool(pattern.search(said))

    def overlap(self, text: str) -> float:
        """The share of what the question is about that a text mentions."""
        return len(self.focus & set(words(text))) / len(self.focus) if self.focus else 0.0


def _kind(folded: str) -> tuple[Kind, re.Match[str] | None]:
    found = ((kind, pattern.search(folded)) for kind, pattern in PATTERNS)
    return next(((kind, match) for kind, match in found if match), ("what", None))


@lru_cache(maxsize=512)
def question_of(text: str) -> Question:
    folded = plain(text)
    kind, match = _kind(folded)
    is_open = match is None and bool(OPEN.search(folded))
    if is_open:
        folded = OPEN.sub(" ", folded)
    bare = COURTESY.sub(" ", folded if match is None else f"{folded[: match.start()]} {folded[match.end() :]}")
    about = bare
    if match and kind in ("which", "what") and (head := HEAD.match(folded[match.end() :])):
        about = re.sub(re.escape(head[1]), " ", bare)
    about = " ".join(LOOSE_END.sub(" ", about).split())
    names = frozenset(word for name in NAMED.findall(text) for word in words(name))
    return Question(text, kind, frozenset(words(bare)), about or bare, names, is_open)
