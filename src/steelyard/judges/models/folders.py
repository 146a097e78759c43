"""Where a verifier's files come from: a folder of the user's, an address that ends in a slash, a model hub."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from steelyard.errors import ConfigError
from steelyard.judges.models.catalogue import KnownVerifier
from steelyard.judges.models.sources import FromAddress, FromFile, Source, hub_folder

CONFIG, TOKENIZER, SETTINGS = "config.json", "tokenizer.json", "verifier.toml"
MODELS = ("model.onnx", "model_quantized.onnx")
WEIGHTS_BESIDE = (".onnx_data", ".onnx.data")


class ModelFile(NamedTuple):
    """One file of a verifier: its name here, and where it may be; the first place that has it counts."""

    target: str
    sources: Sequence[Source]
    is_needed: bool = True


class FolderSource(NamedTuple):
    """All files of a verifier, small ones first. `is_elsewhere`: they come over the network."""

    name: str
    parts: Sequence[ModelFile]
    is_elsewhere: bool


def is_weights_beside(name: str) -> bool:
    """Files in which exporters put weights that do not fit into the model file."""
    return name.endswith(WEIGHTS_BESIDE)


def folder_source(
    given: str | None, name: str, known: KnownVerifier | None, environment: Mapping[str, str]
) -> FolderSource | None:
    """The source that `--from` names, where it is one of verifiers; None where it can only be a model file."""
    if given in (None, "hub"):
        return _of_catalogue(known, environment) if known else None
    assert given is not None
    kind, _, place = given.partition(":")
    if kind == "hub" and (known or place.count("/") == 1):
        return _elsewhere(f"hub {place}", _repository(place, environment), {})
    if "://" in given:
        if not (known or urlsplit(given).path.endswith("/")):
            return None
        parts = urlsplit(given)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ConfigError(f"--from takes an http or https address, not {given!r}")
        if parts.query:
            raise ConfigError("the address of a folder has no question mark; its files' names are added to it")
        return _elsewhere(given, given.rstrip("/") + "/", {})
    path = Path(given).expanduser()
    if path.is_dir():
        return _here(path)
    if known:
        raise ConfigError(f"there is no folder {path} to pull {name} from")
    return None


def _of_catalogue(known: KnownVerifier, environment: Mapping[str, str]) -> FolderSource:
    if not known.is_ready:
        raise ConfigError(to_convert(known))
    return _elsewhere(f"hub {known.repository}", _repository(known.repository, environment), known.files)


def _repository(place: str, environment: Mapping[str, str]) -> str:
    match place.split("/"):
        case [owner, repository] if owner and repository and ".." not in (owner, repository):
            return hub_folder(owner, repository, environment)
    raise ConfigError(f"a verifier's place on a model hub is OWNER/REPO, not {place!r}")


def to_convert(known: KnownVerifier) -> str:
    """What to do about a verifier that the hub has no ONNX model of."""
    return (
        f"{known.name} is not on the hub as an ONNX model: convert {known.repository} (docs/models.md), then "
        f"steelyard models pull {known.name} --from FOLDER"
    )


def _here(folder: Path) -> FolderSource:
    there = {path.name: path for path in folder.iterdir() if path.is_file()}
    model = next((name for name in MODELS if name in there), None)
    missing = [name for name in (CONFIG, TOKENIZER) if name not in there] + ([] if model else [" or ".join(MODELS)])
    if missing or model is None:
        raise ConfigError(f"{folder} is a folder without {', '.join(missing)}")
    extra = [name for name in sorted(there) if name == SETTINGS or is_weights_beside(name)]
    names = [CONFIG, TOKENIZER, *extra, model]
    return FolderSource(f"folder {folder.name}", [ModelFile(name, [FromFile(there[name])]) for name in names], False)


def _elsewhere(name: str, base: str, files: Mapping[str, str]) -> FolderSource:
    """By the catalogue's list of files, else by where exporters put them."""

    def at(*paths: str) -> list[Source]:
        return [FromAddress(base + quote(path)) for path in paths]

    if files:
        return FolderSource(name, [ModelFile(target, at(path)) for target, path in files.items()], True)
    models = [f"{folder}{model}" for model in MODELS for folder in ("", "onnx/")]
    parts = [
        ModelFile(CONFIG, at(CONFIG)),
        ModelFile(TOKENIZER, at(TOKENIZER)),
        ModelFile(SETTINGS, at(SETTINGS), is_needed=False),
        ModelFile(f"{MODELS[0]}_data", at(f"{MODELS[0]}_data", f"onnx/{MODELS[0]}_data"), is_needed=False),
        ModelFile(MODELS[0], at(*models)),
    ]
    return FolderSource(name, parts, True)
