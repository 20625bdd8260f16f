"""Tell when a change happened that somebody tells late: "I moved to Linz in 2015", "… when I was six".

What is told late begins at its own time, not when it was told, so that it replaces nothing that held since.
"""

from datetime import UTC, datetime, timedelta

import regex

from lamina.text.dates import event_time
from lamina.text.english import NUMBER_WORDS

LONG_AGO = datetime(1, 1, 1, tzinfo=UTC)
"""Of what happened in a time that nothing dates."""
# Rather too few than too many.
_COUNTS = NUMBER_WORDS | {"couple": 2, "few": 2, "several": 3, "some": 3, "many": 5}
# Since a year it holds; in or before it, it began.
_YEAR = regex.compile(
    r"(?<![\p{L}\d.,:/$€£#-])(?<!\b(?:since|seit|desde|depuis) )(?P<year>(?:19|20)\d\d)"
    r"(?![\p{L}\d:/%-]|[.,]\d|年(?:以来|起))",
    regex.IGNORECASE,
)
_YEARS_AGO = regex.compile(
    rf"\b(?:(?P<count>\d{{1,2}}|{'|'.join(NUMBER_WORDS)}|an?|(?:a )?(?:couple|few)(?: of)?|several|some|many) )?"
    r"(?:(?P<decades>decades?)|years?) ago\b",
    regex.IGNORECASE,
)
_UNDATED = regex.compile(
    r"\bwhen (?:i was|we were)\b(?! (?:offered|hired|promoted|transferred|asked|told|made))"
    r"|\bas an? (?:(?:young|little|small) )?(?:child|kid|boy|girl|teen|teenager|toddler|baby)\b"
    r"|\bas an? (?:exchange|foreign) student\b"
    r"|\bback (?:then|in (?:the day|those|my|high school|school|college|uni|university))\b"
    r"|\bin (?:my|our) (?:(?:early|late|mid)[ -])?(?:teens|twenties|thirties|forties|fifties|childhood|youth)\b"
    r"|\b(?:at (?:the|that) time|by then|in those (?:days|years)|a long time ago|long ago|ages ago)\b"
    r"|\b(?:that|the same|(?:it|that) was the) (?:summer|winter|spring|autumn|fall|year|day|month)\b"
    r"|\b(?:als (?:ich|wir|kind|junge|mädchen|teenager)\b|damals\b|vor (?:vielen|langen|einigen) jahren\b)"
    r"|\b(?:cuando (?:yo )?(?:tenía|era|éramos)|de (?:niñ[oa]|pequeñ[oa]|joven)|en aquel)\b"
    r"|\bhace (?:muchos |bastantes )?años\b"
    r"|\b(?:quand (?:j['’](?:avais|étais)|nous étions)|(?:enfant|petite?),|à l['’]époque)"
    r"|\bil y a (?:longtemps|des années)\b"
    r"|小时候|小時候|那时|那時|当时|當時|子供の頃|子どもの頃|学生の頃|学生時代|当時|その頃|昔",
    regex.IGNORECASE,
)
_LASTS = regex.compile(
    r"\bstill (?:live|living|work|working|there|here|am|do)\b"
    r"|\b(?:ever since|to this day|never left|stayed(?=\W*$|[.,;!]))",
    regex.IGNORECASE,
)
# "… in 2009 and left in 2012": not "… and left Initech".
_LEFT_AGAIN = regex.compile(
    r"\bwhich i (?:later )?(?:left|quit)\b"
    r"|\b(?:and|but|then) (?:(?:then|soon|later|i|we) ){0,2}(?:left|quit|moved (?:back|on|away|out)|came (?:back|home)|"
    r"returned|went (?:back|home))(?=\W*$|[.,;!]| (?:again|in|after|two|three|four|five|\d+|last|it|them|there|home|"
    r"when|because|at|for (?!(?-i:\p{Lu}))|until|till|the (?:year|next|same)|a (?:year|month|week|few|couple))\b)"
    r"|(?:,|\band|\bbut) (?:(?:then|later) ){0,2}(?:(?:back|on) (?:to|home)\b|(?<=then )to (?-i:\p{Lu}))"
    r"|\b(?:then|later|but) (?:i )?(?:withdrew|declined|backed out|turned it down|changed my mind)\b",
    regex.IGNORECASE,
)
_FOR_A_TIME = regex.compile(
    r"\bfor (?:about |only |just |almost )?(?:an?|half a|the|that|some|several|\d{1,2}|"
    rf"{'|'.join(NUMBER_WORDS)}) (?:few |couple of )?"
    r"(?:years?|months?|weeks?|semesters?|terms?|summers?|winters?|seasons?|while)\b",
    regex.IGNORECASE,
)


def time_of_change(sentence: str, said_at: datetime | None) -> datetime | None:
    """Return when a change happened that a sentence tells late; ``None`` where it is of the time of its telling.

    Args:
        sentence: With the change.
        said_at: When it was said, in UTC; ``None`` if nobody knows, and then only a year that is named dates a change.

    Returns:
        The day that the sentence names, or the end of its year; :data:`LONG_AGO` where it names none, and where what
        began has ended again.

    >>> time_of_change("I moved to Linz in 2015.", datetime(2026, 5, 4, tzinfo=UTC))
    datetime.datetime(2015, 12, 31, 0, 0, tzinfo=datetime.timezone.utc)
    >>> time_of_change("I moved to Linz last week.", datetime(2026, 5, 4, tzinfo=UTC))
    """
    if _LASTS.search(sentence):
        return None
    if _UNDATED.search(sentence) or _LEFT_AGAIN.search(sentence):
        return LONG_AGO
    late = _dated(sentence, said_at)
    return LONG_AGO if late is not None and _FOR_A_TIME.search(sentence) else late


def _dated(sentence: str, said_at: datetime | None) -> datetime | None:
    if found := _YEAR.search(sentence):
        year = int(found["year"])
        if said_at is not None and year >= said_at.year:
            return None
        day = event_time(sentence, said_at)
        return day if day is not None and day.year == year else datetime(year, 12, 31, tzinfo=UTC)
    ago = _YEARS_AGO.search(sentence)
    if ago is None or said_at is None:
        return None
    days = 365 * _count(ago["count"]) * (10 if ago["decades"] else 1)
    return said_at - timedelta(days=min(days, (said_at - LONG_AGO).days))


def _count(words: str | None) -> int:
    """Return how many are meant: one for "a", some where nothing says it."""
    said = (words or "some").casefold()
    return int(said) if said.isdigit() else max(_COUNTS.get(word, 1) for word in said.split())
