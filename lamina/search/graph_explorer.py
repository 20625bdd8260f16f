"""Explore the graph: neighbours, traversals, and hints for the context block."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.core.links import FollowedLink, Frontier
from lamina.core.paging import Page
from lamina.core.ports import Links, RowLookup
from lamina.core.queries import Filters, Query, first_expiry
from lamina.core.scope import Scope
from lamina.core.tiers import TIERS, Tier
from lamina.errors import InvalidInput, NotFound, Unavailable
from lamina.policies.ranking.graph_paths import LinkWeight, ReachedNode
from lamina.search.graph_walk import walk_links
from lamina.search.late_rows import row_requests
from lamina.stores.postgres.knowledge import KnowledgeReader, StoredEntity, TimedFact
from lamina.text.hygiene import clean_id
from lamina.text.words import name_key

EXCERPT_CHARS = 200
HINTED_ENTITIES = 3
_ALL = Filters(min_confidence=0.0)


@dataclass(frozen=True, slots=True)
class StartNodes:
    """Nodes to start from: names of entities, ids of entities or memories, or both."""

    names: tuple[str, ...] = ()
    ids: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class TraversalRequest:
    """How to follow links.

    Args:
        scope: The graph's scope.
        start: The nodes to start from.
        depth: How many links to follow, one after the other.
        kinds: Kinds of link that may be followed; none allows all.
        limit: Most nodes to return.
        as_of: Follow only links that were seen until then, if given.
    """

    scope: Scope
    start: StartNodes
    depth: int
    kinds: Sequence[str]
    limit: int
    as_of: datetime | None = None


@dataclass(frozen=True, slots=True)
class ShownNode:
    """A node as a reader sees it: its tier, its name or the beginning of its text, and when it expires, if ever."""

    tier: Tier
    content: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Neighbours:
    """The direct links of a node, the strongest first.

    Args:
        entity: The entity that was asked for; ``None`` for a memory.
        namesakes: Other entities that are known by the name that was asked for.
        links: Its links.
        shown: The nodes at their other ends.
        is_capped: Whether there are more.
    """

    entity: StoredEntity | None
    namesakes: tuple[StoredEntity, ...]
    links: tuple[FollowedLink, ...]
    shown: Mapping[UUID, ShownNode]
    is_capped: bool


@dataclass(frozen=True, slots=True)
class Traversal:
    """The nodes that were reached, best first."""

    nodes: tuple[ReachedNode, ...]
    shown: Mapping[UUID, ShownNode]
    visited: int
    is_capped: bool

    @property
    def expires_at(self) -> datetime | None:
        """Return when the first of the nodes expires; ``None`` if none does."""
        return first_expiry(shown.expires_at for shown in self.shown.values())


class NoLinks:
    """Follows no links, in place of a graph store where none is configured."""

    async def expand(self, frontier: Frontier) -> Sequence[FollowedLink]:  # noqa: ARG002 - the port's signature
        """Refuse: a failure is never an empty success."""
        raise Unavailable("graph", "graph.kind is off")


class Explorer:
    """Reads the graph for callers that ask for it directly.

    Args:
        reader: The graph's tables.
        rows: Reads memories.
        links: Follows links.
        generation: The active generation of vectors.
        fan_out: Links followed from one node of a traversal, the strongest first.
        max_links: Links followed for one traversal.
    """

    def __init__(
        self, reader: KnowledgeReader, rows: RowLookup, links: Links, *, generation: int, fan_out: int, max_links: int
    ) -> None:
        self._reader = reader
        self._rows = rows
        self._links = links
        self._generation = generation
        self._fan_out = fan_out
        self._max_links = max_links

    async def neighbours(
        self, scope: Scope, start: StartNodes, *, kinds: Sequence[str], limit: int, as_of: datetime | None = None
    ) -> Neighbours:
        """Return the links of one entity or memory, in both directions.

        Of several entities of a name it is the one that has it as its own, or else the oldest.

        Raises:
            InvalidInput: If neither a name nor an id is given, or both.
            NotFound: If the scope has no such entity.
            Unavailable: If the graph does not answer.
        """
        if len(start.names) + len(start.ids) != 1:
            reason = "is given beside id" if start.names and start.ids else "is missing"
            raise InvalidInput("name", f"{reason}; the start is the name of one entity, or an id")
        named = await self._named(scope, start.names)
        known = [entity for of_name in named for entity in of_name]
        ids = (known[0].id,) if known else await self._ids(scope, start)
        # One more than the limit shows whether links are left out.
        followed = await self._links.expand(Frontier(scope, ids, clean_kinds(kinds), limit + 1, as_of))
        seen = tuple(sorted(followed, key=lambda link: (-link.strength, link.end, link.kind)))[:limit]
        shown = await self._visible_nodes(scope, [link.end for link in seen])
        entity = known[0] if known else (await self._reader.entities(scope, _ALL, ids)).get(ids[0])
        visible = tuple(link for link in seen if link.end in shown)
        return Neighbours(entity, tuple(known[1:]), visible, shown, len(followed) > limit)

    async def traverse(self, request: TraversalRequest) -> Traversal:
        """Follow links from the start; a node's score is its best path's product of strengths.

        Raises:
            InvalidInput: If no start is given.
            NotFound: If the scope has no such entity.
            Unavailable: If the graph does not answer.
        """
        scope, start = request.scope, request.start
        if not start.names and not start.ids:
            raise InvalidInput("names", "is empty; give names of entities, or ids")
        frontier = Frontier(scope, (), clean_kinds(request.kinds), self._fan_out, request.as_of)
        seeds = dict.fromkeys(await self._ids(scope, start), 1.0)
        walk = await walk_links(
            self._links, seeds, frontier, depth=request.depth, max_links=self._max_links, weigh=_by_strength
        )
        ordered = sorted(walk.nodes.values(), key=lambda node: (-node.score, len(node.path), node.id))[: request.limit]
        shown = await self._visible_nodes(scope, [node.id for node in ordered])
        return Traversal(tuple(node for node in ordered if node.id in shown), shown, walk.visited, walk.is_capped)

    async def facts(
        self, scope: Scope, subject: str, *, relation: str | None, as_of: datetime | None, page: Page
    ) -> tuple[TimedFact, ...]:
        """Return the facts about the entities of a name, the latest first; with a moment, those that held then.

        Raises:
            NotFound: If the scope has no such entity.
        """
        ids = await self._ids(scope, StartNodes((subject,)))
        return await self._reader.timed_facts(scope, ids, relation=relation, as_of=as_of, page=page)

    async def entities(self, scope: Scope, page: Page, type_: str | None = None) -> list[StoredEntity]:
        """Return the entities, of a type or all, that the scope's user may know of; the one made last first."""
        return await self._reader.page(scope, page, type_)

    async def entity(self, scope: Scope, id_: UUID) -> StoredEntity | None:
        """Return one entity of a place, if the scope's user may know of it."""
        return (await self._reader.entities(scope, _ALL, [id_])).get(id_)

    async def fact(self, scope: Scope, id_: UUID) -> TimedFact | None:
        """Return one fact of a place, if the scope's user may see it."""
        return await self._reader.timed_fact(scope, id_)

    async def hints(self, scope: Scope, filters: Filters, ids: Sequence[UUID]) -> Mapping[UUID, list[str]]:
        """Return the surest facts about the entities that each memory names; memories without any are missing.

        Facts that expire are no hints, so a kept hint never expires.
        """
        named = await self._reader.named_in(scope, ids)
        hints: dict[UUID, list[str]] = {}
        for memory, entities in named.items():
            facts = await self._reader.facts_of(scope, filters, entities[:HINTED_ENTITIES], HINTED_ENTITIES)
            if facts:
                hints[memory] = facts
        return hints

    async def _ids(self, scope: Scope, start: StartNodes) -> tuple[UUID, ...]:
        named = [
            entity.id
            for name, of_name in zip(start.names, await self._named(scope, start.names), strict=True)
            for entity in _owners(name, of_name)
        ]
        shown = await self._visible_nodes(scope, start.ids)
        for id_ in start.ids:
            if id_ not in shown:
                raise NotFound("entity or memory", str(id_))
        return tuple(dict.fromkeys((*named, *start.ids)))

    async def _named(self, scope: Scope, names: Sequence[str]) -> list[list[StoredEntity]]:
        """Return the entities of each name: first the one that has it as its own, then by age.

        Raises:
            NotFound: If the scope has none of a name.
        """
        keys = [name_key(clean_id(name, "name")) for name in names]
        found = await self._reader.named(scope, keys)
        visible = await self._reader.entities(scope, _ALL, sorted({id_ for ids in found.values() for id_ in ids}))
        named = []
        for name, key in zip(names, keys, strict=True):
            of_name = [visible[id_] for id_ in found.get(key, ()) if id_ in visible]
            if not of_name:
                raise NotFound("entity", name)
            named.append(sorted(of_name, key=lambda item: (item.entity.key != key, item.id)))
        return named

    async def _visible_nodes(self, scope: Scope, ids: Sequence[UUID]) -> dict[UUID, ShownNode]:
        """Return the nodes that the scope's user may see; an id is looked for in every tier."""
        if not ids:
            return {}
        wanted = sorted(set(ids))
        entities = await self._reader.entities(scope, _ALL, wanted)
        query = Query("", (), scope, len(wanted), _ALL, None, self._generation)
        tiers = {spec.tier: wanted for spec in TIERS.values() if spec.is_linked}
        linked = await self._reader.memories(query, tiers)
        memories = await self._rows.rows(row_requests([item.memory for item in linked.values()], query))
        shown = {id_: ShownNode(Tier.GRAPH, entity.entity.name, entity.expires_at) for id_, entity in entities.items()}
        for (tier, id_), memory in memories.items():
            shown[id_] = ShownNode(tier, memory.content[:EXCERPT_CHARS], memory.expires_at)
        return shown


def _owners(name: str, known: Sequence[StoredEntity]) -> Sequence[StoredEntity]:
    """Return the entity that has the name as its own, or else all that have it as an alias."""
    return known[:1] if known[0].entity.key == name_key(name) else known


async def _by_strength(_: Sequence[FollowedLink]) -> LinkWeight:
    return lambda link: link.strength


def clean_kinds(kinds: Sequence[str]) -> tuple[str, ...]:
    """Return the kinds of link, checked.

    Raises:
        InvalidInput: For one that is not 1 to 128 printable characters.
    """
    return tuple(clean_id(kind, "kind") for kind in kinds)
