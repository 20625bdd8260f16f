"""Memory profiles: an agent's defaults of its requests, and their precedence over the settings."""

from dataclasses import dataclass, fields
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TypeVar

from lamina.core.memories import as_utc
from lamina.core.queries import MAX_LIMIT
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean

Value = TypeVar("Value")
MAX_SUFFIX_CHARS = 10_000
MAX_TTL_DAYS = 36_500.0


@dataclass(frozen=True, slots=True)
class MemoryProfile:
    """An agent's defaults of its requests.

    Args:
        tiers: The tiers that are searched for it.
        max_context_chunks: Most memories in its context block.
        min_relevance: The least fused score of what it gets, 0..1.
        ttl_days: Older memories are not for it; ``None`` means of any age.
        prompt_suffix: What its context block ends with.
        updated_at: When it was written, in UTC; ``None`` for the defaults.
        is_verified: Whether the agent itself, or an admin, wrote it.
        shows_profile: Whether its context block begins with the user's profile.
    """

    tiers: tuple[Tier, ...]
    max_context_chunks: int
    min_relevance: float
    ttl_days: float | None = None
    prompt_suffix: str = ""
    updated_at: datetime | None = None
    is_verified: bool = False
    shows_profile: bool = True


def clean_memory_profile(profile: MemoryProfile) -> MemoryProfile:
    """Return the profile with a clean suffix and each tier once.

    Raises:
        InvalidInput: Naming the field that is out of range or unclean.
    """
    if not profile.tiers:
        raise InvalidInput("tiers", "is empty; name at least one tier")
    if not 1 <= profile.max_context_chunks <= MAX_LIMIT:
        raise InvalidInput("max_context_chunks", f"is {profile.max_context_chunks}; expected 1 to {MAX_LIMIT}")
    if not 0 <= profile.min_relevance <= 1:
        raise InvalidInput("min_relevance", f"is {profile.min_relevance}; expected 0 to 1")
    if profile.ttl_days is not None and not 0 < profile.ttl_days <= MAX_TTL_DAYS:
        raise InvalidInput("ttl_days", f"is {profile.ttl_days}; expected more than 0, up to {MAX_TTL_DAYS:.0f}")
    return MemoryProfile(
        tiers=tuple(dict.fromkeys(profile.tiers)),
        max_context_chunks=profile.max_context_chunks,
        min_relevance=profile.min_relevance,
        ttl_days=profile.ttl_days,
        prompt_suffix=clean(profile.prompt_suffix, "prompt_suffix", limit=MAX_SUFFIX_CHARS),
        updated_at=profile.updated_at,
        is_verified=profile.is_verified,
        shows_profile=profile.shows_profile,
    )


class Purpose(Enum):
    """Purpose of a search."""

    RESULTS = "results"
    CONTEXT = "context"


@dataclass(frozen=True, slots=True)
class SearchPreferences:
    """Preferences of a request; ``None`` where it has none.

    Args:
        tiers: Which tiers to search.
        limit: Most memories.
        min_score: The least fused score.
        since: Not before this moment.
        until: Before this moment.
        as_of: The moment that counts as now.
    """

    tiers: tuple[Tier, ...] | None = None
    limit: int | None = None
    min_score: float | None = None
    since: datetime | None = None
    until: datetime | None = None
    as_of: datetime | None = None


PREFERENCES = tuple(field.name for field in fields(SearchPreferences))


@dataclass(frozen=True, slots=True)
class SearchDefaults:
    """Values for a request where neither it nor a profile names one; memories older than ``ttl_days`` are left out."""

    tiers: tuple[Tier, ...]
    limit: int
    min_score: float
    ttl_days: float | None = None
    shows_profile: bool = True


@dataclass(frozen=True, slots=True)
class EffectiveSearch:
    """Effective values of one request."""

    tiers: tuple[Tier, ...]
    limit: int
    min_score: float
    since: datetime | None
    suffix: str
    is_suffix_verified: bool = False
    shows_profile: bool = True


def resolve_search(
    preferences: SearchPreferences,
    profile: MemoryProfile | None,
    defaults: SearchDefaults,
    purpose: Purpose,
    now: datetime,
) -> EffectiveSearch:
    """Resolve the effective values: the request's first, then the profile's, then the defaults.

    A time to live is no default but a limit: of it and the request's ``since`` the later holds.

    Args:
        preferences: Those of the request.
        profile: The agent's, if it has one.
        defaults: From the settings, for this purpose.
        purpose: A profile limits the number of memories in a context block, not of results.
        now: The time of day, in UTC.
    """
    if profile is None:
        return EffectiveSearch(
            tiers=_first(preferences.tiers, defaults.tiers),
            limit=_first(preferences.limit, defaults.limit),
            min_score=_first(preferences.min_score, defaults.min_score),
            since=_since(preferences, defaults.ttl_days, now),
            suffix="",
            shows_profile=defaults.shows_profile,
        )
    chunks = profile.max_context_chunks if purpose is Purpose.CONTEXT else defaults.limit
    ttl_days = min((days for days in (profile.ttl_days, defaults.ttl_days) if days is not None), default=None)
    return EffectiveSearch(
        tiers=_first(preferences.tiers, profile.tiers),
        limit=_first(preferences.limit, chunks),
        min_score=_first(preferences.min_score, profile.min_relevance),
        since=_since(preferences, ttl_days, now),
        suffix=profile.prompt_suffix,
        is_suffix_verified=profile.is_verified,
        shows_profile=profile.shows_profile,
    )


def _first(preference: Value | None, otherwise: Value) -> Value:
    return otherwise if preference is None else preference


def _since(preferences: SearchPreferences, ttl_days: float | None, now: datetime) -> datetime | None:
    since = None if preferences.since is None else as_utc(preferences.since, "since")
    if ttl_days is None:
        return since
    reference = now if preferences.as_of is None else as_utc(preferences.as_of, "as_of")
    born = _before(reference, timedelta(days=ttl_days))
    later = born if since is None else max(since, born)
    if preferences.until is None or later == since:
        return later
    # A window that ended before the oldest memory the agent may see holds nothing; that is no error of the caller's.
    return min(later, _before(as_utc(preferences.until, "until"), timedelta.resolution))


def _before(moment: datetime, age: timedelta) -> datetime:
    """Return the moment that is older by some age, or the oldest there is."""
    try:
        return moment - age
    except OverflowError:
        return datetime.min.replace(tzinfo=UTC)
