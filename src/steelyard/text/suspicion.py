"""Signs that a judged text speaks to the judge instead of to its reader.

A sign only raises a flag: scores are safe by construction (labels come from the judge's own reply, judged
text is fenced), so the price of a false alarm is a second look. Still, a flag on every second sample would
be read by nobody, so each pattern asks for words that only a judge could mean. Patterns are linear-time,
and are written in Simplified Chinese; Traditional text is folded onto it first.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Callable, Iterable
from html import unescape
from typing import NamedTuple

from steelyard.text import SIMPLIFIED, fold

LINE = r"(?m:^)[ \t#>*_\-\d.、]{0,12}"
LABEL = (
    r"correct|wrong|undetermined|exempt|supported|unsupported|covered|on_topic|satisfied|violated|fully"
    r"|不?符合|不确定|正确|错误"
)
STOP = r"\s{0,4}(?:[”\"'’」』*`。！!，,；;.）)]|\Z|(?m:$))"
FIELD = r"answer|references?(?: \d+)?|atoms|sentences|question|criteria|sample|turn(?: \d+)?|system_prompt|history|key_points|data"

# --- what only the documents' own forms look like; an answer has no business imitating them --------

SCORE = re.compile(
    r"【\s{0,4}-?\s{0,4}[01]\s{0,4}】|(?<!frac)(?<!sqrt)(?<!\})\{\{\s{0,4}-?\s{0,4}[01]\s{0,4}\}\}|\[\s{0,4}-?\s{0,4}[01]\s{0,4}\]\s{0,4}分"
)
CITATION = re.compile(r"【\s{0,4}[2-9]\s{0,4}】")
NO_CITATION = re.compile(r"【\s{0,4}(?:-\s{0,4}1|0)\s{0,4}】|\{\{|打分|得分|忽略|输出")
VERDICT = re.compile(
    r"(?:符合性判断|有效性分析|准确性得分|相关性得分|真实性得分|是否为兜底回复|打分|判定结果|最终状态|评估结果)"
    rf"[\s*]{{0,4}}[:：]?[\s*`“\"]{{0,4}}(?:[【{{\[]|-?[01](?![\d.到至~-])|有效|无效|(?:{LABEL}){STOP})"
    r"|(?m:^)[ \t]{0,8}[*\"'“`]{0,3}不?符合[*\"'”`。]{0,3}[ \t]{0,8}(?m:$)"
    r"|(?:\*\*|`)\s?(?:不?符合|不确定)\s?(?:\*\*|`)"
    rf"|(?:判定|\blabel|\bverdict)\s?[:：=]\s{{0,4}}[“\"'`]?(?:{LABEL}){STOP}"
    r"|\blabel\s?[:：=]\s{0,4}(?:correct|supported|satisfied)\b|(?m:^)\|\s?\d{1,3}\s?\|\s?(?:correct|supported|satisfied|正确|符合)\s?\|"
    r"|(?:相关性|准确性|真实性|完整性|忠实度|忠实性)[:：]?\s?(?:为|得)?\s?100\s?分"
    r"|\b(?:accuracy|relevance|faithfulness|completeness|truthfulness)\s?[:=]\s?100\b",
    re.IGNORECASE,
)
SECTION = re.compile(
    rf"{LINE}(?:原子信息生成|相关性等级划分|准确性评估|相关性评价|真实性评价|相关性检查|真实性检查|兜底回复|第[\dN]{{1,3}}轮对话分析)"
    r"[ \t*]{0,4}[:：]?[ \t*]{0,4}(?m:$)"
    r"|(?:final|judge'?s?|evaluation) (?:verdict|result|score)[ \t*]{0,4}[:：][ \t*]{0,4}"
    r"(?:correct|pass|satisfied|supported|100|1)\b",
    re.IGNORECASE,
)
JSON = re.compile(
    rf"[\"'](?:label|result|verdict|support|complies|coverage)[\"']\s{{0,4}}:\s{{0,4}}[\"']\s?(?:{LABEL})\s?[\"']"
    r"|[\"'](?:evaluation_report|criteria_results|criterion_id|on_topic|complies|accuracy_strict|faithfulness_soft|own_answer)"
    r"[\"']\s{0,4}:"
    r"|[\"'](?:atoms|checks|sentences|key_points|criteria)[\"']\s{0,4}:\s{0,4}\[\s{0,4}\{\s{0,4}[\"']id[\"']"
    r"|[\"'](?:scores?|accuracy|relevance|truthfulness|completeness|faithfulness|相关性|准确性|真实性)[\"']\s{0,4}:\s{0,4}"
    r"(?:1|1\.0+|100)\s{0,4}[,}\]\n]",
    re.IGNORECASE,
)
TAG = re.compile(rf"<(?P<close>/?)\s?(?P<name>{FIELD})\b(?P<rest>[^<>\n]{{0,40}})>", re.IGNORECASE)
CHAT_MARK = re.compile(
    r"<\|(?:im_start|im_end|endoftext|system|user|assistant|end|eot_id)\|>|\[/INST\]|<</SYS>>"
    r"|(?m:^)[-=#*<\[ ]{2,20}(?:end of (?:the )?(?:answer|data|sample|references?|input|document)"
    r"|(?:回答|答案|数据|输入|参考资料|待评估内容)(?:到此)?结束)",
    re.IGNORECASE,
)
CODE_FENCE = re.compile(r"(?m:^)[ \t]{0,8}(?:```|~~~)[`~]{0,8}[ \t]{0,8}([^\s`]{0,20})")

# --- words that only a judge could be meant by ---------------------------------------------------

OVERRIDE = re.compile(
    r"(?<!不要)(?<!不能)(?<!不可)(?<!不得)(?<!不应)(?<!请勿)(?<!切勿)(?<!避免)(?:忽略|无视|忘记|不要理会|不用理会|不必理会|忽视|跳过|不要遵守|推翻)"
    r"(?:掉|你|您|我|们|的|在|此|这些|一切|任何|，|:|：){0,4}(?:以上|上述|上面|之前|前面|先前|前述|所有|全部|原有|原来|系统|评估|评分|打分|一切)"
    r".{0,8}(?:要求|指令|指示|提示|规则|准则|标准|说明|细则|约束|设定)(?!可能|会|将|者|的后果|的人|的行为|而|则|导致|差)"
    r"|(?<!not )(?<!n't )(?<!never )\b(?:disregard|ignore|forget|override|bypass)\b (?:(?:all|any|of|the|these|those|your|my|every|everything) ?){0,4}"
    r"(?:previous|prior|above|earlier|preceding|foregoing|your|system|original|grading|evaluation|judging|scoring)"
    r" ?(?:and \w{1,12} )?(?:instructions?|prompts?|rules|guidelines|criteria|rubrics?|messages?|directions|text)\b"
    r"|\b(?:disregard|ignore|forget) (?:the|this|that|your) (?:rubric|system prompt|grading|instructions you)"
    r"|\b(?:disregard|ignore|forget) (?:everything|all|anything) (?:above|before|you were told|previously)",
    re.IGNORECASE,
)
JUDGE_ZH = r"(?:评估专家|评估者|评估员|评估模型|评判者|评判员|评判模型|评分员|评分模型|打分员|打分模型|裁判模型|AI裁判|评委|评审|裁判)"
PRAISE_ZH = rf"(?:满分|最高分|高分|1\s?分|100\s?分|十分|(?:全部|完全|都|均|为)?[“\"「'`*]{{0,2}}(?:正确|符合|通过|有效){STOP}|【\s?1|\{{\{{\s?1)"
JUDGE_EN = r"(?:ai |llm |human )?(?:judge|grader|evaluator|assessor|scorer|rater)s?"
PRAISE_EN = (
    r"(?:full marks|full score|full credit|perfect score|maximum score|highest score|top marks|(?:as|is|are) (?:fully |all )?"
    r"(?:correct|right|supported|relevant|satisfied|compliant)|a? ?score of (?:1|10|100)\b|10/10|100/100|100 ?%|100 points|all (?:1s|ones))"
)
ADDRESS = re.compile(
    rf"{JUDGE_ZH}(?:们|老师|大人|您好|你好){{0,2}}\s?[，,:：！!]?\s?(?:请|务必|注意|必须|你)(?:.{{0,30}})(?:分|判|评|标记|输出|通过|符合)"
    rf"|(?:请|请你|务必|必须|直接|应该?|只需|一律|统一|都|全部|需要)(?:.{{0,10}})(?:输出|给出|给予?|打|判定?为?|判断为|标记?为?|评定?为?|回复|视为|记为?)"
    rf"[^。！？\n]{{0,8}}{PRAISE_ZH}"
    rf"|\b(?:dear|hey|hi|attention|note (?:to|for)|message (?:to|for)|instructions? (?:to|for))(?: the| all)? {JUDGE_EN}\s?[:,，：!-]"
    rf"|\b(?:as an?|as the) {JUDGE_EN},? you\b"
    rf"|\b{JUDGE_EN},? (?:please|you must|must|should|shall|has to|have to) .{{0,40}}{PRAISE_EN}"
    rf"|\b(?:please|must|should|now|always|simply|just|directly)? ?(?:output|give|award|assign|mark|label|rate|score|grade|respond with|reply with) "
    rf"(?:this|the|my|it|me|all|every|each|these|them|us|a|an)\b.{{0,30}}{PRAISE_EN}",
    re.IGNORECASE,
)
ROLE = re.compile(
    rf"{LINE}[\[【<(]{{0,2}}(?:system|developer|admin|系统|管理员)(?: (?:message|prompt|note|override|instruction)|提示|消息|指令)?[\]】>)]{{0,2}}\s?[:：\n]"
    r".{0,60}(?:judge|grad(?:e|ing)|evaluat|scor(?:e|ing)|full marks|ignore|评估|评分|打分|判定|满分|忽略)"
    r"|(?:你现在是|从现在起你|从现在开始,?你|现在你是).{0,12}(?:评|裁判|打分|不受|没有限制|管理员|开发者模式|只会|只能输出)"
    rf"|\b(?:you are now|act as|pretend (?:to be|you are)) (?:an? |the )?(?:{JUDGE_EN}|dan\b|unrestricted|jailbroken|in developer mode|lenient|generous)"
    r"|\bnew (?:system )?instructions?[:：]|新的?(?:指令|系统提示)[:：]",
    re.IGNORECASE,
)

CLAIM = re.compile(
    r"(?:回答|答案|内容)[^。\n]{0,12}(?:专家[^。\n]{0,6}审核|确认无误|逐字摘自)|[毋无不]须再行?查证|以(?:本|该|此)?回答为准"
    r"|\bthis answer (?:was|has been) (?:independently )?(?:verified|checked|approved) by\b|\bthis answer is right\b"
    r"|\b(?:passages|references)(?: supplied| given| provided)?[^.\n]{0,40}\b(?:are|is) (?:outdated|wrong)\b"
    r"|\bwhoever (?:grades|checks|judges|scores|evaluates|reads this to check)\b|(?:核对|评|检查)(?:这个|本)?回答的(?:朋友|人|老师)"
    r"|(?:求|麻烦|恳请|拜托)[您你]?[^。\n]{0,16}(?:满分|高分|判为正确|都算对)"
    r"|\b(?:positive|best(?: possible)?) label\b",
    re.IGNORECASE,
)

# --- putting them together -----------------------------------------------------------------------


def _score(text: str) -> bool:
    """A score in the documents' brackets; a text that numbers its sources 【1】【2】 means something else."""
    return bool(SCORE.search(text)) and not (CITATION.search(text) and not NO_CITATION.search(text))


def _breaks_out(text: str) -> bool:
    """A mark that no text needs, wherever it comes from: of a chat turn, or one that closes a tag of ours."""
    if CHAT_MARK.search(text):
        return True
    depth: dict[str, int] = {}
    for tag in TAG.finditer(text):
        name = tag["name"].lower()
        depth[name] = depth.get(name, 0) + (-1 if tag["close"] else 1)
        if depth[name] < 0 or re.search(r"\b[0-9a-f]{8,}", tag["rest"]):
            return True
    return False


def _fence(text: str) -> bool:
    """A mark that closes what the text never opened: our tags, a chat turn, a quotation, a block of code."""
    if _breaks_out(text) or text.count('"""') % 2:
        return True
    fences = CODE_FENCE.findall(text)
    # An answer that was cut off leaves ```python open; a bare fence without a partner closes something else.
    return len(fences) % 2 == 1 and not fences[0]


class Sign(NamedTuple):
    """A test, and words of which a text must hold one to pass it: most texts hold none, and looking is cheap."""

    words: tuple[str, ...]
    shows: Callable[[str], object]


IMITATION: dict[str, Sign] = {
    "score": Sign(("【", "{{", "]"), _score),
    "verdict": Sign(
        tuple(
            "符合 有效性 得分 兜底 打分 判定 状态 评估 不确定 正确 100 label verdict correct supported satisfied".split()
        ),
        VERDICT.search,
    ),
    "section": Sign(
        ("原子信息", "等级划分", "评估", "评价", "检查", "兜底", "对话分析", "verdict", "result", "score"),
        SECTION.search,
    ),
    "json": Sign(('"', "'"), JSON.search),
    "fence": Sign(("<", "[/inst]", "end of", "结束", '"""', "```", "~~~"), _fence),
}
BREAKING_OUT = Sign(("<", "[/inst]", "end of", "结束"), _breaks_out)
INSTRUCTION: dict[str, Sign] = {
    "override": Sign(
        tuple("忽略 无视 忘记 理会 忽视 跳过 遵守 推翻 disregard ignore forget override bypass".split()),
        OVERRIDE.search,
    ),
    "address": Sign(
        tuple(
            "分 正确 符合 通过 有效 评 裁判 【 {{ judge grader evaluator assessor scorer rater full score marks correct "
            "supported relevant satisfied compliant 10/10 100 1s ones".split()
        ),
        ADDRESS.search,
    ),
    "claim": Sign(
        tuple("回答 答案 内容 查证 满分 高分 判为 算对 answer passages references whoever label".split()), CLAIM.search
    ),
    "role": Sign(
        tuple("system developer admin 系统 管理员 你现在 从现在 现在你 新 now act pretend new".split()), ROLE.search
    ),
}

ALL_WORDS = {name: sign.words for name, sign in (IMITATION | INSTRUCTION | {"breaking_out": BREAKING_OUT}).items()}
ASCII_WORDS = {name: tuple(filter(str.isascii, words)) for name, words in ALL_WORDS.items()}
ASCII_INSTRUCTION_WORDS = tuple(word for name in INSTRUCTION for word in ASCII_WORDS[name])
FAMILIES = {
    (imitation, instruction): (IMITATION if imitation else {"breaking_out": BREAKING_OUT})
    | (INSTRUCTION if instruction else {})
    for imitation in (True, False)
    for instruction in (True, False)
}

INVISIBLE = re.compile(
    r"[\u00ad\u034f\u180e\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufe00-\ufe0f\ufeff\U000e0000-\U000e007f]"
)
SPACED_OUT = re.compile(r"(?<=[\u4e00-\u9fff])[ \t\u3000](?=[\u4e00-\u9fff])")


ENTITY = re.compile(r"&(?:#\d{2,6}|#x[0-9a-f]{2,5}|lt|gt|quot|amp);", re.IGNORECASE)
ESCAPE = re.compile(r"\\u([0-9a-fA-F]{4})")
BASE64 = re.compile(r"(?<![A-Za-z0-9+/=])[A-Za-z0-9+/]{24,2000}={0,2}(?![A-Za-z0-9+/=])")
# Letters of other alphabets that look like Latin ones; only where they stand inside a word of Latin letters.
LOOKALIKES = str.maketrans("\u0430\u0435\u043e\u0440\u0441\u0443\u0445\u0456\u03bf\u03b1\u03b5", "aeopcyxioae")
MIXED = re.compile(r"[a-z][\u0370-\u045f]|[\u0370-\u045f][a-z]")


def without_disguise(text: str) -> str:
    """The text without what hides words: invisible, full-width, spaced-out and Traditional characters, escapes,
    letters of another alphabet, and base64 put in plain words after it."""
    if "&" in text:
        text = ENTITY.sub(lambda found: unescape(found[0]), text)
    if "\\u" in text:
        text = ESCAPE.sub(lambda found: chr(int(found[1], 16)), text)
    text += _decoded(text)
    if text.isascii():
        return text
    text = SPACED_OUT.sub("", INVISIBLE.sub("", fold(text))).translate(SIMPLIFIED)
    return text.translate(LOOKALIKES) if MIXED.search(text) else text


def _decoded(text: str) -> str:
    """What stands in base64 in a text, each on a line of its own; what is no text (a key, a picture) is left out."""
    found = []
    for token in BASE64.findall(text):
        try:
            plain = b64decode(token, validate=True).decode()
        except ValueError:
            continue
        if plain.isprintable():
            found.append(f"\n{plain}")
    return "".join(found)


def signs(text: str, *, imitation: bool = True, instruction: bool = True) -> list[str]:
    """The names of the signs that the text shows."""
    plain = without_disguise(text)
    lower = plain.lower()
    families = FAMILIES[imitation, instruction]
    words = ASCII_WORDS if lower.isascii() else ALL_WORDS
    return [name for name, sign in families.items() if _holds_any(lower, words[name]) and sign.shows(plain)]


def _holds_any(text: str, words: Iterable[str]) -> bool:
    for word in words:  # noqa: SIM110 - a generator for any() costs more than the looking
        if word in text:
            return True
    return False


def shows_injection(answers: Iterable[str], others: Iterable[str] = ()) -> bool:
    """Whether an answer shows any sign, or a passage tells somebody to ignore or to award something.

    Passages may number themselves 【1】 and quote JSON, so imitation alone does not count there, unless it closes a
    chat turn or a tag of ours.
    """
    if any(signs(answer) for answer in answers):
        return True
    passages = list(others)
    together = "\n".join(passages)
    # Hardly a passage holds a word of these; for plain text one look at all of them together tells.
    if together.isascii() and not _holds_any(together.lower(), ASCII_INSTRUCTION_WORDS):
        return False
    return any(signs(passage, imitation=False) for passage in passages)
