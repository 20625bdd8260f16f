"""The epoch of a scope: how often it was written."""

from lamina.scope import Scope
from lamina.stores.postgres.connection import Connection, scope_parameters, statement


async def bump_epoch(connection: Connection, scope: Scope) -> int:
    """Raise the epoch of the scope's namespace; call it last, its row is locked until the commit."""
    cursor = await connection.execute(statement("bump_epoch"), scope_parameters(scope))
    row = await cursor.fetchone()
    return int(row["epoch"]) if row else 0
