"""Turns: hand over the messages of a session."""

from fastapi import APIRouter

from deployments.routes.dependencies import IdempotencyKey, once_for_body
from deployments.services import ServicesDep, WriterDep
from deployments.write_metrics import measured_write
from lamina.api.turns import TurnIn, TurnOut
from lamina.core.tiers import Tier

router = APIRouter(prefix="/v1", tags=["write"])


@router.post("/turns")
async def record_turn(
    body: TurnIn, services: ServicesDep, credential: WriterDep, idempotency_key: IdempotencyKey = None
) -> TurnOut:
    """Hand over the messages of a turn; they are durable when the answer comes.

    The messages are stored with their vectors, and what they teach (notes, profile facts) with
    them, in one transaction. Search finds them by meaning at once, by words within milliseconds.
    """
    scope = body.scope(credential.tenant)
    once = once_for_body(credential.tenant, idempotency_key, body)
    with measured_write(services.meter, Tier.SESSIONS, len(body.messages)):
        recorded = await services.recorder.record_turn(scope, [item.message() for item in body.messages], once)
    return TurnOut.from_attributes(recorded)
