"""Memories of any kind by the id that a search returns: read, change and delete them."""

from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

from fastapi import APIRouter
from fastapi.exceptions import RequestValidationError
from pydantic import ValidationError
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PRECONDITION_FAILED, IfMatchDep
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.documents import DocumentOut, PassageOut
from lamina.api.facts import FactOut
from lamina.api.fields import Strict
from lamina.api.graph import EntityOut
from lamina.api.memories import DocumentPatch, EntityPatch, FactPatch, ForgottenOut, MemoryOut, MessagePatch, TextPatch
from lamina.api.notes import NoteOut, NotePatch
from lamina.api.procedures import ProcedureOut, ProcedurePatch
from lamina.api.sessions import SessionMessageOut
from lamina.core.documents import StoredDocument, StoredPassage, Upload
from lamina.core.memories import Edge, Entity, MemoryKind, as_utc
from lamina.core.preconditions import ANY_ETAG, Precondition
from lamina.core.principals import Principal, ScopeField, Verb
from lamina.core.scope import Scope
from lamina.errors import Conflict, InvalidInput, NotFound, OutsideBounds, PreconditionFailed
from lamina.ingest.files import SentFile
from lamina.ingest.graph import StatedEdge, StatedFact
from lamina.stores.postgres.owners import FoundMemory, OwnedKind
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/memories", route_class=JsonRoute)
Patch = TypeVar("Patch", bound=Strict)
Shown = TypeVar("Shown")
_AS_WRITTEN = frozenset({"text/plain", "text/markdown"})
_WITH_VERSIONS = frozenset({MemoryKind.NOTE, MemoryKind.DOCUMENT, MemoryKind.PASSAGE})
MOST_TRIES = 16
"""Of a change of a document beside other changes of it: each try that fails is one of theirs that succeeded."""


@router.get("/{id}", tags=["read"])
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.MEMORY))
async def get_memory(id: UUID, services: ServicesDep, principal: PrincipalDep) -> MemoryOut:
    """Return the memory of an id that a search returned, whatever its kind, whole."""
    return await _shown(services, principal, await services.owners.memory(principal.tenant, id))


@router.patch("/{id}", tags=["write"], openapi_extra=body_of(mib=32), responses=PRECONDITION_FAILED)
@allow(Access(Verb.WRITE, OWN_MEMORIES, of=OwnedKind.MEMORY))
async def change_memory(
    id: UUID, body: dict[str, Any], services: ServicesDep, principal: PrincipalDep, condition: IfMatchDep
) -> MemoryOut:
    """Change fields of a memory: those of its kind, as its own route takes them.

    Of a document `content`, `title`, `tags` and `metadata`; of a file and of a passage `content`, which of a passage
    takes the place of its stretch of the document; of an entity `type`, `aliases` and `confidence`. Of a message
    `content`, `metadata` and `importance`: what was drawn from its text follows it; one for which a summary stands is
    not changed (409). Of a fact `subject`, `relation`, `object`, `valid_from`, `confidence` and `source`: another fact
    takes its place, and the answer names it. Changes of two passages of a document at a time both stay.
    With If-Match only of this version: a note's, a document's, of a file its ETag, of a passage its document's.
    """
    found = await services.owners.memory(principal.tenant, id)
    if condition.match is not None and found.kind not in _WITH_VERSIONS:
        raise InvalidInput("If-Match", f"is not read here: {found.kind.value} {id} has no versions; leave it out")
    match found.kind:
        case MemoryKind.NOTE:
            changes = _read(NotePatch, body).changes(utc_now())
            await services.recorder.change_note(principal.tenant, id, changes, condition, witness=principal.witness())
        case MemoryKind.PROCEDURE:
            _refuse_procedure(principal, id)
            await services.procedures.recorder.change(principal.tenant, id, _read(ProcedurePatch, body).changes())
        case MemoryKind.DOCUMENT | MemoryKind.PASSAGE:
            await _change_document(services, principal, found, body, condition)
            if found.kind is MemoryKind.PASSAGE:  # The document is cut anew.
                found = replace(found, kind=MemoryKind.DOCUMENT, id=found.whole_id)
        case MemoryKind.ENTITY:
            stored = await _visible(principal, found, services.explorer.entity)
            sent = _read(EntityPatch, body).model_dump(exclude_unset=True)
            known = {"type": stored.entity.type, "confidence": stored.entity.confidence, **sent}
            entity = Entity(stored.entity.name, known["type"], tuple(sent.get("aliases", ())), known["confidence"])
            await services.graph_recorder.put_entities(found.scope, [entity], witness=principal.witness())
        case MemoryKind.MESSAGE:
            changes = _read(MessagePatch, body).model_dump(exclude_unset=True)
            user = (await services.reads.messages.get(principal.tenant, id)).user
            await services.recorder.change_message(
                principal.tenant,
                id,
                changes,
                is_verified=principal.speaks_for(ScopeField.USER, user),
                reaches_user=principal.reaches_whole(ScopeField.USER),
                witness=principal.witness(),
            )
        case MemoryKind.FACT:
            found = replace(found, id=await _replaced_fact(services, principal, found, _read(FactPatch, body)))
    return await _shown(services, principal, found)


@router.delete("/{id}", tags=["write"])
@allow(Access(Verb.DELETE, OWN_MEMORIES, of=OwnedKind.MEMORY))
async def delete_memory(id: UUID, services: ServicesDep, principal: PrincipalDep) -> ForgottenOut:
    """Delete the memory of an id, whatever its kind; a passage goes with its document, an entity with its facts."""
    tenant = principal.tenant
    found = await services.owners.memory(tenant, id)
    match found.kind:
        case MemoryKind.NOTE:
            try:
                await services.recorder.delete_note(tenant, id)
            except NotFound:
                if not await services.archives.erase(tenant, id, utc_now()):
                    raise
        case MemoryKind.MESSAGE:
            await services.recorder.delete_message(tenant, id)
        case MemoryKind.DOCUMENT | MemoryKind.PASSAGE:
            await services.documents.recorder.delete(tenant, found.whole_id)
            return ForgottenOut(id=found.whole_id, kind=MemoryKind.DOCUMENT)
        case MemoryKind.PROCEDURE:
            _refuse_procedure(principal, id)
            await services.procedures.recorder.delete(tenant, id)
        case MemoryKind.ENTITY:
            await services.graph_recorder.delete_entity(tenant, id)
        case MemoryKind.FACT:
            await services.graph_recorder.retract_edge(tenant, id)
    return ForgottenOut(id=id, kind=found.kind)


def _refuse_procedure(principal: Principal, id_: UUID) -> None:
    """Refuse keys of some users to write a procedure, which is the workspace's, as its own routes do."""
    if principal.bounds.users:
        raise OutsideBounds("user", f"procedure {id_} is the workspace's; use a key that is not bound to users")


def _read(model: type[Patch], body: dict[str, Any]) -> Patch:
    try:
        return model.model_validate(body)
    except ValidationError as error:
        raise RequestValidationError(error.errors()) from error


async def _shown(services: Services, principal: Principal, found: FoundMemory) -> MemoryOut:
    id_, kind, tenant, shown = found.id, found.kind, principal.tenant, dict[str, Any]()
    match kind:
        case MemoryKind.NOTE:
            shown["note"] = NoteOut.from_stored(await services.reads.notes.get(tenant, id_))
        case MemoryKind.MESSAGE:
            message = await services.reads.messages.get(tenant, id_)
            shown["message"] = SessionMessageOut.from_attributes(message, message.message)
        case MemoryKind.DOCUMENT:
            document = await services.documents.reads.get(tenant, id_)
            shown["document"] = DocumentOut.from_attributes(document, occurred_at=document.event_at)
        case MemoryKind.PASSAGE:
            passage = await services.documents.reads.passage(tenant, id_)
            document = await services.documents.reads.get(tenant, found.whole_id, with_content=False)
            shown["passage"] = PassageOut.from_attributes(passage)
            shown["document"] = DocumentOut.from_attributes(document, occurred_at=document.event_at)
        case MemoryKind.PROCEDURE:
            shown["procedure"] = ProcedureOut.from_stored(await services.procedures.reads.get(tenant, id_))
        case MemoryKind.ENTITY:
            entity = await _visible(principal, found, services.explorer.entity)
            shown["entity"] = EntityOut.from_attributes(entity, entity.entity)
        case MemoryKind.FACT:
            shown["fact"] = FactOut.from_attributes(await _visible(principal, found, services.explorer.fact))
    return MemoryOut(id=id_, kind=kind, **shown)


async def _visible(
    principal: Principal, found: FoundMemory, read: Callable[[Scope, UUID], Coroutine[Any, Any, Shown | None]]
) -> Shown:
    """Return the part of the graph that the key may see; bound to users, it sees as each of them does.

    Raises:
        NotFound: If none of them may see it.
    """
    users: list[str | None] = [*sorted(principal.bounds.users)]
    for user in users or [None]:
        shown = await read(found.scope.narrowed(user=user), found.id)
        if shown is not None:
            return shown
    raise NotFound("memory", str(found.id))


async def _replaced_fact(services: Services, principal: Principal, found: FoundMemory, sent: FactPatch) -> UUID:
    """State another fact in the place of one; return its id.

    Raises:
        Conflict: If the old one cannot be replaced by it.
    """
    known = await _visible(principal, found, services.explorer.fact)
    named = {name: getattr(sent, name) or getattr(known, name) for name in ("subject", "relation", "object")}
    confidence = known.confidence if sent.confidence is None else sent.confidence
    edge = Edge(named["subject"], named["relation"], named["object"], confidence=confidence)
    begin = None if sent.valid_from is None else as_utc(sent.valid_from, "valid_from")
    fact = StatedFact(StatedEdge(edge, sent.source), begin)
    stated = await services.graph_recorder.change_fact(found.scope, known, fact, witness=principal.witness())
    return stated.result.id


async def _change_document(
    services: Services, principal: Principal, found: FoundMemory, body: dict[str, Any], condition: Precondition
) -> None:
    """Change a document as it is when it is written, and not as it was read: whoever comes between stays.

    Raises:
        PreconditionFailed: If it is in another state than the one on which the caller insists, or others change it
            without a pause.
        Conflict: If another change took the passage.
    """
    is_text = found.kind is MemoryKind.PASSAGE or found.path is not None
    sent = _read(TextPatch if is_text else DocumentPatch, body).model_dump(exclude_unset=True)
    is_passage = found.kind is MemoryKind.PASSAGE
    passage = await services.documents.reads.passage(principal.tenant, found.id) if is_passage else None
    is_beside = retry_if_exception_type(PreconditionFailed)
    names_state = condition.match is not None and ANY_ETAG not in condition.match
    tries = stop_after_attempt(1 if names_state else MOST_TRIES)
    async for attempt in AsyncRetrying(retry=is_beside, stop=tries, reraise=True):
        with attempt:
            await _put_changed(services, principal, found, passage, sent, condition)


async def _put_changed(
    services: Services,
    principal: Principal,
    found: FoundMemory,
    passage: StoredPassage | None,
    sent: dict[str, Any],
    condition: Precondition,
) -> None:
    tenant = principal.tenant
    stored = await services.documents.reads.get(tenant, found.whole_id)
    scope = replace(found.scope, user=stored.user, agent=stored.agent)
    file = None
    if found.path is not None:
        file = await services.files.reads.get(scope, found.path, with_content=False)
        stored = await services.documents.reads.get(tenant, found.whole_id)  # Never older than the file's ETag.
    etag = str(stored.version) if file is None else file.etag
    condition.check(f"document {stored.id}" if file is None else f"file {file.path}", etag)
    unchanged = Precondition(frozenset({etag}))
    content: str = sent.get("content", stored.content or "")
    if passage is not None:
        content = await _spliced(services, tenant, stored, passage, content)
    if file is not None:
        changed = SentFile(file.path, content, is_always=file.is_always, mirror=file.mirror)
        await services.files.recorder.put(scope, changed, unchanged, witness=principal.witness())
        return
    upload = Upload(
        content=content,
        # What was read out of another form is plain text.
        media_type=stored.media_type if stored.media_type.partition(";")[0] in _AS_WRITTEN else "text/plain",
        key=stored.key,
        title=sent.get("title", stored.title),
        tags=tuple(sent.get("tags", stored.tags)),
        event_at=stored.event_at,
        source=stored.source,
        metadata=sent.get("metadata", stored.metadata),
    )
    document = await services.documents.recorder.read(tenant, upload)
    await services.documents.recorder.put(scope, [document], witness=principal.witness(), condition=unchanged)


async def _spliced(
    services: Services, tenant: str, stored: StoredDocument, passage: StoredPassage, content: str
) -> str:
    """Return the text of a document with another one in the place of a passage, also where it was cut anew.

    Raises:
        Conflict: If the text of the passage does not stand there once any more.
    """
    whole = stored.content or ""
    with suppress(NotFound):
        now = await services.documents.reads.passage(tenant, passage.id)
        return f"{whole[: now.start]}{content}{whole[now.end :]}"
    before, found, after = whole.partition(passage.content)
    if not found or passage.content in after:
        raise Conflict(f"passage {passage.id} of document {stored.id} was changed meanwhile; read the document again")
    return f"{before}{content}{after}"
