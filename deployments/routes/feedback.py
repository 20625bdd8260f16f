"""Feedback on memories: votes and pins."""

from uuid import UUID

from fastapi import APIRouter

from deployments.access import MEMORIES, OWN_MEMORIES, PLACE, Access
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.feedback import FeedbackOut, VoteIn
from lamina.core.principals import Verb
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1/memories", tags=["feedback"], route_class=JsonRoute)
MEMORY = OwnedKind.MEMORY


@router.get("/{id}/feedback")
@allow(Access(Verb.READ, MEMORIES, of=MEMORY))
async def show_feedback(id: UUID, services: ServicesDep, principal: PrincipalDep) -> FeedbackOut:
    """Show the votes on a memory of any tier, your own among them, and whether it is pinned."""
    found = await services.feedback.get(principal.tenant, id, principal.witness())
    return FeedbackOut.from_attributes(found, id=id)


@router.put("/{id}/feedback")
@allow(Access(Verb.WRITE, PLACE, of=MEMORY))
async def vote(id: UUID, body: VoteIn, services: ServicesDep, principal: PrincipalDep) -> FeedbackOut:
    """Judge a memory that a search found, once a key and memory: a later vote takes the place of the earlier one.

    All votes together move a result by a tenth of its score at most, and how soon a note fades by a week.
    """
    found = await services.feedback.vote(principal.tenant, id, principal.witness(), body.vote)
    return FeedbackOut.from_attributes(found, id=id)


@router.delete("/{id}/feedback")
@allow(Access(Verb.WRITE, PLACE, of=MEMORY))
async def take_vote_back(id: UUID, services: ServicesDep, principal: PrincipalDep) -> FeedbackOut:
    """Take your vote on a memory back."""
    found = await services.feedback.vote(principal.tenant, id, principal.witness(), None)
    return FeedbackOut.from_attributes(found, id=id)


@router.put("/{id}/pin")
@allow(Access(Verb.WRITE, OWN_MEMORIES, of=MEMORY))
async def pin(id: UUID, services: ServicesDep, principal: PrincipalDep) -> FeedbackOut:
    """Pin a memory: a pinned note never fades, and contexts that ask for `pinned` begin with it."""
    found = await services.feedback.pin(principal.tenant, id, principal.witness(), is_pinned=True)
    return FeedbackOut.from_attributes(found, id=id)


@router.delete("/{id}/pin")
@allow(Access(Verb.WRITE, OWN_MEMORIES, of=MEMORY))
async def unpin(id: UUID, services: ServicesDep, principal: PrincipalDep) -> FeedbackOut:
    """Let a pinned memory fade again."""
    found = await services.feedback.pin(principal.tenant, id, principal.witness(), is_pinned=False)
    return FeedbackOut.from_attributes(found, id=id)
