"""The archive of cold notes. Its libraries are loaded where it is used: without them everything else runs."""

from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING

from lamina.host.extras import needing
from lamina.maintenance.archived_notes import ArchivedNotes
from lamina.settings.loading import Settings
from lamina.stores.postgres.archive_catalog import ArchiveCatalog
from lamina.stores.postgres.connection import Pool

if TYPE_CHECKING:
    from lamina.maintenance.archival import ArchivalJob
    from lamina.stores.archive import Archive


def build_archive(settings: Settings) -> "Archive":
    """Return the archive that the settings name; `archive` in data_dir if they name none.

    Raises:
        Misconfigured: If its libraries, or the driver of its store, are not installed.
    """
    with needing("archive", "the archive is asked for"):
        from lamina.stores.archive import Archive  # noqa: PLC0415 - installed where it is used
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


def build_archived_notes(settings: Settings, pool: Pool) -> ArchivedNotes:
    """Build the calls on archived notes; opens nothing."""
    return ArchivedNotes(pool, ArchiveCatalog(pool), partial(build_archive, settings))
