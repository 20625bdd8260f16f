"""How the service runs its model."""

from pathlib import Path, PurePosixPath

from fastapi import APIRouter

from deployments.access import EVERYWHERE, Access
from deployments.guard import allow
from deployments.services import PROBE_DEADLINE_S, PrincipalDep, ServicesDep
from lamina import __version__
from lamina.aio.deadline import time_limit
from lamina.api.status import ModelOut, StatusOut
from lamina.core.principals import KeyRole, Verb
from lamina.errors import Unavailable

router = APIRouter(prefix="/v1", tags=["health"])
_PARTS_OF_A_HUBS_NAME = 2
_BEGINNINGS_OF_PATHS = (".", "/", "~", "\\")


@router.get("/status")
@allow(Access(Verb.READ, EVERYWHERE))
async def show_status(services: ServicesDep, principal: PrincipalDep) -> StatusOut:
    """Show the embedding model, the runtime that it runs on, and whether its vectors were checked."""
    try:
        async with time_limit(PROBE_DEADLINE_S):
            report = await services.report_model()
    except TimeoutError as error:
        raise Unavailable("embedder", f"no answer within {PROBE_DEADLINE_S:g} s") from error
    model = ModelOut.from_attributes(report)
    if principal.role is not KeyRole.ADMIN:
        model.model = _without_folders(model.model)
    return StatusOut(version=__version__, model=model)


def _without_folders(model: str) -> str:
    """Return the name of a model without the folders in which it lies; `organisation/name` is a name of a hub."""
    parts = PurePosixPath(model.replace("\\", "/")).parts
    is_of_hub = len(parts) <= _PARTS_OF_A_HUBS_NAME and not model.startswith(_BEGINNINGS_OF_PATHS)
    return model if is_of_hub and not Path(model).exists() else parts[-1]
