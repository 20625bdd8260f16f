"""Share of their input that providers of models answered from their prompt caches."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from lamina.core.memories import new_id
from lamina.core.scope import DEFAULT_WORKSPACE
from lamina.errors import InvalidInput
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.idempotency import Json, Once, answer_once
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.text.hygiene import clean_id

QUERIES = load_queries("provider_metrics.sql")

MAX_RATES = 1000
MAX_TOKENS = 1_000_000_000_000


@dataclass(frozen=True, slots=True)
class InferenceCall:
    """The token counts of one call of a model, as its provider reported them.

    Args:
        provider: Company or server that runs the model.
        model: Its name there.
        input_tokens: Tokens of the prompt, those from the cache among them.
        cached_tokens: How many of them came from the provider's cache.
        workspace: Project that the call was made for.
        agent: Agent that made it.
    """

    provider: str
    model: str
    input_tokens: int
    cached_tokens: int
    workspace: str = DEFAULT_WORKSPACE
    agent: str | None = None


@dataclass(frozen=True, slots=True)
class HitRates:
    """Cache hit rates of one model of a provider over a period.

    Args:
        calls: How many calls were made.
        input_tokens: Tokens of their prompts.
        cached_tokens: How many of them came from the cache.
        avg_hit_rate: Mean of the calls' shares of cached tokens, 0..1; ``None`` if no call had input.
        token_hit_rate: Share of cached tokens among all, 0..1.
    """

    provider: str
    model: str
    calls: int
    input_tokens: int
    cached_tokens: int
    avg_hit_rate: float | None
    token_hit_rate: float | None


def clean_call(call: InferenceCall, field_path: str) -> InferenceCall:
    """Return the call with clean ids.

    Raises:
        InvalidInput: Naming the field under ``field_path``.
    """
    if not 0 <= call.input_tokens <= MAX_TOKENS:
        raise InvalidInput(f"{field_path}.input_tokens", f"is {call.input_tokens}; expected 0 to {MAX_TOKENS}")
    if not 0 <= call.cached_tokens <= call.input_tokens:
        reason = f"is {call.cached_tokens}; expected 0 to {call.input_tokens}, the call's input_tokens"
        raise InvalidInput(f"{field_path}.cached_tokens", reason)
    return InferenceCall(
        provider=clean_id(call.provider, f"{field_path}.provider"),
        model=clean_id(call.model, f"{field_path}.model"),
        input_tokens=call.input_tokens,
        cached_tokens=call.cached_tokens,
        workspace=clean_id(call.workspace, f"{field_path}.workspace"),
        agent=None if call.agent is None else clean_id(call.agent, f"{field_path}.agent"),
    )


async def insert_calls(connection: Connection, tenant: str, calls: Sequence[InferenceCall], now: datetime) -> int:
    """Insert clean calls as made now; return how many."""
    parameters = _columns(calls) | {"tenant": tenant, "now": now}
    return (await connection.execute(QUERIES["insert_provider_metrics"], parameters)).rowcount


class ProviderMetrics(PostgresStore):
    """Records calls and reads their cache hit rates."""

    async def record(self, tenant: str, calls: Sequence[InferenceCall], now: datetime, once: Once | None = None) -> int:
        """Record calls as made now, in one statement; return how many.

        Raises:
            InvalidInput: For a call that is wrong, naming its field; none is recorded.
            Unavailable: If Postgres does not answer; none is recorded.
        """
        cleaned = [clean_call(call, f"calls.{place}") for place, call in enumerate(calls)]

        async def write(connection: Connection) -> Json:
            return {"recorded": await insert_calls(connection, tenant, cleaned, now)}

        return int((await answer_once(self._pool, once, write))["recorded"])

    async def rates(
        self, tenant: str, since: datetime, workspace: str | None = None, agent: str | None = None
    ) -> list[HitRates]:
        """Return the rates of each provider's models since a moment, the best first, in one workspace or all.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        place = {"tenant": tenant, "workspace": workspace, "agent_id": agent}
        parameters = place | {"since": since, "limit": MAX_RATES}
        return [HitRates(**row) for row in await self._rows(QUERIES["read_hit_rates"], **parameters)]

    async def purge_expired(self, now: datetime, ttl_days: float, tenant: str) -> int:
        """Delete a tenant's calls that are older than ``ttl_days``; return how many.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        return await self._run(QUERIES["purge_provider_metrics"], cutoff=now - timedelta(days=ttl_days), tenant=tenant)


def _columns(calls: Sequence[InferenceCall]) -> dict[str, Any]:
    return {
        "ids": [new_id() for _ in calls],
        "workspaces": [call.workspace for call in calls],
        "agents": [call.agent for call in calls],
        "providers": [call.provider for call in calls],
        "models": [call.model for call in calls],
        "input_tokens": [call.input_tokens for call in calls],
        "cached_tokens": [call.cached_tokens for call in calls],
    }
