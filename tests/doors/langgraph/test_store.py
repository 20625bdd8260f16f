"""The contract of LangGraph's stores, over a running service, by the synchronous and the asynchronous methods."""

import asyncio
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from langgraph.store.base import GetOp, InvalidNamespaceError, ListNamespacesOp, MatchCondition, PutOp, SearchOp

from lamina.client import Client
from lamina.errors import InvalidInput
from lamina.integrations.langgraph import LaminaStore

PATIENCE_S = 30.0
NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.time = NOON

    def __call__(self) -> datetime:
        return self.time

    def pass_minutes(self, minutes: float) -> None:
        self.time += timedelta(minutes=minutes)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
async def store(door: Any, clock: Clock) -> AsyncIterator[LaminaStore]:
    async with LaminaStore(scope={"workspace": door.workspace}, now=clock) as store:
        yield store


class Sync:
    """The asynchronous names over the synchronous methods."""

    def __init__(self, store: LaminaStore) -> None:
        self._store = store

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._store, name.removeprefix("a"))

        async def call(*args: Any, **kwargs: Any) -> Any:
            return method(*args, **kwargs)

        return call


@pytest.fixture(params=["sync", "async"])
def either(request: pytest.FixtureRequest, store: LaminaStore) -> Any:
    return Sync(store) if request.param == "sync" else store


async def until_found(search: Callable[[], Awaitable[list[Any]]], count: int = 1) -> list[Any]:
    """Search until so many are found: the index hears of a write some milliseconds later."""
    deadline = time.monotonic() + PATIENCE_S
    while len(found := await search()) < count and time.monotonic() < deadline:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.05)
    return found


VALUES = [
    {},
    {"text": "Ann likes tea", "count": 3, "share": 0.25, "flag": True, "nothing": None},
    {"nested": {"deep": [1, [2, {"three": "四"}]]}, "emoji": "👩‍🌾", "Ωμέγα": "é vs e\u0301"},
    {"quotes": "\"'\\ \n\t", "empty": "", "blank": "  "},
    {"big": 2**53 + 1, "negative": -0.1, "long": "word " * 20_000},
    {"lines": [f"line {number}: a = {{{number}}}" for number in range(3_000)]},
    {"thai": "สวัสดีชาวโลก " * 1_000},
    {"long thai": "สวัสดีชาวโลก " * 5_000},
    {"strange": "a\0b \ud83d \u2028 \x85"},
    {"long and strange": "日\0\ud83d" * 20_000},
    {"nothing": "\u200b"},
]


@pytest.mark.parametrize("value", VALUES, ids=range(len(VALUES)))
async def test_a_value_comes_back_as_it_was_put(either: Any, value: dict[str, Any]) -> None:
    await either.aput(("users", "ann"), "a", value)
    await either.aput(("users", "ann"), "hidden", value, index=False)

    item = await either.aget(("users", "ann"), "a")

    assert item.value == value
    assert (item.namespace, item.key) == (("users", "ann"), "a")
    assert (await either.aget(("users", "ann"), "hidden")).value == value


@pytest.mark.parametrize(
    ("namespace", "key"),
    [
        (("users",), "k" * 2_000),
        (("użytkownik", "用户", "مستخدم"), "ключ 🔑"),
        (("a/b", "c d", "e:f", "%", "_"), "../../x"),
        (tuple(f"level {number}" for number in range(30)), "deep"),
        (("é",), "e\u0301"),
    ],
)
async def test_any_label_names_an_item(store: LaminaStore, namespace: tuple[str, ...], key: str) -> None:
    await store.aput(namespace, key, {"a": 1})

    item = await store.aget(namespace, key)
    assert item is not None
    assert item.value == {"a": 1}
    assert [(item.namespace, item.key) for item in await store.asearch(namespace)] == [(namespace, key)]
    assert await store.alist_namespaces() == [namespace]
    await store.adelete(namespace, key)
    assert await store.aget(namespace, key) is None


async def test_an_item_is_replaced_and_keeps_when_it_was_created(either: Any, clock: Clock) -> None:
    await either.aput(("users",), "ann", {"likes": "tea"})
    first = await either.aget(("users",), "ann")
    clock.pass_minutes(5)
    await either.aput(("users",), "ann", {"likes": "coffee"})

    second = await either.aget(("users",), "ann")

    assert second.value == {"likes": "coffee"}
    assert second.created_at == first.created_at
    assert second.updated_at - first.updated_at == timedelta(minutes=5)
    assert len(await either.asearch(("users",))) == 1


async def test_equal_values_under_different_keys_are_items_of_their_own(either: Any) -> None:
    for namespace, key in [(("a",), "1"), (("a",), "2"), (("b",), "1"), (("a", "1"), "1")]:
        await either.aput(namespace, key, {"text": "The same words"})

    await either.adelete(("a",), "1")

    assert await either.aget(("a",), "1") is None
    assert len(await either.asearch(())) == 3
    assert (await either.aget(("a", "1"), "1")).value == {"text": "The same words"}


async def test_what_is_not_there_is_none_and_may_be_deleted(either: Any) -> None:
    assert await either.aget(("users",), "nobody") is None
    await either.adelete(("users",), "nobody")
    assert await either.asearch(("users",)) == []
    assert await either.alist_namespaces() == []


async def test_sibling_namespaces_are_apart(either: Any) -> None:
    names = [("users", "1"), ("users", "10"), ("users", "1", "x"), ("users1",), ("user_",), ("users", "1%")]
    for namespace in names:
        await either.aput(namespace, "k", {"text": f"apples of {'/'.join(namespace)}"})

    below = await either.asearch(("users", "1"))
    found = await until_found(lambda: either.asearch(("users", "1"), query="apples"), 2)

    assert {item.namespace for item in below} == {("users", "1"), ("users", "1", "x")}
    assert {item.namespace for item in found} == {("users", "1"), ("users", "1", "x")}
    assert {item.namespace for item in await either.asearch(("user_",))} == {("user_",)}
    assert len(await either.asearch(("users",))) == 4


async def test_workspaces_and_users_are_apart(door: Any, store: LaminaStore) -> None:
    with (
        LaminaStore(scope={"workspace": f"{door.workspace} 2"}) as other,
        LaminaStore(scope={"workspace": door.workspace, "user": "ann"}) as ann,
    ):
        for one, text in [(store, "shared"), (other, "elsewhere"), (ann, "of Ann")]:
            one.put(("notes",), "k", {"text": text})

        for one, text in [(store, "shared"), (other, "elsewhere"), (ann, "of Ann")]:
            item = one.get(("notes",), "k")
            assert item is not None
            assert item.value == {"text": text}
            assert [found.value for found in one.search(("notes",))] == [{"text": text}]
        ann.delete(("notes",), "k")
        assert ann.get(("notes",), "k") is None
        assert store.get(("notes",), "k") is not None


async def test_documents_that_are_no_items_are_none(door: Any, store: LaminaStore) -> None:
    with Client(scope={"workspace": door.workspace}) as client:
        client.add_document("The users like tea", key="users", metadata={"key": "users"})

    assert store.search(()) == []
    assert store.list_namespaces() == []


PEOPLE = {
    "ann": {"age": 30, "city": "Oslo", "score": 4.5, "job": {"title": "cook", "level": 2}, "tags": ["a", "b"]},
    "bob": {"age": 41, "city": "Rome", "score": 3.0, "job": {"title": "cook", "level": 5}, "tags": ["a"]},
    "eve": {"age": 30, "city": "Rome", "score": None, "job": "none"},
    "zoe": {"city": "Zürich", "age": "30"},
}


@pytest.mark.parametrize(
    ("wanted", "keys"),
    [
        ({}, "ann bob eve zoe"),
        ({"age": 30}, "ann eve"),
        ({"age": {"$eq": 30}, "city": "Rome"}, "eve"),
        ({"age": {"$ne": 30}}, "bob zoe"),
        ({"age": {"$gt": 30}}, "bob"),
        ({"age": {"$gte": 30, "$lt": 41}}, "ann eve"),
        ({"score": {"$lte": 3}}, "bob"),
        ({"city": {"$gt": "Rome"}}, "zoe"),
        ({"job": {"title": "cook", "level": {"$gt": 2}}}, "bob"),
        ({"job": {"title": "cook", "level": 2}}, "ann"),
        ({"tags": ["a", "b"]}, "ann"),
        ({"score": None}, "eve zoe"),
        ({"city": "rome"}, ""),
        ({"unknown": 1}, ""),
    ],
)
async def test_a_filter_selects(store: LaminaStore, wanted: dict[str, Any], keys: str) -> None:
    await store.abatch([PutOp(("people",), key, value) for key, value in PEOPLE.items()])

    assert sorted(item.key for item in await store.asearch(("people",), filter=wanted)) == keys.split()


async def test_an_unknown_operator_is_refused(either: Any) -> None:
    await either.aput(("people",), "ann", PEOPLE["ann"])

    with pytest.raises(ValueError, match=r"'\$regex' is no operator"):
        await either.asearch(("people",), filter={"city": {"$regex": "O.*"}})


async def test_pages_are_in_one_order_the_last_put_first(either: Any, clock: Clock) -> None:
    for number in range(7):
        await either.aput(("n",), str(number), {"number": number})
        clock.pass_minutes(1)

    pages = [
        [item.value["number"] for item in await either.asearch(("n",), limit=3, offset=offset)] for offset in (0, 3, 6)
    ]

    assert pages == [[6, 5, 4], [3, 2, 1], [0]]
    assert await either.asearch(("n",), limit=3, offset=7) == []


async def test_more_items_than_a_page_are_all_read(either: Any) -> None:
    await either.abatch([PutOp(("n", str(number % 3)), str(number), {"number": number}) for number in range(130)])

    assert {item.value["number"] for item in await either.asearch(("n",), limit=500)} == set(range(130))
    assert await either.alist_namespaces() == [("n", "0"), ("n", "1"), ("n", "2")]


async def test_items_that_are_put_again_while_a_list_is_read_are_in_it(store: LaminaStore, clock: Clock) -> None:
    await store.abatch([PutOp(("n",), str(number), {"number": number}) for number in range(120)])
    clock.pass_minutes(1)

    async def put_again() -> None:
        for number in range(0, 120, 4):
            await store.aput(("n",), str(number), {"number": number})

    items, _ = await asyncio.gather(store.asearch(("n",), limit=500), put_again())

    assert sorted(item.value["number"] for item in items) == list(range(120))


TREE = [("a", "b", "c"), ("a", "b", "d", "e"), ("a", "b", "d", "i"), ("a", "c", "f"), ("b", "a", "f"), ("users", "x")]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, TREE),
        ({"prefix": ("a", "b")}, TREE[:3]),
        ({"prefix": ("a", "*", "f")}, [TREE[3]]),
        ({"prefix": ("*", "a")}, [TREE[4]]),
        ({"suffix": ("f",)}, TREE[3:5]),
        ({"suffix": ("d", "*")}, TREE[1:3]),
        ({"prefix": ("a",), "suffix": ("f",)}, [TREE[3]]),
        ({"max_depth": 2}, [("a", "b"), ("a", "c"), ("b", "a"), ("users", "x")]),
        ({"prefix": ("a",), "max_depth": 3}, [("a", "b", "c"), ("a", "b", "d"), ("a", "c", "f")]),
        ({"limit": 2, "offset": 1}, TREE[1:3]),
        ({"prefix": ("user",)}, []),
        ({"prefix": ("a", "b", "c", "d")}, []),
    ],
)
async def test_namespaces_are_listed(
    store: LaminaStore, options: dict[str, Any], expected: list[tuple[str, ...]]
) -> None:
    await store.abatch([PutOp(namespace, "k", {"a": 1}) for namespace in TREE])

    assert await store.alist_namespaces(**options) == expected


async def test_a_namespace_without_items_is_not_listed(either: Any) -> None:
    await either.aput(("a",), "k", {"a": 1})
    await either.adelete(("a",), "k")

    assert await either.alist_namespaces() == []


async def test_a_query_ranks(either: Any) -> None:
    texts = {"barometer": "The spare key hangs behind the barometer", "tea": "Ann drinks her tea without sugar"}
    await either.abatch([PutOp(("facts",), key, {"text": text}) for key, text in texts.items()])

    found = await until_found(lambda: either.asearch(("facts",), query="where is the spare key?"))

    assert found[0].key == "barometer"
    assert found[0].score > 0
    assert [item.score for item in found] == sorted((item.score for item in found), reverse=True)


@pytest.mark.parametrize("times", [1, 1_000, 5_000])
async def test_a_value_of_any_script_is_found_whatever_its_size(either: Any, times: int) -> None:
    await either.aput(("facts",), "thai", {"text": "กุญแจสำรองแขวนอยู่หลังบารอมิเตอร์ " * times})
    await either.aput(("facts",), "other", {"text": "The cat sleeps on the mat"})

    found = await until_found(lambda: either.asearch(("facts",), query="กุญแจสำรองแขวนอยู่ที่ไหน", limit=1))

    assert [item.key for item in found] == ["thai"]


async def test_what_shows_nothing_stops_neither_a_put_nor_a_search(either: Any) -> None:
    await either.aput(("facts",), " \u200b", {"text": "\u200b"}, index=["text"])
    await either.aput(("facts",), " ", {"text": "tea"}, index=False)

    for query in (" \u200b", "\0", ""):
        assert {item.key for item in await either.asearch(("facts",), query=query)} == {" \u200b", " "}
    for query in ("tea \0 \ud83d", "ส" * 300_000):
        assert isinstance(await either.asearch(("facts",), query=query), list)


async def test_a_query_keeps_to_its_filter_and_its_page(either: Any) -> None:
    ops = [PutOp(("facts",), str(n), {"text": f"Apples of garden {n}", "even": n % 2 == 0}) for n in range(8)]
    await either.abatch(ops)
    await until_found(lambda: either.asearch(("facts",), query="apples"), 8)

    even = await either.asearch(("facts",), query="apples", filter={"even": True}, limit=10)
    pages = [await either.asearch(("facts",), query="apples", limit=3, offset=offset) for offset in (0, 3, 6)]

    assert sorted(item.key for item in even) == ["0", "2", "4", "6"]
    # Each page is a search of its own, and the order among equals that of its moment.
    keys = [{item.key for item in page} for page in pages]
    assert [len(page) for page in pages] == [len(of_page) for of_page in keys] == [3, 3, 2]
    assert set().union(*keys) <= {str(n) for n in range(8)}


async def test_only_the_fields_of_the_index_are_searched(either: Any, door: Any) -> None:
    value = {"title": "Lighthouse", "body": {"parts": [{"text": "granite"}, {"text": "lantern"}]}, "secret": "walrus"}
    await either.aput(("b",), "hidden", value, index=False)
    await either.aput(("b",), "chosen", value, index=["title", "body.parts[*].text"])

    found = await until_found(lambda: either.asearch(("b",), query="lantern"))

    assert [item.key for item in found] == ["chosen"]
    assert [item.key for item in await either.asearch(("b",), query="hidden")] in ([], ["chosen"])
    assert (await either.aget(("b",), "hidden")).value == value
    with Client(scope={"workspace": door.workspace}) as client:
        documents = [client.document(document["id"]) for document in client.documents()["documents"]]
    assert {document["content"] for document in documents} == {"hidden", "Lighthouse\ngranite\nlantern"}


async def test_fields_of_the_whole_store_hold_where_a_put_names_none(door: Any) -> None:
    config: Any = {"fields": ["text"]}
    with (
        LaminaStore(scope={"workspace": door.workspace}, index=config) as store,
        Client(scope={"workspace": door.workspace}) as client,
    ):
        store.put(("a",), "k", {"text": "granite", "other": "walrus"})
        (document,) = client.documents()["documents"]
        assert client.document(document["id"])["content"] == "granite"


async def test_a_query_reads_the_state_of_now(either: Any) -> None:
    await either.aput(("facts",), "k", {"text": "The key is behind the barometer"})
    await until_found(lambda: either.asearch(("facts",), query="barometer"))

    await either.aput(("facts",), "k", {"text": "The key is behind the barometer", "seen": True})
    found = await until_found(lambda: either.asearch(("facts",), query="barometer"))
    assert [item.value.get("seen") for item in found] == [True]

    await either.adelete(("facts",), "k")
    assert await either.asearch(("facts",), query="barometer") == []


async def test_an_item_expires_after_its_minutes(either: Any, clock: Clock) -> None:
    await either.aput(("t",), "short", {"text": "tea"}, ttl=10)
    await either.aput(("t",), "long", {"text": "tea"}, ttl=60.5)
    await either.aput(("t", "x"), "kept", {"text": "tea"})
    await until_found(lambda: either.asearch(("t",), query="tea", refresh_ttl=False), 3)
    clock.pass_minutes(9.9)
    assert await either.aget(("t",), "short", refresh_ttl=False) is not None

    clock.pass_minutes(0.2)

    assert await either.aget(("t",), "short") is None
    assert {item.key for item in await either.asearch(("t",), refresh_ttl=False)} == {"long", "kept"}
    keys = {item.key for item in await either.asearch(("t",), query="tea", refresh_ttl=False)}
    assert keys == {"long", "kept"}
    clock.pass_minutes(60)
    assert await either.alist_namespaces() == [("t", "x")]


@pytest.mark.parametrize("reads", ["get", "search", "query"])
async def test_reading_refreshes(either: Any, clock: Clock, reads: str) -> None:
    await either.aput(("t",), "k", {"text": "tea"}, ttl=10)
    await until_found(lambda: either.asearch(("t",), query="tea", refresh_ttl=False))
    before = await either.aget(("t",), "k", refresh_ttl=False)
    for _ in range(3):
        clock.pass_minutes(8)
        match reads:
            case "get":
                assert await either.aget(("t",), "k")
            case "search":
                assert await either.asearch(("t",))
            case "query":
                assert await until_found(lambda: either.asearch(("t",), query="tea"))

    after = await either.aget(("t",), "k", refresh_ttl=False)
    assert after == before
    clock.pass_minutes(8)
    assert await either.aget(("t",), "k", refresh_ttl=False)
    clock.pass_minutes(3)
    assert await either.aget(("t",), "k") is None


async def test_refreshing_takes_back_no_write_that_came_between(store: LaminaStore, clock: Clock) -> None:
    store.put(("t",), "k", {"count": 0}, ttl=10)

    async def write(number: int) -> None:
        await store.aput(("t",), "k", {"count": number}, ttl=10)

    for number in range(1, 9):
        clock.pass_minutes(1)
        await asyncio.gather(*(store.aget(("t",), "k") for _ in range(4)), write(number))
        item = await store.aget(("t",), "k")
        assert item is not None
        assert item.value == {"count": number}


async def test_options_of_the_store_hold_where_a_call_names_none(door: Any, clock: Clock) -> None:
    ttl: Any = {"default_ttl": 10, "refresh_on_read": False}
    with LaminaStore(scope={"workspace": door.workspace}, ttl=ttl, now=clock) as store:
        store.put(("t",), "default", {"a": 1})
        store.put(("t",), "own", {"a": 1}, ttl=100)
        store.put(("t",), "never", {"a": 1}, ttl=None)
        clock.pass_minutes(9)
        assert len(store.search(("t",))) == 3
        clock.pass_minutes(2)
        assert {item.key for item in store.search(("t",))} == {"own", "never"}


async def test_a_sweep_deletes_what_has_expired(either: Any, door: Any, clock: Clock) -> None:
    await either.aput(("t",), "short", {"text": "tea"}, ttl=10)
    await either.aput(("t",), "kept", {"text": "tea"})
    clock.pass_minutes(11)

    assert await either.asweep_ttl() == 1
    assert await either.asweep_ttl() == 0

    with Client(scope={"workspace": door.workspace}) as client:
        assert len(client.documents()["documents"]) == 1


async def test_an_item_that_expired_may_be_put_again(either: Any, clock: Clock) -> None:
    await either.aput(("t",), "k", {"a": 1}, ttl=1)
    first = await either.aget(("t",), "k")
    clock.pass_minutes(2)
    await either.aput(("t",), "k", {"a": 2})
    clock.pass_minutes(200)

    second = await either.aget(("t",), "k")
    assert second.value == {"a": 2}
    assert second.created_at > first.created_at


async def test_results_of_a_batch_are_in_the_order_of_its_operations(either: Any) -> None:
    await either.aput(("a",), "old", {"a": 0})

    results = await either.abatch(
        [
            PutOp(("a",), "new", {"a": 1}),
            GetOp(("a",), "new"),
            SearchOp(("a",)),
            GetOp(("a",), "old"),
            PutOp(("a",), "old", None),
            ListNamespacesOp((MatchCondition("prefix", ("a",)),)),
            PutOp(("a",), "new", {"a": 2}),
            GetOp(("nowhere",), "x"),
        ]
    )

    assert [results[place] for place in (0, 1, 4, 6, 7)] == [None] * 5
    assert [item.key for item in results[2]] == ["old"]
    assert results[3].value == {"a": 0}
    assert results[5] == [("a",)]
    assert [item.value for item in await either.asearch(("a",))] == [{"a": 2}]


async def test_of_a_put_and_a_deletion_of_one_item_the_last_counts(either: Any) -> None:
    await either.abatch([PutOp(("a",), "1", {"a": 1}), PutOp(("a",), "1", None), PutOp(("a",), "2", None)])
    await either.abatch([PutOp(("a",), "2", None), PutOp(("a",), "2", {"a": 2})])

    assert [item.key for item in await either.asearch(("a",))] == ["2"]


async def test_an_empty_batch_does_nothing(either: Any) -> None:
    assert await either.abatch([]) == []


async def test_what_is_no_operation_is_refused_before_anything_is_written(either: Any) -> None:
    with pytest.raises(ValueError, match="str is no operation"):
        await either.abatch([PutOp(("a",), "k", {"a": 1}), "get"])
    with pytest.raises(InvalidInput, match="is no JSON"):
        await either.abatch([PutOp(("a",), "k", {"a": 1}), PutOp(("a",), "l", {"a": float("nan")})])
    with pytest.raises(InvalidInput, match="is no JSON"):
        await either.aput(("a",), "m", {"a": object()})
    with pytest.raises(InvalidInput, match="has 70 levels"):
        await either.aput(("a",) * 70, "k", {"a": 1})
    with pytest.raises(InvalidNamespaceError):
        await either.aput((), "k", {"a": 1})

    assert await either.asearch(()) == []


async def test_a_cancelled_batch_ends_no_other(store: LaminaStore) -> None:
    tasks = [asyncio.create_task(store.aput(("a",), str(number), {"number": number})) for number in range(12)]
    await asyncio.sleep(0)
    for task in tasks[::2]:
        task.cancel()
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)

    assert [type(outcome) for outcome in outcomes] == [asyncio.CancelledError, type(None)] * 6
    await store.aput(("a",), "after", {"number": 99})
    numbers = {item.value["number"] for item in await store.asearch(("a",), limit=50)}
    assert numbers >= {1, 3, 5, 7, 9, 11, 99}


async def test_writes_of_many_at_once_are_all_kept(store: LaminaStore) -> None:
    await asyncio.gather(*(store.aput(("a", str(n % 4)), str(n), {"number": n}) for n in range(40)))

    items = await store.asearch(("a",), limit=100)

    assert sorted(item.value["number"] for item in items) == list(range(40))


def test_a_store_serves_one_event_loop_after_another(door: Any) -> None:
    store = LaminaStore(scope={"workspace": f"workspace {uuid.uuid4()}"})

    async def put(number: int) -> int:
        await store.aput(("a",), str(number), {"number": number})
        found = len(await store.asearch(("a",)))
        await store.aclose()
        return found

    assert [asyncio.run(put(number)) for number in range(3)] == [1, 2, 3]
    store.close()
