"""The first words of names: what a text is asked for before its runs of words are."""

from collections.abc import Collection

from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, scope_parameters, statement


async def find_openings(connection: Connection, scope: Scope, words: Collection[str]) -> set[str]:
    """Return those of the words that a known name begins with."""
    if not words:
        return set()
    wanted = {**scope_parameters(scope), "words": list(words)}
    cursor = await connection.execute(statement("find_openings"), wanted)
    return {row["word"] async for row in cursor}
