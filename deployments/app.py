"""The composed application: the only place where classes become Ray Serve deployments."""

from typing import Any

import ray
from ray import serve
from ray.serve import Application

from actors.scheduler import open_scheduler
from deployments.embedder import Embedder
from deployments.indexer import Indexer
from deployments.router import Router, directory_of
from deployments.searcher import Searcher
from lamina.settings import EmbedderDeployment, RouterDeployment, Settings
from lamina.stores.postgres.generations import Generation, claim_generation
from lamina.stores.postgres.migrate import migrate
from lamina.wiring import model_identity, postgres_url, served_tiers
from lamina.wiring.stores import with_thresholds

MAX_ONGOING = 500
CONSTRUCTOR_ATTEMPTS = 3
# Searchers and the indexer wait for stores; the work they do themselves is small.
WAITING = {"num_cpus": 0.05}


def build(settings: Settings) -> Application:
    """Compose the application; the builder of ``serve run`` and ``serve deploy``.

    Args:
        settings: The arguments of the Serve configuration; the environment fills what they leave out.

    Raises:
        Misconfigured: If the database cannot be reached, is newer than this release, or holds
            vectors of another model.
    """
    url = postgres_url(settings)
    migrate(url)
    generation = claim_generation(url, model_identity(settings), settings.embedding.thresholds)
    settings = with_thresholds(settings, generation)
    _start_actors(settings, generation)
    device, resources = embedder_resources(settings.serve.embedder, _gpus())
    embedder = _embedder(settings.serve.embedder, resources, generation).bind(settings, device, generation.identity)
    dimension = generation.identity.dimension
    tiers = {
        name: _searcher(name.title()).bind(name, settings, dimension, generation) for name in served_tiers(settings)
    }
    indexer = _indexer().bind(settings, tiers)
    return _router(settings.serve.router).bind(settings, generation, embedder, tiers, indexer)


def _start_actors(settings: Settings, generation: Generation) -> None:
    """Make the cache shards and the scheduler of jobs, which come up while the deployments do."""
    if ray.is_initialized():
        directory_of(settings, generation).open()
        open_scheduler(settings)


def embedder_resources(limits: EmbedderDeployment, gpus: float) -> tuple[str, dict[str, Any]]:
    """Return the embedder's device and what a replica reserves, given the GPUs that Ray sees."""
    if gpus > 0 and limits.gpu_fraction > 0:
        return "cuda", {"num_cpus": 1, "num_gpus": limits.gpu_fraction}
    return "cpu", {"num_cpus": limits.num_cpus}


def replicas(least: int, most: int) -> dict[str, Any]:
    """Return the replica options: a fixed number, or autoscaling between two."""
    if most <= least:
        return {"num_replicas": least}
    return {"autoscaling_config": {"min_replicas": least, "max_replicas": most}}


def _gpus() -> float:
    if not ray.is_initialized():
        return 0.0
    return float(ray.cluster_resources().get("GPU", 0))  # type: ignore[no-untyped-call]  # Ray's own gap


def _embedder(limits: EmbedderDeployment, resources: dict[str, Any], generation: Generation) -> serve.Deployment:
    # By generation: while one application takes another's place, nobody is given vectors of the other's model.
    return serve.deployment(
        name=f"Embedder{generation.suffix}",
        ray_actor_options=resources,
        max_ongoing_requests=limits.max_ongoing_requests,
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        **replicas(limits.min_replicas, limits.max_replicas),
    )(Embedder)


def _searcher(name: str) -> serve.Deployment:
    # One replica: the embedded index opens in one process only.
    return serve.deployment(name=name, num_replicas=1, ray_actor_options=WAITING, max_ongoing_requests=MAX_ONGOING)(
        Searcher
    )


def _indexer() -> serve.Deployment:
    return serve.deployment(
        name="Indexer", num_replicas=1, ray_actor_options=WAITING, max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS
    )(Indexer)


def _router(limits: RouterDeployment) -> serve.Deployment:
    return serve.deployment(
        name="Router",
        ray_actor_options={"num_cpus": limits.num_cpus},
        max_ongoing_requests=limits.max_ongoing_requests,
        max_constructor_retry_count=CONSTRUCTOR_ATTEMPTS,
        max_queued_requests=limits.max_queued_requests,
        **replicas(limits.min_replicas, limits.max_replicas),
    )(serve.ingress()(Router))
