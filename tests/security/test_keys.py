"""Keys over the API: none wider than its maker, none of another tenant, and an end within seconds everywhere."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from cachetools import TTLCache
from pydantic import ValidationError
from typer.testing import CliRunner

from deployments import services
from lamina.cli.commands import app as cli
from lamina.core.principals import Bounds, KeyRole, Verb, new_principal
from lamina.models.hashing import HashingModel
from lamina.settings.loading import Settings
from lamina.stores.postgres.keys import PREFIX, hash_key, list_keys, store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application, another_router, running, settings_for

LISTS = ("workspaces", "namespaces", "users", "agents")


async def make(client: httpx.AsyncClient, **fields: Any) -> dict[str, Any]:
    answer = await client.post("/v1/keys", json={"name": "made", "role": "writer", **fields})
    assert answer.status_code == 201, answer.text
    return dict(answer.json())


async def test_a_key_is_told_once_and_listed_without_its_secret(application: Application) -> None:
    admin = application.admin()
    made = await make(admin, users=["ann"], verbs=["read"], expires_at="2099-01-01")

    listed = await admin.get("/v1/keys")
    shown = (await admin.get(f"/v1/keys/{made['id']}")).json()

    assert made["key"].startswith(PREFIX)
    assert made["key"] not in listed.text
    assert {**shown, "key": made["key"]} == made
    assert (shown["name"], shown["role"], shown["verbs"], shown["users"]) == ("made", "writer", ["read"], ["ann"])
    assert (shown["state"], shown["expires_at"]) == ("active", "2099-01-01T00:00:00Z")
    with psycopg.connect(application.url) as connection:
        rows = connection.execute("SELECT api_keys::text FROM api_keys").fetchall()
    assert not any(made["key"] in row[0] for row in rows)


async def test_an_admin_sees_the_keys_of_its_tenant_alone(application: Application) -> None:
    mine = application.admin()
    other = application.for_tenant(f"tenant {uuid4()}")
    theirs = await make(other.admin())

    listed = (await mine.get("/v1/keys", params={"limit": 1000})).json()["keys"]
    answers = [
        await mine.get(f"/v1/keys/{theirs['id']}"),
        await mine.post(f"/v1/keys/{theirs['id']}/rotate"),
        await mine.delete(f"/v1/keys/{theirs['id']}"),
    ]

    assert theirs["id"] not in {key["id"] for key in listed}
    assert [answer.status_code for answer in answers] == [404] * 3
    assert (await application.client(theirs["key"]).get("/v1/notes")).status_code == 200
    await other.close_clients()


@pytest.mark.parametrize("role", ["reader", "writer"])
async def test_only_an_admin_makes_keys(application: Application, role: str) -> None:
    client = application.client((await make(application.admin(), role=role))["key"])

    answers = [
        await client.post("/v1/keys", json={"name": "x", "role": "reader"}),
        await client.get("/v1/keys"),
        await client.delete(f"/v1/keys/{uuid4()}"),
    ]

    assert [answer.status_code for answer in answers] == [403] * 3


@pytest.mark.parametrize(
    ("narrowing", "wanted", "field"),
    [
        *(({name: ["a", "b"]}, {name: ["a", "c"]}, name) for name in LISTS),
        *(({name: ["a"]}, {name: ["A"]}, name) for name in LISTS),
        *(({name: ["é"]}, {name: ["e"]}, name) for name in LISTS),
        ({"verbs": ["read", "keys"]}, {"role": "admin", "verbs": ["read", "delete"]}, "verbs"),
        ({"verbs": ["keys"]}, {"role": "reader"}, "verbs"),
        ({"expires_at": "2099-01-01"}, {"expires_at": "2099-01-02"}, "expires_at"),
    ],
)
async def test_a_narrowed_admin_makes_no_wider_key(
    application: Application, narrowing: dict[str, Any], wanted: dict[str, Any], field: str
) -> None:
    narrowed = application.client((await make(application.admin(), role="admin", **narrowing))["key"])

    answer = await narrowed.post("/v1/keys", json={"name": "wider", "role": "writer", **wanted})

    assert answer.status_code == 403, answer.text
    assert answer.json()["errors"][0]["field"] == field


async def test_a_key_takes_over_the_narrowing_of_its_maker(application: Application) -> None:
    narrowing = {"workspaces": ["a", "b"], "users": ["ann"], "expires_at": "2099-01-01T00:00:00Z"}
    maker = await make(application.admin(), role="admin", verbs=["read", "write", "keys"], **narrowing)

    made = await make(application.client(maker["key"]), workspaces=["b"])

    assert made["workspaces"] == ["b"]
    assert (made["users"], made["verbs"], made["expires_at"]) == (["ann"], ["read", "write"], narrowing["expires_at"])


async def test_a_bound_admin_sees_and_ends_only_keys_within_its_bounds(application: Application) -> None:
    admin = application.admin()
    bound = application.client((await make(admin, role="admin", users=["ann", "bob"]))["key"])
    within, wider, other = [await make(admin, users=users) for users in (["bob"], [], ["bob", "eve"])]

    listed = {key["id"] for key in (await bound.get("/v1/keys")).json()["keys"]}

    assert within["id"] in listed
    assert not listed & {wider["id"], other["id"]}
    for outside in (wider, other):
        assert (await bound.delete(f"/v1/keys/{outside['id']}")).status_code == 404
        assert (await bound.post(f"/v1/keys/{outside['id']}/rotate")).status_code == 404
    assert (await bound.delete(f"/v1/keys/{within['id']}")).status_code == 204


async def test_rotating_a_wider_key_is_no_way_to_more(application: Application) -> None:
    admin = application.admin()
    limited = application.client((await make(admin, role="admin", verbs=["read", "keys"]))["key"])
    whole = await make(admin, role="admin")

    answer = await limited.post(f"/v1/keys/{whole['id']}/rotate")

    assert answer.status_code == 403
    assert (await application.client(whole["key"]).get("/v1/keys")).status_code == 200


async def test_a_rotated_key_has_another_secret_and_all_else_as_before(application: Application) -> None:
    admin = application.admin()
    made = await make(admin, users=["ann"], verbs=["read"])

    rotated = (await admin.post(f"/v1/keys/{made['id']}/rotate")).json()

    assert (await application.client(made["key"]).get("/v1/notes")).status_code == 401
    assert (await application.client(rotated["key"]).get("/v1/notes")).status_code == 200
    assert (await application.client(rotated["key"]).get("/v1/notes?user=bob")).status_code == 403
    changing = {"key", "hint", "rotated_at", "last_used_at"}
    assert {name: rotated[name] for name in rotated.keys() - changing} == {
        name: made[name] for name in made.keys() - changing
    }


async def test_a_revoked_key_opens_nothing_and_is_not_rotated(application: Application) -> None:
    admin = application.admin()
    made = await make(admin)
    for _ in range(2):
        assert (await admin.delete(f"/v1/keys/{made['id']}")).status_code == 204

    assert (await application.client(made["key"]).get("/v1/notes")).status_code == 401
    assert (await admin.post(f"/v1/keys/{made['id']}/rotate")).status_code == 409
    assert (await admin.get(f"/v1/keys/{made['id']}")).json()["state"] == "revoked"


async def test_the_last_admin_key_is_not_revoked_unnoticed(application: Application) -> None:
    first = application.admin()
    own = (await first.get("/v1/keys")).json()["keys"]
    last = next(key["id"] for key in own if key["role"] == "admin")
    await make(first, role="admin", users=["ann"])  # It cannot make keys of others.
    await make(first, role="admin", verbs=["read"])  # It can make none at all.

    refused = await first.delete(f"/v1/keys/{last}")
    second = await make(first, role="admin")
    followed = await first.delete(f"/v1/keys/{last}")
    forced = await application.client(second["key"]).delete(f"/v1/keys/{second['id']}", params={"last": True})

    assert (refused.status_code, followed.status_code, forced.status_code) == (409, 204, 204)
    assert "make another one first" in refused.json()["detail"]


async def test_two_admins_that_revoke_each_other_at_once_leave_one(application: Application) -> None:
    one = application.admin()
    mine = (await one.get("/v1/keys")).json()["keys"]
    first = next(key["id"] for key in mine if key["role"] == "admin")
    second = await make(one, role="admin")
    other = application.client(second["key"])
    await other.get("/v1/keys")

    answers = await asyncio.gather(other.delete(f"/v1/keys/{first}"), one.delete(f"/v1/keys/{second['id']}"))

    assert sorted(answer.status_code for answer in answers) in ([204, 401], [204, 409])


async def test_an_expired_key_opens_nothing_also_where_it_is_trusted(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    expires_at = utc_now() + timedelta(hours=1)
    principal = new_principal(application.tenant, KeyRole.READER, utc_now(), expires_at=expires_at)
    client = application.client(store_key(application.url, principal, "short"))
    application.services.key_check._trusted = TTLCache(100, 7200)
    try:
        assert (await client.get("/v1/notes")).status_code == 200
        monkeypatch.setattr(services, "utc_now", lambda: expires_at)
        assert (await client.get("/v1/notes")).status_code == 401
    finally:
        application.services.key_check._trusted = TTLCache(100, 0)


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"expires_at": "2001-01-01"}, "expires_at"),
        ({"role": "reader", "verbs": ["read", "write"]}, "verbs.1"),
        ({"users": ["ann", " "]}, "users.1"),
        ({"agents": ["a\nb"]}, "agents.0"),
        ({"workspaces": [str(place) for place in range(101)]}, "workspaces"),
        ({"name": ""}, "name"),
        ({"role": "owner"}, "role"),
        ({"verbs": ["fly"]}, "verbs.0"),
        ({"tenant": "other"}, "tenant"),
    ],
)
async def test_a_key_that_makes_no_sense_is_refused_by_its_field(
    application: Application, fields: dict[str, Any], field: str
) -> None:
    answer = await application.admin().post("/v1/keys", json={"name": "x", "role": "writer", **fields})

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"] == field


async def test_the_last_use_is_written_once_a_minute_and_off_the_path(application: Application) -> None:
    admin = application.admin()
    made = await make(admin)
    client = application.client(made["key"])
    used = [(await client.get("/v1/notes")).status_code for _ in range(3)]
    await application.services.key_check.flush()
    first = (await admin.get(f"/v1/keys/{made['id']}")).json()["last_used_at"]

    application.services.key_check._noted.clear()  # Another replica sees the key.
    await client.get("/v1/notes")
    await application.services.key_check.flush()

    assert used == [200] * 3
    assert made["last_used_at"] is None
    assert first is not None
    assert (await admin.get(f"/v1/keys/{made['id']}")).json()["last_used_at"] == first


async def test_a_revocation_takes_effect_on_every_replica_within_five_seconds(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, write={"key_cache_s": 0.5})
    async with running(settings, database, HashingModel()) as one, another_router(one, {}) as other:
        admin = one.admin()
        revoked, rotated = await make(admin), await make(admin)
        clients = [app.client(made["key"]) for app in (one, other) for made in (revoked, rotated)]
        assert [(await client.get("/v1/notes")).status_code for client in clients] == [200] * 4

        await admin.delete(f"/v1/keys/{revoked['id']}")
        await admin.post(f"/v1/keys/{rotated['id']}/rotate")
        await asyncio.sleep(settings.write.key_cache_s + 0.1)

        assert [(await client.get("/v1/notes")).status_code for client in clients] == [401] * 4


def test_no_replica_may_trust_a_key_for_longer_than_five_seconds() -> None:
    assert Settings().write.key_cache_s <= 5
    with pytest.raises(ValidationError, match="less than or equal to 5"):
        Settings(write={"key_cache_s": 6})  # type: ignore[arg-type]


async def test_a_release_without_bounds_does_not_find_a_narrowed_key(application: Application) -> None:
    narrowings: list[dict[str, Any]] = [
        {"bounds": Bounds(users=frozenset({"ann"}))},
        {"verbs": [Verb.READ]},
        {"expires_at": utc_now() + timedelta(days=1)},
    ]
    keys = [
        store_key(application.url, new_principal(application.tenant, KeyRole.WRITER, utc_now(), **narrowing), "n")
        for narrowing in narrowings
    ]
    with psycopg.connect(application.url) as connection:
        found = [
            connection.execute("SELECT 1 FROM api_keys WHERE hash = %s", (hash_key(key),)).fetchone() for key in keys
        ]
        whole = connection.execute("SELECT 1 FROM api_keys WHERE hash = %s", (hash_key(application.key),)).fetchone()

    assert found == [None] * 3
    assert whole is not None
    for key in keys:
        assert (await application.client(key).get("/v1/notes")).status_code == 200


async def test_bound_keys_do_not_meet_in_idempotency_keys_or_duplicates(application: Application) -> None:
    admin = application.admin()
    ann, bob = [application.client((await make(admin, users=[user]))["key"]) for user in ("ann", "bob")]
    note, headers = {"content": "the rope is wet"}, {"Idempotency-Key": "one"}

    first = await ann.post("/v1/notes", json=note, headers=headers)
    again = await ann.post("/v1/notes", json=note, headers=headers)
    other = await bob.post("/v1/notes", json=note, headers=headers)

    assert (first.status_code, other.status_code) == (201, 201)
    assert first.json()["id"] == again.json()["id"] != other.json()["id"]
    for client, user in ((ann, "ann"), (bob, "bob")):
        assert {item["user"] for item in (await client.get("/v1/notes")).json()["notes"]} == {user}


async def test_a_user_bound_key_reads_what_is_common_and_changes_it_not(application: Application) -> None:
    common = (await application.client().post("/v1/notes", json={"content": "the pier is long"})).json()["id"]
    ann = application.client((await make(application.admin(), users=["ann"]))["key"])

    read = await ann.get(f"/v1/notes/{common}")
    refused = [
        await ann.patch(f"/v1/notes/{common}", json={"importance": 1.0}),
        await ann.delete(f"/v1/notes/{common}"),
    ]

    assert read.json()["content"] == "the pier is long"
    assert [answer.status_code for answer in refused] == [403] * 2
    assert "belongs to no user" in refused[0].json()["detail"]


async def test_spellings_of_an_id_are_compared_as_the_scope_compares_them(application: Application) -> None:
    composed, decomposed = "caf\u00e9", "cafe\u0301"
    client = application.client((await make(application.admin(), users=[decomposed]))["key"])

    for spelling, status in ((composed, 200), (decomposed, 200), ("cafe", 403), ("CAFÉ", 403), ("\uff43afé", 403)):
        assert (await client.get("/v1/notes", params={"user": spelling})).status_code == status, spelling


async def test_a_copy_of_the_stored_hash_opens_nothing(application: Application) -> None:
    info = next(item for item in list_keys(application.url) if application.key.startswith(item.hint))
    with psycopg.connect(application.url) as connection:
        row = connection.execute("SELECT hash FROM api_keys WHERE id = %s", (info.id,)).fetchone()
    assert row is not None

    for forged in (row[0].hex(), PREFIX + row[0].hex(), application.key[:-1], application.key + "x"):
        assert (await application.client(forged).get("/v1/notes")).status_code == 401


async def test_an_agents_key_replaces_no_document_of_another_agent(application: Application) -> None:
    admin = application.admin()
    one, other = [application.client((await make(admin, agents=[agent]))["key"]) for agent in ("guide", "cook")]
    first = {"key": "menu", "content": "soup"}
    assert (await one.post("/v1/documents", json=first)).status_code == 201

    same = await other.post("/v1/documents", json=first)
    changed = {**first, "content": "stew"}
    answers = [
        await other.post("/v1/documents", json=changed),
        await other.post("/v1/documents/batch", json={"documents": [changed]}),
        await other.post("/v1/documents/upload", data={"key": "menu"}, files={"file": ("a.txt", b"stew")}),
    ]

    assert (same.status_code, same.json()["status"]) == (200, "existed")
    assert [answer.status_code for answer in answers] == [403] * 3
    assert (await one.post("/v1/documents", json=changed)).json()["status"] == "replaced"


async def test_an_agents_key_replaces_no_document_that_another_agent_stored_meanwhile(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin, recorder = application.admin(), application.services.documents.recorder
    one, other = [application.client((await make(admin, agents=[agent]))["key"]) for agent in ("guide", "cook")]
    embed = recorder._embedder.embed_chunks

    async def meanwhile(texts: Sequence[str]) -> Any:
        monkeypatch.setattr(recorder._embedder, "embed_chunks", embed)
        assert (await one.post("/v1/documents", json={"key": "menu", "content": "soup"})).status_code == 201
        return await embed(texts)

    monkeypatch.setattr(recorder._embedder, "embed_chunks", meanwhile)
    answer = await other.post("/v1/documents", json={"key": "menu", "content": "stew"})
    [kept] = (await one.get("/v1/documents", params={"key": "menu"})).json()["documents"]

    assert (answer.status_code, kept["agent"]) == (403, "guide")


async def test_the_command_line_makes_lists_rotates_and_revokes_narrowed_keys(
    alone: Application, tmp_path: Path
) -> None:
    config = tmp_path / "lamina.yaml"
    config.write_text(f"postgres: {{kind: server, url: '{alone.url}'}}")

    async def run(*arguments: str) -> str:
        ran = await asyncio.to_thread(CliRunner().invoke, cli, ["keys", *arguments, "--config", str(config)])
        return ran.output if ran.exit_code == 0 else f"{ran.exit_code} {ran.exception}"

    async def made(role: str, name: str, *narrowing: str) -> tuple[str, str]:
        secret = await run("create", "--tenant", alone.tenant, "--role", role, "--name", name, *narrowing)
        line = next(line for line in (await run("list")).splitlines() if name in line)
        return secret.strip(), line

    secret, line = await made("writer", "buoy", "--namespace", "north", "--agent", "guide", "--verb", "write")
    written = await alone.client(secret).post("/v1/notes", json={"content": "the buoy is red"})
    note = (await alone.client().get("/v1/notes", params={"namespace": "north"})).json()["notes"][0]
    rotated = (await run("rotate", line.split()[0])).strip()
    _, last = await made("admin", "captain")
    refused, forced = await run("revoke", last.split()[0]), await run("revoke", last.split()[0], "--last")

    assert written.status_code == 201
    assert (note["namespace"], note["agent"]) == ("north", "guide")
    assert "verbs write; namespaces north; agents guide" in line
    assert secret not in line
    assert (await alone.client(secret).post("/v1/notes", json={"content": "x"})).status_code == 401
    assert (await alone.client(rotated).get("/v1/notes")).status_code == 403
    assert "last one" in refused
    assert "is revoked" in forced


async def test_a_key_of_two_workspaces_shares_between_them_and_with_no_third(application: Application) -> None:
    made = await make(application.admin(), role="admin", workspaces=["atlas", "borea"])
    client = application.client(made["key"])

    answers = [
        await client.post("/v1/shares", json={"workspace": one, "to_workspace": other, "segment": "notes"})
        for one, other in (("atlas", "borea"), ("atlas", "third"), ("third", "atlas"))
    ]

    assert [answer.status_code for answer in answers] == [201, 403, 403]
    assert [answer.json()["errors"][0]["field"] for answer in answers[1:]] == ["to_workspace", "workspace"]
