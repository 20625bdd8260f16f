"""How many searches run at the same time, and which are refused before they begin."""

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable
from random import Random

import pytest

from lamina.errors import TURN, Overloaded, Unavailable
from lamina.policies.limits.concurrency import FEWEST, FIRST, KEPT_S, MANY_QUEUED, MOST_KINDS, SAMPLES, ConcurrencyLimit
from lamina.search.admission import SearchPlaces
from tests.support.virtual_time import in_virtual_time

MOST = 100
LATE_S = 60.0


def settled(limit: ConcurrencyLimit, time_s: Callable[[int], float], *, rounds: int = 400, offered: int = MOST) -> int:
    """Search with as many as may run, of those that are offered; return how many do after some rounds."""
    now = 0.0
    for _ in range(rounds):
        running = min(offered, limit.places)
        for _ in range(max(SAMPLES, limit.places)):
            elapsed_s = time_s(running)
            now += elapsed_s / running
            limit.record("search", elapsed_s, running, now)
    return limit.places


@pytest.mark.parametrize("processors", [1, 2, 4, 8])
@pytest.mark.parametrize("work_s", [0.002, 0.02, 0.5])
def test_places_settle_a_little_above_what_runs_without_waiting(processors: int, work_s: float) -> None:
    def time_s(running: int) -> float:
        return work_s * max(1.0, running / processors)

    limit = ConcurrencyLimit(MOST, LATE_S)
    for _ in range(SAMPLES):
        limit.record("search", work_s, 1, 0.0)

    assert all(processors < settled(limit, time_s, rounds=40) <= processors + MANY_QUEUED + FEWEST for _ in range(10))


def test_where_searches_only_wait_for_something_far_away_the_places_grow() -> None:
    chance = Random(1)  # noqa: S311 - no secret

    assert settled(ConcurrencyLimit(MOST, LATE_S), lambda _: 0.3 * chance.uniform(1, 1.05)) == MOST


def test_where_sources_come_near_their_deadlines_by_waiting_for_each_other_fewer_run() -> None:
    assert settled(ConcurrencyLimit(MOST, late_s=0.5), lambda running: 0.2 * running) <= 5
    assert settled(ConcurrencyLimit(MOST, late_s=0.5), lambda _: 0.8) == MOST


def test_fewer_searches_than_places_raise_no_number() -> None:
    assert settled(ConcurrencyLimit(MOST, LATE_S), lambda _: 0.01, offered=3) == FIRST


def test_places_never_fall_below_the_fewest_nor_rise_above_the_most() -> None:
    chance = Random(1)  # noqa: S311 - no secret

    assert settled(ConcurrencyLimit(MOST, LATE_S), lambda _: chance.choice([0.001, 5.0])) >= FEWEST
    assert settled(ConcurrencyLimit(2, LATE_S), lambda _: chance.choice([0.001, 5.0])) == 2
    assert settled(ConcurrencyLimit(3, LATE_S), lambda _: 0.01) == 3


def test_searches_of_many_tiers_beside_quick_ones_take_no_places_away() -> None:
    limit, now = ConcurrencyLimit(MOST, LATE_S), 0.0
    for number in range(6000):
        now += 0.01
        kind, elapsed_s = ("one tier", 0.002) if number % 2 else ("all tiers", 0.2)
        limit.record(kind, elapsed_s, limit.places, now)

    assert limit.places == MOST


def test_a_store_that_has_become_slower_is_measured_anew() -> None:
    limit, now = ConcurrencyLimit(MOST, LATE_S), 0.0
    for elapsed_s in [0.01] * 100 + [0.5] * 20_000:
        now += elapsed_s / FIRST
        limit.record("search", elapsed_s, limit.places, now)

    assert now > 2 * KEPT_S
    assert limit.places > FIRST


def test_kinds_that_are_measured_are_bounded() -> None:
    limit = ConcurrencyLimit(MOST, LATE_S)
    for number in range(10 * MOST_KINDS):
        limit.record(number, 0.1, 1, float(number))

    assert len(limit._shortest) == MOST_KINDS


class Searches:
    """Searches that each run until they are told to end."""

    def __init__(self, places: int, max_wait_s: float = 1.0) -> None:
        self.now = 0.0
        self.limit = ConcurrencyLimit(places, LATE_S)
        self.places = SearchPlaces(self.limit, max_wait_s, lambda: self.now)
        self.begun: list[str] = []
        self.refused: Counter[str] = Counter()
        self.retry_after_s: list[int] = []
        self.tasks: list[asyncio.Task[None]] = []
        self.end = asyncio.Semaphore(0)

    async def ask(self, tenant: str, count: int = 1, kind: Hashable = "search") -> None:
        self.tasks += [asyncio.create_task(self._search(tenant, kind)) for _ in range(count)]
        await self.settle()

    async def finish(self, count: int, took_s: float = 0.0) -> None:
        self.now += took_s
        for _ in range(count):
            self.end.release()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def _search(self, tenant: str, kind: Hashable) -> None:
        try:
            async with self.places.place(tenant, kind):
                self.begun.append(tenant)
                await self.end.acquire()
        except Overloaded as error:
            self.refused[tenant] += error.part == TURN
            self.retry_after_s.append(error.retry_after_s)


@in_virtual_time
async def test_a_search_begins_at_once_while_there_are_places_and_waits_for_one_otherwise() -> None:
    searches = Searches(places=2)

    await searches.ask("a", 3)
    begun = len(searches.begun)
    await searches.finish(1)

    assert (begun, len(searches.begun)) == (2, 3)
    await searches.finish(2)
    assert searches.places._running == 0


@in_virtual_time
async def test_a_search_that_would_wait_longer_than_it_may_is_refused_at_once_and_told_when_to_come_back() -> None:
    searches = Searches(places=2)
    await searches.ask("a", 2)
    await searches.finish(2, took_s=0.8)

    await searches.ask("a", 20)

    assert searches.begun == ["a"] * 4
    assert searches.refused == {"a": 16}
    assert set(searches.retry_after_s) == {2}
    await searches.finish(4)
    assert len(searches.begun) == 6


@in_virtual_time
async def test_tenants_that_wait_take_turns_and_one_is_not_refused_for_what_another_one_asks() -> None:
    searches = Searches(places=1)
    await searches.ask("loud")
    await searches.finish(1, took_s=0.2)
    await searches.ask("loud", 50)

    await searches.ask("quiet", 2)
    for _ in range(6):
        await searches.finish(1)

    assert searches.refused["quiet"] == 0
    assert searches.refused["loud"] > 40
    assert searches.begun[1:7] == ["loud", "loud", "quiet", "loud", "quiet", "loud"]


@in_virtual_time
async def test_a_search_whose_turn_does_not_come_is_refused_after_its_longest_wait() -> None:
    searches = Searches(places=1, max_wait_s=0.05)

    await searches.ask("a", 3)
    await asyncio.gather(*searches.tasks[1:])

    assert searches.refused == {"a": 2}
    await searches.finish(1)
    await searches.ask("a")
    assert searches.begun == ["a", "a"]


@in_virtual_time
async def test_a_caller_that_goes_away_leaves_its_turn_and_its_place_to_others() -> None:
    searches = Searches(places=1)
    await searches.ask("a", 3)

    searches.tasks[1].cancel()
    await searches.settle()
    searches.tasks[0].cancel()
    await searches.settle()

    assert searches.begun == ["a", "a"]
    await searches.finish(1)
    assert (searches.places._running, len(searches.places._waiting)) == (0, 0)


@pytest.mark.parametrize("seed", range(5))
@in_virtual_time
async def test_no_place_is_lost_however_searches_end(seed: int) -> None:
    chance = Random(seed)  # noqa: S311 - no secret
    searches = Searches(places=3, max_wait_s=0.002)
    for _ in range(150):
        await searches.ask(chance.choice("abc"), chance.randint(1, 4))
        if chance.random() < 0.4:
            chance.choice(searches.tasks).cancel()
        if chance.random() < 0.5:
            await asyncio.sleep(chance.choice([0.001, 0.002, 0.003]))
        await searches.finish(chance.randint(0, 3))
    await searches.finish(len(searches.tasks))
    await asyncio.gather(*searches.tasks, return_exceptions=True)

    assert (searches.places._running, len(searches.places._waiting)) == (0, 0)


@in_virtual_time
async def test_the_time_of_a_search_that_fails_does_not_count() -> None:
    searches = Searches(places=1)

    async def fail() -> None:
        async with searches.places.place("a", "search"):
            raise Unavailable("search", "nothing answers")

    with pytest.raises(Unavailable):
        await fail()

    assert searches.limit.mean_s == 0
    await searches.ask("a")
    assert searches.begun == ["a"]


@in_virtual_time
async def test_where_all_searches_miss_their_deadlines_fewer_run() -> None:
    now = [0.0]
    places = SearchPlaces(limit := ConcurrencyLimit(30, late_s=0.5), 1.0, lambda: now[0])

    async def search(took_s: float, error: Exception | None = None) -> None:
        async with places.place("a", "search"):
            now[0] += took_s
            if error:
                raise error

    await search(0.05)
    for _ in range(2 * SAMPLES):
        with pytest.raises(Unavailable):
            await search(1.5, Unavailable("search", "no answer within 1.5 s"))

    assert limit.places < FIRST
    assert places._running == 0
