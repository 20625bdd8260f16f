"""Archived notes, for callers that run without the libraries of the archive as long as they need none."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from lamina.stores.postgres.archive_catalog import ArchiveCatalog
from lamina.stores.postgres.connection import Pool

if TYPE_CHECKING:
    from lamina.maintenance.archive_keeper import ArchiveKeeper
    from lamina.stores.archive import Archive


@dataclass(frozen=True, slots=True)
class ArchivedNotes:
    """Restores and erases archived notes, whether or not an archive is configured.

    Args:
        pool: Connections to Postgres.
        catalog: Finds archived notes; needs no library.
        open_archive: Opens the archive; raises :class:`Misconfigured` where its libraries are not installed.
    """

    pool: Pool
    catalog: ArchiveCatalog
    open_archive: "Callable[[], Archive]"

    def keeper(self) -> "ArchiveKeeper":
        """Return the keeper of the archive.

        Raises:
            Misconfigured: If its libraries, or the driver of its store, are not installed.
        """
        archive = self.open_archive()
        from lamina.maintenance.archive_keeper import ArchiveKeeper  # noqa: PLC0415 - needs the libraries

        return ArchiveKeeper(self.pool, archive)

    async def erase(self, tenant: str, id_: UUID, now: datetime) -> bool:
        """Erase an archived note; report whether there was one. Without one, no library is needed.

        Raises:
            Misconfigured: If its libraries, or the driver of its store, are not installed.
        """
        entries = await self.catalog.find(tenant, [id_])
        return bool(entries) and await self.keeper().erase_all(tenant, entries, now) > 0

    async def erase_user(self, tenant: str, user: str, now: datetime) -> int:
        """Erase a user's archived notes, and files that no note needs; return the number of notes.

        No library is needed before the first note of the tenant was archived.

        Raises:
            Misconfigured: If its libraries, or the driver of its store, are not installed.
            UnreadableArchive: If a file is damaged that may have some of them; all others are erased.
            Unavailable: If Postgres or the archive does not answer, or a folder of the archive is away.
        """
        if not await self.catalog.folders(tenant):
            return 0
        return await self.keeper().erase_user(tenant, user, now)
