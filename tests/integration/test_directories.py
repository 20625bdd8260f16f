"""What there is in a tenant is listed with its size, to each key within its bounds."""

from typing import Any

import httpx
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.stores.postgres import directory
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application

LISTS = ("workspaces", "namespaces", "sessions", "users", "agents")


async def filled(application: Application) -> httpx.AsyncClient:
    """A tenant with two workspaces, two users and two agents."""
    client = application.client()
    for workspace, namespace, user, agent in (
        ("atlas", "north", "ann", "guide"),
        ("atlas", "south", "bob", "clerk"),
        ("borea", "north", "bob", "guide"),
    ):
        ids = {"workspace": workspace, "namespace": namespace, "user": user, "agent": agent}
        turn = {"session": f"talk of {user}", "messages": [{"content": "It rains."}, {"content": "It does."}]}
        for path, body in (
            ("turns", turn),
            ("notes", {"content": "Örkény called"}),
            ("documents", {"content": "Text"}),
        ):
            answer = await client.post(f"/v1/{path}", json={**ids, **body})
            assert answer.is_success, answer.text
        await client.patch("/v1/profile", json={**ids, "patch": {"likes": "boats"}})
    return client


async def listed(client: httpx.AsyncClient, name: str, **query: Any) -> dict[str, Any]:
    answer = await client.get(f"/v1/{name}", params=query)
    assert answer.status_code == 200, answer.text
    return {entry[name.rstrip("s")]: entry for entry in answer.json()[name]}


async def test_each_list_tells_how_much_there_is_and_since_when(application: Application) -> None:
    before = utc_now().isoformat()
    client = await filled(application)
    place = {"workspace": "atlas", "namespace": "north"}

    workspaces = await listed(client, "workspaces")
    namespaces = await listed(client, "namespaces", workspace="atlas")
    users = await listed(client, "users", **place)
    agents = await listed(client, "agents", **place)
    sessions = await listed(client, "sessions", **place)

    assert {name: entry["namespaces"] for name, entry in workspaces.items()} == {"atlas": 2, "borea": 1}
    assert (workspaces["atlas"]["messages"], workspaces["atlas"]["documents"]) == (4, 2)
    assert set(namespaces) == {"north", "south"}
    assert (namespaces["north"]["messages"], namespaces["north"]["notes"]) == (2, workspaces["borea"]["notes"])
    assert {name: (entry["messages"], entry["profile_version"]) for name, entry in users.items()} == {"ann": (2, 1)}
    assert {name: (entry["messages"], entry["documents"]) for name, entry in agents.items()} == {"guide": (2, 1)}
    assert {name: entry["messages"] for name, entry in sessions.items()} == {"talk of ann": 2}
    for found in (workspaces, namespaces, users, agents, sessions):
        for entry in found.values():
            assert entry["written_at"] >= before[:19]
            assert entry["bytes"] > 0
            assert not entry["is_capped"]


async def test_deleted_memories_and_their_users_are_counted_no_more(application: Application) -> None:
    client = application.client()
    made = (await client.post("/v1/notes", json={"content": "one", "user": "ann", "agent": "guide"})).json()["id"]
    await client.post("/v1/notes", json={"content": "two", "user": "bob"})

    await client.delete(f"/v1/notes/{made}")

    assert set(await listed(client, "users")) == {"bob"}
    assert await listed(client, "agents") == {}
    assert (await listed(client, "workspaces"))["default"]["notes"] == 1


async def test_an_entry_with_very_much_says_that_it_was_cut(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "MOST_COUNTED", 2)
    client = application.client()
    for number in range(4):
        await client.post("/v1/notes", json={"content": f"note {number}", "user": "ann", "agent": "guide"})
    await client.post("/v1/notes", json={"content": "a note", "user": "bob"})

    assert {name: (one["notes"], one["is_capped"]) for name, one in (await listed(client, "users")).items()} == {
        "ann": (2, True),
        "bob": (1, False),
    }
    assert (await listed(client, "agents"))["guide"]["notes"] == 2


def bound(application: Application, **lists: list[str]) -> httpx.AsyncClient:
    principal = new_principal(application.tenant, KeyRole.READER, utc_now(), bounds=Bounds.from_lists(lists))
    return application.client(store_key(application.url, principal, "bound"))


async def test_a_bound_key_is_told_of_no_name_outside_of_its_bounds(application: Application) -> None:
    await filled(application)
    of_workspace = bound(application, workspaces=["atlas"])
    of_two = bound(application, workspaces=["atlas", "borea", "not there"])
    of_namespace = bound(application, namespaces=["north"])
    of_user = bound(application, users=["ann"])
    north = {"workspace": "atlas", "namespace": "north"}

    assert set(await listed(of_workspace, "workspaces")) == {"atlas"}
    assert set(await listed(of_two, "workspaces")) == {"atlas", "borea"}
    assert (await of_workspace.get("/v1/namespaces", params={"workspace": "borea"})).status_code == 403
    part = (await listed(of_namespace, "workspaces"))["atlas"]
    assert (part["namespaces"], part["messages"]) == (1, 2)
    assert set(await listed(of_namespace, "namespaces", workspace="atlas")) == {"north"}
    assert set(await listed(of_user, "users", **north)) == {"ann"}
    assert await listed(of_user, "users", **{**north, "namespace": "south"}) == {}
    assert await listed(of_user, "sessions", **{**north, "namespace": "south"}) == {}
    assert set(await listed(of_user, "sessions", **north)) == {"talk of ann"}
    for name in ("workspaces", "namespaces", "agents"):
        assert (await of_user.get(f"/v1/{name}")).status_code == 403


async def test_entities_are_listed_to_those_who_may_know_of_them(application: Application) -> None:
    client = application.client()
    await client.post("/v1/graph/entities", json={"entities": [{"name": "Harbour", "type": "place"}]})
    await client.post(
        "/v1/graph/edges", json={"user": "ann", "edges": [{"subject": "Mira", "type": "near", "object": "Kai"}]}
    )

    async def names(**query: str) -> set[str]:
        answer = await client.get("/v1/graph/entities", params=query)
        return {entity["name"] for entity in answer.json()["entities"]}

    assert await names(user="ann") == {"Harbour", "Mira", "Kai"}
    assert await names(user="bob") == {"Harbour"}
    assert await names(user="ann", type="place") == {"Harbour"}
    assert await names(workspace="another") == set()


async def test_another_tenant_has_none_of_it(application: Application) -> None:
    await filled(application)
    stranger = application.for_tenant(f"{application.tenant} next door").client()

    for name in LISTS:
        assert await listed(stranger, name, **({"workspace": "atlas"} if name != "workspaces" else {})) == {}
