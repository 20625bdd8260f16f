"""Where the cache shards are: named actors that outlive who made them, on a Ray of this test alone."""

import subprocess
import sys
import tempfile
from pathlib import Path

from tests.support.effort import NEEDS_RAY
from tests.support.service import ROOT, environment

pytestmark = NEEDS_RAY

SCRIPT = """
import asyncio, os, sys
import ray
from actors.directory import Directory, retire
from lamina.core.cache_layers import Entry, Key, Layer, Probe
from lamina.policies.caching.shard import LayerLimits, ShardLimits
from lamina.core.cache_stats import News

ray.init(address="local", num_cpus=1, include_dashboard=False, log_to_driver=False, _temp_dir=sys.argv[1],
         object_store_memory=80_000_000)
LIMITS = ShardLimits({Layer.TURN: LayerLimits(10, 300)})
SPACE, KEY = ("acme", "w"), Key(Layer.TURN, b"k")


def directory(edition, count=1):
    return Directory(count, "one", edition, LIMITS)


def actors(namespace):
    listed = ray.util.list_named_actors(all_namespaces=True)
    return sorted(item["name"] for item in listed if item["namespace"] == namespace)


async def known(shard):
    return (await shard.find([Probe(SPACE, (KEY,))]))[0].answer


async def until(check):
    for _ in range(300):
        try:
            if await check():
                return True
        except Exception:
            pass
        await asyncio.sleep(0.1)
    return False


async def main():
    directory("first").open()
    (shard,), (same,) = directory("first").shards().values(), directory("first").shards().values()
    await until(lambda: shard.stats())
    await shard.keep(News(entries=[Entry(SPACE, KEY, "value", 10)]))
    assert (await known(same))[1] == "value", "a second replica finds the same actor"

    assert await shard.claim(SPACE, b"c", 60, 0)
    waiting = [asyncio.create_task(shard.claim(SPACE, b"c", 60, 30)) for _ in range(50)]
    await asyncio.sleep(0.5)
    await asyncio.wait_for(asyncio.gather(*(known(same) for _ in range(20))), 5)
    await shard.settle(SPACE, b"c")
    assert await asyncio.wait_for(asyncio.gather(*waiting), 5) == [False] * 50, "all who waited are woken"

    Directory(1, "other", "first", LIMITS).open()
    directory("second", 2).open()
    assert actors("one") == ["cache-second-0", "cache-second-1"], actors("one")
    assert actors("other") == ["cache-first-0"], "another database's shards are left alone"

    newer = directory("second", 2).shards()["cache-second-0"]
    assert await until(lambda: newer.stats())
    assert await known(newer) is None
    await newer.keep(News(entries=[Entry(SPACE, KEY, "new", 10)]))
    ray.kill(ray.get_actor("cache-second-0", namespace="one"))

    async def is_empty():
        return await known(newer) is None

    assert await until(is_empty), "one that is gone for good is made anew, empty"
    print("all is well")


asyncio.run(main())
ray.shutdown()
"""


def test_replicas_find_the_same_actors_and_other_editions_end() -> None:
    with tempfile.TemporaryDirectory(prefix="lm-", ignore_cleanup_errors=True) as folder:
        variables = environment(Path(folder)) | {"RAY_USAGE_STATS_ENABLED": "0", "PYTHONPATH": str(ROOT)}
        done = subprocess.run(
            [sys.executable, "-c", SCRIPT, folder],
            capture_output=True,
            text=True,
            check=False,
            env=variables,
            timeout=120,
        )

    assert "all is well" in done.stdout, done.stderr[-3000:]
