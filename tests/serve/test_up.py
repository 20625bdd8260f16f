"""`lamina up` on a real Ray: the README's promises, over HTTP and the command line."""

import json
import os
import re
import signal
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from benchmarks.replica_watch import pss_mb
from deployments.reaper import processes_of
from lamina.cli import sample
from lamina.core.tiers import PROJECTIONS, TIERS
from tests.support.scratch import new_folder
from tests.support.service import (
    ROOT,
    Running,
    command_line,
    descendants,
    instance_folder,
    launch,
    left_of,
    parent_of,
    run_cli,
    running_service,
    until_it_says,
)

# It takes 1 200 MB; each process that imported everything by itself would add 60.
MOST_MB = 1600


@pytest.fixture(scope="module")
def service() -> Iterator[Running]:
    """One instance with the real model and the sample conversation."""
    with (
        new_folder() as folder,
        running_service(folder, "--sample", LAMINA_LOGS__REQUESTS="true") as instance,
    ):
        yield instance


def test_the_first_start_shows_a_search_and_a_context_with_each_sources_rank(service: Running) -> None:
    shown = service.output.read_text()

    assert "150 messages of the sample conversation are stored" in shown
    assert "session_vectors 1" in shown
    assert "session_words" in shown
    assert "[Profile: mira]" in shown
    assert "[Memory: message |" in shown


def test_the_sample_questions_find_what_answers_them(service: Running) -> None:
    conversation = sample.load()

    with service.client(workspace=conversation.workspace, user=conversation.user) as client:
        found = {
            question.query: {hit["ref"] for hit in client.search(question.query, limit=10)["results"]}
            for question in conversation.questions
        }

    answered = {question.query for question in conversation.questions if found[question.query] & set(question.expected)}
    assert {"What happened to LFP-2291-07?", "What runs on 5433?"} <= answered
    assert len(answered) >= 7


def test_every_part_is_ready_and_the_projections_catch_up(service: Running) -> None:
    with service.client() as client:
        ready = client.ready()

    assert ready["ready"]
    assert ready["parts"] == dict.fromkeys(("postgres", "embedder", *TIERS, "indexer"), "ok")
    assert set(ready["outbox"]) == set(PROJECTIONS)


def test_a_note_added_on_the_command_line_is_found_by_it(service: Running) -> None:
    added = service.command("add", "The spare key hangs behind the barometer", "-w", "house", "-t", "keys")
    again = service.cli("add", "The spare key hangs behind the barometer", "-w", "house")
    found = service.command("search", "where is the spare key?", "-w", "house")
    block = service.command("context", "where is the spare key?", "-w", "house", "--budget", "64")
    status = service.command("status")

    assert "stored" in added.stdout
    assert "existed" in again.stdout
    assert "behind the barometer" in found.stdout
    assert "notes_hybrid 1" in found.stdout
    assert "[Memory: note |" in block.stdout
    assert status.returncode == 0


def test_the_terminal_shows_what_the_parts_log_at_once(service: Running) -> None:
    with service.client(workspace="house") as client:
        client.search("where is the spare key?")

    until = time.monotonic() + 30
    while not (found := re.findall(r"info deployments\.logs: request .*", service.output.read_text())):
        assert time.monotonic() < until
        time.sleep(0.05)
    assert any("method=POST route=/v1/search status=200" in line for line in found)
    assert all("spare key" not in line for line in found)


def test_keys_are_created_listed_and_revoked_on_the_command_line(service: Running) -> None:
    key = service.cli("keys", "create", "--tenant", "acme", "--role", "reader", "--label", "demo").stdout.strip()
    line = next(line for line in service.cli("keys", "list").stdout.splitlines() if "demo" in line)

    revoked = service.cli("keys", "revoke", line.split()[0])

    assert key.startswith("lamina_")
    assert key not in line
    assert "is revoked" in revoked.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["search", " "], "query: is blank"),
        (["add", "x", "-c", "gossip"], "category"),
        (["search", "x", "--key", "wrong"], "no valid API key"),
        (["search", "x", "--url", "http://127.0.0.1:9"], "start it with `lamina up`"),
        (["up", "--config", "missing.yaml"], "missing.yaml does not exist"),
        (["up"], "another Lamina runs on"),
        (["reindex", "dreams"], "choose one of messages, notes"),
        (["search", "x", "--data-dir", "nowhere"], "no Lamina runs on nowhere"),
    ],
)
def test_a_wrong_command_is_one_line_of_error(service: Running, arguments: list[str], said: str) -> None:
    failed = service.cli(*arguments)

    assert failed.returncode == 1
    assert said in failed.stderr
    assert "Traceback" not in failed.stderr + failed.stdout


def test_a_taken_port_is_refused_at_once(service: Running, home: Path) -> None:
    port = service.service.url.rpartition(":")[2]

    refused = run_cli(home, "up", "--port", port)

    assert refused.returncode == 1
    assert f"port {port} of 127.0.0.1 is taken" in refused.stderr


def test_a_wrong_database_url_is_refused_without_telling_its_password(home: Path) -> None:
    config = home / "config.yaml"
    config.write_text("postgres: {kind: server, url: 'mysql://me:s3cret@db/x'}")

    refused = run_cli(home, "up", "--config", str(config), "--port", "0")

    assert refused.returncode == 1
    assert "postgres.url is no URL of a database" in refused.stderr
    assert "s3cret" not in refused.stderr + refused.stdout


def test_a_projection_is_rebuilt_from_postgres(service: Running) -> None:
    queued = service.cli("reindex", "messages")

    assert "memories; the running service applies them" in queued.stdout


def test_jobs_are_run_listed_and_undone_on_the_command_line(service: Running) -> None:
    dry = service.cli("jobs", "run", "sweep", "--scope", "workspace=sample", "--dry-run")
    audits = [service.cli("jobs", "run", "audit") for _ in range(3)]
    schedule = service.cli("jobs", "schedule")
    run = service.cli("jobs", "run", "consolidation", "--scope", "workspace=sample", "--force")
    id_ = next(line.split()[-1] for line in run.stdout.splitlines() if line.startswith("  run"))
    undone = service.cli("jobs", "undo", id_)
    again = service.cli("jobs", "undo", id_)

    assert dry.returncode == 0, dry.stderr
    assert "sweep (dry run) on tenant=local workspace=sample: done" in dry.stdout
    assert [audit.returncode for audit in audits] == [0, 0, 0], audits[-1].stdout
    assert "reembed" in schedule.stdout
    assert run.returncode == 0, run.stdout
    assert "consolidation on tenant=local workspace=sample: undone" in undone.stdout
    assert (again.returncode, "once" in again.stderr) == (1, True)
    assert id_ in service.cli("jobs", "list", "consolidation").stdout


def test_openapi_describes_every_field(service: Running) -> None:
    with service.client() as client:
        described = json.loads(client._http.get("/openapi.json").text)

    own = {name: model for name, model in described["components"]["schemas"].items() if "properties" in model}
    silent = [
        f"{name}.{field}"
        for name, model in own.items()
        for field, shape in model["properties"].items()
        if "description" not in shape and name not in {"HTTPValidationError", "ValidationError"}
    ]
    parameters = [
        f"{path} {parameter['name']}"
        for path, methods in described["paths"].items()
        for method in methods.values()
        for parameter in method.get("parameters", [])
        if "description" not in parameter and parameter["name"] != "id"
    ]
    assert silent + parameters == []


def test_the_reaper_knows_every_process_that_ray_started(service: Running) -> None:
    lines = {pid: command_line(pid) for pid in descendants(service.process.pid)}
    (folder,) = {found for pid in lines if (found := instance_folder(pid))}

    known = processes_of(folder)

    unknown = [line for pid, line in lines.items() if pid not in known and command_line(pid) == line != ""]
    ours = ("postgres", "redis-server", "reaper.py")  # These end with their parent by themselves.
    assert [line for line in unknown if not any(name in line for name in ours)] == []
    assert any("ray::DashboardAgent" in lines.get(pid, "") for pid in known)


def test_every_port_of_a_machine_alone_is_on_the_loopback_address(service: Running) -> None:
    ours = {service.process.pid, *descendants(service.process.pid)}

    listening = [
        (connection.laddr.ip, connection.laddr.port, command_line(connection.pid))
        for connection in psutil.net_connections("tcp")
        if connection.pid in ours and connection.status == psutil.CONN_LISTEN
    ]

    assert len(listening) > 10
    assert [found for found in listening if found[0] not in {"127.0.0.1", "::1", "::ffff:127.0.0.1"}] == []


def test_the_wheel_holds_the_library_alone_with_its_statements_and_sample(tmp_path: Path) -> None:
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "-w", tmp_path, ROOT],
        check=True,
    )
    (wheel,) = tmp_path.glob("*.whl")

    names = zipfile.ZipFile(wheel).namelist()

    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"lamina"}
    assert "lamina/stores/postgres/notes.sql" in names
    assert "lamina/stores/postgres/migrations/0001_core.sql" in names
    assert "lamina/cli/sample/conversation.json" in names


def test_an_interrupt_ends_it_and_no_process_is_left(service: Running) -> None:
    pids = descendants(service.process.pid)

    code = service.stop(signal.SIGINT)

    assert code == 0
    assert len(pids) > 5
    assert left_of(pids) == []


def test_what_was_stored_before_is_found_by_its_words_while_the_model_is_loaded(service: Running) -> None:
    service.stop()
    (origin,) = service.data_dir.glob("models/*/origin.json")
    was = origin.read_text()
    # Who reads it waits until somebody writes to it: a model that is loaded for as long as this test likes.
    origin.unlink()
    os.mkfifo(origin)
    logs = {"LAMINA_LOGS__JSON_LINES": "true", "LAMINA_LOGS__SLOW_SEARCH_MS": "0.001"}
    started = launch(service.data_dir, LAMINA_SEARCH__EMBED_DEADLINE_S="2", **logs)  # For it is waited in vain.
    early = until_it_says("the first search is answered", *started)

    conversation = sample.load()
    with early.client(workspace=conversation.workspace, user=conversation.user) as client:
        # New ones: the vectors of questions that were asked before are remembered.
        answers = [client.search(question) for question in ("LFP-2291-07", "which database listens on 5433 there?")]
        said_early = early.output.read_text()
        origin.write_text(was)
        whole = until_it_says("serving;", *started)
        later = client.search("What runs on 5433?")
    processes = {pid: command_line(pid) for pid in descendants(whole.process.pid)}
    parents = {processes.get(parent_of(pid) or 0) for pid, line in processes.items() if "ServeReplica" in line}
    memory_mb = sum(map(pss_mb, [whole.process.pid, *processes]))
    said = whole.output.read_text()
    whole.stop()

    logged = [json.loads(line) for line in said.splitlines() if line.startswith("{")]
    slow = [line["parts_ms"] for line in logged if line["message"].startswith("slow search")]

    assert len(slow) >= len(answers)
    assert any("sessions" in parts_ms for parts_ms in slow)
    assert [answer["degraded"] for answer in answers] == [["embedder"], ["embedder"]]
    assert "LFP-2291-07" in answers[0]["results"][0]["content"]
    assert "5433" in answers[1]["results"][0]["content"]
    assert "serving;" not in said_early
    assert later["degraded"] == []
    times = re.search(r"after ([\d.]+) s\s+whole after ([\d.]+) s; Ray itself took ([\d.]+) s", said)
    assert times is not None
    first_s, whole_s, ray_s = map(float, times.groups())
    assert 0 < ray_s < first_s <= whole_s
    assert MOST_MB / 10 < memory_mb < MOST_MB
    assert len(parents) == 1
    assert "deployments.fork_server" in (parents.pop() or "")
    left_out = ("dashboard.py", "monitor.py", "log_monitor.py")
    assert [line for line in processes.values() if " ".join(line.split()[:3]).endswith(left_out)] == []
