"""Maintenance beside its users: field cases 11 (a delete while a row is worked on) and 64 (too much, and the undo)."""

from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lamina.core.areas import Area
from lamina.core.runs import JobName, RunState
from lamina.maintenance.job import Page
from lamina.maintenance.row_writer import RowWriter
from lamina.stores.postgres.connection import in_transaction
from lamina.stores.postgres.outbox import enqueue_notes
from lamina.wiring.jobs import build_job
from tests.support.application import Application
from tests.support.jobs import in_days, run_job, tools_of, undo_run

DAY = datetime(2026, 9, 7, 9, tzinfo=UTC)
SAME = "the harbour master asked us to move the green boat to the northern pier before the storm comes in"


async def write_alike(app: Application, count: int) -> list[str]:
    """Write notes that say the same, past the merge at write time."""
    client, ids = app.client(), []
    for number in range(count):
        moment = (DAY + timedelta(hours=number)).isoformat()
        answer = await client.post("/v1/notes", json={"content": f"{number} {SAME}", "event_at": moment})
        ids.append(answer.json()["id"])
    async with app.pool.connection() as connection:
        for number, id_ in enumerate(ids):
            text = SAME + "!" * number
            await connection.execute("UPDATE notes SET content = %s WHERE id = %s", [text, UUID(id_)])
        await enqueue_notes(connection, [UUID(id_) for id_ in ids])
    return ids


async def rows_in_every_table(app: Application, id_: str) -> dict[str, int]:
    """Return how often the note still is somewhere a reader could meet it."""
    counts = {
        "notes": "SELECT count(*) AS n FROM notes WHERE id = %s AND deleted_at IS NULL",
        "links": "SELECT count(*) AS n FROM memory_links WHERE from_id = %s",
        "evidence": "SELECT count(*) AS n FROM edge_evidence WHERE memory_id = %s",
    }
    found = {}
    async with app.pool.connection() as connection:
        for name, text in counts.items():
            row = await (await connection.execute(text.encode(), [UUID(id_)])).fetchone()
            found[name] = int(row["n"]) if row else 0
    return found


@pytest.mark.parametrize("name", ["sweep", "decay", "dedup", "summaries", "consolidation"])
async def test_what_is_deleted_while_a_job_works_on_it_stays_deleted_everywhere(
    application: Application, name: JobName
) -> None:
    ids = await write_alike(application, 4)
    job = build_job(application.settings, application.pool, name, tools_of(application))
    area, moment = Area(application.tenant, "default", "default"), in_days(20)
    page: Page[Any] = await job.decide(area, None, moment)
    while not page.planned and page.after is not None:
        page = await job.decide(area, page.after, moment)
    assert page.planned > 0

    for id_ in ids[:2]:
        assert (await application.client().delete(f"/v1/notes/{id_}")).status_code == 204
    act: Callable[[Any], Awaitable[Any]] = lambda connection: job.act(  # noqa: E731 - one call
        RowWriter(connection, None, moment), area, page.plan
    )
    await in_transaction(application.pool, act)
    # Before the search: its hits make cold notes warm a moment later, which the outbox then still has to apply.
    drift = await application.drift()
    found = (await application.client().post("/v1/search", json={"query": SAME, "limit": 50})).json()["results"]

    assert not {hit["id"] for hit in found} & set(ids[:2])
    for id_ in ids[:2]:
        assert (await application.client().get(f"/v1/notes/{id_}")).status_code == 404
        assert await rows_in_every_table(application, id_) == {"notes": 0, "links": 0, "evidence": 0}
    assert drift == {}


async def test_a_job_that_would_remove_most_of_a_scope_stops_and_says_so_and_an_undo_restores_what_it_did(
    application: Application,
) -> None:
    ids = await write_alike(application, 5)

    stopped = await run_job(application, "dedup")
    kept = (await application.client().get("/v1/notes")).json()["notes"]

    assert stopped.state is RunState.STOPPED
    assert [(held.size, held.removals) for held in stopped.held] == [(5, 4)]
    assert {note["id"] for note in kept} == set(ids)

    forced = await run_job(application, "dedup", is_forced=True)
    left = (await application.client().get("/v1/notes")).json()["notes"]
    await undo_run(application, forced)
    await application.indexed()
    restored = (await application.client().get("/v1/notes")).json()["notes"]
    found = (await application.client().post("/v1/search", json={"query": SAME, "limit": 50})).json()["results"]

    assert len(left) == 1
    assert sorted(restored, key=lambda note: str(note["id"])) == sorted(kept, key=lambda note: str(note["id"]))
    assert set(ids) <= {hit["id"] for hit in found}
