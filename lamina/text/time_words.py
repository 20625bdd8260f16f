"""Words that name times in ten languages, as data for the patterns of ``times``.

Accents may be missing. Left out are words that mostly mean something else: ``sec``, ``set`` and ``ago`` as months.
"""

import unicodedata
from collections.abc import Iterable, Mapping

from lamina.text.english import NUMBER_WORDS

MONTH_NAMES: Mapping[int, str] = {
    1: "january jan januar jänner enero janvier gennaio janeiro январь января январе",
    2: "february feb februar feber febrero février febbraio fevereiro февраль февраля феврале",
    3: "march mar märz maerz marzo mars março март марта марте",
    4: "april apr abril avril aprile апрель апреля апреле",
    5: "may mai mayo maggio maio май мая мае",
    6: "june jun juni junio juin giugno junho июнь июня июне",
    7: "july jul juli julio juillet luglio julho июль июля июле",
    8: "august aug agosto août август августа августе",
    9: "september sep sept septiembre septembre settembre setembro сентябрь сентября сентябре",
    10: "october oct oktober okt octubre octobre ottobre outubro октябрь октября октябре",
    11: "november nov noviembre novembre novembro ноябрь ноября ноябре",
    12: "december dec dezember diciembre décembre dicembre dezembro декабрь декабря декабре",
}
AMBIGUOUS_MONTHS = ("may", "march", "mar", "mars", "mai", "jan", "jun")
"""Verbs, names and other words: months only beside a number, or where they are written as months are."""

WEEKDAY_NAMES: Mapping[int, str] = {
    0: "monday montag lunes lundi lunedì segunda-feira понедельник",
    1: "tuesday dienstag martes mardi martedì terça-feira вторник",
    2: "wednesday mittwoch miércoles mercredi mercoledì quarta-feira среду",
    3: "thursday donnerstag jueves jeudi giovedì quinta-feira четверг",
    4: "friday freitag viernes vendredi venerdì sexta-feira пятницу",
    5: "saturday samstag sonnabend sábado samedi sabato субботу",
    6: "sunday sonntag domingo dimanche domenica воскресенье",
}
CJK_WEEKDAYS = {"一": 0, "二": 1, "三": 2, "四": 3, "五": 4, "六": 5, "日": 6, "天": 6} | {
    day: place for place, day in enumerate("月火水木金土")
}
KOREAN_WEEKDAYS = {day: place for place, day in enumerate("월화수목금토일")}

UNIT_NAMES: Mapping[str, str] = {
    "hour": "hour hours stunde stunden hora horas heure heures ora ore час часа часов 小时 時間 시간",
    "day": "day days tag tage tagen día días jour jours giorno giorni dia dias день дня дней 天 日 일",
    "week": "week weeks woche wochen semana semanas semaine semaines settimana settimane "
    "неделя неделю недели недель неделе 周 週 星期 주",
    "weekend": "weekend wochenende week-end выходные выходных 周末 週末 주말",
    "month": "month months monat monate monaten mes meses mois mese mesi mês месяц месяца месяцев месяце 月 달 개월",
    "quarter": "quarter quarters quartal trimestre trimestres",
    "year": "year years jahr jahre jahren año años an ans année années anno anni ano anos год года лет году 年 년 해",
}
SEASON_NAMES: Mapping[str, str] = {
    "spring": "spring frühling frühjahr primavera printemps весной весна 春 春天 봄",
    "summer": "summer sommer verano été estate verão летом лето 夏 夏天 여름",
    "autumn": "autumn fall herbst otoño automne autunno outono осенью осень 秋 秋天 가을",
    "winter": "winter invierno hiver inverno зимой зима 冬 冬天 겨울",
}
SEASON_STARTS = {"spring": 3, "summer": 6, "autumn": 9, "winter": 12}

COUNT_NAMES: Mapping[int, str] = {
    1: "a an one ein eine einem einer einen un una uno une um uma один одну 一 한",
    2: "two couple zwei dos deux due dois duas два две 二 两 兩 두",
    3: "three drei tres trois tre três три 三 세",
    4: "four vier cuatro quatre quattro quatro четыре 四 네",
    5: "five fünf cinco cinq cinque пять 五 다섯",
    6: "six sechs seis sei шесть 六 여섯",
    7: "seven sieben siete sept sette sete семь 七 일곱",
    8: "eight acht ocho huit otto oito восемь 八 여덟",
    9: "nine neun nueve neuf nove девять 九 아홉",
    10: "ten zehn diez dix dieci dez десять 十 열",
    11: "eleven elf once onze undici",
    12: "twelve zwölf doce douze dodici doze",
}
NEAR_DAYS: Mapping[int, str] = {
    -2: "day before yesterday|vorgestern|anteayer|antier|avant-hier|l'altro ieri|anteontem|позавчера",
    -1: "yesterday|last night|gestern|ayer|anoche|ieri|ontem|вчера",
    0: "today|tonight|this morning|this afternoon|this evening|heute|hoy|esta noche|esta mañana|aujourd'hui|ce matin|"
    "ce soir|oggi|stamattina|stasera|hoje|сегодня",
    1: "tomorrow|demain|domani|amanhã|завтра",
    2: "day after tomorrow|übermorgen|pasado mañana|après-demain|dopodomani|depois de amanhã|послезавтра",
}
CJK_NEAR_DAYS: Mapping[int, str] = {
    -2: "前天|一昨日|おととい|그저께|엊그제",
    -1: "昨天|昨日|昨晚|昨夜|きのう|어제|어젯밤",
    0: "今天|今日|今晚|今夜|きょう|오늘",
    1: "明天|明日|あした|내일",
    2: "后天|後天|明後日|あさって|모레",
}
LAST = (
    "last|past|previous|letzte|letzten|letzter|letztes|letztem|vorige|vorigen|voriges|vergangene|vergangenen|"
    "vergangenes"
)
THIS = "this|diese|diesen|dieser|dieses|diesem|este|esta|esse|essa|neste|nesta|ce|cet|cette|questo|questa|quest'"
NEXT = "next|coming|nächste|nächsten|nächster|nächstes|nächstem|kommende|kommenden|kommendes"
LAST_AFTER = "pasado|pasada|dernier|dernière|passé|passée|scorso|scorsa|passado|passada"
NEXT_AFTER = "próximo|próxima|que viene|prochain|prochaine|prossimo|prossima|que vem"


def plain(word: str) -> str:
    """Return a word in small letters without accents; other scripts keep their marks.

    >>> plain("Février")
    'fevrier'
    """
    lowered = word.lower()
    if lowered.isascii():
        return lowered
    parted = unicodedata.normalize("NFD", lowered)
    return unicodedata.normalize("NFC", "".join(char for char in parted if not "\u0300" <= char <= "\u036f"))


def numbered(names: Mapping[int, str]) -> dict[str, int]:
    """Return the number of each plain name."""
    return {plain(name): number for number, listed in names.items() for name in listed.split()}


def named(names: Mapping[str, str]) -> dict[str, str]:
    """Return the time that each plain name stands for."""
    return {plain(name): key for key, listed in names.items() for name in listed.split()}


def alternatives(names: Iterable[str]) -> str:
    """Return a pattern of names, the longest first, each also without its accents."""
    forms = {form.lower() for name in names for form in (name, plain(name))}
    escaped = (form.replace("'", "['’]").replace("-", "[- ]?") for form in forms)
    return "|".join(sorted(escaped, key=lambda form: (-len(form), form)))


def listed_names(names: Mapping[int, str] | Mapping[str, str], separator: str | None = None) -> list[str]:
    """Return all names of a table."""
    return [name for listed in names.values() for name in listed.split(separator)]


MONTHS = numbered(MONTH_NAMES)
WEEKDAYS = numbered(WEEKDAY_NAMES)
UNITS = named(UNIT_NAMES)
SEASONS = named(SEASON_NAMES)
COUNTS = {**NUMBER_WORDS, **numbered(COUNT_NAMES)}
STEPS_OF_DAYS = {
    plain(name).replace("-", " "): step for step, listed in NEAR_DAYS.items() for name in listed.split("|")
} | {name: step for step, listed in CJK_NEAR_DAYS.items() for name in listed.split("|")}
CJK_STEPS: dict[str, tuple[str, int]] = {
    name: (unit, step)
    for unit, step, of_one in (
        ("week", -2, "上上周 上上星期 先々週 지지난주"),
        ("week", -1, "上周 上週 上星期 上个星期 上個星期 上礼拜 上个礼拜 先週 지난주"),
        ("week", 0, "这周 這週 本周 本週 这星期 这个星期 這個星期 今週 이번주"),
        ("week", 1, "下周 下週 下星期 下个星期 下個星期 来週 다음주"),
        ("weekend", -1, "上周末 上週末 先週末 지난주말"),
        ("weekend", 0, "这周末 這週末 本周末 今週末 이번주말"),
        ("weekend", 1, "下周末 下週末 来週末 다음주말"),
        ("month", -2, "先々月 上上个月 지지난달"),
        ("month", -1, "上个月 上個月 上月 先月 지난달"),
        ("month", 0, "这个月 這個月 本月 今月 이번달"),
        ("month", 1, "下个月 下個月 下月 来月 다음달"),
        ("year", -2, "前年 一昨年 재작년"),
        ("year", -1, "去年 昨年 작년 지난해"),
        ("year", 0, "今年 올해"),
        ("year", 1, "明年 来年 내년"),
    )
    for name in of_one.split()
}
