"""Facts with the time in which they hold: requests and answers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import Field

from lamina.api.fields import ABSENT, Fraction, Id, Moment, Output, PageOut, SourceName
from lamina.api.scope import ScopeIn
from lamina.core.memories import Edge, as_utc

MAX_REPLACED = 64
Replaced = Annotated[list[UUID], Field(max_length=MAX_REPLACED)]


class FactIn(ScopeIn):
    """A fact to state, and those that it replaces."""

    subject: Id = Field(description="Name of the entity that the fact is about.")
    relation: Id = Field(
        description="How it stands to the object: lives_in, has_status. What can hold only once ends the older one."
    )
    object: Id = Field(description="Name of the entity at the other side.")
    valid_from: Moment = Field(ABSENT, description="Since when it holds; since now if not given.")
    replaces: Replaced = Field(
        default_factory=list, description="Ids of facts of this namespace that end where this one begins."
    )
    confidence: Fraction = Field(0.9, description="How sure this source is of it, 0 to 1.")
    source: SourceName = Field("api", description="Where it is from, at most 1 024 characters; one source counts once.")

    def edge(self) -> Edge:
        """Return the edge to store."""
        return Edge(self.subject, self.relation, self.object, confidence=self.confidence)

    def begins_at(self) -> datetime | None:
        """Return since when it holds in UTC, if that was sent."""
        return as_utc(self.valid_from, "valid_from") if "valid_from" in self.model_fields_set else None


class StatedFactOut(Output):
    """The result of stating a fact."""

    id: UUID = Field(description="Its id, or that of the equal one that was there before.")
    existed: bool = Field(description="Whether it was there before.")
    replaced: list[UUID] = Field(
        description="Facts named by replaces that ended with it; not those that its relation ends."
    )


class FactOut(Output):
    """A fact, and when it holds."""

    id: UUID = Field(description="Id of the fact.")
    subject: str = Field(description="Name of the entity that it is about.")
    relation: str = Field(description="How it stands to the object.")
    object: str = Field(description="Name of the entity at the other side.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    valid_from: datetime = Field(description="Since when it holds, UTC.")
    valid_to: datetime | None = Field(description="The moment from which it holds no longer; null while it does.")
    recorded_at: datetime = Field(description="When it was first stored, UTC.")
    replaced_by: UUID | None = Field(description="The fact that took its place, if one did.")


class FactsOut(PageOut):
    """The facts of an entity."""

    facts: list[FactOut] = Field(description="The latest first.")
