"""What is published fits together: versions, workflows, navigation. `make release-check` tries the packages."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

import yaml

import steelyard

ROOT = Path(__file__).parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))


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
    names = re.findall(r"Python :: (3\.\d+)$", "\n".join(PROJECT["project"]["classifiers"]), re.MULTILINE)
    assert PROJECT["project"]["requires-python"] == f">={names[0]}"
    found = jobs()
    for name in ("test.test", "test.wheel", "release.build"):
        assert found[name]["strategy"]["matrix"]["python"] == names


def test_workflows_may_only_read() -> None:
    """A workflow's token can read and nothing else, unless a job asks for more."""
    for file in WORKFLOWS:
        assert yaml.safe_load(file.read_text("utf-8"))["permissions"] == {"contents": "read"}


def test_navigation_has_every_page() -> None:
    """The site's navigation has every page of docs/."""
    listed = (ROOT / "mkdocs.yml").read_text("utf-8")
    pages = [page.relative_to(ROOT / "docs").as_posix() for page in (ROOT / "docs").rglob("*.md")]
    assert [page for page in pages if f": {page}\n" not in listed] == []
