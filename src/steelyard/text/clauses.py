"""A sentence into the clauses that stand on their own; what would lose its subject or its condition stays whole.

Chinese patterns are written in Simplified characters and matched against a shadow of the text that has the same
length, so that a match in the shadow is a place in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from itertools import accumulate
from typing import Literal, NamedTuple

from steelyard.text import HAN, converted

Link = Literal["", "because", "effect"]

CLOSERS = dict(zip('（(“‘「『《【[〈"', '）)”’」』》】]〉"', strict=True))


class Clause(NamedTuple):
    """A stretch of a sentence, and whether it says why its neighbour is so or what follows from it."""

    text: str
    link: Link = ""


@lru_cache(maxsize=8192)
def _simplified(character: str) -> str:
    simple = converted(character, "t2s") if HAN.match(character) else character
    return simple if len(simple) == 1 else character


def shadow(text: str) -> str:
    """The text in Simplified characters, place by place: one by one, since phrases would shift the places."""
    return text if text.isascii() else "".join(map(_simplified, text))


def states(text: str) -> bool:
    """Whether something in the text looks like a predicate."""
    return bool(STATES.search(shadow(text)) if HAN.search(text) else STATES_EN.search(text))


def clauses(sentence: str) -> list[Clause]:
    """The clauses of one sentence in order; together they hold all of its words except what joins them."""
    return list(_chinese(sentence) if HAN.search(sentence) else _english(sentence))


def enclosed(text: str) -> list[bool]:
    """For each place, whether it lies within quotation marks or brackets that are closed again."""
    changes = [0] * (len(text) + 1)
    opened: list[tuple[str, int]] = []
    for at, character in enumerate(text):
        if opened and character == opened[-1][0]:
            changes[opened.pop()[1]] += 1
            changes[at] -= 1
        elif closer := CLOSERS.get(character):
            opened.append((closer, at))
    return [depth > 0 for depth in accumulate(changes)]


# --- Chinese ---------------------------------------------------------------------------------------

STOPS = " \t\u3000。.！!，,；;"
COMMA = re.compile(r"[，；;]|(?<!\d),|,(?!\d)")
# What joins a clause to another and is no part of what it says.
JOINS = re.compile(
    r"(?:(?P<effect>因此|所以|因而|于是)|但是|但(?![凡丁])|不过|然而|可是|而且|并且|而(?![且已后非]))[，,]?\s*|(?:此外"
    r"|另外|同时|其次|首先|最后|总之|事实上|其实)[，,]\s*"
)
SUBORDINATE = re.compile(r"(?P<because>因为|由于|既然|鉴于)|虽然|尽管")
# What the clauses after it hang on: a condition, a time, a place, a source.
SCOPE = re.compile(
    r"(?:如果|如(?=[您你需有要遇])|若|要是|假如|只要|只有|除非|除了?|一旦|当(?![地年选前代然])|无论|不管|即使|每[当逢]"
    r"|对(?![手方面])|关于|至于|针对|随着|根据|按照|依据|据|为了|截[至止]|相比|经过|通过|在|自(?=从|\d)|从(?![小未不事])"
    r"|到|以(?!色列)|作为|凭借|遇)|\d+年[\d月日初底]*\Z|.*(?:[时后中里内上起]|(?<![提目当])前|时候|期间|的话|来说|而言|方面|以来|表示|强调"
    r"|指出|认为|称|说|介绍|宣布|规定|显示|表明|发现|承认|透露|.{3}的)[:：]?\Z"
)
# Not all verbs: those that are common, and single characters only where they are no part of another word.
VERB = (
    r"(?:(?<![但于只可总还若要就正倒或])是(?!否)|(?<![所没具拥享占富国特固原])有(?![人些关限效趣意利])"
    r"|(?<![因作称认成分行以人])为(?![了什何人])|(?<![存现正所内外])在(?![线职])|(?<![社机协委宴晚议工都教年展理])会(?![议员计场馆话长费])"
    r"|(?<![功智性可节职技才])能(?![源量力耗])|将(?![军来])|被|由(?!于)|使(?![用者得])|需(?!求)|应(?![用急对])|可(?![口乐爱])"
    r"|须|要(?![求点素])|不(?![锈同少])|没|未(?!来)|无(?![线人论])|含(?!义)|达(?=到|\d)|占|[位属用始建源]于|属|来自|设有|配有"
    r"|拥有|具[有备]|包[含括]|采用|使用|支持|提供|配备|成立|获得?|成为|受到?|影响(?!力)|提[高升]|增[加长]|减少|降低|下降|上升"
    r"|存在|发生|发布|推出|上[市映]|停产|开放|营业|出版|执导|主演|负责(?!人)|超过|适[合用]|[组构]成|开始|停止|完成|实现|进行"
    r"|举[办行]|参[加与]|毕业|出生|禁止|免[费票]|收费|半价|保修|质保|售价|(?:[较更很最]|非常|十分)(?=[\u4e00-\u9fff])"
    r"|(?<=[\u4e00-\u9fff])(?:[重长高宽约][约达]?(?=\d)|[了过](?=[\u4e00-\u9fff\d]|\Z)(?![解程去])))"
)
STATES = re.compile(VERB)
ADVERB = (
    r"(?:[也还都均又便才只仅就更并且约]|仍然?|曾经?|已经?|正在?|即将|一直|通常|一般|共计?|分别|甚至|可能|大约|后来|随后|最终"
    r"|目前|现在|主要|首次|正式|每[天年月日周]|周[一二三四五六日末]|至[今少]|最[多少快慢长短]|一律|逐[渐步]|不仅)"
)
BEGINS_PREDICATE = re.compile(rf"{ADVERB}{{0,3}}(?:{VERB}|[\u4e00-\u9fff]{{1,2}}[了过](?=[\u4e00-\u9fff\d]))|{ADVERB}")
# Sides of something that was named before, examples, results, and what is no subject: a number, a preposition.
NO_SUBJECT = re.compile(
    r"[“「\"].*[”」\"]\Z|\d|[\u4e00-\u9fff]{1,2}[在于至到自向给成]|[\u4e00-\u9fff]{2}[是为]|不?(?:建议|推荐)|和(?!平)|比(?!赛)"
    r"|同(?![学事])|共(?!和)|用(?!户)|[惟唯与及或较按向供把给于如像等即则其之]|环比|[例比]如|导致|从而|进而|以[便及]|尤其|否则"
    r"|全[长称名]|总[长部重]|面积|价格|[票售]价|人口|身高|体重|父母|质量|性能|空间|[上下]午|[春夏秋冬]季"
)
PRONOUN = re.compile(r"其(?!中|他|它|余|实|次)|[它他她这该此那]")
TIME_OR_PLACE = re.compile(r"(?:[时后前中里内]|期间)\Z")
# Advice needs no subject: it is meant for the reader.
ADVISES = re.compile(r"(?:因此|所以)?(?:请(?![求教])|切勿|务必|建议[您你])|(?:因此|所以)[也还更]?不?(?:建议|推荐)")
LABEL = re.compile(r"[^：:\d/“”\"]{1,20}[：:](?!//)\s*\S")


def _chinese(sentence: str) -> Iterator[Clause]:
    simple, inside = shadow(sentence), enclosed(sentence)
    commas = [comma for comma in COMMA.finditer(sentence) if not inside[comma.start()]]
    begins = [0, *(comma.end() for comma in commas)]
    ends = [*(comma.start() for comma in commas), len(sentence)]
    cuts = [0]
    is_said = is_bound = is_label = False
    for at, (begin, end) in enumerate(zip(begins, ends, strict=True)):
        piece = simple[begin:end].strip(STOPS)
        if not piece:
            continue
        was_label, is_label = is_label, bool(LABEL.match(piece))
        is_apart = at > 0 and ((sentence[begin - 1] in "；;" and not _leans(piece)) or (was_label and is_label))
        if is_apart or (is_said and not is_bound and _stands(piece)):
            cuts.append(at)
            is_said = is_bound = False
        body = _body(piece)
        if SUBORDINATE.match(body):
            # Without a subject of its own it needs the clause that follows.
            is_said = is_said or _stands(body)
        else:
            is_bound = is_bound or (at < len(commas) and bool(SCOPE.match(body)))
            # 是的，… and 可以，… are one with what follows.
            is_said = is_said or (len(body) > 3 and bool(STATES.search(body)))
    for first, after in zip(cuts, [*cuts[1:], len(begins)], strict=True):
        yield _clause(sentence[begins[first] : ends[after - 1]].strip(), is_part=len(cuts) > 1)


def _body(piece: str) -> str:
    """A piece without the word that joins it to its neighbour, in the same script."""
    joins = JOINS.match(shadow(piece))
    return piece[joins.end() :] or piece if joins else piece


def _leans(body: str) -> bool:
    """Whether a clause begins with its predicate, or with what needs the clause before it."""
    return not PRONOUN.match(body) and bool(NO_SUBJECT.match(body) or BEGINS_PREDICATE.match(body))


def _stands(piece: str) -> bool:
    """Whether a piece between commas has a subject and a predicate of its own."""
    body = SUBORDINATE.sub("", _body(piece), count=1) if SUBORDINATE.match(_body(piece)) else _body(piece)
    if ADVISES.match(piece):
        return True
    if SCOPE.match(body) or _leans(body):
        return False
    found = STATES.search(body, 1 if PRONOUN.match(body) else 2)
    return found is not None and not TIME_OR_PLACE.search(body, 0, found.start())


def _clause(text: str, *, is_part: bool) -> Clause:
    joins = JOINS.match(shadow(text))
    body = _body(text)
    subordinate = SUBORDINATE.match(shadow(body))
    if is_part and subordinate and not COMMA.search(body):
        return Clause(body[subordinate.end() :], "because" if subordinate["because"] else "")
    return Clause(body, "effect" if joins and joins["effect"] else "")


# --- English ---------------------------------------------------------------------------------------

JOINT = re.compile(
    r";\s|,\s(?:and|but|so(?!\s(?:that|far|much))|yet|while|whereas|although)\s|,?\sbecause\s(?!of\b)", re.IGNORECASE
)
LEAD_EN = re.compile(
    r"(?:(?P<effect>therefore|thus|hence|consequently|as a result|for this reason|so)|however|moreover|in addition|also"
    r"|besides|finally|in fact|of course),\s+|(?:and|but)\s+",
    re.IGNORECASE,
)
BECAUSE_FIRST = re.compile(r"(?:because|since(?!\s+(?:\d|then|the\s\d)))\s([^,]+),\s", re.IGNORECASE)
# A form in -ed or -s is surely a verb where an object follows; the others are verbs that need none.
VERB_EN = (
    r"(?:is|are|was|were|has|have|had|can|cannot|could|will|would|does|do|did|may|might|must|should|[a-z]{2,5}n['’]t"
    r"|[a-z]+(?:ed|s)(?=\s(?:the|an?|his|her|its|their|all|no|\d))|costs?|pays?|opens?|closes?|runs?|starts?|ends?|lies"
    r"|stands|enters?|lasts?|needs?|takes?|makes?|gives?|gets?|goes|comes?|became|becomes?|began|went|came|took|gave"
    r"|wrote|grew|fell|rose|ran|died|lived|moved)"
)
STATES_EN = re.compile(rf"\b{VERB_EN}\b|\b[a-z]+ed\b")
STANDS_EN = re.compile(
    r"(?:it|he|she|they|we|you|i|this|there)\s+\w|(?!(?:in|on|at|by|for|with|from|to|of|as|if|when|then|later|also|not"
    r"|only|never|now|still|often|usually|more|most|which|who|where|what|how|why|\w+ly|\w+ing|\w+ed)\b)"
    rf"(?!{VERB_EN}\b)(?:(?!(?:that|which|who|whom|whose|where|when|if|to|used)\b)[\w'’.&/%£$€-]+\s+){{1,7}}?{VERB_EN}\b",
    re.IGNORECASE,
)
# What the clauses after it hang on, and what leaves open where the main clause is.
SCOPE_EN = re.compile(
    r"\b(?:if|unless|when|whenever|whether|said|says|stated?|states|argue[sd]?|claim(?:s|ed)?|according|reported|that"
    r"|who|whose|which|where|either|neither|not\sonly|provided)\b"
    r"|\A(?:in|on|at|during|after|before|since|as|for|from|by|with|under|until|once|although|though|while|because|given)\b",
    re.IGNORECASE,
)
DENIED_CAUSE = re.compile(r"\b(?:not|only|just|mainly|partly|simply)\b|n['’]t\b|\b(?:is|was)\Z")


def _english(sentence: str) -> Iterator[Clause]:
    because = BECAUSE_FIRST.match(sentence)
    if because and STANDS_EN.match(because[1]) and STANDS_EN.match(sentence, because.end()):
        yield Clause(because[1].strip(), "because")
        yield Clause(sentence[because.end() :].strip(), "effect")
        return
    lead = LEAD_EN.match(sentence)
    link: Link = "effect" if lead and lead["effect"] else ""
    start = at = lead.end() if lead else 0
    inside = enclosed(sentence)
    is_bound = is_said = False
    for joint in JOINT.finditer(sentence, start):
        if inside[joint.start()]:
            continue
        before, word = sentence[at : joint.start()], joint.group().strip(",; ").lower()
        is_bound = joint[0][0] != ";" and (is_bound or bool(SCOPE_EN.search(before)))
        is_said = is_said or bool(STATES_EN.search(before))
        is_denied = word == "because" and bool(DENIED_CAUSE.search(before))
        at = joint.end()
        if is_said and not is_bound and not is_denied and STANDS_EN.match(sentence, at):
            yield Clause(sentence[start : joint.start()].strip(), link)
            link = "because" if word == "because" else "effect" if word == "so" else ""
            start, is_said = at, False
    yield Clause(sentence[start:].strip(), link)
