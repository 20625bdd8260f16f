"""Stems: the part of a word that its forms share, in any script."""

from collections.abc import Callable
from functools import cache, lru_cache

import regex

from lamina.text.english import FUNCTION_WORDS
from lamina.text.normal_forms import normalised
from lamina.text.words import question_words

_LATIN = regex.compile(r"[\p{Latin}\p{M}'-]+")
_MARKS = regex.compile(r"\p{M}+")


@cache
def _stemmers() -> tuple[tuple["regex.Pattern[str]", Callable[[str], str]], ...]:
    """Return the stemmer of each script.

    The script chooses it, so that a question and a text agree without a guess at their language. English stems leave
    most words of other languages in Latin letters as they are.
    """
    import snowballstemmer  # noqa: PLC0415 - thirty languages, which no start waits for

    return (
        (_LATIN, snowballstemmer.stemmer("english").stemWord),
        (regex.compile(r"\p{Cyrillic}+"), snowballstemmer.stemmer("russian").stemWord),
        (regex.compile(r"\p{Greek}+"), snowballstemmer.stemmer("greek").stemWord),
        (regex.compile(r"\p{Arabic}+"), snowballstemmer.stemmer("arabic").stemWord),
    )


@lru_cache(maxsize=65_536)
def stem(word: str) -> str:
    """Return the stem of a folded word, without accents; in a script that no stemmer reads, the word itself.

    >>> stem("planning"), stem("zoë's"), stem("книгами"), stem("計画")
    ('plan', 'zoe', 'книг', '計画')
    """
    for script, stemmed in _stemmers():
        if script.fullmatch(word):
            plain = _MARKS.sub("", normalised("NFKD", word)) if script is _LATIN and not word.isascii() else word
            return stemmed(plain) or word
    return word


def content_words(text: str) -> list[str]:
    """Return the words of a text in order, folded, without English function words.

    A run of a script without blanks is the pairs of its characters.

    >>> content_words("What's Zoë's plan for the 3rd?"), content_words("แมว")
    (["zoë's", 'plan', '3rd'], ['แม', 'มว'])
    """
    return [word for word in question_words(text) if word not in FUNCTION_WORDS]
