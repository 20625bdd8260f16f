"""What earlier code left behind opens with this code, and everything is found in it.

Each installation is opened in two ways: as a data directory that lies where it lay, and as a backup of its database,
restored beside the archive of cold notes and no index at all.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from uuid import UUID

import psycopg
import pytest
from typer.testing import CliRunner

from lamina.cli.commands import app as command_line
from lamina.core.ports import Model
from lamina.stores.postgres.job_runs import JobRuns
from tests.support.application import Application
from tests.support.databases import database_url
from tests.support.installations import (
    Installation,
    Json,
    Manifest,
    follow_move,
    installations,
    opened,
    row_counts,
    servers,
)
from tests.support.jobs import undo_run

LIMIT = 10


@dataclass(frozen=True)
class Reopened:
    """An installation that this code has opened.

    Args:
        app: The application over it.
        manifest: What it held.
        rows: How many rows each table has, before anybody asked for anything.
        audits: What the first audit of each tenant told, before anybody searched.
    """

    app: Application
    manifest: Manifest
    rows: dict[str, int]
    audits: dict[str, Json]

    async def ask(self, method: str, path: str, tenant: str, **options: Any) -> Json:
        """Send a request with the key that the tenant was given by the old code; return its answer."""
        answer = await self.app.client(self.manifest.keys[tenant]).request(method, path, **options)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        found: Json = answer.json()
        return found

    async def search(self, tenant: str, ask: Json) -> list[Json]:
        """Return what a tenant's search finds, every source having answered."""
        body = {"limit": LIMIT, "cache": False, "explain": True, **ask}
        answer = await self.ask("POST", "/v1/search", tenant, json=body)
        assert answer["degraded"] == [], answer["reasons"]
        return list(answer["results"])


@asynccontextmanager
async def where_it_lies(installation: Installation, home: Path, model: Model) -> AsyncIterator[Application]:
    """Open the whole data directory, as ``lamina up`` does after an upgrade."""
    manifest, data_dir = installation.manifest(), installation.unpack(home)
    with servers(data_dir) as (url, graph_url):
        follow_move(url, {manifest.data_dir: str(data_dir), manifest.graph_url: graph_url})
        async with opened(url, data_dir, graph_url, model) as app:
            yield app


@asynccontextmanager
async def from_a_backup(installation: Installation, home: Path, model: Model) -> AsyncIterator[Application]:
    """Open what a backup holds that nothing else is needed for: the database, and the archive of cold notes."""
    data_dir = installation.unpack(home, "archive")
    with servers(data_dir) as (server, graph_url):
        url = empty_database(server)
        installation.restore(url)
        async with opened(url, data_dir, graph_url, model) as app:
            yield app


def empty_database(server: str) -> str:
    """Make a database beside another one, and return its URL; it goes with the server."""
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(b"CREATE DATABASE restored TEMPLATE template0")
    return database_url(server, "restored")


WAYS: dict[str, Callable[[Installation, Path, Model], AbstractAsyncContextManager[Application]]] = {
    "where it lies": where_it_lies,
    "from a backup": from_a_backup,
}
CASES = [(installation, way) for installation in installations() for way in WAYS]


@pytest.fixture(scope="module", params=CASES, ids=[f"{installation.name} {way}" for installation, way in CASES])
async def old(request: pytest.FixtureRequest, minilm: Model) -> AsyncIterator[Reopened]:
    """Each installation, opened in each way."""
    installation, way = request.param
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as home:
        async with WAYS[way](installation, Path(home), minilm) as app:
            yield await reopened(app, installation.manifest())


async def reopened(app: Application, manifest: Manifest) -> Reopened:
    """Return the installation, audited before anybody searches."""
    old = Reopened(app, manifest, row_counts(app.url), {})
    for tenant in manifest.keys:
        old.audits[tenant] = await old.ask("POST", "/v1/audit", tenant, json={})
    return old


async def test_no_table_has_lost_a_row(old: Reopened) -> None:
    lost = {name: (count, old.rows.get(name)) for name, count in old.manifest.rows.items()}

    assert {name: counts for name, counts in lost.items() if (counts[1] or 0) < counts[0]} == {}


async def test_every_projection_holds_what_it_held(old: Reopened) -> None:
    counts = {
        tenant: {name: drift["found"] for name, drift in report["projections"].items()}
        for tenant, report in old.audits.items()
    }

    assert [report for report in old.audits.values() if not report["consistent"]] == []
    assert counts == old.manifest.counts


async def test_every_memory_is_found_by_who_asks_for_it(old: Reopened) -> None:
    missed = []
    for memory in old.manifest.memories:
        found = await old.search(memory.tenant, {**memory.ask, "tiers": [memory.tier]})
        hit = next((hit for hit in found if hit["id"] == memory.id), None)
        if hit is None or not (hit["content"] in memory.text or memory.text in hit["content"]):
            missed.append((memory, [(hit["id"], hit["content"]) for hit in found]))

    assert {memory.tier for memory in old.manifest.memories} == {
        "sessions", "notes", "graph", "procedures", "documents"
    }  # fmt: skip
    assert missed == []


async def test_nobody_finds_what_another_tenant_has(old: Reopened) -> None:
    leaked = []
    for memory in old.manifest.memories:
        for tenant in old.manifest.keys.keys() - {memory.tenant}:
            found = await old.search(tenant, memory.ask)
            leaked += [(tenant, memory) for hit in found if hit["id"] == memory.id or hit["content"] == memory.text]

    assert len(old.manifest.keys) == 2
    assert leaked == []


async def test_what_was_erased_deleted_or_replaced_is_found_by_nothing(old: Reopened) -> None:
    back = [
        (gone, hit["content"])
        for gone in old.manifest.gone
        for hit in await old.search(gone["tenant"], gone["ask"])
        if gone["text"] in hit["content"]
    ]
    tenant, params = old.manifest.erased["tenant"], old.manifest.erased["params"]
    notes = await old.ask("GET", "/v1/notes", tenant, params=params)
    documents = await old.ask("GET", "/v1/documents", tenant, params=params)
    owners = {item["user"] for item in (*notes["notes"], *documents["documents"])}

    assert back == []
    assert params["user"] not in owners


async def test_every_read_answers_as_it_did(old: Reopened) -> None:
    others = []
    for read in old.manifest.reads:
        answer = await old.ask("GET", read["path"], read["tenant"], params=read["params"])
        if not holds(answer, read["answer"]):
            others.append((read, answer))

    assert others == []


def holds(answer: Any, told: Any) -> bool:
    """Tell whether an answer says what was told, whatever it says beside that."""
    match told:
        case dict():
            return isinstance(answer, dict) and all(holds(answer.get(name), value) for name, value in told.items())
        case list():
            return len(answer) == len(told) and all(map(holds, answer, told))
        case _:
            return bool(answer == told)


async def test_a_revoked_key_stays_revoked(old: Reopened) -> None:
    answer = await old.app.client(old.manifest.revoked_key).get("/v1/notes")

    assert answer.status_code == 401


async def test_a_request_that_is_sent_again_is_answered_as_the_first_time(old: Reopened) -> None:
    sent = old.manifest.retried

    answer = await old.ask(
        "POST", "/v1/notes", sent["tenant"], json=sent["body"], headers={"Idempotency-Key": sent["key"]}
    )

    assert sent["answer"].items() <= answer.items()  # Later releases say more.


async def test_a_run_of_a_job_is_taken_back_by_its_journal(old: Reopened) -> None:
    faded = old.manifest.faded
    app = replace(old.app, tenant=faded["tenant"])
    run = await JobRuns(app.pool).get(UUID(faded["run"]), faded["tenant"])
    path = f"/v1/notes/{faded['id']}"
    before = await old.ask("GET", path, faded["tenant"])

    undone = await undo_run(app, run, run.finished_at)
    after = await old.ask("GET", path, faded["tenant"])

    assert undone.changed > 0
    assert (before["weight"], after["weight"]) == (faded["weight"], 1)


async def test_an_archived_note_comes_back_from_its_file(old: Reopened) -> None:
    archived = old.manifest.archived
    ask = {"workspace": archived["workspace"], "query": archived["text"], "tiers": ["notes"]}

    restored = await old.ask("POST", "/v1/archive/restore", archived["tenant"], json={"ids": [archived["id"]]})
    await old.app.indexed()
    found = await old.search(archived["tenant"], ask)

    assert [result["status"] for result in restored["results"]] == ["restored"], restored
    assert (found[0]["id"], found[0]["content"]) == (archived["id"], archived["text"])


async def reindex(app: Application, folder: Path) -> None:
    """Have every projection built anew by the command line."""
    config = folder / "lamina.json"  # JSON is YAML.
    chosen = {"data_dir", "postgres", "graph", "embedding", "hybrid", "vectors"}
    config.write_text(app.settings.model_dump_json(include=chosen))
    arguments = ["reindex", "all", "--config", str(config)]
    ordered = await asyncio.to_thread(CliRunner().invoke, command_line, arguments, catch_exceptions=False)
    assert ordered.exit_code == 0, ordered.output
    assert " ".join(ordered.output.split()).count("the running service applies them") == 5
    await app.indexed()


@pytest.mark.parametrize("installation", installations(), ids=lambda installation: installation.name)
async def test_a_database_that_goes_back_has_its_newer_indexes_built_anew(
    installation: Installation, home: Path, tmp_path: Path, minilm: Model
) -> None:
    # given
    manifest, data_dir = installation.manifest(), installation.unpack(home)
    memory = next(memory for memory in manifest.memories if memory.tier == "notes")
    tenant, later = memory.tenant, "The bell buoy was painted blue"
    with servers(data_dir) as (url, graph_url):
        places = {manifest.data_dir: str(data_dir), manifest.graph_url: graph_url}
        follow_move(url, places)
        async with opened(url, data_dir, graph_url, minilm) as app:
            old = Reopened(app, manifest, {}, {})
            body = {"workspace": memory.ask["workspace"], "content": later}
            await old.ask("POST", "/v1/notes", tenant, json=body)
            deleted = await app.client(manifest.keys[tenant]).delete(f"/v1/notes/{memory.id}")
            await app.indexed()

        # when
        before = empty_database(url)
        installation.restore(before)
        follow_move(before, places)
        async with opened(before, data_dir, graph_url, minilm) as app:
            old = Reopened(app, manifest, {}, {})
            first = await old.ask("POST", "/v1/audit", tenant, json={})
            await reindex(app, tmp_path)
            second = await old.ask("POST", "/v1/audit", tenant, json={})
            found = await old.search(tenant, memory.ask)
            afterwards = await old.search(tenant, {**memory.ask, "query": later})

    # then
    assert deleted.status_code == 204
    assert (first["consistent"], second["consistent"]) == (False, True)
    assert memory.id in {hit["id"] for hit in found}
    assert later not in {hit["content"] for hit in afterwards}


def test_there_is_an_installation_of_an_earlier_commit() -> None:
    assert installations()
