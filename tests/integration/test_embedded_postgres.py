import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psycopg
import pytest
from psycopg import pq

from lamina.embedded import EmbeddedPostgres, postgres, running_url
from lamina.errors import Misconfigured
from lamina.settings.stores import EmbeddedPostgresSettings
from lamina.stores.postgres.migrate import migrate, wait_for_server
from tests.support.service import command_line

SETTINGS = EmbeddedPostgresSettings()
PARENT = """
import sys, time
from pathlib import Path
from lamina.embedded import EmbeddedPostgres
from lamina.settings.stores import EmbeddedPostgresSettings
server = EmbeddedPostgres(Path(sys.argv[1]), EmbeddedPostgresSettings())
server.start()
print(server.pid, flush=True)
time.sleep(600)
"""


def test_a_second_start_finds_the_data_of_the_first(home: Path) -> None:
    first = EmbeddedPostgres(home / "pg", SETTINGS)
    with psycopg.connect(first.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id integer)")
    first.stop()

    second = EmbeddedPostgres(home / "pg", SETTINGS)
    with psycopg.connect(second.start()) as connection:
        found = connection.execute("SELECT count(*) FROM kept").fetchone()
    second.stop()

    assert found == (0,)
    assert "database system was not properly shut down" not in (home / "pg" / "log").read_text()


@pytest.mark.parametrize(("stored", "age"), [("99", "newer"), ("12", "older")])
def test_data_of_another_version_are_refused_with_the_remedy(home: Path, stored: str, age: str) -> None:
    server = EmbeddedPostgres(home / "pg", SETTINGS)
    server.start()
    server.stop()
    (home / "pg" / "PG_VERSION").write_text(f"{stored}\n")

    with pytest.raises(Misconfigured, match=rf"data of Postgres {stored}, which is {age}.*another data_dir"):
        EmbeddedPostgres(home / "pg", SETTINGS).start()


def test_a_server_that_dies_is_started_again_with_its_data(home: Path) -> None:
    server = EmbeddedPostgres(home / "pg", SETTINGS)
    with psycopg.connect(server.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept (id integer)")
    assert server.pid is not None
    os.kill(server.pid, signal.SIGKILL)
    while server.pid is not None:
        time.sleep(0.01)

    revived = server.ensure_running()
    with psycopg.connect(server.url) as connection:
        found = connection.execute("SELECT count(*) FROM kept").fetchone()
    server.stop()

    assert revived
    assert found == (0,)


@pytest.fixture
def recovering(home: Path) -> Iterator[EmbeddedPostgres]:
    """Yield a stopped server that recovers, when it is started, until there is a file named `enough`."""
    server = EmbeddedPostgres(home / "pg", SETTINGS)
    server.start()
    server.stop()
    (home / "pg" / "recovery.signal").touch()
    wait = f"until test -e {home}/pg/enough; do sleep 0.05; done; false"
    with (home / "pg" / "postgresql.auto.conf").open("a") as file:
        file.write(f"restore_command = '{wait}'\nhot_standby = off\n")
    yield server
    (home / "pg" / "enough").touch()
    server.stop()


def started_up(server: EmbeddedPostgres) -> None:
    """Wait until the server says that it starts up."""
    deadline = time.monotonic() + 90
    while pq.PGconn.ping(server.url.encode()) != pq.Ping.REJECT:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_a_start_waits_for_a_recovery_as_long_as_it_takes(
    recovering: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with ThreadPoolExecutor(1) as thread:
        starting = thread.submit(recovering.start)
        started_up(recovering)
        with monkeypatch.context() as shorter:
            shorter.setattr(postgres, "START_TIMEOUT_S", 0.1)
            while not starting.done() and "has been recovering" not in caplog.text:
                time.sleep(0.05)
        (recovering.directory / "enough").touch()
        starting.result(90)
        # The server ends with the thread that started it.
        with psycopg.connect(recovering.url) as connection:
            answer = connection.execute("SELECT 1").fetchone()

    assert answer == (1,)


def test_a_server_that_recovers_for_too_long_is_stopped(
    recovering: EmbeddedPostgres, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ThreadPoolExecutor(1) as thread:
        starting = thread.submit(recovering.start)
        started_up(recovering)
        pid = recovering.pid
        monkeypatch.setattr(postgres, "START_TIMEOUT_S", 0.0)
        monkeypatch.setattr(postgres, "RECOVERY_TIMEOUT_S", 0.0)
        with pytest.raises(Misconfigured, match="does not start"):
            starting.result(90)

    assert pid is not None
    assert not command_line(pid)


def test_data_that_were_put_beside_the_mark_of_a_killed_initialisation_stay(home: Path) -> None:
    first = EmbeddedPostgres(home / "pg", SETTINGS)
    with psycopg.connect(first.start(), autocommit=True) as connection:
        connection.execute("CREATE TABLE kept ()")
    first.stop()
    (home / "pg.initialising").touch()

    second = EmbeddedPostgres(home / "pg", SETTINGS)
    with psycopg.connect(second.start(), autocommit=True) as connection:
        connection.execute("TABLE kept")
    second.stop()

    assert not (home / "pg.initialising").exists()


def test_data_whose_initialisation_was_killed_are_made_anew(home: Path) -> None:
    first = EmbeddedPostgres(home / "pg", SETTINGS)
    first.start()
    first.stop()
    # As initdb leaves them.
    (home / "pg" / "global" / "pg_control").unlink()
    (home / "pg.initialising").touch()

    second = EmbeddedPostgres(home / "pg", SETTINGS)
    second.start()
    second.stop()

    assert not (home / "pg.initialising").exists()


def test_a_folder_with_other_files_is_not_emptied(home: Path) -> None:
    (home / "pg").mkdir(parents=True)
    (home / "pg" / "letter").write_text("Dear Ann,")

    for _ in range(2):
        with pytest.raises(Misconfigured, match="cannot initialise"):
            EmbeddedPostgres(home / "pg", SETTINGS).start()

    assert (home / "pg" / "letter").read_text() == "Dear Ann,"


def test_it_ends_cleanly_when_its_parent_is_killed(home: Path) -> None:
    parent = subprocess.Popen([sys.executable, "-c", PARENT, str(home / "pg")], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())

    parent.kill()
    parent.wait()
    parent.stdout.close()
    deadline = time.monotonic() + 90
    while command_line(pid) and time.monotonic() < deadline:
        time.sleep(0.05)

    assert not command_line(pid)
    assert "database system is shut down" in (home / "pg" / "log").read_text()


def test_asking_for_a_server_that_does_not_run_says_how_to_start_it(home: Path) -> None:
    with pytest.raises(Misconfigured, match="start it with `lamina up`"):
        running_url(home / "pg")


def test_a_start_waits_for_a_server_that_comes_up_later(home: Path) -> None:
    server = EmbeddedPostgres(home / "pg", SETTINGS)
    url = server.start()
    server.stop()

    with ThreadPoolExecutor(1) as thread:
        waiting = thread.submit(wait_for_server, url, 60)
        time.sleep(0.5)
        is_waiting = not waiting.done()
        server.start()
        waiting.result(30)
    applied = migrate(url)
    server.stop()

    assert is_waiting
    assert applied
