"""Field cases 79 to 82: words and names are found however they are written."""

import uuid
from collections.abc import AsyncIterator
from importlib.resources import files
from typing import Any

import httpx
import psycopg
import pytest
from psycopg.sql import SQL, Identifier

from lamina.embedded import EmbeddedPostgres
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from lamina.text.folding import fold
from lamina.text.words import WORDS_VERSION, index_words, question_words
from tests.support.application import Application, running, settings_for
from tests.support.databases import new_database
from tests.support.embedders import WritesOnly
from tests.support.spellings import SPELLINGS, SPELLINGS_OF_NAMES

Json = dict[str, Any]


@pytest.fixture(scope="module")
async def shared_worded(
    postgres: EmbeddedPostgres, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Application]:
    """One application whose queries get no vector: words alone must do."""
    embedder = WritesOnly(BatchingEmbedder(HashingModel()))
    with new_database(postgres) as url:
        settings = settings_for(url, tmp_path_factory.mktemp("worded"))
        async with running(settings, url, HashingModel(), embedder=embedder) as app:
            yield app


@pytest.fixture
async def worded(shared_worded: Application) -> AsyncIterator[Application]:
    """The application without vectors, as a tenant of this test alone."""
    mine = shared_worded.for_tenant(f"tenant {uuid.uuid4()}")
    yield mine
    await mine.close_clients()


@pytest.mark.parametrize(("text", "question"), SPELLINGS)
async def test_a_word_is_found_in_every_tier_within_unspaced_text_and_in_other_spellings(
    worded: Application, text: str, question: str
) -> None:
    client = worded.client()
    await write_everywhere(client, text)
    await write_everywhere(client, "unrelated 紅茶 ชา")
    await worded.indexed()

    for tier in ("sessions", "notes", "documents", "procedures"):
        found = await search(client, question, tiers=[tier])
        assert found, tier
        assert fold(text) in fold(found[0]["content"]), tier
        assert not any("unrelated" in hit["content"] for hit in found)


SYMBOLS = [
    ("🦊", "🦊"),
    ("our 🦊 sleeps", "🦊"),
    ("well done👍", "👍"),
    ("👍🏽 done", "👍"),
    ("👍 done", "👍🏽"),
    ("👩🏿‍💻 at work", "👩‍💻"),
    ("👨‍👩‍👧 on a trip", "👨‍👩‍👧"),
    ("👨‍👩‍👧 on a trip", "👧"),
    ("office 🇯🇵", "🇯🇵"),
    ("they won 🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁥󠁮󠁧󠁿"),
    ("press 5️⃣", "5️⃣"),
    ("press #️⃣", "#⃣"),
    ("❤️ it", "❤"),
    ("paid in ₿", "₿"),
    ("A → B", "→"),
    ("¯\\_(ツ)_/¯", "ツ"),
    ("猫", "猫"),
    ("𓀀", "𓀀"),
    ("?!", "!?"),
    ("…", "…"),
]
STRANGERS = "🐻 👎 👨‍🍳 🇩🇪 🏴 1️⃣ 💙 ¥ ← 犬 𓁐 unrelated"


@pytest.mark.parametrize(("text", "question"), SYMBOLS)
async def test_a_symbol_is_found_by_itself_in_every_tier(worded: Application, text: str, question: str) -> None:
    client = worded.client()
    await write_everywhere(client, text)
    await write_everywhere(client, STRANGERS)
    await worded.indexed()

    for tier in ("sessions", "notes", "documents", "procedures"):
        found = await search(client, question, tiers=[tier])
        assert [fold(text) in fold(hit["content"]) for hit in found] == [True], tier


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("🦊", "🐻"),
        ("🇩🇪", "🇪🇩"),
        ("🇩🇪", "🇩🇰"),
        ("1️⃣", "2️⃣"),
        ("👨‍👩‍👧", "👨‍👩‍👦"),
        ("€", "$ 5"),
        ("?", "!"),
        ("👍🏽", "👎🏽"),
        ("🏴󠁧󠁢󠁥󠁮󠁧󠁿", "🏴󠁧󠁢󠁳󠁣󠁴󠁿"),
    ],
)
def test_different_symbols_have_different_words(one: str, other: str) -> None:
    assert not set(question_words(one)) & set(index_words(other))


async def test_a_lone_symbol_puts_the_note_that_is_it_first(semantic: Application) -> None:
    client = semantic.client()
    for content in ("The fox is red.", "🐻", "A letter came.", "🦊", "猫", "🐺", "Foxes sleep by day 🌞", "犬", "?"):
        await client.post("/v1/notes", json={"content": content})
    await semantic.indexed()

    for symbol in ("🦊", "🐻", "猫", "犬", "?"):
        assert (await search(client, symbol, tiers=["notes"]))[0]["content"] == symbol
        assert (await search(client, symbol))[0]["content"] == symbol


async def test_texts_with_symbols_of_an_earlier_release_are_marked_for_renewal(alone: Application) -> None:
    contents = {"🦊": True, "paid in ₿": True, "?!": True, "press 1️⃣": True, "plain words, 5 °": True}
    contents |= {"It’s «plain» – 5 £ less?": True, "naïve Ünïcode": False, "Просто слова.": False, "黑猫。": False}
    for content in contents:
        await alone.client().post("/v1/notes", json={"content": content})
    migration = files("lamina.stores.postgres") / "migrations" / "0027_symbols.sql"
    with psycopg.connect(alone.url) as connection:
        connection.execute("DELETE FROM stale_words")
        connection.execute(migration.read_bytes())
        rows = connection.execute("SELECT content FROM notes JOIN stale_words USING (id)").fetchall()

    assert {content for (content,) in rows} == {content for content, is_marked in contents.items() if is_marked}


async def test_the_words_of_an_earlier_release_are_renewed_in_the_background(alone: Application) -> None:
    client = alone.client()
    text = "我昨天看见一只黑猫 Donau\u00addampfschiff"
    await write_everywhere(client, text)
    await alone.indexed()
    with psycopg.connect(alone.url) as connection:
        for table in ("note_chunks", "passage_chunks", "procedures"):
            connection.execute(SQL("UPDATE {} SET tsv = ''").format(Identifier(table)))
        for table in ("notes", "passages", "procedures"):
            insert = SQL("INSERT INTO stale_words SELECT {}, id FROM {}")
            connection.execute(insert.format(table, Identifier(table)))

    is_done = await alone.indexer.renew()

    with psycopg.connect(alone.url) as connection:
        count = SQL("SELECT count(*) FROM {} WHERE tsv @@ plainto_tsquery('lamina', '猫 donaudampfschiff')")
        for table in ("note_chunks", "passage_chunks", "procedures"):
            assert connection.execute(count.format(Identifier(table))).fetchone() == (1,), table
        assert connection.execute("SELECT count(*) FROM stale_words").fetchone() == (0,)
    assert is_done


async def test_an_index_with_the_words_of_an_earlier_release_is_built_anew_beside_it(alone: Application) -> None:
    client = alone.client()
    await write_everywhere(client, "我昨天看见一只黑猫")
    await alone.indexed()
    with psycopg.connect(alone.url) as connection:
        connection.execute("INSERT INTO projection_stores (projection, words_version) VALUES ('notes', 1)")

    await alone.indexer.renew()
    with psycopg.connect(alone.url) as connection:
        ordered = connection.execute("SELECT build > 0, words_version FROM projection_stores").fetchone()
    await alone.indexed()

    assert ordered == (True, WORDS_VERSION)
    assert await search(client, "猫", tiers=["notes"])
    with psycopg.connect(alone.url) as connection:
        assert connection.execute("SELECT building_until FROM projection_stores").fetchone() == (None,)


@pytest.mark.parametrize(("one", "other"), SPELLINGS_OF_NAMES)
async def test_an_entity_in_another_spelling_is_the_same_one(application: Application, one: str, other: str) -> None:
    client = application.client()

    first, second = await state_entities(client, {"name": one}), await state_entities(client, {"name": other})
    found = await neighbours(client, other)

    assert second == [{"id": first[0]["id"], "existed": True}]
    assert found["entity"]["id"] == first[0]["id"]
    assert found["entity"]["name"] == one


async def test_an_entity_of_an_earlier_release_is_found_by_its_present_key(unshared: Application) -> None:
    from lamina.stores.postgres.migrate import migrate

    client = unshared.client()
    first, second = await state_entities(client, {"name": "İzmir Limanı", "aliases": ["Ege Kapısı"]}, {"name": "Ağrı"})
    with psycopg.connect(unshared.url) as connection:
        connection.execute("UPDATE entities SET key = 'i\u0307zmir limanı' WHERE id = %s", [first["id"]])
        connection.execute("UPDATE entities SET key = 'ağrı' WHERE id = %s", [second["id"]])
        connection.execute("DELETE FROM entity_names")
        connection.execute("INSERT INTO stale_words SELECT 'entities', id FROM entities")
        connection.execute("INSERT INTO stale_words VALUES ('entities', gen_random_uuid())")

    migrate(unshared.url)

    again = await state_entities(client, {"name": "izmir limanı"}, {"name": "AĞRI"})
    assert [item["id"] for item in again] == [first["id"], second["id"]]
    assert (await neighbours(client, "ege kapısı"))["entity"]["id"] == first["id"]


async def test_a_fact_stated_under_an_alias_belongs_to_the_entity_of_the_alias(unshared: Application) -> None:
    client = unshared.client()
    [ibm] = await state_entities(client, {"name": "IBM", "aliases": ["Big Blue", "International Business Machines"]})

    await state_edge(client, "big blue", "bought", "Red Hat")
    await state_edge(client, "Raleigh", "hosts", "BIG BLUE")
    await client.post("/v1/notes", json={"content": "Big Blue acquired Instana in 2020."})
    await unshared.indexed()

    found = await neighbours(client, "IBM")
    assert found["entity"]["id"] == ibm["id"]
    facts = {(link["direction"], link["kind"], link["content"]) for link in found["neighbours"]}
    assert {("out", "bought", "Red Hat"), ("in", "hosts", "Raleigh")} <= facts
    with psycopg.connect(unshared.url) as connection:
        assert connection.execute("SELECT count(*) FROM entities WHERE key = 'big blue'").fetchone() == (0,)


async def test_an_edge_between_two_names_of_one_entity_is_refused(application: Application) -> None:
    client = application.client()
    await state_entities(client, {"name": "IBM", "aliases": ["Big Blue"]})

    answer = await client.post(
        "/v1/graph/edges", json={"edges": [{"subject": "Big Blue", "type": "is", "object": "IBM"}]}
    )

    assert answer.status_code == 422
    assert answer.json()["errors"][0]["field"] == "edges.0.object"
    assert "IBM" in answer.text


async def test_a_new_entity_does_not_take_over_the_name_of_an_older_one(unshared: Application) -> None:
    client = unshared.client()
    [snake] = await state_entities(client, {"name": "Python"})
    await state_edge(client, "Python", "eats", "Mice")
    [troupe] = await state_entities(client, {"name": "Monty Python", "aliases": ["Python"]})
    await state_edge(client, "Monty Python", "filmed", "Life of Brian")
    await state_edge(client, "Python", "lives_in", "Asia")
    await unshared.indexed()

    found = await neighbours(client, "python")

    assert found["entity"]["id"] == snake["id"]
    assert {link["content"] for link in found["neighbours"]} == {"Mice", "Asia"}
    assert [other["id"] for other in found["namesakes"]] == [troupe["id"]]
    of_troupe = await client.get("/v1/graph/neighbours", params={"id": troupe["id"]})
    assert {link["content"] for link in of_troupe.json()["neighbours"]} == {"Life of Brian"}


async def test_neighbours_says_which_of_several_entities_with_an_alias_was_meant(unshared: Application) -> None:
    client = unshared.client()
    older, newer = await state_entities(
        client,
        {"name": "Springfield, Illinois", "type": "place", "aliases": ["Springfield"]},
        {"name": "Springfield, Oregon", "type": "place", "aliases": ["Springfield"]},
    )
    await state_edge(client, "Springfield", "lies_in", "USA")
    await unshared.indexed()

    found = await neighbours(client, "springfield")

    ids = {older["id"]: newer["id"], newer["id"]: older["id"]}
    assert [other["id"] for other in found["namesakes"]] == [ids[found["entity"]["id"]]]
    assert found["namesakes"][0]["type"] == "place"
    assert {link["content"] for link in found["neighbours"]} == {"USA"}


async def test_a_private_title_lends_its_alias_to_nobody_else(unshared: Application) -> None:
    client = unshared.client()
    document = {"title": "Mercury (plan to leave)", "content": "I shall go in May.", "user": "ann"}
    assert (await client.post("/v1/documents", json=document)).is_success
    await state_edge(client, "Mercury", "orbits", "Sun")
    await unshared.indexed()

    found = await neighbours(client, "Mercury", user="bob")

    assert found["entity"]["name"] == "Mercury"
    assert found["namesakes"] == []


async def write_everywhere(client: httpx.AsyncClient, text: str) -> None:
    bodies = {
        "/v1/notes": {"content": text},
        "/v1/turns": {"session": "s", "messages": [{"content": text}]},
        "/v1/documents": {"content": text, "key": text[:100]},
        "/v1/procedures": {"trigger": text, "action": "answer"},
    }
    for path, body in bodies.items():
        answer = await client.post(path, json=body)
        assert answer.is_success, answer.text


async def search(client: httpx.AsyncClient, query: str, **fields: Any) -> list[Json]:
    answer = await client.post("/v1/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def state_entities(client: httpx.AsyncClient, *entities: Json) -> list[Json]:
    answer = await client.post("/v1/graph/entities", json={"entities": list(entities)})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


async def state_edge(client: httpx.AsyncClient, subject: str, type_: str, object_: str) -> None:
    body = {"edges": [{"subject": subject, "type": type_, "object": object_}]}
    answer = await client.post("/v1/graph/edges", json=body)
    assert answer.status_code == 200, answer.text


async def neighbours(client: httpx.AsyncClient, name: str, **params: str) -> Json:
    answer = await client.get("/v1/graph/neighbours", params={"name": name, **params})
    assert answer.status_code == 200, answer.text
    return dict(answer.json())
