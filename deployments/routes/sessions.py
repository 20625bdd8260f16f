"""Sessions: their messages, and how full they are."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query

from deployments.access import ALL_USERS, MEMORIES, OWN_MEMORIES, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.sessions import ForecastOut, HistoryOut, SessionMessageOut
from lamina.core.principals import Verb
from lamina.stores.postgres.owners import OwnedKind
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/sessions", tags=["read"], route_class=JsonRoute)
messages = APIRouter(prefix="/v1/messages", route_class=JsonRoute)
# A conversation's id may hold slashes, so that its place in a path takes several segments.
Session = Annotated[Id, Path(description="The conversation.")]


@router.get("/{session:path}/messages")
@allow(Access(Verb.READ, MEMORIES))
async def session_messages(
    session: Session,
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: Annotated[Listing, paged(int, bool, UUID, can_skip=True)],
    include_compacted: Annotated[bool, Query(description="Also those that a summary stands for.")] = False,
) -> HistoryOut:
    """Return a session's messages in order."""
    scope = ids.scope(principal.tenant).narrowed(session=session)
    found = await services.reads.messages.history(scope, listing.page, include_compacted=include_compacted)
    shown, following = listing.cut(found, lambda one: (one.position, one.is_summary, one.id))
    out = [SessionMessageOut.from_attributes(item, item.message) for item in shown]
    return HistoryOut(messages=out, next_cursor=following)


@messages.delete("/{id}", tags=["write"], status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, OWN_MEMORIES, of=OwnedKind.MESSAGE))
async def delete_message(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Delete a message; notes that were drawn from it and summaries of it stay."""
    await services.recorder.delete_message(principal.tenant, id)


@router.get("/{session:path}/forecast")
@allow(Access(Verb.READ, ALL_USERS))
async def forecast(session: Session, services: ServicesDep, principal: PrincipalDep, ids: ScopeDep) -> ForecastOut:
    """Return how full a session is, and when its older messages become a summary."""
    scope = ids.scope(principal.tenant).narrowed(session=session)
    found = await services.sessions.forecast(scope, utc_now())
    return ForecastOut.from_attributes(found, found.forecast, would_compact=list(found.forecast.compacts))
