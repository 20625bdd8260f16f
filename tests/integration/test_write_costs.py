"""A turn asks the embedder once, writes and notifies the outbox once, and takes few statements."""

from collections.abc import AsyncIterator, Iterator, Sequence
from datetime import UTC
from pathlib import Path
from typing import Any

import numpy as np
import psycopg
import pytest
from numpy.typing import NDArray
from pgvector.psycopg import register_vector

from lamina.core.memories import Chunk
from lamina.models.batching import BatchingEmbedder
from lamina.models.hashing import HashingModel
from tests.support.application import Application, running, settings_for
from tests.support.wiretap import Wiretap, wiretapped

COUNTED = """
CREATE TABLE outbox_statements (at timestamptz DEFAULT clock_timestamp());
CREATE FUNCTION count_outbox_statement() RETURNS trigger LANGUAGE plpgsql AS
$$ BEGIN INSERT INTO outbox_statements DEFAULT VALUES; RETURN NULL; END $$;
CREATE TRIGGER count_statements AFTER INSERT ON outbox FOR EACH STATEMENT EXECUTE FUNCTION count_outbox_statement();
"""


class CountingEmbedder:
    def __init__(self) -> None:
        self._embedder = BatchingEmbedder(HashingModel())
        self.calls: list[tuple[str, ...]] = []

    async def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        self.calls.append(tuple(texts))
        return await self._embedder.embed(texts)

    async def embed_chunks(self, texts: Sequence[str]) -> Sequence[tuple[Chunk, ...]]:
        self.calls.append(tuple(texts))
        return await self._embedder.embed_chunks(texts)


@pytest.fixture
def embedder() -> CountingEmbedder:
    return CountingEmbedder()


@pytest.fixture
def tap(database: str) -> Iterator[Wiretap]:
    with wiretapped(database) as counted:
        yield counted


@pytest.fixture
async def app(database: str, tmp_path: Path, embedder: CountingEmbedder, tap: Wiretap) -> AsyncIterator[Application]:
    settings = settings_for(tap.url, tmp_path, write={"key_cache_s": 0, "near_duplicate": 0.8})
    with psycopg.connect(database, autocommit=True) as connection:
        connection.execute(COUNTED.encode())
    async with running(settings, database, HashingModel(), embedder=embedder, follow=False) as running_app:
        yield running_app


def rows(app: Application, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(app.url) as connection:
        register_vector(connection)
        return connection.execute(query.encode()).fetchall()


def outbox_statements(app: Application) -> int:
    return int(rows(app, "SELECT count(*) FROM outbox_statements")[0][0])


async def send(app: Application, method: str, path: str, body: dict[str, Any]) -> dict[str, Any]:
    answer = await app.client().request(method, path, json=body)
    assert answer.is_success, answer.text
    return dict(answer.json())


def turn(*contents: str) -> dict[str, Any]:
    messages = [{"content": content, "name": "Ann"} for content in contents]
    return {"session": "s1", "user": "ann", "messages": messages}


async def test_a_turn_asks_the_embedder_once_and_writes_the_outbox_once(
    app: Application, embedder: CountingEmbedder
) -> None:
    body = turn("I work at Initech.", "We decided to move to Oslo with Bob Lee.")

    said = await send(app, "POST", "/v1/turns", body)

    assert said["notes"]
    assert len(embedder.calls) == 1
    assert {"Ann", "Initech", "Bob Lee"} <= set(embedder.calls[0])
    assert outbox_statements(app) == 1
    projections = {name for (name,) in rows(app, "SELECT DISTINCT projection FROM outbox")}
    assert projections == {"messages", "notes", "graph"}


async def test_names_embedded_with_their_texts_have_the_vectors_of_the_model(app: Application) -> None:
    await send(app, "POST", "/v1/turns", turn("I work at Initech.", "I met Bob Lee."))

    stored = rows(app, "SELECT name, embedding FROM entities")

    assert {"Ann", "Bob Lee", "Initech"} <= {name for name, _ in stored}
    for name, vector in stored:
        np.testing.assert_array_equal(vector.to_numpy(), HashingModel().encode([name])[0])


async def test_a_turn_that_raises_an_older_note_still_writes_the_outbox_once(app: Application) -> None:
    await send(app, "POST", "/v1/turns", turn("I like green tea a lot in the morning."))
    before = outbox_statements(app)

    said = await send(app, "POST", "/v1/turns", turn("I really like green tea a lot in the morning."))

    assert [note["merged"] for note in said["notes"]] == [True]
    assert outbox_statements(app) == before + 1
    waiting = rows(app, "SELECT projection, memory_id::text FROM outbox")
    assert {("notes", said["notes"][0]["id"]), ("cold", said["notes"][0]["id"])} <= set(waiting)


async def test_known_names_are_not_embedded_again(app: Application, embedder: CountingEmbedder) -> None:
    await send(app, "POST", "/v1/turns", turn("I work at Initech."))

    await send(app, "POST", "/v1/turns", turn("Initech moved today."))

    assert len(embedder.calls) == 2
    assert not {"Ann", "Initech"} & set(embedder.calls[1])


async def test_notes_and_their_changes_ask_the_embedder_once_each(app: Application, embedder: CountingEmbedder) -> None:
    put = await send(app, "POST", "/v1/notes", {"content": "Bob Lee moved to Linz."})
    await send(app, "PATCH", f"/v1/notes/{put['id']}", {"content": "Eve Ray moved to Graz."})
    await send(app, "PATCH", f"/v1/notes/{put['id']}", {"importance": 0.9})

    assert len(embedder.calls) == 2
    assert outbox_statements(app) == 3


async def test_a_document_embeds_its_names_with_its_passages(app: Application, embedder: CountingEmbedder) -> None:
    body = {"content": "Mercury is small.", "title": "Mercury (planet)", "media_type": "text/plain"}

    await send(app, "POST", "/v1/documents", body)

    assert len(embedder.calls) == 1
    assert "Mercury (planet)" in embedder.calls[0]
    assert outbox_statements(app) == 1


# A name, however often it is written, is one row to look up and none to write.
SAID_BEFORE = ("Ann met Bob Lee at Initech.", "Cleo and Dan Ray came along from Acme.")


async def test_a_turn_that_names_what_is_known_takes_few_statements(app: Application, tap: Wiretap) -> None:
    await send(app, "POST", "/v1/turns", turn(*SAID_BEFORE))
    tap.take()

    await send(app, "POST", "/v1/turns", turn("Bob Lee, Cleo and Dan Ray are at Acme.", "Ann stays with Initech."))

    assert len(tap.take()) <= 13


async def test_changes_are_read_together_with_the_build_that_is_to_have_them(app: Application, tap: Wiretap) -> None:
    await send(app, "POST", "/v1/turns", turn(*SAID_BEFORE))
    tap.take()

    await app.indexed()

    asked = [text for text in tap.take() if "building_until IS NOT NULL" in text]
    assert asked
    assert all("FROM outbox" in text for text in asked)


@pytest.mark.parametrize("count", [3, 30])
async def test_new_names_take_no_more_statements_if_there_are_many(app: Application, tap: Wiretap, count: int) -> None:
    await send(app, "POST", "/v1/turns", turn("hello there", "nothing new"))
    names = ", ".join(f"Mr {first}{second}o" for first in "BCDFGH" for second in "aeiou")
    tap.take()

    await send(app, "POST", "/v1/turns", turn(*[f"They met {names.split(', ')[place]}." for place in range(count)]))

    assert len(tap.take()) <= 15
    assert rows(app, "SELECT count(*) FROM entities WHERE name <> 'Ann'") == [(count,)]


async def test_a_known_name_is_seen_again_without_a_change_of_its_row(app: Application) -> None:
    await send(app, "POST", "/v1/turns", turn("Bob Lee is here."))
    before = rows(app, "SELECT ctid::text FROM entities ORDER BY name")

    await send(app, "POST", "/v1/turns", turn("Bob Lee left again."))

    assert rows(app, "SELECT ctid::text FROM entities ORDER BY name") == before


async def test_a_name_that_is_seen_an_hour_later_is_seen_then(app: Application) -> None:
    times = [f"2026-03-01T{hour:02}:00:00Z" for hour in (9, 10, 8)]

    for place, moment in enumerate(times):
        body = turn(f"Bob Lee came {place} times.")
        body["messages"][0]["occurred_at"] = moment
        await send(app, "POST", "/v1/turns", body)

    seen = rows(app, "SELECT first_seen_at, last_seen_at FROM entities WHERE name = 'Bob Lee'")
    assert [[moment.astimezone(UTC).hour for moment in row] for row in seen] == [[8, 10]]


WRITTEN = ("documents", "passages", "passage_chunks", "entities", "memory_links", "outbox", "epochs")
STATE = "SELECT xmin::text, ctid::text FROM {} ORDER BY ctid"
PARTS = [f"# Part {place}\n{'The keeper of lamp ' + str(place) + ' wrote a page. ' * 30}" for place in range(6)]


def state_of(app: Application) -> list[list[tuple[Any, ...]]]:
    return [rows(app, STATE.format(table)) for table in WRITTEN]


@pytest.mark.parametrize("as_batch", [False, True])
async def test_a_document_that_is_sent_again_unchanged_writes_nothing(
    app: Application, embedder: CountingEmbedder, tap: Wiretap, as_batch: bool
) -> None:
    documents = [{"key": key, "content": "\n\n".join(PARTS), "media_type": "text/markdown"} for key in ("a", "b")]
    path, body = ("/v1/documents/batch", {"documents": documents}) if as_batch else ("/v1/documents", documents[0])
    first = await send(app, "POST", path, body)
    before, asked = state_of(app), len(embedder.calls)
    tap.take()

    again = await send(app, "POST", path, body)

    assert [item["status"] for item in again.get("results", [again])] == ["existed"] * (2 if as_batch else 1)
    assert again.get("epoch") == first.get("epoch")
    assert len(embedder.calls) == asked
    assert state_of(app) == before
    assert len(tap.take()) <= 4


async def test_a_document_that_is_changed_in_a_part_has_only_that_embedded(
    app: Application, embedder: CountingEmbedder
) -> None:
    texts = [*PARTS]
    document = {"key": "log", "title": "Lamps", "media_type": "text/markdown"}
    await send(app, "POST", "/v1/documents", document | {"content": "\n\n".join(texts)})
    vectors = rows(
        app, "SELECT embedding::text FROM passage_chunks c JOIN passages p ON p.id = passage_id ORDER BY position"
    )
    texts[3] = texts[3].replace("lamp 3", "lantern 3")

    put = await send(app, "POST", "/v1/documents", document | {"content": "\n\n".join(texts)})

    assert (put["status"], put["passages"]) == ("replaced", 6)
    (new,) = embedder.calls[1]
    assert "lantern 3" in new
    after = rows(
        app, "SELECT embedding::text FROM passage_chunks c JOIN passages p ON p.id = passage_id ORDER BY position"
    )
    assert [place for place in range(6) if vectors[place] != after[place]] == [3]


async def test_of_several_documents_with_one_key_the_last_stays(app: Application) -> None:
    await send(app, "POST", "/v1/documents", {"key": "a", "content": "Olm"})
    contents = ("Newt", "Olm", "Axolotl", "Olm")

    put = await send(
        app, "POST", "/v1/documents/batch", {"documents": [{"key": "a", "content": content} for content in contents]}
    )

    assert [item["status"] for item in put["results"]] == ["replaced"] * 4
    assert rows(app, "SELECT content FROM passages") == [("Olm",)]


@pytest.mark.parametrize(
    ("content", "names"),
    [
        ("The lease of the flat ends in May.\nIt was signed by Ann.", 0),
        ("Der Vertrag endet im Mai. Ann hat ihn unterschrieben.", 0),
        ("水星很小。\n它没有卫星", 0),
        ("यह ठीक है।", 0),
        ("A line that nobody ended and that goes on and on " * 4, 0),
        ("Lease of the flat\n\nIt ends in May.", 1),
        ("Washington D.C.\n\nA city.", 1),
        ("Who is afraid of the wolf?\n\nA play.", 1),
    ],
)
async def test_the_first_sentence_of_an_untitled_document_is_no_name(
    app: Application, content: str, names: int
) -> None:
    await send(app, "POST", "/v1/documents", {"content": content})

    assert rows(app, "SELECT count(*) FROM entities") == [(names,)]


async def test_a_title_that_was_given_is_a_name_also_if_it_is_a_sentence(app: Application) -> None:
    await send(app, "POST", "/v1/documents", {"content": "It ends in May.", "title": "The lease of the flat ends."})

    assert rows(app, "SELECT name FROM entities") == [("The lease of the flat ends.",)]


async def test_a_long_document_is_written_in_order(app: Application) -> None:
    texts = [f"# Part {place}\n" + f"Lamp {place} was lit by its keeper. " * 20 for place in range(230)]

    put = await send(app, "POST", "/v1/documents", {"content": "\n\n".join(texts), "media_type": "text/markdown"})

    stored = rows(app, "SELECT position, heading FROM passages ORDER BY position")
    assert stored == [(place + 1, f"Part {place}") for place in range(put["passages"])]
    assert put["passages"] == len(texts)
