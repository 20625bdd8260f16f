"""Folders of tests."""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def new_folder() -> Iterator[Path]:
    """Give a folder that is gone afterwards; servers of another user may read it."""
    with tempfile.TemporaryDirectory(prefix="lamina-test-", ignore_cleanup_errors=True) as folder:
        yield Path(folder)
