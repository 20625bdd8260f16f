"""How what is not told again loses weight with the days: entries, edges and entities."""

import math
from datetime import timedelta

LOSS_PER_DAY = 0.12
GRACE_DAYS = 7
LEAST_WEIGHT = 0.2
"""Entries of less weight leave contexts."""

EDGE_HALF_LIFE_DAYS = 90
LEAST_STRENGTH = 0.10
"""Edges of less strength are not followed; they are never deleted."""

ENTITY_GRACE_DAYS = 30
ENTITY_HALF_LIFE_DAYS = 180
LEAST_STANDING = 0.1

STEP = 0.05
_TOLERANCE = 1e-9
_DAY = timedelta(days=1)


def entry_weight(idle: timedelta) -> float:
    """Return the weight of an entry that was not used for so long: 1 for a week, then 0.12 less a day, at least 0.

    Args:
        idle: Since its last use; what is used in the future counts as used now.
    """
    return max(0.0, 1 - LOSS_PER_DAY * max(0.0, idle / _DAY - GRACE_DAYS))


def edge_standing(idle: timedelta) -> float:
    """Return the share of its strength that an edge keeps: halved every 90 days, rounded down to steps of 0.05.

    The steps keep a daily run from rewriting every edge every day: a young edge changes about once a week, an old
    one seldom. Younger than the first step, 6.7 days, it keeps all, so that new edges are not touched at all.

    Args:
        idle: Since it was last told; what is told in the future counts as told now.
    """
    return _in_steps(_halved(idle / _DAY, EDGE_HALF_LIFE_DAYS))


def entity_standing(idle: timedelta, sources: int, *, is_asserted: bool = False) -> float:
    """Return the share of its confidence that an entity keeps when nobody tells about it.

    All for 30 days, then halved every 180 days times 1 + log2(sources), rounded as :func:`edge_standing`, at least
    0.1: what many told of is forgotten more slowly.

    Args:
        idle: Since it was last told about.
        sources: How many memories tell about it, from 1.
        is_asserted: Whether somebody entered it as such; then it loses nothing.
    """
    if is_asserted:
        return 1.0
    half_life = ENTITY_HALF_LIFE_DAYS * (1 + math.log2(max(1, sources)))
    return max(LEAST_STANDING, _in_steps(_halved(idle / _DAY - ENTITY_GRACE_DAYS, half_life)))


def _halved(days: float, half_life_days: float) -> float:
    return float(0.5 ** (max(0.0, days) / half_life_days))


def _in_steps(share: float) -> float:
    if share > 1 - STEP:
        return 1.0
    return round(math.floor(share / STEP + _TOLERANCE) * STEP, 2)
