"""Make a search of a request, the agent's memory profile and the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployments.services import Services
from lamina.api.scope import SCOPE_FIELDS, ScopeIn
from lamina.api.search import ContextIn, SearchIn
from lamina.caching.cached_search import CacheableRequest
from lamina.core.memory_profiles import EffectiveSearch, MemoryProfile, Purpose, SearchDefaults, resolve_search
from lamina.core.queries import FusionMethod, SearchRequest, TimeUse, clean_filters
from lamina.core.scope import Scope
from lamina.core.tiers import SEARCHED_TIERS, Tier
from lamina.errors import InvalidInput
from lamina.policies.caching.answer_keys import RequestIdentity
from lamina.policies.ranking.call_weights import searched_tiers
from lamina.search.context import ContextRequest, read_or_degrade
from lamina.search.query_embedding import query_of, question_of
from lamina.wiring.stores import utc_now


async def search_request(body: SearchIn, scope: Scope, services: Services) -> CacheableRequest[SearchRequest]:
    """Return the search that a request asks for."""
    request, _ = await _settled_request(body, scope, services, Purpose.RESULTS)
    return request


async def context_request(body: ContextIn, scope: Scope, services: Services) -> CacheableRequest[ContextRequest]:
    """Return the search for the context block that a request asks for."""
    request, settled = await _settled_request(body, scope, services, Purpose.CONTEXT)
    was_sent = "budget_tokens" in body.model_fields_set
    budget_tokens = body.budget_tokens if was_sent else services.settings.context.budget_tokens
    context = ContextRequest(request.request, budget_tokens, settled.suffix, body.format, settled.is_suffix_verified)
    return CacheableRequest(
        request.identity, context, request.stamp, request.use_cache, request.explain, request.degraded
    )


def sent_of(body: ScopeIn) -> dict[str, Any]:
    """Return all that was sent beside the scope, as JSON."""
    return body.model_dump(mode="json", exclude_unset=True, exclude={*SCOPE_FIELDS, "cache"})


def defaults(services: Services, purpose: Purpose) -> SearchDefaults:
    """Return the defaults of an agent without a memory profile."""
    settings = services.settings
    if purpose is Purpose.CONTEXT:
        return SearchDefaults(SEARCHED_TIERS, settings.context.max_chunks, settings.context.min_relevance)
    return SearchDefaults(SEARCHED_TIERS, settings.search.limit, 0.0)


def _defaults_of(body: SearchIn, services: Services, purpose: Purpose) -> SearchDefaults:
    """Return the defaults for a request; a share of all sources says nothing beside the least relevance of a tier's."""
    usual = defaults(services, purpose)
    return replace(usual, min_score=0.0) if body.fusion is FusionMethod.PLAIN_RRF else usual


async def _settled_request(
    body: SearchIn, scope: Scope, services: Services, purpose: Purpose
) -> tuple[CacheableRequest[SearchRequest], EffectiveSearch]:
    """Return the search, and the values that hold for it.

    A memory profile that cannot be read counts as none and is named as degraded.
    """
    stamp = await services.caches.answers.read_stamp(scope, await question_of(body.query))
    profile, degraded = (stamp.profile, {}) if stamp else await _memory_profile(services, scope)
    # To the minute: a time to live counts in days, and a window that moves all the time is never asked for twice.
    now = utc_now().replace(second=0, microsecond=0)
    settled = resolve_search(body.wishes(), profile, _defaults_of(body, services, purpose), purpose, now)
    search = _search_request(body, scope, settled, services, purpose)
    query = await query_of(search)
    asked = body.asked_time(query.text, now)
    sent = sent_of(body)
    if asked is not None:
        # "Yesterday" is another day tomorrow, and so another answer.
        sent["asked_time"] = repr(asked.parts())
        filters = search.filters.within(asked.intervals) if body.time is TimeUse.FILTER else search.filters
        search = replace(search, time=asked, filters=filters)
        query = replace(query, filters=clean_filters(filters))
    # A repr tells values apart as well as JSON does, and knows conditions and times.
    walk = repr((query.text, query.limit, query.filters, query.depth)) if Tier.GRAPH in search.tiers else None
    kind = "context" if purpose is Purpose.CONTEXT else "search"
    identity = RequestIdentity(kind, scope, sent, query.text, walk)
    return CacheableRequest(identity, search, stamp, body.cache, body.explain, degraded), settled


def _search_request(
    body: SearchIn, scope: Scope, settled: EffectiveSearch, services: Services, purpose: Purpose
) -> SearchRequest:
    limits, is_context = services.settings.search, purpose is Purpose.CONTEXT
    filters = replace(
        body.all_filters(limits.min_confidence),
        since=settled.since,
        # Notes that have faded leave contexts; a search still finds them.
        min_weight=services.settings.context.min_weight if is_context else 0.0,
    )
    return SearchRequest(
        text=body.query,
        scope=scope,
        limit=settled.limit,
        # A block has room for more memories than one source gives by default: all its ranks count.
        per_source=max(limits.per_source, settled.limit) if is_context else limits.per_source,
        tiers=_tiers_that_count(settled.tiers, body),
        filters=filters,
        fusion=body.fusion,
        normalise=body.normalise,
        depth=body.depth,
        min_score=settled.min_score,
        weights=body.weights,
        relevance={str(name): number for name, number in body.relevance.items()},
    )


def _tiers_that_count(tiers: Sequence[Tier], body: SearchIn) -> tuple[Tier, ...]:
    left = searched_tiers(tiers, body.weights)
    if not left:
        raise InvalidInput("weights", "leave no source of the searched tiers a weight above 0")
    return left


async def _memory_profile(services: Services, scope: Scope) -> tuple[MemoryProfile | None, Mapping[str, str]]:
    if scope.agent is None:
        return None, {}
    reading = services.reads.memory_profiles.get(scope)
    return await read_or_degrade("memory_profile", reading, services.settings.search.source_deadline_s)
