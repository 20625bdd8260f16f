from typing import Any

import httpx
import pytest

from tests.support.application import Application

NOTES = ("The ferry to Port Ellen was repaired by Ann", "Someone mended the boat", "Tea is served at four")


async def found(client: httpx.AsyncClient, **body: Any) -> list[dict[str, Any]]:
    answer = await client.post("/v1/search", json={"query": "who repaired the ferry?", "cache": False, **body})
    assert answer.status_code == 200, answer.text
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


@pytest.fixture
async def client(application: Application) -> httpx.AsyncClient:
    client = application.client()
    await client.post("/v1/notes/batch", json={"notes": list(NOTES)})
    await client.post("/v1/documents", json={"key": "ferry", "content": "# Ferry\n\nAnn repaired the ferry in May."})
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "Ann repaired the ferry."}]})
    await client.post("/v1/graph/edges", json={"edges": [{"subject": "Ann", "type": "repaired", "object": "ferry"}]})
    await application.indexed()
    return client


@pytest.mark.parametrize("fusion", ["rrf", "plain_rrf", "weighted"])
async def test_by_words_alone_nothing_is_found_that_shares_no_word(client: httpx.AsyncClient, fusion: str) -> None:
    hits = await found(client, fusion=fusion, weights={"keyword": 1, "vector": 0, "graph": 0})

    assert {hit["tier"] for hit in hits} >= {"sessions", "notes", "documents"}
    assert all(any(word in hit["content"].casefold() for word in ("ferry", "repaired")) for hit in hits)


async def test_a_source_of_weight_0_is_not_asked_and_places_nothing(client: httpx.AsyncClient) -> None:
    hits = await found(client, weights={"graph": 0, "documents": 0}, explain=True)

    assert hits
    assert {hit["tier"] for hit in hits} == {"sessions", "notes"}
    assert not any({"graph", "documents"} & hit["explain"].keys() for hit in hits)


async def test_a_lighter_source_comes_after_the_others(client: httpx.AsyncClient) -> None:
    even = [hit["tier"] for hit in await found(client, fusion="plain_rrf", weights={"graph": 0})]
    light = [hit["tier"] for hit in await found(client, fusion="plain_rrf", weights={"graph": 0, "documents": 0.02})]

    assert even.index("documents") < len(even) - 1
    assert light.index("documents") == len(light) - 1


@pytest.mark.parametrize(
    ("body", "named"),
    [
        ({"weights": {"words": 1}}, "weights: has 'words'; expected keyword, vector, graph, session_vectors"),
        ({"weights": {"keyword": -1}}, "weights.keyword"),
        ({"weights": {"keyword": "1"}}, "weights.keyword"),
        ({"weights": {"keyword": 0, "vector": 0, "graph": 0}}, "weights"),
        ({"weights": {"graph": 0}, "tiers": ["graph"]}, "weights"),
        ({"relevance": {"similarity": 0}}, "relevance.similarity"),
        ({"relevance": {"nearness": 1}}, "relevance.nearness"),
    ],
)
async def test_weights_that_say_nothing_are_refused_by_name(
    client: httpx.AsyncClient, body: dict[str, Any], named: str
) -> None:
    answer = await client.post("/v1/search", json={"query": "who repaired the ferry?", **body})

    assert answer.status_code == 422
    assert named in answer.text
    assert answer.status_code == (await client.post("/v1/context", json={"query": "who?", **body})).status_code


async def test_two_weights_are_two_answers_of_the_cache(client: httpx.AsyncClient) -> None:
    asked = {"query": "who repaired the ferry?", "fusion": "plain_rrf"}
    answers = [
        (await client.post("/v1/search", json={**asked, "weights": {"graph": 0, "documents": weight}})).json()[
            "results"
        ]
        for weight in (1, 0.02, 1)
    ]

    assert [hit["tier"] for hit in answers[0]] == [hit["tier"] for hit in answers[2]]
    assert [hit["tier"] for hit in answers[0]] != [hit["tier"] for hit in answers[1]]


async def test_a_context_of_plain_rank_fusion_holds_what_its_search_finds(client: httpx.AsyncClient) -> None:
    asked = {"query": "who repaired the ferry?", "fusion": "plain_rrf", "limit": 3, "cache": False}
    block = (await client.post("/v1/context", json=asked)).json()

    assert [hit["content"] for hit in block["results"]] == [hit["content"] for hit in await found(client, **asked)]
    assert len(block["results"]) == 3


@pytest.mark.parametrize(
    "weights", [{"vector": 0}, {"keyword": 1, "vector": 0, "graph": 0}, {"vector": 0, "documents": 2}]
)
async def test_a_composite_without_meaning_fills_a_context(
    client: httpx.AsyncClient, weights: dict[str, float]
) -> None:
    asked = {"query": "who repaired the ferry?", "fusion": "composite", "weights": weights, "cache": False}
    block = (await client.post("/v1/context", json=asked)).json()

    assert any("ferry" in hit["content"] for hit in block["results"]), block


@pytest.mark.parametrize(
    ("weights", "left_out"),
    [
        ({"graph": 0}, {"graph"}),
        ({"vector": 0}, {"session_vectors", "session_context"}),
        ({"keyword": 0}, {"session_keywords", "session_context"}),
        ({"documents": 0}, {"documents"}),
    ],
)
async def test_a_source_of_weight_0_is_not_counted_among_the_sources(
    client: httpx.AsyncClient, weights: dict[str, float], left_out: set[str]
) -> None:
    asked = {"query": "who repaired the ferry?", "cache": False}
    whole = (await client.post("/v1/search", json=asked)).json()["sources"].keys()
    counted = (await client.post("/v1/search", json={**asked, "weights": weights})).json()["sources"].keys()

    assert left_out & whole
    assert not left_out & counted
