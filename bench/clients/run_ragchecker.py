"""ragchecker: four metrics, in batches of as many as may be in flight."""

from pathlib import Path

from meter import CONCURRENCY, DEADLINE, DOING, KEY, MODEL, URL, measured, report, samples
from ragchecker import RAGChecker, RAGResults
from ragchecker.container import RAGResult, RetrievedDoc

METRICS = ("faithfulness", "precision", "recall", "claim_recall")
results = RAGResults(
    [
        RAGResult(
            query_id=row["id"],
            query=row["question"],
            gt_answer=row["reference_answer"],
            response=row["answer"],
            retrieved_context=[RetrievedDoc(doc_id=str(at), text=text) for at, text in enumerate(row["references"])],
        )
        for row in samples()
    ]
)
SAVED = Path("saved.json")
if DOING == "resume" and SAVED.exists():
    results = RAGResults.from_json(SAVED.read_text("utf-8"))
checker = RAGChecker(
    extractor_name=f"openai/{MODEL}",
    checker_name=f"openai/{MODEL}",
    batch_size_extractor=CONCURRENCY,
    batch_size_checker=CONCURRENCY,
    extractor_api_base=URL,
    checker_api_base=URL,
    openai_api_key=KEY,
    timeout=DEADLINE,
)
with measured():
    checker.evaluate(results, list(METRICS), save_path=None if DOING == "run" else str(SAVED))
report({result.query_id: {name: result.metrics.get(name) for name in METRICS} for result in results.results})
