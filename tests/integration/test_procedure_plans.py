"""Procedures are matched by one index a stage, also where a workspace is one of many."""

import json
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector.psycopg import register_vector
from psycopg.rows import dict_row

from lamina.core.queries import Filters, Query
from lamina.core.scope import Scope
from lamina.embedded import EmbeddedPostgres
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.procedures import MOST_COMPARED, match_statement
from lamina.text.words import words
from tests.support.databases import new_database, vectors_indexed_afterwards

ROWS = 4_000
FILL = """
INSERT INTO procedures (id, tenant, workspace, namespace, trigger, trigger_key, action, content_hash, source, tsv,
                        generation, embedding)
SELECT gen_random_uuid(), CASE WHEN n %% 100 = 0 THEN 'small' ELSE 'large' END, 'w', 'default', key, key, 'act',
       sha256(n::text::bytea), 'api', to_tsvector('lamina', key), 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE n > 0)::vector
FROM (SELECT n, 'topic' || n %% 400 || ' number ' || n AS key FROM generate_series(1, %s) AS n) AS keys
"""


@pytest.fixture(scope="module")
def filled(postgres: EmbeddedPostgres) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """A database with one large and one small tenant."""
    with new_database(postgres) as url, psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        claim_generation(url, HashingModel().identity)
        register_vector(connection)
        with vectors_indexed_afterwards(connection):
            connection.execute(FILL.encode(), (ROWS,))
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


def asked(text: str, tenant: str, *, has_vector: bool = True, is_large: bool = True) -> tuple[bytes, dict[str, Any]]:
    """Return the statement that matches a question, with its parameters."""
    vector = np.random.default_rng(0).standard_normal(384).astype(np.float32).tobytes() if has_vector else None
    query = Query(text, tuple(words(text)), Scope(tenant, "w"), 10, Filters(), vector, 1)
    return match_statement(query, " ".join(query.words), is_large=is_large)


def plan(connection: "psycopg.Connection[dict[str, Any]]", tenant: str, *, has_vector: bool = True) -> str:
    text, parameters = asked("topic7 number", tenant, has_vector=has_vector)
    row = connection.execute(b"EXPLAIN (FORMAT JSON) " + text, parameters).fetchone()
    assert row is not None
    return json.dumps(row["QUERY PLAN"])


def read_whole(shown: str) -> set[str]:
    """Return the tables that a plan reads from end to end; what other models' vectors stand in is empty here."""
    return set(re.findall(r'"Node Type": "Seq Scan"[^{}]*?"Relation Name": "(\w+)"', shown))


def test_each_stage_of_a_large_workspace_has_its_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    shown = plan(filled, "large")

    assert "procedures_embedding" in shown
    assert shown.count('"procedures_prefix"') >= 2
    assert "procedures" not in read_whole(shown)


def test_words_are_served_by_their_index(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    text, parameters = asked("topic7", "large", has_vector=False)

    shown = json.dumps(filled.execute(b"EXPLAIN (FORMAT JSON) " + text, parameters).fetchall())

    assert "procedures_words" in shown


def test_without_a_vector_the_vectors_are_not_read(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    assert "procedures_embedding" not in plan(filled, "large", has_vector=False)


def test_a_small_workspace_is_searched_by_its_own_rows(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    text, parameters = asked("topic0 number", "small")

    shown = plan(filled, "small")
    rows = filled.execute(text, parameters).fetchall()

    assert "procedures" not in read_whole(shown)
    assert len(rows) == ROWS // 100
    assert sum(row["cosine"] is not None for row in rows) == ROWS // 100


def test_marks_of_a_question_are_no_pattern(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    for text in ("%", "_", "\\", "topic7%", "topic_"):
        statement, parameters = asked(text, "large", has_vector=False)

        rows = [row for row in filled.execute(statement, parameters).fetchall() if row["id"] is not None]

        assert {row["trigger"].split()[0] for row in rows} <= {"topic7"}, text


def test_few_procedures_are_all_compared_and_of_many_their_number_is_told(
    filled: "psycopg.Connection[dict[str, Any]]",
) -> None:
    few, many = asked("topic0 number", "small", is_large=False), asked("topic0 number", "large", is_large=False)

    compared, by_stage = filled.execute(*few).fetchall(), filled.execute(*asked("topic0 number", "small")).fetchall()
    told = filled.execute(*many).fetchall()

    assert without_size(compared) == without_size(by_stage)
    assert {row["of_scope"] for row in compared} == {ROWS // 100}
    assert [(row["id"], row["of_scope"]) for row in told] == [(None, MOST_COMPARED + 1)]


def without_size(rows: list[dict[str, Any]]) -> set[str]:
    return {str({name: value for name, value in row.items() if name != "of_scope"}) for row in rows}
