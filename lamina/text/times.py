"""Resolve the times that a text names to half-open stretches of days: "last week", "im März", "先週", "before 3 May".

By closed rules for English, German, Spanish, French, Italian, Portuguese, Russian, Chinese, Japanese and Korean, some
ten microseconds for a text that names none, linear in its length. Weeks begin on Monday, summers in June. A year of two
digits and ``03/04/2026`` have several readings, and so none here.
"""

import calendar
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta, tzinfo
from enum import StrEnum
from itertools import islice
from typing import Any, Self

from lamina.text import time_readers as readers
from lamina.text import time_words as names
from lamina.text.parts import ends_of
from lamina.text.patterns import regex
from lamina.text.time_patterns import (
    BOUNDS_AFTER,
    BOUNDS_BEFORE,
    CJK,
    CJK_RULES,
    DAY_ALONE,
    EARLIEST,
    EVENT,
    EVENT_BEHIND,
    EVENT_ENDS,
    FRENCH_HIER,
    FUTURE,
    GERMAN,
    GERMAN_MORGEN,
    JOINED,
    LATEST,
    LONG_NUMBER,
    MANANA,
    NUMBER,
    RANGE,
    RULES,
    STATED_TRIGGERS,
    TRIGGERS,
    UP_TO_HERE,
    WORD,
)
from lamina.text.time_readers import Days, Reader, Said
from lamina.text.time_words import plain
from lamina.text.vocabulary import is_english_word

MOST_CHARS = 2_000
"""Of a longer text both ends are read."""
MOST_TIMES = 8
MOST_EVENT_CHARS = 20
MOST_EVENT_WORDS = 6
_ORDINAL = regex.compile(r"\d(?:st|nd|rd|th|\.)|\b(?:of|de|di)\b", regex.IGNORECASE)
_WORD_NEXT = regex.compile(" [a-z]")
# Of months whose names are other words, too.
_PREPOSITIONS = {
    **dict.fromkeys(("jan", "jun", "mar"), frozenset({"in", "during", "since", "im"})),
    "mars": frozenset({"en", "de", "depuis", "avant", "après", "dès", "au mois de"}),
    "mai": frozenset(
        ("im", "seit", "bis", "ab", "en", "de", "vor", "nach", "anfang", "ende", "mitte", "avant", "après", "depuis")
    ),
}


class TimeKind(StrEnum):
    """How a question names a time."""

    INTERVAL = "interval"
    LATEST = "latest"
    EARLIEST = "earliest"
    BEFORE_EVENT = "before_event"
    AFTER_EVENT = "after_event"


@dataclass(frozen=True, slots=True)
class Interval:
    """A half-open stretch of time, in UTC: it ends the moment the next one begins.

    Args:
        start: Its first moment; ``None`` if it has always been.
        end: The first moment after it; ``None`` if it never ends.
    """

    start: datetime | None
    end: datetime | None


@dataclass(frozen=True, slots=True)
class AskedTime:
    """The time that a question is about.

    Args:
        kind: How it is named.
        phrase: The words that name it.
        intervals: The stretches that it names; none where an event must be found first, or only the order counts.
        event: The words of the event that something happened before or after.
    """

    kind: TimeKind
    phrase: str
    intervals: tuple[Interval, ...] = ()
    event: str = ""

    def parts(self) -> tuple[Any, ...]:
        """Return it as plain values."""
        return self.kind.value, self.phrase, tuple((one.start, one.end) for one in self.intervals), self.event

    @classmethod
    def from_parts(cls, parts: Any) -> "Self | None":
        """Return it again; ``None`` if there was none."""
        if parts is None:
            return None
        kind, phrase, intervals, event = parts
        return cls(TimeKind(kind), phrase, tuple(Interval(*one) for one in intervals), event)


def asked_time(question: str, now: datetime, zone: tzinfo) -> AskedTime | None:
    """Return the time that a question is about; ``None`` where it names none that is understood.

    Args:
        question: In any of the languages.
        now: When it is asked, or the moment that it is asked as of.
        zone: Of the person who asks: his days and weeks count.
    """
    text = _spaced(question)
    if not _may_name_time(text, TRIGGERS):
        return None
    try:
        said = Said(now.astimezone(zone).replace(tzinfo=None), FUTURE.search(text) is not None, is_question=True)
        spans = [_with_bound(text, span) for span in _ranges(text, _spans(text, said), said)]
    except (OverflowError, ValueError):  # the first or last years of the calendar
        return None
    if spans:
        phrase = ", ".join(text[span.begins : span.ends] for span in spans)
        return AskedTime(TimeKind.INTERVAL, phrase, tuple(_interval(span, zone) for span in spans))
    return _without_interval(text)


def _without_interval(text: str) -> AskedTime | None:
    """Return the event, or the first or last thing, that a question asks for."""
    if match := EVENT.search(text):
        return _beside(match, match["event"], match.group())
    for match in EVENT_ENDS.finditer(text):
        if event := EVENT_BEHIND.search(text[max(0, match.start() - MOST_EVENT_CHARS) : match.start()]):
            return _beside(match, event.group(), event.group() + match.group())
    if match := LATEST.search(text):
        return AskedTime(TimeKind.LATEST, match.group())
    match = EARLIEST.search(text)
    return AskedTime(TimeKind.EARLIEST, match.group()) if match else None


def _beside(match: "regex.Match[str]", event: str, phrase: str) -> AskedTime:
    kind = TimeKind.BEFORE_EVENT if match["before"] else TimeKind.AFTER_EVENT
    return AskedTime(kind, phrase.strip(), event=" ".join(event.split()[:MOST_EVENT_WORDS]))


def named_times(text: str, said_at: datetime, zone: tzinfo) -> tuple[Interval, ...]:
    """Return the stretches of time that a message names, seen from its own day, in the order of its words.

    A weekday or a month alone may be past or to come, and names none.
    """
    spaced = _spaced(text)
    if not _may_name_time(spaced, STATED_TRIGGERS):
        return ()
    try:
        said = Said(said_at.astimezone(zone).replace(tzinfo=None), is_future=False, is_question=False)
        spans = _spans(spaced, said)
    except (OverflowError, ValueError):  # the first or last years of the calendar
        return ()
    return tuple(dict.fromkeys(_interval(span, zone) for span in spans))


@dataclass(frozen=True, slots=True)
class _Span:
    """A stretch of local time, and where a text names it.

    Args:
        begins: Place of its first character.
        ends: Place after its last one.
        start: Its first moment.
        end: The moment after it.
        has_year: Whether its year is named.
        is_range: Whether it reaches from one named time to another.
    """

    begins: int
    ends: int
    start: datetime | None
    end: datetime | None
    has_year: bool = True
    is_range: bool = False


def _interval(span: _Span, zone: tzinfo) -> Interval:
    return Interval(_utc(span.start, zone), _utc(span.end, zone))


def _utc(moment: datetime | None, zone: tzinfo) -> datetime | None:
    if moment is None:
        return None
    try:
        return moment.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:  # the first day of the calendar, east of Greenwich
        return None


def _spaced(text: str) -> str:
    """Return the ends of a text with single blanks; a pattern never meets a run of them."""
    return " ".join(ends_of(text, MOST_CHARS).split())


def has_foreign_time(text: str) -> bool:
    """Report whether a text has a word, none of English, of which a time may be made: gestern, Montag, 明天."""
    spaced = _spaced(text)
    found = _words_of(spaced) & STATED_TRIGGERS - {NUMBER}
    return CJK.search(spaced) is not None or not all(map(is_english_word, found))


def _words_of(text: str) -> frozenset[str]:
    words = frozenset(WORD.findall(plain(text)))
    return words | {NUMBER} if LONG_NUMBER.search(text) else words


def _may_name_time(text: str, triggers: frozenset[str]) -> bool:
    return not triggers.isdisjoint(_words_of(text)) or CJK.search(text) is not None


def _spans(text: str, said: Said) -> list[_Span]:
    """Return the stretches that a text names, none within another, in their order."""
    found = []
    for place, (pattern, read) in enumerate(_rules_of(text, _words_of(text))):
        for match in pattern.finditer(text):
            if (days := _read(match, read, said)) is not None:
                begins, ends = match.span("named") if match.groupdict().get("named") else match.span()
                found.append((begins, begins - ends, place, _Span(begins, ends, *days)))
    chosen: list[_Span] = []
    for _, _, _, span in sorted(found, key=lambda item: item[:3]):
        if not chosen or span.begins >= chosen[-1].ends:
            chosen.append(span)
    return chosen[:MOST_TIMES]


def _rules_of(text: str, words: frozenset[str]) -> Iterator[tuple["regex.Pattern[str]", Reader]]:
    yield from ((pattern, read) for needed, pattern, read in RULES if not needed.isdisjoint(words))
    if CJK.search(text):
        yield from CJK_RULES
    if "manana" in words:
        yield MANANA, readers.tomorrow
    if "hier" in words and words.isdisjoint(GERMAN):
        yield FRENCH_HIER, readers.yesterday
    if "morgen" in words:
        yield GERMAN_MORGEN, readers.tomorrow


def _read(match: "regex.Match[str]", read: Reader, said: Said) -> Days | None:
    """Return the stretch that a match names; ``None`` where there is no such day, or the words mean something else."""
    if (match.groupdict().get("month") or "").lower() in names.AMBIGUOUS_MONTHS and not _is_month(match):
        return None
    if read is readers.ahead and said.is_question and not said.is_future:
        return None
    try:
        return read(match, said)
    except (LookupError, ValueError, OverflowError):  # patterns that ignore case take a long s, readers do not
        return None


def _is_month(match: "regex.Match[str]") -> bool:
    """Report whether a word that may be a verb or a name is a month here."""
    groups, word = match.groupdict(), match["month"]
    if groups.get("year"):
        return True
    if groups.get("day"):
        is_ordinal = _ORDINAL.search(match.group()) is not None
        is_followed = _WORD_NEXT.match(match.string, match.end()) is not None
        return is_ordinal or not is_followed or not word.islower() or word in ("mai", "mars")
    if not groups.get("named"):
        return not word.islower()
    before = match.group()[: match.start("named") - match.start()].strip().lower()
    if word.lower() in _PREPOSITIONS:
        return before in _PREPOSITIONS[word.lower()]
    return not word.islower() or before in ("in", "during", "since")


def _ranges(text: str, spans: Sequence[_Span], said: Said) -> list[_Span]:
    """Return the stretches, with those that a text joins (between … and, from … to) as one."""
    matches = islice(RANGE.finditer(text, overlapped=True), MOST_TIMES)
    ranges = [found for match in matches if (found := _range(match, said)) is not None]
    taken: list[_Span] = []
    for span in ranges:
        if not taken or span.begins >= taken[-1].ends:
            taken.append(span)
    left = [span for span in spans if not any(one.begins < span.ends and span.begins < one.ends for one in taken)]
    joined: list[_Span] = []
    for span in left:
        if joined and JOINED.fullmatch(text[joined[-1].ends : span.begins]):
            joined[-1] = _hull(joined[-1], span)
        else:
            joined.append(span)
    return sorted((*taken, *joined), key=lambda span: span.begins)


def _range(match: "regex.Match[str]", said: Said) -> _Span | None:
    last = _first_of(match["last"], said)
    if last is None:
        return None
    first = _first_of(match["first"], said)
    if (
        first is None
        and (day := DAY_ALONE.fullmatch(match["first"]))
        and last.start
        and int(day["day"]) <= last.start.day
    ):
        start = last.start.replace(day=max(int(day["day"]), 1))
        first = _Span(0, len(match["first"]), start, start + timedelta(days=1), last.has_year)
    if first is None or first.ends < len(match["first"].rstrip()):
        return None
    begins = match.start()
    return replace(_hull(first, last), begins=begins, ends=match.start("last") + last.ends)


def _first_of(text: str, said: Said) -> _Span | None:
    """Return the stretch with which a text begins, without a preposition."""
    for lead in ("in ", "en "):
        found = [span for span in _spans(lead + text, said) if span.begins <= len(lead)]
        if found:
            return replace(found[0], begins=0, ends=found[0].ends - len(lead))
    return None


def _hull(first: _Span, last: _Span) -> _Span:
    """Return all from one stretch to another; where one of them has no year, it is the year of the other."""
    begin, other = first.start, last.start
    if begin and other:
        years = other.year - begin.year
        if first.has_year and not last.has_year:
            last = _shifted(last, (_of_year(other, begin.year) < begin) - years)
        elif not first.has_year:
            years = years if last.has_year else 0
            first = _shifted(first, years - (_of_year(begin, begin.year + years) > other))
    return _Span(first.begins, last.ends, first.start, last.end, first.has_year or last.has_year, is_range=True)


def _shifted(span: _Span, years: int) -> _Span:
    start, end = (None if one is None else _of_year(one, one.year + years) for one in (span.start, span.end))
    return replace(span, start=start, end=end)


def _of_year(moment: datetime, year: int) -> datetime:
    last = calendar.monthrange(year, moment.month)[1]
    return moment.replace(year=year, day=min(moment.day, last))


def _with_bound(text: str, span: _Span) -> _Span:
    before, after = text[max(span.begins - UP_TO_HERE, 0) : span.begins], text[span.ends : span.ends + UP_TO_HERE]
    found = [
        (bound, match.start() - len(before), 0) for bound, pattern in BOUNDS_BEFORE if (match := pattern.search(before))
    ]
    found += [(bound, 0, match.end()) for bound, pattern in BOUNDS_AFTER if (match := pattern.match(after))]
    if not found or span.is_range:
        return span
    bound, sooner, later = found[0]
    wider = replace(span, begins=span.begins + sooner, ends=span.ends + later)
    match bound:
        case "before":
            return replace(wider, start=None, end=span.start)
        case "until":
            return replace(wider, start=None)
        case "after":
            return replace(wider, start=span.end, end=None)
        case _:
            return replace(wider, end=None)
