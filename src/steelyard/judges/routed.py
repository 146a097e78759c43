"""A routed judge: the first judge decides what it is confident of, the second gets the rest."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steelyard.errors import ConfigError
from steelyard.judges.base import Judge, JudgeLike, Replacing, as_judge
from steelyard.judges.composed import ComposedJudge, joint_fingerprint
from steelyard.judges.voting import label_fields, labels_by_id, leading, meaning, spelled
from steelyard.records import Ask, Mark, Numbered, Reply, ReplyData, SecondOpinion, Tolerance, Unjudged

Lists = Literal["first", "then"]
Sure = float | Mapping[str, float | None]
"""From which confidence on the first judge is believed: one number for all labels, or by kind and label."""

SURE = 0.9
SAMPLE = 0.05
DEFAULT = "default"
NAME = "routed "


class RoutedJudge(ComposedJudge):
    """Asks `first`; items whose label it gives with enough confidence keep it, all others are asked of `then`.

        RoutedJudge(verifier, model)
        RoutedJudge(verifier, model, sure={"default": 0.9, "atom.wrong": 0.97, "key_point": None})

    `sure` is the confidence that is enough, for all labels or by kind and label; with null the first judge is never
    believed. A share `sample` of what it is sure of is asked of `then` too, to be compared and reported. What has no
    items (splitting an answer, drawing key points) is `lists`' to say. What is said of the answer as a whole comes from
    `then` where items were passed on to it. Where `then` fails, the ask is unjudged: an unsure label is not used.
    """

    def __init__(
        self, first: JudgeLike, then: JudgeLike, *, sure: Sure = SURE, sample: float = SAMPLE, lists: Lists = "then"
    ) -> None:
        self.sure: dict[str, float | None] = dict(sure) if isinstance(sure, Mapping) else {DEFAULT: float(sure)}
        for name, least in self.sure.items():
            if least is not None and not 0 <= least <= 1:
                raise ConfigError(f"sure is a confidence from 0 to 1, not {least:g} ({name})")
        if not 0 <= sample <= 1:
            raise ConfigError(f"sample is a share from 0 to 1, not {sample:g}")
        self.first, self.then, self.sample, self.lists = as_judge(first), as_judge(then), sample, lists
        how = "" if self.sure == {DEFAULT: SURE} else f" (sure {self._sure_text})"
        self.name = f"{NAME}{first.name.removeprefix(NAME)} > {then.name.removeprefix(NAME)}{how}"

    @property
    def _sure_text(self) -> str:
        if self.sure.keys() == {DEFAULT}:
            return f"{self.sure[DEFAULT]:g}"
        thresholds = " ".join(f"{name} {least}" for name, least in sorted(self.sure.items()))
        return f"by label, {hashlib.sha256(thresholds.encode()).hexdigest()[:6]}"

    def describe(self) -> dict[str, Any]:
        """For a run's manifest."""
        return {
            "kind": "routed",
            "first": self.first.described(),
            "then": self.then.described(),
            "sure": dict(self.sure),
            "sample": self.sample,
            "lists": self.lists,
        }

    def fingerprint(self, ask: Ask) -> str:
        """Changes whenever one of the answers might, or who is believed."""
        return joint_fingerprint(self.parts(), ask, sorted(self.sure.items()), self.sample, self.lists)

    def parts(self) -> Sequence[Judge]:
        return self.first, self.then

    def exchanged(self, replace: Replacing) -> RoutedJudge:
        first, then = self.first.exchanged(replace), self.then.exchanged(replace)
        return RoutedJudge(first, then, sure=self.sure, sample=self.sample, lists=self.lists)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        if not ask.data.items():
            # Nobody says how sure a label of the whole answer is, so the second judge gives it.
            draws = self.first if self.lists == "first" and not label_fields(ask.reply) else self.then
            return await draws.answer(ask)
        first = await self.first.answer(ask)
        kept = {} if isinstance(first, Unjudged) else self._kept(ask, first)
        passed_on = {
            name: tuple(item.id for item in items if item.id not in kept.get(name, {}))
            for name, items in ask.data.items().items()
        }
        checked = {name: tuple(id for id in ids if self._is_checked(ask, name, id)) for name, ids in kept.items()}
        wanted = {name: (*ids, *checked.get(name, ())) for name, ids in passed_on.items()}
        if not any(wanted.values()) and isinstance(first, Reply):
            return self._merged(ask, first, None, kept, passed_on)
        then = await self.then.answer(ask.model_copy(update={"data": ask.data.only(wanted)}))
        usage = first.usage + then.usage
        if isinstance(then, Unjudged):
            if any(passed_on.values()) or isinstance(first, Unjudged):
                return then.model_copy(update={"usage": usage})
            # Only a comparison is missing.
            return self._merged(ask, first, None, kept, passed_on).model_copy(update={"usage": usage})
        return self._merged(ask, first, then, kept, passed_on).model_copy(update={"usage": usage})

    def _kept(self, ask: Ask, reply: Reply) -> dict[str, dict[int, Any]]:
        """The labels that the first judge is sure of, by list and id."""
        kept: dict[str, dict[int, Any]] = {}
        for name, items in ask.data.items().items():
            labels = labels_by_id(reply.data, name)
            kept[name] = {
                item.id: labels[item.id]
                for item in items
                if item.id in labels and self._is_sure(name, item, labels[item.id], _mark(reply, name, item.id), ask)
            }
        return kept

    def _is_sure(self, name: str, item: Numbered, label: Any, mark: Mark, ask: Ask) -> bool:
        # A panel's confidence is its agreement.
        given = min(mark.shares.values()) if mark.shares else getattr(label, "confidence", None)
        if given is None or mark.open:
            return False
        least = self._least(name, item, label, ask.tolerance)
        return least is not None and given >= least

    def _least(self, name: str, item: Numbered, label: Any, tolerance: Tolerance) -> float | None:
        """The confidence that is enough for this label: what is said of it most closely counts."""
        kind, said = label.aspects.get(leading(type(label)), name), word(label, tolerance)
        names = [f"{kind}.{item.text}.{said}", f"{kind}.{item.text}"] if label.is_named else []
        for each in (*names, f"{kind}.{said}", kind, DEFAULT):
            if each in self.sure:
                return self.sure[each]
        return SURE

    def _is_checked(self, ask: Ask, name: str, id: int) -> bool:
        """Whether a label is among those that the second judge is asked about for comparison: always the same ones."""
        if ask.again or ask.verify:
            return False
        drawn = hashlib.sha256(f"{ask.key}\x00{name}\x00{id}".encode()).digest()[:8]
        return int.from_bytes(drawn) < self.sample * 2**64

    def _merged(
        self,
        ask: Ask,
        first: Reply | Unjudged,
        then: Reply | None,
        kept: Mapping[str, Mapping[int, Any]],
        passed_on: Mapping[str, tuple[int, ...]],
    ) -> Reply:
        """Both replies as one. At least one of them is there."""
        base = then if then and (any(passed_on.values()) or isinstance(first, Unjudged)) else first
        assert isinstance(base, Reply)
        changed: dict[str, Any] = {}
        marks: dict[str, dict[int, Mark]] = {}
        doubts: list[Any] = []
        for name, items in ask.data.items().items():
            said = labels_by_id(then.data, name) if then else {}
            labels: list[Any] = []
            for id in (item.id for item in items):
                if id in kept.get(name, {}):
                    assert isinstance(first, Reply)
                    label, mark = kept[name][id], _mark(first, name, id)
                    second = self._second_opinion(label, said.get(id), then, name, ask.tolerance)
                    decided = mark.model_copy(update={"judge": mark.judge or self.first.name, "second_opinion": second})
                elif id in said and then:
                    label, mark = said[id], _mark(then, name, id)
                    decided = mark.model_copy(update={"judge": mark.judge or self.then.name})
                else:
                    continue
                labels.append(label)
                marks.setdefault(name, {})[id] = decided
            # What nobody asked about is passed on once, for the protocol to drop and count.
            wanted = {item.id for item in items}
            invented = [label for id, label in labels_by_id(base.data, name).items() if id not in wanted]
            changed[name] = [*labels, *invented]
            noted = getattr(then.data, "unsure", ()) if then else ()
            doubts += [doubt for doubt in noted if doubt.items == name and doubt.id in passed_on[name]]
        if "unsure" in type(base.data).model_fields:
            changed["unsure"] = doubts
        return base.model_copy(
            update={"data": base.data.model_copy(update=changed), "marks": {**_whole(base), **marks}}
        )

    def _second_opinion(
        self, label: ReplyData, other: ReplyData | None, then: Reply | None, name: str, tolerance: Tolerance
    ) -> SecondOpinion | None:
        if other is None or then is None:
            return None
        mark = _mark(then, name, getattr(other, "id", 0))
        if mark.open:
            return None
        said = word(other, tolerance)
        return SecondOpinion(judge=mark.judge or self.then.name, label=said, agrees=said == word(label, tolerance))


def word(label: Any, tolerance: Tolerance) -> str | int:
    """The leading label as it counts, in the words of verdicts."""
    field = leading(type(label))
    said = spelled(label, field, meaning(label, field, tolerance))
    return said if isinstance(said, int) else str(said)


def _mark(reply: Reply, name: str, id: int) -> Mark:
    return reply.marks.get(name, {}).get(id, Mark())


def _whole(reply: Reply) -> dict[str, dict[int, Mark]]:
    """What several voices of one judge say of the answer as a whole."""
    return {"": dict(reply.marks[""])} if "" in reply.marks else {}
