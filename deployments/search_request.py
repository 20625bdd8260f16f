"""Make a search of a request, the agent's memory profile and the settings."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from deployments.services import Services
from lamina.api.scope import SCOPE_FIELDS, ScopeIn
from lamina.api.search import ContextIn, SearchIn
from lamina.caching.cached_search import CacheableRequest
from lamina.core.memory_profiles import EffectiveSearch, MemoryProfile, Purpose, SearchDefaults, resolve_search
from lamina.core.principals import Principal, ScopeField
from lamina.core.queries import FusionMethod, SearchRequest, TimeUse, clean_filters
from lamina.core.scope import Scope
from lamina.core.tiers import SEARCHED_TIERS, Tier
from lamina.core.workspace_settings import UNSET, WorkspaceSettings
from lamina.errors import InvalidInput
from lamina.policies.caching.answer_keys import RequestIdentity
from lamina.policies.ranking.call_weights import searched_tiers
from lamina.search.context import ContextRequest, read_or_degrade
from lamina.search.query_embedding import query_of, question_of
from lamina.settings.loading import Settings
from lamina.settings.models import NoRerankSettings, RerankSettings
from lamina.wiring.stores import utc_now


async def search_request(body: SearchIn, scope: Scope, services: Services) -> CacheableRequest[SearchRequest]:
    """Return the search that a request asks for."""
    request, _, _ = await _settled_request(body, scope, services, Purpose.RESULTS)
    return request


async def context_request(
    body: ContextIn, principal: Principal, services: Services
) -> CacheableRequest[ContextRequest]:
    """Return the search for the context block that a request asks for.

    The user's profile of the whole tenant is in it where the key reaches the whole of the user.
    """
    scope, shows_tenant_profile = body.scope(principal.tenant), principal.reaches_whole(ScopeField.USER)
    request, settled, chosen = await _settled_request(body, scope, services, Purpose.CONTEXT)
    was_sent = "budget_tokens" in body.model_fields_set
    usual_tokens = chosen.budget_tokens or services.settings.context.budget_tokens
    budget_tokens = body.budget_tokens if was_sent else usual_tokens
    context = ContextRequest(
        request.request,
        budget_tokens,
        settled.suffix,
        body.format,
        settled.is_suffix_verified,
        shows_profile=body.profile if "profile" in body.model_fields_set else settled.shows_profile,
        shows_pinned=body.pinned,
        shows_tenant_profile=shows_tenant_profile,
    )
    identity = request.identity
    if not shows_tenant_profile:
        identity = replace(identity, sent={**identity.sent, "shows_tenant_profile": False})
    return CacheableRequest(identity, context, request.stamp, request.use_cache, request.explain, request.degraded)


def sent_of(body: ScopeIn) -> dict[str, Any]:
    """Return all that was sent beside the scope, as JSON."""
    return body.model_dump(mode="json", exclude_unset=True, exclude={*SCOPE_FIELDS, "cache"})


def defaults(settings: Settings, purpose: Purpose, chosen: WorkspaceSettings) -> SearchDefaults:
    """Return the defaults of an agent without a memory profile: the workspace's, then the installation's."""
    tiers, ttl_days = chosen.tiers or SEARCHED_TIERS, chosen.retention_days
    if purpose is Purpose.RESULTS:
        return SearchDefaults(tiers, chosen.limit or settings.search.limit, 0.0, ttl_days)
    chunks = chosen.max_context_chunks or settings.context.max_chunks
    least = settings.context.min_relevance if chosen.min_relevance is None else chosen.min_relevance
    return SearchDefaults(tiers, chunks, least, ttl_days, shows_profile=chosen.profile is not False)


def _defaults_of(body: SearchIn, settings: Settings, purpose: Purpose, chosen: WorkspaceSettings) -> SearchDefaults:
    """Return the defaults for a request; a share of all sources says nothing beside the least relevance of a tier's."""
    usual = defaults(settings, purpose, chosen)
    is_share = body.fusion is FusionMethod.PLAIN_RRF and chosen.min_relevance is None
    return replace(usual, min_score=0.0) if is_share else usual


def _with_choices(body: SearchIn, chosen: WorkspaceSettings) -> SearchIn:
    """Return the request with the workspace's fusion and weights where it names none."""
    choices: dict[str, Any] = {"fusion": chosen.fusion, "weights": chosen.weights}
    filled = {name: value for name, value in choices.items() if value and name not in body.model_fields_set}
    return body.model_copy(update=filled)


async def _settled_request(
    body: SearchIn, scope: Scope, services: Services, purpose: Purpose
) -> tuple[CacheableRequest[SearchRequest], EffectiveSearch, WorkspaceSettings]:
    """Return the search, the values that hold for it, and the settings of its workspace.

    A memory profile or settings that cannot be read count as none and are named as degraded.
    """
    stamp = await services.caches.answers.read_stamp(scope, await question_of(body.query))
    profile, degraded = (stamp.profile, {}) if stamp else await _memory_profile(services, scope)
    chosen, unread = (stamp.settings, {}) if stamp else await _workspace_settings(services, scope)
    degraded = {**degraded, **unread}
    body = _with_choices(body, chosen)
    # To the minute: a time to live counts in days, and a window that moves all the time is never asked for twice.
    now = utc_now().replace(second=0, microsecond=0)
    settled = resolve_search(
        body.wishes(), profile, _defaults_of(body, services.settings, purpose, chosen), purpose, now
    )
    settled = replace(settled, tiers=_tiers_of_scope(settled.tiers, body, scope, chosen, services.settings))
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
    return CacheableRequest(identity, search, stamp, body.cache, body.explain, degraded), settled, chosen


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
        rerank=_wants_reranker(body, services.settings.rerank),
        explain=body.explain,
    )


def _wants_reranker(body: SearchIn, chosen: RerankSettings) -> bool:
    """Report whether the reranker orders the first hits.

    Raises:
        InvalidInput: If it is asked for where there is none, or by another name.
    """
    if "rerank" not in body.model_fields_set:
        return not isinstance(chosen, NoRerankSettings) and chosen.by_default
    if body.rerank is False:
        return False
    if isinstance(chosen, NoRerankSettings):
        raise InvalidInput("rerank", "asks for a reranker, and none is configured; set rerank.kind, or leave it out")
    if body.rerank not in {True, chosen.model}:
        named = f"true, false or {chosen.model}" if chosen.model else "true or false: it has no name"
        raise InvalidInput("rerank", f"names no reranker that is configured; expected {named}")
    return True


def _tiers_that_count(tiers: Sequence[Tier], body: SearchIn) -> tuple[Tier, ...]:
    left = searched_tiers(tiers, body.weights)
    if not left:
        raise InvalidInput("weights", "leave no source of the searched tiers a weight above 0")
    return left


def _tiers_of_scope(
    tiers: tuple[Tier, ...], body: SearchIn, scope: Scope, chosen: WorkspaceSettings, settings: Settings
) -> tuple[Tier, ...]:
    """Return the tiers without the messages, where those of one session alone are searched and none is named.

    Raises:
        InvalidInput: If no tier is left.
    """
    session_scope = chosen.session_scope or settings.search.session_scope
    if scope.session is not None or "tiers" in body.model_fields_set or session_scope == "namespace":
        return tiers
    left = tuple(tier for tier in tiers if tier is not Tier.SESSIONS)
    if not left:
        raise InvalidInput("session", "is missing; messages are searched by session here, and no other tier is")
    return left


async def _workspace_settings(services: Services, scope: Scope) -> tuple[WorkspaceSettings, Mapping[str, str]]:
    reading = services.reads.workspaces.get(scope.tenant, scope.workspace)
    deadline_s = services.settings.search.source_deadline_s
    found, degraded = await read_or_degrade("workspace_settings", reading, deadline_s)
    return found or UNSET, degraded


async def _memory_profile(services: Services, scope: Scope) -> tuple[MemoryProfile | None, Mapping[str, str]]:
    if scope.agent is None:
        return None, {}
    reading = services.reads.memory_profiles.get(scope)
    return await read_or_degrade("memory_profile", reading, services.settings.search.source_deadline_s)
