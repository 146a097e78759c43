"""Inspect: logs of `inspect eval`, as `.eval` archives and as JSON.

An archive is a ZIP file from elsewhere: members are read one at a time, by their names in the archive only, and never
further than a bound.
"""

from __future__ import annotations

import importlib.util
import json
import sys
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from typing import Any, Final

from steelyard.errors import InputError, MissingExtra
from steelyard.samples.columns import Kind
from steelyard.samples.files import Place, Rows
from steelyard.samples.importers.base import (
    Imported,
    ImportedScore,
    Importer,
    Skipped,
    ids,
    list_at,
    mapping_at,
    one_by_one,
    plain_id,
    scored,
    signs,
    text_at,
)
from steelyard.samples.importers.content import answer_in, has_more_than_text, messages_in, passages_beside, question_in
from steelyard.samples.importers.conversations import Conversation

SUFFIX: Final = ".eval"
SAMPLES: Final = "samples/"
MOST_BYTES: Final = 256_000_000
"""What one sample may unpack to; with its events a long agent run takes some ten megabytes."""
MOST_SAMPLES: Final = 1_000_000
ZSTD: Final = 93
GRADES: Final = {"C": 1.0, "I": 0.0, "P": 0.5, "N": 0.0}
"""Correct, incorrect, partly, no answer: what Inspect itself counts them as."""


def _open(name: str) -> Rows:
    try:
        with zipfile.ZipFile(name) as archive:
            members = [member for member in archive.infolist() if _is_sample(member.filename)]
            if len(members) > MOST_SAMPLES:
                yield _whole(name, f"holds {len(members):,} samples, more than {MOST_SAMPLES:,}")
                return
            needed = {member.compress_type for member in members}
            if ZSTD in needed and not _reads_zstd():
                raise MissingExtra("zipfile-zstd", "inspect", f"reading {name}, which is packed with Zstandard,")
            for number, member in enumerate(members, 1):
                place = Place(f"{name}:{member.filename}", number, "item")
                yield place, _sample_of(archive, member, place)
    except FileNotFoundError:
        yield _whole(name, "no such file")
    except (OSError, zipfile.BadZipFile, zlib.error, ValueError, NotImplementedError) as error:
        yield _whole(name, f"is not an .eval log that can be read: {str(error)[:200]}")


def _whole(file: str, problem: str) -> tuple[Place, InputError]:
    return Place(file, 0, "line"), InputError(problem, file=file)


def _is_sample(name: str) -> bool:
    return name.startswith(SAMPLES) and name.endswith(".json") and ".." not in name


def _reads_zstd() -> bool:
    if sys.version_info >= (3, 14):
        return True
    if importlib.util.find_spec("zipfile_zstd") is None:
        return False
    importlib.import_module("zipfile_zstd")  # it teaches zipfile on import
    return True


def _sample_of(archive: zipfile.ZipFile, member: zipfile.ZipInfo, place: Place) -> object:
    """The sample, or what is wrong with it. What the archive says of its size is not believed."""
    if member.flag_bits & 1:
        return place.error("is encrypted")
    with archive.open(member) as packed:
        content = packed.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        return place.error(f"unpacks to more than {MOST_BYTES:,} bytes")
    try:
        return json.loads(content)
    except UnicodeDecodeError:
        return place.error("is not UTF-8")
    except (ValueError, RecursionError) as error:
        return place.error(f"is not JSON that can be read: {str(error)[:120]}")


def _sample(row: Mapping[str, Any], kind: Kind, skipped: Skipped) -> Iterator[Imported]:
    id, epoch = plain_id(row.get("id")), plain_id(row.get("epoch"))
    source = ids("inspect", sample_id=id, epoch=epoch, sample_uuid=row.get("uuid"))
    # Epochs after the first are further answers to the same question.
    named = id if epoch in ("", "1") else f"{id}#{epoch}"
    if row.get("error"):
        skipped["sample that ended in an error"] += 1
        return
    if row.get("choices"):
        skipped["choices of a multiple-choice question (the question is taken without them)"] += 1
    if has_more_than_text(row.get("input")):
        skipped["image, sound or file in a message"] += 1
    scores = list(_scores(row, skipped))
    said = _completion(row)
    model = text_at(mapping_at(row, "output"), "model")
    if kind == "dialogue":
        talk = Conversation(named, source, row)
        talk.more = {"model": model} if model else {}
        talk.add_messages(messages_in(row.get("messages")), skipped)
        talk.scores = scores
        yield from talk.imported(kind, skipped)
        return
    target = row.get("target")
    fields = {
        "id": named,
        "question": question_in(row.get("input")),
        "answer": said,
        "reference_answer": target or None,
        "references": passages_beside(row.get("metadata")),
        "model": model or None,
    }
    yield Imported({name: value for name, value in fields.items() if value is not None}, source, tuple(scores), row)


def _completion(row: Mapping[str, Any]) -> str | None:
    output = mapping_at(row, "output")
    if isinstance(completion := output.get("completion"), str):
        return completion
    return answer_in(list_at(output, "choices")[:1])


def _scores(row: Mapping[str, Any], skipped: Skipped) -> Iterator[ImportedScore]:
    for scorer, score in mapping_at(row, "scores").items():
        entry = score if isinstance(score, Mapping) else {"value": score}
        value, reason = entry.get("value"), text_at(entry, "explanation")
        for name, one in value.items() if isinstance(value, Mapping) else [("", value)]:
            called = f"{scorer}.{name}" if name else scorer
            yield from scored(skipped, called, GRADES.get(one, one) if isinstance(one, str) else one, reason=reason)


IMPORTER = Importer(
    "inspect",
    "Inspect",
    one_by_one(_sample),
    signs=(signs("id epoch input target output.choices messages"),),
    suffix=SUFFIX,
    open=_open,
    opens=lambda name: name.casefold().endswith(SUFFIX),
)
