"""The composed application: the only place where classes become Ray Serve deployments."""

from typing import Any

import ray
from ray import serve
from ray._private.authentication.authentication_utils import is_token_auth_enabled
from ray.serve import Application
from ray.serve.config import BackpressureConfig, RequestRouterConfig

from actors.scheduler import open_scheduler
from deployments.compact import CompactDeployment
from deployments.embedder import EmbedderDeployment
from deployments.indexer import IndexerDeployment
from deployments.preflight import limits_of, refuse_open_ray, refuse_replicas
from deployments.reranker import RerankerDeployment
from deployments.router import RouterDeployment, directory_of
from deployments.scaling import autoscaling
from deployments.searcher import SearcherDeployment
from lamina.config_check.consistency import embedded_store_of
from lamina.core.tiers import TierName
from lamina.settings.loading import Settings, served_tiers
from lamina.settings.models import EndpointSettings, NoRerankSettings, RerankEndpointSettings
from lamina.settings.serving import DeploymentSettings, EmbedderDeploymentSettings, RerankerDeploymentSettings
from lamina.settings.stores import PostgresServerSettings
from lamina.stores.postgres.generations import Generation, claim_generation
from lamina.stores.postgres.migrate import migrate, wait_for_server
from lamina.stores.postgres.word_triggers import switch_word_trigger
from lamina.wiring.stores import model_identity, session_url, with_thresholds

CONSTRUCTOR_ATTEMPTS = 3
ROUTER = "Router"
# Ray's own, of half a second at the most, let an overloaded deployment fall to an eighth of what it can do.
BACKOFF = RequestRouterConfig(initial_backoff_s=0.005, max_backoff_s=0.02)  # type: ignore[arg-type]  # Ray's own gap
FULL_SURGE = 100
# Serve's own answer in place of a router that has too much in hand.
FULL = BackpressureConfig(status_code=503, retry_after_s=1)
# A replica that keeps an embedded index makes room as soon as it has nothing in hand: until then there is none.
HANDOVER_S = 0.2


def build(settings: Settings) -> Application:
    """Compose the application; the builder of ``serve run`` and ``serve deploy``.

    Args:
        settings: The arguments of the Serve configuration; the environment fills what they leave out.

    Raises:
        Misconfigured: If Ray asks for no token; if the database does not answer within `postgres.wait_s`, is newer than
            this release, or holds vectors of another model; or if a tier over an embedded index is to have several
            replicas.
    """
    refuse_open_ray(settings, asks_for_token=is_token_auth_enabled() or not ray.is_initialized())
    refuse_replicas(settings)
    url = session_url(settings)
    if isinstance(settings.postgres, PostgresServerSettings):
        # Serve gives an application up whose builder raises, and the server may come up later than Ray does.
        wait_for_server(url, settings.postgres.wait_s)
    migrate(url)
    generation = claim_generation(url, model_identity(settings), settings.embedding.thresholds)
    switch_word_trigger(url, is_on=settings.postgres.note_words == "trigger")
    settings = with_thresholds(settings, generation)
    _start_actors(settings, generation)
    # A model elsewhere needs no GPU here.
    gpus = 0.0 if isinstance(settings.embedding, EndpointSettings) else _gpus()
    device, resources = embedder_resources(settings.serve.embedder, gpus)
    reranker = _reranker(settings)
    is_compact = settings.serve.topology == "compact"
    if is_compact and has_model_within(settings, device):
        return _compact(settings, with_model=True).bind(settings, generation, None, reranker)
    embedder = _embedder(settings.serve.embedder, resources, generation).bind(settings, device, generation.identity)
    if is_compact:
        return _compact(settings).bind(settings, generation, embedder, reranker)
    tiers = {name: _searcher(name, settings).bind(name, settings, generation) for name in served_tiers(settings)}
    indexer = _indexer(settings.serve.indexer).bind(settings, tiers)
    return _router(settings.serve.router).bind(settings, generation, embedder, tiers, indexer, reranker)


def _start_actors(settings: Settings, generation: Generation) -> None:
    """Make the cache shards and the scheduler of jobs, which come up while the deployments do."""
    if ray.is_initialized():
        directory_of(settings, generation).open()
        open_scheduler(settings)


def embedder_resources(
    limits: EmbedderDeploymentSettings | RerankerDeploymentSettings, gpus: float
) -> tuple[str, dict[str, Any]]:
    """Return a model's device and a replica's resources, given the GPUs that Ray sees.

    Where a type of GPU is set, one is waited for: nodes may join after the application was composed.
    """
    if limits.gpu_fraction > 0 and (gpus > 0 or limits.accelerator):
        kind = {"accelerator_type": limits.accelerator} if limits.accelerator else {}
        return "cuda", {**reserved(limits), "num_cpus": 1, "num_gpus": limits.gpu_fraction, **kind}
    return "cpu", reserved(limits)


def has_model_within(settings: Settings, device: str) -> bool:
    """Report whether the one process of a compact service runs the model, too: on its processors, and nothing scales.

    A question is spared the way to another process and back, and the machine 0.1 GB. Calls of an endpoint would take
    the threads of the embedded indexes.
    """
    serve, is_elsewhere = settings.serve, isinstance(settings.embedding, EndpointSettings)
    is_free = not is_elsewhere and device == "cpu" and not serve.embedder.resources
    return is_free and serve.router.max_replicas == serve.embedder.max_replicas == 1


def reserved(limits: DeploymentSettings) -> dict[str, Any]:
    """Return the resources of a replica."""
    return {"num_cpus": limits.num_cpus, **({"resources": limits.resources} if limits.resources else {})}


def options(
    limits: DeploymentSettings, *, work_target: float | None = None, is_embedded: bool = False
) -> dict[str, Any]:
    """Return a deployment's options, apart from its name and resources.

    Args:
        limits: Its settings.
        work_target: Work that one replica should have in hand, where replicas report it.
        is_embedded: Whether a replica has files open that no other one may have open: then the old one ends before
            the new one begins. Otherwise the new one is there first.
    """
    handover = {"graceful_shutdown_wait_loop_s": HANDOVER_S} if is_embedded else {"max_surge_percent": FULL_SURGE}
    return {
        "max_ongoing_requests": limits.max_ongoing_requests,
        "max_queued_requests": limits.max_queued_requests,
        "health_check_period_s": limits.health_check_period_s,
        "health_check_timeout_s": limits.health_check_timeout_s,
        "graceful_shutdown_timeout_s": limits.drain_s,
        **handover,
        **replicas(limits, work_target),
    }


def replicas(limits: DeploymentSettings, work_target: float | None = None) -> dict[str, Any]:
    """Return the replica options: a fixed number, or autoscaling between two."""
    if limits.max_replicas <= limits.min_replicas:
        return {"num_replicas": limits.min_replicas}
    return {"autoscaling_config": autoscaling(limits, work_target=work_target)}


def _gpus() -> float:
    if not ray.is_initialized():
        return 0.0
    return float(ray.cluster_resources().get("GPU", 0))  # type: ignore[no-untyped-call]  # Ray's own gap


def _embedder(
    limits: EmbedderDeploymentSettings, resources: dict[str, Any], generation: Generation
) -> serve.Deployment:
    # By generation: while one application takes another's place, no router gets vectors of the other's model.
    return serve.deployment(
        name=f"Embedder{generation.suffix}",
        ray_actor_options=resources,
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        request_router_config=BACKOFF,
        **options(limits, work_target=limits.target_queued_tokens),
    )(EmbedderDeployment)


def _reranker(settings: Settings) -> Application | None:
    if isinstance(settings.rerank, NoRerankSettings):
        return None
    limits = settings.serve.reranker
    is_elsewhere = isinstance(settings.rerank, RerankEndpointSettings)
    device, resources = ("cpu", reserved(limits)) if is_elsewhere else embedder_resources(limits, _gpus())
    deployment = serve.deployment(
        name="Reranker",
        ray_actor_options=resources,
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        request_router_config=BACKOFF,
        **options(limits),
    )(RerankerDeployment)
    return deployment.bind(settings, device)


def _searcher(tier: TierName, settings: Settings) -> serve.Deployment:
    limits = limits_of(settings, tier)
    is_embedded = embedded_store_of(settings, tier) is not None
    return serve.deployment(
        name=tier.title(),
        ray_actor_options=reserved(limits),
        request_router_config=BACKOFF,
        **options(limits, work_target=limits.target_ongoing_requests, is_embedded=is_embedded),
    )(SearcherDeployment)


def _indexer(limits: DeploymentSettings) -> serve.Deployment:
    # While one takes another's place there are two; the second waits for the lock of the first.
    return serve.deployment(
        name="Indexer",
        ray_actor_options=reserved(limits),
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        **options(limits),
    )(IndexerDeployment)


def _router(limits: DeploymentSettings) -> serve.Deployment:
    return serve.deployment(
        name=ROUTER,
        backpressure_config=FULL,
        ray_actor_options=reserved(limits),
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        **options(limits, work_target=limits.target_ongoing_requests),
    )(serve.ingress()(RouterDeployment))


def _compact(settings: Settings, *, with_model: bool = False) -> serve.Deployment:
    limits, serving = settings.serve.router, settings.serve
    tiers = served_tiers(settings)
    model = (serving.embedder,) if with_model else ()
    parts = (serving.router, serving.indexer, *model, *(limits_of(settings, tier) for tier in tiers))
    is_embedded = any(embedded_store_of(settings, tier) for tier in tiers)
    # Of the same name as the router alone: a change of topology puts one in the other's place.
    return serve.deployment(
        name=ROUTER,
        backpressure_config=FULL,
        ray_actor_options={**reserved(limits), "num_cpus": sum(part.num_cpus for part in parts)},
        **options(limits, work_target=limits.target_ongoing_requests, is_embedded=is_embedded),
    )(serve.ingress()(CompactDeployment))
