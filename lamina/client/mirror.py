"""Mirror a folder into the files of a workspace: changed files are sent, missing ones removed."""

import fnmatch
import hashlib
import os
import stat
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lamina.client.calls import Json
from lamina.client.client import Client
from lamina.core.files import clean_path
from lamina.errors import Conflict, InvalidInput, NotFound, OutsideBounds, PreconditionFailed, Unavailable
from lamina.text.hygiene import composed

# Folders of version control, files that editors make for themselves, and what usually holds secrets.
IGNORED = (".git", ".hg", ".svn", "*~", ".#*", "*.swp", ".env", ".env.*", "*.pem", "*.key", "id_rsa*", "id_ed25519*")
MAX_FILE_BYTES = 1_000_000
MAX_FILES = 20_000
PAGE = 1000
SETTLED_NS = 2_000_000_000
UNREADABLE = "cannot be read"


class FolderAwayError(Exception):
    """The folder is not there, or another one is in its place: nothing of it is removed."""


class Print(NamedTuple):
    """Facts of a file that change whenever it is written."""

    changed_ns: int
    modified_ns: int
    size: int
    inode: int


@dataclass(frozen=True, slots=True)
class FolderView:
    """The files of a folder at one time.

    Args:
        files: Each file that can be mirrored, by its path within the folder, in NFC.
        skipped: Why others cannot, by their paths.
    """

    files: Mapping[str, tuple[Path, Print]]
    skipped: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class FolderRules:
    """Which files of a folder are mirrored, and how.

    Args:
        ignored: Patterns of names, or of paths within the folder.
        always: Patterns of the paths that every context block shows.
        max_bytes: Of a file.
    """

    ignored: tuple[str, ...] = IGNORED
    always: tuple[str, ...] = ()
    max_bytes: int = MAX_FILE_BYTES

    def ignores(self, name: str, path: str) -> bool:
        """Report whether a file or folder is left out."""
        return any(fnmatch.fnmatchcase(text, pattern) for pattern in self.ignored for text in (name, path))


def view_folder(root: Path, rules: FolderRules) -> FolderView:
    """Look through a folder: regular files alone, and no link that leads out of it or to a folder.

    Raises:
        FolderAwayError: If it is not there.
    """
    files: dict[str, tuple[Path, Print]] = {}
    skipped: dict[str, str] = {}
    _identity_of(root)
    real_root = Path(os.path.realpath(root))
    for entry, raw in _entries(real_root, "", rules, skipped):
        shown = _shown(raw)
        found: tuple[str, tuple[Path, Print]] | str | None
        try:
            found = _look_at(entry, raw, real_root, rules)
        except OSError as error:
            # As of a network file system that is away: the file may be there, and is not to be removed.
            found = f"{UNREADABLE}: {error.strerror}"
        if isinstance(found, str):
            skipped[composed(shown)] = found
        elif found is not None:
            path, seen = found
            if path in files:
                skipped[shown] = "has the name of another file, in another form of Unicode"
            elif len(files) == MAX_FILES:
                skipped[shown] = f"is one file too many; at most {MAX_FILES} are mirrored"
            else:
                files[path] = seen
    return FolderView(files, skipped)


def _identity_of(root: Path) -> tuple[int, int]:
    """Return the device and the inode of a folder.

    Raises:
        FolderAwayError: If it is not there, or cannot be asked for.
    """
    try:
        state = root.stat()
    except OSError as error:
        raise FolderAwayError(f"{root} cannot be read: {error.strerror}") from error
    if not stat.S_ISDIR(state.st_mode):
        raise FolderAwayError(f"{root} is no folder")
    return state.st_dev, state.st_ino


def _entries(
    folder: Path, prefix: str, rules: FolderRules, skipped: dict[str, str]
) -> Iterator["tuple[os.DirEntry[str], str]"]:
    """Yield the entries of a folder and of those in it, in the order of their names."""
    try:
        with os.scandir(folder) as found:
            entries = sorted(found, key=lambda entry: entry.name)
    except OSError as error:
        if not prefix:
            raise FolderAwayError(f"{folder} cannot be read: {error.strerror}") from error
        if not isinstance(error, FileNotFoundError):  # Else it went meanwhile.
            skipped[composed(_shown(prefix))] = f"{UNREADABLE}: {error.strerror}"
        return
    for entry in entries:
        path = f"{prefix}{entry.name}"
        if rules.ignores(entry.name, path):
            continue
        try:
            is_folder = entry.is_dir(follow_symlinks=False)
        except OSError as error:  # Of a file system that lists names without their kinds.
            skipped[composed(_shown(path))] = f"{UNREADABLE}: {error.strerror}"
            continue
        if is_folder:
            yield from _entries(Path(entry.path), f"{path}/", rules, skipped)
        else:
            yield entry, path


def _shown(name: str) -> str:
    """Return the name of a file as it is shown: one in no charset has question marks."""
    return name.encode("utf-8", "replace").decode()


def _look_at(
    entry: "os.DirEntry[str]", raw: str, root: Path, rules: FolderRules
) -> tuple[str, tuple[Path, Print]] | str | None:
    """Return a file with its path, the reason why it cannot be mirrored, or ``None`` if it is no file.

    Raises:
        OSError: If that cannot be told.
    """
    try:
        place = Path(os.path.realpath(entry.path, strict=True)) if entry.is_symlink() else Path(entry.path)
        if not place.is_relative_to(root):
            return "is a link out of the folder"
        state = place.stat(follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None  # It went meanwhile, or is a link to nothing.
    if not stat.S_ISREG(state.st_mode):
        return None
    if state.st_size > rules.max_bytes:
        return f"has {state.st_size} bytes; at most {rules.max_bytes} are mirrored"
    try:
        path = clean_path(composed(raw))
    except InvalidInput as error:
        return error.reason
    return path, (place, Print(state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_ino))


def read_text(place: Path, seen: Print) -> str | None:
    """Return the text of a file; ``None`` if it has changed since it was seen, or went.

    Raises:
        InvalidInput: If it is no text in UTF-8.
        OSError: If it may not be read.
    """
    try:
        # No link that took the file's place is followed, and nobody's pipe is waited for.
        handle = os.open(place, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    with os.fdopen(handle, "rb") as file:
        state = os.fstat(file.fileno())
        if Print(state.st_ctime_ns, state.st_mtime_ns, state.st_size, state.st_ino) != seen:
            return None
        content = file.read(seen.size + 1)
    if len(content) != seen.size:
        return None
    if b"\x00" in content:
        raise InvalidInput("content", "is no text: it has a NUL character")
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise InvalidInput("content", f"is no text in UTF-8 ({error.reason} at byte {error.start})") from error


@dataclass(frozen=True, slots=True)
class Synced:
    """The changes of one round.

    Args:
        sent: Paths that were stored.
        removed: Paths that were deleted.
        skipped: Why files are not mirrored, by their paths.
        is_whole: Whether nothing is left that changed while it was looked at, or could not be sent or removed.
        trouble: Why the service did not take all; the next round goes on.
    """

    sent: tuple[str, ...]
    removed: tuple[str, ...]
    skipped: Mapping[str, str]
    is_whole: bool = True
    trouble: Unavailable | None = None


@dataclass(frozen=True, slots=True)
class _Remote:
    etag: str
    always: bool
    is_own: bool


@dataclass(frozen=True, slots=True)
class _Refusal:
    """A file that the service refuses until it changes.

    Args:
        seen: The file.
        reason: Why.
        is_kept: Whether an earlier text of it stays in the workspace: it may be somebody else's.
    """

    seen: Print
    reason: str
    is_kept: bool = False


@dataclass(slots=True)
class FolderMirror:
    """Keeps the files of a workspace as a folder has them.

    Only what this mirror has put is ever removed. Two mirrors of one folder do the same twice, which changes nothing.

    Args:
        client: Of the workspace.
        root: The folder.
        name: Of the mirror: by it its own files are known after a restart.
        prefix: Where the folder lies in the workspace, as in ``docs/``; empty for its root.
        rules: What is mirrored.
        allows_empty: Whether a folder that is empty at the first look removes the files that the workspace has of it.
    """

    client: Client
    root: Path
    name: str
    prefix: str = ""
    rules: FolderRules = field(default_factory=FolderRules)
    allows_empty: bool = False
    _remote: dict[str, _Remote] = field(default_factory=dict)
    _etags: dict[str, tuple[Print, str]] = field(default_factory=dict)
    _refused: dict[str, _Refusal] = field(default_factory=dict)
    _unremovable: dict[str, str] = field(default_factory=dict)
    _waiting: dict[str, None] = field(default_factory=dict)
    _identity: tuple[int, int] | None = None

    def list_remote(self) -> None:
        """Read which files the workspace has; rounds in between rely on the last reading.

        Raises:
            LaminaError: If the service does not answer.
        """
        found: dict[str, _Remote] = {}
        cursor: Json = {}
        while True:
            page = self.client.files(prefix=self.prefix, limit=PAGE, **cursor)
            for file in page["files"]:
                found[file["path"]] = _Remote(file["etag"], file["always"], file["mirror"] == self.name)
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}
        self._remote = found
        self._unremovable.clear()
        self._refused = {path: refusal for path, refusal in self._refused.items() if not refusal.is_kept}

    def sync(self, stopped: Callable[[], bool] = lambda: False) -> Synced:
        """Send the files that differ, and remove those that are gone; none is sent that the workspace has already.

        Args:
            stopped: Asked before each file; the round ends early once it is true.

        Raises:
            FolderAwayError: If the folder is not there, or seems so: nothing is removed then.
            LaminaError: If the service refuses the mirror as a whole, as without a valid key.
        """
        view = self._view()
        skipped, sent, is_whole, trouble = dict(view.skipped), list[str](), True, None
        for path in self._in_order(view.files):
            if stopped():
                return Synced(tuple(sent), (), skipped, is_whole=False)
            try:
                is_sent = self._offer(path, *view.files[path], skipped)
            except Unavailable as error:
                # It is the last one of the next round: what is removed may make room, and others may pass.
                trouble, self._waiting[path] = error, self._waiting.pop(path, None)
                break
            is_whole = is_whole and is_sent is not None
            if is_sent:
                sent.append(path)
        removed = list[str]()
        try:
            for path in self._gone(view.files, skipped):
                if not stopped() and self._remove(path, skipped):
                    removed.append(path)
        except Unavailable as error:
            trouble = trouble or error
        return Synced(tuple(sent), tuple(removed), skipped, is_whole and trouble is None, trouble)

    def _in_order(self, paths: Collection[str]) -> list[str]:
        """Return the paths, those last that the service could not take, the latest of them at the end."""
        self._waiting = {path: None for path in self._waiting if path in paths}
        return [*(path for path in paths if path not in self._waiting), *self._waiting]

    def _view(self) -> FolderView:
        view, identity = view_folder(self.root, self.rules), _identity_of(self.root)
        if self._identity not in {None, identity} and not view.files:
            raise FolderAwayError(f"{self.root} is another folder now, and empty")
        own = sum(remote.is_own for remote in self._remote.values())
        # As a mount point is after a reboot, before its file system is there.
        if self._identity is None and not view.files and own and not self.allows_empty:
            raise FolderAwayError(
                f"{self.root} has no file to mirror, and the workspace has {own} of it; mount it, "
                "or give --allow-empty if they shall be removed"
            )
        self._identity = identity
        return view

    def _offer(self, path: str, place: Path, seen: Print, skipped: dict[str, str]) -> bool | None:
        """Send a file as `_put` does; one that is refused, or cannot be read, is skipped with the reason."""
        try:
            is_sent = self._put(path, place, seen)
        except (InvalidInput, OutsideBounds, Conflict) as error:
            self._refused[path] = _Refusal(seen, error.reason, is_kept=not isinstance(error, InvalidInput))
            is_sent = False
        except OSError as error:
            # Kept as it is: it is there, and what it says now nobody knows.
            skipped[path] = f"{UNREADABLE}: {error.strerror}"
            return False
        if path in self._refused:
            skipped[path] = self._refused[path].reason
        return is_sent

    def _put(self, path: str, place: Path, seen: Print) -> bool | None:
        """Send a file if the workspace has another text; ``None`` if it changed while it was read."""
        refused = self._refused.get(path)
        if refused is not None and refused.seen == seen:
            return False
        self._refused.pop(path, None)
        remote = self._remote.get(self.prefix + path)
        always = any(fnmatch.fnmatchcase(path, pattern) for pattern in self.rules.always)
        known = self._etags.get(path)
        is_known = known is not None and known[0] == seen
        if known and is_known and remote is not None and (remote.etag, remote.always) == (known[1], always):
            return False
        text = read_text(place, seen)
        if text is None:
            return None
        etag = hashlib.sha256(text.encode()).hexdigest()
        # A file that is written twice within a tick of the clock looks the same: it is read again for a while.
        if time.time_ns() - seen.changed_ns > SETTLED_NS:
            self._etags[path] = seen, etag
        if remote is not None and (remote.etag, remote.always) == (etag, always):
            return False
        self.client.put_file(self.prefix + path, text, always=always, mirror=self.name)
        self._remote[self.prefix + path] = _Remote(etag, always, is_own=True)
        self._waiting.pop(path, None)
        return True

    def _gone(self, there: Mapping[str, Any], skipped: Mapping[str, str]) -> list[str]:
        """Return the paths of the mirror's own files that the folder has no more, or not as text."""
        lost = {path for path, refusal in self._refused.items() if not refusal.is_kept}
        kept = {self.prefix + path for path in there if path not in lost}
        # Of a file or folder that may not be read nobody knows what it holds now.
        unread = tuple(self.prefix + path for path, reason in skipped.items() if reason.startswith(UNREADABLE))
        own = [path for path, remote in self._remote.items() if remote.is_own and path not in kept]
        return [path for path in own if not path.startswith(unread)]

    def _remove(self, path: str, skipped: dict[str, str]) -> bool:
        """Delete a file; one that this key may not delete is kept and named, and left alone until the next reading."""
        if path in self._unremovable:
            skipped[path.removeprefix(self.prefix)] = self._unremovable[path]
            return False
        try:
            self.client.delete_file(path, if_match=self._remote[path].etag)
        except (OutsideBounds, Conflict) as error:
            skipped[path.removeprefix(self.prefix)] = self._unremovable[path] = f"cannot be removed: {error.reason}"
            return False
        except (NotFound, PreconditionFailed):
            del self._remote[path]  # Somebody else removed it, or wrote it anew: then it is theirs.
            return False
        del self._remote[path]
        self._etags.pop(path.removeprefix(self.prefix), None)
        return True


def clean_prefix(prefix: str) -> str:
    """Return where a folder lies in the workspace, with a slash at its end unless that is the root.

    Raises:
        InvalidInput: If it is no path.
    """
    parts = prefix.strip("/")
    return f"{clean_path(parts, 'prefix')}/" if parts else ""


def default_name(root: Path, host: str) -> str:
    """Return the name of a mirror of a folder: the same after a restart, another one for another folder or machine."""
    return f"{host}:{os.path.realpath(root)}"[:500]


def summary_of(synced: Synced, reported: Mapping[str, str]) -> Sequence[str]:
    """Return a line for each change of a round, and for each file that is newly skipped."""
    return [
        *(f"sent     {path}" for path in synced.sent),
        *(f"removed  {path}" for path in synced.removed),
        *(f"skipped  {path}: {why}" for path, why in sorted(synced.skipped.items()) if reported.get(path) != why),
    ]
