"""Erasures of users as rows: their progress outlives processes, and any process may go on with them."""

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb

from lamina.core.erasures import Erasure, ErasureState, hash_user
from lamina.core.events import Event, EventKind
from lamina.core.memories import new_id
from lamina.core.paging import Page
from lamina.core.tiers import ProjectionName
from lamina.errors import NotFound, Unavailable
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("erasures.sql")

_LOCK = 0x657261736572  # "eraser"
_SALT_BYTES = 16


@dataclass(frozen=True, slots=True)
class ReceiptKey:
    """The public half of a key that signed receipts.

    Args:
        pem: The key, in PEM.
    """

    id: str
    pem: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class FormerStore:
    """A place where a projection was kept before."""

    projection: str
    place: str
    left_at: datetime


class ErasureTable(PostgresStore):
    """Reads and writes erasures.

    Every method raises ``Unavailable`` if Postgres does not answer.
    """

    async def order(self, tenant: str, user: str, now: datetime) -> Erasure:
        """Return a new erasure of a user, or the one that still looks for rows of that user."""
        salt = secrets.token_bytes(_SALT_BYTES)
        row = {"id": new_id(), "tenant": tenant, "user_id": user, "now": now}
        hashed = {"user_salt": salt, "user_hash": hash_user(salt, user)}
        rows = await self._rows(QUERIES["order_erasure"], **row | hashed)
        return _erasure(rows[0])

    async def get(self, tenant: str, id_: UUID) -> Erasure:
        """Return an erasure of a tenant.

        Raises:
            NotFound: If there is none.
        """
        rows = await self._rows(QUERIES["get_erasure"], id=id_, tenant=tenant)
        if not rows:
            raise NotFound("erasure", str(id_))
        return _erasure(rows[0])

    async def latest(self, tenant: str, page: Page, user: str | None = None) -> list[Erasure]:
        """Return the latest erasures of a tenant, or of one of its users, the last one first."""
        return [
            _erasure(row)
            for row in await self._rows(
                QUERIES["list_erasures"], tenant=tenant, user_id=user, **page.parameters("time", "id")
            )
        ]

    async def open(self) -> list[Erasure]:
        """Return all erasures that are not complete, the oldest first."""
        return [_erasure(row) for row in await self._rows(QUERIES["find_open_erasures"])]

    async def add_erased(self, id_: UUID, erased: Mapping[str, int]) -> None:
        """Add the numbers of rows that a pass erased."""
        await self._run(QUERIES["add_erased"], id=id_, erased=Jsonb(dict(erased)))

    async def record_look(
        self, id_: UUID, left: Mapping[str, int], audited: Mapping[str, int], waits_for: Sequence[str]
    ) -> None:
        """Store the findings of a look, and the projections that the erasure waits for."""
        await self._run(
            QUERIES["record_look"],
            id=id_,
            left=Jsonb(dict(left)),
            audited=Jsonb(dict(audited)),
            waits_for=Jsonb(list(waits_for)),
        )

    async def record_wait(self, ids: Sequence[UUID], waits_for: Sequence[str]) -> None:
        """Store the projections that erasures wait for."""
        await self._run(QUERIES["record_wait"], ids=list(ids), waits_for=Jsonb(list(waits_for)))

    async def mark_emptied(self, id_: UUID, left: Mapping[str, int], audited: Mapping[str, int], now: datetime) -> None:
        """Record that nothing of the user is found, and forget the user's name."""
        seen = {"left": Jsonb(dict(left)), "audited": Jsonb(dict(audited))}

        async def act(connection: Connection) -> None:
            row = await (await connection.execute(QUERIES["mark_emptied"], {"id": id_, "now": now, **seen})).fetchone()
            if row is not None:
                await record_event(connection, Event(EventKind.USER_ERASED, row["tenant"], ids=(id_,)))

        await in_transaction(self._pool, act)

    async def complete(self, id_: UUID, receipt: Mapping[str, Any], now: datetime) -> None:
        """Store the receipt of an erasure."""
        await self._run(QUERIES["complete_erasure"], id=id_, receipt=Json(dict(receipt)), now=now)

    async def bound_users(self, tenant: str) -> list[str]:
        """Return the users to which keys of a tenant are bound."""
        return [row["name"] for row in await self._rows(QUERIES["list_bound_users"], tenant=tenant)]

    async def put_key(self, id_: str, pem: str) -> None:
        """Store the public half of a key that signs receipts."""
        await self._run(QUERIES["put_receipt_key"], id=id_, public_key=pem.encode())

    async def keys(self) -> list[ReceiptKey]:
        """Return the public halves of all keys that signed receipts, the oldest first."""
        rows = await self._rows(QUERIES["list_receipt_keys"])
        return [ReceiptKey(row["id"], bytes(row["public_key"]).decode(), row["created_at"]) for row in rows]

    async def last_change(self) -> int:
        """Return the sequence number of the outbox's last row."""
        return int((await self._rows(QUERIES["last_outbox_row"]))[0]["last_value"])

    async def unapplied(self, until: int, projections: Sequence[ProjectionName]) -> Mapping[str, int]:
        """Count the changes up to a sequence number that projections have not applied, by projection."""
        rows = await self._rows(QUERIES["count_outbox_until"], until=until, projections=list(projections))
        return {row["projection"]: row["pending"] for row in rows}

    async def waiting(self, projection: ProjectionName, ids: Sequence[UUID]) -> set[UUID]:
        """Return those of the memories with changes that the projection has not applied."""
        rows = await self._rows(QUERIES["find_waiting_memories"], projection=projection, ids=list(ids))
        return {row["memory_id"] for row in rows}

    async def former_stores(self) -> list[FormerStore]:
        """Return the places where projections were kept before and are not now."""
        rows = await self._rows(QUERIES["list_former_stores"])
        return [FormerStore(row["projection"], row["store"], row["left_at"]) for row in rows]


@asynccontextmanager
async def erasure_lock(url: str) -> AsyncIterator[bool]:
    """Try to become the process that works on erasures; yield whether no other one does. It ends with its connection.

    Args:
        url: The database; not that of a pooler in transaction mode.

    Raises:
        Unavailable: If Postgres does not answer.
    """
    try:
        connection = await psycopg.AsyncConnection.connect(url, autocommit=True, connect_timeout=5)
    except psycopg.OperationalError as error:
        raise Unavailable("postgres", str(error).strip().split("\n")[0]) from error
    async with connection:
        cursor = await connection.execute("SELECT pg_try_advisory_lock(%s)", (_LOCK,))
        row = await cursor.fetchone()
        yield bool(row and row[0])


def _erasure(row: DictRow) -> Erasure:
    names = ("id", "tenant", "requested_at", "emptied_at", "completed_at", "erased", "audited", "receipt")
    return Erasure(
        user=row["user_id"],
        user_salt=bytes(row["user_salt"]),
        user_hash=bytes(row["user_hash"]),
        state=ErasureState(row["state"]),
        left=row["left_over"],
        waits_for=tuple(row["waits_for"]),
        **{name: row[name] for name in names},
    )
