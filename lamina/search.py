"""The read path: embed once, ask every tier at the same time, fuse what answered."""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from lamina.errors import LaminaError, Unavailable
from lamina.ports import Embedder, Searcher, TierSearcher
from lamina.queries import TIER_OF, Answer, Failure, Query, Ranking, SearchRequest, Source, Tier
from lamina.ranking.fusion import fuse_by_reciprocal_rank

EMBEDDER = "embedder"
Outcome = Ranking | Failure


class SourcesOfTier:
    """All sources of one tier in one process, asked at once, each with its own deadline.

    Args:
        searchers: The tier's sources.
        deadline_s: Seconds after which a source counts as failed.
    """

    def __init__(self, searchers: Sequence[Searcher], *, deadline_s: float) -> None:
        self._searchers = searchers
        self._deadline_s = deadline_s

    async def search(self, query: Query) -> Mapping[Source, Outcome]:
        """Return every source's ranking or its failure."""
        outcomes = await asyncio.gather(*(self._ask(searcher, query) for searcher in self._searchers))
        return {searcher.source: outcome for searcher, outcome in zip(self._searchers, outcomes, strict=True)}

    async def _ask(self, searcher: Searcher, query: Query) -> Outcome:
        try:
            return await asyncio.wait_for(searcher.search(query), self._deadline_s)
        except TimeoutError:
            return Failure(f"no answer within {self._deadline_s} s")
        except Exception as error:  # noqa: BLE001 - a source may fail, the answer may not
            return Failure(describe(error))


def describe(error: BaseException) -> str:
    """Return an error's text for `degraded`; ours as they are, others with their type."""
    return str(error) if isinstance(error, LaminaError) else f"{type(error).__name__}: {error}"


@dataclass(frozen=True, slots=True)
class Deadlines:
    """How long a search waits, in seconds."""

    embed_s: float
    tier_s: float


class Search:
    """Search over all tiers.

    Args:
        embedder: Makes the query's vector; without it, sources of words still answer.
        tiers: The searchers by tier, with the sources each is expected to answer for.
        generation: The active generation of vectors.
        rrf_k: Rank offset of the fusion.
        weights: Weight of a source in the fusion, 1 where none is given.
        deadlines: How long to wait.
    """

    def __init__(
        self,
        embedder: Embedder,
        tiers: Mapping[Tier, TierSearcher],
        *,
        generation: int,
        rrf_k: int,
        weights: Mapping[Source, float] | None = None,
        deadlines: Deadlines,
    ) -> None:
        self._embedder = embedder
        self._tiers = tiers
        self._generation = generation
        self._rrf_k = rrf_k
        self._weights = weights
        self._deadlines = deadlines

    async def search(self, request: SearchRequest) -> Answer:
        """Return the fused answer; what did not answer is named in ``degraded``.

        Raises:
            InvalidInput: If the query is blank or a number is out of range.
            Unavailable: If no source answered at all.
        """
        query, embedder_failure = await self._embedded(replace(request.query(), generation=self._generation))
        outcomes = await self._ask(request.tiers, query)
        rankings = {name: outcome for name, outcome in outcomes.items() if not isinstance(outcome, Failure)}
        failures = {name.value: outcome.reason for name, outcome in outcomes.items() if isinstance(outcome, Failure)}
        if not rankings:
            raise Unavailable("search", "; ".join(f"{name}: {reason}" for name, reason in sorted(failures.items())))
        fused = fuse_by_reciprocal_rank(rankings, rrf_k=self._rrf_k, depth=request.per_source, weights=self._weights)
        return Answer(
            hits=fused[: request.limit],
            answered={name: len(ranking) for name, ranking in rankings.items()},
            degraded=failures | embedder_failure,
        )

    async def _embedded(self, query: Query) -> tuple[Query, dict[str, str]]:
        try:
            rows = await asyncio.wait_for(self._embedder.embed([query.text]), self._deadlines.embed_s)
        except TimeoutError:
            return query, {EMBEDDER: f"no answer within {self._deadlines.embed_s} s"}
        except Exception as error:  # noqa: BLE001 - words are searched without it
            return query, {EMBEDDER: describe(error)}
        return replace(query, embedding=rows[0].tobytes()), {}

    async def _ask(self, wanted: Sequence[Tier], query: Query) -> dict[Source, Outcome]:
        tiers = [tier for tier in wanted if tier in self._tiers]
        answers = await asyncio.gather(*(self._ask_tier(tier, query) for tier in tiers))
        return {name: outcome for answer in answers for name, outcome in answer.items()}

    async def _ask_tier(self, tier: Tier, query: Query) -> Mapping[Source, Outcome]:
        try:
            return await asyncio.wait_for(self._tiers[tier].search(query), self._deadlines.tier_s)
        except TimeoutError:
            return _all_failed(tier, f"no answer within {self._deadlines.tier_s} s")
        except Exception as error:  # noqa: BLE001 - a tier may fail, the answer may not
            return _all_failed(tier, describe(error))


def _all_failed(tier: Tier, reason: str) -> dict[Source, Outcome]:
    return {source: Failure(reason) for source, its_tier in TIER_OF.items() if its_tier is tier}
