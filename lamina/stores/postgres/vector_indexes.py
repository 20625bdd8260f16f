"""Columns and indexes of vectors of any dimension.

The migrations bind each column of vectors to 384 dimensions, with an index over the whole of it. Another index in its
place would take a large installation minutes, so it keeps these until a model of another dimension begins. Then the
columns take vectors of any length, and each generation has indexes of its own, over its rows cast to its dimension.
"""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import psycopg
from cachetools import LRUCache
from psycopg.rows import DictRow

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured, describe_error
from lamina.stores.postgres.connection import Connection, alter_table, connect_directly
from lamina.stores.postgres.queries import load_queries

logger = logging.getLogger(__name__)
QUERIES = load_queries("vector_indexes.sql")

# pgvector's HNSW takes no longer ones: of 32 bits a number, and of 16.
MOST_FULL, MOST_HALF = 2_000, 4_000
LOCK_KEY = 0x6C616D76  # "lamv"
LISTS = "_lists"
"""Ends the name of an index by IVFFlat, which stands in the place of the one by HNSW."""
ROWS_PER_LIST = 1_000
MOST_COUNTED = 10_000_000
LOOK_S = 0.5
_MARK = b"/*typed*/"
_DIMENSIONS: LRUCache[tuple[str, int], int] = LRUCache(1_024)


@dataclass(frozen=True, slots=True)
class VectorIndex:
    """An HNSW index of a table's vectors; ``only`` is a further condition of its rows."""

    table: str
    m: int
    ef_construction: int
    only: str = ""


INDEXES = (
    VectorIndex("message_chunks", 8, 64),
    VectorIndex("note_chunks", 16, 64, " AND tsv IS NOT NULL"),
    VectorIndex("passage_chunks", 16, 64),
    VectorIndex("entities", 24, 128),
    VectorIndex("entity_embeddings", 24, 128),
    VectorIndex("procedures", 16, 64),
    VectorIndex("procedure_embeddings", 16, 64),
)
TABLES = (*(index.table for index in INDEXES), "compacted_chunks", "responses")


def vector_type(dimension: int) -> str:
    """Return the type by which vectors of a dimension are indexed: of half precision above 2 000."""
    return f"vector({dimension})" if dimension <= MOST_FULL else f"halfvec({dimension})"


def refuse_dimension(identity: ModelIdentity) -> None:
    """Refuse a model whose vectors no index takes.

    Raises:
        Misconfigured: If they are longer than 4 000 numbers.
    """
    if identity.dimension > MOST_HALF:
        raise Misconfigured(
            f"embedding.model {identity.model} makes vectors of {identity.dimension} dimensions, "
            f"the indexes of Postgres take {MOST_HALF} at the most",
            "choose a smaller model, or a smaller embedding.dimensions where the endpoint shortens its vectors",
        )


def typed(statement: bytes, generation: int, dimension: int | None) -> bytes:
    """Write a generation's number and type into a statement, so that the plan can use the generation's index.

    Where the column is bound to the dimension, the cast is none, and the index over all of the column serves it.

    Args:
        statement: Its distances carry the mark ``/*typed*/`` behind both sides.
        generation: The generation whose vectors are compared.
        dimension: Of its vectors; ``None`` where nothing is compared.
    """
    if dimension is None:
        return statement
    cast = f"::{vector_type(dimension)}".encode()
    return statement.replace(_MARK, cast).replace(b"%(generation)s", str(generation).encode())


async def typed_by_generation(connection: Connection, statement: bytes, generation: int) -> bytes:
    """Do the same, for a caller who knows the generation alone: its dimension, which never changes, is read once."""
    info = connection.info
    key = (f"{info.host}:{info.port}/{info.dbname}", generation)
    if key not in _DIMENSIONS:
        cursor = await connection.execute(QUERIES["read_dimension"], {"generation": generation})
        row = await cursor.fetchone()
        if row is None:
            return statement
        _DIMENSIONS[key] = row["dimension"]
    return typed(statement, generation, _DIMENSIONS[key])


@contextmanager
def vectors_locked(connection: psycopg.Connection[DictRow]) -> Iterator[None]:
    """Hold the right to change columns and indexes of vectors until the connection ends.

    It looks again and again: a statement that waited would hold a snapshot, for whose end a concurrent build waits.
    """
    while (
        not (row := connection.execute(QUERIES["lock_vectors"], {"key": LOCK_KEY}).fetchone()) or not row["is_locked"]
    ):
        time.sleep(LOOK_S)
    yield


def takes_dimension(connection: psycopg.Connection[DictRow], dimension: int) -> bool:
    """Report whether every column of vectors is bound to this dimension, and so has its index already."""
    bound = connection.execute(QUERIES["find_bound_columns"], {"tables": list(TABLES)}).fetchall()
    return len(bound) == len(TABLES) and all(row["dimension"] == dimension for row in bound)


def unbind_columns(connection: psycopg.Connection[DictRow]) -> None:
    """Let the columns take vectors of any dimension, and give each generation in use indexes of its own.

    Each table is locked for a moment, and its index built beside reads and writes; until that is built, a search
    compares all vectors of its scope. A run that was interrupted is continued by the next.

    Raises:
        Unavailable: If a table stays locked by others for two minutes.
    """
    bound = connection.execute(QUERIES["find_bound_columns"], {"tables": list(TABLES)}).fetchall()
    for row in bound:
        statement = QUERIES["unbind_column"].decode().format(table=row["name"])
        alter_table(connection, row["name"], statement.encode())
        index_vectors(connection, row["name"])
    index_vectors(connection)


def index_vectors(connection: psycopg.Connection[DictRow], table: str | None = None) -> None:
    """Build the indexes that generations in use lack, on one table or all, beside reads and writes."""
    generations = connection.execute(QUERIES["find_indexed_generations"]).fetchall()
    found = connection.execute(QUERIES["find_valid_indexes"], {"tables": list(TABLES)}).fetchall()
    valid = {row["name"] for row in found}
    for row in generations:
        for index in INDEXES:
            name = f"{index.table}_embedding_{row['generation']}"
            if table in (None, index.table) and not valid & {name, f"{name}{LISTS}"}:
                _create(connection, index, name, row["generation"], row["dimension"])


def _create(
    connection: psycopg.Connection[DictRow], index: VectorIndex, name: str, generation: int, dimension: int
) -> None:
    kind = vector_type(dimension)
    connection.execute(QUERIES["drop_index"].decode().format(name=name).encode())
    statement = (
        QUERIES["create_index"]
        .decode()
        .format(
            name=name,
            table=index.table,
            type=kind,
            operators="vector_cosine_ops" if kind.startswith("vector") else "halfvec_cosine_ops",
            m=index.m,
            ef_construction=index.ef_construction,
            generation=generation,
            only=index.only,
        )
    )
    connection.execute(statement.encode())


def choose_index_kinds(url: str, ivfflat_rows: int | None) -> None:
    """Index the vectors of each table by IVFFlat from so many rows on, else by HNSW, beside reads and writes.

    An index is dropped after the other kind has taken its place. One by IVFFlat stays until half of the rows are gone,
    so that a table about this size does not change with each start. Where indexes are built elsewhere, nothing is done;
    an index that cannot be built, because the disk is full or the server ends, is left to the next start.

    Args:
        url: The database; not that of a pooler in transaction mode.
        ivfflat_rows: The number; without it all are indexed by HNSW.
    """
    try:
        with connect_directly(url) as connection:
            # A build that outlives its replica would hold the lock for hours, which the next start waits for.
            with suppress(psycopg.DataError):  # Where the server's system tells nothing of lost clients.
                connection.execute(QUERIES["notice_a_lost_client"])
            _choose_all(connection, ivfflat_rows)
    except psycopg.Error as error:
        logger.warning("postgres: indexes of vectors stay as they are: %s", describe_error(error))


def _choose_all(connection: psycopg.Connection[DictRow], ivfflat_rows: int | None) -> None:
    lists = connection.execute(QUERIES["find_lists"], {"tables": list(TABLES)}).fetchone()
    if ivfflat_rows is None and lists is None:
        return
    # Not as long as it takes: a new model's indexes are built under this lock for hours.
    row = connection.execute(QUERIES["lock_vectors"], {"key": LOCK_KEY}).fetchone()
    if row is None or not row["is_locked"]:
        logger.warning("postgres: others build indexes of vectors; the next start chooses their kinds")
        return
    dimensions = connection.execute(QUERIES["find_bound_columns"], {"tables": list(TABLES)}).fetchall()
    bound = {row["name"] for row in dimensions}
    generations = connection.execute(QUERIES["find_indexed_generations"]).fetchall()
    for index in INDEXES:
        slots = [_Slot(index)] if index.table in bound else [_Slot(index, **row) for row in generations]
        for slot in slots:
            try:
                _choose(connection, slot, ivfflat_rows)
            except psycopg.Error as error:
                if connection.closed:
                    raise
                logger.warning("postgres: an index of %s is not built: %s", index.table, error.diag.message_primary)
                _drop_invalid(connection, slot)


@dataclass(frozen=True, slots=True)
class _Slot:
    """The vectors that one index holds: those of a generation, or all of a column that is bound to a dimension."""

    index: VectorIndex
    generation: int | None = None
    dimension: int = 0

    @property
    def name(self) -> str:
        suffix = "" if self.generation is None else f"_{self.generation}"
        return f"{self.index.table}_embedding{suffix}"

    @property
    def rows(self) -> str:
        return "true" if self.generation is None else f"generation = {self.generation}"


def _choose(connection: psycopg.Connection[DictRow], slot: _Slot, ivfflat_rows: int | None) -> None:
    lists = slot.name + LISTS
    found = connection.execute(QUERIES["find_valid_indexes"], {"tables": [slot.index.table]}).fetchall()
    valid = {row["name"] for row in found}
    has_lists = lists in valid
    if ivfflat_rows is not None:
        least = ivfflat_rows // 2 if has_lists else ivfflat_rows
        has_rows = _count_rows(connection, slot, least) >= least
        if has_rows and (has_lists or _create_lists(connection, slot, lists)):
            connection.execute(QUERIES["drop_index"].decode().format(name=slot.name).encode())
            return
    if slot.name not in valid:
        connection.execute(QUERIES["drop_index"].decode().format(name=slot.name).encode())
        if slot.generation is None:
            _create_bound(connection, slot.index)
        else:
            _create(connection, slot.index, slot.name, slot.generation, slot.dimension)
    connection.execute(QUERIES["drop_index"].decode().format(name=lists).encode())


def _drop_invalid(connection: psycopg.Connection[DictRow], slot: _Slot) -> None:
    """Drop what a failed build left: it would serve no search, but take every write."""
    found = connection.execute(QUERIES["find_valid_indexes"], {"tables": [slot.index.table]}).fetchall()
    for name in {slot.name, slot.name + LISTS} - {row["name"] for row in found}:
        connection.execute(QUERIES["drop_index"].decode().format(name=name).encode())


def _count_rows(connection: psycopg.Connection[DictRow], slot: _Slot, most: int) -> int:
    counting = QUERIES["count_rows"].decode()
    statement = counting.format(table=slot.index.table, rows=slot.rows, only=slot.index.only, most=most)
    row = connection.execute(statement.encode()).fetchone()
    return 0 if row is None else int(row["rows"])


def _create_bound(connection: psycopg.Connection[DictRow], index: VectorIndex) -> None:
    statement = (
        QUERIES["create_bound_index"]
        .decode()
        .format(
            name=f"{index.table}_embedding",
            table=index.table,
            m=index.m,
            ef_construction=index.ef_construction,
            only=index.only,
        )
    )
    connection.execute(statement.encode())


def _create_lists(connection: psycopg.Connection[DictRow], slot: _Slot, name: str) -> bool:
    """Build an index by IVFFlat, of a list for a thousand rows; report whether the server's memory sufficed."""
    kind = vector_type(slot.dimension)
    statement = (
        QUERIES["create_lists"]
        .decode()
        .format(
            name=name,
            table=slot.index.table,
            expression="embedding" if slot.generation is None else f"(embedding::{kind})",
            operators="halfvec_cosine_ops" if kind.startswith("halfvec") else "vector_cosine_ops",
            lists=max(1, _count_rows(connection, slot, MOST_COUNTED) // ROWS_PER_LIST),
            rows=slot.rows,
            only=slot.index.only,
        )
    )
    connection.execute(QUERIES["drop_index"].decode().format(name=name).encode())
    try:
        connection.execute(statement.encode())
    except psycopg.errors.ProgramLimitExceeded as error:
        reason = error.diag.message_primary
        logger.warning("postgres: the vectors of %s stay indexed by HNSW: %s", slot.index.table, reason)
        return False
    return True
