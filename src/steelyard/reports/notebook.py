"""Reports, samples and comparisons as pieces of HTML: for a notebook's cell, or one page that loads nothing.

Everything that comes from outside is escaped. Colours are mixed with the colour of the text around them, so that they
can be read on light and dark backgrounds without knowing the theme; a sign or a word always says the same.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from markupsafe import Markup, escape

from steelyard.records import Language, Sample, Verdict
from steelyard.reports.blocks import Block, Entry, Heading, Lines, Passage, Table, Tone, TonedText, clean, one_line
from steelyard.reports.layout import Page
from steelyard.reports.model import Report, in_language
from steelyard.text import language_of

STYLE = """
.steelyard { font: 14px/1.5 system-ui, sans-serif; max-width: 72rem; overflow-wrap: break-word }
.steelyard h3, .steelyard h4, .steelyard h5 { margin: .9em 0 .3em; line-height: 1.25 }
.steelyard h3 { font-size: 1.25em } .steelyard h4 { font-size: 1.1em } .steelyard h5 { font-size: 1em }
.steelyard p, .steelyard ul { margin: .3em 0 }
.steelyard table { border-collapse: collapse; margin: .4em 0; font-size: 1em; color: inherit; background: none }
.steelyard th, .steelyard td { padding: .2em .7em; border-bottom: 1px solid; vertical-align: top; text-align: left;
  border-color: rgba(128, 128, 128, .35); background: none; color: inherit; white-space: normal }
.steelyard th { white-space: nowrap }
.steelyard .number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap }
.steelyard .good { color: color-mix(in srgb, currentColor 45%, #1f9d4d) }
.steelyard .bad { color: color-mix(in srgb, currentColor 40%, #e5343d); font-weight: 600 }
.steelyard .open { color: color-mix(in srgb, currentColor 50%, #c98500) }
.steelyard blockquote { margin: .3em 0; padding: .1em .9em; border-left: 3px solid rgba(128, 128, 128, .5);
  white-space: pre-wrap; color: inherit }
.steelyard mark { background: rgba(255, 200, 0, .3); color: inherit }
.steelyard .item { margin: .4em 0; padding-left: .9em; border-left: 3px solid rgba(128, 128, 128, .35) }
.steelyard .fact { opacity: .85; font-size: .93em }
.steelyard summary { cursor: pointer }
"""
PAGE = Markup("""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{}</title>
<style>{}</style>
</head>
<body>
<div class="steelyard">
{}
</div>
</body>
</html>
""")
SIGNS: Mapping[Tone, str] = {"good": "✓ ", "bad": "✗ ", "open": "? ", "plain": ""}


def fragment(
    blocks: Iterable[Block], notes: Iterable[str] = (), folded: Iterable[tuple[str, Iterable[Block]]] = ()
) -> str:
    """A page as one element with its own style; `folded` are further pages below it, each behind its title."""
    said = (Markup("<p>{}</p>").format(one_line(note)) for note in notes)
    behind = (
        Markup("<details><summary>{}</summary>{}</details>").format(one_line(title), _joined(inner))
        for title, inner in folded
    )
    body = Markup("\n").join([_joined(blocks), *said, *behind])
    return str(Markup('<div class="steelyard"><style>{}</style>\n{}\n</div>').format(Markup(STYLE), body))


def report_fragment(
    report: Report,
    notes: Iterable[str] = (),
    folded: Iterable[tuple[str, Iterable[Block]]] = (),
    language: Language | None = None,
) -> str:
    """What the terminal shows of a report, as headings, tables and paragraphs."""
    return fragment(Page(in_language(report, language), brief=True).blocks(), notes, folded)


def page(title: str, parts: Iterable[Iterable[Block]]) -> str:
    """Several pages as one HTML file that needs nothing else."""
    body = Markup("\n<hr>\n").join(map(_joined, parts))
    return str(PAGE.format(one_line(title), Markup(STYLE), body))


class NotebookSample:
    """One judged sample, as a notebook shows it in full: items, labels, reasons, evidence."""

    def __init__(self, sample: Sample | None, verdict: Verdict, language: Language | None = None) -> None:
        self.sample, self.verdict = sample, verdict
        texts = [item.text for item in verdict.items[:20]] or [str(sample or "")]
        self.language: Language = language or language_of(*texts)

    def blocks(self) -> Iterable[Block]:
        from steelyard.reports.sample import sample_blocks

        return sample_blocks(self.verdict, self.sample, self.language)

    def _repr_html_(self) -> str:
        return fragment(self.blocks())

    def __str__(self) -> str:
        from steelyard.reports.terminal import as_text

        return as_text(self.blocks())

    def __repr__(self) -> str:
        return f"<SampleView {self.verdict.id!r}: {self.verdict.protocol}, {self.verdict.status}>"


# --- blocks ----------------------------------------------------------------------------------------


def _joined(blocks: Iterable[Block]) -> Markup:
    return Markup("\n").join(map(_block, blocks))


def _block(block: Block) -> Markup:
    match block:
        case Heading(text, level):
            return Markup("<h{0}>{1}</h{0}>").format(min(level, 3) + 2, one_line(text))
        case Lines(lines, listed):
            if listed:
                return Markup("<ul>{}</ul>").format(
                    Markup("").join(Markup("<li>{}</li>").format(one_line(line)) for line in lines)
                )
            return Markup("<p>{}</p>").format(Markup("<br>").join(escape(one_line(line)) for line in lines))
        case Table(columns, align, rows):
            head = _row("th", columns, align)
            body = Markup("").join(_row("td", row, align) for row in rows)
            return Markup("<table><thead>{}</thead><tbody>{}</tbody></table>").format(head, body)
        case Passage():
            title = Markup("<strong>{}</strong>\n").format(one_line(block.title)) if block.title else Markup("")
            return Markup("<blockquote>{}{}</blockquote>").format(title, _marked(block))
        case Entry():
            return _entry(block)


def _row(tag: str, cells: Iterable[str | TonedText], align: str) -> Markup:
    made = (
        Markup("<{0}{1}>{2}</{0}>").format(tag, Markup(' class="number"') if side == "r" else "", _cell(cell))
        for cell, side in zip(cells, align, strict=True)
    )
    return Markup("<tr>{}</tr>").format(Markup("").join(made))


def _cell(cell: str | TonedText) -> str | Markup:
    return _toned(cell) if isinstance(cell, TonedText) else one_line(cell)


def _toned(word: TonedText) -> Markup:
    return Markup('<span class="{}">{}</span>').format(word.tone, SIGNS[word.tone] + one_line(word.text))


def _marked(passage: Passage) -> Markup:
    parts, at = [], 0
    for start, end in passage.marks:
        parts += [escape(clean(passage.text[at:start]))]
        parts += [Markup("<mark>{}</mark>").format(clean(passage.text[start:end]))]
        at = end
    return Markup("").join([*parts, escape(clean(passage.text[at:]))])


def _entry(entry: Entry) -> Markup:
    labels = Markup(" · ").join(map(_toned, entry.labels))
    facts = Markup("").join(
        Markup('<div class="fact"><strong>{}</strong>{}</div>').format(one_line(name) + " ", one_line(fact))
        for name, fact in entry.facts
    )
    text = Markup("{}. {}").format(entry.number, one_line(entry.text))
    return Markup('<div class="item">{} {}{}</div>').format(text, labels, facts)
