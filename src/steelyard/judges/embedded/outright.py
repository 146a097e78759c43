"""A yes or a no: the word that says it, and the statement that it makes of the question."""

from __future__ import annotations

import re

from steelyard.judges.embedded.meaning import plain, simplified
from steelyard.text import in_traditional, language_of

# A yes or a no that opens the answer says all by itself.
OUTRIGHT = re.compile(
    r"\s*(?:是的?|[对對]|不?可以的?|不?能|不?[会會]|不?要|不?用|不?需要|[没沒]?有|不行|可以|不是|否|[当當]然|不)(?=[，,。！!]|\s*\Z)|\s*(?:yes|no)\b",
    re.IGNORECASE,
)
YES = re.compile(
    r"是的?|对的?|可以的?|能的?|会的?|要的?|需要的?|有的?|行|当然(?:可以|能|会|有)?|没问题|嗯"
    r"|yes|yep|yeah|sure|of course|certainly|absolutely"
)
NO = re.compile(r"不可以|不能|不会|不要|不用|不需要|不必|没有|不行|不是|否|不|no|nope|not at all")
MARKS = " \t\n。.!！,，~～"

ASKED_FIRST = re.compile(r"\A\W*(?:请问|你好|您好|想问一?下|我想(?:问|知道)一?下?)[，,\s]*")
# What asks either way is one word of the statement, or none.
EITHER_WAY = (
    (re.compile(r"可不可以"), "可以"),
    (re.compile(r"需不需要"), "需要"),
    (re.compile(r"有没有"), "有"),
    (re.compile(r"([能会要是用])不\1"), r"\1"),
    (re.compile(r"([能可会])否"), r"\1"),
    (re.compile(r"是否"), ""),
)
ASKS = re.compile(r"(?P<body>[^，,；;?？]{2,40}?)(?P<ending>[吗么]?)[?？。]*\Z")
ADDRESSED = re.compile(r"\A(?:我们?|你们?|您|咱们?)(?=[\u4e00-\u9fff])")
THEY = re.compile(r"\A(?:他们?|她们?|它们?)(?=[\u4e00-\u9fff])")
DENIABLE = re.compile(r"可以|能够?|需要|会|要|有|是|支持|允许|提供|接受")
DENIED = re.compile(r"[不没未无别]")
ENGLISH = re.compile(
    r"(?P<verb>is|are|was|were|do|does|did|can|could|will|would|should|has|have|had|may|must)"
    r" (?P<subject>i|you|we|they|he|she|it|there) (?P<rest>[^,;?]{3,80}?)\s*\?*"
)


def is_yes(reply: str) -> bool | None:
    """True for a bare yes, False for a bare no, None for anything that says more."""
    said = plain(reply).strip(MARKS)
    return True if YES.fullmatch(said) else False if NO.fullmatch(said) else None


def spelt_out(question: str, reply: str) -> str:
    """What a bare yes or no states: the question as its statement where that is safe, else the reply as it is."""
    yes = is_yes(reply)
    if yes is None:
        return reply
    stated = _chinese(question, yes=yes) or _english(question, yes=yes)
    return (in_traditional(stated) if language_of(question) == "zh-Hant" else stated) or reply


def _chinese(question: str, *, yes: bool) -> str:
    asked = ASKS.fullmatch(ASKED_FIRST.sub("", simplified(question).strip()))
    if asked is None:
        return ""
    body = asked["body"]
    for pattern, single in EITHER_WAY:
        body = pattern.sub(single, body)
    if (body == asked["body"] and not asked["ending"]) or DENIED.search(body):
        return ""
    body = ADDRESSED.sub("", body)
    return body if yes else _denied(body)


def _denied(body: str) -> str:
    """The one word that can be denied, denied; none where it is not clear which."""
    verbs = list(DENIABLE.finditer(body))
    if len(verbs) == 1:
        at = verbs[0].start()
        return f"{body[:at]}{'没' if verbs[0].group() == '有' else '不'}{body[at:]}"
    if not verbs and body.endswith("了") and (they := THEY.match(body)):
        return f"{they.group()}没有{body[they.end() : -1]}"
    return ""


def _english(question: str, *, yes: bool) -> str:
    asked = ENGLISH.fullmatch(plain(question).strip())
    if asked is None or re.search(r"\b(?:not|never|no|or)\b", asked["rest"]):
        return ""
    subject = {"i": "you", "we": "you"}.get(asked["subject"], asked["subject"])
    return f"{subject} {asked['verb']}{'' if yes else ' not'} {asked['rest']}"
