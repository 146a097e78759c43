"""Charts as SVG: well formed, to scale, told to those who do not see them."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.reports.html import charts
from steelyard.reports.html.charts import ChartPart, Series, bounds_of, nice_ticks, place, tag
from steelyard.reports.model import Bin, Estimate

HALF = Estimate(value=0.5, interval=(0.25, 0.75), n=8)
NOTHING = Estimate()
BINS = tuple(Bin(low=n / 10, high=(n + 1) / 10, n=n * n) for n in range(10))
HOSTILE = "<script>alert(1)</script> \"quoted\" & 'single'"


def read(chart: str) -> ET.Element:
    """As any XML reader sees it; a chart that is not well formed fails here."""
    return ET.fromstring(str(chart))


def all_charts(title: str = "t") -> dict[str, str]:
    return {
        "bar": charts.interval_bar(HALF, (0, 1)),
        "axis": charts.bar_axis((0, 1), "ratio"),
        "beam": charts.beam(HALF, "ratio", title, "d"),
        "histogram": charts.histogram(BINS, 0.5, "ratio", title, "d", title),
        "stacked": charts.stacked([ChartPart(title, 3, "good", "✓"), ChartPart("b", 1, "bad", "✗")], title),
        "lines": charts.lines([title, "2"], [Series(title, [HALF, NOTHING])], "ratio", title, "d", title),
        "share": charts.share_bar(0.5),
    }


@pytest.mark.parametrize("name", all_charts())
def test_well_formed_without_inline_style(name: str) -> None:
    """Every chart is XML, and a strict policy finds no style, script or handler in it."""
    for element in read(all_charts()[name]).iter():
        assert element.tag not in ("style", "script", "foreignObject")
        assert not [key for key in element.attrib if key == "style" or key.startswith("on")]


@pytest.mark.parametrize("name", ["beam", "histogram", "stacked", "lines"])
def test_pictures_have_a_text(name: str) -> None:
    """What says something by itself is an image with a name, a title and a description."""
    root = read(all_charts("Accuracy")[name])
    assert root.get("role") == "img"
    assert (root.get("aria-label") or "").startswith("Accuracy")
    assert root.findtext("title") == "Accuracy"
    assert root.findtext("desc")


@pytest.mark.parametrize("name", ["bar", "axis", "share"])
def test_bars_in_tables_are_decoration(name: str) -> None:
    """The numbers stand in the same row, so the small bars are kept from screen readers."""
    assert read(all_charts()[name]).get("aria-hidden") == "true"


@pytest.mark.parametrize("name", all_charts())
def test_names_from_outside_stay_text(name: str) -> None:
    """A hostile name of a label or turn adds no element and no attribute."""
    tags = [e.tag for e in read(all_charts("x")[name]).iter()]
    assert [e.tag for e in read(all_charts(HOSTILE)[name]).iter()] == tags


def test_interval_and_value_are_to_scale() -> None:
    """The band runs from a quarter to three quarters and the stroke stands in the middle."""
    root = read(charts.interval_bar(HALF, (0, 1)))
    band = root.find("rect[@class='interval']")
    stroke = root.find("line[@class='value']")
    assert band is not None
    assert stroke is not None
    assert (band.get("x"), band.get("width"), stroke.get("x1")) == ("25%", "50%", "50%")


def test_nothing_measured_draws_no_value() -> None:
    """Where there is no value there is a track without a mark: never one at zero."""
    for chart in (charts.interval_bar(NOTHING, (0, 1)), charts.beam(NOTHING, "ratio", "t", "d")):
        classes = {element.get("class") for element in read(chart).iter()}
        assert not classes & {"value", "interval", "weight", "dot"}


def test_histogram_heights_follow_the_counts() -> None:
    """A column is as high as its count says; an empty step has none; each count is written."""
    root = read(charts.histogram(BINS, None, "ratio", "t", "d"))
    heights = [float(rect.get("height") or 0) for rect in root.iter("rect")]
    assert len(heights) == 9
    assert [round(height / heights[0]) for height in heights] == [n * n for n in range(1, 10)]
    assert [text.text for text in root.iter("text") if text.get("class") == "count"] == [
        str(n * n) for n in range(1, 10)
    ]


def test_shares_fill_the_bar() -> None:
    """The shares of a whole follow each other without gap or overlap and make a hundred percent."""
    parts = [ChartPart("a", 1, "good"), ChartPart("b", 0, "bad"), ChartPart("c", 2, "open"), ChartPart("d", 4, "half")]
    rects = list(read(charts.stacked(parts, "t")).iter("rect"))
    starts = [float((rect.get("x") or "").rstrip("%")) for rect in rects]
    widths = [float((rect.get("width") or "").rstrip("%")) for rect in rects]
    assert len(rects) == 3
    assert sum(widths) == pytest.approx(100, abs=0.05)
    assert starts[1:] == pytest.approx([sum(widths[:n]) for n in (1, 2)], abs=0.02)


def test_an_empty_whole_is_an_empty_bar() -> None:
    """No items at all is drawn as nothing instead of failing."""
    assert not list(read(charts.stacked([ChartPart("a", 0, "good")], "t")).iter("rect"))
    assert not list(read(charts.share_bar(0.0)).iter("rect"))


def test_a_gap_in_a_line_stays_a_gap() -> None:
    """A turn that nobody judged has no marker."""
    root = read(charts.lines(["1", "2", "3"], [Series("a", [HALF, NOTHING, HALF])], "ratio", "t", "d"))
    assert len([e for e in root.iter() if (e.get("class") or "").startswith("marker")]) == 2


def test_series_differ_by_more_than_colour() -> None:
    """The second series has square markers."""
    root = read(charts.lines(["1"], [Series("a", [HALF]), Series("b", [HALF])], "ratio", "t", "d"))
    assert len(list(root.iter("circle"))) == 1
    assert len([e for e in root.iter("rect") if e.get("class") == "marker square"]) == 1


@pytest.mark.parametrize("turns", [1, 2, 40, 101])
def test_many_turns_do_not_crowd_the_axis(turns: int) -> None:
    """At most fifteen turns are named, however many there are, and the chart is no wider than a page."""
    names = [str(n) for n in range(1, turns + 1)]
    root = read(charts.lines(names, [Series("a", [HALF] * turns)], "ratio", "t", "d"))
    named = [text.text for text in root.iter("text") if text.text in names]
    assert 1 <= len(named) <= 16
    assert int(root.get("width") or 0) <= 720


@given(st.integers(0, 10**7))
def test_ticks_are_few_whole_and_reach_the_top(most: int) -> None:
    """An axis of counts starts at 0, has two to six ticks at equal steps, and covers the largest count."""
    ticks = nice_ticks(most)
    steps = {b - a for a, b in pairwise(ticks)}
    assert ticks[0] == 0
    assert ticks[-1] >= most
    assert 2 <= len(ticks) <= 6
    assert len(steps) == 1
    assert re.fullmatch(r"[125]0*", str(steps.pop()))


@given(st.floats(allow_nan=False, allow_infinity=False, width=32), st.tuples(st.floats(-100, 0), st.floats(1, 100)))
def test_nothing_is_drawn_off_the_axis(value: float, bounds: tuple[float, float]) -> None:
    """Whatever the value, its place is between the ends."""
    assert 10 <= place(value, bounds, 10, 90) <= 90


def test_scales_without_ends_take_them_from_the_data() -> None:
    """A protocol whose scores are just numbers gets an axis from 0 to its largest; one value is no division by zero."""
    assert bounds_of([Estimate(value=3.0, interval=(1.0, 7.0))], "number") == (0.0, 7.0)
    assert bounds_of([Estimate(value=-3.0)], "number") == (-3.0, 0.0)
    assert bounds_of([Estimate()], "number") == (0.0, 1.0)
    assert bounds_of([Estimate(value=float("nan"))], "points") == (0.0, 100.0)


def test_attributes_are_escaped() -> None:
    """A value of an attribute cannot end it."""
    assert tag("text", "<b>", x='"><script>') == '<text x="&#34;&gt;&lt;script&gt;">&lt;b&gt;</text>'
