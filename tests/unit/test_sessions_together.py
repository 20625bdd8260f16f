from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from uuid import UUID

import pytest

from lamina.core.conversations import NOWHERE
from lamina.core.queries import Candidate, Place, Query
from lamina.core.scope import Scope
from lamina.core.tiers import Source, Tier
from lamina.stores.index.ports import ChunkHit, FoundMessages, Visible
from lamina.stores.index.searchers import SessionsTogether

QUERY = Query("boats", ("boats",), Scope("acme"), limit=2, embedding=b"some")


def id_of(number: int) -> UUID:
    return UUID(int=number)


class Words:
    """An index that has found these chunks."""

    def __init__(self, found: Sequence[ChunkHit]) -> None:
        self.found = found

    async def by_words(self, query: Query) -> list[ChunkHit]:
        return list(self.found)


class Rows:
    """Messages as they are stored, without those that are gone."""

    def __init__(self, gone: set[int]) -> None:
        self.gone = {id_of(number) for number in gone}
        self.reads: list[list[Place]] = []

    async def find(self, query: Query, places: Sequence[Place]) -> FoundMessages:
        self.reads.append(list(places))
        there = [place for place in places if place[0] not in self.gone]
        said_at = datetime(2026, 1, 1, tzinfo=UTC)
        text = f"{there[0][0].int} boats" if there else ""
        return FoundMessages(
            Visible({place: Candidate(place[0], Tier.SESSIONS, said_at) for place in there}, text), (), NOWHERE
        )


def chunk(memory: int, bm25: float, number: int = 0) -> ChunkHit:
    return ChunkHit((id_of(memory), number), bm25=bm25)


async def ranked(rows: Rows, found: Sequence[ChunkHit], query: Query = QUERY) -> list[int]:
    answer = await SessionsTogether(Words(found), rows, index_deadline_s=5).search(query)
    ranking = answer.outcomes[Source.SESSION_WORDS]
    assert isinstance(ranking, tuple)
    return [hit.memory.id.int for hit in ranking]


@pytest.mark.parametrize(
    ("found", "expected", "read"),
    [
        ([chunk(1, 9), chunk(2, 8), chunk(3, 7)], [1, 2], 2),
        ([chunk(3, 7), chunk(2, 8), chunk(1, 9)], [1, 2], 2),
        ([chunk(1, 9), chunk(1, 8, 1), chunk(2, 7), chunk(3, 6)], [1, 2], 3),
        # Equals are ordered by their ids, so that all of them are read.
        ([chunk(1, 9), chunk(4, 8), chunk(3, 8), chunk(2, 8), chunk(5, 7)], [1, 2], 4),
        ([chunk(1, 9)], [1], 1),
        ([], [], 0),
    ],
)
async def test_no_more_rows_are_read_than_the_ranking_holds(
    found: Sequence[ChunkHit], expected: list[int], read: int
) -> None:
    rows = Rows(gone=set())

    assert await ranked(rows, found) == expected
    assert [len(places) for places in rows.reads] == [read]


@pytest.mark.parametrize("gone", [{1}, {1, 2}, {2}, {1, 2, 3}, {1, 2, 3, 4}])
async def test_messages_that_are_gone_leave_their_places_to_the_next(gone: set[int]) -> None:
    rows, found = Rows(gone), [chunk(number, 10 - number) for number in range(1, 5)]

    assert await ranked(rows, found) == [number for number in range(1, 5) if number not in gone][:2]
    assert [len(places) for places in rows.reads] == [2, 4]


async def test_the_scale_of_words_is_that_of_the_best_message_that_is_there() -> None:
    found = [chunk(1, 9), chunk(2, 8), chunk(3, 4)]
    asked = replace(QUERY, words=("boats", "3"))
    together = SessionsTogether(Words(found), Rows({1, 2}), index_deadline_s=5)
    (hit,) = (await together.search(asked)).outcomes[Source.SESSION_WORDS]  # type: ignore[misc]

    assert (hit.memory.id.int, hit.score) == (3, 1.0)
