"""Field cases 86 and 87: questions within pasted text, and long answers."""

import base64
import json
import random
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import httpx
import psycopg
import pytest

from tests.support.application import Application

QUESTION = "Which supplier delivers the coffee for our Lisbon office every month?"
ANSWER = "The coffee for the Lisbon office comes monthly from Cafés Negrita, our supplier since 2024."
_RANDOM = random.Random(7)  # noqa: S311 - data
PASTED = {
    "log": "".join(
        f"2026-11-{place % 28 + 1:02} 12:{place % 60:02}:00,{place:03} INFO  [worker-{place % 7}] acme.Pool - "
        f"Connection {place} closed by the remote host after {place * 3} ms\n"
        for place in range(120)
    ),
    "plain log": "".join(f"connection {place} closed by the remote host\n" for place in range(300)),
    "trace": "Traceback (most recent call last):\n"
    + "".join(
        f'  File "/srv/app/mod{place}.py", line {place}, in handle\n    return self.process(request, timeout={place})\n'
        for place in range(140)
    )
    + "\nDuring handling of the above exception, another exception occurred:\n\nValueError: no float: 'abc'\n",
    "java": "".join(f"\tat org.acme.web.Filter{place}.doFilter(Filter{place}.java:9)\n" for place in range(250)),
    "json": json.dumps(
        [{"id": place, "question": "What is your name?", "text": "the quick fox"} for place in range(180)], indent=1
    ),
    "one line of json": json.dumps([{"id": place, "text": "the quick brown fox"} for place in range(320)]),
    "base64": base64.b64encode(_RANDOM.randbytes(9_000)).decode(),
    "code": "".join(
        f"def handle_{place}(request, timeout={place}):\n    # Return the answer of the shard.\n    return {place}\n"
        for place in range(130)
    ),
}
PLACES = {
    "behind": lambda pasted: f"{pasted}\n\n{QUESTION}",
    "before": lambda pasted: f"{QUESTION}\n\n{pasted}",
    "on the last line": lambda pasted: f"{pasted.rstrip()} {QUESTION}",
    "within": lambda pasted: f"{pasted}\n{QUESTION}\n{pasted}",
    "without a question mark": lambda pasted: f"{pasted}\n\nTell me {QUESTION[0].lower()}{QUESTION[1:-1]}",
}


@pytest.fixture(scope="module")
async def coffee(shared_semantic: Application) -> AsyncIterator[Application]:
    """A tenant that knows the answer, beside what the pasted texts resemble."""
    mine = shared_semantic.for_tenant("tenant of coffee")
    known = [
        "Connection pools of the workers are closed by the remote host after an hour.",
        "Handlers return the answer of the shard, or raise a ValueError.",
        "The quick brown fox jumps over the lazy dog.",
        "Traceback files of the most recent call are kept for a week in the log folder.",
        *(f"Meeting {number} was about the roadmap of team {number}." for number in range(20)),
        ANSWER,
    ]
    turn = {"session": "s", "messages": [{"content": text} for text in known]}
    for path, body in (("/v1/notes/batch", {"notes": known}), ("/v1/turns", turn)):
        assert (await mine.client().post(path, json=body)).is_success
    await mine.indexed()
    yield mine
    await mine.close_clients()


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("kind", PASTED)
async def test_a_question_beside_pasted_text_finds_what_it_asks_for(coffee: Application, kind: str, place: str) -> None:
    client = coffee.client()
    query = PLACES[place](PASTED[kind])
    assert len(query) > 10_000

    for tier in ("notes", "sessions"):
        answer = await client.post("/v1/search", json={"query": query, "tiers": [tier]})
        assert answer.json()["results"][0]["content"] == ANSWER, tier


async def test_a_question_about_the_pasted_text_itself_still_finds_by_that(semantic: Application) -> None:
    client = semantic.client()
    told = "Connections closed by the remote host: raise the keep-alive of the load balancer to 90 s."
    await client.post("/v1/notes/batch", json={"notes": [told, ANSWER]})
    await semantic.indexed()

    answer = await client.post("/v1/search", json={"query": f"{PASTED['plain log']}\nWhat is it?", "tiers": ["notes"]})

    assert answer.json()["results"][0]["content"] == told


@pytest.fixture(scope="module")
async def cranes(shared_application: Application) -> AsyncIterator[Application]:
    """A tenant with 600 messages and 600 notes that all fit one question."""
    mine = shared_application.for_tenant("tenant of cranes")
    await write_many(mine.client(), 600)
    await mine.indexed()
    yield mine
    await mine.close_clients()


@pytest.mark.parametrize("fusion", ["rrf", "plain_rrf", "weighted", "composite"])
async def test_as_many_are_found_as_are_asked_for_where_so_many_fit(cranes: Application, fusion: str) -> None:
    client = cranes.client()
    for limit in (10, 100):
        for tiers in (["sessions"], ["notes"], ["sessions", "notes"]):
            found = await results(client, limit=limit, tiers=tiers, fusion=fusion)
            assert len(found) == limit, (tiers, limit)
            assert len({hit["id"] for hit in found}) == limit


async def test_every_source_is_asked_as_deep_however_alike_the_messages_are(unshared: Application) -> None:
    client = unshared.client()
    began = datetime(2026, 1, 1, tzinfo=UTC)
    for start in range(0, 2_400, 200):
        said = [
            {"content": "the harbour crane lifts containers", "occurred_at": str(began + timedelta(minutes=place))}
            for place in range(start, start + 200)
        ]
        assert (await client.post("/v1/turns", json={"session": f"s-{start}", "messages": said})).is_success
    await unshared.indexed()
    with psycopg.connect(unshared.url, autocommit=True) as connection:
        connection.execute("ANALYZE")  # As autovacuum does soon: from then on the index of vectors is used.

    for limit in (100, 500):
        body = {"query": "harbour crane lifts containers", "limit": limit, "explain": True, "tiers": ["sessions"]}
        found = (await client.post("/v1/search", json=body)).json()

        assert len(found["results"]) == limit
        assert found["sources"] == {"session_vectors": limit, "session_words": limit, "session_context": limit}


async def test_a_long_answer_after_a_short_one_is_not_the_cached_short_one(cranes: Application) -> None:
    client = cranes.client()
    asked = {"tiers": ["sessions"], "agent": "one whose answers no other test cached"}

    counts = [len(await results(client, limit=limit, **asked)) for limit in (5, 100, 5, 200)]

    assert counts == [5, 100, 5, 200]


async def test_a_long_answer_keeps_its_length_under_filters(cranes: Application) -> None:
    client = cranes.client()

    of_session = await results(client, limit=100, tiers=["sessions"], session="s-1")
    of_user = await results(client, limit=100, tiers=["notes"], filters={"tags": {"contains": "odd"}})

    assert (len(of_session), len(of_user)) == (100, 100)


async def write_many(client: httpx.AsyncClient, count: int) -> None:
    """Write messages in three sessions, and notes of two tags, that all fit one question."""
    for start in range(0, count, 200):
        texts = [f"the harbour crane number {place} lifts containers" for place in range(start, start + 200)]
        body = {"session": f"s-{start // 200}", "messages": [{"content": text} for text in texts]}
        assert (await client.post("/v1/turns", json=body)).is_success
        notes = [
            {"content": f"note: {text}", "tags": ["odd" if place % 2 else "even"]} for place, text in enumerate(texts)
        ]
        for half in (notes[:100], notes[100:]):
            assert (await client.post("/v1/notes/batch", json={"notes": half})).is_success


async def results(client: httpx.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    body = {"query": "harbour crane lifts containers", **fields}
    answer = await client.post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["degraded"] == []
    return list(answer.json()["results"])
