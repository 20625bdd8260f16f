"""Pairs of texts by hand, in many languages: those that say the same, and those of which one differs in one word."""

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FILE = Path(__file__).parent / "data" / "paraphrase_pairs.tsv"


@dataclass(frozen=True, slots=True)
class TextPair:
    """Two texts.

    Args:
        language: The English name of their language, ``emoji`` or ``identifier``.
        kind: What differs: a word, a day, a denial, an opposite; the spelling, or the wording.
        is_same: Whether they say the same.
    """

    language: str
    kind: str
    is_same: bool
    first: str
    second: str


def read_pairs() -> list[TextPair]:
    """Return the pairs in the order of the file."""
    return list(_rows())


def _rows() -> Iterator[TextPair]:
    with _FILE.open(encoding="utf-8", newline="") as lines:
        rows = csv.reader((line for line in lines if not line.startswith("#")), delimiter="\t", quoting=csv.QUOTE_NONE)
        for language, kind, verdict, first, second in rows:
            yield TextPair(language, kind, verdict == "same", first, second)
