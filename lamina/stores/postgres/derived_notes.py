"""Notes that jobs make from other notes, and the notes that they are made from."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from uuid import UUID

from psycopg.rows import DictRow

from lamina.core.areas import Area
from lamina.stores.postgres.connection import Connection, Pool, connect
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows

QUERIES = load_queries("derived_notes.sql")


async def lock_sources(
    connection: Connection, tenant: str | None, hashes: Mapping[UUID, bytes], *, lasting: bool
) -> set[UUID]:
    """Lock those of these notes that have the text of this hash, against changes; return them.

    Args:
        connection: In a transaction.
        tenant: Whose.
        hashes: Of the texts, by id.
        lasting: Whether to leave out notes that expire.
    """
    parameters = {"tenant": tenant, "ids": list(hashes), "hashes": list(hashes.values()), "lasting": lasting}
    cursor = await connection.execute(QUERIES["lock_sources"], parameters)
    return {row["id"] async for row in cursor}


async def find_derived(pool: Pool, area: Area, ids: Sequence[UUID], former: Sequence[UUID] = ()) -> set[UUID]:
    """Return those of these notes that were made before, deleted ones too.

    Args:
        pool: Connections to Postgres.
        area: A namespace.
        ids: Ids that follow from its name.
        former: Ids that follow from a name that it had before, or that of a place whose notes moved here; where one of
            these stayed there, it was not made here.
    """
    parameters = {**area.ids(), "ids": list(ids), "former": list(former)}
    return {row["id"] for row in await fetch_rows(pool, QUERIES["find_derived"], parameters)}


async def read_sources(pool: Pool, area: Area, ids: Sequence[UUID]) -> list[DictRow]:
    """Return the present texts of notes, in the order of the ids; deleted ones are missing."""
    async with connect(pool) as connection:
        cursor = await connection.execute(QUERIES["read_sources"], {**area.ids(), "ids": list(ids)})
        rows = {row["id"]: row async for row in cursor}
    return [rows[id_] for id_ in ids if id_ in rows]


async def insert_sources(connection: Connection, note: UUID, sources: Sequence[UUID]) -> None:
    """Record the notes that a note was made from."""
    await connection.execute(QUERIES["insert_sources"], {"note_id": note, "source_ids": list(sources)})


async def read_dated_notes(
    pool: Pool, area: Area, *, since: str | None, before: datetime, limit: int
) -> tuple[list[DictRow], datetime | None]:
    """Return the notes of whole days that may be summarised, about ``limit``, and the next day, if there are more."""
    parameters = {**area.ids(), "since": since, "before": before, "limit": limit}
    async with connect(pool) as connection:
        end = await (await connection.execute(QUERIES["find_summary_slice"], parameters)).fetchone()
        if end is None or end["until"] is None:
            return [], None
        cursor = await connection.execute(QUERIES["read_dated_notes"], parameters | {"until": end["until"]})
        return await cursor.fetchall(), end["until"] if end["notes"] == limit else None


async def read_summaries(pool: Pool, area: Area, source: str) -> list[DictRow]:
    """Return the summaries that a job made in a namespace, with the period of each as its metadata names it."""
    return await fetch_rows(pool, QUERIES["read_summaries"], {**area.ids(), "source": source})


async def read_consolidated(pool: Pool, area: Area, source: str, moment: datetime) -> list[DictRow]:
    """Return the notes of a job that were not rewritten, with the ids and hashes of their sources."""
    parameters = {**area.ids(), "source": source, "moment": moment}
    return await fetch_rows(pool, QUERIES["read_consolidated"], parameters)


async def read_consolidable(
    pool: Pool, area: Area, source: str, *, moment: datetime, after: str | None, limit: int
) -> list[DictRow]:
    """Return a page of notes that were not consolidated yet, by id, each with its first vector."""
    parameters = {**area.ids(), "after": after, "moment": moment, "limit": limit, "source": source}
    return await fetch_rows(pool, QUERIES["read_consolidable"], parameters)


async def find_covered(connection: Connection, tenant: str | None, ids: Sequence[UUID]) -> list[DictRow]:
    """Return the notes that consolidated ones stand for, each text once: ``id`` and ``merged_into``."""
    cursor = await connection.execute(QUERIES["find_covered"], {"ids": list(ids), "tenant": tenant})
    return await cursor.fetchall()
