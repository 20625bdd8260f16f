"""Each tier in one process, with the projections that it keeps."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, assert_never

from lamina.errors import Misconfigured
from lamina.ports import (
    GraphStore,
    Inventory,
    Projection,
    Searcher,
    TierSearcher,
)
from lamina.queries import TIER_NAMES, Source, Tier, TierName
from lamina.reading.conversation import ConversationSearcher
from lamina.reading.graph import GraphLimits, GraphSearcher
from lamina.reading.search import SourcesOfTier
from lamina.settings import (
    NoGraphSettings,
    Settings,
)
from lamina.stores.hybrid.qdrant_edge import EdgeProjection, Hybrid, QdrantEdgeIndex, SessionWords
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.documents import Documents
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.messages import Messages, MessagesAround, SessionVectors
from lamina.stores.postgres.notes import Notes, NotesAt, NotesWarm
from lamina.stores.postgres.outbox import ProjectionName
from lamina.stores.postgres.procedures import ProceduresSearcher
from lamina.stores.vectors.qdrant_edge_cold import ColdIndex, NotesCold
from lamina.wiring.stores import build_cold_index, build_graph_store, build_index, build_procedure_reads, graph_is_new


async def _nothing() -> None:
    """Do nothing."""


class KeptProjection(Projection[Any], Inventory, Protocol):
    """A projection that can be fed and audited."""


@dataclass(frozen=True, slots=True)
class TierParts:
    """A tier in one process.

    Args:
        searcher: Asks all its sources.
        projections: What it keeps up to date, by name.
        new: Those of them that are empty because their files are new: Postgres has what belongs in them.
        graph: The store that follows links; the graph tier alone has one.
        close: Releases the files that the projections have open.
        aclose: Releases their connections.
    """

    searcher: TierSearcher
    projections: Mapping[ProjectionName, KeptProjection] = field(default_factory=dict)
    new: tuple[ProjectionName, ...] = ()
    graph: GraphStore | None = None
    close: Callable[[], None] = lambda: None
    aclose: Callable[[], Awaitable[None]] = _nothing


def _edge_parts(name: ProjectionName, searcher: TierSearcher, index: QdrantEdgeIndex) -> TierParts:
    return TierParts(searcher, {name: EdgeProjection(index)}, (name,) if index.is_new else (), close=index.close)


TIERS = TIER_NAMES
PROJECTIONS_OF: Mapping[TierName, tuple[ProjectionName, ...]] = {
    "sessions": ("messages",),
    "notes": ("notes", "cold"),
    "graph": ("graph",),
    "procedures": (),
    "documents": ("documents",),
}


def served_tiers(settings: Settings) -> tuple[TierName, ...]:
    """Return the tiers that this configuration serves."""
    is_off = isinstance(settings.graph, NoGraphSettings)
    return tuple(name for name in TIERS if not (is_off and TIERS[name] is Tier.GRAPH))


def kept_projections(settings: Settings) -> tuple[ProjectionName, ...]:
    """Return the projections that the served tiers keep."""
    return tuple(projection for name in served_tiers(settings) for projection in PROJECTIONS_OF[name])


def unserved_tiers(settings: Settings) -> dict[Tier, str]:
    """Return the tiers that the settings switch off, with what does so."""
    served = served_tiers(settings)
    return {tier: f"disabled by {name}.kind=off" for name, tier in TIERS.items() if name not in served}


def build_tier(name: TierName, settings: Settings, pool: Pool, dimension: int) -> TierParts:
    """Build one tier in this process; its embedded stores open here and nowhere else."""
    match name:
        case "sessions":
            return build_sessions(settings, pool)
        case "notes":
            return build_notes(settings, pool, dimension)
        case "graph":
            return build_graph(settings, pool)
        case "procedures":
            return build_procedures(settings, pool)
        case "documents":
            return build_documents(settings, pool, dimension)
        case _ as other:
            assert_never(other)


def build_sessions(settings: Settings, pool: Pool) -> TierParts:
    """Build tier 1: vectors on pgvector, words on the hybrid engine."""
    index = build_index(settings, "messages", None, by_session=True)
    searchers: Sequence[Searcher] = (
        SessionVectors(pool, min_similarity=settings.search.min_similarity),
        SessionWords(index, Messages(pool)),
    )
    limits = settings.search
    searcher = ConversationSearcher(
        SourcesOfTier(searchers, deadline_s=limits.source_deadline_s),
        MessagesAround(pool),
        candidates=limits.context_candidates,
        min_similarity=limits.min_similarity,
        deadline_s=limits.source_deadline_s,
    )
    return _edge_parts("messages", searcher, index)


def build_notes(settings: Settings, pool: Pool, dimension: int) -> TierParts:
    """Build tier 2: the hybrid index and full text of warm notes, the vectors of cold ones."""
    index, cold = build_index(settings, "notes", dimension), build_cold_index(settings, dimension)
    notes, limits = Notes(pool), settings.search
    searchers: Sequence[Searcher] = (
        Hybrid(Source.NOTES_HYBRID, index, NotesAt(notes, "warm"), min_similarity=limits.min_similarity),
        NotesWarm(pool),
        NotesCold(cold, NotesAt(notes, "cold"), min_similarity=limits.min_similarity),
    )

    def close() -> None:
        index.close()
        cold.close()

    return TierParts(
        SourcesOfTier(searchers, deadline_s=limits.source_deadline_s),
        {"notes": EdgeProjection(index), "cold": EdgeProjection(cold)},
        tuple(name for name, is_new in _new(index, cold) if is_new),
        close=close,
    )


def _new(index: QdrantEdgeIndex, cold: ColdIndex) -> tuple[tuple[ProjectionName, bool], ...]:
    return ("notes", index.is_new), ("cold", cold.is_new)


def build_graph(settings: Settings, pool: Pool) -> TierParts:
    """Build tier 4: from the names in a question along links, on the graph store.

    Raises:
        Misconfigured: If the graph is switched off or not started.
    """
    store = build_graph_store(settings)
    if store is None:
        raise Misconfigured("graph.kind is off", "choose a graph store, or leave its tier out")
    searcher = GraphSearcher(KnowledgeReader(pool), store, graph_limits(settings))
    tier = SourcesOfTier((searcher,), deadline_s=settings.search.source_deadline_s)
    new: tuple[ProjectionName, ...] = ("graph",) if graph_is_new(settings) else ()
    return TierParts(tier, {"graph": store}, new, store, aclose=store.close)


def graph_limits(settings: Settings) -> GraphLimits:
    """Return how far a search goes along links."""
    limits = settings.search
    return GraphLimits(
        depth=limits.graph_depth,
        fan_out=limits.graph_fan_out,
        max_links=limits.graph_max_edges,
        threshold=limits.graph_threshold,
        min_similarity=limits.graph_min_similarity,
        common_mentions=limits.graph_common_mentions,
    )


def build_procedures(settings: Settings, pool: Pool) -> TierParts:
    """Build tier 5: procedures, on Postgres alone."""
    searcher = ProceduresSearcher(build_procedure_reads(settings, pool))
    return TierParts(SourcesOfTier((searcher,), deadline_s=settings.search.source_deadline_s))


def build_documents(settings: Settings, pool: Pool, dimension: int) -> TierParts:
    """Build the tier of documents: their passages in a hybrid index."""
    index = build_index(settings, "documents", dimension)
    limits = settings.search
    searcher = Hybrid(Source.DOCUMENTS, index, Documents(pool), min_similarity=limits.min_similarity)
    return _edge_parts("documents", SourcesOfTier((searcher,), deadline_s=limits.source_deadline_s), index)
