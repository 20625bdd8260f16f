"""The erasure of users."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, Response
from pydantic import AwareDatetime

from deployments.access import EVERYWHERE, WHOLE_USER, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.operations import tell_progress
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.users import ErasureOut, ErasuresOut, ReceiptKeyOut, ReceiptKeysOut
from lamina.core.principals import Verb
from lamina.stores.postgres.owners import OwnedKind
from lamina.text.hygiene import clean_id

router = APIRouter(prefix="/v1", tags=["operations"], route_class=JsonRoute)


@router.delete("/users", responses={HTTPStatus.ACCEPTED: {"model": ErasureOut, "description": "It goes on."}})
@allow(Access(Verb.ERASE, WHOLE_USER))
async def erase_user(
    user: Annotated[Id, Query(description="Whose memories.")],
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
) -> ErasureOut:
    """Erase everything that belongs to a user or was made from it, in all workspaces of the key's tenant.

    It leaves every table, index, cache, archive and file, and cannot be undone. 200: it is complete, with its signed
    receipt; 202: it goes on, and `Location` names where to ask. Needs an admin's key.
    """
    erasure = await services.erasures.order(principal.tenant, user)
    tell_progress(erasure, response)
    return ErasureOut.from_erasure(erasure, user)


@router.get("/erasures")
@allow(Access(Verb.ERASE, WHOLE_USER))
async def list_erasures(
    services: ServicesDep,
    principal: PrincipalDep,
    listing: Annotated[Listing, paged(AwareDatetime, UUID, default=20, most=200)],
    user: Annotated[Id | None, Query(description="Only this user's.")] = None,
) -> ErasuresOut:
    """List the latest erasures of the key's tenant. Needs an admin's key."""
    whose = None if user is None else clean_id(user, "user")
    found = await services.erasures.table.latest(principal.tenant, listing.page, whose)
    erasures, following = listing.cut(found, lambda one: (one.requested_at, one.id))
    return ErasuresOut(erasures=[ErasureOut.from_erasure(erasure) for erasure in erasures], next_cursor=following)


@router.get("/erasures/keys")
@allow(Access(Verb.ERASE, EVERYWHERE))
async def list_receipt_keys(services: ServicesDep, principal: PrincipalDep) -> ReceiptKeysOut:  # noqa: ARG001 - the keys are everybody's
    """List the public keys that check receipts. Needs an admin's key."""
    return ReceiptKeysOut(keys=[ReceiptKeyOut.from_attributes(key) for key in await services.erasures.table.keys()])


@router.get("/erasures/{id}")
@allow(Access(Verb.ERASE, WHOLE_USER, of=OwnedKind.ERASURE))
async def show_erasure(id: UUID, services: ServicesDep, principal: PrincipalDep) -> ErasureOut:
    """Report on an erasure: its progress, or its receipt. Needs an admin's key."""
    return ErasureOut.from_erasure(await services.erasures.table.get(principal.tenant, id))
