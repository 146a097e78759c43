"""The reading pages without a browser: their JSON, their files, what labelling keeps hidden, and how fast they are."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.datastructures import QueryParams

from command import RAG, RECORDED, Steelyard, judge_plainly
from endpoint import Loopback
from reading_store import ODD_ID, add_run, filled
from report_fixtures import atomic, dialogue, grounded, rag, term
from steelyard.errors import InputError, StoreError
from steelyard.prompts import Prompts
from steelyard.records import Atom, Language, Verdict
from steelyard.reports import ReportBuilder
from steelyard.reports.model import Report
from steelyard.settings import Settings, SettingsFile
from steelyard.store import Store, Wording
from steelyard.store.listing import WORST, Range, SampleQuery
from steelyard.text.wording import LANGUAGES, say
from steelyard.trust.comparison.labels import label_changes
from steelyard.web.addresses import sample_address, sample_of, segment_of
from steelyard.web.cache import ResultCache
from steelyard.web.events import EventPace
from steelyard.web.exchanges import exchanges
from steelyard.web.jobs import RunProgress
from steelyard.web.pages.compare import proposal
from steelyard.web.pages.runs import RunSummary
from steelyard.web.pages.samples import parameters, query_of
from viewer import answer, viewing


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("reading") / "store.db"


@pytest.fixture(scope="module")
def runs(store: Path) -> dict[str, str]:
    return filled(store)


@pytest.fixture(scope="module")
def client(store: Path, runs: dict[str, str]) -> Iterator[httpx.Client]:
    with viewing(store) as address, httpx.Client(base_url=address, timeout=60, follow_redirects=True) as opened:
        yield opened


# --- addresses -------------------------------------------------------------------------------------


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_id_has_an_address(id: str) -> None:
    """A sample's id of any form is one segment of a path that leads back to it."""
    segment = segment_of(id)
    assert segment not in ("", ".", "..")
    assert "/" not in segment
    assert sample_of(httpx.URL(f"http://x/{segment}").path[1:]) == id


@pytest.mark.parametrize("id", ["car-seat", "编号 7", "a&b?c"])
def test_plain_ids_can_be_read_in_the_address(id: str) -> None:
    """Ordinary ids stand in the address as they are."""
    assert not segment_of(id).startswith("~")


# --- one run ---------------------------------------------------------------------------------------


def test_the_report_as_json(client: httpx.Client, runs: dict[str, str], store: Path) -> None:
    """The page's JSON holds the same report that is counted from the verdicts."""
    found = answer(client, f"/runs/{runs['scorecard']}.json")
    builder = ReportBuilder("scorecard", "en")
    with Store.open(store) as opened:
        for sample, verdict in opened.verdicts(runs["scorecard"]):
            builder.add(verdict, sample)
    assert found["report"]["scores"] == json.loads(builder.build().model_dump_json())["scores"]
    assert found["run"]["id"] == runs["scorecard"]


def test_a_running_run_is_carried_on(tmp_path: Path) -> None:
    """What is new is added to what was counted; the sum is that of a fresh count, also after a retry."""
    path, known = tmp_path / "store.db", ResultCache()
    judged = [(rag(f"s{n}", f"q{n}"), atomic(f"s{n}", ["correct", "wrong"][n % 2 :])) for n in range(5)]
    with Store.open(path) as store:
        run = add_run(store, "r", "j", judged[:2], {}, state="running")
        with store.alone_with(run):
            first = known.report(lambda: Store.open(path), store.run(run), None)
            store.add_verdicts(run, [(n, *judged[n]) for n in (4, 2)])
            second = known.report(lambda: Store.open(path), store.run(run), None)
        store.add_verdict(run, 0, rag("s0", "q0"), atomic("s0", ["wrong"]))
        store.add_verdict(run, 3, *judged[3])
        store.update_run(run, state="complete", finished="2026-03-02T10:02:00+00:00", manifest={})
        third = known.report(lambda: Store.open(path), store.run(run), None)
        builder = ReportBuilder("atomic")
        for sample, verdict in store.verdicts(run):
            builder.add(verdict, sample)
        fresh = builder.build({}, third.run if third else None)
    assert first
    assert second
    assert (first.n, second.n) == (2, 4)
    assert third == fresh
    known.close()


def test_a_killed_run_is_stopped_everywhere(tmp_path: Path) -> None:
    """The store still says that it is running; no page and no report repeats that."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        add_run(store, "r", "j", [(rag("s0", "q0"), atomic("s0", ["wrong"]))], {}, state="running")
    with viewing(path) as address:
        for page in ("/runs.json", "/runs/r.json", "/label.json", "/runs/r/label.json", "/api/v1/runs/r"):
            text = httpx.get(address + page).text
            assert '"state":"stopped"' in text
            assert '"state":"running"' not in text


def test_a_retry_that_nobody_watched_is_counted(tmp_path: Path) -> None:
    """Between two looks a run was retried on the command line; the second look sees what came of it."""
    path, known = tmp_path / "store.db", ResultCache()
    with Store.open(path) as store:
        run = add_run(store, "r", "j", [(rag("s0", "q0"), atomic("s0", ["wrong"]))], {})
        known.report(lambda: Store.open(path), store.run(run), None)
        store.add_verdict(run, 0, rag("s0", "q0"), atomic("s0", ["correct"]))
        store.update_run(run, state="complete", finished="2026-03-02T10:09:00+00:00", manifest={})
        second = known.report(lambda: Store.open(path), store.run(run), None)
    assert second
    assert (second.labels["atom"]["correct"], second.labels["atom"]["wrong"]) == (1, 0)
    known.close()


def test_a_counted_report_is_kept(tmp_path: Path) -> None:
    """Another viewer over the store need not count again, until a verdict, a bad row or the manifest is another."""
    path = tmp_path / "store.db"

    def report(known: ResultCache) -> Report | None:
        with Store.open(path) as store:
            return known.report(lambda: Store.open(path), store.run("r"), None)

    with Store.open(path) as store:
        add_run(store, "r", "j", [(rag("s0", "q0"), atomic("s0", ["wrong"])), (rag("s1"), atomic("s1"))], {"a": 1})
    first, *others = [ResultCache() for _ in range(6)]
    counted = report(first)
    with Store.open(path) as store:
        # A change that nothing notices; if anybody still counted, it would fail.
        store.write("DROP TRIGGER changed_verdict_is_unlisted")
        store.write("UPDATE samples SET verdict = replace(verdict, 'wrong', 'wrung') WHERE seq = 0")
        assert report(others[0]) == counted
        store.add_bad_row("r", InputError("is missing", file="data.jsonl", line=3, field="answer"))
        with pytest.raises(StoreError, match="damaged"):
            report(others[1])
        store.clear_bad_rows("r")
        store.update_run("r", state="complete", finished="2026-03-02T10:01:00+00:00", manifest={"a": 2})
        with pytest.raises(StoreError, match="damaged"):
            report(others[2])
        store.add_verdict("r", 0, rag("s0", "q0"), atomic("s0", ["correct"]))
    again = report(others[3])
    assert again
    assert counted
    assert again.labels["atom"]["correct"] == counted.labels["atom"]["correct"] + 1
    assert again.manifest == {"a": 2}
    for known in (first, *others):
        known.close()


def test_a_run_at_work_is_never_taken_for_counted(tmp_path: Path) -> None:
    """What is shown of it is not kept: it is about to be another."""
    path, known = tmp_path / "store.db", ResultCache()
    with Store.open(path) as store:
        run = add_run(store, "r", "j", [(rag("s0", "q0"), atomic("s0", ["wrong"]))], {}, state="running")
        with store.alone_with(run):
            assert known.report(lambda: Store.open(path), store.run(run), None)
        assert list(store.query("SELECT name FROM worked_out WHERE name = 'report'")) == []
    known.close()


def test_files_to_take_away(client: httpx.Client, runs: dict[str, str]) -> None:
    """Result lines, tables and the report come as files, never as pages of the viewer."""
    lines = client.get(f"/runs/{runs['atomic']}/results.jsonl")
    assert [json.loads(line)["id"] for line in lines.text.splitlines()][:2] == ["car-tyre", "car-seat"]
    table = client.get(f"/runs/{runs['atomic']}/results.csv").text.splitlines()
    assert table[0].lstrip("\ufeff").startswith("id,protocol,status,accuracy")
    items = client.get(f"/runs/{runs['atomic']}/results.csv", params={"items": "1"}).text.splitlines()
    assert len(items) > len(table)
    report = client.get(f"/runs/{runs['hostile']}/results.html")
    for file in (lines, report):
        assert file.headers["content-disposition"].startswith("attachment")
    assert report.headers["content-type"] == "application/octet-stream"


def test_files_of_a_run_with_any_id(tmp_path: Path) -> None:
    """The id of a run from elsewhere goes into the name of a file without becoming part of a header."""
    path, id = tmp_path / "store.db", '运行"\r\nSet-Cookie: a=b'
    with Store.open(path) as store:
        add_run(store, id, "j", [(rag("s0", "q0"), atomic("s0", ["wrong"]))], {})
    with viewing(path) as address:
        for file in ("results.jsonl", "results.csv", "results.html", "labels.jsonl"):
            given = httpx.get(f"{address}/runs/1/{file}")
            assert given.status_code == 200
            assert "set-cookie" not in given.headers


# --- one sample ------------------------------------------------------------------------------------


def test_a_sample_in_three_forms(client: httpx.Client, runs: dict[str, str]) -> None:
    """JSON, Markdown and page, also for an id full of signs."""
    for run, id in (("atomic", "car-seat"), ("hostile", ODD_ID)):
        address = sample_address(runs[run], id)
        assert answer(client, f"{address}.json")["verdict"]["id"] == id
        assert client.get(f"{address}.md").headers["content-type"].startswith("text/markdown")
        assert client.get(address).status_code == 200
    assert client.get(f"/runs/{runs['atomic']}/samples/nobody.json").json()["error"]["code"] == "not_found"
    # Half a character, in base64.
    assert client.get(f"/runs/{runs['atomic']}/samples/~7aCA").status_code == 404


def test_every_ask_is_told_with_its_reply(steelyard: Steelyard, tmp_path: Path) -> None:
    """Driven again over the stored replies, a protocol asks what it asked; each ask is worded as it was sent."""
    with Loopback({"atoms": [], "fallback": False}) as server:
        server.reply_for = lambda request: (
            {"atoms": [{"id": 1, "text": "早班车6点发车", "causal_of": None}]}
            if "causal_of" in json.dumps(request.schema)
            else {
                "atoms": [{"id": 1, "label": "wrong", "level": 1, "reference": 0, "quote": "6点20分"}],
                "fallback": False,
            }
        )
        (tmp_path / "steelyard.toml").write_text(
            f'[judges.mine]\nbase_url = "{server.url}"\nmodel = "m"\n', encoding="utf-8"
        )
        rows = [{"id": "bus", "question": "几点？", "answer": "早班车6点发车。", "references": ["6点20分发车。"]}]
        (tmp_path / "bus.jsonl").write_text(json.dumps(rows[0]) + "\n", encoding="utf-8")
        assert steelyard("run", "bus.jsonl", "-p", "atomic", "-j", "mine", "--progress", "quiet").code == 0
        sent = [request.body["messages"] for request in server.requests]
    with Store.open(tmp_path / ".steelyard" / "store.db") as store:
        row = store.run("last")
        sample, verdict = next(store.verdicts(row.id))
        told = exchanges(store, row, sample, Prompts.shipped())
        assert [[message.model_dump() for message in one.messages] for one in told] == sent
        assert [one.task for one in told] == ["atomic.split", "atomic.judge"]
        assert all(one.wording and one.wording.is_same and one.raw and one.usage.prompt_tokens for one in told)
        shipped = Prompts.shipped().get("atomic.split", "zh")
        edited = shipped.text.replace(f"version: {shipped.version}", "version: 99")
        again = exchanges(store, row, sample, Prompts.shipped().with_texts({"mine.md": edited}))
    wording = again[0].wording
    assert wording
    assert (wording.is_same, wording.version, wording.recorded_version) == (False, 99, shipped.version)
    assert isinstance(verdict.items[0], Atom)


# --- the table -------------------------------------------------------------------------------------


def test_the_query_stands_in_the_address() -> None:
    """A query becomes parameters of an address and comes back from them unchanged."""
    query = SampleQuery(
        search="图书馆 a&b",
        flags=("empty_answer",),
        labels=("atom:wrong", "atom:exempt"),
        tags=("车",),
        statuses=("partial",),
        scores={"accuracy": Range(low=0.1, high=0.5)},
        sort="accuracy",
        descending=True,
        page=3,
    )
    listed = [
        (name, one)
        for name, value in parameters(query).items()
        for one in (value if isinstance(value, list) else [value])
    ]
    assert query_of(QueryParams([(name, str(value)) for name, value in listed])) == query
    assert parameters(SampleQuery(sort=WORST)) == {}


def test_the_table_as_json(client: httpx.Client, runs: dict[str, str]) -> None:
    """Rows, totals and what there is to filter by; nonsense is named."""
    found = answer(client, f"/runs/{runs['atomic']}/samples.json", params={"label": "atom:wrong", "sort": "accuracy"})
    assert [row["id"] for row in found["table"]["rows"]] == ["car-seat", "library-friday"]
    assert found["summary"]["tags"]["library"] == 2
    wrong = client.get(f"/runs/{runs['atomic']}/samples.json", params={"page": "-1"})
    assert wrong.status_code == 422
    assert "page" in wrong.json()["error"]["field"]


def test_a_hundred_thousand_samples(tmp_path: Path) -> None:
    """The first byte of the table waits less than ten times as long as that of a hundred samples; so does the run's."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        for run, n in (("small", 100), ("large", 100_000)):
            add_run(store, run, "j", [(rag("s0"), atomic("s0", ["wrong"]))], {})
            store.write(
                "INSERT INTO samples WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?) "
                "SELECT run, i, 's' || i, json_set(sample, '$.id', 's' || i), status, "
                "json_set(verdict, '$.id', 's' || i) FROM samples, n WHERE run = ? AND seq = 0",
                n - 1,
                run,
            )
    with viewing(path) as address, httpx.Client(base_url=address, timeout=120) as client:
        for page in ("/samples", ""):
            seconds = {run: _seconds(client, f"/runs/{run}{page}") for run in ("small", "large")}
            # A page that answers in a few milliseconds is measured against the noise of the machine.
            assert seconds["large"] < 10 * max(seconds["small"], 0.2 if page else 0.4), (page, seconds)
        assert (
            answer(client, "/runs/large/samples.json", params={"page": "2000"})["table"]["rows"][-1]["id"] == "s99999"
        )


def _seconds(client: httpx.Client, path: str) -> float:
    taken = []
    for _ in range(3):
        began = time.perf_counter()
        with client.stream("GET", path) as response:
            next(response.iter_bytes())
            taken.append(time.perf_counter() - began)
    return min(taken)


# --- compare ---------------------------------------------------------------------------------------


def test_labels_of_the_same_items() -> None:
    """The same items in both runs: what changed comes first, the rest is the same."""
    changes = label_changes(atomic("s", ["correct", "wrong", "exempt"]), atomic("s", ["correct", "correct", "exempt"]))
    assert [(c.change, c.a and c.a.label, c.b and c.b.label) for c in changes] == [
        ("changed", "wrong", "correct"),
        ("same", "correct", "correct"),
        ("same", "exempt", "exempt"),
    ]


def test_labels_of_other_answers() -> None:
    """Statements worded otherwise are paired with their like; what has none is in one run only."""

    def of(*texts: str) -> Verdict:
        found = atomic("s", ["correct"] * len(texts))
        items = (item.model_copy(update={"text": text}) for item, text in zip(found.items, texts, strict=True))
        return found.model_copy(update={"items": tuple(items)})

    changes = label_changes(of("早班车6点20分发车", "车上有茶"), of("司机是三号线的", "早班车6点25分发车"))
    assert {(c.change, c.a and c.a.text, c.b and c.b.text) for c in changes} == {
        ("same", "早班车6点20分发车", "早班车6点25分发车"),
        ("only_a", "车上有茶", None),
        ("only_b", None, "司机是三号线的"),
    }


def test_checks_and_criteria_are_paired_by_what_they_are() -> None:
    """Checks by name, criteria by turn and words, whatever their numbers."""
    assert sum(c.change == "changed" for c in label_changes(grounded("s", [1]), grounded("s", [2]))) == 2
    changed = [c for c in label_changes(dialogue("d", ["ss"]), dialogue("d", ["sv"])) if c.change == "changed"]
    assert [(c.kind, c.turn) for c in changed] == [("criterion", 1)]


def test_comparison_as_json(client: httpx.Client, runs: dict[str, str]) -> None:
    """The sentence, the metrics, and one page of those that moved."""
    given = {"a": runs["atomic"], "b": runs["other"], "moved": "improved", "anyway": "true"}
    found = answer(client, "/compare.json", params=given)
    assert found["comparison"]["n_improved"] == found["moved"]["n"] == 2
    assert {change["id"] for change in found["moved"]["samples"]} == {"car-seat", "library-friday"}
    assert all(change["why"] for change in found["moved"]["samples"])
    assert found["sentence"].startswith("Not decided")
    assert found["comparison"]["marks"][0] == ["judge", "recorded:replies / strict:model"]
    none = client.get("/compare/sample.json", params={"a": runs["atomic"]}).json()
    assert none["error"]["message"].startswith("b is missing")


def test_which_runs_are_proposed_for_comparison() -> None:
    """The newest run against its project's baseline; without one, against the run before; always of one protocol."""

    def summary(id: str, protocol: str = "p", **identity: Any) -> RunSummary:
        rest = {"number": 1, "judge": "j", "state": "complete", "started": "", "finished": None, "statuses": {}}
        return RunSummary(id=id, protocol=protocol, **rest, **identity)

    newest, other, middle = (
        summary("4", project="shop"),
        summary("3", "q", project="shop"),
        summary("2", project="shop"),
    )
    oldest = summary("1", project="shop", baseline=True)
    elsewhere = summary("0", project="bank", baseline=True)
    assert proposal([newest, other, middle, oldest, elsewhere], None) == ("1", "4")
    assert proposal([newest, other, middle, elsewhere], None) == ("2", "4")
    assert proposal([newest, other, middle, oldest], middle) == ("2", "4")
    assert proposal([newest, other], None) == ("", "")
    assert proposal([newest, other], other) == ("3", "")


def test_what_the_command_refuses_the_page_and_the_api_refuse(
    client: httpx.Client, runs: dict[str, str], store: Path, steelyard: Steelyard
) -> None:
    """Another judge or protocol: no sentence, no figures, but the reasons, the same in all three; `anyway` compares."""
    for other in ("other", "scorecard"):
        pair = {"a": runs["atomic"], "b": runs[other]}
        refused = steelyard("compare", *pair.values(), "--store", store)
        assert refused.code == 2
        page = client.get("/compare.json", params=pair)
        told = page.json()
        assert (page.status_code, told["comparison"], told["sentence"]) == (422, None, "")
        api = client.get("/api/v1/compare", params=pair)
        problem = api.json()["error"]
        assert (api.status_code, problem["code"]) == (422, "not_comparable")
        assert problem["reasons"] == told["refused"]["reasons"]
        for code, detail in problem["reasons"]:
            assert f"{code}: {detail}" in refused.err
        html = client.get("/compare", params={**pair, "lang": "en"}).text
        assert "These runs are not compared" in html
        assert "anyway=true" in html
        assert 'class="sentence' not in html
        forced = answer(client, "/api/v1/compare", params={**pair, "anyway": "true"})
        assert [mark for mark in forced["marks"] if mark in problem["reasons"]] == problem["reasons"]
        assert steelyard("compare", *pair.values(), "--anyway", "--store", store).code == 0
    assert {code for code, _ in problem["reasons"]} == {"protocol", "scale"}


def test_runs_without_a_common_sample(client: httpx.Client, runs: dict[str, str]) -> None:
    """A page that says so and follows nothing; `anyway` cannot help."""
    pair = {"a": runs["atomic"], "b": runs["secret"], "anyway": "true", "lang": "en"}
    page = client.get("/compare", params=pair)
    assert (page.status_code, "These runs have no sample in common" in page.text) == (200, True)
    assert "data-live" not in page.text
    told = client.get("/compare.json", params=pair).json()["refused"]
    assert told == {"reasons": [["no_common", "8 / 1"]], "can_be_forced": False}
    assert client.get("/api/v1/compare", params=pair).json()["error"]["reasons"] == [["no_common", "8 / 1"]]


def test_every_score_of_a_comparison_has_its_n(client: httpx.Client, runs: dict[str, str]) -> None:
    """The samples a score is about stand beside it; they are not the same for all."""
    pair = {"a": runs["atomic"], "b": runs["other"], "anyway": "true", "lang": "en"}
    metrics = answer(client, "/api/v1/compare", params=pair)["metrics"]
    html = client.get("/compare", params=pair).text
    for change in metrics:
        name = term("en", f"metric.{change['metric']}")
        assert f'<th scope="row">{name}</th><td class="number">{change["n"]}</td>' in html


# --- judges and prompts ----------------------------------------------------------------------------


def test_judges_without_their_keys(tmp_path: Path) -> None:
    """Name, model, host, price and whether the key is set; never the key, nor what else the settings hold."""
    key, header = "sk-very-secret", "Bearer also-secret"
    with Loopback(reply_for=judge_plainly) as server:
        mine = {"base_url": server.url, "model": "gpt-4o-mini", "key_env": "MINE", "headers": {"X-Token": header}}
        other = {"base_url": "https://judge.example/v1?token=in-the-query", "model": "m", "key_env": "OTHER"}
        config = Settings(SettingsFile(judges={"mine": mine, "other": other}), {"MINE": key}, "steelyard.toml")
        with viewing(tmp_path / "store.db", config=config) as address, httpx.Client(base_url=address) as client:
            page, data = client.get("/judges").text, client.get("/judges.json").text
            checked = client.post("/judges/check.json", data={"judge": "mine"})
            in_chinese = client.post("/judges/check.json", params={"lang": "zh-Hans"}, data={"judge": "mine"})
            assert in_chinese.json()["checked"]["verdict"] == "可以使用"
            assert client.post("/judges/check", data={"judge": "nobody"}).status_code == 404
        assert server.requests[-1].headers["Authorization"] == f"Bearer {key}"
    for text in (page, data, checked.text):
        assert key not in text
        assert header not in text
        assert "in-the-query" not in text
    found = {judge["name"]: judge for judge in json.loads(data)["judges"]}
    assert found["mine"]["key_is_set"] is True
    assert found["mine"]["price"]["prompt"] > 0
    assert (found["other"]["host"], found["other"]["key_is_set"]) == ("judge.example", False)
    assert found["embedded"]["agreement"]["balanced_accuracy"] > 0.5
    assert (checked.json()["checked"]["judge"], checked.json()["checked"]["labels_as_expected"]) == ("mine", 9)


def test_prompts_with_their_differences(tmp_path: Path) -> None:
    """One's own prompt is held against the shipped one, and the present against what earlier runs were told."""
    shipped = Prompts.shipped().get("atomic.split", "en")
    mine = tmp_path / "atomic.split.en.md"
    edited = shipped.text.replace(f"version: {shipped.version}", "version: 99") + "\nBe brief.\n"
    mine.write_text(edited, encoding="utf-8")
    config = Settings(
        SettingsFile.model_validate({"run": {"prompts": [str(mine)]}}), {}, str(tmp_path / "steelyard.toml")
    )
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        store.keep_wordings([Wording("f" * 64, "atomic.split.en", 1, "what it said then")])
        then = {"prompts": {"atomic.split.en": {"version": 1, "sha256": "f" * 64, "source": "x"}}}
        add_run(store, "old", "j", [(rag("s1"), atomic("s1"))], then)
    with viewing(path, config=config) as address, httpx.Client(base_url=address) as client:
        listed = {prompt["id"]: prompt for prompt in answer(client, "/prompts.json")["prompts"]}
        found = answer(client, "/prompts/atomic.split.en.json")
        assert client.get("/prompts/nothing").status_code == 404
    assert [listed[id]["is_own"] for id in ("atomic.split.en", "atomic.split.zh")] == [True, False]
    assert [difference["version"] for difference in found["differences"]] == [shipped.version, 1]
    assert {"sign": "+", "text": "Be brief."} in found["differences"][0]["lines"]
    assert {"sign": "-", "text": "what it said then"} in found["differences"][1]["lines"]
    assert [(run["run"], run["is_same"]) for run in found["runs"]] == [("old", False)]
    assert [entry["version"] for entry in found["changelog"]] == list(range(shipped.version, 0, -1))
    assert "answer" in found["variables"]


def test_a_run_keeps_the_words_it_was_judged_by(steelyard: Steelyard, tmp_path: Path) -> None:
    """Each prompt that a run records is in the store with its text."""
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "--progress", "quiet").code in (0, 3)
    with Store.open(tmp_path / ".steelyard" / "store.db") as store:
        recorded = store.run("last").manifest["prompts"]
        kept = {wording.sha256: wording for id in recorded for wording in store.wordings(id)}
    shipped = {prompt.sha256: prompt.text for prompt in Prompts.shipped()}
    assert {prompt["sha256"] for prompt in recorded.values()} == kept.keys()
    assert all(wording.text == shipped[sha256] for sha256, wording in kept.items())


# --- a run whose judge labelled nothing ------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_failed_run_on_its_pages(tmp_path: Path, language: Language) -> None:
    """List, page, JSON and API say that it failed, why, and what to do; none of them reassures, nothing is followed."""
    path = tmp_path / "store.db"
    judged = [(rag(f"s{n}"), atomic(f"s{n}", ["unjudged"], status="failed")) for n in range(3)]
    with Store.open(path) as store:
        id = add_run(store, "20990101-000000-fail", "mine:m", judged, {"options": {}})
    told = [say(language, "unjudged.timeout"), say(language, "failure.remedy.timeout")]
    with viewing(path) as address, httpx.Client(base_url=address, timeout=60) as client:
        for page in ("/runs", f"/runs/{id}"):
            html = client.get(page, params={"lang": language}).text
            assert say(language, "viewer.state.failed") in html
            assert all(sentence.replace("'", "&#39;") in html for sentence in told)
            assert say(language, "html.no_weak_spots") not in html
            assert "data-live" not in html
            assert ">…<" not in html
        assert html.index(told[0]) < html.index('class="statuses"')
        (listed,) = answer(client, "/runs.json")["runs"]
        one = answer(client, f"/api/v1/runs/{id}")
        for run in (listed["run"], one["run"], answer(client, "/api/v1/runs")["runs"][0]):
            assert (run["state"], run["failure"]["reason"]) == ("failed", "timeout")
        assert one["report"]["failure"] == {
            "reason": "timeout", "n": 3, "of": 3, "detail": "", "remedy": say("zh-Hans", "failure.remedy.timeout"),
        }  # fmt: skip
        assert [
            len(answer(client, "/runs.json", params={"state": state})["runs"]) for state in ("failed", "complete")
        ] == [
            1,
            0,
        ]


# --- a run at work ---------------------------------------------------------------------------------


def test_a_large_run_at_work_always_has_a_report(tmp_path: Path) -> None:
    """Whoever does not wait gets the latest report that was counted, never none because something came since; one
    count at a time; the final one takes its place."""
    path = tmp_path / "store.db"
    cache = ResultCache()
    with Store.open(path) as store:
        run = add_run(store, "20990101-000000-live", "judge", [(rag("s1"), atomic("s1"))], {}, state="running")
        with store.alone_with(run):

            def look(patience: float | None) -> Report | None:
                return cache.report(lambda: Store.open(path), store.run(run), patience)

            first = look(None)
            assert first is not None
            for n in range(2, 40):
                store.add_verdict(run, n, rag(f"s{n}"), atomic(f"s{n}"))
                assert look(0) is not None
            look(None)  # a count that was under way may have begun before the last verdict
            latest = look(None)
            assert latest is not None
            assert latest.n == 39
        store.update_run(run, state="complete", finished="2026-03-02T10:01:00+00:00", manifest={})
        final = cache.report(lambda: Store.open(path), store.run(run), None)
    assert final is not None
    assert final.run is not None
    assert (final.n, final.run.state, cache.latest(run)) == (39, "complete", None)
    cache.close()


def test_the_pace_of_a_run_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a run that another process drives, rate and time left come from how far it was at earlier looks."""
    clock = iter((0.0, 10.0, 20.0))
    monkeypatch.setattr("steelyard.web.events.time.monotonic", lambda: next(clock))
    pace = EventPace()
    told = [pace.of(RunProgress(id="r", state="running", done=done, total=1000)) for done in (0, 200, 400)]
    assert [(one.rate, one.eta_seconds) for one in told] == [(None, None), (20.0, 40), (20.0, 30)]
