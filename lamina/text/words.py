"""The words that every keyword index shares, and the keys and sizes made of them.

All engines index the words of :func:`index_words`, not the raw text, and are asked for those of
:func:`question_words`, so that Postgres, Qdrant and Meilisearch agree on what a word is in any script.
"""

import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from lamina.text.folding import UNSEEN, fold
from lamina.text.normal_forms import normalised
from lamina.text.patterns import regex
from lamina.text.symbols import asked_symbols, character_words, held_symbols

WORDS_VERSION = 3
"""Raised with every change of :func:`index_words`: indexes of an earlier version are built anew."""
# Han, kana, bopomofo and hangul write words without (reliable) spaces; their runs become bigrams.
# Combining marks belong to the letter before them: vowel signs do not end a word.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\u30fc"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{_CJK}]]"
# Thai, Lao, Khmer, Burmese and their relatives write words without spaces, too; a letter has its vowels around it.
_SYLLABIC = r"\p{Line_Break=Complex_Context}\p{Javanese}\p{Balinese}"
_CHARACTER = regex.compile(r"\X")
_UNSPACED_RUN = regex.compile(rf"(?P<cjk>[{_CJK}]{{2,}})|[{_SYLLABIC}]+")
_SYLLABIC_RUN = regex.compile(rf"[{_SYLLABIC}]+")
_SPACED_PART = regex.compile(rf"(?V1)[[\p{{L}}\p{{M}}\p{{N}}_]--[{_SYLLABIC}]]+")
_LONE_HAN = regex.compile(
    r"(?<=[\p{Hiragana}\p{Katakana}])\p{Han}(?!\p{Han})|(?<!\p{Han})\p{Han}(?=[\p{Hiragana}\p{Katakana}])"
)
_RUN = regex.compile(rf"(?V1)(?P<cjk>[{_CJK}]+)|{_LETTER}+(?:['\u2019]{_LETTER}+)*")
# The same where no other letters stand, ten times as fast: a search splits some thousand words.
_ASCII_RUN = re.compile(r"\w+(?:'\w+)*", re.ASCII)
_OTHER_LETTER = regex.compile(rf"(?V1)[[\p{{L}}\p{{M}}\p{{N}}{_CJK}{_SYLLABIC}]--[\u0000-\u007f]]")
_SPACE = re.compile(r"\s+")
_LETTERS = re.compile(r"[A-Za-z]++|\s++")
_PART_CHARS = 65_536
CHARS_PER_TOKEN = 4


def words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, CJK runs as overlapping bigrams.

    >>> words("The Café's 成語しり")
    ['the', "café's", '成語', '語し', 'しり']
    """
    return _words_of(normalised("NFKC", text).casefold())


def index_words(text: str) -> list[str]:
    """Return the words under which an index holds a text: first those of its folded form in order, then more.

    Runs of a script without spaces are also held by their single characters, and those of South-East Asia by pairs of
    characters, so that a word within such a run is found. A word with an invisible mark in it is held whole and
    in its parts. Emoji and signs have words of their own; a text that shows neither words nor symbols is held by its
    characters.

    >>> index_words("黑猫 Zu\u00adcker")
    ['黑猫', 'zucker', '黑', '猫', 'zu', 'cker']
    """
    folded = fold(text)
    found = _words_of(folded)
    if text.isascii():
        return found or character_words(folded)
    return found + parts_of_words(text, folded)


def parts_of_words(text: str, folded: str) -> list[str]:
    """Return the parts of words under which an index holds a text beside its words.

    Args:
        text: The text.
        folded: Its folded form.
    """
    parts = [part for run in _UNSPACED_RUN.finditer(folded) for part in _parts_of_run(run)]
    whole = _words_of(folded)
    if _SYLLABIC_RUN.search(folded):
        # Of words that have letters of a script without spaces and others.
        mixed = [word for word in whole if _SYLLABIC_RUN.search(word) and not _SYLLABIC_RUN.fullmatch(word)]
        parts += [part.group() for word in mixed for part in _SPACED_PART.finditer(word)]
    if UNSEEN.search(text):
        known = set(whole)
        parts += [word for word in _words_of(fold(UNSEEN.sub(" ", text))) if word not in known]
    parts += held_symbols(text, folded)
    return parts or ([] if whole else character_words(folded))


def question_words(text: str) -> list[str]:
    """Return the words by which an index is asked for a text: never a whole run of a script of South-East Asia.

    >>> question_words("แมว"), question_words("猫が")
    (['แม', 'มว'], ['猫が', '猫'])
    """
    folded = fold(text)
    if text.isascii():
        return _words_of(folded) or character_words(folded)
    found = [asked for word in _words_of(folded) for asked in _asked(word)]
    # In Japanese, an ideograph between kana is mostly a word.
    found += [match.group() for match in _LONE_HAN.finditer(folded)]
    return found + asked_symbols(text, folded) or character_words(folded)


def compared_words(text: str) -> list[str]:
    """Return the words of a question that is compared word by word with an indexed text, as many as that has."""
    folded, asked = fold(text), question_words(text)
    characters = [char for run in _UNSPACED_RUN.finditer(folded) for char in _CHARACTER.findall(run.group())]
    return asked + characters + [word for word in held_symbols(text, folded) if word not in asked]


def _asked(word: str) -> Iterator[str]:
    if not _SYLLABIC_RUN.search(word):
        yield word
        return
    for run in _SYLLABIC_RUN.finditer(word):
        yield from _pairs(_CHARACTER.findall(run.group()))
    yield from (part.group() for part in _SPACED_PART.finditer(word))


def name_words(text: str) -> list[str]:
    """Return the folded words of a text in order, of which the keys of names are made."""
    return _words_of(fold(text))


def _words_of(folded: str) -> list[str]:
    if folded.isascii() or not _OTHER_LETTER.search(folded):
        return _ASCII_RUN.findall(folded.replace("\u2019", "'"))
    return [word for run in _RUN.finditer(folded) for word in _words_of_run(run)]


def _parts_of_run(run: "regex.Match[str]") -> Iterator[str]:
    """Yield the single characters of a run, and its pairs where they are not its words already."""
    characters = _CHARACTER.findall(run.group())
    if run.group("cjk") is None and len(characters) > 1:
        yield from _pairs(characters)
    if len(characters) > 1:
        yield from characters


def _pairs(characters: Sequence[str]) -> Iterator[str]:
    """Yield neighbours; one word where it stands alone."""
    if len(characters) == 1:
        yield characters[0]
    for first, second in pairwise(characters):
        yield first + second


def _words_of_run(run: "regex.Match[str]") -> Iterator[str]:
    text = run.group()
    if run.group("cjk") is None or len(text) == 1:
        yield text.replace("\u2019", "'")
        return
    for start in range(len(text) - 1):
        yield text[start : start + 2]


@lru_cache(maxsize=8192)  # Every passage of a document has its title.
def name_key(name: str) -> str:
    """Return the key of a name: spellings that :func:`lamina.text.folding.fold` does not tell apart have the same.

    >>> name_key("  ZOË  Müller-Lüdenscheidt") == name_key("zoe\u0308 müller lüdenscheidt")
    True
    """
    folded = fold(name)
    return " ".join(_words_of(folded)) or _SPACE.sub(" ", folded).strip() or name


def content_hash(text: str) -> bytes:
    """Return the SHA-256 that makes two texts the same memory: NFC, white space squeezed, ends trimmed."""
    squeezed = _SPACE.sub(" ", normalised("NFC", text)).strip()
    return hashlib.sha256(squeezed.encode()).digest()


def language_tokens(text: str) -> int:
    """Estimate the tokens of an embedding model: four letters of English, or any other visible character.

    Of what is no language (:mod:`lamina.text.opaque`) the service embeds nothing: then it counts fewer.
    """
    return quarter_tokens(text) // CHARS_PER_TOKEN


def quarter_tokens(text: str) -> int:
    """Estimate an embedding model's tokens in quarters: those of two texts in a row are the sum of theirs."""
    # In parts: one substitution in a megabyte holds the interpreter for a tenth of a second.
    parts = [text[start : start + _PART_CHARS] for start in range(0, len(text), _PART_CHARS)]
    others = sum(len(_LETTERS.sub("", part)) for part in parts)
    blanks = len(text) - sum(len("".join(part.split())) for part in parts)
    return CHARS_PER_TOKEN * others + len(text) - others - blanks


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a language model counts; errs high for English.

    Every started four letters of a Latin word, every character of another script and every
    punctuation mark count one. Byte-pair vocabularies need fewer for common words.
    """
    runs = (run.group() for run in re.finditer(r"[A-Za-z]+|\d|[^\sA-Za-z\d]|\n", text))
    return sum(
        math.ceil(len(run) / CHARS_PER_TOKEN) if run.isascii() else max(1, len(run.encode()) // 2) for run in runs
    )
