"""What kind of saying a statement is, and whether an answer declines."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from steelyard.judges.embedded.kinds import is_fallback, kind_of, opening_yes_or_no, yes_or_no

KINDS = {
    "claim": [
        "早就结婚了，我老公正给我剥虾呢",
        "它获得了2018年的金奖。你玩过吗？",
        "It won the prize in 2018. Have you played it?",
        "云湖图书馆自习室位于第二层",
        "贴膜可能影响行车安全",
        "身为老大的她或许从小就承担了一定的责任",
        "它是世界上有史以来最强大的国家",
        "奥匈帝国是欧洲乃至世界的一个重要强国",
        "专家建议每天喝八杯水",
        "世界卫生组织不建议婴儿饮用果汁",
        "他向董事会提出了三条建议",
        "说明书建议每年更换一次滤芯",
        "小说讲述了一个美丽的故事",
        "驾驶员必须持有驾驶证",
        "该车最高时速为180公里",
        "他认为地球是平的",
        "雲湖圖書館位於第二層",
        "希望小学建于1998年",
        "请求被法院驳回",
        "别墅建于1930年",
        "注意力缺陷多动障碍是一种疾病",
        "推荐系统使用协同过滤算法",
        "The café is on the second floor.",
        "The WHO recommends 150 minutes of exercise a week.",
        "Critics think the film is long.",
        "The treaty was signed in 1919.",
        "他呼吁，请大家依法燃放烟花",
        "候选人经过逐级推荐产生",
        "与去年相比，这不算什么",
        "人群高喊“不要打仗，请回家”",
        'The singer asks, "What is civil about war?"',
        "It is worth noting that two women were nominated.",
        "He has never been elected.",
        "法院查明，无法确定抛物者，遂判令业主承担责任",
        "I am not sure, but his books were translated into 42 languages.",
        "The drug is recommended by the WHO.",
        "The Great Wall is a fortification in China.",
        "Pretty Woman was released in 1990.",
        "Here Is Gone is a song by the Goo Goo Dolls.",
        "不要，自己带",
        "不要紧，是正常更替",
        "能，但不要超过两次",
        "要，建議泡20分鐘",
        "如果写了几份相互矛盾的，以最后一份为准",
        "过滤网太脏堵住了",
        "武汉",
        "1361万",
        "Never before had so many people come there.",
        "You can try it for 100 nights.",
        "before I feel cold",
        "Thum's great-granddaughter",
        "Yes, and you should book ahead.",
    ],
    "opinion": [
        "我觉得挺好看",
        "自习室环境很棒",
        "我个人认为这款车更适合家庭",
        '王珞丹和妈妈的关系可以用"矛盾、纠缠和复杂"来形容',
        "這部電影非常精彩",
        "这里的风景令人难忘",
        "在我看来，这个方案更好",
        "The café is lovely.",
        "I think the design works.",
        "In my opinion, the sequel is weaker.",
        "The view from the tower is absolutely stunning.",
    ],
    "advice": [
        "不建议给大灯贴膜",
        "因此不建议给大灯贴膜",
        "建议您定期更换机油",
        "如果经常跑长途，建议选择增程版",
        "前挡风玻璃不建议贴膜",
        "请勿在行驶中打开车门",
        "请您提前预约",
        "建議您不要加裝燈膜",
        "最好提前一天出发",
        "这家餐厅值得一试",
        "I would recommend the second edition.",
        "You should change the oil every year.",
        "Avoid parking under trees.",
        "It is recommended to book ahead.",
        "Please keep the receipt.",
    ],
    "greeting": [
        "您好！",
        "你好，很高兴为您服务！",
        "希望以上回答对您有所帮助。",
        "如果您还有其他问题，欢迎随时提问！",
        "感謝您的提問！",
        "祝您生活愉快！",
        "Hello there!",
        "I hope this helps!",
        "Great question!",
        "Let me know if you have any other questions.",
        "Thanks for asking!",
    ],
    "hedge": [
        "以上信息仅供参考",
        "具体价格以官网为准",
        "效果因人而异",
        "资料中没有提到具体价格",
        "目前无法确定具体时间",
        "I'm not sure about the exact date.",
        "The passages do not mention the price.",
        "Results may vary.",
    ],
    "question": [
        "您想了解哪一款车型？",
        "还有什么可以帮您的吗",
        "Which model do you mean?",
        "“你知道吗？”",
        "你呢",
        "这东西放哪儿呢",
        "票价是3.50美元一张吗？",
    ],
    "meta": [
        "以下是为您整理的主要优点：",
        "以上就是我的回答",
        "具体步骤如下：",
        "根据提供的资料，",
        "Here is a summary of the main points:",
        "In summary,",
        "Based on the provided context,",
        "总结",
        "Key points",
        "def add(a, b):\n    return a + b",
        "",
        "……",
    ],
}


@pytest.mark.parametrize(("kind", "text"), [(kind, text) for kind, texts in KINDS.items() for text in texts])
def test_kinds(kind: str, text: str) -> None:
    """Each saying is what a reader would call it, in both scripts and in English."""
    assert kind_of(text) == kind


DECLINING = [
    "我不知道。",
    "抱歉，我不清楚。",
    "很抱歉，我无法回答这个问题。",
    "对不起，我还在学习中，暂时无法支持该功能。",
    "这个问题我还在学习哦~",
    "根据提供的资料，没有提到理想L9的价格。",
    "抱歉，参考资料中未提及该车型的续航里程，建议您咨询官方客服。",
    "很遗憾，我没有找到相关信息。您可以换个问题试试。",
    "非常抱歉，由于我的知识有限，无法为您提供准确的答案。如果您有其他问题，请随时告诉我。",
    "您好，关于这个问题，目前暂无相关信息。",
    "這個問題我不太清楚，請您諮詢官方客服。",
    "很抱歉，我無法回答您的問題。",
    "作为一个AI语言模型，我无法提供医疗建议。",
    "目前的资料不足以判断大灯能否贴膜。",
    "很抱歉",
    "這題我還在學習當中，目前沒有辦法回覆您喔。",
    "I don't know.",
    "I'm sorry, but I can't help with that.",
    "I'm not sure, but thank you for asking.",
    "Sorry, I do not have enough information to answer this question.",
    "I'm not sure. You may want to check the official website.",
    "Unfortunately, the provided passages do not mention the price.",
    "The context does not provide information about the battery. Please contact support.",
    "As an AI language model, I cannot give legal advice.",
    "I am still learning and unable to answer that.",
    "There is no information about this in the documents.",
    "The passage does not give a length for the road in Albany, NY.",
    "The price is not mentioned in the provided content.",
    "The film was not mentioned in the passages. Therefore, an answer cannot be provided.",
    "It was not mentioned in the given passages, so an answer cannot be provided.",
]

ANSWERING = [
    "",
    "可以。",
    "大灯不建议贴膜。",
    "抱歉让您久等了，自习室在第二层。",
    "很抱歉，之前的回答有误。自习室在第二层，共有120个座位。",
    "虽然资料没有提到价格，但理想L9有六个座位。",
    "参考资料没有提到具体价格。理想L9于2022年上市，有六个座位。",
    "他不知道妻子已经离开。",
    "科学家目前还不清楚恐龙灭绝的确切原因，主流假说是小行星撞击。",
    "理想L9不支持苹果CarPlay。",
    "您好！自习室位于第二层。希望对您有帮助！",
    "无法充电时，请检查电源线是否插好，再长按电源键十秒重启。",
    "很遗憾，比赛以0比3告负。",
    "Sorry for the delay. The café is on the second floor.",
    "I'm not sure about the price, but the L9 has six seats.",
    "I'm not sure, but parcels usually arrive on Fridays.",
    "Unfortunately I don't know the reason, but trains to Leeds run hourly.",
    "我不太确定，不过寄件一般需要两天。",
    "The passages do not mention the price. The L9 was launched in 2022 and seats six people.",
    "Nobody knows who wrote the poem; it was published in 1912.",
    "The car does not support CarPlay.",
    "I'm not sure what you mean. You can find the café on the second floor.",
    "很抱歉让您久等。目前理想L9售价45.98万元。",
    "抱歉，根据规定，自习室在晚上十点关闭。",
    "No, the museum is closed on Mondays.",
    "The unknown soldier was buried in 1920.",
    "不支持",
    "没有",
    "I cannot do so a second time.",
    "We do not sell data.",
    "So I have no guarantee.",
    "The layer no longer counts as evidence of a raid.",
]


@pytest.mark.parametrize("answer", DECLINING)
def test_an_answer_that_declines_is_a_fallback(answer: str) -> None:
    """Refusals in many words, with their apologies and courtesies, are fallbacks."""
    assert is_fallback(answer)


@pytest.mark.parametrize("answer", ANSWERING)
def test_an_answer_with_substance_is_no_fallback(answer: str) -> None:
    """An apology or a gap beside a real answer is no fallback, nor are words that only look like a refusal."""
    assert not is_fallback(answer)


@given(st.text(max_size=300))
def test_any_text_has_a_kind(text: str) -> None:
    """No text makes the rules fail."""
    assert kind_of(text) in KINDS
    assert is_fallback(text) in (True, False)


@given(
    st.sampled_from(DECLINING),
    st.sampled_from(["理想L9有六个座位，售价45.98万元。", "The museum opened in 1912 and has two floors."]),
)
def test_a_real_answer_after_a_refusal_counts(refusal: str, answer: str) -> None:
    """Whatever the refusal says, a statement after it makes the whole an answer."""
    assert not is_fallback(f"{refusal}\n{answer}")


YES = ["是", "可以。", "对的", "当然可以！", "會", "没问题", "Yes.", "Sure!", "of course"]
NO = ["不", "不是。", "不可以", "沒有", "否", "不需要", "No", "Nope.", "Not at all!"]
MORE = ["不知道", "可以吗", "会议室在二楼", "不锈钢", "武汉", "Yesterday", "Nobody", "No. 5 is ready", ""]


@pytest.mark.parametrize(("texts", "expected"), [(YES, True), (NO, False)])
def test_a_bare_yes_or_no(texts: list[str], expected: bool) -> None:
    """In both scripts and in English; with more behind it, the text opens with it and is no longer bare."""
    for text in texts:
        assert yes_or_no(text) is expected, text
        assert opening_yes_or_no(text) is expected, text
        longer = f"{text.rstrip('.。!！')}, because it says so"
        assert (yes_or_no(longer), opening_yes_or_no(longer)) == (None, expected), longer


@pytest.mark.parametrize("text", MORE)
def test_what_is_neither_yes_nor_no(text: str) -> None:
    """Words that only begin like one."""
    assert yes_or_no(text) is None


HOSTILE = [
    "很",
    "建议",
    "sorry ",
    "，",
    "i am not ",
    "这个问题",
    "!",
    "?",
    "a",
    "\n",
    "“",
    "不建议，",
    "you should ",
    "以下是",
    "我",
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_long_repetitions_are_read_quickly(piece: str) -> None:
    """A hundred thousand characters of anything take well under a second."""
    text = piece * (100_000 // len(piece))
    started = time.thread_time()
    kind_of(text)
    is_fallback(text[:2400])
    is_fallback(text)
    opening_yes_or_no(text)
    assert time.thread_time() - started < 1
