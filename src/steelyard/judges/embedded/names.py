"""The names that a clause may speak of, as far as an answer and its question have mentioned them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from steelyard.judges.embedded.grammar import CIRCUMSTANCE, PERSON, STARTS_PREDICATE, shadow
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


@dataclass
class Names:
    """The names that may be meant. `near` are the subjects of this sentence and the one before, newest last."""

    asked: str | None = None
    topic: str | None = None
    aliases: dict[str, str] = field(default_factory=dict)
    current: str | None = None
    near: list[str] = field(default_factory=list)
    before: list[str] = field(default_factory=list)

    def next_sentence(self) -> None:
        self.before, self.near, self.current = self.near or self.before[-1:], [], None

    def mention(self, name: str, alias: str | None = None) -> None:
        """A name that the answer itself gives as a subject; `alias` is a description that means it too."""
        self.topic = name
        if alias:
            self.aliases[alias] = name
        self.speak_of(name)

    def speak_of(self, name: str) -> None:
        """The sentence goes on about this name."""
        self.current = name
        if name not in self.near:
            self.near.append(name)

    def only(self) -> str | None:
        """The one name that can be meant; None where there are several."""
        names = self.near or self.before or [name for name in (self.asked,) if name]
        # 奥匈帝国 and 奥匈帝国全称: the second is a side of the first.
        names = [name for name in names if not any(name != other and name.startswith(other) for other in names)]
        return names[0] if len(names) == 1 else None

    def person(self) -> str | None:
        people = dict.fromkeys(
            name for name in (*self.before, *self.near, self.asked) if name and PERSON.fullmatch(shadow(name))
        )
        return next(iter(people)) if len(people) == 1 else None


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
