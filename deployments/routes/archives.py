"""Archived notes: list, restore and delete them."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter

from deployments.access import ALL_AGENTS, ALL_USERS, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PlaceDep
from deployments.routes.paging import ById
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.archives import ArchivedNoteOut, ArchivedNotesOut, RestoredNoteOut, RestoredOut, RestoreIn
from lamina.core.memories import RestoreStatus
from lamina.core.principals import Verb
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.owners import OwnedKind
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/archive", tags=["archive"], route_class=JsonRoute)


@router.get("/notes")
@allow(Access(Verb.READ, ALL_USERS))
async def list_archived(
    services: ServicesDep,
    principal: PrincipalDep,
    place: PlaceDep,
    listing: ById,
) -> ArchivedNotesOut:
    """List the archived notes of a namespace by id and file; their content is in the files alone."""
    scope = Scope(principal.tenant, place.workspace, place.namespace)
    found = await services.archives.catalog.page(scope, listing.page)
    notes, following = listing.cut(found, lambda one: (one.id,))
    return ArchivedNotesOut(notes=[ArchivedNoteOut.from_attributes(entry) for entry in notes], next_cursor=following)


@router.post("/restore")
@allow(Access(Verb.MAINTAIN, ALL_AGENTS, of=OwnedKind.ARCHIVED_NOTE, ids="ids"))
async def restore(body: RestoreIn, services: ServicesDep, principal: PrincipalDep) -> RestoredOut:
    """Restore archived notes as they were, cold. Needs an admin's key.

    Restoring again changes nothing. A note that nobody finds afterwards is archived again by the next run.
    """
    outcomes = await services.archives.keeper().restore(principal.tenant, body.ids)
    return RestoredOut(
        results=[RestoredNoteOut.from_attributes(outcome) for outcome in outcomes],
        restored=sum(outcome.status is RestoreStatus.RESTORED for outcome in outcomes),
        without_vectors=sum(outcome.lacks_vectors for outcome in outcomes),
    )


@router.delete("/notes/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, ALL_AGENTS, of=OwnedKind.ARCHIVED_NOTE))
async def delete_archived(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Delete an archived note, its copy in the file included; it cannot be restored afterwards."""
    if not await services.archives.erase(principal.tenant, id, utc_now()):
        raise NotFound("note", str(id))
