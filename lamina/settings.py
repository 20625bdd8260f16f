"""Everything a user can set: one model, each field with a default and a line of documentation.

Sources, strongest first: arguments, environment variables (``LAMINA_SEARCH__RRF_K=30``, or the file that
``LAMINA_POSTGRES__URL_FILE`` names), the YAML file, the defaults here.
"""

import os
from collections.abc import Mapping
from contextvars import ContextVar
from ipaddress import ip_network
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import (
    BaseSettings,
    EnvSettingsSource,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
    SettingsError,
    YamlConfigSettingsSource,
)
from yaml import YAMLError

from lamina.core.masking import is_secret, mask_secrets
from lamina.core.queries import MAX_DEPTH
from lamina.core.quotas import Resource
from lamina.core.tiers import PROJECTIONS, TIERS, ProjectionName, Source, TierName
from lamina.errors import Misconfigured
from lamina.secret_files import FILE_SUFFIX, variable_or_file

ENV_PREFIX = "LAMINA_"
# Read by the CLI, by clients and by tests, and set in processes that Lamina starts.
OTHER_VARIABLES = (
    "LAMINA_CONFIG",
    "LAMINA_DEBUG",
    "LAMINA_URL",
    "LAMINA_API_KEY",
    "LAMINA_TEST_",
    "LAMINA_INSTANCE_FOLDER",
    "LAMINA_JOB_WORKER",
)
MIB = 1024 * 1024
PACKAGED_MODEL = "all-MiniLM-L6-v2"
OFF = "off"
IN_MEMORY = ":memory:"
CRON_FIELDS = 5
# Resources that Ray counts by itself, with the settings for them.
COUNTED_BY_RAY = {
    "CPU": "num_cpus (jobs.task_cpus for jobs)",
    "GPU": "serve.embedder.gpu_fraction",
    "memory": "jobs.task_memory_mb for jobs",
    "object_store_memory": "nothing in its place",
}
Schedule = Annotated[str, Field(min_length=3)]
_STORE_PREFIX = r"^[A-Za-z][A-Za-z0-9_]{0,31}$"
# pydantic-settings has no way to hand a source to one construction.
_file_to_load: ContextVar[Path | None] = ContextVar("file_to_load", default=None)


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


SectionT = TypeVar("SectionT", bound=BaseModel)


def _require_order(section: SectionT, *names: str) -> SectionT:
    """Return the section, if the values of these fields do not decrease."""
    for lower, higher in pairwise(names):
        small, large = getattr(section, lower), getattr(section, higher)
        if small > large:
            message = f"{lower} is {small}, more than {higher} ({large})"
            raise ValueError(message)
    return section


def _refuse_counted_resources(resources: dict[str, float]) -> dict[str, float]:
    """Return the resources, unless one of them has a setting of its own."""
    for name, setting in COUNTED_BY_RAY.items():
        if name in resources:
            message = f"{name} is counted by Ray itself; take it out, and set {setting}"
            raise ValueError(message)
    return resources


CustomResources = Annotated[dict[str, float], AfterValidator(_refuse_counted_resources)]


class EmbeddedPostgresSettings(_Section):
    """Postgres from a wheel, in a process of `lamina up`, on a Unix socket."""

    kind: Literal["embedded"] = "embedded"
    shared_buffers_mb: int = Field(128, ge=16, description="Postgres's page cache, in MiB.")
    max_connections: int = Field(100, ge=20, description="Most connections the server accepts.")


class PostgresServerSettings(_Section):
    """A Postgres server (15 or later, with pgvector 0.7 or later)."""

    kind: Literal["server"] = "server"
    url: str = Field(
        description="Connection URL, `postgresql://user:password@host:5432/database`; TLS that checks the server by "
        "`?sslmode=verify-full&sslrootcert=/path/of/root.crt` at its end."
    )
    direct_url: str | None = Field(
        None,
        description="URL past a pooler such as PgBouncer, for migrations, notifications and locks, which need a "
        "session of their own; `url` if not set.",
    )
    pooling: Literal["session", "transaction"] = Field(
        "session", description="Pooling mode of `url`: `transaction` behind PgBouncer in transaction mode."
    )
    max_connections: int = Field(
        100, ge=1, description="Connections the server accepts; `lamina config check` compares all pools with it."
    )
    wait_s: float = Field(60.0, ge=0, description="Seconds that the start waits for a server that does not answer yet.")

    @model_validator(mode="after")
    def _past_the_pooler(self) -> Self:
        if self.pooling == "transaction" and self.direct_url is None:
            message = "pooling is transaction, which keeps no locks and no notifications; set direct_url too"
            raise ValueError(message)
        return self


class QdrantEdgeSettings(_Section):
    """Qdrant's engine, embedded in the searcher that owns the index."""

    kind: Literal["qdrant_edge"] = "qdrant_edge"
    search_threads: int = Field(1, ge=1, description="Threads of one index's search pool.")

    @property
    def is_local(self) -> bool:
        """Whether only one process may open it."""
        return True


class QdrantServerSettings(_Section):
    """A Qdrant server or cluster (1.19 or later, which counts how rare a word is within a scope)."""

    kind: Literal["qdrant"] = "qdrant"
    url: str = Field(
        description="URL of its REST port, `http://host:6333`; `:memory:` or an absolute folder runs the client's slow "
        "stand-in inside this process, for tests."
    )
    api_key: SecretStr | None = Field(None, description="Its API key, if it needs one.")
    grpc_port: int | None = Field(6334, ge=1, le=65535, description="Its gRPC port, which is faster; REST if null.")
    prefix: str = Field("lamina", pattern=_STORE_PREFIX, description="Prefix of the names of its collections.")
    read_timeout_s: float = Field(2.0, gt=0, description="Seconds after which a search is given up.")
    write_timeout_s: float = Field(30.0, gt=0, description="The same for changes, and for reads of whole collections.")
    m: int = Field(16, ge=4, le=128, description="Links of a vector in the HNSW graph.")
    ef_construction: int = Field(128, ge=8, le=2000, description="Candidates considered while the graph is built.")
    ef_search: int = Field(64, ge=8, le=2000, description="Candidates considered while the graph is searched.")
    quantisation: Literal["none", "scalar", "binary"] = Field(
        "none", description="Compressed vectors that searches look at first: 8 bits a number, or 1."
    )
    on_disk: bool = Field(default=False, description="Whether full vectors stay on disk.")
    shards: int = Field(1, ge=1, description="Shards of a new collection.")
    replicas: int = Field(1, ge=1, description="Copies of each shard of a new collection.")

    @property
    def is_local(self) -> bool:
        """Whether only one process may open it: the client's stand-in, in memory or in a folder."""
        return self.url == IN_MEMORY or self.url.startswith("/")


class MeilisearchSettings(_Section):
    """A Meilisearch server (1.13 or later)."""

    kind: Literal["meilisearch"] = "meilisearch"
    url: str = Field(pattern="^https?://", description="Its URL, `http://host:7700`.")
    api_key: SecretStr | None = Field(None, description="A key that may search, and change documents and settings.")
    prefix: str = Field("lamina", pattern=_STORE_PREFIX, description="Prefix of the names of its indexes.")
    semantic_ratio: float = Field(0.7, ge=0, le=1, description="Weight of meaning; words have the rest.")
    read_timeout_s: float = Field(2.0, gt=0, description="Seconds after which a search is given up.")
    task_timeout_s: float = Field(60.0, gt=0, description="Seconds after which an unfinished change is given up.")
    payload_mib: int = Field(
        32,
        ge=1,
        le=1024,
        description="Most MiB of documents in one call; the server accepts 100 MB by default.",
    )
    connections: int = Field(8, ge=1, description="Most connections of one process, for each index.")
    locales: tuple[str, ...] = Field(
        ("eng", "jpn", "cmn", "kor"),
        description="Languages of the texts (ISO 639-3), to tell Japanese from Chinese; guessed if empty.",
    )

    @property
    def is_local(self) -> bool:
        """Whether only one process may open it."""
        return False


class EmbeddedFalkorDBSettings(_Section):
    """FalkorDB from a wheel, in a process of `lamina up`, on a Unix socket."""

    kind: Literal["embedded"] = "embedded"
    threads: int = Field(2, ge=1, description="Queries that the server runs at the same time.")
    connections: int = Field(8, ge=1, description="Most connections of one process to it.")


class FalkorDBServerSettings(_Section):
    """A FalkorDB server (4.0 or later) with its append-only file switched on."""

    kind: Literal["falkordb"] = "falkordb"
    url: str = Field(description="Connection URL, `redis://user:password@host:6379` or `unix:///path/of/socket`.")
    connections: int = Field(8, ge=1, description="Most connections of one process to it.")


class Neo4jServerSettings(_Section):
    """A Neo4j server (5.0 or later)."""

    kind: Literal["neo4j"] = "neo4j"
    url: str = Field(
        pattern=r"^(bolt|neo4j)(\+s|\+ssc)?://",
        description="Connection URL, `bolt://host:7687`, or `neo4j://host:7687` for a cluster; with TLS `bolt+s://` "
        "and `neo4j+s://`.",
    )
    user: str = Field("neo4j", description="Name of the user.")
    password: SecretStr = Field(SecretStr(""), description="The user's password.")
    database: str = Field("neo4j", description="Name of a database for Lamina's graph alone.")
    connections: int = Field(8, ge=1, description="Most connections of one process to it.")
    reads: Literal["leader", "replicas"] = Field(
        "leader",
        description="Servers of a cluster that answer searches: replicas take load off the leader, and may show "
        "changes of other processes a moment later.",
    )


class NoGraphSettings(_Section):
    """No graph store: entities are found, but their links are not followed."""

    kind: Literal["off"] = "off"


# Cosines whose good values depend on the model.
ThresholdName = Literal[
    "search.min_similarity",
    "search.graph_min_similarity",
    "write.near_duplicate",
    "caches.semantic.threshold",
    "jobs.consolidation.cosine",
]
Cosine = Annotated[float, Field(ge=-1, le=1)]


class _ModelSection(_Section):
    thresholds: dict[ThresholdName, Cosine] = Field(
        {},
        description="Cosines for this model, by the names of the settings that they replace; stored with its vectors.",
    )
    tokens_per_s: float = Field(
        2000.0,
        gt=0,
        description="Tokens that one replica embeds in a second: the packaged model 4 000 to 5 500 on one CPU thread "
        "that computes in bfloat16, a third of it on others; limits are reckoned by it.",
    )


class SentenceTransformersSettings(_ModelSection):
    """A model in sentence-transformers' layout, run by torch or by ONNX Runtime."""

    kind: Literal["sentence_transformers"] = "sentence_transformers"
    runtime: Literal["auto", "onnx", "torch"] = Field(
        "auto",
        description="What runs it: torch, or ONNX Runtime, which runs BERT-family models in a local folder; auto is "
        "torch where it is installed and Ray sees a GPU, or ONNX Runtime cannot run the model, and ONNX Runtime "
        "elsewhere. The vectors of both may be mixed.",
    )
    model: str = Field(PACKAGED_MODEL, description="The packaged model, or a path or name to load.")
    threads: int | None = Field(
        None,
        ge=1,
        description="CPU threads of one embedder replica, and no more than its machine or container has processors; "
        "all of these, but at most four, if null.",
    )
    provider: Literal["auto", "cpu", "cuda", "tensorrt", "openvino"] = Field(
        "auto",
        description="ONNX Runtime's execution provider, of those that the installed one has; auto is CUDA on a GPU and "
        "the processor elsewhere.",
    )
    precision: Literal["auto", "float32", "bfloat16", "float16", "int8"] = Field(
        "auto",
        description="Type of the weights: half precision is torch's alone, and its auto where the GPU or the CPU "
        "computes in it; int8 is ONNX Runtime's alone, and another model to the stores: a change of it embeds anew.",
    )
    batch_size: int = Field(64, ge=1, description="Most texts in one forward pass.")

    @model_validator(mode="after")
    def _runs_in_its_precision(self) -> Self:
        if self.runtime == "onnx" and self.precision in {"bfloat16", "float16"}:
            message = f"precision is {self.precision}, but runtime onnx computes in float32; leave precision out"
            raise ValueError(message)
        if self.precision == "int8" and (self.runtime == "torch" or self.provider in {"cuda", "tensorrt"}):
            message = "precision is int8, which ONNX Runtime computes on processors alone; leave precision out"
            raise ValueError(message)
        return self


class HashingSettings(_ModelSection):
    """Hashed words instead of a model: for tests, and for machines that cannot run one."""

    kind: Literal["hashing"] = "hashing"
    dimension: int = Field(384, ge=8, description="Length of the vectors.")
    tokens_per_s: float = Field(100_000.0, gt=0, description="Tokens that one replica embeds in a second.")
    seed: int = Field(0, ge=0, description="Another seed is another model, for tests of a change of model.")


class PoolSettings(_Section):
    """Connections of one process to Postgres."""

    min_size: int = Field(1, ge=0, description="Connections kept open.")
    max_size: int = Field(
        8,
        ge=1,
        description="Most connections, at least as many as are kept open; of four or more, half serve look-ups by key.",
    )
    timeout_s: float = Field(5.0, gt=0, description="Longest wait for a connection, in seconds.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _require_order(self, "min_size", "max_size")


class WeightedSettings(_Section):
    """Weighted fusion; the weights are shared among the sources that answered (NovaMem, Hybrid fusion)."""

    keyword: float = Field(0.3, ge=0, description="Weight of words.")
    vector: float = Field(0.6, ge=0, description="Weight of meaning.")
    graph: float = Field(0.1, ge=0, description="Weight of links.")
    vector_floor: float = Field(0.25, ge=0, le=1, description="A lower cosine counts as none.")
    full_figure: float = Field(
        0.5, gt=0, le=1, description="Least cosine, or word score, with which min-max scales the best hit to 1."
    )


class HybridWeightsSettings(_Section):
    """Shares of words and meaning in one index that ranks by both (Open Astra, Tiered Search)."""

    keyword: float = Field(0.3, ge=0, description="Weight of words.")
    vector: float = Field(0.7, ge=0, description="Weight of meaning.")

    @model_validator(mode="after")
    def _counted(self) -> Self:
        if not self.keyword and not self.vector:
            raise ValueError("keyword and vector are both 0; expected at least one above 0")
        return self


class HybridWeightsByTierSettings(_Section):
    """The shares, index by index."""

    notes: HybridWeightsSettings = HybridWeightsSettings()
    documents: HybridWeightsSettings = HybridWeightsSettings()


class CompositeSettings(_Section):
    """The composite relevance (Siestai, Composite scoring)."""

    similarity: float = Field(0.5, gt=0, description="Weight of the cosine.")
    importance: float = Field(0.3, ge=0, description="Weight of the importance.")
    recency: float = Field(0.2, ge=0, description="Weight of the time since the last access.")
    decay_per_day: float = Field(0.05, ge=0, description="Recency is exp(−decay · days since the last access).")


class SearchSettings(_Section):
    """How a search is made and fused."""

    limit: int = Field(10, ge=1, le=1000, description="Fused hits returned when the request names no limit.")
    per_source: int = Field(10, ge=1, le=1000, description="Ranks of each source that count in full (`search_top_k`).")
    session_ranking: Literal["fitted", "fixed"] = Field(
        "fitted",
        description="How messages rank among those around them: by the weights of many signals that were fitted on "
        "conversations, or by two fixed weights of words and meaning.",
    )
    context_candidates: int = Field(
        50, ge=1, le=1000, description="Messages each source offers to the ranking with their neighbours."
    )
    rrf_weights: dict[Source, Annotated[float, Field(gt=0)]] = Field(
        {Source.SESSION_VECTORS: 0.1, Source.SESSION_WORDS: 0.1, Source.NOTES_WARM: 0.1, Source.GRAPH: 1.2},
        description="Weight of a source in reciprocal rank fusion; 1 where none is given.",
    )
    tier_weights: dict[TierName, Annotated[float, Field(gt=0, le=1)]] = Field(
        {"graph": 0.6, "procedures": 0.9, "documents": 0.9},
        description="Weight of the best place in a tier; 1 where none is given.",
    )
    hybrid_weights: HybridWeightsByTierSettings = HybridWeightsByTierSettings()
    weights: WeightedSettings = WeightedSettings()
    composite: CompositeSettings = CompositeSettings()
    diversity_jaccard: float = Field(
        0.85, gt=0, le=1, description="Hits of a tier whose words overlap this much are alike; 1 switches it off."
    )
    diversity_variants: int = Field(
        3, ge=1, description="Most alike hits that keep their places, since they differ in a number, name or negation."
    )
    present_order: bool = Field(
        default=True,
        description="The first ten hits for a question about the present are ordered: statements that hold come before "
        "those that held. With the fusion `rrf` alone.",
    )
    rrf_k: int = Field(60, ge=1, description="Rank offset of reciprocal rank fusion.")
    min_similarity: float = Field(
        0.25,
        ge=-1,
        le=1,
        description="Vector hits with a lower cosine are dropped; of messages, for a question about the present, those "
        "below 0.4 of it.",
    )
    min_confidence: float = Field(0.5, ge=0, le=1, description="Notes with a lower confidence are left out.")
    source_deadline_s: float = Field(1.0, gt=0, description="Seconds after which a source counts as failed.")
    tier_deadline_s: float = Field(1.5, gt=0, description="The same for a whole tier, transport included.")
    embed_deadline_s: float = Field(2.0, gt=0, description="The same for the query's embedding.")
    max_wait_s: float = Field(
        1.0,
        gt=0,
        description="Longest wait of a search for its turn, in seconds; one that would wait longer is answered 503. "
        "How many searches run at the same time follows the times that the last ones took.",
    )
    hit_flush_s: float = Field(1.0, gt=0, description="Seconds for which hits gather before they are counted together.")
    graph_depth: int = Field(3, ge=1, le=MAX_DEPTH, description="Steps along the graph, if a request names no depth.")
    graph_fan_out: int = Field(32, ge=1, description="Links followed from one node, the strongest first.")
    graph_max_edges: int = Field(5000, ge=1, description="Links followed for one search.")
    graph_max_probes: int = Field(
        5000,
        ge=1,
        description="Look-ups in the graph for one search: of what may be a name in the question, then of nodes whose "
        "links are followed. A question of 512 words, of which names are sought, may hold 4 096 names.",
    )
    graph_threshold: float = Field(0.2, ge=0, le=1, description="Paths weaker than this lead nowhere.")
    graph_min_similarity: float = Field(
        0.7,
        ge=0,
        le=1,
        description="Least cosine from which a walk starts at an entity that the question does not name.",
    )
    graph_common_mentions: int = Field(
        1000, ge=2, description="Mentions from which an entity is too common to say anything about one memory."
    )


class ColdSettings(_Section):
    """The index of cold notes."""

    collections: Literal["per_namespace", "shared"] = Field(
        "per_namespace",
        description="One collection for each tenant, workspace and namespace, or one for all, if there are very many.",
    )
    max_open: int = Field(64, ge=1, description="Most collections open at a time; the least recently used one closes.")


class ProceduresSettings(_Section):
    """How procedures match, beside `search.min_similarity` for their meaning."""

    min_overlap: float = Field(
        0.5,
        gt=0,
        le=1,
        description="Least share of common words for a match of trigger and question; all words of one always match.",
    )
    strength_weight: float = Field(
        0.2, ge=0, le=1, description="Share of its similarity that a match loses if all its outcomes were failures."
    )


class ContextSettings(_Section):
    """The context block."""

    budget_tokens: int = Field(8192, ge=16, description="Estimated tokens the block never exceeds.")
    max_chunks: int = Field(20, ge=1, le=1000, description="Most memories in a block.")
    min_relevance: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Memories with a lower fused score stay out; requests and profiles may set their own.",
    )
    min_weight: float = Field(0.2, ge=0, le=1, description="Notes whose weight has decayed below this stay out.")
    hint_results: int = Field(3, ge=0, le=100, description="Memories of a block that get a line of graph hints.")
    hint_neighbours: int = Field(2, ge=1, le=100, description="Hints in such a line.")


class IndexerSettings(_Section):
    """How the outbox is applied to the projections."""

    batch_size: int = Field(256, ge=1, description="Most outbox rows applied at once.")
    flush_interval_s: float = Field(
        0.5,
        gt=0,
        description="Seconds for which applied changes wait to be flushed together; they are visible already.",
    )
    poll_interval_s: float = Field(2.0, gt=0, description="Longest sleep without a notification, in seconds.")


class LanguageModelSettings(_Section):
    """An OpenAI-compatible endpoint, where `write.extraction` or `jobs.summaries.by` says `language_model`."""

    base_url: str | None = Field(
        None, pattern="^https?://", description="URL before `/chat/completions`, as in `http://localhost:8000/v1`."
    )
    model: str | None = Field(None, description="Name of the model, as the endpoint knows it.")
    api_key: SecretStr | None = Field(None, description="Bearer token, if the endpoint needs one.")
    timeout_s: float = Field(20.0, gt=0, description="Longest wait for one answer, in seconds.")
    deadline_s: float = Field(
        45.0, gt=0, description="Longest wait for one turn, retries included; then the rules extract."
    )
    max_retries: int = Field(3, ge=0, description="Further tries after 408, 409, 429, 5xx and broken connections.")
    backoff_s: float = Field(0.5, gt=0, description="Wait before the first retry; it doubles, with jitter.")
    max_concurrency: int = Field(8, ge=1, description="Most calls of one process at a time.")
    call_tokens: int = Field(16_000, ge=256, description="Most tokens of one call, answer included.")
    answer_tokens: int = Field(2_000, ge=64, description="Most tokens of one answer.")
    daily_tokens: int = Field(2_000_000, ge=0, description="Most tokens of one process in a day of UTC.")
    temperature: float | None = Field(0.0, ge=0, le=2, description="Sampling temperature; none is sent if not set.")
    limit_parameter: Literal["max_tokens", "max_completion_tokens"] = Field(
        "max_tokens", description="The endpoint's name for the limit of an answer."
    )


class WriteSettings(_Section):
    """The write path."""

    extraction: Literal["rules", "off", "language_model"] = Field(
        "rules", description="How notes, facts and names are extracted from messages; a language model costs tokens."
    )
    near_duplicate: float = Field(
        0.92, gt=0, le=1, description="Cosine from which a note that says nothing new reinforces the old one; 1: never."
    )
    embed_deadline_s: float = Field(
        60.0,
        gt=0,
        description="Seconds after which a write gives up on the embedder, beside those that its texts take.",
    )
    embed_budget_s: float = Field(
        60.0,
        gt=0,
        description="Most seconds of the embedding model that one request's messages or notes may take, by "
        "`embedding.tokens_per_s`; larger requests are answered 413, and nothing of them is stored.",
    )
    max_metadata_bytes: int = Field(
        65_536,
        ge=1,
        le=MIB,
        description="Largest metadata of a memory, and largest patch of a profile, as JSON, in bytes.",
    )
    key_cache_s: float = Field(
        3.0,
        ge=0,
        le=5,
        description="Seconds for which a checked API key is trusted without another check; a revocation takes effect "
        "on every replica after them.",
    )
    idempotency_days: float = Field(
        1.0,
        gt=0,
        description="Days for which an `Idempotency-Key` gives its first answer again; then the job caches removes it.",
    )


class ErasureSettings(_Section):
    """The erasure of users, and its receipts."""

    wait_s: float = Field(
        20.0, ge=0, description="Seconds for which `DELETE /v1/users` waits for its end before it answers 202."
    )
    rewrite_mib: int = Field(
        64,
        ge=0,
        description="Tables up to this size, in MiB with their indexes, are locked and written anew; larger ones are "
        "vacuumed, and the receipt names them.",
    )
    signing_key: Path | None = Field(
        None,
        description="File of the Ed25519 private key in PEM that signs receipts; `receipts.pem` in data_dir, which is "
        "made once, if not set.",
    )
    receipt_days: float = Field(
        3650.0,
        ge=30,
        description="Days after its end for which an erasure and its receipt can be read; then the job caches removes "
        "them. A receipt that was kept elsewhere is verified as before.",
    )


class HistorySettings(_Section):
    """How long replaced and ended rows are kept."""

    note_versions: int = Field(
        100, ge=0, description="Most earlier versions of a note; with the next change the oldest one is removed."
    )
    profile_versions: int = Field(100, ge=0, description="Most earlier versions of a user's profile.")
    days: float = Field(
        365.0,
        gt=0,
        description="Days for which is kept: an earlier version of a note or profile after it was replaced, an outcome "
        "of a procedure, a key or share after it was revoked or expired. The jobs sweep and caches remove them.",
    )
    empty_days: float = Field(
        30.0,
        ge=1,
        description="Days after which the job caches forgets a namespace in which nothing is left, and a session "
        "without messages. Answers that are cached for longer than that prolong it.",
    )


class DocumentsSettings(_Section):
    """How uploaded documents are read and cut."""

    passage_chars: int = Field(
        800,
        ge=50,
        le=20_000,
        description="Most characters of a passage; with its title it should fit the model, which reads some 1 000.",
    )
    max_bytes: int = Field(20_000_000, ge=1, description="Largest file accepted, in bytes.")
    max_chars: int = Field(2_000_000, ge=1, description="Most characters of text in one document.")
    parse_deadline_s: float = Field(30.0, gt=0, description="Seconds after which a document counts as unreadable.")
    parse_memory_mib: int = Field(1024, ge=256, description="Most memory that reading one document takes, in MiB.")
    embed_budget_s: float = Field(
        1200.0,
        gt=0,
        description="Most seconds of the embedding model that the documents of one request may take, by "
        "`embedding.tokens_per_s`; larger requests are answered 413, and nothing of them is stored.",
    )


class FrontCacheSettings(_Section):
    """A router replica's own copies of answers from the shared caches; the epoch tells whether a copy is fresh."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    entries: int = Field(256, ge=1, description="Most answers.")
    max_bytes: int = Field(8 * MIB, ge=1, description="Most bytes.")


class AgentFilterSettings(_Section):
    """Layer 1: the agents that have cached responses; lookups of all others are not embedded."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    workspaces: int = Field(10_000, ge=1, description="Most workspaces of one shard.")
    max_bytes: int = Field(16 * MIB, ge=1, description="Most bytes of one shard.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds for which a list of agents counts as complete.")


class TurnHashSettings(_Section):
    """Layer 2: answers to exactly the same request."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds an answer lives.")
    entries: int = Field(10_000, ge=1, description="Most answers of one shard.")
    max_bytes: int = Field(32 * MIB, ge=1, description="Most bytes of one shard.")


class SemanticCacheSettings(_Section):
    """Layer 3: a model's responses, found again by the meaning of the question."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    threshold: float = Field(0.97, gt=0, le=1, description="Least cosine of two questions with the same response.")
    guard: bool = Field(
        default=True, description="Whether a difference in numbers, negations or names makes it another question."
    )
    ttl_s: float = Field(3600.0, gt=0, description="Seconds a response lives before hit rates are known.")
    ttl_min_s: float = Field(600.0, gt=0, description="The same where the hit rate is lowest; at most `ttl_s`.")
    ttl_max_s: float = Field(
        7200.0, gt=0, description="The same where the hit rate is highest; at most twice `ttl_s` is used."
    )
    grace_s: float = Field(300.0, ge=0, description="Seconds after its expiry for which a response is served as stale.")
    lease_s: float = Field(30.0, gt=0, description="Seconds one caller has to refresh before the next one is asked.")
    budget_bytes: int = Field(50_000_000, ge=1, description="Most bytes of one workspace's responses.")
    evict_share: float = Field(
        0.25,
        gt=0,
        le=1,
        description="Share of them that is evicted when the budget is spent, least recently used first.",
    )
    invalidate: Literal["agent", "workspace"] = Field(
        "agent", description="Responses that a write of memories ends: the writing agent's, or the whole workspace's."
    )
    max_response_bytes: int = Field(1_000_000, ge=1, description="Largest response accepted, in bytes.")
    max_wait_s: float = Field(
        60.0, ge=0, description="Longest wait for another lookup's response that a lookup may ask for."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _require_order(
            _require_order(self, "ttl_min_s", "ttl_s", "ttl_max_s"), "max_response_bytes", "budget_bytes"
        )


class NegativeCacheSettings(_Section):
    """Layer 4: requests that found nothing."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(30.0, gt=0, description="Seconds an empty answer lives; a write ends it at once.")
    entries: int = Field(10_000, ge=1, description="Most empty answers of one shard.")


class GraphCacheSettings(_Section):
    """Layer 5: results of walks through the graph."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(120.0, gt=0, description="Seconds a result lives.")
    entries: int = Field(1000, ge=1, description="Most walks of one shard.")
    max_bytes: int = Field(16 * MIB, ge=1, description="Most bytes of one shard.")


class SwarmCacheSettings(_Section):
    """Layer 6: answers that the agents of one swarm share."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds an answer lives.")
    entries: int = Field(200, ge=1, description="Most answers of one swarm.")
    swarms: int = Field(1000, ge=1, description="Most swarms of one shard; the least recently used one goes.")
    max_bytes: int = Field(32 * MIB, ge=1, description="Most bytes of all swarms of one shard.")


class EmbeddingCacheSettings(_Section):
    """Layer 7: embeddings of texts that were embedded before."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    entries: int = Field(2048, ge=1, description="Most embeddings in the memory of one shard.")
    table: bool = Field(default=True, description="Whether questions' embeddings are kept in Postgres, too.")
    window_s: float = Field(0.1, ge=0, description="Seconds for which new ones gather before one INSERT.")
    ttl_days: float = Field(30.0, gt=0, description="Days after its last use that one stays in Postgres.")


class ProviderMetricsSettings(_Section):
    """Callers' reports on the caches of their model providers."""

    ttl_days: float = Field(90.0, gt=0, description="Days that a report stays.")


class CachesSettings(_Section):
    """The cache stack; every layer has its switch, and an error in any of them is a miss."""

    shards: int = Field(1, ge=1, le=256, description="Actors that share the workspaces among them.")
    resources: dict[str, float] = Field(
        {}, description="Resources that each shard reserves, by Ray's name: they decide where it runs."
    )
    deadline_s: float = Field(0.1, gt=0, description="Seconds after which a cache that does not answer is a miss.")
    failures: int = Field(5, ge=1, description="Failures in a row after which a shard is left alone for a while.")
    pause_s: float = Field(2.0, gt=0, description="How long it is left alone, in seconds.")
    front: FrontCacheSettings = FrontCacheSettings()
    agent_filter: AgentFilterSettings = AgentFilterSettings()
    turn_hash: TurnHashSettings = TurnHashSettings()
    semantic: SemanticCacheSettings = SemanticCacheSettings()
    negative: NegativeCacheSettings = NegativeCacheSettings()
    graph: GraphCacheSettings = GraphCacheSettings()
    swarm: SwarmCacheSettings = SwarmCacheSettings()
    embeddings: EmbeddingCacheSettings = EmbeddingCacheSettings()
    providers: ProviderMetricsSettings = ProviderMetricsSettings()


class DeploymentSettings(_Section):
    """A Ray Serve deployment: resources, limits and number of its replicas."""

    num_cpus: float = Field(0.1, ge=0, description="CPUs one replica reserves.")
    resources: CustomResources = Field(
        {}, description="Other resources that one replica reserves, by Ray's name: they decide where it runs."
    )
    min_replicas: int = Field(1, ge=1, description="Fewest replicas.")
    max_replicas: int = Field(1, ge=1, description="Most replicas; Serve scales between the fewest and the most.")
    target_ongoing_requests: float = Field(
        4.0, gt=0, description="Requests in flight of one replica that autoscaling aims at; queries of a searcher."
    )
    upscale_delay_s: float = Field(5.0, ge=0, description="Seconds of too much work before replicas are added.")
    downscale_delay_s: float = Field(120.0, ge=0, description="Seconds of too little work before they are taken away.")
    look_back_s: float = Field(10.0, gt=0, description="Seconds over which the work is averaged.")
    max_ongoing_requests: int = Field(256, ge=1, description="Calls in flight a replica accepts.")
    max_queued_requests: int = Field(
        512, ge=1, description="Calls that wait for a replica at each caller; more are answered 503."
    )
    health_check_period_s: float = Field(5.0, gt=0, description="Seconds between two health checks.")
    health_check_timeout_s: float = Field(
        10.0, gt=0, description="Seconds after which a health check without an answer has failed."
    )
    drain_s: float = Field(
        10.0, ge=0, description="Longest time for a replica that stops to finish its requests, in seconds."
    )

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _require_order(self, "min_replicas", "max_replicas")


class EmbedderDeploymentSettings(DeploymentSettings):
    """The deployment of the embedding model."""

    num_cpus: float = Field(0.5, ge=0, description="CPUs one replica reserves where there is no GPU.")
    gpu_fraction: float = Field(0.25, ge=0, le=1, description="Share of a GPU one replica takes where Ray has one.")
    accelerator: str | None = Field(None, description="Type of the GPU it needs, by Ray's name, as in `L4`.")
    target_queued_tokens: int = Field(
        1024, ge=1, description="Tokens waiting for one replica that autoscaling aims at; set more for a GPU."
    )


class RouterDeploymentSettings(DeploymentSettings):
    """The deployment of the HTTP ingress; it waits more than it computes."""

    max_ongoing_requests: int = Field(200, ge=1, description="Requests in flight a replica accepts.")
    max_queued_requests: int = Field(400, ge=1, description="Requests that wait for a replica; more are answered 503.")


class SearcherDeploymentSettings(DeploymentSettings):
    """The deployment of a tier's searchers, which wait for stores; embedded stores allow one replica."""

    num_cpus: float = Field(0.05, ge=0, description="CPUs one replica reserves.")
    target_ongoing_requests: float = Field(
        2.0, gt=0, description="Queries in flight of one replica that autoscaling aims at."
    )
    max_ongoing_requests: int = Field(500, ge=1, description="Calls in flight a replica accepts.")
    max_queued_requests: int = Field(1000, ge=1, description="Calls that wait for a replica at each caller.")


class IndexerDeploymentSettings(DeploymentSettings):
    """The deployment that feeds the projections: one replica, which waits for the database and the searchers."""

    num_cpus: float = Field(0.05, ge=0, description="CPUs it reserves.")
    max_replicas: int = Field(1, ge=1, le=1, description="Only one works at a time.")


class SearcherDeployments(_Section):
    """The searchers, each tier by itself."""

    sessions: SearcherDeploymentSettings = SearcherDeploymentSettings()
    notes: SearcherDeploymentSettings = SearcherDeploymentSettings()
    graph: SearcherDeploymentSettings = SearcherDeploymentSettings()
    procedures: SearcherDeploymentSettings = SearcherDeploymentSettings()
    documents: SearcherDeploymentSettings = SearcherDeploymentSettings()


def _clean_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Return networks as they are written usually, or say which is none."""
    return tuple(str(ip_network(network, strict=False)) for network in networks)


class FrontDoorSettings(_Section):
    """Before a request is worked on: how long its sender may take, and how much one address or key may take."""

    headers_s: int = Field(10, ge=1, le=120, description="Seconds in which the head of a request must have arrived.")
    idle_s: int = Field(
        60, ge=1, le=3600, description="Seconds without a byte from, or taken by, the client after which it is cut off."
    )
    body_s: float = Field(
        20.0, gt=0, description="Seconds for which a body, or the reading of an answer, is waited for."
    )
    body_bytes_per_s: int = Field(
        16_384, ge=1, description="Bytes of a body, or of an answer that is read, that extend this by a second."
    )
    connections: int = Field(
        4096, ge=16, description="Connections that the ingress of a machine takes, HAProxy or Serve's own server."
    )
    connections_per_address: int = Field(1024, ge=1, description="The same of one client's address.")
    wrong_keys_per_minute: int = Field(
        30,
        ge=1,
        description="Wrong keys a minute that one address may try at a router; then keys that were never seen are "
        "answered 429 there.",
    )
    unkeyed_requests_per_minute: int = Field(
        6000,
        ge=1,
        description="Requests without a key a minute that one address may make at a router; the API's reference counts "
        "a hundred times. More are answered 429 and their connection is closed.",
    )
    key_share: float = Field(
        0.75, gt=0, le=1, description="Share of `serve.router.max_ongoing_requests` that one key may have in hand."
    )
    tenant_share: float = Field(
        0.5, gt=0, le=1, description="The same of one tenant, while another one asks; a tenant alone may have all."
    )
    tenant_requests: int = Field(
        2,
        ge=1,
        description="Requests of one tenant that a router works on at the same time while another tenant asks; more "
        "wait, those of the other go before them. Of the tenant that was worked on longest lately, half as many.",
    )
    trusted_proxies: Annotated[tuple[str, ...], AfterValidator(_clean_networks)] = Field(
        (),
        description="Addresses and networks of your own proxies: their `X-Forwarded-For` is believed, and "
        "`connections_per_address` is not for them.",
    )


class KeyQuotas(_Section):
    """How much may be taken in a time; without a number there is no limit."""

    requests_per_minute: int | None = Field(None, ge=1, description="Requests a minute.")
    embedded_tokens_per_minute: int | None = Field(
        None, ge=1, description="Estimated tokens a minute that the embedding model reads."
    )
    model_tokens_per_day: int | None = Field(
        None, ge=1, description="Tokens a day of the language model, within requests; jobs have `language_model`."
    )

    def limits(self) -> Mapping[Resource, int]:
        """Return the limits by resource."""
        given = {_RESOURCES.get(name, name): value for name, value in self if value is not None}
        return {Resource(name): value for name, value in given.items()}


_RESOURCES = {
    "requests_per_minute": Resource.REQUESTS,
    "embedded_tokens_per_minute": Resource.EMBEDDED_TOKENS,
    "model_tokens_per_day": Resource.MODEL_TOKENS,
}


class TenantQuotas(KeyQuotas):
    """The same of a tenant, and how much it may store."""

    rows: int | None = Field(None, ge=1, description="Memories of all kinds.")
    bytes: int | None = Field(None, ge=1, description="Bytes of their texts, as Postgres keeps them.")
    documents: int | None = Field(None, ge=1, description="Documents.")
    namespaces: int | None = Field(None, ge=1, description="Namespaces, of all workspaces together.")


class QuotasSettings(_Section):
    """Quotas of every tenant and key that has none of its own (`lamina quotas`)."""

    tenant: TenantQuotas = TenantQuotas()
    key: KeyQuotas = KeyQuotas()


class ServeSettings(_Section):
    """Where the service listens and how its deployments are sized."""

    host: str = Field("127.0.0.1", description="Address of the HTTP endpoint.")
    port: int = Field(0, ge=0, le=65535, description="Port of the HTTP endpoint; 0 takes a free one.")
    ha_proxy: bool = Field(default=True, description="HAProxy as the ingress, where its binary is installed.")
    front_door: FrontDoorSettings = FrontDoorSettings()
    num_cpus: int | None = Field(None, ge=1, description="CPUs Ray may use on this machine; all if not set.")
    topology: Literal["auto", "compact", "spread"] = Field(
        "auto",
        description="`compact` runs router, searchers and indexer in one replica, sized by `serve.router`; `spread` "
        "runs each as a deployment. `auto` is compact under `lamina up` with up to two processors, where one replica "
        "of each is asked for, and spread elsewhere.",
    )
    application: str = Field("deployments.up:run", description="Import path of what `lamina up` starts.")
    allow_ray_without_token: bool = Field(
        default=False, description="Start on a Ray that asks for no token: who reaches its ports runs code there."
    )
    router: RouterDeploymentSettings = RouterDeploymentSettings()
    embedder: EmbedderDeploymentSettings = EmbedderDeploymentSettings()
    searchers: SearcherDeployments = SearcherDeployments()
    indexer: IndexerDeploymentSettings = IndexerDeploymentSettings()


class DedupSettings(_Section):
    """The merge of near-duplicates."""

    jaccard: float = Field(0.85, gt=0, le=1, description="Least share of words in common of two near-duplicates.")
    window_days: float = Field(30.0, gt=0, description="Most days between the writing of one and of the other.")


class SummariesSettings(_Section):
    """Summaries of older notes, of consolidated notes, and of compacted sessions."""

    by: Literal["extractive", "language_model"] = Field(
        "extractive", description="Sentences chosen from the sources, or the endpoint of `language_model`."
    )
    tokens: int = Field(400, ge=32, description="Most estimated tokens of a summary.")
    after_days: float = Field(7.0, ge=0, description="Notes younger than this are not summarised.")
    least_sources: int = Field(3, ge=2, description="Notes of a day from which the day gets a summary.")


class CompactionSettings(_Section):
    """When older messages of a session become a summary."""

    budget_tokens: int = Field(8192, ge=256, description="Estimated tokens that a session may hold.")
    near: float = Field(0.70, gt=0, le=1, description="Share of the budget from which a forecast warns.")
    due: float = Field(0.85, gt=0, le=1, description="Share of the budget from which a session is compacted.")
    target: float = Field(0.50, gt=0, le=1, description="Share of the budget that is left after a compaction.")
    keep_messages: int = Field(4, ge=1, description="Latest messages that are never compacted.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return _require_order(self, "target", "near", "due")


class ConsolidationSettings(_Section):
    """When notes of one kind become one."""

    cosine: float = Field(0.80, gt=0, le=1, description="Least cosine of a member and the middle of its cluster.")
    least_members: int = Field(3, ge=3, description="Members from which a cluster is consolidated.")
    shared_neighbours: int = Field(3, ge=1, description="Neighbours that two entities share to be related.")


class ArchivalSettings(_Section):
    """The archive of cold notes that nobody finds."""

    url: str | None = Field(
        None,
        description="Folder, or URL of an object store (`s3://bucket/path`), for its Parquet files; `archive` in "
        "data_dir if not set.",
    )
    options: dict[str, str] = Field({}, description="Options of the store, as its fsspec driver names them.")
    idle_days: float = Field(180.0, gt=0, description="Days after which a cold note that nobody found is archived.")
    most_hits: int = Field(3, ge=1, description="Notes that were found more often stay.")


class ScheduleSettings(_Section):
    """When jobs run by themselves: cron expressions in UTC, or `off`."""

    sweep: Schedule = Field("5 */6 * * *", description="Demotes notes past their lifespan; takes out expired ones.")
    decay: Schedule = Field("15 1 * * *", description="Lets idle notes fade from contexts.")
    dedup: Schedule = Field("30 1 * * *", description="Merges near-duplicates.")
    entities: Schedule = Field(
        "45 1 * * *", description="Lowers the confidence of entities that are no longer mentioned."
    )
    edges: Schedule = Field("0 2 * * *", description="Lets edges decay.")
    summaries: Schedule = Field("15 2 * * *", description="Summarises days, weeks and months.")
    compaction: Schedule = Field("40 * * * *", description="Compacts sessions that are near their budget.")
    consolidation: Schedule = Field("0 3 * * *", description="Consolidates related notes.")
    archival: Schedule = Field("30 4 * * 0", description="Archives cold notes that nobody finds.")
    caches: Schedule = Field("50 * * * *", description="Removes what expired from the caches' tables.")
    audit: Schedule = Field("0 5 * * *", description="Compares every projection with Postgres, and repairs it.")
    reembed: Schedule = Field("45 3 * * *", description="Embeds what lacks vectors of the model.")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for name in type(self).model_fields:
            _refuse_unreadable(name, getattr(self, name))
        return self


def _refuse_unreadable(job: str, schedule: str) -> None:
    if schedule != OFF and len(schedule.split()) != CRON_FIELDS:
        message = f"{job} is {schedule!r}; write five cron fields (minute hour day month weekday) in quotes, or off"
        raise ValueError(message)


class JobsSettings(_Section):
    """Maintenance over the cluster."""

    launcher: str = Field("jobs.launching:launch", description="Import path of what starts a run on the cluster.")
    is_scheduled: bool = Field(default=True, description="Whether the service runs jobs by their schedule.")
    parallelism: int = Field(2, ge=1, description="Partitions of a run that are worked on at the same time.")
    partitions: int = Field(16, ge=1, description="Most partitions that a run is cut into, by the hash of the scope.")
    task_cpus: float = Field(0.1, ge=0, description="CPUs that one worker reserves.")
    task_memory_mb: int = Field(0, ge=0, description="Memory that one worker reserves, in MiB; 0 reserves none.")
    task_resources: CustomResources = Field(
        {}, description="Other resources that one worker reserves, by Ray's name: they decide where it runs."
    )
    driver_resources: dict[str, float] = Field(
        {},
        description="Resources that the scheduler and each driver of a run reserve, like `task_resources`.",
    )
    nice: int = Field(
        10, ge=0, le=19, description="Niceness of a worker: how far it yields to everything else on its machine."
    )
    page_rows: int = Field(
        2000, ge=1, description="Rows that are changed together, by jobs that decide on each row by itself."
    )
    most_removed: float = Field(
        0.2, ge=0, le=1, description="A scope that would lose more than this share of its rows is left unchanged."
    )
    undo_days: float = Field(30.0, gt=0, description="Days for which a run can be undone.")
    dedup: DedupSettings = DedupSettings()
    summaries: SummariesSettings = SummariesSettings()
    compaction: CompactionSettings = CompactionSettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()
    archival: ArchivalSettings = ArchivalSettings()
    schedule: ScheduleSettings = ScheduleSettings()


PostgresSettings = Annotated[EmbeddedPostgresSettings | PostgresServerSettings, Field(discriminator="kind")]
GraphSettings = Annotated[
    EmbeddedFalkorDBSettings | FalkorDBServerSettings | Neo4jServerSettings | NoGraphSettings,
    Field(discriminator="kind"),
]
HybridSettings = Annotated[QdrantEdgeSettings | QdrantServerSettings | MeilisearchSettings, Field(discriminator="kind")]
VectorSettings = Annotated[QdrantEdgeSettings | QdrantServerSettings, Field(discriminator="kind")]
EmbeddingSettings = Annotated[SentenceTransformersSettings | HashingSettings, Field(discriminator="kind")]


class _Variables(EnvSettingsSource):
    """The environment, in which every variable may name a file with its value instead: `NAME_FILE`."""

    def _load_env_vars(self) -> Mapping[str, str | None]:
        variables, suffix = super()._load_env_vars(), FILE_SUFFIX.lower()
        in_files = {
            name.removesuffix(suffix)
            for name in variables
            if name.endswith(suffix)
            and name.upper().startswith(ENV_PREFIX)
            and not name.upper().startswith(OTHER_VARIABLES)
        }
        given = {name.upper(): value or "" for name, value in variables.items()}
        plain = {name: value for name, value in variables.items() if name.removesuffix(suffix) not in in_files}
        return {**plain, **{name: variable_or_file(name.upper(), given) for name in in_files}}


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
    hybrid: HybridSettings = QdrantEdgeSettings()
    vectors: VectorSettings = QdrantEdgeSettings()
    graph: GraphSettings = EmbeddedFalkorDBSettings()
    embedding: EmbeddingSettings = SentenceTransformersSettings()
    pool: PoolSettings = PoolSettings()
    search: SearchSettings = SearchSettings()
    cold: ColdSettings = ColdSettings()
    procedures: ProceduresSettings = ProceduresSettings()
    context: ContextSettings = ContextSettings()
    write: WriteSettings = WriteSettings()
    erasure: ErasureSettings = ErasureSettings()
    history: HistorySettings = HistorySettings()
    language_model: LanguageModelSettings = LanguageModelSettings()
    indexer: IndexerSettings = IndexerSettings()
    documents: DocumentsSettings = DocumentsSettings()
    caches: CachesSettings = CachesSettings()
    jobs: JobsSettings = JobsSettings()
    quotas: QuotasSettings = QuotasSettings()
    serve: ServeSettings = ServeSettings()

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003 - the signature is pydantic's
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Arguments, then the environment, then the YAML file that is being loaded or that `LAMINA_CONFIG` names."""
        file = _file_to_load.get() or os.environ.get("LAMINA_CONFIG")
        variables = _Variables(settings_cls)
        if not file:
            return init_settings, variables
        return init_settings, variables, YamlConfigSettingsSource(settings_cls, yaml_file=file)


def store_settings(settings: Settings, projection: ProjectionName) -> HybridSettings | VectorSettings | GraphSettings:
    """Return the section that chooses the store of a projection."""
    section: HybridSettings | VectorSettings | GraphSettings = getattr(settings, PROJECTIONS[projection].store)
    return section


def served_tiers(settings: Settings) -> tuple[TierName, ...]:
    """Return the tiers that are served: all whose projections have a store."""
    return tuple(
        name
        for name, spec in TIERS.items()
        if not any(isinstance(store_settings(settings, kept), NoGraphSettings) for kept in spec.projections)
    )


def kept_projections(settings: Settings) -> tuple[ProjectionName, ...]:
    """Return the projections that the served tiers keep."""
    return tuple(projection for name in served_tiers(settings) for projection in TIERS[name].projections)


def load_settings(config: Path | None = None, **overrides: Any) -> Settings:
    """Read the settings of this process.

    Args:
        config: YAML file; `LAMINA_CONFIG` if not given.
        overrides: Fields that win over file and environment.

    Raises:
        Misconfigured: If the file is missing, or a key is unknown or its value is wrong.
    """
    named = os.environ.get("LAMINA_CONFIG")
    chosen = config or (Path(named) if named else None)
    if chosen is not None and not chosen.is_file():
        raise Misconfigured(f"configuration file {chosen} does not exist", "name an existing file with --config")
    _refuse_unknown_variables(os.environ)
    remedy = f"correct {chosen or 'the environment'}; `lamina config check FILE` tells more"
    loading = _file_to_load.set(chosen)
    try:
        return Settings(**overrides)
    except ValidationError as error:
        raise Misconfigured(_describe(error), remedy) from error
    except (SettingsError, YAMLError) as error:
        raise Misconfigured(" ".join(str(error).split()), remedy) from error
    except (TypeError, ValueError) as error:
        raise Misconfigured(f"configuration file {chosen} is no mapping of settings", remedy) from error
    finally:
        _file_to_load.reset(loading)


def _refuse_unknown_variables(environment: Mapping[str, str]) -> None:
    for name in environment:
        if not name.startswith(ENV_PREFIX) or name.startswith(OTHER_VARIABLES):
            continue
        field = name.removeprefix(ENV_PREFIX).removesuffix(FILE_SUFFIX).split("__")[0].lower()
        if field not in Settings.model_fields:
            raise Misconfigured(
                f"environment variable {name} sets nothing",
                f"the settings are {', '.join(sorted(Settings.model_fields))}",
            )


def _describe(error: ValidationError) -> str:
    lines = (
        f"{'.'.join(map(str, item['loc']))}: {mask_secrets(item['msg']).lower()}{_describe_input(item)}"
        for item in error.errors()
    )
    return "; ".join(lines)


def _describe_input(item: ErrorDetails) -> str:
    """Return a refused value, unless it may be a secret: an unknown key may be a misspelt password."""
    if item["type"] in ("extra_forbidden", "missing") or isinstance(item["input"], Mapping | list):
        return ""
    is_hidden = any(is_secret(part) for part in item["loc"])
    return f" (is {'…' if is_hidden else mask_secrets(repr(item['input']))})"
