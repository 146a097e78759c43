"""What kind of saying a statement is, whether an answer declines, and a bare yes or no.

Precision first: what is not clearly an opinion, advice or courtesy is a claim, and claims are checked. Phrases are
written in Simplified characters and lower case, and matched against text folded to both.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal

from steelyard.judges.embedded.clauses import STATES, STATES_EN
from steelyard.text import HAN, LETTER_OR_DIGIT, fold, in_simplified, sentences

Kind = Literal["claim", "advice", "opinion", "hedge", "greeting", "meta", "question"]

APOSTROPHE = str.maketrans("’", "'")
EDGE = " \t\n\u3000\"'“”‘’「」『』*_()（）.。,，!！~～:：😊🙂😀👋"


@lru_cache(maxsize=2048)
def plain(text: str) -> str:
    """Text folded for matching: half width, lower case, Simplified characters."""
    return in_simplified(fold(text)).casefold().translate(APOSTROPHE).strip()


# --- courtesies: every piece of the text must be one -------------------------------------------------

PIECE = re.compile(r"[，,；;。！!~～…]+|(?<=[a-z])\.(?=\s|\Z)|(?<=\s)[-–—](?=\s)")
COURTESY = re.compile(
    r"(?:您|你|大家|各位)们?好[呀啊]?|哈[喽啰]|嗨|(?:早上|上午|中午|下午|晚上)好|[早晚]安|(?:亲爱|尊敬)的.{1,8}|(?:非常"
    r"|十分|很)?(?:感谢|谢谢)(?:您|你)?的?.{0,10}|不客气|不用谢|再见|好的|没问题|不好意思|(?:让|使)(?:您|你)久等了?"
    r"|(?:非常|很)?(?:乐意|高兴|荣幸)能?够?(?:为|帮|回答|解答).{0,12}|祝(?:您|你|大家|一切|好).{0,16}|希望(?!工程|小学"
    r"|学校).{0,14}(?:帮助|帮到(?:您|你)|满意|喜欢)|(?:如果|若|如|要是)?(?:您|你)?[还仍]?有(?:任何|其他|其它|更多|什么"
    r"|别的)?.{0,4}(?:问题|疑问|需要|需求)(?:的话)?|(?:请|欢迎|可以)?(?:您|你)?(?:随时|再|继续)(?:告诉|联系|咨询|提问"
    r"|问|告知|向)(?:我们?)?.{0,8}|这是一?个(?:很|非常)?(?:好|棒|有趣|不错)的问题|(?:非常|很|十分|实在)?(?:抱歉"
    r"|对不起)[给为](?:您|你|大家)?(?:带来|造成)了?.{0,6}(?:不便|困扰|麻烦)|(?:hi|hello|hey)(?: there)?|dear .{1,20}"
    r"|good (?:morning|afternoon|evening|day)|(?:many )?thanks?(?: you)?(?: (?:so|very) much)?(?: for .{1,30})?"
    r"|you're welcome|sure(?: thing)?|of course|no problem|(?:that's a |what a )?(?:great|good|excellent"
    r"|interesting) question|(?:i )?hope (?:this|that|it|these)(?: \w+)? (?:helps?|is (?:helpful|useful)"
    r"|answers? .{1,20}).{0,12}|(?:please )?(?:let me know|feel free|don't hesitate)\b.{0,60}|if you (?:have"
    r"|need) (?:any|more|further|other)\b.{0,50}|(?:i'm |i am )?(?:happy|glad|here) to help.{0,20}|have a (?:nice|great"
    r"|good) \w{1,10}|best (?:regards|wishes)|(?:(?:i am|i'm|we are|we're) )?(?:so |very )?sorry (?:for|about) (?:the "
    r"|this |any |your )?(?:long )?(?:wait|delay|inconvenience|confusion|trouble)|(?:i|we) apologi[sz]e for (?:the|this"
    r"|any) .{1,30}"
)

# --- talk about the answer itself --------------------------------------------------------------------

META_NOUN = r"(?:介绍|总结|回答|信息|内容|方法|步骤|要点|原因|[优缺特]点|建议|说明|列表|例子|概述|答案|解释|分析|对比|推荐|情况|方面)"
META = re.compile(
    rf"(?:以下|下面|接下来)(?:就|便|我们?|将|来|为您|为你|给您|给你)*(?:是|为|列出|介绍|给出|整理|总结"
    rf"|提供)[^。；]{{0,40}}(?:{META_NOUN}|[:：])|以上(?:就|便)?[是为][^。；]{{0,40}}{META_NOUN}"
    rf"|{META_NOUN}{{0,2}}具?体?{META_NOUN}?(?:如下|有以下|包括以下).{{0,12}}"
    r"|(?:根据|依据|按照|基于|结合)(?:您|你|以上|上述|所|已|现有|给出|提供|检索|搜索|给定|的|到|参考|相关)*(?:资料|信息"
    r"|内容|文档|材料|背景|上下文|结果|问题)(?:可知|来看|显示)?|(?:综上|总的来说|总之|简而言之|综上所述|总而言之)"
    r"|(?:here (?:is|are|'s)|here's|below (?:is|are)|the following (?:is|are|section|table|list)|this (?:answer"
    r"|response|summary)) ?[^.;]{0,60}?(?:summary|overview|list|answer|breakdown|explanation|comparison|points?|steps?"
    r"|details?|information|reasons?|examples?|tips|options|table|:)[^.;]{0,40}|in (?:summary|short|conclusion)"
    r"|to sum(?:marize| up)|overall|(?:based on|according to) the (?:provided |given |above |available "
    r"|retrieved )?(?:information|context|passages?|documents?|references?|text|sources?|search results?)"
)
CODE = re.compile(r"\n.*(?:[{};]\s*(?:\n|\Z)|\bdef |\breturn\b|\bimport |</|=>|==|\$ )", re.DOTALL)

# --- questions, hedges, advice, opinions ---------------------------------------------------------------

QUESTION_END = re.compile(r"(?:[?？]|吗|(?<![什怎那这多要])么|呢)(?P<quoted>[\"'”’」』）)\s]*)\Z")
ANSWERED = re.compile(r"[。.!！]\s*\S.{3,}[?？]")
ASKING = re.compile(r"谁|什么|哪|怎|几(?![乎个])|多少|为何|何时|是否|是不是|有没有|能不能|会不会|还是")
SHORTEST_STORY = 5
HEDGE = re.compile(
    r"仅供参考|以(?!.{0,16}[和与])[^，。]{2,16}为准|因人而异|视(?:具体|实际|个人)?情况而定|我[也还并]?(?:不太?|无法"
    r"|不能)(?:确定|清楚|知道|了解|保证|确认)|\A(?:目前|暂时|尚|还|也|但|因此|所以)*(?:无法|不能|难以)(?:确定|确认|判断"
    r"|得知)(?!性)|(?:资料|文档|文中|信息|内容|上下文|背景|知识库|结果)[中里内]?[也并均都尚暂]?(?:没有|未|不"
    r"|没)[有曾能]?(?:明确|具体|详细|直接)?(?:提及|提到|提供|包含|涉及|说明|给出|指出|显示|记载)|作为(?:一个"
    r"|一名)?(?:ai|人工智能|语言模型|大模型)|\bi(?:'m| am) not (?:sure|certain)\b|\bi (?:cannot|can't|could not"
    r"|couldn't) (?:verify|confirm|guarantee)\b|\bfor reference only\b|\bas an? (?:ai|language model"
    r"|large language model)\b|\bi (?:do not|don't) (?:have|know)\b|\bthe (?:\w+ ){0,2}(?:context|passages?|documents?"
    r"|references?|text|sources?|information|article)(?: \w+)? (?:do(?:es)? not|don't|doesn't|did not"
    r"|didn't) (?:\w+ly )?(?:mention|contain|provide|specify|include|say|state|give|explain)|\b(?:results|prices?"
    r"|experiences?|availability) may vary\b"
)
# What is not known may be followed by what is.
BUT = re.compile(r"(?:但是?|不过|然而|遂|\bbut\b|\bhowever\b).{8,}", re.DOTALL)
START = r"(?:\A|[，,；;：:])\s*(?:因此|所以|那么|但是?|不过|而且|另外|此外|同时|首先|其次|最后|还|也|并|我们?|个人|您|你|大家)*"
ADVICE = re.compile(
    rf"(?:不建议|不推荐|{START}(?:强烈|一般|通常|更|最|非常|特别|还是)*(?:建议|推荐))(?!书|信|人|性|者|了|过|的|系统"
    rf"|算法|值|$)|{START}(?:请(?![求假教客愿])|切勿|切记|务必|不妨|最好(?!的)|尽量|不要(?!求)|别(?![的人名墅])"
    rf"|可以考虑|可以尝试|记得|注意(?![力到]))"
    r"|(?:您|你|大家)[也还]?(?:可以|可|应该?|需要?|要)?(?:考虑|尝试|试试|注意|选择)|值得(?:一[去看试游读]|推荐|尝试"
    r"|拥有|购买)|应该?(?:避免|尽量)|\b(?:i|we)(?:'d| would)? (?:(?:strongly|highly|also) )?(?:recommend|suggest"
    r"|advise)\b|\bit(?:'s| is| would be) (?:(?:strongly|highly|generally|usually) )?(?:recommended|advisable|advised"
    r"|best|better|wise|a good idea)\b|\byou (?:should|(?:may|might) want to|(?:might|could|can) consider|(?:could"
    r"|can) try|had better)\b|\bworth (?:visiting|a visit|a try|trying|seeing|considering|buying)\b|\A(?:so |then "
    r"|also |and |but )?(?:please|try|make sure|be sure|remember to|avoid|don't|do not|never|consider|ensure"
    r"|be careful)\b|\b(?:is|are) (?:not )?(?:highly |strongly |generally )?recommended\b(?! by| for| in| to)"
)
# 专家建议… tells what experts say: that is a fact about experts.
ADVISED_BY = re.compile(
    r"(?:专家|医生|律师|官方|厂[家商]|政府|机构|公司|组织|协会|部门|教授|研究|报告|指南|手册|说明书|[他她]们?"
    r"|[者局部院会署的《]|人士|逐级|[a-z]{2,})(?:一般|通常|也|还|都|均|曾|强烈|明确|均?不)*\Z"
)
TASTE = (
    r"(?:好看|漂亮|美丽|美味|好[吃喝听玩]|可爱|迷人|酷|棒|不错|出色|精彩|优美|动人|有趣|无聊|难[看吃]|糟糕|完美|惊艳"
    r"|震撼|浪漫|温馨|时尚|大气|实用|划算|满意|遗憾|可惜|舒服|惬意|感人|优秀|[令让]人.{2,6})"
)
OPINION = re.compile(
    r"我(?:个人|们|也|还|很|真的|其实|一直)*(?:觉得|认为|感觉|相信|喜欢|猜)|个人(?:认为|觉得|看来)|在我看来|(?:可以?"
    r"|能)用.{1,30}来?(?:形容|概括)|堪称|可谓|不愧[是为]|毫无疑问|太.{1,4}了(?:\Z|[，,！!])"
    rf"|(?:很|非常|十分|特别|相当|极其|真的?|挺|比较|最|更|都|还)是?{TASTE}[的了呢啊]*(?:\Z|[，,！!。])"
    rf"|是(?:一?[个种部款座本])?(?:很|非常|十分|相当)?{TASTE}的(?:\w{{1,4}})?\Z|[令让]人(?:印象深刻|惊叹|难忘|感动|赞叹"
    rf"|陶醉|眼前一亮)"
    r"|\bi (?:\w+ly )?(?:think|believe|feel|find|love|like|enjoy|prefer|guess)\b|\bin my (?:\w+ )?(?:opinion|view"
    r"|experience)\b|\bpersonally\b|\barguably\b|\b(?:is|are|was|were|looks?|feels?|sounds?|tastes?|'s)(?: (?:really"
    r"|very|so|quite|absolutely|truly|simply|just|also|an?|the|most))* (?:beautiful|lovely|great|amazing|awesome"
    r"|wonderful|nice|fantastic|excellent|terrible|awful|delicious|charming|stunning|gorgeous|impressive|fun|boring"
    r"|cute|cool|perfect|incredible|brilliant|superb|delightful|disappointing|fascinating|breathtaking|magnificent"
    r"|horrible|ugly|tasty|enjoyable|remarkable|outstanding|unforgettable)\b[^,;]{0,24}\Z|\bmust-(?:see|try|have"
    r"|read)\b"
)
QUOTED = re.compile(r"[“\"「『][^“”\"「」『』]*[”\"」』]")
REPORTED = re.compile(
    r"\A(?!我)[^，,:：]{1,30}(?:表示|强调|指出|认为|呼吁|称|说|介绍|宣布|规定|提出)道?[，,:：]|\A(?!i "
    r"|we )[^,:]{1,60}\b(?:said|says|stated|argued|claims|claimed|according to)\b"
)


def kind_of(text: str, question: str = "") -> Kind:
    """What the text is. `question` is there for judges that need it; these rules read the text alone."""
    if CODE.search(text):
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
    if META.fullmatch(bare) or META.fullmatch(said):
        return "meta"
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
    is_quotation = bool(closing.strip(" )）")) and said[0] not in "\"'“‘「『"
    if is_quotation or ANSWERED.search(said):
        return False
    # 正剥虾呢 says what goes on; 你呢 and 放哪儿呢 ask.
    return not said.rstrip(EDGE).endswith("呢") or len(said) <= SHORTEST_STORY or bool(ASKING.search(said))


def _advises(said: str) -> bool:
    """Advice to the reader; what others advise is a claim about them."""
    for advice in ADVICE.finditer(said):
        word = re.search(r"不?(?:建议|推荐)", advice.group())
        if word is None or not ADVISED_BY.search(said, 0, advice.start() + word.start()):
            return True
    return False


# --- declining -----------------------------------------------------------------------------------------

LONGEST_FALLBACK = 2400
SHORTEST_OF_ITS_OWN = 3
APOLOGY = re.compile(
    r"(?:非常|很|十分|真的?|实在)?(?:抱歉|对不起|遗憾|不好意思|sorry)(?:的是|地)?|请(?:您|你)?(?:谅解|见谅|理解)"
    r"|敬请.{0,4}|(?:i'm |i am |we're |my )?(?:very |so |really |sincere )?(?:sorry|afraid|apologies|apologi[sz]e)"
    r"|i apologi[sz]e\b.{0,40}|unfortunately|regrettably"
)
SOURCE = r"(?:资料|参考|文档|文中|文本|信息|内容|上下文|背景|知识库|文章|结果|材料|片段)"
SOURCE_EN = r"(?:context|passages?|documents?|references?|text|sources?|information|articles?|results|excerpts?|content|materials?)"
# Possessive: 这个问题 is one word or two, and a long run of it would be read in exponentially many ways.
ASKED = (
    r"(?:(?:[这此本]题|这个?|此|该|您(?:的|问的)?|你(?:的|问的)?|对于?|关于|针对|抱歉|不过|但是?|目前|现在|暂时|当前"
    r"|因此|所以|上述|具体|问题|情况|内容|方面)*+(?:我们?|本人|本?系统|小[\u4e00-\u9fff]{1,2}|ai)?(?:也|还|暂时|目前"
    r"|真的?|并|实在|确实|现在|暂|尚|仍|恐怕|可能|对此|是)*+)"
)
DOES = r"(?:回答|提供|支持|满足|完成|处理|协助|帮助|给出|解答|查询|获取|判断|确定|确认|理解|答复|回复|回覆|告知|作答|服务|讨论|评价|透露)"
REFUSAL = re.compile(
    rf"{ASKED}(?:不(?:太|是很|大)?(?:知道|清楚|了解|确定|明白|懂)|(?:无法|不能|没有?办法|没法|不便"
    rf"|难以)[^，。]{{0,20}}?{DOES}"
    r"|[还仍正]?在?(?:努力)?学习(?:中|当中)?[哦呢啦呀]*(?:\Z|[，,。])|还没有?学会|(?:没有|未)(?:明确|具体|直接)?(?:提到"
    r"|提及|说明|给出|涉及|包含)|帮不[了到上]|无可奉告|无能为力|(?:没有?|未)能?(?:找|查|搜|查询|搜索|检索)到"
    r"|没有(?:关于|有关|相关|足够|更多|具体|任何|这方面).{0,24}(?:信息|资料|数据|内容|答案|记录)|暂?无(?:相关"
    r"|法)?.{0,6}(?:信息|资料|数据|答案)|超出了?.{0,12}(?:范围|能力))"
    rf"|.{{0,24}}{SOURCE}[中里内]?[也并均都尚暂]?(?:没有|未|不|没)[有曾能被]?(?:明确|具体|详细|直接|任何)?被?"
    r"(?:提及|提到|提供|包含|涉及|说明|给出|指出|显示|记载|找到|关于|相关|足够|介绍|足以).{0,30}|(?:这|该|此)个?(?:问题"
    r"|话题)?已?(?:超出|不在).{0,14}(?:范围|能力).{0,6}|暂?(?:不|无法|不能)支持(?:该|此|这个?|您的?)?(?:功能|操作|问题"
    r"|查询|请求|服务)?"
)
REFUSAL_EN = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)? ?(?:really |currently |still |also )?(?:do not|don't|did not|didn't|cannot|can't"
    r"|can not|could not|couldn't|won't|unable|not able|not sure|not certain|unsure|not familiar|not aware|have no"
    r"|am not|was unable|lack)\b(?! (?:think|believe|only))|\b(?:still|currently) learning\b|\b(?:no|not enough"
    r"|insufficient) (?:\w+ ){0,3}(?:information|data|details?|mention|answer|evidence|context)\b"
    rf"(?: (?:is|was|are|were|available|found|provided|about|of|on|in|to|for)\b|\Z)|\b(?:the|these|this|your"
    rf"|any) (?:\w+ ){{0,3}}{SOURCE_EN}(?: \w+){{0,2}}"
    r" (?:do(?:es)? not|don't|doesn't|did not|didn't|is not|isn't|are not|lacks?)\b|\bunable to (?:answer|help|find"
    r"|provide|determine|assist|say)\b|\b(?:beyond|outside) (?:my|the) (?:\w+ )?(?:scope|knowledge|capabilit\w+"
    r"|expertise)\b|\b(?:it is|it's|is) (?:not possible|impossible|unclear|unknown) (?:to (?:determine|say|tell|answer"
    r"|know)|from|based)\b|\bcan(?:not|'t) be (?:\w+ )?(?:determined|answered|found|verified|provided|given)\b"
    rf"|\b(?:is|was|are|were) not (?:\w+ly )?(?:mentioned|specified|provided|stated|given|available|found) in (?:the"
    rf"|any|these) (?:\w+ ){{0,2}}{SOURCE_EN}\b"
)
# What people say around a refusal: who else may know, what comes next.
ELSEWHERE = re.compile(
    r"(?:建议|请|可以|推荐|欢迎|不妨|需要|麻烦|或者?|也|并|您|你|如需|想了解|为了|以便|以获取?|获取|了解).{0,24}(?:咨询"
    r"|联系|查阅|查看|查询|访问|参考|拨打|前往|登录|关注|换|提供|重新|稍后|询问|官方|官网|客服|搜索|进一步|更多|准确"
    r"|详细|最新|补充)|我[会将].{0,8}(?:努力|继续|尽快|不断|记录|反馈|学习).{0,16}|(?:如果|若|如)(?:您|你).{0,30}"
    r"|我(?:可以|能|很?乐意|愿意).{0,6}[帮为].{0,20}|(?:(?:therefore|thus|so|and|or) )?(?:you (?:may|might|can|could"
    r"|should|would)|please|try|consider|feel free|i (?:recommend|suggest|would recommend)).{0,50}\b(?:check|consult"
    r"|contact|visit|refer|look|ask|reach|search|seek|call|review|rephras|provide|clarif|more|further|again|website"
    r"|support)\w*.{0,120}|(?:if you|for (?:more|further|accurate|specific|the latest|details)).{0,120}|(?:could|can"
    r"|would) you .{0,80}|i(?:'d| would| can|'ll| will) (?:be )?(?:happy|glad|try|help|need).{0,80}"
)
# Why, and about what: neither says anything without the refusal that it belongs to.
OPENING = re.compile(
    r"(?:作为|因为|由于|鉴于|关于|对于|至于|针对|根据|基于|目前|截至|您[提问所]|你问|在[我提给现]|从[提现]|我只?是|我的"
    r"|我目前|本人).{0,40}|(?:as an? |based on |according to |given |regarding |as for |from the |in the |with the "
    r"|since |because ).{0,100}|(?:therefore|thus|hence|consequently|as such|in this case|at this time|currently|so"
    r"|此外|因此|所以|总之)\Z"
)
TURN = re.compile(r"[，,；;]\s*|\s(?=but\s|however\b|although\s|though\s)|\s[-–—]\s")
# What comes after one of these is said in spite of what came before.
IN_SPITE = re.compile(r"(?:但是?|不过|然而|可是|(?:but|however|although|though|yet)\b)\s*")
LEADS = re.compile(r"(?:虽然|尽管|因此|所以|而且|并且|(?:and|so|therefore|that)\s)(?=\S)")


def is_fallback(answer: str, question: str = "") -> bool:
    """Whether the answer as a whole declines. An apology or a gap that is followed by a real answer does not count."""
    if len(answer) > LONGEST_FALLBACK:
        return False
    declines = False
    for sentence in sentences(answer):
        match _said(sentence):
            case "answers":
                return False
            case "declines":
                declines = True
    return declines


def _said(sentence: str) -> Literal["declines", "answers", "nothing"]:
    """What a sentence does: declines, says something of substance, or neither (courtesy, where else to look)."""
    if kind_of(sentence) in ("question", "greeting", "meta"):
        return "nothing"
    parts = [part.strip(EDGE) for part in TURN.split(plain(sentence))]
    parts = [part for part in parts if LETTER_OR_DIGIT.search(part)]
    in_spite = [bool(IN_SPITE.match(part)) for part in parts]
    parts = [LEADS.sub("", IN_SPITE.sub("", part, count=1), count=1) for part in parts]
    refuses = any(map(_refuses, parts))
    declines = began = False
    for part, is_own in zip(parts, in_spite, strict=True):
        if _refuses(part):
            declines = began = True
        elif APOLOGY.fullmatch(part):
            declines = True
        elif COURTESY.fullmatch(part) or META.fullmatch(part) or ELSEWHERE.match(part):
            began = True
        elif not (refuses and OPENING.match(part)) and not (began and _goes_on(part, is_own)):
            return "answers"
    return "declines" if declines else "nothing"


def _refuses(part: str) -> bool:
    return bool(REFUSAL.match(part) if HAN.search(part) else REFUSAL_EN.search(part))


def _goes_on(part: str, is_own: bool) -> bool:
    """Whether a piece only continues the one before it: …, NY. After a "but" three words say something of their own."""
    if is_own and (HAN.search(part) or len(part.split()) >= SHORTEST_OF_ITS_OWN):
        return False
    return not (STATES.search(part) if HAN.search(part) else STATES_EN.search(part))


# --- yes and no ------------------------------------------------------------------------------------------

YES = r"(?:是的?|对的?|可以的?|能的?|会的?|要的?|需要的?|有的?|行|当然(?:可以|能|会|有)?|没问题|嗯|yes|yep|yeah|sure|of course|certainly|absolutely)"
NO = r"(?:不(?:可以|能|会|要|用|需要|必|行|是)?|没有?|否|no|nope|not at all)"
OUTRIGHT = re.compile(rf"(?:(?P<yes>{YES})|{NO})(?=[，,。.！!;；]|\s*\Z)")


def outright(text: str) -> bool | None:
    """Whether a text opens with a yes (True) or a no (False): 可以，…; "No, only in cash"."""
    found = OUTRIGHT.match(plain(text))
    return found["yes"] is not None if found else None


def is_yes(text: str) -> bool | None:
    """True for a bare yes, False for a bare no, None for anything that says more."""
    found = OUTRIGHT.fullmatch(plain(text).strip(EDGE))
    return found["yes"] is not None if found else None


# --- what everybody grants -------------------------------------------------------------------------

COMMONPLACE = re.compile(
    r"重要|关键|必不可少|不可或缺|不可忽视|离不开|有助于|有利于|息息相关|密切相关|至关|值得(?:注意|重视)"
    r"|\b(?:important|essential|crucial|vital|matters?|key (?:to|part|role|factor)|plays? an? \w+ (?:role|part)|worth)\b"
)


def is_commonplace(text: str) -> bool:
    """Whether a statement says that something matters, helps or wants care."""
    return bool(COMMONPLACE.search(plain(text)))
