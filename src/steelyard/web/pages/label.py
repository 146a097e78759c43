"""Labelling: one item at a time, one key per label, blind to what the judge said; and labels as files."""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import quote, unquote

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import FormData, UploadFile
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Route

from steelyard.engine.manifest import now
from steelyard.engine.runs import state_of
from steelyard.errors import InputError, RunInUse
from steelyard.people.labelling import LabelTask, labels_in
from steelyard.protocols import vocabulary
from steelyard.records import Record
from steelyard.store import RunRow, Store
from steelyard.store.labels import HumanLabel, canonical, digest, label_line
from steelyard.web.addresses import as_file, run_address
from steelyard.web.cache import PATIENCE
from steelyard.web.labelling import (
    DrawnTasks,
    LabelItem,
    LabelPlan,
    Progress,
    item_of,
    pieces_of,
    seen,
    slot_of,
)
from steelyard.web.pages.sample import judged_sample
from steelyard.web.rendering import YEAR, is_json, language_of, page, page_routes
from steelyard.web.viewer import Viewer, viewer_of

COOKIE = "steelyard_annotator"
# What only a queue gives the page of labels.
OF_NO_QUEUE: dict[str, Any] = {"queue": None, "hint": None}
LONGEST_NAME, LONGEST_NOTE = 100, 2000


class BlindRun(Record):
    """A run as an annotator may know it: nothing of how it was judged."""

    id: str
    name: str = ""
    number: int
    protocol: str
    state: str
    n_labels: int

    @property
    def title(self) -> str:
        return self.name or self.id


class QueueBrief(Record):
    """A queue in which whoever asks may label."""

    id: int
    name: str
    run: str
    people: tuple[str, ...]


class LabelCount(Record):
    """How many labels somebody gave under one version of the policy."""

    annotator: str
    policy: str
    n: int


class ImportResult(Record):
    """How many labels an import took over, and how many of these are about other runs."""

    n: int
    elsewhere: int = 0


class LabelRunsPage(Record):
    runs: tuple[BlindRun, ...]
    queues: tuple[QueueBrief, ...] = ()


class LabelPage(Record):
    """Where a person stands in a plan, and the item to label; null where there is none left, or no plan yet."""

    run: BlindRun
    annotator: str
    plan: LabelPlan
    at: int = 0
    total: int = 0
    done: int = 0
    own: str | None = None
    note: str = ""
    item: LabelItem | None = None
    given: tuple[LabelCount, ...] = ()
    taken: ImportResult | None = Field(default=None, description="what the file that was just imported held")
    changed: bool = Field(default=False, description="the label just given was not kept: its item has changed")


# --- looking ---------------------------------------------------------------------------------------


def label_runs(request: Request) -> Response:
    with viewer_of(request).store() as store:
        made = Counter[str]()
        for one in store.label_counts():
            made[one.run] += one.n
        runs = tuple(blind(row, store, made[row.id]) for row in store.runs())
        person = annotator_of(request)
        queues = tuple(
            QueueBrief(id=queue.id, name=queue.name, run=queue.run, people=queue.people)
            for queue in store.queues()
            if not queue.closed and (not person or not queue.people or person in queue.people)
        )
    return page(request, "label_runs.html", LabelRunsPage(runs=runs, queues=queues))


def blind(row: RunRow, store: Store, n_labels: int) -> BlindRun:
    state = state_of(row, store)
    return BlindRun(id=row.id, name=row.name, number=row.number, protocol=row.protocol, state=state, n_labels=n_labels)


def label(request: Request) -> Response:
    """The item at this place of the plan; without a plan or a name, the form that asks for them."""
    return _page(request)


def _page(request: Request, *, changed: bool = False) -> Response:
    viewer, plan, annotator = viewer_of(request), LabelPlan.of(request.query_params), annotator_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        counts = store.label_counts(row.id)
        run = blind(row, store, sum(one.n for one in counts))
    given = tuple(LabelCount(annotator=one.annotator, policy=one.policy, n=one.n) for one in counts)
    model = LabelPage(
        run=run, annotator=annotator, plan=plan, given=given, taken=import_result(request), changed=changed
    )
    if run.state == "running" or not annotator or "n" not in request.query_params:
        vocab, language = vocabulary(row.protocol), language_of(request)
        kinds = [(one.name, vocab.aspect_words(one.name, language), one.asked) for one in vocab.aspects()]
        # Nobody is asked to label while a run is at work: what is drawn would change with every sample judged.
        place_of: dict[str, Any] = {"address": run_address(row.id), "project": row.project}
        return page(request, "label_start.html", model, kinds=kinds, **place_of)
    found = planned(viewer, row, plan, None if is_json(request) else PATIENCE)
    if found is None:
        waiting = {**OF_NO_QUEUE, "waiting": True, "links": {}, "address": run_address(row.id)}
        return page(request, "label.html", model, status=202, **waiting)
    with viewer.store() as store:
        progress = _progress(store, row, found, annotator, plan)
    at = place(request, progress)
    model = model.model_copy(update={"total": len(found.tasks), "done": progress.done, "given": ()})
    if at is not None:
        with viewer.store() as store:
            model = model.model_copy(update=shown(store, row, progress.tasks[at], at, plan.policy, request))
    links, status = addresses(row.id, plan, progress, at), 409 if changed else 200
    address = run_address(row.id)
    more = {**OF_NO_QUEUE, "waiting": False, "links": links, "address": address, "pieces_of": pieces_of}
    return page(request, "label.html", model, status=status, **more)


def import_result(request: Request) -> ImportResult | None:
    """What the address says about an import that led here: numbers only."""
    given = [request.query_params.get(name, "") for name in ("imported", "elsewhere")]
    n, elsewhere = (int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0 for text in given)
    return ImportResult(n=n, elsewhere=elsewhere) if n else None


def annotator_of(request: Request) -> str:
    if (person := viewer_of(request).person) is not None:
        return person
    return unquote(request.cookies.get(COOKIE, ""))[:LONGEST_NAME].strip()


def planned(viewer: Viewer, row: RunRow, plan: LabelPlan, patience: float | None = None) -> DrawnTasks | None:
    """The tasks of a plan, drawn once for a run as it stands."""
    with viewer.store() as store:
        n = sum(store.judged(row.id).values())

    def make() -> DrawnTasks:
        with viewer.store() as store:
            return DrawnTasks.of(plan.tasks(partial(store.verdicts, row.id)))

    return viewer.cache.get(("tasks", row.id, row.finished, n, plan), make, patience)


def place(request: Request, progress: Progress) -> int | None:
    """The place that the address names, from 1; else the first that is not labelled yet."""
    given = request.query_params.get("at", "")
    if given.isdecimal() and 1 <= int(given[:9]) <= len(progress.tasks):
        return int(given[:9]) - 1
    return progress.next_open(-1)


def shown(store: Store, row: RunRow, task: LabelTask, at: int, policy: str, request: Request) -> dict[str, Any]:
    mine = (annotator_of(request), policy, False)
    labels = (label for label in store.labels(row.id, task.sample) if label.key == task[:4])
    own = next((one for one in labels if (one.annotator, one.policy, one.adjudicated) == mine), None)
    sample, verdict = judged_sample(store, row, task.sample)
    slot = slot_of(task, verdict)
    item = item_of(task, slot, sample, vocabulary(row.protocol), language_of(request)) if slot else None
    return {"at": at + 1, "item": item, "own": own.label if own else None, "note": own.note if own else ""}


def addresses(run: str, plan: LabelPlan, progress: Progress, at: int | None) -> dict[str, str]:
    """Where each key leads from here."""
    here = at if at is not None else len(progress.tasks)
    found = {"post": run_address(run, "label", **plan.query, at=here + 1)}
    found["undo"] = run_address(run, "label", "undo", **plan.query, at=here + 1)
    if here + 1 < len(progress.tasks):
        found["skip"] = run_address(run, "label", **plan.query, at=here + 2)
    if here > 0:
        found["back"] = run_address(run, "label", **plan.query, at=here)
    if progress.last_given(here) is None:
        del found["undo"]
    return found


# --- labelling -------------------------------------------------------------------------------------


async def start(request: Request) -> Response:
    """Remember who labels, and go to the first item."""
    async with request.form() as form:
        return await run_in_threadpool(_start, request, form)


def _start(request: Request, form: FormData) -> Response:
    annotator = viewer_of(request).person or form_text(form, "annotator", LONGEST_NAME)
    if not annotator:
        raise InputError("say who labels: labels are kept by name", field="annotator")
    plan = LabelPlan.of(form)
    with viewer_of(request).store() as store:
        row = store.run(request.path_params["run"])
        refuse_at_work(row, store)
    response = RedirectResponse(run_address(row.id, "label", **plan.query), 303)
    response.set_cookie(COOKIE, quote(annotator, safe=""), max_age=YEAR, samesite="lax", httponly=True)
    return response


def form_text(form: FormData, name: str, longest: int) -> str:
    """A text of a form. What is no whole character is replaced: a charset of the form's own choice can make halves."""
    return str(form.get(name, "")).encode("utf-8", "replace").decode().strip()[:longest]


def refuse_at_work(row: RunRow, store: Store) -> None:
    if state_of(row, store) == "running":
        raise RunInUse(f"run {row.id} is still running, and what is drawn would change with it; label when it is done")


async def give_label(request: Request) -> Response:
    """Keep one label and go on to the next item without one."""
    async with request.form() as form:
        return await run_in_threadpool(_give_label, request, form)


def _give_label(request: Request, form: FormData) -> Response:
    viewer, plan, annotator = viewer_of(request), LabelPlan.of(request.query_params), require_annotator(request)
    with viewer.store() as store:
        row, progress, at = _position(viewer, store, request, plan, annotator)
        task = progress.tasks[at]
        wanted = str(form.get("label", ""))
        if canonical(task.kind, wanted, row.protocol) != wanted:
            raise InputError(f"there is no label {wanted!r} for {task.kind}", field="label")
        sample, verdict = judged_sample(store, row, task.sample)
        slot = slot_of(task, verdict)
        if slot is None or form.get("seen") != seen(task, slot, sample):
            # The run was judged again meanwhile: what was read is not what stands here now.
            return _page(request, changed=True)
        made = _blank_label(task, row.id, annotator, plan.policy).model_copy(
            update={
                "label": wanted,
                "time": now(),
                "about": digest(sample),
                "text": slot.text,
                "note": form_text(form, "note", LONGEST_NOTE),
            }
        )
        store.add_labels([made])
        progress.labelled.add(made.key)
    follows = progress.next_open(at)
    # After the last one: behind the end, where the page says that all is done.
    at = follows + 1 if follows is not None else len(progress.tasks) + 1
    return RedirectResponse(run_address(row.id, "label", **plan.query, at=at), 303)


def undo(request: Request) -> Response:
    """Take back the nearest earlier label and go there."""
    viewer, plan, annotator = viewer_of(request), LabelPlan.of(request.query_params), require_annotator(request)
    with viewer.store() as store:
        row, progress, at = _position(viewer, store, request, plan, annotator, beyond=True)
        back = progress.last_given(at)
        if back is not None:
            store.remove_label(_blank_label(progress.tasks[back], row.id, annotator, plan.policy))
    back = at if back is None else back
    return RedirectResponse(run_address(row.id, "label", **plan.query, at=back + 1), 303)


def require_annotator(request: Request) -> str:
    if annotator := annotator_of(request):
        return annotator
    raise InputError("say who labels: labels are kept by name", field="annotator")


def _position(
    viewer: Viewer, store: Store, request: Request, plan: LabelPlan, annotator: str, beyond: bool = False
) -> tuple[RunRow, Progress, int]:
    row = store.run(request.path_params["run"])
    refuse_at_work(row, store)
    found = planned(viewer, row, plan)
    assert found is not None  # it was waited for
    given = request.query_params.get("at", "")
    at = int(given) - 1 if given.isdecimal() and len(given) < 10 else -1
    if not 0 <= at < len(found.tasks) + beyond:
        raise InputError("there is no item at this place", field="at")
    return row, _progress(store, row, found, annotator, plan), at


def _progress(store: Store, row: RunRow, drawn: DrawnTasks, annotator: str, plan: LabelPlan) -> Progress:
    return Progress(drawn, store.labelled_by(row.id, annotator, plan.policy, drawn.samples))


def _blank_label(task: LabelTask, run: str, annotator: str, policy: str) -> HumanLabel:
    return HumanLabel(
        sample=task.sample,
        kind=task.kind,
        turn=task.turn,
        item=task.item,
        label="",
        annotator=annotator,
        policy=policy,
        run=run,
        weight=task.weight,
    )


# --- files -----------------------------------------------------------------------------------------


def export(request: Request) -> Response:
    viewer = viewer_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])

    def lines() -> Iterator[str]:
        with viewer.store() as opened:
            yield from map(label_line, opened.labels(row.id))

    response = StreamingResponse(lines(), media_type="application/x-ndjson")
    response.headers["Content-Disposition"] = as_file(f"steelyard-labels-{row.id}.jsonl")
    return response


async def import_(request: Request) -> Response:
    """The labels of a filled-in sheet, JSONL or CSV, as `steelyard labels import` takes them."""
    async with request.form() as form:
        file = form.get("file")
        if not isinstance(file, UploadFile) or not file.filename:
            raise InputError("choose a file of labels (JSONL or CSV)", field="file")
        return await run_in_threadpool(_import, request, file, form_text(form, "annotator", LONGEST_NAME))


def _import(request: Request, file: UploadFile, annotator: str) -> Response:
    viewer, when = viewer_of(request), now()
    name = Path((file.filename or "").replace("\0", "")).name
    name = name if name.strip(".") else "labels.jsonl"
    with viewer.store() as store, tempfile.TemporaryDirectory(prefix="steelyard-") as folder:
        row = store.run(request.path_params["run"])
        # Under its own name: where a sheet does not say who labelled, its name does.
        path = Path(folder) / (name if len(name.encode()) < 200 else f"labels{Path(name).suffix[:8]}")
        path.write_bytes(file.file.read())
        try:
            found = [
                label.model_copy(
                    update={
                        "annotator": annotator or label.annotator,
                        "time": label.time or when,
                        "run": label.run or row.id,
                    }
                )
                for label in labels_in(path)
            ]
        except InputError as error:
            raise InputError(error.problem, file=name, line=error.line, field=error.field) from None
        if not found:
            raise InputError("holds no labels", file=name)
        store.add_labels(found)
    elsewhere = sum(label.run != row.id for label in found)
    counts = {"imported": str(len(found)), "elsewhere": str(elsewhere) if elsewhere else None}
    return RedirectResponse(run_address(row.id, "label", **counts), 303)


ADDRESS = "/runs/{run}/label"
routes = [
    Route(f"{ADDRESS}/start", start, methods=["POST"]),
    Route(f"{ADDRESS}/undo", undo, methods=["POST"]),
    Route("/runs/{run}/labels.jsonl", export, methods=["GET"]),
    Route("/runs/{run}/labels", import_, methods=["POST"]),
    Route(ADDRESS, give_label, methods=["POST"]),
    *page_routes(ADDRESS, label),
    *page_routes("/label", label_runs),
]
