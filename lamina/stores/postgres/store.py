"""The base of stores whose statements each take a connection of their own."""

from typing import Any

from psycopg.rows import DictRow

from lamina.stores.postgres.connection import Pool, connect


class PostgresStore:
    """Rows of Postgres, over a pool.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: bytes, /, **parameters: Any) -> list[DictRow]:
        """Run a statement and return its rows; nothing repeats it if the connection breaks.

        Raises:
            Unavailable: If no connection is free in time, or the server does not answer.
        """
        async with connect(self._pool) as connection:
            return await (await connection.execute(statement, parameters)).fetchall()

    async def _row(self, statement: bytes, /, **parameters: Any) -> DictRow | None:
        """Run a statement as :meth:`_rows` does, and return its first row."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(statement, parameters)
            return await cursor.fetchone()

    async def _run(self, statement: bytes, /, **parameters: Any) -> int:
        """Run a statement as :meth:`_rows` does, and return how many rows it found or changed."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(statement, parameters)
            return cursor.rowcount
