"""Quotas at a router: the rest that a key and its tenant may take, true across all routers together."""

import asyncio
import logging
import math
import time
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple

from cachetools import LRUCache

from lamina.aio.cancelling import cancel_all
from lamina.core.principals import Principal
from lamina.core.quotas import STORED, TENANT, WINDOWS_S, Limits, Resource, Spending
from lamina.errors import LaminaError, LimitReached
from lamina.policies.limits.allowance import Allowance
from lamina.policies.limits.request_weight import most_cost
from lamina.settings.serving import QuotasSettings
from lamina.stores.postgres.quotas import REFRESH_S, GrantAsk, Limited, Quotas

logger = logging.getLogger(__name__)
MAX_ALLOWANCES = 20_000
MAX_TENANTS = 10_000
_PERIODS = {60: "minute", 86_400: "day"}


class _Held(NamedTuple):
    limited: Limited
    allowance: Allowance
    cost: int = 0
    """Of a request, before it is worked on."""

    @property
    def least(self) -> int:
        """The least amount with which the request is worked on."""
        return max(1, self.cost)


@dataclass(slots=True)
class _Usage:
    """The store of a tenant: as it was counted last, and with all that was written here since."""

    amounts: dict[Resource, int]
    counted_at: datetime
    read_at: float


class QuotaDesk:
    """Admits requests by quotas; used in one event loop.

    A request pays no statement, unless what it needs was never asked for here, or the slice before is spent: slices are
    taken in the background when they run low, all of them together.

    Args:
        store: The quotas of tenants and keys, and what was granted.
        defaults: The quotas of those that have none of their own.
        clock: Seconds that never go back.
    """

    def __init__(self, store: Quotas, defaults: QuotasSettings, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._defaults = {"tenant": _set_limits(defaults.tenant.limits()), "key": _set_limits(defaults.key.limits())}
        self._clock = clock
        self._own: Mapping[Limited, int | None] = {}
        self._reads_from = -math.inf
        self._allowances: LRUCache[Limited, Allowance] = LRUCache(MAX_ALLOWANCES)
        self._usage: LRUCache[str, _Usage] = LRUCache(MAX_TENANTS)
        self._counting: dict[str, asyncio.Task[None]] = {}
        self._reading: asyncio.Task[None] | None = None
        self._taking: asyncio.Task[None] | None = None

    async def admit(self, principal: Principal, weight: int = 1, *, paid: int = 0) -> None:
        """Take a request from the quotas of its key and tenant.

        Args:
            principal: Its key.
            weight: How many plain ones it counts as; never for more than half of a quota.
            paid: As how many it was admitted before.

        Raises:
            LimitReached: If one of them is used up.
            Unavailable: If Postgres does not answer where it must be asked.
        """
        await self._know()
        held = [item._replace(cost=_cost(item, weight, paid)) for item in self._held(principal)]
        if paid:
            held = [item for item in held if item.cost]
        if not held:
            return
        # Again, since others may have spent the slice that came; it ends when there cannot be enough.
        while lacking := self._lacking(held):
            if self._taking is not None:  # One statement at a time.
                await asyncio.wait([self._taking])
                continue
            now = self._clock()
            spent = next((item for item in lacking if not item.allowance.is_due(now, item.least)), None)
            if spent is not None:
                raise self._refusal(spent, counts_as=paid + spent.cost)
            self._taking = self._start_taking(held)
            await asyncio.shield(self._taking)
        for item in held:
            item.allowance.spend(item.cost)
        if self._taking is None and any(item.allowance.runs_low(self._clock()) for item in held):
            self._taking = self._start_taking([item._replace(cost=0) for item in held])

    async def admit_write(self, principal: Principal) -> None:
        """Let a write pass unless its tenant stores as much as it may.

        Raises:
            LimitReached: If it does.
        """
        limits = {key: most for key, most in self.limits_of(principal.tenant, TENANT).items() if key in STORED}
        if not limits:
            return
        tenant = principal.tenant
        known = self._usage.get(tenant)
        if known is None or self._clock() - known.read_at > REFRESH_S:
            if tenant not in self._counting:
                self._counting[tenant] = self._start(self._count(tenant), partial(self._counting.pop, tenant))
            if known is None:
                await asyncio.shield(self._counting[tenant])
        for resource, most in limits.items():
            if self._usage[tenant].amounts[resource] >= most:
                reason = f"{most} {resource.value.replace('_', ' ')} are stored; delete some"
                raise LimitReached("tenant", reason, math.ceil(REFRESH_S))

    def settle(self, principal: Principal, spending: Spending) -> None:
        """Take the spending of a request from the quotas, when it is over."""
        if not spending.amounts:
            return
        for item in self._held(principal):
            item.allowance.spend(spending.amounts.get(item.limited.resource, 0))
        known = self._usage.get(principal.tenant)
        if known is not None:
            for resource in STORED:
                known.amounts[resource] += spending.amounts.get(resource, 0)

    def headers(self, principal: Principal) -> list[tuple[bytes, bytes]]:
        """Return `RateLimit-Policy` and `RateLimit` of the quotas in windows of time, the tighter ones first."""
        now = self._clock()
        known = sorted(
            (*item.allowance.remaining(now), f"{_whose(item.limited)}-{item.limited.resource.value}", item)
            for item in self._held(principal)
        )
        if not known:
            return []
        policies = (
            f'"{name}";q={item.allowance.amount};w={WINDOWS_S[item.limited.resource]}' for *_, name, item in known
        )
        states = (f'"{name}";r={left};t={ends_in_s}' for left, ends_in_s, name, _ in known)
        return [(b"ratelimit-policy", ", ".join(policies).encode()), (b"ratelimit", ", ".join(states).encode())]

    def limits_of(self, tenant: str, subject: str) -> Limits:
        """Return the limits of a tenant, or of one of its keys."""
        defaults = self._defaults["tenant" if subject == TENANT else "key"]
        if not self._own:  # As mostly; every request asks three times.
            return defaults
        chosen: dict[Resource, int | None] = dict(defaults)
        for resource in Resource:
            own = Limited(tenant, subject, resource)
            if own in self._own:
                chosen[resource] = self._own[own]
        return _set_limits(chosen)

    async def stored(self, tenant: str) -> Limits:
        """Return the size of a tenant, counted some seconds ago."""
        return (await self._store.usage(tenant))[0]

    async def set_own(self, tenant: str, subject: str, amounts: Mapping[Resource, int | None]) -> None:
        """Set quotas; one without an amount is as in the settings again."""
        await self._store.set(tenant, subject, amounts)
        self._own = await self._store.read()

    async def close(self) -> None:
        """End the tasks under way."""
        under_way = (self._reading, self._taking, *self._counting.values())
        await cancel_all([task for task in under_way if task is not None])

    async def _know(self) -> None:
        """Have the quotas read every few seconds; only before the first request they are waited for."""
        now = self._clock()
        if now >= self._reads_from and self._reading is None:
            self._reading = self._start(self._read(), self._end_reading)
        if self._reads_from == -math.inf and self._reading is not None:
            await asyncio.shield(self._reading)

    async def _read(self) -> None:
        try:
            self._own = await self._store.read()
        except LaminaError:  # Those that were read before hold on; the request meets the fault itself.
            logger.warning("the quotas cannot be read", exc_info=True)

    def _end_reading(self) -> None:
        self._reads_from, self._reading = self._clock() + REFRESH_S, None

    async def _count(self, tenant: str) -> None:
        """Count all that a tenant stores; a write meanwhile counts with the next count."""
        stored, counted_at = await self._store.usage(tenant)
        known = self._usage.get(tenant)
        if known is not None and known.counted_at == counted_at:
            known.read_at = self._clock()
        else:
            self._usage[tenant] = _Usage(dict(stored), counted_at, self._clock())

    def _held(self, principal: Principal) -> list[_Held]:
        found = []
        for subject in (TENANT, str(principal.key_id)):
            for resource, amount in self.limits_of(principal.tenant, subject).items():
                if resource not in WINDOWS_S:
                    continue
                limited = Limited(principal.tenant, subject, resource)
                allowance = self._allowances.get(limited)
                if allowance is None or allowance.amount != amount:
                    allowance = self._allowances[limited] = Allowance(amount)
                found.append(_Held(limited, allowance))
        return found

    def _lacking(self, held: list[_Held]) -> list[_Held]:
        now = self._clock()
        return [item for item in held if not item.allowance.covers(item.least, now)]

    def _start_taking(self, held: list[_Held]) -> "asyncio.Task[None]":
        """Start to take slices for all that lack them, or will soon."""
        return self._start(self._take_due(held), self._end_taking)

    def _end_taking(self) -> None:
        self._taking = None

    def _start(self, work: Coroutine[Any, Any, None], on_end: Callable[[], object]) -> "asyncio.Task[None]":
        """Start a task; its end is noticed also if it is cancelled before it begins, when none of its lines runs."""

        def end(task: asyncio.Task[None]) -> None:
            on_end()
            _seen(task)

        task = asyncio.create_task(work)
        task.add_done_callback(end)
        return task

    async def _take_due(self, held: list[_Held]) -> None:
        now = self._clock()
        asks = [
            GrantAsk(item.limited, item.allowance.amount, item.allowance.ask(now, item.least))
            for item in sorted(held, key=lambda item: item.limited)
            if item.allowance.is_due(now, item.least) or item.allowance.runs_low(now)
        ]
        allowances = {item.limited: item.allowance for item in held}
        try:
            granted = await self._store.take(asks)
        except BaseException:
            for item in asks:
                allowances[item.limited].refuse(item.ask)
            raise
        for limited, grant in granted.items():
            allowances[limited].receive(grant, self._clock())

    def _refusal(self, item: _Held, counts_as: int) -> LimitReached:
        window_s = WINDOWS_S[item.limited.resource]
        _, ends_in_s = item.allowance.remaining(self._clock())
        resource = item.limited.resource.value.replace("_", " ")
        counted = f", and this one counts as {counts_as}" if counts_as > 1 else ""
        reason = f"{item.allowance.amount} {resource} a {_PERIODS[window_s]}{counted}"
        return LimitReached(_whose(item.limited), reason, max(1, ends_in_s))


def _set_limits(chosen: Mapping[Resource, int | None]) -> Limits:
    return {resource: most for resource, most in chosen.items() if most is not None}


def _seen(task: asyncio.Task[None]) -> None:
    """Log a task's error, which those who wait for it get too."""
    if not task.cancelled() and task.exception() is not None:
        logger.warning("no slice of a quota was granted, or nothing counted", exc_info=task.exception())


def _cost(item: _Held, weight: int, paid: int) -> int:
    """Return the cost of a request before it is worked on, beyond the one that is paid."""
    return most_cost(weight, item.allowance.amount) - paid if item.limited.resource is Resource.REQUESTS else 0


def _whose(limited: Limited) -> str:
    return "tenant" if limited.subject == TENANT else "key"
