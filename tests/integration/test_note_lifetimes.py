"""How much of a note is left: its weight, and the note that it was merged into."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import pytest

from lamina.stores.postgres.connection import in_transaction
from lamina.stores.postgres.job_changes import RowChange, change_rows
from tests.support.application import Application
from tests.support.jobs import rows_of

MERGED_AT = datetime(2026, 7, 1, tzinfo=UTC)


async def add(app: Application, content: str, **fields: Any) -> str:
    answer = await app.client().post("/v1/notes", json={"content": content, **fields})
    assert answer.status_code in {200, 201}, answer.text
    id_: str = answer.json()["id"]
    return id_


async def fade(app: Application, id_: str, weight: float = 0.1) -> None:
    async with app.pool.connection() as connection:
        await connection.execute(
            b"UPDATE notes SET weight = %s, last_hit_at = now() - interval '30 days' WHERE id = %s", [weight, id_]
        )


async def weight_of(app: Application, id_: str) -> float:
    async with app.pool.connection() as connection:
        cursor = await connection.execute(b"SELECT weight FROM notes WHERE id = %s", [id_])
        (row,) = await cursor.fetchall()
        return float(row["weight"])


async def ids_in(app: Application, path: str, query: str, **fields: Any) -> list[str]:
    answer = await app.client().post(path, json={"query": query, "cache": False, "min_score": 0, **fields})
    assert answer.status_code == 200, answer.text
    return [hit["id"] for hit in answer.json()["results"] if hit["tier"] == "notes"]


async def test_a_faded_note_is_in_no_context_and_still_found(application: Application) -> None:
    faded = await add(application, "Ada Brown moored the green boat")
    fresh = await add(application, "Ada Brown painted the green boat")
    edge = await add(application, "Ada Brown sold the green boat")
    await application.indexed()
    await fade(application, faded)
    await fade(application, edge, 0.2)

    searched = await ids_in(application, "/v1/search", "Ada Brown green boat")
    context = await ids_in(application, "/v1/context", "Ada Brown green boat")

    assert set(searched) == {faded, fresh, edge}
    assert set(context) == {fresh, edge}


async def test_what_has_faded_leaves_its_place_to_others(application: Application) -> None:
    faded = [await add(application, f"the green boat {number}") for number in range(3)]
    fresh = await add(application, "a boat that was once green, they say, lies at the mooring of the old pier")
    await application.indexed()
    for id_ in faded:
        await fade(application, id_)

    assert await ids_in(application, "/v1/context", "the green boat", limit=1) == [fresh]


async def test_a_hit_gives_a_note_its_weight_back(application: Application) -> None:
    id_ = await add(application, "the green boat")
    await application.indexed()
    await fade(application, id_)

    await ids_in(application, "/v1/search", "the green boat")
    await application.counted()

    assert await weight_of(application, id_) == 1
    assert (await application.client().get(f"/v1/notes/{id_}")).json()["weight"] == 1


@pytest.mark.parametrize("temperature", ["warm", "cold"])
async def test_a_note_whose_text_changes_has_its_weight_back(application: Application, temperature: str) -> None:
    id_ = await add(application, "the green boat")
    await fade(application, id_)
    async with application.pool.connection() as connection:
        await connection.execute(b"UPDATE notes SET temperature = %s WHERE id = %s", [temperature, id_])

    await application.client().patch(f"/v1/notes/{id_}", json={"content": "the green boat is sold"})

    assert await weight_of(application, id_) == 1


async def test_what_is_told_again_in_other_words_has_its_weight_back(semantic: Application) -> None:
    id_ = await add(semantic, "The ferry leaves from pier five at noon")
    await fade(semantic, id_)

    again = await semantic.client().post("/v1/notes", json={"content": "the ferry leaves from pier five at noon!"})
    told = (await semantic.client().get(f"/v1/notes/{id_}")).json()

    assert (again.json()["id"], again.json()["merged"]) == (id_, True)
    assert told["weight"] == 1
    # Or the next decay would take the weight again.
    assert datetime.fromisoformat(told["last_hit_at"]).date() == datetime.now(UTC).date()


def merge_of(gone: str, survivor: str) -> RowChange:
    after = {"deleted_at": MERGED_AT, "merged_into": UUID(survivor)}
    return RowChange(UUID(gone), after, {"deleted_at": None, "merged_into": None})


async def change(app: Application, *changes: RowChange) -> int:
    rows = await in_transaction(app.pool, lambda connection: change_rows(connection, "notes", changes))
    return len(rows)


BACK = {"deleted_at": None, "merged_into": None}


async def test_who_asks_for_a_merged_note_is_told_where_it_went(application: Application) -> None:
    gone, survivor = await add(application, "a green boat"), await add(application, "the boat is green")
    merge = merge_of(gone, survivor)
    await change(application, merge)
    client = application.client()

    answers = [
        await client.get(f"/v1/notes/{gone}"),
        await client.get(f"/v1/notes/{gone}/versions"),
        await client.patch(f"/v1/notes/{gone}", json={"importance": 1.0}),
        await client.delete(f"/v1/notes/{gone}"),
    ]
    elsewhere = application.for_tenant("somebody else")
    foreign = await elsewhere.client().get(f"/v1/notes/{gone}")
    await elsewhere.close_clients()

    for answer in answers:
        assert answer.status_code == 404
        assert f"note {gone} was merged into {survivor}" in answer.json()["detail"]
    assert survivor not in foreign.text
    assert await change(application, RowChange(merge.id, BACK, guard=merge.after)) == 1
    assert (await client.get(f"/v1/notes/{gone}")).status_code == 200


async def test_what_was_merged_goes_for_good_with_its_survivor(application: Application) -> None:
    client = application.client()
    first = await add(application, "Ada Brown works at Harbour Tours.")
    second = await add(application, "Ada Brown has worked at Harbour Tours.")
    survivor = await add(application, "The boat is green.")
    summary = await add(application, "A summary.", derived_from=[first])
    merges = [merge_of(first, second), merge_of(second, survivor)]
    assert await change(application, *merges) == 2
    await application.indexed()

    assert (await client.delete(f"/v1/notes/{survivor}")).status_code == 204
    await application.indexed()
    undone = await change(application, *(RowChange(merge.id, BACK, guard=merge.after) for merge in merges))

    assert undone == 0
    for id_ in (first, second, survivor, summary):
        answer = await client.get(f"/v1/notes/{id_}")
        assert (answer.status_code, "merged" in answer.json()["detail"]) == (404, False)
    for table in ("memory_links", "entities", "edges"):
        async with rows_of(application, table) as left:
            assert left == [], table
    assert (await client.get("/v1/graph/neighbours", params={"name": "Ada Brown"})).status_code == 404


async def test_a_note_that_was_merged_elsewhere_stays_when_another_is_deleted(application: Application) -> None:
    gone, survivor = await add(application, "a green boat"), await add(application, "the boat is green")
    other = await add(application, "the mast is high")
    merge = merge_of(gone, survivor)
    await change(application, merge)

    await application.client().delete(f"/v1/notes/{other}")

    assert await change(application, RowChange(merge.id, BACK, guard=merge.after)) == 1
