"""Votes and pins: what they move, how far, and whose they are; and several searches in one call."""

import asyncio
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.core.queries import FusedHit, Memory
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.policies.ranking.feedback import MOST_SHARE, order_by_votes
from lamina.policies.retention.decay import note_weight
from lamina.stores.postgres.connection import scope_parameters
from lamina.stores.postgres.feedback import QUERIES
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.migrate import migrations
from lamina.wiring.stores import utc_now
from tests.support.application import Application, sent
from tests.support.jobs import in_days, run_job


def hit(score: float, *votes: int) -> FusedHit:
    return FusedHit(Memory(uuid4(), Tier.NOTES, "note", "text", utc_now(), votes=votes), score, {})


def test_votes_move_a_hit_by_a_tenth_of_its_score_at_most() -> None:
    far, near, buried = hit(0.9), hit(0.81, 10_000, 0), hit(0.8, 0, 10_000)
    last = hit(0.71)

    ordered = order_by_votes([far, near, buried, last])

    assert [one.memory.id for one in ordered] == [one.memory.id for one in (far, near, buried, last)]
    assert abs(ordered[1].score - 0.81) <= MOST_SHARE * 0.81
    assert order_by_votes([far, last]) == (far, last)


@pytest.mark.parametrize(("votes", "place"), [((1, 0), 0), ((0, 1), 2), ((1, 1), 1), ((0, 0), 1)])
def test_votes_decide_among_hits_that_are_about_as_good(votes: tuple[int, int], place: int) -> None:
    hits = [hit(0.50), hit(0.49, *votes), hit(0.48)]

    ordered = order_by_votes(hits)

    assert [one.memory.id for one in ordered].index(hits[1].memory.id) == place


def test_repetitions_that_stand_last_stay_there() -> None:
    first, second, repeated = hit(0.9), hit(0.5, 1, 0), hit(0.88)

    assert [one.score for one in order_by_votes([first, second, repeated])][2] == 0.88


def test_a_note_that_was_useful_fades_later_and_a_wrong_one_sooner() -> None:
    idle = timedelta(days=9)

    assert note_weight(idle, 0.5) > note_weight(idle) > note_weight(idle, -0.5) > 0


async def make(client: httpx.AsyncClient, content: str, **fields: Any) -> str:
    return str((await sent(client, "POST", "/v1/notes", json={"content": content, **fields}))["id"])


def bound_client(app: Application, role: KeyRole = KeyRole.WRITER, **lists: list[str]) -> httpx.AsyncClient:
    principal = new_principal(app.tenant, role, utc_now(), bounds=Bounds.from_lists(lists))
    return app.client(store_key(app.url, principal, "bound"))


async def test_a_key_has_one_vote_a_memory_and_a_later_one_takes_its_place(application: Application) -> None:
    client, other = application.client(), application.client(application.new_key(application.tenant))
    id_ = await make(client, f"The buoy {uuid4()} is green")

    for vote in ("useful", "useful", "wrong"):
        answer = await sent(client, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": vote})
    beside = await sent(other, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": "useful"})
    back = await sent(client, "DELETE", f"/v1/memories/{id_}/feedback")

    assert (answer["useful"], answer["wrong"], answer["own"]) == (0, 1, "wrong")
    assert (beside["useful"], beside["wrong"], beside["own"]) == (1, 1, "useful")
    assert (back["useful"], back["wrong"], back["own"]) == (1, 0, None)


async def found(client: httpx.AsyncClient, query: dict[str, Any], ids: list[str]) -> list[str]:
    answer = await sent(client, "POST", "/v1/search", json=query)
    return [one["id"] for one in answer["results"] if one["id"] in ids]


async def test_a_vote_changes_the_order_of_what_is_found_also_where_an_answer_was_cached(
    application: Application,
) -> None:
    client, scope = application.client(), {"workspace": f"w {uuid4().hex[:8]}"}
    word = uuid4().hex[:10]
    ids = [await make(client, f"The {word} boat number {number} leaks", **scope) for number in (1, 2)]
    await application.indexed()
    query = {**scope, "query": f"which {word} boat leaks?"}
    before = await found(client, query, ids)

    await sent(client, "PUT", f"/v1/memories/{before[-1]}/feedback", json={"vote": "useful"})
    await sent(client, "PUT", f"/v1/memories/{before[0]}/feedback", json={"vote": "wrong"})

    assert await found(client, query, ids) == before[::-1]


async def test_no_vote_of_another_tenant_changes_the_order(application: Application) -> None:
    client, scope = application.client(), {"workspace": f"w {uuid4().hex[:8]}"}
    word = uuid4().hex[:10]
    ids = [await make(client, f"The {word} boat number {number} leaks", **scope) for number in (1, 2)]
    await application.indexed()
    query = {**scope, "query": f"which {word} boat leaks?", "cache": False}
    before = await found(client, query, ids)
    with psycopg.connect(application.url) as connection:
        votes = "INSERT INTO feedback (memory_id, tenant, useful, wrong) VALUES (%s, 'another tenant', %s, %s)"
        connection.execute(votes, [before[-1], 9, 0])
        connection.execute(votes, [before[0], 0, 9])

    assert await found(client, query, ids) == before


async def test_a_key_of_a_user_votes_on_what_it_sees_and_pins_its_own_alone(application: Application) -> None:
    admin, client = application.client(), bound_client(application, users=["ann"])
    shared, own, foreign = [
        await make(admin, f"The buoy {uuid4()} is red", **scope) for scope in ({}, {"user": "ann"}, {"user": "bob"})
    ]

    async def status(method: str, path: str) -> int:
        return (await client.request(method, path, json={"vote": "wrong"} if method == "PUT" else None)).status_code

    assert [await status("PUT", f"/v1/memories/{id_}/feedback") for id_ in (shared, own, foreign)] == [200, 200, 404]
    assert [(await client.put(f"/v1/memories/{id_}/pin")).status_code for id_ in (shared, own, foreign)] == [
        403,
        200,
        404,
    ]
    assert [await status("GET", f"/v1/memories/{id_}/feedback") for id_ in (shared, own, foreign)] == [200, 200, 404]


async def test_every_tier_of_hit_takes_a_vote_and_strangers_and_words_do_not(unshared: Application) -> None:
    client = unshared.client()
    turn = {"session": "s", "messages": [{"content": "Mira moors the boat Orion"}]}
    await sent(client, "POST", "/v1/turns", json=turn)
    await sent(client, "POST", "/v1/documents", json={"content": "Mira moors the boat Orion with a rope"})
    await sent(client, "POST", "/v1/procedures", json={"trigger": "Mira moors the boat Orion", "action": "two ropes"})
    edge = {"subject": "Mira", "type": "moors", "object": "Orion"}
    await sent(client, "POST", "/v1/graph/edges", json={"edges": [edge]})
    await unshared.indexed()
    found = await sent(client, "POST", "/v1/search", json={"query": "Who moors the boat Orion?", "limit": 50})
    tiers = {one["tier"] for one in found["results"]}
    for one in found["results"]:
        answer = await sent(client, "PUT", f"/v1/memories/{one['id']}/feedback", json={"vote": "useful"})
        assert answer["useful"] == 1

    stranger = unshared.client(unshared.new_key("another tenant"))
    path = f"/v1/memories/{found['results'][0]['id']}/feedback"
    assert {"sessions", "documents", "procedures", "graph"} <= tiers
    assert (await stranger.put(path, json={"vote": "wrong"})).status_code == 404
    assert (await client.put(path, json={"vote": "無用"})).status_code == 422


async def test_a_vote_on_a_procedure_weighs_beside_its_outcomes(application: Application) -> None:
    client = application.client()
    body = {"trigger": f"the {uuid4().hex} leaks", "action": "caulk"}
    id_ = (await sent(client, "POST", "/v1/procedures", json=body))["id"]

    async def strength() -> float:
        return float((await sent(client, "GET", f"/v1/procedures/{id_}"))["strength"])

    untried = await strength()
    await sent(client, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": "wrong"})
    disliked = await strength()
    await sent(client, "POST", f"/v1/procedures/{id_}/outcomes", json={"succeeded": True})
    both = await strength()
    await sent(client, "DELETE", f"/v1/memories/{id_}/feedback")

    assert disliked < both == untried < await strength()


async def test_a_pinned_note_neither_fades_nor_goes_cold_until_it_is_let_go(unshared: Application) -> None:
    client = unshared.client()
    pinned, other = [await make(client, f"The {colour} buoy marks the harbour") for colour in ("red", "green")]
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE notes SET last_hit_at = now() - interval '400 days', weight = 0.1")
    await sent(client, "PUT", f"/v1/memories/{pinned}/pin")

    for job in ("decay", "sweep"):
        await run_job(unshared, job)

    notes = [await sent(client, "GET", f"/v1/notes/{id_}") for id_ in (pinned, other)]
    assert [(note["weight"], note["temperature"]) for note in notes] == [(1.0, "warm"), (0.0, "cold")]
    context = {"query": "What is for dinner tonight?", "pinned": True}
    assert "red buoy" in (await sent(client, "POST", "/v1/context", json=context))["text"]
    assert "red buoy" not in (await sent(client, "POST", "/v1/context", json={"query": "for dinner"}))["text"]
    await sent(client, "DELETE", f"/v1/memories/{pinned}/pin")
    await run_job(unshared, "sweep")
    assert (await sent(client, "GET", f"/v1/notes/{pinned}"))["temperature"] == "cold"


async def test_a_note_that_votes_made_fade_comes_back_when_they_are_changed(unshared: Application) -> None:
    id_ = await make(unshared.client(), "The lantern buoy marks the reef")
    voters = [unshared.client(unshared.new_key(unshared.tenant)) for _ in range(2)]
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE notes SET last_hit_at = now() - interval '12 days'")
    weights = []
    for vote in ("wrong", "useful"):
        for voter in voters:
            await sent(voter, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": vote})
        await run_job(unshared, "decay")
        weights.append((await sent(voters[0], "GET", f"/v1/notes/{id_}"))["weight"])

    assert weights[0] == 0
    assert weights[1] > 0.5


async def test_an_erasure_takes_the_votes_on_the_memories_of_the_user(unshared: Application) -> None:
    client = unshared.admin()
    id_ = await make(client, "Ann likes red buoys", user="ann")
    await sent(client, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": "useful"})
    await sent(client, "PUT", f"/v1/memories/{id_}/pin")

    await sent(client, "DELETE", "/v1/users", params={"user": "ann"})

    with psycopg.connect(unshared.url) as connection:
        left = "SELECT FROM votes WHERE memory_id = %(id)s UNION ALL SELECT FROM feedback WHERE memory_id = %(id)s"
        assert connection.execute(left, {"id": UUID(id_)}).rowcount == 0


@pytest.mark.parametrize("path", ["feedback", "pin"])
async def test_a_vote_on_a_memory_that_is_being_erased_does_not_outlive_it(application: Application, path: str) -> None:
    client, waiting = application.client(), "SELECT count(*) FROM pg_locks WHERE NOT granted"
    id_ = await make(client, "Oriel keeps bees behind the boathouse")
    async with await psycopg.AsyncConnection.connect(application.url, autocommit=True) as connection:
        async with connection.transaction():
            await connection.execute("DELETE FROM feedback WHERE memory_id = %s", (id_,))
            await connection.execute("DELETE FROM notes WHERE id = %s", (id_,))
            body = {"json": {"vote": "useful"}} if path == "feedback" else {}
            voting = asyncio.create_task(client.put(f"/v1/memories/{id_}/{path}", **body))
            while (await (await connection.execute(waiting)).fetchone()) == (0,):  # noqa: ASYNC110 - by others
                await asyncio.sleep(0.01)
        answer = await voting

        left = await (await connection.execute("SELECT FROM feedback WHERE memory_id = %s", (id_,))).fetchall()
    assert (answer.status_code, left) == (404, [])


async def test_several_searches_have_an_answer_or_an_error_each_as_one_alone(application: Application) -> None:
    client, scope = application.client(), {"workspace": f"w {uuid4().hex[:8]}", "user": "åsa 李"}
    for number in range(3):
        await make(client, f"Buoy number {number} is painted {['red', 'green', 'blue'][number]}", **scope)
    await application.indexed()
    queries = ["red buoy", {"query": "green buoy", "limit": 1, "explain": True}]
    wrong = [{"query": " "}, {"query": "x", "limit": "many"}, {"query": "x", "user": "bob"}, 7]

    body = {**scope, "searches": [*queries, *wrong]}
    answers = (await sent(client, "POST", "/v1/search/batch", json=body))["answers"]

    one_by_one = [{"query": "red buoy"}, {"query": "green buoy", "limit": 1, "explain": True}]
    alone = [await sent(client, "POST", "/v1/search", json={**scope, **query}) for query in one_by_one]
    assert [one["status"] for one in answers] == [200, 200, 422, 422, 422, 422]
    assert [one["answer"]["results"] for one in answers[:2]] == [one["results"] for one in alone]
    assert all(one["answer"] is None and one["problem"]["status"] == 422 for one in answers[2:])
    assert "searches.4.user" in answers[4]["problem"]["detail"]


@pytest.mark.parametrize("searches", [[], ["x"] * 17])
async def test_no_search_and_too_many_are_refused(application: Application, searches: list[str]) -> None:
    assert (await application.client().post("/v1/search/batch", json={"searches": searches})).status_code == 422


async def test_votes_end_with_their_memories_and_operations_a_month_after_their_end(application: Application) -> None:
    client = application.client()
    said = {"session": "s", "messages": [{"content": f"The tide turns at {number}"} for number in range(2)]}
    turn = await client.post("/v1/turns", json=said)
    gone, trashed = (message["id"] for message in turn.json()["messages"])
    assert (await client.post("/v1/documents", json={"key": "log", "content": "The keel was painted red"})).is_success
    [passage] = await rows_of(application, "SELECT id FROM passages WHERE tenant = %s")
    [document] = await rows_of(application, "SELECT id FROM documents WHERE tenant = %s")
    note = (await client.post("/v1/notes", json={"content": "The mast is new"})).json()["id"]
    for id_ in (gone, trashed, note, passage):
        assert (await client.put(f"/v1/memories/{id_}/feedback", json={"vote": "useful"})).is_success
    await client.post("/v1/notes/bulk", json={"everything": True, "add_tags": ["boat"]})
    for path in (f"messages/{gone}", f"messages/{trashed}", f"documents/{document}"):
        assert (await client.delete(f"/v1/{path}")).is_success
    async with application.pool.connection() as connection:
        await connection.execute("DELETE FROM trash WHERE id = %s", [gone])

    await run_job(application, "caches")
    soon = await rows_of(application, "SELECT memory_id AS id FROM votes WHERE tenant = %s")
    kept = await rows_of(application, "SELECT id FROM operations WHERE tenant = %s")
    await run_job(application, "caches", in_days(40))

    assert set(soon) == {trashed, note, passage}
    assert len(kept) == 1
    assert await rows_of(application, "SELECT memory_id AS id FROM votes WHERE tenant = %s") == [note]
    assert await rows_of(application, "SELECT memory_id AS id FROM feedback WHERE tenant = %s") == [note]
    assert await rows_of(application, "SELECT id FROM operations WHERE tenant = %s") == []


async def rows_of(application: Application, statement: str) -> list[str]:
    async with application.pool.connection() as connection:
        cursor = await connection.execute(statement.encode(), [application.tenant])
        return [str(row["id"]) async for row in cursor]


async def pinned(client: httpx.AsyncClient, **scope: str) -> str:
    query = {**scope, "query": "What is for dinner tonight?", "pinned": True, "cache": False}
    return str((await sent(client, "POST", "/v1/context", json=query))["text"])


async def test_a_pin_follows_a_note_that_moves_and_a_workspace_that_is_renamed(unshared: Application) -> None:
    client = unshared.admin()
    for name in ("moved", "left behind"):
        id_ = await make(client, f"The {name} buoy marks the harbour", workspace="old", tags=[name])
        await sent(client, "PUT", f"/v1/memories/{id_}/pin")

    move = {"workspace": "old", "tags": ["moved"], "to_workspace": "new"}
    moving = await sent(client, "POST", "/v1/notes/bulk", json=move)
    after = [await pinned(client, workspace=name) for name in ("old", "new")]
    rename = {"workspace": "new", "to_workspace": "newest"}
    renaming = await sent(client, "POST", "/v1/scopes/rename", json=rename)

    assert [one["operation"]["state"] for one in (moving, renaming)] == ["complete", "complete"]
    assert [("moved" in text, "left behind" in text) for text in after] == [(False, True), (True, False)]
    assert "moved" in await pinned(client, workspace="newest")
    with psycopg.connect(unshared.url) as connection:
        places = connection.execute("SELECT workspace FROM feedback ORDER BY workspace").fetchall()
    assert places == [("newest",), ("old",)]


async def test_a_pin_of_an_earlier_release_has_no_place_and_is_shown(unshared: Application) -> None:
    client = unshared.client()
    id_ = await make(client, "The red buoy marks the harbour")
    with psycopg.connect(unshared.url) as connection:
        pin = "INSERT INTO feedback (tenant, memory_id, pinned_at) VALUES (%s, %s, now())"
        connection.execute(pin, [unshared.tenant, id_])

    before = await pinned(client)
    await sent(client, "PUT", f"/v1/memories/{id_}/feedback", json={"vote": "useful"})

    assert "red buoy" in before
    assert "red buoy" in await pinned(client)
    with psycopg.connect(unshared.url) as connection:
        assert connection.execute("SELECT workspace, namespace FROM feedback").fetchall() == [("default", "default")]


def test_the_pins_of_a_workspace_are_read_without_those_of_others(database: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at) SELECT gen_random_uuid(), 't', 'w ' || n % 10, 'd', 'note', 'n ' || n,"
            " sha256(convert_to(n::text, 'UTF8')), 0.5, 0.8, 'api', now() FROM generate_series(1, 20000) n"
        )
        connection.execute(
            "INSERT INTO feedback (memory_id, tenant, workspace, namespace, pinned_at) SELECT id, tenant, workspace,"
            " namespace, now() FROM notes WHERE workspace <> 'w 1' OR content = 'n 1'"
        )
        connection.execute("ANALYZE notes, feedback")
        asked = {**scope_parameters(Scope("t", "w 1", "d")), "limit": 50, "as_of": None}
        text = b"EXPLAIN (ANALYZE, FORMAT JSON) " + QUERIES["list_pinned_notes"]
        row = connection.execute(text, asked).fetchone()

    assert row is not None
    assert "feedback_of_place" in str(row[0])
    assert rows_read(row[0][0]["Plan"]) < 100


def rows_read(node: dict[str, Any]) -> int:
    """Return how many rows a plan looked at in tables."""
    own = node["Actual Rows"] + node.get("Rows Removed by Filter", 0) if "Relation Name" in node else 0
    return int(own * node["Actual Loops"]) + sum(rows_read(below) for below in node.get("Plans", []))


def test_what_was_voted_on_and_pinned_before_gets_its_place(database: str) -> None:
    [places] = [migration for migration in migrations() if migration.name == "0064_places_of_feedback.sql"]
    note, gone = uuid4(), uuid4()
    with psycopg.connect(database) as connection:
        connection.execute("ALTER TABLE feedback DROP COLUMN workspace, DROP COLUMN namespace")
        connection.execute(
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at)"
            " VALUES (%s, 't', 'Øst 東', 'north', 'note', 'n', 'x', 0.5, 0.8, 'api', now())",
            [note],
        )
        for id_, tenant in ((note, "t"), (gone, "t")):
            connection.execute("INSERT INTO feedback (memory_id, tenant) VALUES (%s, %s)", [id_, tenant])

        connection.execute(places.text.encode())

        found = connection.execute("SELECT memory_id, workspace, namespace FROM feedback").fetchall()
    assert set(found) == {(note, "Øst 東", "north"), (gone, None, None)}
