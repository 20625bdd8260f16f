"""Consistency of settings: values that are valid alone, and contradict each other."""

from collections.abc import Iterator, Mapping

from lamina.config_check.addresses import check_addresses
from lamina.config_check.connections import RESERVED, connection_demands
from lamina.config_check.findings import Finding, nearest_name, warning
from lamina.core.cron import trigger_of
from lamina.core.tiers import TIERS, StoreSection, TierName
from lamina.settings.jobs import OFF
from lamina.settings.loading import Settings, served_tiers
from lamina.settings.models import NoRerankSettings
from lamina.settings.serving import DeploymentSettings
from lamina.settings.stores import (
    EmbeddedFalkorDBSettings,
    EmbeddedPostgresSettings,
    HybridSettings,
    PostgresServerSettings,
    VectorSettings,
)

# Ray's names of GPUs; a test compares with the installed Ray.
ACCELERATORS = (
    "V100", "P100", "T4", "P4", "K80", "A10G", "L4", "L40S", "A100", "H100", "H200", "H20", "B200", "B300", "GB200",
    "GB300", "RTX-PRO-6000", "A100-40G", "A100-80G", "Intel-GPU-Max-1550", "Intel-GPU-Max-1100", "Intel-GAUDI",
    "AMD-Instinct-MI100", "AMD-Instinct-MI250X", "AMD-Instinct-MI250X-MI250", "AMD-Instinct-MI210",
    "AMD-Instinct-MI300A", "AMD-Instinct-MI300X-OAM", "AMD-Instinct-MI300X-HF", "AMD-Instinct-MI308X",
    "AMD-Instinct-MI325X-OAM", "AMD-Instinct-MI350X-OAM", "AMD-Instinct-MI355X-OAM", "AMD-Radeon-R9-200-HD-7900",
    "AMD-Radeon-HD-7900",
)  # fmt: skip
COMPACT = "compact"
# The tiers whose searchers own the index of an embedded store; the graph's store is a server wherever it runs.
TIERS_BY_STORE: Mapping[StoreSection, tuple[TierName, ...]] = {
    section: tuple(
        spec.name for spec in TIERS.values() if section in {kept.store for kept in spec.projections.values()}
    )
    for section in ("hybrid", "vectors")
}


def check_consistency(settings: Settings, *, is_service: bool = True) -> Iterator[Finding]:
    """Check settings against each other, wherever they are used.

    Args:
        settings: All of them.
        is_service: Whether the service runs with them, with all its processes, and not perhaps a job alone.
    """
    yield from check_addresses(settings)
    if is_service:
        yield from _check_connections(settings)
        yield from _check_language_model(settings)
    yield from _check_schedules(settings)
    yield from _check_accelerator(settings)
    yield from _check_compact(settings) if settings.serve.topology == COMPACT else _check_embedded_replicas(settings)
    for name, deployment in deployments_of(settings).items():
        yield from _check_deployment(name, deployment)
        yield from _check_deadlines(name, deployment, settings)
    yield from _check_waits(settings)


def _check_language_model(settings: Settings) -> Iterator[Finding]:
    chosen = {"write.extraction": settings.write.extraction, "jobs.summaries.by": settings.jobs.summaries.by}
    users = [name for name, by in chosen.items() if by == "language_model"]
    for name in ("base_url", "model") if users else ():
        if getattr(settings.language_model, name) is None:
            yield Finding(
                ("language_model", name), f"is missing, and {users[0]} is language_model", "write it, or choose another"
            )


def _check_schedules(settings: Settings) -> Iterator[Finding]:
    for job, expression in settings.jobs.schedule:
        if expression == OFF:
            continue
        try:
            trigger_of(expression)
        except ValueError as error:
            place = ("jobs", "schedule", job)
            yield Finding(place, f"is {expression!r}: {error}", "write minute hour day month weekday")


def _check_accelerator(settings: Settings) -> Iterator[Finding]:
    name = settings.serve.embedder.accelerator
    if name is not None and name not in ACCELERATORS:
        # Cloud providers write nvidia-l4 where Ray says L4.
        close = nearest_name(name.upper().rpartition("NVIDIA-")[2], ACCELERATORS)
        yield warning(
            ("serve", "embedder", "accelerator"),
            f"is {name}, which Ray knows no GPU by",
            f"did you mean {close}?" if close else "write Ray's name, as in L4, or what your nodes declare",
        )


def refuse_embedded_servers(settings: Settings) -> Iterator[Finding]:
    """Return an error for each server that only `lamina up` starts; for settings of a cluster."""
    remedy = "give its kind and url"
    if isinstance(settings.postgres, EmbeddedPostgresSettings):
        yield Finding(("postgres", "kind"), "is embedded, which only `lamina up` starts", f"{remedy}: server")
    if isinstance(settings.graph, EmbeddedFalkorDBSettings):
        yield Finding(("graph", "kind"), "is embedded, which only `lamina up` starts", f'{remedy}: neo4j, or "off"')


def refuse_local_archive(settings: Settings) -> Iterator[Finding]:
    """Return an error if notes are archived into a folder of one node; for settings of a cluster."""
    chosen = settings.jobs.archival.url
    if settings.jobs.schedule.archival == OFF or not (chosen is None or is_folder(chosen)):
        return
    shown = "is not set: `archive` in data_dir" if chosen is None else f"is {chosen}: it"
    yield Finding(
        ("jobs", "archival", "url"),
        f"{shown} is a folder of one node, with which archived notes are lost, and another node does not find them",
        'give an object store (s3://bucket/path), or write jobs.schedule.archival: "off"',
    )


def is_folder(url: str) -> bool:
    """Report whether an archive is a folder of the machine: a path, or a URL of one."""
    protocol, separator, _ = url.partition("://")
    return not separator or protocol in {"file", "local", "memory"}


def warn_of_embedded_indexes(settings: Settings) -> Iterator[Finding]:
    """Return a warning for each index that is lost with its node; for settings of several nodes."""
    for store in TIERS_BY_STORE:
        if is_embedded(settings, store):
            yield warning(
                (store, "kind"),
                "keeps its index within one process of one node, which is filled anew with every other one",
                "choose a server: qdrant",
            )


def is_embedded(settings: Settings, store: str) -> bool:
    """Report whether the index of a store is inside the process that owns it."""
    chosen: HybridSettings | VectorSettings = getattr(settings, store)
    return chosen.is_local


def embedded_store_of(settings: Settings, tier: TierName) -> str | None:
    """Return the section whose store keeps an index of this tier inside its replica; ``None`` if all are servers.

    The graph's store is a server even where `lamina up` starts it, and applying a change to it twice does no harm.
    """
    stores = (store for store, tiers in TIERS_BY_STORE.items() if tier in tiers and is_embedded(settings, store))
    return next(stores, None)


def deployments_of(settings: Settings) -> Mapping[str, DeploymentSettings]:
    """Return the settings of every deployment by their paths below `serve`."""
    serve = settings.serve
    searchers = {f"searchers.{name}": getattr(serve.searchers, name) for name in type(serve.searchers).model_fields}
    reranker = {} if isinstance(settings.rerank, NoRerankSettings) else {"reranker": serve.reranker}
    return {"router": serve.router, "embedder": serve.embedder, **reranker, "indexer": serve.indexer, **searchers}


def _check_embedded_replicas(settings: Settings) -> Iterator[Finding]:
    for store, tiers in TIERS_BY_STORE.items():
        if not is_embedded(settings, store):
            continue
        for tier in tiers:
            most = getattr(settings.serve.searchers, tier).max_replicas
            if most > 1:
                yield Finding(
                    ("serve", "searchers", tier, "max_replicas"),
                    f"is {most}, but {store}.kind keeps the index in one process",
                    f"write 1, or choose a server for {store}",
                )


def _check_compact(settings: Settings) -> Iterator[Finding]:
    most = settings.serve.router.max_replicas
    stores = [store for store in TIERS_BY_STORE if is_embedded(settings, store)]
    if most > 1 and stores:
        yield Finding(
            ("serve", "router", "max_replicas"),
            f"is {most}, but serve.topology is compact and {stores[0]}.kind keeps the index in one process",
            f"write 1, write spread as serve.topology, or choose a server for {' and '.join(stores)}",
        )
    for tier in served_tiers(settings):
        most = getattr(settings.serve.searchers, tier).max_replicas
        if most > 1:
            yield warning(
                ("serve", "searchers", tier, "max_replicas"),
                f"is {most}, but serve.topology is compact, which has as many of them as routers",
                "raise serve.router.max_replicas, or write spread as serve.topology",
            )


def _check_connections(settings: Settings) -> Iterator[Finding]:
    postgres = settings.postgres
    if not isinstance(postgres, PostgresServerSettings) or postgres.pooling == "transaction":
        return
    demands = list(connection_demands(settings))
    total, most = sum(demand.total for demand in demands), postgres.max_connections - RESERVED
    if total > most:
        yield warning(
            ("pool", "max_size"),
            f"is {settings.pool.max_size}: all processes may open {total} connections "
            f"({', '.join(map(str, demands))}), the server accepts {most}",
            "lower it, raise postgres.max_connections here and there, or put PgBouncer before it (postgres.pooling)",
        )


def _check_deployment(name: str, deployment: DeploymentSettings) -> Iterator[Finding]:
    place = ("serve", *name.split("."))
    # The others' target counts queries and tokens, of which one call carries many.
    if name == "router" and deployment.target_ongoing_requests > deployment.max_ongoing_requests:
        yield Finding(
            (*place, "target_ongoing_requests"),
            f"is {deployment.target_ongoing_requests:g}, more than a replica accepts "
            f"(max_ongoing_requests is {deployment.max_ongoing_requests})",
            "lower it: replicas would never be added",
        )
    if deployment.max_replicas > deployment.min_replicas and deployment.downscale_delay_s < deployment.upscale_delay_s:
        yield warning(
            (*place, "downscale_delay_s"),
            f"is {deployment.downscale_delay_s:g}, less than upscale_delay_s ({deployment.upscale_delay_s:g})",
            "raise it: replicas would come and go",
        )


def _check_deadlines(name: str, deployment: DeploymentSettings, settings: Settings) -> Iterator[Finding]:
    place, longest = ("serve", *name.split(".")), settings.search.tier_deadline_s
    if deployment.health_check_timeout_s < longest:
        yield warning(
            (*place, "health_check_timeout_s"),
            f"is {deployment.health_check_timeout_s:g}, less than search.tier_deadline_s ({longest:g})",
            "raise it: a replica that is only slow would be killed",
        )
    if deployment.drain_s < longest:
        yield warning(
            (*place, "drain_s"),
            f"is {deployment.drain_s:g}, less than search.tier_deadline_s ({longest:g})",
            "raise it: a replica that goes would break off searches",
        )


def _check_waits(settings: Settings) -> Iterator[Finding]:
    search = settings.search
    if search.tier_deadline_s < search.source_deadline_s:
        yield warning(
            ("search", "tier_deadline_s"),
            f"is {search.tier_deadline_s:g}, less than search.source_deadline_s ({search.source_deadline_s:g})",
            "raise it: a slow source would take its tier's other sources along",
        )
    if settings.pool.timeout_s < search.source_deadline_s:
        yield warning(
            ("pool", "timeout_s"),
            f"is {settings.pool.timeout_s:g}, less than search.source_deadline_s ({search.source_deadline_s:g})",
            "raise it: a search would give up early",
        )
