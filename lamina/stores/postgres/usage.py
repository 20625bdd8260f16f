"""Use of the service by tenant and day."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date

import psycopg

from lamina.core.usage import Use, UsedDay
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("usage.sql")


# Of SQLSTATEs: the connection or the server ended, perhaps behind the commit.
_ENDED = frozenset({"08", "57"})


@dataclass(slots=True)
class Sending:
    """The state of an addition, whose failure does not tell whether it took place.

    Args:
        may_be_added: Whether it was sent and not refused.
    """

    may_be_added: bool = False


class UsageTable(PostgresStore):
    """Adds to the use of tenants, and reads it."""

    async def add(self, amounts: Mapping[tuple[str, date], Mapping[Use, int]], sending: Sending) -> None:
        """Add amounts by tenant and day, and note in ``sending`` how far that came.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        keys = sorted(amounts)
        columns = {use.value: [amounts[key].get(use, 0) for key in keys] for use in Use}
        named = {"tenant": [tenant for tenant, _ in keys], "day": [day for _, day in keys]}
        async with connect(self._pool) as connection:
            sending.may_be_added = True
            try:
                await connection.execute(QUERIES["add_usage"], {**columns, **named})
            except psycopg.Error as error:
                sending.may_be_added = error.sqlstate is None or error.sqlstate[:2] in _ENDED
                raise

    async def days(self, tenant: str, since: date, until: date) -> list[UsedDay]:
        """Return the days of a tenant on which something was used, from one on and before another."""
        return [
            UsedDay(row["day"], {use: row[use.value] for use in Use})
            for row in await self._rows(QUERIES["read_usage_days"], tenant=tenant, since=since, until=until)
        ]
