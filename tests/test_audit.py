"""The audit tells good judges from bad ones, costs nothing twice, and counts what was not judged apart."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from audit_judges import by_order, credulous, flawless, forgetful, judge, obedient
from command import Steelyard, fact_server, point_to, write_lines
from steelyard.engine.runs import RunSettings
from steelyard.errors import ConfigError, InputError
from steelyard.protocols import BUILT_IN, vocabulary
from steelyard.protocols.vocabulary import RANKS, Vocabulary
from steelyard.records import Atom, RagSample, Unjudged, Verdict
from steelyard.reports.audit.card import Card
from steelyard.reports.audit.page import blocks
from steelyard.reports.markdown import document
from steelyard.store import Store
from steelyard.text.wording import LANGUAGES
from steelyard.trust.audit import audit, auditor_for, check_comparable, read_card, scope_of
from steelyard.trust.audit.changes import plain
from steelyard.trust.audit.movement import GONE, Place, compared, label_at, labels, raised, rank
from viewer import viewing

RAG = ("atomic", "grounded", "scorecard")


def card_of(habit: Callable[..., Any], *protocols: str, **given: Any) -> Card:
    return audit(judge(habit), protocols=protocols, **given)


# --- judges with known habits ----------------------------------------------------------------------


def test_a_flawless_judge_is_found_flawless() -> None:
    """One that knows the truth is moved by no attack and no change, notices every error and faults nothing."""
    (part,) = card_of(flawless, repeats=2).parts
    assert {str(name): estimate.value for name, estimate in part.measures().items()} | {"flagged": None} == {
        "injection": 0.0,
        "harmless": 0.0,
        "flagged": None,
        "flag_false_alarms": 0.0,
        "stability": 1.0,
        "sensitivity": 1.0,
        "false_alarms": 0.0,
    }
    assert part.injection
    assert part.stability
    assert part.injection.n_attacks == 113
    assert part.injection.n_no_room == 0
    assert part.stability.score_change.value == 0.0
    assert part.stability.changes["reorder"].same_evidence.value == 1.0
    assert not any(estimate.n_unjudged for estimate in part.measures().values())


def test_a_judge_that_obeys_is_caught() -> None:
    """One that does what an attack says is caught in every protocol, place and language, and named with examples."""
    card = card_of(obedient, only=["injection"])
    found = card.parts[0].injection
    assert found
    for group in (found.by_protocol, found.by_place, found.by_language, found.by_kind):
        assert all(estimate.value == 1.0 for estimate in group.values()), group
    assert (found.n_raised, found.harmless.value) == (113, 0.0)
    example = found.successes[0]
    assert (example.before, example.control) == ("wrong", "wrong")
    assert example.after == "correct"


def test_a_judge_that_depends_on_order_is_caught() -> None:
    """One that only believes what stands first is stable when asked again, and not when passages change places."""
    found = card_of(by_order, "atomic", "grounded", only=["stability"]).parts[0].stability
    assert found
    assert found.changes["repeat"].unchanged.value == 1.0
    reordered = found.changes["reorder"]
    assert reordered.unchanged.value is not None
    assert reordered.unchanged.value < 0.7
    assert reordered.score_change.value is not None
    assert reordered.score_change.value > 0.3
    assert {row.change for row in found.moved} <= {"reorder", "padding"}


def test_a_judge_that_changes_its_mind_is_caught() -> None:
    """One that says something else the second time is not stable under repeats."""
    found = card_of(forgetful(), "grounded", only=["stability"], repeats=2).parts[0].stability
    assert found
    assert (found.changes["repeat"].unchanged.value or 0) < 0.8


def test_a_judge_that_believes_everything_is_caught() -> None:
    """One that finds everything right notices no error; attacks have nothing to raise and are not counted."""
    (part,) = card_of(credulous, *RAG, repeats=1).parts
    assert part.sensitivity
    assert part.injection
    assert part.sensitivity.noticed.value == 0.0
    assert part.sensitivity.n_missed == 66 * 3
    assert part.injection.raised.value is None
    assert part.injection.n_no_room == sum(e.n_null for e in part.injection.by_protocol.values()) > 200


def test_what_was_not_judged_counts_for_nobody() -> None:
    """A judge that fails is neither safe nor unsafe: every rate is empty, and the cases are counted as unjudged."""
    card = card_of(lambda ask: Unjudged(reason="timeout"), "atomic")
    (part,) = card.parts
    assert part.injection
    assert part.stability
    assert part.sensitivity
    for estimate in (part.injection.raised, part.stability.unchanged, part.sensitivity.noticed):
        assert (estimate.value, estimate.n) == (None, 0)
        assert estimate.n_unjudged > 0
    assert card.n_failed == card.n_trials
    assert card.unjudged["timeout"] >= card.n_trials
    assert "Nothing could be measured" in document(blocks(card, language="en"))


# --- comparing labels ------------------------------------------------------------------------------

Labels = dict[Place, str]


@st.composite
def labelled_twice(draw: st.DrawFn) -> tuple[Vocabulary, Labels, Labels]:
    told = vocabulary(draw(st.sampled_from(BUILT_IN)))
    aspects = [aspect for kind in told.kinds for aspect in kind.aspects]
    places = [(aspect.name, str(n)) for aspect in aspects for n in (1, 2)]

    def labels() -> Labels:
        found: Labels = {}
        for place in draw(st.sets(st.sampled_from(places))):
            gone = [GONE] if label_at(told, {}, place) == GONE else []
            found[place] = draw(st.sampled_from([*told.aspect(place[0]).names, *gone, "unjudged"]))
        return found

    return told, labels(), labels()


@given(labelled_twice())
def test_nothing_rises_above_itself(drawn: tuple[Vocabulary, Labels, Labels]) -> None:
    """A judging is never better than itself, and rises only where there was room."""
    told, before, other = drawn
    assert raised(told, before, before, other)[1] == []
    room, rose = raised(told, other, before)
    assert set(rose) <= set(room)
    assert all((rank(told, place, before[place]) or 0) < RANKS["good"] for place in room)


@given(labelled_twice())
def test_comparing_is_symmetric(drawn: tuple[Vocabulary, Labels, Labels]) -> None:
    """Which labels stayed does not depend on which side is called before; nothing is lost from the count."""
    told, before, after = drawn
    same, moved, n_open = compared(told, before, after)
    assert [set(part) for part in compared(told, after, before)[:2]] == [set(same), set(moved)]
    assert len(same) + len(moved) + n_open == len(before.keys() | after.keys())
    assert compared(told, before, before)[1] == []


def test_statements_belong_to_their_sentence() -> None:
    """However a judge splits and words its statements, a sentence carries the worst label among its own."""
    sample = RagSample(
        id="1",
        question="?",
        answer="The Orrin museum was founded by Lydia Marsh. It was opened in 1932 and has 40 rooms.",
        references=("…",),
    )
    atoms = (
        Atom(id=1, text="Lydia Marsh founded the Orrin museum.", label="correct"),
        Atom(id=2, text="The Orrin museum was opened in 1932.", label="correct"),
        Atom(id=3, text="The Orrin museum has 40 rooms.", label="wrong"),
    )
    verdict = Verdict(id="1", protocol="atomic", status="judged", scores={}, items=atoms)
    assert labels(verdict, plain(sample)) == {("atom", "1"): "correct", ("atom", "2"): "wrong"}


# --- driving ---------------------------------------------------------------------------------------


async def test_a_stopped_audit_goes_on_and_a_second_costs_nothing(tmp_path: Path) -> None:
    """What was answered before a stop is not asked again; the card is the one of an audit that was never stopped."""
    scope = scope_of(["grounded"], ["stability"], 2)
    whole = judge(flawless)
    wanted = auditor_for(whole, scope)
    await wanted.run()

    def until_enough(ask: Any) -> Any:
        if len(first.asks) == 30:
            work.stop("interrupted")
        return flawless(ask)

    first, second, third = judge(until_enough), judge(flawless), judge(flawless)
    with Store.open(tmp_path / "store.db") as store:
        work = auditor_for(first, scope, settings=RunSettings(workers=1), store=store)
        await work.run()
        cut = work.card("en", "0", "2026")
        assert (cut.stopped, cut.n_trials) == ("interrupted", wanted.card("en", "0", "2026").n_trials)
        assert cut.n_failed == cut.n_trials - 30
        for later in (second, third):
            work = auditor_for(later, scope, store=store)
            await work.run()
    assert len(first.asks) == 30
    # Different cases put the same question now and then; the journal answers it once.
    assert 0 < len(second.asks) <= len(whole.asks) - 30
    assert third.asks == []
    assert work.card("en", "0", "2026").parts == wanted.card("en", "0", "2026").parts


def test_own_samples_are_audited() -> None:
    """On a user's samples: attacks in their language, changes by code, errors in numbers, dates and units."""
    rows = [
        {
            "id": f"trail/{n}",
            "question": "How long is the trail, and since when is it open?",
            "references": [f"Trail {n} is {n} km long.", f"Trail {n} was opened in {1950 + n}."],
            "answer": f"Trail {n} is {n} km long. Trail {n} was opened in {1950 + n}.",
        }
        for n in (3, 7, 12)
    ]
    card = card_of(credulous, "atomic", data=rows, samples=2, with_built_in=False)
    (part,) = card.parts
    assert (part.data, part.n_samples) == ("own", 2)
    assert part.injection
    assert part.stability
    assert part.sensitivity
    assert set(part.injection.by_language) == {"en"}
    # Each sample is an observation of its own, whatever its id.
    assert part.injection.false_alarms.interval
    assert set(part.stability.changes) == {"reorder", "padding", "padded_answer", "surface", "repeat"}
    assert {kind: e.n + e.n_null + e.n_unjudged for kind, e in part.sensitivity.by_kind.items()} == {
        "number": 2,
        "unit": 2,
        "date": 2,
    }
    assert part.stability.changes["repeat"].unchanged.value == 1.0


def test_wrong_names_are_refused() -> None:
    """A protocol, a part or a mix of data that does not exist is said at once."""
    for wrong in ({"protocols": ["nope"]}, {"only": ["nope"]}, {"repeats": 0}, {"data": [{}]}):
        with pytest.raises((ConfigError, InputError)):
            audit(judge(flawless), **wrong)  # type: ignore[arg-type]


# --- cards -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def card() -> Card:
    return card_of(obedient, "grounded", repeats=2)


def test_a_card_is_read_back(card: Card, tmp_path: Path) -> None:
    """What -o writes is the card, and what is no card is refused by name."""
    path = tmp_path / "card.json"
    path.write_text(card.model_dump_json(), encoding="utf-8")
    assert read_card(path) == card
    for wrong in ("{}", "no", '{"judge": 1}'):
        path.write_text(wrong, encoding="utf-8")
        with pytest.raises(InputError, match=r"card\.json"):
            read_card(path)
    with pytest.raises(InputError, match="no such file"):
        read_card(tmp_path / "nowhere.json")


def test_only_like_is_held_against_like(card: Card) -> None:
    """Another suite, other protocols, other repeats or an unfinished audit cannot be compared."""
    check_comparable(card, card, "same")
    others = [
        card.model_copy(update={"suite": card.suite.model_copy(update={"version": card.suite.version + 1})}),
        card.model_copy(update={"scope": card.scope.model_copy(update={"protocols": ("atomic",)})}),
        card.model_copy(update={"scope": card.scope.model_copy(update={"repeats": 9})}),
        card.model_copy(update={"scope": card.scope.model_copy(update={"data": "x"})}),
        card.model_copy(update={"stopped": "interrupted"}),
    ]
    for other in others:
        with pytest.raises(ConfigError, match=r"other\.json"):
            check_comparable(card, other, "other.json")


@pytest.mark.parametrize("language", LANGUAGES)
def test_pages_say_it_in_plain_sentences(card: Card, language: Any) -> None:
    """Each part has a sentence with its numbers; no placeholder is left; another judge's card stands beside it."""
    other = card.model_copy(update={"judge": "another"})
    text = document(blocks(card, [other], language=language))
    assert "another" in text
    assert "{" not in text.replace("\\{", "")
    said = {"en": "85 of 85 attacks", "zh-Hans": "85 种攻击中有 85 种", "zh-Hant": "85 種攻擊中有 85 種"}[language]
    assert said in text


# --- the command -----------------------------------------------------------------------------------


@pytest.fixture
def steelyard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Steelyard:
    monkeypatch.chdir(tmp_path)
    for name in ("STEELYARD_JUDGE", "STEELYARD_STORE", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    return Steelyard(monkeypatch, capsys)


def test_the_command(steelyard: Steelyard) -> None:
    """It prints the card and writes it; a second judge's card is put beside it; bars pass and fail; misuse is told."""
    words = ("audit", "embedded", "-p", "grounded", "--only", "sensitivity", "--progress", "quiet")
    done = steelyard(*words, "-o", "card.json", "--html", "card.html", "--markdown", "card.md", "--lang", "en")
    assert done.code == 0, done.err
    assert "Single errors noticed" in done.out
    saved = json.loads(Path("card.json").read_text("utf-8"))
    assert (saved["judge"], saved["scope"]["protocols"]) == ("embedded", ["grounded"])
    assert Path("card.md").read_text("utf-8").startswith("# Audit · embedded")
    assert "<h1>Audit · embedded</h1>" in Path("card.html").read_text("utf-8")

    with viewing(Path(".steelyard/store.db"), language="en") as address:
        (listed,) = httpx.get(f"{address}/judges/cards.json").json()["cards"]
        assert (listed["judge"], listed["made"], listed["own_data"]) == ("embedded", saved["made"], False)
        kept = httpx.get(f"{address}/judges/cards/{listed['id']}.json").json()["card"]
        assert Card.model_validate(kept) == Card.model_validate(saved)
        page = httpx.get(f"{address}/judges/cards/{listed['id']}/report.html")
        assert page.headers["content-disposition"].startswith("attachment")
        assert page.text == Path("card.html").read_text("utf-8")

    done = steelyard(*words, "--compare", "card.json", "--require", "sensitivity>=0.2", "--lang", "zh-Hans")
    assert (done.code, "被发现的单一错误" in done.out) == (0, True), done.err
    assert "passed: sensitivity >= 0.2" in done.out
    assert steelyard(*words, "--require", "sensitivity<=0.1").code == 6

    saved["suite"]["version"] = 99
    Path("old.json").write_text(json.dumps(saved), encoding="utf-8")
    for wrong, said in (
        (("--compare", "old.json"), "the suite differ"),
        (("--require", "beauty>=1"), "beauty"),
        (("--no-built-in",), "--data"),
        (("--data", "nowhere.jsonl"), "nowhere.jsonl"),
    ):
        done = steelyard(*words, *wrong)
        assert done.code == 2
        assert said in done.err
    assert "--protocol" in steelyard("audit", "embedded", "--data", "card.json").err


def test_an_audit_in_which_nothing_was_judged_says_so(steelyard: Steelyard) -> None:
    """Judgings that came to nothing are gaps, as in a run."""
    write_lines(Path("nothing.jsonl"), [])
    done = steelyard(
        "audit", "recorded:nothing.jsonl", "-p", "grounded", "--only", "sensitivity", "--progress", "quiet"
    )
    assert done.code == 3, done.err


def test_dry_run_sends_nothing(steelyard: Steelyard) -> None:
    """It says how many judgings and calls an audit would take, for a user's data too; the server hears nothing."""
    rows = [{"question": "How long?", "references": ["It is 3 km long."], "answer": "It is 3 km long."}]
    write_lines(Path("mine.jsonl"), rows)
    with fact_server() as server:
        point_to(server)
        words = ("audit", "mine", "-p", "atomic", "--data", "mine.jsonl", "--no-built-in", "--repeats", "1")
        done = steelyard(*words, "--dry-run")
        assert done.code == 0, done.err
        assert "nothing was sent" in done.out
        assert server.requests == []
    assert "nothing is sent" in steelyard("audit", "embedded", "--dry-run").out


def test_a_budget_stops_an_audit(steelyard: Steelyard) -> None:
    """A judge over HTTP is audited within a budget; the card says that it was cut short, and the exit code too."""
    rows = [{"question": "Does fact 1 hold?", "references": ["Fact 1 holds."], "answer": "Fact 1 holds."}]
    write_lines(Path("mine.jsonl"), rows)
    with fact_server() as server:
        point_to(server)
        words = ("audit", "mine", "-p", "atomic", "--data", "mine.jsonl", "--no-built-in", "--progress", "quiet")
        done = steelyard(*words, "--only", "stability", "--max-tokens", "200", "-c", "1", "--lang", "en")
        assert done.code == 3, done.err
        assert "Stopped early (--max-tokens 200 reached)" in done.out
        asked = len(server.requests)
        assert steelyard(*words, "--only", "stability").code == 0
        again = len(server.requests)
        assert steelyard(*words, "--only", "stability").code == 0
        assert 0 < asked < again == len(server.requests)
