"""Builders of the read path, the write path and the indexer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, assert_never

from lamina.core.memories import MetadataLimit
from lamina.core.metrics import UNMEASURED, Meter
from lamina.core.ports import (
    Embedder,
    Extractor,
    Hints,
    Links,
    Projection,
    QuestionEmbedder,
    Reranker,
    RowLookup,
    TextEmbedder,
    TierSearcher,
)
from lamina.core.tiers import TIERS, Modality, ProjectionName, Source, Tier
from lamina.extraction.language_model import LanguageModelExtractor
from lamina.extraction.rules import RuleExtractor
from lamina.ingest.documents import DocumentPolicy, DocumentRecorder
from lamina.ingest.embedding import EmbeddingBudget
from lamina.ingest.files import FileLimits, FileRecorder
from lamina.ingest.graph import GraphRecorder
from lamina.ingest.graph_restoring import NodeRestorer
from lamina.ingest.hits import HitCounter
from lamina.ingest.memory_linking import MemoryLinker
from lamina.ingest.parsing.parse import DocumentLimits
from lamina.ingest.parsing.processes import ReadingLimits
from lamina.ingest.procedures import ProcedureRecorder
from lamina.ingest.restoring import Restorer
from lamina.ingest.turns import KeptVersions, Recorder
from lamina.policies.limits.concurrency import ConcurrencyLimit
from lamina.policies.ranking.composite import CompositePolicy
from lamina.policies.ranking.diversity import DiversityPolicy
from lamina.policies.ranking.fusion import RankingPolicy
from lamina.policies.ranking.scores import HybridWeights
from lamina.policies.ranking.weighted import WeightedPolicy
from lamina.projections.indexer import Indexer
from lamina.search.admission import AdmittedSearch, SearchPlaces, SearchTiers
from lamina.search.context import ContextSearch
from lamina.search.fused_search import Deadlines, Search
from lamina.search.graph_explorer import Explorer, NoLinks
from lamina.search.procedures import ProcedureMatcher
from lamina.settings.loading import Settings, kept_projections, served_tiers
from lamina.settings.search import SearchSettings
from lamina.stores.postgres.agent_turns import AgentTurns
from lamina.stores.postgres.builds import Builds
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.directory import Directory
from lamina.stores.postgres.documents import Documents
from lamina.stores.postgres.feedback import FeedbackTable
from lamina.stores.postgres.files import Files
from lamina.stores.postgres.found_rows import FoundRows
from lamina.stores.postgres.keys import Keys
from lamina.stores.postgres.knowledge import KnowledgeReader
from lamina.stores.postgres.memory_profiles import MemoryProfiles
from lamina.stores.postgres.messages import Messages
from lamina.stores.postgres.note_temperature import Temperatures
from lamina.stores.postgres.notes import Notes
from lamina.stores.postgres.outbox import Outbox
from lamina.stores.postgres.procedures import Procedures
from lamina.stores.postgres.profiles import Profiles
from lamina.stores.postgres.response_chains import ResponseChains
from lamina.stores.postgres.shares import Shares
from lamina.stores.postgres.stale_words import StaleWords
from lamina.stores.postgres.trash import TrashPolicy
from lamina.stores.postgres.workspace_settings import WorkspaceSettingsStore
from lamina.wiring.reranking import build_second_stage
from lamina.wiring.stores import build_procedure_reads, learning_policy, session_url, similar_links, utc_now


def build_extractor(settings: Settings) -> Extractor | None:
    """Build the chosen extractor, if any."""
    match settings.write.extraction:
        case "rules":
            return RuleExtractor()
        case "off":
            return None
        case "language_model":
            return LanguageModelExtractor(settings.language_model, utc_now)
        case _ as other:
            assert_never(other)


@dataclass(frozen=True, slots=True)
class DocumentParts:
    """The read and write path of documents."""

    reads: Documents
    recorder: DocumentRecorder


def metadata_limit(settings: Settings) -> MetadataLimit:
    """Return the limit of the metadata that callers send."""
    return MetadataLimit(settings.write.max_metadata_bytes)


def build_document_parts(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> DocumentParts:
    """Build the read and write path of documents over any embedder."""
    chosen = settings.documents
    recorder = DocumentRecorder(
        pool,
        embedder,
        build_memory_linker(settings, embedder, generation),
        DocumentPolicy(
            ReadingLimits(
                DocumentLimits(max_bytes=chosen.max_bytes, max_chars=chosen.max_chars),
                cpu_s=chosen.parse_deadline_s,
                memory_bytes=chosen.parse_memory_mib * 1024**2,
            ),
            passage_chars=chosen.passage_chars,
            parse_deadline_s=chosen.parse_deadline_s,
            metadata=metadata_limit(settings),
        ),
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
        budget=EmbeddingBudget(chosen.embed_budget_s, settings.embedding.tokens_per_s, "documents.embed_budget_s"),
        trash=trash_policy(settings),
    )
    return DocumentParts(Documents(pool), recorder)


@dataclass(frozen=True, slots=True)
class FileParts:
    """The read and write path of files."""

    reads: Files
    recorder: FileRecorder


def build_file_parts(settings: Settings, pool: Pool, documents: DocumentRecorder) -> FileParts:
    """Build the read and write path of files, over that of documents."""
    limits = FileLimits(max_bytes=settings.files.max_bytes, versions=settings.files.versions)
    return FileParts(Files(pool), FileRecorder(documents, Files(pool), limits))


@dataclass(frozen=True, slots=True)
class ProcedureParts:
    """The read and write path of procedures."""

    reads: Procedures
    matcher: ProcedureMatcher
    recorder: ProcedureRecorder


def build_procedure_parts(
    settings: Settings, pool: Pool, embedder: Embedder, questions: QuestionEmbedder, generation: int
) -> ProcedureParts:
    """Build the read and write path of procedures over any embedder."""
    reads = build_procedure_reads(settings, pool)
    matcher = ProcedureMatcher(
        reads, questions, generation=generation, embed_deadline_s=settings.search.embed_deadline_s
    )
    recorder = ProcedureRecorder(
        pool,
        embedder,
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
        metadata_limit=metadata_limit(settings),
        learning=learning_policy(settings),
        trash=trash_policy(settings),
    )
    return ProcedureParts(reads, matcher, recorder)


def build_memory_linker(settings: Settings, embedder: Embedder, generation: int) -> MemoryLinker:
    """Build the writer of the graph's tables."""
    deadline_s = settings.write.embed_deadline_s
    return MemoryLinker(embedder, generation=generation, deadline_s=deadline_s, similar=similar_links(settings))


def build_graph_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> GraphRecorder:
    """Build the write path of stated entities and edges."""
    linker, trash = build_memory_linker(settings, embedder, generation), trash_policy(settings)
    restorer = NodeRestorer(pool, linker, trash, generation=generation)
    return GraphRecorder(pool, linker, restorer, trash=trash, clock=utc_now)


def build_explorer(settings: Settings, pool: Pool, links: Links | None, generation: int) -> Explorer:
    """Build the explorer of the graph over any store of links."""
    limits = settings.search
    return Explorer(
        KnowledgeReader(pool),
        FoundRows(pool),
        links or NoLinks(),
        generation=generation,
        fan_out=limits.graph_fan_out,
        max_links=limits.graph_max_edges,
    )


def build_hit_counter(settings: Settings, pool: Pool) -> HitCounter:
    """Build the counter of hits."""
    temperatures = Temperatures(pool, settings.cold.days_per_doubling)
    return HitCounter(temperatures, utc_now, flush_interval_s=settings.search.hit_flush_s)


def build_search(
    settings: Settings,
    embedder: QuestionEmbedder,
    tiers: Mapping[Tier, TierSearcher],
    rows: RowLookup,
    generation: int,
    shares: Shares | None = None,
    meter: Meter = UNMEASURED,
    reranker: Reranker | None = None,
) -> Search:
    """Build the read path over any searchers."""
    limits, served = settings.search, served_tiers(settings)
    return Search(
        embedder,
        tiers,
        rows=rows,
        unserved={spec.tier: f"disabled by {name}.kind=off" for name, spec in TIERS.items() if name not in served},
        generation=generation,
        policy=ranking_policy(limits),
        deadlines=Deadlines(embed_s=limits.embed_deadline_s, tier_s=limits.tier_deadline_s),
        clock=utc_now,
        shares=shares,
        meter=meter,
        second_stage=build_second_stage(settings, reranker, meter),
        slow_ms=settings.logs.slow_search_ms,
    )


def build_admitted_search(settings: Settings, search: Search) -> AdmittedSearch:
    """Build the admission of a process's searches."""
    limit = ConcurrencyLimit(settings.serve.router.max_ongoing_requests, settings.search.source_deadline_s / 2)
    return AdmittedSearch(search, SearchPlaces(limit, settings.search.max_wait_s))


def build_context_search(
    settings: Settings,
    search: SearchTiers,
    profiles: Profiles,
    hints: Hints | None,
    rows: RowLookup,
    files: Files | None = None,
    feedback: FeedbackTable | None = None,
) -> ContextSearch:
    """Build the context search over a search."""
    limits = settings.context
    return ContextSearch(
        search,
        profiles,
        hints,
        rows,
        hint_results=limits.hint_results,
        hint_neighbours=limits.hint_neighbours,
        files=files if limits.files_tokens else None,
        files_tokens=limits.files_tokens,
        deadline_s=settings.search.source_deadline_s,
        feedback=feedback,
    )


# The fitted ranking weighs words and meaning itself: fused with it again they cost LoCoMo 5 points at 5, 3 at 20.
FITTED_COVERS = {Source.SESSION_CONTEXT: frozenset({Source.SESSION_VECTORS, Source.SESSION_WORDS})}


def ranking_policy(limits: SearchSettings) -> RankingPolicy:
    """Return every number that ranks."""
    figures, composite = limits.weights, limits.composite
    tier_weights = {TIERS[name].tier: weight for name, weight in limits.tier_weights.items()}
    return RankingPolicy(
        rrf_k=limits.rrf_k,
        rrf_weights=limits.rrf_weights,
        tier_weights=tier_weights,
        weighted=WeightedPolicy(
            weights={modality: getattr(figures, modality.value) for modality in Modality},
            vector_floor=figures.vector_floor,
            full_figure=figures.full_figure,
            tier_weights=tier_weights,
            hybrid={
                Source.NOTES_HYBRID: HybridWeights(**limits.hybrid_weights.notes.model_dump()),
                Source.DOCUMENTS: HybridWeights(**limits.hybrid_weights.documents.model_dump()),
            },
        ),
        composite=CompositePolicy(
            **composite.model_dump(exclude={"candidates"}),
            min_similarity=limits.min_similarity,
            tier_weights=tier_weights,
            scores_every_row=composite.candidates == "every_row",
        ),
        diversity=DiversityPolicy(limits.diversity_jaccard, limits.diversity_variants),
        present_order=limits.present_order,
        note_decay=limits.note_decay,
        rrf_covered=FITTED_COVERS if limits.session_ranking == "fitted" else {},
    )


def build_recorder(
    settings: Settings, pool: Pool, embedder: Embedder, texts: TextEmbedder, generation: int
) -> Recorder:
    """Build the write path over any embedder."""
    return Recorder(
        pool,
        texts,
        build_memory_linker(settings, embedder, generation),
        build_extractor(settings),
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
        budget=EmbeddingBudget(settings.write.embed_budget_s, settings.embedding.tokens_per_s, "write.embed_budget_s"),
        near_duplicate=settings.write.near_duplicate,
        metadata_limit=metadata_limit(settings),
        kept_versions=KeptVersions(settings.history.note_versions, settings.history.profile_versions),
        trash=trash_policy(settings),
        profile_scope=settings.write.profile_scope,
    )


def build_restorer(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> Restorer:
    """Build the service that brings deleted memories back."""
    linker, trash = build_memory_linker(settings, embedder, generation), trash_policy(settings)
    return Restorer(
        pool,
        embedder,
        linker,
        NodeRestorer(pool, linker, trash, generation=generation),
        trash,
        generation=generation,
        clock=utc_now,
        deadline_s=settings.write.embed_deadline_s,
    )


def trash_policy(settings: Settings) -> TrashPolicy:
    """Return how long deleted memories can be brought back."""
    return TrashPolicy(timedelta(days=settings.history.trash_days))


def build_indexer(settings: Settings, pool: Pool, projections: Mapping[ProjectionName, Projection[Any]]) -> Indexer:
    """Build the indexer over any projections."""
    return Indexer(
        session_url(settings),
        Outbox(pool, tuple(projections)),
        Builds(pool),
        projections,
        stale_words=StaleWords(pool),
        batch_size=settings.indexer.batch_size,
        poll_interval_s=settings.indexer.poll_interval_s,
        flush_interval_s=settings.indexer.flush_interval_s,
    )


@dataclass(frozen=True, slots=True)
class Reads:
    """Reads of the service beside searches."""

    notes: Notes
    messages: Messages
    profiles: Profiles
    keys: Keys
    outbox: Outbox
    builds: Builds
    memory_profiles: MemoryProfiles
    agent_turns: AgentTurns
    workspaces: WorkspaceSettingsStore
    directory: Directory
    chains: ResponseChains


def build_reads(settings: Settings, pool: Pool) -> Reads:
    """Build the plain reads."""
    outbox = Outbox(pool, kept_projections(settings))
    return Reads(
        Notes(pool),
        Messages(pool),
        Profiles(pool),
        Keys(pool),
        outbox,
        Builds(pool),
        MemoryProfiles(pool),
        AgentTurns(pool),
        WorkspaceSettingsStore(pool),
        Directory(pool),
        ResponseChains(pool),
    )
