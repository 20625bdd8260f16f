"""Find the cache shards: named actors, made where they are missing."""

import asyncio
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast

import ray
from ray.actor import ActorHandle
from ray.exceptions import RayActorError, RayError

from actors.cache import CacheShardActor
from lamina.aio.single_flight import SingleFlight
from lamina.core.cache_layers import Layer, ShardAnswer, ShardQuery, Space
from lamina.core.cache_stats import ShardStats, ShardUpdate
from lamina.core.ports import CacheShard
from lamina.errors import Unavailable
from lamina.policies.caching.shard import ShardLimits

# Ray's own default for async actors, written down because the waiting room is bounded by it.
MAX_CONCURRENCY = 1000
# The group of calls that may wait long, in a thread of their own: nothing else waits for them.
CLAIMS = "claims"


class RemoteShard:
    """The CacheShard port over a named actor.

    Ray restarts a killed actor, empty. If it is gone for good, the next caller makes another one; of several callers
    at a time, Ray lets one win. None is made again once those of another edition have taken the place of its own.

    Args:
        name: The actor's name.
        namespace: Its namespace in Ray.
        limits: Its bounds, if it has to be made.
        resources: Reserved for it, by Ray's names.
    """

    def __init__(self, name: str, namespace: str, limits: ShardLimits, resources: Mapping[str, float]) -> None:
        self._name = name
        self._namespace = namespace
        self._limits = limits
        self._resources = resources
        self._handle: ActorHandle[CacheShardActor] | None = None
        # One thread at a time: while Ray's directory hangs, impatient callers must not add more.
        self._lookup = SingleFlight[str, ActorHandle[CacheShardActor]]()

    async def find(self, queries: Sequence[ShardQuery]) -> Sequence[ShardAnswer]:
        """Look each query up."""
        found: Sequence[ShardAnswer] = await self._call("find", queries)
        return found

    async def keep(self, update: ShardUpdate) -> None:
        """Take over entries, agents and counts."""
        await self._call("keep", update)

    async def purge(self, tenant: str, workspace: str | None, layers: Sequence[Layer]) -> int:
        """Drop entries of a workspace or a tenant."""
        return int(await self._call("purge", tenant, workspace, layers))

    async def stats(self, tenant: str | None = None) -> ShardStats:
        """Return sizes, and the counts of the replicas."""
        stats: ShardStats = await self._call("stats", tenant)
        return stats

    async def claim(self, space: Space, digest: bytes, lease_s: float, wait_s: float) -> bool:
        """Claim a response, or wait for the caller that has claimed it."""
        return bool(await self._call("claim", space, digest, lease_s, wait_s, group=CLAIMS))

    async def settle(self, space: Space, digest: bytes) -> None:
        """Wake the callers that wait for a response."""
        await self._call("settle", space, digest, group=CLAIMS)

    async def _call(self, method: str, *arguments: Any, group: str | None = None) -> Any:
        try:
            handle = self._handle or await self._lookup.run(self._name, self._make)
            called = getattr(handle, method)
            return await (called.options(concurrency_group=group) if group else called).remote(*arguments)
        except RayActorError as error:
            self._handle = None  # It is looked up again: the actor may be gone for good.
            raise Unavailable("cache", type(error).__name__) from error
        except RayError as error:
            raise Unavailable("cache", type(error).__name__) from error

    async def _make(self) -> "ActorHandle[CacheShardActor]":
        self._handle = await asyncio.to_thread(make_again, self._name, self._namespace, self._limits, self._resources)
        return self._handle


def actor_options(name: str, namespace: str, resources: Mapping[str, float]) -> dict[str, Any]:
    """Return the options of an actor that outlives its maker, and is found by its name."""
    return {
        "name": name,
        "namespace": namespace,
        "lifetime": "detached",
        "get_if_exists": True,
        "max_restarts": -1,
        # The shards and the scheduler mostly wait; a reserved CPU each would take those of the replicas.
        "num_cpus": 0,
        "resources": dict(resources),
        # Each call would be an event in Ray's control store: thousands a second, which nobody reads.
        "enable_task_events": False,
    }


def make(
    name: str, namespace: str, limits: ShardLimits, resources: Mapping[str, float]
) -> "ActorHandle[CacheShardActor]":
    """Return the actor of this name, made if there is none."""
    options = {**actor_options(name, namespace, resources), "max_concurrency": MAX_CONCURRENCY}
    remote: Any = ray.remote  # Its types know nothing of concurrency groups.
    actor = remote(concurrency_groups={CLAIMS: MAX_CONCURRENCY})(CacheShardActor)
    return cast("ActorHandle[CacheShardActor]", actor.options(**options).remote(limits))


def make_again(
    name: str, namespace: str, limits: ShardLimits, resources: Mapping[str, float]
) -> "ActorHandle[CacheShardActor]":
    """Return the actor of this name, made if it is gone and no other edition has taken the place of its own.

    Raises:
        Unavailable: If one has: a replica of before drains, and nobody would end what it made.
    """
    with suppress(ValueError):
        return ray.get_actor(name, namespace=namespace)
    edition, _, _ = name.rpartition("-")
    if any(not other.startswith(f"{edition}-") for other in _named_in(namespace)):
        raise Unavailable("cache", "the shards of another edition have taken its place")
    return make(name, namespace, limits, resources)


@dataclass(frozen=True, slots=True)
class Directory:
    """The actors that are the shards.

    Args:
        count: How many.
        namespace: Their namespace in Ray, one a database.
        edition: Actors outlive releases: another edition has others, and ends those of this one.
        limits: The bounds of each.
        resources: Reserved for each, by Ray's names; they decide where it runs.
    """

    count: int
    namespace: str
    edition: str
    limits: ShardLimits
    resources: Mapping[str, float] = field(default_factory=dict)

    def names(self) -> list[str]:
        """Return the shards' names."""
        return [f"cache-{self.edition}-{place}" for place in range(self.count)]

    def shards(self) -> Mapping[str, CacheShard]:
        """Return the shards by name; an actor is looked for at the first call.

        Where Ray does not run (Serve's local testing mode), they are in this process.
        """
        if not ray.is_initialized():  # A call would start a whole Ray unasked.
            return {name: CacheShardActor(self.limits) for name in self.names()}
        return {name: RemoteShard(name, self.namespace, self.limits, self.resources) for name in self.names()}

    def open(self) -> None:
        """Make the missing actors, and end those of other editions."""
        for name in self.names():
            make(name, self.namespace, self.limits, self.resources)
        retire(self.namespace, set(self.names()))


def retire(namespace: str, current: AbstractSet[str]) -> list[str]:
    """End the actors of this namespace that are not current; return their names."""
    old = [name for name in _named_in(namespace) if name not in current]
    for name in old:
        with suppress(ValueError):  # It has ended meanwhile.
            ray.kill(ray.get_actor(name, namespace=namespace))
    return old


def _named_in(namespace: str) -> list[str]:
    listed = ray.util.list_named_actors(all_namespaces=True)
    return [item["name"] for item in listed if item["namespace"] == namespace]
