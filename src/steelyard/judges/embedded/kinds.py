"""What kind of saying a statement is, whether an answer declines, and a bare yes or no.

Precision first: what is not clearly an opinion, advice or courtesy is a claim, and claims are checked. Phrases are
written in Simplified characters and lower case, and matched against text folded to both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from steelyard.text import HAN, LETTER_OR_DIGIT, fold, in_simplified, sentences
from steelyard.text.clauses import states

Kind = Literal["claim", "advice", "opinion", "hedge", "greeting", "meta", "question"]

APOSTROPHE = str.maketrans("’", "'")
EDGE = " \t\n\u3000\"'“”‘’「」『』*_()（）.。,，!！~～:：😊🙂😀👋"


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """Text folded for matching: half width, lower case, Simplified characters."""
    return in_simplified(fold(text)).casefold().translate(APOSTROPHE).strip()


# Fragments that several patterns share.
YOU = r"(?:您|你|大家)"
VERY = r"(?:非常|很|十分|真的?|实在)?"
SOURCE = r"(?:资料|文档|文中|文本|信息|内容|上下文|背景|知识库|文章|结果|材料|片段)"
MENTION = r"(?:提及|提到|提供|包含|涉及|说明|给出|指出|显示|记载|找到|介绍|关于|相关|足够|足以)"
SOURCE_EN = r"(?:context|passages?|documents?|references?|text|sources?|information|articles?|results|content)"
DOES_NOT = r"(?:do(?:es)? not|don't|doesn't|did not|didn't)"

# --- courtesies: every piece of the text must be one -------------------------------------------------

PIECE = re.compile(r"[，,；;。！!~～…]+|(?<=[a-z])\.(?=\s|\Z)|(?<=\s)[-–—](?=\s)")
COURTESY = re.compile(
    rf"{YOU}好[呀啊]?|嗨|(?:早上|上午|中午|下午|晚上)好|(?:亲爱|尊敬)的.{{1,8}}|不客气|再见|好的|没问题|不好意思"
    rf"|{VERY}(?:感谢|谢谢){YOU}?的?.{{0,10}}|祝(?:{YOU}|一切|好).{{0,16}}|(?:让|使){YOU}久等了?"
    rf"|{VERY}(?:乐意|高兴|荣幸)能?够?(?:为|帮|回答|解答).{{0,12}}|这是一?个{VERY}(?:好|有趣|不错)的问题"
    rf"|希望(?!工程|小学).{{0,14}}(?:帮助|帮到{YOU}|满意)|(?:如果|若|如)?{YOU}?还?有(?:任何|其[他它]|更多|什么)?.{{0,4}}(?:问题|疑问|需要)"
    rf"|(?:请|欢迎|可以)?{YOU}?(?:随时|再|继续)(?:告诉|联系|咨询|提问|问|告知|向)(?:我们?)?.{{0,8}}"
    rf"|{VERY}(?:抱歉|对不起)[给为]{YOU}?(?:带来|造成)了?.{{0,6}}(?:不便|困扰|麻烦)"
    r"|(?:hi|hello|hey)(?: there)?|dear .{1,20}|good (?:morning|afternoon|evening|day)|sure(?: thing)?|of course"
    r"|(?:many )?thanks?(?: you)?(?: (?:so|very) much)?(?: for .{1,30})?|you're welcome|no problem"
    r"|(?:that's a |what a )?(?:great|good|excellent|interesting) question|(?:i'm |i am )?(?:happy|glad) to help.{0,20}"
    r"|(?:i )?hope (?:this|that|it|these)(?: \w+)? (?:helps?|is (?:helpful|useful)|answers? .{1,20}).{0,12}"
    r"|(?:please )?(?:let me know|feel free|don't hesitate)\b.{0,60}|if you (?:have|need) (?:any|more)\b.{0,50}"
    r"|(?:(?:i am|i'm|we are|we're) )?(?:so |very )?sorry (?:for|about) (?:the |this )?(?:wait|delay|inconvenience)"
)
# Talk about the answer itself.
META_NOUN = r"(?:介绍|总结|回答|信息|内容|方法|步骤|要点|原因|[优缺特]点|建议|说明|列表|概述|答案|分析|情况|方面)"
META = re.compile(
    r"(?:以下|下面|接下来)(?:就|便|我们?|将|来|为您|为你|给您|给你)*(?:是|为|列出|介绍|给出|整理|总结|提供)"
    rf"[^。；]{{0,40}}(?:{META_NOUN}|[:：])|以上(?:就|便)?[是为][^。；]{{0,40}}{META_NOUN}"
    rf"|(?:具体|主要)?{META_NOUN}{{0,2}}(?:如下|有以下|包括以下).{{0,12}}|综上(?:所述)?|总的来说|总之|简而言之|总而言之"
    r"|(?:根据|依据|按照|基于|结合)(?:您|你|以上|上述|所|已|现有|给出|提供|检索|搜索|给定|的|到|参考|相关)*"
    rf"(?:{SOURCE}|问题)(?:可知|来看|显示)?"
    r"|(?:here (?:is|are)|here's|below (?:is|are)|the following (?:is|are|table|list)|this (?:answer|response|summary))"
    r" ?[^.;]{0,60}?(?:summary|overview|list|answer|breakdown|explanation|comparison|points?|steps?|details?"
    r"|information|reasons?|examples?|tips|table|:)[^.;]{0,40}|in (?:summary|short|conclusion)|to sum up|overall"
    rf"|(?:based on|according to) the (?:provided |given |above |available |retrieved |search )?{SOURCE_EN}"
)
# A heading that could stand in any answer.
GENERIC = re.compile(
    r"[总總][结結]|小[结結]|概述|[简簡]介|介[绍紹]|答案|回答|[结結][论論]|背景|[说說]明|[补補]充|注意(?:事[项項])?"
    r"|[参參]考[资資]料|(?:主要|[关關][键鍵]|具体|具體)?(?:内容|內容|信息|要[点點]|步[骤驟]|方法)"
    r"|summary|overview|introduction|conclusion|answer|notes?|references?|sources?|background|details?|steps?"
    r"|key points?|tl;?dr",
    re.IGNORECASE,
)
CODE = re.compile(r"[{};][ \t]*(?:\n|\Z)|\bdef |\breturn\b|\bimport |</|=>|==|\$ ")

QUESTION_END = re.compile(r"(?:[?？]|吗|(?<![什怎那这多要])么|呢)(?P<quoted>[\"'”’」』）)\s]*)\Z")
ANSWERED = re.compile(r"(?:[。！!]|\.\s)\s*\S.{3}")
ASKING = re.compile(r"谁|什么|哪|怎|几(?![乎个])|多少|为何|何时|是否|是不是|有没有|能不能|会不会|还是")
HEDGE = re.compile(
    r"仅供参考|以(?:官|实际|公告|最新|现场|店内)[^，。]{0,12}为准|具体[^，。]{0,12}以[^，。]{2,12}为准|因人而异|视(?:具体|实际|个人)?情况而定"
    r"|我[也还并]?(?:不太?|无法|不能)(?:确定|清楚|知道|了解|保证|确认)|作为(?:一个)?(?:ai|人工智能|语言模型)"
    r"|\A(?:目前|暂时|尚|还|也|但|因此|所以)*(?:无法|不能|难以)(?:确定|确认|判断|得知)(?!性)"
    rf"|{SOURCE}[中里内]?[也并均都尚暂]?(?:没有|未|不|没)[有曾能]?(?:明确|具体|详细|直接)?{MENTION}"
    r"|\bi(?:'m| am) not (?:sure|certain)\b|\bi (?:cannot|can't|could not|couldn't) (?:verify|confirm|guarantee)\b"
    r"|\bi (?:do not|don't) (?:have|know)\b|\bas an? (?:ai|(?:large )?language model)\b|\bfor reference only\b"
    rf"|\bthe (?:\w+ ){{0,2}}{SOURCE_EN}(?: \w+)? {DOES_NOT} (?:\w+ly )?"
    r"(?:mention|contain|provide|specify|include|say|state|give|explain)|\b(?:results|prices?|availability) may vary\b"
)
# What is not known may be followed by what is.
BUT = re.compile(r"(?:但是?|不过|然而|遂|\bbut\b|\bhowever\b).{8,}", re.DOTALL)
START = r"(?:\A|[，,；;：:])\s*(?:因此|所以|但是?|不过|而且|另外|此外|同时|首先|最后|[还也并您你我]|个人|大家)*"
ADVICE = re.compile(
    rf"(?:不建议|不推荐|{START}(?:强烈|一般|通常|更|最|非常|特别|还是)*(?:建议|推荐))(?![书信人性者了过的值]|系统|算法|$)"
    rf"|{START}(?:请(?![求假教客愿])|切勿|切记|务必|不妨|最好(?!的)|尽量|不要(?![求紧])|别(?![的人名墅])|记得|注意(?![力到]))"
    rf"|{YOU}(?:可以|可|应该?|要)?(?:考虑|尝试|试试|注意|选择)|应该?(?:避免|尽量)|值得(?:一[去看试游读]|推荐|尝试|购买)"
    r"|\b(?:i|we)(?:'d| would)? (?:(?:strongly|highly|also) )?(?:recommend|suggest|advise)\b"
    r"|\bit(?:'s| is| would be) (?:(?:strongly|highly|generally) )?(?:recommended|advisable|advised|best|better|wise)\b"
    r"|\byou (?:should|(?:may|might) want to|(?:might|could|can) consider|had better)\b"
    r"|\bworth (?:visiting|a visit|a try|trying|seeing|considering|buying)\b|\A(?:so |then |also |and |but )?"
    r"(?:please|try|make sure|be sure|remember to|avoid|don't|do not|consider|ensure|be careful)\b"
    r"|\b(?:is|are) (?:not )?(?:highly |strongly |generally )?recommended\b(?! by| for| in| to)"
)
ADVISED = re.compile(r"不?(?:建议|推荐)")
# 专家建议… tells what experts say: that is a fact about experts.
ADVISED_BY = re.compile(
    r"(?:专家|医生|律师|官方|厂[家商]|政府|机构|公司|组织|协会|部门|研究|报告|指南|手册|说明书|[他她]们?|[者局部院会署的《]"
    r"|人士|逐级|[a-z]{2})(?:一般|通常|也|还|都|均|曾|强烈|明确|不){0,2}\Z"
)
TASTE = (
    r"(?:好[看吃喝听玩]|漂亮|美丽|美味|可爱|迷人|酷|棒|不错|出色|精彩|优美|动人|有趣|无聊|难[看吃]|糟糕|完美|惊艳|震撼|浪漫"
    r"|温馨|时尚|实用|划算|满意|遗憾|可惜|舒服|感人|优秀|[令让]人.{2,6})"
)
TASTE_EN = (
    r"(?:beautiful|lovely|great|amazing|awesome|wonderful|nice|fantastic|excellent|terrible|awful|delicious|charming|stunning"
    r"|impressive|fun|boring|cute|cool|perfect|brilliant|superb|disappointing|fascinating|horrible|ugly|tasty|remarkable)"
)
OPINION = re.compile(
    r"我(?:个人|们|也|还|很|真的|其实|一直)*(?:觉得|认为|感觉|相信|喜欢|猜)|个人(?:认为|觉得|看来)|在我看来|毫无疑问"
    r"|(?:可以?|能)用.{1,30}来?(?:形容|概括)|堪称|可谓|不愧[是为]|太[美好棒酷赞]了"
    rf"|(?:很|非常|十分|特别|相当|极其|真的?|挺|比较|最|更|都|还)是?{TASTE}[的了呢啊]*(?:\Z|[，,！!。])"
    rf"|是(?:一?[个种部款座本])?{VERY}{TASTE}的(?:\w{{1,4}})?\Z|[令让]人(?:印象深刻|惊叹|难忘|感动|赞叹|眼前一亮)"
    r"|(?:\A|, |\band |\bbut )i (?:\w+ly )?(?:think|believe|feel|find|love|like|enjoy|prefer|guess)\b"
    r"|\bpersonally\b|\barguably\b|\bin my (?:\w+ )?(?:opinion|view|experience)\b|\bmust-(?:see|try|have|read)\b"
    r"|\b(?:is|are|was|were|looks?|feels?|sounds?|tastes?|'s)(?: (?:really|very|so|quite|absolutely|truly|simply|just"
    rf"|also|an?|the|most))* {TASTE_EN}\b(?!-)[^,;]{{0,24}}\Z"
)
QUOTED = re.compile(r"[“\"「『][^“”\"「」『』]*[”\"」』]")
REPORTED = re.compile(
    r"\A(?!我)[^，,:：]{1,30}(?:表示|强调|指出|认为|呼吁|称|说|介绍|宣布|规定|提出)道?[，,:：]"
    r"|\A(?!i |we )[^,:]{1,60}\b(?:said|says|stated|argued|claims|claimed|according to)\b"
)


def kind_of(text: str, question: str = "") -> Kind:
    """What the text is. `question` is there for judges that need it; these rules read the text alone."""
    if "\n" in text and CODE.search(text, text.index("\n")):
        return "meta"
    said = plain(text)
    bare = said.strip(EDGE)
    if not bare:
        return "meta"
    if (asked := QUESTION_END.search(said)) and _asks(said, asked["quoted"]):
        return "question"
    pieces = [piece.strip(EDGE) for piece in PIECE.split(bare) if LETTER_OR_DIGIT.search(piece)]
    if pieces and all(COURTESY.fullmatch(piece) for piece in pieces):
        return "greeting"
    if GENERIC.fullmatch(bare) or META.fullmatch(bare) or META.fullmatch(said):
        return "meta"
    if opening_yes_or_no(said) is not None:
        return "claim"
    # What is quoted or reported is somebody else's view: that they hold it is a fact.
    own = QUOTED.sub("“”", said).strip(" 。.！!")
    own = own if LETTER_OR_DIGIT.search(own) else bare
    if REPORTED.match(own):
        return "claim"
    if (hedge := HEDGE.search(own)) and not BUT.search(own, hedge.end()):
        return "hedge"
    if _advises(own):
        return "advice"
    return "opinion" if OPINION.search(own) else "claim"


def _asks(said: str, closing: str) -> bool:
    """Whether the question at the end is the whole of it: not the last of several sentences, not a quotation's."""
    if (closing.strip(" )）") and said[0] not in "\"'“‘「『") or ANSWERED.search(said):
        return False
    # 正剥虾呢 says what goes on; 你呢 and 放哪儿呢 ask.
    return not said.rstrip(EDGE).endswith("呢") or len(said) < 6 or bool(ASKING.search(said))


def _advises(said: str) -> bool:
    """Advice to the reader; what others advise is a claim about them."""
    for advice in ADVICE.finditer(said):
        word = ADVISED.search(said, advice.start(), advice.end())
        if word is None or not ADVISED_BY.search(said, max(0, word.start() - 12), word.start()):
            return True
    return False


# --- declining -----------------------------------------------------------------------------------------

LONGEST_FALLBACK = 2400
APOLOGY = re.compile(
    rf"{VERY}(?:抱歉|对不起|遗憾|不好意思|sorry)(?:的是|地)?|请{YOU}?(?:谅解|见谅|理解)|unfortunately|regrettably"
    r"|(?:i'm |i am |we're |my )?(?:very |so |really |sincere )?(?:sorry|afraid|apologies|apologi[sz]e)"
)
# Possessive: 这个问题 is one word or two, and a long run of it would be read in exponentially many ways.
ASKED = (
    r"(?:(?:[这此本]题|这个?|此|该|您(?:的|问的)?|你(?:的|问的)?|对于?|关于|针对|目前|现在|暂时|具体|问题|情况|内容|方面)*+"
    r"(?:我们?|本人|本?系统|小[\u4e00-\u9fff]{1,2}|ai)?(?:也|还|暂时|目前|真的?|并|实在|确实|暂|尚|仍|恐怕|可能|对此|是)*+)"
)
DOES = r"(?:回答|提供|支持|满足|完成|协助|帮助|给出|解答|查询|获取|判断|确定|确认|理解|答复|回[复覆]|告知|讨论|透露)"
REFUSAL = re.compile(
    rf"{ASKED}(?:不(?:太|是很|大)?(?:知道|清楚|了解|确定|明白|懂)|(?:无法|不能|没有?办法|没法|不便|难以)[^，。]{{0,20}}?{DOES}"
    r"|[还仍正]?在?(?:努力)?学习(?:中|当中)?[哦呢啦呀]*(?:\Z|[，,。])|还没有?学会|帮不[了到上]|无可奉告|无能为力"
    rf"|(?:没有|未)(?:明确|具体|直接)?{MENTION}|(?:没有?|未)能?(?:找|查|搜|查询|搜索|检索)到|超出了?.{{0,12}}(?:范围|能力)"
    rf"|没有(?:更多|具体|任何|这方面).{{0,24}}(?:{SOURCE}|数据|答案)|暂?无(?:相关|法)?.{{0,6}}(?:{SOURCE}|数据|答案))"
    rf"|.{{0,24}}{SOURCE}[中里内]?[也并均都尚暂]?(?:没有|未|不|没)[有曾能被]?(?:明确|具体|详细|直接|任何)?被?{MENTION}.{{0,30}}"
)
REFUSAL_EN = re.compile(
    rf"\b(?:i|we) (?:\w+ )?(?:{DOES_NOT}|cannot|can't|could not|couldn't|(?:am|are|was) (?:un|not )able to)"
    r" (?:\w+ly )?(?:know|have|find|answer|help|provide|determine|assist|tell|say|access|verify|confirm|give|discuss)\b"
    r"|\b(?:not (?:sure|certain|familiar|aware)|unsure|still learning|(?:i|we) have no (?:idea|information|data))\b"
    r"|\b(?:no(?! longer)|not enough|insufficient) (?:\w+ ){0,3}(?:information|data|details?|mention|answer|evidence)\b"
    r"(?: (?:is|was|are|were|available|found|provided|about|of|on|in|to|for)\b|\Z)"
    rf"|\b(?:the|these|this|your|any) (?:\w+ ){{0,3}}{SOURCE_EN}(?: \w+){{0,2}} (?:{DOES_NOT}|is not|are not|lacks?)\b"
    r"|\bunable to (?:answer|help|find|provide|determine)\b|\b(?:beyond|outside) (?:my|the) (?:scope|knowledge)\b"
    r"|\bcan(?:not|'t) be (?:\w+ )?(?:determined|answered|found|provided)\b|\b(?:unclear|impossible) (?:to say|from)\b"
    r"|\b(?:is|was|are|were) not (?:\w+ly )?(?:mentioned|specified|provided|stated|given|available|found)"
    rf" in (?:the|any|these) (?:\w+ ){{0,2}}{SOURCE_EN}\b"
)
# What people say around a refusal: who else may know, what comes next.
ELSEWHERE = re.compile(
    r"(?:建议|请|可以|推荐|欢迎|不妨|需要|或者?|也|并|您|你|如需|想了解|为了|以便|以获取?|获取|了解).{0,24}"
    r"(?:咨询|联系|查[阅看询]|访问|参考|前往|换|提供|重新|稍后|询问|官[方网]|客服|搜索|进一步|更多|准确|详细|最新|补充)"
    r"|我[会将].{0,8}(?:努力|继续|尽快|不断|记录|反馈|学习).{0,16}|(?:如果|若|如)(?:您|你).{0,30}"
    r"|我(?:可以|很?乐意|愿意).{0,6}[帮为]|(?:you (?:may|might|can|could|should)|please|try|i (?:recommend|suggest))"
    r".{0,50}\b(?:check|consult|contact|visit|refer|look|ask|reach|search|rephras|provide|clarif|more|again|website)"
    r"|(?:if you|for (?:more|further|details)|(?:could|would) you|i(?:'d| would| can) (?:be )?(?:happy|glad|help))\b"
)
# Why, and about what: neither says anything without the refusal that it belongs to.
OPENING = re.compile(
    r"作为|因为|由于|鉴于|关于|对于|至于|针对|根据|基于|目前|截至|您[提问所]|你问|在[我提给现]|从[提现]|我只?是|我的|本人"
    r"|(?:as an?|based on|according to|given|regarding|as for|from the|in the|with the|since|because) "
    r"|(?:therefore|thus|hence|consequently|as such|in this case|at this time|currently|so|此外|因此|所以|总之)\Z"
)
TURN = re.compile(r"[，,；;]\s*|\s(?=but\s|however\b|although\s|though\s)|\s[-–—]\s")
# What comes after one of these is said in spite of what came before.
IN_SPITE = re.compile(r"(?:但是?|不过|然而|可是|(?:but|however|although|though|yet)\b)\s*")
LEADS = re.compile(r"(?:虽然|尽管|因此|所以|而且|并且|(?:and|so|therefore|that)\s)(?=\S)")


def is_fallback(answer: str, question: str = "") -> bool:
    """Whether the answer as a whole declines. An apology or a gap that is followed by a real answer does not count."""
    if len(answer) > LONGEST_FALLBACK:
        return False
    said = [_said(sentence) for sentence in sentences(answer)]
    return "declines" in said and "answers" not in said


def _said(sentence: str) -> Literal["declines", "answers", "nothing"]:
    """What a sentence does: declines, says something of substance, or neither (courtesy, where else to look)."""
    if kind_of(sentence) in ("question", "greeting", "meta"):
        return "nothing"
    turned = [part.strip(EDGE) for part in TURN.split(plain(sentence)) if LETTER_OR_DIGIT.search(part)]
    parts = [(LEADS.sub("", IN_SPITE.sub("", part, count=1), count=1), IN_SPITE.match(part)) for part in turned]
    refuses = any(_refuses(part) for part, _ in parts)
    declines = began = False
    for part, in_spite in parts:
        if _refuses(part):
            declines = began = True
        elif APOLOGY.fullmatch(part):
            declines = True
        elif COURTESY.fullmatch(part) or META.fullmatch(part) or ELSEWHERE.match(part):
            began = True
        elif not (refuses and OPENING.match(part)) and not (began and _goes_on(part, in_spite is not None)):
            return "answers"
    return "declines" if declines else "nothing"


def _refuses(part: str) -> bool:
    return bool(REFUSAL.match(part) if HAN.search(part) else REFUSAL_EN.search(part))


def _goes_on(part: str, in_spite: bool) -> bool:
    """Whether a piece only continues the one before it: …, NY. After a "but" three words say something of their own."""
    if in_spite and (HAN.search(part) or len(part.split()) > 2):
        return False
    return not states(part)


# --- yes and no ------------------------------------------------------------------------------------------

YES = r"(?:(?:是|对|可以|能|会|需?要|有)的?|行|嗯|当然(?:可以|能|会|有)?|没问题|yes|yep|yeah|sure|of course|certainly)"
NO = r"(?:不(?:可以|能|会|要|用|需要|必|行|是)?|没有?|否|no|nope|not at all)"
YES_OR_NO = re.compile(rf"(?:(?P<yes>{YES})|{NO})(?=[，,。！!;；]|\.(?!\s?\d)|\s*\Z)")


def opening_yes_or_no(text: str) -> bool | None:
    """Whether a text opens with a yes (True) or a no (False): 可以，…; "No, only in cash"."""
    found = YES_OR_NO.match(plain(text))
    return None if found is None else found["yes"] is not None


def yes_or_no(text: str) -> bool | None:
    """True for a bare yes, False for a bare no, None for anything that says more."""
    bare = plain(text).strip(EDGE)
    return opening_yes_or_no(bare) if YES_OR_NO.fullmatch(bare) else None


# --- what everybody grants -------------------------------------------------------------------------

COMMONPLACE = re.compile(
    r"重要|关键|必不可少|不可或缺|不可忽视|离不开|有助于|有利于|息息相关|密切相关|至关|值得(?:注意|重视)"
    r"|\b(?:important|essential|crucial|vital|matters?|key (?:to|part|role|factor)|plays? an? \w+ role|worth)\b"
)


def is_commonplace(text: str) -> bool:
    """Whether a statement says that something matters, helps or wants care."""
    return bool(COMMONPLACE.search(plain(text)))
