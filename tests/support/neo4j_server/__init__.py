"""A real Neo4j for the tests: the one that is configured, or one from Maven's artifacts where Java and Maven are.

One starts for a run, in the worker that has all tests of it (``tests/support/schedule.py``): it answers after 7 s and
takes 500 MB. It ends with that worker, however the worker ends.
"""

import os
import re
import secrets
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path

import neo4j
import pytest
from neo4j.exceptions import AuthError
from pydantic import SecretStr

from deployments.environment import free_port
from lamina.embedded.child_process import die_with_parent, stop_process
from lamina.settings.stores import Neo4jServerSettings
from tests.support.scratch import new_folder

VERSION = "5.26.12"
POM = Path(__file__).with_name("pom.xml")
JARS = Path(__file__).parents[3] / "build" / f"neo4j-{VERSION}"
JAVA_AT_LEAST = 17
FETCH_TIMEOUT_S = 300.0
START_TIMEOUT_S = 180.0
FIRST_PASSWORD = "neo4j"  # That of every new server.
# Compiled lightly, it starts in half the time; the tests' graphs are small.
JAVA_OPTIONS = ("-Xms256m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
CONFIGURATION = """
server.bolt.listen_address=127.0.0.1:{port}
server.bolt.advertised_address=127.0.0.1:{port}
server.http.enabled=false
server.https.enabled=false
server.memory.pagecache.size=64m
dbms.usage_report.enabled=false
"""


@contextmanager
def running_neo4j() -> Iterator[Neo4jServerSettings]:
    """Give the settings of the server that `LAMINA_TEST_NEO4J_URL` names, or of one that runs meanwhile.

    Where there is neither, the test is skipped with what is missing.
    """
    if url := os.environ.get("LAMINA_TEST_NEO4J_URL"):
        yield Neo4jServerSettings(
            url=url,
            user=os.environ.get("LAMINA_TEST_NEO4J_USER", "neo4j"),
            password=SecretStr(os.environ.get("LAMINA_TEST_NEO4J_PASSWORD", "")),
            database=os.environ.get("LAMINA_TEST_NEO4J_DATABASE", "neo4j"),
            connections=4,
        )
        return
    if missing := missing_for_neo4j():
        pytest.skip(missing)
    with new_folder() as home:
        server = Neo4jServer(home)
        try:
            server.start()
            yield server.settings
        finally:
            server.kill()


@cache
def missing_for_neo4j() -> str | None:
    """Return what keeps a Neo4j from being started here; ``None`` if nothing does. Fetches its artifacts once."""
    version = java_version()
    if version is None or version < JAVA_AT_LEAST:
        has = "no Java" if version is None else f"Java {version}"
        return f"Neo4j needs Java {JAVA_AT_LEAST}, here is {has}; or LAMINA_TEST_NEO4J_URL names a server"
    maven = shutil.which("mvn")
    if maven is None:
        return "Neo4j is fetched by Maven, which is not here; or LAMINA_TEST_NEO4J_URL names a server"
    return _fetch(maven)


def java_version() -> int | None:
    """Return the feature version of the Java that is found first."""
    java = shutil.which("java")
    if java is None:
        return None
    told = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    return version_told(told)


def version_told(text: str) -> int | None:
    """Return the feature version in the words of `java -version`; 8 is told as 1.8."""
    found = re.search(r'version "(?:1\.)?(\d+)', text)
    return int(found[1]) if found else None


def _fetch(maven: str) -> str | None:
    JARS.parent.mkdir(exist_ok=True)
    with JARS.with_name(f"{JARS.name}.lock").open("w") as lock:
        flock(lock, LOCK_EX)
        if JARS.is_dir():
            return None
        beside = JARS.with_name(f"{JARS.name}.new")
        shutil.rmtree(beside, ignore_errors=True)
        command = [maven, "--batch-mode", "--quiet", "--file", str(POM), f"-Dneo4j.version={VERSION}"]
        # What Maven has in its own cache already is taken from there, without a network.
        goal = ["dependency:copy-dependencies", f"-DoutputDirectory={beside}", "-DincludeScope=runtime"]
        for offline in (["--offline"], []):
            try:
                told = subprocess.run(
                    [*command, *offline, *goal], capture_output=True, text=True, timeout=FETCH_TIMEOUT_S, check=False
                )
            except subprocess.TimeoutExpired:
                return f"Maven fetched Neo4j {VERSION} for {FETCH_TIMEOUT_S:g} s without an end"
            if told.returncode == 0:
                beside.rename(JARS)
                return None
    return f"Maven does not fetch Neo4j {VERSION}: {told.stdout.strip()[:300]}"


class Neo4jServer:
    """A Neo4j of a test run, which keeps its data in a folder and may be killed and started again.

    Args:
        home: Its folder.
    """

    def __init__(self, home: Path) -> None:
        self._home = home
        self._port = free_port()
        self._password = secrets.token_urlsafe(16)
        self._process: subprocess.Popen[bytes] | None = None
        (home / "conf").mkdir()
        (home / "conf" / "neo4j.conf").write_text(CONFIGURATION.format(port=self._port))

    @property
    def settings(self) -> Neo4jServerSettings:
        """Where it is and who connects."""
        url = f"bolt://127.0.0.1:{self._port}"
        return Neo4jServerSettings(url=url, password=SecretStr(self._password), connections=4)

    def start(self) -> None:
        """Start it and return when it answers."""
        place = [f"--home-dir={self._home}", f"--config-dir={self._home / 'conf'}"]
        java = shutil.which("java") or "java"
        main = "org.neo4j.server.CommunityEntryPoint"
        with (self._home / "output").open("wb") as output:
            self._process = subprocess.Popen(
                [java, *JAVA_OPTIONS, "-cp", f"{JARS}/*", main, *place],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                preexec_fn=die_with_parent(os.getpid(), signal.SIGKILL),  # noqa: PLW1509 - calls one system call
            )
        self._wait_until_open()
        self._choose_password()

    def kill(self) -> None:
        """End it as a crash would; a clean end takes seconds."""
        process, self._process = self._process, None
        if process is not None and process.poll() is None:
            stop_process(process, signal.SIGKILL, signal.SIGKILL)

    def _wait_until_open(self) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        process = self._process
        while process is not None and process.poll() is None and time.monotonic() < deadline:
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", self._port)) == 0:
                    return
            time.sleep(0.1)
        raise RuntimeError(f"Neo4j does not start: {(self._home / 'output').read_text()[-2000:]}")

    def _choose_password(self) -> None:
        text = "ALTER CURRENT USER SET PASSWORD FROM $first TO $chosen"
        chosen = {"first": FIRST_PASSWORD, "chosen": self._password}
        # A server that was started again has its password already.
        with (
            suppress(AuthError),
            neo4j.GraphDatabase.driver(self.settings.url, auth=("neo4j", FIRST_PASSWORD)) as driver,
        ):
            driver.execute_query(text, chosen, database_="system")
