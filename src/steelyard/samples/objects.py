"""Rows that are not mappings: tables in memory, dataclasses, pydantic models, the test cases of other tools.

Nothing is imported for it: a library that made one of these is loaded already.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, cast

from pydantic import BaseModel

from steelyard.errors import ConfigError


def rows_in(samples: object) -> Iterable[object]:
    """The rows of whatever a user calls their samples; a single one is a list of one."""
    if is_record(samples):
        return [samples]
    if hasattr(samples, "itertuples"):
        return _pandas(samples)
    if hasattr(samples, "iter_rows"):
        return cast("Iterable[object]", samples.iter_rows(named=True))
    if hasattr(samples, "to_batches"):
        return (row for batch in samples.to_batches() for row in batch.to_pylist())
    if hasattr(samples, "collect_schema"):
        raise ConfigError("a lazy frame has no rows yet; pass samples.collect()")
    if isinstance(samples, Mapping):
        if samples and all(hasattr(split, "column_names") for split in samples.values()):
            names = ", ".join(map(str, samples))
            raise ConfigError(f"these are several sets ({names}); pass one, e.g. samples[{next(iter(samples))!r}]")
        return [samples]
    if isinstance(samples, Iterable):
        return samples
    # deepeval's dataset holds its cases without being iterable.
    if isinstance(cases := getattr(samples, "test_cases", None), Iterable):
        return cases
    # A result of ragas is a table of its samples and scores.
    if hasattr(samples, "to_pandas"):
        return _pandas(samples.to_pandas())
    raise ConfigError(
        f"{type(samples).__name__} holds no samples: pass a path, a table, or a list of dicts, dataclasses or models"
    )


def is_record(value: object) -> bool:
    """Whether this is one row: a model, or a dataclass that does not hold rows itself."""
    if isinstance(value, type):
        return False
    if isinstance(value, BaseModel):
        return True
    holds_rows = isinstance(value, Iterable) or hasattr(value, "test_cases") or hasattr(value, "to_pandas")
    return (dataclasses.is_dataclass(value) and not holds_rows) or hasattr(value, "_asdict")


def as_mapping(row: object) -> object:
    """A model, dataclass or named tuple as a mapping, all the way down; anything else as it is."""
    if isinstance(row, BaseModel):
        named = {name: getattr(row, name) for name in type(row).model_fields}
        return {name: as_mapping(value) for name, value in (named | (row.model_extra or {})).items()}
    if dataclasses.is_dataclass(row) and not isinstance(row, type):
        return {field.name: as_mapping(getattr(row, field.name)) for field in dataclasses.fields(row)}
    if hasattr(row, "_asdict"):
        return row._asdict()
    if isinstance(row, list | tuple):
        return [as_mapping(part) for part in row]
    return row


def _pandas(frame: Any) -> Iterator[dict[str, object]]:
    """The rows of a pandas frame; an index that was given a name is a column too."""
    if any(name is not None for name in frame.index.names):
        frame = frame.reset_index()
    columns = [str(name) for name in frame.columns]
    if twice := sorted({name for name in columns if columns.count(name) > 1}):
        raise ConfigError(f"two columns of the frame have the same name: {', '.join(twice)}")
    return (dict(zip(columns, row, strict=True)) for row in frame.itertuples(index=False, name=None))
