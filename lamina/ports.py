"""What the core asks of the world: one to four methods a port."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.memories import Chunk, Extraction, Message
from lamina.queries import Failure, Neighbour, Query, Ranking, Source


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """What makes vectors comparable: only vectors of equal identity may be compared.

    Args:
        model: Name of the model.
        dimension: Length of its vectors.
        normalised: Whether they have length 1.
    """

    model: str
    dimension: int
    normalised: bool = True


class Model(Protocol):
    """An embedding model in this process; slow, blocking and thread-safe."""

    identity: ModelIdentity

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d). Texts must fit the model."""
        ...

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the (start, end) of the chunks of a text that fit the model, in order, at least one."""
        ...


class Embedder(Protocol):
    """Texts to vectors, from anywhere in the cluster."""

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d); a long text's chunks are averaged.

        Raises:
            Unavailable: If the model does not answer.
        """
        ...

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text; together they cover every word of it.

        Raises:
            Unavailable: If the model does not answer.
        """
        ...


class Searcher(Protocol):
    """One source of one tier."""

    source: Source

    async def search(self, query: Query) -> Ranking:
        """Return hits of the query's scope and filters, best first, each memory once."""
        ...


class TierSearcher(Protocol):
    """All sources of one tier, asked at once."""

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        """Return every source's ranking or its failure; never raise for a source."""
        ...


class Neighbourhood(Protocol):
    """Reads messages with what stands next to them."""

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        """Return these messages and those right before and after them, as far as the query may see."""
        ...


@dataclass(frozen=True, slots=True)
class Change:
    """The state that one memory has now, for a projection to take over.

    Args:
        id: Of the note or message.
        record: What to index; ``None`` if the memory is gone.
    """

    id: UUID
    record: "Record | None"


@dataclass(frozen=True, slots=True)
class Record:
    """What a projection indexes of one memory.

    Args:
        texts: Text of each chunk, in order.
        embeddings: Float32 bytes of each chunk's unit vector, in the same order.
    """

    tenant: str
    workspace: str
    namespace: str
    user: str | None
    session: str | None
    tags: tuple[str, ...]
    occurred_at: datetime
    confidence: float
    texts: tuple[str, ...]
    embeddings: tuple[bytes, ...]


class Projection(Protocol):
    """A store that is derived from Postgres and can be rebuilt from it."""

    async def apply(self, changes: Sequence[Change]) -> None:
        """Take over the given states and return when they are visible; idempotent."""
        ...

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        ...


class Extractor(Protocol):
    """From what was said to what is worth keeping."""

    def extract(self, messages: Sequence[Message], ids: Sequence[UUID]) -> Extraction:
        """Return the notes and profile facts of the messages; the notes name their message's id."""
        ...


class Clock(Protocol):
    """The time of day."""

    def __call__(self) -> datetime:
        """Return now, in UTC."""
        ...
