"""Notes go cold and come back: the sweep, the hits, and both indexes, over real stores.

Field cases 27 and 29 for cold notes, 33 for the cold index, 36 for the sweep.
"""

import asyncio
import shutil
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from typer.testing import CliRunner

from lamina.cli.commands import app as cli
from lamina.core.areas import Area
from lamina.core.ports import Change, NoteHits
from lamina.core.runs import Order, Run, RunCounts
from lamina.core.scope import Scope
from lamina.errors import Conflict
from lamina.models.hashing import HashingModel
from lamina.policies.retention.lifespan import is_warm, lifespan
from lamina.stores.index.cold.edge import SHARD, ColdIndex
from lamina.stores.postgres.note_temperature import Temperatures
from lamina.stores.postgres.outbox import enqueue_all
from tests.support.application import Application, index_of, running, settings_for
from tests.support.jobs import Watched, area_of, driver_of, in_days, in_pages, job_of, run_job

DAYS = 7.0
TEXT = "The anchor of the old ferry is rusty"
WARM = {"notes_hybrid", "notes_warm"}
COLD = {"notes_cold"}
TABLES = ("notes", "note_chunks", "epochs", "outbox")


async def put(app: Application, content: str = TEXT, **fields: Any) -> UUID:
    answer = await app.client().post("/v1/notes", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    await app.indexed()
    return UUID(answer.json()["id"])


async def sweep(app: Application, days: float = 8, **ids: str) -> Run:
    """Sweep one namespace as if so many days had passed."""
    swept = await run_job(app, "sweep", in_days(days), area=area_of(Scope(app.tenant, **ids)))
    await app.indexed()
    return swept


async def found_by(app: Application, asked: str = TEXT, **ids: str) -> dict[str, set[str]]:
    """Return which sources of the notes' tier found what."""
    body = {"query": asked, "explain": True, "tiers": ["notes"], **ids}
    answer = (await app.client().post("/v1/search", json=body)).json()
    assert answer["degraded"] == []
    return {hit["id"]: set(hit["explain"]) for hit in answer["results"]}


async def note(app: Application, id_: UUID) -> dict[str, Any]:
    found: dict[str, Any] = (await app.client().get(f"/v1/notes/{id_}")).json()
    return found


def age(app: Application, id_: UUID, days: float) -> None:
    """Pretend that a note was last found so many days ago."""
    with psycopg.connect(app.url) as connection:
        connection.execute(
            "UPDATE notes SET last_hit_at = now() - make_interval(secs => %s) WHERE id = %s", (days * 86_400, id_)
        )


def rows(app: Application, text: str, *parameters: Any) -> list[tuple[Any, ...]]:
    with psycopg.connect(app.url) as connection:
        return connection.execute(text.encode(), parameters).fetchall()


def checksums(app: Application, tenant: str) -> list[tuple[Any, ...]]:
    """Return a checksum of each table's rows of a tenant."""
    notes = "SELECT id FROM notes WHERE tenant = %s"
    of = {"outbox": f"t.memory_id IN ({notes})"}
    return [
        rows(
            app,
            f"SELECT count(*), md5(string_agg(t::text, '|' ORDER BY t::text)) FROM {table} t "  # noqa: S608
            f"WHERE {of.get(table, 't.tenant = %s')}",
            tenant,
        )[0]
        for table in TABLES
    ]


def cold_index(app: Application) -> ColdIndex:
    index = index_of(app, "notes", "cold")
    assert isinstance(index, ColdIndex)
    return index


async def test_a_demoted_note_is_found_by_its_meaning_alone_and_a_hit_brings_it_back(application: Application) -> None:
    id_ = await put(application)
    assert await found_by(application) == {str(id_): WARM}
    await application.counted()

    swept = await sweep(application, 30)
    cold = await note(application, id_)
    found_cold = await found_by(application)
    await application.counted()
    await application.indexed()

    assert swept.order.area == Area(application.tenant, "default", "default")
    assert swept.counts == RunCounts(units=1, seen=1, planned=1, changed=1)
    assert cold["temperature"] == "cold"
    assert found_cold == {str(id_): COLD}
    assert await found_by(application) == {str(id_): WARM}
    assert (await note(application, id_))["temperature"] == "warm"
    assert cold_index(application).count(Scope(application.tenant)) == 0


async def test_a_context_counts_what_it_contains(application: Application) -> None:
    id_ = await put(application)

    answer = await application.client().post("/v1/context", json={"query": TEXT, "tiers": ["notes"]})
    await application.counted()

    assert [hit["id"] for hit in answer.json()["results"]] == [str(id_)]
    counted = await note(application, id_)
    assert counted["hits"] == 2
    assert counted["last_hit_at"] > counted["created_at"]


async def test_a_forgotten_note_takes_two_hits_to_come_back(application: Application) -> None:
    id_ = await put(application)
    age(application, id_, 100)
    await sweep(application, 0)

    states = []
    for _ in range(2):
        assert await found_by(application) == {str(id_): COLD}
        await application.counted()
        state = await note(application, id_)
        states.append((state["hits"], state["temperature"]))

    assert states == [(2, "cold"), (3, "warm")]


@pytest.mark.parametrize("idle_days", [0.0, 10.0, 11.0, 11.2, 100.0])
@pytest.mark.parametrize("count", [1, 2, 3])
async def test_how_hits_are_batched_changes_nothing(application: Application, idle_days: float, count: int) -> None:
    now = datetime.now(UTC)
    ids = [await put(application, f"{TEXT} {name}") for name in ("one", "two")]
    for id_ in ids:
        age(application, id_, idle_days)
    await run_job(application, "sweep", now + timedelta(days=400), area=area_of(Scope(application.tenant)))
    temperatures = Temperatures(application.pool, DAYS)
    moments = [now + timedelta(milliseconds=number) for number in range(count)]

    await temperatures.count([NoteHits(ids[0], count, moments[0], moments[-1])])
    for moment in moments:
        await temperatures.count([NoteHits(ids[1], 1, moment, moment)])

    together, singly = [await note(application, id_) for id_ in ids]
    for name in ("hits", "temperature"):
        assert together[name] == singly[name], name
    assert together["hits"] == 1 + count


async def test_counting_loses_no_hit_of_two_replicas_and_the_last_one_holds(application: Application) -> None:
    ids = [await put(application, f"{TEXT} {number}") for number in range(20)]
    temperatures = Temperatures(application.pool, DAYS)
    moments = [in_days(number / 24) for number in range(10)]
    batches = [[NoteHits(id_, 1, at, at) for id_ in order] for at in moments for order in (ids, ids[::-1])]

    await asyncio.gather(*(temperatures.count(batch) for batch in reversed(batches)))

    counted = [await note(application, id_) for id_ in ids]
    assert {item["hits"] for item in counted} == {21}
    assert {datetime.fromisoformat(item["last_hit_at"]) for item in counted} == {moments[-1]}


async def test_hits_of_a_deleted_note_are_nothing(application: Application) -> None:
    id_ = await put(application)
    await application.client().delete(f"/v1/notes/{id_}")
    before = checksums(application, application.tenant)

    promoted = await Temperatures(application.pool, DAYS).count([NoteHits(id_, 5, in_days(0), in_days(0))])

    assert promoted == []
    assert checksums(application, application.tenant) == before


async def test_sweeping_again_changes_nothing(application: Application) -> None:
    for number in range(5):
        await put(application, f"{TEXT} {number}")

    first = await sweep(application)
    state = checksums(application, application.tenant)
    second = await sweep(application)

    assert (first.counts.changed, second.counts.changed) == (5, 0)
    assert checksums(application, application.tenant) == state


async def test_sweeps_at_once_demote_each_note_once_and_those_that_come_too_late_say_so(alone: Application) -> None:
    for number in range(30):
        await put(alone, f"{TEXT} {number}")
    now = in_days(8)

    swept = await asyncio.gather(*(run_job(alone, "sweep", now, area=Area()) for _ in range(4)), return_exceptions=True)

    runs = [outcome for outcome in swept if isinstance(outcome, Run)]
    assert all(isinstance(outcome, Run | Conflict) for outcome in swept), swept
    assert sum(run.counts.changed for run in runs) == 30
    queued = dict(rows(alone, "SELECT projection, count(*) FROM outbox GROUP BY 1"))
    assert (queued["cold"], queued["notes"]) == (30, 30)


async def test_a_dry_run_tells_what_a_sweep_would_do_and_changes_nothing(application: Application) -> None:
    for number in range(3):
        await put(application, f"{TEXT} {number}", workspace=f"w{number % 2}")
    before = checksums(application, application.tenant)

    told = await run_job(application, "sweep", in_days(8), workspace="w0", is_dry_run=True)

    assert checksums(application, application.tenant) == before
    assert told.order.is_dry_run
    assert told.counts == RunCounts(units=1, seen=2, planned=2, changed=0)
    assert (await sweep(application, workspace="w0")).counts.changed == told.counts.planned


@pytest.mark.parametrize("page_rows", [1, 2, 3, 5])
async def test_a_sweep_in_small_pages_comes_to_the_same_as_in_a_large_one(
    application: Application, page_rows: int
) -> None:
    other = application.for_tenant(f"{application.tenant} of small pages")
    for app in (application, other):
        for number in range(8):
            age(app, await put(app, f"{TEXT} {number}", workspace=f"w{number % 5 % 2}"), number)

    whole = await run_job(application, "sweep", in_days(3.5))
    paged = await run_job(in_pages(other, page_rows), "sweep", in_days(3.5))

    assert paged.counts == whole.counts == RunCounts(units=2, seen=4, planned=4, changed=4)
    assert temperatures_of(other) == temperatures_of(application)
    await other.close_clients()


def temperatures_of(app: Application) -> list[tuple[Any, ...]]:
    """Return how warm each note is, and how many of its chunks have words."""
    return rows(
        app,
        "SELECT content, temperature, "
        "(SELECT count(*) FROM note_chunks c WHERE c.note_id = n.id AND c.tsv IS NOT NULL) "
        "FROM notes n WHERE tenant = %s ORDER BY content",
        app.tenant,
    )


async def test_a_note_that_is_found_between_the_decision_and_the_change_stays_warm(application: Application) -> None:
    found, idle = [await put(application, f"{TEXT} {name}") for name in ("found", "idle")]
    hits = Temperatures(application.pool, DAYS)

    async def find() -> None:
        await hits.count([NoteHits(found, 1, in_days(8), in_days(8))])

    swept = await run_watched(application, Watched(job_of(application, "sweep"), before_acting=find))
    await application.indexed()

    assert (swept.counts.planned, swept.counts.changed) == (2, 1)
    assert [(await note(application, id_))["temperature"] for id_ in (found, idle)] == ["warm", "cold"]
    assert await found_by(application) == {str(found): WARM, str(idle): COLD}


async def test_a_note_whose_hit_is_not_yet_committed_when_it_is_changed_stays_warm(application: Application) -> None:
    found, idle = [await put(application, f"{TEXT} {name}") for name in ("found", "idle")]

    async with await psycopg.AsyncConnection.connect(application.url) as hit:
        await hit.execute("UPDATE notes SET hits = hits + 1, last_hit_at = %s WHERE id = %s", (in_days(8), found))
        sweeping = asyncio.create_task(run_job(application, "sweep", in_days(8)))
        await is_waiting(hit)
        await hit.commit()
        swept = await sweeping

    assert (swept.counts.planned, swept.counts.changed) == (2, 1)
    assert [(await note(application, id_))["temperature"] for id_ in (found, idle)] == ["warm", "cold"]
    assert (await note(application, found))["hits"] == 2


async def is_waiting(holder: psycopg.AsyncConnection[Any]) -> None:
    """Return once somebody waits for what this connection has locked."""
    for _ in range(1200):
        cursor = await holder.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE pg_backend_pid() = ANY(pg_blocking_pids(pid))"
        )
        if (await cursor.fetchall())[0][0]:
            return
        await asyncio.sleep(0.05)
    raise AssertionError("nobody waits")


async def run_watched(app: Application, job: Watched, days: float = 8) -> Run:
    """Run a double of the sweep on the tenant of the application, as if so many days had passed."""
    return await driver_of(app, "sweep", job).start(Order("sweep", Area(app.tenant), in_days(days)))


async def test_the_job_and_the_law_agree(application: Application) -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    second = timedelta(seconds=1)
    cases = [
        (hits, lifespan(hits, DAYS) + off)
        for hits in (1, 2, 3, 7, 31, 1000, 10**9)
        for off in (-second, timedelta(0), second)
    ]
    expected = set()
    for number, (hits, idle) in enumerate(cases):
        id_ = await put(application, f"{TEXT} {number}")
        with psycopg.connect(application.url) as connection:
            connection.execute("UPDATE notes SET hits = %s, last_hit_at = %s WHERE id = %s", (hits, now - idle, id_))
        expected |= set() if is_warm(hits, now - idle, now, DAYS) else {id_}

    await run_job(application, "sweep", now, area=area_of(Scope(application.tenant)))

    cold = rows(application, "SELECT id FROM notes WHERE tenant = %s AND temperature = 'cold'", application.tenant)
    assert {row[0] for row in cold} == expected
    assert len(expected) == 14


@pytest.mark.parametrize(
    ("days", "after", "temperature"), [(7, 6, "warm"), (7, 8, "cold"), (2, 3, "cold"), (30, 8, "warm")]
)
async def test_the_days_of_a_lifespan_are_a_setting(
    database: str, tmp_path: Path, days: float, after: float, temperature: str
) -> None:
    settings = settings_for(database, tmp_path, cold={"days_per_doubling": days})
    async with running(settings, database, HashingModel(), follow=False) as app:
        await put(app, TEXT)
        await run_job(app, "sweep", in_days(after))

        assert rows(app, "SELECT temperature FROM notes") == [(temperature,)]


async def test_sweeping_one_tenant_leaves_every_row_of_another_unchanged(alone: Application) -> None:
    other = alone.for_tenant("other")
    for number in range(3):
        await put(alone, f"{TEXT} {number}")
        await put(other, f"{TEXT} {number}")
    before = checksums(alone, "other")

    swept = await sweep(alone)

    assert swept.counts.changed == 3
    assert checksums(alone, "other") == before
    await other.close_clients()


async def test_a_sweep_raises_the_epoch_of_each_namespace_it_touched(application: Application) -> None:
    await put(application, workspace="old")
    await put(application, workspace="new")
    age(application, await put(application, f"{TEXT} again", workspace="old"), 10)

    def epochs() -> dict[str, int]:
        return dict(rows(application, "SELECT workspace, epoch FROM epochs WHERE tenant = %s", application.tenant))

    before = epochs()
    await sweep(application, 0, workspace="old")
    await sweep(application, 0, workspace="new")

    assert epochs() == {"old": before["old"] + 1, "new": before["new"]}


async def test_changed_words_of_a_cold_note_are_found_and_the_old_ones_are_not(application: Application) -> None:
    id_ = await put(application)
    age(application, id_, 100)
    await sweep(application, 0)

    changed = await application.client().patch(f"/v1/notes/{id_}", json={"content": "The keel is painted"})
    await application.indexed()

    assert changed.json()["temperature"] == "warm"
    assert await found_by(application, "keel painted") == {str(id_): WARM}
    assert str(id_) not in await found_by(application, "anchor ferry rusty")
    assert cold_index(application).count(Scope(application.tenant)) == 0
    assert (await sweep(application, 0)).counts.planned == 0


async def test_a_change_begins_the_lifespan_anew(application: Application) -> None:
    id_ = await put(application)
    age(application, id_, 100)

    await application.client().patch(f"/v1/notes/{id_}", json={"importance": 0.9})

    assert (await sweep(application, 0)).counts.planned == 0
    assert (await note(application, id_))["temperature"] == "warm"


async def test_a_cold_note_with_another_tag_is_warm_again_with_all_its_words(application: Application) -> None:
    id_ = await put(application)
    await sweep(application)

    changed = await application.client().patch(f"/v1/notes/{id_}", json={"tags": ["ships"]})
    await application.indexed()

    assert (changed.json()["temperature"], changed.json()["tags"]) == ("warm", ["ships"])
    assert await found_by(application) == {str(id_): WARM}


@pytest.mark.parametrize(
    "content",
    [TEXT, "今日は成語しりとりをした", "🎉", " ".join(f"Sentence {number} is long." for number in range(2000))],
)
async def test_a_note_that_comes_back_has_the_words_it_had(application: Application, content: str) -> None:
    id_ = await put(application, content)
    chunks = "SELECT chunk, generation, tsv::text FROM note_chunks WHERE note_id = %s ORDER BY 1, 2"
    before = rows(application, chunks, id_)

    await sweep(application)
    between = rows(application, chunks, id_)
    promoted = await Temperatures(application.pool, DAYS).promote([id_], in_days(8))

    assert {row[2] for row in between} == {None}
    assert promoted == [id_]
    assert rows(application, chunks, id_) == before
    assert await Temperatures(application.pool, DAYS).promote([id_], in_days(8)) == []


async def test_deleting_a_cold_note_leaves_the_equal_one_of_another_user(application: Application) -> None:
    mine, theirs = await put(application, user="ann"), await put(application, user="bob")
    await sweep(application)

    await application.client().delete(f"/v1/notes/{mine}")
    await application.indexed()

    assert await found_by(application, user="ann") == {}
    assert await found_by(application, user="bob") == {str(theirs): COLD}
    assert cold_index(application).count(Scope(application.tenant)) == 1


async def test_a_cold_note_deleted_while_the_index_stands_still_is_never_returned(alone: Application) -> None:
    id_ = await put(alone)
    await sweep(alone)

    deleted = await alone.client().delete(f"/v1/notes/{id_}")
    meanwhile = await found_by(alone)
    pending = (await alone.services.reads.outbox.lag())["cold"].pending
    held = cold_index(alone).count(Scope(alone.tenant))
    await alone.indexed()

    assert deleted.status_code == 204
    assert meanwhile == {}
    assert (pending, held) == (1, 1)
    assert (await alone.services.reads.outbox.lag())["cold"].pending == 0
    assert cold_index(alone).count(Scope(alone.tenant)) == 0


async def test_a_delete_that_the_cold_index_refuses_is_tried_again(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        id_ = await put(app)
        await sweep(app)
        index = cold_index(app)

        def refuse(changes: Sequence[Change[Any]]) -> None:
            raise OSError("disk on fire")

        with monkeypatch.context() as patched:
            patched.setattr(index, "apply", refuse)
            await app.client().delete(f"/v1/notes/{id_}")
            await asyncio.sleep(0.2)
            refused = (await app.services.reads.outbox.lag())["cold"].pending, await found_by(app)
        for _ in range(1200):
            if index.count(Scope(app.tenant)) == 0:
                break
            await asyncio.sleep(0.05)

        assert refused == (1, {})
        assert index.count(Scope(app.tenant)) == 0


async def test_before_the_indexes_hear_of_it_no_note_is_shown_at_the_wrong_temperature(alone: Application) -> None:
    id_ = await put(alone)

    await run_job(alone, "sweep", in_days(8), area=Area())
    unheard = await found_by(alone)
    await alone.indexed()
    await Temperatures(alone.pool, DAYS).promote([id_], in_days(8))
    promoted = await found_by(alone)
    await alone.indexed()

    assert unheard == {}
    assert promoted == {str(id_): {"notes_warm"}}
    assert await found_by(alone) == {str(id_): WARM}


async def test_each_namespace_has_its_own_collection_and_sees_only_its_own(alone: Application) -> None:
    ids = {name: await put(alone, namespace=name) for name in ("one", "two")}
    await put(alone, namespace="three")
    for name in ids:
        await sweep(alone, namespace=name)

    assert len(cold_index(alone).collections()) == 2
    for name, id_ in ids.items():
        assert await found_by(alone, namespace=name) == {str(id_): COLD}
    assert set((await found_by(alone, namespace="three")).values().__iter__().__next__()) == WARM


async def test_searching_a_scope_without_cold_notes_creates_no_collection(alone: Application, tmp_path: Path) -> None:
    await put(alone)

    await found_by(alone)
    await found_by(alone, workspace="nowhere")

    assert not (tmp_path / "edge" / "cold").exists()


async def test_cold_notes_are_found_after_a_restart_and_rebuilt_if_their_files_are_lost(
    database: str, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path)
    async with running(settings, database, HashingModel(), follow=False) as first:
        id_ = await put(first)
        first_is_new = "cold" in first.tiers["notes"].new
        await sweep(first)
    async with running(settings, database, HashingModel(), follow=False) as second:
        kept = "cold" in second.tiers["notes"].new, await found_by(second)
        second.services.hits._buffer.take(10)
    await asyncio.to_thread(shutil.rmtree, tmp_path / "edge" / "cold")
    async with running(settings, database, HashingModel(), follow=False) as third:
        lost = "cold" in third.tiers["notes"].new, await found_by(third)
        queued = await asyncio.to_thread(enqueue_all, database, "cold")
        await third.indexed()
        rebuilt = await found_by(third)

    assert first_is_new
    assert kept == (False, {str(id_): COLD})
    assert lost == (True, {})
    assert queued == 1
    assert rebuilt == {str(id_): COLD}


async def test_more_collections_than_may_be_open_are_all_searched(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, cold={"max_open": 2})
    async with running(settings, database, HashingModel(), follow=False) as app:
        for number in range(4):
            await put(app, f"{TEXT} {number}", namespace=f"n{number}")
            await sweep(app, namespace=f"n{number}")

        found = [await found_by(app, namespace=f"n{number}") for number in range(4)]

        assert [set.union(*item.values()) for item in found] == [COLD] * 4
        assert cold_index(app).open_count() == 2


async def test_one_collection_may_be_shared(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, cold={"collections": "shared"})
    async with running(settings, database, HashingModel(), follow=False) as app:
        ids = {name: await put(app, namespace=name) for name in ("one", "two")}
        for name in ids:
            await sweep(app, namespace=name)

        assert len(list((tmp_path / "edge" / "cold").glob(f"*/{SHARD}"))) == 1
        for name, id_ in ids.items():
            assert await found_by(app, namespace=name) == {str(id_): COLD}


async def test_a_search_writes_nothing_and_its_hits_wait_until_writing_is_possible(
    database: str, tmp_path: Path
) -> None:
    settings = settings_for(database, tmp_path, pool={"min_size": 1, "max_size": 1}, search={"hit_flush_s": 3600})
    async with running(settings, database, HashingModel(), follow=False) as app:
        id_ = await put(app)
        client = app.client()
        await client.get("/v1/notes")

        await _only_read(app, on=True)
        body = {"query": TEXT, "tiers": ["notes", "sessions"]}
        answers = [await client.post(f"/v1/{name}", json=body) for name in ("search", "context")]
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            await app.counted()
        await _only_read(app, on=False)
        await app.counted()

        assert [answer.status_code for answer in answers] == [200, 200]
        assert [answer.json()["degraded"] for answer in answers] == [[], []]
        assert (await note(app, id_))["hits"] == 3


async def _only_read(app: Application, *, on: bool) -> None:
    """Forbid the only connection of the pool to write, or allow it again."""
    async with app.pool.connection() as connection:
        await connection.execute(f"SET default_transaction_read_only = {'on' if on else 'off'}".encode())


async def test_hits_in_memory_are_counted_when_the_application_ends(unshared: Application) -> None:
    id_ = await put(unshared)

    async with unshared.api.router.lifespan_context(unshared.api):
        await found_by(unshared)
        assert (await note(unshared, id_))["hits"] == 1

    assert (await note(unshared, id_))["hits"] == 2


async def test_hits_do_not_influence_the_search_that_caused_them(application: Application) -> None:
    await put(application)

    answer = await application.client().post("/v1/search", json={"query": TEXT, "explain": True, "tiers": ["notes"]})
    again = await application.client().post("/v1/search", json={"query": TEXT, "explain": True, "tiers": ["notes"]})

    assert answer.json()["results"][0]["score"] == again.json()["results"][0]["score"]


def test_the_command_line_reindexes_cold_notes(database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LAMINA_POSTGRES__KIND", "server")
    monkeypatch.setenv("LAMINA_POSTGRES__URL", database)
    for temperature in ("cold", "warm"):
        _insert_note(database, temperature)

    said = CliRunner().invoke(cli, ["reindex", "cold"]).output

    assert "takes over 1 memories" in said


def _insert_note(database: str, temperature: str) -> None:
    with psycopg.connect(database) as connection:
        connection.execute(
            "INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, "
            "confidence, source, event_at, temperature) VALUES (%s, 'acme', 'w', 'n', 'note', 'x', %s, 1, 1, 'api', "
            "now(), %s)",
            (uuid4(), temperature.encode(), temperature),
        )
