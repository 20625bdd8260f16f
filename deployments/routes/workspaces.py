"""Settings of workspaces."""

from typing import Annotated

from fastapi import APIRouter, Path

from deployments.access import ALL_NAMESPACES, WHOLE_WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.workspaces import WorkspaceSettingsIn, WorkspaceSettingsOut
from lamina.core.principals import Verb
from lamina.core.tiers import SEARCHED_TIERS
from lamina.errors import InvalidInput
from lamina.policies.ranking.call_weights import searched_tiers
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/workspaces", tags=["workspaces"], route_class=JsonRoute)
WorkspaceName = Annotated[Id, Path(description="Project.")]


@router.get("/{workspace:path}/settings")
@allow(Access(Verb.READ, ALL_NAMESPACES))
async def get_workspace_settings(
    services: ServicesDep, principal: PrincipalDep, workspace: WorkspaceName
) -> WorkspaceSettingsOut:
    """Return the settings of a workspace; null where the installation's hold."""
    name = clean_id(workspace, "workspace")
    return WorkspaceSettingsOut.from_settings(name, await services.reads.workspaces.get(principal.tenant, name))


@router.put("/{workspace:path}/settings")
@allow(Access(Verb.MAINTAIN, WHOLE_WORKSPACE))
async def put_workspace_settings(
    body: WorkspaceSettingsIn, services: ServicesDep, principal: PrincipalDep, workspace: WorkspaceName
) -> WorkspaceSettingsOut:
    """Set a workspace's defaults for requests and agents that say nothing else. Needs an admin's key."""
    name = clean_id(workspace, "workspace")
    settings = body.settings()
    if not searched_tiers(settings.tiers or SEARCHED_TIERS, settings.weights):
        raise InvalidInput("weights", "leave no source of the searched tiers a weight above 0")
    stored = await services.reads.workspaces.put(principal.tenant, name, settings, utc_now())
    return WorkspaceSettingsOut.from_settings(name, stored)
