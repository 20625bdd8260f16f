"""How long a note stays warm without being asked for: the more often it was found, the longer."""

import math
from datetime import datetime, timedelta
from typing import Literal

DAYS_PER_DOUBLING = 7.0
Temperature = Literal["warm", "cold"]


def lifespan(hits: int) -> timedelta:
    """Return how long a note with this many hits stays warm after the last of them: 7 · log2(hits + 1) days.

    Args:
        hits: How often it was found, from 1: its writing counts as the first.

    Source:
        NovaMem, lifespan of short-term entries.
    """
    return timedelta(days=DAYS_PER_DOUBLING * math.log2(hits + 1))


def is_warm(hits: int, last_hit_at: datetime, now: datetime) -> bool:
    """Tell whether a note has been idle for less than its lifespan."""
    return now - last_hit_at < lifespan(hits)


def is_promoted(hits_before: int, last_hit_before: datetime, now: datetime) -> bool:
    """Tell whether a hit now makes a cold note warm: with it counted, the lifespan exceeds the idle time so far."""
    return is_warm(hits_before + 1, last_hit_before, now)
