"""Where projections are kept, and their builds: a build takes its predecessor's place when it is full."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import psycopg
from psycopg.rows import DictRow, dict_row

from lamina.errors import Misconfigured
from lamina.stores.postgres.connection import Pool, lent, statement
from lamina.stores.postgres.outbox import CHANNEL, ProjectionName

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


class Builds:
    """The builds under way.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def asked(self, projection: ProjectionName) -> int | None:
        """Return the build that takes over changes beside what searches use; ``None`` if there is none."""
        return await self._build("asked_build", projection)

    async def full(self, projection: ProjectionName) -> int | None:
        """Return the build that has taken over everything there was when it was ordered; ``None`` if there is none."""
        return await self._build("full_build", projection)

    async def finish(self, projection: ProjectionName, build: int) -> None:
        """Take note that searches use the build."""
        async with lent(self._pool) as connection:
            await connection.execute(statement("finish_build"), {"projection": projection, "build": build})

    async def under_way(self) -> Sequence[Build]:
        """Return every build under way."""
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("builds"))
            return [_build(row) async for row in cursor]

    async def _build(self, name: str, projection: ProjectionName) -> int | None:
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement(name), {"projection": projection})
            row = await cursor.fetchone()
        return None if row is None else int(row["build"])


def order_build(url: str, projection: ProjectionName) -> tuple[int, int]:
    """Have the running service build a projection anew beside the old one; return its number and how many memories.

    Raises:
        Misconfigured: If one is being built.
    """
    with _connected(url) as connection, connection.transaction():
        row = connection.execute(statement("order_build"), {"projection": projection}).fetchone()
        if row is None:
            raise Misconfigured(
                f"{projection} is being built already", "wait for it; `lamina status` shows how far it is"
            )
        count = connection.execute(statement(f"enqueue_all_{projection}")).rowcount
        connection.execute(statement("bound_build"), {"projection": projection})
        connection.execute(statement("unsettle"), {"tenant": None})
        connection.execute(f"NOTIFY {CHANNEL}".encode())
    return int(row["build"]), count


def claim_store(url: str, projection: ProjectionName, store: str) -> bool:
    """Take note where the service keeps a projection; tell whether it kept it elsewhere before.

    What changed while it was elsewhere has passed this store by.
    """
    row = _first(url, "claim_store", {"projection": projection, "store": store})
    return row is not None and bool(row["is_another"])


def served_store(url: str, projection: ProjectionName) -> str | None:
    """Return where the service keeps a projection; ``None`` if none has begun to."""
    row = _first(url, "served_store", {"projection": projection})
    return None if row is None else row["store"]


def begin_filling(url: str, projection: ProjectionName) -> bool:
    """Tell whether to fill an empty store that other replicas may have found, too."""
    return _first(url, "begin_filling", {"projection": projection, "apart": STARTS_APART}) is not None


def known_tenants(url: str) -> list[str]:
    """Return every tenant that ever wrote a memory."""
    with _connected(url) as connection:
        return [row["tenant"] for row in connection.execute(statement("tenants_with_memories"))]


def _first(url: str, name: str, parameters: dict[str, Any]) -> DictRow | None:
    with _connected(url) as connection:
        return connection.execute(statement(name), parameters).fetchone()


def _connected(url: str) -> psycopg.Connection[DictRow]:
    return psycopg.connect(url, autocommit=True, row_factory=dict_row)


def _build(row: DictRow) -> Build:
    return Build(row["projection"], row["build"], row["ordered_at"], row["pending"])
