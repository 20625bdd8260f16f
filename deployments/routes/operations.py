"""Operations over many memories: follow them."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Response

from deployments.access import MEMORIES, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.operations import OperationOut, OperationsOut
from lamina.core.erasures import Erasure
from lamina.core.operations import Operation
from lamina.core.principals import Verb
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1/operations", tags=["operations"], route_class=JsonRoute)
LOOK_AGAIN_S = 2


def tell_progress(order: Operation | Erasure, response: Response) -> None:
    """Say in an answer's status and headers whether an operation or an erasure goes on, and where to ask."""
    if not order.is_complete:
        response.status_code = HTTPStatus.ACCEPTED
        response.headers["Location"] = f"/v1/{'erasures' if isinstance(order, Erasure) else 'operations'}/{order.id}"
        response.headers["Retry-After"] = str(LOOK_AGAIN_S)


@router.get("")
@allow(Access(Verb.READ, MEMORIES))
async def list_operations(
    services: ServicesDep, principal: PrincipalDep, ids: ScopeDep, listing: Annotated[Listing, paged(UUID)]
) -> OperationsOut:
    """List the latest operations over many memories of a scope."""
    found = await services.operations.table.page(ids.scope(principal.tenant), listing.page)
    operations, following = listing.cut(found, lambda one: (one.id,))
    shown = [OperationOut.from_attributes(operation) for operation in operations]
    return OperationsOut(operations=shown, next_cursor=following)


@router.get("/{id}")
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.OPERATION))
async def show_operation(id: UUID, services: ServicesDep, principal: PrincipalDep) -> OperationOut:
    """Report on an operation over many memories: its progress and its counts."""
    return OperationOut.from_attributes(await services.operations.table.get(principal.tenant, id))
