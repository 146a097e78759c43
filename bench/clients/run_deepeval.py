"""deepeval: three metrics through its own evaluate()."""

from deepeval import evaluate
from deepeval.evaluate.configs import AsyncConfig, CacheConfig, DisplayConfig
from deepeval.metrics import AnswerRelevancyMetric, ContextualRecallMetric, FaithfulnessMetric
from deepeval.models import GPTModel
from deepeval.test_case import LLMTestCase
from meter import CONCURRENCY, KEY, MODEL, URL, measured, report, samples

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
        cache_config=CacheConfig(use_cache=False, write_cache=False),
    )
report(
    {
        case.name: {metric.name: None if metric.error else metric.score for metric in case.metrics_data}
        for case in result.test_results
    }
)
