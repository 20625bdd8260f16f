"""What proves cached answers fresh, on a real Postgres under concurrency and trouble."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest

from lamina.core.memories import new_id
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.stamps import Remembered
from lamina.core.tiers import PROJECTIONS, Segment
from lamina.models.hashing import HashingModel
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.connection import Connection, Pool, in_transaction, new_pool
from lamina.stores.postgres.embedding_cache import CachedEmbedding, EmbeddingTable, text_key
from lamina.stores.postgres.epochs import bump_epoch
from lamina.stores.postgres.generations import claim_generation
from lamina.stores.postgres.outbox import enqueue, enqueue_all
from lamina.stores.postgres.shares import Shares
from lamina.stores.postgres.stamps import Stamps

HERE = Scope("acme", "here")
NOW = datetime.now(UTC)
WRITERS, WRITES = 8, 60


@pytest.fixture
async def pool(database: str) -> AsyncIterator[Pool]:
    made = new_pool(database, PoolSettings(min_size=0, max_size=12))
    yield made
    await made.close()


@pytest.fixture
def stamps(pool: Pool) -> Stamps:
    return Stamps(pool, PROJECTIONS, deadline_s=60)


async def written(pool: Pool, scope: Scope = HERE, projection: Any = "notes") -> int:
    """Write something that a projection has to take over, and return its place in the outbox."""

    async def act(connection: Connection) -> int:
        await enqueue(connection, projection, [new_id()])
        row = await (await connection.execute("SELECT max(seq) AS seq FROM outbox")).fetchone()
        await bump_epoch(connection, scope)
        return int(row["seq"]) if row else 0

    return await in_transaction(pool, act)


async def emptied(pool: Pool) -> None:
    async with pool.connection() as connection:
        await connection.execute("DELETE FROM outbox")


def share(workspace: str, **changes: Any) -> Share:
    return Share(new_id(), workspace, "default", "here", Segment.NOTES, (), "", NOW, **changes)


async def test_a_scope_is_settled_once_the_outbox_has_nothing_of_its_writes(pool: Pool, stamps: Stamps) -> None:
    empty = await stamps.read(HERE)
    await written(pool)
    lagging = await stamps.read(HERE)
    await emptied(pool)
    settled = await stamps.read(HERE)

    assert (empty.own(), empty.is_settled) == ((0, 0), True)
    assert (lagging.own(), lagging.is_settled) == ((1, 0), False)
    assert (settled.own(), settled.is_settled) == ((1, 0), True)


async def test_what_nobody_keeps_and_what_others_wrote_later_unsettle_nothing(pool: Pool) -> None:
    without_graph = Stamps(pool, ("notes", "messages"), deadline_s=60)
    await written(pool, projection="graph")
    await written(pool, Scope("globex", "there"))

    assert (await without_graph.read(HERE)).is_settled


async def test_a_sharing_workspace_that_lags_unsettles_those_that_see_it(pool: Pool, stamps: Stamps) -> None:
    await Shares(pool).put("acme", share("far"))
    await emptied(pool)
    before = await stamps.read(HERE)
    await written(pool, Scope("acme", "far"))
    lagging = await stamps.read(HERE)

    assert (before.is_settled, lagging.is_settled) == (True, False)
    assert before.whole(NOW) != lagging.whole(NOW)


async def test_where_the_outbox_stands_never_goes_back_however_many_write(pool: Pool, database: str) -> None:
    async def write() -> None:
        for _ in range(WRITES):
            seq = await written(pool)
            async with pool.connection() as connection:
                row = await (await connection.execute("SELECT outbox_seq FROM epochs")).fetchone()
            assert row is not None
            assert row["outbox_seq"] >= seq

    await asyncio.gather(*(write() for _ in range(WRITERS)))


async def test_a_projection_that_is_filled_anew_unsettles_everything(pool: Pool, stamps: Stamps, database: str) -> None:
    await written(pool)
    await emptied(pool)
    before = await stamps.read(HERE)
    await written(pool, Scope("acme", "other"))
    await emptied(pool)
    with psycopg.connect(database) as connection:
        connection.execute("INSERT INTO outbox (projection, memory_id) VALUES ('notes', gen_random_uuid())")
    enqueue_all(database, "notes")
    after = await stamps.read(HERE)

    assert (before.is_settled, after.is_settled) == (True, False)
    assert after.namespace == before.namespace + 1


async def test_shares_that_ended_long_ago_cost_nothing(pool: Pool, stamps: Stamps) -> None:
    shares = Shares(pool)
    for workspace in ("old", "new"):
        await shares.put("acme", share(workspace, expires_at=NOW + timedelta(days=1)))
    async with pool.connection() as connection:
        await connection.execute(
            "UPDATE shares SET expires_at = now() - interval '2 hours' WHERE from_workspace = 'old'"
        )

    assert [item.workspace for item in (await stamps.read(HERE)).shares()] == ["new"]


async def test_scopes_that_are_asked_for_together_get_their_own_stamps(pool: Pool, stamps: Stamps) -> None:
    scopes = [Scope("acme", f"w{number}") for number in range(20)]
    for number, scope in enumerate(scopes):
        for _ in range(number % 3):
            await written(pool, scope)

    found = await asyncio.gather(*(stamps.read(scope) for scope in scopes))

    assert [stamp.namespace for stamp in found] == [number % 3 for number in range(20)]


async def test_connections_that_hang_are_given_up(database: str, tmp_path: Path) -> None:
    pool = new_pool(database, PoolSettings(min_size=0, max_size=2, timeout_s=60))
    stamps, patient = (Stamps(pool, PROJECTIONS, deadline_s=seconds) for seconds in (1, 60))
    await patient.read(HERE)
    with psycopg.connect(database) as blocker:
        blocker.execute("LOCK TABLE epochs IN ACCESS EXCLUSIVE MODE")
        hanging = await asyncio.gather(*(stamps.read(HERE) for _ in range(4)), return_exceptions=True)

    assert all(isinstance(outcome, TimeoutError) for outcome in hanging)
    assert (await patient.read(HERE)).is_settled
    await pool.close()


async def test_a_stamp_comes_with_what_is_kept_of_its_own_question_alone(pool: Pool, database: str) -> None:
    generation = claim_generation(database, HashingModel().identity).number
    kept = [CachedEmbedding(text_key(tenant, "tea?"), tenant.encode(), NOW) for tenant in ("acme", "globex")]
    await EmbeddingTable(pool, generation).keep(kept)
    stamps = Stamps(pool, PROJECTIONS, deadline_s=60, generation=generation)
    asked = [
        (HERE, "tea?"),
        (HERE, "coffee?"),
        (HERE, None),
        (Scope("globex", "here"), "tea?"),
        (Scope("other"), "tea?"),
    ]

    found = await asyncio.gather(*(stamps.read(scope, question) for scope, question in asked))
    without = await Stamps(pool, PROJECTIONS, deadline_s=60).read(HERE, "tea?")
    of_another_model = await Stamps(pool, PROJECTIONS, deadline_s=60, generation=99).read(HERE, "tea?")

    assert [stamp.question and stamp.question.embedding for stamp in found] == [b"acme", None, None, b"globex", None]
    assert [stamp.question is None for stamp in found] == [False, False, True, False, False]
    assert (without.question, of_another_model.question) == (None, Remembered())
    assert found[0] == found[2]
