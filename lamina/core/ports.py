"""Ports: the core's needs of the world, one to four methods each."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Generic, Protocol, TypeVar, runtime_checkable
from uuid import UUID

import numpy as np
from numpy.typing import NDArray

from lamina.core.cache_layers import Layer, ShardAnswer, ShardQuery, Space
from lamina.core.cache_stats import ShardStats, ShardUpdate
from lamina.core.conversations import Utterance
from lamina.core.erasures import Remnant
from lamina.core.links import FollowedLink, Frontier
from lamina.core.memories import Chunk, Extraction, Message
from lamina.core.queries import Failure, Filters, Memory, Neighbour, Query, Ranking, RowRequest
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.stamps import Remembered
from lamina.core.tiers import Source, Tier

State = TypeVar("State")


@dataclass(frozen=True, slots=True)
class ModelIdentity:
    """Identity of a model: only vectors of equal identity may be compared.

    Args:
        model: Name of the model.
        dimension: Length of its vectors.
        normalised: Whether they have length 1.
    """

    model: str
    dimension: int
    normalised: bool = True


@dataclass(frozen=True, slots=True)
class ModelReport:
    """How a process runs its model.

    Args:
        model: Name of the model.
        dimension: Length of its vectors.
        runtime: ``onnx``, ``torch``, ``endpoint`` or ``hashing``.
        precision: Type in which it computes.
        device: Processor or GPU, by the runtime's own name.
        checked: How its ONNX graph was compared with the model itself; ``None`` where there is no graph.
        may_be_mixed: Whether its vectors are known to agree with those of the other runtime.
    """

    model: str
    dimension: int
    runtime: str
    precision: str
    device: str
    checked: str | None
    may_be_mixed: bool


class Model(Protocol):
    """An embedding model in this process; slow, blocking and thread-safe.

    Attributes:
        identity: Of its vectors.
        pass_tokens: Most tokens that it should embed together, padding included.
        passes_at_once: Calls of :meth:`encode` that it should work on side by side.
    """

    identity: ModelIdentity
    pass_tokens: int
    passes_at_once: int

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d). Texts must fit the model."""
        ...

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Return the (start, end) of the chunks of a text that fit the model, in order, at least one."""
        ...

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the tokens of each text, with those that the model adds, as it embeds them."""
        ...


class ReportingModel(Model, Protocol):
    """A model that says how it is run."""

    report: ModelReport


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


class Reranker(Protocol):
    """A model that reads a question together with each text."""

    async def score(self, question: str, texts: Sequence[str]) -> Sequence[float]:
        """Return a score for each text, in their order: logits or probabilities, more is better.

        Raises:
            Unavailable: If the model does not answer.
        """
        ...


class QuestionEmbedder(Protocol):
    """Embeds questions, from a cache where it can."""

    async def embed_question(self, scope: Scope, text: str, remembered: Remembered | None = None) -> bytes:
        """Return float32 bytes of the unit vector.

        Args:
            scope: Who asks.
            text: The question.
            remembered: What is kept of it, where the caller has looked that up.

        Raises:
            Unavailable: If the model does not answer.
        """
        ...


class TextEmbedder(Protocol):
    """Embed texts that are written, from a cache where it can."""

    async def embed_texts(self, scope: Scope, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        """Return the embedded chunks of each text.

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


class ShareLookup(Protocol):
    """Read the shares that other workspaces grant to a scope's."""

    async def into(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        """Return the shares that may be active at this moment.

        Raises:
            Unavailable: If they cannot be read.
        """
        ...


class RowLookup(Protocol):
    """Reads the memories that leave with an answer."""

    async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
        """Return the memories that exist still and that their query may see.

        Raises:
            Unavailable: If they cannot be read.
        """
        ...


class Neighbourhood(Protocol):
    """Read messages together with their neighbours."""

    async def around(self, query: Query, ids: Sequence[UUID]) -> list[Neighbour]:
        """Return these messages and those right before and after them, as far as the query may see."""
        ...


class ConversationReader(Protocol):
    """Read the messages."""

    async def utterances(self, query: Query, ids: Sequence[UUID]) -> Mapping[UUID, Utterance]:
        """Return the messages by id, with the vectors of the query's generation; of those that are gone, none."""
        ...


@dataclass(frozen=True, slots=True)
class Change(Generic[State]):
    """The state that one memory has now, for a projection to take over.

    Args:
        id: Of the memory (for the graph, of an entity too).
        record: What to index; ``None`` if it is gone.
    """

    id: UUID
    record: State | None


@dataclass(frozen=True, slots=True)
class Record:
    """The part of a memory that a projection indexes.

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
    category: str | None = None
    agent: str | None = None
    source: str | None = None
    importance: float = 0.5


@dataclass(frozen=True, slots=True)
class PlacedRecord:
    """Where a memory belongs, for a projection that keeps an index for each namespace.

    Args:
        record: What is indexed of it; ``None`` if nothing is, now.
    """

    tenant: str
    workspace: str
    namespace: str
    record: Record | None


@dataclass(frozen=True, slots=True)
class NoteHits:
    """How often searches found a note within a while.

    Args:
        hits: How often, from 1.
        first_at: When the first of them was, in UTC.
        last_at: When the last of them was, in UTC.
    """

    id: UUID
    hits: int
    first_at: datetime
    last_at: datetime


class Links(Protocol):
    """Follows links, one step at a time."""

    async def expand(self, frontier: Frontier) -> Sequence[FollowedLink]:
        """Return the links of the nodes in both directions, strongest first for each node.

        Raises:
            Unavailable: If the store does not answer.
        """
        ...


class Projection(Protocol[State]):
    """A store that is derived from Postgres and can be rebuilt from it."""

    async def apply(self, changes: Sequence[Change[State]]) -> None:
        """Take over the given states and return when they are visible; idempotent."""
        ...

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        ...


@runtime_checkable
class Rebuildable(Protocol[State]):
    """A projection that can be rebuilt beside itself, while searches use the old store."""

    def beside(self, build: int) -> Projection[State]:
        """Return the store of a build, which no search reads yet; its first changes create it."""
        ...

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on, and give up the one before; idempotent."""
        ...


@runtime_checkable
class Compactable(Protocol):
    """A store that can rewrite its files without the rows deleted from it."""

    async def compact(self, tenant: str) -> Sequence[Remnant]:
        """Write anew at least the part of a tenant; return where something that was deleted may be left all the same.

        Raises:
            Unavailable: If the store does not answer.
        """
        ...


@runtime_checkable
class Identified(Protocol):
    """A store that tells whose it is: two installations on one server would take each other's memories for surplus."""

    async def installation(self) -> str | None:
        """Return the identity of the installation that it belongs to; ``None`` if it has none, or has lost it.

        Raises:
            Unavailable: If it does not answer.
        """
        ...

    async def belong_to(self, installation: str) -> None:
        """Have it belong to an installation from now on.

        Raises:
            Unavailable: If it does not answer.
        """
        ...


class Marked(Protocol):
    """A store that keeps the number of its last flush beside its data: restored as it was earlier, it tells so."""

    async def mark(self) -> int:
        """Return the number; 0 if it has none.

        Raises:
            Unavailable: If it does not answer.
        """
        ...

    async def set_mark(self, mark: int) -> None:
        """Keep a number.

        Raises:
            Unavailable: If it does not answer, or takes no changes.
        """
        ...


@runtime_checkable
class Reachable(Protocol):
    """A store on a server, which may be away."""

    async def probe(self) -> None:
        """Return if the server answers; a call that costs it little.

        Raises:
            Unavailable: If it does not answer.
            Misconfigured: If it refuses us.
        """
        ...


class Hints(Protocol):
    """Read the neighbours of memories in the graph, as words."""

    async def hints(self, scope: Scope, filters: Filters, ids: Sequence[UUID]) -> Mapping[UUID, list[str]]:
        """Return the facts next to each memory that pass the filters, strongest first (``Ann works_at Initech``).

        Raises:
            Unavailable: If the graph does not answer.
        """
        ...


class Inventory(Protocol):
    """A projection that can tell everything it holds, for the audit."""

    async def inventory(self, tenant: str) -> Mapping[UUID, str]:
        """Return every memory of a tenant in it with the fingerprint of its state."""
        ...


class AuditableProjection(Projection[State], Inventory, Protocol[State]):
    """A projection that can be fed and audited."""


class Extractor(Protocol):
    """Extract notes, profile and graph from messages.

    Attributes:
        costs_tokens: Whether the same message, extracted again, costs again.
    """

    costs_tokens: bool

    async def extract(
        self,
        messages: Sequence[Message],
        ids: Sequence[UUID],
        user: str | None = None,
        *,
        before: Sequence[Message] = (),
    ) -> Extraction:
        """Extract from messages; the notes name their message's id as ``message:<id>``.

        Args:
            messages: What was said.
            ids: Of the messages, in their order.
            user: Who says what users say without a name.
            before: What was said before, and extracted then: it may explain the messages.
        """
        ...


class HitStore(Protocol):
    """Keeps how often notes were found."""

    async def count(self, hits: Sequence[NoteHits]) -> Sequence[UUID]:
        """Add the hits and return the notes that they made warm.

        Raises:
            Unavailable: If the store does not answer; nothing is added.
        """
        ...


class CacheShard(Protocol):
    """One shard of the caches that every replica and sub-agent shares, wherever it lives; nothing in it is the truth.

    Every method may raise or hang; its callers must do without the answer.
    """

    async def find(self, probes: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        """Return the answer to each probe, in their order."""
        ...

    async def keep(self, news: ShardUpdate) -> None:
        """Take over entries, agents and counts."""
        ...

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Forget the layers' entries of a workspace, or of all workspaces of a tenant; return how many."""
        ...

    async def stats(self, tenant: str | None = None) -> ShardStats:
        """Return the shard's content and the reported counts."""
        ...

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make the response itself.

        The first caller is, at once. Another one is kept waiting, at most ``wait_s``: it is told
        ``False`` when the first one's response was kept (:meth:`settle`), and becomes the first
        when the first one's lease of ``lease_s`` ends without.
        """
        ...

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake those who wait for this response."""
        ...


class Clock(Protocol):
    """The time of day."""

    def __call__(self) -> datetime:
        """Return now, in UTC."""
        ...
