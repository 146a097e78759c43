"""`queues`: items of a run that several people label, as on the pages of the viewer."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Annotated

import typer

from steelyard.cli.common import ConfigOption, StoreOption, console
from steelyard.cli.flags import RunArgument
from steelyard.errors import ConfigError

if TYPE_CHECKING:
    from steelyard.people.queues import QueueState

app = typer.Typer(help="List, show, make and close label queues.", no_args_is_help=True, rich_markup_mode=None)
QueueArgument = Annotated[int, typer.Argument(metavar="QUEUE", help="A queue's number.")]


@app.command("list")
def list_(
    run: Annotated[str | None, typer.Option("--run", help="Only the queues of this run.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object per queue.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """List the queues, newest first.

    Example:  steelyard queues list --run last
    """
    from rich.markup import escape
    from rich.table import Table

    from steelyard.people.queues import QueueState
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = opened.queues(opened.run(run).id if run else None)
        queues = [(one, QueueState(one, opened).totals) for one in found]
    if as_json:
        for one, totals in queues:
            print(json.dumps(one._asdict() | totals._asdict(), ensure_ascii=False))
        return
    table = Table("queue", "name", "run", "people", box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("labels", justify="right")
    table.add_column("to settle", justify="right")
    table.add_column("state")
    for one, totals in queues:
        labels, state = f"{totals.done} of {totals.wanted}", "closed" if one.closed else "open"
        people = escape(", ".join(one.people) or "anyone")
        table.add_row(str(one.id), escape(one.name), one.run, people, labels, str(totals.unsettled), state)
    console().print(table)


@app.command("show")
def show(
    queue: QueueArgument,
    as_json: Annotated[bool, typer.Option("--json", help="The queue as JSON.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Show how far a queue is, who labelled how much, and how far people agree.

    Example:  steelyard queues show 1
    """
    from steelyard.people.queues import QueueState
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        _print(QueueState(opened.queue(queue), opened), as_json=as_json)


def _print(state: QueueState, *, as_json: bool = False) -> None:
    one, totals = state.queue, state.totals
    shares, agreement = list(state.shares()), list(state.agreement())
    if as_json:
        document = one._asdict() | totals._asdict()
        document["shares"] = [share.model_dump() for share in shares]
        document["agreement"] = [found.model_dump() for found in agreement]
        print(json.dumps(document, ensure_ascii=False))
        return
    blind = "blind" if one.blind else "with the judge's labels shown"
    print(f"queue {one.id}  {one.name}  run {one.run}  policy {one.policy}  {blind}{'  closed' if one.closed else ''}")
    print(f"labels: {totals.done} of {totals.wanted}; {totals.twice} of {totals.items} items by two people")
    print(f"disagreements: {totals.different}; to settle: {totals.unsettled}")
    for share in shares:
        print(f"  {share.person}: {share.n}")
    for found in agreement:
        kappa = "–" if found.kappa.value is None else f"{found.kappa.value:.2f}".replace("-", "−")
        raw = "–" if found.raw.value is None else f"{found.raw.value:.2f}"
        print(f"  {found.kind}: {found.n} items by two people, agreement {raw}, kappa {kappa}")


@app.command("make")
def make(
    run: RunArgument,
    name: Annotated[str, typer.Option("--name", help="What the queue is called.")],
    person: Annotated[
        list[str] | None, typer.Option("--person", help="Who labels; may be repeated. Default: anyone.")
    ] = None,
    samples: Annotated[int, typer.Option("--samples", min=0, help="How many samples to draw; 0: all.")] = 50,
    twice: Annotated[
        float, typer.Option("--twice", min=0, max=1, help="Share of the samples that two people label.")
    ] = 0.2,
    kind: Annotated[list[str] | None, typer.Option("--kind", help="Only labels of this kind; may be repeated.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", help="Only samples with this tag; may be repeated.")] = None,
    show_judge: Annotated[
        bool, typer.Option("--show-judge", help="Show the judge's labels to those who label.")
    ] = False,
    policy: Annotated[str, typer.Option("--policy", help="Version of the labelling policy they follow.")] = "1",
    seed: Annotated[int, typer.Option("--seed", help="Random seed.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="The queue as JSON.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Draw items of a run for people to label in the viewer.

    Example:  steelyard queues make last --name "first week" --person mei --person jun
    """
    from steelyard.engine.manifest import now
    from steelyard.engine.runs import state_of
    from steelyard.errors import RunInUse
    from steelyard.people.labelling import tasks
    from steelyard.people.queues import QueueState, make_queue
    from steelyard.protocols import vocabulary
    from steelyard.settings import Settings
    from steelyard.store import Store
    from steelyard.store.listing import SampleQuery

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        row = opened.run(run)
        if state_of(row, opened) == "running":
            raise RunInUse(f"run {row.id} is still at work; make the queue when it is done")
        known = [aspect.name for aspect in vocabulary(row.protocol).aspects()]
        for one in kind or ():
            if one not in known:
                raise ConfigError(f"--kind: there is no {one!r} in {row.protocol}; there are {', '.join(known)}")
        made = make_queue(
            opened,
            row,
            partial(tasks, n=samples, seed=seed, kinds=kind or ()),
            name=name,
            people=list(dict.fromkeys(person or ())),
            policy=policy,
            share=twice,
            seed=seed,
            blind=not show_judge,
            filter=SampleQuery(tags=tuple(tag or ())),
            created=now(),
        )
        _print(QueueState(made, opened), as_json=as_json)


@app.command("close")
def close(
    queue: QueueArgument,
    reopen: Annotated[bool, typer.Option("--reopen", help="Open a closed queue again.")] = False,
    config: ConfigOption = None,
    store: StoreOption = None,
) -> None:
    """Close a queue: nobody is given its items any more; its labels stay.

    Example:  steelyard queues close 1
    """
    from steelyard.engine.manifest import now
    from steelyard.settings import Settings
    from steelyard.store import Store

    with Store.open(Settings.load(config).store_location(store), create=False) as opened:
        found = opened.queue(queue)
        opened.close_queue(found.id, None if reopen else now())
    print(f"queue {found.id} is {'open' if reopen else 'closed'}")
