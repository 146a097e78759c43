"""Turns labels.toml into replies.jsonl: what a judge that agrees with those labels would have replied.

    python examples/make_replies.py          # or: make examples

All protocols are run over the example samples; whatever they ask is answered from the labels and recorded. Then
`atomic` is run once more with judge-prompt.txt as its template, which is answered with transcripts.
An item that has no label stops the script, so that the recording is always whole.
"""

from __future__ import annotations

import argparse
import asyncio
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from steelyard.evaluation import evaluate
from steelyard.judges import Recorder, ScriptedJudge
from steelyard.records import Ask, Atom, DialogueSample, RagSample, Verdict
from steelyard.samples import Kind, read_samples
from steelyard.tasks import TemplateData
from steelyard.text import find_quote

HERE = Path(__file__).parent
PROMPT = HERE / "judge-prompt.txt"
FILES = {
    "atomic": "rag",
    "grounded": "rag",
    "scorecard": "rag",
    "dialogue": "dialogue",
    "retrieval": "rag",
    "pairwise": "pairs",
}

Labels = Mapping[str, Any]


class Examples:
    """The example samples and what a person said about them."""

    def __init__(self) -> None:
        self.labels: Labels = tomllib.loads((HERE / "labels.toml").read_text("utf-8"))
        self.samples: dict[str, RagSample | DialogueSample] = {}
        kinds: dict[str, Kind] = {"rag": "rag", "dialogue": "dialogue", "pairs": "pair"}
        for file, kind in kinds.items():
            for sample in read_samples([HERE / f"{file}.jsonl"], kind):
                assert isinstance(sample, RagSample | DialogueSample), sample
                self.samples[_subject(sample)] = sample

    def about(self, ask: Ask) -> tuple[RagSample | DialogueSample, Labels]:
        sample = self.samples[_subject(ask.data)]
        return sample, self.labels[sample.id]


def _subject(value: Any) -> str:
    """What tells the examples apart: the question, or the system prompt."""
    return str(getattr(value, "question", None) or value.system_prompt)


def split(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    return {"atoms": [{"id": id, "text": atom["text"]} for id, atom in enumerate(labels["atoms"], start=1)]}


def atomic(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    return {"atoms": _labelled(ask, "atoms", labels["atoms"], sample), "fallback": labels["fallback"]}


def grounded(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    checks = [{"text": name, "label": label, "reason": why} for name, (label, why) in labels["checks"].items()]
    return {
        "own_answer": labels["own_answer"],
        "answerable": labels["answerable"],
        "sentences": [
            {"id": item["id"], "reason": item["reason"], "label": item["origin"]}
            for item in _labelled(ask, "sentences", labels["sentences"], sample)
        ],
        "checks": _labelled(ask, "checks", checks, sample),
    }


def key_points(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    return {"key_points": [{"id": id, "text": point["text"]} for id, point in enumerate(labels["key_points"], start=1)]}


def scorecard(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    lists = ("sentences", "key_points", "atoms")
    return {name: _labelled(ask, name, labels[name], sample) for name in lists} | {"summary": labels["summary"]}


def retrieval(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    said = labels["retrieval"]
    lists = {name: _labelled(ask, name, said[name], sample) for name in ("retrieved", "key_points")}
    return lists | {"refuses": labels["fallback"]}


def validity(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    said = [{"text": text, "valid": "quote" in label} | label for text, label in labels["validity"].items()]
    return {"criteria": _labelled(ask, "criteria", said, sample)}


def compliance(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    turn = labels["compliance"][str(getattr(ask.data, "turn"))]  # noqa: B009
    return {"criteria": _labelled(ask, "criteria", [{"text": text} | label for text, label in turn.items()], sample)}


def pairwise(ask: Ask, sample: Any, labels: Labels) -> dict[str, Any]:
    a_first = getattr(ask.data, "first") == sample.answer  # noqa: B009
    places = {"a": "first" if a_first else "second", "b": "second" if a_first else "first"}
    said = [{**label, "label": places.get(label["better"], label["better"])} for label in labels["preferences"]]
    return {"criteria": [{"id": item.id, **said[item.id - 1]} for item in ask.data.items()["criteria"]]}


ANSWERS: dict[str, Callable[[Ask, Any, Labels], dict[str, Any]]] = {
    "atomic.split": split,
    "atomic.judge": atomic,
    "grounded.judge": grounded,
    "scorecard.key_points": key_points,
    "scorecard.judge": scorecard,
    "dialogue.validity": validity,
    "dialogue.compliance": compliance,
    "retrieval.judge": retrieval,
    "pairwise.judge": pairwise,
}


def _labelled(ask: Ask, name: str, said: list[dict[str, Any]], sample: Any) -> list[dict[str, Any]]:
    """The labels of the items that are asked about, by their text; a quote is given its passage."""
    by_text = {label["text"]: label for label in said}
    found = []
    for item in ask.data.items().get(name, ()):
        if item.text not in by_text:
            raise SystemExit(f"labels.toml: {sample.id} has no label in {name} for {item.text!r} ({ask.task})")
        label = {"id": item.id, **by_text[item.text]}
        if "quote" in label and isinstance(sample, RagSample):
            at = find_quote(sample.references, label["quote"])
            if at is None:
                raise SystemExit(f"labels.toml: {sample.id}: no passage holds the quote {label['quote']!r}")
            label |= {"reference": at, "source": "reference"}
        found.append(label)
    return found


WORDS = {"correct": ("correct", 1), "undetermined": ("correct", 1), "wrong": ("wrong", 0)}


def transcript(verdict: Verdict) -> str:
    """The verdict as a lenient model writes it that is told judge-prompt.txt: it takes for correct what the references
    do not say, and does not count well."""
    atoms = [item for item in verdict.items if isinstance(item, Atom)]
    lines = ["Atomic information:", *(f"{atom.id}. {atom.text}" for atom in atoms), "", "Relevance levels:"]
    lines += [f"{atom.id}. {atom.text} (Level: [{atom.level}], reason: {atom.level_reason})" for atom in atoms]
    lines += ["", "Accuracy assessment:"]
    for atom in atoms:
        lines += [f"{atom.id}. {atom.text}"]
        if atom.label == "exempt":
            lines += ["(1) Factual judgement needed: no (advice or opinion)"]
            continue
        word, score = WORDS[atom.label]
        quoted = atom.evidence and atom.evidence.quote
        why = f'the references say "{quoted}"' if quoted else "it is plausible"
        lines += ["(1) Factual judgement needed: yes", f"(2) Accuracy: {word} ({why}), score [{score}]"]
    lines += ["", "Overall accuracy: 100%"] if atoms else []
    return "\n".join([*lines, f"Is it a fallback reply: [{verdict.scores['fallback']}]"])


def record(path: Path) -> None:
    """Run all protocols over the examples and write every reply to the file, anew."""
    path.unlink(missing_ok=True)
    examples = Examples()
    verdicts: dict[str, Verdict] = {}

    def answer(ask: Ask) -> dict[str, Any]:
        if isinstance(ask.data, TemplateData):
            shown = ask.data.prompt
            about = next(sample for subject, sample in examples.samples.items() if f"\n{subject}\n" in shown)
            return {"text": transcript(verdicts[about.id])}
        return ANSWERS[ask.task](ask, *examples.about(ask))

    scripted = ScriptedJudge(answer)
    judge = Recorder(scripted, path)
    try:
        for protocol, file, template in [*((*pair, None) for pair in FILES.items()), ("atomic", "rag", PROMPT)]:
            # One at a time, so that the lines always stand in the same order.
            results = evaluate(HERE / f"{file}.jsonl", protocol, judge, template=template, concurrency=1)
            unfinished = [verdict.id for verdict in results if verdict.status != "judged"]
            if unfinished or results.bad_rows:
                raise SystemExit(f"{protocol}: not everything could be judged: {unfinished} {results.bad_rows}")
            if protocol == "atomic" and not template:
                verdicts = {verdict.id: verdict for verdict in results}
    finally:
        asyncio.run(judge.aclose())
    print(f"{path}: {len(scripted.asks)} asks answered")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out", nargs="?", type=Path, default=HERE / "replies.jsonl")
    record(parser.parse_args().out)
