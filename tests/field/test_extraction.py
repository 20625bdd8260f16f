"""Field cases 7, 8 and 62: what turns teach, and what they must not teach twice."""

from typing import Any

import psycopg

from tests.support.application import Application


async def say(app: Application, *contents: str, name: str | None = "Ann") -> dict[str, Any]:
    messages = [{"content": content, "name": name} for content in contents]
    if name is None:
        messages = [{"content": content} for content in contents]
    answer = await app.client().post("/v1/turns", json={"session": "s1", "user": "ann", "messages": messages})
    assert answer.is_success, answer.text
    return dict(answer.json())


def rows(app: Application, query: str) -> list[tuple[Any, ...]]:
    with psycopg.connect(app.url) as connection:
        return connection.execute(query.encode(), (app.tenant,)).fetchall()


EDGES = """
SELECT f.name, e.type, t.name FROM edges e JOIN entities f ON f.id = e.from_id JOIN entities t ON t.id = e.to_id
WHERE e.tenant = %s ORDER BY 1, 2, 3
"""
COUNTS = """
SELECT (SELECT count(*) FROM notes WHERE tenant = t.id), (SELECT count(*) FROM entities WHERE tenant = t.id),
       (SELECT count(*) FROM edges WHERE tenant = t.id), (SELECT max(version) FROM profiles WHERE tenant = t.id)
FROM (SELECT %s::text AS id) t
"""


async def test_a_change_of_job_is_told_beside_the_old_job(application: Application) -> None:
    await say(application, "I work at Initech.")
    await say(application, "I left Initech, joined Hooli.")

    assert rows(application, EDGES) == [
        ("Ann", "joined", "Hooli"),
        ("Ann", "left", "Initech"),
        ("Ann", "works_at", "Initech"),
    ]


async def test_ann_and_annapolis_are_two_and_three_spellings_of_zoe_one(application: Application) -> None:
    await say(application, "Today Zoë came with Ann.", "Then Zoe\u0308 saw Annapolis.", "I asked ZOË.", name=None)

    names = [name for (name,) in rows(application, "SELECT name FROM entities WHERE tenant = %s ORDER BY name")]
    assert names == ["Ann", "Annapolis", "Zoë"]


async def test_the_recalled_block_said_again_stores_nothing_new(application: Application) -> None:
    await say(application, "I work at Initech. I prefer tea.", "Bob met Eve. We chose Rust.")
    await application.client().post("/v1/notes", json={"content": "My name is Ann.\n\nI live in Graz.", "user": "ann"})
    await application.indexed()
    before = rows(application, COUNTS)

    block = (await application.client().post("/v1/context", json={"query": "tea Rust Graz", "user": "ann"})).json()
    said = await say(application, block["text"], f"Thanks:\n\n{block['text']}", name=None)

    assert "[Memory: " in block["text"]
    assert "[Profile: " in block["text"]
    assert said["notes"] == []
    assert said["profile_version"] is None
    assert rows(application, COUNTS) == before
