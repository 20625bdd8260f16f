"""Looking for a near-duplicate costs a walk through an index, or a read of one user's notes, never of everybody's."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID

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
from lamina.stores.postgres.note_duplicates import QUERIES
from tests.support.databases import new_database, vectors_indexed_afterwards

ROWS = 4_000
FILL = """
INSERT INTO notes (id, tenant, workspace, namespace, user_id, category, content, content_hash, importance, confidence,
                   source, event_at)
SELECT gen_random_uuid(), 'acme', 'w', 'default', CASE WHEN n %% 400 = 0 THEN 'rare' WHEN n %% 2 = 0 THEN 'ann' END,
       'note', 'note ' || n, sha256(n::text::bytea), 0.5, 1, 'api', now()
FROM generate_series(1, %s) AS n
"""
CHUNKS = """
INSERT INTO note_chunks (note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding)
SELECT id, 0, tenant, workspace, namespace, 0, length(content), to_tsvector('lamina', content), 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE content IS NOT NULL)::vector
FROM notes
"""


@pytest.fixture(scope="module")
def filled(postgres: EmbeddedPostgres) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """A workspace of shared notes, of one user with as many, and of one with very few."""
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


def ask(connection: "psycopg.Connection[dict[str, Any]]", before: str, user: str | None) -> list[dict[str, Any]]:
    vector = np.random.default_rng(0).standard_normal(384).astype(np.float32)
    parameters = {
        "items": [UUID(int=1)],
        "embeddings": [Vector(vector)],
        "tenant": "acme",
        "workspace": "w",
        "namespace": "default",
        "user_id": user,
        "generation": 1,
        "candidates": 16,
        "min_cosine": -1.0,
    }
    return connection.execute(before.encode() + QUERIES["nearest_notes"], parameters).fetchall()


@pytest.mark.parametrize(
    ("user", "index"),
    [(None, "note_chunks_embedding"), ("ann", "note_chunks_embedding"), ("rare", "notes_one_of_each")],
)
def test_the_nearest_notes_come_from_an_index(
    filled: "psycopg.Connection[dict[str, Any]]", user: str | None, index: str
) -> None:
    plan = json.dumps(ask(filled, "EXPLAIN (FORMAT JSON) ", user))

    assert index in plan
    assert "Seq Scan" not in plan


@pytest.mark.parametrize(("user", "count"), [(None, 16), ("ann", 16), ("rare", 10), ("nobody", 0)])
def test_the_nearest_notes_are_of_exactly_this_user(
    filled: "psycopg.Connection[dict[str, Any]]", user: str | None, count: int
) -> None:
    found = [row["id"] for row in ask(filled, "", user)]

    owners = filled.execute("SELECT DISTINCT user_id FROM notes WHERE id = ANY(%s)", (found,)).fetchall()
    assert len(found) == count
    assert {row["user_id"] for row in owners} == ({user} if count else set())
