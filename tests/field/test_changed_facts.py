"""Facts that change: what holds now, what held at a date, and who may say so."""

from typing import Any

import httpx
import pytest

from tests.support.application import Application

MAY, JUNE, JULY = "2026-05-01T10:00:00Z", "2026-06-01T10:00:00Z", "2026-07-01T10:00:00Z"


async def say(client: httpx.AsyncClient, text: str, on: str, name: str = "Ann", **scope: str) -> None:
    message = {"role": "user", "name": name, "content": text, "occurred_at": on}
    sent = await client.post("/v1/turns", json={"session": f"s-{on}", "messages": [message], **scope})
    assert sent.status_code == 200, sent.text


async def facts(app: Application, client: httpx.AsyncClient, question: str, **fields: Any) -> list[str]:
    await app.indexed()
    body = {"query": question, "tiers": ["graph"], "limit": 20, "min_confidence": 0, **fields}
    found = (await client.post("/v1/search", json=body)).json()
    return [hit["content"] for hit in found["results"] if hit["kind"] == "fact"]


async def related(app: Application, client: httpx.AsyncClient, question: str, **fields: Any) -> str:
    await app.indexed()
    answer = await client.post("/v1/context", json={"query": question, **fields})
    return "\n".join(line for line in answer.json()["text"].splitlines() if line.startswith("related:"))


async def test_a_fact_that_was_replaced_says_so_and_is_no_hint_any_more(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "I moved to Berlin.", JUNE)

    found = await facts(application, client, "Where does Ann live?")

    assert "Ann lives_in Paris (until 2026-06-01); later: Berlin" in found
    assert "Ann moved_to Berlin" in found
    assert "Paris" not in await related(application, client, "Where does Ann live?")
    assert "Ann lives_in Paris" in await related(
        application, client, "Where did Ann live?", as_of="2026-05-15T00:00:00Z"
    )


async def test_a_fact_of_an_earlier_time_that_is_told_late_replaces_nothing(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Berlin.", JULY)
    await say(client, "I live in Paris.", MAY)

    found = await facts(application, client, "Where does Ann live?")

    assert "Ann lives_in Berlin" in found
    assert "Ann lives_in Paris (until 2026-07-01); later: Berlin" in found


async def test_another_speaker_replaces_nothing_that_somebody_says_of_themselves(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "Ann lives in Berlin.", JUNE, name="Bob")

    assert "Ann lives_in Paris" in await facts(application, client, "Where does Ann live?")


async def test_a_statement_that_is_deleted_ends_nothing_any_more(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    sent = await client.post(
        "/v1/turns",
        json={
            "session": "s-2",
            "messages": [{"role": "user", "name": "Ann", "content": "I live in Berlin.", "occurred_at": JUNE}],
        },
    )
    await client.delete(f"/v1/messages/{sent.json()['messages'][0]['id']}")
    for note in sent.json()["notes"]:
        await client.delete(f"/v1/notes/{note['id']}")

    assert await facts(application, client, "Where does Ann live?") == ["Ann lives_in Paris"]


@pytest.mark.parametrize("later", ["I left Initech.", "I left Initech and joined Hooli."])
async def test_a_fact_that_was_taken_back_holds_no_longer(application: Application, later: str) -> None:
    client = application.client()
    await say(client, "I work at Initech.", MAY)
    await say(client, later, JUNE)

    assert "Ann works_at Initech" not in await related(application, client, "Where does Ann work?")
