"""The knowledge graph: requests and answers."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import ABSENT, Count, Flag, Fraction, Id, Moment, Output, PageOut, SourceName, Strict
from lamina.api.scope import ScopeIn
from lamina.core.memories import MAX_ALIASES, MAX_ENTITIES, Edge, Entity, as_utc
from lamina.core.queries import MAX_DEPTH, MAX_LIMIT

MAX_ITEMS = 500
Aliases = Annotated[list[Id], Field(max_length=MAX_ALIASES)]


class EntityFields(Strict):
    """A person, place, thing or idea."""

    name: Id = Field(description="Its name; names that differ in case, width or composition are one entity.")
    type: Id = Field("thing", description="What it is: person, organisation, place, thing, or a word of your own.")
    aliases: Aliases = Field(default_factory=list, description="Other names.")
    confidence: Fraction = Field(1.0, description="How sure it is, 0 to 1.")

    def entity(self) -> Entity:
        """Return the entity to store."""
        return Entity(self.name, self.type, tuple(self.aliases), self.confidence)


class EntitiesIn(ScopeIn):
    """Entities to state."""

    entities: list[EntityFields] = Field(min_length=1, max_length=MAX_ENTITIES, description="The entities.")


class EdgeFields(Strict):
    """A directed statement between two entities."""

    subject: Id = Field(description="Name of the entity it starts from.")
    type: Id = Field(description="How they stand, in lower case with underscores: works_at, married_to.")
    object: Id = Field(description="Name of the entity it points to.")
    strength: Fraction = Field(0.8, description="How much following it carries over, 0 to 1.")
    confidence: Fraction = Field(0.9, description="How sure this source is of it, 0 to 1.")
    source: SourceName = Field("api", description="Where it is from, at most 1 024 characters; one source counts once.")

    def edge(self) -> Edge:
        """Return the edge to store."""
        return Edge(self.subject, self.type, self.object, self.strength, self.confidence)


class EdgesIn(ScopeIn):
    """Edges to state; entities that are not known yet are made."""

    edges: list[EdgeFields] = Field(min_length=1, max_length=MAX_ITEMS, description="The edges.")


class PutNodeOut(Output):
    """The result of stating an entity or an edge."""

    id: UUID = Field(description="Its id, or that of the one that was there before.")
    existed: bool = Field(description="Whether it was there before.")


class PutNodesOut(BaseModel):
    """One result an item, in their order."""

    results: list[PutNodeOut] = Field(description="One entry an item, in their order.")


class EntityOut(Output):
    """An entity."""

    id: UUID = Field(description="Id of the entity.")
    name: str = Field(description="As it was first written.")
    type: str = Field(description="What it is.")
    aliases: list[str] = Field(description="Other names.")
    confidence: float = Field(description="How sure it is, 0 to 1.")
    mentions: int = Field(description="How many memories mention it that you may see.")
    first_seen_at: datetime = Field(description="When it was first mentioned, UTC.")
    last_seen_at: datetime = Field(description="When it was last mentioned, UTC; right to a minute.")


class EntitiesOut(PageOut):
    """Entities of a place."""

    entities: list[EntityOut] = Field(description="The one that was made last first.")


class NeighbourOut(Output):
    """A link to something else."""

    kind: str = Field(description="about, mentions, similar, or the type of an edge.")
    direction: str = Field(description="out if it points away from what was asked, in if it points to it.")
    strength: float = Field(description="How much following it carries over, 0 to 1.")
    id: UUID = Field(description="What is at the other side.")
    tier: str = Field(description="Where that lives: graph for an entity, else the memory's tier.")
    content: str = Field(description="Its name, or the beginning of its text.")


class NamesakeOut(Output):
    """Another entity of the same name."""

    id: UUID = Field(description="Id of the entity, by which it can be asked for.")
    name: str = Field(description="As it was first written.")
    type: str = Field(description="What it is.")


class NeighboursOut(BaseModel):
    """The direct links of an entity or a memory."""

    entity: EntityOut | None = Field(
        description="The entity that was asked: of several, the one whose own name it is, or else the oldest."
        " None if a memory was asked."
    )
    namesakes: list[NamesakeOut] = Field(
        default_factory=list, description="Other entities that are known by the name, too."
    )
    neighbours: list[NeighbourOut] = Field(description="The strongest first.")
    is_capped: bool = Field(description="Whether there are more than were asked for.")


class TraverseIn(ScopeIn):
    """The starts of a traversal and its limits."""

    names: list[Id] = Field(default_factory=list, max_length=MAX_ITEMS, description="Names of entities to start from.")
    ids: list[UUID] = Field(
        default_factory=list, max_length=MAX_ITEMS, description="Entities or memories to start from."
    )
    depth: Count = Field(2, ge=1, le=MAX_DEPTH, description="How many links to follow, 1 to 3.")
    kinds: list[Id] = Field(
        default_factory=list, max_length=64, description="Kinds of link that may be followed; none allows all."
    )
    as_of: Moment = Field(ABSENT, description="Follow only what was seen until then.")
    limit: Count = Field(50, ge=1, le=MAX_LIMIT, description="Most nodes to return.")
    cache: Flag = Field(default=True, description="Let the cache of walks answer; false walks anew.")

    def moment(self) -> datetime | None:
        """Return the moment in UTC, if one was sent."""
        return as_utc(self.as_of, "as_of") if "as_of" in self.model_fields_set else None


class StepOut(BaseModel):
    """One link of a path."""

    kind: str = Field(description="Kind of the link.")
    direction: str = Field(description="out if it was followed in its direction, else in.")
    strength: float = Field(description="Its strength, 0 to 1.")
    id: UUID = Field(description="The node it led to.")


class NodeOut(BaseModel):
    """A node that was reached."""

    id: UUID = Field(description="Id of the entity or memory.")
    tier: str = Field(description="graph for an entity, else the memory's tier.")
    content: str = Field(description="Its name, or the beginning of its text.")
    score: float = Field(description="Product of the strengths along the best path, 0 to 1.")
    path: list[StepOut] = Field(description="The best path; empty for a start.")


class TraverseOut(BaseModel):
    """The nodes that a traversal reached."""

    nodes: list[NodeOut] = Field(description="Best first, the starts included.")
    visited: int = Field(description="Links that were followed.")
    is_capped: bool = Field(description="Whether links were left out because there were too many.")
    cache: list[str] = Field(default_factory=list, description="graph, if the answer comes from the cache of walks.")
