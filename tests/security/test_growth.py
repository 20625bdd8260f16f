"""What grows ends: versions, deleted rows, receipts, empty places, and the cold index of very many namespaces."""

import asyncio
import json
import time
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest

from lamina.core.memories import new_id
from lamina.core.ports import Change
from lamina.core.quotas import counted_spending
from lamina.core.runs import RunCounts
from lamina.core.scope import Scope
from lamina.core.seals import faults_of, load_public_keys
from lamina.core.tiers import ProjectionName
from lamina.models.hashing import HashingModel
from lamina.stores.archive.files import MARK
from lamina.stores.index.cold.collections import Collection
from lamina.stores.index.cold.edge import RENEWED_AT_ONCE, SHARD, ColdIndex
from lamina.stores.index.edge.shard import FORMAT, LOG, QdrantEdgeIndex
from lamina.stores.postgres.builds import claim_store
from lamina.stores.postgres.connection import connect
from lamina.stores.postgres.erasure import erase_notes
from lamina.stores.postgres.outbox import NAMESPACES, Outbox, enqueue, enqueue_notes
from tests.support.application import Application, index_of, running, settings_for
from tests.support.indexes import gone, placed
from tests.support.jobs import in_days, in_pages, run_job, undo_run

HISTORY = {"note_versions": 5, "profile_versions": 3}
NAMESPACES_OF_ONE = 300
FOUND_WITHIN_S = 20.0
NOTE_TO_COLD_COPIES = """
WITH made AS (
    INSERT INTO notes (id, tenant, workspace, namespace, category, content, content_hash, importance, confidence,
                       source, event_at, temperature)
    SELECT gen_random_uuid(), tenant, workspace, 'n' || number, category, content, content_hash, importance,
           confidence, source, event_at, 'cold'
    FROM notes CROSS JOIN generate_series(1, %(copies)s) AS number
    WHERE id = %(id)s
    RETURNING id, tenant, workspace, namespace
), chunks AS (
    INSERT INTO note_chunks (note_id, chunk, tenant, workspace, namespace, text_start, text_end, generation, embedding)
    SELECT made.id, c.chunk, made.tenant, made.workspace, made.namespace, c.text_start, c.text_end, c.generation,
           c.embedding
    FROM made JOIN note_chunks c ON c.note_id = %(id)s
)
INSERT INTO outbox (projection, memory_id, tenant, workspace, namespace)
SELECT 'cold', id, tenant, workspace, namespace FROM made
"""


@pytest.fixture
async def forgetful(database: str, tmp_path: Path) -> AsyncIterator[Application]:
    """An application that keeps few versions; its indexer works when the test says so."""
    settings = settings_for(database, tmp_path, history=HISTORY)
    async with running(settings, database, HashingModel(), follow=False) as app:
        yield app


async def add(app: Application, content: str, **fields: Any) -> str:
    answer = await app.client().post("/v1/notes", json={"content": content, **fields})
    assert answer.status_code == 201, answer.text
    id_: str = answer.json()["id"]
    return id_


async def change(app: Application, id_: str, **fields: Any) -> None:
    answer = await app.client().patch(f"/v1/notes/{id_}", json=fields)
    assert answer.status_code == 200, answer.text


async def versions(app: Application, id_: str) -> tuple[list[int], int]:
    """The numbers of a note's versions, and how many are said to be gone."""
    answer = (await app.client().get(f"/v1/notes/{id_}/versions")).json()
    return [version["version"] for version in answer["versions"]], answer["removed"]


def count(app: Application, table: str) -> int:
    with psycopg.connect(app.url) as connection:
        row = connection.execute(f"SELECT count(*) FROM {table}".encode()).fetchone()  # noqa: S608
    assert row is not None
    number: int = row[0]
    return number


def handles() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def mapped_mib() -> float:
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("RssFile"))
    return int(line.split()[1]) / 1024


async def test_of_a_note_that_is_changed_all_day_the_latest_versions_are_kept(forgetful: Application) -> None:
    id_ = await add(forgetful, "the ferry leaves at 0")
    before = await versions(forgetful, id_)

    for hour in range(1, 12):
        await change(forgetful, id_, content=f"the ferry leaves at {hour}")

    assert before == ([1], 0)
    assert await versions(forgetful, id_) == ([7, 8, 9, 10, 11, 12], 6)
    assert count(forgetful, "note_versions") == 5


async def test_many_versions_of_an_earlier_release_end_with_the_next_change(forgetful: Application) -> None:
    id_ = await add(forgetful, "the ferry leaves at noon")
    with psycopg.connect(forgetful.url) as connection:
        connection.execute("UPDATE notes SET version = 3000 WHERE id = %s", [id_])
        connection.execute(
            "INSERT INTO note_versions SELECT id, number, content, category, importance, confidence, tags, metadata, "
            "updated_at FROM notes CROSS JOIN generate_series(1, 2999) AS number WHERE id = %s",
            [id_],
        )

    await change(forgetful, id_, importance=0.9)

    assert await versions(forgetful, id_) == ([2996, 2997, 2998, 2999, 3000, 3001], 2995)


async def test_of_a_profile_the_latest_versions_are_kept(forgetful: Application) -> None:
    for user in ("ann", "bob"):
        for number in range(9):
            body = {"user": user, "patch": {"step": number}}
            assert (await forgetful.client().patch("/v1/profile", json=body)).status_code == 200

    assert count(forgetful, "profile_versions") == 2 * (3 + 1)


async def test_no_versions_are_kept_where_none_are_wanted(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, history={"note_versions": 0, "profile_versions": 0})
    async with running(settings, database, HashingModel(), follow=False) as app:
        id_ = await add(app, "the ferry leaves at noon")
        await change(app, id_, importance=0.9)
        for number in range(3):
            await app.client().patch("/v1/profile", json={"user": "ann", "patch": {"step": number}})

        assert await versions(app, id_) == ([2], 1)
        assert count(app, "profile_versions") == 1


async def test_a_sweep_ends_versions_that_were_replaced_a_year_ago_and_the_state_since_then_stays(
    alone: Application,
) -> None:
    ids = [await add(alone, f"the ferry {number} leaves at noon") for number in range(3)]
    for id_ in ids:
        for importance in (0.6, 0.7, 0.8):
            await change(alone, id_, importance=importance)
    for number in range(3):
        await alone.client().patch("/v1/profile", json={"user": "ann", "patch": {"step": number}})
    await run_job(alone, "sweep", in_days(30))  # they go cold
    with psycopg.connect(alone.url) as connection:
        connection.execute("UPDATE note_versions SET written_at = now() - make_interval(days => 1000 - version)")
        connection.execute("UPDATE note_versions SET written_at = now() WHERE note_id = %s AND version = 3", [ids[0]])
    pages = in_pages(alone, 2)

    dry = await run_job(pages, "sweep", in_days(30), is_dry_run=True)
    kept = [await versions(alone, id_) for id_ in ids]
    run = await run_job(pages, "sweep", in_days(30))
    swept = [await versions(alone, id_) for id_ in ids]
    again = await run_job(pages, "sweep", in_days(30))
    late = await run_job(pages, "sweep", in_days(400))

    assert kept == [([1, 2, 3, 4], 0)] * 3
    assert swept == [([2, 3, 4], 1), ([3, 4], 2), ([3, 4], 2)]
    assert (dry.counts.planned, dry.counts.changed) == (5, 0)
    assert run.counts == RunCounts(units=1, seen=5, planned=5, changed=5)
    assert (again.counts.planned, again.counts.changed) == (0, 0)
    assert [await versions(alone, id_) for id_ in ids] == [([4], 3)] * 3
    assert late.counts.changed == 4 + 2
    assert count(alone, "profile_versions") == 1
    assert (await alone.client().get("/v1/profile", params={"user": "ann"})).json()["document"] == {"step": 2}


async def test_deleted_rows_end_when_no_run_can_bring_them_back(unshared: Application) -> None:
    gone = await add(unshared, "Marta Keller repairs the ferry at Mill Lane")
    await add(unshared, "Rolf Brandt paints the keel at the harbour", ttl_s=3600)
    body = {"trigger": "Deploy the shop", "action": "Run the script"}
    procedure = (await unshared.client().post("/v1/procedures", json=body)).json()["id"]
    await unshared.client().post(f"/v1/procedures/{procedure}/outcomes", json={"succeeded": True})
    for path in (f"/v1/notes/{gone}", f"/v1/procedures/{procedure}"):
        assert (await unshared.client().delete(path)).status_code == 204
    expired = await run_job(unshared, "sweep", in_days(1))

    await run_job(unshared, "sweep", in_days(29))
    undone = await undo_run(unshared, expired)
    again = await run_job(unshared, "sweep", in_days(30))
    late = await run_job(unshared, "sweep", in_days(62))
    await unshared.indexed()

    assert (expired.counts.removed, undone.changed, again.counts.removed) == (1, 1, 1)
    assert late.counts.changed == 3
    tables = ("notes", "note_chunks", "procedures", "procedure_outcomes", "memory_links")
    assert {table: count(unshared, table) for table in tables} == dict.fromkeys(tables, 0)


async def test_outcomes_keys_and_shares_end_a_year_after_their_end(alone: Application) -> None:
    body = {"trigger": "Deploy the shop", "action": "Run the script"}
    procedure = (await alone.client().post("/v1/procedures", json=body)).json()["id"]
    for succeeded in (True, False):
        await alone.client().post(f"/v1/procedures/{procedure}/outcomes", json={"succeeded": succeeded})
    admin = alone.admin()
    shared = await admin.post("/v1/shares", json={"to_workspace": "other", "segment": "notes"})
    assert shared.status_code == 201, shared.text
    assert (await admin.delete(f"/v1/shares/{shared.json()['id']}")).status_code in {200, 204}
    with psycopg.connect(alone.url) as connection:
        connection.execute("UPDATE procedure_outcomes SET reported_at = now() - interval '1 year' WHERE NOT succeeded")
        connection.execute(
            "INSERT INTO api_keys (id, tenant, role, label, hint, hash, expires_at, revoked_at) "
            "SELECT gen_random_uuid(), tenant, role, label, hint, convert_to(days::text, 'UTF8'), "
            "       now() - make_interval(days => days), CASE WHEN days < 300 THEN now() END "
            "FROM (SELECT * FROM api_keys LIMIT 1) one CROSS JOIN unnest(ARRAY[10, 364, 366, 1000]) AS days"
        )
        connection.execute("INSERT INTO quotas SELECT tenant, id::text, 'requests', 5 FROM api_keys")
        connection.execute("INSERT INTO quota_windows SELECT tenant, id::text, 'other', now(), 0 FROM api_keys")
    keys = count(alone, "api_keys")

    soon = [await run_job(alone, name, in_days(1)) for name in ("sweep", "caches")]
    dry = await run_job(alone, "caches", in_days(366), is_dry_run=True)
    late = await run_job(alone, "caches", in_days(366))

    assert [run.counts.changed for run in soon] == [1, 3]
    assert (dry.counts.planned, dry.counts.changed) == (2, 0)
    assert late.counts.changed == 2
    assert (count(alone, "procedure_outcomes"), count(alone, "api_keys"), count(alone, "shares")) == (1, keys - 4, 0)
    assert count(alone, "quotas") == count(alone, "quota_windows WHERE resource = 'other'") == keys - 4
    stored = (await alone.client().get(f"/v1/procedures/{procedure}")).json()
    assert (stored["successes"], stored["failures"]) == (1, 1)


async def test_changes_that_no_store_takes_are_given_up_and_a_store_that_comes_back_takes_everything(
    alone: Application,
) -> None:
    await add(alone, "Marta Keller repairs the ferry at Mill Lane")
    await alone.indexed()
    waiting = count(alone, "outbox")
    young = await alone.indexer.give_up_unkept()
    with psycopg.connect(alone.url) as connection:
        connection.execute("UPDATE outbox SET created_at = now() - interval '31 days'")
        connection.execute(
            "INSERT INTO outbox (projection, memory_id, created_at) VALUES ('notes', %s, '-infinity')", [uuid4()]
        )

    given_up = await alone.indexer.give_up_unkept()
    left = count(alone, "outbox")
    claims = [claim_store(alone.url, "graph", "falkordb", is_new=False, is_shared=True) for _ in range(2)]

    assert waiting > 0
    assert (young, given_up, left) == (0, waiting, 1)
    assert claims == [True, False]
    assert count(alone, "outbox") > 1


async def test_the_outbox_of_cold_notes_takes_turns_among_tenants(alone: Application) -> None:
    first, second = alone.for_tenant("one"), alone.for_tenant("two")
    many = UUID(await add(first, "the ferry leaves at noon"))
    with psycopg.connect(alone.url) as connection:
        connection.execute("TRUNCATE outbox")
        connection.execute(NOTE_TO_COLD_COPIES, {"id": many, "copies": 40})
    late = await add(second, "the harbour is closed")
    await change(second, late, importance=0.9)
    outbox = Outbox(alone.pool)

    batches: list[list[UUID]] = []
    applied: list[int] = []
    while (batch := await outbox.take("cold", 256, applied)).seqs:
        applied += batch.seqs
        batches.append([*batch.ids])

    assert [len(ids) for ids in batches] == [NAMESPACES, NAMESPACES, 41 - 2 * NAMESPACES]
    assert UUID(late) in batches[0][:2]
    assert len({id_ for ids in batches for id_ in ids}) == len(applied) == 41


@pytest.mark.parametrize("projection", ["messages", "graph"])
async def test_the_outbox_takes_turns_among_the_tenants_whose_requests_wrote_it(
    alone: Application, projection: ProjectionName
) -> None:
    with psycopg.connect(alone.url) as connection:
        connection.execute("TRUNCATE outbox")
    async with connect(alone.pool) as pooled:
        for tenant, changes in (("one", 300), ("", 40), ("two", 1)):
            with counted_spending(tenant):
                await enqueue(pooled, projection, [new_id() for _ in range(changes)])
    with psycopg.connect(alone.url) as connection:
        rows = connection.execute("SELECT seq, tenant FROM outbox ORDER BY seq").fetchall()
        tenant_of = dict(rows)
        assert [tenant for _, tenant in rows] == ["one"] * 300 + [None] * 40 + ["two"]
    outbox = Outbox(alone.pool)

    batches: list[list[int]] = []
    while (batch := await outbox.take(projection, 64, [seq for seqs in batches for seq in seqs])).seqs:
        batches.append([*batch.seqs])
    with psycopg.connect(alone.url) as connection:
        connection.execute("TRUNCATE outbox")

    assert Counter(tenant_of[seq] for seq in batches[0]) == {"one": 32, None: 31, "two": 1}
    taken = [seq for seqs in batches for seq in seqs]
    assert sorted(taken) == sorted(tenant_of)
    for tenant in ("one", None):  # Each tenant's in their order.
        own = [seq for seq in taken if tenant_of[seq] == tenant]
        assert own == sorted(own)


async def test_an_erased_note_is_looked_for_in_its_own_collection_alone(alone: Application) -> None:
    id_ = UUID(await add(alone, "the ferry leaves at noon", user="ann"))
    index = index_of(alone, "notes", "cold")
    assert isinstance(index, ColdIndex)
    await run_job(alone, "sweep", in_days(30))
    with psycopg.connect(alone.url) as connection:
        connection.execute(NOTE_TO_COLD_COPIES, {"id": id_, "copies": 5})
    await alone.indexed()
    before = index.count(Scope(alone.tenant))
    index.close()

    async with alone.pool.connection() as pooled, pooled.transaction():
        await enqueue_notes(pooled, [id_])
        await erase_notes(pooled, alone.tenant, [id_])
    await alone.indexed()

    assert index.open_count() == 1
    assert (before, index.count(Scope(alone.tenant))) == (1, 0)


async def test_a_tenant_with_hundreds_of_cold_namespaces_holds_up_nobody(database: str, tmp_path: Path) -> None:
    async with running(settings_for(database, tmp_path), database, HashingModel()) as app:
        first, second = app.for_tenant("first"), app.for_tenant("second")
        many = await add(first, "the ferry leaves at noon")
        cold = await add(second, "the lighthouse is painted white")
        await app.indexed()
        index = index_of(app, "notes", "cold")
        assert isinstance(index, ColdIndex)
        mapped, before = mapped_mib(), handles()

        with psycopg.connect(app.url) as connection:
            connection.execute(NOTE_TO_COLD_COPIES, {"id": many, "copies": NAMESPACES_OF_ONE})
        started = time.monotonic()
        await run_job(second, "sweep", in_days(30))
        warm = await add(second, "the harbour is closed in winter")
        waits = {
            "warm": await seconds_until_found(second, warm, "the harbour is closed in winter"),
            "cold": await seconds_until_found(second, cold, "the lighthouse is painted white"),
        }
        took = time.monotonic() - started
        more_mapped, more_handles = mapped_mib() - mapped, handles() - before

        assert count(app, "outbox") > 0  # the first tenant's are still being applied
        assert max(waits.values()) < FOUND_WITHIN_S, waits
        assert took < 2 * FOUND_WITHIN_S
        assert index.open_count() <= app.settings.cold.max_open
        assert more_mapped < 100
        assert more_handles < 30


async def seconds_until_found(app: Application, id_: str, query: str) -> float:
    started = time.monotonic()
    while time.monotonic() < started + 2 * FOUND_WITHIN_S:
        body = {"query": query, "tiers": ["notes"], "cache": False}
        answer = await app.client().post("/v1/search", json=body)
        assert answer.status_code == 200, answer.text
        if id_ in {hit["id"] for hit in answer.json()["results"]}:
            break
        await asyncio.sleep(0.05)
    return time.monotonic() - started


def test_audits_visit_the_collections_of_their_tenant_alone(tmp_path: Path) -> None:
    index = ColdIndex(tmp_path / "cold", dimension=64, layout="per_namespace", max_open=8)
    scopes = [Scope("first", "w", f"n{number}") for number in range(4)]
    index.apply([Change(uuid4(), placed("green tea", scope=scope)) for scope in (*scopes, Scope("second"))])
    index.close()

    found = list(index.chunks("second"))
    opened = index.open_count()
    index.close()

    assert (len(found), opened) == (1, 1)


def places(app: Application) -> set[tuple[str, str]]:
    """Return the workspace and namespace of each epoch of the tenant."""
    with psycopg.connect(app.url) as connection:
        rows = connection.execute("SELECT workspace, namespace FROM epochs WHERE tenant = %s", [app.tenant])
        return set(rows.fetchall())


async def test_places_in_which_nothing_is_left_are_forgotten_and_begin_anew(alone: Application) -> None:
    client = alone.client()
    stays = {"workspace": "w", "namespace": "stays"}
    await add(alone, "the lighthouse is painted white", **stays)
    for number in range(20):
        body = {"workspace": f"w{number % 4}", "namespace": f"n{number}", "user": "ann"}
        id_ = await add(alone, "the ferry leaves at noon", **body)
        assert (await client.delete(f"/v1/notes/{id_}")).status_code == 204
    grown = places(alone)

    for days in (1, 40):
        await run_job(alone, "caches", in_days(days))
    await run_job(alone, "sweep", in_days(40))  # the deleted notes go
    kept = places(alone)
    await run_job(alone, "caches", in_days(41))
    late = {"workspace": "w3", "namespace": "n3"}
    again = await add(alone, "the ferry leaves at one", **late)  # written while it counts as empty
    dry = await run_job(alone, "caches", in_days(72), is_dry_run=True)
    run = await run_job(alone, "caches", in_days(72))
    shrunk = places(alone)

    assert len(grown) == 21
    assert kept == grown
    assert (dry.counts.planned, dry.counts.changed, run.counts.changed) == (19, 0, 19)
    assert shrunk == {("w", "stays"), ("w3", "n3")}
    begun = await add(alone, "the ferry leaves at two", workspace="w0", namespace="n0")
    await alone.indexed()
    for place, id_ in ((late, again), ({"workspace": "w0", "namespace": "n0"}, begun)):
        found = (await client.get("/v1/notes", params=place)).json()["notes"]
        assert [note["id"] for note in found] == [id_]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/turns", {"session": "s", "messages": [{"role": "user", "content": "hello"}]}),
        ("/v1/documents", {"content": "The ferry leaves at noon."}),
        ("/v1/procedures", {"trigger": "Deploy", "action": "Run it"}),
        ("/v1/graph/entities", {"entities": [{"name": "Marta Keller"}]}),
    ],
)
async def test_a_place_with_anything_in_it_stays(alone: Application, path: str, body: dict[str, Any]) -> None:
    answer = await alone.client().post(path, json={**body, "workspace": "w", "namespace": "n"})
    assert answer.is_success, answer.text

    for days in (1, 100, 300):
        await run_job(alone, "caches", in_days(days))

    assert places(alone) == {("w", "n")}


async def test_the_epoch_of_a_workspace_goes_after_its_profiles_and_shares(alone: Application) -> None:
    admin = alone.admin()
    profile = {"workspace": "w", "agent": "guide"}
    assert (await admin.put("/v1/memory-profile", json={**profile, "prompt_suffix": "Be kind."})).is_success

    for days in (1, 50):
        await run_job(alone, "caches", in_days(days))
    with_profile = places(alone)
    assert (await admin.delete("/v1/memory-profile", params=profile)).is_success
    for days in (51, 60, 82):
        await run_job(alone, "caches", in_days(days))

    assert with_profile == {("w", "")}
    assert places(alone) == set()


async def test_sessions_without_messages_end(alone: Application) -> None:
    ids = []
    for number in range(8):
        body = {"session": f"s{number}", "messages": [{"role": "user", "content": f"hello {number}"}]}
        ids.append((await alone.client().post("/v1/turns", json=body)).json()["messages"][0]["id"])
    for id_ in ids[1:]:
        assert (await alone.client().delete(f"/v1/messages/{id_}")).status_code == 204

    young = await run_job(alone, "caches", in_days(29))
    dry = await run_job(alone, "caches", in_days(31), is_dry_run=True)
    run = await run_job(alone, "caches", in_days(31))

    assert (young.counts.changed, dry.counts.planned, run.counts.changed) == (0, 7, 7)
    assert count(alone, "sessions") == 1
    body = {"session": "s3", "messages": [{"role": "user", "content": "hello again"}]}
    assert (await alone.client().post("/v1/turns", json=body)).is_success
    found = (await alone.client().get("/v1/sessions/s3/messages")).json()["messages"]
    assert [message["content"] for message in found] == ["hello again"]


async def test_a_receipt_can_be_read_for_ten_years_and_verified_for_ever(alone: Application) -> None:
    admin = alone.admin()
    await add(alone, "the ferry leaves at noon", user="ann")
    following = asyncio.create_task(alone.indexer.run())
    erased = (await admin.delete("/v1/users", params={"user": "ann"})).json()
    following.cancel()
    pem = (await admin.get("/v1/erasures/keys")).json()["keys"][0]["pem"]
    assert erased["complete"], erased

    await run_job(alone, "caches", in_days(3649))
    kept = await admin.get(f"/v1/erasures/{erased['id']}")
    dry = await run_job(alone, "caches", in_days(3651), is_dry_run=True)
    run = await run_job(alone, "caches", in_days(3651))

    assert kept.json()["receipt"] == erased["receipt"]
    assert dry.counts.planned == run.counts.changed >= 1
    assert (await admin.get(f"/v1/erasures/{erased['id']}")).status_code == 404
    assert (await admin.get("/v1/erasures")).json()["erasures"] == []
    keys = (await admin.get("/v1/erasures/keys")).json()["keys"]
    assert [key["pem"] for key in keys] == [pem]
    assert faults_of(json.loads(json.dumps(erased["receipt"])), load_public_keys(pem)) == []


async def test_an_erasure_that_is_open_stays_however_old_it_is(alone: Application) -> None:
    with psycopg.connect(alone.url) as connection:
        connection.execute(
            "INSERT INTO erasures (id, tenant, user_id, user_salt, user_hash, requested_at) "
            "VALUES (gen_random_uuid(), %s, 'ann', '', '', now() - interval '20 years')",
            [alone.tenant],
        )

    await run_job(alone, "caches", in_days(4000))

    assert count(alone, "erasures") == 1


async def test_the_folder_of_an_archive_goes_with_its_last_note_and_comes_again(alone: Application) -> None:
    admin = alone.admin()
    root = alone.settings.data_dir / "archive"

    async def archive(content: str, day: int) -> str:
        id_ = await add(alone, content)
        await run_job(alone, "sweep", in_days(day))
        await run_job(alone, "archival", in_days(day + 200), is_forced=True)
        assert count(alone, "archived_notes") == 1
        return id_

    first = await archive("the ferry leaves at noon", 30)
    await run_job(alone, "archival", in_days(300))
    with_notes = count(alone, "archive_folders"), len(list(root.rglob(MARK)))
    assert (await admin.delete(f"/v1/notes/{first}")).status_code == 204
    await run_job(alone, "archival", in_days(301), is_dry_run=True)
    dry = count(alone, "archive_folders"), len(list(root.rglob(MARK)))
    for day in (302, 303):
        await run_job(alone, "archival", in_days(day))

    assert with_notes == dry == (1, 1)
    assert count(alone, "archive_folders") == 0
    assert [path for path in root.rglob("*") if path.is_file()] == []
    assert [path for path in root.iterdir() if any(path.iterdir())] == []
    second = await archive("the lighthouse is painted white", 40)
    assert count(alone, "archive_folders") == 1
    restored = await admin.post("/v1/archive/restore", json={"ids": [second]})
    assert restored.json()["results"][0]["status"] == "restored", restored.text


def test_collections_that_an_earlier_release_made_lose_their_logs_with_the_audits(tmp_path: Path) -> None:
    root = tmp_path / "cold"
    scopes = [Scope("first", "w", f"n{number}") for number in range(RENEWED_AT_ONCE + 2)]
    index = ColdIndex(root, dimension=64, layout="per_namespace", max_open=4)
    index.apply([Change(uuid4(), placed("green tea", scope=scope)) for scope in scopes[:1]])
    index.close()
    ids = [uuid4() for _ in scopes]
    for id_, scope in list(zip(ids, scopes, strict=True))[1:]:
        folder = root / Collection(scope.tenant, scope.workspace, scope.namespace).name()
        folder.mkdir()
        marker = {"ids": [scope.tenant, scope.workspace, scope.namespace]}
        (folder / "lamina.json").write_text(json.dumps(marker))
        earlier = QdrantEdgeIndex(folder / SHARD, dimension=64)
        earlier.apply([Change(id_, placed("green tea", scope=scope).record)])
        earlier.close()
    logs = [len(list(root.glob(f"*/{SHARD}/{LOG}")))]

    for _ in range(2):
        index = ColdIndex(root, dimension=64, layout="per_namespace", max_open=4)
        found = {id_ for id_, _ in index.chunks("first")}
        index.close()
        logs.append(len(list(root.glob(f"*/{SHARD}/{LOG}"))))
        assert len(found) == len(scopes)
        assert set(ids[1:]) < found

    assert FORMAT == 3
    assert logs == [RENEWED_AT_ONCE + 1, 1, 0]


def test_collections_in_which_nothing_is_left_are_removed_and_begin_anew(tmp_path: Path) -> None:
    root = tmp_path / "cold"
    scopes = [Scope("first", "w", f"n{number}") for number in range(12)]
    ids = [uuid4() for _ in scopes]
    pairs = list(zip(ids, scopes, strict=True))
    index = ColdIndex(root, dimension=64, layout="per_namespace", max_open=4)
    index.apply([Change(id_, placed("green tea", scope=scope)) for id_, scope in pairs])
    index.flush()
    grown = len(index.collections())

    index.apply([Change(id_, gone(scope)) for id_, scope in pairs[1:]])
    index.flush()
    left = {id_ for id_, _ in index.chunks("first")}
    index.close()
    shrunk = len(index.collections()), len([path for path in root.iterdir() if path.is_dir()])
    index = ColdIndex(root, dimension=64, layout="per_namespace", max_open=4)
    index.apply([Change(ids[3], placed("green tea", scope=scopes[3]))])
    index.close()
    index = ColdIndex(root, dimension=64, layout="per_namespace", max_open=4)
    again = {id_ for id_, _ in index.chunks("first")}
    index.close()

    assert (grown, shrunk) == (12, (1, 1))
    assert left == {ids[0]}
    assert again == {ids[0], ids[3]}
