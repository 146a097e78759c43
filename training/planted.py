"""Pairs made for training: clean sentences of a document, and the same sentences with one planted error.

Both come with the passages they were taken from, cut short and shuffled, so that what is learnt is the difference
between the twins and not the look of a document.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from opencc import OpenCC

from steelyard.text import sentences
from training.sets import DATA, Part, Row, rows

SOURCES = ("factcheckgpt", "summedits", "begin", "uhgeval")
PER_DOCUMENT = 1
LONGEST_PASSAGE = 1200
HAN = re.compile(r"[\u4e00-\u9fff]")
EXCHANGED = tomllib.loads(Path(__file__).with_name("exchanged.toml").read_text("utf-8"))
PLACE = re.compile("|".join(sorted(EXCHANGED["places"], key=lambda word: (-len(word), word))))
Plant = Callable[[str, random.Random, "Pool"], str | None]
Pieces = Callable[[Row], list[str]]


class Pool:
    """Names of other documents, to put in the place of a sentence's own."""

    def __init__(self, texts: Iterable[str]) -> None:
        joined = "\n".join(texts)
        self.english = sorted(set(ENGLISH_NAME.findall(joined)))
        self.people = sorted(set(HAN_PERSON.findall(joined)))
        self.foreign = sorted(set(HAN_FOREIGN.findall(joined)))


ENGLISH_NAME = re.compile(r"(?<=[a-z,] )[A-Z][a-z]{2,}(?: [A-Z][a-z]{2,})*")
HAN_FOREIGN = re.compile(r"[\u4e00-\u9fff]{1,5}·[\u4e00-\u9fff]{1,6}(?=[，。、和与的在说称表])")
HAN_PERSON = re.compile(
    "(?<![\u4e00-\u9fff])[王李张刘陈杨黄赵吴周徐孙马朱胡郭何高林罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蒋蔡余杜叶程苏魏吕丁任沈姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严][\u4e00-\u9fff]{1,2}(?=表示|说|介绍|称|指出|认为|强调|告诉)"
)


# --- errors ----------------------------------------------------------------------------------------

DIGITS = re.compile(r"(?<![A-Za-z\d.,])\d+(?:\.\d+)?(?![\d]*[A-Za-z])")
HAN_NUMBER = re.compile(r"(?<!第)[二三四五六七八九两](?=[年个月天名位次家岁辆台公米])")


def number(text: str, dice: random.Random, pool: Pool) -> str | None:
    """Another number in the place of one; years stay years, so that the slip is small."""
    places = list(DIGITS.finditer(text)) + list(HAN_NUMBER.finditer(text))
    if not places:
        return None
    place = dice.choice(places)
    return text[: place.start()] + _another(place.group(), dice) + text[place.end() :]


def _another(written: str, dice: random.Random) -> str:
    if not written.isascii():
        return dice.choice([digit for digit in "二三四五六七八九" if digit != written])
    if "." in written:
        whole, _, rest = written.partition(".")
        return f"{int(whole) + dice.randint(1, 9)}.{rest}"
    value = int(written)
    if len(written) == 4 and 1000 <= value <= 2100:
        return str(value + dice.choice([-21, -10, -3, -2, -1, 1, 2, 5, 10]))
    step = max(1, value // dice.choice([2, 3, 5, 10]))
    return str(value + dice.choice([-1, 1]) * step if value > step else value + step)


MONTHS = "January February March April May June July August September October November December".split()
HAN_DATE = re.compile(r"(?<!\d)(\d{1,2})(?=月|日)")
ENGLISH_MONTH = re.compile(rf"\b(?:{'|'.join(MONTHS)})\b")


def date(text: str, dice: random.Random, pool: Pool) -> str | None:
    """Another day, month or weekday."""
    if month := ENGLISH_MONTH.search(text):
        other = dice.choice([name for name in MONTHS if name != month.group()])
        return text[: month.start()] + other + text[month.end() :]
    if day := HAN_DATE.search(text):
        other = dice.choice([value for value in range(1, 13) if value != int(day[1])])
        return text[: day.start()] + str(other) + text[day.end() :]
    return None


ORDINALS = "first second third fourth fifth".split()
ORDINAL = re.compile(rf"(?<=第)[一二三四五六七八九十](?![\u4e00-\u9fff]?[十百])|\b(?:{'|'.join(ORDINALS)})\b")


def ordinal(text: str, dice: random.Random, pool: Pool) -> str | None:
    place = ORDINAL.search(text)
    if place is None:
        return None
    choices = ORDINALS if place.group().isascii() else list("一二三四五六七八九十")
    other = dice.choice([choice for choice in choices if choice != place.group()])
    return text[: place.start()] + other + text[place.end() :]


def name(text: str, dice: random.Random, pool: Pool) -> str | None:
    """A name from elsewhere in the place of one of the sentence's own."""
    patterns = (
        (HAN_FOREIGN, pool.foreign), (HAN_PERSON, pool.people), (PLACE, PLACES),
        (ENGLISH_NAME, pool.english),
    )  # fmt: skip
    options = [(place, others) for pattern, others in patterns for place in pattern.finditer(text)]
    if not options:
        return None
    place, others = dice.choice(options)
    rest = [other for other in others if other not in text and place.group() not in other]
    return text[: place.start()] + dice.choice(rest) + text[place.end() :] if rest else None


PLACES = [
    "江苏",
    "浙江",
    "四川",
    "山东",
    "湖南",
    "云南",
    "甘肃",
    "日本",
    "法国",
    "德国",
    "加拿大",
    "泰国",
    "上海",
    "南京",
    "武汉",
    "成都",
]


def exchanged(text: str, dice: random.Random, pool: Pool) -> str | None:
    """Two names of the sentence in one another's place."""
    for pattern in (ENGLISH_NAME, HAN_FOREIGN, PLACE):
        places = list({match.group(): match for match in pattern.finditer(text)}.values())
        if len(places) == 2 and not LISTED.search(text[places[0].end() : places[1].start()]):
            a, b = places
            if a.group() not in b.group() and b.group() not in a.group():
                return text[: a.start()] + b.group() + text[a.end() : b.start()] + a.group() + text[b.end() :]
    return None


LISTED = re.compile(r"^\W*(?:and|or|,|、|和|与|及)?\W*$")
NEGATED = (
    (re.compile(r"\b(is|was|are|were|has been|will|can|could|should|would|does|did)\b(?! not|n't)"), r"\1 not"),
    (re.compile(r"(?<![\u4e00-\u9fff]不)(?<!只)(?<!就)(?<!还)是(?=[\u4e00-\u9fff])(?!否|不)"), "不是"),
    (re.compile(r"(?<!没)(?<!所)(?<!拥)(?<!具)有(?=[\u4e00-\u9fff])(?!关|些|望|限|效|所|时|助|利|序)"), "没有"),
    (re.compile(r"(?<!不)(?<!机)(?<!社)(?<!大)(?<!协)(?<!委员)会(?=[\u4e00-\u9fff])(?!议|长|员|见|谈|晤|上)"), "不会"),
    (re.compile(r"(?<!不)(?<!可)(?<!功)(?<!智)(?<!性)能够?(?=[\u4e00-\u9fff])(?!力|源|量)"), "不能"),
    (re.compile(r"(?<=[\u4e00-\u9fff])已经?(?=[\u4e00-\u9fff])"), "尚未"),
)
DENIED = (
    (re.compile(r"\b(is|was|are|were|can|could|will|would|did|does|has|have) ?(?:not|n't)\b"), r"\1"),
    (re.compile(r"没有|并未|尚未"), "已经"),
    (re.compile(r"不(?=是|会|能|支持|同意|得)"), ""),
)


def negation(text: str, dice: random.Random, pool: Pool) -> str | None:
    """A statement denied, or a denial stated."""
    for pattern, plain in DENIED:
        if pattern.search(text):
            return pattern.sub(plain, text, count=1)
    options = [(pattern, denied) for pattern, denied in NEGATED if pattern.search(text)]
    if not options:
        return None
    pattern, denied = dice.choice(options)
    return pattern.sub(denied, text, count=1)


def turned(text: str, dice: random.Random, pool: Pool) -> str | None:
    """A word in the place of its opposite."""
    options = []
    for pair in EXCHANGED["opposites"]:
        for ours, theirs in (pair, pair[::-1]):
            options += [(word, theirs[0]) for word in ours if len(word) > 1 and word in text]
    for a, b in ENGLISH_OPPOSITES:
        options += [(found, other) for one, other in ((a, b), (b, a)) if re.search(rf"\b{(found := one)}\b", text)]
    if not options:
        return None
    word, other = dice.choice(options)
    pattern = re.escape(word) if HAN.search(word) else rf"\b{word}\b"
    return re.sub(pattern, other, text, count=1)


ENGLISH_OPPOSITES = [
    tuple(pair.split("/"))
    for pair in (
        "increased/decreased increase/decrease rose/fell more/less higher/lower before/after opened/closed won/lost "
        "largest/smallest oldest/youngest accepted/rejected north/south east/west northern/southern eastern/western "
        "positive/negative early/late male/female public/private buy/sell bought/sold all/none longest/shortest "
        "above/below support/oppose supported/opposed allowed/banned good/bad major/minor started/ended "
        "internal/external "
        "most/least "
        "mother/father brother/sister son/daughter husband/wife old/new long/short high/low best/worst first/last"
    ).split()
]
KIN = [("哥哥", "弟弟"), ("姐姐", "妹妹"), ("父亲", "母亲"), ("儿子", "女儿"), ("丈夫", "妻子"), ("爷爷", "奶奶")]


def kin(text: str, dice: random.Random, pool: Pool) -> str | None:
    for a, b in KIN:
        for one, other in ((a, b), (b, a)):
            if one in text and other not in text:
                return text.replace(one, other, 1)
    return None


ERRORS: dict[str, Plant] = {
    "number": number, "date": date, "ordinal": ordinal, "name": name, "exchanged": exchanged, "negation": negation,
    "turned": turned, "kin": kin,
}  # fmt: skip


# --- twins -----------------------------------------------------------------------------------------

BRACKETS = re.compile(r"\s?[（(][^（）()]{1,40}[)）]")
LEAD = re.compile(
    r"^(?:However|But|And|So|Also|Then|In addition|Moreover|Meanwhile"
    r"|据了解|此外|同时|另外|而且|但是|不过|其中|目前|据悉)[,，]?\s*"
)
SAME = (
    (r"\bsaid\b", "stated"), (r"\bbegan\b", "started"), (r"\bmany\b", "a lot of"), (r"\bbig\b", "large"),
    (r"\bshow\b", "demonstrate"),
    (r"\busually\b", "generally"), (r"\bhelp\b", "assist"), (r"\bapproximately\b", "about"),
    (r"\bpurchased\b", "bought"), (r"\bbecause\b", "since"),
    ("表示", "称"), ("目前", "现在"), ("但是", "不过"), ("因为", "由于"), ("非常", "十分"), ("帮助", "协助"),
    ("举行", "举办"), ("大约", "约"), ("已经", "已"),
    ("立即", "马上"), ("重要", "关键"), ("开展", "进行"), ("获得", "取得"), ("推动", "促进"), ("同时", "与此同时"),
)  # fmt: skip


def reworded(text: str, dice: random.Random) -> str:
    """The same statement in slightly other words: brackets and connectives out, a clause left off, a synonym in."""
    text = LEAD.sub("", BRACKETS.sub("", text)) if dice.random() < 0.6 else text
    for pattern, other in SAME:
        if dice.random() < 0.5:
            text = re.sub(pattern, other, text, count=1)
    parts = re.split(r"(?<=[，])|(?<=, )", text)
    if len(parts) > 2 and dice.random() < 0.4:
        text = "".join(parts[:-1]).rstrip(" ，,")
    if dice.random() < 0.4:
        text = text.rstrip("。.")
    return text.strip()


def pairs(part: Part, data: Path = DATA, seed: int = 7) -> Iterator[Row]:
    """Clean and planted twins from the documents of one part, the same ones every time: sentences, then clauses."""
    found = {row.document: row for name in SOURCES for row in rows(name, part, data)}
    documents = [_cut(found[key]) for key in sorted(found)]
    pool = Pool(passage for row in documents for passage in row.passages)
    for pieces in (_sentences, _short_clauses):
        dice = random.Random(f"{seed} {part} {pieces.__name__.strip('_')}")
        yield from _twins(documents, pieces, pool, dice)


def _cut(row: Row) -> Row:
    return row._replace(passages=tuple(passage[:LONGEST_PASSAGE] for passage in row.passages))


def _twins(documents: Sequence[Row], pieces: Pieces, pool: Pool, dice: random.Random) -> Iterator[Row]:
    traditional = OpenCC("s2t")
    for row in documents:
        for number_, (claim, kind) in enumerate(_claims(pieces(row), dice, pool)):
            passages = _passages(row.passages, dice, documents)
            if HAN.search(claim) and dice.random() < 0.15:
                claim = traditional.convert(claim)
            label = "supported" if kind == "clean" else "unsupported"
            yield Row("planted", f"{row.id}-{kind}-{number_}", row.document, "", claim, passages, label, kind)


def _sentences(row: Row) -> list[str]:
    texts = [text for passage in row.passages for text in sentences(passage)]
    return [text for text in texts if len(text) <= 260 and len(text) >= (16 if HAN.search(text) else 45)]


def _short_clauses(row: Row) -> list[str]:
    """Clauses about as long as an atom."""
    parts = [part.strip() for text in _sentences(row) for part in re.split(r"[，,；;。.]", text)]
    return [part for part in parts if (5 <= len(part) <= 14 if HAN.search(part) else 4 <= len(part.split()) <= 10)]


def _claims(texts: Sequence[str], dice: random.Random, pool: Pool) -> Iterator[tuple[str, str]]:
    for text in dice.sample(texts, min(PER_DOCUMENT, len(texts))):
        yield reworded(text, dice), "clean"
        possible = [(kind, planted) for kind, plant in ERRORS.items() if (planted := plant(text, dice, pool))]
        if possible:
            kind, planted = dice.choice(possible)
            yield reworded(planted, dice), kind


def _passages(own: Sequence[str], dice: random.Random, documents: Sequence[Row]) -> tuple[str, ...]:
    """The passages, sometimes with one of another document beside them, in any order."""
    passages = list(own)
    if dice.random() < 0.4:
        passages.append(dice.choice(dice.choice(documents).passages)[:800])
    dice.shuffle(passages)
    return tuple(passages)
