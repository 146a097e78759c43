"""A file of results: the machine, the versions, and the rows of each figure with when and at what load they came."""

from __future__ import annotations

import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from environments import HERE

RESULTS = HERE / "results"
Row = dict[str, Any]


class Results:
    """Written after every row: a long run that is stopped has not been for nothing."""

    def __init__(
        self,
        folder: Path,
        versions: Mapping[str, str] | None = None,
        missing: Mapping[str, str] | None = None,
        *,
        preliminary: bool = False,
    ) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.file = folder / f"{datetime.now(UTC):%Y%m%d-%H%M%S}.json"
        self.figures: dict[str, list[Row]] = {}
        self.measured: dict[str, dict[str, Any]] = {}
        self.data: dict[str, Any] = {
            "preliminary": preliminary,
            "machine": machine(),
            "versions": dict(versions or {}),
            "missing": dict(missing or {}),
            "measured": self.measured,
            "figures": self.figures,
        }

    def add(self, figure: str, rows: Iterable[Row]) -> None:
        """Rows as they are measured, with the load before the first and after each."""
        kept = self.figures[figure] = []
        loads = [load()]
        self.measured[figure] = {"at": f"{datetime.now(UTC):%Y-%m-%d %H:%M}", "loads": loads}
        for row in rows:
            kept.append(row)
            loads.append(load())
            self.file.write_text(json.dumps(self.data, indent=1), "utf-8")


def machine() -> dict[str, str]:
    return {
        "processor": _processor(),
        "cores": str(os.cpu_count()),
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def load() -> float:
    """How many processes wanted the processor in the last minute."""
    return round(os.getloadavg()[0], 1)


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
        return next(line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or "unknown"
