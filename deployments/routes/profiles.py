"""User profiles."""

from fastapi import APIRouter

from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.services import ReaderDep, ServicesDep, WriterDep
from lamina.api.profiles import ProfileOut, ProfilePatch
from lamina.errors import InvalidInput

router = APIRouter(prefix="/v1/profile", route_class=JsonRoute)


@router.get("", tags=["read"])
async def get_profile(services: ServicesDep, credential: ReaderDep, ids: ScopeDep) -> ProfileOut:
    """Return a user's profile; one that was never written is empty, with version 0."""
    scope = ids.scope(credential.tenant)
    if scope.user is None:
        raise InvalidInput("user", "is missing; a profile belongs to a user")
    return ProfileOut.from_attributes(await services.reads.profiles.get(scope))


@router.patch("", tags=["write"])
async def patch_profile(body: ProfilePatch, services: ServicesDep, credential: WriterDep) -> ProfileOut:
    """Merge a patch into a user's profile."""
    profile = await services.recorder.patch_profile(body.scope(credential.tenant), body.patch)
    return ProfileOut.from_attributes(profile)
