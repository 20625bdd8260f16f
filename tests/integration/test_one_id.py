"""What a search returns is read, changed and deleted by its id, whatever its kind."""

import asyncio
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application

HANDBOOK = "# Keys\n\nThe spare key hangs behind the barometer.\n\n# Boats\n\nThe red dinghy leaks at the stern.\n"


@dataclass(frozen=True)
class Case:
    """A kind of memory.

    Args:
        path: Where it is stored.
        body: What is stored.
        change: Fields that are changed.
        after: What is then read, somewhere in the memory.
    """

    path: str
    body: dict[str, Any]
    change: dict[str, Any]
    after: str
    method: str = "POST"


CASES = {
    "note": Case("/v1/notes", {"content": "Örkény sails on Friday"}, {"content": "Örkény sails on Monday"}, "Monday"),
    "message": Case(
        "/v1/turns",
        {"session": "s", "messages": [{"content": "The mast is of ash"}]},
        {"content": "The mast is of pine"},
        "pine",
    ),
    "document": Case("/v1/documents", {"content": HANDBOOK, "key": "h"}, {"title": "Hafenbuch"}, "Hafenbuch"),
    "keyless document": Case("/v1/documents", {"content": HANDBOOK}, {"content": "第一章 鑰匙"}, "第一章"),
    "procedure": Case("/v1/procedures", {"trigger": "fog", "action": "sound the horn"}, {"action": "anchor"}, "anchor"),
    "entity": Case("/v1/graph/entities", {"entities": [{"name": "Mira"}]}, {"aliases": ["M."]}, "M."),
    "fact": Case("/v1/facts", {"subject": "Mira", "relation": "lives_in", "object": "Kai"}, {"object": "Ås"}, "Ås"),
}


def ids_of(made: dict[str, Any]) -> list[str]:
    parts = made.get("messages") or made.get("results") or [made]
    return [part["id"] for part in parts]


async def put(client: httpx.AsyncClient, case: Case, **ids: str) -> str:
    answer = await client.request(case.method, case.path, json={**case.body, **ids})
    assert answer.is_success, answer.text
    return ids_of(answer.json())[0]


@pytest.mark.parametrize("name", CASES)
async def test_a_memory_is_read_changed_and_deleted_by_its_id(application: Application, name: str) -> None:
    client, case, kind = application.client(), CASES[name], name.rpartition(" ")[2]
    url = f"/v1/memories/{await put(client, case)}"

    read = (await client.get(url)).json()
    changed = await client.patch(url, json=case.change)
    # Another fact is in the place of one.
    now = f"/v1/memories/{changed.json()['id']}" if name == "fact" else url
    again = (await client.get(now)).json()
    gone = await client.delete(now)

    assert (read["kind"], read[kind]["id"]) == (kind, read["id"])
    assert changed.status_code == 200, changed.text
    assert case.after in str(changed.json()[kind])
    assert case.after in str(again[kind])
    assert (again["id"] == read["id"]) == (name != "fact")
    assert (gone.status_code, gone.json()) == (200, {"id": again["id"], "kind": kind})
    for method in ("GET", "PATCH", "DELETE"):
        assert (await client.request(method, now, json=None if method != "PATCH" else {})).status_code == 404


async def test_every_hit_of_a_search_is_read_by_its_id(application: Application) -> None:
    client = application.client()
    for name, case in CASES.items():
        if name != "document":
            await put(client, case)
    await client.put("/v1/workspaces/default/files/docs/boats.md", json={"content": HANDBOOK})
    await application.indexed()

    kinds = set()
    for query in ("Örkény sails", "the mast", "spare key barometer", "fog", "Mira lives in Kai"):
        for hit in (await client.post("/v1/search", json={"query": query, "limit": 50})).json()["results"]:
            read = await client.get(f"/v1/memories/{hit['id']}")
            assert read.status_code == 200, (hit, read.text)
            shown = read.json()
            assert shown[shown["kind"]]["id"] == hit["id"]
            kinds.add(shown["kind"])

    assert kinds >= {"note", "message", "passage", "procedure"}


@pytest.mark.parametrize("is_file", [False, True])
async def test_a_passage_is_changed_where_it_stands_and_goes_with_its_document(
    application: Application, *, is_file: bool
) -> None:
    client = application.client()
    if is_file:
        sent = {"content": HANDBOOK, "always": True, "mirror": "handbook"}
        stored = await client.put("/v1/workspaces/default/files/docs/boats.md", json=sent)
    else:
        stored = await client.post("/v1/documents", json={"content": HANDBOOK, "tags": ["boats"], "metadata": {"n": 1}})
    document = stored.json()["id"]
    passages = (await client.get(f"/v1/documents/{document}/passages")).json()["passages"]
    (passage,) = [one for one in passages if "barometer" in one["content"]][:1]
    url = f"/v1/memories/{passage['id']}"

    read = (await client.get(url)).json()
    text = "Der Ersatzschlüssel hängt im Schuppen.\n"
    changed = await client.patch(url, json={"content": text})
    whole = (await client.get(f"/v1/documents/{document}")).json()

    assert (read["kind"], read["document"]["id"], read["document"]["content"]) == ("passage", document, None)
    assert changed.status_code == 200, changed.text
    assert changed.json()["document"]["id"] == document
    assert whole["content"] == HANDBOOK[: passage["start"]] + text + HANDBOOK[passage["end"] :]
    if is_file:
        file = (await client.get("/v1/workspaces/default/files/docs/boats.md")).json()
        assert (file["always"], file["mirror"], file["version"]) == (True, "handbook", 2)
    else:
        assert (whole["tags"], whole["metadata"], whole["version"]) == (["boats"], {"n": 1}, 2)
    after = (await client.get(f"/v1/documents/{document}/passages")).json()["passages"]
    gone = await client.delete(f"/v1/memories/{after[0]['id']}")
    assert gone.json() == {"id": document, "kind": "document"}
    assert (await client.get(f"/v1/documents/{document}")).status_code == 404


async def change_at_once(
    application: Application, document: str, changes: dict[str, dict[str, Any]]
) -> dict[str, httpx.Response]:
    """Send changes that have all read the document before one of them writes it."""
    client, waiting = application.client(), "SELECT count(*) FROM pg_locks WHERE NOT granted"
    async with await psycopg.AsyncConnection.connect(application.url, autocommit=True) as connection:
        async with connection.transaction():
            await connection.execute("SELECT FROM documents WHERE id = %s FOR UPDATE", (document,))
            asked = [
                asyncio.create_task(client.patch(f"/v1/memories/{id_}", json=body)) for id_, body in changes.items()
            ]
            while (await (await connection.execute(waiting)).fetchone()) != (len(asked),):  # noqa: ASYNC110 - by others
                await asyncio.sleep(0.01)
        return dict(zip(changes, await asyncio.gather(*asked), strict=True))


@pytest.mark.parametrize("is_file", [False, True])
async def test_changes_of_two_passages_at_once_both_stay(application: Application, *, is_file: bool) -> None:
    client = application.client()
    berths = "".join(f"# Berth {n}\n\n{' '.join(f'Ring {n}.{m} is rusty.' for m in range(120))}\n\n" for n in range(3))
    if is_file:
        stored = await client.put("/v1/workspaces/default/files/docs/boats.md", json={"content": berths})
    else:
        stored = await client.post("/v1/documents", json={"content": berths})
    document = stored.json()["id"]
    first, *_, last = (await client.get(f"/v1/documents/{document}/passages")).json()["passages"]
    changes = {
        first["id"]: {"content": "Der Schlüssel hängt im Schuppen.\n\n"},
        last["id"]: {"content": "紅色小艇不再漏水。\n"},
    }

    answers = await change_at_once(application, document, changes)

    assert [answer.status_code for answer in answers.values()] == [200, 200], [one.text for one in answers.values()]
    whole = (await client.get(f"/v1/documents/{document}")).json()["content"]
    assert all(body["content"].strip() in whole for body in changes.values()), whole


async def test_changes_of_two_fields_of_a_document_at_once_both_stay(application: Application) -> None:
    client = application.client()
    document = await put(client, CASES["document"])
    passage = (await client.get(f"/v1/documents/{document}/passages")).json()["passages"][0]
    changes = {document: {"title": "Hafenbuch"}, passage["id"]: {"content": "The key is lost.\n\n"}}

    answers = await change_at_once(application, document, changes)

    assert [answer.status_code for answer in answers.values()] == [200, 200], [one.text for one in answers.values()]
    whole = (await client.get(f"/v1/documents/{document}")).json()
    assert (whole["title"], "The key is lost." in whole["content"], whole["version"]) == ("Hafenbuch", True, 3)


async def test_a_memory_is_changed_only_in_the_state_that_the_caller_saw(application: Application) -> None:
    client = application.client()
    note, document = await put(client, CASES["note"]), await put(client, CASES["document"])
    file = await client.put("/v1/workspaces/default/files/a.md", json={"content": "The tide table"})
    fact = await put(client, CASES["entity"])
    etags = {note: '"1"', document: '"1"', file.json()["id"]: file.headers["ETag"]}

    for id_, etag in etags.items():
        url, change = f"/v1/memories/{id_}", {"content": "Something else"}
        late = await client.patch(url, json=change, headers={"If-Match": '"77"'})
        right = await client.patch(url, json=change, headers={"If-Match": etag})
        again = await client.patch(url, json={"content": "A third"}, headers={"If-Match": etag})
        assert [late.status_code, right.status_code, again.status_code] == [412, 200, 412], late.text + right.text
    unversioned = await client.patch(f"/v1/memories/{fact}", json={"aliases": ["M"]}, headers={"If-Match": '"1"'})
    assert unversioned.status_code == 422
    assert unversioned.json()["errors"][0]["field"] == "If-Match"


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("note", {"colour": "red"}),
        ("note", {"trigger": "fog"}),
        ("document", {"importance": 1}),
        ("procedure", {"content": "x"}),
        ("message", {"role": "system"}),
        ("fact", {"content": "x"}),
        ("fact", {"object": "Mira"}),
        ("fact", {"valid_from": "2999-01-01T00:00Z", "object": "Oslo"}),
        ("entity", {"name": "Other"}),
        ("entity", {"confidence": 2}),
    ],
)
async def test_a_field_of_another_kind_is_refused_by_its_name(
    application: Application, name: str, wrong: dict[str, Any]
) -> None:
    client = application.client()
    url = f"/v1/memories/{await put(client, CASES[name])}"

    refused = await client.patch(url, json=wrong)

    assert refused.status_code == 422, refused.text
    assert refused.json()["errors"][0]["field"] == next(iter(wrong))


@pytest.mark.parametrize("name", CASES)
async def test_an_id_of_another_tenant_or_beyond_the_bounds_is_not_there(application: Application, name: str) -> None:
    client, case = application.client(), CASES[name]
    ids = {"workspace": "atlas"} | ({} if name in {"entity", "procedure"} else {"user": "ann"})
    made = await put(client, case, **ids)
    stranger = application.for_tenant(f"{application.tenant} next door").client()

    def bound(**lists: list[str]) -> httpx.AsyncClient:
        principal = new_principal(application.tenant, KeyRole.WRITER, utc_now(), bounds=Bounds.from_lists(lists))
        return application.client(store_key(application.url, principal, "bound"))

    beyond = [stranger, bound(workspaces=["borea"]), bound(namespaces=["north"])]
    if "user" in ids and name != "fact":
        beyond.append(bound(users=["bob"]))
    for other in beyond:
        for method, body in (("GET", None), ("PATCH", {"content": "x"}), ("DELETE", None)):
            answer = await other.request(method, f"/v1/memories/{made}", json=body)
            unknown = await other.request(method, f"/v1/memories/{uuid4()}", json=body)
            assert (answer.status_code, unknown.status_code) == (404, 404), answer.text
    of_bob = bound(users=["bob"])
    if name == "fact":  # It belongs to no user; who stated it decides who sees it.
        assert (await of_bob.get(f"/v1/memories/{made}")).status_code == 404
        assert (await of_bob.delete(f"/v1/memories/{made}")).status_code == 403
    if name in {"entity", "procedure"}:
        assert (await of_bob.delete(f"/v1/memories/{made}")).status_code == 403
    assert (await client.get(f"/v1/memories/{made}")).status_code == 200
