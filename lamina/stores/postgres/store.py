"""Statements that each take a connection of their own, and the base of stores that run them."""

from collections.abc import Mapping
from typing import Any

from psycopg.rows import DictRow

from lamina.stores.postgres.connection import Pool, connect


async def fetch_rows(pool: Pool, statement: bytes, parameters: Mapping[str, Any] | None = None) -> list[DictRow]:
    """Run a statement and return its rows; nothing repeats it if the connection breaks.

    Raises:
        Unavailable: If no connection is free in time, or the server does not answer.
    """
    async with connect(pool) as connection:
        return await (await connection.execute(statement, parameters)).fetchall()


async def fetch_row(pool: Pool, statement: bytes, parameters: Mapping[str, Any] | None = None) -> DictRow | None:
    """Run a statement as :func:`fetch_rows` does, and return its first row."""
    async with connect(pool) as connection:
        return await (await connection.execute(statement, parameters)).fetchone()


async def run_statement(pool: Pool, statement: bytes, parameters: Mapping[str, Any] | None = None) -> int:
    """Run a statement as :func:`fetch_rows` does, and return how many rows it found or changed."""
    async with connect(pool) as connection:
        return (await connection.execute(statement, parameters)).rowcount


class PostgresStore:
    """Rows of Postgres, over a pool.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def _rows(self, statement: bytes, /, **parameters: Any) -> list[DictRow]:
        """Run a statement as :func:`fetch_rows` does."""
        return await fetch_rows(self._pool, statement, parameters)

    async def _row(self, statement: bytes, /, **parameters: Any) -> DictRow | None:
        """Run a statement as :func:`fetch_row` does."""
        return await fetch_row(self._pool, statement, parameters)

    async def _run(self, statement: bytes, /, **parameters: Any) -> int:
        """Run a statement as :func:`run_statement` does."""
        return await run_statement(self._pool, statement, parameters)
