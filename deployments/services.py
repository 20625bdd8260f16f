"""The parts that routes call, however they are spread over processes."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Annotated
from uuid import UUID

from cachetools import LRUCache, TTLCache
from fastapi import Depends, Request, Security
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from deployments.access import access_of
from deployments.json_bodies import JsonRequest
from deployments.metrics.families import store_parts
from deployments.metrics.scrape import Scrape
from deployments.quotas import QuotaDesk
from deployments.rendering import render_context, render_search, render_traversal
from deployments.usage import UsageMeter
from lamina.aio.coalescing import Coalescer
from lamina.aio.deadline import deadline, time_limit
from lamina.aio.probing import FAILED, STATES, Probe
from lamina.aio.write_behind import WriteBehind
from lamina.caching.cached_search import CachedSearch, CachedTraversal
from lamina.core.metrics import UNMEASURED, Meter
from lamina.core.ports import CacheShard, Embedder, Links, ModelReport, Reranker, TierSearcher
from lamina.core.principals import VERBS_OF, Principal, Verb, lowest_role
from lamina.core.queries import Answer, RerankerState, SearchRequest
from lamina.core.tiers import ProjectionName, Tier
from lamina.core.tokens import scope_of
from lamina.errors import (
    Forbidden,
    InsufficientScope,
    LaminaError,
    OutsideBounds,
    Unauthenticated,
    Unavailable,
)
from lamina.ingest.feedback import FeedbackRecorder
from lamina.ingest.graph import GraphRecorder
from lamina.ingest.hits import HitCounter
from lamina.ingest.restoring import Restorer
from lamina.ingest.turns import Recorder
from lamina.maintenance.archived_notes import ArchivedNotes
from lamina.maintenance.compaction import compaction_policy
from lamina.maintenance.erasures import Compaction, Erasures
from lamina.maintenance.live_sessions import Sessions
from lamina.maintenance.operations import Operations
from lamina.policies.limits.request_weight import request_weight
from lamina.projections.audit import Audit
from lamina.search.context import ContextAnswer, ContextRequest
from lamina.search.graph_explorer import Explorer, Traversal, TraversalRequest
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.feedback import FeedbackTable
from lamina.stores.postgres.found_rows import FoundRows
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.job_runs import JobRuns
from lamina.stores.postgres.keys import Keys, has_form_of_key, hash_key
from lamina.stores.postgres.owners import Owners
from lamina.stores.postgres.quotas import Quotas
from lamina.stores.postgres.shares import Shares
from lamina.stores.postgres.usage import UsageTable
from lamina.stores.token_issuer import TokenIssuer, has_form_of_token
from lamina.wiring.archives import build_archived_notes
from lamina.wiring.caches import CacheParts, build_caches
from lamina.wiring.erasures import ErasureParts, build_erasures
from lamina.wiring.events import EventParts, build_event_parts
from lamina.wiring.operations import Workers, build_operations, build_workers
from lamina.wiring.services import (
    DocumentParts,
    FileParts,
    ProcedureParts,
    Reads,
    build_admitted_search,
    build_context_search,
    build_document_parts,
    build_explorer,
    build_file_parts,
    build_graph_recorder,
    build_hit_counter,
    build_memory_linker,
    build_procedure_parts,
    build_recorder,
    build_restorer,
    build_search,
)
from lamina.wiring.stores import utc_now
from lamina.wiring.tokens import build_token_issuer

MAX_CACHED_KEYS = 10_000
MOST_KEYS_OF_A_LOOKUP = 64
PROBE_DEADLINE_S = 2.0
# Name of the probe that every process of the service has.
POSTGRES = "postgres"
USE_INTERVAL_S = 60.0
"""How exactly it is known when a key was last used."""
USE_WINDOW_S = 2.0
LOOKUP_S = 10.0
"""How long a look-up of keys is waited for."""
ReportModel = Callable[[], Awaitable[ModelReport]]
StoreStates = Callable[[], Awaitable[Mapping[str, str]]]


class KeyCheck:
    """Checks API keys; a valid one is trusted for some seconds before it is checked again.

    Args:
        keys: Where keys are kept.
        trust_s: Seconds for which a key is trusted; a revocation takes effect after them at the latest.
        issuer: Checks tokens in place of keys.
    """

    def __init__(self, keys: Keys, *, trust_s: float, issuer: TokenIssuer | None = None) -> None:
        self._issuer = issuer
        # Keys that are tried at the same time are looked up together: one statement is under way at most.
        self._lookups: Coalescer[str, Principal | None] = Coalescer(
            self._find, part="keys", max_items=MOST_KEYS_OF_A_LOOKUP, max_in_flight=1
        )
        self._keys = keys
        self._unknown: TTLCache[bytes, None] = TTLCache(MAX_CACHED_KEYS, trust_s)
        self._trusted: TTLCache[bytes, Principal] = TTLCache(MAX_CACHED_KEYS, trust_s)
        self._noted: TTLCache[UUID, None] = TTLCache(MAX_CACHED_KEYS, USE_INTERVAL_S)
        self._uses: WriteBehind[tuple[UUID, datetime]] = WriteBehind(
            lambda uses: keys.note_uses(dict(uses)), part="key uses", window_s=USE_WINDOW_S
        )
        # Wrong keys of an address end the trying of others, and not the work of those that were right before.
        self._seen: LRUCache[bytes, tuple[Principal, datetime]] = LRUCache(MAX_CACHED_KEYS)

    def knows(self, key: str) -> bool:
        """Report whether a key was valid when it was checked last."""
        return hash_key(key) in self._seen

    async def check(self, key: str | None, *, believed_s: float = 0.0) -> Principal:
        """Return the principal of a key.

        Args:
            key: As it was sent.
            believed_s: Seconds for which it is believed after it was right, while nobody can be asked.

        Raises:
            Unauthenticated: If it is missing, unknown, revoked or expired.
            Unavailable: If nobody can be asked.
        """
        if key and self._issuer is not None and has_form_of_token(key):
            principal = await self._issuer.check(key)
            self._seen[hash_key(key)] = principal, utc_now()
            return principal
        if not key or not has_form_of_key(key):
            raise Unauthenticated
        digest, now = hash_key(key), utc_now()
        if digest in self._unknown:
            raise Unauthenticated
        found = self._trusted.get(digest) or await self._look_up(key, digest, believed_s, now)
        if found is None or found.has_expired(now):
            self._seen.pop(digest, None)
            self._unknown[digest] = None
            raise Unauthenticated
        if found.key_id not in self._noted:
            self._noted[found.key_id] = None
            self._uses.add((found.key_id, now))
        return found

    async def _find(self, keys: Sequence[str]) -> Sequence[Principal | None]:
        # Everybody waits for the one look-up that is under way: on a connection that hangs for ever otherwise.
        async with deadline("keys", LOOKUP_S):
            return await self._keys.find(keys)

    async def _look_up(self, key: str, digest: bytes, believed_s: float, now: datetime) -> Principal | None:
        try:
            principal = await self._lookups.submit(key)
        except Unavailable:
            believed, right_at = self._seen.get(digest, (None, now))
            if believed is None or now - right_at > timedelta(seconds=believed_s):
                raise
            return believed
        if principal is not None:
            # Not renewed by use, or a revoked key that is used all the time would be trusted for ever.
            self._trusted[digest], self._seen[digest] = principal, (principal, now)
        return principal

    async def flush(self) -> None:
        """Write the uses that wait."""
        await self._uses.flush()

    async def close(self) -> None:
        """Write the uses that wait, and end."""
        await self._uses.close()


@dataclass(frozen=True, slots=True)
class Services:
    """Everything a route may call.

    Args:
        probes: Asked for readiness, by part; a probe that raises or hangs is a part not ready.
        stores: Read the states of the stores of projections: one that is away degrades searches, no more.
        report_model: Asks a process how it runs the embedding model.
        audits: Compare a tenant's part of each projection with Postgres.
        metrics: The text of `/metrics`.
        reranker_state: Returns the state of the reranker; ``None`` where there is none.
        workers: Work on the operations over many memories.
        meter: Records the work of this replica.
    """

    settings: Settings
    search: CachedSearch[SearchRequest, Answer]
    context: CachedSearch[ContextRequest, ContextAnswer]
    traversal: CachedTraversal[TraversalRequest, Traversal]
    recorder: Recorder
    graph_recorder: GraphRecorder
    explorer: Explorer
    procedures: ProcedureParts
    documents: DocumentParts
    files: FileParts
    reads: Reads
    key_check: KeyCheck
    hits: HitCounter
    shares: Shares
    owners: Owners
    probes: Mapping[str, Probe]
    stores: Sequence[StoreStates]
    report_model: ReportModel
    audits: Mapping[ProjectionName, Audit]
    caches: CacheParts
    runs: JobRuns
    archives: ArchivedNotes
    sessions: Sessions
    erasures: Erasures
    metrics: Scrape
    reranker_state: Callable[[], RerankerState | None]
    quotas: QuotaDesk
    events: EventParts
    restorer: Restorer
    feedback: FeedbackRecorder
    usage: UsageMeter
    usage_days: UsageTable
    workers: Workers
    operations: Operations
    meter: Meter = UNMEASURED

    async def store_states(self) -> dict[str, str]:
        """Return the state of each projection's store; those of a searcher that does not answer are missing."""
        answers = await asyncio.gather(*(_states_in_time(read) for read in self.stores))
        # A searcher of a release before this one tells the error itself.
        return {name: state if state in STATES else FAILED for states in answers for name, state in states.items()}

    async def count(self, notes: Sequence[UUID]) -> None:
        """Count hits of notes; called after the answer is sent."""
        if notes:
            await self.hits.add(notes)

    async def close(self) -> None:
        """Write the counts and entries that are still in memory."""
        await self.erasures.close()
        await self.operations.close()
        await self.events.feed.close()
        await self.quotas.close()
        await self.usage.close()
        await self.metrics.close()
        await self.key_check.close()
        await self.hits.close()
        await self.caches.close()


@dataclass(frozen=True, slots=True)
class ServiceParts:
    """The ports of the services, in this process or behind deployment handles.

    Args:
        tiers: The searchers of the tiers that are served.
        links: Follows the graph's links; ``None`` without a graph.
        generation: The active generation of vectors.
        shards: The cache shards by name.
        report_model: Asks a process how it runs the embedding model.
        reranker: Orders the first hits; ``None`` if it is off.
    """

    pool: Pool
    embedder: Embedder
    tiers: Mapping[Tier, TierSearcher]
    links: Links | None
    generation: Generation
    shards: Mapping[str, CacheShard]
    report_model: ReportModel
    reranker: Reranker | None = None


def build_services(
    settings: Settings,
    parts: ServiceParts,
    reads: Reads,
    *,
    probes: Mapping[str, Probe],
    stores: Sequence[StoreStates] = (),
    audits: Mapping[ProjectionName, Audit],
    compactions: Mapping[ProjectionName, Compaction] | None = None,
    meter: Meter = UNMEASURED,
) -> Services:
    """Build the services."""
    pool, embedder, generation = parts.pool, parts.embedder, parts.generation.number
    caches = build_caches(settings, pool, embedder, parts.generation, parts.shards)
    shares = Shares(pool)
    explorer = build_explorer(settings, pool, parts.links, generation)
    rows = FoundRows(pool)
    unbounded = build_search(settings, caches.embedder, parts.tiers, rows, generation, shares, meter, parts.reranker)
    search = build_admitted_search(settings, unbounded)
    documents = build_document_parts(settings, pool, embedder, generation)
    files = build_file_parts(settings, pool, documents.recorder)
    hints = None if parts.links is None else explorer
    context = build_context_search(settings, search, reads.profiles, hints, rows, files.reads, FeedbackTable(pool))
    recorder = build_recorder(settings, pool, embedder, caches.embedder, generation)
    procedures = build_procedure_parts(settings, pool, embedder, caches.embedder, generation)
    restorer = build_restorer(settings, pool, embedder, generation)
    workers = build_workers(
        settings,
        pool,
        build_memory_linker(settings, embedder, generation),
        recorder=recorder,
        documents=documents.recorder,
        procedures=procedures.recorder,
        restorer=restorer,
    )
    return Services(
        settings=settings,
        search=CachedSearch(search, render_search, caches.answers),
        context=CachedSearch(context, render_context, caches.answers),
        traversal=CachedTraversal(explorer, render_traversal, caches.answers),
        recorder=recorder,
        graph_recorder=build_graph_recorder(settings, pool, embedder, generation),
        explorer=explorer,
        procedures=procedures,
        documents=documents,
        files=files,
        reads=reads,
        key_check=KeyCheck(reads.keys, trust_s=settings.write.key_cache_s, issuer=build_token_issuer(settings.auth)),
        hits=build_hit_counter(settings, pool),
        shares=shares,
        owners=Owners(pool),
        probes=probes,
        stores=stores,
        report_model=parts.report_model,
        audits=audits,
        caches=caches,
        runs=JobRuns(pool),
        archives=build_archived_notes(settings, pool),
        sessions=Sessions(pool, compaction_policy(settings.jobs)),
        erasures=build_erasures(
            settings,
            ErasureParts(pool, embedder, parts.generation, caches, reads.outbox, audits, compactions or {}),
        ),
        metrics=Scrape(store_parts(caches.shared, reads.outbox, pool, settings.jobs)),
        reranker_state=unbounded.reranker_state,
        quotas=QuotaDesk(Quotas(pool), settings.quotas),
        events=build_event_parts(settings, pool),
        restorer=restorer,
        feedback=FeedbackRecorder(pool, clock=utc_now),
        usage=UsageMeter(UsageTable(pool), clock=utc_now),
        usage_days=UsageTable(pool),
        workers=workers,
        operations=build_operations(pool, workers),
        meter=meter,
    )


async def _states_in_time(read: StoreStates) -> Mapping[str, str]:
    try:
        async with time_limit(PROBE_DEADLINE_S):
            return await read()
    except (LaminaError, TimeoutError):  # Readiness says that the searcher does not answer.
        return {}


async def services_of(request: Request) -> Services:  # Not plain: FastAPI would send it through a thread.
    """Return the services that the application was built with."""
    services = request.app.state.services
    assert isinstance(services, Services)  # noqa: S101 - set by build_api
    return services


ServicesDep = Annotated[Services, Depends(services_of)]
_bearer = HTTPBearer(auto_error=False, description="An API key from `lamina keys create`.")


async def principal_of(
    request: Request,
    services: ServicesDep,
    header: Annotated[HTTPAuthorizationCredentials | None, Security(_bearer)],
) -> Principal:
    """Return the key that sends the request, once it may call the route.

    Raises:
        Unauthenticated: If it is not valid.
        Forbidden: If its role is too low.
        OutsideBounds: If it lacks the verb.
        LimitReached: If it writes, and its tenant stores as much as it may; or if it asks for more than is left of a
            quota of requests.
    """
    principal = getattr(request.state, "principal", None)  # By the front door, before the body was read.
    if principal is None:
        principal = await services.key_check.check(header.credentials if header else None)
    assert isinstance(principal, Principal)  # noqa: S101 - either way
    verb = access_of(request.scope["route"].endpoint).verb
    assert verb is not None  # noqa: S101 - an open route asks for no principal
    if verb not in VERBS_OF[principal.role]:
        raise Forbidden(principal.role, lowest_role(verb))
    if verb not in principal.allowed_verbs():
        if principal.issuer is not None:
            raise InsufficientScope(scope_of(verb))
        allowed = ", ".join(sorted(principal.allowed_verbs()))
        raise OutsideBounds("verbs", f"are {allowed} for this key; this call needs {verb.value}")
    if verb is Verb.WRITE:
        await services.quotas.admit_write(principal)
    if not getattr(request.state, "is_weighed", False):
        # The front door has let it in as a plain one, which most are.
        length = request.headers.get("content-length", "")
        body = request.parsed if isinstance(request, JsonRequest) else None
        weight = request_weight(int(length) if length.isdecimal() else 0, body, request.query_params)
        if weight > 1:
            await services.quotas.admit(principal, weight, paid=1)
    return principal


PrincipalDep = Annotated[Principal, Depends(principal_of)]
