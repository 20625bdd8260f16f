"""Liveness, readiness and the state of the projections."""

from http import HTTPStatus

from fastapi import APIRouter, Response

from deployments.routes.models import BuildOut, LagOut, ReadyOut
from deployments.services import Services, ServicesDep
from lamina import __version__
from lamina.errors import LaminaError

router = APIRouter(tags=["health"])


@router.get("/livez")
async def livez() -> dict[str, str]:
    """Tell that the process answers; asks nobody else."""
    return {"status": "ok"}


@router.get("/readyz", responses={503: {"model": ReadyOut, "description": "A part does not answer"}})
async def readyz(services: ServicesDep, response: Response) -> ReadyOut:
    """Tell whether every part answers, and how far the projections are behind."""
    parts = await services.readiness()
    ready = all(state == "ok" for state in parts.values())
    response.status_code = HTTPStatus.OK if ready else HTTPStatus.SERVICE_UNAVAILABLE
    lag, builds = await _lag(services), await _builds(services)
    return ReadyOut(ready=ready, parts=parts, outbox=lag, builds=builds, version=__version__)


async def _lag(services: Services) -> dict[str, LagOut]:
    try:
        lag = await services.reads.outbox.lag()
    except LaminaError:
        return {}
    return {name: LagOut(pending=item.pending, oldest_s=item.oldest_s) for name, item in lag.items()}


async def _builds(services: Services) -> dict[str, BuildOut]:
    try:
        under_way = await services.reads.builds.under_way()
    except LaminaError:
        return {}
    return {build.projection: BuildOut(number=build.number, pending=build.pending) for build in under_way}
