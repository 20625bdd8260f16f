"""The only place that constructs adapters: settings in, ports out."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Protocol, assert_never

from lamina.conversation import ConversationSearcher
from lamina.document_recorder import DocumentPolicy, DocumentRecorder
from lamina.documents.parsing import Limits
from lamina.embedding.hashing import HashingModel
from lamina.errors import Misconfigured, Unavailable
from lamina.exploring import Explorer
from lamina.extraction.language_model import LanguageModelExtractor
from lamina.extraction.rules import RuleExtractor
from lamina.graph_recorder import GraphRecorder
from lamina.hits import HitCounter
from lamina.indexing import Indexer
from lamina.knowledge import Knowledge
from lamina.knowledge_search import GraphLimits, GraphSearcher
from lamina.links import Followed, Frontier
from lamina.ports import (
    Embedder,
    Extractor,
    GraphStore,
    Inventory,
    Links,
    Model,
    ModelIdentity,
    Projection,
    Searcher,
    TierSearcher,
)
from lamina.procedure_matcher import ProcedureMatcher
from lamina.procedure_recorder import ProcedureRecorder
from lamina.procedures import MatchPolicy
from lamina.queries import TIER_NAMES, Source, Tier, TierName
from lamina.ranking.composite import CompositePolicy
from lamina.ranking.diversity import DiversityPolicy
from lamina.ranking.methods import RankingPolicy
from lamina.ranking.weighted import Modality, WeightedPolicy
from lamina.recorder import Recorder
from lamina.search import Deadlines, Search, SourcesOfTier
from lamina.settings import (
    EmbeddedFalkorDBSettings,
    EmbeddedPostgresSettings,
    FalkorDBServerSettings,
    HashingSettings,
    Neo4jServerSettings,
    NoGraphSettings,
    PostgresServerSettings,
    QdrantEdgeSettings,
    SearchSettings,
    SentenceTransformersSettings,
    Settings,
)
from lamina.stores.graph.store import CypherGraph
from lamina.stores.hybrid.qdrant_edge import EdgeProjection, Hybrid, QdrantEdgeIndex, SessionWords
from lamina.stores.postgres.connection import Pool, new_pool
from lamina.stores.postgres.documents import Documents
from lamina.stores.postgres.keys import Keys
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.memory_profiles import MemoryProfiles
from lamina.stores.postgres.messages import Messages, MessagesAround, SessionVectors
from lamina.stores.postgres.notes import Notes, NotesAt, NotesWarm
from lamina.stores.postgres.outbox import Outbox, ProjectionName
from lamina.stores.postgres.procedures import Procedures, ProceduresSearcher
from lamina.stores.postgres.profiles import Profiles
from lamina.stores.postgres.shares import Shares
from lamina.stores.postgres.temperatures import Temperatures
from lamina.stores.vectors.qdrant_edge_cold import ColdIndex, ColdProjection, NotesCold

logger = logging.getLogger(__name__)


def utc_now() -> datetime:
    """Return the time of day in UTC."""
    return datetime.now(UTC)


def postgres_url(settings: Settings) -> str:
    """Return the URL of the database.

    Raises:
        Misconfigured: If Postgres is embedded but `lamina up` did not start it.
    """
    match settings.postgres:
        case PostgresServerSettings(url=url):
            return url
        case EmbeddedPostgresSettings():
            raise Misconfigured(
                "postgres.kind is embedded, which only `lamina up` starts",
                "run `lamina up`, or set postgres.kind to server and postgres.url",
            )
        case _ as other:
            assert_never(other)


def build_pool(settings: Settings) -> Pool:
    """Return this process's closed pool of connections."""
    return new_pool(postgres_url(settings), settings.pool)


def build_model(settings: Settings, device: str) -> Model:
    """Return the embedding model, loaded on ``cpu`` or ``cuda``."""
    match settings.embedding:
        case SentenceTransformersSettings() as chosen:
            from lamina.embedding.sentence_transformers import SentenceTransformerModel  # noqa: PLC0415 - imports torch

            return SentenceTransformerModel(chosen, device)
        case HashingSettings(dimension=dimension):
            return HashingModel(dimension)
        case _ as other:
            assert_never(other)


def model_identity(settings: Settings) -> ModelIdentity:
    """Return what the configured model's vectors are, without loading its weights where its files tell."""
    match settings.embedding:
        case SentenceTransformersSettings() as chosen:
            from lamina.embedding.sentence_transformers import identity_of  # noqa: PLC0415 - imports torch at need

            return identity_of(chosen)
        case HashingSettings(dimension=dimension):
            return HashingModel(dimension).identity
        case _ as other:
            assert_never(other)


def build_extractor(settings: Settings) -> Extractor | None:
    """Return what draws notes from messages."""
    match settings.write.extraction:
        case "rules":
            return RuleExtractor()
        case "off":
            return None
        case "language_model":
            return LanguageModelExtractor(settings.language_model, utc_now)
        case _ as other:
            assert_never(other)


def build_index(
    settings: Settings, name: ProjectionName, dimension: int | None, *, by_session: bool = False
) -> QdrantEdgeIndex:
    """Open a projection's index in this process; no other process may have it open."""
    match settings.hybrid:
        case QdrantEdgeSettings(search_threads=threads):
            path = index_path(settings, name)
            return QdrantEdgeIndex(path, dimension=dimension, by_session=by_session, search_threads=threads)
        case _ as other:
            assert_never(other)


def index_path(settings: Settings, name: ProjectionName) -> Path:
    """Return where a projection's index lies."""
    return settings.data_dir.resolve() / "edge" / name


def build_graph_store(settings: Settings) -> CypherGraph | None:
    """Return the store that follows links, which connects at need; ``None`` if it is switched off.

    Raises:
        Misconfigured: If FalkorDB is embedded but `lamina up` did not start it.
    """
    deadline_s = settings.search.source_deadline_s
    match settings.graph:
        case FalkorDBServerSettings(url=url, connections=connections):
            from lamina.stores.graph.falkordb import falkordb_graph  # noqa: PLC0415 - installed where it is chosen

            return falkordb_graph(url, connections=connections, read_deadline_s=deadline_s)
        case Neo4jServerSettings() as chosen:
            from lamina.stores.graph.neo4j import neo4j_graph  # noqa: PLC0415 - installed where it is chosen

            return neo4j_graph(chosen, read_deadline_s=deadline_s)
        case EmbeddedFalkorDBSettings():
            raise Misconfigured(
                "graph.kind is embedded, which only `lamina up` starts",
                "run `lamina up`, set graph.kind to falkordb or neo4j and graph.url, or set graph.kind to off",
            )
        case NoGraphSettings():
            return None
        case _ as other:
            assert_never(other)


def graph_is_new(settings: Settings) -> bool:
    """Tell whether the graph store is empty, so that Postgres has what belongs in there; blocks.

    One that does not answer counts as empty: to apply everything again costs time, to miss something costs answers.
    """

    async def is_empty() -> bool:
        store = build_graph_store(settings)
        if store is None:
            return False
        try:
            return await store.is_empty()
        except Unavailable as error:
            logger.warning("the graph is rebuilt: %s", error)
            return True
        finally:
            await store.close()

    with ThreadPoolExecutor(1) as thread:  # The caller's thread may have a loop of its own.
        return thread.submit(asyncio.run, is_empty()).result()


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
        {"notes": EdgeProjection(index), "cold": ColdProjection(cold)},
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


def build_document_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> DocumentRecorder:
    """Build what writes documents over any embedder."""
    chosen = settings.documents
    return DocumentRecorder(
        pool,
        embedder,
        build_knowledge(settings, embedder, generation),
        DocumentPolicy(
            Limits(max_bytes=chosen.max_bytes, max_chars=chosen.max_chars),
            passage_chars=chosen.passage_chars,
            parse_deadline_s=chosen.parse_deadline_s,
        ),
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
    )


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """What routes do with documents."""

    reads: Documents
    recorder: DocumentRecorder


def build_document_parts(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> DocumentParts:
    """Build what reads and writes documents over any embedder."""
    return DocumentParts(Documents(pool), build_document_recorder(settings, pool, embedder, generation))


def build_procedure_reads(settings: Settings, pool: Pool) -> Procedures:
    """Build what reads and matches procedures."""
    policy = MatchPolicy(
        min_overlap=settings.procedures.min_overlap,
        min_similarity=settings.search.min_similarity,
        strength_weight=settings.procedures.strength_weight,
    )
    return Procedures(pool, policy)


def build_procedure_matcher(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> ProcedureMatcher:
    """Build what matches procedures over any embedder."""
    return ProcedureMatcher(
        build_procedure_reads(settings, pool),
        embedder,
        generation=generation,
        embed_deadline_s=settings.search.embed_deadline_s,
    )


def build_procedure_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> ProcedureRecorder:
    """Build what writes procedures and their outcomes."""
    return ProcedureRecorder(
        pool,
        embedder,
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
    )


@dataclass(frozen=True, slots=True)
class ProcedureParts:
    """What routes do with procedures."""

    reads: Procedures
    matcher: ProcedureMatcher
    recorder: ProcedureRecorder


def build_procedure_parts(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> ProcedureParts:
    """Build what reads, matches and writes procedures over any embedder."""
    return ProcedureParts(
        build_procedure_reads(settings, pool),
        build_procedure_matcher(settings, pool, embedder, generation),
        build_procedure_recorder(settings, pool, embedder, generation),
    )


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


def build_knowledge(settings: Settings, embedder: Embedder, generation: int) -> Knowledge:
    """Build what writes the graph's tables."""
    return Knowledge(embedder, generation=generation, deadline_s=settings.write.embed_deadline_s)


def build_graph_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> GraphRecorder:
    """Build what writes entities and edges that callers state."""
    return GraphRecorder(pool, build_knowledge(settings, embedder, generation), clock=utc_now)


class NoLinks:
    """Stands where no graph store is configured."""

    async def expand(self, frontier: Frontier) -> Sequence[Followed]:  # noqa: ARG002 - the port's signature
        """Refuse: a failure is never an empty success."""
        raise Unavailable("graph", "graph.kind is off")


def build_explorer(settings: Settings, pool: Pool, links: Links | None, generation: int) -> Explorer:
    """Build what reads the graph directly, over anything that follows links."""
    limits = settings.search
    return Explorer(
        KnowledgeReader(pool),
        links or NoLinks(),
        generation=generation,
        fan_out=limits.graph_fan_out,
        max_links=limits.graph_max_edges,
    )


def build_cold_index(settings: Settings, dimension: int) -> ColdIndex:
    """Open the index of cold notes in this process; no other process may use it."""
    match settings.hybrid:
        case QdrantEdgeSettings(search_threads=threads):
            return ColdIndex(
                index_path(settings, "cold"),
                dimension=dimension,
                layout=settings.cold.collections,
                max_open=settings.cold.max_open,
                search_threads=threads,
            )
        case _ as other:
            assert_never(other)


def build_hit_counter(settings: Settings, pool: Pool) -> HitCounter:
    """Build what counts the notes that searches return."""
    return HitCounter(Temperatures(pool), utc_now, flush_interval_s=settings.search.hit_flush_s)


def build_search(
    settings: Settings,
    embedder: Embedder,
    tiers: Mapping[Tier, TierSearcher],
    generation: int,
    shares: Shares | None = None,
) -> Search:
    """Build the read path over any searchers."""
    limits = settings.search
    return Search(
        embedder,
        tiers,
        unserved=unserved_tiers(settings),
        generation=generation,
        policy=ranking_policy(limits),
        deadlines=Deadlines(embed_s=limits.embed_deadline_s, tier_s=limits.tier_deadline_s),
        clock=utc_now,
        shares=shares,
    )


def unserved_tiers(settings: Settings) -> dict[Tier, str]:
    """Return the tiers that the settings switch off, with what does so."""
    served = served_tiers(settings)
    return {tier: f"disabled by {name}.kind=off" for name, tier in TIERS.items() if name not in served}


def ranking_policy(limits: SearchSettings) -> RankingPolicy:
    """Return every number that ranks."""
    figures, composite = limits.weights, limits.composite
    tier_weights = {TIER_NAMES[name]: weight for name, weight in limits.tier_weights.items()}
    return RankingPolicy(
        rrf_k=limits.rrf_k,
        rrf_weights=limits.rrf_weights,
        tier_weights=tier_weights,
        weighted=WeightedPolicy(
            weights={modality: getattr(figures, modality.value) for modality in Modality},
            vector_floor=figures.vector_floor,
            full_figure=figures.full_figure,
            tier_weights=tier_weights,
        ),
        composite=CompositePolicy(
            **composite.model_dump(), min_similarity=limits.min_similarity, tier_weights=tier_weights
        ),
        diversity=DiversityPolicy(limits.diversity_jaccard, limits.diversity_variants),
    )


def build_shares(settings: Settings, pool: Pool) -> Shares:
    """Build what knows which workspace shares what with which."""
    return Shares(pool, cache_s=settings.search.shares_cache_s)


def build_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> Recorder:
    """Build the write path over any embedder."""
    return Recorder(
        pool,
        embedder,
        build_knowledge(settings, embedder, generation),
        build_extractor(settings),
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
        near_duplicate=settings.write.near_duplicate,
    )


def build_indexer(settings: Settings, pool: Pool, projections: Mapping[ProjectionName, Projection[Any]]) -> Indexer:
    """Build what applies the outbox to any projections."""
    return Indexer(
        postgres_url(settings),
        Outbox(pool),
        projections,
        batch_size=settings.indexer.batch_size,
        poll_interval_s=settings.indexer.poll_interval_s,
        flush_interval_s=settings.indexer.flush_interval_s,
    )


@dataclass(frozen=True, slots=True)
class Reads:
    """What the service reads beside searching."""

    notes: Notes
    messages: Messages
    profiles: Profiles
    keys: Keys
    outbox: Outbox
    memory_profiles: MemoryProfiles


def build_reads(pool: Pool) -> Reads:
    """Build the plain reads."""
    return Reads(Notes(pool), Messages(pool), Profiles(pool), Keys(pool), Outbox(pool), MemoryProfiles(pool))
