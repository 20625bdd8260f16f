"""The knowledge graph's values: nodes, the links between them, and a step along those."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lamina.core.scope import Scope


class NodeLabel(StrEnum):
    """Kind of a node of the graph."""

    ENTITY = "Entity"
    MEMORY = "Memory"


class LinkKind(StrEnum):
    """Links that Lamina makes itself; edges between entities have the caller's types beside these."""

    ABOUT = "about"  # a memory to the entity that it is titled after
    MENTIONS = "mentions"  # a memory to an entity in its text
    SIMILAR = "similar"  # a memory to one of its nearest neighbours


@dataclass(frozen=True, slots=True)
class Link:
    """A directed link of the graph.

    Args:
        source: Id of the node it starts from.
        target: Id of the node it points to.
        kind: One of :class:`LinkKind`, or the type of an edge between entities.
        strength: 0..1, how much following it carries over.
        users: Whose evidence it rests on; ``None`` if everybody may follow it.
        seen_at: When it was first seen, in UTC.
        held: When an edge held that ended at some time, each interval from its beginning to its end, which is
            excluded, or ``None``; empty for a link that never ended.
    """

    source: UUID
    target: UUID
    kind: str
    strength: float
    users: tuple[str, ...] | None
    seen_at: datetime
    held: tuple[tuple[datetime, datetime | None], ...] = ()


@dataclass(frozen=True, slots=True)
class Node:
    """A node of the graph with the links that start from it.

    Args:
        label: Whether it is an entity or a memory.
        tier: Number of the tier of a memory; 4 for an entity.
        user: Whose memory it is; ``None`` for a shared one and for entities.
        name: Of an entity; a memory has none.
        seen_at: When the memory happened or the entity was first seen, in UTC.
        links: Every link that starts here.
    """

    label: NodeLabel
    tenant: str
    workspace: str
    namespace: str
    tier: int
    user: str | None
    name: str | None
    seen_at: datetime
    links: tuple[Link, ...] = ()


@dataclass(frozen=True, slots=True)
class Frontier:
    """Nodes whose links are wanted, and which links may be followed.

    Args:
        scope: Only nodes of its tenant, workspace and namespace; of its user and shared ones if it names one.
        ids: The nodes.
        kinds: Allowed kinds of link; none means all.
        fan_out: Most links of one node, the strongest first.
        as_of: Only links and memories seen until then; ``None`` means now.
        shared_only: Only what belongs to no user.
    """

    scope: Scope
    ids: tuple[UUID, ...]
    kinds: tuple[str, ...]
    fan_out: int
    as_of: datetime | None = None
    shared_only: bool = False


@dataclass(frozen=True, slots=True)
class FollowedLink:
    """A link as it was followed, in either direction.

    Args:
        start: The node of the frontier.
        end: The node at the other side.
        end_label: The kind of that node.
        end_tier: Its tier.
        is_forward: Whether the link points from ``start`` to ``end``.
        is_ended: Whether it held no longer, or not yet again, at the moment of the frontier.
    """

    start: UUID
    end: UUID
    end_label: NodeLabel
    end_tier: int
    kind: str
    strength: float
    is_forward: bool
    is_ended: bool = False
