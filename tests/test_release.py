"""What is published fits together: versions, workflows, navigation. `make release-check` tries the packages."""

from __future__ import annotations

import importlib.util
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

import steelyard

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
PYTHONS = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)


def jobs() -> dict[str, Any]:
    return {
        f"{file.stem}.{name}": job
        for file in WORKFLOWS
        for name, job in yaml.safe_load(file.read_text("utf-8"))["jobs"].items()
    }


def test_version_is_written_once() -> None:
    """The build takes the version from the source file, and no other file of the project states one."""
    assert PROJECT["project"]["dynamic"] == ["version"]
    source = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{steelyard.__version__}"' in source.read_text("utf-8")


def test_workflows_use_targets_that_exist() -> None:
    """Each `make` of a workflow is a target of the Makefile."""
    makefile = (ROOT / "Makefile").read_text("utf-8")
    steps = [step.get("run", "") for job in jobs().values() for step in job["steps"]]
    used = {target for step in steps for target in re.findall(r"\bmake ([\w-]+)", step)}
    assert {"test", "integrations", "coverage", "docs", "release-check"} <= used
    assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in used)


def test_every_supported_python_is_tested() -> None:
    """Tests, wheel and release run on each Python that the classifiers name, from the oldest that is allowed."""
    assert PROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"
    found = jobs()
    for name in ("test.test", "test.wheel", "release.build"):
        assert found[name]["strategy"]["matrix"]["python"] == PYTHONS


def test_workflows_may_only_read() -> None:
    """A workflow's token can read and nothing else, unless a job asks for more."""
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_navigation_has_every_page() -> None:
    """The site's navigation has every page of docs/."""
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f": {page}\n" not in listed] == []


LOCKED = re.compile(
    r"^([A-Za-z0-9._-]+)==([^\s;]+)(?: ; ([^\\\n]+?))?((?: \\\n    --hash=sha256:[0-9a-f]{64})+)$", re.MULTILINE
)


@pytest.mark.parametrize("python", PYTHONS)
def test_the_lock_has_what_development_needs(python: str) -> None:
    """One version of everything that the package and its tests ask for, with hashes, and no address of a registry."""
    text = (ROOT / "packaging" / "dev.lock").read_text("utf-8")
    assert LOCKED.sub("", text).split() == []
    environment = {"python_version": python, "python_full_version": f"{python}.0", "extra": ""}
    locked: dict[str, str] = {}
    for name, version, marker, _ in LOCKED.findall(text):
        if not marker or Marker(marker).evaluate(environment):
            assert locked.setdefault(canonicalize_name(name), version) == version
    for wanted in map(Requirement, [*PROJECT["project"]["dependencies"], *PROJECT["dependency-groups"]["dev"]]):
        if not wanted.marker or wanted.marker.evaluate(environment):
            assert wanted.specifier.contains(locked[canonicalize_name(wanted.name)], prereleases=True), wanted


def test_the_generated_reference_has_every_command_and_option() -> None:
    """The site's page of commands is written from the code: a section for each, with all its flags."""
    spec = importlib.util.spec_from_file_location("cli_reference", ROOT / "packaging" / "cli_reference.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    sections = dict(re.findall(r"^## `([^`]+)`\n(.*?)(?=^## |\Z)", module.cli_reference(), re.MULTILINE | re.DOTALL))
    called = dict(module.commands())
    assert sections.keys() == called.keys()
    assert {"steelyard run", "steelyard runs watch", "steelyard judges check"} <= called.keys()
    for words, command in called.items():
        flags = [flag for parameter in command.params for flag in parameter.opts if flag.startswith("-")]
        assert [flag for flag in flags if not re.search(rf"(?<![\w-]){flag}(?![\w-])", sections[words])] == [], words
    for anchor in re.findall(r"\(#([\w-]+)\)", module.cli_reference()):
        assert anchor in {words.replace(" ", "-") for words in called}
