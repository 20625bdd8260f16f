"""Checks of the settings before anything starts.

Ray is not imported here: its flags must be in the environment first.
"""

from lamina.config_check.consistency import embedded_store_of
from lamina.core.tiers import TierName
from lamina.errors import Misconfigured
from lamina.maintenance.schedule import schedules
from lamina.settings.loading import Settings, served_tiers
from lamina.settings.serving import SearcherDeploymentSettings

COMPACT_PROCESSORS = 2
"""Up to how many processors one process for router, searchers and indexer answers as much as several."""


def refuse_contradictions(settings: Settings) -> None:
    """Refuse settings with which the service would not start, or a job would never be due.

    Raises:
        Misconfigured: If several replicas would share an embedded index, or a schedule cannot be read.
    """
    refuse_replicas(settings)
    schedules(settings.jobs.schedule)


def refuse_replicas(settings: Settings) -> None:
    """Refuse several replicas of a tier whose index one process alone may open.

    Raises:
        Misconfigured: If there is such a tier.
    """
    if settings.serve.topology == "compact":
        _refuse_compact_replicas(settings)
        return
    for tier in served_tiers(settings):
        replicas, index = limits_of(settings, tier).max_replicas, embedded_store_of(settings, tier)
        if replicas > 1 and index:
            raise Misconfigured(
                f"serve.searchers.{tier}.max_replicas is {replicas}, but {index}.kind keeps the index in one process",
                f"set it to 1, or choose a server by {index}.kind and {index}.url",
            )


def _refuse_compact_replicas(settings: Settings) -> None:
    replicas = settings.serve.router.max_replicas
    indexes = [index for tier in served_tiers(settings) if (index := embedded_store_of(settings, tier))]
    if replicas > 1 and indexes:
        raise Misconfigured(
            f"serve.router.max_replicas is {replicas}, but serve.topology is compact and {indexes[0]}.kind keeps the "
            "index in one process",
            f"set it to 1, set serve.topology to spread, or choose a server by {indexes[0]}.kind and {indexes[0]}.url",
        )


def with_topology(settings: Settings, processors: int) -> Settings:
    """Return the settings of a service that is alone on a machine, with a topology in place of ``auto``.

    Compact takes a third less CPU for a search and 0.3 GB less memory, but its Python runs on one processor.

    Args:
        settings: Those of the user.
        processors: How many the service may use.
    """
    if settings.serve.topology != "auto":
        return settings
    serve = settings.serve
    replicas = (serve.router, *(limits_of(settings, tier) for tier in served_tiers(settings)))
    is_compact = processors <= COMPACT_PROCESSORS and all(limits.max_replicas == 1 for limits in replicas)
    chosen = serve.model_copy(update={"topology": "compact" if is_compact else "spread"})
    return settings.model_copy(update={"serve": chosen})


def refuse_open_ray(settings: Settings, *, asks_for_token: bool) -> None:
    """Refuse a Ray whose ports run the code of everybody who reaches them.

    Raises:
        Misconfigured: If Ray asks for no token, and the settings do not allow it.
    """
    if not asks_for_token and not settings.serve.allow_ray_without_token:
        raise Misconfigured(
            "Ray asks for no token: who reaches its ports runs code on every node",
            "start every node with RAY_AUTH_MODE=token and the same RAY_AUTH_TOKEN, or set "
            "serve.allow_ray_without_token where nobody else reaches them",
        )


def limits_of(settings: Settings, tier: TierName) -> SearcherDeploymentSettings:
    """Return the limits of a tier's searcher."""
    limits: SearcherDeploymentSettings = getattr(settings.serve.searchers, tier)
    return limits
