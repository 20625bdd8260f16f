"""What an index of words and vectors promises, on every engine that runs here and every configured server."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lamina.core.fingerprints import fingerprint
from lamina.core.ports import Change
from lamina.core.queries import Compare, FilterField, Filters, Operator
from lamina.core.scope import Scope
from lamina.errors import Misconfigured
from tests.support.filtered import STRANGE
from tests.support.indexes import (
    ACME,
    HYBRID_ADAPTERS,
    ONE,
    THREE,
    TWO,
    Place,
    asked,
    chunk_count,
    close,
    found,
    place,
    record,
)
from tests.support.spellings import SPELLINGS


@pytest.fixture(params=HYBRID_ADAPTERS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(request.param, tmp_path)


@pytest.fixture(params=HYBRID_ADAPTERS)
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(request.param, tmp_path, is_lasting=True)


@pytest.fixture
async def index(where: Place) -> AsyncIterator[Any]:
    opened = where.index()
    yield opened
    await close(opened)


async def test_what_was_applied_is_visible_when_the_call_returns(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea")), Change(TWO, record("black coffee"))])

    assert (await found(index, "green tea"))["words"] == [(ONE, 0)]
    assert (await found(index, "black coffee"))["vectors"][0] == (TWO, 0)


async def test_better_matches_come_first_and_figures_are_higher_for_them(index: Any) -> None:
    texts = ("green tea with honey", "green tea", "tea", "black coffee")
    await index.apply([Change(UUID(int=number), record(text)) for number, text in enumerate(texts, 1)])

    by_words, by_vector = await index.by_both(asked("green tea with honey"))

    assert [item.place[0].int for item in by_words] == [1, 2, 3]
    assert [item.place[0].int for item in by_vector][:3] == [1, 2, 3]
    assert all(one.bm25 > other.bm25 > 0 for one, other in pairwise(by_words))
    assert all(1.0001 >= one.cosine >= other.cosine >= -1 for one, other in pairwise(by_vector))
    assert by_vector[0].cosine == pytest.approx(1, abs=1e-4)


async def test_each_way_alone_finds_what_both_find(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea")), Change(TWO, record("green tea with milk and honey"))])
    query = asked("green tea")

    by_words, by_vector = await index.by_both(query)

    assert await index.by_words(query) == by_words
    assert await index.by_vector(query) == by_vector


async def test_a_question_without_words_or_without_a_vector_is_asked_the_other_way(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    without_words = await index.by_both(replace(asked("green tea"), words=()))
    without_vector = await index.by_both(replace(asked("green tea"), embedding=None))

    assert [len(ranking) for ranking in without_words] == [0, 1]
    assert [len(ranking) for ranking in without_vector] == [1, 0]


async def test_as_many_memories_are_found_as_are_asked_for_however_many_chunks_one_has(index: Any) -> None:
    long = record(*(f"green tea {number}" for number in range(40)))
    changes = [Change(ONE, long), *(Change(UUID(int=n), record(f"green tea number {n}")) for n in range(2, 9))]
    await index.apply(changes)

    by_words, by_vector = await index.by_both(asked("green tea", limit=5))

    assert len({item.place[0] for item in by_words}) >= 5
    assert len({item.place[0] for item in by_vector}) >= 5


async def test_an_empty_index_finds_nothing(index: Any) -> None:
    assert await found(index, "green tea") == {"words": [], "vectors": []}
    assert await index.inventory("acme") == {}


async def test_applying_the_same_changes_twice_is_applying_them_once(index: Any) -> None:
    changes = [Change(ONE, record("green tea", "and milk")), Change(TWO, record("black tea")), Change(THREE, None)]
    await index.apply(changes)
    once = (await chunk_count(index), await found(index, "tea"))

    await index.apply(changes)

    assert (await chunk_count(index), await found(index, "tea")) == once
    assert once[0] == 3


async def test_the_last_state_of_a_memory_holds(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    await index.apply([Change(ONE, record("black coffee"))])

    assert (await found(index, "green tea"))["words"] == []
    assert (await found(index, "black coffee"))["words"] == [(ONE, 0)]
    assert await chunk_count(index) == 1


async def test_replaying_an_older_state_and_then_the_last_one_leaves_the_last_one(index: Any) -> None:
    older, last = Change(ONE, record("green tea", "and milk")), Change(ONE, record("black coffee"))

    for change in (older, last, older, last):
        await index.apply([change])

    assert await index.inventory("acme") == {ONE: fingerprint(last.record)}


async def test_a_memory_that_became_shorter_leaves_no_chunk_behind(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea", "black coffee", "red wine"))])

    await index.apply([Change(ONE, record("green tea"))])

    assert await chunk_count(index) == 1
    assert (await found(index, "red wine"))["words"] == []


async def test_a_memory_that_became_longer_has_all_its_chunks(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    await index.apply([Change(ONE, record("green tea", "black coffee"))])

    assert (await found(index, "black coffee"))["words"] == [(ONE, 1)]


async def test_a_deleted_memory_is_gone_and_the_others_stay(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea", "and milk")), Change(TWO, record("green tea too"))])

    await index.apply([Change(ONE, None)])

    assert await found(index, "green tea") == {"words": [(TWO, 0)], "vectors": [(TWO, 0)]}
    assert list(await index.inventory("acme")) == [TWO]


async def test_deleting_an_unknown_memory_is_fine(index: Any) -> None:
    await index.apply([Change(ONE, None)])
    await index.apply([Change(TWO, record("green tea")), Change(THREE, None)])

    assert await chunk_count(index) == 1


async def test_no_changes_change_nothing(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    await index.apply([])

    assert await chunk_count(index) == 1


async def test_a_deleted_memory_can_come_back(index: Any) -> None:
    for state in (record("green tea"), None, record("green tea")):
        await index.apply([Change(ONE, state)])

    assert (await found(index, "green tea"))["words"] == [(ONE, 0)]


async def test_many_changes_are_applied_whole(index: Any) -> None:
    changes = [Change(UUID(int=number), record(f"note number {number}")) for number in range(1, 601)]

    await index.apply(changes)
    await index.apply([Change(change.id, None) for change in changes[:300]])

    assert await chunk_count(index) == 300
    assert (await found(index, "599"))["words"] == [(UUID(int=599), 0)]


async def test_changes_from_several_callers_are_all_applied(index: Any) -> None:
    batches = [[Change(UUID(int=number), record(f"note {number}"))] for number in range(1, 21)]

    await asyncio.gather(*(index.apply(batch) for batch in batches))

    assert await chunk_count(index) == 20


async def test_a_search_while_a_memory_is_replaced_never_misses_it(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])
    replacing = asyncio.create_task(_replace(index, 30))

    seen = []
    while not replacing.done():
        seen.append((await found(index, "green tea"))["words"])
        await asyncio.sleep(0)
    await replacing

    assert len(seen) > 1
    assert all(places == [(ONE, 0)] for places in seen)


async def _replace(index: Any, times: int) -> None:
    for number in range(times):
        await index.apply([Change(ONE, record(f"green tea {number}"))])
        await asyncio.sleep(0)


@pytest.mark.parametrize("texts", [("🎉",), ("...", "!?"), ("",)])
async def test_a_memory_without_words_is_taken_over_too(index: Any, texts: Sequence[str]) -> None:
    await index.apply([Change(ONE, record(*texts))])

    assert await chunk_count(index) == len(texts)


@pytest.mark.parametrize(
    "text", ["мой кот любит рыбу", "今日は成語しりとり", "שלום לכולם", "Ünïcode Grüße", "LFP-2291-07"]
)
async def test_words_of_any_script_are_found(index: Any, text: str) -> None:
    await index.apply([Change(ONE, record(text)), Change(TWO, record("green tea"))])

    assert (await found(index, text))["words"] == [(ONE, 0)]


@pytest.mark.parametrize(("text", "question"), SPELLINGS)
async def test_a_word_is_found_within_unspaced_text_and_in_other_spellings(
    index: Any, text: str, question: str
) -> None:
    await index.apply([Change(ONE, record(text)), Change(TWO, record("green tea")), Change(THREE, record("紅茶 ชา"))])

    assert (await found(index, question))["words"] == [(ONE, 0)]


async def test_strange_ids_are_distinct_and_nothing_is_dropped(index: Any) -> None:
    ids = {UUID(int=number): text for number, text in enumerate(STRANGE, 1)}
    states = {id_: replace(record("green tea"), tenant=text, workspace=text, user=text) for id_, text in ids.items()}
    await index.apply([Change(id_, state) for id_, state in states.items()])

    for id_, text in ids.items():
        scope = Scope(text, text, user=text)
        assert await found(index, "green tea", scope) == {"words": [(id_, 0)], "vectors": [(id_, 0)]}
        assert await index.inventory(text) == {id_: fingerprint(states[id_])}


async def test_a_scope_sees_its_own_shared_memories_and_its_users(index: Any) -> None:
    shared, anns, other = record("green tea"), record("green tea", user="ann"), record("green tea", tenant="other")
    await index.apply([Change(ONE, shared), Change(TWO, anns), Change(THREE, other)])

    async def seen(scope: Scope) -> set[int]:
        return {place[0].int for place in (await found(index, "green tea", scope))["words"]}

    assert await seen(ACME) == {1, 2}
    assert await seen(Scope("acme", user="ann")) == {1, 2}
    assert await seen(Scope("acme", user="bob")) == {1}
    assert await seen(Scope("acme", "elsewhere")) == set()


async def test_how_often_others_use_a_word_changes_nothing_for_a_tenant(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea")), Change(TWO, record("black tea"))])
    before = [(item.place, item.bm25) for item in await index.by_words(asked("green tea"))]

    await index.apply([Change(UUID(int=n), record("green green tea", tenant="other")) for n in range(10, 60)])

    assert [(item.place, item.bm25) for item in await index.by_words(asked("green tea"))] == before


async def test_a_chunk_found_by_its_words_tells_how_near_it_is(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea")), Change(TWO, record("green tea with milk and honey"))])

    by_words, by_vector = await index.by_both(asked("green tea"))

    nearness = {item.place: item.cosine for item in by_vector}
    assert [item.place for item in by_words] == [(ONE, 0), (TWO, 0)]
    assert all(item.cosine == pytest.approx(nearness[item.place], abs=1e-5) for item in by_words)


async def test_a_filter_narrows_both_ways(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea", category="decision")), Change(TWO, record("green tea"))])
    decisions = Filters(min_confidence=0, where=Compare(FilterField.CATEGORY, Operator.EQ, "decision"))

    by_words, by_vector = await index.by_both(asked("green tea", filters=decisions))

    assert [item.place for item in by_words] == [item.place for item in by_vector] == [(ONE, 0)]


async def test_the_inventory_tells_the_state_of_every_memory(index: Any) -> None:
    states = {ONE: record("green tea", "and milk"), TWO: record("black tea"), THREE: record("tea", tenant="other")}
    await index.apply([Change(id_, state) for id_, state in states.items()])

    assert await index.inventory("acme") == {id_: fingerprint(states[id_]) for id_ in (ONE, TWO)}


async def test_the_inventory_of_thousands_is_whole(where: Place, index: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = 2_100
    if where.adapter == "qdrant_local":  # It takes a minute for thousands: its pages are smaller instead.
        monkeypatch.setattr("lamina.stores.index.qdrant.index.SCROLL_PAGE", 100)
        rows = 210
    changes = [Change(UUID(int=number), record(f"note {number}")) for number in range(1, rows + 1)]
    await index.apply(changes)

    assert set(await index.inventory("acme")) == {change.id for change in changes}


async def test_an_index_of_words_alone_finds_words_and_has_no_vectors(where: Place) -> None:
    index = where.index(dimension=None)
    await index.apply([Change(ONE, replace(record("green tea"), embeddings=()))])

    places = await found(index, "green tea")
    await close(index)

    assert places == {"words": [(ONE, 0)], "vectors": []}


async def test_messages_are_narrowed_by_their_session_and_notes_are_not(where: Place) -> None:
    index = where.index(by_session=True)
    await index.apply([Change(ONE, replace(record("green tea"), session="s1"))])
    in_sessions = [await found(index, "green tea", Scope("acme", session=session)) for session in ("s1", "s2")]
    await close(index)

    assert [places["words"] for places in in_sessions] == [[(ONE, 0)], []]


async def test_a_build_beside_is_not_searched_until_the_switch_and_alone_afterwards(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea")), Change(TWO, record("black tea"))])

    beside = index.beside(1)
    await beside.apply([Change(ONE, record("green tea")), Change(THREE, record("red tea"))])
    before = set((await found(index, "tea"))["words"])
    await beside.flush()
    await index.switch(1)
    after = set((await found(index, "tea"))["words"])

    assert before == {(ONE, 0), (TWO, 0)}
    assert after == {(ONE, 0), (THREE, 0)}


async def test_changes_after_a_switch_go_to_the_new_build(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])
    await index.beside(1).apply([Change(ONE, record("green tea"))])
    await index.switch(1)

    await index.apply([Change(TWO, record("black tea"))])

    assert set(await index.inventory("acme")) == {ONE, TWO}


async def test_a_switch_may_be_repeated_and_so_may_changes_of_its_build(index: Any) -> None:
    await index.beside(3).apply([Change(ONE, record("green tea"))])
    await index.switch(3)

    await index.switch(3)
    await index.beside(3).apply([Change(ONE, record("green tea"))])
    await index.switch(3)

    assert (await found(index, "green tea"))["words"] == [(ONE, 0)]


async def test_a_build_of_nothing_takes_the_place_of_something(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    await index.switch(1)

    assert await found(index, "green tea") == {"words": [], "vectors": []}


async def test_one_build_after_the_other_takes_the_place(index: Any) -> None:
    for build in (1, 2, 5):
        await index.beside(build).apply([Change(UUID(int=build), record("green tea"))])
        await index.switch(build)

    assert (await found(index, "green tea"))["words"] == [(UUID(int=5), 0)]


async def test_searches_during_a_switch_find_the_old_or_the_new_and_never_nothing(index: Any) -> None:
    await index.apply([Change(ONE, record("green tea"))])
    await index.beside(1).apply([Change(ONE, record("green tea"))])
    stop = asyncio.Event()

    async def search() -> list[list[Any]]:
        seen = []
        while not stop.is_set():
            seen.append((await found(index, "green tea"))["words"])
            await asyncio.sleep(0)
        return seen

    searching = [asyncio.create_task(search()) for _ in range(3)]
    await index.switch(1)
    await asyncio.sleep(0.05)
    stop.set()

    assert all(places == [(ONE, 0)] for seen in await asyncio.gather(*searching) for places in seen)


async def places(index: Any, scope: Scope) -> dict[str, set[tuple[UUID, int]]]:
    return {way: set(ranking) for way, ranking in (await found(index, "tea", scope)).items()}


async def test_after_it_was_closed_and_opened_again_everything_is_there(lasting: Place) -> None:
    first = lasting.index()
    await first.apply([Change(ONE, record("green tea", "and milk")), Change(TWO, record("black tea", user="ann"))])
    before = await places(first, ACME), await places(first, Scope("acme", user="bob"))
    await first.flush()
    await close(first)

    second = lasting.index()
    after = await places(second, ACME), await places(second, Scope("acme", user="bob"))
    await second.apply([Change(ONE, None)])
    left = await chunk_count(second)
    await close(second)

    assert after == before
    assert left == 1


async def test_after_a_switch_and_a_restart_the_new_build_is_searched(lasting: Place) -> None:
    first = lasting.index()
    await first.apply([Change(ONE, record("green tea"))])
    await first.beside(2).apply([Change(TWO, record("green tea"))])
    await first.switch(2)
    await close(first)

    second = lasting.index()
    places = await found(second, "green tea")
    await close(second)

    assert places["words"] == [(TWO, 0)]


async def test_an_index_of_vectors_of_another_length_is_refused(lasting: Place) -> None:
    first = lasting.index()
    await first.apply([Change(ONE, record("green tea"))])
    await close(first)

    with pytest.raises(Misconfigured, match=r"64.*32"):
        await _opened_for(lasting, 32)


async def _opened_for(place: Place, dimension: int) -> None:
    other = place.index(dimension=dimension)
    try:
        await other.by_both(asked("green tea"))
    finally:
        await close(other)
