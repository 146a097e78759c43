"""The HTTP API, over a real server and by schemathesis against its own document."""

from __future__ import annotations

import csv
import io
import json
import re
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

import httpx
import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis.checks import not_a_server_error
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import ignored_auth, positive_data_acceptance

from command import RAG, fact_server, facts, lines_of
from endpoint import Hang, Loopback
from report_fixtures import atomic, rag
from steelyard.store import ROLES, Role, Store
from steelyard.web.accounts import passwords
from steelyard.web.accounts.permissions import ROLE_OF, match_rule
from steelyard.web.accounts.sign_in import Accounts, new_token
from steelyard.web.app import create_app
from steelyard.web.errors import CODES, KINDS
from steelyard.web.viewer import Viewer
from viewer import fill, viewing
from viewer import settings as configured

# Requests to each operation.
EXAMPLES = 100 if settings.get_current_profile_name() == "fuzz" else 4
ATOMIC = {"protocol": "atomic", "judge": "recorded", "options": {"date": "2026-03-02"}}


@pytest.fixture
def api(tmp_path: Path) -> Iterator[httpx.Client]:
    """A viewer over a store with one run of `atomic`."""
    fill(tmp_path / "store.db", ("atomic",))
    with viewing(tmp_path / "store.db") as address, httpx.Client(base_url=f"{address}/api/v1", timeout=30) as client:
        yield client


def ended(client: httpx.Client, run: str) -> dict[str, Any]:
    """The last event of a run that is being followed."""
    with client.stream("GET", f"/runs/{run}/events") as answer:
        assert answer.headers["content-type"].startswith("text/event-stream")
        text = "".join(answer.iter_text())
    name, data = text.strip().rsplit("\n\n", 1)[-1].split("\n")
    assert name == "event: end"
    return json.loads(data.removeprefix("data: "))


def test_evaluate_answers_with_result_lines(api: httpx.Client) -> None:
    """The lines are those that a run of the same samples keeps; what cannot be read is named by index and field."""
    samples = lines_of(RAG)
    answer = api.post("/evaluate", json={**ATOMIC, "samples": [{"question": "?"}, *samples]}).json()
    kept = [json.loads(line) for line in api.get("/runs/last/results.jsonl").text.splitlines()]
    assert answer["results"] == kept
    assert [(bad["index"], bad["field"]) for bad in answer["bad_samples"]] == [(0, "answer")]


def test_a_run_from_samples(api: httpx.Client) -> None:
    """Posted samples become a run that is followed to its end and then read in every form."""
    made = api.post("/runs", json={**ATOMIC, "samples": lines_of(RAG)})
    assert made.status_code == 201
    id = made.json()["id"]
    assert made.headers["location"] == f"/api/v1/runs/{id}"
    assert (ended(api, id)["state"], ended(api, id)["done"]) == ("complete", 8)
    detail = api.get(f"/runs/{id}").json()
    assert detail["report"]["n"] == detail["progress"]["done"] == 8
    assert api.get("/runs").json()["runs"][0]["id"] == id
    found = api.get(f"/runs/{id}/samples", params={"sort": "accuracy", "label": "atom:wrong", "per_page": 2}).json()
    assert (len(found["rows"]), found["n"]) == (2, 8)
    one = api.get(f"/runs/{id}/samples/{found['rows'][0]['id']}").json()
    assert one["result"]["scores"] == found["rows"][0]["scores"]
    assert api.delete(f"/runs/{id}").status_code == 204
    assert api.get(f"/runs/{id}").json()["error"]["code"] == "not_found"


def test_a_run_from_a_file(api: httpx.Client, tmp_path: Path) -> None:
    """An upload is kept under a name of its own, and goes with its run."""
    with Path(RAG).open("rb") as file:
        made = api.post(
            "/runs", data={"protocol": "grounded", "judge": "recorded"}, files={"file": ("../../x.jsonl", file)}
        )
    id = made.json()["id"]
    assert ended(api, id)["done"] == 8
    (kept,) = (tmp_path / "store-uploads").rglob("*.jsonl")
    assert kept.name == "x.jsonl"
    assert api.post(f"/runs/{id}/stop").json()["state"] == "complete"
    api.delete(f"/runs/{id}")
    assert not (tmp_path / "store-uploads").exists()


def test_a_file_in_another_encoding(api: httpx.Client, tmp_path: Path) -> None:
    """Its columns have names that cannot be written down; the run says what is wrong with the file all the same."""
    (tmp_path / "gbk.csv").write_bytes("编号,问题,回答\n1,几点开门？,九点。\n".encode("gbk"))
    with (tmp_path / "gbk.csv").open("rb") as file:
        run = api.post("/runs", data={"protocol": "atomic", "judge": "recorded"}, files={"file": file}).json()["id"]
    assert ended(api, run)["state"] == "complete"
    [bad] = api.get(f"/runs/{run}").json()["report"]["bad_rows"]
    assert "--encoding" in bad["problem"]


def test_stop_and_resume(tmp_path: Path) -> None:
    """A stopped run keeps what was answered; resumed, it asks only the rest. Nobody else can touch it meanwhile."""
    with (
        fact_server(latency=0.05) as server,
        viewing(
            tmp_path / "store.db",
            config=configured(mine={"base_url": server.url, "model": "m", "retries": 0, "key_env": "K"}),
        ) as address,
        httpx.Client(base_url=f"{address}/api/v1", timeout=30) as client,
    ):
        body = {"protocol": "atomic", "judge": "mine", "samples": lines_of(facts(tmp_path / "f.jsonl", 600))}
        id = client.post("/runs", json=body).json()["id"]
        while not client.get(f"/runs/{id}").json()["progress"]["done"]:
            time.sleep(0.02)
        assert client.delete(f"/runs/{id}").status_code == 409
        assert client.post(f"/runs/{id}/resume").json()["error"]["code"] == "in_use"
        assert client.post(f"/runs/{id}/stop").status_code == 202
        stopped = ended(client, id)
        assert stopped["state"] == "stopped"
        assert 0 < stopped["done"] < 600
        assert client.post(f"/runs/{id}/resume").status_code == 202
        assert ended(client, id)["done"] == 600
        assert len(server.requests) == 1200


def test_a_closed_viewer_leaves_runs_that_can_be_resumed(tmp_path: Path) -> None:
    """Runs at work when the viewer ends are stopped, not lost."""
    with fact_server(latency=0.05) as server:
        config = configured(mine={"base_url": server.url, "model": "m", "retries": 0, "key_env": "K"})
        with viewing(tmp_path / "store.db", config=config) as address:
            body = {"protocol": "atomic", "judge": "mine", "samples": lines_of(facts(tmp_path / "f.jsonl", 600))}
            id = httpx.post(f"{address}/api/v1/runs", json=body).json()["id"]
        with Store.open(tmp_path / "store.db") as store:
            assert store.run(id).state == "stopped"
            assert not store.in_use(id)


def test_slow_evaluations_hold_up_no_page(tmp_path: Path) -> None:
    """Of fifty at a judge that hangs some are judged, some wait and the rest are told when to come again; meanwhile
    every page is there. When the viewer closes, those that are left are told so."""
    fill(tmp_path / "store.db", ("atomic",))
    body = {"protocol": "atomic", "judge": "mine", "samples": lines_of(RAG)[:1]}
    pages = ("/runs", "/judges", "/prompts", "/api/v1/runs/last", "/api/v1/runs/last/samples", "/api/v1/protocols")
    with Loopback(reply_for=lambda request: Hang(600)) as server, ThreadPoolExecutor(max_workers=50) as callers:
        config = configured(mine={"base_url": server.url, "model": "m", "retries": 0, "timeout": 600, "key_env": "K"})
        with viewing(tmp_path / "store.db", config=config) as address:
            url = f"{address}/api/v1/evaluate"
            calls = [callers.submit(httpx.post, url, json=body, timeout=120) for _ in range(50)]
            turned_away = [call.result() for call in islice(as_completed(calls), 10)]
            for page in pages:
                # The fastest of some: this machine may be busy with other things.
                assert min(httpx.get(address + page, timeout=60).elapsed.total_seconds() for _ in range(3)) < 10
            assert not [call for call in calls if call.done() and call.result() not in turned_away]
            assert server.max_in_flight == 8
        left = [call.result() for call in calls if call.result() not in turned_away]
    assert {(call.status_code, call.json()["error"]["code"]) for call in turned_away + left} == {(503, "busy")}
    assert {call.headers["retry-after"] for call in turned_away} == {"5"}
    assert len(left) == 40


def test_a_judge_that_cannot_be_used(tmp_path: Path) -> None:
    """An endpoint that refuses the key: 502 with what to do, as the document says."""
    with Loopback(key="another") as server:
        config = configured(mine={"base_url": server.url, "model": "m", "key_env": "K"})
        with viewing(tmp_path / "store.db", config=config) as address:
            body = {"protocol": "atomic", "judge": "mine", "samples": lines_of(RAG)[:1]}
            answer = httpx.post(f"{address}/api/v1/evaluate", json=body, timeout=30)
            document = httpx.get(f"{address}/api/v1/openapi.json", timeout=30).json()
    assert (answer.status_code, answer.json()["error"]["code"]) == (502, "judge")
    assert "environment variable K" in answer.json()["error"]["message"]
    assert "502" in document["paths"]["/evaluate"]["post"]["responses"]


def test_a_judge_without_its_key(tmp_path: Path) -> None:
    """Page and API alike name the variable and make no run; the checked upload waits with all that was entered."""
    config = configured(mine={"kind": "deepseek", "model": "m", "key_env": "MINE_KEY"})
    form = {"protocol": "atomic", "judge": "mine", "name": "first try"}
    with (
        viewing(tmp_path / "store.db", config=config) as address,
        httpx.Client(base_url=address, timeout=30, follow_redirects=True) as client,
    ):
        body = {"protocol": "atomic", "judge": "mine", "samples": lines_of(RAG)[:1]}
        answers = [client.post("/api/v1/runs", json=body)]
        for path in ("/api/v1/runs", "/runs"):
            with Path(RAG).open("rb") as file:
                sent = {name: value for name, value in form.items() if name != "name"}
                answers.append(client.post(path, data=sent, files={"file": ("rag.jsonl", file)}))
        with Path(RAG).open("rb") as file:
            checked = client.post("/runs/new", data=form, files={"file": ("rag.jsonl", file)})
        assert checked.status_code == 200
        answers.append(client.post(checked.url.path, data={**form, "max_tokens": "many"}))
        answers.append(client.post(checked.url.path, data={**form, "column.answer": "answer"}))
        assert client.get("/api/v1/runs").json()["runs"] == []
    assert [answer.status_code for answer in answers] == [422] * 5
    assert "max_tokens" in answers.pop(3).text
    assert all("MINE_KEY" in answer.text for answer in (*answers, checked))
    assert 'value="first try"' in answers[-1].text
    assert "<option selected>answer</option>" in answers[-1].text


def test_every_status_is_in_the_document(api: httpx.Client) -> None:
    """Each operation names what it may answer; what makes a judge may fail to."""
    statuses = {str(status) for status in (*CODES, *(status for _, status, _ in KINDS))}
    judging = {"/evaluate", "/runs", "/runs/{run}/resume", "/runs/{run}/retry"}
    for path, operations in api.get("/openapi.json").json()["paths"].items():
        for method, operation in operations.items():
            wanted = statuses if method == "post" and path in judging else statuses - {"501", "502"}
            assert wanted <= operation["responses"].keys(), (method, path)


def test_labels(api: httpx.Client) -> None:
    """A label is tied to its item; one for an item that is not there is refused with its place, and nothing is kept."""
    sample = api.get("/runs/last/samples").json()["rows"][0]["id"]
    item = api.get(f"/runs/last/samples/{sample}").json()["result"]["items"][0]
    good = {"sample": sample, "kind": "atom", "item": item["id"], "label": "正确", "annotator": "Ann"}
    bad = api.post("/labels", json={"run": "last", "labels": [good, {**good, "item": 99}]})
    assert (bad.status_code, bad.json()["error"]["field"]) == (422, "labels.1.item")
    assert api.get("/labels").json() == {"labels": []}
    assert api.post("/labels", json={"run": "last", "labels": [good]}).json() == {"kept": 1}
    (label,) = api.get("/labels", params={"run": "last"}).json()["labels"]
    assert (label["label"], label["text"], label["annotator"]) == ("correct", item["text"], "Ann")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"protocol": "nuclear", "samples": [{}]}, None),
        ({"protocol": "atomic", "judge": "recorded:/etc/passwd", "samples": [{}]}, None),
        ({"protocol": "atomic", "samples": []}, "samples"),
        ({"protocol": "atomic", "samples": [{}], "options": {"strict": "yes"}}, "options.strict"),
        ({"protocol": "atomic", "samples": [{}], "more": 1}, "more"),
    ],
)
def test_errors_have_one_shape(api: httpx.Client, body: dict[str, Any], field: str | None) -> None:
    """Whatever is wrong, and wherever: a code, a message, and the field it is about."""
    for path in ("/evaluate", "/runs"):
        answer = api.post(path, json=body)
        assert answer.status_code == 422
        problem = answer.json()["error"]
        assert (problem["code"], problem.get("field")) == ("invalid", field)
        assert problem["message"]


def test_a_slip_of_ours_has_the_same_shape(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What nobody foresaw is said as everything else is, without its details."""

    def fails(*_: object) -> None:
        raise RuntimeError("s3cret")

    monkeypatch.setattr("steelyard.web.api.about.protocol_names", fails)
    with viewing(tmp_path / "store.db") as address:
        answer = httpx.get(f"{address}/api/v1/protocols")
    assert answer.status_code == 500
    assert answer.json()["error"]["code"] == "failed"
    assert "s3cret" not in answer.text


def test_what_is_nested_too_deeply_is_refused(api: httpx.Client) -> None:
    """Also where JSON itself would still take it."""
    body = '{"protocol": "atomic", "samples": [{}], "options": {"a": ' + "[" * 900 + "]" * 900 + "}}"
    for path in ("/evaluate", "/runs"):
        answer = api.post(path, content=body, headers={"Content-Type": "application/json"})
        assert answer.status_code in (400, 422)
        assert answer.json()["error"]["code"] == "invalid"


def test_no_key_is_shown(tmp_path: Path) -> None:
    """Neither judges nor runs nor the document hold the key, nor what stands in a header."""
    table = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "key_env": "MY_KEY", "headers": {"X-Auth": "s3cret"}}
    config = configured(mine=table)
    config.environment = {"MY_KEY": "s3cret"}
    with viewing(tmp_path / "store.db", config=config) as address:
        for path in ("/api/v1/judges", "/api/v1/openapi.json", "/judges", "/judges.json", "/runs", "/api/v1/protocols"):
            text = httpx.get(address + path).text
            assert "s3cret" not in text
        assert "MY_KEY" in httpx.get(f"{address}/api/v1/judges").text


def test_csv_is_safe_to_open(tmp_path: Path) -> None:
    """A cell that a spreadsheet would run as a formula begins with an apostrophe."""
    with Store.open(tmp_path / "store.db") as store:
        store.create_run("r1", "atomic", "j", "2026-03-02T10:00:00+00:00", {})
        evil = '=HYPERLINK("http://x")'
        store.add_verdict("r1", 0, rag(evil), atomic(evil, ["wrong"], text="@SUM(1)"))
    with viewing(tmp_path / "store.db") as address:
        for query in ("", "?items=true"):
            text = httpx.get(f"{address}/api/v1/runs/r1/results.csv{query}").content.decode("utf-8-sig")
            (row,) = csv.DictReader(io.StringIO(text))
            assert row["sample" if query else "id"] == f"'{evil}"
            assert not any((cell or "").startswith(("=", "+", "@", "-")) for cell in row.values())


# --- schemathesis ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> Any:
    store = tmp_path_factory.mktemp("schemathesis") / "store.db"
    fill(store, ("atomic",))
    app = create_app(Viewer(configured(), store, hosts=frozenset()))
    return schemathesis.openapi.from_asgi("/api/v1/openapi.json", app)


@pytest.mark.hypothesis
@pytest.mark.parametrize("mode", list(GenerationMode), ids=lambda mode: mode.value)
def test_the_api_is_as_its_document_says(document: Any, mode: GenerationMode) -> None:
    """Whatever fits the document is accepted, whatever does not is refused, and every answer has its shape."""
    tried = []
    for found in document.get_all_operations():
        operation = found.ok()

        @given(operation.as_strategy(generation_mode=mode))
        @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
        def hold(case: schemathesis.Case) -> None:
            answer = case.call()
            # The judge's failure, not ours, and in the document.
            excluded = [not_a_server_error] if answer.status_code == 502 else []
            case.validate_response(answer, excluded_checks=excluded)

        with suppress(Unsatisfiable):  # where nothing about a request can be wrong
            hold()
        tried.append(operation.label)
    assert "POST /evaluate" in tried


ROLE_EXAMPLES = max(2, EXAMPLES // 2)


@pytest.mark.hypothesis
@pytest.mark.parametrize(("role", "project"), [("read", "shop"), ("run", "shop"), ("admin", "*")])
def test_every_role_is_answered_as_the_document_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, role: Role, project: str
) -> None:
    """On a team's server: what the role does not allow is refused whatever is sent, the rest passes the gate, and both
    answer in the document's shapes; without a token nothing does."""
    monkeypatch.setattr(passwords, "COST", passwords.Cost(4, 8, 1))
    (run,) = fill(tmp_path / "store.db", ("atomic",))
    with Store.open(tmp_path / "store.db") as store:
        store.edit_run(run, project="shop")
        secret, token = new_token("test", role, project, datetime.now(UTC), timedelta(days=1))
        store.add_token(token)
    url = "http://localhost"
    app = create_app(Viewer(configured(), tmp_path / "store.db", hosts=frozenset(), accounts=Accounts(url)))
    headers = {"Authorization": f"Bearer {secret}"}
    found = schemathesis.openapi.from_asgi("/api/v1/openapi.json", app, headers=headers)
    refused = 0
    for named in found.get_all_operations():
        operation = named.ok()
        verb, path = operation.method.upper(), f"/api/v1{operation.path}"
        about = match_rule(verb, re.sub(r"\{\w+\}", "1", path))
        assert about
        needed = ROLE_OF[about.action] if about.action else None
        allows = needed is None or ROLES.index(role) >= ROLES.index(needed)

        _keeps_to(operation, headers, allows=allows, is_open=about.action is None)
        refused += not allows
    assert bool(refused) is (role != "admin")


def _keeps_to(operation: Any, headers: dict[str, str], *, allows: bool, is_open: bool) -> None:
    @given(operation.as_strategy(generation_mode=GenerationMode.POSITIVE))
    @settings(max_examples=ROLE_EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
    def hold(case: schemathesis.Case) -> None:
        answer = case.call(headers=headers)
        excluded = [not_a_server_error] if answer.status_code == 502 else []
        # Whether there is such a user, or may be such a token, no document says.
        case.validate_response(answer, excluded_checks=[*excluded, ignored_auth, positive_data_acceptance])
        if not allows:
            # What is not even an address of that kind is not there.
            assert answer.status_code in (403, 404), case
        if not is_open:
            assert case.call(headers={"Authorization": "Bearer sy_guessed"}).status_code in (401, 404)

    hold()
