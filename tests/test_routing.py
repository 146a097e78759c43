"""Two judges in a row: the first decides what it is sure of, the second gets the rest."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from command import Steelyard, judge_plainly, lines_of, write_lines
from court import down, one, scripted
from endpoint import Loopback, Request, Say, Status
from feeding import RAG, TALK
from steelyard import ScriptedJudge, evaluate
from steelyard.engine.manifest import differing
from steelyard.errors import ConfigError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges import Member, PanelJudge, RecordedJudge, Recorder, RoutedJudge
from steelyard.prompts import Prompts
from steelyard.records import Ask, Reply, Unjudged, Verdict
from steelyard.settings import Settings
from steelyard.store import Store
from steelyard.web.exchanges import exchanges

# With this date none of the four labels is among those that both judge.
DATE = "2026-03-01"
OUT, STORE = "out.jsonl", Path(".steelyard/store.db")


def sure(of: Mapping[int, float], name: str = "first", **labels: str) -> ScriptedJudge:
    """A judge that gives its labels of atoms these confidences."""
    changes = {id: {"confidence": given, "reason": name} for id, given in of.items()}
    for key, label in labels.items():
        changes[int(key[1:])] |= {"label": label}
    return scripted(name, {"atoms": changes})


def second(**changes: Any) -> ScriptedJudge:
    return scripted("second", changes)


def who(verdict: Verdict) -> list[tuple[Any, ...]]:
    return [(getattr(item, "label", None), item.judge, item.confidence) for item in verdict.items]


def items_asked(judge: ScriptedJudge, task: str = "atomic.judge") -> list[dict[str, list[int]]]:
    asks = [ask for ask in judge.asks if ask.task == task]
    return [{name: [item.id for item in items] for name, items in ask.data.items().items()} for ask in asks]


# --- who decides ---------------------------------------------------------------------------------------------


def test_the_first_keeps_what_it_is_sure_of() -> None:
    """An item at or above the threshold keeps its label; the second judge is asked about the others, and only them."""
    first, then = sure({1: 0.9, 2: 0.6}), second(atoms={1: {"label": "wrong"}, 2: {"label": "wrong"}})
    verdict = one(RoutedJudge(first, then, sample=0))
    assert who(verdict) == [("correct", "first", 0.9), ("wrong", "second", None)]
    assert verdict.items[0].reason == "first"
    assert items_asked(first) == [{"atoms": [1, 2]}]
    assert items_asked(then) == [{"atoms": [2]}]
    assert verdict.judge == "routed first > second"


def test_no_confidence_is_not_sure() -> None:
    """A judge that says nothing of how sure it is, or leaves an item out or unsure, passes it on."""
    unsure = {"items": "criteria", "id": 1, "reason": "cannot tell"}
    first = ScriptedJudge(lambda ask: {"criteria": [], "unsure": [unsure]} if "dialogue" in ask.task else None)
    then = second()
    verdict = one(RoutedJudge(first, then, sample=0), "dialogue")
    assert verdict.status == "judged"
    assert {item.judge for item in verdict.items} == {"second"}
    assert {item.judge for item in one(RoutedJudge(scripted("first"), second(), sample=0)).items} == {"second"}


def test_nothing_is_asked_where_all_is_sure() -> None:
    """The second judge then only splits the answer; told otherwise, the first does that too."""
    first, then = sure({1: 1.0, 2: 0.95}), second()
    assert one(RoutedJudge(first, then, sample=0)).status == "judged"
    assert [ask.task for ask in then.asks] == ["atomic.split"]
    alone = second()
    one(RoutedJudge(sure({1: 1.0, 2: 0.95}), alone, sample=0, lists="first"))
    assert alone.asks == []


def test_thresholds_by_label() -> None:
    """What is said most closely counts: kind and label, then kind, then the default; null is never sure."""
    of = {1: 0.8, 2: 0.8}
    for threshold, expected in (
        ({"default": 0.5, "atom.wrong": 0.9}, ["first", "second"]),
        ({"default": 0.95, "atom": 0.7}, ["first", "first"]),
        ({"atom.correct": 0.7}, ["first", "second"]),
        ({"default": 0.1, "atom": None}, ["second", "second"]),
    ):
        verdict = one(RoutedJudge(sure(of, _2="wrong"), second(), sure=threshold, sample=0))
        assert [item.judge for item in verdict.items] == expected, threshold


def test_a_check_has_a_threshold_of_its_own() -> None:
    """The checks of `grounded` are told apart by name; sentences count as parts."""
    given = {"checks": {id: {"confidence": 0.8} for id in range(1, 7)}, "sentences": {1: {"confidence": 0.8}}}
    threshold = {"default": 0.5, "check.on_topic": 0.9, "check.complete.1": 0.9, "part": 0.95}
    verdict = one(RoutedJudge(scripted("first", given), second(), sure=threshold, sample=0), "grounded")
    by = {item.name: item.judge for item in verdict.items}  # type: ignore[union-attr]
    assert [name for name, judge in by.items() if judge == "second"] == ["from_background", "on_topic", "complete"]


def test_what_is_said_of_the_whole_answer() -> None:
    """It comes from the second judge where items were passed on or there are none, else from the first."""
    refusing = {"fallback": True}
    first = ScriptedJudge(lambda ask: _atoms(ask, {1: 0.99, 2: 0.99}, fallback=False))
    then = scripted("second", atomic_judge={"atoms": [], **refusing})
    assert one(RoutedJudge(first, then, sample=0)).scores["fallback"] == 0
    passing = ScriptedJudge(lambda ask: _atoms(ask, {1: 0.99, 2: 0.1}, fallback=False))
    assert one(RoutedJudge(passing, then, sample=0)).scores["fallback"] == 1
    empty = scripted("second", atomic_split={"atoms": []}, atomic_judge=refusing)
    assert one(RoutedJudge(first, empty, sample=0)).scores["fallback"] == 1


def _atoms(ask: Ask, of: Mapping[int, float], fallback: bool) -> dict[str, Any]:
    from feeding import respond

    return respond(ask, atoms={id: {"confidence": given} for id, given in of.items()}, fallback=fallback)


def test_where_the_second_fails_nothing_is_guessed() -> None:
    """An unsure label is not used: the ask is unjudged for the second judge's reason, unless all that was missing is a
    comparison. Where the first fails, the second judges all."""
    verdict = one(RoutedJudge(sure({1: 0.95, 2: 0.2}), _silent(), sample=0))
    assert {(item.label, item.reason) for item in verdict.items} == {("unjudged", "timeout")}  # type: ignore[union-attr]
    checked = one(RoutedJudge(sure({1: 0.95, 2: 0.95}), _silent(), sample=1))
    assert {item.judge for item in checked.items} == {"first"}
    assert {item.judge for item in one(RoutedJudge(down("first"), second())).items} == {"second"}


def _silent() -> ScriptedJudge:
    """It splits, and then it is down."""
    made = ScriptedJudge(
        lambda ask: _split(ask) if ask.task == "atomic.split" else Unjudged(reason="timeout", detail="silent")
    )
    made.name = "second"
    return made


def _split(ask: Ask) -> dict[str, Any]:
    from feeding import respond

    return respond(ask)


def test_three_in_a_row() -> None:
    """What neither of two is sure of goes to the third."""
    middle = sure({2: 0.95, 1: 0.1}, "middle")
    judge = RoutedJudge(sure({1: 0.1, 2: 0.1}), RoutedJudge(middle, second(), sample=0), sample=0)
    assert [item.judge for item in one(judge).items] == ["second", "middle"]
    assert judge.name == "routed first > middle > second"


def test_panels_are_sure_where_they_agree() -> None:
    """A panel's confidence is its share of votes, as the first judge or as the second."""
    panel = PanelJudge([Member(scripted("a")), Member(scripted("b", {"atoms": {2: {"label": "wrong"}}}))])
    verdict = one(RoutedJudge(panel, second(), sample=0))
    assert who(verdict) == [("correct", "panel of a + b", 1.0), ("correct", "second", None)]
    verdict = one(RoutedJudge(sure({1: 0.95, 2: 0.1}), panel, sample=0))
    assert [(item.confidence, item.confidence_kind) for item in verdict.items] == [
        (0.95, "probability"),
        (0.5, "votes"),
    ]


# --- the sample that both judge ------------------------------------------------------------------------------


def test_a_sample_is_asked_of_both() -> None:
    """The first one's label stands; what the second says is kept beside it and counted in the report."""
    then = second(atoms={2: {"label": "wrong"}})
    results = evaluate([RAG], judge=RoutedJudge(sure({1: 0.95, 2: 0.95}), then, sample=1))
    assert items_asked(then) == [{"atoms": [1, 2]}]
    assert who(results[0]) == [("correct", "first", 0.95), ("correct", "first", 0.95)]
    opinions = [item["second_opinion"] for item in results.to_dicts()[0]["items"]]
    assert opinions == [
        {"judge": "second", "label": "correct", "agrees": True},
        {"judge": "second", "label": "wrong", "agrees": False},
    ]
    report = results.report("en")
    assert report.routing is not None
    assert report.routing.decided == {"atom": {"first": 2}}
    assert (report.routing.second_opinions["atom"].n, report.routing.second_opinions["atom"].agreed) == (2, 1)
    summary = " ".join(results.summary("en").split())
    assert "Decided · Statements: 2 by first (100.0%)." in summary
    assert "the second judge gives 1 of 2 labels that the first was sure of the same way (50.0%," in summary


def test_the_sample_is_always_the_same() -> None:
    """Which labels are compared depends on what is judged, not on thresholds or chance; the share is about right."""
    judge = RoutedJudge(down("a"), down("b"), sample=0.05)
    asks = [second_ask(n) for n in range(2000)]
    drawn = [judge._is_checked(ask, "atoms", 1) for ask in asks]
    other = RoutedJudge(down("c"), down("d"), sample=0.05, sure=0.5)
    assert drawn == [other._is_checked(ask, "atoms", 1) for ask in asks]
    assert 70 < sum(drawn) < 130


def second_ask(n: int) -> Ask:
    from steelyard.records import Numbered
    from steelyard.tasks import ValidityData, ValidityReply

    data = ValidityData(system_prompt=str(n), criteria=(Numbered(id=1, text="x"),))
    return Ask(task="dialogue.validity", language="en", data=data, reply=ValidityReply)


def test_dialogues_are_routed_too() -> None:
    """Validity and compliance are separate asks; an item says who gave its label."""
    first = scripted("first", {"criteria": {1: {"confidence": 0.99}}})
    (verdict,) = evaluate([TALK], protocol="dialogue", judge=RoutedJudge(first, second(), sample=0))
    assert verdict.status == "judged"
    assert {item.judge for item in verdict.items} == {"first", "second"}


# --- by name, in the store, on the command line --------------------------------------------------------------

SURE = {1: 0.99, 2: 0.5, 3: 0.97, 4: 0.95}
"""How sure the small model is of the atom of fact n."""


def two_facts(path: Path = Path("facts.jsonl")) -> Path:
    """Two samples of two facts each: 1 and 2, 3 and 4."""
    return write_lines(
        path,
        [
            {
                "id": f"s{n}",
                "question": "Which facts hold?",
                "references": [f"Fact {n} holds, as everybody knows. Fact {n + 1} holds, they say."],
                "answer": f"Fact {n} holds. Fact {n + 1} holds.",
                "date": DATE,
            }
            for n in (1, 3)
        ],
    )


def models(**settings: Any) -> Loopback:
    """A server with a small model that gives probabilities and a large one that knows better: fact 2 is wrong."""

    def reply(request: Request) -> Any:
        if request.task == "atomic.split":
            n = 1 if "Fact 1 " in request.user else 3
            return {"atoms": [{"id": id, "text": f"Fact {n + id - 1} holds."} for id in (1, 2)]}
        asked = re.findall(r"^(\d)\. Fact (\d) holds\.$", request.user, re.MULTILINE)
        large = request.body["model"] == "large"
        atoms = [
            {
                "id": int(id),
                "reference": 0,
                "quote": f"Fact {n} holds",
                "label": "wrong" if large and n == "2" else "correct",
                "source": "reference",
                "level": 1,
            }
            for id, n in asked
        ]
        return Say({"atoms": atoms, "fallback": False}, sure=tuple(SURE[int(n)] for _, n in asked))

    return Loopback(reply_for=reply, **settings)


def configure(server: Loopback, more: str = "") -> None:
    tables = [
        f'[judges.{name}]\nbase_url = "{server.url}"\nmodel = "{name}"\nretries = 0\nkey_env = "MY_KEY"\n'
        f"logprobs = {str(name == 'small').lower()}\nprice = {{ prompt = 1, completion = 2 }}\n"
        for name in ("small", "large")
    ]
    Path("steelyard.toml").write_text("\n".join(tables) + more, encoding="utf-8")


def calls(server: Loopback) -> list[tuple[str, str | None]]:
    return [(request.body["model"], request.task) for request in server.requests]


def test_by_name_over_http(steelyard: Steelyard) -> None:
    """`-j 'small>large'`: the report says who decided what and what it saved; a run again asks nobody."""
    samples = two_facts()
    with models() as server:
        configure(server)
        done = steelyard("run", samples, "-p", "atomic", "-j", "small>large", "-o", OUT)
        assert done.code == 0, done.err
        assert sorted(calls(server)) == [
            ("large", "atomic.judge"),
            ("large", "atomic.split"),
            ("large", "atomic.split"),
            ("small", "atomic.judge"),
            ("small", "atomic.judge"),
        ]
        passed_on = server.requests[calls(server).index(("large", "atomic.judge"))]
        assert "Fact 2 holds." in passed_on.user
        again = steelyard("run", samples, "-p", "atomic", "-j", "small>large")
        assert again.code == 0, again.err
        assert len(server.requests) == 5
    atoms = [(a["label"], a["judge"], a.get("confidence")) for line in lines_of(OUT) for a in line["items"]]
    assert atoms == [
        ("correct", "small:small", 0.99),
        ("wrong", "large:large", None),
        ("correct", "small:small", 0.97),
        ("correct", "small:small", 0.95),
    ]
    out = " ".join(done.out.split())
    assert "Decided · Statements: 3 by small:small (75.0%), 1 by large:large (25.0%)." in out
    assert "Routing: 1 of 2 asks were passed on to large:large (50.0%)." in out
    assert "Saved: 1 calls to large:large, about 120 tokens or US$ 0.0001." in out
    with Store.open(STORE) as store:
        row = store.run("1")
        sample, _ = next(store.verdicts(row.id))
        told = [
            (each.judge, each.task, bool(each.messages)) for each in exchanges(store, row, sample, Prompts.shipped())
        ]
    # The viewer shows what each of them was asked, and in which words.
    assert told == [
        ("large:large", "atomic.split", True),
        ("small:small", "atomic.judge", True),
        ("large:large", "atomic.judge", True),
    ]
    assert row.judge == "routed small:small > large:large"
    assert row.manifest["judge"]["kind"] == "routed"
    assert row.manifest["routing"] == [
        {"judge": "large:large", "asks": 2, "asked": 1, "calls": 1, "tokens": 120, "cost": 0.00014}
    ]


def test_another_threshold_asks_only_what_is_new(steelyard: Steelyard) -> None:
    """Each judge's replies are its own: the first is not asked again, nor the second about what it was asked before."""
    samples = two_facts()
    with models() as server:
        configure(server)
        steelyard("run", samples, "-p", "atomic", "-j", "small>large")
        before = len(server.requests)
        done = steelyard("run", samples, "-p", "atomic", "-j", "small>large", "--sure", "0.96", "-o", OUT)
        assert done.code == 0, done.err
        assert calls(server)[before:] == [("large", "atomic.judge")]
        assert [a["judge"] for line in lines_of(OUT) for a in line["items"]] == [
            "small:small", "large:large", "small:small", "large:large",
        ]  # fmt: skip
        lower = steelyard("run", samples, "-p", "atomic", "-j", "small>large", "--sure", "0.2", "-o", OUT)
        assert lower.code == 0, lower.err
        assert len(server.requests) == before + 1


def test_resume_retry_rescore_and_the_manifest(steelyard: Steelyard) -> None:
    """A run whose second judge was down is retried without asking the first again, and rescored without anybody."""
    samples = two_facts()
    with models() as server:
        configure(server)
        usual = server.reply_for
        server.reply_for = lambda r: Status(400, "no") if _is_passed_on(r) else usual(r)
        done = steelyard("run", samples, "-p", "atomic", "-j", "small>large", "--sure", "0.96")
        assert done.code != 0
        server.reply_for = usual
        before = len(server.requests)
        retried = steelyard("retry", "last", "-o", OUT)
        assert retried.code == 0, retried.err
        assert {model for model, _ in calls(server)[before:]} == {"large"}
        changed = steelyard("resume", "last", "-j", "large>small")
        assert "was judged by routed small:small > large:large (sure 0.96), not by routed large" in changed.err
    labels = [(a["label"], a["judge"]) for line in lines_of(OUT) for a in line["items"]]
    assert labels[1] == ("wrong", "large:large")
    rescored = steelyard("rescore", "last", "-o", "again.jsonl")
    assert rescored.code == 0, rescored.err
    assert [[(a["label"], a["judge"]) for a in line["items"]] for line in lines_of("again.jsonl")] == [
        labels[:2],
        labels[2:],
    ]


def _is_passed_on(request: Request) -> bool:
    return request.body["model"] == "large" and request.task == "atomic.judge"


def test_in_the_settings(steelyard: Steelyard) -> None:
    """kind = "routed" with first, then, sure, sample and lists; `judges` lists it, `judges check` asks both."""
    table = '[judges.both]\nkind = "routed"\nfirst = "small"\nthen = "large"\nsample = 0.5\nlists = "first"\n'
    with Loopback(reply_for=lambda r: Say(judge_plainly(r), sure=(0.9, 0.9, 0.9))) as server:
        configure(server, table + 'sure = { default = 0.8, "atom.wrong" = "never" }\n')
        made = JudgeFactory(Settings.load()).judge("both")
        assert isinstance(made, RoutedJudge)
        assert (made.sure, made.sample, made.lists) == ({"default": 0.8, "atom.wrong": None}, 0.5, "first")
        assert "routed: small > large" in " ".join(steelyard("judges").out.split())
        checked = steelyard("judges", "check", "both")
        assert checked.code == 0, checked.out
        assert re.findall(r"^(judge|confidence) +(\S+)$", checked.out, re.MULTILINE) == [
            ("judge", "small:small"),
            ("confidence", "yes"),
            ("judge", "large:large"),
            ("confidence", "no"),
        ]
        assert len(server.requests) == 6
        turned = steelyard("judges", "check", "large>small")
        assert "a judge that gives no confidence passes every item on" in turned.out


def test_what_cannot_be_routed(steelyard: Steelyard) -> None:
    """Mistakes are named with their place: a threshold that is none, one judge twice, flags that do not fit."""
    with models() as server:
        configure(server, '[judges.odd]\nkind = "routed"\nfirst = "small"\nthen = "small"\n')
        samples = two_facts()
        run = ("run", samples, "-p", "atomic", "-j")
        assert "judges.odd.small is named twice" in steelyard(*run, "odd").err
        assert "sure is a confidence from 0 to 1, not 2" in steelyard(*run, "small>large", "--sure", "2").err
        assert "sure is for two judges in a row" in steelyard(*run, "small", "--sure", "0.5").err
        assert "made of several judges" in steelyard(*run, "small>large", "--repeats", "3").err
        assert "there is no judge 'nobody'" in steelyard(*run, "small>nobody").err
        assert "then" in steelyard(*run, "small>").err
        assert "none.json: cannot be read" in steelyard(*run, "small>large", "--sure", "none.json").err
        assert server.requests == []


def test_thresholds_from_a_file(steelyard: Steelyard) -> None:
    """A file of `calibrate --write-thresholds` counts for the judge it was measured of, and for no other."""
    thresholds = {"precision": 0.95, "judges": {"small:small": {"default": 0.9, "atom.correct": 0.98}}}
    Path("sure.json").write_text(json.dumps(thresholds), "utf-8")
    with models() as server:
        configure(server, '[judges.both]\nkind = "routed"\nfirst = "small"\nthen = "large"\nsure = "sure.json"\n')
        config = Settings.load()
        made = JudgeFactory(config).judge("both")
        assert isinstance(made, RoutedJudge)
        assert made.sure == {"default": 0.9, "atom.correct": 0.98}
        with pytest.raises(ConfigError, match="holds thresholds for small:small, not for large:large"):
            JudgeFactory(config).judge("large>small", {"sure": "sure.json"})


def test_what_it_would_take(steelyard: Steelyard) -> None:
    """A dry run says what is sure to be asked, and on top what it takes at most if everything is passed on."""
    samples = two_facts()
    with models() as server:
        configure(server, '[judges.both]\nkind = "routed"\nfirst = "small"\nthen = "large"\nsample = 0\n')
        done = steelyard("run", samples, "-p", "atomic", "-j", "both", "--dry-run")
        assert done.code == 0, done.err
        assert server.requests == []
    # Two splits by the large model and two readings by the small one; two more by the large one at most.
    assert re.search(r"^calls +4$", done.out, re.MULTILINE)
    assert re.search(r"and at most +2  for what is passed on \([\d,]+ tokens, \$0\.\d+\)", done.out)


def test_a_manifest_makes_the_same_judge() -> None:
    """What a run's manifest says differs with thresholds, sample, lists and either judge."""
    first, then = sure({1: 0.9}), second()
    told = RoutedJudge(first, then).describe()
    assert differing(told, RoutedJudge(first, then).describe()) == []
    for other, name in (
        (RoutedJudge(first, then, sure=0.5), "sure"),
        (RoutedJudge(first, then, sample=0.1), "sample"),
        (RoutedJudge(first, then, lists="first"), "lists"),
    ):
        assert differing(told, other.describe()) == [name]
    ask = second_ask(1)
    assert RoutedJudge(first, then).fingerprint(ask) != RoutedJudge(first, then, sure=0.5).fingerprint(ask)


def test_a_recording_says_who_decided(tmp_path: Path) -> None:
    """Replayed, the items say the same of who gave their labels, and what the second judge said."""
    file = tmp_path / "replies.jsonl"
    live = one(Recorder(RoutedJudge(sure({1: 0.95, 2: 0.1}), second(), sample=1), file))
    told = one(RecordedJudge(file))
    assert [item.model_dump() for item in told.items] == [item.model_dump() for item in live.items]
    assert [item.judge for item in told.items] == ["first", "second"]


def test_invented_items_are_counted_once() -> None:
    """What nobody asked about is dropped by the protocol, not taken for a label."""
    strange = {"id": 9, "label": "wrong", "level": 1, "reason": "", "confidence": 0.99}

    def say(ask: Ask) -> dict[str, Any]:
        given = _split(ask)
        return {**given, "atoms": [*given["atoms"], strange]} if ask.task == "atomic.judge" else given

    verdict = one(RoutedJudge(ScriptedJudge(say), second(), sample=0))
    assert len(verdict.items) == 2


def test_both_are_closed_and_paid() -> None:
    """The usage of a routed reply is that of both judges."""
    judge = RoutedJudge(sure({1: 0.95, 2: 0.1}), second(), sample=0)
    assert one(judge).usage.calls == 3
    reply = asyncio.run(judge.answer(second_ask(1)))
    assert isinstance(reply, Reply)
    assert reply.usage.calls == 2
