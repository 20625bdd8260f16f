"""Where projections are kept, and their builds: a build takes its predecessor's place when it is full."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import psycopg
from psycopg.rows import DictRow, dict_row

from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.outbox import enqueue_everything
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("builds.sql")

UNBOUNDED = 2**63 - 1
"""Up to which row of the outbox a build has to get whose memories are not in there yet."""
STARTS_APART = timedelta(minutes=1)
"""Replicas that find a store empty within this time of each other start together."""


@dataclass(frozen=True, slots=True)
class Build:
    """A build under way.

    Args:
        number: From 1, of its projection.
        pending: Memories that it still has to take over.
    """

    projection: str
    number: int
    ordered_at: datetime
    pending: int


@dataclass(frozen=True, slots=True)
class PreviousStore:
    """Where a projection was kept, when a store is claimed for it.

    Args:
        store: The place; ``None`` if none has been claimed.
        is_filled_lately: Whether everything was enqueued for it within a start of several replicas.
        pending: Memories that the outbox holds for it.
    """

    store: str | None
    is_filled_lately: bool
    pending: int

    def is_another(self, store: str) -> bool:
        """Tell whether it was kept elsewhere."""
        return self.store not in (None, store)


class Builds:
    """The builds under way.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def asked(self, projection: ProjectionName) -> int | None:
        """Return the build that takes over changes beside what searches use; ``None`` if there is none."""
        return await self._build(QUERIES["asked_build"], projection)

    async def full(self, projection: ProjectionName) -> int | None:
        """Return the build that has taken over everything there was when it was ordered; ``None`` if there is none."""
        return await self._build(QUERIES["full_build"], projection)

    async def finish(self, projection: ProjectionName, build: int) -> None:
        """Take note that searches use the build, or that it is given up."""
        async with connect(self._pool) as connection:
            await connection.execute(QUERIES["finish_build"], {"projection": projection, "build": build})

    async def under_way(self) -> Sequence[Build]:
        """Return every build under way."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["builds"])
            return [_build(row) async for row in cursor]

    async def _build(self, query: bytes, projection: ProjectionName) -> int | None:
        async with connect(self._pool) as connection:
            parameters = {"projection": projection, "unbounded": UNBOUNDED}
            cursor = await connection.execute(query, parameters)
            row = await cursor.fetchone()
        return None if row is None else int(row["build"])


def order_build(url: str, projection: ProjectionName) -> tuple[int, int]:
    """Have the running service build a projection anew beside the old one; return its number and how many memories.

    The order is committed before the memories are read: from then on the indexer gives both stores what it takes, so
    that what is written meanwhile is read here or given to both. A call that was cut off is made good by another one.

    Raises:
        Misconfigured: If one is being built.
    """
    with _connected(url) as connection:
        parameters = {"projection": projection, "unbounded": UNBOUNDED}
        row = connection.execute(QUERIES["order_build"], parameters).fetchone()
        if row is None:
            raise Misconfigured(
                f"{projection} is being built already", "wait for it; `lamina status` shows how far it is"
            )
        with connection.transaction():
            count = _enqueue_all(connection, projection)
    return int(row["build"]), count


def claim_store(url: str, projection: ProjectionName, store: str, *, is_new: bool, is_shared: bool) -> bool:
    """Keep a projection in a store from now on; have it take over everything, if something may have passed it by.

    One transaction: a claim that fails leaves everything to the next one.

    Args:
        url: The database.
        projection: Which.
        store: Where it is kept.
        is_new: Whether the store is empty, or does not answer.
        is_shared: Whether other processes may use it, too, and claim it at the same time.

    Returns:
        Whether everything is in the outbox for it now.
    """
    parameters = {"projection": projection, "store": store, "apart": STARTS_APART}
    with _connected(url) as connection, connection.transaction():
        connection.execute(QUERIES["make_store"], parameters)
        known = _known(connection.execute(QUERIES["lock_store"], parameters).fetchone())
        connection.execute(QUERIES["claim_store"], parameters)
        if not needs_filling(known, store, is_new=is_new, is_shared=is_shared):
            return False
        connection.execute(QUERIES["begin_filling"], parameters)
        return _filled(connection, projection, spares=is_shared and not known.is_another(store), pending=known.pending)


def needs_filling(known: PreviousStore, store: str, *, is_new: bool, is_shared: bool) -> bool:
    """Tell whether a store may have missed changes, and nobody else has seen to it just now."""
    if known.is_another(store):
        return True
    return is_new and not (is_shared and known.is_filled_lately)


def _filled(connection: psycopg.Connection[DictRow], projection: ProjectionName, *, spares: bool, pending: int) -> bool:
    """Enqueue everything; where ``spares`` says so only if less is waiting, as for a server that does not answer."""
    with connection.transaction() as filling:
        count = _enqueue_all(connection, projection)
        if spares and 0 < count <= pending:
            raise psycopg.Rollback(filling)
        return True
    return False


def _enqueue_all(connection: psycopg.Connection[DictRow], projection: ProjectionName) -> int:
    count = enqueue_everything(connection, projection)
    connection.execute(QUERIES["bound_build"], {"projection": projection})
    return count


def _known(row: DictRow | None) -> PreviousStore:
    assert row is not None  # noqa: S101 - it was made in the same transaction
    return PreviousStore(row["store"], bool(row["is_filled_lately"]), row["pending"])


def served_store(url: str, projection: ProjectionName) -> str | None:
    """Return where the service keeps a projection; ``None`` if none has begun to."""
    with _connected(url) as connection:
        row = connection.execute(QUERIES["served_store"], {"projection": projection}).fetchone()
    return None if row is None else row["store"]


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Whether a store is the one to take changes.

    Args:
        is_active: Whether its vectors are those that searches read, and were since it was opened.
        is_here: Whether no other service keeps the projection elsewhere.
    """

    is_active: bool
    is_here: bool


async def read_store_status(
    pool: Pool, projection: ProjectionName, store: str, generation: Generation | None
) -> StoreStatus:
    """Tell whether a store is the one to take changes."""
    parameters = {
        "projection": projection,
        "store": store,
        "generation": generation and generation.number,
        "activations": generation and generation.activations,
    }
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["takes_changes"], parameters)
        row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - it has no FROM
    return StoreStatus(row["is_active"], row["is_here"])


def list_tenants(url: str) -> list[str]:
    """Return every tenant that ever wrote a memory."""
    with _connected(url) as connection:
        return [row["tenant"] for row in connection.execute(QUERIES["tenants_with_memories"])]


def _connected(url: str) -> psycopg.Connection[DictRow]:
    return psycopg.connect(url, autocommit=True, row_factory=dict_row)


def _build(row: DictRow) -> Build:
    return Build(row["projection"], row["build"], row["ordered_at"], row["pending"])
