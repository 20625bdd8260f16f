"""The archive: cold notes as files outside the database, from which they are restored exactly."""

from lamina.stores.archive.files import Archive, ArchiveFile, Fault, Manifest, scope_folder
from lamina.stores.archive.notes import ArchivedChunk, ArchivedLink, ArchivedNote, ArchivedVersion, UnreadableArchive

__all__ = [
    "Archive",
    "ArchiveFile",
    "ArchivedChunk",
    "ArchivedLink",
    "ArchivedNote",
    "ArchivedVersion",
    "Fault",
    "Manifest",
    "UnreadableArchive",
    "scope_folder",
]
