"""Votes on memories and their counts, and pinned memories."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from lamina.core.feedback import Feedback, Vote
from lamina.core.queries import Candidate
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("feedback.sql")


async def hold_memory(connection: Connection, tenant: str, id_: UUID) -> Scope:
    """Lock a memory of any tier until the transaction ends, and return where it is.

    Raises:
        NotFound: If the tenant has no such memory any more.
    """
    row = await (await connection.execute(QUERIES["hold_memory"], {"tenant": tenant, "id": id_})).fetchone()
    if row is None:
        raise NotFound("memory", str(id_))
    return Scope(tenant, row["workspace"], row["namespace"])


async def pinned(connection: Connection, tenant: str | None, ids: Sequence[UUID]) -> set[UUID]:
    """Return those of the memories that are pinned."""
    cursor = await connection.execute(QUERIES["find_pinned"], {"tenant": tenant, "ids": list(ids)})
    return {row["memory_id"] async for row in cursor}


async def put_vote(
    connection: Connection, place: Scope, id_: UUID, voter: str, vote: Vote | None, now: datetime
) -> None:
    """Set the vote of a principal on a memory of a place, or take it back, and count the votes on it."""
    row = {**_row(place, id_), "voter": voter}
    await connection.execute(QUERIES["hold_feedback"], row)
    if vote is None:
        await connection.execute(QUERIES["take_vote_back"], row)
    else:
        await connection.execute(QUERIES["put_vote"], {**row, "is_useful": vote is Vote.USEFUL, "now": now})
    await connection.execute(QUERIES["count_votes"], row)


async def set_pin(connection: Connection, place: Scope, id_: UUID, pinned_at: datetime | None) -> None:
    """Pin a memory of a place, or no longer; what a pinned note had lost by decay comes back."""
    row = _row(place, id_)
    await connection.execute(QUERIES["hold_feedback"], row)
    await connection.execute(QUERIES["set_pin"], {**row, "pinned_at": pinned_at})
    if pinned_at is not None:
        await connection.execute(QUERIES["restore_weight"], row)


async def move_feedback(connection: Connection, ids: Sequence[UUID], target: Scope) -> None:
    """Let the feedback on locked memories follow them to another namespace."""
    await connection.execute(QUERIES["move_feedback"], scope_parameters(target) | {"ids": list(ids)})


async def erase_feedback(connection: Connection, tenant: str, ids: Sequence[UUID]) -> None:
    """Delete the feedback on erased memories."""
    await connection.execute(QUERIES["erase_feedback"], {"tenant": tenant, "ids": list(ids)})


class FeedbackTable(PostgresStore):
    """Reads feedback."""

    async def get(self, tenant: str, id_: UUID, voter: str) -> Feedback:
        """Return the feedback on a memory, with a principal's own vote."""
        row = await self._row(QUERIES["read_feedback"], tenant=tenant, id=id_, voter=voter)
        assert row is not None  # noqa: S101 - the statement always returns one
        own = None if row["own"] is None else Vote.USEFUL if row["own"] else Vote.WRONG
        return Feedback(row["useful"], row["wrong"], own, row["pinned_at"])

    async def pinned_notes(self, scope: Scope, limit: int, as_of: datetime | None = None) -> tuple[Candidate, ...]:
        """Return the pinned notes that a scope sees, the one that was pinned first before the others.

        With ``as_of`` those that tell of a later time are left out.
        """
        wanted = {**scope_parameters(scope), "limit": limit, "as_of": as_of}
        rows = await self._rows(QUERIES["list_pinned_notes"], **wanted)
        return tuple(Candidate(row["id"], Tier.NOTES, row["event_at"]) for row in rows)


def _row(place: Scope, id_: UUID) -> dict[str, Any]:
    return {"tenant": place.tenant, "workspace": place.workspace, "namespace": place.namespace, "id": id_}
