"""Read statements of speakers about themselves in six languages: where they live and work, and what is theirs.

A clause counts if it begins with its subject or with when it holds ("Seit Mai wohne ich in Graz"). What depends on
another clause, asks or supposes begins otherwise, so it is none. English statements between names are those of
:mod:`lamina.extraction.edges`; the others stand here.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import regex

from lamina.extraction.clauses import clause_starts
from lamina.extraction.facts import Fact
from lamina.extraction.speech import Statement
from lamina.policies.validity import OWN_VALUE
from lamina.text.english import listed

MAX_CLAUSE_CHARS = 400
MAX_VALUE_CHARS = 60


@dataclass(frozen=True, slots=True)
class OwnStatement:
    """A relation of the speaker to a value, and whether it begins the value's state rather than ending it."""

    relation: str
    value: str
    begins: bool = True


@dataclass(frozen=True, slots=True)
class _Rule:
    """The pattern of a clause.

    Its group ``v`` is the value of the relation, ``old`` the one that the relation ``ended`` ends; ``own`` names what
    is the speaker's own where there is no relation.
    """

    pattern: "regex.Pattern[str]"
    relation: str = ""
    ended: str = ""


_NAMED = (
    r"(?-i:(?:\d*+|\p{Ll})\p{Lu}[\p{L}\p{M}\p{N}_.'’&-]*+"
    r"(?: (?:(?:de|del|do|da|du|des|la|le|of|am|an der|von|&) ){0,2}+\p{Lu}[\p{L}\p{M}\p{N}_'’&-]*+){0,4}+)"
)
_FIGURE = r"[$€£¥+#]? ?\d[\d.,:/-]*+(?: ?(?:%|[$€£¥]|\p{L}[\p{L}.]{0,11}(?!\p{L})))?(?: \d{1,4}+(?!\p{L}))?"
_END = (
    r"(?=\s*+(?:[.!,;:()…。！，、]|$|(?:now|any ?more|instead|these days|nowadays|and|but|since|because|not|rather|"
    r"again|jetzt|nun|und|aber|weil|seit|statt|nicht|ahora|y|pero|desde|porque|en vez|en lugar|maintenant|désormais|"
    r"et|mais|depuis|au lieu|car(?= \p{L})(?! (?:now|and|but|these)\b))\b))"
)
_WORDS = r"[\p{L}\p{M}\p{N}'’+#&/.-]{1,40}(?: [\p{L}\p{M}\p{N}'’+#&/-]{1,40}){0,4}?"
_EAST = r"[\p{Han}\p{Katakana}ーA-Za-z0-9０-９・.:&+ -]{1,24}"
_KINDS = {"name": _NAMED, "words": _WORDS + _END, "figure": _FIGURE, "east": _EAST, "short": _EAST + "?"}
# "I'm 2.5 hours away", "I'm 5 and a half minutes late": a number that goes on is no age.
_AGE_END = (
    r"(?=\s*+(?:[!;)…]|\.(?!\d)|,(?=\s*\S)(?![^.!?;]*\d)|$|(?:now|jetzt|nun|ahora|ya|maintenant)\b|"
    r"(?:and|but|und|aber|y|pero|et|mais) (?!(?:an? |half|ein|halb|drei|medi[oa]|demi|une? |counting)|\d)))"
)
_WEIGHT = (
    r"(?P<v>\d{1,3}(?:[.,]\d{1,2})?+(?: ?(?:kg|kgs|kilos?|kilogram(?:s|m|mes|os)?|kilogrammes?|pounds?|lbs?|stone|pfund|"
    r"libras|livres)\b(?: \d{1,2} ?(?:pounds?|lbs?))?|(?=\s*+(?:[!;]|[.,](?!\d)|$|(?:now|jetzt|ahora)\b))))"
)
# A vehicle is named, or is one of these; whoever drives a hard bargain drives none.
_VEHICLE = (
    r"(?=(?!(?:with|for|to|in|at|from|on|of|by)\b)(?:[\p{L}\d-]+ (?!(?:with|for|to|in|at|from|on|of|by|con|para|avec|pour)\b))"
    r"{0,2}(?:(?-i:\p{Lu})|(?:car|truck|lorry|van|minivan|bus|taxi|cab|tram|train|motorcycle|motorbike|bike|scooter|moped|tractor|"
    r"pickup|suv|ev|hybrid|jeep|convertible|wagon|sedan|hatchback|coupe|forklift|coche|carro|auto|camión|camioneta|moto|"
    r"furgoneta|autobús|tractor|voiture|camion|camionnette|vélo|tracteur|fourgon)\b))"
)
_FIELD = (
    r"(?:(?-i:\p{Lu})|(?:[\p{L}-]+ ){0,2}(?:\p{L}+(?:ology|onomy|nomics|matics|istry|sophy|ography|ometry|ecture|logie|nomie|"
    r"graphie|sophie|logía|nomía|grafía|sofía|tique|ística)|"
    r"physics|physique|maths?|mathématiques|statistics|engineering|nursing|teaching|medicine|médecine|medicina|law|droit|"
    r"derecho|history|histoire|historia|arts?|artes?|music|musique|música|dance|design|drama|literature|littérature|"
    r"literatura|linguistics|education|business|finance|accounting|marketing|management|journalism|periodismo|pharmacy|"
    r"pharmacie|farmacia|chimie|química|física|politics|ethics|sciences?|theology|economía|informática|informatique|"
    r"ingeniería|enfermería|lettres|commerce|gestion|cinéma|arquitectura|matemáticas)\b)"
)
# Of an occupation that somebody took up: "I became angry" and "I became a fan" name none.
_OCCUPATION = (
    r"(?=(?!(?:[\p{L}-]+ )?(?:better|bigger|\p{L}*father|\p{L}*mother|\p{L}*brother|\p{L}*sister|member|user|customer|"
    r"subscriber|believer|lover|loner|smoker|drinker|hater|prisoner|follower|owner|\p{L}*owner|monster|number|matter|factor|"
    r"protestant|christian|vegetarian|comedian at heart)\b)(?:[\p{L}-]+ ){0,3}?(?:\p{L}{2,}(?:er|or|ist|ician|rian|eer|tant|man|"
    r"woman)|chef|nurse|coach|cook|head|lead|chief|pilot|judge|architect|analyst|vet|clerk|monk|guide|partner|C[A-Z]O|VP)"
    r"(?: (?:of|for|at|in) |\s*+[.!,;]|$| (?:and|but|now|last|this|in|two|\d)))"
)
_PLACE_HOLDER = regex.compile(r"<(old )?(name|words|figure|east|short)>")


def _rules(table: str, **parts: str) -> tuple[_Rule, ...]:
    """Return the rules of a table; a line has the relation, that which it ends if any, and the clause.

    ``<name>`` stands for a name, ``<words>`` for up to five words, ``<figure>`` for a number with its unit, ``<east>``
    for a run without hiragana, each also as the former value (``<old name>``); ``{part}`` for one of the parts.
    """
    rules = []
    for line in filter(None, map(str.strip, table.splitlines())):
        relation, ended, clause = (part.strip() for part in line.split("||"))
        for part, words in parts.items():
            clause = clause.replace(f"{{{part}}}", words)
        clause = _PLACE_HOLDER.sub(lambda match: f"(?P<{'old' if match[1] else 'v'}>{_KINDS[match[2]]})", clause)
        rules.append(_Rule(regex.compile(rf"\G(?:{clause})", regex.IGNORECASE), relation, ended))
    return tuple(rules)


_ENGLISH = _rules(
    r"""
    works_as || || i(?:'m| am)?{now} work(?:ing)? as (?:an? (?!(?:team|rule|result|matter|means|whole|group|couple|pair)\b)|(?:the )?(?=(?:\p{L}+ )?(?:head|lead|chief|director|manager|deputy|assistant|editor)\b)|(?=(?-i:\p{Lu}{2,5})\b))<words>
    works_as || || i(?:'m| am){now} an? <words> by (?:profession|trade|training)
    works_as || || i(?:'ve| have)?{now} (?:(?:became|become) (?:an? |the |(?=head of |team lead|chief |(?-i:C[A-Z]O)\b)){occupation}|(?:was|got) promoted to (?:an? |the )?)<words>
    drives || || i{now} drive an? {vehicle}<words>
    studies || || i(?:'m| am)?{now} (?:study|studying|majoring in|major in) (?={field})<words>
    has_age || || i(?:'m| am){now} (?P<v>\d{1,3})(?: years old)?{age_end}
    has_age || || i(?:'ve| have)?{now} turned (?P<v>\d{1,3})(?:{age_end}|(?= (?:today|yesterday|recently|last|this|on|in|a (?:week|month|day|year)|years old)\b))
    has_weight || || i{now} weigh {weight}
    follows_diet || || i(?:'m| am|'ve become|'ve gone| have become| became| went| eat){now} (?:an? )?(?P<v>{diets})\b
    supports || || i{now} (?:support|root for) (?:the )?<name>
    prefers || prefers_no_longer || i{now} prefer (?P<v>(?!to )[\p{L}\p{N} '’-]{1,40}?) (?:over|(?<!\p{L}ing )to|(?<=\p{L}ing )to(?= \p{L}+ing\b)|rather than|instead of) (?P<old>[\p{L}\p{N}'’-]{1,25}){end}
    uses || stopped_using || i(?:'ve| have)?{now} (?:switched|migrated|changed)(?: over)? from <old name> (?:over |back )?to <name>
    || || my{new} (?P<own>{noun})(?: is| was| has been|'s|'ve been)?(?: just| recently| now)? (?:changed|moved|switched|updated|upgraded|set|renamed|raised|lowered|postponed|brought forward|rescheduled|went up|went down|rose|dropped|fell|grew)(?: from [^,.;]{1,30}?)? to (?:<figure>|<words>)
    || || i(?:'ve| have)?{now} (?:changed|moved|switched|updated|set|renamed) my{new} (?P<own>{noun})(?: from [^,.;]{1,30}?)? to <words>
    || || my{new} (?P<own>{noun})(?: is| are|'s|'re){now}(?: called| named| at| on)? (?:<figure>|<name>){end}
    || || my{new} (?P<own>{attribute})(?: is| are|'s|'re){now} (?!not |no |the |to |that |when |what |how |so |too |very |a bit )(?:an? )?<words>
    || || my{new} (?P<own>{occupation_or_means})(?: is| are|'s|'re){now} (?!not |no |the |to |that |when |what |how |so |too |very |a |\p{L}+ing\b|\p{L}{3,}ed\b|{judged}\b)(?:an )?<words>
    || || my{new} (?P<own>job|job title|title|profession|occupation|role)(?: is| are|'s|'re){now} a {occupation}<words>
    """,
    now=r"(?: (?:now|currently|just|recently|also|still|actually|mostly|really|usually|always|only|already))*+",
    new=r"(?: (?:new|current|actual|own|latest|present))?+",
    noun=r"[\p{L}-]{2,20}(?: [\p{L}-]{2,20}){0,2}?",
    attribute=(
        r"(?:(?:favou?rite|preferred|default|mother|native|go-to) [\p{L}-]{2,20}(?: [\p{L}-]{2,20})?"
        r"|(?:status|marital status|hair colou?r|eye colou?r"
        r"|gender|religion|nationality|major|blood type|shoe size|size)(?! \p{L}+ (?:is|'s)))"
    ),
    # "My stack is overflowing", "my job is hard": of these much is said that is no value.
    occupation_or_means=r"(?:job title|job|title|profession|occupation|role|diet|budget|commute|tech stack|stack|operating system)",
    judged=(
        r"(?:in|on|at|under|over|up|down|about|like|as|for|of|great|good|bad|better|worse|best|worst|hard|easy|tough|boring|long|short|"
        r"tight|full|empty|huge|tiny|big|broken|old|new|terrible|awful|horrible|stressful|amazing|fine|gone|done|dead|slow|fast|"
        r"safe|secure|unclear|clear|ok|okay|fun|important|pretty|really|quite|rather|still|always|never|more|less|much|my|our|all|"
        r"just|only|mostly|this|being|lost|stuck|healthy|unhealthy|complicated|complex|simple|different|similar|difficult)"
    ),
    age_end=_AGE_END,
    weight=_WEIGHT,
    vehicle=_VEHICLE,
    field=_FIELD,
    occupation=_OCCUPATION,
    diets="vegan|vegetarian|pescatarian|omnivore|flexitarian|keto|halal|kosher|gluten[- ]free|meat again",
    end=_END,
)
_GERMAN = _rules(
    r"""
    lives_in || || (?:ich (?:wohne|lebe)|{when} (?:wohne|lebe) ich){now} in (?:der |den |dem )?<name>
    moved_to || || (?:ich bin|{when} bin ich){now}(?: [^,.;]{1,30}?)? (?:nach|in die|ins) <name>(?: [^,.;]{1,20}?)? (?:gezogen|umgezogen|übersiedelt)
    moved_to || || (?:ich bin|{when} bin ich){now}(?: [^,.;]{1,30}?)? umgezogen,? nach <name>
    moved_to || || (?:ich (?:zog|ziehe)|{when} (?:zog|ziehe) ich){now} (?:jetzt )?nach <name>
    || moved_away_from || ich (?:wohne|lebe) nicht (?:mehr|länger) in <old name>
    works_at || || (?:ich arbeite|{when} arbeite ich){now} (?:bei|für)(?: der| dem)? <name>
    joined || || (?:ich (?:habe|bin)|{when} (?:habe|bin) ich){now}(?: [^,.;]{1,30}?)? (?:bei|zu|zur)(?: der)? <name> (?:angefangen|begonnen|gewechselt)
    || left || ich arbeite nicht (?:mehr|länger) (?:bei|für) <old name>
    || left || ich habe(?: [^,.;]{1,20}?)? bei <old name>(?: [^,.;]{1,20}?)? (?:gekündigt|aufgehört)
    works_as || || (?:ich arbeite|{when} arbeite ich){now} als <words>
    works_as || || ich bin{now} <name> von beruf
    is_named || || ich heiße{now} <name>
    married_to || || ich bin{now} mit <name> verheiratet
    uses || stopped_using || (?:ich (?:nutze|benutze|verwende)|{when} (?:nutze|benutze|verwende) ich){now} <name> (?:statt|anstatt|anstelle von) <old name>
    uses || stopped_using || ich bin{now} von <old name> (?:auf|zu) <name> (?:umgestiegen|gewechselt)
    uses || || (?:ich (?:nutze|benutze|verwende)|{when} (?:nutze|benutze|verwende) ich){now} <name>
    drives || || (?:ich fahre|{when} fahre ich){now} (?:einen|eine|ein) <name>
    studies || || (?:ich studiere|{when} studiere ich){now} (?!in |an |seit )<name>
    has_age || || ich bin{now} (?P<v>\d{1,3})(?: jahre alt)?{age_end}
    has_weight || || ich wiege{now} {weight}
    follows_diet || || ich (?:bin|ernähre mich|esse|lebe){now} (?P<v>vegan|veganer(?:in)?|vegetarisch|vegetarier(?:in)?|pescetarier(?:in)?)\b
    reports_to || || ich berichte{now} an <name>
    || || {mine} (?P<own>[\p{L}-]{2,30})(?: ist| heißt| lautet| beträgt){now} (?:<figure>|<name>|(?P<v>\p{Ll}{3,20})){end}
    """,
    when=r"(?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|zurzeit|seit [^,.;]{1,25}?|ab heute|heute|(?:letzten|letzte|letztes|vorige|vorigen) \p{L}+|gestern|im \p{L}+|am [^,;]{1,20}?)",
    now=r"(?: (?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|zurzeit|gerade|nur noch|wieder|seit [^,.;]{1,20}?|schon|auch|noch|kürzlich|vor kurzem|letzten? \p{L}+|gestern|heute))*",
    mine=r"mein(?:e)?(?: (?:neuer?|neues|aktueller?|aktuelles|jetzige[rs]?))?",
    age_end=_AGE_END,
    weight=_WEIGHT,
    end=_END,
)
_SPANISH = _rules(
    r"""
    lives_in || || {when}(?:yo )?(?:vivo|resido){now} en <name>
    moved_to || || {when}(?:yo )?me (?:mudé|he mudado|trasladé|he trasladado|acabo de mudar|fui a vivir|he ido a vivir){now}(?: [^,.;]{1,20}?)? a <name>
    || moved_away_from || ya no (?:vivo|resido) en <old name>
    works_at || || {when}(?:yo )?trabajo{now} (?:en|para) <name>
    joined || || {when}(?:empecé|he empezado|comencé|he comenzado) a trabajar{now} (?:en|para) <name>
    || left || ya no trabajo (?:en|para) <old name>
    || left || (?:dejé|he dejado) (?:mi (?:trabajo|empleo) en )?(?:de trabajar en )?<old name>
    works_as || || {when}(?:yo )?trabajo{now} (?:como|de) <words>
    is_named || || me llamo{now} <name>
    married_to || || estoy{now} casad[oa] con <name>
    uses || stopped_using || {when}(?:yo )?(?:uso|utilizo){now} <name> (?:en lugar de|en vez de) <old name>
    uses || stopped_using || (?:cambié|he cambiado|me pasé|me he pasado) de <old name> a <name>
    uses || || {when}(?:yo )?(?:uso|utilizo){now} <name>
    drives || || {when}(?:conduzco|manejo){now} una? {vehicle}<words>
    studies || || {when}estudio{now} (?={field})<words>
    has_age || || {when}tengo{now} (?P<v>\d{1,3}) años(?: de edad)?{age_end}
    has_weight || || {when}peso{now} {weight}
    follows_diet || || {when}(?:soy|me he hecho|me hice){now} (?P<v>vegan[oa]|vegetarian[oa]|pescetarian[oa])\b
    reports_to || || {when}mi jef[ea](?: \p{L}+)? es{now} <name>
    || || {when}mi (?:(?:nuev[oa]|actual) )?(?P<own>[\p{L}-]{2,25}(?: (?:favorit[oa]|preferid[oa]|actual|nuev[oa]|de \p{L}{2,15}))?)(?: es| está| se llama){now} (?:el |la )?(?:<figure>|<name>|(?P<v>\p{Ll}{3,20})){end}
    """,
    when=r"(?:(?:ahora|actualmente|desde [^,.;]{1,25}?|hoy(?: en día)?|últimamente|en \p{L}+|ayer|hace poco|la semana pasada|el mes pasado),? )?+",
    now=r"(?: (?:ahora|actualmente|ya|también|todavía|aún|desde [^,.;]{1,20}?|hoy|últimamente))*",
    age_end=_AGE_END,
    weight=_WEIGHT,
    vehicle=_VEHICLE,
    field=_FIELD,
    end=_END,
)
_FRENCH = _rules(
    r"""
    lives_in || || {when}(?:j'habite|j’habite|je vis|je réside|je loge){now} (?:à|au|aux|en|dans|sur) (?:la |le |l')?<name>
    moved_to || || {when}(?:j'ai|j’ai|je viens de|nous avons){now} (?:déménag(?:é|er)|emménag(?:é|er))(?: [^,.;]{1,20}?)? (?:à|au|aux|en) <name>
    moved_to || || {when}je me suis{now} installée? (?:à|au|aux|en) <name>
    || moved_away_from || (?:je n'habite|je n’habite|je ne vis) plus (?:à|au|aux|en) <old name>
    works_at || || {when}(?:je travaille|je bosse){now} (?:chez|pour|à la|à l')(?: )?<name>
    joined || || {when}(?:j'ai|j’ai){now} (?:rejoint|commencé chez|commencé à travailler (?:chez|pour)|été embauchée? (?:chez|par)) <name>
    || left || je ne travaille plus (?:chez|pour) <old name>
    || left || (?:j'ai|j’ai){now} (?:quitté|démissionné de(?: chez)?) <old name>
    works_as || || {when}je travaille{now} comme <words>
    is_named || || je m['’]appelle{now} <name>
    married_to || || je suis{now} mariée? (?:à|avec) <name>
    uses || stopped_using || {when}(?:j'utilise|j’utilise){now} <name> (?:au lieu de|à la place de|plutôt que) <old name>
    uses || stopped_using || je suis{now} passée? de <old name> à <name>
    uses || || {when}(?:j'utilise|j’utilise){now} <name>
    drives || || {when}(?:je conduis|je roule en){now} (?:une? )?{vehicle}<words>
    studies || || {when}(?:j'étudie|j’étudie){now} (?:la |le |les |l'|l’)?(?={field})<words>
    has_age || || {when}(?:j'ai|j’ai){now} (?P<v>\d{1,3}) ans{age_end}
    has_weight || || {when}je pèse{now} {weight}
    follows_diet || || {when}je suis{now}(?: devenue?)? (?P<v>végane?|végétalien(?:ne)?|végétarien(?:ne)?|pescétarien(?:ne)?)\b
    || || {when}m(?:on|a) (?:(?:nouvel|nouvelle|nouveau|actuelle?) )?(?P<own>[\p{L}-]{2,25}(?: (?:préférée?|favorite?|actuelle?|de \p{L}{2,15}))?)(?: est| s'appelle| s’appelle){now} (?:le |la |l')?(?:<figure>|<name>|(?P<v>\p{Ll}{3,20})){end}
    """,
    when=r"(?:(?:maintenant|désormais|actuellement|aujourd'hui|depuis [^,.;]{1,25}?|à présent|hier|récemment|en \p{L}+|le mois dernier|la semaine dernière),? )?+",
    now=r"(?: (?:maintenant|désormais|actuellement|aujourd'hui|toujours|aussi|encore|récemment|déjà|depuis [^,.;]{1,20}?|juste))*",
    age_end=_AGE_END,
    weight=_WEIGHT,
    vehicle=_VEHICLE,
    field=_FIELD,
    end=_END,
)
# One also enters a kitchen, adds milk, learns to cook and imitates a friend: only such words tell of work and study.
_CHINESE_FIRM = (
    r"(?:(?-i:[A-Z])[A-Za-z0-9 .&+-]{0,24}|"
    r"[\p{Han}A-Za-z0-9]{0,16}?(?:公司|集团|银行|医院|大学|学院|工厂|事务所|律所|研究所|研究院|工作室|出版社|报社|科技))"
    r"(?=[，。！,.!；;了]|$)"
)
_CHINESE_SUBJECT = r"[\p{Han}A-Za-z]{0,10}?(?:学|语|文|史|法|医|艺术|美术|工程|管理|设计|音乐|金融|会计|计算机|编程|建筑|专业)(?=[，。！,.!；;]|$)"
_CHINESE = _rules(
    r"""
    lives_in || || {when}我{now}(?:是)?住在(?:了)?<short>{end}
    moved_to || || {when}我{now}(?:搬家?|移居|搬迁)[到去至](?:了)?<short>{end}
    || moved_away_from || {when}我(?:已经)?(?:不再|不)住在?<old short>{end}
    works_at || || {when}我{now}在<short>(?:工作|上班|任职){end}
    joined || || {when}我{now}(?:入职|跳槽到|跳槽去)了?<short>(?:工作|上班)?{end}
    joined || || {when}我{now}(?:加入|进)了?<short>(?:工作|上班){end}
    joined || || {when}我{now}(?:加入|进)了?(?={firm})<short>{end}
    || left || {when}我(?:已经)?(?:不再|不)在<old short>(?:工作|上班){end}
    || left || {when}我{now}(?:离开|辞去)了?<old short>(?:的工作|公司)?{end}
    is_named || || 我{now}(?:叫|的名字(?:是|叫))<short>{end}
    married_to || || {when}我{now}[和跟与]<short>结(?:了)?婚{end}
    uses || stopped_using || {when}我{now}(?:从|把)<old short>(?:换成|换到|改用|改成|切换到|转到)了?<short>{end}
    uses || stopped_using || {when}我{now}(?:改用|用|使用)<short>[,，]?(?:代替|而不是|不用|不再用)<old short>{end}
    uses || || {when}我{now}(?:改用|用|使用)(?:的是)?<short>{end}
    drives || || {when}我{now}开(?:的是(?:一?[辆台])?|着?一?[辆台])<short>{end}
    drives || || {when}我{now}开着?(?P<v>(?:特斯拉|宝马|奔驰|奥迪|大众|丰田|本田|日产|福特|沃尔沃|保时捷|比亚迪|蔚来|小鹏)[A-Za-z0-9 -]{0,10}){end}
    studies || || {when}我{now}(?:在)?(?:攻读|主修)(?:的是)?<short>{end}
    studies || || {when}我{now}(?:在)?学(?:习|的是)?(?={subject})<short>{end}
    has_age || || {when}我{now}(?:是)?(?P<v>\d{1,3})岁{end}
    has_weight || || {when}我{now}(?:的?体重)(?:是|有)?(?P<v>[\d.]{1,6} ?(?:公斤|千克|斤|kg))
    follows_diet || || {when}我{now}(?:是|吃)(?P<v>素食者|纯素食者|素|纯素|全素)
    || || {when}我{now}最?(?:喜欢|爱|偏好)的(?P<own>[\p{Han}A-Za-z]{1,6}?)(?:现在|已经|目前)*(?:变成|换成|改成|是)了?<short>{end}
    || || {when}我(?:现在)?的(?:新)?(?P<own>[\p{Han}A-Za-z]{1,8}?)(?:现在|已经|目前)*(?:改成|换成|变成|改为|换为|改到|是|叫|为)了?<short>{end}
    """,
    when=r"(?:(?:现在|目前|如今|后来|最近|上个?月|上周|去年|今年|昨天|今天|从\p{Han}{1,5}?起|[一二三四五六七八九十0-9]{1,2}月(?:份)?)[,，]?)?+",
    now=r"(?:现在|目前|如今|已经|已|刚刚|刚|最近|上个?月|上周|去年|今年|昨天|今天|就|又|也|还|都)*+",
    end=r"(?=了?(?:[，。！,.!；;]|$|了))",
    firm=_CHINESE_FIRM,
    subject=_CHINESE_SUBJECT,
)
_JAPANESE = _rules(
    r"""
    lives_in || || {i}{now}<east>に(?:住んで(?:い(?:ます|る)|る)|暮らして(?:い(?:ます|る)|る)|在住)
    moved_to || || {i}{now}(?:<old east>から)?<east>[にへ](?:引っ越(?:し(?:た|ました|て)|す)|移り(?:ました|住)|移住し|転居し)
    || moved_away_from || {i}もう<old east>には?(?:住んでい(?:ません|ない)|住んでない)
    works_at || || {i}{now}<east>で(?:働いて|勤務して|勤めて|仕事をして)
    works_at || || {i}{now}<east>に(?:勤めて|勤務して)
    joined || || {i}{now}<east>[にへ](?:転職し|入社し|就職し)
    || left || {i}{now}<old east>[をは](?:辞め|やめ|退職し)(?:た|ました|て)
    works_as || || {i}{now}<east>として働いて
    is_named || || {i}<east>と(?:申します|いいます|言います)
    married_to || || {i}{now}<east>(?:さん)?と結婚して?(?:い|し)?(?:ます|まし|た)
    uses || stopped_using || {i}{now}<old east>から<east>に(?:乗り換え|切り替え|変え|替え|移行し)
    uses || stopped_using || {i}{now}<old east>の(?:代わりに|かわりに)<east>を使(?:って|い)
    uses || || {i}{now}<east>を使(?:って|い)
    drives || || {i}{now}<east>に乗って
    studies || || {i}{now}<east>を(?:専攻して|勉強して|学んで)
    has_age || || {i}{now}(?P<v>\d{1,3})歳(?:です|だ|にな)
    has_weight || || {i}{now}(?:の)?体重は(?P<v>[\d.]{1,6} ?(?:キロ|kg|キログラム))
    follows_diet || || {i}{now}(?P<v>ベジタリアン|ヴィーガン|ビーガン|菜食主義者)(?:です|だ|にな)
    || || (?:私|僕|俺|わたし|ぼく)の(?:新しい|今の|現在の)?(?P<own>[\p{Han}\p{Katakana}ー]{1,10}|好きな[\p{Han}\p{Katakana}ー]{1,8})[はが]{now}<east>(?:に(?:変わり|なり|変更し)|です|だ|である|と(?:いい|言い)ます|{end})
    """,
    i=r"(?:(?:私|僕|俺|わたし|ぼく)(?:は|も)?[、,]?)?",
    now=r"(?:(?:今|現在|最近|先月|先週|去年|昨年|今年|昨日|今日|すでに|[0-9０-９一二三四五六七八九十]{1,2}月)(?:は|から|に)?[、,]?|もう|また|とうとう)*+",
    end=r"(?=[。！!、]|$)",
)
# A sentence without one of these words is in none of the rules of its language.
_WESTERN = (
    (regex.compile(r"\b(?:i|my)\b", regex.IGNORECASE), _ENGLISH),
    (regex.compile(r"\b(?:ich|meine?)\b", regex.IGNORECASE), _GERMAN),
    (
        regex.compile(
            r"\b(?:me|mi|vivo|resido|trabajo|empecé|comencé|he|dejé|estoy|uso|utilizo|cambié|conduzco|manejo|estudio|"
            r"tengo|peso|soy)\b",
            regex.IGNORECASE,
        ),
        _SPANISH,
    ),
    (regex.compile(r"\b(?:je|nous|mon|ma|j)\b", regex.IGNORECASE), _FRENCH),
)
_EASTERN = (*_CHINESE, *_JAPANESE)
_IS_EASTERN = regex.compile(r"[\p{Han}\p{Hiragana}\p{Katakana}]")
_EASTERN_CLAUSE = regex.compile(r"[。！!\n，,；;、]\s*")
_WESTERN_CLAUSE = regex.compile(
    r"[.!,;]\s+(?:(?:und|aber|y|pero|et|mais) )?|\s(?:und|y|et) (?=(?:ich|mein|me|mi|ya|j|je|m(?:on|a))\b)",
    regex.IGNORECASE,
)
_ASKS = regex.compile(r"[?？]\W*$|[吗嗎呢か]\W*$")
_OPENING = regex.compile(
    r"\W*+(?:(?:ja|nein|also|übrigens|hallo|ach|sí|no|bueno|hola|oui|non|alors|bonjour|salut|au fait|por cierto)[,!.:]? )?+",
    regex.IGNORECASE,
)
# Of these, somebody may have several at a time, or what is said of them is a judgement.
_NOT_ONE = listed(
    "friend friends sister sisters brother brothers son sons daughter daughters child children kid kids cousin cousins "
    "aunt uncle niece nephew colleague colleagues neighbour neighbor roommate flatmate parents family team hobby "
    "hobbies interest interests skill skills goal goals plan problem problems point question guess opinion advice "
    "mistake idea bad fault dream wish hope fear apologies thanks pleasure turn issue concern understanding impression "
    "answer reason concern pet pets cat cats dog dogs book books song songs movie movies god day morning evening week "
    "weekend life mother father mum mom dad grandmother grandfather grandma grandpa wife husband partner spouse boss "
    "manager mentor freund freundin bruder schwester sohn tochter kind kinder mutter vater eltern katze hund kollege "
    "kollegin problem ziel hobby meinung frage idee tag amigo amiga hermano hermana hijo hija madre padre gato gata "
    "perro perra problema objetivo opinión pregunta idea día ami amie frère soeur sœur fils fille mère père chat chien "
    "problème but avis question idée jour 朋友 姐姐 妹妹 哥哥 弟弟 儿子 女儿 孩子 妈妈 爸爸 父亲 母亲 同事 问题 想法 意见 目标 "
    "爱好 友達 姉 妹 兄 弟 息子 娘 子供 母 父 猫 犬 同僚 問題 目標 意見 趣味 夢"
)
_NO_VALUES = listed(
    "i it he she they we you this that there here hause house home german english urlaub zwei drei yes no ok good bad "
    "great fine done gone ready sure right wrong broken dead new old free busy late sehr nicht kein keine hier da muy "
    "no aquí très pas ici"
)


_FIELDS = {
    "lives_in": "location",
    "moved_to": "location",
    "moved_away_from": "location",
    "works_at": "employer",
    "joined": "employer",
    "left": "employer",
    "is_named": "name",
}
"""The field of the profile that a relation states or ends."""


def profile_facts(sentence: Statement) -> Iterator[Fact]:
    """Yield the facts of the profile in a sentence of another language than English."""
    for item in own_statements(sentence):
        if field := _FIELDS.get(item.relation):
            stated = {field: item.value} if item.begins else {}
            yield Fact(stated, {} if item.begins else {field: [item.value]}, is_noted=False)


# The rules of profiles and those of edges read the same sentences, one after the other.
@lru_cache(maxsize=256)
def own_statements(sentence: Statement) -> tuple[OwnStatement, ...]:
    """Return the relations that a sentence states of its speaker."""
    if _ASKS.search(sentence.text):
        return ()
    parts = ((start, end) for start, end in sentence.own if end - start <= MAX_CLAUSE_CHARS)
    return tuple(item for start, end in parts for item in _of_part(sentence.masked[:end], start, end))


def _of_part(text: str, start: int, end: int) -> Iterator[OwnStatement]:
    is_eastern = _IS_EASTERN.search(text, start) is not None
    rules = (
        _EASTERN if is_eastern else tuple(rule for words, of in _WESTERN if words.search(text, start) for rule in of)
    )
    if not rules:
        return
    for place in _places(text, start, end, is_eastern=is_eastern):
        for rule in rules:
            found = tuple(_read(rule, match)) if (match := rule.pattern.match(text, place)) else ()
            if found:
                yield from found
                break


def _places(text: str, start: int, end: int, *, is_eastern: bool) -> list[int]:
    """Return where clauses may begin."""
    divider = _EASTERN_CLAUSE if is_eastern else _WESTERN_CLAUSE
    begun = [start, *(match.end() for match in divider.finditer(text, start))]
    opened = [match.end() for place in begun if (match := _OPENING.match(text, place))]
    english = () if is_eastern else clause_starts(text, start, end)
    return sorted({*opened, *english})


def _read(rule: _Rule, match: "regex.Match[str]") -> Iterator[OwnStatement]:
    groups = match.groupdict()
    value, old, own = (" ".join((groups.get(name) or "").split()).rstrip(".-'’&") for name in ("v", "old", "own"))
    if own and (own.split(" ")[-1].casefold() in _NOT_ONE or own.split(" ")[0].casefold() in _NOT_ONE):
        return
    relation = f"{'_'.join(own.casefold().split())}{OWN_VALUE}" if own else rule.relation
    if relation and _is_value(value):
        yield OwnStatement(relation, value)
    if rule.ended and _is_value(old):
        yield OwnStatement(rule.ended, old, begins=False)


def _is_value(value: str) -> bool:
    return 0 < len(value) <= MAX_VALUE_CHARS and value.casefold() not in _NO_VALUES
