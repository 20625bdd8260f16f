"""Counts and sizes of the caches; clearing them."""

from dataclasses import replace
from typing import Annotated

from fastapi import APIRouter, Query, Response

from deployments.access import OPEN, OWN_AGENT_OF_WORKSPACE, WHOLE_TENANT, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.caches import (
    CacheHealthOut,
    CacheStatsOut,
    ClearedOut,
    ExpiredOut,
    LayerOut,
)
from lamina.api.fields import Id
from lamina.caching.shared_caches import CacheFigures
from lamina.core.cache_layers import Layer
from lamina.core.cache_stats import LayerCounts
from lamina.core.principals import Verb
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(tags=["caches"], route_class=JsonRoute)
METRICS_TYPE = "text/plain; version=0.0.4; charset=utf-8"
OPEN_MAX_AGE_S = 1.0
"""The shards are asked once a second at most, however often a call without a key comes."""


@router.get("/cache/stats")
@allow(Access(Verb.READ, OWN_AGENT_OF_WORKSPACE))
async def stats(
    services: ServicesDep,
    principal: PrincipalDep,
    workspace: Annotated[
        Id | None, Query(description="Only this workspace's responses and providers; without it all of the tenant's.")
    ] = None,
    agent: Annotated[Id | None, Query(description="Only this agent's responses and calls of providers.")] = None,
) -> CacheStatsOut:
    """Return the tenant's counts of every layer, sizes of its tables, and its providers' hit rates of a week."""
    health = _cache_health(services, await services.caches.shared.figures_of(principal.tenant))
    where, whose = _clean(workspace, "workspace"), _clean(agent, "agent")
    tables = await services.caches.tables.figures(principal.tenant, where, utc_now(), whose)
    if principal.bounds.bound_fields():
        tables = replace(tables, embeddings=None)
    # The semantic layer lives in Postgres alone, so that no shard knows its size.
    semantic = health.layers[Layer.SEMANTIC.value].model_copy(
        update={"entries": tables.responses.entries, "bytes": tables.responses.size_bytes}
    )
    layers = {**health.layers, Layer.SEMANTIC.value: semantic}
    return CacheStatsOut.from_attributes(health, layers=layers, tables=tables, providers=tables.providers)


@router.get("/cache/health")
@allow(OPEN)
async def health(services: ServicesDep) -> CacheHealthOut:
    """Return counts and sizes of this replica and the shards; asks no database, and needs no key."""
    return _cache_health(services, await services.caches.shared.figures(OPEN_MAX_AGE_S))


def _cache_health(services: Services, figures: CacheFigures) -> CacheHealthOut:
    """Show all replicas' counts, or this one's where a shard does not answer."""
    stats = figures.totals()
    counts = stats.counts if figures.is_complete else figures.here
    holdings = {**stats.holdings, Layer.FRONT: services.caches.answers.front_holding()}
    return CacheHealthOut(
        layers={
            layer.value: LayerOut.from_counts(counts.get(layer, LayerCounts()), holdings.get(layer)) for layer in Layer
        },
        counted="everywhere" if figures.is_complete else "here",
        shards={name: item is not None for name, item in figures.shards.items()},
    )


@router.delete("/cache/stats/expired")
@allow(Access(Verb.MAINTAIN, WHOLE_TENANT))
async def purge_expired(services: ServicesDep, principal: PrincipalDep) -> ExpiredOut:
    """Remove the tenant's expired rows from the caches' tables. Needs an admin's key."""
    return ExpiredOut(**await services.caches.tables.purge_expired(utc_now(), principal.tenant))


@router.delete("/cache")
@allow(Access(Verb.MAINTAIN, OWN_AGENT_OF_WORKSPACE))
async def clear(
    services: ServicesDep,
    principal: PrincipalDep,
    workspace: Annotated[Id | None, Query(description="This workspace's caches.")] = None,
    agent: Annotated[Id | None, Query(description="Only this agent's responses there.")] = None,
    everything: Annotated[bool, Query(description="The whole tenant's caches, instead of a workspace's.")] = False,
) -> ClearedOut:
    """Clear a workspace's caches or the tenant's, from the inside out; or the responses of one agent.

    Once the answer comes, no replica serves anything of them. Needs an admin's key.
    """
    where, whose = _clean(workspace, "workspace"), _clean(agent, "agent")
    if where is None and whose is not None:
        raise InvalidInput("workspace", "is missing; an agent's caches belong to a workspace")
    if where is None and not everything:
        raise InvalidInput("workspace", "is missing; name one, or send everything=true to clear the whole tenant")
    if where is not None and everything:
        raise InvalidInput("everything", f"is true beside workspace {where}; send one of the two")
    cleared = await services.caches.clearing.clear(principal.tenant, where, whose)
    return ClearedOut(cleared=dict(cleared))


@router.get("/metrics", responses={200: {"content": {"text/plain": {}}, "description": "Prometheus's text format"}})
@allow(OPEN)
async def metrics(services: ServicesDep) -> Response:
    """Return the metrics of all replicas, shards and stores for Prometheus; needs no key."""
    return Response(await services.metrics.text(), media_type=METRICS_TYPE)


def _clean(id_: str | None, name: str) -> str | None:
    return None if id_ is None else clean_id(id_, name)
