"""The work of agents: their turns' tools, tokens, cost and outcomes."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.agent_turns import AgentWork, StoredTurn, TurnOutcome, Usage
from lamina.core.memories import new_id
from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.messages import AppendedMessage
from lamina.stores.postgres.provider_metrics import InferenceCall, insert_calls
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("agent_turns.sql")
MAX_SUMS = 1000


@dataclass(frozen=True, slots=True)
class UsageSum:
    """The work of one agent with one model over a period.

    Args:
        turns: How many turns it is.
        mean_latency_ms: Of the turns that tell theirs; ``None`` if none does.
        successes: Turns with an outcome that is a success.
        failures: Turns with an outcome that is none.
    """

    agent: str | None
    provider: str | None
    model: str | None
    turns: int
    tool_calls: int
    failed_calls: int
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    cost: float
    mean_latency_ms: float | None
    successes: int
    failures: int


async def insert_turn(
    connection: Connection,
    scope: Scope,
    work: AgentWork,
    appended: Sequence[AppendedMessage],
    now: datetime,
    *,
    witness: str | None,
) -> UUID | None:
    """Insert the work of a turn, once, and its cache figures; return its id, or ``None`` if there is nothing new.

    Args:
        connection: In the transaction that appended the turn's messages, and holds the session's row.
        scope: Of the session.
        work: Clean.
        appended: All messages of the turn, those of its tool calls among them.
        now: When the turn arrived, in UTC.
        witness: Who vouches for it.
    """
    if work.is_empty():
        return None
    places = [item.position for item in appended]
    usage = work.usage
    row = {
        **scope_parameters(scope),
        "id": (turn_id := new_id()),
        "witness": witness,
        "last_position": max(places, default=None),
        "digest": _digest(work, places),
        "tools": [call.name for call in work.tool_calls],
        "failed_calls": sum(not call.succeeded for call in work.tool_calls),
        **(dict.fromkeys(Usage.__slots__) if usage is None else asdict(usage)),
        **(dict.fromkeys(TurnOutcome.__slots__) if work.outcome is None else asdict(work.outcome)),
        "now": now,
    }
    if not (await connection.execute(QUERIES["insert_agent_turn"], row)).rowcount:
        return None
    if usage is not None and usage.provider is not None and usage.model is not None and usage.input_tokens:
        call = InferenceCall(
            usage.provider, usage.model, usage.input_tokens, usage.cached_tokens, scope.workspace, scope.agent
        )
        await insert_calls(connection, scope.tenant, [call], now)
    return turn_id


def _digest(work: AgentWork, places: Sequence[int]) -> bytes:
    told = {
        "places": sorted(places),
        "usage": None if work.usage is None else asdict(work.usage),
        "outcome": None if work.outcome is None else asdict(work.outcome),
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).digest()


class AgentTurns(PostgresStore):
    """Reads the work of agents."""

    async def page(self, scope: Scope, page: Page) -> list[StoredTurn]:
        """Return the turns of a scope, the latest first."""
        parameters = scope_parameters(scope) | page.parameters("time", "id")
        return [_stored(row) for row in await self._rows(QUERIES["list_agent_turns"], **parameters)]

    async def evidence(self, tenant: str, procedure: UUID, page: Page) -> list[StoredTurn]:
        """Return the turns with the outcomes of the runs that taught a procedure, the latest first."""
        return [
            _stored(row)
            for row in await self._rows(
                QUERIES["list_evidence"], tenant=tenant, procedure_id=procedure, **page.parameters("time", "id")
            )
        ]

    async def usage(self, tenant: str, since: datetime, workspace: str | None = None) -> list[UsageSum]:
        """Return tokens, cost and outcomes since a moment by agent and model, in one workspace or all."""
        rows = await self._rows(
            QUERIES["sum_agent_turns"], tenant=tenant, workspace=workspace, since=since, limit=MAX_SUMS
        )
        return [UsageSum(agent=row.pop("agent_id"), **row) for row in rows]


def _stored(row: DictRow) -> StoredTurn:
    usage = None if row["input_tokens"] is None else Usage(**{name: row[name] for name in Usage.__slots__})
    outcome = None if row["succeeded"] is None else TurnOutcome(row["succeeded"], row["score"], row["comment"])
    return StoredTurn(
        id=row["id"],
        session=row["session_id"],
        user=row["user_id"],
        agent=row["agent_id"],
        last_position=row["last_position"],
        tools=tuple(row["tools"]),
        failed_calls=row["failed_calls"],
        usage=usage,
        outcome=outcome,
        recorded_at=row["recorded_at"],
    )
