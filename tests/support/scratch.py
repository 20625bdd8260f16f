"""Folders of tests, in memory where there is enough of it: an embedded index asks the disk 170 times to be opened."""

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

_MEMORY = Path("/dev/shm")  # noqa: S108 - each folder there has a name of its own
_NEEDED_BYTES = 6 * 1024**3


def scratch() -> Path | None:
    """Return where folders of tests are quick; ``None`` for where the system has them."""
    is_there = _MEMORY.is_dir() and shutil.disk_usage(_MEMORY).free >= _NEEDED_BYTES
    return _MEMORY if is_there else None


@contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards; servers of another user may read it."""
    with tempfile.TemporaryDirectory(prefix="lamina-test-", dir=scratch(), ignore_cleanup_errors=True) as folder:
        yield Path(folder)
