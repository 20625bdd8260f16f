"""A session, a namespace, a workspace gets another name, and everything that knew it by the old one follows."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from typing import Any
from unittest.mock import AsyncMock
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.core.areas import Area
from lamina.core.operations import Operation
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.maintenance import scope_renaming
from lamina.maintenance.reembed import ReembedJob, ReembedPolicy, VectorPage
from lamina.maintenance.row_writer import RowWriter
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.renaming import QUERIES, close_places
from lamina.stores.postgres.retention import end_of_tenant
from lamina.stores.postgres.tiers import EMBEDDED
from lamina.wiring.operations import build_operations
from lamina.wiring.stores import utc_now
from tests.support.application import Application, ended, sent

PATIENCE_S = 120.0
RENAMED = {
    *("agent_turns", "api_keys", "compacted_chunks", "documents", "edges", "entities", "entity_embeddings", "feedback"),
    *("entity_names", "memory_links", "memory_profiles", "message_chunks", "messages", "note_chunks", "notes"),
    *("passage_chunks", "passages", "procedure_embeddings", "procedures", "profile_versions", "profiles", "sessions"),
    # The last one with its session, by a foreign key.
    *("shares", "trash", "webhooks", "workspace_settings", "response_chains"),
}
# What happened, and what no longer holds; and the archive, since no place with archived notes is renamed.
LEFT = {
    *("archive_folders", "archived_notes", "epochs", "events", "job_runs", "operations", "outbox"),
    *("provider_cache_metrics", "response_agents", "responses"),
}
EVERYTHING = [
    "agent_turns",
    *("documents", "edges", "entities", "entity_names", "memory_links", "message_chunks", "messages", "note_chunks"),
    *("notes", "passage_chunks", "passages", "procedures", "profile_versions", "profiles", "sessions", "trash"),
]


async def renamed(client: httpx.AsyncClient, **ids: str) -> dict[str, Any]:
    return await ended(client, (await sent(client, "POST", "/v1/scopes/rename", json=ids))["operation"])


async def foreseen(client: httpx.AsyncClient, **ids: Any) -> dict[str, int]:
    answer = await sent(client, "POST", "/v1/scopes/rename", json={**ids, "dry_run": True})
    assert answer["operation"] is None
    return {name: count for name, count in answer["counts"].items() if count}


async def fill(client: httpx.AsyncClient, **scope: str) -> dict[str, str]:
    """Put one of everything into a place; return ids by kind."""
    said = [{"role": "user", "content": "Mira Koskinen moors the boat Orion"}, {"role": "assistant", "content": "Aye."}]
    turn = {**scope, "session": "s 1", "messages": said, "agent": "guide"}
    messages = (await sent(client, "POST", "/v1/turns", json={**turn, "outcome": {"succeeded": True}}))["messages"]
    note = {**scope, "content": "The boat Orion has a red keel", "session": "s 1"}
    ids = {"message": messages[0]["id"], "note": (await sent(client, "POST", "/v1/notes", json=note))["id"]}
    gone = (await sent(client, "POST", "/v1/notes", json={**scope, "content": "The boat Orion was sold"}))["id"]
    document = {**scope, "content": "The manual of the boat Orion: caulk the planks", "key": "manual"}
    ids["document"] = (await sent(client, "POST", "/v1/documents", json=document))["id"]
    other = (await sent(client, "POST", "/v1/documents", json={**scope, "content": "An old list of the boat Orion"}))[
        "id"
    ]
    procedure = {**scope, "trigger": "the boat Orion leaks", "action": "caulk it"}
    ids["procedure"] = (await sent(client, "POST", "/v1/procedures", json=procedure))["id"]
    fact = {"subject": "Mira Koskinen", "type": "owns", "object": "Orion"}
    await sent(client, "POST", "/v1/graph/edges", json={**scope, "edges": [fact]})
    await sent(client, "PATCH", "/v1/profile", json={**scope, "user": "ann", "patch": {"likes": "boats"}})
    await sent(client, "DELETE", f"/v1/notes/{gone}")
    await sent(client, "DELETE", f"/v1/documents/{other}")
    return {**ids, "gone note": gone, "gone document": other}


async def found(client: httpx.AsyncClient, **scope: str) -> set[str]:
    query = {"query": "the boat Orion", "cache": False, "limit": 50, "user": "ann", **scope}
    return {hit["id"] for hit in (await sent(client, "POST", "/v1/search", json=query))["results"]}


def rows_in(app: Application, *place: str) -> dict[str, int]:
    """Count the rows of a workspace, or of a namespace of one, by table."""
    where = "tenant = %s AND workspace = %s" + (" AND namespace = %s" if len(place) > 1 else "")
    with psycopg.connect(app.url) as connection:
        statements = {table: f"SELECT count(*) FROM {table} WHERE {where}" for table in EVERYTHING}  # noqa: S608
        counted = {
            table: connection.execute(statement, [app.tenant, *place]).fetchone()
            for table, statement in statements.items()
        }
    return {table: row[0] for table, row in counted.items() if row is not None}


async def waits_for_a_lock(app: Application, task: asyncio.Task[Any]) -> None:
    """Return when something waits for a lock, or the task is done."""
    stuck = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    with psycopg.connect(app.url, autocommit=True) as watcher:
        async with asyncio.timeout(PATIENCE_S):
            while not watcher.execute(stuck).fetchall():
                if task.done():
                    return
                await asyncio.sleep(0.02)


def test_every_table_with_a_place_is_renamed_or_left_on_purpose(database: str) -> None:
    columns = ["workspace", "from_workspace", "workspaces"]
    query = (
        "SELECT DISTINCT attrelid::regclass::text FROM pg_attribute a JOIN pg_class c ON c.oid = attrelid"
        " WHERE attname = ANY(%s) AND relkind = 'r' AND relnamespace = 'public'::regnamespace"
    )
    with psycopg.connect(database) as connection:
        tables = {str(row[0]) for row in connection.execute(query, [columns])}

    assert tables == RENAMED | LEFT


@pytest.mark.parametrize(
    ("renaming", "old", "new"),
    [
        ({"workspace": "Øst 東", "to_workspace": "Vest 西"}, ("Øst 東", "north"), ("Vest 西", "north")),
        (
            {"workspace": "Øst 東", "namespace": "north", "to_namespace": "south"},
            ("Øst 東", "north"),
            ("Øst 東", "south"),
        ),
    ],
    ids=["workspace", "namespace"],
)
async def test_a_place_is_found_whole_under_its_new_name_alone_and_back(
    unshared: Application,
    monkeypatch: pytest.MonkeyPatch,
    renaming: dict[str, str],
    old: tuple[str, str],
    new: tuple[str, str],
) -> None:
    monkeypatch.setattr(scope_renaming, "PAGE", 2)
    admin = unshared.admin()
    here, there = ({"workspace": place[0], "namespace": place[1]} for place in (old, new))
    ids = await fill(admin, **here)
    await fill(admin, workspace="other", namespace="north")
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE notes SET temperature = 'cold' WHERE id = %s", [ids["note"]])
        connection.execute("UPDATE note_chunks SET tsv = NULL WHERE note_id = %s", [ids["note"]])
        outbox = "INSERT INTO outbox (projection, memory_id, tenant, workspace, namespace) "
        rows = "SELECT p, id, tenant, workspace, namespace FROM notes, unnest('{notes,cold}'::text[]) p WHERE id = %s"
        connection.execute(outbox + rows, [ids["note"]])
    await unshared.indexed()
    before, seen, others = rows_in(unshared, *old), await found(admin, **here), rows_in(unshared, "other")
    preview = await foreseen(admin, **renaming)

    operation = await renamed(admin, **renaming)
    await unshared.indexed()

    assert all(before.values()), before
    assert {ids["note"], ids["message"]} < seen
    kinds = ("notes", "messages", "documents", "procedures", "entities", "sessions", "profiles", "in_trash")
    assert {name: operation["counts"][name] for name in kinds} == {name: preview[name] for name in kinds}
    assert (rows_in(unshared, *old), rows_in(unshared, *new)) == (dict.fromkeys(before, 0), before)
    assert (await found(admin, **here), await found(admin, **there)) == (set(), seen)
    assert await unshared.drift() == {}
    assert rows_in(unshared, "other") == others
    profile = await sent(admin, "GET", "/v1/profile", params={**there, "user": "ann"})
    assert profile["document"] == {"likes": "boats"}
    entities = await sent(admin, "GET", "/v1/graph/neighbours", params={**there, "name": "Mira Koskinen"})
    assert "Orion" in str(entities["neighbours"])
    events = (await sent(admin, "GET", "/v1/events", params={"limit": 1000}))["events"]
    told = [event["facts"] for event in events if event["kind"] == "scope.renamed"]
    assert [facts.get("to_workspace") or facts.get("from_workspace") for facts in told] == [new[0], old[0]]

    for name in ("gone note", "gone document"):
        await sent(admin, "POST", f"/v1/trash/{ids[name]}/restore")
    await unshared.indexed()
    assert rows_in(unshared, *old) == dict.fromkeys(before, 0)

    await ended(admin, await sent(admin, "POST", f"/v1/operations/{operation['id']}/undo"))
    await unshared.indexed()

    assert sum(rows_in(unshared, *new).values()) == 0
    assert seen <= await found(admin, **here)
    assert await unshared.drift() == {}


async def test_a_session_is_renamed_with_its_messages_notes_and_trash(unshared: Application) -> None:
    admin = unshared.admin()
    ids = await fill(admin)
    await sent(admin, "DELETE", f"/v1/messages/{ids['message']}")
    call = {"workspace": "default", "namespace": "default", "session": "s 1", "to_session": "Tide 潮"}

    preview = await foreseen(admin, **call)
    operation = await renamed(admin, **call)
    await sent(admin, "POST", f"/v1/trash/{ids['message']}/restore")

    assert preview == operation["counts"] == {"messages": 1, "notes": 1}
    told = (await sent(admin, "GET", "/v1/sessions/Tide 潮/messages"))["messages"]
    assert [message["position"] for message in told] == [1, 2]
    assert (await sent(admin, "GET", "/v1/sessions/s 1/messages"))["messages"] == []
    assert (await sent(admin, "GET", f"/v1/notes/{ids['note']}"))["session"] == "Tide 潮"
    assert {one["session"] for one in (await sent(admin, "GET", "/v1/sessions"))["sessions"]} == {"Tide 潮"}
    narrowed = {"query": "boat Orion", "filters": {"session": "Tide 潮"}, "cache": False}
    hits = (await sent(admin, "POST", "/v1/search", json=narrowed))["results"]
    assert ids["note"] in {hit["id"] for hit in hits}
    assert await unshared.drift() == {}

    await ended(admin, await sent(admin, "POST", f"/v1/operations/{operation['id']}/undo"))
    assert len((await sent(admin, "GET", "/v1/sessions/s 1/messages"))["messages"]) == 2


@pytest.mark.parametrize(
    "call",
    [
        {"workspace": "a", "to_workspace": "b"},
        {"workspace": "a", "namespace": "default", "to_namespace": "other"},
        {"workspace": "a", "namespace": "default", "session": "s", "to_session": "t"},
    ],
    ids=["workspace", "namespace", "session"],
)
async def test_nothing_is_renamed_onto_what_is_there(application: Application, call: dict[str, str]) -> None:
    admin = application.admin()
    for workspace, namespace, session in (
        ("a", "default", "s"),
        ("a", "default", "t"),
        ("a", "other", "s"),
        ("b", "x", "s"),
    ):
        turn = {"workspace": workspace, "namespace": namespace, "session": session, "messages": [{"content": "Ahoy"}]}
        await sent(admin, "POST", "/v1/turns", json=turn)

    answers = [await admin.post("/v1/scopes/rename", json={**call, "dry_run": dry}) for dry in (True, False)]
    missing = {name: f"no such {id_}" if name == list(call)[-2] else id_ for name, id_ in call.items()}
    nothing = await admin.post("/v1/scopes/rename", json=missing)

    assert [answer.status_code for answer in answers] == [409, 409]
    assert nothing.status_code == 404
    assert (await sent(admin, "GET", "/v1/operations", params={"workspace": "a"}))["operations"] == []
    assert rows_in(application, "a")["messages"] == 3


@pytest.mark.parametrize(
    "body",
    [
        {"workspace": "a"},
        {"workspace": "a", "to_workspace": "a"},
        {"workspace": "a", "namespace": "n", "to_workspace": "b"},
        {"workspace": "a", "to_namespace": "b"},
        {"workspace": "a", "to_workspace": "b", "to_namespace": "c"},
        {"to_workspace": "b"},
        {"workspace": "a", "to_workspace": "\u0000"},
    ],
)
async def test_a_renaming_that_says_too_little_or_too_much_is_refused(
    application: Application, body: dict[str, str]
) -> None:
    admin = application.admin()

    assert (await admin.post("/v1/scopes/rename", json=body)).status_code == 422


async def test_keys_shares_settings_and_webhooks_follow_and_keys_that_reach_further_are_told(
    application: Application,
) -> None:
    admin = application.admin()
    for workspace in ("own", "reader"):
        await sent(admin, "POST", "/v1/notes", json={"workspace": workspace, "content": f"A buoy of {workspace}"})
    await sent(admin, "PUT", "/v1/workspaces/own/settings", json={"limit": 3})
    await sent(admin, "PUT", "/v1/memory-profile", json={"workspace": "own", "agent": "guide", "tiers": ["notes"]})
    share = {"workspace": "own", "to_workspace": "reader", "segment": "notes"}
    await sent(admin, "POST", "/v1/shares", json=share)

    def bound(**bounds: list[str]) -> httpx.AsyncClient:
        limits = Bounds.from_lists(bounds)
        principal = new_principal(application.tenant, KeyRole.WRITER, utc_now(), bounds=limits)
        return application.client(store_key(application.url, principal, str(bounds)))

    own, apart = bound(workspaces=["own"], namespaces=["default"]), bound(namespaces=["default"])
    preview = await foreseen(admin, workspace="own", namespace="default", to_namespace="main")

    first = await renamed(admin, workspace="own", namespace="default", to_namespace="main")
    second = await renamed(admin, workspace="own", to_workspace="new")

    assert (preview["keys"], preview["keys_left"], preview["shares"]) == (1, 1, 1)
    assert (first["counts"]["keys"], first["counts"]["shares"]) == (1, 1)
    assert (second["counts"]["keys"], second["counts"]["shares"]) == (1, 1)
    place = {"workspace": "new", "namespace": "main"}
    assert len((await sent(own, "GET", "/v1/notes", params=place))["notes"]) == 1
    assert (await own.get("/v1/notes", params={"workspace": "own", "namespace": "default"})).status_code == 403
    assert (await apart.get("/v1/notes", params=place)).status_code == 403
    assert (await sent(admin, "GET", "/v1/workspaces/new/settings"))["limit"] == 3
    shown = await sent(admin, "GET", "/v1/memory-profile", params={"workspace": "new", "agent": "guide"})
    assert shown["tiers"] == ["notes"]
    query = {"workspace": "reader", "query": "buoy", "cache": False}
    hits = (await sent(admin, "POST", "/v1/search", json=query))["results"]
    assert {hit["content"] for hit in hits} == {"A buoy of own", "A buoy of reader"}


async def test_only_an_admin_renames_and_a_bound_one_to_a_name_within_its_bounds(application: Application) -> None:
    await sent(application.client(), "POST", "/v1/notes", json={"workspace": "own", "content": "A buoy"})
    bounds = Bounds.from_lists({"workspaces": ["own", "free"]})
    principal = new_principal(application.tenant, KeyRole.ADMIN, utc_now(), bounds=bounds)
    bound = application.client(store_key(application.url, principal, "bound"))

    async def status(client: httpx.AsyncClient, name: str) -> int:
        call = {"workspace": "own", "to_workspace": name}
        return (await client.post("/v1/scopes/rename", json=call)).status_code

    assert await status(application.client(), "free") == 403
    assert await status(bound, "foreign") == 403
    assert await status(bound, "free") == 200


async def test_an_interrupted_renaming_holds_writes_up_and_goes_on_where_it_was(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_renaming, "PAGE", 10)
    admin = application.admin()
    notes = [{"content": f"Buoy {uuid4().hex}"} for _ in range(25)]
    await sent(admin, "POST", "/v1/notes/batch", json={"workspace": "old", "notes": notes})
    renaming = application.services.workers.renaming
    step, steps = renaming.step, []

    async def failing(operation: Operation) -> None:
        steps.append(operation)
        if len(steps) == 2:
            raise Unavailable("postgres", "gone away")
        await step(operation)

    monkeypatch.setattr(renaming, "step", failing)
    body = {"workspace": "old", "to_workspace": "new"}
    begun = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]
    halfway = (rows_in(application, "old")["notes"], rows_in(application, "new")["notes"])
    refused = [await admin.post("/v1/notes", json={"workspace": name, "content": "Late"}) for name in ("old", "new")]
    unheard = await admin.post("/v1/notes", json={"workspace": "old", "namespace": "unheard", "content": "Late"})
    assert [answer.status_code for answer in (*refused, unheard)] == [503, 503, 503]
    rival = await admin.post("/v1/scopes/rename", json={"workspace": "new", "to_workspace": "third"})
    workers = replace(application.services.workers, renaming=renaming)
    other = build_operations(application.pool, workers)
    await asyncio.gather(*(replica.work() for replica in (other, application.services.operations, other)))
    operation = await ended(admin, begun)

    assert (begun["state"], halfway) == ("running", (15, 10))
    assert rival.status_code == 409
    assert operation["counts"]["notes"] == 25
    assert (rows_in(application, "old")["notes"], rows_in(application, "new")["notes"]) == (0, 25)
    assert [
        await sent(admin, "POST", "/v1/notes", json={"workspace": name, "content": "Late"}) for name in ("old", "new")
    ]


async def test_a_write_that_began_before_the_renaming_is_renamed_with_the_rest(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "old", "content": "Early"})
    body = {"workspace": "old", "to_workspace": "new"}
    begun, waiting = asyncio.Event(), asyncio.Event()

    async def write(connection: Connection) -> None:
        row = (
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at) SELECT gen_random_uuid(), tenant, workspace, namespace, category, 'Late',"
            " '', importance, confidence, source, event_at FROM notes WHERE tenant = %s AND content = 'Early'"
        )
        await connection.execute(row.encode(), [application.tenant])
        await bump_epoch(connection, Scope(application.tenant, "old"))
        begun.set()
        await waiting.wait()

    writing = asyncio.create_task(in_transaction(application.pool, write))
    await begun.wait()
    renaming = asyncio.create_task(renamed(admin, **body))
    with psycopg.connect(application.url, autocommit=True) as watcher:
        stuck = "SELECT FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND query LIKE '%INSERT INTO epochs%'"
        async with asyncio.timeout(PATIENCE_S):
            while not watcher.execute(stuck).fetchall():
                assert not renaming.done()
                await asyncio.sleep(0.02)
    waiting.set()
    await writing

    assert (await renaming)["counts"] == {"notes": 2}
    assert rows_in(application, "old")["notes"] == 0


@pytest.mark.parametrize("is_known", [True, False], ids=["a namespace that was written", "a new namespace"])
async def test_a_write_that_began_under_the_new_name_takes_it(application: Application, is_known: bool) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "old", "content": "Early"})
    body = {"workspace": "old", "to_workspace": "new"}
    if is_known:
        await in_transaction(
            application.pool, lambda connection: bump_epoch(connection, Scope(application.tenant, "new"))
        )
    begun, waiting = asyncio.Event(), asyncio.Event()

    async def write(connection: Connection) -> None:
        row = (
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at) SELECT gen_random_uuid(), tenant, 'new', namespace, category, 'Begun',"
            " '', importance, confidence, source, event_at FROM notes WHERE tenant = %s AND content = 'Early'"
        )
        await connection.execute(row.encode(), [application.tenant])
        await bump_epoch(connection, Scope(application.tenant, "new"))
        begun.set()
        await waiting.wait()

    writing = asyncio.create_task(in_transaction(application.pool, write))
    await begun.wait()
    renaming = asyncio.create_task(admin.post("/v1/scopes/rename", json=body))
    await waits_for_a_lock(application, renaming)
    waiting.set()
    await writing

    assert (await renaming).status_code == 409
    assert (rows_in(application, "old")["notes"], rows_in(application, "new")["notes"]) == (1, 1)
    assert await sent(admin, "POST", "/v1/notes", json={"workspace": "new", "content": "Late"})


async def test_the_first_write_of_a_namespace_waits_for_the_order_of_a_renaming(application: Application) -> None:
    ordered = uuid4()
    ids = {"tenant": application.tenant, "workspace": "old", "namespace": None}
    ids |= {"to_workspace": "new", "to_namespace": None}
    closed, waiting = asyncio.Event(), asyncio.Event()

    async def order(connection: Connection) -> None:
        row = (
            "INSERT INTO operations (id, tenant, kind, workspace, request, requested_at, retry_at)"
            """ VALUES (%s, %s, 'rename_scope', 'old', '{"to_workspace": "new"}', now(), 'infinity')"""
        )
        await connection.execute(row.encode(), [ordered, application.tenant])
        await close_places(connection, ids, ordered)
        closed.set()
        await waiting.wait()

    ordering = asyncio.create_task(in_transaction(application.pool, order))
    await closed.wait()
    place = Scope(application.tenant, "new", "unheard")
    writing = asyncio.create_task(in_transaction(application.pool, lambda connection: bump_epoch(connection, place)))
    await waits_for_a_lock(application, writing)
    waiting.set()
    await ordering

    with pytest.raises(Unavailable, match=str(ordered)):
        await writing
    with psycopg.connect(application.url) as connection:
        connection.execute("DELETE FROM operations WHERE id = %s", [ordered])


async def test_settings_profiles_and_shares_of_both_names_wait_for_the_end(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = application.admin()
    for workspace in ("old", "reader"):
        await sent(admin, "POST", "/v1/notes", json={"workspace": workspace, "content": f"A buoy of {workspace}"})
    await sent(admin, "PUT", "/v1/workspaces/old/settings", json={"limit": 3})
    profile = {"agent": "guide", "tiers": ["notes"]}
    await sent(admin, "PUT", "/v1/memory-profile", json={"workspace": "old", **profile})
    share = {"to_workspace": "reader", "segment": "notes"}
    await sent(admin, "POST", "/v1/shares", json={"workspace": "old", **share})
    renaming = application.services.workers.renaming
    step = renaming.step

    async def failing(_: Operation) -> None:
        raise Unavailable("postgres", "gone away")

    monkeypatch.setattr(renaming, "step", failing)
    body = {"workspace": "old", "to_workspace": "new"}
    begun = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]
    statuses = {
        (path, workspace): (await admin.request(method, path.format(workspace), json=json)).status_code
        for workspace in ("old", "new")
        for method, path, json in (
            ("PUT", "/v1/workspaces/{}/settings", {"limit": 4}),
            ("PUT", "/v1/memory-profile", {"workspace": workspace, **profile}),
            ("POST", "/v1/shares", {"workspace": workspace, **share}),
        )
    }
    monkeypatch.setattr(renaming, "step", step)
    await application.services.operations.work()
    operation = await ended(admin, begun)

    assert set(statuses.values()) == {503}, statuses
    assert operation["counts"]["shares"] == 1
    assert (await sent(admin, "GET", "/v1/workspaces/new/settings"))["limit"] == 3
    assert await sent(admin, "POST", "/v1/shares", json={"workspace": "old", **share})


async def test_renamings_of_workspaces_that_share_with_each_other_do_not_wait_for_one_another(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = application.admin()
    for workspace, other in (("a", "c"), ("c", "a")):
        await sent(admin, "POST", "/v1/notes", json={"workspace": workspace, "content": f"A buoy of {workspace}"})
        share = {"workspace": workspace, "to_workspace": other, "segment": "notes"}
        await sent(admin, "POST", "/v1/shares", json=share)
    renaming = application.services.workers.renaming
    step = renaming.step

    async def failing(_: Operation) -> None:
        raise Unavailable("postgres", "gone away")

    monkeypatch.setattr(renaming, "step", failing)
    begun = [
        (await sent(admin, "POST", "/v1/scopes/rename", json={"workspace": old, "to_workspace": new}))["operation"]
        for old, new in (("a", "b"), ("c", "d"))
    ]
    monkeypatch.setattr(renaming, "step", step)
    with psycopg.connect(application.url) as connection:
        ids = [one["id"] for one in begun]
        connection.execute("UPDATE operations SET failures = 18, retry_at = NULL WHERE id = ANY(%s)", [ids])
    await application.services.operations.work()
    for one in begun:
        await ended(admin, one)

    for workspace in ("b", "d"):
        query = {"workspace": workspace, "query": "buoy", "cache": False}
        hits = (await sent(admin, "POST", "/v1/search", json=query))["results"]
        assert {hit["content"] for hit in hits} == {"A buoy of a", "A buoy of c"}


async def test_a_renaming_that_was_given_up_halfway_goes_on_or_back_when_it_is_ordered_again(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scope_renaming, "PAGE", 10)
    admin = application.admin()
    notes = [{"content": f"Buoy {uuid4().hex}"} for _ in range(25)]
    await sent(admin, "POST", "/v1/notes/batch", json={"workspace": "old", "notes": notes})
    renaming = application.services.workers.renaming
    step, steps = renaming.step, []

    async def failing(operation: Operation) -> None:
        steps.append(operation)
        if len(steps) > 1:
            raise Unavailable("postgres", "gone away")
        await step(operation)

    monkeypatch.setattr(renaming, "step", failing)
    body = {"workspace": "old", "to_workspace": "new"}
    begun = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE operations SET failures = 100, retry_at = NULL WHERE id = %s", [begun["id"]])
    await application.services.operations.work()
    given_up = await sent(admin, "GET", f"/v1/operations/{begun['id']}")
    monkeypatch.setattr(renaming, "step", step)
    late = {"workspace": "new", "content": "Late"}
    refused = await admin.post("/v1/notes", json=late)
    rivals = [
        await admin.post("/v1/scopes/rename", json={**names, "to_workspace": "third"})
        for names in ({"workspace": "new"}, {"workspace": "old"})
    ]
    await end_of_tenant(application.pool, application.tenant, {"operations": timedelta(days=-1)}, utc_now())

    back = await renamed(admin, workspace="new", to_workspace="old")

    assert given_up["state"] == "failed"
    assert (refused.status_code, begun["id"] in refused.text) == (503, True)
    assert [(answer.status_code, begun["id"] in answer.text) for answer in rivals] == [(409, True)] * 2
    assert back["counts"]["notes"] == 10
    assert rows_in(application, "old")["notes"] == 25
    assert await sent(admin, "POST", "/v1/notes", json=late)
    # The renaming that was given up is over: what lies under the two names now is not brought together.
    for names in ((body["workspace"], body["to_workspace"]), (body["to_workspace"], body["workspace"])):
        again = {"workspace": names[0], "to_workspace": names[1]}
        assert (await admin.post("/v1/scopes/rename", json=again)).status_code == 409
    assert (rows_in(application, "old")["notes"], rows_in(application, "new")["notes"]) == (25, 1)
    await end_of_tenant(application.pool, application.tenant, {"operations": timedelta(days=-1)}, utc_now())
    assert (await admin.get(f"/v1/operations/{begun['id']}")).status_code == 404


@pytest.mark.parametrize("is_seen", [True, False], ids=["seen before", "seen by the index alone"])
async def test_a_session_whose_new_name_was_taken_meanwhile_keeps_its_own(
    application: Application,
    monkeypatch: pytest.MonkeyPatch,
    is_seen: bool,
) -> None:
    admin = application.admin()
    place = {"workspace": "default", "namespace": "default"}
    await sent(admin, "POST", "/v1/turns", json={**place, "session": "s", "messages": [{"content": "Ahoy"}]})
    renaming = application.services.workers.renaming
    step = renaming.step

    async def late(operation: Operation) -> None:
        turn = {**place, "session": "t", "messages": [{"content": "Aye"}]}
        await sent(admin, "POST", "/v1/turns", json=turn)
        if not is_seen:
            monkeypatch.setattr(scope_renaming, "find_contents", AsyncMock(return_value=[]))
        await step(operation)

    monkeypatch.setattr(renaming, "step", late)
    body = {**place, "session": "s", "to_session": "t"}
    operation = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]

    assert operation["state"] == "failed"
    assert "taken meanwhile" in operation["waits_for"]
    for session, content in (("s", "Ahoy"), ("t", "Aye")):
        told = (await sent(admin, "GET", f"/v1/sessions/{session}/messages"))["messages"]
        assert [message["content"] for message in told] == [content]


@pytest.mark.parametrize(
    "call",
    [
        {"workspace": "old", "to_workspace": "new"},
        {"workspace": "old", "namespace": "default", "session": "s", "to_session": "t"},
    ],
    ids=["workspace", "session"],
)
async def test_a_scope_with_notes_that_are_archived_in_files_alone_keeps_its_name(
    application: Application, call: dict[str, str]
) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "old", "session": "s", "content": "A buoy"})
    with psycopg.connect(application.url) as connection:
        archived = (
            "INSERT INTO archived_notes (id, tenant, workspace, namespace, content_hash, file, archived_at)"
            " VALUES (gen_random_uuid(), %s, 'old', 'default', '', 'folder/no_file', now())"
        )
        connection.execute(archived, [application.tenant])

    answer = await admin.post("/v1/scopes/rename", json=call)

    assert answer.status_code == 409
    assert "archived" in answer.json()["detail"]


async def test_an_archived_note_of_another_session_or_none_holds_no_session_up_and_its_own_follows(
    application: Application,
) -> None:
    admin = application.admin()
    place = {"workspace": "old", "namespace": "default"}
    await sent(admin, "POST", "/v1/notes", json={**place, "session": "s", "content": "A buoy"})
    with psycopg.connect(application.url) as connection:
        archived = (
            "INSERT INTO archived_notes (id, tenant, workspace, namespace, session_id, content_hash, file, archived_at)"
            " VALUES (gen_random_uuid(), %s, 'old', 'default', %s, '', 'folder/no_file', now())"
        )
        for session in ("s", "another", ""):
            connection.execute(archived, [application.tenant, session])

    onto = await admin.post("/v1/scopes/rename", json={**place, "session": "s", "to_session": "another"})
    operation = await renamed(admin, **place, session="s", to_session="t")

    assert (onto.status_code, "archived notes" in onto.json()["detail"]) == (409, True)
    assert operation["counts"] == {"notes": 1}
    with psycopg.connect(application.url) as connection:
        sessions = "SELECT session_id FROM archived_notes WHERE tenant = %s ORDER BY session_id"
        assert connection.execute(sessions, [application.tenant]).fetchall() == [("",), ("another",), ("t",)]


async def test_the_erasure_of_a_user_does_not_wait_for_a_renaming_that_was_given_up_halfway(
    unshared: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = unshared.admin()
    for user in ("ann", "bob"):
        turn = {"workspace": "old", "session": f"s {user}", "user": user, "messages": [{"content": f"{user}: Ahoy"}]}
        await sent(admin, "POST", "/v1/turns", json=turn)
        await sent(admin, "POST", "/v1/notes", json={"workspace": "old", "user": user, "content": f"{user} has a buoy"})
    renaming = unshared.services.workers.renaming
    step = renaming.step

    async def halting(operation: Operation) -> None:
        if not rows_in(unshared, "old")["messages"]:
            raise Unavailable("postgres", "gone away")
        await step(operation)

    monkeypatch.setattr(renaming, "step", halting)
    body = {"workspace": "old", "to_workspace": "new"}
    begun = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE operations SET failures = 100, retry_at = NULL WHERE id = %s", [begun["id"]])
    await unshared.services.operations.work()
    assert (await sent(admin, "GET", f"/v1/operations/{begun['id']}"))["state"] == "failed"

    receipt = await sent(admin, "DELETE", "/v1/users?user=ann")
    monkeypatch.setattr(renaming, "step", step)
    await renamed(admin, **body)

    assert (receipt["complete"], set(receipt["left"].values())) == (True, {0})
    # The messages of the other user had moved before their session.
    kept = {"messages": 1, "notes": 1, "sessions": 1}
    assert {kind: rows_in(unshared, "new")[kind] for kind in kept} == kept
    assert rows_in(unshared, "old")["sessions"] == 0
    assert await unshared.drift() == {}


def key_bound_to(application: Application, role: KeyRole = KeyRole.WRITER, **bounds: list[str]) -> httpx.AsyncClient:
    principal = new_principal(application.tenant, role, utc_now(), bounds=Bounds.from_lists(bounds))
    return application.client(store_key(application.url, principal, str(bounds)))


@pytest.mark.parametrize(
    ("call", "gaining", "neutral"),
    [
        (
            {"workspace": "a", "to_workspace": "b"},
            {"workspaces": ["b", "c"]},
            {"workspaces": ["a", "b"]},
        ),
        (
            {"workspace": "a", "namespace": "default", "to_namespace": "n"},
            {"namespaces": ["n"]},
            {"workspaces": ["b"], "namespaces": ["n"]},
        ),
    ],
    ids=["workspace", "namespace"],
)
async def test_no_renaming_gives_memories_to_keys_that_are_bound_to_the_new_name(
    application: Application, call: dict[str, str], gaining: dict[str, list[str]], neutral: dict[str, list[str]]
) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "a", "content": "A buoy"})
    key_bound_to(application, **neutral)
    key_bound_to(application, **gaining)

    refused = [await admin.post("/v1/scopes/rename", json={**call, "dry_run": dry}) for dry in (True, False)]
    revoke = "UPDATE api_keys SET revoked_at = now() WHERE label = %s AND tenant = %s"
    with psycopg.connect(application.url) as connection:
        connection.execute(revoke, [str(gaining), application.tenant])
    operation = await renamed(admin, **call)

    assert [answer.status_code for answer in refused] == [409, 409]
    assert "keys are bound" in refused[0].json()["detail"]
    assert operation["counts"] == {"notes": 1}


async def test_a_key_that_names_both_names_has_both_after_a_renaming_and_its_undo(application: Application) -> None:
    await sent(application.client(), "POST", "/v1/notes", json={"workspace": "a", "content": "A buoy"})
    bound = key_bound_to(application, KeyRole.ADMIN, workspaces=["a", "b"])

    async def seen() -> list[int]:
        lists = [await sent(bound, "GET", "/v1/notes", params={"workspace": name}) for name in ("a", "b")]
        return [len(one["notes"]) for one in lists]

    operation = await renamed(bound, workspace="a", to_workspace="b")
    after = await seen()
    shown = await sent(bound, "GET", f"/v1/operations/{operation['id']}")
    await ended(bound, await sent(bound, "POST", f"/v1/operations/{operation['id']}/undo"))

    assert (after, await seen()) == ([0, 1], [1, 0])
    assert shown["state"] == "complete"


async def test_a_key_that_a_renaming_left_stands_in_no_way_of_its_undo(application: Application) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "a", "content": "A buoy"})
    left = key_bound_to(application, namespaces=["default"])
    operation = await renamed(admin, workspace="a", namespace="default", to_namespace="n")

    await ended(admin, await sent(admin, "POST", f"/v1/operations/{operation['id']}/undo"))

    notes = await sent(left, "GET", "/v1/notes", params={"workspace": "a", "namespace": "default"})
    assert len(notes["notes"]) == 1


async def test_a_renaming_is_undone_once_and_before_any_later_one_of_its_names(application: Application) -> None:
    admin = application.admin()

    async def undo(operation: dict[str, Any]) -> int:
        return (await admin.post(f"/v1/operations/{operation['id']}/undo")).status_code

    await sent(admin, "POST", "/v1/notes", json={"workspace": "a", "content": "A buoy"})
    first = await renamed(admin, workspace="a", to_workspace="b")
    inner = await renamed(admin, workspace="b", namespace="default", to_namespace="n")
    second = await renamed(admin, workspace="b", to_workspace="c")
    await sent(admin, "POST", "/v1/notes", json={"workspace": "b", "content": "Of another team"})

    assert [await undo(first), await undo(inner)] == [409, 409]
    assert [rows_in(application, name)["notes"] for name in ("a", "b", "c")] == [0, 1, 1]
    third = await renamed(admin, workspace="c", to_workspace="d")
    assert [await undo(second), await undo(third), await undo(third)] == [409, 200, 409]
    assert rows_in(application, "c")["notes"] == 1


async def test_a_bound_admin_undoes_a_renaming_between_names_of_its_own_alone(application: Application) -> None:
    admin = application.admin()
    for name in ("a", "b"):
        await sent(admin, "POST", "/v1/notes", json={"workspace": name, "content": "A buoy"})
    inner = await renamed(admin, workspace="b", to_workspace="c")
    operation = await renamed(admin, workspace="a", to_workspace="b")
    apart, of_both = (key_bound_to(application, KeyRole.ADMIN, workspaces=names) for names in (["b", "c"], ["a", "b"]))
    undo = f"/v1/operations/{operation['id']}/undo"

    assert (await apart.post(undo)).status_code == 403
    assert (await apart.get(f"/v1/operations/{inner['id']}")).status_code == 200
    listed = (await sent(apart, "GET", "/v1/operations", params={"workspace": "c"}))["operations"]
    assert [one["id"] for one in listed] == [inner["id"]]
    assert (await of_both.post(undo)).status_code == 200


async def test_no_operation_is_ordered_over_a_workspace_that_is_being_renamed(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    admin = application.admin()
    for name in ("old", "apart"):
        await sent(admin, "POST", "/v1/notes", json={"workspace": name, "content": "A buoy"})
    renaming = application.services.workers.renaming
    step = renaming.step

    async def failing(operation: Operation) -> None:
        raise Unavailable("postgres", f"gone away before {operation.id}")

    monkeypatch.setattr(renaming, "step", failing)
    body = {"workspace": "old", "to_workspace": "new"}
    begun = (await sent(admin, "POST", "/v1/scopes/rename", json=body))["operation"]
    orders: list[tuple[str, dict[str, Any]]] = [
        ("/v1/scopes/delete", {"workspace": "old"}),
        ("/v1/scopes/delete", {"workspace": "new"}),
        ("/v1/scopes/delete", {"everything": True}),
        ("/v1/notes/bulk", {"workspace": "old", "everything": True, "to_workspace": "third"}),
        ("/v1/notes/bulk", {"workspace": "apart", "everything": True, "to_workspace": "new"}),
    ]
    refused = [await admin.post(path, json=order) for path, order in orders]
    elsewhere = await admin.post("/v1/scopes/delete", json={"workspace": "apart"})
    monkeypatch.setattr(renaming, "step", step)
    await application.services.operations.work()
    await ended(admin, begun)

    assert [answer.status_code for answer in refused] == [503] * len(orders)
    assert all("Retry-After" in answer.headers for answer in refused)
    assert elsewhere.is_success
    assert (await sent(admin, "POST", "/v1/scopes/delete", json={"workspace": "new"}))["counts"] == {"notes": 1}


@pytest.mark.parametrize(
    ("statement", "table"),
    [
        ("rename_notes", "notes"),
        ("rename_deleted_notes", "notes"),
        ("lock_procedures_to_rename", "procedures"),
        ("lock_passages_to_rename", "passages"),
        ("lock_messages_of_session", "messages"),
        ("rename_messages", "messages"),
        ("rename_documents", "passages"),
        ("rename_procedures", "procedures"),
        ("rename_entities", "entities"),
        ("rename_session_of_notes", "notes"),
        ("rename_session_of_archived_notes", "archived_notes"),
        ("has_archived_notes_of_any_session", "archived_notes"),
    ],
)
@pytest.mark.parametrize("namespace", [None, "default"])
def test_no_page_of_a_renaming_reads_a_table_from_end_to_end(
    database: str, statement: str, table: str, namespace: str | None
) -> None:
    ids = {"tenant": "t", "workspace": "a", "namespace": namespace, "session_id": "s", "ids": [uuid4()], "limit": 200}
    names = {"to_workspace": "b", "to_namespace": None, "to_session": "u"}
    with psycopg.connect(database) as connection:
        connection.execute("SET enable_seqscan = off")  # It is then chosen only where no index serves.
        rows = connection.execute(b"EXPLAIN " + QUERIES[statement], {**ids, **names}).fetchall()

    assert not [line for (line,) in rows if f"Seq Scan on {table}" in line]


VECTORS = ("message_chunks", "note_chunks", "passage_chunks", "procedure_embeddings", "entity_embeddings")


@pytest.mark.parametrize(("kind", "session"), [*((kind, None) for kind in EMBEDDED), ("messages", "s 1")])
async def test_vectors_that_a_job_writes_meanwhile_are_renamed_with_their_rows(
    unshared: Application, kind: str, session: str | None
) -> None:
    admin = unshared.admin()
    await fill(admin, workspace="old")
    area, model = Area(unshared.tenant, "old", "default"), HashingModel(seed=2)
    job = ReembedJob(unshared.pool, BatchingEmbedder(model), ReembedPolicy(model.identity), lambda: None)
    begun, waiting = asyncio.Event(), asyncio.Event()
    planned = (await job.decide(area, {"step": kind, "id": None}, utc_now())).plan
    assert isinstance(planned, VectorPage)

    async def embed(connection: Connection) -> int:
        changed = (await job.act(RowWriter(connection, None, utc_now()), area, planned)).changed
        begun.set()
        await waiting.wait()
        return changed

    embedding = asyncio.create_task(in_transaction(unshared.pool, embed))
    await begun.wait()
    of_session = {"namespace": "default", "session": session, "to_session": "t"}
    call = {"workspace": "old", **({"to_workspace": "new"} if session is None else of_session)}
    renaming = asyncio.create_task(renamed(admin, **{name: id_ for name, id_ in call.items() if id_}))
    await waits_for_a_lock(unshared, renaming)
    waiting.set()

    assert await embedding > 0
    await renaming
    with psycopg.connect(unshared.url) as connection:
        place = "workspace = 'old'" if session is None else "session_id = 's 1'"
        tables = VECTORS if session is None else ("message_chunks",)
        counts = [f"SELECT count(*) FROM {table} WHERE {place}" for table in tables]  # noqa: S608
        left = [connection.execute(count).fetchone() for count in counts]
    assert left == [(0,)] * len(tables)


async def test_notes_that_were_merged_into_deleted_ones_are_renamed_with_them(application: Application) -> None:
    admin = application.admin()
    ids = [
        (await sent(admin, "POST", "/v1/notes", json={"workspace": "a", "session": "s", "content": f"Buoy {number}"}))[
            "id"
        ]
        for number in range(4)
    ]
    with psycopg.connect(application.url) as connection:
        gone = "UPDATE notes SET deleted_at = now(), merged_into = %s WHERE id = %s"
        for id_, into in ((ids[0], None), (ids[1], ids[0]), (ids[2], ids[3])):
            connection.execute(gone, [into, id_])

    await renamed(admin, workspace="a", namespace="default", session="s", to_session="t")
    await renamed(admin, workspace="a", to_workspace="b")

    with psycopg.connect(application.url) as connection:
        places = "SELECT DISTINCT workspace, session_id FROM notes WHERE id = ANY(%s::uuid[])"
        assert connection.execute(places, [ids]).fetchall() == [("b", "t")]


@pytest.mark.parametrize(
    "call",
    [
        {"workspace": "a", "to_workspace": "b"},
        {"workspace": "a", "namespace": "default", "to_namespace": "n"},
        {"workspace": "a", "namespace": "default", "session": "s", "to_session": "t"},
    ],
    ids=["workspace", "namespace", "session"],
)
async def test_a_name_is_free_once_its_memories_are_deleted_as_the_refusal_says(
    application: Application, call: dict[str, str]
) -> None:
    admin = application.admin()
    target = {
        "workspace": call.get("to_workspace", "a"),
        "namespace": call.get("to_namespace", "default"),
        "session": call.get("to_session", "s"),
    }
    for place in ({"workspace": "a", "session": "s"}, target):
        turn = {**place, "messages": [{"content": f"Ahoy {place}"}]}
        await sent(admin, "POST", "/v1/turns", json=turn)
    scope = {name: target[name] for name in ("workspace", "namespace", "session") if name in call}

    refused = await admin.post("/v1/scopes/rename", json=call)
    await ended(admin, (await sent(admin, "POST", "/v1/scopes/delete", json=scope))["operation"])
    operation = await renamed(admin, **call)

    assert refused.status_code == 409
    assert "already, with messages" in refused.json()["detail"]
    assert operation["counts"]["messages"] == 1
    place = {"workspace": target["workspace"], "namespace": target["namespace"]}
    found = await sent(admin, "GET", f"/v1/sessions/{target['session']}/messages", params=place)
    assert len(found["messages"]) == 1


async def test_a_share_that_expired_holds_no_name(application: Application) -> None:
    admin = application.admin()
    await sent(admin, "POST", "/v1/notes", json={"workspace": "a", "content": "A buoy"})
    for name in ("b", "a"):
        share = {"workspace": name, "to_workspace": "reader", "segment": "notes"}
        await sent(admin, "POST", "/v1/shares", json=share)
    with psycopg.connect(application.url) as connection:
        expired = "UPDATE shares SET expires_at = now() - interval '1 day' WHERE tenant = %s AND from_workspace = 'b'"
        connection.execute(expired, [application.tenant])

    operation = await renamed(admin, workspace="a", to_workspace="b")

    assert operation["counts"] == {"notes": 1, "shares": 1}


async def test_events_that_a_webhook_has_not_got_yet_are_sent_after_a_renaming(application: Application) -> None:
    admin = application.admin()
    hook, claim = uuid4(), uuid4()
    with psycopg.connect(application.url) as connection:
        row = (
            "INSERT INTO webhooks (id, tenant, workspace, url, kinds, secrets, position, next_at, claimed_by,"
            " claimed_until) VALUES (%s, %s, 'a', 'https://example.org', '{note.created}', '[]',"
            " (SELECT coalesce(max(seq), 0) FROM events), 'infinity', %s, 'infinity')"
        )
        connection.execute(row, [hook, application.tenant, claim])
    for name in ("a", "other"):
        await sent(admin, "POST", "/v1/notes", json={"workspace": name, "content": "A buoy"})

    await renamed(admin, workspace="a", to_workspace="b")

    with psycopg.connect(application.url) as connection:
        letters = "SELECT e.workspace, e.kind, d.is_due FROM webhook_dead_letters d JOIN events e USING (seq)"
        kept = connection.execute(f"{letters} WHERE webhook_id = %s", [hook]).fetchall()
        holder = connection.execute("SELECT workspace, claimed_by FROM webhooks WHERE id = %s", [hook]).fetchall()
    assert kept == [("a", "note.created", True)]
    assert holder == [("b", None)]
