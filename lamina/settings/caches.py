"""The cache stack, layer by layer."""

from typing import Literal, Self

from pydantic import Field, model_validator

from lamina.settings.section import MIB, Section, require_order


class FrontCacheSettings(Section):
    """A router replica's own copies of answers from the shared caches; the epoch tells whether a copy is fresh."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    entries: int = Field(256, ge=1, description="Most answers.")
    max_bytes: int = Field(8 * MIB, ge=1, description="Most bytes.")


class AgentFilterSettings(Section):
    """Layer 1: the agents that have cached responses; lookups of all others are not embedded."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    workspaces: int = Field(10_000, ge=1, description="Most workspaces of one shard.")
    max_bytes: int = Field(16 * MIB, ge=1, description="Most bytes of one shard.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds for which a list of agents counts as complete.")


class TurnHashSettings(Section):
    """Layer 2: answers to exactly the same request."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds an answer lives.")
    entries: int = Field(10_000, ge=1, description="Most answers of one shard.")
    max_bytes: int = Field(32 * MIB, ge=1, description="Most bytes of one shard.")


class SemanticCacheSettings(Section):
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
        return require_order(
            require_order(self, "ttl_min_s", "ttl_s", "ttl_max_s"), "max_response_bytes", "budget_bytes"
        )


class NegativeCacheSettings(Section):
    """Layer 4: requests that found nothing."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(30.0, gt=0, description="Seconds an empty answer lives; a write ends it at once.")
    entries: int = Field(10_000, ge=1, description="Most empty answers of one shard.")


class GraphCacheSettings(Section):
    """Layer 5: results of walks through the graph."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(120.0, gt=0, description="Seconds a result lives.")
    entries: int = Field(1000, ge=1, description="Most walks of one shard.")
    max_bytes: int = Field(16 * MIB, ge=1, description="Most bytes of one shard.")


class SwarmCacheSettings(Section):
    """Layer 6: answers that the agents of one swarm share."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    ttl_s: float = Field(300.0, gt=0, description="Seconds an answer lives.")
    entries: int = Field(200, ge=1, description="Most answers of one swarm.")
    swarms: int = Field(1000, ge=1, description="Most swarms of one shard; the least recently used one goes.")
    max_bytes: int = Field(32 * MIB, ge=1, description="Most bytes of all swarms of one shard.")


class EmbeddingCacheSettings(Section):
    """Layer 7: embeddings of texts that were embedded before."""

    enabled: bool = Field(default=True, description="Whether it is used.")
    entries: int = Field(2048, ge=1, description="Most embeddings in the memory of one shard.")
    table: bool = Field(default=True, description="Whether questions' embeddings are kept in Postgres, too.")
    window_s: float = Field(0.1, ge=0, description="Seconds for which new ones gather before one INSERT.")
    ttl_days: float = Field(30.0, gt=0, description="Days after its last use that one stays in Postgres.")


class ProviderMetricsSettings(Section):
    """Callers' reports on the caches of their model providers."""

    ttl_days: float = Field(90.0, gt=0, description="Days that a report stays.")


class CachesSettings(Section):
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
