"""The processes of an instance that this benchmark started, as Linux shows them."""

import asyncio
import os
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

REPLICA = "ray::ServeReplica:lamina:"
INTERVAL_S = 0.25


@dataclass(frozen=True, slots=True)
class Process:
    """A process below this one."""

    pid: int
    command: str


def processes(root: int | None = None) -> list[Process]:
    """Return all processes below one, this one if none is named."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (parent := _parent(int(folder.name))) is not None:
            children.setdefault(parent, []).append(int(folder.name))
    found, todo = list[int](), [root or os.getpid()]
    while todo:
        below = children.get(todo.pop(), [])
        found += below
        todo += below
    return [Process(pid, _command(pid)) for pid in found]


def memory_mb(but: Collection[int] = ()) -> float:
    """Return the memory of all processes below this one in MB, but for some; shared pages count once (PSS)."""
    return sum(pss_mb(item.pid) for item in processes() if item.pid not in but)


def pss_mb(pid: int) -> float:
    """Return the memory of a process in MB, with its part of shared pages; 0 if it has ended."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0.0
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("Pss:")), 0.0)


def cpu_s(pid: int) -> float:
    """Return the seconds of CPU that a process has used; 0 if it has ended."""
    try:
        ticks = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    except OSError:
        return 0.0
    return sum(map(int, ticks)) / os.sysconf("SC_CLK_TCK")


def pids(part: str) -> list[int]:
    """Return the processes below this one whose program, or title, ends with a text."""
    return [item.pid for item in processes() if item.command.split(" ")[0].endswith(part)]


def replicas(deployment: str) -> list[int]:
    """Return the processes of a deployment's replicas."""
    return [item.pid for item in processes() if deployment_of(item) == deployment]


def all_replicas() -> list[int]:
    """Return the processes of all replicas."""
    return [item.pid for item in processes() if deployment_of(item)]


def count_replicas() -> Counter[str]:
    """Return how many replicas each deployment has, those that begin or end included."""
    return Counter(name for item in processes() if (name := deployment_of(item)))


def deployment_of(process: Process) -> str:
    """Return whose replica a process is; empty if it is none. While it runs a method, its title names that, too."""
    title = process.command.split(" ")[0]
    return title.removeprefix(REPLICA).split(".")[0] if title.startswith(REPLICA) else ""


@dataclass(frozen=True, slots=True)
class ReplicaCounts:
    """How many replicas there were at a moment, by deployment."""

    second: float
    counts: Mapping[str, int]


async def watch(now_s: Callable[[], float], seen: list[ReplicaCounts]) -> None:
    """Append the present counts to a list four times a second, until cancelled."""
    while True:
        seen.append(ReplicaCounts(now_s(), await asyncio.to_thread(count_replicas)))
        await asyncio.sleep(INTERVAL_S)


@dataclass(frozen=True, slots=True)
class ScalingStep:
    """A change of the number of a deployment's replicas."""

    second: float
    before: int
    after: int


def scaling_steps(seen: Sequence[ReplicaCounts], deployment: str) -> list[ScalingStep]:
    """Return the changes of a deployment's number of replicas, in order."""
    counts = [(item.second, item.counts.get(deployment, 0)) for item in seen]
    return [ScalingStep(second, before, after) for (_, before), (second, after) in pairwise(counts) if before != after]


def directions(changes: Sequence[ScalingStep]) -> int:
    """Return how often the number began to rise or to fall: once up and once down are two."""
    signs = [change.after > change.before for change in changes]
    return sum(place == 0 or sign is not signs[place - 1] for place, sign in enumerate(signs))


def _parent(pid: int) -> int | None:
    try:
        return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return None


def _command(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:
        return ""
