"""The live messages of sessions, and the forecast of their compaction."""

import asyncio
from dataclasses import dataclass, replace
from datetime import datetime

from psycopg.rows import DictRow

from lamina.core.memories import Message, Role
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.policies.retention.session_budget import BudgetForecast, CompactionPolicy, forecast
from lamina.policies.retention.session_compaction import LiveMessage
from lamina.stores.postgres.compaction import has_session, read_live_messages
from lamina.stores.postgres.connection import Pool
from lamina.text.words import estimated_tokens


@dataclass(frozen=True, slots=True)
class SessionForecast:
    """How full a session is.

    Args:
        was_compacted: Whether it has summaries.
    """

    forecast: BudgetForecast
    was_compacted: bool


@dataclass(frozen=True, slots=True)
class Sessions:
    """Reads the live messages of sessions.

    Args:
        pool: Connections to Postgres.
        policy: When compaction is near and due.
    """

    pool: Pool
    policy: CompactionPolicy

    async def live(self, scope: Scope) -> list[LiveMessage]:
        """Return the live messages of the scope's session, of all users."""
        rows = await read_live_messages(self.pool, scope)
        # In a thread: the tokens of a long session take longer than the loop of a service may stand still.
        return await asyncio.to_thread(lambda: [_live(row) for row in rows])

    async def forecast(self, scope: Scope, now: datetime) -> SessionForecast:
        """Forecast the compaction of the scope's session; of the positions, a user gets those the user may read.

        Raises:
            NotFound: If there is no such session.
        """
        messages = await self.live(scope)
        if not messages and not await has_session(self.pool, scope):
            raise NotFound("session", str(scope.session))
        whole = forecast([item.measure() for item in messages], self.policy, now)
        readable = {item.position for item in messages if scope.user is None or item.user in {None, scope.user}}
        visible = replace(whole, compacts=tuple(place for place in whole.compacts if place in readable))
        return SessionForecast(visible, any(item.is_summary for item in messages))


def _live(row: DictRow) -> LiveMessage:
    message = Message(
        Role(row["role"]),
        row["content"],
        name=row["name"],
        metadata=row["metadata"] or {},
        importance=row["importance"],
    )
    return LiveMessage(
        id=row["id"],
        position=row["position"],
        message=message,
        user=row["user_id"],
        agent=row["agent_id"],
        swarm=row["swarm_id"],
        content_hash=bytes(row["content_hash"]),
        is_summary=row["is_summary"],
        occurred_at=row["occurred_at"],
        tokens=estimated_tokens(message.text()),
    )
