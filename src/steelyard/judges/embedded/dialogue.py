"""The tasks `dialogue.validity` and `dialogue.compliance`.

A criterion is read beside the lines of the system prompt. It is valid with the line that it rests on; invalid only
where the prompt has another value or quotation in its place, says the opposite, or has nothing of the kind. Whether an
answer follows it is decided by quoted words, by what is said or left unsaid, or by reading. What code can count has
been decided before (`protocols/rules.py`); tone and style are left open.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.excerpts import words
from steelyard.judges.embedded.kinds import plain
from steelyard.judges.embedded.network import Reader
from steelyard.judges.embedded.reasons import Phrasing, PromptLanguage
from steelyard.judges.embedded.support import ClaimInContext, PassageReading, Support
from steelyard.tasks import (
    ComplianceData,
    ComplianceReply,
    ComplianceVerdict,
    Unsure,
    ValidityData,
    ValidityReply,
    ValidityVerdict,
)
from steelyard.text import HAN, LETTER_OR_DIGIT, in_simplified, normalise, sentences
from steelyard.text.figures import clash, missing

# --- reading a criterion ---------------------------------------------------------------------------

LONGEST_CONSTRAINT, STEM = 300, 5
# Where one criterion holds several constraints. What is joined by 和 or 、 is usually one.
JOINTS = re.compile(
    r"[，,；;。]|[并並]且|而且|同[时時](?![间間])|(?<=[^合])[并並](?![不列])"
    r"|,? and (?=(?:then |also )?(?:asks?|gives?|says?|tells?|uses?|offers?|ends?|begins?|explains?|mentions?)\b)"
)
SHORTEST = 2
QUOTE = re.compile(
    r"“([^”]{1,60})”|「([^」]{1,60})」|『([^』]{1,60})』|\"([^\"]{1,60})\"|‘([^’]{1,60})’|(?<!\w)'([^']{1,60})'(?!\w)"
    r"|([\w.+-]{1,40}@[\w.-]{3,60})"
)
MARK = "▢"
"""Stands for a quotation while a criterion is matched."""
# What is quoted may stand for something else: “亲爱的XX”.
STAND_IN = re.compile(r"[\[\]{}<>【】_…×]|x{2,}|\.\.\.|某|姓名|昵称|\bname\b", re.IGNORECASE)
STYLE = re.compile(r"风格|语气|口吻|态度|性格|情绪|\b(?:tone|style|persona|voice|manner|mood)\b")
# What follows from any role.
COURTESY = re.compile(
    r"问候|问好|招呼|欢迎|感谢|道谢|道歉|致歉|祝|告别|安慰|关心|同情|表扬|夸|鼓励|礼貌|友好|自我介绍|拒绝|婉拒"
    r"|\b(?:greet|welcom|thank|apolog|wish|goodbye|comfort|consol|prais|complimen|encourag|introduc|declin|refus|polite|kind)"
)
# Words that any criterion may have, as characters and stems.
FRAMING = frozenset(
    "的了是在和与及或也都就而但这那其之于以为被把将对从到向由等着过吗呢吧们个很一不有用时要先请说出给并且会能可没无包含使语气风格答复"
) | frozenset(
    "use uses say says state menti inclu conta sound stay stays keep keeps refer repl reply respo answe consi write"
    " names tone".split()
)
# Whom an answer speaks to, and words that may stand around a demand without adding to it.
TO_ZH = r"(?:使用者|[用客住]户|[顾旅游]客|客人|对方|玩家|学[生员]|读者|他|她)?"
TO_EN = r"(?:(?:the|its|his|her) )?(?:user|customer|guest|student|reader|player|visitor|patient|child|them|him)s?"
FRAME_ZH = (
    r"(?:回答|回复|答案|输出|助手|内容|开头|结尾|[中里在]|应该?|必须|需要?|[要请都先再]|始终|主动|明确|清楚|礼貌|地)"
    "{0,6}"
)
FRAME_EN = (
    r"(?:(?:the|its|each|every|answer|assistant|reply|response|it|must|should|always|then|also|clearly|politely) ){0,6}"
)
NOT_ZH = r"(?P<not_zh>[不没未](?:要|得|能|可以?|应|再|有)?|禁止|避免)?"
NOT_EN = r"(?P<not_en>(?:does|do|is|are|must|should) not |never |avoids? |without |no )?"
SAYS = re.compile(
    rf"{FRAME_ZH}{NOT_ZH}(?:说明|告[知诉]|指出|写明|注明|表示|提[到及醒]|强调|介绍|建议|推荐|提出|承认|透露|泄露|讨论|谈[论及]|承诺"
    rf"|说){TO_ZH}[:：]?(?P<of>.{{2,200}})"
    rf"|{FRAME_EN}{NOT_EN}(?:says?|states?|mentions?|explains?|notes?|confirms?|reveals?|discuss(?:es)?|recommends?"
    rf"|suggests?|advises?|admits?|promises?|(?:tells?|informs?|reminds?|warns?|advises?) {TO_EN})"
    r"(?: that| to| of| about|:)? (?P<en>.{3,300})"
)
BOUND = re.compile(r"超过|[多少]于|最[多少]|至[多少]|以内|\b(?:than|at most|at least|up to|within)\b")
STATEMENT = re.compile(r"\bthat\b|[:：]")
CONDITION = re.compile(
    r"(?:如果|若|假如|当|一旦|每当|遇到|在)[^，,]{2,40}?[，,](.{2,200})|[^，,]{3,40}?(?:时候?|的?情况下|的话)[，,]?([^间代刻而].{1,200})"
    r"|(?:if|when|whenever|once) [^,]{3,80}, ?(.{3,200})|(.{4,100}?) (?:if|when|whenever|once) .{3,100}"
)
# Words that the answer is to have.
HAS_WORDS = re.compile(
    rf"{FRAME_ZH}{NOT_ZH}(?:说出?|包含|含有|自称|写上?|注明|附上|加上|以|用|使用|称呼?){TO_ZH}(?:为|作)?{MARK}(?:一词|字样|来?称呼{TO_ZH})?"
    rf"|{FRAME_EN}{NOT_EN}(?:says?|uses?|contains?|includes?|(?:address(?:es)?|calls?) {TO_EN}(?: as)?)"
    rf"(?: the (?:words?|phrase))? {MARK}"
)


def content_of(criterion: str) -> tuple[str, str]:
    """What is demanded, and the type that stands after the last ` | `."""
    demanded, bar, kind = criterion.rpartition(" | ")
    return (demanded.strip(), kind.strip()) if bar else (criterion.strip(), "")


def constraints_of(demanded: str) -> list[str]:
    """The constraints that one criterion holds."""
    if _is_one(demanded):
        return [demanded]
    pieces, start = [], 0
    for joint in JOINTS.finditer(QUOTE.sub(lambda quote: MARK * len(quote.group()), demanded)):
        pieces.append(demanded[start : joint.start()].strip())
        start = joint.end()
    pieces = [piece for piece in (*pieces, demanded[start:].strip()) if LETTER_OR_DIGIT.search(piece)]
    return pieces if len(pieces) > 1 and all(len(piece) > SHORTEST for piece in pieces) else [demanded]


def _is_one(demanded: str) -> bool:
    """Whether a criterion is one constraint with all its commas: something to be said, or a condition."""
    text = plain(demanded).rstrip(".。")[:LONGEST_CONSTRAINT]
    return bool(SAYS.fullmatch(text) or CONDITION.fullmatch(text))


def content(text: str) -> frozenset[str]:
    """What a text is about: stems, numbers and single Chinese characters that not any criterion may have."""
    said = plain(text)
    stems = (word.removesuffix("ly")[:STEM] for word in words(HAN.sub(" ", said)))
    return frozenset({*HAN.findall(said), *stems} - FRAMING)


def shared(wanted: str, *texts: str) -> float:
    """The share of what a text is about that stands in one of the others."""
    own = content(wanted)
    return max((len(own & content(text)) / len(own) for text in texts), default=0.0) if own else 0.0


def quotations(text: str) -> list[str]:
    return [next(filter(None, groups)).strip() for groups in QUOTE.findall(text)]


def _lacking(quotes: Sequence[str], texts: Sequence[str]) -> list[str]:
    there = normalise(in_simplified("\n".join(texts)))
    return [one for one in quotes if normalise(in_simplified(one)) not in there]


# --- the lines of a system prompt ------------------------------------------------------------------

HEADING = re.compile(
    r"#{1,6}\s*(?P<hash>\S.*)|[*_]{2}(?P<bold>[^*_]{1,40})[*_]{2}.*|【(?P<frame>[^】]{1,30})】.*"
    r"|(?P<colon>[^:：，,。.;；!?！？\d][^:：，,。;；!?！？]{0,24})[:：].*"
)
ITEM = re.compile(r"(?:(?P<number>\d{1,2})\s*[.、)）]|[（(](?P<framed>\d{1,2})[）)]|[-+•]|\*(?!\*)).*")
STOP = re.compile(r"(?<=[。！？!?])(?![）)”」』\"'’])|(?<=\.)\s+(?=[A-Z])")


class PromptLine(NamedTuple):
    """A sentence of the system prompt, verbatim, and where it stands."""

    text: str
    place: str


def prompt_lines(prompt: str) -> list[PromptLine]:
    """The sentences of a system prompt, each with its heading and number, or else its line."""
    lines: list[PromptLine] = []
    heading, is_chinese = "", bool(HAN.search(prompt))
    for number, raw in enumerate(prompt.splitlines(), start=1):
        text = raw.strip()
        item = ITEM.fullmatch(text)
        if not item and (found := HEADING.fullmatch(text)):
            heading = next(filter(None, found.groups())).strip(" *#:：")
        label = (item["number"] or item["framed"]) if item else None
        place = heading or (f"第{number}行" if is_chinese else f"line {number}")
        if heading and label:
            place += f"第{label}条" if is_chinese else f" {label}"
        lines += [PromptLine(piece.strip(), place) for piece in STOP.split(text) if LETTER_OR_DIGIT.search(piece)]
    return lines


# --- validity --------------------------------------------------------------------------------------

# Above this share of what it is about in one line, a constraint rests on that line.
GROUNDED = 0.5
# With this share, a value of the line stands in the place of the constraint's own; with the next, both speak of one
# deed, and only one may deny it; with the last, they say the same but for that.
SAME_MATTER, SAME_DEED, SAME_WORDS = 0.4, 0.5, 0.75
OPPOSED = 0.5
# Up to this share in the whole prompt, the prompt has nothing of the kind; of how many words that can be said.
UNHEARD, FEWEST = 0.25, 2
NEGATION = re.compile(
    r"不(?!断|同|仅|只|超过|少于|多于|低于|高于)|没有?|未|无需|勿|(?<![分特个级性区])别(?!人|的|家)|禁止|严禁|避免|拒绝|婉拒|n't\b"
    r"|\b(?:no(?! more| fewer| less| longer)|not|nothing(?! else)|never|cannot|without|avoid|refrain|refus|declin)"
    r"(?:e?s|ing|e)?\b"
)
CLAUSES = re.compile(r"[，,；;]|但|\bbut\b")
CONDITIONAL = re.compile(r"^\s*(?:[如若当]|一旦|(?:if|when|unless)\b)|(?:时|的话)$")
VALUE = re.compile(r"\d+|[二两三四五六七八九十百千]")


class Basis(NamedTuple):
    """Whether a constraint follows from the prompt; None where this judge cannot tell."""

    is_valid: bool | None
    reason: str
    line: PromptLine | None = None
    strength: float = 0.0


def validity(data: ValidityData, language: PromptLanguage, reader: Reader | None = None) -> ValidityReply:
    lines = prompt_lines(data.system_prompt)
    parts = [(item, part) for item in data.criteria for part in constraints_of(content_of(item.text)[0])]
    reading = PassageReading([line.text for line in lines], Phrasing(language), reader)
    found: dict[int, list[Basis]] = {}
    for (item, part), support in zip(parts, reading.supports([ClaimInContext(part) for _, part in parts]), strict=True):
        phrase = Phrasing(language, item.text, sources=(data.system_prompt,))
        found.setdefault(item.id, []).append(_basis(part, content_of(item.text)[1], support, lines, phrase))
    labels, unsure = [], []
    for id, bases in found.items():
        # One constraint without a basis makes a criterion invalid; otherwise one that is open leaves it open.
        is_valid, reason, line, _ = min(
            bases, key=lambda one: (one.is_valid is not False, bool(one.is_valid), -one.strength)
        )
        if is_valid is None:
            unsure.append(Unsure(items="criteria", id=id, reason=reason))
        else:
            place, quote = (line.place, line.text) if line and is_valid else ("", None)
            labels.append(ValidityVerdict(id=id, place=place, quote=quote, reason=reason, valid=is_valid))
    return ValidityReply(criteria=labels, unsure=unsure)


def _basis(part: str, kind: str, support: Support, lines: Sequence[PromptLine], phrase: Phrasing) -> Basis:
    """The line that a constraint rests on, or what speaks against it."""
    texts = [line.text for line in lines]
    shares = [shared(part, text) for text in texts]
    if not lines:
        return Basis(False, phrase("没有系统提示", "there is no system prompt"))
    best = max(range(len(lines)), key=lambda at: (shares[at], -at))
    if support.label == "supported" and support.reference is not None and shares[support.reference] >= SAME_MATTER:
        best = support.reference
    line, share = lines[best], shares[best]
    if other := _other_value(part, line.text, texts):
        told = "系统提示为“{stated}”，不是“{claimed}”", "the system prompt has “{stated}”, not “{claimed}”"
        return Basis(False, phrase(*told, claimed=other[0], stated=other[1]))
    if against := _opposite(part, [text for text, near in zip(texts, shares, strict=True) if near >= SAME_MATTER]):
        is_same = len(content(part)) >= FEWEST and shared(part, against) >= SAME_WORDS
        if is_same and support.odds.contradicted >= OPPOSED:
            told = "系统提示的规定与之相反：{line}", "the system prompt says the opposite: {line}"
            return Basis(False, phrase(*told, line=against))
        told = "看不出是否与此相反：{line}", "cannot tell whether this says the opposite: {line}"
        return Basis(None, phrase(*told, line=against))
    lacking = [*(one.text for one in missing(part, texts)), *_lacking(quotations(part), texts)]
    if (share > GROUNDED or support.label == "supported") and not lacking:
        return Basis(True, phrase("依据：{line}", "rests on: {line}", line=line.text), line, share)
    if lacking:
        told = "系统提示中没有“{lacking}”", "the system prompt does not have “{lacking}”"
        return Basis(None, phrase(*told, lacking=lacking[0]))
    is_unheard = support.label == "unknown" and shared(part, "\n".join(texts)) <= UNHEARD
    if is_unheard and _must_be_named(part, kind, texts):
        told = "“{part}”在系统提示中没有依据", "“{part}” has no basis in the system prompt"
        return Basis(False, phrase(*told, part=part))
    return Basis(None, phrase("看不出“{part}”是否有依据", "cannot tell whether “{part}” has a basis", part=part))


def _must_be_named(part: str, kind: str, texts: Sequence[str]) -> bool:
    """Manners and courtesies follow from a role, and what is to be said from a general rule; two languages share no
    words."""
    is_same_language = bool(HAN.search(part)) is any(map(HAN.search, texts))
    follows = STYLE.search(plain(f"{kind} {part}")) or COURTESY.search(plain(part)) or _is_one(part)
    return is_same_language and not follows and len(content(part)) >= FEWEST


def _other_value(part: str, line: str, texts: Sequence[str]) -> tuple[str, str] | None:
    """A number or quotation of the constraint, and what the line has in its place."""
    share = shared(VALUE.sub(" ", QUOTE.sub(" ", part)), line)
    if share < SAME_MATTER:
        return None
    # Where line and constraint say the same but for this, it does not count that the value stands elsewhere.
    around = [line] if share >= SAME_WORDS else texts
    if found := clash(part, line, around):
        return found.claimed, found.stated
    lacking, there = _lacking(quotations(part), around), quotations(line)
    return (lacking[0], there[0]) if lacking and there else None


def _opposite(part: str, near: Sequence[str]) -> str | None:
    """The clause nearest to a constraint, if it denies what that affirms or the reverse, and no other is as near."""
    clauses = [clause for text in near for clause in CLAUSES.split(text) if not CONDITIONAL.search(plain(clause))]
    same = [clause for clause in clauses if _is_negated(clause) is _is_negated(part)]
    other = max((clause for clause in clauses if clause not in same), key=lambda one: shared(part, one), default="")
    strength = shared(part, other)
    return other.strip() if strength >= SAME_DEED and all(shared(part, one) < strength for one in same) else None


def _is_negated(text: str) -> bool:
    return bool(NEGATION.search(QUOTE.sub(MARK, plain(text))))


# --- compliance ------------------------------------------------------------------------------------

# Of our own dialogues, no answer that breaks a criterion was read as doing it from DONE on (`training/dialogues`).
SAID, SURELY, DONE = 0.75, 0.85, 0.7


class Spoken(NamedTuple):
    """The answer that is judged, and what reads it."""

    answer: str
    reading: PassageReading


class ConstraintFinding(NamedTuple):
    """Whether one constraint is met; None where this judge cannot tell."""

    complies: Literal["fully", "partly", "no"] | None
    reason: str


def compliance(data: ComplianceData, language: PromptLanguage, reader: Reader | None = None) -> ComplianceReply:
    """What shows is decided; what takes an ear for tone is left open, with the reason."""
    turn = Spoken(data.answer, PassageReading([data.answer], Phrasing(language), reader))
    labels, unsure = [], []
    for item in data.criteria:
        phrase = Phrasing(language, item.text, sources=(data.answer,))
        demanded, kind = content_of(item.text)
        complies, reason = _together([look(part, kind, turn, phrase) for part in constraints_of(demanded)])
        if complies is None:
            unsure.append(Unsure(items="criteria", id=item.id, reason=reason))
        else:
            labels.append(ComplianceVerdict(id=item.id, reason=reason, complies=complies))
    return ComplianceReply(criteria=labels, unsure=unsure)


def _together(found: Sequence[ConstraintFinding]) -> ConstraintFinding:
    """One failing part fails the criterion; it is met only where every part is."""
    if failed := next((one for one in found if one.complies in ("no", "partly")), None):
        return failed._replace(complies="no" if len(found) == 1 else "partly")
    return next((one for one in found if one.complies is None), found[0])


def look(constraint: str, kind: str, turn: Spoken, phrase: Phrasing) -> ConstraintFinding:
    """Whether one constraint is met, as far as that shows; `kind` is the type that the criterion names."""
    text = constraint.strip().rstrip(".。")
    if len(text) <= LONGEST_CONSTRAINT:
        if condition := CONDITION.fullmatch(plain(text)):
            then = next(filter(None, condition.groups()))
            if (done := look(then, kind, turn, phrase)).complies == "fully":
                return done
            told = "看不出本轮是否需要这样做：{text}", "cannot tell whether this turn calls for it: {text}"
            return ConstraintFinding(None, phrase(*told, text=text))
        if found := _by_words(text, turn, phrase) or _by_saying(text, turn, phrase):
            return found
    if STYLE.search(plain(f"{kind} {text}")):
        return ConstraintFinding(None, phrase("语气和风格超出本评判者的能力", "tone and style are beyond this judge"))
    return _by_reading(text, turn, phrase) or ConstraintFinding(
        None, phrase("看不出是否做到“{text}”", "cannot tell whether “{text}” is met", text=text)
    )


def _by_words(constraint: str, turn: Spoken, phrase: Phrasing) -> ConstraintFinding | None:
    """Quoted words that the answer is to have, or not to have."""
    match, quotes = HAS_WORDS.fullmatch(QUOTE.sub(MARK, plain(constraint))), quotations(constraint)
    if match is None or any(STAND_IN.search(one) or not normalise(one) for one in quotes):
        return None
    lacking = _lacking(quotes, [turn.answer])
    complies: Literal["fully", "no"] = "fully" if bool(lacking) is _is_denied(match) else "no"
    if lacking:
        return ConstraintFinding(
            complies, phrase("回答中没有“{shown}”", "the answer does not have “{shown}”", shown=lacking[0])
        )
    return ConstraintFinding(complies, phrase("回答中有“{shown}”", "the answer has “{shown}”", shown=quotes[0]))


def _by_saying(constraint: str, turn: Spoken, phrase: Phrasing) -> ConstraintFinding | None:
    """What is to be said, or not to be said, read as a claim beside the answer."""
    match = SAYS.fullmatch(plain(constraint))
    if match is None:
        return None
    said = match["of"] or match["en"]
    found = turn.reading.support(ClaimInContext(constraint[-len(said) :]))
    spoken, is_denied, quote = sentences(turn.answer), _is_denied(match), found.quote or turn.answer
    if found.label == "contradicted" and (found.difference or found.odds.contradicted >= SURELY):
        # Who is not to say something and says otherwise has not said it.
        told = phrase("回答说的与此不同：{quote}", "the answer says otherwise: {quote}", quote=quote)
        return ConstraintFinding("fully" if is_denied else "no", told)
    lacking = missing(said, spoken)
    if lacking and not is_denied and not BOUND.search(said):
        told = phrase("回答中没有“{shown}”", "the answer does not have “{shown}”", shown=lacking[0].text)
        return ConstraintFinding("no", told)
    is_said = found.odds.supported >= SURELY or (found.label == "supported" and shared(said, *spoken) >= SAID)
    # A thing that is not to be spoken of may be named in declining to; a statement is made or not.
    is_plain = not is_denied or (STATEMENT.search(constraint) and found.odds.supported >= SURELY)
    if is_said and is_plain and not lacking:
        told = phrase("回答这样说：{quote}", "the answer says so: {quote}", quote=quote)
        return ConstraintFinding("no" if is_denied else "fully", told)
    if is_denied and found.label == "unknown" and not shared(said, turn.answer):
        return ConstraintFinding(
            "fully", phrase("回答没有说到“{said}”", "the answer says nothing of “{said}”", said=said)
        )
    return None


def _by_reading(constraint: str, turn: Spoken, phrase: Phrasing) -> ConstraintFinding | None:
    """The constraint itself read beside the answer: a clear yes is taken, a no is not, since deeds rarely deny."""
    (read,) = turn.reading.evidence([ClaimInContext(constraint)])
    if read.odds.supported < DONE or read.best is None:
        return None
    return ConstraintFinding(
        "fully", phrase("回答这样做了：{quote}", "the answer does so: {quote}", quote=read.best.text)
    )


def _is_denied(match: re.Match[str]) -> bool:
    return bool(match["not_zh"] or match["not_en"])
