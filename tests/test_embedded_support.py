"""Whether passages support a claim: what is decided from what was read and counted, and the evidence."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reading import LINE, NO, SILENT, YES, FixedReader
from steelyard.judges.embedded.network import Odds, within
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.judges.embedded.support import VERBATIM, ClaimEvidence, ClaimInContext, PassageReading, Support
from steelyard.text import contains_quote

CAR = "小桌板位于第二排座椅后方，可承重5公斤，保修期为两年。"
TOWER = "The tower was built in 1889 and is 330 meters high. It was designed by Gustave Eiffel's company."


@pytest.fixture(autouse=True)
def _line(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if "weights" not in request.node.name:
        monkeypatch.setattr(PassageReading, "_line", lambda self, claim: LINE)


def read(told: FixedReader | None, claim: str, *passages: str, context: str = "") -> Support:
    phrase = Phrasing("en" if claim.isascii() else "zh", claim, sources=passages)
    return PassageReading(passages, phrase, told).support(ClaimInContext(claim, context))


# --- what is decided -------------------------------------------------------------------------------


def test_the_label_follows_what_was_read() -> None:
    """Supported and contradicted come with the sentence that shows it; what is not said has none."""
    claim = "Eiffel's company designed the tower."
    for odds, label in ((YES, "supported"), (NO, "contradicted"), (SILENT, "unknown")):
        found = read(FixedReader({claim.rstrip("."): odds}), claim, "Nothing here.", TOWER)
        assert found.label == label
        assert (found.reference, found.quote) == (
            (None, None) if label == "unknown" else (1, "It was designed by Gustave Eiffel's company.")
        )
        assert sum(found.odds) == pytest.approx(1)
        assert found.confidence == pytest.approx(max(found.odds))
        assert found.reason


@pytest.mark.parametrize(
    ("passage", "claim", "claimed", "stated"),
    [
        (CAR, "小桌板位于第三排座椅后方", "第三排", "第二排"),
        (CAR, "保修期为三年", "三年", "两年"),
        (TOWER, "The tower was built in 1925.", "1925", "1889"),
    ],
)
def test_a_wrong_value_is_contradicted_whatever_was_read(passage: str, claim: str, claimed: str, stated: str) -> None:
    """The reason names both; it is the only difference, since with the passage's own value the claim holds."""
    found = read(FixedReader(otherwise=YES), claim, passage)
    assert found.label == "contradicted"
    assert found.difference is not None
    assert (found.difference.claimed, found.difference.stated) == (claimed, stated)
    assert claimed in found.reason
    assert stated in found.reason
    assert found.odds.contradicted > found.odds.neutral


def test_a_difference_is_told_only_where_it_is_all_that_is_wrong() -> None:
    """With the passage's own value put in, this claim still does not hold."""
    wrong = "The tower was bought in 1925"
    found = read(FixedReader({wrong: NO, "The tower was bought in 1889": NO}), wrong, TOWER)
    assert (found.label, found.difference) == ("contradicted", None)


def test_a_sentence_repeated_is_supported_unread() -> None:
    """In any spacing, case and width; the reason says so and the quote is that sentence."""
    told = FixedReader(otherwise=NO)
    for claim in (CAR, CAR.replace("5", "５"), TOWER.split(". ")[1].upper()):
        found = read(told, claim, TOWER, CAR)
        assert found.label == "supported"
        assert found.quote in (CAR, TOWER.split(". ")[1])
    assert told.pairs == []


def test_of_two_sentences_with_the_same_words_the_repeated_one_is_quoted() -> None:
    found = read(FixedReader(), "The dog bit the man.", "The man bit the dog. The dog bit the man.")
    assert (found.label, found.quote) == ("supported", "The dog bit the man.")


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("If it rains for two days, the whole park is closed.", "the whole park is closed"),
        ("如果连续下雨，公园全天关闭。", "公园全天关闭"),
    ],
)
def test_a_clause_is_read_in_its_sentence(passage: str, claim: str) -> None:
    """It may stand under a condition, so the same words are not enough; the clause that opens a sentence does not."""
    assert read(FixedReader(otherwise=Odds(0.001, 0.001, 0.998)), claim, passage).label != "supported"
    assert read(FixedReader({claim: YES}), claim, passage).label == "supported"
    told = FixedReader(otherwise=NO)
    assert read(told, "小桌板位于第二排座椅后方", CAR).reason == "资料中有原话"
    assert told.pairs == []


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        ("The ticket costs 3.50 euros.", "The ticket costs 3."),
        ("The stadium has 12,000 seats.", "The stadium has 12"),
        ("The museum opens at 10:30.", "The museum opens at 10"),
    ],
)
def test_a_number_cut_in_two_is_not_repeated(passage: str, claim: str) -> None:
    """A point or a comma inside a number ends no clause."""
    told = FixedReader()
    read(told, claim, passage)
    assert [pair.claim for pair in told.pairs][:1] == [claim]


def test_without_passages_nothing_is_known() -> None:
    """No passage, or only blank ones: unknown, without a reference, and nothing is read."""
    told = FixedReader(otherwise=YES)
    for passages in ((), ("",), ("  \n ", "。。。")):
        found = read(told, "保修期为两年", *passages)
        assert (found.label, found.reference, found.quote) == ("unknown", None, None)
    assert told.pairs == []
    assert PassageReading([CAR], Phrasing("zh"), told).supports([]) == []


def test_in_doubt_more_is_read_and_both_looks_count() -> None:
    """A first look that is plain is the last; a doubtful one is repeated with more of the passages."""
    long = " ".join(f"The ship number {number} sailed to the harbour at dawn." for number in range(40))
    doubtful, plain = FixedReader(otherwise=Odds(0.5, 0.2, 0.3)), FixedReader(otherwise=NO)
    read(doubtful, "The ship sank.", long)
    read(plain, "The ship sank.", long)
    first, second = (len(" ".join(pair.premise)) for pair in doubtful.pairs)
    assert second > first
    assert len(plain.pairs) == 1
    small = FixedReader(otherwise=Odds(0.5, 0.2, 0.3))
    read(small, "The ship sank.", "The ship sailed.")
    assert len(small.pairs) == 1, "there was no more to read"


def test_no_claim_is_read_twice() -> None:
    """A reader may take a second for each: sentences and atoms share their claims."""
    told = FixedReader()
    reading = PassageReading([TOWER], Phrasing("en"), told)
    once, twice = reading.supports([ClaimInContext("It is tall."), ClaimInContext("It is tall.")])
    assert reading.support(ClaimInContext("It is tall.")) == once == twice
    assert len(told.pairs) == 1
    reading.support(ClaimInContext("It is tall.", "What is the tower like?"))
    assert told.pairs[-1].context == "What is the tower like?"


def test_many_claims_are_answered_as_each_alone() -> None:
    """No claim changes the answer to another."""
    claims = [
        ClaimInContext(text) for text in ("The tower is 330 meters high.", "It was built in 1925.", "Cats sleep.")
    ]
    told = FixedReader({"The tower is 330 meters high": YES})
    together = PassageReading([TOWER], Phrasing("en"), told).supports(claims)
    assert together == [PassageReading([TOWER], Phrasing("en"), told).support(claim) for claim in claims]


def test_the_deadline_is_kept_between_claims() -> None:
    """Whoever reads: choosing what is read, and counting, take time too."""
    with within(-1.0), pytest.raises(TimeoutError):
        read(FixedReader(), "The tower is tall.", TOWER)


def test_names_that_no_passage_has_are_named() -> None:
    """And values; a capital at the beginning or an article is no name."""
    found = read(FixedReader(), "It was sold to Hans Weber in 1950, The end.", TOWER)
    assert found.label == "unknown"
    assert found.reason == 'not found in the passages: "1950", "Hans", "Weber"'
    assert read(FixedReader(), "塔由Siemens建造", TOWER).reason == "资料中没有提到“Siemens”"


def test_more_against_a_claim_never_speaks_for_it() -> None:
    """Missing values, strange names and a clash lower the probability, shared words raise it."""
    plain = ClaimEvidence(SILENT, None, 0.5, 0.5, 0, 0, None)
    assert len(plain.features()) == len(LINE.weights)
    base = LINE.probability(plain.features())
    assert LINE.probability(plain._replace(missing=1).features()) < base
    assert LINE.probability(plain._replace(strange=1).features()) < base
    assert LINE.probability(plain._replace(share=1.0).features()) > base
    assert LINE.probability(plain._replace(odds=VERBATIM).features()) > base
    assert 0 < LINE.probability([1e9] * 7) <= 1


# --- words and evidence ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("passage", "claim", "reason"),
    [
        ("會議歷時一小時。", "會議歷時兩小時", "資料為一小時，不是兩小時"),
        ("捐款總額達120萬元。", "捐款總額為五百萬元", "資料為120萬元，不是五百萬元"),
        ("图书馆周一至周五开放。", "图书馆周一至周五开放", "资料中有原话"),
        ("圖書館週一至週五開放。", "圖書館週一至週五開放", "資料中有原話"),
        ("It weighs 5 kg.", "It weighs 8 kg.", "the passage has 5 kg, not 8 kg"),
    ],
)
def test_reasons_are_in_the_readers_language_and_script(passage: str, claim: str, reason: str) -> None:
    """What is quoted stays as its text writes it."""
    assert read(FixedReader(), claim, passage).reason == reason


def test_a_voice_quotes_as_the_texts_write() -> None:
    """Only the frame is converted; width, case and script of a part are those of its source; long parts are cut."""
    phrase = Phrasing("zh", "充電要多久？", sources=["充电需要１２小时。"])
    assert phrase("资料为{stated}", "has {stated}", stated="12小时") == "資料為１２小时"
    assert Phrasing("en")("资料{x}", "has {x}", x="{y}") == "has {y}"
    assert Phrasing("en")("{x}", "{x}", x="word " * 100).endswith("…")


def test_a_quote_that_proves_nothing_is_widened() -> None:
    """The protocols do not accept three characters; the whole passage stands in for them."""
    passage = "是。\n小桌板可承重5公斤。\n对。"
    found = read(FixedReader(otherwise=YES), "对的", passage)
    assert found.quote is None or contains_quote(passage, found.quote)


HOSTILE = [
    "",
    " ",
    "\x00\x00",
    "\ud800中\udfff",
    "😀🎉",
    "？！。，",
    "a",
    "第",
    "\u202eabc",
    "9" * 500,
    "(" * 300,
    "我" * 5000,
]


@pytest.mark.parametrize("claim", HOSTILE)
@pytest.mark.parametrize("passage", ["", CAR, "\x00\ud800中😀", "9" * 400, "、" * 900])
def test_hostile_text_is_answered_like_any_other(claim: str, passage: str) -> None:
    """Empty, unreadable, endless or symbol-only texts."""
    found = read(FixedReader(otherwise=YES), claim, passage, context=claim)
    assert found.quote is None or found.quote in passage


@settings(deadline=None)
@given(st.text(max_size=80), st.lists(st.text(max_size=160), max_size=3), st.sampled_from([YES, NO, SILENT]))
def test_any_text_gets_a_verifiable_answer(claim: str, passages: list[str], odds: Odds) -> None:
    """Whatever is asked, the quote stands in the passage that is named."""
    found = PassageReading(passages, Phrasing("en"), FixedReader(otherwise=odds)).support(ClaimInContext(claim))
    assert 0.0 <= found.confidence <= 1.0
    if found.quote is not None:
        assert found.reference is not None
        assert found.quote in passages[found.reference]


# --- the weights in the box, whatever they were trained on -----------------------------------------


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (CAR, "小桌板位于第二排座椅后方"),
        (CAR, CAR),
        ("退票要收三成手續費，開船後不退。", "退票要收三成手續費"),
        (TOWER, "The tower is 330 meters high."),
        (TOWER, "It was designed by Gustave Eiffel's company."),
    ],
)
def test_weights_support_what_is_repeated(passage: str, claim: str) -> None:
    """A sentence, or a clause that stands for itself, in the passage's own words, also among others."""
    found = read(None, claim, "无关的一段话。Nothing of interest.", passage)
    assert (found.label, found.reference, found.difference) == ("supported", 1, None)
    assert found.quote is not None
    assert found.quote in passage


@pytest.mark.parametrize(
    ("passage", "claim", "claimed", "stated"),
    [
        (CAR, "小桌板位于第三排座椅后方", "第三排", "第二排"),
        (CAR, "保修期为三年", "三年", "两年"),
        (CAR, "可承重8公斤", "8公斤", "5公斤"),
        (TOWER, "The tower was built in 1925.", "1925", "1889"),
        (TOWER, "The tower is 530 meters high.", "530 meters", "330 meters"),
    ],
)
def test_weights_contradict_a_wrong_value(passage: str, claim: str, claimed: str, stated: str) -> None:
    """In a sentence that is otherwise repeated; the difference is told."""
    found = read(None, claim, passage)
    assert found.label == "contradicted"
    assert found.difference is not None
    assert (found.difference.claimed, found.difference.stated) == (claimed, stated)


@pytest.mark.parametrize(
    ("passage", "claim"),
    [
        (CAR, "后备箱容积为五百升"),
        (CAR, "王珞丹从小家境优越"),
        (TOWER, "The Chinese restaurant downstairs serves dumplings."),
        (TOWER, "The museum opens at nine."),
    ],
)
def test_weights_do_not_support_another_matter(passage: str, claim: str) -> None:
    """What the passage does not speak of is never called correct."""
    assert read(None, claim, passage).label != "supported"


@pytest.mark.parametrize(
    ("yes", "no", "passage"),
    [
        (
            "Tickets cannot be returned.",
            "Tickets can be returned.",
            "Tickets cannot be returned once they are printed.",
        ),
        ("Oil rose on Monday.", "Oil fell on Monday.", "The price of oil rose sharply on Monday, traders said."),
        ("门票不可以退换。", "门票可以退换。", "已打印的门票不可以退换。"),
        ("周一油价上涨。", "周一油价下跌。", "周一油价大幅上涨，交易员说。"),
    ],
)
def test_weights_tell_a_claim_from_its_opposite(yes: str, no: str, passage: str) -> None:
    """Of two claims of the same words the true one is likelier."""
    reading = PassageReading([passage], Phrasing("en"))
    true, false = reading.supports([ClaimInContext(yes), ClaimInContext(no)])
    assert true.odds.supported > false.odds.supported


def test_weights_answer_alike_alone_and_among_others() -> None:
    """Each row is read by itself, so company changes nothing."""
    claims = [
        ClaimInContext(text)
        for text in ("The tower is tall.", "小桌板可以承重五公斤", "Eiffel", "It is " + "very " * 40)
    ]
    together = PassageReading([TOWER, CAR], Phrasing("en")).supports(claims)
    for claim, found in zip(claims, together, strict=True):
        alone = PassageReading([TOWER, CAR], Phrasing("en")).support(claim)
        assert alone == found
