"""Webhooks: addresses that events are sent to, their secrets and their dead letters."""

import secrets
from dataclasses import replace
from datetime import timedelta
from http import HTTPStatus
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query
from pydantic import AwareDatetime

from deployments.access import WHOLE_WORKSPACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.paging import Listing, paged
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.fields import Id
from lamina.api.webhooks import (
    DeadLettersOut,
    RetryIn,
    RetryOut,
    WebhookIn,
    WebhookOut,
    WebhookSecretOut,
    WebhooksOut,
)
from lamina.core.memories import new_id
from lamina.core.principals import Verb
from lamina.core.webhooks import SECRET_BYTES, Webhook, clean_url, new_secret
from lamina.stores.postgres.owners import OwnedKind
from lamina.text.hygiene import clean_id
from lamina.wiring.stores import utc_now

router = APIRouter(prefix="/v1/webhooks", tags=["share"], route_class=JsonRoute)
NEWEST = 2**62


@router.post("", status_code=HTTPStatus.CREATED)
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE))
async def make_webhook(body: WebhookIn, services: ServicesDep, principal: PrincipalDep) -> WebhookSecretOut:
    """Have the events from now on sent to an address. Needs an admin's key.

    The answer holds the secret, which cannot be shown again.
    """
    chosen = services.settings.webhooks
    secret = new_secret(secrets.token_bytes(SECRET_BYTES))
    webhook = Webhook(
        id=new_id(),
        tenant=principal.tenant,
        url=clean_url(body.url, allows_http=chosen.allow_http, allows_private=chosen.allow_private),
        workspace=None if body.workspace is None else clean_id(body.workspace, "workspace"),
        kinds=frozenset(body.kinds),
        created_at=utc_now(),
        secrets=(secret,),
    )
    await services.events.webhooks.add(webhook, most=chosen.most)
    stored = await services.events.webhooks.get(principal.tenant, webhook.id)
    return WebhookSecretOut.from_webhook(stored, secret=secret)


@router.get("")
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE))
async def list_webhooks(
    services: ServicesDep,
    principal: PrincipalDep,
    listing: Annotated[Listing, paged(AwareDatetime, UUID)],
    workspace: Annotated[Id | None, Query(description="Only this project's.")] = None,
) -> WebhooksOut:
    """List the tenant's webhooks, the oldest first. Needs an admin's key."""
    project = None if workspace is None else clean_id(workspace, "workspace")
    found = await services.events.webhooks.page(principal.tenant, listing.page, project)
    webhooks, following = listing.cut(found, lambda one: (one.created_at, one.id))
    return WebhooksOut(webhooks=[WebhookOut.from_webhook(one) for one in webhooks], next_cursor=following)


@router.get("/{id}")
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE, of=OwnedKind.WEBHOOK))
async def show_webhook(id: UUID, services: ServicesDep, principal: PrincipalDep) -> WebhookOut:
    """Show how a webhook gets on. Needs an admin's key."""
    return WebhookOut.from_webhook(await services.events.webhooks.get(principal.tenant, id))


@router.delete("/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE, of=OwnedKind.WEBHOOK))
async def delete_webhook(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Send nothing more to an address, and forget its dead letters. Needs an admin's key."""
    await services.events.webhooks.delete(principal.tenant, id)


@router.post("/{id}/rotate")
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE, of=OwnedKind.WEBHOOK))
async def rotate_secret(id: UUID, services: ServicesDep, principal: PrincipalDep) -> WebhookSecretOut:
    """Give a webhook a new secret; for `webhooks.rotation_s` the one before signs, too. Needs an admin's key."""
    now, secret = utc_now(), new_secret(secrets.token_bytes(SECRET_BYTES))
    until = now + timedelta(seconds=services.settings.webhooks.rotation_s)
    await services.events.webhooks.rotate(principal.tenant, id, secret, now=now, until=until)
    stored = await services.events.webhooks.get(principal.tenant, id)
    return WebhookSecretOut.from_webhook(stored, secret=secret)


@router.get("/{id}/dead-letters")
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE, of=OwnedKind.WEBHOOK))
async def list_dead_letters(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    listing: Annotated[Listing, paged(int)],
    after: Annotated[
        int, Query(ge=0, le=NEWEST, deprecated=True, description="`next` of the page before; as `cursor`.")
    ] = 0,
) -> DeadLettersOut:
    """List the events that a webhook did not take. Needs an admin's key."""
    await services.events.webhooks.get(principal.tenant, id)
    page = listing.page if listing.page.after else replace(listing.page, after=(after,))
    found = await services.events.webhooks.dead_letters(principal.tenant, id, page)
    letters, following = listing.cut(found, lambda one: (one.position,))
    return DeadLettersOut.from_letters(letters, following)


@router.post("/{id}/dead-letters/retry")
@allow(Access(Verb.SHARE, WHOLE_WORKSPACE, of=OwnedKind.WEBHOOK))
async def retry_dead_letters(id: UUID, body: RetryIn, services: ServicesDep, principal: PrincipalDep) -> RetryOut:
    """Send dead letters again, under the ids that they had. Needs an admin's key."""
    await services.events.webhooks.get(principal.tenant, id)
    return RetryOut(queued=await services.events.webhooks.revive(principal.tenant, id, body.events))
