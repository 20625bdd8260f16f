"""Everything a user can set: one model, each field with a default and a line of documentation.

Sources, strongest first: arguments, environment variables (``LAMINA_SEARCH__RRF_K=30``), the YAML
file, the defaults here.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import (
    BaseSettings,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)
from yaml import YAMLError

from lamina.errors import Misconfigured
from lamina.queries import Source

ENV_PREFIX = "LAMINA_"
# Read elsewhere: by the CLI, by clients and by the tests.
OTHER_VARIABLES = ("LAMINA_CONFIG", "LAMINA_DEBUG", "LAMINA_URL", "LAMINA_API_KEY", "LAMINA_TEST_")
PACKAGED_MODEL = "all-MiniLM-L6-v2"
_PASSWORD = re.compile(r"//[^/@]*@")


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class EmbeddedPostgresSettings(_Section):
    """Postgres from a wheel, in a process of `lamina up`, on a Unix socket."""

    kind: Literal["embedded"] = "embedded"
    shared_buffers_mb: int = Field(128, ge=16, description="Postgres's page cache, in MiB.")
    max_connections: int = Field(100, ge=20, description="Most connections the server accepts.")


class PostgresServerSettings(_Section):
    """A Postgres server (15 or later, with pgvector 0.7 or later)."""

    kind: Literal["server"] = "server"
    url: str = Field(description="Connection URL, `postgresql://user:password@host:5432/database`.")


class QdrantEdgeSettings(_Section):
    """Qdrant's engine in the process of the searcher that owns the index."""

    kind: Literal["qdrant_edge"] = "qdrant_edge"
    search_threads: int = Field(1, ge=1, description="Threads of one index's search pool.")


class SentenceTransformersSettings(_Section):
    """A model that sentence-transformers runs."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    model: str = Field(PACKAGED_MODEL, description="The packaged model, or a path or name to load.")
    threads: int = Field(1, ge=1, description="CPU threads of one embedder replica.")
    precision: Literal["auto", "float32", "bfloat16", "float16"] = Field(
        "auto", description="Type of the weights; auto is half where the GPU or the CPU computes in it."
    )
    batch_size: int = Field(64, ge=1, description="Most texts of one forward pass.")


class HashingSettings(_Section):
    """Hashed words instead of a model: for tests, and for machines that cannot run one."""

    kind: Literal["hashing"] = "hashing"
    dimension: int = Field(384, ge=8, description="Length of the vectors.")


class PoolSettings(_Section):
    """Connections of one process to Postgres."""

    min_size: int = Field(1, ge=0, description="Connections kept open.")
    max_size: int = Field(8, ge=1, description="Most connections.")
    timeout_s: float = Field(5.0, gt=0, description="Longest wait for a connection, in seconds.")


class SearchSettings(_Section):
    """How a search is made and fused."""

    limit: int = Field(10, ge=1, le=1000, description="Fused hits returned when the request names no limit.")
    per_source: int = Field(10, ge=1, le=1000, description="Ranks of each source that count in full (`search_top_k`).")
    context_candidates: int = Field(
        30, ge=1, le=1000, description="Messages each source offers to the ranking with their neighbours."
    )
    rrf_weights: dict[Source, Annotated[float, Field(gt=0)]] = Field(
        {Source.SESSION_VECTORS: 0.1, Source.SESSION_WORDS: 0.1},
        description="Weight of a source in the fusion; 1 where none is given.",
    )
    rrf_k: int = Field(60, ge=1, description="Rank offset of reciprocal rank fusion.")
    min_similarity: float = Field(0.25, ge=-1, le=1, description="Vector hits with a lower cosine are not hits at all.")
    min_confidence: float = Field(0.5, ge=0, le=1, description="Notes less sure than this are left out.")
    source_deadline_s: float = Field(1.0, gt=0, description="Seconds after which a source counts as failed.")
    tier_deadline_s: float = Field(1.5, gt=0, description="The same for a whole tier, transport included.")
    embed_deadline_s: float = Field(2.0, gt=0, description="The same for the query's embedding.")


class ContextSettings(_Section):
    """The context block."""

    budget_tokens: int = Field(8192, ge=16, description="Estimated tokens the block never exceeds.")
    max_chunks: int = Field(20, ge=1, le=1000, description="Most memories in a block.")


class IndexerSettings(_Section):
    """How the outbox is applied to the projections."""

    batch_size: int = Field(256, ge=1, description="Most outbox rows applied at once.")
    flush_interval_s: float = Field(
        0.5,
        gt=0,
        description="Seconds for which applied changes wait to be flushed together; they are visible already.",
    )
    poll_interval_s: float = Field(2.0, gt=0, description="Longest sleep without a notification, in seconds.")


class WriteSettings(_Section):
    """The write path."""

    extraction: Literal["rules", "off"] = Field("rules", description="How notes are drawn from messages.")
    embed_deadline_s: float = Field(60.0, gt=0, description="Seconds after which a write gives up on the embedder.")
    key_cache_s: float = Field(5.0, ge=0, description="Seconds for which a checked API key is trusted unasked.")


class EmbedderDeployment(_Section):
    """The Ray Serve deployment of the embedding model."""

    gpu_fraction: float = Field(0.25, ge=0, le=1, description="Share of a GPU one replica takes where Ray has one.")
    num_cpus: float = Field(0.5, ge=0, description="CPUs one replica reserves where there is no GPU.")
    min_replicas: int = Field(1, ge=1, description="Fewest replicas.")
    max_replicas: int = Field(1, ge=1, description="Most replicas; more than one autoscales.")
    max_ongoing_requests: int = Field(256, ge=1, description="Calls in flight a replica accepts.")


class RouterDeployment(_Section):
    """The Ray Serve deployment of the HTTP ingress."""

    num_cpus: float = Field(0.1, ge=0, description="CPUs one replica reserves; it waits more than it computes.")
    min_replicas: int = Field(1, ge=1, description="Fewest replicas.")
    max_replicas: int = Field(1, ge=1, description="Most replicas; more than one autoscales.")
    max_ongoing_requests: int = Field(200, ge=1, description="Requests in flight a replica accepts.")
    max_queued_requests: int = Field(400, ge=1, description="Requests that wait outside; beyond it 503.")


class ServeSettings(_Section):
    """Where the service listens and how its deployments are sized."""

    host: str = Field("127.0.0.1", description="Address of the HTTP endpoint.")
    port: int = Field(0, ge=0, le=65535, description="Port of the HTTP endpoint; 0 takes a free one.")
    ha_proxy: bool = Field(default=True, description="HAProxy as the ingress, where its binary is installed.")
    num_cpus: int | None = Field(None, ge=1, description="CPUs Ray may use on this machine; all if not set.")
    application: str = Field("deployments.up:run", description="Import path of what `lamina up` starts.")
    router: RouterDeployment = RouterDeployment()
    embedder: EmbedderDeployment = EmbedderDeployment()


PostgresSettings = Annotated[EmbeddedPostgresSettings | PostgresServerSettings, Field(discriminator="kind")]
EmbeddingSettings = Annotated[SentenceTransformersSettings | HashingSettings, Field(discriminator="kind")]


class Settings(BaseSettings):
    """All of Lamina's configuration."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_nested_delimiter="__",
        extra="forbid",
        frozen=True,
        nested_model_default_partial_update=True,
    )

    data_dir: Path = Field(Path(".lamina"), description="Directory of the embedded stores and the local key.")
    postgres: PostgresSettings = EmbeddedPostgresSettings()
    hybrid: QdrantEdgeSettings = QdrantEdgeSettings()
    embedding: EmbeddingSettings = SentenceTransformersSettings()
    pool: PoolSettings = PoolSettings()
    search: SearchSettings = SearchSettings()
    context: ContextSettings = ContextSettings()
    write: WriteSettings = WriteSettings()
    indexer: IndexerSettings = IndexerSettings()
    serve: ServeSettings = ServeSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the YAML file that `LAMINA_CONFIG` names."""
        file = os.environ.get("LAMINA_CONFIG")
        if not file:
            return init_settings, env_settings
        return init_settings, env_settings, YamlConfigSettingsSource(settings_cls, yaml_file=file)


def load_settings(config: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of this process.

    Args:
        config: YAML file; `LAMINA_CONFIG` if not given.
        overrides: Fields that win over file and environment.

    Raises:
        Misconfigured: If the file is missing, or a key is unknown or its value is wrong.
    """
    chosen = config or _config_from_environment()
    if chosen is not None:
        if not chosen.is_file():
            raise Misconfigured(f"configuration file {chosen} does not exist", "name an existing file with --config")
        os.environ["LAMINA_CONFIG"] = str(chosen.resolve())
    _refuse_unknown_variables(os.environ)
    remedy = "correct the configuration file or the environment"
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise Misconfigured(_describe(error), remedy) from error
    except (SettingsError, YAMLError) as error:
        raise Misconfigured(" ".join(str(error).split()), remedy) from error
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"configuration file {chosen} is no mapping of settings", remedy) from error


def _config_from_environment() -> Path | None:
    value = os.environ.get("LAMINA_CONFIG")
    return Path(value) if value else None


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    for name in environment:
        if not name.startswith(ENV_PREFIX) or name.startswith(OTHER_VARIABLES):
            continue
        field = name.removeprefix(ENV_PREFIX).split("__")[0].lower()
        if field not in Settings.model_fields:
            raise Misconfigured(
                f"environment variable {name} sets nothing",
                f"the settings are {', '.join(sorted(Settings.model_fields))}",
            )


def _describe(error: ValidationError) -> str:
    lines = (
        f"{'.'.join(map(str, item['loc']))}: {item['msg'].lower()} (is {_without_password(item['input'])})"
        for item in error.errors()
    )
    return "; ".join(lines)


def _without_password(value: object) -> str:
    return _PASSWORD.sub("//…@", repr(value))
