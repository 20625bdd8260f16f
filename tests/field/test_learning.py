"""Procedures that runs of agents teach: proposed, not found before they are active, dropped, erased with their user."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import httpx
import psycopg
import pytest

from lamina.core.areas import Area
from lamina.core.runs import Order, Run, RunCounts, RunState
from lamina.errors import Unavailable
from lamina.maintenance.driver import Driver
from lamina.maintenance.learning import LearningJob
from lamina.maintenance.row_writer import RowWriter
from lamina.models.batching import BatchingEmbedder
from lamina.stores.postgres.connection import Connection, in_transaction
from lamina.wiring.jobs import build_job
from tests.support.application import Application
from tests.support.embedders import Refusing
from tests.support.jobs import driver_of, run_job, tools_of

ASKED = "Please cancel the booking of my flight"
TOOLS = ("find_booking", "check_rules", "cancel_booking")


async def run(
    client: httpx.AsyncClient,
    session: str,
    *,
    succeeded: bool = True,
    said: str = ASKED,
    tools: tuple[str, ...] = TOOLS,
    **scope: Any,
) -> None:
    """Record a run in three turns: the question with its first tool, the other tools, the outcome."""
    place = {"session": session, **scope}
    calls = [{"name": name, "arguments": {"n": number}} for number, name in enumerate(tools)]
    for body in (
        {"messages": [{"content": said}], "tool_calls": calls[:1]},
        {"messages": [{"role": "assistant", "content": "It is done"}], "tool_calls": calls[1:]},
        {"messages": [], "outcome": {"succeeded": succeeded}},
    ):
        answer = await client.post("/v1/turns", json={**place, **body})
        assert answer.status_code == 200, answer.text


async def learn(application: Application) -> Run:
    done = await run_job(application, "learning")
    assert (done.state, done.problems) == (RunState.DONE, ())
    return done


async def learnt(client: httpx.AsyncClient, state: str = "proposed") -> list[dict[str, Any]]:
    answer = await client.get("/v1/procedures/learnt", params={"state": state})
    assert answer.status_code == 200, answer.text
    return list(answer.json()["procedures"])


async def matches(client: httpx.AsyncClient, **fields: Any) -> list[str]:
    answer = await client.post("/v1/procedures/match", json={"query": ASKED, **fields})
    assert answer.status_code == 200, answer.text
    return [match["id"] for match in answer.json()["matches"]]


@pytest.fixture
def client(application: Application) -> httpx.AsyncClient:
    return application.client()


async def test_a_run_that_succeeded_is_proposed_with_its_evidence(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1", agent="clerk")
    await learn(application)

    [proposal] = await learnt(client)
    evidence = (await client.get(f"/v1/procedures/{proposal['id']}/evidence")).json()["turns"]
    outcomes = (await client.get(f"/v1/procedures/{proposal['id']}/outcomes")).json()["outcomes"]

    assert proposal["trigger"] == ASKED
    assert proposal["action"] == "1. find_booking\n2. check_rules\n3. cancel_booking"
    assert (proposal["state"], proposal["successes"], proposal["source"]) == ("proposed", 1, "job:learning")
    assert [(turn["session"], turn["agent"], turn["outcome"]["succeeded"]) for turn in evidence] == [
        ("s1", "clerk", True)
    ]
    assert [(outcome["succeeded"], outcome["agent"]) for outcome in outcomes] == [(True, "clerk")]


async def test_a_proposal_is_in_no_search_match_list_or_block_before_it_is_active(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1")
    await learn(application)
    [proposal] = await learnt(client)
    await application.indexed()
    seen = []
    for state in (None, "active", "dropped"):
        if state is not None:
            decided = await client.put(f"/v1/procedures/{proposal['id']}/state", json={"state": state})
            assert decided.json()["state"] == state, decided.text
        asked = {"query": ASKED, "tiers": ["procedures"], "cache": False}
        found = (await client.post("/v1/search", json=asked)).json()["results"]
        block = (await client.post("/v1/context", json=asked)).json()["text"]
        listed = (await client.get("/v1/procedures")).json()["procedures"]
        seen.append((len(found), "check_rules" in block, len(listed), len(await matches(client))))

    assert seen == [(0, False, 0, 0), (1, True, 1, 1), (0, False, 0, 0)]


async def test_a_second_success_activates_and_later_failures_drop(
    application: Application, client: httpx.AsyncClient
) -> None:
    states = []
    for number, succeeded in enumerate((True, True, False, False, True)):
        await run(client, f"s{number}", succeeded=succeeded)
        await learn(application)
        [found] = [item for state in ("proposed", "active", "dropped") for item in await learnt(client, state)]
        states.append((found["state"], found["successes"], found["failures"]))

    assert states == [("proposed", 1, 0), ("active", 2, 0), ("active", 2, 1), ("dropped", 2, 2), ("active", 3, 2)]


async def test_outcomes_that_callers_report_activate_and_drop_too(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1")
    await learn(application)
    [proposal] = await learnt(client)
    path = f"/v1/procedures/{proposal['id']}"

    await client.post(f"{path}/outcomes", json={"succeeded": True})
    active = (await client.get(path)).json()["state"]
    for _ in range(2):
        await client.post(f"{path}/outcomes", json={"succeeded": False})

    assert (active, (await client.get(path)).json()["state"]) == ("active", "dropped")


@pytest.mark.parametrize("state", ["active", "dropped"])
async def test_no_outcome_changes_the_decision_of_a_person(
    application: Application, client: httpx.AsyncClient, state: str
) -> None:
    await run(client, "s1")
    await learn(application)
    [proposal] = await learnt(client)
    await client.put(f"/v1/procedures/{proposal['id']}/state", json={"state": state})

    for number in range(4):
        await run(client, f"t{number}", succeeded=state == "dropped")
    await learn(application)

    assert [item["id"] for item in await learnt(client, state)] == [proposal["id"]]
    assert await learnt(client) == []


async def test_learning_again_and_learning_in_parts_teach_each_run_once(
    application: Application, client: httpx.AsyncClient
) -> None:
    for number in range(3):
        await run(client, f"s{number}")
    for _ in range(3):
        await learn(application)

    [found] = await learnt(client, "active")
    assert (found["successes"], found["failures"]) == (3, 0)


async def test_a_reported_run_of_the_name_of_a_turn_stops_no_learning(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1")
    await learn(application)
    [proposal] = await learnt(client)
    await run(client, "s2")
    async with application.pool.connection() as connection:
        query = "SELECT id FROM agent_turns WHERE tenant = %s AND session_id = 's2' AND succeeded IS NOT NULL"
        [turn] = await (await connection.execute(query, [application.tenant])).fetchall()
    report = {"succeeded": False, "run": f"turn {turn['id']}"}
    reported = await client.post(f"/v1/procedures/{proposal['id']}/outcomes", json=report)
    await run(client, "s3", said="Please order new paper for the printer", tools=("find_shop", "order"))

    await learn(application)
    again = await learn(application)

    assert reported.is_success, reported.text
    known = [item for state in ("proposed", "active", "dropped") for item in await learnt(client, state)]
    found = {item["trigger"]: (item["successes"], item["failures"]) for item in known}
    assert found == {ASKED: (1, 1), "Please order new paper for the printer": (1, 0)}
    assert again.counts.seen == 0


async def test_two_runs_of_one_session_are_two(application: Application, client: httpx.AsyncClient) -> None:
    await run(client, "s")
    await run(client, "s", said="What is the weather in Lima like today?", tools=("read_weather", "tell_forecast"))
    await learn(application)

    assert {item["trigger"] for item in await learnt(client)} == {ASKED, "What is the weather in Lima like today?"}


async def test_failed_runs_propose_nothing(application: Application, client: httpx.AsyncClient) -> None:
    for number in range(3):
        await run(client, f"s{number}", succeeded=False)
    await learn(application)

    assert [await learnt(client, state) for state in ("proposed", "active", "dropped")] == [[], [], []]


async def test_what_one_user_taught_is_found_for_that_user_alone(
    application: Application, client: httpx.AsyncClient
) -> None:
    for number in range(2):
        await run(client, f"s{number}", user="ann")
    await learn(application)

    [found] = await learnt(client, "active")
    assert found["is_private"]
    assert await matches(client, user="ann") == [found["id"]]
    assert await matches(client, user="bob") == await matches(client) == []
    answer = await client.post("/v1/search", json={"query": ASKED, "tiers": ["procedures"], "user": "bob"})
    assert answer.json()["results"] == []


async def test_of_two_users_the_words_of_both_are_shared_and_the_rest_is_not(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "a", user="ann", said=f"{ASKED}, doctor")
    await run(client, "b", user="bob", said=f"{ASKED}, rain")
    await learn(application)

    [found] = await learnt(client, "active")
    assert found["trigger"].startswith(ASKED)
    assert "doctor" not in found["trigger"]
    assert not found["is_private"]
    assert await matches(client, user="carl") == [found["id"]]


async def test_erasing_a_user_removes_what_only_they_taught(unshared: Application) -> None:
    client = unshared.client()
    other = "What is the weather in Lima like today?"
    await run(client, "a", user="ann")
    await run(client, "b", user="bob")
    for number in range(2):
        await run(client, f"c{number}", user="ann", said=other, tools=("read_weather", "tell_forecast"))
    await learn(unshared)
    assert len(await learnt(client, "active")) == 2
    admin = unshared.admin()

    answer = await admin.delete("/v1/users", params={"user": "ann"})
    await learn(unshared)

    assert answer.status_code in {200, 202}, answer.text
    [left] = await learnt(client, "active")
    assert left["trigger"] == ASKED
    evidence = (await client.get(f"/v1/procedures/{left['id']}/evidence")).json()["turns"]
    assert {turn["user"] for turn in evidence} == {"bob"}
    assert await learnt(client) == []


async def test_a_run_whose_user_is_erased_while_it_is_learnt_from_teaches_nothing(unshared: Application) -> None:
    client = unshared.client()
    await run(client, "a", user="ann")
    await run(client, "b", user="bob")
    job = build_job(unshared.settings, unshared.pool, "learning", tools_of(unshared))
    area, now = Area(unshared.tenant, "default", "default"), datetime.now(UTC)
    page = await job.decide(area, None, now)
    admin = unshared.admin()
    await admin.delete("/v1/users", params={"user": "ann"})

    async def act(connection: Connection) -> RunCounts:
        return await job.act(RowWriter(connection, None, now), area, page.plan)

    counts = await in_transaction(unshared.pool, act)
    await learn(unshared)

    # The plan had the words of both; the next run of the job learns from those of bob alone.
    assert counts.changed == 0
    [found] = await learnt(client)
    assert (found["is_private"], found["successes"]) == (True, 1)
    assert await matches(client, user="bob") == []


async def test_a_stated_procedure_that_was_proposed_before_is_active(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1")
    await learn(application)
    [proposal] = await learnt(client)

    answer = await client.post("/v1/procedures", json={"trigger": proposal["trigger"], "action": proposal["action"]})

    assert (answer.status_code, answer.json()["id"]) == (200, proposal["id"])
    assert await matches(client) == [proposal["id"]]


async def test_another_tenant_or_workspace_learns_nothing_of_it(
    application: Application, client: httpx.AsyncClient
) -> None:
    for number in range(2):
        await run(client, f"s{number}")
    await learn(application)
    other = application.for_tenant("another tenant")

    assert await matches(other.client()) == []
    assert await matches(client, workspace="elsewhere") == []
    [found] = await learnt(client, "active")
    for method, path in (("GET", "evidence"), ("PUT", "state")):
        answer = await other.client().request(
            method, f"/v1/procedures/{found['id']}/{path}", json={"state": "dropped"} if method == "PUT" else None
        )
        assert answer.status_code == 404, answer.text


async def test_ids_numbers_and_addresses_of_a_person_are_in_no_proposal(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1", said="I am mia_li_3668, mail mia@example.org, cancel booking ZZ81 of May 20th please")
    await learn(application)

    [proposal] = await learnt(client)
    assert proposal["trigger"] == "I am …, mail …, cancel booking … of May … please"


def driver_refusing(application: Application, words: str, *, page_runs: int) -> Driver:
    """Return the driver of runs whose model refuses texts with these words."""
    tools = replace(tools_of(application), embedder=Refusing(BatchingEmbedder(application.model), words))
    job = build_job(application.settings, application.pool, "learning", tools)
    assert isinstance(job, LearningJob)
    job._page_runs = page_runs
    return driver_of(application, "learning", job)


async def test_a_run_whose_words_the_model_refuses_holds_up_no_later_one(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1", said="Please say the unspeakable word to everybody")
    await run(client, "s2")
    driver = driver_refusing(application, "unspeakable", page_runs=1)
    order = Order("learning", Area(application.tenant), datetime.now(UTC))

    first, second = await driver.start(order), await driver.start(order)

    [proposal] = await learnt(client)
    assert proposal["trigger"] == ASKED
    [problem] = first.problems
    assert "answers 413; it teaches no procedure" in problem
    assert (first.counts.seen, second.counts.seen, second.problems) == (2, 0, ())


async def test_a_model_that_refuses_every_text_leaves_all_runs_to_be_learnt_from(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1")
    order = Order("learning", Area(application.tenant), datetime.now(UTC))

    with pytest.raises(Unavailable, match="answers 413"):
        await driver_refusing(application, "", page_runs=200).start(order)
    done = await driver_of(application, "learning").start(order)

    assert (done.state, done.counts.seen, done.problems) == (RunState.DONE, 1, ())
    assert len(await learnt(client)) == 1


async def test_words_of_two_users_that_the_model_refuses_together_teach_nothing(
    application: Application, client: httpx.AsyncClient
) -> None:
    await run(client, "s1", user="ann", said="Please cancel the booking of my flight")
    await run(client, "s2", user="bob", said="Please cancel the booking of our flight")
    driver = driver_refusing(application, "Please cancel the booking of flight", page_runs=200)

    done = await driver.start(Order("learning", Area(application.tenant), datetime.now(UTC)))

    assert (done.state, done.counts.seen, done.problems) == (RunState.DONE, 2, ())
    assert await learnt(client) == []


async def test_a_dry_run_of_learning_changes_nothing(application: Application, client: httpx.AsyncClient) -> None:
    await run(client, "s1")
    with psycopg.connect(application.url) as connection:
        count = connection.execute("SELECT count(*) FROM agent_turns WHERE learnt_at IS NULL").fetchone()

    done = await run_job(application, "learning", is_dry_run=True)

    assert (done.counts.seen, done.counts.planned, done.counts.changed) == (1, 1, 0)
    assert await learnt(client) == []
    with psycopg.connect(application.url) as connection:
        assert connection.execute("SELECT count(*) FROM agent_turns WHERE learnt_at IS NULL").fetchone() == count
