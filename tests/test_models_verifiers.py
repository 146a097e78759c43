"""Verifiers in the cache: listed, pulled from folders, addresses and the hub, verified, removed."""

from __future__ import annotations

import hashlib
import json
import os
import threading
import tomllib
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from command import Steelyard
from small_verifier import TWO, make_verifier
from steelyard.errors import ConfigError, JudgeError, PullError
from steelyard.judges.models.catalogue import known_models, known_verifiers
from steelyard.judges.models.folders import folder_source
from steelyard.judges.models.verifiers import VerifierCache, pull_verifier
from steelyard.judges.verifiers.encoder import Encoder
from steelyard.judges.verifiers.folder import VerifierFile

READY = "nli-deberta-xsmall"
CONVERTED = "minicheck-roberta-large"


class Hub(BaseHTTPRequestHandler):
    """Serves files by their path; what is not in `files` is absent."""

    files: ClassVar[dict[str, bytes]] = {}
    stop_after: int | None = None

    def do_GET(self) -> None:
        found = self.files.get(self.path)
        if found is None:
            self.send_error(404)
            return
        start = int((self.headers.get("Range") or "bytes=0-").removeprefix("bytes=").rstrip("-"))
        self.send_response(206 if start else 200)
        if start:
            self.send_header("Content-Range", f"bytes {start}-{len(found) - 1}/{len(found)}")
        self.send_header("Content-Length", str(len(found) - start))
        self.send_header("ETag", hashlib.sha256(found).hexdigest())
        self.end_headers()
        self.wfile.write(found[start:][: self.stop_after])

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Hub]]:
    """A model hub on loopback, as STEELYARD_HUB names it."""
    handler = type("Handler", (Hub,), {"files": {}})
    httpd = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    monkeypatch.setenv("STEELYARD_HUB", f"http://127.0.0.1:{httpd.server_port}")
    yield handler
    httpd.shutdown()
    httpd.server_close()
    thread.join()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> VerifierCache:
    monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
    return VerifierCache.of_user(os.environ)


@pytest.fixture
def made(tmp_path: Path) -> Path:
    return make_verifier(tmp_path / "made")


def serve(hub: type[Hub], made: Path, repository: str, onnx: str = "onnx/model.onnx") -> None:
    base = f"/{repository}/resolve/main/"
    paths = {"config.json": "config.json", "tokenizer.json": "tokenizer.json", "model.onnx": onnx}
    hub.files.update({base + path: (made / file).read_bytes() for file, path in paths.items()})


def served(name: str) -> str:
    return f"/{known_verifiers()[name].repository}/resolve/main/"


def pull(name: str, given: str | None, cache: VerifierCache) -> None:
    source = folder_source(given, name, known_verifiers().get(name), os.environ)
    assert source is not None
    pull_verifier(name, source, cache)


class TestCatalogue:
    def test_states_licence_languages_and_place(self) -> None:
        """Every verifier of the list says what it may be used for, what it reads and where it is."""
        for known in known_verifiers().values():
            assert known.licence in ("MIT", "Apache-2.0")
            assert known.languages
            assert known.parameters
            assert known.repository.count("/") == 1
        assert not known_verifiers().keys() & known_models().keys()

    def test_settings_are_settings(self) -> None:
        """What is written into a folder can be read by the judge."""
        for known in known_verifiers().values():
            found = VerifierFile.model_validate(tomllib.loads(known.settings))
            assert known.is_ready or found.labels

    def test_ready_ones_name_all_files(self) -> None:
        """A verifier that can be pulled as it is has a model, a tokenizer and a config."""
        ready = [known for known in known_verifiers().values() if known.is_ready]
        assert ready
        assert all(known.files.keys() == {"config.json", "tokenizer.json", "model.onnx"} for known in ready)


class TestFolder:
    def test_is_copied_and_read(self, made: Path, cache: VerifierCache) -> None:
        """A folder of the user's is kept under a name, and what is kept is a verifier."""
        pull("mine", str(made), cache)
        folder, digest = cache.find("mine")
        assert digest == hashlib.sha256((made / "model.onnx").read_bytes()).hexdigest()
        assert Encoder(folder, digest).name == "mine"
        assert cache.seen("mine") == {}

    def test_conversion_of_a_known_one_gets_its_settings(self, tmp_path: Path, cache: VerifierCache) -> None:
        """What a known verifier wants is written beside it, unless the folder brings its own."""
        made = make_verifier(tmp_path / "made", ("0", "1"), TWO)
        pull(CONVERTED, str(made), cache)
        folder, _ = cache.find(CONVERTED)
        assert "template" in (folder / "verifier.toml").read_text("utf-8")
        assert Encoder(folder).room
        cache.remove(CONVERTED)
        (made / "verifier.toml").write_text("[labels]\nsupported = 1\n", "utf-8")
        pull(CONVERTED, str(made), cache)
        assert (folder / "verifier.toml").read_text("utf-8") == "[labels]\nsupported = 1\n"

    def test_without_a_model_is_refused(self, made: Path, cache: VerifierCache) -> None:
        """What is missing is named before anything is touched."""
        (made / "model.onnx").unlink()
        (made / "config.json").unlink()
        with pytest.raises(ConfigError, match=r"without config\.json, model\.onnx or model_quantized\.onnx"):
            pull("mine", str(made), cache)
        assert not cache.folder.exists()

    def test_pointer_file_is_no_model(self, made: Path, cache: VerifierCache) -> None:
        """A checkout without large files holds pointers; they are not kept."""
        (made / "model.onnx").write_text("version https://git-lfs.github.com/spec/v1\n")
        with pytest.raises(PullError, match=r"its model\.onnx is not an ONNX model; nothing was kept"):
            pull("mine", str(made), cache)
        assert not cache.path_for("mine").exists()

    def test_changed_file_is_noticed(self, made: Path, cache: VerifierCache) -> None:
        """A verifier whose files changed since it was pulled is not used; a touched one is."""
        pull("mine", str(made), cache)
        folder, _ = cache.find("mine")
        os.utime(folder / "model.onnx", ns=(1, 1))
        cache.find("mine")
        record = cache.record("mine")
        assert record is not None
        assert record.files["model.onnx"].modified == 1
        (folder / "config.json").write_text("{}", "utf-8")
        with pytest.raises(JudgeError, match=r"config\.json is no longer the file that was pulled"):
            cache.find("mine")

    def test_record_that_points_elsewhere_is_ignored(self, made: Path, cache: VerifierCache) -> None:
        """A record speaks of the files beside it and of nothing else."""
        pull("mine", str(made), cache)
        path = cache.path_for("mine") / "record.json"
        found = json.loads(path.read_text("utf-8"))
        found["files"]["../../x.onnx"] = found["files"].pop("model.onnx")
        path.write_text(json.dumps(found), "utf-8")
        assert cache.records() == []

    @pytest.mark.parametrize("name", ["..", "a/b", "", "x.gguf", "-x"])
    def test_no_name_leads_out_of_the_shelf(self, name: str, cache: VerifierCache) -> None:
        """Names are plain words."""
        with pytest.raises(ConfigError, match="cannot be a verifier's name"):
            cache.path_for(name)


class TestHub:
    def test_first_pull_is_remembered(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """The first pull records what came; after a removal the same is taken, another is refused with both hashes."""
        serve(hub, made, known_verifiers()[READY].repository)
        pull(READY, None, cache)
        first = cache.record(READY)
        assert first is not None
        assert (first.checked, first.licence) == (False, "Apache-2.0")
        cache.remove(READY)
        pull(READY, None, cache)
        again = cache.record(READY)
        assert again is not None
        assert again.checked
        cache.remove(READY)
        other = make_verifier(made.parent / "other", weights={"yes": (9.0, 0.0, 0.0)})
        hub.files[served(READY) + "onnx/model.onnx"] = (other / "model.onnx").read_bytes()
        sha256 = again.files["model.onnx"].sha256
        with pytest.raises(PullError, match=rf"its model\.onnx has .*, expected is {sha256}; nothing .*--forget"):
            pull(READY, None, cache)
        assert not cache.path_for(READY).exists()
        cache.remove(READY, forget=True)
        pull(READY, None, cache)
        assert cache.seen(READY)["model.onnx"] != sha256

    def test_any_repository(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """hub:OWNER/REPO is searched for a model where exporters put one."""
        serve(hub, made, "someone/thing", "onnx/model_quantized.onnx")
        pull("mine", "hub:someone/thing", cache)
        assert Encoder(*cache.find("mine")).room
        assert cache.seen("mine") == {}

    def test_repository_without_onnx(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """The places that were tried are named."""
        serve(hub, made, "someone/thing", "pytorch_model.bin")
        with pytest.raises(PullError, match=r"hub someone/thing has no model\.onnx; tried: .*/onnx/model_quantized"):
            pull("mine", "hub:someone/thing", cache)
        assert cache.record("mine") is None

    def test_broken_download_goes_on(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """After a connection that broke, the same pull ends well."""
        serve(hub, made, "someone/thing")
        hub.stop_after = 700
        with pytest.raises(PullError, match="run the same command again"):
            pull("mine", "hub:someone/thing", cache)
        hub.stop_after = None
        pull("mine", "hub:someone/thing", cache)
        assert Encoder(*cache.find("mine")).room

    def test_what_another_source_left_is_not_mixed_in(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """Files of an earlier pull that broke off, from elsewhere, are not taken for this one's."""
        cache.path_for("mine").mkdir(parents=True)
        (cache.path_for("mine") / "verifier.toml").write_text("length = 32\n", "utf-8")
        serve(hub, made, "someone/thing")
        pull("mine", "hub:someone/thing", cache)
        assert not (cache.path_for("mine") / "verifier.toml").exists()

    def test_address_of_a_folder(self, hub: type[Hub], made: Path, cache: VerifierCache) -> None:
        """An address that ends in a slash is one."""
        hub.files.update({f"/x/{path.name}": path.read_bytes() for path in made.iterdir()})
        pull("mine", f"{os.environ['STEELYARD_HUB']}/x/", cache)
        assert Encoder(*cache.find("mine")).room

    @pytest.mark.parametrize("given", ["ftp://e.x/folder/", "https://e.x/folder/?key=1", "hub:/x", "hub:../x"])
    def test_what_leads_nowhere_is_refused(self, given: str) -> None:
        """Before anything is touched."""
        with pytest.raises(ConfigError):
            folder_source(given, "mine", None, {})

    @pytest.mark.parametrize("given", [None, "hub", "m.gguf", "https://e.x/m.gguf", "hub:a/b/c.gguf", "packages"])
    def test_model_files_are_left_to_the_local_judge(self, given: str | None) -> None:
        """What can only be a file is none of a verifier's sources."""
        assert folder_source(given, "mine", None, {}) is None


class TestCommand:
    def test_own_folder(self, steelyard: Steelyard, made: Path, cache: VerifierCache) -> None:
        """Pulled without a question, listed, pulled again without harm, removed."""
        pulled = steelyard("models", "pull", "mine", "--from", made)
        assert pulled.code == 0
        assert "there is none to compare it with" in pulled.out
        assert "-j verifier:mine" in pulled.out
        assert "mine" in steelyard("models").out
        sha256 = hashlib.sha256((made / "model.onnx").read_bytes()).hexdigest()
        shown = steelyard("models", "show", "mine").out
        assert f"SHA-256      {sha256}  model.onnx" in shown
        assert str(cache.path_for("mine")) in shown
        assert "already here" in steelyard("models", "pull", "mine").out
        assert "already here" in steelyard("models", "pull", "mine", "--from", made).out
        assert steelyard("models", "remove", "mine").code == 0
        assert steelyard("models", "remove", "mine").code == 2

    def test_unverified_one_needs_consent(
        self, steelyard: Steelyard, hub: type[Hub], made: Path, cache: VerifierCache
    ) -> None:
        """Without a terminal --yes is asked for, once: the next pull has something to compare with."""
        serve(hub, made, known_verifiers()[READY].repository)
        refused = steelyard("models", "pull", READY, stdin="")
        assert refused.code == 2
        assert "add --yes" in refused.err
        assert cache.records() == []
        assert steelyard("models", "pull", READY, "--yes").code == 0
        assert steelyard("models", "remove", READY).code == 0
        again = steelyard("models", "pull", READY, stdin="")
        assert (again.code, "as expected" in again.out) == (0, True)

    def test_one_to_convert_says_so(self, steelyard: Steelyard, cache: VerifierCache) -> None:
        """The error is the way to get it."""
        done = steelyard("models", "pull", CONVERTED)
        assert done.code == 2
        assert "convert lytang/MiniCheck-RoBERTa-Large (docs/models.md)" in done.err

    def test_list_shows_what_must_be_known(self, steelyard: Steelyard, cache: VerifierCache) -> None:
        """Languages, size, licence, whether the hash is known and whether it must be converted."""
        out = steelyard("models").out
        assert all(name in out for name in known_verifiers())
        assert all(word in out for word in ("unverified", "to convert", "MIT", "1.74 GB", "25 more"))

    def test_show_says_what_is_known(self, steelyard: Steelyard, cache: VerifierCache) -> None:
        """Origin, licence and languages; a hash that nobody has computed is said to be missing."""
        ready = steelyard("models", "show", READY).out
        assert "hub cross-encoder/nli-deberta-v3-xsmall" in ready
        assert "unverified until first pull  model.onnx" in ready
        assert "docs/models.md" in steelyard("models", "show", CONVERTED).out
        assert known_models()["smollm2"].sha256 in steelyard("models", "show", "smollm2").out
        assert "there is no model 'nobody'" in steelyard("models", "show", "nobody").err

    def test_names_are_those_of_one_kind(self, steelyard: Steelyard, made: Path, cache: VerifierCache) -> None:
        """A name cannot mean a verifier and a model of the local judge."""
        file = made.parent / "own.gguf"
        file.write_bytes(b"GGUF1234")
        assert steelyard("models", "pull", "one", "--from", file).code == 0
        assert steelyard("models", "pull", "one", "--from", made).code == 2
        assert steelyard("models", "pull", "two", "--from", made).code == 0
        assert steelyard("models", "pull", "two", "--from", file).code == 2


class TestMissing:
    @pytest.mark.parametrize(
        ("name", "said"),
        [
            (READY, rf"steelyard models pull {READY} \(284 MB, once\)"),
            (CONVERTED, r"convert lytang/MiniCheck-RoBERTa-Large"),
            ("smollm2", "-j local:smollm2"),
            ("nobody", r"there is no verifier 'nobody'; known are .*verifier:\./nobody"),
        ],
    )
    def test_error_says_how_to_get_it(self, name: str, said: str, cache: VerifierCache) -> None:
        """What is not here yet names the command that brings it."""
        with pytest.raises(JudgeError, match=said):
            cache.find(name)
