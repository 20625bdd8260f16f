"""Memory profiles of agents: requests and answers."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import Field

from lamina.api.fields import ABSENT, MAX_TIERS, AtMost, Count, Flag, Fraction, Output
from lamina.api.scope import ScopeIn
from lamina.core.memory_profiles import MAX_SUFFIX_CHARS, MAX_TTL_DAYS, MemoryProfile, SearchDefaults
from lamina.core.queries import MAX_LIMIT
from lamina.core.tiers import TIERS, TierName


class MemoryProfileIn(ScopeIn):
    """How an agent wants to remember; it replaces the profile before it."""

    tiers: list[TierName] = Field(
        list(TIERS), min_length=1, max_length=MAX_TIERS, description="Tiers that are searched if a request names none."
    )
    max_context_chunks: Count = Field(
        ABSENT, ge=1, le=MAX_LIMIT, description="Most memories in a block. Default: context.max_chunks."
    )
    min_relevance: Fraction = Field(
        ABSENT, description="The least fused score, 0 to 1. Default: context.min_relevance."
    )
    ttl_days: float | None = Field(
        None, gt=0, le=MAX_TTL_DAYS, strict=True, description="Days after which a memory is not for it any more."
    )
    prompt_suffix: Annotated[str, AtMost(MAX_SUFFIX_CHARS)] = Field(
        "", description="What its context block ends with; it counts in the budget."
    )
    profile: Flag = Field(
        ABSENT,
        description="Whether its blocks begin with the user's profile (tier 3). Default: the workspace's, then yes.",
    )

    def memory_profile(self, defaults: SearchDefaults) -> MemoryProfile:
        """Return the profile, with the configured numbers where none was sent."""
        sent = self.model_fields_set
        return MemoryProfile(
            tiers=tuple(TIERS[name].tier for name in self.tiers),
            max_context_chunks=self.max_context_chunks if "max_context_chunks" in sent else defaults.limit,
            min_relevance=self.min_relevance if "min_relevance" in sent else defaults.min_score,
            ttl_days=self.ttl_days,
            prompt_suffix=self.prompt_suffix,
            shows_profile=self.profile if "profile" in sent else defaults.shows_profile,
        )


class MemoryProfileOut(Output):
    """How an agent remembers."""

    agent: str = Field(description="Whose profile it is.")
    tiers: list[TierName] = Field(description="Tiers that are searched if a request names none.")
    max_context_chunks: int = Field(description="Most memories in a context block.")
    min_relevance: float = Field(description="The least fused score.")
    ttl_days: float | None = Field(description="Days after which a memory is not for it any more; none for no limit.")
    prompt_suffix: str = Field(description="What its context block ends with.")
    profile: bool = Field(description="Whether its blocks begin with the user's profile.")
    updated_at: datetime | None = Field(description="When it was written, UTC; none where these are the defaults.")
    unverified: bool = Field(
        description="Whether it was written by a key that is neither bound to the agent nor an admin's."
    )

    @classmethod
    def from_profile(cls, agent: str, profile: MemoryProfile) -> Self:
        """Show an agent's profile."""
        tiers = [name for name, spec in TIERS.items() if spec.tier in profile.tiers]
        shown = {"agent": agent, "tiers": tiers, "profile": profile.shows_profile}
        return cls.from_attributes(profile, **shown, unverified=not profile.is_verified)
