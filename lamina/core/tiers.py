"""The record of each tier; all lists of tiers, sources and projections are derived from it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, StrEnum
from typing import Literal, get_args


class Tier(IntEnum):
    """The five tiers of memory and the documents beside them; the numbers are stored."""

    SESSIONS = 1
    NOTES = 2
    PROFILE = 3  # Read whole for a user and never searched, so no record describes it.
    GRAPH = 4
    PROCEDURES = 5
    DOCUMENTS = 6  # Uploaded, not lived through.


# Name of a searched tier in requests, settings and metrics.
TierName = Literal["sessions", "notes", "graph", "procedures", "documents"]


class Source(StrEnum):
    """A ranking that fusion combines; each belongs to one tier."""

    SESSION_VECTORS = "session_vectors"
    SESSION_WORDS = "session_words"
    SESSION_CONTEXT = "session_context"
    NOTES_HYBRID = "notes_hybrid"
    NOTES_WARM = "notes_warm"
    NOTES_COLD = "notes_cold"
    GRAPH = "graph"
    PROCEDURES = "procedures"
    DOCUMENTS = "documents"


class Modality(StrEnum):
    """How a source recognises a memory."""

    KEYWORD = "keyword"
    VECTOR = "vector"
    GRAPH = "graph"


class Segment(StrEnum):
    """A tier that a workspace can share; messages and profiles never are."""

    NOTES = "notes"
    GRAPH = "graph"
    PROCEDURES = "procedures"
    DOCUMENTS = "documents"


ProjectionName = Literal["messages", "notes", "cold", "documents", "graph"]
# Section of the settings that chooses where a projection is kept.
StoreSection = Literal["hybrid", "vectors", "graph"]


@dataclass(frozen=True, slots=True)
class SourceSpec:
    """How one source ranks.

    Args:
        modalities: How it recognises a memory.
        lacks: Temperature of the memories that it cannot hold: its silence does not speak against them.
    """

    modalities: frozenset[Modality]
    lacks: Literal["warm", "cold"] | None = None


@dataclass(frozen=True, slots=True)
class ProjectionSpec:
    """How one projection is kept.

    Args:
        store: Section of the settings that chooses its store.
        source: The ranking that is made from it.
        has_vectors: Whether its index holds vectors beside words.
        by_session: Whether its index can be narrowed to a session.
    """

    store: StoreSection
    source: Source
    has_vectors: bool = True
    by_session: bool = False

    @property
    def is_of_generation(self) -> bool:
        """Whether it holds chunks as one embedding model cuts them; the graph holds whole memories."""
        return self.store != "graph"


@dataclass(frozen=True, slots=True)
class TierSpec:
    """The record of one tier.

    Args:
        tier: Its number.
        name: In requests, settings and metrics.
        sources: The rankings that its searcher answers with.
        projections: The stores that its searcher keeps beside Postgres.
        tables: Tables of Postgres whose rows are its size.
        embedded: Kinds of rows that have vectors, in the order in which they are embedded again.
        segment: Under which it can be shared, if it can.
        is_linked: Whether its memories are nodes of the graph, to which links lead.
    """

    tier: Tier
    name: TierName
    sources: Mapping[Source, SourceSpec]
    tables: tuple[str, ...]
    embedded: tuple[str, ...]
    projections: Mapping[ProjectionName, ProjectionSpec] = field(default_factory=dict)
    segment: Segment | None = None
    is_linked: bool = False


_WORDS, _VECTORS = frozenset({Modality.KEYWORD}), frozenset({Modality.VECTOR})

_SPECS = (
    TierSpec(
        tier=Tier.SESSIONS,
        name="sessions",
        sources={
            Source.SESSION_VECTORS: SourceSpec(_VECTORS),
            Source.SESSION_WORDS: SourceSpec(_WORDS),
            Source.SESSION_CONTEXT: SourceSpec(_VECTORS),  # Its word figures are those of SESSION_WORDS.
        },
        tables=("messages",),
        embedded=("messages",),
        projections={"messages": ProjectionSpec("hybrid", Source.SESSION_WORDS, has_vectors=False, by_session=True)},
        is_linked=True,
    ),
    TierSpec(
        tier=Tier.NOTES,
        name="notes",
        sources={
            Source.NOTES_HYBRID: SourceSpec(_WORDS | _VECTORS, lacks="cold"),
            Source.NOTES_WARM: SourceSpec(_WORDS),
            Source.NOTES_COLD: SourceSpec(_VECTORS, lacks="warm"),
        },
        tables=("notes",),
        embedded=("notes",),
        projections={
            "notes": ProjectionSpec("hybrid", Source.NOTES_HYBRID),
            "cold": ProjectionSpec("vectors", Source.NOTES_COLD),
        },
        segment=Segment.NOTES,
        is_linked=True,
    ),
    TierSpec(
        tier=Tier.GRAPH,
        name="graph",
        sources={Source.GRAPH: SourceSpec(frozenset({Modality.GRAPH}))},
        tables=("entities", "edges"),
        embedded=("entities",),
        projections={"graph": ProjectionSpec("graph", Source.GRAPH, has_vectors=False)},
        segment=Segment.GRAPH,
    ),
    TierSpec(
        tier=Tier.PROCEDURES,
        name="procedures",
        sources={Source.PROCEDURES: SourceSpec(_WORDS | _VECTORS)},
        tables=("procedures",),
        embedded=("procedures",),
        segment=Segment.PROCEDURES,
    ),
    TierSpec(
        tier=Tier.DOCUMENTS,
        name="documents",
        sources={Source.DOCUMENTS: SourceSpec(_WORDS | _VECTORS)},
        tables=("documents",),
        embedded=("passages",),
        projections={"documents": ProjectionSpec("hybrid", Source.DOCUMENTS)},
        segment=Segment.DOCUMENTS,
        is_linked=True,
    ),
)
# Every searched tier by its name.
TIERS: Mapping[TierName, TierSpec] = {spec.name: spec for spec in _SPECS}
SEARCHED_TIERS = tuple(spec.tier for spec in _SPECS)
SOURCES: Mapping[Source, SourceSpec] = {source: kind for spec in _SPECS for source, kind in spec.sources.items()}
# The tier that answers for a source; the graph also ranks memories of other tiers that it leads to.
TIER_OF: Mapping[Source, Tier] = {source: spec.tier for spec in _SPECS for source in spec.sources}
TIER_OF_SEGMENT: Mapping[Segment, Tier] = {spec.segment: spec.tier for spec in _SPECS if spec.segment}
_PROJECTIONS = {name: kept for spec in _SPECS for name, kept in spec.projections.items()}
PROJECTIONS: Mapping[ProjectionName, ProjectionSpec] = {name: _PROJECTIONS[name] for name in get_args(ProjectionName)}
