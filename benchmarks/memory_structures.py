"""Cost of the structures in memory by themselves: the LRU with a time to live, and the agents' filter."""

import hashlib
import random
import sys
import time
import timeit
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cachetools import TLRUCache, TTLCache
from rich.table import Table

from benchmarks.report import table
from lamina.policies.caching.ttl_lru import TtlLru

ENTRIES = 2_048
TTL_S = 300.0
ROUNDS = 9
PASSES = 5
AGENTS = (100, 10_000)
PROBES = 1_000
PLAIN = "dict"


@dataclass(frozen=True, slots=True)
class Structure:
    """A structure under test.

    Args:
        name: Its name among the figures.
        cache: The structure, empty.
        get: Python that reads ``key`` from ``cache``.
        put: Python that writes ``key`` as its own value.
    """

    name: str
    cache: Any
    get: str = "cache.get(key)"
    put: str = "cache[key] = key"


def measure_structures() -> dict[str, float]:
    """Return the time of one operation of each structure, in nanoseconds, and its ratio to a dict's.

    Gets all hit; every put is a new key in a full structure, which evicts one, except in the dict, which has room
    for all. Ours is given a fresh reading of the clock at each call, as the others take one by themselves; a shard
    reads it once a request.
    """
    times = _lru_times()
    return times | _ratios(times) | _agent_figures()


def structures_table(figures: Mapping[str, float]) -> Table:
    """Return a table of the figures of :func:`measure_structures`."""
    shown = table(
        f"Structures of {ENTRIES} entries, in one thread", "structure", "get", "put", "get / dict", "put / dict"
    )
    for item in _structures():
        shown.add_row(
            item.name,
            *(f"{figures[f'{item.name}.{verb}_ns']:.0f} ns" for verb in ("get", "put")),
            *(f"{figures[f'{item.name}.{verb}_ratio']:.1f}" for verb in ("get", "put")),
        )
    for count in AGENTS:
        name, size_bytes = f"set of {count} agents", figures[f"agents_{count}.size_bytes"]
        shown.add_row(name, f"{figures[f'agents_{count}.test_ns']:.0f} ns", f"{size_bytes / 1024:.0f} KiB", "", "")
    return shown


def _structures() -> list[Structure]:
    return [
        Structure(PLAIN, {}),
        Structure(
            "ttl_lru",
            TtlLru[bytes, bytes](max_entries=ENTRIES, max_bytes=ENTRIES * 64),
            "cache.get(key, now())",
            f"cache.put(key, key, now=now(), ttl_s={TTL_S}, size_bytes=32)",
        ),
        Structure("cachetools_ttl", TTLCache[bytes, bytes](ENTRIES, TTL_S)),
        Structure("cachetools_tlru", TLRUCache[bytes, bytes](ENTRIES, lambda _key, _value, now: now + TTL_S)),
    ]


def _lru_times() -> dict[str, float]:
    """Return the nanoseconds of a get and of a put, each the best of several rounds that take turns."""
    keys = [hashlib.sha256(str(number).encode()).digest() for number in range(2 * ENTRIES)]
    best: dict[str, float] = {}
    for _ in range(ROUNDS):
        for item in _structures():
            put_ns = _each_ns(item, item.put, keys)
            get_ns = _each_ns(item, item.get, keys[ENTRIES:])
            for name, elapsed_ns in ((f"{item.name}.get_ns", get_ns), (f"{item.name}.put_ns", put_ns)):
                best[name] = min(best.get(name, elapsed_ns), elapsed_ns)
    return best


def _each_ns(item: Structure, statement: str, keys: Sequence[bytes]) -> float:
    names = {"cache": item.cache, "keys": keys, "now": time.monotonic}
    timer = timeit.Timer(f"for key in keys: {statement}", globals=names)
    timer.timeit(1)
    return timer.timeit(PASSES) / PASSES / len(keys) * 1e9


def _ratios(times: Mapping[str, float]) -> dict[str, float]:
    """Return each time as a multiple of the dict's."""
    return {
        name.removesuffix("_ns") + "_ratio": elapsed_ns / times[f"{PLAIN}.{name.rpartition('.')[2]}"]
        for name, elapsed_ns in times.items()
    }


def _agent_figures() -> dict[str, float]:
    figures: dict[str, float] = {}
    for count in AGENTS:
        agents = {f"tenant-agent-{number:08d}" for number in range(count)}
        figures[f"agents_{count}.test_ns"] = _membership_ns(agents)
        figures[f"agents_{count}.size_bytes"] = sys.getsizeof(agents) + sum(map(sys.getsizeof, agents))
    return figures


def _membership_ns(agents: set[str]) -> float:
    """Return the nanoseconds of a test, half of them of agents that are not there."""
    known = random.Random(7).choices(sorted(agents), k=PROBES // 2)  # noqa: S311 - a sample, not a secret
    probes = [*known, *(f"tenant-nobody-{number:08d}" for number in range(PROBES // 2))]
    timer = timeit.Timer("for agent in probes: agent in agents", globals={"probes": probes, "agents": agents})
    return min(timer.repeat(ROUNDS, PASSES)) / PASSES / PROBES * 1e9
