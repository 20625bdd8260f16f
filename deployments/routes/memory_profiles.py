"""Memory profiles: how each agent wants to remember."""

from dataclasses import replace
from http import HTTPStatus

from fastapi import APIRouter

from deployments.access import AGENT_OF_WORKSPACE, OWN_AGENT_OF_WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.search_request import defaults
from deployments.services import PrincipalDep, Services, ServicesDep
from lamina.api.memory_profiles import MemoryProfileIn, MemoryProfileOut
from lamina.core.memory_profiles import MemoryProfile, Purpose, SearchDefaults
from lamina.core.principals import ScopeField, Verb
from lamina.core.scope import Scope
from lamina.errors import InvalidInput
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["memory profiles"], route_class=JsonRoute)


@router.get("/memory-profile")
@allow(Access(Verb.READ, AGENT_OF_WORKSPACE))
async def get_memory_profile(services: ServicesDep, principal: PrincipalDep, ids: ScopeDep) -> MemoryProfileOut:
    """Return how an agent remembers in a workspace; the defaults, never written, if it has no profile."""
    scope = ids.scope(principal.tenant)
    profile = await services.reads.memory_profiles.get(scope)
    if profile is None:
        configured = await _defaults(services, scope)
        profile = MemoryProfile(configured.tiers, configured.limit, configured.min_score, is_verified=True)
    return MemoryProfileOut.from_profile(_agent(scope), profile)


@router.put("/memory-profile")
@allow(Access(Verb.WRITE, OWN_AGENT_OF_WORKSPACE))
async def put_memory_profile(body: MemoryProfileIn, services: ServicesDep, principal: PrincipalDep) -> MemoryProfileOut:
    """Set how an agent remembers in a workspace; searches and contexts that name it follow from now on."""
    scope = body.scope(principal.tenant)
    is_verified = principal.speaks_for(ScopeField.AGENT, scope.agent)
    profile = replace(body.memory_profile(await _defaults(services, scope)), is_verified=is_verified)
    stored = await services.reads.memory_profiles.put(scope, profile, utc_now())
    return MemoryProfileOut.from_profile(_agent(scope), stored)


@router.delete("/memory-profile", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, OWN_AGENT_OF_WORKSPACE))
async def delete_memory_profile(services: ServicesDep, principal: PrincipalDep, ids: ScopeDep) -> None:
    """Give an agent the defaults again."""
    await services.reads.memory_profiles.delete(ids.scope(principal.tenant))


async def _defaults(services: Services, scope: Scope) -> SearchDefaults:
    chosen = await services.reads.workspaces.get(scope.tenant, scope.workspace)
    return defaults(services.settings, Purpose.CONTEXT, chosen)


def _agent(scope: Scope) -> str:
    if scope.agent is None:
        raise InvalidInput("agent", "is missing; a memory profile belongs to an agent")
    return scope.agent
