"""Where the cache shards are: named actors, found by every replica, made where they are missing."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, cast

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError

from actors.cache import CacheShard
from lamina.caching.layers import Found, Layer, Probe, Space
from lamina.caching.shard import ShardLimits
from lamina.caching.tally import News, ShardStats
from lamina.errors import Unavailable

PROTOCOL = 1  # Raise it when a method or a value that travels changes: actors outlive releases.
MAX_CONCURRENCY = 1000


class RemoteShard:
    """The CacheShard port over a named actor.

    Ray restarts a killed actor, empty. One that is gone for good is made anew by the next caller;
    of several callers who do, Ray lets one win.

    Args:
        name: The actor's name.
        namespace: Ray's namespace of it.
        limits: Its bounds, should it have to be made.
    """

    def __init__(self, name: str, namespace: str, limits: ShardLimits) -> None:
        self._name = name
        self._namespace = namespace
        self._limits = limits
        self._handle: ActorHandle[CacheShard] | None = None
        self._turn = asyncio.Lock()

    async def find(self, probes: Sequence[Probe]) -> Sequence[Found]:
        """Return what is known for each probe."""
        found: Sequence[Found] = await self._call("find", probes)
        return found

    async def keep(self, news: News) -> None:
        """Take over entries, agents and counts."""
        await self._call("keep", news)

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Forget entries of a workspace or a tenant."""
        return int(await self._call("purge", tenant, workspace, layers))

    async def stats(self) -> ShardStats:
        """Return what the shard holds and was told."""
        stats: ShardStats = await self._call("stats")
        return stats

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Tell whether the caller is to make the response itself."""
        return bool(await self._call("claim", space, digest, lease_s, wait_s))

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake those who wait for the response."""
        await self._call("settle", space, digest)

    async def _call(self, method: str, *arguments: Any) -> Any:
        handle = self._handle or await self._found()
        try:
            return await getattr(handle, method).remote(*arguments)
        except RayActorError as error:
            self._handle = None
            raise Unavailable("cache", type(error).__name__) from error
        except RayError as error:
            raise Unavailable("cache", type(error).__name__) from error

    async def _found(self) -> "ActorHandle[CacheShard]":
        async with self._turn:
            if self._handle is None:
                self._handle = await asyncio.to_thread(make, self._name, self._namespace, self._limits)
            return self._handle


def make(name: str, namespace: str, limits: ShardLimits) -> "ActorHandle[CacheShard]":
    """Return the actor of this name, made if there is none."""
    options = {
        "name": name,
        "namespace": namespace,
        "lifetime": "detached",
        "get_if_exists": True,
        "max_restarts": -1,
        "max_concurrency": MAX_CONCURRENCY,
        "num_cpus": 0,
        "enable_task_events": False,
    }
    return cast("ActorHandle[CacheShard]", ray.remote(CacheShard).options(**options).remote(limits))


def names(count: int) -> list[str]:
    """Return the names of so many shards."""
    return [f"cache-{PROTOCOL}-{place}" for place in range(count)]


def shards(count: int, namespace: str, limits: ShardLimits) -> Mapping[str, RemoteShard]:
    """Return so many shards by name; an actor is looked for at the first call."""
    return {name: RemoteShard(name, namespace, limits) for name in names(count)}


def retire(count: int, namespace: str) -> list[str]:
    """End the actors of this namespace that no replica asks any more; return their names."""
    current = set(names(count))
    listed = ray.util.list_named_actors(all_namespaces=True)
    old = [item["name"] for item in listed if item["namespace"] == namespace and item["name"] not in current]
    for name in old:
        ray.kill(ray.get_actor(name, namespace=namespace))
    return old
