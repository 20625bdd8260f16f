"""Cold notes on Qdrant Edge: a collection for each (tenant, workspace, namespace), or one for all."""

import fcntl
import json
import os
import shutil
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from pathlib import Path
from typing import Any
from uuid import UUID

from lamina.core.ports import Change, PlacedRecord, Record
from lamina.core.queries import Query
from lamina.core.scope import Scope
from lamina.errors import Misconfigured, Unavailable
from lamina.host.private_files import make_private, private_opener
from lamina.stores.index.cold.collections import Collection, Layout, by_collection, collection_of
from lamina.stores.index.cold.open_pool import OpenPool
from lamina.stores.index.edge.shard import FORMAT, MARKER, QdrantEdgeIndex, before_compaction, read_marker
from lamina.stores.index.ports import ChunkHit

SHARD = "edge"
# About 0.2 s for a small collection, and a second for each 1 000 chunks, while an audit waits.
RENEWED_AT_ONCE = 16
_REMEDY = "remove it; it is built anew from Postgres when Lamina starts"


class ColdIndex:
    """A directory of Qdrant Edge shards, of which some are open.

    One process may use the directory. Calls block. A collection appears with its first cold note; reading
    creates nothing, and the directory itself appears with the first collection.

    Changes that are not flushed are lost with the process, or when a collection cannot be flushed as it closes; then
    the next :meth:`flush` fails, and all changes since the one before must be applied again.

    Args:
        root: The directory.
        dimension: Length of the vectors.
        layout: A collection for each namespace, or one for all.
        max_open: Most shards open at a time.
        search_threads: Threads of one shard's search pool.

    Raises:
        Misconfigured: If the directory was made for other vectors or with another layout.
    """

    def __init__(self, root: Path, *, dimension: int, layout: Layout, max_open: int, search_threads: int = 1) -> None:
        self._root = root
        self._dimension = dimension
        self._layout = layout
        self._search_threads = search_threads
        self._description = {"format": FORMAT, "dimension": dimension, "collections": layout}
        self._shards: OpenPool[Collection, QdrantEdgeIndex] = OpenPool(
            self._open, self._close, most=max_open, part="cold index"
        )
        self._unflushed: set[Collection] = set()
        self._lost: set[Collection] = set()
        self._lock = threading.Lock()
        self._flushing = threading.Lock()
        self._ownership: int | None = None
        self.is_new = _is_new(root, self._description)

    def apply(self, changes: Sequence[Change[PlacedRecord]]) -> None:
        """Take over the given states; searches see them when the call returns.

        A memory that Postgres does not know any more is removed from every collection.
        """
        everywhere = self.collections() if any(change.record is None for change in changes) else []
        for collection, part in by_collection(changes, self._collection, everywhere).items():
            if self._holds(collection) or any(change.record for change in part):
                self._apply_to(collection, part)

    def flush(self) -> None:
        """Write everything applied so far to disk.

        Raises:
            Unavailable: If a collection lost changes when it was closed, once.
        """
        self._report_lost()
        with self._flushing:  # Nothing may count as flushed before it is.
            unflushed = self._unflushed.copy()
        for collection in unflushed:
            with self._shards.borrow(collection) as shard:
                self._flush(collection, shard)
        self._report_lost()

    def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none where nothing is cold."""
        collection = self._collection(query.scope.tenant, query.scope.workspace, query.scope.namespace)
        if query.embedding is None or not self._holds(collection):
            return []
        with self._shards.borrow(collection) as shard:
            return shard.by_vector(query)

    def collections(self, tenant: str | None = None) -> list[Collection]:
        """Return every collection on disk; those that may hold notes of a tenant, if one is given."""
        folders = sorted(path.parent for path in self._root.glob(f"*/{SHARD}"))
        found = [Collection(*read_marker(folder).get("ids", ())) for folder in folders]
        return [collection for collection in found if tenant is None or collection.tenant in {None, tenant}]

    def count(self, scope: Scope) -> int:
        """Return the number of chunks in the collection that holds a scope's cold notes."""
        collection = self._collection(scope.tenant, scope.workspace, scope.namespace)
        if not self._holds(collection):
            return 0
        with self._shards.borrow(collection) as shard:
            return shard.count()

    def chunks(self, tenant: str) -> Iterator[tuple[UUID, str]]:
        """Yield the memory of every chunk of a tenant in any collection with the fingerprint of its state.

        A collection that an earlier release made has a log, a handle for it and 67 MB of apparent size. Some of them
        are written anew without one, as they are opened here.
        """
        left = RENEWED_AT_ONCE
        for collection in self.collections(tenant):
            with self._shards.borrow(collection) as shard:
                if left and shard.has_log():
                    shard.compact(tenant)
                    left -= 1
                yield from shard.chunks(tenant)

    def compact(self, tenant: str) -> None:
        """Write the tenant's collections anew, without their deleted points."""
        for collection in self.collections(tenant):
            with self._shards.borrow(collection) as shard:
                shard.compact(tenant)

    def open_count(self) -> int:
        """Return how many shards are open."""
        return len(self._shards)

    def close(self) -> None:
        """Flush and release every shard, and the directory."""
        self._shards.close()
        with self._lock:
            if self._ownership is not None:
                os.close(self._ownership)
                self._ownership = None

    def _apply_to(self, collection: Collection, changes: Sequence[Change[Record]]) -> None:
        with self._lock:
            if not (self._root / MARKER).exists():
                _write(self._root / MARKER, self._description)
        with self._shards.borrow(collection) as shard:
            with self._lock:
                self._unflushed.add(collection)
            shard.apply(changes)

    def _flush(self, collection: Collection, shard: QdrantEdgeIndex) -> None:
        with self._flushing:
            with self._lock:
                self._unflushed.discard(collection)
            try:
                shard.flush()
            except BaseException:
                with self._lock:
                    self._unflushed.add(collection)
                raise

    def _collection(self, tenant: str, workspace: str, namespace: str) -> Collection:
        return collection_of(self._layout, tenant, workspace, namespace)

    def _holds(self, collection: Collection) -> bool:
        folder = self._root / collection.name(self._layout)
        return (folder / SHARD).is_dir() or before_compaction(folder / SHARD).is_dir()

    def _own(self) -> None:
        """Lock the directory for this process; shards without a log have no lock of their own."""
        with self._lock:
            if self._ownership is not None:
                return
            directory = os.open(self._root, os.O_RDONLY)
            try:
                fcntl.flock(directory, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                os.close(directory)
                raise Misconfigured(
                    f"the cold index {self._root} is open elsewhere", "stop the process that has it open"
                ) from None
            self._ownership = directory

    def _open(self, collection: Collection) -> QdrantEdgeIndex:
        self._own()
        folder = self._root / collection.name(self._layout)
        ids = {"ids": [part for part in astuple(collection) if part is not None]}
        if not (folder / SHARD).exists():
            _write(folder / MARKER, ids)
        _refuse_other(folder, ids)
        return QdrantEdgeIndex(
            folder / SHARD, dimension=self._dimension, search_threads=self._search_threads, is_cold=True
        )

    def _close(self, collection: Collection, shard: QdrantEdgeIndex) -> None:
        """Flush and release a collection; remove one in which no chunk is left."""
        is_empty = False
        try:
            if collection in self._unflushed:
                self._flush(collection, shard)
            is_empty = shard.count() == 0
        except BaseException:
            with self._lock:
                self._lost.add(collection)
            raise
        finally:
            shard.close()
        if is_empty:
            folder = self._root / collection.name(self._layout)
            # Renamed first: what a crash leaves of it is no collection.
            (folder / SHARD).rename(folder / "removed")
            shutil.rmtree(folder)

    def _report_lost(self) -> None:
        with self._lock:
            lost, self._lost = self._lost, set()
        if lost:
            names = ", ".join(sorted(collection.name(self._layout) for collection in lost))
            raise Unavailable("cold index", f"changes of {names} could not be written to disk")


def _is_new(root: Path, description: Mapping[str, Any]) -> bool:
    """Report whether nothing was ever applied; a directory of an earlier format is set aside."""
    stored = read_marker(root)
    number = stored.get("format")
    if isinstance(number, int) and number < FORMAT and stored == {**description, "format": number}:
        root.rename(root.with_name(f"{root.name}.format-{number}"))
    if not (root / MARKER).exists() and not any(root.glob(f"*/{SHARD}")):
        return True
    _refuse_other(root, description)
    return False


def _refuse_other(folder: Path, wanted: Mapping[str, Any]) -> None:
    stored = read_marker(folder)
    if stored != dict(wanted):
        raise Misconfigured(f"the cold index {folder} is {stored}, expected {dict(wanted)}", _REMEDY)


def _write(file: Path, said: Mapping[str, Any]) -> None:
    """Write a marker, whole or not at all."""
    make_private(file.parent)
    draft = file.with_suffix(".new")
    with open(draft, "w", opener=private_opener) as opened:
        json.dump(said, opened)
        opened.flush()
        os.fsync(opened.fileno())
    draft.rename(file)
