"""The run manifest: everything needed to compare two runs, repeat one, and check that nothing has changed."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from steelyard.engine.templates import check_unchanged as check_template
from steelyard.errors import ConfigError
from steelyard.judges.base import Judge
from steelyard.judges.masking import shown_body, shown_url
from steelyard.prompts import TEMPLATE, Prompts
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options
from steelyard.samples.files import files_of
from steelyard.samples.locations import is_dataset
from steelyard.store import RunRow
from steelyard.tasks import PROBE

PACKAGES = ("steelyard", "pydantic", "aiohttp", "json-repair")
# Another HTTP client sends the same.
SHAPING_PACKAGES = ("steelyard",)
# What a judge says of itself that shapes its answers; time limits and prices do not.
SHAPING = ("provider", "base_url", "model", "body", "structured", "logprobs")
SHOWN: Mapping[str, Callable[[Any], Any]] = {"base_url": shown_url, "body": shown_body}
TOGETHER = ("kind", "weight", "repeat", "min_agreement", "quorum", "ties", "unconfirmed", "sure", "sample", "lists")
PARTS = ("members", "escalate", "judge", "verifier", "first", "then")


def now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def make_manifest(
    protocol: Protocol,
    options: Options,
    judge: Judge,
    prompts: Prompts,
    data: Sequence[Mapping[str, Any]],
    fields: Mapping[str, str],
    encoding: str,
) -> dict[str, Any]:
    described = judge.described()
    is_verified = described.get("kind") == "verifying"
    template = {"template": dict(protocol.template)} if protocol.template else {}
    return {
        "protocol": {
            "name": protocol.name,
            "version": protocol.version,
            **({"origin": dict(protocol.origin)} if protocol.origin else {}),
        },
        "options": options.model_dump(mode="json"),
        "prompts": {
            prompt.id: {"version": prompt.version, "sha256": prompt.sha256, "source": prompt.source}
            for prompt in prompts
            if (
                prompt.task == TEMPLATE
                if protocol.template
                else prompt.task in protocol.tasks
                or prompt.task.startswith((f"{protocol.name}.", "again", "reply"))
                or (prompt.task == "verify" and is_verified)
            )
        },
        "judge": described,
        "data": list(data),
        "fields": dict(fields),
        "encoding": encoding,
        "packages": dict(_versions(PACKAGES)),
        "python": platform.python_version(),
        "commit": _commit(),
    } | template


def described_data(source: str, format: str | None = None) -> dict[str, Any]:
    """What a manifest says of a source of samples: a file with the hash of its content; a folder, glob or URL with a
    hash over the names, sizes and versions of its files, since reading all of them twice would take too long."""
    path = Path(source)
    if is_dataset(source):
        files, digest = files_of(source, format), hashlib.sha256()
        for file in files:
            digest.update(f"{file.name}\0{file.size}\0{file.version}\n".encode())
        size = sum(file.size for file in files)
        return {"path": source, "files": len(files), "bytes": size, "sha256": digest.hexdigest()}
    if source == "-" or not path.is_file():
        return {"path": source}
    return {"path": source, "bytes": path.stat().st_size, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def check_unchanged(row: RunRow, judge: Judge, prompts: Prompts) -> None:
    """Refuse to continue a run with another model, parameter or prompt: its scores would not be comparable."""
    if judge.name != row.judge:
        raise ConfigError(f"run {row.id} was judged by {row.judge}, not by {judge.name}; start a new run instead")
    check_template(row.id, row.manifest)
    if judge.fingerprint(PROBE) == judge.name:
        return  # it does not say what its answers depend on
    then, today = row.manifest.get("judge", {}), judge.described()
    words = {prompt.id: prompt.sha256 for prompt in prompts}
    changed = differing(then, today)
    changed += [
        f"the prompt {id}"
        for id, prompt in row.manifest.get("prompts", {}).items()
        if words.get(id) != prompt["sha256"]
    ]
    if changed:
        raise ConfigError(
            f"{changed[0]} is not what it was when run {row.id} began; "
            "put it back (--prompts, steelyard.toml, OPENAI_BASE_URL), or start a new run"
        )


def differing_packages(then: Mapping[str, Any]) -> list[tuple[str, str, str]]:
    """Of the packages that shape answers, those of another version here than a manifest has: name, here, there."""
    there, here = then.get("packages", {}), dict(_versions(SHAPING_PACKAGES))
    return [(name, here[name], there[name]) for name in here if name in there and here[name] != there[name]]


def differing(then: Mapping[str, Any], today: Mapping[str, Any]) -> list[str]:
    """The settings in which two judge descriptions differ, of those that affect answers; for a panel, by member."""
    # Earlier versions kept parameters as they were, secrets included.
    then = {name: SHOWN[name](value) if name in SHOWN and value else value for name, value in then.items()}
    found = [name for name in (*SHAPING, *TOGETHER) if name in then and then[name] != today.get(name)]
    for name in PARTS:
        before, after = (_listed(side.get(name)) for side in (then, today))
        if len(before) != len(after):
            found.append(name)
        for one, other in zip(before, after, strict=False):
            found += [f"{part} of {one.get('name', name)}" for part in differing(one, other)]
    return found


def _listed(part: Any) -> list[Mapping[str, Any]]:
    return list(part) if isinstance(part, list | tuple) else [part] if part else []


def _versions(names: Iterable[str]) -> Iterable[tuple[str, str]]:
    for name in names:
        try:
            yield name, version(name)
        except PackageNotFoundError:
            continue


def _commit() -> str | None:
    """The commit of the folder the user works in, where it is a git checkout."""
    try:
        done = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, timeout=5, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() or None if done.returncode == 0 else None
