"""Many notes at once: counted, deleted, tagged, changed and moved, as one by one."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.errors import Unavailable
from lamina.ingest.bulk_notes import BATCH
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.operations import MOST_FAILURES
from lamina.wiring.stores import utc_now
from tests.support.application import Application, ended, sent
from tests.support.embedders import Refusing

PATIENCE_S = 120.0


def place() -> dict[str, str]:
    return {"workspace": f"w {uuid4().hex[:8]}"}


async def fill(client: httpx.AsyncClient, count: int, **fields: Any) -> list[str]:
    notes = [{"content": f"Buoy {uuid4().hex} of {number}", **fields.get("note", {})} for number in range(count)]
    scope = {name: id_ for name, id_ in fields.items() if name != "note"}
    answer = await sent(client, "POST", "/v1/notes/batch", json={**scope, "notes": notes})
    return [item["id"] for item in answer["results"]]


async def ids_in(client: httpx.AsyncClient, **scope: Any) -> set[str]:
    answer = await sent(client, "GET", "/v1/notes", params={**scope, "limit": 1000})
    return {note["id"] for note in answer["notes"]}


async def test_a_dry_run_counts_and_shows_some_and_changes_nothing(application: Application) -> None:
    client, scope = application.client(), place()
    tagged = await fill(client, 12, **scope, note={"tags": ["røyk 煙"]})
    await fill(client, 3, **scope)
    body = {**scope, "tags": ["røyk 煙"], "dry_run": True}

    answer = await sent(client, "POST", "/v1/notes/bulk/delete", json=body)

    assert (answer["matched"], answer["operation"]) == (12, None)
    assert {note["id"] for note in answer["sample"]} < set(tagged)
    assert len(await ids_in(client, **scope)) == 15


async def test_what_matches_is_deleted_in_batches_and_comes_back_from_the_trash(application: Application) -> None:
    client, scope = application.client(), place()
    doomed = await fill(client, BATCH + 7, **scope, note={"category": "outcome"})
    kept = await fill(client, 2, **scope)
    body = {**scope, "filters": {"category": {"in": ["outcome"]}}}

    operation = await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json=body))

    assert operation["counts"] == {"deleted": BATCH + 7}
    assert operation["request"] == {}
    assert await ids_in(client, **scope) == set(kept)
    assert await application.drift() == {}
    trashed = (await sent(client, "GET", "/v1/trash", params={**scope, "limit": 1000}))["entries"]
    assert {entry["id"] for entry in trashed} == set(doomed)
    await sent(client, "POST", f"/v1/trash/{doomed[0]}/restore")
    assert await ids_in(client, **scope) == {*kept, doomed[0]}
    events = (await sent(client, "GET", "/v1/events", params={**scope, "limit": 1000}))["events"]
    told = {id_ for event in events if event["kind"] == "note.deleted" for id_ in event["ids"]}
    assert told == set(doomed)


async def test_what_was_made_from_a_deleted_note_goes_with_it(application: Application) -> None:
    client, scope = application.client(), place()
    [source] = await fill(client, 1, **scope, note={"tags": ["old"]})
    made = {**scope, "content": f"Made {uuid4()}", "derived_from": [source]}
    await sent(client, "POST", "/v1/notes", json=made)

    await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "tags": ["old"]}))

    assert await ids_in(client, **scope) == set()


async def test_a_note_that_came_back_with_its_source_lies_in_the_trash_no_more(application: Application) -> None:
    client, scope = application.client(), place()
    [source] = await fill(client, 1, **scope)
    made = {**scope, "content": f"Made {uuid4()}", "derived_from": [source]}
    derived = (await sent(client, "POST", "/v1/notes", json=made))["id"]
    await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "everything": True}))

    await sent(client, "POST", f"/v1/trash/{source}/restore")

    assert await ids_in(client, **scope) == {source, derived}
    assert (await sent(client, "GET", "/v1/trash", params=scope))["entries"] == []


async def test_tags_and_fields_change_with_versions_and_a_second_call_changes_nothing(application: Application) -> None:
    client, scope = application.client(), place()
    [first, second] = await fill(client, 2, **scope, note={"tags": ["draft", "boat"]})
    change = {"add_tags": ["done"], "remove_tags": ["draft"], "changes": {"importance": 0.9}}
    body = {**scope, "tags": ["boat"], **change}

    once = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))
    again = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))

    assert (once["counts"], again["counts"]) == ({"changed": 2}, {"unchanged": 2})
    for id_ in (first, second):
        note = await sent(client, "GET", f"/v1/notes/{id_}")
        assert (note["tags"], note["importance"], note["version"]) == (["boat", "done"], 0.9, 2)
        versions = (await sent(client, "GET", f"/v1/notes/{id_}/versions"))["versions"]
        assert versions[0]["tags"] == ["draft", "boat"]


async def test_notes_move_with_their_places_in_every_index_and_are_found_there_alone(unshared: Application) -> None:
    client = unshared.client()
    here, there = {"workspace": "Øst 東"}, {"workspace": "Vest 西"}
    text = "Mira moors the boat Orion with two ropes"
    moved = (await sent(client, "POST", "/v1/notes", json={**here, "content": text}))["id"]
    cold = (await sent(client, "POST", "/v1/notes", json={**here, "content": "The boat Orion has a red keel"}))["id"]
    same = {**here, "content": "The boat Orion was built in 1931"}
    stays = (await sent(client, "POST", "/v1/notes", json=same))["id"]
    await sent(client, "POST", "/v1/notes", json={**same, **there})
    await unshared.indexed()
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE notes SET temperature = 'cold' WHERE id = %s", [cold])
        connection.execute("UPDATE note_chunks SET tsv = NULL WHERE note_id = %s", [cold])
        outbox = "INSERT INTO outbox (projection, memory_id, tenant, workspace, namespace) "
        rows = "SELECT p, id, tenant, workspace, namespace FROM notes, unnest('{notes,cold}'::text[]) p WHERE id = %s"
        connection.execute(outbox + rows, [cold])
    await unshared.indexed()

    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    operation = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))
    await unshared.indexed()

    assert operation["counts"] == {"moved": 2, "existing": 1}
    assert await ids_in(client, **here) == {stays}
    assert {moved, cold} < await ids_in(client, **there)
    query = {"query": "Who moors the boat Orion, and what keel has it?", "cache": False, "limit": 50}
    found = {
        name["workspace"]: await sent(client, "POST", "/v1/search", json={**query, **name}) for name in (here, there)
    }
    ids = {name: {hit["id"] for hit in answer["results"]} for name, answer in found.items()}
    assert {moved, cold} <= ids["Vest 西"]
    assert not {moved, cold} & ids["Øst 東"]
    assert await unshared.drift() == {}
    hits = await unshared.services.owners.find(unshared.tenant, "note", [moved])  # type: ignore[arg-type]
    assert {owner.workspace for owner in hits.values()} == {"Vest 西"}
    kinds = {}
    for name in (here, there):
        events = (await sent(client, "GET", "/v1/events", params=name))["events"]
        kinds[name["workspace"]] = {event["kind"] for event in events if moved in event["ids"]}
    assert kinds == {"Øst 東": {"note.created", "note.deleted"}, "Vest 西": {"note.created"}}


async def test_notes_move_without_the_names_that_the_model_refuses(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, here, there = application.client(), place(), place()
    told = [f"Mira Koskinen works at {name} Harbour." for name in ("Orion", "Unspeakable")]
    ids = {(await sent(client, "POST", "/v1/notes", json={**here, "content": text}))["id"] for text in told}
    linker = application.services.workers.notes._linker
    monkeypatch.setattr(linker, "_embedder", Refusing(linker._embedder, "Unspeakable"))

    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    operation = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))

    assert operation["counts"] == {"moved": 2}
    assert await ids_in(client, **there) == ids
    with psycopg.connect(application.url) as connection:
        where, of = "WHERE tenant = %s AND workspace = %s", [application.tenant, there["workspace"]]
        names = connection.execute(f"SELECT name FROM entities {where} ORDER BY name", of).fetchall()  # noqa: S608
        edges = connection.execute(f"SELECT type FROM edges {where}", of).fetchall()  # noqa: S608
    assert (names, edges) == ([("Mira Koskinen",), ("Orion Harbour",)], [("works_at",)])


async def test_notes_that_move_tell_whom_they_told_and_are_no_further_witnesses(application: Application) -> None:
    client, here, there = application.client(), place(), place()
    ann = "Carol married Dave."
    await sent(client, "POST", "/v1/notes", json={**here, "user": "ann", "content": ann})
    for text in ("Carol and Dave came to the meeting.", "Ada works at Initech.", "Well, Ada works at Initech, I hear."):
        await sent(client, "POST", "/v1/notes", json={**here, "content": text})

    async def facts(of: str, **scope: str) -> list[tuple[str, str, float]]:
        found = await client.get("/v1/facts", params={"subject": of, **scope})
        listed = found.json()["facts"] if found.is_success else []
        return [(fact["relation"], fact["object"], fact["confidence"]) for fact in listed]

    async def all_facts(scope: dict[str, str]) -> list[list[tuple[str, str, float]]]:
        return [await facts(of, **scope, user=user) for of in ("Carol", "Ada") for user in ("bob", "ann")]

    before = await all_facts(here)
    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))

    foreign, private, *_ = before
    assert not foreign
    assert private
    assert await all_facts(there) == before


async def test_a_note_whose_text_is_written_in_the_other_place_meanwhile_stays(application: Application) -> None:
    client, here, there = application.client(), place(), place()
    ids = await fill(client, 2, **here)
    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    with psycopg.connect(application.url) as connection:
        equal = (
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance,"
            " confidence, source, event_at) SELECT gen_random_uuid(), tenant, %s, namespace, category, content,"
            " content_hash, importance, confidence, source, event_at FROM notes WHERE id = %s"
        )
        connection.execute(equal, [there["workspace"], ids[0]])
        moving = asyncio.create_task(sent(client, "POST", "/v1/notes/bulk", json=body))
        with psycopg.connect(application.url, autocommit=True) as watcher:
            waiting = "SELECT pid FROM pg_stat_activity WHERE %s = ANY(pg_blocking_pids(pid))"
            while not watcher.execute(waiting, [connection.info.backend_pid]).fetchall():
                assert not moving.done()
                await asyncio.sleep(0.02)
        connection.commit()
    operation = await ended(client, await moving)

    assert operation["counts"] == {"moved": 1, "existing": 1}
    assert await ids_in(client, **here) == {ids[0]}


async def test_a_key_of_a_user_reaches_their_own_notes_and_nobody_elses(application: Application) -> None:
    admin, scope = application.client(), place()
    own = await fill(admin, 2, **scope, user="ann")
    others = [*await fill(admin, 2, **scope, user="bob"), *await fill(admin, 2, **scope)]
    principal = new_principal(
        application.tenant, KeyRole.WRITER, utc_now(), bounds=Bounds.from_lists({"users": ["ann"]})
    )
    client = application.client(store_key(application.url, principal, "ann's"))

    foreign = await client.post("/v1/notes/bulk/delete", json={**scope, "user": "bob", "everything": True})
    nobody = {**scope, "filters": {"user": "bob"}}
    empty = await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json=nobody))
    done = await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "everything": True}))

    assert foreign.status_code == 403
    assert (empty["counts"], done["counts"]) == ({}, {"deleted": 2})
    assert await ids_in(admin, **scope) == set(others)
    assert own
    unseen = await application.client(application.new_key("another tenant")).get(f"/v1/operations/{done['id']}")
    assert unseen.status_code == 404


@pytest.mark.parametrize("target", [{"to_workspace": "elsewhere"}, {"to_namespace": "elsewhere"}])
async def test_nothing_moves_to_where_the_key_may_not_write(application: Application, target: dict[str, str]) -> None:
    admin, scope = application.client(), {**place(), "namespace": "north"}
    await fill(admin, 1, **scope)
    bounds = Bounds.from_lists({"workspaces": [scope["workspace"]], "namespaces": ["north"]})
    principal = new_principal(application.tenant, KeyRole.WRITER, utc_now(), bounds=bounds)
    client = application.client(store_key(application.url, principal, "bound"))

    answer = await client.post("/v1/notes/bulk", json={**scope, "everything": True, **target})

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, next(iter(target)))
    assert len(await ids_in(admin, **scope)) == 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/delete", {}, "everything"),
        ("/delete", {"everything": True, "tags": ["a"]}, "everything"),
        ("/delete", {"filters": {"colour": "red"}}, "filters.colour"),
        ("", {"everything": True}, "add_tags"),
        ("", {"everything": True, "add_tags": ["a"], "to_workspace": "b"}, "add_tags"),
        ("", {"everything": True, "to_workspace": "default"}, "to_workspace"),
        ("", {"everything": True, "to_workspace": "a\u0000"}, "to_workspace"),
        ("", {"everything": True, "to_namespace": "a\u0000"}, "to_namespace"),
        ("/delete", {"filters": {"user": "a\u0000"}}, "filters.user"),
        ("", {"everything": True, "changes": {"content": "x"}}, "changes.content"),
        ("", {"everything": True, "changes": {"expires_at": "2001-01-01T00:00Z"}}, "expires_at"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong(
    application: Application, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await application.client().post(f"/v1/notes/bulk{path}", json=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_the_same_call_twice_at_once_counts_each_note_once(application: Application) -> None:
    client, scope = application.client(), place()
    await fill(client, BATCH + 20, **scope)
    body = {**scope, "everything": True, "add_tags": ["seen"]}

    answers = await asyncio.gather(*(sent(client, "POST", "/v1/notes/bulk", json=body) for _ in range(2)))
    counts = [(await ended(client, answer["operation"]))["counts"] for answer in answers]

    assert sum(count.get("changed", 0) for count in counts) == BATCH + 20
    notes = (await sent(client, "GET", "/v1/notes", params={**scope, "limit": 1000}))["notes"]
    assert {note["version"] for note in notes} == {2}


async def test_a_repeated_idempotency_key_orders_one_operation(application: Application) -> None:
    client, scope = application.client(), place()
    await fill(client, 2, **scope)
    call = {"json": {**scope, "everything": True}, "headers": {"Idempotency-Key": f"once {uuid4()}"}}

    ids = {(await sent(client, "POST", "/v1/notes/bulk/delete", **call))["operation"]["id"] for _ in range(2)}

    assert len(ids) == 1


async def test_an_interrupted_operation_goes_on_where_it_was(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, scope = application.client(), place()
    await fill(client, 2 * BATCH + 5, **scope)
    step, steps = application.services.workers.notes.step, []

    async def failing(operation: Any) -> None:
        steps.append(operation)
        if len(steps) == 2:
            raise Unavailable("postgres", "gone away")
        await step(operation)

    monkeypatch.setattr(application.services.workers.notes, "step", failing)
    answer = await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "everything": True})
    await application.services.operations.work()

    operation = await ended(client, answer["operation"])
    assert answer["operation"]["counts"] == {"deleted": BATCH}
    assert "gone away" in answer["operation"]["waits_for"]
    assert (operation["counts"], operation["waits_for"]) == ({"deleted": 2 * BATCH + 5}, None)
    listed = (await sent(client, "GET", "/v1/operations", params=scope))["operations"]
    assert [one["id"] for one in listed] == [operation["id"]]


async def test_an_operation_that_fails_again_and_again_ends_and_holds_up_no_other(
    application: Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client, doomed, well = application.client(), place(), place()
    await fill(client, 3, **doomed)
    await fill(client, BATCH + 1, **well)
    step = application.services.workers.notes.step

    async def failing(operation: Any) -> None:
        if operation.workspace == doomed["workspace"]:
            raise psycopg.errors.UniqueViolation("Key (content)=(Mira Koskinen) already exists.")
        await step(operation)

    monkeypatch.setattr(application.services.workers.notes, "step", failing)
    body = {"everything": True, "add_tags": ["seen"]}
    broken = (await sent(client, "POST", "/v1/notes/bulk", json={**doomed, **body}))["operation"]
    for _ in range(MOST_FAILURES):
        with psycopg.connect(application.url) as connection:
            connection.execute("UPDATE operations SET retry_at = NULL WHERE id = %s", [broken["id"]])
        await application.services.operations.work()
    done = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json={**well, **body}))

    told = await sent(client, "GET", f"/v1/operations/{broken['id']}")
    assert (told["state"], told["waits_for"], told["request"]) == ("failed", "UniqueViolation", {})
    assert done["counts"] == {"changed": BATCH + 1}
    assert "Mira" not in caplog.text


async def test_open_operations_take_turns(application: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    client, places = application.client(), [place(), place()]
    step, turns = application.services.workers.notes.step, []

    async def failing(_: Any) -> None:
        raise Unavailable("postgres", "gone away")

    async def told(operation: Any) -> None:
        turns.append(operation.workspace)
        await step(operation)

    for scope in places:
        await fill(client, BATCH + 1, **scope)
    monkeypatch.setattr(application.services.workers.notes, "step", failing)
    for scope in places:
        await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "everything": True})
    monkeypatch.setattr(application.services.workers.notes, "step", told)

    await application.services.operations.work()

    assert turns == [scope["workspace"] for scope in places] * 3


async def test_an_erasure_of_a_user_takes_the_operations_over_their_notes(unshared: Application) -> None:
    client = unshared.admin()
    await fill(client, 1, user="ann")
    body = {"user": "ann", "everything": True}
    operation = await ended(client, await sent(client, "POST", "/v1/notes/bulk/delete", json=body))

    erasure = await sent(client, "DELETE", "/v1/users", params={"user": "ann"})

    assert erasure["erased"]["operations"] == 1
    assert (await client.get(f"/v1/operations/{operation['id']}")).status_code == 404


async def test_an_erasure_of_a_user_takes_the_operations_over_their_sessions(unshared: Application) -> None:
    client = unshared.admin()
    for user in ("ann", "bob"):
        turn = {"session": f"talk of {user}", "user": user, "messages": [{"content": f"Ahoy from {user}"}]}
        await sent(client, "POST", "/v1/turns", json=turn)
    operations = {}
    for user in ("ann", "bob"):
        body = {"session": f"talk of {user}", "everything": True, "add_tags": ["seen"]}
        operations[user] = await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))

    await sent(client, "DELETE", "/v1/users", params={"user": "ann"})

    statuses = {user: (await client.get(f"/v1/operations/{one['id']}")).status_code for user, one in operations.items()}
    assert statuses == {"ann": 404, "bob": 200}
    with psycopg.connect(unshared.url) as connection:
        named = connection.execute("SELECT session_id FROM operations").fetchall()
    assert named == [("talk of bob",)]
