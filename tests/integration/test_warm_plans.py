"""Warm searches are served by indexes that hold warm notes alone."""

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row

from lamina.embedding.hashing import HashingModel
from lamina.queries import Filters
from lamina.stores.postgres.connection import _SESSION, statement
from lamina.stores.postgres.filters import filtered
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.notes import COLUMNS

ROWS = 4_000
WARM_ROWS = ROWS // 4
FILL = """
INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, confidence, source,
                   event_at, last_hit_at)
SELECT gen_random_uuid(), 'acme', 'w', 'default', 'note', 'note number ' || n, sha256(n::text::bytea), 0.5, 1, 'api',
       now(), now() - CASE WHEN n %% 4 = 0 THEN interval '1 day' ELSE interval '30 days' END
FROM generate_series(1, %s) AS n
"""
CHUNKS = """
INSERT INTO note_chunks (note_id, chunk, tenant, workspace, namespace, text_start, text_end, tsv, generation, embedding)
SELECT id, 0, tenant, workspace, namespace, 0, length(content), to_tsvector('lamina', content), 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE content IS NOT NULL)::vector
FROM notes
"""
ASKED = {
    "tenant": "acme",
    "workspace": "w",
    "namespace": "default",
    "user_id": None,
    "generation": 1,
    "words": "number 8",
    "limit": 10,
}
Rows = list[dict[str, Any]]


@pytest.fixture
def filled(database: str) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """Notes of which a quarter was found lately; the rest is swept."""
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        claim_generation(database, HashingModel().identity)
        register_vector(connection)
        connection.execute(FILL.encode(), (ROWS,))
        connection.execute(CHUNKS.encode())
        connection.execute(
            statement("sweep_notes"),
            {
                **dict.fromkeys(("tenant", "workspace", "namespace", "limit")),
                "now": datetime.now(UTC),
                "days": 7.0,
                "dry_run": False,
                "projections": ["notes", "cold"],
            },
        )
        connection.execute("VACUUM (FULL, ANALYZE) note_chunks")
        connection.execute("VACUUM (ANALYZE) notes")
        connection.execute(_SESSION.encode())
        yield connection


def ask(connection: "psycopg.Connection[dict[str, Any]]", before: str, **asked: Any) -> Rows:
    text, values = filtered("search_notes_warm", Filters(), COLUMNS)
    return connection.execute(before.encode() + text, ASKED | values | asked).fetchall()


def updates(connection: "psycopg.Connection[dict[str, Any]]") -> tuple[int, int]:
    """Return how many rows of notes were updated so far, and how many of these without touching an index."""
    connection.execute("SELECT pg_stat_force_next_flush()")
    (row,) = connection.execute(
        "SELECT n_tup_upd, n_tup_hot_upd FROM pg_stat_user_tables WHERE relname = 'notes'"
    ).fetchall()
    return row["n_tup_upd"], row["n_tup_hot_upd"]


def test_warm_words_are_found_by_the_partial_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    assert "note_chunks_words" in json.dumps(ask(filled, "EXPLAIN (FORMAT JSON) "))


def test_no_cold_note_is_in_the_index_of_words(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    (row,) = filled.execute(
        "SELECT (SELECT reltuples FROM pg_class WHERE relname = 'note_chunks_embedding') AS vectors, "
        "(SELECT count(*) FROM note_chunks WHERE tsv IS NOT NULL) AS with_words, "
        "(SELECT count(*) FROM notes WHERE temperature = 'warm') AS warm"
    ).fetchall()

    assert (row["vectors"], row["with_words"], row["warm"]) == (WARM_ROWS, WARM_ROWS, WARM_ROWS)
    assert [found["content"] for found in ask(filled, "")] == ["note number 8"]
    assert ask(filled, "", words="number 9") == []


def test_counting_a_hit_touches_no_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    ids = [row["id"] for row in filled.execute("SELECT id FROM notes WHERE temperature = 'warm' LIMIT 1").fetchall()]
    before = updates(filled)

    filled.execute(statement("count_hits"), {"ids": ids, "hits": [1], "last": [datetime.now(UTC)]})

    assert [after - was for was, after in zip(before, updates(filled), strict=True)] == [1, 1]
