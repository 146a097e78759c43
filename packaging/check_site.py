"""Is the built site what it should be? Search finds Chinese words, and no page loads anything from another host.

python packaging/check_site.py site
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

# Words of the Chinese pages, and a page that search has to find for each.
WORDS = {
    "置信区间": "tutorials/judge.zh.html",
    "门禁": "tutorials/ci.zh.html",
    "评判者": "tutorials/judge.zh.html",
    "细则": "tutorials/dialogue.zh.html",
}
OTHER_HOST = r"[\"']?(?:https?:)?//"
LOADED = re.compile(
    rf"<(?:script|img|iframe|source)\b[^>]*\ssrc={OTHER_HOST}"
    rf"|<link\b[^>]*\srel=[\"']?(?:stylesheet|preconnect|preload|icon)[^>]*\shref={OTHER_HOST}"
    rf"|url\({OTHER_HOST}|@import\s"
)


def problems(site: Path) -> list[str]:
    """What is wrong, in words."""
    found = []
    index = json.loads((site / "search" / "search_index.json").read_text("utf-8"))
    if "zh" not in index["config"]["lang"]:
        found.append("the search index is not for Chinese")
    separator = re.compile(index["config"]["separator"])
    for word, page in WORDS.items():
        texts = [f"{entry['title']} {entry['text']}" for entry in index["docs"] if entry["location"].startswith(page)]
        if not any(word in separator.split(text) for text in texts):
            found.append(f"search does not find {word} in {page}")
    for file in [*site.rglob("*.html"), *site.rglob("*.css")]:
        if loaded := LOADED.search(file.read_text("utf-8")):
            found.append(f"{file.relative_to(site)} loads from another host: {loaded.group()[:120]}")
    return found


if __name__ == "__main__":
    wrong = problems(Path(sys.argv[1]))
    print("\n".join(wrong) or "the site loads nothing from elsewhere, and its search finds Chinese")
    sys.exit(bool(wrong))
