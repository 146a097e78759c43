"""A protocol owns its vocabulary: nobody else names its kinds and labels, and a made-up one works everywhere."""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args

import httpx
import pytest

import gauge
import steelyard
from steelyard.judges.panel import PanelJudge
from steelyard.judges.verifying import VerifyingJudge
from steelyard.people.calibration import calibrate
from steelyard.people.label_targets import slots_of
from steelyard.people.labelling import candidates, draw, labels_in, sheet, write_sheet
from steelyard.prompts import Prompts
from steelyard.protocols import BUILT_IN, RUBRIC, get_protocol, vocabulary
from steelyard.protocols.vocabulary import UNJUDGED, Aspect, Kind, Label, Vocabulary
from steelyard.records import Ask, Reply, Usage, Verdict
from steelyard.reports import ReportBuilder
from steelyard.reports.calibration.page import blocks as calibration_blocks
from steelyard.reports.comparison import ComparisonPage
from steelyard.reports.gate import blocks as gate_blocks
from steelyard.reports.html import render as render_html
from steelyard.reports.json import render as render_json
from steelyard.reports.layout import Page as ReportPage
from steelyard.reports.markdown import render as render_markdown
from steelyard.reports.sample import sample_markdown
from steelyard.reports.terminal import renderable
from steelyard.store import Store
from steelyard.store.labels import HumanLabel, allowed, canonical
from steelyard.store.listing import SampleQuery, summary, table
from steelyard.trust.audit import audit
from steelyard.trust.comparison import Judged, compare
from steelyard.trust.comparison.labels import label_changes
from steelyard.trust.gating import gate, parse_requirement
from viewer import viewing

SOURCE = Path(steelyard.__file__).parent

# --- nobody else names them ------------------------------------------------------------------------

# Where kinds and labels may be named, and why.
OWN = {
    "protocols": "they declare them",
    "judges/embedded": "its functions answer the tasks of given protocols",
    "judges/local": "the same, with a small model",
    "judges/verifiers": "the same, with an encoder of the user's",
    "judges/check.py": "asks one task of which the answers are known",
    "engine/templates": "the same textual forms, as replies to a prompt of a user's own",
    "records.py": "the typed items that result lines and stores hold",
    "tasks.py": "the asks and replies of given protocols",
    "trust/audit/data": "texts of attacks",
    "text/clauses.py": "patterns of English words, not labels",
    "text/suspicion.py": "patterns of texts that imitate a judge's reply",
}
# Words that are labels somewhere and mean something else in these modules.
HOMONYMS = {
    "partial": ("cli/", "engine/", "reports/build.py", "text/wording/", "web/"),  # the status of a verdict
    "missing": ("judges/parsing.py", "prompts/", "cli/rubric.py"),  # what a reply lacks; a word of an example
    "undetermined": (
        "judges/panel_settings.py",
        "judges/panel.py",
        "judges/verifying.py",
    ),  # what becomes of a split vote
    # A shape of samples, which a rubric names too.
    "dialogue": (
        *("cli/importing.py", "cli/rubric.py", "engine/sets.py", "samples/"),
        *("store/listing/model.py", "trust/audit/suite.py", "web/api/about.py"),
    ),
    "invalid": ("judges/tidy.py", "judges/refusals.py", "web/errors.py"),  # a word for no; the code of an error
    "valid": ("judges/tidy.py", "judges/refusals.py"),
    "supported": ("judges/models/",),  # what an output of a network means
    "unsupported": ("judges/models/", "web/errors.py"),  # the same; the code of an error
    "check": ("cli/judges.py", "reports/gate.py", "text/wording/", "web/"),  # a command; a row of a gate; a box to tick
    "criterion": ("text/wording/", "trust/audit/"),  # where in a dialogue an attack is put
    "correct": ("samples/importers/",),  # a field of a log of OpenAI Evals
    "retrieval": ("samples/importers/",),  # a kind of span
    "pairwise": ("cli/compare.py",),  # an option
    "wrong": ("trust/audit/suite.py", "web/"),  # a side of the samples of the audit; why one could not sign in
    "atom": ("judges/tidy.py",),  # what a judge may call the text that it judges
    # A place in a sample; what one is called in the wording; a name that documents have in files; a placeholder.
    "passage": (
        "reports/",
        "samples/",
        "text/wording/",
        "trust/audit/",
        "web/labelling.py",
        "web/templates/label_parts.html",
    ),
    "absent": ("judges/chat.py", "judges/dialects/"),  # what an endpoint left out
    "used": ("store/", "text/wording/", "web/templates/account_parts.html"),  # a table of the store; when a token was
    "stated": ("reports/files.py", "reports/sample.py"),  # totals that a transcript claims; the value of a passage
    "point": ("text/", "web/static/"),  # a group of a pattern; a dot of a chart
    "not_found": ("web/errors.py",),  # the code of an error
    "found": ("judges/refusals.py", "web/templates/samples.html"),  # a word of an error; a variable
    "sentence": ("judges/tidy.py", "reports/html/", "web/"),  # the same; a place in the answer; a heading
    "part": ("cli/rubric.py", "judges/models/", "reports/html/", "reports/audit/", "web/"),  # of a file, of a page
    "answers": ("cli/rubric.py", "integrations/pytest_plugin.py"),  # the name of a file
    "preference": ("text/wording/", "web/templates/compare.html"),  # a link to runs of pairs
    "benign_extension": ("text/wording/",),  # a flag of result lines
    # The help of --protocol must not load the protocols; a test below compares it with them.
    "atomic": ("cli/common.py",),
    "scorecard": ("cli/common.py",),
}
NUMBERS = {"0", "1"}
ENGLISH = {"dialogue", "retrieval", "grounded", "pairwise"}


def names() -> set[str]:
    """Every name of a shipped protocol, kind, aspect and label."""
    found = set(BUILT_IN)
    for protocol in map(get_protocol, BUILT_IN):
        for kind in protocol.kinds:
            aspects = (*kind.aspects, *((kind.parts,) if kind.parts else ()))
            found |= {kind.name, *(aspect.name for aspect in aspects)}
            found |= {label for aspect in aspects for label in aspect.names}
    return found - NUMBERS


def in_code(text: str, wanted: set[str]) -> Iterator[str]:
    """The names that a longer text uses as names: next to a sign of code (`atom:wrong`, `label = 'wrong'`, `.wrong`).
    One that is no English word counts wherever it stands; "a wrong answer" is prose."""
    for name in sorted(name for name in wanted if name in text):
        ordinary = "_" not in name and (name not in BUILT_IN or name in ENGLISH)
        before, after = (r"[./:=#\"'`\[{|]", r"[/:=#|]\S|[\"'`\]}]|\.\w") if ordinary else ("", "")
        word = rf"(?<![A-Za-z0-9_-]){name}(?![A-Za-z0-9_-])"
        if re.search(rf"(?<={before}){word}|{word}(?={after})" if ordinary else word, text):
            yield name


def in_python(text: str, wanted: set[str]) -> Iterator[tuple[int, str]]:
    """Names in literals, whole or part of them, in f-strings and SQL, and in imports; docstrings are prose."""
    tree = ast.parse(text)
    prose = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("steelyard.protocols."):
            yield from ((node.lineno, name) for name in wanted & set(str(node.module).split(".")))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            found = [node.value] if node.value in wanted else in_code(node.value, wanted)
            yield from ((node.lineno, name) for name in found)


def in_toml(text: str, wanted: set[str]) -> Iterator[tuple[int, str]]:
    """Keys and tables. Values are prose."""
    for number, line in enumerate(text.splitlines(), 1):
        if key := re.match(r"\s*\[?\[?([\w.\"-]+)\]?\]?\s*(?:=|$)", line):
            yield from ((number, name) for name in wanted & set(re.split(r"[.\"]", key[1])))


STRING = re.compile(r"\"([^\"\n]*)\"|'([^'\n]*)'|`([^`]*)`")


def in_page(text: str, wanted: set[str]) -> Iterator[tuple[int, str]]:
    """Strings of templates and scripts: attributes such as class, keys, paths, and what is compared in expressions."""
    for number, line in enumerate(text.splitlines(), 1):
        for quoted in STRING.finditer(line):
            words = next(part for part in quoted.groups() if part is not None)
            found = {name for word in words.split() for name in (word, *in_code(word, wanted)) if name in wanted}
            yield from ((number, name) for name in sorted(found))


def in_style(text: str, wanted: set[str]) -> Iterator[tuple[int, str]]:
    for number, line in enumerate(text.splitlines(), 1):
        yield from ((number, name) for name in re.findall(r"[.#]([A-Za-z][\w-]*)", line) if name in wanted)


READERS: dict[str, Callable[[str, set[str]], Iterator[tuple[int, str]]]] = {
    ".py": in_python,
    ".toml": in_toml,
    ".html": in_page,
    ".js": in_page,
    ".css": in_style,
}


def test_no_other_module_names_a_protocol_a_kind_or_a_label() -> None:
    """Whoever wants to know reads the vocabulary: Python, templates, scripts, styles and the words of reports."""
    wanted = names()
    files = {path: str(path.relative_to(SOURCE)) for path in sorted(SOURCE.rglob("*")) if path.suffix in READERS}
    found = [
        f"{place}:{line} {name}"
        for path, place in files.items()
        if not place.startswith(tuple(OWN))
        for line, name in READERS[path.suffix](path.read_text("utf-8"), wanted)
        if not place.startswith(HOMONYMS.get(name, ("-",)))
    ]
    assert found == []


def test_help_names_every_protocol() -> None:
    """What `-p` takes stands in the help as it is in the package."""
    from steelyard.cli.common import ProtocolName, ProtocolNames

    for option in (ProtocolName, ProtocolNames):
        (told,) = (info.help for info in get_args(option)[1:])
        assert told.startswith(", ".join((*BUILT_IN, f"{RUBRIC}:FILE, or")))


def test_that_search_finds_names_in_longer_texts() -> None:
    """A comparison, key, path or class is a name; a word of prose is not."""
    wanted = {"wrong", "atomic", "key_point"}
    said = "raise E('a wrong answer: bad')\nx = f'{kind}:wrong'\ny = 'use atomic, or'\nz = \"WHERE label = 'wrong'\"\n"
    assert sorted(line for line, _ in in_python(said, wanted)) == [2, 3, 4]
    assert list(in_toml('[flag]\nkey_point = "a wrong point"\nlabel.wrong = ""', wanted)) == [
        (2, "key_point"),
        (3, "wrong"),
    ]
    assert list(in_page('<p class="chip wrong">wrong</p>\n{% if a == "wrong" %}', wanted)) == [
        (1, "wrong"),
        (2, "wrong"),
    ]
    assert list(in_style(".wrong { color: red; }", wanted)) == [(1, "wrong")]


# --- a protocol that nobody knows ------------------------------------------------------------------

ROWS = [
    {"id": "fine", "question": "How is it?", "answer": "The sea is flat. The sky is clear.", "tags": ["calm"]},
    {"id": "mixed", "question": "And today?", "answer": "The sea is flat. The bad sky is dark.", "tags": ["storm"]},
    {"id": "worst", "question": "And now?", "answer": "A bad sea. A bad sky. A bad wind.", "tags": ["storm"]},
]


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The made-up protocol and that of the docs as an installed package brings them."""
    info = tmp_path / "gauge-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gauge\nVersion: 1.0\n")
    points = "gauge = gauge:PROTOCOL\ncitations = citations_of_the_docs:PROTOCOL"
    (info / "entry_points.txt").write_text(f"[steelyard.protocols]\n{points}\n")
    (tmp_path / "citations_of_the_docs.py").write_text(protocol_of_the_docs(), "utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.delitem(sys.modules, "citations_of_the_docs", raising=False)
    vocabulary.cache_clear()
    yield
    vocabulary.cache_clear()


def protocol_of_the_docs() -> str:
    page = (Path(__file__).parent.parent / "docs" / "new-protocol.md").read_text("utf-8")
    return page.partition("```python\n")[2].partition("```")[0]


def judged(
    path: Path, judge: Any = None, rows: Any = ROWS, protocol: str = "gauge"
) -> tuple[str, list[tuple[Any, Verdict]]]:
    steelyard.evaluate(rows, protocol, judge or gauge.GaugeJudge(), store=path)
    with Store.open(path) as store:
        run = store.runs()[0].id
        return run, list(store.verdicts(run))


@pytest.fixture
def run(installed: None, tmp_path: Path) -> tuple[Path, str, list[tuple[Any, Verdict]]]:
    path = tmp_path / "runs.db"
    return path, *judged(path)


Run = tuple[Path, str, list[tuple[Any, Verdict]]]


def report_of(found: list[tuple[Any, Verdict]], language: Any = "en") -> Any:
    builder = ReportBuilder(found[0][1].protocol, language)
    for sample, verdict in found:
        builder.add(verdict, sample)
    return builder.build()


def text_of(blocks: Any) -> str:
    from rich.console import Console

    console = Console(width=200, no_color=True)
    with console.capture() as capture:
        console.print(renderable(blocks))
    return capture.get()


def test_a_run_keeps_its_items(run: Run) -> None:
    """Items of kinds that nobody knows come back from the store as they were, with all their fields."""
    _, _, found = run
    verdict = {verdict.id: verdict for _, verdict in found}["mixed"]
    assert verdict.scores == {"drift": 1, "sheen": 1, "fair": 0}
    assert [(item.kind, getattr(item, "hue", "")) for item in verdict.items][:2] == [
        ("pebble", "amber"),
        ("pebble", "slate"),
    ]
    assert Verdict.model_validate_json(json.dumps(verdict.line())).items == verdict.items


@pytest.mark.parametrize("language", ["en", "zh-Hans"])
def test_reports_in_every_form(run: Run, language: Any) -> None:
    """The words are the protocol's, the lowest sample is the one with the most drift, scales are each metric's own."""
    _, _, found = run
    report = report_of(found, language)
    assert [low.id for low in report.worst] == ["worst", "mixed"]
    assert report.worst[0].telling is not None
    assert report.worst[0].telling.label == "slate"
    assert report.labels["hue"] == {"amber": 3, "slate": 4, UNJUDGED: 0}
    assert "drift" not in report.distributions
    assert len(report.distributions["fair"]) == 2
    hue, drift = ("slate hue", "Drift") if language == "en" else ("石板色", "漂移")
    terminal = text_of(ReportPage(report, brief=True).blocks())
    for page in (terminal, render_markdown(report), render_html(report), render_json(report)):
        assert "drift" in page.casefold() or drift in page
    assert all(hue in page and drift in page for page in (terminal, render_markdown(report), render_html(report)))
    sample, verdict = found[-1]
    assert hue in sample_markdown(verdict, sample, language)


def test_the_table_of_samples(run: Run) -> None:
    """Every label is a facet, under the name of its aspect."""
    path, id, _ = run
    with Store.open(path) as store:
        assert summary(store, id).labels["hue:slate"] == 2
        rows = table(store, id, SampleQuery(labels=("knot:loose",), sort="drift", descending=True)).rows
    assert [row.id for row in rows] == ["worst", "mixed"]


def test_people_label_it(run: Run, tmp_path: Path) -> None:
    """People are asked for what the protocol says, with its labels; their sheet comes back and is compared."""
    _, id, found = run
    assert allowed("hue") == ("amber", "slate")
    assert canonical("hue", "琥珀色") == "amber"
    kinds = {slot.kind for _, verdict in found for slot in slots_of(verdict)}
    assert kinds == {"hue", "grain", "gust", "knot"}
    drawn = draw(candidates(found, stratify="score"), 3)
    rows = list(sheet(found, drawn, run=id))
    assert {row["kind"] for row in rows} == {"hue", "gust", "knot"}
    for row in rows:
        row["label"] = {"hue": "slate hue", "gust": "calm", "knot": "tied"}[row["kind"]]
    write_sheet(tmp_path / "sheet.csv", rows)
    labels = list(labels_in(tmp_path / "sheet.csv"))
    calibration = calibrate(found, labels, run=id, language="en")
    assert {task.task for task in calibration.tasks} == {"hue", "gust.gale", "gust.lull", "knot"}
    (drift,) = [score for score in calibration.scores if score.metric == "drift"]
    assert (drift.judge, drift.people) == (pytest.approx(4 / 3), pytest.approx(7 / 3))
    page = text_of(calibration_blocks(calibration))
    assert "The gale" in page
    assert "Pebbles: hue" in page


def test_less_drift_is_better(run: Run, tmp_path: Path) -> None:
    """A score that should be low is better when it falls, in a comparison and at a gate."""
    _, _, found = run
    better = [{**row, "answer": row["answer"].replace("bad ", "")} for row in ROWS]
    _, other = judged(tmp_path / "other.db", rows=better)
    before, after = Judged("before", lambda: found), Judged("after", lambda: other)
    there = compare(before, after, anyway=True, language="en")
    back = compare(after, before, anyway=True, language="en")
    assert (there.main, there.n_improved, there.n_regressed) == ("drift", 2, 0)
    assert (back.n_improved, back.n_regressed) == (0, 2)
    assert "Drift" in text_of(ComparisonPage(there).blocks())
    changes = label_changes(found[-1][1], other[-1][1])
    assert {change.kind for change in changes if change.change == "changed"} >= {"hue", "gust"}
    report = report_of(found)
    held = gate(report, [parse_requirement("drift<=1.5", report.scale_of)], comparison=back)
    assert held.checks[0].outcome == "passed"
    assert [check.value for check in held.checks if check.metric == "drift" and check.kind == "regression"] == [
        pytest.approx(4 / 3)
    ]
    assert "Drift" in text_of(gate_blocks(held))


def test_panels_vote_on_it(installed: None, tmp_path: Path) -> None:
    """A vote on labels that nobody knows; what is verified and routed reads what the reply declares."""
    judges = [gauge.GaugeJudge("a"), gauge.GaugeJudge("b"), gauge.GaugeJudge("c", slate="sky")]
    _, found = judged(tmp_path / "panel.db", PanelJudge(judges))
    assert [verdict.scores["drift"] for _, verdict in found] == [0, 1, 3]
    assert report_of(found).votes["pebble"].n == 7
    _, found = judged(tmp_path / "verified.db", VerifyingJudge(gauge.GaugeJudge("a"), gauge.GaugeJudge("b", "wind")))
    assert [verdict.scores["drift"] for _, verdict in found] == [0, 0, 1]


def test_it_can_be_audited(installed: None) -> None:
    """The parts of an audit that fit samples of its shape."""
    card = audit(gauge.GaugeJudge(slate="zzz"), protocols=["gauge"], only=["stability"])
    assert card.scope.protocols == ("gauge",)


def test_viewer_and_api(run: Run) -> None:
    """Every page of the viewer and the HTTP API show it, and take labels for it."""
    path, id, _ = run
    with viewing(path) as address, httpx.Client(base_url=address, timeout=60) as client:
        for page in ("/runs", f"/runs/{id}", f"/runs/{id}/samples", f"/runs/{id}/samples/worst", f"/runs/{id}/label"):
            answer = client.get(page, headers={"accept-language": "en"})
            assert answer.status_code in (200, 202), page
        assert "slate hue" in client.get(f"/runs/{id}/samples/worst").text
        assert "Hue of a pebble" in client.get(f"/runs/{id}/label").text
        (info,) = [one for one in client.get("/api/v1/protocols").json()["protocols"] if one["name"] == "gauge"]
        assert (info["main_score"], info["scores"]) == ("drift", ["drift", "sheen", "fair"])
        label = {"sample": "worst", "kind": "hue", "item": 1, "label": "amber", "annotator": "ann"}
        kept = client.post("/api/v1/labels", json={"run": id, "labels": [label]})
        assert kept.status_code == 201, kept.text


def test_runs_outlive_their_protocol(run: Run) -> None:
    """A stored run whose protocol is gone is still read: scores and labels stand for themselves."""
    _, _, found = run
    gone = [(sample, verdict.model_copy(update={"protocol": "gone"})) for sample, verdict in found]
    builder = ReportBuilder("gone", "en")
    for sample, verdict in gone:
        builder.add(verdict, sample)
    report = builder.build()
    assert report.scores["drift"].value == pytest.approx(4 / 3)
    assert "drift" in render_markdown(report)
    assert sample_markdown(gone[0][1], gone[0][0], "en")
    assert HumanLabel(sample="x", kind="hue", label="amber").kind == "hue"


def test_looking_up_a_kind_makes_nothing() -> None:
    """It is done for every item of every verdict: the same kind is found each time, declared or not, the first of a
    name before later ones."""
    first, second = Kind("hue", (Aspect("hue", (Label("warm", "good"), Label("warm", "bad"))),)), Kind("hue", ())
    words = Vocabulary("test", kinds=(first, second))
    assert words.kind_named("hue") is first
    assert words.kind_named("other") is words.kind_named("other")
    assert words.kind_named("other").aspects[0].name == "other"
    assert first.aspects[0].label("warm").tone == "good"
    assert first.aspects[0].label("cold").name == "cold"


# --- the protocol that the docs show -----------------------------------------------------------------

CITED = [
    {
        "id": "fine",
        "question": "What is Longjing?",
        "references": ["Longjing is a green tea."],
        "answer": "Longjing is a green tea [1]. People like it.",
    },
    {
        "id": "bad",
        "question": "龙井是什么？",
        "references": ["龙井是绿茶。"],
        "answer": "龙井是绿茶 [1]。龙井是红茶 [1]。龙井获过奖 [7]。",
    },
]


class CitationJudge:
    """What holds one of these words is loose, all else sound."""

    name = "reader"

    def __init__(self, loose: str = "红茶") -> None:
        self._loose = loose
        self.asks: list[Ask] = []

    async def answer(self, ask: Ask) -> Reply:
        self.asks.append(ask)
        labels = [
            {"id": one.id, "reason": "read", "label": "loose" if self._loose in one.text else "sound"}
            for one in ask.data.items()["sentences"]
        ]
        return Reply(data=ask.reply.model_validate({"sentences": labels}), usage=Usage(calls=1))

    async def aclose(self) -> None:
        """Nothing to give back."""


def test_a_stranger_writes_a_protocol_in_under_sixty_lines(installed: None, tmp_path: Path) -> None:
    """The file in docs/new-protocol.md works with everything: the rest is declared by its kind, metric and prompts."""
    assert len(protocol_of_the_docs().splitlines()) < 60
    path, judge = tmp_path / "runs.db", CitationJudge()
    id, found = judged(path, judge, CITED, "citations")
    verdicts = {verdict.id: verdict for _, verdict in found}
    assert [verdicts[name].scores["sound"] for name in ("fine", "bad")] == [1, pytest.approx(1 / 3)]
    assert [item.reason for item in verdicts["bad"].items] == ["read", "read", "no such passage"]
    prompts = Prompts.shipped().with_texts(get_protocol("citations").prompts)
    asked = {ask.language: prompts.messages(ask) for ask in judge.asks}
    assert "You check citations" in asked["en"][0]["content"]
    assert "请核对引用" in asked["zh"][0]["content"]
    assert "2. 龙井是红茶 [1]。" in asked["zh"][1]["content"]
    # Reports in every form, the table of samples.
    report = report_of(found)
    terminal = text_of(ReportPage(report, brief=True).blocks())
    for page in (terminal, render_markdown(report), render_html(report), render_json(report)):
        assert "loose" in page
        assert "sound" in page
    with Store.open(path) as store:
        rows = table(store, id, SampleQuery(labels=("citation:loose",))).rows
    assert [row.id for row in rows] == ["bad"]
    # People label it, and the judge is compared with them.
    rows_of_sheet = list(sheet(found, draw(candidates(found, stratify="score"), 2), run=id))
    for row in rows_of_sheet:
        row["label"] = "sound"
    write_sheet(tmp_path / "sheet.csv", rows_of_sheet)
    calibration = calibrate(found, list(labels_in(tmp_path / "sheet.csv")), run=id, language="en")
    assert [task.task for task in calibration.tasks] == ["citation"]
    assert calibration.scores[0].people == pytest.approx(1)
    # A second run is compared; the fall does not pass the gate.
    _, worse = judged(tmp_path / "worse.db", CitationJudge("龙井"), CITED, "citations")
    compared = compare(Judged("before", lambda: found), Judged("after", lambda: worse), anyway=True, language="en")
    assert (compared.main, compared.n_regressed) == ("sound", 1)
    held = gate(report_of(worse), [parse_requirement("sound>=0.9", report.scale_of)], comparison=compared)
    assert held.checks[0].outcome != "passed"
    # A panel votes, a second pass re-checks what counts against the sample.
    _, voted = judged(
        tmp_path / "panel.db", PanelJudge([CitationJudge(word) for word in ("红茶", "红茶", "-")]), CITED, "citations"
    )
    (loose,) = [item for _, verdict in voted for item in verdict.items if item.text == "龙井是红茶 [1]。"]
    assert (getattr(loose, "label", ""), loose.confidence) == ("loose", pytest.approx(2 / 3, abs=1e-3))
    checking = VerifyingJudge(CitationJudge(), CitationJudge("-"))
    _, verified = judged(tmp_path / "verified.db", checking, CITED, "citations")
    assert any(item.first for _, verdict in verified for item in verdict.items)
    # The viewer and the HTTP API.
    with viewing(path) as address, httpx.Client(base_url=address, timeout=60) as client:
        for page in (f"/runs/{id}", f"/runs/{id}/samples", f"/runs/{id}/samples/bad", f"/runs/{id}/label"):
            assert client.get(page, headers={"accept-language": "en"}).status_code in (200, 202), page
        assert "no such passage" in client.get(f"/runs/{id}/samples/bad").text
        assert 'name="kind" value="citation"' in client.get(f"/runs/{id}/label").text
        label = {"sample": "bad", "kind": "citation", "item": 2, "label": "sound", "annotator": "ann"}
        assert client.post("/api/v1/labels", json={"run": id, "labels": [label]}).status_code == 201


def test_long_samples_are_not_sent(installed: None, tmp_path: Path) -> None:
    """A custom protocol keeps to max_chars as the shipped ones do, and still says what code knows."""
    judge = CitationJudge()
    options = {"max_chars": 10}
    verdicts = steelyard.evaluate(CITED, "citations", judge, options=options)
    assert judge.asks == []
    assert [(verdict.status, "too_long" in verdict.flags) for verdict in verdicts] == [
        ("failed", True),
        ("partial", True),
    ]
    assert "max_chars" in verdicts[0].notes["reason"]
