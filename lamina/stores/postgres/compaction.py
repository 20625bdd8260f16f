"""The compaction of sessions: their live messages, and the summaries that replace older ones."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow
from psycopg.types.json import Json

from lamina.core.areas import Area
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, Pool, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row, fetch_rows

QUERIES = load_queries("compaction.sql")


@dataclass(frozen=True, slots=True)
class SessionSummary:
    """A message that replaces older ones of its session.

    Args:
        position: That of the last message that it replaces.
        importance: The greatest of theirs.
    """

    id: UUID
    session: str
    user: str | None
    agent: str | None
    swarm: str | None
    position: int
    content: str
    content_hash: bytes
    metadata: Mapping[str, Any]
    occurred_at: datetime
    importance: float


async def find_large_sessions(pool: Pool, area: Area, *, least_tokens: int, after: str | None, limit: int) -> list[str]:
    """Return sessions whose live messages may have this many tokens, in order: a token takes a byte at least."""
    parameters = area.ids() | {"after": after, "least_tokens": least_tokens, "limit": limit}
    return [row["session_id"] for row in await fetch_rows(pool, QUERIES["find_large_sessions"], parameters)]


async def read_live_messages(pool: Pool, scope: Scope) -> list[DictRow]:
    """Return the messages and summaries that no summary has replaced, of all users, in the order of the session."""
    return await fetch_rows(pool, QUERIES["read_live_messages"], scope_parameters(scope))


async def has_session(pool: Pool, scope: Scope) -> bool:
    """Report whether the scope's session exists."""
    row = await fetch_row(pool, QUERIES["has_session"], scope_parameters(scope))
    return row is not None and bool(row["is_known"])


async def lock_live_messages(connection: Connection, area: Area, hashes: Mapping[UUID, bytes]) -> set[UUID]:
    """Lock those of these messages that are live and have the text of this hash; return them."""
    parameters = {**area.ids(), "ids": list(hashes), "hashes": list(hashes.values())}
    cursor = await connection.execute(QUERIES["lock_live_messages"], parameters)
    return {row["id"] async for row in cursor}


async def insert_summaries(
    connection: Connection,
    area: Area,
    summaries: Sequence[SessionSummary],
    *,
    name: str,
    moment: datetime,
    run: UUID | None,
    relation: str,
) -> None:
    """Insert summaries, and list them for the undo of the run.

    Args:
        connection: In a transaction.
        area: A namespace.
        summaries: What to insert.
        name: Of their author.
        moment: The time of writing.
        run: The run that may be undone; nothing is listed without one.
        relation: Under which they are listed.
    """
    parameters = {
        **area.ids(),
        "name": name,
        "moment": moment,
        "run_id": run,
        "relation": relation,
        "ids": [one.id for one in summaries],
        "sessions": [one.session for one in summaries],
        "users": [one.user for one in summaries],
        "agents": [one.agent for one in summaries],
        "swarms": [one.swarm for one in summaries],
        "positions": [one.position for one in summaries],
        "contents": [one.content for one in summaries],
        "hashes": [one.content_hash for one in summaries],
        "metadata": [Json(one.metadata) for one in summaries],
        "times": [one.occurred_at for one in summaries],
        "importances": [one.importance for one in summaries],
    }
    await connection.execute(QUERIES["insert_summaries"], parameters)


async def delete_summaries(connection: Connection, ids: Sequence[UUID]) -> list[DictRow]:
    """Delete summaries that stand for nothing any more; return ``id``, ``tenant``, ``workspace`` and ``namespace``."""
    return await (await connection.execute(QUERIES["delete_summaries"], {"ids": list(ids)})).fetchall()
