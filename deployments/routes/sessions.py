"""Sessions: how full they are."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from deployments.routes.reads import ScopeDep
from deployments.routes.session_models import ForecastOut
from deployments.services import ReaderDep, ServicesDep
from lamina.maintenance.compaction import Sessions
from lamina.wiring import utc_now

router = APIRouter(prefix="/v1", tags=["read"])


async def sessions_of(services: ServicesDep) -> Sessions:
    """Return what reads sessions."""
    return services.sessions


@router.get("/sessions/{session:path}/forecast")
async def forecast(
    session: Annotated[str, Path(description="The conversation.")],
    sessions: Annotated[Sessions, Depends(sessions_of)],
    credential: ReaderDep,
    ids: ScopeDep,
) -> ForecastOut:
    """Tell how full a session is, and when its older messages become a summary."""
    scope = ids.scope(credential.tenant).narrowed(session=session)
    return ForecastOut.of(await sessions.forecast(scope, utc_now()))
