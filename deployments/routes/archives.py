"""Archived notes: list, restore and delete them."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PageLimit, PageOffset
from deployments.services import AdminDep, ReaderDep, ServicesDep, WriterDep
from lamina.api.archives import ArchivedNoteOut, ArchivedNotesOut, RestoredNoteOut, RestoredOut, RestoreIn
from lamina.core.memories import RestoreStatus
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE, Scope
from lamina.errors import NotFound
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/archive", tags=["archive"], route_class=JsonRoute)


@router.get("/notes")
async def list_archived(
    services: ServicesDep,
    credential: ReaderDep,
    workspace: Annotated[str, Query(description="Project.")] = DEFAULT_WORKSPACE,
    namespace: Annotated[str, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
    limit: PageLimit = 100,
    offset: PageOffset = 0,
) -> ArchivedNotesOut:
    """List the archived notes of a namespace by id and file; their content is in the files alone."""
    scope = Scope(credential.tenant, workspace, namespace)
    found = await services.archives.catalog.page(scope, limit=limit, offset=offset)
    return ArchivedNotesOut(notes=[ArchivedNoteOut.from_attributes(entry) for entry in found])


@router.post("/restore")
async def restore(body: RestoreIn, services: ServicesDep, credential: AdminDep) -> RestoredOut:
    """Restore archived notes as they were, cold. Needs an admin's key.

    Restoring again changes nothing. A note that nobody finds afterwards is archived again by the next run.
    """
    outcomes = await services.archives.keeper().restore(credential.tenant, body.ids)
    return RestoredOut(
        results=[RestoredNoteOut.from_attributes(outcome) for outcome in outcomes],
        restored=sum(outcome.status is RestoreStatus.RESTORED for outcome in outcomes),
        without_vectors=sum(outcome.lacks_vectors for outcome in outcomes),
    )


@router.delete("/notes/{id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_archived(id: UUID, services: ServicesDep, credential: WriterDep) -> None:
    """Delete an archived note, its copy in the file included; it cannot be restored afterwards."""
    if not await services.archives.erase(credential.tenant, id, utc_now()):
        raise NotFound("note", str(id))
