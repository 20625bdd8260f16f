"""Files of a workspace: put, read, list and delete by path; search finds their passages with their lines."""

import re
from collections.abc import Callable
from dataclasses import replace
from http import HTTPStatus
from typing import Annotated, Any
from urllib.parse import unquote

from fastapi import APIRouter, Depends, Path, Query, Request, Response
from starlette.routing import Match
from starlette.types import Scope

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PRECONDITION_FAILED, IfMatch, IfNoneMatch, sent_ids
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from deployments.write_metrics import measured_write
from lamina.api.fields import Id
from lamina.api.files import MAX_PATH_CHARS, FileIn, FileOut, FilePrefix, FilesOut
from lamina.api.scope import ScopeIn
from lamina.core.files import MAX_MIRROR_CHARS, StoredFile, clean_path
from lamina.core.preconditions import Precondition, read_etags
from lamina.core.principals import Principal, Verb
from lamina.core.scope import DEFAULT_NAMESPACE
from lamina.core.tiers import Tier
from lamina.errors import OutsideBounds
from lamina.ingest.files import SentFile
from lamina.text.hygiene import clean, composed

_QUOTED_SLASH = re.compile("%2f", re.IGNORECASE)
_NUL = "%00"
_WORKSPACE = re.compile(r"\A(.*?/v1/workspaces/)([^/]+)(/files.*)")


class _FileRoute(JsonRoute):
    """A route below a workspace whose name may have slashes, quoted in the path: read as sent, they part nothing."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Return whether it serves the request, with the ids of its path."""
        sent = _WORKSPACE.fullmatch(scope.get("raw_path", b"").decode("latin-1"))
        if sent is None or _NUL in sent[2] or not _QUOTED_SLASH.search(sent[2]):
            return super().matches(scope)
        # No id has a NUL, which stands for a slash until the path is divided.
        path = unquote(f"{sent[1]}{_QUOTED_SLASH.sub(_NUL, sent[2])}{sent[3]}")
        match, found = super().matches({**scope, "path": path})
        if "path_params" in found:
            found["path_params"]["workspace"] = found["path_params"]["workspace"].replace("\0", "/")
        return match, found


router = APIRouter(prefix="/v1/workspaces/{workspace}/files", tags=["files"], route_class=_FileRoute)
_NOT_NEW: dict[int | str, dict[str, Any]] = {200: {"model": FileOut, "description": "Replaced or existed"}}
_UNCHANGED: dict[int | str, dict[str, Any]] = {304: {"description": "It still has an ETag of If-None-Match"}}


async def file_scope(
    request: Request,
    workspace: Annotated[Id, Path(description="Project.")],
    namespace: Annotated[Id, Query(description="Subdivision of the workspace.")] = DEFAULT_NAMESPACE,
    user: Annotated[Id | None, Query(description="Person; without one, the files that all share.")] = None,
    agent: Annotated[Id | None, Query(description="Agent that writes.")] = None,
) -> ScopeIn:
    """Read the ids of a request that names its workspace in the path."""
    return ScopeIn(workspace=workspace, **sent_ids(request, namespace=namespace, user=user, agent=agent))


FileScopeDep = Annotated[ScopeIn, Depends(file_scope)]
FilePath = Annotated[
    str, Path(max_length=MAX_PATH_CHARS, description="Path of the file within the workspace, parts separated by /.")
]


@router.put(
    "/{path:path}",
    status_code=HTTPStatus.CREATED,
    responses=_NOT_NEW | PRECONDITION_FAILED,
    openapi_extra=body_of(mib=32),
)
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def put_file(
    body: FileIn,
    path: FilePath,
    services: ServicesDep,
    principal: PrincipalDep,
    ids: FileScopeDep,
    response: Response,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> FileOut:
    """Store a file in place of the one of its path (200), or as a new one.

    It is found within milliseconds; the passages of the text before leave every index.
    """
    scope = ids.scope(principal.tenant)
    mirror = body.mirror if "mirror" in body.model_fields_set else None
    sent = SentFile(path, body.content, is_always=body.always, mirror=mirror)
    condition = Precondition(read_etags(if_match, "If-Match"), read_etags(if_none_match, "If-None-Match", weak=True))
    with measured_write(services.meter, Tier.DOCUMENTS):
        stored, status = await services.files.recorder.put(
            scope, sent, condition, witness=principal.witness(scope.agent), allowed=_allowed(principal, path)
        )
    response.status_code = HTTPStatus.CREATED if status == "created" else HTTPStatus.OK
    return _answer(stored, response)


@router.get("")
@allow(Access(Verb.READ, MEMORIES))
async def list_files(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: FileScopeDep,
    listing: Annotated[Listing, paged(str)],
    prefix: Annotated[FilePrefix, Query(description="Beginning of their paths, such as `docs/`.")] = "",
    mirror: Annotated[
        str | None, Query(max_length=MAX_MIRROR_CHARS, description="Only files that mirror this folder.")
    ] = None,
) -> FilesOut:
    """List the files of a workspace by the order of their paths, without their texts."""
    begin = composed(clean(prefix, "prefix"))
    wanted = None if mirror is None else clean(mirror, "mirror")
    scope = ids.scope(principal.tenant)
    found = await services.files.reads.page(scope, begin, listing.page, mirror=wanted)
    files, following = listing.cut(found, lambda file: (file.path,))
    shown = [FileOut.from_attributes(file, always=file.is_always) for file in files]
    return FilesOut(files=shown, next_cursor=following)


@router.get("/{path:path}", response_model=FileOut, responses=_UNCHANGED)
@allow(Access(Verb.READ, MEMORIES))
async def get_file(
    path: FilePath,
    services: ServicesDep,
    principal: PrincipalDep,
    ids: FileScopeDep,
    response: Response,
    version: Annotated[int | None, Query(ge=1, le=2**31 - 1, description="An earlier text, while it is kept.")] = None,
    if_none_match: IfNoneMatch = None,
) -> FileOut | Response:
    """Return a file with its text, or 304 where the sender has it already."""
    scope, name = ids.scope(principal.tenant), clean_path(path)
    known = read_etags(if_none_match, "If-None-Match", weak=True) or frozenset()
    stored = await services.files.reads.get(scope, name)
    if version not in {None, stored.version}:
        content, etag = await services.files.reads.version(scope, name, version)
        stored = replace(stored, content=content, etag=etag, size=len(content.encode()), version=version)
    if known & {"*", stored.etag}:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers={"ETag": f'"{stored.etag}"'})
    return _answer(stored, response)


@router.delete("/{path:path}", status_code=HTTPStatus.NO_CONTENT, responses=PRECONDITION_FAILED)
@allow(Access(Verb.DELETE, OWN_MEMORIES))
async def delete_file(
    path: FilePath, services: ServicesDep, principal: PrincipalDep, ids: FileScopeDep, if_match: IfMatch = None
) -> None:
    """Delete a file with its earlier texts; no search returns its passages from now on."""
    condition = Precondition(read_etags(if_match, "If-Match"))
    scope = ids.scope(principal.tenant)
    await services.files.recorder.delete(scope, path, condition, allowed=_allowed(principal, path))


def _allowed(principal: Principal, path: str) -> Callable[[str | None], None]:
    """Return a check that refuses to change files of agents outside of the key's bound."""

    def check(agent: str | None) -> None:
        agents = principal.bounds.agents
        if agents and agent not in agents:
            raise OutsideBounds("path", f"is {path}, a file of {agent or 'no agent'}; use another path, or another key")

    return check


def _answer(stored: StoredFile, response: Response) -> FileOut:
    response.headers["ETag"] = f'"{stored.etag}"'
    return FileOut.from_attributes(stored, always=stored.is_always)
