"""Field case 28: everything of a user goes, from everywhere, and nothing of anybody else's."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from tests.support.application import Application
from tests.support.jobs import in_days, run_job

NOTES = 1_001


async def fill(app: Application) -> None:
    """Write what one can have, for ann and for bob: notes, a session, a profile, a document, facts."""
    client = app.client()
    for start in range(0, NOTES, 91):
        notes = [{"content": f"ann's boat number {number} is green"} for number in range(start, min(NOTES, start + 91))]
        answer = await client.post("/v1/notes/batch", json={"user": "ann", "notes": notes})
        assert answer.status_code == 200, answer.text
    for user in ("ann", "bob"):
        body = {"content": f"{user} keeps the key of the boathouse", "user": user, "workspace": "other"}
        await client.post("/v1/notes", json=body)
        turn = {"session": f"s-{user}", "user": user, "messages": [{"content": f"I am {user}. I work at Boatyard."}]}
        await client.post("/v1/turns", json=turn)
        await client.patch("/v1/profile", json={"user": user, "patch": {"name": user}})
        document = {"key": f"log-{user}", "title": "Log", "content": f"the log of {user}", "user": user}
        await client.post("/v1/documents", json=document)
    await app.indexed()


async def everything(app: Application, user: str) -> dict[str, int]:
    """Count what readers and tables know of a user."""
    client = app.client()
    listed = (await client.get("/v1/notes", params={"user": user, "limit": 500})).json()["notes"]
    found = (await client.post("/v1/search", json={"query": f"{user} boat", "user": user, "limit": 100})).json()
    own = [note for note in listed if note["user"] == user]
    hits = [hit for hit in found["results"] if hit.get("user") == user]
    messages = (await client.get(f"/v1/sessions/s-{user}/messages")).json().get("messages", [])
    profile = (await client.get("/v1/profile", params={"user": user})).json()["document"]
    return {"notes": len(own), "hits": len(hits), "messages": len(messages), "profile": len(profile)}


async def test_all_of_a_user_goes_from_everywhere_and_nobody_elses(unshared: Application) -> None:
    await fill(unshared)
    admin = unshared.admin()
    others = await everything(unshared, "bob")

    receipt = (await admin.delete("/v1/users", params={"user": "ann"})).json()
    drift = await unshared.drift()

    assert receipt["complete"] is True
    assert receipt["erased"]["notes"] >= NOTES + 1
    assert set(receipt["left"].values()) == {0}
    assert await everything(unshared, "ann") == {"notes": 0, "hits": 0, "messages": 0, "profile": 0}
    assert await everything(unshared, "bob") == others
    assert drift == {}
    again = (await admin.delete("/v1/users", params={"user": "ann"})).json()
    assert set(again["erased"].values()) == {0}


async def test_what_was_made_of_a_users_notes_what_was_merged_and_what_is_archived_goes_too(
    unshared: Application,
) -> None:
    client = unshared.client()
    day = datetime.now(UTC) - timedelta(days=20)
    for number in range(3):
        body = {"content": f"ann saw {number} seals", "user": "ann", "event_at": day.isoformat()}
        await client.post("/v1/notes", json=body)
    await client.post("/v1/notes", json={"content": "ann owns a telescope", "user": "ann", "workspace": "attic"})
    await run_job(unshared, "summaries", in_days(1))
    await run_job(unshared, "sweep", in_days(30), workspace="attic")
    archived = await run_job(unshared, "archival", in_days(300), workspace="attic", is_forced=True)
    admin = unshared.admin()
    before = (await client.get("/v1/notes", params={"user": "ann"})).json()["notes"]

    receipt = (await admin.delete("/v1/users", params={"user": "ann"})).json()

    assert archived.counts.removed == 1
    assert any("summary" in note["tags"] for note in before)
    assert (receipt["complete"], receipt["erased"]["archived"]) == (True, 1)
    assert (await client.get("/v1/archive/notes", params={"workspace": "attic"})).json()["notes"] == []
    assert (await client.get("/v1/notes", params={"user": "ann"})).json()["notes"] == []


async def test_what_everybody_could_read_of_a_users_notes_goes_for_good(unshared: Application) -> None:
    client = unshared.client()
    note = {"content": "ann has a secret harbour", "user": "ann"}
    own = (await client.post("/v1/notes", json=note)).json()["id"]
    ids = []
    for number, sources in enumerate(([own], [own], [])):
        ids.append((await client.post("/v1/notes", json={"content": f"everybody's note {number}"})).json()["id"])
        async with unshared.pool.connection() as connection:
            for source in sources:
                pair = [UUID(ids[-1]), UUID(source)]
                await connection.execute("INSERT INTO note_sources (note_id, source_id) VALUES (%s, %s)", pair)
    async with unshared.pool.connection() as connection:  # One was taken back before, and says what it said.
        await connection.execute("UPDATE notes SET deleted_at = now() WHERE id = %s", [UUID(ids[1])])
    admin = unshared.admin()

    receipt = (await admin.delete("/v1/users", params={"user": "ann"})).json()
    async with unshared.pool.connection() as connection:
        cursor = await connection.execute("SELECT id FROM notes WHERE tenant = %s", [unshared.tenant])
        left = [str(row["id"]) for row in await cursor.fetchall()]

    assert left == ids[2:]
    assert (receipt["erased"]["notes"], receipt["left"]["derived"], receipt["complete"]) == (3, 0, True)


async def test_only_an_admin_erases(application: Application) -> None:
    assert (await application.client().delete("/v1/users", params={"user": "ann"})).status_code == 403


async def test_an_archived_note_is_deleted_as_any_other_one(application: Application) -> None:
    client = application.client()
    body = {"content": "the telescope stands in the loft", "workspace": "loft"}
    id_ = (await client.post("/v1/notes", json=body)).json()["id"]
    await run_job(application, "sweep", in_days(30), workspace="loft")
    await run_job(application, "archival", in_days(300), workspace="loft", is_forced=True)
    asked = await client.get(f"/v1/notes/{id_}")

    deleted = await client.delete(f"/v1/notes/{id_}")
    listed = (await client.get("/v1/archive/notes", params={"workspace": "loft"})).json()["notes"]

    assert (asked.status_code, "is archived" in asked.json()["detail"]) == (404, True)
    assert (deleted.status_code, listed) == (204, [])
    assert (await client.delete(f"/v1/notes/{id_}")).status_code == 404
