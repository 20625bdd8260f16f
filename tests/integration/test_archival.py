"""The job archival over a real Postgres and real files: what goes, what stays, and what comes back."""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from lamina.core.areas import Area
from lamina.core.memories import RestoreStatus
from lamina.core.runs import Order, Run, RunState
from lamina.errors import Misconfigured, NotFound, Unavailable
from lamina.maintenance.archival import ArchivalJob, ArchivalPolicy
from lamina.maintenance.archive_keeper import ArchiveKeeper, erase_archived
from lamina.maintenance.archived_notes import ArchivedNotes
from lamina.models.hashing import HashingModel
from lamina.stores.archive import Archive, ArchivedNote, ArchiveFile, UnreadableArchive, scope_folder
from lamina.stores.archive.files import MARK
from lamina.stores.postgres.archive_catalog import ArchiveCatalog
from lamina.wiring.archives import build_archive, build_archived_notes
from tests.support.application import Application, running, settings_for
from tests.support.jobs import WatchedRemoval, driver_of, in_days, in_pages, job_of, run_job, undo_run

MOMENT = in_days(200)
TABLES = {
    "notes": "tenant = %(tenant)s",
    "note_chunks": "tenant = %(tenant)s",
    "note_versions": "note_id IN (SELECT id FROM notes WHERE tenant = %(tenant)s)",
    "note_sources": "note_id IN (SELECT id FROM notes WHERE tenant = %(tenant)s)",
    "memory_links": "tenant = %(tenant)s",
    "entities": "tenant = %(tenant)s",
    "edges": "tenant = %(tenant)s",
    "edge_evidence": "edge_id IN (SELECT id FROM edges WHERE tenant = %(tenant)s)",
}
MEETINGS = (
    "Ada Lovelace works at Analytical Engines since the spring",
    "Ada Lovelace works at Analytical Engines with Charles Babbage every spring",
    "Charles Babbage lives in London near the old harbour",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "cold"


@pytest.fixture
def app(application: Application, folder: Path) -> Application:
    """The application with an archive of this test alone."""
    return with_archive(application, folder)


def with_archive(application: Application, folder: Path) -> Application:
    chosen = application.settings.jobs.archival.model_copy(update={"url": str(folder)})
    jobs_of = application.settings.jobs.model_copy(update={"archival": chosen})
    return replace(application, settings=application.settings.model_copy(update={"jobs": jobs_of}))


async def add(app: Application, *contents: str, **fields: Any) -> list[UUID]:
    client = app.client()
    answers = [await client.post("/v1/notes", json={"content": content, **fields}) for content in contents]
    assert {answer.status_code for answer in answers} == {201}
    return [UUID(answer.json()["id"]) for answer in answers]


async def execute(app: Application, statement: str, **parameters: Any) -> list[dict[str, Any]]:
    async with app.pool.connection() as connection:
        cursor = await connection.execute(statement.encode(), {"tenant": app.tenant, **parameters})
        return await cursor.fetchall() if cursor.description else []


async def cooled(app: Application) -> None:
    await run_job(app, "sweep", in_days(40))


async def archived(app: Application, moment: datetime = MOMENT, **order: Any) -> Run:
    return await run_job(app, "archival", moment, **{"is_forced": True, **order})


async def state(app: Application) -> dict[str, list[str]]:
    """Return every row of the tenant, as text, but for what no note is made of."""
    # What comes back is cold from then on.
    row = "(to_jsonb(t) - 'temperature_changed_at')::text"
    texts = {name: f"SELECT {row} AS r FROM {name} t WHERE {mine}" for name, mine in TABLES.items()}  # noqa: S608
    rows = {name: await execute(app, text) for name, text in texts.items()}
    return {name: sorted(row["r"] for row in found) for name, found in rows.items()}


async def ids_of(app: Application) -> set[UUID]:
    return {row["id"] for row in await execute(app, "SELECT id FROM notes WHERE tenant = %(tenant)s")}


async def listed(app: Application) -> list[dict[str, Any]]:
    return await execute(app, "SELECT * FROM archived_notes WHERE tenant = %(tenant)s ORDER BY id")


def archive_of(app: Application) -> Archive:
    return build_archive(app.settings)


def archives_of(app: Application) -> ArchivedNotes:
    return build_archived_notes(app.settings, app.pool)


def keeper_of(app: Application) -> ArchiveKeeper:
    return ArchiveKeeper(app.pool, archive_of(app))


async def restore(app: Application, ids: Collection[UUID]) -> dict[UUID, RestoreStatus]:
    return {item.id: item.status for item in await keeper_of(app).restore(app.tenant, list(ids))}


async def erase(app: Application, id_: UUID) -> None:
    entries = await ArchiveCatalog(app.pool).find(app.tenant, [id_])
    if not entries or not await keeper_of(app).erase_all(app.tenant, entries, datetime.now(UTC)):
        raise NotFound("note", str(id_))


def parquet(folder: Path) -> list[Path]:
    return sorted(folder.rglob("*.parquet"))


def files(folder: Path) -> list[Path]:
    """Return every file but the marks of folders, which stay."""
    return sorted(path for path in folder.rglob("*") if path.is_file() and path.name != MARK)


async def test_archived_notes_come_back_with_every_column_vector_version_and_link(
    app: Application, folder: Path
) -> None:
    # given
    ids = await add(app, *MEETINGS, user="ada", agent="one", session="s", swarm="w", tags=["b", "a"], importance=0.3)
    patched = {"content": MEETINGS[0] + " 🚢", "metadata": {"deep": [1, 1.5, None, {"é": 0.1}], "n": 2**60}}
    await app.client().patch(f"/v1/notes/{ids[0]}", json=patched)
    await execute(app, "UPDATE notes SET weight = 0.1 + random() / 2, hits = 3 WHERE tenant = %(tenant)s")
    await cooled(app)
    before = await state(app)
    assert all(before[name] for name in ("notes", "note_chunks", "note_versions", "memory_links", "entities"))
    assert len(before["memory_links"]) > len(ids)

    # when
    run = await archived(app)
    between = await state(app)
    outcomes = await keeper_of(app).restore(app.tenant, ids)
    after = await state(app)

    # then
    assert (run.state, run.counts.changed, run.counts.removed) == (RunState.DONE, 3, 3)
    assert between == before | {name: [] for name in ("notes", "note_chunks", "note_versions", "memory_links")}
    assert [(item.id, item.status, item.lacks_vectors) for item in outcomes] == [
        (id_, RestoreStatus.RESTORED, False) for id_ in ids
    ]
    assert after == before
    assert await listed(app) == []
    assert files(folder) == []


async def test_an_archived_note_comes_back_into_its_session_as_that_is_called_by_then(app: Application) -> None:
    [renamed] = await add(app, MEETINGS[0], session="s")
    await add(app, MEETINGS[1])
    await cooled(app)
    await archived(app)
    await execute(app, "UPDATE archived_notes SET session_id = 't' WHERE session_id = 's' AND tenant = %(tenant)s")

    await restore(app, [row["id"] for row in await listed(app)])

    rows = await execute(app, "SELECT id, session_id FROM notes WHERE tenant = %(tenant)s")
    sessions = {row["id"]: row["session_id"] for row in rows}
    assert (len(sessions), sessions.pop(renamed), list(sessions.values())) == (2, "t", [None])


async def test_a_note_of_which_its_file_alone_says_the_session_comes_back_into_that(app: Application) -> None:
    [note] = await add(app, MEETINGS[0], session="s")
    await cooled(app)
    await archived(app)
    await execute(app, "UPDATE archived_notes SET session_id = NULL WHERE tenant = %(tenant)s")

    await restore(app, [note])

    [row] = await execute(app, "SELECT session_id FROM notes WHERE tenant = %(tenant)s")
    assert row["session_id"] == "s"


async def test_a_file_holds_what_is_archived_in_the_folder_of_its_scope(app: Application, folder: Path) -> None:
    await add(app, "one of the first place")
    await add(app, "one of the second place", namespace="other")
    await cooled(app)

    await archived(app)

    rows = await listed(app)
    archive = archive_of(app)
    [identity] = await execute(app, "SELECT id FROM archive_identity")
    assert {row["file"].rpartition("/")[0] for row in rows} == {
        f"{identity['id'].hex}/{scope_folder(app.tenant, 'default', namespace)}" for namespace in ("default", "other")
    }
    assert [note.id for row in rows for note in archive.read(row["file"])] == [row["id"] for row in rows]
    assert archive.verify() == []
    assert all(row["archived_at"] == MOMENT for row in rows)


@pytest.mark.parametrize(
    "change",
    [
        "temperature = 'warm'",
        "hits = 4",
        "last_hit_at = now() + interval '21 days'",
        "deleted_at = now()",
        "expires_at = now() + interval '900 days'",
    ],
)
async def test_what_is_warm_or_found_or_over_stays(app: Application, folder: Path, change: str) -> None:
    (kept, _) = await add(app, "the one that stays", "another thing entirely")
    await cooled(app)
    await execute(app, f"UPDATE notes SET {change} WHERE id = %(id)s", id=kept)  # noqa: S608

    run = await archived(app)

    assert run.counts.changed == 1
    assert await ids_of(app) == {kept}


@pytest.mark.parametrize("is_pinned", [False, True])
async def test_a_restored_note_stays_for_as_long_as_one_that_was_found(app: Application, is_pinned: bool) -> None:
    [id_] = await add(app, "The buoy at the harbour is green")
    now = datetime.now(UTC)
    last = {"at": now - timedelta(days=400), "cold": now - timedelta(days=380)}
    change = "UPDATE notes SET temperature = 'cold', last_hit_at = %(at)s, temperature_changed_at = %(cold)s"
    await execute(app, f"{change} WHERE tenant = %(tenant)s", **last)
    assert (await archived(app, now)).counts.changed == 1
    if is_pinned:
        pin = "INSERT INTO feedback (tenant, memory_id, pinned_at) VALUES (%(tenant)s, %(id)s, now())"
        await execute(app, pin, id=id_)

    assert await restore(app, [id_]) == {id_: RestoreStatus.RESTORED}
    later = [(await archived(app, now + timedelta(days=days))).counts.changed for days in (7, 179, 181)]

    assert later == [0, 0, int(not is_pinned)]


async def test_notes_at_the_thresholds_go(app: Application) -> None:
    await add(app, "exactly as long, exactly as often")
    await cooled(app)
    await execute(
        app,
        "UPDATE notes SET hits = 3, last_hit_at = %(at)s WHERE tenant = %(tenant)s",
        at=MOMENT - timedelta(days=180),
    )

    assert (await archived(app)).counts.changed == 1


async def test_what_others_were_made_from_and_what_was_made_of_others_stays(app: Application) -> None:
    sources = await add(app, "the first fact", "a second thing")
    summary = await add(app, "both of them in short", derived_from=[str(id_) for id_ in sources])
    await add(app, "nobody refers to this")
    await cooled(app)

    await archived(app)

    assert await ids_of(app) == {*sources, *summary}


async def test_a_note_that_is_being_made_into_another_stays_with_it(app: Application) -> None:
    (source,) = await add(app, "the fact that counts")
    await cooled(app)

    async def derive() -> None:
        await add(app, "made of it meanwhile", derived_from=[str(source)])

    run = await driver_of(app, "archival", WatchedRemoval(job_of(app, "archival"), before_acting=derive)).start(
        order(app)
    )

    assert (run.counts.planned, run.counts.changed) == (1, 0)
    assert source in await ids_of(app)


def order(app: Application, moment: datetime = MOMENT) -> Order:
    return Order("archival", Area(app.tenant), moment, is_forced=True)


async def test_what_was_found_or_changed_since_the_decision_stays_and_is_in_no_file(
    app: Application, folder: Path
) -> None:
    # given
    found, rewritten, gone = await add(app, "somebody finds this", "somebody rewrites that", "nobody wants it")
    await cooled(app)

    async def change() -> None:
        await execute(app, "UPDATE notes SET hits = hits + 1 WHERE id = %(id)s", id=found)
        await execute(app, "UPDATE notes SET version = version + 1 WHERE id = %(id)s", id=rewritten)

    # when
    run = await driver_of(app, "archival", WatchedRemoval(job_of(app, "archival"), before_acting=change)).start(
        order(app)
    )

    # then
    assert (run.counts.planned, run.counts.changed) == (3, 1)
    assert await ids_of(app) == {found, rewritten}
    (row,) = await listed(app)
    assert [note.id for note in archive_of(app).read(row["file"])] == [gone]


async def test_a_dry_run_and_a_scope_that_is_held_write_no_file(app: Application, folder: Path) -> None:
    await add(app, "alpha", "beta", "gamma", "delta", "epsilon")
    await cooled(app)
    await execute(
        app, "UPDATE notes SET temperature = 'warm' WHERE tenant = %(tenant)s AND content NOT IN ('alpha', 'beta')"
    )

    dry = await archived(app, is_dry_run=True)
    held = await archived(app, is_forced=False)

    assert (dry.state, dry.counts.planned, dry.counts.removed) == (RunState.DONE, 2, 2)
    assert (held.state, held.counts.changed) == (RunState.STOPPED, 0)
    assert [(item.size, item.removals) for item in held.held] == [(5, 2)]
    assert (len(await ids_of(app)), await listed(app), files(folder)) == (5, [], [])

    await execute(app, "UPDATE notes SET temperature = 'warm' WHERE tenant = %(tenant)s AND content = 'beta'")
    assert (await archived(app, is_forced=False)).counts.changed == 1


async def test_a_second_run_changes_nothing(app: Application, folder: Path) -> None:
    await add(app, "one", "two")
    await cooled(app)
    first = await archived(app)
    written = [(path, path.read_bytes()) for path in files(folder)]

    second = await archived(app, MOMENT + timedelta(days=7))

    assert (first.counts.changed, second.counts.changed) == (2, 0)
    assert [(path, path.read_bytes()) for path in files(folder)] == written


async def test_a_scope_is_archived_page_by_page(app: Application, folder: Path) -> None:
    ids = await add(app, *(f"number {name}" for name in ("one", "two", "three", "four", "five")))
    await cooled(app)

    run = await archived(in_pages(app, 2))

    assert (run.counts.seen, run.counts.changed, len(parquet(folder))) == (5, 5, 3)
    assert {row["id"] for row in await listed(app)} == set(ids)


async def test_a_page_of_long_notes_ends_early(app: Application, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("lamina.maintenance.archival.MOST_BYTES", 30)
    await add(app, "a long one: " + "ocean " * 20, "short", "brief", "tiny")
    await cooled(app)

    run = await archived(app)

    assert run.counts.changed == 4
    assert len(parquet(folder)) == 2


class Crash(BaseException):
    """The process ends here."""


@dataclass
class Failing:
    """An archive in which something happens after a file is written."""

    archive: Archive
    error: Exception
    times: int = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(self.archive, name)

    def write(self, name: str, notes: list[ArchivedNote], *, now: datetime) -> ArchiveFile:
        written = self.archive.write(name, notes, now=now)
        self.times -= 1
        if self.times >= 0:
            raise self.error
        return written


def job_with(app: Application, archive: Any) -> ArchivalJob:
    return ArchivalJob(app.pool, archive, ArchivalPolicy(timedelta(days=180), 3), page_rows=2)


async def test_a_crash_between_the_file_and_the_transaction_loses_nothing_and_is_made_up_for(
    app: Application, folder: Path
) -> None:
    # given
    ids = await add(app, "one", "two", "three")
    await cooled(app)
    before = await state(app)
    with pytest.raises(Crash):
        await driver_of(app, "archival", job_with(app, Failing(archive_of(app), Crash()))).start(order(app))
    left = parquet(folder)
    assert (await state(app), await listed(app), len(left)) == (before, [], 1)

    # when
    again = await driver_of(app, "archival", job_with(app, archive_of(app))).start(order(app))

    # then
    assert again.counts.changed == 3
    assert left[0] in parquet(folder)
    assert archive_of(app).verify() == []
    assert await restore(app, ids) == dict.fromkeys(ids, RestoreStatus.RESTORED)
    assert await state(app) == before


async def test_what_a_crash_left_in_a_file_is_taken_out_by_the_next_run(app: Application, folder: Path) -> None:
    # given
    await add(app, "a secret of the harbour")
    await cooled(app)
    with pytest.raises(Crash):
        await driver_of(app, "archival", job_with(app, Failing(archive_of(app), Crash()))).start(order(app))
    assert len(parquet(folder)) == 1

    # when somebody finds the note, and nothing is due any more
    await execute(app, "UPDATE notes SET temperature = 'warm' WHERE tenant = %(tenant)s")
    await archived(app, MOMENT + timedelta(days=7))

    # then
    assert files(folder) == []


class Halfway(Archive):
    """An archive whose process ends between the data of a file and its manifest."""

    def _put(self, file: str, data: bytes) -> None:
        if file.endswith(".manifest.json"):
            raise Crash
        super()._put(file, data)


async def crashed_halfway(app: Application, folder: Path) -> Path:
    """Crash while a file is written; return the data, which no manifest tells of."""
    with pytest.raises(Crash):
        await driver_of(app, "archival", job_with(app, Halfway(str(folder)))).start(order(app))
    (data,) = parquet(folder)
    assert {path.name.partition(".")[2] for path in files(folder)} == {"parquet", "manifest.next.json"}
    assert await listed(app) == []
    return data


async def test_data_without_a_manifest_is_taken_away_by_the_next_run(app: Application, folder: Path) -> None:
    await add(app, "a secret of the harbour")
    await cooled(app)
    await crashed_halfway(app, folder)
    await execute(app, "UPDATE notes SET temperature = 'warm' WHERE tenant = %(tenant)s")

    await archived(app, MOMENT + timedelta(days=7))

    assert files(folder) == []


async def test_a_page_that_goes_on_takes_away_what_its_crash_left_under_another_name(
    app: Application, folder: Path
) -> None:
    # given
    ids = sorted(await add(app, "one", "two", "three"))
    await cooled(app)
    data = await crashed_halfway(app, folder)

    # when the first note is found meanwhile
    await execute(app, "UPDATE notes SET temperature = 'warm' WHERE id = %(id)s", id=ids[0])
    await driver_of(app, "archival", job_with(app, archive_of(app))).start(order(app))

    # then
    assert not data.exists()
    assert {row["id"] for row in await listed(app)} == set(ids[1:])


@pytest.mark.parametrize("left", ["data", "part", "part of another"])
async def test_an_erasure_leaves_nothing_of_the_user_in_any_file(app: Application, folder: Path, left: str) -> None:
    # given
    await add(app, "a secret of the harbour", user="ada")
    if left == "part of another":
        await add(app, "nobody's but bob's", user="bob")
    await cooled(app)
    if left == "part of another":
        await execute(app, "UPDATE notes SET temperature = 'warm' WHERE tenant = %(tenant)s AND user_id = 'ada'")
        await archived(app)
        (other,) = parquet(folder)
        other.with_name(f"{other.name}.0a.part").write_bytes(b"a secret of the harbour")
    else:
        data = await crashed_halfway(app, folder)
        if left == "part":
            data.rename(data.with_name(f"{data.name}.0a.part"))
            data.with_name(data.name.replace(".parquet", ".manifest.next.json")).unlink()

    # when
    await archives_of(app).erase_user(app.tenant, "ada", datetime.now(UTC))

    # then
    rows = await listed(app)
    assert {path.name.partition(".")[2] for path in files(folder)} <= {"parquet", "manifest.json"}
    assert len(files(folder)) == 2 * len(rows)
    assert [note.user for row in rows for note in archive_of(app).read(row["file"])] == ["bob"] * len(rows)


async def test_an_erased_note_leaves_with_what_a_crash_left_of_it(app: Application, folder: Path) -> None:
    ids = await add(app, "a secret of the harbour", "another")
    await cooled(app)
    stray = (await crashed_halfway(app, folder)).read_bytes()
    await archived(app)
    (data,) = parquet(folder)
    data.with_name("20200101t000000000000z_none.parquet").write_bytes(stray)

    await erase(app, ids[0])

    assert parquet(folder) == [data]


async def test_an_erasure_of_a_tenant_without_files_needs_no_archive(app: Application, folder: Path) -> None:
    nowhere = app.settings.jobs.archival.model_copy(update={"url": "nowhere://"})
    jobs_of = app.settings.jobs.model_copy(update={"archival": nowhere})
    settings = app.settings.model_copy(update={"jobs": jobs_of})

    assert await build_archived_notes(settings, app.pool).erase_user(app.tenant, "ada", MOMENT) == 0


async def test_two_databases_with_one_archive_leave_each_other_s_files_alone(
    app: Application, folder: Path, database: str, tmp_path: Path
) -> None:
    # given
    async with running(settings_for(database, tmp_path), database, HashingModel(), follow=False) as fresh:
        second = with_archive(fresh.for_tenant(app.tenant), folder)
        for place in (app, second):
            await add(place, "the same words", user="ada")
            await cooled(place)
        # Databases of tests are copies of one, and therefore have its id.
        await execute(second, "UPDATE archive_identity SET id = gen_random_uuid()")
        for place in (app, second):
            await archived(place)
        written = parquet(folder)
        assert len(written) == 2

        # when
        for place in (app, second):
            await archived(place, MOMENT + timedelta(days=7))
        assert parquet(folder) == written
        await archives_of(second).erase_user(second.tenant, "ada", datetime.now(UTC))

        # then
        assert (await listed(second), len(parquet(folder))) == ([], 1)
        ids = [row["id"] for row in await listed(app)]
        assert await restore(app, ids) == {ids[0]: RestoreStatus.RESTORED}
        await fresh.close_clients()
        await second.close_clients()


def move(folder: Path, to: Path) -> None:
    folder.rename(to)


async def test_nothing_is_concluded_from_an_archive_that_is_away(app: Application, folder: Path) -> None:
    # given
    ids = await add(app, "one", "two", user="ada")
    await cooled(app)
    run = await archived(app)
    await add(app, "three")
    await cooled(app)
    before = await state(app), await listed(app)
    move(folder, folder.with_name("unmounted"))

    # when
    calls = [
        lambda: archives_of(app).erase_user(app.tenant, "ada", MOMENT),
        lambda: archives_of(app).erase(app.tenant, ids[0], MOMENT),
        lambda: archives_of(app).erase_user(app.tenant, "bob", MOMENT),
        lambda: restore(app, ids),
        lambda: archived(app, MOMENT + timedelta(days=7)),
        lambda: undo_run(app, run),
    ]
    for call in calls:
        with pytest.raises(Unavailable, match=r"folder\.mark is missing; mount its volume"):
            await call()

    # then
    assert (await state(app), await listed(app), files(folder)) == (*before, [])
    move(folder.with_name("unmounted"), folder)
    assert await archives_of(app).erase_user(app.tenant, "ada", MOMENT) == 2
    assert (await listed(app), files(folder)) == ([], [])


async def test_what_is_lost_for_good_can_be_erased_as_long_as_the_mark_is_there(app: Application, folder: Path) -> None:
    await add(app, "one", user="ada")
    await cooled(app)
    await archived(app)
    for path in files(folder):
        path.unlink()

    assert await archives_of(app).erase_user(app.tenant, "ada", MOMENT) == 1
    assert await listed(app) == []


async def in_three_files(app: Application, folder: Path) -> tuple[Run, list[dict[str, Any]]]:
    """Archive three notes of a user, and damage the first two of their files."""
    await add(app, "one", "two", "three", user="ada")
    await cooled(app)
    run = await archived(in_pages(app, 1))
    rows = sorted(await listed(app), key=lambda row: str(row["file"]))
    for row in rows[:2]:
        (folder / f"{row['file']}.parquet").write_bytes(b"damaged")
    return run, rows


async def test_an_undo_restores_all_but_the_damaged_files_and_names_them(app: Application, folder: Path) -> None:
    run, rows = await in_three_files(app, folder)
    undamaged = {path: path.read_bytes() for path in parquet(folder)}

    with pytest.raises(UnreadableArchive) as raised:
        await undo_run(app, run)

    assert all(row["file"] in str(raised.value) for row in rows[:2])
    assert await ids_of(app) == {rows[2]["id"]}
    assert {row["id"] for row in await listed(app)} == {row["id"] for row in rows[:2]}
    assert {path: path.read_bytes() for path in parquet(folder)}.items() < undamaged.items()


async def test_an_undo_goes_on_once_a_damaged_file_is_put_back(app: Application, folder: Path) -> None:
    await add(app, "one", "two")
    await cooled(app)
    run = await archived(in_pages(app, 1))
    (first, _) = parquet(folder)
    whole = first.read_bytes()
    first.write_bytes(b"damaged")
    with pytest.raises(UnreadableArchive):
        await undo_run(app, run)

    first.write_bytes(whole)
    undone = await undo_run(app, run)

    assert (undone.changed, await listed(app), files(folder)) == (1, [], [])


async def test_an_erasure_goes_past_damaged_files_and_names_them(app: Application, folder: Path) -> None:
    _, rows = await in_three_files(app, folder)

    with pytest.raises(UnreadableArchive) as raised:
        await archives_of(app).erase_user(app.tenant, "ada", MOMENT)

    assert all(row["file"] in str(raised.value) for row in rows[:2])
    assert {row["id"] for row in await listed(app)} == {row["id"] for row in rows[:2]}
    assert not (folder / f"{rows[2]['file']}.parquet").exists()


async def test_a_damaged_file_of_others_does_not_hold_up_an_erasure(app: Application, folder: Path) -> None:
    await add(app, "one", user="bob")
    await cooled(app)
    await archived(app)
    (file,) = parquet(folder)
    file.write_bytes(b"damaged")
    await add(app, "two", user="ada")
    await cooled(app)
    await archived(app, MOMENT + timedelta(days=7))

    assert await archives_of(app).erase_user(app.tenant, "ada", MOMENT) == 1
    assert [row["user_id"] for row in await listed(app)] == ["bob"]


async def test_an_archive_that_does_not_answer_leaves_every_note_and_no_file(app: Application, folder: Path) -> None:
    await add(app, "one")
    await cooled(app)
    before = await state(app)
    failing = Failing(archive_of(app), Unavailable("archive", "no room"))

    with pytest.raises(Unavailable, match="no room"):
        await driver_of(app, "archival", job_with(app, failing)).start(order(app))

    assert (await state(app), await listed(app), files(folder)) == (before, [], [])


async def test_a_run_of_the_same_moment_overwrites_no_file_that_has_something(app: Application, folder: Path) -> None:
    # given
    ids = sorted(await add(app, "one", "two"))
    await cooled(app)
    await archived(app)
    await restore(app, ids[:1])

    # when
    await archived(app)

    # then
    assert len(parquet(folder)) == 2
    assert await restore(app, ids) == dict.fromkeys(ids, RestoreStatus.RESTORED)
    assert files(folder) == []


async def test_an_undo_brings_a_whole_run_back_and_removes_its_files(app: Application, folder: Path) -> None:
    # given
    await add(app, "one", "two", "three")
    await add(app, "elsewhere", namespace="other")
    await cooled(app)
    before = await state(app)
    run = await archived(in_pages(app, 2))
    assert len(parquet(folder)) == 3

    # when
    undone = await undo_run(app, run)

    # then
    assert (undone.seen, undone.changed) == (4, 4)
    assert (await state(app), await listed(app), files(folder)) == (before, [], [])


async def test_an_undo_leaves_in_the_archive_what_was_written_again(app: Application, folder: Path) -> None:
    again, other = await add(app, "written twice", "written once")
    await cooled(app)
    run = await archived(app)
    (new,) = await add(app, "written twice")

    undone = await undo_run(app, run)

    assert (undone.seen, undone.changed) == (2, 1)
    assert await ids_of(app) == {new, other}
    assert [(row["id"], row["run_id"]) for row in await listed(app)] == [(again, None)]
    assert await restore(app, [again]) == {again: RestoreStatus.EXISTED}
    await execute(app, "UPDATE notes SET deleted_at = now() WHERE id = %(id)s", id=new)
    assert await restore(app, [again]) == {again: RestoreStatus.RESTORED}


async def test_two_archived_copies_of_one_text_do_not_both_come_back(app: Application) -> None:
    first = await add(app, "the same words")
    await cooled(app)
    await archived(app)
    second = await add(app, "the same words")
    await cooled(app)
    await archived(app, MOMENT + timedelta(days=1))

    outcomes = await restore(app, [*first, *second])

    assert sorted(outcomes.values()) == [RestoreStatus.EXISTED, RestoreStatus.RESTORED]


async def test_restoring_again_changes_nothing(app: Application) -> None:
    (id_, other) = await add(app, "one", "two")
    await cooled(app)
    await archived(app)

    first = await restore(app, [id_])
    after = await state(app)
    second = await restore(app, [id_, UUID(int=7)])

    assert first == {id_: RestoreStatus.RESTORED}
    assert second == {id_: RestoreStatus.NOT_ARCHIVED, UUID(int=7): RestoreStatus.NOT_ARCHIVED}
    assert await state(app) == after
    assert [row["id"] for row in await listed(app)] == [other]


async def test_two_who_restore_the_same_notes_restore_each_once(app: Application, folder: Path) -> None:
    ids = await add(app, "one", "two", "three", "four")
    await cooled(app)
    await archived(app)

    one, two = await asyncio.gather(restore(app, ids[:3]), restore(app, ids[1:]))

    statuses = [*one.values(), *two.values()]
    assert statuses.count(RestoreStatus.RESTORED) == 4
    assert (await ids_of(app), files(folder)) == (set(ids), [])


async def test_another_tenant_can_neither_restore_nor_delete(app: Application, folder: Path) -> None:
    ids = await add(app, "one")
    await cooled(app)
    await archived(app)
    stranger = app.for_tenant(f"{app.tenant} too")

    assert await restore(stranger, ids) == {ids[0]: RestoreStatus.NOT_ARCHIVED}
    with pytest.raises(NotFound):
        await erase(stranger, ids[0])
    assert len(await listed(app)) == len(parquet(folder)) == 1


async def test_a_damaged_file_is_refused_and_nothing_is_changed(app: Application, folder: Path) -> None:
    # given
    damaged = await add(app, "one", "two")
    whole = await add(app, "three", namespace="other")
    await cooled(app)
    run = await archived(app)
    file = folder / f"{(await ArchiveCatalog(app.pool).find(app.tenant, damaged))[0].file}.parquet"
    data = file.read_bytes()
    file.write_bytes(data[:100] + bytes([data[100] ^ 1]) + data[101:])
    before = await state(app), await listed(app)

    # when
    with pytest.raises(UnreadableArchive):
        await erase_archived(
            app.pool,
            archive_of(app),
            app.tenant,
            await ArchiveCatalog(app.pool).find(app.tenant, [damaged[0]]),
            datetime.now(UTC),
        )
    outcomes = await keeper_of(app).restore(app.tenant, damaged)

    # then
    assert (await state(app), await listed(app)) == before
    assert {item.status for item in outcomes} == {RestoreStatus.UNREADABLE}
    assert all("expected SHA-256" in str(item.error) for item in outcomes)
    assert await restore(app, [*damaged, *whole]) == dict.fromkeys(damaged, RestoreStatus.UNREADABLE) | {
        whole[0]: RestoreStatus.RESTORED
    }
    with pytest.raises(UnreadableArchive):
        await undo_run(app, run)
    assert {row["id"] for row in await listed(app)} == set(damaged)


async def test_a_damaged_file_does_not_keep_others_from_being_archived(app: Application, folder: Path) -> None:
    ids = await add(app, "one", "two")
    await cooled(app)
    await archived(app)
    (file,) = parquet(folder)
    await execute(app, "DELETE FROM archived_notes WHERE id = %(id)s", id=ids[0])
    file.write_bytes(b"")
    await add(app, "three")
    await cooled(app)

    assert (await archived(app, MOMENT + timedelta(days=7))).counts.changed == 1


async def test_notes_without_vectors_of_the_active_generation_come_back_and_are_told(
    app: Application, folder: Path
) -> None:
    ids = await add(app, "one")
    await cooled(app)
    await archived(app)
    (row,) = await listed(app)
    (note,) = archive_of(app).read(row["file"])
    old = replace(note, chunks=tuple(chunk._replace(generation=32_000) for chunk in note.chunks))
    archive_of(app).write(row["file"], [old], now=MOMENT)

    (outcome,) = await keeper_of(app).restore(app.tenant, ids)

    assert (outcome.status, outcome.lacks_vectors) == (RestoreStatus.RESTORED, True)
    assert (await ids_of(app), (await state(app))["note_chunks"]) == (set(ids), [])


async def test_a_neighbour_that_stayed_is_linked_to_a_restored_note_as_before(app: Application) -> None:
    ids = await add(app, *MEETINGS)
    await cooled(app)
    await execute(app, "UPDATE notes SET hits = 4 WHERE id = ANY(%(ids)s)", ids=ids[1:])
    before = (await state(app))["memory_links"]
    assert await execute(app, "SELECT kind FROM memory_links WHERE to_id = %(id)s", id=ids[0])

    await archived(app)
    assert not await execute(app, "SELECT kind FROM memory_links WHERE to_id = %(id)s", id=ids[0])
    await restore(app, ids)

    assert (await state(app))["memory_links"] == before


@pytest.mark.parametrize("place", [0, 1], ids=["linked to", "linking"])
async def test_links_come_back_to_what_is_still_there_alone(app: Application, place: int) -> None:
    # given
    ids = await add(app, *MEETINGS)
    gone = ids.pop(place)
    await cooled(app)
    await execute(app, "UPDATE notes SET last_hit_at = now() + interval '150 days' WHERE id = ANY(%(ids)s)", ids=ids)
    before = (await state(app))["memory_links"]
    similar = [row for row in before if "similar" in row and str(gone) in row]
    assert similar
    await archived(app)

    # when the neighbour is rewritten, and an entity is gone
    await execute(app, "UPDATE notes SET updated_at = now() + interval '300 days' WHERE id = ANY(%(ids)s)", ids=ids)
    await execute(app, "DELETE FROM entities WHERE tenant = %(tenant)s AND name = 'Ada Lovelace'")
    await restore(app, [gone])

    # then
    rows = await execute(app, "SELECT l.* FROM memory_links l WHERE from_id = %(id)s OR to_id = %(id)s", id=gone)
    there = {row["id"] for row in await execute(app, "SELECT id FROM entities WHERE tenant = %(tenant)s")}
    assert rows
    assert {row["to_id"] for row in rows} <= there
    assert {row["kind"] for row in rows} == {"mentions"}


async def test_an_erased_note_leaves_nothing_in_the_file_nor_of_what_it_told(app: Application, folder: Path) -> None:
    # given
    secret = "Zacharias Quill works at Obsidian Vaults, and we met Ottoline Sparrow there"
    erased, other = await add(app, secret, "Mary Shelley lives in Geneva by the lake")
    await cooled(app)
    await archived(app)
    names = {row["name"] for row in await execute(app, "SELECT name FROM entities WHERE tenant = %(tenant)s")}
    assert {"Zacharias Quill", "Ottoline Sparrow", "Mary Shelley"} <= names

    # when
    await erase(app, erased)

    # then
    names = {row["name"] for row in await execute(app, "SELECT name FROM entities WHERE tenant = %(tenant)s")}
    assert not {name for name in names if {"Quill", "Vaults", "Sparrow"} & set(name.split())}
    assert "Mary Shelley" in names
    everything = str(await state(app))
    assert not [word for word in ("Quill", "Sparrow", "Obsidian") if word in everything]
    assert str(erased) not in everything
    assert [row["id"] for row in await listed(app)] == [other]
    (note,) = archive_of(app).read((await listed(app))[0]["file"])
    assert note.id == other
    for path in files(folder):
        assert b"Quill" not in path.read_bytes()
        assert erased.bytes not in path.read_bytes()
    with pytest.raises(NotFound):
        await erase(app, erased)


async def test_erasing_the_last_note_of_a_file_removes_it(app: Application, folder: Path) -> None:
    ids = await add(app, "one", "two")
    await cooled(app)
    await archived(app)

    for id_ in ids:
        await erase(app, id_)

    assert (await listed(app), files(folder)) == ([], [])


async def test_two_who_erase_from_the_same_file_leave_neither_note(app: Application, folder: Path) -> None:
    ids = await add(app, "one", "two", "three")
    await cooled(app)
    await archived(app)

    await asyncio.gather(*(erase(app, id_) for id_ in ids[:2]))

    (row,) = await listed(app)
    assert [note.id for note in archive_of(app).read(row["file"])] == [row["id"]] == ids[2:]


async def test_an_erasure_that_crashed_after_the_file_can_be_repeated(app: Application, folder: Path) -> None:
    erased, other = await add(app, "one", "two")
    await cooled(app)
    await archived(app)
    entry = (await ArchiveCatalog(app.pool).find(app.tenant, [erased]))[0]
    archive_of(app).rewrite_without(entry.file, [erased], now=MOMENT)

    assert await restore(app, [erased]) == {erased: RestoreStatus.UNREADABLE}
    await erase(app, erased)
    assert [row["id"] for row in await listed(app)] == [other]

    archive_of(app).remove(entry.file)
    await erase(app, other)
    assert (await listed(app), files(folder)) == ([], [])


async def test_what_was_merged_into_an_erased_note_does_not_come_back(app: Application) -> None:
    survivor, merged = await add(app, "the one that stood for both", "the other one")
    (made,) = await add(app, "made of the other", derived_from=[str(merged)])
    await execute(
        app,
        "UPDATE notes SET deleted_at = now(), merged_into = %(into)s WHERE id = %(id)s",
        into=survivor,
        id=merged,
    )
    await cooled(app)
    await archived(app)
    assert await ids_of(app) == {merged, made}

    await erase(app, survivor)

    rows = await execute(app, "SELECT id, deleted_at, merged_into FROM notes WHERE tenant = %(tenant)s")
    assert all(row["deleted_at"] is not None and row["merged_into"] is None for row in rows)


async def test_a_restored_note_is_no_longer_in_the_file(app: Application, folder: Path) -> None:
    back, _ = await add(app, "a password of old", "something else")
    await cooled(app)
    await archived(app)

    await restore(app, [back])

    (row,) = await listed(app)
    assert [note.id for note in archive_of(app).read(row["file"])] == [row["id"]]
    assert all(back.bytes not in path.read_bytes() for path in parquet(folder))


async def test_every_change_raises_the_epoch_and_ends_what_agents_were_told(app: Application) -> None:
    ids = await add(app, "one", "two")
    await cooled(app)

    async def taught() -> datetime:
        (row,) = await execute(app, "SELECT taught_at FROM epochs WHERE tenant = %(tenant)s AND namespace = 'default'")
        at: datetime = row["taught_at"]
        return at

    times = [await taught()]
    await archived(app)
    times.append(await taught())
    await restore(app, ids[:1])
    times.append(await taught())
    await erase(app, ids[1])
    times.append(await taught())
    assert times == sorted(set(times))


def test_without_its_libraries_the_archive_names_the_remedy(app: Application, monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str, *args: Any) -> Any:
        raise ModuleNotFoundError("No module named 'pyarrow'", name="pyarrow")

    monkeypatch.delitem(__import__("sys").modules, "lamina.stores.archive")
    monkeypatch.setattr("builtins.__import__", missing)
    with pytest.raises(Misconfigured, match=r"pyarrow is missing; install lamina-memory\[archive\]"):
        build_archive(app.settings)
