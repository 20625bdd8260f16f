"""Numbered migrations, applied once, in order, under a lock."""

import hashlib
from dataclasses import dataclass
from importlib import resources

import psycopg
from psycopg.rows import dict_row

from lamina.errors import Misconfigured

_LOCK = 0x6C616D696E61  # "lamina"
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""


@dataclass(frozen=True, slots=True)
class Migration:
    """One numbered step of the schema."""

    version: int
    name: str
    text: str

    @property
    def checksum(self) -> str:
        """Return the SHA-256 of its text, in hex."""
        return hashlib.sha256(self.text.encode()).hexdigest()


def migrations() -> list[Migration]:
    """Return all migrations of this release, oldest first."""
    folder = resources.files(__package__).joinpath("migrations")
    files = sorted(file.name for file in folder.iterdir() if file.name.endswith(".sql"))
    return [Migration(int(name.split("_")[0]), name, folder.joinpath(name).read_text()) for name in files]


def pending(known: list[Migration], applied: dict[int, str]) -> list[Migration]:
    """Return what is still to apply, given the checksums of what was applied.

    Raises:
        Misconfigured: If the database is newer than this release, or history was rewritten.
    """
    newest = max((migration.version for migration in known), default=0)
    beyond = [version for version in applied if version > newest]
    if beyond:
        raise Misconfigured(
            f"the database has schema version {max(beyond)}, this release knows {newest}",
            "run the release that wrote it, or a newer one",
        )
    for migration in known:
        if applied.get(migration.version, migration.checksum) != migration.checksum:
            raise Misconfigured(
                f"migration {migration.name} is not the one that the database was built with",
                "restore the released file; add changes as a new migration",
            )
    return [migration for migration in known if migration.version not in applied]


def migrate(url: str, *, connect_timeout_s: int = 5) -> list[str]:
    """Bring the database to this release's schema; return the names of the migrations applied.

    Raises:
        Misconfigured: If the database cannot be reached, is newer, or lacks an extension.
    """
    try:
        with psycopg.connect(
            url, connect_timeout=connect_timeout_s, autocommit=True, row_factory=dict_row
        ) as connection:
            return _apply_pending(connection)
    except psycopg.ProgrammingError as error:
        if error.diag.sqlstate is not None:
            raise
        raise Misconfigured(
            "postgres.url is no URL of a database", "write postgresql://user:password@host:5432/database"
        ) from None
    except psycopg.OperationalError as error:
        raise Misconfigured(
            f"postgres does not answer: {str(error).strip().splitlines()[0]}",
            "start it, or correct postgres.url (LAMINA_POSTGRES__URL)",
        ) from error
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        raise Misconfigured(
            f"postgres lacks an extension: {error.diag.message_primary}", "install pgvector 0.7 or later on the server"
        ) from error


def _apply_pending(connection: psycopg.Connection[dict[str, object]]) -> list[str]:
    connection.execute("SELECT pg_advisory_lock(%s)", (_LOCK,))
    try:
        connection.execute(_LEDGER)
        rows = connection.execute("SELECT version, checksum FROM schema_migrations").fetchall()
        todo = pending(migrations(), {int(str(row["version"])): str(row["checksum"]) for row in rows})
        for migration in todo:
            _apply(connection, migration)
    finally:
        connection.execute("SELECT pg_advisory_unlock(%s)", (_LOCK,))
    return [migration.name for migration in todo]


def _apply(connection: psycopg.Connection[dict[str, object]], migration: Migration) -> None:
    with connection.transaction():
        connection.execute(migration.text.encode())
        connection.execute(
            "INSERT INTO schema_migrations (version, name, checksum) VALUES (%s, %s, %s)",
            (migration.version, migration.name, migration.checksum),
        )
