"""The settings of an index of Meilisearch, and its documents: one for each chunk."""

import json
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from lamina.core.ports import Change, Record
from lamina.core.queries import Place
from lamina.settings.stores import MeilisearchSettings
from lamina.stores.index.meilisearch.filters import (
    DIALECT,
    FILTERABLE,
    HALVED,
    MARK,
    ORDERED,
    Expression,
    halves,
    token,
)
from lamina.stores.index.ports import KEYWORD_FIELDS, STATE_FIELD, chunk_id, chunk_payload
from lamina.text.folding import fold
from lamina.text.words import parts_of_words

EMBEDDER = "lamina"
MAX_HITS = 10_000
# Meilisearch counts the hits of a search up to here: how rare a word is depends on it.
MAX_COUNTED = 1_000_000
# Id of the one document that is no chunk: it names the build that made the index, and moves with it in a swap. It has
# none of the fields that are filtered by, so that no search, deletion or audit meets it.
BUILD = "build"
_VECTOR_DIGITS = 8
_UNORDERED = {"filterableAttributes", "sortableAttributes", "stopWords"}
# Meilisearch takes a similarity of (1 + cosine) / 2 and moves its mean to 0.5 and its deviation to 0.4. Of these two it
# makes the cosine itself, 0 where that is less: what 0.7 is a share of is then the same as in every other index.
_SHIFT_TO_COSINE = {"mean": 0.75, "sigma": 0.2}


def wanted_settings(settings: MeilisearchSettings, dimension: int | None, version: tuple[int, int]) -> dict[str, Any]:
    """Return the settings of an index, without those that the server's version does not know yet."""
    typos: dict[str, Any] = {
        "enabled": True,
        # Ids, numbers and names differ from each other by a letter more often than they are mistyped by one.
        "minWordSizeForTypos": {"oneTypo": 6, "twoTypos": 12},
    }
    if version >= (1, 15):
        typos["disableOnNumbers"] = True
    wanted: dict[str, Any] = {
        "searchableAttributes": ["text"],
        "filterableAttributes": list(FILTERABLE),
        "sortableAttributes": list(ORDERED),
        # With one attribute that is searched, its place among them ranks nothing.
        "rankingRules": ["words", "typo", "proximity", "exactness"],
        "stopWords": [],
        "typoTolerance": typos,
        "localizedAttributes": [{"attributePatterns": ["text"], "locales": list(settings.locales)}]
        if settings.locales
        else None,
        "pagination": {"maxTotalHits": MAX_COUNTED},
        "prefixSearch": "disabled",  # Questions come whole, not letter by letter.
        "facetSearch": False,
        # An answer that is cut short is none: the deadline of the search comes first.
        "searchCutoffMs": math.ceil(settings.read_timeout_s * 1000),
    }
    if dimension is None:
        return wanted
    embedder = {"source": "userProvided", "dimensions": dimension, "distribution": _SHIFT_TO_COSINE}
    return {**wanted, "embedders": {EMBEDDER: embedder}}


def missing_settings(wanted: Mapping[str, Any], found: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that differ, and no others: a change has the server index everything again."""
    return {name: value for name, value in wanted.items() if not _is_set(name, value, found.get(name))}


def _is_set(name: str, wanted: Any, found: Any) -> bool:
    if name in _UNORDERED:
        return isinstance(found, list) and set(wanted) == {str(item) for item in found}
    return _agrees(wanted, found)


def _agrees(wanted: Any, found: Any) -> bool:
    """Report whether the found values include the wanted ones; the server adds defaults, and has floats of 32 bits."""
    if isinstance(wanted, dict):
        return isinstance(found, dict) and all(_agrees(value, found.get(name)) for name, value in wanted.items())
    if isinstance(wanted, list):
        same = isinstance(found, list) and len(wanted) == len(found)
        return same and all(_agrees(*pair) for pair in zip(wanted, found, strict=True))
    if isinstance(wanted, float):
        return isinstance(found, int | float) and math.isclose(wanted, found, rel_tol=1e-6)
    return bool(wanted == found)


def dimension_of(found: Mapping[str, Any]) -> int | None:
    """Return the length of the vectors by the settings of an index; ``None`` if it has none."""
    embedder = (found.get("embedders") or {}).get(EMBEDDER)
    return None if embedder is None else embedder.get("dimensions")


def documents_of(changes: Iterable[Change[Record]], dimension: int | None) -> Iterator[dict[str, Any]]:
    """Yield a document for each chunk of the memories that are not gone."""
    for change in changes:
        if change.record is not None:
            yield from _chunks(change.id, change.record, dimension)


def _chunks(id_: UUID, record: Record, dimension: int | None) -> Iterator[dict[str, Any]]:
    shared = _fields(id_, record)
    for chunk, text in enumerate(record.texts):
        document = {"id": str(chunk_id(id_, chunk)), **shared, "chunk": chunk, "text": _searched_text(text)}
        yield (
            document if dimension is None else {**document, "_vectors": {EMBEDDER: floats_of(record.embeddings[chunk])}}
        )


def _searched_text(text: str) -> str:
    """Return the text as questions are asked of it, and after it the parts of words that Meilisearch does not cut."""
    folded = fold(text)
    return " ".join((folded, *parts_of_words(text, folded)))


def _fields(id_: UUID, record: Record) -> dict[str, Any]:
    kept = chunk_payload(id_, record)
    texts = {
        name: token(value) if isinstance(value, str) else [token(text) for text in value]
        for name, value in kept.items()
        if name in KEYWORD_FIELDS
    }
    numbers = {name: halves(getattr(record, name)) for name in HALVED}
    ordered = {
        f"{name}_{half}": part
        for name, pair in numbers.items()
        for half, part in zip(("high", "low"), pair, strict=True)
    }
    return {**texts, **ordered, STATE_FIELD: kept[STATE_FIELD]}


def floats_of(embedding: bytes) -> list[float]:
    """Return a unit vector's numbers, short enough to be sent as text: 8 places move a cosine by less than 1e-6."""
    return [round(number, _VECTOR_DIGITS) for number in np.frombuffer(embedding, dtype=np.float32).tolist()]


def build_document(build: int, dimension: int | None) -> dict[str, Any]:
    """Return the document that names the build that made an index."""
    document = {"id": BUILD, BUILD: build}
    return document if dimension is None else {**document, "_vectors": {EMBEDDER: None}}


def payloads(documents: Iterable[Mapping[str, Any]], max_bytes: int) -> Iterator[bytes]:
    """Yield the documents as lines of JSON, as many at a time as stay within the bound, but at least one."""
    lines: list[bytes] = []
    size = 0
    for document in documents:
        line = json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode()
        if lines and size + len(line) + 1 > max_bytes:
            yield b"\n".join(lines)
            lines, size = [], 0
        lines.append(line)
        size += len(line) + 1
    if lines:
        yield b"\n".join(lines)


def outdated(changes: Sequence[Change[Record]]) -> str:
    """Return the condition of the chunks that changed memories no longer have: all of a deleted one."""
    by_count: defaultdict[int, list[str]] = defaultdict(list)
    for change in changes:
        by_count[len(change.record.texts) if change.record else 0].append(str(change.id))
    conditions: list[Expression] = []
    for first, ids in sorted(by_count.items()):
        memories = DIALECT.one_of("memory", ids)
        conditions.append(DIALECT.all_of([memories, Expression(f"chunk >= {first}")]) if first else memories)
    return str(DIALECT.any_of(conditions))


def place_of(document: Mapping[str, Any]) -> Place:
    """Return the memory and the chunk of a document."""
    return memory_of(document), int(document["chunk"])


def memory_of(document: Mapping[str, Any]) -> UUID:
    """Return the memory of a document."""
    return UUID(str(document["memory"]).removeprefix(MARK))
