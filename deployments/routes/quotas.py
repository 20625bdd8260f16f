"""Quotas: show the tenant's, set those of its keys."""

from uuid import UUID

from fastapi import APIRouter

from deployments.access import EVERYWHERE, WHOLE_TENANT, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.quotas import KeyQuotasIn, KeyQuotasOut, QuotasOut
from lamina.core.principals import Verb
from lamina.core.quotas import TENANT, WINDOWS_S

router = APIRouter(prefix="/v1", tags=["keys"], route_class=JsonRoute)


@router.get("/quotas")
@allow(Access(Verb.MAINTAIN, WHOLE_TENANT))
async def show_quotas(services: ServicesDep, principal: PrincipalDep) -> QuotasOut:
    """Show the quotas of the tenant and of the asking key, and what the tenant stores. Needs an admin's key."""
    desk = services.quotas
    return QuotasOut(
        tenant={resource.value: most for resource, most in desk.limits_of(principal.tenant, TENANT).items()},
        key={
            resource.value: most for resource, most in desk.limits_of(principal.tenant, str(principal.key_id)).items()
        },
        stored={resource.value: amount for resource, amount in (await desk.stored(principal.tenant)).items()},
    )


@router.put("/keys/{id}/quotas")
@allow(Access(Verb.KEYS, EVERYWHERE))
async def set_key_quotas(id: UUID, body: KeyQuotasIn, services: ServicesDep, principal: PrincipalDep) -> KeyQuotasOut:
    """Set the quotas of a key in place of those that it had; every router follows within 5 s. Needs an admin's key.

    Those of its tenant hold all the same; they are the operator's to set, with `lamina quotas`.
    """
    key = await services.reads.keys.get(principal, id)
    amounts = {resource: getattr(body, resource.value) for resource in WINDOWS_S}
    await services.quotas.set_own(principal.tenant, str(key.id), amounts)
    limits = services.quotas.limits_of(principal.tenant, str(key.id))
    return KeyQuotasOut(key={resource.value: most for resource, most in limits.items()})
