"""Lists of workspaces, namespaces, sessions, users and agents."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import AwareDatetime

from deployments.access import AGENT, ALL_USERS, COMMON, LIMITED, MEMORIES, NAMESPACE, PLACE, WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import PlaceDep, ScopeDep, WorkspaceDep
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.directories import (
    AgentOut,
    AgentsOut,
    NamespaceOut,
    NamespacesOut,
    SessionOut,
    SessionsOut,
    UserOut,
    UsersOut,
    WorkspaceOut,
    WorkspacesOut,
)
from lamina.core.principals import Verb
from lamina.core.scope import Scope
from lamina.text.hygiene import clean_id

router = APIRouter(prefix="/v1", tags=["read"], route_class=JsonRoute)
# Each entry counts rows: there are fewer to a page than elsewhere.
DEFAULT, MOST = 20, 100
ByName = Annotated[Listing, paged(str, default=DEFAULT, most=MOST)]


@router.get("/workspaces")
@allow(Access(Verb.READ, {WORKSPACE: COMMON, NAMESPACE: COMMON, AGENT: COMMON}))
async def list_workspaces(services: ServicesDep, principal: PrincipalDep, listing: ByName) -> WorkspacesOut:
    """List the tenant's workspaces within the key's bounds, by name, with counts and sizes."""
    bounds = principal.bounds
    found = await services.reads.directory.workspaces(
        principal.tenant, listing.page, workspaces=bounds.workspaces, namespaces=bounds.namespaces
    )
    rows, following = listing.cut(found, lambda row: (row["workspace"],))
    return WorkspacesOut(workspaces=[WorkspaceOut(**row) for row in rows], next_cursor=following)


@router.get("/namespaces")
@allow(Access(Verb.READ, {WORKSPACE: LIMITED, NAMESPACE: COMMON, AGENT: COMMON}))
async def list_namespaces(
    services: ServicesDep, principal: PrincipalDep, whose: WorkspaceDep, listing: ByName
) -> NamespacesOut:
    """List a workspace's namespaces within the key's bounds, by name, with counts and sizes."""
    workspace = clean_id(whose.workspace, "workspace")
    found = await services.reads.directory.namespaces(
        principal.tenant, workspace, listing.page, namespaces=principal.bounds.namespaces
    )
    rows, following = listing.cut(found, lambda row: (row["namespace"],))
    return NamespacesOut(namespaces=[NamespaceOut(**row) for row in rows], next_cursor=following)


@router.get("/sessions")
@allow(Access(Verb.READ, MEMORIES))
async def list_sessions(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: Annotated[Listing, paged(AwareDatetime, str, default=DEFAULT, most=MOST)],
) -> SessionsOut:
    """List the sessions of a namespace, the one that was begun last first; of a user: those with messages to read."""
    found = await services.reads.directory.sessions(ids.scope(principal.tenant), listing.page)
    rows, following = listing.cut(found, lambda row: (row["created_at"], row["session_id"]))
    sessions = [SessionOut(session=row["session_id"], **row) for row in rows]
    return SessionsOut(sessions=sessions, next_cursor=following)


@router.get("/users")
@allow(Access(Verb.READ, PLACE))
async def list_users(services: ServicesDep, principal: PrincipalDep, place: PlaceDep, listing: ByName) -> UsersOut:
    """List the users of a namespace who have memories there, by their ids; those alone that the key is bound to."""
    scope = Scope(principal.tenant, place.workspace, place.namespace)
    found = await services.reads.directory.users(scope, listing.page, users=principal.bounds.users)
    rows, following = listing.cut(found, lambda row: (row["name"],))
    return UsersOut(users=[UserOut(user=row["name"], **row) for row in rows], next_cursor=following)


@router.get("/agents")
@allow(Access(Verb.READ, ALL_USERS))
async def list_agents(services: ServicesDep, principal: PrincipalDep, place: PlaceDep, listing: ByName) -> AgentsOut:
    """List the agents that wrote in a namespace, or have a memory profile in its workspace, by their ids."""
    scope = Scope(principal.tenant, place.workspace, place.namespace)
    found = await services.reads.directory.agents(scope, listing.page)
    rows, following = listing.cut(found, lambda row: (row["name"],))
    return AgentsOut(agents=[AgentOut(agent=row["name"], **row) for row in rows], next_cursor=following)
