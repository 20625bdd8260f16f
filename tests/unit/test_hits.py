import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lamina.aio import write_behind
from lamina.core.ports import NoteHits
from lamina.ingest.hits import HitBuffer, HitCounter, one_hit_each
from tests.support.tasks import tasks_of
from tests.support.virtual_time import in_virtual_time

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ONE, TWO, THREE = (UUID(int=number) for number in (1, 2, 3))
NEVER_S = 3600.0
SOON_S = 0.02


class MemoryHits:
    """Keeps what it is given, and fails or hangs as it is told to."""

    def __init__(self, *, failures: int = 0, hangs: bool = False) -> None:
        self.failures = failures
        self.hangs = hangs
        self.written: list[list[NoteHits]] = []

    async def count(self, hits: Sequence[NoteHits]) -> Sequence[UUID]:
        await asyncio.sleep(NEVER_S if self.hangs else 0)
        if self.failures:
            self.failures -= 1
            raise OSError("disk on fire")
        self.written.append(list(hits))
        return []

    def totals(self) -> dict[UUID, int]:
        ids = {item.id for batch in self.written for item in batch}
        return {id_: sum(item.hits for batch in self.written for item in batch if item.id == id_) for id_ in ids}


def counter(store: MemoryHits, *, flush_interval_s: float = NEVER_S, max_notes: int = 1_000) -> HitCounter:
    return HitCounter(store, lambda: NOON, flush_interval_s=flush_interval_s, max_notes=max_notes)


async def until(store: MemoryHits, totals: dict[UUID, int]) -> None:
    for _ in range(500):
        if store.totals() == totals:
            return
        await asyncio.sleep(SOON_S)
    pytest.fail(f"written: {store.written}")


@in_virtual_time
async def test_hits_of_many_searches_are_written_together() -> None:
    store = MemoryHits()
    hits = counter(store)
    for _ in range(50):
        await hits.add([ONE, TWO])

    await hits.flush()

    assert store.written == [[NoteHits(ONE, 50, NOON, NOON), NoteHits(TWO, 50, NOON, NOON)]]
    await hits.close()


@in_virtual_time
async def test_a_note_that_an_answer_names_twice_is_hit_once() -> None:
    store = MemoryHits()
    hits = counter(store)
    await hits.add([ONE, ONE])

    await hits.flush()

    assert store.totals() == {ONE: 1}
    await hits.close()


@in_virtual_time
async def test_hits_are_written_by_themselves_after_a_while() -> None:
    store = MemoryHits()
    hits = counter(store, flush_interval_s=SOON_S)

    await hits.add([ONE])
    await until(store, {ONE: 1})
    await hits.add([ONE])
    await until(store, {ONE: 2})

    await hits.close()


@in_virtual_time
async def test_very_many_hits_are_written_without_waiting() -> None:
    store = MemoryHits()
    hits = counter(store, max_notes=2)

    await hits.add([ONE, TWO, THREE])

    await until(store, {ONE: 1, TWO: 1, THREE: 1})
    assert [len(batch) for batch in store.written] == [2, 1]
    await hits.close()


@in_virtual_time
async def test_a_store_that_hangs_holds_up_nobody_who_adds() -> None:
    store = MemoryHits(hangs=True)
    hits = counter(store, max_notes=1)
    await hits.add([ONE])
    await asyncio.sleep(SOON_S)

    await asyncio.wait_for(hits.add([TWO]), 60)

    store.hangs = False
    await hits.close()
    assert store.totals() == {ONE: 1, TWO: 1}


@in_virtual_time
async def test_hits_that_cannot_be_written_are_kept_and_tried_again() -> None:
    store = MemoryHits(failures=2)
    hits = counter(store, flush_interval_s=SOON_S)

    await hits.add([ONE])
    await hits.add([ONE, TWO])

    await until(store, {ONE: 2, TWO: 1})
    await hits.close()


@in_virtual_time
async def test_what_is_left_is_written_at_the_end() -> None:
    store = MemoryHits()
    hits = counter(store)
    await hits.add([ONE])

    await hits.close()

    assert store.totals() == {ONE: 1}


@in_virtual_time
async def test_ending_without_a_store_raises_nothing() -> None:
    hits = counter(MemoryHits(failures=1))
    await hits.add([ONE])

    await hits.close()


@in_virtual_time
async def test_no_task_runs_where_nothing_was_hit() -> None:
    before = tasks_of(write_behind)
    hits = counter(MemoryHits())

    await hits.add([])

    assert tasks_of(write_behind) == before
    await hits.close()


def test_a_full_buffer_drops_further_notes_and_says_so() -> None:
    buffer = HitBuffer(capacity=2)

    buffer.add(one_hit_each([ONE, TWO, THREE], NOON))
    buffer.add(one_hit_each([ONE, THREE], NOON))

    assert buffer.dropped == 2
    assert {item.id: item.hits for item in buffer.take(10)} == {ONE: 2, TWO: 1}


@given(st.lists(st.tuples(st.integers(1, 3), st.integers(0, 1_000)), max_size=30))
def test_the_order_of_hits_changes_nothing(hits: list[tuple[int, int]]) -> None:
    singles = [one_hit_each([UUID(int=number)], NOON + timedelta(seconds=second)) for number, second in hits]
    forwards, backwards = HitBuffer(), HitBuffer()

    for single in singles:
        forwards.add(single)
    for single in reversed(singles):
        backwards.add(single)

    taken = forwards.take(10)
    assert sorted(taken, key=lambda item: item.id) == sorted(backwards.take(10), key=lambda item: item.id)
    assert sum(item.hits for item in taken) == len(hits)
    assert all(item.first_at <= item.last_at for item in taken)
    assert len(forwards) == 0
