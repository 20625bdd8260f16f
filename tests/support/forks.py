"""Command lines in forks of one interpreter that has imported everything: processes of their own, there at once."""

import faulthandler
import multiprocessing
import os
import runpy
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# `python -m jobs`.
JOBS = partial(runpy.run_module, "jobs", run_name="__main__")
_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["lamina.cli.commands", "lamina.maintenance.report", "jobs.cluster", "jobs.runner", "ray"]
)


class Fork:
    """A program that runs in a fork.

    Args:
        program: Ends as a program does; it finds its arguments in ``sys.argv``.
        arguments: The program's.
        variables: Its environment, whole.
        folder: Takes what it prints; of this fork alone.
    """

    def __init__(
        self, program: Callable[[], object], arguments: Sequence[str], variables: Mapping[str, str], folder: Path
    ) -> None:
        self._said, self._errors = folder / "stdout", folder / "stderr"
        for file in (self._said, self._errors):
            file.touch()
        given = (program, list(arguments), dict(variables), self._said, self._errors)
        self._process = _CONTEXT.Process(target=_run, args=given)
        self._process.start()

    def kill(self) -> None:
        """End it without a chance to clean up."""
        self._process.kill()
        self._process.join()

    def _show_stacks(self) -> None:
        """Have it print where its threads stand, so that a failure says what it waited for."""
        if self._process.pid is not None:
            os.kill(self._process.pid, signal.SIGUSR1)
            self._process.join(2)

    def wait(self, timeout_s: float) -> "subprocess.CompletedProcess[str]":
        """Return how it ended, and what it printed."""
        self._process.join(timeout_s)
        code = self._process.exitcode
        if code is None:
            self._show_stacks()
            self.kill()
            raise AssertionError(f"it did not end:\n{self._said.read_text()}{self._errors.read_text()}")
        return subprocess.CompletedProcess([], code, self._said.read_text(), self._errors.read_text())


def _run(
    program: Callable[[], object], arguments: list[str], variables: dict[str, str], said: Path, errors: Path
) -> None:
    for number, path in ((1, said), (2, errors)):
        with path.open("w") as file:
            os.dup2(file.fileno(), number)
    faulthandler.register(signal.SIGUSR1, file=2)
    os.environ.clear()
    os.environ.update(variables)
    os.chdir(ROOT)
    sys.argv = ["fork", *arguments]
    program()
