"""The erasure of a user."""

from typing import Annotated

from fastapi import APIRouter, Query

from deployments.access import WHOLE_USER, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.users import ReceiptOut
from lamina.core.principals import Verb
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)


@router.delete("/users")
@allow(Access(Verb.ERASE, WHOLE_USER))
async def erase_user(
    user: Annotated[Id, Query(description="Whose memories.")], services: ServicesDep, principal: PrincipalDep
) -> ReceiptOut:
    """Erase everything that belongs to a user or was made from it, in all workspaces of the key's tenant.

    It leaves every table, index, cache and archive, and cannot be undone. Needs an admin's key.
    """
    receipt = await services.eraser.erase(principal.tenant, user, utc_now())
    return ReceiptOut.from_attributes(receipt, user=user, complete=receipt.is_complete)
