"""The lifespan of warm notes: each doubling of its hits keeps a note warm for another week."""

import math
from datetime import datetime, timedelta
from typing import Literal

DAYS_PER_DOUBLING = 7.0
Temperature = Literal["warm", "cold"]


def lifespan(hits: int) -> timedelta:
    """Return the time that a note stays warm after its last hit: 7 · log2(hits + 1) days.

    Args:
        hits: How often it was found, from 1: writing it counts as the first.

    Source:
        NovaMem, lifespan of short-term entries.
    """
    return timedelta(days=DAYS_PER_DOUBLING * math.log2(hits + 1))


def is_warm(hits: int, last_hit_at: datetime, now: datetime) -> bool:
    """Report whether a note has been idle for less than its lifespan."""
    return now - last_hit_at < lifespan(hits)


def is_promoted(hits_before: int, last_hit_before: datetime, now: datetime) -> bool:
    """Report whether a hit now makes a cold note warm: its lifespan with this hit exceeds its idle time so far."""
    return is_warm(hits_before + 1, last_hit_before, now)
