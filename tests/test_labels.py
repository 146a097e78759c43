"""People's labels: read from files as people write them, kept in the store, drawn for without bias."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import report_fixtures as fixtures
from command import Steelyard, lines_of, write_lines
from steelyard.errors import ConfigError, InputError
from steelyard.people.label_targets import slots_of
from steelyard.people.labelling import Candidate, candidates, draw, labels_in, sheet, write_sheet
from steelyard.protocols import known_aspects
from steelyard.protocols.vocabulary import OPEN
from steelyard.records import DialogueSample, Turn
from steelyard.store import Store
from steelyard.store.labels import HumanLabel, allowed, canonical, digest, of_one_policy, read_labels, write_labels
from steelyard.text.wording import LANGUAGES
from trust_fixtures import judged, keep, labels_of, simulate

KINDS = ("atom", "check", "on_topic", "support", "key_point", "criterion", "validity", "fallback")


def label(**fields: object) -> HumanLabel:
    return HumanLabel(**{"sample": "s1", "kind": "atom", "item": 1, "label": "correct", **fields})


# --- words -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
def test_labels_may_be_written_in_any_of_the_languages(kind: str) -> None:
    """正确, correct and Correct are one label; whatever a report calls a label, a sheet may call it too."""
    for language in LANGUAGES:
        for aspect in known_aspects()[kind]:
            for one in aspect.labels:
                assert canonical(kind, f" {one.words.in_language(language).upper()} ") == one.name
        assert canonical(kind, OPEN.words.in_language(language)) is None
    assert all(canonical(kind, name) == name for name in allowed(kind))
    assert canonical(kind, "perhaps") is None


def test_words_that_mean_two_labels_do_not_exist() -> None:
    """Within a kind no word stands for two labels, so nothing is read the wrong way round."""
    for kind in KINDS:
        seen: dict[str, str] = {}
        for language in LANGUAGES:
            for one in (*(label for aspect in known_aspects()[kind] for label in aspect.labels), OPEN):
                word = one.words.in_language(language)
                assert seen.setdefault(word.casefold(), one.name) == one.name, (kind, word)


# --- files -----------------------------------------------------------------------------------------


def test_jsonl_comes_back_as_it_was(tmp_path: Path) -> None:
    """Written and read, a label is the same label, Chinese and all."""
    given_labels = [
        label(annotator="王", policy="2", text="它在第二排", note="看了两遍", weight=2.5, turn=3, about="ab"),
        label(kind="fallback", item=None, label="0"),
    ]
    assert write_labels(tmp_path / "human.jsonl", given_labels) == 2
    assert list(read_labels(tmp_path / "human.jsonl")) == given_labels


texts = st.text(st.characters(exclude_categories=("Cs",)), max_size=30)


@given(texts, texts.filter(lambda text: text.strip() != ""))
def test_any_text_survives_a_spreadsheet(tmp_path_factory: pytest.TempPathFactory, text: str, sample: str) -> None:
    """What goes into a CSV sheet comes out of it, also what begins like a formula."""
    path = tmp_path_factory.mktemp("sheet") / "sheet.csv"
    row = {"sample": sample, "kind": "atom", "turn": None, "item": 4, "text": text, "label": "错误", "weight": 1.0}
    blank = dict.fromkeys(
        ("choices", "note", "question", "answer", "references", "annotator", "policy", "run", "about"), ""
    )
    write_sheet(path, [{**blank, **row}])
    (found,) = read_labels(path)
    assert (found.item, found.turn, found.label) == (4, None, "wrong")
    # A text that a person begins with an apostrophe and a sign loses the apostrophe; spreadsheets do the same.
    assert found.text in (text, text.removeprefix("'"))


def test_blank_labels_are_not_labels(tmp_path: Path) -> None:
    """A row that nobody filled in says nothing."""
    rows = [label(label=said).model_dump() for said in ("", " ", "unjudged", "wrong")]
    path = write_lines(tmp_path / "human.jsonl", [*rows, {**rows[0], "label": None}])
    assert [found.label for found in read_labels(path)] == ["wrong"]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ({"label": "maybe"}, r"human\.jsonl:2: label: 'maybe' is not one of correct, wrong, undetermined, exempt"),
        ({"kind": "atoms"}, r"human\.jsonl:2: kind: there is no 'atoms'; there are atom, fallback, check"),
        ({"item": "first"}, r"human\.jsonl:2: item: "),
        ({"weight": 0}, r"human\.jsonl:2: weight: "),
        ({"weight": float("inf")}, r"human\.jsonl:2: weight: "),
        ({"sample": ""}, r"human\.jsonl:2: sample: "),
    ],
)
def test_a_bad_row_is_named(tmp_path: Path, row: dict[str, object], told: str) -> None:
    """File, line and field of what cannot be read, and what would be right."""
    good = label().model_dump()
    path = write_lines(tmp_path / "human.jsonl", [good, {**good, **row}])
    with pytest.raises(InputError, match=told):
        list(read_labels(path))


@pytest.mark.parametrize(
    ("text", "told"),
    [("{", "is not JSON"), ("[1]", "is not an object"), ('{"sample": "s1", "kind": "atom"}', "label: is missing")],
)
def test_what_is_no_label_file_is_refused(tmp_path: Path, text: str, told: str) -> None:
    """A file of something else is refused with its line."""
    path = tmp_path / "human.jsonl"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"human\.jsonl:1: {told}"):
        list(read_labels(path))
    with pytest.raises(InputError, match="cannot be read: No such file"):
        list(read_labels(tmp_path / "nosuch.jsonl"))


def test_spreadsheets_of_other_countries(tmp_path: Path) -> None:
    """Semicolons are read; a file in another encoding says how to save it."""
    path = tmp_path / "ana.csv"
    path.write_text("sample;kind;item;label\ns1;atom;1;正确\n", encoding="utf-8")
    (found,) = labels_in(path)
    assert (found.label, found.annotator) == ("correct", "ana")
    path.write_bytes("sample,kind,item,label\ns1,atom,1,正确\n".encode("gb18030"))
    with pytest.raises(InputError, match="save it as “CSV UTF-8”"):
        list(read_labels(path))


def test_result_lines_stand_in_for_people(tmp_path: Path) -> None:
    """A stronger judge's results can be the labels; what it left unjudged is missing, not wrong."""
    _, verdict = judged("s1", ["correct", "unjudged", "wrong"], judge="strong:judge")
    path = write_lines(tmp_path / "strong.jsonl", [verdict.line()])
    found = list(labels_in(path))
    assert [(one.kind, one.item, one.label) for one in found] == [
        ("atom", 1, "correct"),
        ("atom", 3, "wrong"),
        ("fallback", None, "0"),
    ]
    assert {one.annotator for one in found} == {"strong:judge"}


# --- policies --------------------------------------------------------------------------------------


def test_policies_do_not_mix() -> None:
    """Labels under two versions of the policy are refused together and accepted one at a time."""
    mixed = [label(policy="1"), label(policy="1", item=2), label(policy="2")]
    with pytest.raises(ConfigError, match=r"different policies: 1 \(2 labels\), 2 \(1 labels\); choose one"):
        of_one_policy(mixed)
    assert of_one_policy(mixed, "2") == [mixed[2]]
    with pytest.raises(ConfigError, match="no label was made under policy '3'"):
        of_one_policy(mixed, "3")
    with pytest.raises(ConfigError, match=r"\(none\) \(1 labels\)"):
        of_one_policy([label(policy=""), label(policy="1")])


# --- the store -------------------------------------------------------------------------------------


def test_the_store_keeps_labels(tmp_path: Path) -> None:
    """They come back as they were, by run or all; saying it again replaces what that person said before."""
    mine = label(
        run="run-1", annotator="ana", policy="1", time="2026-03-02", about="ab", text="甲", weight=1.5, note="n"
    )
    with Store.open(tmp_path / "store.db") as store:
        others = [mine.model_copy(update=change) for change in (
            {"annotator": "bo"}, {"policy": "2"}, {"turn": 2}, {"item": None, "kind": "fallback"}, {"run": "run-2"},
        )]  # fmt: skip
        assert store.add_labels([mine, *others]) == 6
        store.add_labels([mine.model_copy(update={"label": "wrong"})])
        found = list(store.labels("run-1"))
        assert len(found) == 5
        assert mine.model_copy(update={"label": "wrong"}) in found
        assert all(other in found for other in others[:4])
        assert len(list(store.labels())) == 6


def test_labels_outlive_their_run(tmp_path: Path) -> None:
    """Deleting a run does not destroy what people did."""
    run, truth = simulate(3)
    (id,) = keep(tmp_path / "store.db", run)
    with Store.open(tmp_path / "store.db") as store:
        store.add_labels(labels_of(run, truth, ["s0000"], run=id))
        store.delete_run(id)
        assert len(list(store.labels(id))) == 3


# --- what a label is about -------------------------------------------------------------------------


def test_another_answer_is_another_thing() -> None:
    """The digest changes with question, passages and answer, not with tags, model or id."""
    sample, _ = judged("s1", ["correct"])
    assert digest(sample) == digest(sample.model_copy(update={"id": "x", "tags": ("t",), "model": "m"}))
    assert digest(sample) != digest(sample.model_copy(update={"answer": "另一个回答。"}))
    assert len(digest(sample)) == 12


def test_the_two_fallback_checks_are_one_place() -> None:
    """`grounded` shows the same fact in two groups; people are asked once. The answer as a whole is one place more."""
    tasks = [slot.task for slot in slots_of(fixtures.grounded("g1"))]
    assert len(tasks) == len(set(tasks)) == 8
    assert tasks[-1] == "accuracy"
    assert tasks.count("check.not_fallback") == 1


# --- drawing ---------------------------------------------------------------------------------------


def pool(sizes: dict[str, int]) -> list[Candidate]:
    return [Candidate(f"{name}-{n}", name, 0.5, 2) for name, size in sizes.items() for n in range(size)]


def test_a_draw_is_random_and_repeatable() -> None:
    """The same seed draws the same samples whatever their order; another seed draws others."""
    everyone = pool({"": 200})
    one, again, other = draw(everyone, 20), draw(everyone[::-1], 20), draw(everyone, 20, seed=1)
    assert one.weights == again.weights
    assert one.weights != other.weights
    assert set(one.weights.values()) == {1.0}
    assert (len(one.weights), one.n, one.n_items) == (20, 200, 40)


def test_every_sample_has_the_same_chance() -> None:
    """Over many seeds each of ten samples is drawn about as often as any other."""
    counts = Counter(id for seed in range(600) for id in draw(pool({"": 10}), 3, seed=seed).weights)
    assert max(counts.values()) - min(counts.values()) < 80
    assert sum(counts.values()) == 1800


@given(st.dictionaries(st.sampled_from("abcd"), st.integers(1, 30), min_size=1), st.integers(1, 60))
def test_weights_add_up_to_the_run(sizes: dict[str, int], n: int) -> None:
    """Each stratum is drawn from as equally as its size allows, and its weights sum to its size."""
    drawn = draw(pool(sizes), n)
    assert len(drawn.weights) == min(n, sum(sizes.values()))
    taken = {stratum.name: stratum.n_drawn for stratum in drawn.strata}
    short = [name for name in sizes if taken[name] < sizes[name]]
    assert max((taken[name] for name in sizes), default=0) - min((taken[name] for name in short), default=99) <= 1
    for name, size in sizes.items():
        weights = [weight for id, weight in drawn.weights.items() if id.startswith(f"{name}-")]
        if weights and len(sizes) > 1:
            assert sum(weights) == pytest.approx(size)


def test_what_has_nothing_to_label_is_not_drawn() -> None:
    """An empty verdict, and samples that were labelled before, are left out; an empty pool says so."""
    run = [judged("a", ["correct"]), judged("b", ["wrong"])]
    found = list(candidates(run, kinds=("atom",), skip={"b"}))
    assert [candidate.id for candidate in found] == ["a"]
    with pytest.raises(ConfigError, match="nothing left to label"):
        draw(candidates(run, kinds=("check",)), 5)


def test_a_sheet_is_blind_and_complete(tmp_path: Path) -> None:
    """A row per label with question, answer and passages; nothing of what the judge said."""
    run = [judged("a", ["correct", "wrong"])]
    drawn = draw(candidates(run), 1)
    rows = list(sheet(run, drawn, run="run-1", annotator="ana", policy="3"))
    assert [(row["kind"], row["item"], row["label"]) for row in rows] == [
        ("atom", 1, ""), ("atom", 2, ""), ("fallback", None, ""),
    ]  # fmt: skip
    assert rows[0]["question"] == "问题a？"
    assert rows[0]["references"].startswith("[1] ")
    assert "资料如此说" not in json.dumps(rows, ensure_ascii=False)
    assert {row["policy"] for row in rows} == {"3"}
    write_sheet(tmp_path / "sheet.jsonl", [{**row, "label": row["choices"].split(" / ")[0]} for row in rows])
    assert [found.about for found in read_labels(tmp_path / "sheet.jsonl")] == [digest(run[0][0])] * 3


def test_a_dialogue_sheet_shows_the_turn() -> None:
    """A criterion is shown with the system prompt and its own turn; validity is part of its label."""
    verdict = fixtures.dialogue("d1")
    turns = tuple(Turn(prompt=f"p{n}", answer=f"a{n}") for n in (1, 2, 3, 4))
    run = [(DialogueSample(id="d1", system_prompt="be kind", turns=turns), verdict)]
    rows = list(sheet(run, draw(candidates(run), 1)))
    assert {row["kind"] for row in rows} == {"criterion"}
    assert all(row["question"] == f"p{row['turn']}" and row["references"] == "be kind" for row in rows)


def test_sample_command(steelyard: Steelyard) -> None:
    """`sample` writes the sheet and says what the draw implies; printed, the sheet alone is on standard output."""
    keep(Path(".steelyard/store.db"), simulate(60)[0])
    done = steelyard("sample", "last", "--for-labelling", 10, "-o", "sheet.csv", "--lang", "en")
    assert done.code == 0
    assert "10 of 60 samples, drawn at random (seed 0): 40 labels to give." in done.out
    assert "represents the whole run" in done.out
    with open("sheet.csv", encoding="utf-8-sig", newline="") as file:
        assert len(list(csv.DictReader(file))) == 40
    printed = steelyard(
        "sample", "last", "--for-labelling", 10, "--stratify", "score", "--kind", "atom", "--lang", "en"
    )
    assert len([json.loads(line) for line in printed.out.splitlines()]) == 30
    assert "keep that column" in " ".join(printed.err.split())
    refused = steelyard("sample", "last", "--for-labelling", 10, "--kind", "atoms")
    assert (refused.code, "there is no 'atoms'" in refused.err) == (2, True)


def test_labels_commands(steelyard: Steelyard) -> None:
    """Labels go into the store and out again; who labelled may be said when they go in."""
    run, truth = simulate(5)
    (id,) = keep(Path(".steelyard/store.db"), run)
    write_labels(Path("in.jsonl"), labels_of(run, truth, ["s0001"], annotator="", run=id))
    assert "3 labels kept" in steelyard("labels", "import", "in.jsonl", "--annotator", "bo").err
    assert steelyard("labels", "export", "out.jsonl", "--run", "last").code == 0
    assert {line["annotator"] for line in lines_of("out.jsonl")} == {"bo"}
    assert all(line["time"] for line in lines_of("out.jsonl"))
