"""What kind of value claim and passage differ in: the judge's part. `steelyard.text.tolerance` decides the rest."""

from __future__ import annotations

import re
from typing import Literal

from steelyard.judges.embedded.differences import Clash
from steelyard.judges.embedded.meaning import plain
from steelyard.tasks import Difference
from steelyard.text.measures import measure

POLITICAL = re.compile(
    r"总统|主席|总理|首相|选举|大选|条约|独立日|宣布独立|战争|战役|起义|革命|政变|宪法|建国|开国|回归|政府|议会"
    r"|国会|国务院|党中央|中共中央|外交部|总书记|共产党|国民党|民主党|共和党|人大|政协|建交|制裁|公投|停战|投降|政权|王朝"
    r"|\b(?:presiden\w+|prime minister|chancellor|elections?|elected|treaty|independence|wars?|battle|revolution"
    r"|coup|constitution"
    r"|parliament|congress|senate|referendum|government|political|armistice|ceasefire|legislation|annex\w*)\b"
)
# Aggregates that sources themselves give roughly, by what is measured: people and things counted, money, time, space.
COUNTED = re.compile(
    r"人口|居民|伤亡|死亡|遇难|死难|丧生|阵亡|遇害|屠杀|观众|观影|参观|入馆|入园|游客|访客|客流|收视|播放量|阅读量|粉丝|产量|储量"
    r"|\b(?:population|inhabitants|residents|casualt\w+|death toll|deaths|dead|killed|died|perished|audience|viewers"
    r"|viewership|visitors|attendance|spectators|followers|reserves)\b"
)
MONEY = re.compile(r"票房|生产总值|总产值|\b(?:box[ -]office|gross(?:ed|es|ing)?|gdp|gross domestic product)\b")
AGE = re.compile(
    r"年前|距今|化石|恐龙|宇宙|星系|\b(?:years ago|(?:million|billion) years|fossils?|dinosaurs?|universe|galax\w+)\b"
)
SPACE = re.compile(r"光年|地球|月球|太阳|行星|恒星|\b(?:light[ -]years?|earth|moon|sun|planets?|stars?|galax\w+)\b")
BY_DIMENSION = {
    **dict.fromkeys(("yuan", "dollars", "euros", "pounds sterling"), MONEY),
    **dict.fromkeys(("months", "seconds"), AGE),
    **dict.fromkeys(("metres", "light years"), SPACE),
}
# What a reader acts on, whatever else the sentence speaks of.
TO_ACT_ON = re.compile(
    r"票价|门票|价格|售价|费用|押金|罚款|收费|免费|不得|限[制于定]|上限|下限|不超过|最多|至少|以内|必须|应当|须|规定|载客|座位|容量|剂量"
    r"|每[天日次周人]|\b(?:price|fee|fare|ticket|deposit|fine|limit|maximum|minimum|at most|at least|no more than|up to"
    r"|must|required?|dose|seats?|capacity)\b"
)


def difference_of(clash: Clash, context: str) -> Difference:
    """The clash as a difference with its kind; `context` is all that is said around it."""
    kind: Literal["statistic", "specification", "date", "political_date"]
    if clash.kind == "date":
        kind = "political_date" if POLITICAL.search(plain(context)) else "date"
    else:
        kind = quantity_kind(clash.stated, context)
    return Difference(kind=kind, claimed=clash.claimed, stated=clash.stated)


def quantity_kind(value: str, context: str) -> Literal["statistic", "specification"]:
    """A statistic only where the words say so; in doubt it is a specification."""
    words, found = plain(context), measure(value)
    unit = found.unit if found else None
    if unit and unit.is_known and unit.dimension not in BY_DIMENSION:
        return "specification"
    speaks = BY_DIMENSION.get(unit.dimension if unit else "", COUNTED)
    # 光年 and 地球 make a bare number a distance, 票房 makes it money.
    is_told = speaks.search(words) or (not (unit and unit.is_known) and (MONEY.search(words) or SPACE.search(words)))
    return "statistic" if is_told and not TO_ACT_ON.search(words) else "specification"
