"""API keys: make, list, rotate and revoke them."""

from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from deployments.access import EVERYWHERE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.paging import ByTime
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.keys import KeyIn, KeyOut, KeysOut, SecretOut
from lamina.core.principals import Verb, new_principal
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/keys", tags=["keys"], route_class=JsonRoute)


@router.post("", status_code=HTTPStatus.CREATED)
@allow(Access(Verb.KEYS, EVERYWHERE))
async def make_key(body: KeyIn, services: ServicesDep, principal: PrincipalDep) -> SecretOut:
    """Make a key that reaches no further than the one that makes it. Needs an admin's key.

    The answer holds its secret, which is stored hashed and cannot be shown again.
    """
    now = utc_now()
    wanted = new_principal(
        principal.tenant, body.role, now, verbs=body.verbs or (), bounds=body.bounds(), expires_at=body.expires_at
    )
    made = await services.reads.keys.create(principal, wanted, body.name)
    return SecretOut.from_info(made.info, now, key=made.key)


@router.get("")
@allow(Access(Verb.KEYS, EVERYWHERE))
async def list_keys(services: ServicesDep, principal: PrincipalDep, listing: ByTime) -> KeysOut:
    """List the tenant's keys within the bounds of the asking one, the oldest first. Needs an admin's key."""
    found = await services.reads.keys.page(principal, listing.page)
    keys, following = listing.cut(found, lambda one: (one.created_at, one.id))
    return KeysOut(keys=[KeyOut.from_info(info, utc_now()) for info in keys], next_cursor=following)


@router.get("/{id}")
@allow(Access(Verb.KEYS, EVERYWHERE))
async def show_key(id: UUID, services: ServicesDep, principal: PrincipalDep) -> KeyOut:
    """Show a key, without its secret. Needs an admin's key."""
    return KeyOut.from_info(await services.reads.keys.get(principal, id), utc_now())


@router.post("/{id}/rotate")
@allow(Access(Verb.KEYS, EVERYWHERE))
async def rotate_key(id: UUID, services: ServicesDep, principal: PrincipalDep) -> SecretOut:
    """Give a key another secret; within 5 s no replica takes the one before. Needs an admin's key."""
    made = await services.reads.keys.rotate(principal, id)
    return SecretOut.from_info(made.info, utc_now(), key=made.key)


@router.delete("/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.KEYS, EVERYWHERE))
async def revoke_key(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    last: Annotated[
        bool, Query(description="Revoke it even if no key is left that can make any other of the tenant.")
    ] = False,
) -> None:
    """Revoke a key; within 5 s no replica takes it. Needs an admin's key."""
    await services.reads.keys.revoke(principal, id, even_last=last)
