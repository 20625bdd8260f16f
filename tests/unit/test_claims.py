"""Who makes a response, who waits for it, and who takes over."""

import asyncio

import pytest

from actors.cache import CacheShardActor, WaitingRoom
from lamina.core.cache_layers import CacheEntry, CacheKey, Layer
from lamina.core.cache_stats import ShardUpdate
from lamina.policies.caching.claims import ClaimName, Claims
from lamina.policies.caching.shard import LayerLimits, Shard, ShardLimits

ONE: ClaimName = (("acme", "atlas"), b"one")
OTHER: ClaimName = (("acme", "atlas"), b"other")
LONG_S, SHORT_S = 30.0, 0.05


def test_the_first_makes_it_and_others_learn_until_when() -> None:
    claims = Claims()

    assert claims.take(ONE, 0.0, 30) is None
    assert claims.take(ONE, 1.0, 30) == 30
    assert claims.take(OTHER, 1.0, 30) is None


def test_when_a_lease_ends_one_takes_over() -> None:
    claims = Claims()
    claims.take(ONE, 0.0, 30)

    assert claims.take(ONE, 30.0, 30) is None
    assert claims.take(ONE, 30.0, 30) == 60


def test_what_is_settled_may_be_claimed_anew() -> None:
    claims = Claims()
    claims.take(ONE, 0.0, 30)

    claims.settle(ONE)
    claims.settle(OTHER)

    assert claims.take(ONE, 1.0, 30) is None


def test_claims_are_forgotten_when_their_lease_ends() -> None:
    claims = Claims()
    claims.take(ONE, 0.0, 10)
    claims.take(OTHER, 0.0, 30)

    claims.expire(10.0)

    assert len(claims) == 1
    assert claims.take(OTHER, 10.0, 30) == 30


def test_beyond_the_most_claims_everyone_makes_their_own_until_leases_end() -> None:
    claims = Claims(most=1)
    claims.take(ONE, 0.0, 30)

    refused = [claims.take(OTHER, 1.0, 30) for _ in range(2)]

    assert refused == [None, None]
    assert len(claims) == 1
    assert claims.take(OTHER, 30.0, 30) is None
    assert claims.take(OTHER, 31.0, 30) == 60


async def started(*waits: "asyncio.Future[bool] | asyncio.Task[bool]") -> None:
    for _ in range(5):
        await asyncio.sleep(0)
    assert not any(wait.done() for wait in waits)


async def test_who_waits_is_told_when_it_is_settled() -> None:
    room = WaitingRoom(Claims())
    assert await room.claim(ONE, LONG_S, LONG_S)
    waits = [asyncio.create_task(room.claim(ONE, LONG_S, LONG_S)) for _ in range(3)]
    await started(*waits)

    room.settle(ONE)

    assert await asyncio.gather(*waits) == [False, False, False]
    assert not room._waiters
    assert room._waiting == 0


async def test_when_a_lease_ends_one_of_those_who_wait_takes_over_and_wakes_the_others() -> None:
    room = WaitingRoom(Claims())
    await room.claim(ONE, SHORT_S, LONG_S)
    waits = [asyncio.create_task(room.claim(ONE, LONG_S, LONG_S)) for _ in range(3)]

    done, waiting = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
    await started(*waiting)
    room.settle(ONE)

    assert [task.result() for task in done] == [True]
    assert await asyncio.gather(*waiting) == [False, False]


async def test_who_waits_for_a_claim_that_was_forgotten_and_taken_again_is_still_woken() -> None:
    claims = Claims()
    room = WaitingRoom(claims)
    await room.claim(ONE, LONG_S, LONG_S)
    waiting = asyncio.create_task(room.claim(ONE, LONG_S, LONG_S))
    await started(waiting)

    claims.expire(float("inf"))
    assert await room.claim(ONE, LONG_S, LONG_S)
    room.settle(ONE)

    async with asyncio.timeout(LONG_S / 2):
        assert await waiting is False


async def test_who_has_no_patience_left_makes_it_themselves() -> None:
    room = WaitingRoom(Claims())
    await room.claim(ONE, LONG_S, LONG_S)

    async with asyncio.timeout(LONG_S / 2):
        assert await room.claim(ONE, LONG_S, SHORT_S)
        assert await room.claim(ONE, LONG_S, 0)


async def test_only_so_many_wait_and_who_leaves_makes_room() -> None:
    room = WaitingRoom(Claims(), most=1)
    await room.claim(ONE, LONG_S, LONG_S)
    waiting = asyncio.create_task(room.claim(ONE, LONG_S, LONG_S))
    await started(waiting)

    async with asyncio.timeout(LONG_S / 2):
        assert await room.claim(ONE, LONG_S, LONG_S)
    waiting.cancel()
    await asyncio.wait([waiting])

    assert not room._waiters
    another = asyncio.create_task(room.claim(ONE, LONG_S, SHORT_S))
    await started(another)
    assert await another


async def test_asking_a_shard_for_its_figures_sweeps_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    shard = CacheShardActor(ShardLimits({Layer.TURN: LayerLimits(3, ttl_s=300)}))
    await shard.keep(ShardUpdate(entries=[CacheEntry(ONE[0], CacheKey(Layer.TURN, b"a"), "x", 10)]))
    monkeypatch.setattr(Shard, "expire", lambda *_: pytest.fail("swept"))

    assert (await shard.stats()).holdings[Layer.TURN].entries == 1
