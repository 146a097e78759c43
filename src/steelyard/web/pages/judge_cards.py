"""Cards of judges: what `steelyard audit` measured, kept in the store."""

from __future__ import annotations

from pydantic import Field
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from steelyard.records import Record
from steelyard.reports.audit.card import Card, Measure
from steelyard.reports.audit.html import render
from steelyard.reports.audit.page import blocks
from steelyard.reports.audit.sections import CardWords
from steelyard.reports.html.document import page_parts
from steelyard.reports.model import Estimate
from steelyard.store import KeptCard
from steelyard.web.addresses import as_file
from steelyard.web.rendering import language_of, page, page_routes
from steelyard.web.viewer import viewer_of

SHOWN: tuple[Measure, ...] = ("injection", "flagged", "stability", "sensitivity", "false_alarms")
MOST_LISTED = 200


class CardRow(Record):
    """A card in a line: its first numbers."""

    id: int
    judge: str
    made: str
    project: str
    own_data: bool = Field(description="whether it was measured on samples of the project too")
    suite: int
    protocols: tuple[str, ...]
    measures: dict[str, Estimate]


class CardsPage(Record):
    cards: tuple[CardRow, ...]


class CardPage(Record):
    """A card, and the newest cards of other judges that were measured in the same way."""

    id: int
    project: str
    card: Card
    beside: tuple[int, ...] = ()


def cards(request: Request) -> Response:
    with viewer_of(request).store() as store:
        found = [_row(kept) for kept in store.cards()[:MOST_LISTED]]
    words = CardWords(language_of(request))
    names = [(name, words.named("measure_name", name)) for name in SHOWN]
    return page(request, "judge_cards.html", CardsPage(cards=tuple(found)), names=names)


def _row(kept: KeptCard) -> CardRow:
    card = Card.model_validate_json(kept.card)
    measures = {str(name): estimate for name, estimate in card.measures().items()}
    return CardRow(
        id=kept.id,
        judge=card.judge,
        made=card.made,
        project=kept.project,
        own_data=card.scope.data is not None,
        suite=card.suite.version,
        protocols=card.scope.protocols,
        measures=measures,
    )


def card(request: Request) -> Response:
    kept, found, others = _found(request)
    model = CardPage(id=kept.id, project=kept.project, card=found, beside=tuple(id for id, _ in others))
    shown = blocks(found, [other for _, other in others], language=language_of(request))
    title, *parts = page_parts(shown)
    return page(request, "judge_card.html", model, title=title.heading, parts=parts)


def report(request: Request) -> Response:
    """The same as one file to pass on."""
    kept, found, others = _found(request)
    response = HTMLResponse(render(found, [other for _, other in others], language_of(request)))
    response.headers["Content-Disposition"] = as_file(f"steelyard-card-{kept.id}.html")
    return response


def _found(request: Request) -> tuple[KeptCard, Card, list[tuple[int, Card]]]:
    with viewer_of(request).store() as store:
        every = store.cards()
    wanted = request.path_params["card"]
    kept = next((one for one in every if one.id == wanted), None)
    if kept is None:
        raise HTTPException(404, f"there is no card with the number {wanted}")
    found = Card.model_validate_json(kept.card)
    others: dict[str, tuple[int, Card]] = {}
    for one in every[:MOST_LISTED]:
        other = Card.model_validate_json(one.card)
        same = (other.suite, other.scope) == (found.suite, found.scope) and len(other.parts) == len(found.parts)
        if same and other.judge != found.judge:
            others.setdefault(other.judge, (one.id, other))
    return kept, found, list(others.values())[:5]


ADDRESS = "/judges/cards"
routes = [
    Route(f"{ADDRESS}/{{card:int}}/report.html", report, methods=["GET"]),
    *page_routes(f"{ADDRESS}/{{card:int}}", card),
    *page_routes(ADDRESS, cards),
]
