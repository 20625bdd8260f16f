"""Time to live of a response: it grows with the share of the agent's lookups that are hits."""

import math
from dataclasses import dataclass

# The hit rate at which a response lives for the policy's base: there 2 · log2(1 + rate) is 1.
PRIOR_RATE = math.sqrt(2) - 1
# Weight of the prior rate, in lookups.
PRIOR_LOOKUPS = 16


@dataclass(frozen=True, slots=True)
class TtlPolicy:
    """How long responses live, in seconds.

    Args:
        base_s: Without any lookups.
        least_s: At any rate at least.
        most_s: At any rate at most.
    """

    base_s: float
    least_s: float
    most_s: float


def adaptive_ttl(hits: int, lookups: int, policy: TtlPolicy) -> float:
    """Return the seconds that a new response lives: base · 2 · log2(1 + rate), within the policy's bounds.

    Without evidence that is the base; an agent whose every lookup is a hit approaches twice the base.

    Args:
        hits: Recent lookups of the agent that found a response.
        lookups: All its lookups in that time, at least as many.
        policy: The base and the bounds.

    Source:
        Open Astra, response cache: the time to live grows with the base-2 logarithm of the hit rate. The prior and
        the factor that makes it meet the base are ours.
    """
    # Drawn towards the prior rate while there are few lookups.
    rate = (hits + PRIOR_LOOKUPS * PRIOR_RATE) / (lookups + PRIOR_LOOKUPS)
    wanted_s = policy.base_s * 2 * math.log2(1 + rate)
    return min(policy.most_s, max(policy.least_s, wanted_s))
