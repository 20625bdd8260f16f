"""Messages ranked with those around them, over real stores."""

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import numpy as np
import pytest

from lamina.core.queries import Query
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.messages import MessagesSearch
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


@pytest.mark.parametrize(
    ("question", "similarities", "found"),
    [
        ("What does the build run on?", (0.9, 0.15), 2),
        ("What does the build run on?", (0.9, 0.05), 1),
        ("What did the build run on?", (0.9, 0.15), 1),
        ("What the build runs on", (0.9, 0.15), 1),
        ("What does the build run on?", (0.2, 0.15), 0),
    ],
)
async def test_a_question_about_the_present_has_less_similar_statements_compared_if_one_is_near(
    application: Application, question: str, similarities: tuple[float, float], found: int
) -> None:
    ids = await say(application, "Our pipelines are on Jenkins", "Purple elephants dance quietly under moons")
    vectors, generation = await stored_vectors(application, ids)
    scope = Scope(application.tenant, "default")
    asked = vector_of_cosines(vectors, similarities)
    query = Query(question, (), scope, 10, embedding=asked.tobytes(), generation=generation)

    messages = await MessagesSearch(application.pool, min_similarity=0.25, reach=3).find(query, ())

    assert [str(hit.memory.id) for hit in messages.nearest] == ids[:found]


async def stored_vectors(app: Application, ids: list[str]) -> tuple[np.ndarray[Any, np.dtype[np.float64]], int]:
    """Return the vectors of messages, in the order of their ids, and their generation."""
    async with connect(app.pool) as connection:
        rows = await connection.execute(
            "SELECT message_id, embedding::float4[] AS vector, generation FROM message_chunks "
            "WHERE message_id = ANY(%s)",
            [[UUID(id_) for id_ in ids]],
        )
        found = {str(row["message_id"]): row async for row in rows}
    return np.array([found[id_]["vector"] for id_ in ids], float), found[ids[0]]["generation"]


def vector_of_cosines(
    vectors: np.ndarray[Any, np.dtype[np.float64]], cosines: tuple[float, ...]
) -> np.ndarray[Any, np.dtype[np.float32]]:
    """Return a unit vector with the given cosine to each of some unit vectors."""
    base = np.linalg.lstsq(vectors, np.array(cosines), rcond=None)[0]
    apart = np.linalg.svd(vectors)[2][-1]
    vector: np.ndarray[Any, np.dtype[np.float32]] = (base + np.sqrt(1 - base @ base) * apart).astype(np.float32)
    return vector
