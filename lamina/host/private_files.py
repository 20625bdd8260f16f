"""Files and folders of their owner alone: they hold memories and secrets, and the umask of a shell is no guard."""

import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

logger = logging.getLogger(__name__)
OTHERS = stat.S_IRWXG | stat.S_IRWXO
# The group may pass through a data directory: that of the user as whom Postgres runs under root.
_NOT_FOR_PASSING = OTHERS & ~stat.S_IXGRP


def deny_others() -> None:
    """Have this process, and all that it starts, make files for their owner alone."""
    os.umask(OTHERS)


def private_opener(path: str, flags: int) -> int:
    """Open a file, and make a missing one for its owner alone; an `opener` of `open`."""
    return os.open(path, flags, stat.S_IRUSR | stat.S_IWUSR)


def make_private(folder: Path) -> None:
    """Make a folder, and those above it, for their owner alone; one that is there is closed to others."""
    missing = [path for path in (folder, *folder.parents) if not path.exists()]
    for path in reversed(missing):
        path.mkdir(stat.S_IRWXU, exist_ok=True)
    close_to_others([folder])


def close_to_others(paths: Iterator[Path] | list[Path], *, denied: int = _NOT_FOR_PASSING) -> None:
    """Close the files and folders on which others have one of the denied rights, and log how many there were."""
    closed = [path for path in paths if _close(path, denied)]
    if closed:
        others = f" and {len(closed) - 1} more files and folders" if len(closed) > 1 else ""
        logger.warning("closed to other users of this machine, who could read there: %s%s", closed[0], others)


def every_path(folder: Path) -> Iterator[Path]:
    """Return a folder, or a file, and everything below it; none if it is missing."""
    if folder.exists():
        yield folder
    for parent, folders, files in os.walk(folder):
        yield from (Path(parent, name) for name in (*folders, *files))


def _close(path: Path, denied: int) -> bool:
    """Close one path; report whether it was open. Links, shared folders such as /tmp and others' files are left."""
    try:
        mode = path.lstat().st_mode
        if not mode & denied or stat.S_ISLNK(mode) or mode & stat.S_ISVTX:
            return False
        path.chmod(stat.S_IMODE(mode) & ~OTHERS)
    except FileNotFoundError:
        return False  # Its server removed it meanwhile.
    except PermissionError:
        logger.warning("%s is open to other users of this machine, and belongs to another one", path)
        return False
    return True
