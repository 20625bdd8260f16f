"""Bring deleted entities and facts back, by a call or because they are stated again."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from lamina.core.events import Event, EventKind
from lamina.core.memories import Edge, Entity
from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.errors import Conflict, NotFound
from lamina.ingest.embedding import stand_in_vector
from lamina.ingest.memory_linking import MemoryLinker
from lamina.stores.postgres.connection import Connection, Pool
from lamina.stores.postgres.entities import edge_key
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.generations import active_generation
from lamina.stores.postgres.graph_restoration import RevivedNode, revive_node
from lamina.stores.postgres.graph_trash import find_lost_names, find_returning
from lamina.stores.postgres.outbox import enqueue
from lamina.stores.postgres.trash import TrashPolicy

_EVENTS = {TrashKind.ENTITY: EventKind.ENTITY_RESTORED, TrashKind.FACT: EventKind.EDGE_RESTORED}


@dataclass(frozen=True, slots=True)
class ReturningNodes:
    """Entities and facts that come back from the trash, with all that needs no transaction.

    Args:
        entries: Their ids.
        vectors: Of the names that the graph lacks: float32 bytes of unit vectors.
    """

    entries: tuple[UUID, ...] = ()
    vectors: Mapping[str, bytes] = field(default_factory=dict)


class NodeRestorer:
    """Brings deleted entities and facts back.

    Args:
        pool: Connections to Postgres.
        linker: Embeds names that the graph does not have any more.
        policy: How long they can be brought back.
        generation: The active generation of vectors.
    """

    def __init__(self, pool: Pool, linker: MemoryLinker, policy: TrashPolicy, *, generation: int) -> None:
        self._pool = pool
        self._linker = linker
        self._policy = policy
        self._generation = generation

    async def find_stated(
        self, scope: Scope, edges: Sequence[Edge], entities: Sequence[Entity], now: datetime
    ) -> ReturningNodes:
        """Find entities and facts in the trash that a scope states again.

        Raises:
            Unavailable: If the embedder or Postgres does not answer.
        """
        if not self._policy.keeps:
            return ReturningNodes()
        keys = [entity.key for entity in entities]
        found = await find_returning(self._pool, scope, list(map(edge_key, edges)), keys, self._policy.cutoff(now))
        return await self.prepare(scope.tenant, found) if found else ReturningNodes()

    async def prepare(self, tenant: str, entries: Sequence[UUID]) -> ReturningNodes:
        """Embed the names that the graph does not have any more; for those that the model refuses a vector stands in.

        Raises:
            Unavailable: If the embedder or Postgres does not answer.
        """
        names = await find_lost_names(self._pool, tenant, entries)
        vectors = await self._linker.name_vectors(names)
        if refused := [name for name in names if name not in vectors]:
            active = await active_generation(self._pool)
            assert active is not None  # noqa: S101 - the graph has had vectors of it
            vectors |= {name: stand_in_vector(name, active.identity.dimension) for name in refused}
        return ReturningNodes(tuple(entries), vectors)

    async def restore(self, connection: Connection, tenant: str, nodes: ReturningNodes, id_: UUID) -> RevivedNode:
        """Bring one of them back, in the transaction of a write, which raises the epoch.

        Raises:
            NotFound: If it does not lie in the trash any more.
            Conflict: If nothing is left that it rests on.
        """
        node = await revive_node(connection, tenant, id_, nodes.vectors, self._generation)
        await enqueue(connection, "graph", node.changed)
        await record_event(connection, Event.of(node.scope, _EVENTS[node.kind], node.id))
        return node

    async def restore_stated(self, connection: Connection, tenant: str, nodes: ReturningNodes) -> None:
        """Bring back those that can be, before they are stated again; the others stay in the trash."""
        for id_ in nodes.entries:
            with suppress(NotFound, Conflict):
                async with connection.transaction():
                    await self.restore(connection, tenant, nodes, id_)
