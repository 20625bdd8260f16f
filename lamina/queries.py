"""What is asked and what is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, StrEnum
from typing import Any
from uuid import UUID

from lamina.errors import InvalidInput
from lamina.memories import as_utc
from lamina.scope import Scope
from lamina.text import MAX_QUERY_CHARS, clean_id, clean_text, words

MAX_LIMIT = 1000


class Tier(IntEnum):
    """The five tiers, from what was said to what was learned."""

    SESSIONS = 1
    NOTES = 2
    PROFILE = 3
    GRAPH = 4
    PROCEDURES = 5


SEARCHED_TIERS = (Tier.SESSIONS, Tier.NOTES)


class Source(StrEnum):
    """A ranking that fusion combines; each belongs to one tier."""

    SESSION_VECTORS = "session_vectors"
    SESSION_WORDS = "session_words"
    SESSION_CONTEXT = "session_context"
    NOTES_HYBRID = "notes_hybrid"
    NOTES_WARM = "notes_warm"


TIER_OF: Mapping[Source, Tier] = {
    Source.SESSION_VECTORS: Tier.SESSIONS,
    Source.SESSION_WORDS: Tier.SESSIONS,
    Source.SESSION_CONTEXT: Tier.SESSIONS,
    Source.NOTES_HYBRID: Tier.NOTES,
    Source.NOTES_WARM: Tier.NOTES,
}


@dataclass(frozen=True, slots=True)
class Filters:
    """What a hit must be beside relevant.

    Args:
        tags: All of these, each compared whole. Messages have none.
        since: Not before this moment of the event, in UTC.
        until: Before this moment of the event, in UTC.
        min_confidence: Notes less sure than this are left out, 0..1.
    """

    tags: tuple[str, ...] = ()
    since: datetime | None = None
    until: datetime | None = None
    min_confidence: float = 0.5


@dataclass(frozen=True, slots=True)
class Query:
    """One search, ready for every source.

    Args:
        text: What is asked.
        words: Its words, as every keyword index holds them.
        scope: Where to look; ``user`` adds that user's memories to the shared ones, ``session``
            narrows the messages.
        limit: How many hits each source returns.
        filters: What a hit must be beside relevant.
        embedding: Float32 bytes of the unit vector; ``None`` where the embedder did not answer.
        generation: The active embedding generation, whose chunks are searched.
    """

    text: str
    words: tuple[str, ...]
    scope: Scope
    limit: int
    filters: Filters = field(default_factory=Filters)
    embedding: bytes | None = None
    generation: int = 0


@dataclass(frozen=True, slots=True)
class SearchRequest:
    """What a caller asks, before it is embedded.

    Args:
        text: The question or the latest message.
        scope: Where to look.
        limit: How many fused hits to return, best first.
        per_source: How many ranks of each source count in full.
        tiers: Which tiers to search.
        filters: What a hit must be beside relevant.
    """

    text: str
    scope: Scope
    limit: int
    per_source: int
    tiers: tuple[Tier, ...] = SEARCHED_TIERS
    filters: Filters = field(default_factory=Filters)

    def query(self) -> Query:
        """Return the query for the sources, without its embedding and generation.

        Raises:
            InvalidInput: If the text is blank or unclean, or a number is out of range.
        """
        text = clean_text(self.text, "query", limit=MAX_QUERY_CHARS)
        if not 1 <= self.limit <= MAX_LIMIT:
            raise InvalidInput("limit", f"is {self.limit}; expected 1 to {MAX_LIMIT}")
        return Query(
            text=text,
            words=tuple(words(text)),
            scope=self.scope,
            limit=max(self.per_source, self.limit),
            filters=clean_filters(self.filters),
        )


def clean_filters(filters: Filters) -> Filters:
    """Return the filters with clean tags and UTC times.

    Raises:
        InvalidInput: For an unclean tag, or a window that ends before it starts.
    """
    since = None if filters.since is None else as_utc(filters.since, "since")
    until = None if filters.until is None else as_utc(filters.until, "until")
    if since and until and until <= since:
        raise InvalidInput("until", f"is {until.isoformat()}, not after since ({since.isoformat()})")
    tags = tuple(clean_id(tag, f"tags.{place}") for place, tag in enumerate(filters.tags))
    return Filters(tags=tags, since=since, until=until, min_confidence=filters.min_confidence)


@dataclass(frozen=True, slots=True)
class Memory:
    """A found memory as a caller sees it, whatever its tier.

    Args:
        id: Of the message or the note.
        tier: Where it lives.
        kind: ``message``, or the note's category.
        content: The stretch of its text that matched.
        occurred_at: When it was said or happened, in UTC.
    """

    id: UUID
    tier: Tier
    kind: str
    content: str
    occurred_at: datetime
    confidence: float = 1.0
    importance: float = 0.5
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    name: str | None = None
    ref: str | None = None
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] = field(default_factory=dict)
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Hit:
    """One place of one source's ranking.

    Args:
        memory: What was found.
        score: 0..1, higher is better.
        raw: The engine's own figures (``cosine``, ``bm25``, ``ts_rank_cd``).
    """

    memory: Memory
    score: float
    raw: Mapping[str, float]


Place = tuple[UUID, int]
"""A chunk of a memory: the memory's id and which of its chunks, from 0."""


@dataclass(frozen=True, slots=True)
class Neighbour:
    """A message near a candidate, or a candidate itself.

    Args:
        memory: The message, with its best chunk as the excerpt.
        position: Its place in its session.
        cosine: Similarity of its best chunk; 0 where the query has no vector.
    """

    memory: Memory
    position: int
    cosine: float


Ranking = tuple[Hit, ...]
"""Hits of one source, best first, each memory once."""


@dataclass(frozen=True, slots=True)
class Failure:
    """A source that did not answer; data of the answer, never an empty ranking."""

    reason: str


@dataclass(frozen=True, slots=True)
class Placement:
    """Where one source put a memory.

    Args:
        rank: From 1, the best.
        score: The source's score, 0..1.
        raw: The engine's own figures.
    """

    rank: int
    score: float
    raw: Mapping[str, float]


@dataclass(frozen=True, slots=True)
class FusedHit:
    """A memory with its fused score (0..1) and where each source placed it."""

    memory: Memory
    score: float
    placements: Mapping[Source, Placement]


@dataclass(frozen=True, slots=True)
class Answer:
    """The fused answer.

    Args:
        hits: Best first.
        answered: Hits per source that answered, before fusion.
        degraded: What did not answer and why, by source (or ``embedder``).
    """

    hits: tuple[FusedHit, ...]
    answered: Mapping[Source, int]
    degraded: Mapping[str, str]
