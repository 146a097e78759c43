"""Labelling in the viewer without a browser: what stays hidden, what is kept of whom, what is refused."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reading_store import SECRET, add_run, filled, secret
from report_fixtures import atomic, dialogue, dialogue_sample, grounded, pairwise, rag, retrieval, scorecard
from steelyard.protocols import BUILT_IN, vocabulary
from steelyard.store import Store
from viewer import answer, viewing


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("labelling") / "store.db"


@pytest.fixture(scope="module")
def runs(store: Path) -> dict[str, str]:
    return filled(store)


@pytest.fixture(scope="module")
def client(store: Path, runs: dict[str, str]) -> Iterator[httpx.Client]:
    with viewing(store) as address, httpx.Client(base_url=address, timeout=60, follow_redirects=True) as opened:
        yield opened


def test_labelling_is_blind(tmp_path: Path) -> None:
    """Nothing that a judge said is anywhere in what a person who labels is sent, page or JSON, item by item."""
    path = tmp_path / "store.db"
    said = {"reason": SECRET, "flags": (SECRET,)}
    found = {
        "atomic": (rag("s1"), secret("s1")),
        "grounded": (rag("s1"), grounded("s1", [1, 4])),
        "scorecard": (rag("s1"), scorecard("s1")),
        "dialogue": (dialogue_sample("s1"), dialogue("s1")),
        "retrieval": (rag("s1"), retrieval("s1")),
        "pairwise": (rag("s1", other_answer="可以贴。"), pairwise("s1")),
    }
    with Store.open(path) as store:
        for protocol, (sample, verdict) in found.items():
            items = tuple(item.model_copy(update=said) for item in verdict.items)
            verdict = verdict.model_copy(update={"items": items, "judge": SECRET, "notes": {"own_answer": SECRET}})
            add_run(store, protocol, SECRET, [(sample, verdict)], {"judge": {"name": SECRET}})
    seen = set()
    with viewing(path) as address, httpx.Client(base_url=address, cookies={"steelyard_annotator": "ana"}) as client:
        for protocol in found:
            plan = {"n": "0", "kind": [aspect.name for aspect in vocabulary(protocol).aspects()]}
            total = answer(client, f"/runs/{protocol}/label.json", params=plan)["total"]
            assert total
            for at in range(1, total + 1):
                for form in ("", ".json"):
                    got = client.get(f"/runs/{protocol}/label{form}", params={**plan, "at": str(at)})
                    assert got.status_code == 200
                    assert SECRET not in got.text
                item = got.json()["item"]
                seen.add(item["kind"])
                assert got.json()["own"] is None
                assert not {"label", "reason", "evidence", "level", "flags", "scores", "support"} & item.keys()
            for path_ in (f"/runs/{protocol}/label", "/label"):
                assert SECRET not in client.get(path_).text + client.get(f"{path_}.json").text
    assert seen == {aspect.name for protocol in BUILT_IN for aspect in vocabulary(protocol).aspects()}


def post(client: httpx.Client, run: str, at: int, label: str, **more: str) -> httpx.Response:
    item = answer(client, f"/runs/{run}/label.json", params={"n": "0", "at": str(at)})["item"]
    form = {"sample": item["sample"], "kind": item["kind"], "seen": item["seen"], "label": label, **more}
    return client.post(f"/runs/{run}/label", params={"n": "0", "at": str(at)}, data=form)


def test_labels_are_kept_by_name_and_taken_back(client: httpx.Client, runs: dict[str, str], store: Path) -> None:
    """Two people label the same item; one takes it back; what is no label is refused."""
    run = runs["grounded"]
    for name in ("ana", "李"):
        client.cookies.set("steelyard_annotator", httpx.QueryParams({"": name}).__str__()[1:])
        assert post(client, run, 1, "1").status_code == 200
    assert post(client, run, 2, "perhaps").status_code == 422
    assert client.post(f"/runs/{run}/label/undo", params={"n": "0", "at": "2"}).status_code == 200
    client.cookies.clear()
    assert post_without_name(client, run).status_code == 422
    with Store.open(store) as opened:
        kept = list(opened.labels(run))
    assert [(label.annotator, label.label, label.kind, label.run) for label in kept] == [("ana", "1", "check", run)]
    assert kept[0].about


def post_without_name(client: httpx.Client, run: str) -> httpx.Response:
    return client.post(f"/runs/{run}/label", params={"n": "0", "at": "1"}, data={"sample": "x"})


def test_labels_go_out_and_come_in(client: httpx.Client, runs: dict[str, str], store: Path) -> None:
    """The export is what the command line reads; a filled-in sheet is taken over, a bad one named by line."""
    line = {"sample": "guide-xiaoyan", "kind": "criterion", "turn": 1, "item": 1, "label": "符合"}
    sheet = json.dumps(line, ensure_ascii=False) + "\n"
    address = f"/runs/{runs['dialogue']}/labels"
    assert client.post(address, files={"file": ("bo.jsonl", sheet)}).status_code == 200
    exported = [json.loads(text) for text in client.get(f"{address}.jsonl").text.splitlines()]
    assert [(label["annotator"], label["label"], label["run"]) for label in exported] == [
        ("bo", "satisfied", runs["dialogue"])
    ]
    bad = client.post(address, files={"file": ("bad.jsonl", sheet + '{"sample": "x", "kind": "atom"}\n')})
    assert bad.status_code == 422
    assert "bad.jsonl, line 2" in bad.text or "bad.jsonl:2" in bad.text
    with Store.open(store) as opened:
        assert len(list(opened.labels(runs["dialogue"]))) == 1


@pytest.mark.parametrize("name", ["..", "a\0b.jsonl"])
def test_labels_from_a_file_with_an_odd_name(client: httpx.Client, runs: dict[str, str], name: str) -> None:
    """A name that no file can have is no reason to fail."""
    head = f'--x\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\n\r\n'
    kind = {"Content-Type": "multipart/form-data; boundary=x"}
    found = client.post(f"/runs/{runs['atomic']}/labels", content=f"{head}{{}}\r\n--x--\r\n".encode(), headers=kind)
    assert found.status_code == 422


@pytest.mark.parametrize(
    "content", ["", '{"sample": "a", "kind": "atom", "label": "wrong", "item": 99999999999999999999}']
)
def test_a_file_without_labels_is_no_success(client: httpx.Client, runs: dict[str, str], content: str) -> None:
    """Nothing in it, or nothing that can be one: said, not passed over."""
    found = client.post(f"/runs/{runs['atomic']}/labels", files={"file": ("mine.jsonl", content.encode())})
    assert found.status_code == 422
    assert "mine.jsonl" in found.text


def test_an_import_says_what_it_took(client: httpx.Client, runs: dict[str, str]) -> None:
    """How many labels, and how many of them are about other runs; in the reader's language, and only as numbers."""
    run = runs["grounded"]
    line = {"sample": "car-tyre", "kind": "check", "item": 1, "label": "1", "annotator": "cy"}
    lines = [line, {**line, "item": 2}, {**line, "run": "another"}]
    sheet = "".join(json.dumps(one) + "\n" for one in lines)
    found = client.post(f"/runs/{run}/labels", files={"file": ("cy.jsonl", sheet)})
    assert "Labels imported: 3. Of these, about other runs: 1." in " ".join(found.text.split())
    assert "已导入 3 条标注。" in client.get(f"/runs/{run}/label", params={"imported": "3", "lang": "zh-Hans"}).text
    assert "taken over" not in client.get(f"/runs/{run}/label", params={"imported": "<b>3", "lang": "en"}).text


@pytest.mark.parametrize("field", ["annotator", "note", "policy", "text", "run"])
def test_half_a_character_is_named(client: httpx.Client, runs: dict[str, str], field: str) -> None:
    """JSON can spell a lone surrogate, which nothing can keep: the line and the field are named, nothing is kept."""
    line = {"sample": "car-tyre", "kind": "atom", "item": 1, "label": "wrong", field: "ab-HALF"}
    sheet = json.dumps(line).replace("-HALF", "\\ud800")
    found = client.post(f"/runs/{runs['atomic']}/labels", files={"file": ("half.jsonl", sheet)})
    assert found.status_code == 422
    assert "half.jsonl:1" in found.text or "half.jsonl, line 1" in found.text
    assert field in found.text


def test_half_a_character_in_a_form(client: httpx.Client, runs: dict[str, str]) -> None:
    """A form in a charset of its own choice is no way to it either."""
    parts = {"annotator": "+2AA-", 'file"; filename="a.jsonl': '{"sample":"s","kind":"atom","item":1,"label":"wrong"}'}
    body = "".join(
        f'--x\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{text}\r\n' for name, text in parts.items()
    )
    kind = {"Content-Type": "multipart/form-data; boundary=x; charset=utf-7"}
    found = client.post(f"/runs/{runs['secret']}/labels", content=f"{body}--x--\r\n".encode(), headers=kind)
    assert found.status_code == 200
    assert client.get(f"/runs/{runs['secret']}/labels.jsonl").json()["annotator"] == "?"


def test_a_label_is_of_what_was_shown(tmp_path: Path) -> None:
    """A run judged again between look and label: the label is not kept, and the page says so and shows what is new."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        add_run(store, "r", "j", [(rag("s1"), atomic("s1", ["wrong"], text="旧的说法"))], {})
    with viewing(path) as address, httpx.Client(base_url=address, cookies={"steelyard_annotator": "ana"}) as client:
        plan = {"n": "0", "at": "1", "kind": "atom"}
        item = answer(client, "/runs/r/label.json", params=plan)["item"]
        form = {"sample": "s1", "kind": "atom", "seen": item["seen"], "label": "correct"}
        with Store.open(path) as store:
            store.add_verdict("r", 0, rag("s1"), atomic("s1", ["wrong"], text="新的说法"))
            store.update_run("r", state="complete", finished="2026-03-02T11:00:00+00:00", manifest={})
        refused = client.post("/runs/r/label", params={**plan, "lang": "en"}, data=form)
        assert refused.status_code == 409
        assert "the label was not kept" in refused.text
        assert "新的说法" in refused.text
        with Store.open(path) as store:
            assert list(store.labels("r")) == []
        fresh = answer(client, "/runs/r/label.json", params=plan)["item"]["seen"]
        assert fresh != item["seen"]
        assert client.post("/runs/r/label", params=plan, data={**form, "seen": fresh}).status_code == 303
        with Store.open(path) as store:
            assert [label.text for label in store.labels("r")] == ["新的说法1"]


def test_a_run_at_work_is_not_labelled_yet(tmp_path: Path) -> None:
    """What is drawn would change with it: the page says so in place of an item, and nothing is begun or kept."""
    path = tmp_path / "store.db"
    with Store.open(path) as store:
        add_run(store, "r", "j", [(rag("s1"), atomic("s1", ["wrong"]))], {}, state="running")
        with (
            store.alone_with("r"),
            viewing(path) as address,
            httpx.Client(base_url=address, cookies={"steelyard_annotator": "ana"}) as client,
        ):
            page = client.get("/runs/r/label", params={"n": "0", "lang": "en"})
            assert "still running" in page.text
            assert answer(client, "/runs/r/label.json", params={"n": "0"})["item"] is None
            begun = client.post("/runs/r/label/start", data={"annotator": "bo", "n": "5"})
            assert (begun.status_code, begun.cookies.get("steelyard_annotator")) == (409, None)
            given = client.post("/runs/r/label", params={"n": "0", "at": "1"}, data={"label": "wrong"})
            assert given.status_code == 409
        assert list(store.labels("r")) == []


def test_another_site_cannot_say_who_labels(client: httpx.Client, runs: dict[str, str]) -> None:
    """Starting is a form of this site: no link and no form elsewhere changes the name that labels are kept by."""
    address, form = f"/runs/{runs['atomic']}/label/start", {"annotator": "mallory", "n": "0"}
    assert client.get(address, params=form).status_code == 405
    elsewhere = client.post(address, data=form, headers={"Origin": "https://evil.example"})
    assert (elsewhere.status_code, client.cookies.get("steelyard_annotator")) == (403, None)
    with httpx.Client(base_url=client.base_url) as own:
        begun = own.post(address, data={**form, "annotator": "李 Ana", "kind": ["atom", "fallback"]})
        assert begun.status_code == 303
        assert begun.cookies["steelyard_annotator"]
        assert answer(own, begun.headers["location"].replace("/label?", "/label.json?"))["plan"]["kind"] == [
            "atom",
            "fallback",
        ]


def test_another_site_cannot_label(client: httpx.Client, runs: dict[str, str]) -> None:
    """A form on somebody else's page is refused."""
    form = {"sample": "car-tyre", "kind": "atom", "label": "correct"}
    answer_ = client.post(
        f"/runs/{runs['atomic']}/label",
        params={"n": "0", "at": "1"},
        data=form,
        headers={"Origin": "https://evil.example"},
    )
    assert answer_.status_code == 403
