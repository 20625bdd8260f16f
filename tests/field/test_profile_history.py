from typing import Any

import httpx

from tests.support.application import Application

ANN = {"user": "ann"}


async def patched(client: httpx.AsyncClient, **patch: Any) -> dict[str, Any]:
    found: dict[str, Any] = (await client.patch("/v1/profile", json={**ANN, "patch": patch})).json()
    return found


async def test_a_profile_has_its_history_and_an_earlier_state_can_hold_again(application: Application) -> None:
    client = application.client()
    await patched(client, location="Paris", likes=["tea", "rain"])
    await patched(client, location="Berlin", likes=["snow"], pet="cat")

    reverted = (await client.post("/v1/profile/revert", json={**ANN, "version": 1})).json()

    versions = (await client.get("/v1/profile/versions", params=ANN)).json()["versions"]
    assert (reverted["document"], reverted["version"]) == ({"location": "Paris", "likes": ["tea", "rain"]}, 3)
    assert [item["version"] for item in versions] == [3, 2, 1]
    assert [item["document"]["location"] for item in versions] == ["Paris", "Berlin", "Paris"]


async def test_an_older_statement_that_arrives_later_brings_back_nothing_that_was_reverted(
    application: Application,
) -> None:
    client = application.client()
    await patched(client, name="Ann")
    message = {
        "role": "user",
        "content": "I live in Berlin. I prefer long walks.",
        "occurred_at": "2026-05-01T10:00:00Z",
    }
    await client.post("/v1/turns", json={**ANN, "session": "s-1", "messages": [message]})
    await client.post("/v1/profile/revert", json={**ANN, "version": 1})

    again = {**message, "content": "I live in Berlin now. I prefer long walks.", "occurred_at": "2026-05-02T10:00Z"}
    await client.post("/v1/turns", json={**ANN, "session": "s-2", "messages": [again]})

    assert (await client.get("/v1/profile", params=ANN)).json()["document"] == {"name": "Ann"}


async def test_a_version_that_is_not_kept_and_a_call_without_a_user_are_refused(application: Application) -> None:
    client = application.client()
    await patched(client, name="Ann")

    missing = await client.post("/v1/profile/revert", json={**ANN, "version": 7})
    of_another = await client.post("/v1/profile/revert", json={"user": "bob", "version": 1})
    nobody = await client.post("/v1/profile/revert", json={"version": 1})

    assert (missing.status_code, of_another.status_code, nobody.status_code) == (404, 404, 422)
    assert (await client.get("/v1/profile/versions", params={"user": "bob"})).json() == {
        "versions": [],
        "next_cursor": None,
    }
    assert (await client.get("/v1/profile/versions")).status_code == 422
