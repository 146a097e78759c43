"""A store for tests of the reading pages: the examples judged, one run judged otherwise, one with hostile samples."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from command import RAG
from report_fixtures import atomic, rag
from steelyard.protocols.counts import atomic_scores
from steelyard.records import Atom, Sample, Verdict
from steelyard.store import QueueItem, Store
from steelyard.store.labels import HumanLabel
from steelyard.web.experimenting import ExperimentDesign
from viewer import fill

ATTACK = (
    "<script>window.hacked = 1</script></p></div></script><img src=x onerror='window.hacked = 2'>"
    '<a href="javascript:window.hacked=3">[x](javascript:window.hacked=4)</a></section></details><svg onload=hacked=5>'
)
MARKDOWN = """## Heading <script>window.hacked = 6</script>

- **Plain fact** number 1
- [click](javascript:window.hacked=7) <javascript:window.hacked=8> ![i](http://192.0.2.1/x.png)
- <img src=x onerror="window.hacked = 9"> <svg onload="window.hacked = 10"><!-- comment -->

| <a href="javascript:hacked=11">a</a> |
|---|
| b |

````md
```nested
</code></pre><script>window.hacked = 12</script>
```
````
"""
ODD_ID = 'a/b ../"<b>编号</b>?x=1&y#z.json'
MEGABYTE = "很长的回答。" * 60_000
SECRET = "THE-JUDGE-SAID"
"""Stands in everything that a judge says of an item, and in nothing else."""


def filled(path: Path) -> dict[str, str]:
    """The ids of the runs by what they are: the four protocols, `other`, `hostile`, `markdown`, `secret`."""
    runs = dict(zip(("atomic", "grounded", "scorecard", "dialogue"), fill(path), strict=True))
    with Store.open(path) as store:
        judged = list(store.verdicts(runs["atomic"]))
        manifest = store.run(runs["atomic"]).manifest
        other = [(sample, _all_correct(verdict)) for sample, verdict in judged]
        runs["other"] = add_run(store, "20990101-000000-othr", "strict:model", other, manifest)
        hostile = [
            (rag(ODD_ID, ATTACK, answer=ATTACK, references=(ATTACK,), tags=(ATTACK,)), _hostile(ODD_ID)),
            (rag("long", answer=MEGABYTE, references=(MEGABYTE,)), atomic("long", ["wrong"])),
        ]
        runs["hostile"] = add_run(store, "20990101-000000-host", "judge<b>", hostile, {"options": {}, "note": ATTACK})
        store.add_to_set(ATTACK[:100], runs["hostile"], [ODD_ID, "long"], time="2026-03-02", note=ATTACK)
        design = ExperimentDesign(files=(RAG,), protocols=("grounded",), judges=("recorded",))
        store.add_experiment("", ATTACK[:100], design.model_dump_json(), created="2026-03-02", author=ATTACK)
        shared = [QueueItem("car-seat", "atom", None, at, 1.0, 2) for at in (1, 2)]
        store.add_queue(runs["atomic"], ATTACK[:100], shared, policy="of a queue", created="2026-03-02", author=ATTACK)
        for who, label in (("mei " + ATTACK[:60], "correct"), ("jun", "wrong")):
            given = {"sample": "car-seat", "kind": "atom", "item": 1, "label": label, "note": ATTACK}
            more = {"annotator": who, "policy": "of a queue", "run": runs["atomic"], "time": "2026-03-02"}
            store.add_labels([HumanLabel.model_validate({**given, **more})])
        judged_markdown = [(rag("md", answer=MARKDOWN), atomic("md", ["wrong"], text="Plain fact number "))]
        runs["markdown"] = add_run(store, "20990101-000000-mark", "some:judge", judged_markdown, {})
        runs["secret"] = add_run(store, "20990101-000000-scrt", "some:judge", [(rag("s1"), secret("s1"))], {})
    return runs


def add_run(
    store: Store,
    id: str,
    judge: str,
    judged: Sequence[tuple[Sample, Verdict]],
    manifest: dict[str, object],
    state: str = "complete",
) -> str:
    store.create_run(id, judged[0][1].protocol if judged else "atomic", judge, "2026-03-02T10:00:00+00:00", manifest)
    store.add_verdicts(id, [(at, sample, verdict) for at, (sample, verdict) in enumerate(judged)])
    finished = None if state == "running" else "2026-03-02T10:01:00+00:00"
    store.update_run(id, state=state, finished=finished, manifest=manifest)
    return id


def _all_correct(verdict: Verdict) -> Verdict:
    """The same statements, all found correct by another judge."""
    atoms = [item for item in verdict.items if isinstance(item, Atom)]
    items = tuple(atom.model_copy(update={"label": "correct"}) for atom in atoms)
    return verdict.model_copy(update={"items": items, "scores": atomic_scores(items, 0), "judge": "strict:model"})


def _hostile(id: str) -> Verdict:
    return atomic(id, ["wrong", "correct"], text=ATTACK, flags=(ATTACK,), notes={"own_answer": ATTACK})


def secret(id: str) -> Verdict:
    """A verdict in which everything the judge said can be told from what was judged."""
    found = atomic(id, ["wrong", "correct"])
    said = {"reason": SECRET, "level_reason": SECRET, "flags": (SECRET,), "level": 3}
    items = tuple(
        item.model_copy(
            update={**said, "evidence": item.evidence and item.evidence.model_copy(update={"quote": SECRET})}
        )
        for item in found.items
        if isinstance(item, Atom)
    )
    return found.model_copy(update={"items": items, "flags": (SECRET,), "judge": SECRET, "notes": {"reason": SECRET}})
