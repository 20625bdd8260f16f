"""The layers of the cache stack, and the questions and answers of a shard."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Layer(StrEnum):
    """A cache layer, outer to inner; ``FRONT`` is a replica's own copy of the others."""

    FRONT = "front"
    AGENTS = "agent_filter"
    TURN = "turn_hash"
    SEMANTIC = "semantic"
    NEGATIVE = "negative"
    GRAPH = "graph"
    SWARM = "swarm_l1"
    EMBEDDINGS = "embeddings"


# About how many bytes an entry takes beside its value.
ENTRY_BYTES = 256
# A tenant and one of its workspaces: what a shard owns as a whole.
Space = tuple[str, str]


@dataclass(frozen=True, slots=True)
class CacheKey:
    """Under which something is kept.

    Args:
        layer: In which layer.
        digest: SHA-256 of everything that its value depends on, the epochs among it.
        swarm: Whose entries these are; the swarm layer alone has some.
    """

    layer: Layer
    digest: bytes
    swarm: str | None = None


@dataclass(frozen=True, slots=True)
class CacheEntry:
    """Something to keep.

    Args:
        space: Whose it is.
        key: Under what.
        value: Any picklable value; it is never changed.
        size_bytes: About how much memory it takes.
    """

    space: Space
    key: CacheKey
    value: Any
    size_bytes: int


@dataclass(frozen=True, slots=True)
class ShardQuery:
    """The look-ups of one request in a shard, in one round trip.

    Args:
        space: Whose caches.
        answers: Keys of whole answers, the outermost layer first; the first that is there is enough.
        pieces: Keys of what an answer is made from, looked at where no whole answer is there.
        agent: Whose responses are looked for, if responses are.
    """

    space: Space
    answers: tuple[CacheKey, ...] = ()
    pieces: tuple[CacheKey, ...] = ()
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class ShardAnswer:
    """A shard's answer to a probe.

    Args:
        answer: Key and value of the whole answer.
        pieces: Values by key.
        has_responses: Whether the agent has responses in the semantic cache; ``None`` if the shard cannot tell.
    """

    answer: tuple[CacheKey, Any] | None = None
    pieces: Mapping[CacheKey, Any] = field(default_factory=dict)
    has_responses: bool | None = None


NOTHING_FOUND = ShardAnswer()


@dataclass(frozen=True, slots=True)
class RespondingAgents:
    """Agents that have responses in the semantic cache.

    Args:
        space: Where.
        agents: Who.
        is_all: Whether no other agent there has any; otherwise these are added to the list.
        has_ended: Whether their last response has ended; then these leave the list.
    """

    space: Space
    agents: Sequence[str]
    is_all: bool = False
    has_ended: bool = False
