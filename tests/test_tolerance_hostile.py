"""Values that code reads only in part: it rules on them only where nothing of either text is left over."""

from __future__ import annotations

from typing import Any

import pytest

from steelyard.records import Tolerance
from steelyard.tasks import Difference
from steelyard.text.tolerance import ruling

SIGNS = {"S": "same", "W": "within", "B": "beyond", "-": None}
QUANTITIES = ("statistics", "exact", "magnitude", "5%")
DATES = ("seed", "exact", "year")

# claimed | stated | what may come out as a specification, under every policy for quantities
SPECIFICATIONS = """
5 mg on Monday | 10 mg on Monday | B B W B
周一5元 | 周一50元 | B B B- B-
每周一3次 | 每周一5次 | B B WB- B-
周一9:00 | 周一18:00 | B B B B
5月5日15:00 | 5月5日17:00 | B B B B
May 5, 3:00 pm | May 5, 5:00 pm | B B B B
500 yuan in 2023 | 800 yuan in 2023 | B B WB- B-
5% (2023) | 9% (2023) | B B WB- B-
2023年预算500万 | 2023年预算800万 | B B WB- B-
下降5% | 上升5% | - - - -
up 5% | down 5% | - - - -
亏损5亿 | 盈利5亿 | - - - -
饭前30分钟 | 饭后30分钟 | - - - -
7天内 | 7天后 | - - - -
北纬30度 | 南纬30度 | - - - -
increased to 5% | increased by 5% | - - - -
不超过3天 | 超过3天 | - - - -
>5 mg | <5 mg | - - - -
≥18 | ≤18 | - - - -
at least 3 days | at most 3 days | - - - -
not more than 5 mg | more than 5 mg | - - - -
最高5万元 | 最低5万元 | - - - -
最多3天 | 最少3天 | - - - -
不满18岁 | 年满18岁 | - - - -
税前1万元 | 税后1万元 | - - - -
单价100元 | 总价100元 | - - - -
单程50分钟 | 往返50分钟 | - - - -
每天100元 | 每月100元 | - - - -
每天3次 | 每周3次 | - - - -
每天三次 | 每周三次 | - - - -
per day 100 yuan | per month 100 yuan | - - - -
下降5% | 下降9% | B B W B
7天内 | 15天内 | B B W B
not more than 5 mg | not more than 10 mg | B B W B
at least 3 days | at least 5 days | B B W B
.5 mg | 5 mg | B B B B
$.50 | $50 | B B B B
.5 mg | 0.5 mg | S S S S
$.50 | $0.50 | S S S S
350 degrees F | 350 degrees C | - - - -
350°F | 350°C | - - - -
100度(华氏) | 100度(摄氏) | - - - -
HK$300 | $300 | - - - -
NT$300 | US$300 | - - - -
C$300 | $300 | - - - -
JP¥300 | CN¥300 | - - - -
¥300 (JPY) | ¥300 (RMB) | - - - -
HK$300 | HK$900 | B B W B
US$300 | $300 | S S S S
5 MW | 5.0 mW | - - - -
5M | 5 million | - - - -
两三天 | 23天 | - - - -
三五天 | 35天 | - - - -
七八个 | 78个 | - - - -
十几个 | 10个 | - - - -
几十个 | 10个 | - - - -
两三天 | 3天 | - - - -
50多人 | 55人 | W- B- W W-B
100多 | 150 | W- B- W WB-
10多万 | 12万 | W- B- W- WB-
Python 3.10 | Python 3.1 | B- B- B- B-
iOS 17.1 | iOS 17.10 | B- B- B- B-
00123 | 123 | B- B- B- B-
iPhone 15 Pro | iPhone 14 Pro | B B B B
Python 3.10 | Python 3.11 | B B B- B-
二楼 | 三楼 | B B B B
5G | 4G | B B B B
5G | 5 g | B- B- B- B-
邮编100000 | 邮编100001 | B B B B
13800138000 | 13800138001 | B B B B
G1234 | G1235 | B B B B
port 1433 | port 1434 | B B B B
航班CA1501 | 航班CA1502 | B B B B
1米75 | 175厘米 | S- S- S- S-
一个半小时 | 90分钟 | S S S S
1/2 | 0.5 | S- S- S- S-
two dozen | 24 | S S S S
a dozen | 12 | S S S S
dozens | 12 | - - - -
1.2e6 | 1,200,000 | S- S- S- S-
$5M | $5 million | S- S- S- S-
3-5 years | 36-60 months | S S S S
3-5 years | 3-6 years | B B - -
1-2万 | 10000-20000 | S- S- S- S-
9am-5pm | 9:00-17:00 | S S S S
9am-5pm | 9:00-18:00 | B B B B
at 3 pm | 15:00 | S S S S
second floor | 2nd floor | S- S- S- S-
下降5% | -5% | S- S- S- S-
one and a half hours | 90 minutes | S S S S
一个半月 | 45天 | - - - -
5月 | 5个月 | - - - -
5元/月 | 5元 | - - - -
1 tablet | 2 tablets | B B W B
$900 | $300 | B B W B
6 tablets | 2 tablets | B B W B
七座 | 六座 | B B W B
9 % | 3 % | B B W B
200 kg | 75 kg | B B W B
两年 | 24个月 | S S S S
1.2万 | 12,000 | S S S S
约3.1万 | 31,200 | W B W W
"""
STATISTICS = """
G1234 | G1235 | B B B B
port 1433 | port 1434 | B B B B
航班CA1501 | 航班CA1502 | B B B B
30亿元 | 52亿元 | W B W B
票房30亿元 | 票房52亿元 | W B W B
2023年票房30亿元 | 2023年票房52亿元 | W B W B
2023年票房30亿元 | 2019年票房30亿元 | B B B B
5000年 | 3000年 | W B W B
下降5亿 | 上升5亿 | - - - -
9% | 3% | B B W B
"""
# claimed | stated | as a date | as a political date, under every policy for dates
DAYS = """
2023-05-01 14:00 | 2023-05-01 15:00 | WB- B WB- | B B WB-
12/25/2023 | 12/26/2023 | W B W | B B W
25/12/2023 | 26/12/2023 | W B W | B B W
5/1/2023 | 1/5/2023 | - - - | - - -
25.12.2023 | 2023-12-25 | S S S | S S S
12/25/2023 | 25/12/2023 | S S S | S S S
2023年第1季度 | 2023年第4季度 | W- B W- | B B W-
Q1 2023 | Q3 2023 | W- B W- | B B W-
2023年上半年 | 2023年下半年 | - - - | - - -
early 1998 | late 1998 | - - - | - - -
before 1998 | after 1998 | - - - | - - -
下周一 | 本周一 | - - - | - - -
下周一 | 下周二 | B B B | B B B
1998-1999 | 1998 | - - - | - - -
1990年代 | 1998年 | - - - | - - -
1990s | 1990 | - - - | - - -
in 1998 | 1999年 | B B B | B B B
周一9:00 | 周一18:00 | B B B | B B B
5月 | May | S S S | S S S
"""


def rows() -> list[Any]:
    found = []
    for table, kinds in (
        (SPECIFICATIONS, ("specification",)),
        (STATISTICS, ("statistic",)),
        (DAYS, ("date", "political_date")),
    ):
        for line in table.strip().splitlines():
            claimed, stated, *cells = (cell.strip() for cell in line.split("|"))
            for kind, cell in zip(kinds, cells, strict=True):
                policies: list[Tolerance] = (
                    [Tolerance.model_validate({"dates": policy}) for policy in DATES]
                    if "date" in kind
                    else [Tolerance(quantities=policy) for policy in QUANTITIES]
                )
                for policy, signs in zip(policies, cell.split(), strict=True):
                    allowed = {SIGNS[sign] for sign in signs}
                    found.append(pytest.param(kind, claimed, stated, policy, allowed, id=f"{kind} {line} @ {policy}"))
    return found


@pytest.mark.parametrize(("kind", "claimed", "stated", "policy", "allowed"), rows())
def test_what_is_left_over_is_the_judges(
    kind: str, claimed: str, stated: str, policy: Tolerance, allowed: set[str | None]
) -> None:
    """Equal, near and different only where every number and word is read or stands on both sides."""
    found = ruling(Difference.model_validate({"kind": kind, "claimed": claimed, "stated": stated}), policy)
    assert found in allowed
    turned = ruling(Difference.model_validate({"kind": kind, "claimed": stated, "stated": claimed}), policy)
    assert turned in allowed
