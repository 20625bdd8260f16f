"""Confidence that no claimed name raises, and the own word before that of others."""

import psycopg
import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.extraction.rules import extract_by_rules
from tests.support.application import Application

CROWD = 40


def confidences(*said: tuple[str | None, str]) -> dict[str, float]:
    messages = [Message(Role.USER, text, name=name) for name, text in said]
    edges = extract_by_rules(messages, [new_id() for _ in messages]).edges
    return {f"{edge.subject} {edge.type} {edge.object}": edge.confidence for edge in edges}


@pytest.mark.parametrize("others", ["Ann lives in Paris.", "Ann is based in Paris.", "I met Bob. Ann lives in Paris."])
def test_what_others_say_of_a_person_weighs_less_than_the_own_word(others: str) -> None:
    found = confidences(("Ben", others), ("Ann", "I live in Oslo."))

    assert found["Ann lives_in Paris"] < found["Ann lives_in Oslo"]


@pytest.mark.parametrize("order", [1, -1])
def test_the_own_word_counts_in_full_whoever_says_the_same(order: int) -> None:
    said = [("Ann", "I live in Oslo."), ("Ben", "Ann lives in Oslo.")]

    assert confidences(*said[::order]) == confidences(("Ann", "I live in Oslo."))


@pytest.mark.parametrize(
    ("speaker", "text"),
    [
        ("Ann", "Ann lives in Paris."),
        ("Ann Lee", "Ann lives in Paris."),
        ("ANN", "Ann lives in Paris."),
        ("Ben", "I live in Paris."),
        ("Ben", "Ann met Ben."),
        ("user", "Ann lives in Paris."),
        (None, "Ann lives in Paris."),
        ("Ben", "Orion uses Rust."),
    ],
)
def test_only_somebody_else_who_is_named_weighs_less(speaker: str | None, text: str) -> None:
    assert set(confidences((speaker, text)).values()) == {0.7}


def stored(application: Application) -> dict[str, float]:
    """The confidence of each edge, and of the entity that all repeat."""
    with psycopg.connect(application.url) as connection:
        rows = connection.execute(
            """SELECT s.name || ' ' || e.type || ' ' || o.name, e.confidence
               FROM edges e JOIN entities s ON s.id = e.from_id JOIN entities o ON o.id = e.to_id
               WHERE e.tenant = %(tenant)s
               UNION ALL
               SELECT name, confidence FROM entities WHERE tenant = %(tenant)s AND name = 'Initech'""",
            {"tenant": application.tenant},
        )
        return {name: round(confidence, 6) for name, confidence in rows}


async def test_a_statement_under_many_names_is_one_source(application: Application) -> None:
    client = application.client()

    async def say(session: str, names: list[str]) -> None:
        messages = [{"role": "user", "name": name, "content": "Ann works at Initech."} for name in names]
        answer = await client.post("/v1/turns", json={"session": session, "messages": messages})
        assert answer.status_code == 200, answer.text

    async def note(agent: str) -> None:
        answer = await client.post("/v1/notes", json={"content": "Ann works at Initech.", "agent": agent})
        assert answer.status_code in (200, 201), answer.text

    await say("one", ["Ben"])
    await note("planner")
    before = stored(application)
    await say("two", [f"Agent {chr(65 + number % 26)}{number}" for number in range(CROWD)])
    for number in range(3):
        await say(f"alone {number}", [f"Somebody {number}"])
    for number in range(3):
        await note(f"agent {number}")

    known = stored(application)
    assert {name: known[name] for name in before} == before


async def test_a_crowd_does_not_outrank_the_own_word_or_write_the_profile(application: Application) -> None:
    client = application.client()

    async def say(name: str, *texts: str) -> None:
        messages = [{"role": "user", "name": name, "content": text} for text in texts]
        answer = await client.post("/v1/turns", json={"user": "ann", "session": name, "messages": messages})
        assert answer.status_code == 200, answer.text

    await say("Ann", "My name is Ann. I live in Oslo.")
    own = (await client.get("/v1/profile", params={"user": "ann"})).json()
    for name in ("Ben", "Eve", "Bob"):
        await say(name, "Ann lives in Paris.")

    found = stored(application)
    assert found["Ann lives_in Oslo"] > found["Ann lives_in Paris"]
    assert (await client.get("/v1/profile", params={"user": "ann"})).json()["document"] == own["document"]
