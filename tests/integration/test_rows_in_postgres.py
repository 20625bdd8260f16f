"""Searches that read the rows of Postgres in place of an index: every note scored, and the vectors of passages."""

import asyncio
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest

from lamina.core.tiers import Source
from lamina.models.hashing import HashingModel
from tests.support.application import Application, running, settings_for

QUESTION = "when does the ferry leave the harbour"
EVERY_ROW: dict[str, Any] = {"search": {"composite": {"candidates": "every_row"}}}
IN_POSTGRES: dict[str, Any] = {"search": {"passage_vectors": "postgres"}}


async def put(app: Application, content: str, **more: Any) -> UUID:
    answer = await app.client().post("/v1/notes", json={"content": content, **more})
    assert answer.is_success, answer.text
    return UUID(answer.json()["id"])


async def found(app: Application, **more: Any) -> list[dict[str, Any]]:
    body = {"query": QUESTION, "explain": True, **more}
    answer = await app.client().post("/v1/search", json=body)
    assert answer.is_success, answer.text
    assert answer.json()["degraded"] == []
    return list(answer.json()["results"])


async def scored(app: Application, **more: Any) -> list[dict[str, Any]]:
    return await found(app, tiers=["notes"], fusion="composite", **more)


async def test_one_statement_scores_every_active_note_of_an_agent(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, **EVERY_ROW)
    async with running(settings, database, HashingModel(), follow=False) as app:
        near = await put(app, "the ferry leaves the harbour at noon", importance=0.5, agent="a")
        great = await put(app, "a ferry sank once near the harbour", importance=0.6, agent="a")
        await put(app, "the ferry leaves the harbour at ten", agent="b")
        deleted = await put(app, "the ferry leaves the harbour at six", agent="a")
        await app.client().delete(f"/v1/notes/{deleted}")

        both = await scored(app, filters={"agent": "a"})
        heavy = await scored(app, filters={"agent": "a"}, relevance={"importance": 3.0})
        first = await scored(app, filters={"agent": "a"}, limit=1, relevance={"importance": 3.0})

        assert [hit["id"] for hit in both] == [str(near), str(great)]
        assert [hit["id"] for hit in heavy] == [str(great), str(near)]
        assert [hit["id"] for hit in first] == [str(great)]
        for hit, importance in zip(both, (0.5, 0.6), strict=True):
            # No other source was asked.
            assert list(hit["explain"]) == [Source.NOTES_HYBRID]
            cosine = hit["explain"][Source.NOTES_HYBRID]["raw"]["cosine"]
            assert hit["score"] == pytest.approx(0.5 * cosine + 0.3 * importance + 0.2, abs=1e-3)


async def test_a_note_of_great_importance_is_scored_though_nearer_ones_fill_the_sources(
    database: str, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path, **EVERY_ROW)
    async with running(settings, database, HashingModel()) as app:
        notes = [{"content": f"the ferry leaves the harbour at {n}", "importance": 0.0} for n in range(60)]
        await app.client().post("/v1/notes/batch", json={"notes": notes})
        great = await put(app, "a ferry sank once near the harbour", importance=1.0)
        await app.indexed()

        hits = await scored(app, limit=10, relevance={"importance": 2.0})

        assert hits[0]["id"] == str(great)


async def test_a_note_that_was_not_used_for_long_is_scored_and_the_rest_with_it(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, **EVERY_ROW)
    async with running(settings, database, HashingModel(), follow=False) as app:
        old = await put(app, "the ferry leaves the harbour at noon", importance=0.1)
        new = await put(app, "the ferry leaves the harbour at ten", importance=0.9)
        with psycopg.connect(database, autocommit=True) as connection:
            connection.execute("UPDATE notes SET last_hit_at = now() - interval '2 days' WHERE id = %s", [old])

        assert [hit["id"] for hit in await scored(app)] == [str(new), str(old)]
        assert [hit["id"] for hit in await scored(app, relevance={"decay_per_day": 1e3})] == [str(new), str(old)]


async def test_notes_that_are_not_near_take_the_place_of_no_other(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, **EVERY_ROW)
    async with running(settings, database, HashingModel(), follow=False) as app:
        unrelated = [{"content": f"bread rises slowly {n}", "importance": 1.0} for n in range(100)]
        await app.client().post("/v1/notes/batch", json={"notes": unrelated})
        near = await put(app, "the ferry leaves the harbour at noon", importance=0.0)
        with psycopg.connect(database, autocommit=True) as connection:
            # A vector without a direction is near nothing.
            without = "UPDATE note_chunks SET embedding = array_fill(0, ARRAY[384])::vector WHERE note_id = %s"
            connection.execute(without, [await put(app, "a ferry", importance=1.0)])

        hits = await scored(app, limit=1, relevance={"importance": 5.0})

        assert [hit["id"] for hit in hits] == [str(near)]


async def test_a_note_is_found_before_any_index_has_it(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, **EVERY_ROW)
    async with running(settings, database, HashingModel(), follow=False) as app:
        note = await put(app, "the ferry leaves the harbour at noon")

        assert [hit["id"] for hit in await scored(app)] == [str(note)]


async def test_the_passages_that_are_compared_are_those_of_postgres(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, **IN_POSTGRES)
    async with running(settings, database, HashingModel(), follow=False) as app:
        document = {"content": "The ferry leaves the harbour at noon.", "key": "ferry", "user": "ann", "tags": ["t"]}
        await app.client().post("/v1/documents", json=document)

        own = await found(app, tiers=["documents"], user="ann", tags=["t"])
        another = await found(app, tiers=["documents"], user="ben")
        untagged = await found(app, tiers=["documents"], user="ann", tags=["other"])
        figures = own[0]["explain"][Source.DOCUMENTS]["raw"]
        await app.indexed()
        after = (await found(app, tiers=["documents"], user="ann"))[0]["explain"][Source.DOCUMENTS]["raw"]

        assert [hit["content"] for hit in own] == [document["content"]]
        assert (another, untagged) == ([], [])
        assert set(figures) == {"cosine"}
        assert set(after) == {"bm25", "cosine"}
        assert after["cosine"] == pytest.approx(figures["cosine"], abs=1e-4)


class FailingWords:
    """Stands in for an index that fails once Postgres was asked for the vectors."""

    def __init__(self, url: str) -> None:
        self._url = url

    async def by_both(self, _: object) -> object:
        while not waiting(self._url):  # noqa: ASYNC110 - the server tells nobody
            await asyncio.sleep(0.05)
        raise OSError("disk on fire")


def waiting(url: str) -> int:
    text = "SELECT count(*) FROM pg_locks WHERE relation = 'passage_chunks'::regclass AND NOT granted"
    with psycopg.connect(url) as connection:
        row = connection.execute(text).fetchone()
        return 0 if row is None else int(row[0])


async def test_postgres_is_not_asked_any_longer_when_the_index_failed(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deadlines = {"source_deadline_s": 30, "tier_deadline_s": 40}
    settings = settings_for(database, tmp_path, search={**IN_POSTGRES["search"], **deadlines})
    async with running(settings, database, HashingModel(), follow=False) as app:
        await app.client().post("/v1/documents", json={"content": "The ferry leaves at noon.", "key": "ferry"})
        (hybrid,) = app.tiers["documents"].searcher.searchers
        monkeypatch.setattr(hybrid._index, "_words", FailingWords(database))
        with psycopg.connect(database) as connection:
            connection.execute("LOCK TABLE passage_chunks")

            answer = await app.client().post("/v1/search", json={"query": QUESTION, "tiers": ["documents"]})

            assert answer.status_code == 503
            assert "disk on fire" in answer.text
            assert waiting(database) == 0
