"""Search, context and the plain reads."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, BackgroundTasks, Depends, Path, Query, Response

from deployments.search_request import contextualised, searched
from deployments.services import ReaderDep, Services, ServicesDep
from lamina.api.notes import NoteOut, NotesOut, NoteVersionOut, NoteVersionsOut
from lamina.api.profiles import ProfileOut
from lamina.api.scope import SCOPE_FIELDS, ScopeIn
from lamina.api.search import ContextIn, ContextOut, SearchIn, SearchOut
from lamina.api.sessions import HistoryOut, SessionMessageOut
from lamina.caching.answer_cache import Served
from lamina.core.memories import Category
from lamina.core.queries import Filters, clean_filters
from lamina.core.scope import DEFAULT_NAMESPACE, DEFAULT_WORKSPACE
from lamina.errors import InvalidInput

router = APIRouter(prefix="/v1", tags=["read"])
MAX_OFFSET = 1_000_000
PageLimit = Annotated[int, Query(ge=1, le=1000, description="Most entries of the page.")]
PageOffset = Annotated[int, Query(ge=0, le=MAX_OFFSET, description="Entries to skip.")]


async def scope_in(
    workspace: Annotated[str, Query(description="Project.")] = DEFAULT_WORKSPACE,
    namespace: Annotated[str, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
    user: Annotated[str | None, Query(description="Person.")] = None,
    agent: Annotated[str | None, Query(description="Agent.")] = None,
    swarm: Annotated[str | None, Query(description="Group of agents.")] = None,
) -> ScopeIn:
    """Return the scope of a request without a body."""
    given = {"workspace": workspace, "namespace": namespace, "user": user, "agent": agent, "swarm": swarm}
    return ScopeIn(**{name: value for name, value in given.items() if value is not None and name in SCOPE_FIELDS})


ScopeDep = Annotated[ScopeIn, Depends(scope_in)]


@router.post("/search", response_model=SearchOut)
async def search(body: SearchIn, services: ServicesDep, credential: ReaderDep, afterwards: BackgroundTasks) -> Response:
    """Search all tiers at once and return one fused ranking.

    A source that fails or runs out of time is named in `degraded`; the others answer.
    """
    return _sent(await searched(body, body.scope(credential.tenant), services), services, afterwards)


@router.post("/context", response_model=ContextOut)
async def context(
    body: ContextIn, services: ServicesDep, credential: ReaderDep, afterwards: BackgroundTasks
) -> Response:
    """Return what is worth knowing as a block ready for a prompt, within its budget of tokens."""
    return _sent(await contextualised(body, body.scope(credential.tenant), services), services, afterwards)


def _sent(served: Served, services: Services, afterwards: BackgroundTasks) -> Response:
    afterwards.add_task(services.count, served.computed.found)
    return Response(served.body(), media_type="application/json")


@router.get("/notes")
async def list_notes(
    services: ServicesDep,
    credential: ReaderDep,
    ids: ScopeDep,
    category: Annotated[Category | None, Query(description="Only this category.")] = None,
    tag: Annotated[list[str] | None, Query(description="Only notes with all of these tags.")] = None,
    since: Annotated[datetime | None, Query(description="Only events at or after this time.")] = None,
    until: Annotated[datetime | None, Query(description="Only events before this time.")] = None,
    limit: PageLimit = 100,
    offset: PageOffset = 0,
) -> NotesOut:
    """List the notes of a scope, the latest event first."""
    filters = clean_filters(Filters(tuple(tag or ()), since, until, 0.0))
    scope = ids.scope(credential.tenant)
    found = await services.reads.notes.page(scope, filters, category, limit=limit, offset=offset)
    return NotesOut(notes=[NoteOut.from_stored(note) for note in found])


@router.get("/notes/{id}")
async def get_note(id: UUID, services: ServicesDep, credential: ReaderDep) -> NoteOut:  # noqa: A002
    """Return one note, whole."""
    return NoteOut.from_stored(await services.reads.notes.get(credential.tenant, id))


@router.get("/notes/{id}/versions")
async def note_versions(id: UUID, services: ServicesDep, credential: ReaderDep) -> NoteVersionsOut:  # noqa: A002
    """Return every state the note was in, oldest first."""
    versions = await services.reads.notes.history(credential.tenant, id)
    return NoteVersionsOut(versions=[NoteVersionOut.from_attributes(version) for version in versions])


@router.get("/sessions/{session:path}/messages")
async def session_messages(
    session: Annotated[str, Path(description="The conversation.")],
    services: ServicesDep,
    credential: ReaderDep,
    ids: ScopeDep,
    limit: PageLimit = 100,
    offset: PageOffset = 0,
    include_compacted: Annotated[bool, Query(description="Also those that a summary stands for.")] = False,
) -> HistoryOut:
    """Return a session's messages in order."""
    scope = ids.scope(credential.tenant).narrowed(session=session)
    found = await services.reads.messages.history(
        scope, limit=limit, offset=offset, include_compacted=include_compacted
    )
    return HistoryOut(messages=[SessionMessageOut.from_attributes(item, item.message) for item in found])


@router.get("/profile")
async def get_profile(services: ServicesDep, credential: ReaderDep, ids: ScopeDep) -> ProfileOut:
    """Return a user's profile; one that was never written is empty, with version 0."""
    scope = ids.scope(credential.tenant)
    if scope.user is None:
        raise InvalidInput("user", "is missing; a profile belongs to a user")
    return ProfileOut.from_attributes(await services.reads.profiles.get(scope))
