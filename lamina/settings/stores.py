"""Where each store lies: Postgres, the hybrid and vector indexes, the graph."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, SecretStr, model_validator

from lamina.settings.section import Section, require_order

IN_MEMORY = ":memory:"

_STORE_PREFIX = r"^[A-Za-z][A-Za-z0-9_]{0,31}$"


class _PostgresSettings(Section):
    """The choices about tables and indexes, for either kind of server."""

    note_words: Literal["application", "trigger"] = Field(
        "application",
        description="Makes the words by which Postgres finds warm notes: the application, which cuts scripts without "
        "spaces, too; or a trigger, which does not, and serves writers beside Lamina.",
    )
    ivfflat_rows: int | None = Field(
        None,
        ge=1_000,
        description="Rows of a table from which the next start indexes their vectors by IVFFlat and no longer by HNSW, "
        "beside the running service: built sooner and smaller, but less exact. It needs Postgres' "
        "maintenance_work_mem; HNSW comes back when half of the rows are gone. Never if not set.",
    )


class EmbeddedPostgresSettings(_PostgresSettings):
    """Postgres from a wheel, in a process of `lamina up`, on a Unix socket."""

    kind: Literal["embedded"] = "embedded"
    shared_buffers_mb: int = Field(128, ge=16, description="Postgres's page cache, in MiB.")
    max_connections: int = Field(100, ge=20, description="Most connections the server accepts.")


class PostgresServerSettings(_PostgresSettings):
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


class QdrantEdgeSettings(Section):
    """Qdrant's engine, embedded in the searcher that owns the index."""

    kind: Literal["qdrant_edge"] = "qdrant_edge"
    search_threads: int = Field(1, ge=1, description="Threads of one index's search pool.")

    is_local: ClassVar[bool] = True
    """Whether only one process may open it."""


class QdrantServerSettings(Section):
    """A Qdrant server or cluster (1.19 or later, which counts how rare a word is within a scope)."""

    kind: Literal["qdrant"] = "qdrant"
    url: str = Field(
        description="URL of its REST port, `http://host:6333`; `:memory:` or an absolute folder runs the client's slow "
        "stand-in inside this process, for tests."
    )
    api_key: SecretStr | None = Field(None, description="Its API key, if it needs one.")
    grpc_port: int | None = Field(6334, ge=1, le=65535, description="Its gRPC port, which is faster; REST if null.")
    prefix: str = Field("lamina", pattern=_STORE_PREFIX, description="Prefix of the names of its collections.")
    read_timeout_s: float = Field(4.0, gt=0, description="Seconds after which a search is given up, if not before.")
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


class MeilisearchSettings(Section):
    """A Meilisearch server (1.13 or later)."""

    kind: Literal["meilisearch"] = "meilisearch"
    url: str = Field(pattern="^https?://", description="Its URL, `http://host:7700`.")
    api_key: SecretStr | None = Field(None, description="A key that may search, and change documents and settings.")
    prefix: str = Field("lamina", pattern=_STORE_PREFIX, description="Prefix of the names of its indexes.")
    semantic_ratio: float = Field(0.7, ge=0, le=1, description="Weight of meaning; words have the rest.")
    read_timeout_s: float = Field(4.0, gt=0, description="Seconds after which a search is given up, if not before.")
    task_timeout_s: float = Field(60.0, gt=0, description="Seconds after which an unfinished change is given up.")
    payload_mib: int = Field(
        32,
        ge=1,
        le=1024,
        description="Most MiB of documents in one call; the server accepts 100 MB by default.",
    )
    connections: int = Field(
        32,
        ge=1,
        description="Most connections of one process, for each index: opened as more questions and changes are under "
        "way at once. Questions beyond them travel together.",
    )
    locales: tuple[str, ...] = Field(
        ("eng", "jpn", "cmn", "kor"),
        description="Languages of the texts (ISO 639-3), to tell Japanese from Chinese; guessed if empty.",
    )

    is_local: ClassVar[bool] = False
    """Whether only one process may open it."""


class EmbeddedFalkorDBSettings(Section):
    """FalkorDB from a wheel, in a process of `lamina up`, on a Unix socket."""

    kind: Literal["embedded"] = "embedded"
    threads: int = Field(2, ge=1, description="Queries that the server runs at the same time.")
    connections: int = Field(8, ge=1, description="Most connections of one process to it.")


class FalkorDBServerSettings(Section):
    """A FalkorDB server (4.0 or later) with its append-only file switched on."""

    kind: Literal["falkordb"] = "falkordb"
    url: str = Field(description="Connection URL, `redis://user:password@host:6379` or `unix:///path/of/socket`.")
    connections: int = Field(8, ge=1, description="Most connections of one process to it.")


class Neo4jServerSettings(Section):
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


class NoGraphSettings(Section):
    """No graph store: entities are found, but their links are not followed."""

    kind: Literal["off"] = "off"


class PoolSettings(Section):
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
        return require_order(self, "min_size", "max_size")


class ColdSettings(Section):
    """When notes go cold, and the index of those that did."""

    collections: Literal["per_namespace", "named", "shared"] = Field(
        "per_namespace",
        description="One collection for each tenant, workspace and namespace, named by a hash of their ids; the same "
        "with the ids before the hash (named); or one for all, if there are very many (shared).",
    )
    days_per_doubling: float = Field(
        7.0,
        gt=0,
        le=36_500,
        description="A note goes cold after this many days without a hit, times log2 of its hits and 1.",
    )
    max_open: int = Field(64, ge=1, description="Most collections open at a time; the least recently used one closes.")


PostgresSettings = Annotated[EmbeddedPostgresSettings | PostgresServerSettings, Field(discriminator="kind")]

GraphSettings = Annotated[
    EmbeddedFalkorDBSettings | FalkorDBServerSettings | Neo4jServerSettings | NoGraphSettings,
    Field(discriminator="kind"),
]

HybridSettings = Annotated[QdrantEdgeSettings | QdrantServerSettings | MeilisearchSettings, Field(discriminator="kind")]

VectorSettings = Annotated[QdrantEdgeSettings | QdrantServerSettings, Field(discriminator="kind")]
