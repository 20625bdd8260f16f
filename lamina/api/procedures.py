"""Procedures: requests and answers."""

from datetime import datetime
from typing import Annotated, Any, Literal, Self
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import (
    ABSENT,
    MAX_BATCH,
    AtMost,
    Count,
    Fraction,
    Id,
    Output,
    PageOut,
    Question,
    SourceName,
    Strict,
    Tags,
)
from lamina.api.scope import ScopeIn
from lamina.core.filters import parse
from lamina.core.procedures import (
    MAX_ACTION_CHARS,
    MAX_COMMENT_CHARS,
    MAX_TRIGGER_CHARS,
    Procedure,
    ProcedureOutcome,
    ProcedureState,
    StoredProcedure,
)
from lamina.core.queries import MAX_LIMIT, Filters
from lamina.policies.ranking.procedure_matching import Stage

Trigger = Annotated[str, AtMost(MAX_TRIGGER_CHARS)]
Action = Annotated[str, AtMost(MAX_ACTION_CHARS)]
Comment = Annotated[str, AtMost(MAX_COMMENT_CHARS)]


class ProcedureFields(Strict):
    """The fields of a procedure."""

    trigger: Trigger = Field(description="When to do it: the situation, as it is met or asked about.")
    action: Action = Field(description="What to do then.")
    tags: Tags = Field(default_factory=list, description="Labels, each compared whole.")
    metadata: dict[str, Any] = Field(default_factory=dict, description="Your data, returned untouched.")
    source: SourceName = Field("api", description="Where it comes from, at most 1 024 characters.")

    def procedure(self) -> Procedure:
        """Return the procedure to store."""
        return Procedure(self.trigger, self.action, tuple(self.tags), self.metadata, self.source)


class ProcedureIn(ScopeIn, ProcedureFields):
    """A procedure to store; it belongs to the workspace, and the agent that writes it is kept."""


class PutProcedureOut(Output):
    """The result of storing a procedure."""

    id: UUID = Field(description="Id of the procedure, or of the equal one that was there before.")
    existed: bool = Field(description="Whether the workspace already had this trigger with this action.")


class ProcedureBatchIn(ScopeIn):
    """Procedures to store together; an item that is wrong does not stop the others."""

    procedures: list[Any] = Field(
        min_length=1,
        max_length=MAX_BATCH,
        description="Each an object with the fields of a procedure (trigger, action, tags, …).",
    )


class ProcedurePatch(Strict):
    """Fields of a procedure to change; the others stay, its outcomes too."""

    trigger: Trigger = Field(ABSENT, description="New trigger; it is embedded and indexed again.")
    action: Action = Field(ABSENT, description="New action.")
    tags: Tags = Field(ABSENT, description="New tags, in place of all old ones.")
    metadata: dict[str, Any] = Field(ABSENT, description="New metadata, in place of the old.")

    def changes(self) -> dict[str, Any]:
        """Return the fields that were sent."""
        sent = {name: getattr(self, name) for name in self.model_fields_set}
        return sent | ({"tags": tuple(sent["tags"])} if "tags" in sent else {})


class ProcedureOut(Output):
    """A stored procedure."""

    id: UUID = Field(description="Id of the procedure.")
    trigger: str = Field(description="When to do it.")
    action: str = Field(description="What to do then.")
    tags: list[str] = Field(description="Labels.")
    metadata: dict[str, Any] = Field(description="Your data.")
    source: str = Field(description="Where it comes from.")
    workspace: str = Field(description="Project it belongs to.")
    namespace: str = Field(description="Subdivision of the workspace.")
    agent: str | None = Field(description="Agent that wrote it.")
    strength: float = Field(description="What its outcomes make of it, 0 to 1; 0.5 while untried.")
    successes: int = Field(description="How many runs succeeded with it.")
    failures: int = Field(description="How many runs failed with it.")
    created_at: datetime = Field(description="When it was stored, UTC.")
    updated_at: datetime = Field(description="When it was last changed, UTC.")
    last_used_at: datetime | None = Field(description="When an outcome was last reported, UTC.")
    state: ProcedureState = Field(description="active, or proposed or dropped: these are not found.")
    is_learnt: bool = Field(description="Whether runs of agents proposed it.")
    is_private: bool = Field(description="Whether runs of one user taught it, so that it is found for that user alone.")

    @classmethod
    def from_stored(cls, stored: StoredProcedure) -> Self:
        """Show a stored procedure."""
        return cls.from_attributes(stored, stored.procedure)


class StateIn(Strict):
    """A decision on a procedure."""

    state: Literal["active", "dropped"] = Field(description="active confirms it for the whole workspace.")


class ProceduresOut(PageOut):
    """A page of procedures."""

    procedures: list[ProcedureOut] = Field(description="The latest first.")


class MatchIn(ScopeIn):
    """A situation to find procedures for."""

    query: Question = Field(description="What is asked, or what the situation is.")
    limit: Count = Field(ABSENT, ge=1, le=MAX_LIMIT, description="Most matches. Default: search.limit.")
    min_score: Fraction = Field(0.0, description="Only matches with at least this score, 0 to 1.")
    tags: Tags = Field(default_factory=list, description="Only procedures with all of these tags.")
    filters: dict[str, Any] = Field(
        default_factory=dict,
        description="Any other condition, as in a search; importance is a procedure's strength.",
    )

    def all_filters(self) -> Filters:
        """Return every filter of the request.

        Raises:
            InvalidInput: Naming the part of ``filters`` that is no condition.
        """
        where = parse(self.filters, "filters") if self.filters else None
        return Filters(tuple(self.tags), min_confidence=0.0, where=where)


class MatchOut(ProcedureOut):
    """A procedure that matches."""

    stage: Stage = Field(description="How it matched: prefix, keyword or semantic; earlier stages come first.")
    score: float = Field(description="0 to 1: from 0.8 by prefix, from 0.5 by keyword, below 0.5 by meaning.")
    figures: dict[str, float] = Field(description="Share of the prefix and of common words, and the cosine.")


class MatchesOut(BaseModel):
    """The procedures that match."""

    matches: list[MatchOut] = Field(description="Best first.")
    degraded: list[str] = Field(description="What did not answer: embedder, without which nothing matches by meaning.")


class OutcomeIn(Strict):
    """The outcome of following a procedure."""

    succeeded: Annotated[bool, Field(strict=True)] = Field(description="Whether it worked.")
    run: Id = Field(ABSENT, description="Your id of the run: it counts once. Without it, each report counts.")
    comment: Comment = Field(ABSENT, description="What there is to say about it.")
    agent: Id = Field(ABSENT, description="Agent that reports.")

    def outcome(self) -> ProcedureOutcome:
        """Return the outcome to store."""
        return ProcedureOutcome(self.succeeded, self.run, self.comment)


class ReinforcedOut(Output):
    """The procedure after a report."""

    id: UUID = Field(description="Id of the procedure.")
    existed: bool = Field(description="Whether the run had been reported before; then nothing changed.")
    strength: float = Field(description="What its outcomes make of it now, 0 to 1.")
    successes: int = Field(description="How many runs succeeded with it.")
    failures: int = Field(description="How many runs failed with it.")


class OutcomeOut(Output):
    """A reported outcome."""

    id: UUID = Field(description="Id of the report.")
    succeeded: bool = Field(description="Whether it worked.")
    run: str | None = Field(description="Your id of the run.")
    comment: str | None = Field(description="What was said about it.")
    agent: str | None = Field(description="Agent that reported.")
    reported_at: datetime = Field(description="When it was reported, UTC.")


class OutcomesOut(PageOut):
    """A page of outcomes."""

    outcomes: list[OutcomeOut] = Field(description="The latest first.")
