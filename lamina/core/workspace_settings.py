"""Settings of a workspace: between a memory profile and the settings of the installation."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from lamina.core.queries import FusionMethod, WeightName
from lamina.core.tiers import Tier

MAX_RETENTION_DAYS = 36_500.0
SessionScope = Literal["namespace", "session"]
"""Whose messages a request without a session finds: all of its namespace, or none."""

ProfileScope = Literal["workspace", "user"]
"""Which profile of a user turns write: that of the namespace, or that of the whole tenant."""


@dataclass(frozen=True, slots=True)
class WorkspaceSettings:
    """The settings of a workspace; ``None`` where the installation's hold.

    Args:
        tiers: The tiers that are searched.
        limit: Most results of a search.
        max_context_chunks: Most memories in a context block.
        min_relevance: The least fused score in a context block, 0..1.
        budget_tokens: Most tokens of a context block.
        fusion: How the rankings become one.
        weights: Of words, meaning, links and single sources.
        session_scope: Sessions that are searched where a request names none.
        profile: Whether a context block begins with the user's profile.
        profile_scope: Which profile the turns of the workspace write.
        retention_days: Older memories are found no more; notes are deleted.
        updated_at: When they were written, in UTC; ``None`` if they never were.
    """

    tiers: tuple[Tier, ...] | None = None
    limit: int | None = None
    max_context_chunks: int | None = None
    min_relevance: float | None = None
    budget_tokens: int | None = None
    fusion: FusionMethod | None = None
    weights: Mapping[WeightName, float] = field(default_factory=dict)
    session_scope: SessionScope | None = None
    profile: bool | None = None
    profile_scope: ProfileScope | None = None
    retention_days: float | None = None
    updated_at: datetime | None = None


UNSET = WorkspaceSettings()
