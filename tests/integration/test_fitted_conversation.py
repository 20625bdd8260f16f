"""Messages ranked with those around them, over real stores."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.support.application import Application

NOON = datetime(2026, 1, 15, 12, tzinfo=UTC)
ASKED = "where is the telescope of the observatory"
QUESTION = "Where did you put the telescope of the observatory?"
ANSWER = "Up in our loft, behind some suitcases"
FILLERS = [f"Number {place}, a dull remark about nothing much" for place in range(12)]

Json = dict[str, Any]


async def say(app: Application, *contents: str, session: str = "s", first: int = 0, **ids: Any) -> list[str]:
    messages = [
        {
            "content": content,
            "ref": f"{session}-{place}",
            "occurred_at": (NOON + timedelta(minutes=place)).isoformat(),
        }
        for place, content in enumerate(contents, start=first)
    ]
    answer = await app.client().post("/v1/turns", json={"session": session, "messages": messages, **ids})
    assert answer.status_code == 200, answer.text
    await app.indexed()
    return [item["id"] for item in answer.json()["messages"]]


async def search(app: Application, **options: Any) -> list[Json]:
    asked = {"query": ASKED, "tiers": ["sessions"], "explain": True, "cache": False, "limit": 10, **options}
    answer = await app.client().post("/v1/search", json=asked)
    assert answer.status_code == 200, answer.text
    return list(answer.json()["results"])


def contents(hits: list[Json]) -> list[str]:
    return [hit["content"] for hit in hits]


async def test_an_answer_that_shares_no_word_is_found_by_the_question_before_it(application: Application) -> None:
    await say(application, *FILLERS, QUESTION, ANSWER, *FILLERS[:4])

    found = await search(application)

    assert ANSWER in contents(found)[:2]
    assert FILLERS[6] not in contents(found)


async def test_a_hit_explains_its_strongest_signals(application: Application) -> None:
    await say(application, *FILLERS, QUESTION, ANSWER)

    answer = next(hit for hit in await search(application) if hit["content"] == ANSWER)

    raw = answer["explain"]["session_context"]["raw"]
    assert raw.keys() > {"cosine"}
    assert len([name for name in raw if name.startswith("signal_")]) == 5


async def test_what_stands_beside_the_question_of_another_user_is_neither_raised_nor_found(
    application: Application,
) -> None:
    await say(application, *FILLERS[:3])
    await say(application, QUESTION, user="bob", first=20)
    await say(application, ANSWER, user="ann", first=21)

    of_ann, of_bob = await search(application, user="ann"), await search(application, user="bob")

    assert QUESTION not in contents(of_ann)
    assert ANSWER not in contents(of_ann)
    assert contents(of_bob)[0] == QUESTION
    assert ANSWER not in contents(of_bob)


async def test_a_deleted_neighbour_counts_no_more_though_it_was_just_read(application: Application) -> None:
    ids = await say(application, *FILLERS, QUESTION, ANSWER)
    before = await search(application)

    deleted = await application.client().delete(f"/v1/messages/{ids[-2]}")
    await application.indexed()
    after = await search(application)

    assert deleted.is_success
    assert ANSWER in contents(before)
    assert not {QUESTION, ANSWER} & set(contents(after))


async def test_what_was_said_after_the_moment_asked_about_is_no_neighbour(application: Application) -> None:
    await say(application, *FILLERS, QUESTION, ANSWER)

    found = await search(application, as_of=(NOON + timedelta(minutes=len(FILLERS))).isoformat())

    assert QUESTION in contents(found)
    assert ANSWER not in contents(found)


@pytest.mark.parametrize(
    ("question", "before", "answer"),
    [
        ("你的望远镜放在哪里了", "你把望远镜放在哪里了", "阁楼的箱子后面"),
        ("กล้องดูดาวอยู่ที่ไหน", "เธอเก็บกล้องดูดาวไว้ที่ไหน", "บนห้องใต้หลังคา"),
        (
            "Wo ist das Teleskop der Sternwarte",
            "Wohin hast du das Teleskop der Sternwarte gestellt?",
            "Auf den Dachboden",
        ),
    ],
)
async def test_neighbours_help_in_any_script(application: Application, question: str, before: str, answer: str) -> None:
    await say(application, *FILLERS, before, answer)

    found = contents(await search(application, query=question))

    assert found[0] == before
    assert answer in found
