"""docs/architecture.md describes the package as it is: its reading paths, and its tree."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import steelyard

SOURCE = Path(steelyard.__file__).parent
PAGE = (Path(__file__).parents[1] / "docs" / "architecture.md").read_text("utf-8")


def section(title: str) -> str:
    return PAGE.split(f"## {title}\n")[1].split("\n## ")[0]


def dotted(path: Path) -> str:
    parts = path.relative_to(SOURCE.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path, modules: set[str]) -> set[str]:
    """The modules that one imports when it runs, also inside of functions; not those of annotations."""
    tree = ast.parse(path.read_text("utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            node.body = []
    found = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            inner = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= (inner & modules) or {node.module}
    return found & modules


def test_reading_paths() -> None:
    """Each module of a path exists, and at most one of a path needs one that was read before it."""
    files = {dotted(path): path for path in SOURCE.rglob("*.py")}
    imports = {name: imported(path, set(files)) for name, path in files.items()}
    rows = [row.split("|") for row in section("Reading paths").splitlines() if "→" in row]
    assert len(rows) >= 5
    for _, title, path, _ in rows:
        steps = []
        for step in path.split("→"):
            places = [SOURCE / place for place in re.findall(r"`([^`]+)`", step)]
            assert places
            assert all(place.exists() for place in places), (title, step)
            steps.append(
                {name for name, file in files.items() for place in places if file == place or place in file.parents}
            )
        returns = [
            (step, earlier)
            for at, step in enumerate(steps)
            for earlier in steps[:at]
            if any(imports[name] & earlier for name in step)
        ]
        assert len(returns) <= 1, (title, returns)


def test_the_tree_names_every_package() -> None:
    """Every package of the source stands in the tree under its parent, and what stands there exists."""
    listed: set[str] = set()
    parents: list[Path] = []
    for line in section("The tree, in reading order").split("src/steelyard/\n")[1].split("\nexamples/")[0].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        names = re.split(r" {2,}", line.strip())[0].split(", ")
        folder = parents[depth - 2] if depth > 1 else SOURCE
        for name in names:
            place = folder / name.rstrip("/")
            assert place.exists() or place.with_suffix(".py").exists(), line
            listed.add(str(place.relative_to(SOURCE)))
        # What is indented below a module stands beside it.
        parents[depth - 1 :] = [folder / names[0].rstrip("/") if names[0].endswith("/") else folder]
    packages = {str(path.parent.relative_to(SOURCE)) for path in SOURCE.rglob("__init__.py")} - {"."}
    assert packages <= listed, packages - listed
