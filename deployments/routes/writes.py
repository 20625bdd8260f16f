"""POST /v1/turns and the explicit writes."""

from datetime import datetime
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Header, Response
from pydantic import ValidationError

from deployments.instruments import measured_write
from deployments.problems import field_path
from deployments.services import ServicesDep, WriterDep
from lamina.api.batches import BatchItem, BatchOut
from lamina.api.fields import Strict
from lamina.api.notes import BatchIn, NoteFields, NoteIn, NoteOut, NotePatch, PutResult
from lamina.api.profiles import ProfileOut, ProfilePatch
from lamina.api.turns import TurnIn, TurnOut
from lamina.core.memories import Note, clean_note
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput, NotFound
from lamina.stores.postgres.idempotency import Once, once_for
from lamina.stores.postgres.notes import PutNote
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["write"])
IdempotencyKey = Annotated[
    str | None,
    Header(description="Your id of this write: sending it again returns the first answer and writes nothing."),
]


def once_of(tenant: str, key: str | None, body: Strict) -> Once | None:
    """Return what makes this write happen once; nothing without a key."""
    if key is None:
        return None
    return once_for(
        tenant,
        clean_id(key, "Idempotency-Key"),
        {"request": type(body).__name__, **body.model_dump(mode="json", exclude_unset=True)},
    )


@router.post("/turns")
async def record_turn(
    body: TurnIn, services: ServicesDep, credential: WriterDep, idempotency_key: IdempotencyKey = None
) -> TurnOut:
    """Hand over what was said; it is durable when the answer comes.

    The messages are stored with their vectors, and what they teach (notes, profile facts) with
    them, in one transaction. Search finds them by meaning at once, by words within milliseconds.
    """
    scope = body.scope(credential.tenant)
    once = once_of(credential.tenant, idempotency_key, body)
    with measured_write(services.meter, Tier.SESSIONS, len(body.messages)):
        recorded = await services.recorder.record_turn(scope, [item.message() for item in body.messages], once)
    return TurnOut.model_validate(recorded, from_attributes=True)


@router.post("/notes", status_code=HTTPStatus.CREATED, responses={200: {"model": PutResult, "description": "Existed"}})
async def put_note(
    body: NoteIn,
    services: ServicesDep,
    credential: WriterDep,
    response: Response,
    idempotency_key: IdempotencyKey = None,
) -> PutResult:
    """Store one note; a note of the same text in the same scope is returned instead (200)."""
    scope = body.scope(credential.tenant)
    once = once_of(credential.tenant, idempotency_key, body)
    with measured_write(services.meter, Tier.NOTES):
        recorded = await services.recorder.put_notes(scope, [body.note(utc_now())], once)
    result = PutResult.model_validate(recorded.notes[0], from_attributes=True)
    response.status_code = HTTPStatus.OK if result.existed else HTTPStatus.CREATED
    return result


@router.post("/notes/batch")
async def put_notes(
    body: BatchIn, services: ServicesDep, credential: WriterDep, idempotency_key: IdempotencyKey = None
) -> BatchOut:
    """Store many notes in one transaction; each item has a result of its own."""
    scope = body.scope(credential.tenant)
    now = utc_now()
    read = [_read_item(item, f"notes.{place}", now) for place, item in enumerate(body.notes)]
    good = [item for item in read if isinstance(item, Note)]
    if not good:
        return BatchOut(results=[item for item in read if isinstance(item, BatchItem)])
    once = once_of(credential.tenant, idempotency_key, body)
    with measured_write(services.meter, Tier.NOTES, len(good)):
        recorded = await services.recorder.put_notes(scope, good, once)
    stored = iter(recorded.notes)
    results = [item if isinstance(item, BatchItem) else _stored_item(next(stored)) for item in read]
    return BatchOut(results=results, epoch=recorded.epoch)


def _read_item(item: Any, path: str, now: datetime) -> Note | BatchItem:
    try:
        fields = NoteFields.model_validate({"content": item} if isinstance(item, str) else item)
        return clean_note(fields.note(now, path), path)
    except ValidationError as error:
        reasons = (f"{path}.{field_path(part['loc'])}: {part['msg'].lower()}" for part in error.errors())
        return BatchItem(status="invalid", error="; ".join(reasons))
    except InvalidInput as error:
        return BatchItem(status="invalid", error=str(error))


def _stored_item(stored: PutNote) -> BatchItem:
    return BatchItem(status="existed" if stored.existed else "created", id=stored.id)


@router.patch("/notes/{id}")
async def change_note(id: UUID, body: NotePatch, services: ServicesDep, credential: WriterDep) -> NoteOut:  # noqa: A002
    """Change fields of a note; the state before is kept as a version."""
    return NoteOut.from_stored(await services.recorder.change_note(credential.tenant, id, body.changes(utc_now())))


@router.delete("/notes/{id}", status_code=HTTPStatus.NO_CONTENT)
async def delete_note(id: UUID, services: ServicesDep, credential: WriterDep) -> None:  # noqa: A002
    """Delete a note, archived or not; no search returns it from now on."""
    try:
        await services.recorder.delete_note(credential.tenant, id)
    except NotFound:
        if not await services.archives.erase(credential.tenant, id, utc_now()):
            raise


@router.patch("/profile")
async def patch_profile(body: ProfilePatch, services: ServicesDep, credential: WriterDep) -> ProfileOut:
    """Merge a patch into a user's profile."""
    return ProfileOut.from_attributes(await services.recorder.patch_profile(body.scope(credential.tenant), body.patch))
