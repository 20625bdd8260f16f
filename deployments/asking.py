"""From a request to a search: what was sent, the agent's memory profile and the settings together."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar
from uuid import UUID

from deployments.routes.search_models import ContextIn, SearchIn
from deployments.services import Services
from lamina.errors import LaminaError
from lamina.memories import Profile
from lamina.memory_profiles import Defaults, MemoryProfile, Purpose, settle
from lamina.queries import SEARCHED_TIERS, Answer, FusedHit, SearchRequest, Tier, clean_filters
from lamina.ranking.budget import ContextBlock, Extras, build_context
from lamina.scope import Scope
from lamina.wiring import utc_now

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it will be searched.

    Args:
        suffix: What the agent's memory profile puts at the end of a block.
        degraded: What could not be read for it, and why.
    """

    request: SearchRequest
    suffix: str = ""
    degraded: Mapping[str, str] = field(default_factory=dict)


async def asked(body: SearchIn, scope: Scope, services: Services, purpose: Purpose) -> Asked:
    """Return what to search; a memory profile that cannot be read counts as none and is named as degraded."""
    profile, degraded = await _memory_profile(services, scope)
    settled = settle(body.wishes(), profile, defaults(services, purpose), purpose, utc_now())
    limits = services.settings.search
    request = SearchRequest(
        text=body.query,
        scope=scope,
        limit=settled.limit,
        # A block has room for more memories than one source gives by default: all its ranks count.
        per_source=max(limits.per_source, settled.limit) if purpose is Purpose.CONTEXT else limits.per_source,
        tiers=settled.tiers,
        filters=replace(body.all_filters(limits.min_confidence), since=settled.since),
        fusion=body.fusion,
        normalise=body.normalise,
        depth=body.depth,
        min_score=settled.min_score,
    )
    return Asked(request, settled.suffix, degraded)


def defaults(services: Services, purpose: Purpose) -> Defaults:
    """Return what holds for an agent without a memory profile."""
    settings = services.settings
    if purpose is Purpose.CONTEXT:
        return Defaults(SEARCHED_TIERS, settings.context.max_chunks, settings.context.min_relevance)
    return Defaults(SEARCHED_TIERS, settings.search.limit, 0.0)


async def context_block(body: ContextIn, scope: Scope, services: Services) -> tuple[ContextBlock, int, list[str]]:
    """Return the block of what is worth knowing, the budget that held, and what did not answer."""
    wanted = await asked(body, scope, services, Purpose.CONTEXT)
    answer = await services.search.search(wanted.request)
    (profile, no_profile), (hints, no_hints) = await asyncio.gather(
        _user_profile(services, scope), graph_hints(services, wanted.request, answer.hits)
    )
    sent = "budget_tokens" in body.model_fields_set
    budget = body.budget_tokens if sent else services.settings.context.budget_tokens
    block = build_context(answer.hits, Extras(profile, wanted.suffix, hints), budget_tokens=budget)
    return block, budget, sorted({*answer.degraded, *wanted.degraded, *no_profile, *no_hints})


async def results(body: SearchIn, scope: Scope, services: Services) -> Answer:
    """Return the fused answer to a request."""
    wanted = await asked(body, scope, services, Purpose.RESULTS)
    answer = await services.search.search(wanted.request)
    return replace(answer, degraded={**answer.degraded, **wanted.degraded})


async def graph_hints(
    services: Services, request: SearchRequest, hits: Sequence[FusedHit]
) -> tuple[Mapping[UUID, Sequence[str]], Mapping[str, str]]:
    """Return what stands next to the best hits in the graph, if the graph is searched at all."""
    limits = services.settings.context
    ids = [hit.memory.id for hit in hits[: limits.hint_results]]
    if services.hints is None or not ids or Tier.GRAPH not in request.tiers:
        return {}, {}
    found, degraded = await _within(
        services, "hints", services.hints.hints(request.scope, clean_filters(request.filters), ids)
    )
    return {id_: tuple(lines[: limits.hint_neighbours]) for id_, lines in (found or {}).items()}, degraded


async def _memory_profile(services: Services, scope: Scope) -> tuple[MemoryProfile | None, Mapping[str, str]]:
    if scope.agent is None:
        return None, {}
    return await _within(services, "memory_profile", services.reads.memory_profiles.get(scope))


async def _user_profile(services: Services, scope: Scope) -> tuple[Profile | None, Mapping[str, str]]:
    if scope.user is None:
        return None, {}
    return await _within(services, "profile", services.reads.profiles.get(scope))


async def _within(services: Services, part: str, reading: Awaitable[Part]) -> tuple[Part | None, Mapping[str, str]]:
    """Return what is read, or why it is not there; the answer goes on without it."""
    deadline_s = services.settings.search.source_deadline_s
    try:
        return await asyncio.wait_for(reading, deadline_s), {}
    except TimeoutError:
        return None, {part: f"no answer within {deadline_s} s"}
    except LaminaError as error:
        return None, {part: str(error)}
