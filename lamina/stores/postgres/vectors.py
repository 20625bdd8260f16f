"""Vectors beside the active ones: rows that lack them, texts that their model refuses, and outdated vectors."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from pgvector import Vector
from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.core.memories import Chunk
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows, run_statement
from lamina.stores.postgres.tiers import EMBEDDED

QUERIES = load_queries("vectors.sql")
_AFTER = re.compile(rb"\(%\(after\)s::uuid IS NULL OR (\w+\.id) > %\(after\)s\)")


@dataclass(frozen=True, slots=True)
class EmbeddedRow:
    """A row with its new vectors.

    Args:
        guard: Hash of the embedded text. A row with another text keeps the vectors that it has.
        words: The words of each chunk, joined by spaces; messages have none.
    """

    id: UUID
    guard: bytes
    chunks: tuple[Chunk, ...]
    words: tuple[str, ...] = ()


async def read_unembedded(
    pool: Pool, kind: str, area: Area, generation: int | None, *, after: str | None, limit: int
) -> list[DictRow]:
    """Return rows of a kind that lack vectors of a generation, by id: their text's columns and its ``guard``."""
    parameters = {**area.ids(), "generation": generation, "after": after, "limit": limit}
    return await fetch_rows(pool, EMBEDDED[kind].unembedded, parameters)


async def read_unembedded_of(pool: Pool, kind: str, area: Area, generation: int, ids: Sequence[UUID]) -> list[DictRow]:
    """Return those of these rows of a kind that lack vectors of a generation, as :func:`read_unembedded` does."""
    async with connect(pool) as connection:
        return await _read_unembedded_of(connection, kind, area, generation, ids)


async def _read_unembedded_of(
    connection: Connection, kind: str, area: Area, generation: int, ids: Sequence[UUID]
) -> list[DictRow]:
    text = _AFTER.sub(rb"\1 = ANY(%(ids)s)", EMBEDDED[kind].unembedded)
    parameters = {**area.ids(), "generation": generation, "ids": list(ids), "limit": len(ids)}
    return await (await connection.execute(text, parameters)).fetchall()


async def write_vectors(
    connection: Connection, kind: str, area: Area, generation: int, rows: Sequence[EmbeddedRow]
) -> list[UUID]:
    """Write the vectors of rows whose text is still the one that was embedded; return these rows."""
    placed = [(row, place, chunk) for row in rows for place, chunk in enumerate(row.chunks)]
    parameters: dict[str, Any] = {
        **area.ids(),
        "generation": generation,
        "ids": [row.id for row, _, _ in placed],
        "guards": [row.guard for row, _, _ in placed],
        "chunks": [place for _, place, _ in placed],
        "starts": [chunk.start for _, _, chunk in placed],
        "ends": [chunk.end for _, _, chunk in placed],
        "words": [row.words[place] if row.words else "" for row, place, _ in placed],
        "embeddings": [Vector(chunk.vector()) for _, _, chunk in placed],
    }
    return [row["id"] async for row in await connection.execute(EMBEDDED[kind].embed, parameters)]


async def keep_stand_ins(
    connection: Connection, kind: str, area: Area, generation: int, rows: Sequence[EmbeddedRow]
) -> list[UUID]:
    """Write vectors in the place of those of texts that the model refuses; return the rows that had none.

    The rows count as embedded at a switch to the generation, and as rows without vectors for the next run.
    """
    ids = [row.id for row in rows]
    await connection.execute(QUERIES["keep_refusals"], {"generation": generation, "ids": ids})
    return await write_vectors(connection, kind, area, generation, rows)


async def drop_stand_ins(
    connection: Connection, kind: str, area: Area, generation: int, rows: Sequence[EmbeddedRow]
) -> None:
    """Delete the stand-ins of these rows, whose texts the model refused until now.

    A row whose text has changed since keeps the vectors that it has.
    """
    guards = {row.id: row.guard for row in rows}
    parameters: dict[str, Any] = {**area.ids(), "generation": generation, "ids": list(guards)}
    refused = [row["id"] async for row in await connection.execute(QUERIES["find_refusals"], parameters)]
    if not refused:
        return
    statements = EMBEDDED[kind]
    await connection.execute(_formatted(QUERIES["lock_refused"], rows=statements.table), parameters | {"ids": refused})
    present = await _read_unembedded_of(connection, kind, area, generation, refused)
    parameters["ids"] = [row["id"] for row in present if bytes(row["guard"]) == guards[row["id"]]]
    for table in statements.vectors:
        await connection.execute(_formatted(QUERIES["delete_stand_ins"], vectors=table.name, key=table.key), parameters)
    await connection.execute(QUERIES["forget_refusals"], parameters)


async def end_refusals(pool: Pool) -> None:
    """Forget the refused texts of rows that are gone."""
    gone = " AND ".join(f"NOT EXISTS (SELECT FROM {rows.table} r WHERE r.id = f.id)" for rows in EMBEDDED.values())
    await run_statement(pool, _formatted(QUERIES["end_refusals"], gone=gone))


def _formatted(template: bytes, **names: str) -> bytes:
    return template.decode().format(**names).encode()


async def find_outdated(
    pool: Pool, area: Area, generations: Sequence[int], *, after: str | None, limit: int
) -> list[UUID]:
    """Return ids of rows of any kind that have vectors of these generations, in order."""
    parameters = {**area.ids(), "generations": list(generations), "after": after, "limit": limit}
    async with connect(pool) as connection:
        found = await _for_each_table(connection, QUERIES["find_outdated_vectors"], parameters)
    return sorted(found)[:limit]


async def delete_outdated(connection: Connection, area: Area, ids: Sequence[UUID], generations: Sequence[int]) -> int:
    """Delete the vectors that rows of any kind have of these generations; return of how many rows."""
    parameters = {**area.ids(), "ids": list(ids), "generations": list(generations)}
    return len(await _for_each_table(connection, QUERIES["delete_outdated_vectors"], parameters))


async def drop_building(connection: Connection, area: Area, generation: int) -> int:
    """Delete all vectors of a generation that is being built in an area; return of how many rows."""
    parameters = {**area.ids(), "generation": generation}
    return len(await _for_each_table(connection, QUERIES["delete_building_vectors"], parameters))


async def _for_each_table(connection: Connection, template: bytes, parameters: Mapping[str, Any]) -> set[UUID]:
    """Run a statement for every table of vectors; return the ids of the rows that they belong to."""
    found: set[UUID] = set()
    for rows in EMBEDDED.values():
        for table in rows.vectors:
            names = {"rows": rows.table, "is_live": rows.is_live, "vectors": table.name, "key": table.key}
            statement = template.decode().format(**names).encode()
            found |= {row["id"] async for row in await connection.execute(statement, parameters)}
    return found
