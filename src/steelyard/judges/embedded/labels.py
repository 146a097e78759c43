"""The labels of atoms: what the passages support, contradict or leave open, with the proof and the difference."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from steelyard.judges.embedded.advice import advised
from steelyard.judges.embedded.claims import Kind, kind_of
from steelyard.judges.embedded.clashes import Clash, clashes, shared
from steelyard.judges.embedded.completing import points_back, presupposed, unnamed
from steelyard.judges.embedded.facts import listed
from steelyard.judges.embedded.meaning import plain
from steelyard.judges.embedded.support import Reading, Support
from steelyard.judges.embedded.value_kinds import difference_of
from steelyard.judges.embedded.voice import Voice
from steelyard.records import Source, Tolerance
from steelyard.tasks import Difference
from steelyard.text import contains_quote, sentences
from steelyard.text.tolerance import Ruling, ruling

Label = Literal["correct", "wrong", "undetermined", "exempt"]

# An opinion is checked only where the passages speak to it beyond doubt.
SURELY = 0.8
SURELY_NOT = 0.2
# Below this share of common words the passage does not say so itself: it is worked out from it.
SAID = 0.5
VERBATIM = 0.95
EXACT = frozenset(("ordinal", "name"))
TOLERANT = frozenset(("quantity", "date"))
EXTREME = re.compile(
    r"最(?![后终近初新早])[\u4e00-\u9fff]|唯一|史无前例|有史以来|独一无二|\bmost (?!of\b)\w+|\bonly (?=one|person"
    r"|man|woman|country|city)"
    r"|\b(?:larg|bigg|small|tall|long|high|old|young|great|strong|rich|fast|deep|earli|heavi)i?est\b|\bunique\b"
    r"|\bunprecedented\b"
)
UNCHECKABLE: dict[Kind, tuple[str, str]] = {
    "opinion": ("主观看法，不核查", "an opinion, not checked"),
    "advice": ("建议，资料未直接说到，不核查", "advice that no passage speaks to, not checked"),
    "greeting": ("客套话，没有可核查的内容", "a courtesy, nothing to check"),
    "hedge": ("说明不确定，没有可核查的内容", "says how little is certain, nothing to check"),
    "question": ("提问，没有可核查的内容", "a question, nothing to check"),
    "meta": ("说明行文，没有可核查的内容", "about the answer itself, nothing to check"),
}
# What the protocols do unless they are told otherwise, and what they let pass at most.
USUAL, WIDEST = Tolerance(), Tolerance(quantities="magnitude", dates="year")
# The more a difference counts against a statement, the earlier it stands.
SEVERITY: tuple[Ruling | None, ...] = ("beyond", None, "within", "same")


class Finding(NamedTuple):
    """One atom's label with what it rests on."""

    label: Label
    reason: str
    reference: int | None = None
    quote: str | None = None
    source: Source | None = None
    difference: Difference | None = None
    confidence: float | None = None


def findings(
    texts: Sequence[str], question: str, reading: Reading, voice: Voice, passages: Sequence[str]
) -> list[Finding]:
    """One finding per text, all looked up together."""
    parts = [presupposed(text) for text in texts]
    supports = iter(reading.supports([*texts, *(part for held in parts for part in held)]) if texts else ())
    wholes = _looked_up_again(texts, [next(supports) for _ in texts], reading, passages)
    found = []
    for text, whole, held in zip(texts, wholes, parts, strict=True):
        # What a statement takes for granted can only spoil it, never prove it.
        denied = [part for part in (next(supports) for _ in held) if part.label == "contradicted"]
        is_settled = whole.label == "contradicted" or whole.probability >= VERBATIM
        support = whole if is_settled or not denied else denied[0]
        found.append(_confident(_finding(text, question, support, voice, passages, reading), support))
    return found


AS_READ = {("correct", "supported"), ("wrong", "contradicted"), ("undetermined", "unknown")}


def _confident(found: Finding, support: Support) -> Finding:
    """With how probable the label is, as the reading tells it; none where a rule said otherwise."""
    if (found.label, support.label) not in AS_READ or found.difference is not None:
        return found
    return found._replace(confidence=round(support.confidence, 4))


def _looked_up_again(
    texts: Sequence[str], supports: Sequence[Support], reading: Reading, passages: Sequence[str]
) -> list[Support]:
    """What seemed unknown, looked up as a passage words it that named its subject before: 这个国家存在于…"""
    bare = {
        at: without.text
        for at, (text, support) in enumerate(zip(texts, supports, strict=True))
        if support.label == "unknown" and (without := unnamed(text)) and _is_said(plain(without.subject), passages)
    }
    found = list(supports)
    for at, support in zip(bare, reading.supports(list(bare.values())) if bare else (), strict=True):
        is_said = support.label == "supported" and support.probability >= SURELY
        if is_said and support.quote and points_back(support.quote):
            found[at] = support
    return found


def _finding(
    text: str, question: str, support: Support, voice: Voice, passages: Sequence[str], reading: Reading
) -> Finding:
    kind = kind_of(text, question)
    if kind != "claim" and not _spoken_to(kind, support, passages):
        return _advised(text, passages, voice) if kind == "advice" else Finding("exempt", voice(*UNCHECKABLE[kind]))
    quote = _proof(support, passages)
    if support.label == "unknown" or quote is None:
        return Finding("undetermined", support.reason or voice("资料未提及", "no passage speaks of it"))
    seen = _seen(text, quote, _passage(support, passages))
    if not seen and support.clash and support.claimed and support.stated:
        seen = [Clash(support.clash, support.claimed, support.stated)]
    differences = [difference_of(clash, f"{question} {text} {quote}") for clash in seen if clash.kind in TOLERANT]
    if support.label == "supported":
        if (
            support.probability < VERBATIM
            and not any(map(listed, passages))
            and (extreme := _unheard_of(text, passages))
        ):
            reason = voice("资料中没有“{extreme}”的说法", "no passage says “{extreme}”", extreme=extreme)
            return Finding("undetermined", reason)
        return _supported(text, support, quote, seen, differences, voice)
    return _contradicted(text, support, quote, seen, differences, voice, reading)


def _advised(text: str, passages: Sequence[str], voice: Voice) -> Finding:
    """Advice that the passages give too, or advise against; else it is nobody's to check."""
    found = advised(text, passages)
    if found is None:
        return Finding("exempt", voice(*UNCHECKABLE["advice"]))
    if found.agrees:
        reason = voice("资料也这样建议：{quote}", "the passage advises the same: {quote}", quote=found.quote)
        return Finding("correct", reason, found.reference, found.quote, "reference")
    reason = voice("资料的建议相反：{quote}", "the passage advises the opposite: {quote}", quote=found.quote)
    return Finding("wrong", reason, found.reference, found.quote, "reference")


def _spoken_to(kind: Kind, support: Support, passages: Sequence[str]) -> bool:
    """Whether the passages themselves state or contradict this opinion, advice or reservation."""
    if kind not in ("opinion", "advice", "hedge"):
        return False
    if support.label == "supported":
        # Beside a profile the question is what a line shows of its speaker, whatever she thinks of things.
        return support.probability >= SURELY or any(map(listed, passages))
    return support.label == "contradicted" and support.probability <= SURELY_NOT and support.clash is not None


def _unheard_of(text: str, passages: Sequence[str]) -> str | None:
    """A superlative that no passage has: much else may match, but that is what the statement claims."""
    if not passages or any(map(listed, passages)):
        return None
    extremes = (found.group() for found in EXTREME.finditer(plain(text)))
    return next((extreme for extreme in extremes if not _is_said(extreme, passages)), None)


def _is_said(words: str, passages: Sequence[str]) -> bool:
    return any(words in plain(passage) for passage in passages)


def _proof(support: Support, passages: Sequence[str]) -> str | None:
    """The quote as code will find it in its passage: widened to its sentence or passage where it is too short."""
    if support.quote is None or support.reference is None:
        return None
    passage = _passage(support, passages)
    if not passage:
        return support.quote
    wider = (sentence for sentence in sentences(passage) if support.quote and support.quote in sentence)
    return next((quote for quote in (support.quote, *wider, passage) if contains_quote(passage, quote)), None)


def _seen(text: str, quote: str, passage: str) -> list[Clash]:
    """What differs. A quantity may stand elsewhere in the passage; a row or a model must be that of the quote."""
    exact = [clash for clash in clashes(text, quote) if clash.kind not in TOLERANT]
    return exact + [clash for clash in clashes(text, quote, passage) if clash.kind in TOLERANT]


def _passage(support: Support, passages: Sequence[str]) -> str:
    known = support.reference is not None and 0 <= support.reference < len(passages)
    return passages[support.reference or 0] if known else ""


def _supported(
    text: str, support: Support, quote: str, seen: Sequence[Clash], differences: Sequence[Difference], voice: Voice
) -> Finding:
    """Correct, unless what must be exact is not: the words around a wrong number agree all the better."""
    source: Source = "reference" if shared(text, quote) >= SAID else "inference"
    found = Finding("correct", support.reason, support.reference, quote, source)
    if exact := [clash for clash in seen if clash.kind in EXACT]:
        return found._replace(label="wrong", reason=_differs(exact[0], voice))
    if not differences:
        return found
    worst = _worst(differences)
    if ruling(worst, USUAL) in ("within", "same"):
        return found._replace(difference=worst)
    return found._replace(label="wrong", reason=_differs(worst, voice), difference=worst)


def _contradicted(
    text: str,
    support: Support,
    quote: str,
    seen: Sequence[Clash],
    differences: Sequence[Difference],
    voice: Voice,
    reading: Reading,
) -> Finding:
    """Wrong, unless every difference is one that the protocols let pass, and all else is as the passages say.

    A difference is told only where it is all that is wrong: whoever lets it pass makes the statement correct.
    """
    source: Source = "inference" if support.clash == "kinship" else "reference"
    found = Finding("wrong", support.reason, support.reference, quote, source)
    if support.clash not in TOLERANT or not differences:
        return found
    worst = _worst(differences)
    might_pass = ruling(worst, WIDEST) in ("within", "same")
    if might_pass and not (len(seen) == len(differences) and _otherwise_said(text, differences, reading)):
        return found
    if ruling(worst, USUAL) not in ("within", "same"):
        return found._replace(difference=worst)
    # Whether that passes is the tolerance's to say, and the user's: the reason only tells the two values.
    reason = voice(
        "资料为{stated}，所述为{claimed}",
        "the passage has {stated}, the statement {claimed}",
        stated=worst.stated,
        claimed=worst.claimed,
    )
    return found._replace(label="correct", reason=reason, difference=worst)


def _worst(differences: Sequence[Difference]) -> Difference:
    return min(differences, key=lambda difference: SEVERITY.index(ruling(difference, USUAL)))


def _otherwise_said(text: str, differences: Sequence[Difference], reading: Reading) -> bool:
    """Whether the passages speak of the statement at all once their own numbers stand in it."""
    mended = plain(text)
    for difference in differences:
        mended = mended.replace(difference.claimed, difference.stated)
    return reading.support(mended).label != "unknown"


def _differs(values: Clash | Difference, voice: Voice) -> str:
    return voice(
        "资料为{stated}，不是{claimed}",
        "the passage has {stated}, not {claimed}",
        stated=values.stated,
        claimed=values.claimed,
    )
