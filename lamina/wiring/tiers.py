"""Each tier in one process, with the projections that it keeps."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from lamina.aio.probing import Probe
from lamina.core.ports import AuditableProjection, Identified, Links, Reachable, Searcher
from lamina.core.tiers import PROJECTIONS, ProjectionName, Source, TierName
from lamina.policies.ranking.conversation_signals import REACH
from lamina.policies.ranking.scores import HybridWeights
from lamina.policies.ranking.second_stage import shipped_weights
from lamina.projections.locations import location_of
from lamina.projections.marks import HighWaterMark
from lamina.projections.ownership import IdentifiedStore, OwnedProjection, owned, owner_check
from lamina.search.conversation_context import ConversationContext
from lamina.search.fitted_conversation import FittedConversation
from lamina.search.graph_searcher import GraphLimits, GraphSearcher
from lamina.search.tier_sources import ContextRanker, JointSearcher, TierSources
from lamina.settings.loading import Settings
from lamina.settings.search import SearchSettings
from lamina.stores.index.searchers import INDEX_SHARE, Hybrid, NotesTogether, SessionsTogether
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.documents import Documents, PassageVectors
from lamina.stores.postgres.found_rows import FoundRows
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.messages import Conversations, MessagesAround, MessagesSearch
from lamina.stores.postgres.notes import NotesSearch
from lamina.stores.postgres.procedures import ProceduresSearcher
from lamina.wiring.projections import (
    BuiltProjection,
    build_cold_index,
    build_graph,
    build_hybrid_index,
    release_nothing,
)
from lamina.wiring.stores import build_procedure_reads

BuiltProjections = Mapping[ProjectionName, BuiltProjection[AuditableProjection[Any]]]


@dataclass(frozen=True, slots=True)
class TierParts:
    """A tier in one process.

    Args:
        searcher: Asks all its sources.
        projections: The stores that it keeps up to date, by the names of their projections.
        new: Those of them that are empty because their files are new: Postgres has their content.
        connect: Connect anew to ask whose the stores are.
        keepers: Keep whose the stores are.
        probes: Ask the store of each projection for a sign of life; those in this process always give one.
        close: Releases the files that the projections have open.
        aclose: Releases their connections.
        graph: Follows links; the graph tier alone does.
    """

    searcher: TierSources
    projections: Mapping[ProjectionName, OwnedProjection]
    new: tuple[ProjectionName, ...]
    connect: Mapping[ProjectionName, Callable[[], IdentifiedStore]]
    keepers: Mapping[ProjectionName, Identified]
    probes: Mapping[str, Probe]
    close: Callable[[], None]
    aclose: Callable[[], Awaitable[None]]
    graph: Links | None = None


@dataclass(frozen=True, slots=True)
class BuiltTier:
    """The searcher of a tier over its own stores."""

    searcher: TierSources
    projections: BuiltProjections
    graph: Links | None = None


def build_tier(name: TierName, settings: Settings, pool: Pool, generation: Generation) -> TierParts:
    """Build one tier in this process; its embedded stores open here and nowhere else.

    Args:
        name: Name of the tier.
        settings: Everything else.
        pool: Connections to Postgres.
        generation: The vectors of its indexes: those of no other generation come into them.
    """
    tier = BUILDERS[name](settings, pool, generation)
    built = tier.projections

    def close() -> None:
        for projection in built.values():
            projection.close()

    async def aclose() -> None:
        for projection in built.values():
            await projection.aclose()

    def check(projection: ProjectionName) -> Callable[[], Awaitable[None]]:
        holds = generation if PROJECTIONS[projection].is_of_generation else None
        return owner_check(pool, projection, location_of(settings, projection, generation), holds)

    return TierParts(
        searcher=tier.searcher,
        projections={
            name: owned(
                kept.store,
                check(name),
                location_of(settings, name, generation),
                HighWaterMark(pool, name, kept.store, kept.keeper),
            )
            for name, kept in built.items()
        },
        keepers={name: kept.keeper for name, kept in built.items()},
        new=tuple(name for name, kept in built.items() if kept.is_new),
        connect={name: kept.connect for name, kept in built.items()},
        probes={
            name: kept.store.probe if isinstance(kept.store, Reachable) else release_nothing
            for name, kept in built.items()
        },
        close=close,
        aclose=aclose,
        graph=tier.graph,
    )


def _sources(
    settings: Settings,
    pool: Pool,
    *searchers: Searcher,
    context: ContextRanker | None = None,
    joint: JointSearcher | None = None,
) -> TierSources:
    return TierSources(searchers, settings.search.source_deadline_s, context, rows=FoundRows(pool), joint=joint)


def build_sessions(settings: Settings, pool: Pool, generation: Generation) -> BuiltTier:
    """Build tier 1: vectors on pgvector, words on the hybrid engine, by the chunks of the generation's model."""
    index, limits = build_hybrid_index(settings, "messages", generation), settings.search
    least = limits.min_similarity
    searcher = _sources(
        settings,
        pool,
        context=_session_ranking(limits, pool),
        joint=SessionsTogether(
            index.store,
            MessagesSearch(pool, min_similarity=least, reach=REACH),
            index_deadline_s=limits.source_deadline_s * INDEX_SHARE,
        ),
    )
    return BuiltTier(searcher, {"messages": index})


def _session_ranking(limits: SearchSettings, pool: Pool) -> ContextRanker:
    candidates, least = limits.context_candidates, limits.min_similarity
    match limits.session_ranking:
        case "fitted":
            return FittedConversation(Conversations(pool), shipped_weights(), candidates=candidates)
        case "fixed":
            return ConversationContext(MessagesAround(pool), candidates=candidates, min_similarity=least)
        case _ as other:
            assert_never(other)


def build_notes(settings: Settings, pool: Pool, generation: Generation) -> BuiltTier:
    """Build tier 2: the hybrid index and full text of warm notes, the vectors of cold ones."""
    index, cold = build_hybrid_index(settings, "notes", generation), build_cold_index(settings, "cold", generation)
    limits = settings.search
    together = NotesTogether(
        index.store,
        cold.store,
        NotesSearch(pool),
        min_similarity=limits.min_similarity,
        index_deadline_s=limits.source_deadline_s * INDEX_SHARE,
        weights=HybridWeights(**limits.hybrid_weights.notes.model_dump()),
    )
    searcher = _sources(settings, pool, joint=together)
    return BuiltTier(searcher, {"notes": index, "cold": cold})


def build_graph_tier(settings: Settings, pool: Pool, generation: Generation) -> BuiltTier:  # noqa: ARG001 - a builder
    """Build tier 4: from the names in a question along links, on the graph store.

    Raises:
        Misconfigured: If the graph is switched off or not started.
    """
    built, limits = build_graph(settings), settings.search
    how_far = GraphLimits(
        depth=limits.graph_depth,
        fan_out=limits.graph_fan_out,
        max_links=limits.graph_max_edges,
        max_probes=limits.graph_max_probes,
        threshold=limits.graph_threshold,
        min_similarity=limits.graph_min_similarity,
        common_mentions=limits.graph_common_mentions,
        ef_search=limits.graph_ef_search,
    )
    searcher = GraphSearcher(KnowledgeReader(pool), built.store, how_far)
    return BuiltTier(_sources(settings, pool, searcher), {"graph": built}, built.store)


def build_procedures(settings: Settings, pool: Pool, generation: Generation) -> BuiltTier:  # noqa: ARG001 - a builder
    """Build tier 5: procedures, on Postgres alone."""
    return BuiltTier(_sources(settings, pool, ProceduresSearcher(build_procedure_reads(settings, pool))), {})


def build_documents(settings: Settings, pool: Pool, generation: Generation) -> BuiltTier:
    """Build the tier of documents: their passages in a hybrid index, with its vectors or those of Postgres."""
    index = build_hybrid_index(settings, "documents", generation)
    limits = settings.search
    in_postgres = limits.passage_vectors == "postgres"
    hybrid = Hybrid(
        Source.DOCUMENTS,
        PassageVectors(index.store, pool) if in_postgres else index.store,
        Documents(pool),
        min_similarity=limits.min_similarity,
        weights=HybridWeights(**limits.hybrid_weights.documents.model_dump()),
    )
    return BuiltTier(_sources(settings, pool, hybrid), {"documents": index})


# The builder of each tier; a test compares with the records of tiers.
BUILDERS: Mapping[TierName, Callable[[Settings, Pool, Generation], BuiltTier]] = {
    "sessions": build_sessions,
    "notes": build_notes,
    "graph": build_graph_tier,
    "procedures": build_procedures,
    "documents": build_documents,
}
