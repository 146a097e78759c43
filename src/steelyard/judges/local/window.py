"""What of long passages a model is shown: the sentences that speak to the claims, in their order."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence

from steelyard.judges.embedded.meaning import words
from steelyard.judges.embedded.spans import Span, spans

# In tokens. Reading is what takes time: some forty tokens a second on two cores.
ROOM = 80
ROOM_PER_CLAIM = 40
HAN_TOKENS = 0.65
OTHER_TOKENS = 0.24
GAP = " … "


def tokens_in(text: str) -> float:
    """About how many tokens a text has; models differ, and an estimate is enough to choose by."""
    han = sum("\u3400" <= character <= "\u9fff" or "\uff00" <= character <= "\uffef" for character in text)
    return han * HAN_TOKENS + (len(text) - han) * OTHER_TOKENS


def window(
    passages: Sequence[str],
    claims: Sequence[str],
    room: float | None = None,
    size: Callable[[str], float] = tokens_in,
) -> str:
    """The passages, or where they are long those of their sentences that share most with the claims."""
    room = ROOM + ROOM_PER_CLAIM * len(claims) if room is None else room
    whole = "\n".join(passages)
    if size(whole) <= room:
        return whole
    found = spans(passages)
    chosen: set[int] = set()
    for place in _by_worth(found, claims):
        cost = size(found[place].text)
        if chosen and cost > room:
            continue
        chosen.add(place)
        room -= cost
    return _joined(found, sorted(chosen))


def _by_worth(found: Sequence[Span], claims: Sequence[str]) -> list[int]:
    """Places of spans, each claim's best first, then each claim's second, and so on."""
    spoken = [set(words(span.text)) for span in found]
    spread = Counter(word for said in spoken for word in said)
    weight = {word: math.log(1 + len(found) / count) for word, count in spread.items()}
    ranks: list[tuple[int, float, int]] = []
    for claim in claims:
        wanted = set(words(claim))
        worth = [sum(weight[word] for word in wanted & said) for said in spoken]
        best_first = sorted(range(len(found)), key=lambda place: (-worth[place], place))
        ranks += [(rank, -worth[place], place) for rank, place in enumerate(best_first)]
    return list(dict.fromkeys(place for _, _, place in sorted(ranks)))


def _joined(found: Sequence[Span], places: Sequence[int]) -> str:
    text = ""
    for before, place in zip([None, *places], places, strict=False):
        if before is not None:
            text += "\n" if found[before].passage != found[place].passage else " " if place == before + 1 else GAP
        text += found[place].text
    return text
