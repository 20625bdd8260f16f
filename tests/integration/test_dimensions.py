"""Vectors of any dimension: beside each other, each searched by an index of its own."""

import json
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from pgvector import Vector
from pgvector.psycopg import register_vector
from psycopg.conninfo import make_conninfo
from psycopg.rows import dict_row

from lamina.core.ports import ModelIdentity
from lamina.core.queries import Filters
from lamina.core.runs import RunState
from lamina.core.tiers import Source
from lamina.errors import Misconfigured, Unavailable
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.generations import begin_building, claim_generation
from lamina.stores.postgres.messages import find_statement
from lamina.stores.postgres.migrate import migrations
from lamina.stores.postgres.vector_indexes import (
    INDEXES,
    TABLES,
    choose_index_kinds,
    typed,
    vector_type,
    vectors_locked,
)
from lamina.stores.postgres.vector_indexes import QUERIES as INDEX_QUERIES
from tests.integration.test_plans import parameters_for
from tests.integration.test_reembedding import (
    OLD,
    Recorded,
    fill,
    found,
    is_made_by,
    nearest,
    nearest_entities,
    owners,
    put,
    reembed,
    served,
    vectors,
)

MESSAGES = """
INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, content_hash, occurred_at)
SELECT gen_random_uuid(), 'large', 'w', 'default', 's' || n %% 50, n, 'user', 'message ' || n, sha256(n::text::bytea),
       now()
FROM generate_series(1, %s) AS n
"""
CHUNKS = """
INSERT INTO message_chunks (message_id, chunk, tenant, workspace, namespace, session_id, occurred_at,
                            text_start, text_end, generation, embedding)
SELECT id, 0, tenant, workspace, namespace, session_id, occurred_at, 0, 10, %s,
       (SELECT array_agg(random() - 0.5) FROM generate_series(1, %s) WHERE position > 0)::vector
FROM messages
"""
BY_LISTS = "SELECT indexname FROM pg_indexes WHERE indexdef LIKE '%%USING ivfflat%%'"


def rows(url: str, text: str, *values: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as connection:
        cursor = connection.execute(text.encode(), values)
        return cursor.fetchall() if cursor.description else []


def vector_indexes(url: str) -> dict[str, str]:
    found = rows(url, "SELECT indexname, indexdef FROM pg_indexes WHERE indexdef LIKE '%%USING hnsw%%' ORDER BY 1")
    return dict(found)


def bound(url: str) -> set[int]:
    text = "SELECT atttypmod FROM pg_attribute WHERE attname = 'embedding' AND attrelid = ANY(%s::regclass[]::oid[])"
    return {dimension for (dimension,) in rows(url, text, list(TABLES))}


def test_the_first_model_keeps_the_columns_of_the_migrations_where_they_hold_its_vectors(database: str) -> None:
    before = vector_indexes(database)

    claim_generation(database, HashingModel().identity)
    begin_building(database, HashingModel(seed=2).identity)

    assert bound(database) == {384}
    assert vector_indexes(database) == before
    assert len(before) == len(INDEXES)


def test_the_indexes_of_a_generation_are_built_as_the_migrations_build_theirs(database: str) -> None:
    before = vector_indexes(database)

    claim_generation(database, HashingModel(96).identity)

    def shape(definition: str) -> list[str]:
        plain = definition.replace("((embedding)::vector(96))", "embedding").replace("(generation = 1) AND ", "")
        plain = plain.replace(" WHERE (generation = 1)", "").replace("((tsv IS NOT NULL))", "(tsv IS NOT NULL)")
        return plain.split(" ON ")[1:]

    after = {name.removesuffix("_1"): shape(definition) for name, definition in vector_indexes(database).items()}
    assert after == {name: shape(definition) for name, definition in before.items()}


@pytest.mark.parametrize(
    ("dimension", "kind"),
    [(8, "vector(8)"), (96, "vector(96)"), (2_000, "vector(2000)"), (2_001, "halfvec(2001)"), (4_000, "halfvec(4000)")],
)
def test_a_first_model_of_any_dimension_has_indexes_of_its_type(database: str, dimension: int, kind: str) -> None:
    claim_generation(database, HashingModel(dimension).identity)
    claim_generation(database, HashingModel(dimension).identity)

    assert bound(database) == {-1}
    found = vector_indexes(database)
    assert set(found) == {f"{index.table}_embedding_1" for index in INDEXES}
    assert all(f"::{kind}" in definition for definition in found.values())


def test_a_model_whose_vectors_no_index_takes_is_refused_with_the_remedy(database: str) -> None:
    for refused in (claim_generation, begin_building):
        with pytest.raises(Misconfigured, match="large makes vectors of 4001 dimensions, the indexes of Postgres take"):
            refused(database, ModelIdentity("large", 4_001))

    assert bound(database) == {384}


def test_another_dimension_begins_beside_the_active_one_without_reading_a_row(database: str) -> None:
    claim_generation(database, HashingModel().identity)
    rows(database, MESSAGES, 50)
    rows(database, CHUNKS, 1, 384)
    files = "SELECT relname, pg_relation_filenode(oid) FROM pg_class WHERE relname = ANY(%s) ORDER BY 1"
    before = rows(database, files, list(TABLES))

    begin_building(database, HashingModel(96).identity)
    rows(database, CHUNKS, 2, 96)

    assert rows(database, files, list(TABLES)) == before
    assert rows(database, "SELECT DISTINCT generation, vector_dims(embedding) FROM message_chunks ORDER BY 1") == [
        (1, 384),
        (2, 96),
    ]
    assert len(vector_indexes(database)) == 2 * len(INDEXES)


def test_what_was_interrupted_is_continued(database: str) -> None:
    claim_generation(database, HashingModel().identity)
    begin_building(database, HashingModel(96).identity)
    complete = vector_indexes(database)
    rows(database, "DROP INDEX note_chunks_embedding_2, entities_embedding_1")
    rows(database, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'message_chunks_embedding_2'::regclass")

    begin_building(database, HashingModel(96).identity)

    assert vector_indexes(database) == complete
    assert rows(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(0,)]


def test_reads_go_on_while_the_drop_of_an_interrupted_index_waits_for_one(database: str) -> None:
    claim_generation(database, HashingModel().identity)
    begin_building(database, HashingModel(96).identity)
    rows(database, "UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'message_chunks_embedding_2'::regclass")
    waiting = "SELECT 1 FROM pg_stat_activity WHERE query LIKE 'DROP INDEX%%' AND wait_event_type = 'Lock'"
    with ThreadPoolExecutor(1) as pool, psycopg.connect(database) as reader:
        reader.execute("SELECT count(*) FROM message_chunks")
        building = pool.submit(begin_building, database, HashingModel(96).identity)
        while not rows(database, waiting):
            assert not building.done()
            time.sleep(0.05)
        with psycopg.connect(database) as other:
            other.execute("SET lock_timeout = '2s'")
            other.execute("SELECT count(*) FROM message_chunks")
        reader.rollback()
        building.result()

    assert rows(database, "SELECT count(*) FROM pg_index WHERE NOT indisvalid") == [(0,)]


@pytest.mark.parametrize("dimension", [24, 1_000, 2_100])
def test_each_generation_is_searched_by_its_own_index(database: str, dimension: int) -> None:
    claim_generation(database, HashingModel().identity)
    begin_building(database, HashingModel(dimension).identity)
    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as connection:
        register_vector(connection)
        connection.execute(MESSAGES.encode(), (1_500,))
        connection.execute(CHUNKS.encode(), (1, 384))
        connection.execute(CHUNKS.encode(), (2, dimension))
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        if dimension > 2_000:  # Vectors that no page holds lie elsewhere, which the planner does not count.
            connection.execute("SET enable_sort = off")
        for generation, length in ((1, 384), (2, dimension)):
            text, values = find_statement(Filters(), is_large=True)
            vector = Vector(np.random.default_rng(0).standard_normal(length).astype(np.float32))
            asked = parameters_for("large") | values | {"embedding": vector, "generation": generation}
            statement = typed(text, generation, length)
            plan = json.dumps(connection.execute(b"EXPLAIN (FORMAT JSON) " + statement, asked).fetchall())

            assert f"message_chunks_embedding_{generation}" in plan
            assert len(connection.execute(statement, asked).fetchall()) > 10


@pytest.mark.parametrize("dimension", [96, 2_100])
async def test_searches_read_the_old_vectors_until_those_of_another_dimension_are_complete(
    database: str, tmp_path: Path, dimension: int
) -> None:
    other = HashingModel(dimension, seed=5)
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        before, answers = await found(app), []

        async def search() -> None:
            answers.append(await found(app))

        with pytest.raises(Unavailable):
            await reembed(app, Recorded(other, before=search, fails_after=3))
        partly = owners(database, 2)
        await put(app, "/v1/notes", {"content": "a note of the old replica between two runs"})
        run = await reembed(app, Recorded(other))

        assert run.state is RunState.DONE
        assert 0 < len(partly) < len(owners(database, 2))
        assert owners(database, 1) == owners(database, 2)
        assert all(answer == before for answer in answers)
        assert all(is_made_by(OLD, row) for row in vectors(database, 1))
        assert all(is_made_by(other, row) for row in vectors(database, 2))


async def test_reads_and_writes_of_every_tier_go_on_with_vectors_of_another_dimension(
    database: str, tmp_path: Path
) -> None:
    other = HashingModel(96, seed=5)
    async with served(database, tmp_path, OLD) as app:
        await fill(app)
        await reembed(app, Recorded(other))
    async with served(database, tmp_path, other) as app:
        old = await found(app)
        await fill(app, "second")
        await put(app, "/v1/notes", {"content": "the green boat leaks at the stern badly"})
        await put(app, "/v1/graph/entities", {"entities": [{"name": "Berta Boat"}]})
        await app.indexed()
        entities = await nearest_entities(app, "Berta Boat", 2)

        assert old
        assert await found(app, workspace="second")
        assert {len(row[6]) for row in vectors(database, 2)} == {96}
        assert {len(row[6]) for row in vectors(database, 1)} == {384}
        assert max(entities.values()) == pytest.approx(1, abs=1e-5)
        for tier, source, text in (
            ("notes", Source.NOTES_HYBRID, "the red boat has a new mast"),
            ("sessions", Source.SESSION_VECTORS, "Ann Lee moved to the old harbour"),
            ("documents", Source.DOCUMENTS, "Boats need paint for the hull"),
            ("procedures", Source.PROCEDURES, "the engine of a boat stalls"),
        ):
            assert await nearest(app, text, tier, source), tier
        again = await reembed(app, Recorded(other))
    async with served(database, tmp_path, OLD) as app:
        back = await reembed(app, Recorded(OLD))

        assert again.counts.planned == 0
        assert back.counts.planned > 0
        assert await found(app, workspace="second")


@pytest.mark.parametrize("dimension", [384, 24, 2_100])
def test_from_a_number_of_rows_on_a_table_is_indexed_by_lists_and_back(database: str, dimension: int) -> None:
    claim_generation(database, HashingModel(dimension).identity)
    rows(database, MESSAGES, 1_500)
    rows(database, CHUNKS, 1, dimension)
    before, name = vector_indexes(database), "message_chunks_embedding" + ("" if dimension == 384 else "_1")

    choose_index_kinds(database, 1_501)
    few = rows(database, BY_LISTS)
    choose_index_kinds(database, 1_500)
    many, others = rows(database, BY_LISTS), vector_indexes(database)
    plan, found, exact = searched(database, dimension)
    choose_index_kinds(database, None)

    assert (few, many) == ([], [(f"{name}_lists",)])
    assert others == {kept: definition for kept, definition in before.items() if kept != name}
    assert f"{name}_lists" in plan
    # In half precision two that are nearly as near may change places at the end.
    assert len(found & exact) >= len(exact) - 2 >= 28
    assert rows(database, BY_LISTS) == []
    assert vector_indexes(database) == before


def test_lists_stay_until_half_of_the_rows_are_gone(database: str) -> None:
    claim_generation(database, HashingModel(24).identity)
    rows(database, MESSAGES, 1_500)
    rows(database, CHUNKS, 1, 24)
    kinds = []

    for row_limit in (1_500, 3_000, 3_002):
        choose_index_kinds(database, row_limit)
        kinds.append(bool(rows(database, BY_LISTS)))

    assert kinds == [True, True, False]


def test_vectors_stay_indexed_where_the_memory_does_not_suffice_for_lists(
    database: str, caplog: pytest.LogCaptureFixture
) -> None:
    claim_generation(database, HashingModel().identity)
    rows(database, MESSAGES, 1_500)
    rows(database, CHUNKS, 1, 384)
    before = vector_indexes(database)
    everything = "SELECT count(*) FROM pg_indexes"
    count = rows(database, everything)

    choose_index_kinds(make_conninfo(database, options="-c maintenance_work_mem=1MB"), 1_500)

    assert vector_indexes(database) == before
    assert rows(database, everything) == count
    assert "memory required is" in caplog.text


@pytest.mark.parametrize(
    ("kept", "lost", "row_limit"),
    [("create_bound_index", "create_lists", 1_500), ("create_lists", "create_bound_index", None)],
    ids=["lists", "HNSW"],
)
def test_vectors_stay_indexed_as_they_are_where_the_other_kind_cannot_be_built(
    database: str,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    kept: str,
    lost: str,
    row_limit: int | None,
) -> None:
    claim_generation(database, HashingModel().identity)
    rows(database, MESSAGES, 1_500)
    rows(database, CHUNKS, 1, 384)
    if kept == "create_lists":
        choose_index_kinds(database, 1_500)
    everything = "SELECT c.relname, i.indisvalid FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid ORDER BY 1"
    before = rows(database, everything)
    # It fails in the middle, as on a full disk, and leaves an index that is not valid.
    failing = b"CREATE UNIQUE INDEX CONCURRENTLY {name} ON {table} (generation)"
    monkeypatch.setitem(INDEX_QUERIES, lost, failing)

    choose_index_kinds(database, row_limit)

    assert rows(database, everything) == before
    assert "could not create unique index" in caplog.text


def test_indexes_are_left_to_the_next_start_where_the_server_does_not_answer(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    choose_index_kinds(make_conninfo(host=str(tmp_path)), 1_500)

    assert "indexes of vectors stay as they are" in caplog.text


def test_the_start_does_not_wait_for_indexes_that_others_build(database: str, caplog: pytest.LogCaptureFixture) -> None:
    claim_generation(database, HashingModel().identity)
    rows(database, MESSAGES, 1_500)
    rows(database, CHUNKS, 1, 384)
    before = vector_indexes(database)

    with psycopg.connect(database, autocommit=True, row_factory=dict_row) as other, vectors_locked(other):
        choose_index_kinds(database, 1_500)

    assert vector_indexes(database) == before
    assert "others build indexes of vectors" in caplog.text


def searched(url: str, dimension: int) -> tuple[str, set[Any], set[Any]]:
    """Search messages by vector; return the plan, the hits, and the exact nearest neighbours."""
    with psycopg.connect(url, autocommit=True, row_factory=dict_row) as connection:
        register_vector(connection)
        connection.execute("ANALYZE")
        connection.execute(SESSION_QUERIES["set_for_session"])
        connection.execute("SET enable_sort = off")
        vector = Vector(np.random.default_rng(0).standard_normal(dimension).astype(np.float32))
        text, values = find_statement(Filters(), is_large=True)
        asked = parameters_for("large") | values | {"embedding": vector, "most_read": 0}
        statement = typed(text, 1, dimension)
        plan = json.dumps(connection.execute(b"EXPLAIN (FORMAT JSON) " + statement, asked).fetchall())
        found = {row["id"] for row in connection.execute(statement, asked).fetchall() if row["cosine"] is not None}
        compared, values = find_statement(Filters(), is_large=False)
        every = connection.execute(compared, asked | values).fetchall()
        return plan, found, {row["id"] for row in every if row["cosine"] is not None}


def test_half_precision_begins_above_two_thousand_dimensions() -> None:
    assert [vector_type(length) for length in (2_000, 2_001)] == ["vector(2000)", "halfvec(2001)"]


def test_the_migrations_still_bind_what_the_code_unbinds() -> None:
    texts = "\n".join(migration.text for migration in migrations())

    assert texts.count("embedding vector(384)") == len(TABLES)
