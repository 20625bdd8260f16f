"""A condition selects the same chunks in every index of words and vectors as it means."""

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings

from lamina.core.filters import matches
from lamina.core.ports import Change
from lamina.core.queries import AllOf, AnyOf, Condition, Filters, Negation
from tests.support.filtered import CONDITIONS, MEMORIES, state_of
from tests.support.indexes import HYBRID_ADAPTERS, MODEL, asked, close, place

VECTORS = tuple(row.tobytes() for row in MODEL.encode(["tea"]))


@pytest.fixture(scope="module", params=HYBRID_ADAPTERS)
async def index(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Any]:
    opened = place(request.param, tmp_path_factory.mktemp("filters")).index()
    await opened.apply([Change(memory.id, state_of(memory, ("tea",), VECTORS)) for memory in MEMORIES])
    yield opened
    await close(opened)


async def selected(index: Any, condition: Condition) -> list[set[UUID]]:
    query = asked("tea", limit=len(MEMORIES), filters=Filters(min_confidence=0, where=condition))
    return [{item.place[0] for item in ranking} for ranking in await index.by_both(query)]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(condition=CONDITIONS)
async def test_any_condition_selects_what_it_means(index: Any, condition: Condition) -> None:
    expected = {memory.id for memory in MEMORIES if matches(condition, memory)}

    assert await selected(index, condition) == [expected, expected]


@pytest.mark.parametrize(
    ("condition", "everything"),
    [(AllOf(()), True), (AnyOf(()), False), (Negation(AnyOf(())), True), (Negation(AllOf(())), False)],
)
async def test_conditions_without_parts_let_everything_or_nothing_pass(
    index: Any, condition: Condition, everything: bool
) -> None:
    expected = {memory.id for memory in MEMORIES} if everything else set()

    assert await selected(index, condition) == [expected, expected]
