"""The profile of a user in the whole tenant, beneath those of the workspaces."""

from typing import Any

import httpx
import pytest

from tests.support.application import Application

WIDE = "/v1/users/profile"


@pytest.fixture
def client(application: Application) -> httpx.AsyncClient:
    return application.admin()


async def say(client: httpx.AsyncClient, user: str, workspace: str, text: str) -> None:
    messages = [{"role": "user", "content": text}]
    turn = {"user": user, "workspace": workspace, "session": "s", "messages": messages}
    assert (await client.post("/v1/turns", json=turn)).status_code == 200


async def patch(client: httpx.AsyncClient, user: str, **fields: Any) -> httpx.Response:
    return await client.patch(WIDE, json={"user": user, "patch": fields})


async def document(client: httpx.AsyncClient, user: str, workspace: str, **query: Any) -> dict[str, Any]:
    answer = await client.get("/v1/profile", params={"user": user, "workspace": workspace, **query})
    found: dict[str, Any] = answer.json()["document"]
    return found


async def block(client: httpx.AsyncClient, user: str, workspace: str) -> str:
    asked = {"user": user, "workspace": workspace, "query": "who am I?"}
    return str((await client.post("/v1/context", json=asked)).json()["text"])


async def test_every_workspace_shows_it_beneath_its_own(client: httpx.AsyncClient) -> None:
    await patch(client, "ann", name="Ann", city="Graz", domains={"engineering": {"stack": ["Go"]}})
    await client.patch("/v1/profile", json={"user": "ann", "workspace": "atlas", "patch": {"city": "Rome"}})

    layered = await document(client, "ann", "atlas", layered=True)
    shown = await block(client, "ann", "elsewhere")

    assert layered == {"name": "Ann", "city": "Rome", "domains": {"engineering": {"stack": ["Go"]}}}
    assert await document(client, "ann", "atlas") == {"city": "Rome"}
    assert '"city":"Graz"' in shown.replace(" ", "")
    assert "Graz" not in await block(client, "ben", "elsewhere")


async def test_a_block_from_a_cache_has_what_was_changed_since(client: httpx.AsyncClient) -> None:
    await say(client, "ann", "atlas", "I repaired the ferry.")
    await block(client, "ann", "atlas")
    for city in ("Graz", "Rome"):
        await patch(client, "ann", city=city)
        assert city in await block(client, "ann", "atlas")


async def test_turns_of_a_workspace_write_it_where_that_is_set(client: httpx.AsyncClient) -> None:
    await client.put("/v1/workspaces/open/settings", json={"profile_scope": "user"})

    await say(client, "ann", "open", "My name is Ann. When it comes to cooking, I prefer olive oil.")
    await say(client, "ann", "closed", "I live in Graz.")

    wide = {"name": "Ann", "domains": {"cooking": {"preferences": ["olive oil"]}}}
    assert (await client.get(WIDE, params={"user": "ann"})).json()["document"] == wide
    assert await document(client, "ann", "open") == {}
    assert await document(client, "ann", "closed", layered=True) == {**wide, "location": "Graz"}


@pytest.mark.parametrize(("before", "after"), [("workspace", "user"), ("user", "workspace")])
async def test_a_correction_reaches_the_profile_that_the_old_text_was_written_to(
    client: httpx.AsyncClient, before: str, after: str
) -> None:
    place, said = {"user": "ann", "workspace": "open"}, {"role": "user", "content": "My name is Anne. I live in Graz."}
    await client.put("/v1/workspaces/open/settings", json={"profile_scope": before})
    turn = (await client.post("/v1/turns", json={**place, "session": "s", "messages": [said]})).json()
    await client.put("/v1/workspaces/open/settings", json={"profile_scope": after})

    changed = await client.patch(f"/v1/memories/{turn['messages'][0]['id']}", json={"content": "My name is Ann."})

    own, wide = await document(client, **place), (await client.get(WIDE, params={"user": "ann"})).json()["document"]
    assert changed.is_success
    assert {"workspace": own, "user": wide} == {before: {}, after: {"name": "Ann"}}


async def test_an_earlier_state_holds_again(client: httpx.AsyncClient) -> None:
    await patch(client, "ann", city="Graz")
    await patch(client, "ann", city="Rome")

    reverted = (await client.post(f"{WIDE}/revert", json={"user": "ann", "version": 1})).json()

    versions = (await client.get(f"{WIDE}/versions", params={"user": "ann"})).json()["versions"]
    assert (reverted["document"], reverted["version"]) == ({"city": "Graz"}, 3)
    assert [item["document"]["city"] for item in versions] == ["Graz", "Rome", "Graz"]
    assert (await client.get("/v1/profile/versions", params={"user": "ann"})).json()["versions"] == []


async def test_a_change_is_an_event_of_the_tenant(client: httpx.AsyncClient) -> None:
    await patch(client, "ann", city="Graz")

    events = (await client.get("/v1/events", params={"kind": "profile.changed"})).text

    assert '"workspace":null' in events.replace(" ", "")
    assert "Graz" not in events


async def test_an_erasure_takes_it_and_its_history(unshared: Application) -> None:
    client = unshared.admin()
    await patch(client, "ann", city="Graz")
    await patch(client, "ann", city="Rome")
    await patch(client, "ben", city="Oslo")

    erased = (await client.delete("/v1/users", params={"user": "ann"})).json()

    assert erased["erased"]["profiles"] == 1
    assert (await client.get(WIDE, params={"user": "ann"})).json()["version"] == 0
    assert (await client.get(f"{WIDE}/versions", params={"user": "ann"})).json()["versions"] == []
    assert (await client.get(WIDE, params={"user": "ben"})).json()["document"] == {"city": "Oslo"}


@pytest.mark.parametrize("bound", [{"workspaces": ["atlas"]}, {"namespaces": ["default"]}, {"agents": ["guide"]}])
async def test_a_key_of_a_part_of_the_tenant_neither_sees_nor_writes_it(
    application: Application, client: httpx.AsyncClient, bound: dict[str, list[str]]
) -> None:
    await client.put("/v1/workspaces/atlas/settings", json={"profile_scope": "user"})
    await patch(client, "ann", city="Graz")
    made = await client.post("/v1/keys", json={"role": "writer", "name": "part", **bound})
    part = application.client(made.json()["key"])

    refused = [
        await part.get(WIDE, params={"user": "ann"}),
        await patch(part, "ann", city="Rome"),
        await part.get("/v1/profile", params={"user": "ann", "workspace": "atlas", "layered": True}),
    ]
    await say(part, "ann", "atlas", "My name is Ann.")
    await block(client, "ann", "atlas")

    assert [answer.status_code for answer in refused] == [403, 403, 403]
    assert "Graz" not in await block(part, "ann", "atlas")
    assert "Graz" in await block(client, "ann", "atlas")
    assert await document(client, "ann", "atlas") == {"name": "Ann"}
    assert (await client.get(WIDE, params={"user": "ann"})).json()["document"] == {"city": "Graz"}


async def test_a_key_of_a_user_writes_its_own_alone(application: Application, client: httpx.AsyncClient) -> None:
    made = await client.post("/v1/keys", json={"role": "writer", "name": "ann's", "users": ["ann"]})
    own = application.client(made.json()["key"])

    mine = (await own.patch(WIDE, json={"patch": {"city": "Graz"}})).json()

    assert (mine["user"], mine["unverified"]) == ("ann", False)
    assert (await patch(own, "ben", city="Graz")).status_code == 403
    assert (await client.get(WIDE)).status_code == 422
