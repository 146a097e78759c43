"""Markdown of judged answers as safe markup: tables, lists, code, headings, emphasis. The text between keeps its place.

Judged text is hostile. HTML in it is text; the only markup is what stands in this file; links lead nowhere and images
are never loaded: both show their address. Where anything of a text would be lost, it is not rendered at all.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from typing import NamedTuple

from markdown_it import MarkdownIt
from markdown_it.token import Token
from markupsafe import Markup

from steelyard.reports.marking import Segment

# What takes a parser longer than a page may take is shown as it is.
LONGEST_RENDERED = 12_000
MOST_TOKENS = 20_000
MOST_CELLS = 20_000
# Rules that hide what was written (definitions of links), or take an indented line of plain text for code.
LEFT_OUT = ["code", "html_block", "html_inline", "reference", "text_join"]

# Elements that are written as they are; a heading stays below those of the page.
PLAIN = {
    "paragraph": "p",
    "blockquote": "blockquote",
    "bullet_list": "ul",
    "list_item": "li",
    "thead": "thead",
    "tbody": "tbody",
    "tr": "tr",
    "th": "th",
    "td": "td",
    "strong": "strong",
    "em": "em",
    "s": "s",
}
INLINE = ("strong", "em", "s", "link")
TABLE = Markup('<div class="scroll" tabindex="0"><table>'), Markup("</table></div>")
CODE = Markup('<pre tabindex="0"><code>'), Markup("</code></pre>")


class RichText(NamedTuple):
    """A text as it is read, and the markup that stands in it, each piece before the character at its place.

    `gaps` are the places of characters that only keep blocks apart and are not shown. `searched` is the same text
    without the headings of tables: what a table says is in its rows.
    """

    text: str
    searched: str
    tags: tuple[tuple[int, Markup], ...]
    gaps: frozenset[int]


def rendered(text: str) -> RichText | None:
    """The text as Markdown; None where it has no markup, is too long, or would lose something."""
    lines = text.split("\n")
    # A parser fills the rows of a table up to the width of its heading, however short they are written.
    if len(text) > LONGEST_RENDERED or len(lines) * max(line.count("|") for line in lines) > MOST_CELLS:
        return None
    tokens = _parser().parse(text)
    if sum(1 + len(token.children or ()) for token in tokens) > MOST_TOKENS:
        return None
    writer = _Writer()
    for token in tokens:
        writer.block(token)
    found = writer.found()
    return found if writer.is_rich and not (_lost(text, writer.said) or _joins_numbers(found)) else None


def plain(text: str) -> str:
    """The words of a beginning of Markdown on one line, for lists."""
    found = rendered(text)
    shown = "".join(" " if at in found.gaps else sign for at, sign in enumerate(found.text)) if found else text
    return " ".join(shown.split())


def with_markup(pieces: Iterable[Segment], rich: RichText) -> Iterator[Segment | Markup]:
    """The pieces of a text with the rich text's markup between them; no piece crosses a tag."""
    cuts = sorted({*(place for place, _ in rich.tags), *rich.gaps, *(gap + 1 for gap in rich.gaps)})
    tags = iter((*rich.tags, (len(rich.text) + 1, Markup(""))))
    place, tag = next(tags)
    at = 0
    for piece in pieces:
        stop = at + len(piece.text)
        start = at
        while at < stop:
            while place <= at:
                yield tag
                place, tag = next(tags)
            next_cut = bisect_right(cuts, at)
            end = min(stop, cuts[next_cut]) if next_cut < len(cuts) else stop
            if at not in rich.gaps:
                ends = piece.ends if end == stop else ()
                yield piece._replace(text=piece.text[at - start : end - start], ends=ends)
            at = end
    while place <= at:
        yield tag
        place, tag = next(tags)


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable(["table", "strikethrough"])
    # Addresses are shown as they were written, and never followed.
    parser.normalizeLink = lambda url: url  # type: ignore[method-assign]
    parser.normalizeLinkText = lambda link: link  # type: ignore[method-assign]
    parser.validateLink = lambda url: True  # type: ignore[method-assign]
    return parser.disable(LEFT_OUT)


def _lost(text: str, said: list[str]) -> bool:
    """Whether a letter or digit of the text stands nowhere in what was made of it."""
    wanted = Counter(sign for sign in text if sign.isalnum())
    wanted.subtract(sign for part in said for sign in part if sign.isalnum())
    return any(n > 0 for n in wanted.values())


def _joins_numbers(found: RichText) -> bool:
    """Whether a sign between two digits was taken for markup: 3*4*5 must not read as 345."""
    beside = (found.text[max(0, place - 1) : place + 1] for place, _ in found.tags)
    return any(len(pair) == 2 and pair.isdecimal() for pair in beside)


class _Writer:
    def __init__(self) -> None:
        self.words: list[str] = []
        self.searched: list[str] = []
        self.size = 0
        self.tags: list[tuple[int, Markup]] = []
        self.gaps: list[int] = []
        # What the source says, as far as it is shown: for comparing it with the source.
        self.said: list[str] = []
        self.is_rich = False
        self._links: list[str] = []
        self._in_heading = False

    def found(self) -> RichText:
        return RichText("".join(self.words), "".join(self.searched), tuple(self.tags), frozenset(self.gaps))

    # --- blocks ------------------------------------------------------------------------------------

    def block(self, token: Token) -> None:
        name, opens = token.type.removesuffix("_open").removesuffix("_close"), token.nesting == 1
        if token.type == "inline":
            for child in token.children or ():
                self._inline(child)
        elif token.type == "fence":
            self._fence(token)
        elif token.type == "hr":
            self._tag("<hr>")
        elif name == "paragraph" and token.hidden:
            self._gap("\n" if not opens else "")
        elif name == "ordered_list":
            start = str(token.attrs.get("start", 1))
            self._tag(f'<ol start="{int(start)}">' if opens else "</ol>")
        elif name == "heading":
            level = min(6, int(token.tag[1]))
            element = "h5" if level < 3 else "h6"
            self._tag(f'<{element} class="l{level}">' if opens else f"</{element}>")
            self._gap("" if opens else "\n")
        elif name == "table":
            self._put(TABLE[not opens])
            self.is_rich = True
        elif name in PLAIN:
            self.said.append(token.info if name == "list_item" else "")
            self._put(Markup(f"<{PLAIN[name]}>" if opens else f"</{PLAIN[name]}>"))
            self.is_rich |= name != "paragraph"
            self._in_heading = opens if name == "thead" else self._in_heading
            # The cells of a row are read together; blocks are not.
            self._gap("" if opens else " " if name in ("td", "th") else "\n")

    def _fence(self, token: Token) -> None:
        self.is_rich = True
        if token.info.strip():
            self._put(Markup('<p class="info">'))
            self._say(token.info.strip())
            self._put(Markup("</p>"))
            self._gap("\n")
        self._put(CODE[0])
        self._say(token.content)
        self._put(CODE[1])
        self._gap("\n")

    # --- inside a block ----------------------------------------------------------------------------

    def _inline(self, token: Token) -> None:
        name, opens = token.type.removesuffix("_open").removesuffix("_close"), token.nesting == 1
        if token.type in ("text", "text_special"):
            self._say(token.content, token.markup)
        elif token.type in ("softbreak", "hardbreak"):
            self._put(Markup("<br>"))
            self._gap("\n")
        elif token.type == "code_inline":
            self._tag("<code>")
            self._say(token.content)
            self._tag("</code>")
        elif token.type == "image":
            self._tag('<span class="image">')
            self._say(token.content)
            self._tag("</span>")
            self._address(token)
        elif name == "link":
            self._link(token, opens)
        elif name in INLINE:
            self._tag(f"<{name}>" if opens else f"</{name}>")

    def _link(self, token: Token, opens: bool) -> None:
        if token.markup == "autolink":
            self._tag('<span class="url">' if opens else "</span>")
        elif opens:
            self._links.append(" ".join(str(token.attrs[key]) for key in ("href", "title") if token.attrs.get(key)))
            self._tag('<span class="link">')
        else:
            self._tag("</span>")
            self._url(self._links.pop())

    def _address(self, token: Token) -> None:
        self._url(" ".join(str(token.attrs[key]) for key in ("src", "title") if token.attrs.get(key)))

    def _url(self, address: str) -> None:
        if address:
            self._gap(" ")
            self._tag('<span class="url">')
            self._say(address)
            self._tag("</span>")

    # --- writing -----------------------------------------------------------------------------------

    def _say(self, text: str, written: str = "") -> None:
        self.words.append(text)
        self.searched.append(" " * len(text) if self._in_heading else text)
        self.said.append(written or text)
        self.size += len(text)

    def _gap(self, sign: str) -> None:
        if sign:
            self.gaps.append(self.size)
            self.words.append(sign)
            self.searched.append(sign)
            self.size += 1

    def _tag(self, markup: str) -> None:
        """Markup that says something; its text is of this file alone."""
        self.is_rich = True
        self._put(Markup(markup))

    def _put(self, markup: Markup) -> None:
        self.tags.append((self.size, markup))
