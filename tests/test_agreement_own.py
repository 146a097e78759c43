"""The held-out sets of our own texts: complete, balanced, consistent, and refused with a place when they are not."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from steelyard.text import language_of

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "bench")]

from agreement import planted  # noqa: E402
from agreement.own import HERE, SCRIPTS  # noqa: E402
from agreement.own.careful import ERROR_KINDS, careful_claims  # noqa: E402
from agreement.own.good_dialogues import good_dialogues, holds  # noqa: E402
from agreement.own.short_answers import short_answers  # noqa: E402

ANSWERS = list(short_answers())
CLAIMS = list(careful_claims())
DIALOGUES = list(good_dialogues())
TURNS = [turn for dialogue in DIALOGUES for turn in dialogue.turns]
CRITERIA = [criterion for turn in TURNS for criterion in turn.criteria]


def normalised(text: str) -> str:
    return re.sub(r"[\W_]+", "", text).lower()


def repeated(texts: Iterator[str]) -> list[str]:
    return [text for text, times in Counter(map(normalised, texts)).items() if times > 1]


# --- short answers ---------------------------------------------------------------------------------


def test_short_answers_are_balanced_between_languages() -> None:
    """100 English questions and 100 Chinese ones, a fifth of those in Traditional characters."""
    assert Counter(answer.script for answer in ANSWERS) == {"en": 100, "zh-Hans": 80, "zh-Hant": 20}


def test_a_short_answer_has_evidence_and_a_twin_that_differs() -> None:
    """The deciding words stand in a passage; right and wrong differ in more than punctuation and case."""
    for answer in ANSWERS:
        assert any(answer.evidence in passage for passage in answer.passages), answer.id
        assert normalised(answer.right) != normalised(answer.wrong), answer.id


def test_short_answers_are_short_and_their_passages_of_the_promised_length() -> None:
    """An answer is a few words; a passage has 60 to 300 characters; about half of the questions have a second one."""
    for answer in ANSWERS:
        longest = 60 if answer.script == "en" else 20
        assert max(len(answer.right), len(answer.wrong)) <= longest, answer.id
        assert all(60 <= len(passage) <= 300 for passage in answer.passages), answer.id
    assert sum(len(answer.passages) > 1 for answer in ANSWERS) >= 90


def test_neither_length_nor_wording_gives_the_right_short_answer_away() -> None:
    """The longer twin is right about as often as wrong; a wrong answer stands in a passage as often as a right one."""
    longer = sum(len(answer.right) > len(answer.wrong) for answer in ANSWERS)
    shorter = sum(len(answer.right) < len(answer.wrong) for answer in ANSWERS)
    assert 0.6 < longer / shorter < 1.7
    verbatim = {
        which: sum(getattr(answer, which).lower() in " ".join(answer.passages).lower() for answer in ANSWERS)
        for which in ("right", "wrong")
    }
    assert verbatim["wrong"] >= verbatim["right"] >= 50


# --- careful claims --------------------------------------------------------------------------------


def test_careful_claims_are_balanced() -> None:
    """600 claims about 60 texts, half of them wrong in every script, all ten kinds of error among them."""
    assert Counter((claim.script, claim.right) for claim in CLAIMS) == {
        ("en", True): 150,
        ("en", False): 150,
        ("zh-Hans", True): 120,
        ("zh-Hans", False): 120,
        ("zh-Hant", True): 30,
        ("zh-Hant", False): 30,
    }
    assert len({claim.passages for claim in CLAIMS}) == 60
    kinds = Counter(claim.error for claim in CLAIMS if claim.error)
    assert all(kinds[kind] >= 15 for kind in ERROR_KINDS), kinds


def overlap(claim: str, passages: tuple[str, ...], script: str) -> float:
    """The share of the claim's words (Chinese: character pairs) that the passages hold."""

    def parts(text: str) -> set[str]:
        if script == "en":
            return set(re.findall(r"\w+", text.lower()))
        han = re.sub(r"\W", "", text)
        return {han[at : at + 2] for at in range(len(han) - 1)}

    own = parts(claim)
    return len(own & parts("\n".join(passages))) / len(own)


@pytest.mark.parametrize("script", SCRIPTS)
def test_wrong_claims_keep_the_passages_words_and_right_ones_do_not(script: str) -> None:
    """Whoever counts common words takes the wrong claims for right."""
    means = {}
    for right in (True, False):
        found = [claim for claim in CLAIMS if claim.script == script and claim.right == right]
        means[right] = sum(overlap(claim.claim, claim.passages, script) for claim in found) / len(found)
    assert means[False] > means[True] + 0.3, means


def test_no_careful_claim_is_copied_from_its_passages() -> None:
    """A right claim is worded anew; a wrong one cannot stand in the passages as it is."""
    for claim in CLAIMS:
        assert normalised(claim.claim) not in normalised("".join(claim.passages)), claim.id


# --- dialogues -------------------------------------------------------------------------------------


def test_dialogues_are_balanced() -> None:
    """30 English and 30 Chinese dialogues of one to four turns with three to six criteria each."""
    assert Counter(dialogue.script for dialogue in DIALOGUES) == {"en": 30, "zh-Hans": 25, "zh-Hant": 5}
    assert {len(dialogue.turns) for dialogue in DIALOGUES} == {1, 2, 3, 4}
    assert all(3 <= len(turn.criteria) <= 6 for turn in TURNS)


def test_a_criterion_has_content_and_type_and_stands_once_in_its_turn() -> None:
    """Criteria read as `content | type`, without the checks of the file."""
    for turn in TURNS:
        texts = [criterion.text for criterion in turn.criteria]
        assert all(re.fullmatch(r".+ \| [^|]+", text) and "{" not in text for text in texts), texts
        assert not repeated(iter(texts)), texts


def test_about_a_third_of_the_criteria_can_be_counted() -> None:
    """Length, number of lines, a given beginning or end and the like; the loader holds the answers against them."""
    counted = re.compile(r"chars|words|sentences|lines|paragraphs|items|emoji|count:|starts:|ends:|json")
    share = sum(any(map(counted.match, criterion.checks)) for criterion in CRITERIA) / len(CRITERIA)
    assert 0.28 < share < 0.4
    assert sum(not criterion.checks for criterion in CRITERIA) / len(CRITERIA) > 0.33


@pytest.mark.parametrize(
    ("check", "met", "missed"),
    [
        ("chars<=4", "四个字。", "这是五个字"),
        ("words>=2", "two words", "one"),
        ("sentences==2", "At 8.40. Good!", "At 8.40, good!"),
        ("lines==2", "a\n\nb", "a"),
        ("paragraphs==2", "a\n\nb", "a\nb"),
        ("items==2", "1. a\n- b", "a\nb"),
        ("emoji==1", "🙂", "🙂🙂"),
        ("count:Arr==1", "Arr, mate", "Arr arr Arr"),
        ("starts:Dispatch:", "Dispatch: go", "go"),
        ("ends:？", "好吗？", "好？吗"),
        ("has:5596", "拨打5596", "拨打"),
        ("lacks:sorry", "no", "Sorry!"),
        ("not:[，。]", "头上白云", "头上，白云"),
        ("json", '{"a": 1}', "[1] and more"),
    ],
)
def test_a_check_can_fail(check: str, met: str, missed: str) -> None:
    """Every kind of check tells an answer that meets it from one that does not."""
    assert holds(check, met)
    assert not holds(check, missed)


# --- all three -------------------------------------------------------------------------------------


def test_nothing_is_there_twice() -> None:
    """No question, passage, claim, system prompt or answer occurs twice, nor in the planted set."""
    known = {normalised(passage) for pair in planted.pairs() for passage in pair.passages}
    passages = [passage for answer in ANSWERS for passage in answer.passages]
    passages += [passage for text in {claim.passages for claim in CLAIMS} for passage in text]
    assert not repeated(iter(passages))
    assert not known & set(map(normalised, passages))
    assert not repeated(answer.question for answer in ANSWERS)
    assert not repeated(claim.claim for claim in CLAIMS)
    assert not repeated(dialogue.system_prompt for dialogue in DIALOGUES)
    assert not repeated(turn.answer for turn in TURNS)


def test_a_text_is_in_the_script_of_its_file() -> None:
    """No Simplified text in a Traditional file, and no Chinese in an English one."""
    for answer in ANSWERS:
        assert language_of(answer.question, *answer.passages) == answer.script, answer.id
    for claim in CLAIMS:
        assert language_of(claim.claim, *claim.passages) == claim.script, claim.id
    for dialogue in DIALOGUES:
        assert language_of(dialogue.system_prompt) == dialogue.script, dialogue.id


def written(folder: Path, name: str, block: str) -> Path:
    """A folder whose set consists of one English block."""
    for script in SCRIPTS:
        (folder / f"{name}.{script}.txt").write_text(block if script == "en" else "", "utf-8")
    return folder


GOOD_DIALOGUE = "== d\n>> system\nBe brief.\n>> user\nHi\n>> assistant\nHello there.\n>> criteria\n"


@pytest.mark.parametrize(
    ("name", "read", "block", "message"),
    [
        ("short_answers", short_answers, "== a | Q?\nText.\nevidence: Other\n+ x\n- y\n", "stands in no passage"),
        ("short_answers", short_answers, "== a | Q?\nText.\nevidence: Text\n+ x\n- x\n", "are the same"),
        ("short_answers", short_answers, "== a | Q?\nText.\nevidence: Text\n+ x\n", "exactly one line '- '"),
        ("short_answers", short_answers, "== a | Q?\nevidence: Text\n+ x\n- y\n", "one to three passages"),
        ("short_answers", short_answers, "== a | Q\nT.\nevidence: T\n+ x\n- y\n" * 2, "only once"),
        ("short_answers", short_answers, "Text.\n== a | Q\nT.\nevidence: T\n+ x\n- y\n", "before the first block"),
        ("careful", careful_claims, "== a | S\nOne.\n+ x\n- roles: y\n", "two or three passages"),
        ("careful", careful_claims, "== a | S\nOne.\nTwo.\n+ x\n- typo: y\n", "a wrong claim names one of"),
        ("careful", careful_claims, "== a | S\nOne.\nTwo.\n+ x\n", "right and wrong claims"),
        ("careful", careful_claims, "== a | S\nOne.\n+ x\nTwo.\n- roles: y\n", "after the passages"),
        ("good_dialogues", good_dialogues, "== a\n>> system\nBe brief.\n>> user\nHi\n", "needs one system section"),
        ("good_dialogues", good_dialogues, GOOD_DIALOGUE + "Is brief\n", "a criterion is"),
        ("good_dialogues", good_dialogues, GOOD_DIALOGUE + "Is brief | length {words<=1}\n", "does not hold"),
        ("good_dialogues", good_dialogues, GOOD_DIALOGUE + "Is brief | length {word<=1}\n", "unknown check"),
        ("good_dialogues", good_dialogues, GOOD_DIALOGUE, "a section is empty"),
    ],
)
def test_a_broken_block_is_refused_with_its_place(
    tmp_path: Path, name: str, read: Callable[[Path], Iterator[object]], block: str, message: str
) -> None:
    """The error names the file and says what is wrong with the block."""
    with pytest.raises(ValueError, match=re.escape(message)) as error:
        list(read(written(tmp_path, name, block)))
    assert f"{name}.en.txt" in str(error.value)


def test_the_sets_are_not_used_for_training() -> None:
    """No code of the training or of the package reads them: they are held out."""
    sources = [*(ROOT / "training").rglob("*.py"), *(ROOT / "src").rglob("*.py")]
    assert sources
    assert [path.name for path in sources if re.search(r"agreement[./]own", path.read_text("utf-8"))] == []
    assert HERE == ROOT / "bench" / "agreement" / "own"
