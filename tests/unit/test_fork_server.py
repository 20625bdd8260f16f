"""Ray's workers are forks of a process that has imported all, and each is a process of its own all the same."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from deployments import fork_server, fork_worker
from deployments.fork_worker import FOLDER, is_plain
from deployments.up import _fork_server
from tests.support.scratch import new_folder
from tests.support.service import ROOT, left_of

WORKER = """
import json, os, random, secrets, sys, threading
import numpy, uuid_utils
from ray import ActorID, JobID, TaskID, UniqueID
drawn = []
def draw():
    drawn.append([UniqueID.from_random().hex(), uuid_utils.uuid7().hex[-16:], secrets.token_hex(), random.random()])
draw()
if os.environ["A_FLAG"] == "fails":
    raise RuntimeError("this worker cannot begin")
thread = threading.Thread(target=draw)
thread.start()
thread.join()
print(json.dumps({
    "pid": os.getpid(), "group": os.getpgrp(), "parent": os.getppid(), "drawn": drawn,
    "arguments": sys.argv, "folder": os.getcwd(),
    "flag": os.environ["A_FLAG"], "job": os.environ["RAY_JOB_ID"],
    "has_serve": "ray.serve._private.replica" in sys.modules,
}))
sys.exit(7)
"""
# numpy starts threads of its own otherwise.
ONE_THREAD = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
OWN_WAY = "import sys; print('started as Ray does', sys.argv[1:])"


@pytest.fixture(scope="module")
def instance() -> Iterator[tuple[Path, "subprocess.Popen[bytes]"]]:
    """The folder of an instance with a worker's script beside Ray's own that sets one up, and its fork server."""
    with new_folder() as path:
        (path / "default_worker.py").write_text(WORKER)
        (path / "setup_worker.py").write_text(OWN_WAY)
        server = fork_server.start(path, {**os.environ, "PYTHONPATH": str(ROOT), FOLDER: str(path)})
        try:
            yield path, server
        finally:
            server.terminate()
            server.wait()


@pytest.fixture(scope="module")
def folder(instance: tuple[Path, "subprocess.Popen[bytes]"]) -> Path:
    return instance[0]


def order(folder: Path, *arguments: str, job: str = "01000000", flag: str = "", is_log: bool = False) -> str:
    """Start a worker as the raylet does and return what it printed, or its log of errors."""
    variables = {"RAY_JOB_ID": job, "RAY_RAYLET_PID": str(os.getpid()), "A_FLAG": flag, FOLDER: str(folder)}
    started = subprocess.run(
        [sys.executable, fork_worker.__file__, str(folder / "default_worker.py"), *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **variables},
        capture_output=True,
        text=True,
        check=True,
    )
    return started.stderr if is_log else started.stdout


def test_a_worker_that_fails_says_why_in_its_log(folder: Path) -> None:
    assert "RuntimeError: this worker cannot begin" in order(folder, flag="fails", is_log=True)


def test_a_worker_has_its_own_arguments_environment_folder_and_streams(folder: Path) -> None:
    one = json.loads(order(folder, "--node=1", "--language=PYTHON", flag="Ünë 1\n"))
    other = json.loads(order(folder, "--node=2", flag="2"))

    assert one["arguments"] == [str(folder / "default_worker.py"), "--node=1"]
    assert other["arguments"][1:] == ["--node=2"]
    assert (one["flag"], other["flag"]) == ("Ünë 1\n", "2")
    assert one["folder"] == str(folder)
    assert one["pid"] != other["pid"]
    assert (one["group"], other["group"]) == (one["pid"], other["pid"])
    assert one["parent"] == other["parent"]
    assert one["has_serve"]


def test_no_two_workers_draw_the_same_ids_in_any_thread(folder: Path) -> None:
    workers = [json.loads(order(folder)) for _ in range(3)]

    drawn = [value for worker in workers for thread in worker["drawn"] for value in thread]
    assert len(set(drawn)) == len(drawn) == 24


def test_each_job_has_a_server_that_read_its_environment(folder: Path) -> None:
    one, other = (json.loads(order(folder, job=job)) for job in ("01000000", "02000000"))

    assert (one["job"], other["job"]) == ("01000000", "02000000")
    assert one["parent"] != other["parent"]


def test_where_nobody_forks_the_worker_is_started_as_ray_does(tmp_path: Path) -> None:
    (tmp_path / "setup_worker.py").write_text(OWN_WAY)

    said = order(tmp_path, "--node=1", "--language=PYTHON")

    assert (
        said.strip() == f"started as Ray does {[str(tmp_path / 'default_worker.py'), '--node=1', '--language=PYTHON']}"
    )


@pytest.mark.parametrize(
    ("context", "plain"),
    [("", True), ("={}", True), ('={"env_vars": {"A": "1"}}', False), ('={"command_prefix": ["nice"]}', False)],
)
def test_a_worker_with_an_environment_of_its_own_is_set_up_by_ray(context: str, *, plain: bool) -> None:
    assert is_plain(["default_worker.py", f"--serialized-runtime-env-context{context}"]) is plain


@pytest.mark.parametrize(("is_apart", "repeats"), [(True, False), (False, True)])
def test_ids_that_would_repeat_are_seen(*, is_apart: bool, repeats: bool) -> None:
    code = (
        "from deployments import fork_server as f\n"
        f"{'f._draw_class_ids_apart()' if is_apart else ''}\n"
        "f.load(['ray.serve'])\n"
        "print(f.draws_the_same_ids())"
    )
    said = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        env=ONE_THREAD,
    )

    assert said.stdout.strip() == str(repeats)


def test_a_module_that_is_not_installed_is_left_out() -> None:
    code = "import sys\nfrom deployments import fork_server as f\nf.load(['no_such_module', 'fractions'])\n"
    code += "print('fractions' in sys.modules)"

    said = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=ONE_THREAD, capture_output=True, text=True, check=True
    )

    assert said.stdout.strip() == "True"


def test_a_module_that_starts_a_thread_is_refused(tmp_path: Path) -> None:
    (tmp_path / "threaded.py").write_text(
        "import threading, time\nthreading.Thread(target=time.sleep, args=(60,), daemon=True).start()"
    )
    code = "from deployments import fork_server as f; f.load(['threaded'])"

    refused = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        env={**ONE_THREAD, "PYTHONPATH": f"{ROOT}{os.pathsep}{tmp_path}"},
    )

    assert refused.returncode == 1
    assert "an import started a thread" in refused.stderr


def test_a_worker_is_started_as_ray_does_if_the_server_ends_while_it_waits() -> None:
    with new_folder() as path:
        (path / "setup_worker.py").write_text(OWN_WAY)
        # It never gets as far as to accept anybody.
        server = fork_server.start(path, {**os.environ, "PYTHONPATH": str(ROOT), "PYTHONHOME": "nowhere"})

        said = order(path, "--node=1")

        assert server.wait() != 0
        assert said.startswith("started as Ray does")


def test_a_fork_server_that_ends_by_itself_is_reported_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONHOME", "nowhere")
    said: list[str] = []
    told = threading.Event()

    with new_folder() as path:
        end = _fork_server(path, lambda text: (said.append(text), told.set())[0])
        assert told.wait(60)
        end()

    (line,) = said
    assert "Ray starts further workers itself" in line


def test_the_end_of_a_fork_server_that_was_asked_to_end_is_not_reported() -> None:
    said: list[str] = []

    with new_folder() as path:
        _fork_server(path, said.append)()

    assert said == []


def test_the_servers_of_jobs_end_with_the_one_that_made_them(instance: tuple[Path, "subprocess.Popen[bytes]"]) -> None:
    """The last test: it ends the fork server of the others, for another one would import all once more."""
    folder, server = instance
    parent = json.loads(order(folder))["parent"]

    server.kill()
    server.wait()

    assert left_of([parent]) == []
