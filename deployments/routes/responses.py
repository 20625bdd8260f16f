"""Responses of models: look one up before asking the model, put its answer."""

from fastapi import APIRouter

from deployments.json_bodies import JsonRoute
from deployments.services import ReaderDep, ServicesDep, WriterDep
from lamina.api.responses import LookupIn, LookupOut, PutResponseIn, PutResponseOut

router = APIRouter(prefix="/v1/responses", tags=["responses"], route_class=JsonRoute)


@router.post("/lookup")
async def look_up_response(body: LookupIn, services: ServicesDep, credential: ReaderDep) -> LookupOut:
    """Return the response to the same question, or to one that means the same, if the agent's memory is as it was.

    It never fails because a cache does: that is a miss.
    """
    found = await services.caches.responses.lookup(body.question(credential.tenant), wait_s=body.wait_s)
    return LookupOut.from_attributes(found, refresh=found.is_to_refresh)


@router.post("")
async def put_response(body: PutResponseIn, services: ServicesDep, credential: WriterDep) -> PutResponseOut:
    """Keep a response for the same question, in place of the one that was there."""
    put = await services.caches.responses.put(body.question(credential.tenant), body.response, body.epoch)
    return PutResponseOut.from_attributes(put, stored=put.refusal is None, reason=put.refusal)
