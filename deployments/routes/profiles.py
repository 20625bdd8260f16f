"""User profiles."""

from typing import Annotated

from fastapi import APIRouter

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.profiles import ProfileOut, ProfilePatch, ProfileRevert, ProfileVersionOut, ProfileVersionsOut
from lamina.core.principals import ScopeField, Verb
from lamina.errors import InvalidInput

router = APIRouter(prefix="/v1/profile", route_class=JsonRoute)


@router.get("", tags=["read"])
@allow(Access(Verb.READ, MEMORIES))
async def get_profile(services: ServicesDep, principal: PrincipalDep, ids: ScopeDep) -> ProfileOut:
    """Return a user's profile; one that was never written is empty, with version 0."""
    scope = ids.scope(principal.tenant)
    if scope.user is None:
        raise InvalidInput("user", "is missing; a profile belongs to a user")
    return ProfileOut.from_profile(await services.reads.profiles.get(scope))


@router.patch("", tags=["write"], openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def patch_profile(body: ProfilePatch, services: ServicesDep, principal: PrincipalDep) -> ProfileOut:
    """Merge a patch into a user's profile."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.USER, scope.user)
    return ProfileOut.from_profile(await services.recorder.patch_profile(scope, body.patch, is_verified=is_verified))


@router.get("/versions", tags=["read"])
@allow(Access(Verb.READ, MEMORIES))
async def list_versions(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: Annotated[Listing, paged(int, default=20)],
) -> ProfileVersionsOut:
    """Return the earlier states of a user's profile, the latest first."""
    scope = ids.scope(principal.tenant)
    if scope.user is None:
        raise InvalidInput("user", "is missing; a profile belongs to a user")
    found = await services.reads.profiles.versions(scope, listing.page)
    versions, following = listing.cut(found, lambda one: (one.version,))
    shown = [ProfileVersionOut.from_attributes(item) for item in versions]
    return ProfileVersionsOut(versions=shown, next_cursor=following)


@router.post("/revert", tags=["write"], openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def revert_profile(body: ProfileRevert, services: ServicesDep, principal: PrincipalDep) -> ProfileOut:
    """Let an earlier state of a user's profile hold again, as a new version."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.USER, scope.user)
    reverted = await services.recorder.revert_profile(scope, body.version, is_verified=is_verified)
    return ProfileOut.from_profile(reverted)
