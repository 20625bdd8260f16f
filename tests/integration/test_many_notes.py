from collections.abc import AsyncIterator
from datetime import UTC, datetime

import numpy as np
import pytest

from lamina.core.memories import Chunk, Note, new_id
from lamina.core.scope import Scope
from lamina.models.hashing import HashingModel
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres import note_duplicates
from lamina.stores.postgres.connection import Pool, connect, in_transaction, new_pool
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.note_duplicates import MANY, put_notes
from lamina.stores.postgres.notes import NoteResult, PreparedNote

NOON = datetime(2026, 5, 1, 12, tzinfo=UTC)
ANN = Scope("acme", "desk", "default", user="ann")
THINGS = ["tea", "rice", "jazz", "chess", "rain", "bread", "plums", "snow", "trains", "maps"]


def note(text: str, direction: int, *, tilt: float = 0.0) -> PreparedNote:
    """A note whose vector lies along one axis, tilted a little to the next."""
    vector = np.zeros(384, dtype=np.float32)
    vector[direction], vector[direction + 1] = np.cos(tilt), np.sin(tilt)
    return PreparedNote(new_id(), Note(text), (Chunk(0, len(text), vector.tobytes()),), (text.casefold(),))


def likes(verb: str, *, tilt: float = 0.0, count: int = 2 * MANY) -> list[PreparedNote]:
    """As many notes, each of another thing."""
    things = [f"{THINGS[number % len(THINGS)]} {'abcdefgh'[number // len(THINGS)]}" for number in range(count)]
    return [note(f"I {verb} {thing}.", 2 * place, tilt=tilt) for place, thing in enumerate(things)]


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    claim_generation(database, HashingModel().identity)
    async with new_pool(database, PoolSettings(min_size=0, max_size=2, timeout_s=60)) as opened:
        yield opened


async def put(pool: Pool, scope: Scope, notes: list[PreparedNote]) -> list[NoteResult]:
    return await in_transaction(pool, lambda connection: put_notes(connection, scope, notes, 1, NOON, min_cosine=0.92))


@pytest.mark.parametrize("most", [5_000, 0])
async def test_many_notes_find_what_they_repeat_whether_all_is_read_or_the_index_asked(
    pool: Pool, monkeypatch: pytest.MonkeyPatch, most: int
) -> None:
    monkeypatch.setattr(note_duplicates, "MOST_READ", most)
    first = await put(pool, ANN, likes("like"))

    again = await put(pool, ANN, likes("enjoy", tilt=0.1))

    assert not any(result.existed for result in first)
    assert all(result.merged for result in again)
    assert [result.id for result in again] == [result.id for result in first]


async def test_many_notes_are_compared_with_those_of_exactly_their_user(pool: Pool) -> None:
    for scope in (ANN.narrowed(user="bob"), Scope("acme", "desk", "default"), Scope("other", "desk", user="ann")):
        await put(pool, scope, likes("like"))

    assert not any(result.existed for result in await put(pool, ANN, likes("enjoy", tilt=0.1)))


async def test_many_notes_are_stored_once_each_and_answered_in_their_order(pool: Pool) -> None:
    notes = likes("like")

    results = await put(pool, ANN, [*notes, note(notes[0].note.content, 0)])
    async with connect(pool) as connection:
        rows = await (await connection.execute("SELECT id, content FROM notes")).fetchall()

    assert [result.id for result in results] == [*(item.id for item in notes), notes[0].id]
    assert {row["id"]: row["content"] for row in rows} == {item.id: item.note.content for item in notes}
