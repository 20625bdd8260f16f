"""Notes that end by themselves: what users of other memory systems saw outlive its time, or vanish before it."""

import time
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import httpx
import pytest

from lamina.caching import answer_cache
from lamina.models.hashing import HashingModel
from lamina.settings.stores import FalkorDBServerSettings
from tests.support.application import Application, running, settings_for

TEXT = "Ada Brown keeps the locker code 4711 of the harbour office"


async def add(app: Application, content: str = TEXT, **fields: Any) -> str:
    answer = await app.client().post("/v1/notes", json={"content": content, **fields})
    assert answer.status_code in {200, 201}, answer.text
    id_: str = answer.json()["id"]
    return id_


async def note(app: Application, id_: str) -> httpx.Response:
    return await app.client().get(f"/v1/notes/{id_}")


async def found(app: Application, query: str = TEXT, **fields: Any) -> dict[str, Any]:
    answer = await app.client().post("/v1/search", json={"query": query, **fields})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def end(app: Application, id_: str) -> None:
    """Let a note's time be over, without waiting for it."""
    async with app.pool.connection() as connection:
        await connection.execute(b"UPDATE notes SET expires_at = now() - interval '1 ms' WHERE id = %s", [id_])


async def pass_by(app: Application, seconds: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let notes and cached answers be so much nearer to their ends: no test waits, or depends on a fast machine."""
    passed = SimpleNamespace(time=lambda: time.time() + seconds, perf_counter=time.perf_counter)
    monkeypatch.setattr(answer_cache, "time", passed)
    earlier = b"UPDATE notes SET expires_at = expires_at - make_interval(secs => %s) WHERE tenant = %s"
    async with app.pool.connection() as connection:
        await connection.execute(earlier, [seconds, app.tenant])


async def test_a_note_with_seconds_to_live_is_gone_after_them_though_nothing_sweeps(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    id_ = await add(application, ttl_s=200)
    await application.indexed()
    before = await found(application)

    await pass_by(application, 200, monkeypatch)

    assert id_ in {hit["id"] for hit in before["results"]}
    assert (await note(application, id_)).status_code == 404
    assert (await application.client().get(f"/v1/notes/{id_}/versions")).status_code == 404
    assert (await application.client().get("/v1/notes")).json()["notes"] == []
    assert (await found(application))["results"] == []
    context = (await application.client().post("/v1/context", json={"query": TEXT})).json()
    assert "4711" not in context["text"]
    for method, body in (("PATCH", {"importance": 1.0}), ("DELETE", None)):
        answer = await application.client().request(method, f"/v1/notes/{id_}", json=body)
        assert answer.status_code == 404


@pytest.mark.parametrize("is_cold", [False, True])
@pytest.mark.parametrize("explain", [False, True])
async def test_what_is_over_is_in_no_source_of_a_search(application: Application, is_cold: bool, explain: bool) -> None:
    id_ = await add(application, ttl_s=600)
    if is_cold:
        async with application.pool.connection() as connection:
            await connection.execute(b"UPDATE notes SET temperature = 'cold' WHERE id = %s", [id_])
            await connection.execute(b"UPDATE note_chunks SET tsv = NULL WHERE note_id = %s", [id_])
            await connection.execute(b"INSERT INTO outbox (projection, memory_id) VALUES ('cold', %s)", [id_])
    await application.indexed()
    before = await found(application, explain=explain, cache=False)
    await end(application, id_)

    after = await found(application, explain=explain, cache=False)

    assert [hit["id"] for hit in before["results"] if hit["tier"] == "notes"] == [id_]
    assert [hit for hit in after["results"] if hit["tier"] in {"notes", "graph"}] == []


async def test_a_patch_of_the_text_keeps_the_expiry(application: Application) -> None:
    id_ = await add(application, ttl_s=600)
    expires_at = (await note(application, id_)).json()["expires_at"]

    await application.client().patch(f"/v1/notes/{id_}", json={"content": "The code is 1234 now"})
    kept = (await note(application, id_)).json()
    await application.client().patch(f"/v1/notes/{id_}", json={"expires_at": None})
    lasting = (await note(application, id_)).json()
    await application.client().patch(f"/v1/notes/{id_}", json={"ttl_s": 60})
    shorter = (await note(application, id_)).json()

    assert expires_at is not None
    assert (kept["content"], kept["expires_at"]) == ("The code is 1234 now", expires_at)
    assert lasting["expires_at"] is None
    assert shorter["expires_at"] < expires_at


async def test_an_expiry_is_a_moment_in_utc_whatever_its_offset(application: Application) -> None:
    moment = (datetime.now(UTC) + timedelta(hours=3)).replace(microsecond=0)
    id_ = await add(application, expires_at=moment.astimezone().isoformat())
    bare = await add(application, "another", expires_at=moment.replace(tzinfo=None).isoformat())

    for stored in (await note(application, id_), await note(application, bare)):
        assert datetime.fromisoformat(stored.json()["expires_at"]) == moment


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"ttl_s": 0}, "ttl_s"),
        ({"ttl_s": -1}, "ttl_s"),
        ({"ttl_s": 1e300}, "ttl_s"),
        ({"ttl_s": None}, "ttl_s"),
        ({"ttl_s": 5, "expires_at": "2999-01-01T00:00Z"}, "ttl_s"),
        ({"expires_at": "2020-01-01T00:00Z"}, "expires_at"),
        ({"expires_at": "0001-01-01T00:00+14:00"}, "expires_at"),
    ],
)
async def test_an_expiry_that_cannot_be_is_refused_by_its_name(
    application: Application, fields: dict[str, Any], field: str
) -> None:
    client = application.client()
    id_ = await add(application, "it stays")

    single = await client.post("/v1/notes", json={"content": TEXT, **fields})
    patched = await client.patch(f"/v1/notes/{id_}", json=fields)
    batch = (await client.post("/v1/notes/batch", json={"notes": [{"content": TEXT, **fields}, "good"]})).json()

    for refused in (single, patched):
        assert refused.status_code == 422
        assert [error["field"] for error in refused.json()["errors"]] == [field]
    assert [item["status"] for item in batch["results"]] == ["invalid", "created"]
    assert f"notes.0.{field}" in batch["results"][0]["error"]
    assert (await note(application, id_)).json()["expires_at"] is None


async def test_a_text_whose_note_is_over_is_stored_anew(application: Application) -> None:
    first = await add(application, ttl_s=600, tags=["old"])
    await end(application, first)

    again = await application.client().post("/v1/notes", json={"content": TEXT})

    assert again.status_code == 201
    stored = (await note(application, again.json()["id"])).json()
    assert (stored["tags"], stored["expires_at"], stored["id"] == first) == ([], None, False)


async def test_a_note_can_take_over_the_text_of_one_that_is_over(application: Application) -> None:
    first = await add(application, ttl_s=600)
    await end(application, first)
    other = await add(application, "The code is not known")

    changed = await application.client().patch(f"/v1/notes/{other}", json={"content": TEXT})

    assert (changed.status_code, changed.json()["content"]) == (200, TEXT)


async def test_what_is_over_is_no_duplicate_of_what_says_it_in_other_words(semantic: Application) -> None:
    first = await add(semantic, "The ferry leaves from pier five at noon", ttl_s=600)
    await end(semantic, first)

    again = await semantic.client().post("/v1/notes", json={"content": "the ferry leaves from pier five at noon!"})

    assert (again.status_code, again.json()["merged"]) == (201, False)


async def test_what_is_told_for_good_does_not_end_with_what_told_it_for_a_while(semantic: Application) -> None:
    passing = await add(semantic, "The ferry leaves from pier five at noon", ttl_s=600)
    await add(semantic, "The tide turns at six", ttl_s=600)
    later = await add(semantic, "The tide turns at six", ttl_s=6000)

    verbatim = await add(semantic, "The ferry leaves from pier five at noon")
    other_words = await semantic.client().post("/v1/notes", json={"content": "The Tide turns at six."})
    sooner = await add(semantic, "The tide turns at six", ttl_s=6)

    assert verbatim == passing
    assert (await note(semantic, passing)).json()["expires_at"] is None
    ends = datetime.fromisoformat((await note(semantic, later)).json()["expires_at"])
    assert sooner == later
    assert ends > datetime.now(UTC) + timedelta(seconds=5000)
    assert (other_words.status_code, other_words.json()["merged"]) == (201, False)


async def test_what_was_made_from_a_note_ends_with_it(application: Application) -> None:
    client = application.client()
    source = await add(application, ttl_s=600)
    lasting = await add(application, "the office has two lockers")
    summary = await add(application, "lockers of the office", derived_from=[source, lasting])
    headline = await add(application, "lockers", derived_from=[summary])
    expiries = [(await note(application, id_)).json()["expires_at"] for id_ in (source, lasting, summary, headline)]

    await client.patch(f"/v1/notes/{lasting}", json={"ttl_s": 60})
    sooner = [(await note(application, id_)).json()["expires_at"] for id_ in (lasting, summary, headline)]
    await end(application, source)
    refused = await client.post("/v1/notes", json={"content": "too late", "derived_from": [source]})

    assert expiries == [expiries[0], None, expiries[0], expiries[0]]
    assert sooner[0] < expiries[0]
    assert sooner == [sooner[0]] * 3
    assert refused.status_code == 422


async def test_what_only_passing_notes_told_of_is_seen_no_more_in_the_graph(application: Application) -> None:
    client = application.client()
    passing = await add(application, "Ada Brown works at Harbour Tours.", ttl_s=600)
    await add(application, "Ada Brown lives in Genoa.")
    await application.indexed()
    before = (await client.get("/v1/graph/neighbours", params={"name": "Ada Brown"})).json()
    await end(application, passing)

    after = (await client.get("/v1/graph/neighbours", params={"name": "Ada Brown"})).json()
    gone = await client.get("/v1/graph/neighbours", params={"name": "Harbour Tours"})
    facts = [hit["content"] for hit in (await found(application, "Where does Ada Brown work?", cache=False))["results"]]

    assert "Harbour Tours" in {item["content"] for item in before["neighbours"]}
    assert "Harbour Tours" not in {item["content"] for item in after["neighbours"]}
    assert (before["entity"]["mentions"], after["entity"]["mentions"]) == (2, 1)
    assert gone.status_code == 404
    assert not any("Harbour Tours" in fact for fact in facts)


@pytest.fixture
async def cached(database: str, tmp_path: Path, falkordb: Any) -> AsyncIterator[Application]:
    """The application with all its caches, whose indexes settle when the test says so."""
    graph = FalkorDBServerSettings(url=falkordb.url)
    settings = settings_for(database, tmp_path, graph=graph)
    async with running(settings, database, HashingModel(), follow=False) as app:
        yield app


async def test_a_cached_answer_ends_with_the_first_note_in_it(
    cached: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = cached.client()
    # Less than the time to live of an answer, in which the test reaches its second calls.
    await add(cached, "Ada Brown works at Harbour Tours.", ttl_s=200)
    await add(cached, "Ada Brown lives in Genoa.")
    await cached.indexed()
    calls = {
        "/v1/search": {"query": "Where does Ada Brown work?"},
        "/v1/context": {"query": "Where does Ada Brown work?", "min_score": 0},
        "/v1/graph/traverse": {"names": ["Ada Brown"]},
    }
    first = {path: (await client.post(path, json=body)).text for path, body in calls.items()}
    await cached.services.caches.flush()
    second = {path: (await client.post(path, json=body)).json() for path, body in calls.items()}

    await pass_by(cached, 200, monkeypatch)
    last = {path: (await client.post(path, json=body)).text for path, body in calls.items()}

    assert all("Harbour Tours" in text for text in first.values())
    assert second["/v1/search"]["cache"] == ["turn_hash"]
    assert second["/v1/context"]["cache"] == ["turn_hash"]
    assert second["/v1/graph/traverse"]["cache"] == []
    assert not any("Harbour Tours" in text for text in last.values())


async def test_what_expires_does_not_live_on_in_the_cached_part_of_the_graph(
    cached: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    await add(cached, "Ada Brown works at Harbour Tours.", ttl_s=200)
    await cached.indexed()
    await found(cached, "Ada Brown", limit=5)
    await cached.services.caches.flush()

    await pass_by(cached, 200, monkeypatch)
    wider = await found(cached, "Ada Brown", limit=5, explain=True)

    assert "graph" not in wider["cache"]
    assert wider["results"] == []
