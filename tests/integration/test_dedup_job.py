"""The merge of near-duplicates over a real Postgres (field cases 5, 6 and 64)."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from lamina.core.areas import Area
from lamina.core.runs import Order, RunState
from lamina.maintenance.dedup import DedupJob
from tests.support.application import Application
from tests.support.jobs import driver_of, run_job, undo_run

PLAIN = "the harbour master asked us to move the green boat to the northern pier before the storm comes in"
AGAIN = "The harbour master asked us to move the green boat to the northern pier, before the storm comes in!"


async def add(app: Application, *contents: str, **fields: Any) -> list[str]:
    ids = []
    for content in contents:
        answer = await app.client().post("/v1/notes", json={"content": content, **fields})
        assert answer.status_code in {200, 201}, answer.text
        ids.append(answer.json()["id"])
    return ids


async def texts(app: Application, **params: str) -> list[str]:
    found = (await app.client().get("/v1/notes", params={"limit": 500, **params})).json()["notes"]
    return [note["content"] for note in found]


@pytest.fixture
async def unmerged(without_vectors: Application) -> Application:
    """An application whose writes merge nothing themselves."""
    return without_vectors


async def write_apart(app: Application, *contents: str, **fields: Any) -> list[str]:
    """Write notes that a write would merge: the first words keep them apart, and go by an update."""
    ids = await add(app, *(f"{number} {content}" for number, content in enumerate(contents)), **fields)
    async with app.pool.connection() as connection:
        for id_, content in zip(ids, contents, strict=True):
            await connection.execute("UPDATE notes SET content = %s WHERE id = %s", [content, UUID(id_)])
    return ids


async def test_the_newest_of_two_notes_that_say_the_same_survives_with_the_hits_of_both(
    application: Application,
) -> None:
    old, new, _ = await write_apart(application, PLAIN, AGAIN, "something else", tags=["boat"])
    held = await run_job(application, "dedup")
    run = await run_job(application, "dedup", is_forced=True)
    survivor = (await application.client().get(f"/v1/notes/{new}")).json()
    merged = await application.client().get(f"/v1/notes/{old}")

    assert (held.state, held.counts.changed) == (RunState.STOPPED, 0)
    assert [(one.size, one.removals) for one in held.held] == [(3, 1)]
    assert (run.counts.removed, run.counts.changed) == (1, 2)
    assert await texts(application) == ["something else", AGAIN]
    assert survivor["hits"] == 2
    assert merged.status_code == 404

    undone = await undo_run(application, run)

    assert undone.changed == 2
    assert sorted(await texts(application)) == sorted([PLAIN, AGAIN, "something else"])
    assert (await application.client().get(f"/v1/notes/{new}")).json()["hits"] == 1


async def test_a_pinned_note_is_not_merged_into_another(application: Application) -> None:
    old, new, _ = await write_apart(application, PLAIN, AGAIN, PLAIN + " ", tags=["boat"])
    assert (await application.client().put(f"/v1/memories/{old}/pin")).is_success

    run = await run_job(application, "dedup", is_forced=True)

    assert run.counts.removed == 1
    assert (await application.client().get(f"/v1/notes/{old}")).status_code == 200
    assert (await application.client().get(f"/v1/memories/{old}/feedback")).json()["pinned_at"] is not None
    assert (await application.client().get(f"/v1/notes/{new}")).status_code == 404


async def test_a_note_that_is_pinned_while_it_is_decided_upon_stays(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, new = await write_apart(application, PLAIN, AGAIN, tags=["boat"])
    decide = DedupJob.decide

    async def decide_and_pin(*given: Any) -> Any:
        page = await decide(*given)
        assert (await application.client().put(f"/v1/memories/{old}/pin")).is_success
        return page

    monkeypatch.setattr(DedupJob, "decide", decide_and_pin)
    run = await run_job(application, "dedup", is_forced=True)

    assert (run.counts.planned > 0, run.counts.removed) == (True, 0)
    assert [(await application.client().get(f"/v1/notes/{id_}")).status_code for id_ in (old, new)] == [200, 200]


async def test_what_differs_in_a_number_a_negation_or_a_name_is_kept_and_nothing_is_chained(
    application: Application,
) -> None:
    contents = [
        "Budget is 1,500 EUR", "Budget is 15,000 EUR", "eats nuts", "does not eat nuts", "lives in Graz",
        "lives in Linz", "vegetarian, plays basketball", "vegetarian", "plays basketball on Tuesdays",
    ]  # fmt: skip
    await write_apart(application, *contents)

    run = await run_job(application, "dedup", is_forced=True)

    assert run.counts.planned == 0
    assert sorted(await texts(application)) == sorted(contents)


async def test_a_second_run_merges_nothing_and_another_workspace_is_left_alone(application: Application) -> None:
    for workspace in ("mine", "other"):
        await write_apart(application, PLAIN, AGAIN, *(f"fill {n}" for n in range(8)), workspace=workspace)
    first = await run_job(application, "dedup", workspace="mine")
    second = await run_job(application, "dedup", workspace="mine")

    assert (first.counts.removed, second.counts.planned) == (1, 0)
    assert len(await texts(application, workspace="other")) == 10


async def test_a_note_that_is_found_while_it_is_decided_upon_is_merged_by_the_next_run(
    application: Application,
) -> None:
    from datetime import UTC, datetime, timedelta

    from lamina.core.areas import Area
    from lamina.maintenance.dedup import DedupJob
    from lamina.maintenance.row_writer import RowWriter
    from lamina.stores.postgres.connection import in_transaction

    old, _ = await write_apart(application, PLAIN, AGAIN)
    job = DedupJob(application.pool, min_jaccard=0.85, window=timedelta(days=30))
    area = Area(application.tenant, "default", "default")
    page = await job.decide(area, None, datetime.now(UTC))
    async with application.pool.connection() as connection:
        await connection.execute("UPDATE notes SET hits = hits + 5 WHERE id = %s", [UUID(old)])

    assert page.plan is not None
    plan = page.plan
    counts = await in_transaction(
        application.pool, lambda connection: job.act(RowWriter(connection, None, datetime.now(UTC)), area, plan)
    )
    assert counts.changed == 0
    assert (await run_job(application, "dedup", is_forced=True)).counts.removed == 1


async def test_pages_smaller_than_the_scope_merge_the_same(application: Application) -> None:
    contents = [f"{PLAIN} on trip{number}" for number in range(6)]
    await write_apart(application, *[text for content in contents for text in (content, content + "!")])
    job = DedupJob(application.pool, min_jaccard=0.85, window=timedelta(days=30), page_notes=5)
    order = Order("dedup", Area(application.tenant), datetime.now(UTC), is_forced=True)
    run = await driver_of(application, "dedup", job).start(order)

    assert run.counts.removed == 6
    assert sorted(await texts(application)) == sorted(content + "!" for content in contents)


async def test_a_removal_counts_once_in_a_scope_of_several_pages(application: Application) -> None:
    others = [
        f"{one} {two} {one}{two}"
        for one in ("amber", "birch", "cedar", "delta", "ember")
        for two in ("anchor", "beacon", "compass", "dinghy")
    ]
    # Each page has one of the five that say the same: the newest absorbs four of 25 notes, 16 %.
    contents = [text for place in range(5) for text in (PLAIN + "!" * place, *others[4 * place : 4 * place + 4])]
    await write_apart(application, *contents)
    job = DedupJob(application.pool, min_jaccard=0.85, window=timedelta(days=30), page_notes=5)

    run = await driver_of(application, "dedup", job).start(Order("dedup", Area(application.tenant), datetime.now(UTC)))

    assert application.settings.jobs.most_removed == 0.2
    assert (run.state, run.counts.removed, run.held) == (RunState.DONE, 4, ())
    assert len(await texts(application)) == 21
