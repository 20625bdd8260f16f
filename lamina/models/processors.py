"""How many processors this process may use."""

import os
from pathlib import Path

CGROUP = Path("/sys/fs/cgroup")
MOST_THREADS = 4
"""Threads of a model by default; on a larger machine several replicas do better."""


def model_threads(wanted: int | None) -> int:
    """Return the threads of a model: as many as wanted, but no more than there are processors."""
    return min(wanted or MOST_THREADS, processors())


def processors(cgroup: Path | None = None) -> int:
    """Return how many processors the machine, or the container's quota, gives to this process; at least one."""
    cgroup = cgroup or CGROUP
    granted = len(os.sched_getaffinity(0))
    try:
        if (cgroup / "cpu.max").exists():
            quota, period = (cgroup / "cpu.max").read_text().split()
        else:
            quota, period = ((cgroup / "cpu" / f"cpu.cfs_{name}_us").read_text() for name in ("quota", "period"))
        return max(1, min(granted, int(quota) // int(period))) if int(quota) > 0 else granted
    except (OSError, ValueError):  # No quota: another system, or "max" in place of a number.
        return granted
