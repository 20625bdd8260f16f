"""The sessions of responses and conversations whose history lies at a model's endpoint."""

from collections.abc import Sequence
from datetime import datetime, timedelta

from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Pool, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore, run_statement

QUERIES = load_queries("response_chains.sql")
KEPT = timedelta(days=30)
"""As long as OpenAI keeps a response that may be continued."""
MOST_CHAINS = 100_000
"""Of a tenant; the oldest ones go."""


class ResponseChains(PostgresStore):
    """Finds and keeps the session of a response or a conversation; of their ids, only a hash is stored."""

    async def find(self, scope: Scope, chain: str, now: datetime) -> str | None:
        """Return the session of a response or conversation in a workspace and namespace, if it is kept.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        parameters = scope_parameters(scope) | {"chain": chain, "cutoff": now - KEPT}
        row = await self._row(QUERIES["find_chain"], **parameters)
        return None if row is None else str(row["session_id"])

    async def put(self, scope: Scope, chains: Sequence[str], now: datetime, *, made: str | None = None) -> None:
        """Keep the session of a scope for these, if it has recorded a turn.

        Args:
            scope: With the session.
            chains: Responses and conversations; one that has a session stays in it.
            now: When they were used.
            made: The response among them that was made in this session, whatever session it has yet.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        # In one order, so that two requests of a conversation do not wait for each other.
        parameters = scope_parameters(scope) | {"chains": sorted(set(chains)), "made": made, "now": now}
        await self._run(QUERIES["put_chains"], **parameters)


async def end_chains(pool: Pool, tenant: str, now: datetime, *, most: int = MOST_CHAINS) -> int:
    """Delete a tenant's chains that are too old or too many; count them."""
    parameters = {"tenant": tenant, "cutoff": now - KEPT, "most": most}
    return await run_statement(pool, QUERIES["end_chains"], parameters)
