"""What a verifier's folder says of itself: config.json as Hugging Face writes it, and verifier.toml, which wins."""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from steelyard.errors import ConfigError, invalid_field
from steelyard.judges.models.cache import sha256_of
from steelyard.judges.models.folders import CONFIG, MODELS, SETTINGS, TOKENIZER, is_weights_beside

# What most encoders were taught with; a longer input is slower, and `length` allows it.
LENGTH = 512
# Their positions are counted from behind the padding id.
OFFSET = ("roberta", "xlm-roberta", "camembert", "xlm-roberta-xl")

Meaning = Literal["supported", "contradicted", "neutral", "unsupported"]
WORDS: Mapping[Meaning, frozenset[str]] = {
    "supported": frozenset(
        "entailment entail entails entailed supported support supports consistent factual grounded faithful yes true "
        "correct".split()
    ),
    "contradicted": frozenset("contradiction contradict contradicts contradicted refuted refute refutes".split()),
    "neutral": frozenset(["neutral", "not enough info", "not enough information", "nei", "unknown", "unverifiable"]),
    "unsupported": frozenset(
        [
            *"unsupported inconsistent hallucinated hallucination ungrounded unfaithful no false incorrect".split(),
            *["not entailment", "non entailment", "not supported", "not entailed", "non factual", "not consistent"],
        ]
    ),
}


class OutputLabels(BaseModel):
    """[labels] of verifier.toml: which output means what, by its number or by its name in config.json."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    supported: int | str
    contradicted: int | str | None = None
    neutral: int | str | None = None
    unsupported: int | str | None = None


class VerifierFile(BaseModel):
    """A whole verifier.toml; everything in it is optional."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    model: str | None = None
    labels: OutputLabels | None = None
    template: str | None = None
    claim_first: bool = False
    tokens: Literal["claim", "first"] = "claim"
    length: int | None = Field(default=None, ge=32)

    @field_validator("template")
    @classmethod
    def _has_both(cls, template: str | None) -> str | None:
        if template is not None and not ("{premise}" in template and "{claim}" in template):
            raise ValueError("must contain {premise} and {claim}")
        return template

    @field_validator("model")
    @classmethod
    def _lies_here(cls, model: str | None) -> str | None:
        if model is not None and (Path(model).name != model or not model.endswith(".onnx")):
            raise ValueError("must be the name of an .onnx file in this folder")
        return model


class Outputs(NamedTuple):
    """Which of the model's outputs mean what; what is neither supported nor contradicted is neutral."""

    size: int
    supported: int
    contradicted: int | None


class VerifierFolder:
    """A folder with a model, a tokenizer and their settings, checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        if not path.is_dir():
            raise ConfigError(f"there is no folder {path} with a verifier")
        self._config = _json(path / CONFIG)
        self.settings = _settings(path / SETTINGS)
        self.model = self._model()
        self.tokenizer = path / TOKENIZER
        if not self.tokenizer.is_file():
            raise ConfigError(
                f"{path}: there is no tokenizer.json; a fast tokenizer of Hugging Face writes it (save_pretrained)"
            )
        self.outputs = self._outputs()
        self.length = self._length()

    @property
    def pad(self) -> int:
        found = self._config.get("pad_token_id")
        return found if isinstance(found, int) and not isinstance(found, bool) else 0

    @property
    def room(self) -> int:
        """How many pieces of passages are read: three quarters of what the model takes, the rest is for the claim."""
        return self.length * 3 // 4

    def digest(self, model: str | None = None) -> str:
        """The content address of everything that shapes an answer; `model` is the model file's own, where known."""
        own = hashlib.sha256((model or sha256_of(self.model)).encode())
        for file in sorted(self.path.iterdir()):
            # Beside the model file lie the weights of a model beyond two gigabytes.
            if file.name in (CONFIG, TOKENIZER, SETTINGS) or is_weights_beside(file.name):
                own.update(f"{file.name} {sha256_of(file)}".encode())
        return own.hexdigest()

    def _model(self) -> Path:
        names = (self.settings.model,) if self.settings.model else MODELS
        found = next((self.path / name for name in names if (self.path / name).is_file()), None)
        if found is None:
            hint = "" if self.settings.model else "; docs/models.md says how to convert a Hugging Face model"
            raise ConfigError(f"{self.path}: there is no {' or '.join(names)}{hint}")
        return found

    def _length(self) -> int:
        if self.settings.length:
            return self.settings.length
        most = self._config.get("max_position_embeddings")
        if not isinstance(most, int) or most < 1:
            return LENGTH
        if self._config.get("model_type") in OFFSET:
            most -= self.pad + 1
        return min(most, LENGTH)

    def _outputs(self) -> Outputs:
        names = _label_names(self._config, self.path / CONFIG)
        if self.settings.labels is None:
            return self._recognised(names)
        given = self.settings.labels.model_dump(exclude_none=True)
        at = {meaning: self._index(meaning, label, names) for meaning, label in given.items()}
        if len(set(at.values())) < len(at):
            raise ConfigError(f"{self.path / SETTINGS}: labels: two of them name the same output")
        size = len(names) or max(2, max(at.values()) + 1)
        return Outputs(size, at["supported"], at.get("contradicted"))

    def _index(self, meaning: str, label: int | str, names: Sequence[str]) -> int:
        if isinstance(label, int):
            if label >= 0 and (not names or label < len(names)):
                return label
        elif label.casefold() in (folded := [name.casefold() for name in names]):
            return folded.index(label.casefold())
        listed = ", ".join(f"{number} {name!r}" for number, name in enumerate(names)) or "not named in config.json"
        raise ConfigError(
            f"{self.path / SETTINGS}: labels.{meaning}: {label!r} is none of the outputs, which are {listed}"
        )

    def _recognised(self, names: Sequence[str]) -> Outputs:
        """The outputs by what config.json calls them, where that leaves no doubt."""
        meanings = [_meaning(name) for name in names]
        clear = meanings.count("supported") == 1 and meanings.count("contradicted") <= 1 and None not in meanings
        if clear and 2 <= len(names) <= 3:
            at = meanings.index("contradicted") if "contradicted" in meanings else None
            return Outputs(len(names), meanings.index("supported"), at)
        listed = ", ".join(f"{number} is {name!r}" for number, name in enumerate(names)) or "it is missing"
        raise ConfigError(
            f"{self.path / CONFIG}: id2label does not say which output means that a claim is supported "
            f"({listed}); write it into {self.path / SETTINGS}: [labels], then supported = NUMBER, and "
            "contradicted = NUMBER where there is such an output"
        )


def _meaning(name: str) -> Meaning | None:
    plain = re.sub(r"[\s_-]+", " ", name.strip().lower())
    return next((meaning for meaning, words in WORDS.items() if plain in words), None)


def _label_names(config: Mapping[str, Any], where: Path) -> list[str]:
    """The outputs' names in order; none where config.json names none."""
    table = config.get("id2label")
    if table is None:
        return []
    try:
        by_number = {int(number): str(name) for number, name in table.items()}
        return [by_number[number] for number in range(len(by_number))]
    except (AttributeError, KeyError, TypeError, ValueError):
        raise ConfigError(f"{where}: id2label: must map 0, 1, … to names") from None


def _json(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_bytes())
    except FileNotFoundError:
        raise ConfigError(f"{path.parent}: there is no config.json") from None
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: cannot be read as JSON: {error}") from error
    if not isinstance(found, dict):
        raise ConfigError(f"{path}: must be a JSON object")
    return found


def _settings(path: Path) -> VerifierFile:
    if not path.exists():
        return VerifierFile()
    try:
        return VerifierFile.model_validate(tomllib.loads(path.read_text("utf-8")))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: cannot be read as TOML: {error}") from error
    except ValidationError as error:
        raise ConfigError(f"{path}: {invalid_field(error)}") from error
