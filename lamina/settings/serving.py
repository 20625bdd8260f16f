"""The deployments, the front door before them, and quotas."""

from collections.abc import Mapping
from ipaddress import ip_network
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, Field, model_validator

from lamina.core.quotas import Resource
from lamina.settings.section import Section, require_order

# Resources that Ray counts by itself, with the settings for them.
COUNTED_BY_RAY = {
    "CPU": "num_cpus (jobs.task_cpus for jobs)",
    "GPU": "serve.embedder.gpu_fraction",
    "memory": "jobs.task_memory_mb for jobs",
    "object_store_memory": "nothing in its place",
}


def _refuse_counted_resources(resources: dict[str, float]) -> dict[str, float]:
    """Return the resources, unless one of them has a setting of its own."""
    for name, setting in COUNTED_BY_RAY.items():
        if name in resources:
            message = f"{name} is counted by Ray itself; take it out, and set {setting}"
            raise ValueError(message)
    return resources


CustomResources = Annotated[dict[str, float], AfterValidator(_refuse_counted_resources)]


class DeploymentSettings(Section):
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
        return require_order(self, "min_replicas", "max_replicas")


class EmbedderDeploymentSettings(DeploymentSettings):
    """The deployment of the embedding model."""

    num_cpus: float = Field(0.5, ge=0, description="CPUs one replica reserves where there is no GPU.")
    gpu_fraction: float = Field(0.25, ge=0, le=1, description="Share of a GPU one replica takes where Ray has one.")
    accelerator: str | None = Field(None, description="Type of the GPU it needs, by Ray's name, as in `L4`.")
    target_queued_tokens: int = Field(
        1024, ge=1, description="Tokens waiting for one replica that autoscaling aims at; set more for a GPU."
    )


class RerankerDeploymentSettings(DeploymentSettings):
    """The deployment of the reranker, where `rerank.kind` is not off."""

    num_cpus: float = Field(0.5, ge=0, description="CPUs one replica reserves where it takes no share of a GPU.")
    gpu_fraction: float = Field(0.0, ge=0, le=1, description="Share of a GPU one replica takes where Ray has one.")
    accelerator: str | None = Field(None, description="Type of the GPU it needs, by Ray's name, as in `L4`.")
    max_ongoing_requests: int = Field(16, ge=1, description="Calls in flight a replica accepts.")
    max_queued_requests: int = Field(
        32, ge=1, description="Calls that wait for a replica at each caller; of more the first order stands."
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


class SearcherDeployments(Section):
    """The searchers, each tier by itself."""

    sessions: SearcherDeploymentSettings = SearcherDeploymentSettings()
    notes: SearcherDeploymentSettings = SearcherDeploymentSettings()
    graph: SearcherDeploymentSettings = SearcherDeploymentSettings()
    procedures: SearcherDeploymentSettings = SearcherDeploymentSettings()
    documents: SearcherDeploymentSettings = SearcherDeploymentSettings()


def _clean_networks(networks: tuple[str, ...]) -> tuple[str, ...]:
    """Return networks as they are written usually, or say which is none."""
    return tuple(str(ip_network(network, strict=False)) for network in networks)


class FrontDoorSettings(Section):
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
    tenant_share: float = Field(0.5, gt=0, le=1, description="The same of one tenant, while another one asks.")
    tenant_alone_share: float = Field(
        0.9,
        gt=0,
        le=1,
        description="The same of one tenant, while no other asks: who comes next finds a place, however long those in "
        "hand take. At least `tenant_share`.",
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


class KeyQuotas(Section):
    """How much may be taken in a time; without a number there is no limit."""

    requests_per_minute: int | None = Field(
        None, ge=1, description="Requests a minute; one that asks for much counts as several."
    )
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


class QuotasSettings(Section):
    """Quotas of every tenant and key that has none of its own (`lamina quotas`)."""

    tenant: TenantQuotas = TenantQuotas()
    key: KeyQuotas = KeyQuotas()


class ServeSettings(Section):
    """Where the service listens and how its deployments are sized."""

    host: str = Field("127.0.0.1", description="Address of the HTTP endpoint.")
    port: int = Field(0, ge=0, le=65535, description="Port of the HTTP endpoint; 0 takes a free one.")
    ha_proxy: bool = Field(default=True, description="HAProxy as the ingress, where its binary is installed.")
    front_door: FrontDoorSettings = FrontDoorSettings()
    num_cpus: int | None = Field(None, ge=1, description="CPUs Ray may use on this machine; all if not set.")
    topology: Literal["auto", "compact", "spread"] = Field(
        "auto",
        description="`compact` runs router, searchers and indexer in one replica, sized by `serve.router`, and the "
        "model with them where it takes no GPU or `resources`, is no endpoint, and nothing has several replicas; "
        "`spread` runs each as a deployment. `auto` is compact under `lamina up` with up to two processors, where one "
        "replica of each is asked for, and spread elsewhere.",
    )
    application: str = Field("deployments.up:run", description="Import path of what `lamina up` starts.")
    allow_ray_without_token: bool = Field(
        default=False, description="Start on a Ray that asks for no token: who reaches its ports runs code there."
    )
    router: RouterDeploymentSettings = RouterDeploymentSettings()
    embedder: EmbedderDeploymentSettings = EmbedderDeploymentSettings()
    reranker: RerankerDeploymentSettings = RerankerDeploymentSettings()
    searchers: SearcherDeployments = SearcherDeployments()
    indexer: IndexerDeploymentSettings = IndexerDeploymentSettings()
