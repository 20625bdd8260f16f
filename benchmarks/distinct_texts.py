"""Yield distinct texts of many kinds: chat messages, sentences of descriptions and of abstracts.

Source:
    A folder with `locomo` (Maharana et al., ACL 2024), `dedup` (messages of chat channels of Ubuntu, descriptions of
    Debian's packages), `scifact` (Wadden et al., EMNLP 2020), `multihop` (2Wiki, Ho et al., COLING 2020) and
    `semantic_cache` (Quora's pairs of questions).
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import Any

from benchmarks import locomo
from lamina.errors import Misconfigured

LEAST_CHARS, MOST_CHARS = 20, 1_000
_SENTENCE_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")

Json = dict[str, Any]


def distinct_texts(folder: Path, count: int) -> list[str]:
    """Return so many texts, none of which is another one but for white space and case.

    Chats come first. Where single texts do not suffice (there are some 400 000), two of them are joined: neighbours,
    then every second.

    Raises:
        Misconfigured: If the folder lacks a set, or has fewer texts.
    """
    try:
        single = list(islice(unique(_texts(folder)), count))
    except FileNotFoundError as error:
        raise Misconfigured(f"{error.filename} does not exist", "name the folder of the sets with --data") from error
    found = list(islice(chain(single, unique(_joined(single))), count))
    if len(found) < count:
        raise Misconfigured(f"{folder} has {len(found)} texts", f"ask for at most so many instead of {count}")
    return found


def _joined(texts: Sequence[str]) -> Iterator[str]:
    for distance in (1, 2):
        yield from (f"{one} {other}" for one, other in zip(texts, texts[distance:], strict=False))


def unique(texts: Iterable[str]) -> Iterator[str]:
    """Yield each text of a fair length once, with single spaces; case makes no other text."""
    seen = set[str]()
    for text in (" ".join(text.split()) for text in texts):
        if LEAST_CHARS <= len(text) <= MOST_CHARS and (folded := text.casefold()) not in seen:
            seen.add(folded)
            yield text


def sentences(text: str) -> list[str]:
    """Return the sentences of a text: an end, white space, and a capital letter."""
    return _SENTENCE_END.split(" ".join(text.split()))


def _texts(folder: Path) -> Iterator[str]:
    for session in locomo.load(locomo.Options(folder / "locomo", "")).sessions:
        for message in session.messages:
            yield f"{message['name']}: {message['content']}"
    yield from (item["text"] for item in _lines(folder / "dedup" / "irc_messages_50k.jsonl.gz"))
    for item in _lines(folder / "dedup" / "debian_descriptions.jsonl.gz"):
        yield from sentences(item["text"])
    for item in _lines(folder / "scifact" / "corpus.jsonl.gz"):
        yield from sentences(item["text"])
    with gzip.open(folder / "multihop" / "2wikimultihopqa_corpus.json.gz", "rt") as opened:
        for item in json.load(opened):
            yield from sentences(item["text"])
    for item in _lines(folder / "semantic_cache" / "qqp_pairs_80854.jsonl.gz"):
        yield from (item["text_a"], item["text_b"])


def _lines(file: Path) -> Iterator[Json]:
    with gzip.open(file, "rt") as lines:
        yield from map(json.loads, lines)
