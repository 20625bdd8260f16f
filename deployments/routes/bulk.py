"""Many memories of a kind at once: notes, messages and documents that match a filter."""

from collections.abc import Coroutine, Iterable
from contextlib import suppress
from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import APIRouter, Response
from pydantic import BaseModel

from deployments.access import NAMESPACE, OWN_MEMORIES, WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKey, WriteKeyDep
from deployments.routes.operations import tell_progress
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.bulk import (
    BulkChangeIn,
    BulkDeleteIn,
    BulkDocumentsOut,
    BulkIn,
    BulkMessagesOut,
    BulkOut,
    DocumentsChangeIn,
    DocumentsDeleteIn,
    DocumentsSelectionIn,
    MessagesDeleteIn,
    SelectionIn,
)
from lamina.api.documents import DocumentOut
from lamina.api.notes import NoteOut
from lamina.api.operations import OperationOut
from lamina.api.scope import SCOPE_FIELDS
from lamina.api.sessions import SessionMessageOut
from lamina.core.operations import OperationKind
from lamina.core.principals import Principal, Verb
from lamina.core.trash import TrashKind
from lamina.errors import NotFound
from lamina.stores.postgres.connection import scope_parameters

router = APIRouter(prefix="/v1", tags=["write"], route_class=JsonRoute)
Found = TypeVar("Found")


def _goes_on(model: type[BaseModel]) -> dict[int | str, dict[str, Any]]:
    return {HTTPStatus.ACCEPTED: {"model": model, "description": "It goes on."}}


@router.post("/notes/bulk", responses=_goes_on(BulkOut))
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
    services.workers.notes.check(body)
    kind = OperationKind.MOVE_NOTES if body.is_move else OperationKind.CHANGE_NOTES
    return await _order_notes(kind, body, services, principal, response, write_key)


@router.post("/notes/bulk/delete", responses=_goes_on(BulkOut))
@allow(Access(Verb.DELETE, OWN_MEMORIES))
async def delete_notes(
    body: BulkDeleteIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkOut:
    """Delete all notes that match, in batches; each can be brought back from the trash, as one deleted alone.

    200: it is complete; 202: it goes on, and `Location` names where to ask.
    """
    return await _order_notes(OperationKind.DELETE_NOTES, body, services, principal, response, write_key)


@router.post("/messages/bulk/delete", responses=_goes_on(BulkMessagesOut))
@allow(Access(Verb.DELETE, OWN_MEMORIES))
async def delete_messages(
    body: MessagesDeleteIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkMessagesOut:
    """Delete all messages that match, in batches; each can be brought back from the trash, as one deleted alone.

    Summaries of sessions match like any other message, and are not kept in the trash. Notes and facts that were drawn
    from a message stay. 200: it is complete; 202: it goes on, and `Location` names where to ask.
    """
    matched, ids = await services.workers.deletion.preview(
        TrashKind.MESSAGE, body.scope(principal.tenant), body.selection(), sample=body.sample_size
    )
    found = await _present(services.reads.messages.get(principal.tenant, id_) for id_ in ids)
    sample = [SessionMessageOut.from_attributes(one, one.message) for one in found]
    operation = await _order(OperationKind.DELETE_MESSAGES, body, services, principal, response, write_key)
    return BulkMessagesOut(matched=matched, sample=sample, operation=operation)


@router.post("/documents/bulk", responses=_goes_on(BulkDocumentsOut))
@allow(Access(Verb.WRITE, OWN_MEMORIES, beside={"to_workspace": WORKSPACE, "to_namespace": NAMESPACE}))
async def change_documents(
    body: DocumentsChangeIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkDocumentsOut:
    """Tag or move all documents that match, in batches; files of the workspace stay as they are, and count as `files`.

    200: it is complete; 202: it goes on, and `Location` names where to ask. A document that gets other tags is a new
    version; one that moves to a namespace in which its user has one of the same key stays, and counts as `existing`.
    """
    body = body.with_target()
    body.check_changes(("add_tags", "remove_tags"))
    kind = OperationKind.MOVE_DOCUMENTS if body.is_move else OperationKind.CHANGE_DOCUMENTS
    return await _order_documents(kind, body, services, principal, response, write_key)


@router.post("/documents/bulk/delete", responses=_goes_on(BulkDocumentsOut))
@allow(Access(Verb.DELETE, OWN_MEMORIES))
async def delete_documents(
    body: DocumentsDeleteIn, services: ServicesDep, principal: PrincipalDep, response: Response, write_key: WriteKeyDep
) -> BulkDocumentsOut:
    """Delete all documents that match, in batches; each can be brought back from the trash, as one deleted alone.

    Files of the workspace are documents, too. 200: it is complete; 202: it goes on, and `Location` names where to ask.
    """
    return await _order_documents(OperationKind.DELETE_DOCUMENTS, body, services, principal, response, write_key)


async def _order_notes(
    kind: OperationKind, body: BulkIn, services: Services, principal: Principal, response: Response, write_key: WriteKey
) -> BulkOut:
    scope, filters = body.scope(principal.tenant), body.selection()
    matched, sample = await services.workers.notes.preview(scope, filters, sample=body.sample_size)
    operation = await _order(kind, body, services, principal, response, write_key)
    return BulkOut(matched=matched, sample=[NoteOut.from_stored(note) for note in sample], operation=operation)


async def _order_documents(
    kind: OperationKind,
    body: DocumentsSelectionIn,
    services: Services,
    principal: Principal,
    response: Response,
    write_key: WriteKey,
) -> BulkDocumentsOut:
    tenant, deletion, shown = principal.tenant, services.workers.deletion, body.sample_size
    matched, ids = await deletion.preview(TrashKind.DOCUMENT, body.scope(tenant), body.selection(), sample=shown)
    found = await _present(services.documents.reads.get(tenant, id_, with_content=False) for id_ in ids)
    sample = [DocumentOut.from_attributes(one, occurred_at=one.event_at) for one in found]
    operation = await _order(kind, body, services, principal, response, write_key)
    return BulkDocumentsOut(matched=matched, sample=sample, operation=operation)


async def _present(reads: Iterable[Coroutine[Any, Any, Found]]) -> list[Found]:
    """Read the items of a sample, without those that were deleted meanwhile."""
    found = []
    for read in reads:
        with suppress(NotFound):
            found.append(await read)
    return found


async def _order(
    kind: OperationKind,
    body: SelectionIn,
    services: Services,
    principal: Principal,
    response: Response,
    write_key: WriteKey,
) -> OperationOut | None:
    """Order the work; nothing for a dry run."""
    if body.dry_run:
        return None
    request = body.model_dump(mode="json", exclude_unset=True, exclude=set(SCOPE_FIELDS))
    once = write_key.once(principal.tenant, body)
    ids = scope_parameters(body.scope(principal.tenant))
    operation = await services.operations.order(kind, ids, request, once)
    tell_progress(operation, response)
    return OperationOut.from_attributes(operation)
