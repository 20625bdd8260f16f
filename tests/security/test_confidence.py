"""Confidence that no claimed name raises, and the own word before that of others."""

from collections.abc import Awaitable, Callable
from typing import Any

import httpx
import psycopg
import pytest

from lamina.core.memories import Message, Role, new_id
from lamina.core.principals import KeyRole
from lamina.extraction.rules import extract_by_rules
from lamina.policies.ranking.procedure_matching import MOST_REPORTS, strength, weighed_counts
from tests.support.application import Application

CROWD = 40
TEXTS = (
    "Ann works at Initech.",
    "We met Ann, and Ann works at Initech.",
    "Ann works at Initech. The office is in the old harbour.",
    "As everybody knows by now: Ann works at Initech.",
    "Ann works at Initech, on the third floor.",
)
FACT = {"subject": "Ann", "type": "works_at", "object": "Initech"}
Way = Callable[[httpx.AsyncClient, int], Awaitable[httpx.Response]]


async def turn(client: httpx.AsyncClient, number: int) -> httpx.Response:
    message = {"role": "user", "name": f"Agent {chr(65 + number)}", "content": TEXTS[number]}
    body = {"session": f"s{number}", "agent": f"agent {number}", "messages": [message]}
    return await client.post("/v1/turns", json=body)


async def note(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post("/v1/notes", json={"content": TEXTS[number], "agent": f"agent {number}"})


async def note_of_a_source(client: httpx.AsyncClient, number: int) -> httpx.Response:
    body = {"content": TEXTS[number], "agent": f"agent {number}", "source": f"the files of agent {number}"}
    return await client.post("/v1/notes", json=body)


async def batch(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post("/v1/notes/batch", json={"notes": list(TEXTS[: number + 1])})


async def changed_note(client: httpx.AsyncClient, number: int) -> httpx.Response:
    made = await client.post("/v1/notes", json={"content": f"Number {number} is to be written."})
    return await client.patch(f"/v1/notes/{made.json()['id']}", json={"content": TEXTS[number]})


async def note_written_anew(client: httpx.AsyncClient, number: int) -> httpx.Response:
    known = (await client.get("/v1/notes")).json()["notes"]
    answer = await note(client, number)
    for item in known:
        await client.delete(f"/v1/notes/{item['id']}")
    return answer


async def document(client: httpx.AsyncClient, number: int) -> httpx.Response:
    body = {"content": TEXTS[number], "title": "Initech", "source": f"page {number}", "agent": f"agent {number}"}
    return await client.post("/v1/documents", json=body)


async def same_note(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post("/v1/notes", json={"content": TEXTS[0], "agent": f"agent {number}"})


async def edge(client: httpx.AsyncClient, number: int) -> httpx.Response:
    return await client.post("/v1/graph/edges", json={"edges": [FACT], "agent": f"agent {number}"})


async def edge_of_a_source(client: httpx.AsyncClient, number: int) -> httpx.Response:
    fact = {**FACT, "source": f"agent {number}"}
    return await client.post("/v1/graph/edges", json={"edges": [fact], "agent": f"agent {number}"})


WAYS: tuple[Way, ...] = (
    turn,
    note,
    note_of_a_source,
    batch,
    changed_note,
    note_written_anew,
    same_note,
    document,
    edge,
    edge_of_a_source,
)


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
    """The confidence of each edge and its strength, and the confidence of the entity that all repeat."""
    with psycopg.connect(application.url) as connection:
        rows = connection.execute(
            """SELECT s.name || ' ' || e.type || ' ' || o.name || figure, value
               FROM edges e JOIN entities s ON s.id = e.from_id JOIN entities o ON o.id = e.to_id
               CROSS JOIN LATERAL (VALUES ('', e.confidence), (' strength', e.strength)) AS f (figure, value)
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


async def bound_to(application: Application, *agents: str) -> httpx.AsyncClient:
    admin = application.admin()
    made = await admin.post("/v1/keys", json={"name": "agents", "role": "writer", "agents": agents})
    assert made.status_code == 201, made.text
    return application.client(made.json()["key"])


@pytest.mark.parametrize("way", WAYS, ids=[way.__name__ for way in WAYS])
@pytest.mark.parametrize("role", [KeyRole.WRITER, KeyRole.ADMIN])
async def test_one_key_is_one_witness_whatever_it_claims(application: Application, way: Way, role: KeyRole) -> None:
    client = application.client(application.new_key(application.tenant, role))
    assert (await way(client, 0)).is_success
    first = stored(application)

    for number in range(1, len(TEXTS)):
        assert (await way(client, number)).is_success

    again = stored(application)
    assert first
    assert {name: again[name] for name in first} == first


@pytest.mark.parametrize("way", [turn, note, note_of_a_source, same_note, edge, edge_of_a_source])
async def test_two_keys_are_two_witnesses(application: Application, way: Way) -> None:
    assert (await way(application.client(), 0)).is_success
    first = stored(application)

    other = application.client(application.new_key(application.tenant))
    for number in (1, 2):
        assert (await way(other, number)).is_success

    again = stored(application)
    own = 1 - first["Ann works_at Initech"]
    assert again["Ann works_at Initech"] == pytest.approx(1 - own**2)
    assert again["Ann works_at Initech strength"] == first["Ann works_at Initech strength"]
    assert again["Initech"] > first["Initech"] or way in (edge, edge_of_a_source)


async def test_a_key_that_is_bound_to_agents_is_as_many_witnesses_and_an_agent_with_two_keys_is_one(
    application: Application,
) -> None:
    gateway = await bound_to(application, *(f"agent {number}" for number in range(3)))
    alone = await bound_to(application, "agent 2")
    found = []
    for client, number in ((gateway, 0), (gateway, 1), (gateway, 0), (alone, 2), (gateway, 2)):
        answer = await edge(client, number)
        assert answer.is_success, answer.text
        found.append(stored(application)["Ann works_at Initech"])

    assert found == pytest.approx([0.9, 0.99, 0.99, 0.99, 0.99], abs=1e-6)
    with psycopg.connect(application.url) as connection:
        rows = connection.execute(
            "SELECT DISTINCT witness FROM edge_evidence v JOIN edges e ON e.id = v.edge_id WHERE e.tenant = %s",
            [application.tenant],
        )
        assert {row[0] for row in rows} == {"agent:agent 0", "agent:agent 1", "agent:agent 2"}


async def test_a_strength_is_the_mean_of_the_witnesses_and_the_surer_one_weighs_more(application: Application) -> None:
    async def say(client: httpx.AsyncClient, strength: float, confidence: float) -> float:
        fact = {**FACT, "strength": strength, "confidence": confidence}
        assert (await client.post("/v1/graph/edges", json={"edges": [fact]})).is_success
        return stored(application)["Ann works_at Initech strength"]

    one, other = application.client(), application.client(application.new_key(application.tenant))

    assert await say(one, 0.4, 0.9) == 0.4
    assert await say(other, 1.0, 0.3) == pytest.approx((0.4 * 0.9 + 1.0 * 0.3) / 1.2)
    for _ in range(5):
        raised = await say(other, 1.0, 0.3)
    assert raised == pytest.approx((0.4 * 0.9 + 1.0 * 0.3) / 1.2)


async def test_what_was_stored_before_counts_by_its_sources(application: Application) -> None:
    client = application.client()
    for number in range(2):
        fact = {**FACT, "source": f"file {number}", "confidence": 0.5, "strength": 0.4 + number / 10}
        assert (await client.post("/v1/graph/edges", json={"edges": [fact]})).is_success
    with psycopg.connect(application.url) as connection:
        connection.execute(
            "UPDATE edge_evidence v SET witness = NULL FROM edges e WHERE e.id = v.edge_id AND e.tenant = %s",
            [application.tenant],
        )

    known = []
    for source in ("file 0", "file 2", "file 3"):
        fact = {**FACT, "source": source, "confidence": 0.5, "strength": 0.4}
        assert (await client.post("/v1/graph/edges", json={"edges": [fact]})).is_success
        known.append(stored(application)["Ann works_at Initech"])

    assert known == pytest.approx([0.75, 0.875, 0.875])


def test_a_hundred_reports_of_one_witness_weigh_as_twenty() -> None:
    assert weighed_counts(3, 1, [(3, 1)]) == (3, 1)
    assert weighed_counts(MOST_REPORTS, 0, [(MOST_REPORTS, 0)]) == (MOST_REPORTS, 0)
    assert weighed_counts(100, 0, [(100, 0)]) == pytest.approx((20, 0))
    assert weighed_counts(75, 25, [(75, 25)]) == pytest.approx((15, 5))
    assert weighed_counts(110, 2, [(100, 0), (10, 2)]) == pytest.approx((30, 2))
    assert weighed_counts(500, 100, []) == (500, 100)
    assert weighed_counts(600, 100, [(100, 0)]) == pytest.approx((520, 100))


async def test_one_key_does_not_drown_the_reports_of_the_others(application: Application) -> None:
    client = application.client()
    id_ = (await client.post("/v1/procedures", json={"trigger": "Deploy", "action": "Run it"})).json()["id"]

    async def report(reporter: httpx.AsyncClient, *, succeeded: bool, **fields: Any) -> dict[str, Any]:
        answer = await reporter.post(f"/v1/procedures/{id_}/outcomes", json={"succeeded": succeeded, **fields})
        assert answer.status_code == 200, answer.text
        return dict(answer.json())

    for number in range(60):
        told = await report(client, succeeded=True, run=f"run {number}", agent=f"agent {number}")
    await report(client, succeeded=True, run="run 59")
    for _ in range(10):
        other = await report(application.client(application.new_key(application.tenant)), succeeded=False)

    assert (told["successes"], told["strength"]) == (60, pytest.approx(strength(20, 0)))
    assert (other["successes"], other["failures"]) == (60, 10)
    assert other["strength"] == pytest.approx(strength(20, 10))
    gateway = await bound_to(application, "agent 1", "agent 2")
    for number in range(60):
        most = await report(gateway, succeeded=False, agent=f"agent {number % 2 + 1}")
    assert most["strength"] == pytest.approx(strength(20, 10 + 2 * 20))
    read = (await client.get(f"/v1/procedures/{id_}")).json()
    assert (read["successes"], read["failures"], read["strength"]) == (60, 70, most["strength"])


async def test_reports_of_before_count_each(application: Application) -> None:
    client = application.client()
    id_ = (await client.post("/v1/procedures", json={"trigger": "Deploy", "action": "Run it"})).json()["id"]
    with psycopg.connect(application.url) as connection:
        connection.execute("UPDATE procedures SET successes = 300, failures = 10 WHERE id = %s", [id_])

    told = (await client.post(f"/v1/procedures/{id_}/outcomes", json={"succeeded": False})).json()

    assert told["strength"] == pytest.approx(strength(300, 11))


async def test_a_note_that_others_write_again_brings_no_retracted_edge_back(application: Application) -> None:
    client, other = application.client(), application.client(application.new_key(application.tenant))
    await same_note(client, 0)
    await application.indexed()
    params = {"name": "Ann", "kind": "works_at"}
    with psycopg.connect(application.url) as connection:
        (found,) = connection.execute("SELECT id FROM edges WHERE tenant = %s", [application.tenant]).fetchall()
    assert (await client.delete(f"/v1/graph/edges/{found[0]}")).status_code == 204

    await same_note(other, 0)
    await application.indexed()

    assert "Ann works_at Initech" not in stored(application)
    assert (await client.get("/v1/graph/neighbours", params=params)).json()["neighbours"] == []


async def test_with_a_note_goes_what_its_witnesses_said(application: Application) -> None:
    clients = [application.client(application.new_key(application.tenant)) for _ in range(3)]
    kept = (await note(clients[0], 1)).json()["id"]
    ids = {(await same_note(client, 0)).json()["id"] for client in clients}
    before = stored(application)["Ann works_at Initech"]

    for id_ in ids - {kept}:
        assert (await clients[0].delete(f"/v1/notes/{id_}")).status_code == 204

    assert len(ids) == 1
    assert before > stored(application)["Ann works_at Initech"] == 0.7


@pytest.mark.parametrize("as_batch", [False, True])
async def test_one_key_raises_the_importance_of_a_note_once_however_often_it_says_it_again(
    semantic: Application, as_batch: bool
) -> None:
    again = ["I enjoy green tea", "I love green tea", "I really like green tea"] * 5
    client = semantic.client()
    await client.post("/v1/notes", json={"content": "I like green tea", "importance": 0.5})

    if as_batch:
        assert (await client.post("/v1/notes/batch", json={"notes": again})).is_success
    else:
        for number, text in enumerate(again):
            assert (await client.post("/v1/notes", json={"content": text, "agent": f"agent {number}"})).is_success
    after_one = await importance_of_the_only_note(semantic)
    for number in range(3):
        other = semantic.client(semantic.new_key(semantic.tenant))
        await other.post("/v1/notes", json={"content": again[number]})

    assert after_one == pytest.approx(0.55)
    assert await importance_of_the_only_note(semantic) == pytest.approx(1 - 0.5 * 0.9**4)


async def test_what_a_key_states_itself_of_a_note_counts_as_stated(semantic: Application) -> None:
    client = semantic.client()
    for importance in (0.5, 0.5, 0.7, 0.6):
        text = "I like green tea" if importance == 0.5 else "I love green tea"
        await client.post("/v1/notes", json={"content": text, "importance": importance})
    await client.post("/v1/notes", json={"content": "I enjoy green tea", "importance": 0.9})

    assert await importance_of_the_only_note(semantic) == pytest.approx(0.9)


async def importance_of_the_only_note(app: Application) -> float:
    (note,) = (await app.client().get("/v1/notes")).json()["notes"]
    return float(note["importance"])
