"""Follow links from seeds: products along paths, the best path for every node."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from lamina.core.links import FollowedLink, NodeLabel

# The factor by which following a link multiplies a score, 0..1.
LinkWeight = Callable[[FollowedLink], float]


@dataclass(frozen=True, slots=True)
class ReachedNode:
    """A node and the best path to it.

    Args:
        id: The node.
        label: Its kind; ``None`` for a seed that no link has shown yet.
        tier: Its tier, under the same condition.
        score: Product of the strengths along the path and of its seed, 0..1.
        path: The links from the seed to here, in order; none for a seed.
    """

    id: UUID
    label: NodeLabel | None
    tier: int | None
    score: float
    path: tuple[FollowedLink, ...] = ()


@dataclass(frozen=True, slots=True)
class Walk:
    """The nodes that were reached so far.

    Args:
        nodes: Every node at its best score.
        frontier: The nodes to go on from, best first.
        visited: Links followed so far.
        is_capped: Whether links were left out because there were too many.
    """

    nodes: Mapping[UUID, ReachedNode]
    frontier: tuple[UUID, ...]
    visited: int = 0
    is_capped: bool = False
    links: tuple[FollowedLink, ...] = field(default=())


def begin(seeds: Mapping[UUID, float]) -> Walk:
    """Begin a walk at its seeds, each with a score of 0..1."""
    nodes = {id_: ReachedNode(id_, None, None, score) for id_, score in seeds.items()}
    return Walk(nodes, _best_first(nodes.values()))


def expandable_nodes(walk: Walk, *, fan_out: int, max_links: int) -> tuple[UUID, ...]:
    """Return the nodes of the frontier that may be expanded without visiting more than ``max_links`` links."""
    return walk.frontier[: max(0, max_links - walk.visited) // fan_out]


def advance(
    walk: Walk, followed: Sequence[FollowedLink], asked: Sequence[UUID], *, weigh: LinkWeight, least: float = 0.0
) -> Walk:
    """Take one step along the links that leave the asked nodes.

    A node keeps the best of all its paths; one that became better is gone on from. After n steps
    every path of up to n links counts, whatever the order of the links. An edge that ended leads nowhere.

    Args:
        walk: The walk so far.
        followed: The links that leave the asked nodes.
        asked: The nodes of the frontier whose links these are.
        weigh: The factor by which following a link multiplies the score, 0..1.
        least: Paths weaker than this lead nowhere.
    """
    better: dict[UUID, ReachedNode] = {}
    for link in followed:
        here = walk.nodes[link.start]
        there = ReachedNode(link.end, link.end_label, link.end_tier, here.score * weigh(link), (*here.path, link))
        best = better.get(link.end) or walk.nodes.get(link.end)
        if not link.is_ended and there.score >= least and (best is None or there.score > best.score):
            better[link.end] = there
    # A seed has only its id until a link leads back to it.
    labelled = {link.end: link for link in followed}
    nodes = {
        **{id_: _labelled(node, labelled.get(id_)) for id_, node in walk.nodes.items()},
        **better,
    }
    return Walk(
        nodes,
        _best_first(better.values()),
        walk.visited + len(followed),
        walk.is_capped or len(asked) < len(walk.frontier),
        (*walk.links, *followed),
    )


def _labelled(node: ReachedNode, link: FollowedLink | None) -> ReachedNode:
    if node.label is not None or link is None:
        return node
    return ReachedNode(node.id, link.end_label, link.end_tier, node.score, node.path)


def _best_first(nodes: Iterable[ReachedNode]) -> tuple[UUID, ...]:
    return tuple(node.id for node in sorted(nodes, key=lambda node: (-node.score, node.id)))
