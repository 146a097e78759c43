"""Who may talk to the viewer and what its pages may do, asked of a real server."""

from __future__ import annotations

import gzip
import io
import json
import socket
import zipfile
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from command import Steelyard
from steelyard.store import Store
from steelyard.web.viewer import MEGABYTE, Sizes
from viewer import fill, viewing

TOKEN = "correct horse"
EVERYWHERE = (
    "/runs", "/runs.json", "/events", "/static/viewer.css", "/api/v1/runs", "/api/v1/runs/last/events", "/nowhere",
)  # fmt: skip
OUTSIDE = (
    "/static/../app.py", "/static/%2e%2e/app.py", "/static/..%2fapp.py", "/static//etc/passwd", "/runs/..%2f..%2fetc",
)  # fmt: skip


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("secure") / "store.db"
    fill(path, ("atomic",))
    return path


@pytest.fixture(scope="module")
def address(store: Path) -> Iterator[str]:
    with viewing(store, sizes=Sizes(upload=MEGABYTE, body=1000)) as served:
        yield served


@pytest.fixture(scope="module")
def guarded(store: Path) -> Iterator[str]:
    with viewing(store, token=TOKEN) as served:
        yield served


def port_of(address: str) -> str:
    return address.rpartition(":")[2]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", "", "[::1"])
@pytest.mark.parametrize("path", ["/runs", "/api/v1/runs", "/static/viewer.css"])
def test_another_name_is_refused(address: str, host: str, path: str) -> None:
    """A page of a stranger whose name was made to point here (DNS rebinding) gets nothing."""
    answer = httpx.get(address + path, headers={"Host": host})
    assert answer.status_code in (400, 403)
    assert "20261" not in answer.text


def test_own_names_are_known(address: str) -> None:
    """Loopback goes by three names."""
    for host in ("localhost", "127.0.0.1", "[::1]"):
        assert httpx.get(f"{address}/runs", headers={"Host": f"{host}:{port_of(address)}"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://["},
        {"Origin": "http://127.0.0.1:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
@pytest.mark.parametrize(("method", "path"), [("POST", "/runs/last/delete"), ("DELETE", "/api/v1/runs/last")])
def test_posts_from_other_sites_are_refused(address: str, headers: dict[str, str], method: str, path: str) -> None:
    """A form on a stranger's page cannot delete anything here."""
    answer = httpx.request(method, address + path, headers=headers)
    assert answer.status_code == 403
    assert httpx.get(f"{address}/api/v1/runs/last").status_code == 200


def test_posts_from_here_are_taken(address: str) -> None:
    """Our own forms, and programs that send no origin at all."""
    for headers in ({"Origin": address, "Sec-Fetch-Site": "same-origin"}, {}):
        assert httpx.post(f"{address}/api/v1/runs/last/stop", headers=headers).status_code == 202


@pytest.mark.parametrize("path", EVERYWHERE)
def test_the_token_is_asked_everywhere(guarded: str, path: str) -> None:
    """Pages, files, API and events alike: without the token nothing is told, not even what is there."""
    for headers in ({}, {"Authorization": "Bearer wrong"}, {"Cookie": "steelyard_token=wrong"}):
        answer = httpx.get(guarded + path, headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
    assert httpx.get(f"{guarded}{path}?token=wrong").status_code == 401


def test_the_token_opens(guarded: str) -> None:
    """As a header for programs; for people once in the address, which then becomes a cookie without the token."""
    assert httpx.get(f"{guarded}/api/v1/runs", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200
    with httpx.Client(base_url=guarded) as client:
        welcome = client.get("/runs", params={"token": TOKEN, "lang": "en"})
        assert (welcome.status_code, welcome.headers["location"]) == (303, "/runs?lang=en")
        cookie = welcome.headers["set-cookie"]
        assert TOKEN not in cookie
        assert "HttpOnly" in cookie
        assert "samesite=lax" in cookie.lower()
        assert client.get("/runs").status_code == 200


@pytest.mark.parametrize("path", ["/runs", "/api/v1/health", "/static/viewer.css", "/nowhere", "/api/v1/nowhere"])
def test_every_answer_has_the_policy(address: str, path: str) -> None:
    """No answer, success or not, allows inline script, framing, sniffing or other sites."""
    headers = httpx.get(address + path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "script-src 'self';" in policy
    assert "unsafe" not in policy
    assert "frame-ancestors 'none'" in policy
    assert (headers["x-content-type-options"], headers["referrer-policy"]) == ("nosniff", "same-origin")


def test_pages_have_no_inline_script_or_style(address: str) -> None:
    """What the policy forbids is not there to begin with."""
    for path in ("/runs", "/runs/last", "/judges", "/prompts", "/compare", "/label"):
        text = httpx.get(address + path, follow_redirects=True).text
        assert "<script>" not in text
        assert "<style" not in text
        assert ' style="' not in text
        assert " onclick" not in text


def test_large_requests_are_refused(address: str) -> None:
    """Announced or in pieces, as JSON or as a file."""
    too_much = b"x" * 2000
    assert httpx.post(f"{address}/api/v1/evaluate", content=too_much).status_code == 413
    json = {"Content-Type": "application/json"}
    for path in ("/api/v1/evaluate", "/api/v1/runs"):
        answer = httpx.post(address + path, content=iter([too_much] * 2), headers=json)
        assert (answer.status_code, answer.json()["error"]["code"]) == (413, "too_large")
    file = ("a.jsonl", b"x" * 2 * MEGABYTE)
    answer = httpx.post(f"{address}/runs", data={"protocol": "atomic"}, files={"file": file})
    assert answer.status_code == 413


@pytest.mark.parametrize("path", OUTSIDE)
def test_no_way_out_of_the_folders(address: str, path: str) -> None:
    """Whatever stands in an address, only what is meant to be served is."""
    with socket.create_connection(("127.0.0.1", int(port_of(address)))) as raw:
        raw.sendall(f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n".encode())
        answer = b"".join(iter(lambda: raw.recv(65536), b""))
    assert answer.split(b" ", 2)[1] == b"404"
    assert b"create_app" not in answer


def test_a_small_file_that_unpacks_to_much(tmp_path: Path) -> None:
    """A gzipped upload is unpacked no further than it may be, whatever its name; nothing of it is kept."""
    line = json.dumps({"id": "s", "question": "q", "answer": "a", "references": ["r"]}).encode() + b"\n"
    large, small = (gzip.compress(line * times) for times in (20_000, 2))
    assert len(large) < 10_000 < len(line) * 20_000
    form = {"protocol": "atomic", "judge": "embedded"}
    with viewing(tmp_path / "store.db", sizes=Sizes(unpacked=MEGABYTE)) as address:
        for path in ("/api/v1/runs", "/runs"):
            for name in ("data.jsonl.gz", "data.jsonl"):
                refused = httpx.post(address + path, data=form, files={"file": (name, large)})
                assert refused.status_code == 413
                assert f"{name} unpacks to more than 1,048,576 bytes" in refused.text
        assert not (tmp_path / "store-uploads").exists()
        taken = httpx.post(f"{address}/api/v1/runs", data=form, files={"file": ("data.jsonl.gz", small)})
        assert taken.status_code in (201, 202), taken.text
        torn = httpx.post(f"{address}/api/v1/runs", data=form, files={"file": ("data.jsonl.gz", small[:-9])})
        assert torn.status_code < 500


def test_deleting_takes_nothing_but_uploads(tmp_path: Path) -> None:
    """A run that was imported names any path as its data; what is not an upload stays."""
    store = tmp_path / "store.db"
    [run] = fill(store, ("atomic",))
    (tmp_path / "store-uploads" / "kept").mkdir(parents=True)
    with Store.open(store) as opened:
        row = opened.run(run)
        data = [{"path": str(tmp_path / "store-uploads" / folder / "x")} for folder in ("..", "kept")]
        opened.update_run(run, state=row.state, finished=row.finished, manifest={**row.manifest, "data": data})
    with viewing(store) as address:
        assert httpx.post(f"{address}/runs/{run}/delete").status_code == 303
    assert store.exists()
    assert (tmp_path / "store-uploads" / "kept").exists()


def test_listening_elsewhere_needs_a_token(steelyard: Steelyard) -> None:
    """One line says so, before anything listens."""
    done = steelyard("view", "--host", "0.0.0.0", "--no-browser")
    assert (done.code, done.err.count("\n")) == (2, 1)
    assert "--token" in done.err


def test_a_workbook_that_unpacks_to_much(tmp_path: Path) -> None:
    """An uploaded workbook whose parts are larger than allowed is refused before any of them is unpacked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as parts:
        parts.writestr("xl/sharedStrings.xml", b" " * (2 * MEGABYTE))
    with viewing(tmp_path / "store.db", sizes=Sizes(unpacked=MEGABYTE)) as address:
        files = {"file": ("answers.xlsx", packed.getvalue())}
        refused = httpx.post(f"{address}/api/v1/runs", data={"protocol": "atomic"}, files=files)
    assert refused.status_code == 413
    assert "answers.xlsx unpacks to more than 1,048,576 bytes" in refused.text
    assert not (tmp_path / "store-uploads").exists()
