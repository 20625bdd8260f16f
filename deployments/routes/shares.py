"""Shares between workspaces."""

from http import HTTPStatus
from uuid import UUID

from fastapi import APIRouter

from deployments.access import ALL_NAMESPACES, WHOLE_PLACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WorkspaceDep, WriteKeyDep
from deployments.routes.paging import ByTime
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.shares import ShareIn, ShareOut, SharesOut
from lamina.core.memories import new_id
from lamina.core.principals import ScopeField, Verb
from lamina.core.sharing import clean_share
from lamina.stores.postgres.owners import OwnedKind
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["share"], route_class=JsonRoute)


@router.post("/shares", status_code=HTTPStatus.CREATED)
@allow(Access(Verb.SHARE, WHOLE_PLACE, beside={"to_workspace": ScopeField.WORKSPACE}))
async def share(body: ShareIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep) -> ShareOut:
    """Let another workspace search a segment of this one; it can change nothing here.

    Memories that belong to a user are never shared. The same share again is renewed: its expiry and
    label are replaced. Needs an admin's key.
    """
    now = utc_now()
    cleaned = clean_share(body.share(new_id(), now))
    once = write_key.once_for_request(principal.tenant, {"share": body.model_dump(mode="json")})
    stored = await services.shares.put(principal.tenant, cleaned, once)
    return ShareOut.from_share(await services.shares.get(principal.tenant, stored), now)


@router.get("/shares")
@allow(Access(Verb.READ, ALL_NAMESPACES))
async def list_shares(
    services: ServicesDep,
    principal: PrincipalDep,
    whose: WorkspaceDep,
    listing: ByTime,
) -> SharesOut:
    """List the shares of a workspace in both directions, the latest first."""
    workspace = clean_id(whose.workspace, "workspace")
    found = await services.shares.page(principal.tenant, workspace, listing.page)
    shares, following = listing.cut(found, lambda one: (one.created_at, one.id))
    return SharesOut.from_shares(shares, workspace, utc_now(), following)


@router.delete("/shares/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.SHARE, WHOLE_PLACE, of=OwnedKind.SHARE))
async def revoke_share(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Revoke a share; every search that begins afterwards notices. Needs an admin's key."""
    await services.shares.revoke(principal.tenant, id, utc_now())
