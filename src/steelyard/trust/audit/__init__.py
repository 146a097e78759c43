"""The audit of a judge: resistance to prompt injection, stability of its labels, sensitivity to single errors.

    from steelyard.trust.audit import audit
    card = audit("embedded", protocols=["atomic"])
    print(card.parts[0].injection.raised.value)

Cases are made by code from data files (`suite`, `changes`, `plan`), judged by the ordinary runner (`driver`), compared
label by label (`movement`), counted (`measure`) and kept as one value (`card`).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypedDict, Unpack

from pydantic import ValidationError

from steelyard.engine.manifest import now
from steelyard.engine.runner import Budget
from steelyard.engine.runs import RunSettings
from steelyard.errors import ConfigError, InputError, Surface, invalid_field
from steelyard.evaluation import Samples, chosen_judge, dated, in_own_loop, rows_of
from steelyard.judges.base import JudgeLike, as_judge
from steelyard.protocols import get_protocol
from steelyard.protocols.common import Options
from steelyard.records import Language, Sample
from steelyard.reports.audit.card import Card
from steelyard.store import Store
from steelyard.trust.audit.driver import Auditor
from steelyard.trust.audit.plan import SECTIONS, Scope, built_in, own
from steelyard.trust.audit.suite import PROTOCOLS, load

__all__ = ["Auditor", "audit", "audit_async", "auditor_for", "read_card", "samples_for", "scope_of"]

OWN_SAMPLES = 20


def scope_of(protocols: Sequence[str] = (), only: Sequence[str] = (), repeats: int = 3) -> Scope:
    """The scope of an audit, from names that a user gives."""
    if unknown := [name for name in only if name not in SECTIONS]:
        raise ConfigError(f"an audit has no part {unknown[0]!r}; it has {', '.join(SECTIONS)}")
    if repeats < 1:
        raise ConfigError(f"repeats are at least 1 (asked once), not {repeats}")
    # By the protocol's own name: that of a rubric is not the name of its file.
    named = dict.fromkeys(get_protocol(name).name for name in protocols)
    if pairs := [name for name in named if get_protocol(name).takes_pairs]:
        raise ConfigError(f"{pairs[0]} compares two answers, and the samples of an audit have one; name another")
    chosen = tuple(name for name in dict.fromkeys((*PROTOCOLS, *named)) if name in named) or PROTOCOLS
    sections = tuple(name for name in SECTIONS if name in only) or SECTIONS
    return Scope(chosen, sections, repeats)


def samples_for(
    data: Samples,
    scope: Scope,
    most: int = OWN_SAMPLES,
    fields: Mapping[str, str] | None = None,
    surface: Surface = Surface.python,
) -> list[Sample]:
    """The first samples of a user's data. All protocols of the scope must judge the same kind of sample."""
    first, *others = map(get_protocol, scope.protocols)
    if other := next((one for one in others if one.kind != first.kind), None):
        raise ConfigError(f"your own data is of one kind, but {first.name} and {other.name} judge different ones")
    found: list[Sample] = []
    for _, row in rows_of(data, first, fields or {}, surface):
        if isinstance(row, InputError):
            raise row
        found.append(row)
        if len(found) >= most:
            break
    if not found:
        raise ConfigError("your own data holds no sample")
    return found


def auditor_for(
    judge: JudgeLike,
    scope: Scope,
    *,
    samples: Sequence[Sample] = (),
    with_built_in: bool = True,
    options: Mapping[str, Options] | None = None,
    settings: RunSettings | None = None,
    store: Store | None = None,
) -> Auditor:
    """An audit that is ready to run: the built-in cases, and those of a user's samples after them."""
    suite = load()
    plans = [built_in(suite, scope)] if with_built_in else []
    if samples:
        plans.append(own(suite, samples, scope))
    if not any(True for plan in plans for _ in plan.trials()):
        raise ConfigError(
            "there is nothing to audit: no case is left of the data, protocols and parts that were chosen"
        )
    chosen = {name: get_protocol(name).parse_options(dated(get_protocol(name), {})) for name in scope.protocols}
    settings, chosen = settings or RunSettings(), chosen | dict(options or {})
    return Auditor(as_judge(judge), suite, plans, scope, chosen, settings, store)


class AuditSettings(TypedDict, total=False):
    """The keyword arguments of `audit`."""

    protocols: Sequence[str]
    only: Sequence[str]
    repeats: int
    data: Samples | None
    samples: int
    with_built_in: bool
    store: str | Path | None
    concurrency: int
    max_cost: float | None
    language: Language


def audit(judge: JudgeLike | str | None = None, **settings: Unpack[AuditSettings]) -> Card:
    """Measure a judge, a `Judge` or a name as on the command line, and return its card.

    With a `store` every reply is kept: a second audit of the same judge costs nothing, a stopped one goes on.
    Works inside a notebook too, where an event loop is running already.
    """
    return in_own_loop(lambda: audit_async(judge, **settings), judge)


async def audit_async(
    judge: JudgeLike | str | None = None,
    *,
    protocols: Sequence[str] = (),
    only: Sequence[str] = (),
    repeats: int = 3,
    data: Samples | None = None,
    samples: int = OWN_SAMPLES,
    with_built_in: bool = True,
    store: str | Path | None = None,
    concurrency: int = 32,
    max_cost: float | None = None,
    language: Language = "en",
) -> Card:
    """The same as a coroutine, for use inside a running event loop."""
    from steelyard import __version__

    scope = scope_of(protocols, only, repeats)
    mine = samples_for(data, scope, samples) if data is not None else []
    made = chosen_judge(judge, concurrency).judge
    opened = Store.open(store) if store is not None else None
    try:
        settings = RunSettings(concurrency, Budget(max_cost))
        work = auditor_for(made, scope, samples=mine, with_built_in=with_built_in, settings=settings, store=opened)
        await work.run()
    finally:
        if opened:
            opened.close()
        if not isinstance(judge, JudgeLike):
            await made.aclose()
    return work.card(language, __version__, now(), data_hash(mine))


def data_hash(samples: Sequence[Sample]) -> str | None:
    """A hash of the user's samples, so that cards can be compared without holding the samples."""
    if not samples:
        return None
    return hashlib.sha256("\n".join(sample.model_dump_json() for sample in samples).encode()).hexdigest()


def read_card(path: Path) -> Card:
    """A card that was written with -o."""
    try:
        return Card.model_validate(json.loads(path.read_text("utf-8")))
    except FileNotFoundError:
        raise InputError("there is no such file", file=str(path)) from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, ValidationError) as error:
        problem = invalid_field(error) if isinstance(error, ValidationError) else error
        raise InputError(f"is not a card of steelyard audit ({problem})", file=str(path)) from None


def check_comparable(card: Card, other: Card, name: str) -> None:
    """Rates of different suites, protocols or samples say nothing about who is better."""
    differs = {
        "the suite": (card.suite, other.suite),
        "the protocols": (card.scope.protocols, other.scope.protocols),
        "the parts": (card.scope.sections, other.scope.sections),
        "the repeats": (card.scope.repeats, other.scope.repeats),
        "the options": (card.scope.options, other.scope.options),
        "your own data": (card.scope.data, other.scope.data),
    }
    for what, (here, there) in differs.items():
        if here != there:
            raise ConfigError(f"{name} cannot be compared with this audit: {what} differ; audit that judge again")
    if other.stopped:
        raise ConfigError(f"{name} is of an audit that was stopped early; run it to its end first")
