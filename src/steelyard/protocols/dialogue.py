"""`dialogue`: is each criterion grounded in the system prompt, and does each turn's answer comply?"""

from __future__ import annotations

from collections.abc import Iterator

from steelyard.protocols import Protocol
from steelyard.protocols.common import (
    Collected,
    Options,
    PromptLanguage,
    collect,
    confident,
    in_parts,
    marked,
    numbered,
    prompt_language,
    remarks,
    status_of,
    too_long,
    why_open,
)
from steelyard.protocols.counts import dialogue_scores
from steelyard.protocols.rules import Ruling, rule_on
from steelyard.protocols.vocabulary import Aspect, Expectation, Kind, Label, Metric, Words
from steelyard.records import (
    Ask,
    ComplianceLabel,
    Criterion,
    DialogueSample,
    Numbered,
    Rounds,
    Verdict,
)
from steelyard.tasks import (
    ComplianceData,
    ComplianceReply,
    ComplianceVerdict,
    Exchange,
    ValidityData,
    ValidityReply,
    ValidityVerdict,
)
from steelyard.text import contains_quote
from steelyard.text.suspicion import shows_injection, signs

SCORES = ("csr", "isr", "ssr")
RESULTS = {"satisfied": "符合", "violated": "不符合", "undetermined": "不确定"}


class DialogueOptions(Options):
    """`rules`: what code can decide (lengths, counts, formats …) is decided by code."""

    rules: bool = True


def dialogue(sample: DialogueSample, options: DialogueOptions) -> Rounds:
    flags = ["injection_suspected"] if _suspected(sample) else []
    if not any(turn.criteria for turn in sample.turns):
        return _verdict(sample, (), flags, Collected())
    size = len(sample.system_prompt) + sum(
        sum(map(len, (turn.prompt, turn.answer, *turn.criteria))) for turn in sample.turns
    )
    if size > options.max_chars:
        unread = tuple(blank.model_copy(update={"reason": "too_long"}) for blank in _blanks(sample))
        return too_long(sample.id, "dialogue", SCORES, flags, size, unread)
    language = prompt_language(sample.system_prompt, *(turn.answer for turn in sample.turns))

    # Step 1, once per distinct criterion: the same words cannot be valid in one turn and not in the next.
    wanted = numbered(dict.fromkeys(text for turn in sample.turns for text in turn.criteria))
    number = {criterion.text: criterion.id for criterion in wanted}
    validity_ask = Ask(
        task="dialogue.validity",
        language=language,
        data=ValidityData(system_prompt=sample.system_prompt, criteria=wanted),
        reply=ValidityReply,
    )
    validity = yield from collect(
        in_parts(validity_ask, options.part_size),
        lambda _, label: label.valid and not contains_quote(sample.system_prompt, label.quote or ""),
    )
    valid = {
        text
        for text, id in number.items()
        if (label := validity.label("criteria", id)) and label.valid and not validity.mark("criteria", id).open
    }

    # Step 2: code first, then the judge about what code leaves open. Ids run through all turns, so that
    # one collection holds them.
    rulings: dict[tuple[int, str], Ruling] = {}
    opened: dict[tuple[int, str], int] = {}
    asks: list[Ask] = []
    for index, turn in enumerate(sample.turns, start=1):
        questions: list[Numbered] = []
        for text in dict.fromkeys(turn.criteria):
            if text not in valid:
                continue
            ruling = rule_on(split_type(text)[0], turn.answer) if options.rules else None
            if ruling:
                rulings[index, text] = ruling
            else:
                opened[index, text] = len(opened) + 1
                questions.append(Numbered(id=opened[index, text], text=text))
        if questions:
            asks += in_parts(_compliance_ask(sample, index, questions, language), options.part_size)
    compliance = (yield from collect(asks)) if asks else Collected()

    criteria = tuple(
        _criterion(
            blank,
            validity,
            number[blank.text],
            rulings.get((blank.turn, blank.text)),
            compliance,
            opened.get((blank.turn, blank.text), 0),
        )
        for blank in _blanks(sample)
    )
    return _verdict(sample, criteria, flags, validity, compliance)


def _blanks(sample: DialogueSample) -> Iterator[Criterion]:
    """Every criterion of every turn, in order, before anything is known about it."""
    for turn, exchange in enumerate(sample.turns, start=1):
        for id, text in enumerate(exchange.criteria, start=1):
            kind = split_type(text)[1]
            yield Criterion(id=id, text=text, type=kind, turn=turn, validity="unjudged", label="unjudged")


def split_type(criterion: str) -> tuple[str, str | None]:
    """`content | type` at the last ` | `; a criterion may have no type."""
    content, bar, kind = criterion.rpartition(" | ")
    return (content.strip(), kind.strip() or None) if bar else (criterion.strip(), None)


def _compliance_ask(sample: DialogueSample, number: int, questions: list[Numbered], language: PromptLanguage) -> Ask:
    turn = sample.turns[number - 1]
    data = ComplianceData(
        system_prompt=sample.system_prompt,
        history=tuple(Exchange(prompt=t.prompt, answer=t.answer) for t in sample.turns[: number - 1]),
        turn=number,
        prompt=turn.prompt,
        answer=turn.answer,
        criteria=tuple(questions),
    )
    return Ask(task="dialogue.compliance", language=language, data=data, reply=ComplianceReply)


def _criterion(
    blank: Criterion, validities: Collected, id: int, ruling: Ruling | None, compliances: Collected, question: int
) -> Criterion:
    """One criterion of one turn, from what the judge said of it (under these ids) and the rules."""
    item = _decided(blank, validities, id, ruling, compliances, question)
    marks = [validities.mark("criteria", id)]
    if item.decided_by == "rule":
        # Who said that it is valid did not give its label.
        marks = [marks[0].model_copy(update={"judge": "", "second_opinion": None})] if marks[0].judge else marks
    if item.validity == "valid" and item.decided_by == "judge":
        compliance = compliances.mark("criteria", question)
        first = {"complies": "violated"} if "complies" in compliance.first else {}
        marks.append(compliance.model_copy(update={"first": first}) if first else compliance)
    return marked(item, *marks, fields={"valid": "validity", "complies": "label"})


def _decided(
    blank: Criterion, validities: Collected, id: int, ruling: Ruling | None, compliances: Collected, question: int
) -> Criterion:
    validity: ValidityVerdict | None = validities.label("criteria", id)
    if validity is None:
        return blank.model_copy(update={"reason": validities.reason("criteria", id)})
    if (mark := validities.mark("criteria", id)).open:
        return blank.model_copy(update={"reason": why_open(mark)})
    unverified = id in validities.unverified.get("criteria", ())
    known = blank.model_copy(
        update={
            "validity": "valid" if validity.valid else "invalid",
            "validity_reason": validity.reason,
            "place": validity.place if validity.valid else "",
            "quote": (validity.quote or "") if validity.valid else "",
            "quote_verified": validity.valid and not unverified,
            "validity_confidence": None if validity.confidence is None else round(validity.confidence, 4),
            "flags": ("evidence_unverified",) if unverified and validity.valid else (),
        }
    )
    if not validity.valid:
        return confident(_labelled(known, "undetermined", validity.reason), validity.confidence)
    if ruling:
        label: ComplianceLabel = "satisfied" if ruling.satisfied else "violated"
        return _labelled(known, label, ruling.reason).model_copy(update={"decided_by": "rule"})
    compliance: ComplianceVerdict | None = compliances.label("criteria", question)
    if compliance is None:
        return known.model_copy(update={"reason": compliances.reason("criteria", question)})
    if (mark := compliances.mark("criteria", question)).open:
        return known.model_copy(update={"reason": why_open(mark)})
    known = confident(known, compliance.confidence)
    if not compliance.triggered:
        vacuous = known.model_copy(update={"flags": (*known.flags, "vacuous")})
        return _labelled(vacuous, "satisfied", compliance.reason)
    # Partly is not fully: the document counts it as 不符合.
    return _labelled(known, "satisfied" if compliance.complies == "fully" else "violated", compliance.reason)


def _labelled(criterion: Criterion, label: ComplianceLabel, reason: str) -> Criterion:
    return criterion.model_copy(update={"label": label, "result": RESULTS[label], "reason": reason})


def _suspected(sample: DialogueSample) -> bool:
    # A user may well tell the assistant to ignore its rules; only words meant for a judge are suspect there.
    return shows_injection(turn.answer for turn in sample.turns) or any(
        signs(turn.prompt, instruction=False) for turn in sample.turns
    )


def _verdict(
    sample: DialogueSample, criteria: tuple[Criterion, ...], flags: list[str], *collections: Collected
) -> Verdict:
    failures = [failure for collected in collections for failure in collected.failures]
    steps = zip(("validity", "compliance"), collections, strict=False)
    votes = {step: found["criteria"] for step, collected in steps if (found := collected.votes())}
    of_asks, notes = remarks(votes, sum(collected.invented for collected in collections), failures)
    return Verdict(
        id=sample.id,
        protocol="dialogue",
        status=status_of(criteria),
        scores=dialogue_scores(criteria),
        items=criteria,
        flags=(*flags, *of_asks, *(flag for criterion in criteria for flag in criterion.flags)),
        notes={"turns": len(sample.turns), **notes},
    )


# --- vocabulary ------------------------------------------------------------------------------------

COMPLIANCE = Aspect(
    "criterion",
    (
        Label("satisfied", "good", Words("met", "符合", "符合")),
        Label("violated", "bad", Words("not met", "不符合", "不符合")),
        Label("undetermined", "open", Words("undetermined", "不确定", "不確定"), follows=True),
    ),
    words=Words("Criteria", "细则", "細則"),
    one=Words("Criterion", "细则", "細則"),
    ask=Words(
        "Does the answer meet this criterion? Undetermined where the system prompt does not ask for it.",
        "回答符合这条细则吗？系统提示没有要求的，选不确定。",
        "回答符合這條細則嗎？系統提示沒有要求的，選不確定。",
    ),
)
VALIDITY = Aspect(
    "validity",
    (
        Label("valid", "good", Words("valid", "有效", "有效")),
        Label("invalid", "open", Words("invalid", "无效", "無效")),
    ),
    words=Words("Criteria: validity", "细则：是否有效", "細則：是否有效"),
    one=Words("Criterion: validity", "细则：有效性", "細則：有效性"),
    ask=Words(
        "Does this criterion follow from the system prompt?",
        "这条细则在系统提示中有依据吗？",
        "這條細則在系統提示中有依據嗎？",
    ),
    field="validity",
    asked=False,
    confidence="validity_confidence",
)
CRITERION = Kind(
    "criterion", (COMPLIANCE, VALIDITY), Words("Criteria", "细则", "細則"), listed_as="criteria", identity="text"
)
PROTOCOL = Protocol(
    name="dialogue",
    title=Words("Dialogue compliance", "对话指令遵循", "對話指令遵循"),
    kind="dialogue",
    rounds=dialogue,
    options=DialogueOptions,
    kinds=(CRITERION,),
    metrics=(
        Metric(
            "csr",
            "ratio",
            Words("Criteria met (CSR)", "细则符合率（CSR）", "細則符合率（CSR）"),
            Words(
                "Of the criteria that could be decided, the share the answers met.",
                "能判定的细则中，回答符合的占多少。",
                "能判定的細則中，回答符合的占多少。",
            ),
            main=True,
            reads=("criterion",),
        ),
        Metric(
            "isr",
            "ratio",
            Words("Turns fully met (ISR)", "整轮符合率（ISR）", "整輪符合率（ISR）"),
            Words(
                "The share of turns that met every one of their criteria.",
                "全部细则都符合的轮次占多少。",
                "所有細則都符合的輪次占多少。",
            ),
            reads=("criterion",),
        ),
        Metric(
            "ssr",
            "ratio",
            Words("Unbroken start (SSR)", "连续符合率（SSR）", "連續符合率（SSR）"),
            Words(
                "The share of turns before the first breach: how long the assistant held its line.",
                "第一次违反之前的轮次占多少，反映能稳定坚持多久。",
                "第一次違反之前的輪次占多少，反映能穩定維持多久。",
            ),
            reads=("criterion",),
        ),
    ),
    tasks=("dialogue.validity", "dialogue.compliance"),
    transcript="dialogue",
    sections=("turns",),
    rescore=lambda verdict: dialogue_scores(verdict.items),
    expectations=(
        Expectation(
            "prompt_followed",
            "criterion",
            Words("The answer does not follow the system prompt", "回答没有遵循系统提示词", "回答沒有遵循系統提示詞"),
            # A criterion without basis in the prompt was not tested: that must not pass either.
            by=("violated", "undetermined"),
        ),
    ),
)
