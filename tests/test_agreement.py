"""The agreement bench: rows become the protocols' own asks, and the figures are those a person would count."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from endpoint import Loopback
from steelyard import ScriptedJudge
from steelyard.engine.journal import JournalledJudge
from steelyard.errors import JudgeError
from steelyard.records import Ask, Atom, Unjudged
from steelyard.reports.agreement import figures_for, read, summary
from steelyard.store import Store

ROOT = Path(__file__).parent.parent
sys.path += [str(ROOT / "bench"), str(ROOT)]

from agreement import cases, command, measures, own_sets, page, planted, run, seeds, speed  # noqa: E402
from agreement.figures import write_figures  # noqa: E402
from agreement.own.careful import careful_claims  # noqa: E402
from agreement.own.good_dialogues import good_dialogues  # noqa: E402
from agreement.own.short_answers import short_answers  # noqa: E402
from training.sets import Row  # noqa: E402

PASSAGE = "The mill in Orrin grinds rye. It was built in 1912."


def row(claim: str, label: str = "supported", *, name: str = "factcheckgpt", **changes: Any) -> Row:
    given_row = Row(name, claim, claim, "What of the mill?", claim, (PASSAGE,), label)
    return given_row._replace(**changes)


def word_for_word(ask: Ask) -> dict[str, Any]:
    """A judge that finds right what a passage says literally, wrong what mentions 1999, and does not know the rest."""
    passages = " ".join(ask.data.references)

    def label(text: str) -> str:
        return "correct" if text.rstrip(".。") in passages else "wrong" if "1999" in text else "undetermined"

    quote = ask.data.references[0].split(".")[0]
    if ask.task == "atomic.judge":
        atoms = [
            {"id": atom.id, "label": label(atom.text), "quote": quote, "reference": 0, "level": 1 + atom.id % 3}
            for atom in ask.data.atoms
        ]
        return {"atoms": atoms, "fallback": False}
    support = {"correct": "supported", "wrong": "unsupported", "undetermined": "no_claim"}
    return {
        "sentences": [
            {"id": part.id, "on_topic": True, "support": support[label(part.text)], "quote": quote}
            for part in ask.data.sentences
        ]
    }


def judged(found: Sequence[Any], judge: Any = None) -> list[Any]:
    judge = judge or ScriptedJudge(word_for_word)
    return asyncio.run(run.answers_to(found, judge, 2, lambda done, total: None, Counter()))


# --- rows into asks --------------------------------------------------------------------------------


def test_a_row_is_asked_as_an_atom() -> None:
    """One claim, one ask, the passages as references, in the claim's language."""
    (case,) = cases.cases_of("factcheckgpt", [row("It was built in 1912.")])
    assert (case.ask.task, case.ask.language) == ("atomic.judge", "en")
    assert [atom.text for atom in case.ask.data.atoms] == ["It was built in 1912."]
    assert case.ask.data.references == (PASSAGE,)
    assert case.wanted[0].truth == "supported"


def test_sentences_of_one_answer_are_asked_together() -> None:
    """memerag's sentences keep their answer; uhgeval's key words keep their text, as the answer."""
    rows = [row(text, document="d", context="One. Two.", name="memerag", relevance=1) for text in ("One.", "Two.")]
    (case,) = cases.cases_of("memerag", rows)
    assert case.ask.task == "scorecard.judge"
    assert [part.text for part in case.ask.data.sentences] == ["One.", "Two."]
    words = [row(text, document="d", context="磨坊建于一九一二年。", name="uhgeval") for text in ("磨坊", "一九一二年")]
    (case,) = cases.cases_of("uhgeval", words)
    assert (case.ask.data.answer, len(case.ask.data.atoms)) == ("磨坊建于一九一二年。", 2)


def test_a_summary_is_supported_if_all_its_sentences_are() -> None:
    """Several sentences make one labelled thing; one unsupported sentence decides."""
    texts = ["The mill in Orrin grinds rye. It was built in 1912.", "The mill in Orrin grinds rye. Built in 1999."]
    answers = judged(cases.cases_of("summedits", [row(text, name="summedits") for text in texts]))
    assert [len(answer.said) for answer in answers] == [2, 2]
    assert [cases.verdict_of(answer.said) for answer in answers] == ["supported", "not supported"]


@pytest.mark.parametrize(
    ("labels", "verdict", "abstains"),
    [
        (["correct"], "supported", False),
        (["wrong"], "not supported", False),
        (["undetermined"], "not supported", True),
        (["exempt"], "not supported", True),
        (["partial"], "not supported", False),
        (["supported", "no_claim"], "supported", False),
        (["no_claim"], "not supported", True),
        (["supported", "undetermined"], "not supported", True),
        (["unsupported", "undetermined"], "not supported", False),
    ],
)
def test_what_a_label_counts_for(labels: list[str], verdict: str, abstains: bool) -> None:
    """An abstention is not support; a greeting beside a supported sentence takes nothing away."""
    said = [cases.Said(label) for label in labels]
    assert (cases.verdict_of(said), cases.abstains(said)) == (verdict, abstains)


def test_rows_that_people_could_not_decide_are_left_out() -> None:
    """Unclear rows and rows without a claim are no measure of support; without a level, none of relevance."""
    rows = [row("a"), row("b", "unclear"), row("c", "no_claim"), row("d", "partial", relevance=2)]
    assert [found.claim for found in cases.measurable("begin", rows)] == ["a", "d"]
    assert [found.claim for found in cases.measurable("memerag relevance", rows)] == ["d"]


def test_code_applies_its_rules_to_the_labels() -> None:
    """What is read is the label after tolerance: a judge that calls 118 for 120 wrong is overruled, as in a report."""
    difference = {"kind": "statistic", "claimed": "118", "stated": "120"}
    label = {"id": 1, "label": "wrong", "quote": PASSAGE, "reference": 0, "level": 1, "difference": difference}
    judge = ScriptedJudge({"atomic.judge": {"atoms": [label], "fallback": False}})
    (answer,) = judged(cases.cases_of("kvpi", [row("118 shelves", name="kvpi")]), judge)
    assert answer.said[0].label == "correct"


def test_items_without_a_label_are_unjudged_not_wrong() -> None:
    """A judge that does not answer is left out of the figures and counted, with the reason."""
    reasons: Counter[str] = Counter()
    judge = ScriptedJudge({"atomic.judge": Unjudged(reason="timeout")})
    found = cases.cases_of("kvpi", [row("a", name="kvpi")])
    answers = asyncio.run(run.answers_to(found, judge, 1, lambda done, total: None, reasons))
    assert answers[0].said == ()
    assert measures.support_outcomes(answers) == []
    assert reasons == {"timeout": 1}


def test_a_killed_run_goes_on(tmp_path: Path) -> None:
    """With the ordinary journal, what was answered before is not asked again."""
    found = cases.planted_cases(planted.pairs()[:5])

    async def drive(judge: Any) -> list[Any]:
        with_memory = JournalledJudge(judge, store)
        return await run.answers_to(found, with_memory, 2, lambda done, total: None, Counter())

    store = Store.open(tmp_path / "store.db")
    first, second = ScriptedJudge(word_for_word), ScriptedJudge(word_for_word)
    before = asyncio.run(drive(first))
    assert len(first.asks) == 10
    assert asyncio.run(drive(second)) == before
    assert second.asks == []
    store.close()


def test_twins_are_asked_about_apart() -> None:
    """No ask holds both a clean claim and its planted twin."""
    found = cases.planted_cases(planted.pairs())
    assert len(found) == 960
    assert all(len(case.ask.data.atoms) == 1 for case in found)


@given(st.lists(st.booleans(), max_size=60), st.integers(min_value=1, max_value=70))
def test_fewer_rows_are_balanced_and_nested(labels: list[bool], n: int) -> None:
    """Never more than asked for, as even as the rows allow, and part of what a larger number takes."""
    rows = [row(f"claim {at}", "supported" if label else "unsupported") for at, label in enumerate(labels)]
    few, more = (cases.sampled(rows, size, lambda r: r.claim, cases.truth_of) for size in (n, n + 2))
    assert len(few) == min(n, len(rows))
    counts = Counter(found.is_supported for found in few)
    smaller = min(Counter(labels).values(), default=0) if len(set(labels)) == 2 else 0
    assert min(counts[True], counts[False]) >= min(smaller, n // 2)
    assert set(few) <= set(more)
    assert cases.sampled(rows, None, lambda r: r.claim, cases.truth_of) == rows


# --- planted errors, worked examples, speed --------------------------------------------------------


def test_caught_and_false_alarms_by_hand() -> None:
    """Caught: not labelled correct. False alarm: a clean twin not labelled correct. Strict ones beside both."""
    chosen = planted.pairs()[:2]
    labels = {"0 planted": "wrong", "0 clean": "correct", "1 planted": "undetermined", "1 clean": "undetermined"}
    answers = [
        cases.Answer(cases.Wanted(f"{pair.id} {which}", pair.id, (1,), which), (cases.Said(labels[f"{at} {which}"]),))
        for at, pair in enumerate(chosen)
        for which in ("clean", "planted")
    ]
    groups = run.planted_figures(chosen, answers)["groups"]
    values = {name: figure["value"] for name, figure in groups["all"].items()}
    assert values == {
        "caught": 1,
        "caught, labelled wrong": 0.5,
        "false alarms": 0.5,
        "false alarms, labelled wrong": 0,
    }
    assert groups["number"]["false alarms"]["value"] == 0
    assert groups["date"]["caught, labelled wrong"]["value"] == 0
    assert groups["unit"]["caught"]["value"] is None


def atom(text: str, label: str, level: int = 1) -> Atom:
    return Atom.model_validate({"id": 1, "text": text, "label": label, "level": level})


def test_an_atom_in_pieces_is_wrong_if_a_piece_is() -> None:
    """身为老大的她从小就承担了责任 may be cut in two: the checkable part decides."""
    pieces = [
        atom("王珞丹身为老大", "correct"),
        atom("她身为老大", "wrong"),
        atom("她从小就承担了一定的责任", "exempt", 2),
    ]
    assert seeds.match("身为老大的她或许从小就承担了一定的责任。", pieces) == ("wrong", 2)
    assert seeds.match("父母是银行职员。", pieces) == (None, None)
    assert seeds.match("父母是银行职员。", []) == (None, None)


def test_worked_examples_are_fourteen_atoms_and_two_samples() -> None:
    """Judged end to end; a judge that splits by sentence and finds all correct gets what the labels allow."""
    found = seeds.examples()
    assert Counter(example.protocol for example in found) == {"atomic": 3, "grounded": 2}
    counts = asyncio.run(seeds.worked_examples(ScriptedJudge(lambda ask: None), found))
    assert (counts["atoms"], counts["atoms of"], counts["grounded"], counts["grounded of"]) == (0, 14, 0, 2)
    assert len(counts["missed"]) == 16


def test_speed_samples_are_as_announced() -> None:
    """Three passages of 300 characters each, both languages, no two samples alike."""
    found = speed.samples(planted.pairs(), 201)
    assert all(len(passage) == 300 for sample in found for passage in sample.references)
    assert all(len(sample.references) == 3 for sample in found)
    assert len({sample.references for sample in found}) > 150
    assert {bool(planted.re.search("[a-z]{4}", sample.question)) for sample in found} == {True, False}


def test_speed_counts_what_was_judged() -> None:
    """Some samples a second, of which the ones to warm up are none."""
    judge = ScriptedJudge(lambda ask: None)
    found = asyncio.run(speed.speed(judge, planted.pairs(), 2))
    assert found["samples"] == 200
    assert len(judge.asks) == 202
    assert found["samples a second"] > 1


# --- sets of our own -------------------------------------------------------------------------------


def test_right_and_wrong_ones_are_asked_apart() -> None:
    """No ask holds two claims, and of a short answer the question is asked too."""
    claims, answers = list(careful_claims()), list(short_answers())
    found = own_sets.careful_cases(claims)
    assert [case.wanted[0].truth for case in found] == ["right" if claim.right else "wrong" for claim in claims]
    short = own_sets.short_cases(answers)
    assert len(short) == 2 * len(answers)
    assert all(len(case.ask.data.atoms) == 1 for case in (*found, *short))
    assert short[0].ask.data.question == answers[0].question


def test_called_correct_is_counted_by_language() -> None:
    """Right and wrong ones apart; what got no label is left out."""
    said = {"one": ("correct", "wrong"), "two": ("correct", "correct"), "three": ("undetermined", "wrong")}
    answers = [
        cases.Answer(cases.Wanted(f"{id} {truth}", id, (1,), truth), (cases.Said(label, 1),))
        for id, labels in said.items()
        for truth, label in zip(("right", "wrong"), labels, strict=True)
    ]
    answers.append(cases.Answer(cases.Wanted("x", "one", (1,), "right"), ()))
    groups = own_sets.called_correct(answers, {"one": "en", "two": "zh-Hans", "three": "zh-Hant"})
    right, wrong = "right ones called correct", "wrong ones called correct"
    assert {name: (group[right]["value"], group[wrong]["value"]) for name, group in groups.items()} == {
        "all": (pytest.approx(2 / 3, abs=1e-4), pytest.approx(1 / 3, abs=1e-4)),
        "en": (1, 0),
        "zh": (0.5, 0.5),
    }


def test_good_dialogues_are_faulted_by_a_judge_that_faults() -> None:
    """A criterion is faulted if it is called invalid or violated; what code can count is decided by code."""
    dialogues = [one for one in good_dialogues() if one.script == "en"][:2]

    def harsh(ask: Ask) -> dict[str, Any]:
        field = {"valid": False} if ask.task == "dialogue.validity" else {"complies": "no"}
        return {"criteria": [{"id": item.id, **field} for item in ask.data.criteria]}

    groups = asyncio.run(own_sets.faulted(dialogues, ScriptedJudge(harsh)))
    assert groups["all"]["faulted"]["value"] > 0.5
    assert groups["en"] == groups["all"]
    assert groups["zh"]["faulted"]["n"] == 0
    silent = asyncio.run(own_sets.faulted(dialogues, ScriptedJudge(lambda ask: Unjudged(reason="timeout"))))
    assert silent["all"]["faulted"]["value"] == 0
    assert silent["all"]["open"]["value"] > 0.5


# --- a whole run -----------------------------------------------------------------------------------


def write_sets(folder: Path) -> None:
    """A tiny set in the shape of the public ones: every third claim is literal, every third wrong."""
    folder.mkdir()
    lines = []
    for at in range(60):
        passage = f"The mill number {at} grinds rye. It was built in 1912."
        claim, label = [
            (f"The mill number {at} grinds rye.", "supported"),
            (f"The mill number {at} closed in 1999.", "contradicted"),
            (f"The mill number {at} is for sale.", "unsupported"),
        ][at % 3]
        lines.append(json.dumps({"id": f"x{at}", "claim": claim, "passages": [passage], "label": label}))
    (folder / "support_en_factcheckgpt.jsonl").write_text("\n".join(lines), "utf-8")


def measured(folder: Path, **options: Any) -> Any:
    judge = ScriptedJudge(word_for_word)
    return asyncio.run(run.Bench(judge=judge, bare=judge, data=folder, quiet=True, **options).results())


def test_a_whole_run_over_a_set_of_ones_own(tmp_path: Path) -> None:
    """Held-out rows only, figures with baseline; sets whose files are missing are named, not failed on."""
    write_sets(tmp_path / "data")
    found = measured(tmp_path / "data", names=("memerag", "factcheckgpt"))
    assert found["left out"] == {"memerag": "the file is not there"}
    facts = found["sets"]["factcheckgpt"]
    assert 5 < facts["n"] == facts["of"] < 40
    assert facts["figures"]["balanced accuracy"]["value"] == 1
    assert 0 < facts["figures"]["abstained"]["value"] < 1
    assert facts["lexical"]["balanced accuracy"]["n"] == facts["n"]


def test_fewer_rows_are_said_to_be_fewer(tmp_path: Path) -> None:
    """A page on part of the rows says so."""
    write_sets(tmp_path / "data")
    found = measured(tmp_path / "data", names=("factcheckgpt",), n=6)
    assert found["sets"]["factcheckgpt"]["n"] == 6
    assert "Only part of the rows" in page.section(found)


R = {"value": 0.5, "low": 0.4, "high": 0.6, "n": 99}
RESULT: dict[str, Any] = {
    "judge": "embedded",
    "described": {"model": "embedded-1"},
    "date": "2026-11-16",
    "machine": {"cores": 2, "system": "Linux x86_64"},
    "versions": {"python": "3.11"},
    "left out": {},
    "sets": {
        "kvpi": {
            "n": 941, "of": 941, "unjudged": 1, "labels": {},
            "figures": {"balanced accuracy": {"value": 0.8, "low": 0.77, "high": 0.83, "n": 940}},
            "lexical": {"balanced accuracy": {"value": 0.72, "low": 0.7, "high": 0.75, "n": 941}},
        },
        "begin": {
            "n": 287, "of": 287, "unjudged": 0, "labels": {},
            "figures": {"balanced accuracy": {"value": 0.9, "low": 0.85, "high": 0.95, "n": 287}},
            "lexical": {"balanced accuracy": {"value": 0.88, "low": 0.84, "high": 0.92, "n": 287}},
        },
        "seeds": {"atoms": 12, "atoms of": 14, "grounded": 2, "grounded of": 2, "missed": ["x is wrong"]},
        "planted": {"n": 960, "of": 960, "unjudged": 0, "groups": {"all": {
            "caught": {"value": 0.91, "low": 0.89, "high": 0.93, "n": 480},
            "false alarms": {"value": 0.08, "low": 0.06, "high": 0.1, "n": 480},
        }}},
        "careful": {"n": 600, "of": 600, "unjudged": 0, "labels": {}, "groups": {"all": {
            "right ones called correct": R, "wrong ones called correct": R,
        }}},
        "ragchecker": {
            "n": 100, "of": 280, "people": {"correctness": None, "completeness": 0.72, "overall": 0.7},
            "correlations": dict.fromkeys(("correctness", "completeness", "overall"), R),
        },
        "speed": {
            "samples a second": 25.0, "samples": 200, "CPU milliseconds a sample": 40.0,
            "first sample, seconds": 1.2, "cores": 2, "load": 0.1,
        },
    },
}  # fmt: skip


def test_the_page_is_one_table() -> None:
    """One line per set with baseline, judge and what others published; the load and machine, no host name."""
    text = page.page([RESULT], {"embedded": "It sees no irony."})
    assert "| kvpi zh | .720 (.70–.75) | .800 (.77–.83) | accuracy: KvBERT" in text
    assert "| planted errors not called correct | – | .910 (.89–.93) |  |" in text
    assert "| careful claims, wrong ones called correct | – | .500 (.40–.60) |  |" in text
    assert "| worked examples right: atoms, grounded samples | – | 12 of 14, 2 of 2 |  |" in text
    assert "samples/s | – | 25 |  |" in text
    assert "memerag" not in text
    assert "short answers" not in text
    assert text.count("\n| --- ") == 1
    assert "\nIt sees no irony.\n" in text
    busy = {**RESULT, "sets": {"speed": {**RESULT["sets"]["speed"], "load": 9.5}}}
    assert "| 25 (load 9.5 on 2 cores) |" in page.page([busy])


def test_the_terminal_has_all_figures() -> None:
    """Of one judge, set by set, with what it missed of the worked examples."""
    text = page.section(RESULT)
    assert "941 (1 unjudged)" in text
    assert "- x is wrong" in text
    assert "100 pairs (of 280)" in text
    assert "| correctness | .500 (.40–.60) | – |" in text
    assert "| all | 99 | .500 (.40–.60) | .500 (.40–.60) |" in text


def test_two_judges_share_one_table() -> None:
    """A set that only one saw is a dash for the other; the judge in the box comes first."""
    other = {**RESULT, "judge": "a:small", "sets": {"kvpi": RESULT["sets"]["kvpi"]}}
    text = page.page([other, RESULT])
    assert "| balanced accuracy, or as named | lexical baseline | `embedded` | `a:small` | published |" in text
    assert "| begin en | .880 (.84–.92) | .900 (.85–.95) | – |  |" in text


def test_results_become_figures(tmp_path: Path) -> None:
    """agreement.toml holds every judge's figures; another judge's stay when one is measured anew."""
    file = tmp_path / "agreement.toml"
    write_figures([RESULT, {**RESULT, "judge": 'odd "name"'}], file)
    assert {figure.judge for figure in read(file.read_text("utf-8"))} == {"embedded", 'odd "name"'}
    better = json.loads(json.dumps(RESULT))
    better["sets"]["kvpi"]["figures"]["balanced accuracy"]["value"] = 0.85
    write_figures([better], file)
    (kvpi,) = [figure for figure in figures_for("embedded", file) if figure.set == "kvpi"]
    assert (kvpi.value, kvpi.n, kvpi.date) == (0.85, 940, "2026-11-16")
    assert len(figures_for('odd "name"', file)) == len(figures_for("embedded", file)) == 10


# --- what the package knows of its judges ----------------------------------------------------------


def test_a_summary_is_the_mean_over_sets(tmp_path: Path) -> None:
    """One number for one line: the mean balanced accuracy, with how many sets and items stand behind it."""
    file = tmp_path / "agreement.toml"
    write_figures([RESULT], file)
    found = summary("embedded", file)
    assert found is not None
    assert (found.of_hundred, found.sets, found.n) == (85, ("kvpi", "begin"), 1227)
    line = found.fill("{judge}: {of_hundred} of 100 ({balanced_accuracy}, {sets} sets, n {n}, {date})")
    assert line == "embedded: 85 of 100 (.85, 2 sets, n 1,227, 2026-11-16)"
    assert summary("openai:gpt-4o", file) is None


# --- the command -----------------------------------------------------------------------------------


def test_the_command_writes_page_and_figures(tmp_path: Path) -> None:
    """Without a judge, page and figures are made from earlier results."""
    (tmp_path / "results").mkdir()
    (tmp_path / "results" / "embedded.json").write_text(json.dumps(RESULT), "utf-8")
    (tmp_path / "results" / "embedded.md").write_text("It sees no irony.", "utf-8")
    arguments = ["--results", str(tmp_path / "results"), "--write", str(tmp_path / "page.md")]
    assert command.main([*arguments, "--figures", str(tmp_path / "agreement.toml")]) == 0
    assert "- `embedded`: Measured on 2026-11-16" in (tmp_path / "page.md").read_text("utf-8")
    assert "It sees no irony." in (tmp_path / "page.md").read_text("utf-8")
    assert summary("embedded", tmp_path / "agreement.toml") is not None


def test_an_unknown_judge_is_a_plain_error(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """One line that names the judges there are, no traceback."""
    code = command.main(["no-such-judge", "--results", str(tmp_path), "--store", str(tmp_path / "s.db")])
    assert code == 2
    assert "there is no judge 'no-such-judge'" in capsys.readouterr().err


def test_any_judge_by_name_over_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """`openai:MODEL` is measured like any other; a second run asks nothing, and keeps what it did not measure."""
    write_sets(tmp_path / "data")
    monkeypatch.chdir(tmp_path)
    label = {"id": 1, "label": "correct", "quote": "It was built in 1912", "reference": 0, "level": 1}
    places = ["--data", str(tmp_path / "data"), "--results", str(tmp_path / "out"), "--store", str(tmp_path / "s.db")]
    arguments = ["openai:tiny", "--sets", "factcheckgpt", "--rows", "6", "--json", "--quiet", *places]
    with Loopback({"atoms": [label], "fallback": False}) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.endpoint().base_url)
        assert command.main(arguments) == 0
        first = json.loads(capsys.readouterr().out)
        asked = len(server.requests)
        assert command.main(arguments) == 0
        assert len(server.requests) == asked >= 6
        assert command.main([*arguments, "--sets", "planted", "--rows", "2", "--add"]) == 0
        assert len(server.requests) > asked
    assert first["judge"] == "openai:tiny"
    assert first["sets"]["factcheckgpt"]["labels"] == {"correct": 6}
    assert first["sets"]["factcheckgpt"]["figures"]["balanced accuracy"]["value"] == 0.5
    assert json.loads((tmp_path / "out" / "openai-tiny.json").read_text("utf-8"))["sets"].keys() == {
        "factcheckgpt",
        "planted",
    }


@pytest.mark.parametrize("flag", ["--rows", "--concurrency"])
def test_numbers_below_one_are_refused(flag: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Nothing would be measured with them."""
    with pytest.raises(SystemExit):
        command.main(["embedded", flag, "0"])
    assert "a number of 1 or more" in capsys.readouterr().err


def test_a_judge_that_fails_as_a_whole_says_so_once() -> None:
    """The error of the judge comes through, not a group of them."""

    class Broken(ScriptedJudge):
        async def answer(self, ask: Ask) -> Any:
            raise JudgeError("the key is wrong")

    with pytest.raises(JudgeError, match="the key is wrong"):
        judged(cases.planted_cases(planted.pairs()[:3]), Broken({}))


def test_the_folder_runs_as_a_program() -> None:
    """`python bench/agreement` finds its own modules from anywhere."""
    done = subprocess.run(
        [sys.executable, str(ROOT / "bench" / "agreement"), "--list-planted"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.count("\n  - ") == 480


def test_figures_of_another_edition_are_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`--add` never puts figures of another model or edition under this one's name."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "embedded.json").write_text(json.dumps(RESULT), "utf-8")
    places = ["--data", str(tmp_path), "--results", str(tmp_path / "out"), "--store", str(tmp_path / "s.db")]
    assert command.main(["embedded", "--sets", "planted", "--rows", "1", "--add", "--quiet", "--json", *places]) == 0
    assert json.loads((tmp_path / "out" / "embedded.json").read_text("utf-8"))["sets"].keys() == {"planted"}


def test_results_are_named_after_the_judge() -> None:
    """Names hold colons and slashes; file names do not."""
    assert command.file_name("openai:Qwen/Qwen2.5-7B") == "openai-Qwen-Qwen2.5-7B"
    assert command.file_name("///") == "judge"
