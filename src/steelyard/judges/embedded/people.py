"""Which names are people's and which are things': he, 她 stand for the first, it and 它 for the second."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Literal

from steelyard.judges.embedded.grammar import FINITE, PERSON, SURNAME, VERB, shadow

# --- Chinese ---------------------------------------------------------------------------------------

# Words that begin like a name and are none.
NOT_NAME = re.compile(
    r"高(?:铁|速|中|校|血|温|考|管|原|度|层|端|级|等|低|新|压)|金(?:额|融|属|牌|钱|色|山)|方(?:法|案|面|式|向|便|形|言)"
    r"|白(?:色|天|酒|菜|银|领|云)|黄(?:金|河|色|山|海|瓜|豆)|马(?:路|上|匹|来|拉|桶|德里|尼拉)|江(?:苏|西|南|北|河|水)"
    r"|石(?:油|头|材|化|灰|家庄)|万(?:元|人|里|一|物|达)|龙(?:头|井|门|虾)|雷(?:达|电|雨)|武(?:汉|器|术|装|警)"
    r"|任(?:务|何|意|职|教|期)|何(?:时|处|种|人)|于(?:是|此)|向(?:来|导|日)|许(?:多|可)|白[^\W]节|程(?:序|度)|钟(?:表|头)"
    r"|金[^\W]?公司|夏(?:天|季|威|令)|秦(?:国|朝|岭)|唐(?:代|朝|山)|宋(?:代|朝)|田(?:野|径)|范(?:围|例)|严(?:重|格)"
    r"|史(?:料|书|上)|汤(?:料|汁)|余(?:额|下)|周(?:边|围|年|期|末|[一二三四五六日])|顾(?:客|问)|莫(?:斯|大)|孔(?:雀|子庙)"
)
HAN_NAME = rf"(?:[{SURNAME}][\u4e00-\u9fff]{{1,2}}?|[小老阿][{SURNAME}明红刚丽华强军芳])"
# A person beside the subject: whom it met, married or beat, who made it, whose child it is.
BESIDE = re.compile(
    r"(?:和|与|跟|同|被|由|给了?|向|对|见到?了?|认识了?|遇到?了?|娶了?|爱上了?|嫁给了?|击败了?|打败了?|妻子|丈夫|父亲"
    r"|母亲|儿子|女儿|哥哥|姐姐|弟弟|妹妹|兄长|好友|朋友|同事|同学|老师|学生|演员|导演|作家|诗人|歌手|教练|队友"
    r"|对手|经理|总裁|主席|总统|董事长|创始人|是|为|、)"
    rf"({HAN_NAME})(?=[，,。；;、：:！!（(的和与跟等]|\Z|{VERB}|比|合|一起|结婚|[^\u4e00-\u9fff]|[一二三四五六七八九十两])"
)
TITLED = re.compile(
    rf"[{SURNAME}][\u4e00-\u9fff]{{0,2}}(?:先生|女士|小姐|夫人|太太|教授|博士|老师|医生)|[\u4e00-\u9fff]{{1,6}}·[\u4e00-\u9fff·]{{1,12}}"
)
LIVES = re.compile(
    r"(?:于|在|自)?(?:\d{1,4}年)?(?:\d{1,2}月)?(?:\d{1,2}[日号])?(?:出生(?![率地])|生于|诞生于|毕业|就读|去世|逝世|病逝"
    r"|享年|结婚|离婚|嫁给|娶了?|从小|自幼|退役|辞职|退休)"
    r"|(?:曾|也|还|便)?是(?:[^，。；的]{0,8}的)?[^，。；]{0,12}(?:[学作画艺专思音政歌剧]家|诗人|词人|作者|演员|歌手|导演|教练|运动员|球员|医生"
    r"|教师|老师|教授|律师|工程师|设计师|企业家|皇帝|总统|将军|院士|博士)(?:之一)?(?=[，。；、]|\Z)"
    r"|是(?:一[名位])"
)
HE_ZH, SHE_ZH = re.compile("先生|父亲|爷爷|爸爸"), re.compile("夫人|女士|小姐|太太|母亲|奶奶|妈妈")
KIN_HE_ZH = re.compile(r"(?:丈夫|父亲|爸爸|儿子|哥哥|弟弟|兄长|祖父|爷爷|男友)(?![节们])")
KIN_SHE_ZH = re.compile(r"(?:妻子|母亲|妈妈|女儿|姐姐|妹妹|祖母|奶奶|女友)(?![节们河])")


def is_person(name: str, text: str = "") -> bool:
    """Whether a Chinese name is a person's, by its form or by what the text says of it."""
    simple = shadow(name)
    if PERSON.fullmatch(simple):
        return not NOT_NAME.match(simple)
    said = shadow(text)
    at = said.find(simple)
    return at >= 0 and "《" not in simple and bool(LIVES.match(said, at + len(simple)))


def people_beside(text: str) -> list[str]:
    """The people that a Chinese text names other than as its subjects, as far as their names show it."""
    simple = shadow(text)
    places = [found.span(1) for found in BESIDE.finditer(simple) if not NOT_NAME.match(found[1])]
    places += [found.span() for found in TITLED.finditer(simple)]
    return [text[start:end] for start, end in places]


def one_of(names: Iterable[str]) -> str | None:
    """The one person that all these names mean: a name and a part of it are the same; None where there are several."""
    known = list(dict.fromkeys(names))
    longest = [name for name in known if not any(name != other and name in other for other in known)]
    return longest[0] if len(longest) == 1 else None


def fits(pronoun: str, name: str, recent: str) -> bool:
    """Whether 他 or 她 can mean the name: not against its title, nor where a relative of that sex was just named."""
    if "她" in pronoun:
        return not HE_ZH.search(shadow(name)) and not KIN_SHE_ZH.search(shadow(recent))
    return not SHE_ZH.search(shadow(name)) and not KIN_HE_ZH.search(shadow(recent))


# --- what "it" may mean beside the subject ------------------------------------------------------------

# 公司发布了手机。它… may go on about either.
MAKES = re.compile(
    r"(?:发布|推出|研发|开发|生产|制造|收购|出版|设计|建造|修建|兴建|创办|创立|创建|开设|打造|发明|创作|撰写|拍摄|上线"
    r"|购买|引进|出售|销售|写|买)(?:了|过|出|有)?(?=[^\W\d]{2,})"
)
PIECE = re.compile(r"[^，。；,;!！]+")
MAKES_EN = re.compile(
    r"\b(?:release[sd]?|launche[sd]|introduce[sd]?|unveil(?:s|ed)|announce[sd]?|develop(?:s|ed)|buil[dt]s?|ma[dk]es?"
    r"|sells?|sold|design(?:s|ed)|produce[sd]?|publishe[sd]|acquire[sd]?|buys?|bought|wrote|writes|founded|opened"
    r"|invent(?:s|ed)|create[sd]?|owns?|runs|joined|directed|met|married)\s+(?:an?|the|its|his|her|their|[A-Z])",
)


def makes_something(text: str) -> bool:
    """Whether a text names something that its subject made or got: that too may be meant by 它 or it."""
    if MAKES_EN.search(text):
        return True
    return any(
        (made := MAKES.search(piece.group())) and not re.search("[由被]", piece.group()[: made.start()])
        for piece in PIECE.finditer(shadow(text))
    )


# --- English ---------------------------------------------------------------------------------------

TITLE_EN = r"(?:Mr|Mrs|Ms|Miss|Dr|Prof|Sir|Lady|Lord|King|Queen|President|Professor|Captain|Judge)\.?"
GIVEN_HE = frozenset(
    "adam alan albert alexander andrew anthony arthur ben benjamin bernard bill bob boris brian bruce carl charles "
    "christopher colin daniel david dennis donald douglas edward eric ernest ethan felix francis frank fred "
    "frederick gary geoffrey george gerald gordon graham greg gregory harold harry henry herbert howard hugh ian "
    "isaac ivan jack jacob james jason jeff jeffrey jeremy jim joe john jonathan jose joseph joshua juan karl keith "
    "ken kenneth kevin larry lawrence leo leonard leonardo louis lucas luke malcolm marco marcus mark martin "
    "matthew max michael mike nathan neil nicholas nick nigel noah norman oliver oscar otto patrick paul peter "
    "philip pierre ralph raymond richard robert roger roland ronald roy rupert ryan samuel scott sean simon stephen "
    "steve steven stuart terence thomas tim timothy tom tony victor viktor vincent walter william".split()
)
GIVEN_SHE = frozenset(
    "agnes alice amanda amelia amy andrea angela ann anna anne annie audrey barbara beatrice bertha betty bridget "
    "carol caroline carmen catherine cecilia charlotte christina christine claire clara deborah diana diane dora "
    "doris dorothy edith eleanor elena elizabeth ella ellen emily emma esther eva eve florence frances gertrude "
    "gloria grace greta hannah harriet helen helena ida ingrid irene iris isabel isabella jane janet jennifer "
    "jessica joan joanna josephine joyce judith judy julia julie karen kate katherine kathleen laura lena lily "
    "linda lisa louise lucia lucy lydia margaret maria marie marion martha mary matilda maya megan mia michelle "
    "mina miriam molly monica nadia nancy naomi natalie nina nora olga olivia pamela patricia paula petra phoebe "
    "priya rachel rebecca rita rosa rosalind rose ruth sandra sara sarah sharon sofia sophia sophie stephanie susan "
    "sylvia teresa theresa ursula vera victoria violet virginia wendy winifred yvonne zoe".split()
)
GIVEN = GIVEN_HE | GIVEN_SHE | frozenset("alex chris jean kelly kim lee lewis pat robin sam terry wei".split())
THING_WORD = re.compile(
    r"\b(?:Ltd|Inc|Corp|Corporation|Co|Company|LLC|GmbH|PLC|AG|Group|Holdings|University|College|School|Institute|Academy"
    r"|Museum|Gallery|Library|Hotel|Bank|Airport|Airlines?|Hospital|Station|River|Lake|Mount|Mountains?|Island|Ocean|Sea"
    r"|Bridge|Tower|Park|Garden|Church|Cathedral|Castle|Palace|City|County|State|States|Kingdom|Republic|Union|Nations"
    r"|Party|Council|Committee|Ministry|Agency|Court|Act|Treaty|War|Prize|Award|Cup|League|Club|Team|Festival|Games"
    r"|Systems?|Software|Technolog\w+|Motors|Electronics|Foundation|Association|Society|Center|Centre|Street|Road"
    r"|Avenue|Square|Times|Post|Journal|Studios?|Records|Pictures|Restaurant|Theatre|Theater|Plan|Project|Pro|Plus)s?\b"
    r"|\d|\b[A-Z]{2,}\b"
)
CAPITALISED = re.compile(
    rf"(?:\b{TITLE_EN} )?\b[A-Z][a-zà-ÿ]+(?:['’-][A-Z][a-zà-ÿ]+)*"
    r"(?: (?:(?:de|van|von|da|del|bin|al) )?[A-Z][\w'’-]*\.?)*"
)
NO_NAME_EN = frozenset(
    "the a an this that these those it he she they we you i its his her their our your my in on at by for from to of"
    " and but or so as if when while although after before during since there here what who which how why where not no"
    " yes however also both all some many most each every one two three first then later today with about january"
    " february march april may june july august september october november december monday tuesday wednesday thursday"
    " friday saturday sunday english french german spanish chinese japanese american british european".split()
)
PLACE_BEFORE = re.compile(r"\b(?:in|at|to|from|of|near|the|around|across|through|into|for)\s+\Z", re.IGNORECASE)
THING_BEFORE = re.compile(r"\b(?:[Tt]he|St\.)\s+\Z")
KNOWN_BEFORE = re.compile(
    r"\b(?:who (?:is|was)|met|married|brother|sister|husband|wife|son|daughter|father|mother|friend|colleague)\s+\Z",
    re.IGNORECASE,
)
LIVES_EN = re.compile(
    r" \((?:born|b\.|\d{4})|,? (?:was born|died|married|met|studied|graduated|retired|stepped down|resigned|wrote"
    r"|painted|said|says|earned|grew up|who\b|(?:is|was) (?:an?|the) (?:[\w-]+ ){0,4}?(?:\w+(?:ist|ician|wright)"
    r"|painter|writer|singer|actor|actress|player|teacher|professor|lawyer|engineer|poet|author|director|president|king|queen"
    r"|doctor|man|woman)\b)"
)
MADE_EN = re.compile(
    r",? (?:(?:was|is|were|are) (?:\w+ly )?(?:founded|established|built|launched|released|opened|acquired|located|based"
    r"|headquartered|made|priced|available)|employs?|sells?|costs?|weighs?|supports?|includes?|contains?)\b"
)
SUBJECT_BEFORE = re.compile(r"(?:[.!?]\s+|\bby\s+)\Z")
ACTS_EN = re.compile(rf",? (?:{FINITE}|\w+ed)\b")
HE_EN, SHE_EN = re.compile(r"\A(?:Mr|Sir|Lord|King)\b"), re.compile(r"\A(?:Mrs|Ms|Miss|Lady|Queen)\b")
KIN_HE_EN = re.compile(r"\b(?:husband|father|son|brother|grandfather|uncle|nephew|boyfriend)\b", re.IGNORECASE)
KIN_SHE_EN = re.compile(r"\b(?:wife|mother|daughter|sister|grandmother|aunt|niece|girlfriend)\b", re.IGNORECASE)

# A "likely" person is the subject of a sentence, or made something; a "possible" one is only in the way of others.
Kind = Literal["person", "likely", "possible", "maybe", "thing"]


def kinds_en(text: str) -> Iterator[tuple[str, Kind]]:
    """The names in an English text, each with what shows it to be a person's or a thing's."""
    for match in CAPITALISED.finditer(text):
        words = match.group().rstrip(".").removesuffix("'s").removesuffix("’s").split()
        start = match.start()
        while words and words[0].lower() in NO_NAME_EN:
            start += len(words.pop(0)) + 1
        if words:
            yield " ".join(words), _kind_en(words, text, start, match.end())


def _kind_en(words: list[str], text: str, start: int, end: int) -> Kind:
    before = text[max(0, start - 12) : start]
    if has_title(name := " ".join(words)):
        return "person"
    if THING_WORD.search(name) or THING_BEFORE.search(before):
        return "thing"
    if words[0].lower() in GIVEN or LIVES_EN.match(text, end) or KNOWN_BEFORE.search(before):
        return "person"
    if MADE_EN.match(text, end) or PLACE_BEFORE.search(before):
        return "thing"
    if len(words) > 1:
        return "likely" if not before or SUBJECT_BEFORE.search(before) else "possible"
    return "maybe" if ACTS_EN.match(text, end) else "thing"


def has_title(name: str) -> bool:
    return bool(re.match(rf"{TITLE_EN} [A-Z]", name))


def fits_en(pronoun: str, name: str, recent: str) -> bool:
    """The same for he and she, which a given name speaks for or against as well."""
    given = next((word.lower() for word in name.split() if word.lower() in GIVEN), "")
    if pronoun in ("she", "her"):
        return given not in GIVEN_HE and not HE_EN.search(name) and not KIN_SHE_EN.search(recent)
    return given not in GIVEN_SHE and not SHE_EN.search(name) and not KIN_HE_EN.search(recent)
