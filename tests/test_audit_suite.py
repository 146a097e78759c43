"""What the built-in data of an audit promises: enough of everything, each thing what it says it is."""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from importlib.resources import files
from typing import Literal, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.records import DialogueSample, RagSample, Tolerance
from steelyard.tasks import Difference
from steelyard.text import language_of, sentences
from steelyard.text.suspicion import shows_injection
from steelyard.text.tolerance import ruling
from steelyard.trust.audit import changes
from steelyard.trust.audit.plan import Scope, built_in, own
from steelyard.trust.audit.suite import PROTOCOLS, AttackKind, ErrorKind, load
from years import years

SUITE = load()
SCRIPTS = ("en", "zh-Hans", "zh-Hant")
PLAN = built_in(SUITE, Scope(PROTOCOLS))


def test_enough_attacks_of_every_kind() -> None:
    """At least 60, of all kinds, in all three scripts, in answers and passages, for all four protocols."""
    attacks = SUITE.attacks
    assert len(attacks) >= 60
    assert len({attack.id for attack in attacks}) == len({attack.text for attack in attacks}) == len(attacks)
    assert {attack.kind for attack in attacks} == set(get_args(AttackKind))
    assert {attack.language for attack in attacks} == set(SCRIPTS)
    by_place = Counter(attack.place for attack in attacks)
    assert min(by_place["answer"], by_place["passage"]) >= 20
    by_protocol = Counter(case.injected.protocol for case in PLAN.injections)
    assert set(by_protocol) == set(PROTOCOLS)
    assert min(by_protocol.values()) >= 60


def test_every_kind_of_attack_is_in_both_languages() -> None:
    """What is measured in one language is measured in the other."""
    found = {(attack.kind, attack.language[:2]) for attack in SUITE.attacks}
    assert found == {(kind, language) for kind in get_args(AttackKind) for language in ("en", "zh")}


def test_attacks_where_only_dialogues_have_a_place() -> None:
    """A handful each in the system prompt and as a criterion, in all three scripts; the real criteria stay in place."""
    found = Counter(
        (attack.place, attack.language[:2]) for attack in SUITE.attacks if attack.protocols == ("dialogue",)
    )
    for place in ("system_prompt", "criterion"):
        assert min(found[place, "en"], found[place, "zh"]) >= 5
        assert "zh-Hant" in {attack.language for attack in SUITE.attacks if attack.place == place}
    for case in PLAN.injections:
        sample, injected, attack = case.plain.variant.sample, case.injected.variant.sample, case.attack
        if attack.place not in ("system_prompt", "criterion"):
            continue
        assert isinstance(sample, DialogueSample)
        assert isinstance(injected, DialogueSample)
        first, now = sample.turns[0], injected.turns[0]
        assert now.criteria == (*first.criteria, *([attack.text] if attack.place == "criterion" else []))
        assert (attack.text in injected.system_prompt) is (attack.place == "system_prompt")
        assert [turn.answer for turn in injected.turns] == [turn.answer for turn in sample.turns]


def test_a_criterion_put_before_the_others_moves_none() -> None:
    """Each of the real ones is still known by the number it had; answers have no such place."""
    base = next(base for base in SUITE.bases if isinstance(base.sample, DialogueSample))
    variant = changes.with_text(base.sample, "all others are met | x", "criterion", "start")
    assert variant
    for now, before in variant.criteria:
        assert isinstance(variant.sample, DialogueSample)
        assert isinstance(base.sample, DialogueSample)
        assert (
            variant.sample.turns[now[0] - 1].criteria[now[1] - 1]
            == base.sample.turns[before[0] - 1].criteria[before[1] - 1]
        )
    answer = next(base for base in SUITE.bases if not isinstance(base.sample, DialogueSample))
    assert changes.with_text(answer.sample, "x", "criterion", "end") is None
    assert changes.with_text(answer.sample, "x", "system_prompt", "end") is None


def test_enough_single_errors_of_every_kind() -> None:
    """At least ten of each of the six kinds, in all three scripts."""
    counts = Counter(pair.kind for pair in SUITE.errors)
    assert set(counts) == set(get_args(ErrorKind))
    assert min(counts.values()) >= 10
    assert {(pair.kind, pair.language) for pair in SUITE.errors} == {(k, s) for k in counts for s in SCRIPTS}


NUMBER = re.compile(r"\d[\d,.]*\d万?|\d")


def is_beyond(claimed: str, stated: str) -> bool:
    """Wrong whatever the kind of value."""
    kinds: tuple[Literal["statistic", "specification"], ...] = ("statistic", "specification")
    found = [ruling(Difference(kind=kind, claimed=claimed, stated=stated), Tolerance()) for kind in kinds]
    return found == ["beyond", "beyond"]


@pytest.mark.parametrize("kind", get_args(ErrorKind))
def test_an_error_is_one_and_beyond_tolerance(kind: str) -> None:
    """Clean and planted are one sentence each that differ; numbers and dates differ beyond what protocols forgive."""
    for pair in SUITE.errors:
        if pair.kind != kind:
            continue
        assert pair.clean != pair.planted
        assert len(sentences(pair.clean)) == len(sentences(pair.planted)) == 1
        if kind == "number":
            numbers = [NUMBER.findall(text)[0] for text in (pair.clean, pair.planted, pair.passage)]
            assert numbers[0] == numbers[2]
            assert is_beyond(numbers[1], numbers[2])
        if kind == "date":
            assert years(pair.clean) == years(pair.passage)
            assert years(pair.planted) != years(pair.passage)


def test_bases_are_right_and_wrong_in_every_script() -> None:
    """Answers and dialogues, each once right and once wrong, each with a paraphrase of as many sentences."""
    assert {(base.language, isinstance(base.sample, DialogueSample), base.is_right) for base in SUITE.bases} == {
        (script, dialogue, right) for script in SCRIPTS for dialogue in (True, False) for right in (True, False)
    }
    for base in SUITE.bases:
        assert base.paraphrase is not None
        assert base.paraphrase != base.sample
        if isinstance(base.sample, RagSample) and isinstance(base.paraphrase, RagSample):
            assert len(sentences(base.sample.answer)) == len(sentences(base.paraphrase.answer)) == 3
            assert len(base.sample.references) >= 3


def test_an_attack_leaves_the_answer_as_it_is() -> None:
    """With any attack or harmless text in it, every sentence of the answer is still found, once and in order."""
    for case in PLAN.injections:
        whole = case.plain.variant
        for trial in (case.control, case.injected):
            kept = [place for place in trial.variant.sentences if place is not None]
            assert kept == list(whole.sentences), trial.id
            assert sorted(trial.variant.criteria) == sorted(whole.criteria), trial.id


def test_controls_are_as_long_and_harmless() -> None:
    """A harmless text is about as long as the attack it stands for, never shorter, and raises no flag."""
    for attack in SUITE.attacks:
        text = changes.harmless_text(attack.text, SUITE.harmless[attack.language])
        longest = max(map(len, SUITE.harmless[attack.language].sentences))
        assert 0 <= len(text) - len(attack.text) <= longest
        assert not shows_injection([text], [text])


def test_every_trial_is_one_thing() -> None:
    """No two different samples share a trial: what is judged once counts for all cases that name it."""
    trials = list(PLAN.trials())
    assert len({trial.id for trial in trials}) == len(trials)
    known = {trial.id: trial.variant.sample for trial in trials}
    for case in PLAN.injections:
        for trial in (case.plain, case.control, case.injected):
            assert known[trial.id] == trial.variant.sample


def test_every_change_is_made() -> None:
    """Each change that an audit speaks of is made to several samples."""
    counts = Counter(case.change for case in PLAN.stabilities)
    assert set(counts) == {"reorder", "padding", "padded_answer", "paraphrase", "script", "repeat"}
    assert min(counts.values()) >= 20


def test_own_places_survive_a_change() -> None:
    """Reordered passages and criteria, and added turns, are mapped back to where they were."""
    by_id = {base.id: base for base in SUITE.bases}
    ferry = by_id["en-ferry.right"].sample
    turned = changes.reordered(ferry, SUITE.harmless["en"])
    assert turned is not None
    assert isinstance(turned.sample, RagSample)
    assert isinstance(ferry, RagSample)
    assert [ferry.references[at or 0] for at in turned.passages] == list(turned.sample.references)
    hotel = by_id["en-hotel.right"].sample
    for change in (changes.reordered, changes.padded):
        variant = change(hotel, SUITE.harmless["en"])
        assert variant is not None
        assert isinstance(variant.sample, DialogueSample)
        assert isinstance(hotel, DialogueSample)
        for (turn, id), (own_turn, own_id) in variant.criteria:
            now = variant.sample.turns[turn - 1].criteria[id - 1]
            assert now == hotel.turns[own_turn - 1].criteria[own_id - 1]


def test_both_ways_between_the_scripts() -> None:
    """Simplified becomes Traditional, Traditional becomes Simplified, English has no other script."""
    for base in SUITE.bases:
        variant = changes.in_other_script(base.sample, SUITE.harmless[base.language])
        if base.language == "en":
            assert variant is None
            continue
        assert variant is not None
        text = variant.sample.model_dump_json(exclude={"id"})
        assert language_of(text) == ("zh-Hans" if base.language == "zh-Hant" else "zh-Hant")


def test_the_data_is_locked() -> None:
    """Cards are comparable only over the same suite: an edit of the data needs a new version and a new lock."""
    locked = tomllib.loads((files("steelyard.trust.audit") / "data" / "suite.lock").read_text("utf-8"))
    assert locked == {"version": SUITE.version, "sha256": SUITE.sha256}


# --- errors that code plants in a user's samples ---------------------------------------------------


@given(st.integers(3, 900), st.integers(1900, 2020), st.sampled_from(["en", "zh"]))
def test_planted_errors_are_errors(count: int, year: int, script: str) -> None:
    """A number, a year and a unit that the passage states are each changed alone and beyond tolerance."""
    said = {
        "en": [f"The club has {count} members.", f"It was founded in {year}.", f"The track is {count} km long."],
        "zh": [f"俱乐部有{count}名会员。", f"它成立于{year}年。", f"跑道长{count}公里。"],
    }[script]
    joined = (" " if script == "en" else "").join(said)
    sample = RagSample(id="1", question="?", answer=joined, references=(joined,))
    planted = changes.planted(sample)
    assert {(kind, at) for kind, at, _ in planted} == {("number", 0), ("date", 1), ("number", 2), ("unit", 2)}
    for kind, at, wrong in planted:
        now = sentences(wrong.answer)
        assert [sentence == said[n] for n, sentence in enumerate(now)] == [n != at for n in range(3)]
        if kind == "number":
            assert is_beyond(*(NUMBER.findall(text)[0] for text in (now[at], said[at])))
        if kind == "date":
            assert years(now[at]) != years(said[at])


@pytest.mark.parametrize(
    "answer",
    [
        "The train leaves at 17:40.",
        "See room B12.",
        "Take Line 3 to the end.",
        "第3排有座位。",
        "It came 2nd.",
        "Call 555-0199.",
        "3月采摘。",
        "v2.0 is out.",
    ],
)
def test_what_is_no_quantity_is_left_alone(answer: str) -> None:
    """Times, names, ranks, months, telephone numbers and versions are not touched by code."""
    assert changes.planted(RagSample(id="1", question="?", answer=answer, references=(answer,))) == []


def test_what_the_passage_does_not_state_is_left_alone() -> None:
    """A number that may be wrong already is no place for an error."""
    sample = RagSample(id="1", question="?", answer="It has 12 rooms.", references=("It has many rooms.",))
    assert changes.planted(sample) == []


def test_own_samples_get_attacks_of_their_language() -> None:
    """English samples are attacked in English; a sample without passages only in its answer and question."""
    sample = RagSample(id="mine", question="How many rooms?", answer="It has 12 rooms.", references=())
    plan = own(SUITE, [sample], Scope(("atomic",)))
    assert {case.attack.language for case in plan.injections} == {"en"}
    assert {case.attack.place for case in plan.injections} == {"answer", "question"}
    assert {case.change for case in plan.stabilities} == {"padded_answer", "repeat"}
