"""Search the sources of one tier in one process."""

import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol
from uuid import UUID

from lamina.aio.deadline import time_limit
from lamina.aio.together import together
from lamina.core.conversations import NOWHERE, JointAnswer, PlacedMessages
from lamina.core.metrics import SOURCE_FAILURES, SOURCE_SECONDS, UNMEASURED, Meter
from lamina.core.ports import RowLookup, Searcher
from lamina.core.queries import Candidate, Failure, Hit, Memory, Query, Ranking
from lamina.core.tiers import Source, Tier
from lamina.errors import describe_error
from lamina.search.late_rows import row_requests

SourceOutcome = Ranking | Failure


class ContextRanker(Protocol):
    """Ranks the hits of a tier's sources once more, by the memories around them.

    Attributes:
        source: The name of its ranking.
        candidates: Least hits that it wants of each source.
    """

    source: Source
    candidates: int

    async def rank(self, query: Query, rankings: Mapping[Source, Ranking], placed: PlacedMessages) -> Ranking:
        """Return the ranking in context, best first.

        Args:
            query: The question.
            rankings: Of the sources that answered.
            placed: All that they found, and perhaps more, with what stands around it.
        """
        ...


class JointSearcher(Protocol):
    """Several sources of one tier that share a statement.

    Attributes:
        sources: Their names.
    """

    sources: tuple[Source, ...]

    async def search(self, query: Query) -> JointAnswer:
        """Return the ranking of each source, or its failure if another one's answer does not suffer from it."""
        ...


@dataclass(frozen=True, slots=True)
class TierSources:
    """The sources of one tier, all asked at the same time, each waited for while the search's time lasts.

    Args:
        searchers: The sources.
        deadline_s: Seconds for which a source is waited for at least.
        context: Adds a ranking of its own, as long as one source answers.
        meter: Records how long each source took, and its failures.
        rows: Reads the rows of hits for a router of a release before, which takes memories whole.
        joint: Further sources, which share a statement.
    """

    searchers: Sequence[Searcher]
    deadline_s: float
    context: ContextRanker | None = None
    meter: Meter = UNMEASURED
    rows: RowLookup | None = None
    joint: JointSearcher | None = None

    async def search(self, query: Query) -> Mapping[Source, SourceOutcome]:
        """Return every source's ranking or its failure."""
        outcomes = await self._search(query)
        if query.late_rows or self.rows is None:
            return outcomes
        return await self._whole(query, outcomes, self.rows)

    async def _whole(
        self, query: Query, outcomes: Mapping[Source, SourceOutcome], rows: RowLookup
    ) -> Mapping[Source, SourceOutcome]:
        rankings = {source: outcome for source, outcome in outcomes.items() if not isinstance(outcome, Failure)}
        found = {
            (hit.memory.tier, hit.memory.id): hit.memory
            for ranking in rankings.values()
            for hit in ranking
            if isinstance(hit.memory, Candidate)
        }
        memories = await rows.rows(row_requests(found.values(), query))
        whole = {source: tuple(_whole_hits(ranking, memories)) for source, ranking in rankings.items()}
        return {**outcomes, **whole}

    async def _search(self, query: Query) -> Mapping[Source, SourceOutcome]:
        if self.context is None:
            return (await self._ask(query)).outcomes
        answer = await self._ask(replace(query, limit=max(query.limit, self.context.candidates)))
        outcomes = answer.outcomes
        rankings = {source: outcome for source, outcome in outcomes.items() if not isinstance(outcome, Failure)}
        if not rankings:
            return outcomes
        # The context needed more candidates than the query wants of each source.
        cut = {source: ranking[: query.limit] for source, ranking in rankings.items()}
        in_context = await self._in_time(
            self.context.source, query, partial(self.context.rank, query, rankings, answer.placed)
        )
        return {**outcomes, **cut, self.context.source: in_context}

    async def _ask(self, query: Query) -> JointAnswer:
        calls = [self._ask_one(searcher, query) for searcher in self.searchers]
        answers = await together([self._ask_jointly(self.joint, query), *calls] if self.joint else calls)
        outcomes = {source: outcome for answer in answers for source, outcome in answer.outcomes.items()}
        return JointAnswer(outcomes, answers[0].placed if answers else NOWHERE)

    async def _ask_one(self, searcher: Searcher, query: Query) -> JointAnswer:
        return JointAnswer(
            {searcher.source: await self._in_time(searcher.source, query, partial(searcher.search, query))}
        )

    async def _ask_jointly(self, joint: JointSearcher, query: Query) -> JointAnswer:
        began = time.monotonic()
        try:
            async with time_limit(query.wait_s(self.deadline_s)):
                answer = await joint.search(query)
        except Exception as error:  # noqa: BLE001 - a tier may fail, the answer may not
            answer = JointAnswer(dict.fromkeys(joint.sources, Failure(describe_error(error))))
        for source, outcome in answer.outcomes.items():
            self._record(source, began, outcome)
        return answer

    async def _in_time(self, source: Source, query: Query, rank: Callable[[], Awaitable[Ranking]]) -> SourceOutcome:
        outcome: SourceOutcome
        began = time.monotonic()
        try:
            async with time_limit(query.wait_s(self.deadline_s)):
                outcome = await rank()
        except Exception as error:  # noqa: BLE001 - a source may fail, the answer may not
            outcome = Failure(describe_error(error))
        self._record(source, began, outcome)
        return outcome

    def _record(self, source: Source, began: float, outcome: SourceOutcome) -> None:
        if isinstance(outcome, Failure):
            self.meter.record(SOURCE_FAILURES, source=source.value)
        self.meter.record(SOURCE_SECONDS, time.monotonic() - began, source=source.value)


def _whole_hits(ranking: Ranking, memories: Mapping[tuple[Tier, UUID], Memory]) -> Iterator[Hit]:
    for hit in ranking:
        if not isinstance(hit.memory, Candidate):
            yield hit
        elif (memory := memories.get((hit.memory.tier, hit.memory.id))) is not None:
            yield replace(hit, memory=memory)
