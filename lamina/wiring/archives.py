"""The archive of cold notes. Its libraries are loaded where it is used: without them everything else runs."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING
from uuid import UUID

from lamina.errors import Misconfigured
from lamina.settings import Settings
from lamina.stores.postgres.archive_catalog import ArchiveCatalog
from lamina.stores.postgres.connection import Pool

if TYPE_CHECKING:
    from lamina.maintenance.archival import ArchivalJob, ArchiveKeeper
    from lamina.stores.archive import Archive

_LIBRARIES = frozenset({"pyarrow", "fsspec"})


def build_archive(settings: Settings) -> "Archive":
    """Return the archive that the settings name; `archive` in data_dir if they name none.

    Raises:
        Misconfigured: If its libraries, or the driver of its store, are not installed.
    """
    try:
        from lamina.stores.archive import Archive  # noqa: PLC0415 - installed where it is used
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LIBRARIES:
            raise
        raise Misconfigured(
            f"the archive needs {error.name}, which is not installed", "pip install lamina[archive]"
        ) from error
    chosen = settings.jobs.archival
    url = chosen.url if chosen.url is not None else str(settings.data_dir.resolve() / "archive")
    return Archive(url, options=chosen.options)


def build_archival(settings: Settings, pool: Pool) -> "ArchivalJob":
    """Build the job that archives.

    Raises:
        Misconfigured: As for the archive.
    """
    archive = build_archive(settings)
    from lamina.maintenance.archival import ArchivalJob, ArchivalPolicy  # noqa: PLC0415 - needs the libraries

    chosen = settings.jobs.archival
    policy = ArchivalPolicy(timedelta(days=chosen.idle_days), chosen.most_hits)
    return ArchivalJob(pool, archive, policy, page_rows=settings.jobs.page_rows)


@dataclass(frozen=True, slots=True)
class Archives:
    """Restore and erase archived notes, whether or not an archive is configured.

    Args:
        settings: Where the archive is.
        pool: Connections to Postgres.
        notes: Tells what is archived; needs no library.
    """

    settings: Settings
    pool: Pool
    notes: ArchiveCatalog

    def keeper(self) -> "ArchiveKeeper":
        """Return the keeper of the archive.

        Raises:
            Misconfigured: As for the archive.
        """
        archive = build_archive(self.settings)
        from lamina.maintenance.archival import ArchiveKeeper  # noqa: PLC0415 - needs the libraries

        return ArchiveKeeper(self.pool, archive)

    async def erase(self, tenant: str, id_: UUID, now: datetime) -> bool:
        """Erase an archived note; tell whether there was one. Without, no library is needed.

        Raises:
            Misconfigured: As for the archive.
        """
        entries = await self.notes.find(tenant, [id_])
        return bool(entries) and await self.keeper().erase_all(tenant, entries, now) > 0

    async def erase_user(self, tenant: str, user: str, now: datetime) -> int:
        """Erase a user's archived notes, and files that no note needs; return the number of notes.

        As long as the archive was given nothing of the tenant, no library is needed.

        Raises:
            Misconfigured: As for the archive.
            UnreadableArchive: If a file is damaged that may have some of them; all others are erased.
            Unavailable: If Postgres or the archive does not answer, or a folder of the archive is away.
        """
        if not await self.notes.folders(tenant):
            return 0
        return await self.keeper().erase_user(tenant, user, now)


def build_archives(settings: Settings, pool: Pool) -> Archives:
    """Build the calls on archived notes; opens nothing."""
    return Archives(settings, pool, ArchiveCatalog(pool))
