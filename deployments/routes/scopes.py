"""The life of a scope: delete the memories of a session, a namespace, a workspace or a tenant."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from deployments.access import WHOLE_PLACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKeyDep
from deployments.routes.operations import tell_progress
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.operations import OperationOut
from lamina.api.scopes import ScopeDeletionIn, ScopeDeletionOut
from lamina.core.operations import OperationKind
from lamina.core.principals import Verb
from lamina.errors import Conflict
from lamina.maintenance.scope_deletion import scope_ids
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)
_GOES_ON: dict[int | str, dict[str, Any]] = {
    HTTPStatus.ACCEPTED: {"model": ScopeDeletionOut, "description": "It goes on."}
}
_UNDOING: dict[int | str, dict[str, Any]] = {HTTPStatus.ACCEPTED: {"model": OperationOut, "description": "It goes on."}}


@router.post("/scopes/delete", responses=_GOES_ON)
@allow(Access(Verb.ERASE, WHOLE_PLACE))
async def delete_scope(
    body: ScopeDeletionIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> ScopeDeletionOut:
    """Delete all memories of a session, a namespace, a workspace or the tenant, into the trash. Needs an admin's key.

    200: it is complete; 202: it goes on, and `Location` names where to ask. Its counts are kept as its receipt.
    """
    ids = body.ids(principal.tenant)
    if body.dry_run:
        return ScopeDeletionOut(counts=dict(await services.scope_deletion.count(ids)))
    once = write_key.once(principal.tenant, body)
    operation = await services.operations.order(OperationKind.DELETE_SCOPE, ids, {}, once)
    tell_progress(operation, response)
    return ScopeDeletionOut(counts=dict(operation.counts), operation=OperationOut.from_operation(operation))


@router.post("/operations/{id}/undo", responses=_UNDOING)
@allow(Access(Verb.ERASE, WHOLE_PLACE, of=OwnedKind.OPERATION))
async def undo_operation(id: UUID, services: ServicesDep, principal: PrincipalDep, response: Response) -> OperationOut:
    """Bring back what a deletion of a scope put into the trash, while it lies there. Needs an admin's key."""
    deletion = await services.operations.get(principal.tenant, id)
    if deletion.kind is not OperationKind.DELETE_SCOPE or deletion.completed_at is None:
        raise Conflict(f"operation {id} is no complete deletion of a scope; only such a one is undone")
    ids, request = scope_ids(deletion), {"operation": str(id)}
    operation = await services.operations.order(OperationKind.RESTORE_SCOPE, ids, request)
    tell_progress(operation, response)
    return OperationOut.from_operation(operation)
