"""The life of a scope: rename a session, a namespace or a workspace, or delete all its memories."""

from http import HTTPStatus
from typing import Any
from uuid import UUID

from fastapi import APIRouter, Response

from deployments.access import NAMESPACE, WHOLE_PLACE, WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKeyDep
from deployments.routes.operations import tell_progress
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.operations import OperationOut
from lamina.api.scopes import ScopeDeletionIn, ScopeDeletionOut, ScopeRenamingIn, ScopeRenamingOut
from lamina.core.operations import Operation, OperationKind
from lamina.core.principals import Principal, ScopeField, Verb, refuse_outside
from lamina.errors import Conflict
from lamina.maintenance.scope_deletion import scope_ids
from lamina.maintenance.scope_renaming import renaming_ids, reversed_ids
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)
_GOES_ON: dict[int | str, dict[str, Any]] = {
    HTTPStatus.ACCEPTED: {"model": ScopeDeletionOut, "description": "It goes on."}
}
_RENAMING: dict[int | str, dict[str, Any]] = {
    HTTPStatus.ACCEPTED: {"model": ScopeRenamingOut, "description": "It goes on."}
}
_DELETIONS = frozenset(
    {
        OperationKind.DELETE_SCOPE,
        OperationKind.DELETE_NOTES,
        OperationKind.DELETE_MESSAGES,
        OperationKind.DELETE_DOCUMENTS,
    }
)
_UNDOING: dict[int | str, dict[str, Any]] = {HTTPStatus.ACCEPTED: {"model": OperationOut, "description": "It goes on."}}


@router.post("/scopes/delete", responses=_GOES_ON)
@allow(Access(Verb.ERASE, WHOLE_PLACE))
async def delete_scope(
    body: ScopeDeletionIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> ScopeDeletionOut:
    """Delete all memories of a session, a namespace, a workspace or the tenant, into the trash. Needs an admin's key.

    200: it is complete, with its signed receipt; 202: it goes on, and `Location` names where to ask.
    """
    ids = body.ids(principal.tenant)
    if body.dry_run:
        return ScopeDeletionOut(counts=dict(await services.workers.scopes.count(ids)))
    once = write_key.once(principal.tenant, body)
    operation = await services.operations.order(OperationKind.DELETE_SCOPE, ids, {}, once)
    tell_progress(operation, response)
    return ScopeDeletionOut(counts=dict(operation.counts), operation=OperationOut.from_attributes(operation))


@router.post("/scopes/rename", responses=_RENAMING)
@allow(Access(Verb.ERASE, WHOLE_PLACE, beside={"to_workspace": WORKSPACE, "to_namespace": NAMESPACE}))
async def rename_scope(
    body: ScopeRenamingIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> ScopeRenamingOut:
    """Rename a session, a namespace or a workspace with everything in it. Needs an admin's key.

    200: it is complete; 202: it goes on, and `Location` names where to ask. Until its end, writes under both names
    answer 503. 404 where there is nothing, 409 where the new name is taken.
    """
    ids = body.ids(principal.tenant)
    if body.dry_run:
        return ScopeRenamingOut(counts=dict(await services.workers.renaming.count(ids)))
    operation = await _rename(services, ids, write_key.once(principal.tenant, body))
    tell_progress(operation, response)
    return ScopeRenamingOut(counts=dict(operation.counts), operation=OperationOut.from_attributes(operation))


@router.post("/operations/{id}/undo", responses=_UNDOING)
@allow(Access(Verb.ERASE, WHOLE_PLACE, of=OwnedKind.OPERATION))
async def undo_operation(id: UUID, services: ServicesDep, principal: PrincipalDep, response: Response) -> OperationOut:
    """Undo a deletion of many memories, or a renaming of a scope. Needs an admin's key.

    What a deletion, of a scope or by a filter, put into the trash comes back, while it lies there; what was renamed
    gets its old name, if that is free still and no later renaming touched one of the two.
    """
    done = await services.operations.table.get(principal.tenant, id)
    if done.kind is OperationKind.RENAME_SCOPE and done.completed_at is not None:
        _refuse_old_name(done, principal)
        operation = await _rename(services, reversed_ids(renaming_ids(done)), undoes=done)
    elif done.kind in _DELETIONS and done.completed_at is not None:
        ids = {**scope_ids(done), "user_id": done.user, "agent_id": done.agent}
        operation = await services.operations.order(OperationKind.RESTORE_SCOPE, ids, {"operation": str(id)})
    else:
        raise Conflict(
            f"operation {id} is no complete deletion, nor the renaming of a scope; only such a one is undone"
        )
    tell_progress(operation, response)
    return OperationOut.from_attributes(operation)


def _refuse_old_name(done: Operation, principal: Principal) -> None:
    """Refuse a key that does not reach the name that a scope had: the guard has seen the one that it has.

    Raises:
        OutsideBounds: If the key is bound to others.
    """
    for field, id_ in ((ScopeField.WORKSPACE, done.workspace), (ScopeField.NAMESPACE, done.namespace)):
        if id_ is not None:
            refuse_outside(field, id_, principal.bounds.of(field), field.value)


async def _rename(
    services: Services, ids: dict[str, str | None], once: Once | None = None, *, undoes: Operation | None = None
) -> Operation:
    request = {name: id_ for name, id_ in ids.items() if name.startswith("to_")}
    scope = {name: id_ for name, id_ in ids.items() if name not in request}
    return await services.operations.order(
        OperationKind.RENAME_SCOPE,
        scope,
        request,
        once,
        begin=lambda connection, id_: services.workers.renaming.open(connection, ids, id_, undoes=undoes),
    )
