"""What was deleted comes back as it was, for a time, and not after an erasure."""

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from psycopg.rows import dict_row

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.retention import end_of_tenant
from lamina.stores.postgres.trash import QUERIES
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, sent, settings_for

WORD = "heliotrope"


async def entries(app: Application, **scope: str) -> list[dict[str, Any]]:
    return list((await sent(app.client(), "GET", "/v1/trash", params=scope))["entries"])


async def found(app: Application, query: str, **fields: Any) -> list[str]:
    await app.indexed()
    answer = await sent(app.client(), "POST", "/v1/search", json={"query": query, "cache": False, **fields})
    return [str(hit["id"]) for hit in answer["results"]]


async def make(app: Application, kind: str, word: str) -> tuple[str, str]:
    """Make a memory of a kind; return its id and the path that deletes it."""
    client = app.client()
    match kind:
        case "note":
            id_ = (await sent(client, "POST", "/v1/notes", json={"content": f"The {word} boat leaks"}))["id"]
            return id_, f"/v1/notes/{id_}"
        case "message":
            message = {"content": f"The {word} boat leaks", "occurred_at": "2026-01-02T03:04:05Z"}
            body = {"session": word, "messages": [message]}
            id_ = (await sent(client, "POST", "/v1/turns", json=body))["messages"][0]["id"]
            return id_, f"/v1/messages/{id_}"
        case "procedure":
            body = {"trigger": f"the {word} boat leaks", "action": "caulk it"}
            id_ = (await sent(client, "POST", "/v1/procedures", json=body))["id"]
            return id_, f"/v1/procedures/{id_}"
        case _:
            body = {"key": word, "content": f"The {word} boat leaks"}
            id_ = (await sent(client, "POST", "/v1/documents", json=body))["id"]
            return id_, f"/v1/documents/{id_}"


KINDS = ["note", "message", "procedure", "document"]


@pytest.mark.parametrize("kind", KINDS)
async def test_what_was_deleted_is_listed_and_comes_back_as_it_was(application: Application, kind: str) -> None:
    word = f"{WORD}{uuid4().hex[:8]}"
    id_, path = await make(application, kind, word)
    before = await found(application, f"{word} boat")
    await sent(application.client(), "DELETE", path)
    away = await found(application, f"{word} boat")
    [entry] = [one for one in await entries(application) if one["id"] == id_]

    await sent(application.client(), "POST", f"/v1/trash/{id_}/restore")

    assert before
    assert before[0] not in away
    assert (entry["kind"], entry["ends_at"] > entry["deleted_at"]) == (kind, True)
    assert before[0] in await found(application, f"{word} boat")
    assert id_ not in {one["id"] for one in await entries(application)}
    again = await application.client().post(f"/v1/trash/{id_}/restore")
    assert again.status_code == 404
    kinds = {event["kind"] for event in await events_of(application, id_)}
    assert {f"{kind}.deleted", f"{kind}.restored"} <= kinds


async def events_of(app: Application, id_: str) -> list[dict[str, Any]]:
    answer = await sent(app.client(), "GET", "/v1/events", params={"limit": 1000})
    return [event for event in answer["events"] if id_ in event["ids"]]


async def test_the_same_text_written_again_brings_its_note_back(application: Application) -> None:
    text = f"The {WORD} boat of {uuid4()} leaks in Oslo with Bob Lee"
    client = application.client()
    first = await sent(client, "POST", "/v1/notes", json={"content": text, "user": "ann"})
    await sent(client, "DELETE", f"/v1/notes/{first['id']}")

    other = await sent(client, "POST", "/v1/notes", json={"content": text, "user": "bob"})
    again = await sent(client, "POST", "/v1/notes", json={"content": text, "user": "ann"})

    assert other["id"] != first["id"]  # Another scope has nothing of it.
    assert again["id"] == first["id"]
    assert await entries(application, user="ann") == []
    assert first["id"] in await found(application, text, user="ann")
    assert "note.restored" in {event["kind"] for event in await events_of(application, first["id"])}


async def test_a_message_comes_back_to_its_place(application: Application) -> None:
    client, session = application.client(), str(uuid4())
    messages = [{"content": f"{WORD} {place}", "metadata": {"b": 1, "a": [1.50, None]}} for place in range(3)]
    said = (await sent(client, "POST", "/v1/turns", json={"session": session, "messages": messages}))["messages"]
    before = await sent(client, "GET", f"/v1/sessions/{session}/messages")
    await sent(client, "DELETE", f"/v1/messages/{said[1]['id']}")
    await sent(client, "POST", "/v1/turns", json={"session": session, "messages": [{"content": "after"}]})

    await sent(client, "POST", f"/v1/trash/{said[1]['id']}/restore")

    after = await sent(client, "GET", f"/v1/sessions/{session}/messages")
    assert after["messages"][:3] == before["messages"]
    assert [message["position"] for message in after["messages"]] == [1, 2, 3, 4]


async def test_notes_made_from_a_note_come_back_with_it(application: Application) -> None:
    client = application.client()
    source = await sent(client, "POST", "/v1/notes", json={"content": f"A source {uuid4()}"})
    body = {"content": f"A derived one {uuid4()}", "derived_from": [source["id"]]}
    made = await sent(client, "POST", "/v1/notes", json=body)
    await sent(client, "DELETE", f"/v1/notes/{source['id']}")
    assert (await client.get(f"/v1/notes/{made['id']}")).status_code == 404

    await sent(client, "POST", f"/v1/trash/{source['id']}/restore")

    assert (await client.get(f"/v1/notes/{made['id']}")).status_code == 200


@pytest.mark.parametrize("first", [0, 1])
async def test_a_note_made_from_several_comes_back_with_the_last_of_them(application: Application, first: int) -> None:
    client = application.client()
    sources = [(await sent(client, "POST", "/v1/notes", json={"content": f"Source {uuid4()}"}))["id"] for _ in range(2)]
    body = {"content": f"A derived one {uuid4()}", "derived_from": sources}
    made = (await sent(client, "POST", "/v1/notes", json=body))["id"]
    body = {"content": f"One derived from that {uuid4()}", "derived_from": [made]}
    further = (await sent(client, "POST", "/v1/notes", json=body))["id"]
    for id_ in sources:
        await sent(client, "DELETE", f"/v1/notes/{id_}")
    order = [sources[first], sources[1 - first]]

    seen = []
    for id_ in order:
        await sent(client, "POST", f"/v1/trash/{id_}/restore")
        seen.append([(await client.get(f"/v1/notes/{one}")).status_code for one in (id_, made, further)])

    assert seen == [[200, 404, 404], [200, 200, 200]]


async def test_a_note_that_was_deleted_before_its_source_is_not_restored_without_that(application: Application) -> None:
    client = application.client()
    source, newer = [
        (await sent(client, "POST", "/v1/notes", json={"content": f"Source {uuid4()}"}))["id"] for _ in range(2)
    ]
    body = {"content": f"A derived one {uuid4()}", "derived_from": [source, newer]}
    made = (await sent(client, "POST", "/v1/notes", json=body))["id"]
    for id_ in (made, newer, source):
        await sent(client, "DELETE", f"/v1/notes/{id_}")

    refused = [await client.post(f"/v1/trash/{made}/restore")]
    await sent(client, "POST", f"/v1/trash/{source}/restore")
    refused.append(await client.post(f"/v1/trash/{made}/restore"))
    meanwhile = await client.get(f"/v1/notes/{made}")
    await sent(client, "POST", f"/v1/trash/{newer}/restore")
    await sent(client, "POST", f"/v1/trash/{made}/restore")

    assert [answer.status_code for answer in refused] == [409, 409]
    assert "restore these first" in refused[0].json()["detail"]
    assert meanwhile.status_code == 404
    assert (await client.get(f"/v1/notes/{made}")).status_code == 200


async def test_a_note_written_again_ends_and_rests_on_others_as_is_written_then(application: Application) -> None:
    client, text = application.client(), f"The {WORD} boat of {uuid4()}"
    older, newer = [(await sent(client, "POST", "/v1/notes", json={"content": f"{uuid4()}"}))["id"] for _ in range(2)]
    first = await sent(client, "POST", "/v1/notes", json={"content": text, "ttl_s": 600, "derived_from": [older]})
    path = f"/v1/notes/{first['id']}"
    await sent(client, "DELETE", path)
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE notes SET expires_at = now() - interval '1 s' WHERE id = %s", [first["id"]])
    refused = [
        await client.post("/v1/notes", json={"content": text, "derived_from": [source]})
        for source in (str(uuid4()), first["id"])
    ]

    again = await sent(client, "POST", "/v1/notes", json={"content": text, "ttl_s": 600, "derived_from": [newer]})
    expires_at = (await sent(client, "GET", path))["expires_at"]
    await sent(client, "DELETE", f"/v1/notes/{older}")
    after_older = await client.get(path)
    await sent(client, "DELETE", f"/v1/notes/{newer}")

    assert [answer.status_code for answer in refused] == [422, 422]
    assert again["id"] == first["id"]
    assert expires_at is not None
    assert [after_older.status_code, (await client.get(path)).status_code] == [200, 404]


@pytest.mark.parametrize("kind", ["message", "procedure", "document"])
async def test_what_the_scope_has_again_is_not_restored_beside_it(application: Application, kind: str) -> None:
    word = f"{WORD}{uuid4().hex[:8]}"
    id_, path = await make(application, kind, word)
    await sent(application.client(), "DELETE", path)
    await make(application, kind, word)

    answer = await application.client().post(f"/v1/trash/{id_}/restore")

    assert answer.status_code == 409, answer.text
    assert id_ in {one["id"] for one in await entries(application)}


async def test_a_foreign_tenant_sees_and_restores_nothing(application: Application) -> None:
    id_, path = await make(application, "note", f"{WORD}{uuid4().hex[:8]}")
    await sent(application.client(), "DELETE", path)
    other = application.for_tenant(f"other {uuid4()}")

    assert await entries(other) == []
    assert (await other.client().post(f"/v1/trash/{id_}/restore")).status_code == 404
    await other.close_clients()


@pytest.mark.parametrize("kind", ["note", "message", "document"])
async def test_an_erasure_empties_the_trash_of_its_user(unshared: Application, kind: str) -> None:
    user, client = f"ann {uuid4()}", unshared.client()
    word = f"{WORD}{uuid4().hex[:8]}"
    bodies = {
        "note": ("/v1/notes", {"content": word}),
        "message": ("/v1/turns", {"session": word, "messages": [{"content": word}]}),
        "document": ("/v1/documents", {"content": word}),
    }
    path, body = bodies[kind]
    made = await sent(client, "POST", path, json={**body, "user": user})
    id_ = made["messages"][0]["id"] if kind == "message" else made["id"]
    await sent(client, "DELETE", f"/v1/{kind}s/{id_}")
    assert [one["id"] for one in await entries(unshared, user=user)] == [id_]
    admin = unshared.admin()

    erasure = await sent(admin, "DELETE", "/v1/users", params={"user": user})

    assert (erasure["erased"]["trash"] <= 1, erasure["left"]["trash"]) == (True, 0)
    assert await entries(unshared, user=user) == []
    assert (await client.post(f"/v1/trash/{id_}/restore")).status_code == 404
    with psycopg.connect(unshared.url) as connection:
        assert word not in str(connection.execute("SELECT * FROM trash").fetchall())


async def test_what_lies_there_for_too_long_ends(application: Application) -> None:
    id_, path = await make(application, "message", f"{WORD}{uuid4().hex[:8]}")
    await sent(application.client(), "DELETE", path)
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE trash SET deleted_at = deleted_at - interval '40 days' WHERE id = %s", [id_])

    assert id_ not in {one["id"] for one in await entries(application)}
    assert (await application.client().post(f"/v1/trash/{id_}/restore")).status_code == 404
    await end_of_tenant(application.pool, application.tenant, {"trash": timedelta(days=30)}, utc_now())
    with psycopg.connect(application.url) as connection:
        assert connection.execute("SELECT FROM trash WHERE id = %s", [id_]).rowcount == 0


def client_of(app: Application, *users: str) -> httpx.AsyncClient:
    """A client whose key is bound to users."""
    principal = new_principal(app.tenant, KeyRole.WRITER, utc_now(), bounds=Bounds(users=frozenset(users)))
    return app.client(store_key(app.url, principal, "bound"))


async def discarded_procedure(app: Application, user: str, *, is_private: bool) -> str:
    """Delete a procedure that a user's runs taught; return its id."""
    id_, path = await make(app, "procedure", f"{WORD}{uuid4().hex[:8]}")
    with psycopg.connect(app.url) as connection:
        connection.execute(
            "UPDATE procedures SET user_id = %s, is_private = %s, is_learnt = true WHERE id = %s",
            [user, is_private, id_],
        )
    await sent(app.admin(), "DELETE", path)
    return id_


@pytest.mark.parametrize(("is_private", "own", "foreign"), [(False, 403, 403), (True, 403, 404)])
async def test_a_key_of_a_user_restores_no_procedure_since_it_may_write_none(
    application: Application, is_private: bool, own: int, foreign: int
) -> None:
    user = f"ann {uuid4()}"
    id_ = await discarded_procedure(application, user, is_private=is_private)

    answers = [await client_of(application, name).post(f"/v1/trash/{id_}/restore") for name in (user, f"bob {uuid4()}")]

    assert [answer.status_code for answer in answers] == [own, foreign]
    assert (await application.client().get(f"/v1/procedures/{id_}")).status_code == 404
    restored = await sent(application.client(), "POST", f"/v1/trash/{id_}/restore")
    assert restored["user"] == (user if is_private else None)
    assert (await application.client().get(f"/v1/procedures/{id_}")).status_code == 200


@pytest.mark.parametrize("is_private", [False, True])
async def test_an_erasure_takes_the_procedures_of_its_user_out_of_the_trash(
    unshared: Application, is_private: bool
) -> None:
    user = f"ann {uuid4()}"
    id_ = await discarded_procedure(unshared, user, is_private=is_private)
    admin = unshared.admin()

    await sent(admin, "DELETE", "/v1/users", params={"user": user})

    with psycopg.connect(unshared.url) as connection:
        assert connection.execute("SELECT * FROM trash WHERE id = %s", [id_]).fetchall() == []
    assert (await unshared.client().post(f"/v1/trash/{id_}/restore")).status_code == 404


@pytest.mark.parametrize("kind", ["message", "document"])
async def test_what_an_earlier_release_discarded_has_the_defaults_of_later_columns(
    unshared: Application, kind: str
) -> None:
    word = f"{WORD}{uuid4().hex[:8]}"
    id_, path = await make(unshared, kind, word)
    before = await found(unshared, f"{word} boat")
    await sent(unshared.client(), "DELETE", path)
    with psycopg.connect(unshared.url) as connection:
        connection.execute(f"ALTER TABLE {kind}s ADD COLUMN later text NOT NULL DEFAULT 'a default'")
        chunks = "message_chunks" if kind == "message" else "passage_chunks"
        connection.execute(f"ALTER TABLE {chunks} ADD COLUMN later integer NOT NULL DEFAULT 7")
        # Of a column that is no more, too.
        connection.execute(
            "UPDATE trash SET rows = jsonb_set(rows::jsonb, %s, '1')::json WHERE id = %s",
            [[f"{kind}s", "0", "former"], id_],
        )

    await sent(unshared.client(), "POST", f"/v1/trash/{id_}/restore")

    assert before[0] in await found(unshared, f"{word} boat")
    with psycopg.connect(unshared.url, row_factory=dict_row) as connection:
        rows = connection.execute(f"TABLE {kind}s").fetchall()
    assert [row["later"] for row in rows] == ["a default"]


@pytest.mark.parametrize("kind", KINDS)
async def test_nothing_is_discarded_where_nothing_is_kept(database: str, tmp_path: Path, kind: str) -> None:
    settings = settings_for(database, tmp_path, history={"trash_days": 0})
    async with running(settings, database, HashingModel()) as app:
        id_, path = await make(app, kind, f"{WORD}{uuid4().hex[:8]}")

        await sent(app.client(), "DELETE", path)

        with psycopg.connect(app.url) as connection:
            assert connection.execute("SELECT * FROM trash WHERE id = %s", [id_]).fetchall() == []
        assert (await app.client().post(f"/v1/trash/{id_}/restore")).status_code == 404


async def test_a_text_is_looked_for_in_the_trash_by_its_hash(application: Application) -> None:
    parameters = {
        "tenant": application.tenant,
        "workspace": "default",
        "namespace": "default",
        "user_id": None,
        "kind": "note",
        "hashes": [b"hash 1", b"hash 2"],
        "cutoff": utc_now(),
    }
    with psycopg.connect(application.url) as connection:
        connection.execute(
            "INSERT INTO trash (tenant, id, workspace, namespace, kind, content_hash, deleted_at) "
            "SELECT %s, gen_random_uuid(), 'default', 'default', 'note', ('hash ' || i)::bytea, now() "
            "FROM generate_series(1, 20000) i",
            [application.tenant],
        )
        connection.execute("ANALYZE trash")
        plan = str(connection.execute(b"EXPLAIN " + QUERIES["find_discarded"], parameters).fetchall())
        connection.rollback()

    assert "trash_of_text" in plan


async def test_the_list_names_what_was_deleted_and_shows_one_kind_alone(alone: Application) -> None:
    client = alone.client()
    for kind in ("note", "message", "procedure", "document"):
        _, path = await make(alone, kind, WORD)
        await client.delete(path)
    long = (await sent(client, "POST", "/v1/notes", json={"content": f"The {WORD} " + "long " * 100}))["id"]
    await client.delete(f"/v1/notes/{long}")

    listed = await entries(alone)
    notes = await entries(alone, kind="note")
    unknown = await client.get("/v1/trash", params={"kind": "edge"})

    text = f"The {WORD} boat leaks"
    titles = {(entry["kind"], entry["title"]) for entry in listed if entry["id"] != long}
    assert titles == {("note", text), ("message", text), ("procedure", text.replace("The", "the")), ("document", text)}
    assert [entry["kind"] for entry in notes] == ["note", "note"]
    assert [len(entry["title"]) for entry in notes] == [120, len(text)]
    assert unknown.status_code == 422


async def facts_of(app: Application, subject: str, **scope: str) -> list[tuple[str, str, float]]:
    listed = await app.client().get("/v1/facts", params={"subject": subject, **scope})
    # An entity that nothing mentions any more is not found.
    facts = listed.json()["facts"] if listed.is_success else []
    return sorted((fact["relation"], fact["object"], fact["confidence"]) for fact in facts)


async def test_a_message_and_a_note_come_back_with_the_facts_that_they_stated(application: Application) -> None:
    client, scope = application.client(), {"workspace": "facts", "user": "ann"}
    message = {"content": "I live in Graz.", "name": "Ann", "occurred_at": "2026-05-01T10:00:00Z"}
    turn = await sent(client, "POST", "/v1/turns", json={**scope, "session": "s", "messages": [message]})
    stated = await facts_of(application, "Ann", **scope)
    memories = [
        *(f"/v1/messages/{item['id']}" for item in turn["messages"]),
        *(f"/v1/notes/{item['id']}" for item in turn["notes"]),
    ]

    for path in memories:
        await sent(client, "DELETE", path)
    away = await facts_of(application, "Ann", **scope)
    for path in memories:
        await sent(client, "POST", f"/v1/trash/{path.rpartition('/')[2]}/restore")

    assert ("lives_in", "Graz") in {fact[:2] for fact in stated}
    assert away == []
    assert await facts_of(application, "Ann", **scope) == stated


async def test_memories_that_come_back_are_no_further_witnesses(application: Application) -> None:
    client, scope = application.client(), {"workspace": "witness"}
    said = ["Ada works at Initech.", "As we know, Ada works at Initech.", "Ada works at Initech, I hear."]
    ids = [(await sent(client, "POST", "/v1/notes", json={**scope, "content": text}))["id"] for text in said]
    before = await facts_of(application, "Ada", **scope)

    for id_ in ids:
        await sent(client, "DELETE", f"/v1/notes/{id_}")
    for id_ in ids:
        await sent(client, "POST", f"/v1/trash/{id_}/restore")

    assert before
    assert await facts_of(application, "Ada", **scope) == before


async def test_what_a_note_of_two_sources_stated_comes_back_with_the_last_of_them(application: Application) -> None:
    client, scope = application.client(), {"workspace": "two sources", "user": "ann"}

    async def add(content: str, *sources: str) -> str:
        body = {**scope, "content": content, "derived_from": list(sources)}
        return str((await sent(client, "POST", "/v1/notes", json=body))["id"])

    one, other = await add("The pier is long"), await add("The harbour is deep")
    made = await add("Ada works at Initech.", one, other)
    stated = await facts_of(application, "Ada", **scope)

    for id_ in (one, other):
        await sent(client, "DELETE", f"/v1/notes/{id_}")
    for id_ in (one, other):
        await sent(client, "POST", f"/v1/trash/{id_}/restore")

    assert (await client.get(f"/v1/notes/{made}")).is_success
    assert stated
    assert await facts_of(application, "Ada", **scope) == stated


async def test_the_trash_of_a_shared_note_says_nothing_of_what_a_user_made_from_it(application: Application) -> None:
    client, scope = application.client(), {"workspace": "shared source"}
    shared = (await sent(client, "POST", "/v1/notes", json={**scope, "content": "The pier is long"}))["id"]
    private = {**scope, "user": "ann", "content": "Ada works at Initech.", "derived_from": [shared]}
    await sent(client, "POST", "/v1/notes", json=private)
    stated = await facts_of(application, "Ada", user="ann", **scope)

    await sent(client, "DELETE", f"/v1/notes/{shared}")
    with psycopg.connect(application.url) as connection:
        [(kept,)] = connection.execute("SELECT rows::text FROM trash WHERE id = %s", [shared])
    await sent(client, "POST", f"/v1/trash/{shared}/restore")

    assert "Initech" not in kept
    assert [fact[:2] for fact in stated] == [("works_at", "Initech")]
    assert [fact[:2] for fact in await facts_of(application, "Ada", user="ann", **scope)] == [("works_at", "Initech")]
    assert await facts_of(application, "Ada", user="bob", **scope) == []
