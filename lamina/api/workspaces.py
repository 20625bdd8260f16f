"""Settings of workspaces: requests and answers."""

from datetime import datetime
from typing import Annotated, Self

from pydantic import BeforeValidator, Field

from lamina.api.fields import ABSENT, MAX_TIERS, Count, Flag, Fraction, Output, Strict, Weight
from lamina.api.search import refuse_unknown_weights
from lamina.core.queries import MAX_LIMIT, FusionMethod, WeightName
from lamina.core.tiers import TIERS, TierName
from lamina.core.workspace_settings import MAX_RETENTION_DAYS, ProfileScope, SessionScope, WorkspaceSettings


class WorkspaceSettingsIn(Strict):
    """Settings of a workspace; they replace those before, and those left out are the installation's."""

    tiers: list[TierName] = Field(
        ABSENT, min_length=1, max_length=MAX_TIERS, description="Tiers that are searched. Default: all."
    )
    limit: Count = Field(ABSENT, ge=1, le=MAX_LIMIT, description="Most results. Default: search.limit.")
    max_context_chunks: Count = Field(
        ABSENT, ge=1, le=MAX_LIMIT, description="Most memories in a block. Default: context.max_chunks."
    )
    min_relevance: Fraction = Field(
        ABSENT, description="The least fused score in a block. Default: context.min_relevance."
    )
    budget_tokens: Count = Field(
        ABSENT, ge=16, le=1_000_000, description="Most estimated tokens of a block. Default: context.budget_tokens."
    )
    fusion: FusionMethod = Field(ABSENT, description="rrf, plain_rrf, weighted or composite. Default: rrf.")
    weights: Annotated[dict[WeightName, Weight], BeforeValidator(refuse_unknown_weights)] = Field(
        default_factory=dict, description="Weights of keyword, vector, graph or single sources, as in a search."
    )
    session_scope: SessionScope = Field(
        ABSENT,
        description="Messages that a request without a session finds: those of all sessions of the namespace, or with "
        "session none. Default: search.session_scope.",
    )
    profile: Flag = Field(ABSENT, description="Whether blocks begin with the user's profile (tier 3). Default: yes.")
    profile_scope: ProfileScope = Field(
        ABSENT,
        description="Which profile of a user turns write: that of the workspace, or with user the one of the whole "
        "tenant, which other workspaces show as well. Default: write.profile_scope.",
    )
    retention_days: float = Field(
        ABSENT,
        gt=0,
        le=MAX_RETENTION_DAYS,
        strict=True,
        description="Days after which a memory is found no more; the job sweep deletes such notes. Default: never.",
    )

    def settings(self) -> WorkspaceSettings:
        """Return the settings to store."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        if "tiers" in sent:
            sent["tiers"] = tuple(TIERS[name].tier for name in dict.fromkeys(self.tiers))
        return WorkspaceSettings(**sent)


class WorkspaceSettingsOut(Output):
    """Settings of a workspace; null where the installation's hold."""

    workspace: str = Field(description="Whose settings they are.")
    tiers: list[TierName] | None = Field(description="Tiers that are searched.")
    limit: int | None = Field(description="Most results.")
    max_context_chunks: int | None = Field(description="Most memories in a block.")
    min_relevance: float | None = Field(description="The least fused score in a block.")
    budget_tokens: int | None = Field(description="Most estimated tokens of a block.")
    fusion: FusionMethod | None = Field(description="How rankings become one.")
    weights: dict[WeightName, float] = Field(description="Weights of keyword, vector, graph or single sources.")
    session_scope: SessionScope | None = Field(description="Messages that a request without a session finds.")
    profile: bool | None = Field(description="Whether blocks begin with the user's profile.")
    profile_scope: ProfileScope | None = Field(description="Which profile turns write.")
    retention_days: float | None = Field(description="Days after which a memory is found no more.")
    updated_at: datetime | None = Field(description="When they were written, UTC; none if they never were.")

    @classmethod
    def from_settings(cls, workspace: str, settings: WorkspaceSettings) -> Self:
        """Show the settings of a workspace."""
        names = [name for name, spec in TIERS.items() if spec.tier in (settings.tiers or ())] or None
        return cls.from_attributes(settings, workspace=workspace, tiers=names, weights=dict(settings.weights))
