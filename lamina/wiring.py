"""The only place that constructs adapters: settings in, ports out."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

from lamina.conversation import ConversationSearcher
from lamina.embedding.hashing import HashingModel
from lamina.errors import Misconfigured
from lamina.extraction.rules import RuleExtractor
from lamina.indexing import Indexer
from lamina.ports import Embedder, Extractor, Model, ModelIdentity, Projection, Searcher, TierSearcher
from lamina.queries import Tier
from lamina.recorder import Recorder
from lamina.search import Deadlines, Search, SourcesOfTier
from lamina.settings import (
    EmbeddedPostgresSettings,
    HashingSettings,
    PostgresServerSettings,
    QdrantEdgeSettings,
    SentenceTransformersSettings,
    Settings,
)
from lamina.stores.hybrid.qdrant_edge import EdgeProjection, NotesHybrid, QdrantEdgeIndex, SessionWords
from lamina.stores.postgres.connection import Pool, new_pool
from lamina.stores.postgres.keys import Keys
from lamina.stores.postgres.messages import Messages, MessagesAround, SessionVectors
from lamina.stores.postgres.notes import Notes, NotesWarm
from lamina.stores.postgres.outbox import Outbox, ProjectionName
from lamina.stores.postgres.profiles import Profiles


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


@dataclass(frozen=True, slots=True)
class TierParts:
    """A tier in one process: what searches it, what keeps its projection, and what to close."""

    searcher: TierSearcher
    projection: Projection
    index: QdrantEdgeIndex


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
    return TierParts(searcher, EdgeProjection(index), index)


def build_notes(settings: Settings, pool: Pool, dimension: int) -> TierParts:
    """Build tier 2: the hybrid index and warm full text."""
    index = build_index(settings, "notes", dimension)
    searchers: Sequence[Searcher] = (
        NotesHybrid(index, Notes(pool), min_similarity=settings.search.min_similarity),
        NotesWarm(pool),
    )
    searcher = SourcesOfTier(searchers, deadline_s=settings.search.source_deadline_s)
    return TierParts(searcher, EdgeProjection(index), index)


def build_search(settings: Settings, embedder: Embedder, tiers: dict[Tier, TierSearcher], generation: int) -> Search:
    """Build the read path over any searchers."""
    limits = settings.search
    return Search(
        embedder,
        tiers,
        generation=generation,
        rrf_k=limits.rrf_k,
        weights=limits.rrf_weights,
        deadlines=Deadlines(embed_s=limits.embed_deadline_s, tier_s=limits.tier_deadline_s),
    )


def build_recorder(settings: Settings, pool: Pool, embedder: Embedder, generation: int) -> Recorder:
    """Build the write path over any embedder."""
    return Recorder(
        pool,
        embedder,
        build_extractor(settings),
        generation=generation,
        clock=utc_now,
        embed_deadline_s=settings.write.embed_deadline_s,
    )


def build_indexer(settings: Settings, pool: Pool, projections: dict[ProjectionName, Projection]) -> Indexer:
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


def build_reads(pool: Pool) -> Reads:
    """Build the plain reads."""
    return Reads(Notes(pool), Messages(pool), Profiles(pool), Keys(pool), Outbox(pool))
