"""Long texts, many names and repeated statements in the graph: work is bounded, and what is known is still found."""

import threading
from collections.abc import Sequence
from typing import Any, TypeVar
from uuid import UUID

import psycopg
import pytest
from psycopg.rows import tuple_row

from lamina.core.scope import Scope
from lamina.ingest import memory_linking, name_lookup
from lamina.search import graph_searcher
from lamina.stores.postgres import entities
from lamina.stores.postgres.connection import Connection
from tests.support.application import Application

Json = dict[str, Any]
Answer = TypeVar("Answer")


async def send(application: Application, path: str, body: Json) -> Json:
    response = await application.client().post(path, json=body)
    assert response.is_success, response.text
    return dict(response.json())


async def know(application: Application, *names: str) -> None:
    for start in range(0, len(names), 250):
        body = {"entities": [{"name": name} for name in names[start : start + 250]]}
        await send(application, "/v1/graph/entities", body)


async def remember(application: Application, content: str) -> UUID:
    return UUID((await send(application, "/v1/notes", {"content": content}))["id"])


async def rows(application: Application, query: str, *values: object) -> list[tuple[Any, ...]]:
    async with await psycopg.AsyncConnection.connect(application.url, row_factory=tuple_row) as connection:
        return await (await connection.execute(query.encode(), values)).fetchall()


async def named(application: Application, memory: UUID) -> set[str]:
    query = "SELECT e.name FROM memory_links l JOIN entities e ON e.id = l.to_id WHERE l.from_id = %s"
    return {name for (name,) in await rows(application, query, memory)}


def scattered(chars: int) -> str:
    """A Chinese text in which hardly any run of characters comes twice."""
    return "".join(chr(0x4E00 + place * 7919 % 19_997) for place in range(chars))


async def test_a_name_anywhere_in_a_long_text_is_found_with_few_and_small_questions(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[int] = []
    find = entities.find_names

    async def find_names(connection: Connection, scope: Scope, keys: Sequence[str]) -> dict[str, tuple[UUID, ...]]:
        asked.append(len(keys))
        return await find(connection, scope, keys)

    monkeypatch.setattr(name_lookup, "find_names", find_names)
    await know(application, "東京タワー", "Quentin Zorg", "大阪城")
    text = scattered(30_000)

    note = await remember(application, f"{text[:1_997]}東京タワー{text[1_997:]}。quentin zorg saw 大阪城")

    assert await named(application, note) == {"東京タワー", "Quentin Zorg", "大阪城"}
    assert max(asked) <= name_lookup.MAX_KEYS
    assert sum(asked) < 1_000


async def test_no_long_text_is_read_on_the_event_loop(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: dict[str, set[int]] = {}

    def watch(module: Any, name: str) -> None:
        work = getattr(module, name)

        def watched(*arguments: Any) -> Any:
            threads.setdefault(name, set()).add(threading.get_ident())
            return work(*arguments)

        monkeypatch.setattr(module, name, watched)

    for module, name in (
        (memory_linking, "_read"),
        (memory_linking, "split_words"),
        (name_lookup, "_candidates"),
        (name_lookup, "find_places"),
        (name_lookup, "_mentioned"),
        (graph_searcher, "candidate_names"),
    ):
        watch(module, name)
    await remember(application, f"{scattered(20_000)} and Quentin Zorg")
    await remember(application, "the blue lamp stands in linz")
    await know(application, "Blue Lamp")
    await send(application, "/v1/search", {"query": "who is Quentin Zorg? " * 4_000, "tiers": ["graph"]})

    assert set(threads) == {"_read", "split_words", "_candidates", "find_places", "_mentioned", "candidate_names"}
    assert all(threading.get_ident() not in used for used in threads.values())


async def test_the_memories_of_one_write_name_what_becomes_known_by_it(application: Application) -> None:
    notes = [{"content": "Quentin Zorg moved to Linz"}, {"content": "the lamp of quentin zorg is blue"}]

    put = (await send(application, "/v1/notes/batch", {"notes": notes}))["results"]

    assert "Quentin Zorg" in await named(application, UUID(put[1]["id"]))


async def test_a_text_mentions_the_first_thousand_entities_and_no_more(application: Application) -> None:
    names = [f"Gizmo{place}" for place in range(1_100)]
    await know(application, *names)

    note = await remember(application, " ".join(names).lower())

    assert await named(application, note) == set(names[: name_lookup.MAX_MENTIONS])


async def test_an_older_memory_does_not_mention_a_name_that_is_part_of_a_longer_one(application: Application) -> None:
    await know(application, "Old Harbour Times")
    paper = await remember(application, "we read the Old Harbour Times today")
    town = await remember(application, "we walked around Old Harbour today")
    both = await remember(application, "the old harbour times is printed in old harbour")

    await know(application, "Old Harbour")

    assert await named(application, paper) == {"Old Harbour Times"}
    assert "Old Harbour" in await named(application, town)
    assert await named(application, both) == {"Old Harbour Times", "Old Harbour"}


async def test_of_older_memories_only_so_many_characters_are_read(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = [await remember(application, f"the lamp {place} of quentin zorg is blue") for place in range(4)]
    monkeypatch.setattr(memory_linking, "MAX_OLDER_CHARS", 80)

    await know(application, "Quentin Zorg")

    assert [await named(application, note) for note in sorted(notes)] == [{"Quentin Zorg"}] * 2 + [set()] * 2


async def test_a_message_and_the_note_drawn_from_it_are_one_source(application: Application) -> None:
    def turn(content: str) -> Json:
        message = {"role": "user", "name": "Marta Keller", "content": content}
        return {"user": "marta", "session": "s", "messages": [message]}

    first = await send(application, "/v1/turns", turn("I work at Initech since May."))
    await send(application, "/v1/turns", turn("I work at Initech now, in Graz."))
    sources = await edge_sources(application)
    colleague = application.client(application.new_key(application.tenant))
    answer = await colleague.post("/v1/turns", json=turn("I work at Initech now, in Linz."))

    assert answer.is_success, answer.text
    assert first["notes"]
    assert len(sources) == 1
    assert len(await edge_sources(application)) == 2
    mentions = "SELECT DISTINCT source FROM memory_links WHERE tenant = %s AND kind = 'mentions' AND from_id = ANY(%s)"
    ids = [UUID(item["id"]) for item in (*first["messages"], *first["notes"])]
    assert len(await rows(application, mentions, application.tenant, ids)) == 1


async def edge_sources(application: Application) -> set[str]:
    query = """
        SELECT v.source FROM edge_evidence v JOIN edges e ON e.id = v.edge_id
        WHERE e.tenant = %s AND e.type = 'works_at'
    """
    return {source for (source,) in await rows(application, query, application.tenant)}


async def test_a_document_whose_title_is_a_sentence_makes_no_entity_of_it(application: Application) -> None:
    long, short = scattered(500), scattered(128)

    for title in (long, short):
        await send(application, "/v1/documents", {"title": title, "content": f"something about {title[:5]}"})

    found = await rows(application, "SELECT name FROM entities WHERE tenant = %s", application.tenant)
    assert {name for (name,) in found} >= {short}
    assert not any(name == long for (name,) in found)
