"""Fork Ray's workers from a process with the imports of all of them.

Ray starts a worker as a new interpreter, which imports Ray twice and the application once: 2 s of CPU and 90 MB for
each of thirteen. A fork takes 0.1 s of CPU and shares what was imported. ``fork_worker.py`` asks for it, in the place
of Ray's own script; where nobody forks, it starts the worker as Ray does.

Ray's library reads the job and the raylet from the environment when it is loaded, so that there are two steps: one
process imports all but Ray, and forks another for each job, which imports Ray with that job's environment and forks its
workers.
"""

import gc
import importlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, NoReturn

from deployments.fork_worker import MAX_ORDER_BYTES, SERVER, STDIO, listen, socket_of_job
from lamina.embedded.child_process import die_with_parent

BEFORE_RAY = (
    "apscheduler.schedulers.asyncio",
    "deployments.api",
    "fastapi",
    "google.protobuf.json_format",
    "grpc.aio",
    "jinja2",
    "jsonschema",
    "lamina.projections.audit",
    "lamina.wiring.jobs",
    "lamina.wiring.projections",
    "lamina.wiring.services",
    "lamina.wiring.tiers",
    "numpy",
    "qdrant_edge",
    "uvicorn",
)
WITH_RAY = (
    "ray.serve._private.controller",
    "ray.serve._private.haproxy",
    "ray.serve._private.proxy",
    "ray.serve._private.replica",
    "deployments.app",
)


class Order(NamedTuple):
    """A worker to fork.

    Args:
        arguments: Its script and the arguments of it.
        environment: Its variables.
        folder: Its working directory.
    """

    arguments: Sequence[str]
    environment: Mapping[str, str]
    folder: str


def start(folder: Path, environment: Mapping[str, str]) -> "subprocess.Popen[bytes]":
    """Start the server in a process that ends with this one."""
    # Listens from now on: a worker that comes before everything is imported waits, and none does if the server ends.
    with listen(folder / SERVER) as listener:
        return subprocess.Popen(  # noqa: S603 - this module
            [sys.executable, "-P", "-m", "deployments.fork_server", str(folder), str(listener.fileno())],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[listener.fileno()],
            # Its forks compute in one thread, and it must have no other.
            env={**environment, "OPENBLAS_NUM_THREADS": "1"},
            preexec_fn=die_with_parent(os.getpid(), signal.SIGTERM),  # noqa: PLW1509 - calls one system call
            process_group=0,
        )


def serve_jobs(listener: socket.socket, folder: Path) -> NoReturn:
    """Fork a server for each job whose environment comes to the socket, until this process is ended."""
    served: set[str] = set()
    end_with_this = die_with_parent(os.getpid(), signal.SIGTERM)
    while True:
        caller, _ = listener.accept()
        with caller:
            environment = json.loads(caller.recv(MAX_ORDER_BYTES))
            path = socket_of_job(folder, environment)
            if path not in served:
                served.add(path)
                with listen(Path(path)) as workers:
                    if os.fork() == 0:
                        if end_with_this is not None:
                            end_with_this()
                        listener.close()
                        caller.close()
                        serve_workers(workers, environment)
            with suppress(OSError):  # It waits no more.
                caller.send(b"served")


def serve_workers(listener: socket.socket, environment: Mapping[str, str]) -> NoReturn:
    """Fork a worker of one job for each order that comes to the socket."""
    os.environ.clear()
    os.environ.update(environment)
    _draw_class_ids_apart()
    load(WITH_RAY)
    if draws_the_same_ids():
        # Ray's generator has its seed already: the workers would take each other's tasks for their own.
        sys.exit("the workers' ids would repeat; Ray starts them itself")
    while True:
        caller, _ = listener.accept()
        with caller:
            if os.fork() == 0:
                listener.close()
                become(caller)


def become(caller: socket.socket) -> NoReturn:
    """Become the worker that the caller orders."""
    code = 1
    try:
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setpgrp()  # Ray ends a worker with its whole group, which must not be that of all others.
        message, descriptors, _, _ = socket.recv_fds(caller, MAX_ORDER_BYTES, STDIO)
        order = Order(*json.loads(message))
        for number, descriptor in enumerate(descriptors):
            os.dup2(descriptor, number)
            os.close(descriptor)
        caller.send(b"forked")
        caller.close()
        os.environ.clear()
        os.environ.update(order.environment)
        os.chdir(order.folder)
        sys.argv = list(order.arguments)
        runpy.run_path(sys.argv[0], run_name="__main__")
        code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
        if not isinstance(end.code, int | None):
            print(end.code, file=sys.stderr)  # noqa: T201
    except BaseException:  # noqa: BLE001 - the interpreter, which would print it, is left by _exit.
        traceback.print_exc()
    finally:
        # Not up to the server's own frames, which belong to another process.
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def load(modules: Iterable[str]) -> None:
    """Import modules, and keep the garbage collector from writing to the memory that forks share.

    Raises:
        SystemExit: If one of them starts a thread: a fork has the calling thread alone, and would wait for ever for a
            lock that another one held.
    """
    for name in modules:
        with suppress(ModuleNotFoundError):  # Of an extra that is not installed: the workers that need it say so.
            importlib.import_module(name)
    if len(list(Path("/proc/self/task").iterdir())) > 1:
        sys.exit("an import started a thread; Ray starts the workers itself")
    gc.collect()
    gc.freeze()


def draws_the_same_ids() -> bool:
    """Report whether two forks of this process would draw the same ids."""
    from ray import UniqueID  # noqa: PLC0415 - read with the job's environment

    return len({_of_a_fork(lambda: UniqueID.from_random().binary()) for _ in range(2)}) == 1


def _of_a_fork(draw: Callable[[], bytes]) -> bytes:
    reading, writing = os.pipe()
    if os.fork() == 0:
        os.write(writing, draw())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as drawn:
        return drawn.read()


def _draw_class_ids_apart() -> None:
    """Let classes that become actors while they are imported draw their ids from the system.

    Drawn from Ray's generator, the first one would give it its seed, which all forks would share.
    """
    import ray.actor  # noqa: PLC0415 - read with the job's environment
    from ray._raylet import ActorClassID  # noqa: PLC0415

    class SystemDrawn(ActorClassID):
        @classmethod
        def from_random(cls) -> "SystemDrawn":
            return cls(os.urandom(cls.size()))

    ray.actor.ActorClassID = SystemDrawn  # type: ignore[attr-defined]  # it imports the name


def main() -> None:
    """Serve in the folder that is named, on the socket whose number is."""
    folder, number = Path(sys.argv[1]), int(sys.argv[2])
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # Nobody asks how a worker ended but Ray, by its socket.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # As in all of Ray's processes: Ctrl-C is for the parent.
    load(BEFORE_RAY)
    serve_jobs(socket.socket(fileno=number), folder)


if __name__ == "__main__":
    main()
