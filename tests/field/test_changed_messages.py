"""A message whose text is corrected: what was drawn from it follows, and nothing finds the old words."""

import asyncio
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.stores.postgres.keys import store_key
from lamina.wiring.stores import utc_now
from tests.support.application import Application, sent
from tests.support.compaction import chatter, compact, say

AT = "2026-05-01T10:00:00Z"


async def told(client: httpx.AsyncClient, *contents: str, **fields: Any) -> list[str]:
    messages = [
        {"role": "user", "name": "Ann", "content": content, "occurred_at": AT, "ref": f"r {place}"}
        for place, content in enumerate(contents)
    ]
    turn = await sent(client, "POST", "/v1/turns", json={"session": "s 1", "messages": messages, **fields})
    return [message["id"] for message in turn["messages"]]


async def corrected(client: httpx.AsyncClient, id_: str, **fields: Any) -> dict[str, Any]:
    return dict((await sent(client, "PATCH", f"/v1/memories/{id_}", json=fields))["message"])


async def found(app: Application, query: str, **fields: Any) -> list[str]:
    await app.indexed()
    body = {"query": query, "limit": 50, **fields}
    return [hit["content"] for hit in (await sent(app.client(), "POST", "/v1/search", json=body))["results"]]


async def test_what_was_drawn_from_a_message_follows_its_new_text(unshared: Application) -> None:
    client, scope = unshared.client(), {"user": "ann"}
    [id_, _] = await told(client, "We decided to ship on Fridays. I live in Paris.", "The mast is of ash.", **scope)
    before = await found(unshared, "When do we ship, and where does Ann live?", **scope)

    message = await corrected(client, id_, content="We decided to ship on Tuesdays. I live in Berlin.")

    assert (message["content"][:29], message["position"]) == ("We decided to ship on Tuesday", 1)
    after = await found(unshared, "When do we ship, and where does Ann live?", **scope)
    assert any("Fridays" in content for content in before)
    assert any("Paris" in content for content in before)
    assert not [content for content in after if "Fridays" in content or "Paris" in content]
    assert any("Tuesdays" in content for content in after)
    assert any("Berlin" in content for content in after)
    notes = (await sent(client, "GET", "/v1/notes", params=scope))["notes"]
    assert [note["content"] for note in notes if "ship" in note["content"]] == ["We decided to ship on Tuesdays."]
    assert await unshared.drift() == {}
    events = (await sent(client, "GET", "/v1/events", params=scope))["events"]
    kinds = {event["kind"] for event in events}
    assert [event["ids"] for event in events if event["kind"] == "message.changed"] == [[id_]]
    assert {"note.deleted", "note.created"} <= kinds
    trashed = (await sent(client, "GET", "/v1/trash", params=scope))["entries"]
    assert any("Fridays" in str(entry["title"]) for entry in trashed)


async def test_a_message_that_was_found_before_is_ranked_by_its_new_text(unshared: Application) -> None:
    client = unshared.client()
    [id_, *_] = await told(client, "The launch is on Friday.", *(f"A dull remark, number {at}." for at in range(6)))
    asked = {"query": "Where does the spare key hang?", "tiers": ["sessions"], "explain": True}
    await found(unshared, "When is the launch?")

    await corrected(client, id_, content="The spare key hangs behind the barometer.")

    await unshared.indexed()
    best = (await sent(client, "POST", "/v1/search", json=asked))["results"][0]
    context = best["explain"]["session_context"]
    assert (best["content"], context["rank"]) == ("The spare key hangs behind the barometer.", 1)
    assert context["raw"]["cosine"] > 0.3


async def test_the_profile_takes_what_the_new_text_states_unless_it_was_stated_again(unshared: Application) -> None:
    client, scope = unshared.client(), {"user": "ann"}
    [id_] = await told(client, "I prefer short answers. I prefer dark mode.", **scope)
    later = {"role": "user", "name": "Ann", "content": "I prefer dark mode.", "occurred_at": "2026-06-01T10:00:00Z"}
    await sent(client, "POST", "/v1/turns", json={"session": "s 2", "messages": [later], **scope})
    before = str((await sent(client, "GET", "/v1/profile", params=scope))["document"])

    await corrected(client, id_, content="I prefer long answers. I prefer bright colours.")

    after = str((await sent(client, "GET", "/v1/profile", params=scope))["document"])
    assert "short answers" in before
    assert ("short answers" in after, "long answers" in after, "dark mode" in after) == (False, True, True)


async def test_a_note_that_somebody_changed_stays_as_it_is(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "We decided to ship on Fridays.")
    [note] = (await sent(client, "GET", "/v1/notes"))["notes"]
    await sent(client, "PATCH", f"/v1/notes/{note['id']}", json={"content": "Ship on Fridays, says the board"})

    await corrected(client, id_, content="We decided to ship on Tuesdays.")

    contents = {one["content"] for one in (await sent(client, "GET", "/v1/notes"))["notes"]}
    assert contents == {"Ship on Fridays, says the board", "We decided to ship on Tuesdays."}


async def test_what_another_message_of_the_session_says_stays_until_that_one_is_corrected(
    unshared: Application,
) -> None:
    client = unshared.client()
    text = "We decided to ship on Fridays."
    [first], [second] = await told(client, text), await told(client, f"Ahoy. {text}")
    again = f"{text} The mast is of ash."

    async def drawn() -> set[str]:
        return {note["content"] for note in (await sent(client, "GET", "/v1/notes"))["notes"]}

    await corrected(client, first, content="We decided to ship on Tuesdays.")
    of_second = await drawn()
    await corrected(client, second, content=again)
    of_new_text = await drawn()
    await corrected(client, second, content="The mast is of pine.")

    assert of_second == of_new_text == {text, "We decided to ship on Tuesdays."}
    assert await drawn() == {"We decided to ship on Tuesdays."}
    assert await unshared.drift() == {}


async def test_a_pinned_note_stays_as_it_is(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "We decided to ship on Fridays.")
    [note] = (await sent(client, "GET", "/v1/notes"))["notes"]
    assert (await client.put(f"/v1/memories/{note['id']}/pin")).is_success

    await corrected(client, id_, content="We decided to ship on Tuesdays.")

    contents = {one["content"] for one in (await sent(client, "GET", "/v1/notes"))["notes"]}
    assert contents == {"We decided to ship on Fridays.", "We decided to ship on Tuesdays."}


async def test_a_note_made_from_what_was_drawn_goes_with_the_old_text(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "We decided to ship on Fridays.")
    [drawn] = (await sent(client, "GET", "/v1/notes"))["notes"]
    made = await sent(client, "POST", "/v1/notes", json={"content": "Decisions: ship on Fridays"})
    with psycopg.connect(unshared.url) as connection:  # As a consolidation does.
        connection.execute("INSERT INTO note_sources VALUES (%s, %s)", [made["id"], drawn["id"]])
        hide = "UPDATE notes SET deleted_at = now(), merged_into = %s WHERE id = %s"
        connection.execute(hide, [made["id"], drawn["id"]])

    await corrected(client, id_, content="We decided to ship on Tuesdays.")

    contents = {one["content"] for one in (await sent(client, "GET", "/v1/notes"))["notes"]}
    assert contents == {"We decided to ship on Tuesdays."}


async def test_other_fields_change_without_the_text_and_nothing_is_drawn_again(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "We decided to ship on Fridays.")
    notes = (await sent(client, "GET", "/v1/notes"))["notes"]

    message = await corrected(client, id_, importance=0.9, metadata={"quelle": "煙"})

    assert (message["importance"], message["metadata"]) == (0.9, {"quelle": "煙"})
    assert message["content"] == "We decided to ship on Fridays."
    assert (await sent(client, "GET", "/v1/notes"))["notes"] == notes


async def test_a_delivery_that_is_repeated_is_the_corrected_message(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "The mast is of ash.")
    await corrected(client, id_, content="The mast is of pine.")

    again, new = await told(client, "The mast is of ash."), await told(client, "The mast is of pine.")

    assert (again, new) == ([id_], [id_])
    history = (await sent(client, "GET", "/v1/sessions/s 1/messages"))["messages"]
    assert [message["content"] for message in history] == ["The mast is of pine."]


async def test_a_session_holds_a_message_once(unshared: Application) -> None:
    client = unshared.client()
    messages = [{"content": text, "occurred_at": AT} for text in ("The mast is of ash.", "The mast is of pine.")]
    turn = await sent(client, "POST", "/v1/turns", json={"session": "s", "messages": messages})

    answer = await client.patch(f"/v1/memories/{turn['messages'][0]['id']}", json={"content": "The mast is of pine."})

    assert answer.status_code == 409
    assert "delete one" in answer.json()["detail"]


async def test_of_two_corrections_at_once_one_holds_whole(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "We decided to ship on Fridays.")
    texts = [f"We decided to ship on {day}." for day in ("Mondays", "Tuesdays")]

    await asyncio.gather(*(corrected(client, id_, content=text) for text in texts))

    now = (await sent(client, "GET", f"/v1/memories/{id_}"))["message"]["content"]
    assert now in texts
    assert {note["content"] for note in (await sent(client, "GET", "/v1/notes"))["notes"]} == {now}
    assert await unshared.drift() == {}


async def test_a_corrected_message_comes_back_from_the_trash_with_its_new_text(unshared: Application) -> None:
    client = unshared.client()
    [id_] = await told(client, "The mast is of ash.")
    await corrected(client, id_, content="The mast is of pine.")

    assert (await client.delete(f"/v1/messages/{id_}")).status_code == 204
    await sent(client, "POST", f"/v1/trash/{id_}/restore")

    assert await told(client, "The mast is of ash.") == [id_]
    assert "The mast is of pine." in await found(unshared, "What is the mast made of?")
    assert await unshared.drift() == {}


async def test_a_message_for_which_a_summary_stands_is_refused_with_the_remedy(unshared: Application) -> None:
    client = unshared.client()
    await say(unshared, "long", "The spare anchor is called Bartholomew", *chatter(60))
    await compact(unshared)
    with psycopg.connect(unshared.url) as connection:
        query = "SELECT id FROM messages WHERE tenant = %s AND "
        hidden = connection.execute(query + "compacted_at IS NOT NULL LIMIT 1", [unshared.tenant]).fetchone()
        summary = connection.execute(query + "is_summary LIMIT 1", [unshared.tenant]).fetchone()
    assert hidden is not None
    assert summary is not None

    answers = [await client.patch(f"/v1/memories/{row[0]}", json={"content": "Other"}) for row in (hidden, summary)]

    assert [answer.status_code for answer in answers] == [409, 409]
    assert "delete that one first" in answers[0].json()["detail"]
    assert "delete it" in answers[1].json()["detail"]


async def test_a_key_of_a_user_corrects_their_own_messages_alone(unshared: Application) -> None:
    client = unshared.client()
    own, foreign = [(await told(client, f"I am {user}.", user=user, session=user))[0] for user in ("ann", "bob")]
    principal = new_principal(unshared.tenant, KeyRole.WRITER, utc_now(), bounds=Bounds.from_lists({"users": ["ann"]}))
    of_ann = unshared.client(store_key(unshared.url, principal, "ann's"))

    answers = [await of_ann.patch(f"/v1/memories/{id_}", json={"content": "Ahoy"}) for id_ in (own, foreign)]

    assert [answer.status_code for answer in answers] == [200, 404]


@pytest.mark.parametrize(
    ("change", "field"),
    [({"content": " "}, "content"), ({"content": "a\u0000"}, "content"), ({"importance": 2}, "importance")],
)
async def test_a_wrong_field_is_named(unshared: Application, change: dict[str, Any], field: str) -> None:
    client = unshared.client()
    [id_] = await told(client, f"The mast is of {uuid4().hex}.")

    answer = await client.patch(f"/v1/memories/{id_}", json=change)

    assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field)
