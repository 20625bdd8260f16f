"""The lifespan of warm notes: each doubling of its hits keeps a note warm for another week, or a number of days."""

import math
from datetime import datetime, timedelta
from typing import Literal

Temperature = Literal["warm", "cold"]


def lifespan(hits: int, days_per_doubling: float) -> timedelta:
    """Return the time that a note stays warm after its last hit: days_per_doubling · log2(hits + 1).

    Args:
        hits: How often it was found, from 1: writing it counts as the first.
        days_per_doubling: 7 in the source.

    Source:
        NovaMem, lifespan of short-term entries.
    """
    return timedelta(days=days_per_doubling * math.log2(hits + 1))


def is_warm(hits: int, last_hit_at: datetime, now: datetime, days_per_doubling: float) -> bool:
    """Report whether a note has been idle for less than its lifespan."""
    return now - last_hit_at < lifespan(hits, days_per_doubling)


def is_promoted(hits_before: int, last_hit_before: datetime, now: datetime, days_per_doubling: float) -> bool:
    """Report whether a hit now makes a cold note warm: its lifespan with this hit exceeds its idle time so far."""
    return is_warm(hits_before + 1, last_hit_before, now, days_per_doubling)
