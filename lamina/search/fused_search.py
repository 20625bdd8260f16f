"""Search all tiers at the same time and fuse their answers."""

import asyncio
import logging
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from lamina.aio.deadline import time_limit
from lamina.aio.part_times import timed_part, timing_parts
from lamina.aio.together import together
from lamina.core.metrics import (
    DEGRADED,
    SEARCH_SECONDS,
    SEARCHES,
    TIER_FAILURES,
    TIER_SECONDS,
    UNMEASURED,
    Meter,
    timed,
)
from lamina.core.metrics import CallOutcome as SearchOutcome
from lamina.core.ports import Clock, QuestionEmbedder, RowLookup, ShareLookup, TierSearcher
from lamina.core.queries import (
    Answer,
    Failure,
    FusedHit,
    FusionMethod,
    Memory,
    Query,
    Ranking,
    RerankerState,
    RowScoring,
    SearchRequest,
)
from lamina.core.scope import Scope
from lamina.core.sharing import ForeignAnswers, ForeignQuery, Share, foreign_queries, gather_answers, merge_rankings
from lamina.core.stamps import Remembered
from lamina.core.tiers import TIER_OF, Modality, Source, Tier
from lamina.errors import Unavailable, describe_error
from lamina.policies.ranking.call_weights import source_weights
from lamina.policies.ranking.diversity import diversify
from lamina.policies.ranking.feedback import order_by_votes
from lamina.policies.ranking.fusion import FusionOptions, RankingPolicy, composite_policy, fuse
from lamina.policies.ranking.present_order import WINDOW, asks_for_state, order_for_present, put_right
from lamina.policies.ranking.time_boost import raise_by_time
from lamina.search.late_rows import LateRows
from lamina.search.query_embedding import embed_query, query_of
from lamina.search.second_stage import SecondStage
from lamina.search.tier_sources import SourceOutcome

logger = logging.getLogger(__name__)
SHARES, ROWS = "shares", "rows"
# Of the time that is left for a tier, for the way to it and back.
TRANSPORT_S = 0.5
# So long a tier that used up the time of a search, while another one answered, gets no more than its own deadline.
HASTY_S = 10.0


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a search waits, in seconds.

    Args:
        embed_s: For the question's vector, at most.
        tier_s: For a tier, at least. What the vector left of its time is the tiers', too.
    """

    embed_s: float
    tier_s: float


@dataclass(frozen=True, slots=True)
class SearchHints:
    """Parts of a search that were read for this very request before it.

    Args:
        embedding: Float32 bytes of the question's unit vector.
        graph: The rankings of the graph's sources.
        shares: The shares of other workspaces with this one.
        empty: Tiers that hold nothing in the scope, and so are not asked.
        remembered: What is kept of the question; ``None`` if that was not looked up.
    """

    embedding: bytes | None = None
    graph: Mapping[Source, Ranking] | None = None
    shares: tuple[Share, ...] | None = None
    empty: frozenset[Tier] = frozenset()
    remembered: Remembered | None = None


WITHOUT_HINTS = SearchHints()


class Search:
    """Search over all tiers.

    Args:
        embedder: Makes the query's vector; without it, sources of words still answer.
        tiers: The searchers by tier.
        rows: Reads the rows of the hits that leave.
        unserved: Why a tier is not among them (``disabled by graph.kind=off``), for requests that name it.
        generation: The active generation of vectors.
        policy: How the rankings are fused.
        deadlines: How long to wait.
        clock: The time of day, from which ages are counted.
        shares: Reads the shares of other workspaces; ``None`` if there are none.
        meter: Records each search and each tier: how it ended, and how long it took.
        second_stage: Reranks the first hits; ``None`` if it is off.
        slow_ms: Milliseconds after which a search is logged, with the times of its parts; ``None``: none is.
    """

    def __init__(
        self,
        embedder: QuestionEmbedder,
        tiers: Mapping[Tier, TierSearcher],
        *,
        rows: RowLookup,
        unserved: Mapping[Tier, str] | None = None,
        generation: int,
        policy: RankingPolicy,
        deadlines: Deadlines,
        clock: Clock,
        shares: ShareLookup | None = None,
        meter: Meter = UNMEASURED,
        second_stage: SecondStage | None = None,
        slow_ms: float | None = None,
    ) -> None:
        self._slow_ms = slow_ms
        self._second_stage = second_stage
        self._late_rows = LateRows(rows, policy.diversity)
        # What differs in a name competes for the present; which of it leaves is decided by the order for the present.
        competing = replace(policy.diversity, variants=WINDOW, keeps_latest=True)
        self._competing_rows = LateRows(rows, competing, keeps_spare=True)
        self._embedder = embedder
        self._tiers = tiers
        self._unserved = unserved or {}
        self._generation = generation
        self._policy = policy
        self._deadlines = deadlines
        self._clock = clock
        self._shares = shares
        self._meter = meter
        self._hasty_until: dict[Tier, float] = {}

    async def search(self, request: SearchRequest, hints: SearchHints = WITHOUT_HINTS) -> Answer:
        """Return the fused answer; ``degraded`` names the parts that did not answer.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If no source answered at all; or if nothing was found, something failed, and Postgres does
                not answer: then an index that holds nothing is all that answered.
        """
        began = time.monotonic()
        with timing_parts() as times:
            try:
                answer = await self._search(request, hints)
            except Unavailable:
                self._record(SearchOutcome.FAILED, began)
                raise
            finally:
                self._note_if_slow(times, 1000 * (time.monotonic() - began))
        self._record(SearchOutcome.OK if answer.is_whole else SearchOutcome.DEGRADED, began)
        for name in self._failed_of(answer.degraded):
            self._meter.record(DEGRADED, source=name)
        return answer

    def reranker_state(self) -> RerankerState | None:
        """Return the state of the reranker; ``None`` if there is none."""
        return None if self._second_stage is None else self._second_stage.state

    def _note_if_slow(self, times: Mapping[str, float], took_ms: float) -> None:
        if self._slow_ms is not None and took_ms > self._slow_ms:
            fields = {"took_ms": round(took_ms, 1), "parts_ms": dict(times)}
            logger.warning("slow search: %.0f ms; %s", took_ms, dict(times), extra={"fields": fields})

    def _record(self, outcome: SearchOutcome, began: float) -> None:
        self._meter.record(SEARCHES, outcome=outcome)
        self._meter.record(SEARCH_SECONDS, time.monotonic() - began)

    async def _search(self, request: SearchRequest, hints: SearchHints) -> Answer:
        began = time.monotonic()
        asked = await query_of(request)
        scoring = self._row_scoring(request)
        asked = replace(asked, generation=self._generation, row_scoring=scoring)
        query, without_vector = await self._embed(asked, hints)
        tier_s = self._deadlines.tier_s
        left_s = max(tier_s, self._deadlines.embed_s + tier_s - (time.monotonic() - began))
        query = replace(query, budget_s=max(0.0, left_s - TRANSPORT_S))
        if hints.shares == ():
            outcomes, foreign = await self._ask(request.tiers, query, hints), ForeignAnswers({}, {})
        else:
            outcomes, foreign = await asyncio.gather(
                self._ask(request.tiers, query, hints), self._ask_others(request.tiers, query, hints)
            )
        own = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Failure)}
        rankings = merge_rankings(own, foreign.rankings, query.limit)
        failures = {name.value: outcome.reason for name, outcome in outcomes.items() if isinstance(outcome, Failure)}
        failures |= foreign.failures
        switched_off = {
            tier.name.lower(): self._unserved[tier]
            for tier in request.tiers
            if tier in self._unserved and tier not in self._tiers
        }
        if not rankings:
            reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted((failures | switched_off).items()))
            names = ", ".join(tier.name.lower() for tier in request.tiers)
            raise Unavailable("search", reasons or f"nothing here serves {names}")
        # An index that holds nothing answers, too: that proves nothing while Postgres is away.
        if failures and not any(rankings.values()):
            await self._prove_postgres(query.scope)
        hits, without_rows = await self._hits(rankings, request, query, foreign.asked)
        degraded = failures | switched_off | without_vector | without_rows
        weights = source_weights(request.weights)
        return Answer(
            hits=hits,
            answered={name: len(ranking) for name, ranking in rankings.items() if weights[name]},
            degraded=degraded,
            # Without a vector the graph starts from fewer names, and its rankings are not worth keeping.
            graph=None if without_vector else _graph_rankings(outcomes),
            is_whole=not self._failed_of(degraded),
        )

    def _row_scoring(self, request: SearchRequest) -> RowScoring | None:
        by_meaning = request.weights.get(Modality.VECTOR, 1.0) > 0
        if request.fusion is not FusionMethod.COMPOSITE or not by_meaning:
            return None
        return composite_policy(self._policy, request.relevance).row_scoring()

    def _failed_of(self, degraded: Iterable[str]) -> set[str]:
        """Return the parts that would have answered on another day: a tier that is switched off never does."""
        return set(degraded) - {tier.name.lower() for tier in self._unserved}

    async def _hits(
        self,
        rankings: Mapping[Source, Ranking],
        request: SearchRequest,
        query: Query,
        foreign: Sequence[ForeignQuery],
    ) -> tuple[tuple[FusedHit, ...], dict[str, str]]:
        """Fuse the rankings and read the rows of the best; without them, facts and entities alone are an answer."""
        options = FusionOptions(
            method=request.fusion,
            normalise=request.normalise,
            depth=request.per_source,
            now=query.filters.as_of or self._clock(),
            has_vector=query.embedding is not None,
            weights=request.weights,
            relevance=request.relevance,
        )
        # Diversity comes last: a hit below the least score must not displace one above it.
        fused = raise_by_time(fuse(rankings, options, self._policy), query.time)
        is_of_now = self._is_of_now(request, query)
        # The order for the present is the same whatever the least score: what is below it leaves afterwards. A reranker
        # gives scores of another kind.
        stage = self._second_stage if request.rerank else None
        cuts_late = is_of_now and stage is None
        ranked = list(fused) if cuts_late else [hit for hit in fused if hit.score >= request.min_score]
        pool = stage.pool if stage else 0
        limit = max(request.limit, pool, WINDOW if is_of_now else 0)
        try:
            async with time_limit(self._deadlines.tier_s):
                with timed_part(ROWS):
                    # Of what happened several times, the one at the time that is named is meant.
                    rows = self._competing_rows if is_of_now and query.time is None else self._late_rows
                    hits = await rows.hits(ranked, query, foreign, limit=limit)
                    if is_of_now:
                        hits = await self._late_rows.with_replacing(hits, query, request.tiers, within=request.limit)
        except (Unavailable, TimeoutError) as error:
            whole = [hit for hit in ranked if isinstance(hit.memory, Memory) and hit.score >= request.min_score]
            if not whole:
                raise Unavailable("postgres", describe_error(error)) from error
            return await self._late_rows.hits(whole, query, foreign, limit=request.limit), {ROWS: describe_error(error)}
        hits, degraded = await stage.rerank(query.text, hits) if stage else (hits, {})
        hits = order_by_votes(hits)
        if is_of_now:
            ordered = order_for_present(hits, query.text, as_of=query.filters.as_of is not None, limit=request.limit)
            kept = [hit for hit in ordered if hit.score >= request.min_score] if cuts_late else ordered
            hits = diversify(kept, self._policy.diversity, enough=request.limit).hits
        return put_right(hits[: request.limit], query.text), degraded

    def _is_of_now(self, request: SearchRequest, query: Query) -> bool:
        """Report whether statements are put in their order for the present."""
        is_fused = request.fusion is FusionMethod.RRF and not request.weights and self._policy.present_order
        return is_fused and asks_for_state(query.text, as_of=query.filters.as_of is not None)

    async def _embed(self, query: Query, hints: SearchHints) -> tuple[Query, dict[str, str]]:
        if hints.embedding is not None:
            return replace(query, embedding=hints.embedding), {}
        with timed_part("embedder"):
            return await embed_query(query, self._embedder, self._deadlines.embed_s, hints.remembered)

    async def _ask(self, wanted: Sequence[Tier], query: Query, hints: SearchHints) -> dict[Source, SourceOutcome]:
        tiers = [tier for tier in wanted if tier in self._tiers]
        known = hints.graph if Tier.GRAPH in tiers else None
        nothing: dict[Source, SourceOutcome] = {
            source: () for source, tier in TIER_OF.items() if tier in hints.empty and tier in tiers
        }
        # The rankings that a cache had stand in for the tier; other workspaces are asked all the same.
        asked = [tier for tier in tiers if tier not in hints.empty and (tier is not Tier.GRAPH or known is None)]
        answers = await self._ask_patiently(asked, query)
        return nothing | {name: outcome for answer in (*answers, known or {}) for name, outcome in answer.items()}

    async def _ask_patiently(self, tiers: Sequence[Tier], query: Query) -> Sequence[Mapping[Source, SourceOutcome]]:
        """Ask tiers, each while the time lasts; one that has just let a search wait in vain has its own deadline.

        Where all are late the machine is busy, and where one alone is, it hangs.
        """
        began = time.monotonic()
        own = replace(query, budget_s=None)
        answers = await together(
            [self._ask_tier(tier, query if began >= self._hasty_until.get(tier, 0.0) else own) for tier in tiers]
        )
        late = {
            tier
            for tier, answer in zip(tiers, answers, strict=True)
            if any(isinstance(outcome, Failure) for outcome in answer.values())
        }
        if time.monotonic() - began > self._deadlines.tier_s and len(late) < len(tiers):
            self._hasty_until |= dict.fromkeys(late, time.monotonic() + HASTY_S)
        return answers

    async def _ask_others(self, wanted: Sequence[Tier], query: Query, hints: SearchHints) -> ForeignAnswers:
        """Ask the workspaces that share something with the query's."""
        now = self._clock()
        try:
            shares = hints.shares if hints.shares is not None else await self._read_shares(query.scope, now)
        except Exception as error:  # noqa: BLE001 - the own workspace answers without them
            return ForeignAnswers({}, {SHARES: describe_error(error)})
        asked = foreign_queries(shares, query, [tier for tier in wanted if tier in self._tiers], now)
        return gather_answers(asked, await together([self._ask_tier(item.tier, item.query) for item in asked]))

    async def _read_shares(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        if self._shares is None:
            return ()
        async with time_limit(self._deadlines.tier_s):
            return await self._shares.into(scope, now)

    async def _prove_postgres(self, scope: Scope) -> None:
        """Read the shares again: they stand in Postgres alone, and no index answers in its place.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        try:
            await self._read_shares(scope, self._clock())
        except TimeoutError as error:
            raise Unavailable("postgres", str(error)) from None

    async def _ask_tier(self, tier: Tier, query: Query) -> Mapping[Source, SourceOutcome]:
        try:
            patience_s = query.budget_s + TRANSPORT_S if query.budget_s else 0.0
            async with time_limit(max(self._deadlines.tier_s, patience_s)):
                name = tier.name.lower()
                with timed(self._meter, TIER_SECONDS, TIER_FAILURES, tier=name), timed_part(name):
                    return await self._tiers[tier].search(query)
        except Exception as error:  # noqa: BLE001 - a tier may fail, the answer may not
            failure = Failure(describe_error(error))
            return {source: failure for source, its_tier in TIER_OF.items() if its_tier is tier}


def _graph_rankings(outcomes: Mapping[Source, SourceOutcome]) -> Mapping[Source, Ranking] | None:
    """Return the rankings of the graph's sources, or ``None`` if one of them failed or none was asked."""
    of_graph = {source: outcome for source, outcome in outcomes.items() if TIER_OF[source] is Tier.GRAPH}
    rankings = {source: outcome for source, outcome in of_graph.items() if not isinstance(outcome, Failure)}
    return rankings if of_graph and len(rankings) == len(of_graph) else None
