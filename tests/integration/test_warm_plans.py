"""Warm searches are served by indexes that hold warm notes alone, and a sweep reads what its scope has alone."""

import json
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row

from lamina.core.queries import Filters
from lamina.embedded import EmbeddedPostgres
from lamina.maintenance.row_jobs import sweep_of
from lamina.maintenance.row_writer import RowWriter
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.aging import QUERIES as AGING_QUERIES
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.filters import apply_filters
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.job_changes import QUERIES as JOB_CHANGES_QUERIES
from lamina.stores.postgres.job_changes import RowChange, _json
from lamina.stores.postgres.note_temperature import QUERIES as NOTE_TEMPERATURE_QUERIES
from lamina.stores.postgres.notes import COLUMNS, QUERIES
from tests.support.databases import name_of, new_database, vectors_indexed_afterwards

ROWS = 4_000
WARM_ROWS = ROWS // 4
TENANTS, ROWS_OF_EACH = 2_000, 10
PAGE = 500
SWEEP = sweep_of(7)
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
    "min_weight": 0.0,
}
MANY = """
INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, confidence, source,
                   event_at, last_hit_at)
SELECT gen_random_uuid(), 'tenant ' || t, 'w', 'default', 'note', 'note number ' || n, sha256(n::text::bytea), 0.5, 1,
       'api', now(), now() - interval '30 days'
FROM generate_series(1, %s) AS t, generate_series(1, %s) AS n
"""
Rows = list[dict[str, Any]]


@pytest.fixture(scope="module")
async def template(postgres: EmbeddedPostgres) -> AsyncIterator[str]:
    """Notes of which a quarter was found lately; the rest is swept."""
    with new_database(postgres) as url:
        with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
            claim_generation(url, HashingModel().identity)
            register_vector(connection)
            with vectors_indexed_afterwards(connection):
                connection.execute(FILL.encode(), (ROWS,))
                connection.execute(CHUNKS.encode())
                await sweep(url, due(connection, limit=ROWS))
            connection.execute("VACUUM (FULL, ANALYZE) note_chunks")
            connection.execute("VACUUM (ANALYZE) notes")
        yield name_of(url)


@pytest.fixture
def filled(postgres: EmbeddedPostgres, template: str) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    with (
        new_database(postgres, template) as url,
        psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection,
    ):
        register_vector(connection)
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


async def sweep(url: str, rows: Rows, moment: datetime | None = None) -> list[UUID]:
    """Demote these notes as the job does."""
    async with await psycopg.AsyncConnection.connect(url, row_factory=dict_row) as connection:
        moment = moment or datetime.now(UTC)
        return await RowWriter(connection, None, moment).change("notes", SWEEP.decide(rows, moment), tenant="acme")


def due(connection: "psycopg.Connection[dict[str, Any]]", before: str = "", **asked: Any) -> Rows:
    """Read a page of notes that may be due."""
    page = {**ASKED, "moment": datetime.now(UTC), "after": None, "limit": PAGE, "idle": SWEEP.idle} | asked
    return connection.execute(before.encode() + AGING_QUERIES[SWEEP.candidates], page).fetchall()


def ask(connection: "psycopg.Connection[dict[str, Any]]", before: str, **asked: Any) -> Rows:
    text, values = apply_filters(QUERIES["search_notes_warm"], Filters(), COLUMNS)
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
    assert [found["first_text"] for found in ask(filled, "")] == ["note number 8"]
    assert ask(filled, "", words="number 9") == []


def test_counting_a_hit_touches_no_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    ids = [row["id"] for row in filled.execute("SELECT id FROM notes WHERE temperature = 'warm' LIMIT 1").fetchall()]
    before = updates(filled)

    filled.execute(NOTE_TEMPERATURE_QUERIES["count_hits"], {"ids": ids, "hits": [1], "last": [datetime.now(UTC)]})

    assert [after - was for was, after in zip(before, updates(filled), strict=True)] == [1, 1]


def test_a_page_of_idle_notes_is_read_by_the_scope_and_from_where_the_last_one_ended(
    filled: "psycopg.Connection[dict[str, Any]]",
) -> None:
    among_many(filled)
    first = due(filled, tenant="tenant 7", limit=5)
    plans = {
        "one of many": plan(due(filled, ANALYZED, tenant="tenant 7")),
        "its second page": plan(due(filled, ANALYZED, tenant="tenant 7", after=first[-1]["id"], limit=5)),
        "the largest, swept": plan(due(filled, ANALYZED)),
    }

    # A workspace's settings are one row by its key, of a table that is empty here.
    of_notes = [{index for table, index in scans(found) if table == "notes"} for found in plans.values()]
    assert of_notes == [{"notes_by_id"}] * 3, plans
    assert rows_read(plans["one of many"]) == ROWS_OF_EACH
    assert rows_read(plans["its second page"]) == ROWS_OF_EACH - 5
    assert rows_read(plans["the largest, swept"]) == ROWS


def test_changing_a_page_of_notes_reads_these_notes_alone(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    among_many(filled)
    rows = due(filled, tenant="tenant 7")
    changes = SWEEP.decide(rows, datetime.now(UTC))

    found = plan(change(filled, ANALYZED, changes))

    assert len(changes) == ROWS_OF_EACH
    assert {index for table, index in scans(found) if table == "notes"} == {"notes_pkey"}
    assert rows_read(found) <= 2 * ROWS_OF_EACH


ANALYZED = "EXPLAIN (ANALYZE, FORMAT JSON) "
Node = dict[str, Any]


def among_many(connection: "psycopg.Connection[dict[str, Any]]") -> None:
    connection.execute(MANY.encode(), (TENANTS, ROWS_OF_EACH))
    connection.execute("VACUUM (ANALYZE) notes")


def change(connection: "psycopg.Connection[dict[str, Any]]", before: str, changes: list[RowChange]) -> Rows:
    parameters = {
        "ids": [one.id for one in changes],
        "guards": [_json(one.guard) for one in changes],
        "afters": [_json(one.after) for one in changes],
        "tenant": "tenant 7",
        "run_id": None,
        "relation": "notes",
    }
    return connection.execute(before.encode() + JOB_CHANGES_QUERIES["change_notes"], parameters).fetchall()


def plan(explained: Rows) -> list[Node]:
    """Return the nodes of an explained statement."""

    def nodes(node: Node) -> list[Node]:
        return [node, *(below for child in node.get("Plans", []) for below in nodes(child))]

    return nodes(explained[0]["QUERY PLAN"][0]["Plan"])


def scans(nodes: list[Node]) -> set[tuple[str, str]]:
    """Return which tables were read, each with the index that it was read by."""
    by_index = {node["Index Name"] for node in nodes if node["Node Type"] == "Bitmap Index Scan"}
    return {
        (node["Relation Name"], node.get("Index Name") or ", ".join(sorted(by_index)))
        for node in nodes
        if "Relation Name" in node and node["Node Type"] != "ModifyTable" and node["Actual Loops"]
    }


def rows_read(nodes: list[Node]) -> int:
    """Return how many rows the scans of notes came by, those that their conditions left out included."""
    return sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in nodes
        if node.get("Relation Name") == "notes" and "Scan" in node["Node Type"]
    )
