"""Decay over idle days: the weight of notes, the strength of edges and the confidence of entities."""

import math
from datetime import timedelta

# A note that is not found loses its place in contexts (see LEAST_WEIGHT) after two weeks: 7 + 0.8 / 0.12 days.
LOSS_PER_DAY = 0.12
GRACE_DAYS = 7
# Notes of less weight leave contexts.
LEAST_WEIGHT = 0.2

EDGE_HALF_LIFE_DAYS = 90
# Edges of less strength are not followed; they are never deleted.
LEAST_STRENGTH = 0.10

ENTITY_GRACE_DAYS = 30
ENTITY_HALF_LIFE_DAYS = 180
LEAST_CONFIDENCE_SHARE = 0.1

# A daily run must not rewrite every edge every day: with steps, a young edge changes about once a week, an old one
# seldom, and one younger than the first step (6.7 days) not at all.
STEP = 0.05
_TOLERANCE = 1e-9
_DAY = timedelta(days=1)


def note_weight(idle: timedelta, lean: float = 0.0) -> float:
    """Return the weight of an idle note: 1 for a week, then 0.12 less a day, at least 0.

    Args:
        idle: Time since its last use; a use in the future counts as one now.
        lean: How far votes lean to useful, -1..1: the week becomes up to two, or none.
    """
    return max(0.0, 1 - LOSS_PER_DAY * max(0.0, idle / _DAY - GRACE_DAYS * (1 + lean)))


def edge_strength_share(idle: timedelta) -> float:
    """Return the share of its strength that an edge keeps: halved every 90 days, rounded down to steps of 0.05.

    Args:
        idle: Time since its last mention; a mention in the future counts as one now.
    """
    return _decayed_share(idle / _DAY, EDGE_HALF_LIFE_DAYS)


def entity_confidence_share(idle: timedelta, sources: int) -> float:
    """Return the share of its confidence that an entity keeps while nothing mentions it.

    All of it for 30 days, then halved every 180 days times 1 + log2(sources), in the same steps as an edge, and at
    least 0.1: an entity with many sources is forgotten more slowly.

    Args:
        idle: Time since its last mention.
        sources: How many memories mention it, from 1.
    """
    half_life_days = ENTITY_HALF_LIFE_DAYS * (1 + math.log2(max(1, sources)))
    return max(LEAST_CONFIDENCE_SHARE, _decayed_share(idle / _DAY - ENTITY_GRACE_DAYS, half_life_days))


def _decayed_share(days: float, half_life_days: float) -> float:
    share = float(0.5 ** (max(0.0, days) / half_life_days))
    if share > 1 - STEP:
        return 1.0
    return round(math.floor(share / STEP + _TOLERANCE) * STEP, 2)
