"""Reports as people and programs read them: terminal, Markdown, JSON."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token
from rich.cells import cell_len
from rich.console import Console

from report_fixtures import HOSTILE, atomic, rag, some_of, term
from steelyard.errors import InputError
from steelyard.records import Language
from steelyard.reports import Report, ReportBuilder, terminal
from steelyard.reports import json as json_report
from steelyard.reports import markdown as markdown_report
from steelyard.reports.blocks import clean, interval, number, one_line, score
from steelyard.text.wording import LANGUAGES, band_description, say

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval", "pairwise")
BIDI = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c"


def report_of(protocol: str) -> Report:
    builder = ReportBuilder(protocol)
    for verdict, sample in some_of(protocol):
        builder.add(verdict, sample)
    builder.add_bad_row(InputError("is a list | not text", file="answers.jsonl", line=17, field="answer"))
    return builder.build({"version": "0.1.0", "limits": {"rpm": 60}})


def hostile_report() -> Report:
    builder = ReportBuilder("atomic", "en")
    for n in range(3):
        verdict = atomic(f"{HOSTILE}{n}", ["correct", "wrong"], text=HOSTILE, judge=HOSTILE, flags=(HOSTILE,))
        builder.add(verdict, rag(verdict.id, HOSTILE, tags=(HOSTILE,)))
    builder.add_bad_row(InputError(HOSTILE, file=HOSTILE, line=1, field=HOSTILE))
    return builder.build({HOSTILE: HOSTILE})


def printed(report: Report, language: Language | None = None, width: int = 80, **options: bool) -> str:
    console = Console(file=io.StringIO(), width=width, **options)  # type: ignore[arg-type]
    console.print(terminal.render(report, language))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def tokens(text: str) -> list[Token]:
    found: list[Token] = []
    for token in MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(text):
        found += [token, *(token.children or [])]
    return found


# --- the terminal ----------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_fits_eighty_columns(protocol: str, language: Language) -> None:
    """No line is wider than 80 columns, counting Chinese characters as two."""
    text = printed(report_of(protocol), language)
    assert max(map(cell_len, text.splitlines())) <= 80
    assert term(language, f"protocol.{protocol}") in text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_every_number_comes_with_its_company(protocol: str) -> None:
    """Each score's row shows value, interval, n, not applicable and unjudged, none of them cut."""
    report = report_of(protocol)
    rows = [line.split() for line in printed(report, "en").splitlines()]
    for estimate in report.scores.values():
        expected = [
            number(estimate.value, report.scale),
            interval(estimate.interval, report.scale),
            str(estimate.n),
            str(estimate.n_null),
            str(estimate.n_unjudged),
        ]
        assert any(row[-5:] == expected for row in rows), expected


def test_numbers_survive_a_narrow_terminal() -> None:
    """At 40 columns rows wrap, but no digit is replaced by an ellipsis."""
    text = printed(report_of("grounded"), "en", width=40)
    assert "…" not in text.split("Flags")[0]


def test_plain_when_piped() -> None:
    """Without a terminal there are no escape sequences, and with one the words are the same."""
    report = report_of("atomic")
    piped, coloured = printed(report), printed(report, force_terminal=True)
    assert "\x1b" not in piped
    assert "\x1b[1m" in coloured
    assert re.sub(r"\x1b\[[\d;]*m", "", coloured) == piped


def test_hostile_text_in_the_terminal() -> None:
    """Judged text cannot colour, move the cursor, ring the bell or turn the reading direction."""
    text = printed(hostile_report(), force_terminal=True)
    assert set(re.findall(r"\x1b.", text)) == {"\x1b["}
    assert all(re.fullmatch(r"[\d;]*m", rest) for rest in re.findall(r"\x1b\[([^A-Za-z]*[A-Za-z])", text))
    assert "\x1b[31m" not in text
    assert not set("\x07\x9b\r\u200b" + BIDI) & set(text)
    assert "[red]" in text


def test_null_is_a_dash() -> None:
    """What does not apply is shown as –, and a note says what that means."""
    builder = ReportBuilder("atomic", "en")
    builder.add(atomic("a", ["exempt"]))
    text = printed(builder.build())
    assert re.search(r"Accuracy +– +– +0 +1 +0", text)
    assert say("en", "report.note_null")[:40] in text


def test_an_empty_run_says_so() -> None:
    """A report of nothing is a sentence, not a table of zeros."""
    for language in LANGUAGES:
        text = printed(ReportBuilder("dialogue").build(), language)
        assert say(language, "report.nothing") in text
        assert "%" not in text


@pytest.mark.parametrize("language", LANGUAGES)
def test_each_score_is_explained(language: Language) -> None:
    """One line per score says what it means, in every language."""
    for protocol in PROTOCOLS:
        text = re.sub(r"\s+", "", printed(report_of(protocol), language))
        for name in report_of(protocol).scores:
            assert re.sub(r"\s+", "", term(language, f"explain.{protocol}.{name}")) in text


def test_the_band_of_the_mean_is_described() -> None:
    """The scorecard's mean stands beside the description of the band it falls into."""
    report = report_of("scorecard")
    mean = report.scores["completeness"].value
    assert mean is not None
    described = f"Completeness {mean:.1f}: {band_description('completeness', int(mean // 10), 'en')}"
    assert described in " ".join(printed(report, "en").split())


# --- numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0.0%"), (1, "100.0%"), (5 / 6, "83.3%"), (0.99999, "99.9%"), (0.00001, "0.1%")],
)
def test_ratios_are_not_rounded_to_certainty(value: float | None, shown: str) -> None:
    """Only exactly all reads 100 % and only exactly none reads 0 %."""
    assert number(value, "ratio") == shown


def test_points_and_other_numbers() -> None:
    """Means of points have a decimal, a sample's points have none, unknown scales are left alone."""
    assert (number(73.44, "points"), score(73, "points"), score(None, "points")) == ("73.4", "73", "–")
    assert (number(12345.6, "number"), interval((1.5, 2.5), "number")) == ("1.235e+04", "1.5 … 2.5")
    assert (interval((0.7, 0.9), "ratio"), interval(None, "ratio")) == ("70.0–90.0%", "–")


@given(st.text())
def test_clean_text_has_nothing_invisible(text: str) -> None:
    """Whatever comes in, no control, bidirectional or surrogate character comes out, and it is stable."""
    shown = clean(text)
    assert not set(shown) & (set(map(chr, range(32))) - {"\n"} | set(map(chr, range(127, 160))) | set(BIDI))
    assert clean(shown) == shown
    shown.encode("utf-8")


def test_lone_surrogates_can_be_printed() -> None:
    """Half a character, as broken JSON can hold it, becomes the replacement character."""
    assert clean("a\ud800b") == "a\ufffdb"


@given(st.text(), st.integers(2, 50))
def test_one_line_is_one_line(text: str, longest: int) -> None:
    """A table cell has no line break and no more than the given length."""
    shown = one_line(text, longest)
    assert len(shown) <= longest
    assert len(shown.splitlines()) <= 1


# --- Markdown --------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_markdown_tables_are_valid(protocol: str, language: Language) -> None:
    """Every table is read as a table by a GitHub Markdown parser, each row with all its cells."""
    text = markdown_report.render(report_of(protocol), language)
    heads = [line for line in text.splitlines() if re.fullmatch(r"\|( -{3}:? \|)+", line)]
    found = tokens(text)
    assert sum(token.type == "table_open" for token in found) == len(heads) >= 4
    for block in text.split("\n\n"):
        rows = block.splitlines()
        if rows and rows[0].startswith("|"):
            assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1


def test_hostile_text_in_markdown() -> None:
    """Judged text adds no tag, link, image, emphasis, code, heading or list to the document."""
    text = markdown_report.render(hostile_report())
    plain = markdown_report.render(report_of("atomic"), "en")
    found = tokens(text)
    assert not {"image", "link_open", "code_inline", "fence", "html_block", "em_open", "strong_open"} & {
        token.type for token in found
    }
    assert {token.content for token in found if token.type == "html_inline"} <= {"<br>"}
    headings = [line for line in text.splitlines() if line.startswith("#")]
    assert set(headings) <= {line for line in plain.splitlines() if line.startswith("#")}
    assert "\x1b" not in text
    assert not set(BIDI) & set(text)
    assert "@" not in text


@given(st.text(alphabet=st.sampled_from("ab1 .)-+=#>*_`[]()!|<&\\\n~$@:/w首、")))
def test_escaped_text_is_shown_as_it_is(text: str) -> None:
    """Through escape and a Markdown parser, text comes back the same, as one paragraph."""
    escaped = markdown_report.escape(text)
    if not escaped:
        return
    parsed = MarkdownIt("gfm-like", {"html": True, "linkify": False}).parse(escaped)
    assert [token.type for token in parsed] == ["paragraph_open", "inline", "paragraph_close"]
    shown = "".join("\n" if child.type == "html_inline" else child.content for child in parsed[1].children or [])
    lines = [line.strip() for line in text.strip().split("\n")]
    assert shown == "\n".join(lines)


def test_markdown_lists_what_the_terminal_shortens() -> None:
    """The document has all ten bands, the scores by flag and the manifest."""
    report = report_of("atomic")
    text = markdown_report.render(report, "en")
    assert "How this run came about" in text
    assert "| version | 0.1.0 |" in text
    assert text.count("\n## Flags\n") == text.count("\n## By flag\n") == 1
    bands = markdown_report.render(report_of("scorecard"), "en")
    for band in range(10):
        assert markdown_report.escape(band_description("faithfulness", band, "en")) in bands


# --- JSON ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_json_is_the_report(protocol: str) -> None:
    """The JSON form reads back as the same value, and null stays null."""
    report = report_of(protocol)
    assert Report.model_validate_json(json_report.render(report)) == report


def test_json_keys_are_stable() -> None:
    """Scripts rely on these names, whatever the protocol."""
    for protocol in PROTOCOLS:
        data = json.loads(json_report.render(report_of(protocol), "en"))
        assert list(data) == [
            "protocol",
            "language",
            "scale",
            "judges",
            "agreement",
            "n",
            "statuses",
            "scores",
            "distributions",
            "labels",
            "atoms",
            "checks",
            "outcomes",
            "bands",
            "dialogue",
            "ranking",
            "tags",
            "flags",
            "unjudged",
            "within_tolerance",
            "votes",
            "routing",
            "worst",
            "n_bad_rows",
            "bad_rows",
            "usage",
            "spending",
            "run",
            "failure",
            "manifest",
        ]
        assert data["language"] == "en"
        for estimate in data["scores"].values():
            assert list(estimate) == ["value", "interval", "n", "n_null", "n_unjudged", "clusters"]


def test_reports_do_not_load_rich() -> None:
    """Building, JSON, Markdown and one sample as Markdown need no terminal library."""
    code = (
        "import sys, steelyard.reports, steelyard.reports.json, steelyard.reports.markdown, "
        "steelyard.reports.sample; sys.exit('rich' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
