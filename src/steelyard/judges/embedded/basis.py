"""Where a criterion has its basis in a system prompt: the lines, their headings, and what must agree exactly."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.judges.embedded.meaning import plain, similarity, words
from steelyard.text import HAN, normalise
from steelyard.text.quantities import ENGLISH_NUMBERS, han_number

HEADING = re.compile(
    r"\s*(?:#{1,6}\s*(?P<hash>\S.*)|[*_]{2}(?P<bold>[^*_]{1,40})[*_]{2}\s*[:：]?|【(?P<frame>[^】]{1,30})】"
    r"|(?P<colon>[^:：，,。.;；!?！？\d][^:：，,。;；!?！？]{0,24})[:：])\s*(?P<rest>.*)"
)
ITEM = re.compile(r"\s*(?:(?P<number>\d{1,2})\s*[.、)）]|[（(](?P<framed>\d{1,2})[）)]|[-+•]|\*(?!\*))\s*(?P<rest>.*)")
STOP = re.compile(r"(?<=[。！？!?；;])|(?<=\.)\s+(?=[A-Z])")
NEGATION = re.compile(
    r"不(?!(?:得|能|要|可以?|应该?|会)?(?:超过|少于|多于|低于|高于|断|同|仅|只))|没有|勿|别(?!人|的)|禁止|严禁|避免|拒绝|无需"
    r"|\b(?!(?:no|not) (?:more|fewer|less|longer|later) than|not exceed)(?:no|not|never|don't|doesn't|cannot|can't"
    r"|without|avoid|refrain|refuse|decline|mustn't|shouldn't)\b"
)
QUOTATION = re.compile(r"“([^”]{1,60})”|「([^」]{1,60})」|『([^』]{1,60})』|\"([^\"]{1,60})\"")
# Ordinary counts say nothing (一个, 一句); a number that limits something must agree.
FIGURE = re.compile(
    r"\d+(?:\.\d+)?|[二两三四五六七八九十百千]+(?=[个条句字次段种点步项名岁年天轮行词本首张件款位家道部篇支人分小])"
    rf"|\b(?:{'|'.join(list(ENGLISH_NUMBERS)[2:])})\b"
)
# Words that every criterion uses and no prompt need have.
FRAME = re.compile(
    r"回答|回复|输出|答案|内容|用户|助手|模型|应该?|必须|需要?|要求|进行|提供|使用|采用|包含|含有|带有|做出|给出|表达|描写|描述|体现|符合|遵循|保持|作为|一[个句段种]"
    r"|风格|语气|格式|是|的|中(?![文国])|地|得|并|且|和|或|以|用|为|在|对|时|将|把|有|了|与|及|其"
    r"|\b(?:the|a|an|answer|response|reply|assistant|model|user|should|must|shall|will|use|uses|using|is|are|be|in|with|its|their|contain|contains|include|includes|provide|provides|to|of|and|or|style|tone|format)\b"
)


class Line(NamedTuple):
    """A piece of the system prompt, verbatim, and where it stands."""

    text: str
    place: str
    heading: str


def prompt_lines(prompt: str) -> list[Line]:
    """The pieces of a system prompt, each with its heading and number (or, without either, its line)."""
    lines: list[Line] = []
    heading = ""
    for number, raw in enumerate(prompt.splitlines(), start=1):
        text = raw.strip()
        if not text:
            continue
        item = ITEM.fullmatch(text)
        found = HEADING.fullmatch(text)
        if found and not item:
            heading = next(part for part in found.groups()[:4] if part).strip(" *#:：")
            if not found["rest"]:
                lines.append(Line(text, heading, heading))
                continue
        place = _place(heading, item, number, chinese=bool(HAN.search(prompt)))
        lines += [Line(piece.strip(), place, heading) for piece in STOP.split(text) if words(piece)]
    return lines


def _place(heading: str, item: re.Match[str] | None, number: int, *, chinese: bool) -> str:
    label = (item["number"] or item["framed"]) if item else None
    if heading and label:
        return f"{heading}第{label}条" if chinese else f"{heading} {label}"
    if heading:
        return heading
    return f"第{number}行" if chinese else f"line {number}"


# --- what agrees -----------------------------------------------------------------------------------


class Basis(NamedTuple):
    """The piece of the prompt that comes nearest to a constraint, and what of the constraint it does not bear out."""

    line: Line | None
    strength: float
    amiss: str = ""
    """The number, quotation or word that has no basis; empty where none was missed."""
    opposite: bool = False


# Chosen on prompts and criteria written for the purpose.
GROUNDED = 0.5
PARAPHRASED = 0.6
HINTED = 0.33


def basis(constraint: str, lines: Sequence[Line]) -> Basis:
    """The best basis of one constraint among the prompt's lines."""
    texts = [f"{line.heading} {line.text}" if line.heading not in line.text else line.text for line in lines]
    if not texts:
        return Basis(None, 0.0)
    cosines = similarity([constraint], [line.text for line in lines])[0]
    strengths = [(shared(constraint, text) + max(0.0, float(cosines[i]))) / 2 for i, text in enumerate(texts)]
    at = max(range(len(lines)), key=lambda index: (strengths[index], -index))
    cosine = max(0.0, float(cosines[at]))
    everything = " ".join(texts)
    amiss = _missing_figure(constraint, texts[at], everything) or _missing_quotation(constraint, everything)
    strength = max(strengths[at], cosine if cosine >= PARAPHRASED else 0.0)
    if normalise(plain(constraint)) in normalise(plain(texts[at])):
        strength = 1.0
    return Basis(
        lines[at], strength, amiss or _missing_word(constraint, everything), _is_opposite(constraint, texts[at])
    )


def _is_opposite(constraint: str, text: str) -> bool:
    """Whether one forbids what the other demands. The line as a whole counts too: what it declines may stand apart."""
    denies = bool(NEGATION.search(plain(constraint)))
    return denies not in (bool(NEGATION.search(_aligned(constraint, text))), bool(NEGATION.search(plain(text))))


def shared(constraint: str, text: str) -> float:
    """The share of a constraint's own words that a text has; words of the frame do not count."""
    wanted = set(words(FRAME.sub(" ", plain(constraint)))) or set(words(constraint))
    found = set(words(text))
    return len(wanted & found) / len(wanted) if wanted else 0.0


def _aligned(constraint: str, text: str) -> str:
    """The clause of a line that is nearest, so that a negation elsewhere in the line does not count."""
    clauses = [clause for clause in re.split(r"[，,；;。]|\bbut\b|但", plain(text)) if words(clause)]
    return max(clauses, key=lambda clause: shared(constraint, clause), default=text)


def _figures(text: str) -> set[str]:
    found = set()
    for match in FIGURE.finditer(plain(text)):
        word = match.group()
        number = ENGLISH_NUMBERS.get(word) if word in ENGLISH_NUMBERS else han_number(word)
        found.add(str(number) if number is not None else word)
    return found


def _missing_figure(constraint: str, near: str, everything: str) -> str:
    missing = _figures(constraint) - _figures(near)
    return ", ".join(sorted(missing - _figures(everything) or (missing if _figures(near) else set())))


def _missing_quotation(constraint: str, everything: str) -> str:
    quoted = [next(filter(None, groups)) for groups in QUOTATION.findall(constraint)]
    return next((words_ for words_ in quoted if plain(words_) not in plain(everything)), "")


def _missing_word(constraint: str, everything: str) -> str:
    """A modifier that nothing in the prompt is near to: 关于大海 in 以一句关于大海的谚语结尾."""
    known = plain(everything)
    modifier = re.search(r"关于([^的，,]{2,10})的|\babout (?:the )?([\w ]{3,20})", plain(constraint))
    if not modifier:
        return ""
    about = (modifier[1] or modifier[2]).strip()
    if any(word in known for word in words(about)):
        return ""
    pieces = [piece for piece in re.split(r"[，,。；;：:\n]", everything) if words(piece)]
    return "" if pieces and float(similarity([about], pieces).max()) >= GROUNDED else about
