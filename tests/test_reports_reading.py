"""A report is read in ten seconds: what a reader must find, where, and in their language. From the examples."""

from __future__ import annotations

import io
import json
import re
from functools import cache
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from command import DIALOGUE, EXAMPLES, RAG
from report_fixtures import atomic, rag, some_of, term
from steelyard.errors import InputError
from steelyard.evaluation import Results, evaluate
from steelyard.judges import RecordedJudge
from steelyard.records import Language, Usage, Verdict
from steelyard.reports import ReportBuilder, markdown, terminal
from steelyard.reports import json as json_form
from steelyard.reports.model import Report
from steelyard.reports.sample import render_sample, sample_markdown
from steelyard.text.wording import LANGUAGES, say, words

FILES = {"atomic": RAG, "grounded": RAG, "scorecard": RAG, "dialogue": DIALOGUE}
EVERY = [(protocol, language) for protocol in FILES for language in LANGUAGES]
every = pytest.mark.parametrize(("protocol", "language"), EVERY)
HAN = re.compile(r"[\u4e00-\u9fff]")
RULE = re.compile(r"─+")


@cache
def judged(protocol: str) -> Results:
    return evaluate(FILES[protocol], protocol, RecordedJudge(EXAMPLES / "replies.jsonl"))


def shown(report: Report, language: Language, width: int = 80) -> str:
    stream = io.StringIO()
    Console(file=stream, width=width, highlight=False).print(terminal.render(report, language))
    return stream.getvalue()


def page(protocol: str, language: Language) -> str:
    return shown(judged(protocol).report(language), language)


def document(protocol: str, language: Language) -> str:
    return markdown.render(judged(protocol).report(language), language)


def report_of(verdicts: list[Verdict], language: Language = "en", **failures: str) -> Report:
    builder = ReportBuilder(verdicts[0].protocol, language)
    for verdict in verdicts:
        builder.add(verdict, rag(verdict.id))
    for file, problem in failures.items():
        builder.add_bad_row(InputError(problem, file=file, line=1, field="answer"))
    return builder.build()


def tables(text: str) -> list[tuple[str, list[str]]]:
    """The header and the rows of every terminal table; wrapped lines count as rows."""
    lines, found = text.splitlines(), []
    for at, line in enumerate(lines):
        if RULE.fullmatch(line.strip()) and line.strip():
            rows = []
            for row in lines[at + 1 :]:
                if not row.strip():
                    break
                rows.append(row)
            found.append((lines[at - 1], rows))
    return found


# --- the first screen ----------------------------------------------------------------------------------


@every
def test_title_samples_and_scores_come_first(protocol: str, language: Language) -> None:
    """Which protocol, how many samples in which state, who judged; then every score. All in fifteen lines."""
    top = page(protocol, language).splitlines()[:15]
    assert term(language, f"protocol.{protocol}") in top[0]
    assert say(language, "report.samples") in top[1]
    assert f"{len(judged(protocol))} = {say(language, 'status.judged')}" in top[1]
    assert "recorded:replies" in top[2]
    for name in judged(protocol)[0].scores:
        assert any(line.startswith(term(language, f"metric.{name}")) for line in top), name


@every
def test_no_mean_without_its_company(protocol: str, language: Language) -> None:
    """Each table with a 95 % interval also has n, how many it does not apply to, and how many are unjudged."""
    interval = say(language, "report.interval")
    company = [interval, "n", say(language, "report.n_null"), say(language, "report.n_unjudged")]
    with_interval = [table for table in tables(page(protocol, language)) if interval in table[0]]
    assert len(with_interval) >= 2
    for header, rows in with_interval:
        assert re.search(r"\s+".join(map(re.escape, company)) + r"\s*$", header), header
        numbered = [row for row in rows if re.search(r"\d+\s+\d+\s+\d+\s*$", row)]
        assert len(numbered) >= len(judged(protocol)[0].scores) or len(numbered) == len(rows)


@every
def test_eighty_columns_and_straight_edges(protocol: str, language: Language) -> None:
    """No line is wider than the page, and no row of a table wider than its rule, Chinese counted double."""
    text = page(protocol, language)
    assert max(cell_len(line) for line in text.splitlines()) <= 80
    for rule in (line for line in text.splitlines() if RULE.fullmatch(line)):
        assert cell_len(rule) >= 30
    for header, rows in tables(text):
        assert len({cell_len(row.rstrip()) for row in rows}) >= 1
        assert all(cell_len(row.rstrip()) <= max(cell_len(header), 80) for row in rows)


@every
def test_number_columns_are_aligned(protocol: str, language: Language) -> None:
    """In the table of scores every row ends in the same column as its header."""
    header, rows = tables(page(protocol, language))[0]
    ends = {cell_len(line.rstrip()) for line in (header, *rows)}
    assert len(ends) == 1


@every
def test_no_word_is_cut(protocol: str, language: Language) -> None:
    """Names of metrics, labels and columns stand whole; only judged text is shortened."""
    text = page(protocol, language)
    for name in judged(protocol)[0].scores:
        assert term(language, f"metric.{name}") in text
    header_cells = " ".join(header for header, _ in tables(text))
    assert "…" not in header_cells


@every
def test_names_are_words_not_identifiers(protocol: str, language: Language) -> None:
    """No key of the data stands where a person expects a name; flags are codes, with their meaning beside them."""
    text = page(protocol, language)
    for identifier in ("accuracy_strict", "faithfulness_soft", "n_null", "n_unjudged", "on_topic", "key_point"):
        assert identifier not in text
    report = judged(protocol).report(language)
    for flag in report.flags:
        assert flag in text
        meaning = say(language, f"flag.{flag}")
        assert meaning[:12] in " ".join(text.split())


@pytest.mark.parametrize("protocol", FILES)
def test_chinese_reports_have_chinese_headers(protocol: str) -> None:
    """Every column but n and the scores' own abbreviations is named in Chinese; English ones have no Chinese."""
    for language in ("zh-Hans", "zh-Hant"):
        for header, _ in tables(page(protocol, language)):  # type: ignore[arg-type]
            assert HAN.search(header), header
    assert not any(HAN.search(header) for header, _ in tables(page(protocol, "en")))


# --- where to look next --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocol", "metric"), [("atomic", "accuracy"), ("grounded", "accuracy"), ("dialogue", "csr")]
)
@pytest.mark.parametrize("language", LANGUAGES)
def test_the_lowest_say_by_which_score(protocol: str, metric: str, language: Language) -> None:
    """The heading names the score that ranks them."""
    heading = say(language, "report.worst") + say(language, "report.colon") + term(language, f"metric.{metric}")
    assert heading in page(protocol, language)
    assert f"## {heading}" in document(protocol, language)


@pytest.mark.parametrize("language", LANGUAGES)
def test_in_the_scorecard_each_row_names_its_weakest(language: Language) -> None:
    """A bare 0 would not say of what."""
    _, rows = tables(page("scorecard", language))[-1]
    seat = next(row for row in rows if row.startswith("car-seat"))
    assert f"{term(language, 'metric.accuracy')} 0" in seat
    overdue = next(row for row in rows if row.startswith("library-overdue"))
    assert f"{term(language, 'metric.faithfulness')} 66" in overdue


@every
def test_the_lowest_end_the_page_and_open_the_document(protocol: str, language: Language) -> None:
    """In a terminal the end is seen first; a document is read from the top: right after the scores."""
    worst, scores = say(language, "report.worst"), say(language, "report.scores")
    below = [line for line in page(protocol, language).splitlines() if line.startswith(worst)]
    assert len(below) == 1
    headings = re.findall(r"^##+ (.*)$", document(protocol, language), re.MULTILINE)
    assert headings[0] == scores
    assert headings[1].startswith(worst)
    assert sum(heading.startswith(worst) for heading in headings) == 1


@pytest.mark.parametrize("protocol", FILES)
def test_the_worst_sample_is_named_with_its_reason(protocol: str) -> None:
    """Id, score and the item that says most, in one row."""
    low = judged(protocol).report("zh-Hans").worst[0]
    assert low.telling is not None
    text = "".join(page(protocol, "zh-Hans").split())
    assert low.id in text
    assert "".join(low.telling.text.split())[:10] in text or protocol == "grounded"
    assert low.main_score == low.scores[low.metric]


def test_a_perfect_run_lists_no_lowest() -> None:
    """Full marks everywhere: nothing to look at, and no empty table."""
    report = report_of([atomic(f"s{n}", ["correct"]) for n in range(3)])
    assert report.worst == ()
    assert say("en", "report.worst") not in shown(report, "en")


# --- null, zero and unjudged ---------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_null_is_a_dash_and_is_explained(language: Language) -> None:
    """A sample to which accuracy does not apply is no 0 % and no 100 %."""
    report = report_of([atomic("a", ["exempt"]), atomic("b", ["exempt"])], language)
    accuracy = report.scores["accuracy"]
    assert (accuracy.value, accuracy.interval, accuracy.n, accuracy.n_null) == (None, None, 0, 2)
    text = shown(report, language)
    row = next(line for line in text.splitlines() if line.startswith(term(language, "metric.accuracy")))
    assert row.split()[1:] == ["–", "–", "0", "2", "0"]
    assert say(language, "report.note_null") in " ".join(text.split())
    assert json.loads(json_form.render(report))["scores"]["accuracy"]["value"] is None


@pytest.mark.parametrize("language", LANGUAGES)
def test_unjudged_is_counted_and_its_cause_told(language: Language) -> None:
    """What got no label stands in its own column and in a table of reasons, in words."""
    report = report_of([atomic("a", ["correct", "wrong"]), atomic("b", ["unjudged", "unjudged"])], language)
    assert report.scores["accuracy"].n_unjudged == 1
    text = shown(report, language)
    assert say(language, "unjudged.timeout") in text
    assert f"{say(language, 'status.partial')} 1" in text.splitlines()[1]


@pytest.mark.parametrize("language", LANGUAGES)
def test_rows_that_could_not_be_read_are_on_the_first_lines(language: Language) -> None:
    """A reader of the top alone learns that the run is not the whole file."""
    report = report_of([atomic("a", ["correct"])], language, **{"answers.csv": "is a list"})
    top = shown(report, language).splitlines()[:4]
    assert any(say(language, "report.bad_rows") in line and line.endswith("1") for line in top)
    assert "answers.csv" in shown(report, language)


def test_one_sample_has_no_interval() -> None:
    """From a single sample nothing can be said about others."""
    report = report_of([atomic("a", ["correct", "wrong"])])
    row = next(line for line in shown(report, "en").splitlines() if line.startswith("Accuracy "))
    assert row.split()[1:4] == ["50.0%", "–", "1"]


# --- lines -------------------------------------------------------------------------------------------


@given(st.text(alphabet="ab 甲乙，。（）—1é", max_size=60), st.integers(2, 20))
def test_lines_are_whole_and_fit(text: str, width: int) -> None:
    """Nothing is lost, nothing is empty, and no line is too wide."""
    starts = [0, *terminal.breaks(text, width), len(text)]
    lines = [text[start:end] for start, end in pairwise(starts)]
    assert "".join(lines) == text
    assert all(lines) or not text
    assert all(cell_len(line.rstrip()) <= width for line in lines)


@given(st.lists(st.integers(1, 12), min_size=1, max_size=12), st.integers(6, 30))
def test_no_line_begins_with_a_comma(lengths: list[int], width: int) -> None:
    """Chinese punctuation stays with the character before it."""
    text = "，".join("甲" * length for length in lengths) + "。"
    assert all(text[start] == "甲" for start in terminal.breaks(text, width))


def test_a_chinese_sentence_fills_its_line() -> None:
    """It does not move to the next line as a whole because it holds no space."""
    text = "wrong: " + "甲" * 30
    assert terminal.breaks(text, 20) == [13, 23, 33]
    assert terminal.breaks("说完了。再说", 6) == [2, 5]
    assert terminal.breaks("one two three", 8) == [8]


# --- the scorecard's bands -----------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_mean_is_put_into_words(language: Language) -> None:
    """Each of the four means is followed by what a score of that band means."""
    report = judged("scorecard").report(language)
    text = " ".join(page("scorecard", language).split())
    for metric in ("relevance", "completeness", "accuracy", "faithfulness"):
        value = report.scores[metric].value
        assert value is not None
        description = words(language)["band"][metric][int(value // 10)]
        lead = f"{term(language, f'metric.{metric}')} {value:.1f}{say(language, 'report.colon')}"
        assert f"{lead}{description}"[:40] in text


# --- documents and data --------------------------------------------------------------------------------


@every
def test_terminal_document_and_data_agree(protocol: str, language: Language) -> None:
    """The same mean and n of each score in all three forms."""
    data = json.loads(json_form.render(judged(protocol).report(language), language))
    table = document(protocol, language)
    for name, estimate in data["scores"].items():
        metric = term(language, f"metric.{name}")
        row = next(line for line in table.splitlines() if line.startswith(f"| {metric} |"))
        line = next(line for line in page(protocol, language).splitlines() if line.startswith(f"{metric} "))
        cells = [cell.strip() for cell in row.strip("|").split("|")]
        assert line.split()[-5:] == cells[1:]
        assert cells[3] == str(estimate["n"])


def test_the_cost_is_told_or_said_to_be_unknown() -> None:
    """A price nobody knows is a dash, never 0."""
    known = report_of([atomic("a", ["correct"])])
    unknown = report_of([atomic("a", ["correct"], usage=Usage(calls=2, prompt_tokens=10, completion_tokens=1))])
    cost = say("en", "report.cost") + say("en", "report.colon")
    assert f"{cost}0.0004" in shown(known, "en")
    assert f"{cost}–" in shown(unknown, "en")


# --- one sample ----------------------------------------------------------------------------------------


def sample_page(protocol: str, language: Language, number: int = 1) -> str:
    verdict, sample = some_of(protocol)[number]
    stream = io.StringIO()
    Console(file=stream, width=80, highlight=False).print(render_sample(verdict, sample, language))
    return stream.getvalue()


@every
def test_a_sample_opens_with_its_scores(protocol: str, language: Language) -> None:
    """Id, state and scores stand before question, answer and items."""
    text = sample_page(protocol, language)
    scores = text.index(say(language, "sample.scores"))
    later = say(language, "sample.system_prompt" if protocol == "dialogue" else "sample.question")
    assert text.index(say(language, "sample.status")) < scores < text.index(f"\n{later}\n")
    assert max(cell_len(line) for line in text.splitlines()) <= 80


@every
def test_a_sample_as_a_document_says_the_same(protocol: str, language: Language) -> None:
    """Every item's text and label is in the Markdown too."""
    verdict, sample = some_of(protocol)[1]
    text = sample_markdown(verdict, sample, language)
    for item in verdict.items:
        name = term(language, f"check.{item.name}") if item.kind == "check" else item.text  # type: ignore[union-attr]
        assert name.replace("|", "\\|") in text


def test_a_reason_is_not_said_twice() -> None:
    """Where a criterion has no basis, why it is invalid is also why it cannot be decided: once is enough."""
    found = next(
        (verdict, item)
        for verdict in judged("dialogue")
        for item in verdict.items
        if item.kind == "criterion" and item.validity == "invalid" and item.reason == item.validity_reason
    )
    assert sample_markdown(found[0], None, "zh-Hans").count(found[1].reason) == 1


def test_points_are_listed_with_the_scripts_own_marks() -> None:
    """Chinese reasoning is punctuated as Chinese, English as English."""
    verdict = next(verdict for verdict in judged("scorecard") if verdict.id == "car-seat")
    assert "）；" in sample_markdown(verdict, None, "zh-Hans")
    assert "); " in sample_markdown(verdict, None, "en")
