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
from lamina.extraction.facts import Fact, may_be_place
from lamina.extraction.speech import Statement
from lamina.policies.validity import OWN_VALUE
from lamina.text.english import CALENDAR_WORDS, listed
from lamina.text.places import known_places

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
    r"(?: (?:(?:(?:de|del|do|da|du|des|la|le|of|am|an der|von|&) ){0,2}+\p{Lu}(?:\.(?= \p{Lu})|[\p{L}\p{M}\p{N}_'’&-]*+)|"
    r"\d{1,3}+(?![\d:/%-]|[.,]\d)(?! ?(?:am|pm|percent|euros?|dollars?|years?|days?|weeks?|months?|times?|hours?|minutes?)\b))){0,4}+)"
)
_FIGURE = (
    r"[$€£¥+#]? ?\d[\d.,:/-]*+(?: ?(?:%|[$€£¥]|(?!(?:now|today|again|too|already|instead|right|and|but|or|so|of|in|on|at|"
    r"jetzt|nun|heute|wieder|und|aber|oder|ahora|ya|hoy|y|o|pero|maintenant|et|mais|ou)\b)\p{L}[\p{L}.]{0,11}(?!\p{L})))?"
    r"(?: \d{1,8}+(?!\p{L})){0,5}+"
)
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


def _rules(table: str, *, guard: str = "", **parts: str) -> tuple[_Rule, ...]:
    """Return the rules of a table; a line has the relation, that which it ends if any, and the clause.

    ``<name>`` stands for a name, ``<words>`` for up to five words, ``<figure>`` for a number with its unit, ``<east>``
    for a run without hiragana, each also as the former value (``<old name>``); ``{part}`` for one of the parts. Before
    every clause stands the guard, which consumes nothing.
    """
    rules = []
    for line in filter(None, map(str.strip, table.splitlines())):
        relation, ended, clause = (part.strip() for part in line.split("||"))
        for part, words in parts.items():
            clause = clause.replace(f"{{{part}}}", words)
        clause = _PLACE_HOLDER.sub(lambda match: f"(?P<{'old' if match[1] else 'v'}>{_KINDS[match[2]]})", clause)
        rules.append(_Rule(regex.compile(rf"\G{guard}(?:{clause})", regex.IGNORECASE), relation, ended))
    return tuple(rules)


_ENGLISH = _rules(
    r"""
    works_as || || i(?:'m| am)?{now} work(?:ing)? as (?:an? (?!(?:team|rule|result|matter|means|whole|group|couple|pair)\b)|(?:the )?(?=(?:\p{L}+ )?(?:head|lead|chief|director|manager|deputy|assistant|editor)\b)|(?=(?-i:\p{Lu}{2,5})\b)){title}
    works_as || || i(?:'m| am){now} an? <words> by (?:profession|trade|training)
    works_as || || i(?:'ve| have)?{now} (?:(?:became|become) (?:an? |the |(?=head of |team lead|chief |(?-i:C[A-Z]O)\b)){occupation}|(?:was|got) promoted to (?:an? |the )?){title}
    works_as || || i(?:'m| am){now} (?:the )?(?:new )?(?=(?:head|director|vice president|VP) of \p{L}|(?-i:C[A-Z]O)\b|team lead\b){title}
    drives || || i{now} drive an? {vehicle}<words>
    studies || || i(?:'m| am)?{now} (?:study|studying|majoring in|major in) (?={field})<words>
    has_age || || i(?:'m| am){now} (?P<v>\d{1,3})(?: years old)?{age_end}
    has_age || || i(?:'ve| have)?{now} turned (?P<v>\d{1,3})(?:{age_end}|(?= (?:today|yesterday|recently|last|this|on|in|a (?:week|month|day|year)|years old)\b))
    has_weight || || i{now} weigh {weight}
    follows_diet || || i(?:'m| am|'ve become|'ve gone| have become|(?:'ve| have)? turned| became| went| eat){now} (?:an? )?(?P<v>{diets}){diet_end}
    follows_diet || || i(?:'ve| have) been{now} (?:an? )?(?P<v>{diets}) (?=(?:since|for|all my)\b)
    || follows_diet_no_longer || i(?:'m| am){now} (?:no longer|not)(?: really)? (?:an? )?(?P<old>{diets})(?: any ?more| any longer)?{end}
    supports || || i{now} (?:support|root for) (?:the )?<name>
    prefers || prefers_no_longer || i{now} prefer (?P<v>(?!to )[\p{L}\p{N} '’-]{1,40}?) (?:over|(?<!\p{L}ing )to|(?<=\p{L}ing )to(?= \p{L}+ing\b)|rather than|instead of) (?P<old>[\p{L}\p{N}'’-]{1,25}){end}
    uses || stopped_using || (?:i|we)(?:'ve| have)?{now} (?:switched|migrated|changed|upgraded)(?: over)?(?: (?!(?:jobs|employers|companies|schools|teams|seats|trains|planes|flights)\b)\p{L}{2,15}s)? from (?:the |my |our |an? )?<old name> (?:over |back )?to (?:the |an? )?<name>
    uses || stopped_using || (?:i|we)(?:'ve| have)?{now} (?:replaced|swapped(?: out)?|traded(?: in)?|exchanged|ditched|dropped|abandoned|gave up|given up) (?:my |our |the )?<old name> (?:with|for|by|in favou?r of) (?:an? |the |my )?<name>
    uses || stopped_using || we{now} use <name>(?: now)? (?:instead of|rather than|in place of) (?:the )?<old name>
    uses || || we{now} use <name>(?:{end}|(?= (?:as|for|in|at|on|to|with|everywhere)\b))
    || stopped_using || (?:i|we)(?:'ve| have)?{now} (?:quit(?: using)?|ditched|uninstalled|got rid of|gave up|given up|abandoned|sold|cancell?ed) (?:my |our |the )?<old name>{end}
    || stopped_using || (?:i|we)(?: really)? (?:don't|do not|dont|no longer) use (?:the )?<old name>(?: at all| any ?more| any longer)?{end}
    || || (?:my|our){new} {own_thing}{has_been} (?:changed|switched|updated|upgraded|renamed|raised|lowered|went up|went down|rose|dropped|fell|grew)(?: from [^,;]{1,40}?)? to (?:<figure>|{mail}|(?:an? |the )?<name>|<words>)
    || || (?:my|our){new} {own_thing}{has_been} (?:moved|set|pushed(?: back)?|shifted|delayed|extended|postponed|brought forward|put back|rescheduled)(?: from [^,.;]{1,30}?)? to (?:<figure>|{day}){end}
    || || (?:i|we)(?:'ve| have)?{now} (?:changed|switched|updated|upgraded|renamed) (?:my|our){new} (?P<own>{noun})(?: from [^,.;]{1,30}?)? to (?:<figure>{end}|{mail}|(?:an? |the )?<name>|(?:an? )?<words>)
    || || (?:i|we)(?:'ve| have)?{now} (?:moved|set|pushed(?: back)?|shifted|delayed|extended|postponed|brought forward|put back|rescheduled) (?:my|our){new} (?P<own>{noun})(?: from [^,.;]{1,30}?)? to (?:<figure>|{day}){end}
    || || (?:my|our){new} (?P<own>{noun})(?: is| are|'s|'re){now}(?: called| named| at| on| an?)? (?:<figure>|<name>|{mail}|{street}){end}
    || || my{new} (?P<own>{attribute})(?: is| are|'s|'re){now} (?!not |no |the |to |that |when |what |how |so |too |very |a bit )(?:an? )?<words>
    || || my{new} (?P<own>{occupation_or_means})(?: is| are|'s|'re){now} (?!not |no |the |to |that |when |what |how |so |too |very |a |\p{L}+ing\b|\p{L}{3,}ed\b|{judged}\b)(?:an )?<words>
    || || my{new} (?P<own>job|job title|title|profession|occupation|role)(?: is| are|'s|'re){now} a {occupation}<words>
    """,
    now=r"(?: (?:now|currently|just|recently|also|still|actually|mostly|really|usually|always|only|already))*+",
    new=r"(?: (?:new|current|actual|own|latest|present))?+",
    noun=r"[\p{L}-]{2,20}(?: [\p{L}-]{2,20}){0,2}?",
    mail=r"(?P<v>[\p{L}\d._+-]{1,64}@[\p{L}\d-]{1,63}(?:\.[\p{L}\d-]{1,63}){1,4})",
    street=r"(?P<v>\d{1,5}[a-z]?(?: (?-i:\p{Lu})[\p{L}'’.-]{0,30}+){1,4}+)",
    has_been=r"(?: is| was| got| has been|'s|'ve been)?(?: just| recently| now)?",
    # Those who do something move and switch themselves, and what becomes of them is not what they move to.
    own_thing=(
        r"(?P<own>[\p{L}-]{2,20}(?: [\p{L}-]{2,20}){0,2}?)(?<!\b(?:company|firm|employer|office|school|university|bank|gym|club|"
        r"church|store|shop|department|startup|doctor|dentist|therapist|teacher|trainer|coach|landlord|landlady|flatmate|tenant|"
        r"ex|girlfriend|boyfriend|fianc[ée]e?|client|customer|supplier))"
    ),
    day=(
        r"(?P<v>(?:(?:next|this|early|late|mid|the following) )?(?:(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|"
        r"march|april|may|june|july|august|september|october|november|december|tomorrow|tonight|today|noon|midnight|week|month|"
        r"spring|summer|autumn|fall|winter|the (?:morning|afternoon|evening))(?: [\p{L}\p{N}:.]{1,10}){0,3}?)"
    ),
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
    # "A vegan chef's daughter", "vegan on Mondays" and "vegan-curious" tell of no diet.
    diet_end=(
        r"(?![\w'’-])(?=\s*+(?:[.!,;:)(…–—-]|$)|\s(?:now|nowadays|these days|again|since|because|and|but|so|too|as well|by choice|"
        r"for (?:(?:ethical|health|medical|religious|environmental) reasons|life|good|(?:\d+|many|several|ten|five|two|three) years)|"
        r"(?:in|last|this) (?:\p{Lu}\p{L}+|\d{4}|year|month|week|spring|summer|autumn|fall|winter)|(?:\d+|an?|two|three|five|ten) "
        r"(?:few )?(?:days|weeks|months?|years?) ago|after|as of|if that|if you|though|btw)\b)"
    ),
    title=(
        r"(?P<v>[\p{L}\p{M}\p{N}'’+#&/.-]{1,40}(?: (?!(?:for|at|with|by)\b)[\p{L}\p{M}\p{N}'’+#&/-]{1,40}){0,4}?)"
        rf"(?:{_END}|(?=\s(?:for|at|with|by)\b))"
    ),
    end=_END,
)
_GERMAN = _rules(
    r"""
    lives_in || || (?:{dwell}|{when} {dwelling}){now} in (?:der |den |dem )?{town}<name>{so}
    moved_to || || (?:ich bin|wir sind|{when} (?:bin ich|sind wir)){now}{between} (?:nach|in die|ins) <name>(?: [^,.;]{1,20}?)? (?:gezogen|umgezogen|übersiedelt)
    moved_to || || (?:ich bin|wir sind|{when} (?:bin ich|sind wir)){now}{between} umgezogen,? nach <name>
    moved_to || || (?:ich (?:zog|ziehe)|{when} (?:zog|ziehe) ich){now} (?:jetzt )?nach <name>
    lives_in || moved_away_from || {dwell} nicht (?:mehr|länger) in <old name>,? sondern in {town}<name>
    || moved_away_from || {dwell} nicht (?:mehr|länger) in <old name>
    works_at || || (?:ich arbeite|{when} arbeite ich){now} (?:bei|für)(?: der| dem)? {firm}<name>{so}
    joined || || (?:ich (?:habe|bin)|{when} (?:habe|bin) ich){now}{between} (?:bei|zu|zur)(?: der)? <name> (?:angefangen|begonnen|gewechselt)
    || left || ich arbeite nicht (?:mehr|länger) (?:bei|für) <old name>
    || left || ich habe{between} bei <old name>(?: [^,.;]{1,20}?)? (?:gekündigt|aufgehört)
    works_as || || (?:ich arbeite|{when} arbeite ich){now} als <words>
    works_as || || ich bin{now} <name> von beruf
    is_named || || ich heiße{now} <name>
    married_to || || ich bin{now} mit <name> verheiratet
    uses || stopped_using || (?:ich (?:nutze|benutze|verwende)|{when} (?:nutze|benutze|verwende) ich){now} <name> (?:statt|anstatt|anstelle von) <old name>
    uses || stopped_using || ich bin{now} von <old name> (?:auf|zu) <name> (?:umgestiegen|gewechselt)
    uses || || (?:ich (?:nutze|benutze|verwende)|{when} (?:nutze|benutze|verwende) ich){now} <name>{so}
    || stopped_using || (?:ich|wir) (?:nutzen?|benutzen?|verwenden?)(?: jetzt| inzwischen| mittlerweile)? (?:<old name> nicht|kein(?:e|en)? <old name>) (?:mehr|länger)
    drives || || (?:ich fahre|{when} fahre ich){now} (?:einen|eine|ein) (?!(?:\p{L}*(?:rennen|umweg|schlenker|runde|tour|kurve|strecke|marathon|stunde|woche|weile|etappe|route|schicht|linie|abkürzung|kurs|risiko|strategie|angriff))\b)<name>
    studies || || (?:ich studiere|{when} studiere ich){now} {subject}<name>
    has_age || || ich bin{now} (?P<v>\d{1,3})(?: jahre alt)?{age_end}
    has_weight || || ich wiege{now} {weight}
    follows_diet || || ich (?:bin|ernähre mich|esse|lebe){now} (?P<v>vegan|veganer(?:in)?|vegetarisch|vegetarier(?:in)?|pescetarier(?:in)?){end}
    reports_to || || ich berichte{now} an <name>
    || || {mine} (?P<own>[\p{L}-]{2,30})(?: ist| heißt| lautet| beträgt){now}(?:(?: am(?! \d{1,2}\.?\W*$)| um)? <figure>| <name>){end}
    || || {mine} (?P<own>{quality})(?: ist| heißt| lautet){now} (?P<v>\p{Ll}{3,20}){end}
    """,
    when=r"(?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|zurzeit|seit [^,.;]{1,25}?|ab heute|heute|(?:letzten|letzte|letztes|vorige|vorigen) \p{L}+|gestern|im \p{L}+|am [^,;]{1,20}?)",
    now=r"(?: (?:jetzt|nun|inzwischen|mittlerweile|aktuell|derzeit|momentan|zurzeit|gerade|nur noch|wieder|seit [^,.;]{1,20}?|schon|auch|noch|kürzlich|vor kurzem|letzten? \p{L}+|gestern|heute))*",
    # "Ich bin nicht nach Jena gezogen", "Ich nutze Slack nicht mehr": a denial stands before the verb or behind the name.
    between=r"(?: (?!(?:nicht|nie|niemals|kaum|fast|beinahe|doch|noch)\b)[^\s,.;]{1,20}){0,4}?",
    so=r"(?! (?:nicht|nie)\b)",
    firm=(
        r"(?!(?:Regen|Schnee|Sonne|Nacht|Tag|Tageslicht|Hitze|Kälte|Licht|Geld|Lohn|Brot|Kunden|Freunden|Bedarf|Gelegenheit|"
        r"Interesse|Leute|Menschen|Kinder|Tiere|Musik|Kerzenlicht)\b)"
    ),
    # Of these a small word may be the value; "mein Chef ist krank" names none.
    quality=(
        r"lieblings\p{L}{2,20}|\p{L}{0,15}(?:farbe|sprache|status|familienstand|beruf|titel|rolle|editor|shell|browser|passwort|"
        r"benutzername|login|spitzname|größe)"
    ),
    dwell=r"(?:ich (?:wohne|lebe)|wir (?:wohnen|leben))",
    dwelling=r"(?:(?:wohne|lebe) ich|(?:wohnen|leben) wir)",
    # One also lives in fear and in separation: every German noun has a capital.
    town=(
        r"(?!(?:\p{L}+(?:ung|heit|keit|schaft|nis)|Angst|Sorge|Armut|Frieden|Sünde|Stress|Eile|Saus|Träumen|Untermiete|Not|"
        r"Gefahr|Luxus|Würde|Elend|Zweifeln?|Erinnerungen|Zeiten|Gedanken|WGs?)\b)"
    ),
    subject=(
        r"(?=\p{L}*(?:wissenschaft(?:en)?|kunde|logie|nomie|gra[fp]h?ie|sophie|istik|matik|geschichte|recht|jura|medizin|kunst|"
        r"musik|bau|technik|wesen|pädagogik|physik|chemie|theologie|lehramt|design|architektur|informatik|mathe|mathematik|"
        r"BWL|VWL|deutsch|englisch|französisch|spanisch|japanisch|arbeit|management|sport|film|schauspiel)\b)"
    ),
    mine=r"(?:mein|unser)(?:e)?(?: (?:neuer?|neues|aktueller?|aktuelles|jetzige[rs]?))?",
    age_end=_AGE_END,
    weight=_WEIGHT,
    end=_END,
)
_SPANISH = _rules(
    r"""
    lives_in || || {when}(?:yo |nosotros |nosotras )?(?:vivo|resido|vivimos|residimos){now} en <name>
    moved_to || || {when}(?:yo )?(?:me (?:mudé|he mudado|trasladé|he trasladado|acabo de mudar|fui a vivir|he ido a vivir)|nos (?:mudamos|hemos mudado|trasladamos|hemos trasladado|fuimos a vivir)){now}(?: [^,.;]{1,20}?)? a <name>
    || moved_away_from || ya no (?:vivo|resido) en <old name>
    works_at || || {when}(?:yo )?trabajo{now} (?:en|para) <name>
    joined || || {when}(?:empecé|he empezado|comencé|he comenzado) a trabajar{now} (?:en|para) <name>
    || left || ya no trabajo (?:en|para) <old name>
    || left || (?:dejé|he dejado) (?:mi (?:trabajo|empleo) en )?(?:de trabajar en )?<old name>
    works_as || || {when}(?:yo )?trabajo{now} (?:como|de) (?P<v>[\p{L}'’-]{2,30}(?: (?!(?:en|para|por|con)\b)[\p{L}'’-]{1,30}){0,4}?)(?:{end}|(?= (?:en|para|por|con)\b))
    is_named || || me llamo{now} <name>
    married_to || || estoy{now} casad[oa] con <name>
    uses || stopped_using || {when}(?:yo )?(?:uso|utilizo){now} <name> (?:en lugar de|en vez de) <old name>
    uses || stopped_using || (?:cambié|he cambiado|me pasé|me he pasado) de <old name> a <name>
    uses || || {when}(?:yo )?(?:uso|utilizo){now} <name>
    || stopped_using || ya no (?:uso|utilizo) <old name>
    drives || || {when}(?:conduzco|manejo){now} una? {vehicle}<words>
    studies || || {when}estudio{now} (?={field})<words>
    has_age || || {when}tengo{now} (?P<v>\d{1,3}) años(?: de edad)?{age_end}
    has_weight || || {when}peso{now} {weight}
    follows_diet || || {when}(?:soy|me he hecho|me hice){now} (?P<v>vegan[oa]|vegetarian[oa]|pescetarian[oa]){end}
    reports_to || || {when}mi jef[ea](?: \p{L}+)? es{now} <name>
    || || {when}mi (?:(?:nuev[oa]|actual) )?(?P<own>[\p{L}-]{2,25}(?: (?:favorit[oa]|preferid[oa]|actual|nuev[oa]|de \p{L}{2,15}))?)(?: es| está| se llama){now} (?:el |la |un |una )?(?:(?P<v>\d{1,2} de \p{L}{4,10})|<figure>|<name>){end}
    || || {when}mi (?:(?:nuev[oa]|actual) )?(?P<own>{quality})(?: es| está){now} (?:el |la )?(?P<v>\p{Ll}{3,20}){end}
    """,
    quality=(
        r"[\p{L}-]{2,25} (?:favorit|preferid)[oa]|(?:color|idioma|lengua|profesión|oficio|estado civil|talla|editor|navegador|"
        r"contraseña|apodo|usuario)(?: (?:actual|nuev[oa]|de \p{L}{2,15}))?"
    ),
    # "No vivo en Vigo" denies; "No, vivo en Vigo" does not.
    guard=r"(?<!\bno )",
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
    || stopped_using || (?:je n'utilise|je n’utilise) plus <old name>
    drives || || {when}(?:je conduis|je roule en){now} (?:une? )?{vehicle}<words>
    studies || || {when}(?:j'étudie|j’étudie){now} (?:la |le |les |l'|l’)?(?={field})<words>
    has_age || || {when}(?:j'ai|j’ai){now} (?P<v>\d{1,3}) ans{age_end}
    has_weight || || {when}je pèse{now} {weight}
    follows_diet || || {when}je suis{now}(?: devenue?)? (?P<v>végane?|végétalien(?:ne)?|végétarien(?:ne)?|pescétarien(?:ne)?){end}
    || || {when}m(?:on|a) (?:(?:nouvel|nouvelle|nouveau|actuelle?) )?(?P<own>[\p{L}-]{2,25}(?: (?:préférée?|favorite?|actuelle?|de \p{L}{2,15}))?)(?: est| s'appelle| s’appelle){now} (?:le |la |l'|une? )?(?:<figure>|<name>){end}
    || || {when}m(?:on|a) (?:(?:nouvel|nouvelle|nouveau|actuelle?) )?(?P<own>{quality})(?: est){now} (?:le |la |l')?(?P<v>\p{Ll}{3,20}){end}
    """,
    quality=(
        r"[\p{L}-]{2,25} (?:préférée?|favorite?)|(?:couleur|langue|métier|profession|statut|taille|éditeur|navigateur|surnom|"
        r"mot de passe|identifiant)(?: (?:actuelle?|de \p{L}{2,15}))?"
    ),
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
    lives_in || || {when}我{now}(?:是)?住在(?:了)?{town}{gone}
    moved_to || || {when}我{now}(?:从{from_town})?(?:搬家?|移居|搬迁)[到去至](?:了)?{town}{gone}
    || moved_away_from || {when}我(?:已经)?(?:不再|不)住在?<old short>{end}
    works_at || || {when}我{now}在{at_work}<short>(?:工作|上班|任职)(?=了?(?:[，。！,.!；;]|$))
    joined || || {when}我{now}(?:入职|跳槽到|跳槽去)了?<short>(?:工作|上班)?{end}
    joined || || {when}我{now}(?:加入|进)了?<short>(?:工作|上班){end}
    joined || || {when}我{now}(?:加入|进)了?(?={firm})<short>{end}
    || left || {when}我(?:已经)?(?:不再|不)在<old short>(?:工作|上班){end}
    || left || {when}我{now}(?:离开|辞去)了?<old short>(?:的工作|公司)?{end}
    is_named || || 我{now}(?:叫|的名字(?:是|叫))(?![他她它你您了]|大家|人|妈|爸|外卖|车)<short>{end}
    married_to || || {when}我{now}[和跟与]<short>结(?:了)?婚{end}
    uses || stopped_using || {when}我{now}(?:从|把)<old short>(?:换成|换到|改用|改成|切换到|转到)了?<short>{end}
    uses || stopped_using || {when}我{now}(?:改用|用|使用)<short>[,，]?(?:代替|而不是|不用|不再用)<old short>{end}
    uses || || {when}我{now}(?:改用|用|使用)(?:的是)?{tool}<short>{end}
    || stopped_using || {when}我(?:已经)?(?:不再|不)(?:用|使用){tool}<old short>{end}
    drives || || {when}我{now}开(?:的是(?:一?[辆台])?|着?一?[辆台])<short>{end}
    drives || || {when}我{now}开着?(?P<v>(?:特斯拉|宝马|奔驰|奥迪|大众|丰田|本田|日产|福特|沃尔沃|保时捷|比亚迪|蔚来|小鹏)[A-Za-z0-9 -]{0,10}){end}
    studies || || {when}我{now}(?:在)?(?:攻读|主修)(?:的是)?<short>{end}
    studies || || {when}我{now}(?:在)?学(?:习|的是)?(?={subject})<short>{end}
    has_age || || {when}我{now}(?:是)?(?P<v>\d{1,3})岁{end}
    has_weight || || {when}我{now}(?:的?体重)(?:是|有)?(?P<v>[\d.]{1,6} ?(?:公斤|千克|斤|kg))
    follows_diet || || {when}我{now}(?:是|吃)(?P<v>素食者|纯素食者|素|纯素|全素)
    || || {when}我{now}最?(?:喜欢|爱|偏好)的(?P<own>[\p{Han}A-Za-z]{1,6}?)(?:现在|已经|目前)*(?:变成|换成|改成|是)了?<short>{end}
    || || {when}我(?:现在)?的(?:新)?(?P<own>[\p{Han}A-Za-z]{1,8}?)(?:现在|已经|目前)*(?:改成|换成|变成|改为|换为|改到|是|叫|为)了?{value}<short>{end}
    """,
    when=r"(?:(?:现在|目前|如今|后来|最近|上个?月|上周|去年|今年|昨天|今天|从\p{Han}{1,5}?起|[一二三四五六七八九十0-9]{1,2}月(?:份)?)[,，]?)?+",
    now=r"(?:现在|目前|如今|已经|已|刚刚|刚|最近|上个?月|上周|去年|今年|昨天|今天|就|又|也|还|都)*+",
    # Neither upstairs nor a clause that goes on: "我住在苏州的时候…".
    town=r"(?!楼|[一二三四五六七八九十0-9]{1,3}[楼层])(?P<v>(?:(?![的了过去来时着])[\p{Han}\p{Katakana}ーA-Za-z・. -]){1,16}?)",
    from_town=r"[\p{Han}A-Za-z]{1,10}?",
    gone=r"(?=(?:[去来]?了|去|来)?(?:[，。！,.!；;]|$))",
    # One also works at home, in a café and abroad.
    at_work=(
        r"(?!(?:家|家里|家中|咖啡[馆厅店]|图书馆|办公室|公司|外地|国外|海外|线上|网上|楼[上下]|工地|现场|农村|城里|市区|这[里儿]?|那[里儿]?|"
        r"床上|路上|车上|北京|上海|广州|深圳|杭州|成都|南京|武汉|西安|重庆|苏州|天津|香港|台北|台湾|中国|美国|日本|德国|英国|法国|加拿大|澳大利亚|"
        r"[\p{Han}]{1,6}[市省县区镇村])(?:工作|上班|任职))"
    ),
    # A tool has a name: one also uses hands and chopsticks.
    tool=r"(?=[\p{Han}]{0,4}[A-Za-z]|微信|支付宝|钉钉|飞书|企业微信|淘宝|百度|高德|华为|小米|苹果|安卓)",
    value=r"(?!(?:很|不|没|非常|最|太|有|在|要|想|会|能|可以|怎么|什么|谁|因为|为了|把|让|一个|一名|一位|个)|[\p{Han}A-Za-z]{1,10}的(?=[，。！,.!；;]|$))",
    end=r"(?=了?(?:[，。！,.!；;]|$|了))",
    firm=_CHINESE_FIRM,
    subject=_CHINESE_SUBJECT,
)
# What is dreamt, wanted, told or asked goes on behind the verb: "住んでいる夢を見た", "引っ越したい".
_JAPANESE_STOP = r"(?=(?:[よねわさ]|の(?:です|だ)|ん(?:です|だ)|けれど|けど|が|ので|から|し)*+(?:[。！!、,，\s]|$))"
_JAPANESE_STATE = rf"(?:(?:い(?:ます|る)|る|おります){_JAPANESE_STOP}|い?て(?=[、,，]))"
_JAPANESE_EVENT = rf"(?:(?:ました|た|て(?:い(?:ます|る)|き(?:た|ました))){_JAPANESE_STOP}|て(?=[、,，]))"
_JAPANESE = _rules(
    r"""
    lives_in || || {i}{now}<east>に(?:(?:住んで|暮らして){lasts}|在住(?:です|だ)?{stop})
    moved_to || || {i}{now}(?:<old east>から)?<east>[にへ](?:引っ越し|引っ越しを?し|移り|移り住み|移住し|転居し){did}
    || moved_away_from || {i}もう<old east>には?(?:住んでい(?:ません|ない)|住んでない)
    works_at || || {i}{now}{at_work}<east>で(?:働いて|勤務して|勤めて|仕事をして){lasts}
    works_at || || {i}{now}<east>に(?:勤めて|勤務して){lasts}
    joined || || {i}{now}<east>[にへ](?:転職し|入社し|就職し){did}
    || left || {i}{now}<old east>[をは](?:辞め|退職し){did}
    works_as || || {i}{now}<east>として働いて
    is_named || || {i}<east>と(?:申します|いいます|言います)
    married_to || || {i}{now}<east>(?:さん)?と結婚して?(?:い|し)?(?:ます|まし|た)
    uses || stopped_using || {i}{now}<old east>から<east>に(?:乗り換え|切り替え|変え|替え|移行し)
    uses || stopped_using || {i}{now}<old east>の(?:代わりに|かわりに)<east>を使(?:って|い)
    uses || || {i}{now}{tool}<east>を使って{lasts}
    || stopped_using || {i}(?:もう)?<old east>[はを](?:もう)?使ってい(?:ません|ない){stop}
    drives || || {i}{now}<east>に乗って
    studies || || {i}{now}<east>を(?:専攻して|勉強して|学んで)
    has_age || || {i}{now}(?P<v>\d{1,3})歳(?:です|だ|にな)
    has_weight || || {i}{now}(?:の)?体重は(?P<v>[\d.]{1,6} ?(?:キロ|kg|キログラム))
    follows_diet || || {i}{now}(?P<v>ベジタリアン|ヴィーガン|ビーガン|菜食主義者)(?:です|だ|にな)
    || || (?:私|僕|俺|わたし|ぼく)の(?:新しい|今の|現在の)?(?P<own>[\p{Han}\p{Katakana}ー]{1,10}|好きな[\p{Han}\p{Katakana}ー]{1,8})[はが]{now}<east>(?:に(?:変わり|なり|変更し)|です|だ|である|と(?:いい|言い)ます|{end})
    """,
    i=r"(?:(?:私|僕|俺|わたし|ぼく)(?:は|も)?[、,]?)?",
    now=r"(?:(?:今|現在|最近|先月|先週|去年|昨年|今年|昨日|今日|すでに|[0-9０-９一二三四五六七八九十]{1,2}月)(?:は|から|に)?[、,]?|もう|また|とうとう)*+",
    lasts=_JAPANESE_STATE,
    did=_JAPANESE_EVENT,
    stop=_JAPANESE_STOP,
    # One also works at home, in a café and abroad.
    at_work=(
        r"(?!(?:家|自宅|在宅|実家|カフェ|図書館|オフィス|現場|工場|病院|学校|会社|銀行|店|外|海外|地元|田舎|都内|東京|大阪|京都|名古屋|福岡|"
        r"札幌|横浜|神戸|仙台|広島|沖縄|日本|アメリカ|ドイツ|イギリス|フランス|中国|韓国|台湾|パート|バイト|アルバイト|フリーランス|リモート|一人|"
        r"[\p{Han}]{1,6}[都府県市区町村国])で)"
    ),
    # A tool has a name: one also uses umbrellas and taxis.
    tool=(
        r"(?!(?:パソコン|スマホ|ペン|ノート|タクシー|バス|エアコン|コンタクト|メガネ|カメラ|マスク|アプリ|タブレット|イヤホン|キーボード|マウス|サービス|"
        r"ソフト|ツール|クレジットカード|ナイフ|フォーク|スプーン|タオル|シャンプー|ストロー)を)(?=[A-Za-z\p{Katakana}][A-Za-z0-9 .+#\p{Katakana}ー]*を)"
    ),
    end=r"(?=[。！!、]|$)",
)
# A sentence without one of these words is in none of the rules of its language.
_WESTERN = (
    (regex.compile(r"\b(?:i|my|we|our)\b", regex.IGNORECASE), _ENGLISH),
    (regex.compile(r"\b(?:ich|wir|meine?|unsere?)\b", regex.IGNORECASE), _GERMAN),
    (
        regex.compile(
            r"\b(?:me|mi|nos|vivo|vivimos|resido|residimos|trabajo|empecé|comencé|he|dejé|estoy|uso|utilizo|cambié|conduzco|manejo|estudio|"
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
# Behind these words of the languages other than English, clauses tell what others say, or what is dreamt or supposed.
_OF_ANOTHER = regex.compile(
    r"\b(?:sagt|sagte|sagen|meint|meinte|behauptet|behauptete|glaubt|denkt|geträumt|träumte|träume|angenommen|wünschte|schreibt|"
    r"schrieb|erzählt|erzählte|heißt es|hieß es|stell dir vor|als ob|dijo|dice que|dicen|cree que|creía|soñé|soñaba|imagina|"
    r"supongamos|ojalá|disent|croit|rêvé|imaginons|supposons)\b"
    r"|说(?!实话|真的|起来)|說|梦见|夢見|梦到|如果|要是|假如|以为|想象|假装|据说"
)
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
_NO_OPENINGS = listed(
    "none nothing nobody something anything everything somewhere anywhere nowhere someone anyone whatever whichever unknown "
    "unclear undecided up nichts etwas irgendwas nada algo rien quelque"
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
_EVENTS = frozenset({"moved_to", "joined", "left"})


def profile_facts(sentence: Statement) -> Iterator[Fact]:
    """Yield the facts of the profile in a sentence of another language than English."""
    for item in own_statements(sentence):
        if field := _FIELDS.get(item.relation):
            stated = {field: item.value} if item.begins else {}
            withdrawn = {} if item.begins else {field: [item.value]}
            yield Fact(stated, withdrawn, is_noted=False, is_event=item.relation in _EVENTS)


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
        if _OF_ANOTHER.search(text, start, place):
            return
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
    if relation and _is_value(value) and not _is_odd(relation, value):
        yield OwnStatement(relation, value)
    if rule.ended and _is_value(old) and not _is_odd(rule.ended, old):
        yield OwnStatement(rule.ended, old, begins=False)


def _is_value(value: str) -> bool:
    said = value.casefold()
    is_named = said not in _NO_VALUES and said.split(" ", 1)[0] not in _NO_OPENINGS
    return 0 < len(value) <= MAX_VALUE_CHARS and is_named


def _is_odd(relation: str, value: str) -> bool:
    """Report whether a value is none of its relation: a city is no employer, a day no tool."""
    said = value.casefold()
    if relation in {"works_at", "joined"}:
        return said in known_places()
    if relation in {"lives_in", "moved_to"}:
        return not may_be_place(value)
    if relation == "uses" and said.endswith(("'s", "’s")):
        return True
    return relation in {"uses", "stopped_using"} and said.split(" ", 1)[0] in CALENDAR_WORDS
