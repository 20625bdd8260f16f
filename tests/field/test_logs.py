"""Each answer names its request, the log names it too, and neither holds what was stored or asked; use is counted."""

import io
import json
import logging
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx
import psycopg
import pytest

import deployments.app
import jobs.__main__
import jobs.runner
from actors.logs import LOGGERS, PIPE, JsonLines, install
from actors.scheduler import Scheduler
from deployments.app import CompactDeployment, RouterDeployment
from deployments.logs import RequestLog
from deployments.replica import begin_replica
from deployments.usage import UsageMeter
from lamina.aio.part_times import timed_part, timing_parts
from lamina.core.principals import Bounds, KeyRole, new_principal
from lamina.core.quotas import Spending
from lamina.core.request_ids import of_request
from lamina.core.usage import Use
from lamina.errors import Unavailable
from lamina.models.hashing import HashingModel
from lamina.settings.logs import LogsSettings
from lamina.stores.postgres.keys import store_key
from lamina.stores.postgres.usage import UsageTable
from lamina.wiring.stores import utc_now
from tests.support.application import Application, running, settings_for

MARK = "heliotrope"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """The log of this process as JSON lines; as it was, afterwards."""
    found = [logging.getLogger(), *map(logging.getLogger, [*logging.root.manager.loggerDict, *LOGGERS])]
    before = [(logger, logger.handlers, logger.propagate, logger.level) for logger in found]
    stream = io.StringIO()
    install(LogsSettings(json_lines=True), stream)
    yield stream
    logging.captureWarnings(capture=False)
    for logger, handlers, propagates, level in before:
        logger.handlers, logger.propagate = handlers, propagates
        logger.setLevel(level)


def lines(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def logging_client(app: Application, key: str | None = None) -> httpx.AsyncClient:
    """Return a client of the application with a line for each request."""
    logged = RequestLog(app.api, LogsSettings(requests=True))
    headers = {"Authorization": f"Bearer {key or app.key}"}
    transport = httpx.ASGITransport(logged, raise_app_exceptions=False)
    client = httpx.AsyncClient(transport=transport, base_url="http://lamina", headers=headers, timeout=30)
    app.clients.append(client)
    return client


@pytest.mark.parametrize(
    ("sent", "is_kept"),
    [
        ("a-1.B_2", True),
        ("x" * 128, True),
        ("x" * 129, False),
        ("", False),
        ("two words", False),
        ('"}\\u000a{"', False),
        ("<script>", False),
    ],
)
async def test_an_answer_names_its_request_by_a_harmless_id(application: Application, sent: str, is_kept: bool) -> None:
    client = application.client()
    for path in ("/v1/notes", "/v1/notes/no-id", "/no/such/route", "/livez"):
        answer = await client.get(path, headers={"X-Request-Id": sent})

        [named] = answer.headers.get_list("x-request-id")
        assert (named == sent) is is_kept
        assert named


async def test_a_refusal_of_the_front_door_names_its_request(application: Application) -> None:
    client = application.client("lamina_nobody")

    first, second = [(await client.get("/v1/notes")) for _ in range(2)]

    assert first.status_code == 401
    assert first.headers["x-request-id"] != second.headers["x-request-id"]


async def test_no_line_of_a_session_of_calls_holds_a_content_and_each_request_has_one(
    application: Application, log: io.StringIO
) -> None:
    client = logging_client(application)
    word = f"{MARK} røyk 煙"
    scope = {"user": f"{MARK} ann"}
    calls: list[tuple[str, str, Any]] = [
        ("POST", "/v1/turns", {**scope, "session": MARK, "messages": [{"content": word}]}),
        ("POST", "/v1/turns", {**scope, "session": MARK, "messages": [{"content": word, "role": MARK}]}),
        ("POST", "/v1/notes", {**scope, "content": word, "tags": [MARK]}),
        ("POST", "/v1/notes", {**scope, "content": word, "importance": MARK}),
        ("POST", "/v1/documents", {"content": word, "key": MARK}),
        ("POST", "/v1/search", {"query": word, **scope}),
        ("POST", "/v1/search", {"query": word, "filters": {MARK: 1}}),
        ("POST", "/v1/search/batch", {"searches": [word, {"query": word, "limit": MARK}]}),
        ("POST", "/v1/context", {"query": word, **scope}),
        ("POST", "/v1/procedures", {"trigger": word, "action": word}),
        ("POST", "/v1/notes/bulk/delete", {**scope, "tags": [MARK]}),
        ("GET", f"/v1/notes?user={MARK}", None),
        ("GET", f"/v1/workspaces/{MARK}/files/{MARK}.md", None),
        ("GET", f"/v1/sessions/{MARK}/messages", None),
        ("GET", f"/{MARK}", None),
    ]

    answers = [await client.request(method, path, json=body) for method, path, body in calls]

    written = [line for line in lines(log) if line["message"] == "request"]
    assert MARK not in log.getvalue()
    assert "煙" not in log.getvalue()
    # The application names it, too, where it was not named before: one of two is the one of the line.
    named = [answer.headers.get_list("x-request-id") for answer in answers]
    assert all(line["request_id"] in ids for line, ids in zip(written, named, strict=True))
    assert [line["status"] for line in written] == [answer.status_code for answer in answers]
    assert written[0]["route"] == "/v1/turns"
    # The last path is none of the routes, and asks for no key.
    assert [line["tenant"] for line in written] == [*[application.tenant] * (len(calls) - 1), None]


async def test_an_unexpected_error_is_logged_by_its_places_without_its_text(
    application: Application, log: io.StringIO, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: Any, **__: Any) -> Any:
        raise RuntimeError(f"cannot read {MARK}")

    monkeypatch.setattr(application.services.reads.notes, "page", fail)
    answer = await logging_client(application).get("/v1/notes", headers={"X-Request-Id": "abc-1"})

    [line] = [line for line in lines(log) if line["level"] == "error"]
    assert (answer.status_code, "abc-1" in answer.json()["detail"]) == (500, True)
    assert (line["request_id"], line["error"]) == ("abc-1", "RuntimeError")
    assert any(place.endswith("<locals>.fail") for place in line["places"])
    assert MARK not in log.getvalue()


def test_a_line_is_one_object_whatever_it_says() -> None:
    record = logging.LogRecord("lamina", logging.WARNING, "", 1, 'two\nlines and "quotes" %s', ("\u2028 煙",), None)
    with of_request("r-1"):
        line = JsonLines().format(record)

    assert "\n" not in line
    assert json.loads(line)["request_id"] == "r-1"


@pytest.mark.parametrize("package", LOGGERS)
def test_deployments_actors_and_jobs_write_the_same_lines(log: io.StringIO, package: str) -> None:
    logging.getLogger(f"{package}.anything").warning("it is late")

    [line] = lines(log)
    assert (line["logger"], line["level"], line["message"]) == (f"{package}.anything", "warning", "it is late")


@pytest.fixture
def noisy() -> Iterator[logging.Logger]:
    """A library's logger that writes to the console by itself, as Ray's do, and leaves some records out."""
    logger, handler = logging.getLogger(f"noisy{uuid4().hex}"), logging.StreamHandler(io.StringIO())
    handler.addFilter(lambda record: "left out" not in record.getMessage())
    logger.handlers, logger.propagate = [handler], False
    yield logger
    logger.handlers = []


def test_libraries_write_the_same_lines_and_never_what_stands_behind_the_first_one_of_an_error(
    noisy: logging.Logger, log: io.StringIO
) -> None:
    error = psycopg.errors.UniqueViolation(f"duplicate key\nDETAIL:  Key (content)=({MARK}) already exists.")

    logging.getLogger("psycopg.pool").warning("error connecting in %r: %s", "pool-1", error)
    logging.getLogger("apscheduler.scheduler").warning("it is late", extra={"fields": [MARK]})
    noisy.warning("it wrote by itself")
    noisy.warning("it is left out")

    assert [(line["logger"], line["message"]) for line in lines(log)] == [
        ("psycopg.pool", "error connecting in 'pool-1': duplicate key"),
        ("apscheduler.scheduler", "it is late"),
        (noisy.name, "it wrote by itself"),
    ]
    assert MARK not in log.getvalue()


def test_a_warning_of_python_is_such_a_line_also_where_another_stream_stands_for_standard_error() -> None:
    begin = "import io, sys; from actors.logs import install; from lamina.settings.logs import LogsSettings"
    warn = "sys.stderr = io.StringIO(); install(LogsSettings(json_lines=True)); warnings.warn('it will go')"

    command = [sys.executable, "-W", "always", "-c", f"import warnings; {begin}; {warn}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)

    [line] = [json.loads(line) for line in done.stderr.splitlines()]
    assert (line["logger"], line["message"]) == ("py.warnings", "<string>:1: UserWarning: it will go")


def test_files_of_libraries_stay_as_they_are(noisy: logging.Logger, tmp_path: Path, log: io.StringIO) -> None:
    with closing(logging.FileHandler(tmp_path / "own.log")) as kept:
        noisy.handlers = [kept]
        install(LogsSettings(json_lines=True), log)

        assert noisy.handlers == [kept]


def test_every_process_of_the_service_writes_its_log_as_the_settings_say() -> None:
    classes = [found for name, found in vars(deployments.app).items() if name.endswith("Deployment")]
    begins = [begin_replica, Scheduler.__init__, jobs.runner.work, jobs.__main__.main]

    # The compact one is a router.
    assert len(classes) >= 6
    assert [found for found in classes if "begin_replica" not in found.__init__.__code__.co_names] == [
        CompactDeployment
    ]
    assert all({"logs", "install"} <= set(found.__code__.co_names) for found in begins)
    assert issubclass(CompactDeployment, RouterDeployment)


@pytest.fixture
def pipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """The end that `lamina up` reads, of the pipe to its terminal."""
    path = tmp_path / "pipe"
    os.mkfifo(path)
    monkeypatch.setenv(PIPE, str(path))
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    yield reader
    os.close(reader)


def test_a_process_of_lamina_up_shows_its_own_lines_once_and_no_text_of_an_error(log: io.StringIO, pipe: int) -> None:
    install(LogsSettings())
    install(LogsSettings())
    own = logging.getLogger("lamina.projections.indexer")
    with of_request("r-1"):
        own.info("told", extra={"fields": {"route": "/v1/notes", "tenant": None}})
    own.warning("%s is away", "graph", extra={"fields": {"part": "graph"}})
    own.error("it failed", exc_info=ValueError(MARK))

    told, away, failed = os.read(pipe, 1 << 16).decode().splitlines()
    assert told.endswith(" info lamina.projections.indexer: told request_id=r-1 route=/v1/notes")
    assert away.endswith(" warning lamina.projections.indexer: graph is away")
    assert failed.endswith(" error lamina.projections.indexer: it failed error=ValueError")
    assert MARK not in failed


def test_json_lines_go_to_the_terminal_of_lamina_up_too(log: io.StringIO, pipe: int) -> None:
    install(LogsSettings(json_lines=True))
    logging.getLogger("psycopg.pool").warning("it is late")

    assert json.loads(os.read(pipe, 1 << 16))["message"] == "it is late"


def test_a_line_to_the_terminal_stays_one_and_no_part_of_it_is_obeyed(log: io.StringIO, pipe: int) -> None:
    install(LogsSettings())
    own = logging.getLogger("lamina")
    own.warning("bad \x1b[2J\x00name\n2026 info lamina: forged")
    own.warning("%s", "é" * 5_000)
    own.info("next", extra={"fields": {"status": 0}})

    bad, long, after = os.read(pipe, 1 << 16).decode().splitlines()
    assert bad.endswith("bad \\x1b[2J\\x00name\\n2026 info lamina: forged")
    assert len(long.encode()) in (select.PIPE_BUF - 2, select.PIPE_BUF - 1)
    assert after.endswith("next status=0")


@pytest.mark.parametrize("error", ["closed", "full"])
def test_lamina_up_ends_though_nobody_takes_its_standard_error(error: str, tmp_path: Path) -> None:
    reader, writer = os.pipe()
    shown = f"""
import logging, os
from pathlib import Path
from actors.logs import install
from deployments.up import _show_log
from lamina.settings.logs import LogsSettings
if {error == "closed"}:
    os.close(2)
stop = _show_log(Path({str(tmp_path)!r}))
install(LogsSettings())
for _ in range(100):
    logging.getLogger("lamina").warning("x" * 3000)
stop()
"""

    with subprocess.Popen([sys.executable, "-c", shown], stderr=writer) as process:
        assert process.wait(60) == 0
    os.close(writer)
    os.close(reader)


def test_no_process_waits_for_a_terminal_that_takes_nothing(log: io.StringIO, pipe: int) -> None:
    install(LogsSettings())
    own = logging.getLogger("lamina")

    for number in range(2_000):  # Some 200 KB; a pipe takes 64.
        own.warning("line %s %s", number, "x" * 100)

    assert os.read(pipe, 100).decode().endswith("x")


def test_without_the_pipe_of_lamina_up_lines_go_where_serve_has_them(
    log: io.StringIO, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(PIPE, str(tmp_path / "gone"))
    before = [list(logging.getLogger(name).handlers) for name in LOGGERS]

    install(LogsSettings())

    assert [logging.getLogger(name).handlers for name in LOGGERS] == before


async def test_a_slow_search_is_logged_with_the_times_of_its_parts(
    database: str, tmp_path: Path, log: io.StringIO
) -> None:
    settings = settings_for(database, tmp_path, logs={"slow_search_ms": 0.000001})
    async with running(settings, database, HashingModel()) as app:
        client = app.client()
        answer = await client.post("/v1/search", json={"query": f"{MARK} boat", "cache": False})

        [line] = [line for line in lines(log) if "parts_ms" in line]
        assert line["request_id"] == answer.headers["x-request-id"]
        assert {"embedder", "rows"} <= line["parts_ms"].keys()
        assert MARK not in log.getvalue()
        await app.close_clients()


def test_a_part_that_runs_twice_counts_by_the_longer_time_and_none_outside() -> None:
    with timed_part("alone"), timing_parts() as times:
        for _ in range(2):
            with timed_part("tier"):
                pass

    assert set(times) == {"tier"}


async def test_use_is_counted_by_tenant_and_day(unshared: Application) -> None:
    client = unshared.client()
    admin = unshared.admin()
    stranger = unshared.client(unshared.new_key("another tenant", KeyRole.ADMIN))
    await client.post("/v1/turns", json={"session": "s", "messages": [{"content": "the boat is green"}]})
    for _ in range(2):  # The second answer comes from a cache, and counts as well.
        await client.post("/v1/search", json={"query": "boat"})
    await client.post("/v1/context", json={"query": "boat"})
    await client.post("/v1/search/batch", json={"searches": ["boat", "green", " "]})
    before = datetime.now(UTC).date()

    used = (await admin.get("/v1/usage")).json()
    other = (await stranger.get("/v1/usage")).json()

    total = used["total"]
    assert (total["searches"], total["turns"], total["requests"]) == (6, 1, 5)
    assert total["embedded_tokens"] > 0
    assert total["bytes"] > 100
    assert {day["day"] for day in used["days"]} <= {before.isoformat(), datetime.now(UTC).date().isoformat()}
    assert (other["total"]["searches"], other["total"]["turns"]) == (0, 0)
    assert used["stored"]["rows"] >= 1


async def test_use_is_shown_to_a_whole_admin_alone_and_for_days_in_order(application: Application) -> None:
    principal = new_principal(
        application.tenant, KeyRole.ADMIN, utc_now(), bounds=Bounds.from_lists({"workspaces": ["w"]})
    )
    bound = application.client(store_key(application.url, principal, "bound"))
    admin = application.admin()

    assert (await application.client().get("/v1/usage")).status_code == 403
    assert (await bound.get("/v1/usage")).status_code == 403
    refused = [
        ({"since": "2026-03-02", "until": "2026-03-02"}, "until"),
        ({"since": "1926-03-02"}, "since"),
        ({"since": "9998-03-02"}, "since"),
        ({"since": "March"}, "since"),
        *(({"until": until}, "until") for until in ("0001-01-01", "0001-01-15", "1969-12-31")),
    ]
    for params, field in refused:
        answer = await admin.get("/v1/usage", params=params)
        assert (answer.status_code, answer.json()["errors"][0]["field"]) == (422, field), params
    assert (await admin.get("/v1/usage", params={"until": "9999-12-31"})).status_code == 200


async def test_use_of_which_nobody_knows_whether_it_was_written_is_not_added_again(
    application: Application, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    table, tenant = UsageTable(application.pool), f"tenant {uuid4().hex}"
    meter = UsageMeter(table, clock=lambda: datetime(2026, 3, 1, 23, tzinfo=UTC))
    add = table.add

    async def add_and_break(*sent: Any) -> None:
        await add(*sent)
        raise Unavailable("postgres", "gone away behind the commit")

    with monkeypatch.context() as patch, caplog.at_level("ERROR"):
        patch.setattr(table, "add", add_and_break)
        meter.count(tenant, Spending(uses={Use.TURNS: 1}), 7)
        await meter.flush()
    await meter.close()

    [used] = await table.days(tenant, date(2026, 3, 1), date(2026, 3, 2))
    assert (used.amounts[Use.TURNS], used.amounts[Use.REQUESTS]) == (1, 1)
    assert f"{tenant} 2026-03-01: bytes 7, requests 1, turns 1" in caplog.text


async def test_use_that_cannot_be_written_is_kept_and_written_later(
    application: Application, monkeypatch: pytest.MonkeyPatch
) -> None:
    table, tenant = UsageTable(application.pool), f"tenant {uuid4().hex}"
    meter = UsageMeter(table, clock=lambda: datetime(2026, 3, 1, 23, tzinfo=UTC))

    async def away(*_: Any) -> None:
        raise Unavailable("postgres", "gone away")

    with monkeypatch.context() as patch:
        patch.setattr(table, "add", away)
        meter.count(tenant, Spending(uses={Use.SEARCHES: 1}), 7)
        await meter.flush()
    meter.count(tenant, Spending(uses={Use.SEARCHES: 1}), 7)
    await meter.close()

    [used] = await table.days(tenant, date(2026, 3, 1), date(2026, 3, 2))
    assert (used.amounts[Use.SEARCHES], used.amounts[Use.BYTES]) == (2, 14)
