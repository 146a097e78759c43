"""Words that show how a sentence is built: what links clauses, what begins a predicate, what stands for a name.

Chinese patterns are written in Simplified characters and matched against a shadow of the text that has the
same length, so that a match in the shadow is a place in the text.
"""

from __future__ import annotations

import re

from steelyard.text import HAN, converted


class _Shadows(dict[int, str]):
    """Characters to Simplified ones, learnt as they come: one by one, since phrases would shift the places."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        if HAN.match(character):
            simple = converted(character, "t2s")
            character = simple if len(simple) == 1 else character
        self[code] = character
        return character


_SHADOWS = _Shadows()


def shadow(text: str) -> str:
    """The text in Simplified characters, place by place."""
    return text if text.isascii() else text.translate(_SHADOWS)


# --- Chinese: what links clauses -------------------------------------------------------------------

CAUSE = re.compile(r"(?:这|那)?(?:主要|也|正|就)?是?(?:因为|由于|鉴于)|既然")
EFFECT = re.compile(r"(?:因此|所以|因而|故而|于是|由此可见|为此)[，,]?|故(?![事宫障乡意土居都])")
# What only makes sense with the clause that follows it: conditions, and circumstances that hold no verb of their own.
CONDITION = re.compile(
    r"(?:如果|如(?=您|你|需|有|要|遇|果)|若|要是|假如|假设|倘若|只要|只有|除非|一旦|当(?!地|时|年|选|事|局|前|代|今"
    r"|中|然|作)|无论|不管|不论|即使|哪怕|就算"
    r"|每当|每逢|对于|关于|至于|针对|随着|根据|按照|依据|依照|为了|除了|截至|截止|与其|相比|比起|相较|考虑到|经过)"
)
CIRCUMSTANCE = re.compile(
    r"(?:在|对(?![手方象比])|据(?!点)|为(?![什何])|通过|除|作为|自(?=从|\d|[一二三四五六七八九十]|[今当此])"
    r"|从(?![小而事此未不属容])|到|以(?![及为来后前上下色])|凭借|由于|因(?!为|此))"
)
# 李明表示，…: what is reported belongs to who reports it.
REPORTING = re.compile(
    r"(?:表示|强调|指出|认为|(?<![名全简俗职统人号])称|(?<![小学传])说|介绍|透露|宣布|规定|显示|表明|提出|写道|坦言"
    r"|呼吁|承认|解释|回应|补充|发现|报道|估计|预测|统计)道?[:：]?\Z"
)
TIME_END = re.compile(r"(?:时|时候|期间|之后|以后|后|之前|以前|(?<![当目面向])前)\Z")
CIRCUMSTANCE_END = re.compile(
    r"(?:时|时候|时期|期间|之后|以后|后|之前|以前|前|中|里|上|下|内|外|以来|方面|的话|情况下|条件下|基础上|过程中"
    r"|来说|而言|来看|看来|所示|所述|如下|起|同时|之余|之下|之中|为例|[前后][一二两三几\d]{1,3}个?[天年月日周])\Z"
)
# What belongs to the clause before it: examples, explanations, what it brings about, what it is not.
TAIL = re.compile(
    r"(?:包括|较(?!为)|比(?!如|较|赛|例)|同比|环比|如(?![果若需今此何遇有您你])|例如|比如|譬如|诸如|像是"
    r"|包括但不限于|即(?![使将便])|也就是|亦即|简称|又称|俗称|又名|别名|也称|亦称|导致|使得|造成|引起|引发|致使"
    r"|以致|以至"
    r"|以便|以免|以防|以期|以及|而(?:不是|非)|甚至|尤其|特别是|其中|直到|直至|否则|不然|则|那么|那就|就(?!业|职|诊"
    r"|餐|读|任|座)|才(?![华能干])|等等|等$|前者|后者|或者|或|和|与|及|乃至|除非|连同)"
)
LEAD = re.compile(
    r"(?:但是|但(?!丁|凡)|不过|然而|可是|而且|并且|此外|另外|其次|首先|再次|再者|最后|总之|总的来说|总而言之"
    r"|综上所述|综上|换句话说|也就是说|具体来说|一般来说|事实上|实际上|其实"
    r"|当然|虽然|尽管|不仅仅?|不但|一方面|另一方面|同时|且|并(?![不未没非列联肩购排网发存])|而(?![且已言立后非])"
    r"|第[一二三四五六七八九](?=[，,])|值得注意的是|需要注意的是|值得一提的是|众所周知|简单来说"
    r"|因为|由于|既然|因此|所以|因而|故而|于是|从而|进而)[，,:：]?\s*"
)

# --- Chinese: what begins a predicate --------------------------------------------------------------

ADVERB = (
    r"(?:也|还|都|均|又|便|才|只|仅|皆|仍然?|曾经?|已经?|正在?|将|即将|就|更|并|一直|始终|逐渐|不断|经常|往往|通常"
    r"|一般|总共|共计?|同时|分别|甚至|或许|也许|大概|似乎|可能|大约|约"
    r"|从小|自幼|自小|后来|随后|最终|最后|最初|目前|现在|当时|此前|同年|次年|先后|相继|长期|主要|专门|积极|努力"
    r"|共同|进一步|深入|全面|切实|认真|主动|成功|首次|再次|正式|一同|一起|明确|过去|常常?|特别|尤其|完全|非常|十分"
    r"|极其|极为?|相当|比较|较|很|最为?|其实|确实|的确|真正|直接|间接|不仅仅?|不但|(?<![第每])(?:[两三四五六七八九十几多]|\d{1,3})次"
    r"|每?(?:周|星期)[一二三四五六日天末]|每[天年月日周]"
    r"|(?:于|自|在)?\d{1,4}年(?:\d{1,2}月)?(?:\d{1,2}[日号])?|(?:于|在)?\d{1,2}月(?:\d{1,2}[日号])?|(?:于"
    r"|在)?\d{1,2}[日号])"
)
# A single character counts only where it is not the end or the beginning of another word.
VERB = (
    r"(?:(?<![但于只可总还若要就正倒或])是(?!否)"
    r"|(?<![所没只具拥享占富私国稀特固原持])有(?![人些的关时机限效趣意利])"
    r"|(?<![因作称认成分行以人名较大])为(?![了什何此人])|(?<![存现正实所潜内外自])在(?![线职场校于])"
    r"|(?<![社机协委宴晚议工国大都教体香峰盛年集庙商学董分理聚约展])会(?![议员计场馆话活上中的期后前旗徽长见刊所址费])"
    r"|(?<![功智性可节职技核效动电官产潜体万才])能(?![源量力耗见])|(?<![未])将(?![军领来])|被|由(?!于)|让"
    r"|使(?![用者命馆得])|令(?!人)|把|给|需(?!求)|(?<![反响供适相对回效感])应(?![用急对付])"
    r"|叫(?!做)|叫做|占|(?<![抵到表传转送发直雷])达到?|含(?!义)|属于?|位于|标配|配有|设有|紧邻|毗邻|邻近|靠近|临近|面向|支援|拥有|具有|具备"
    r"|包含|包括|采用|使用|支持(?!者)|提供(?!商|者)|配备|搭载|成立(?!于)?|创立|创建|建立|建于|始建|出生|生于|毕业"
    r"|担?任(?!务|何|意)|获得?|荣获|赢得|成为|受到?"
    r"|影响(?!力)|提高|提升|增加|减少|降低|下降|上升|改善|帮助|促进|存在|发生|出现|发布|推出|上市|召开|建成|竣工|完工|通车|开业(?!时间|日)|停产|闭馆(?!时间|日)|去世|逝世|发行|出版|上映"
    r"|播出|主演|饰演|出演|执导|编写|撰写|创作|负责(?!人)|位列|排名|排在|超过|高达|长达|重达|等于"
    r"|用于|用来|适用|适合|源于|来自|来源于|始于|起源|取决|依赖|基于|坐落|分布|分为|组成|构成|形成|产生|避免|防止"
    r"|保护|保证|确保|保持|维持|继续|开始|结束|停止|完成|实现|进行|开展|举办|举行|参加|参与|加入|离开"
    r"|前往|进入|返回|到达|抵达|送达|直达|表达|居住|承担|面对|表示|认为|指出|强调|说明(?!书)|显示(?!器|屏|装)|表明|证明|意味|代表(?!人"
    r"|团|作|们|队|大会)|象征|体现|反映|涉及|涵盖|覆盖|旨在|地处|展示|吸引|推动|加强|落实|注入|攻克|宣传|推进|扩大|打造|改编"
    r"|讲述|描写|描述|公布|宣布|批准|颁布|实施|规定|要求|允许|禁止|限制"
    r"|可以|可能|能够|应该|应当|必须|需要|不(?![丹锈同少仅但过论管])|没有|没|未(?![来知])|无法|无需|无须"
    r"|无(?![线人锡论])|建议|推荐|加装|安装|支付|享有|享受|发现(?!者)|发明(?!者|人)|设计(?!师|者)|生产(?!商|线)"
    r"|制造(?!商|业)|售价|起价|(?<![体净毛自载])重(?=约|达|\d)|(?<![全身车片时总])长(?=约|达|\d)|(?<![身车楼净总])高(?=约|达|\d)|(?<![车])宽(?=约|达|\d)"
    r"|(?<![全简俗名职统人])称(?!号|为)|称为|(?:很|非常|十分|较为?|比较|相当|更加?|极其?|特别)(?=[\u4e00-\u9fff])"
    r"|优越|优秀|不错|良好|丰富|复杂|简单|著名|有名|迅速|明显|显著|广泛|稳定|舒适|方便)"
)
PREDICATE = re.compile(VERB)
# 了 after a verb shows a predicate even where the verb is in no list.
STATED = re.compile(
    rf"{VERB}|(?<=[\u4e00-\u9fff])了(?!解|不起)|(?<=[\u4e00-\u9fff])过(?=[\u4e00-\u9fff\d])(?!程|去|度|滤|渡)"
)
# What ends a subject: a predicate, or the preposition of what stands before it.
AFTER_SUBJECT = re.compile(
    rf"{VERB}|(?<![原起病诱])因(?![此为素果而子特])|依据|根据|按照|通过(?!率)|凭借|针对|(?<![服])从(?![事业属])|对(?![手方象话联称比外内])|向(?![导日])"
    r"|(?<![关对由终位属处基等鉴至大小生建始])于(?!是)|为(?=人们|大家|用户|客户|我们)"
)
# After these the clause may go on about somebody else: 意见要求企业…，推动….
PIVOT = re.compile(r"要求|希望|允许|禁止|建议|鼓励|命令|呼吁|规定|让|使|令|帮助|推荐|指控|认为|表示|强调|指出|说|称")
ADVERB_ONLY = re.compile(
    r"至少|从未|从不|一向|先后|相继|愿|并|曾|已|将|也|还|都|均|仍|正(?!在|式|确|常|文|面)|又|才(?![华能])|只|就(?!业)"
    r"|便(?!利)|更|皆|一直|始终|随后|随即|最终"
)
STARTS_PREDICATE = re.compile(
    rf"(?:{ADVERB}[，,]?){{0,4}}(?:(?:身|作)为(?!.*的)|[\u4e00-\u9fff]{{1,2}}[了过](?=[\u4e00-\u9fff\d])(?!程|解)"
    rf"|有着?(?![人些的])|能(?![源量力])|会(?![议员计])|可(?=[\u4e00-\u9fff])|在(?!.{{0,20}}[上下中里内外]$)"
    rf"|{VERB})"
)
FROM_CHILDHOOD = re.compile(r"(?:从小|自幼|自小)(?![他她就])")
IMPERSONAL = re.compile(
    r"(?:因此|所以|故|也|还|都|更|并|一般|通常|强烈|非常|特别|最|很|十分|真的?|实在|对此|我们?|您|你|大家|这里){0,4}(?:不?(?:建议|推荐)"
    r"|请(?![求假教客愿])|切勿|务必|注意|最好|不妨|可见|据|避免|需要注意|必须注意|值得注意|不要|别|应避免|有人|有些"
    r"|有的|有时"
    r"|是否|没有人|让我们|下雨|下雪|感谢|谢谢|希望|祝|抱歉|对不起|不好意思|深表|欢迎|(?:高兴|荣幸|乐意)(?:为|能|回答"
    r"|解答|帮))"
)
# 使用手机会影响视力: the action is the subject.
ACTION_SUBJECT = re.compile(
    r"(?:提供|使用|采用|安装|加装|购买|选择|确保|保持|避免|防止|保护|学习|参加|进行|增加|减少|降低|提高|提升|改善"
    r"|维持|了解|保证|开展|建立|完成|实现|影响|加入|面对|发现)"
    r"[^，,；;]{2,}?(?:会(?![议员])|能(?![力量源])|可以|可能|能够|有助于|有利于|(?:至关|很|十分|非常|尤为)重要"
    r"|是(?!由|在|以))"
)
RELATION_NOUN = (
    r"(?:父母|父亲|母亲|爸爸|妈妈|爸妈|妻子|丈夫|儿子|女儿|哥哥|姐姐|弟弟|妹妹|祖父|祖母|爷爷|奶奶|家里|家中|家境"
    r"|全称|全名|简称|别名|本名|原名|英文名|总部|首都|省会|面积|总面积|人口|总人口|价格|售价|续航|车长|轴距"
    r"|代表作品?|国籍|籍贯"
    r"|民族|身高|体重|生日|口感|味道|作者|主角|导演|创始人|创办人|董事长|校训|血型|星座|学历|票房|邮编|片长|全长|总长|总重|自重|净重|占地面积|建筑面积|地址|电话|门票|票价|海拔|长度|宽度"
    r"|高度|重量|容量|寿命|保质期|环境|空间|外观|内饰|性能|质量|服务|交通|气候|口味|颜色|规模|历史)"
)
RELATION = re.compile(
    rf"{RELATION_NOUN}(?=是|为|有|在|由|都|均|也|约|达|不|很|共|包|位|：|:|\d|[优富一二三四五六七八九])"
)
IMPLIED_PERSON = re.compile(
    r"^(?:从小|自幼|自小|早年|晚年|出生|生于|毕业|就读|父母|父亲|母亲|家境|身高|本名|原名|身为)"
)

# --- Chinese: what stands for a name ---------------------------------------------------------------

PRONOUN = re.compile(r"(?:它们?|他们?|她们?|其(?![中他它余实次间一二三])(?:的)?)")
PERSONAL = re.compile(r"[他她]")
DEMONSTRATIVE = re.compile(
    r"(?:这|那|该|此)(一?(?:个|种|款|部|座|本|家|项|位|名|条|类|首|幅|场|支|所)?)([\u4e00-\u9fff]{1,6})"
)
# 这种情况 may mean anything that was said; 这座城市 means the one thing that was named.
MEANS_ONE = ("款", "部", "座", "本", "家", "位", "首", "幅", "支", "所")
SURNAME = (
    "王李张刘陈杨黄赵吴周徐孙马朱胡郭何林高罗郑梁谢宋唐许韩冯邓曹彭曾肖田董袁潘蔡蒋余于杜叶程苏魏吕丁任沈"
    "姚卢姜崔钟谭陆汪范金石廖贾夏韦付方白邹孟熊秦邱江尹薛闫段雷侯龙史陶黎贺顾毛郝龚邵万钱严覃武戴莫孔向汤"
)
PERSON = re.compile(
    rf"(?:[{SURNAME}][\u4e00-\u9fff]{{1,2}}|[\u4e00-\u9fff]{{1,6}}·[\u4e00-\u9fff·]{{1,12}}"
    rf"|[\u4e00-\u9fff]{{1,6}}(?:先生|女士|夫人|小姐|太太|教授|博士|总统|主席|将军|老师|医生|导演|皇帝|同学)"
    rf"|[小老阿](?:[{SURNAME}明红刚丽华强军芳]))"
)

# --- Chinese: lists whose parts each hold ------------------------------------------------------------

SHARED_VERB = re.compile(
    r"(?:支持|支援|包括|包含(?:了)?|提供|拥有|具备|具有|配备(?:了)?|搭载(?:了)?|含有|涵盖|需要|有|生产|销售"
    r"|出演(?:过|了)?|主演(?:过|了)?|出版(?:过|了)?|获得(?:过|了)?|荣获|精通|擅长|喜欢|经营|设有|开设(?:了)?)"
)
SHARED_SUBJECT = re.compile(r"(?:全?都|均|皆)(?=是|为|有|在|位于|属于|可以|能|会|不|支持|具有|需要|来自|含有|适合)")
ITEM = re.compile(r"[^，,。；;：:？?！!（）()的地得了着们如等]{1,16}")
COUNTED = re.compile(r"[一二三四五六七八九十两几多数\d]+\s?(?:个|种|类|款|项|点|大|方面|部分|名|位|家|条|座)")

# --- English ---------------------------------------------------------------------------------------

FINITE = (
    r"(?:is|are|was|were|isn't|aren't|wasn't|weren't|has|have|had|can|cannot|can't|could|will|won't|would|does"
    r"|doesn't|do|did"
    r"|didn't|may|might|must|should|includes?|offers?|supports?|provides?|contains?|features?|became|becomes?|won"
    r"|received?"
    r"|receives|served?|serves|worked|works|moved|died|wrote|founded|built|opened|closed|began|begins|started"
    r"|starts|ended"
    r"|ends|makes?|made|allows?|requires?|needs?|uses?|used|helps?|helped|reduces?|increases?|causes?|led|leads"
    r"|lies|stands"
    r"|belongs?|consists?|comes?|came|goes|went|gets?|got|holds?|held|weighs?|costs?|measures?|lasts?|runs?|ran"
    r"|sells?|sold"
    r"|played|plays|directed|published|released|launched|established|located|grew|fell|rose|remains?|remained"
    r"|lives?|lived|pay|pays|paid|enters?|entered|arrives?|arrived|employs?|employed|earns?|earned|stays?|stayed"
    r"|studied|graduated|joined|left|took|takes|gave|gives|shows?|showed|means?|meant|produces?|produced|covers?"
    r"|reaches|reached)"
)
FINITE_WORD = re.compile(rf"\b{FINITE}\b", re.IGNORECASE)
SUBJECT_EN = re.compile(
    rf"^((?:[\w'’.&/%-]+ ){{0,7}}?[\w'’.&/%-]+),? (?:(?:also|often|usually|currently|originally|still|only|now|then"
    rf"|later|both|all|never|always) )?({FINITE})\b"
)
STANDS_EN = re.compile(
    r"^(?:(?:it|he|she|they|we|you|i|this|that) \w+|(?:the|an?|its|his|her|their) (?:[\w'-]+ ){1,3}?\w+(?:s|ed)\b)",
    re.IGNORECASE,
)
# A form that may be a participle; after "was built in 1990 and" it shares the auxiliary.
PARTICIPLE_EN = re.compile(
    r"(?:also )?(?:founded|built|opened|closed|started|ended|made|used|helped|led|held|sold|played|directed"
    r"|published|released|launched"
    r"|established|located|showed|produced|left|got)\b",
    re.IGNORECASE,
)
NOT_SUBJECT = re.compile(
    r"^(?:in|on|at|by|for|with|from|to|of|as|if|when|while|although|though|because|since|after|before|during|there"
    r"|here|what|"
    r"who|which|that|how|why|where|despite|unlike|according|based|it|he|she|they|this|these|those|you|we|i|and|but"
    r"|or|so|not|no|yes)\b",
    re.IGNORECASE,
)
PRONOUN_EN = re.compile(r"^(It|He|She|They|Its|His|Her|Their)\b(?!')", re.IGNORECASE)
EXPLETIVE = re.compile(
    r"^it(?:'s| is| was| will be| may be| can be| seems| appears| takes| turns out| should be)"
    r"(?: (?:\w+ly|not|also|very|often|always|quite|more|most|best|worth))*(?: \w+)? (?:that|to|if|whether|for"
    r"|when)\b|^it(?:'s| is| was) (?:\w+ing|worth|time)\b",
    re.IGNORECASE,
)
LEAD_EN = re.compile(
    r"^(?:(?:however|moreover|furthermore|additionally|in addition|also|besides|finally|first(?:ly)?|second(?:ly)?"
    r"|third(?:ly)?|lastly|next|overall|in summary|in short|"
    r"in conclusion|to summarize|for this reason|as a result|consequently|therefore|thus|hence|meanwhile|in fact"
    r"|indeed|of course|note that|similarly|likewise|nevertheless"
    r"|nonetheless|on the other hand|on the one hand|importantly|notably|that said|in other words)(?:,\s+"
    r"|(?<=note that)\s+)|(?:and|but|so|yet|because|although|though)\s+)",
    re.IGNORECASE,
)
EFFECT_EN = re.compile(r"^(?:therefore|thus|hence|consequently|as a result|for this reason|so)\b,?\s", re.IGNORECASE)
