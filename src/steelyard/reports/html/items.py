"""Labelled items as a page lists them: signs, reasons, quotes, and whether their places were found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Kind, parts_of
from steelyard.records import AnyItem, Atom, Criterion, Evidence, KeyPoint, Part
from steelyard.reports.html.views import Chip, ItemView, ViewLimits, chip
from steelyard.reports.model import named, reason_in
from steelyard.reports.sample import SamplePage, confidence_text

LONGEST_REMARK = 2000


def cut(text: str) -> str:
    """A remark that is longer than anybody reads, shortened."""
    return text if len(text) <= LONGEST_REMARK else text[: LONGEST_REMARK - 1] + "…"


def key_of(kind: Kind, index: int) -> str:
    """The address of an item; the letter says how its text is found in the answer."""
    letter = {"statement": "a", "sentence": "s"}.get(kind.place) or ("k" if kind.identity == "alike" else "c")
    return f"{letter}{index}"


class Items:
    """Makes the views of one sample's items; `places` and `quotes` are the keys that were found in the texts."""

    def __init__(self, page: SamplePage, limits: ViewLimits, places: set[str], quotes: set[str]) -> None:
        self.page, self.limits, self.places, self.quotes = page, limits, places, quotes
        self.language, self.vocab = page.language, vocabulary(page.verdict.protocol)
        places = {kind.place for kind in self.vocab.kinds}
        self.crowded = {"sentence", "statement"} <= places

    def number(self, item: AnyItem) -> str:
        # Sentences and statements are both numbered from 1; the letter keeps them apart.
        letter = self.crowded and self.vocab.kind_of(item).place == "statement"
        return f"{'a' if letter else ''}{item.id}"

    def view(self, index: int, item: AnyItem) -> ItemView:
        """One item with everything known about it."""
        kind = self.vocab.kind_of(item)
        key = key_of(kind, index)
        chips, facts = self._chips(kind, item), ()
        match item:
            case Atom():
                return self._atom(key, item, chips)
            case KeyPoint():
                chips = (*chips, *((Chip(named(self.language, "depth", item.depth)),) if item.depth else ()))
            case Criterion():
                return self._criterion(key, item, chips)
        view = self._item(key, item, chips, facts, evidence=getattr(item, "evidence", None))
        return replace(view, text=cut(self.vocab.item_words(item, self.language)), parts=self._parts(kind, index, item))

    def _chips(self, kind: Kind, item: AnyItem) -> tuple[Chip, ...]:
        """Its labels: that which colours it first, then the leading one, then the others."""
        aspect, shown = kind.shown(item)
        leading = kind.leading
        found = {aspect: chip(self.language, self.vocab, aspect, shown.name)}
        if getattr(item, leading.field, None) is not None:
            label = shown.name if aspect == leading.name else getattr(item, leading.field)
            found[leading.name] = self._label(leading.name, label, item)
        for other, label in kind.labels(item):
            found.setdefault(other.name, chip(self.language, self.vocab, other.name, label))
        return tuple(found.values())

    def _item(
        self,
        key: str,
        item: AnyItem,
        chips: tuple[Chip, ...],
        facts: tuple[tuple[str, str], ...] = (),
        number: str = "",
        evidence: Evidence | None = None,
    ) -> ItemView:
        quote, about = self._evidence(evidence)
        return ItemView(
            key=key,
            number=number or str(item.id),
            text=cut(item.text),
            chips=chips,
            reason=cut(reason_in(self.language, item.reason)),
            facts=facts + self._facts(self.page.by_whom(item) + self.page.opinions(item)),
            quote=quote,
            quote_about=about,
            in_text=key in self.places,
            in_source=key in self.quotes,
        )

    def _label(self, kind: str, label: object, item: AnyItem | Part) -> Chip:
        """The label that the item's confidence is about, with it."""
        sure = confidence_text(item)
        about = self.page.say("confidence_about") if sure else ""
        return replace(chip(self.language, self.vocab, kind, label), sure=sure, about=about)

    def _evidence(self, evidence: Evidence | None) -> tuple[str, str]:
        if evidence is None:
            return "", ""
        parts = []
        if evidence.reference is not None:
            parts.append(self.page.say("passage").format(n=evidence.reference + 1))
        parts.append(named(self.language, "source", evidence.source))
        if evidence.quote:
            parts.append(self.page.say("verified" if evidence.verified else "unverified"))
        return cut(evidence.quote), " · ".join(parts)

    def _atom(self, key: str, atom: Atom, chips: tuple[Chip, ...]) -> ItemView:
        level = (Chip(named(self.language, "level", str(atom.level))),) if atom.level else ()
        cause = (Chip(self.page.say("causal_of").format(n=atom.causal_of)),) if atom.causal_of is not None else ()
        facts = self._facts(self.page.reason(atom.level_reason, "level_reason") + self.page.difference(atom))
        return self._item(key, atom, (*chips, *level, *cause), facts, self.number(atom), atom.evidence)

    def _parts(self, kind: Kind, index: int, item: AnyItem) -> tuple[ItemView, ...]:
        if kind.parts is None:
            return ()
        return tuple(
            ItemView(
                key=f"p{index}-{number}",
                number=str(number + 1),
                text=cut(part.text),
                chips=(self._label(kind.parts.name, part.label, part),),
                reason=cut(reason_in(self.language, part.reason)),
                facts=self._facts(self.page.by_whom(part)),
                in_text=f"p{index}-{number}" in self.places,
                in_source=f"p{index}-{number}" in self.quotes,
            )
            for number, part in enumerate(parts_of(item)[: self.limits.items])
        )

    def _facts(self, facts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((name, cut(text)) for name, text in facts)

    def _criterion(self, key: str, c: Criterion, chips: tuple[Chip, ...]) -> ItemView:
        content, _, _ = c.text.rpartition(" | ") if c.type else (c.text, "", "")
        kind = (Chip(c.type),) if c.type else ()
        rule = (Chip(named(self.language, "decided_by", c.decided_by)),) if c.decided_by == "rule" else ()
        # That it is valid goes without saying.
        chips = (chips[0], *(one for one in chips[1:] if one.tone != "good"))
        facts = self.page.reason(c.validity_reason, "validity_reason") if c.validity_reason != c.reason else ()
        view = self._item(key, c, (*chips, *kind, *rule))
        about = [c.place] if c.place else []
        if c.quote:
            about.append(self.page.say("verified" if c.quote_verified else "unverified"))
        return replace(
            view,
            number=f"{c.turn}.{c.id}",
            text=cut(content or c.text),
            facts=self._facts(facts) + view.facts,
            quote=cut(c.quote),
            quote_about=cut(" · ".join(about)),
        )
