"""What the shipped prompts say: that their examples are right, and that they ask for what the code reads."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Any, Literal, get_args, get_origin

import pytest
from pydantic import BaseModel

from steelyard.prompts import Prompt, Prompts
from steelyard.records import Data, Numbered, ReplyData
from steelyard.tasks import TASKS

LANGUAGES = ("zh", "en")
# Characters of the static part, which is paid for on every call. Chinese says the same in fewer.
BUDGETS = {
    "atomic.split": 1500,
    "atomic.judge": 4000,
    "grounded.judge": 3200,
    "scorecard.key_points": 1100,
    "scorecard.judge": 4900,
    "dialogue.validity": 2200,
    "dialogue.compliance": 2200,
    "rubric.judge": 3100,
    "rubric.dialogue": 3000,
    "rubric.check": 3300,
    "retrieval.judge": 4000,
    "pairwise.judge": 2200,
}
CHINESE_SHARE = 0.6
# What the example needs to show that the code is sent back.
CODE_SHOWN = 50
CHECKS = ("on_topic", "answers_question", "complete", "conclusion_correct", "no_fallacy", "not_fallback")
PLACEHOLDER = re.compile(r"\$\$\$(\w+)\$\$\$")
EXAMPLE = re.compile(r"^(?:Input|输入)\n(.*?)^(?:Output|输出)\n```json\n(.*?)\n```$", re.DOTALL | re.MULTILINE)

each_prompt = pytest.mark.parametrize(
    ("task", "language"), [(task, language) for task in TASKS for language in LANGUAGES]
)


def prompt_of(task: str, language: str) -> Prompt:
    return Prompts.shipped().get(task, language)


def example_of(task: str, language: str) -> tuple[str, Any]:
    """The worked example: its input as text, its output as JSON, without the code that it sends back."""
    given, output = shown_example(task, language)
    return given, {key: value for key, value in output.items() if key != "code"}


def shown_example(task: str, language: str) -> tuple[str, Any]:
    [(given, output)] = EXAMPLE.findall(prompt_of(task, language).static)
    return given, json.loads(output)


def data_of(task: str) -> type[Data]:
    return TASKS[task][0]


def reply_of(task: str) -> type[ReplyData]:
    return TASKS[task][1]


def item_fields(task: str) -> list[str]:
    """The fields of the data whose items the reply must label."""
    return [name for name, field in data_of(task).model_fields.items() if get_args(field.annotation)[:1] == (Numbered,)]


def types_within(annotation: Any) -> Iterator[Any]:
    """The annotation and everything it is made of, fields of models included."""
    yield annotation
    if get_origin(annotation) is Literal:
        return
    for part in get_args(annotation):
        yield from types_within(part)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for field in annotation.model_fields.values():
            yield from types_within(field.annotation)


def labels_of(task: str) -> set[str]:
    literals = (part for part in types_within(reply_of(task)) if get_origin(part) is Literal)
    return {str(label) for literal in literals for label in get_args(literal)}


def keys_of(task: str) -> set[str]:
    """Every key of the reply that a judge is offered, at any depth."""
    schema = reply_of(task).model_json_schema()
    return {key for model in (schema, *schema.get("$defs", {}).values()) for key in model["properties"]}


def objects_in(value: Any) -> Iterator[dict[str, Any]]:
    if isinstance(value, dict):
        yield value
        value = list(value.values())
    if isinstance(value, list):
        for part in value:
            yield from objects_in(part)


def mentions(text: str, word: str) -> bool:
    """Whether the word stands there whole: `partial` is not mentioned by `partially`."""
    return re.search(rf"(?<![A-Za-z0-9_]){re.escape(word)}(?![A-Za-z0-9_])", text) is not None


def rules_of(task: str, language: str) -> str:
    """The static part without its example's output: a label shown only there is not explained."""
    return re.sub(r"```json.*?```", "", prompt_of(task, language).static, flags=re.DOTALL)


# --- the file --------------------------------------------------------------------------------------


@each_prompt
def test_header_agrees_with_file_name(task: str, language: str) -> None:
    """A prompt's header names the task and language that its file name names."""
    text = (files("steelyard.prompts") / f"{task}.{language}.md").read_text("utf-8")
    assert text.startswith(f"---\ntask: {task}\nlanguage: {language}\nversion: ")


@pytest.mark.parametrize("task", TASKS)
def test_languages_share_a_version(task: str) -> None:
    """Both languages of a task are changed together, so scores do not depend on which one is behind."""
    zh, en = (prompt_of(task, language).version for language in LANGUAGES)
    assert zh == en


@each_prompt
def test_changelog_tells_every_version(task: str, language: str) -> None:
    """Each version of a prompt, up to the present one, has its line in the changelog."""
    lines = (files("steelyard.prompts") / "CHANGELOG.md").read_text("utf-8").splitlines()
    for version in range(1, prompt_of(task, language).version + 1):
        assert sum(line.startswith(f"| {task}.{language} | {version} | ") for line in lines) == 1


@each_prompt
def test_static_part_keeps_to_its_budget(task: str, language: str) -> None:
    """What is paid for on every call stays small."""
    budget = BUDGETS[task] * (CHINESE_SHARE if language == "zh" else 1) + CODE_SHOWN
    assert len(prompt_of(task, language).static) <= budget


# --- the sample part -------------------------------------------------------------------------------


@each_prompt
def test_static_part_is_the_same_for_every_sample(task: str, language: str) -> None:
    """The system message holds no placeholder, so a provider's prompt cache hits."""
    assert "$$$" not in prompt_of(task, language).static


@each_prompt
def test_sample_part_shows_every_field_once(task: str, language: str) -> None:
    """The judge sees all of the data, each field once, and nothing the data lacks."""
    found = PLACEHOLDER.findall(prompt_of(task, language).sample)
    added = ["ids"] if item_fields(task) else []
    assert sorted(found) == sorted([*data_of(task).model_fields, *added])


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_head_of_an_ask_is_the_code_alone(language: str) -> None:
    """The judge knows the code before it meets the first fence, and nothing that is judged stands before it."""
    assert PLACEHOLDER.findall(prompt_of("reply", language).sample) == ["code"]
    assert len(prompt_of("reply", language).sample.splitlines()) == 1


@each_prompt
def test_context_stands_before_items(task: str, language: str) -> None:
    """Items come last, so that asks about the same passages share a prefix and items stay fresh in mind."""
    found = PLACEHOLDER.findall(prompt_of(task, language).sample)
    if items := item_fields(task):
        assert found[-len(items) - 1 :] == [*items, "ids"]


# --- the rules -------------------------------------------------------------------------------------


@each_prompt
def test_rules_explain_every_label(task: str, language: str) -> None:
    """No label a reply may carry is left for the judge to guess."""
    rules = rules_of(task, language)
    assert {label for label in labels_of(task) if not mentions(rules, label)} == set()


@each_prompt
def test_prompt_names_every_key(task: str, language: str) -> None:
    """No key of the reply is unknown to a judge that is not given the schema."""
    static = prompt_of(task, language).static
    assert {key for key in keys_of(task) if not mentions(static, key)} == set()


@pytest.mark.parametrize("language", LANGUAGES)
def test_grounded_defines_every_check(language: str) -> None:
    """Each check that is listed by name has a definition under that name."""
    rules = prompt_of("grounded.judge", language).static
    for check in CHECKS:
        assert re.search(rf"^- {check}[:：]", rules, re.MULTILINE)


@each_prompt
def test_judged_text_is_declared_data(task: str, language: str) -> None:
    """Every prompt says, before its rules, that what is fenced is never an instruction."""
    warning = {"zh": "绝不是指令", "en": "never an instruction"}[language]
    assert warning in prompt_of(task, language).static.split("\n\n")[1]


@each_prompt
def test_last_word_is_json_only(task: str, language: str) -> None:
    """The demand for JSON comes after the judged text, which never has the last word."""
    demand = {"zh": "只回复 JSON 对象", "en": "Reply with JSON only"}[language]
    assert prompt_of(task, language).sample.splitlines()[-1].startswith(demand)


# --- the worked examples ---------------------------------------------------------------------------


@each_prompt
def test_example_sends_its_code_back_first(task: str, language: str) -> None:
    """The reply begins with the code that stands at the head of the input, as in every call."""
    given, output = shown_example(task, language)
    assert next(iter(output)) == "code"
    assert re.fullmatch(r"(?:Code: |编码：)([0-9a-f]{12})", given.splitlines()[0])[1] == output["code"]  # type: ignore[index]


@each_prompt
def test_example_is_a_valid_reply(task: str, language: str) -> None:
    """The example satisfies the reply model, and no key of it is unknown to the model."""
    _, output = example_of(task, language)
    reply = reply_of(task).model_validate(output)
    assert reply.model_dump(mode="json", exclude_unset=True) == output


@each_prompt
def test_example_shows_every_key_of_every_item(task: str, language: str) -> None:
    """Structured output demands all keys; where the example leaves some out, small models make up values for them."""
    _, output = example_of(task, language)
    dumped = reply_of(task).model_validate(output).model_dump(mode="json", exclude={"unsure"})
    for shown, modelled in zip(objects_in(output), objects_in(dumped), strict=True):
        assert list(shown) == list(modelled)


@each_prompt
def test_example_keys_follow_the_order_of_thought(task: str, language: str) -> None:
    """Evidence, then reason, then label: the example has the order of the reply model at every depth."""
    _, output = example_of(task, language)
    dumped = reply_of(task).model_validate(output).model_dump(mode="json", exclude_unset=True)
    # model_dump writes fields in the order of the model; a dict comparison would not see the order.
    for shown, modelled in zip(objects_in(output), objects_in(dumped), strict=True):
        assert list(shown) == list(modelled)


@each_prompt
def test_example_labels_each_item_once(task: str, language: str) -> None:
    """The example's reply has exactly the ids its input lists, in order."""
    given, output = example_of(task, language)
    for name in item_fields(task):
        [line] = re.findall(rf"^{name}[:：](.*)$", given, re.MULTILINE)
        ids = [int(number) for number in re.findall(r"(?<!\S)(\d+)\. ", line)]
        assert ids
        assert [item["id"] for item in output[name]] == ids


@each_prompt
def test_example_quotes_are_verbatim(task: str, language: str) -> None:
    """Each quote of the example stands, character by character, in the passage it names."""
    given, output = example_of(task, language)
    passages = dict(re.findall(r"^reference (\d+)[:：](.*)$", given, re.MULTILINE))
    for item in objects_in(output):
        if not item.get("quote"):
            continue
        if "reference" in item:
            assert item["quote"] in passages[str(item["reference"])]
        else:
            source, _, _ = given.partition("\ncriteria")
            assert item["quote"] in source


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", ["atomic.judge", "scorecard.judge"])
def test_atom_examples_show_the_hard_cases(task: str, language: str) -> None:
    """All four labels are shown; evidence goes with correct and wrong, and with nothing else."""
    _, output = example_of(task, language)
    assert {atom["label"] for atom in output["atoms"]} == {"correct", "wrong", "undetermined", "exempt"}
    for atom in output["atoms"]:
        is_checked = atom["label"] in {"correct", "wrong"}
        assert [atom["quote"] is not None, atom["source"] is not None] == [is_checked, is_checked]
        # A wrong ordinal is exact, so it must never reach the tolerance.
        assert not atom.get("difference") or atom["label"] == "correct"


@pytest.mark.parametrize("language", LANGUAGES)
def test_atomic_example_shows_levels_and_difference(language: str) -> None:
    """All three levels occur, and one difference whose two values stand in atom and passage."""
    given, output = example_of("atomic.judge", language)
    assert {atom["level"] for atom in output["atoms"]} == {1, 2, 3}
    [difference] = [atom["difference"] for atom in output["atoms"] if atom["difference"]]
    [passage] = re.findall(r"^reference 0[:：](.*)$", given, re.MULTILINE)
    [atoms] = re.findall(r"^atoms[:：](.*)$", given, re.MULTILINE)
    assert difference["stated"] in passage
    assert difference["claimed"] in atoms


@pytest.mark.parametrize("language", LANGUAGES)
def test_split_example_links_cause_to_effect(language: str) -> None:
    """The cause points at another atom of the list, and ids run from one."""
    _, output = example_of("atomic.split", language)
    ids = [atom["id"] for atom in output["atoms"]]
    assert ids == list(range(1, len(ids) + 1))
    [cause] = [atom for atom in output["atoms"] if atom["causal_of"]]
    assert cause["causal_of"] in set(ids) - {cause["id"]}


@pytest.mark.parametrize("language", LANGUAGES)
def test_grounded_example_does_not_cascade(language: str) -> None:
    """One wrong conclusion fails one check; all three sentence sources are shown."""
    given, output = example_of("grounded.judge", language)
    [line] = re.findall(r"^checks[:：](.*)$", given, re.MULTILINE)
    names = re.findall(r"\d+\. (\w+)", line)
    assert tuple(names) == CHECKS
    failed = [names[check["id"] - 1] for check in output["checks"] if check["label"] == 0]
    assert failed == ["conclusion_correct"]
    assert {sentence["label"] for sentence in output["sentences"]} == {
        "from_background",
        "benign_extension",
        "outside",
    }


@pytest.mark.parametrize("language", LANGUAGES)
def test_scorecard_example_gives_depth_to_hits_only(language: str) -> None:
    """A missing key point has no depth; a hit has one."""
    _, output = example_of("scorecard.judge", language)
    labels = {point["label"] for point in output["key_points"]}
    assert {"covered", "missing"} <= labels
    for point in output["key_points"]:
        assert (point["depth"] is not None) == (point["label"] != "missing")


@pytest.mark.parametrize("language", LANGUAGES)
def test_dialogue_examples_show_the_hard_cases(language: str) -> None:
    """All are quoted and placed, a half-grounded one is invalid; untriggered counts as fully met."""
    _, validity = example_of("dialogue.validity", language)
    assert {item["valid"] for item in validity["criteria"]} == {True, False}
    for item in validity["criteria"]:
        assert item["quote"]
        assert item["place"]
    _, compliance = example_of("dialogue.compliance", language)
    assert {item["complies"] for item in compliance["criteria"]} == {"fully", "partly", "no"}
    untriggered = [item["complies"] for item in compliance["criteria"] if not item["triggered"]]
    assert untriggered == ["fully"]
