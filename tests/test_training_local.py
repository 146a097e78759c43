"""Choosing the numbers of the `local` judge: what is put to the model, and what is made of its answers."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from training.local import BLEND, Known, accuracy, chosen, lines, share_asked, written
from training.opinions import IN_SENTENCES, Opinion, Part, asked_about, by_turns, opinions, paraphrased
from training.sets import Row

from steelyard.judges.embedded.support import Support
from steelyard.judges.local.blend import Blend
from steelyard.judges.local.server import ModelServer

PASSAGE = "The reading room is on the second floor. It has 120 seats and opens at nine."


def rules(probability: float, clash: str | None = None) -> Support:
    label = "contradicted" if clash else "supported" if probability > 0.5 else "unknown"
    return Support(label, probability, 0, "quote", clash, "reason")


def opinion(
    supported: bool, probability: float, share: float | None, name: str = "a", clash: str | None = None
) -> Opinion:
    return Opinion(name, supported, (Part(rules(probability, clash), share),))


@pytest.fixture
def silent(tmp_path: Path) -> Known:
    """Readings without any, and without a model."""
    return Known(ModelServer(tmp_path / "none.gguf"), "bytes", tmp_path / "readings.jsonl")


class TestOpinions:
    def test_key_words_of_one_text_are_asked_together(self) -> None:
        """As the judge does: rows of one text share what is shown; other rows stand alone."""
        words = [
            Row("uhgeval", f"u{n}", "d", "", word, (PASSAGE,), "supported", PASSAGE)
            for n, word in enumerate(("second floor", "120 seats"))
        ]
        claims = [Row("kvpi", f"k{n}", "d", "", "The room has 120 seats.", (PASSAGE,), "supported") for n in range(2)]
        assert [len(asked.rows) for asked in asked_about([*words, *claims])] == [2, 1, 1]

    def test_sentences_come_apart_as_the_judge_takes_them(self) -> None:
        """A response is as many claims as the judge looks up, all of one row."""
        assert "begin" in IN_SENTENCES
        row = Row("begin", "b", "d", "", "The room is on the second floor. It opens at nine.", (PASSAGE,), "supported")
        (asked,) = asked_about([row])
        assert len(asked.claims) == 2
        assert set(asked.owners) == {0}

    def test_unanswered_rows_are_left_out(self, silent: Known) -> None:
        """A row that the model was not asked about says nothing of the model; one that needs no model stays."""
        (asked,) = asked_about([Row("kvpi", "k", "d", "", "The room has 120 seats.", (PASSAGE,), "supported")])
        assert list(opinions(asked, (0.0, 1.0), silent)) == []
        (kept,) = opinions(asked, (1.0, 1.0), silent)
        assert kept.parts[0].share is None

    def test_sets_take_turns(self) -> None:
        """Stopped at any time, a run has come equally far in every set."""
        first, second = list(asked_about(list(paraphrased("zh"))[:3])), list(asked_about(list(paraphrased("en"))[:2]))
        order = by_turns([first, second])
        assert [asked in first for asked in order] == [True, False, True, False, True]


class TestChoosing:
    def test_the_one_who_knows_is_heeded(self) -> None:
        """Where the rules toss a coin and the model knows, the model decides, and the numbers say so."""
        found = [opinion(n % 2 == 0, 0.4 if n % 4 < 2 else 0.6, 0.9 if n % 2 == 0 else 0.1) for n in range(40)]
        blend = chosen(found)
        assert accuracy(found, None) == 0.5
        assert accuracy(found, blend) == 1.0
        assert blend.model > blend.rules >= 0

    def test_asking_in_vain_is_avoided(self) -> None:
        """Where the rules know and the model adds nothing, fewer claims are put to it."""
        found = [opinion(n % 2 == 0, 0.93 if n % 2 == 0 else 0.07, 0.5) for n in range(40)]
        found += [opinion(n % 2 == 0, 0.6 if n % 2 == 0 else 0.4, 0.6 if n % 2 == 0 else 0.4, "b") for n in range(40)]
        blend = chosen(found)
        assert accuracy(found, blend) == 1.0
        assert share_asked(found, blend) == 0.5

    def test_clashes_that_tell_nothing_count_for_nothing(self) -> None:
        """Where the rules see clashes in supported and other claims alike, they hardly count; else they do."""
        empty = [opinion(n % 2 == 0, 0.4, 0.9 if n % 2 == 0 else 0.1, "a", "negation") for n in range(60)]
        plain = [opinion(n % 2 == 0, 0.4, 0.9 if n % 2 == 0 else 0.1, "b") for n in range(60)]
        telling = [opinion(False, 0.4, 0.8, "a", "negation") for _ in range(30)]
        assert chosen([*empty, *plain]).clash > chosen([*telling, *plain]).clash

    def test_a_row_is_as_good_as_its_worst_part(self) -> None:
        """One part that is not supported is enough."""
        whole = Opinion("a", False, (Part(rules(0.99), None), Part(rules(0.2), None)))
        assert accuracy([whole, opinion(True, 0.99, None)], None) == 1.0

    def test_nothing_to_choose_by_is_said(self) -> None:
        """Without answers of the model there is no choice, and no traceback."""
        with pytest.raises(SystemExit, match="too few answers"):
            chosen([opinion(True, 0.5, None), opinion(False, 0.5, None)])

    def test_every_set_is_also_judged_without_itself(self) -> None:
        """The page shows a set by numbers that it had no part in: here, by a set on which the model was no use."""
        one_way = [opinion(n % 2 == 0, 0.5, 0.9 if n % 2 == 0 else 0.1, "a") for n in range(20)]
        the_other = [opinion(n % 2 == 0, 0.5, 0.1 if n % 2 == 0 else 0.9, "b") for n in range(20)]
        page = list(lines("en", [*one_way, *the_other], chosen(one_way)))
        assert page[2].split("|")[3:7] == [" 1.00 ", " 0.50 ", " 1.00 ", " 0.50 "]

    def test_only_the_chosen_numbers_are_written(self) -> None:
        """The other language, the limits of criteria and every comment stay."""
        before = BLEND.read_text("utf-8")
        blend = Blend(ask_above=0.11, ask_below=0.88, rules=0.1, model=0.2, constant=-0.3, clash=-0.99)
        after = written(before, "zh", blend)
        assert tomllib.loads(after) == {**tomllib.loads(before), "zh": blend.model_dump()}
        assert [line for line in after.splitlines() if line.startswith("#")] == [
            line for line in before.splitlines() if line.startswith("#")
        ]
