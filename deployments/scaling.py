"""Scale deployments by the work that their replicas have in hand.

Ray's own policy counts calls. Here a call carries up to 32 queries and a router keeps at most four of them in flight,
however long its queue has become, so calls say little. Each replica reports the work it has in hand, and the policy
shares that out. The target of one replica lies below its capacity: there the work in hand grows with the load and not
with the lack of replicas, so that replicas which came with a load do not go before it does. The controller runs the
policy, and gets it pickled by value, so it needs the standard library alone.
"""

import asyncio
import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Protocol

from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from lamina.settings.serving import DeploymentSettings

WORK = "work"
# Replicas go only once the others would have less in hand than this share of the target.
SLACK = 0.8
# Reports within the time over which the work is averaged.
SAMPLES = 5


class Work:
    """The work that a replica has in hand; reported as its mean since the last report, so that short calls count.

    Used in one event loop.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._amount = 0
        self._sum = 0.0
        self._counted_at = self._reported_at = self._moved_at = clock()
        self._is_over = asyncio.Event()

    @contextmanager
    def counted(self, amount: int) -> Iterator[None]:
        """Count an amount of work as in hand within the block."""
        self._change(amount)
        try:
            yield
        finally:
            self._change(-amount)

    def report(self) -> dict[str, float]:
        """Return the mean amount since the last report, under the policy's name for it."""
        self._count()
        elapsed = self._counted_at - self._reported_at
        mean = self._sum / elapsed if elapsed > 0 else float(self._amount)
        self._sum, self._reported_at = 0.0, self._counted_at
        return {WORK: mean}

    async def over(self, most_s: float) -> None:
        """Wait until there is none in hand, for some seconds at most."""
        if self._amount:
            with suppress(TimeoutError):
                async with asyncio.timeout(most_s):
                    await self._is_over.wait()

    def stalled_s(self) -> float:
        """Return the seconds since work was last finished, or 0 without any work."""
        return self._clock() - self._moved_at if self._amount else 0.0

    def _change(self, amount: int) -> None:
        self._count()
        if amount < 0 or not self._amount:
            self._moved_at = self._counted_at
        self._amount += amount
        if not self._amount:
            self._is_over.set()
            self._is_over.clear()

    def _count(self) -> None:
        now = self._clock()
        self._sum += self._amount * (now - self._counted_at)
        self._counted_at = now


def wanted_replicas(work: float, target: float, replicas: int) -> int:
    """Return the number of replicas that keeps each at the target or below; at least one.

    A load between two numbers does not swing between them: replicas go only when the others stay below 80 % of
    the target. Bounds and delays are Ray's to apply.

    Args:
        work: In hand in all replicas together.
        target: Of one replica.
        replicas: The number that is wanted now.
    """
    needed = math.ceil(work / target)
    if needed >= replicas:
        return max(1, needed)
    return max(1, min(replicas, math.ceil(work / (target * SLACK))))


class ScalingTarget(Protocol):
    """The part of Ray's configuration of the deployment that the policy reads."""

    target_ongoing_requests: float


class ScalingContext(Protocol):
    """The part of Ray's context of a decision that the policy reads."""

    aggregated_metrics: Mapping[str, Mapping[Any, float]] | None
    total_num_requests: float
    target_num_replicas: int
    config: ScalingTarget


@dataclass(frozen=True)
class WorkPolicy:
    """Ray's autoscaling policy over the reported work; by calls, as Ray does, as long as no replica reports any.

    Args:
        target: Work that one replica should have in hand.
    """

    target: float

    def __call__(self, context: ScalingContext) -> tuple[int, dict[str, Any]]:
        """Return how many replicas there should be, and no state."""
        reported = (context.aggregated_metrics or {}).get(WORK)
        if reported:
            return wanted_replicas(sum(reported.values()), self.target, context.target_num_replicas), {}
        calls, aim = context.total_num_requests, context.config.target_ongoing_requests
        return wanted_replicas(calls, aim, context.target_num_replicas), {}


def autoscaling(limits: DeploymentSettings, *, work_target: float | None = None) -> AutoscalingConfig:
    """Return Ray's configuration of a deployment that scales.

    Args:
        limits: Bounds and delays.
        work_target: Work that one replica should have in hand, where replicas report it; otherwise calls count.
    """
    policy = {} if work_target is None else {"policy": _by_work(work_target)}
    with warnings.catch_warnings():
        # The variables that the warning recommends are read by nothing in this version of Ray.
        warnings.filterwarnings("ignore", "The `metrics_interval_s` field", DeprecationWarning)
        return AutoscalingConfig(
            min_replicas=limits.min_replicas,
            max_replicas=limits.max_replicas,
            target_ongoing_requests=limits.target_ongoing_requests,
            upscale_delay_s=limits.upscale_delay_s,
            downscale_delay_s=limits.downscale_delay_s,
            look_back_period_s=limits.look_back_s,
            metrics_interval_s=limits.look_back_s / SAMPLES,
            **policy,
        )


def _by_work(target: float) -> AutoscalingPolicy:
    return AutoscalingPolicy(  # type: ignore[no-untyped-call]  # Ray's own gap
        policy_function=f"{__name__}:{WorkPolicy.__name__}", policy_kwargs={"target": target}
    )
