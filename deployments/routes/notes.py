"""Notes: store, read, change and delete them."""

from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.batches import read_batch
from deployments.routes.dependencies import PRECONDITION_FAILED, IfMatchDep, ScopeDep, WriteKeyDep
from deployments.routes.paging import ByTime
from deployments.services import PrincipalDep, ServicesDep
from deployments.write_metrics import measured_write
from lamina.api.batches import BatchItem, BatchOut
from lamina.api.fields import Moment, Tags
from lamina.api.notes import (
    BatchIn,
    NoteFields,
    NoteIn,
    NoteOut,
    NotePatch,
    NotesOut,
    NoteVersionOut,
    NoteVersionsOut,
    PutResult,
)
from lamina.core.memories import Category, Note, StoredNote, clean_note
from lamina.core.principals import Verb
from lamina.core.queries import Filters, clean_filters
from lamina.core.tiers import Tier
from lamina.errors import NotFound
from lamina.stores.postgres.owners import OwnedKind
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/notes", route_class=JsonRoute)


@router.post(
    "",
    tags=["write"],
    status_code=HTTPStatus.CREATED,
    responses={200: {"model": PutResult, "description": "Existed"}},
    openapi_extra=body_of(mib=16),
)
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_note(
    body: NoteIn,
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    write_key: WriteKeyDep,
) -> PutResult:
    """Store one note; a note of the same text in the same scope is returned instead (200)."""
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    with measured_write(services.meter, Tier.NOTES):
        note, witness = body.note(utc_now()), principal.witness(scope.agent)
        recorded = await services.recorder.put_notes(scope, [note], once, witness=witness)
    result = PutResult.from_attributes(recorded.notes[0])
    response.status_code = HTTPStatus.OK if result.existed else HTTPStatus.CREATED
    return result


@router.post("/batch", tags=["write"], openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_notes(body: BatchIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep) -> BatchOut:
    """Store many notes in one transaction; each item has a result of its own."""
    scope = body.scope(principal.tenant)
    now = utc_now()

    def read(item: Any, path: str) -> Note:
        fields = NoteFields.model_validate({"content": item} if isinstance(item, str) else item)
        return clean_note(fields.note(now, path), path, limit=services.recorder.metadata_limit)

    batch = await read_batch("notes", body.notes, read)
    notes = batch.accepted()
    if not notes:  # Even an empty write would raise the namespace's epoch.
        return BatchOut(results=batch.results((), BatchItem))
    once = write_key.once(principal.tenant, body)
    with measured_write(services.meter, Tier.NOTES, len(notes)):
        recorded = await services.recorder.put_notes(scope, notes, once, witness=principal.witness(scope.agent))
    stored = [
        BatchItem(
            status="existed" if item.existed else "created", id=item.id, merged=item.merged, difference=item.difference
        )
        for item in recorded.notes
    ]
    return BatchOut(results=batch.results(stored, BatchItem), epoch=recorded.epoch)


@router.get("", tags=["read"])
@allow(Access(Verb.READ, MEMORIES))
async def list_notes(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    category: Annotated[Category | None, Query(description="Only this category.")] = None,
    tag: Annotated[Tags | None, Query(description="Only notes with all of these tags.")] = None,
    since: Annotated[Moment | None, Query(description="Only events at or after this time.")] = None,
    until: Annotated[Moment | None, Query(description="Only events before this time.")] = None,
) -> NotesOut:
    """List the notes of a scope, the latest event first."""
    filters = clean_filters(Filters(tuple(tag or ()), since, until, 0.0))
    scope = ids.scope(principal.tenant)
    found = await services.reads.notes.page(scope, filters, category, listing.page)
    notes, following = listing.cut(found, lambda one: (one.note.event_at, one.id))
    return NotesOut(notes=[NoteOut.from_stored(note) for note in notes], next_cursor=following)


@router.get("/{id}", tags=["read"])
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.NOTE))
async def get_note(id: UUID, services: ServicesDep, principal: PrincipalDep, response: Response) -> NoteOut:
    """Return one note, whole; its ETag is its version."""
    return _answer(await services.reads.notes.get(principal.tenant, id), response)


@router.get("/{id}/versions", tags=["read"])
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.NOTE))
async def note_versions(id: UUID, services: ServicesDep, principal: PrincipalDep) -> NoteVersionsOut:
    """Return the states the note was in, oldest first; of very old or very many ones, only the number."""
    versions = await services.reads.notes.history(principal.tenant, id)
    out = [NoteVersionOut.from_attributes(version) for version in versions]
    return NoteVersionsOut(versions=out, removed=out[0].version - 1)


@router.patch("/{id}", tags=["write"], responses=PRECONDITION_FAILED, openapi_extra=body_of(mib=16))
@allow(Access(Verb.WRITE, OWN_MEMORIES, of=OwnedKind.NOTE))
async def change_note(
    id: UUID,
    body: NotePatch,
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    condition: IfMatchDep,
) -> NoteOut:
    """Change fields of a note, with If-Match only of this version; the state before is kept as a version."""
    changes, witness = body.changes(utc_now()), principal.witness()
    stored = await services.recorder.change_note(principal.tenant, id, changes, condition, witness=witness)
    return _answer(stored, response)


@router.delete("/{id}", tags=["write"], status_code=HTTPStatus.NO_CONTENT, responses=PRECONDITION_FAILED)
@allow(Access(Verb.DELETE, OWN_MEMORIES, of=OwnedKind.NOTE))
async def delete_note(id: UUID, services: ServicesDep, principal: PrincipalDep, condition: IfMatchDep) -> None:
    """Delete a note, archived or not; no search returns it from now on."""
    try:
        await services.recorder.delete_note(principal.tenant, id, condition)
    except NotFound:
        if condition.match or not await services.archives.erase(principal.tenant, id, utc_now()):
            raise


def _answer(stored: StoredNote, response: Response) -> NoteOut:
    response.headers["ETag"] = f'"{stored.version}"'
    return NoteOut.from_stored(stored)
