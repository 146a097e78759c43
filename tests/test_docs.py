"""README and docs say what the program does: examples run, links resolve, nothing the program has is left out."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import typer

from steelyard import records
from steelyard.cli import app
from steelyard.config import Settings
from steelyard.judges.endpoint import Endpoint
from steelyard.protocols import get_protocol
from steelyard.wording import words

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md")])
PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue")

# Blocks that would run but for `<!-- not run: … -->` before them. A further one has to be entered here.
NOT_RUN = {"README.md": 1, "README.zh.md": 1, "docs/judges.md": 1, "docs/cli.md": 3}
RUN = ("python", "console")
READ = ("toml", "json")


class Block(NamedTuple):
    """A fenced block, the HTML comment right before it, and the `text` block right after it."""

    line: int
    language: str
    body: str
    comment: str = ""
    output: str = ""


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COMMENT_BEFORE = re.compile(r"<!-- ([^>]*) -->\s*\Z")


def blocks_of(page: Path) -> list[Block]:
    text = page.read_text("utf-8")
    found = list(FENCE.finditer(text))
    blocks = []
    for match, after in zip(found, [*found[1:], None], strict=True):
        comment = COMMENT_BEFORE.search(text[: match.start()])
        follows = after and after[1] == "text" and not text[match.end() : after.start()].strip()
        blocks.append(
            Block(
                line=text.count("\n", 0, match.start()) + 1,
                language=match[1],
                body=match[2],
                comment=comment[1] if comment else "",
                output=after[2] if after and follows else "",
            )
        )
    return blocks


def is_skipped(block: Block) -> bool:
    return block.language in RUN and block.comment.startswith("not run: ")


# --- running ---------------------------------------------------------------------------------------


def assert_shown(expected: str, real: str, place: str) -> None:
    """Each expected line is found in the real output, in this order; `…` stands for anything."""
    lines = [line.strip() for line in real.splitlines()]
    at = 0
    for line in filter(None, map(str.strip, expected.splitlines())):
        if line == "…":
            continue
        pattern = re.compile(".*".join(map(re.escape, line.split("…"))))
        hits = [index for index in range(at, len(lines)) if pattern.fullmatch(lines[index])]
        assert hits, f"{place}: this line is not in the output:\n{line}\n--- the output was:\n{real}"
        at = hits[0] + 1


def run_python(block: Block, names: dict[str, Any], place: str) -> None:
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(compile(block.body, place, "exec"), names)
    assert_shown(block.output, said.getvalue(), place)


def commands_of(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block with the output shown below each; a backslash continues a command."""
    joined = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def run_console(block: Block, environment: dict[str, str], place: str) -> None:
    commands = list(commands_of(block.body))
    assert commands, f"{place}: a console block without a command"
    exit_comment = re.fullmatch(r"exit (\d+)", block.comment)
    wanted = int(exit_comment[1]) if exit_comment else 0
    for command, output in commands:
        done = subprocess.run(
            ["bash", "-c", f"{command} 2>&1"], env=environment, capture_output=True, text=True, check=False, timeout=60
        )
        is_last = command == commands[-1][0]
        status = wanted if is_last else 0
        assert done.returncode == status, f"{place}: {command}\nexited with {done.returncode}:\n{done.stdout}"
        assert_shown(output, done.stdout, f"{place}: {command}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder as a reader has it after cloning: examples/ is there, `steelyard` is on the path, no key is set."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copytree(ROOT / "examples", work / "examples")
    monkeypatch.chdir(work)
    tool = tmp_path / "bin" / "steelyard"
    tool.parent.mkdir()
    tool.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m steelyard "$@"\n')
    tool.chmod(0o755)
    monkeypatch.syspath_prepend(str(work))
    for name in [name for name in os.environ if name.startswith(("STEELYARD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    return {
        **os.environ,
        "PATH": f"{tool.parent}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": str(ROOT / "src"),
        "PYTHONUTF8": "1",
        "COLUMNS": "80",
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, desk: dict[str, str]) -> None:
    """Python and console blocks run from top to bottom and print what the page shows."""
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks_of(page):
        place = f"{name_of(page)}:{block.line}"
        if is_skipped(block):
            continue
        if block.language == "python":
            run_python(block, names, place)
        elif block.language == "console":
            run_console(block, desk, place)


def test_nothing_is_skipped_silently() -> None:
    """The blocks that do not run are exactly those counted here."""
    skipped = {name_of(page): sum(map(is_skipped, blocks_of(page))) for page in PAGES}
    assert {page: count for page, count in skipped.items() if count} == NOT_RUN


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_every_block_has_a_known_language(page: Path) -> None:
    """A typing slip in a block's language cannot keep an example from running."""
    known = {*RUN, *READ, "text", "bash", "markdown"}
    strange = [(block.line, block.language) for block in blocks_of(page) if block.language not in known]
    assert not strange
    assert page.read_text("utf-8").count("\n```") % 2 == 0, "a fence is not closed"


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_settings_and_json_examples_are_valid(page: Path) -> None:
    """Every TOML example is a steelyard.toml (or pyproject) that loads; every JSON example is JSON."""
    for block in blocks_of(page):
        if block.language == "json":
            json.loads(block.body)
        elif block.language == "toml":
            given = tomllib.loads(block.body)
            if "project" in given:
                continue
            settings = Settings.model_validate(given)
            for name, judge in settings.judges.items():
                if judge.get("kind", "openai") == "openai":
                    table = {key: value for key, value in judge.items() if key != "kind"}
                    Endpoint.model_validate({"name": name, **table})
            for name, options in settings.options.items():
                get_protocol(name).parse_options(options)


# --- links -----------------------------------------------------------------------------------------

LINK = re.compile(r"\]\(([^)\s]+)\)|(?:src|href)=\"([^\"]+)\"")


def anchors_of(page: Path) -> set[str]:
    """The anchors of a page's headings, as code hosts make them."""
    text = FENCE.sub("", page.read_text("utf-8"))
    titles = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_relative_links_resolve(page: Path) -> None:
    """Each link inside the project leads to a file, and to a heading where it names one."""
    text = FENCE.sub("", page.read_text("utf-8"))
    for target in (a or b for a, b in LINK.findall(text)):
        if re.match(r"[a-z]+:", target):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.exists(), f"{name_of(page)} links to {target}"
        assert not anchor or anchor in anchors_of(file), f"{name_of(page)} links to {target}, but there is no such heading"


def test_every_page_is_on_the_map() -> None:
    """docs/index.md names each page of docs/."""
    index = (DOCS / "index.md").read_text("utf-8")
    missing = [page.name for page in DOCS.glob("*.md") if page.name != "index.md" and f"({page.name})" not in index]
    assert not missing


# --- completeness ----------------------------------------------------------------------------------


def commands(group: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    for name, command in getattr(group, "commands", {}).items():
        yield (*path, name), command
        yield from commands(command, (*path, name))


def sections(page: Path) -> dict[str, str]:
    """The text below each heading, down to the next heading of the same or a higher level."""
    text = page.read_text("utf-8")
    heads = list(re.finditer(r"^(#+) (.+)$", FENCE.sub(lambda m: " " * len(m.group()), text), re.MULTILINE))
    found = {}
    for index, head in enumerate(heads):
        end = next((h.start() for h in heads[index + 1 :] if len(h[1]) <= len(head[1])), len(text))
        found[head[2].replace("`", "")] = text[head.start() : end]
    return found


def test_cli_page_names_every_command_and_flag() -> None:
    """docs/cli.md has a section per command, and that section names each of its flags."""
    told = sections(DOCS / "cli.md")
    root = typer.main.get_command(app)
    listed = [((), root), *commands(root)]
    for path, command in listed:
        title = " ".join(("steelyard", *path))
        assert title in told, f"docs/cli.md has no section {title!r}"
        for parameter in command.params:
            for flag in (*parameter.opts, *parameter.secondary_opts):
                if flag.startswith("-"):
                    assert f"`{flag}" in told[title] or f" {flag}`" in told[title], f"{title} {flag} is not in docs/cli.md"


def test_cli_page_names_no_flag_that_is_gone() -> None:
    """Every `--flag` that docs/cli.md explains exists in some command."""
    root = typer.main.get_command(app)
    real = {flag for _, command in [((), root), *commands(root)] for p in command.params for flag in p.opts}
    told = set(re.findall(r"`(--[a-z-]+)", (DOCS / "cli.md").read_text("utf-8")))
    assert told - real - {"--help"} == set()


def test_every_help_has_an_example() -> None:
    """`--help` of each command shows one line that can be typed."""
    for path, command in commands(typer.main.get_command(app)):
        if not getattr(command, "commands", None):
            assert "Example:" in (command.help or ""), f"{' '.join(path)} has no example"


@pytest.mark.parametrize("name", PROTOCOLS)
def test_protocol_page_names_every_option_and_score(name: str) -> None:
    """Each option and each score of a protocol is on its page."""
    protocol = get_protocol(name)
    text = (DOCS / f"{name}.md").read_text("utf-8")
    missing = [word for word in (*protocol.options.model_fields, *protocol.scores) if f"`{word}`" not in text]
    assert not missing


def test_judges_page_names_every_setting() -> None:
    """Each key of a [judges.NAME] table is on the page about judges."""
    text = (DOCS / "judges.md").read_text("utf-8")
    missing = [name for name in Endpoint.model_fields if name != "name" and f"`{name}`" not in text]
    assert not missing


def labels() -> set[str]:
    """Every label an item can carry."""
    kinds = (
        records.AtomLabel, records.TopicLabel, records.SupportLabel, records.CoverageLabel, records.Depth,
        records.Validity, records.ComplianceLabel, records.Source, records.Status,
    )  # fmt: skip
    return {str(label) for kind in kinds for label in get_args(kind)}


def flags_in_source() -> set[str]:
    """Every flag the wording explains, and every one that a transcript parser may add."""
    told = set(words("en")["flag"])
    folder = ROOT / "src" / "steelyard" / "transcripts"
    source = "\n".join(file.read_text("utf-8") for file in folder.glob("*.py"))
    added = re.findall(r"(?:with_flags|flags=|flags =|flag=|odd|_unbelieved)[^\n]*", source)
    quoted = {word for line in added for word in re.findall(r'"([a-z]+(?:_[a-z]+)+)"', line)}
    return told | (quoted - FIELDS)


# Quoted on the same lines, but names of fields.
FIELDS = {"on_topic", "own_answer", "validity_reason", "quote_verified"}


def test_results_page_explains_every_label_flag_and_reason() -> None:
    """docs/results.md has each label, each flag and each reason for `unjudged`, and each field of a result line."""
    text = (DOCS / "results.md").read_text("utf-8")
    items = (records.Atom, records.Check, records.Part, records.Sentence, records.KeyPoint, records.Criterion)
    models = (*items, records.Evidence, records.Verdict, records.Usage)
    fields = {name for model in models for name in model.model_fields} - {"notes"}
    wanted = labels() | flags_in_source() | set(words("en")["unjudged"]) | fields
    assert sorted(word for word in wanted if f"`{word}`" not in text) == []


def test_readme_tree_matches_the_source() -> None:
    """Each module and package of src/steelyard is in the annotated tree, and nothing else is."""
    source = ROOT / "src" / "steelyard"
    real = {path.name for path in source.glob("*.py")} | {f"{path.name}/" for path in source.iterdir() if path.is_dir()}
    real -= {"__pycache__/", "__main__.py"}
    text = (DOCS / "architecture.md").read_text("utf-8")
    tree = next(body for language, body in ((b.language, b.body) for b in blocks_of(DOCS / "architecture.md"))
                if language == "text" and "src/steelyard" in body)  # fmt: skip
    told = set(re.findall(r"^  (\w+(?:\.py|/))", tree, re.MULTILINE))
    assert told == real
    assert "records" in text


def test_readmes_have_the_same_structure() -> None:
    """The Chinese README has as many sections and code blocks as the English one, and they link to each other."""
    pages = [ROOT / "README.md", ROOT / "README.zh.md"]
    shapes = [
        (len(sections(page)), [block.language for block in blocks_of(page)], [b.body for b in blocks_of(page) if b.language == "console"])
        for page in pages
    ]  # fmt: skip
    assert shapes[0] == shapes[1]
    assert "(README.zh.md)" in pages[0].read_text("utf-8")
    assert "(README.md)" in pages[1].read_text("utf-8")
