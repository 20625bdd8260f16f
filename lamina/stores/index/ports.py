"""The fields of every index of chunks, and the questions to it."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol
from uuid import UUID, uuid5

import numpy as np

from lamina.core.conversations import PlacedMessages
from lamina.core.fingerprints import fingerprint
from lamina.core.ids import id_of_text
from lamina.core.ports import Record
from lamina.core.queries import Candidate, Place, Query, Ranking, RowScoring

KEYWORD_FIELDS = (
    "tenant",
    "workspace",
    "namespace",
    "user",
    "agent",
    "session",
    "category",
    "source",
    "tags",
    "memory",
)
NUMBER_FIELDS = ("confidence", "importance", "chunk")
TIME_FIELD = "occurred_at"
# Field for the audit: the fingerprint of the state that the chunk's memory had.
STATE_FIELD = "state"
_NAMESPACE = UUID("9d1c7e2e-3a0f-5b7e-8c55-0d6a4c1f2b90")


class ChunkHit(NamedTuple):
    """A chunk that an index found; a tuple, for a search makes some hundred of them.

    Args:
        place: Its memory, and its number there.
        bm25: How well its words match; ``None`` if it was not found by them.
        cosine: How near it is; ``None`` if the query or the index has no vectors.
    """

    place: Place
    bm25: float | None = None
    cosine: float | None = None

    def figures(self) -> dict[str, float]:
        """Return the figures that it has, by name."""
        figures = {} if self.bm25 is None else {"bm25": self.bm25}
        return figures if self.cosine is None else {**figures, "cosine": self.cosine}


class WordIndex(Protocol):
    """Finds chunks by their words."""

    async def by_words(self, query: Query) -> list[ChunkHit]:
        """Return the best chunks by BM25 within the query's scope, best first; none for a query without words.

        Raises:
            Unavailable: If the index does not answer.
        """
        ...


class VectorIndex(Protocol):
    """Finds chunks by their vectors."""

    async def by_vector(self, query: Query) -> list[ChunkHit]:
        """Return the nearest chunks by cosine, best first; none for a query without a vector.

        Raises:
            Unavailable: If the index does not answer.
        """
        ...


class HybridIndex(Protocol):
    """Finds chunks by their words and by their vectors at once."""

    async def by_both(self, query: Query) -> tuple[list[ChunkHit], list[ChunkHit]]:
        """Return the best chunks by BM25, with their cosines, and the nearest ones, each best first.

        Raises:
            Unavailable: If the index does not answer.
        """
        ...


class Visible(NamedTuple):
    """The chunks of an index that a query may see.

    Args:
        memories: The memory of each, at the place that was asked for.
        first_text: The text of the first of them in the order in which they were asked for.
    """

    memories: Mapping[Place, Candidate]
    first_text: str = ""


class Lookup(Protocol):
    """Turns places of an index into memories, as Postgres has them now."""

    async def fetch(self, query: Query, places: Sequence[Place]) -> Visible:
        """Return the memories that exist and that the query may see, with the chunk as their excerpt."""
        ...


class FoundMessages(NamedTuple):
    """The messages that a query finds and may see.

    Args:
        visible: Those at places of an index.
        nearest: The nearest ones, best first.
        placed: All of these and the messages around them.
    """

    visible: Visible
    nearest: Ranking
    placed: PlacedMessages


class MessageReader(Protocol):
    """Reads messages for both of their sources at once."""

    async def find(self, query: Query, places: Sequence[Place]) -> FoundMessages:
        """Return the messages at these places as far as the query may see them, and the nearest ones."""
        ...


class NoteReader(Protocol):
    """Reads notes for all of their sources at once."""

    async def find(
        self, query: Query, warm: Sequence[Place], cold: Sequence[Place]
    ) -> tuple[Visible, Visible, Ranking]:
        """Return the warm and the cold notes at these places, and the warm ones that have every word of the query."""
        ...

    async def score_all(self, query: Query, scoring: RowScoring, *, min_similarity: float) -> Ranking:
        """Return the best of all near notes that the query may see, by nearness, importance and recency."""
        ...


def chunk_id(memory: UUID, chunk: int) -> UUID:
    """Return the id of a chunk, the same in every index."""
    return uuid5(_NAMESPACE, f"{memory}/{chunk}")


def chunk_place(payload: Mapping[str, Any] | None) -> Place:
    """Return the memory and number of a chunk, by its payload."""
    fields = payload or {}
    return id_of_text(fields["memory"]), fields["chunk"]


def chunk_state(payload: Mapping[str, Any] | None) -> tuple[UUID, str]:
    """Return the memory of a chunk and the fingerprint of its state, by its payload."""
    fields = payload or {}
    return UUID(fields["memory"]), fields.get(STATE_FIELD, "")


def cosine_of(query: Query, vectors: object, name: str) -> float | None:
    """Return the cosine of a chunk that was found by its words, if both have a vector.

    Args:
        query: The query.
        vectors: The chunk's vectors by name, if the engine gave any: lists of numbers, unit length.
        name: Of the dense one.
    """
    if query.embedding is None or not isinstance(vectors, Mapping) or name not in vectors:
        return None
    return float(np.frombuffer(query.embedding, dtype=np.float32) @ np.asarray(vectors[name], dtype=np.float32))


def chunk_payload(id_: UUID, record: Record) -> dict[str, Any]:
    """Return the payload of a memory's chunks: the fields of filters and its fingerprint, those that it has."""
    fields = {
        "memory": str(id_),
        "tenant": record.tenant,
        "workspace": record.workspace,
        "namespace": record.namespace,
        "user": record.user,
        "agent": record.agent,
        "session": record.session,
        "category": record.category,
        "source": record.source,
        "tags": list(record.tags),
        TIME_FIELD: record.occurred_at.isoformat(),
        "confidence": record.confidence,
        "importance": record.importance,
        STATE_FIELD: fingerprint(record),
    }
    return {key: value for key, value in fields.items() if value is not None}
