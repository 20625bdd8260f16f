"""Columns and indexes of vectors of any dimension.

The migrations bind each column of vectors to 384 dimensions, with an index over the whole of it. Another index in its
place would take a large installation minutes, so it keeps these until a model of another dimension begins. Then the
columns take vectors of any length, and each generation has indexes of its own, over its rows cast to its dimension.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import psycopg
from cachetools import LRUCache
from psycopg.rows import DictRow

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured, Unavailable
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("vector_indexes.sql")

# pgvector's HNSW takes no longer ones: of 32 bits a number, and of 16.
MOST_FULL, MOST_HALF = 2_000, 4_000
LOCK_KEY = 0x6C616D76  # "lamv"
LOOK_S = 0.5
LOCK_WAIT_S = 2
LOCK_TRIES = 60
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
        _unbind(connection, row["name"])
        index_vectors(connection, row["name"])
    index_vectors(connection)


def _unbind(connection: psycopg.Connection[DictRow], table: str) -> None:
    statement = QUERIES["unbind_column"].decode().format(table=table).encode()
    for _ in range(LOCK_TRIES):
        try:
            with connection.transaction():
                # Whoever comes after one that waits for this lock waits, too.
                connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'".encode())
                connection.execute(statement)
        except psycopg.errors.LockNotAvailable:
            time.sleep(LOOK_S)
        else:
            return
    raise Unavailable("postgres", f"{table} was locked by others for {LOCK_TRIES * LOCK_WAIT_S} s")


def index_vectors(connection: psycopg.Connection[DictRow], table: str | None = None) -> None:
    """Build the indexes that generations in use lack, on one table or all, beside reads and writes."""
    generations = connection.execute(QUERIES["find_indexed_generations"]).fetchall()
    found = connection.execute(QUERIES["find_valid_indexes"], {"tables": list(TABLES)}).fetchall()
    valid = {row["name"] for row in found}
    for row in generations:
        for index in INDEXES:
            name = f"{index.table}_embedding_{row['generation']}"
            if table in (None, index.table) and name not in valid:
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
