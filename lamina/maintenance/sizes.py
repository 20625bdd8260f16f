"""Of how many rows the removals of a job are a share."""

from lamina.core.areas import Area
from lamina.stores.postgres.connection import Pool, connect, statement


async def live_notes(pool: Pool, area: Area) -> int:
    """Return how many notes a namespace has, deleted ones apart."""
    async with connect(pool) as connection:
        cursor = await connection.execute(statement("count_scope_notes"), area.ids())
        row = await cursor.fetchone()
    return int(row["size"]) if row else 0
