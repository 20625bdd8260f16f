"""The read path: embed once, ask every tier at the same time, fuse what answered."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Protocol, runtime_checkable

from lamina.aio.deadline import time_limit
from lamina.core.metrics import DEGRADED, SEARCH_SECONDS, SEARCHES, SOURCE_FAILURES, SOURCE_SECONDS, UNMEASURED, Meter
from lamina.core.metrics import Outcome as SearchOutcome
from lamina.core.ports import Clock, QuestionEmbedder, Searcher, Shares, TierSearcher
from lamina.core.queries import Answer, Failure, FusedHit, Query, Ranking, SearchRequest
from lamina.core.scope import Scope
from lamina.core.sharing import ForeignAnswers, Share, foreign_queries, gathered, merged
from lamina.core.tiers import TIER_OF, Source, Tier
from lamina.errors import LaminaError, Unavailable
from lamina.policies.ranking.diversity import diversify
from lamina.policies.ranking.fusion import Manner, RankingPolicy, fuse

EMBEDDER = "embedder"
SHARES = "shares"
Outcome = Ranking | Failure


@runtime_checkable
class Measurable(Protocol):
    """A searcher that can tell how each of its sources does."""

    def measured_by(self, meter: Meter) -> TierSearcher:
        """Return the same searcher, measured."""
        ...


def measured(searcher: TierSearcher, meter: Meter) -> TierSearcher:
    """Return the searcher, measured if it can be."""
    return searcher.measured_by(meter) if isinstance(searcher, Measurable) else searcher


class SourcesOfTier:
    """All sources of one tier in one process, asked at once, each with its own deadline.

    Args:
        searchers: The tier's sources.
        deadline_s: Seconds after which a source counts as failed.
        meter: Takes how long each source took, and which failed.
    """

    def __init__(self, searchers: Sequence[Searcher], *, deadline_s: float, meter: Meter = UNMEASURED) -> None:
        self._searchers = searchers
        self._deadline_s = deadline_s
        self._meter = meter

    def measured_by(self, meter: Meter) -> "SourcesOfTier":
        """Return the same sources, measured."""
        return SourcesOfTier(self._searchers, deadline_s=self._deadline_s, meter=meter)

    async def search(self, query: Query) -> Mapping[Source, Outcome]:
        """Return every source's ranking or its failure."""
        outcomes = await asyncio.gather(*(self._ask(searcher, query) for searcher in self._searchers))
        return {searcher.source: outcome for searcher, outcome in zip(self._searchers, outcomes, strict=True)}

    async def _ask(self, searcher: Searcher, query: Query) -> Outcome:
        began = time.monotonic()
        outcome = await self._outcome(searcher, query)
        record_source(self._meter, searcher.source, time.monotonic() - began, outcome)
        return outcome

    async def _outcome(self, searcher: Searcher, query: Query) -> Outcome:
        try:
            async with time_limit(self._deadline_s):
                return await searcher.search(query)
        except Exception as error:  # noqa: BLE001 - a source may fail, the answer may not
            return Failure(describe(error))


def record_source(meter: Meter, source: Source, seconds: float, outcome: Outcome) -> None:
    """Record how long a source took, and whether it failed."""
    meter.record(SOURCE_SECONDS, seconds, source=source.value)
    if isinstance(outcome, Failure):
        meter.record(SOURCE_FAILURES, source=source.value)


def describe(error: BaseException) -> str:
    """Return an error's text for `degraded`; ours and late answers as they are, others with their type."""
    return str(error) if isinstance(error, LaminaError | TimeoutError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a search waits, in seconds."""

    embed_s: float
    tier_s: float


@dataclass(frozen=True, slots=True)
class Known:
    """What a search need not find out any more, because somebody read it for this very request.

    Args:
        embedding: Float32 bytes of the question's unit vector.
        graph: What the graph's sources say.
        shares: What other workspaces share.
    """

    embedding: bytes | None = None
    graph: Mapping[Source, Ranking] | None = None
    shares: tuple[Share, ...] | None = None


NOTHING_KNOWN = Known()


class Search:
    """Search over all tiers.

    Args:
        embedder: Makes the query's vector; without it, sources of words still answer.
        tiers: The searchers by tier, with the sources each is expected to answer for.
        unserved: Why a tier is not among them (``disabled by graph.kind=off``); whoever asks for it is told.
        generation: The active generation of vectors.
        policy: How the rankings are fused.
        deadlines: How long to wait.
        clock: The time of day, from which ages are counted.
        shares: What other workspaces share; ``None`` if nothing is.
        meter: Takes what came of each search, and how long it took.
    """

    def __init__(
        self,
        embedder: QuestionEmbedder,
        tiers: Mapping[Tier, TierSearcher],
        *,
        unserved: Mapping[Tier, str] | None = None,
        generation: int,
        policy: RankingPolicy,
        deadlines: Deadlines,
        clock: Clock,
        shares: Shares | None = None,
        meter: Meter = UNMEASURED,
    ) -> None:
        self._embedder = embedder
        self._tiers = tiers
        self._unserved = unserved or {}
        self._generation = generation
        self._policy = policy
        self._deadlines = deadlines
        self._clock = clock
        self._shares = shares
        self._meter = meter

    async def search(self, request: SearchRequest, known: Known = NOTHING_KNOWN) -> Answer:
        """Return the fused answer; what did not answer is named in ``degraded``.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If no source answered at all; or if nothing was found, something failed, and Postgres does
                not answer: then an index that holds nothing is all that answered.
        """
        began = time.monotonic()
        try:
            answer = await self._answered(request, known)
        except Unavailable:
            self._record(SearchOutcome.FAILED, began)
            raise
        lacking = self._lacking(answer)
        self._record(SearchOutcome.DEGRADED if lacking else SearchOutcome.OK, began)
        for name in lacking:
            self._meter.record(DEGRADED, source=name)
        return answer

    def _record(self, outcome: SearchOutcome, began: float) -> None:
        self._meter.record(SEARCHES, outcome=outcome)
        self._meter.record(SEARCH_SECONDS, time.monotonic() - began)

    async def _answered(self, request: SearchRequest, known: Known) -> Answer:
        query, embedder_failure = await self._embedded(replace(request.query(), generation=self._generation), known)
        outcomes, foreign = await asyncio.gather(
            self._ask(request.tiers, query, known), self._ask_others(request.tiers, query, known)
        )
        own = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Failure)}
        rankings = merged(own, foreign.rankings, query.limit)
        failures = {name.value: outcome.reason for name, outcome in outcomes.items() if isinstance(outcome, Failure)}
        failures |= foreign.failures
        missing = self._missing(request.tiers)
        if not rankings:
            raise Unavailable("search", _why_nothing(failures | missing, request.tiers))
        if failures and not any(rankings.values()):
            await self._prove_postgres(query.scope)
        return Answer(
            hits=self._ranked(rankings, request, query),
            answered={name: len(ranking) for name, ranking in rankings.items()},
            degraded=failures | missing | embedder_failure,
            graph=None if embedder_failure else _of_graph(outcomes),
        )

    def lacks(self, answer: Answer) -> bool:
        """Tell whether something failed that would have answered on another day: what is switched off never does."""
        return bool(self._lacking(answer))

    def _lacking(self, answer: Answer) -> set[str]:
        return set(answer.degraded) - {tier.name.lower() for tier in self._unserved}

    def _ranked(self, rankings: Mapping[Source, Ranking], request: SearchRequest, query: Query) -> tuple[FusedHit, ...]:
        manner = Manner(
            method=request.fusion,
            normalise=request.normalise,
            depth=request.per_source,
            now=query.filters.as_of or self._clock(),
            has_vector=query.embedding is not None,
        )
        fused = fuse(rankings, manner, self._policy)
        relevant = [hit for hit in fused if hit.score >= request.min_score]
        return diversify(relevant, self._policy.diversity, enough=request.limit)[: request.limit]

    def _missing(self, wanted: Sequence[Tier]) -> dict[str, str]:
        return {
            tier.name.lower(): self._unserved[tier]
            for tier in wanted
            if tier in self._unserved and tier not in self._tiers
        }

    async def _embedded(self, query: Query, known: Known) -> tuple[Query, dict[str, str]]:
        if known.embedding is not None:
            return replace(query, embedding=known.embedding), {}
        try:
            async with time_limit(self._deadlines.embed_s):
                embedding = await self._embedder.embed_question(query.scope, query.text)
        except Exception as error:  # noqa: BLE001 - words are searched without it
            return query, {EMBEDDER: describe(error)}
        return replace(query, embedding=embedding), {}

    async def _ask(self, wanted: Sequence[Tier], query: Query, known: Known) -> dict[Source, Outcome]:
        tiers = [tier for tier in wanted if tier in self._tiers]
        told = known.graph if Tier.GRAPH in tiers else None
        asked = tiers if told is None else [tier for tier in tiers if tier is not Tier.GRAPH]
        answers = await asyncio.gather(*(self._ask_tier(tier, query) for tier in asked))
        return {name: outcome for answer in (*answers, told or {}) for name, outcome in answer.items()}

    async def _ask_others(self, wanted: Sequence[Tier], query: Query, known: Known) -> ForeignAnswers:
        """Ask the workspaces that share something with the query's."""
        now = self._clock()
        try:
            shares = await self._shares_into(query.scope, known, now)
        except Exception as error:  # noqa: BLE001 - the own workspace answers without them
            return ForeignAnswers({}, {SHARES: describe(error)})
        asked = foreign_queries(shares, query, [tier for tier in wanted if tier in self._tiers], now)
        return gathered(asked, await asyncio.gather(*(self._ask_tier(item.tier, item.query) for item in asked)))

    async def _shares_into(self, scope: Scope, known: Known, now: datetime) -> tuple[Share, ...]:
        if self._shares is None:
            return ()
        if known.shares is not None:
            return known.shares
        async with time_limit(self._deadlines.tier_s):
            return await self._shares.into(scope, now)

    async def _prove_postgres(self, scope: Scope) -> None:
        """Return if Postgres answers now; what shares say is of no interest, but it stands nowhere else.

        Raises:
            Unavailable: If it does not.
        """
        try:
            await self._shares_into(scope, NOTHING_KNOWN, self._clock())
        except TimeoutError as error:
            raise Unavailable("postgres", str(error)) from None

    async def _ask_tier(self, tier: Tier, query: Query) -> Mapping[Source, Outcome]:
        try:
            async with time_limit(self._deadlines.tier_s):
                return await self._tiers[tier].search(query)
        except Exception as error:  # noqa: BLE001 - a tier may fail, the answer may not
            return _all_failed(tier, describe(error))


def _of_graph(outcomes: Mapping[Source, Outcome]) -> Mapping[Source, Ranking] | None:
    """Return what the graph's sources said; nothing if one of them failed, or none was asked."""
    said = {source: outcome for source, outcome in outcomes.items() if TIER_OF[source] is Tier.GRAPH}
    rankings = {source: outcome for source, outcome in said.items() if not isinstance(outcome, Failure)}
    return rankings if said and len(rankings) == len(said) else None


def _all_failed(tier: Tier, reason: str) -> dict[Source, Outcome]:
    return {source: Failure(reason) for source, its_tier in TIER_OF.items() if its_tier is tier}


def _why_nothing(failures: Mapping[str, str], wanted: Sequence[Tier]) -> str:
    reasons = "; ".join(f"{name}: {reason}" for name, reason in sorted(failures.items()))
    return reasons or f"nothing here serves {', '.join(tier.name.lower() for tier in wanted)}"
