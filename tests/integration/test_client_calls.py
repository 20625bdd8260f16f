"""What the clients send meets a route, and what they return is what the route answered."""

import re
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import httpx
import pytest

from lamina.client import AsyncLamina
from lamina.client.calls import Call
from lamina.client.models import NoteOut
from lamina.client.routes import ListCall
from lamina.core.principals import KeyRole
from lamina.errors import Forbidden, InvalidInput, NotFound
from tests.support.application import Application
from tests.support.client_calls import METHODS, Unsent, arguments_of, call_of

ID = UUID(int=7)


@pytest.fixture(scope="module")
def shared_application(application_of_module: Application) -> Application:
    """Users are erased here."""
    return application_of_module


CALLS: Any = Unsent({})


@pytest.mark.parametrize(
    ("call", "status"),
    [
        (CALLS.run_job("sweep", dry_run=True), 202),
        (CALLS.job_runs("sweep", limit=5), 200),
        (CALLS.job_run(str(ID)), 404),
        (CALLS.undo_job(str(ID)), 404),
        (CALLS.job_schedule(), 200),
        (CALLS.events(workspace="w", limit=5), 200),
        (CALLS.make_webhook("https://example.com/hook", workspace="w"), 201),
        (CALLS.webhooks("w"), 200),
        (CALLS.trash(workspace="w", limit=5), 200),
        (CALLS.restore(str(ID)), 404),
        (CALLS.change_notes(category="skill", add_tags=["a"], dry_run=True), 200),
        (CALLS.delete_notes(category="skill", workspace="w"), 200),
        (CALLS.delete_messages(filters={"source": "tool"}, dry_run=True), 200),
        (CALLS.change_documents(tags=["a"], add_tags=["b"], dry_run=True), 200),
        (CALLS.delete_documents(tags=["a"], workspace="w"), 200),
        (CALLS.operations(workspace="w", limit=5), 200),
        (CALLS.operation(ID), 404),
        (CALLS.search_many(["boat", {"query": "keel", "limit": 3}], workspace="w"), 200),
        (CALLS.feedback(ID), 404),
        (CALLS.vote(ID, "useful"), 404),
        (CALLS.take_vote_back(ID), 404),
        (CALLS.pin(ID), 404),
        (CALLS.unpin(ID), 404),
        (CALLS.tenant_usage(since="2026-03-01", until="2026-04-01"), 200),
        (CALLS.delete_scope(workspace="w", namespace="n", session="s", dry_run=True), 200),
        (CALLS.undo_operation(ID), 404),
        (CALLS.delete_webhook(str(ID)), 404),
        (CALLS.forecast("no/such session", workspace="w", user="u"), 404),
        (CALLS.archived_notes(workspace="w", limit=5), 200),
        (CALLS.restore_notes([ID]), 200),
        (CALLS.erase_user("nobody/at all"), 200),
        (CALLS.put_file("docs/a b?#.md", "text", if_none_match="*", workspace="w", always=True, mirror="here"), 201),
        (CALLS.put_file("docs/a.md", "text", if_match="*", namespace="n"), 412),
        (CALLS.file("docs/a b.md", version=3, user="u"), 404),
        (CALLS.files(prefix="docs/", limit=5, namespace="n"), 200),
        (CALLS.delete_file("docs/a.md", if_match="1f"), 404),
    ],
    ids=lambda value: value.path if isinstance(value, Call) else "",
)
async def test_a_call_meets_its_route(application: Application, call: Call, status: int) -> None:
    admin = application.admin()

    answer = await admin.request(call.method, call.path, json=call.json, params=call.params, headers=call.headers)

    assert (answer.status_code, answer.text) == (status, answer.text)
    assert not re.search("No such route|Method Not Allowed", answer.text)


async def test_a_session_whose_id_has_slashes_is_read_and_forecast(application: Application) -> None:
    client = application.client()
    await client.post("/v1/turns", json={"session": "a/b c", "messages": [{"content": "the boat is green"}]})

    told = await client.get("/v1/sessions/a%2Fb%20c/messages")
    forecast = await client.get("/v1/sessions/a%2Fb%20c/forecast")

    assert [message["content"] for message in told.json()["messages"]] == ["the boat is green"]
    assert forecast.json()["state"] == "ok"


@pytest.fixture
async def lamina(application: Application) -> AsyncIterator[AsyncLamina]:
    key = application.new_key(application.tenant, KeyRole.ADMIN)
    transport = httpx.ASGITransport(application.api, raise_app_exceptions=False)
    async with AsyncLamina("http://lamina", key, scope={"workspace": "atlas 🗺"}, transport=transport) as client:
        yield client


async def test_answers_are_values(lamina: AsyncLamina) -> None:
    at = datetime(2026, 3, 1, 10, tzinfo=UTC)

    stored = await lamina.add("The barometer fell", event_at=at, tags=["weather 🌧"])
    changed = await lamina.change(stored.id, content="The barometer rose")
    versions = await lamina.note_versions(stored.id)
    found = await lamina.search("barometer")

    assert isinstance(changed, NoteOut)
    assert (changed.event_at, changed.tags) == (at, ["weather 🌧"])
    assert [version.content for version in versions.versions] == ["The barometer fell", "The barometer rose"]
    assert found.results[0].id == stored.id
    assert await lamina.delete(stored.id) is None  # type: ignore[func-returns-value]
    with pytest.raises(NotFound):
        await lamina.note(stored.id)


async def test_a_list_goes_through_all_pages_in_order(lamina: AsyncLamina) -> None:
    for number in range(5):
        await lamina.add(f"lighthouse {number}", event_at=datetime(2026, 3, 1, number, tzinfo=UTC))
        await lamina.put_file(f"log/{number} é.md", "calm")
        await lamina.record([{"content": f"aye {number}"}], session="watch/1 ☀")

    notes = [note.content async for note in lamina.notes.each(limit=2, tag=None)]
    files = [file.path async for file in lamina.files.each(limit=2, prefix="log/")]
    events = [event.id async for event in lamina.events.each(limit=2, workspace="atlas 🗺")]
    messages = [message.content async for message in lamina.messages.each("watch/1 ☀", limit=3)]
    page = await lamina.notes(limit=2)

    assert notes == [f"lighthouse {number}" for number in (4, 3, 2, 1, 0)]
    assert files == [f"log/{number} é.md" for number in range(5)]
    assert len(events) == len(set(events)) >= 15
    assert sorted(messages) == [f"aye {number}" for number in range(5)]
    assert [note.content for note in page.notes] == notes[:2]


async def test_every_list_and_report_is_read_as_its_model(lamina: AsyncLamina, application: Application) -> None:
    stored = await lamina.add("Ann sails with Bo", user="ann")
    await lamina.record([{"content": "We met at the quay"}], session="s", user="ann", agent="mate")
    await lamina.add_entities([{"name": "Ann", "type": "person"}])
    await lamina.state_fact("Ann", "sails with", "Bo")
    procedure = await lamina.add_procedure("the wind turns", "reef the sail")
    await lamina.report_outcome(procedure.id, succeeded=True)
    upload = await lamina.upload_document(
        b"# Tides\n\nHigh at noon.", "tides é.md", media_type="text/markdown", tags=["a", "b"]
    )
    share = await lamina.share("other", "notes")
    hook = await lamina.make_webhook("https://example.com/hook")
    key = await lamina.make_key("k", "reader")
    await lamina.set_memory_profile(agent="mate", max_context_chunks=3)
    await lamina.record_cache_metrics([{"provider": "p", "model": "m", "input_tokens": 9, "cached_tokens": 3}])
    await lamina.erase_user("nobody")
    await lamina.delete(stored.id)
    ids = {"procedure": procedure.id, "document": upload.id, "webhook": hook.id, "key": key.id}
    ids |= {"outcomes": procedure.id, "evidence": procedure.id, "passages": upload.id, "dead_letters": hook.id}
    extra = {"memory_profile": {"agent": "mate"}, "profile": {"user": "ann"}, "profile_versions": {"user": "ann"}}

    read = set()
    for name in (name for name in METHODS if call_of(name).method == "GET" and name != "file"):
        known = {"name": "Ann", "subject": "Ann", "session": "s", "id_": ids.get(name)}
        arguments = {**arguments_of(name, **known), **extra.get(name, {})}
        if arguments.get("id_", name) is None:
            continue  # Of what is not there.
        answer = await getattr(lamina, name)(**arguments)
        assert type(answer) is METHODS[name].model, name
        read.add(name)
        if isinstance(call := call_of(name), ListCall):
            every = [item async for item in getattr(lamina, name).each(**arguments)]
            assert every[: len(getattr(answer, call.items))] == getattr(answer, call.items), name

    assert {"shares", "memory_profile", "dead_letters", "webhooks", "messages", "profile", "ready", "alive"} <= read
    assert [item.id for item in (await lamina.shares()).given] == [share.id]
    assert (await lamina.document(upload.id)).tags == ["a", "b"]
    assert (await lamina.trash(user="ann")).entries[0].id == stored.id
    assert (await lamina.rotate_webhook(hook.id)).secret != hook.secret
    assert (await lamina.retry_dead_letters(hook.id)).queued == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [("\ud800 half a character", "ud800"), ("a\udfff", "udfff"), ("x" * 10_000_000, "at most|too large|bytes")],
    ids=["high surrogate", "low surrogate", "10 MB"],
)
async def test_a_text_that_cannot_be_stored_is_refused_with_its_reason(
    lamina: AsyncLamina, content: str, reason: str
) -> None:
    with pytest.raises(InvalidInput, match=reason):
        await lamina.add(content)
    assert (await lamina.notes()).notes == []


@pytest.mark.parametrize(
    "fields", [{"importance": float("nan")}, {"metadata": {"a": float("inf")}}, {"tags": ["\ud83d"]}]
)
async def test_a_value_that_json_cannot_hold_is_refused_before_it_is_sent(
    lamina: AsyncLamina, fields: dict[str, Any]
) -> None:
    with pytest.raises(InvalidInput, match="request"):
        await lamina.add("calm", **fields)


async def test_an_id_that_a_path_or_a_query_cannot_hold_is_refused(lamina: AsyncLamina) -> None:
    with pytest.raises(InvalidInput, match="udc80"):
        await lamina.messages("\udc80")
    with pytest.raises(InvalidInput, match="udc80"):
        await lamina.notes(tag="\udc80")
    with pytest.raises(InvalidInput, match="ascii"):
        await lamina.add("calm", idempotency_key="🔑")


@pytest.mark.parametrize("session", ["🦊/1", "..", ".", "a?b#c", "%2F", "日本", "x" * 128])
async def test_a_session_of_any_id_is_read_back(lamina: AsyncLamina, session: str) -> None:
    await lamina.record([{"content": "the boat is green"}], session=session)

    assert [message.content async for message in lamina.messages.each(session)] == ["the boat is green"]


@pytest.mark.parametrize("after", ["stale", "🦊", "00000000-0000-0000-0000-00000000000g", "x" * 5000])
async def test_a_place_in_a_list_that_is_none_is_told_as_such(lamina: AsyncLamina, after: str) -> None:
    with pytest.raises(InvalidInput, match="after"):
        _ = [event async for event in lamina.events.each(after)]


async def test_a_list_goes_on_after_a_place_that_is_gone(lamina: AsyncLamina) -> None:
    for name in ("a", "b", "c"):
        await lamina.put_file(name, "calm")
    cursor = (await lamina.files(limit=2)).next_cursor
    await lamina.delete_file("b")

    assert [file.path async for file in lamina.files.each(cursor=cursor)] == ["c"]


async def test_a_key_that_may_not_is_told_as_such(application: Application) -> None:
    transport = httpx.ASGITransport(application.api, raise_app_exceptions=False)
    async with AsyncLamina("http://lamina", application.key, transport=transport) as writer:
        with pytest.raises(Forbidden):
            await writer.keys()
