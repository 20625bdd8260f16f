"""Shares: segments of a workspace that another workspace may search."""

from collections.abc import Mapping
from dataclasses import asdict
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.events import Event, EventKind
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.core.sharing import MAX_SHARES_INTO, Share, refuse_past
from lamina.core.tiers import Segment
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.stores.postgres.epochs import bump_workspace_epochs, refuse_renamed
from lamina.stores.postgres.events import record_event
from lamina.stores.postgres.idempotency import Json, Once, answer_once
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("shares.sql")


class Shares(PostgresStore):
    """Reads and writes shares."""

    async def into(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        """Return the active shares into the scope's workspace, for a search without a stamp.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return tuple(
            [
                stored_share(row)
                for row in await self._rows(
                    QUERIES["find_shares_into"], tenant=scope.tenant, workspace=scope.workspace, now=now
                )
            ]
        )

    async def page(self, tenant: str, workspace: str, page: Page) -> list[Share]:
        """Return shares from and into the workspace, also revoked and expired ones, latest first."""
        return [
            stored_share(row)
            for row in await self._rows(
                QUERIES["list_shares"], tenant=tenant, workspace=workspace, **page.parameters("time", "id")
            )
        ]

    async def put(self, tenant: str, share: Share, once: Once | None = None) -> UUID:
        """Store a share and return its id; an equal one takes the new expiry and label.

        Raises:
            InvalidInput: If it ends before it begins.
            Conflict: If the other workspace has the most active shares that it may have.
        """

        async def write(connection: Connection) -> Json:
            # Here, where an order that was accepted and comes again does not pass.
            refuse_past(share)
            cursor = await connection.execute(
                QUERIES["put_share"], {**asdict(share), "tenant": tenant, "tags": list(share.tags)}
            )
            row = await cursor.fetchone()
            assert row is not None  # noqa: S101 - the upsert returns its row
            await _refuse_too_many(connection, tenant, share)
            await refuse_renamed(connection, tenant, share.workspace, share.namespace)
            await bump_workspace_epochs(connection, tenant, share.to_workspace)
            # To those who see more now; the other workspace made it.
            await record_event(connection, Event(EventKind.SHARE_CREATED, tenant, share.to_workspace, ids=(row["id"],)))
            return {"id": str(row["id"])}

        return UUID((await answer_once(self._pool, once, write))["id"])

    async def get(self, tenant: str, id_: UUID) -> Share:
        """Return the share.

        Raises:
            NotFound: If the tenant has no such share.
        """
        row = await self._row(QUERIES["get_share"], tenant=tenant, id=id_)
        if row is None:
            raise NotFound("share", str(id_))
        return stored_share(row)

    async def revoke(self, tenant: str, id_: UUID, now: datetime) -> None:
        """Revoke a share, for every search that begins from now on.

        Raises:
            NotFound: If the tenant has no such share.
        """

        async def act(connection: Connection) -> None:
            cursor = await connection.execute(QUERIES["revoke_share"], {"tenant": tenant, "id": id_, "now": now})
            row = await cursor.fetchone()
            if row is None:
                raise NotFound("share", str(id_))
            await bump_workspace_epochs(connection, tenant, row["to_workspace"])
            await record_event(connection, Event(EventKind.SHARE_REVOKED, tenant, row["to_workspace"], ids=(id_,)))

        await in_transaction(self._pool, act)


async def _refuse_too_many(connection: Connection, tenant: str, share: Share) -> None:
    parameters = {"tenant": tenant, "workspace": share.to_workspace, "now": share.created_at}
    cursor = await connection.execute(QUERIES["find_shares_into"], parameters)
    if len(await cursor.fetchall()) > MAX_SHARES_INTO:
        raise Conflict(
            f"workspace {share.to_workspace} sees {MAX_SHARES_INTO} shares, the most it may; revoke one of them first"
        )


def stored_share(row: Mapping[str, Any]) -> Share:
    """Map a row to a share."""
    fields: dict[str, Any] = dict(row)
    workspace, namespace = fields.pop("from_workspace"), fields.pop("from_namespace")
    segment, tags = Segment(fields.pop("segment")), tuple(fields.pop("tags"))
    return Share(**fields, workspace=workspace, namespace=namespace, segment=segment, tags=tags)
