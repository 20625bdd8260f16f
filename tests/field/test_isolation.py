"""Field cases 31 and 33, and what a key may do: scope does not move, reading creates nothing."""

from typing import Any

import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from lamina.core.principals import KeyRole
from lamina.stores.postgres.keys import list_keys, revoke_key
from tests.support.application import Application

TABLES = ("notes", "messages", "sessions", "profiles", "epochs", "note_chunks", "message_chunks")


async def test_ids_in_metadata_are_data_and_move_no_scope(application: Application) -> None:
    client = application.client()
    victim = application.for_tenant(f"victim of {application.tenant}").client()
    metadata = {"user_id": "victim", "user": "victim", "tenant": f"victim of {application.tenant}", "workspace": "w"}

    id_ = (await client.post("/v1/notes", json={"content": "mine", "user": "me", "metadata": metadata})).json()["id"]
    changed = await client.patch(f"/v1/notes/{id_}", json={"content": "still mine", "metadata": metadata})
    await application.indexed()

    assert changed.json()["user"] == "me"
    assert changed.json()["metadata"] == metadata
    for other, scope in ((client, {"user": "victim"}), (client, {"workspace": "w"}), (victim, {"user": "me"})):
        answer = await other.post("/v1/search", json={"query": "still mine", **scope})
        assert answer.json()["results"] == []
    await victim.aclose()


@pytest.mark.parametrize("field", ["tenant", "user_id", "role"])
async def test_a_body_cannot_name_the_tenant(application: Application, field: str) -> None:
    answer = await application.client().post("/v1/notes", json={"content": "x", field: "other"})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_reading_an_unknown_scope_creates_nothing(application: Application) -> None:
    client = application.client()
    scope: dict[str, Any] = {"workspace": "nowhere", "user": "nobody"}

    answers = [
        await client.get("/v1/notes", params=scope),
        await client.get("/v1/profile", params=scope),
        await client.get("/v1/sessions/never/messages", params=scope),
        await client.post("/v1/search", json={"query": "anything", "session": "never", **scope}),
        await client.post("/v1/context", json={"query": "anything", **scope}),
    ]

    assert [answer.status_code for answer in answers] == [200] * 5
    assert answers[1].json() == {
        "user": "nobody",
        "document": {},
        "version": 0,
        "updated_at": None,
        "unverified": False,
    }
    with psycopg.connect(application.url) as connection:
        for table in TABLES:
            row = connection.execute(
                SQL("SELECT count(*) FROM {} WHERE tenant = %s").format(Identifier(table)), (application.tenant,)
            ).fetchone()
            assert row == (0,), table


ROUTES: list[tuple[str, str, dict[str, Any] | None]] = [
    ("GET", "/v1/notes/{id}", None),
    ("GET", "/v1/notes/{id}/versions", None),
    ("PATCH", "/v1/notes/{id}", {"content": "theirs"}),
    ("DELETE", "/v1/notes/{id}", None),
]


@pytest.mark.parametrize(("method", "path", "body"), ROUTES)
async def test_another_tenants_key_finds_no_note_and_changes_nothing(
    application: Application, method: str, path: str, body: dict[str, Any] | None
) -> None:
    client = application.client()
    id_ = (await client.post("/v1/notes", json={"content": "ours"})).json()["id"]
    thief = application.client(application.new_key("thief"))

    answer = await thief.request(method, path.format(id=id_), json=body)

    assert answer.status_code == 404
    note = (await client.get(f"/v1/notes/{id_}")).json()
    assert (note["content"], note["version"]) == ("ours", 1)


@pytest.mark.parametrize("header", [None, "Bearer ", "Bearer nonsense", "Basic dXNlcjpwYXNz", "Bearer lamina_\u00fc"])
async def test_a_call_without_a_valid_key_is_unauthenticated(application: Application, header: str | None) -> None:
    client = application.client()
    client.headers.pop("Authorization")
    headers = {} if header is None else {"Authorization": header.encode()}

    for path in ("/v1/search", "/v1/notes"):
        answer = await client.post(path, json={"query": "x", "content": "x"}, headers=headers)

        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"


async def test_a_reader_reads_and_may_not_write(application: Application) -> None:
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    writes = [
        await reader.post("/v1/notes", json={"content": "x"}),
        await reader.post("/v1/turns", json={"session": "s", "messages": [{"content": "x"}]}),
        await reader.patch("/v1/profile", json={"user": "u", "patch": {"a": 1}}),
    ]

    assert (await reader.post("/v1/search", json={"query": "x"})).status_code == 200
    assert [answer.status_code for answer in writes] == [403] * 3
    assert "needs writer" in writes[0].json()["detail"]


async def test_a_revoked_key_opens_nothing(application: Application) -> None:
    key = application.new_key(application.tenant)
    client = application.client(key)
    assert (await client.get("/v1/notes")).status_code == 200

    info = next(item for item in list_keys(application.url) if key.startswith(item.hint))
    revoke_key(application.url, info.id)

    assert (await client.get("/v1/notes")).status_code == 401


async def test_keys_are_stored_as_hashes(application: Application) -> None:
    with psycopg.connect(application.url) as connection:
        rows = connection.execute("SELECT api_keys::text FROM api_keys").fetchall()

    assert rows
    assert not any(application.key in row[0] for row in rows)


async def test_the_health_routes_need_no_key(application: Application) -> None:
    client = application.client()
    client.headers.pop("Authorization")

    assert (await client.get("/livez")).json() == {"status": "ok"}
    assert (await client.get("/readyz")).status_code == 200
