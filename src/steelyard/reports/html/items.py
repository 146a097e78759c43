"""Labelled items as a page lists them: signs, reasons, quotes, and whether their places were found."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from steelyard.records import AnyItem, Atom, Check, Criterion, Evidence, KeyPoint, Part, Sentence
from steelyard.reports.html.views import Chip, ItemView, Limits, chip
from steelyard.reports.model import named, reason_in
from steelyard.reports.sample import SamplePage, confidence_text
from steelyard.reports.tally import WITHIN

LONGEST_REMARK = 2000


def cut(text: str) -> str:
    """A remark that is longer than anybody reads, shortened."""
    return text if len(text) <= LONGEST_REMARK else text[: LONGEST_REMARK - 1] + "…"


class Items:
    """Makes the views of one sample's items; `places` and `quotes` are the keys that were found in the texts."""

    def __init__(self, page: SamplePage, limits: Limits, places: set[str], quotes: set[str]) -> None:
        self.page, self.limits, self.places, self.quotes = page, limits, places, quotes
        self.language = page.language

    def number(self, atom: Atom) -> str:
        # The scorecard numbers sentences and statements, each from 1; the letter keeps them apart.
        return f"{'a' if self.page.verdict.protocol == 'scorecard' else ''}{atom.id}"

    def view(self, index: int, item: AnyItem) -> ItemView:
        """One item with everything known about it."""
        match item:
            case Atom():
                return self._atom(f"a{index}", item)
            case Sentence():
                return self._sentence(f"s{index}", item)
            case KeyPoint():
                depth = (Chip(named(self.language, "depth", item.depth)),) if item.depth else ()
                chips = (self._label("key_point", item.label, item), *depth)
                return self._item(f"k{index}", item, chips)
            case Check():
                return self._check(index, item)
            case Criterion():
                return self._criterion(index, item)
            case _:
                return self._item(f"i{index}", item, ())

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
            facts=facts + self._facts(self.page.told_by(item) + self.page.told_of(item)),
            quote=quote,
            quote_about=about,
            in_text=key in self.places,
            in_source=key in self.quotes,
        )

    def _label(self, kind: str, label: object, item: AnyItem | Part) -> Chip:
        """The label that the item's confidence is about, with it."""
        sure = confidence_text(item)
        about = self.page.say("confidence_about") if sure else ""
        return replace(chip(self.language, kind, label), sure=sure, about=about)

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

    def _atom(self, key: str, atom: Atom) -> ItemView:
        level = (Chip(named(self.language, "level", str(atom.level))),) if atom.level else ()
        cause = (Chip(self.page.say("causal_of").format(n=atom.causal_of)),) if atom.causal_of is not None else ()
        near = (chip(self.language, "tolerance", "within"),) if WITHIN in atom.flags else ()
        chips = (*near, self._label("atom", atom.label, atom), *level, *cause)
        facts = self._facts(self.page.reason(atom.level_reason, "level_reason") + self.page.difference(atom))
        return self._item(key, atom, chips, facts, self.number(atom), atom.evidence)

    def _sentence(self, key: str, sentence: Sentence) -> ItemView:
        support = self._label("support", sentence.support, sentence)
        topic = () if sentence.on_topic is None else (chip(self.language, "on_topic", sentence.on_topic),)
        # What is wrong with it comes first, since that is what colours it.
        chips = (*topic, support) if sentence.on_topic == "off_topic" else (support, *topic)
        return self._item(key, sentence, chips, evidence=sentence.evidence)

    def _check(self, index: int, check: Check) -> ItemView:
        parts = tuple(
            ItemView(
                key=f"p{index}-{number}",
                number=str(number + 1),
                text=cut(part.text),
                chips=(self._label("part", part.label, part),),
                reason=cut(reason_in(self.language, part.reason)),
                facts=self._facts(self.page.told_by(part)),
                in_text=f"p{index}-{number}" in self.places,
            )
            for number, part in enumerate(check.parts[: self.limits.items])
        )
        view = self._item(f"c{index}", check, (self._label("check", check.label, check),))
        named_check = named(self.language, "check", check.name, check.text)
        return replace(view, text=named_check, parts=parts)

    def _facts(self, facts: Iterable[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
        return tuple((name, cut(text)) for name, text in facts)

    def _criterion(self, index: int, c: Criterion) -> ItemView:
        content, _, _ = c.text.rpartition(" | ") if c.type else (c.text, "", "")
        kind = (Chip(c.type),) if c.type else ()
        rule = (Chip(named(self.language, "decided_by", c.decided_by)),) if c.decided_by == "rule" else ()
        validity = (chip(self.language, "validity", c.validity),) if c.validity != "valid" else ()
        facts = self.page.reason(c.validity_reason, "validity") if c.validity_reason != c.reason else ()
        view = self._item(f"c{index}", c, (self._label("criterion", c.label, c), *validity, *kind, *rule))
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
