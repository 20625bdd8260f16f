"""Find the figures of a text, which no summary of it may lose or invent, and the words that depend on its time."""

import re

from lamina.text.english import NUMBER_WORDS, WEEKDAYS
from lamina.text.english_reading import english_words, is_english
from lamina.text.segments import segments
from lamina.text.times import has_foreign_time
from lamina.text.words import words

_JOINED = re.compile(r"\d+(?:[.,:/-]\d+)*")
_PLAIN = re.compile(r"\d+(?:[.,]\d+)*")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?:\D|$))")
# "one" is mostly no number: "this one", "no one".
_COUNTED = {word: str(number) for word, number in NUMBER_WORDS.items() if word not in ("zero", "one")}
_UNITS = "night|morning|afternoon|evening|day|week|weekend|month|quarter|year|spring|summer|autumn|fall|winter"
_RELATIVE = re.compile(
    r"\b(?:today|yesterday|tomorrow|tonight|now|ago|currently|recently|lately|soon"
    rf"|(?:last|this|next|coming|past|previous) (?:{_UNITS})|{'|'.join(WEEKDAYS)}"
    r"|in \w+ (?:minute|hour|day|week|month|year)s?)\b",
    re.IGNORECASE,
)


def figures(text: str) -> frozenset[str]:
    """Return the numbers, dates and times of a text, each whole: ``2026-11-20``, ``9:30``, ``1500`` for 1,500.

    English number words from two to twenty and the tens count as the number.
    """
    return _found(_JOINED, text)


def numbers(text: str) -> frozenset[str]:
    """Return the numbers of a text, those of dates and times one by one: 2026, 11 and 20."""
    return _found(_PLAIN, text)


def depends_on_moment(sentence: str) -> bool:
    """Tell whether a sentence names a time relative to the day it was said: yesterday, next week.

    In nine other languages every word of a time counts, "im März 2026" too: what is in doubt needs its day.
    """
    return _RELATIVE.search(sentence) is not None or has_foreign_time(sentence)


def is_in_english(text: str) -> bool:
    """Tell whether most words of a text are English ones."""
    return is_english(english_words(segments(text)), ())


def _found(pattern: re.Pattern[str], text: str) -> frozenset[str]:
    in_figures = (number.lstrip("0") or "0" for number in pattern.findall(_THOUSANDS.sub("", text)))
    return frozenset((*in_figures, *(_COUNTED[word] for word in words(text) if word in _COUNTED)))
