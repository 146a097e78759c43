"""What the documentation site adds to docs/: the pages beside it, references from the code, links that lead to both.

Pages are written so that their links work on a code host. In the site, README.md and its neighbours are in project/,
and links to other files of the repository become plain text.
"""

from __future__ import annotations

import json
import posixpath
import re
from pathlib import Path
from typing import Any

from cli_reference import cli_reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import steelyard
from steelyard.records import Verdict

ROOT = Path(__file__).parent.parent
PROJECT = (
    "README.md", "README.zh.md", "CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "RELEASING.md", "SECURITY.md",
)  # fmt: skip
LINK = re.compile(r"(!?)\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^)\s]+)\)")
FENCED = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
API = """# Python API

What `import steelyard` offers; [Python](../python.md) explains its use.
"""
SCHEMA = """# Result schema

The JSON schema of a [result line](../results.md), generated from the code. `items` are tagged by `kind`.
"""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the project's own pages and what is generated."""
    for name in PROJECT:
        files.append(File.generated(config, f"project/{name}", abs_src_path=str(ROOT / name)))
    files.append(File.generated(config, "reference/cli.md", content=cli_reference()))
    names = "\n".join(f"\n::: steelyard.{name}\n" for name in steelyard.__all__)
    files.append(File.generated(config, "reference/api.md", content=API + names))
    schema = json.dumps(Verdict.model_json_schema(), ensure_ascii=False, indent=2)
    files.append(File.generated(config, "reference/schema.md", content=f"{SCHEMA}\n```json\n{schema}\n```\n"))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files, **_: Any) -> str:
    """Turn links between files of the repository into links between pages of the site."""
    here = page.file.src_uri
    name = here.removeprefix("project/")
    folder = "" if name in PROJECT else posixpath.dirname(f"docs/{here}")

    def moved(match: re.Match[str]) -> str:
        bang, text, target = match.groups()
        path, hash_, anchor = target.partition("#")
        if not path or re.match(r"[a-z]+:", target):
            return match.group()
        source = posixpath.normpath(posixpath.join(folder, path))
        if source in PROJECT:
            there = f"project/{source}"
        elif source.startswith("docs/"):
            there = source.removeprefix("docs/")
        else:
            return text
        return f"{bang}[{text}]({posixpath.relpath(there, posixpath.dirname(here) or '.')}{hash_}{anchor})"

    if here.startswith("reference/"):
        return markdown
    parts = FENCED.split(markdown)
    return "".join(part if part.startswith("```") else LINK.sub(moved, part) for part in parts)
