"""What the index of cold notes promises, on every engine that runs here and every configured server."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, get_args
from uuid import UUID

import pytest

from lamina.core.fingerprints import fingerprint
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.stores.index.cold.collections import Layout
from tests.support.filtered import STRANGE
from tests.support.indexes import (
    ACME,
    ADAPTERS,
    ONE,
    THREE,
    TWO,
    Place,
    asked,
    chunk_count,
    close,
    gone,
    nearest,
    place,
    placed,
)


@pytest.fixture(params=get_args(Layout))
def layout(request: pytest.FixtureRequest) -> Layout:
    chosen: Layout = request.param
    return chosen


@pytest.fixture(params=ADAPTERS)
def where(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(request.param, tmp_path)


@pytest.fixture(params=ADAPTERS)
def lasting(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return place(request.param, tmp_path, is_lasting=True)


@pytest.fixture
async def index(where: Place, layout: Layout) -> AsyncIterator[Any]:
    opened = where.cold(layout)
    yield opened
    await close(opened)


async def test_what_was_applied_is_visible_when_the_call_returns(index: Any) -> None:
    await index.apply([Change(ONE, placed("green tea")), Change(TWO, placed("black coffee"))])

    assert await nearest(index, "green tea") == [(ONE, 0)]
    assert await nearest(index, "black coffee") == [(TWO, 0)]


async def test_applying_the_same_changes_twice_is_applying_them_once(index: Any) -> None:
    changes = [Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("black tea")), Change(THREE, gone())]
    await index.apply(changes)
    once = (await chunk_count(index), await nearest(index, "black tea"))

    await index.apply(changes)

    assert (await chunk_count(index), await nearest(index, "black tea")) == once == (3, [(TWO, 0)])


async def test_the_last_state_of_a_memory_holds(index: Any) -> None:
    await index.apply([Change(ONE, placed("green tea", "red wine"))])

    await index.apply([Change(ONE, placed("black coffee"))])

    assert (await nearest(index, "green tea"), await nearest(index, "red wine")) == ([], [])
    assert await nearest(index, "black coffee") == [(ONE, 0)]
    assert await chunk_count(index) == 1


async def test_a_memory_that_is_not_cold_any_more_is_gone_and_the_others_stay(index: Any) -> None:
    await index.apply([Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("green tea", user="bob"))])

    await index.apply([Change(ONE, gone())])

    assert await nearest(index, "green tea") == [(TWO, 0)]
    assert await chunk_count(index) == 1


async def test_a_memory_that_was_removed_can_come_back(index: Any) -> None:
    for state in (placed("green tea"), gone(), placed("green tea")):
        await index.apply([Change(ONE, state)])

    assert await nearest(index, "green tea") == [(ONE, 0)]


async def test_a_memory_of_which_nothing_is_left_is_removed_wherever_it_was(index: Any) -> None:
    here, there = Scope("acme", "one"), Scope("acme", "two")
    await index.apply([Change(ONE, placed("green tea", scope=here)), Change(TWO, placed("green tea", scope=there))])

    await index.apply([Change(TWO, None), Change(THREE, None)])

    assert await nearest(index, "green tea", here) == [(ONE, 0)]
    assert await nearest(index, "green tea", there) == []


async def test_many_changes_are_applied_whole(index: Any) -> None:
    changes = [Change(UUID(int=number), placed(f"note number {number}")) for number in range(1, 501)]

    await index.apply(changes)
    await index.apply([Change(change.id, gone()) for change in changes[:200]])

    assert await chunk_count(index) == 300


async def test_changes_from_several_callers_are_all_applied(index: Any) -> None:
    scopes = [Scope("acme", f"w{number % 3}") for number in range(1, 21)]
    batches = [[Change(UUID(int=at), placed(f"note {at}", scope=scope))] for at, scope in enumerate(scopes)]

    await asyncio.gather(*(index.apply(batch) for batch in batches))

    assert sum([len(await index.by_vector(asked("note", scope, 100))) for scope in set(scopes)]) == 20


async def test_strange_ids_are_distinct_and_nothing_is_dropped(index: Any) -> None:
    scopes = {UUID(int=number): Scope(text, text, text) for number, text in enumerate(STRANGE, 1)}
    await index.apply([Change(id_, placed("green tea", scope=scope)) for id_, scope in scopes.items()])

    for id_, scope in scopes.items():
        assert await nearest(index, "green tea", scope) == [(id_, 0)]


async def test_ids_that_join_to_the_same_text_are_different_scopes(index: Any) -> None:
    parts = [
        ("a", "b", "c"),
        ("ab", "c", "d"),
        ("a", "bc", "d"),
        ("a/b", "c", "d"),
        ("a", "b/c", "d"),
        ("a", "b", "c.d"),
    ]
    scopes = {UUID(int=number): Scope(*ids) for number, ids in enumerate(parts, 1)}

    await index.apply([Change(id_, placed("green tea", scope=scope)) for id_, scope in scopes.items()])

    for id_, scope in scopes.items():
        assert await nearest(index, "green tea", scope) == [(id_, 0)]


@pytest.mark.parametrize("scope", [ACME, Scope("nobody", "no/../where", "%")])
async def test_where_nothing_is_cold_nothing_is_found(index: Any, scope: Scope) -> None:
    assert await index.by_vector(asked("green tea", scope)) == []
    assert await index.inventory(scope.tenant) == {}


async def test_removing_what_was_never_there_is_fine(index: Any) -> None:
    await index.apply([Change(ONE, gone()), Change(TWO, None)])
    await index.flush()

    assert await index.inventory("acme") == {}


async def test_the_inventory_tells_the_state_of_every_memory_in_any_collection(index: Any) -> None:
    states = {
        ONE: placed("green tea", "and milk"),
        TWO: placed("black tea", scope=Scope("acme", "elsewhere")),
        THREE: placed("tea", scope=Scope("other")),
    }
    await index.apply([Change(id_, state) for id_, state in states.items()])

    assert await index.inventory("acme") == {id_: fingerprint(states[id_]) for id_ in (ONE, TWO)}


async def test_a_memory_that_lies_in_two_collections_shows_in_the_inventory(index: Any, layout: Layout) -> None:
    here, there = placed("green tea"), placed("green tea", scope=Scope("acme", "elsewhere"))

    await index.apply([Change(ONE, here)])
    await index.apply([Change(ONE, there)])

    state = (await index.inventory("acme"))[ONE]
    assert state == fingerprint(there) if layout == "shared" else state not in {fingerprint(here), fingerprint(there)}


async def test_a_build_takes_the_place_of_all_collections_at_once(index: Any) -> None:
    here, there = Scope("acme", "one"), Scope("acme", "two")
    await index.apply([Change(ONE, placed("green tea", scope=here)), Change(TWO, placed("green tea", scope=there))])

    await index.beside(1).apply([Change(THREE, placed("green tea", scope=here)), Change(TWO, None)])
    before = await nearest(index, "green tea", here), await nearest(index, "green tea", there)
    await index.switch(1)
    after = await nearest(index, "green tea", here), await nearest(index, "green tea", there)

    assert before == ([(ONE, 0)], [(TWO, 0)])
    assert after == ([(THREE, 0)], [])
    await index.apply([Change(TWO, placed("green tea", scope=there))])
    await index.switch(1)
    assert await nearest(index, "green tea", there) == [(TWO, 0)]


async def test_after_it_was_closed_and_opened_again_everything_is_there(lasting: Place, layout: Layout) -> None:
    first = lasting.cold(layout)
    await first.apply([Change(ONE, placed("green tea", "and milk")), Change(TWO, placed("black tea", user="ann"))])
    before = await nearest(first, "black tea"), await nearest(first, "black tea", Scope("acme", user="bob"))
    await first.flush()
    await close(first)

    second = lasting.cold(layout)
    after = await nearest(second, "black tea"), await nearest(second, "black tea", Scope("acme", user="bob"))
    await close(second)

    assert after == before == ([(TWO, 0)], [])
