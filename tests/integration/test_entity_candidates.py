"""Entities near a question are found by their vector index, with as many candidates as the setting says."""

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
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.knowledge import QUERIES
from tests.support.databases import new_database, vectors_indexed_afterwards

ROWS = 3000
QUESTIONS = 20
FILL = """
INSERT INTO entities (id, tenant, workspace, namespace, key, name, type, confidence, first_seen_at, last_seen_at,
                      generation, embedding)
SELECT gen_random_uuid(), 'large', 'w', 'default', 'e' || n, 'e' || n, '', 0.5, now(), now(), 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE n > 0)::vector
FROM generate_series(1, %s) AS n
"""
Filled = "psycopg.Connection[dict[str, Any]]"


@pytest.fixture(scope="module")
def filled(postgres: EmbeddedPostgres) -> Iterator[Filled]:
    with (
        new_database(postgres) as url,
        psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection,
    ):
        claim_generation(url, HashingModel().identity)
        register_vector(connection)
        with vectors_indexed_afterwards(connection):
            connection.execute(FILL.encode(), (ROWS,))
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


def asked(number: int, ef_search: int) -> dict[str, Any]:
    vector = np.random.default_rng(number).standard_normal(384).astype(np.float32)
    scope = {"tenant": "large", "workspace": "w", "namespace": "default", "user_id": None, "shared_only": False}
    walk = {"keys": [], "limit": 5, "min_similarity": -1, "passages": 3, "common": 1, "around": 0}
    return {**scope, **walk, "generation": 1, "embedding": Vector(vector), "entities_ef": str(ef_search)}


def found(connection: Filled, number: int, ef_search: int) -> set[Any]:
    return {row["id"] for row in connection.execute(QUERIES["find_seeds"], asked(number, ef_search)).fetchall()}


def nearest(connection: Filled, number: int) -> set[Any]:
    with connection.transaction():
        connection.execute("SET LOCAL enable_indexscan = off")
        return found(connection, number, 1)


def shares_found(connection: Filled, ef_search: int) -> float:
    """Return the share of the truly nearest entities that the index finds."""
    pairs = [(found(connection, number, ef_search), nearest(connection, number)) for number in range(QUESTIONS)]
    return sum(len(got & true) for got, true in pairs) / sum(len(true) for _, true in pairs)


def test_entities_of_a_large_workspace_are_searched_by_their_vector_index(filled: Filled) -> None:
    row = filled.execute(b"EXPLAIN (FORMAT JSON) " + QUERIES["find_seeds"], asked(1, 128)).fetchone()

    assert "entities_embedding" in json.dumps(row)


def test_more_candidates_find_more_of_the_nearest_entities(filled: Filled) -> None:
    few, session, documented, many = (shares_found(filled, ef_search) for ef_search in (5, 32, 128, 1000))

    assert Settings().search.graph_ef_search == 32
    assert few < session < documented <= many
    assert many > 0.95


def test_what_entities_are_searched_with_is_not_left_to_other_statements(filled: Filled) -> None:
    found(filled, 1, 128)

    assert filled.execute("SHOW hnsw.ef_search").fetchone() == {"hnsw.ef_search": "32"}
