"""Has the stub write down what Steelyard asks for each sample, for run_bare.py to ask the same."""

import json
import urllib.request

from meter import TOLD, URL, samples

import steelyard
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.limiter import Limiter
from steelyard.settings import Settings


def control(**change: object) -> None:
    request = urllib.request.Request(URL.removesuffix("/v1") + "/control", json.dumps(change).encode())
    urllib.request.urlopen(request).close()


def evaluate(rows: list[dict[str, object]], judge: object) -> None:
    steelyard.evaluate(rows, "scorecard", judge, concurrency=8)


config = Settings.load()
# Wide enough that a round is never held up: the stub tells rounds apart by what is in flight together.
judge = JudgeFactory(config, limiter=Limiter(1000)).judge("stub")
rows = samples()
# The first calls find out what the endpoint accepts; they are not part of the work.
evaluate([{**rows[0], "question": "Unit-warm: does it work?"}], judge)
control(record=TOLD["calls"])
evaluate(rows, judge)
control(record=None)
