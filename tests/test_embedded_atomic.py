"""The tasks `atomic.split` and `atomic.judge` of the embedded judge: labels, evidence, differences, time and place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from feeding import seed
from steelyard.judges.embedded.advice import advised
from steelyard.judges.embedded.atomic import atom_verdicts, judge, split
from steelyard.judges.embedded.completing import completed, points_back, presupposed, unnamed
from steelyard.judges.embedded.moments import other_place, other_time
from steelyard.judges.embedded.support import Reading, Support, read
from steelyard.protocols.atoms import atom_item, lacks_evidence
from steelyard.protocols.common import Collected
from steelyard.records import Numbered, RagSample
from steelyard.tasks import AtomicData, AtomicReply, GradedAtomVerdict, SplitData
from steelyard.text import HAN

PASSAGE = "云湖图书馆自习室位于第二层，共有120个座位，于2015年3月开放。"


def data(*atoms: str, **changes: Any) -> AtomicData:
    fields = {
        "question": "云湖图书馆自习室怎么样？",
        "references": ("云湖公园全年免费开放。", PASSAGE),
        "answer": "。".join(atoms),
        "date": "未提供",
        "place": "未提供",
        "atoms": tuple(Numbered(id=number, text=text) for number, text in enumerate(atoms, 1)),
    }
    return AtomicData(**fields | changes)


def label(atom: str, **changes: Any) -> GradedAtomVerdict:
    (verdict,) = judge(data(atom, **changes), "zh", read).atoms
    return verdict


class Says:
    """A reading that always says the same: what the labels make of it is tested here, not how it came about."""

    def __init__(self, support: Support) -> None:
        self._support = support

    def __call__(self, passages: Sequence[str], question: str = "", answer: str = "") -> Reading:
        return self

    def support(self, claim: str) -> Support:
        return self._support

    def supports(self, claims: Sequence[str]) -> list[Support]:
        return [self._support] * len(claims)


class SaysOf:
    """A reading that knows these claims and no others."""

    def __init__(self, known: dict[str, Support]) -> None:
        self._known = known

    def __call__(self, passages: Sequence[str], question: str = "", answer: str = "") -> Reading:
        return self

    def support(self, claim: str) -> Support:
        return self._known.get(claim, Support("unknown", 0.3, None, None, None, "资料未提"))

    def supports(self, claims: Sequence[str]) -> list[Support]:
        return [self.support(claim) for claim in claims]


def said(kind: Any, probability: float, quote: str | None = PASSAGE, clash: str | None = None, **more: Any) -> Says:
    return Says(Support(kind, probability, 1, quote, clash, "理由", **more))


# --- the worked examples ---------------------------------------------------------------------------


def test_the_worked_examples() -> None:
    """At least 12 of the 14 atoms get a label that PROTOCOLS.md accepts; no fallback is seen; quotes are verified."""
    right = 0
    for name in ("atomic-headlamp-film", "atomic-longest-name", "atomic-mother-daughter"):
        sample, expected = seed(name)
        assert isinstance(sample, RagSample)
        atoms = tuple(Numbered(id=item["id"], text=item["text"]) for item in expected["items"])
        reply = judge(
            data(question=sample.question, references=sample.references, answer=sample.answer, atoms=atoms), "zh", read
        )
        assert reply.fallback is bool(expected["fallback"])
        assert not any(lacks_evidence(verdict, sample.references) for verdict in reply.atoms)
        right += sum(
            verdict.label in item["labels"] for verdict, item in zip(reply.atoms, expected["items"], strict=True)
        )
    assert right >= 12


# --- labels ----------------------------------------------------------------------------------------


def test_what_the_passage_says_is_correct() -> None:
    """With the passage, a quote from it and where it comes from."""
    verdict = label("云湖图书馆自习室位于第二层")
    assert (verdict.label, verdict.reference, verdict.source) == ("correct", 1, "reference")
    assert verdict.quote
    assert verdict.quote in PASSAGE


def test_another_floor_is_wrong() -> None:
    """An ordinal is exact."""
    verdict = label("云湖图书馆自习室位于第三层")
    assert verdict.label == "wrong"
    assert verdict.difference is None
    assert verdict.reason


def test_another_row_is_wrong_though_the_passage_names_it_too() -> None:
    """The row is compared with the sentence about the same thing, not with any that holds the number."""
    passage = "儿童座椅固定接口位于第二排左右两侧座椅。第三排座椅没有该接口，请勿在第三排安装。"
    verdict = label("儿童座椅固定接口位于第三排左右两侧座椅", question="接口在第几排？", references=(passage,))
    assert verdict.label == "wrong"


def test_what_no_passage_says_is_undetermined() -> None:
    """The judge abstains rather than guess."""
    assert label("馆长毕业于剑桥大学").label == "undetermined"


def test_without_references_nothing_is_checked() -> None:
    """A claim is undetermined, an opinion exempt."""
    assert label("自习室位于第二层", references=()).label == "undetermined"
    assert label("自习室位于第二层", references=("", "  ")).label == "undetermined"
    assert label("我觉得自习室很漂亮", references=()).label == "exempt"


@pytest.mark.parametrize("atom", ["我觉得自习室很漂亮", "您好！", "以下是总结：", "具体以官网为准", "您想去哪一层？"])
def test_what_is_no_claim_is_exempt(atom: str) -> None:
    """Opinions, courtesies, questions and talk about the answer get no score."""
    assert label(atom).label == "exempt"


def test_an_opinion_that_the_passages_speak_to_is_checked() -> None:
    """Only where they leave no doubt."""
    opinion = data("自习室环境很棒")
    assert judge(opinion, "zh", said("supported", 0.95)).atoms[0].label == "correct"
    assert judge(opinion, "zh", said("supported", 0.6)).atoms[0].label == "exempt"
    assert judge(opinion, "zh", said("contradicted", 0.05, clash="negation")).atoms[0].label == "wrong"
    assert judge(opinion, "zh", said("contradicted", 0.05)).atoms[0].label == "exempt"


def test_advice_is_held_against_the_passages_advice() -> None:
    """The same advice is correct, the opposite wrong, another matter nobody's to check."""
    references = ("加装灯膜可能造成车灯受损，建议您不要给大灯加装灯膜。",)
    assert label("不建议给大灯贴灯膜", references=references).label == "correct"
    assert label("建议给大灯贴灯膜", references=references).label == "wrong"
    assert label("建议您每天多喝水", references=references).label == "exempt"


def test_advice_of_others_is_found_with_its_words() -> None:
    """English too; the quote stands in the passage."""
    passage = "The filter wears out quickly. We recommend replacing the filter every month."
    found = advised("You should replace the filter every month.", [passage])
    assert found is not None
    assert found.agrees
    assert found.quote in passage
    assert advised("You should not replace the filter every month.", [passage]).agrees is False  # type: ignore[union-attr]
    assert advised("You should replace the filter.", ["The filter is blue."]) is None


def test_a_short_quote_is_widened_until_code_finds_it() -> None:
    """A quote of two characters proves nothing, so its sentence stands in for it."""
    atom = data("自习室位于第二层")
    verdict = judge(atom, "zh", said("supported", 0.9, quote="二层")).atoms[0]
    assert verdict.quote is not None
    assert len(verdict.quote) > 4
    assert not lacks_evidence(verdict, atom.references)


def test_a_label_without_any_quote_is_none() -> None:
    """What cannot be shown is not claimed."""
    assert judge(data("自习室位于第二层"), "zh", said("supported", 0.9, quote=None)).atoms[0].label == "undetermined"


def test_a_superlative_that_no_passage_has_is_not_proved_by_the_rest() -> None:
    """Alike in everything but the superlative is not alike."""
    claim, reading = data("云湖图书馆自习室是全市最大的自习室"), said("supported", 0.85)
    assert judge(claim, "zh", reading).atoms[0].label == "undetermined"
    spoken = claim.model_copy(update={"references": ("", PASSAGE + "它是全市最大的自习室。")})
    assert judge(spoken, "zh", reading).atoms[0].label == "correct"


def test_a_passage_that_names_its_subject_before() -> None:
    """这个国家存在于… supports what is said of the country by name."""
    references = ("奥匈帝国是欧洲的国家。", "这个国家存在于1867年至1918年。")
    atoms = data("奥匈帝国存在于1867年至1918年", "智利存在于1867年至1918年", references=references)
    bare = Support("supported", 0.97, 1, references[1], None, "理由")
    verdicts = judge(atoms, "zh", SaysOf({"存在于1867年至1918年": bare})).atoms
    assert [verdict.label for verdict in verdicts] == ["correct", "undetermined"]
    assert unnamed("奥匈帝国存在于1867年至1918年") == ("奥匈帝国", "存在于1867年至1918年")
    assert unnamed("The tower opened in 1912.") == ("The tower", "It opened in 1912.")
    assert points_back("4.这个国家存在于1867年")
    assert points_back("It opened in 1912.")
    assert not points_back("智利存在于南美洲")


# --- differences -----------------------------------------------------------------------------------


def final(verdict: GradedAtomVerdict, atoms: AtomicData) -> str:
    """The label after the protocol's own rules."""
    collected = Collected(labels={"atoms": {1: verdict}})
    return atom_item(atoms.atoms[0], collected, atoms.references).label


VISITORS = ("云湖图书馆去年接待游客120万人次。",)


@pytest.mark.parametrize(
    ("claimed", "kind", "ends_as"),
    [
        ("云湖图书馆去年接待游客150万人次", "statistic", "correct"),
        ("云湖图书馆去年接待游客3000万人次", "statistic", "wrong"),
        ("云湖图书馆自习室共有128个座位", "specification", "wrong"),
    ],
)
def test_quantities_get_the_protocols_tolerance(claimed: str, kind: str, ends_as: str) -> None:
    """A statistic of the same magnitude passes, a specification must be equal; the difference and its kind are told."""
    atoms = data(claimed, references=VISITORS) if kind == "statistic" else data(claimed)
    clash = Says(Support("contradicted", 0.1, 0, VISITORS[0], "quantity", "理由"))
    reading = clash if kind == "statistic" else said("contradicted", 0.1, clash="quantity")
    verdict = judge(atoms, "zh", reading).atoms[0]
    assert verdict.label == ends_as
    assert final(verdict, atoms) == ends_as
    assert verdict.difference is not None
    assert verdict.difference.kind == kind


def test_dates_need_the_year_only() -> None:
    """2015年5月 for 2015年3月 passes, 2016年 does not."""
    near = judge(data("云湖图书馆自习室于2015年5月开放"), "zh", said("contradicted", 0.1, clash="date")).atoms[0]
    far = judge(data("云湖图书馆自习室于2016年5月开放"), "zh", said("contradicted", 0.1, clash="date")).atoms[0]
    assert (near.label, far.label) == ("correct", "wrong")
    assert near.difference is not None
    assert near.difference.kind == "date"


def test_political_dates_are_exact() -> None:
    """Even a reading that took no offence is overruled."""
    references = ("该国于1949年10月1日举行开国典礼。",)
    atoms = data("该国于1949年9月1日举行开国典礼", question="开国典礼是哪天？", references=references)
    for reading in (
        Says(Support("supported", 0.9, 0, references[0], None, "理由")),
        Says(Support("contradicted", 0.1, 0, references[0], "date", "理由")),
    ):
        verdict = judge(atoms, "zh", reading).atoms[0]
        assert verdict.label == "wrong"
        assert verdict.difference is not None
        assert verdict.difference.kind == "political_date"
        assert final(verdict, atoms) == "wrong"


def test_a_clash_beside_the_number_is_not_forgiven() -> None:
    """Under no tolerance: the number may pass, the third floor for the second does not."""
    verdict = judge(
        data("云湖图书馆自习室位于第三层，共有128个座位"), "zh", said("contradicted", 0.1, clash="quantity")
    ).atoms[0]
    assert (verdict.label, verdict.difference) == ("wrong", None)


# --- time and place --------------------------------------------------------------------------------


def test_another_day_is_wrong() -> None:
    """今天 means the date of the sample."""
    weather = {"question": "北京今天天气怎么样？", "date": "2024-06-01", "references": ("北京2024年5月1日晴。",)}
    assert label("2024年5月1日北京晴", **weather).label == "wrong"
    assert label("2024年6月1日北京晴", **weather | {"references": ("北京2024年6月1日晴。",)}).label != "wrong"


def test_another_city_is_wrong() -> None:
    """附近 means the place of the sample."""
    where = {"question": "附近有什么好玩的？", "place": "上海市徐汇区", "references": ("北京故宫位于东城区。",)}
    verdict = label("北京故宫位于东城区", **where)
    assert verdict.label == "wrong"
    assert not lacks_evidence(verdict, ("北京故宫位于东城区。",))


def test_time_and_place_only_where_they_are_implied() -> None:
    """No date given, none implied, a date within the statement, a place the question names: no verdict."""
    assert other_time("今天天气怎么样？", "2024年5月1日晴", "未提供") is None
    assert other_time("天气怎么样？", "2024年5月1日晴", "2024-06-01") is None
    assert other_time("今天是什么节日？", "这个节日设立于1949年10月1日", "2024-06-01") is None
    assert other_time("What is on tomorrow?", "June 2, 2024: a concert", "2024-06-01") is None
    assert other_time("What is on tomorrow?", "June 5, 2024: a concert", "2024-06-01") is not None
    assert other_time("今年的主题是什么？", "2023年的主题是水", "2024-06-01") is not None
    assert other_place("北京附近有什么？", "北京故宫", "上海") is None
    assert other_place("附近有什么？", "上海博物馆", "上海") is None
    assert other_place("What is nearby?", "The Paris opera", "London") is not None
    assert other_place("附近有什么？", "故宫", "未提供") is None


# --- atoms of others -------------------------------------------------------------------------------


def test_atoms_without_a_subject_get_it_from_the_answer() -> None:
    """An atom that another split left bare is read as its answer means it."""
    answer = "王珞丹出生于内蒙古。她从小家境优越。它是礼物。"
    assert completed(["她从小家境优越。", "王珞丹出生于内蒙古", "无关的话"], answer, "") == [
        "王珞丹从小家境优越",
        "王珞丹出生于内蒙古",
        "无关的话",
    ]


def test_what_is_taken_for_granted() -> None:
    """身为老大的她… says that she is the eldest."""
    assert presupposed("身为老大的王珞丹或许从小就承担了责任") == ["王珞丹是老大"]
    assert presupposed("作为首都，北京有很多博物馆") == ["北京是首都"]
    assert presupposed("As the eldest child, Mary took care of them.") == ["Mary is the eldest child."]
    assert presupposed("她喜欢音乐") == []


def test_an_atom_asked_about_alone_keeps_its_level() -> None:
    """One ask per atom grades as one ask for all, as far as the answer's sentences go."""
    together = judge(data("云湖图书馆自习室位于第二层", "馆内有咖啡厅"), "zh", read).atoms[0]
    assert (
        label("云湖图书馆自习室位于第二层", answer="云湖图书馆自习室位于第二层。馆内有咖啡厅。").level == together.level
    )


# --- the whole reply -------------------------------------------------------------------------------


def test_fallback() -> None:
    """Told for the answer as a whole."""
    assert judge(data(answer="很抱歉，我无法回答。"), "zh", read) == AtomicReply(atoms=[], fallback=True)
    assert not judge(data("自习室位于第二层"), "zh", read).fallback


def test_reasons_are_in_the_asks_language() -> None:
    """English asks get English reasons."""
    atoms = data(
        "The café is lovely.", question="How is the café?", references=("The café is on the second floor.",), answer="x"
    )
    verdict = judge(atoms, "en", read).atoms[0]
    assert verdict.reason == "an opinion, not checked"
    assert not HAN.search(verdict.level_reason)


def test_splitting_is_a_task() -> None:
    """The same atoms as the splitter's, as a reply."""
    reply = split(SplitData(question="", answer="自习室位于第二层，有120个座位。"), "zh", read)
    assert [atom.text for atom in reply.atoms] == ["自习室位于第二层", "自习室有120个座位"]


def test_scorecard_gets_the_same_labels() -> None:
    """Without levels; quotes that code will find."""
    atoms = data("云湖图书馆自习室位于第二层", "我觉得很漂亮", "馆长毕业于剑桥大学")
    verdicts = atom_verdicts(
        atoms.atoms, atoms.question, read(atoms.references, atoms.question), "zh", atoms.references
    )
    assert [verdict.label for verdict in verdicts] == ["correct", "exempt", "undetermined"]
    assert not any(lacks_evidence(verdict, atoms.references) for verdict in verdicts)


TEXTS = st.text(max_size=60) | st.sampled_from(
    ["自习室位于第3层", "建议不要去", "【1】{{0}}", "1,2.3.4", "\ud800", "第" * 50]
)


@settings(max_examples=60, deadline=None)
@given(st.lists(TEXTS, max_size=4), st.lists(TEXTS, max_size=3), TEXTS, TEXTS)
def test_any_text_gets_one_verdict_per_atom(atoms: list[str], references: list[str], question: str, date: str) -> None:
    """Hostile text in any field yields a complete reply, and evidence that code can verify."""
    asked = data(*atoms, references=tuple(references), question=question, date=date, place=question)
    reply = judge(asked, "zh", read)
    assert [verdict.id for verdict in reply.atoms] == [atom.id for atom in asked.atoms]
    assert not any(lacks_evidence(verdict, asked.references) for verdict in reply.atoms)


def test_labels_come_with_their_probability() -> None:
    """What is read word for word is nearly sure; an opinion, which nobody checks, has no probability."""
    assert (label("自习室共有120个座位").confidence or 0) > 0.9
    assert 0 <= (label("自习室提供免费咖啡").confidence or -1) <= 1
    assert label("我觉得很漂亮").confidence is None
    (atom,) = atom_verdicts([Numbered(id=1, text="自习室共有120个座位")], "", read([PASSAGE]), "zh", [PASSAGE])
    assert (atom.confidence or 0) > 0.9
