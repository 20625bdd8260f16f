"""Searches are served by their indexes, also where a tenant is one of many."""

import json
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row

from lamina.core.queries import Filters, Query, Ranking
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedPostgres
from lamina.models.hashing import HashingModel
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.connection import new_pool
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.messages import MessagesSearch, find_statement
from tests.support.databases import new_database, vectors_indexed_afterwards
from tests.support.wiretap import wiretapped

ROWS = 4000
FILL = """
INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, content_hash, occurred_at)
SELECT gen_random_uuid(), CASE WHEN n %% 100 = 0 THEN 'small' ELSE 'large' END, 'w', 'default', 's' || n %% 50, n,
       'user', 'message ' || n, sha256(n::text::bytea), now()
FROM generate_series(1, %s) AS n;
"""
CHUNKS = """
INSERT INTO message_chunks (message_id, chunk, tenant, workspace, namespace, session_id, occurred_at,
                            text_start, text_end, generation, embedding)
SELECT id, 0, tenant, workspace, namespace, session_id, occurred_at, 0, 10, 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE position > 0)::vector
FROM messages
"""


@pytest.fixture(scope="module")
def filled_url(postgres: EmbeddedPostgres) -> Iterator[str]:
    with new_database(postgres) as url:
        yield url


@pytest.fixture(scope="module")
def filled(filled_url: str) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """A database with one large and one small tenant."""
    with psycopg.connect(filled_url, autocommit=True, row_factory=dict_row) as connection:
        claim_generation(filled_url, HashingModel().identity)
        register_vector(connection)
        with vectors_indexed_afterwards(connection):
            connection.execute(FILL.encode(), (ROWS,))
            connection.execute(CHUNKS.encode())
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


def parameters_for(tenant: str) -> dict[str, Any]:
    vector = np.random.default_rng(0).standard_normal(384).astype(np.float32)
    return {
        "embedding": Vector(vector),
        "tenant": tenant,
        "workspace": "w",
        "namespace": "default",
        "generation": 1,
        "session_id": None,
        "user_id": None,
        "candidates": 30,
        "limit": 30,
        "most_read": 20_000,
        "most_compared": 2_000,
        "min_similarity": -1.0,
        "reach": 3,
        "ids": [],
        "chunks": [],
    }


def plan(connection: "psycopg.Connection[dict[str, Any]]", tenant: str, *, is_large: bool) -> str:
    text, values = find_statement(Filters(), is_large=is_large)
    row = connection.execute(b"EXPLAIN (FORMAT JSON) " + text, parameters_for(tenant) | values).fetchone()
    assert row is not None
    return json.dumps(row["QUERY PLAN"])


def test_a_large_scope_is_searched_by_the_vector_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    assert "message_chunks_embedding" in plan(filled, "large", is_large=True)


def test_a_small_scope_is_searched_exactly_by_its_own_rows(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    for is_large in (False, True):
        assert "message_chunks_scope" in plan(filled, "small", is_large=is_large)
    assert "message_chunks_embedding" not in plan(filled, "large", is_large=False)


def test_a_search_in_a_small_scope_is_not_starved_by_a_large_one(
    filled: "psycopg.Connection[dict[str, Any]]",
) -> None:
    filled.execute(b"SET enable_bitmapscan = off; SET enable_indexscan = on; DROP INDEX message_chunks_scope")
    try:
        text, values = find_statement(Filters(), is_large=True)
        rows = filled.execute(text, parameters_for("small") | values).fetchall()
    finally:
        filled.execute(b"SET enable_bitmapscan = on")
        filled.execute(
            b"CREATE INDEX message_chunks_scope ON message_chunks (tenant, workspace, namespace, session_id); ANALYZE"
        )

    assert sum(row["cosine"] is not None for row in rows) == 30


async def test_a_scope_is_searched_by_the_index_from_when_it_is_found_to_be_large(
    filled: "psycopg.Connection[dict[str, Any]]", filled_url: str
) -> None:
    vector = np.random.default_rng(3).standard_normal(384).astype(np.float32)
    vector /= np.linalg.norm(vector)
    with wiretapped(filled_url) as tap:
        pool = new_pool(tap.url, PoolSettings(min_size=0, max_size=4))
        search = MessagesSearch(pool, min_similarity=-1, reach=3)

        async def statements_for(tenant: str) -> tuple[int, Ranking]:
            query = Query("?", (), Scope(tenant, "w"), 10, Filters(), vector.tobytes(), 1)
            tap.take()
            found = await search.find(query, ())
            return len(tap.take()), found.nearest

        noticed, again, (small, nearest) = [await statements_for(tenant) for tenant in ("large", "large", "small")]
        await pool.close()

    best = filled.execute(
        b"SELECT message_id FROM message_chunks WHERE tenant = 'small' ORDER BY embedding <=> %s LIMIT 10",
        (Vector(vector),),
    ).fetchall()
    assert (noticed[0], again[0], small) == (2, 1, 1)
    assert len(again[1]) == 10
    assert [hit.memory.id for hit in nearest] == [row["message_id"] for row in best]
