"""README and docs say what the program does: examples run, links resolve, nothing the program has is left out."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple, get_args

import pytest
import typer
import yaml

from command import installed_plugin
from steelyard import records, tasks, testing
from steelyard.cli import app, main
from steelyard.judges.endpoint import Endpoint
from steelyard.judges.providers import providers
from steelyard.judges.verifiers.folder import VerifierFile
from steelyard.protocols import get_protocol
from steelyard.protocols.rubric_file import read_rubric
from steelyard.settings import RunDefaults, SettingsFile
from steelyard.text.wording import words

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*ROOT.glob("*.md"), *DOCS.glob("*.md"), *DOCS.glob("*/*.md")])
PROTOCOLS = ("atomic", "grounded", "scorecard", "dialogue", "retrieval", "pairwise")

# Blocks that do not run: those in bash (they need a key or a network), and those after `<!-- not run: … -->`.
# A further one has to be entered here.
NOT_RUN = {
    "README.md": 3,
    "README.zh.md": 3,
    "docs/agreement.md": 1,
    "docs/cli.md": 6,
    "docs/data-formats.md": 2,
    "docs/importers.md": 1,
    "docs/integrations.md": 8,
    "docs/judges.md": 2,
    "docs/models.md": 5,
    "docs/pairwise.md": 1,
    "docs/rubric.md": 1,
    "docs/scale.md": 6,
    "docs/serve.md": 4,
    "docs/viewer.md": 1,
    "docs/zh/importers.md": 2,
    "docs/zh/judges.md": 1,
    "docs/zh/rubric.md": 1,
    "docs/zh/team.md": 4,
    "docs/zh/trust.md": 2,
    "docs/zh/viewer.md": 1,
}
RUN = ("python", "console")
# A command that takes so many seconds hangs; on a busy machine any takes long.
HANGS = 600
READ = ("toml", "json", "yaml")


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
    for match, after in zip_longest(found, found[1:]):
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
    return block.language == "bash" or (block.language in RUN and block.comment.startswith("not run: "))


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
        exec(compile(block.body, place, "exec", dont_inherit=True), names)
    assert_shown(block.output, said.getvalue(), place)


def commands_of(body: str) -> Iterator[tuple[str, str]]:
    """The commands of a console block with the output shown below each; a backslash continues a command."""
    joined = body.replace("\\\n", " ")
    for part in re.split(r"^\$ ", joined, flags=re.MULTILINE)[1:]:
        command, _, output = part.partition("\n")
        yield command, output


def own_words(command: str) -> list[str]:
    """The words of a plain call of `steelyard`; none for what needs a shell."""
    lexer = shlex.shlex(command, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    words = list(lexer)
    plain = not re.search(r"[$`*~]", command) and not any(set(word) <= set("();<>|&") for word in words)
    return words if plain and words[0] == "steelyard" else []


def run_command(command: str, environment: dict[str, str]) -> tuple[int, str]:
    """Exit code and output; a plain call of `steelyard` needs no process of its own."""
    if words := own_words(command):
        said = io.StringIO()
        with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
            patch.setattr(sys, "argv", words)
            with pytest.raises(SystemExit) as ended:
                main()
        return int(ended.value.code or 0), said.getvalue()
    shell = ["bash", "-c", f"{{ {command}\n}} 2>&1"]
    done = subprocess.run(shell, env=environment, capture_output=True, text=True, check=False, timeout=HANGS)
    return done.returncode, done.stdout


def run_console(block: Block, environment: dict[str, str], place: str) -> None:
    commands = list(commands_of(block.body))
    assert commands, f"{place}: a console block without a command"
    exit_comment = re.fullmatch(r"exit (\d+)", block.comment)
    wanted = int(exit_comment[1]) if exit_comment else 0
    for number, (command, output) in enumerate(commands, start=1):
        code, said = run_command(command, environment)
        status = wanted if number == len(commands) else 0
        assert code == status, f"{place}: {command}\nexited with {code}:\n{said}"
        assert_shown(output, said, f"{place}: {command}")


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """A folder as a reader has it after cloning: examples/ is there, `steelyard` is on the path, no key is set."""
    work = tmp_path / "work"
    work.mkdir()
    shutil.copytree(ROOT / "examples", work / "examples")
    monkeypatch.chdir(work)
    tools = tmp_path / "bin"
    tools.mkdir()
    # Whatever other plugins are installed here, a reader has this one.
    for name, module in (("steelyard", "steelyard"), ("pytest", "pytest -p steelyard -p xdist.plugin")):
        (tools / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" -m {module} "$@"\n')
        (tools / name).chmod(0o755)
    plugin = installed_plugin(tmp_path / "plugin")
    monkeypatch.setattr(testing, "bench", None)
    monkeypatch.syspath_prepend(str(work))
    for name in [name for name in os.environ if name.startswith(("STEELYARD_", "OPENAI_"))]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "80")
    return {
        **os.environ,
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "PYTHONPATH": f"{ROOT / 'src'}{os.pathsep}{plugin}",
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "PYTHONUTF8": "1",
    }


@pytest.mark.parametrize("page", PAGES, ids=name_of)
def test_examples_run(page: Path, desk: dict[str, str]) -> None:
    """Python and console blocks run from top to bottom and print what the page shows; files are there when they do."""
    names: dict[str, Any] = {"__name__": "docs"}
    for block in blocks_of(page):
        place = f"{name_of(page)}:{block.line}"
        if is_skipped(block):
            continue
        if file := re.fullmatch(r"file ([\w.]+)", block.comment):
            Path(file[1]).write_text(block.body, encoding="utf-8")
        elif block.language == "python":
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
    """Every TOML example is a file of its kind that loads; every JSON example is JSON."""
    for block in blocks_of(page):
        if block.language == "json":
            json.loads(block.body)
        elif block.language == "yaml":
            assert yaml.safe_load(block.body)
        elif block.language == "toml":
            if "rubric" in block.comment:
                assert read_rubric(block.body, "example", "example.toml").criteria
                continue
            given = tomllib.loads(block.body)
            if "project" in given:
                continue
            if block.comment == "verifier.toml":
                VerifierFile.model_validate(given)
                continue
            settings = SettingsFile.model_validate(given)
            for name, judge in settings.judges.items():
                if (kind := judge.get("kind", "openai")) in providers():
                    table = {key: value for key, value in judge.items() if key != "kind"} | {"provider": kind}
                    Endpoint.model_validate({"name": name, "base_url": "https://api.openai.com/v1", **table})
            for name, options in settings.options.items():
                get_protocol(name).parse_options(options)


def installed(folder: Path, page: Path, module: str, code: str) -> None:
    """A package as the page describes it: its code, and the entry point of its pyproject example."""
    (folder / f"{module}.py").write_text(code, encoding="utf-8")
    project = next(tomllib.loads(b.body)["project"] for b in blocks_of(page) if "[project]" in b.body)
    info = folder / f"{project['name'].replace('-', '_')}-{project['version']}.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {project['name']}\nVersion: {project['version']}\n")
    points = [
        f"[{group}]\n{name} = {target}\n"
        for group, listed in project["entry-points"].items()
        for name, target in listed.items()
    ]
    (info / "entry_points.txt").write_text("".join(points))


def test_own_judge_and_protocol_work_by_name(desk: dict[str, str], tmp_path: Path) -> None:
    """The judge of docs/judges.md and the protocol of docs/new-protocol.md are found by their entry points."""
    site = tmp_path / "site"
    site.mkdir()
    judge = next(b.body for b in blocks_of(DOCS / "judges.md") if "class WordForWord" in b.body)
    installed(site, DOCS / "judges.md", "my_judges", judge.partition("\n\nrow = ")[0])
    protocol = next(b.body for b in blocks_of(DOCS / "new-protocol.md") if "PROTOCOL = " in b.body)
    installed(site, DOCS / "new-protocol.md", "citations", protocol)
    row = {"question": "When?", "references": ["It opens at nine."], "answer": "It opens at nine [1]. So it is [7]."}
    Path("cited.jsonl").write_text(json.dumps(row), encoding="utf-8")

    def judged(arguments: str) -> tuple[int, dict[str, Any]]:
        command = [
            "bash",
            "-c",
            f"steelyard run cited.jsonl -j word-for-word -o out.jsonl --progress quiet {arguments}",
        ]
        paths = os.pathsep.join([str(site), desk["PYTHONPATH"]])
        done = subprocess.run(command, env={**desk, "PYTHONPATH": paths}, capture_output=True, text=True, timeout=HANGS)
        assert done.returncode in (0, 4), done.stderr
        return done.returncode, json.loads(Path("out.jsonl").read_text("utf-8"))

    status, line = judged("-p atomic")
    assert (status, line["judge"], line["status"]) == (0, "word-for-word", "judged")
    status, line = judged("-p citations -O thorough=true")
    assert (status, line["protocol"], line["scores"]) == (4, "citations", {"sound": 0})
    assert [item["label"] for item in line["items"]] == ["unjudged", "loose"]


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
        assert not anchor or anchor in anchors_of(file), f"{name_of(page)}: no such heading: {target}"


def test_every_page_is_on_the_map() -> None:
    """docs/index.md names each page of docs/."""
    index = (DOCS / "index.md").read_text("utf-8")
    pages = [page.relative_to(DOCS).as_posix() for page in DOCS.rglob("*.md")]
    assert [page for page in pages if page != "index.md" and f"({page})" not in index] == []


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
                    assert f"`{flag}" in told[title] or f" {flag}`" in told[title], (
                        f"{title} {flag} is not in docs/cli.md"
                    )


def test_cli_page_names_no_flag_that_is_gone() -> None:
    """Every `--flag` that docs/cli.md explains exists in some command."""
    root = typer.main.get_command(app)
    parameters = [p for _, command in [((), root), *commands(root)] for p in command.params]
    real = {flag for p in parameters for flag in (*p.opts, *p.secondary_opts)}
    told = set(re.findall(r"`(--[a-z-]+)", (DOCS / "cli.md").read_text("utf-8")))
    assert told - real - {"--help"} == set()


def test_every_help_has_an_example() -> None:
    """`--help` of each command shows one line that can be typed."""
    for path, command in commands(typer.main.get_command(app)):
        if not getattr(command, "commands", None):
            assert "Example:" in (command.help or ""), f"{' '.join(path)} has no example"


@pytest.mark.parametrize("name", [*PROTOCOLS, "rubric:support-tone"])
def test_protocol_page_names_every_option_and_score(name: str) -> None:
    """Each option and each score of a protocol is on its page."""
    protocol = get_protocol(name)
    text = (DOCS / f"{protocol.family}.md").read_text("utf-8")
    missing = [word for word in (*protocol.options.model_fields, *protocol.scores) if f"`{word}`" not in text]
    assert not missing


def test_judges_page_names_every_setting() -> None:
    """Each key of a [judges.NAME] table is on the page about judges."""
    text = (DOCS / "judges.md").read_text("utf-8")
    missing = [name for name in Endpoint.model_fields if name != "name" and f"`{name}`" not in text]
    assert not missing


def test_cli_page_shows_every_setting() -> None:
    """The settings example of docs/cli.md has each key of the [run] table and each table of the file."""
    shown = tomllib.loads(next(block.body for block in blocks_of(DOCS / "cli.md") if block.language == "toml"))
    assert set(shown) == set(SettingsFile.model_fields)
    assert set(shown["run"]) == set(RunDefaults.model_fields)


def labels() -> set[str]:
    """Every label an item can carry."""
    kinds = (
        records.AtomLabel, records.TopicLabel, records.SupportLabel, records.CoverageLabel, records.Depth,
        records.Validity, records.ComplianceLabel, records.Source, records.Status,
    )  # fmt: skip
    return {str(label) for kind in kinds for label in get_args(kind)}


# Quoted in the same modules, but keys of other documents.
NOT_OURS = {"criteria_results", "criterion_id", "evaluation_report", "extra_forbidden", "political_date"}


def words_in_source() -> set[str]:
    """Every flag, label, check, kind and score that a protocol or a transcript parser can write, found as a literal."""
    source = ROOT / "src" / "steelyard"
    files = [*source.glob("protocols/*.py"), *source.glob("protocols/transcripts/*.py")]
    trees = [ast.parse(file.read_text("utf-8")) for file in files]
    literals = {
        node.value
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    functions = {node.name for tree in trees for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    values = [value for module in (records, tasks) for value in vars(module).values() if isinstance(value, type)]
    models = [value for value in values if hasattr(value, "model_fields")]
    fields = {name for model in models for name in model.model_fields}
    flags = literals & set(words("en")["flag"])
    expected = {expectation.name for one in PROTOCOLS for expectation in get_protocol(one).expectations}
    others = fields | functions | expected | NOT_OURS
    coined = {word for word in literals if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", word)} - others
    assert {"injection_suspected", "beyond_tolerance", "blocks_conflict"} <= flags | coined
    return flags | coined


def test_results_page_explains_every_label_flag_and_reason() -> None:
    """docs/results.md has each label, each flag and each reason for `unjudged`, and each field of a result line."""
    text = (DOCS / "results.md").read_text("utf-8")
    items = (records.Atom, records.Check, records.Part, records.Sentence, records.KeyPoint, records.Criterion)
    models = (*items, records.Evidence, records.Verdict, records.Usage)
    fields = {name for model in models for name in model.model_fields} - {"notes"}
    wanted = labels() | words_in_source() | set(words("en")["unjudged"]) | fields
    assert sorted(word for word in wanted if f"`{word}`" not in text) == []


def test_tree_matches_the_source() -> None:
    """Each module and package of src/steelyard is in the annotated tree, and nothing else is."""
    source = ROOT / "src" / "steelyard"
    folders = {f"{path.parent.name}/" for path in source.glob("*/__init__.py")}
    real = folders | {path.name for path in source.glob("*.py")} - {"__main__.py"}
    tree = next(block.body for block in blocks_of(DOCS / "architecture.md") if block.body.startswith("src/steelyard/"))
    assert set(re.findall(r"^  (\w+(?:\.py|/))  ", tree, re.MULTILINE)) == real


def test_readmes_have_the_same_structure() -> None:
    """The Chinese README has the sections, blocks and commands of the English one, and they link to each other."""
    pages = [ROOT / "README.md", ROOT / "README.zh.md"]
    english, chinese = (blocks_of(page) for page in pages)
    assert len(sections(pages[0])) == len(sections(pages[1]))
    assert [block.language for block in english] == [block.language for block in chinese]
    shared = ("console", "bash")
    assert [b.body for b in english if b.language in shared] == [b.body for b in chinese if b.language in shared]
    assert "(README.zh.md)" in pages[0].read_text("utf-8")
    assert "(README.md)" in pages[1].read_text("utf-8")
