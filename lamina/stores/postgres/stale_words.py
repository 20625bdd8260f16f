"""Texts and names whose words an earlier release indexed otherwise."""

import asyncio
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow

from lamina.core.documents import passage_text
from lamina.core.memories import Entity
from lamina.policies.ranking.procedure_matching import index_key
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.stores.postgres.epochs import unsettle
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.text.words import index_words, name_key

QUERIES = load_queries("stale_words.sql")
PAGE = 100
# By relation: the statement that reads and locks the texts, and the one that writes their words.
_STATEMENTS = {
    "notes": (QUERIES["lock_stale_notes"], QUERIES["write_notes_words"]),
    "passages": (QUERIES["lock_stale_passages"], QUERIES["write_passages_words"]),
    "procedures": (QUERIES["lock_stale_procedures"], QUERIES["write_procedures_words"]),
}


def rekey_entities(connection: psycopg.Connection[Any]) -> None:
    """Give entities whose names an earlier release keyed otherwise their present keys; what is left off is repeated."""
    while _rekey_page(connection):
        pass


def _rekey_page(connection: psycopg.Connection[Any]) -> int:
    with connection.transaction():
        rows = connection.execute(QUERIES["read_stale_names"], {"limit": PAGE}).fetchall()
        for row in rows:
            if row["name"] is not None:
                entity = Entity(row["name"], aliases=tuple(row["aliases"]))
                connection.execute(QUERIES["rekey_entity"], {"id": row["id"], "key": entity.key})
                connection.execute(QUERIES["add_entity_names"], {"id": row["id"], "keys": list(entity.all_keys())})
        done = {"relation": "entities", "ids": [row["id"] for row in rows]}
        connection.execute(QUERIES["finish_stale_words"], done)
    return len(rows)


class StaleWords(PostgresStore):
    """Rebuilds outdated full-text vectors in Postgres."""

    async def renew(self) -> int:
        """Index the next texts anew, at most 100; return how many, 0 when none is left."""
        rows = await self._rows(QUERIES["find_stale_words"], limit=PAGE)
        for relation in sorted({row["relation"] for row in rows}):
            await self._renew(relation, [row["id"] for row in rows if row["relation"] == relation])
        return len(rows)

    async def _renew(self, relation: str, ids: Sequence[UUID]) -> None:
        read, write = _STATEMENTS[relation]

        async def act(connection: Connection) -> None:
            cursor = await connection.execute(read, {"ids": list(ids)})
            rows = await cursor.fetchall()
            parameters = await asyncio.to_thread(_word_columns, rows)
            await connection.execute(write, parameters)
            await connection.execute(QUERIES["finish_stale_words"], {"relation": relation, "ids": list(ids)})
            for tenant in sorted({row["tenant"] for row in rows}):
                await unsettle(connection, tenant)

        await in_transaction(self._pool, act)


def _word_columns(rows: Sequence[DictRow]) -> dict[str, Any]:
    texts = [_indexed_text(row) for row in rows]
    columns = {f"{name}s": [row[name] for row in rows] for name in ("id", "generation", "chunk")}
    return {
        **columns,
        "words": [" ".join(index_words(text)) for text in texts],
        "keys": [index_key(name_key(text)) for text in texts],
    }


def _indexed_text(row: DictRow) -> str:
    """Return the text of a chunk; that of a passage begins with the title and its heading."""
    whole = row["text"] if "text" in row else passage_text(row["title"], row["heading"], row["content"])
    return str(whole[row["text_start"] : row["text_end"]])
