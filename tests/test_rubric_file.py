"""Rubric files: what may be written, and what an error says."""

from __future__ import annotations

import tomllib
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.cli.rubric import MARKDOWN_EXAMPLE, TOML_EXAMPLE
from steelyard.errors import ConfigError, InputError
from steelyard.protocols.rubric_file import (
    TAKEN,
    Rubric,
    find_rubric,
    inline_rubric,
    read_rubric,
    read_rubric_file,
    shipped_rubrics,
)

TONE = """title = "Tone"

[polite]
ask = "Is it polite?"

[solves]
ask = "How far does it solve the problem?"
scale = ["not at all", "in part", "fully"]
weight = 2.5

[refund]
ask = "What about a refund?"
when = "a refund is asked for"
labels = { granted = 1, refused = 0.5, ignored = 0, unclear = "hard to tell" }
veto = ["ignored"]

[blame]
ask = "Is the customer blamed?"
good = "no"
veto = true
"""
TONE_MARKDOWN = """# Tone

## polite
Is it polite?

## solves
How far does it
solve the problem?
1. not at all
2. in part
3. fully
weight: 2.5

## refund
What about a refund?
when: a refund is asked for
- granted (1)
- refused (0.5)
- ignored (0)
- unclear: hard to tell
veto: ignored

## blame
Is the customer blamed?
good: no
veto
"""


def test_both_forms_say_the_same() -> None:
    """TOML and Markdown are two ways to write one rubric; comments and layout do not change it."""
    toml = read_rubric(TONE, "tone", "tone.toml")
    assert toml == read_rubric(TONE_MARKDOWN, "tone", "tone.md")
    commented = TONE.replace("\n", "\n# a comment\n").replace("\n", "\r\n")
    assert read_rubric(commented, "tone", "tone.toml").protocol == toml.protocol
    spaced = TONE_MARKDOWN.replace("\n\n", "\n<!-- not\nread -->\n\n\n")
    assert read_rubric(spaced, "tone", "tone.md").digest == toml.digest


def test_labels_points_and_vetoes() -> None:
    """Points are exact shares of what a criterion can earn; a veto fails those without points, or those it names."""
    polite, solves, refund, blame = read_rubric(TONE, "tone", "tone.toml").criteria
    assert polite.shares == {"yes": 1, "no": 0}
    assert polite.names == ("yes", "no")
    assert solves.shares == {"1": 0, "2": Fraction(1, 2), "3": 1}
    assert solves.weight == Fraction(5, 2)
    assert refund.shares == {"granted": 1, "refused": Fraction(1, 2), "ignored": 0}
    assert refund.names == ("granted", "refused", "ignored", "unclear", "not_applicable")
    assert refund.veto == ("ignored",)
    assert blame.shares == {"yes": 0, "no": 1}
    assert blame.veto == ("yes",)


def test_a_change_that_counts_is_another_protocol() -> None:
    """Weights, words and vetoes change the name of the protocol, so that no two rubrics are taken for one."""
    names = {
        read_rubric(text, "tone", "tone.toml").protocol
        for text in (TONE, TONE.replace("2.5", "3"), TONE.replace("polite?", "kind?"), TONE.replace("veto = true", ""))
    }
    assert len(names) == 4
    assert all(name.startswith("rubric:tone@") for name in names)


@pytest.mark.parametrize("example", [(TOML_EXAMPLE, "x.toml"), (MARKDOWN_EXAMPLE, "x.md")], ids=["toml", "markdown"])
def test_the_examples_of_rubric_new_are_rubrics(example: tuple[str, str]) -> None:
    """What `rubric new` writes shows every kind of criterion, and both forms are the same rubric."""
    text, source = example
    rubric = read_rubric(text, "x", source)
    assert [one.name for one in rubric.criteria] == ["polite", "blame", "solves", "refund"]
    assert rubric.criteria[1].veto == ("yes",)
    assert rubric.criteria[2].weight == 2
    assert rubric.criteria[3].when


def test_shipped_rubrics_are_in_both_languages() -> None:
    """Every question, condition, scale point and title is in Chinese and in English."""
    assert list(shipped_rubrics()) == ["citation-quality", "code-answer", "medical-safety", "summary", "support-tone"]
    for name in shipped_rubrics():
        rubric, source = find_rubric(name)
        assert source == f"rubric:{name}"
        assert rubric.language is None
        phrases = [rubric.title]
        for one in rubric.criteria:
            phrases += [
                one.ask,
                *([one.when] if one.when else []),
                *(label.means for label in one.labels if label.means),
            ]
        assert all(phrase.en.isascii() and phrase.zh and not phrase.zh.isascii() for phrase in phrases)
        assert Rubric.stored(rubric.model_dump(mode="json")) == rubric


# --- errors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("POLITEwieght = 2\n", "t.toml:3: polite.wieght: is not a field of a criterion; did you mean weight"),
        ("[polite]\nweight = 2\n", "t.toml:1: polite.ask: is missing: the question that the judge answers"),
        ("POLITEweight = -1\n", "t.toml:3: polite.weight: a weight must be a number from 0 to 1,000,000, not -1"),
        ("POLITEweight = nan\n", "t.toml:3: polite.weight: a weight must be a number"),
        ("POLITEweight = true\n", "t.toml:3: polite.weight: a weight must be a number"),
        ("POLITEweight = 0\n", "t.toml:3: polite.weight: must be above 0"),
        ("[polite]\nask = ''\n", "t.toml:2: polite.ask: must be text"),
        ("POLITEscale = ['one']\n", "t.toml:3: polite.scale: must be a list of 2 to 20"),
        ("[a]\nask = 'x?'\nPOLITElabels = { good = 0, bad = 0 }\n", "t.toml:5: polite.labels: has points, but none"),
        ("POLITElabels = { 'a;b' = 1, c = 0 }\n", "t.toml:3: polite.labels.a;b: is not a label"),
        ("POLITElabels = { unjudged = 1, c = 0 }\n", "polite.labels.unjudged: this label is taken"),
        ("POLITEgood = 'maybe'\n", 't.toml:3: polite.good: must be "yes" or "no"'),
        ("POLITEgood = 'no'\nscale = ['a', 'b']\n", "t.toml:3: polite.good: does not go with scale"),
        ("POLITEveto = ['perhaps']\n", "t.toml:3: polite.veto: must be true or labels of this"),
        ("POLITElabels = { a = 'x', b = 'y' }\nveto = true\n", "t.toml:4: polite.veto: needs a label without points"),
        ("[atom]\nask = 'x?'\n", "t.toml:1: atom: this name is taken"),
        ("['a b']\nask = 'x?'\n", "a b: is not a name for a criterion"),
        ("[a]\nask = 'x?'\n[A]\nask = 'y?'\n", "t.toml:3: A: is there twice"),
        ("titel = 'x'\n", "t.toml:1: titel: is not a setting of a rubric (title, for)"),
        ("for = 'answers'\n[a]\nask = 'x?'\n", 't.toml:1: for: must be "answer" or "dialogue"'),
        ("title = 'x'\n", "t.toml: holds no criterion"),
        ("[a]\nask = \n", "t.toml:2: not valid TOML"),
        ("[a]\nask = { fr = 'x' }\n", "t.toml:2: a.ask.fr: is not a language"),
    ],
)
def test_an_error_names_file_line_and_field(text: str, says: str) -> None:
    """A slip is one line that says where it is and what to write instead."""
    with pytest.raises(InputError) as slip:
        read_rubric(text.replace("POLITE", "[polite]\nask = 'x?'\n"), "t", "t.toml")
    assert says in str(slip.value)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Is it good?\n", "t.md:1: stands before the first criterion"),
        ("# A\n# B\n", "t.md:2: title: a rubric has one title"),
        ("## a\nx?\n## a\ny?\n", "t.md:3: a: is there twice"),
        ("## a\nx?\nwieght: 2\n", "t.md:3: a.wieght: is not a field of a criterion; did you mean weight?"),
        ("## a\nx?\nweight: heavy\n", "t.md:3: a.weight: a weight must be a number"),
        ("## a\nx?\n1. bad\n3. good\n", "t.md:4: a.scale: this point should be number 2"),
        ("## a\nx?\n- b (1)\n- b (0)\n", "t.md:4: a.labels.b: is there twice"),
        ("## a\n\n## b\nx?\n", "t.md:1: a.ask: is missing"),
        ("<!-- ## a\nx?", "t.md: holds no criterion"),
        ("## title\nx?\n", "t.md:1: title: this name is taken"),
    ],
)
def test_markdown_errors_name_the_line(text: str, says: str) -> None:
    """The same for Markdown, whose lines are known exactly."""
    with pytest.raises(InputError) as slip:
        read_rubric(text, "t", "t.md")
    assert says in str(slip.value)


def test_files_that_are_no_rubrics(tmp_path: Path) -> None:
    """A file that is not there, not text, of another kind or far too large is refused by name."""
    with pytest.raises(ConfigError, match=r"no rubric file nowhere.toml .* shipped are citation-quality"):
        find_rubric("nowhere.toml")
    with pytest.raises(ConfigError, match="rubric needs a file or a name"):
        find_rubric("")
    for name, content, says in (
        ("a.toml", b"\xff\xfe", "is not UTF-8 text"),
        ("a.json", b"{}", "ends in .toml, .md, .markdown"),
        ("b.toml", b"#" * 300_000, "more than 200,000 bytes"),
    ):
        (tmp_path / name).write_bytes(content)
        with pytest.raises(InputError, match=says):
            read_rubric_file(tmp_path / name)


@pytest.mark.parametrize(
    "text",
    [
        "[a]\nask = 'x?'\nweight = " + "9" * 5000,
        "a = " + "[" * 5000 + "]" * 5000,
        "[a]\nask = '" + "x" * 5000 + "'",
        "\n".join(f"[c{n}]\nask = 'x?'" for n in range(200)),
        "[a]\nask = 'x?'\nlabels = {" + ", ".join(f"l{n} = {n}" for n in range(50)) + "}",
        "[a]\nask = 'x?'\nweight = 1e300",
        "[a]\nask = 'x?'\nlabels = { a = { points = 1, deep = { deep = 1 } }, b = 0 }",
        "[a.b.c]\nask = 'x?'",
    ],
)
def test_hostile_files_are_refused(text: str) -> None:
    """Huge numbers, deep nesting and thousands of criteria are an error, not a crash and not a long wait."""
    with pytest.raises(InputError):
        read_rubric(text, "t", "t.toml")


def test_a_rubric_that_talks_to_the_reader_is_text() -> None:
    """Placeholders, braces and code in a question stay what they are."""
    ask = "$$$answer$$$ {0} {self.__class__} </criteria> ${x}?"
    rubric = inline_rubric({"a": {"ask": ask}})
    assert rubric.criteria[0].ask.en == ask


@given(st.text(max_size=400))
def test_any_text_is_a_rubric_or_an_input_error(text: str) -> None:
    """Whatever a file holds, reading it ends with a rubric or with an error for the user."""
    for source in ("t.toml", "t.md"):
        with suppress(InputError):
            assert read_rubric(text, "t", source).criteria


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(["ask", "scale", "labels", "yes", "no", "good", "weight", "veto", "when", "other"])


@given(st.dictionaries(st.text(max_size=8), st.dictionaries(FIELDS, VALUES, max_size=5) | VALUES, max_size=4))
def test_any_table_is_a_rubric_or_an_input_error(table: dict[str, Any]) -> None:
    """The same for tables that are sent over HTTP or given in Python."""
    try:
        rubric = inline_rubric(table)
    except InputError:
        return
    for one in rubric.criteria:
        assert one.name.casefold() not in TAKEN
        assert all(0 <= share <= 1 for share in one.shares.values())
        assert set(one.veto) <= set(one.names)


NAMES = st.from_regex(r"[a-z][a-z0-9_]{0,10}", fullmatch=True).filter(lambda name: name not in (*TAKEN, "title", "for"))
TEXTS = st.from_regex(r"[A-Z][a-z]{2,8}( [a-z]{2,8}){0,4}\?", fullmatch=True)
CRITERIA = st.fixed_dictionaries(
    {"ask": TEXTS},
    optional={
        "weight": st.integers(1, 99),
        "when": TEXTS,
        "veto": st.just(True),
        "scale": st.lists(TEXTS, min_size=2, max_size=5),
    },
)


@given(st.dictionaries(NAMES, CRITERIA, min_size=1, max_size=5))
def test_what_is_written_is_read(table: dict[str, dict[str, Any]]) -> None:
    """The same criteria come out of a table, of TOML and of Markdown, and out of what a manifest keeps."""
    toml, markdown = [], []
    for name, one in table.items():
        toml.append(f"[{name}]")
        toml += [f"{key} = {'true' if value is True else repr(value)}" for key, value in one.items()]
        markdown += [f"## {name}", one["ask"]]
        markdown += [f"{at}. {text}" for at, text in enumerate(one.get("scale", ()), start=1)]
        markdown += [f"{key}: {one[key]}" for key in ("weight", "when") if key in one]
        markdown += ["veto"] if "veto" in one else []
    rubric = inline_rubric(table)
    assert tomllib.loads("\n".join(toml)) == table
    assert read_rubric("\n".join(toml), "t", "t.toml").digest == rubric.digest
    assert read_rubric("\n".join(markdown), "t", "t.md").digest == rubric.digest
    assert Rubric.stored(rubric.model_dump(mode="json")) == rubric
