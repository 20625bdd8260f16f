"""What the caches hold and did; purging them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from deployments.metrics import exposition
from deployments.routes.cache_models import CacheHealthOut, CacheStatsOut, ClearedOut, ExpiredOut
from deployments.services import AdminDep, ReaderDep, ServicesDep
from lamina.caching.shard import totals
from lamina.errors import InvalidInput
from lamina.text import clean_id
from lamina.wiring import utc_now

router = APIRouter(tags=["caches"])
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"


@router.get("/cache/stats")
async def stats(
    services: ServicesDep,
    credential: ReaderDep,
    workspace: Annotated[
        str | None, Query(description="Only this workspace's tables; without it all of the tenant's.")
    ] = None,
) -> CacheStatsOut:
    """Tell what every layer did and holds, what the tenant's tables hold, and its providers' hit rates of a week."""
    figures = await services.caches.shared.figures()
    tables = await services.caches.tables.figures(credential.tenant, _clean(workspace, "workspace"), utc_now())
    return CacheStatsOut.with_tables(CacheHealthOut.of(figures, services.caches.answers.front_holding()), tables)


@router.get("/cache/health")
async def health(services: ServicesDep) -> CacheHealthOut:
    """Tell what this replica and the shards count and hold; asks no database, and needs no key."""
    return CacheHealthOut.of(await services.caches.shared.figures(), services.caches.answers.front_holding())


@router.delete("/cache/stats/expired")
async def purge_expired(services: ServicesDep, credential: AdminDep) -> ExpiredOut:  # noqa: ARG001 - it must be there
    """Remove what has expired from the caches' tables. Needs an admin's key."""
    return ExpiredOut(**await services.caches.tables.purge_expired(utc_now()))


@router.delete("/cache")
async def clear(
    services: ServicesDep,
    credential: AdminDep,
    workspace: Annotated[str | None, Query(description="Whose caches; without it those of the whole tenant.")] = None,
    agent: Annotated[str | None, Query(description="Only this agent's responses.")] = None,
) -> ClearedOut:
    """Clear the caches of an agent, a workspace or the tenant: graph, swarms, whole answers, responses, in that order.

    No replica serves anything of it any more when the answer comes. Needs an admin's key.
    """
    if agent is not None and workspace is None:
        raise InvalidInput("workspace", "is missing; an agent's caches belong to a workspace")
    where, whose = _clean(workspace, "workspace"), _clean(agent, "agent")
    cleared = await services.caches.cascade.clear(credential.tenant, where, whose)
    return ClearedOut(cleared=dict(cleared))


@router.get("/metrics", include_in_schema=False)
async def metrics(services: ServicesDep) -> Response:
    """Return the counts of all replicas and shards for Prometheus."""
    shards = (await services.caches.shared.figures()).shards.values()
    reached = [stats for stats in shards if stats is not None]
    return Response(exposition(totals(reached), len(shards) - len(reached)), media_type=METRICS_TYPE)


def _clean(id_: str | None, name: str) -> str | None:
    return None if id_ is None else clean_id(id_, name)
