"""Liveness, readiness and the state of the projections."""

import asyncio
from http import HTTPStatus

from fastapi import APIRouter, Response

from deployments.access import OPEN
from deployments.guard import allow
from deployments.services import POSTGRES, PROBE_DEADLINE_S, Services, ServicesDep
from lamina import __version__
from lamina.aio.probing import OK, states_of
from lamina.api.health import AliveOut, BuildOut, LagOut, ReadyOut
from lamina.errors import LaminaError

router = APIRouter(tags=["health"])


@router.get("/livez")
@allow(OPEN)
async def livez() -> AliveOut:
    """Report that the process answers; asks nobody else."""
    return AliveOut(status="ok")


@router.get("/readyz", responses={503: {"model": ReadyOut, "description": "A part does not answer"}})
@allow(OPEN)
async def readyz(services: ServicesDep, response: Response) -> ReadyOut:
    """Report whether every part answers, and how far the projections are behind."""
    parts, stores = await asyncio.gather(states_of(services.probes, PROBE_DEADLINE_S), services.store_states())
    ready = all(state == OK for state in parts.values())
    response.status_code = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    lag, builds = await _behind(services) if parts[POSTGRES] == OK else ({}, {})
    return ReadyOut(
        ready=ready,
        parts=parts,
        stores=stores,
        reranker=services.reranker_state(),
        outbox=lag,
        builds=builds,
        version=__version__,
    )


async def _behind(services: Services) -> tuple[dict[str, LagOut], dict[str, BuildOut]]:
    """Return how far the projections are behind and which are built anew; nothing if Postgres no longer answers."""
    try:
        async with asyncio.timeout(PROBE_DEADLINE_S):
            lag, builds = await asyncio.gather(services.reads.outbox.lag(), services.reads.builds.under_way())
    except (LaminaError, TimeoutError):
        return {}, {}
    return (
        {name: LagOut.from_attributes(item) for name, item in lag.items()},
        {build.projection: BuildOut.from_attributes(build) for build in builds},
    )
