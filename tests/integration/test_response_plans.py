"""A response is looked for among those of its agent alone, by an index, whatever the others hold."""

import hashlib
import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
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
from lamina.stores.postgres.epochs import QUERIES as EPOCH_QUERIES
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.responses import QUERIES
from tests.support.databases import new_database, vectors_indexed_afterwards

ALL_QUERIES = {**EPOCH_QUERIES, **QUERIES}
AGENTS, ROWS = 20, 200
NOW = datetime.now(UTC)
RNG = np.random.default_rng(0)
FILL_AGENTS = """
INSERT INTO response_agents (tenant, workspace, agent, epoch, writes, put_at)
SELECT 'acme', workspace, agent, 1, 1, now()
FROM unnest(ARRAY['w', 'v']) AS workspace, (SELECT 'agent ' || n AS agent FROM generate_series(1, %s) AS n
                                            UNION ALL SELECT '') AS named
"""
FILL = """
INSERT INTO responses (id, tenant, workspace, namespace, agent, circumstances, digest, query, response, generation,
                       embedding, agent_epoch, workspace_epoch, workspace_writes, size_bytes, created_at, expires_at,
                       last_used_at)
SELECT gen_random_uuid(), 'acme', a.workspace, 'default', a.agent, sha256(a.agent::bytea),
       sha256((a.workspace || '/' || a.agent || '/' || n)::bytea), 'question ' || n, to_json(repeat('x', 2000)), 1,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, 384) WHERE n > 0)::vector,
       1, 1, 1, 4000, now(), now() + interval '1 hour', now()
FROM response_agents a, generate_series(1, %s) AS n
WHERE a.agent <> ''
"""


@pytest.fixture(scope="module")
def filled(postgres: EmbeddedPostgres) -> Iterator["psycopg.Connection[dict[str, Any]]"]:
    """Two workspaces of many agents with many responses each."""
    with new_database(postgres) as url, psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        claim_generation(url, HashingModel().identity)
        register_vector(connection)
        with vectors_indexed_afterwards(connection):
            connection.execute(FILL_AGENTS.encode(), (AGENTS,))
            connection.execute(FILL.encode(), (ROWS,))
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        yield connection


def parameters(agent: str) -> dict[str, Any]:
    return {
        "tenant": "acme",
        "workspace": "w",
        "agent": agent,
        "agent_id": agent,
        "user_id": "eve",
        "circumstances": hashlib.sha256(agent.encode()).digest(),
        "digest": hashlib.sha256(f"w/{agent}/7".encode()).digest(),
        "generation": 1,
        "embedding": Vector(RNG.standard_normal(384).astype(np.float32)),
        "by_workspace": False,
        "now": NOW,
        "cutoff": NOW - timedelta(seconds=300),
        "max_distance": 2.0,
        "limit": 16,
        "prompt_version": "v",
        "id": "00000000-0000-0000-0000-000000000000",
        "until": NOW,
    }


def ask(connection: "psycopg.Connection[dict[str, Any]]", name: str, before: str = "") -> list[dict[str, Any]]:
    return connection.execute(before.encode() + ALL_QUERIES[name], parameters("agent 3")).fetchall()


@pytest.mark.parametrize(
    ("name", "index"),
    [
        ("find_near_responses", "responses_of_agent"),
        ("find_exact_response", "responses_one_of_each"),
        ("get_response", "responses_pkey"),
        ("lease_response", "responses_pkey"),
        ("change_prompt_version", "response_agents_pkey"),
        ("end_responses", "response_agents_pkey"),
        ("list_response_agents", "response_agents_pkey"),
    ],
)
def test_every_statement_of_a_lookup_and_a_write_has_its_index(
    filled: "psycopg.Connection[dict[str, Any]]", name: str, index: str
) -> None:
    filled.execute("SET enable_seqscan = off")  # The agents' table is a page or two here.

    plan = json.dumps(ask(filled, name, "EXPLAIN (FORMAT JSON) "))

    assert index in plan
    assert "Seq Scan" not in plan


def test_only_responses_of_the_agent_are_compared(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    filled.execute("RESET enable_seqscan")

    (row,) = ask(filled, "find_near_responses", "EXPLAIN (ANALYZE, FORMAT JSON) ")

    read = [node for node in nodes(row["QUERY PLAN"][0]["Plan"]) if node.get("Relation Name") == "responses"]
    assert [node["Node Type"] for node in read if "Seq Scan" in node["Node Type"]] == []
    assert sum(node["Actual Rows"] * node["Actual Loops"] for node in read) <= ROWS


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from nodes(child)


def test_the_exact_response_is_one_row(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    rows = ask(filled, "find_exact_response")

    assert [row["query"] for row in rows] == ["question 7"]


def test_vectors_stay_in_their_rows_and_responses_leave_them(filled: "psycopg.Connection[dict[str, Any]]") -> None:
    row = filled.execute(
        "SELECT attname, attstorage FROM pg_attribute WHERE attrelid = 'responses'::regclass "
        "AND attname IN ('embedding', 'response')"
    ).fetchall()

    assert {item["attname"]: item["attstorage"] for item in row} == {"embedding": "p", "response": "x"}
