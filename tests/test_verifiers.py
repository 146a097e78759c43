"""Encoders of the user's own: any encoder in a folder, read by onnxruntime."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from command import Steelyard, lines_of, write_lines
from endpoint import Loopback, Request
from reading import FixedReader
from small_verifier import LONGEST, NLI, TWO, WORDS, make_verifier
from steelyard.errors import ConfigError, JudgeError
from steelyard.evaluation.factory import JudgeFactory
from steelyard.judges.embedded import network
from steelyard.judges.embedded.network import Odds, ReaderPair
from steelyard.judges.embedded.reasons import Phrasing
from steelyard.judges.embedded.support import ClaimInContext, PassageReading, Support
from steelyard.judges.verifiers.encoder import UNREAD, Encoder, EncoderPair
from steelyard.judges.verifiers.judge import VerifierJudge
from steelyard.judges.verifiers.reading import VerifierReader
from steelyard.records import Ask
from steelyard.settings import Settings
from steelyard.store import Store
from steelyard.tasks import SplitData, SplitReply


def odds(encoder: Encoder, claim: str, *passages: str) -> Odds:
    (found,) = encoder.read([EncoderPair("\n".join(passages), claim)])
    assert sum(found) == pytest.approx(1)
    return found


def share(*logits: float) -> float:
    """Of the first one."""
    return math.exp(logits[0]) / sum(map(math.exp, logits))


def toml(folder: Path, text: str) -> Path:
    (folder / "verifier.toml").write_text(text, "utf-8")
    return folder


@pytest.fixture(scope="module")
def encoders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Encoder]:
    folder = tmp_path_factory.mktemp("encoders")
    two = ("unsupported", "supported")
    return {
        "pairs": Encoder(make_verifier(folder / "pairs")),
        "all words": Encoder(make_verifier(folder / "all", claim_only=False)),
        "tokens": Encoder(make_verifier(folder / "tokens", two, TWO, by_token=True, claim_only=False)),
    }


class TestThreeLabels:
    @pytest.mark.parametrize(
        "labels", [NLI, ("ENTAILMENT", "Neutral", "CONTRADICTION"), ("Supports", "NEI", "refutes")]
    )
    def test_are_recognised_by_name(self, labels: Sequence[str], tmp_path: Path) -> None:
        """config.json says which output is which, in the words that models use."""
        encoder = Encoder(make_verifier(tmp_path, labels))
        assert odds(encoder, "yes", "filler").supported == pytest.approx(share(3, 0, 0))
        assert odds(encoder, "no", "filler").contradicted == pytest.approx(share(3, 0, 0))
        assert odds(encoder, "maybe", "filler").neutral == pytest.approx(share(3, 0, 0))

    def test_in_another_order(self, tmp_path: Path) -> None:
        """Not the number of an output counts but its name."""
        encoder = Encoder(make_verifier(tmp_path, ("contradiction", "entailment", "neutral")))
        assert odds(encoder, "yes", "filler").contradicted == pytest.approx(share(3, 0, 0))

    def test_premise_and_claim_are_told_apart(self, tmp_path: Path) -> None:
        """The two texts have their token_type_ids: words of the passage are not taken for the claim's."""
        encoder = Encoder(make_verifier(tmp_path))
        assert odds(encoder, "filler", "no no no") == pytest.approx((1 / 3, 1 / 3, 1 / 3))

    def test_claim_may_stand_first(self, tmp_path: Path) -> None:
        """`claim_first` turns the two about."""
        encoder = Encoder(toml(make_verifier(tmp_path), "claim_first = true"))
        assert odds(encoder, "filler", "no").contradicted == pytest.approx(share(3, 0, 0))

    def test_file_settles_what_names_do_not(self, tmp_path: Path) -> None:
        """verifier.toml names outputs by number or by name."""
        make_verifier(tmp_path, ("LABEL_0", "LABEL_1", "LABEL_2"))
        encoder = Encoder(toml(tmp_path, '[labels]\nsupported = 2\ncontradicted = "label_0"'))
        assert odds(encoder, "no", "filler").supported == pytest.approx(share(3, 0, 0))
        assert odds(encoder, "yes", "filler").contradicted == pytest.approx(share(3, 0, 0))


class TestTwoLabels:
    def test_do_not_tell_contradicted_from_not_said(self, tmp_path: Path) -> None:
        """What is not supported is neutral: nobody has said that it is contradicted."""
        encoder = Encoder(make_verifier(tmp_path, ("not_entailment", "entailment"), TWO))
        assert odds(encoder, "yes", "filler").supported == pytest.approx(share(3, 0))
        found = odds(encoder, "no", "filler")
        assert found == pytest.approx((1 - share(3, 0), 0, share(3, 0)))

    def test_without_names(self, tmp_path: Path) -> None:
        """A model that calls its outputs 0 and 1 needs verifier.toml, and then is read."""
        make_verifier(tmp_path, ("0", "1"), TWO)
        with pytest.raises(ConfigError, match=r"config\.json: id2label .*0 is '0', 1 is '1'.*supported = NUMBER"):
            Encoder(tmp_path)
        encoder = Encoder(toml(tmp_path, "[labels]\nsupported = 1\nunsupported = 0"))
        assert odds(encoder, "yes", "filler").supported == pytest.approx(share(3, 0))


class TestTokens:
    """A token classifier of the LettuceDetect kind."""

    @pytest.fixture
    def encoder(self, tmp_path: Path) -> Encoder:
        made = make_verifier(tmp_path, ("hallucinated", "supported"), TWO, by_token=True, claim_only=False)
        return Encoder(made)

    def test_worst_span_counts(self, encoder: Encoder) -> None:
        """A claim is as well supported as its worst run of unsupported pieces."""
        assert odds(encoder, "yes yes yes", "filler").supported == pytest.approx(share(3, 0))
        assert odds(encoder, "yes no yes", "filler").supported == pytest.approx(share(0, 3))
        assert odds(encoder, "yes filler yes", "filler").supported == pytest.approx(share(1, 0))

    def test_only_pieces_of_the_claim_count(self, encoder: Encoder) -> None:
        """What is labelled in the passage is no matter."""
        assert odds(encoder, "yes", "no no").supported == pytest.approx(share(3, 0))
        assert odds(encoder, "no", "no").supported == pytest.approx(share(0, 3))

    def test_first_token_can_speak_for_all(self, tmp_path: Path) -> None:
        """`tokens = "first"`: some models write their label there."""
        weights = {**TWO, "[CLS]": (0.0, 2.0)}
        make_verifier(tmp_path, ("unsupported", "supported"), weights, by_token=True, claim_only=False)
        encoder = Encoder(toml(tmp_path, 'tokens = "first"'))
        assert odds(encoder, "no", "no").supported == pytest.approx(share(2, 0))

    def test_are_found_in_a_template(self, tmp_path: Path) -> None:
        """Also in one text the claim's pieces are known."""
        make_verifier(tmp_path, ("hallucinated", "supported"), TWO, by_token=True, claim_only=False)
        encoder = Encoder(toml(tmp_path, "template = '{premise} Does : {claim} follow ? no'"))
        assert odds(encoder, "yes yes", "no").supported == pytest.approx(share(3, 0))
        assert odds(encoder, "yes no", "yes").supported == pytest.approx(share(0, 3))


class TestTemplate:
    def test_words_of_the_template_are_read(self, tmp_path: Path) -> None:
        """The instruction that a model was taught with stands around passages and claim."""
        make_verifier(tmp_path, ("unsupported", "supported"), TWO, claim_only=False)
        assert odds(Encoder(tmp_path), "a", "b").supported == pytest.approx(0.5)
        asked = Encoder(toml(tmp_path, "template = 'yes {premise} yes {claim} no'"))
        assert odds(asked, "a", "b").supported == pytest.approx(share(6, 3))

    def test_marks_in_the_template_are_marks(self, tmp_path: Path) -> None:
        """And in the data they are text: a passage cannot end itself."""
        weights = {"[SEP]": (0.0, 1.0), "yes": (1.0, 0.0)}
        make_verifier(tmp_path, ("unsupported", "supported"), weights, claim_only=False)
        template = toml(tmp_path, "template = '{premise} [SEP] {claim}'")
        encoder = Encoder(template)
        assert odds(encoder, "a", "b").supported == pytest.approx(share(2, 0))
        assert odds(encoder, "a", "b [SEP] [SEP] b").supported == pytest.approx(share(2, 0))
        (tmp_path / "verifier.toml").unlink()
        assert odds(Encoder(tmp_path), "a", "b [SEP] b").supported == pytest.approx(share(2, 0))

    def test_needs_both_texts(self, tmp_path: Path) -> None:
        """A template without the claim is a slip, and named."""
        with pytest.raises(ConfigError, match=r"verifier\.toml: template: must contain \{premise\} and \{claim\}"):
            Encoder(toml(make_verifier(tmp_path), "template = '{premise}'"))


class TestLength:
    @pytest.mark.parametrize("settings", ["", "template = '{premise} : {claim}'"])
    def test_only_passages_are_cut(self, settings: str, tmp_path: Path) -> None:
        """However long they are: the claim is read whole, and the model's last position is never passed."""
        make_verifier(tmp_path, ("unsupported", "supported"), TWO, claim_only=False)
        encoder = Encoder(toml(tmp_path, settings))
        assert odds(encoder, "yes yes", "a " * 500, "b " * 500).supported == pytest.approx(share(6, 0))
        assert odds(encoder, "a", "yes " + "a " * 500 + "no", "no").supported == pytest.approx(share(3, 0))

    @pytest.mark.parametrize("settings", ["", "claim_first = true", "template = '{premise} : {claim}'"])
    def test_long_claim_is_read_whole(self, settings: str, tmp_path: Path) -> None:
        """Also one that is longer than what is left of the passages."""
        make_verifier(tmp_path, ("unsupported", "supported"), {"yes": (0.0, 0.1)}, claim_only=False)
        encoder = Encoder(toml(tmp_path, settings))
        assert odds(encoder, "yes " * 29, "a " * 60).supported == pytest.approx(share(2.9, 0))

    def test_sizes_are_the_models_own(self, tmp_path: Path) -> None:
        """A text is as long as the model's vocabulary makes it, without marks."""
        assert Encoder(make_verifier(tmp_path)).sizes(["yes no", "", "a"]) == [2, 0, 1]

    def test_endless_claim_is_not_read(self, tmp_path: Path) -> None:
        """A claim that leaves no room for passages, and an empty one, are unknown."""
        encoder = Encoder(make_verifier(tmp_path))
        assert odds(encoder, "yes " * LONGEST, "b") == UNREAD
        assert odds(encoder, "", "b") == UNREAD

    def test_of_roberta_is_counted_from_its_padding(self, tmp_path: Path) -> None:
        """514 positions are 512 pieces, and a model may be read longer by `length`."""
        make_verifier(tmp_path, model_type="roberta", max_position_embeddings=LONGEST, pad_token_id=1)
        assert Encoder(tmp_path).room == (LONGEST - 2) * 3 // 4
        assert Encoder(toml(tmp_path, "length = 32")).room == 24

    def test_beyond_the_model_says_where_to_look(self, tmp_path: Path) -> None:
        """A `length` that the model does not have stops the run with the name of the setting."""
        encoder = Encoder(toml(make_verifier(tmp_path), "length = 400"))
        with pytest.raises(
            JudgeError, match=r"model\.onnx: onnxruntime cannot run it on .* `length` in verifier\.toml"
        ):
            odds(encoder, "a", "b " * 300)


class TestBatches:
    @given(texts=st.lists(st.tuples(*[st.lists(st.sampled_from(WORDS[3:]), min_size=1, max_size=30)] * 2), max_size=40))
    @settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
    def test_are_as_one_by_one(self, texts: list[tuple[list[str], list[str]]], encoders: dict[str, Encoder]) -> None:
        """Neighbours in a batch and padding change nothing, and answers come in the order of the pairs."""
        for encoder in encoders.values():
            pairs = [EncoderPair(" ".join(passage), " ".join(claim[:20])) for claim, passage in texts]
            together = encoder.read(pairs)
            assert len(together) == len(pairs)
            for one, found in zip(pairs, together, strict=True):
                assert found == pytest.approx(encoder.read([one])[0], abs=1e-6)


class TestIdentity:
    def test_changes_with_anything_that_shapes_an_answer(self, tmp_path: Path) -> None:
        """The weights, the tokenizer, config.json, verifier.toml; not the place they lie in."""
        found = [Encoder(make_verifier(tmp_path / "one" / "name")).identity]
        assert Encoder(make_verifier(tmp_path / "two" / "name")).identity == found[0]
        found.append(Encoder(make_verifier(tmp_path / "three" / "name", weights={"yes": (1.0, 0.0, 0.0)})).identity)
        found.append(Encoder(make_verifier(tmp_path / "four" / "name", other=1)).identity)
        found.append(Encoder(toml(tmp_path / "two" / "name", "length = 32")).identity)
        assert len(set(found)) == len(found)
        assert Encoder(tmp_path / "two" / "name").name == "name"


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
            Encoder(tmp_path)

    def test_missing_folder(self, tmp_path: Path) -> None:
        """A mistyped path is said as such."""
        with pytest.raises(ConfigError, match="there is no folder"):
            Encoder(tmp_path / "none")

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
            ("model.onnx", "<!DOCTYPE html>", "model.onnx: cannot be read"),
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
            Encoder(tmp_path)
        assert str(tmp_path) in str(caught.value)
        assert "\n" not in str(caught.value)

    def test_other_number_of_outputs(self, tmp_path: Path) -> None:
        """A model that has other outputs than config.json names is not guessed at."""
        with pytest.raises(ConfigError, match="gives 2 classes, and 3 are named"):
            Encoder(make_verifier(tmp_path, NLI, TWO))

    def test_quantised_model_is_found(self, tmp_path: Path) -> None:
        """model_quantized.onnx is taken where there is no model.onnx."""
        assert odds(Encoder(make_verifier(tmp_path, model="model_quantized.onnx")), "yes", "a").supported > 0.9

    def test_another_input_is_refused(self, tmp_path: Path) -> None:
        """A model that wants to be given something else is named with it."""
        import onnx

        make_verifier(tmp_path)
        model = onnx.load(tmp_path / "model.onnx")
        extra = onnx.helper.make_tensor_value_info("pixels", onnx.TensorProto.FLOAT, ["rows"])
        model.graph.input.append(extra)
        onnx.save(model, tmp_path / "model.onnx")
        with pytest.raises(ConfigError, match="wants an input 'pixels'"):
            Encoder(tmp_path)

    def test_fixed_shape_is_refused(self, tmp_path: Path) -> None:
        """An export without dynamic axes could read one length only."""
        import onnx

        make_verifier(tmp_path)
        model = onnx.load(tmp_path / "model.onnx")
        for put in model.graph.input:
            put.type.tensor_type.shape.dim[1].dim_value = 16
        onnx.save(model, tmp_path / "model.onnx")
        with pytest.raises(ConfigError, match=r"input_ids has the fixed shape .*dynamic axes"):
            Encoder(tmp_path)

    def test_config_is_that_of_hugging_face(self, tmp_path: Path) -> None:
        """Unknown fields of config.json are no matter."""
        make_verifier(tmp_path, architectures=["BertForSequenceClassification"], torch_dtype="float32")
        assert "architectures" in json.loads((tmp_path / "config.json").read_text("utf-8"))
        assert Encoder(tmp_path).room == LONGEST * 3 // 4


def support(encoder: Encoder, claim: str, *passages: str) -> Support:
    return PassageReading(passages, Phrasing("en"), VerifierReader(encoder)).support(ClaimInContext(claim))


class TestReading:
    """How passages stand to a claim, by the encoder and by figures."""

    @pytest.mark.parametrize(
        ("claim", "label"),
        [("filler yes yes", "supported"), ("filler no no", "contradicted"), ("filler maybe maybe", "unknown")],
    )
    def test_the_likeliest_label_counts(self, claim: str, label: str, tmp_path: Path) -> None:
        """Its own probability is the confidence; thresholds of the networks in the box do not apply."""
        found = support(Encoder(make_verifier(tmp_path)), claim, "filler a b filler")
        assert found.label == label
        assert found.confidence == pytest.approx(share(6, 0, 0))
        assert found.quote == (None if label == "unknown" else "filler a b filler")

    def test_nothing_to_compare_is_unknown(self, tmp_path: Path) -> None:
        """Without passages the encoder is not asked."""
        found = support(Encoder(make_verifier(tmp_path)), "yes yes")
        assert (found.label, found.quote, found.odds) == ("unknown", None, UNREAD)

    @pytest.mark.parametrize(("sure", "label"), [(2.0, "contradicted"), (9.0, "supported")])
    def test_other_figure_weighs_against_the_claim(self, sure: float, label: str, tmp_path: Path) -> None:
        """An encoder that is rather sure does not outvote a figure that differs; one that is very sure does."""
        encoder = Encoder(make_verifier(tmp_path, weights={"fee": (sure, 0.0, 0.0)}, words=["fee", "The", "is"]))
        passage = "The fee is 30 dollars a year."
        assert support(encoder, "The fee is due every year.", passage).label == "supported"
        found = support(encoder, "The fee is 50 dollars a year.", passage)
        assert found.label == label
        assert found.odds is not None
        assert sum(found.odds) == pytest.approx(1)
        assert found.odds.supported < share(sure, 0, 0)
        if label == "contradicted":
            assert found.reason == "the passage has 30 dollars a year, not 50 dollars a year"

    def test_what_a_claim_leans_on_is_read_with_it(self, tmp_path: Path) -> None:
        """The sentence before a claim decides where the claim by itself says nothing."""
        read = VerifierReader(Encoder(make_verifier(tmp_path)))
        alone, leaning = read.read([ReaderPair(("filler",), "", "a b"), ReaderPair(("filler",), "yes yes", "a b")])
        assert leaning.supported > alone.supported

    def test_of_long_passages_the_fitting_sentences_are_read(self, tmp_path: Path) -> None:
        """Sentences that share most with the claim, wherever they stand; the encoder takes forty pieces here."""
        encoder = Encoder(make_verifier(tmp_path, claim_only=False, words=["Lamps", "shine"]))
        passages = ["filler filler filler. " * 40, "Lamps shine yes yes .", "a b. " * 40]
        found = support(encoder, "Lamps shine", *passages)
        assert (found.label, found.reference) == ("supported", 1)


def judge(name: str, *, models: Path | None = None, config: Path | None = None) -> VerifierJudge:
    environment = {"STEELYARD_MODELS": str(models)} if models else {}
    made = JudgeFactory(Settings.load(config, environment)).judge(name)
    assert isinstance(made, VerifierJudge)
    return made


class TestJudge:
    async def test_is_named_by_its_folder(self, tmp_path: Path) -> None:
        """`verifier:PATH` and a table of kind "verifier" make the same judge; its manifest names the weights."""
        folder = make_verifier(tmp_path / "mine")
        config = tmp_path / "steelyard.toml"
        config.write_text(f'[judges.v]\nkind = "verifier"\nmodel = "{folder}"\n', "utf-8")
        made = [judge(name, config=config) for name in (f"verifier:{folder}", "v")]
        assert {one.name for one in made} == {"verifier:mine"}
        assert made[0].describe() == made[1].describe()
        assert made[0].describe()["sha256"] == hashlib.sha256((folder / "model.onnx").read_bytes()).hexdigest()
        assert made[0].offline
        for one in made:
            await one.aclose()

    async def test_another_model_is_another_judge(self, tmp_path: Path) -> None:
        """What one answered is not taken for the other's answer, even under the same name."""
        made = [judge(f"verifier:{make_verifier(tmp_path / 'a' / 'mine')}")]
        made.append(judge(f"verifier:{make_verifier(tmp_path / 'b' / 'mine', weights={'yes': (1.0, 0.0, 0.0)})}"))
        data = SplitData(question="", answer="a yes.")
        ask = Ask(task="atomic.split", language="en", data=data, reply=SplitReply)
        assert made[0].name == made[1].name
        assert made[0].fingerprint(ask) != made[1].fingerprint(ask)
        for one in made:
            await one.aclose()

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
        config = tmp_path / "steelyard.toml"
        config.write_text('[judges.v]\nkind = "verifier"\ncolour = 1\n', "utf-8")
        with pytest.raises((ConfigError, JudgeError), match=said):
            judge(name, models=tmp_path, config=config)


ROWS = [
    {"id": name, "question": f"Where is {answer[0]} ?", "references": ["filler a b filler"], "answer": answer}
    for name, answer in (("for", "a yes yes ."), ("against", "b no no ."), ("torn", "b maybe yes ."))
]
SURE = pytest.approx(share(6, 0, 0), abs=1e-3)
TORN = pytest.approx(share(3, 3, 0), abs=1e-3)


def large(request: Request) -> dict[str, Any]:
    """A language model that finds one statement in each answer, and all that it is asked about correct."""
    if request.task == "atomic.split":
        said = next(row["answer"] for row in ROWS if str(row["answer"]) in request.user)
        return {"atoms": [{"id": 1, "text": said}]}
    asked = re.findall(r"^(\d)\. [ab] .*\.$", request.user, re.MULTILINE)
    proof = {"reference": 0, "quote": "filler a b", "source": "reference"}
    return {"atoms": [{"id": int(id), "label": "correct", "level": 1, **proof} for id in asked], "fallback": False}


class TestRuns:
    @pytest.fixture
    def rows(self, steelyard: Steelyard, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
        """Rows, and a verifier that was pulled under the name mine; whatever is said answers its question."""
        monkeypatch.setattr(network, "_network", FixedReader)
        monkeypatch.setenv("STEELYARD_MODELS", str(tmp_path / "models"))
        assert steelyard("models", "pull", "mine", "--from", make_verifier(tmp_path / "made")).code == 0
        return write_lines(tmp_path / "rows.jsonl", ROWS)

    def test_answers_several_protocols(self, steelyard: Steelyard, rows: Path) -> None:
        """A pulled verifier judges on the command line; what rests on support carries its probability."""
        assert "verifier:mine" in steelyard("judges").out
        done = steelyard("run", rows, "-p", "atomic,scorecard,grounded", "-j", "verifier:mine", "-o", "out.jsonl")
        # Of a conclusion that is neither borne out nor spoken against, `grounded` does not say whether it is right.
        assert done.code == 3, done.err
        rows_of = {name: lines_of(f"out.{name}.jsonl") for name in ("atomic", "scorecard", "grounded")}
        assert {row["judge"] for found in rows_of.values() for row in found} == {"verifier:mine"}
        atoms = [(atom["label"], atom["confidence"]) for row in rows_of["atomic"] for atom in row["items"]]
        assert atoms == [("correct", SURE), ("wrong", SURE), ("undetermined", TORN)]
        parts = [item for row in rows_of["scorecard"] for item in row["items"] if item["kind"] == "sentence"]
        assert [part["support"] for part in parts] == ["supported", "unsupported", "unsupported"]
        sources = [row["items"][0]["parts"][0] for row in rows_of["grounded"]]
        assert [source["label"] for source in sources] == ["from_background", "outside", "outside"]
        # That one is not supported is all that these two say; how it is not, they leave aside.
        against, torn = 1 - share(0, 0, 6), 1 - share(3, 3, 0)
        for found in (parts, sources):
            assert [part["confidence"] for part in found] == pytest.approx([share(6, 0, 0), against, torn], abs=1e-3)
        with Store.open(Path(".steelyard/store.db")) as store:
            manifests = [row.manifest["judge"] for row in store.runs()]
        (sha256,) = {manifest["sha256"] for manifest in manifests}
        assert sha256 == hashlib.sha256(Path("made/model.onnx").read_bytes()).hexdigest()

    def test_hands_on_what_it_is_not_sure_of(self, steelyard: Steelyard, rows: Path) -> None:
        """`verifier:NAME>MODEL`: the language model splits, and labels only what the verifier is not sure of."""
        with Loopback(reply_for=large) as server:
            Path("steelyard.toml").write_text(f'[judges.large]\nbase_url = "{server.url}"\nmodel = "large"\n', "utf-8")
            done = steelyard("run", rows, "-p", "atomic", "-j", "verifier:mine>large", "-o", "out.jsonl")
            assert done.code == 0, done.err
            atoms = [
                (atom["label"], atom["judge"], atom.get("confidence"))
                for row in lines_of("out.jsonl")
                for atom in row["items"]
            ]
            assert atoms == [
                ("correct", "verifier:mine", SURE),
                ("wrong", "verifier:mine", SURE),
                ("correct", "large:large", None),
            ]
            asked = [request.user for request in server.requests if request.task == "atomic.judge"]
            assert len(asked) == 1
            assert "b maybe yes ." in asked[0]
        # Another threshold, as calibrate writes it: nothing that the verifier finds wrong is believed.
        limits = {"precision": 0.9, "judges": {"verifier:mine": {"default": 0.9, "atom.wrong": None}}}
        Path("sure.json").write_text(json.dumps(limits), "utf-8")
        with Loopback(reply_for=large) as server:
            Path("steelyard.toml").write_text(f'[judges.large]\nbase_url = "{server.url}"\nmodel = "large"\n', "utf-8")
            words = (
                "run",
                rows,
                "-p",
                "atomic",
                "-j",
                "verifier:mine>large",
                "--sure",
                "sure.json",
                "-o",
                "again.jsonl",
            )
            done = steelyard(*words)
            assert done.code == 0, done.err
        judges = [atom["judge"] for row in lines_of("again.jsonl") for atom in row["items"]]
        assert judges == ["verifier:mine", "large:large", "large:large"]
