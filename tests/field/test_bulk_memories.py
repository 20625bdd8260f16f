"""Many messages and many documents at once: counted, deleted, tagged, moved and brought back, as one by one."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import httpx
import psycopg
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.errors import Unavailable
from lamina.ingest.bulk_documents import BATCH
from lamina.maintenance.selected_deletion import PAGE
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.field.test_bulk import place
from tests.support.application import Application, ended, sent
from tests.support.embedders import Refusing


async def say(client: httpx.AsyncClient, count: int, *, role: str = "user", **scope: str) -> set[str]:
    messages = [{"role": role, "content": f"Buoy {uuid4().hex} of {number}"} for number in range(count)]
    turn = await sent(client, "POST", "/v1/turns", json={"session": "s 1", **scope, "messages": messages})
    return {message["id"] for message in turn["messages"]}


async def upload(client: httpx.AsyncClient, count: int, tags: tuple[str, ...] = (), **scope: str) -> set[str]:
    documents = [{"content": f"Chart {uuid4().hex} of buoy {number}", "tags": list(tags)} for number in range(count)]
    answer = await sent(client, "POST", "/v1/documents/batch", json={**scope, "documents": documents})
    return {item["id"] for item in answer["results"]}


async def messages_in(client: httpx.AsyncClient, session: str = "s 1", **scope: Any) -> set[str]:
    answer = await sent(client, "GET", f"/v1/sessions/{session}/messages", params={**scope, "limit": 1000})
    return {message["id"] for message in answer["messages"]}


async def documents_in(client: httpx.AsyncClient, **scope: Any) -> dict[str, dict[str, Any]]:
    answer = await sent(client, "GET", "/v1/documents", params={**scope, "limit": 1000})
    return {document["id"]: document for document in answer["documents"]}


async def events_of(client: httpx.AsyncClient, kind: str, **scope: Any) -> set[str]:
    answer = await sent(client, "GET", "/v1/events", params={**scope, "limit": 1000})
    return {id_ for event in answer["events"] if event["kind"] == kind for id_ in event["ids"]}


async def test_a_dry_run_counts_messages_and_documents_and_changes_nothing(application: Application) -> None:
    client, scope = application.client(), place()
    said, kept = await say(client, 12, role="tool", **scope), await say(client, 2, **scope)
    charts = await upload(client, 2, ("røyk 煙",), **scope)

    of_tools = {**scope, "filters": {"source": "tool"}, "dry_run": True}
    counted = await sent(client, "POST", "/v1/messages/bulk/delete", json=of_tools)
    tagged = {**scope, "tags": ["røyk 煙"], "dry_run": True}
    answers = [
        await sent(client, "POST", f"/v1/documents/bulk{path}", json={**tagged, **more})
        for path, more in (("", {"add_tags": ["a"]}), ("/delete", {}))
    ]

    assert (counted["matched"], len(counted["sample"]), counted["operation"]) == (12, 10, None)
    assert {message["id"] for message in counted["sample"]} < said
    for answer in answers:
        assert (answer["matched"], answer["operation"]) == (2, None)
        assert {document["id"] for document in answer["sample"]} == charts
    assert await messages_in(client, **scope) == said | kept
    assert {document["version"] for document in (await documents_in(client, **scope)).values()} == {1}


async def test_matching_messages_are_deleted_in_pages_and_one_undo_brings_them_back(application: Application) -> None:
    client = application.admin()
    scope = place()
    doomed, kept = await say(client, PAGE + 3, role="tool", **scope), await say(client, 2, **scope)
    body = {**scope, "session": "s 1", "filters": {"source": "tool"}}

    operation = await ended(client, await sent(client, "POST", "/v1/messages/bulk/delete", json=body))
    left, drifted = await messages_in(client, **scope), await application.drift()
    undone = await sent(client, "POST", f"/v1/operations/{operation['id']}/undo")
    back = await ended(client, {"operation": undone})

    assert (operation["kind"], operation["counts"]) == ("delete_messages", {"deleted": PAGE + 3})
    assert operation["request"] == {}
    assert (left, drifted) == (kept, {})
    assert await events_of(client, "message.deleted", **scope) == doomed
    assert back["counts"] == {"messages": PAGE + 3}
    assert await messages_in(client, **scope) == doomed | kept
    assert await application.drift() == {}


async def test_matching_documents_are_deleted_and_one_comes_back_from_the_trash(application: Application) -> None:
    client, scope = application.client(), place()
    doomed, kept = await upload(client, 3, ("old",), **scope), await upload(client, 2, **scope)

    body = {**scope, "tags": ["old"]}
    operation = await ended(client, await sent(client, "POST", "/v1/documents/bulk/delete", json=body))
    left, drifted = set(await documents_in(client, **scope)), await application.drift()
    one = min(doomed)
    await sent(client, "POST", f"/v1/trash/{one}/restore")

    assert operation["counts"] == {"deleted": 3}
    assert (left, drifted) == (kept, {})
    assert await events_of(client, "document.deleted", **scope) == doomed
    assert set(await documents_in(client, **scope)) == kept | {one}


async def test_one_undo_brings_deleted_notes_back(application: Application) -> None:
    client = application.admin()
    scope = place()
    note = (await sent(client, "POST", "/v1/notes", json={**scope, "content": "The buoy is red"}))["id"]
    order = await sent(client, "POST", "/v1/notes/bulk/delete", json={**scope, "everything": True})
    operation = await ended(client, order)

    undone = await sent(client, "POST", f"/v1/operations/{operation['id']}/undo")

    assert (await ended(client, {"operation": undone}))["counts"] == {"notes": 1}
    assert (await client.get(f"/v1/notes/{note}")).status_code == 200


async def test_documents_get_tags_by_which_they_are_found_and_a_second_call_changes_nothing(
    application: Application,
) -> None:
    client, scope = application.client(), place()
    charts = await upload(client, BATCH + 2, ("draft", "boat"), **scope)
    url = f"/v1/workspaces/{scope['workspace']}/files/boat.md"
    await sent(client, "PUT", url, json={"content": "The boat is a file"})
    body = {**scope, "everything": True, "add_tags": ["done"], "remove_tags": ["draft"]}

    once = await ended(client, await sent(client, "POST", "/v1/documents/bulk", json=body))
    again = await ended(client, await sent(client, "POST", "/v1/documents/bulk", json=body))
    await application.indexed()

    assert once["counts"] == {"changed": BATCH + 2, "files": 1}
    assert again["counts"] == {"unchanged": BATCH + 2, "files": 1}
    assert once["request"] == {"add_tags": ["done"], "remove_tags": ["draft"]}
    documents = await documents_in(client, **scope)
    told = {(tuple(one["tags"]), one["version"]) for id_, one in documents.items() if id_ in charts}
    assert told == {(("boat", "done"), 2)}
    search = {**scope, "query": "chart of a buoy", "tags": ["done"], "limit": 50, "cache": False}
    hits = (await sent(client, "POST", "/v1/search", json=search))["results"]
    assert {hit["document"] for hit in hits} == charts
    assert await application.drift() == {}


async def test_an_upload_takes_the_place_of_a_document_that_got_other_tags(application: Application) -> None:
    client, scope = application.client(), place()
    chart = {**scope, "key": "chart", "content": "Depths of the harbour", "tags": ["draft"]}
    await sent(client, "POST", "/v1/documents", json=chart)
    body = {**scope, "everything": True, "add_tags": ["done"]}
    await ended(client, await sent(client, "POST", "/v1/documents/bulk", json=body))

    put = await sent(client, "POST", "/v1/documents", json=chart)

    assert (put["status"], put["version"]) == ("replaced", 3)
    assert [one["tags"] for one in (await documents_in(client, **scope)).values()] == [["draft"]]


async def test_documents_move_with_their_passages_and_are_found_there_alone(unshared: Application) -> None:
    client = unshared.client()
    here, there = {"workspace": "Øst 東"}, {"workspace": "Vest 西"}
    await sent(client, "POST", "/v1/graph/entities", json={**there, "entities": [{"name": "Orion"}]})
    text = "Mira moors the boat Orion with two ropes"
    moved = (await sent(client, "POST", "/v1/documents", json={**here, "content": text}))["id"]
    same = {"key": "keel", "content": "The keel of the boat is red"}
    stays = (await sent(client, "POST", "/v1/documents", json={**here, **same}))["id"]
    await sent(client, "POST", "/v1/documents", json={**there, **same})
    await sent(client, "PUT", "/v1/workspaces/Øst 東/files/a.md", json={"content": "A file about boats"})
    await unshared.indexed()

    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    operation = await ended(client, await sent(client, "POST", "/v1/documents/bulk", json=body))

    assert operation["counts"] == {"moved": 1, "existing": 1, "files": 1}
    assert await unshared.drift() == {}
    assert moved in await documents_in(client, **there)
    assert stays in await documents_in(client, **here)
    query = {"query": "Who moors the boat Orion?", "cache": False, "limit": 50}
    found = {}
    for name in (here, there):
        hits = (await sent(client, "POST", "/v1/search", json={**query, **name}))["results"]
        found[name["workspace"]] = {hit["document"] for hit in hits}
    assert moved in found["Vest 西"]
    assert moved not in found["Øst 東"]
    with psycopg.connect(unshared.url) as connection:
        links = (
            "SELECT DISTINCT l.workspace FROM memory_links l JOIN passages p ON p.id = l.from_id"
            " WHERE p.document_id = %s AND l.kind = 'mentions'"
        )
        assert connection.execute(links, [moved]).fetchall() == [("Vest 西",)]
    assert await events_of(client, "document.deleted", **here) == {moved}
    assert moved in await events_of(client, "document.written", **there)


async def test_documents_move_without_the_titles_that_the_model_refuses(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, here, there = application.client(), place(), place()
    titles = ("Orion", "Unspeakable")
    documents = [{"title": title, "content": f"{title} has a red keel"} for title in titles]
    ids = {(await sent(client, "POST", "/v1/documents", json={**here, **document}))["id"] for document in documents}
    linker = application.services.workers.documents._linker
    monkeypatch.setattr(linker, "_embedder", Refusing(linker._embedder, "Unspeakable"))

    body = {**here, "everything": True, "to_workspace": there["workspace"]}
    operation = await ended(client, await sent(client, "POST", "/v1/documents/bulk", json=body))

    assert operation["counts"] == {"moved": 2}
    assert set(await documents_in(client, **there)) == ids
    with psycopg.connect(application.url) as connection:
        names = "SELECT name FROM entities WHERE tenant = %s AND workspace = %s"
        assert connection.execute(names, [application.tenant, there["workspace"]]).fetchall() == [("Orion",)]


@pytest.mark.parametrize("kind", ["notes", "documents"])
async def test_what_is_rewritten_while_a_move_reads_it_is_linked_by_its_new_text(
    unshared: Application, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    client, there = unshared.client(), {"workspace": "Vest 西"}
    old, new = ({"key": "boat", "content": f"Mira moors the boat {name} with ropes"} for name in ("Orion", "Gemini"))
    if kind == "notes":
        old, new = {"content": old["content"]}, {"content": new["content"]}
    id_ = (await sent(client, "POST", f"/v1/{kind}", json=old))["id"]
    worker = getattr(unshared.services.workers, kind)
    links = worker._links

    async def meanwhile(*read: Any) -> Any:
        monkeypatch.setattr(worker, "_links", links)
        prepared = await links(*read)
        await sent(client, *(("PATCH", f"/v1/notes/{id_}") if kind == "notes" else ("POST", "/v1/documents")), json=new)
        return prepared

    monkeypatch.setattr(worker, "_links", meanwhile)
    body = {"everything": True, "to_workspace": there["workspace"]}
    operation = await ended(client, await sent(client, "POST", f"/v1/{kind}/bulk", json=body))
    with psycopg.connect(unshared.url) as connection:
        named = "SELECT DISTINCT e.name FROM memory_links l JOIN entities e ON e.id = l.to_id WHERE l.workspace = %s"
        names = " ".join(name for (name,) in connection.execute(named, [there["workspace"]]))

    assert operation["counts"]["moved"] == 1
    assert ("Gemini" in names, "Orion" in names) == (True, False)


async def test_a_key_of_a_user_reaches_their_own_messages_and_documents_alone(application: Application) -> None:
    admin, scope = application.client(), place()
    for user in ("ann", "bob"):
        await say(admin, 2, session=f"talk of {user}", user=user, **scope)
        await upload(admin, 2, user=user, **scope)
    shared = await upload(admin, 1, **scope)
    bounds = Bounds.from_lists({"users": ["ann"]})
    principal = new_principal(application.tenant, KeyRole.WRITER, utc_now(), bounds=bounds)
    client = application.client(store_key(application.url, principal, "ann's"))

    for kind in ("messages", "documents"):
        url = f"/v1/{kind}/bulk/delete"
        foreign = await client.post(url, json={**scope, "user": "bob", "everything": True})
        nobody = await sent(client, "POST", url, json={**scope, "filters": {"user": "bob"}})
        done = await ended(client, await sent(client, "POST", url, json={**scope, "everything": True}))
        assert (foreign.status_code, nobody["matched"], done["counts"]) == (403, 0, {"deleted": 2})

    assert len(await messages_in(admin, "talk of bob", user="bob", **scope)) == 2
    assert await messages_in(admin, "talk of ann", user="ann", **scope) == set()
    assert len(await documents_in(admin, user="bob", **scope)) == 3
    assert set(await documents_in(admin, user="ann", **scope)) == shared


async def test_no_document_moves_to_where_the_key_may_not_write(application: Application) -> None:
    admin, scope = application.client(), place()
    await upload(admin, 1, **scope)
    bounds = Bounds.from_lists({"workspaces": [scope["workspace"]]})
    principal = new_principal(application.tenant, KeyRole.WRITER, utc_now(), bounds=bounds)
    client = application.client(store_key(application.url, principal, "bound"))

    body = {**scope, "everything": True, "to_workspace": "elsewhere"}
    answer = await client.post("/v1/documents/bulk", json=body)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (403, "to_workspace")
    assert len(await documents_in(admin, **scope)) == 1


@pytest.mark.parametrize(
    ("path", "body", "field"),
    [
        ("/v1/messages/bulk/delete", {}, "everything"),
        ("/v1/messages/bulk/delete", {"tags": ["a"]}, "tags"),
        ("/v1/messages/bulk/delete", {"filters": {"colour": "red"}}, "filters.colour"),
        ("/v1/documents/bulk/delete", {"everything": True, "tags": ["a"]}, "everything"),
        ("/v1/documents/bulk/delete", {"everything": True, "session": "s"}, "session"),
        ("/v1/documents/bulk", {"everything": True, "session": "s", "add_tags": ["a"]}, "session"),
        ("/v1/documents/bulk", {"everything": True}, "add_tags"),
        ("/v1/documents/bulk", {"everything": True, "add_tags": ["a"], "to_workspace": "b"}, "add_tags"),
        ("/v1/documents/bulk", {"everything": True, "to_workspace": "default"}, "to_workspace"),
        ("/v1/documents/bulk", {"everything": True, "changes": {"title": "a"}}, "changes"),
    ],
)
async def test_a_wrong_request_says_what_is_wrong(
    application: Application, path: str, body: dict[str, Any], field: str
) -> None:
    answer = await application.client().post(path, json=body)

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == field


async def test_the_same_call_twice_at_once_counts_each_message_once(application: Application) -> None:
    client, scope = application.client(), place()
    await say(client, PAGE + 20, **scope)
    body = {**scope, "everything": True}

    answers = await asyncio.gather(*(sent(client, "POST", "/v1/messages/bulk/delete", json=body) for _ in range(2)))
    counts = [(await ended(client, answer))["counts"] for answer in answers]

    assert sum(count.get("deleted", 0) for count in counts) == PAGE + 20
    assert await messages_in(client, **scope) == set()


async def test_an_interrupted_deletion_goes_on_where_it_was(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, scope = application.client(), place()
    await say(client, 2 * PAGE + 5, **scope)
    deletion, steps = application.services.workers.deletion, list[Any]()
    step = deletion.step

    async def failing(operation: Any) -> None:
        steps.append(operation)
        if len(steps) == 2:
            raise Unavailable("postgres", "gone away")
        await step(operation)

    monkeypatch.setattr(deletion, "step", failing)
    answer = await sent(client, "POST", "/v1/messages/bulk/delete", json={**scope, "everything": True})
    await application.services.operations.work()
    operation = await ended(client, answer)

    assert answer["operation"]["counts"] == {"deleted": PAGE}
    assert (operation["counts"], operation["waits_for"]) == ({"deleted": 2 * PAGE + 5}, None)


async def test_a_document_that_matches_no_more_when_its_turn_comes_stays(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client, scope = application.client(), place()
    first, second = sorted(await upload(client, 2, ("old",), **scope), key=UUID)
    deletes = application.services.workers.deletion._deletes

    async def retagged(tenant: str, id_: UUID, **options: Any) -> None:
        await application.services.documents.recorder.delete(tenant, id_, **options)
        with psycopg.connect(application.url) as connection:
            connection.execute("UPDATE documents SET tags = '{}' WHERE id = %s", [second])

    monkeypatch.setitem(deletes, next(kind for kind in deletes if kind == "document"), retagged)  # type: ignore[arg-type]
    body = {**scope, "tags": ["old"]}
    operation = await ended(client, await sent(client, "POST", "/v1/documents/bulk/delete", json=body))

    assert operation["counts"] == {"deleted": 1}
    assert set(await documents_in(client, **scope)) == {second}
    assert first != second


async def test_an_erasure_of_a_user_takes_the_operations_over_their_messages(unshared: Application) -> None:
    client = unshared.admin()
    await say(client, 1, user="ann")
    body = {"user": "ann", "everything": True}
    operation = await ended(client, await sent(client, "POST", "/v1/messages/bulk/delete", json=body))

    await sent(client, "DELETE", "/v1/users", params={"user": "ann"})

    assert (await client.get(f"/v1/operations/{operation['id']}")).status_code == 404
