"""The wording of the three languages."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import pytest

from steelyard import records, tasks
from steelyard.judges.wire import Failed
from steelyard.protocols import BUILT_IN, Protocol, get_protocol, known_aspects
from steelyard.protocols.common import MISSING, why_open
from steelyard.protocols.counts import SHALLOW_CAP
from steelyard.protocols.dialogue import COMPLIANCE
from steelyard.protocols.grounded import CHECK, CHECKS
from steelyard.records import Mark
from steelyard.text.wording import LANGUAGES, band_description, say, words

HAN = re.compile(r"[\u4e00-\u9fff]")
METRICS = ("relevance", "completeness", "accuracy", "faithfulness")
SOURCE = Path(records.__file__).parent


def flat(table: dict[str, Any], prefix: str = "") -> dict[str, str]:
    found: dict[str, str] = {}
    for key, value in table.items():
        if isinstance(value, dict):
            found |= flat(value, f"{prefix}{key}.")
        elif isinstance(value, list):
            found |= {f"{prefix}{key}.{n}": text for n, text in enumerate(value)}
        else:
            found[f"{prefix}{key}"] = value
    return found


def all_text(language: records.Language) -> str:
    return "".join(flat(words(language)).values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_same_keys(language: records.Language) -> None:
    """No language lacks a phrase that another has."""
    assert flat(words(language)).keys() == flat(words("en")).keys()


@pytest.mark.parametrize("language", LANGUAGES)
def test_same_placeholders(language: records.Language) -> None:
    """A phrase is filled with the same values in every language."""
    english = flat(words("en"))
    for key, text in flat(words(language)).items():
        assert sorted(re.findall(r"\{\w*\}", text)) == sorted(re.findall(r"\{\w*\}", english[key])), key


@pytest.mark.parametrize("language", LANGUAGES)
def test_nothing_is_empty(language: records.Language) -> None:
    """Every phrase says something."""
    assert all(text.strip() for text in flat(words(language)).values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_forty_bands(language: records.Language) -> None:
    """Each scorecard metric has ten descriptions, all forty different."""
    texts = [band_description(metric, band, language) for metric in METRICS for band in range(10)]
    assert len(set(texts)) == 40
    assert [len(words(language)["band"][metric]) for metric in METRICS] == [10] * 4


@pytest.mark.parametrize("language", LANGUAGES)
def test_bands_hold_for_the_whole_band(language: records.Language) -> None:
    """The top accuracy band admits errors, and the completeness bands around the cap name it."""
    assert re.search("十分之一|一成|one decidable statement in ten", band_description("accuracy", 9, language))
    for band in (8, 9):
        assert str(SHALLOW_CAP) in band_description("completeness", band, language)


def test_scripts_are_kept_apart() -> None:
    """Simplified text has only simplified characters, traditional text only traditional ones."""
    for language, encoding in (("zh-Hans", "gb2312"), ("zh-Hant", "big5")):
        han = "".join(HAN.findall(all_text(language)))  # type: ignore[arg-type]
        assert han.encode(encoding).decode(encoding) == han


# What readers type or see elsewhere stays as it is there: options, file names, addresses, values to fill in.
AS_TYPED = re.compile(r"--?[A-Za-z][\w-]*(?:[ =][A-Z][\w=]*)?|\{[^}]*\}|https?://\S+|[\w./-]+\.\w+|[A-Z]+=[A-Z]+")
HALF_WIDTH = re.compile(
    r"[\u3400-\u9fff。，；：！？、】》」』” ][ ]?[,;:!?]|[,;:!?][ ]?[\u3400-\u9fff]|"
    r"[\u3400-\u9fff]\.|\.[\u3400-\u9fff]|"
    r"[\u3400-\u9fff]\([^)]*[\u3400-\u9fff]|\([^)]*[\u3400-\u9fff][^)]*\)"
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_signs_are_those_of_print(language: records.Language) -> None:
    """A number below zero has a minus sign and no hyphen; backticks are Markdown, which a page would show as they are;
    Chinese text has Chinese punctuation."""
    for key, text in flat(words(language)).items():
        left = AS_TYPED.sub("x", text)
        assert "`" not in text, key
        assert not re.search(r"(?:^|[\s(（，、“±≤≥<>])-(?=[\d.x])", left), key
        assert not re.search(r"--| - ", left), key
        if language != "en":
            assert not HALF_WIDTH.search(left), (key, text)


def test_taiwan_usage() -> None:
    """Traditional wording uses the words of its readers, not converted mainland ones."""
    text = all_text("zh-Hant")
    assert "資訊" in text
    for mainland in ("信息", "質量", "默認", "數據", "文件", "字段", "緩存", "調用", "運行"):
        assert mainland not in text, mainland


LABELS = {
    "atom": records.AtomLabel,
    "on_topic": records.TopicLabel,
    "support": records.SupportLabel,
    "key_point": records.CoverageLabel,
    "criterion": records.ComplianceLabel,
    "validity": records.Validity,
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_label_has_a_name(language: records.Language) -> None:
    """Whatever label a verdict can carry, the reader sees a word for it."""
    for kind, labels in LABELS.items():
        (aspect, *_) = known_aspects()[kind]
        assert {*aspect.names, "unjudged"} == set(get_args(labels))
        assert all(label.words.in_language(language) for label in aspect.labels)
    assert set(words(language)["depth"]) == set(get_args(records.Depth))
    assert set(words(language)["source"]) == set(get_args(records.EvidenceSource))
    assert set(words(language)["status"]) == set(get_args(records.Status))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_check_has_a_name(language: records.Language) -> None:
    """All checks of `grounded` are named."""
    assert set(CHECK.names) == {name for _, name in CHECKS}
    assert all(name.in_language(language) for name in CHECK.names.values())


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogue_results_are_the_documents_own_words(language: records.Language) -> None:
    """In Chinese the results of a criterion read as the source document writes them."""
    if language == "zh-Hans":
        assert [label.words.in_language(language) for label in COMPLIANCE.labels] == ["符合", "不符合", "不确定"]
    assert len({label.words.in_language(language) for label in COMPLIANCE.labels}) == 3


# --- what code can say -----------------------------------------------------------------------------


def trees(*patterns: str) -> list[ast.Module]:
    return [ast.parse(file.read_text("utf-8")) for pattern in patterns for file in sorted(SOURCE.glob(pattern))]


def calls_of(*names: str) -> list[ast.Call]:
    """Every call of these functions; only files that name one are parsed."""
    texts = (file.read_text("utf-8") for file in sorted(SOURCE.glob("**/*.py")))
    found = (ast.parse(text) for text in texts if any(f"{name}(" in text for name in names))
    calls = (node for tree in found for node in ast.walk(tree) if isinstance(node, ast.Call))
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in names]


def strings(node: ast.AST) -> set[str]:
    return {n.value for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)}


def flag_expressions(tree: ast.Module) -> Iterator[ast.AST]:
    """What is assigned to, appended to, passed as or kept under the name `flags`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.keyword) and node.arg == "flags":
            yield node.value
        elif isinstance(node, ast.Assign | ast.AnnAssign | ast.AugAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            if node.value and any(getattr(target, "id", "").endswith("flags") for target in targets):
                yield node.value
        elif isinstance(node, ast.Dict):
            yield from (
                value for key, value in zip(node.keys, node.values, strict=True) if key and "flags" in strings(key)
            )
        elif isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if called.endswith("flags.append") or called == "with_flags":
                yield from node.args


def vocabulary_names(protocol: Protocol) -> Iterator[str]:
    yield from (metric.name for metric in protocol.metrics)
    yield from protocol.most_severe
    yield from (expectation.name for expectation in protocol.expectations)
    for kind in protocol.kinds:
        yield from (kind.name, kind.listed_as, *kind.names)
        for aspect in (*kind.aspects, *((kind.parts,) if kind.parts else ())):
            yield from (aspect.name, *aspect.names)


def flags_in_source() -> set[str]:
    """Every flag that a protocol or a parser of transcripts can set, found as a literal.

    Either it stands where flags are made, or it is written as only flags are: two_words that name nothing else.
    """
    found = trees("protocols/*.py", "protocols/transcripts/*.py", "engine/templates/fitting.py")
    values = [value for module in (records, tasks) for value in vars(module).values() if isinstance(value, type)]
    models = [value for value in values if hasattr(value, "model_fields")]
    others = {name for model in models for name in model.model_fields}
    others |= {node.name for tree in found for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    others |= set(words("en")["source"])
    others |= {word for protocol in map(get_protocol, BUILT_IN) for word in vocabulary_names(protocol)}
    # Keys of other documents, of pydantic's errors, of replies; and the one reason that is no flag.
    others |= {"criteria_results", "criterion_id", "evaluation_report", "extra_forbidden", "political_date", MISSING}
    # A label and a score that every rubric may have.
    others |= {"not_applicable", "raw_score"}
    # Where several judges are asked, and where the runner sees who wrote the answer.
    beside = trees("judges/voting.py", "judges/verifying.py", "engine/runner.py")
    placed = {t for tree in (*found, *beside) for expression in flag_expressions(tree) for t in strings(expression)}
    coined = {text for tree in found for text in strings(tree) if re.fullmatch(r"[a-z]+(?:_[a-z]+)+", text)} - others
    kinds = {model.model_fields["kind"].default for model in models if "kind" in model.model_fields}
    return coined | {text for text in placed if re.fullmatch(r"[a-z]+(?:_[a-z]+)*", text)} - kinds


def test_every_flag_has_a_text_and_every_text_a_flag() -> None:
    """Whatever flag can be set, the reader learns what it means; nothing is explained that is never set."""
    assert flags_in_source() == set(words("en")["flag"])


def test_every_reason_has_a_text_and_every_text_a_reason() -> None:
    """The same for the reasons why an item is unjudged."""
    reasons = set(get_args(get_type_hints(Failed)["reason"])) | {MISSING}
    for call in calls_of("Unjudged"):
        reasons |= {text for given in call.keywords if given.arg == "reason" for text in strings(given)}
    reasons |= {why_open(Mark()), why_open(Mark(flags=("not_confirmed",)))}
    # A sample that was not sent, and prose where a reason should stand: said by protocols and reports themselves.
    assert reasons | {"too_long", "cannot_tell", "unknown"} == set(words("en")["unjudged"])


def test_every_refusal_of_a_form_has_a_text() -> None:
    """What a form is refused for is said on a page in every language, and nothing else is worded."""
    codes = {call.args[1].value for call in calls_of("FormRefused", "NotAllowed")}  # type: ignore[attr-defined]
    assert codes == set(words("en")["viewer"]["refused"])
    for language in LANGUAGES:
        for code, text in words(language)["viewer"]["refused"].items():
            assert text.endswith("." if language == "en" else "。"), code


def test_every_list_that_can_fail_has_a_name() -> None:
    """`unjudged:LIST:REASON` reads as words: each LIST that a protocol can name is in the table."""
    text = "".join(file.read_text("utf-8") for file in SOURCE.glob("protocols/*.py"))
    named = set(re.findall(r"unjudged:(\w+):", text)) | set(re.findall(r'first\["(\w+)"\] = ', text))
    assert named - {"LIST"} == set(words("en")["list"])


def test_a_missing_phrase_is_a_bug() -> None:
    """Asking for a phrase that does not exist raises instead of printing the key."""
    with pytest.raises(KeyError):
        say("en", "report.no_such_phrase")
