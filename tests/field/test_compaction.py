"""What users of other memory systems lose when a long session is shortened, and must not lose here."""

from tests.support.application import Application
from tests.support.compaction import NOON, chatter, compact, found_messages, history, say, undo


async def test_a_figure_that_was_told_first_outlives_many_compactions(application: Application) -> None:
    await say(application, "s", "the code of the gate is 7719", "the ferry leaves on 2026-04-03 at 06:15")
    said = [f"round {name}, {content}" for name in ("one", "two", "three", "four", "five") for content in chatter(60)]
    for start in range(0, len(said), 60):
        await say(application, "s", *said[start : start + 60], first=2 + start)
        run = await compact(application)
        assert run.counts.removed > 0
    summary, *latest = await history(application, "s")

    assert "7719" in summary["content"]
    assert "2026-04-03 at 06:15" in summary["content"]
    assert summary["content"].startswith(f"{NOON.date()}: ")
    told = {"messages": 302 - len(latest), "from": 1, "to": 302 - len(latest), "authors": ["user"]}
    assert summary["metadata"]["summary"] == told
    assert "7719" in (await found_messages(application, "code of the gate"))[0]["content"]


async def test_a_message_that_is_delivered_again_after_it_was_compacted_is_not_stored_again(
    application: Application,
) -> None:
    said = chatter(60)
    await say(application, "s", *said)
    run = await compact(application)
    before = await history(application, "s")

    await say(application, "s", *said)

    assert await history(application, "s") == before
    await undo(application, run)
    assert [one["content"] for one in await history(application, "s")] == said


async def test_a_context_has_the_summary_and_nothing_of_other_users(application: Application) -> None:
    await say(application, "s", "the pin of ann is 4711", *chatter(40), user="ann")
    await say(application, "s", "the pin of bob is 2323", *chatter(60)[40:], first=41, user="bob")
    await compact(application)
    await application.indexed()

    answer = await application.client().post(
        "/v1/context", json={"query": "what is the pin of ann", "session": "s", "user": "ann", "tiers": ["sessions"]}
    )
    other = await application.client().post(
        "/v1/context", json={"query": "what is the pin of ann", "session": "s", "user": "bob", "tiers": ["sessions"]}
    )

    assert "4711" in answer.text
    assert "4711" not in other.text


async def test_a_search_before_the_last_summarised_message_does_not_find_the_summary(application: Application) -> None:
    await say(application, "s", "the code of the gate is 7719", *chatter(60))
    await compact(application)
    [summary, *_] = await history(application, "s")

    found = await found_messages(application, "code of the gate", until=summary["occurred_at"])

    assert summary["id"] not in {one["id"] for one in found}
    assert summary["id"] in {one["id"] for one in await found_messages(application, "code of the gate")}
