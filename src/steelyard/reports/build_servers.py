"""A run for build servers, sample by sample: JUnit XML, and SARIF 2.1.0, which code hosts show beside the lines.

Both hold judged text. XML and JSON are written by their libraries; what SARIF's own message syntax would read as a
placeholder or a link is escaped on top.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import quote
from xml.etree import ElementTree

from steelyard.errors import InputError
from steelyard.protocols.vocabulary import UNJUDGED, Tone, Vocabulary
from steelyard.records import AnyItem, Language, Sample, Verdict
from steelyard.reports.blocks import clean, one_line
from steelyard.reports.build import bad_labels, main_reason, most_telling, shown_flags, words_of
from steelyard.reports.model import reason_in, why

LONGEST = 500
MOST_RESULTS = 5000
"""Code hosts refuse files with more than a few thousand results; the first ones stand for the rest."""
SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
LEVELS: Mapping[Tone, str] = {"bad": "error", "half": "warning", "open": "note", "neutral": "note", "good": "note"}
BAD_ROW = "unreadable-row"
ESCAPES = str.maketrans({"\\": "\\\\", "[": "\\[", "]": "\\]", "{": "{{", "}": "}}"})


class FileLocation(NamedTuple):
    """Where a sample stands: a file and, where lines can be counted in it, a line."""

    file: str
    line: int = 1


Judged = Iterable[tuple[Sample | None, Verdict]]


# --- JUnit -----------------------------------------------------------------------------------------


def junit(judged: Judged, bad_rows: Sequence[InputError], protocol: str, language: Language) -> str:
    """One test case per sample: a failure where a label counts against it, an error where it was not judged in full or
    could not be read."""
    suite = ElementTree.Element("testsuite", name=xml_text(f"steelyard {protocol}"))
    counts = {"failure": 0, "error": 0}
    for _, verdict in judged:
        case = ElementTree.SubElement(suite, "testcase", _named(protocol, verdict.id))
        against = bad_labels(verdict)
        if verdict.status != "judged":
            message = reason_in(language, main_reason(verdict))
            body = "\n".join(_line(verdict, *one, language) for one in against)
            _outcome(case, "error", verdict.status, message, body)
            counts["error"] += 1
        elif against:
            message = why(most_telling(verdict), shown_flags(verdict), language, words_of(verdict))
            body = "\n".join(_line(verdict, *one, language) for one in against)
            _outcome(case, "failure", against[0][1], message, body)
            counts["failure"] += 1
    for bad in bad_rows:
        case = ElementTree.SubElement(suite, "testcase", _named(protocol, f"{bad.file}:{bad.line}"))
        _outcome(case, "error", BAD_ROW, str(bad), str(bad))
        counts["error"] += 1
    numbers = {"tests": len(suite), "failures": counts["failure"], "errors": counts["error"], "skipped": 0, "time": 0}
    suite.attrib |= {name: str(number) for name, number in numbers.items()}
    ElementTree.indent(suite)
    return ElementTree.tostring(suite, encoding="unicode", xml_declaration=True) + "\n"


def _named(protocol: str, id: str) -> dict[str, str]:
    return {"classname": xml_text(f"steelyard.{protocol}"), "name": xml_text(one_line(id, 200)), "time": "0"}


def _outcome(case: ElementTree.Element, tag: str, kind: str, message: str, body: str) -> None:
    found = ElementTree.SubElement(case, tag, message=xml_text(one_line(message, LONGEST)), type=xml_text(kind))
    found.text = xml_text(body)


def _line(verdict: Verdict, aspect: str, label: str, item: AnyItem, language: Language) -> str:
    return one_line(_sentence(words_of(verdict), aspect, label, item, language), LONGEST)


def _sentence(words: Vocabulary, aspect: str, label: str, item: AnyItem, language: Language) -> str:
    """An item that counts against its sample, in a sentence: label, text, reason, evidence."""
    sentence = f"{words.label_words(aspect, label, language)}: {words.item_words(item, language)}"
    if item.reason:
        sentence += f" ({reason_in(language, item.reason)})"
    evidence = getattr(item, "evidence", None)
    if evidence and evidence.quote:
        sentence += f" “{evidence.quote}”"
    return sentence


def xml_text(text: str) -> str:
    """Text that XML can hold: it has no way at all to write most control characters."""
    return clean(text).replace("\ufffe", "").replace("\uffff", "")


# --- SARIF -----------------------------------------------------------------------------------------


def sarif(
    judged: Judged,
    bad_rows: Sequence[InputError],
    protocol: str,
    language: Language,
    version: str,
    spots: Mapping[str, FileLocation],
    fallback: FileLocation,
) -> str:
    """One result per item that counts against its sample, at the line of the sample where that is known (`spots`, by
    id), else at `fallback`."""
    rules: dict[str, dict[str, Any]] = {}
    results: list[dict[str, Any]] = []
    for _, verdict in judged:
        words, spot = words_of(verdict), spots.get(verdict.id, fallback)
        for aspect, label, item in bad_labels(verdict):
            tone = words.aspect(aspect).label(label).tone
            name = f"{words.aspect_words(aspect, language)}: {words.label_words(aspect, label, language)}"
            rule = _rule(rules, f"{protocol}/{aspect}/{label}", name, "note" if label == UNJUDGED else LEVELS[tone])
            results.append(_result(rule, verdict.id, _sentence(words, aspect, label, item, language), spot, item.text))
    for bad in bad_rows:
        rule = _rule(rules, BAD_ROW, "A row that cannot be read", "error")
        results.append(_result(rule, "", str(bad), FileLocation(bad.file or fallback.file, bad.line or 1), str(bad)))
    driver = {
        "name": "Steelyard",
        "version": version,
        "rules": [{key: value for key, value in rule.items() if key != "index"} for rule in rules.values()],
    }
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results[:MOST_RESULTS]}
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, ensure_ascii=False, indent=1) + "\n"


def _rule(rules: dict[str, dict[str, Any]], id: str, name: str, level: str) -> dict[str, Any]:
    made = {"id": id, "shortDescription": {"text": _message(name)}, "defaultConfiguration": {"level": level}}
    return rules.setdefault(id, {**made, "index": len(rules)})


def _result(rule: Mapping[str, Any], sample: str, text_of_item: str, spot: FileLocation, text: str) -> dict[str, Any]:
    place: dict[str, Any] = {
        "physicalLocation": {
            "artifactLocation": {"uri": _uri(spot.file)},
            "region": {"startLine": max(1, spot.line)},
        }
    }
    if sample:
        place["logicalLocations"] = [{"fullyQualifiedName": one_line(sample, 200), "kind": "object"}]
    named = f"{one_line(sample, 80)} · " if sample else ""
    # The same statement of the same sample is the same finding in the next run, wherever the line has moved to.
    digest = hashlib.sha256(f"{rule['id']}\0{sample}\0{text}".encode("utf-8", "replace")).hexdigest()[:32]
    return {
        "ruleId": rule["id"],
        "ruleIndex": rule["index"],
        "level": rule["defaultConfiguration"]["level"],
        "message": {"text": _message(named + one_line(text_of_item, LONGEST))},
        "locations": [place],
        "partialFingerprints": {"steelyard/v1": digest},
    }


def _message(text: str) -> str:
    return one_line(text).translate(ESCAPES) or "–"


def _uri(path: str) -> str:
    """Relative to where the command runs, as code hosts want it; a build checks a repository out and works in it."""
    here = Path.cwd()
    inside = Path(path).is_relative_to(here)
    return quote((Path(path).relative_to(here) if inside else Path(path)).as_posix(), safe="/:~.-_")
