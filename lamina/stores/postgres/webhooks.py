"""Webhooks as rows: their places in the order of events, their claims and their dead letters."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Jsonb

from lamina.core.paging import Page
from lamina.core.webhooks import DeadLetter, Webhook
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

logger = logging.getLogger(__name__)
QUERIES = load_queries("webhooks.sql")

CLAIM_S = 120.0
"""Seconds after which the webhook of a process that died is taken by another one."""


class WebhookTable(PostgresStore):
    """The webhooks of all tenants."""

    async def add(self, webhook: Webhook, *, most: int) -> None:
        """Store a webhook; it gets the events that are committed from now on.

        Raises:
            Conflict: If the tenant has the most that it may.
        """
        row = {
            "id": webhook.id,
            "tenant": webhook.tenant,
            "workspace": webhook.workspace,
            "url": webhook.url,
            "kinds": sorted(webhook.kinds),
            "secrets": Jsonb([{"secret": secret, "until": None} for secret in webhook.secrets]),
            "most": most,
        }
        if not await self._rows(QUERIES["insert_webhook"], **row):
            raise Conflict(f"the tenant has {most} webhooks, the most it may; delete one first")

    async def page(self, tenant: str, page: Page, workspace: str | None = None) -> list[Webhook]:
        """Return the webhooks of a tenant, or of one of its workspaces, the oldest first."""
        rows = await self._rows(
            QUERIES["list_webhooks"], tenant=tenant, workspace=workspace, id=None, **page.parameters("time", "id")
        )
        return [_webhook(row) for row in rows]

    async def get(self, tenant: str, id_: UUID) -> Webhook:
        """Return a webhook.

        Raises:
            NotFound: If the tenant has none of this id.
        """
        rows = await self._rows(
            QUERIES["list_webhooks"], tenant=tenant, workspace=None, id=id_, **Page(1).parameters("time", "id")
        )
        if not rows:
            raise NotFound("webhook", str(id_))
        return _webhook(rows[0])

    async def delete(self, tenant: str, id_: UUID) -> None:
        """Delete a webhook with its dead letters.

        Raises:
            NotFound: If the tenant has none of this id.
        """
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["delete_webhook"], {"tenant": tenant, "id": id_})
            if cursor.rowcount == 0:
                raise NotFound("webhook", str(id_))

    async def rotate(self, tenant: str, id_: UUID, secret: str, *, now: datetime, until: datetime) -> None:
        """Give a webhook a new secret; those of before sign beside it until their end.

        Raises:
            NotFound: If the tenant has none of this id.
        """
        if not await self._rows(
            QUERIES["rotate_webhook"], tenant=tenant, id=id_, secret=secret, now=now, until=until.isoformat()
        ):
            raise NotFound("webhook", str(id_))

    async def dead_letters(self, tenant: str, id_: UUID, page: Page) -> list[DeadLetter]:
        """Return dead letters of a webhook in the order of their events."""
        rows = await self._rows(QUERIES["list_dead_letters"], tenant=tenant, id=id_, **page.parameters("position"))
        return [
            DeadLetter(row["event_id"], row["seq"], row["attempts"], row["error"], row["died_at"], row["is_due"])
            for row in rows
        ]

    async def revive(self, tenant: str, id_: UUID, events: Sequence[UUID] | None) -> int:
        """Have dead letters sent again, those of some events or all; return how many."""
        wanted = None if events is None else list(events)
        return int(
            (await self._rows(QUERIES["revive_dead_letters"], tenant=tenant, id=id_, events=wanted))[0]["letters"]
        )

    async def claim(self, claim: UUID, settled: int, *, limit: int, of_tenant: int) -> list[Webhook]:
        """Take webhooks that have something to send; no other process sends for them meanwhile.

        One whose row cannot be read is logged, and tried again when the claim has ended.
        """
        rows = await self._rows(
            QUERIES["claim_webhooks"], claim=claim, settled=settled, limit=limit, of_tenant=of_tenant, claim_s=CLAIM_S
        )
        found = []
        for row in rows:
            try:
                found.append(_webhook(row))
            except Exception:
                logger.exception("webhooks: the row of %s cannot be read", row["id"])
        return found

    async def advance(self, id_: UUID, claim: UUID, position: int, delivered: int) -> bool:
        """Move a webhook on behind the events that were sent; report whether the claim holds still."""
        return bool(
            await self._rows(
                QUERIES["advance_webhook"], id=id_, claim=claim, position=position, delivered=delivered, claim_s=CLAIM_S
            )
        )

    async def postpone(self, id_: UUID, claim: UUID, error: str, pause: timedelta, *, is_letter: bool = False) -> None:
        """Count a failed attempt, unless it was a letter's, and release the webhook until the pause is over."""
        parameters = {"id": id_, "claim": claim, "error": error, "pause": pause, "is_letter": is_letter}
        await self._run(QUERIES["postpone_webhook"], **parameters)

    async def give_up(
        self, id_: UUID, claim: UUID, event: tuple[int, UUID], error: str, attempts: int, pause: timedelta
    ) -> None:
        """Make an event, by its position and id, a dead letter, and release the webhook until the pause is over."""
        seq, event_id = event
        await self._run(
            QUERIES["give_up_event"],
            attempts=attempts,
            id=id_,
            claim=claim,
            seq=seq,
            event_id=event_id,
            error=error,
            pause=pause,
        )

    async def release(self, id_: UUID, claim: UUID) -> None:
        """Release a webhook."""
        await self._run(QUERIES["release_webhook"], id=id_, claim=claim)

    async def due_letters(self, id_: UUID, limit: int) -> list[int]:
        """Return the positions of dead letters that are to be sent again."""
        return [row["seq"] for row in await self._rows(QUERIES["read_due_letters"], id=id_, limit=limit)]

    async def end_letter(self, id_: UUID, position: int) -> None:
        """Remove a dead letter that was delivered, or whose event is gone."""
        await self._run(QUERIES["end_letter"], id=id_, seq=position)

    async def keep_letter(self, id_: UUID, position: int, error: str, *, most: int) -> int | None:
        """Keep a dead letter that failed again; return its failed attempts if it is still due, being below the most."""
        rows = await self._rows(QUERIES["keep_letter"], id=id_, seq=position, error=error, most=most)
        return int(rows[0]["attempts"]) if rows and rows[0]["is_due"] else None


def _webhook(row: DictRow) -> Webhook:
    names = ("id", "tenant", "url", "workspace", "created_at", "position", "attempts", "next_at")
    counted = ("delivered", "delivered_at", "dead_letters", "last_error", "failed_at")
    now = datetime.now(UTC)
    ends = [(item["secret"], item["until"]) for item in row["secrets"]]
    valid = tuple(secret for secret, until in ends if until is None or datetime.fromisoformat(until) > now)
    kinds = frozenset(row["kinds"])
    return Webhook(kinds=kinds, secrets=valid, **{name: row[name] for name in (*names, *counted)})
