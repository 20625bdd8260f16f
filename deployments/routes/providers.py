"""Hit rates of the model providers' own caches."""

from datetime import timedelta
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Query

from deployments.access import OWN_AGENT_OF_WORKSPACE, WHOLE_WORKSPACE, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import WriteKeyDep
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.providers import HitRatesOut, InferenceCallsIn, ProviderRatesOut, RecordedOut
from lamina.core.principals import Verb
from lamina.stores.postgres.provider_metrics import InferenceCall
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

MAX_DAYS = 3650
router = APIRouter(prefix="/v1/providers", tags=["providers"], route_class=JsonRoute)


@router.post("/cache-metrics", status_code=HTTPStatus.CREATED, openapi_extra=body_of(mib=8))
@allow(Access(Verb.WRITE, OWN_AGENT_OF_WORKSPACE, items="calls"))
async def record_cache_metrics(
    body: InferenceCallsIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> RecordedOut:
    """Record how much of their prompts calls of models took from the provider's cache."""
    once = write_key.once(principal.tenant, body)
    calls = [InferenceCall(**item.model_dump()) for item in body.calls]
    recorded = await services.caches.providers.record(principal.tenant, calls, utc_now(), once)
    return RecordedOut(recorded=recorded)


@router.get("/cache-metrics")
@allow(Access(Verb.READ, WHOLE_WORKSPACE))
async def list_cache_metrics(
    services: ServicesDep,
    principal: PrincipalDep,
    days: Annotated[int, Query(ge=1, le=MAX_DAYS, description="Over how many days until now.")] = 7,
    workspace: Annotated[Id | None, Query(description="Project. Default: all of them.")] = None,
) -> ProviderRatesOut:
    """Return how much each provider and model took from the provider's cache, the highest mean rate first."""
    project = None if workspace is None else clean_id(workspace, "workspace")
    since = utc_now() - timedelta(days=days)
    rates = await services.caches.providers.rates(principal.tenant, since, project)
    return ProviderRatesOut(days=days, rates=[HitRatesOut.from_attributes(item) for item in rates])
