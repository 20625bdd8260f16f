"""Facts with the time in which they hold."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep, WriteKeyDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.facts import FactIn, FactOut, FactsOut, StatedFactOut
from lamina.api.fields import Id, Moment
from lamina.core.memories import as_utc
from lamina.core.principals import Verb
from lamina.ingest.graph import StatedEdge, StatedFact

router = APIRouter(prefix="/v1/facts", tags=["graph"], route_class=JsonRoute)


@router.post("", openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_fact(
    body: FactIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> StatedFactOut:
    """State a fact; it ends those that it replaces, and an older one that cannot hold beside it."""
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    fact = StatedFact(StatedEdge(body.edge(), body.source), body.begins_at(), tuple(body.replaces))
    stated = await services.graph_recorder.put_fact(scope, fact, once, witness=principal.witness(scope.agent))
    return StatedFactOut(id=stated.result.id, existed=stated.result.existed, replaced=list(stated.replaced))


@router.get("")
@allow(Access(Verb.READ, MEMORIES))
async def list_facts(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: Annotated[Listing, paged(AwareDatetime, UUID)],
    subject: Annotated[Id, Query(description="Name of the entity that they are about.")],
    relation: Annotated[Id | None, Query(description="Only facts of this relation.")] = None,
    as_of: Annotated[Moment | None, Query(description="Only what held then; otherwise all that ever held.")] = None,
) -> FactsOut:
    """Return the facts about an entity with the time in which each holds, the latest first."""
    moment = None if as_of is None else as_utc(as_of, "as_of")
    scope = ids.scope(principal.tenant)
    found = await services.explorer.facts(scope, subject, relation=relation, as_of=moment, page=listing.page)
    facts, following = listing.cut(found, lambda fact: (fact.valid_from, fact.id))
    return FactsOut(facts=[FactOut.from_attributes(item) for item in facts], next_cursor=following)
