"""Criteria that code can decide: lengths, counts, openings and endings, words, JSON, language, brackets, marks.

A criterion is read by a small grammar: a frame (who must do it) around one constraint, and nothing else.
What the grammar does not cover word for word is the judge's. One understood clause that fails settles a
criterion (partly is not fully); it is satisfied only where every clause is understood.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.protocols.constraints import (
    ANY_OF,
    LITERAL,
    NUMBER,
    QUOTED,
    SEVERAL,
    UNIT,
    Check,
    Finding,
    above,
    at_least,
    at_most,
    begins,
    begins_somehow,
    below,
    between,
    contains,
    ends,
    ends_somehow,
    exactly,
    gives,
    lacks,
)
from steelyard.protocols.forms import (
    FIELDS,
    MARK,
    ends_in_mark,
    has_brackets,
    has_emoji,
    has_fields,
    in_language,
    is_json,
    no_brackets,
    no_emoji,
    no_marks,
    not_in_script,
    something_in_brackets,
)
from steelyard.text import HAN, SIMPLIFIED, fold, reason_in_traditional, script_votes


class Ruling(NamedTuple):
    """The ruling of code, and the count or words that prove it."""

    satisfied: bool
    reason: str


# Possessive repeats, so that a criterion cannot make the grammar backtrack for ever.
ANSWER_ZH = r"(?:(?:请|你|您|模型|助手|AI|本次|每次|每轮|本轮|所有|整个|全部|最终|的)*+(?:回答|回复|答案|输出|回应|答复|全文)(?:的?(?:总?字数|长度|篇幅|内容|语言|格式))?(?:中|里|内)?|(?:总?字数|篇幅|长度))"
MUST_ZH = r"(?:应该|应当|应|需要|需|必须|须|要|务必|请|都|均|总是|始终|严格|保持|控制|限制|限定|在|为|是)*+"
ANSWER_EN = r"(?:(?:the|your|each|every|all|its|assistant'?s|model'?s|final|entire|whole) ){0,3}(?:answer|response|reply|output)s?"
FRAMES_EN = (
    rf"(?:{ANSWER_EN} )?(?:must |should |shall |has to |have to |needs to |needs? to |will |is to )?(?:always )?(?:be |is |are |have |has |contain |contains |consist of |consists of |stay |remain )?(?:written |given |provided |kept )?"
    rf"|(?:please )?(?:keep|limit|restrict|write|give|provide|make) {ANSWER_EN} (?:to |in |within )?(?:be )?"
    r"|(?:please )?(?:respond|answer|reply|write|output|use)(?: only| always)?(?: in| with| using)? "
)
NO_ZH = r"(?:不(?:得|能|要|可以|可|应该|应|允许)?(?:使用|用|包含|含有|含|出现|带有|带|有|加)|没有|禁止(?:使用|出现)?|避免(?:使用|出现)?|勿用)(?:任何|一切)?的?"
YES_ZH = r"(?:使用|包含|含有|含|带有|带|加入|加上|出现|有)(?:至少)?(?:一个|1个)?"
NO_EN = r"(?:no|without|(?:do not|don't|does not|not|never)(?: (?:use|contain|include|have))?|avoid(?:s|ing)?(?: using)?|free of)(?: any)?"
YES_EN = r"(?:use|contain|include|have|has)s?(?: an?| at least one| one)?"
WORDS_ZH = r"(?:(?:等|之类)?的?(?:一词|字样|这个词|这些词|这几个字|这句话|关键词|词语|词汇|字眼|词))"
WORDS_EN = r"the (?:exact )?(?:words?|phrase|sentence|text)"
AT_END, AT_START = r"(?:在|于)?(?:结尾|末尾|最后|文末)处?", r"(?:在|于)?(?:开头|开场|最前面)处?"
ADDED = r"(?:要|需|必须|都|应|请)*+(?:加上|附上|写上|加入|带上|加|说|写) ?"
POINTS_ZH = r"(?:建议|意见|理由|原因|方法|办法|要点|步骤|优点|缺点|措施|注意事项|提示|看法)"
CONTACT_ZH = r"(?:[\u4e00-\u9fff]{0,8}(?:热线|电话|号码|邮箱|网址|官网|链接|地址))?"
ROUND = r"(?:圆括号|小括号|括号|\(\s?\))"
LANGUAGES_ZH = r"(?P<language>(?:简体|繁体|正体)?中文|(?:简体|繁体|正体)(?:字|汉字)?|英文|英语|汉语)"
LANGUAGES_EN = r"(?P<language>(?:simplified |traditional )?chinese|english)"
REPLY_ZH = r"(?:来|进行)?(?:回答|回复|作答|输出|返回|回应|交流)?(?:用户)?"
SPAN = r"\s?(?:-|—|–|~|到|至|to)\s?"

CHINESE: tuple[tuple[str, Check], ...] = (
    (rf"(?:介于)?{NUMBER}(?:个?字)?{SPAN}{NUMBER} ?{UNIT}(?:之间|以内|之内)?", between),
    (rf"(?:不(?:得|能|要|可|应|可以)?(?:超过|多于|大于|高于|超出)|最多(?:不超过)?|至多)(?:为|用|写)? ?{NUMBER} ?{UNIT}(?:以内|之内)?", at_most),
    (rf"{NUMBER} ?{UNIT}(?:以内|之内|以下|及以内|及以下)", at_most),
    (rf"(?:少于|低于|小于) ?{NUMBER} ?{UNIT}", below),
    (rf"(?:不(?:得|能|要|可|应)?(?:少于|低于|小于)|至少|最少)(?:有|包含|写|为|要有)? ?{NUMBER} ?{UNIT}", at_least),
    (rf"{NUMBER} ?{UNIT}(?:以上|及以上)", at_least),
    (rf"(?:超过|多于|大于|高于) ?{NUMBER} ?{UNIT}", above),
    (rf"(?:恰好|正好|刚好|只能?有?|仅有?|有且仅有)(?:为|是|有|用|写|分)? ?{NUMBER} ?{UNIT}", exactly),
    (rf"(?:只|仅)?(?:分成|分为|分|用|列出|以) ?{NUMBER} ?{UNIT}(?:来|进行)?(?:回答|回复|作答)", exactly),
    (rf"(?:分成|分为|分) ?{NUMBER} ?{UNIT}", exactly),
    (rf"(?:列出|给出|提供|写出|提出) ?{NUMBER} ?{UNIT}{POINTS_ZH}", exactly),
    (rf"(?:以|用) ?{QUOTED} ?(?:作为|为|来|做|一词|这句话)?(?:开头|开始|起始|开场)", begins),
    (rf"(?:以|用) ?{QUOTED} ?(?:作为|为|来|做|一词|这句话)?(?:结尾|结束|收尾)", ends),
    (rf"{AT_START}{ADDED}{QUOTED} ?{WORDS_ZH}?", begins_somehow),
    (rf"{AT_END}{ADDED}{QUOTED} ?{WORDS_ZH}?", ends_somehow),
    (rf"以? ?{MARK}(?:作为|来)?(?:结尾|结束|收尾)", ends_in_mark),
    (rf"{YES_ZH} ?{SEVERAL} ?{WORDS_ZH}", contains),
    (rf"{NO_ZH} ?{ANY_OF} ?{WORDS_ZH}", lacks),
    (rf"(?:提到|提及|包含|提供|告知|给出|附上|写明|注明|说明|留下)(?:用户)?{CONTACT_ZH}(?:是|为|:)? ?{LITERAL}", gives),
    (rf"(?:包含|含有|含|具有|带有|有) ?{FIELDS} ?(?:这?[一两二三四五六七八九十\d]?个?)(?:字段|键|属性)", has_fields),
    (rf"(?:只|仅)(?:能|可|需|许|允许)?(?:以|用|使用|采用)?(?:输出|返回|回复|回答)?(?:一个|一段)?(?:合法|有效|标准|纯)?的? ?json(?:格式|形式|对象|字符串|数据|内容)*{REPLY_ZH}", is_json),
    (rf"(?:使用|采用|用|以|按照?)?(?:合法|有效|标准|严格|规范)?的? ?json(?:格式|形式|(?:对象|字符串)(?:格式|形式)?){REPLY_ZH}|(?:合法|有效)的 ?json", is_json),
    (rf"(?:只|仅|全程|全部|完全|始终|一律|都)*(?:使用|用|以|采用) ?{LANGUAGES_ZH}{REPLY_ZH}", in_language),
    (rf"{NO_ZH} ?(?P<script>简体|繁体|正体)(?:中文|汉字|字)?{REPLY_ZH}", not_in_script),
    (rf"{NO_ZH} ?{MARK}", no_marks),
    (rf"{NO_ZH} ?(?:emoji|表情符号)(?:表情|符号)?", no_emoji),
    (rf"{YES_ZH} ?(?:emoji|表情符号)(?:表情|符号)?", has_emoji),
    (rf"{NO_ZH} ?{ROUND}", no_brackets),
    (rf"{YES_ZH} ?{ROUND}", has_brackets),
    (rf"(?:在|用|使用)? ?{ROUND}(?:中|内|里)?(?:必须|须|要|应|需)?(?:含有|包含|有|描写|描述|写出|写|加入|标注|表达)[^不勿禁未无避如若当时除]{{1,60}}", something_in_brackets),
)  # fmt: skip

ENGLISH: tuple[tuple[str, Check], ...] = (
    (rf"(?:between )?{NUMBER}(?:{SPAN}| and ){NUMBER} {UNIT}(?: long)?", between),
    (rf"(?:(?:no|not)(?: be)? (?:more|longer) than|at most|up to|a maximum of|within|not exceed|to) {NUMBER} {UNIT}(?: long| in length| or (?:fewer|less))?", at_most),
    (rf"{NUMBER} {UNIT} or (?:fewer|less)", at_most),
    (rf"(?:do not|don't|never) (?:exceed|(?:write|use|give|provide) more than) {NUMBER} {UNIT}", at_most),
    (rf"(?:fewer than|less than|under|below|shorter than) {NUMBER} {UNIT}(?: long)?", below),
    (rf"(?:at least|(?:no|not)(?: be)? (?:fewer|less|shorter) than|a minimum of) {NUMBER} {UNIT}(?: long)?", at_least),
    (rf"(?:more than|over|longer than) {NUMBER} {UNIT}(?: long)?", above),
    (rf"(?:exactly|precisely|only|just) {NUMBER} {UNIT}(?: long)?", exactly),
    (rf"(?:begin|start|open)s? with (?:{WORDS_EN} )?{QUOTED}", begins),
    (rf"(?:end|close|finish)(?:e?s)? with (?:{WORDS_EN} )?{QUOTED}", ends),
    (rf"(?:end|close|finish)(?:e?s)? with an? {MARK}", ends_in_mark),
    (rf"{YES_EN} {WORDS_EN} {SEVERAL}", contains),
    (rf"{NO_EN} {WORDS_EN} {ANY_OF}", lacks),
    (rf"(?:mention|include|contain|give|provide|state|list)s? (?:(?:the|a|an|our|your|its) )?(?:[a-z]+ ){{0,3}}{LITERAL}", gives),
    (rf"(?:contain|include|have|has)s? (?:the |a )?(?:fields? |keys? ){FIELDS}", has_fields),
    (rf"(?:contain|include|have|has)s? (?:the |a |an ){FIELDS} (?:fields?|keys?)", has_fields),
    (r"(?:(?:return|output|produce|give|be|is|reply with|respond with|answer with) )?(?:only|nothing but) (?:a )?(?:(?:valid|strict|pure) )?json(?: object)?", is_json),
    (rf"{NO_EN} (?P<script>simplified|traditional)(?: chinese)?(?: characters)?", not_in_script),
    (rf"{NO_EN} {MARK}", no_marks),
    (r"(?:in |as |using |use |return |output )?(?:a )?(?:(?:valid|strict|pure|well-formed) )?json(?: (?:format|object|only))?", is_json),
    (rf"(?:in |use |using )(?:only )?{LANGUAGES_EN}(?: only)?", in_language),
    (rf"{NO_EN} emojis?", no_emoji),
    (rf"{YES_EN} emojis?", has_emoji),
    (rf"{NO_EN} (?:brackets|parentheses)", no_brackets),
    (rf"{YES_EN} (?:brackets|parentheses)", has_brackets),
)  # fmt: skip


class Rule(NamedTuple):
    pattern: re.Pattern[str]
    check: Check


def _compiled(frame: str, constraints: Sequence[tuple[str, Check]], tail: str) -> tuple[Rule, ...]:
    return tuple(Rule(re.compile(rf"(?:{frame})(?:{core}){tail}", re.IGNORECASE), check) for core, check in constraints)


RULES = (
    *_compiled(rf"(?:请|并|且|同时|还|也)?{ANSWER_ZH}?{MUST_ZH}", CHINESE, ""),
    *_compiled(FRAMES_EN, ENGLISH, r"(?: in total)?"),
)
NAMES_ANSWER = re.compile(
    rf"(?:请|并|且|同时)?{ANSWER_ZH}|(?:please |keep |limit ){{0,2}}{ANSWER_EN}\b|(?:please )?(?:respond|answer|reply)\b",
    re.IGNORECASE,
)

# Words that make a clause a condition, an exception, a choice or a wish: what they bear on, only a reader can tell.
OPEN = re.compile(
    r"如果|若|当|时|除|一旦|否则|或|不含|不包括|不计|不算|对于|针对|关于|涉及|每[^次轮]|各|部分|标题|其中|首|末|前|后|第|尽量|最好|建议|可以|可选|左右|大约"
    r"|\b(?:if|when|whenever|unless|except|otherwise|or|either|excluding|counting|including|each|every|per|for|first|last|title|heading"
    r"|section|part|summary|try|prefer|preferably|ideally|may|can|could|about|around|approximately|then|after|before|where|while)\b",
    re.IGNORECASE,
)
SEPARATORS = (re.compile(r"[，；;。\n]|,(?!\d)|\.(?=\s|\Z)"), re.compile(r"并且|而且|同时|且|\band\b", re.IGNORECASE))
LONGEST_CRITERION = 300


def rule_on(criterion: str, answer: str) -> Ruling | None:
    """The ruling of code on one criterion (without its type), or None where it is the judge's."""
    if len(criterion) > LONGEST_CRITERION:
        return None
    clauses = _clauses(re.sub(r"[ \t]+", " ", fold(criterion)).strip())
    examined = [_examine(clause, answer) for clause in clauses]
    unknown = [clause for clause, finding in zip(clauses, examined, strict=True) if not finding]
    known = [finding for finding in examined if finding]
    if not known or any(OPEN.search(_hidden(clause)) for clause in unknown):
        return None
    # A limit in a later clause may bear on what the clause before it named, unless it names the answer itself.
    failed = [
        finding
        for index, (clause, finding) in enumerate(zip(clauses, examined, strict=True))
        if finding and not finding.holds and (not unknown or not index or NAMES_ANSWER.match(clause))
    ]
    if not failed and unknown:
        return None
    return Ruling(not failed, _reason(failed or known, criterion, answer))


def _reason(proof: Sequence[Finding], criterion: str, answer: str) -> str:
    """The proof in the language and script of the criterion; where that shows no script, in the answer's."""
    if not HAN.search(criterion):
        return "; ".join(finding.en for finding in proof) + "."
    reason = "；".join(finding.zh for finding in proof) + "。"
    votes = script_votes(criterion)
    if not any(votes):
        votes = script_votes(answer)
    return reason_in_traditional(reason) if votes.traditional > votes.simplified else reason


def _clauses(criterion: str) -> list[str]:
    """The criterion at its punctuation, and where that is not understood, at its conjunctions."""
    clauses = [criterion]
    for separator in SEPARATORS:
        clauses = [piece for clause in clauses for piece in ([clause] if _rule(clause) else _split(clause, separator))]
    return clauses


def _split(clause: str, separator: re.Pattern[str]) -> list[str]:
    hidden, pieces, start = _hidden(clause), list[str](), 0
    for match in separator.finditer(hidden):
        pieces.append(clause[start : match.start()])
        start = match.end()
    return [piece.strip() for piece in (*pieces, clause[start:]) if re.search(r"[^\W_]", piece)]


def _hidden(clause: str) -> str:
    """The clause with its quotations blanked: a comma in them separates nothing."""
    return re.sub(QUOTED, lambda match: "\x00" * len(match.group()), clause)


def _rule(clause: str) -> tuple[re.Match[str], Check] | None:
    plain = clause.strip(" .,!;:。，！；：")
    # Quotations keep their script; the words around them are read in one.
    plain = "".join(
        piece if index % 2 else piece.translate(SIMPLIFIED) for index, piece in enumerate(_pieces_around_quotes(plain))
    )
    return next(((match, rule.check) for rule in RULES if (match := rule.pattern.fullmatch(plain))), None)


def _pieces_around_quotes(text: str) -> list[str]:
    pieces, start = list[str](), 0
    for match in re.finditer(QUOTED, text):
        pieces += [text[start : match.start()], match.group()]
        start = match.end()
    return [*pieces, text[start:]]


def _examine(clause: str, answer: str) -> Finding | None:
    found = _rule(clause)
    return found[1](found[0], answer) if found else None
