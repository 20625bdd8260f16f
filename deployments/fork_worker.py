"""Have a worker of Ray forked by the fork server, or start it as Ray does where there is none.

Ray runs this script in the place of its own ``setup_worker.py``. It has the standard library alone, for each worker
waits for it.
"""

import json
import os
import socket
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

FOLDER = "LAMINA_INSTANCE_FOLDER"
SERVER = "forks"
STDIO = 3
MAX_ORDER_BYTES = 1024 * 1024
PATIENCE_S = 110.0  # A little less than Ray waits for a worker, as deployments/environment.py has it.
_SETUP = ("--serialized-runtime-env-context", "--language")
_WORKER = "default_worker.py"


def socket_of_job(folder: Path, environment: Mapping[str, str]) -> str:
    """Return the socket of the server of the job and the raylet that an environment names.

    Ray has workers of no job, too. A worker ends with the raylet that its server was told of when it imported Ray.
    """
    return f"{folder / SERVER}-{environment.get('RAY_JOB_ID', '')}-{environment.get('RAY_RAYLET_PID', '')}"


def listen(path: Path) -> socket.socket:
    """Return a socket that callers may connect to from now on, even before anybody accepts them."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    draft = path.with_suffix(".draft")
    listener.bind(str(draft))
    listener.listen()
    # Now: who finds a socket that nobody listens on yet is refused.
    draft.rename(path)
    return listener


def open_job(folder: Path, environment: Mapping[str, str]) -> None:
    """Have a server for the workers of a job.

    Raises:
        OSError: If nobody answers.
    """
    _ask(folder / SERVER, json.dumps(dict(environment)), descriptors=())


def order_fork(folder: Path, arguments: Sequence[str], environment: Mapping[str, str]) -> None:
    """Have a worker forked, with this process's standard streams.

    Raises:
        OSError: If nobody forks it.
    """
    path = Path(socket_of_job(folder, environment))
    if not path.exists():
        open_job(folder, environment)
    _ask(path, json.dumps([arguments, dict(environment), str(Path.cwd())]), descriptors=range(STDIO))


def _ask(path: Path, message: str, descriptors: Sequence[int]) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
        server.settimeout(PATIENCE_S)
        server.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, MAX_ORDER_BYTES)
        server.connect(str(path))
        socket.send_fds(server, [message.encode()], descriptors)
        if not server.recv(16):
            raise ConnectionResetError(f"{path} answers nothing")


def is_plain(arguments: Sequence[str]) -> bool:
    """Report whether a worker has no environment of its own to be set up first."""
    contexts = [argument.partition("=")[2] for argument in arguments if argument.startswith(_SETUP[0])]
    return all(context in ("", "{}") for context in contexts)


def main() -> None:
    """Order the worker that the arguments name."""
    arguments = sys.argv[1:]
    place = next(place for place, argument in enumerate(arguments) if argument.endswith(_WORKER))
    if is_plain(arguments):
        kept = [argument for argument in arguments[place:] if not argument.startswith(_SETUP)]
        try:
            order_fork(Path(os.environ[FOLDER]), kept, os.environ)
        except (OSError, KeyError) as error:
            print(f"no fork, but a new process: {error!r}", file=sys.stderr)  # noqa: T201 - into Ray's log
        else:
            return
    os.execv(sys.executable, [sys.executable, str(Path(arguments[place]).with_name("setup_worker.py")), *arguments])  # noqa: S606 - Ray's own script


if __name__ == "__main__":
    main()
