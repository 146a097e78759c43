"""Markdown of judged answers: rendered without losing a letter, without markup of its own, with marks in place."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markupsafe import Markup

from html_page import read_page
from report_fixtures import rag
from steelyard.records import Atom, Check, Evidence, Part, Verdict
from steelyard.reports.html.richtext import LONGEST_RENDERED, plain, rendered, with_markup
from steelyard.reports.html.sample import sample_view
from steelyard.reports.html.views import SampleView
from steelyard.reports.marking import TextMark, segments

ANSWER = """## 建议

大灯**不建议**贴膜，见[手册](javascript:alert(1))。

1. 影响亮度

| 车型 | 功率 |
|---|---|
| L9 | 45 W |
| L8 | 40 W |

```js
alert("x")
```
"""
ELEMENTS = frozenset(
    "p blockquote ul ol li table thead tbody tr th td strong em s h5 h6 pre code hr br span div".split()
)


def html(text: str, *marks: TextMark) -> str:
    rich = rendered(text)
    assert rich is not None
    pieces = with_markup(segments(rich.text, marks), rich)
    return "".join(
        piece if isinstance(piece, Markup) else Markup("<mark>{}</mark>" if piece.keys else "{}").format(piece.text)
        for piece in pieces
    )


def test_blocks_and_marks() -> None:
    """Headings, lists, tables and code become elements; a mark over several of them is cut at each, and closed."""
    rich = rendered(ANSWER)
    assert rich is not None
    start, end = rich.text.index("L9"), rich.text.index("40 W") + 4
    page = read_page(html(ANSWER, TextMark("a", start, end)))
    assert [mark.text for mark in page.all("mark")] == ["L9", "45 W", "L8", "40 W"]
    assert [cell.text for cell in page.all("th")] == ["车型", "功率"]
    assert next(page.all("h5")).text == "建议"
    assert next(page.all("li")).text == "影响亮度"
    assert next(page.all("pre")).text == 'alert("x")\n'
    assert not list(page.all("a"))


@pytest.mark.parametrize(
    "hidden",
    [
        "[//]: # (a comment nobody sees)\n\n*x*",
        "[a]: https://example.com\n\n*x*",
        "| a |\n|---|\n| b | dropped |",
        ">" * 60 + " deep *x*",
        "<!-- comment --> *x*",
        "3*4*5 = 60",
    ],
)
def test_nothing_is_hidden(hidden: str) -> None:
    """What Markdown would not show, or would change, is shown: as text, or the whole answer as it was written."""
    rich = rendered(hidden)
    shown = rich.text if rich else hidden
    letters = [sign for sign in hidden if sign.isalnum()]
    assert [sign for sign in shown if sign.isalnum()] == letters
    assert rich is None or "345" not in rich.text


WRITTEN = st.lists(
    st.sampled_from(
        "* ** _ ` ``` ~~ # - + 1. > | [a](b) ![c](d) <b> &amp; \\* \n \n\n 甲 乙 word 12 |--| : ( ) [ ] !".split(" ")
    ),
    max_size=40,
).map(" ".join)


@given(WRITTEN)
def test_whatever_is_written(text: str) -> None:
    """Only the elements of this renderer, all closed in order, and every letter of the text once."""
    rich = rendered(text)
    if rich is None:
        return
    page = read_page(html(text, TextMark("k", 1, max(2, len(rich.text) // 2))))
    assert {node.tag for node in page.all()} <= ELEMENTS | {"mark", ""}
    parts = [piece for piece in with_markup(segments(rich.text, ()), rich) if not isinstance(piece, Markup)]
    assert "".join(piece.text for piece in parts) == "".join(
        sign for at, sign in enumerate(rich.text) if at not in rich.gaps
    )


@pytest.mark.parametrize(
    "attack",
    ["[" * LONGEST_RENDERED, "![" * 6000, "*a **a " * 1700, "|" + "a|" * 2000 + "\n|" + "-|" * 2000 + "\n|" * 2000],
)
def test_a_page_does_not_wait_for_a_parser(attack: str) -> None:
    """What makes parsers slow, or a table explode, is bounded: a page never takes seconds for it."""
    start = time.process_time()
    rendered(attack[:LONGEST_RENDERED])
    assert time.process_time() - start < 1
    assert rendered("*a*" + "b" * LONGEST_RENDERED) is None


def test_plain_words() -> None:
    """The beginning of an answer on one line, without the signs."""
    assert plain("## 建议\n\n大灯**不建议**贴膜") == "建议 大灯不建议贴膜"
    assert plain("a * b = 12") == "a * b = 12"


# --- in a sample -----------------------------------------------------------------------------------


def view(answer: str, *statements: str) -> SampleView:
    atoms = tuple(
        Atom(
            id=n,
            text=text,
            label="wrong",
            level=1,
            evidence=Evidence(reference=0, quote="L8 大灯为 42 W", verified=True),
        )
        for n, text in enumerate(statements, start=1)
    )
    sample = rag("s", answer=answer, references=("L8 大灯为 42 W。",))
    return sample_view(Verdict(id="s", protocol="atomic", status="judged", scores={}, items=atoms), sample, "en")


def marked(found: SampleView) -> list[str]:
    assert found.answer is not None
    return [piece.text for piece in found.answer.pieces if piece.keys]


def test_a_statement_about_a_row_is_marked_in_the_row() -> None:
    """Not in the heading of the table, although that has more of its words."""
    found = view(ANSWER, "L8 大灯功率为 40 W")
    assert found.answer is not None
    assert found.answer.raw
    assert marked(found) == ["L8", "40 W"]


def test_the_raw_text_is_the_fallback() -> None:
    """Where a statement has its place only in the raw text, that is what is shown, with its mark."""
    answer = "| 四十瓦的大灯功率 |\n|---|\n| *x* |"
    found = view(answer, "四十瓦的大灯功率")
    assert found.answer is not None
    assert not found.answer.raw
    assert marked(found) == ["四十瓦的大灯功率"]
    assert view("不是 Markdown。", "不是 Markdown").answer.raw == ()  # type: ignore[union-attr]


def test_parts_are_found_in_the_passages() -> None:
    """A sentence that came from the background is lit up where the background says it, and nowhere else."""
    parts = (
        Part(text="请检查四条轮胎的气压。", label="from_background"),
        Part(text="祝您愉快！", label="benign_extension"),
    )
    check = Check(id=1, text="背景", name="from_background", group="relevance", label=1, parts=parts)
    sample = rag(
        "s", answer="请检查四条轮胎的气压。祝您愉快！", references=("雨刮在左侧。", "应检查四条轮胎的气压，再充气。")
    )
    verdict = Verdict(id="s", protocol="grounded", status="judged", scores={}, items=(check,))
    found = sample_view(verdict, sample, "en")
    lit = [[piece.text for piece in passage.pieces if piece.keys] for passage in found.passages]
    assert lit == [[], ["应检查四条轮胎的气压"]]
    assert [part.in_source for part in found.groups[0].items[0].parts] == [True, False]
