"""What one workspace lets another one see."""

from dataclasses import asdict
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from cachetools import LRUCache
from psycopg.rows import DictRow

from lamina.errors import Conflict, NotFound
from lamina.scope import Scope
from lamina.sharing import MAX_SHARES_INTO, Segment, Share
from lamina.stores.postgres.connection import Connection, Pool, in_transaction, lent, statement
from lamina.stores.postgres.idempotency import Json, Once, answer_once

MAX_CACHED_WORKSPACES = 10_000
Workspace = tuple[str, str]
"""A tenant and one of its workspaces."""


class Shares:
    """Writes shares, and tells searches of them without asking Postgres each time.

    Args:
        pool: Connections to Postgres.
        cache_s: Seconds after which a change that another replica made is seen, at most.
    """

    def __init__(self, pool: Pool, *, cache_s: float) -> None:
        self._pool = pool
        self._cache_for = timedelta(seconds=cache_s)
        self._cached: LRUCache[Workspace, tuple[datetime, tuple[Share, ...]]] = LRUCache(MAX_CACHED_WORKSPACES)

    async def into(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        """Return the shares into the scope's workspace that were active within the last ``cache_s``.

        Raises:
            Unavailable: If they are not cached and Postgres does not answer.
        """
        workspace = (scope.tenant, scope.workspace)
        read_at, shares = self._cached.get(workspace, (None, ()))
        if read_at is None or not timedelta(0) <= now - read_at < self._cache_for:
            shares = await self._read(workspace, now)
            self._cached[workspace] = (now, shares)
        return shares

    async def _read(self, workspace: Workspace, now: datetime) -> tuple[Share, ...]:
        parameters = {"tenant": workspace[0], "workspace": workspace[1], "now": now}
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("shares_into"), parameters)
            return tuple([_share(row) async for row in cursor])

    async def page(self, tenant: str, workspace: str, *, limit: int, offset: int) -> list[Share]:
        """Return what the workspace shares and what is shared with it, revoked and expired ones too, latest first."""
        parameters = {"tenant": tenant, "workspace": workspace, "limit": limit, "offset": offset}
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("list_shares"), parameters)
            return [_share(row) async for row in cursor]

    async def put(self, tenant: str, share: Share, once: Once | None = None) -> UUID:
        """Store a share and return its id; the same one again is renewed: its expiry and label are replaced.

        Raises:
            Conflict: If the other workspace has as many active shares as it may have.
        """

        async def write(connection: Connection) -> Json:
            cursor = await connection.execute(
                statement("put_share"), {**asdict(share), "tenant": tenant, "tags": list(share.tags)}
            )
            row = await cursor.fetchone()
            assert row is not None  # noqa: S101 - the upsert returns its row
            await _refuse_too_many(connection, tenant, share)
            await _bump_epochs(connection, tenant, share.to_workspace)
            return {"id": str(row["id"])}

        written = await in_transaction(
            self._pool, lambda connection: answer_once(connection, once, lambda: write(connection))
        )
        self._forget(tenant, share.to_workspace)
        return UUID(written["id"])

    async def get(self, tenant: str, id_: UUID) -> Share:
        """Return the share.

        Raises:
            NotFound: If the tenant has no such share.
        """
        async with lent(self._pool) as connection:
            cursor = await connection.execute(statement("get_share"), {"tenant": tenant, "id": id_})
            row = await cursor.fetchone()
        if row is None:
            raise NotFound("share", str(id_))
        return _share(row)

    async def revoke(self, tenant: str, id_: UUID, now: datetime) -> None:
        """End a share: at once for searches of this replica, within ``cache_s`` for all.

        Raises:
            NotFound: If the tenant has no such share.
        """

        async def act(connection: Connection) -> str:
            cursor = await connection.execute(statement("revoke_share"), {"tenant": tenant, "id": id_, "now": now})
            row = await cursor.fetchone()
            if row is None:
                raise NotFound("share", str(id_))
            await _bump_epochs(connection, tenant, row["to_workspace"])
            return str(row["to_workspace"])

        self._forget(tenant, await in_transaction(self._pool, act))

    def _forget(self, tenant: str, workspace: str) -> None:
        self._cached.pop((tenant, workspace), None)


async def _refuse_too_many(connection: Connection, tenant: str, share: Share) -> None:
    parameters = {"tenant": tenant, "workspace": share.to_workspace, "now": share.created_at}
    cursor = await connection.execute(statement("shares_into"), parameters)
    if len(await cursor.fetchall()) > MAX_SHARES_INTO:
        raise Conflict(
            f"workspace {share.to_workspace} sees {MAX_SHARES_INTO} shares, the most it may; revoke one of them first"
        )


async def _bump_epochs(connection: Connection, tenant: str, workspace: str) -> None:
    """Make answers that were cached for the workspace invalid."""
    await connection.execute(statement("bump_workspace_epochs"), {"tenant": tenant, "workspace": workspace})


def _share(row: DictRow) -> Share:
    fields: dict[str, Any] = dict(row)
    workspace, namespace = fields.pop("from_workspace"), fields.pop("from_namespace")
    segment, tags = Segment(fields.pop("segment")), tuple(fields.pop("tags"))
    return Share(**fields, workspace=workspace, namespace=namespace, segment=segment, tags=tags)
