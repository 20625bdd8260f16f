"""Indexes under test, each behind the same port; servers where their URL is in the environment."""

import os
import subprocess
import sys
import uuid
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import UUID

from pydantic import SecretStr

from lamina.core.ports import PlacedRecord, Record
from lamina.core.queries import Filters, Query
from lamina.core.scope import Scope
from lamina.models.hashing import HashingModel
from lamina.settings.stores import IN_MEMORY, MeilisearchSettings, QdrantServerSettings
from lamina.stores.index.cold.collections import Layout
from lamina.stores.index.cold.edge import ColdIndex
from lamina.stores.index.cold.qdrant import QdrantColdIndex
from lamina.stores.index.edge.builds import EmbeddedHybridIndex, EmbeddedIndex
from lamina.stores.index.edge.shard import QdrantEdgeIndex
from lamina.stores.index.meilisearch.index import MeilisearchIndex
from lamina.stores.index.qdrant.index import QdrantIndex
from lamina.text.words import question_words

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
MODEL = HashingModel(64)
ACME = Scope("acme")
ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
ROOT = Path(__file__).parents[2]
QDRANT_URL = os.environ.get("LAMINA_TEST_QDRANT_URL")
MEILISEARCH_URL = os.environ.get("LAMINA_TEST_MEILISEARCH_URL")
# The engine in this process, the client's own stand-in, and a server if one is configured.
ADAPTERS = ("qdrant_edge", "qdrant_local", *(["qdrant_server"] if QDRANT_URL else []))
# Names that this run gave to indexes, by the adapter; those on servers are removed.
MADE: defaultdict[str, set[str]] = defaultdict(set)
# A shard indexes its fields when it grows: filters must find the same before and after.
HYBRID_ADAPTERS = (*ADAPTERS, "qdrant_edge_indexed", *(["meilisearch"] if MEILISEARCH_URL else []))


@dataclass(frozen=True)
class Place:
    """Where an index under test is: a folder, a name on a server.

    Args:
        is_lasting: Whether it must outlive its closing; the client's stand-in is a hundred times slower then.
    """

    adapter: str
    path: Path
    is_lasting: bool = False

    def index(self, **options: Any) -> Any:
        """Open the hybrid index that lies here, or make it."""
        chosen: dict[str, Any] = {"dimension": 64, **options}
        if self.adapter == "qdrant_edge_indexed":
            chosen["chunks_to_index"] = 0
        if self.adapter.startswith("qdrant_edge"):
            return EmbeddedHybridIndex(self.path, _opening(QdrantEdgeIndex, chosen))
        if self.adapter == "meilisearch":
            return MeilisearchIndex(meilisearch_server(), self._name(), **chosen)
        return QdrantIndex(self._settings(), self._name(), **chosen)

    def cold(self, layout: Layout) -> Any:
        """Open the index of cold notes that lies here, or make it."""
        if self.adapter == "qdrant_edge":
            return EmbeddedIndex(self.path, _opening(ColdIndex, {"dimension": 64, "layout": layout, "max_open": 4}))
        return QdrantColdIndex(self._settings(), self._name(), dimension=64, layout=layout)

    def _settings(self) -> QdrantServerSettings:
        if self.adapter == "qdrant_local":
            return QdrantServerSettings(url=str(self.path.parent) if self.is_lasting else IN_MEMORY)
        return qdrant_server()

    def _name(self) -> str:
        name = f"test_{self.path.name}"
        MADE[self.adapter].add(name)
        return name


def place(adapter: str, folder: Path, *, is_lasting: bool = False) -> Place:
    """Return a place that nothing lies at."""
    return Place(adapter, folder / "edge" / f"t{uuid.uuid4().hex}", is_lasting)


def qdrant_server() -> QdrantServerSettings:
    """Return the settings of the configured server."""
    key = os.environ.get("LAMINA_TEST_QDRANT_KEY")
    assert QDRANT_URL is not None
    return QdrantServerSettings(url=QDRANT_URL, api_key=SecretStr(key) if key else None, read_timeout_s=10)


def meilisearch_server(**options: Any) -> MeilisearchSettings:
    """Return the settings of the configured server."""
    key = os.environ.get("LAMINA_TEST_MEILISEARCH_KEY")
    assert MEILISEARCH_URL is not None
    chosen = {"api_key": SecretStr(key) if key else None, "read_timeout_s": 10, **options}
    return MeilisearchSettings(url=MEILISEARCH_URL, **chosen)


async def close(index: Any) -> None:
    """Close an index of either kind."""
    closing = index.close()
    if closing is not None:
        await closing


def record(*texts: str, tenant: str = "acme", user: str | None = None, **fields: Any) -> Record:
    """Return the state of a memory with these chunks."""
    embeddings = tuple(row.tobytes() for row in MODEL.encode(texts))
    return Record(tenant, "default", "default", user, None, (), NOON, 1.0, texts, embeddings, **fields)


def placed(*texts: str, scope: Scope = ACME, user: str | None = None) -> PlacedRecord:
    """Return the state of a cold note."""
    state = record(*texts, tenant=scope.tenant, user=user)
    fields = {name: getattr(state, name) for name in Record.__dataclass_fields__}
    here = {"tenant": scope.tenant, "workspace": scope.workspace, "namespace": scope.namespace}
    return PlacedRecord(**here, record=Record(**(fields | here)))


def gone(scope: Scope = ACME) -> PlacedRecord:
    """Return the state of a note that is not cold any more."""
    return PlacedRecord(scope.tenant, scope.workspace, scope.namespace, None)


def asked(text: str, scope: Scope = ACME, limit: int = 10, filters: Filters | None = None) -> Query:
    """Return a question."""
    (row,) = MODEL.encode([text])
    return Query(
        text, tuple(question_words(text)), scope, limit, filters or Filters(min_confidence=0), row.tobytes(), 1
    )


async def found(index: Any, text: str, scope: Scope = ACME) -> dict[str, list[tuple[UUID, int]]]:
    """Return the (memory, chunk) places of both rankings."""
    by_words, by_vector = await index.by_both(asked(text, scope))
    return {"words": [item.place for item in by_words], "vectors": [item.place for item in by_vector]}


async def nearest(index: Any, text: str, scope: Scope = ACME) -> list[tuple[UUID, int]]:
    """Return the (memory, chunk) places that say the same, nearest first."""
    return [item.place for item in await index.by_vector(asked(text, scope)) if (item.cosine or 0) > 0.7]


async def chunk_count(index: Any, tenant: str = "acme") -> int:
    """Return how many chunks an index holds of a tenant whose memories are whole."""
    return sum(int(state.split(":")[0]) for state in (await index.inventory(tenant)).values())


def in_another_process(code: str, path: Path) -> "subprocess.CompletedProcess[str]":
    """Run a script with a path as its argument."""
    command = [sys.executable, "-c", code, str(path)]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60, check=False)


def _opening(kind: Any, options: dict[str, Any]) -> Callable[[Path], Any]:
    return lambda path: kind(path, **options)
