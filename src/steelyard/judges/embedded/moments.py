"""What a question implies about time and place, and whether a statement speaks of another one."""

from __future__ import annotations

import re
from datetime import date, timedelta

from steelyard.judges.embedded.facts import facts
from steelyard.judges.embedded.meaning import plain

DAYS = {
    "今天": 0, "今日": 0, "今晚": 0, "明天": 1, "明日": 1, "后天": 2, "昨天": -1, "昨日": -1, "前天": -2,
    "today": 0, "tonight": 0, "tomorrow": 1, "yesterday": -1,
}  # fmt: skip
YEARS = {"今年": 0, "本年": 0, "明年": 1, "去年": -1, "前年": -2, "this year": 0, "next year": 1, "last year": -1}
DAY = re.compile("|".join(rf"\b{word}\b" if word.isascii() else word for word in DAYS))
YEAR = re.compile("|".join(rf"\b{word}\b" if word.isascii() else word for word in YEARS))
HERE = re.compile(
    r"附近|周边|这里|这儿|本地|当地|我这|我家|离我|身边|就近|天气|气温|空气质量|限行|下雨|\bnear(?:by| me| here)\b"
    r"|\baround here\b|\blocal(?:ly)?\b"
    r"|\bweather\b|\bclose to me\b|\bin my (?:area|city|town)\b"
)
# A date tells of the day the statement is about only where it opens the statement.
OPENING = 6
CITIES: dict[str, str] = dict(
    pair.split("=")
    for pair in (
        "北京=beijing 上海=shanghai 天津=tianjin 重庆=chongqing 广州=guangzhou 深圳=shenzhen 杭州=hangzhou "
        "南京=nanjing 苏州=suzhou 武汉=wuhan 成都=chengdu 西安=xi'an 郑州=zhengzhou 长沙=changsha 沈阳=shenyang "
        "大连=dalian 青岛=qingdao 济南=jinan 宁波=ningbo 厦门=xiamen 福州=fuzhou 合肥=hefei 南昌=nanchang "
        "昆明=kunming 贵阳=guiyang 南宁=nanning 海口=haikou 三亚=sanya 太原=taiyuan 石家庄=shijiazhuang "
        "哈尔滨=harbin 长春=changchun 兰州=lanzhou 西宁=xining 银川=yinchuan 乌鲁木齐=urumqi 拉萨=lhasa "
        "呼和浩特=hohhot 无锡=wuxi 佛山=foshan 东莞=dongguan 温州=wenzhou 珠海=zhuhai 洛阳=luoyang 桂林=guilin "
        "香港=hong_kong 澳门=macau 台北=taipei 高雄=kaohsiung 台中=taichung 东京=tokyo 大阪=osaka 首尔=seoul "
        "新加坡=singapore 曼谷=bangkok 伦敦=london 巴黎=paris 纽约=new_york 洛杉矶=los_angeles "
        "旧金山=san_francisco 芝加哥=chicago 悉尼=sydney 墨尔本=melbourne 多伦多=toronto 温哥华=vancouver "
        "柏林=berlin 罗马=rome 马德里=madrid 莫斯科=moscow 迪拜=dubai 波士顿=boston 西雅图=seattle "
    ).split()
)


def other_time(question: str, statement: str, today: str) -> tuple[str, str] | None:
    """The date that the question means and the other one that the statement opens with; None where they agree."""
    now = _date(today)
    asked = plain(question)
    if now is None:
        return None
    if day := DAY.search(asked):
        meant = now + timedelta(days=DAYS[day.group()])
        wanted: tuple[int | None, ...] = (meant.year, meant.month, meant.day)
    elif year := YEAR.search(asked):
        wanted = (now.year + YEARS[year.group()], None, None)
    else:
        return None
    for fact in facts(statement):
        if fact.unit != "date" or fact.start > OPENING:
            continue
        named = [
            (have, want) for have, want in zip(fact.value, wanted, strict=True) if have is not None and want is not None
        ]
        if any(have != want for have, want in named):
            return "-".join(f"{part:02d}" for part in wanted if part is not None), fact.text
    return None


def _date(text: str) -> date | None:
    for fact in facts(text):
        if fact.unit == "date":
            year, month, day = fact.value
            try:
                return date(int(str(year)), int(str(month)), int(str(day)))
            except ValueError:
                return None
    return None


def other_place(question: str, statement: str, here: str) -> tuple[str, str] | None:
    """The city the asker is in and the other one that the statement speaks of; None where it may be the same."""
    home, asked = cities(here), cities(question)
    if not home or asked or not HERE.search(plain(question)):
        return None
    named = cities(statement)
    return (min(home), min(named)) if named and not named & home else None


def cities(text: str) -> set[str]:
    low = plain(text)
    return {zh for zh, en in CITIES.items() if zh in low or re.search(rf"\b{en.replace('_', ' ')}\b", low)}
