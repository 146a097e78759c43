"""The majority of human labels: one label per item, and the scores that follow from them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from steelyard.people.calibration.matching import Rated
from steelyard.protocols import vocabulary
from steelyard.protocols.vocabulary import Number, Vocabulary, name_of, turn_of
from steelyard.records import AnyItem, Verdict

Place = tuple[str, int | None, int | None]


class Majority:
    """One label out of several people's: what was settled, else what most of them said. An even split is decided by
    whoever labelled most, so that hard items stay in; leaving them out would make judge and people look more alike than
    they are."""

    def __init__(self, rated: Iterable[Rated]) -> None:
        self._diligence = Counter(name for item in rated for name in item.people)

    def label(self, item: Rated) -> str:
        people = item.people
        if item.settled is not None:
            return item.settled
        votes = Counter(people.values())
        most = max(votes.values())
        first = max(people, key=lambda name: (votes[people[name]] == most, self._diligence[name], name))
        return people[first]

    @staticmethod
    def is_split(item: Rated) -> bool:
        votes = Counter(item.people.values()).most_common(2)
        return item.settled is None and len(votes) > 1 and votes[0][1] == votes[1][1]


def counted_metrics(verdict: Verdict) -> list[str]:
    """The scores that can be counted from people's labels."""
    vocab = vocabulary(verdict.protocol)
    return [metric.name for metric in vocab.metrics if metric.reads and vocab.rescore]


def needs_labels(verdict: Verdict, metric: str) -> bool:
    """Whether there is anything to label for this score in this sample; otherwise the score is a fact."""
    return bool(_places(verdict, metric))


def _places(verdict: Verdict, metric: str) -> list[Place]:
    """The places whose labels decide a score."""
    vocab = vocabulary(verdict.protocol)
    read = vocab.metric(metric)
    places: dict[object, Place] = {
        aspect.name: (aspect.name, None, None) for aspect in vocab.whole if aspect.name in read.reads
    }
    for item in verdict.items:
        if read.group and getattr(item, "group", "") != read.group:
            continue
        kind = vocab.kind_of(item)
        for aspect, _ in kind.labels(item):
            if aspect.name in read.reads:
                place = aspect.name, turn_of(item), item.id
                places.setdefault((aspect.name, name_of(item)) if kind.once else place, place)
    return list(places.values())


def scores_by_people(verdict: Verdict, given: Mapping[Place, str]) -> dict[str, Number]:
    """The sample's scores from people's labels; only those whose every label they gave."""
    vocab = vocabulary(verdict.protocol)
    if vocab.rescore is None:
        return {}
    given = _same_facts(verdict, given, vocab)
    metrics = [name for name in counted_metrics(verdict) if name in verdict.scores and needs_labels(verdict, name)]
    whole = [name for name in metrics if all(place in given for place in _places(verdict, name))]
    items = tuple(_labelled(item, given, vocab) for item in verdict.items)
    said = {aspect.name: given.get((aspect.name, None, None)) for aspect in vocab.whole}
    scores = {name: None if label is None else int(label) for name, label in said.items()}
    counted = vocab.rescore(verdict.model_copy(update={"items": items, "scores": {**verdict.scores, **scores}}))
    return {name: counted[name] for name in whole}


def _same_facts(verdict: Verdict, given: Mapping[Place, str], vocab: Vocabulary) -> Mapping[Place, str]:
    """The label of what stands in several groups counts in each."""
    found = dict(given)
    for kind in vocab.kinds:
        named = {item.id: name_of(item) for item in verdict.items if kind.once and item.kind == kind.name}
        for aspect in kind.aspects if named else ():
            said = {
                named[place[2]]: label
                for place, label in given.items()
                if place[0] == aspect.name and place[2] in named
            }
            found |= {(aspect.name, None, id): said[name] for id, name in named.items() if name in said}
    return found


def _labelled(item: AnyItem, given: Mapping[Place, str], vocab: Vocabulary) -> AnyItem:
    labels: dict[str, str | int] = {}
    for aspect in vocab.kind_of(item).aspects:
        if (label := given.get((aspect.name, turn_of(item), item.id))) is not None:
            labels[aspect.field] = int(label) if all(name.isdigit() for name in aspect.names) else label
    return item.model_copy(update=labels)
