"""Procedures: store them, match them with a situation, report their outcomes."""

from collections.abc import Sequence
from http import HTTPStatus
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Response

from deployments.access import ALL_USERS, OWN_PLACE, PLACE, Access
from deployments.bodies import body_of
from deployments.guard import allow
from deployments.json_bodies import JsonRoute
from deployments.routes.batches import read_batch
from deployments.routes.dependencies import ScopeDep, WriteKeyDep
from deployments.routes.paging import ByTime, Listing
from deployments.services import PrincipalDep, ServicesDep
from lamina.api.batches import BatchItem, BatchOut
from lamina.api.fields import Tags
from lamina.api.procedures import (
    MatchesOut,
    MatchIn,
    MatchOut,
    OutcomeIn,
    OutcomeOut,
    OutcomesOut,
    ProcedureBatchIn,
    ProcedureFields,
    ProcedureIn,
    ProcedureOut,
    ProcedurePatch,
    ProceduresOut,
    PutProcedureOut,
    ReinforcedOut,
    StateIn,
)
from lamina.api.turns import AgentTurnOut, AgentTurnsOut
from lamina.core.principals import Verb
from lamina.core.procedures import Procedure, ProcedureState, StoredProcedure, clean_procedure
from lamina.core.queries import Filters, SearchRequest, clean_filters
from lamina.core.scope import Scope
from lamina.stores.postgres.owners import OwnedKind

router = APIRouter(prefix="/v1/procedures", tags=["procedures"], route_class=JsonRoute)


@router.post(
    "",
    status_code=HTTPStatus.CREATED,
    responses={200: {"model": PutProcedureOut, "description": "Existed"}},
    openapi_extra=body_of(mib=4),
)
@allow(Access(Verb.WRITE, OWN_PLACE))
async def put_procedure(
    body: ProcedureIn,
    services: ServicesDep,
    principal: PrincipalDep,
    response: Response,
    write_key: WriteKeyDep,
) -> PutProcedureOut:
    """Store one procedure; one of the same trigger and action in the same workspace is returned instead (200)."""
    scope = body.scope(principal.tenant)
    once = write_key.once(principal.tenant, body)
    recorded = await services.procedures.recorder.put(scope, [body.procedure()], once)
    result = PutProcedureOut.from_attributes(recorded.procedures[0])
    response.status_code = HTTPStatus.OK if result.existed else HTTPStatus.CREATED
    return result


@router.post("/batch", openapi_extra=body_of(mib=32))
@allow(Access(Verb.WRITE, OWN_PLACE))
async def put_procedures(
    body: ProcedureBatchIn, services: ServicesDep, principal: PrincipalDep, write_key: WriteKeyDep
) -> BatchOut:
    """Store many procedures in one transaction; each item has a result of its own."""
    scope = body.scope(principal.tenant)
    limit = services.procedures.recorder.metadata_limit

    def read(item: Any, path: str) -> Procedure:
        return clean_procedure(ProcedureFields.model_validate(item).procedure(), path, limit=limit)

    batch = await read_batch("procedures", body.procedures, read)
    procedures = batch.accepted()
    if not procedures:  # Even an empty write would raise the namespace's epoch.
        return BatchOut(results=batch.results((), BatchItem))
    once = write_key.once(principal.tenant, body)
    recorded = await services.procedures.recorder.put(scope, procedures, once)
    stored = [BatchItem(status="existed" if item.existed else "created", id=item.id) for item in recorded.procedures]
    return BatchOut(results=batch.results(stored, BatchItem), epoch=recorded.epoch)


@router.get("")
@allow(Access(Verb.READ, PLACE))
async def list_procedures(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    tag: Annotated[Tags | None, Query(description="Only procedures with all of these tags.")] = None,
) -> ProceduresOut:
    """List the active procedures of a workspace, the latest first."""
    filters = clean_filters(Filters(tuple(tag or ()), min_confidence=0.0))
    scope = ids.scope(principal.tenant)
    found = await services.procedures.reads.page(scope, filters, listing.page)
    return _procedures(listing, found)


@router.post("/match", openapi_extra=body_of(mib=2))
@allow(Access(Verb.READ, PLACE))
async def match_procedures(body: MatchIn, services: ServicesDep, principal: PrincipalDep) -> MatchesOut:
    """Return the procedures that a situation calls for: by prefix, then by keyword, then by meaning.

    Within a stage closer triggers come first, and of about equally close ones the one that worked.
    """
    limits = services.settings.search
    request = SearchRequest(
        text=body.query,
        scope=body.scope(principal.tenant),
        limit=body.limit if "limit" in body.model_fields_set else limits.limit,
        per_source=limits.per_source,
        filters=body.all_filters(),
    )
    found = await services.procedures.matcher.match(request)
    matches = [
        MatchOut.from_attributes(match, match.stored, match.stored.procedure)
        for match in found.matches
        if match.score >= body.min_score
    ]
    return MatchesOut(matches=matches, degraded=sorted(found.degraded))


@router.get("/learnt")
@allow(Access(Verb.READ, ALL_USERS))
async def list_learnt_procedures(
    services: ServicesDep,
    principal: PrincipalDep,
    ids: ScopeDep,
    listing: ByTime,
    state: Annotated[ProcedureState, Query(description="proposed, active or dropped.")] = ProcedureState.PROPOSED,
) -> ProceduresOut:
    """List the procedures that runs of agents taught, of all users of a workspace, the latest first."""
    found = await services.procedures.reads.learnt(ids.scope(principal.tenant), state, listing.page)
    return _procedures(listing, found)


@router.put("/{id}/state")
@allow(Access(Verb.WRITE, OWN_PLACE, of=OwnedKind.PROCEDURE))
async def decide_procedure(id: UUID, body: StateIn, services: ServicesDep, principal: PrincipalDep) -> ProcedureOut:
    """Confirm or drop a procedure; outcomes no longer change its state. All of the workspace find a confirmed one."""
    state = ProcedureState(body.state)
    return ProcedureOut.from_stored(await services.procedures.recorder.decide(principal.tenant, id, state))


@router.get("/{id}/evidence")
@allow(Access(Verb.READ, ALL_USERS, of=OwnedKind.PROCEDURE))
async def list_evidence(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    listing: ByTime,
) -> AgentTurnsOut:
    """List the turns that ended the runs which taught a procedure, the latest first."""
    await services.procedures.reads.get(principal.tenant, id)
    found = await services.reads.agent_turns.evidence(principal.tenant, id, listing.page)
    turns, following = listing.cut(found, lambda one: (one.recorded_at, one.id))
    return AgentTurnsOut(turns=[AgentTurnOut.from_attributes(item) for item in turns], next_cursor=following)


@router.get("/{id}")
@allow(Access(Verb.READ, PLACE, of=OwnedKind.PROCEDURE))
async def get_procedure(id: UUID, services: ServicesDep, principal: PrincipalDep) -> ProcedureOut:
    """Return one procedure."""
    return ProcedureOut.from_stored(await services.procedures.reads.get(principal.tenant, id))


@router.patch("/{id}", openapi_extra=body_of(mib=4))
@allow(Access(Verb.WRITE, OWN_PLACE, of=OwnedKind.PROCEDURE))
async def change_procedure(
    id: UUID,
    body: ProcedurePatch,
    services: ServicesDep,
    principal: PrincipalDep,
) -> ProcedureOut:
    """Change fields of a procedure; its outcomes stay."""
    return ProcedureOut.from_stored(await services.procedures.recorder.change(principal.tenant, id, body.changes()))


@router.delete("/{id}", status_code=HTTPStatus.NO_CONTENT)
@allow(Access(Verb.DELETE, OWN_PLACE, of=OwnedKind.PROCEDURE))
async def delete_procedure(id: UUID, services: ServicesDep, principal: PrincipalDep) -> None:
    """Delete a procedure; nothing matches it from now on."""
    await services.procedures.recorder.delete(principal.tenant, id)


@router.post("/{id}/outcomes")
@allow(Access(Verb.WRITE, OWN_PLACE, of=OwnedKind.PROCEDURE))
async def report_outcome(
    id: UUID,
    body: OutcomeIn,
    services: ServicesDep,
    principal: PrincipalDep,
    write_key: WriteKeyDep,
) -> ReinforcedOut:
    """Report the outcome of following a procedure; it becomes stronger or weaker.

    A run counts once: reporting it again changes nothing, and with the other result it is refused (409).
    """
    scope = Scope(principal.tenant, **({"agent": body.agent} if "agent" in body.model_fields_set else {}))
    request = {"procedure": str(id), **body.model_dump(mode="json", exclude_unset=True)}
    once = write_key.once_for_request(principal.tenant, request)
    witness = principal.witness(scope.agent)
    reported = await services.procedures.recorder.report(scope, id, body.outcome(), once, witness=witness)
    return ReinforcedOut.from_attributes(reported)


@router.get("/{id}/outcomes")
@allow(Access(Verb.READ, PLACE, of=OwnedKind.PROCEDURE))
async def list_outcomes(
    id: UUID,
    services: ServicesDep,
    principal: PrincipalDep,
    listing: ByTime,
) -> OutcomesOut:
    """List the outcomes of a procedure, the latest first."""
    found = await services.procedures.reads.outcomes(principal.tenant, id, listing.page)
    outcomes, following = listing.cut(found, lambda one: (one.reported_at, one.id))
    shown = [OutcomeOut.from_attributes(item, item.outcome) for item in outcomes]
    return OutcomesOut(outcomes=shown, next_cursor=following)


def _procedures(listing: Listing, found: Sequence[StoredProcedure]) -> ProceduresOut:
    procedures, following = listing.cut(found, lambda one: (one.created_at, one.id))
    return ProceduresOut(procedures=[ProcedureOut.from_stored(item) for item in procedures], next_cursor=following)
