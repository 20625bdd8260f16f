"""Programs that tests run in forks: they join a Ray, or start one, which the process of the tests never does."""

import asyncio
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import ray
from ray.exceptions import RayError

from actors.directory import Directory
from actors.scheduler import open_scheduler
from lamina.core.cache_layers import CacheEntry, CacheKey, Layer, ShardQuery
from lamina.core.cache_stats import ShardUpdate
from lamina.core.ports import CacheShard
from lamina.errors import LaminaError, Unavailable
from lamina.policies.caching.shard import LayerLimits, ShardLimits
from lamina.settings.loading import load_settings
from lamina.wiring.jobs import jobs_namespace

LIMITS = ShardLimits({Layer.TURN: LayerLimits(10, 300)})
SPACE, KEY = ("acme", "w"), CacheKey(Layer.TURN, b"k")


def open_a_scheduler() -> None:
    with joined():
        open_scheduler(load_settings(None))


def open_three_schedulers() -> None:
    """Print the scheduler that is there after each of three starts, the last one with other settings."""
    with joined():
        print(*opened("2"), *opened("2"), *opened("7"))  # noqa: T201 - what the test reads


def opened(page_rows: str) -> list[str]:
    os.environ["LAMINA_JOBS__PAGE_ROWS"] = page_rows
    settings = load_settings(None)
    open_scheduler(settings)
    return actors_in(jobs_namespace(settings))


def kill_actors() -> None:
    """End the actors of a namespace, ``for good`` if that is said."""
    namespace, *how = sys.argv[1:]
    with joined():
        for name in actors_in(namespace):
            ray.kill(ray.get_actor(name, namespace=namespace), no_restart="for good" in how)


def print_niceness() -> None:
    """Print the niceness of eight tasks of somebody else."""
    with joined():
        reader: Any = ray.remote(num_cpus=0)(lambda: os.getpriority(os.PRIO_PROCESS, 0))
        print(*ray.get([reader.remote() for _ in range(8)]))  # noqa: T201 - what the test reads


def joined() -> Any:
    return ray.init(namespace="lamina", log_to_driver=False)


def actors_in(namespace: str) -> list[str]:
    listed = ray.util.list_named_actors(all_namespaces=True)
    return sorted(item["name"] for item in listed if item["namespace"] == namespace)


def use_shards() -> None:
    """Use the cache shards of several editions, on a Ray of this process alone."""
    with ray.init(
        address="local",
        num_cpus=1,
        include_dashboard=False,
        log_to_driver=False,
        _temp_dir=sys.argv[1],
        object_store_memory=80_000_000,
    ):
        asyncio.run(_use_shards())


def directory(edition: str, count: int = 1) -> Directory:
    return Directory(count, "one", edition, LIMITS)


async def known(shard: CacheShard) -> Any:
    return (await shard.find([ShardQuery(SPACE, (KEY,))]))[0].answer


async def until(check: Callable[[], Awaitable[Any]]) -> bool:
    for _ in range(1_200):
        try:
            if await check():
                return True
        except (LaminaError, RayError):
            pass
        await asyncio.sleep(0.1)
    return False


async def _use_shards() -> None:
    directory("first").open()
    (shard,), (same,) = directory("first").shards().values(), directory("first").shards().values()
    await until(shard.stats)
    await shard.keep(ShardUpdate(entries=[CacheEntry(SPACE, KEY, "value", 10)]))
    assert (await known(same))[1] == "value", "a second replica finds the same actor"

    assert await shard.claim(SPACE, b"c", 60, 0)
    waiting = [asyncio.create_task(shard.claim(SPACE, b"c", 60, 30)) for _ in range(50)]
    await asyncio.sleep(0.5)
    await asyncio.wait_for(asyncio.gather(*(known(same) for _ in range(20))), 25)
    await shard.settle(SPACE, b"c")
    assert await asyncio.wait_for(asyncio.gather(*waiting), 25) == [False] * 50, "all who waited are woken"

    Directory(1, "other", "first", LIMITS).open()
    directory("second", 2).open()
    assert actors_in("one") == ["cache-second-0", "cache-second-1"], actors_in("one")
    assert actors_in("other") == ["cache-first-0"], "another database's shards are left alone"

    async def is_refused() -> bool:
        try:
            await shard.stats()
        except Unavailable as error:
            return "another edition" in error.reason
        return False

    assert await until(is_refused), "a replica of before makes its shards no more"
    assert actors_in("one") == ["cache-second-0", "cache-second-1"], actors_in("one")

    newer = directory("second", 2).shards()["cache-second-0"]
    assert await until(newer.stats)
    assert await known(newer) is None
    await newer.keep(ShardUpdate(entries=[CacheEntry(SPACE, KEY, "new", 10)]))
    ray.kill(ray.get_actor("cache-second-0", namespace="one"))

    async def is_empty() -> bool:
        return await known(newer) is None

    assert await until(is_empty), "one that is gone for good is made anew, empty"
