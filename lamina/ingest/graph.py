"""Write entities and edges that callers state, rather than texts that mention them."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from uuid import UUID

from pydantic import TypeAdapter

from lamina.aio.yielding import map_in_steps
from lamina.core.events import Event, EventKind
from lamina.core.links import LinkKind
from lamina.core.memories import MAX_ALIASES, Edge, Entity, clean_source
from lamina.core.ports import Clock
from lamina.core.scope import Scope
from lamina.errors import Conflict, InvalidInput
from lamina.extraction.entities import merge_equal_entities
from lamina.ingest.graph_restoring import NodeRestorer
from lamina.ingest.memory_linking import MemoryLinker, is_own_source
from lamina.ingest.write_once import write_once
from lamina.stores.postgres.connection import Connection, Pool, in_transaction
from lamina.stores.postgres.entities import Evidence, NodeResult, edge_key
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.knowledge import TimedFact
from lamina.stores.postgres.links import delete_edge, delete_entity
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.trash import TrashPolicy
from lamina.stores.postgres.validity import read_statements, replace_edges, restate_edge
from lamina.text.hygiene import clean_id, clean_name
from lamina.text.words import name_key

Deletion = Callable[[Connection, str, UUID, TrashPolicy, datetime], Awaitable[tuple[Scope, list[UUID]]]]
"""Puts something of a tenant into the trash; returns where it was, and the nodes that changed."""


@dataclass(frozen=True, slots=True)
class StatedEdge:
    """An edge and where the caller has it from; one source counts once."""

    edge: Edge
    source: str


@dataclass(frozen=True, slots=True)
class RecordedNodes:
    """The results of a write to the graph, in the caller's order, and the scope's epoch after it."""

    results: tuple[NodeResult, ...]
    epoch: int


@dataclass(frozen=True, slots=True)
class StatedFact:
    """An edge that a caller states with the time from which it holds.

    Args:
        stated: The edge and its source.
        valid_from: Since when, in UTC; since its arrival if not given.
        replaces: Ids of edges that end there, whatever they state.
    """

    stated: StatedEdge
    valid_from: datetime | None = None
    replaces: tuple[UUID, ...] = ()


@dataclass(frozen=True, slots=True)
class RecordedFact:
    """The result of stating a fact, and the edges that ended with it."""

    result: NodeResult
    replaced: tuple[UUID, ...]


_NODES = TypeAdapter(RecordedNodes)
_FACT = TypeAdapter(RecordedFact)


class GraphRecorder:
    """Writes the entities and edges that callers state.

    Args:
        pool: Connections to Postgres.
        linker: Writes the graph's tables.
        restorer: Brings back what is stated again.
        trash: How long deleted entities and facts can be brought back.
        clock: The time of day.
    """

    def __init__(
        self, pool: Pool, linker: MemoryLinker, restorer: NodeRestorer, *, trash: TrashPolicy, clock: Clock
    ) -> None:
        self._pool = pool
        self._linker = linker
        self._restorer = restorer
        self._trash = trash
        self._clock = clock

    async def put_entities(
        self, scope: Scope, entities: Sequence[Entity], once: Once | None = None, *, witness: str | None = None
    ) -> RecordedNodes:
        """Store entities, each once per workspace and namespace; return the results in their order.

        Raises:
            InvalidInput: For an unclean name, type or alias, or a scope of one user.
            Unavailable: If the embedder or Postgres does not answer; nothing is written.
        """
        if scope.user is not None:
            raise InvalidInput("user", "is not accepted: an entity belongs to the workspace; an edge can be one user's")
        placed = enumerate(entities)
        cleaned = await map_in_steps(lambda item: clean_entity(item[1], f"entities.{item[0]}"), placed)
        merged = await asyncio.to_thread(merge_equal_entities, cleaned)
        now = self._clock()
        prepared = await self._linker.embed_entities(merged, now, is_asserted=True)
        returning = await self._restorer.find_stated(scope, (), merged, now)

        async def write(connection: Connection) -> RecordedNodes:
            await self._restorer.restore_stated(connection, scope.tenant, returning)
            put = await self._linker.assert_entities(connection, scope, prepared, witness)
            results = tuple(put[entity.key] for entity in cleaned)
            epoch = await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, _written(scope, results, "entities"))
            return RecordedNodes(results, epoch)

        return await write_once(self._pool, once, _NODES, write)

    async def put_edges(
        self, scope: Scope, edges: Sequence[StatedEdge], once: Once | None = None, *, witness: str | None = None
    ) -> RecordedNodes:
        """Store edges, each once per direction and type; return the results in their order.

        Args:
            scope: Where they belong.
            edges: The edges.
            once: Identity of the write.
            witness: Who vouches for them.

        Raises:
            InvalidInput: For an unclean name or type, or an edge from an entity to itself.
            Unavailable: If the embedder or Postgres does not answer; nothing is written.
        """
        cleaned = [_clean_edge(stated, f"edges.{place}") for place, stated in enumerate(edges)]
        now = self._clock()
        evidence = [
            Evidence(stated.edge, _counted_source(stated.source, witness), None, scope.user, now, witness)
            for stated in cleaned
        ]
        names = {Entity(name).key: Entity(name) for item in cleaned for name in (item.edge.subject, item.edge.object)}
        prepared = await self._linker.embed_entities(tuple(names.values()), now)
        returning = await self._restorer.find_stated(scope, [item.edge for item in cleaned], (), now)

        async def write(connection: Connection) -> RecordedNodes:
            await self._restorer.restore_stated(connection, scope.tenant, returning)
            put = await self._linker.assert_edges(connection, scope, prepared, evidence)
            results = tuple(put[edge_key(stated.edge)] for stated in cleaned)
            epoch = await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, _written(scope, results, "edges"))
            return RecordedNodes(results, epoch)

        return await write_once(self._pool, once, _NODES, write)

    async def put_fact(
        self, scope: Scope, fact: StatedFact, once: Once | None = None, *, witness: str | None = None
    ) -> RecordedFact:
        """Store an edge from the moment on at which it began to hold, and end those that it replaces.

        Args:
            scope: Where it belongs.
            fact: The edge.
            once: Identity of the write.
            witness: Who vouches for it.

        Raises:
            InvalidInput: For an unclean name or relation, an edge from an entity to itself, or a beginning to come.
            NotFound: If the scope has no edge with an id that is to be replaced, or others than its user state it.
            Conflict: If its source stated another beginning, and the edge has ended since or begun again.
        """
        stated, now = _clean_edge(fact.stated, "", type_field="relation"), self._clock()
        begin = fact.valid_from or now
        if begin > now:
            raise InvalidInput("valid_from", f"is {begin.isoformat()}, which is to come; state a fact when it holds")
        source = _counted_source(stated.source, witness)
        evidence = Evidence(stated.edge, source, None, scope.user, begin, witness)
        ends = tuple(Entity(name) for name in (stated.edge.subject, stated.edge.object))
        prepared = await self._linker.embed_entities(ends, begin)
        returning = await self._restorer.find_stated(scope, [stated.edge], (), now)

        async def write(connection: Connection) -> RecordedFact:
            await self._restorer.restore_stated(connection, scope.tenant, returning)
            put = await self._linker.assert_edges(connection, scope, prepared, [evidence])
            result = put[edge_key(stated.edge)]
            replaced: dict[UUID, UUID] = {}
            if fact.replaces:
                replaced = await replace_edges(connection, scope, fact.replaces, result.id, begin)
            elif fact.valid_from is not None and result.existed:
                await restate_edge(connection, scope, result.id, source, begin)
            await enqueue(connection, "graph", sorted(set(replaced.values())))
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, _written(scope, [result], "edges"))
            return RecordedFact(result, tuple(sorted(replaced)))

        return await write_once(self._pool, once, _FACT, write)

    async def change_fact(
        self, scope: Scope, known: TimedFact, fact: StatedFact, *, witness: str | None = None
    ) -> RecordedFact:
        """State another fact in the place of one; without a beginning, from the beginning of that one on.

        It belongs to those to whom the old one belongs: to all, or to the one user who stated that.

        Args:
            scope: Where both are.
            known: The old one, as it is read.
            fact: The new one, which replaces nothing else.
            witness: Who vouches for it.

        Raises:
            InvalidInput: As :meth:`put_fact` does.
            NotFound: If the old one is gone.
            Conflict: If the old one has ended, says the same, was stated again since, or is several users' own.
        """
        edge, again = _clean_edge(fact.stated, "", type_field="relation").edge, "(POST /v1/facts)"
        if known.valid_to is not None:
            remedy = f"state it anew with another source {again}"
            if known.replaced_by:
                remedy = f"change {known.replaced_by}, which took its place"
            raise Conflict(f"fact {known.id} ended on {known.valid_to.isoformat()}; {remedy}")
        if edge_key(edge) == edge_key(Edge(known.subject, known.relation, known.object)):
            reason = "has its time and its confidence from those who state it"
            raise Conflict(f"fact {known.id} {reason}; state it again with those that you mean {again}")
        told = await read_statements(self._pool, known.id)
        users = told.owners - {None}
        if None not in told.owners and len(users) > 1:
            raise Conflict(
                f"fact {known.id} is what several users state, each for themselves; state another one of each"
            )
        begin = fact.valid_from or known.valid_from
        if begin < told.latest:
            reason = f"was stated on {told.latest.isoformat()} the last time"
            raise Conflict(f"fact {known.id} {reason}; send a valid_from that is not before, or delete it first")
        owner = None if None in told.owners else next(iter(users))
        replacing = replace(fact, valid_from=begin, replaces=(known.id,))
        return await self.put_fact(scope.narrowed(user=owner), replacing, witness=witness)

    async def delete_entity(self, tenant: str, id_: UUID) -> None:
        """Delete an entity with its edges; the memories that mention it stay.

        Raises:
            NotFound: If the tenant has no such entity.
        """
        await self._delete(delete_entity, EventKind.ENTITY_DELETED, tenant, id_)

    async def retract_edge(self, tenant: str, id_: UUID) -> None:
        """Delete an edge, whoever stated it; an entity that rests on it alone goes with it.

        Raises:
            NotFound: If the tenant has no such edge.
        """
        await self._delete(delete_edge, EventKind.EDGE_DELETED, tenant, id_)

    async def _delete(self, delete: Deletion, kind: EventKind, tenant: str, id_: UUID) -> None:
        async def act(connection: Connection) -> None:
            scope, changed = await delete(connection, tenant, id_, self._trash, self._clock())
            await enqueue(connection, "graph", sorted({id_, *changed}))
            await bump_epoch(connection, scope, teaches=True)
            await record_event(connection, Event.of(scope, kind, id_))

        await in_transaction(self._pool, act)


def _written(scope: Scope, results: Sequence[NodeResult], of: str) -> Event:
    ids = dict.fromkeys(result.id for result in results)
    return Event.of(scope, EventKind.GRAPH_WRITTEN, *ids, of=of)


def clean_entity(entity: Entity, path: str) -> Entity:
    """Return the entity with clean texts.

    Raises:
        InvalidInput: Naming the field under ``path``.
    """
    if len(entity.aliases) > MAX_ALIASES:
        raise InvalidInput(f"{path}.aliases", f"has {len(entity.aliases)} aliases; at most {MAX_ALIASES} are accepted")
    return Entity(
        clean_name(entity.name, f"{path}.name"),
        clean_id(entity.type, f"{path}.type").lower(),
        tuple(clean_name(alias, f"{path}.aliases.{place}") for place, alias in enumerate(entity.aliases)),
        entity.confidence,
    )


def _clean_edge(stated: StatedEdge, path: str, *, type_field: str = "type") -> StatedEdge:
    """Return the edge with clean texts; errors name the fields under the path, the type by its own name."""
    edge, prefix = stated.edge, f"{path}." if path else ""
    subject, object_ = clean_name(edge.subject, f"{prefix}subject"), clean_name(edge.object, f"{prefix}object")
    if name_key(subject) == name_key(object_):
        raise InvalidInput(f"{prefix}object", f"is {object_}, the subject itself; an edge joins two entities")
    type_ = _clean_type(edge.type, f"{prefix}{type_field}")
    source = clean_source(stated.source, f"{prefix}source")
    return StatedEdge(Edge(subject, type_, object_, edge.strength, edge.confidence), source)


def _counted_source(source: str, witness: str | None) -> str:
    return witness if witness is not None and is_own_source(source) else source


def _clean_type(type_: str, path: str) -> str:
    """Return the type of an edge in lower case with underscores."""
    cleaned = "_".join(clean_id(type_, path).lower().split())
    if cleaned in set(LinkKind):
        raise InvalidInput(path, f"is {cleaned}, which names links of memories; choose another word")
    return cleaned
