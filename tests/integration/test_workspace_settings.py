from typing import Any
from urllib.parse import quote

import httpx
import pytest

from lamina.core.principals import KeyRole
from tests.support.application import Application
from tests.support.jobs import in_days, run_job

QUESTION = {"query": "who repaired the ferry?"}


@pytest.fixture
async def admin(application: Application) -> httpx.AsyncClient:
    client = application.admin()
    notes = [f"Ann repaired the ferry number {number}" for number in range(5)]
    await client.post("/v1/notes/batch", json={"workspace": "w", "notes": notes})
    turn = {"workspace": "w", "session": "s", "messages": [{"content": "Ann repaired the ferry in the harbour."}]}
    await client.post("/v1/turns", json=turn)
    await application.indexed()
    return client


async def put(client: httpx.AsyncClient, workspace: str = "w", **settings: Any) -> dict[str, Any]:
    answer = await client.put(f"/v1/workspaces/{quote(workspace, safe='')}/settings", json=settings)
    assert answer.status_code == 200, answer.text
    shown: dict[str, Any] = answer.json()
    return shown


async def tiers_of(client: httpx.AsyncClient, **body: Any) -> set[str]:
    answer = await client.post("/v1/search", json={**QUESTION, "workspace": "w", **body})
    assert answer.status_code == 200, answer.text
    return {hit["tier"] for hit in answer.json()["results"]}


async def block_of(client: httpx.AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/v1/context", json={**QUESTION, "workspace": "w", **body})
    assert answer.status_code == 200, answer.text
    block: dict[str, Any] = answer.json()
    return block


async def test_what_is_set_is_shown_and_what_is_left_out_is_the_installations(admin: httpx.AsyncClient) -> None:
    unset = (await admin.get("/v1/workspaces/w/settings")).json()
    set_ = await put(admin, tiers=["notes", "notes", "sessions"], weights={"vector": 2, "notes_hybrid": 0.5}, limit=3)
    read = (await admin.get("/v1/workspaces/w/settings")).json()
    replaced = await put(admin, budget_tokens=500)

    assert unset["tiers"] is None
    assert unset["updated_at"] is None
    assert read == set_
    assert (set_["tiers"], set_["weights"]) == (["sessions", "notes"], {"vector": 2.0, "notes_hybrid": 0.5})
    assert (replaced["tiers"], replaced["limit"], replaced["budget_tokens"]) == (None, None, 500)


@pytest.mark.parametrize("workspace", ["a/b", "ünïcode 東京", "x" * 128, "settings", "../w", "a?b#c", "%2F"])
async def test_any_name_of_a_workspace_has_settings(admin: httpx.AsyncClient, workspace: str) -> None:
    await put(admin, workspace, limit=3)

    read = (await admin.get(f"/v1/workspaces/{quote(workspace, safe='')}/settings")).json()

    assert (read["workspace"], read["limit"]) == (workspace, 3)


@pytest.mark.parametrize(
    ("settings", "named"),
    [
        ({"tiers": []}, "tiers"),
        ({"tiers": ["profiles"]}, "tiers.0"),
        ({"limit": 0}, "limit"),
        ({"limit": None}, "limit"),
        ({"budget_tokens": 15}, "budget_tokens"),
        ({"weights": {"words": 1}}, "weights"),
        ({"weights": {"vector": -1}}, "weights.vector"),
        ({"weights": {"vector": 0, "keyword": 0, "graph": 0}}, "weights"),
        ({"weights": {"graph": 0}, "tiers": ["graph"]}, "weights"),
        ({"retention_days": 0}, "retention_days"),
        ({"retention_days": 40_000}, "retention_days"),
        ({"session_scope": "all"}, "session_scope"),
        ({"fusion": "sum"}, "fusion"),
        ({"colour": "red"}, "colour"),
    ],
)
async def test_wrong_settings_are_refused_by_field(
    admin: httpx.AsyncClient, settings: dict[str, Any], named: str
) -> None:
    answer = await admin.put("/v1/workspaces/w/settings", json=settings)

    assert answer.status_code == 422, answer.text
    assert answer.json()["errors"][0]["field"].removeprefix("body.") == named
    assert (await admin.get("/v1/workspaces/w/settings")).json()["updated_at"] is None


async def test_a_request_comes_before_its_agent_and_its_agent_before_the_workspace(admin: httpx.AsyncClient) -> None:
    before = await tiers_of(admin)
    await put(admin, tiers=["notes"])
    of_workspace = await tiers_of(admin)
    await admin.put("/v1/memory-profile", json={"workspace": "w", "agent": "coder", "tiers": ["sessions"]})

    assert {"notes", "sessions"} <= before
    assert of_workspace == {"notes"}
    assert await tiers_of(admin, agent="coder") == {"sessions"}
    assert await tiers_of(admin, agent="coder", tiers=["notes"]) == {"notes"}
    assert await tiers_of(admin, tiers=["sessions"]) == {"sessions"}


async def test_budget_number_and_relevance_of_a_block_are_the_workspaces(admin: httpx.AsyncClient) -> None:
    before = await block_of(admin)
    await put(admin, budget_tokens=300, max_context_chunks=1)
    few = await block_of(admin)
    await put(admin, min_relevance=1)

    assert len(before["results"]) > 1
    assert (few["budget_tokens"], len(few["results"])) == (300, 1)
    assert all(hit["score"] == 1 for hit in (await block_of(admin))["results"])
    assert len((await block_of(admin, min_score=0, budget_tokens=100))["results"]) > 1


async def test_a_profile_that_is_made_in_the_workspace_takes_its_numbers(admin: httpx.AsyncClient) -> None:
    await put(admin, max_context_chunks=4, min_relevance=0.3)

    shown = (await admin.get("/v1/memory-profile", params={"workspace": "w", "agent": "coder"})).json()
    made = (await admin.put("/v1/memory-profile", json={"workspace": "w", "agent": "coder", "ttl_days": 3})).json()

    assert (shown["max_context_chunks"], shown["min_relevance"]) == (4, 0.3)
    assert (made["max_context_chunks"], made["min_relevance"]) == (4, 0.3)


async def test_weights_of_the_workspace_hold_where_a_request_has_none(admin: httpx.AsyncClient) -> None:
    await put(admin, weights={"session_vectors": 0, "session_words": 0, "session_context": 0})

    assert "sessions" not in await tiers_of(admin)
    assert "sessions" in await tiers_of(admin, weights={"graph": 1})


async def test_settings_are_of_one_workspace_and_one_tenant(admin: httpx.AsyncClient, application: Application) -> None:
    other = application.for_tenant("other")
    foreign = other.client(other.new_key("other", KeyRole.ADMIN))
    await put(foreign, tiers=["graph"])
    await put(admin, workspace="v", tiers=["graph"])

    assert {"notes", "sessions"} <= await tiers_of(admin)
    assert (await foreign.get("/v1/workspaces/v/settings")).json()["tiers"] is None


async def test_writers_and_keys_of_a_part_of_the_workspace_set_nothing(application: Application) -> None:
    writer = application.client(application.new_key(application.tenant, KeyRole.WRITER))

    assert (await writer.put("/v1/workspaces/w/settings", json={"limit": 3})).status_code == 403
    assert (await writer.get("/v1/workspaces/w/settings")).status_code == 200


async def test_with_session_scope_messages_are_found_in_their_session_alone(admin: httpx.AsyncClient) -> None:
    await put(admin, session_scope="session")

    assert "sessions" not in await tiers_of(admin)
    assert "sessions" in await tiers_of(admin, session="s")
    assert "sessions" not in await tiers_of(admin, session="another")
    assert "sessions" in await tiers_of(admin, tiers=["sessions"])
    await put(admin, session_scope="session", tiers=["sessions"])
    refused = await admin.post("/v1/search", json={**QUESTION, "workspace": "w"})
    assert (refused.status_code, refused.json()["errors"][0]["field"]) == (422, "session")


async def test_what_is_older_than_the_retention_is_found_no_more(admin: httpx.AsyncClient) -> None:
    old = {"workspace": "w", "content": "Ann repaired the ferry of old", "event_at": "2020-01-01T00:00:00Z"}
    id_ = (await admin.post("/v1/notes", json=old)).json()["id"]

    async def has_old() -> bool:
        found = (await admin.post("/v1/search", json={**QUESTION, "workspace": "w", "limit": 50})).json()["results"]
        return id_ in {hit["id"] for hit in found}

    assert await has_old()
    await put(admin, retention_days=30)
    assert not await has_old()
    await put(admin)
    assert await has_old()


async def test_the_sweep_deletes_notes_past_the_retention(admin: httpx.AsyncClient, application: Application) -> None:
    await put(admin, retention_days=3)
    kept = (await admin.get("/v1/notes", params={"workspace": "w"})).json()["notes"]
    await run_job(application, "sweep", in_days(2), workspace="w", is_forced=True)
    between = (await admin.get("/v1/notes", params={"workspace": "w"})).json()["notes"]
    await run_job(application, "sweep", in_days(4), workspace="w", is_forced=True)
    after = (await admin.get("/v1/notes", params={"workspace": "w"})).json()["notes"]

    assert (len(kept), len(between), len(after)) == (5, 5, 0)


async def test_the_users_profile_is_left_out_where_it_is_switched_off(admin: httpx.AsyncClient) -> None:
    ann = {"workspace": "w", "user": "ann"}
    await admin.patch("/v1/profile", json={**ann, "patch": {"colour": "teal"}})

    async def is_shown(**body: Any) -> bool:
        return "teal" in (await block_of(admin, user="ann", **body))["text"]

    shown = [await is_shown(), await is_shown(profile=False), await is_shown(agent="coder")]
    made = (await admin.put("/v1/memory-profile", json={"workspace": "w", "agent": "coder", "profile": False})).json()
    by_agent = [await is_shown(agent="coder"), await is_shown(agent="coder", profile=True), await is_shown()]
    await put(admin, profile=False)
    by_workspace = [await is_shown(), await is_shown(profile=True)]
    other = (await admin.put("/v1/memory-profile", json={"workspace": "w", "agent": "guide"})).json()

    assert shown == [True, False, True]
    assert (made["profile"], other["profile"]) == (False, False)
    assert by_agent == [False, True, True]
    assert by_workspace == [False, True]


@pytest.mark.parametrize("kind", ["fact", "preference", "skill", "insight"])
async def test_a_memory_type_is_kept_and_found_by_a_filter(
    admin: httpx.AsyncClient, application: Application, kind: str
) -> None:
    note = {"workspace": "w", "content": "Ann repaired the ferry with a spanner", "category": kind}
    id_ = (await admin.post("/v1/notes", json=note)).json()["id"]
    await application.indexed()

    asked = {**QUESTION, "workspace": "w", "filters": {"category": kind}, "cache": False}
    found = (await admin.post("/v1/search", json=asked)).json()["results"]
    listed = (await admin.get("/v1/notes", params={"workspace": "w", "category": kind})).json()["notes"]

    assert [(hit["id"], hit["kind"]) for hit in found] == [(id_, kind)]
    assert [item["id"] for item in listed] == [id_]


async def test_a_file_named_settings_is_a_file(admin: httpx.AsyncClient) -> None:
    stored = await admin.put("/v1/workspaces/w/files/notes/settings", json={"content": "The ferry leaves at nine."})

    assert stored.status_code in {200, 201}, stored.text
    assert (await admin.get("/v1/workspaces/w/settings")).json()["updated_at"] is None
