"""Summaries and consolidation over a real Postgres, with the real embedding model where meaning counts."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lamina.core.areas import Area
from lamina.core.runs import Order
from lamina.errors import Unavailable
from lamina.extraction.extractive_summaries import SourceText
from lamina.maintenance.derived_notes import Deriver
from lamina.maintenance.summaries import SummaryJob
from lamina.models.batching import BatchingEmbedder
from lamina.policies.retention.summary_periods import SummaryPolicy
from lamina.stores.postgres.links import SimilarLinks
from tests.support.application import Application, ended, sent
from tests.support.jobs import Watched, driver_of, in_days, job_of, run_job, undo_run

MONDAY = datetime(2026, 9, 7, 9, tzinfo=UTC)


async def add(app: Application, content: str, moment: datetime, **fields: Any) -> str:
    body = {"content": content, "event_at": moment.isoformat(), **fields}
    answer = await app.client().post("/v1/notes", json=body)
    assert answer.status_code in {200, 201}, answer.text
    return str(answer.json()["id"])


async def listed(app: Application, **params: str) -> list[dict[str, Any]]:
    found = await app.client().get("/v1/notes", params={"limit": 500, **params})
    return list(found.json()["notes"])


async def a_week_of(app: Application, days: int = 3, **fields: Any) -> None:
    for day in range(days):
        for number in range(3):
            text = f"On trip {day} the crew loaded {number + 2} barrels at pier {day * 10 + number}"
            await add(app, text, MONDAY + timedelta(days=day, hours=number), **fields)


async def test_days_become_summaries_and_weeks_are_made_of_them(application: Application) -> None:
    await a_week_of(application)

    run = await run_job(application, "summaries", in_days(1))
    summaries = [note for note in await listed(application) if "summary" in note["tags"]]
    titles = sorted(note["content"].split("\n")[0] for note in summaries)

    assert titles == [
        "Summary of 2026-09-07",
        "Summary of 2026-09-08",
        "Summary of 2026-09-09",
        "Summary of week 2026-W37",
    ]
    assert run.counts.changed == 4
    day = next(note for note in summaries if note["content"].startswith("Summary of 2026-09-08"))
    assert all(figure in day["content"] for figure in ("10", "11", "12", "3", "4", "2026-09-08"))
    assert len(await listed(application)) == 9 + 4


async def test_a_second_run_makes_nothing_and_a_late_note_makes_its_day_anew(application: Application) -> None:
    await a_week_of(application, days=2)
    await run_job(application, "summaries", in_days(1))
    second = await run_job(application, "summaries", in_days(1))
    await add(application, "The cook bought 77 lemons", MONDAY + timedelta(hours=5))
    third = await run_job(application, "summaries", in_days(1))
    days = [
        note["content"] for note in await listed(application) if note["content"].startswith("Summary of 2026-09-07")
    ]

    assert second.counts.planned == 0
    assert third.counts.changed == 4  # the day and its week, each in the place of the one before
    assert len(days) == 1
    assert "77" in days[0]


@pytest.mark.parametrize("is_late", [False, True])
async def test_a_pinned_summary_stays_as_it_is_even_if_the_pin_comes_meanwhile(
    application: Application, is_late: bool
) -> None:
    await a_week_of(application, days=1)
    await run_job(application, "summaries", in_days(1))
    [summary] = [note for note in await listed(application) if "summary" in note["tags"]]
    await add(application, "The cook bought 77 lemons", MONDAY + timedelta(hours=5))

    async def pin() -> None:
        assert (await application.client().put(f"/v1/memories/{summary['id']}/pin")).is_success

    if not is_late:
        await pin()
    job = Watched(job_of(application, "summaries"), before_acting=pin)
    order = Order("summaries", Area(application.tenant), in_days(1), is_forced=True)
    run = await driver_of(application, "summaries", job).start(order)

    [still] = [note for note in await listed(application) if "summary" in note["tags"]]
    assert (still["id"], still["content"]) == (summary["id"], summary["content"])
    assert (run.counts.planned, run.counts.changed) == (int(is_late), 0)


async def test_summaries_keep_what_belongs_to_a_user_apart_and_go_by_an_undo(application: Application) -> None:
    await a_week_of(application, days=1, user="ann")
    run = await run_job(application, "summaries", in_days(1))
    [summary] = [note for note in await listed(application, user="ann") if "summary" in note["tags"]]

    assert summary["user"] == "ann"
    assert not [note for note in await listed(application, user="bob") if "summary" in note["tags"]]

    undone = await undo_run(application, run)
    again = await run_job(application, "summaries", in_days(1))

    assert undone.changed == 1
    assert not [note for note in await listed(application, user="ann") if "summary" in note["tags"]]
    # Somebody took it back: it is not made from the same notes again.
    assert (again.counts.planned, again.problems) == (0, ())


async def test_a_summary_goes_with_one_of_its_notes_and_is_made_from_the_others(application: Application) -> None:
    await a_week_of(application, days=1)
    extra = await add(application, "The secret number is 4711", MONDAY + timedelta(hours=6))
    await run_job(application, "summaries", in_days(1))
    await application.client().delete(f"/v1/notes/{extra}")
    gone = [note for note in await listed(application) if "summary" in note["tags"]]
    await run_job(application, "summaries", in_days(1))
    [summary] = [note for note in await listed(application) if "summary" in note["tags"]]

    assert gone == []
    assert "4711" not in summary["content"]


class Failing:
    """Fails until it is mended, at all texts or at those with certain words."""

    def __init__(self, words: str = "") -> None:
        self.is_broken = True
        self.words = words

    async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
        if self.is_broken and any(self.words in source.text for source in sources):
            raise Unavailable("language model", "it is down")
        return " ".join(source.text for source in sources)[: most_tokens * 2]


def job_with(app: Application, model: Failing, **options: Any) -> SummaryJob:
    deriver = Deriver(
        app.pool, BatchingEmbedder(app.model), app.model.identity, deadline_s=60, similar=SimilarLinks(3, 0.5)
    )
    return SummaryJob(app.pool, model, deriver, SummaryPolicy(), tokens=200, **options)


async def titles_of(app: Application, **params: str) -> list[str]:
    notes = await listed(app, **params)
    return sorted(note["content"].split("\n")[0] for note in notes if "summary" in note["tags"])


DAYS = ["Summary of 2026-09-07", "Summary of 2026-09-08", "Summary of 2026-09-09"]
WEEK = "Summary of week 2026-W37"


@pytest.mark.parametrize("slice_notes", [2, 2_000])
async def test_a_week_waits_for_a_day_whose_summary_failed(application: Application, slice_notes: int) -> None:
    await a_week_of(application)
    model = Failing("On trip 1")
    job = job_with(application, model, slice_notes=slice_notes)
    order = Order("summaries", Area(application.tenant), MONDAY + timedelta(days=16))

    dry = await driver_of(application, "summaries", job).start(replace(order, is_dry_run=True))
    failed = await driver_of(application, "summaries", job).start(order)
    without = await titles_of(application)
    model.is_broken = False
    mended = await driver_of(application, "summaries", job).start(order)

    assert dry.counts.planned == 3
    assert without == [DAYS[0], DAYS[2]]
    assert len(failed.problems) == 1
    assert mended.counts.changed == 2
    assert await titles_of(application) == [*DAYS, WEEK]


async def test_a_week_waits_not_for_ever_for_a_day_that_fails_each_time(application: Application) -> None:
    await a_week_of(application)
    model = Failing("On trip 1")
    job = job_with(application, model)
    order = Order("summaries", Area(application.tenant), MONDAY + timedelta(days=40))

    await driver_of(application, "summaries", job).start(order)
    without = await titles_of(application)
    model.is_broken = False
    mended = await driver_of(application, "summaries", job).start(order)

    assert without == [DAYS[0], DAYS[2], WEEK]
    assert mended.counts.changed == 3  # The day; and the week, with it, in the place of the one before.
    assert await titles_of(application) == [*DAYS, WEEK]


async def test_a_month_waits_not_for_ever_for_a_week_that_fails_each_time(application: Application) -> None:
    for week in range(3):
        for day in range(2):
            for number in range(3):
                text = f"In week {week} on trip {day} the crew loaded {number + 2} barrels"
                await add(application, text, MONDAY + timedelta(weeks=week, days=day, hours=number))

    class FailingWeek(Failing):
        async def summarize(self, sources: Sequence[SourceText], *, most_tokens: int) -> str:
            if len(sources) == 2 and any("week 1" in source.text for source in sources):
                raise Unavailable("language model", "it is down")
            return await super().summarize(sources, most_tokens=most_tokens)

    job = job_with(application, FailingWeek("no such words"))
    order = Order("summaries", Area(application.tenant), MONDAY + timedelta(days=31))
    await driver_of(application, "summaries", job).start(order)
    early = await titles_of(application)
    late = replace(order, moment=MONDAY + timedelta(days=60))
    await driver_of(application, "summaries", job).start(late)

    assert [title for title in early if "week" in title] == [WEEK, "Summary of week 2026-W39"]
    assert "Summary of September 2026" not in early
    assert "Summary of September 2026" in await titles_of(application)


async def test_a_week_waits_for_no_day_whose_summary_somebody_deleted(application: Application) -> None:
    await a_week_of(application)
    await run_job(application, "summaries", MONDAY + timedelta(days=11))
    days = await titles_of(application)
    [deleted] = [note for note in await listed(application) if note["content"].startswith(DAYS[1])]
    assert (await application.client().delete(f"/v1/notes/{deleted['id']}")).is_success

    run = await run_job(application, "summaries", MONDAY + timedelta(days=16))
    again = await run_job(application, "summaries", MONDAY + timedelta(days=16))

    assert days == DAYS
    assert (run.counts.changed, again.counts.planned) == (1, 0)
    assert await titles_of(application) == [DAYS[0], DAYS[2], WEEK]


async def renamed(app: Application, **names: str) -> None:
    admin = app.admin()
    await ended(admin, await sent(admin, "POST", "/v1/scopes/rename", json=names))


async def test_a_renamed_place_keeps_its_summaries_and_consolidated_notes(semantic: Application) -> None:
    about, days = ({"workspace": "atlas", "namespace": name} for name in ("about", "days"))
    texts = [
        "The backup of the billing database runs every night at 02:00",
        "Every night at 02:00 the billing database is backed up",
        "Backups of the billing database run nightly at 02:00",
    ]
    for number, text in enumerate(texts):
        await add(semantic, f"Note {number}: {text}", MONDAY + timedelta(hours=number), **about)
    await a_week_of(semantic, **days)
    await run_job(semantic, "consolidation", is_forced=True, **about)
    await run_job(semantic, "summaries", in_days(1), **days)
    [deleted] = [note for note in await listed(semantic, **days) if note["content"].startswith(DAYS[1])]
    assert (await semantic.client().delete(f"/v1/notes/{deleted['id']}")).is_success
    await run_job(semantic, "summaries", in_days(1), **days)
    before = [*await listed(semantic, **about), *await listed(semantic, **days)]

    await renamed(semantic, workspace="atlas", to_workspace="boreas")
    await renamed(semantic, workspace="boreas", namespace="days", to_namespace="trips")
    about, days = ({"workspace": "boreas", "namespace": name} for name in ("about", "trips"))
    runs = [
        await run_job(semantic, "consolidation", is_forced=True, **about),
        await run_job(semantic, "summaries", in_days(1), **days),
    ]
    after = [*await listed(semantic, **about), *await listed(semantic, **days)]
    await add(semantic, "The cook bought 77 lemons", MONDAY + timedelta(hours=5), **days)
    third = await run_job(semantic, "summaries", in_days(1), **days)

    tags = [tag for note in before for tag in note["tags"]]
    assert [tags.count(tag) for tag in ("consolidated", "daily", "weekly")] == [1, 2, 1]
    assert [(run.counts.planned, run.problems) for run in runs] == [(0, ()), (0, ())]
    assert [(note["id"], note["content"]) for note in after] == [(note["id"], note["content"]) for note in before]
    assert third.counts.changed == 4  # The day and its week, each in the place of the one before.


async def moved(app: Application, namespace: str, to_namespace: str, **conditions: Any) -> None:
    chosen = conditions or {"everything": True}
    body = {"workspace": "atlas", "namespace": namespace, "to_namespace": to_namespace, **chosen}
    client = app.client()
    await ended(client, await sent(client, "POST", "/v1/notes/bulk", json=body))


async def test_notes_that_move_keep_their_summaries_and_consolidated_notes(semantic: Application) -> None:
    about, days = ({"workspace": "atlas", "namespace": name} for name in ("about", "days"))
    texts = [
        "The backup of the billing database runs every night at 02:00",
        "Every night at 02:00 the billing database is backed up",
        "Backups of the billing database run nightly at 02:00",
    ]
    for number, text in enumerate(texts):
        await add(semantic, f"Note {number}: {text}", MONDAY + timedelta(hours=number), **about)
    await a_week_of(semantic, **days)
    await run_job(semantic, "consolidation", is_forced=True, **about)
    await run_job(semantic, "summaries", **days)
    [deleted] = [note for note in await listed(semantic, **days) if note["content"].startswith(DAYS[1])]
    assert (await semantic.client().delete(f"/v1/notes/{deleted['id']}")).is_success
    await run_job(semantic, "summaries", **days)
    before = [*await listed(semantic, **about), *await listed(semantic, **days)]

    for name in ("about", "days"):  # Twice: the name of the first place counts in the third.
        await moved(semantic, name, f"{name}-2")
        await moved(semantic, f"{name}-2", f"{name}-3")
    about, days = ({"workspace": "atlas", "namespace": f"{name}-3"} for name in ("about", "days"))
    runs = [
        await run_job(semantic, "consolidation", is_forced=True, **about),
        await run_job(semantic, "summaries", **days),
    ]
    after = [*await listed(semantic, **about), *await listed(semantic, **days)]

    tags = [tag for note in before for tag in note["tags"]]
    assert [tags.count(tag) for tag in ("consolidated", "daily", "weekly")] == [1, 2, 1]
    assert [(run.counts.planned, run.problems) for run in runs] == [(0, ()), (0, ())]
    assert [(note["id"], note["content"]) for note in after] == [(note["id"], note["content"]) for note in before]


async def test_notes_that_move_without_their_summary_have_another_one_there(application: Application) -> None:
    place = {"workspace": "atlas", "namespace": "days"}
    await a_week_of(application, days=1, tags=["trip"], **place)
    await run_job(application, "summaries", **place)
    [summary] = [note for note in await listed(application, **place) if "daily" in note["tags"]]

    await moved(application, "days", "trips", tags=["trip"])
    there = {"workspace": "atlas", "namespace": "trips"}
    run = await run_job(application, "summaries", **there)

    [left] = await listed(application, **place)
    [made] = [note for note in await listed(application, **there) if "daily" in note["tags"]]
    assert run.counts.changed == 1
    assert left["id"] == summary["id"] != made["id"]
    assert made["content"] == summary["content"]


async def test_a_failing_model_marks_nothing_as_done(application: Application) -> None:
    await a_week_of(application, days=1)
    model = Failing()
    job = job_with(application, model)
    order = Order("summaries", Area(application.tenant), in_days(1))

    dry = await driver_of(application, "summaries", job).start(replace(order, is_dry_run=True))
    failed = await driver_of(application, "summaries", job).start(order)
    model.is_broken = False
    mended = await driver_of(application, "summaries", job).start(order)

    assert (dry.counts.planned, dry.problems) == (1, ())  # a dry run asks no model
    assert (failed.counts.changed, len(failed.problems)) == (0, 1)
    assert "Summary of 2026-09-07" in failed.problems[0]
    assert "it is down" in failed.problems[0]
    assert mended.counts.changed == 1


async def test_notes_about_one_thing_become_one_note_and_an_undo_brings_them_back(semantic: Application) -> None:
    about = [
        "The backup of the billing database runs every night at 02:00",
        "Every night at 02:00 the billing database is backed up",
        "Backups of the billing database run nightly at 02:00",
        "The nightly backup of the billing database runs at 02:00 and takes 40 minutes",
    ]
    for number, text in enumerate(about):
        await add(semantic, f"Note {number}: {text}", MONDAY + timedelta(hours=number))
    for number, text in enumerate(("Ann likes green tea", "The office moves to Linz", "Lunch is at noon on Fridays")):
        await add(semantic, text, MONDAY + timedelta(days=number))

    run = await run_job(semantic, "consolidation", is_forced=True)
    consolidated = [note for note in await listed(semantic) if "consolidated" in note["tags"]]
    second = await run_job(semantic, "consolidation", is_forced=True)

    assert len(consolidated) == 1
    assert "02:00" in consolidated[0]["content"]
    assert "40" in consolidated[0]["content"]
    assert run.counts.removed >= 2
    assert len(await listed(semantic)) == 7 + 1 - run.counts.removed
    assert second.counts.planned == 0

    await undo_run(semantic, run)

    assert len(await listed(semantic)) == 7


async def test_shared_neighbours_imply_an_edge_once_and_an_undo_takes_it_back(application: Application) -> None:
    client = application.client()
    edges = [
        {"subject": who, "type": "uses", "object": tool}
        for who in ("Ann", "Bob")
        for tool in ("Postgres", "Redis", "Kafka")
    ]
    answer = await client.post("/v1/graph/edges", json={"edges": edges})
    assert answer.status_code == 200, answer.text

    first = await run_job(application, "consolidation")
    near = (await client.get("/v1/graph/neighbours", params={"name": "Ann"})).json()
    second = await run_job(application, "consolidation")
    undone = await undo_run(application, first)

    # Ann and Bob share three tools; the tools share only Ann and Bob.
    assert (first.counts.changed, second.counts.planned) == (1, 0)
    assert "related_to" in str(near)
    assert undone.changed == first.counts.changed


async def test_what_was_merged_into_a_consolidated_note_comes_back_when_that_goes_with_another_source(
    semantic: Application,
) -> None:
    about = [
        "The backup of the billing database runs every night at 02:00",
        "Every night at 02:00 the billing database is backed up",
        "Backups of the billing database run nightly at 02:00",
    ]
    ids = [
        await add(semantic, f"Note {number}: {text}", MONDAY + timedelta(hours=number))
        for number, text in enumerate(about)
    ]
    run = await run_job(semantic, "consolidation", is_forced=True)
    [one] = [note for note in await listed(semantic) if "consolidated" in note["tags"]]
    async with semantic.pool.connection() as connection:  # One member stays, as if the text did not say all of it.
        await connection.execute("UPDATE notes SET deleted_at = NULL, merged_into = NULL WHERE id = %s", [ids[0]])

    await semantic.client().delete(f"/v1/notes/{ids[0]}")
    left = await listed(semantic)

    assert run.counts.removed == 3
    assert sorted(note["id"] for note in left) == sorted(ids[1:])
    assert one["id"] not in {note["id"] for note in left}


async def test_a_consolidated_note_goes_when_a_member_is_past_the_retention(semantic: Application) -> None:
    admin = semantic.admin()
    assert (await admin.put("/v1/workspaces/default/settings", json={"retention_days": 20})).status_code == 200
    about = [
        "The backup of the billing database runs every night at 02:00",
        "Every night at 02:00 the billing database is backed up",
        "Backups of the billing database run nightly at 02:00",
    ]
    ids = [
        await add(semantic, f"Note {number}: {text}", in_days(age))
        for number, (text, age) in enumerate(zip(about, (-10, -1, -1), strict=True))
    ]

    made = await run_job(semantic, "consolidation", is_forced=True)
    consolidated = [note for note in await listed(semantic) if "consolidated" in note["tags"]]
    await run_job(semantic, "consolidation", in_days(11), is_forced=True)
    await run_job(semantic, "sweep", in_days(11), is_forced=True)

    assert (made.counts.removed, len(consolidated)) == (3, 1)
    assert sorted(note["id"] for note in await listed(semantic)) == sorted(ids[1:])
