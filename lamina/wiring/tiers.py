"""Each tier in one process, with the projections that it keeps."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, assert_never
from uuid import UUID

from lamina.errors import Misconfigured, Unavailable
from lamina.ports import (
    Change,
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
from lamina.stores.postgres.generations import Generation, is_active
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


class WhileActive:
    """A projection that takes changes only while its generation of vectors is the active one.

    States are read with the vectors of the active generation: an index that was opened before a switch must not take
    over those of another model. What it refuses stays in the outbox, for the index that takes its place.

    Args:
        projection: Takes the changes.
        pool: Connections to Postgres.
        generation: Whose vectors it holds.
    """

    def __init__(self, projection: KeptProjection, pool: Pool, generation: Generation) -> None:
        self._projection = projection
        self._pool = pool
        self._generation = generation

    async def apply(self, changes: Sequence[Change[Any]]) -> None:
        """Take over the given states.

        Raises:
            Unavailable: If another generation is the active one.
        """
        if not await is_active(self._pool, self._generation):
            raise Unavailable("index", f"vectors of {self._generation.identity.model} are not the active ones any more")
        await self._projection.apply(changes)

    async def flush(self) -> None:
        """Return when everything applied so far survives a loss of power."""
        await self._projection.flush()

    async def inventory(self, tenant: str, fingerprint: Callable[[Any], str | None]) -> Mapping[UUID, str]:
        """Return every memory of a tenant in it with the fingerprint of its state."""
        return await self._projection.inventory(tenant, fingerprint)


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


def build_tier(
    name: TierName, settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None
) -> TierParts:
    """Build one tier in this process; its embedded stores open here and nowhere else.

    Args:
        name: Which tier.
        settings: Everything else.
        pool: Connections to Postgres.
        dimension: Length of the vectors.
        generation: Which vectors its indexes hold: those of no other one come into them. The first if not given.
    """
    parts = _build_tier(name, settings, pool, dimension, generation)
    if generation is None or name == "graph":
        return parts
    kept = {name: WhileActive(projection, pool, generation) for name, projection in parts.projections.items()}
    return replace(parts, projections=kept)


def _build_tier(
    name: TierName, settings: Settings, pool: Pool, dimension: int, generation: Generation | None
) -> TierParts:
    match name:
        case "sessions":
            return build_sessions(settings, pool, generation)
        case "notes":
            return build_notes(settings, pool, dimension, generation)
        case "graph":
            return build_graph(settings, pool)
        case "procedures":
            return build_procedures(settings, pool)
        case "documents":
            return build_documents(settings, pool, dimension, generation)
        case _ as other:
            assert_never(other)


def build_sessions(settings: Settings, pool: Pool, generation: Generation | None = None) -> TierParts:
    """Build tier 1: vectors on pgvector, words on the hybrid engine, by the chunks of the generation's model."""
    index = build_index(settings, "messages", None, by_session=True, generation=generation)
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


def build_notes(settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None) -> TierParts:
    """Build tier 2: the hybrid index and full text of warm notes, the vectors of cold ones."""
    index = build_index(settings, "notes", dimension, generation=generation)
    cold = build_cold_index(settings, dimension, generation)
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


def build_documents(settings: Settings, pool: Pool, dimension: int, generation: Generation | None = None) -> TierParts:
    """Build the tier of documents: their passages in a hybrid index."""
    index = build_index(settings, "documents", dimension, generation=generation)
    limits = settings.search
    searcher = Hybrid(Source.DOCUMENTS, index, Documents(pool), min_similarity=limits.min_similarity)
    return _edge_parts("documents", SourcesOfTier((searcher,), deadline_s=limits.source_deadline_s), index)
