"""Turns: hand over the messages of a session."""

from fastapi import APIRouter

from deployments.access import OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKeyDep
from deployments.services import PrincipalDep, ServicesDep
from deployments.write_metrics import measured_write
from lamina.api.turns import TurnIn, TurnOut
from lamina.core.principals import ScopeField, Verb
from lamina.core.tiers import Tier

router = APIRouter(prefix="/v1", tags=["write"], route_class=JsonRoute)


@router.post("/turns", openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def record_turn(body: TurnIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep) -> TurnOut:
    """Hand over the messages of a turn; they are durable when the answer comes.

    The messages are stored with their vectors, and what they teach (notes, profile facts) with
    them, in one transaction. Search finds them by meaning at once, by words within milliseconds.
    """
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    with measured_write(services.meter, Tier.SESSIONS, len(body.messages)):
        messages = [item.message() for item in body.messages]
        is_verified = principal.speaks_for(ScopeField.USER, scope.user)
        recorded = await services.recorder.record_turn(
            scope, messages, once, is_verified=is_verified, witness=principal.witness(scope.agent)
        )
    return TurnOut.from_attributes(recorded)
