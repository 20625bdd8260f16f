"""Responses of models: look one up before asking the model, put its answer."""

from fastapi import APIRouter

from deployments.access import OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.responses import LookupIn, LookupOut, PutResponseIn, PutResponseOut
from lamina.core.principals import ScopeField, Verb

router = APIRouter(prefix="/v1/responses", tags=["responses"], route_class=JsonRoute)


@router.post("/lookup", openapi_extra=body_of(mib=16))
@allow(Access(Verb.READ, OWN_MEMORIES))
async def look_up_response(body: LookupIn, services: ServicesDep, principal: PrincipalDep) -> LookupOut:
    """Return the response to the same question, or to one that means the same, if the agent's memory is as it was.

    It never fails because a cache does: that is a miss.
    """
    found = await services.caches.responses.lookup(body.question(principal.tenant), wait_s=body.wait_s)
    unverified = None if found.id is None else not found.is_verified
    return LookupOut.from_attributes(found, refresh=found.is_to_refresh, unverified=unverified)


@router.post("", openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_response(body: PutResponseIn, services: ServicesDep, principal: PrincipalDep) -> PutResponseOut:
    """Keep a response for the same question, in place of the one that was there."""
    question = body.question(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.AGENT, question.agent) or (
        question.scope.user is not None and principal.speaks_for(ScopeField.USER, question.scope.user)
    )
    put = await services.caches.responses.put(question, body.response, body.epoch, is_verified=is_verified)
    return PutResponseOut.from_attributes(put, stored=put.refusal is None, reason=put.refusal)
