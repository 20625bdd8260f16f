"""Fills the store of a projection that no service feeds yet, so that one may move there."""

from collections.abc import Callable
from dataclasses import dataclass, replace

from lamina.core.ports import Change
from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured
from lamina.projections.audit import audit
from lamina.projections.indexer import fill
from lamina.settings import EmbeddedFalkorDBSettings, QdrantEdgeSettings, Settings
from lamina.stores.postgres.builds import known_tenants, served_store
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import Generation, active_generation
from lamina.stores.postgres.outbox import Outbox
from lamina.wiring.indexes import (
    BuiltIndex,
    KeptProjection,
    build_cold_index,
    build_index,
    chosen_for,
    index_path,
    store_of,
)
from lamina.wiring.stores import build_graph_store, build_pool, postgres_url


@dataclass(frozen=True, slots=True)
class Filled:
    """What came of filling a store.

    Args:
        store: Where it is.
        memories: How many it took over.
        removed: How many it held that Postgres does not know.
        differing: How many differ from Postgres all the same: they changed meanwhile.
    """

    store: str
    memories: int
    removed: int
    differing: int


async def is_served(settings: Settings, projection: ProjectionName) -> bool:
    """Tell whether a service keeps the projection where these settings say, or none has kept it anywhere."""
    if isinstance(chosen_for(settings, projection), EmbeddedFalkorDBSettings):
        return True  # `lamina up` alone runs it.
    async with build_pool(settings) as pool:
        generation = await active_generation(pool)
    served = served_store(postgres_url(settings), projection)
    return served in (None, store_of(settings, projection, generation))


async def fill_store(settings: Settings, projection: ProjectionName, told: Callable[[int], None]) -> Filled:
    """Have the store of the settings take over everything, and compare it with Postgres.

    Raises:
        Misconfigured: If the database holds no vectors yet, or the projection is switched off.
        Unavailable: If a store does not answer; what it took over stays.
    """
    async with build_pool(settings) as pool:
        generation = await active_generation(pool)
        if generation is None:
            raise Misconfigured("the database has no memory yet", "start the service with this configuration instead")
        _refuse_stray(settings, projection, generation)
        built = _built(settings, projection, generation)
        try:
            filled = await _filled(settings, pool, projection, built.projection, told)
            return replace(filled, store=store_of(settings, projection, generation))
        finally:
            built.close()
            await built.aclose()


def _refuse_stray(settings: Settings, projection: ProjectionName, generation: Generation) -> None:
    """Refuse to begin embedded indexes beside embedded ones: most often the command runs in another folder."""
    served = served_store(postgres_url(settings), projection) or ""
    place = index_path(settings, projection, generation)
    if isinstance(chosen_for(settings, projection), QdrantEdgeSettings) and served.startswith("qdrant_edge"):
        raise Misconfigured(
            f"{place} is not where the service keeps {projection}: {served.partition(' ')[2]}",
            "name the service's --data-dir; a service that starts in another one fills it by itself",
        )


async def _filled(
    settings: Settings, pool: Pool, projection: ProjectionName, store: KeptProjection, told: Callable[[int], None]
) -> Filled:
    outbox, tenants = Outbox(pool), known_tenants(postgres_url(settings))
    memories = await fill(outbox, projection, store, tenants, told)
    drifts = [await audit(outbox, projection, store, tenant) for tenant in tenants]
    surplus = [id_ for drift in drifts for id_ in drift.surplus]
    await store.apply([Change(id_, None) for id_ in surplus])
    await store.flush()
    return Filled("", memories, len(surplus), sum(len(drift.missing) + len(drift.different) for drift in drifts))


def _built(settings: Settings, projection: ProjectionName, generation: Generation) -> BuiltIndex[KeptProjection]:
    dimension = generation.identity.dimension
    match projection:
        case "cold":
            return build_cold_index(settings, dimension, generation)
        case "messages":
            return build_index(settings, projection, None, by_session=True, generation=generation).index
        case "notes" | "documents":
            return build_index(settings, projection, dimension, generation=generation).index
        case "graph":
            return _graph(settings)


def _graph(settings: Settings) -> BuiltIndex[KeptProjection]:
    store = build_graph_store(settings)
    if store is None:
        raise Misconfigured("graph.kind is off", "choose a graph store")
    return BuiltIndex(store, is_new=False, aclose=store.close)
