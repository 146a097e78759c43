"""The wording of the three languages."""

from __future__ import annotations

import re
from typing import Any, get_args

import pytest

from steelyard import records
from steelyard.protocols.grounded import CHECKS
from steelyard.scoring import SHALLOW_CAP
from steelyard.wording import LANGUAGES, band_description, say, words

HAN = re.compile(r"[\u4e00-\u9fff]")
METRICS = ("relevance", "completeness", "accuracy", "faithfulness")


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
        assert set(words(language)["label"][kind]) == set(get_args(labels))
    assert set(words(language)["depth"]) == set(get_args(records.Depth))
    assert set(words(language)["source"]) == set(get_args(records.Source))
    assert set(words(language)["status"]) == set(get_args(records.Status))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_check_has_a_name(language: records.Language) -> None:
    """All checks of `grounded` are named."""
    assert set(words(language)["check"]) == {name for _, name in CHECKS}


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogue_results_are_the_documents_own_words(language: records.Language) -> None:
    """In Chinese the results of a criterion read as the source document writes them."""
    if language == "zh-Hans":
        assert [say(language, f"label.criterion.{x}") for x in ("satisfied", "violated", "undetermined")] == [
            "符合",
            "不符合",
            "不确定",
        ]
    assert say(language, "label.criterion.satisfied") != say(language, "label.criterion.violated")


def test_a_missing_phrase_is_a_bug() -> None:
    """Asking for a phrase that does not exist raises instead of printing the key."""
    with pytest.raises(KeyError):
        say("en", "report.no_such_phrase")
