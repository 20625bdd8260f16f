"""A summary must not outlive what it summarises."""

from uuid import uuid4

from tests.support.application import Application


async def test_a_summary_goes_with_any_of_the_notes_it_was_made_from(application: Application) -> None:
    client = application.client()
    ids = [
        (await client.post("/v1/notes", json={"content": text})).json()["id"] for text in ("first fact", "second one")
    ]
    summary = {"content": "both facts in short", "derived_from": ids}
    summary_id = (await client.post("/v1/notes", json=summary)).json()["id"]
    headline = {"content": "the shortest form", "derived_from": [summary_id]}
    headline_id = (await client.post("/v1/notes", json=headline)).json()["id"]
    await application.indexed()

    assert (await client.delete(f"/v1/notes/{ids[1]}")).status_code == 204
    await application.indexed()

    statuses = {id_: (await client.get(f"/v1/notes/{id_}")).status_code for id_ in (*ids, summary_id, headline_id)}
    assert statuses == {ids[0]: 200, ids[1]: 404, summary_id: 404, headline_id: 404}
    for query in ("both facts in short", "the shortest form"):
        found = (await client.post("/v1/search", json={"query": query, "tiers": ["notes"]})).json()["results"]
        assert {hit["id"] for hit in found} <= {ids[0]}


async def test_a_note_cannot_be_made_from_what_its_scope_does_not_have(application: Application) -> None:
    client = application.client()
    elsewhere = await client.post("/v1/notes", json={"content": "of another place", "workspace": "other"})

    for unknown in (str(uuid4()), elsewhere.json()["id"]):
        refused = await client.post("/v1/notes", json={"content": "a summary", "derived_from": [unknown]})
        assert refused.status_code == 422
        assert unknown in refused.json()["detail"]
    listed = (await client.get("/v1/notes")).json()["notes"]
    assert listed == []


async def test_a_note_that_is_written_again_goes_with_what_it_is_made_from_then_too(application: Application) -> None:
    client = application.client()
    texts = "the first fact", "the second one", "the third one"
    first, second, third = [(await client.post("/v1/notes", json={"content": text})).json()["id"] for text in texts]
    ids = []
    for summary, sources in [("A", [first]), ("A", [second]), ("B", []), ("B", [first]), ("C", [third])]:
        body = {"content": f"the facts in short, {summary}", "derived_from": sources}
        ids.append((await client.post("/v1/notes", json=body)).json()["id"])
    [of_itself, unknown] = [
        await client.post("/v1/notes", json={"content": "the facts in short, C", "derived_from": [source]})
        for source in (ids[-1], str(uuid4()))
    ]

    await client.delete(f"/v1/notes/{second}")
    after_second = [(await client.get(f"/v1/notes/{id_}")).status_code for id_ in ids]
    await client.delete(f"/v1/notes/{first}")
    after_first = [(await client.get(f"/v1/notes/{id_}")).status_code for id_ in ids]

    assert (ids[0], ids[2]) == (ids[1], ids[3])
    assert (of_itself.status_code, unknown.status_code) == (422, 422)
    assert after_second == [404, 404, 200, 200, 200]
    assert after_first == [404, 404, 404, 404, 200]
