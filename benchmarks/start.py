"""How long `lamina up` takes to its first answers, and the memory and CPU of each of its processes then."""

import re
import tempfile
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Annotated

import typer
from rich.table import Table

from benchmarks.replica_watch import cpu_s, processes, pss_mb
from benchmarks.report import publish, stage, table
from benchmarks.service import started
from lamina.errors import Unavailable

# After the start some processes are still busy with what they put off.
SETTLING_S = 5.0
_TIMES = re.compile(r"after ([\d.]+) s\s+whole after ([\d.]+) s; Ray itself took ([\d.]+) s")
_NAMES = (
    ("ray::ServeReplica:lamina:", "deployment "),
    ("ray::", "ray "),
    ("deployments.fork_server", "fork servers"),
    ("reaper.py", "reaper"),
    ("gcs_server", "ray gcs"),
    ("raylet", "ray raylet"),
    ("haproxy", "haproxy"),
    ("postgres", "postgres"),
    ("redis-server", "falkordb"),
    ("lamina up", "lamina up"),
)


@dataclass(frozen=True, slots=True)
class Usage:
    """Memory and CPU of the processes of one name.

    Args:
        pss_mb: Memory, with the shares of what several processes have in common.
        cpu_s: Processor time since they began.
    """

    pss_mb: float
    cpu_s: float


@dataclass(frozen=True, slots=True)
class Start:
    """One start: seconds to its first answers, seconds of Ray itself, and the processes afterwards."""

    first_answer_s: float
    whole_answer_s: float
    ray_s: float
    processes: Mapping[str, Usage]

    def figures(self) -> dict[str, float]:
        """Return the figures of all processes together."""
        return {
            "first_answer_s": self.first_answer_s,
            "whole_answer_s": self.whole_answer_s,
            "ray_s": self.ray_s,
            "cpu_s": sum(used.cpu_s for used in self.processes.values()),
            "pss_mb": sum(used.pss_mb for used in self.processes.values()),
        }


def measure(
    runs: Annotated[int, typer.Option(min=1, help="Starts on the data of the first one.")] = 3,
) -> None:
    """Start `lamina up` on an empty folder, and again on its data."""
    with tempfile.TemporaryDirectory(prefix="lamina-benchmark-") as folder:
        starts = [_start(Path(folder), place) for place in range(runs + 1)]
    first, *later = starts
    medians = {name: median(start.figures()[name] for start in later) for name in first.figures()}
    publish([_times(first, medians), _processes(later[-1])], {"start": {"again": medians, "new": first.figures()}})


def _start(folder: Path, place: int) -> Start:
    with started(folder, {}) as endpoint:
        said = (folder / "log").read_text()
        times = _TIMES.search(said)
        if times is None:
            raise Unavailable("lamina", f"`lamina up` tells no times: {said}")
        time.sleep(SETTLING_S)
        used = usage()
    first_s, whole_s, ray_s = map(float, times.groups())
    stage(f"start {place}: {first_s:.1f} s to the first answer, {whole_s:.1f} s to the whole one, at {endpoint.url}")
    return Start(first_s, whole_s, ray_s, used)


def usage() -> Mapping[str, Usage]:
    """Return the memory and CPU of the processes below this one, by name."""
    found: dict[str, Usage] = {}
    for process in processes():
        name = name_of(process.command)
        before = found.get(name, Usage(0.0, 0.0))
        found[name] = Usage(before.pss_mb + pss_mb(process.pid), before.cpu_s + cpu_s(process.pid))
    return found


def name_of(command: str) -> str:
    """Return the part of Lamina that a command line belongs to."""
    for mark, name in _NAMES:
        if mark in command:
            rest = command.partition(mark)[2].split(".")[0].split()
            return name + rest[0] if name.endswith(" ") and rest else name
    return command.split(maxsplit=1)[0] if command else "?"


def _times(first: Start, medians: Mapping[str, float]) -> Table:
    shown = table("start", "", "on an empty folder", "again, median")
    for name, unit in {
        "first_answer_s": "s",
        "whole_answer_s": "s",
        "ray_s": "s",
        "cpu_s": "s",
        "pss_mb": "MB",
    }.items():
        shown.add_row(name, f"{first.figures()[name]:.1f} {unit}", f"{medians[name]:.1f} {unit}")
    return shown


def _processes(start: Start) -> Table:
    shown = table("processes after the last start", "", "PSS, MB", "CPU, s")
    for name, used in sorted(start.processes.items(), key=lambda item: -item[1].pss_mb):
        shown.add_row(name, f"{used.pss_mb:.1f}", f"{used.cpu_s:.2f}")
    return shown
