"""Who a clause speaks of: dropped subjects are carried over, pronouns become names where only one can be meant."""

from __future__ import annotations

import re

from steelyard.judges.embedded.clauses import MEASURED_SIDE, Clause, enclosed, own_subject
from steelyard.judges.embedded.grammar import (
    ACTION_SUBJECT,
    ADVERB,
    ADVERB_ONLY,
    AFTER_SUBJECT,
    CIRCUMSTANCE,
    CONDITION,
    DEMONSTRATIVE,
    FROM_CHILDHOOD,
    IMPERSONAL,
    IMPLIED_PERSON,
    LEAD,
    MEANS_ONE,
    PERSON,
    PERSONAL,
    PIVOT,
    PREDICATE,
    PRONOUN,
    RELATION,
    STARTS_PREDICATE,
    STATED,
    TIME_END,
    shadow,
)
from steelyard.judges.embedded.names import SIDE, VALUE_END, Names
from steelyard.judges.embedded.subjects_en import complete_en
from steelyard.text import HAN

LONGEST_SUBJECT = 20
LONGEST_CARRIED = 8
LONGEST_ADVERB = 3
NEW_START = re.compile(r"没有?|不|未|无|若|可(?!以|能)")
# Some adverbs hold others: without a bound a long run of them would be read in exponentially many ways.
TRAILING_ADVERB = re.compile(rf"(?:{ADVERB}){{1,4}}\Z")
LEADING_TIME = re.compile(
    r"(?:公元前?|约)?\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?|目前|现在|如今|当时|后来|其实|同年|次年"
)
NO_SUBJECT_END = re.compile(r"[的地得了着过和与在从对把被向于及或而给之所并且但就也还，,；;：:]\Z")
BARE_NAME = re.compile(r"[^\s，,。；;的地得一这那个种]{2,16}")
WEEKDAY = re.compile(r"每?(?:周|星期)[一二三四五六日天末]")
TIME_ONLY = re.compile(
    r"\A每?(?:周|星期)[一二三四五六日天末]\Z|\A每[天年月日周]|[一二三四五六七八九十两\d][年月日天周]底?\Z"
)
NUMBER = re.compile(r"约?\d")
IDENTITY = re.compile(r"(?:是|为|叫做?)")
OWNER = re.compile(r"([它他她我你您]们?)的")
BRACKETED = re.compile(r"(?:（[^（）]*）|\([^()]*\))\Z")
PLACE_END = re.compile(r".{2,}(?:中|里|上|期间|方面|之际|以来|赛季)\Z")
MADE_BY = r"(?:主演|执导|导演|编剧|监制|出品|配音|作曲|作词|演唱|主编|翻译|摄影|设计|承建|建造|施工|运营|冠名|担任主演)"
# Who made it, with nothing after the verb that he made.
AGENT = re.compile(rf"(?![由被让])[^\W\d][^，,；;的了由被]{{1,20}}?(?:联合|共同|领衔|担纲)?{MADE_BY}[。.！!]?")
BY = re.compile(rf"(由)[^，,；;由]{{2,30}}{MADE_BY}\Z")
OF_A_WORK = re.compile(
    rf"(?:{ADVERB}[，,]?){{0,4}}(?:上映|公映|首映|播出|首播|开播|出版|发行|改编|讲述|连载|上线|杀青|开机|再版|描写|描述)"
)
IDENTIFIES = re.compile(rf"(?:{ADVERB}){{0,4}}(?:是|为|有|在|达|约|到|不是|共|\d)")
# What is said to the reader goes on about nobody: 让您久等了.
COURTEOUS = re.compile(r"(?:让|给|为)(?:您|你|大家)(?:久等|带来|添|造成)")
UNNAMED = re.compile(r"(?:[它他她我]们?|你们|您|大家|人们)(?![的俩])")


def complete(clause: Clause, names: Names, *, first: bool = True) -> str | None:
    """The clause as a statement that can be read alone; None where it hangs on the clause before it.

    The first clause of a sentence has none before it, so it stands as it is.
    """
    if not HAN.search(clause.opener + clause.core):
        return complete_en(clause, names)
    completed = _chinese(clause, names, first)
    if completed is None and first:
        return clause.opener + _named(without_lead(clause.core), names)
    return completed


def _chinese(clause: Clause, names: Names, first: bool) -> str | None:
    opener, core = clause.opener, without_lead(clause.core)
    simple = shadow(core)
    if topic := _topic_of(opener):
        names.mention(topic, said=topic + core)
        return opener + core
    if IMPERSONAL.match(simple):
        return opener + core
    if COURTEOUS.match(simple):
        return opener + core if first or names.current else None
    if (side := RELATION.match(simple)) and (names.current or simple[side.end()] not in ":："):
        if NUMBER.match(simple, side.end()) and not (MEASURED_SIDE.match(simple) and (first or names.current)):
            return opener + core if first else None
        # 价格较高，质量很好: two sides of something unnamed.
        names.current = names.owns()
        return f"{opener}{names.current}的{core}" if names.current else opener + core
    if agent := _agent(simple, names):
        return f"{opener}{agent}{core}"
    if ACTION_SUBJECT.match(simple):
        return opener + core
    if STARTS_PREDICATE.match(simple) or FROM_CHILDHOOD.match(simple):
        subject = _dropped(simple, names, first and not _begins_anew(opener))
        core = _named(core, names)
        if subject is None:
            return opener + core if WEEKDAY.match(simple) else None
        names.speak_of(subject)
        return f"{opener}{subject}{core}"
    core = _named(core, names)
    if owner := OWNER.match(shadow(core)):
        names.owner, names.current = core[: owner.end(1)], None
        return opener + core
    if unnamed := UNNAMED.match(shadow(core)):
        names.current = core[: unnamed.end()]
        return opener + core
    found = subject_of(core)
    if found is None:
        return opener + core if clause.link == "effect" and _has_subject(simple) else None
    if re.match(r"[这那该此]", shadow(found)):
        names.current = found
    elif name := _described(core, found):
        names.mention(name, alias=found)
    else:
        bare = BRACKETED.sub("", found) or found
        names.mention(bare, said=bare + core[core.find(found) + len(found) :])
    # 停车免费，早餐收费30元，不提供接机: after two subjects, a third clause may be said of something else.
    if PIVOT.match(shadow(core), core.find(found) + len(found)) or (not first and own_subject(core)):
        names.current = None
    return opener + core


def _has_subject(simple: str) -> bool:
    """Whether so much stands before the predicate that it must be a subject, though none that can be told apart."""
    stated = STATED.search(simple)
    return stated is not None and stated.start() >= LONGEST_ADVERB


def _begins_anew(opener: str) -> bool:
    """Whether what stands before the clause has a subject of its own, so that none is carried over a full stop."""
    simple = shadow(opener).rstrip("，,；; ")
    return bool(simple) and not (
        CONDITION.match(simple) or CIRCUMSTANCE.match(simple) or LEADING_TIME.match(simple) or TIME_END.search(simple)
    )


def without_lead(core: str) -> str:
    """The clause without the connectives it begins with."""
    while (lead := LEAD.match(shadow(core))) and len(core) - lead.end() >= 2:
        core = core[lead.end() :]
    return core


def _topic_of(opener: str) -> str | None:
    """A name set before the clause: 奥匈帝国，…，是…"""
    first = re.split(r"[，,；;]", opener, maxsplit=1)[0]
    bare = BRACKETED.sub("", first)
    first = bare if len(bare) <= LONGEST_CARRIED else first
    simple = shadow(first)
    is_name = 2 <= len(first) <= LONGEST_SUBJECT and not (
        CONDITION.match(simple)
        or CIRCUMSTANCE.match(simple)
        or LEADING_TIME.match(simple)
        or PREDICATE.search(simple)
        or PLACE_END.search(simple)
    )
    return first if is_name and not LEAD.match(simple) and BARE_NAME.fullmatch(first) else None


def _dropped(simple: str, names: Names, first: bool) -> str | None:
    """The subject that a clause without one goes on with."""
    if IMPLIED_PERSON.match(simple) and (person := names.person()):
        return person
    if (work := names.near[0] if names.near else "").startswith("《") and OF_A_WORK.match(simple):
        return work
    if names.current or not first:
        return names.current
    name = names.only()
    if name is None or NEW_START.match(simple):
        return None
    if SIDE.fullmatch(shadow(name)) and not IDENTIFIES.match(simple):
        return None
    # Across a full stop only what is plainly a name is carried, and only where the question speaks of nothing else.
    if names.asked and names.topic and not (names.asked in names.topic or names.topic in names.asked):
        return None
    return name if name == names.asked or len(name) <= LONGEST_CARRIED or PERSON.fullmatch(shadow(name)) else None


def subject_of(core: str) -> str | None:
    """What stands before the first predicate, if it can be a subject."""
    if found := own_subject(core):
        return found if _can_be_subject(found) else None
    simple, inside = shadow(core), enclosed(core)
    start = time.end() if (time := LEADING_TIME.match(simple)) else 0
    for predicate in AFTER_SUBJECT.finditer(simple, start + 1):
        if inside[predicate.start()] or predicate.start() - start < 2:
            continue
        found = core[start : predicate.start()]
        if len(found) > LONGEST_SUBJECT * 2:
            return None
        found = found[: len(found) - len(tail.group())] if (tail := TRAILING_ADVERB.search(shadow(found))) else found
        return found if _can_be_subject(found) else None
    return None


def _can_be_subject(text: str) -> bool:
    simple = shadow(text)
    return 2 <= len(text) <= LONGEST_SUBJECT and not (
        NO_SUBJECT_END.search(simple)
        or "了" in simple
        or TIME_ONLY.search(simple)
        or ADVERB_ONLY.match(simple)
        or CONDITION.match(simple)
        or CIRCUMSTANCE.match(simple)
        or re.match(r"[它他她其我你您]", simple)
        or (len(simple) < 3 and re.match(r"[这那该此]", simple))
    )


def _described(core: str, subject: str) -> str | None:
    """名字最长的国家是奥匈帝国: from here on the name is spoken of, and the description means it."""
    rest = core[core.find(subject) + len(subject) :]
    identity = IDENTITY.match(shadow(rest))
    if identity is None or not re.search(r"[的最第]", subject) or VALUE_END.search(shadow(subject)):
        return None
    name = rest[identity.end() :].strip("。.！! “”")
    return name if BARE_NAME.fullmatch(name) and not PREDICATE.search(shadow(name)) else None


def _named(core: str, names: Names) -> str:
    """The clause with the pronoun it begins with, or the person it speaks of, by name."""
    simple = shadow(core)
    if (demonstrative := _demonstrative(core)) and (name := _meant(*demonstrative, names)):
        return name + core[len(demonstrative[0]) :]
    inside = enclosed(core)
    for pronoun in PRONOUN.finditer(simple):
        word = pronoun.group()
        begins = pronoun.start() == 0 or LEADING_TIME.fullmatch(simple[: pronoun.start()])
        if inside[pronoun.start()] or "们" in word or not (begins or PERSONAL.match(word)):
            continue
        name = names.person(word) if PERSONAL.match(word) else names.thing() if word == "它" else _possessor(names)
        if name is None or name in core:
            return core
        replaced = name + ("的" if word == "其的" else "")
        return core[: pronoun.start()] + replaced + core[pronoun.end() :]
    return core


def _possessor(names: Names) -> str | None:
    """Whose 其 is: the only subject, a person or a thing."""
    name = names.only()
    return name if name and (names.kinds.get(name) == "person" or names.thing()) else None


def _agent(simple: str, names: Names) -> str | None:
    """《流浪地球》由郭帆执导，吴京主演: what the second clause is said of, and how it is joined to it."""
    topic = names.near[0] if names.near else None
    if topic is None or names.current != topic or not AGENT.fullmatch(simple):
        return None
    if by := BY.search(shadow(names.recent).rpartition("\n")[2]):
        return topic + by[1]
    return topic if topic.startswith("《") else None


def _demonstrative(core: str) -> tuple[str, str, str] | None:
    """这个国家 at the beginning of a clause: the whole of it, its measure word, its noun."""
    simple = shadow(core)
    predicate = PREDICATE.search(simple, 2)
    head = simple[: predicate.start()] if predicate else ""
    head = head[: adverb.start()] if (adverb := TRAILING_ADVERB.search(head)) else head
    match = DEMONSTRATIVE.fullmatch(head)
    return (match.group(), match[1], match[2]) if match else None


def _meant(_whole: str, measure: str, noun: str, names: Names) -> str | None:
    known = [name for name in (*names.before, *names.near, *names.aliases) if shadow(name).endswith(noun)]
    if len(noun) >= 2 and known:
        return names.aliases.get(known[-1], known[-1])
    return names.only() if measure.endswith(MEANS_ONE) else None
