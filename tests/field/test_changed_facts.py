"""Facts that change: what holds now, what held at a date, and who may say so."""

import asyncio
from typing import Any

import httpx
import numpy as np
import pytest

from benchmarks.generated_sentences import Wording
from tests.support.application import Application

MAY, JUNE, JULY = "2026-05-01T10:00:00Z", "2026-06-01T10:00:00Z", "2026-07-01T10:00:00Z"


async def say(client: httpx.AsyncClient, text: str, on: str, name: str = "Ann", **scope: str) -> None:
    message = {"role": "user", "name": name, "content": text, "occurred_at": on}
    sent = await client.post("/v1/turns", json={"session": f"s-{on}", "messages": [message], **scope})
    assert sent.status_code == 200, sent.text


async def facts(app: Application, client: httpx.AsyncClient, question: str, **fields: Any) -> list[str]:
    await app.indexed()
    body = {"query": question, "tiers": ["graph"], "limit": 20, "min_confidence": 0, **fields}
    found = (await client.post("/v1/search", json=body)).json()
    return [hit["content"] for hit in found["results"] if hit["kind"] == "fact"]


async def related(app: Application, client: httpx.AsyncClient, question: str, **fields: Any) -> str:
    await app.indexed()
    answer = await client.post("/v1/context", json={"query": question, **fields})
    return "\n".join(line for line in answer.json()["text"].splitlines() if line.startswith("related:"))


async def test_a_fact_that_was_replaced_says_so_and_is_no_hint_any_more(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "I moved to Berlin.", JUNE)

    found = await facts(application, client, "Where does Ann live?")

    assert "Ann lives_in Paris (until 2026-06-01); later: Berlin" in found
    assert "Ann moved_to Berlin" in found
    now = await related(application, client, "Where does Ann live?")
    assert "Ann moved_to Berlin (since 2026-06-01)" in now
    assert "Ann lives_in Paris" not in now
    assert "Ann lives_in Paris" in await related(
        application, client, "Where did Ann live?", as_of="2026-05-15T00:00:00Z"
    )


async def test_a_fact_tells_since_when_it_holds_and_since_when_it_held_then(application: Application) -> None:
    client = application.client()
    for text, moment in (("I live in Paris.", MAY), ("I moved to Berlin.", JUNE), ("I live in Paris.", JULY)):
        await say(client, text, moment)
    await application.indexed()

    async def begins(**fields: str) -> dict[str, str]:
        body = {"query": "Where does Ann live?", "tiers": ["graph"], "limit": 20, "min_confidence": 0, **fields}
        found = (await client.post("/v1/search", json=body)).json()["results"]
        return {hit["content"]: hit["occurred_at"] for hit in found if hit["kind"] == "fact"}

    now, then = await begins(), await begins(as_of="2026-05-15T00:00:00Z")

    assert now["Ann lives_in Paris"] == JULY
    assert [at for content, at in now.items() if content.startswith("Ann moved_to Berlin")] == [JUNE]
    assert then["Ann lives_in Paris"] == MAY


async def test_a_message_that_states_what_was_replaced_says_what_came_later_and_stands_behind_it(
    application: Application,
) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "I moved to Berlin.", JUNE)
    await say(client, "Paris is where I live, as I said, I live in Paris", "2026-05-02T10:00:00Z")
    await application.indexed()

    body = {"query": "Where does Ann live, Paris?", "tiers": ["sessions", "notes"]}
    found = (await client.post("/v1/search", json=body)).json()["results"]
    before = (await client.post("/v1/search", json={**body, "as_of": "2026-05-20T00:00:00Z"})).json()["results"]
    block = (await client.post("/v1/context", json={"query": "Where did Ann live in May?"})).json()["text"]

    contents = [hit["content"] for hit in found]
    berlin = next(place for place, text in enumerate(contents) if "Berlin" in text)
    paris = next(place for place, text in enumerate(contents) if text.startswith("I live in Paris"))
    assert berlin < paris
    assert found[paris]["later"] == ["Ann moved_to Berlin (since 2026-06-01)"]
    assert found[berlin]["later"] == []
    assert all(hit["later"] == [] for hit in before)
    assert "later: Ann moved_to Berlin (since 2026-06-01)" in block


@pytest.mark.parametrize(
    ("names", "limit"),
    [("Ines Bruno Chiara Dmitri Elif Farid Greta", 10), ("Ines Bruno Chiara Dmitri Elif", 20), ("Ines Bruno Ines", 10)],
)
async def test_of_many_statements_alike_the_latest_answers_a_question_about_the_present(
    application: Application, names: str, limit: int
) -> None:
    client = application.client()
    on_call = (
        "For this week and until further notice the primary on-call engineer of the payments platform team in the "
        "office at the harbour, who also keeps the key of the server room and answers the red telephone, is {}."
    )
    *before, latest = names.split()
    for week, name in enumerate(before, 1):
        await say(client, on_call.format(name), f"2026-03-{week:02}T09:00:00Z", name="Desk")
    await say(client, on_call.format(latest), "2026-04-01T09:00:00Z", name="Desk")
    wording = Wording(np.random.default_rng(7))
    for day in range(1, 29):
        text = f"The primary engineer {wording.statement()}"
        await say(client, text, f"2026-02-{day:02}T10:00:00Z", name="Desk")
    await application.indexed()

    body = {
        "query": "Who is the primary on-call engineer of the payments platform team now?",
        "tiers": ["sessions"],
        "limit": limit,
    }
    found = (await client.post("/v1/search", json=body)).json()["results"]

    contents = [hit["content"] for hit in found]
    assert contents[0] == on_call.format(latest)
    assert sum("on-call" in text for text in contents) <= 3


async def test_a_pinned_note_that_no_search_found_says_what_came_later(application: Application) -> None:
    client = application.client()
    note = (await client.post("/v1/notes", json={"content": "Ann Lee lives in Paris.", "event_at": MAY})).json()
    assert (await client.put(f"/v1/memories/{note['id']}/pin")).status_code == 200
    await say(client, "I moved to Berlin.", JUNE, name="Ann Lee")
    await application.indexed()

    async def block(**fields: Any) -> str:
        body = {"query": "Which pump is broken?", "pinned": True, "tiers": ["documents"], **fields}
        return str((await client.post("/v1/context", json=body)).json()["text"])

    now, then = await block(), await block(as_of="2026-05-20T00:00:00Z")

    assert "Ann Lee lives in Paris." in now
    assert "later: Ann Lee moved_to Berlin (since 2026-06-01)" in now
    assert "Ann Lee lives in Paris." in then
    assert "later:" not in then


async def test_a_fact_of_an_earlier_time_that_is_told_late_replaces_nothing(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Berlin.", JULY)
    await say(client, "I live in Paris.", MAY)

    found = await facts(application, client, "Where does Ann live?")

    assert "Ann lives_in Berlin" in found
    assert "Ann lives_in Paris (until 2026-07-01); later: Berlin" in found


async def test_another_speaker_replaces_nothing_that_somebody_says_of_themselves(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "Ann lives in Berlin.", JUNE, name="Bob")

    assert "Ann lives_in Paris" in await facts(application, client, "Where does Ann live?")


async def test_a_statement_that_is_deleted_ends_nothing_any_more(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    sent = await client.post(
        "/v1/turns",
        json={
            "session": "s-2",
            "messages": [{"role": "user", "name": "Ann", "content": "I live in Berlin.", "occurred_at": JUNE}],
        },
    )
    await client.delete(f"/v1/messages/{sent.json()['messages'][0]['id']}")
    for note in sent.json()["notes"]:
        await client.delete(f"/v1/notes/{note['id']}")

    assert await facts(application, client, "Where does Ann live?") == ["Ann lives_in Paris"]


@pytest.mark.parametrize("later", ["I left Initech.", "I left Initech and joined Hooli."])
async def test_a_fact_that_was_taken_back_holds_no_longer(application: Application, later: str) -> None:
    client = application.client()
    await say(client, "I work at Initech.", MAY)
    await say(client, later, JUNE)

    assert "Ann works_at Initech" not in await related(application, client, "Where does Ann work?")


async def test_what_is_used_in_place_of_another_ends_it_and_what_is_used_beside_it_does_not(
    application: Application,
) -> None:
    client = application.client()
    await say(client, "I use Vim. I use Fish.", MAY)
    await say(client, "I use Helix instead of Vim.", JUNE)

    assert sorted(await held(client, "Ann", relation="uses")) == [
        ("Fish", None),
        ("Helix", None),
        ("Vim", "2026-06-01"),
    ]


async def state(client: httpx.AsyncClient, subject: str, relation: str, object_: str, **fields: Any) -> dict[str, Any]:
    body = {"subject": subject, "relation": relation, "object": object_, **fields}
    stated = await client.post("/v1/facts", json=body)
    assert stated.status_code == 200, stated.text
    found: dict[str, Any] = stated.json()
    return found


async def held(client: httpx.AsyncClient, subject: str, **fields: Any) -> list[tuple[str, str | None]]:
    listed = await client.get("/v1/facts", params={"subject": subject, **fields})
    assert listed.status_code == 200, listed.text
    return [(fact["object"], fact["valid_to"] and fact["valid_to"][:10]) for fact in listed.json()["facts"]]


async def test_a_stated_fact_ends_the_older_one_of_a_relation_that_holds_once(application: Application) -> None:
    client = application.client()
    await state(client, "Ticket 7731", "has_status", "open", valid_from=MAY)
    await state(client, "Ticket 7731", "has_status", "closed", valid_from=JULY)
    await state(client, "Ticket 7731", "has_status", "triaged", valid_from=JUNE)

    assert await held(client, "Ticket 7731") == [("closed", None), ("triaged", "2026-07-01"), ("open", "2026-06-01")]
    assert await held(client, "Ticket 7731", as_of=JUNE) == [("triaged", "2026-07-01")]
    assert await held(client, "Ticket 7731", as_of="2026-05-31T23:59:59Z") == [("open", "2026-06-01")]


async def test_a_stated_fact_ends_those_that_it_replaces_whatever_they_state(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "speaks", "Latin", valid_from=MAY)

    new = await state(client, "Orion", "writes", "Greek", valid_from=JUNE, replaces=[old["id"]])

    assert new["replaced"] == [old["id"]]
    assert await held(client, "Orion") == [("Greek", None), ("Latin", "2026-06-01")]


async def test_a_fact_is_replaced_by_none_that_began_before_it(application: Application) -> None:
    client = application.client()
    several = await state(client, "Orion", "speaks", "Latin", valid_from=JUNE)
    one = await state(client, "Orion", "lives_in", "Oslo", valid_from=JUNE)
    fields = {"subject": "Orion", "relation": "lives_in", "object": "Bergen", "valid_from": MAY}

    of_several = await client.post("/v1/facts", json={**fields, "replaces": [several["id"]]})
    of_one = await client.post("/v1/facts", json={**fields, "replaces": [one["id"]]})

    assert (of_several.status_code, of_one.status_code) == (422, 422)
    assert "2026-06-01" in of_one.text
    assert await held(client, "Orion") == [("Latin", None), ("Oslo", None)]


async def test_a_fact_that_ended_before_ends_no_second_time(application: Application) -> None:
    client = application.client()
    first = await state(client, "Orion", "lives_in", "Oslo", valid_from=MAY)
    second = await state(client, "Orion", "lives_in", "Bergen", valid_from=JUNE)

    third = await state(client, "Orion", "lives_in", "Rome", valid_from=JULY, replaces=[first["id"], second["id"]])

    assert third["replaced"] == [second["id"]]
    assert await held(client, "Orion") == [("Rome", None), ("Bergen", "2026-07-01"), ("Oslo", "2026-06-01")]


async def test_a_fact_that_is_not_there_cannot_be_replaced_and_nothing_is_written(application: Application) -> None:
    client = application.client()
    await state(client, "Orion", "speaks", "Latin")
    mine = await state(client, "Orion", "likes", "Tea", user="ann")
    fields = {"subject": "Orion", "relation": "speaks", "object": "Greek"}

    unknown = await client.post("/v1/facts", json={**fields, "replaces": ["01a227d9-d740-7778-b896-011c304272ef"]})
    private = await client.post("/v1/facts", json={**fields, "user": "bob", "replaces": [mine["id"]]})
    elsewhere = await client.post("/v1/facts", json={**fields, "workspace": "other", "replaces": [mine["id"]]})
    to_come = await client.post("/v1/facts", json={**fields, "valid_from": "2999-01-01T00:00:00Z"})

    assert (unknown.status_code, private.status_code, elsewhere.status_code) == (404, 404, 404)
    assert (to_come.status_code, "valid_from" in to_come.text) == (422, True)
    assert {name for name, _ in await held(client, "Orion")} == {"Latin", "Tea"}


async def test_what_began_again_keeps_both_times(application: Application) -> None:
    client = application.client()
    await say(client, "I live in Paris.", MAY)
    await say(client, "I moved to Berlin.", JUNE)
    await say(client, "I live in Paris.", JULY)

    assert await held(client, "Ann") == [("Paris", None), ("Berlin", "2026-07-01"), ("Paris", "2026-06-01")]
    assert await held(client, "Ann", as_of="2026-05-15T00:00:00Z") == [("Paris", "2026-06-01")]
    assert await held(client, "Ann", as_of="2026-06-15T00:00:00Z") == [("Berlin", "2026-07-01")]


@pytest.mark.parametrize(
    ("as_of", "is_found"), [(None, False), ("2026-05-15T00:00:00Z", True), ("2026-06-15T00:00:00Z", False)]
)
async def test_nothing_is_reached_through_a_fact_that_held_no_longer(
    application: Application, as_of: str | None, is_found: bool
) -> None:
    client = application.client()
    await say(client, "The Zorblat festival of Quimper is loud.", "2026-04-01T10:00:00Z", name="Bob")
    await state(client, "Mira", "lives_in", "Quimper", valid_from=MAY)
    await state(client, "Mira", "lives_in", "Lorient", valid_from=JUNE)
    await application.indexed()

    reached = await client.post(
        "/v1/graph/traverse", json={"names": ["Mira"], "depth": 2, **({"as_of": as_of} if as_of else {})}
    )

    assert ("Zorblat" in reached.text) is is_found, reached.text


@pytest.mark.parametrize("relation", ["speaks", "lives_in"])
@pytest.mark.parametrize("other", [MAY, JULY])
async def test_a_source_that_states_another_beginning_corrects_it(
    application: Application, relation: str, other: str
) -> None:
    client = application.client()

    async def begins() -> list[str]:
        listed = await client.get("/v1/facts", params={"subject": "Orion", "relation": relation})
        return [fact["valid_from"][:10] for fact in listed.json()["facts"]]

    first = await state(client, "Orion", relation, "Latium", valid_from=JUNE)
    again = await state(client, "Orion", relation, "Latium", valid_from=other)
    corrected_to = await begins()
    await state(client, "Orion", relation, "Latium")

    assert (again["id"], again["existed"]) == (first["id"], True)
    assert corrected_to == await begins() == [other[:10]]


async def test_a_source_says_that_a_fact_began_again(application: Application) -> None:
    client = application.client()
    for object_, begin in [("Paris", MAY), ("Berlin", JUNE), ("Paris", JULY), ("Berlin", JUNE), ("Paris", JULY)]:
        await state(client, "Ann", "lives_in", object_, valid_from=begin)

    assert await held(client, "Ann") == [("Paris", None), ("Berlin", "2026-07-01"), ("Paris", "2026-06-01")]
    assert await held(client, "Ann", as_of="2026-06-15T00:00:00Z") == [("Berlin", "2026-07-01")]


async def test_a_beginning_that_a_source_cannot_state_again_is_refused(application: Application) -> None:
    client = application.client()
    for object_, begin in [("Paris", MAY), ("Berlin", JUNE), ("Paris", JULY)]:
        await state(client, "Ann", "lives_in", object_, valid_from=begin)
    await state(client, "Ann", "works_at", "Initech", valid_from=MAY)
    await state(client, "Ann", "left", "Initech", valid_from=JUNE)
    await state(client, "Ann", "speaks", "Latin", valid_from=MAY, user="ben")
    await state(client, "Ann", "has_status", "ill", valid_from=MAY, user="ben")
    await state(client, "Ann", "has_status", "well", valid_from=JUNE)

    async def refused(relation: str, object_: str, begin: str, **fields: str) -> str:
        body = {"subject": "Ann", "relation": relation, "object": object_, "valid_from": begin, **fields}
        answer = await client.post("/v1/facts", json=body)
        assert answer.status_code == 409, answer.text
        return str(answer.json()["detail"])

    assert "with another source" in await refused("lives_in", "Paris", "2026-07-02T10:00:00Z")
    assert "ended on 2026-06-01" in await refused("works_at", "Initech", JULY)
    assert "ended on 2026-06-01" in await refused("has_status", "ill", JULY, user="ben")
    assert await held(client, "Ann", relation="has_status", user="ben", as_of=JULY) == [("well", None)]


async def test_another_users_private_facts_are_not_listed(application: Application) -> None:
    client = application.client()
    await state(client, "Orion", "likes", "Tea", user="ann")

    assert await held(client, "Orion", user="ann") == [("Tea", None)]
    assert (await client.get("/v1/facts", params={"subject": "Orion", "user": "bob"})).status_code == 404


async def test_a_standing_instruction_is_in_every_block_of_its_user_until_it_is_revoked(
    application: Application,
) -> None:
    client = application.client()
    await say(client, "Please always answer in German.", MAY, user="ann")
    await say(client, "Always answer in French.", MAY, user="bob")
    await application.indexed()

    async def block(user: str) -> str:
        answer = await client.post("/v1/context", json={"query": "Which tea is best?", "user": user})
        text: str = answer.json()["text"]
        return text

    assert "Please always answer in German." in await block("ann")
    assert "German" not in await block("bob")
    await say(client, "You can answer in English again.", JUNE, user="ann")
    await application.indexed()
    assert "instructions" not in await block("ann")
    patch = {"user": "ann", "patch": {"instructions": ["Never use emojis."]}}
    assert (await client.patch("/v1/profile", json=patch)).status_code == 200
    assert "Never use emojis." in await block("ann")


async def test_a_block_as_of_a_date_holds_nothing_that_was_said_later(application: Application) -> None:
    client, user = application.client(), {"user": "ann"}
    await say(client, "My name is Ann Lee. I live in Paris.", MAY, **user)
    await say(client, "I prefer tea.", MAY, **user)
    await say(client, "I moved to Berlin. I prefer jasmine rice.", JULY, **user)
    for content, at in (("the safe is grey", MAY), ("the safe is green", JULY)):
        note = (await client.post("/v1/notes", json={"content": content, "event_at": at})).json()
        assert (await client.put(f"/v1/memories/{note['id']}/pin")).status_code == 200
    await application.indexed()

    async def block(**fields: Any) -> str:
        body = {"query": "the safe", "pinned": True, "tiers": ["notes"], **user, **fields}
        return str((await client.post("/v1/context", json=body)).json()["text"])

    now, then = await block(), await block(as_of=JUNE)

    assert all(part in now for part in ("Ann Lee", "Berlin", "tea", "jasmine", "grey", "green")), now
    assert all(part in then for part in ("Ann Lee", "tea", "grey")), then
    assert not any(part in then for part in ("Berlin", "Paris", "jasmine", "green")), then


async def test_when_a_fact_held_by_the_word_of_one_user_alone_nobody_else_learns(application: Application) -> None:
    client = application.client()
    await state(client, "Bob", "lives_in", "Paris", valid_from="2020-01-01T00:00:00Z", user="ann")
    await state(client, "Bob", "moved_away_from", "Paris", valid_from="2022-01-01T00:00:00Z", user="ann")
    await state(client, "Bob", "lives_in", "Paris", valid_from=MAY)
    await state(client, "Bob", "likes", "Tea", valid_from="2020-01-01T00:00:00Z", user="ann")
    await state(client, "Bob", "likes", "Tea", valid_from=MAY)

    async def lives(**fields: Any) -> list[tuple[str, str]]:
        listed = await client.get("/v1/facts", params={"subject": "Bob", **fields})
        return sorted((fact["object"], fact["valid_from"][:4]) for fact in listed.json()["facts"])

    assert await lives(user="carl") == [("Paris", "2026"), ("Tea", "2026")]
    assert await lives(user="carl", as_of="2021-01-01T00:00:00Z") == []
    assert ("Paris", "2020") in await lives(user="ann")


async def test_a_block_says_since_when_a_fact_holds_by_what_its_user_may_see(application: Application) -> None:
    client = application.client()
    await say(client, "Bob lives in the town of Rouen.", MAY, name="Guide")
    await state(client, "Bob", "lives_in", "Rouen", valid_from="2020-01-01T00:00:00Z")
    await state(client, "Bob", "lives_in", "Lorient", valid_from="2022-02-02T00:00:00Z", user="ann")
    await state(client, "Bob", "lives_in", "Lorient", valid_from=JULY)
    await state(client, "Bob", "has_status", "ill", valid_from=MAY, user="ann")
    await state(client, "Bob", "has_status", "well", valid_from=JUNE)

    of_ann, of_carl = [
        await related(application, client, "Where does Bob live?", user=user, limit=10) for user in ("ann", "carl")
    ]

    assert "Bob lives_in Lorient (since 2022-02-02)" in of_ann
    assert "Bob has_status well (since 2026-06-01)" in of_ann
    assert "Bob lives_in Lorient (since 2026-07-01)" in of_carl
    assert "Bob has_status well" in of_carl
    assert "2022" not in of_carl
    assert "well (since" not in of_carl


async def corrected(client: httpx.AsyncClient, id_: str, **fields: Any) -> dict[str, Any]:
    answer = await client.patch(f"/v1/memories/{id_}", json=fields)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["fact"])


async def test_a_fact_that_is_corrected_never_held(application: Application) -> None:
    client = application.client()
    await state(client, "Ticket 12", "has_status", "open", valid_from=MAY)
    wrong = await state(client, "Ticket 12", "has_status", "closed", valid_from=JUNE)

    right = await corrected(client, wrong["id"], object="triaged")
    old = (await client.get(f"/v1/memories/{wrong['id']}")).json()["fact"]

    assert (right["subject"], right["relation"], right["object"]) == ("Ticket 12", "has_status", "triaged")
    assert (right["valid_from"][:10], right["valid_to"], right["confidence"]) == ("2026-06-01", None, 0.9)
    assert (old["valid_to"][:10], old["replaced_by"]) == ("2026-06-01", right["id"])
    assert await held(client, "Ticket 12", as_of="2026-06-02T00:00:00Z") == [("triaged", None)]
    assert await held(client, "Ticket 12", as_of="2026-05-02T00:00:00Z") == [("open", "2026-06-01")]
    assert "Ticket 12 has_status triaged" in await facts(application, client, "What is the status of Ticket 12?")


async def test_a_fact_that_changed_holds_until_then(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "speaks", "Latin", valid_from=MAY)

    new = await corrected(client, old["id"], object="Greek", valid_from=JULY, confidence=0.7, source="the harbour")

    assert (new["valid_from"][:10], new["confidence"]) == ("2026-07-01", 0.7)
    assert await held(client, "Orion") == [("Greek", None), ("Latin", "2026-07-01")]


async def test_one_correction_twice_at_once_makes_one_fact(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "has_price", "12 crowns", valid_from=MAY)

    news = await asyncio.gather(*(corrected(client, old["id"], object="13 crowns") for _ in range(2)))

    assert len({new["id"] for new in news}) == 1
    assert await held(client, "Orion", as_of=JULY) == [("13 crowns", None)]


async def test_a_fact_that_cannot_be_changed_says_what_to_do(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "speaks", "Latin", valid_from=MAY)
    new = await corrected(client, old["id"], object="Greek")
    again = await state(client, "Orion", "likes", "Tea", valid_from=MAY)
    await state(client, "Orion", "likes", "Tea", valid_from=JUNE, source="another")
    several = await state(client, "Orion", "likes", "Rum", user="ann")
    await state(client, "Orion", "likes", "Rum", user="bob")

    async def refused(id_: str, **fields: Any) -> str:
        answer = await client.patch(f"/v1/memories/{id_}", json=fields)
        assert answer.status_code == 409, answer.text
        return str(answer.json()["detail"])

    assert f"change {new['id']}" in await refused(old["id"], object="Norse")
    assert "POST /v1/facts" in await refused(new["id"], confidence=0.4)
    assert "valid_from" in await refused(again["id"], object="Mate")
    assert "several users" in await refused(several["id"], object="Gin")
    late = await corrected(client, again["id"], object="Mate", valid_from=JULY)
    assert late["valid_from"][:10] == "2026-07-01"


@pytest.mark.parametrize("relation", ["speaks", "has_status"])
@pytest.mark.parametrize(("second", "third", "begin"), [(MAY, MAY, "2026-05-01"), (JUNE, JULY, "2026-07-01")])
async def test_a_fact_that_is_corrected_and_corrected_back_holds(
    application: Application, relation: str, second: str, third: str, begin: str
) -> None:
    client = application.client()
    old = await state(client, "Orion", relation, "Latin", valid_from=MAY)
    new = await corrected(client, old["id"], object="Greek", valid_from=second)

    back = await corrected(client, new["id"], object="Latin", valid_from=third)

    assert (back["id"], back["valid_from"][:10], back["valid_to"]) == (old["id"], begin, None)
    assert await held(client, "Orion", as_of="2026-08-01T10:00:00Z") == [("Latin", None)]


async def test_a_fact_corrected_back_of_another_subject_holds(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "speaks", "Latin", valid_from=MAY)
    new = await corrected(client, old["id"], subject="Lyra")

    back = await corrected(client, new["id"], subject="Orion")

    assert (back["id"], back["valid_to"]) == (old["id"], None)


async def test_a_fact_that_was_taken_back_is_stated_anew_as_its_refusal_says(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "works_at", "Initech", valid_from=MAY)
    await state(client, "Orion", "left", "Initech", valid_from=JUNE)

    refused = await client.patch(f"/v1/memories/{old['id']}", json={"object": "Hooli"})
    await state(client, "Orion", "works_at", "Initech", valid_from=JULY, source="a letter")

    assert refused.status_code == 409
    assert "with another source (POST /v1/facts)" in refused.json()["detail"]
    assert await held(client, "Orion", relation="works_at", as_of=JULY) == [("Initech", None)]


async def test_a_corrected_fact_of_a_user_stays_theirs_alone(application: Application) -> None:
    client = application.client()
    old = await state(client, "Orion", "likes", "Tea", user="ann", valid_from=MAY)

    await corrected(client, old["id"], object="Rum")

    assert await held(client, "Orion", user="ann", as_of=JULY) == [("Rum", None)]
    assert (await client.get("/v1/facts", params={"subject": "Orion", "user": "bob"})).status_code == 404
