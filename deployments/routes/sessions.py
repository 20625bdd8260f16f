"""Sessions: how full they are."""

from typing import Annotated

from fastapi import APIRouter, Depends, Path

from deployments.routes.reads import ScopeDep
from deployments.services import ReaderDep, ServicesDep
from lamina.api.sessions import ForecastOut
from lamina.maintenance.compaction import Sessions
from lamina.wiring.stores import utc_now

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
    found = await sessions.forecast(scope, utc_now())
    would_compact = list(found.forecast.compacts)
    return ForecastOut.from_attributes(found, found.forecast, would_compact=would_compact)
