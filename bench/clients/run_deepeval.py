"""deepeval: three metrics through its own evaluate(); errors do not end the run."""

import os

from meter import CONCURRENCY, DEADLINE, DOING, KEY, MODEL, URL, measured, report, samples

# With a deadline for an attempt alone, that of a whole metric would shrink from its usual 180 s.
os.environ["DEEPEVAL_PER_ATTEMPT_TIMEOUT_SECONDS_OVERRIDE"] = str(DEADLINE)
os.environ["DEEPEVAL_PER_TASK_TIMEOUT_SECONDS_OVERRIDE"] = "180"
from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig, ErrorConfig
from deepeval.metrics import AnswerRelevancyMetric, ContextualRecallMetric, FaithfulnessMetric
from deepeval.models import GPTModel
from deepeval.test_case import LLMTestCase

model = GPTModel(model=MODEL, base_url=URL, api_key=KEY)
cases = [
    LLMTestCase(
        name=row["id"],
        input=row["question"],
        actual_output=row["answer"],
        expected_output=row["reference_answer"],
        retrieval_context=row["references"],
    )
    for row in samples()
]
metrics = [kind(model=model) for kind in (FaithfulnessMetric, AnswerRelevancyMetric, ContextualRecallMetric)]
with measured():
    result = evaluate(
        cases,
        metrics,
        async_config=AsyncConfig(max_concurrent=CONCURRENCY, throttle_value=0),
        display_config=DisplayConfig(show_indicator=False, print_results=False, inspect_after_run=False),
        cache_config=CacheConfig(use_cache=DOING != "run", write_cache=DOING != "run"),
        error_config=ErrorConfig(ignore_errors=True),
    )
report(
    {
        case.name: {metric.name: None if metric.error else metric.score for metric in case.metrics_data or ()}
        for case in result.test_results
    }
)
