"""Draws docs/images/show.svg: what `steelyard show` prints for one bundled example. Run it from the project's root."""

import re
from io import StringIO
from pathlib import Path

from rich.console import Console
from rich.terminal_theme import MONOKAI

import steelyard
from steelyard.reports.sample import render_sample

SAMPLE = "library-friday"
COMMAND = f"steelyard show last {SAMPLE}"
# Rich's own style fetches a font from elsewhere; a reader's monospace does as well.
FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
FONTS = "'SFMono-Regular', Menlo, Consolas, 'DejaVu Sans Mono', 'Noto Sans Mono CJK SC', monospace"


def drawn() -> str:
    results = steelyard.evaluate("examples/rag.jsonl", protocol="atomic", judge="recorded:examples/replies.jsonl")
    judged = dict(zip((verdict.id for verdict in results), zip(results, results.samples, strict=True), strict=True))
    console = Console(width=80, record=True, force_terminal=True, color_system="truecolor", file=StringIO())
    console.print(render_sample(*judged[SAMPLE], "en"))
    svg = console.export_svg(title=COMMAND, theme=MONOKAI, unique_id="steelyard")
    return FONT_FACE.sub("", svg).replace("Fira Code, monospace", FONTS).replace("Fira Code", "monospace")


if __name__ == "__main__":
    Path("docs/images/show.svg").write_text(drawn(), encoding="utf-8")
