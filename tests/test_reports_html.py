"""The HTML report: one file, the Report's numbers, every label in its place, nothing from outside that runs."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from command import RAG, RECORDED, Steelyard
from html_page import Node, read_page
from report_fixtures import HOSTILE, PASSAGE, atomic, dialogue, dialogue_sample, grounded, rag, scorecard, some_of
from steelyard.errors import InputError
from steelyard.protocols import vocabulary
from steelyard.records import Atom, DialogueSample, Evidence, Language, Sample, Turn, Verdict
from steelyard.reports import ReportBuilder, markdown, terminal
from steelyard.reports.html import Lowest, ViewLimits, render
from steelyard.reports.html.page import ReportPage
from steelyard.reports.html.sample import kept, sample_view
from steelyard.reports.model import Report, RunFacts, in_language
from steelyard.text.wording import LANGUAGES, say, words

PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "pairwise")
Pairs = list[tuple[Verdict, Sample]] | list[tuple[Verdict, Sample | None]]


def built(pairs: Pairs, protocol: str = "", language: Language | None = "en", **given: Any) -> Report:
    builder = ReportBuilder(protocol or pairs[0][0].protocol, language)
    for verdict, sample in pairs:
        builder.add(verdict, sample)
    return builder.build(**given)


def page_of(pairs: Pairs, protocol: str = "", language: Language | None = "en", most: int = 50, **given: Any) -> Node:
    return read_page(text_of(pairs, protocol, language, most, **given))


def text_of(pairs: Pairs, protocol: str = "", language: Language | None = "en", most: int = 50, **given: Any) -> str:
    lowest = Lowest(most)
    for verdict, sample in pairs:
        lowest.add(verdict, sample)
    limits = given.pop("limits", None)
    return render(built(pairs, protocol, language, **given), lowest.chosen(), language, limits)


def printed(report: Report) -> str:
    console = Console(width=100, file=StringIO())
    console.print(terminal.render(report))
    assert isinstance(console.file, StringIO)
    return console.file.getvalue()


def with_(verdict: Verdict, **fields: Any) -> Verdict:
    return verdict.model_copy(update=fields)


def assert_sound(page: Node) -> None:
    """What holds for every page: one script, addresses that lead somewhere, nothing loaded."""
    ids = [node["id"] for node in page.all() if node.get("id")]
    assert len(ids) == len(set(ids))
    assert len(list(page.all("script"))) == len(list(page.all("style"))) == 1
    for node in page.all():
        assert node.get("href").removeprefix("#") in ("", *ids)
        assert not {"src", "style", "srcset", "action"} & set(node.attributes)
        assert not [name for name in node.attributes if name.startswith("on")]


# --- the file --------------------------------------------------------------------------------------


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_sound_in_every_protocol_and_language(protocol: str, language: Language) -> None:
    """Elements balance, addresses resolve, nothing is loaded, and the page says its language."""
    page = page_of(some_of(protocol), language=language)
    assert_sound(page)
    (root,) = page.all("html")
    assert root["lang"] == language
    assert say(language, "html.weak_spots") in page.text
    assert "{" not in "".join(node.text for node in page.all() if node.tag in ("p", "h2", "h3", "th", "li", "summary"))


def test_the_policy_allows_exactly_this_script_and_style() -> None:
    """The hashes in the policy are those of the script and the style sheet as they stand in the file."""
    page = page_of(some_of("atomic"))
    (policy,) = [m["content"] for m in page.all("meta") if m.get("http-equiv") == "Content-Security-Policy"]
    assert policy.startswith("default-src 'none'")
    assert "unsafe" not in policy
    for tag in ("script", "style"):
        (node,) = page.all(tag)
        digest = base64.b64encode(hashlib.sha256(node.text.encode()).digest()).decode()
        assert f"{tag}-src 'sha256-{digest}'" in policy


def test_prints_and_darkens() -> None:
    """The style sheet knows paper, dark rooms, narrow screens, and loads nothing."""
    (style,) = page_of(some_of("atomic")).all("style")
    for wanted in ("@media print", "prefers-color-scheme: dark", "max-width: 36rem", "tabular-nums"):
        assert wanted in style.text
    assert "url(" not in style.text
    assert "@import" not in style.text


# --- the numbers -----------------------------------------------------------------------------------


def test_scores_with_interval_n_and_unjudged() -> None:
    """The overview shows what the Report says, and the JSON form holds the same Report."""
    pairs = some_of("atomic")
    report = built(pairs)
    rows = [[cell.text for cell in row.all()] for row in page_of(pairs).by_id("scores").all("tr")]
    accuracy = report.scores["accuracy"]
    assert accuracy.interval
    (row,) = [row for row in rows if row[0].startswith("Accuracy")]
    text = " ".join(row)
    for wanted in (f"{accuracy.value:.1%}", str(accuracy.n), str(accuracy.n_unjudged)):
        assert wanted in text
    assert json.loads(report.model_dump_json())["distributions"]["accuracy"]


@pytest.mark.parametrize(
    ("protocol", "anchors"),
    [
        ("atomic", {"levels", "tags", "labels", "flags", "by-flag"}),
        ("grounded", {"checks", "tags"}),
        ("scorecard", {"bands", "tags", "labels"}),
        ("dialogue", {"types", "turns", "rates", "labels"}),
    ],
)
def test_breakdowns(protocol: str, anchors: set[str]) -> None:
    """Each protocol shows its own breakdowns."""
    ids = {node.get("id") for node in page_of(some_of(protocol)).all()}
    assert anchors <= ids


def test_distributions_count_every_scored_sample() -> None:
    """The steps of each distribution add up to n; ends and round tenths fall into their own step."""
    scores = [0.0, 0.05, 0.1, 0.3, 0.7, 0.8999, 0.9, 1.0]
    pairs: Pairs = [
        (atomic(f"s{n}", scores={"accuracy": value, "fallback": n % 2}), None) for n, value in enumerate(scores)
    ]
    report = built(pairs)
    assert [b.n for b in report.distributions["accuracy"]] == [2, 1, 0, 1, 0, 0, 0, 1, 1, 2]
    assert [b.n for b in report.distributions["fallback"]] == [4, 4]
    assert (report.distributions["accuracy"][-1].low, report.distributions["accuracy"][-1].high) == (0.9, 1.0)


@given(st.lists(st.floats(0, 1), max_size=30))
def test_no_sample_falls_between_steps(values: list[float]) -> None:
    """Whatever the scores, each lies in exactly one step."""
    report = built([(atomic(f"s{n}", scores={"accuracy": v}), None) for n, v in enumerate(values)], "atomic")
    assert sum(b.n for b in report.distributions.get("accuracy", ())) == len(values)


def test_scores_without_a_scale_have_no_distribution() -> None:
    """A protocol of one's own may score in any unit; the page is there all the same."""
    verdicts: Pairs = [
        (with_(atomic(f"s{n}"), protocol="mine", scores={"time.taken": n * 7.5}), None) for n in range(3)
    ]
    report = built(verdicts, "mine")
    assert report.distributions == {}
    page = page_of(verdicts, "mine")
    assert_sound(page)
    assert "time.taken" in page.by_id("scores").text


def test_the_weakest_groups_are_named_first() -> None:
    """Where it fails: the wrong label's share, the weakest level, the weakest tag that is large enough."""
    pairs: Pairs = [(atomic(f"a{n}", ["correct", "wrong"]), rag(f"a{n}", f"q{n}", tags=("weak",))) for n in range(6)]
    pairs += [(atomic(f"b{n}"), rag(f"b{n}", f"r{n}", tags=("strong",))) for n in range(6)]
    pairs += [(atomic("c", ["wrong"]), rag("c", "s", tags=("tiny",)))]
    (weak,) = page_of(pairs).all("div", "weak")
    assert "wrong" in weak.text
    assert say("en", "html.share_failing") in weak.text
    assert "weak" in [node.text for node in weak.all("span", "spot")]
    assert "tiny" not in [node.text for node in weak.all("span", "spot")]


def test_where_it_fails_shows_one_quantity() -> None:
    """Labels and groups alike show the share that fails, of what could be decided, the largest first: a group that
    gets 1 of 4 right fails by 75 %, exempt and undetermined statements count for nothing."""
    pairs: Pairs = [
        (atomic(f"a{n}", ["correct", "wrong", "wrong", "wrong", "exempt"]), rag(f"a{n}", f"q{n}", tags=("weak",)))
        for n in range(6)
    ]
    pairs += [(atomic(f"b{n}", ["correct", "undetermined"]), rag(f"b{n}", f"r{n}", tags=("strong",))) for n in range(6)]
    (weak,) = page_of(pairs).all("div", "weak")
    spots = [node.text for node in weak.all("span", "spot")]
    values = [node.text.split("%")[0] for node in weak.all("span", "value")]
    assert dict(zip(spots, values, strict=True))["weak"] == "75.0"
    assert dict(zip(spots, values, strict=True))["wrong"] == "60.0"
    assert values == sorted(values, key=float, reverse=True)


@pytest.mark.parametrize(("protocol", "top"), [("scorecard", 100), ("grounded", 1)])
def test_the_share_that_fails_on_every_scale(protocol: str, top: float) -> None:
    """Points and yes-or-no scores are told as the same quantity: what is missing to full marks, as a share."""
    page = ReportPage(built(some_of(protocol), protocol))
    shares = {spot.name: spot.share for spot in page.weak_spots()}
    assert shares
    assert all(0 < share <= 1 for share in shares.values())
    lowest = min(
        (estimate.value, estimate.n)
        for group in page.report.tags.values()
        for name, estimate in group.scores.items()
        if name in page.words.main and estimate.value is not None
    )[0]
    assert any(share == pytest.approx(1 - lowest / top) for share in shares.values())


def test_nothing_measured_is_no_reassurance() -> None:
    """Where no score could be had, the page does not say that nothing failed."""
    (weak,) = page_of([(atomic(f"s{n}", ["exempt"]), rag(f"s{n}")) for n in range(3)]).all("div", "weak")
    assert say("en", "html.no_weak_spots") not in weak.text
    assert say("en", "html.not_measured") in weak.text


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_run_that_failed_says_so_first(language: Language) -> None:
    """The reason, on how many samples, and the remedy stand before everything else; no score is shown, and nothing
    reassures."""
    pairs: Pairs = [(atomic(f"s{n}", ["unjudged"], status="failed"), rag(f"s{n}")) for n in range(3)]
    report = in_language(built(pairs), language)
    page = read_page(render(report))
    assert_sound(page)
    (told,) = page.all("section", "failure")
    for sentence in (say(language, "failure.title"), say(language, "unjudged.timeout")):
        assert sentence in told.text
    assert say(language, "failure.remedy.timeout") in told.text
    assert "3" in told.text
    assert not list(page.all("div", "headlines"))
    assert say(language, "html.no_weak_spots") not in page.text
    for text in (markdown.render(report), printed(report)):
        lines = [line for line in text.splitlines() if line.strip()]
        assert say(language, "failure.title") in lines[1]
    assert report.failure
    assert (report.failure.reason, report.failure.n, report.failure.of) == ("timeout", 3, 3)
    assert report.failure.remedy == say(language, "failure.remedy.timeout")


def test_every_reason_has_a_remedy() -> None:
    """Whatever keeps a run from being judged, its code has words on what to do, in each language."""
    for language in LANGUAGES:
        table = words(language)
        missing = set(table["unjudged"]) - set(table["failure"]["remedy"]) - {"split", "not_confirmed", "cannot_tell"}
        assert not missing


def test_full_marks_have_no_weak_spot() -> None:
    """A flawless run is not made to look bad."""
    (weak,) = page_of([(atomic(f"s{n}"), rag(f"s{n}")) for n in range(3)]).all("div", "weak")
    assert say("en", "html.no_weak_spots") in weak.text


def test_cost_time_and_manifest() -> None:
    """What the run took and how it came about is at the end."""
    run = RunFacts.of("r-1", "complete", "2026-03-02T10:00:00+00:00", "2026-03-02T11:02:05+00:00")
    page = page_of(
        some_of("atomic"), run=run, manifest={"options": {"strict": True}, "python": "3.11", "stopped": None}
    )
    about = page.by_id("about").text
    for wanted in ("1 h 2 min", "2026-03-02 10:00:00 UTC", "strict", "0.0020", "6,000"):
        assert wanted in about
    assert "stopped" not in about
    assert RunFacts.of("r", "running", "2026-03-02T10:00:00+00:00", None).seconds is None


def test_unreadable_rows_and_reasons_are_listed() -> None:
    """Rows that could not be read and reasons for missing labels are shown, hostile or not."""
    builder = ReportBuilder("atomic", "en")
    builder.add(atomic("s", ["unjudged"]))
    builder.add_bad_row(InputError(HOSTILE, file="<b>.jsonl", line=3, field="answer"))
    page = read_page(render(builder.build()))
    assert_sound(page)
    assert "<b>.jsonl" in page.by_id("about").text
    assert say("en", "unjudged.timeout") in page.by_id("about").text


def test_nothing_judged() -> None:
    """An empty run says so."""
    page = page_of([], "grounded")
    assert_sound(page)
    assert say("en", "report.nothing") in page.text


# --- samples ---------------------------------------------------------------------------------------


def test_lowest_first_and_bounded() -> None:
    """The file holds the lowest samples in order: low scores, then unjudged ones, then full marks."""
    given = {"full": ["correct"], "low": ["wrong"], "mid": ["correct", "wrong"], "open": ["unjudged"], "na": ["exempt"]}
    lowest = Lowest(4)
    for id, labels in given.items():
        lowest.add(atomic(id, labels))
    assert [chosen.verdict.id for chosen in lowest.chosen()] == ["low", "mid", "open", "full"]
    none = Lowest(0)
    none.add(atomic())
    assert none.chosen() == ()
    assert none.n == 1


@given(st.permutations([["wrong"], ["correct", "wrong"], ["correct"], ["exempt"], ["unjudged"], ["wrong", "wrong"]]))
@settings(max_examples=30)
def test_the_order_of_input_does_not_matter(order: list[list[str]]) -> None:
    """Whichever way the verdicts stream by, the same ones are kept in the same order."""
    lowest, reference = Lowest(3), Lowest(3)
    for labels in order:
        lowest.add(atomic("-".join(labels), labels))
    for labels in sorted(order):
        reference.add(atomic("-".join(labels), labels))
    assert [c.verdict.id for c in lowest.chosen()] == [c.verdict.id for c in reference.chosen()]


def first(page: Node) -> Node:
    return page.by_id("s1")


def test_answer_and_evidence_point_to_each_other() -> None:
    """A wrong statement is marked in the answer with its sign, its quote in the passage, and links lead both ways."""
    sample = rag(answer="贴膜后亮度会上升。大灯很重要。")
    atom = Atom(
        id=7,
        text="给大灯贴膜后亮度会上升",
        label="wrong",
        level=1,
        evidence=Evidence(reference=0, quote="照明亮度下降", verified=True),
    )
    sample_page = first(page_of([(with_(atomic(), items=(atom,)), sample)]))
    (answer,) = sample_page.all("section", "answer")
    (mark,) = answer.all("span", "m", "bad")
    (quote,) = [node for node in sample_page.all("span", "m") if node.text == "照明亮度下降"]
    (item,) = sample_page.all("li", "item", "bad")
    assert mark.text == "贴膜后亮度会上升。"
    assert mark["data-k"] == quote["data-k"] == item["data-k"]
    assert {badge.text for badge in sample_page.all("a", "n")} == {"✗7"}
    assert {badge["href"] for badge in sample_page.all("a", "n")} == {f"#{item['id']}"}
    assert {link["href"] for link in item.all("a", "jump")} == {
        f"#{badge['id']}" for badge in sample_page.all("a", "n")
    }
    (text,) = answer.all("div", "text")
    assert text.text.replace("✗7", "") == sample.answer


def test_grounded_marks_the_sentences_behind_its_first_check() -> None:
    """All eight checks are listed by group; sentences outside the background are marked in the answer."""
    verdict = grounded(failed=[1])
    sample_page = first(page_of([(verdict, rag())]))
    groups = list(sample_page.all("section", "group"))
    assert [len([i for i in group.all("li", "item") if "-c" in i["id"]]) for group in groups] == [5, 3]
    (answer,) = sample_page.all("section", "answer")
    assert [mark.text for mark in answer.all("span", "m")] == ["不建议给大灯贴膜。", "大灯很重要。"]
    assert "不建议贴膜。" in sample_page.text


def test_scorecard_shows_points_depth_and_sentences() -> None:
    """Key points with hit, partial and missing and their depth; sentences coloured by what is wrong with them."""
    sample_page = first(page_of([(scorecard(), rag(answer="亮度下降。大灯很好看。"))]))
    chips = [chip.text for chip in sample_page.all("span", "chip")]
    for wanted in ("✓covered", "in depth", "◐partly covered", "✗missing", "✗off topic", "✗unsupported"):
        assert wanted in chips
    (answer,) = sample_page.all("section", "answer")
    assert [mark.text for mark in answer.all("span", "m", "bad")] == ["大灯很好看。"]


def test_an_off_topic_sentence_is_still_supported_by_its_source() -> None:
    """In the answer it is marked as off topic, beside the passage as supported."""
    verdict = scorecard()
    first_item = verdict.items[0].model_copy(update={"on_topic": "off_topic"})
    view = sample_view(with_(verdict, items=(first_item,)), rag(answer="亮度下降。"), "en")
    assert view.answer
    assert [piece.tone for piece in view.answer.pieces] == ["bad"]
    assert {piece.tone for piece in view.passages[0].pieces if piece.keys} == {"good"}


def test_dialogue_turns_with_criteria_and_validity_quotes() -> None:
    """Each turn has its texts and criteria; a criterion's basis is marked in the system prompt."""
    sample_page = first(page_of([(dialogue(turns=("sv", "u")), dialogue_sample(n=3))]))
    turns = list(sample_page.all("section", "turn"))
    assert len(turns) == 3
    assert [len(list(turn.all("li", "item"))) for turn in turns] == [2, 1, 0]
    assert say("en", "sample.no_criteria") in turns[2].text
    (prompt,) = sample_page.all("aside", "right")
    (mark,) = prompt.all("span", "m")
    assert mark.text == "开头要有歌词"
    assert {badge.text for badge in prompt.all("a", "n")} == {"✓1.1", "✗1.2"}


def test_without_the_sample_the_items_are_shown() -> None:
    """A file of result lines has no texts; items, reasons and quotes are there all the same."""
    for verdict in (atomic(labels=["wrong"]), grounded(failed=[1]), scorecard(), dialogue(turns=("v",))):
        page = page_of([(verdict, None)])
        assert_sound(page)
        assert list(first(page).all("li", "item"))


def test_every_label_has_a_sign() -> None:
    """Colour never stands alone: whatever the label, its chip carries a sign."""
    labels = ["correct", "wrong", "undetermined", "exempt", "unjudged"]
    view = sample_view(atomic(labels=labels), rag(), "en")
    (group,) = view.groups
    assert [item.chips[0].sign for item in group.items] == ["✓", "✗", "?", "○", "…"]
    assert len({item.chips[0].sign for item in group.items}) == len(labels)


def test_what_counts_against_an_answer_is_never_left_out() -> None:
    """Where there are too many items to show, right ones are left out first and the order stays."""
    verdict = atomic(labels=["correct"] * 8 + ["wrong"] * 2)
    shown = kept(list(enumerate(verdict.items)), 4, vocabulary("atomic"))
    assert [index for index, _ in shown] == [0, 1, 8, 9]
    view = sample_view(verdict, rag(), "en", limits=ViewLimits(items=4))
    assert view.groups[0].hidden == 6


def test_nothing_is_left_out_silently() -> None:
    """Passages, turns and criteria beyond the limits are counted where they would stand."""
    few = ViewLimits(items=2, passages=1)
    passages = sample_view(atomic(), rag(references=("甲", "乙", "丙")), "en", limits=few)
    assert (len(passages.passages), passages.passages_hidden) == (1, 2)
    talk = sample_view(dialogue(turns=("sss", "s", "s")), dialogue_sample(n=5), "en", limits=few)
    assert [len(turn.group.items) + turn.group.hidden for turn in talk.turns] == [3, 1]
    assert [group.hidden for group in talk.groups] == [3]


# --- hostile ---------------------------------------------------------------------------------------

ATTACKS = (
    "<script>window.hacked = 1</script>",
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "</textarea></style></title><svg/onload=alert(1)>",
    "<!-- <!--> ]]> <![CDATA[",
    "{{ 7*7 }} {% for x in y %} {# #}",
    "javascript:alert(1) [x](javascript:alert(1))",
    HOSTILE,
)


def hostile_pairs(attack: str) -> list[Pairs]:
    sample = rag(id=attack, question=attack, answer=attack, references=(attack,), tags=(attack,), model=attack)
    evidence = Evidence(reference=0, quote=attack, verified=True)
    atom = Atom(id=1, text=attack, label="wrong", level=1, reason=attack, evidence=evidence, flags=(attack,))
    verdict = with_(atomic(attack), items=(atom,), flags=(attack,), judge=attack, notes={"failure": attack})
    talk = DialogueSample(id=attack, system_prompt=attack, turns=(Turn(prompt=attack, answer=attack),))
    spoken = dialogue(attack, ("v",))
    criterion = spoken.items[0].model_copy(update={"text": f"{attack} | {attack}", "type": attack, "quote": attack})
    return [[(verdict, sample)], [(with_(spoken, items=(criterion,)), talk)]]


@pytest.mark.parametrize("attack", ATTACKS)
def test_hostile_text_is_shown_as_text(attack: str) -> None:
    """Whatever stands in ids, texts, tags, flags or reasons adds no element: the page is as with harmless text."""
    for hostile, harmless in zip(hostile_pairs(attack), hostile_pairs("harmless"), strict=True):
        page = page_of(hostile, manifest={attack: attack})
        assert_sound(page)
        plain = page_of(harmless, manifest={"harmless": "harmless"})
        allowed = {"span", "a", "p", "details", "summary", "div", "li", "ul"}  # marks depend on the text
        allowed |= {"strong", "code", "br", "h5", "ol"}  # and so does what its Markdown is rendered with
        assert {node.tag for node in page.all()} <= {node.tag for node in plain.all()} | allowed
        assert len(list(page.all("img"))) == 0
        seen = re.sub(r"\s", "", page.text)
        assert re.sub(r"[\s\x00-\x1f\x7f-\x9f\u200b\u202a-\u202e]", "", attack) in seen


@given(st.text(max_size=80))
@settings(max_examples=20, deadline=None)
def test_any_text_makes_a_sound_page(text: str) -> None:
    """No text whatsoever breaks the page, and it can always be written as UTF-8."""
    for pairs in hostile_pairs(text):
        written = text_of(pairs)
        assert_sound(read_page(written))
        written.encode()


def test_a_megabyte_stays_light() -> None:
    """An answer and passages of a megabyte each are folded and cut, and the page says how much is left out."""
    huge = "很长的一句话，没有尽头。" * 90_000
    sample = rag(answer=huge, references=(huge, huge))
    text = text_of([(atomic(labels=["wrong"] * 3), sample)])
    assert len(text.encode()) < 250_000
    page = read_page(text)
    (answer,) = first(page).all("section", "answer")
    gaps = [int(re.sub(r"\D", "", gap.text)) for gap in answer.all("span", "gap")]
    assert sum(gaps) == len(huge) - 6000
    assert [node for node in page.all("div", "text") if "data-fold" in node.attributes]


def test_lone_surrogates_can_be_written(tmp_path: Path) -> None:
    """Half of a character, as broken JSON brings it, becomes the replacement character."""
    text = text_of([(atomic("a\udc80"), rag("a\udc80", answer="坏\udc80字"))])
    (tmp_path / "page.html").write_text(text, encoding="utf-8")
    assert "坏\ufffd字" in text


# --- the command -----------------------------------------------------------------------------------


def test_the_command_writes_one_file(steelyard: Steelyard, tmp_path: Path) -> None:
    """`report --html` writes the page of a run or of result lines, in the language asked for, and prints no report."""
    assert steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "-o", "lines.jsonl", "--progress", "quiet").code == 0
    done = steelyard("report", "last", "--html", "out/report.html", "--lang", "zh-Hant", "--samples", "2")
    assert (done.code, done.out) == (0, "")
    assert "out/report.html" in done.err
    page = read_page((tmp_path / "out" / "report.html").read_text("utf-8"))
    assert_sound(page)
    assert len(list(page.all("details", "sample"))) == 2
    assert say("zh-Hant", "html.weak_spots") in page.text
    assert steelyard("report", "lines.jsonl", "--html", "lines.html").code == 0
    assert_sound(read_page((tmp_path / "lines.html").read_text("utf-8")))


def test_html_beside_another_form(steelyard: Steelyard, tmp_path: Path) -> None:
    """Asked for both, the command writes the page and the other form, and the JSON knows when the run was at work."""
    steelyard("run", RAG, "-p", "grounded", "-j", RECORDED, "--progress", "quiet")
    done = steelyard("report", "--html", "r.html", "--as", "json")
    assert (tmp_path / "r.html").exists()
    assert json.loads(done.out)["run"]["seconds"] >= 0


def test_the_input_is_not_overwritten(steelyard: Steelyard, tmp_path: Path) -> None:
    """A page is not written over the result lines it is made from."""
    steelyard("run", RAG, "-p", "atomic", "-j", RECORDED, "-o", "lines.jsonl", "--progress", "quiet")
    before = (tmp_path / "lines.jsonl").read_text("utf-8")
    assert steelyard("report", "lines.jsonl", "--html", "lines.jsonl").code == 2
    assert (tmp_path / "lines.jsonl").read_text("utf-8") == before


def test_passage_text_is_unchanged() -> None:
    """With its badges taken away, a marked passage reads exactly as it was given."""
    sample_page = first(page_of([(atomic(labels=["wrong"] * 2), rag())]))
    (right,) = sample_page.all("aside", "right")
    text = next(right.all("div", "text"))
    badges = "".join(badge.text for badge in text.all("a", "n"))
    assert text.text.replace(badges, "") == PASSAGE


def test_templates_are_loaded_only_for_pages() -> None:
    """Whoever asks for no page does not wait for the template engine."""
    code = "import sys, steelyard, steelyard.cli.results, steelyard.reports; sys.exit('jinja2' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
