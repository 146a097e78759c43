"""Hugging Face datasets, by name on the hub or by path on disk: `NAME`, `NAME:SPLIT`, `NAME:CONFIG:SPLIT`."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from steelyard.errors import InputError, MissingExtra
from steelyard.samples.columns import Kind
from steelyard.samples.files import Place, Rows
from steelyard.samples.importers.base import Imported, Importer, Skipped, ids, one_by_one, plain_id


def _open(name: str) -> Rows:
    """The rows of one split, streamed. Code that comes with a dataset is never run."""
    if importlib.util.find_spec("datasets") is None:
        raise MissingExtra("datasets", "huggingface", "reading Hugging Face datasets")
    import datasets

    path, config, split = _parts(name)
    try:
        if (Path(path) / "state.json").is_file() or (Path(path) / "dataset_dict.json").is_file():
            table: Any = datasets.load_from_disk(path)
        else:
            table = datasets.load_dataset(path, config or None, streaming=True)
        if hasattr(table, "keys"):
            splits = list(table)
            if not split and len(splits) > 1:
                problem = f"has the splits {', '.join(splits)}; name one: {path}:{splits[0]}"
                yield Place(name, 0, "line"), InputError(problem, file=name)
                return
            if split and split not in splits:
                problem = f"has no split {split!r}; there are {', '.join(splits)}"
                yield Place(name, 0, "line"), InputError(problem, file=name)
                return
            table = table[split or splits[0]]
        for number, row in enumerate(table, 1):
            yield Place(name, number, "row"), row
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        problem = str(error).partition("\n")[0][:300] or type(error).__name__
        yield Place(name, 0, "line"), InputError(f"cannot be read as a dataset: {problem}", file=name)


def _parts(name: str) -> tuple[str, str, str]:
    if Path(name).exists():
        return name, "", ""
    path, *rest = name.split(":")
    return path, rest[0] if len(rest) > 1 else "", rest[-1] if rest else ""


def _row(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    yield Imported(row, ids("huggingface", row_id=plain_id(row.get("id"))), (), row)


IMPORTER = Importer(
    "huggingface",
    "Hugging Face datasets",
    one_by_one(_row),
    open=_open,
    opens=lambda name: True,
    has_names=True,
)
