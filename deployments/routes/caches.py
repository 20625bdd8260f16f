"""What the caches hold and did; clearing them."""

from typing import Annotated

from fastapi import APIRouter, Query, Response

from deployments.metrics import exposition
from deployments.routes.cache_models import (
    CacheHealthOut,
    CacheStatsOut,
    ClearedOut,
    ClearIn,
    ExpiredOut,
    NothingIn,
    StatsIn,
)
from deployments.services import AdminDep, ReaderDep, ServicesDep
from lamina.errors import InvalidInput
from lamina.text import clean_id
from lamina.wiring import utc_now

router = APIRouter(tags=["caches"])
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_MAX_AGE_S = 1.0
"""What needs no key is read from the shards once a second at most, however often it is asked for."""


@router.get("/cache/stats")
async def stats(services: ServicesDep, credential: ReaderDep, asked: Annotated[StatsIn, Query()]) -> CacheStatsOut:
    """Tell what every layer did and holds, what the tenant's tables hold, and its providers' hit rates of a week."""
    figures = await services.caches.shared.figures()
    tables = await services.caches.tables.figures(credential.tenant, _clean(asked.workspace, "workspace"), utc_now())
    return CacheStatsOut.with_tables(CacheHealthOut.of(figures, services.caches.answers.front_holding()), tables)


@router.get("/cache/health")
async def health(services: ServicesDep) -> CacheHealthOut:
    """Tell what this replica and the shards count and hold; asks no database, and needs no key."""
    figures = await services.caches.shared.figures(OPEN_MAX_AGE_S)
    return CacheHealthOut.of(figures, services.caches.answers.front_holding())


@router.delete("/cache/stats/expired")
async def purge_expired(
    services: ServicesDep,
    credential: AdminDep,
    asked: Annotated[NothingIn, Query()],  # noqa: ARG001 - refuses what is not known
) -> ExpiredOut:
    """Remove what has expired of the tenant's from the caches' tables. Needs an admin's key."""
    return ExpiredOut(**await services.caches.tables.purge_expired(utc_now(), credential.tenant))


@router.delete("/cache")
async def clear(services: ServicesDep, credential: AdminDep, asked: Annotated[ClearIn, Query()]) -> ClearedOut:
    """Clear a workspace's caches or the tenant's, from the inside out; or the responses of one agent.

    No replica serves anything of it any more when the answer comes. Needs an admin's key.
    """
    workspace, agent = _clean(asked.workspace, "workspace"), _clean(asked.agent, "agent")
    if workspace is None and agent is not None:
        raise InvalidInput("workspace", "is missing; an agent's caches belong to a workspace")
    if (workspace is None) is not asked.everything:
        raise InvalidInput("workspace", "is missing; name one, or send everything=true to clear the whole tenant")
    cleared = await services.caches.cascade.clear(credential.tenant, workspace, agent)
    return ClearedOut(cleared=dict(cleared))


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}, "description": "Prometheus's text format"}})
async def metrics(services: ServicesDep) -> Response:
    """Return the counts of all replicas and shards for Prometheus; needs no key."""
    return Response(exposition(await services.caches.shared.figures(OPEN_MAX_AGE_S)), media_type=METRICS_TYPE)


def _clean(id_: str | None, name: str) -> str | None:
    return None if id_ is None else clean_id(id_, name)
