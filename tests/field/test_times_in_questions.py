"""Questions that name a time: what happened then comes first, or alone, in the asker's own days."""

from typing import Any

import pytest

from tests.support.application import Application

Json = dict[str, Any]
# A Wednesday at noon.
NOW = "2026-05-13T12:00:00Z"


async def tell(app: Application, *said: tuple[str, str], **ids: str) -> None:
    """Say messages, each on a day of its own and in a session of its own."""
    for on, content in said:
        moment = on if "T" in on else f"{on}T10:00:00Z"
        messages = [{"role": "user", "name": "Ann", "content": content, "occurred_at": moment}]
        answer = await app.client().post("/v1/turns", json={"session": f"s-{on}", "messages": messages, **ids})
        assert answer.status_code == 200, answer.text
    await app.indexed()


async def ask(app: Application, question: str, **options: Any) -> Json:
    body = {"query": question, "tiers": ["sessions"], "as_of": NOW, "explain": True, **options}
    answer = await app.client().post("/v1/search", json=body)
    assert answer.status_code == 200, answer.text
    found: Json = answer.json()
    return found


def contents(found: Json) -> list[str]:
    return [hit["content"] for hit in found["results"]]


LUNCHES = [
    ("2026-05-13", "Had soup for lunch with Bob"),
    ("2026-05-12", "Had rice for lunch with Bob"),
    ("2026-05-06", "Had pasta for lunch with Bob"),
    ("2026-04-20", "Had curry for lunch with Bob"),
    ("2025-07-14", "Had salad for lunch with Bob"),
    ("2024-03-03", "Had bread for lunch with Bob"),
]


@pytest.mark.parametrize(
    ("question", "dish"),
    [
        ("What did I have for lunch with Bob yesterday?", "rice"),
        ("What did I have for lunch with Bob last week?", "pasta"),
        ("What did I have for lunch with Bob last month?", "curry"),
        ("What did I have for lunch with Bob last summer?", "salad"),
        ("What did I have for lunch with Bob in July 2025?", "salad"),
        ("What did I have for lunch with Bob in 2024?", "bread"),
        ("What did I have for lunch with Bob on 3 March 2024?", "bread"),
        ("What did I have for lunch with Bob 23 days ago?", "curry"),
        ("What did I have for lunch with Bob before 2025?", "bread"),
        ("What did I have for lunch with Bob between June and August 2025?", "salad"),
        ("Was gab es letzte Woche for lunch with Bob?", "pasta"),
        ("lunch with Bob la semana pasada?", "pasta"),
        ("上周 lunch with Bob 吃了什么？", "pasta"),  # noqa: RUF001
    ],
)
async def test_what_happened_at_the_time_that_is_named_comes_first(
    application: Application, question: str, dish: str
) -> None:
    await tell(application, *LUNCHES)

    found = await ask(application, question)

    assert dish in contents(found)[0]
    assert len(contents(found)) == len(LUNCHES)
    assert found["time"]["kind"] == "interval"
    assert found["results"][0]["explain"]["session_context"]["raw"]["said_then"] == 1


async def test_a_filter_leaves_only_what_happened_then_and_off_ignores_the_time(application: Application) -> None:
    await tell(application, *LUNCHES)
    question = "What did I have for lunch with Bob last week?"

    filtered, off = [await ask(application, question, time=use) for use in ("filter", "off")]

    assert contents(filtered) == ["Had pasta for lunch with Bob"]
    assert len(contents(off)) == len(LUNCHES)
    assert off["time"] is None
    assert not any("said_then" in hit["explain"]["session_context"]["raw"] for hit in off["results"])


async def test_a_filter_holds_in_every_tier_and_beside_other_filters(application: Application) -> None:
    client = application.client()
    for content, at in (("Decided to buy the blue boat", "2026-05-06"), ("Decided to sell the red boat", "2026-05-12")):
        body = {"content": content, "event_at": f"{at}T09:00:00Z", "category": "decision", "tags": ["boat"]}
        assert (await client.post("/v1/notes", json=body)).status_code < 300
    await application.indexed()

    found = await ask(application, "What was decided about the boat last week?", tiers=["notes"], time="filter")
    tagged = await ask(
        application, "What was decided about the boat last week?", tiers=["notes"], time="filter", tags=["car"]
    )

    assert contents(found) == ["Decided to buy the blue boat"]
    assert contents(tagged) == []


async def test_a_question_that_names_no_time_is_filtered_by_none(application: Application) -> None:
    await tell(application, *LUNCHES)

    found = await ask(application, "What did I have for lunch with Bob, may I ask?", time="filter")

    assert found["time"] is None
    assert len(contents(found)) == len(LUNCHES)


async def test_a_time_named_in_passing_loses_nothing(application: Application) -> None:
    await tell(application, *LUNCHES, ("2026-02-01", "The lighthouse keeper Odile taught me to splice ropes"))

    found = await ask(application, "Last week I wondered who the lighthouse keeper was that taught me to splice ropes")

    assert "Odile" in contents(found)[0]


@pytest.mark.parametrize(
    ("content", "question"),
    [
        ("We buried the old cat yesterday", "What did we bury on 5 May?"),
        ("We buried the old cat last Tuesday", "What did we bury on 5 May?"),
        ("Gestern haben wir die Katze begraben", "Was haben wir am 5. Mai begraben?"),
    ],
)
async def test_a_message_is_found_by_the_day_that_it_names(
    application: Application, content: str, question: str
) -> None:
    await tell(application, ("2026-05-06", content))
    await tell(application, ("2026-03-06", content), ("2026-01-06", content))

    found = await ask(application, question)

    assert found["results"][0]["occurred_at"].startswith("2026-05-06")
    assert found["results"][0]["explain"]["session_context"]["raw"]["named_then"] == 1


async def test_the_days_are_those_of_the_time_zone_that_is_sent(application: Application) -> None:
    await tell(
        application,
        ("2026-05-11T23:30:00Z", "Walked to the harbour with Bob"),
        ("2026-05-12T23:30:00Z", "Walked to the castle with Bob"),
    )
    question = "Where did I walk with Bob yesterday?"

    places = [
        contents(await ask(application, question, time="filter", time_zone=zone))
        for zone in ("UTC", "Europe/Berlin", "+02:00", "America/New_York")
    ]

    harbour, castle = ["Walked to the harbour with Bob"], ["Walked to the castle with Bob"]
    assert places == [castle, harbour, harbour, castle]


@pytest.mark.parametrize("zone", ["Mars/Phobos", "../etc/passwd", "+25:00", "", "localtime", "europe/berlin", "Europe"])
async def test_an_unknown_time_zone_is_refused_with_the_remedy(application: Application, zone: str) -> None:
    for path in ("search", "context"):
        answer = await application.client().post(f"/v1/{path}", json={"query": "yesterday", "time_zone": zone})

        assert answer.status_code == 422
        assert "send a name like Europe/Berlin or an offset like +02:00" in answer.text


async def test_an_unknown_use_of_the_time_is_refused(application: Application) -> None:
    answer = await application.client().post("/v1/search", json={"query": "yesterday", "time": "sometimes"})

    assert answer.status_code == 422
    assert "boost" in answer.text


async def test_explain_shows_the_time_in_a_search_and_in_a_context(application: Application) -> None:
    await tell(application, *LUNCHES)
    asked = {"query": "What was for lunch last week?", "as_of": NOW, "time_zone": "Europe/Berlin", "explain": True}

    shown = [
        (await application.client().post(f"/v1/{path}", json=asked)).json()["time"] for path in ("search", "context")
    ]
    hidden = (await application.client().post("/v1/search", json={**asked, "explain": False})).json()["time"]

    expected = {
        "kind": "interval",
        "phrase": "last week",
        "intervals": [{"start": "2026-05-03T22:00:00Z", "end": "2026-05-10T22:00:00Z"}],
        "event": None,
    }
    assert shown == [expected, expected]
    assert hidden is None


async def test_what_was_said_before_an_event_rises_before_and_what_was_said_after_it_after(
    application: Application,
) -> None:
    await tell(
        application,
        ("2026-01-10", "The password of the router is heron"),
        ("2026-02-10", "Finally the launch of the ferry, what a day"),
        ("2026-03-10", "The password of the router is osprey"),
    )

    before = await ask(application, "What was the password of the router before the launch of the ferry?")
    after = await ask(application, "What was the password of the router after the launch of the ferry?")

    raised = [
        {hit["content"] for hit in found["results"] if "beside_event" in hit["explain"]["session_context"]["raw"]}
        for found in (before, after)
    ]
    assert before["time"]["kind"] == "before_event"
    assert raised == [{"The password of the router is heron"}, {"The password of the router is osprey"}]


async def test_an_answer_about_yesterday_is_not_served_a_day_later(application: Application) -> None:
    await tell(application, *LUNCHES)
    question = {"query": "What was for lunch with Bob yesterday?", "tiers": ["sessions"], "time": "filter"}

    found = [
        contents((await application.client().post("/v1/search", json={**question, "as_of": now})).json())
        for now in ("2026-05-13T12:00:00Z", "2026-05-14T12:00:00Z", "2026-05-13T13:00:00Z")
    ]

    rice, soup = ["Had rice for lunch with Bob"], ["Had soup for lunch with Bob"]
    assert found == [rice, soup, rice]
