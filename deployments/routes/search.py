"""Search, and context for a prompt."""

import asyncio
from typing import Any

from fastapi import APIRouter, BackgroundTasks, Response
from pydantic import ValidationError

from deployments import problems
from deployments.access import MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.search_request import context_request, search_request
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.scope import SCOPE_FIELDS
from lamina.api.search import ContextIn, ContextOut, SearchBatchIn, SearchBatchOut, SearchIn, SearchOut
from lamina.caching.answer_cache import SentAnswer
from lamina.core.principals import Principal, Verb
from lamina.core.quotas import count_use
from lamina.core.usage import Use
from lamina.errors import InvalidInput, LaminaError

router = APIRouter(prefix="/v1", tags=["read"], route_class=JsonRoute)


@router.post("/search", response_model=SearchOut, openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, MEMORIES))
async def search(
    body: SearchIn, services: ServicesDep, principal: PrincipalDep, afterwards: BackgroundTasks
) -> Response:
    """Search all tiers at once and return one fused ranking.

    A source that fails or runs out of time is named in `degraded`; the others answer.
    """
    count_use(Use.SEARCHES, 1)
    request = await search_request(body, body.scope(principal.tenant), services)
    return _respond(await services.search.search(request), services, afterwards)


@router.post("/search/batch", response_model=SearchBatchOut, openapi_extra=body_of(mib=32))
@allow(Access(Verb.READ, MEMORIES))
async def search_batch(
    body: SearchBatchIn, services: ServicesDep, principal: PrincipalDep, afterwards: BackgroundTasks
) -> Response:
    """Run up to 16 searches of one scope at once; each has an answer, or an error, of its own."""
    count_use(Use.SEARCHES, len(body.searches))
    places = range(len(body.searches))
    answers = await asyncio.gather(*(_answer(body, place, principal, services, afterwards) for place in places))
    return Response(b'{"answers":[%s]}' % b",".join(answers), media_type="application/json")


@router.post("/context", response_model=ContextOut, openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, MEMORIES))
async def context(
    body: ContextIn, services: ServicesDep, principal: PrincipalDep, afterwards: BackgroundTasks
) -> Response:
    """Return the memories that matter as a block ready for a prompt, within its budget of tokens."""
    count_use(Use.SEARCHES, 1)
    request = await context_request(body, principal, services)
    return _respond(await services.context.search(request), services, afterwards)


async def _answer(
    body: SearchBatchIn, place: int, principal: Principal, services: Services, afterwards: BackgroundTasks
) -> bytes:
    """Return the answer to one search of several, as JSON."""
    path = f"searches.{place}"
    try:
        item = _search_of(body, body.searches[place], path)
        request = await search_request(item, item.scope(principal.tenant), services)
        sent = await services.search.search(request)
    except LaminaError as error:
        problem = problems.from_error(error)
        return b'{"status":%d,"answer":null,"problem":%s}' % (problem.status_code, bytes(problem.body))
    afterwards.add_task(services.count, sent.answer.notes)
    return b'{"status":200,"answer":%s,"problem":null}' % sent.body()


def _search_of(body: SearchBatchIn, item: Any, path: str) -> SearchIn:
    """Return one of several searches in the scope of all.

    Raises:
        InvalidInput: If it is none, or names a scope of its own.
    """
    fields = {"query": item} if isinstance(item, str) else item
    if isinstance(fields, dict) and (own := next((name for name in SCOPE_FIELDS if name in fields), None)):
        raise InvalidInput(f"{path}.{own}", "is an id of the scope; name it once, beside searches")
    try:
        search = SearchIn.model_validate(fields)
    except ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        raise InvalidInput(path, problems.describe_errors(found, "search")) from None
    ids = {name: getattr(body, name) for name in SCOPE_FIELDS if name in body.model_fields_set}
    return search.model_copy(update=ids)


def _respond(sent: SentAnswer, services: Services, afterwards: BackgroundTasks) -> Response:
    # The body is JSON already, perhaps a cached one: FastAPI shall not read and write it again.
    afterwards.add_task(services.count, sent.answer.notes)
    return Response(sent.body(), media_type="application/json")
