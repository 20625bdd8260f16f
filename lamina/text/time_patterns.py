"""The patterns by which texts name times, each with its meaning."""

import re

from lamina.text import time_readers as readers
from lamina.text import time_words as names
from lamina.text.english import NUMBER_WORDS, listed
from lamina.text.patterns import regex
from lamina.text.time_readers import Reader
from lamina.text.time_words import (
    CJK_STEPS,
    MONTHS,
    SEASONS,
    STEPS_OF_DAYS,
    UNITS,
    WEEKDAYS,
    alternatives,
    listed_names,
    plain,
)

_FIRST_CJK = "\u2e80"
WORD = regex.compile(r"[^\W\d_]+")
# Stands among the words of a text for a year, an ISO date or a quarter.
NUMBER = "0000"
_MONTH = rf"(?P<month>{alternatives(listed_names(names.MONTH_NAMES))})"
_YEAR = r"(?P<year>(?:19|20)\d\d)(?!\d)"
_OF = r"(?:of |de |del |do |di |du |d['’])?"
_COUNT = rf"(?P<count>\d{{1,4}}|{alternatives((*NUMBER_WORDS, *listed_names(names.COUNT_NAMES)))})"
_SPACED_UNITS = [name for name in listed_names(names.UNIT_NAMES) if name[0] < _FIRST_CJK]
_UNIT = rf"(?P<unit>{alternatives(_SPACED_UNITS)})"
# "The last day of the trip" and "this hour" are none.
_LONG_UNIT = rf"(?P<unit>{alternatives(name for name in _SPACED_UNITS if UNITS[plain(name)] not in ('hour', 'day'))})"
_WEEKDAY = rf"(?P<weekday>{alternatives(listed_names(names.WEEKDAY_NAMES))})"
_SEASON = rf"(?P<season>{alternatives(name for name in listed_names(names.SEASON_NAMES) if name[0] < _FIRST_CJK)})"
_STEPS = (
    rf"(?:(?P<last>{alternatives(names.LAST.split('|'))})|(?P<this>{alternatives(names.THIS.split('|'))})"
    rf"|(?P<next>{alternatives(names.NEXT.split('|'))}))"
)
_STEPS_AFTER = (
    rf"(?:(?P<last_after>{alternatives(names.LAST_AFTER.split('|'))})"
    rf"|(?P<next_after>{alternatives(names.NEXT_AFTER.split('|'))}))"
)
IN = "in|during|throughout|since|until|till|im|seit|bis|ab|en|em|nel|desde|hasta|até|depuis|dès|в|с|до"  # noqa: RUF001 - Cyrillic
_BEFORE_AFTER = (
    "before|after|of|for|by|early|late|mid|vor|nach|anfang|ende|mitte|antes de|después de|depois de|de|di|dal|da|"
    "fino a|entro|prima di|dopo|avant|après|au mois de|после"
)
# An owner, a date that another pattern reads, or somebody of that name who does something.
_NO_NAME = (
    r"(?!['’]s\b| \d|-| (?:said|says|told|left|arrived|came|went|moved|joined|is|was|has|had|did|does|and i|and her)\b)"
)
# "in 2000 steps" is no year, "in 2000 was" is one.
_NO_AMOUNT = (
    r"(?![\d%]|[-.,:/]\d| (?!was\b|is\b|has\b|does\b|us\b|as\b|his\b|this\b)[a-z]+s\b| ?(?:people|ms|km|kg|mb|gb)\b)"
)
_CJK_COUNT = r"(?P<count>\d{1,3}|[一二三四五六七八九十两兩]{1,3}|한|두|세|네|다섯|여섯|일곱|여덟|아홉|열)"
_CJK_UNIT = "(?P<unit>天|日|周|週|星期|个月|個月|か月|ヶ月|カ月|개월|달|年|년|주|일)"
_CJK_DAY = r"(?P<day>\d{1,2}|[一二三四五六七八九十]{1,3}) ?[日号號일](?!間|间|前|전)"
_CJK_MONTH = r"(?P<month>\d{1,2}|[一二三四五六七八九十]{1,3}) ?[月월](?!間)"
_STEPPED = "|".join(
    name.replace("번", "번 ?").replace("다음", "다음 ?").replace("지난", "지난 ?")
    for name in sorted(CJK_STEPS, key=len, reverse=True)
)


def _pattern(text: str) -> "regex.Pattern[str]":
    return regex.compile(rf"(?<![\w-])(?:{text})(?!\w)", regex.IGNORECASE)


def _longest_word(name: str) -> str:
    """Return the word by which a text is known that may hold a name: "night" for last night."""
    words: list[str] = re.findall(r"[^\W\d_]+", name)
    return max(words, key=len)


_OF_MONTHS, _OF_SEASONS, _OF_WEEKDAYS = (frozenset(map(_longest_word, table)) for table in (MONTHS, SEASONS, WEEKDAYS))
# "An" is an article in English: a French year is known by the words around it.
_OF_UNITS = (frozenset(UNITS) - {"an"}) | {"y", "dernier", "prochain"}
_OF_DAYS = frozenset(map(_longest_word, STEPS_OF_DAYS))
_NUMBERED = frozenset({NUMBER})
# For texts in alphabets: words of which a text must have one, the pattern, its meaning. Of two that begin at one place
# the longer one counts.
RULES: tuple[tuple[frozenset[str], "regex.Pattern[str]", Reader], ...] = (
    (
        _NUMBERED,
        regex.compile(r"(?<![\w-])(?P<year>(?:19|20)\d\d)-(?P<month>\d\d)(?:-(?P<day>\d\d))?(?=T\d|[^\w-]|$)"),
        readers.iso_days,
    ),
    (
        _OF_MONTHS,
        _pattern(rf"(?P<day>\d{{1,2}})(?:\.|st|nd|rd|th|er|º|ª|°)? ?{_OF}{_MONTH}\b\.?(?:,? {_OF}{_YEAR})?"),
        readers.day_month,
    ),
    (
        _OF_MONTHS,
        _pattern(rf"{_MONTH}\.? (?:the )?(?P<day>\d{{1,2}})(?:st|nd|rd|th)?(?!\d|:\d|[.,]\d| ?%)(?:,? {_YEAR})?"),
        readers.day_month,
    ),
    (_OF_MONTHS, _pattern(rf"{_MONTH}\.?,? {_OF}{_YEAR}"), readers.month_year),
    (_OF_MONTHS, _pattern(rf"{_STEPS} {_MONTH}{_NO_NAME}"), readers.month_alone),
    (_OF_MONTHS, _pattern(rf"{_MONTH} {_STEPS_AFTER}"), readers.month_alone),
    (_OF_MONTHS, _pattern(rf"(?:{IN}|{_BEFORE_AFTER}) (?P<named>{_MONTH}){_NO_NAME}"), readers.month_alone),
    (_OF_SEASONS, _pattern(rf"{_SEASON},? {_OF}{_YEAR}"), readers.by_season),
    (_OF_SEASONS, _pattern(rf"{_STEPS} {_SEASON}"), readers.by_season),
    (_OF_SEASONS, _pattern(rf"{_SEASON} {_STEPS_AFTER}"), readers.by_season),
    (
        _OF_SEASONS,
        _pattern(
            rf"(?:(?:in|during|over|since|before|after)(?: the)?|im|en(?: el)?|au|no|nel|d['’]) (?P<named>{_SEASON})"
            r"|(?P<season>летом|весной|осенью|зимой)"
        ),
        readers.by_season,
    ),
    (_OF_UNITS, _pattern(rf"{_STEPS} {_LONG_UNIT}"), readers.by_unit),
    (_OF_UNITS, _pattern(rf"(?P<last>última|último|прошл\w+)(?: na)? {_LONG_UNIT}"), readers.by_unit),
    (_OF_UNITS, _pattern(rf"(?P<this>эт\w+) {_LONG_UNIT}"), readers.by_unit),
    (
        _OF_UNITS,
        _pattern(rf"(?P<next>próxima|próximo|prossima|prossimo|prochaine?|следующ\w+) {_LONG_UNIT}"),
        readers.by_unit,
    ),
    (_OF_UNITS, _pattern(rf"{_LONG_UNIT} {_STEPS_AFTER}"), readers.by_unit),
    (_OF_UNITS, _pattern(r"(?P<last>(?:at|over|on) the|am) (?P<unit>weekend|wochenende)"), readers.by_unit),
    (_OF_DAYS, _pattern(rf"(?P<near>{alternatives(listed_names(names.NEAR_DAYS, '|'))})"), readers.near_day),
    (listed("ago fa atras назад"), _pattern(rf"(?:a )?{_COUNT}(?: of)? {_UNIT} (?:ago|fa|atrás|назад)"), readers.ago),
    (listed("назад"), _pattern(r"(?P<unit>неделю|месяц|год) назад"), readers.ago),
    (listed("vor hace y ha"), _pattern(rf"(?:vor|hace|il y a|há) {_COUNT} {_UNIT}"), readers.ago),
    (
        _OF_UNITS,
        _pattern(rf"(?:in|dentro de|dans|tra|fra|daqui a|через) (?:a )?{_COUNT}(?: of)? {_UNIT}(?! of| ago)"),
        readers.ahead,
    ),
    (listed("now today"), _pattern(rf"(?:a )?{_COUNT} {_UNIT} from (?:now|today)"), readers.ahead),
    (
        listed("last past letzten vergangenen ultimos ultimas derniers dernieres ultimi ultime последние"),
        _pattern(
            rf"(?:(?:last|past|letzten|vergangenen|últimos|últimas|derniers|dernières|ultimi|ultime|последние) {_COUNT}"
            rf"|{_COUNT} (?:derniers|dernières|últimos|últimas)) {_UNIT}"
        ),
        readers.lasting,
    ),
    (listed("last past"), _pattern(rf"(?:(?:in|during|over|within) the last|(?:the )?past) {_UNIT}"), readers.lasting),
    (_OF_WEEKDAYS, _pattern(rf"{_STEPS} {_WEEKDAY}"), readers.by_weekday),
    (_OF_WEEKDAYS, _pattern(rf"{_WEEKDAY} {_STEPS_AFTER}"), readers.by_weekday),
    (_OF_WEEKDAYS, _pattern(rf"(?:on|am|el|в|во) (?P<named>{_WEEKDAY})"), readers.by_weekday),
    (
        _NUMBERED,
        _pattern(
            rf"(?:{IN}|before|after|of|by|early|late|mid|vor|nach|antes de|después de|depois de|avant|après|prima del|"
            r"dopo il|после|year|jahr|jahre|año|anno|ano|année)(?: the)?(?: year| jahre?)? "
            rf"(?P<named>{_YEAR}){_NO_AMOUNT}"
        ),
        readers.year,
    ),
    (_NUMBERED, _pattern(rf"q(?P<quarter>[1-4])(?:[ /-]?{_YEAR})?"), readers.quarter),
)
FRENCH_HIER = _pattern("(?P<near>hier)(?: soir| matin)?")
GERMAN_MORGEN = regex.compile(
    r"(?<!guten |heute |gestern |am |jeden |diesen )(?<![\w-])"
    r"(?-i:morgen|(?<=^|[.!?:] )Morgen(?= \w))(?!\w)",
    regex.IGNORECASE,
)
MANANA = _pattern(r"(?<!la )(?<!esta )(?<!pasado )(?<!cada )(?P<near>mañana)")
GERMAN = listed("ist sind ich wir das der die und nicht war hat wo was es gibt wer ein eine du sie mit von")
CJK_RULES: tuple[tuple["regex.Pattern[str]", Reader], ...] = (
    (
        regex.compile(rf"(?:{_YEAR} ?[年년](?: ?{_CJK_MONTH}(?: ?{_CJK_DAY})?)?|{_CJK_MONTH}(?: ?{_CJK_DAY})?)"),
        readers.cjk_date,
    ),
    (
        regex.compile(
            rf"(?P<stepped>{_STEPPED})(?:の|的| )?"
            r"(?:(?P<weekday>[月火水木金土日])曜日?|(?P<weekday>[월화수목금토일])요일"
            r"|(?<=[周週期拜])(?P<weekday>[一二三四五六日天])(?![起直个次定样下些共]))"
        ),
        readers.cjk_weekday,
    ),
    (
        regex.compile(rf"(?P<stepped>{_STEPPED})(?:の|的| )?(?P<season>春天?|夏天?|秋天?|冬天?|봄|여름|가을|겨울)"),
        readers.cjk_season,
    ),
    (regex.compile(rf"(?P<stepped>{_STEPPED})"), readers.cjk_unit),
    (
        regex.compile(rf"(?P<near>{'|'.join(sorted(listed_names(names.CJK_NEAR_DAYS, '|'), key=len, reverse=True))})"),
        readers.near_day,
    ),
    (
        regex.compile(rf"{_CJK_COUNT} ?{_CJK_UNIT}(?:间|間)? ?(?:以前|之前|前|전)"),
        readers.cjk_ago,
    ),
    (
        regex.compile(rf"(?:最近|过去|過去|ここ|지난|최근) ?{_CJK_COUNT} ?{_CJK_UNIT}"),
        readers.lasting,
    ),
)
FUTURE = _pattern(
    r"will|going to|plan|plans|planned|planning|upcoming|scheduled|due|tomorrow|wird|werden|geplant|geplante|plant|"
    r"va a|van a|vamos a|voy a|va|vont|allons|prévu|prévue|vai|vão|планиру\w+|будет|будут"
)
_ARTICLE = "(?:the |dem |el |le |il |o )?"
RANGE = _pattern(
    r"(?:between|from|zwischen|vom|von|entre|desde|de|du|tra|fra|dal|da|между|с) "  # noqa: RUF001 - Cyrillic
    rf"{_ARTICLE}(?P<first>[^.?!;]{{1,40}}?) "
    r"(?:and|to|until|till|through|und|bis zum|bis zu|bis|y|et|e|à|au|a|al|hasta|ao|até|и|по|до|-|–) "
    rf"{_ARTICLE}(?P<last>[^.?!;]{{1,40}})"
)
DAY_ALONE = regex.compile(r"(?P<day>\d{1,2})(?:\.|st|nd|rd|th|er|º)?")
JOINED = regex.compile(r" ?(?:から|到|至|부터|~|～|-|–|to|until|till|through|bis) ?")  # noqa: RUF001 - dashes of texts
UP_TO_HERE = 24
BOUNDS_BEFORE: tuple[tuple[str, "regex.Pattern[str]"], ...] = tuple(
    (bound, regex.compile(rf"(?<![\w-])(?:{words})(?: the| dem| den| le| el| il| o)? $", regex.IGNORECASE))
    for bound, words in (
        ("until", r"until|till|up to|by|bis(?: zum)?|hasta|jusqu['’](?:en|à|au)|fino a|até|до"),
        ("before", r"before|prior to|vor|antes del?|avant|prima del?|antes d[eo]"),
        ("after", r"after|nach|después del?|tras|après|dopo|depois d[eo]|após|после"),
        ("since", r"since|from|starting|seit|ab|desde|depuis|dès|с"),  # noqa: RUF001 - Cyrillic
    )
)
BOUNDS_AFTER: tuple[tuple[str, "regex.Pattern[str]"], ...] = (
    ("until", regex.compile(r" ?(?:まで|까지)")),
    ("before", regex.compile(r" ?(?:之前|以前|より前|이전|전에)")),
    ("after", regex.compile(r" ?(?:之后|之後|以后|以後|이후)")),
    ("since", regex.compile(r" ?(?:以降|以来|から|부터|起)")),
)
_REST = r"[^,.;?!]{2,60}"
_SUBJECT = (
    r"(?:the|my|our|his|her|their|your|its|a|an|we|i|he|she|they|you|it|\w+ing|(?-i:\p{Lu}\w+)(?:['’]s)?)"
    rf" {_REST}|(?-i:\p{{Lu}}\w{{2,}})"
)
_GERMAN_SUBJECT = rf"(?:de[mrn]|die|das|(?:meine|unsere|ihre|seine)[mr]|ich|wir|er|sie|es) {_REST}"
EVENT = regex.compile(
    rf"(?<![\w-])(?:(?:(?P<before>before|prior to)|(?P<after>after|following|since)) (?P<event>{_SUBJECT})"
    rf"|(?:(?P<before>vor|bevor)|(?P<after>nach|nachdem|seit)) (?P<event>{_GERMAN_SUBJECT})"
    r"|(?:(?P<before>antes|avant|prima)|(?P<after>después|depois|après|dopo|tras|após)) "
    rf"(?:d[aeio]l?l?['’]?|que|il|la|le|les|l['’])? ?(?P<event>{_REST})"
    rf"|(?:(?P<before>до|перед)|(?P<after>после)) (?P<event>{_REST}))",
    regex.IGNORECASE,
)
# What stands before one of these is looked for behind the match: tried at each character, it took twenty steps.
EVENT_ENDS = regex.compile(
    r"(?: ?の)? ?(?:(?P<before>之前|以前|前に|より前|전에)|(?P<after>之后|之後|以后|以後|後に|以降|이후|후에))"
)
EVENT_BEHIND = regex.compile(r"[^\s,.;?!、。？！]{2,20}$")  # noqa: RUF001 - marks of Chinese
LATEST = regex.compile(
    r"(?<![\w-])(?:most recent(?:ly)?|latest|last time|zuletzt|neuesten?|jüngsten?|letzte[sn]? mal|"
    r"más recientes?|última vez|dernière fois|(?:le |la )plus récente?|più recente|ultima volta|mais recentes?|"
    r"последний раз)(?!\w)"
    r"|最近一次|最近的|最新|最後に|最近の|直近|가장 최근|마지막으로",
    regex.IGNORECASE,
)
EARLIEST = regex.compile(
    r"(?<![\w-])(?:when (?:did|was|were|had|have|has|is)\b[^.?!]{1,80}?\bfirst(?! (?:name|aid|place|class|floor|half))|"
    r"first time|first (?:mention(?:ed)?|met|heard|started|began)|earliest|zum ersten mal|zuerst|primera vez|"
    r"(?:la )?première fois|(?:la )?prima volta|pela primeira vez|primeira vez|впервые|в первый раз)(?!\w)"
    r"|第一次|首次|最早|初めて|最初に|처음",
    regex.IGNORECASE,
)
CJK = regex.compile(r"[\u2e80-\u9fff\uac00-\ud7af]")
LONG_NUMBER = regex.compile(r"(?<!\d)(?:19|20)\d\d(?!\d)|(?<!\w)[qQ][1-4](?!\w)")
STATED_TRIGGERS = (
    _OF_MONTHS | _OF_SEASONS | _OF_WEEKDAYS | _OF_UNITS | _OF_DAYS | _NUMBERED | listed("hier morgen manana")
)
"""A message in an alphabet that has none of these words names no time."""
TRIGGERS = STATED_TRIGGERS | listed(
    """
        before prior after since following vor bevor nach nachdem seit antes avant prima despues
        depois apres dopo tras apos до после перед recent recently latest last zuletzt neueste neuesten jungste jungsten
        letzte letzten letztes reciente recientes ultima derniere recente recentes последнии first earliest ersten
        zuerst primera premiere primeira впервые первыи volta
        """
)
"""A question in an alphabet that has none of these words asks about no time."""
