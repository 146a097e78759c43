"""Every Eval Ever: a record per model, and a line per sample and score, as its schema 0.2.2 has them."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import IO, Any
from uuid import uuid5

from steelyard import __version__
from steelyard.errors import ConfigError
from steelyard.integrations.evaluations import NAMESPACE, JudgedRun
from steelyard.integrations.sending import Delivery, Request
from steelyard.protocols.vocabulary import Metric
from steelyard.records import DialogueSample, Sample, Verdict
from steelyard.reports.build import ReportBuilder
from steelyard.reports.model import Estimate
from steelyard.stats import CONFIDENCE

VERSION = "0.2.2"
OPTIONS = ("model", "organization", "relationship", "dataset")
RELATIONSHIPS = ("first_party", "third_party", "collaborative", "other")
NOT_IN_NAMES = re.compile(r"[^\w.-]")


def send(run: JudgedRun, request: Request) -> Delivery:
    """Into a folder. A second export of a run writes the same files again."""
    if not request.where:
        raise ConfigError("every-eval-ever needs a folder: every-eval-ever:FOLDER")
    options = request.options
    if (relationship := options.get("relationship", "other")) not in RELATIONSHIPS:
        raise ConfigError(f"relationship is one of {', '.join(RELATIONSHIPS)}, not {relationship!r}")
    done, records = Delivery(), dict[str, EvaluatedModel]()
    with ExitStack() as files:
        for sample, verdict in run.verdicts():
            model = options.get("model") or sample.model
            if not model:
                problem = f"sample {sample.id!r} does not say which model answered; name it with the option model"
                raise ConfigError(f"every-eval-ever: {problem}")
            if model not in records:
                records[model] = EvaluatedModel(run, model, options, Path(request.where))
                files.enter_context(records[model].lines)
            written = records[model].add(sample, verdict)
            done.sent += written
            done.without_score += len(verdict.scores) - written
    for record in records.values():
        record.finish()
    return done


class EvaluatedModel:
    """The answers of one model in a run: the file of lines while it is written, and the record about it."""

    def __init__(self, run: JudgedRun, model: str, options: Mapping[str, str], root: Path) -> None:
        self._run, self._model, self._options = run, model, options
        self._builder = ReportBuilder(run.protocol, "en")
        self._count, self._digest = 0, hashlib.sha256()
        self.id = f"{run.protocol}/{model}/{int(run.time.timestamp())}"
        developer, _, name = model.rpartition("/")
        folder = root.joinpath(*map(_file_name, (run.protocol, developer or "unknown", name)))
        folder.mkdir(parents=True, exist_ok=True)
        stem = uuid5(NAMESPACE, json.dumps([run.id, self.id]))
        self._file, self._lines = folder / f"{stem}.json", folder / f"{stem}.jsonl"
        self.lines: IO[str] = self._lines.open("w", encoding="utf-8", newline="\n")

    def add(self, sample: Sample, verdict: Verdict) -> int:
        """Write a line for each score that there is."""
        self._builder.add(verdict, sample)
        known = [(name, float(value)) for name, value in verdict.scores.items() if value is not None]
        for name, value in known:
            line = json.dumps(self._line(sample, name, value), ensure_ascii=False) + "\n"
            self._digest.update(line.encode())
            self.lines.write(line)
        self._count += len(known)
        return len(known)

    def finish(self) -> None:
        """Write the record, once all lines are there."""
        scores = self._builder.build().scores
        record = {
            "schema_version": VERSION,
            "evaluation_id": self.id,
            "evaluation_timestamp": self._run.time.isoformat(),
            "retrieved_timestamp": str(int(self._run.time.timestamp())),
            "source_metadata": {
                "source_name": "Steelyard",
                "source_type": "evaluation_run",
                "source_organization_name": self._options.get("organization", "unknown"),
                "evaluator_relationship": self._options.get("relationship", "other"),
            },
            "eval_library": {"name": "steelyard", "version": __version__},
            "model_info": {"name": self._model.rpartition("/")[2], "id": self._model},
            "evaluation_results": [self._result(name, found) for name, found in scores.items() if found.n],
            "detailed_evaluation_results": {
                "format": "jsonl",
                "file_path": self._lines.name,
                "hash_algorithm": "sha256",
                "checksum": self._digest.hexdigest(),
                "total_rows": self._count,
            },
        }
        self._file.write_text(json.dumps(record, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def _result_id(self, name: str) -> str:
        return f"{self.id}#{name}"

    def _result(self, name: str, found: Estimate) -> dict[str, Any]:
        interval = found.interval and {
            "lower": found.interval[0],
            "upper": found.interval[1],
            "confidence_level": CONFIDENCE,
        }
        return {
            "evaluation_result_id": self._result_id(name),
            "evaluation_name": f"{self._run.protocol}.{name}",
            "source_data": self._dataset(),
            "evaluation_timestamp": self._run.time.isoformat(),
            "metric_config": self._metric(self._run.words.metric(name)),
            "score_details": {
                "score": found.value,
                "uncertainty": {"num_samples": found.n} | ({"confidence_interval": interval} if interval else {}),
            },
        }

    def _dataset(self) -> dict[str, Any]:
        files = [one for one in self._run.manifest.get("data", ()) if isinstance(one, Mapping)]
        names = [Path(str(one.get("path", ""))).name for one in files]
        named = self._options.get("dataset") or ", ".join(filter(None, names)) or "unknown"
        hashes = ",".join(str(one["sha256"]) for one in files if one.get("sha256"))
        return {"dataset_name": named, "source_type": "other"} | ({"source_version": hashes} if hashes else {})

    def _metric(self, metric: Metric) -> dict[str, Any]:
        low, high = metric.bounds
        bounded = {"score_type": "continuous", "min_score": low, "max_score": high}
        judge = self._run.manifest.get("judge", {})
        details = {"direction": metric.direction, "judge": str(judge.get("name", ""))}
        details["judge_fingerprint"] = self._run.fingerprint
        config = {
            "evaluation_description": metric.about.en,
            "metric_id": f"steelyard.{self._run.protocol}.{metric.name}",
            "metric_name": metric.words.en or metric.name,
            "lower_is_better": metric.direction == "down",
            "additional_details": {name: value for name, value in details.items() if value},
        }
        config |= bounded if math.isfinite(high - low) else {}
        if judge.get("model") and not judge.get("offline"):
            prompts = self._run.manifest.get("prompts", {})
            model = {"name": judge["model"], "id": judge["model"]}
            shown = "; ".join(f"{id} v{one['version']} sha256:{one['sha256']}" for id, one in sorted(prompts.items()))
            config["llm_scoring"] = {"judges": [{"model_info": model}], "input_prompt": shown}
        return config

    def _line(self, sample: Sample, name: str, value: float) -> dict[str, Any]:
        asked, references = _asked(sample)
        digest = hashlib.sha256("".join((asked, *references)).encode()).hexdigest()
        evaluation: dict[str, Any] = {"score": value, "is_correct": value == self._run.words.metric(name).best}
        common = {
            "schema_version": f"instance_level_eval_{VERSION}",
            "evaluation_id": self.id,
            "model_id": self._model,
            "evaluation_name": f"{self._run.protocol}.{name}",
            "evaluation_result_id": self._result_id(name),
            "sample_id": sample.id,
            "sample_hash": digest,
            "input": {"raw": asked, "reference": references},
            "answer_attribution": [],
            "evaluation": evaluation,
        }
        if not isinstance(sample, DialogueSample):
            return common | {"interaction_type": "single_turn", "output": {"raw": [sample.answer]}, "messages": None}
        evaluation["num_turns"] = max(1, len(sample.turns))
        return common | {"interaction_type": "multi_turn", "output": None, "messages": list(_messages(sample))}


def _asked(sample: Sample) -> tuple[str, list[str]]:
    if isinstance(sample, DialogueSample):
        return sample.system_prompt, []
    return sample.question, [sample.reference_answer] if sample.reference_answer else []


def _messages(sample: DialogueSample) -> Iterator[dict[str, Any]]:
    said = [("system", sample.system_prompt)]
    for turn in sample.turns:
        said += [("user", turn.prompt), ("assistant", turn.answer)]
    for index, (role, content) in enumerate(said):
        yield {"turn_idx": index, "role": role, "content": content}


def _file_name(text: str) -> str:
    """A name that stays in its folder, whatever the data call a model."""
    return NOT_IN_NAMES.sub("_", text)[:100].lstrip(".") or "unnamed"
