"""The English patterns of sentences that are worth a note.

Decisions, outcomes and strategies are known by a subject and its verb; what people say of themselves by clauses that
begin with "I" or "my" and tell something lasting: "I have two brothers", not "I have to go".
"""

from dataclasses import dataclass

import regex

from lamina.core.memories import Category
from lamina.text.english import listed

_HAVE = (
    r"(?:'ve| have|ve|'s| has)?(?: (?:just|finally|already|now|also|recently|all|both|successfully|unanimously|"
    r"jointly))*+"
)
_GROUP = (
    r"(?:we|i|everyone|everybody|all of us|both of us|management|(?:the|our|my) (?:whole |entire |core )?(?:team|"
    r"group|board|committee|"
    r"council|management|family|company|department|class|crew|jury|union|client|parents|kids|neighbours|neighbors|"
    r"owners|majority))"
)
# A subject of a few words: an article, nouns, and what they are of or with; no verb, no relative clause.
_NO_VERB = (
    r"(?!(?:who|whom|which|that|what|where|when|if|is|are|was|were|be|been|has|have|had|do|does|did|can|could|will|"
    r"would|should|"
    r"may|might|must|not|never|to|and|or|but|because|so|until|unless|whether|i|we|you|he|she|they|it|[\w]+n't)\b)"
)
_NOUNS = rf"(?:{_NO_VERB}[\w\ufffc#][\w'/.%&#+\ufffc-]{{0,30}}+(?: |(?=$)))"
_THING = rf"(?:(?:the|our|my|this|that|both|all(?: the)?|another|each|every|his|her|their)\b )?(?:{_NOUNS}){{1,6}}?"
# Work that can fail: without them "passed" and "won" are said of buses and of strangers.
_ATTEMPT = (
    r"(?:migrations?|builds?|deploy(?:ment|s)?|releases?|roll-?outs?|roll-?backs?|imports?|exports?|back-?ups?|"
    r"restores?|upgrades?|updates?|tests?|"
    r"suites?|ci|jobs?|runs?|pipelines?|quer(?:y|ies)|requests?|payments?|transfers?|launch|experiments?|trials?|"
    r"pilots?|variants?|"
    r"versions?|options?|designs?|campaigns?|projects?|applications?|appeals?|bids?|offers?|proposals?|votes?|"
    r"motions?|exams?|"
    r"interviews?|inspections?|audits?|operation|surgery|treatment|diet|recipe|cake|bread|repair|fix(?:es)?|"
    r"patch(?:es)?|workaround|scripts?|"
    r"syncs?|merges?|restarts?|reboots?|install(?:ation)?s?|servers?|services?|clusters?|uploads?|downloads?|training|"
    r"models?|evaluations?|"
    r"benchmarks?|checks?|validations?|commits?|cron|batch(?:es)?|attempts?|tr(?:y|ies)|sessions?|demo|pitch|approach|"
    r"idea|trick|plan|"
    r"strategy|prototypes?|teams?|side|attack|search(?:es)?|refactoring|change|cutover|switch|failover|drill|startup|"
    r"company|school|band)"
)
_OF_ATTEMPT = rf"(?:{_NOUNS}){{0,3}}?{_ATTEMPT}\b(?: {_NO_VERB}[\w\ufffc#][\w'/.%&#+\ufffc-]{{0,30}}+){{0,5}}?"
_OFTEN = (
    r"(?: (?:really|usually|always|never|still|also|actually|absolutely|mostly|now|often|sometimes|currently|mainly|"
    r"both))*+"
)
_NOT = r"(?: (?:don't|do not|dont|no longer))?"
_AM = (
    r"i(?:'m| am|m)(?: (?:also|still|really|actually|now|both|very|severely|slightly|mildly|partially|partly|totally|"
    r"completely|legally|\w{3,}ly))*+"
)
_A = r"(?:an?|the|my|our|some|two|three|four|five|six|seven|eight|nine|ten|\d++|several|many|no|one|half|both)"
_POINTS_AT_IT = (
    r"(?:it|that|this|these|those|you|u|him|her|them|yours?|how|when|where|what|why|to|the (?:way|idea|fact|new|look|"
    r"sound|"
    r"concept|first|second|last|result|update|part)|being|here|everything|both|all (?:of )?(?:it|this|that|you)|my "
    r"words|one more)\b"
)
_PASSING = (
    r"(?:\w{1,30} )?(?:questions?|problems?|requests?|issues?|bugs?|errors?|ideas?|meetings?|calls?|headache|cold|"
    r"fever|flu|feeling|doubts?|"
    r"deadlines?|minutes?|mins?|seconds?|secs?|moments?|look|chat|flights?|train|bus|suggestions?|comments?|favou?r|"
    r"hunch|points?|choice|chance|guess|"
    r"thoughts?|few|lot|lots|bunch|ton|couple|hard time|bad day|great time|good time|while|say|appointments?|"
    r"interviews?|exams?|tests?|clue|"
    r"complaints?|concerns?|updates?|reason|right|case|bit|nap|walk|break|drink|go|try|night|day|weekend|week|trouble|"
    r"difficult(?:y|ies)|accounts?|subscription|contract with|thing|things|stuff|proposals?|orders?|tickets?|option|"
    r"options|reservation|booking|plans?|hangover|"
    r"(?:\w{1,30} )?to (?:do|say|ask|go|add|make|run|fix|finish))"
)
_BODY = (
    r"(?:asthma|diabetes|adhd|autism|epilepsy|migraines?|celiac|coeliac|crohn's|arthritis|dyslexia|eczema|insomnia|"
    r"tinnitus|"
    r"(?:\w{1,30} ){0,2}(?:allerg(?:y|ies)|intolerance|disorder|syndrome|disease|blood pressure|pain|phobia)|type \d|"
    r"(?:\w{1,30} )?(?:kids|children|twins|siblings|brothers|sisters|cats|dogs|pets|grandchildren|hens|chickens|bees))"
)
_TRAIT = (
    r"(?:allergic|vegetarian|vegan|pescatarian|kosher|halal|based|from(?! (?:the future|another|mars)\b)|learning|"
    r"deaf|blind|mute|diabetic|asthmatic|epileptic|dyslexic|"
    r"autistic|celiac|coeliac|pregnant|married(?! to my)|single|divorced|widowed|engaged|retired|bilingual|trilingual|"
    r"intolerant|"
    r"born|raised|self-employed|unemployed|freelancing|studying|teaching|training (?:for|to)|colou?r-?blind|"
    r"short-?sighted|near-?sighted|"
    r"far-?sighted|left-?handed|right-?handed|hard of hearing|lactose|gluten|wheelchair|an? only child|"
    r"\w{1,30}[ -](?:intolerant|handed|sighted|blind|free|averse|bound|sober)|sober|"
    r"\d++ (?:years|yrs)(?: old)?|in my (?:\w{1,30} )?(?:teens|twenties|thirties|forties|fifties|sixties|seventies|"
    r"eighties)|"
    r"(?:dutch|french|german|greek|swiss|czech|thai|welsh|"
    r"\w{2,}(?:ish(?<!selfish)(?<!foolish)(?<!childish)(?<!sluggish)|ese|[^aeiou]ian|rican|ican)))\b"
)
_NO_TRAIT = (
    r"(?:bit|little|lot|mess|fool|idiot|moron|failure|wreck|zombie|few|couple|tad|day|minute|hour|ghost|human(?: "
    r"being)?|person who|"
    r"genius|believer|goner|million|hundred|ticking|touch|nervous|complete|total|walking|sucker|monster|disaster|"
    r"guest|customer|"
    r"(?:\w{1,30} )?(?:member|customer|user|subscriber|caller|client)|\w{1,30} (?:late|mess|idiot|fool|wreck|day|"
    r"disaster|mood)|customer|step|second|third|real)\b"
)
_CONTACT = (
    r"(?:birthday|e-?mail(?: address)?|phone(?: number)?|number|(?:(?:home|postal|mailing|street|billing|shipping|"
    r"delivery) )?address|job|job title|role|profession|occupation|employer|pronouns|"
    r"(?:native|first|mother) (?:language|tongue)|mother tongue|blood type|shoe size|size|height|hobb(?:y|ies)|diet|"
    r"allerg(?:y|ies)|"
    r"nationality|religion|degree|major|budget|preference|nickname|surname|(?:last|middle|maiden|family) name|dob|"
    r"date of birth|"
    r"(?:wedding )?anniversary|home ?town|car|bike|laptop|house|flat|apartment|team|salary|age|weight|goal|dream job|"
    r"star sign|time ?zone)"
)
_NO_STATE = (
    r"(?! (?:not|n't|dead|broken|down|wrong|missing|gone|late|slow|full|empty|ready|done|incorrect|outdated|boring|"
    r"stressful|on|in|at|"
    r"here|there|still|being|going|getting|killing|driving|acting|waiting|the same|off|out|up|safe|unsafe|ok|okay|"
    r"fine|good|great|"
    r"almost|nearly|about to|already|awesome|amazing|awful|terrible|tired|crazy|busy|away|stuck|asking|calling|coming|"
    r"having|"
    r"making|trying|looking|pretty|so|too|very|just)\b)"
)
_RELATIVE = (
    r"(?:wife|husband|partner|spouse|fianc[eé]e?|girlfriend|boyfriend|son|daughter|kids?|child(?:ren)?|twins|baby|"
    r"mother|mom|mum|father|dad|parents|"
    r"brothers?|sisters?|siblings|grandm\w{1,30}|grandpa|grandfather|grandson|granddaughter|aunt|uncle|cousin|niece|"
    r"nephew|boss|manager|"
    r"neighbou?r|room-?mate|flat-?mate|best friend|dogs?|cats?|pets?|horse|rabbit|parrot|hamster|puppy|kitten|team|"
    r"mentor)"
)
_LASTS = (
    r"(?:is (?:an?\b(?! (?:bit|little|mess|pain)\b)|the\b|my\b|called|named|allergic|vegetarian|vegan|deaf|blind|"
    r"diabetic|from|born|\w{1,30}-?intolerant|"
    r"afraid of|scared of|\d++|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|"
    r"fifteen|sixteen|"
    r"seventeen|eighteen|turning|retired|pregnant|autistic|(?-i:[A-Z])\w*+)(?! (?:on|in|at|off|out|away|here|sick|"
    r"ill)\b)|are (?:called|named|\d|vegan|vegetarian|from|allergic|twins|teachers)|"
    r"has (?:an?\b(?! (?:fever|cold|headache|question|point|meeting)\b)|two|three|asthma|diabetes|type|celiac|brown|"
    r"blue|green|red|\w*allerg)|"
    r"have (?:two|three|an?\b)|was born|(?:can't|cannot|doesn't|won't|don't) (?:eat|drink|like|speak|drive|swim|fly)|"
    r"(?:(?:really|also|always|never|absolutely) )?(?:lives?|works?|loves?|hates?|likes?|prefers?|enjoys?|plays?|"
    r"stud(?:y|ies)|teach(?:es)?|speaks?|"
    r"goes to|attends|owns?|runs?|eats?|drinks?|drives?|collects?|sings?|turns|starts (?:school|kindergarten|"
    r"university|college))\b"
    r"(?! (?:it|that|this|you|here|on it)\b))"
)


@dataclass(frozen=True, slots=True)
class NoteRule:
    """A kind of sentence that is worth a note.

    Args:
        category: Of the note.
        importance: From 0 to 1.
        pattern: Of the words that say so.
        words: Of which the sentence has at least one, in small letters: most sentences have none, and are not searched.
        opens: Whether they have to stand where a clause has its subject; else a clause may begin anywhere before them.
    """

    category: Category
    importance: float
    pattern: "regex.Pattern[str]"
    words: frozenset[str]
    opens: bool = True


def _rule(category: Category, words: str, *patterns: str, opens: bool = True) -> NoteRule:
    alternatives = "|".join(patterns)
    # Tried at the given place alone: a clause's subject may be long, and a text has far fewer clauses than places.
    pattern = regex.compile(rf"\G(?:{alternatives})" if opens else alternatives, regex.IGNORECASE)
    return NoteRule(category, _IMPORTANCE[category], pattern, listed(words), opens)


_IMPORTANCE = {Category.DECISION: 0.8, Category.OUTCOME: 0.7, Category.STRATEGY: 0.7, Category.NOTE: 0.6}
_I_AM = (
    rf"{_TRAIT}",
    (
        r"working(?! (?:on (?:it|that|this|the)|late|today|tonight|tomorrow|until|till|my \w{1,30} off|hard|with what|"
        r"again)\b)"
    ),
    rf"an? (?!{_NO_TRAIT})\w",
    (
        r"(?:(?:scared|afraid|terrified|frightened) of|(?:good|bad|terrible|great|hopeless|better|best) (?:at|with) "
        r"(?!it\b|this\b|that\b|the moment|night\b)|"
        r"(?:available|free|off|busy) (?:on|every|all day on) (?:mon|tues|wednes|thurs|fri|satur|sun|week)|\d[\d.,]* "
        r"?(?:m|cm|kg|ft|feet|lbs?)\b|"
        r"on (?:(?:an? )?(?:\w{1,30}[ -]){0,2}(?:diet|medication|meds|insulin|metformin|antidepressants|blood thinners|"
        r"beta blockers|the spectrum))\b|"
        r"taking (?:an? )?(?:\w{1,30} ){0,2}(?:course|classes|lessons)\b|"
        r"the (?:oldest|youngest|eldest|only|middle|head|owner|founder|mother|father|ceo|cto|captain|manager|chair|"
        r"editor|"
        r"author|maintainer)\b)"
    ),
)
_I_DO = (
    rf"{_NOT}{_OFTEN} (?:like|love|hate|enjoy|adore|dislike)\b(?! {_POINTS_AT_IT}|[.,!;:)]|$)",
    (
        rf"{_NOT}{_OFTEN} (?:eat|drink|use|wear|smoke|follow)\b(?! (?:it|that|this|these|those|them|to|the (?:link|"
        rf"button|"
        rf"form|code|word)|"
        r"out|in|at|now|later|lunch|dinner|breakfast at|you|up|your|my words)\b|[.,!;:)]|$)"
    ),
    (
        r" (?:own|drive|speak|play|study|teach|collect|ride|grow|breed|practi[sc]e|suffer from|commute|volunteer|avoid|"
        r"paint|knit|sew|bake|"
        r"brew|swim|cycle|coach|raise|keep (?:bees|hens|chickens|kosher|halal)|sleep|read|write|cook|run(?! (?:out|"
        r"into|"
        r"late|it|that|this|away|the)\b))"
        r"\b(?! (?:it|that|this|these|those|them|you|up|on it|here|there|to you|along|down|your|his|her|the (?:message|"
        r"email|letter|docs?|ticket|thread|text))\b|[.,!;:)]|$)"
    ),
    (
        r" take (?:\w{1,30} )?(?:\w{1,30} (?:every|twice|once|daily)|insulin|metformin|\w{1,30} pills|medication|"
        r"(?:\w{1,30} ){1,3}(?:a|per) (?:day|week))\b"
    ),
    rf" have(?: also| now| still| currently)? (?:{_A} (?!{_PASSING}\b)\w|{_BODY}\b)",
    (
        r" work (?:out (?!of\b)|as|from|remotely|nights?|days|shifts|(?:night|day|early|late|double) shifts?|weekends|"
        r"mornings|evenings|part|full|freelance|"
        r"in(?! (?:progress|vain|silence|peace|bursts|my (?:head|mind))\b)|for (?:the|an?(?! (?:living|reason))|my|our|"
        r"myself)|at (?:the|an?|my|our|night|home)|"
        r"with (?:people|kids|children|animals|the|an?|my|our|\w{1,30}s)|on (?:the|an?|my|our)|mostly|\d)\b"
    ),
    r" work (?:for|at|with) \ufffc?(?-i:[A-Z])",
)
_OF_ONESELF = (
    rf"{_AM} (?:{'|'.join(_I_AM)})",
    rf"i{_OFTEN}(?:{'|'.join(_I_DO)})",
    r"my name(?: is|'s)\b(?! (?:not|on|in|mud|wrong|missing|still|spel\w{1,30}|mis\w{1,30}|already)\b)",
    r"i (?:don't|do not|dont|never) (?:smoke|drink|drive|cook|swim|gamble)\b",
    r"i turn(?:ed)? (?:\d|twenty|thirty|forty|fifty|sixty|seventy|eighty|eighteen)",
    (
        r"i(?:'ve| have)?(?: just| recently)? (?:got (?:married|divorced|engaged|promoted)|graduated|majored in|"
        r"(?:co-)?founded|trained as|"
        r"studied (?!(?:it|this|that|your)\b)|started (?:an?|my)(?: own)? (?:company|business|family|bakery|shop|band|"
        r"studio))\b"
    ),
    (
        r"we(?: also| still| now)? have (?:an?|two|three|four|five|six|\d++|no|twin) (?:(?:\w{1,30} )?(?:kids?|"
        r"child(?:ren)?|sons?|daughters?|dogs?|cats?|horses?|hens|chickens|"
        r"goats|sheep|cows|garden|allotment|piano|balcony|cabin|boat|twins|pets?))\b"
    ),
    (
        r"we(?: also| mostly| only| still| now| always)? use (?!it\b|this\b|that\b|these\b|those\b|them\b|to\b|the "
        r"(?:link|button|same|word))\w"
    ),
    (
        r"i(?:'ve| have|ve) been (?!waiting|trying|thinking|looking|meaning|calling|on |stuck|sick|ill|busy|up|awake|"
        r"here|there|asking|"
        r"sitting|wondering|getting|having|seeing|unable|experiencing|dealing|fighting|staring|debugging|at|in|to|told|"
        r"running late)"
        r"[^.!?,;]{2,60}? (?:since|for (?!me|you|him|her|them|the|minutes|hours|an? (?:few )?(?:minute|hour|bit|"
        r"second)|"
        r"\d+ (?:min|hour|hr|sec)|(?:two|three|four|five) (?:minutes|hours))|all my life)\b"
    ),
    (
        r"i was (?:born|raised|brought up|diagnosed with)\b|i grew up\b|i come from\b|i(?:'ve| have)?(?: just| "
        r"recently| "
        r"only)? moved (?:here|in with)\b"
    ),
    (
        r"i(?: really| absolutely| just)? (?:can't|cannot|cant|can not|won't|don't) (?:stand|eat|drink|tolerate|swim|"
        r"drive|read music|speak)\b(?! (?:it|that|this|you)\b)"
    ),
    rf"i(?: still| also)? (?:don't|do not|dont) have (?:an? (?!{_PASSING}\b)\w|{_BODY}\b|any (?:{_BODY}|pets))",
    (
        r"i(?: still| also| really| just| always)? want to (?:learn|become|be an?|study|quit (?:smoking|my)|stop "
        r"(?:smoking|drinking)|lose \w|run an?|retire|write an? "
        r"(?:book|novel)|move to|travel (?:to|around|more)|open an?|improve my|start (?:an?|my) |get (?:better at|fit|"
        r"into))\b"
    ),
    (
        r"i(?: always| usually| also)? need (?:(?:an?|my|to use an?) (?:\w{1,30} )?(?:wheelchair|ramp|interpreter|visa|"
        r"cane|walker|inhaler|epipen|screen reader|quiet|"
        r"step-free|gluten-free|vegan|vegetarian|kosher|halal)|glasses|insulin|captions|subtitles|(?:at least "
        r")?\w{1,30} "
        r"hours of)\b"
    ),
    (
        rf"(?:i|we){_OFTEN} live (?:alone|abroad|with (?!it|that|this|the (?:consequences|fact)|regret)|near|by|next|"
        rf"outside|close|north|south|east|west|"
        rf"(?:just |right )?(?:outside|about|above|below|between|off|across|around)|on (?:the|an?|my|our)|together|"
        rf"downtown|upstairs|"
        rf"at (?:home|the|my|number|\d)|in (?:(?:the|my) (?:countryside|suburbs|mountains|city|town|centre|center|"
        rf"north|"
        rf"south|east|west|woods|middle of|old|"
        rf"same (?:house|building|street|town|city)|family|parents')|an? (?!bubble|dream|fantasy|nightmare|constant|"
        rf"state|"
        rf"world|lie|hurry|shoe|different "
        rf"(?:world|reality))|one of|rural|central|north|south|east|west|downtown|student|shared|social|sheltered|"
        rf"assisted))\b"
    ),
    (
        r"i (?:don't|do not|never) work (?:on )?(?:weekends|mondays|tuesdays|wednesdays|thursdays|fridays|saturdays|"
        r"sundays|mornings|evenings|nights)\b"
    ),
    r"my (?:\w{1,30} )?(?:all-time )?favou?rite\b(?! (?:part|bit)\b)",
    (
        rf"my (?:(?:new|current|personal|work|private|old|own|home|second|full|preferred|whole) )?{_CONTACT}(?: "
        rf"(?!is\b|"
        rf"are\b)[\w'-]+){{0,3}}? ?(?:is|are|'s)\b{_NO_STATE}|my birthday is (?:on|in)\b"
    ),
    (
        rf"(?:both |all )?my (?:(?:\w{{1,30}} )?(?:older|younger|elder|oldest|youngest|eldest|little|big|late|ex|step|"
        rf"new|"
        rf"own|best|two|three|four|oldest|late) )?{_RELATIVE}"
        rf",?(?: (?-i:[A-Z])[\w'-]+,?| and (?:i|me)\b)? (?:{_LASTS})"
    ),
)
RULES: tuple[NoteRule, ...] = (
    _rule(
        Category.DECISION,
        "decided chose chosen agreed settled picked opted voted resolved ruled concluded committed approved signed "
        "rejected made ended went "
        "gone going go use decision stick stay keep drop dropping keeping switching sticking staying sunsetting "
        "deprecating adopting canceling cancelling postponing replacing",
        rf"\b{_GROUP}{_HAVE} (?:(?:decided|chose|chosen)(?! (?:nothing|between)\b)|agreed(?! with\b)|settled on|"
        rf"picked(?! (?:[\w']+ )?up)|opted|voted (?:to|for|against)|resolved to|ruled out|"
        r"concluded|committed to|approved|signed off|rejected|made up (?:my|our) minds?|ended up (?:choosing|picking|"
        r"going with))\b",
        rf"\b(?:{_GROUP}{_HAVE} (?:went|gone)|we(?:'re| are) going|we(?:'ll| will) go|i(?:'ll| will) go) with "
        rf"(?!him\b|her\b|them\b|you\b|me\b|us\b|my\b|our\b|it\b|"
        r"the (?:kids|family|others|guys|dogs?|boys|girls|children|parents|flow|class|team)\b|(?:a|some) (?:friends?|"
        r"colleagues?)\b|friends\b|\w{1,30} to\b)",
        r"\blet's go with\b|\bwe(?:'ll| will) (?:use|stick (?:with|to)|stay with|keep (?!you\b|in touch|an eye|it\b|"
        r"that\b|this\b|going|doing|having)"
        r"|drop (?!by\b|off\b|you\b|it off))\b|\bwe(?:'re| are) (?:dropping (?!off\b|by\b|him|her|them|the (?:kids|"
        r"dog))|keeping (?!an eye|it\b|you\b|track|up\b)|"
        r"switching (?:to|over|from)|sticking (?:with|to)|staying (?:with|on)|sunsetting|deprecating|adopting|"
        r"cancell?ing|postponing|replacing)\b",
        r"\bthe (?:final )?decision (?:is|was|is made|was made)(?: made)?(?= (?:to|that|we|for|against|in favou?r)\b|"
        r":)",
        r"\bit(?:'s| is| was| has been) (?:now |been )?(?:decided|agreed|settled)(?= (?:that|to|on)\b|:)",
        opens=False,
    ),
    _rule(
        Category.DECISION,
        "decision decided agreed opted resolved chose voted settled",
        r"(?:final )?decision: |(?:decided|agreed|opted|resolved|chose|voted|settled)(?: (?:to|on|that|against|for|in "
        r"favou?r)\b)",
    ),
    _rule(
        Category.OUTCOME,
        "rolled reverted migrated upgraded switched shipped fixed finished launched deployed released solved won "
        "passed completed merged lost turned resulted",
        rf"\b(?:we|i){_HAVE} (?:shipped|fixed|finished|launched|deployed|released|solved|won|passed|completed|merged|"
        rf"rolled back|"
        r"reverted|migrated|upgraded|switched (?:to|over|from)|lost the (?:tender|game|match|case|bid|vote|final|"
        r"election|client|contract|deal)|lost(?! (?:my|our|the|him|her|"
        r"it|them|you|track|interest|count|touch|sight|time)\b))\b",
        r"\bturned out\b|\bresulted in\b",
        opens=False,
    ),
    _rule(
        Category.OUTCOME,
        "result results outcome outcomes worked failed fixed broke shipped deployed released launched merged solved "
        "completed passed won "
        "succeeded crashed timed went paid backfired resolved rejected approved signed accepted granted published "
        "installed cancelled live cured lost held helped dropped fell rose improved increased decreased grew shrank "
        "doubled halved tripled restored finished did",
        r"(?:results?|outcomes?): +\S",
        r"(?:it|that|this)(?: all| also| just| finally| really)? (?:worked|failed|fixed|broke)\b",
        r"(?:(?:finally|just|successfully) )?(?:fixed|shipped|deployed|released|launched|merged|solved|completed|"
        r"passed|won)(?= (?:the|my|our|a|all|both|"
        r"v?\d|version|it|\w{1,30} \d))",
        r"\w{1,30}ing (?:[\w'/.-]{1,30} ){1,7}?(?:helped|worked|solved it|fixed it|did the trick)\b",
        (
            r"\d+ (?:of \d+ )?(?:\w{1,30} )?(?:passed|failed)\b|(?-i:[A-Z])\w{1,30} passed (?:his|her|their|the) "
            r"(?:\w{1,30} )?(?:test|exam|bar|interview|course|audit)\b"
        ),
        # What became of a thing.
        (
            rf"{_THING}(?:(?:succeeded|crashed|timed out|went (?:through|live|well|wrong)|paid off|backfired)\b(?! "
            rf"into\b)"
            r"|(?:is|are|was|were|got|has been|have been)(?: now| finally| already| all)? (?:fixed|resolved|solved|"
            r"merged|"
            r"shipped|deployed|released|rejected|approved|signed|accepted|granted|published|installed|cancelled|live)\b"
            r"(?! (?:for|at|on) (?:\w{1,30} )?(?:o'clock|noon|\d|price|next))"
            r"|(?:fixed|solved|resolved|cured) (?:the|it|my|our|this|that|everything)\b|(?:doubled|halved|tripled)\b"
            r"|worked(?: (?:perfectly|fine|well|great|out|flawlessly|like a charm|as expected|nicely|now))?(?=[.!,;]|$)"
            r"|(?:dropped|fell|rose|improved|increased|decreased|grew|shrank|went (?:up|down|from))(?: \w{1,30})? "
            r"(?:by|to|from) (?:half|a (?:third|quarter)|[€$£]?\d))"
        ),
        rf"(?:{_OF_ATTEMPT}|she|he|they) (?:failed|passed|won|lost|worked|broke|held|helped|restored fine|completed|"
        rf"finished|did the trick)\b(?! (?:my stop|his|her|their|away|my|up|patience|interest)\b)",
    ),
    _rule(
        Category.STRATEGY,
        "going plan planning intend aim now always never next",
        r"\b(?:we|i)(?: (?:still|also|now))? (?:plan|intend|aim) (?:to|on)\b|\b(?:we're|we are|i'm|i am)(?: still| "
        r"also| now)? planning (?:to|on)\b|\bfrom now on\b|\bgoing forward,? (?:we|i)\b|\bwe should (?:always|"
        r"never)\b(?! have\b)",
        r"\bnext time,? (?=(?:we|i|let's|use|run|ask|check|start|don't|please)\b)",
        opens=False,
    ),
    _rule(
        Category.STRATEGY,
        "idea always never plan strategy approach goal next step steps roadmap first then before after instead start "
        "begin",
        r"(?:(?:we|i)(?: should| must| will|'ll)? )?(?:always|never) (?:use|run|deploy|commit|ask(?! me\b| that\b)|"
        r"merge|push|check|test|back|wear|book|order|bring|review|"
        r"save|lock|close|turn|sign|store|encrypt|rotate|pin|tag|squash|rebase|mention|cc|reply|escalate|offer|"
        r"confirm|verify|validate|log|restart|back|"
        r"document|measure|ship|release|assume|trust|hard-?code|edit|delete|mix|share|cache|retry)\b",
        r"(?:the|our|my)(?: (?:\w{1,30} )?(?:new|current|long-term|overall|basic|whole|rough|general|\w{1,30}ing|"
        r"\w{1,30}))? ?(?:plan|strategy|approach|goal|idea)(?: (?:for|from|here|now|with|of|in) ?[^.!?,;:]{0,40}?)?"
        r"(?: is(?: still| now| simply| just)?(?= (?:to|that we|that i|first|\w{1,30}ing|as follows|simple:|we|the "
        r"following)\b)|:(?= \S))",
        r"(?:strategy|plan|approach|next steps?|roadmap): +\S",
        r"(?:we|i)(?:'re| are|'m| am) (?:going to|gonna) (?!the\b|an?\b|my\b|our\b|bed\b|be\b|"
        r"(?-i:[A-Z]))[^.!?;]{3,120}?\b(?:first|(?:and )?then|before|after that|instead of)\b",
        r"(?:we|i)(?:'ll| will) (?:first |start (?:with|by|small|out)|begin (?:with|by))\b",
        r"first,? (?!of\b|the\b|time\b|thing\b|i was\b|it\b|he\b|she\b|they\b|you\b)\w{1,30} [^.!?;]{0,80}?(?:,|and) "
        r"then \w",
        r"(?:always|never) (?!mind|again|been|ever|an?\b|the\b|had|have|seen|heard|is|was|happy|nice|good|great|late|"
        r"on|in|at|there|here|so|too|as|know|"
        r"knew|thought|got|said|did|does|would|could|will|happened|love|like|enjoy|feel|want|need|felt|went|came|saw|"
        r"met|did|one|me|my|your|you|"
        r"under|over|\w{1,30}ed\b|\w{1,30}ing\b|\w{1,30}[^s]s\b)\w{1,30} [\w'\"(\ufffc]",
        r"first,? (?:we|i)(?:'ll| will)? [^.!?;]{3,120}?\bthen\b",
    ),
    _rule(
        Category.NOTE,
        "remember note keep don't",
        r"(?:please )?(?:remember|note|keep in mind|don't forget)\b(?! (?:where|when|what|who|how|why|if|whether|me|"
        r"to call|the difference)\b)",
    ),
    _rule(Category.NOTE, "i i'm i've im ive we my", *_OF_ONESELF),
)
OF_ONESELF = RULES[-1]
