"""A made-up protocol with odd names, three kinds of items and a metric that should be low. No module knows it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal

from steelyard.protocols import Protocol
from steelyard.protocols.common import Options, collect, confident, in_parts, marked, numbered, status_of
from steelyard.protocols.scoring import plain, ratio
from steelyard.protocols.vocabulary import Aspect, Kind, Label, Metric, Number, Words
from steelyard.records import Ask, CustomItem, Data, Numbered, RagSample, Rounds, Verdict
from steelyard.tasks import LabelledReply, ReplyData
from steelyard.text import sentences

GUSTS = ("gale", "lull")


class GaugeData(Data):
    answer: str
    pebbles: tuple[Numbered, ...]
    gusts: tuple[Numbered, ...]
    knots: tuple[Numbered, ...]


class PebbleReply(LabelledReply):
    leads: ClassVar[str] = "hue"
    aspects: ClassVar[Mapping[str, str]] = {"hue": "hue", "grain": "grain"}
    amiss: ClassVar[Mapping[str, tuple[Any, ...]]] = {"hue": ("slate",)}

    id: int
    reason: str = ""
    hue: Literal["amber", "slate"]
    grain: Literal["fine", "coarse"]


class GustReply(LabelledReply):
    id: int
    reason: str = ""
    label: Literal["calm", "rough"]


class KnotReply(LabelledReply):
    id: int
    reason: str = ""
    label: Literal["tied", "frayed", "loose"]


class GaugeReply(ReplyData):
    pebbles: list[PebbleReply]
    gusts: list[GustReply]
    knots: list[KnotReply]


def gauge(sample: RagSample, options: Options) -> Rounds:
    said = sentences(sample.answer)
    data = GaugeData(
        answer=sample.answer,
        pebbles=numbered(said),
        gusts=numbered(GUSTS),
        knots=numbered(f"knot of {text}" for text in said),
    )
    ask = Ask(task="gauge.look", language="en", data=data, reply=GaugeReply)
    found = yield from collect(in_parts(ask, options.part_size))
    items: list[CustomItem] = []
    for kind, listed, fields in (
        ("pebble", data.pebbles, ("hue", "grain")),
        ("gust", data.gusts, ("label",)),
        ("knot", data.knots, ("label",)),
    ):
        for one in listed:
            label, mark = found.label(f"{kind}s", one.id), found.mark(f"{kind}s", one.id)
            given = {name: getattr(label, name) if label and name not in mark.open else "unjudged" for name in fields}
            more = {"name": one.text, "group": "weather"} if kind == "gust" else {}
            reason = label.reason if label else found.reason(f"{kind}s", one.id)
            item = CustomItem(kind=kind, id=one.id, text=one.text, reason=reason, **given, **more)
            items.append(
                marked(
                    confident(item, label.confidence if label else None),
                    mark,
                    fields=dict(zip(fields, fields, strict=True)),
                )
            )
    verdict = Verdict(id=sample.id, protocol="gauge", status=status_of(items), scores={}, items=tuple(items))
    return verdict.model_copy(update={"scores": scores(verdict)})


def scores(verdict: Verdict) -> dict[str, Number]:
    def labels(kind: str, field: str) -> list[str]:
        found = [getattr(item, field) for item in verdict.items if item.kind == kind]
        return [label for label in found if label != "unjudged"]

    hues, grains, gusts = labels("pebble", "hue"), labels("pebble", "grain"), labels("gust", "label")
    return {
        "drift": hues.count("slate") if hues else None,
        "sheen": plain(ratio(grains.count("fine"), len(grains))),
        "fair": int("rough" not in gusts) if gusts else None,
    }


PROMPT = """---
task: gauge.look
language: {language}
version: 1
---
Label each id exactly once. Reply with JSON only.
<!-- sample -->
$$$answer$$$
$$$pebbles$$$
$$$gusts$$$
$$$knots$$$
"""

HUE = Aspect(
    "hue",
    (Label("amber", "good", Words("amber hue", "琥珀色")), Label("slate", "bad", Words("slate hue", "石板色"))),
    field="hue",
    words=Words("Pebbles: hue", "卵石：色泽"),
    one=Words("Hue of a pebble", "卵石的色泽"),
    ask=Words("Which hue has this pebble?", "这颗卵石是什么颜色？"),
)
GRAIN = Aspect(
    "grain", (Label("fine", "good"), Label("coarse", "neutral")), field="grain", confidence=None, asked=False
)
PEBBLE = Kind("pebble", (GRAIN, HUE), Words("Pebbles", "卵石"), listed_as="pebbles", place="sentence")
GUST = Kind(
    "gust",
    (Aspect("gust", (Label("calm", "good"), Label("rough", "bad")), ask=Words("Is it calm?")),),
    listed_as="gusts",
    identity="name",
    names={"gale": Words("The gale", "大风"), "lull": Words("The lull", "风停")},
)
KNOT = Kind(
    "knot",
    (Aspect("knot", (Label("tied", "good"), Label("frayed", "half"), Label("loose", "bad"))),),
    listed_as="knots",
    by_judge=True,
)
PROTOCOL = Protocol(
    name="gauge",
    title=Words("Pebble gauge", "卵石量规"),
    kind="rag",
    rounds=gauge,
    options=Options,
    kinds=(PEBBLE, GUST, KNOT),
    metrics=(
        Metric(
            "drift",
            "count",
            Words("Drift", "漂移"),
            Words("How many pebbles are slate."),
            "down",
            main=True,
            reads=("hue",),
        ),
        Metric("sheen", "ratio", Words("Sheen", "光泽"), reads=("grain",)),
        Metric("fair", "binary", reads=("gust",)),
    ),
    tasks=("gauge.look",),
    groups={"weather": Words("Weather", "天气")},
    rescore=scores,
    prompts={f"gauge.look.{language}": PROMPT.format(language=language) for language in ("zh", "en")},
)


class GaugeJudge:
    """Labels by the words of the items: what holds `bad` is slate, rough and loose."""

    def __init__(self, name: str = "gauger", slate: str = "bad") -> None:
        self.name, self._slate = name, slate

    async def answer(self, ask: Ask) -> Any:
        from steelyard.records import Reply, Usage

        data = ask.data
        assert isinstance(data, GaugeData)

        def bad(text: str) -> bool:
            return self._slate in text

        stormy = bad(data.answer)
        reply = GaugeReply(
            pebbles=[
                PebbleReply(
                    id=one.id, reason="seen", hue="slate" if bad(one.text) else "amber", grain="fine", confidence=0.8
                )
                for one in data.pebbles
            ],
            gusts=[GustReply(id=one.id, label="rough" if stormy else "calm") for one in data.gusts],
            knots=[KnotReply(id=one.id, label="loose" if bad(one.text) else "tied") for one in data.knots],
        )
        return Reply(data=reply, usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing to give back."""
