"""Many notes at once: delete, tag, change and move those that match a filter."""

from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Response

from deployments.access import NAMESPACE, OWN_MEMORIES, WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKey, WriteKeyDep
from deployments.routes.operations import tell_progress
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.bulk import SAMPLE, BulkChangeIn, BulkDeleteIn, BulkIn, BulkOut
from lamina.api.notes import NoteOut
from lamina.api.operations import OperationOut
from lamina.api.scope import SCOPE_FIELDS
from lamina.core.operations import OperationKind
from lamina.core.principals import Principal, Verb
from lamina.stores.postgres.connection import scope_parameters

router = APIRouter(prefix="/v1/notes/bulk", tags=["write"], route_class=JsonRoute)
_GOES_ON: dict[int | str, dict[str, Any]] = {HTTPStatus.ACCEPTED: {"model": BulkOut, "description": "It goes on."}}


@router.post("", responses=_GOES_ON)
@allow(Access(Verb.WRITE, OWN_MEMORIES, beside={"to_workspace": WORKSPACE, "to_namespace": NAMESPACE}))
async def change_notes(
    body: BulkChangeIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkOut:
    """Tag, change or move all notes that match, in batches; archived ones are left alone.

    200: it is complete; 202: it goes on, and `Location` names where to ask. Each note that changes has its version and
    its event, as one alone; one that moves to a namespace in which its user has the same text stays, and counts as
    `existing`.
    """
    body = body.with_target()
    services.bulk.check(body)
    kind = OperationKind.MOVE_NOTES if body.is_move else OperationKind.CHANGE_NOTES
    return await _order(kind, body, services, principal, response, write_key)


@router.post("/delete", responses=_GOES_ON)
@allow(Access(Verb.DELETE, OWN_MEMORIES))
async def delete_notes(
    body: BulkDeleteIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkOut:
    """Delete all notes that match, in batches; each can be brought back from the trash, as one deleted alone.

    200: it is complete; 202: it goes on, and `Location` names where to ask.
    """
    return await _order(OperationKind.DELETE_NOTES, body, services, principal, response, write_key)


async def _order(
    kind: OperationKind, body: BulkIn, services: Services, principal: Principal, response: Response, write_key: WriteKey
) -> BulkOut:
    scope, filters = body.scope(principal.tenant), body.selection()
    matched, sample = await services.bulk.preview(scope, filters, sample=SAMPLE if body.dry_run else 0)
    if body.dry_run:
        return BulkOut(matched=matched, sample=[NoteOut.from_stored(note) for note in sample])
    request = body.model_dump(mode="json", exclude_unset=True, exclude=set(SCOPE_FIELDS))
    once = write_key.once(principal.tenant, body)
    operation = await services.operations.order(kind, scope_parameters(scope), request, once)
    tell_progress(operation, response)
    return BulkOut(matched=matched, sample=[], operation=OperationOut.from_operation(operation))
