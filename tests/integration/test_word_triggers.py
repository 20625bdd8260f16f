"""The words of warm notes, made by a trigger in place of the application."""

import asyncio
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from lamina.core.tiers import Source
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.stores.postgres import connection, word_triggers
from lamina.stores.postgres.word_triggers import switch_word_trigger
from tests.support.application import Application, running, settings_for

WORDS = """
SELECT c.tsv = to_tsvector('lamina', n.content) AS same, c.tsv::text
FROM note_chunks c
JOIN notes n ON n.id = c.note_id
"""


def rows(url: str, text: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(url, autocommit=True) as opened:
        cursor = opened.execute(text.encode())
        return cursor.fetchall() if cursor.description else []


async def sources_of(app: Application, query: str) -> list[str]:
    body = {"query": query, "tiers": ["notes"], "explain": True}
    answer = (await app.client().post("/v1/search", json=body)).json()
    return [source for hit in answer["results"] for source in hit["explain"]]


async def test_the_words_of_a_warm_note_are_those_of_its_text(database: str, tmp_path: Path) -> None:
    switch_word_trigger(database, is_on=True)
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        note = (await app.client().post("/v1/notes", json={"content": "Ferries leave 東京 at noon"})).json()

        assert rows(database, WORDS) == [(True, "'ferri':1 'leav':2 'noon':5 '東京':3")]
        assert Source.NOTES_WARM in await sources_of(app, "ferries leave at noon")

        await app.client().patch(f"/v1/notes/{note['id']}", json={"content": "Ferries leave at ten"})
        assert rows(database, WORDS) == [(True, "'ferri':1 'leav':2 'ten':4")]


@pytest.mark.parametrize("is_on", [True, False])
async def test_a_writer_beside_lamina_needs_no_words_of_its_own(database: str, tmp_path: Path, *, is_on: bool) -> None:
    switch_word_trigger(database, is_on=is_on)
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        await app.client().post("/v1/notes", json={"content": "Ferries leave at noon"})
        rows(database, "UPDATE note_chunks SET tsv = ''")
        with_words = rows(database, WORDS)
        rows(database, "UPDATE note_chunks SET tsv = NULL")

        assert with_words == [(is_on, "'ferri':1 'leav':2 'noon':4" if is_on else "")]
        assert rows(database, "SELECT tsv FROM note_chunks") == [(None,)]


def test_it_is_off_unless_it_is_asked_for(database: str) -> None:
    state = "SELECT tgenabled::text FROM pg_trigger WHERE tgname = 'note_words'"

    states = [rows(database, state)]
    for is_on in (True, True, False):
        switch_word_trigger(database, is_on=is_on)
        states.append(rows(database, state))

    assert states == [[("D",)], [("O",)], [("O",)], [("D",)]]


async def test_the_words_of_the_trigger_are_cut_after_it_was_switched_off(database: str, tmp_path: Path) -> None:
    switch_word_trigger(database, is_on=True)
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        await app.client().post("/v1/notes", json={"content": "Ferries leave 東京の港 at noon"})
        of_trigger = rows(database, WORDS)

        switch_word_trigger(database, is_on=False)
        await app.indexer.renew()

        of_application = rows(database, WORDS)
        assert of_trigger == [(True, "'ferri':1 'leav':2 'noon':5 '東京の港':3")]
        assert [(same, "東京の港" in words) for same, words in of_application] == [(False, False)]


def test_a_switch_gives_way_to_a_writer(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "LOCK_TRIES", 1)
    bounded = make_conninfo(database, options="-c statement_timeout=60s")
    with psycopg.connect(database) as writer:
        writer.execute("UPDATE note_chunks SET tsv = tsv")
        with pytest.raises(Unavailable, match="note_chunks was locked by others"):
            switch_word_trigger(bounded, is_on=True)

    switch_word_trigger(bounded, is_on=True)

    assert rows(database, "SELECT tgenabled::text FROM pg_trigger WHERE tgname = 'note_words'") == [("O",)]


async def test_notes_are_written_while_the_words_of_the_trigger_are_marked(database: str, tmp_path: Path) -> None:
    switch_word_trigger(database, is_on=True)
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        await app.client().post("/v1/notes", json={"content": "Ferries leave at noon"})
    bounded = make_conninfo(database, options="-c statement_timeout=60s")
    waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'stale_words'::regclass AND NOT granted"

    with psycopg.connect(bounded) as holder:
        holder.execute("LOCK TABLE stale_words")
        switching = asyncio.create_task(asyncio.to_thread(switch_word_trigger, bounded, is_on=False))
        while rows(database, waiting) == [(0,)]:
            assert not switching.done()
            await asyncio.sleep(0.02)
        rows(make_conninfo(database, options="-c lock_timeout=1ms"), "UPDATE note_chunks SET tsv = tsv")
    await switching

    assert rows(database, "SELECT relation, count(*) FROM stale_words GROUP BY relation") == [("notes", 1)]


async def test_words_that_a_start_did_not_mark_any_more_are_marked_by_the_next_one(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    switch_word_trigger(database, is_on=True)
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as app:
        await app.client().post("/v1/notes", json={"content": "Ferries leave at noon"})
    marked, counts = "SELECT count(*) FROM stale_words", []

    with monkeypatch.context() as patch:
        patch.setitem(word_triggers.QUERIES, "mark_words_of_trigger", b"SELECT pg_terminate_backend(pg_backend_pid())")
        with pytest.raises(psycopg.OperationalError):
            switch_word_trigger(database, is_on=False)
    for _ in range(2):
        counts += rows(database, marked)
        switch_word_trigger(database, is_on=False)
    rows(database, "DELETE FROM stale_words")
    switch_word_trigger(database, is_on=False)

    assert [*counts, *rows(database, marked)] == [(0,), (1,), (0,)]
