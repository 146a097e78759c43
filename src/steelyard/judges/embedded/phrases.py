"""Phrases that show what a statement is: courtesy, talk about the answer, reservation, advice, opinion, refusal.

Written in Simplified characters and lower case, and matched against text folded to both.
"""

from __future__ import annotations

import re

# --- courtesies: every piece of the text must be one ----------------------------------------------

COURTESY = re.compile(
    r"(?:您|你|大家|各位)(?:们)?好(?:呀|啊)?|哈[喽啰]|嗨|(?:早上|上午|中午|下午|晚上)好|早安|晚安|亲爱的.{1,6}"
    r"|尊敬的.{1,8}"
    r"|(?:非常|十分|很)?(?:感谢|谢谢)(?:您|你)?(?:的)?.{0,10}|不客气|不用谢|再见|拜拜|好的|当然(?:可以)?|没问题"
    r"|(?:非常|很)?(?:乐意|高兴|荣幸)(?:能?够?)?(?:为|帮|回答|解答).{0,12}"
    r"|祝(?:您|你|大家|一切|好).{0,16}|希望(?!工程|小学|学校).{0,14}(?:帮助|帮到(?:您|你)|满意|解答(?:了)?(?:您"
    r"|你)?的?.{0,6}|喜欢)"
    r"|(?:如果|若|如|要是)?(?:您|你)?(?:还|仍)?有(?:任何|其他|其它|更多|什么|别的|进一步的?)*.{0,4}(?:问题|疑问"
    r"|需要|需求|想了解的?)(?:的话)?"
    r"|(?:如果|若|如)(?:您|你)?(?:还)?(?:需要|想)(?:了解)?(?:更多|进一步).{0,12}|(?:请|欢迎|可以|也可以"
    r"|都可以)?(?:您|你)?(?:随时|再|继续)(?:来)?(?:告诉|联系|咨询|提问|问|告知|留言|找|向)(?:我们?)?.{0,8}"
    r"|我(?:会|将|很乐意|随时).{0,8}(?:为|帮|竭诚).{0,14}|很高兴.{0,12}|这是(?:一)?个(?:很|非常)?(?:好|棒|有趣"
    r"|不错)的问题|让我(?:来)?(?:为您|为你|帮您|帮你)?(?:解答|回答|介绍|看看).{0,6}"
    r"|hi(?: there)?|hello(?: there)?|hey(?: there)?|dear .{1,20}|good (?:morning|afternoon|evening|day)|greetings"
    r"|(?:many )?thanks?(?: you)?(?: (?:so|very) much)?(?: for .{1,30})?"
    r"|you'?re welcome|sure(?: thing)?|of course|certainly|absolutely|no problem|(?:that'?s a |what a )?(?:great"
    r"|good|excellent|interesting) question"
    r"|(?:i )?hope (?:this|that|it|these)(?: \w+)? (?:helps?|is (?:helpful|useful)|answers? .{1,20}"
    r"|was helpful).{0,12}"
    r"|(?:please )?(?:let me know|feel free|don'?t hesitate)\b.{0,60}|if you (?:have|need) (?:any|more|further"
    r"|other|additional)\b.{0,50}|(?:i'?m |i am )?(?:happy|glad|here) to help.{0,20}"
    r"|(?:have a|enjoy your) (?:nice|great|good|wonderful|lovely)?\s?\w{0,10}|best (?:regards|wishes)"
    r"|good luck.{0,20}|is there anything else.{0,30}"
    r"|不好意思|(?:非常|很|十分|实在)?(?:抱歉|对不起)(?:给|为)(?:您|你|大家)?(?:带来|造成)了?.{0,6}(?:不便|困扰|麻烦)"
    r"|(?:让|使)(?:您|你|大家)久等了?"
    r"|(?:(?:i am|i'm|we are|we're) )?(?:so |very )?sorry (?:for|about) (?:the |this |that |any |your )?(?:long )?"
    r"(?:wait|delay|inconvenience|confusion|trouble)|(?:i|we) apologi[sz]e for (?:the|this|any) .{1,30}"
)

# --- talk about the answer itself -----------------------------------------------------------------

META_NOUN = (
    r"(?:介绍|总结|回答|信息|内容|方法|步骤|要点|原因|优点|缺点|特点|建议|说明|列表|例子|示例|概述|答案|解释|分析"
    r"|对比|比较|推荐|概括|详情|情况|方面|事项|因素|技巧|清单|理由|部分|选项|功能|区别)"
)
META = re.compile(
    rf"(?:好的)?[，,]?(?:以下|下面|下列|接下来)(?:就|便|我们?|将|来|为您|为你|给您|给你|向您)*(?:是|为|列出|列举"
    rf"|介绍|给出|整理|总结|提供|详细|简要|分别)[^。；]{{0,40}}(?:{META_NOUN}|[:：])"
    rf"|以上(?:就)?(?:是|为|便是)[^。；]{{0,40}}{META_NOUN}|(?:具体|详细|详情|总结|整理|归纳|说明|介绍|步骤|原因"
    rf"|理由|内容|分析|要点|方法|主要){{1,3}}(?:如下|有以下|包括以下).{{0,12}}"
    r"|(?:根据|依据|按照|基于|结合|从)(?:您|你|以上|上述|所|已|现有|给出?|提供|检索|搜索|给定|的|到|参考"
    r"|相关)*(?:资料|信息|内容|文档|材料|背景|参考|上下文|结果|问题|答案)(?:可知|来看|显示|可以(?:得知|看出|知道))?"
    r"|(?:总结|综上|总的来说|总之|简而言之|综上所述|总而言之)(?:一下)?"
    r"|(?:here (?:is|are|'s)|here's|below (?:is|are)|the following (?:is|are|section|table|list)|this (?:answer"
    r"|response|section|summary)) ?[^.;]{0,60}?"
    r"(?:summary|overview|list|answer|breakdown|explanation|comparison|points?|steps?|details?|information|reasons?"
    r"|examples?|tips|guide|facts|ways|options|table|response|what you need to know|:)[^.;]{0,40}"
    r"|(?:in summary|in short|in conclusion|to summarize|to sum up|overall)|(?:based on"
    r"|according to) the (?:provided |given |above |available |retrieved )?"
    r"(?:information|context|passages?|documents?|references?|text|sources?|search results?)|let me (?:explain"
    r"|summarize|break (?:it|this) down|walk you through).{0,40}"
)
CODE = re.compile(r"\n.*(?:[{};]\s*(?:\n|\Z)|\bdef |\breturn\b|\bimport |</|=>|==|\$ )", re.DOTALL)

# --- saying how little is certain -----------------------------------------------------------------

HEDGE = re.compile(
    r"仅供参考|(?:具体|一切|最终|实际)?(?:情况|信息|价格|内容)?(?:请|应|需|均)?以(?!.{0,16}[和与])[^，。]{2,16}为准"
    r"|因人而异|视(?:具体|实际|个人)?情况而定"
    r"|我(?:也|还|并)?(?:不太?|无法|不能)(?:确定|清楚|知道|了解|保证|确认|核实)|\A(?:目前|暂时|尚|还|也|但"
    r"|因此|所以)*(?:无法|不能|难以)(?:确定|确认|判断|核实|得知|保证)(?!性)"
    r"|(?:资料|参考|文档|文中|文本|信息|内容|上下文|背景|知识库|搜索结果)(?:中|里|内)?(?:也|并|均|都|尚|暂)?(?:没有"
    r"|未|不|没)(?:有|曾|能)?(?:明确|具体|详细|直接)?(?:地)?(?:提及|提到|提供|包含|涉及|说明|给出|指出|显示|记载"
    r"|找到)"
    r"|作为(?:一个|一名)?(?:ai|人工智能|语言模型|大模型|智能助手|虚拟助手)"
    r"|\bi(?:'m| am) not (?:sure|certain)\b|\bi (?:can(?:not|'t)|could(?: not|n't)) (?:verify|confirm|guarantee)\b"
    r"|\bfor reference only\b|\bas an? (?:ai|language model|large language model)\b"
    r"|\bto the best of my knowledge\b|\bi (?:do not|don't) (?:have|know)\b"
    r"|\bthe (?:\w+ ){0,2}(?:context|passages?|documents?|references?|text|sources?|information"
    r"|article)(?: \w+)? (?:do(?:es)? not|don't|doesn't|did not|didn't) (?:\w+ly )?(?:mention|contain|provide"
    r"|specify|include|say|state|answer|give|indicate|explain)"
    r"|\b(?:results|mileage|prices?|experiences?|availability) may vary\b"
    r"|\bit (?:really )?depends on (?:the situation|you|personal|individual)"
)
# What is not known may be followed by what is.
BUT = re.compile(r"(?:但是?|不过|然而|遂|\bbut\b|\bhowever\b).{8,}", re.DOTALL)

# --- advice ---------------------------------------------------------------------------------------

# 专家建议… tells what experts say: that is a fact about experts.
ADVISER = (
    r"(?:专家|医生|医师|学者|律师|官方|厂家|厂商|政府|机构|公司|组织|委员会|协会|部门|教授|研究|报告|指南|手册"
    r"|说明书|老师|教师|代表|委员|他们?|她们?|者|人士|局|部|院|会|署|提出|提供|相关|的|一些|这些|合理|条|项|《)"
)
START = (
    r"(?:\A|[，,；;：:])\s*(?:因此|所以|故|那么|那|则|但是?|不过|而且|另外|此外|同时|首先|其次|最后|还|也|并|且"
    r"|我们?|小编|笔者|个人|这里|在此|您|你|大家)*"
)
ADVICE = re.compile(
    rf"(?:不建议|不推荐|{START}(?:强烈|一般|通常|比较|更|最|非常|特别|尤其|还是|都|就)*(?:建议|推荐))(?!书|信|人|性|者"
    rf"|稿|给(?:我|他)|了|过|奖|的|系统|算法|值|$)"
    rf"|{START}(?:请(?![求假教客愿])|切勿|切记|务必|不妨|最好(?!的)|尽量|不要(?!求)|别(?![的人名称墅致具])|可以考虑"
    rf"|可以尝试|可以试试|记得|注意(?![力到]))"
    r"|(?:您|你|大家|我们?)(?:也|还|不妨|最好)?(?:可以|可|应该?|需要?|要)?(?:考虑|尝试|试试|注意|参考一下|选择)"
    r"|值得(?:一[去看试游读]|推荐|尝试|拥有|购买|入手|前往|您|你|大家)|不容错过|应(?:该)?避免|应(?:该)?尽量"
    r"|\b(?:i|we)(?:'d| would)? (?:(?:strongly|highly|also|really) )?(?:recommend|suggest|advise)\b|\bit(?:'s| is"
    r"| would be) (?:(?:strongly|highly|generally|usually|often|always) )?(?:recommended|advisable|advised|best"
    r"|better|wise|a good idea|worth(?! noting| mentioning| remember))\b"
    r"|\byou (?:should|may want to|might want to|might consider|could consider|can consider|could try|can try"
    r"|ought to|had better)\b|\bworth (?:visiting|a visit|a try|trying|seeing|considering|buying|checking)\b"
    r"|\A(?:so |then |also |and |but |please )?(?:please|try|make sure|be sure|remember to|avoid|don't|do not|never"
    r"|consider|keep in mind|ensure|take care|be careful|check out|don't forget)\b"
    r"|\b(?:is|are) (?:not )?(?:highly |strongly |generally )?recommended\b(?! by| for| in| to)"
)
ADVISED_BY = re.compile(rf"(?:{ADVISER}|[a-z]{{2,}})(?:一般|通常|也|还|都|均|曾|强烈|明确|均?不)*\Z")

# --- opinions -------------------------------------------------------------------------------------

TASTE = (
    r"(?:好看|漂亮|美丽|美味|好吃|好喝|好听|好玩|可爱|迷人|帅气?|酷|棒|赞|不错|出色|精彩|优美|动人|有趣|无聊|难看"
    r"|难吃|糟糕|完美|惊艳|震撼|浪漫|温馨|时尚|大气|高端|豪华|实用|贴心|给力|划算|值|满意|遗憾|可惜|舒服|惬意|感人"
    r"|过瘾|优秀|令人.{2,4}|让人.{2,6})"
)
OPINION = re.compile(
    r"我(?:个人|们|也|还|很|真的|其实|一直)*(?:觉得|认为|感觉|相信|喜欢|推测|猜)|个人(?:认为|觉得|看来|感觉|建议)"
    r"|在我看来|依我(?:看|之见)|(?:可以?|能)用.{1,30}(?:来)?(?:形容|概括)"
    r"|(?:堪称|可谓|不愧(?:是|为)|毫无疑问|简直|实在(?:是|太)|真(?:是)?太|太.{1,4}了(?:\Z|[，,！!]))"
    rf"|(?:很|非常|十分|特别|相当|超级?|极其|真的?|挺|比较|最|更|无比|格外|颇为?|都|还)(?:是)?{TASTE}(?:的|了|呢|啊"
    rf"|哦)*(?:\Z|[，,！!。])|是(?:一?[个种部款座本])?(?:很|非常|十分|相当)?{TASTE}的(?:\w{{1,4}})?\Z"
    r"|令人(?:印象深刻|惊叹|难忘|感动|着迷|心酸|敬佩|赞叹|陶醉|神往)|让人(?:印象深刻|惊叹|难忘|感动|心酸|流连忘返"
    r"|赞叹|陶醉|眼前一亮)|深受喜爱|魅力十足|别具一格|独具魅力|强烈推荐|值得(?:一试|一看|一去|拥有|推荐)"
    r"|\bi (?:\w+ly )?(?:think|believe|feel|find|love|like|enjoy|prefer|guess|suppose)\b"
    r"|\bin my (?:\w+ )?(?:opinion|view|experience)\b|\bpersonally\b|\barguably\b|\bto be honest\b"
    r"|\bneedless to say\b"
    r"|\b(?:is|are|was|were|looks?|feels?|seems?|sounds?|tastes?|'s)(?: (?:really|very|so|quite|absolutely|truly"
    r"|pretty|simply|just|rather|also|an?|the|most|such))*"
    r" (?:beautiful|lovely|great|amazing|awesome|wonderful|nice|pretty|fantastic|excellent|terrible|awful|delicious"
    r"|charming|stunning|gorgeous|impressive|fun|boring|cute|cool|perfect|incredible|brilliant|superb|delightful"
    r"|disappointing|fascinating|breathtaking|magnificent|adorable|horrible|ugly|tasty|enjoyable|remarkable"
    r"|outstanding|unforgettable)\b[^,;]{0,24}\Z|\bmust-(?:see|visit|try|have|read)\b"
)
QUESTION_END = re.compile(r"(?:[?？]|吗|(?<![什怎那这多要])么|呢)(?P<quoted>[\"'”’」』）)\s]*)\Z")
QUOTED = re.compile(r"[“\"「『][^“”\"「」『』]*[”\"」』]")
REPORTED = re.compile(
    r"\A(?!我)[^，,:：]{1,30}(?:表示|强调|指出|认为|呼吁|称|说|介绍|透露|宣布|规定|坦言|提出)道?[，,:：]"
    r"|\A(?!i |we )[^,:]{1,60}\b(?:said|says|stated|argued|claims|claimed|according to)\b"
)

# --- declining ------------------------------------------------------------------------------------

APOLOGY = re.compile(
    r"(?:(?:非常|很|十分|真的?|实在|万分)?(?:抱歉|对不起|遗憾|不好意思|sorry)(?:的是|地)?(?:给您"
    r"|给你)?.{0,10}(?:不便|困扰)?|请(?:您|你)?(?:谅解|见谅|原谅|理解|包涵)|敬请.{0,4}"
    r"|(?:i'?m |i am |we'?re |my )?(?:very |so |really |sincere |deeply )?(?:sorry|afraid|apologies"
    r"|apologi[sz]e)(?: (?:about|for) (?:that|this|the|any)\b.{0,30})?|i apologi[sz]e\b.{0,40}|unfortunately"
    r"|regrettably)"
)
# Possessive: 这个问题 is one word or two, and a long run of it would be read in exponentially many ways.
WHOSE = (
    r"(?:(?:[这此本]题|这个?|此|该|您(?:的|问的)?|你(?:的|问的)?|对于?|关于|有关|针对|抱歉|对不起|不过|但是?|目前|现在|暂时"
    r"|当前|因此|所以|这(?:方面|边)|这个问题|该问题|此问题|上述|以上|具体|您提的?|你提的?|问题|情况|内容|方面|事"
    r"|，)*+"
    r"(?:我们?|本人|本助手|本机器人|小助手|小[\u4e00-\u9fff]{1,2}|系统|本系统|ai)?(?:也|还|暂时|目前|真的?|并|实在"
    r"|确实|现在|暂|尚|仍|恐怕|可能|其实|一时|对此|对这个?|对该|完全|是)*+)"
)
REFUSAL = re.compile(
    rf"{WHOSE}(?:不(?:太|是很|是特别|大|怎么)?(?:知道|清楚|了解|确定|明白|懂)|无法(?:为您|为你|给您|给你|对|就|准确"
    rf"|直接|确切|具体|完全|从|根据|在|通过|帮|向|立即)*[^，。]{{0,16}}?(?:回答|提供|支持|满足|完成|处理|协助|帮助"
    rf"|给出|解答|查询|获取|访问|判断|确定|确认|核实|理解|执行|实现|得知|得出|答复|回复|告知|知道|作答|服务|预测"
    rf"|解决|识别|生成|讨论|参与|评价)"
    r"|(?:不能|没有?办法|没法|不可以|不便|不方便|不宜|难以)(?:为您|为你|给您|给你|对|就|准确|直接|帮"
    r"|向)*[^，。]{0,16}?(?:回答|提供|支持|满足|完成|协助|帮助|给出|解答|判断|确定|答复|回复|作答|透露|告知|讨论|评论)|(?:还"
    r"|仍|正)?(?:在)?(?:努力)?学习(?:中|当中)?(?:哦|呢|啦|呀|噢)*(?:\Z|[，,。])|还没(?:有)?学会|没(?:有)?学过"
    r"|学会(?:了|后|之后)"
    r"|(?:并)?(?:没有|未)(?:明确|具体|直接)?(?:提到|提及|说明|给出|涉及|包含|指出)|答不(?:上来|出来)|帮不(?:了|到"
    r"|上)|爱莫能助|无可奉告|无能为力|没(?:有)?听懂|没(?:有)?(?:能)?(?:找到|查到|查询到|搜到|搜索到|检索到|看到)"
    r"|未(?:能)?(?:找到|查到|查询到|搜索到|检索到)|没有(?:关于|有关|相关|足够|更多|具体|任何|这方面|该|您|你"
    r"|涉及).{0,24}(?:信息|资料|数据|内容|答案|记录|知识|介绍)"
    r"|(?:暂)?无(?:相关|法)?.{0,6}(?:信息|资料|数据|答案)|超出(?:了)?.{0,12}(?:范围|能力|知识))"
    r"|.{0,24}(?:资料|参考|文档|文中|文本|信息|内容|上下文|背景|知识库|文章|结果|材料|片段|段落)(?:中|里|内)?(?:也"
    r"|并|均|都|尚|暂|似乎)*(?:没有|未|不|没)(?:有|曾|能|被)?(?:明确|具体|详细|直接|任何)?(?:地)?(?:被)?(?:提及"
    r"|提到|提供|包含|涉及|说明|给出|指出|显示|记载|找到|关于|相关|足够|介绍|足以).{0,30}"
    r"|(?:这|该|此)(?:个)?(?:问题|话题)?(?:已)?(?:超出|不在).{0,14}(?:范围|能力)(?:之?内)?.{0,6}|(?:暂)?(?:不|无法"
    r"|不能)支持(?:该|此|这个?|您的?)?(?:功能|操作|问题|查询|请求|服务)?"
)
REFUSAL_EN = re.compile(
    r"\b(?:i|we)(?:'m| am|'re| are)? ?(?:really |currently |still |also |just |simply )?(?:do not|don't|did not"
    r"|didn't|cannot|can't|can not|could not|couldn't|won't|am unable|unable|not able|not sure|not certain|unsure"
    r"|not familiar|not aware|not allowed|have no|am not|wasn't able|was unable|lack|no)\b"
    r"(?! (?:think|believe|only))|\b(?:still|currently) learning\b|\b(?:no|not enough|insufficient"
    r"|without) (?:\w+ ){0,3}(?:information|data|details?|mention|answer|evidence|context)\b(?: (?:is|was|are|were"
    r"|available|found|provided|about|of|on|regarding|in|to|for)\b|\Z)"
    r"|\b(?:the|these|this|your|any|none of the) (?:\w+ ){0,3}(?:context|passages?|documents?|references?|text"
    r"|sources?|information|articles?|results|excerpts?|snippets?|material)(?: \w+){0,2} (?:do(?:es)? not|don't"
    r"|doesn't|did not|didn't|is not|isn't|are not|lacks?|mentions? nothing)\b"
    r"|\bunable to (?:answer|help|find|provide|determine|assist|locate|say|verify)\b|\b(?:it is|it's"
    r"|is) (?:not possible|impossible|unclear|unknown|difficult) (?:to (?:determine|say|tell|answer|know)|from"
    r"|based)\b"
    r"|\b(?:beyond|outside|not within) (?:of )?(?:my|the) (?:\w+ )?(?:scope|knowledge|capabilit\w+|abilit\w+"
    r"|expertise)\b|\bcan(?:not|'t) be (?:\w+ )?(?:determined|answered|found|verified|provided|given|inferred)\b"
    r"|\b(?:is|was|are|were|isn't|wasn't) (?:not )?(?:\w+ly )?(?:mentioned|specified|provided|stated|given"
    r"|addressed|discussed|available|found) in (?:the|any|these) (?:\w+ ){0,2}(?:context|passages?|documents?"
    r"|references?|text|sources?|information|articles?|excerpts?|content)\b|\bno idea\b"
)
# What people say around a refusal: who else may know, what comes next.
ELSEWHERE = re.compile(
    r"(?:建议|请|可以|推荐|欢迎|不妨|需要|麻烦|或者?|也|并|您|你|如需|若需|如果需要|想了解|为了|以便|以获取?|获取"
    r"|了解|从而).{0,24}"
    r"(?:咨询|联系|查阅|查看|查询|访问|参考|拨打|前往|登录|关注|换|提供|重新|稍后|留意|询问|求助|官方|官网|客服"
    r"|专业人士|搜索"
    r"|进一步|更多|准确|详细|最新|补充)"
    r"|我(?:会|将).{0,8}(?:努力|继续|尽快|不断|加油|记录|反馈|学习).{0,16}|(?:如果|若|如)(?:您|你).{0,30}"
    r"|(?:我(?:可以|能|很乐意|愿意)).{0,6}(?:帮|为|协助|试).{0,20}|(?:换个|试试|聊聊|问问).{0,12}"
    r"|(?:(?:therefore|thus|hence|so|and|or) )?(?:you (?:may|might|can|could|should|would)|please|try|consider"
    r"|feel free"
    r"|i (?:recommend|suggest|would recommend|'d recommend|advise)|it (?:may|might|would) be).{0,50}"
    r"\b(?:check|consult|contact|visit|refer|look|ask|reach|search|seek|call|review|rephras|provide|clarif|more"
    r"|further"
    r"|again|another|website|support|professional|expert)\w*.{0,120}"
    r"|(?:if you|for (?:more|further|accurate|specific|the latest|details)).{0,120}"
    r"|(?:could|can|would) you .{0,80}|i(?:'d| would| can|'ll| will) (?:be )?(?:happy|glad|try|help|need"
    r"|do my best).{0,80}"
    r"|the (?:\w+ ){0,2}(?:context|passages?|texts?|documents?|content|excerpts?) (?:mainly|primarily|mostly|only"
    r"|focus\w*)"
    r"(?! mentions? that).{0,200}"
)
# Why, and about what: neither says anything without the refusal that it belongs to.
OPENING = re.compile(
    r"(?:作为|因为|由于|鉴于|关于|对于|至于|针对|有关|根据|基于|目前|截至|您提到|您问|你问|您所|在我|在提供|在给定"
    r"|在现有|从提供|从现有"
    r"|我(?:只)?是|我的|我目前|本人).{0,40}"
    r"|(?:as an? |based on |according to |given |regarding |as for |from the |in the |with the |since "
    r"|because ).{0,100}"
    r"|(?:therefore|thus|hence|consequently|as such|accordingly|in this case|at this time|currently|for now|so|此外"
    r"|因此|所以"
    r"|总之)\Z"
)
TURN = re.compile(r"[，,；;]\s*|\s(?=but\s|however\b|although\s|though\s)|\s[-–—]\s")
# What comes after one of these is said in spite of what came before.
IN_SPITE = re.compile(r"\A(?:但是?|不过|然而|可是|(?:but|however|although|though|yet)\b)")
TURNED = re.compile(r"\A(?:但是?|不过|然而|可是|而|只是|(?:but|however|although|though|yet|and|so)\b)[，,]?\s*")
