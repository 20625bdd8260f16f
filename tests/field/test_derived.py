"""What jobs make of what users wrote: it misleads no job, outlives nothing it rests on, and is no new evidence."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest
from psycopg.types.json import Jsonb

from benchmarks.generated_sentences import Wording
from lamina.core.areas import Area
from lamina.core.runs import Order, RunState
from lamina.extraction.extractive_summaries import SourceText
from tests.support.application import Application, ended, sent
from tests.support.jobs import Watched, WatchedRemoval, driver_of, in_days, job_of, run_job, undo_run

DAY = datetime(2026, 9, 7, 9, tzinfo=UTC)
TOOLS = ("Postgres", "Redis", "Kafka")


async def add(app: Application, content: str, hours: float = 0, **fields: Any) -> str:
    body = {"content": content, "event_at": (DAY + timedelta(hours=hours)).isoformat(), **fields}
    answer = await app.client().post("/v1/notes", json=body)
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json()["id"])


async def patch(app: Application, id_: str, **fields: Any) -> None:
    answer = await app.client().patch(f"/v1/notes/{id_}", json=fields)
    assert answer.status_code == 200, answer.text


async def delete(app: Application, id_: str) -> None:
    answer = await app.client().delete(f"/v1/notes/{id_}")
    assert answer.is_success, answer.text


async def a_day(app: Application, **fields: Any) -> list[str]:
    return [
        await add(app, f"The crew loaded {number + 2} barrels at pier {number}", number, **fields)
        for number in range(3)
    ]


async def tagged(app: Application, tag: str) -> list[dict[str, Any]]:
    notes = (await app.client().get("/v1/notes", params={"limit": 500})).json()["notes"]
    return [note for note in notes if tag in note["tags"]]


async def rows(app: Application, text: str, *values: Any) -> list[dict[str, Any]]:
    """Return what a statement finds or changes."""
    async with app.pool.connection() as connection:
        cursor = await connection.execute(text.encode(), values)
        return await cursor.fetchall() if cursor.description else []


async def entities(app: Application) -> dict[str, float]:
    """Return the confidence of every entity of the tenant, by name."""
    found = await rows(app, "SELECT name, confidence FROM entities WHERE tenant = %s", app.tenant)
    return {row["name"]: row["confidence"] for row in found}


async def inferred(app: Application) -> list[dict[str, Any]]:
    return await rows(app, "SELECT * FROM edges WHERE tenant = %s AND type = 'related_to'", app.tenant)


async def who_uses_what(app: Application, **fields: Any) -> dict[tuple[str, str], str]:
    """Let Ann and Bob share three tools, each by a note of its own; return the notes."""
    pairs = [(who, tool) for who in ("Ann", "Bob") for tool in TOOLS]
    return {pair: await add(app, f"{pair[0]} uses {pair[1]}.", **fields) for pair in pairs}


async def state_related(app: Application) -> None:
    """Have somebody state what was inferred, in the direction in which it was."""
    [edge] = await inferred(app)
    ends = {
        row["id"]: row["name"] for row in await rows(app, "SELECT id, name FROM entities WHERE tenant = %s", app.tenant)
    }
    body = {"subject": ends[edge["from_id"]], "type": "related_to", "object": ends[edge["to_id"]], "confidence": 0.6}
    answer = await app.client().post("/v1/graph/edges", json={"edges": [body]})
    assert answer.status_code == 200, answer.text


async def test_nobody_but_a_job_names_a_job_as_source(application: Application) -> None:
    answer = await application.client().post("/v1/notes", json={"content": "x", "source": "job:summaries"})

    assert 400 <= answer.status_code < 500
    assert "source" in answer.text
    assert "another source" in answer.text


@pytest.mark.parametrize(
    "summary",
    [
        None,
        [],
        "x",
        {"level": 7},
        {"level": "daily"},
        {"level": "daily", "start": "soon"},
        {"level": "x", "start": "2026-09-07"},
        {"level": "daily", "start": "0001-01-01T00:00:00+14:00"},
        {"level": "daily", "start": "2026-09-07"},
    ],
)
async def test_summaries_are_made_whatever_is_written_into_the_metadata_of_one(
    application: Application, summary: Any
) -> None:
    await a_day(application)
    await run_job(application, "summaries", in_days(1))
    [made] = await tagged(application, "summary")
    await patch(application, made["id"], metadata={} if summary is None else {"summary": summary})
    await add(application, "The cook bought 77 lemons", 30)

    run = await run_job(application, "summaries", in_days(1))

    assert (run.state, run.problems) == (RunState.DONE, ())


async def test_a_note_that_no_job_made_is_no_summary_and_stays(application: Application) -> None:
    own = await add(application, "My own words about the seventh", tags=["mine"])
    metadata = {"summary": {"level": "daily", "start": DAY.replace(hour=0).isoformat()}}
    forged = "UPDATE notes SET source = 'job:summaries', metadata = %s WHERE id = %s"
    await rows(application, forged, Jsonb(metadata), UUID(own))
    await a_day(application)

    run = await run_job(application, "summaries", in_days(1))

    assert run.counts.changed == 1
    assert len(await tagged(application, "mine")) == 1


async def test_an_inferred_edge_and_its_ends_go_with_the_last_notes_that_imply_it(application: Application) -> None:
    notes = await who_uses_what(application)
    run = await run_job(application, "consolidation")
    before = await inferred(application)

    for id_ in notes.values():
        await delete(application, id_)

    assert (run.counts.changed, len(before)) == (1, 1)
    assert await inferred(application) == []
    assert await entities(application) == {}


async def test_notes_that_end_by_themselves_imply_nothing_that_stays(application: Application) -> None:
    await who_uses_what(application, ttl_s=3600)

    run = await run_job(application, "consolidation")

    assert (run.counts.planned, await inferred(application)) == (0, [])


async def test_an_inferred_edge_goes_by_the_next_run_when_its_ends_share_less(application: Application) -> None:
    notes = await who_uses_what(application)
    await run_job(application, "consolidation")
    await delete(application, notes["Ann", "Kafka"])

    dry = await run_job(application, "consolidation", is_dry_run=True)
    run = await run_job(application, "consolidation")
    again = await run_job(application, "consolidation")

    assert (dry.counts.planned, run.counts.changed, again.counts.planned) == (1, 1, 0)
    assert await inferred(application) == []
    assert {"Ann", "Bob"} <= (await entities(application)).keys()


async def test_what_is_stated_too_stays_when_it_is_no_longer_inferred_and_is_weighed_anew(
    application: Application,
) -> None:
    await who_uses_what(application)
    run = await run_job(application, "consolidation")
    await state_related(application)
    [both] = await inferred(application)

    await undo_run(application, run)
    [stated] = await inferred(application)

    assert both["confidence"] == pytest.approx(0.8)
    assert stated["confidence"] == pytest.approx(0.6)


async def test_evidence_that_comes_while_an_undo_waits_keeps_the_edge(application: Application) -> None:
    await who_uses_what(application)
    run = await run_job(application, "consolidation")
    [edge] = await inferred(application)
    told = (
        b"INSERT INTO edge_evidence (edge_id, source, strength, confidence, seen_at) VALUES (%s, 'me', 1, 0.6, now())"
    )

    async with application.pool.connection() as connection, connection.transaction():
        await connection.execute(told, [edge["id"]])
        undo = asyncio.create_task(undo_run(application, run))
        await asyncio.sleep(0.5)
        assert not undo.done()
    await undo

    assert [row["id"] for row in await inferred(application)] == [edge["id"]]


async def test_a_summary_makes_nothing_surer_and_undone_keeps_nothing_known(application: Application) -> None:
    ids = [await add(application, f"Ann uses {tool}.", number) for number, tool in enumerate(TOOLS)]
    before = await entities(application)
    run = await run_job(application, "summaries", in_days(1))
    after = await entities(application)
    [summary] = await tagged(application, "summary")
    links = await rows(
        application, "SELECT * FROM memory_links WHERE from_id = %s AND kind = 'mentions'", UUID(summary["id"])
    )
    await undo_run(application, run)
    for id_ in ids:
        await delete(application, id_)

    assert after == before
    assert len(links) == 4
    assert "job:summaries" not in {link["source"] for link in links}
    assert await entities(application) == {}
    assert (
        await rows(
            application, "SELECT 1 FROM memory_links WHERE tenant = %s AND kind <> 'similar'", application.tenant
        )
        == []
    )


async def test_of_equal_texts_that_were_merged_one_comes_back(application: Application) -> None:
    source = await add(application, "The storm took the northern pier")
    survivor = await add(application, "All about the pier", derived_from=[source])
    ids = []
    for _ in range(2):
        ids.append(await add(application, "The pier is 40 m long"))
        merged = "UPDATE notes SET deleted_at = now(), merged_into = %s WHERE id = %s"
        await rows(application, merged, UUID(survivor), UUID(ids[-1]))

    await delete(application, source)
    hidden = await rows(application, "SELECT id, merged_into FROM notes WHERE id = ANY(%s)", [UUID(id_) for id_ in ids])
    listed = (await application.client().get("/v1/notes")).json()["notes"]
    await delete(application, ids[0])

    assert [note["id"] for note in listed] == [ids[0]]
    assert {str(row["id"]): row["merged_into"] for row in hidden} == {ids[0]: None, ids[1]: UUID(ids[0])}
    assert (await application.client().get("/v1/notes")).json()["notes"] == []


async def expiry(app: Application, id_: str) -> datetime | None:
    [row] = await rows(app, "SELECT expires_at FROM notes WHERE id = %s", UUID(id_))
    return row["expires_at"]  # type: ignore[no-any-return]


async def test_a_source_that_gets_an_end_while_its_summary_is_made_ends_that_too(application: Application) -> None:
    ids = await a_day(application)

    async def end() -> None:
        await patch(application, ids[0], ttl_s=3600)

    job = Watched(job_of(application, "summaries"), before_acting=end)
    await driver_of(application, "summaries", job).start(Order("summaries", Area(application.tenant), in_days(1)))
    [summary] = await rows(
        application, "SELECT id, expires_at FROM notes WHERE tenant = %s AND source LIKE 'job:%%'", application.tenant
    )

    assert summary["expires_at"] == await expiry(application, ids[0])
    assert summary["expires_at"] is not None


async def test_what_was_taken_back_ends_with_its_sources_too(application: Application) -> None:
    ids = await a_day(application)
    run = await run_job(application, "summaries", in_days(1))
    [summary] = await tagged(application, "summary")
    await undo_run(application, run)

    await patch(application, ids[0], ttl_s=3600)

    assert await expiry(application, summary["id"]) == await expiry(application, ids[0])
    assert await expiry(application, ids[0]) is not None


BACKUPS = (
    "The backup of the billing database runs every night at 02:00",
    "Every night at 02:00 the billing database is backed up",
    "Backups of the billing database run nightly at 02:00",
)


async def consolidated(app: Application) -> tuple[list[str], str]:
    """Return three notes that became one, the first of which is still to be seen, and that one."""
    ids = [await add(app, f"Note {number}: {text}", number) for number, text in enumerate(BACKUPS)]
    await run_job(app, "consolidation", is_forced=True)
    [one] = await tagged(app, "consolidated")
    await rows(app, "UPDATE notes SET deleted_at = NULL, merged_into = NULL WHERE id = %s", UUID(ids[0]))
    return ids, one["id"]


async def test_a_consolidated_note_is_made_anew_when_a_member_says_something_else(semantic: Application) -> None:
    ids, old = await consolidated(semantic)
    await patch(semantic, ids[0], content="Note 0: The backup of the billing database runs every night at 05:30")

    run = await run_job(semantic, "consolidation", is_forced=True)
    [new] = await tagged(semantic, "consolidated")
    again = await run_job(semantic, "consolidation", is_forced=True)
    await undo_run(semantic, run)
    [back] = await tagged(semantic, "consolidated")

    assert new["id"] != old
    assert "05:30" in new["content"]
    assert again.counts.planned == 0
    assert back["id"] == old


@pytest.mark.parametrize("is_pinned", [False, True])
async def test_what_a_consolidated_note_covers_is_there_again_when_a_member_is_to_end(
    semantic: Application, is_pinned: bool
) -> None:
    ids, one = await consolidated(semantic)
    if is_pinned:
        assert (await semantic.client().put(f"/v1/memories/{one}/pin")).is_success
    await patch(semantic, ids[0], ttl_s=3600)

    await run_job(semantic, "consolidation", is_forced=True)
    listed = {note["id"]: note["expires_at"] for note in (await semantic.client().get("/v1/notes")).json()["notes"]}
    merged = await rows(semantic, "SELECT 1 FROM notes WHERE tenant = %s AND merged_into IS NOT NULL", semantic.tenant)

    assert (listed.keys(), merged) == (set(ids), [])
    assert [listed[id_] for id_ in ids[1:]] == [None, None]


async def test_a_model_is_asked_once_for_a_note_whose_removals_are_counted_first(semantic: Application) -> None:
    for number, text in enumerate(BACKUPS):
        await add(semantic, f"Note {number}: {text}", number)
    for number in range(20):
        await add(semantic, f"{number}: {Wording(np.random.default_rng(number)).statement()}", number)
    job: Any = job_of(semantic, "consolidation")
    asked, summarizer = list[str](), job._summarizer

    class Counted:
        async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
            asked.append(sources[0].text)
            return await summarizer.summarize(sources, most_tokens=most_tokens)  # type: ignore[no-any-return]

    job._summarizer = Counted()
    order = Order("consolidation", Area(semantic.tenant), datetime.now(UTC))
    await driver_of(semantic, "consolidation", job).start(order)

    assert len(await tagged(semantic, "consolidated")) == len(set(asked)) == len(asked)


async def test_nothing_is_consolidated_of_which_a_member_is_to_end_meanwhile(semantic: Application) -> None:
    ids = [await add(semantic, f"Note {number}: {text}", number) for number, text in enumerate(BACKUPS)]

    async def end() -> None:
        await patch(semantic, ids[0], ttl_s=3600)

    job = WatchedRemoval(job_of(semantic, "consolidation"), before_acting=end)
    order = Order("consolidation", Area(semantic.tenant), datetime.now(UTC), is_forced=True)
    await driver_of(semantic, "consolidation", job).start(order)

    assert {note["id"] for note in (await semantic.client().get("/v1/notes")).json()["notes"]} == set(ids)


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_pinned_consolidated_note_is_not_made_anew_even_if_the_pin_comes_meanwhile(
    semantic: Application, is_late: bool
) -> None:
    ids, old = await consolidated(semantic)
    await patch(semantic, ids[0], content="Note 0: The backup of the billing database runs every night at 05:30")

    async def pin() -> None:
        assert (await semantic.client().put(f"/v1/memories/{old}/pin")).is_success

    if not is_late:
        await pin()
    job = WatchedRemoval(job_of(semantic, "consolidation"), before_acting=pin)
    order = Order("consolidation", Area(semantic.tenant), datetime.now(UTC), is_forced=True)
    await driver_of(semantic, "consolidation", job).start(order)

    assert [note["id"] for note in await tagged(semantic, "consolidated")] == [old]


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_pinned_note_is_not_consolidated_even_if_the_pin_comes_meanwhile(
    semantic: Application, is_late: bool
) -> None:
    ids = [await add(semantic, f"Note {number}: {text}", number) for number, text in enumerate(BACKUPS)]

    async def pin() -> None:
        assert (await semantic.client().put(f"/v1/memories/{ids[0]}/pin")).is_success

    if not is_late:
        await pin()
    job = WatchedRemoval(job_of(semantic, "consolidation"), before_acting=pin)
    order = Order("consolidation", Area(semantic.tenant), datetime.now(UTC), is_forced=True)
    run = await driver_of(semantic, "consolidation", job).start(order)

    assert {note["id"] for note in (await semantic.client().get("/v1/notes")).json()["notes"]} == set(ids)
    assert (run.counts.planned > 0) is is_late


async def test_what_a_consolidated_note_covers_moves_with_it(semantic: Application) -> None:
    client = semantic.client()
    ids = [await add(semantic, f"Note {number}: {text}", number) for number, text in enumerate(BACKUPS)]
    await run_job(semantic, "consolidation", is_forced=True)
    order = {"everything": True, "to_workspace": "there"}
    await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=order))

    await run_job(semantic, "consolidation", is_forced=True)
    places = "SELECT id, workspace FROM notes WHERE tenant = %s AND (deleted_at IS NULL OR merged_into IS NOT NULL)"
    found = await rows(semantic, places, semantic.tenant)
    linked = await rows(semantic, "SELECT DISTINCT workspace FROM memory_links WHERE tenant = %s", semantic.tenant)

    assert {row["workspace"] for row in found} == {"there"}
    assert {str(row["id"]) for row in found} > set(ids)
    assert [row["workspace"] for row in linked] == ["there"]
