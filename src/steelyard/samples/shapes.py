"""Rows of other tools whose columns are named like ours but mean something else."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from steelyard.errors import InputError
from steelyard.samples import values

ARK: Final = (
    "read as a result file of Volcengine Ark (火山方舟): `response` is the answer, `answer` the reference answer"
)
# The two texts, the tokens they took, and one of the columns that only the platform writes.
_ARK_NEEDS: Final = frozenset(("answer", "response", "usage"))
_ARK_ASKED: Final = frozenset(("prompt", "query"))
_ARK_OWN: Final = frozenset(("parameters", "error", "endpoint_id"))


def recognised(row: Mapping[str, object], fields: Mapping[str, str]) -> tuple[Mapping[str, object], str]:
    """The row under our names, and how it was read; unchanged where its shape is not unmistakable or a mapping
    says what its columns mean."""
    if fields.keys() & {"answer", "reference_answer"} or not _is_ark(row):
        return row, ""
    response, error = row["response"], row.get("error")
    if values.is_blank(response) and not values.is_blank(error):
        raise InputError(f"there is no response: {str(error)[:200]}", field="response")
    rest = {name: value for name, value in row.items() if name not in ("answer", "response")}
    return {**rest, "answer": response, "reference_answer": row["answer"]}, ARK


def _is_ark(row: Mapping[str, object]) -> bool:
    names = row.keys()
    return names >= _ARK_NEEDS and not names.isdisjoint(_ARK_ASKED) and not names.isdisjoint(_ARK_OWN)
