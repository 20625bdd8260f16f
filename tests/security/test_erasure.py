"""An erased user is gone from every file but those that the receipt lists, and the receipt proves it."""

import asyncio
import json
import random
import string
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from fnmatch import fnmatch
from itertools import count
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest
from typer.testing import CliRunner

from lamina.cli.commands import app as command_line
from lamina.core.erasures import Remnant
from lamina.core.seals import faults_of, load_private_key, load_public_keys, new_private_key, public_pem, seal
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.stores import EmbeddedFalkorDBSettings, EmbeddedPostgresSettings, FalkorDBServerSettings
from lamina.stores.postgres.keys import KeyRole
from lamina.stores.postgres.migrate import migrate
from lamina.stores.postgres.rewriting import QUERIES
from tests.support.application import Application, another_router, running, settings_for
from tests.support.disk import files_with
from tests.support.jobs import in_days, run_job
from tests.support.servers import UnsyncedPostgres

MARK = "qzxvkjwphm"
# Those of the tenant, its workspaces, agents, keys and stores, with ids and numbers.
LEFT_ALONE = (
    "archive_folders",
    "archive_identity",
    "embedding_generations",
    "entity_witnesses",
    "epochs",
    "feedback",
    "former_stores",
    "hash_secret",
    "job_runs",
    "memory_profiles",
    "note_sources",
    "outbox",
    "procedure_witnesses",
    "projection_stores",
    "provider_cache_metrics",
    "quota_windows",
    "quotas",
    "receipt_keys",
    "refused_texts",
    "response_agents",
    "schema_migrations",
    "shares",
    "stale_words",
    "tenant_usage",
    "usage_days",
    "votes",
    "webhook_dead_letters",
    "webhooks",
    "workspace_settings",
)
ANN, BOB = f"ณัฐชา 🌺 {MARK}", "bob"
NAMES = ["ณัฐชา", "🌺", "ann", "ñandú", "مريم", "张伟", "👩‍👩‍👧", "a%'\"\\; --", "x" * 128]


def noise(length: int) -> str:
    """Text that no store packs: the mark stands in its files as it is."""
    letters = random.Random(7)  # noqa: S311 - no secret
    words = ("".join(letters.choices(string.ascii_letters, k=9)) for _ in range(length // 10))
    return f"{MARK} {' '.join(words)} {MARK}"


@asynccontextmanager
async def installed(data_dir: Path, **overrides: Any) -> AsyncIterator[tuple[Application, EmbeddedFalkorDB]]:
    """Run an application whose stores all lie in one folder."""
    postgres = UnsyncedPostgres(data_dir / "postgres", EmbeddedPostgresSettings())
    falkordb = EmbeddedFalkorDB(data_dir / "graph", EmbeddedFalkorDBSettings())
    url = postgres.start()
    falkordb.start()
    try:
        migrate(url)
        settings = settings_for(url, data_dir, graph=FalkorDBServerSettings(url=falkordb.url), **overrides)
        async with running(settings, url, HashingModel()) as app:
            yield app, falkordb
    finally:
        falkordb.stop()
        postgres.stop()


async def sent(client: httpx.AsyncClient, method: str, path: str, body: dict[str, Any], **headers: str) -> Any:
    answer = await client.request(method, path, json=body, headers=headers)
    assert answer.status_code < 300, (path, answer.text)
    return answer.json()


async def fill(app: Application, user: str, word: str) -> None:
    """Write into every tier, and have caches, a share and jobs copy from there."""
    client, admin = app.client(), app.admin()
    ids = {"user": user, "agent": "helper"}
    said = [{"content": f"I am {word} Smith. I work at {word} Boatyard. We decided to sail on Friday.", "name": word}]
    turn = ids | {"session": f"s {word}", "messages": said}
    await sent(client, "POST", "/v1/turns", turn, **{"Idempotency-Key": f"turn {word}"})
    long_message = ids | {"session": f"s {word}", "messages": [{"content": noise(6000).replace(MARK, word)}]}
    await sent(client, "POST", "/v1/turns", long_message)
    call = {"name": "moor", "arguments": {"boat": word}, "result": f"{word} is moored"}
    usage = {"provider": "acme", "model": "large", "input_tokens": 7}
    done = {"tool_calls": [call], "usage": usage, "outcome": {"succeeded": True, "comment": word}}
    await sent(client, "POST", "/v1/turns", ids | {"session": f"s {word}", "messages": [], **done})
    for kind, lost in (("notes", {}), ("documents", {"key": f"lost {word}"})):
        thrown = await sent(client, "POST", f"/v1/{kind}", ids | lost | {"content": f"{word} lost a compass"})
        assert (await client.delete(f"/v1/{kind}/{thrown['id']}")).is_success
    note = await sent(client, "POST", "/v1/notes", ids | {"content": f"{word} keeps the key", "tags": [word]})
    await sent(client, "PATCH", f"/v1/notes/{note['id']}", {"content": f"{word} keeps two keys"})
    await sent(client, "POST", "/v1/notes/bulk", ids | {"tags": [word], "add_tags": ["keys"]})
    await sent(client, "PATCH", "/v1/profile", {"user": user, "patch": {"boat": word}})
    document = ids | {"key": word, "title": word, "content": noise(6000).replace(MARK, word), "metadata": {"by": word}}
    await sent(client, "POST", "/v1/documents", document)
    edges = [{"subject": f"{word} Pier", "type": "belongs_to", "object": f"{word} Harbour"}]
    await sent(client, "POST", "/v1/graph/edges", ids | {"edges": edges})
    await sent(client, "POST", "/v1/procedures", ids | {"trigger": f"{word} storm", "action": f"moor {word}"})
    for body in ({"content": f"{word} old telescope"}, {"content": f"{word} old sextant"}):
        await sent(client, "POST", "/v1/notes", ids | body | {"workspace": "attic"})
    asked = ids | {"query": f"where is {word}?"}
    await app.indexed()
    await sent(client, "POST", "/v1/search", asked | {"swarm": "s"})
    await sent(client, "POST", "/v1/context", asked)
    share = {"from_workspace": "default", "to_workspace": "other", "segment": "notes"}
    await admin.post("/v1/shares", json=share)
    await sent(client, "POST", "/v1/search", asked | {"workspace": "other"})


async def respond(app: Application, user: str, word: str) -> None:
    """Store a response of a model; what is learnt afterwards ends it."""
    asked = {"user": user, "agent": "helper", "query": f"where is {word}?"}
    epoch = (await sent(app.client(), "POST", "/v1/responses/lookup", asked))["epoch"]
    body = asked | {"response": f"{word} is at sea", "epoch": epoch}
    stored = await sent(app.client(), "POST", "/v1/responses", body)
    assert stored["stored"], stored


async def run_jobs(app: Application) -> None:
    await run_job(app, "sweep", in_days(30), workspace="attic")
    await run_job(app, "archival", in_days(300), workspace="attic", is_forced=True)
    await run_job(app, "summaries", in_days(1))
    await run_job(app, "decay", in_days(60), is_forced=True)
    await app.indexed()


async def settled(app: Application) -> None:
    """Have Postgres sample its tables and write everything to its files."""
    async with app.pool.connection() as connection:
        await connection.execute("ANALYZE")
        await connection.execute("CHECKPOINT")


async def seen_by(app: Application, user: str) -> dict[str, Any]:
    """Everything that one finds of a user."""
    client, ids = app.client(), {"user": user}
    found = await sent(
        client, "POST", "/v1/search", ids | {"query": f"{user} keys boatyard storm harbour", "limit": 100}
    )
    notes = (await client.get("/v1/notes", params=ids | {"limit": 500})).json()["notes"]
    archived = (await client.get("/v1/archive/notes", params={"workspace": "attic"})).json()["notes"]
    return {
        "hits": sorted(hit["content"] for hit in found["results"] if user in hit["content"]),
        "messages": (await client.get(f"/v1/sessions/s {user}/messages", params=ids)).json().get("messages", []),
        "notes": sorted(note["content"] for note in notes),
        "profile": (await client.get("/v1/profile", params=ids)).json()["document"],
        "archived": [note["id"] for note in archived if note.get("user") == user],
    }


async def erase(app: Application, user: str) -> Any:
    """Erase a user, and wait for the end."""
    admin = app.admin()
    answer = await admin.delete("/v1/users", params={"user": user})
    assert answer.status_code in {200, 202}, answer.text
    erasure = answer.json()
    # A pass of an order that was answered before its end may still be at work.
    async with asyncio.timeout(120):
        while not erasure["complete"]:
            await app.services.erasures.work()
            await asyncio.sleep(0.05)
            erasure = (await admin.get(f"/v1/erasures/{erasure['id']}")).json()
    return erasure


def unlisted(data_dir: Path, receipt: dict[str, Any]) -> set[str]:
    """Return the files with the mark that the receipt does not list."""
    listed = [remnant["where"] for remnant in receipt["remains"]]
    return {file for file in files_with(data_dir, MARK.encode()) if not any(fnmatch(file, where) for where in listed)}


def stores_of(files: set[str]) -> set[str]:
    return {"/".join(file.split("/")[:2]) if file.startswith("postgres") else file.split("/")[0] for file in files}


async def test_an_erased_user_is_in_no_file_that_the_receipt_does_not_list(home: Path) -> None:
    async with installed(home) as (app, _):
        await respond(app, ANN, MARK)
        await fill(app, ANN, MARK)
        await fill(app, BOB, BOB)
        await run_jobs(app)
        others = await seen_by(app, BOB)
        await settled(app)
        before = stores_of(files_with(home, MARK.encode()))

        # Without the steps on the files, which a second erasure makes up for.
        places = app.services.erasures._places
        app.services.erasures._places = replace(places, compactions={}, rewrite=nothing_left)
        careless = await erase(app, ANN)
        await settled(app)
        left = stores_of(unlisted(home, careless["receipt"]))
        app.services.erasures._places = places
        erasure = await erase(app, ANN)
        await settled(app)

        assert before >= {"postgres/base", "postgres/pg_wal", "edge", "graph", "archive"}
        assert left >= {"postgres/base", "edge", "graph"}
        assert unlisted(home, erasure["receipt"]) == set()
        unfound = {kind for kind, number in careless["erased"].items() if not number}
        assert unfound == {"keys", "response_chains"}, careless["erased"]
        assert set(careless["left"].values()) == set(erasure["left"].values()) == {0}
        assert {kind: number for kind, number in erasure["erased"].items() if number} == {}
        assert await seen_by(app, BOB) == others
        assert len(others["messages"]) == 3
        assert others["archived"]
        assert others["profile"]
        assert MARK not in json.dumps(await seen_by(app, ANN), default=str).replace(ANN, "")


async def nothing_left() -> list[Any]:
    return []


async def test_an_erasure_waits_for_a_store_that_is_away_and_another_replica_ends_it(home: Path) -> None:
    async with installed(home) as (app, graph):
        client, admin = app.client(), app.admin()
        edges = [{"subject": f"{MARK} Pier", "type": "belongs_to", "object": f"{MARK} Harbour"}]
        await sent(client, "POST", "/v1/graph/edges", {"user": ANN, "edges": edges})
        await app.indexed()
        graph.stop()

        answer = await admin.delete("/v1/users", params={"user": ANN})
        again = await admin.delete("/v1/users", params={"user": ANN})
        graph.start()
        async with another_router(app, {}) as other:
            for _ in range(300):
                await other.services.erasures.work()
                ended = (await admin.get(answer.headers["Location"])).json()
                if ended["complete"]:
                    break
                await asyncio.sleep(0.2)

        assert (answer.status_code, answer.json()["complete"], answer.json()["user"]) == (202, False, ANN)
        assert any(reason.startswith("graph") for reason in answer.json()["waits_for"]), answer.json()
        assert answer.json()["receipt"] is None
        assert again.json()["id"] == answer.json()["id"]
        assert ended["complete"], ended
        assert (ended["user"], ended["erased"]["statements"], ended["waits_for"]) == (None, 1, [])
        listed = (await admin.get("/v1/erasures")).json()["erasures"]
        assert [erasure["id"] for erasure in listed] == [ended["id"]]


async def test_a_store_of_one_tenant_that_is_damaged_holds_up_no_erasure_of_another(home: Path) -> None:
    async with installed(home) as (app, _):
        places, other = app.services.erasures._places, uuid4().hex

        async def compact(tenant: str) -> list[Remnant]:
            if tenant == app.tenant:
                raise Unavailable("cold", f"the collection of {tenant} is damaged")
            return [Remnant(f"cold of {tenant}", "vectors", "soon")]

        app.services.erasures._places = replace(places, compactions={"cold": compact})
        held = await app.admin().delete("/v1/users", params={"user": ANN})
        fine = await app.client(app.new_key(other, KeyRole.ADMIN)).delete("/v1/users", params={"user": ANN})
        app.services.erasures._places = places
        ended = await erase(app, ANN)

        assert (held.status_code, fine.status_code) == (202, 200), fine.text
        assert [f"the collection of {app.tenant}" in reason for reason in held.json()["waits_for"]] == [True]
        assert f"cold of {other}" in {remnant["where"] for remnant in fine.json()["receipt"]["remains"]}
        assert app.tenant not in fine.text
        assert ended["complete"]


async def test_an_order_is_answered_in_time_though_a_store_is_being_written_anew(home: Path) -> None:
    async with installed(home, erasure={"wait_s": 1}) as (app, _):
        places, goes_on = app.services.erasures._places, asyncio.Event()

        async def compact(_tenant: str) -> list[Remnant]:
            await goes_on.wait()
            return []

        app.services.erasures._places = replace(places, compactions={"cold": compact})
        async with asyncio.timeout(60):
            answer = await app.admin().delete("/v1/users", params={"user": ANN})
        goes_on.set()
        async with asyncio.timeout(120):
            while not (await app.admin().get(answer.headers["Location"])).json()["complete"]:
                await app.services.erasures.work()
                await asyncio.sleep(0.05)

        assert (answer.status_code, answer.json()["complete"]) == (202, False)


async def test_an_erasure_that_is_asked_for_many_times_at_once_erases_once_and_ends_for_all(home: Path) -> None:
    async with installed(home) as (app, _), another_router(app, {}) as other:
        admins = [app.admin(), other.client(app.new_key(app.tenant, KeyRole.ADMIN))]
        for number in range(3):
            await sent(app.client(), "POST", "/v1/notes", {"user": ANN, "content": f"{MARK} note {number}"})

        answers = await asyncio.gather(
            *(admin.delete("/v1/users", params={"user": ANN}) for admin in admins for _ in range(3))
        )
        assert {answer.status_code for answer in answers} <= {200, 202}, [answer.text for answer in answers]
        listed = (await admins[0].get("/v1/erasures")).json()["erasures"]
        for _ in range(300):
            await app.services.erasures.work()
            listed = (await admins[0].get("/v1/erasures")).json()["erasures"]
            if all(erasure["complete"] for erasure in listed):
                break
            await asyncio.sleep(0.2)

        assert {answer.json()["id"] for answer in answers} == {erasure["id"] for erasure in listed}
        assert all(erasure["complete"] for erasure in listed), listed
        assert sum(erasure["erased"]["notes"] for erasure in listed) == 3


async def test_what_a_user_writes_during_the_erasure_is_erased_or_keeps_it_open(database: str, tmp_path: Path) -> None:
    settings = settings_for(database, tmp_path, erasure={"wait_s": 0.5})
    async with running(settings, database, HashingModel()) as app:
        client, has_begun = app.client(), asyncio.Event()

        async def write() -> None:
            for number in count():
                await sent(client, "POST", "/v1/notes", {"user": ANN, "content": f"{MARK} note {number}"})
                has_begun.set()

        writing = asyncio.create_task(write())
        await has_begun.wait()
        answer = await app.admin().delete("/v1/users", params={"user": ANN})
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)
        ended = await erase(app, ANN)
        found = await client.get("/v1/notes", params={"user": ANN})

    assert answer.status_code in {200, 202}
    assert (ended["complete"], set(ended["left"].values())) == (True, {0})
    assert found.json()["notes"] == []


async def test_users_of_any_name_are_erased_together_and_nobody_of_a_similar_one(unshared: Application) -> None:
    client = unshared.client()
    similar = [f"{name[:-1]}_" for name in NAMES]
    for user in (*NAMES, *similar):
        await sent(client, "POST", "/v1/notes", {"user": user, "content": "the key is under the mat"})

    erasures = await asyncio.gather(*(erase(unshared, name) for name in NAMES))
    notes = (await client.get("/v1/notes", params={"limit": 50})).json()["notes"]

    assert [(erasure["complete"], erasure["erased"]["notes"]) for erasure in erasures] == [(True, 1)] * len(NAMES)
    assert sorted(note["user"] for note in notes) == sorted(similar)


async def test_a_user_whom_nobody_knows_is_proven_to_be_unknown(unshared: Application) -> None:
    admin = unshared.admin()

    erasure = await erase(unshared, "nobody")
    refused = await admin.delete("/v1/users", params={"user": "x" * 129})
    missing = await admin.get("/v1/erasures/00000000-0000-0000-0000-000000000000")
    foreign = await unshared.for_tenant("another tenant").admin().get(f"/v1/erasures/{erasure['id']}")

    assert (erasure["complete"], set(erasure["erased"].values())) == (True, {0})
    assert [answer.status_code for answer in (refused, missing, foreign)] == [422, 404, 404]


async def test_answers_under_keys_tell_no_user_and_go_with_them(unshared: Application) -> None:
    client, headers = unshared.client(), {"Idempotency-Key": f"for {MARK}"}
    note = {"user": ANN, "content": "the key is under the mat"}
    first = await client.post("/v1/notes", json=note, headers=headers)
    again = await client.post("/v1/notes", json=note, headers=headers)
    async with unshared.pool.connection() as connection:
        await connection.execute(  # As the release before does.
            "INSERT INTO idempotency_keys (tenant, key, request_hash, response, user_id) "
            "VALUES (%s, 'k', '', '{}', %s)",
            [unshared.tenant, ANN],
        )
        statement = "SELECT key, user_id, user_hash, response::text FROM idempotency_keys WHERE tenant = %s"
        rows = await (await connection.execute(statement, [unshared.tenant])).fetchall()

    erasure = await erase(unshared, ANN)

    assert first.json() == again.json()
    assert len(rows) == 2
    assert MARK not in str(rows)
    assert len({row["user_hash"] for row in rows}) == 1
    assert erasure["erased"]["idempotency_keys"] == 2
    assert unshared.settings.write.idempotency_days == 1


async def test_operations_of_others_that_name_the_user_end_and_forget_the_conditions(unshared: Application) -> None:
    conditions = {
        "alone": {"user": ANN},
        "nested": {"or": [{"category": "note"}, {"not": {"user": {"in": [BOB, ANN]}}}]},
        "similar": {"user": f"{ANN}x"},
    }
    with psycopg.connect(unshared.url) as connection:
        for session, filters in conditions.items():
            connection.execute(
                "INSERT INTO operations (id, tenant, kind, workspace, namespace, session_id, request, requested_at,"
                " retry_at) VALUES (gen_random_uuid(), %s, 'change_notes', 'w', 'default', %s, %s, now(),"
                " now() + interval '1 hour')",
                [unshared.tenant, session, json.dumps({"filters": filters, "add_tags": ["seen"]})],
            )

    erasure = await erase(unshared, ANN)
    async with unshared.pool.connection() as connection:
        statement = "SELECT session_id, state, request::text FROM operations WHERE tenant = %s"
        rows = await (await connection.execute(statement, [unshared.tenant])).fetchall()

    found = {row["session_id"]: (row["state"], row["request"]) for row in rows}
    assert (found["alone"], found["nested"]) == (("failed", "{}"), ("failed", "{}"))
    assert found["similar"][0] == "running"
    assert erasure["erased"]["operations"] == 2
    assert erasure["left"]["operations"] == 0


async def test_the_bounds_of_keys_forget_the_user_once_they_are_revoked(unshared: Application) -> None:
    admin = unshared.admin()
    made = await sent(admin, "POST", "/v1/keys", {"name": "a phone", "role": "writer", "users": [ANN, BOB]})

    bound = await erase(unshared, ANN)
    await admin.delete(f"/v1/keys/{made['id']}")
    revoked = await erase(unshared, ANN)
    users = (await admin.get(f"/v1/keys/{made['id']}")).json()["users"]

    assert ["postgres: api_keys" in places_of(erasure) for erasure in (bound, revoked)] == [True, False]
    assert revoked["erased"]["keys"] == 1
    assert len(users) == 2
    assert BOB in users
    assert ANN not in users


def places_of(erasure: dict[str, Any]) -> set[str]:
    return {remnant["where"] for remnant in erasure["receipt"]["remains"]}


async def test_caches_forget_the_questions_of_the_user(unshared: Application) -> None:
    client = unshared.client()
    for path in ("/v1/search", "/v1/context"):
        await sent(client, "POST", path, {"user": ANN, "query": f"where is {MARK}?", "swarm": "s"})
    await unshared.services.caches.flush()
    before = await unshared.services.caches.shared.figures()
    async with unshared.pool.connection() as connection:
        counted = "SELECT count(*) AS n FROM embedding_cache WHERE tenant = %s"
        rows = await (await connection.execute(counted, [unshared.tenant])).fetchone()

    await erase(unshared, ANN)
    async with unshared.pool.connection() as connection:
        left = await (await connection.execute(counted, [unshared.tenant])).fetchone()
    after = await unshared.services.caches.shared.figures()

    assert (rows, left) == ({"n": 1}, {"n": 0})
    assert sum(holding.entries for holding in before.totals().holdings.values()) > 1
    assert sum(holding.entries for holding in after.totals().holdings.values()) == 0


async def test_large_tables_are_named_and_no_old_index_holds_the_words(home: Path) -> None:
    async with installed(home, erasure={"rewrite_mib": 0}) as (app, _):
        await sent(app.client(), "POST", "/v1/notes", {"user": ANN, "content": f"{MARK} keeps the key"})
        await app.indexed()

        erasure = await erase(app, ANN)

        named = {f"postgres: free space in the table {table}" for table in ("messages", "notes", "erasures")}
        assert named <= places_of(erasure)


def test_every_table_is_written_anew_or_holds_nothing_of_a_user(database: str) -> None:
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        rewritten = connection.execute(QUERIES["list_tables"]).fetchall()

    assert sorted(tables) == sorted([*rewritten, *((table,) for table in LEFT_ALONE)])


RECEIPT = {"id": "1", "erased": {"notes": 2, "ärger": 1}, "remains": [{"where": "backups", "until": None}], "left": {}}


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda receipt: receipt["erased"].update(notes=3), "erased was changed"),
        (lambda receipt: receipt["remains"].clear(), "remains was changed"),
        (lambda receipt: receipt.pop("left"), "left is missing"),
        (lambda receipt: receipt.update(note="all fine"), "note was added"),
        (lambda receipt: receipt.update(erased=float("nan")), "erased was changed"),
        (lambda receipt: receipt["seal"]["sha256"].pop("left"), "the seal was changed"),
        (lambda receipt: receipt["seal"].update(signature="AAAA"), "the seal was changed"),
        (lambda receipt: receipt["seal"].update(signature=7), "the seal was changed"),
        (lambda receipt: receipt["seal"].update(key="00"), "signed with the key 00"),
        (lambda receipt: receipt.pop("seal"), "has no seal"),
    ],
)
def test_a_changed_receipt_is_found_and_the_change_named(change: Any, fault: str) -> None:
    key = load_private_key(new_private_key())
    public = load_public_keys(public_pem(key.public_key()))
    receipt = json.loads(json.dumps(seal(RECEIPT, key), indent=3))

    genuine = faults_of(receipt, public)
    change(receipt)
    faults = faults_of(receipt, public)

    assert genuine == []
    assert len(faults) == 1
    assert fault in faults[0]


async def test_a_receipt_is_verified_offline_by_its_public_key_and_its_user(
    unshared: Application, tmp_path: Path
) -> None:
    erasure = await erase(unshared, ANN)
    keys = (await unshared.admin().get("/v1/erasures/keys")).json()["keys"]
    receipt, key, stranger = tmp_path / "receipt.json", tmp_path / "key.pem", tmp_path / "stranger.pem"
    receipt.write_text(json.dumps(erasure["receipt"]))
    key.write_text("".join(one["pem"] for one in keys))
    stranger.write_text(public_pem(load_private_key(new_private_key()).public_key()))
    broken = tmp_path / "broken.json"
    broken.write_text(receipt.read_text().replace('"left"', '"left": {}, "left"', 1))

    def verify(*arguments: str) -> tuple[int, str]:
        result = CliRunner().invoke(command_line, ["receipts", "verify", *arguments])
        return result.exit_code, result.output + str(result.exception or "")

    genuine = verify(str(receipt), "--key", str(key), "--user", ANN)
    other = verify(str(receipt), "--key", str(key), "--user", BOB)
    foreign = verify(str(receipt), "--key", str(stranger))
    twice = verify(str(broken), "--key", str(key))

    assert genuine[0] == 0, genuine
    assert "pg_wal" in genuine[1]
    assert (other[0], "not about bob" in other[1]) == (1, True)
    assert (foreign[0], "signed with the key" in foreign[1]) == (1, True)
    assert (twice[0], "twice" in twice[1]) == (1, True)
    assert ANN not in receipt.read_text() + json.dumps(erasure["receipt"], ensure_ascii=False)
    file = unshared.settings.data_dir / "receipts.pem"
    assert file.stat().st_mode & 0o777 == 0o600
    assert datetime.fromisoformat(erasure["completed_at"]) <= datetime.now(UTC)
