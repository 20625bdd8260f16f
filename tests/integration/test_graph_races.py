"""Writers that meet: each test lets one transaction wait for the other, in the order that once went wrong."""

import asyncio
from collections.abc import AsyncIterator, Coroutine
from datetime import UTC, datetime
from typing import Any, TypeVar
from uuid import UUID

import numpy as np
import pytest
from psycopg import AsyncConnection

from lamina.core.links import LinkKind
from lamina.core.memories import Chunk, Edge, Entity, Note, new_id
from lamina.core.scope import Scope
from lamina.core.tiers import Tier
from lamina.errors import NotFound
from lamina.models.hashing import HashingModel
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres import notes as note_store
from lamina.stores.postgres.connection import Connection, Pool, in_transaction, new_pool
from lamina.stores.postgres.entities import Evidence, PreparedEntity, put_edges, put_entities
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.links import Mention, find_unlinked, put_mentions, remove_from_graph
from lamina.stores.postgres.notes import PreparedNote, delete_note, derive_notes, insert_notes, prepare_note

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
SCOPE = Scope("acme", "desk")
VECTOR = np.eye(1, 384, dtype=np.float32).tobytes()
Result = TypeVar("Result")


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    claim_generation(database, HashingModel().identity)
    async with new_pool(database, PoolSettings(min_size=0, max_size=8, timeout_s=60)) as opened:
        yield opened


def entity(name: str) -> PreparedEntity:
    return PreparedEntity(Entity(name), VECTOR, NOON)


def mention(memory: UUID, of: UUID, source: str = "book") -> Mention:
    return Mention(memory, Tier.NOTES, of, LinkKind.MENTIONS, source, None, NOON)


def evidence(memory: UUID, source: str, confidence: float) -> Evidence:
    return Evidence(Edge("ann", "knows", "bob", confidence=confidence), source, memory, None, NOON)


def note(content: str, *derived_from: UUID) -> PreparedNote:
    chunks = (Chunk(0, len(content), VECTOR),)
    return prepare_note(new_id(), Note(content, derived_from=derived_from), chunks)


async def put_notes(connection: Connection, *notes: PreparedNote) -> None:
    await insert_notes(connection, SCOPE, notes, 1, NOON)
    await derive_notes(connection, SCOPE, notes)


async def put_all(pool: Pool, *notes: PreparedNote) -> None:
    async with pool.connection() as connection, connection.transaction():
        await put_notes(connection, *notes)


async def ids_of(connection: Connection, *names: str) -> dict[str, UUID]:
    return {key: put.id for key, put in (await put_entities(connection, SCOPE, [*map(entity, names)], 1)).items()}


async def rows(pool: Pool, query: str) -> list[dict[str, Any]]:
    async with pool.connection() as connection:
        return await (await connection.execute(query.encode())).fetchall()


async def started(
    pool: Pool, waiting: AsyncConnection[Any], act: Coroutine[Any, Any, Result]
) -> "asyncio.Task[Result]":
    """Start what must wait for another transaction; return when it does, or when it did not need to."""
    task = asyncio.create_task(act)
    async with asyncio.timeout(60), pool.connection() as watching:
        while not task.done():
            cursor = await watching.execute(
                "SELECT cardinality(pg_blocking_pids(%s)) > 0 AS waits", (waiting.info.backend_pid,)
            )
            row = await cursor.fetchone()
            if row and row["waits"]:
                break
    return task


@pytest.mark.parametrize("is_put_again", [True, False])
async def test_an_entity_that_is_mentioned_again_while_its_last_mention_goes_stays(
    pool: Pool, *, is_put_again: bool
) -> None:
    first, second = new_id(), new_id()
    async with pool.connection() as setup, setup.transaction():
        ann = (await ids_of(setup, "ann"))["ann"]
        await put_mentions(setup, SCOPE, [mention(first, ann)])

    async with pool.connection() as writer, pool.connection() as deleter, deleter.transaction():
        async with writer.transaction():
            if is_put_again:
                await ids_of(writer, "ann")
            await put_mentions(writer, SCOPE, [mention(second, ann)])
            task = await started(pool, deleter, remove_from_graph(deleter, [first]))
        await task

    assert await rows(pool, "SELECT id FROM entities") == [{"id": ann}]
    assert await rows(pool, "SELECT from_id FROM memory_links") == [{"from_id": second}]


async def test_an_entity_that_went_meanwhile_is_not_linked(pool: Pool) -> None:
    first, second = new_id(), new_id()
    async with pool.connection() as setup, setup.transaction():
        ids = await ids_of(setup, "ann", "bob")
        await put_mentions(setup, SCOPE, [mention(first, ids["ann"])])

    async with pool.connection() as writer, pool.connection() as deleter, writer.transaction():
        async with deleter.transaction():
            await remove_from_graph(deleter, [first])
            both = [mention(second, ids["ann"]), mention(second, ids["bob"])]
            task = await started(pool, writer, put_mentions(writer, SCOPE, both))
        await task

    assert await rows(pool, "SELECT to_id FROM memory_links") == [{"to_id": ids["bob"]}]


async def test_an_edge_that_finds_new_evidence_while_its_last_goes_stays_and_is_as_sure_as_that(pool: Pool) -> None:
    first, second = new_id(), new_id()
    async with pool.connection() as setup, setup.transaction():
        ids = await ids_of(setup, "ann", "bob")
        await put_edges(setup, SCOPE, [evidence(first, "book", 0.9)], ids)

    async with pool.connection() as writer, pool.connection() as deleter, deleter.transaction():
        async with writer.transaction():
            await put_edges(writer, SCOPE, [evidence(second, "letter", 0.4)], ids)
            task = await started(pool, deleter, remove_from_graph(deleter, [first]))
        await task

    edges = await rows(pool, "SELECT confidence FROM edges")
    assert [edge["confidence"] for edge in edges] == [pytest.approx(0.4)]
    assert len(await rows(pool, "SELECT id FROM entities")) == 2


async def test_an_edge_stays_for_a_writer_that_locks_nothing_but_the_edge(pool: Pool) -> None:
    first = new_id()
    async with pool.connection() as setup, setup.transaction():
        await put_edges(setup, SCOPE, [evidence(first, "book", 0.9)], await ids_of(setup, "ann", "bob"))
    more = b"INSERT INTO edge_evidence SELECT id, 'letter', NULL, NULL, 0.5, 0.4, now() FROM edges"

    async with pool.connection() as writer, pool.connection() as deleter, deleter.transaction():
        async with writer.transaction():
            await writer.execute(more)
            task = await started(pool, deleter, remove_from_graph(deleter, [first]))
        await task

    edges = await rows(pool, "SELECT strength, confidence FROM edges")
    assert edges == [{"strength": 0.5, "confidence": pytest.approx(0.4)}]


async def test_a_summary_that_is_stored_while_its_source_goes_goes_too(pool: Pool) -> None:
    source = note("a fact")
    await put_all(pool, source)
    summary = note("in short", source.id)

    async with pool.connection() as writer, pool.connection() as deleter, deleter.transaction():
        async with writer.transaction():
            await put_notes(writer, summary)
            task = await started(pool, deleter, delete_note(deleter, "acme", source.id, NOON))
        scope, deletion = await task

    assert (scope.workspace, deletion.deleted) == ("desk", tuple(sorted([source.id, summary.id])))
    assert await rows(pool, "SELECT id FROM notes WHERE deleted_at IS NULL") == []


async def test_what_is_made_from_a_summary_while_its_source_goes_goes_too(pool: Pool) -> None:
    source = note("a fact")
    summary = note("in short", source.id)
    await put_all(pool, source)
    await put_all(pool, summary)

    async with pool.connection() as writer, pool.connection() as deleter, deleter.transaction():
        async with writer.transaction():
            await put_notes(writer, note("the headline", summary.id))
            task = await started(pool, deleter, delete_note(deleter, "acme", source.id, NOON))
        await task

    assert await rows(pool, "SELECT id FROM notes WHERE deleted_at IS NULL") == []


async def test_the_later_of_two_deletions_of_one_note_finds_it_gone(pool: Pool) -> None:
    source = note("a fact")
    await put_all(pool, source)

    async with pool.connection() as first, pool.connection() as second, second.transaction():
        async with first.transaction():
            await delete_note(first, "acme", source.id, NOON)
            task = await started(pool, second, delete_note(second, "acme", source.id, NOON))
        with pytest.raises(NotFound):
            await task


async def test_a_note_that_goes_meanwhile_is_not_linked_to_a_newer_entity(pool: Pool) -> None:
    kept, gone = note("ann is here"), note("ann was there")
    await put_all(pool, kept, gone)

    async with pool.connection() as writer, pool.connection() as deleter, writer.transaction():
        async with deleter.transaction():
            await delete_note(deleter, "acme", gone.id, NOON)
            task = await started(pool, writer, find_unlinked(writer, SCOPE, ["ann"], 50))
        found = await task

    assert [item.id for item in found] == [kept.id]


async def test_a_note_whose_equal_is_deleted_while_it_is_written_is_stored_anew(
    pool: Pool, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, again = note("green tea"), note("green tea")
    await put_all(pool, first)
    find = note_store.ids_by_hash

    async def delete_and_find(*given: Any) -> dict[bytes, UUID]:
        monkeypatch.undo()
        async with pool.connection() as deleter, deleter.transaction():
            await delete_note(deleter, SCOPE.tenant, first.id, NOON)
        return await find(*given)

    monkeypatch.setattr(note_store, "ids_by_hash", delete_and_find)
    [put] = await in_transaction(pool, lambda writer: insert_notes(writer, SCOPE, [again], 1, NOON))

    assert (put.id, put.existed) == (again.id, False)
