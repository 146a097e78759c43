"""Signs that a judged text speaks to the judge instead of to its reader.

A sign only raises a flag: scores are safe by construction (labels come from the judge's own reply, judged
text is fenced), so the price of a false alarm is a second look. Patterns are linear-time.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# What the documents use to write scores and sections; an answer has no business imitating them.
IMITATION = {
    "score": re.compile(r"[【\[]\s*-?\s*[01]\s*[】\]]\s*分|【\s*-?\s*[01]\s*】|\{\{\s*-?[01]\s*\}\}"),
    "verdict": re.compile(
        r"(?:符合性判断|符合性判斷|有效性分析|准确性得分|準確性得分|相关性得分|相關性得分|真实性得分|真實性得分"
        r"|是否为兜底回复|是否為兜底回覆|打分|评分结果|評分結果)[\s*]{0,4}[:：【{]"
        r"|(?m:^\s*[*\"'“]{0,3}(?:不?符合|不确定|不確定)[*\"'”。]{0,3}\s*$)"
    ),
    "section": re.compile(
        r"(?m:^[#\s*]{0,8}(?:原子信息生成|相关性等级划分|準確性評估|准确性评估|相关性评价|真实性评价|相关性检查"
        r"|真实性检查|评估结果|評估結果|evaluation (?:result|report)|final verdict|judge'?s? verdict)[\s*]{0,4}[:：]?)",
        re.IGNORECASE,
    ),
    "json": re.compile(
        r"[\"'](?:label|labels|result|verdict|scores?|support|on_topic|complies|fallback|valid|criteria_results"
        r"|evaluation_report|accuracy|relevance|faithfulness)[\"']\s*:\s*"
        r"(?:[\[{]|-?\d|true|false|[\"']\s*(?:不?符合|不确定|正确|错误|correct|wrong|supported|covered|valid|pass|fully|yes))",
        re.IGNORECASE,
    ),
    "fence": re.compile(
        r"</?\s*(?:answer|reference|references|atoms|sentences|question|system|turn|criteria|data|sample)\b[^<>\n]{0,40}>"
        r"|<\|[a-z_]{2,20}\|>|\[/?INST\]|<</?SYS>>|(?m:^\s*(?:\"\"\"|-{3,}\s*end|={3,}\s*end))",
        re.IGNORECASE,
    ),
}

INSTRUCTION = {
    "override": re.compile(
        r"(?:忽略|无视|無視|忘记|忘記|不要理会|不要理會|忽視|忽视|跳过|跳過|disregard|ignore|forget|override|bypass)"
        r".{0,24}(?:以上|上述|之前|前面|先前|所有|全部|原有|评估|評估|规则|規則|标准|標準|要求|指令|指示|提示"
        r"|previous|prior|above|earlier|all|any|instruction|prompt|rule|guideline|criteria|rubric)",
        re.IGNORECASE,
    ),
    "address": re.compile(
        r"(?:评估(?:专家|者|员|模型)|評估(?:專家|者|員|模型)|评判(?:者|员|模型)|裁判|评委|評委|打分(?:员|模型))"
        r".{0,16}(?:请|請|必须|必須|应|應|务必|務必)"
        r"|(?:请|請|必须|必須|务必|務必|直接).{0,12}(?:输出|輸出|给出|給出|打|判|标记|標記|评为|評為|回复|回覆)"
        r".{0,10}(?:满分|滿分|正确|正確|符合|分数|分數|高分|[1１]\s*分|100\s*分|【|\{\{)"
        r"|(?:dear|hey|note (?:to|for)|attention|message (?:to|for))(?: the)? (?:judge|grader|evaluator|reviewer|assessor)"
        r"|(?:judge|grader|evaluator|you) (?:must|should|shall|will|need to) (?:now )?"
        r"(?:output|return|give|award|assign|mark|label|rate|score|respond)"
        r"|(?:output|return|give|award|assign|mark|label|rate|score) .{0,30}"
        r"(?:full marks|as correct|as supported|as relevant|score of|100|satisfied)",
        re.IGNORECASE,
    ),
    "role": re.compile(
        r"(?m:^\s*[\[【<(*#]{0,3}\s*(?:system|assistant|developer|user|human)\s*(?:message|prompt)?\s*[\]】>)*]{0,3}\s*[:：])"
        r"|(?:你现在是|你現在是|从现在起你|從現在起你|you are now|act as|pretend to be|new instructions?[:：])",
        re.IGNORECASE,
    ),
}

CODE_FENCE = re.compile(r"(?m:^\s*(?:```|~~~))")
INVISIBLE = re.compile(r"[\u200b-\u200f\u202a-\u202e\u2060-\u2064\u2066-\u2069\ufeff\u00ad\U000e0000-\U000e007f]")


def signs(text: str, *, imitation: bool = True, instruction: bool = True) -> list[str]:
    """The names of the patterns that the text shows, seen through invisible and full-width characters."""
    plain = INVISIBLE.sub("", unicodedata.normalize("NFKC", text))
    # NFKC turns 【 into itself but ｛｛ into {{ and ［ into [, which is what a lenient parser would read.
    families = (IMITATION if imitation else {}) | (INSTRUCTION if instruction else {})
    found = [name for name, pattern in families.items() if pattern.search(plain)]
    # A code block is ordinary; a fence that closes what was never opened is not.
    if imitation and "fence" not in found and len(CODE_FENCE.findall(plain)) % 2:
        found.append("fence")
    return found


def suspected(answers: Iterable[str], others: Iterable[str] = ()) -> bool:
    """Whether an answer shows any sign, or a passage tells somebody to ignore or to award something.

    Passages may number themselves 【1】 and quote JSON, so imitation alone does not count there.
    """
    return any(signs(answer) for answer in answers) or any(signs(other, imitation=False) for other in others)
