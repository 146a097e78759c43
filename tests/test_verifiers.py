"""Verifiers of the user's own: any encoder in a folder, read by onnxruntime."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command import Steelyard, lines_of, write_lines
from small_verifier import LONGEST, NLI, TWO, WORDS, make_verifier
from steelyard.config import Config
from steelyard.errors import ConfigError, JudgeError
from steelyard.judges.embedded import EmbeddedJudge
from steelyard.judges.embedded.network import Odds, Pair
from steelyard.judges.embedded.reasons import Voice
from steelyard.judges.embedded.support import Claim, Reading
from steelyard.judges.verifiers.reader import UNREAD, Verifier
from steelyard.prompts import Prompts


def odds(reader: Verifier, claim: str, *passages: str, context: str = "") -> Odds:
    (found,) = reader.read([Pair(passages, context, claim)])
    assert sum(found) == pytest.approx(1)
    return found


def share(*logits: float) -> float:
    """Of the first one."""
    return math.exp(logits[0]) / sum(map(math.exp, logits))


def toml(folder: Path, text: str) -> Path:
    (folder / "verifier.toml").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def readers(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Verifier]:
    folder = tmp_path_factory.mktemp("readers")
    two = ("unsupported", "supported")
    return {
        "pairs": Verifier(make_verifier(folder / "pairs")),
        "all words": Verifier(make_verifier(folder / "all", claim_only=False)),
        "tokens": Verifier(make_verifier(folder / "tokens", two, TWO, by_token=True, claim_only=False)),
    }


class TestThreeLabels:
    @pytest.mark.parametrize(
        "labels", [NLI, ("ENTAILMENT", "Neutral", "CONTRADICTION"), ("Supports", "NEI", "refutes")]
    )
    def test_are_recognised_by_name(self, labels: Sequence[str], tmp_path: Path) -> None:
        """config.json says which output is which, in the words that models use."""
        reader = Verifier(make_verifier(tmp_path, labels))
        assert odds(reader, "yes", "filler").supported == pytest.approx(share(3, 0, 0))
        assert odds(reader, "no", "filler").contradicted == pytest.approx(share(3, 0, 0))
        assert odds(reader, "maybe", "filler").neutral == pytest.approx(share(3, 0, 0))

    def test_in_another_order(self, tmp_path: Path) -> None:
        """Not the number of an output counts but its name."""
        reader = Verifier(make_verifier(tmp_path, ("contradiction", "entailment", "neutral")))
        assert odds(reader, "yes", "filler").contradicted == pytest.approx(share(3, 0, 0))

    def test_premise_and_claim_are_told_apart(self, tmp_path: Path) -> None:
        """The two texts have their token_type_ids: words of the passage are not taken for the claim's."""
        reader = Verifier(make_verifier(tmp_path))
        assert odds(reader, "filler", "no no no") == pytest.approx((1 / 3, 1 / 3, 1 / 3))

    def test_claim_may_stand_first(self, tmp_path: Path) -> None:
        """`claim_first` turns the two about."""
        reader = Verifier(toml(make_verifier(tmp_path), "claim_first = true"))
        assert odds(reader, "filler", "no").contradicted == pytest.approx(share(3, 0, 0))

    def test_file_settles_what_names_do_not(self, tmp_path: Path) -> None:
        """verifier.toml names outputs by number or by name."""
        make_verifier(tmp_path, ("LABEL_0", "LABEL_1", "LABEL_2"))
        reader = Verifier(toml(tmp_path, '[labels]\nsupported = 2\ncontradicted = "label_0"'))
        assert odds(reader, "no", "filler").supported == pytest.approx(share(3, 0, 0))
        assert odds(reader, "yes", "filler").contradicted == pytest.approx(share(3, 0, 0))


class TestTwoLabels:
    def test_do_not_tell_contradicted_from_not_said(self, tmp_path: Path) -> None:
        """What is not supported is neutral: nobody has said that it is contradicted."""
        reader = Verifier(make_verifier(tmp_path, ("not_entailment", "entailment"), TWO))
        assert odds(reader, "yes", "filler").supported == pytest.approx(share(3, 0))
        found = odds(reader, "no", "filler")
        assert found == pytest.approx((1 - share(3, 0), 0, share(3, 0)))

    def test_without_names(self, tmp_path: Path) -> None:
        """A model that calls its outputs 0 and 1 needs verifier.toml, and then is read."""
        make_verifier(tmp_path, ("0", "1"), TWO)
        with pytest.raises(ConfigError, match=r"config\.json: id2label .*0 is '0', 1 is '1'.*supported = NUMBER"):
            Verifier(tmp_path)
        reader = Verifier(toml(tmp_path, "[labels]\nsupported = 1\nunsupported = 0"))
        assert odds(reader, "yes", "filler").supported == pytest.approx(share(3, 0))


class TestTokens:
    """A token classifier of the LettuceDetect kind."""

    @pytest.fixture
    def reader(self, tmp_path: Path) -> Verifier:
        made = make_verifier(tmp_path, ("hallucinated", "supported"), TWO, by_token=True, claim_only=False)
        return Verifier(made)

    def test_worst_span_counts(self, reader: Verifier) -> None:
        """A claim is as well supported as its worst run of unsupported pieces."""
        assert odds(reader, "yes yes yes", "filler").supported == pytest.approx(share(3, 0))
        assert odds(reader, "yes no yes", "filler").supported == pytest.approx(share(0, 3))
        assert odds(reader, "yes filler yes", "filler").supported == pytest.approx(share(1, 0))

    def test_only_pieces_of_the_claim_count(self, reader: Verifier) -> None:
        """What is labelled in the passage or in the question is no matter."""
        assert odds(reader, "yes", "no no", context="no").supported == pytest.approx(share(3, 0))
        assert odds(reader, "no", "no").supported == pytest.approx(share(0, 3))

    def test_first_token_can_speak_for_all(self, tmp_path: Path) -> None:
        """`tokens = "first"`: some models write their label there."""
        weights = {**TWO, "[CLS]": (0.0, 2.0)}
        make_verifier(tmp_path, ("unsupported", "supported"), weights, by_token=True, claim_only=False)
        reader = Verifier(toml(tmp_path, 'tokens = "first"'))
        assert odds(reader, "no", "no").supported == pytest.approx(share(2, 0))

    def test_are_found_in_a_template(self, tmp_path: Path) -> None:
        """Also in one text the claim's pieces are known."""
        make_verifier(tmp_path, ("hallucinated", "supported"), TWO, by_token=True, claim_only=False)
        reader = Verifier(toml(tmp_path, "template = '{premise} Does : {claim} follow ? no'"))
        assert odds(reader, "yes yes", "no").supported == pytest.approx(share(3, 0))
        assert odds(reader, "yes no", "yes").supported == pytest.approx(share(0, 3))


class TestTemplate:
    def test_words_of_the_template_are_read(self, tmp_path: Path) -> None:
        """The instruction that a model was taught with stands around passages and claim."""
        make_verifier(tmp_path, ("unsupported", "supported"), TWO, claim_only=False)
        assert odds(Verifier(tmp_path), "a", "b").supported == pytest.approx(0.5)
        asked = Verifier(toml(tmp_path, "template = 'yes {premise} yes {claim} no'"))
        assert odds(asked, "a", "b").supported == pytest.approx(share(6, 3))

    def test_marks_in_the_template_are_marks(self, tmp_path: Path) -> None:
        """And in the data they are text: a passage cannot end itself."""
        weights = {"[SEP]": (0.0, 1.0), "yes": (1.0, 0.0)}
        make_verifier(tmp_path, ("unsupported", "supported"), weights, claim_only=False)
        template = toml(tmp_path, "template = '{premise} [SEP] {claim}'")
        reader = Verifier(template)
        assert odds(reader, "a", "b").supported == pytest.approx(share(2, 0))
        assert odds(reader, "a", "b [SEP] [SEP] b").supported == pytest.approx(share(2, 0))
        (tmp_path / "verifier.toml").unlink()
        assert odds(Verifier(tmp_path), "a", "b [SEP] b").supported == pytest.approx(share(2, 0))

    def test_needs_both_texts(self, tmp_path: Path) -> None:
        """A template without the claim is a slip, and named."""
        with pytest.raises(ConfigError, match=r"verifier\.toml: template: must contain \{premise\} and \{claim\}"):
            Verifier(toml(make_verifier(tmp_path), "template = '{premise}'"))


class TestContext:
    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        return make_verifier(tmp_path)

    def test_stands_before_the_claim(self, folder: Path) -> None:
        """What a short claim leans on is read with it."""
        assert odds(Verifier(folder), "a", "b", context="yes").supported == pytest.approx(share(3, 0, 0))

    @pytest.mark.parametrize("where", ["premise", "none"])
    def test_can_be_put_elsewhere(self, where: str, folder: Path) -> None:
        """With the passages, or nowhere."""
        reader = Verifier(toml(folder, f'context = "{where}"'))
        assert odds(reader, "a", "b", context="yes").supported == pytest.approx(1 / 3)

    def test_has_its_place_in_a_template(self, tmp_path: Path) -> None:
        """{context} in the template, else where `context` says."""
        make_verifier(tmp_path, ("unsupported", "supported"), TWO, claim_only=False)
        for template in ("{premise} {context} {claim}", "{premise} {claim}"):
            reader = Verifier(toml(tmp_path, f"template = '{template}'"))
            assert odds(reader, "a", "b", context="yes").supported == pytest.approx(share(3, 0))


class TestLength:
    @pytest.mark.parametrize("settings", ["", "template = '{premise} : {claim}'"])
    def test_only_passages_are_cut(self, settings: str, tmp_path: Path) -> None:
        """However long they are: the claim is read whole, and the model's last position is never passed."""
        make_verifier(tmp_path, ("unsupported", "supported"), TWO, claim_only=False)
        reader = Verifier(toml(tmp_path, settings))
        assert odds(reader, "yes yes", "a " * 500, "b " * 500).supported == pytest.approx(share(6, 0))
        assert odds(reader, "a", "yes " + "a " * 500 + "no", "no").supported == pytest.approx(share(3, 0))

    @pytest.mark.parametrize("settings", ["", "claim_first = true", "template = '{premise} : {claim}'"])
    def test_long_claim_is_read_whole(self, settings: str, tmp_path: Path) -> None:
        """Also one that is longer than what is left of the passages."""
        make_verifier(tmp_path, ("unsupported", "supported"), {"yes": (0.0, 0.1)}, claim_only=False)
        reader = Verifier(toml(tmp_path, settings))
        assert odds(reader, "yes " * 29, "a " * 60).supported == pytest.approx(share(2.9, 0))

    def test_context_gives_way_before_the_claim(self, tmp_path: Path) -> None:
        """A long question does not push the claim out."""
        reader = Verifier(make_verifier(tmp_path))
        assert odds(reader, "yes", "b", context="no " * 100).supported == pytest.approx(share(3, 0, 0))

    def test_sizes_are_the_models_own(self, tmp_path: Path) -> None:
        """A text is as long as the model's vocabulary makes it, without marks."""
        assert Verifier(make_verifier(tmp_path)).sizes(["yes no", "", "a"]) == [2, 0, 1]

    def test_endless_claim_is_not_read(self, tmp_path: Path) -> None:
        """A claim that leaves no room for passages, and an empty one, are unknown."""
        reader = Verifier(make_verifier(tmp_path))
        assert odds(reader, "yes " * LONGEST, "b") == UNREAD
        assert odds(reader, "", "b") == UNREAD

    def test_of_roberta_is_counted_from_its_padding(self, tmp_path: Path) -> None:
        """514 positions are 512 pieces, and a model may be read longer by `length`."""
        make_verifier(tmp_path, model_type="roberta", max_position_embeddings=LONGEST, pad_token_id=1)
        assert Verifier(tmp_path).windows == ((LONGEST - 2) * 3 // 4,)
        assert Verifier(toml(tmp_path, "length = 32")).windows == (24,)
        assert Verifier(toml(tmp_path, "length = 32\nwindows = [8, 16]")).windows == (8, 16)

    def test_beyond_the_model_says_where_to_look(self, tmp_path: Path) -> None:
        """A `length` that the model does not have stops the run with the name of the setting."""
        reader = Verifier(toml(make_verifier(tmp_path), "length = 400"))
        with pytest.raises(
            JudgeError, match=r"model\.onnx: onnxruntime cannot run it on .* `length` in verifier\.toml"
        ):
            odds(reader, "a", "b " * 300)


class TestBatches:
    @given(texts=st.lists(st.tuples(*[st.lists(st.sampled_from(WORDS[3:]), min_size=1, max_size=30)] * 2), max_size=40))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    def test_are_as_one_by_one(self, texts: list[tuple[list[str], list[str]]], readers: dict[str, Verifier]) -> None:
        """Neighbours in a batch and padding change nothing, and answers come in the order of the pairs."""
        for reader in readers.values():
            pairs = [Pair((" ".join(passage),), "", " ".join(claim[:20])) for claim, passage in texts]
            together = reader.read(pairs)
            assert len(together) == len(pairs)
            for one, found in zip(pairs, together, strict=True):
                assert found == pytest.approx(reader.read([one])[0], abs=1e-6)


class TestIdentity:
    def test_changes_with_anything_that_shapes_an_answer(self, tmp_path: Path) -> None:
        """The weights, the tokenizer, config.json, verifier.toml; not the place they lie in."""
        found = [Verifier(make_verifier(tmp_path / "one" / "name")).identity]
        assert Verifier(make_verifier(tmp_path / "two" / "name")).identity == found[0]
        found.append(Verifier(make_verifier(tmp_path / "three" / "name", weights={"yes": (1.0, 0.0, 0.0)})).identity)
        found.append(Verifier(make_verifier(tmp_path / "four" / "name", other=1)).identity)
        found.append(Verifier(toml(tmp_path / "two" / "name", "length = 32")).identity)
        assert len(set(found)) == len(found)
        assert all(one.startswith("name-") for one in found)


class TestBadFolders:
    @pytest.mark.parametrize(
        ("file", "problem"),
        [
            ("config.json", "there is no config.json"),
            ("tokenizer.json", "there is no tokenizer.json; a fast tokenizer"),
            ("model.onnx", "there is no model.onnx or model_quantized.onnx; docs/models.md"),
        ],
    )
    def test_missing_file_is_named(self, file: str, problem: str, tmp_path: Path) -> None:
        """With the folder, and what to do."""
        make_verifier(tmp_path)
        (tmp_path / file).unlink()
        with pytest.raises(ConfigError, match=f"{tmp_path}: {problem}"):
            Verifier(tmp_path)

    def test_missing_folder(self, tmp_path: Path) -> None:
        """A mistyped path is said as such."""
        with pytest.raises(ConfigError, match="there is no folder"):
            Verifier(tmp_path / "none")

    @pytest.mark.parametrize(
        ("file", "content", "problem"),
        [
            ("config.json", "{", "cannot be read as JSON"),
            ("config.json", "[]", "must be a JSON object"),
            ("config.json", '{"id2label": ["a"]}', "id2label: must map"),
            ("config.json", '{"id2label": {"1": "entailment"}}', "id2label: must map"),
            ("config.json", "{}", "id2label does not say .*it is missing"),
            ("config.json", '{"id2label": {"0": "joy", "1": "grief"}}', "0 is 'joy', 1 is 'grief'"),
            ("tokenizer.json", "{}", "cannot be read"),
            ("model.onnx", "<!DOCTYPE html>", "the network model.onnx cannot be read"),
            ("verifier.toml", "labels = ", "cannot be read as TOML"),
            ("verifier.toml", "colour = 1", "colour: Extra inputs"),
            ("verifier.toml", "[labels]\nneutral = 1", "labels.supported: Field required"),
            (
                "verifier.toml",
                "[labels]\nsupported = 7",
                "labels.supported: 7 is none of the outputs, which are 0 'entail",
            ),
            ("verifier.toml", "[labels]\nsupported = 'joy'", "labels.supported: 'joy' is none"),
            ("verifier.toml", "[labels]\nsupported = 1\nneutral = 1", "two of them name the same output"),
            ("verifier.toml", "model = '../other.onnx'", "model: must be the name of an .onnx file in this folder"),
            ("verifier.toml", "model = 'other.onnx'", "there is no other.onnx"),
        ],
    )
    def test_bad_content_is_named(self, file: str, content: str, problem: str, tmp_path: Path) -> None:
        """With the file and the field."""
        make_verifier(tmp_path)
        (tmp_path / file).write_text(content, "utf-8")
        with pytest.raises(ConfigError, match=problem) as caught:
            Verifier(tmp_path)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_other_number_of_outputs(self, tmp_path: Path) -> None:
        """A model that has other outputs than config.json names is not guessed at."""
        with pytest.raises(ConfigError, match="gives 2 outputs, and 3 are named"):
            Verifier(make_verifier(tmp_path, NLI, TWO))

    def test_quantised_model_is_found(self, tmp_path: Path) -> None:
        """model_quantized.onnx is taken where there is no model.onnx."""
        assert odds(Verifier(make_verifier(tmp_path, model="model_quantized.onnx")), "yes", "a").supported > 0.9

    def test_another_input_is_refused(self, tmp_path: Path) -> None:
        """A model that wants to be given something else is named with it."""
        import onnx

        make_verifier(tmp_path)
        model = onnx.load(tmp_path / "model.onnx")
        extra = onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, ["rows"])
        model.graph.input.append(extra)
        onnx.save(model, tmp_path / "model.onnx")
        with pytest.raises(ConfigError, match="wants an input 'pixels'"):
            Verifier(tmp_path)

    def test_fixed_shape_is_refused(self, tmp_path: Path) -> None:
        """An export without dynamic axes could read one length only."""
        import onnx

        make_verifier(tmp_path)
        model = onnx.load(tmp_path / "model.onnx")
        for put in model.graph.input:
            put.type.tensor_type.shape.dim[1].dim_value = 16
        onnx.save(model, tmp_path / "model.onnx")
        with pytest.raises(ConfigError, match=r"input_ids has the fixed shape .*dynamic axes"):
            Verifier(tmp_path)

    def test_config_is_that_of_hugging_face(self, tmp_path: Path) -> None:
        """Unknown fields of config.json are no matter."""
        make_verifier(tmp_path, architectures=["BertForSequenceClassification"], torch_dtype="float32")
        assert "architectures" in json.loads((tmp_path / "config.json").read_text("utf-8"))
        assert Verifier(tmp_path).windows == (LONGEST * 3 // 4,)


class TestReading:
    """The embedded judge's own reading with another reader in it."""

    @pytest.mark.parametrize(
        ("claim", "label"), [("yes yes", "supported"), ("no no", "contradicted"), ("maybe maybe", "unknown")]
    )
    def test_verifier_decides(self, claim: str, label: str, tmp_path: Path) -> None:
        """Its own probability is the confidence; thresholds that were drawn for the network in the box do not apply."""
        reading = Reading(["filler a b filler"], Voice("en"), Verifier(make_verifier(tmp_path)))
        found = reading.support(Claim(claim))
        assert found.label == label
        assert found.confidence == pytest.approx(share(6, 0, 0), abs=0.005)

    def test_value_in_the_place_of_another_weighs_against_it(self, tmp_path: Path) -> None:
        """An exact clash is not outvoted by a verifier that is only rather sure."""
        rather_sure = make_verifier(tmp_path, weights={"fee": (2.0, 0.0, 0.0)}, words=["fee", "The", "is"])
        reading = Reading(["The fee is 30 dollars a year."], Voice("en"), Verifier(rather_sure))
        assert reading.support(Claim("The fee is due every year")).label == "supported"
        found = reading.support(Claim("The fee is 50 dollars a year."))
        assert found.label == "contradicted"
        assert found.difference is not None
        assert (found.difference.claimed[:2], found.difference.stated[:2]) == ("50", "30")


class TestJudge:
    async def test_is_named_by_its_folder(self, tmp_path: Path) -> None:
        """`verifier:PATH` and a table of kind "verifier" make the same judge; its manifest names the weights."""
        folder = make_verifier(tmp_path / "mine")
        (tmp_path / "steelyard.toml").write_text(f'[judges.v]\nkind = "verifier"\nmodel = "{folder}"\n', "utf-8")
        config = Config.load(tmp_path / "steelyard.toml", {})
        judges = [config.judge(name, Prompts.shipped()) for name in (f"verifier:{folder}", "v")]
        assert {judge.name for judge in judges} == {"verifier:mine"}
        (one, other) = (judge.describe() for judge in judges if isinstance(judge, EmbeddedJudge))
        assert one == other
        assert one["model"].startswith("mine-")
        for judge in judges:
            await judge.aclose()

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("verifier", "a verifier needs a model"),
            ("verifier:", "a verifier needs a model"),
            ("verifier:./nowhere", "there is no folder nowhere with a verifier"),
            ("verifier:nobody", "there is no verifier 'nobody'"),
            ("v", "colour: a verifier has only model"),
        ],
    )
    def test_slips_are_named(self, name: str, said: str, tmp_path: Path) -> None:
        """What is missing or too much is said, with what to write."""
        (tmp_path / "steelyard.toml").write_text('[judges.v]\nkind = "verifier"\ncolour = 1\n', "utf-8")
        config = Config.load(tmp_path / "steelyard.toml", {"STEELYARD_MODELS": str(tmp_path)})
        with pytest.raises((ConfigError, JudgeError), match=said):
            config.judge(name, Prompts.shipped())

    def test_judges_a_run(self, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A pulled verifier judges on the command line, and the results carry its name."""
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
        assert steelyard("models", "pull", "mine", "--from", make_verifier(tmp_path / "made")).code == 0
        row = {
            "id": "1",
            "question": "Does a follow ?",
            "references": ["filler a b filler"],
            "answer": "a yes yes yes.",
        }
        rows = write_lines(tmp_path / "rows.jsonl", [row])
        out = tmp_path / "out.jsonl"
        store = tmp_path / "s.db"
        done = steelyard("run", rows, "-p", "atomic", "-j", "verifier:mine", "-o", out, "--store", store)
        assert done.code == 0, done.err
        (found,) = lines_of(out)
        assert found["judge"] == "verifier:mine"
        assert [atom["label"] for atom in found["items"]] == ["correct"]
