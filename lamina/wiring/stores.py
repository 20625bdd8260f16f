"""The adapters of stores and models that the settings choose."""

import logging
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import assert_never

from psycopg.conninfo import conninfo_to_dict

from lamina.core.ports import ModelIdentity, ReportingModel
from lamina.errors import Misconfigured
from lamina.host.extras import needing
from lamina.models.hashing import HashingModel
from lamina.models.prefixes import endpoint_identity
from lamina.models.runtimes import is_torch_installed, runtime
from lamina.policies.caching.cache_keys import digest
from lamina.policies.ranking.procedure_matching import MatchPolicy
from lamina.policies.retention.learning import LearningPolicy
from lamina.settings.loading import Settings
from lamina.settings.models import EndpointSettings, HashingSettings, SentenceTransformersSettings
from lamina.settings.section import SectionT
from lamina.settings.stores import EmbeddedPostgresSettings, PostgresServerSettings
from lamina.stores.postgres.connection import Pool, Pooling, new_pool
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.links import SimilarLinks
from lamina.stores.postgres.procedures import Procedures

logger = logging.getLogger(__name__)
POSTGRES_PORT = 5432


def similar_links(settings: Settings) -> SimilarLinks:
    """Return how memories are linked to their nearest neighbours."""
    return SimilarLinks(settings.write.similar_links, settings.write.similar_min)


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


def database_digest(settings: Settings) -> str:
    """Return a digest of the database: the same for another password or other options of the connection.

    By it a deployment finds the actors that an earlier one made, to end those of other settings.
    """
    named = conninfo_to_dict(postgres_url(settings))
    place = [named.get(part) for part in ("service", "host", "hostaddr")]
    database = named.get("dbname") or named.get("user")
    return digest(*place, str(named.get("port") or POSTGRES_PORT), database).hex()[:16]


def session_url(settings: Settings) -> str:
    """Return the URL of the database for session state: migrations, notifications, locks.

    Raises:
        Misconfigured: If Postgres is embedded but `lamina up` did not start it.
    """
    match settings.postgres:
        # Behind a pooler in transaction mode, neither notifications nor session locks work.
        case PostgresServerSettings(direct_url=str(url)):
            return url
        case _:
            return postgres_url(settings)


def pooling(settings: Settings) -> Pooling:
    """Return how the server of `postgres_url` pools connections."""
    match settings.postgres:
        case PostgresServerSettings(pooling=kept):
            return kept
        case _:
            return "session"


def build_pool(settings: Settings) -> Pool:
    """Return this process's closed pool of connections."""
    return new_pool(postgres_url(settings), settings.pool, pooling=pooling(settings))


def build_model(settings: Settings, device: str) -> ReportingModel:
    """Return the embedding model, loaded on ``cpu`` or ``cuda``."""
    match settings.embedding:
        case SentenceTransformersSettings() as chosen:
            return _build_encoder(chosen, device, settings.data_dir.resolve() / "models")
        case EndpointSettings() as chosen:
            from lamina.models.endpoint import EndpointModel  # noqa: PLC0415 - imports an HTTP client

            return EndpointModel(chosen, utc_now)
        case HashingSettings(dimension=dimension, seed=seed):
            return HashingModel(dimension, seed)
        case _ as other:
            assert_never(other)


def _build_encoder(chosen: SentenceTransformersSettings, device: str, graphs: Path) -> ReportingModel:
    has_torch = is_torch_installed()
    match runtime(chosen.runtime, device, chosen.precision, has_torch=has_torch):
        case "torch":
            return _build_torch_model(chosen, device)
        case "onnx":
            with needing("model", f"embedding.runtime is {chosen.runtime}"):
                from lamina.models.onnx.model import OnnxModel  # noqa: PLC0415 - not every process embeds
            try:
                return OnnxModel(chosen, device, graphs)
            except Misconfigured as error:
                if not _may_fall_back(chosen, error, has_torch=has_torch):
                    raise
            return _build_torch_model(chosen, device)
        case _ as other:
            assert_never(other)


def _build_torch_model(chosen: SentenceTransformersSettings, device: str) -> ReportingModel:
    from lamina.models.sentence_transformers import SentenceTransformerModel  # noqa: PLC0415 - imports torch

    return SentenceTransformerModel(chosen, device)


def _may_fall_back(chosen: SentenceTransformersSettings, error: Misconfigured, *, has_torch: bool) -> bool:
    """Return whether torch runs a model that ONNX Runtime cannot run: with `auto`, where it is installed.

    Raises:
        Misconfigured: If it would run it, but is not installed.
    """
    if chosen.runtime != "auto" or chosen.precision == "int8":
        return False
    if not has_torch:
        raise Misconfigured(
            f"ONNX Runtime cannot run embedding.model {chosen.model}: {error.what}; and torch, which may, is missing",
            "install lamina-memory[gpu], or choose another embedding.model",
        ) from error
    logger.warning("torch runs embedding.model %s, because ONNX Runtime cannot: %s", chosen.model, error.what)
    return True


def model_identity(settings: Settings) -> ModelIdentity:
    """Return the configured model's identity, without its weights where its files suffice."""
    match settings.embedding:
        case SentenceTransformersSettings() as chosen:
            return _encoder_identity(chosen)
        case EndpointSettings() as chosen:
            return endpoint_identity(chosen)
        case HashingSettings(dimension=dimension, seed=seed):
            return HashingModel(dimension, seed).identity
        case _ as other:
            assert_never(other)


def _encoder_identity(chosen: SentenceTransformersSettings) -> ModelIdentity:
    from lamina.models.onnx.folder import identity_by_files  # noqa: PLC0415 - not every process embeds

    try:
        return identity_by_files(chosen)
    except Misconfigured as error:
        if chosen.runtime != "torch" and not _may_fall_back(chosen, error, has_torch=is_torch_installed()):
            raise
    from lamina.models.sentence_transformers import SentenceTransformerModel  # noqa: PLC0415 - imports torch

    return SentenceTransformerModel(chosen, "cpu").identity


def with_thresholds(settings: Settings, generation: Generation) -> Settings:
    """Return the settings with the cosines that belong to the generation's model in place of their own."""
    for name, cosine in generation.thresholds.items():
        settings = _replaced(settings, name.split("."), cosine)
    return settings


def _replaced(section: SectionT, path: Sequence[str], value: object) -> SectionT:
    name, *rest = path
    chosen = _replaced(getattr(section, name), rest, value) if rest else value
    return section.model_copy(update={name: chosen})


def learning_policy(settings: Settings) -> LearningPolicy:
    """Return when runs teach procedures, and when these are active or dropped."""
    chosen = settings.jobs.learning
    return LearningPolicy(chosen.similarity, chosen.steps, chosen.successes, chosen.failures)


def build_procedure_reads(settings: Settings, pool: Pool) -> Procedures:
    """Build the reads of procedures."""
    policy = MatchPolicy(
        min_overlap=settings.procedures.min_overlap,
        min_similarity=settings.search.min_similarity,
        strength_weight=settings.procedures.strength_weight,
        learnt_similarity=settings.procedures.learnt_similarity,
    )
    return Procedures(pool, policy)
