"""The numbers of the `local` judge: when the model is asked, and how its word and the rules' are weighed.

    python -m training.local --readings readings.jsonl --rows 60            # ask the model, then choose
    python -m training.local --readings readings.jsonl --known --write      # choose anew from what it said before

asks about claims of the development parts only (training/opinions.py), chooses the numbers of
src/steelyard/judges/local/blend.toml by balanced accuracy averaged over the sets of a language, and prints what it saw:
also each set by weights that the other sets gave, which is what the band is chosen by. What the model says is kept in
the file and never asked again, so a run that was stopped goes on; and after a change of the rules, choosing anew with
--known takes a minute.
"""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from importlib.resources import files
from itertools import product
from pathlib import Path
from statistics import mean

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from steelyard.judges.local.blend import Blend, Language, log_odds
from steelyard.judges.local.readings import Readings
from steelyard.judges.local.server import FirstToken, Message, ModelServer
from steelyard.judges.models import Shelf
from training.opinions import SETS, Opinion, Part, asked_about, by_turns, dev_rows, opinions
from training.sets import DATA

BLEND = Path(str(files("steelyard.judges.local") / "blend.toml"))
# The widest band worth asking in, and those that are tried; asking about all costs what it brings in.
WIDEST = (0.03, 0.985)
ABOVE, BELOW = (0.03, 0.1, 0.2, 0.3), (0.7, 0.8, 0.9, 0.97)
COST_OF_ASKING = 0.02
# Rules, model, constant, clash: about what earlier fits on a hundred development claims of both languages gave.
Weights = tuple[float, float, float, float]
START: Weights = (0.3, 0.9, -0.4, -1.0)
# How far a fit may leave them: about as much as fifty rows say; languages differ most in what a clash is worth.
STEADINESS = (10.0, 10.0, 10.0, 2.0)


class Known(Readings):
    """Readings of earlier runs only; the model itself is not asked."""

    def first_token(self, messages: Sequence[Message]) -> FirstToken | None:
        return super().first_token(messages) if self.is_known(messages) else None


# --- choosing --------------------------------------------------------------------------------------


def chosen(found: Sequence[Opinion]) -> Blend:
    """The band that serves sets best that had no part in the weights, with the weights that all rows give in it."""
    bands = [band for band in product(ABOVE, BELOW) if fitted(found, *band)]
    if not bands:
        raise SystemExit("too few answers of the model to choose by; run without --known, or with more --rows")

    def worth(band: tuple[float, float]) -> float:
        return mean(apart(found, band).values()) - COST_OF_ASKING * share_asked(found, _fit(found, band))

    return _fit(found, max(bands, key=worth))


def apart(found: Sequence[Opinion], band: tuple[float, float]) -> Mapping[str, float]:
    """Each set's accuracy by weights that the other sets give; its own, where there is no other."""
    sets = by_set(found)
    others = {name: [one for one in found if one.set != name] or found for name in sets}
    return {name: accuracy(part, fitted(others[name], *band)) for name, part in sets.items()}


def _fit(found: Sequence[Opinion], band: tuple[float, float]) -> Blend:
    blend = fitted(found, *band)
    assert blend
    return blend


def fitted(found: Sequence[Opinion], above: float, below: float) -> Blend | None:
    """The weights for a band, learnt where they will be used: on the claims inside it."""
    inside = [(part, one.supported) for one in found for part in told(one) if above < part.rules.probability < below]
    if len({supported for _, supported in inside}) < 2:
        return None
    rules, model, constant, clash = (round(number, 3) for number in weights(inside))
    return Blend(ask_above=above, ask_below=below, rules=rules, model=model, constant=constant, clash=clash)


def told(one: Opinion) -> Sequence[Part]:
    """The parts whose own label is known: all of a supported row, and the only one of another."""
    parts = one.parts if one.supported or len(one.parts) == 1 else ()
    return [part for part in parts if part.share is not None]


Told = tuple[Part, bool]


def weights(inside: Sequence[Told]) -> Weights:
    """What the rules' log-odds, the model's, nothing at all and a clash count for; none against its own meaning."""
    odds = [
        [log_odds(part.rules.probability), log_odds(part.share or 0.0), 1.0, float(bool(part.rules.clash))]
        for part, _ in inside
    ]
    features, signs = np.array(odds), np.array([1.0 if supported else -1.0 for _, supported in inside])
    # Both labels count the same, whatever their numbers.
    counts = np.where(signs > 0, 0.5 / (signs > 0).mean(), 0.5 / (signs < 0).mean())
    begun, pull = np.array(START), np.array(STEADINESS)

    def loss(tried: NDArray[np.float64]) -> float:
        surprise = counts @ np.logaddexp(0, -signs * (features @ tried))
        return float(surprise + (pull * (tried - begun) ** 2).sum() / 2)

    bounds = [(0, None), (0, None), (None, None), (None, 0)]
    rules, model, constant, clash = minimize(loss, begun, method="L-BFGS-B", bounds=bounds).x
    return float(rules), float(model), float(constant), float(clash)


# --- measuring -------------------------------------------------------------------------------------


def is_supported(one: Opinion, blend: Blend | None) -> bool:
    """Whether all parts are; without a blend, by the rules alone."""
    return all(_label(part, blend) == "supported" for part in one.parts)


def _label(part: Part, blend: Blend | None) -> str:
    if blend is None or part.share is None or not blend.is_open(part.rules):
        return part.rules.label
    return blend.label(part.rules, part.share)


def by_set(found: Sequence[Opinion]) -> Mapping[str, list[Opinion]]:
    sets: dict[str, list[Opinion]] = {}
    for one in found:
        sets.setdefault(one.set, []).append(one)
    return sets


def accuracy(found: Sequence[Opinion], blend: Blend | None) -> float:
    """Balanced accuracy, each set counting the same."""
    return mean(_balanced(part, blend) for part in by_set(found).values())


def _balanced(part: Sequence[Opinion], blend: Blend | None) -> float:
    right: dict[bool, list[bool]] = {True: [], False: []}
    for one in part:
        right[one.supported].append(is_supported(one, blend) == one.supported)
    return mean(mean(side) for side in right.values() if side)


def share_asked(found: Sequence[Opinion], blend: Blend) -> float:
    return mean(part.share is not None and blend.is_open(part.rules) for one in found for part in one.parts)


def told_apart(found: Sequence[Opinion]) -> str:
    """How well the model alone puts supported claims before others: the area under its curve."""
    shares = {
        side: [part.share for one in found if one.supported is side for part in told(one)] for side in (True, False)
    }
    pairs = [(yes or 0.0, no or 0.0) for yes in shares[True] for no in shares[False]]
    return f"{mean((yes > no) + 0.5 * (yes == no) for yes, no in pairs):.2f}" if pairs else "–"


def lines(spoken: Language, found: Sequence[Opinion], blend: Blend) -> Iterator[str]:
    """What there is to say about the numbers chosen for one language."""
    yield "| set | n | AUC, model | rules alone | both | without this set | asked |"
    yield "|---|---|---|---|---|---|---|"
    without = apart(found, (blend.ask_above, blend.ask_below))
    for name, part in by_set(found).items():
        yield (
            f"| {name} {spoken} | {len(part)} | {told_apart(part)} | {accuracy(part, None):.2f} "
            f"| {accuracy(part, blend):.2f} | {without[name]:.2f} | {share_asked(part, blend):.2f} |"
        )
    yield f"| all {spoken} | {len(found)} | | {accuracy(found, None):.2f} | {accuracy(found, blend):.2f} | | |"


def written(text: str, spoken: Language, blend: Blend) -> str:
    """The text of blend.toml with other numbers for a language."""
    table = "\n".join([f"[{spoken}]", *(f"{name} = {value}" for name, value in blend.model_dump().items())])
    return re.sub(rf"^\[{spoken}\]\n(?:\w+ = .*\n)+", f"{table}\n", text, flags=re.MULTILINE)


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="", help="name or path; default: the local judge's own")
    parser.add_argument(
        "--readings", type=Path, default=Path("readings.jsonl"), help="what the model said is kept here"
    )
    parser.add_argument("--rows", type=int, default=60, help="rows of each set")
    parser.add_argument("--known", action="store_true", help="do not ask the model; leave out what it was not asked")
    parser.add_argument("--threads", type=int)
    parser.add_argument("--data", type=Path, default=DATA)
    parser.add_argument("--write", type=Path, nargs="?", const=BLEND, metavar="FILE", help="write the numbers here")
    given = parser.parse_args(arguments)
    model = Shelf.of_user(os.environ).find(given.model)
    server = ModelServer(model.path, threads=given.threads)
    asking = (Known if given.known else Readings)(server, model.sha256, given.readings)
    named = [(spoken, name) for spoken, names in SETS.items() for name in names]
    sets = [list(asked_about(dev_rows(name, spoken, given.rows, given.data))) for spoken, name in named]
    spoken_of = {id(asked): named[at][0] for at, found in enumerate(sets) for asked in found}
    seen: dict[Language, list[Opinion]] = {"zh": [], "en": []}
    for asked in by_turns(sets):
        seen[spoken_of[id(asked)]] += opinions(asked, WIDEST, asking)
    server.close()
    for spoken, found in seen.items():
        blend = chosen(found)
        print("\n".join([*lines(spoken, found, blend), "", str(blend), ""]))
        if given.write:
            given.write.write_text(written(given.write.read_text("utf-8"), spoken, blend), "utf-8")


if __name__ == "__main__":
    main()
