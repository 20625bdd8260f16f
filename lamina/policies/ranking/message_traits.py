"""Traits of a message and of a question: everything that the second stage compares, and no text."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from itertools import chain
from zlib import crc32

import numpy as np
import regex
from numpy.typing import NDArray

from lamina.core.conversations import Utterance
from lamina.text.english import MONTHS, NUMBER_WORDS, WEEKDAYS
from lamina.text.stems import content_words, stem
from lamina.text.times import Interval, named_times
from lamina.text.words import name_words, question_words

TRAITS_VERSION = 1
"""Raised with every change of the traits or signals, so that weights fitted on others are refused."""

_NUMBER = regex.compile(
    r"\d|\b(?:" + "|".join((*NUMBER_WORDS, *MONTHS, *WEEKDAYS)) + r"|yesterday|tomorrow|last|next)\b", regex.IGNORECASE
)
_ASKS = regex.compile(r"[?\uff1f\u061f\u037e\u055e\u1367]\s*$")
_PAIR = 2
LOOKED_UP = 2
"""Words up to which a text without a question mark is looked up."""
# More than a word, in scripts that write no blanks.
_LONG_RUN = regex.compile(r"\p{Line_Break=Complex_Context}{11}")
_OTHER_THAN_USER = frozenset({"assistant", "tool", "system"})


def _asking(*phrases: str) -> "regex.Pattern[str]":
    """Return a pattern of phrases; those in scripts without blanks have no boundaries."""
    spaced = [phrase for phrase in phrases if regex.search(r"[\p{Latin}\p{Cyrillic}]", phrase)]
    unspaced = [phrase for phrase in phrases if phrase not in spaced]
    return regex.compile("|".join([rf"\b(?:{'|'.join(spaced)})\b", *unspaced]), regex.IGNORECASE)


_AMOUNT = _asking(
    r"when|date|how (?:many|much|long|old|often)|what (?:time|day)|which (?:day|year|month)|year|wann|wie ?viele?|"
    r"welche[rsnm]? (?:tag|jahr)|cu[aá]ndo|cu[aá]nt[oa]s?|quand|combien|quando|quant[oaie]s?",
    r"什么时候|哪天|几点|多少|几",
    r"いつ|何時|何日|いくつ|いくら|何",
    r"언제|몇|얼마",
)
_NOW = _asking(
    r"now|currently|these days|in the end|final|finally|latest|last|still|today|eventually|ended up|nowadays|"
    r"jetzt|zurzeit|derzeit|aktuell\w*|inzwischen|mittlerweile|zuletzt|heute|ahora|actualmente|actual|hoy|últim[oa]|"
    r"maintenant|actuellement|aujourd'hui|agora|atualmente|adesso|attualmente",
    r"现在|目前|如今|最新|最后",
    r"今|現在|最新|最後",
    r"지금|현재|최근",
)
_FIRST = _asking(
    r"first|original|originally|initially|before|earliest|used to|previously|zuerst|anfangs|ursprünglich\w*|früher|"
    r"vorher|primero|al principio|originalmente|antes|d'abord|au début|initialement|avant|primeiro|prima",
    r"最初|原来|以前|之前",
    r"最初|以前|元々|前",
    r"처음|원래|이전",
)
_ADVICE = _asking(
    r"(?:you|your|assistant|suggest|recommend|advice|advise|propose)\w*|du|dein\w*|empf\w+|vorgeschlagen|sugeri\w+|"
    r"recomend\w+|recommand\w+|conseil\w*",
    r"你|建议|推荐",
    r"あなた|提案|おすすめ|勧め",
    r"추천|제안",
)
_DAY = regex.compile(r"\b(\d{1,2})(?:st|nd|rd|th)?\b")


NUMBERS = ("chunks", "stems", "trigrams", "length", "is_assistant", "asks", "has_number", "month", "day", "said_at_s")
"""The numbers of a message, in their order."""


@dataclass(frozen=True, slots=True)
class MessageTraits:
    """The traits of a message, some hundred bytes beside its vectors.

    Args:
        vectors: Unit vectors of its chunks, float16, shape (chunks, d).
        stems: Hashes of its content words' stems, in order.
        trigrams: Distinct hashes of its content words' trigrams.
        length: Words, function words included; two characters of a script without blanks count as one.
        speaker: Hashes of the words of the speaker's name.
        is_assistant: Whether an assistant, a tool or a system said it.
        asks: Whether it ends in a question.
        has_number: Whether it has a number, a date, or a word for one.
        month: In which it was said.
        day: Of the month.
        said_at: When it was said, in UTC.
        spans: Where each of its chunks begins and ends in its text.
        user: Whose it is; ``None`` if it is shared.
        importance: 0..1, how much it matters; no signal reads it.
        named: The times that it names, seen from its own day.

    Attributes:
        numbers: Its :data:`NUMBERS` as float64 bytes, made once: a search compares some hundred messages.
    """

    vectors: NDArray[np.float16]
    stems: NDArray[np.uint32]
    trigrams: NDArray[np.uint16]
    length: int
    speaker: tuple[int, ...]
    is_assistant: bool
    asks: bool
    has_number: bool
    month: int
    day: int
    said_at: datetime
    spans: tuple[tuple[int, int], ...]
    user: str | None
    importance: float = 0.5
    named: tuple[Interval, ...] = ()
    numbers: bytes = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Pack the numbers."""
        sizes = len(self.vectors), len(self.stems), len(self.trigrams), self.length
        flags = self.is_assistant, self.asks, self.has_number
        packed = np.array([*sizes, *flags, self.month, self.day, self.said_at.timestamp()], np.float64).tobytes()
        object.__setattr__(self, "numbers", packed)

    @property
    def size_bytes(self) -> int:
        """Return about how much memory it takes."""
        return 820 + self.vectors.nbytes + self.stems.nbytes + self.trigrams.nbytes


@dataclass(frozen=True, slots=True)
class QuestionTraits:
    """The traits of a question; its patterns know English best and some other languages.

    Args:
        vector: Unit vector, float32; ``None`` where the embedder did not answer.
        stems: Distinct hashes of its content words' stems, sorted; of all its words if none has content.
        trigrams: Distinct hashes of its content words' trigrams, sorted.
        words: Hashes of all its words, to find names by.
        is_lookup: Whether it is a word or two, or symbols: they are looked up, and no answer stands beside them.
        asks_amount: Whether it asks for a date, a number or a duration.
        asks_now: Whether it asks for the present state, or the last one.
        asks_first: Whether it asks for an earlier state.
        asks_advice: Whether it asks for words of the assistant.
        months: Named months, 1 to 12.
        days: Named days of the month.
    """

    vector: NDArray[np.float32] | None
    stems: NDArray[np.uint32]
    trigrams: NDArray[np.uint16]
    words: frozenset[int]
    is_lookup: bool
    asks_amount: bool
    asks_now: bool
    asks_first: bool
    asks_advice: bool
    months: frozenset[int]
    days: frozenset[int]


def message_traits(said: Utterance) -> MessageTraits:
    """Return a message's traits; the speaker's name counts among its words."""
    content = content_words(said.content)
    name = name_words(said.name or "")
    # A run of a script without blanks is cut into overlapping pairs, each half a word.
    sizes = (0.5 if len(word) <= _PAIR and not word.isascii() else 1.0 for word in question_words(said.content))
    return MessageTraits(
        vectors=said.vectors,
        stems=_hashes(stem(word) for word in chain(name, content)),
        trigrams=_trigram_hashes(content),
        length=round(sum(sizes)),
        speaker=tuple(_hash(word) for word in name),
        is_assistant=said.role in _OTHER_THAN_USER,
        asks=_ASKS.search(said.content) is not None,
        has_number=_NUMBER.search(said.content) is not None,
        month=said.occurred_at.month,
        day=said.occurred_at.day,
        said_at=said.occurred_at,
        spans=said.spans,
        user=said.user,
        importance=said.importance,
        named=named_times(said.content, said.occurred_at, UTC),
    )


def question_traits(text: str, vector: NDArray[np.float32] | None) -> QuestionTraits:
    """Return a question's traits."""
    content, words = content_words(text), name_words(text)
    said = frozenset(words)
    return QuestionTraits(
        vector=vector,
        stems=np.unique(_hashes(map(stem, content or words))),
        trigrams=_trigram_hashes(content or words),
        words=frozenset(_hash(word.removesuffix("'s")) for word in words),
        is_lookup=_is_lookup(text, words),
        asks_amount=_AMOUNT.search(text) is not None,
        asks_now=_NOW.search(text) is not None,
        asks_first=_FIRST.search(text) is not None,
        asks_advice=_ADVICE.search(text) is not None,
        months=frozenset(place for place, month in enumerate(MONTHS, 1) if month in said),
        days=frozenset(int(day) for day in _DAY.findall(text)),
    )


def _is_lookup(text: str, words: Sequence[str]) -> bool:
    if not any(map(str.isalpha, text)):
        return True
    return len(words) <= LOOKED_UP and not (_ASKS.search(text) or _LONG_RUN.search(text))


def stem_hashes(text: str) -> frozenset[int]:
    """Return the hashes of the stems of a text's content words, as the traits hold them."""
    return frozenset(_hash(stem(word)) for word in content_words(text))


def _hashes(words: Iterable[str]) -> NDArray[np.uint32]:
    return np.fromiter(map(_hash, words), np.uint32)


@lru_cache(maxsize=65_536)
def _hash(word: str) -> int:
    return crc32(word.encode("utf-8", "replace"))


def _trigram_hashes(words: Collection[str]) -> NDArray[np.uint16]:
    """Return distinct hashes of the trigrams of the words set in blanks, sorted."""
    found = {part for word in words for part in _trigrams_of(word)}
    return np.array(sorted(found), np.uint16)


@lru_cache(maxsize=65_536)
def _trigrams_of(word: str) -> tuple[int, ...]:
    framed = f" {word} "
    return tuple(crc32(framed[at : at + 3].encode("utf-8", "replace")) & 0xFFFF for at in range(len(framed) - 2))
