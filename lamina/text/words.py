"""The words that every keyword index shares, and the keys and sizes made of them.

All engines index the words of :func:`words`, not the raw text, so that Postgres, Qdrant and
the near-duplicate jobs agree on what a word is in any script.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator

import regex

# Han, kana, bopomofo and hangul write words without (reliable) spaces; their runs become bigrams.
# Combining marks belong to the letter before them: vowel signs do not end a word.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\u30fc"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{_CJK}]]"
_RUN = regex.compile(rf"(?V1)(?P<cjk>[{_CJK}]+)|{_LETTER}+(?:['\u2019]{_LETTER}+)*")
_SPACE = re.compile(r"\s+")
_CHARS_PER_TOKEN = 4


def words(text: str) -> list[str]:
    """Return the words of a text in order, case-folded, CJK runs as overlapping bigrams.

    >>> words("The Café's 成語しり")
    ['the', "café's", '成語', '語し', 'しり']
    """
    folded = unicodedata.normalize("NFKC", text).casefold()
    return [word for run in _RUN.finditer(folded) for word in _words_of_run(run)]


def _words_of_run(run: "regex.Match[str]") -> Iterator[str]:
    text = run.group()
    if run.group("cjk") is None or len(text) == 1:
        yield text.replace("\u2019", "'")
        return
    for start in range(len(text) - 1):
        yield text[start : start + 2]


def name_key(name: str) -> str:
    """Return the key of a name: names that differ in case, width or composition have the same.

    >>> name_key("  ZOË  Müller-Lüdenscheidt") == name_key("zoe\u0308 müller lüdenscheidt")
    True
    """
    return " ".join(words(name)) or _SPACE.sub(" ", unicodedata.normalize("NFKC", name).casefold()).strip()


def content_hash(text: str) -> bytes:
    """Return the SHA-256 that makes two texts the same memory: NFC, white space squeezed, ends trimmed."""
    squeezed = _SPACE.sub(" ", unicodedata.normalize("NFC", text)).strip()
    return hashlib.sha256(squeezed.encode()).digest()


def estimated_tokens(text: str) -> int:
    """Estimate how many tokens a language model counts; errs high for English.

    Every started four letters of a Latin word, every character of another script and every
    punctuation mark count one. Byte-pair vocabularies need fewer for common words.
    """
    return sum(_tokens_of_run(run.group()) for run in re.finditer(r"[A-Za-z]+|\d|[^\sA-Za-z\d]|\n", text))


def _tokens_of_run(run: str) -> int:
    return math.ceil(len(run) / _CHARS_PER_TOKEN) if run.isascii() else max(1, len(run.encode()) // 2)
