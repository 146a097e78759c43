"""Model families: told by names as vendors and hubs write them."""

from __future__ import annotations

import pytest

from steelyard.reports.families import families, judges_itself


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("openai:gpt-4o-mini", {"gpt"}),
        ("o3-mini", {"gpt"}),
        ("openai/gpt-oss-120b", {"gpt"}),
        ("claude-3-5-sonnet-20241022", {"claude"}),
        ("Qwen/Qwen2.5-7B-Instruct", {"qwen"}),
        ("qwen:qwen-plus", {"qwen"}),
        ("通义千问-Max", {"qwen"}),
        ("deepseek-chat", {"deepseek"}),
        ("DeepSeek-R1-Distill-Qwen-7B", {"deepseek", "qwen"}),
        ("glm-4-flash", {"glm"}),
        ("moonshot-v1-32k", {"kimi"}),
        ("Doubao-pro-32k", {"doubao"}),
        ("yi-large", {"yi"}),
        ("Baichuan4", {"baichuan"}),
        ("ERNIE-4.0-8K", {"ernie"}),
        ("hunyuan-turbo", {"hunyuan"}),
        ("meta-llama/Llama-3.1-8B", {"llama"}),
        ("open-mixtral-8x7b", {"mistral"}),
        ("gemma-2-9b-it", {"gemini"}),
        ("panel of deepseek:deepseek-chat + qwen:qwen-plus ×3", {"deepseek", "qwen"}),
        ("embedded", set()),
        ("my-model", set()),
        ("foo3-mini", set()),
        ("recorded:replies", set()),
    ],
)
def test_names_tell_the_family(name: str, expected: set[str]) -> None:
    """Vendors' names, paths of hubs, Chinese names, a panel's name; what is unknown belongs to no family."""
    assert families(name) == expected


def test_only_a_known_family_judges_itself() -> None:
    """Without a model, or with one of unknown family, nothing is said."""
    assert judges_itself("mine:qwen-max", "Qwen2.5-72B")
    assert not judges_itself("mine:qwen-max", "gpt-4o")
    assert not judges_itself("mine:qwen-max", None)
    assert not judges_itself("mine:house-model", "house-model")
