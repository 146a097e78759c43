"""What people say together: one label per item, and the scores of a sample that follow from their labels."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from steelyard.calibration.matching import Rated
from steelyard.protocols.counts import atomic_scores, dialogue_scores, grounded_scores, scorecard_scores
from steelyard.records import AnyItem, Atom, Check, Criterion, KeyPoint, Sentence, Verdict
from steelyard.reports.tally import labels_of
from steelyard.scoring import Number

Place = tuple[str, int | None, int | None]

# Which labels a score is counted from; `grounded` by the group of the check.
NEEDS: dict[str, dict[str, str]] = {
    "atomic": {"accuracy": "atom", "accuracy_strict": "atom", "coverage": "atom", "fallback": "fallback"},
    "grounded": {"relevance": "check", "truthfulness": "check", "accuracy": "check"},
    "scorecard": {
        "relevance": "on_topic",
        "completeness": "key_point",
        "accuracy": "atom",
        "faithfulness": "support",
        "faithfulness_soft": "support",
    },
    "dialogue": {"csr": "criterion", "isr": "criterion", "ssr": "criterion"},
}


class Majority:
    """One label out of several people's. An even split is decided by whoever labelled most, so that hard items
    stay in; leaving them out would make judge and people look more alike than they are."""

    def __init__(self, rated: Iterable[Rated]) -> None:
        self._diligence = Counter(name for item in rated for name in item.people)

    def label(self, people: Mapping[str, str]) -> str:
        votes = Counter(people.values())
        most = max(votes.values())
        first = max(people, key=lambda name: (votes[people[name]] == most, self._diligence[name], name))
        return people[first]

    @staticmethod
    def is_split(people: Mapping[str, str]) -> bool:
        votes = Counter(people.values()).most_common(2)
        return len(votes) > 1 and votes[0][1] == votes[1][1]


def needs_labels(verdict: Verdict, metric: str) -> bool:
    """Whether there is anything to label for this score in this sample; otherwise the score is a fact."""
    kind = NEEDS.get(verdict.protocol, {}).get(metric)
    return kind == "fallback" or any(found == kind for item in verdict.items for found, _ in labels_of(item))


def _places(verdict: Verdict, metric: str) -> list[Place]:
    """The places whose labels decide a score."""
    kind = NEEDS.get(verdict.protocol, {}).get(metric)
    if kind is None:
        return []
    if kind == "fallback":
        return [(kind, None, None)]
    places: dict[str, Place] = {}
    for item in verdict.items:
        if kind == "check":
            if isinstance(item, Check) and metric in ("accuracy", item.group):
                places.setdefault(item.name, (kind, None, item.id))
        elif any(found == kind for found, _ in labels_of(item)):
            turn = item.turn if isinstance(item, Criterion) else None
            places[f"{item.kind}/{turn}/{item.id}"] = (kind, turn, item.id)
    return list(places.values())


def scores_by_people(verdict: Verdict, given: Mapping[Place, str]) -> dict[str, Number]:
    """The sample's scores from people's labels; only those whose every label they gave."""
    given = _same_checks(verdict, given)
    metrics = [name for name in NEEDS.get(verdict.protocol, {}) if name in verdict.scores]
    whole = [name for name in metrics if all(place in given for place in _places(verdict, name))]
    whole = [name for name in whole if needs_labels(verdict, name)]
    scores = _scores(verdict, [_labelled(item, given) for item in verdict.items], given)
    return {name: scores[name] for name in whole}


def _same_checks(verdict: Verdict, given: Mapping[Place, str]) -> Mapping[Place, str]:
    """The label of a check that stands in both groups counts in both."""
    names = {item.id: item.name for item in verdict.items if isinstance(item, Check)}
    by_name = {names[place[2]]: label for place, label in given.items() if place[0] == "check" and place[2] in names}
    return {**given, **{("check", None, id): by_name[name] for id, name in names.items() if name in by_name}}


def _labelled(item: AnyItem, given: Mapping[Place, str]) -> AnyItem:
    match item:
        case Atom():
            return _with(item, label=given.get(("atom", None, item.id)))
        case Check():
            label = given.get(("check", None, item.id))
            return _with(item, label=None if label is None else int(label))
        case Sentence():
            on_topic, support = given.get(("on_topic", None, item.id)), given.get(("support", None, item.id))
            return _with(item, on_topic=on_topic, support=support)
        case KeyPoint():
            return _with(item, label=given.get(("key_point", None, item.id)))
        case Criterion():
            return _with(item, label=given.get(("criterion", item.turn, item.id)))
        case _:
            return item


def _with(item: AnyItem, **labels: str | int | None) -> AnyItem:
    return item.model_copy(update={name: label for name, label in labels.items() if label is not None})


def _scores(verdict: Verdict, items: Sequence[AnyItem], given: Mapping[Place, str]) -> Mapping[str, Number]:
    match verdict.protocol:
        case "atomic":
            fallback = given.get(("fallback", None, None))
            return atomic_scores([i for i in items if isinstance(i, Atom)], None if fallback is None else int(fallback))
        case "grounded":
            return grounded_scores([i for i in items if isinstance(i, Check)])
        case "scorecard":
            return scorecard_scores(
                items, empty_answer="empty_answer" in verdict.flags, asked="no_question" not in verdict.flags
            )
        case "dialogue":
            return dialogue_scores([i for i in items if isinstance(i, Criterion)])
        case _:
            return {}
