"""Word and vector search on Qdrant Edge, Qdrant's engine in this process.

Words are BM25 sparse vectors whose document frequencies are counted within the asking scope: a
tenant's ranking neither depends on other tenants' texts nor tells of them.
"""

import json
import logging
import shutil
import tempfile
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import numpy as np
from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeSparseVectorParams,
    EdgeVectorParams,
    Filter,
    HasIdCondition,
    IdfParams,
    Memory,
    Modifier,
    Point,
    QueryRequest,
    ScoredPoint,
    ScrollRequest,
    SearchParams,
    SparseVector,
    UpdateOperation,
)
from qdrant_edge import (
    Query as EdgeQuery,
)

from lamina.core.ports import Change, Record
from lamina.core.queries import Query
from lamina.errors import Misconfigured
from lamina.host.private_files import make_private
from lamina.policies.ranking.scores import widening
from lamina.stores.index.edge.filters import DIALECT, INDEXES
from lamina.stores.index.filters import outdated_chunks, query_filter, scope_filter
from lamina.stores.index.points import (
    DENSE,
    WORDS,
    WordWeights,
    are_enough,
    vector_hits,
    weights_of_question,
    weights_of_text,
    word_hits,
)
from lamina.stores.index.ports import STATE_FIELD, ChunkHit, chunk_id, chunk_payload, chunk_state

logger = logging.getLogger(__name__)

MARKER = "lamina.json"
LOG = "wal"
FORMAT = 3
SCROLL_PAGE = 1000
# Indexes of the filters' fields map 60 MB and take .2 s of a processor, empty as they may be. Over 100 chunks without
# them, a search by words takes .9 ms in place of .1, over 1 000 it takes 20. Most cold collections are small.
CHUNKS_TO_INDEX = 128


class QdrantEdgeIndex:
    """One shard on disk: chunks of memories with their words and, if it has any, their vectors.

    One process may open a shard. Calls block; changes are applied one batch at a time. A shard that
    an earlier release made is set aside and a new one begun, which Postgres has everything for.

    Args:
        path: Directory of the shard; created if missing.
        dimension: Length of the dense vectors; ``None`` for an index of words alone.
        by_session: Whether a query's session narrows it; messages belong to one, notes outlive it.
        search_threads: Threads of the search pool.
        chunks_to_index: How many chunks it holds when the fields that filters ask for are indexed.
        is_cold: Whether it is one of many that are seldom used: made without a write-ahead log, and its vectors are
            read when they are searched.

    Raises:
        Misconfigured: If another process has it open, or it was made for other vectors or by a later release.
    """

    def __init__(
        self,
        path: Path,
        *,
        dimension: int | None,
        by_session: bool = False,
        search_threads: int = 1,
        chunks_to_index: int = CHUNKS_TO_INDEX,
        is_cold: bool = False,
    ) -> None:
        self._path = path
        self._search_threads = search_threads
        self._is_cold = is_cold
        self._dimension = dimension
        self._by_session = by_session
        self._lock = threading.Lock()
        self._shard = _open(path, dimension, search_threads, is_cold=is_cold)
        self._chunks_to_index = chunks_to_index
        self._fields_to_index = INDEXES.keys() - self._shard.info().payload_schema.keys()
        # Not by its files: a process may have ended between making them and asking for what belongs in them.
        self.is_new = self.count() == 0

    def apply(self, changes: Sequence[Change[Record]]) -> None:
        """Replace the chunks of these memories; searches see them when the call returns.

        The change is in the write-ahead log, which survives this process; :meth:`flush` makes it
        survive the machine. A cold shard has no log: what is not flushed is lost with this process.
        """
        if not changes:
            return
        points = [point for change in changes if change.record for point in self._points(change.id, change.record)]
        with self._lock:
            # First the new, then what is left of the old: a search in between misses nothing.
            if points:
                self._shard.update(UpdateOperation.upsert_points(points))
            self._shard.update(UpdateOperation.delete_points_by_filter(outdated_chunks(changes, DIALECT)))
            if self._fields_to_index and self.count() >= self._chunks_to_index:
                self._index_fields()

    def flush(self) -> None:
        """Write everything applied so far to disk; takes some 20 ms."""
        with self._lock:
            self._shard.flush()

    def compact(self, tenant: str) -> None:  # noqa: ARG002 - one shard for all
        """Write the shard and its write-ahead log anew, without deleted points; changes wait meanwhile.

        Some 1 000 chunks of 384 dimensions a second on a busy core. Searches that run are answered by the files of
        before, which are gone after them.
        """
        with self._lock:
            before = before_compaction(self._path)
            description = {"format": FORMAT, "dimension": self._dimension}
            parent = self._path.parent
            with tempfile.TemporaryDirectory(dir=parent, prefix="new-", ignore_cleanup_errors=True) as folder:
                copy = Path(folder, "copy")
                _create(copy, self._dimension, self._search_threads, description, is_cold=self._is_cold)
                self._copy_to(copy)
                self._path.rename(before)
                copy.rename(self._path)
            self._shard = self._load(self._path)
            self._fields_to_index = INDEXES.keys() - self._shard.info().payload_schema.keys()
            if self.count() >= self._chunks_to_index:
                self._index_fields()
            shutil.rmtree(before)

    def _load(self, path: Path) -> EdgeShard:
        return EdgeShard.load(str(path), _config(self._dimension, self._search_threads, is_cold=self._is_cold))

    def _copy_to(self, path: Path) -> None:
        copy = self._load(path)
        offset: Any = None
        while True:
            page = ScrollRequest(offset=offset, limit=SCROLL_PAGE, with_payload=True, with_vector=True)
            records, offset = self._shard.scroll(page)
            points = [Point(record.id, record.vector or {}, record.payload) for record in records]
            if points:
                copy.update(UpdateOperation.upsert_points(points))
            if offset is None:
                break
        copy.flush()
        copy.close()

    def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by BM25, best first; none for a query without words."""
        asked = weights_of_question(query.words)
        if not asked.indices:
            return []
        params = SearchParams(idf=IdfParams(corpus=scope_filter(query.scope, DIALECT)))
        found = self._query(query, EdgeQuery.Nearest(_sparse(asked), WORDS), params)
        return word_hits(query, found, self._cosines(query, found))

    def _cosines(self, query: Query, points: Sequence[ScoredPoint]) -> dict[Any, float]:
        """Return the cosines of points by their ids; the engine computes them sooner than it hands out vectors."""
        if query.embedding is None or self._dimension is None or not points:
            return {}
        ids = {point.id for point in points}
        request = QueryRequest(
            limit=len(ids),
            query=EdgeQuery.Nearest(np.frombuffer(query.embedding, dtype=np.float32).tolist(), DENSE),
            filter=Filter(must=[HasIdCondition(ids)]),
            params=SearchParams(exact=True),
            with_payload=False,
            with_vector=False,
        )
        return {point.id: float(point.score) for point in self._shard.query(request)}

    def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none for a query without a vector."""
        if query.embedding is None or self._dimension is None:
            return []
        vector = np.frombuffer(query.embedding, dtype=np.float32).tolist()
        return vector_hits(self._query(query, EdgeQuery.Nearest(vector, DENSE), None))

    def has_log(self) -> bool:
        """Report whether it has a write-ahead log."""
        return (self._path / LOG).is_dir()

    def count(self) -> int:
        """Return the number of chunks."""
        return int(self._shard.count(CountRequest(exact=True)))

    def chunks(self, tenant: str) -> Iterator[tuple[UUID, str]]:
        """Yield the memory of every chunk of a tenant with the fingerprint of its state."""
        own = Filter(must=[DIALECT.equals("tenant", tenant)])
        offset: Any = None
        while True:
            points, offset = self._shard.scroll(
                ScrollRequest(
                    offset=offset,
                    limit=SCROLL_PAGE,
                    filter=own,
                    with_payload=["memory", STATE_FIELD],
                    with_vector=False,
                )
            )
            yield from (chunk_state(point.payload) for point in points)
            if offset is None:
                return

    def close(self) -> None:
        """Release the shard for other processes."""
        self._shard.close()

    def _index_fields(self) -> None:
        """Index the fields that filters ask for; an index that a crash leaves out is made by the next change."""
        for field in sorted(self._fields_to_index):
            self._shard.update(UpdateOperation.create_field_index(field, INDEXES[field]))
        self._fields_to_index = set()

    def _query(self, query: Query, nearest: Any, params: SearchParams | None) -> list[ScoredPoint]:
        """Return chunks of at least ``limit`` memories, if there are so many."""
        for limit in widening(query.limit):
            found = self._ask(query, nearest, params, limit)
            if are_enough(query, found, limit):
                break
        return found

    def _ask(self, query: Query, nearest: Any, params: SearchParams | None, limit: int) -> list[ScoredPoint]:
        request = QueryRequest(
            limit=limit,
            query=nearest,
            filter=query_filter(query, DIALECT, by_session=self._by_session),
            params=params,
            with_payload=["memory", "chunk"],
            with_vector=False,
        )
        return list(self._shard.query(request))

    def _points(self, id_: UUID, record: Record) -> list[Point]:
        fields = chunk_payload(id_, record)
        return [
            Point(chunk_id(id_, chunk), self._vectors(record, chunk), {**fields, "chunk": chunk})
            for chunk in range(len(record.texts))
        ]

    def _vectors(self, record: Record, chunk: int) -> dict[str, Any]:
        vectors: dict[str, Any] = {WORDS: _sparse(weights_of_text(record.texts[chunk]))}
        if self._dimension is not None:
            vectors[DENSE] = np.frombuffer(record.embeddings[chunk], dtype=np.float32).tolist()
        return vectors


def _sparse(weights: WordWeights) -> SparseVector:
    return SparseVector(list(weights.indices), list(weights.values))


def _open(path: Path, dimension: int | None, search_threads: int, *, is_cold: bool) -> EdgeShard:
    description = {"format": FORMAT, "dimension": dimension}
    try:
        _finish_compaction(path)
        if _is_of_an_earlier_format(path, description):
            _set_aside(path)
        if path.is_dir() and any(path.iterdir()):
            _refuse_other(path, read_marker(path), description)
        else:
            _create(path, dimension, search_threads, description, is_cold=is_cold)
        return EdgeShard.load(str(path), _config(dimension, search_threads, is_cold=is_cold))
    except Misconfigured:
        raise
    except Exception as error:
        raise Misconfigured(
            f"the index {path} cannot be opened: {error}",
            "stop the process that has it open, or remove it and run `lamina reindex`",
        ) from error


def before_compaction(path: Path) -> Path:
    """Return where the files of before a compaction lie while it ends."""
    return path.with_name(f"{path.name}.before")


def _finish_compaction(path: Path) -> None:
    """Remove the files of before a compaction that was interrupted, or put them back if there are no new ones."""
    before = before_compaction(path)
    if not before.exists():
        return
    if path.exists():
        shutil.rmtree(before)
    else:
        before.rename(path)


def _is_of_an_earlier_format(path: Path, wanted: Mapping[str, Any]) -> bool:
    """Report whether the index differs from the wanted one by an earlier format alone."""
    stored = read_marker(path)
    match stored.get("format"):
        case int(number) if number < FORMAT:
            return stored == {**wanted, "format": number}
        case _:
            return False


def _set_aside(path: Path) -> None:
    """Rename the index, unless a process of the earlier release still has it open."""
    EdgeShard.load(str(path)).close()
    aside = path.with_name(f"{path.name}.format-{read_marker(path)['format']}")
    shutil.rmtree(aside, ignore_errors=True)
    path.rename(aside)
    logger.warning("index %s has an earlier format: kept as %s, which may be removed; building a new one", path, aside)


def read_marker(path: Path) -> dict[str, Any]:
    """Return the description in an index; nothing if it has none or the text is broken."""
    try:
        found = json.loads((path / MARKER).read_text())
    except (FileNotFoundError, NotADirectoryError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _refuse_other(path: Path, stored: Mapping[str, Any], wanted: Mapping[str, Any]) -> None:
    if dict(stored) != dict(wanted):
        raise Misconfigured(
            f"the index {path} is {dict(stored)}, expected {dict(wanted)}", "remove it and run `lamina reindex`"
        )


def _config(
    dimension: int | None, search_threads: int, *, is_cold: bool = False, has_log: bool | None = None
) -> EdgeConfig:
    """Return the configuration of a shard; without ``has_log``, one that exists stays as it is.

    Vectors that are not cold are read whole when a shard opens: 33 MB, few as they may be. In memory cold ones are
    searched as fast, for the system caches their files.
    """
    memory = Memory.Cold if is_cold else None
    dense = {} if dimension is None else {DENSE: EdgeVectorParams(dimension, Distance.Cosine, memory=memory)}
    return EdgeConfig(
        vectors=dense,
        sparse_vectors={WORDS: EdgeSparseVectorParams(modifier=Modifier.Idf)},
        max_search_threads=search_threads,
        wal_enabled=has_log,
    )


def _create(
    path: Path, dimension: int | None, search_threads: int, description: Mapping[str, Any], *, is_cold: bool = False
) -> None:
    """Make an empty index; it appears under its path whole or not at all."""
    make_private(path.parent)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix="new-", ignore_cleanup_errors=True) as folder:
        config = _config(dimension, search_threads, is_cold=is_cold, has_log=not is_cold)
        shard = EdgeShard.create(folder, config)
        shard.flush()
        shard.close()
        Path(folder, MARKER).write_text(json.dumps(description))
        Path(folder).rename(path)
