"""Search, and context for a prompt."""

from fastapi import APIRouter, BackgroundTasks, Response

from deployments.access import MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.search_request import context_request, search_request
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.search import ContextIn, ContextOut, SearchIn, SearchOut
from lamina.caching.answer_cache import SentAnswer
from lamina.core.principals import Verb

router = APIRouter(prefix="/v1", tags=["read"], route_class=JsonRoute)


@router.post("/search", response_model=SearchOut, openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, MEMORIES))
async def search(
    body: SearchIn, services: ServicesDep, principal: PrincipalDep, afterwards: BackgroundTasks
) -> Response:
    """Search all tiers at once and return one fused ranking.

    A source that fails or runs out of time is named in `degraded`; the others answer.
    """
    request = await search_request(body, body.scope(principal.tenant), services)
    return _respond(await services.search.search(request), services, afterwards)


@router.post("/context", response_model=ContextOut, openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, MEMORIES))
async def context(
    body: ContextIn, services: ServicesDep, principal: PrincipalDep, afterwards: BackgroundTasks
) -> Response:
    """Return the memories that matter as a block ready for a prompt, within its budget of tokens."""
    request = await context_request(body, body.scope(principal.tenant), services)
    return _respond(await services.context.search(request), services, afterwards)


def _respond(sent: SentAnswer, services: Services, afterwards: BackgroundTasks) -> Response:
    # The body is JSON already, perhaps a cached one: FastAPI shall not read and write it again.
    afterwards.add_task(services.count, sent.answer.notes)
    return Response(sent.body(), media_type="application/json")
