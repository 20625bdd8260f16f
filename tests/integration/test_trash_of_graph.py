"""Deleted entities and facts come back as they were, and nothing of a user who was erased."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest
from psycopg import sql
from psycopg.rows import dict_row

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.core.scope import Scope
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.graph_trash import QUERIES
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, sent, settings_for

PATIENCE_S = 60.0
TABLES = ("discarded_entities", "discarded_edges", "discarded_evidence", "discarded_mentions")


async def state(app: Application, subject: str, relation: str, object_: str, **fields: Any) -> str:
    """State a fact; return its id."""
    body = {"subject": subject, "relation": relation, "object": object_, **fields}
    return str((await sent(app.client(), "POST", "/v1/facts", json=body))["id"])


async def facts(app: Application, subject: str, **scope: str) -> list[dict[str, Any]]:
    answer = await app.client().get("/v1/facts", params={"subject": subject, **scope})
    return list(answer.json()["facts"]) if answer.is_success else []


async def entity(app: Application, name: str, **scope: str) -> dict[str, Any] | None:
    answer = await app.client().get("/v1/graph/neighbours", params={"name": name, **scope})
    found: dict[str, Any] | None = answer.json()["entity"] if answer.is_success else None
    return found


async def linked(app: Application, name: str, **scope: str) -> set[tuple[str, str]]:
    """Return kind and content of each neighbour in the graph's store."""
    await app.indexed()
    answer = await app.client().get("/v1/graph/neighbours", params={"name": name, **scope})
    return {(one["kind"], one["content"]) for one in answer.json()["neighbours"]} if answer.is_success else set()


async def entries(app: Application, **scope: str) -> list[dict[str, Any]]:
    return list((await sent(app.client(), "GET", "/v1/trash", params=scope))["entries"])


async def restored(app: Application, id_: str) -> dict[str, Any]:
    return dict(await sent(app.client(), "POST", f"/v1/trash/{id_}/restore"))


async def kinds_of(app: Application, id_: str) -> set[str]:
    answer = await sent(app.client(), "GET", "/v1/events", params={"limit": 1000})
    return {event["kind"] for event in answer["events"] if id_ in event["ids"]}


def rows_of(app: Application, table: str) -> list[dict[str, Any]]:
    with psycopg.connect(app.url, row_factory=dict_row) as connection:
        wanted = sql.SQL("SELECT * FROM {} WHERE tenant = %s").format(sql.Identifier(table))
        return connection.execute(wanted, [app.tenant]).fetchall()


def bound_to(app: Application, **bounds: frozenset[str]) -> httpx.AsyncClient:
    principal = new_principal(app.tenant, KeyRole.ADMIN, utc_now(), bounds=Bounds(**bounds))
    return app.client(store_key(app.url, principal, "bound"))


async def test_a_fact_comes_back_under_its_id_with_its_evidence_and_its_time(unshared: Application) -> None:
    before = {"valid_from": "2024-03-01T00:00:00Z"}
    old = await state(unshared, "Mira", "works_at", "Initech", valid_from="2020-01-01T00:00:00Z")
    new = await state(unshared, "Mira", "works_at", "Hooli", replaces=[old], **before)
    body = {"subject": "Mira", "type": "works_at", "object": "Hooli", "source": "hr"}
    await sent(unshared.client(), "POST", "/v1/graph/edges", json={"edges": [body]})
    told, shown = await facts(unshared, "Mira"), await linked(unshared, "Mira")

    await sent(unshared.client(), "DELETE", f"/v1/graph/edges/{new}")
    away, [entry] = await facts(unshared, "Mira"), await entries(unshared)
    answer = await restored(unshared, new)

    assert [fact["object"] for fact in away] == ["Initech"]
    assert away[0]["valid_to"] is None
    assert (entry["id"], entry["kind"], entry["title"]) == (new, "fact", "Mira works_at Hooli")
    assert answer["id"] == new
    assert await facts(unshared, "Mira") == told
    assert await linked(unshared, "Mira") == shown
    assert await entries(unshared) == []
    assert {"edge.deleted", "edge.restored"} <= await kinds_of(unshared, new)
    assert [rows_of(unshared, table) for table in TABLES] == [[], [], [], []]
    assert (await unshared.client().post(f"/v1/trash/{new}/restore")).status_code == 404


async def test_an_entity_comes_back_with_its_aliases_edges_and_mentions(unshared: Application) -> None:
    client = unshared.client()
    stated = {"name": "Orion", "type": "boat", "aliases": ["the green one"]}
    [made] = (await sent(client, "POST", "/v1/graph/entities", json={"entities": [stated]}))["results"]
    fact = await state(unshared, "Orion", "lies_in", "North Harbour")
    note = await sent(client, "POST", "/v1/notes", json={"content": "Yesterday Orion was painted"})
    named, shown = await entity(unshared, "the green one"), await linked(unshared, "Orion")

    await sent(client, "DELETE", f"/v1/graph/entities/{made['id']}")
    gone = [await entity(unshared, "Orion"), await entity(unshared, "North Harbour")]
    answer = await restored(unshared, made["id"])

    assert gone == [None, None]
    assert (answer["id"], answer["kind"], answer["title"]) == (made["id"], "entity", "Orion")
    assert await entity(unshared, "the green one") == named
    assert {"mentions", "lies_in"} <= {kind for kind, _ in shown}
    assert await linked(unshared, "Orion") == shown
    assert [one["id"] for one in await facts(unshared, "Orion")] == [fact]
    assert (await sent(client, "GET", f"/v1/notes/{note['id']}"))["content"] == "Yesterday Orion was painted"
    assert {"entity.deleted", "entity.restored"} <= await kinds_of(unshared, made["id"])


async def test_a_fact_stated_again_by_the_same_scope_comes_back_as_it_was(application: Application) -> None:
    word = f"Pier {uuid4().hex[:8]}"
    first = await state(application, word, "belongs_to", "Harbour Office", user="ann", source="a")
    await state(application, word, "belongs_to", "Harbour Office", user="ann", source="b")
    sure = (await facts(application, word, user="ann"))[0]["confidence"]
    await sent(application.client(), "DELETE", f"/v1/graph/edges/{first}")

    other = await state(application, word, "belongs_to", "Harbour Office", user="bob", source="a")
    again = await state(application, word, "belongs_to", "Harbour Office", user="ann", source="a")

    # Of another scope nothing comes back by it; the same edge by then takes on what does.
    assert other != first
    assert again == other
    assert (await facts(application, word, user="ann"))[0]["confidence"] == pytest.approx(sure)
    assert await entries(application, user="ann") == []
    assert "edge.restored" in await kinds_of(application, other)


async def test_a_fact_and_an_entity_stated_again_have_their_ids(application: Application) -> None:
    client, word = application.client(), f"Pier {uuid4().hex[:8]}"
    body = {"entities": [{"name": word, "type": "place"}]}
    [made] = (await sent(client, "POST", "/v1/graph/entities", json=body))["results"]
    fact = await state(application, word, "belongs_to", "Harbour Office")
    await sent(client, "DELETE", f"/v1/graph/edges/{fact}")
    again = await state(application, word, "belongs_to", "Harbour Office")
    await sent(client, "DELETE", f"/v1/graph/entities/{made['id']}")

    [second] = (await sent(client, "POST", "/v1/graph/entities", json=body))["results"]

    assert again == fact
    assert second["id"] == made["id"]
    assert [one["id"] for one in await facts(application, word)] == [fact]
    assert made["id"] not in {one["id"] for one in await entries(application)}


async def test_an_entity_that_texts_name_again_takes_on_what_comes_back(unshared: Application) -> None:
    client = unshared.client()
    body = {"entities": [{"name": "Orion", "type": "boat", "aliases": ["the green one"]}]}
    [made] = (await sent(client, "POST", "/v1/graph/entities", json=body))["results"]
    await sent(client, "DELETE", f"/v1/graph/entities/{made['id']}")
    await state(unshared, "Mira", "moors", "Orion")
    now = await entity(unshared, "Orion")

    answer = await restored(unshared, made["id"])

    assert now is not None
    assert answer["id"] == now["id"] != made["id"]
    assert (await entity(unshared, "the green one") or {})["id"] == now["id"]
    assert await linked(unshared, "Orion") == {("moors", "Mira")}


async def test_what_was_replaced_is_so_again_when_it_comes_back(unshared: Application) -> None:
    old = await state(unshared, "Orion", "speaks", "Latin", valid_from="2020-01-01T00:00:00Z")
    new = await state(unshared, "Orion", "speaks", "Greek", valid_from="2024-01-01T00:00:00Z", replaces=[old])
    told, node = await facts(unshared, "Orion"), (await entity(unshared, "Orion") or {})["id"]

    seen = []
    for path in (f"entities/{node}", f"edges/{old}", f"edges/{new}"):
        await sent(unshared.client(), "DELETE", f"/v1/graph/{path}")
        away = [(fact["object"], fact["valid_to"]) for fact in await facts(unshared, "Orion")]
        await restored(unshared, path.rpartition("/")[2])
        seen.append((away, [(fact["object"], fact["valid_to"]) for fact in await facts(unshared, "Orion")]))

    after = [(fact["object"], fact["valid_to"]) for fact in told]
    assert [valid_to is None for _, valid_to in after] == [True, False]
    assert seen == [([], after), ([("Greek", None)], after), ([("Latin", None)], after)]


async def test_an_entry_that_came_back_with_another_is_deleted_and_restored_again(unshared: Application) -> None:
    client, body = unshared.client(), {"entities": [{"name": "Orion", "type": "boat"}]}
    orion = (await sent(client, "POST", "/v1/graph/entities", json=body))["results"][0]["id"]
    await state(unshared, "Mira", "moors", "Orion")
    await state(unshared, "Orion", "lies_in", "North Harbour")
    mira = (await entity(unshared, "Mira") or {})["id"]
    for id_ in (mira, orion):
        await sent(client, "DELETE", f"/v1/graph/entities/{id_}")
    await restored(unshared, mira)
    await state(unshared, "Orion", "belongs_to", "North Harbour")
    await sent(client, "DELETE", f"/v1/graph/entities/{orion}")

    answer = await restored(unshared, orion)

    assert answer["id"] == orion
    assert {kind for kind, _ in await linked(unshared, "Orion")} == {"moors", "lies_in", "belongs_to"}


@pytest.mark.parametrize("change", ["delete", "rewrite"])
async def test_what_a_memory_said_does_not_come_back_without_it(unshared: Application, change: str) -> None:
    client = unshared.client()
    note = await sent(client, "POST", "/v1/notes", json={"content": "Ann works at Initech"})
    [fact] = await facts(unshared, "Ann")
    await sent(client, "DELETE", f"/v1/graph/edges/{fact['id']}")
    if change == "delete":
        await sent(client, "DELETE", f"/v1/notes/{note['id']}")
    else:
        await sent(client, "PATCH", f"/v1/notes/{note['id']}", json={"content": "Nobody is anywhere"})

    answer = await client.post(f"/v1/trash/{fact['id']}/restore")

    assert answer.status_code == 409, answer.text
    assert "state it again" in answer.json()["detail"]
    assert await facts(unshared, "Ann") == []
    assert await entity(unshared, "Initech") is None
    assert [rows_of(unshared, table) for table in ("edges", "entities")] == [[], []]


async def test_two_that_restore_or_state_at_once_bring_one_back(unshared: Application) -> None:
    client = unshared.client()
    fact = await state(unshared, "Mira", "moors", "Orion")
    await sent(client, "DELETE", f"/v1/graph/edges/{fact}")

    async with asyncio.timeout(PATIENCE_S):
        calls = [client.post(f"/v1/trash/{fact}/restore") for _ in range(4)]
        answers = await asyncio.gather(*calls, state(unshared, "Mira", "moors", "Orion"))
    codes = sorted(answer.status_code for answer in answers[:-1])

    assert set(codes) <= {200, 404}
    assert codes.count(200) <= 1
    assert answers[-1] == fact
    assert [one["id"] for one in await facts(unshared, "Mira")] == [fact]
    assert [rows_of(unshared, table) for table in ("trash", *TABLES)] == [[], [], [], [], []]


async def test_nobody_reads_the_name_of_what_they_may_not_know(unshared: Application) -> None:
    client = unshared.client()
    for user in ("ann", "bob"):
        await state(unshared, "Mira", "visits", "Dr Quill", user=user)
    both = (await facts(unshared, "Mira", user="ann"))[0]["id"]
    own = await state(unshared, "Ann", "visits", "Dr Reed", user="ann")
    [of_ann] = [one for one in rows_of(unshared, "entities") if one["name"] == "Dr Reed"]
    await sent(client, "DELETE", f"/v1/graph/edges/{both}")
    await sent(client, "DELETE", f"/v1/graph/entities/{of_ann['id']}")

    seen = {user: {one["id"]: one["title"] for one in await entries(unshared, user=user)} for user in ("ann", "cid")}

    assert seen == {"ann": {both: None, str(of_ann["id"]): "Dr Reed"}, "cid": {both: None}}
    await restored(unshared, both)
    await restored(unshared, str(of_ann["id"]))
    assert [one["id"] for one in await facts(unshared, "Ann", user="ann")] == [own]
    assert await facts(unshared, "Mira", user="cid") == []
    assert len(await facts(unshared, "Mira", user="bob")) == 1


async def test_a_key_of_a_user_restores_no_fact_since_it_may_delete_none(application: Application) -> None:
    user = f"ann {uuid4()}"
    fact = await state(application, f"Mira {user}", "visits", "Dr Quill", user=user)
    await sent(application.client(), "DELETE", f"/v1/graph/edges/{fact}")
    keys = [
        bound_to(application, users=frozenset({user})),
        bound_to(application, users=frozenset({"bob"})),
        bound_to(application, workspaces=frozenset({"elsewhere"})),
    ]

    codes = [(await key.post(f"/v1/trash/{fact}/restore")).status_code for key in keys]
    other = application.for_tenant(f"other {uuid4()}")
    foreign = await other.client().post(f"/v1/trash/{fact}/restore")
    await other.close_clients()

    assert codes == [403, 404, 404]
    assert foreign.status_code == 404
    assert (await restored(application, fact))["user"] == user


async def test_an_erasure_takes_the_statements_of_its_user_out_of_the_trash(unshared: Application) -> None:
    client, ann = unshared.client(), f"ann {uuid4()}"
    shared = await state(unshared, "Mira", "moors", "Orion")
    await state(unshared, "Mira", "moors", "Orion", user=ann, source="diary")
    own = await state(unshared, "Zerafine", "visits", "Dr Quill", user=ann)
    await sent(client, "POST", "/v1/notes", json={"content": "I met Tamsin Orr in Ulverton", "user": ann})
    [met] = [one for one in rows_of(unshared, "entities") if one["name"] == "Tamsin Orr"]
    body = {"entities": [{"name": "Orion", "type": "boat"}]}
    await sent(client, "POST", "/v1/graph/entities", json=body)
    for path in (f"edges/{own}", f"edges/{shared}", f"entities/{met['id']}"):
        await sent(client, "DELETE", f"/v1/graph/{path}")
    # Of an entity that stays, its edges of the user alone go, too.
    await state(unshared, "Orion", "hides", "Zerafine", user=ann)
    [orion] = [one for one in rows_of(unshared, "entities") if one["name"] == "Orion"]
    await sent(client, "DELETE", f"/v1/graph/entities/{orion['id']}")

    admin = unshared.admin()
    erasure = await sent(admin, "DELETE", "/v1/users", params={"user": ann})

    left = [str(rows_of(unshared, table)) for table in ("trash", *TABLES)]
    assert erasure["left"]["trash"] == 0
    assert not [word for word in ("Zerafine", "Quill", "Tamsin", ann, "diary") for told in left if word in told]
    assert {(one["kind"], one["title"]) for one in await entries(unshared)} == {
        ("fact", "Mira moors Orion"),
        ("entity", "Orion"),
    }
    await restored(unshared, str(orion["id"]))
    await restored(unshared, shared)
    assert [one["object"] for one in await facts(unshared, "Mira")] == ["Orion"]
    assert await facts(unshared, "Orion", user=ann) == []


async def test_what_a_job_alone_inferred_is_not_kept(unshared: Application) -> None:
    client = unshared.client()
    fact = await state(unshared, "Mira", "related_to", "Orion")
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE edge_evidence SET source = 'job:consolidation' WHERE edge_id = %s", [fact])

    await sent(client, "DELETE", f"/v1/graph/edges/{fact}")

    assert await entries(unshared) == []
    assert await facts(unshared, "Mira") == []


async def test_nothing_is_kept_where_the_trash_is_off(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, history={"trash_days": 0})
    async with running(settings, database, HashingModel()) as app:
        first = await state(app, "Mira", "moors", "Orion")

        await sent(app.client(), "DELETE", f"/v1/graph/edges/{first}")

        assert [rows_of(app, table) for table in ("trash", *TABLES)] == [[], [], [], [], []]
        assert await state(app, "Mira", "moors", "Orion") != first


async def test_a_fact_is_looked_for_in_the_trash_by_its_hash(application: Application) -> None:
    scope = Scope(application.tenant)
    parameters = {
        "tenant": scope.tenant,
        "workspace": "default",
        "namespace": "default",
        "user_id": None,
        "subjects": ["mira"],
        "types": ["moors"],
        "objects": ["orion"],
        "keys": ["orion"],
        "cutoff": utc_now(),
    }
    with psycopg.connect(application.url) as connection:
        connection.execute(
            "INSERT INTO trash (tenant, id, workspace, namespace, kind, content_hash, deleted_at) "
            "SELECT %s, gen_random_uuid(), 'default', 'default', 'fact', ('hash ' || i)::bytea, now() "
            "FROM generate_series(1, 20000) i",
            [application.tenant],
        )
        connection.execute("ANALYZE trash")
        plans = [
            str(connection.execute(b"EXPLAIN " + QUERIES[name], parameters).fetchall())
            for name in ("find_returning_facts", "find_returning_entities")
        ]
        connection.rollback()

    assert all("trash_of_text" in plan for plan in plans), plans


async def test_a_memory_that_is_deleted_meanwhile_is_not_said_by_what_comes_back(unshared: Application) -> None:
    client = unshared.client()
    kept = await sent(client, "POST", "/v1/notes", json={"content": "Ann works at Initech"})
    lost = await sent(client, "POST", "/v1/notes", json={"content": "Since May Ann works at Initech"})
    [fact] = await facts(unshared, "Ann")
    for _ in range(3):
        await sent(client, "DELETE", f"/v1/graph/edges/{fact['id']}")
        async with asyncio.timeout(PATIENCE_S):
            await asyncio.gather(
                restored(unshared, fact["id"]), client.delete(f"/v1/notes/{lost['id']}"), return_exceptions=False
            )
        told = [row[0] for row in _evidence(unshared, fact["id"])]
        assert told == [UUID(kept["id"])]
        await restored(unshared, lost["id"])


def _evidence(app: Application, edge: str) -> list[tuple[UUID]]:
    with psycopg.connect(app.url) as connection:
        return connection.execute("SELECT memory_id FROM edge_evidence WHERE edge_id = %s", [edge]).fetchall()
