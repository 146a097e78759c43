"""promptfoo (node): four assertions over answers that are given, by `promptfoo eval`; its start is on the clock."""

import json
import os
import subprocess
from pathlib import Path

from meter import CONCURRENCY, DEADLINE, DOING, KEY, MODEL, TOLD, URL, measured, report, samples

FAILED = ("API", "Error", "No output", "Could not")
rows = samples()
where = {"apiBaseUrl": URL, "apiKey": KEY}
grader = {
    "text": {"id": f"openai:chat:{MODEL}", "config": where},
    "embedding": {"id": "openai:embedding:text-embedding-3-small", "config": where},
}
ASSERTIONS = [
    {"type": "context-faithfulness", "threshold": 0.5},
    {"type": "answer-relevance", "threshold": 0.5},
    {"type": "context-recall", "value": "{{reference}}", "threshold": 0.5},
    {"type": "llm-rubric", "value": "The output agrees with this answer: {{reference}}"},
]
config = {
    "prompts": ["{{answer}}"],
    "providers": ["echo"],
    "defaultTest": {"options": {"provider": grader}, "assert": ASSERTIONS},
    "tests": [
        {
            "description": row["id"],
            "vars": {
                "query": row["question"],
                "context": "\n".join(row["references"]),
                "answer": row["answer"],
                "reference": row["reference_answer"],
            },
        }
        for row in rows
    ],
}
Path("config.json").write_text(json.dumps(config), "utf-8")
HOW = {
    "run": ["-c", "config.json", "--no-cache", "-j", str(CONCURRENCY)],
    "keep": ["-c", "config.json", "-j", str(CONCURRENCY)],
    "resume": ["--resume"],
}
command = [f"{TOLD['environment']}/node_modules/.bin/promptfoo", "eval", *HOW[DOING], "-o", "out.json"]
command += ["--no-progress-bar", "--no-table", "--no-share"]
quiet = ("UPDATE", "REMOTE_GENERATION", "SHARING", "TELEMETRY")
environment = os.environ | {f"PROMPTFOO_DISABLE_{name}": "1" for name in quiet} | {"PROMPTFOO_CONFIG_DIR": os.getcwd()}
environment["REQUEST_TIMEOUT_MS"] = str(round(DEADLINE * 1000))
with measured():
    subprocess.run(command, env=environment, check=False)


def scores(result: dict) -> dict[str, float | None]:
    parts = (result.get("gradingResult") or {}).get("componentResults") or []
    values = [None if str(part.get("reason", "")).startswith(FAILED) else part.get("score") for part in parts]
    values += [None] * (len(ASSERTIONS) - len(values))
    return {one["type"]: value for one, value in zip(ASSERTIONS, values, strict=True)}


judged = json.loads(Path("out.json").read_text("utf-8"))["results"]["results"]
report({result["testCase"]["description"]: scores(result) for result in judged})
