"""User profiles: in a namespace, and of the whole tenant."""

from collections.abc import Sequence
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from deployments.access import MEMORIES, OWN_MEMORIES, WHOLE_USER, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep, sent_ids
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.profiles import (
    ProfileOut,
    ProfilePatch,
    ProfileRevert,
    ProfileVersionOut,
    ProfileVersionsOut,
    UserIn,
    UserProfilePatch,
    UserProfileRevert,
)
from lamina.core.memories import ProfileVersion
from lamina.core.principals import ScopeField, Verb
from lamina.errors import InvalidInput, OutsideBounds

router = APIRouter(prefix="/v1/profile", route_class=JsonRoute)
of_tenant = APIRouter(prefix="/v1/users/profile", route_class=JsonRoute)


async def user_in(request: Request, user: Annotated[Id | None, Query(description="Person.")] = None) -> UserIn:
    """Read the user of a request without a body."""
    return UserIn(**sent_ids(request, user=user))


UserDep = Annotated[UserIn, Depends(user_in)]


@router.get("", tags=["read"])
@allow(Access(Verb.READ, MEMORIES))
async def get_profile(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    layered: Annotated[
        bool, Query(description="Over the user's profile of the whole tenant, as a context block shows it.")
    ] = False,
) -> ProfileOut:
    """Return a user's profile; one that was never written is empty, with version 0."""
    scope = ids.scope(principal.tenant)
    if scope.user is None:
        raise InvalidInput("user", "is missing; a profile belongs to a user")
    if layered and not principal.reaches_whole(ScopeField.USER):
        raise OutsideBounds(
            "layered", "shows the user's profile of the whole tenant; use a key that is bound to no more than users"
        )
    read = services.reads.profiles.layered if layered else services.reads.profiles.get
    return ProfileOut.from_profile(await read(scope))


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
    return _shown(listing, await services.reads.profiles.versions(scope, listing.page))


@router.post("/revert", tags=["write"], openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, OWN_MEMORIES))
async def revert_profile(body: ProfileRevert, services: ServicesDep, principal: PrincipalDep) -> ProfileOut:
    """Let an earlier state of a user's profile hold again, as a new version."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.USER, scope.user)
    reverted = await services.recorder.revert_profile(scope, body.version, is_verified=is_verified)
    return ProfileOut.from_profile(reverted)


@of_tenant.get("", tags=["read"])
@allow(Access(Verb.READ, WHOLE_USER))
async def get_tenant_profile(services: ServicesDep, principal: PrincipalDep, ids: UserDep) -> ProfileOut:
    """Return the profile that a user has in the whole tenant, beneath those of the workspaces."""
    scope = ids.scope(principal.tenant)
    return ProfileOut.from_profile(await services.reads.profiles.get(scope, is_tenant_wide=True))


@of_tenant.patch("", tags=["write"], openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, WHOLE_USER))
async def patch_tenant_profile(body: UserProfilePatch, services: ServicesDep, principal: PrincipalDep) -> ProfileOut:
    """Merge a patch into the profile that a user has in the whole tenant."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.USER, scope.user)
    patched = await services.recorder.patch_profile(scope, body.patch, is_verified=is_verified, is_tenant_wide=True)
    return ProfileOut.from_profile(patched)


@of_tenant.get("/versions", tags=["read"])
@allow(Access(Verb.READ, WHOLE_USER))
async def list_tenant_versions(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: UserDep,
    listing: Annotated[Listing, paged(int, default=20)],
) -> ProfileVersionsOut:
    """Return the earlier states of that profile, the latest first."""
    scope = ids.scope(principal.tenant)
    return _shown(listing, await services.reads.profiles.versions(scope, listing.page, is_tenant_wide=True))


@of_tenant.post("/revert", tags=["write"], openapi_extra=body_of(mib=1))
@allow(Access(Verb.WRITE, WHOLE_USER))
async def revert_tenant_profile(body: UserProfileRevert, services: ServicesDep, principal: PrincipalDep) -> ProfileOut:
    """Let an earlier state of that profile hold again, as a new version."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.USER, scope.user)
    reverted = await services.recorder.revert_profile(scope, body.version, is_verified=is_verified, is_tenant_wide=True)
    return ProfileOut.from_profile(reverted)


def _shown(listing: Listing, found: Sequence[ProfileVersion]) -> ProfileVersionsOut:
    versions, following = listing.cut(found, lambda one: (one.version,))
    shown = [ProfileVersionOut.from_attributes(item) for item in versions]
    return ProfileVersionsOut(versions=shown, next_cursor=following)
