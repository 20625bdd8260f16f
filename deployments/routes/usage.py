"""Use of the service by the tenant, for bills."""

from datetime import date, timedelta
from typing import Annotated

from fastapi import APIRouter, Query
from pydantic import Field

from deployments.access import WHOLE_TENANT, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.usage import UsageOut, UsedDayOut
from lamina.core.principals import Verb
from lamina.core.usage import Use
from lamina.errors import InvalidInput
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/usage", tags=["operations"], route_class=JsonRoute)
Day = Annotated[date, Field(json_schema_extra={"maxLength": 10})]
USUAL_DAYS, MOST_DAYS = 31, 400
EARLIEST = date(1970, 1, 1)


@router.get("")
@allow(Access(Verb.MAINTAIN, WHOLE_TENANT))
async def show_usage(
    services: ServicesDep,
    principal: PrincipalDep,
    since: Annotated[Day | None, Query(description="First day, UTC. Default: 31 days before until.")] = None,
    until: Annotated[Day | None, Query(description="Day after the last one. Default: tomorrow.")] = None,
) -> UsageOut:
    """Show what the tenant used by day: requests, searches, turns, tokens and bytes. Needs an admin's key.

    What was used a moment ago follows within seconds.
    """
    if until is not None and until < EARLIEST + timedelta(days=USUAL_DAYS):
        raise InvalidInput("until", f"is {until}, before anything was counted; send a day of this century")
    after = until or utc_now().date() + timedelta(days=1)
    first = since or after - timedelta(days=USUAL_DAYS)
    if not timedelta() < after - first <= timedelta(days=MOST_DAYS):
        if until is None:
            raise InvalidInput("since", f"is {first}, which is not 1 to {MOST_DAYS} days before tomorrow; name until")
        raise InvalidInput("until", f"is {after}, which is not 1 to {MOST_DAYS} days after since ({first})")
    await services.usage.flush()
    days = await services.usage_days.days(principal.tenant, first, after)
    stored = await services.quotas.stored(principal.tenant)
    return UsageOut(
        days=[UsedDayOut.model_validate({"day": used.day, **used.amounts}) for used in days],
        total={use.value: sum(used.amounts[use] for used in days) for use in Use},
        stored={resource.value: amount for resource, amount in stored.items()},
    )
