"""Walk over the links of a graph store."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from uuid import UUID

from lamina.core.links import FollowedLink, Frontier
from lamina.core.ports import Links
from lamina.policies.ranking.graph_paths import LinkWeight, Walk, advance, begin, expandable_nodes


async def walk_links(
    links: Links,
    seeds: Mapping[UUID, float],
    frontier: Frontier,
    *,
    depth: int,
    max_links: int,
    weigh: Callable[[Sequence[FollowedLink]], Awaitable[LinkWeight]],
    least: float = 0.0,
    max_nodes: int | None = None,
) -> Walk:
    """Follow links from the seeds, step by step.

    Args:
        links: The store.
        seeds: The nodes to start from, with scores of 0..1.
        frontier: Which links may be followed; its ids do not matter.
        depth: Most steps.
        max_links: Most links of the whole walk.
        weigh: Reads, for the links of a step, the factor by which following each multiplies a score.
        least: Paths weaker than this lead nowhere.
        max_nodes: Most nodes whose links are followed; ``None`` means as many as the links allow.
    """
    walk, asked = begin(seeds), 0
    for _ in range(depth):
        ids = expandable_nodes(walk, fan_out=frontier.fan_out, max_links=max_links)
        if max_nodes is not None:
            ids = ids[: max(0, max_nodes - asked)]
        if not ids:
            break
        asked += len(ids)
        followed = await links.expand(replace(frontier, ids=ids))
        walk = advance(walk, followed, ids, weigh=await weigh(followed), least=least)
    return walk
