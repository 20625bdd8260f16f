"""Folders of tests."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY_DISK = Path("/dev/shm")  # noqa: S108 - names in it are made by tempfile
# Twice as much as the folders of two workers ever held.
ENOUGH_BYTES = 6 * 1024**3


def use_memory_disk() -> None:
    """Have temporary folders made in memory, unless TMPDIR names a place; child processes follow.

    Indexes and databases wait for a disk at every write: beside other work, 77 tests of an index took 303 s on a disk
    and 28 s in memory.
    """
    if "TMPDIR" not in os.environ and _has_room(MEMORY_DISK):
        os.environ["TMPDIR"] = tempfile.tempdir = str(MEMORY_DISK)


def _has_room(disk: Path) -> bool:
    # A container may give it 64 MB, and not let programs run there.
    if not os.access(disk, os.W_OK) or os.statvfs(disk).f_flag & os.ST_NOEXEC:
        return False
    return min(shutil.disk_usage(disk).free, _available_bytes()) >= ENOUGH_BYTES


def _available_bytes() -> int:
    figures = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return int(figures["MemAvailable"].removesuffix("kB")) * 1024


@contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards; servers of another user may read it."""
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
