"""Documents: upload, replace, read and delete; search finds their passages."""

import asyncio
import hashlib
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Form, Query, Response, UploadFile
from pydantic import Field, ValidationError

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.parameters import refuse_repeated_fields
from deployments.routes.batches import Batch, Refused, refuse
from deployments.routes.dependencies import (
    PRECONDITION_FAILED,
    IfMatch,
    IfMatchDep,
    IfNoneMatch,
    ScopeDep,
    WriteKey,
    WriteKeyDep,
)
from deployments.routes.paging import ByPosition, ByTime
from deployments.services import PrincipalDep, Services, ServicesDep
from deployments.write_metrics import measured_write
from lamina.api.documents import (
    DocumentFields,
    DocumentIn,
    DocumentItem,
    DocumentOut,
    DocumentsIn,
    DocumentsOut,
    PassageOut,
    PassagesOut,
    PutDocumentOut,
    PutDocumentsOut,
)
from lamina.api.fields import ABSENT, Id, MediaType, Moment, SourceName, Tags, Title
from lamina.api.problems import ProblemOut
from lamina.api.scope import ScopeIn
from lamina.core.documents import Document, Upload
from lamina.core.json_values import read_json
from lamina.core.media_types import media_type_of
from lamina.core.memories import Metadata
from lamina.core.preconditions import UNCONDITIONAL, Precondition, read_etags
from lamina.core.principals import Principal, Verb
from lamina.core.queries import Filters, clean_filters
from lamina.core.tiers import Tier
from lamina.errors import InvalidInput
from lamina.stores.postgres.idempotency import Once
from lamina.stores.postgres.owners import OwnedKind
from lamina.text.hygiene import clean_id

router = APIRouter(prefix="/v1/documents", tags=["documents"], route_class=JsonRoute)
_NOT_NEW: dict[int | str, dict[str, Any]] = {200: {"model": PutDocumentOut, "description": "Replaced or existed"}}


MAX_METADATA_CHARS = 1024 * 1024
"""Of a form's field, as JSON with whatever blanks and escapes."""


class UploadedFileIn(ScopeIn):
    """A file to store, as a form."""

    file: UploadFile = Field(description="The file.")
    media_type: MediaType = Field(ABSENT, description="What it is written in. Default: what the file or its name says.")
    key: Id = Field(ABSENT, description="Your own id: the same key replaces the document. Default: hash of its text.")
    title: Title = Field(ABSENT, description="Default: the title that it gives itself.")
    tags: Tags = Field(default_factory=list, description="Labels, each compared whole; may be repeated.")
    occurred_at: Moment = Field(ABSENT, description="When what it tells of happened. Default: now.")
    source: SourceName = Field(ABSENT, description="Where it comes from. Default: the file's name.")
    metadata: str = Field("{}", max_length=MAX_METADATA_CHARS, description="Your data, as a JSON object.")

    async def upload(self) -> Upload:
        """Return the document as the library knows it.

        Raises:
            InvalidInput: If the metadata are no JSON object.
        """
        name = self.file.filename or ""
        return Upload(
            content=await self.file.read(),
            media_type=self.media_type or media_type_of(name, self.file.content_type),
            key=self.key,
            title=self.title,
            tags=tuple(self.tags),
            event_at=self.occurred_at,
            source=self.source or name or "api",
            metadata=self._metadata(),
        )

    def _metadata(self) -> Metadata:
        found = read_json(self.metadata, "metadata")
        if not isinstance(found, dict):
            raise InvalidInput("metadata", "is no JSON object")
        return found


@router.post(
    "", status_code=HTTPStatus.CREATED, responses=_NOT_NEW | PRECONDITION_FAILED, openapi_extra=body_of(mib=32)
)
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_document(
    body: DocumentIn,
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    write_key: WriteKeyDep,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> PutDocumentOut:
    """Store a document in place of the one that the scope has under its key (200), or as a new one.

    It is split into passages, which search finds within milliseconds; the old ones leave every index. With If-Match it
    replaces this version only.
    """
    once = write_key.once(principal.tenant, body)
    condition = Precondition(read_etags(if_match, "If-Match"), read_etags(if_none_match, "If-None-Match", weak=True))
    return await _put(services, principal, body, body.upload(), once, response, condition)


@router.post(
    "/upload",
    status_code=HTTPStatus.CREATED,
    responses=_NOT_NEW,
    dependencies=[Depends(refuse_repeated_fields)],
    openapi_extra=body_of(mib=32),
)
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def upload_document(
    form: Annotated[UploadedFileIn, Form(media_type="multipart/form-data")],
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    write_key: WriteKeyDep,
) -> PutDocumentOut:
    """Store a file, sent as a form."""
    upload = await form.upload()
    once = _once_for_file(principal.tenant, write_key, form, upload)
    return await _put(services, principal, form, upload, once, response)


def _once_for_file(tenant: str, write_key: WriteKey, form: UploadedFileIn, upload: Upload) -> Once | None:
    if write_key.key is None:  # Then the file need not be hashed.
        return None
    assert isinstance(upload.content, bytes)  # noqa: S101 - a file's content
    request = form.model_dump(mode="json", exclude_unset=True, exclude={"file"})
    file = hashlib.sha256(upload.content).hexdigest()
    return write_key.once_for_request(tenant, [request, upload.media_type, upload.source, file], form.user)


async def _put(
    services: Services,
    principal: Principal,
    ids: ScopeIn,
    upload: Upload,
    once: Once | None,
    response: Response,
    condition: Precondition = UNCONDITIONAL,
) -> PutDocumentOut:
    scope = ids.scope(principal.tenant)
    document = await services.documents.recorder.read(scope.tenant, upload)
    with measured_write(services.meter, Tier.DOCUMENTS):
        witness = principal.witness(scope.agent)
        stored = await services.documents.recorder.put(
            scope, [document], once, witness=witness, condition=condition, agents=principal.bounds.agents
        )
    result = PutDocumentOut.from_attributes(stored.documents[0])
    response.headers["ETag"] = f'"{result.version}"'
    response.status_code = HTTPStatus.CREATED if result.status == "created" else HTTPStatus.OK
    return result


@router.post("/batch", openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_documents(
    body: DocumentsIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> PutDocumentsOut:
    """Store many documents in one transaction; each item has a result of its own."""
    scope = body.scope(principal.tenant)
    reading = (
        _read_document(services, scope.tenant, item, f"documents.{place}") for place, item in enumerate(body.documents)
    )
    batch = Batch(await asyncio.gather(*reading))
    documents = batch.accepted()
    if not documents:  # Even an empty write would raise the namespace's epoch.
        return PutDocumentsOut(results=batch.results((), DocumentItem))
    once = write_key.once(principal.tenant, body)
    with measured_write(services.meter, Tier.DOCUMENTS, len(documents)):
        witness = principal.witness(scope.agent)
        recorded = await services.documents.recorder.put(
            scope, documents, once, witness=witness, agents=principal.bounds.agents
        )
    stored = [DocumentItem.from_attributes(item) for item in recorded.documents]
    return PutDocumentsOut(results=batch.results(stored, DocumentItem), epoch=recorded.epoch)


async def _read_document(services: Services, tenant: str, item: Any, path: str) -> Document | Refused:
    try:
        upload = DocumentFields.model_validate(item).upload(path)
        return await services.documents.recorder.read(tenant, upload, path)
    except (ValidationError, InvalidInput) as error:
        return refuse(error, path)


@router.get("")
@allow(Access(Verb.READ, MEMORIES))
async def list_documents(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    key: Annotated[Id | None, Query(description="Only the one that you named so.")] = None,
    tag: Annotated[Tags | None, Query(description="Only documents with all of these tags.")] = None,
    since: Annotated[Moment | None, Query(description="Only events at or after this time.")] = None,
    until: Annotated[Moment | None, Query(description="Only events before this time.")] = None,
) -> DocumentsOut:
    """List the documents of a scope, the latest event first."""
    filters = clean_filters(Filters(tuple(tag or ()), since, until, 0.0))
    clean_key = None if key is None else clean_id(key, "key")
    scope = ids.scope(principal.tenant)
    found = await services.documents.reads.page(scope, filters, clean_key, listing.page)
    documents, following = listing.cut(found, lambda one: (one.event_at, one.id))
    return DocumentsOut(
        documents=[DocumentOut.from_attributes(document, occurred_at=document.event_at) for document in documents],
        next_cursor=following,
    )


@router.get("/{id}")
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.DOCUMENT))
async def get_document(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    *,
    content: Annotated[bool, Query(description="Whether its text is wanted.")] = True,
) -> DocumentOut:
    """Return one document, whole; its ETag is its version."""
    found = await services.documents.reads.get(principal.tenant, id, with_content=content)
    response.headers["ETag"] = f'"{found.version}"'
    return DocumentOut.from_attributes(found, occurred_at=found.event_at)


@router.get("/{id}/passages")
@allow(Access(Verb.READ, MEMORIES, of=OwnedKind.DOCUMENT))
async def list_passages(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    listing: ByPosition,
) -> PassagesOut:
    """Return a document's passages in order."""
    found = await services.documents.reads.passages(principal.tenant, id, listing.page)
    passages, following = listing.cut(found, lambda one: (one.position,))
    return PassagesOut(passages=[PassageOut.from_attributes(one) for one in passages], next_cursor=following)


@router.delete(
    "/{id}",
    status_code=HTTPStatus.NO_CONTENT,
    responses={409: {"model": ProblemOut, "description": "It is a passage of a document"}, **PRECONDITION_FAILED},
)
@allow(Access(Verb.DELETE, OWN_MEMORIES, of=OwnedKind.DOCUMENT))
async def delete_document(id: UUID, services: ServicesDep, principal: PrincipalDep, condition: IfMatchDep) -> None:
    """Delete a document with all its passages; no search returns them from now on."""
    await services.documents.recorder.delete(principal.tenant, id, condition)
