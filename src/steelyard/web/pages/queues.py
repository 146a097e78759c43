"""Queues of items that several people label: made, worked through, and settled where people disagree."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, quote

from pydantic import Field, ValidationError
from starlette.datastructures import FormData, QueryParams
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine.manifest import now
from steelyard.errors import FormRefused, NotAllowed
from steelyard.people.labelling import LabelTask
from steelyard.people.queues import Agreement, PersonShare, QueueState, make_queue
from steelyard.protocols import vocabulary
from steelyard.records import Record
from steelyard.store import EVERY_PROJECT, LabelQueue, QueueItem, RunRow, Store
from steelyard.store.labels import HumanLabel, canonical, digest
from steelyard.store.listing import SampleQuery
from steelyard.web.accounts.access import Access
from steelyard.web.addresses import run_address, with_query
from steelyard.web.cache import PATIENCE
from steelyard.web.forms import posted
from steelyard.web.labelling import LabelItem, LabelPlan, item_of, pieces_of, seen, slot_of
from steelyard.web.pages.label import (
    COOKIE,
    LONGEST_NAME,
    LONGEST_NOTE,
    BlindRun,
    LabelPage,
    annotator_of,
    blind,
    form_text,
    refuse_at_work,
    require_annotator,
)
from steelyard.web.pages.sample import judged_sample
from steelyard.web.pages.samples import active, query_of
from steelyard.web.rendering import YEAR, is_json, language_of, page, page_routes
from steelyard.web.security import is_from_here
from steelyard.web.viewer import Viewer, viewer_of


class QueueInfo(Record):
    """A queue and how far it is."""

    id: int
    name: str
    run: str
    people: tuple[str, ...] = Field(description="who labels; empty: whoever may")
    policy: str
    blind: bool = Field(description="whether the judge's labels are hidden")
    created: str
    author: str
    closed: str | None
    wanted: int = Field(description="labels that it takes")
    done: int
    n_twice: int = Field(description="items that two people label")


class QueuesPage(Record):
    """The queues of a run, and what a new one would be made of."""

    run: BlindRun
    queues: tuple[QueueInfo, ...]
    filter: str = ""


class QueuePage(Record):
    """A queue; how far people agree is shown to those who settle, so that it sways nobody who labels."""

    queue: QueueInfo
    run: BlindRun
    shares: tuple[PersonShare, ...] = ()
    n_disagreements: int | None = None
    n_unsettled: int | None = None
    agreement: tuple[Agreement, ...] = ()


class GivenLabel(Record):
    """What one person said of an item."""

    person: str
    label: str
    text: str
    note: str


class DisagreementPage(Record):
    """An item on which people differ, with what each of them said."""

    queue: QueueInfo
    run: BlindRun
    at: int = 0
    total: int = 0
    n_unsettled: int = 0
    item: LabelItem | None = None
    given: tuple[GivenLabel, ...] = ()
    settled: GivenLabel | None = None


def info(state: QueueState) -> QueueInfo:
    found = state.totals
    return QueueInfo(**state.queue._asdict(), wanted=found.wanted, done=found.done, n_twice=found.twice)


def every_queue(store: Store, run: str | None = None) -> list[QueueInfo]:
    return [info(QueueState(queue, store)) for queue in store.queues(run)]


def labels_given(store: Store, run: str) -> int:
    return sum(one.n for one in store.label_counts(run))


def queue_address(id: int, *parts: str, **query: object) -> str:
    return with_query("/".join(("", "queues", str(id), *parts)), query)


# --- making ----------------------------------------------------------------------------------------


def of_run(request: Request) -> Response:
    """The queues of a run, and the form for a new one; the address may carry a filter of its samples."""
    with viewer_of(request).store() as store:
        row = store.run(request.path_params["run"])
        model = QueuesPage(run=blind(row, store, 0), queues=tuple(every_queue(store, row.id)), filter=_filter(request))
        people = _members(store, row.project) if viewer_of(request).accounts else []
    vocab, language = vocabulary(row.protocol), language_of(request)
    kinds = [(one.name, vocab.aspect_words(one.name, language), one.asked) for one in vocab.aspects()]
    filters = [text for _, _, text in active(_query(model.filter), vocab, language)]
    more: dict[str, Any] = {"kinds": kinds, "filters": filters, "address": run_address(row.id), "people": people}
    return page(request, "queues.html", model, **more)


def _members(store: Store, project: str) -> list[str]:
    """Who may label in a project, whether they have signed in before or not; others are not named."""
    members = store.members([project, EVERY_PROJECT])
    return [name for name, roles in members.items() if Access(name, roles).may("label", project)]


def _filter(request: Request) -> str:
    given = [(name, value) for name, value in request.query_params.multi_items() if name not in ("lang", "page")]
    return with_query("", _grouped(given)).removeprefix("?")


def _grouped(given: list[tuple[str, str]]) -> dict[str, object]:
    found: dict[str, list[str]] = {}
    for name, value in given:
        found.setdefault(name, []).append(value)
    return dict(found)


def _query(filter: str) -> SampleQuery:
    try:
        return query_of(QueryParams(parse_qsl(filter[:5000])))
    except ValidationError:
        raise FormRefused("is not a filter of samples", "filter", field="filter") from None


def make(request: Request, form: FormData) -> Response:
    with viewer_of(request).store() as store:
        row = store.run(request.path_params["run"])
        refuse_at_work(row, store)
        people = [
            name.strip() for name in form_text(form, "people", 5000).replace("\n", ",").split(",") if name.strip()
        ]
        plan = LabelPlan.of(form)
        made = make_queue(
            store,
            row,
            plan.tasks,
            name=form_text(form, "name", LONGEST_NAME),
            people=list(dict.fromkeys(people)),
            policy=plan.policy,
            share=_share(form_text(form, "share", 10)),
            seed=plan.seed,
            blind=form.get("blind") is not None,
            filter=_query(form_text(form, "filter", 5000)),
            author=viewer_of(request).person or "",
            created=now(),
        )
    return RedirectResponse(queue_address(made.id), 303)


def _share(text: str) -> float:
    try:
        return float(text or 0) / 100
    except ValueError:
        raise FormRefused("the share is a percentage from 0 to 100", "share", field="share") from None


def close(request: Request, form: FormData) -> Response:
    with viewer_of(request).store() as store:
        queue = store.queue(request.path_params["queue"])
        store.close_queue(queue.id, None if form.get("open") else now())
    return RedirectResponse(queue_address(queue.id), 303)


# --- looking ---------------------------------------------------------------------------------------


def queue_page(request: Request) -> Response:
    viewer = viewer_of(request)
    with viewer.store() as store:
        queue = store.queue(request.path_params["queue"])
        row, state = store.run(queue.run), QueueState(queue, store)
        model = QueuePage(queue=info(state), run=blind(row, store, labels_given(store, row.id)))
        changes, totals = store.label_changes(row.id), state.totals
    counted = _counted(viewer, queue, changes, None if is_json(request) else PATIENCE)
    if counted:
        model = model.model_copy(update={"shares": counted.shares})
    if viewer.may("adjudicate", row.project):
        more: dict[str, Any] = {"n_disagreements": totals.different, "n_unsettled": totals.unsettled}
        model = model.model_copy(update={**more, "agreement": counted.agreement if counted else ()})
    vocab, language = vocabulary(row.protocol), language_of(request)
    kinds = {one.kind: vocab.aspect_words(one.kind, language) for one in model.agreement}
    may_label = state.admits(viewer.person) if viewer.person is not None else True
    place: dict[str, Any] = {"address": run_address(row.id), "project": row.project, "may_label": may_label}
    return page(request, "queue.html", model, kinds=kinds, waiting=counted is None, **place)


class QueueFigures(NamedTuple):
    """What takes a look at every label of a queue."""

    shares: tuple[PersonShare, ...]
    agreement: tuple[Agreement, ...]


def _counted(viewer: Viewer, queue: LabelQueue, changes: int, patience: float | None) -> QueueFigures | None:
    """Who labelled how much and how far people agree, counted once for the labels as they stand."""

    def make() -> QueueFigures:
        with viewer.whole_store() as store:
            state = QueueState(queue, store)
            return QueueFigures(tuple(state.shares()), tuple(state.agreement()))

    return viewer.cache.get(("queue", queue, changes), make, patience)


# --- labelling -------------------------------------------------------------------------------------


def label(request: Request) -> Response:
    """The next item for whoever asks, or the one at the place that the address names."""
    return _label(request)


def _label(request: Request, *, changed: bool = False) -> Response:
    viewer, annotator = viewer_of(request), annotator_of(request)
    with viewer.store() as store:
        queue = store.queue(request.path_params["queue"])
        row, state = store.run(queue.run), QueueState(queue, store)
        run = blind(row, store, labels_given(store, row.id))
        plan = LabelPlan(n=0, kind=(), policy=queue.policy)
        more: dict[str, Any] = {
            "queue": info(state),
            "address": run_address(row.id),
            "back": queue_address(queue.id),
            "pieces_of": pieces_of,
        }
        if not annotator:
            unnamed = QueuePage(queue=more["queue"], run=run)
            return page(request, "queue_name.html", unnamed, people=queue.people)
        _check_admitted(state, annotator)
        at = place = _at(request, "at", state.totals.items)
        if place is None:
            after = _at(request, "after", state.totals.items)
            place = state.next_for(annotator, datetime.now(UTC), -1 if after is None else after)
        model = LabelPage(
            run=run,
            annotator=annotator,
            plan=plan,
            total=state.totals.wanted,
            done=state.totals.done,
            changed=changed,
        )
        hint, can_undo = None, state.last_of(annotator) is not None
        if place is not None:
            task = _task(state.item(place))
            # A link on another site may show an item, not take its sample from those who label.
            if at is None and is_from_here(request):
                store.claim(queue.id, task.sample, annotator, now())
            own = state.given(place).get(annotator)
            sample, verdict = judged_sample(store, row, task.sample)
            vocab, language = vocabulary(row.protocol), language_of(request)
            slot = slot_of(task, verdict)
            item = item_of(task, slot, sample, vocab, language) if slot else None
            given: dict[str, Any] = {"at": place + 1, "item": item}
            given |= {"own": own.label if own else None, "note": own.note if own else ""}
            model = model.model_copy(update=given)
            if slot and not queue.blind:
                hint = (vocab.label_words(task.kind, slot.judge, language), slot.reason)
    links = {"start": queue_address(queue.id)}
    if place is not None:
        links |= {
            "post": queue_address(queue.id, "label", at=place + 1),
            "skip": queue_address(queue.id, "label", after=place + 1),
        }
    if can_undo:
        links["undo"] = queue_address(queue.id, "label", "undo")
    status = 409 if changed else 200
    return page(request, "label.html", model, status=status, waiting=False, links=links, hint=hint, **more)


def _at(request: Request, name: str, most: int) -> int | None:
    given = request.query_params.get(name, "")
    is_number = given.isascii() and given.isdigit() and len(given) < 8
    return int(given) - 1 if is_number and 1 <= int(given) <= most else None


def _task(item: QueueItem) -> LabelTask:
    return LabelTask(item.sample, item.kind, item.turn, item.item, item.weight)


def _check_admitted(state: QueueState, person: str) -> None:
    if not state.admits(person):
        raise NotAllowed("this queue is for others to label", "for_others")
    if state.queue.closed:
        raise FormRefused("this queue is closed", "queue_closed")


def name_oneself(request: Request, form: FormData) -> Response:
    """Where nobody signs in: who labels."""
    with viewer_of(request).store() as store:
        queue = store.queue(request.path_params["queue"])
    annotator = viewer_of(request).person or form_text(form, "annotator", LONGEST_NAME)
    if not annotator:
        raise FormRefused("say who labels: labels are kept by name", "nobody", field="annotator")
    response = RedirectResponse(queue_address(queue.id, "label"), 303)
    response.set_cookie(COOKIE, quote(annotator, safe=""), max_age=YEAR, samesite="lax", httponly=True)
    return response


def give(request: Request, form: FormData) -> Response:
    annotator = require_annotator(request)
    with viewer_of(request).store() as store:
        queue, row, state, at = _item_of_form(request, store)
        _check_admitted(state, annotator)
        made = _made(store, queue, row, state, at, form, annotator)
        if made is None:
            return _label(request, changed=True)
        given = state.given(at)
        if annotator not in given and len(given) >= state.item(at).wanted:
            # Somebody else was faster; what they said stands, and this is not needed.
            return RedirectResponse(queue_address(queue.id, "label"), 303)
        store.add_labels([made])
    return RedirectResponse(queue_address(queue.id, "label", after=at + 1), 303)


def undo(request: Request, form: FormData) -> Response:
    """Take back one's last label and go there."""
    annotator = require_annotator(request)
    with viewer_of(request).store() as store:
        queue = store.queue(request.path_params["queue"])
        state = QueueState(queue, store)
        _check_admitted(state, annotator)
        place = state.last_of(annotator)
        if place is None:
            return RedirectResponse(queue_address(queue.id, "label"), 303)
        store.remove_label(state.given(place)[annotator])
    return RedirectResponse(queue_address(queue.id, "label", at=place + 1), 303)


def _item_of_form(request: Request, store: Store) -> tuple[LabelQueue, RunRow, QueueState, int]:
    queue = store.queue(request.path_params["queue"])
    row, state = store.run(queue.run), QueueState(queue, store)
    refuse_at_work(row, store)
    at = _at(request, "at", state.totals.items)
    if at is None:
        raise FormRefused("there is no item at this place", "no_item", field="at")
    return queue, row, state, at


def _made(
    store: Store, queue: LabelQueue, row: RunRow, state: QueueState, at: int, form: FormData, annotator: str
) -> HumanLabel | None:
    """The label of a form; None where the item is not any more what was shown."""
    task = _task(state.item(at))
    wanted = str(form.get("label", ""))
    if canonical(task.kind, wanted, row.protocol) != wanted:
        raise FormRefused(f"there is no label {wanted!r} for {task.kind}", "no_label", field="label", label=wanted)
    sample, verdict = judged_sample(store, row, task.sample)
    slot = slot_of(task, verdict)
    if slot is None or form.get("seen") != seen(task, slot, sample):
        return None
    return HumanLabel(
        **task._asdict(),
        label=wanted,
        annotator=annotator,
        policy=queue.policy,
        time=now(),
        run=row.id,
        about=digest(sample),
        text=slot.text,
        note=form_text(form, "note", LONGEST_NOTE),
    )


# --- settling --------------------------------------------------------------------------------------


def disagreements(request: Request) -> Response:
    return _disagreements(request)


def _disagreements(request: Request, *, changed: bool = False) -> Response:
    with viewer_of(request).store() as store:
        queue = store.queue(request.path_params["queue"])
        row, state = store.run(queue.run), QueueState(queue, store)
        every, open_ = state.disagreements(), state.unsettled()
        model = DisagreementPage(queue=info(state), run=blind(row, store, 0), total=len(every), n_unsettled=len(open_))
        at = _at(request, "at", len(every))
        place = every[at] if at is not None else next(iter(open_), None)
        if place is not None:
            task = _task(state.item(place))
            vocab, language = vocabulary(row.protocol), language_of(request)
            sample, verdict = judged_sample(store, row, task.sample)
            slot, settled = slot_of(task, verdict), state.settled(place)

            def shown(label: HumanLabel) -> GivenLabel:
                text = vocab.label_words(label.kind, label.label, language)
                return GivenLabel(person=label.annotator, label=label.label, text=text, note=label.note)

            found = {
                "at": every.index(place) + 1,
                "item": item_of(task, slot, sample, vocab, language) if slot else None,
                "given": tuple(shown(label) for _, label in sorted(state.given(place).items())),
                "settled": shown(settled) if settled else None,
            }
            model = model.model_copy(update=found)
    links = {}
    if model.at:
        links["post"] = queue_address(queue.id, "disagreements", at=model.at)
    if model.at > 1:
        links["back"] = queue_address(queue.id, "disagreements", at=model.at - 1)
    if 0 < model.at < model.total:
        links["skip"] = queue_address(queue.id, "disagreements", at=model.at + 1)
    place_of: dict[str, Any] = {"address": run_address(row.id), "back": queue_address(queue.id), "pieces_of": pieces_of}
    status = 409 if changed else 200
    return page(request, "disagreements.html", model, status=status, links=links, changed=changed, **place_of)


def settle(request: Request, form: FormData) -> Response:
    """Keep what was decided; it counts instead of what people said, which stays."""
    person = viewer_of(request).person or annotator_of(request) or "adjudicator"
    with viewer_of(request).store() as store:
        queue = store.queue(request.path_params["queue"])
        row, state = store.run(queue.run), QueueState(queue, store)
        every = state.disagreements()
        at = _at(request, "at", len(every))
        if at is None:
            raise FormRefused("there is no item at this place", "no_item", field="at")
        place = every[at]
        made = _made(store, queue, row, state, place, form, person)
        if made is None:
            return _disagreements(request, changed=True)
        if (before := state.settled(place)) is not None:
            store.remove_label(before)
        store.add_labels([made.model_copy(update={"adjudicated": True})])
    return RedirectResponse(queue_address(queue.id, "disagreements"), 303)


ADDRESS = "/queues/{queue:int}"
routes = [
    *page_routes("/runs/{run}/queues", of_run),
    Route("/runs/{run}/queues", posted(make), methods=["POST"]),
    *page_routes(f"{ADDRESS}/label", label),
    Route(f"{ADDRESS}/label", posted(give), methods=["POST"]),
    Route(f"{ADDRESS}/label/start", posted(name_oneself), methods=["POST"]),
    Route(f"{ADDRESS}/label/undo", posted(undo), methods=["POST"]),
    *page_routes(f"{ADDRESS}/disagreements", disagreements),
    Route(f"{ADDRESS}/disagreements", posted(settle), methods=["POST"]),
    Route(f"{ADDRESS}/close", posted(close), methods=["POST"]),
    *page_routes(ADDRESS, queue_page),
]
