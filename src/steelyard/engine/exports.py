"""Runs as files: result lines, tables, datasets, and whole runs that another store can take over."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError

from steelyard.engine.datasets import names_folder, write_dataset
from steelyard.errors import ConfigError, InputError, invalid_field
from steelyard.protocols import get_protocol
from steelyard.records import Usage, Verdict
from steelyard.reports.files import write_csv, write_lines
from steelyard.reports.parquet import write_parquet
from steelyard.reports.results import Results
from steelyard.store import SAMPLE, RunRow, Store, StoredReply, run_identity
from steelyard.store.labels import HumanLabel
from steelyard.store.rows import MetaValue


def write(store: Store, run: RunRow, to: str | Path, *, items: bool = False, whole: bool = False) -> int:
    """Write a run in the form that the name asks for, of a file or a folder; returns how many lines or rows."""
    if names_folder(str(to)):
        if items or whole:
            raise ConfigError("--items and --whole are for files; a folder holds verdicts and items")
        return write_dataset(store, run, str(to))
    out = Path(to)
    if whole or out.suffix in (".jsonl", ".ndjson"):
        if items:
            raise ConfigError("--items is for .csv and .parquet; result lines hold the items already")
        return write_lines(out, _whole(store, run) if whole else (v.line() for _, v in store.verdicts(run.id)))
    if out.suffix == ".csv":
        return write_csv(out, rows(store, run, items=items))
    if out.suffix == ".parquet":
        return write_parquet(out, store.verdicts(run.id), "items" if items else "verdicts")
    raise ConfigError(f"{out}: the name must end in .jsonl, .csv or .parquet, or in / for a folder of Parquet")


def rows(store: Store, run: RunRow, *, items: bool) -> Iterator[dict[str, Any]]:
    """A run as flat rows, one per sample or per labelled item."""
    for sample, verdict in store.verdicts(run.id):
        one = Results(run.protocol, [(sample, verdict)], [])
        yield from one.item_rows() if items else one.rows()


def _whole(store: Store, run: RunRow) -> Iterator[dict[str, Any]]:
    yield {"run": run._asdict()}
    for sample, verdict in store.verdicts(run.id):
        yield {"sample": sample.model_dump(mode="json"), "verdict": verdict.model_dump(mode="json")}
    for bad in store.bad_rows(run.id):
        yield {"bad_row": {"file": bad.file, "line": bad.line, "field": bad.field, "problem": bad.problem}}
    for key, repeat, stored in store.used_replies(run.id):
        yield {"reply": {**stored._asdict(), "usage": stored.usage.model_dump(), "key": key, "repeat": repeat}}
    for label in store.labels(run.id):
        yield {"label": label.model_dump(mode="json")}


class _Head(BaseModel):
    """The first line of an exported run. The id becomes part of file names and addresses."""

    id: str = Field(pattern=r"^[\w-]+$")
    protocol: str
    judge: str
    state: Literal["running", "stopped", "complete", "failed"]
    started: str
    finished: str | None
    manifest: dict[str, Any]
    name: str = ""
    notes: str = ""
    tags: tuple[str, ...] = ()
    meta: dict[str, MetaValue] = Field(default_factory=dict)
    project: str = ""


def read(store: Store, file: Path) -> RunRow:
    """Take over a run that `write(whole=True)` wrote. All or nothing."""
    lines = _entries(file)
    number, first = next(lines, (1, {}))
    if not isinstance(first.get("run"), dict):
        raise InputError(
            "is not a whole run; write one with: steelyard export RUN --to FILE --whole", file=str(file), line=number
        )
    try:
        run = _Head.model_validate(first["run"])
    except ValidationError as error:
        field, problem, _ = invalid_field(error)
        raise InputError(problem, file=str(file), line=number, field=f"run.{field}") from None
    # Nobody here could show or rescore a run of a protocol that is not installed.
    get_protocol(run.protocol)
    if any(known.id == run.id for known in store.runs()):
        raise ConfigError(f"run {run.id} is in this store already")
    with store.all_or_nothing():
        # Whether it is a baseline is for the people of this store to say.
        identity = run_identity(run.model_dump(include={"name", "notes", "tags", "meta", "project"}))
        store.create_run(run.id, run.protocol, run.judge, run.started, run.manifest, identity)
        seq = 0
        for number, line in lines:
            try:
                if "bad_row" in line:
                    store.add_bad_row(run.id, InputError(**line["bad_row"]))
                    continue
                if "reply" in line:
                    _take_reply(store, run.id, dict(line["reply"]))
                    continue
                if "label" in line:
                    store.take_label(HumanLabel.model_validate(line["label"]).model_copy(update={"run": run.id}))
                    continue
                sample, verdict = SAMPLE.validate_python(line["sample"]), Verdict.model_validate(line["verdict"])
            except (KeyError, TypeError, ValidationError) as error:
                why = invalid_field(error) if isinstance(error, ValidationError) else error
                raise InputError(f"cannot be taken over: {why}", file=str(file), line=number) from None
            store.add_verdict(run.id, seq, sample, verdict)
            seq += 1
        rows = run.manifest.get("rows")
        if run.state == "complete" and isinstance(rows, int) and (missing := store.unaccounted(run.id, rows)):
            raise InputError(f"is cut off: {missing} of {rows} rows of this complete run are missing", file=str(file))
        store.update_run(run.id, state=run.state, finished=run.finished, manifest=run.manifest)
    return store.run(run.id)


def _take_reply(store: Store, run: str, given: dict[str, Any]) -> None:
    key, repeat = given.pop("key"), given.pop("repeat")
    stored = StoredReply(**{**given, "usage": Usage.model_validate(given["usage"])})
    known = store.reply(key)
    if known is not None and known.reply != stored.reply:
        # Here the same judge said something else to the same ask; each run keeps what it was told.
        key = hashlib.sha256(f"{key}\x00{run}".encode()).hexdigest()[:40]
        known = store.reply(key)
    if known is None:
        store.add_reply(key, stored)
    store.use_reply(run, stored.ask, key, repeat)


def _entries(file: Path) -> Iterator[tuple[int, Mapping[str, Any]]]:
    try:
        with file.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, start=1):
                if line.isspace():
                    continue
                try:
                    entry = json.loads(line)
                except ValueError as error:
                    raise InputError(f"is not JSON: {error}", file=str(file), line=number) from None
                yield number, entry if isinstance(entry, dict) else {}
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot be read: {error}", file=str(file)) from None
