"""The trash: list deleted memories, and bring them back."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from deployments.access import MEMORIES, OWN_MEMORIES, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.dependencies import ScopeDep
from deployments.routes.paging import ByTime
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.trash import DiscardedOut, TrashOut
from lamina.core.principals import Verb
from lamina.core.trash import TrashKind
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1/trash", tags=["write"], route_class=JsonRoute)


@router.get("")
@allow(Access(Verb.READ, MEMORIES))
async def list_trash(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    kind: Annotated[TrashKind | None, Query(description="Only this kind.")] = None,
) -> TrashOut:
    """List the deleted memories of a scope that can be brought back, the last first."""
    found = await services.restorer.page(ids.scope(principal.tenant), kind, listing.page)
    entries, following = listing.cut(found, lambda one: (one.deleted_at, one.id))
    kept = timedelta(days=services.settings.history.trash_days)
    shown = [DiscardedOut.from_discarded(entry, kept) for entry in entries]
    return TrashOut(entries=shown, next_cursor=following)


@router.post("/{id}/restore")
@allow(Access(Verb.WRITE, OWN_MEMORIES, of=OwnedKind.DISCARDED))
async def restore(id: UUID, services: ServicesDep, principal: PrincipalDep) -> DiscardedOut:
    """Bring a deleted memory back, under the id that it had."""
    kept = timedelta(days=services.settings.history.trash_days)
    return DiscardedOut.from_discarded(await services.restorer.restore(principal.tenant, id), kept)
