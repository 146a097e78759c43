"""How a run came about: enough to say why two runs differ, and to do one again."""

from __future__ import annotations

import hashlib
import platform
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from steelyard.judges.base import Judge
from steelyard.judges.composed import described
from steelyard.prompts import Prompts
from steelyard.protocols import Protocol
from steelyard.protocols.common import Options

PACKAGES = ("steelyard", "pydantic", "aiohttp", "json-repair")


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
    judge_described = described(judge)
    is_verified = judge_described.get("kind") == "verifying"
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
            if prompt.task in protocol.tasks
            or prompt.task.startswith((f"{protocol.name}.", "again", "reply"))
            or (prompt.task == "verify" and is_verified)
        },
        "judge": judge_described,
        "data": list(data),
        "fields": dict(fields),
        "encoding": encoding,
        "packages": dict(_versions(PACKAGES)),
        "python": platform.python_version(),
        "commit": _commit(),
    }


def data_file(source: str) -> dict[str, Any]:
    """What a manifest says of a file of samples."""
    path = Path(source)
    if source == "-" or not path.is_file():
        return {"path": source}
    return {"path": source, "bytes": path.stat().st_size, "sha256": file_sha256(path)}


def file_sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


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
