"""The graph agrees with Postgres after what changes it by the way: notes that come back, entities seen earlier."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import numpy as np
import pytest

from lamina.core.memories import Entity, Note
from lamina.core.ports import Inventory
from lamina.core.scope import Scope
from lamina.maintenance.row_writer import RowWriter
from lamina.models.hashing import HashingModel
from lamina.projections.audit import Drift, audit
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.stores.postgres.entities import PreparedEntity, put_entities
from lamina.stores.postgres.job_changes import RowChange
from lamina.stores.postgres.outbox import Outbox
from tests.integration.test_dedup_job import AGAIN, PLAIN, write_apart
from tests.support.application import Application, running, settings_for
from tests.support.jobs import rows_of, run_job, undo_run


def graph_of(app: Application) -> Inventory:
    return cast("Inventory", app.tiers["graph"].projections["graph"])


async def drift_of(app: Application) -> Drift:
    """Apply what is pending, and compare the graph with Postgres."""
    await app.indexed()
    return await audit(Outbox(app.pool), "graph", graph_of(app), app.tenant)


async def links_of(app: Application) -> set[tuple[str, str]]:
    """Return which note Postgres links to which."""
    async with rows_of(app, "memory_links") as rows:
        return {(str(row["from_id"]), str(row["to_id"])) for row in rows if row["kind"] == "similar"}


NEIGHBOURS = [f"The red boat number {number} lies in the old harbour of the town" for number in range(6)]


@pytest.mark.parametrize(
    ("most", "least", "links"), [(3, 0.5, 3), (1, 0.5, 1), (0, 0.5, 0), (5, -1.0, 5), (3, 0.999, 0)]
)
async def test_a_new_note_is_linked_to_as_many_of_its_nearest_as_the_settings_say(
    database: str, tmp_path: Path, most: int, least: float, links: int
) -> None:
    write = {"key_cache_s": 0, "similar_links": most, "similar_min": least, "near_duplicate": 1}
    settings = settings_for(database, tmp_path, write=write)
    async with running(settings, database, HashingModel(), follow=False) as app:
        for text in NEIGHBOURS:
            last = (await app.client().post("/v1/notes", json={"content": text})).json()["id"]
        found = await links_of(app)

    assert len({to_id for from_id, to_id in found if from_id == last}) == links


async def change(app: Application, id_: str, **after: Any) -> None:
    async def act(connection: Connection) -> None:
        writer = RowWriter(connection, None, datetime.now(UTC))
        await writer.change("notes", [RowChange(UUID(id_), after)], tenant=app.tenant)

    await in_transaction(app.pool, act)


async def test_the_links_to_a_merged_note_are_away_with_it_and_back_after_the_undo(application: Application) -> None:
    old, new, _ = await write_apart(application, PLAIN, AGAIN, "something else")
    await application.indexed()
    before = await graph_of(application).inventory(application.tenant)

    run = await run_job(application, "dedup", is_forced=True)
    merged = await drift_of(application)
    await undo_run(application, run)
    undone = await drift_of(application)

    assert (new, old) in await links_of(application)
    assert run.counts.removed == 1
    assert (merged.ids(), merged.found) == ((), len(before) - 1)
    assert undone.ids() == ()
    assert await graph_of(application).inventory(application.tenant) == before


async def test_what_comes_back_because_its_derived_note_goes_is_linked_to_again(application: Application) -> None:
    old, new, source, derived = await write_apart(application, PLAIN, AGAIN, "something else", "made of that")
    async with application.pool.connection() as connection:
        await connection.execute("INSERT INTO note_sources (note_id, source_id) VALUES (%s, %s)", [derived, source])
    await change(application, old, deleted_at=datetime.now(UTC), merged_into=derived)
    merged = await drift_of(application)

    deleted = await application.client().delete(f"/v1/notes/{source}")
    released = await drift_of(application)

    assert deleted.is_success
    assert (new, old) in await links_of(application)
    assert (await application.client().get(f"/v1/notes/{old}")).is_success
    assert [one.ids() for one in (merged, released)] == [(), ()]


async def test_an_entity_that_was_seen_earlier_than_known_is_seen_then_in_the_graph_too(
    application: Application,
) -> None:
    scope, notes = Scope(application.tenant), application.services.recorder

    drifts = []
    for year, text in ((2026, "Alice Smith visited Paris."), (2020, "Some day Alice Smith slept in Paris.")):
        await notes.put_notes(scope, [Note(text, event_at=datetime(year, 1, 1, tzinfo=UTC))])
        drifts.append(await drift_of(application))

    async with rows_of(application, "entities") as entities:
        assert {row["first_seen_at"].year for row in entities} == {2020}
    assert [one.ids() for one in drifts] == [(), ()]


async def test_only_what_is_seen_earlier_than_known_is_taken_over_again(application: Application) -> None:
    scope, vector = Scope(application.tenant), np.eye(1, 384, dtype=np.float32).tobytes()

    async def see(year: int) -> bool:
        seen = PreparedEntity(Entity("Alice"), vector, datetime(year, 1, 1, tzinfo=UTC))
        put = await in_transaction(application.pool, lambda connection: put_entities(connection, scope, [seen], 1))
        return put["alice"].is_earlier

    assert [await see(year) for year in (2024, 2026, 2024, 2020)] == [True, False, False, True]
