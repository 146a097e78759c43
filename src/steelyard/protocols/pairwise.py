"""`pairwise`: which of two answers is better, aspect by aspect, asked in both orders.

A preference counts only if it survives the swap; otherwise the aspect is a tie, flagged `inconsistent`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field

from steelyard.protocols import Protocol
from steelyard.protocols.common import (
    Collected,
    Options,
    PromptLanguage,
    collect,
    collect_all,
    confident,
    in_parts,
    marked,
    numbered,
    prompt_language,
    rag_size,
    remarks,
    status_of,
    too_long,
    why_open,
)
from steelyard.protocols.scoring import Number, plain, ratio
from steelyard.protocols.vocabulary import UNJUDGED, Aspect, Kind, Label, Metric, Words
from steelyard.records import AnyItem, Ask, CustomItem, Evidence, Language, RagSample, Rounds, Verdict
from steelyard.tasks import PairData, PairReply, PairVerdict
from steelyard.text import contains_quote, language_of
from steelyard.text.suspicion import shows_injection

OVERALL = "overall"
LONGEST_ASPECT, MOST_ASPECTS = 80, 20
Choice = Literal["a_better", "b_better", "tie"]
Place = Literal["first", "second"]
# What the place that a judge prefers means while A stands first, and while B does.
MEANT: tuple[Mapping[str, Choice], ...] = (
    {"first": "a_better", "second": "b_better", "tie": "tie"},
    {"first": "b_better", "second": "a_better", "tie": "tie"},
)
POINTS: Mapping[str, Fraction] = {"a_better": Fraction(1), "tie": Fraction(1, 2), "b_better": Fraction(0)}

# What the judge is told of the aspects that have a name here; a user's own stands for itself.
TOLD: Mapping[str, Words] = {
    "correctness": Words(
        "correctness: what it states is true; where there are references or a reference answer, it agrees with them",
        "正确性：所述内容属实；有参考资料或参考答案时，与之一致",
    ),
    "completeness": Words(
        "completeness: it answers everything that the question asks; extra matter is no merit",
        "完整性：问题所问的都答到了；多余的内容不加分",
    ),
    "clarity": Words(
        "clarity: easy to follow and to act on; neither padded nor confusing",
        "清晰有用：容易看懂、便于照做，不冗长、不混乱",
    ),
    OVERALL: Words(
        "overall: the answer that serves the person who asked better, all in all",
        "总体：综合来看，哪个回答对提问者更有帮助",
    ),
}
NAMES: Mapping[str, Words] = {
    "correctness": Words("Correctness", "正确性", "正確性"),
    "completeness": Words("Completeness", "完整性", "完整性"),
    "clarity": Words("Clarity", "清晰有用", "清晰有用"),
    OVERALL: Words("Overall", "总体", "總體"),
}
SHOWN_FIRST = (Words("A shown first", "A 在前", "A 在前"), Words("B shown first", "B 在前", "B 在前"))
SAME = Words("The two answers are the same.", "两个回答完全相同。", "兩個回答完全相同。")
EMPTY = Words("The other answer is empty.", "另一个回答是空的。", "另一個回答是空的。")


def _listed(given: object) -> object:
    """Aspects as flags write them: `tone, safety` is a list of two."""
    if isinstance(given, str):
        given = given.replace("，", ",").replace("、", ",").split(",")
    if not isinstance(given, list | tuple) or not all(isinstance(one, str) for one in given):
        raise ValueError("must be a list of names, or names separated by commas")
    names = dict.fromkeys(" ".join(one.split()) for one in given)
    if long := [name for name in names if len(name) > LONGEST_ASPECT]:
        raise ValueError(f"an aspect has at most {LONGEST_ASPECT} characters, not {long[0]!r}")
    return tuple(name for name in names if name and name != OVERALL)


class PairwiseOptions(Options):
    """`aspects`: what is compared beside `overall`, which always is; own words such as `tone towards the customer`."""

    aspects: Annotated[tuple[str, ...], BeforeValidator(_listed)] = Field(
        default=("correctness", "completeness", "clarity"), max_length=MOST_ASPECTS
    )


def pairwise(sample: RagSample, options: PairwiseOptions) -> Rounds:
    answers = sample.answer, sample.other_answer or ""
    language = language_of(sample.question, *answers)
    aspects = (*options.aspects, OVERALL)
    flags = ["injection_suspected"] if shows_injection(answers, sample.references) else []
    blank = [not answer.strip() for answer in answers]
    flags += ["empty_answer"] if any(blank) else []
    if answers[0].strip() == answers[1].strip():
        return _settled(sample.id, aspects, language, "tie", SAME, [*flags, "same_answers"])
    if any(blank):
        return _settled(sample.id, aspects, language, "b_better" if blank[0] else "a_better", EMPTY, flags)
    if (size := rag_size(sample) + len(answers[1])) > options.max_chars:
        unread = tuple(_item(aspect, id, language, "too_long") for id, aspect in enumerate(aspects, start=1))
        return too_long(sample.id, "pairwise", _scores(unread), flags, size, unread)

    def misquoted(_: str, label: PairVerdict) -> bool:
        return bool(label.quote) and not any(contains_quote(answer, label.quote or "") for answer in answers)

    spoken = prompt_language(sample.question, *answers)
    orders = yield from collect_all(
        *(
            collect(in_parts(_ask(sample, aspects, spoken, *answered), options.part_size), misquoted)
            for answered in (answers, answers[::-1])
        )
    )
    items = tuple(_labelled(aspect, id, language, orders) for id, aspect in enumerate(aspects, start=1))
    votes = {f"order {at}": found for at, order in enumerate(orders, start=1) if (found := order.votes())}
    failures = [failure for order in orders for failure in order.failures]
    of_asks, notes = remarks(votes, sum(order.invented for order in orders), failures)
    return _verdict(sample.id, items, [*flags, *of_asks], notes)


def _ask(sample: RagSample, aspects: Iterable[str], language: PromptLanguage, first: str, second: str) -> Ask:
    locale: Language = "zh-Hans" if language == "zh" else "en"
    data = PairData(
        question=sample.question,
        references=sample.references,
        reference_answer=sample.reference_answer,
        first=first,
        second=second,
        criteria=numbered(TOLD[one].in_language(locale) if one in TOLD else one for one in aspects),
    )
    return Ask(task="pairwise.judge", language=language, data=data, reply=PairReply)


def _item(aspect: str, id: int, language: Language, reason: str, **fields: Any) -> CustomItem:
    """An aspect's item, unjudged unless the fields say otherwise."""
    text = NAMES[aspect].in_language(language) if aspect in NAMES else aspect
    labelled = {"label": UNJUDGED, **fields}
    return CustomItem(kind=PREFERENCE.name, id=id, text=text, aspect=aspect, reason=reason, **labelled)


def _labelled(aspect: str, id: int, language: Language, orders: list[Collected]) -> CustomItem:
    said: list[PairVerdict | None] = [order.label("criteria", id) for order in orders]
    marks = [order.mark("criteria", id) for order in orders]
    given = [one for one in said if one is not None]
    lacking = [order.reason("criteria", id) for order, one in zip(orders, said, strict=True) if one is None]
    if lacking or any(mark.open for mark in marks):
        reason = lacking[0] if lacking else next(why_open(mark) for mark in marks if mark.open)
        return marked(_item(aspect, id, language, reason), *marks)
    meant = [MEANT[at][one.label] for at, one in enumerate(given)]
    survived = meant[0] == meant[1]
    reasons = (
        f"{SHOWN_FIRST[at].in_language(language)} → {LABEL.label(choice).words.in_language(language)}"
        + (f"{': ' if language == 'en' else '：'}{one.reason}" if one.reason else "")
        for at, (choice, one) in enumerate(zip(meant, given, strict=True))
    )
    unverified = [id in order.unverified.get("criteria", ()) for order in orders]
    item = _item(
        aspect,
        id,
        language,
        " · ".join(reasons),
        label=meant[0] if survived else "tie",
        orders=[{"preferred": one.label, "reason": one.reason, "quote": one.quote} for one in given],
        evidence=_evidence(given, unverified),
        flags=(
            *(() if survived else ("inconsistent",)),
            *(("evidence_unverified",) if any(unverified) else ()),
        ),
        **({} if survived else {"leans": _leaning(given)}),
    )
    sure = [one.confidence for one in given if one.confidence is not None]
    return marked(confident(item, min(sure) if survived and len(sure) == len(given) else None), *marks)


def _leaning(given: Iterable[PairVerdict]) -> Place:
    """The place that an inconsistent judge prefers. It is the same in both orders where it names one in both: had the
    places differed, the same answer would have been meant."""
    return next(one.label for one in given if one.label != "tie")


def _evidence(given: Iterable[PairVerdict], unverified: Iterable[bool]) -> Evidence | None:
    """The first quote that holds; else the first there is."""
    pairs = zip(given, unverified, strict=True)
    quotes = [((one.quote or "").strip(), not amiss) for one, amiss in pairs]
    ranked = sorted((quote for quote in quotes if quote[0]), key=lambda quote: not quote[1])
    return Evidence(quote=ranked[0][0], verified=ranked[0][1], source="answer") if ranked else None


def _settled(
    id: str, aspects: Iterable[str], language: Language, label: Choice, reason: Words, flags: list[str]
) -> Verdict:
    """The verdict without a judge: equal answers, or an empty one."""
    items = (
        _item(one, at, language, reason.in_language(language), label=label) for at, one in enumerate(aspects, start=1)
    )
    return _verdict(id, tuple(items), flags, {})


def _verdict(id: str, items: tuple[CustomItem, ...], flags: list[str], notes: Mapping[str, object]) -> Verdict:
    return Verdict(
        id=id,
        protocol="pairwise",
        status=status_of(items),
        scores=_scores(items),
        items=items,
        flags=(*flags, *(flag for item in items for flag in item.flags)),
        notes=notes,
    )


def _scores(items: Iterable[AnyItem]) -> dict[str, Number]:
    """The points of A, overall and aspect by aspect; how many preferences survived the swap; where the others lean."""
    found = {str(getattr(item, "aspect", "")): item for item in items}
    points = {aspect: POINTS.get(str(getattr(item, "label", UNJUDGED))) for aspect, item in found.items()}
    swapped = [item for item in found.values() if getattr(item, "orders", None)]
    shaky = [item for item in swapped if "inconsistent" in item.flags]
    return {
        "win_rate": plain(points.get(OVERALL)),
        **{f"win_rate.{aspect}": plain(value) for aspect, value in points.items() if aspect != OVERALL},
        "consistency": plain(ratio(len(swapped) - len(shaky), len(swapped))),
        "position_bias": plain(ratio(sum(getattr(item, "leans", "") == "first" for item in shaky), len(shaky))),
    }


# --- vocabulary ------------------------------------------------------------------------------------

LABEL = Aspect(
    "preference",
    (
        Label("a_better", "good", Words("A is better", "A 更好", "A 更好"), "A"),
        Label("b_better", "bad", Words("B is better", "B 更好", "B 更好"), "B"),
        Label("tie", "neutral", Words("tie", "平局", "平手"), "="),
    ),
    words=Words("Preferences", "偏好", "偏好"),
    one=Words("Preference", "偏好", "偏好"),
    ask=Words("Which answer is better in this?", "在这方面哪个回答更好？", "在這方面哪個回答更好？"),
)
TIE_BY_SWAP = Label(
    "inconsistent", "open", Words("tie (inconsistent)", "平局（前后不一致）", "平手（前後不一致）"), "≠"
)
PREFERENCE = Kind(
    "preference",
    (LABEL,),
    Words("Preferences", "偏好", "偏好"),
    listed_as="criteria",
    identity="text",
    names=NAMES,
    flagged={"inconsistent": ("preference", TIE_BY_SWAP)},
)
PROTOCOL = Protocol(
    name="pairwise",
    title=Words("Two answers compared", "两个回答对比", "兩個回答對比"),
    kind="pair",
    rounds=pairwise,
    options=PairwiseOptions,
    needs_question=False,
    kinds=(PREFERENCE,),
    metrics=(
        Metric(
            "win_rate",
            "ratio",
            Words("Win rate of A", "A 的胜率", "A 的勝率"),
            Words(
                "How often A is preferred overall, in both orders; a tie counts half. At 50 % neither is better.",
                "总体上两种顺序都偏好 A 的比例，平局计一半；50% 表示不分高下。",
                "總體上兩種順序都偏好 A 的比例，平手計一半；50% 表示不分高下。",
            ),
            main=True,
            reads=("preference",),
        ),
        Metric(
            "consistency",
            "ratio",
            Words("Consistency", "一致率", "一致率"),
            Words(
                "Of the judge: the share of preferences that stay the same when the answers change places.",
                "评判者的稳定程度：两个回答交换位置后结论不变的比例。",
                "評判者的穩定程度：兩個回答交換位置後結論不變的比例。",
            ),
        ),
        Metric(
            "position_bias",
            "ratio",
            Words("Position bias", "位置偏差", "位置偏差"),
            Words(
                "Of the judge: the share of inconsistent preferences that lean to the first place; 50 % is no bias.",
                "评判者的位置偏差：不一致的结论中偏向先出现的回答的比例；50% 表示没有偏差。",
                "評判者的位置偏差：不一致的結論中偏向先出現的回答的比例；50% 表示沒有偏差。",
            ),
            direction="neither",
        ),
    ),
    tasks=("pairwise.judge",),
    sections=("ranking",),
    rescore=lambda verdict: _scores(verdict.items),
)
