"""The compaction of sessions over a real Postgres, and its forecast."""

from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any
from uuid import UUID

import pytest

from deployments.api import build_api
from lamina.core.areas import Area
from lamina.core.ports import ModelIdentity
from lamina.core.runs import RunCounts, RunState
from lamina.errors import Misconfigured, Unavailable
from lamina.maintenance.compaction import CompactionJob, compaction_policy
from lamina.maintenance.live_sessions import Sessions
from lamina.maintenance.row_writer import RowWriter
from lamina.policies.retention.session_budget import CompactionPolicy
from lamina.settings.jobs import CompactionSettings, JobsSettings, SummariesSettings
from lamina.stores.postgres.connection import in_transaction
from lamina.text.words import estimated_tokens
from lamina.wiring.jobs import build_summarizer
from tests.support.application import Application
from tests.support.compaction import (
    NOON,
    POLICY,
    Refusing,
    chatter,
    checksums,
    compact,
    compaction_of,
    found_messages,
    history,
    say,
    summarizer_of,
    undo,
    words,
)
from tests.support.jobs import Watched


@pytest.fixture
async def app(application: Application) -> AsyncIterator[Application]:
    """The application, whose forecasts are under the policy of these tests."""
    services = replace(application.services, sessions=Sessions(application.pool, POLICY))
    changed = replace(application, services=services, api=build_api(services), clients=[])
    yield changed
    await changed.close_clients()


def full(*facts: str) -> list[str]:
    """Return messages of at least 90 % of the budget, facts first."""
    said = [*facts]
    for content in chatter(80):
        if sum(map(estimated_tokens, said)) >= 0.9 * POLICY.budget_tokens:
            return said
        said.append(content)
    raise AssertionError


async def forecast_of(app: Application, session: str, **params: str) -> dict[str, Any]:
    answer = await app.client().get(f"/v1/sessions/{session}/forecast", params=params)
    assert answer.status_code == 200, answer.text
    found: dict[str, Any] = answer.json()
    return found


async def test_a_summary_matters_as_much_as_the_most_important_of_its_messages(app: Application) -> None:
    content, moment = "the code of the gate is 7719", NOON.isoformat()
    first = {"role": "user", "content": content, "occurred_at": moment, "importance": 0.9}
    await app.client().post("/v1/turns", json={"session": "long", "messages": [first]})
    await say(app, "long", *full(), first=1)

    await compact(app, compaction_of(app, POLICY))
    standing = await history(app, "long")

    assert standing[0]["is_summary"]
    assert [item["importance"] for item in standing] == [0.9, *[0.5] * (len(standing) - 1)]


async def test_a_session_of_100_messages_at_90_percent_of_its_budget_is_left_with_half_of_it(app: Application) -> None:
    policy = CompactionPolicy(summary_tokens=400)
    facts = ["the rent is 1,450 EUR", "the ferry leaves on 2026-04-03", "the code of the gate is 7719"]
    said = facts + [f"{content}. {words(75 - estimated_tokens(content))}" for content in chatter(97)]
    await say(app, "long", *said)
    before = await Sessions(app.pool, policy).forecast(scope_of(app, "long"), NOON)

    run = await compact(app, compaction_of(app, policy))
    after = await Sessions(app.pool, policy).forecast(scope_of(app, "long"), NOON)
    standing = await history(app, "long")
    summary = standing[0]

    assert before.forecast.share == pytest.approx(0.9, abs=0.01)
    assert (run.state, run.problems, run.counts.removed) == (RunState.DONE, (), 100 - len(standing) + 1)
    assert run.counts.changed == run.counts.planned == run.counts.removed + 1
    assert run.counts.seen == 100
    assert after.forecast.share <= 0.5
    assert after.was_compacted
    assert summary["is_summary"]
    assert (summary["role"], summary["name"]) == ("system", "summary")
    assert summary["position"] == standing[1]["position"] - 1 == run.counts.removed
    told = {"messages": run.counts.removed, "from": 1, "to": run.counts.removed, "authors": ["user"]}
    assert summary["metadata"] == {"summary": told}
    assert all(figure in summary["content"] for figure in ("1,450 EUR", "2026-04-03", "7719"))
    assert [one["content"] for one in standing[1:]] == said[run.counts.removed :]


def scope_of(app: Application, session: str) -> Any:
    return Area(app.tenant, "default", "default").scope().narrowed(session=session)


async def test_searches_find_the_summary_and_not_what_it_stands_for(app: Application) -> None:
    await say(app, "s", *full("the code of the gate is 7719"))
    before = await found_messages(app, "code of the gate")

    await compact(app)
    after = await found_messages(app, "code of the gate", session="s")
    ids = {one["id"] for one in await history(app, "s")}

    assert before[0]["content"] == "the code of the gate is 7719"
    assert "7719" in after[0]["content"]
    assert {one["id"] for one in after} <= ids
    assert before[0]["id"] not in ids
    originals = await history(app, "s", include_compacted="true")
    assert {one["compacted_into"] for one in originals if one["id"] == before[0]["id"]} == {after[0]["id"]}


async def test_a_second_run_changes_nothing(app: Application) -> None:
    await say(app, "s", *full())
    await compact(app)
    before = await checksums(app)

    second = await compact(app)

    assert (second.counts.planned, second.counts.changed) == (0, 0)
    assert await checksums(app) == before


async def test_a_dry_run_tells_what_would_go_and_changes_nothing(app: Application) -> None:
    await say(app, "s", *full())
    before = await checksums(app)

    run = await compact(app, is_dry_run=True)

    assert run.counts.planned == run.counts.removed + 1 > 10
    assert run.counts.changed == 0
    assert await checksums(app) == before


async def test_an_undo_brings_back_exactly_the_same_rows(app: Application) -> None:
    await app.client().post("/v1/entities", json={"name": "Gate House", "type": "place"})
    await say(app, "s", *full("the code of the Gate House is 7719"))
    await say(app, "t", *full(), user="ann")
    await app.indexed()
    before = await checksums(app)

    run = await compact(app)
    between = await checksums(app)
    undone = await undo(app, run)
    found = await found_messages(app, "code of the gate house")
    drift = [await app.services.audits[name](app.tenant) for name in ("messages", "graph")]

    assert undone.changed == undone.seen == run.counts.changed
    assert all(between[table] != before[table] for table in ("messages", "message_chunks", "compacted_chunks"))
    assert await checksums(app) == before
    assert found[0]["content"] == "the code of the Gate House is 7719"
    assert not any(one.ids() for one in drift)
    assert (await compact(app)).counts.changed == run.counts.changed


async def test_what_a_deleted_summary_stood_for_stands_in_the_session_again(app: Application) -> None:
    said = full("the code of the gate is 7719")
    await say(app, "long", *said)
    await compact(app, compaction_of(app))
    summary = (await history(app, "long"))[0]

    answer = await app.client().delete(f"/v1/messages/{summary['id']}")
    standing = await history(app, "long", include_compacted=True)
    found = await found_messages(app, "the code of the gate", session="long")

    assert (summary["is_summary"], answer.status_code) == (True, 204)
    assert [(item["content"], item["compacted_into"]) for item in standing] == [(content, None) for content in said]
    assert said[0] in [item["content"] for item in found]


async def test_a_summary_is_linked_to_the_entities_that_it_and_its_messages_name(app: Application) -> None:
    await app.client().post("/v1/entities", json={"name": "Gate House", "type": "place"})
    await say(app, "s", *full("the code of the Gate House is 7719"))
    await compact(app)
    summary = (await history(app, "s"))[0]
    await app.indexed()
    async with app.pool.connection() as connection:
        links = await (
            await connection.execute("SELECT * FROM memory_links WHERE from_id = %s", [UUID(summary["id"])])
        ).fetchall()
        [entity] = await (
            await connection.execute("SELECT * FROM entities WHERE tenant = %s AND key = 'gate house'", [app.tenant])
        ).fetchall()
    drift = [await app.services.audits[name](app.tenant) for name in ("messages", "graph")]

    assert [(link["to_id"], link["kind"], link["from_tier"]) for link in links] == [(entity["id"], "mentions", 1)]
    assert not any(one.ids() for one in drift)


async def test_a_message_that_arrives_meanwhile_keeps_its_place(app: Application) -> None:
    said = full()
    await say(app, "s", *said)
    job = Watched(compaction_of(app), before_acting=lambda: say(app, "s", "the newest of all", first=len(said)))

    await compact(app, job)
    standing = await history(app, "s")

    assert [one["is_summary"] for one in standing] == [True, *[False] * (len(standing) - 1)]
    assert (standing[-1]["content"], standing[-1]["position"]) == ("the newest of all", len(said) + 1)
    assert [one["position"] for one in standing] == sorted(one["position"] for one in standing)


async def test_a_session_one_of_whose_messages_left_meanwhile_stays_as_it_is(app: Application) -> None:
    await say(app, "s", *full())
    await say(app, "t", *full())
    oldest = (await history(app, "s"))[0]["id"]

    async def take() -> None:
        async with app.pool.connection() as connection:
            await connection.execute("UPDATE messages SET compacted_at = now() WHERE id = %s", [UUID(oldest)])

    run = await compact(app, Watched(compaction_of(app), before_acting=take))

    assert not any(one["is_summary"] for one in await history(app, "s"))
    assert (await history(app, "t"))[0]["is_summary"]
    assert run.counts.changed == run.counts.removed + 1 < run.counts.planned


async def test_where_the_summariser_fails_the_session_stays_and_the_next_run_tries_it_again(app: Application) -> None:
    await say(app, "broken", *full("the forbidden word is plugh"))
    await say(app, "sound", *full())
    failing = compaction_of(app, summarizer=Refusing(summarizer_of(app), "plugh"))

    run = await compact(app, failing)

    where = f"tenant={app.tenant} workspace=default namespace=default"
    told = f"session broken: language_model is not available: no answer within 30 s; retry in 1 s ({where})"
    assert (run.state, run.problems) == (RunState.DONE, (told,))
    assert not any(one["is_summary"] for one in await history(app, "broken"))
    assert (await history(app, "sound"))[0]["is_summary"]

    again = await compact(app)

    assert (again.problems, again.counts.removed > 0) == ((), True)
    assert (await history(app, "broken"))[0]["is_summary"]


async def test_each_user_has_a_summary_of_their_own_words(app: Application) -> None:
    said = full("the pin of ann is 4711")
    await say(app, "s", *said[:10], user="ann")
    await say(app, "s", "the gate closes at 18:30", *said[10:18], first=10)
    await say(app, "s", "the pin of bob is 2323", *said[18:], first=20, user="bob")

    run = await compact(app)
    standing = await history(app, "s")
    summaries = {one["user"]: one for one in standing if one["is_summary"]}

    assert set(summaries) == {"ann", "bob", None}
    assert "4711" in summaries["ann"]["content"]
    assert "2323" in summaries["bob"]["content"]
    assert "18:30" in summaries[None]["content"]
    assert not any("2323" in one["content"] for user, one in summaries.items() if user != "bob")
    assert not any("4711" in one["content"] for user, one in summaries.items() if user != "ann")
    assert [one["position"] for one in standing] == sorted(one["position"] for one in standing)
    assert sum(one["metadata"]["summary"]["messages"] for one in summaries.values()) == run.counts.removed
    assert not [one for one in await found_messages(app, "pin of bob", user="ann") if "2323" in one["content"]]
    assert (await compact(app)).counts.planned == 0


async def test_a_run_that_died_between_two_sessions_goes_on_where_it_stood(app: Application) -> None:
    for session in ("a", "b", "c"):
        await say(app, session, *full())
    pages = 0

    async def die() -> None:
        nonlocal pages
        pages += 1
        if pages == 2:
            raise Unavailable("postgres", "the power is gone")

    with pytest.raises(Unavailable):
        await compact(app, Watched(compaction_of(app, page_sessions=1), before_acting=die))
    standing = [(await history(app, session))[0]["is_summary"] for session in ("a", "b", "c")]
    summary = (await history(app, "a"))[0]

    run = await compact(app, compaction_of(app, page_sessions=1))

    assert standing == [True, False, False]
    assert (await history(app, "a"))[0] == summary
    assert all([(await history(app, session))[0]["is_summary"] for session in ("b", "c")])
    assert run.counts.changed == run.counts.removed + 3  # the run that went on, with what it did before


async def test_a_summary_is_compacted_like_a_message_and_stands_for_all_of_its_messages(app: Application) -> None:
    said = full("the code of the gate is 7719")
    await say(app, "s", *said)
    await compact(app)
    first = (await history(app, "s"))[0]
    before = await checksums(app, ["messages", "message_chunks"])
    await say(app, "s", *full("the ferry leaves on 2026-04-03"), first=len(said))
    extended = await checksums(app, ["messages", "message_chunks"])

    run = await compact(app)
    second = (await history(app, "s"))[0]

    assert first["id"] != second["id"]
    assert "7719" in second["content"]
    told = {"messages": second["position"], "from": 1, "to": second["position"], "authors": ["user"]}
    assert second["metadata"]["summary"] == told
    assert before != extended

    await undo(app, run)

    assert (await history(app, "s"))[0] == first
    assert await checksums(app, ["messages", "message_chunks"]) == extended


async def test_vectors_of_another_model_are_refused(app: Application) -> None:
    await say(app, "s", *full())
    before = await checksums(app)
    job = compaction_of(app, identity=ModelIdentity("another", 384))
    area = Area(app.tenant, "default", "default")

    with pytest.raises(Misconfigured, match=r"embedding\.model is another, the stores hold vectors of hashing-384"):
        await job.decide(area, None, NOON)
    assert await checksums(app) == before


async def test_where_another_model_takes_over_meanwhile_nothing_is_written(app: Application) -> None:
    await say(app, "s", *full())
    before = await checksums(app)
    job = compaction_of(app)
    area = Area(app.tenant, "default", "default")
    page = await job.decide(area, None, NOON)
    assert page.plan is not None
    late = [replace(one, generation=one.generation + 1) for one in page.plan]

    counts = await in_transaction(app.pool, lambda connection: job.act(RowWriter(connection, None, NOON), area, late))

    assert counts == RunCounts()
    assert await checksums(app) == before


async def test_the_undo_of_an_older_run_leaves_the_newer_summary_and_what_it_stands_for(app: Application) -> None:
    said = full()
    await say(app, "s", *said)
    older = await compact(app)
    first = (await history(app, "s"))[0]
    await say(app, "s", *full("and again"), first=len(said))
    newer = await compact(app)
    second = (await history(app, "s"))[0]

    await undo(app, older)

    assert second in await history(app, "s")
    await undo(app, newer)
    assert first in await history(app, "s")
    assert second["id"] not in {one["id"] for one in await history(app, "s", include_compacted="true")}


async def test_a_session_whose_tokens_are_single_bytes_is_due_at_the_same_share(app: Application) -> None:
    await say(app, "below", *["7" * 85] * 9, "7" * 84)
    await say(app, "due", *["7" * 85] * 10)

    run = await compact(app)

    assert (run.counts.seen, run.problems) == (10, ())
    assert [(await history(app, session))[0]["is_summary"] for session in ("below", "due")] == [False, True]


async def test_sessions_below_the_share_are_left_alone_page_by_page(app: Application) -> None:
    for session in ("a", "b", "c", "d"):
        await say(app, session, *(full() if session == "c" else [words(400), words(400)]))

    run = await compact(app, compaction_of(app, page_sessions=2))

    assert [(await history(app, session))[0]["is_summary"] for session in ("a", "b", "c", "d")] == [
        False, False, True, False,
    ]  # fmt: skip
    assert run.counts.seen == 6 + len(full())


@pytest.mark.parametrize(
    ("used", "state", "left"), [(690, "ok", 160), (700, "near", 150), (849, "near", 1), (850, "due", 0)]
)
async def test_the_forecast_tells_from_70_percent_what_is_compacted_at_85(
    app: Application, used: int, state: str, left: int
) -> None:
    await say(app, "s", words(used - 450), *[words(75)] * 6)

    found = await forecast_of(app, "s")

    assert (found["used_tokens"], found["budget_tokens"], found["share"]) == (used, 1000, used / 1000)
    assert (found["state"], found["tokens_left"]) == (state, left)
    assert found["would_compact"] == ([] if state == "ok" else [1, 2, 3])
    assert found["messages_left"] == -(-left * 7 // used)
    assert (found["due_at"] is not None, found["was_compacted"]) == (True, False)


async def test_what_the_forecast_tells_comes_true(app: Application) -> None:
    await say(app, "s", *full())
    told = await forecast_of(app, "s")
    run = await compact(app)
    after = await forecast_of(app, "s")

    assert (told["state"], after["state"], after["was_compacted"]) == ("due", "ok", True)
    assert told["would_compact"] == list(range(1, run.counts.removed + 1))
    assert after["used_tokens"] <= 500


async def test_the_forecast_of_an_unknown_session_is_not_found(app: Application) -> None:
    await say(app, "s", "hello", workspace="other")

    for session, params in (("nobody", {}), ("s", {}), ("s", {"workspace": "other", "namespace": "x"})):
        answer = await app.client().get(f"/v1/sessions/{session}/forecast", params=params)
        assert answer.status_code == 404, answer.text
    assert (await forecast_of(app, "s", workspace="other"))["used_tokens"] == 2


async def test_a_user_learns_from_a_forecast_how_much_others_said_and_nothing_else(app: Application) -> None:
    await say(app, "s", words(200), words(200), user="ann")
    await say(app, "s", words(200), words(200), *[words(30)] * 4, first=2, user="bob")

    found = await forecast_of(app, "s", user="bob")
    whole = await forecast_of(app, "s")

    assert (found["used_tokens"], found["would_compact"]) == (920, [3])
    assert whole["would_compact"] == [1, 2, 3]


def test_a_summary_takes_at_most_half_of_what_is_left_of_a_small_budget() -> None:
    small = JobsSettings(compaction=CompactionSettings(budget_tokens=512), summaries=SummariesSettings(tokens=400))
    large = JobsSettings()

    assert compaction_policy(small).summary_tokens == 128
    assert compaction_policy(large) == CompactionPolicy(summary_tokens=400)


async def test_the_job_is_built_of_the_settings(app: Application) -> None:
    jobs = app.settings.jobs
    job = CompactionJob(
        app.pool,
        build_summarizer(app.settings, compaction_of(app)._embedder),
        compaction_of(app)._embedder,
        app.model.identity,
        compaction_policy(jobs),
    )

    assert (await compact(app, job)).state == RunState.DONE
