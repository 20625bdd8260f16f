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

from lamina.embedded import EmbeddedPostgres
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.messages import QUERIES
from tests.support.databases import new_database, vectors_indexed_afterwards

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
def filled(postgres: EmbeddedPostgres) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """A database with one large and one small tenant."""
    with (
        new_database(postgres) as url,
        psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection,
    ):
        claim_generation(url, HashingModel().identity)
        register_vector(connection)
        with vectors_indexed_afterwards(connection):
            connection.execute(FILL.encode(), (ROWS,))
            connection.execute(CHUNKS.encode())
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


def plan(connection: "psycopg.Connection[dict[str, Any]]", tenant: str) -> str:
    vector = np.random.default_rng(0).standard_normal(384).astype(np.float32)
    parameters: dict[str, Any] = {
        "embedding": Vector(vector),
        "tenant": tenant,
        "workspace": "w",
        "namespace": "default",
        "generation": 1,
        "session_id": None,
        "user_id": None,
        "since": None,
        "until": None,
        "candidates": 30,
        "most_read": 20_000,
    }
    text = b"EXPLAIN (FORMAT JSON) " + QUERIES["search_message_vectors"]
    row = connection.execute(text, parameters).fetchone()
    assert row is not None
    return json.dumps(row["QUERY PLAN"])


def test_a_large_scope_is_searched_by_the_vector_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    assert "message_chunks_embedding" in plan(filled, "large")


def test_a_small_scope_is_searched_exactly_by_its_own_rows(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    assert "message_chunks_scope" in plan(filled, "small")


def test_a_search_in_a_small_scope_is_not_starved_by_a_large_one(
    filled: "psycopg.Connection[dict[str, Any]]",
) -> None:
    vector = np.random.default_rng(1).standard_normal(384).astype(np.float32)
    filled.execute(b"SET enable_bitmapscan = off; SET enable_indexscan = on; DROP INDEX message_chunks_scope")
    parameters: dict[str, Any] = {
        "embedding": Vector(vector),
        "tenant": "small",
        "workspace": "w",
        "namespace": "default",
        "generation": 1,
        "session_id": None,
        "user_id": None,
        "since": None,
        "until": None,
        "candidates": 30,
        "most_read": 20_000,
    }

    rows = filled.execute(QUERIES["search_message_vectors"], parameters).fetchall()

    assert len(rows) == 30
