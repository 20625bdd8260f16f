import asyncio
import time
from collections.abc import Sequence
from uuid import UUID

import pytest

from lamina.core.ports import Change
from lamina.projections.indexer import LOOK_S, Follower, flush_due, is_for
from lamina.stores.postgres.outbox import Batch
from tests.support.virtual_time import in_virtual_time


class MemoryOutbox:
    """An outbox of versions: what was enqueued, and each memory's present version."""

    def __init__(self) -> None:
        self.rows: dict[int, UUID] = {}
        self.versions: dict[UUID, int] = {}
        self.reads = 0

    def write(self, number: int, version: int) -> None:
        self.rows[len(self.rows) + 1] = UUID(int=number)
        self.versions[UUID(int=number)] = version

    async def take(self, name: str, limit: int, applied: Sequence[int]) -> Batch:
        self.reads += 1
        seqs = [seq for seq in self.rows if seq not in applied][:limit]
        return Batch(seqs, [self.rows[seq] for seq in seqs])

    async def changes(self, name: str, ids: Sequence[UUID], seqs: Sequence[int]) -> list[Change]:
        return [Change(id_, self.versions[id_]) for id_ in dict.fromkeys(ids)]  # type: ignore[arg-type]

    async def finish(self, seqs: Sequence[int]) -> None:
        for seq in seqs:
            del self.rows[seq]


class MemoryProjection:
    """Keeps what it is given, and fails as often as it is told to."""

    def __init__(self, *, failures: int = 0, lost: int = 0) -> None:
        self.failures = failures
        self.lost = lost
        self.visible: dict[UUID, object] = {}
        self.durable: dict[UUID, object] = {}
        self.flushes = 0

    async def apply(self, changes: Sequence[Change]) -> None:
        await asyncio.sleep(0)
        if self.failures:
            self.failures -= 1
            raise OSError("disk on fire")
        self.visible |= {change.id: change.record for change in changes}

    async def flush(self) -> None:
        self.flushes += 1
        if self.lost:
            self.lost -= 1
            self.visible = {}
            raise OSError("no space left on device")
        self.durable = dict(self.visible)


class NoBuilds:
    """Nothing is being built anew."""

    async def full(self, name: str) -> int | None:
        return None


def follower(outbox: MemoryOutbox, projection: MemoryProjection, flush_interval_s: float = 0.05) -> Follower:
    return Follower("notes", outbox, NoBuilds(), projection, batch_size=2, flush_interval_s=flush_interval_s)  # type: ignore[arg-type]


async def until(condition: object) -> None:
    assert callable(condition)
    for _ in range(3_000):
        if condition():
            return
        await asyncio.sleep(0.01)
    pytest.fail("it never happened")


@pytest.mark.parametrize(
    ("applied_at", "flush_s", "due"),
    [(10.0, 0.01, 10.5), (10.3, 0.01, 10.5), (10.3, 0.03, 10.6), (10.9, 0.07, 11.4), (13.0, 0.07, 11.4), (99, 9, 11.5)],
)
def test_a_flush_waits_for_a_pause_and_takes_a_twentieth_of_the_time(
    applied_at: float, flush_s: float, due: float
) -> None:
    assert flush_due(10.0, applied_at, interval_s=0.5, flush_s=flush_s) == pytest.approx(due)


@in_virtual_time
async def test_a_change_is_visible_before_it_is_flushed_and_leaves_the_outbox_after() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    outbox.write(1, version=1)
    task = asyncio.create_task(follower(outbox, projection).run())

    await until(lambda: projection.visible)
    waiting = dict(outbox.rows)
    await until(lambda: not outbox.rows)
    task.cancel()

    assert waiting
    assert projection.durable == {UUID(int=1): 1}


@in_virtual_time
async def test_changes_that_come_close_together_share_a_flush() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    following = follower(outbox, projection, flush_interval_s=1)
    task = asyncio.create_task(following.run())

    for number in range(1, 8):
        outbox.write(number, version=1)
        following.wake.set()
        await asyncio.sleep(0)
    await until(lambda: not outbox.rows)
    task.cancel()

    assert len(projection.durable) == 7
    assert projection.flushes == 1


@in_virtual_time
async def test_after_failures_the_last_version_stands() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection(failures=2)
    outbox.write(1, version=1)
    following = follower(outbox, projection)
    task = asyncio.create_task(following.run())

    await asyncio.sleep(0.02)
    outbox.write(1, version=2)
    following.wake.set()
    await until(lambda: not outbox.rows)
    task.cancel()

    assert projection.durable == {UUID(int=1): 2}


@in_virtual_time
async def test_changes_that_a_failed_flush_lost_are_applied_again() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection(lost=1)
    outbox.write(1, version=1)
    task = asyncio.create_task(follower(outbox, projection).run())

    await until(lambda: not outbox.rows)
    task.cancel()

    assert projection.durable == {UUID(int=1): 1}


@in_virtual_time
async def test_two_drains_at_once_apply_one_after_the_other() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    for number in range(1, 6):
        outbox.write(number, version=1)
    following = follower(outbox, projection)

    counts = await asyncio.gather(following.drain(), following.drain())

    assert sorted(counts) == [0, 5]
    assert outbox.rows == {}


@pytest.mark.parametrize("steps", [0, 1, 2, 3])
@in_virtual_time
async def test_a_follower_that_is_told_to_end_while_it_gathers_ends_even_if_a_change_comes_with_it(steps: int) -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    outbox.write(1, version=1)
    following = Follower("notes", outbox, NoBuilds(), projection, batch_size=10, flush_interval_s=30)  # type: ignore[arg-type]
    task = asyncio.create_task(following.run())
    await until(lambda: projection.visible)
    await asyncio.sleep(0.01)

    following.wake.set()
    for _ in range(steps):  # At one of them the waiter has its answer and has not read it.
        await asyncio.sleep(0)
    task.cancel()
    done, _ = await asyncio.wait([task], timeout=30)

    assert done == {task}
    assert task.cancelled()


@in_virtual_time
async def test_a_follower_that_every_write_wakes_looks_for_builds_once_a_while() -> None:
    class Counted(NoBuilds):
        looks = 0

        async def full(self, name: str) -> int | None:
            self.looks += 1
            return None

    builds = Counted()
    following = Follower("notes", MemoryOutbox(), builds, MemoryProjection(), batch_size=10, flush_interval_s=0.01)  # type: ignore[arg-type]
    task, began = asyncio.create_task(following.run()), time.monotonic()
    for _ in range(50):
        following.wake.set()
        await asyncio.sleep(0.001)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)

    assert 1 <= builds.looks <= 1 + (time.monotonic() - began) / LOOK_S


@in_virtual_time
async def test_changes_that_come_one_after_the_other_are_applied_together() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    following = Follower("notes", outbox, NoBuilds(), projection, batch_size=100, flush_interval_s=30)  # type: ignore[arg-type]
    task = asyncio.create_task(following.run())

    for number in range(1, 41):
        outbox.write(number, version=1)
        following.wake.set()
        await asyncio.sleep(0)
    await until(lambda: len(projection.visible) == 40)
    task.cancel()

    assert outbox.reads <= 10


@in_virtual_time
async def test_more_than_a_batch_is_applied_batch_by_batch() -> None:
    outbox, projection = MemoryOutbox(), MemoryProjection()
    for number in range(1, 8):
        outbox.write(number, version=1)

    assert await follower(outbox, projection).drain() == 7
    assert len(projection.durable) == 7


@pytest.mark.parametrize(
    ("payloads", "is_concerned"),
    [
        (["graph,messages"], False),
        (["graph,notes"], True),
        (["graph", "notes"], True),
        (["graph", ""], True),  # An earlier release names none.
        ([], True),
        (["notes_of_another_release"], False),
    ],
)
def test_a_notification_wakes_the_projections_that_it_names(payloads: list[str], is_concerned: bool) -> None:
    assert is_for("notes", payloads) is is_concerned
