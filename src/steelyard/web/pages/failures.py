"""What is wrong with a run's answers, in groups that lead to the samples: labels, tags, statements that are alike."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Vocabulary
from steelyard.records import Language, Record
from steelyard.reports.blocks import number, one_line
from steelyard.reports.html.views import Chip, chip
from steelyard.store.listing.failures import FailureGroup, Failures, failures, known_failures
from steelyard.web.addresses import run_address, sample_address
from steelyard.web.cache import patience_for
from steelyard.web.pages.runs import RunSummary
from steelyard.web.rendering import is_json, language_of, page, page_routes
from steelyard.web.viewer import viewer_of

LONGEST_TEXT = 160


class FailuresPage(Record):
    """A run with what counts against its samples, which is null while it is being counted."""

    run: RunSummary
    failures: Failures | None


class CountLine(NamedTuple):
    """A label or tag: how many samples, as a share of what, and where they are."""

    name: Chip | str
    n: int
    of: int
    href: str

    @property
    def share(self) -> str:
        return number(self.n / self.of if self.of else None, "ratio")


class AlikeLine(NamedTuple):
    """A group of items that are alike, with samples to open."""

    label: Chip
    text: str
    group: FailureGroup
    examples: list[tuple[str, str, str]]


def failures_page(request: Request) -> Response:
    viewer, language = viewer_of(request), language_of(request)
    with viewer.store() as store:
        row = store.run(request.path_params["run"])
        run = RunSummary.of(row, store)
        found = known_failures(store, row.id)

    def counted() -> Failures:
        with viewer.store() as store:
            return failures(store, row.id)

    if found is None:
        patience = None if is_json(request) else patience_for(run.n)
        found = viewer.cache.get(("failures", row.id, row.finished, run.n), counted, patience)
    vocab = vocabulary(row.protocol)
    return page(
        request,
        "failures.html",
        FailuresPage(run=run, failures=found),
        status=200 if found else 202,
        labels=list(by_kind(found, row.id, vocab, language)) if found else [],
        tags=list(by_tag(found, row.id)) if found else [],
        alike=list(alike(found, row.id, vocab, language)) if found else [],
    )


def by_kind(found: Failures, run: str, vocab: Vocabulary, language: Language) -> Iterator[tuple[str, list[CountLine]]]:
    """The labels under the kind of item that they are about, those first that say most."""
    entries = [(aspect, label, n) for key, n in found.labels.items() for aspect, _, label in [key.partition(":")]]
    entries.sort(key=lambda entry: (vocab.severity(*entry[:2])[1], -entry[2]))
    for aspect, several in groupby(entries, key=lambda entry: entry[0]):
        lines = [
            CountLine(
                chip(language, vocab, aspect, label),
                n,
                found.n,
                run_address(run, "samples", label=f"{aspect}:{label}"),
            )
            for _, label, n in several
        ]
        yield vocab.kind_words(aspect, language), lines


def by_tag(found: Failures, run: str) -> Iterator[CountLine]:
    """The tags by the share of their samples that fail."""
    ranked = sorted(found.tags.items(), key=lambda entry: (-entry[1].failing / entry[1].n, entry[0]))
    return (CountLine(tag, group.failing, group.n, run_address(run, "samples", tag=tag)) for tag, group in ranked)


def alike(found: Failures, run: str, vocab: Vocabulary, language: Language) -> Iterator[AlikeLine]:
    for group in found.groups:
        kind = vocab.kind_with(group.aspect)
        name = vocab.name_words(kind.name, group.name, language) if kind and group.name else ""
        examples = [
            (one.sample, one_line(one.text, LONGEST_TEXT), sample_address(run, one.sample)) for one in group.examples
        ]
        label = chip(language, vocab, group.aspect, group.label)
        yield AlikeLine(label, name or one_line(group.text, LONGEST_TEXT), group, examples)


routes = page_routes("/runs/{run}/failures", failures_page)
