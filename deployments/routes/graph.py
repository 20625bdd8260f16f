"""The knowledge graph: state entities and edges, look at neighbours, follow links."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response

from deployments.access import MEMORIES, OWN_MEMORIES, OWN_PLACE, WHOLE_PLACE, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.rendering import step_out
from deployments.routes.dependencies import ScopeDep, WriteKeyDep
from deployments.routes.paging import Listing, paged
from deployments.search_request import sent_of
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id, Moment, Tags
from lamina.api.graph import (
    EdgesIn,
    EntitiesIn,
    EntitiesOut,
    EntityOut,
    NamesakeOut,
    NeighbourOut,
    NeighboursOut,
    PutNodeOut,
    PutNodesOut,
    TraverseIn,
    TraverseOut,
)
from lamina.caching.cached_search import CacheableRequest
from lamina.core.memories import as_utc
from lamina.core.principals import Verb
from lamina.ingest.graph import StatedEdge
from lamina.policies.caching.answer_keys import RequestIdentity
from lamina.search.graph_explorer import StartNodes, TraversalRequest
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1/graph", tags=["graph"], route_class=JsonRoute)


@router.post("/entities", openapi_extra=body_of(mib=8))
@allow(Access(Verb.WRITE, OWN_PLACE))
async def put_entities(
    body: EntitiesIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> PutNodesOut:
    """State entities; memories that already name them are linked to them."""
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    entities = [item.entity() for item in body.entities]
    stated = await services.graph_recorder.put_entities(scope, entities, once, witness=principal.witness(scope.agent))
    return PutNodesOut(results=[PutNodeOut.from_attributes(item) for item in stated.results])


@router.get("/entities")
@allow(Access(Verb.READ, MEMORIES))
async def list_entities(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: Annotated[Listing, paged(UUID)],
    kind: Annotated[Id | None, Query(alias="type", description="Only entities of this type.")] = None,
) -> EntitiesOut:
    """List the entities of a namespace that the user may know of, the one that was made last first."""
    found = await services.explorer.entities(ids.scope(principal.tenant), listing.page, kind)
    entities, following = listing.cut(found, lambda one: (one.id,))
    shown = [EntityOut.from_attributes(one, one.entity) for one in entities]
    return EntitiesOut(entities=shown, next_cursor=following)


@router.post("/edges", openapi_extra=body_of(mib=8))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_edges(
    body: EdgesIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> PutNodesOut:
    """State how entities stand to each other; seen again, an edge becomes surer and starts to decay anew."""
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    edges = [StatedEdge(item.edge(), item.source) for item in body.edges]
    stated = await services.graph_recorder.put_edges(scope, edges, once, witness=principal.witness(scope.agent))
    return PutNodesOut(results=[PutNodeOut.from_attributes(item) for item in stated.results])


@router.get("/neighbours")
@allow(Access(Verb.READ, MEMORIES))
async def neighbours(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    name: Annotated[Id | None, Query(description="Name of an entity.")] = None,
    id: Annotated[UUID | None, Query(description="Id of an entity or a memory, instead of a name.")] = None,
    kind: Annotated[Tags | None, Query(description="Only these kinds of link; all if not given.")] = None,
    limit: Annotated[int, Query(ge=1, le=1000, description="Most neighbours.")] = 50,
    as_of: Annotated[Moment | None, Query(description="Only what was seen until then.")] = None,
) -> NeighboursOut:
    """Return the links of an entity or a memory in both directions, the strongest first."""
    start = StartNodes((name,) if name is not None else (), (id,) if id is not None else ())
    scope = ids.scope(principal.tenant)
    moment = None if as_of is None else as_utc(as_of, "as_of")
    found = await services.explorer.neighbours(scope, start, kinds=tuple(kind or ()), limit=limit, as_of=moment)
    links = [
        NeighbourOut.from_attributes(step_out(link), tier=shown.tier.name.lower(), content=shown.content)
        for link, shown in ((link, found.shown[link.end]) for link in found.links)
    ]
    entity = EntityOut.from_attributes(found.entity, found.entity.entity) if found.entity else None
    namesakes = [NamesakeOut.from_attributes(other, other.entity) for other in found.namesakes]
    return NeighboursOut(entity=entity, namesakes=namesakes, neighbours=links, is_capped=found.is_capped)


@router.post("/traverse", response_model=TraverseOut, openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, MEMORIES))
async def traverse(body: TraverseIn, services: ServicesDep, principal: PrincipalDep) -> Response:
    """Follow links from some entities or memories, up to three steps.

    The score of a path is the product of its strengths, that of a node the best of its paths.
    """
    scope = body.scope(principal.tenant)
    start = StartNodes(tuple(body.names), tuple(body.ids))
    walk = TraversalRequest(scope, start, body.depth, tuple(body.kinds), body.limit, body.moment())
    stamp = await services.caches.answers.read_stamp(scope) if body.cache else None
    identity = RequestIdentity("traverse", scope, sent_of(body))
    sent = await services.traversal.traverse(CacheableRequest(identity, walk, stamp))
    return Response(sent.body(), media_type="application/json")


@router.delete("/entities/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, WHOLE_PLACE, of=OwnedKind.ENTITY))
async def delete_entity(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Delete an entity with its edges; the memories that mention it stay."""
    await services.graph_recorder.delete_entity(principal.tenant, id)


@router.delete("/edges/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, WHOLE_PLACE, of=OwnedKind.EDGE))
async def retract_edge(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Retract an edge with all its evidence."""
    await services.graph_recorder.retract_edge(principal.tenant, id)
