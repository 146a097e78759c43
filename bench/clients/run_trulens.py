"""trulens: three feedback functions of its provider, in threads as they block. Its 60 requests a minute are lifted."""

import logging
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from meter import CONCURRENCY, DEADLINE, MODEL, measured, report, samples
from trulens.core.feedback.feedback import GroundednessConfigs
from trulens.providers.openai import OpenAI

logging.disable(logging.WARNING)
provider = OpenAI(model_engine=MODEL, rpm=1_000_000, timeout=DEADLINE)
# The other way of splitting sentences downloads data.
SPLIT = GroundednessConfigs(use_sent_tokenize=False, filter_trivial_statements=True)


def tried(function: Callable, *given: object, **options: object) -> float | None:
    try:
        score = function(*given, **options)
    except Exception as error:
        print(repr(error), file=sys.stderr)
        return None
    return score[0] if isinstance(score, tuple) else score


def judge(row: dict) -> dict[str, float | None]:
    passages = "\n".join(row["references"])
    grounded = provider.groundedness_measure_with_cot_reasons
    return {
        "groundedness": tried(grounded, passages, row["answer"], groundedness_configs=SPLIT),
        "relevance": tried(provider.relevance_with_cot_reasons, row["question"], row["answer"]),
        "context relevance": tried(provider.context_relevance_with_cot_reasons, row["question"], passages),
    }


rows = samples()
with measured(), ThreadPoolExecutor(CONCURRENCY) as threads:
    values = list(threads.map(judge, rows))
report({row["id"]: scores for row, scores in zip(rows, values, strict=True)})
