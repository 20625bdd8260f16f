"""The archive: Parquet files with a manifest each, in a folder or an object store.

A file is replaced in four steps, so that a crash between any two of them leaves the old notes or the new ones readable:
the new manifest is written beside the old one, the data is replaced, the manifest is replaced, the one beside it is
deleted. A reader that finds data with another checksum than the manifest's reads the one beside it.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any
from uuid import UUID, uuid4

from fsspec.core import split_protocol, url_to_fs
from fsspec.implementations.local import LocalFileSystem

from lamina.errors import InvalidInput, Misconfigured, Unavailable
from lamina.host.private_files import make_private, private_opener
from lamina.stores.archive.notes import FORMAT, ArchivedNote, UnreadableArchive, check_format, from_parquet, to_parquet

DATA = ".parquet"
MANIFEST = ".manifest.json"
ASIDE = ".manifest.next.json"
PART = ".part"
MARK = "folder.mark"
_SUFFIXES = (DATA, MANIFEST, ASIDE, PART)
SCOPE_DIGITS = 32
_RETRY_AFTER_S = 60

_NAME = re.compile(r"[a-z0-9_-]+(/[a-z0-9_-]+)*")
_PREFIX = re.compile(r"([a-z0-9_-]+/)*[a-z0-9_-]*")
_NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
# In these stores an object exists whole or not at all; in others a file is written beside its place and moved.
_PUTS_ATOMICALLY = frozenset({"memory", "s3", "s3a", "gs", "gcs", "abfs", "abfss", "az", "oss", "oci", "r2"})


@dataclass(frozen=True, slots=True)
class Manifest:
    """The description of a file, stored beside it.

    Args:
        format: Version of the file's columns.
        file: Its path from the archive's root.
        sha256: Of its bytes, 64 hex digits.
        rows: Number of its notes.
        ids: Number of their different ids: the same, since a file holds a note once.
        least_id: Id of the first note.
        greatest_id: Id of the last one.
        written_at: When it was written, in UTC.
    """

    format: int
    file: str
    sha256: str
    size_bytes: int
    rows: int
    ids: int
    tenant: str
    workspace: str
    namespace: str
    least_id: UUID
    greatest_id: UUID
    written_at: datetime

    @property
    def name(self) -> str:
        """Return the name under which the file is read."""
        return self.file.removesuffix(DATA)


@dataclass(frozen=True, slots=True)
class ArchiveFile:
    """A file as it was written."""

    name: str
    sha256: str
    size_bytes: int
    rows: int


@dataclass(frozen=True, slots=True)
class Fault:
    """A file that cannot be read, or that an unfinished write left."""

    file: str
    reason: str


def scope_folder(tenant: str, workspace: str, namespace: str) -> str:
    """Return the folder of a scope's files: 32 hex digits, for any characters in its ids."""
    parts = (part.encode("utf-8", "surrogatepass") for part in (tenant, workspace, namespace))
    framed = b"".join(len(part).to_bytes(8, "big") + part for part in parts)
    return hashlib.sha256(framed).hexdigest()[:SCOPE_DIGITS]


class Archive:
    """Files of notes under one root; every call blocks, and one name has one writer at a time.

    Args:
        url: A path, or a URL such as ``s3://bucket/folder``.
        options: Options of the store's driver (endpoint, credentials).

    Raises:
        Misconfigured: For an unknown protocol, or one whose driver is not installed.
    """

    def __init__(self, url: str, *, options: Mapping[str, Any] = _NO_OPTIONS) -> None:
        self._store, root = _open_store(url, options)
        self._root = root.rstrip("/")

    def write(self, name: str, notes: Sequence[ArchivedNote], *, now: datetime) -> ArchiveFile:
        """Write a file of notes and then its manifest, in place of an earlier file of this name.

        Args:
            name: Small letters, digits, ``_`` and ``-``, in folders separated by ``/``.
            notes: At least one, all of one scope, each once.
            now: For the manifest; the file does not depend on it.

        Raises:
            InvalidInput: For another name, or notes that one file cannot hold.
            Unavailable: If the store does not answer; the earlier file can still be read.
        """
        _check_name(name)
        _check_notes(notes)
        # Before anything is written: notes that Parquet cannot hold leave the earlier file as it is.
        data = to_parquet(notes)
        manifest = _describe(name, data, notes, now)
        self._replace(name, data, _as_json(manifest))
        return ArchiveFile(name, manifest.sha256, manifest.size_bytes, manifest.rows)

    def read(self, name: str, ids: Collection[UUID] | None = None) -> list[ArchivedNote]:
        """Return a file's notes, by id; with ids, only those of them that it has.

        Raises:
            UnreadableArchive: If the file or its manifest is missing, damaged, or of a newer format.
            Unavailable: If the store does not answer.
        """
        _check_name(name)
        return from_parquet(self._checked(name), name + DATA, ids)

    def rewrite_without(self, name: str, ids: Collection[UUID], *, now: datetime) -> ArchiveFile | None:
        """Remove notes from a file, for good; remove the file with its last note.

        Files that an unfinished write left under the name are removed, too. It can be called again after a crash.

        Returns:
            The rewritten file, if notes are left.

        Raises:
            UnreadableArchive: As for reading; nothing is changed then.
            Unavailable: If the store does not answer.
        """
        _check_name(name)
        removed = set(ids)
        left = [note for note in self._read_unless_emptied(name, removed) if note.id not in removed]
        if not left:
            self.remove(name)
            return None
        written = self.write(name, left, now=now)
        # Parts are left by writes that were cut off; their notes may be those that have to go.
        self._delete([file for file in self._files_of(name) if file.endswith(PART)])
        return written

    def remove(self, name: str) -> None:
        """Delete a file, its manifest, and files that unfinished writes left; a name without files is no error."""
        _check_name(name)
        # The manifest is deleted last: it names the notes that are to be removed.
        self._delete(sorted(self._files_of(name), key=lambda file: file.endswith(MANIFEST)))

    def mark(self, folder: str) -> None:
        """Mark a folder, so that a missing one is not taken for an empty one.

        Raises:
            Unavailable: If the store does not answer.
        """
        _check_name(folder)
        self._put(f"{folder}/{MARK}", b"Keep this file: it tells that the folder's files are here.\n")

    def unmark(self, folder: str) -> None:
        """Remove the mark of a folder without files, and the folder where the store has folders.

        Raises:
            Unavailable: If the store does not answer.
        """
        _check_name(folder)
        self._delete([f"{folder}/{MARK}"])
        if isinstance(self._store, LocalFileSystem):
            with suppress(OSError):  # What is not Lamina's stays, and the folder with it.
                Path(self._path(folder)).rmdir()

    def require(self, folder: str) -> None:
        """Refuse a folder without its mark: a missing folder must not be taken for an empty one.

        Raises:
            Unavailable: If the mark is missing, as on a volume that is not mounted, or the store does not answer.
        """
        _check_name(folder)
        mark = f"{folder}/{MARK}"
        if self._read(mark) is None:
            remedy = "mount its volume or name the right jobs.archival.url; if its files are lost for good, create it"
            raise Unavailable("archive", f"{mark} is missing; {remedy}", _RETRY_AFTER_S)

    def names(self, prefix: str = "") -> list[str]:
        """Return every name with this prefix that has a file, whole or left by an unfinished write."""
        return sorted(self._by_name(prefix))

    def excess(self, prefix: str, rows: Mapping[str, int]) -> tuple[list[str], list[UnreadableArchive]]:
        """Find names with this prefix that have more notes or files than they should have.

        Args:
            prefix: Start of the names; one manifest is read for each.
            rows: Most notes of each name; names that are missing here should have no file.

        Returns:
            The names, and an error for each that could not be checked. Files that unfinished writes left count as too
            many.
        """
        names, unreadable = [], []
        for name, files in sorted(self._by_name(prefix).items()):
            try:
                if name not in rows or self._has_more(name, files, rows[name]):
                    names.append(name)
            except UnreadableArchive as error:
                unreadable.append(error)
        return names, unreadable

    def _has_more(self, name: str, files: Sequence[str], rows: int) -> bool:
        if any(file.endswith((ASIDE, PART)) for file in files):
            return True
        manifest = self._manifest(name, MANIFEST)
        if manifest is None:
            raise UnreadableArchive(name + MANIFEST, "a manifest", "no such file")
        return manifest.rows > rows

    def _by_name(self, prefix: str) -> dict[str, list[str]]:
        names: dict[str, list[str]] = {}
        for file in self._files(prefix):
            names.setdefault(file.partition(".")[0], []).append(file)
        return names

    def manifests(self, prefix: str = "") -> Iterator[Manifest]:
        """Yield the manifests of all files whose names have this prefix, by name.

        Raises:
            UnreadableArchive: For a manifest that cannot be read.
        """
        for file in self._files(prefix):
            if file.endswith(MANIFEST):
                text = self._read(file)
                if text is not None:
                    yield _parse_manifest(text, file)

    def verify(self, prefix: str = "") -> list[Fault]:
        """Read every file with this prefix; return those that do not fit their manifests or were left unfinished."""
        files = self._files(prefix)
        left_over = [Fault(file, "was left by an unfinished write; remove it") for file in files if file.endswith(PART)]
        names = {file.partition(".")[0] for file in files if not file.endswith(PART)}
        return sorted(left_over + list(self._faults(names)), key=lambda fault: fault.file)

    def _faults(self, names: Collection[str]) -> Iterator[Fault]:
        for name in names:
            try:
                self._checked(name)
            except UnreadableArchive as error:
                yield Fault(error.file, str(error))

    def _checked(self, name: str) -> bytes:
        manifest = self._manifest(name, MANIFEST)
        if manifest is None:
            raise UnreadableArchive(name + MANIFEST, "a manifest", "no such file")
        data = self._read(name + DATA)
        if data is None:
            raise UnreadableArchive(name + DATA, f"{manifest.size_bytes} bytes", "no such file")
        if _fits(data, manifest) or self._fits_later_manifest(name, data):
            return data
        raise UnreadableArchive(name + DATA, *_difference(data, manifest))

    def _fits_later_manifest(self, name: str, data: bytes) -> bool:
        # In this order: a write replaces the manifest before it deletes the one beside it.
        later = (self._manifest(name, suffix) for suffix in (ASIDE, MANIFEST))
        return any(manifest is not None and _fits(data, manifest) for manifest in later)

    def _read_unless_emptied(self, name: str, removed: AbstractSet[UUID]) -> list[ArchivedNote]:
        """Return a file's notes; none if an earlier removal of these ids deleted the file and was interrupted."""
        try:
            return self.read(name)
        except UnreadableArchive:
            if self._was_emptied(name, removed):
                return []
            raise

    def _was_emptied(self, name: str, removed: AbstractSet[UUID]) -> bool:
        if self._read(name + DATA) is not None:
            return False
        manifest = self._manifest(name, MANIFEST)
        return manifest is None or (
            manifest.rows <= len(removed) and {manifest.least_id, manifest.greatest_id} <= removed
        )

    def _manifest(self, name: str, suffix: str) -> Manifest | None:
        text = self._read(name + suffix)
        if text is None:
            return None
        manifest = _parse_manifest(text, name + suffix)
        if manifest.file != name + DATA:
            raise UnreadableArchive(name + suffix, f"the manifest of {name + DATA}", f"that of {manifest.file}")
        return manifest

    def _replace(self, name: str, data: bytes, manifest: bytes) -> None:
        self._put(name + ASIDE, manifest)
        self._put(name + DATA, data)
        self._put(name + MANIFEST, manifest)
        self._delete([name + ASIDE])

    def _put(self, file: str, data: bytes) -> None:
        path = self._path(file)
        with _translate_errors(file):
            if isinstance(self._store, LocalFileSystem):
                _replace_on_disk(Path(path), data)
            elif _PUTS_ATOMICALLY.isdisjoint(self._protocols()):
                _replace_by_moving(self._store, path, data)
            else:
                self._store.pipe_file(path, data)

    def _protocols(self) -> tuple[str, ...]:
        # One name, or all that a driver answers to.
        names: str | tuple[str, ...] = self._store.protocol
        return (names,) if isinstance(names, str) else tuple(names)

    def _read(self, file: str) -> bytes | None:
        with _translate_errors(file):
            try:
                data: bytes = self._store.cat_file(self._path(file))
            except FileNotFoundError:
                return None
            return data

    def _delete(self, files: Sequence[str]) -> None:
        for file in files:
            with _translate_errors(file):
                try:
                    self._store.rm_file(self._path(file))
                except FileNotFoundError:
                    continue

    def _files(self, prefix: str) -> list[str]:
        """Return every file whose path from the root has this prefix, in order."""
        if not _PREFIX.fullmatch(prefix):
            raise InvalidInput("prefix", f"is {prefix!r}; expected the start of a name such as 0a1b/2c3d")
        folder = self._path(prefix.rpartition("/")[0]).rstrip("/")
        with _translate_errors(folder):
            self._store.invalidate_cache()  # other processes write too
            paths = self._store.find(folder)
        files = (path.removeprefix(f"{self._root}/") for path in paths)
        return sorted(file for file in files if file.startswith(prefix) and file.endswith(_SUFFIXES))

    def _files_of(self, name: str) -> list[str]:
        return [file for file in self._files(name) if file.startswith(f"{name}.")]

    def _path(self, file: str) -> str:
        return f"{self._root}/{file}"


def _open_store(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    # Only the protocol is named in errors: a URL may carry a password.
    protocol = split_protocol(url)[0] or "file"
    try:
        store, root = url_to_fs(url, **options)
    except ImportError as error:
        raise Misconfigured(
            f"the archive's driver for {protocol}:// is not installed", f"add what is missing: {error}"
        ) from error
    except ValueError as error:
        remedy = "use a path, file://, s3://, gs:// or another one that fsspec knows"
        raise Misconfigured(f"the archive's protocol {protocol}:// is unknown or its URL malformed", remedy) from error
    return store, root


@contextmanager
def _translate_errors(file: str) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise Unavailable("archive", f"{file}: {error}") from error


def _replace_on_disk(path: Path, data: bytes) -> None:
    """Replace a file so that a power cut leaves the old one or the new one: rows are deleted after this."""
    _make_folders(path.parent)
    part = _temporary_path(str(path))
    try:
        with open(Path(part), "xb", opener=private_opener) as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(part).replace(path)
    finally:
        Path(part).unlink(missing_ok=True)
    _sync_folder(path.parent)


def _make_folders(folder: Path) -> None:
    """Make the missing folders for their owner alone; one that the operator made keeps its mode."""
    if not folder.exists():
        make_private(folder)


def _sync_folder(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _replace_by_moving(store: Any, path: str, data: bytes) -> None:
    store.makedirs(path.rpartition("/")[0], exist_ok=True)
    part = _temporary_path(path)
    store.pipe_file(part, data)
    store.mv(part, path)


def _temporary_path(path: str) -> str:
    return f"{path}.{uuid4().hex}{PART}"


def _check_name(name: str) -> None:
    if not _NAME.fullmatch(name):
        raise InvalidInput("name", f"is {name!r}; expected a-z, 0-9, _ and - in parts separated by /")


def _check_notes(notes: Sequence[ArchivedNote]) -> None:
    if not notes:
        raise InvalidInput("notes", "is empty; a file holds at least one note")
    if len({note.id for note in notes}) < len(notes):
        raise InvalidInput("notes", "has a note twice; a file holds each once")
    if len({(note.tenant, note.workspace, note.namespace) for note in notes}) > 1:
        raise InvalidInput("notes", "has notes of more than one scope; write a file for each")


def _describe(name: str, data: bytes, notes: Sequence[ArchivedNote], now: datetime) -> Manifest:
    ids = [note.id for note in notes]
    return Manifest(
        format=FORMAT,
        file=name + DATA,
        sha256=hashlib.sha256(data).hexdigest(),
        size_bytes=len(data),
        rows=len(notes),
        ids=len(ids),
        tenant=notes[0].tenant,
        workspace=notes[0].workspace,
        namespace=notes[0].namespace,
        least_id=min(ids),
        greatest_id=max(ids),
        written_at=now.astimezone(UTC),
    )


def _as_json(manifest: Manifest) -> bytes:
    fields = asdict(manifest) | {
        "least_id": str(manifest.least_id),
        "greatest_id": str(manifest.greatest_id),
        "written_at": manifest.written_at.isoformat(),
    }
    return json.dumps(fields, indent=2, sort_keys=True).encode() + b"\n"


def _parse_manifest(text: bytes, file: str) -> Manifest:
    try:
        fields = json.loads(text)
        check_format(fields["format"], file)
        moment, least, greatest = fields["written_at"], fields["least_id"], fields["greatest_id"]
        moments = {"written_at": datetime.fromisoformat(moment)}
        return Manifest(**(fields | moments | {"least_id": UUID(least), "greatest_id": UUID(greatest)}))
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise UnreadableArchive(file, "a manifest", f"{len(text)} bytes of something else") from error


def _fits(data: bytes, manifest: Manifest) -> bool:
    return len(data) == manifest.size_bytes and hashlib.sha256(data).hexdigest() == manifest.sha256


def _difference(data: bytes, manifest: Manifest) -> tuple[str, str]:
    """Return the expected and the found size, or checksum, of data that does not fit."""
    if len(data) != manifest.size_bytes:
        return f"{manifest.size_bytes} bytes", f"{len(data)} bytes"
    return f"SHA-256 {manifest.sha256}", f"SHA-256 {hashlib.sha256(data).hexdigest()}"
