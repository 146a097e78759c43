"""Re-checks negative labels: judges over-flag, so a negative label stands only if it is confirmed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from steelyard.judges.base import Judge, JudgeLike, Replacing, as_judge
from steelyard.judges.composed import ComposedJudge, joint_fingerprint
from steelyard.judges.voting import labels_by_id, leading, meaning, spelled
from steelyard.records import Ask, Mark, Reply, ReplyData, Tolerance, Unjudged

Unconfirmed = Literal["second", "undetermined"]


class VerifyingJudge(ComposedJudge):
    """Asks `judge`; what it finds amiss is asked once more, of `verifier` or of the same judge, with only those items.

    A finding that is not found again gives way to the second label and is flagged `not_confirmed`; with
    `unconfirmed="undetermined"` it is left open instead. Where the second look fails, the first label stands.
    """

    def __init__(
        self, judge: JudgeLike, verifier: JudgeLike | None = None, *, unconfirmed: Unconfirmed = "second"
    ) -> None:
        self.judge, self.unconfirmed = as_judge(judge), unconfirmed
        self.verifier = self.judge if verifier is None or verifier is judge else as_judge(verifier)
        by = "itself" if self.verifier is self.judge else self.verifier.name
        left_open = ", unconfirmed left open" if self.unconfirmed == "undetermined" else ""
        self.name = f"{judge.name}, verified by {by}{left_open}"

    def describe(self) -> dict[str, Any]:
        """For a run's manifest; a null `verifier` is the judge itself."""
        return {
            "kind": "verifying",
            "judge": self.judge.described(),
            "verifier": None if self.verifier is self.judge else self.verifier.described(),
            "unconfirmed": self.unconfirmed,
        }

    def fingerprint(self, ask: Ask) -> str:
        return joint_fingerprint((self.judge, self.verifier), ask, self.unconfirmed)

    def parts(self) -> Sequence[Judge]:
        return (self.judge,) if self.verifier is self.judge else (self.judge, self.verifier)

    def exchanged(self, replace: Replacing) -> VerifyingJudge:
        judge = self.judge.exchanged(replace)
        verifier = None if self.verifier is self.judge else self.verifier.exchanged(replace)
        return VerifyingJudge(judge, verifier, unconfirmed=self.unconfirmed)

    async def answer(self, ask: Ask) -> Reply | Unjudged:
        first = await self.judge.answer(ask)
        if isinstance(first, Unjudged):
            return first
        found: dict[str, dict[int, dict[str, Any]]] = {}
        for name, items in ask.data.items().items():
            # What nobody asked about is dropped by the protocol; it must not be paid for a second time.
            wanted = {item.id for item in items}
            if findings := {
                id: fields for id, fields in negative_labels(first, name, ask.tolerance).items() if id in wanted
            }:
                found[name] = findings
        if not found:
            return first
        labels = {name: _once(first.data, name) for name in found}
        second = await self.verifier.answer(
            ask.model_copy(
                update={
                    "data": ask.data.only({name: tuple(findings) for name, findings in found.items()}),
                    "verify": tuple(
                        f"{name} {id}: {', '.join(_words(labels[name][id], fields))}"
                        for name, findings in found.items()
                        for id, fields in findings.items()
                    ),
                }
            )
        )
        usage = first.usage + second.usage
        if isinstance(second, Unjudged):
            return first.model_copy(update={"usage": usage})
        data, marks = self._weighed(first, second, found, ask.tolerance)
        return first.model_copy(update={"data": data, "marks": marks, "usage": usage})

    def _weighed(
        self,
        first: Reply,
        second: Reply,
        found: Mapping[str, Mapping[int, Mapping[str, Any]]],
        tolerance: Tolerance,
    ) -> tuple[ReplyData, dict[str, dict[int, Mark]]]:
        """First and second look as one reply."""
        marks = {name: dict(by_id) for name, by_id in first.marks.items()}
        changed: dict[str, list[Any]] = {}
        for name, findings in found.items():
            again = _once(second.data, name)
            labels: list[Any] = []
            for label in getattr(first.data, name):
                other = again.get(label.id)
                open_there = _mark(second.marks, name, label.id).open
                gone = {
                    field: said
                    for field, said in findings.get(label.id, {}).items()
                    if other is not None and field not in open_there and not _is_negative(other, field, tolerance)
                }
                labels.append(self._label(label, other, gone))
                if gone:
                    before, after = _mark(first.marks, name, label.id), _mark(second.marks, name, label.id)
                    marks.setdefault(name, {})[label.id] = self._marked(before, after, gone)
            changed[name] = labels
        data: ReplyData = first.data.model_copy(update=changed)
        return data, marks

    def _label(self, label: Any, other: Any, gone: Mapping[str, Any]) -> Any:
        if not gone or self.unconfirmed == "undetermined":
            return label
        # Reason and quote come with the label they speak for; what was not in doubt stays.
        if leading(type(label)) not in gone:
            return label.model_copy(update={field: getattr(other, field) for field in gone})
        fields = [*label.aspects, "level", "level_reason"]
        kept = {field: getattr(label, field) for field in fields if hasattr(label, field) and field not in gone}
        return other.model_copy(update=kept)

    def _marked(self, before: Mark, after: Mark, gone: Mapping[str, Any]) -> Mark:
        left_open = tuple(gone) if self.unconfirmed == "undetermined" else ()
        return Mark(
            # Votes for what did not stand say nothing about what does.
            shares={
                **{field: share for field, share in before.shares.items() if field not in gone},
                **{field: share for field, share in after.shares.items() if field in gone},
            },
            votes=before.votes,
            open=(*before.open, *left_open),
            first=dict(gone),
            flags=(*before.flags, "not_confirmed"),
            judge=(after.judge or self.verifier.name) if before.judge else "",
        )


def negative_labels(reply: Reply, name: str, tolerance: Tolerance) -> dict[int, dict[str, Any]]:
    """The negative labels of one list of a reply: by id, the fields with what they say. Without open items."""
    found: dict[int, dict[str, Any]] = {}
    for id, label in _once(reply.data, name).items():
        left_open = _mark(reply.marks, name, id).open
        fields = {
            field: meaning(label, field, tolerance)
            for field in label.amiss
            if _is_negative(label, field, tolerance) and field not in left_open
        }
        if fields:
            found[id] = fields
    return found


def _is_negative(label: Any, field: str, tolerance: Tolerance) -> bool:
    said = meaning(label, field, tolerance)
    return any(said is bad or (said == bad and type(said) is type(bad)) for bad in label.against(field))


def _words(label: ReplyData, fields: Mapping[str, Any]) -> list[str]:
    return [str(spelled(label, field, said)) for field, said in fields.items()]


def _once(data: ReplyData, name: str) -> dict[int, Any]:
    """The labels by id, as a protocol takes them: said twice and differently is not said at all."""
    return dict(labels_by_id(data, name))


def _mark(marks: Any, name: str, id: int) -> Mark:
    found: Mark = marks.get(name, {}).get(id, Mark())
    return found
