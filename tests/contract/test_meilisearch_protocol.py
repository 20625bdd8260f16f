"""What the Meilisearch adapter asks of a server and what it makes of each answer, over a double of the wire.

The double (:class:`tests.support.meilisearch.Wire`) answers in the documented form and finds nothing.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lamina.core.fingerprints import fingerprint
from lamina.core.ports import Change
from lamina.errors import LaminaError, Misconfigured, Unavailable
from lamina.settings.stores import MeilisearchSettings
from lamina.stores.index.meilisearch.documents import BUILD, EMBEDDER, documents_of
from lamina.stores.index.meilisearch.filters import token
from lamina.stores.index.meilisearch.index import MeilisearchChunks, MeilisearchIndex
from lamina.stores.index.ports import chunk_id
from tests.support.indexes import ONE, THREE, TWO, asked, record
from tests.support.meilisearch import Call, Opened, Said, Wire, open_meilisearch, refused, served

LIVE, BESIDE = "lamina_notes", "lamina_notes-build-3"
DOCUMENTS, SEARCH = f"/indexes/{LIVE}/documents", "/multi-search"
PATIENCE_S = 60.0


@pytest.fixture
def wire() -> Wire:
    return Wire()


@pytest.fixture
def url(wire: Wire) -> Iterator[str]:
    with served(wire) as url:
        yield url


@asynccontextmanager
async def opened(url: str, dimension: int | None = 64, key: str | None = None, **options: Any) -> AsyncIterator[Opened]:
    index = open_meilisearch(url, key, LIVE, dimension, **{"read_timeout_s": PATIENCE_S, **options})
    yield index
    await index.close()


@pytest.fixture
async def index(url: str) -> AsyncIterator[Opened]:
    async with opened(url) as index:
        yield index


async def test_a_server_that_is_away_is_noticed_by_a_probe(index: Opened) -> None:
    await index.index.probe()

    async with opened("http://127.0.0.1:1") as away:
        with pytest.raises(Unavailable, match="index is not available"):
            await away.index.probe()


async def test_an_index_is_made_with_its_settings_once_and_is_new(wire: Wire, index: Opened) -> None:
    wire.say("POST", f"{DOCUMENTS}/fetch", Said({"results": [], "total": 0}), Said({"results": [], "total": 7}))

    first, again = await index.index.prepare(), await index.index.prepare()

    assert (first, again) == (True, False)
    assert [task.type for task in wire.tasks] == ["indexCreation", "settingsUpdate"]
    kept = wire.indexes[LIVE].settings
    assert kept["searchableAttributes"] == ["text"]
    assert kept["embedders"][EMBEDDER]["dimensions"] == 64
    assert {"tenant", "user", "tags", "memory", "id", "occurred_at_high", "occurred_at_low"} <= {
        *kept["filterableAttributes"]
    }
    assert kept["localizedAttributes"] == [
        {"attributePatterns": ["text"], "locales": list(MeilisearchSettings(url="http://x").locales)}
    ]


async def test_settings_that_are_there_already_are_not_changed_and_one_that_differs_is(wire: Wire, url: str) -> None:
    async with opened(url) as first:
        await first.index.prepare()
    kept = wire.indexes[LIVE].settings
    # As a server tells them: lists sorted, defaults added, floats of 32 bits.
    kept["filterableAttributes"] = sorted(kept["filterableAttributes"])
    kept["typoTolerance"] |= {"disableOnWords": [], "disableOnAttributes": []}
    kept["embedders"][EMBEDDER] |= {"distribution": {"mean": 0.75, "sigma": float(np.float32(0.2))}}

    async with opened(url) as second:
        await second.index.prepare()
    async with opened(url, read_timeout_s=90) as third:
        await third.index.prepare()

    assert [call.body for call in wire.made("PATCH", f"/indexes/{LIVE}/settings")][1:] == [{"searchCutoffMs": 90_000}]


async def test_settings_that_somebody_else_asked_for_are_waited_for(wire: Wire, url: str) -> None:
    async with opened(url) as first:
        await first.index.prepare()
        wire.indexes[LIVE].settings["searchCutoffMs"] = 1
        wire.is_busy = True
        async with opened(url) as second, opened(url) as third:
            one = asyncio.create_task(second.index.prepare())
            while len(wire.made("PATCH", f"/indexes/{LIVE}/settings")) < 2:  # noqa: ASYNC110 - a thread hears it
                await asyncio.sleep(0.05)
            other = asyncio.create_task(third.index.prepare())
            await asyncio.sleep(0.1)
            wire.is_busy = False
            await asyncio.gather(one, other)

    assert len(wire.made("PATCH", f"/indexes/{LIVE}/settings")) == 2


@pytest.mark.parametrize("version", ["1.12.8", "0.30.0"])
async def test_a_server_that_is_too_old_is_refused(version: str) -> None:
    with served(Wire(version)) as url:
        async with opened(url) as index:
            with pytest.raises(Misconfigured, match=rf"{version}.*older than 1\.13; upgrade"):
                await index.index.prepare()


@pytest.mark.parametrize("body", [{"status": "ok"}, [], {"pkgVersion": "new"}])
async def test_a_server_that_is_no_meilisearch_is_refused(wire: Wire, index: Opened, body: Any) -> None:
    wire.say("GET", "/version", Said(body))

    with pytest.raises(Misconfigured, match=r"set hybrid\.url"):
        await index.index.prepare()


async def test_a_server_of_1_13_is_not_told_of_settings_that_it_does_not_know(url: str, wire: Wire) -> None:
    wire.version = "1.13.0-rc.1"
    async with opened(url) as index:
        await index.index.prepare()

    assert "disableOnNumbers" not in wire.indexes[LIVE].settings["typoTolerance"]


async def test_a_wrong_key_is_told_by_its_setting() -> None:
    with served(Wire(key="right")) as url:
        async with opened(url, key="right") as right, opened(url, key="wrong") as wrong, opened(url) as none:
            await right.index.prepare()
            for index in (wrong, none):
                with pytest.raises(Misconfigured, match=r"refuses the API key: invalid_api_key.*hybrid\.api_key"):
                    await index.index.prepare()


@pytest.mark.parametrize(("made", "wanted"), [(64, 32), (None, 64)])
async def test_other_vectors_under_the_name_are_refused_before_anything_changes(
    wire: Wire, url: str, made: int | None, wanted: int | None
) -> None:
    async with opened(url, made) as first:
        await first.apply([Change(ONE, record("tea"))])
    done = len(wire.tasks)

    async with opened(url, wanted) as second:
        with pytest.raises(Misconfigured, match=rf"{made} dimensions, expected {wanted}; run `lamina reindex`"):
            await second.index.prepare()

    assert len(wire.tasks) == done


async def test_a_change_returns_when_its_tasks_are_done_and_first_adds_and_then_removes(
    wire: Wire, index: Opened
) -> None:
    state = replace(record("green tea", "and milk", user="Ann"), tags=("salt, pepper",))
    await index.apply([Change(ONE, state), Change(TWO, None), Change(THREE, record("tea"))])

    assert [task.type for task in wire.tasks[2:]] == ["documentAdditionOrUpdate", "documentDeletion"]
    assert all(task.status == "succeeded" for task in wire.tasks)
    kept = wire.indexes[LIVE].documents
    assert {id_: document["text"] for id_, document in kept.items()} == {
        str(chunk_id(ONE, 0)): "green tea",
        str(chunk_id(ONE, 1)): "and milk",
        str(chunk_id(THREE, 0)): "tea",
    }
    first = kept[str(chunk_id(ONE, 0))]
    assert (first["user"], first["tags"]) == (token("Ann"), [token("salt, pepper")])
    assert first["state"] == fingerprint(state)
    assert np.allclose(first["_vectors"][EMBEDDER], np.frombuffer(state.embeddings[0], np.float32), atol=1e-7)
    (removed,) = wire.made("POST", f"{DOCUMENTS}/delete")
    assert removed.body["filter"] == (
        f'memory IN ["_{TWO}"] OR memory IN ["_{THREE}"] AND chunk >= 1 OR memory IN ["_{ONE}"] AND chunk >= 2'
    )


async def test_a_change_is_not_done_before_its_tasks_are(wire: Wire, index: Opened) -> None:
    await index.index.prepare()
    wire.is_busy = True
    applying = asyncio.create_task(index.apply([Change(ONE, record("tea"))]))
    await asyncio.sleep(0.3)
    before = applying.done()
    wire.is_busy = False
    await applying

    assert not before


async def test_no_changes_ask_for_nothing(wire: Wire, index: Opened) -> None:
    await index.apply([])

    assert wire.calls == []


async def test_documents_are_sent_in_calls_below_the_bound_each_with_whole_ones(wire: Wire, url: str) -> None:
    changes = [Change(UUID(int=number), record("tea " * 50_000)) for number in range(1, 13)]
    async with opened(url, payload_mib=1) as index:
        await index.apply(changes)

    sent = wire.made("POST", DOCUMENTS)
    assert len(sent) == 3
    assert all(len(call.text.encode()) <= 1024 * 1024 for call in sent)
    assert sum(len(call.lines) for call in sent) == len(wire.indexes[LIVE].documents) == 12
    assert {call.headers["content-type"] for call in sent} == {"application/x-ndjson"}


@pytest.mark.parametrize(
    ("kind", "expected"),
    [("invalid_request", Misconfigured), ("internal", Unavailable), ("system", Unavailable)],
)
@pytest.mark.parametrize("type_", ["documentAdditionOrUpdate", "documentDeletion"])
async def test_a_failed_task_is_an_error_that_names_its_code_and_message(
    wire: Wire, index: Opened, type_: str, kind: str, expected: type[LaminaError]
) -> None:
    await index.index.prepare()
    wire.fail(type_, "no_space_left_on_device", kind)

    with pytest.raises(expected, match=rf"{type_}\) failed, no_space_left_on_device: said no_space_left_on_device"):
        await index.apply([Change(ONE, record("tea"))])

    await index.apply([Change(ONE, record("tea"))])
    assert len(wire.indexes[LIVE].documents) == 1


async def test_a_cancelled_or_forgotten_task_is_to_be_asked_for_again(wire: Wire, index: Opened) -> None:
    await index.index.prepare()
    cancelled = {"uid": 2, "status": "canceled", "type": "documentAdditionOrUpdate", "error": None}
    done = {**cancelled, "uid": 3, "status": "succeeded"}
    for results, reason in ([cancelled, done], "was cancelled"), ([], "task 4 is not known"):
        wire.say("GET", "/tasks", Said({"results": results}))
        with pytest.raises(Unavailable, match=reason):
            await index.apply([Change(ONE, record("tea"))])


async def test_a_change_that_takes_too_long_is_given_up_and_named(wire: Wire, url: str) -> None:
    async with opened(url, task_timeout_s=2) as index:
        await index.index.prepare()
        wire.is_busy = True
        began = time.monotonic()

        with pytest.raises(Unavailable, match=r"task 2 of meilisearch is not done after 2 s"):
            await index.apply([Change(ONE, record("tea"))])

    assert time.monotonic() - began < 60


async def test_a_search_asks_for_words_one_by_one_and_for_both_at_the_ratio_within_its_scope(
    wire: Wire, index: Opened
) -> None:
    await index.search(asked('What did "Ann" say of -5 degrees in the LFP-2291?'))

    counted, *terms, both = wire.made("POST", SEARCH)[0].body["queries"]
    assert (counted["q"], counted["limit"]) == ("", 1)
    assert [(query["q"], query["matchingStrategy"]) for query in terms] == [
        (term, "all") for term in ("Ann", "say", "5", "degrees", "LFP-2291?")
    ]
    assert both["hybrid"] == {"embedder": EMBEDDER, "semanticRatio": 0.7}
    assert len(both["vector"]) == 64
    assert both["showRankingScore"]
    assert both["showRankingScoreDetails"]
    scope = f'tenant = "{token("acme")}" AND workspace = "{token("default")}" AND namespace = "{token("default")}"'
    assert all(query["filter"].startswith(f"{scope} AND ") for query in (counted, *terms, both))
    assert {query["indexUid"] for query in (counted, *terms, both)} == {LIVE}


async def test_without_a_vector_or_without_words_the_other_is_asked_for_and_without_both_nothing(
    wire: Wire, index: Opened
) -> None:
    await index.search(replace(asked("green tea"), embedding=None))
    await index.search(replace(asked("🎉"), words=()))
    await index.search(replace(asked("🎉"), words=(), embedding=None))

    words, vector = (call.body["queries"] for call in wire.made("POST", SEARCH))
    assert [query["q"] for query in words] == ["", "green", "tea"]
    assert not any("hybrid" in query for query in words)
    assert [(query["hybrid"]["semanticRatio"], "q" in query) for query in vector] == [(1.0, False)]


async def test_an_index_of_words_alone_asks_for_no_vectors(wire: Wire, url: str) -> None:
    async with opened(url, None) as index:
        await index.apply([Change(ONE, replace(record("tea"), embeddings=()))])
        await index.search(asked("tea"))

    assert "embedders" not in wire.made("PATCH", f"/indexes/{LIVE}/settings")[0].body
    assert all("_vectors" not in document for document in wire.indexes[LIVE].documents.values())
    assert not any("hybrid" in query for query in wire.made("POST", SEARCH)[0].body["queries"])


def hit(id_: UUID, chunk: int = 0, cosine: float | None = None) -> dict[str, Any]:
    found = {"id": str(chunk_id(id_, chunk)), "memory": token(str(id_)), "chunk": chunk, "_rankingScore": 0.5}
    details = {"vectorSort": {"order": 0, "similarity": cosine}} if cosine is not None else {"words": {"order": 0}}
    return {**found, "_rankingScoreDetails": details}


def results(*answers: tuple[int, list[dict[str, Any]]]) -> Said:
    return Said({"results": [{"hits": hits, "estimatedTotalHits": total} for total, hits in answers]})


async def test_rarer_words_count_more_scores_lie_within_0_and_1_and_the_raw_figures_stand_beside_them(
    wire: Wire, index: Opened
) -> None:
    texts = {ONE: "green tea", TWO: "green", THREE: "tea"}
    await index.apply([Change(id_, record(text)) for id_, text in texts.items()])
    green, tea = (50, [hit(ONE), hit(TWO)]), (2, [hit(ONE), hit(THREE)])
    wire.say("POST", SEARCH, results((100, []), green, tea, (3, [hit(ONE, cosine=0.9), hit(THREE), hit(TWO)])))
    wire.say("POST", SEARCH, results((2, [hit(TWO, cosine=0.2), hit(THREE, cosine=0.2)])))

    ranking = await index.search(asked("green tea"))

    assert [found.memory.id for found in ranking] == [ONE, THREE, TWO]
    assert [found.raw["cosine"] for found in ranking] == [0.9, 0.2, 0.2]
    figures = [found.raw["bm25"] for found in ranking]
    assert figures[0] == pytest.approx(figures[1] + figures[2])
    assert figures[1] > 3 * figures[2] > 0
    assert ranking[0].score == pytest.approx(0.3 * 1 + 0.7 * 0.9)
    assert all(1 >= found.score >= 0 for found in ranking)


async def test_one_that_shares_no_word_is_a_hit_from_the_similarity_on(wire: Wire, index: Opened) -> None:
    await index.apply([Change(id_, record("black coffee")) for id_ in (ONE, TWO)])
    near = [hit(ONE, cosine=0.31), hit(TWO, cosine=0.29)]
    wire.say("POST", SEARCH, results((2, []), (0, []), (0, []), (2, near)))

    ranking = await index.search(asked("green tea"))

    assert [found.memory.id for found in ranking] == [ONE]
    assert ranking[0].score == pytest.approx(0.7 * 0.31)


async def test_what_was_cut_off_a_frequent_word_is_found_out(wire: Wire, index: Opened) -> None:
    ids = [UUID(int=number) for number in range(1, 10)]
    await index.apply([Change(id_, record("green tea")) for id_ in ids])
    frequent, rare = (900, [hit(id_) for id_ in ids[:6]]), (1, [hit(ids[8])])
    wire.say("POST", SEARCH, results((1000, []), frequent, rare), results((1, [hit(ids[8]), hit(ids[0])])))
    query = replace(asked("green tea", limit=2), embedding=None)

    ranking = await index.search(query)

    again = wire.made("POST", SEARCH)[1].body["queries"]
    assert [query["q"] for query in again] == ["green"]
    assert f'id IN ["{chunk_id(ids[8], 0)}", ' in again[0]["filter"]
    assert f'tenant = "{token("acme")}"' in again[0]["filter"]
    assert [found.memory.id for found in ranking] == [ids[8], ids[0]]


async def test_chunks_of_one_memory_do_not_crowd_out_others(wire: Wire, index: Opened) -> None:
    await index.apply([Change(ONE, record(*["tea"] * 40)), Change(TWO, record("tea")), Change(THREE, record("tea"))])
    crowd = [hit(ONE, chunk) for chunk in range(40)]
    wire.say("POST", SEARCH, results((42, []), (42, crowd[:6])))
    wire.say("POST", SEARCH, results((42, []), (42, [*crowd[:22], hit(TWO), hit(THREE)])))

    ranking = await index.search(replace(asked("tea", limit=2), embedding=None))

    assert [call.body["queries"][1]["limit"] for call in wire.made("POST", SEARCH)] == [6, 24]
    assert len({found.memory.id for found in ranking}) == 2


async def test_the_inventory_is_read_page_by_page_within_its_tenant(wire: Wire, index: Opened) -> None:
    ids = [UUID(int=number) for number in range(1, 2101)]
    documents = [{"memory": token(str(id_)), "state": f"1:{id_.int}"} for id_ in ids]
    pages = [documents[:1000], documents[1000:2000], documents[2000:], []]
    wire.say("POST", f"{DOCUMENTS}/fetch", *(Said({"results": page, "total": 2100}) for page in pages))

    found = await index.inventory("Acme")

    assert found == {id_: f"1:{id_.int}" for id_ in ids}
    bodies = [call.body for call in wire.made("POST", f"{DOCUMENTS}/fetch")]
    assert [body["offset"] for body in bodies] == [0, 1000, 2000]
    assert {body["filter"] for body in bodies} == {f'tenant = "{token("Acme")}"'}
    assert all(body["fields"] == ["memory", "state"] for body in bodies)


async def test_a_build_is_made_beside_swapped_in_and_its_predecessor_removed(wire: Wire, index: Opened) -> None:
    await index.apply([Change(ONE, record("old"))])
    beside = index.beside(3)
    await beside.apply([Change(TWO, record("new"))])
    await beside.flush()
    before = _texts(wire, LIVE)

    await index.switch(3)

    assert (before, _texts(wire, LIVE)) == (["old"], ["new"])
    assert list(wire.indexes) == [LIVE]
    assert wire.indexes[LIVE].settings["embedders"][EMBEDDER]["dimensions"] == 64
    await index.apply([Change(THREE, record("newer"))])
    assert _texts(wire, LIVE) == ["new", "newer"]


async def test_a_switch_that_was_made_is_not_undone_by_being_asked_for_again(wire: Wire, index: Opened) -> None:
    await index.apply([Change(ONE, record("old"))])
    await index.beside(3).apply([Change(TWO, record("new"))])

    for _ in range(3):
        await index.switch(3)

    assert _texts(wire, LIVE) == ["new"]
    assert [task.type for task in wire.tasks].count("indexSwap") == 1


async def test_a_crash_between_the_swap_and_the_removal_is_made_good(wire: Wire, url: str) -> None:
    async with opened(url) as first:
        await first.apply([Change(ONE, record("old"))])
        await first.beside(3).apply([Change(TWO, record("new"))])
        wire.say("DELETE", f"/indexes/{BESIDE}", refused(503, "unavailable", "internal"))
        with pytest.raises(Unavailable):
            await first.switch(3)
        left = (_texts(wire, LIVE), _texts(wire, BESIDE))

    async with opened(url) as second:
        await second.switch(3)

    assert left == (["new"], ["old"])
    assert _texts(wire, LIVE) == ["new"]
    assert list(wire.indexes) == [LIVE]


async def test_a_crash_before_the_swap_was_done_does_not_swap_twice(wire: Wire, url: str) -> None:
    async with opened(url, task_timeout_s=2) as first:
        await first.apply([Change(ONE, record("old"))])
        await first.beside(3).apply([Change(TWO, record("new"))])
        wire.busy_from = "indexSwap"
        with pytest.raises(Unavailable):
            await first.switch(3)
        between = _texts(wire, LIVE)

    async with opened(url) as second:
        wire.is_busy = False
        await second.switch(3)

    assert between == ["old"]
    assert _texts(wire, LIVE) == ["new"]
    assert [task.type for task in wire.tasks].count("indexSwap") == 1


async def test_a_build_of_nothing_takes_the_place_of_something_and_of_nothing(wire: Wire, index: Opened) -> None:
    await index.switch(1)
    await index.apply([Change(ONE, record("old"))])
    await index.switch(2)

    assert _texts(wire, LIVE) == []
    assert wire.indexes[LIVE].documents[BUILD][BUILD] == 2


async def test_a_build_goes_on_where_it_was_left(wire: Wire, url: str) -> None:
    for id_, text in ((ONE, "one"), (TWO, "two")):
        async with opened(url) as index:
            await index.beside(3).apply([Change(id_, record(text))])

    assert _texts(wire, BESIDE) == ["one", "two"]
    assert [task.type for task in wire.tasks].count("indexCreation") == 1


def _texts(wire: Wire, uid: str) -> list[str]:
    return [document["text"] for document in wire.indexes[uid].documents.values() if document["id"] != BUILD]


async def test_a_server_that_is_not_there_is_unavailable(url: str) -> None:
    with served(Wire()) as gone:
        pass
    async with opened(gone) as index:
        for asking in (index.index.prepare(), index.search(asked("tea")), index.apply([Change(ONE, record("tea"))])):
            with pytest.raises(Unavailable, match=r"index is not available: http://127\.0\.0\.1.*does not answer"):
                await asking


async def test_what_is_told_of_a_server_leaves_its_password_out(wire: Wire, url: str) -> None:
    async with opened(url.replace("//", "//ann:secret@"), read_timeout_s=0.1) as index:
        wire.say("GET", "/version", Said({}, delay_s=0.3), Said({}))
        for _ in range(2):
            with pytest.raises((Unavailable, Misconfigured)) as told:
                await index.index.prepare()
            assert "secret" not in str(told.value)


async def test_a_server_that_came_back_is_met_again(wire: Wire) -> None:
    with served(wire) as url:
        index = open_meilisearch(url, None, LIVE, 64, read_timeout_s=PATIENCE_S)
        await index.apply([Change(ONE, record("tea"))])
        port = int(url.rsplit(":", 1)[1])
    with pytest.raises(Unavailable):
        await index.apply([Change(TWO, record("tea"))])
    with served(wire, port):
        await index.apply([Change(TWO, record("tea"))])
        await index.search(asked("tea"))
        await index.close()

    assert len(wire.indexes[LIVE].documents) == 2


async def test_a_search_has_a_deadline(wire: Wire, url: str) -> None:
    async with opened(url, read_timeout_s=1) as index:
        await index.index.prepare()
        wire.say("POST", SEARCH, Said({"results": []}, delay_s=2.5))

        with pytest.raises(Unavailable, match=r"within 1 s|does not answer"):
            await index.search(asked("tea"))


@pytest.mark.parametrize(
    ("answer", "expected", "text"),
    [
        (refused(500, "internal", "internal"), Unavailable, "internal: said internal"),
        (refused(503, "too_many_search_requests", "system"), Unavailable, "too_many_search_requests"),
        (refused(429, "too_many_requests"), Unavailable, "too_many_requests"),
        (refused(404, "index_not_found"), Unavailable, "index_not_found.*run `lamina reindex`"),
        (refused(401, "missing_authorization_header", "auth"), Misconfigured, r"hybrid\.api_key"),
        (refused(400, "invalid_search_filter"), Misconfigured, "multi-search: invalid_search_filter: said"),
        (Said(b"<html>Bad gateway</html>", 502), Unavailable, "HTTP 502"),
        (Said(b"<html>Sign in</html>", 200), Unavailable, "does not answer: JSONDecodeError"),
    ],
)
async def test_each_refusal_of_a_search_is_told_as_what_it_is(
    wire: Wire, index: Opened, answer: Said, expected: type[LaminaError], text: str
) -> None:
    await index.index.prepare()
    wire.say("POST", SEARCH, answer)

    with pytest.raises(expected, match=f"(?i){text}"):
        await index.search(asked("tea"))

    await index.search(asked("tea"))


async def test_a_payload_that_the_server_does_not_take_names_the_setting(wire: Wire, index: Opened) -> None:
    await index.index.prepare()
    wire.say("POST", DOCUMENTS, refused(413, "payload_too_large"))

    with pytest.raises(Misconfigured, match=r"lower hybrid\.payload_mib"):
        await index.apply([Change(ONE, record("tea"))])


async def test_an_index_that_was_removed_is_made_again_with_its_settings(wire: Wire, index: Opened) -> None:
    await index.apply([Change(ONE, record("tea"))])
    wire.indexes.clear()
    wire.say("POST", SEARCH, refused(404, "index_not_found"))
    with pytest.raises(Unavailable, match="index_not_found"):
        await index.search(asked("tea"))

    await index.apply([Change(ONE, record("tea"))])

    assert wire.indexes[LIVE].settings["searchableAttributes"] == ["text"]


async def test_searches_and_changes_at_the_same_time_keep_their_headers_apart(wire: Wire, index: Opened) -> None:
    await asyncio.gather(
        *(index.search(asked(f"tea {number}")) for number in range(40)),
        *(index.apply([Change(UUID(int=number), record("tea"))]) for number in range(1, 21)),
    )

    assert len(wire.indexes[LIVE].documents) == 20
    types = {(call.method, call.path, call.headers.get("content-type")) for call in wire.calls}
    assert {type_ for method, path, type_ in types if method == "POST" and path != DOCUMENTS} == {"application/json"}
    assert {type_ for method, path, type_ in types if (method, path) == ("POST", DOCUMENTS)} == {"application/x-ndjson"}
    assert 1 < len(index.index._server._connections) <= 32


class Echo(Wire):
    """Answers each search with its own words, as slowly as a server with much to do, but for those that it refuses."""

    delay_s = 0.0

    def _known(self, call: Call) -> Said:
        if call.path != SEARCH:
            return super()._known(call)
        words = [query["q"] for query in call.body["queries"]]
        if "refused" in words:
            return refused(400, "invalid_search_filter")
        return Said({"results": [{"q": said, "hits": []} for said in words]}, delay_s=self.delay_s)


@pytest.fixture
def echo() -> Echo:
    return Echo()


@pytest.fixture
async def chunks(echo: Echo) -> AsyncIterator[MeilisearchChunks]:
    with served(echo) as url:
        async with opened(url, connections=12) as index:
            await index.index.prepare()
            yield index.index._live


async def said(chunks: MeilisearchChunks, *words: str) -> list[str]:
    return [answer["q"] for answer in await chunks.search([{"q": word} for word in words])]


async def test_one_call_carries_the_questions_that_wait_and_each_gets_its_own_answers(
    echo: Echo, chunks: MeilisearchChunks
) -> None:
    echo.delay_s = 0.2
    questions = [[f"{number} {place}" for place in range(1 + number % 5)] for number in range(60)]

    answers = await asyncio.gather(*(said(chunks, *words) for words in questions))

    assert answers == questions
    calls = echo.made("POST", SEARCH)
    assert len(calls) < len(questions) / 2
    assert all(len(call.body["queries"]) <= 64 for call in calls)


async def test_an_idle_line_carries_a_question_at_once_and_alone(echo: Echo, chunks: MeilisearchChunks) -> None:
    for number in range(5):
        assert await said(chunks, f"{number}", "tea") == [f"{number}", "tea"]

    assert [len(call.body["queries"]) for call in echo.made("POST", SEARCH)] == [2] * 5


async def test_connections_follow_the_load_up_to_their_bound(echo: Echo, chunks: MeilisearchChunks) -> None:
    connections = chunks._server._connections
    idle = len(connections)
    echo.delay_s = 0.3

    await asyncio.gather(*(said(chunks, f"{number}") for number in range(200)))

    assert idle < len(connections) <= 12


async def test_a_question_that_is_refused_spoils_no_other(echo: Echo, chunks: MeilisearchChunks) -> None:
    echo.delay_s = 0.2
    asked = ["refused" if number % 7 == 3 else f"{number}" for number in range(30)]

    answers = await asyncio.gather(*(said(chunks, word) for word in asked), return_exceptions=True)

    for word, answer in zip(asked, answers, strict=True):
        assert isinstance(answer, Misconfigured) if word == "refused" else answer == [word]


async def test_a_caller_that_leaves_takes_no_other_question_along(echo: Echo, chunks: MeilisearchChunks) -> None:
    echo.delay_s = 0.2
    asking = [asyncio.create_task(said(chunks, f"{number}")) for number in range(40)]
    await asyncio.sleep(0.05)
    for task in asking[::3]:
        task.cancel()

    answers = await asyncio.gather(*asking, return_exceptions=True)

    assert all(answer == [f"{number}"] for number, answer in enumerate(answers) if number % 3)


async def test_two_processes_that_make_the_index_at_once_both_go_on(wire: Wire, url: str) -> None:
    wire.fail("indexCreation", "index_already_exists")
    async with opened(url) as one, opened(url) as other:
        await asyncio.gather(one.index.prepare(), other.index.prepare())

    assert list(wire.indexes) == [LIVE]


async def test_a_document_is_json_whatever_its_text() -> None:
    strange = 'a "quoted" \\ one\u2028\n🎉 \u0001'
    (document,) = documents_of([Change(ONE, record(strange))], 64)

    assert json.loads(json.dumps(document))["text"] == f"{strange} u1f389"  # The symbol's word stands behind.


async def test_closing_leaves_no_thread_at_work(url: str) -> None:
    index = MeilisearchIndex(MeilisearchSettings(url=url), LIVE, dimension=64)
    await index.prepare()
    await index.close()

    with pytest.raises(RuntimeError, match="shutdown"):
        await index.by_words(asked("tea"))
