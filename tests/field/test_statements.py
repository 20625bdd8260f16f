"""Field cases 71 to 73: the later statement holds, a change ends what was, and only statements are believed."""

import asyncio
from itertools import permutations
from typing import Any

import pytest

from tests.support.application import Application

MARCH, OLD = "2026-03-01T10:00:00Z", "2021-06-01T10:00:00Z"


async def say(app: Application, *contents: str, at: str | None = None, session: str = "s1") -> None:
    times = {} if at is None else {"occurred_at": at}
    messages = [{"content": content, "name": "Ann", **times} for content in contents]
    answer = await app.client().post("/v1/turns", json={"session": session, "user": "ann", "messages": messages})
    assert answer.is_success, answer.text


async def profile(app: Application) -> dict[str, Any]:
    return dict((await app.client().get("/v1/profile", params={"user": "ann"})).json()["document"])


async def patch(app: Application, **fields: Any) -> None:
    answer = await app.client().patch("/v1/profile", json={"user": "ann", "patch": fields})
    assert answer.is_success, answer.text


async def test_an_import_of_the_past_changes_nothing_that_was_said_later(application: Application) -> None:
    await say(application, "I live in Berlin. I work at Hooli. I prefer tea.", at=MARCH)
    await say(application, "I live in Paris. I work at Initech. I prefer coffee.", at=OLD)

    assert await profile(application) == {"location": "Berlin", "employer": "Hooli", "preferences": ["tea", "coffee"]}


async def test_one_import_in_any_order_says_the_same(application: Application) -> None:
    said = [
        {"content": "I live in Paris.", "occurred_at": "2019-01-01T00:00:00Z"},
        {"content": "I moved to Lyon.", "occurred_at": "2020-01-01T00:00:00Z"},
        {"content": "I no longer live in Lyon.", "occurred_at": "2021-01-01T00:00:00Z"},
    ]
    for place, order in enumerate(permutations(said)):
        scope = {"session": f"s{place}", "user": f"ann-{place}"}
        answer = await application.client().post("/v1/turns", json={**scope, "messages": list(order)})
        assert answer.is_success, answer.text
        found = await application.client().get("/v1/profile", params={"user": scope["user"]})
        assert found.json()["document"] == {}


async def test_sub_agents_that_write_at_once_agree_on_the_latest(application: Application) -> None:
    places = ["Oslo", "Rome", "Lima", "Kyiv", "Bern"]
    await asyncio.gather(
        *(
            say(application, f"I live in {name}.", at=f"2026-0{month}-01T00:00:00Z", session=f"agent-{month}")
            for month, name in enumerate(places, 1)
        )
    )

    assert await profile(application) == {"location": "Bern"}


async def test_what_a_caller_patches_holds_until_something_is_said_after(application: Application) -> None:
    await say(application, "I live in Berlin. I prefer tea.", at=MARCH)
    await patch(application, location="Rome", preferences=None)
    await say(application, "I live in Paris. I prefer tea.", at="2026-04-01T10:00:00Z", session="s2")

    assert await profile(application) == {"location": "Rome"}

    await say(application, "I moved to Madrid.")
    assert await profile(application) == {"location": "Madrid"}


async def test_what_was_said_again_outlives_an_import_from_the_time_between(application: Application) -> None:
    await say(application, "I live in Berlin.", at="2024-01-01T00:00:00Z")
    await say(application, "I still live in Berlin.", at=MARCH)
    await say(application, "I live in Paris.", at="2025-01-01T00:00:00Z")

    assert await profile(application) == {"location": "Berlin"}


async def test_a_change_ends_the_old_and_is_found(semantic: Application) -> None:
    await say(semantic, "I live in Paris.", "I work at Initech.", "I prefer tea.", "I like jazz.", at=OLD)
    await say(semantic, "I moved to Berlin last month.", at=MARCH)
    await say(semantic, "I left Initech and joined Hooli.", at=MARCH, session="s2")
    await say(semantic, "I don’t prefer tea any more, only coffee", at=MARCH, session="s3")
    await semantic.indexed()

    assert await profile(semantic) == {"location": "Berlin", "employer": "Hooli", "preferences": ["coffee"]}
    asked = {"query": "Where do I work?", "user": "ann"}
    block = (await semantic.client().post("/v1/context", json=asked)).json()["text"]
    assert '"employer": "Hooli"' in block
    assert "I left Initech and joined Hooli." in block
    results = (await semantic.client().post("/v1/search", json=asked)).json()["results"]
    assert any("Hooli" in hit["content"] for hit in results[:3])


async def test_a_withdrawn_value_is_not_brought_back_by_an_import(application: Application) -> None:
    await say(application, "I left Initech. I don't prefer tea any more.", at=MARCH)
    await say(application, "I work at Initech. I prefer tea.", at=OLD)

    assert await profile(application) == {}


@pytest.mark.parametrize(
    "text",
    [
        "Please call me Monday about the invoice.",
        "It is not true that I live in Madrid.",
        "> I live in Lagos and I work for Acme.",
        "If I live in Oslo next year, I will need a coat.",
        'Write a story that opens with: "I live in Atlantis"',
        "Pretend you are a baker. My name is Otto. I live in Bern.",
        "How do you say 'I live in Madrid' in Spanish",
        "do i live in lisbon",
        "My boss said: I work at Hooli.",
        "I wish I lived in Rome.",
        "I used to live in Rome.",
        "-----Original Message-----\nFrom: Bob\nI work at Hooli.",
        "```\nprint('I live in Madrid')\n```",
    ],
)
async def test_what_is_no_statement_sets_no_field(application: Application, text: str) -> None:
    await say(application, text)

    assert await profile(application) == {}


async def test_a_preference_ends_at_its_clause(application: Application) -> None:
    await say(application, "I prefer oat milk and my wife hates coffee")

    assert await profile(application) == {"preferences": ["oat milk"]}


async def test_nothing_of_an_erased_user_is_left_in_the_times_of_statements(unshared: Application) -> None:
    await say(unshared, "I left Initech.", at=MARCH)
    admin = unshared.admin()
    erased = await admin.delete("/v1/users", params={"user": "ann"})
    assert erased.is_success, erased.text
    await say(unshared, "I work at Initech.", at=OLD, session="s2")

    assert await profile(unshared) == {"employer": "Initech"}
