"""A second user of the same tenant reads nothing of the first one's, by any route, and keeps what is their own."""

from typing import Any

import httpx
import pytest

from tests.security.test_mcp import bound
from tests.support.application import Application

MARK = "heliotrope"
SESSION = "shared/session"
TEXT = f"I decided that the {MARK} boat is painted on Monday."
WRITES: dict[str, tuple[str, dict[str, Any]]] = {
    "a turn": ("/v1/turns", {"session": SESSION, "messages": [{"content": TEXT, "ref": "1"}]}),
    "an agent's work": (
        "/v1/turns",
        {
            "session": SESSION,
            "messages": [],
            "tool_calls": [{"name": MARK, "arguments": {"paint": MARK}, "result": TEXT, "id": "1"}],
            "usage": {"provider": MARK, "model": MARK, "input_tokens": 3},
            "outcome": {"succeeded": True, "comment": MARK},
        },
    ),
    "a note": ("/v1/notes", {"content": TEXT, "tags": [MARK]}),
    "a document": ("/v1/documents", {"content": TEXT, "key": MARK, "title": f"A {MARK} boat"}),
    "a fact": ("/v1/graph/edges", {"edges": [{"subject": "Ann", "type": "paints", "object": f"{MARK} boat"}]}),
}


async def write_all(client: httpx.AsyncClient, user: str) -> dict[str, dict[str, Any]]:
    answers = {}
    for name, (path, body) in WRITES.items():
        answer = await client.post(path, json={"user": user, **body})
        assert answer.status_code in {200, 201}, answer.text
        answers[name] = answer.json()
    answer = await client.patch("/v1/profile", json={"user": user, "patch": {"boat": MARK}})
    assert answer.status_code == 200, answer.text
    return answers


def ids_in(answer: Any) -> set[str]:
    match answer:
        case dict():
            own = {value for name, value in answer.items() if name.endswith("id") and isinstance(value, str)}
            return own.union(*(ids_in(value) for value in answer.values()))
        case list():
            return set().union(*map(ids_in, answer))
    return set()


async def test_no_read_as_another_user_tells_of_the_first_ones(application: Application) -> None:
    client = application.client()
    await write_all(client, "ann")
    await application.indexed()
    asked = 0
    for path, calls in application.api.openapi()["paths"].items():
        for method, call in calls.items():
            query = {item["name"]: item for item in call.get("parameters", ()) if item["in"] == "query"}
            if method != "get" or "user" not in query or "{id}" in path:
                continue
            needed = {name: MARK for name, item in query.items() if item.get("required") or name == "name"}
            named = path.replace(":path}", "}").format(session=SESSION, workspace="default", path=MARK)
            answer = await client.get(named, params={**needed, "user": "bob"})

            # A refusal repeats the name that was asked for.
            assert answer.status_code in {404, 422} or MARK not in answer.text, path
            asked += answer.status_code == 200
    assert asked > 5


@pytest.mark.parametrize("path", ["/v1/search", "/v1/context"])
async def test_no_search_as_another_user_tells_of_the_first_ones(application: Application, path: str) -> None:
    client = application.client()
    await write_all(client, "ann")
    await application.indexed()

    for more in ({}, {"session": SESSION}, {"namespace": "default"}):
        answer = await client.post(path, json={"query": f"the {MARK} boat", "user": "bob", **more})

        assert answer.status_code == 200, answer.text
        assert "painted" not in answer.text


async def test_the_same_text_of_two_users_is_kept_for_both(application: Application) -> None:
    client = application.client()
    first, second = await write_all(client, "ann"), await write_all(client, "bob")
    await application.indexed()

    for name in WRITES:
        if name != "a fact":  # Entities are the namespace's; who stated a fact is its evidence.
            assert not ids_in(first[name]) & ids_in(second[name]), name
    for user in ("ann", "bob"):
        history = (await client.get(f"/v1/sessions/{SESSION}/messages", params={"user": user})).json()
        found = (await client.post("/v1/search", json={"query": f"the {MARK} boat", "user": user})).json()
        assert [message["content"] for message in history["messages"] if message["role"] == "user"] == [TEXT]
        assert {hit["user"] for hit in found["results"] if "user" in hit} <= {user, None}
        assert {"message", "passage"} <= {hit["kind"] for hit in found["results"]}


async def test_a_session_without_users_is_read_by_everybody(application: Application) -> None:
    client = application.client()
    turn = {"session": "of nobody", "messages": [{"content": TEXT, "ref": "1"}]}
    await client.post("/v1/turns", json=turn)
    again = await client.post("/v1/turns", json=turn)

    history = (await client.get("/v1/sessions/of nobody/messages", params={"user": "bob"})).json()

    assert [message["content"] for message in history["messages"]] == [TEXT]
    assert again.json()["messages"][0]["existed"]


async def test_a_correction_takes_no_note_of_others_that_names_the_message_as_its_source(
    application: Application,
) -> None:
    client, eve = application.client(), await bound(application, users=["eve"])
    said = {"session": "s-1", "messages": [{"content": "I live in Oslo."}]}
    message = (await eve.post("/v1/turns", json=said)).json()["messages"][0]["id"]
    cited = {"source": f"message:{message}", "session": "s-1"}
    kept = [
        (await client.post("/v1/notes", json={"content": "The pier is long.", **cited, **whose})).json()["id"]
        for whose in ({}, {"user": "bob"})
    ]

    changed = await eve.patch(f"/v1/memories/{message}", json={"content": "I live in Rome."})

    assert changed.status_code == 200, changed.text
    assert [(await client.get(f"/v1/notes/{id_}")).status_code for id_ in kept] == [200, 200]
    own = (await client.get("/v1/notes", params={"user": "eve"})).json()["notes"]
    assert [note["content"] for note in own if note["user"] == "eve"] == ["I live in Rome."]


async def test_a_second_user_learns_no_name_of_who_stated_a_fact_to_the_first(application: Application) -> None:
    client = application.client()
    for user, speaker in (("ann", f"Ben {MARK}"), ("bob", "Carl")):
        message = {"name": speaker, "content": "Dora works at Initech."}
        await client.post("/v1/turns", json={"user": user, "session": SESSION, "messages": [message]})
    await application.indexed()

    names = {}
    for user in ("ann", "bob", "eve"):
        asked = {"user": user, "query": "Where does Dora work?", "tiers": ["graph"]}
        found = (await client.post("/v1/search", json=asked)).json()["results"]
        names[user] = [hit["name"] for hit in found if hit["kind"] == "fact"]

    assert names == {"ann": [f"Ben {MARK}"], "bob": ["Carl"], "eve": []}
