"""The playground: one sample judged once more, by another judge or other prompts, beside what its run has."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import Field
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from steelyard.engine import runs
from steelyard.engine.inputs import Input
from steelyard.engine.templates import protocol_of_run
from steelyard.errors import SteelyardError
from steelyard.protocols import vocabulary
from steelyard.records import Record, Sample, Verdict
from steelyard.reports.html.sample import sample_view
from steelyard.store import RunRow, Store, run_identity
from steelyard.text.wording import say
from steelyard.trust.comparison.labels import LabelChange, label_changes
from steelyard.web import actions
from steelyard.web.addresses import run_address, sample_address
from steelyard.web.exchanges import exchanges
from steelyard.web.jobs import PreparedRun
from steelyard.web.pages.compare import change_row, score_rows, scores_of
from steelyard.web.pages.runs import RunSummary
from steelyard.web.pages.sample import LIMITS, one
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.trials import PromptTrial, answering, tried
from steelyard.web.viewer import Viewer, viewer_of

# How the form calls the text of a prompt, and how a manifest names where an edited one came from.
PROMPT, EDITED = "prompt.", "playground:"


class EditablePrompt(Record):
    id: str
    text: str
    is_edited: bool = False


class TrialPage(Record):
    """The form of the playground and the result of an attempt. `trial` is the name to save it by."""

    run: RunSummary
    id: str
    judge: str
    judges: tuple[str, ...]
    prompts: tuple[EditablePrompt, ...]
    trial: str = ""
    verdict: dict[str, Any] | None = None
    scores: dict[str, tuple[float | int | None, float | int | None]] = Field(default_factory=dict)
    changes: tuple[LabelChange, ...] = ()
    problem: str = ""

    @property
    def n_changed(self) -> int:
        return sum(change.change != "same" for change in self.changes)


class _Given(Record):
    """The judge and prompts of an attempt; empty when the form is opened."""

    judge: str = ""
    texts: dict[str, str] = Field(default_factory=dict)


def form(request: Request) -> Response:
    viewer = viewer_of(request)
    with viewer.store() as store:
        row, sample, verdict = one(store, request)
        run, prompts = RunSummary.of(row, store), _prompts(viewer, store, row, sample)
    return _page(request, row, sample, verdict, _model(viewer, run, row, verdict.id, prompts, _Given()))


async def judge(request: Request) -> Response:
    """Judge the sample as the form says. The labels are shown and not kept."""
    viewer = viewer_of(request)
    async with request.form(max_files=0, max_fields=60) as sent:
        texts = {name: value for name, value in sent.items() if isinstance(value, str)}
    given = _Given(
        judge=texts.get("judge", ""),
        texts={
            name.removeprefix(PROMPT): value.replace("\r\n", "\n")
            for name, value in texts.items()
            if name.startswith(PROMPT)
        },
    )

    def looked_up() -> tuple[RunRow, Sample, Verdict, RunSummary, dict[str, str]]:
        with viewer.store() as store:
            row, sample, verdict = one(store, request)
            return row, sample, verdict, RunSummary.of(row, store), _prompts(viewer, store, row, sample)

    row, sample, verdict, run, prompts = await run_in_threadpool(looked_up)
    edited = {f"{EDITED}{id}": text for id, text in given.texts.items() if id in prompts and text != prompts[id]}
    model = _model(viewer, run, row, verdict.id, prompts, given)
    name, trial = "", None
    try:
        name = actions.judge_name(viewer.config, given.judge or None)

        async def work() -> PromptTrial | None:
            protocol = protocol_of_run(row.protocol, row.manifest)
            options = protocol.parse_options(row.manifest.get("options", {}))
            made, _, _, _ = actions.judge_and_limiter(viewer, protocol, name, edited=edited)
            try:
                runs.check_ready(made)
                found, replies = await tried(protocol, options, made, sample)
            finally:
                await made.aclose()
            return PromptTrial(row.id, sample, name, edited, viewer.person, found, replies) if found else None

        trial = await viewer.evaluations.judged(work)
    except SteelyardError as error:
        model = model.model_copy(update={"problem": " ".join(str(error).split())})
    if trial:
        after = trial.verdict
        model = model.model_copy(
            update={
                "trial": viewer.trials.keep(trial),
                "verdict": after.line() | {"notes": dict(after.notes)},
                "scores": scores_of(verdict, after),
                "changes": tuple(label_changes(verdict, after)),
            }
        )
    return _page(request, row, sample, verdict, model, trial)


def _prompts(viewer: Viewer, store: Store, row: RunRow, sample: Sample) -> dict[str, str]:
    """The prompts that this sample was judged by, as they are worded today."""
    protocol = protocol_of_run(row.protocol, row.manifest)
    known = viewer.config.prompts.with_texts(protocol.prompts)
    calls = exchanges(store, row, sample, viewer.config.prompts)
    asked = dict.fromkeys(f"{call.task}.{call.language}" for call in calls)
    texts = {prompt.id: prompt.text for prompt in known}
    return {id: texts[id] for id in asked if id in texts}


def _model(
    viewer: Viewer, run: RunSummary, row: RunRow, id: str, prompts: Mapping[str, str], given: _Given
) -> TrialPage:
    judges = tuple(actions.judge_names(viewer.config))
    spec = str(row.manifest.get("judge_spec") or "")
    shown = [
        EditablePrompt(id=id, text=given.texts.get(id, text), is_edited=given.texts.get(id, text) != text)
        for id, text in prompts.items()
    ]
    chosen = given.judge or (spec if spec in judges else judges[0])
    return TrialPage(run=run, id=id, judge=chosen, judges=judges, prompts=tuple(shown))


def _page(
    request: Request, row: RunRow, sample: Sample, before: Verdict, model: TrialPage, trial: PromptTrial | None = None
) -> Response:
    language = language_of(request)
    vocab = vocabulary(row.protocol)
    after = trial.verdict if trial else None
    return page(
        request,
        "trial.html",
        model,
        status=422 if model.problem else 200,
        address=sample_address(row.id, model.id),
        view=sample_view(before, sample, language, "a", LIMITS),
        scores=list(score_rows(model.scores, [row.protocol, row.protocol], language)),
        changes=[change_row(change, vocab, language) for change in model.changes],
        usage=after.usage if after else None,
        prompt=PROMPT,
    )


async def save(request: Request) -> Response:
    """Make a run of the attempt, from its replies."""
    viewer = viewer_of(request)
    async with request.form(max_files=0, max_fields=5) as sent:
        trial = viewer.trials.get(str(sent.get("trial", "")), viewer.person)
    run = await run_in_threadpool(_saved, viewer, request, trial)
    return RedirectResponse(run_address(run), 303)


def _saved(viewer: Viewer, request: Request, trial: PromptTrial | None) -> str:
    with viewer.store() as store:
        row, _, verdict = one(store, request)
    if trial is None or (trial.run, trial.sample.id) != (row.id, verdict.id):
        raise HTTPException(404, "this attempt is not there any more; judge the sample again")
    name = say(language_of(request), "viewer.try.name").format(id=trial.sample.id)

    def making(store: Store) -> list[PreparedRun]:
        protocol = protocol_of_run(row.protocol, row.manifest)
        options = protocol.parse_options(row.manifest.get("options", {}))
        made, limiter, _, prompts = actions.judge_and_limiter(viewer, protocol, trial.judge, edited=trial.edited)
        identity = run_identity({"name": name[:200], "project": row.project, "meta": {"sample": trial.sample.id}})
        run = runs.start(
            store,
            protocol,
            options,
            answering(made, trial.replies),
            trial.judge,
            prompts,
            Input([], given=[trial.sample]),
            # Replies of earlier runs are not those that were shown.
            runs.RunSettings(1, fresh=True, limiter=limiter),
            identity=identity,
        )
        if viewer.visit:
            viewer.visit.target = run.row.id
        return [PreparedRun(run, limiter)]

    (id,) = viewer.jobs.begin(making)
    viewer.jobs.wait(id)
    return id


ADDRESS = "/runs/{run}/samples/{sample}/try"
routes = [
    *page_routes(ADDRESS, form),
    Route(f"{ADDRESS}/save", save, methods=["POST"]),
    Route(ADDRESS, judge, methods=["POST"]),
]
