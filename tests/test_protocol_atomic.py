"""`atomic`, row by row of its table."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from feeding import PASSAGE, RAG, changed, judge, respond, seed
from steelyard.protocols.atoms import Split, uncovered
from steelyard.records import Ask, Atom, RagSample, Unjudged, Verdict
from steelyard.tasks import AtomicData, SplitAtom


def with_atoms(*texts: str, **links: int) -> dict[str, Any]:
    atoms = [{"id": id, "text": text, "causal_of": links.get(f"of{id}")} for id, text in enumerate(texts, start=1)]
    return {"atoms": atoms}


TWO = with_atoms("云湖图书馆自习室在第二层", "云湖图书馆自习室共有120个座位")


def atoms_of(verdict: Verdict) -> list[Atom]:
    return [item for item in verdict.items if isinstance(item, Atom)]


def only(label: dict[str, Any], sample: RagSample = RAG, **options: Any) -> Atom:
    """The first atom, when the judge labels it so, twice if it is asked twice."""
    fed = judge("atomic", sample, TWO, otherwise=changed(atoms={1: label}), **options)
    return atoms_of(fed.verdict)[0]


# --- split ------------------------------------------------------------------------------------------


def test_two_asks_when_nothing_is_amiss() -> None:
    """A sample costs one ask to split and one to label."""
    fed = judge("atomic", RAG, TWO)
    assert fed.tasks == ["atomic.split", "atomic.judge"]
    assert [(atom.id, atom.text) for atom in atoms_of(fed.verdict)] == [
        (1, "云湖图书馆自习室在第二层"),
        (2, "云湖图书馆自习室共有120个座位"),
    ]


def test_duplicate_atoms_are_kept_once() -> None:
    """Duplicate atoms are kept once, in the place of the first; blank ones are none."""
    fed = judge("atomic", RAG, with_atoms("自习室在第二层", " ", "自习室共有120个座位", "自习室在第二层。"))
    assert [(atom.id, atom.text) for atom in atoms_of(fed.verdict)] == [
        (1, "自习室在第二层"),
        (2, "自习室共有120个座位"),
    ]


def test_near_duplicates_stay_apart() -> None:
    """Atoms that differ only in a sign that carries meaning are two."""
    assert len(Split([SplitAtom(id=1, text="他教C"), SplitAtom(id=2, text="他教C++")]).atoms) == 2
    assert len(Split([SplitAtom(id=1, text="气温是5度"), SplitAtom(id=2, text="气温是-5度")]).atoms) == 2


def test_links_follow_the_new_numbers() -> None:
    """A cause keeps its link to its effect when blank atoms before them are dropped."""
    fed = judge("atomic", RAG, with_atoms("", "自习室共有120个座位", "云湖图书馆自习室在第二层", of2=3))
    assert [atom.causal_of for atom in atoms_of(fed.verdict)] == [2, None]


def test_links_to_and_from_duplicates_survive() -> None:
    """A link that names a duplicate, or stands on one, is that of the atom that was kept."""
    to_copy = Split([SplitAtom(id=1, text="果"), SplitAtom(id=2, text="因", causal_of=3), SplitAtom(id=3, text="果")])
    assert to_copy.causal_of == {2: 1}
    from_copy = Split([SplitAtom(id=1, text="因"), SplitAtom(id=2, text="果"), SplitAtom(id=3, text="因", causal_of=2)])
    assert from_copy.causal_of == {1: 2}


def test_impossible_links_are_dropped() -> None:
    """A link to itself, to nothing, or to an id that two atoms share, is none."""
    assert Split([SplitAtom(id=1, text="甲", causal_of=1), SplitAtom(id=2, text="乙", causal_of=9)]).causal_of == {}
    shared = [SplitAtom(id=1, text="甲"), SplitAtom(id=1, text="乙"), SplitAtom(id=2, text="丙", causal_of=1)]
    assert Split(shared).causal_of == {}
    assert [atom.id for atom in Split(shared).atoms] == [1, 2, 3]


@given(
    st.lists(
        st.tuples(st.integers(0, 4), st.sampled_from(["甲", "乙", "丙 ", "", "甲。"]), st.integers(0, 5) | st.none())
    )
)
def test_split_is_always_in_order(found: list[tuple[int, str, int | None]]) -> None:
    """Whatever ids a judge gives, atoms are numbered from 1 and every link joins two of them."""
    split = Split([SplitAtom(id=id, text=text, causal_of=link) for id, text, link in found])
    ids = [atom.id for atom in split.atoms]
    assert ids == list(range(1, len(ids) + 1))
    assert all(cause in ids and effect in ids and cause != effect for cause, effect in split.causal_of.items())


THREE = RAG.model_copy(update={"answer": RAG.answer + "周末开放时间延长到晚上十点。"})


def test_uncovered_text_is_asked_again_once() -> None:
    """Where atoms leave out part of the answer, the judge is shown what, once, and the fuller split stands."""
    fed = judge(
        "atomic", THREE, TWO, with_atoms(*(a["text"] for a in TWO["atoms"]), "自习室周末开放时间延长到晚上十点")
    )
    assert fed.tasks == ["atomic.split", "atomic.split", "atomic.judge"]
    assert fed.asks[1].again
    assert fed.asks[1].again.uncovered == ("周末开放时间延长到晚上十点。",)
    assert len(fed.verdict.items) == 3
    assert "answer_not_covered" not in fed.verdict.flags


@pytest.mark.parametrize(
    "second", [with_atoms("自习室在第二层", "自习室共有120个座位"), with_atoms(), Unjudged(reason="x")]
)
def test_text_still_uncovered_is_flagged(second: Any) -> None:
    """If the second split is no fuller, the first stands, the sample is flagged and the text is named."""
    fed = judge("atomic", THREE, TWO, second)
    assert fed.tasks == ["atomic.split", "atomic.split", "atomic.judge"]
    assert [atom.text for atom in atoms_of(fed.verdict)] == [atom["text"] for atom in TWO["atoms"]]
    assert "answer_not_covered" in fed.verdict.flags
    assert fed.verdict.notes["uncovered"] == ["周末开放时间延长到晚上十点。"]
    assert fed.verdict.status == "judged"


def test_coverage_in_english() -> None:
    """A left-out English sentence is noticed although letters recur; rewording is not mistaken for a gap."""
    answer = "The ferry to Lerwick departs from the second pier. Bicycles travel free of charge on weekdays."
    ferry = SplitAtom(id=1, text="The Lerwick ferry departs from the second pier.")
    assert uncovered(answer, [ferry]) == ["Bicycles travel free of charge on weekdays."]
    assert uncovered(answer, [ferry, SplitAtom(id=2, text="On weekdays, bicycles are free on the ferry.")]) == []


@pytest.mark.parametrize("extra", ["您好！", "还有别的问题想问我吗？", "👍👍👍"])
def test_courtesies_need_no_atom(extra: str) -> None:
    """Greetings, questions and pictures are not text that atoms must cover."""
    assert judge("atomic", RAG.model_copy(update={"answer": RAG.answer + extra}), TWO).tasks.count("atomic.split") == 1


def test_no_atoms_in_a_refusal() -> None:
    """A refusal has no atoms: asked once, accuracy null, fallback 1, no complaint about coverage."""
    refusal = RAG.model_copy(update={"answer": "很抱歉，我还在学习，暂时不知道这个问题的答案。"})
    fed = judge("atomic", refusal, with_atoms(), changed(fallback=True))
    assert fed.tasks == ["atomic.split", "atomic.judge"]
    assert fed.verdict.scores == {"accuracy": None, "accuracy_strict": None, "coverage": None, "fallback": 1}
    assert "answer_not_covered" not in fed.verdict.flags
    assert fed.verdict.status == "judged"


def test_no_atoms_in_a_real_answer_is_flagged() -> None:
    """A judge that finds nothing in an answer that does answer is not believed silently."""
    fed = judge("atomic", RAG, with_atoms())
    assert "answer_not_covered" in fed.verdict.flags
    assert fed.verdict.scores["accuracy"] is None


def test_split_without_reply() -> None:
    """Where the answer cannot be split the sample has failed; nothing is 0, fallback included."""
    fed = judge("atomic", RAG, Unjudged(reason="refused"))
    assert fed.verdict.status == "failed"
    assert fed.verdict.flags == ("unjudged:atoms:refused",)
    assert set(fed.verdict.scores.values()) == {None}


# --- relevance and need of checking -----------------------------------------------------------------


def test_levels_and_their_reasons_are_kept() -> None:
    """Every atom has its level and the reason for it."""
    label = {1: {"level": 1, "level_reason": "直接回答"}, 2: {"level": 3, "level_reason": "额外"}}
    atoms = atoms_of(judge("atomic", RAG, TWO, changed(atoms=label)).verdict)
    assert [(atom.level, atom.level_reason) for atom in atoms] == [(1, "直接回答"), (3, "额外")]


def test_exempt_has_no_score() -> None:
    """An exempt atom counts nowhere; with only exempt ones accuracy is null."""
    mixed = judge("atomic", RAG, TWO, changed(atoms={1: {"label": "exempt"}})).verdict
    assert mixed.scores["accuracy"] == 1
    assert mixed.scores["coverage"] == 1
    assert atoms_of(mixed)[0].evidence is None
    exempt = {"label": "exempt", "quote": None}
    verdict = judge("atomic", RAG, TWO, changed(atoms={1: exempt, 2: exempt})).verdict
    assert verdict.scores == {"accuracy": None, "accuracy_strict": None, "coverage": None, "fallback": 0}
    assert verdict.status == "judged"


def test_scores_are_counted_from_the_labels() -> None:
    """accuracy = n1/(n1+n0), strict counts undetermined against, coverage is the share decided."""
    four = with_atoms("自习室在第二层", "自习室共有120个座位", "自习室紧邻电梯", "自习室很安静")
    labels = {2: {"label": "wrong"}, 3: {"label": "undetermined"}, 4: {"label": "undetermined"}}
    verdict = judge("atomic", RAG, four, changed(atoms=labels)).verdict
    assert verdict.scores == {"accuracy": 0.5, "accuracy_strict": 0.25, "coverage": 0.5, "fallback": 0}


# --- evidence ---------------------------------------------------------------------------------------


def test_verified_evidence() -> None:
    """A quote that stands in the named passage is verified; spacing, width and punctuation do not matter."""
    atom = only({"reference": 1, "quote": "位于 第二层 ,共有１２０个座位"})
    assert atom.evidence is not None
    assert (atom.evidence.reference, atom.evidence.verified, atom.evidence.source) == (1, True, "reference")
    assert atom.flags == ()


def test_the_quote_corrects_the_passage() -> None:
    """Where the quote stands in another passage than the one named, that one is recorded; nobody is asked again."""
    fed = judge("atomic", RAG, TWO, changed(atoms={1: {"reference": 0, "quote": "位于第二层"}}))
    evidence = atoms_of(fed.verdict)[0].evidence
    assert evidence is not None
    assert (evidence.reference, evidence.verified) == (1, True)
    assert len(fed.asks) == 2


@pytest.mark.parametrize("quote", [None, "", "层", "位于第三层，共有120个座位", "……"])
def test_unverifiable_quote_is_asked_again_exactly_once(quote: str | None) -> None:
    """A quote that code cannot find is asked for again once; then the label is kept and flagged."""
    fed = judge("atomic", RAG, TWO, otherwise=changed(atoms={1: {"quote": quote}}))
    assert fed.tasks == ["atomic.split", "atomic.judge", "atomic.judge"]
    again = fed.asks[-1]
    assert again.again
    assert again.again.unverified == ("atoms 1",)
    assert again.again.missing == ()
    assert [item.id for item in again.data.items()["atoms"]] == [1]
    atom = atoms_of(fed.verdict)[0]
    assert (atom.label, atom.flags) == ("correct", ("evidence_unverified",))
    assert atom.evidence is not None
    assert atom.evidence.verified is False
    assert "evidence_unverified" in fed.verdict.flags


def test_the_proven_second_reply_stands() -> None:
    """If the second reply proves its label, that label stands, even another one."""
    doubted = changed(atoms={1: {"quote": "位于第三层"}})
    proven = changed(atoms={1: {"label": "wrong", "quote": "位于第二层", "reason": "改判"}})
    atom = atoms_of(judge("atomic", RAG, TWO, doubted, proven).verdict)[0]
    assert (atom.label, atom.reason, atom.flags) == ("wrong", "改判", ())


def test_a_withdrawn_label_stands() -> None:
    """A judge that finds no evidence may take its label back: undetermined needs no quote."""
    withdrawn = changed(atoms={1: {"label": "undetermined", "quote": None}})
    atom = atoms_of(judge("atomic", RAG, TWO, changed(atoms={1: {"quote": "无此句话"}}), withdrawn).verdict)[0]
    assert (atom.label, atom.flags, atom.evidence) == ("undetermined", (), None)


def test_the_first_label_stands_when_neither_is_proven() -> None:
    """Where both replies fail to prove themselves, the first is kept as it was given."""
    first = changed(atoms={1: {"quote": "无此句话甲", "reason": "一"}})
    second = changed(atoms={1: {"quote": "无此句话乙", "reason": "二", "label": "wrong"}})
    atom = atoms_of(judge("atomic", RAG, TWO, first, second).verdict)[0]
    assert (atom.label, atom.reason) == ("correct", "一")
    assert atom.evidence is not None
    assert atom.evidence.quote == "无此句话甲"


@pytest.mark.parametrize("named", [7, -1, 2])
def test_a_passage_that_does_not_exist_is_not_recorded(named: int) -> None:
    """An unverified label that names no real passage points at none: a script may index with it."""
    atom = only({"reference": named, "quote": "无此句话"})
    assert atom.evidence is not None
    assert atom.evidence.reference is None


@pytest.mark.parametrize("label", ["undetermined", "exempt"])
def test_labels_without_a_claim_need_no_evidence(label: str) -> None:
    """Only correct and wrong need a quote; the others cost no second ask and carry none."""
    fed = judge("atomic", RAG, TWO, changed(atoms={1: {"label": label, "quote": None, "reference": None}}))
    assert len(fed.asks) == 2
    assert atoms_of(fed.verdict)[0].evidence is None


def test_inference_quotes_what_it_infers_from() -> None:
    """`inference` is recorded as the source, and its quote is verified like any other."""
    atom = only({"source": "inference", "quote": "共有120个座位"})
    assert atom.evidence is not None
    assert (atom.evidence.source, atom.evidence.verified) == ("inference", True)
    assert only({"source": "inference", "quote": None}).flags == ("evidence_unverified",)


def test_own_knowledge_counts_unless_strict() -> None:
    """A label from own knowledge needs no quote; the strict switch turns it into undetermined."""
    label = {"label": "wrong", "source": "own_knowledge", "quote": None, "reference": None}
    fed = judge("atomic", RAG, TWO, changed(atoms={1: label}))
    assert len(fed.asks) == 2
    atom = atoms_of(fed.verdict)[0]
    assert atom.label == "wrong"
    assert atom.evidence is not None
    assert (atom.evidence.source, atom.evidence.verified, atom.flags) == ("own_knowledge", False, ())
    strict = judge("atomic", RAG, TWO, changed(atoms={1: label}), strict=True).verdict
    assert (atoms_of(strict)[0].label, atoms_of(strict)[0].flags) == ("undetermined", ("own_knowledge_ignored",))
    assert strict.scores["accuracy"] == 1
    assert strict.scores["coverage"] == 0.5


def test_strict_leaves_the_references_labels_alone() -> None:
    """The strict switch touches own knowledge only."""
    assert judge("atomic", RAG, TWO, strict=True).verdict.scores == judge("atomic", RAG, TWO).verdict.scores


@pytest.mark.parametrize("source", ["reference", "own_knowledge"])
def test_no_references_means_undetermined(source: str) -> None:
    """Without references each checkable atom is undetermined whatever the judge says; asked once, flagged."""
    bare = RAG.model_copy(update={"references": ()})
    label = {"label": "wrong", "source": source, "difference": {"kind": "quantity", "claimed": "1", "stated": "1"}}
    fed = judge("atomic", bare, TWO, changed(atoms={1: label, 2: {"label": "exempt"}}))
    assert len(fed.asks) == 2
    one, two = atoms_of(fed.verdict)
    assert (one.label, one.flags, one.evidence) == ("undetermined", ("no_references",), None)
    assert two.label == "exempt"
    assert fed.verdict.scores == {"accuracy": None, "accuracy_strict": 0, "coverage": 0, "fallback": 0}
    assert "no_references" in fed.verdict.flags


# --- time and place ---------------------------------------------------------------------------------


def test_date_and_place_are_told() -> None:
    """The judge is told date and place: the sample's, else the options', else that none is given."""

    def told(sample: RagSample, **options: str) -> tuple[str, str]:
        data = judge("atomic", sample, TWO, **options).asks[-1].data
        assert isinstance(data, AtomicData)
        return data.date, data.place

    assert told(RAG) == ("未提供", "未提供")
    assert told(RAG, date="2026-01-02", place="苏州") == ("2026-01-02", "苏州")
    assert told(RAG.model_copy(update={"date": "2020-05-05", "place": "北京"}), date="2026-01-02") == (
        "2020-05-05",
        "北京",
    )
    english = RAG.model_copy(update={"question": "Which floor is it on?", "answer": "It is on the second floor."})
    assert told(english)[1] == "not given"


# --- tolerance --------------------------------------------------------------------------------------


def differing(label: str, kind: str, claimed: str, stated: str) -> tuple[str, tuple[str, ...]]:
    atom = only({"label": label, "difference": {"kind": kind, "claimed": claimed, "stated": stated}})
    return atom.label, atom.flags


@pytest.mark.parametrize(
    ("kind", "claimed", "stated"),
    [
        ("statistic", "128人", "120人"),
        ("statistic", "9", "11"),
        ("specification", "约3.1万元", "31,200元"),
        ("date", "2019年5月1日", "2019年6月3日"),
    ],
)
def test_a_value_within_the_tolerance_is_correct_and_flagged(kind: str, claimed: str, stated: str) -> None:
    """Whatever the judge made of it: correct, flagged, and both values on the item."""
    for label in ("wrong", "correct"):
        atom = only({"label": label, "difference": {"kind": kind, "claimed": claimed, "stated": stated}})
        assert (atom.label, atom.flags) == ("correct", ("within_tolerance",))
        assert atom.difference
        assert (atom.difference.kind, atom.difference.claimed, atom.difference.stated) == (kind, claimed, stated)


@pytest.mark.parametrize(
    ("kind", "claimed", "stated"),
    [
        ("statistic", "1.2万", "120"),
        ("statistic", "3亿", "30万"),
        ("specification", "128个", "120个"),
        ("quantity", "128个", "120个"),
        ("date", "2018年", "2019年6月3日"),
        ("political_date", "1948年", "1949年10月1日"),
        ("political_date", "1949年10月2日", "1949年10月1日"),
        ("statistic", "第三排", "第二排"),
        ("statistic", "L9", "L8"),
        ("statistic", "v1.3", "v1.2"),
        ("statistic", "3rd", "2nd"),
    ],
)
def test_a_value_beyond_the_tolerance_is_wrong(kind: str, claimed: str, stated: str) -> None:
    """Whatever the judge made of it; where it let the value pass, that is flagged. Names and ordinals are exact."""
    assert differing("correct", kind, claimed, stated) == ("wrong", ("beyond_tolerance",))
    assert differing("wrong", kind, claimed, stated) == ("wrong", ())


@pytest.mark.parametrize(
    ("claimed", "stated"), [("1200万", "0.12亿"), ("３万", "30000"), ("两年", "24个月"), ("1.5 kg", "1,500 g")]
)
def test_equal_values_are_no_difference(claimed: str, stated: str) -> None:
    """What is equal after conversion is correct without any tolerance; a judge that called it wrong is overruled."""
    assert differing("correct", "specification", claimed, stated) == ("correct", ())
    assert differing("wrong", "specification", claimed, stated) == ("correct", ("same_value",))


@pytest.mark.parametrize(
    ("kind", "claimed", "stated"),
    [("specification", "免费", "不收费"), ("date", "去年", "2019年"), ("specification", "一个月", "30天")],
)
def test_what_code_cannot_compare_is_the_judges(kind: str, claimed: str, stated: str) -> None:
    """No number, no year, units without a fixed ratio: the judge's label stands."""
    assert differing("wrong", kind, claimed, stated) == ("wrong", ())
    assert differing("correct", kind, claimed, stated) == ("correct", ())


def test_the_policy_is_an_option() -> None:
    """The same reply under other options: nested as in TOML, or by dotted names as on the command line."""
    price = {"label": "correct", "difference": {"kind": "specification", "claimed": "$310", "stated": "$300"}}
    assert only(price).label == "wrong"
    assert only(price, tolerance={"quantities": "5%"}).label == "correct"
    assert only(price, **{"tolerance.quantities": "magnitude"}).label == "correct"
    crowd = {"label": "correct", "difference": {"kind": "statistic", "claimed": "31万", "stated": "30万"}}
    assert only(crowd).label == "correct"
    assert only(crowd, **{"tolerance.quantities": "exact", "tolerance": {"dates": "year"}}).label == "wrong"


def test_strict_concerns_own_knowledge_only() -> None:
    """Strict turns labels of own knowledge into undetermined; those by reference or inference stay as they are."""
    for source, label, ends_as in [
        ("own_knowledge", "correct", "undetermined"),
        ("own_knowledge", "wrong", "undetermined"),
        ("inference", "correct", "correct"),
        ("inference", "wrong", "wrong"),
        ("reference", "correct", "correct"),
        ("reference", "wrong", "wrong"),
        (None, "correct", "correct"),
        ("own_knowledge", "exempt", "exempt"),
        ("inference", "undetermined", "undetermined"),
    ]:
        atom = only({"label": label, "source": source}, strict=True)
        assert atom.label == ends_as
        assert ("own_knowledge_ignored" in atom.flags) is (ends_as != label)
        assert only({"label": label, "source": source}).label == label


@pytest.mark.parametrize("label", ["undetermined", "exempt"])
def test_tolerance_decides_nothing_that_was_not_decided(label: str) -> None:
    """A difference beside an undetermined or exempt label changes nothing."""
    assert differing(label, "specification", "120", "130") == (label, ())


# --- no question ------------------------------------------------------------------------------------


def test_without_a_question_there_are_labels_but_no_levels() -> None:
    """A summary held against its sources: accuracy as ever, levels null, and the sample says why."""
    summary = RAG.model_copy(update={"question": ""})
    fed = judge("atomic", summary, TWO)
    assert fed.verdict.scores["accuracy"] == 1
    assert [(atom.level, atom.level_reason) for atom in atoms_of(fed.verdict)] == [(None, ""), (None, "")]
    assert "no_question" in fed.verdict.flags
    assert fed.verdict.status == "judged"


# --- fallback, edges --------------------------------------------------------------------------------


def test_fallback_is_the_judges_single_fact() -> None:
    """The fallback is 0 or 1 as the judge says, null where it said nothing."""
    assert judge("atomic", RAG, TWO, changed(fallback=True)).verdict.scores["fallback"] == 1
    silent = judge("atomic", RAG, TWO, Unjudged(reason="truncated")).verdict
    assert silent.scores["fallback"] is None
    assert "unjudged:fallback:truncated" in silent.flags
    assert silent.status == "failed"
    assert {atom.reason for atom in atoms_of(silent)} == {"truncated"}


@pytest.mark.parametrize("answer", ["", "  \n\t ", "\u3000"])
def test_empty_answer(answer: str) -> None:
    """An empty answer: no atoms, accuracy null, fallback 0, flagged, and no judge is asked."""
    fed = judge("atomic", RAG.model_copy(update={"answer": answer}))
    assert fed.asks == []
    assert fed.verdict.items == ()
    assert fed.verdict.scores == {"accuracy": None, "accuracy_strict": None, "coverage": None, "fallback": 0}
    assert fed.verdict.flags == ("empty_answer",)
    assert fed.verdict.status == "judged"


def test_result_line_of_an_atom() -> None:
    """An atom's line carries text, label, level, reason and evidence as promised."""
    line = judge("atomic", RAG, TWO).verdict.line()["items"][0]
    assert line["evidence"] == {"reference": 1, "quote": PASSAGE, "verified": True, "source": "reference"}
    promised = {
        "kind": "atom",
        "id": 1,
        "text": "云湖图书馆自习室在第二层",
        "label": "correct",
        "level": 1,
        "reason": "理由",
    }
    assert {key: line[key] for key in promised} == promised


# --- the worked examples ----------------------------------------------------------------------------

QUOTES = {
    "atomic-headlamp-film": {1: "车灯贴膜后会使灯光的照明亮度下降", 2: "可能影响行车安全", 3: "建议您不要加装灯膜"},
    "atomic-longest-name": {
        1: "世界上最长的国名，即奥匈帝国的全称",
        2: "这个国名由28个字组成",
        3: "包含了大量的地名和领地名称，如丁斯、圣文森特、格林纳、共和国、捷克斯洛伐克等",
        4: "这个国家存在于1867年至1918年",
        5: "是欧洲乃至世界的一个重要强国",
    },
    "atomic-mother-daughter": {
        1: "非常典型的中国式母女",
        3: "从小家境不错",
        4: "父母都是银行职员",
        5: "家里还有个姐姐",
    },
}


@pytest.mark.parametrize(
    ("name", "alternative", "scores"),
    [
        ("atomic-headlamp-film", 0, (1, 1, 1)),
        ("atomic-longest-name", 0, (5 / 6, 5 / 6, 1)),
        ("atomic-longest-name", 1, (1, 5 / 6, 5 / 6)),
        ("atomic-mother-daughter", 0, (4 / 5, 4 / 5, 1)),
        ("atomic-mother-daughter", 1, (2 / 3, 2 / 4, 3 / 4)),
    ],
)
def test_worked_examples(name: str, alternative: int, scores: tuple[float, float, float]) -> None:
    """The seeds' examples with either accepted label: two asks, quotes verified, the scores a hand computes."""
    sample, expected = seed(name)
    assert isinstance(sample, RagSample)
    wanted = {item["id"]: item for item in expected["items"]}

    def label(item: dict[str, Any]) -> dict[str, Any]:
        chosen = item["labels"][min(alternative, len(item["labels"]) - 1)]
        quote = QUOTES[name].get(item["id"])
        source = "reference" if quote else "own_knowledge"
        return {"label": chosen, "level": item["level"], "quote": quote, "reference": 0, "source": source}

    def reply(ask: Ask) -> dict[str, Any]:
        return respond(ask, atoms={id: label(item) for id, item in wanted.items()})

    split = {"atoms": [{"id": item["id"], "text": item["text"]} for item in expected["items"]]}
    fed = judge("atomic", sample, split, reply)
    assert fed.tasks == ["atomic.split", "atomic.judge"]
    accuracy, strict, coverage = scores
    assert fed.verdict.scores == {
        "accuracy": pytest.approx(accuracy),
        "accuracy_strict": pytest.approx(strict),
        "coverage": pytest.approx(coverage),
        "fallback": expected["fallback"],
    }
    assert {atom.id: atom.level for atom in atoms_of(fed.verdict)} == {id: item["level"] for id, item in wanted.items()}
    assert fed.verdict.flags == ()
    assert all(atom.evidence.verified for atom in atoms_of(fed.verdict) if atom.evidence and atom.evidence.quote)
