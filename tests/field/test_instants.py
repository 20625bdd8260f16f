"""At the very instant of a change there is one answer: what begins then is there, what ends then is not."""

from datetime import UTC, datetime, timedelta

import pytest

from tests.support.application import Application

NOON = datetime(2026, 3, 1, 12, 0, 0, 123_456, tzinfo=UTC)
INSTANT = timedelta(microseconds=1)


async def fill(app: Application) -> None:
    """Write one memory of each tier that happened at noon."""
    client = app.client()
    at = NOON.isoformat()
    await client.post("/v1/notes", json={"content": "the boat left", "event_at": at})
    await client.post(
        "/v1/turns", json={"session": "s", "messages": [{"content": "the boat left!", "occurred_at": at}]}
    )
    await client.post("/v1/documents", json={"content": "the boat left, says the log", "occurred_at": at})
    await app.indexed()


@pytest.mark.parametrize(
    ("fields", "is_found"),
    [
        ({"as_of": NOON - INSTANT}, False),
        ({"as_of": NOON}, True),
        ({"since": NOON}, True),
        ({"since": NOON + INSTANT}, False),
        ({"until": NOON}, False),
        ({"until": NOON + INSTANT}, True),
        ({"since": NOON, "until": NOON + INSTANT}, True),
        ({"since": NOON - INSTANT, "until": NOON}, False),
    ],
    ids=str,
)
async def test_every_tier_says_the_same_of_an_instant(
    application: Application, fields: dict[str, datetime], is_found: bool
) -> None:
    await fill(application)
    body = {"query": "the boat", "cache": False} | {name: moment.isoformat() for name, moment in fields.items()}

    hits = (await application.client().post("/v1/search", json=body)).json()["results"]

    assert {hit["tier"] for hit in hits} == ({"sessions", "notes", "documents"} if is_found else set())


async def test_an_edge_is_there_from_the_instant_at_which_it_was_stated(application: Application) -> None:
    client = application.client()
    body = {"edges": [{"subject": "Mira", "type": "moors", "object": "Orion"}]}
    await client.post("/v1/graph/edges", json=body)
    await application.indexed()
    entity = (await client.get("/v1/graph/neighbours", params={"name": "Mira"})).json()["entity"]
    stated = datetime.fromisoformat(entity["first_seen_at"])

    seen = []
    for moment in (stated - INSTANT, stated):
        asked = {"name": "Mira", "as_of": moment.isoformat()}
        links = (await client.get("/v1/graph/neighbours", params=asked)).json()["neighbours"]
        start = {"names": ["Mira"], "as_of": moment.isoformat(), "cache": False}
        nodes = (await client.post("/v1/graph/traverse", json=start)).json()["nodes"]
        seen.append(([link["content"] for link in links], [node["content"] for node in nodes]))

    assert seen == [([], ["Mira"]), (["Orion"], ["Mira", "Orion"])]


async def test_a_note_is_gone_at_the_instant_at_which_it_expires(application: Application) -> None:
    client = application.client()
    id_ = (await client.post("/v1/notes", json={"content": "a short note", "ttl_s": 3600})).json()["id"]
    async with application.pool.connection() as connection, connection.transaction():
        statement = "UPDATE notes SET expires_at = statement_timestamp() WHERE id = %s RETURNING expires_at"
        await connection.execute(statement, [id_])

    assert (await client.get(f"/v1/notes/{id_}")).status_code == 404
