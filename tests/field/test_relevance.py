"""Field cases 43, 44 and 63, explanations, memory profiles and the context block, through the API."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from deployments.api import build_api
from deployments.rendering import render_context
from lamina.caching.cached_search import CachedSearch
from lamina.core.principals import KeyRole
from lamina.core.queries import Filters
from lamina.core.scope import Scope
from lamina.models.hashing import HashingModel
from lamina.settings.stores import NoGraphSettings
from lamina.stores.postgres.found_rows import FoundRows
from lamina.wiring.services import build_context_search
from tests.support.application import Application, fused_search, running, settings_for

FACTS = (
    "Ann drinks green tea in the morning",
    "We chose Rust for the parser because of its speed",
    "The weekly meeting moved to Thursday afternoon",
    "The cat of the office is called Tom",
    "Invoices are sent by the fifth of each month",
)
QUESTIONS = (
    ("What does Ann drink?", FACTS[0]),
    ("Which language did we pick for the parser?", FACTS[1]),
    ("When is the weekly meeting?", FACTS[2]),
    ("What is the name of the cat?", FACTS[3]),
    ("When do bills go out?", FACTS[4]),
)
METHODS: tuple[dict[str, Any], ...] = (
    {"fusion": "rrf"},
    {"fusion": "weighted"},
    {"fusion": "weighted", "normalise": "absolute"},
    {"fusion": "composite"},
    {"fusion": "plain_rrf"},
)
REPEATED = "the coffee machine on the second floor is broken again and someone has called the technician about it"
Json = dict[str, Any]


async def posted(app: Application, path: str, **body: Any) -> Json:
    answer = await app.client().post(f"/v1/{path}", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


async def remember(app: Application, *texts: str, **ids: Any) -> None:
    await app.client().post("/v1/notes/batch", json={"notes": list(texts), **ids})
    await app.indexed()


@pytest.fixture(scope="module")
async def knowing(shared_semantic: Application) -> AsyncIterator[Application]:
    """A tenant that knows some facts, with the real embedding model."""
    mine = shared_semantic.for_tenant("tenant of relevance")
    await remember(mine, *FACTS)
    turn = {"session": "s", "messages": [{"content": text, "ref": str(place)} for place, text in enumerate(FACTS)]}
    await mine.client().post("/v1/turns", json=turn)
    await mine.indexed()
    yield mine
    await mine.close_clients()


@pytest.mark.parametrize(("question", "fact"), QUESTIONS)
async def test_the_default_profile_returns_hits_for_a_good_query(
    knowing: Application, question: str, fact: str
) -> None:
    block = await posted(knowing, "context", query=question)

    assert block["results"][0]["content"] == fact
    assert block["text"].startswith("[Memory: ")
    assert all(hit["score"] >= 0.5 for hit in block["results"])


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(("question", "fact"), QUESTIONS)
async def test_every_fusion_puts_the_answer_first(knowing: Application, question: str, fact: str, method: Json) -> None:
    found = (await posted(knowing, "search", query=question, **method))["results"]

    assert found[0]["content"] == fact
    assert all(0 <= hit["score"] <= 1 for hit in found)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("query", ["qwertz zzz", "asdf jkl", "xqzv wpfk", "blorf snizzle quux"])
async def test_a_nonsense_query_scores_below_the_threshold_and_fills_no_context(
    knowing: Application, query: str, method: Json
) -> None:
    found = (await posted(knowing, "search", query=query, **method))["results"]
    block = await posted(knowing, "context", query=query, **method)

    assert all(hit["score"] < 0.5 for hit in found)
    assert (block["text"], block["results"]) == ("", [])


@pytest.mark.parametrize("method", METHODS)
async def test_the_identical_text_is_first_in_every_fusion_with_a_high_score(
    knowing: Application, method: Json
) -> None:
    found = (await posted(knowing, "search", query=FACTS[1], **method))["results"]

    assert [hit["content"] for hit in found[:2]] == [FACTS[1], FACTS[1]]
    # plain_rrf: a share of the first rank in every source, and no source but those of its tier can hold it.
    assert found[0]["score"] >= {"composite": 0.8, "plain_rrf": 0.3}.get(method["fusion"], 0.99)


@pytest.mark.parametrize("method", METHODS)
async def test_ten_nearly_identical_notes_and_one_other_give_a_context_of_both_kinds(
    application: Application, method: Json
) -> None:
    # What differs in a number is stored as a note of its own: the write path merges only what says the same.
    await remember(application, *(f"{REPEATED}, report {count}" for count in range(10)), "the printer is broken too")

    block = await posted(application, "context", query="what is broken again", limit=5, min_score=0, **method)

    contents = [hit["content"] for hit in block["results"]]
    assert len(contents) == 5
    assert "the printer is broken too" in contents[:4]


async def test_an_explanation_shows_rank_score_and_raw_figures_of_every_source(knowing: Application) -> None:
    found = (await posted(knowing, "search", query=FACTS[0], explain=True, limit=4))["results"]

    by_tier = {hit["tier"]: hit for hit in reversed(found) if hit["content"] == FACTS[0]}
    assert by_tier["notes"]["explain"].keys() >= {"notes_hybrid", "notes_warm"}
    assert by_tier["sessions"]["explain"].keys() >= {"session_vectors", "session_words", "session_context"}
    hybrid = by_tier["notes"]["explain"]["notes_hybrid"]
    assert (hybrid["rank"], hybrid["raw"].keys()) == (1, {"bm25", "cosine"})
    assert by_tier["notes"]["explain"]["notes_warm"]["raw"].keys() == {"ts_rank_cd"}
    assert by_tier["notes"]["temperature"] == "warm"
    assert by_tier["notes"]["score"] == 1.0


async def test_without_explain_nothing_is_explained(knowing: Application) -> None:
    found = await posted(knowing, "search", query=FACTS[0])

    assert {hit["explain"] for hit in found["results"]} == {None}
    assert found["reasons"] is None


async def test_a_search_leaves_out_what_scores_less_than_it_asks(knowing: Application) -> None:
    whole = (await posted(knowing, "search", query=FACTS[0]))["results"]
    least = whole[1]["score"]

    cut = (await posted(knowing, "search", query=FACTS[0], min_score=least))["results"]

    assert [hit["id"] for hit in cut] == [hit["id"] for hit in whole if hit["score"] >= least]


async def test_a_graph_that_is_off_is_named_where_it_was_asked_for(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, graph=NoGraphSettings())
    async with running(settings, database, HashingModel()) as app:
        await remember(app, "green tea")

        everything = await posted(app, "search", query="green tea", explain=True)
        block = await posted(app, "context", query="green tea")
        notes = await posted(app, "search", query="green tea", tiers=["notes"])
        nothing = await app.client().post("/v1/search", json={"query": "green tea", "tiers": ["graph"]})

    assert everything["reasons"]["graph"] == "disabled by graph.kind=off"
    assert "graph" in everything["degraded"]
    assert "graph" in block["degraded"]
    assert notes["degraded"] == []
    assert nothing.status_code == 503
    assert "disabled by graph.kind=off" in nothing.json()["detail"]


async def test_a_search_as_of_a_date_does_not_see_what_came_later(application: Application) -> None:
    client = application.client()
    for name, moment in (("early", "2026-01-01T00:00Z"), ("late", "2026-03-01T00:00Z")):
        await client.post("/v1/notes", json={"content": f"meeting {name}", "event_at": moment})
    await application.indexed()

    found = await posted(application, "search", query="meeting", as_of="2026-02-01T00:00Z")

    assert [hit["content"] for hit in found["results"]] == ["meeting early"]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("fusion", "best"),
        ("normalise", "z"),
        ("depth", 0),
        ("depth", 4),
        ("min_score", 1.5),
        ("min_score", "0.5"),
        ("tiers", ["profile"]),
        ("tiers", []),
        ("as_of", "yesterday"),
    ],
)
async def test_a_wrong_manner_of_searching_is_refused_by_field(
    application: Application, field: str, value: object
) -> None:
    for path in ("search", "context"):
        answer = await application.client().post(f"/v1/{path}", json={"query": "tea", field: value})

        assert answer.status_code == 422
        assert answer.json()["errors"][0]["field"].startswith(field)


async def test_an_agent_without_a_memory_profile_has_the_defaults_and_asking_creates_none(
    application: Application,
) -> None:
    client = application.client()

    twice = [(await client.get("/v1/memory-profile", params={"agent": "coder"})).json() for _ in range(2)]

    expected = {"max_context_chunks": 20, "min_relevance": 0.5, "ttl_days": None, "prompt_suffix": "", "profile": True}
    tiers = ["sessions", "notes", "graph", "procedures", "documents"]
    assert twice == [{"agent": "coder", "tiers": tiers, **expected, "updated_at": None, "unverified": False}] * 2


async def test_a_memory_profile_is_put_whole_and_deleted(application: Application) -> None:
    client = application.client()
    body = {"agent": "coder", "tiers": ["notes"], "max_context_chunks": 3, "min_relevance": 0.2, "ttl_days": 30.5}

    put = (await client.put("/v1/memory-profile", json={**body, "prompt_suffix": "Be brief."})).json()
    again = (await client.put("/v1/memory-profile", json={"agent": "coder", "ttl_days": 7})).json()
    read = (await client.get("/v1/memory-profile", params={"agent": "coder"})).json()
    deleted = await client.delete("/v1/memory-profile", params={"agent": "coder"})
    gone = await client.delete("/v1/memory-profile", params={"agent": "coder"})

    assert {**body, "prompt_suffix": "Be brief."}.items() <= put.items()
    assert read == again
    assert (again["max_context_chunks"], again["ttl_days"], again["prompt_suffix"]) == (20, 7, "")
    assert (deleted.status_code, gone.status_code) == (204, 404)


async def test_a_memory_profile_belongs_to_one_agent_of_one_workspace_of_one_tenant(application: Application) -> None:
    client = application.client()
    await client.put("/v1/memory-profile", json={"agent": "coder", "workspace": "w", "max_context_chunks": 3})
    other = application.for_tenant("another tenant")

    seen = {
        "same": (await client.get("/v1/memory-profile", params={"agent": "coder", "workspace": "w"})).json(),
        "agent": (await client.get("/v1/memory-profile", params={"agent": "coder2", "workspace": "w"})).json(),
        "workspace": (await client.get("/v1/memory-profile", params={"agent": "coder"})).json(),
        "tenant": (await other.client().get("/v1/memory-profile", params={"agent": "coder", "workspace": "w"})).json(),
    }
    await other.close_clients()

    assert {name: found["max_context_chunks"] for name, found in seen.items()} == {
        "same": 3,
        "agent": 20,
        "workspace": 20,
        "tenant": 20,
    }


async def test_readers_may_not_change_memory_profiles(application: Application) -> None:
    reader = application.client(application.new_key(application.tenant, KeyRole.READER))

    put = await reader.put("/v1/memory-profile", json={"agent": "coder"})
    deleted = await reader.delete("/v1/memory-profile", params={"agent": "coder"})
    read = await reader.get("/v1/memory-profile", params={"agent": "coder"})

    assert (put.status_code, deleted.status_code, read.status_code) == (403, 403, 200)


@pytest.mark.parametrize(
    "wrong",
    [
        {"tiers": []},
        {"tiers": ["profile"]},
        {"max_context_chunks": 0},
        {"min_relevance": 2},
        {"ttl_days": -1},
        {"ttl_days": "7"},
        {"prompt_suffix": "a\x00"},
        {"color": "red"},
    ],
)
async def test_a_wrong_memory_profile_is_refused_by_field(application: Application, wrong: Json) -> None:
    answer = await application.client().put("/v1/memory-profile", json={"agent": "coder", **wrong})

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"].startswith(next(iter(wrong)))


async def test_a_memory_profile_without_an_agent_is_refused(application: Application) -> None:
    client = application.client()

    answers = [
        await client.put("/v1/memory-profile", json={}),
        await client.get("/v1/memory-profile"),
        await client.delete("/v1/memory-profile"),
    ]

    assert [answer.status_code for answer in answers] == [422, 422, 422]
    assert {answer.json()["errors"][0]["field"] for answer in answers} == {"agent"}


async def test_searches_that_name_an_agent_follow_its_memory_profile(application: Application) -> None:
    client = application.client()
    old, new = datetime.now(UTC) - timedelta(days=40), datetime.now(UTC) - timedelta(days=1)
    for place, moment in enumerate((old, new)):
        await client.post("/v1/notes", json={"content": f"tea number {place}", "event_at": moment.isoformat()})
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "tea was said"}]})
    await application.indexed()
    await client.put("/v1/memory-profile", json={"agent": "coder", "tiers": ["notes"], "ttl_days": 30})

    follows = (await posted(application, "search", query="tea", agent="coder"))["results"]
    insists = (await posted(application, "search", query="tea", agent="coder", tiers=["sessions"]))["results"]
    other = (await posted(application, "search", query="tea", agent="writer"))["results"]

    assert [hit["content"] for hit in follows] == ["tea number 1"]
    assert [hit["content"] for hit in insists] == ["tea was said"]
    assert len(other) == 3


async def test_a_context_follows_the_profiles_number_of_memories_relevance_and_suffix(
    application: Application,
) -> None:
    client = application.client()
    await remember(application, "tea in the morning", "tea at noon with milk", "some tea for the evening, please")
    body = {"agent": "coder", "max_context_chunks": 2, "prompt_suffix": "Prefer the newest."}
    await client.put("/v1/memory-profile", json=body)

    follows = await posted(application, "context", query="tea", agent="coder")
    more = await posted(application, "context", query="tea", agent="coder", limit=3)
    await client.put("/v1/memory-profile", json={**body, "min_relevance": 1})
    strict = await posted(application, "context", query="tea", agent="coder")
    tiny = await posted(application, "context", query="tea", agent="coder", min_score=0, budget_tokens=32)

    assert (len(follows["results"]), len(more["results"])) == (2, 3)
    assert follows["text"].endswith("\n\n[Suffix: coder | unverified]\nPrefer the newest.")
    assert len(strict["results"]) < 2
    assert tiny["tokens"] <= 32
    assert tiny["text"] == "[Suffix: coder | unverified]\nPrefer the newest."


async def test_a_changed_memory_profile_raises_the_epochs_of_its_workspace(application: Application) -> None:
    client = application.client()
    first = (await client.post("/v1/notes/batch", json={"notes": ["a"], "namespace": "n"})).json()["epoch"]

    await client.put("/v1/memory-profile", json={"agent": "coder"})
    await client.delete("/v1/memory-profile", params={"agent": "coder"})
    last = (await client.post("/v1/notes/batch", json={"notes": ["b"], "namespace": "n"})).json()["epoch"]

    assert last == first + 3


class Knows:
    """Hints of every memory, or the error that the graph has."""

    def __init__(self, error: Exception | None = None) -> None:
        self.asked: list[UUID] = []
        self._error = error

    async def hints(self, scope: Scope, filters: Filters, ids: Sequence[UUID]) -> Mapping[UUID, list[str]]:
        self.asked += ids
        if self._error:
            raise self._error
        return {id_: ["Ann works_at Initech", "Ann knows Bob", "Ann left Hooli"] for id_ in ids}


def with_hints(app: Application, hints: Knows) -> Application:
    services = app.services
    context = build_context_search(app.settings, fused_search(app), services.reads.profiles, hints, FoundRows(app.pool))
    cached = CachedSearch(context, render_context, services.caches.answers)
    return replace(app, api=build_api(replace(services, context=cached)), clients=app.clients)


async def test_the_three_best_memories_of_a_context_get_two_hints_each(application: Application) -> None:
    await remember(application, *(f"tea {word} {word}s" for word in ("cup", "pot", "leaf", "bag", "room")))
    hints = Knows()

    block = await posted(with_hints(application, hints), "context", query="tea")
    without = await posted(with_hints(application, Knows()), "context", query="tea", tiers=["notes"])

    assert len(block["results"]) == 5
    assert hints.asked == [UUID(hit["id"]) for hit in block["results"][:3]]
    assert block["text"].count("related: Ann works_at Initech; Ann knows Bob\nconfidence") == 3
    assert "Hooli" not in block["text"]
    assert "related" not in without["text"]


async def test_a_graph_that_gives_no_hints_degrades_the_context_alone(application: Application) -> None:
    from lamina.errors import Unavailable

    await remember(application, "tea cup")

    block = await posted(with_hints(application, Knows(Unavailable("graph", "gone"))), "context", query="tea")

    assert "hints" in block["degraded"]
    assert len(block["results"]) == 1
