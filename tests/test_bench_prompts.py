"""The bench of the prompts: samples labelled as built, findings that are right, a run end to end that resumes."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import tomllib
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from endpoint import Loopback, Request, Say, Status
from small_model import small_model
from steelyard.judges import ChatJudge, Endpoint
from steelyard.prompts import Prompts, nonce
from steelyard.records import Again, Ask, Numbered
from steelyard.tasks import (
    AtomicData,
    AtomicReply,
    KeyPointsData,
    KeyPointsReply,
    ScorecardData,
    ScorecardReply,
    SplitData,
    SplitReply,
    ValidityData,
    ValidityReply,
)

BENCH = Path(__file__).parent.parent / "bench"
LANGUAGES = ("zh", "en")


@pytest.fixture(autouse=True)
def _bench_on_path(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Its modules import each other as scripts do; `run` is also the name of the other bench's command."""
    monkeypatch.syspath_prepend(str(BENCH / "prompts"))
    sys.modules.pop("run", None)
    yield
    sys.modules.pop("run", None)


# --- samples ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogues_are_labelled_as_they_were_built(language: str) -> None:
    """An answer holds the words of a rule exactly where the rule is expected to be kept."""
    from dialogues import PARTS, dialogues

    rules = {rule["criterion"]: rule for rule in tomllib.loads(PARTS.read_text("utf-8"))[language]["rules"]}
    for sample, expected in dialogues(language, 50):
        assert [(label.turn, label.criterion) for label in expected] == [
            (number, text) for number, turn in enumerate(sample.turns, start=1) for text in turn.criteria
        ]
        for label in expected:
            rule, turn = rules.get(label.criterion), sample.turns[label.turn - 1]
            assert label.valid == (rule is not None and rule["says"] in sample.system_prompt)
            if rule is None:
                assert label.satisfied is None
            elif "occasion" in rule and rule["occasion"] != turn.prompt:
                assert label.satisfied is True
                assert rule["breaks"] not in turn.answer
            else:
                assert label.satisfied == (rule["keeps"] in turn.answer)


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogues_are_the_same_every_time_and_hold_every_case(language: str) -> None:
    """The first fifty begin with the first five, and kept, broken and groundless criteria all occur."""
    from dialogues import dialogues

    fifty = list(dialogues(language, 50))
    assert fifty[:5] == list(dialogues(language, 5))
    cases = [(label.valid, label.satisfied) for dialogue in fifty for label in dialogue.expected]
    assert min(cases.count(case) for case in ((True, True), (True, False), (False, None))) >= 40


@pytest.mark.parametrize("language", LANGUAGES)
def test_no_rule_of_code_decides_a_criterion(language: str) -> None:
    """Every criterion reaches the judge; one that code decides would measure nothing."""
    from dialogues import dialogues

    from steelyard.protocols.dialogue import split_type
    from steelyard.protocols.rules import rule_on

    for sample, _ in dialogues(language, 50):
        for turn in sample.turns:
            assert [text for text in turn.criteria if rule_on(split_type(text)[0], turn.answer)] == []


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), "utf-8")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A folder like that of the public sets, with made-up rows."""
    folder = tmp_path / "data"
    folder.mkdir()
    passage = (
        "The mill stands by the river. " * 4 + "The bridge was built in 1902 by two brothers from the village. " * 9
    )
    write(
        folder / "sentences_en_memerag.jsonl",
        [
            {
                "id": str(number),
                "question": "When was the bridge built?",
                "passages": ["A page about boats.", passage, "Cheese comes in wheels."],
                "sentences": [{"text": "The bridge was built in 1902.", "support": support, "relevance": 1}],
            }
            for number, support in enumerate(["supported", "unsupported", "unclear", "supported"])
        ],
    )
    write(
        folder / "support_en_factcheckgpt.jsonl",
        [
            {"id": f"claim-{label}", "claim": "The bridge is old.", "passages": [passage], "label": label}
            for label in ("supported", "partial", "contradicted")
        ],
    )
    write(
        folder / "keywords_zh_uhgeval.jsonl",
        [
            {
                "id": f"news-{number}",
                "question": "新桥通车",
                "passages": ["新桥于1902年通车。", "两兄弟出资修建了这座桥。"],
                "answer": "新桥于1903年通车。",
                "true_answer": "新桥于1902年通车。" if number < 4 else "【新桥",
                "keywords": [{"keyword": "1903年", "reasonable": False}],
            }
            for number in range(6)
        ],
    )
    write(
        folder / "pairs_en_ragchecker.jsonl",
        [
            {
                "id": f"pair-{number}",
                "query": "When was the bridge built?",
                "answer_1": {"response": "The bridge was built in 1902."},
                "answer_2": {"response": f"It was built in {1903 + number}, by two brothers."},
            }
            for number in range(6)
        ],
    )
    return folder


def test_answers_take_turns_and_are_short(data: Path) -> None:
    """Both sets and both labels alternate; what nobody could label and what breaks off is left out."""
    from public_sets import LONGEST_PASSAGE, answers

    english = answers(data, "en", 50)
    assert [answer.supported for answer in english[:4]] == [True, False, True, False]
    assert {answer.sample.id for answer in english} == {
        *("memerag-0", "memerag-1", "memerag-3"),
        *("claim-supported", "claim-partial", "claim-contradicted"),
    }
    for sample, _ in english:
        assert any("1902" in passage for passage in sample.references)
        assert all(len(passage) <= LONGEST_PASSAGE["en"] for passage in sample.references)
    chinese = answers(data, "zh", 50)
    assert {(answer.sample.answer, answer.supported) for answer in chinese} == {
        ("新桥于1902年通车。", True),
        ("新桥于1903年通车。", False),
    }
    assert answers(data, "zh", 1) == chinese[:1]


def test_missing_set_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Without the data there are no answers, and the output says which file is not there."""
    from public_sets import answers

    assert answers(tmp_path, "zh", 5) == []
    assert "keywords_zh_uhgeval.jsonl" in capsys.readouterr().out


# --- findings --------------------------------------------------------------------------------------

ATOMS = (Numbered(id=1, text="It opens at nine."), Numbered(id=2, text="It is blue."))
PASSAGES = ("The shop opens at nine in the morning.",)


def atomic_ask() -> Ask:
    data = AtomicData(question="?", references=PASSAGES, answer="…", date="", place="", atoms=ATOMS)
    return Ask(task="atomic.judge", language="en", data=data, reply=AtomicReply)


def atom(id: int, label: str = "undetermined", **more: Any) -> dict[str, Any]:
    return {"id": id, "label": label, "level": 1} | more


@pytest.mark.parametrize(
    ("atoms", "kinds"),
    [
        ([atom(1), atom(2)], []),
        ([atom(1, "correct", quote="opens at nine"), atom(2)], []),
        ([atom(1, "correct", source="own_knowledge"), atom(2)], []),
        ([atom(1)], ["missing ids"]),
        ([atom(1), atom(2), atom(3)], ["invented ids"]),
        ([atom(1), atom(2), atom(2)], ["repeated ids"]),
        ([atom(1, "wrong", quote="opens at ten"), atom(2, "correct")], ["no quote", "quote not found"]),
    ],
)
def test_findings_about_atoms(atoms: list[dict[str, Any]], kinds: list[str]) -> None:
    """Each kind of mistake is found, each once, and nothing is found where nothing is wrong."""
    from findings import findings

    assert findings(atomic_ask(), AtomicReply.model_validate({"atoms": atoms, "fallback": False})) == kinds


def test_findings_about_other_tasks() -> None:
    """A split must cover the answer, key points must not be empty, sentences and criteria must quote."""
    from findings import findings

    def found(task: str, data: Any, reply: Any, said: dict[str, Any]) -> list[str]:
        return findings(Ask(task=task, language="en", data=data, reply=reply), reply.model_validate(said))

    split = SplitData(question="?", answer="The shop opens at nine. Parking behind the church costs nothing.")
    half = {"atoms": [{"id": 1, "text": "The shop opens at nine."}]}
    assert found("atomic.split", split, SplitReply, half) == ["not covered"]
    points = KeyPointsData(question="?", references=PASSAGES, reference_answer=None)
    assert found("scorecard.key_points", points, KeyPointsReply, {"key_points": []}) == ["empty list"]
    card = ScorecardData(
        question="?", references=PASSAGES, date="", place="", sentences=ATOMS[:1], key_points=(), atoms=()
    )
    said = {"sentences": [{"id": 1, "on_topic": True, "support": "supported", "quote": "at midnight, on the roof"}]}
    assert found("scorecard.judge", card, ScorecardReply, said) == ["quote not found"]
    validity = ValidityData(system_prompt="Be brief.", criteria=ATOMS[:1])
    said = {"criteria": [{"id": 1, "valid": True}]}
    assert found("dialogue.validity", validity, ValidityReply, said) == ["no quote"]


# --- first tries -----------------------------------------------------------------------------------

GOOD = {"atoms": [atom(1), atom(2)], "fallback": False}
CAPITAL = {"atoms": [atom(1, "Undetermined"), atom(2)], "fallback": False}
CODED = {"code": nonce(atomic_ask()), **GOOD}


@pytest.mark.parametrize(
    ("said", "form", "wrong"),
    [
        (Say(GOOD), "clean", []),
        (Say(f"```json\n{json.dumps(CODED)}\n```"), "fenced", []),
        (Say(CAPITAL), "tidied", []),
        (Say(json.dumps(CODED).replace("}]", "},]")), "repaired", []),
        (Say(json.dumps(CODED)[:60]), None, ["bad JSON"]),
        (Say("I cannot judge this."), None, ["no reply"]),
        (Say(json.dumps(GOOD)), None, ["no reply"]),
        (Say({"atoms": [atom(1, "perhaps"), atom(2)], "fallback": False}), None, ["wrong enum"]),
        (Say({"atoms": [{"id": 1, "label": "wrong"}, atom(2)], "fallback": False}), None, ["missing key"]),
        (Say('{"atoms": [', finish_reason="length"), None, ["cut off"]),
    ],
)
async def test_first_try_is_noted(said: Say, form: str | None, wrong: list[str]) -> None:
    """What the judge first said is classified as it came; the reply that counts may come of a second try."""
    from watching import WatchedJudge

    notes: list[dict[str, Any]] = []
    with Loopback(GOOD) as server:
        # A failed first try is asked for anew from the start, and fails the same way before it is corrected.
        server.script(said, *([said] if form is None else []))
        prompts = Prompts.shipped()
        chat = ChatJudge(server.endpoint(structured="json_schema"), prompts)
        judge = WatchedJudge(chat, prompts, notes.append)
        await judge.answer(atomic_ask())
        await judge.aclose()
    [note] = notes
    assert (note["form"], note["wrong"]) == (form, wrong)
    assert note["prompt"] == prompts.get("atomic.judge", "en").sha256
    assert note.get("rescued", True) == (wrong != ["cut off"])


async def test_first_only_asks_nothing_twice() -> None:
    """A useless reply stays one, and what a protocol would ask again is not asked."""
    from watching import WatchedJudge

    notes: list[dict[str, Any]] = []
    with Loopback("nonsense") as server:
        prompts = Prompts.shipped()
        chat = ChatJudge(server.endpoint(structured="text"), prompts)
        judge = WatchedJudge(chat, prompts, notes.append, first_only=True)
        ask = atomic_ask()
        again = ask.model_copy(update={"again": Again(missing=("atoms 1",))})
        assert [(await judge.answer(each)).reason for each in (ask, again)] == ["invalid_reply", "not_asked"]
        await judge.aclose()
        assert (len(server.requests), len(notes)) == (1, 1)


async def test_trouble_of_the_server_is_not_noted() -> None:
    """An error status is no mistake of the prompts: nothing is measured, and the key was sent."""
    from watching import WatchedJudge

    notes: list[dict[str, Any]] = []
    with Loopback(GOOD) as server:
        server.script(Status(500))
        prompts = Prompts.shipped()
        judge = WatchedJudge(ChatJudge(server.endpoint(), prompts), prompts, notes.append, key="secret")
        reply = await judge.answer(atomic_ask())
        await judge.aclose()
        assert server.requests[0].headers["Authorization"] == "Bearer secret"
    assert getattr(reply, "reason", "") == "unreachable"
    assert notes == []


# --- end to end ------------------------------------------------------------------------------------


def reply_to(request: Request) -> str:
    """What the stub of the other bench says to a schema."""
    sys.path.insert(0, str(BENCH))
    try:
        from answers import answer_to
    finally:
        sys.path.remove(str(BENCH))
    return str(answer_to(request.body, request.user)[0])


def test_run_measures_all_tasks_and_resumes(data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row for each task but `rubric.check` and `rubric.dialogue`; a second run asks nothing and prints the same."""
    from run import main

    from steelyard.tasks import TASKS

    with Loopback() as server:
        server.reply_for = reply_to
        where = ["--folder", str(tmp_path / "out"), "--write", str(tmp_path / "table.md")]
        given = ["--url", server.endpoint().base_url, "--data", str(data), "--samples", "2", "--modes", "json_schema"]
        main([*given, *where])
        table, asked = capsys.readouterr().out, len(server.requests)
        main([*given, *where])
        assert capsys.readouterr().out == table
        assert len(server.requests) == asked > 0
    main(where)
    assert capsys.readouterr().out == table == (tmp_path / "table.md").read_text("utf-8")
    rows = [line.split(" | ")[:3] for line in table.splitlines()[2:]]
    each = [
        [f"| `{task}`", language, "json_schema"]
        for task in TASKS
        if task not in ("rubric.check", "rubric.dialogue")
        for language in ("en", "zh")
    ]
    assert rows == [*each, ["| all", "both", "json_schema"]]


def test_samples_that_prompts_were_mended_on_are_left_out(data: Path, tmp_path: Path) -> None:
    """With --skip, the count begins after them, in every protocol and language."""
    from run import main

    def judged(*arguments: str) -> set[tuple[str, str]]:
        with Loopback() as server:
            server.reply_for = reply_to
            folder = tmp_path / "-".join(arguments)
            main(["--url", server.endpoint().base_url, "--data", str(data), "--folder", str(folder), *arguments,
                  "--modes", "json_schema", "--first-only", "--protocols", "grounded", "dialogue"])  # fmt: skip
        records = map(json.loads, (folder / "asks.jsonl").read_text("utf-8").splitlines())
        return {(record["protocol"], record["sample"]) for record in records if record["kind"] == "verdict"}

    both, first, second = judged("--samples", "2"), judged("--samples", "1"), judged("--skip", "1", "--samples", "1")
    assert first | second == both
    assert not first & second
    assert len(first) == len(second) == 4


async def test_one_ask_of_a_prompt_at_a_time() -> None:
    """Different prompts are asked together, the same one never: a server has one place where it is read already."""
    from watching import WatchedJudge

    under_way: list[str] = []
    seen: list[tuple[str, ...]] = []

    class Watched(WatchedJudge):
        async def _post(self, body: Any) -> dict[str, Any]:
            name = body["messages"][0]["content"][:40]
            under_way.append(name)
            seen.append(tuple(under_way))
            for _ in range(5):
                await asyncio.sleep(0)
            under_way.remove(name)
            return {"choices": [{"message": {"content": "{}"}, "finish_reason": "stop"}]}

    prompts = Prompts.shipped()
    endpoint = Endpoint(name="x", base_url="http://localhost:1/v1", model="m", structured="text")
    judge = Watched(ChatJudge(endpoint, prompts), prompts, lambda record: None, 14, first_only=True)
    points = KeyPointsData(question="?", references=PASSAGES, reference_answer=None)
    other = Ask(task="scorecard.key_points", language="en", data=points, reply=KeyPointsReply)
    await asyncio.gather(*(judge.answer(ask) for ask in (atomic_ask(), other, atomic_ask())))
    await judge.aclose()
    assert max(map(len, seen)) == 2
    assert all(len(set(names)) == len(names) for names in seen)


def test_server_for_the_bench(tmp_path: Path) -> None:
    """It prints where it listens, with a slot for each prompt, and ends when told to."""
    model = str(small_model().path)
    command = [sys.executable, str(BENCH / "prompts" / "serve.py"), model, "--slots", "2", "--threads", "1"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        assert running.stdout
        address = running.stdout.readline().strip()
        try:
            with urllib.request.urlopen(f"{address.removesuffix('/v1')}/slots") as answer:
                assert len(json.load(answer)) == 2
        finally:
            running.terminate()
    assert running.returncode == 0


def test_table_counts_only_what_the_present_prompts_asked() -> None:
    """Records of another wording are left out, follow-ups too, and of a repeated ask only the last counts."""
    from summary import markdown

    prompts = Prompts.shipped()
    present = prompts.get("atomic.split", "en").sha256

    def ask(key: str, **changes: Any) -> dict[str, Any]:
        record = {"kind": "ask", "key": key, "task": "atomic.split", "language": "en", "mode": "text"}
        measured = {"completion_tokens": 10, "seconds": 2.0, "form": "clean", "wrong": [], "again": False}
        return record | measured | {"prompt": present} | changes

    records = [
        ask("a", form=None, wrong=["bad JSON"]),
        ask("a"),
        ask("b", wrong=["not covered"], form="repaired"),
        ask("c", wrong=["repeated ids"]),
        ask("d", prompt="an older one", form=None, wrong=["bad JSON"]),
        ask("e", again=True, form=None, wrong=["bad JSON"]),
    ]
    row, total = markdown(records, prompts).splitlines()[2:]
    cells = [cell.strip() for cell in row.strip("|").split("|")]
    assert cells == ["`atomic.split`", "en", "text", "3", "67% (21–94)", "1", "33%", "10", "2", "–", cells[-1]]
    assert sorted(cells[-1].split(", ")) == ["not covered 1", "repeated ids 1"]
    assert total.startswith("| all | both | text | 3 | 67% (21–94) |")


def test_agreement_is_balanced() -> None:
    """A judge that always says yes agrees with half, however many yeses there are."""
    from summary import markdown

    prompts = Prompts.shipped()
    shas = [prompts.get("grounded.judge", "en").sha256]
    ask = {"kind": "ask", "key": "a", "task": "grounded.judge", "language": "en", "mode": "text", "prompt": shas[0]}
    ask |= {"completion_tokens": 1, "seconds": 1, "form": "clean", "wrong": [], "again": False}
    verdicts = [
        {"kind": "verdict", "protocol": "grounded", "language": "en", "mode": "text", "sample": str(number)}
        | {"prompts": shas, "compared": [["grounded.judge", number < 9, True]]}
        for number in range(10)
    ]
    assert "| 0.50 (10) |" in markdown([ask, *verdicts], prompts)
    assert "| – |" in markdown([ask, *verdicts[:9]], prompts)
