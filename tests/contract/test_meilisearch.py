"""What a real Meilisearch server makes of the adapter's calls; `tests/contract/test_index.py` asks it the rest.

Collected only where `LAMINA_TEST_MEILISEARCH_URL` names a server (with `…_KEY`); one that does not answer is a failure.
"""

import asyncio
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings

from lamina.core.filters import matches
from lamina.core.fingerprints import fingerprint
from lamina.core.ports import Change
from lamina.core.queries import AllOf, Compare, Condition, FilterField, Filters, Operator, Query
from lamina.core.scope import Scope
from lamina.errors import Misconfigured, Unavailable
from lamina.settings.section import MIB
from lamina.stores.index.meilisearch.documents import missing_settings, wanted_settings
from lamina.stores.index.meilisearch.index import MeilisearchIndex
from tests.support.filtered import CONDITIONS, MEMORIES, STRANGE, TEN, TIMES, state_of
from tests.support.indexes import (
    ACME,
    MEILISEARCH_URL,
    MODEL,
    ONE,
    THREE,
    TWO,
    asked,
    found,
    meilisearch_server,
    record,
)
from tests.support.meilisearch import Opened
from tests.support.spellings import SPELLINGS

__test__ = MEILISEARCH_URL is not None
ONE_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture])


def opened(name: str, dimension: int | None = 64, **options: Any) -> Opened:
    return Opened(MeilisearchIndex(meilisearch_server(**options), name, dimension=dimension))


@pytest.fixture
async def name() -> AsyncIterator[str]:
    """A name of this test alone, whose index is removed afterwards."""
    made = f"test_{uuid4().hex}"
    yield made
    index = MeilisearchIndex(meilisearch_server(), made, dimension=None)
    await index._live.drop()
    await index.close()


@pytest.fixture
async def index(name: str) -> AsyncIterator[Opened]:
    made = opened(name)
    yield made
    await made.close()


@pytest.fixture(scope="module")
async def filtered() -> AsyncIterator[MeilisearchIndex]:
    """An index of memories that differ in everything a filter may look at."""
    made = MeilisearchIndex(meilisearch_server(), f"test_{uuid4().hex}", dimension=64)
    embeddings = [row.tobytes() for row in MODEL.encode(["tea"])]
    await made.apply([Change(memory.id, state_of(memory, ["tea"], embeddings)) for memory in MEMORIES])
    yield made
    await made._live.drop()
    await made.close()


async def selected(index: MeilisearchIndex, filters: Filters) -> dict[str, set[UUID]]:
    by_words, by_vector = await index.by_both(asked("tea", ACME, 100, filters))
    return {"words": {item.place[0] for item in by_words}, "vectors": {item.place[0] for item in by_vector}}


@ONE_STORE
@given(condition=CONDITIONS)
async def test_any_condition_selects_what_it_means(filtered: MeilisearchIndex, condition: Condition) -> None:
    expected = {memory.id for memory in MEMORIES if matches(condition, memory)}

    by = await selected(filtered, Filters(min_confidence=0, where=condition))

    assert by == {"words": expected, "vectors": expected}


@pytest.mark.parametrize("at", TIMES)
async def test_a_moment_is_met_to_the_microsecond(filtered: MeilisearchIndex, at: Any) -> None:
    by = await selected(filtered, Filters(min_confidence=0, as_of=at))

    assert by["words"] == {memory.id for memory in MEMORIES if memory.occurred_at <= at}


async def test_a_filter_as_deep_as_one_may_be_is_understood(filtered: MeilisearchIndex) -> None:
    condition: Condition = AllOf((Compare(FilterField.OCCURRED_AT, Operator.EQ, TEN),))
    for _ in range(16):
        condition = AllOf((condition, Compare(FilterField.CONFIDENCE, Operator.GTE, 0.0)))

    by = await selected(filtered, Filters(min_confidence=0, where=condition))

    assert by["words"] == {memory.id for memory in MEMORIES if memory.occurred_at == TEN}


async def test_a_new_index_is_empty_and_its_settings_are_asked_for_once(name: str) -> None:
    first, second = opened(name), opened(name)
    was_new = await first.index.prepare()
    await first.apply([Change(ONE, record("green tea"))])
    is_new = await second.index.prepare()
    server = second.index._server
    kept = await server.ask("get", f"indexes/{name}/settings")
    asked_for = await server.ask("get", f"tasks?indexUids={name}&types=settingsUpdate&limit=10")
    missing = missing_settings(wanted_settings(meilisearch_server(), 64, await server.version()), kept)
    await first.close()
    await second.close()

    assert (was_new, is_new) == (True, False)
    assert missing == {}
    assert len(asked_for["results"]) == 1


async def test_scores_lie_within_0_and_1_fall_and_have_the_raw_figures_beside_them(index: Opened) -> None:
    texts = ("green tea with honey", "green tea", "tea", "black coffee")
    await index.apply([Change(UUID(int=number), record(text)) for number, text in enumerate(texts, 1)])

    ranking = await index.search(asked("green tea with honey"))

    assert [hit.memory.id.int for hit in ranking] == [1, 2, 3]
    assert all(1 >= one.score > other.score >= 0 for one, other in pairwise(ranking))
    assert ranking[0].score == pytest.approx(1, abs=1e-3)
    assert all(set(hit.raw) == {"bm25", "cosine"} for hit in ranking)
    cosine = MODEL.encode(["green tea with honey"])[0] @ MODEL.encode(["green tea"])[0]
    assert ranking[1].raw["cosine"] == pytest.approx(float(cosine), abs=1e-5)


async def test_no_more_are_found_than_asked_for_and_as_many_as_there_are(index: Opened) -> None:
    await index.apply([Change(UUID(int=number), record(f"green tea {number}")) for number in range(1, 31)])

    counts = [len(await index.search(asked("green tea", limit=limit))) for limit in (1, 7, 30, 1000)]

    assert counts == [1, 7, 30, 30]


async def test_each_memory_is_found_once_at_its_best_chunk_among_many(index: Opened) -> None:
    long = record(*(f"green tea {number}" for number in range(200)), "green tea with honey")
    await index.apply([Change(ONE, long), Change(TWO, record("green tea")), Change(THREE, record("green"))])

    ranking = await index.search(asked("green tea honey", limit=3))

    assert [hit.memory.id for hit in ranking] == [ONE, TWO, THREE]
    assert ranking[0].memory.content == "green tea with honey"


async def test_a_word_that_others_have_often_or_never_changes_nothing_for_a_tenant(index: Opened) -> None:
    await index.apply([Change(ONE, record("kubernetes costs")), Change(TWO, record("budget plans"))])
    before = await index.search(asked("kubernetes budget xylophone"))

    flood = [record("kubernetes kubernetes", tenant="other"), record("xylophone", tenant="other")]
    await index.apply([Change(UUID(int=number), flood[number % 2]) for number in range(10, 90)])
    after = await index.search(asked("kubernetes budget xylophone"))

    assert {hit.memory.id for hit in before} == {ONE, TWO}
    assert after == before


@pytest.mark.parametrize("text", ['say "green tea', "tea -green", "-green tea", '"', "--", "'; DROP --", "tea\u0001"])
async def test_signs_of_meilisearchs_own_language_are_words_like_others(index: Opened, text: str) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    ranking = await index.search(replace(asked(text), embedding=None))

    assert [hit.memory.id for hit in ranking] == ([ONE] if "tea" in text else [])


@pytest.mark.parametrize(
    ("kept", "question"),
    [
        ("昨日は東京で寿司を食べた", "東京"),
        ("我们昨天在北京讨论了预算", "北京的预算"),
        ("고양이가 마당에서 잔다", "고양이가"),
        ("order 84-213-77 was late", "what about order 84-213-77?"),
        ("Grüße aus Köln", "köln"),
        *SPELLINGS,
    ],
)
async def test_words_of_many_scripts_are_found_by_a_question(index: Opened, kept: str, question: str) -> None:
    await index.apply([Change(ONE, record(kept)), Change(TWO, record("black coffee"))])

    by_words = await index.index.by_words(asked(question))

    assert [item.place for item in by_words] == [(ONE, 0)]


async def test_a_number_is_not_mistaken_for_its_neighbour(index: Opened) -> None:
    await index.apply([Change(ONE, record("invoice 4711001")), Change(TWO, record("invoice 4711002"))])

    by_words = await index.index.by_words(asked("4711001"))

    assert [item.place for item in by_words] == [(ONE, 0)]


async def test_ids_of_any_kind_are_told_apart(index: Opened) -> None:
    states = {UUID(int=number): replace(record("tea"), tenant=text) for number, text in enumerate(STRANGE, 1)}
    await index.apply([Change(id_, state) for id_, state in states.items()])

    for id_, state in states.items():
        assert (await found(index.index, "tea", Scope(state.tenant)))["words"] == [(id_, 0)]
        assert await index.inventory(state.tenant) == {id_: fingerprint(state)}


async def test_documents_beyond_one_call_are_all_applied(name: str) -> None:
    index = opened(name, payload_mib=1)
    text = "tea " * 20_000
    changes = [Change(UUID(int=number), record(text)) for number in range(1, 41)]
    await index.apply(changes)
    inventory = await index.inventory("acme")
    await index.close()

    assert sum(len(text) for _ in changes) > 2 * MIB
    assert len(inventory) == 40


async def test_other_dimensions_are_refused_and_what_is_there_stays(name: str) -> None:
    first, second = opened(name), opened(name, 32)
    await first.apply([Change(ONE, record("tea"))])

    with pytest.raises(Misconfigured, match=r"64 dimensions, expected 32"):
        await second.index.prepare()

    assert [hit.memory.id for hit in await first.search(asked("tea"))] == [ONE]
    await first.close()
    await second.close()


async def test_a_document_that_the_server_refuses_fails_with_its_code(index: Opened) -> None:
    wrong = replace(record("tea"), embeddings=(b"\x00" * 4 * 3,))

    with pytest.raises(Misconfigured, match=r"documentAdditionOrUpdate\) failed, [a-z_]+: "):
        await index.apply([Change(ONE, wrong)])


async def test_a_wrong_key_is_told_by_its_setting(name: str) -> None:
    server = opened(name)
    health = await server.index._server.ask("get", "health")
    await server.close()
    if meilisearch_server().api_key is None:
        assert health["status"] == "available"  # It wants no key, so that none is wrong.
        return
    wrong = opened(name, api_key="wrong")
    with pytest.raises(Misconfigured, match=r"hybrid\.api_key"):
        await wrong.index.prepare()
    await wrong.close()


async def test_a_search_has_a_deadline(name: str) -> None:
    index = opened(name, read_timeout_s=30)
    await index.apply([Change(ONE, record("tea"))])
    hasty = opened(name, read_timeout_s=0.000_1)
    hasty.index._live._is_made = True

    with pytest.raises(Unavailable):
        await hasty.search(asked("tea"))

    await index.close()
    await hasty.close()


async def test_connections_that_the_server_closed_are_opened_again(index: Opened) -> None:
    await index.apply([Change(ONE, record("tea"))])
    for connection in index.index._server._connections:
        connection.session.close()

    assert [hit.memory.id for hit in await index.search(asked("tea"))] == [ONE]


async def test_a_crash_between_the_swap_and_the_removal_is_made_good(name: str) -> None:
    crashed, next_one = opened(name), opened(name)
    await crashed.apply([Change(ONE, record("green tea"))])
    await crashed.beside(4).apply([Change(TWO, record("black tea"))])
    await crashed.index._swap(crashed.index.beside(4))

    await next_one.switch(4)
    await next_one.switch(4)

    assert list(await next_one.inventory("acme")) == [TWO]
    assert not await next_one.index.beside(4)._exists()
    await crashed.close()
    await next_one.close()


async def test_many_searches_and_changes_at_once_are_all_answered(index: Opened) -> None:
    await index.apply([Change(ONE, record("green tea"))])

    async def search(query: Query) -> Sequence[UUID]:
        return [hit.memory.id for hit in await index.search(query)]

    *answers, _ = await asyncio.gather(
        *(search(asked("green tea")) for _ in range(40)), index.apply([Change(TWO, record("black coffee"))])
    )

    assert answers == [[ONE]] * 40
