"""Search, and context for a prompt."""

from fastapi import APIRouter, BackgroundTasks, Response

from deployments.search_request import contextualised, searched
from deployments.services import ReaderDep, Services, ServicesDep
from lamina.api.search import ContextIn, ContextOut, SearchIn, SearchOut
from lamina.caching.answer_cache import Served

router = APIRouter(prefix="/v1", tags=["read"])


@router.post("/search", response_model=SearchOut)
async def search(body: SearchIn, services: ServicesDep, credential: ReaderDep, afterwards: BackgroundTasks) -> Response:
    """Search all tiers at once and return one fused ranking.

    A source that fails or runs out of time is named in `degraded`; the others answer.
    """
    return _respond(await searched(body, body.scope(credential.tenant), services), services, afterwards)


@router.post("/context", response_model=ContextOut)
async def context(
    body: ContextIn, services: ServicesDep, credential: ReaderDep, afterwards: BackgroundTasks
) -> Response:
    """Return the memories that matter as a block ready for a prompt, within its budget of tokens."""
    return _respond(await contextualised(body, body.scope(credential.tenant), services), services, afterwards)


def _respond(served: Served, services: Services, afterwards: BackgroundTasks) -> Response:
    # The body is JSON already, perhaps a cached one: FastAPI shall not read and write it again.
    afterwards.add_task(services.count, served.computed.found)
    return Response(served.body(), media_type="application/json")
