"""Use of the service by tenant and day."""

from collections.abc import Mapping
from datetime import date

from lamina.core.usage import Use, UsedDay
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("usage.sql")


class UsageTable:
    """Adds to the use of tenants, and reads it.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def add(self, amounts: Mapping[tuple[str, date], Mapping[Use, int]]) -> None:
        """Add amounts by tenant and day.

        Raises:
            Unavailable: If Postgres does not answer; nothing is added.
        """
        keys = sorted(amounts)
        columns = {use.value: [amounts[key].get(use, 0) for key in keys] for use in Use}
        named = {"tenant": [tenant for tenant, _ in keys], "day": [day for _, day in keys]}
        async with connect(self._pool) as connection:
            await connection.execute(QUERIES["add_usage"], {**columns, **named})

    async def days(self, tenant: str, since: date, until: date) -> list[UsedDay]:
        """Return the days of a tenant on which something was used, from one on and before another."""
        async with connect(self._pool) as connection:
            parameters = {"tenant": tenant, "since": since, "until": until}
            cursor = await connection.execute(QUERIES["read_usage_days"], parameters)
            return [UsedDay(row["day"], {use: row[use.value] for use in Use}) async for row in cursor]
