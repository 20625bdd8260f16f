"""A search takes few statements, asks nothing of tiers that hold nothing, and shows nothing that has gone meanwhile."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import UUID

import httpx
import psycopg
import pytest

from lamina.core.queries import Memory, RowRequest
from lamina.core.tiers import Tier
from lamina.embedded import EmbeddedFalkorDB
from lamina.models.hashing import HashingModel
from lamina.search.late_rows import LateRows
from lamina.settings.stores import FalkorDBServerSettings
from lamina.stores.postgres.outbox import enqueue_all
from tests.support.application import Application, fused_search, running, settings_for
from tests.support.wiretap import Wiretap, wiretapped

MOST_OF_A_MISS, MOST_OF_A_HIT = 8, 2
# Written behind the answers, those of a while together.
BEHIND = ("INSERT INTO", "UPDATE")
WHEN = (
    "before the winter storms of the coming year",
    "once the new ropes have come from the mainland",
    "as soon as Tom Baker has paid his half of the bill",
    "while the children are away at school in Glasgow",
    "after the council has looked at both of the drawings",
    "although nobody asked her whether she has the time",
    "if the price of copper does not rise any further",
    "because the insurance wants a receipt for everything",
)
TOPICS = ("the ferry", "the lighthouse", "the harbour", "the barometer", "the chart")


@pytest.fixture
def tap(database: str) -> Iterator[Wiretap]:
    with wiretapped(database) as counted:
        yield counted


@pytest.fixture
async def app(database: str, tmp_path: Path, falkordb: EmbeddedFalkorDB, tap: Wiretap) -> AsyncIterator[Application]:
    settings = settings_for(tap.url, tmp_path, graph=FalkorDBServerSettings(url=falkordb.url), write={"key_cache_s": 5})
    async with running(settings, database, HashingModel(), follow=False) as app:
        yield app


async def converse(client: httpx.AsyncClient) -> None:
    """Store messages about people and places, with the notes and names that are drawn from them."""
    for turn in range(8):
        said = [
            {"content": f"We decided that Ann Miller repairs {topic} in Port Ellen {WHEN[turn]}. I prefer {topic}."}
            for topic in TOPICS
        ]
        answer = await client.post("/v1/turns", json={"session": f"s{turn % 2}", "messages": said})
        answer.raise_for_status()


async def fill_the_rest(client: httpx.AsyncClient) -> None:
    for topic in TOPICS:
        await client.post("/v1/procedures", json={"trigger": f"repair {topic}", "action": "call Ann Miller"})
        await client.post("/v1/documents", json={"key": topic, "content": f"# {topic}\n\nAnn Miller repairs {topic}."})


async def ask(client: httpx.AsyncClient, query: str, **more: Any) -> dict[str, Any]:
    answer = await client.post("/v1/search", json={"query": query, **more})
    answer.raise_for_status()
    found: dict[str, Any] = answer.json()
    return found


async def warmed(app: Application, client: httpx.AsyncClient) -> None:
    """Apply everything, and open the connections that a search uses."""
    await app.indexed()
    for topic in TOPICS:
        await ask(client, f"who repairs {topic}?")


def of_searches(statements: Sequence[str]) -> list[str]:
    return [text for text in statements if not any(word in text for word in BEHIND)]


def heads(statements: Sequence[str]) -> str:
    return "\n".join(" ".join(text.split())[:60] for text in statements)


async def statements_of(app: Application, tap: Wiretap, client: httpx.AsyncClient, query: str) -> list[str]:
    """Return the statements of one search, and those of a connection that it had to open or of a cache that ran out."""
    tap.everything.clear()
    found = await ask(client, query)
    assert found["degraded"] == []
    return of_searches(tap.everything)


async def test_a_search_over_a_conversation_takes_few_statements_and_a_hit_hardly_any(
    app: Application, tap: Wiretap
) -> None:
    client = app.client()
    await converse(client)
    await warmed(app, client)

    question = "does Ann Miller repair {} in Port Ellen?"
    # On a busy machine one of them opens connections or reads its key again: the least is the search's own.
    missed = min([await statements_of(app, tap, client, question.format(topic)) for topic in TOPICS], key=len)
    hit = min([await statements_of(app, tap, client, question.format(TOPICS[0])) for _ in TOPICS], key=len)

    assert len(missed) <= MOST_OF_A_MISS, heads(missed)
    assert len(hit) <= MOST_OF_A_HIT, heads(hit)


QUESTIONS = (
    "does Ann Miller repair {} in Port Ellen?",
    "so was it Ann Miller in the end, or somebody else from Port Ellen, who was going to repair {} before the winter?",
    "谁在 Port Ellen 修理 {}? Кто чинит {}? من يصلح {}",
    "{}",
)


async def cool(app: Application) -> None:
    """Make some of the notes cold."""
    with psycopg.connect(app.url, autocommit=True) as connection:
        connection.execute("UPDATE notes SET temperature = 'cold' WHERE content LIKE '%prefer%lighthouse%'")
        connection.execute("UPDATE note_chunks SET tsv = NULL FROM notes WHERE id = note_id AND temperature = 'cold'")
    for name in ("notes", "cold"):
        enqueue_all(app.url, name)
    await app.indexed()


@pytest.mark.parametrize("question", QUESTIONS)
async def test_a_search_over_all_tiers_takes_few_statements_however_long_the_question(
    app: Application, tap: Wiretap, question: str
) -> None:
    client = app.client()
    await converse(client)
    await fill_the_rest(client)
    await app.indexed()
    await cool(app)
    await warmed(app, client)

    counts = [await statements_of(app, tap, client, question.replace("{}", topic)) for topic in TOPICS]
    missed = min(counts, key=len)
    again = min([await statements_of(app, tap, client, question.replace("{}", TOPICS[0])) for _ in TOPICS], key=len)
    found = await ask(client, QUESTIONS[0].format("the lighthouse"), cache=False, limit=50)

    assert len(missed) <= MOST_OF_A_MISS, heads(missed)
    assert len(again) == 1, heads(again)
    # Else fewer would be no wonder.
    assert all(found["sources"].values()), found["sources"]


async def test_a_tier_that_holds_nothing_is_not_asked_until_it_holds_something(app: Application, tap: Wiretap) -> None:
    client = app.client()
    await converse(client)
    await warmed(app, client)
    tables = ("procedures p", "passages p")

    before = await statements_of(app, tap, client, "how is the ferry repaired?")
    await fill_the_rest(client)
    await app.indexed()
    after = await statements_of(app, tap, client, "how is the ferry repaired?")
    found = await ask(client, "repair the ferry", cache=False)

    asked = [[text for text in texts if "asked.place" not in text] for texts in (before, after)]
    assert [sum(any(table in text for text in texts) for table in tables) for texts in asked] == [0, 2]
    assert {"procedures", "documents"} <= {hit["tier"] for hit in found["results"]}


class Meanwhile:
    """Deletes a note after it was ranked and before its row is read."""

    def __init__(self, app: Application, statement: str) -> None:
        self._rows = fused_search(app)._late_rows.lookup
        self._url, self._statement = app.url, statement

    async def rows(self, wanted: Sequence[RowRequest]) -> Mapping[tuple[Tier, UUID], Memory]:
        with psycopg.connect(self._url, autocommit=True) as connection:
            connection.execute(self._statement.encode())
        return await self._rows.rows(wanted)


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE notes SET deleted_at = now() WHERE content LIKE '%buoy 3%'",
        "UPDATE notes SET expires_at = now() - interval '1 second' WHERE content LIKE '%buoy 3%'",
        "UPDATE notes SET user_id = 'somebody else' WHERE content LIKE '%buoy 3%'",
        "UPDATE notes SET workspace = 'elsewhere' WHERE content LIKE '%buoy 3%'",
        "UPDATE notes SET tags = '{}' WHERE content LIKE '%buoy 3%'",
    ],
)
async def test_what_is_gone_or_hidden_between_ranking_and_reading_leaves(app: Application, statement: str) -> None:
    client = app.client()
    for number in range(1, 6):
        await client.post("/v1/notes", json={"content": f"The green buoy {number} was painted.", "tags": ["buoys"]})
    await app.indexed()
    asked = {"tiers": ["notes"], "cache": False, "tags": ["buoys"], "user": "ann"}
    search = fused_search(app)

    before = await ask(client, "green buoy painted", **asked)
    search._late_rows = LateRows(Meanwhile(app, statement), search._policy.diversity)
    after = await ask(client, "green buoy painted", **asked)

    shown = [{hit["content"] for hit in found["results"]} for found in (before, after)]
    assert shown[0] - shown[1] == {"The green buoy 3 was painted."}
    assert after["degraded"] == []


async def test_a_deep_list_asks_every_source_for_as_many(app: Application) -> None:
    client = app.client()
    await converse(client)
    await app.indexed()

    found = await ask(client, "who repairs the ferry in Port Ellen?", limit=30, cache=False)

    assert found["sources"]["session_words"] == found["sources"]["session_vectors"] == 30
    assert len(found["results"]) == 30
