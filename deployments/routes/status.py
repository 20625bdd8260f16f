"""How the service runs its model."""

from fastapi import APIRouter

from deployments.access import EVERYWHERE, Access
from deployments.guard import allow
from deployments.services import PROBE_DEADLINE_S, PrincipalDep, ServicesDep
from lamina import __version__
from lamina.aio.deadline import time_limit
from lamina.api.status import ModelOut, StatusOut
from lamina.core.principals import Verb
from lamina.errors import Unavailable

router = APIRouter(prefix="/v1", tags=["health"])


@router.get("/status")
@allow(Access(Verb.READ, EVERYWHERE))
async def show_status(services: ServicesDep, principal: PrincipalDep) -> StatusOut:  # noqa: ARG001 - asks for a key
    """Show the embedding model, the runtime that it runs on, and whether its vectors were checked."""
    try:
        async with time_limit(PROBE_DEADLINE_S):
            report = await services.report_model()
    except TimeoutError as error:
        raise Unavailable("embedder", f"no answer within {PROBE_DEADLINE_S:g} s") from error
    return StatusOut(version=__version__, model=ModelOut.from_attributes(report))
