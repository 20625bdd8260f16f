"""Text: hygiene for every input, and the words that every keyword index shares.

All engines index the words of :func:`words`, not the raw text, so that Postgres, Qdrant and
the near-duplicate jobs agree on what a word is in any script.
"""

import hashlib
import math
import re
import unicodedata
from collections.abc import Iterator

import regex

from lamina.errors import InvalidInput

MAX_ID_CHARS = 128
MAX_CONTENT_CHARS = 1_000_000
MAX_QUERY_CHARS = 100_000
MAX_JSON_DEPTH = 64

# Han, kana, bopomofo and hangul write words without (reliable) spaces; their runs become bigrams.
# Combining marks belong to the letter before them: vowel signs do not end a word.
_CJK = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Bopomofo}\p{Hangul}\u30fc"
_LETTER = rf"[[\p{{L}}\p{{M}}\p{{N}}_]--[{_CJK}]]"
_RUN = regex.compile(rf"(?V1)(?P<cjk>[{_CJK}]+)|{_LETTER}+(?:['\u2019]{_LETTER}+)*")
_SPACE = re.compile(r"\s+")
_INVISIBLE = frozenset({"Cc", "Cf", "Zs", "Zl", "Zp", "Cs"})
_CHARS_PER_TOKEN = 4


def clean(value: str, field: str, *, limit: int = MAX_CONTENT_CHARS) -> str:
    """Return the text in NFC, or say why it cannot be stored.

    Raises:
        InvalidInput: For NUL, a lone surrogate, or more than ``limit`` characters.
    """
    if "\x00" in value:
        raise InvalidInput(field, "contains a NUL character; remove it")
    if _has_surrogate(value):
        raise InvalidInput(field, "contains a lone surrogate; send well-formed Unicode")
    composed = unicodedata.normalize("NFC", value)
    if len(composed) > limit:
        raise InvalidInput(field, f"has {len(composed)} characters; at most {limit} are accepted")
    return composed


def _has_surrogate(value: str) -> bool:
    try:
        value.encode()
    except UnicodeEncodeError:
        return True
    return False


def clean_text(value: str, field: str, *, limit: int = MAX_CONTENT_CHARS) -> str:
    """Return the text in NFC; refuse one that shows nothing.

    Raises:
        InvalidInput: As :func:`clean`, and for text without one visible character.
    """
    text = clean(value, field, limit=limit)
    if is_blank(text):
        raise InvalidInput(field, "is blank; send at least one visible character")
    return text


def clean_id(value: str, field: str) -> str:
    """Return an identifier in NFC: 1 to 128 printable characters of any script.

    Raises:
        InvalidInput: For an empty or longer id, control characters, or blanks alone.
    """
    text = clean_text(value, field, limit=MAX_ID_CHARS)
    if any(unicodedata.category(char) == "Cc" for char in text):
        raise InvalidInput(field, "contains a control character; ids are printable")
    return text


def clean_json(value: object, field: str) -> object:
    """Return a JSON value with every string in NFC, keys included.

    Raises:
        InvalidInput: As :func:`clean`, naming the path; also for a number that JSON cannot hold,
            and for more than 64 levels.
    """
    return _clean_json(value, field, MAX_JSON_DEPTH)


def _clean_json(value: object, field: str, depth: int) -> object:
    if depth == 0:
        raise InvalidInput(field.split(".", maxsplit=1)[0], f"is nested deeper than {MAX_JSON_DEPTH} levels")
    match value:
        case str():
            return clean(value, field)
        case float() if not math.isfinite(value):
            raise InvalidInput(field, f"is {value}; JSON numbers are finite")
        case dict():
            return {
                clean(str(key), f"{field}: key"): _clean_json(item, f"{field}.{key}", depth - 1)
                for key, item in value.items()
            }
        case list():
            return [_clean_json(item, f"{field}.{place}", depth - 1) for place, item in enumerate(value)]
        case _:
            return value


def is_blank(text: str) -> bool:
    """Tell whether no character of the text is visible: spaces, zero-width marks, controls."""
    return all(unicodedata.category(char) in _INVISIBLE for char in text)


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
    """Return what makes two names one: their words, whatever the case, width or composition.

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
