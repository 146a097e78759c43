"""How the embedded judge does on the dialogues: what it wrongly faults, what it finds, what it leaves open."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable

from steelyard.judges.embedded.dialogue import compliance, content_of, validity
from steelyard.protocols.common import numbered
from steelyard.protocols.rules import rule_on
from steelyard.tasks import ComplianceData, ValidityData
from training.dialogues import Dialogue, dialogues


def validities(dialogue: Dialogue, criteria: Iterable[str]) -> dict[str, tuple[str, str]]:
    """valid, invalid or open for each criterion, and why."""
    wanted = numbered(dict.fromkeys(criteria))
    reply = validity(ValidityData(system_prompt=dialogue.system_prompt, criteria=wanted), dialogue.language)  # type: ignore
    named = {item.id: item.text for item in wanted}
    found = {named[one.id]: ("valid" if one.valid else "invalid", one.reason) for one in reply.criteria}
    return found | {named[one.id]: ("open", one.reason) for one in reply.unsure}


def labels(dialogue: Dialogue, prompt: str, answer: str, criteria: Iterable[str]) -> dict[str, tuple[str, str]]:
    """fully, partly, no, vacuous or open for each criterion: by the protocol's rules, else by the judge."""
    wanted = numbered(criteria)
    data = ComplianceData(
        system_prompt=dialogue.system_prompt, history=(), turn=1, prompt=prompt, answer=answer, criteria=wanted
    )
    reply = compliance(data, dialogue.language)  # type: ignore
    named = {item.id: item.text for item in wanted}
    found = {named[one.id]: (one.complies if one.triggered else "vacuous", one.reason) for one in reply.criteria}
    found |= {named[one.id]: ("open", one.reason) for one in reply.unsure}
    for text in named.values():
        if ruling := rule_on(content_of(text)[0], answer):
            found[text] = ("fully" if ruling.satisfied else "no", f"(rule) {ruling.reason}")
    return found


def measure(*, told: bool) -> dict[str, Counter[str]]:
    counts = {name: Counter[str]() for name in ("right: validity", "right: compliance", "baseless", "broken")}
    for dialogue in dialogues():
        right = [text for turn in dialogue.turns for text in turn.criteria]
        valid = validities(dialogue, (*right, *dialogue.baseless))
        _count("right: validity", counts["right: validity"], {text: valid[text] for text in right}, "invalid", told)
        _count("baseless", counts["baseless"], {text: valid[text] for text in dialogue.baseless}, "valid", told)
        for turn in dialogue.turns:
            found = labels(dialogue, turn.prompt, turn.answer, turn.criteria)
            _count("right: compliance", counts["right: compliance"], found, "no partly", told)
            for worse in turn.worse:
                found = labels(dialogue, turn.prompt, worse.answer, worse.breaks)
                _count("broken", counts["broken"], found, "fully vacuous", told)
    return counts


def _count(name: str, counts: Counter[str], found: dict[str, tuple[str, str]], wrong: str, told: bool) -> None:
    for text, (label, reason) in found.items():
        counts[label] += 1
        if told and label in (*wrong.split(), "open"):
            print(f"{'WRONG' if label != 'open' else '     '} {name}: {label:8} {text}   {reason}")


if __name__ == "__main__":
    for name, counts in measure(told="-v" in sys.argv).items():
        total = counts.total()
        print(name, total, ", ".join(f"{label} {n} ({n / total:.1%})" for label, n in counts.most_common()))
