"""Turns: hand over the messages of a session and the work of its agents, and read this work."""

from datetime import timedelta
from typing import Annotated

from fastapi import APIRouter, Query

from deployments.access import MEMORIES, OWN_MEMORIES, WHOLE_WORKSPACE, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep, WriteKeyDep
from deployments.routes.paging import ByTime
from deployments.services import PrincipalDep, ServicesDep
from deployments.write_metrics import measure_work, measured_write
from lamina.api.fields import Id
from lamina.api.turns import AgentTurnOut, AgentTurnsOut, TurnIn, TurnOut, UsageSumOut, UsageSumsOut
from lamina.core.principals import ScopeField, Verb
from lamina.core.quotas import count_use
from lamina.core.tiers import Tier
from lamina.core.usage import Use
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

MAX_DAYS = 3650

router = APIRouter(prefix="/v1", tags=["write"], route_class=JsonRoute)


@router.post("/turns", openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def record_turn(body: TurnIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep) -> TurnOut:
    """Hand over the messages of a turn and the work of its agent; they are durable when the answer comes.

    The messages are stored with their vectors, and what they teach (notes, profile facts) with
    them, in one transaction. Search finds them by meaning at once, by words within milliseconds.
    Each tool call is a message of the session.
    """
    count_use(Use.TURNS, 1)
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    work = body.work()
    with measured_write(services.meter, Tier.SESSIONS, max(1, len(body.messages) + len(body.tool_calls))):
        messages = [item.message() for item in body.messages]
        is_verified = principal.speaks_for(ScopeField.USER, scope.user)
        recorded = await services.recorder.record_turn(
            scope,
            messages,
            once,
            is_verified=is_verified,
            reaches_user=principal.reaches_whole(ScopeField.USER),
            witness=principal.witness(scope.agent),
            work=work,
        )
    if recorded.is_new_work:
        measure_work(services.meter, work)
    return TurnOut.from_attributes(recorded)


@router.get("/turns")
@allow(Access(Verb.READ, MEMORIES))
async def list_turns(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    session: Annotated[Id | None, Query(description="Conversation. Default: all of them.")] = None,
) -> AgentTurnsOut:
    """List turns with tool calls, usage or an outcome, the latest first; of an agent, if one is named."""
    scope = ids.scope(principal.tenant).narrowed(session=session)
    found = await services.reads.agent_turns.page(scope, listing.page)
    turns, following = listing.cut(found, lambda one: (one.recorded_at, one.id))
    return AgentTurnsOut(turns=[AgentTurnOut.from_attributes(item) for item in turns], next_cursor=following)


@router.get("/turns/usage")
@allow(Access(Verb.READ, WHOLE_WORKSPACE))
async def sum_usage(
    services: ServicesDep,
    principal: PrincipalDep,
    days: Annotated[int, Query(ge=1, le=MAX_DAYS, description="Over how many days until now.")] = 7,
    workspace: Annotated[Id | None, Query(description="Project. Default: all of them.")] = None,
) -> UsageSumsOut:
    """Return tokens, cost and outcomes of the tenant's agents, by agent and model, the most expensive first."""
    project = None if workspace is None else clean_id(workspace, "workspace")
    found = await services.reads.agent_turns.usage(principal.tenant, utc_now() - timedelta(days=days), project)
    return UsageSumsOut(days=days, usage=[UsageSumOut.from_attributes(item) for item in found])
