"""From a request to a search: what was sent, the agent's memory profile and the settings together."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from deployments.services import Services, own_notes
from lamina.aio.deadline import time_limit
from lamina.api.scope import SCOPE_FIELDS, ScopeIn
from lamina.api.search import ContextIn, ContextOut, SearchIn, SearchOut
from lamina.caching.answer_cache import Asked, Compute, Computed, Served
from lamina.core.memories import Profile
from lamina.core.memory_profiles import Defaults, MemoryProfile, Purpose, settle
from lamina.core.queries import FusedHit, Ranking, SearchRequest, clean_filters, first_expiry
from lamina.core.scope import Scope
from lamina.core.stamps import Stamp
from lamina.core.tiers import SEARCHED_TIERS, Source, Tier
from lamina.errors import LaminaError
from lamina.policies.ranking.context_block import ContextBlock, Extras, build_context
from lamina.search.fused_search import WITHOUT_HINTS, SearchHints
from lamina.wiring.stores import utc_now

Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class AskedFor:
    """A request as it will be searched.

    Args:
        suffix: What the agent's memory profile puts at the end of a block.
        degraded: What could not be read for it, and why.
    """

    request: SearchRequest
    suffix: str = ""
    degraded: Mapping[str, str] = field(default_factory=dict)


async def searched(body: SearchIn, scope: Scope, services: Services) -> Served:
    """Return the fused answer to a search as it is sent, from a cache where one has it."""
    stamp = await services.caches.answers.stamp(scope)
    wanted = await asked(body, scope, services, Purpose.RESULTS, stamp)

    async def compute(known: SearchHints) -> Computed:
        answer = await services.search.search(wanted.request, known)
        shown = replace(answer, degraded={**answer.degraded, **wanted.degraded})
        return Computed(
            body=_json(SearchOut.from_answer(shown, explain=body.explain)),
            found=own_notes(answer.hits),
            is_empty=not answer.hits,
            is_whole=answer.is_whole and not wanted.degraded,
            graph=answer.graph,
            expires_at=_first_expiry(answer.hits),
        )

    return await _served("search", body, wanted.request, stamp, compute, services)


async def contextualised(body: ContextIn, scope: Scope, services: Services) -> Served:
    """Return a context block as it is sent, from a cache where one has it."""
    stamp = await services.caches.answers.stamp(scope)
    wanted = await asked(body, scope, services, Purpose.CONTEXT, stamp)

    async def compute(known: SearchHints) -> Computed:
        block = await _context_block(body, wanted, services, known)
        return Computed(
            body=_json(ContextOut.from_block(block.block, block.budget_tokens, block.degraded, explain=body.explain)),
            found=own_notes(block.block.used),
            is_empty=not block.block.text,
            is_whole=block.is_whole,
            graph=block.graph,
            expires_at=block.expires_at,
        )

    return await _served("context", body, wanted.request, stamp, compute, services)


async def _served(
    kind: str, body: SearchIn, request: SearchRequest, stamp: Stamp | None, compute: Compute, services: Services
) -> Served:
    query = request.query()
    if stamp is None or not body.cache:
        return Served(await compute(WITHOUT_HINTS if stamp is None else SearchHints(shares=stamp.shares())))
    sent = sent_of(body)
    # A repr tells values apart as well as JSON does, and knows conditions and times.
    walk = repr((query.text, query.limit, query.filters, query.depth))
    graph = walk if Tier.GRAPH in request.tiers else None
    return await services.caches.answers.serve(Asked(kind, request.scope, sent, query.text, graph), stamp, compute)


def sent_of(body: ScopeIn) -> dict[str, Any]:
    """Return all that was sent beside the scope, as JSON."""
    return body.model_dump(mode="json", exclude_unset=True, exclude={*SCOPE_FIELDS, "cache"})


def _json(answer: SearchOut | ContextOut) -> bytes:
    return answer.model_dump_json(exclude={"cache"}).encode()


async def asked(body: SearchIn, scope: Scope, services: Services, purpose: Purpose, stamp: Stamp | None) -> AskedFor:
    """Return what to search; a memory profile that cannot be read counts as none and is named as degraded."""
    profile, degraded = (stamp.profile, {}) if stamp else await _memory_profile(services, scope)
    # To the minute: a time to live counts in days, and a window that moves all the time is never asked for twice.
    now = utc_now().replace(second=0, microsecond=0)
    settled = settle(body.wishes(), profile, defaults(services, purpose), purpose, now)
    limits = services.settings.search
    request = SearchRequest(
        text=body.query,
        scope=scope,
        limit=settled.limit,
        # A block has room for more memories than one source gives by default: all its ranks count.
        per_source=max(limits.per_source, settled.limit) if purpose is Purpose.CONTEXT else limits.per_source,
        tiers=settled.tiers,
        filters=replace(
            body.all_filters(limits.min_confidence),
            since=settled.since,
            # What has faded leaves contexts; whoever searches still finds it.
            min_weight=services.settings.context.min_weight if purpose is Purpose.CONTEXT else 0.0,
        ),
        fusion=body.fusion,
        normalise=body.normalise,
        depth=body.depth,
        min_score=settled.min_score,
    )
    return AskedFor(request, settled.suffix, degraded)


def defaults(services: Services, purpose: Purpose) -> Defaults:
    """Return what holds for an agent without a memory profile."""
    settings = services.settings
    if purpose is Purpose.CONTEXT:
        return Defaults(SEARCHED_TIERS, settings.context.max_chunks, settings.context.min_relevance)
    return Defaults(SEARCHED_TIERS, settings.search.limit, 0.0)


@dataclass(frozen=True, slots=True)
class _Block:
    """A context block and what is said about it.

    Args:
        degraded: What did not answer.
        is_whole: Whether all answered that is switched on.
        graph: What the graph's sources said.
        expires_at: When the first of what was found is over.
    """

    block: ContextBlock
    budget_tokens: int
    degraded: list[str]
    is_whole: bool
    graph: Mapping[Source, Ranking] | None
    expires_at: datetime | None


async def _context_block(body: ContextIn, wanted: AskedFor, services: Services, known: SearchHints) -> _Block:
    answer = await services.search.search(wanted.request, known)
    (profile, no_profile), (hints, no_hints) = await asyncio.gather(
        _user_profile(services, wanted.request.scope), graph_hints(services, wanted.request, answer.hits)
    )
    sent = "budget_tokens" in body.model_fields_set
    budget = body.budget_tokens if sent else services.settings.context.budget_tokens
    block = build_context(answer.hits, Extras(profile, wanted.suffix, hints), budget_tokens=budget)
    failed = {**answer.degraded, **wanted.degraded, **no_profile, **no_hints}
    is_whole = answer.is_whole and not (wanted.degraded or no_profile or no_hints)
    return _Block(block, budget, sorted(failed), is_whole, answer.graph, _first_expiry(answer.hits))


def _first_expiry(hits: Sequence[FusedHit]) -> datetime | None:
    return first_expiry(hit.memory.expires_at for hit in hits)


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
    try:
        async with time_limit(services.settings.search.source_deadline_s):
            return await reading, {}
    except (LaminaError, TimeoutError) as error:
        return None, {part: str(error)}
