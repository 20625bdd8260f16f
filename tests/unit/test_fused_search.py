import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from uuid import UUID

import numpy as np
import pytest
from numpy.typing import NDArray

from lamina.core.memories import Chunk
from lamina.core.ports import Embedder, RowLookup, ShareLookup, TierSearcher
from lamina.core.queries import Failure, Filters, FusionMethod, Hit, Memory, Query, Ranking, RowRequest
from lamina.core.scope import Scope
from lamina.core.sharing import Share
from lamina.core.tiers import Source, Tier
from lamina.errors import InvalidInput, Unavailable, describe_error
from lamina.search.fused_search import WITHOUT_HINTS, Deadlines, Search, SearchHints
from lamina.search.late_rows import LEAST_SPARE
from lamina.search.tier_sources import TierSources
from tests.support.embedders import Uncached
from tests.support.virtual_time import in_virtual_time
from tests.unit.builders import NOON, POLICY, Rows, candidate, memory, query, ranking, request

SOON = 0.2
NEVER = 3600.0
VECTOR = np.asarray([[0.6, 0.8]], dtype=np.float32)


class Answers:
    """A source that answers with a ranking and notes what it was asked."""

    def __init__(self, source: Source, *numbers: int) -> None:
        self.source = source
        self.asked: list[Query] = []
        self._ranking = ranking(source, *numbers)

    async def search(self, query: Query) -> Ranking:
        self.asked.append(query)
        return self._ranking


class AnswersWith(Answers):
    def __init__(self, source: Source, found: Ranking) -> None:
        super().__init__(source)
        self._ranking = found


class Hangs(Answers):
    async def search(self, query: Query) -> Ranking:
        self.asked.append(query)
        await asyncio.sleep(NEVER)
        return self._ranking


class Raises(Answers):
    def __init__(self, source: Source, error: Exception) -> None:
        super().__init__(source)
        self._error = error

    async def search(self, query: Query) -> Ranking:
        raise self._error


class Together(Answers):
    """Answers only once all its companions have been asked too."""

    def __init__(self, source: Source, barrier: asyncio.Barrier) -> None:
        super().__init__(source, 1)
        self._barrier = barrier

    async def search(self, query: Query) -> Ranking:
        async with asyncio.timeout(60):
            await self._barrier.wait()
        return await super().search(query)


class TierDown:
    def __init__(self, error: Exception | None = None) -> None:
        self._error = error

    async def search(self, query: Query) -> Mapping[Source, Ranking | Failure]:
        if self._error:
            raise self._error
        await asyncio.sleep(NEVER)
        return {}


class Embeds:
    """An embedder that answers with one vector, after a while, or with an error."""

    def __init__(self, *, after_s: float = 0, error: Exception | None = None) -> None:
        self.asked: list[str] = []
        self._after_s = after_s
        self._error = error

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.asked += texts
        if self._after_s:
            await asyncio.sleep(self._after_s)
        if self._error:
            raise self._error
        return VECTOR

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        raise NotImplementedError


def search_over(
    tiers: Mapping[Tier, TierSearcher],
    embedder: Embedder | None = None,
    *,
    unserved: Mapping[Tier, str] | None = None,
    shares: ShareLookup | None = None,
    rows: RowLookup | None = None,
) -> Search:
    deadlines = Deadlines(embed_s=SOON, tier_s=SOON)
    return Search(
        Uncached(embedder or Embeds()),
        tiers,
        rows=rows or Rows(),
        unserved=unserved,
        generation=3,
        policy=POLICY,
        deadlines=deadlines,
        clock=lambda: NOON,
        shares=shares,
    )


def tier_of(*sources: Answers) -> TierSources:
    return TierSources(sources, deadline_s=SOON / 2)


@in_virtual_time
async def test_every_source_of_a_tier_answers_under_its_name() -> None:
    tier = tier_of(Answers(Source.NOTES_HYBRID, 1, 2), Answers(Source.NOTES_WARM))

    outcomes = await tier.search(query())

    assert outcomes == {Source.NOTES_HYBRID: ranking(Source.NOTES_HYBRID, 1, 2), Source.NOTES_WARM: ()}


@in_virtual_time
async def test_the_sources_of_a_tier_are_asked_at_the_same_time() -> None:
    barrier = asyncio.Barrier(2)
    sources = (Together(Source.NOTES_HYBRID, barrier), Together(Source.NOTES_WARM, barrier))

    outcomes = await TierSources(sources, deadline_s=1).search(query())

    assert [len(outcome) for outcome in outcomes.values() if not isinstance(outcome, Failure)] == [1, 1]


@in_virtual_time
async def test_a_source_that_misses_its_deadline_is_a_failure_and_the_other_answers() -> None:
    tier = tier_of(Hangs(Source.NOTES_HYBRID), Answers(Source.NOTES_WARM, 1))

    outcomes = await tier.search(query())

    assert outcomes[Source.NOTES_HYBRID] == Failure(f"no answer within {SOON / 2} s")
    assert outcomes[Source.NOTES_WARM] == ranking(Source.NOTES_WARM, 1)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (ValueError("bad shard"), "ValueError: bad shard"),
        (Unavailable("postgres", "gone"), "postgres is not available: gone; retry in 1 s"),
        (TimeoutError(), "no answer within"),
    ],
)
@in_virtual_time
async def test_a_source_that_raises_is_a_failure_with_its_reason(error: Exception, reason: str) -> None:
    tier = tier_of(Raises(Source.NOTES_HYBRID, error), Answers(Source.NOTES_WARM, 1))

    outcomes = await tier.search(query())
    failure = outcomes[Source.NOTES_HYBRID]

    assert isinstance(failure, Failure)
    assert failure.reason.startswith(reason)
    assert outcomes[Source.NOTES_WARM] == ranking(Source.NOTES_WARM, 1)


@in_virtual_time
async def test_a_search_that_is_given_up_gives_up_its_sources() -> None:
    tier = TierSources([Hangs(Source.NOTES_HYBRID)], deadline_s=NEVER)
    searching = asyncio.create_task(tier.search(query()))
    await asyncio.sleep(0)

    searching.cancel()

    with pytest.raises(asyncio.CancelledError):
        await searching


@in_virtual_time
async def test_the_answer_is_fused_over_all_tiers_and_nothing_is_degraded() -> None:
    sessions = Answers(Source.SESSION_VECTORS, 1)
    notes = Answers(Source.NOTES_HYBRID, 2, 3)
    search = search_over({Tier.SESSIONS: tier_of(sessions), Tier.NOTES: tier_of(notes)})

    answer = await search.search(request("green tea"))

    assert [hit.memory.id.int for hit in answer.hits] == [1, 2, 3]
    assert answer.answered == {Source.SESSION_VECTORS: 1, Source.NOTES_HYBRID: 2}
    assert answer.degraded == {}


@in_virtual_time
async def test_every_source_is_asked_with_one_vector_of_the_active_generation() -> None:
    sessions, notes, embedder = Answers(Source.SESSION_VECTORS, 1), Answers(Source.NOTES_HYBRID, 2), Embeds()
    search = search_over({Tier.SESSIONS: tier_of(sessions), Tier.NOTES: tier_of(notes)}, embedder)

    await search.search(request("Green tea"))

    expected = replace(query("Green tea"), embedding=VECTOR.tobytes(), generation=3)
    assert embedder.asked == ["Green tea"]
    assert sessions.asked == notes.asked == [expected]


@in_virtual_time
async def test_the_answer_has_no_more_hits_than_asked_for() -> None:
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_HYBRID, *range(1, 9)))})

    answer = await search.search(request(limit=3))

    assert [hit.memory.id.int for hit in answer.hits] == [1, 2, 3]
    assert answer.answered == {Source.NOTES_HYBRID: 8}


@in_virtual_time
async def test_sources_contribute_at_least_as_many_hits_as_are_asked_for() -> None:
    notes = Answers(Source.NOTES_HYBRID, 1)
    search = search_over({Tier.NOTES: tier_of(notes)})

    await search.search(request(limit=3))
    await search.search(request(limit=50))

    assert [asked.limit for asked in notes.asked] == [10, 50]


@in_virtual_time
async def test_only_the_tiers_that_are_wanted_are_asked() -> None:
    sessions, notes = Answers(Source.SESSION_VECTORS, 1), Answers(Source.NOTES_HYBRID, 2)
    search = search_over({Tier.SESSIONS: tier_of(sessions), Tier.NOTES: tier_of(notes)})

    answer = await search.search(request(tiers=(Tier.NOTES,)))

    assert answer.answered == {Source.NOTES_HYBRID: 1}
    assert sessions.asked == []


@pytest.mark.parametrize(
    "embedder",
    [
        Embeds(error=Unavailable("embedder", "no replica")),
        Embeds(error=RuntimeError("out of memory")),
        Embeds(after_s=NEVER),
    ],
)
@in_virtual_time
async def test_without_the_embedder_words_are_searched_and_the_answer_says_so(embedder: Embeds) -> None:
    notes = Answers(Source.NOTES_WARM, 1)
    search = search_over({Tier.NOTES: tier_of(notes)}, embedder)

    answer = await search.search(request("green tea"))

    assert [hit.memory.id.int for hit in answer.hits] == [1]
    assert answer.degraded.keys() == {"embedder"}
    assert [(asked.words, asked.embedding) for asked in notes.asked] == [(("green", "tea"), None)]


@in_virtual_time
async def test_without_the_embedder_the_memories_of_the_active_generation_are_searched() -> None:
    notes = Answers(Source.NOTES_WARM, 1)
    search = search_over({Tier.NOTES: tier_of(notes)}, Embeds(error=RuntimeError("out of memory")))

    await search.search(request())

    assert [asked.generation for asked in notes.asked] == [3]


@pytest.mark.parametrize("down", [TierDown(), TierDown(Unavailable("notes", "no replica")), TierDown(OSError("gone"))])
@in_virtual_time
async def test_a_tier_that_hangs_or_fails_degrades_all_its_sources_and_the_others_answer(down: TierDown) -> None:
    search = search_over({Tier.SESSIONS: tier_of(Answers(Source.SESSION_WORDS, 1)), Tier.NOTES: down})

    answer = await search.search(request())

    assert [hit.memory.id.int for hit in answer.hits] == [1]
    assert answer.answered == {Source.SESSION_WORDS: 1}
    assert answer.degraded.keys() == {"notes_hybrid", "notes_warm", "notes_cold"}


@in_virtual_time
async def test_a_source_that_fails_is_named_with_its_reason() -> None:
    tier = tier_of(Raises(Source.NOTES_HYBRID, ValueError("bad shard")), Answers(Source.NOTES_WARM, 1))

    answer = await search_over({Tier.NOTES: tier}).search(request())

    assert answer.degraded == {"notes_hybrid": "ValueError: bad shard"}


@in_virtual_time
async def test_an_empty_answer_is_not_a_failure() -> None:
    answer = await search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_WARM))}).search(request())

    assert (answer.hits, answer.answered, answer.degraded) == ((), {Source.NOTES_WARM: 0}, {})


@in_virtual_time
async def test_if_nothing_answers_the_search_is_not_available_and_says_why() -> None:
    tiers: dict[Tier, TierSearcher] = {
        Tier.SESSIONS: TierDown(),
        Tier.NOTES: tier_of(Raises(Source.NOTES_WARM, OSError("disk"))),
    }

    with pytest.raises(Unavailable) as raised:
        await search_over(tiers).search(request())

    assert raised.value.part == "search"
    assert "notes_warm: OSError: disk" in raised.value.reason
    assert "session_words: no answer within" in raised.value.reason


@pytest.mark.parametrize("text", ["", "  ", "\u200b", "a\x00"])
@in_virtual_time
async def test_a_blank_or_unclean_query_costs_no_embedding(text: str) -> None:
    embedder = Embeds()
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_WARM))}, embedder)

    with pytest.raises(InvalidInput, match="query"):
        await search.search(request(text))

    assert embedder.asked == []


@in_virtual_time
async def test_a_search_that_hangs_everywhere_ends_within_its_deadlines() -> None:
    search = search_over({Tier.SESSIONS: TierDown(), Tier.NOTES: TierDown()}, Embeds(after_s=NEVER))

    async with asyncio.timeout(60):
        with pytest.raises(Unavailable):
            await search.search(request())


class Slow(Answers):
    """A source that answers late, as on a busy machine."""

    def __init__(self, source: Source, after_s: float) -> None:
        super().__init__(source, 1)
        self._after_s = after_s

    async def search(self, query: Query) -> Ranking:
        await asyncio.sleep(self._after_s)
        return await super().search(query)


def patient_search(budget_s: float, embedder: Embedder | None = None, **sources: Answers) -> Search:
    """A search of which each source alone is waited for 0.05 s."""
    return Search(
        Uncached(embedder or Embeds()),
        {Tier[name.upper()]: TierSources([source], deadline_s=0.05) for name, source in sources.items()},
        rows=Rows(),
        generation=3,
        policy=POLICY,
        deadlines=Deadlines(embed_s=budget_s - 0.1, tier_s=0.1),
        clock=lambda: NOON,
    )


@in_virtual_time
async def test_sources_that_are_all_late_are_waited_for_while_the_time_of_the_search_lasts() -> None:
    search = patient_search(60, sessions=Slow(Source.SESSION_WORDS, 0.4), notes=Slow(Source.NOTES_WARM, 0.5))

    for _ in range(2):
        answer = await search.search(request())
        assert (answer.degraded, len(answer.answered)) == ({}, 2)


@in_virtual_time
async def test_the_vector_takes_of_the_time_of_the_search_and_the_sources_have_what_it_leaves() -> None:
    source = Answers(Source.NOTES_WARM, 1)

    await patient_search(60, Embeds(after_s=0.3), notes=source).search(request())

    (asked,) = source.asked
    assert asked.budget_s is not None
    assert 0 < asked.budget_s <= 59.7


@in_virtual_time
async def test_a_tier_that_hangs_alone_takes_the_whole_time_once_and_then_its_own_deadline() -> None:
    hanging = Hangs(Source.SESSION_WORDS)
    search = patient_search(4.0, sessions=hanging, notes=Answers(Source.NOTES_WARM, 1))

    answers = [await search.search(request()) for _ in range(2)]

    assert search._hasty_until.keys() == {Tier.SESSIONS}
    assert all("session_words" in answer.degraded for answer in answers)
    at_first, later = (asked.budget_s for asked in hanging.asked)
    assert at_first is not None
    assert at_first > 1.0
    assert later is None


@in_virtual_time
async def test_if_all_tiers_hang_none_is_held_to_be_the_one_that_does() -> None:
    search = patient_search(0.7, sessions=Hangs(Source.SESSION_WORDS), notes=Hangs(Source.NOTES_WARM))

    with pytest.raises(Unavailable):
        await search.search(request())

    assert search._hasty_until == {}


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (Unavailable("postgres", "gone", 2), "postgres is not available: gone; retry in 2 s"),
        (KeyError("x"), "KeyError: 'x'"),
        (ValueError("a row is refused\nDETAIL: Failing row contains (secret)."), "ValueError: a row is refused"),
    ],
)
def test_an_error_is_described_as_it_is_or_with_its_type(error: Exception, text: str) -> None:
    assert describe_error(error) == text


@in_virtual_time
async def test_a_tier_that_is_switched_off_is_named_with_what_does_so_if_it_is_asked_for() -> None:
    off = {Tier.GRAPH: "disabled by graph.kind=off"}
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_HYBRID, 1))}, unserved=off)

    with_graph = await search.search(request())
    without = await search.search(request(tiers=(Tier.NOTES,)))

    assert with_graph.degraded == {"graph": "disabled by graph.kind=off"}
    assert without.degraded == {}


@in_virtual_time
async def test_if_only_what_is_switched_off_is_asked_for_the_search_says_so() -> None:
    search = search_over({}, unserved={Tier.GRAPH: "disabled by graph.kind=off"})

    with pytest.raises(Unavailable, match=r"graph: disabled by graph\.kind=off"):
        await search.search(request(tiers=(Tier.GRAPH,)))
    with pytest.raises(Unavailable, match="nothing here serves documents"):
        await search.search(request(tiers=(Tier.DOCUMENTS,)))


class NothingShared:
    """Postgres, as far as a search asks it itself: it answers, fails, or hangs."""

    def __init__(self, error: Exception | None = None, *, hangs: bool = False) -> None:
        self._error = error
        self._hangs = hangs

    async def into(self, scope: Scope, now: datetime) -> tuple[Share, ...]:
        if self._hangs:
            await asyncio.sleep(NEVER)
        if self._error:
            raise self._error
        return ()


@pytest.mark.parametrize("postgres", [NothingShared(Unavailable("postgres", "gone")), NothingShared(hangs=True)])
@pytest.mark.parametrize("known", [WITHOUT_HINTS, SearchHints(shares=())])
@in_virtual_time
async def test_an_empty_index_is_no_answer_while_postgres_is_away(postgres: NothingShared, known: SearchHints) -> None:
    notes = tier_of(Answers(Source.NOTES_COLD), Raises(Source.NOTES_WARM, Unavailable("postgres", "gone")))
    search = search_over({Tier.NOTES: notes}, shares=postgres)

    with pytest.raises(Unavailable, match="postgres is not available") as raised:
        await search.search(request(), known)

    assert raised.value.part == "postgres"


@in_virtual_time
async def test_nothing_found_while_a_source_fails_is_an_answer_as_long_as_postgres_is_there() -> None:
    notes = tier_of(Answers(Source.NOTES_COLD), Raises(Source.NOTES_HYBRID, OSError("disk on fire")))
    search = search_over({Tier.NOTES: notes}, shares=NothingShared())

    answer = await search.search(request(), SearchHints(shares=()))

    assert answer.hits == ()
    assert answer.degraded == {"notes_hybrid": "OSError: disk on fire"}


@in_virtual_time
async def test_hits_below_the_least_score_are_left_out() -> None:
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_HYBRID, 1, 2, 3))})

    answer = await search.search(replace(request(), min_score=61 / 62))

    assert [hit.memory.id.int for hit in answer.hits] == [1, 2]


@in_virtual_time
async def test_each_call_chooses_its_fusion() -> None:
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_HYBRID, 1, 2))})

    by_method = {method: await search.search(replace(request(), fusion=method)) for method in FusionMethod}

    scores = {method: [round(hit.score, 3) for hit in answer.hits] for method, answer in by_method.items()}
    assert scores == {
        FusionMethod.RRF: [1.0, 0.984],
        FusionMethod.PLAIN_RRF: [1.0, 0.984],
        FusionMethod.WEIGHTED: [0.667, 0.0],
        FusionMethod.COMPOSITE: [0.85, 0.6],
    }


@in_virtual_time
async def test_ages_are_counted_from_the_date_that_is_asked_for() -> None:
    search = search_over({Tier.NOTES: tier_of(Answers(Source.NOTES_HYBRID, 1))})
    later = replace(request(), fusion=FusionMethod.COMPOSITE, filters=Filters(as_of=NOON + timedelta(days=60)))

    answer = await search.search(later)

    assert answer.hits[0].score == pytest.approx(0.5 + 0.15 + 0.2 * 0.0498, abs=1e-4)


@in_virtual_time
async def test_near_identical_hits_go_behind_distinct_ones_before_the_answer_is_cut() -> None:
    repeated = tuple(Hit(memory(number, content=f"tea{'!' * number}"), 1.0, {"cosine": 1.0}) for number in range(1, 5))
    other = Hit(memory(9, content="coffee"), 0.5, {"cosine": 0.5})
    search = search_over({Tier.NOTES: tier_of(AnswersWith(Source.NOTES_HYBRID, (*repeated, other)))})

    answer = await search.search(request(limit=2))

    assert [hit.memory.id.int for hit in answer.hits] == [1, 9]


def late(source: Source, *numbers: int) -> Ranking:
    return tuple(Hit(candidate(number), 1 / place, {}) for place, number in enumerate(numbers, start=1))


def late_search(rows: RowLookup, *numbers: int) -> Search:
    source = AnswersWith(Source.NOTES_HYBRID, late(Source.NOTES_HYBRID, *numbers))
    return search_over({Tier.NOTES: tier_of(source)}, rows=rows)


@in_virtual_time
async def test_the_rows_of_the_hits_that_leave_are_read_at_once_and_of_a_few_more() -> None:
    rows = Rows()

    answer = await late_search(rows, *range(1, 41)).search(request(limit=4))

    assert [hit.memory.content for hit in answer.hits] == ["row 1", "row 2", "row 3", "row 4"]
    read = [[item.id.int for item in one.found] for asked in rows.asked for one in asked]
    assert read == [list(range(1, 4 + LEAST_SPARE + 1))]


@in_virtual_time
async def test_what_is_gone_between_ranking_and_reading_leaves_its_place_to_the_next() -> None:
    last = 4 + LEAST_SPARE
    rows = Rows(1, *range(3, last + 1))

    answer = await late_search(rows, *range(1, 41)).search(request(limit=4))

    assert [hit.memory.id.int for hit in answer.hits] == [2, last + 1, last + 2, last + 3]
    assert len(rows.asked) == 2


@in_virtual_time
async def test_a_search_whose_rows_cannot_be_read_is_unavailable() -> None:
    class Away:
        async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
            raise Unavailable("postgres", "it is away")

    with pytest.raises(Unavailable, match="it is away"):
        await late_search(Away(), 1, 2).search(request())


@in_virtual_time
async def test_without_rows_facts_are_an_answer_and_the_rows_are_named() -> None:
    class Away:
        async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
            if wanted:
                raise Unavailable("postgres", "it is away")
            return {}

    graph = tier_of(Answers(Source.GRAPH, 7))
    notes = tier_of(AnswersWith(Source.NOTES_HYBRID, late(Source.NOTES_HYBRID, 1)))

    answer = await search_over({Tier.GRAPH: graph, Tier.NOTES: notes}, rows=Away()).search(request())

    assert [hit.memory.id.int for hit in answer.hits] == [7]
    assert answer.degraded.keys() == {"rows"}
    assert not answer.is_whole
