"""The names that a clause may speak of, as far as an answer and its question have mentioned them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from steelyard.judges.embedded.grammar import CIRCUMSTANCE, CIRCUMSTANCE_END, RELATION_NOUN, STARTS_PREDICATE, shadow
from steelyard.judges.embedded.people import (
    Kind,
    fits,
    fits_en,
    has_title,
    is_person,
    kinds_en,
    makes_something,
    one_of,
    people_beside,
)
from steelyard.text import HAN

ASKING = re.compile(
    r"(?:请问|请|帮我|麻烦|给我|跟我|我想(?:知道|了解|问)?|告诉我|说说|谈谈|介绍一下|介绍下?|讲讲|解释一下|什么是"
    r"|为什么|为何|什么叫)[，,:：]?"
)
ASKED = re.compile(
    r"是|有|(?<![功性智])能|可以|(?<![社协大晚])会|在|如何|怎么|怎样|为什么|为何|什么|哪|多少|几|需要|应该|属于"
    r"|位于|支持|叫|的|和|与|跟|同|最|由|被|什麽|多(?=大|长|高|久|远|重)|谁"
)
ASKED_EN = re.compile(
    r"(?<!^)\b(?:the )?((?:[A-Z][\w'-]*\s?)+)(?=[?]|\s*$|\b(?:of|in|on|for|have|has|get|cost|made|located|built"
    r"|do)\b)"
)
ASKED_NAME = re.compile(r"[\w·《》 -]{2,12}")


# What was said this short a while ago may still be meant by a pronoun.
LONGEST_RECENT = 240
# More people than this are too many to tell apart; they need not all be known.
MOST_PEOPLE = 8
# 血型 is a side of somebody: whoever asks for it has not named anybody.
SUFFIX = r"(?:型|期|率|量|额|价|费|数|色|时间|日期|编号|号码|方式|原因|结果|情况|尺寸|参数)"
SIDE = re.compile(rf"(?:{RELATION_NOUN}|[^\W的]{{1,4}}{SUFFIX})")
OWNED = re.compile(rf"(.{{2,}})(?:的{SIDE.pattern}|(?<!的){RELATION_NOUN})")
# 血型是A型 gives a value; 首都是北京 names something that may be spoken of next.
VALUE_END = re.compile(rf"(?:星座|学历|国籍|籍贯|民族|身高|体重|生日|地址|电话|邮编|面积|人口|{SUFFIX})\Z")
PERSONAL_EN = re.compile(r"\b(?:he|she|his|her|him)\b", re.IGNORECASE)
SIDE_EN = re.compile(r"\b(?:number|code|id|name|address|date|colou?r|size|title|time|reason|answer)\Z", re.IGNORECASE)


@dataclass
class Names:
    """The names that may be meant. `near` are the subjects of this sentence and the one before, newest last."""

    asked: str | None = None
    topic: str | None = None
    aliases: dict[str, str] = field(default_factory=dict)
    current: str | None = None
    owner: str | None = None
    near: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)
    recent: str = ""
    kinds: dict[str, Kind] = field(default_factory=dict)
    personal: bool = False

    @classmethod
    def about(cls, question: str) -> Names:
        """The names as they are known before the answer begins."""
        names = cls(asked=asked_subject(question))
        names.hear(question)
        names.recent, names.personal = "", False
        return names

    def next_sentence(self) -> None:
        self.before, self.near, self.current, self.owner = self.near or self.before[-1:], [], None, None
        self.recent = self.recent.rpartition("\n")[2] + "\n"

    def mention(self, name: str, alias: str | None = None, said: str = "") -> None:
        """A name that the answer itself gives as a subject; `alias` is a description that means it too."""
        self.topic = name
        if alias:
            self.aliases[alias] = name
        if HAN.search(name) and is_person(name, said):
            self._know(name, "person")
        self.speak_of(name)

    def speak_of(self, name: str) -> None:
        """The sentence goes on about this name."""
        self.current = name
        if name not in self.near:
            self.near.append(name)

    def hear(self, text: str) -> None:
        """Words of the question or the answer, in their order: whoever is named in them may be meant later."""
        self.recent = (self.recent + text)[-LONGEST_RECENT:]
        if HAN.search(text):
            for name in people_beside(text):
                self._know(name, "possible")
            return
        self.personal = self.personal or bool(PERSONAL_EN.search(text))
        for name, kind in kinds_en(text):
            self._know(name, kind)

    def _know(self, name: str, kind: Kind) -> None:
        known = self.kinds.get(name)
        # What was founded once stays a thing; what was born once stays a person.
        if known in (None, "maybe", "likely", "possible"):
            self.kinds[name] = kind

    def only(self) -> str | None:
        """The one name that can be meant; None where there are several."""
        names = self.near or self.before or [name for name in (self.asked,) if name]
        # 奥匈帝国 and 奥匈帝国全称: the second is a side of the first.
        names = [name for name in names if not any(name != other and name.startswith(other) for other in names)]
        return names[0] if len(names) == 1 else None

    def person(self, pronoun: str = "") -> str | None:
        """The one person whom the answer or its question speaks of, if no other is named and the pronoun fits."""
        people = [name for name, kind in self.kinds.items() if kind == "person"]
        if self.asked and is_person(self.asked):
            people.append(self.asked)
        name = one_of(people[:MOST_PEOPLE])
        if name is None or (pronoun and not fits(pronoun, name, self.recent)):
            return None
        others = [other for other, kind in self.kinds.items() if kind == "possible"]
        return name if all(name in other or other in name for other in others) else None

    def person_en(self, pronoun: str) -> str | None:
        """The one person whom he or she can mean; one who only may be a person must be the subject as well."""
        people = [name for name, kind in self.kinds.items() if kind in ("person", "likely", "possible")]
        people = people or [name for name, kind in self.kinds.items() if kind == "maybe"]
        name = one_of(people[:MOST_PEOPLE])
        if name is None or not fits_en(pronoun, name, self.recent):
            return None
        kind = self.kinds[name]
        return name if kind in ("person", "likely") or name in (self.asked, self.only()) else None

    def thing(self) -> str | None:
        """What 它 or it can mean: the only subject, unless that is a person or made something that may be meant too."""
        name = self.only()
        if (
            name is None
            or SIDE_EN.search(name)
            or CIRCUMSTANCE_END.search(shadow(name))
            or makes_something(self.recent)
        ):
            return None
        kind = self.kinds.get(name)
        if kind == "person" or (HAN.search(name) and is_person(name)) or has_title(name):
            return None
        return None if kind in ("likely", "possible", "maybe") and self.personal else name

    def owns(self) -> str | None:
        """Whose side is spoken of where a clause begins with one: 张伟的血型是A型，生日是… goes on about 张伟."""
        for name in (self.owner, self.current, self.person(), self.only()):
            if name and (owned := OWNED.fullmatch(shadow(name))):
                return name[: owned.end(1)]
            if name and not SIDE.fullmatch(shadow(name)):
                return name
            if name and name == self.current:
                return None
        return None


def asked_subject(question: str) -> str | None:
    """What the question is about, where it names it at its beginning; a description is not a name."""
    question = question.strip().rstrip("?？。.!！ ")
    if not HAN.search(question):
        names = [match[1].strip() for match in ASKED_EN.finditer(question)]
        return names[0] if len(names) == 1 else None
    simple = shadow(question)
    start = 0
    while asking := ASKING.match(simple, start):
        start = asking.end()
    asked = ASKED.search(simple, start)
    name = question[start : asked.start() if asked else None].strip('，, “”"')
    is_name = bool(ASKED_NAME.fullmatch(name)) and not (
        STARTS_PREDICATE.match(shadow(name)) or CIRCUMSTANCE.match(shadow(name))
    )
    return name if is_name and not (asked and simple[asked.start()] in "的和与跟同最") else None
