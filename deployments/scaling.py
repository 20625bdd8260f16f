"""How many replicas there should be: what they have in hand, and the policy that decides by it.

Ray's own policy counts calls. Here a call carries up to 32 queries and a router keeps at most four of them in flight,
however long its queue has become: calls tell little. So each replica reports the work it has in hand, and the policy
shares that out. What one replica should have is less than what fills it: below that, what is in hand grows with the
load and not with the lack of replicas, so that replicas which came with a load do not go before it does. The controller
runs the policy, and gets it pickled by value: it stands on the standard library alone.
"""

import math
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from lamina.settings import DeploymentSettings

WORK = "work"
SLACK = 0.8
"""Replicas go only once the others would have less in hand than this share of what is aimed at."""
SAMPLES = 5
"""Reports within the time over which the work is averaged."""


class Work:
    """What a replica has in hand; reported as its mean since the last report, so that short calls count, too.

    Used in one event loop.

    Args:
        clock: Seconds that never go back.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._amount = 0
        self._sum = 0.0
        self._counted_at = self._reported_at = self._moved_at = clock()

    @contextmanager
    def counted(self, amount: int) -> Iterator[None]:
        """Count an amount of work as in hand within the block."""
        self._change(amount)
        try:
            yield
        finally:
            self._change(-amount)

    def report(self) -> dict[str, float]:
        """Return the mean amount since the last report, by the name that the policy looks for."""
        self._count()
        elapsed = self._counted_at - self._reported_at
        mean = self._sum / elapsed if elapsed > 0 else float(self._amount)
        self._sum, self._reported_at = 0.0, self._counted_at
        return {WORK: mean}

    def stalled_s(self) -> float:
        """Return for how many seconds there has been work and none of it was finished; 0 if there is none."""
        return self._clock() - self._moved_at if self._amount else 0.0

    def _change(self, amount: int) -> None:
        self._count()
        if amount < 0 or not self._amount:
            self._moved_at = self._counted_at
        self._amount += amount

    def _count(self) -> None:
        now = self._clock()
        self._sum += self._amount * (now - self._counted_at)
        self._counted_at = now


def wanted_replicas(work: float, target: float, replicas: int) -> int:
    """Return how many replicas it takes for each to have no more in hand than the target; at least one.

    A load between two numbers does not swing between them: replicas go only when the others stay below 80 % of
    the target. Bounds and delays are Ray's to apply.

    Args:
        work: What all replicas have in hand together.
        target: What one should have.
        replicas: How many there are to be now.
    """
    needed = math.ceil(work / target)
    if needed >= replicas:
        return max(1, needed)
    return max(1, min(replicas, math.ceil(work / (target * SLACK))))


class ScalingTarget(Protocol):
    """What the policy needs of Ray's configuration of the deployment."""

    target_ongoing_requests: float


class ScalingContext(Protocol):
    """What the policy needs of Ray's context of a decision."""

    aggregated_metrics: Mapping[str, Mapping[Any, float]] | None
    total_num_requests: float
    target_num_replicas: int
    config: ScalingTarget


class WorkPolicy:
    """Ray's autoscaling policy over the reported work; by calls, as Ray does, as long as no replica reports any.

    Args:
        target: What one replica should have in hand.
    """

    def __init__(self, target: float) -> None:
        self._target = target

    def __call__(self, context: ScalingContext) -> tuple[int, dict[str, Any]]:
        """Return how many replicas there should be, and no state."""
        reported = (context.aggregated_metrics or {}).get(WORK)
        if reported:
            return wanted_replicas(sum(reported.values()), self._target, context.target_num_replicas), {}
        calls, aim = context.total_num_requests, context.config.target_ongoing_requests
        return wanted_replicas(calls, aim, context.target_num_replicas), {}


def autoscaling(limits: DeploymentSettings, *, work_target: float | None = None) -> AutoscalingConfig:
    """Return Ray's configuration of a deployment that scales.

    Args:
        limits: Bounds and delays.
        work_target: What one replica should have in hand, where replicas report it; where they do not, calls count.
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
