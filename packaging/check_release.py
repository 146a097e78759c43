"""Is what would be released what should be? Builds it, compares its files with the repository, installs it, uses it.

    python packaging/check_release.py [TAG]

Run by `make release-check`, in an environment with the dependency group `release`. It leaves sdist, wheel
and SBOM in dist/.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email.parser import Parser
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent
DIST = ROOT / "dist"
IN_SDIST = ("src/steelyard/", "docs/", "examples/")
BESIDE = (
    "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "README.md", "README.zh.md",
    "SECURITY.md", "pyproject.toml", ".gitignore",
)  # fmt: skip
# The build writes these.
WRITTEN = {"METADATA", "RECORD", "WHEEL", "entry_points.txt", "licenses/LICENSE", "licenses/NOTICE"}
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# Of a Dockerfile's commands these change the system, which is the container's own.
ONLY_IN_DOCKER = ("useradd",)


def run(*command: object, cwd: Path = ROOT, **environment: str) -> str:
    """Run a command; stop with its output where it fails."""
    words = [str(word) for word in command]
    done = subprocess.run(words, cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{shlex.join(words)}\nexited with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done.stdout


def same(what: str, wanted: set[str], found: set[str]) -> None:
    """Stop where the two differ."""
    if wanted != found:
        sys.exit(f"{what}: missing {sorted(wanted - found)[:20]}, not wanted {sorted(found - wanted)[:20]}")
    print(f"{what}: {len(found)} files, as they should be")


def new_environment(folder: Path) -> Path:
    """A virtual environment with nothing but pip; its folder of programs."""
    run(sys.executable, "-m", "venv", folder)
    return folder / ("Scripts" if os.name == "nt" else "bin")


def build() -> tuple[Path, Path]:
    """The sdist, and the wheel that is built from it."""
    shutil.rmtree(DIST, ignore_errors=True)
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", DIST)
    [sdist], [wheel] = DIST.glob("*.tar.gz"), DIST.glob("*.whl")
    return sdist, wheel


def check_files(sdist: Path, wheel: Path) -> None:
    """Both hold what git knows, and what the build writes."""
    tracked = run("git", "ls-files").splitlines()
    with tarfile.open(sdist) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames() if not archive.getmember(name).isdir()}
    wanted = {name for name in tracked if name.startswith(IN_SDIST) or name in BESIDE}
    same("sdist", wanted | {"PKG-INFO"}, inside)
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
    info = next(name for name in names if name.endswith(".dist-info/METADATA")).removesuffix("METADATA")
    package = {name.removeprefix("src/") for name in tracked if name.startswith("src/steelyard/")}
    same("wheel", package | {info + name for name in WRITTEN}, names)


def check_metadata(wheel: Path, tag: str) -> str:
    """The version is that of the source and of the tag; returned."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        metadata = Parser().parsestr(archive.read(name).decode("utf-8"))
    source = (ROOT / "src/steelyard/__init__.py").read_text("utf-8")
    version = re.search(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    if not version or metadata["Version"] != version[1] or (tag and tag != f"v{version[1]}"):
        found = f"wheel {metadata['Version']}, source {version and version[1]}, tag {tag or 'none'}"
        sys.exit(f"the versions differ: {found}")
    if any(".example" in url for url in metadata.get_all("Project-URL", [])):
        message = "project.urls lead nowhere yet (RELEASING.md, 1)"
        if tag:
            sys.exit(message)
        print(f"note: {message}")
    return version[1]


def check_readme(programs: Path, work: Path) -> None:
    """The commands of the README that need no key, with a new user's programs in an empty folder, and its Python."""
    blocks = BLOCK.findall((ROOT / "README.md").read_text("utf-8"))
    shutil.copy(ROOT / "examples/rag.jsonl", work / "answers.jsonl")
    path = f"{programs}{os.pathsep}{os.environ['PATH']}"
    keyless = [body for language, body in blocks if language == "bash" and "KEY" not in body]
    for command in "".join(keyless).splitlines():
        if not command.startswith("pip install"):
            print(f"$ {command}")
            run("bash", "-c", command, cwd=work, PATH=path, OPENAI_API_KEY="")
    for (language, body), (_, output) in pairwise(blocks):
        if language == "python" and run(programs / "python", "-c", body, cwd=work) != output:
            sys.exit("the Python example of the README prints something else")
    print(run(programs / "steelyard", "--version", cwd=work).strip())


def check_dockerfile(folder: Path) -> None:
    """The Dockerfile's COPY and RUN lines, each stage in a folder and an environment of its own."""
    text = (ROOT / "Dockerfile").read_text("utf-8")
    stages = text.split("\nFROM ")[1:]
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    dist = folder / "dist"
    for number, stage in enumerate(stages):
        place = folder / f"stage-{number}"
        place.mkdir()
        path = f"{new_environment(folder / f'python-{number}')}{os.pathsep}{os.environ['PATH']}"
        for line in stage.splitlines()[1:]:
            word, _, rest = line.partition(" ")
            if word == "COPY" and "--from" not in rest:
                *sources, _target = rest.split()
                for source in sources:
                    if source not in kept or not (ROOT / source).exists():
                        sys.exit(f"Dockerfile: {source} is not there, or .dockerignore leaves it out")
                    copy = shutil.copytree if (ROOT / source).is_dir() else shutil.copy
                    copy(ROOT / source, place / source)
            elif word == "RUN" and not rest.startswith(ONLY_IN_DOCKER):
                print(f"RUN {rest}")
                run("bash", "-c", re.sub(r"(?<= )/dist\b", str(dist), rest), cwd=place, PATH=path)
            elif word == "ENTRYPOINT":
                run("bash", "-c", f"{shlex.join(json.loads(rest))} --version", cwd=place, PATH=path)


def write_sbom(programs: Path) -> None:
    """What is installed beside the package, as CycloneDX; without a path of this machine."""
    sbom = DIST / "sbom.json"
    run(sys.executable, "-m", "cyclonedx_py", "environment", programs / "python", "--output-file", sbom)
    text = sbom.read_text("utf-8")
    names = {component["name"] for component in json.loads(text)["components"]}
    if "numpy" not in names or "file://" in text or str(ROOT) in text:
        sys.exit("the SBOM lacks the dependencies, or names a path of this machine")
    print(f"SBOM: {len(names)} components")


def main() -> None:
    sdist, wheel = build()
    check_files(sdist, wheel)
    version = check_metadata(wheel, sys.argv[1] if len(sys.argv) > 1 else "")
    with tempfile.TemporaryDirectory() as folder:
        programs = new_environment(Path(folder) / "clean")
        # Found by name, as an index would offer it: no path of this machine is recorded.
        run(programs / "python", "-m", "pip", "install", "--quiet", "--find-links", DIST, f"steelyard=={version}")
        run(programs / "python", "-m", "pip", "check")
        work = Path(folder) / "work"
        work.mkdir()
        check_readme(programs, work)
        write_sbom(programs)
        docker = Path(folder) / "docker"
        docker.mkdir()
        check_dockerfile(docker)


if __name__ == "__main__":
    main()
