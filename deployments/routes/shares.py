"""Shares between workspaces."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PageLimit, PageOffset, WriteKeyDep
from deployments.services import AdminDep, ReaderDep, ServicesDep
from lamina.api.shares import ShareIn, ShareOut, SharesOut
from lamina.core.memories import new_id
from lamina.core.scope import DEFAULT_WORKSPACE
from lamina.core.sharing import clean_share
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["share"], route_class=JsonRoute)


@router.post("/shares", status_code=HTTPStatus.CREATED)
async def share(body: ShareIn, services: ServicesDep, credential: AdminDep, write_key: WriteKeyDep) -> ShareOut:
    """Let another workspace search a segment of this one; it can change nothing here.

    Memories that belong to a user are never shared. The same share again is renewed: its expiry and
    label are replaced. Needs an admin's key.
    """
    now = utc_now()
    cleaned = clean_share(body.share(new_id(), now), now)
    once = write_key.once_for_request(credential.tenant, {"share": body.model_dump(mode="json")})
    stored = await services.shares.put(credential.tenant, cleaned, once)
    return ShareOut.from_share(await services.shares.get(credential.tenant, stored), now)


@router.get("/shares")
async def list_shares(
    services: ServicesDep,
    credential: ReaderDep,
    workspace: Annotated[str, Query(description="Project.")] = DEFAULT_WORKSPACE,
    limit: PageLimit = 100,
    offset: PageOffset = 0,
) -> SharesOut:
    """List the shares of a workspace in both directions, the latest first."""
    workspace = clean_id(workspace, "workspace")
    found = await services.shares.page(credential.tenant, workspace, limit=limit, offset=offset)
    return SharesOut.from_shares(found, workspace, utc_now())


@router.delete("/shares/{id}", status_code=HTTPStatus.NO_CONTENT)
async def revoke_share(id: UUID, services: ServicesDep, credential: AdminDep) -> None:
    """Revoke a share; every search that begins afterwards notices. Needs an admin's key."""
    await services.shares.revoke(credential.tenant, id, utc_now())
