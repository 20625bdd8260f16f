"""What time has left of entities and edges, and what a summary has left of a session."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from lamina.core.paging import Page
from lamina.core.queries import Filters
from lamina.stores.postgres.connection import QUERIES as SESSION_QUERIES
from lamina.stores.postgres.connection import in_transaction
from lamina.stores.postgres.filters import apply_filters
from lamina.stores.postgres.job_changes import RowChange, change_rows
from lamina.stores.postgres.messages import COLUMNS, QUERIES
from lamina.stores.postgres.outbox import enqueue
from tests.support.application import Application, fused_search
from tests.support.jobs import rows_of

EDGE = {"subject": "Ada Brown", "type": "works_at", "object": "Harbour Tours", "strength": 0.8, "confidence": 0.9}
SUMMARISED_AT = datetime(2026, 7, 1, tzinfo=UTC)


async def state(app: Application, *edges: Mapping[str, Any]) -> None:
    answer = await app.client().post("/v1/graph/edges", json={"edges": list(edges)})
    assert answer.status_code == 200, answer.text


async def age(app: Application, table: str, standing: float) -> None:
    """Leave this much of all edges or entities of the tenant, as a job does."""
    async with rows_of(app, table) as found:
        changes = [RowChange(row["id"], {"standing": standing}) for row in found]
    relation: Any = table

    async def act(connection: Any) -> None:
        rows = await change_rows(connection, relation, changes)
        await enqueue(connection, "graph", [row.get("from_id", row["id"]) for row in rows])

    await in_transaction(app.pool, act)
    await app.indexed()


async def standings(app: Application, table: str) -> list[float]:
    async with rows_of(app, table) as found:
        return [row["standing"] for row in found]


async def neighbours(app: Application, name: str = "Ada Brown") -> dict[str, Any]:
    answer = await app.client().get("/v1/graph/neighbours", params={"name": name})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def facts(app: Application, query: str = "Ada Brown", **fields: Any) -> dict[str, dict[str, Any]]:
    answer = await app.client().post("/v1/search", json={"query": query, "tiers": ["graph"], "cache": False, **fields})
    return {hit["content"]: hit for hit in answer.json()["results"] if hit["kind"] == "fact"}


async def drift_of(app: Application) -> Any:
    return await app.services.audits["graph"](app.tenant)


@pytest.mark.parametrize("standing", [1.0, 0.5, 0.3])
async def test_an_edge_counts_as_much_as_time_has_left_of_it(application: Application, standing: float) -> None:
    await state(application, EDGE)
    await application.indexed()
    (before,) = (await neighbours(application))["neighbours"]

    await age(application, "edges", standing)
    (after,) = (await neighbours(application))["neighbours"]
    (fact,) = (await facts(application)).values()
    drift = await drift_of(application)

    assert after["strength"] == pytest.approx(before["strength"] * standing)
    assert fact["importance"] == pytest.approx(0.8 * standing)
    assert fact["confidence"] == pytest.approx(0.9)
    assert drift.ids() == ()


async def test_an_edge_that_time_has_left_nothing_of_is_not_followed_and_not_lost(application: Application) -> None:
    await application.client().post("/v1/notes", json={"content": "Ada Brown is on holiday."})
    await state(application, EDGE)
    await application.indexed()
    context = {"query": "Ada Brown", "min_score": 0, "cache": False}
    before = (await application.client().post("/v1/context", json=context)).json()["text"]

    await age(application, "edges", 0.1)
    after = (await application.client().post("/v1/context", json=context)).json()["text"]
    links = {item["kind"] for item in (await neighbours(application))["neighbours"]}

    assert "works_at" in before
    assert "works_at" not in after
    assert "works_at" not in links
    assert await facts(application) == {}
    assert await standings(application, "edges") == [0.1]
    assert (await drift_of(application)).ids() == ()


async def test_an_edge_of_just_the_least_strength_is_followed(application: Application) -> None:
    await state(application, {**EDGE, "strength": 0.2})
    await age(application, "edges", 0.5)

    assert [item["kind"] for item in (await neighbours(application))["neighbours"]] == ["works_at"]


async def test_a_faded_edge_is_no_hint_though_the_graph_lags_behind(application: Application) -> None:
    await application.client().post("/v1/notes", json={"content": "Ada Brown is on holiday."})
    await state(application, EDGE)
    await application.indexed()
    async with application.pool.connection() as connection:
        await connection.execute(b"UPDATE edges SET standing = 0.05 WHERE tenant = %s", [application.tenant])

    context = {"query": "Ada Brown", "min_score": 0, "cache": False}
    text = (await application.client().post("/v1/context", json=context)).json()["text"]

    assert "works_at" not in text
    assert await facts(application) == {}


async def test_what_is_told_again_stands_as_at_first(application: Application) -> None:
    await state(application, EDGE)
    await age(application, "edges", 0.1)
    await age(application, "entities", 0.1)

    await state(application, EDGE)
    await application.indexed()

    assert await standings(application, "edges") == [1.0]
    assert await standings(application, "entities") == [1.0, 1.0]
    assert [item["kind"] for item in (await neighbours(application))["neighbours"]] == ["works_at"]


async def test_a_text_that_names_an_entity_lets_it_stand_again(application: Application) -> None:
    await application.client().post("/v1/notes", json={"content": "Ada Brown is on holiday.", "source": "a letter"})
    await age(application, "entities", 0.3)
    faded = (await neighbours(application))["entity"]

    # Names no entity by itself: it only holds the name of a known one.
    await application.client().post("/v1/notes", json={"content": "seen today: ada brown", "source": "a call"})
    told = (await neighbours(application))["entity"]

    assert faded["confidence"] == pytest.approx(0.3 * 0.8, abs=0.1)
    assert told["confidence"] > 0.7
    assert await standings(application, "entities") == [1.0]


async def test_an_entity_is_as_sure_as_time_has_left_of_it(application: Application) -> None:
    entity = {"name": "Ada Brown", "type": "person", "confidence": 0.8}
    await application.client().post("/v1/graph/entities", json={"entities": [entity]})
    await age(application, "entities", 0.5)

    async def entities_found(**fields: Any) -> list[float]:
        search = {"query": "Ada Brown", "tiers": ["graph"], "cache": False, **fields}
        results = (await application.client().post("/v1/search", json=search)).json()["results"]
        return [hit["confidence"] for hit in results if hit["kind"] == "entity"]

    assert (await neighbours(application))["entity"]["confidence"] == pytest.approx(0.4)
    assert await entities_found() == []
    assert await entities_found(min_confidence=0.4) == [pytest.approx(0.4)]
    assert await entities_found(min_confidence=0, filters={"confidence": {"lt": 0.5}}) == [pytest.approx(0.4)]


async def said(app: Application, *contents: str, session: str = "s") -> list[str]:
    messages = [{"content": text, "ref": str(place)} for place, text in enumerate(contents)]
    answer = await app.client().post("/v1/turns", json={"session": session, "messages": messages})
    assert answer.status_code == 200, answer.text
    return [item["id"] for item in answer.json()["messages"]]


async def summarised(app: Application, ids: Sequence[str], summary: str = "They spoke of boats.") -> str:
    """Put a summary in the place of messages, as the compaction does."""
    id_ = uuid4()
    (row,) = app.model.encode([summary])
    after = {"compacted_at": SUMMARISED_AT, "compacted_into": id_}
    changes = [RowChange(UUID(item), after, dict.fromkeys(after)) for item in ids]

    async def act(connection: Any) -> None:
        await connection.execute(
            b"INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, "
            b"content_hash, metadata, occurred_at, is_summary) SELECT %s, tenant, workspace, namespace, session_id, "
            b"position, 'system', %s, sha256(%s::bytea), '{}', occurred_at, true FROM messages WHERE id = %s",
            [id_, summary, summary.encode(), ids[-1]],
        )
        await connection.execute(
            b"INSERT INTO message_chunks (message_id, chunk, tenant, workspace, namespace, session_id, occurred_at, "
            b"text_start, text_end, generation, embedding) SELECT id, 0, tenant, workspace, namespace, session_id, "
            b"occurred_at, 0, length(content), %s, %s::real[]::vector FROM messages WHERE id = %s",
            [fused_search(app)._generation, row.tolist(), id_],
        )
        changed = await change_rows(connection, "messages", changes)
        assert len(changed) == len(ids)
        for projection in ("messages", "graph"):
            await enqueue(connection, projection, [id_, *(UUID(item) for item in ids)])

    await in_transaction(app.pool, act)
    await app.indexed()
    return str(id_)


async def history(app: Application, **params: Any) -> list[dict[str, Any]]:
    answer = await app.client().get("/v1/sessions/s/messages", params=params)
    found: list[dict[str, Any]] = answer.json()["messages"]
    return found


TALK = ("the boat is green", "the mast is high", "the sail is torn", "the anchor is rusty")


async def test_a_summary_stands_in_the_session_for_what_it_took_the_place_of(application: Application) -> None:
    first, second, third, fourth = await said(application, *TALK)
    summary = await summarised(application, [first, second])

    shown = await history(application)
    everything = await history(application, include_compacted="true")
    pages = [
        item["id"]
        for offset in range(5)
        for item in await history(application, include_compacted="true", limit=1, offset=offset)
    ]

    assert [(item["id"], item["position"], item["is_summary"]) for item in shown] == [
        (summary, 2, True),
        (third, 3, False),
        (fourth, 4, False),
    ]
    assert [item["id"] for item in everything] == pages == [first, second, summary, third, fourth]
    assert [item["compacted_into"] for item in everything] == [summary, summary, None, None, None]


async def test_what_was_compacted_is_in_no_source_of_a_search(application: Application) -> None:
    first, second, third, fourth = await said(application, *TALK)
    summary = await summarised(application, [first, second])

    search = {"query": "is the boat green", "tiers": ["sessions", "graph"], "explain": True, "cache": False}
    results = (await application.client().post("/v1/search", json={**search, "limit": 10})).json()["results"]
    ids = {hit["id"] for hit in results}
    spoken = (await application.client().post("/v1/search", json={**search, "query": "they spoke of boats"})).json()

    assert ids <= {summary, third, fourth}
    assert spoken["results"][0]["id"] == summary


async def test_a_compacted_message_that_is_delivered_again_is_known(application: Application) -> None:
    ids = await said(application, *TALK)
    await summarised(application, ids[:2])

    again = await said(application, *TALK)

    assert again == ids
    assert len(await history(application)) == 3


async def test_projections_hold_no_compacted_message(unshared: Application) -> None:
    ids = await said(unshared, "Ada Brown works at Harbour Tours.", *TALK)
    await summarised(unshared, ids[:2])

    drifts = {name: await audit(unshared.tenant) for name, audit in unshared.services.audits.items()}

    assert {name: drift.ids() for name, drift in drifts.items()} == dict.fromkeys(drifts, ())
    assert drifts["messages"].found == len(ids) - 1


async def test_a_summary_is_the_neighbour_of_what_follows_it(application: Application) -> None:
    ids = await said(application, *TALK)
    summary = await summarised(application, ids[:2])
    asked = "the sail is torn"
    search = {"query": asked, "tiers": ["sessions"], "explain": True, "cache": False, "limit": 10}

    results = (await application.client().post("/v1/search", json=search)).json()["results"]
    placed = {hit["id"]: hit["explain"].get("session_context") for hit in results}

    assert placed[ids[2]] is not None
    around = await _around(application, ids[2])
    assert around == {summary: 2, ids[2]: 3, ids[3]: 4}


async def _around(app: Application, id_: str) -> dict[str, int]:
    text, values = apply_filters(QUERIES["find_messages_around"], Filters(), COLUMNS)
    asked = {"tenant": app.tenant, "workspace": "default", "namespace": "default", "user_id": None, "session_id": None}
    parameters = {**asked, **values, "ids": [UUID(id_)], "embedding": None}
    async with app.pool.connection() as connection:
        cursor = await connection.execute(text, {**parameters, "generation": fused_search(app)._generation})
        return {str(row["id"]): row["position"] for row in await cursor.fetchall()}


FILL = """
INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, content_hash, occurred_at)
SELECT gen_random_uuid(), 'acme', 'w', 'n', 's' || n %% 20, n / 20, 'user', 'it', sha256(n::text::bytea), now()
FROM generate_series(1, %s) AS n
"""


@pytest.mark.parametrize("session", [None, "s3"])
def test_messages_and_summaries_are_read_by_their_positions(database: str, session: str | None) -> None:
    around, values = apply_filters(QUERIES["find_messages_around"], Filters(), COLUMNS)
    asked = {"tenant": "acme", "workspace": "w", "namespace": "n", "session_id": session, "user_id": None}
    page = {**Page(10, (5, False, UUID(int=0))).parameters("position", "is_summary", "id"), "include_compacted": False}
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(FILL.encode(), [20_000])
        connection.execute("VACUUM ANALYZE messages")
        connection.execute(SESSION_QUERIES["set_for_session"])
        ids = [row[0] for row in connection.execute("SELECT id FROM messages LIMIT 5").fetchall()]
        parameters = {**asked, **values, **page, "ids": ids, "embedding": None, "generation": 1}
        explained = [
            json.dumps(connection.execute(b"EXPLAIN (FORMAT JSON) " + text, parameters).fetchall())
            for text in (around, QUERIES["list_messages"])[: 1 if session is None else 2]
        ]

    for plan in explained:
        assert "messages_one_at_each_position" in plan
        assert "messages_summaries" in plan
        assert "Seq Scan" not in plan
