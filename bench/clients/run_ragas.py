"""ragas: four metrics through its own evaluate()."""

import warnings

from meter import CONCURRENCY, DEADLINE, DOING, MODEL, measured, report, samples

warnings.filterwarnings("ignore")
from langchain_openai import ChatOpenAI, OpenAIEmbeddings  # noqa: E402
from ragas import EvaluationDataset, RunConfig, evaluate  # noqa: E402
from ragas.cache import DiskCacheBackend  # noqa: E402
from ragas.embeddings import LangchainEmbeddingsWrapper  # noqa: E402
from ragas.llms import LangchainLLMWrapper  # noqa: E402
from ragas.metrics import FactualCorrectness, Faithfulness, LLMContextRecall, ResponseRelevancy  # noqa: E402

config = RunConfig(max_workers=CONCURRENCY)
cache = None if DOING == "run" else DiskCacheBackend(cache_dir="cache")
llm = LangchainLLMWrapper(ChatOpenAI(model=MODEL, timeout=DEADLINE), run_config=config, cache=cache)
embedder = OpenAIEmbeddings(check_embedding_ctx_length=False, timeout=DEADLINE)
embeddings = LangchainEmbeddingsWrapper(embedder, run_config=config, cache=cache)
metrics = [Faithfulness(), ResponseRelevancy(), FactualCorrectness(), LLMContextRecall()]
rows = samples()
data = EvaluationDataset.from_list(
    [
        {
            "user_input": row["question"],
            "retrieved_contexts": row["references"],
            "response": row["answer"],
            "reference": row["reference_answer"],
        }
        for row in rows
    ]
)
with measured():
    result = evaluate(data, metrics, llm=llm, embeddings=embeddings, run_config=config, show_progress=False)
report({row["id"]: scores for row, scores in zip(rows, result.scores, strict=True)})
