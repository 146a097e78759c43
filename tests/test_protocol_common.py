"""What the protocols share: asking again, parts, status, purity, options."""

from __future__ import annotations

import builtins
import socket
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from feeding import PAIR, RAG, TALK, Fed, changed, feed, judge, respond
from steelyard.errors import ConfigError
from steelyard.protocols import get_protocol, protocol_names
from steelyard.protocols.common import Options, has_text, in_parts, same_words, status_of
from steelyard.records import Ask, Atom, Check, DialogueSample, Numbered, RagSample, Sentence, Turn, Unjudged, Verdict
from steelyard.tasks import TASKS, AtomicData, AtomicReply, GroundedData, GroundedReply

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval", "pairwise")
DOWN = Unjudged(reason="timeout", detail="no answer in 60 s")


def sample_for(name: str) -> RagSample | DialogueSample:
    return {"dialogue": TALK, "pairwise": PAIR}.get(name, RAG)


def whole(verdict: Verdict) -> list[str]:
    """The names of its scores without those of single aspects, which a user may name."""
    return [name for name in verdict.scores if "." not in name]


def atoms_ask(count: int) -> Ask:
    atoms = tuple(Numbered(id=n, text=f"第{n}条") for n in range(1, count + 1))
    data = AtomicData(question="q", references=("r",), answer="a", date="d", place="p", atoms=atoms)
    return Ask(task="atomic.judge", language="zh", data=data, reply=AtomicReply)


# --- items the judge leaves out, repeats or invents -------------------------------------------------


def test_missing_items_are_asked_again_by_name_and_alone() -> None:
    """What a reply leaves out is asked once more: only that, and the judge is told what was missing."""
    fed = judge("atomic", RAG, respond, changed(atoms={2: None}))
    assert fed.tasks == ["atomic.split", "atomic.judge", "atomic.judge"]
    again = fed.asks[-1]
    assert again.again
    assert again.again.missing == ("atoms 2",)
    assert again.again.unverified == ()
    assert [atom.id for atom in again.data.items()["atoms"]] == [2]
    assert fed.verdict.status == "judged"


def test_items_missing_twice_are_unjudged() -> None:
    """After the second reply an item without a label is unjudged with a reason, and nobody is asked a third time."""
    fed = judge("atomic", RAG, respond, changed(atoms={2: None}), changed(atoms={2: None}))
    first, second = fed.verdict.items
    assert (first.label, second.label, second.reason) == ("correct", "unjudged", "missing_in_reply")
    assert fed.verdict.status == "partial"
    assert fed.verdict.scores["accuracy"] == 1, "the unjudged atom counts neither way"
    assert len(fed.asks) == 3


def test_what_the_judge_cannot_tell_is_unjudged_in_its_own_words() -> None:
    """An item the judge declares unsure is unjudged for its reason, is not asked again, and counts neither way."""
    unsure = [{"items": "checks", "id": 4, "reason": "两条资料说法不一"}]
    fed = judge("grounded", RAG, changed(checks={4: None}, unsure=unsure))
    assert fed.tasks == ["grounded.judge"]
    found = next(item for item in fed.verdict.items if getattr(item, "name", "") == "conclusion_correct")
    assert isinstance(found, Check)
    assert (found.label, found.reason) == ("unjudged", "两条资料说法不一")
    assert fed.verdict.status == "partial"


def test_a_label_stands_against_doubt_and_doubt_about_nothing_is_ignored() -> None:
    """Unsure about an item that has a label, or that was never asked, changes nothing."""
    unsure = [{"items": "checks", "id": id, "reason": "?"} for id in (1, 99)]
    assert judge("grounded", RAG, changed(unsure=unsure)).verdict == judge("grounded", RAG).verdict


def test_language_models_are_not_offered_a_shrug() -> None:
    """`unsure` is no part of the schema that goes out with an ask."""
    assert all("unsure" not in str(reply.model_json_schema()) for _, reply in TASKS.values())


def test_repeated_items_with_one_label_count_once() -> None:
    """An item labelled twice in the same words needs no second ask."""

    def twice(ask: Ask) -> dict[str, Any]:
        reply = respond(ask)
        return {**reply, "atoms": reply["atoms"] * 2}

    fed = judge("atomic", RAG, respond, twice)
    assert len(fed.asks) == 2
    assert [atom.label for atom in fed.verdict.items] == ["correct", "correct"]


def test_conflicting_labels_are_no_label() -> None:
    """An item labelled twice and differently is asked again, and unjudged if that happens again."""

    def torn(ask: Ask) -> dict[str, Any]:
        reply = respond(ask)
        return {**reply, "atoms": [*reply["atoms"], {**reply["atoms"][-1], "label": "wrong"}]}

    mended = judge("atomic", RAG, respond, torn)
    assert mended.asks[-1].again
    assert mended.asks[-1].again.missing == ("atoms 2",)
    assert [atom.label for atom in mended.verdict.items] == ["correct", "correct"]
    torn_twice = judge("atomic", RAG, respond, torn, torn)
    assert [atom.label for atom in torn_twice.verdict.items] == ["correct", "unjudged"]


def test_invented_items_are_dropped_and_counted() -> None:
    """Labels for items that do not exist change nothing but the count of inventions."""

    def inventive(ask: Ask) -> dict[str, Any]:
        reply = respond(ask)
        return {**reply, "atoms": [*reply["atoms"], {**reply["atoms"][0], "id": 7}, {**reply["atoms"][0], "id": -1}]}

    fed = judge("atomic", RAG, respond, inventive)
    assert len(fed.asks) == 2
    assert len(fed.verdict.items) == 2
    assert fed.verdict.notes["invented"] == 2
    assert "invented_items" in fed.verdict.flags


@pytest.mark.parametrize("name", PROTOCOLS)
def test_every_protocol_counts_inventions(name: str) -> None:
    """Each protocol drops and counts invented items of any of its lists."""

    def inventive(ask: Ask) -> dict[str, Any]:
        reply = respond(ask)
        for field in ask.data.items():
            reply[field] = [*reply[field], {**reply[field][0], "id": 999}]
        return reply

    honest, fed = judge(name, sample_for(name)), judge(name, sample_for(name), otherwise=inventive)
    assert fed.verdict.scores == honest.verdict.scores
    assert fed.verdict.notes["invented"] >= 1
    assert "invented_items" in fed.verdict.flags


@pytest.mark.parametrize("name", PROTOCOLS)
def test_empty_replies_leave_everything_unjudged(name: str) -> None:
    """A judge that labels nothing, twice, yields unjudged items and null scores, never 0."""

    def mute(ask: Ask) -> dict[str, Any]:
        return respond(ask, **{field: [] for field in ask.data.items()})

    verdict = judge(name, sample_for(name), otherwise=mute).verdict
    scores = {key: value for key, value in verdict.scores.items() if key != "fallback"}
    assert set(scores.values()) == {None}
    assert verdict.items
    assert verdict.status in ("failed", "partial")


# --- asks that fail as a whole ----------------------------------------------------------------------


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_dead_judge_fails_the_sample_without_a_number(name: str) -> None:
    """With no reply at all the sample has failed, every score is null, and the reason is on record."""
    fed = judge(name, sample_for(name), otherwise=DOWN)
    assert fed.verdict.status == "failed"
    assert set(fed.verdict.scores.values()) == {None}
    assert fed.verdict.notes["failure"] == "no answer in 60 s"
    reasons = {item.reason for item in fed.verdict.items}
    assert reasons <= {"timeout"}
    assert reasons or any(flag.endswith(":timeout") for flag in fed.verdict.flags)
    assert all(ask.again is None for ask in fed.asks), "a judge that does not answer is not asked again here"


def test_a_failed_part_leaves_the_others_standing() -> None:
    """Where one part of a long list gets no reply, its items are unjudged with that reason, the others count."""
    fed = judge("atomic", RAG, respond, DOWN, respond, thorough=True)
    assert [(atom.label, atom.reason) for atom in fed.verdict.items] == [("unjudged", "timeout"), ("correct", "理由")]
    assert fed.verdict.status == "partial"
    assert fed.verdict.scores["fallback"] == 0


def test_a_follow_up_that_fails_keeps_what_was_said() -> None:
    """If the second ask fails, missing items are unjudged with its reason and first labels stand."""
    first = changed(atoms={1: {"quote": "此句并不存在于资料中"}, 2: None})
    fed = judge("atomic", RAG, respond, first, DOWN)
    one, two = fed.verdict.items
    assert (one.label, one.flags) == ("correct", ("evidence_unverified",))
    assert (two.label, two.reason) == ("unjudged", "timeout")


# --- parts ------------------------------------------------------------------------------------------


@given(count=st.integers(0, 30), size=st.integers(1, 12))
def test_parts_hold_every_item_once(count: int, size: int) -> None:
    """However a list is cut, each item is asked about exactly once, in order, and no part is too long."""
    parts = in_parts(atoms_ask(count), size)
    ids = [[item.id for item in part.data.items().get("atoms", ())] for part in parts]
    assert [id for part in ids for id in part] == list(range(1, count + 1))
    assert all(len(part) <= size for part in ids)
    assert parts, "an ask without items is still asked"


@given(sentences=st.integers(0, 9), checks=st.integers(1, 6), size=st.integers(1, 5))
def test_parts_of_two_lists(sentences: int, checks: int, size: int) -> None:
    """Two lists are cut together: no item is lost, and one at a time means one of either."""
    data = GroundedData(
        question="q",
        references=("r",),
        answer="a",
        sentences=tuple(Numbered(id=n, text="s") for n in range(sentences)),
        checks=tuple(Numbered(id=n, text="c") for n in range(checks)),
    )
    parts = in_parts(Ask(task="grounded.judge", language="zh", data=data, reply=GroundedReply), size)
    found = [(name, item.id) for part in parts for name, items in part.data.items().items() for item in items]
    assert sorted(found) == sorted(
        [("sentences", n) for n in range(sentences)] + [("checks", n) for n in range(checks)]
    )
    if size == 1:
        assert all(sum(map(len, part.data.items().values())) == 1 for part in parts)


@pytest.mark.parametrize("name", PROTOCOLS)
def test_thorough_asks_one_item_at_a_time(name: str) -> None:
    """`thorough`: each ask that wants labels wants exactly one, and the scores are the same for the same labels."""
    usual, fed = judge(name, sample_for(name)), judge(name, sample_for(name), thorough=True)
    labelling = [ask for ask in fed.asks if ask.data.items()]
    assert all(sum(map(len, ask.data.items().values())) == 1 for ask in labelling)
    assert len(labelling) == sum(len(items) for ask in usual.asks for items in ask.data.items().values())
    assert fed.verdict.scores == usual.verdict.scores
    assert fed.verdict.items == usual.verdict.items


def test_items_per_ask_is_the_longest_list() -> None:
    """`items_per_ask` bounds every list of an ask; the parts are asked in one round."""
    answer = "".join(f"自习室第{n}排有{n}个座位。" for n in range(1, 8))
    fed = judge("atomic", RAG.model_copy(update={"answer": answer}), items_per_ask=3)
    assert [len(ask.data.items()["atoms"]) for ask in fed.rounds[-1]] == [3, 3, 1]
    assert len(fed.verdict.items) == 7


# --- purity -----------------------------------------------------------------------------------------


def twice(name: str, otherwise: Any) -> tuple[Fed, Fed]:
    return tuple(judge(name, sample_for(name), otherwise=otherwise) for _ in range(2))  # type: ignore[return-value]


@pytest.mark.parametrize("name", PROTOCOLS)
@given(dropped=st.integers(0, 4), quote=st.sampled_from(["", "并不存在的引文", "共有120个座位"]))
def test_the_same_replies_give_the_same_asks(name: str, dropped: int, quote: str) -> None:
    """Resume is replay: run again on the same replies, a protocol asks the same and concludes the same."""

    def odd(ask: Ask) -> dict[str, Any]:
        reply = respond(ask)
        for field in ask.data.items():
            reply[field] = [{**entry, "quote": quote} for entry in reply[field] if entry["id"] != dropped]
        return reply

    one, two = twice(name, odd)
    assert [ask.key for ask in one.asks] == [ask.key for ask in two.asks]
    assert one.verdict == two.verdict


@pytest.mark.parametrize("name", PROTOCOLS)
def test_no_ask_is_sent_twice(name: str) -> None:
    """Every ask of a sample has its own key, a second try included: no reply is paid for twice."""

    def forgetful(ask: Ask) -> dict[str, Any]:
        return respond(ask, **{field: {1: None} for field in ask.data.items()})

    keys = [ask.key for ask in judge(name, sample_for(name), otherwise=forgetful).asks]
    assert len(keys) == len(set(keys))


@pytest.mark.parametrize("name", PROTOCOLS)
def test_a_protocol_does_no_io(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A protocol opens no file and no socket."""
    judge(name, sample_for(name))  # wording and the like are loaded by now

    def forbidden(*args: object, **kwargs: object) -> None:
        raise AssertionError("a protocol did I/O")

    monkeypatch.setattr(builtins, "open", forbidden)
    monkeypatch.setattr(socket, "socket", forbidden)
    assert judge(name, sample_for(name)).verdict.status == "judged"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_asks_keep_to_the_contract(name: str) -> None:
    """Every ask names a known task and carries that task's data and reply models."""
    for ask in judge(name, sample_for(name), thorough=True).asks:
        data, reply = TASKS[ask.task]
        assert isinstance(ask.data, data)
        assert ask.reply is reply


# --- the frame --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", PROTOCOLS)
def test_too_long_is_not_sent(name: str) -> None:
    """A sample above max_chars fails with the reason and costs nothing."""
    fed = judge(name, sample_for(name), max_chars=20)
    assert fed.asks == []
    assert fed.verdict.status == "failed"
    assert "too_long" in fed.verdict.flags
    assert "max_chars" in fed.verdict.notes["reason"]
    assert set(fed.verdict.scores.values()) == {None}
    assert tuple(whole(fed.verdict)) == get_protocol(name).scores


def test_length_counts_everything_that_would_be_sent() -> None:
    """The reference answer, the key points and the criteria count towards the length, too."""
    long = "长" * 500
    for update in ({"reference_answer": long}, {"key_points": (long,)}, {"references": (long,)}, {"question": long}):
        assert "too_long" in judge("scorecard", RAG.model_copy(update=update), max_chars=400).verdict.flags
    turn = Turn(prompt="p", answer="a", criteria=(long,))
    assert "too_long" in judge("dialogue", TALK.model_copy(update={"turns": (turn,)}), max_chars=400).verdict.flags


@pytest.mark.parametrize("name", PROTOCOLS)
def test_scores_have_the_promised_keys(name: str) -> None:
    """`scores` has the keys of the result-line section, in that order, judged or failed."""
    promised = {
        "atomic": ["accuracy", "accuracy_strict", "coverage", "fallback"],
        "grounded": ["relevance", "truthfulness", "accuracy"],
        "scorecard": ["relevance", "completeness", "accuracy", "faithfulness", "faithfulness_soft"],
        "dialogue": ["csr", "isr", "ssr"],
        "retrieval": ["recall", "precision", "precision_at_k", "ndcg", "mrr", "noise", "use"],
        "pairwise": ["win_rate", "consistency", "position_bias"],
    }[name]
    for otherwise in (respond, DOWN):
        assert whole(judge(name, sample_for(name), otherwise=otherwise).verdict) == promised
    assert list(get_protocol(name).scores) == promised


@pytest.mark.parametrize("name", PROTOCOLS)
def test_result_line_shape(name: str) -> None:
    """A result line has the promised top-level keys and each item begins with its kind."""
    line = judge(name, sample_for(name)).verdict.line()
    assert list(line) == ["id", "protocol", "status", "scores", "items", "flags", "judge", "usage"]
    assert (line["id"], line["protocol"], line["status"]) == (sample_for(name).id, name, "judged")
    kinds = {
        "atomic": {"atom"}, "grounded": {"check"}, "scorecard": {"sentence", "key_point", "atom"},
        "dialogue": {"criterion"}, "retrieval": {"cause", "point", "passage"}, "pairwise": {"preference"},
    }  # fmt: skip
    assert {item["kind"] for item in line["items"]} == kinds[name]
    assert all(next(iter(item)) == "kind" for item in line["items"])


def test_status() -> None:
    """judged: all items have labels; failed: none has; partial: in between. Nothing to judge is judged."""
    labelled, open_ = Atom(id=1, text="a", label="wrong"), Atom(id=2, text="b", label="unjudged")
    half = Sentence(id=1, text="s", on_topic="on_topic", support="unjudged")
    assert status_of(()) == "judged"
    assert status_of((labelled,)) == "judged"
    assert status_of((labelled, open_)) == "partial"
    assert status_of((open_,)) == "failed"
    assert status_of((labelled, half)) == "partial"
    assert status_of((labelled,), ("key_points",)) == "partial"
    assert status_of((), ("atoms",)) == "failed"


@pytest.mark.parametrize("other", ["云湖有C++课", "云湖有C#课", "气温-5度", "版本1.2", "自习室在第二层吗"])
def test_signs_make_a_difference(other: str) -> None:
    """Texts that differ in a sign that carries meaning are two texts."""
    plain = {"云湖有C++课": "云湖有C课", "云湖有C#课": "云湖有C课", "气温-5度": "气温5度", "版本1.2": "版本12"}
    assert same_words(other) != same_words(plain.get(other, "自习室在第二层"))


@given(st.text(max_size=30))
def test_width_case_spacing_and_a_final_stop_make_none(text: str) -> None:
    """Spacing around a text and a final full stop do not make it another one."""
    assert same_words(f"  {text} 。") == same_words(text)
    assert same_words("ＡＢ　ｃ！") == same_words("ab C")


@pytest.mark.parametrize(("references", "found"), [((), False), (("", " \n"), False), (("", "a"), True)])
def test_blank_passages_are_no_passages(references: tuple[str, ...], found: bool) -> None:
    """A passage of spaces is not something to hold an answer against."""
    assert has_text(references) is found


@pytest.mark.parametrize("name", ["atomic", "grounded", "scorecard", "retrieval"])
def test_blank_passages_count_as_none_everywhere(name: str) -> None:
    """Judged against blank passages, a sample gets what it gets without any."""
    blank = judge(name, RAG.model_copy(update={"references": ("", "  ")})).verdict
    none = judge(name, RAG.model_copy(update={"references": ()})).verdict
    assert (blank.scores, blank.flags) == (none.scores, none.flags)


# --- options and the registry -----------------------------------------------------------------------


@pytest.mark.parametrize("field", ["items_per_ask", "max_chars"])
@pytest.mark.parametrize("value", [0, -1])
def test_sizes_are_positive(field: str, value: int) -> None:
    """A size of nothing is refused where it is given, not where it would divide."""
    with pytest.raises(ValidationError):
        Options.model_validate({field: value})


def test_options_name_what_is_wrong() -> None:
    """An unknown option or an unfit value is one clear line that names the option."""
    with pytest.raises(ConfigError, match=r"atomic has no option 'strikt'; it has .*strict"):
        get_protocol("atomic").parse_options({"strikt": True})
    with pytest.raises(ConfigError, match="option items_per_ask of atomic"):
        get_protocol("atomic").parse_options({"items_per_ask": "many"})


def test_protocols_by_name() -> None:
    """The shipped ones are there by name, a Protocol stands for itself, and an unknown name lists the known ones."""
    assert protocol_names()[:6] == list(PROTOCOLS)
    for name in PROTOCOLS:
        protocol = get_protocol(name)
        assert protocol.name == name
        assert get_protocol(protocol) is protocol
        assert protocol.main in protocol.scores
    with pytest.raises(ConfigError, match=r"'atomics'; there are atomic, grounded, scorecard, dialogue, retrieval"):
        get_protocol("atomics")


def test_feeding_uses_every_reply() -> None:
    """The helper of these tests notices a reply that nobody asked for."""
    protocol = get_protocol("grounded")
    with pytest.raises(AssertionError, match="never asked for"):
        feed(protocol.rounds(RAG, protocol.parse_options({})), respond, respond)


@pytest.mark.parametrize("name", ["atomic", "grounded", "scorecard", "retrieval"])
@pytest.mark.parametrize("references", [RAG.references, ()])
@pytest.mark.parametrize("thorough", [False, True])
def test_an_empty_list_may_be_left_out(name: str, references: tuple[str, ...], thorough: bool) -> None:
    """A judge that leaves out a list for which no items were asked has answered in full."""
    sample = RAG.model_copy(update={"references": references})

    def terse(ask: Ask) -> dict[str, Any]:
        return {field: value for field, value in respond(ask).items() if value != []}

    told, in_full = judge(name, sample, otherwise=terse, thorough=thorough), judge(name, sample, thorough=thorough)
    assert told.verdict == in_full.verdict
    assert told.tasks == in_full.tasks
