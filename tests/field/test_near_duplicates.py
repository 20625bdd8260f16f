"""Field cases 5, 6, 7, 10 and 37: notes that say the same, and notes that only look as if they did."""

import asyncio
from typing import Any

import pytest

from tests.support.application import Application


async def put(app: Application, content: str, **more: Any) -> dict[str, Any]:
    answer = await app.client().post("/v1/notes", json={"content": content, "user": "ann", **more})
    assert answer.is_success, answer.text
    return dict(answer.json())


async def shared(app: Application, content: str) -> dict[str, Any]:
    return dict((await app.client().post("/v1/notes", json={"content": content})).json())


async def stored(app: Application, user: str = "ann") -> dict[str, float]:
    """The user's notes with their importance."""
    answer = await app.client().get("/v1/notes", params={"user": user, "limit": 100})
    return {note["content"]: note["importance"] for note in answer.json()["notes"] if note["user"] == user}


async def test_a_note_in_other_words_raises_the_first_one_and_is_not_added(semantic: Application) -> None:
    first = await put(semantic, "The deploy failed because of DNS", importance=0.5)
    second = await put(semantic, "The deployment failed because of DNS", importance=0.6)

    (content, importance), *others = (await stored(semantic)).items()
    assert (first["existed"], first["merged"]) == (False, False)
    assert second == {"id": first["id"], "existed": True, "merged": True, "difference": "synonyms"}
    assert (content, others) == ("The deploy failed because of DNS", [])
    assert importance > 0.6


async def test_the_raised_importance_reaches_the_index(semantic: Application) -> None:
    await put(semantic, "The deploy failed because of DNS", importance=0.5)
    await semantic.indexed()
    await put(semantic, "The deployment failed because of DNS", importance=0.9)
    await semantic.indexed()

    filters = {"importance": {"gte": 0.9}}
    body = {"query": "why did the deploy fail", "user": "ann", "filters": filters, "explain": True}
    answer = (await semantic.client().post("/v1/search", json=body)).json()

    assert [hit["content"] for hit in answer["results"]] == ["The deploy failed because of DNS"]
    assert "notes_hybrid" in answer["results"][0]["explain"]


@pytest.mark.parametrize(
    "texts",
    [
        ("vegetarian, plays basketball", "vegetarian", "plays basketball on Tuesdays"),
        ("Budget is 1,500 EUR", "Budget is 15,000 EUR"),
        ("eats nuts", "does not eat nuts"),
        ("lives in Graz", "lives in Linz"),
        ("works at Initech", "left Initech, joined Hooli"),
        ("Works there for 5 years", "Works there for 6 years"),
        ("30-minute meeting every day", "45-minute meeting every day"),
        ("Ann manages Bob", "Bob manages Ann"),
        ("The customer prefers email over phone", "The customer prefers phone over email"),
    ],
)
@pytest.mark.parametrize("together", [True, False])
async def test_notes_that_differ_in_what_matters_are_all_kept(
    semantic: Application, texts: tuple[str, ...], *, together: bool
) -> None:
    if together:
        await semantic.client().post("/v1/notes/batch", json={"user": "ann", "notes": list(texts)})
    else:
        for text in texts:
            await put(semantic, text)

    assert set(await stored(semantic)) == set(texts)


async def test_a_later_fact_survives_the_earlier_one_and_is_found(semantic: Application) -> None:
    await put(semantic, "works at Initech")
    await put(semantic, "left Initech, joined Hooli")
    await semantic.indexed()

    body = {"query": "which company did they join after Initech", "user": "ann"}
    answer = (await semantic.client().post("/v1/search", json=body)).json()

    assert "left Initech, joined Hooli" in [hit["content"] for hit in answer["results"]]


async def test_the_same_in_other_words_within_one_batch_is_one(semantic: Application) -> None:
    texts = ["I like green tea.", "I enjoy green tea.", "I like green tea.", "Rust is fast"]

    answer = (await semantic.client().post("/v1/notes/batch", json={"user": "ann", "notes": texts})).json()

    statuses = [result["status"] for result in answer["results"]]
    ids = [result["id"] for result in answer["results"]]
    assert statuses == ["created", "existed", "existed", "created"]
    assert ids[0] == ids[1] == ids[2] != ids[3]
    assert set(await stored(semantic)) == {"I like green tea.", "Rust is fast"}
    assert (await stored(semantic))["I like green tea."] > 0.5


async def test_nothing_is_merged_by_way_of_a_third(semantic: Application) -> None:
    # Each is near the next; the raised one is always the original, and its text stays as it was.
    await put(semantic, "I like green tea.")
    for text in ("I really like green tea.", "I enjoy green tea.", "I love green tea."):
        assert (await put(semantic, text))["existed"]

    assert set(await stored(semantic)) == {"I like green tea."}


async def test_adding_a_text_in_other_words_again_and_again_never_removes_it(semantic: Application) -> None:
    ids = {
        (await put(semantic, text))["id"]
        for text in ("I like green tea", "I enjoy green tea", "I like green tea", "I love green tea")
    }

    importance = (await stored(semantic))["I like green tea"]
    assert len(ids) == 1
    assert 0.5 < importance <= 1


async def test_another_user_another_workspace_and_nobody_keep_theirs(semantic: Application) -> None:
    first = await put(semantic, "I like green tea.")
    others = [
        await put(semantic, "I enjoy green tea.", user="bob"),
        await shared(semantic, "I enjoy green tea."),
        await put(semantic, "I enjoy green tea.", workspace="other"),
        await put(semantic, "I enjoy green tea.", namespace="other"),
    ]

    assert not any(other["existed"] for other in others)
    assert len({first["id"], *(other["id"] for other in others)}) == 5


@pytest.mark.parametrize("more", [{"tags": ["drinks"]}, {"metadata": {"ticket": 7}}])
async def test_a_note_whose_tags_or_metadata_would_be_lost_is_added(
    semantic: Application, more: dict[str, Any]
) -> None:
    await put(semantic, "I like green tea.", tags=["tea"])

    added = await put(semantic, "I enjoy green tea.", **more)
    again = await put(semantic, "I love green tea.", tags=["tea"])

    assert not added["existed"]
    assert again["merged"]


async def test_a_source_that_is_repeated_raises_nothing(semantic: Application) -> None:
    await put(semantic, "The deploy failed because of DNS", source="incident 7", importance=0.5)

    for _ in range(5):
        await put(semantic, "The deployment failed because of DNS", source="incident 7", importance=0.5)

    assert await stored(semantic) == {"The deploy failed because of DNS": 0.5}


async def test_a_deleted_note_is_not_raised_but_told_anew(semantic: Application) -> None:
    first = await put(semantic, "I like green tea.")
    await semantic.client().delete(f"/v1/notes/{first['id']}")

    second = await put(semantic, "I enjoy green tea.")

    assert not second["existed"]
    assert set(await stored(semantic)) == {"I enjoy green tea."}


async def test_extracted_notes_that_say_the_same_are_one_and_another_speakers_are_not(semantic: Application) -> None:
    client = semantic.client()
    for name, text in (("Ann", "I like green tea."), ("Ann", "I enjoy green tea."), ("Bob", "I love green tea.")):
        message = {"content": text, "name": name}
        answer = await client.post("/v1/turns", json={"session": "s1", "user": "ann", "messages": [message]})
        assert answer.is_success

    assert set(await stored(semantic)) == {"I like green tea.", "I love green tea."}


@pytest.mark.parametrize("change", [{"content": "Works there for 6 years"}, {"tags": ["job"]}])
async def test_a_small_change_of_a_note_is_stored_and_indexed(semantic: Application, change: dict[str, Any]) -> None:
    first = await put(semantic, "Works there for 5 years")
    await semantic.indexed()

    changed = await semantic.client().patch(f"/v1/notes/{first['id']}", json=change)
    await semantic.indexed()

    body = {"query": "how many years", "user": "ann", "tags": change.get("tags", [])}
    answer = (await semantic.client().post("/v1/search", json=body)).json()
    assert changed.is_success
    assert [hit["content"] for hit in answer["results"]] == [change.get("content", "Works there for 5 years")]


async def test_parallel_writers_of_near_duplicates_all_succeed_and_exact_ones_are_one(semantic: Application) -> None:
    texts = ["I like green tea.", "I enjoy green tea.", "I love green tea.", "Rust is fast"] * 4

    results = await asyncio.gather(*(put(semantic, text) for text in texts))

    kept = await stored(semantic)
    assert len({result["id"] for result in results}) == len(kept) <= 4
    assert "Rust is fast" in kept
