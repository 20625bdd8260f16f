"""Numbered migrations, applied once, in order, under a lock."""

import hashlib
import logging
import time
from dataclasses import dataclass
from importlib import resources

import psycopg
from psycopg.rows import dict_row
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random

from lamina.errors import Misconfigured
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.stale_words import rekey_entities

QUERIES = load_queries("migrate.sql")

logger = logging.getLogger(__name__)
LEAST_SERVER = 150_000
LEAST_VECTOR = (0, 7)
CONNECT_TIMEOUT_S = 5
LOOK_S = 2.0
TRIES = 10
_LOCK = 0x6C616D696E61  # "lamina"
# Here and not among the migrations: it has to exist before the first of them is looked up in it.
_LEDGER = """
CREATE TABLE IF NOT EXISTS schema_migrations (
    version integer PRIMARY KEY,
    name text NOT NULL,
    checksum text NOT NULL,
    applied_at timestamptz NOT NULL DEFAULT now()
)
"""
_GRANT = (
    "have its owner GRANT CREATE ON SCHEMA public TO that user, "
    "and a superuser CREATE EXTENSION vector, btree_gin and unaccent in the database"
)
# Parts of libpq's messages: an error of the connection has no SQLSTATE from which to tell these apart.
_REFUSALS = (
    ("password", "correct user and password in postgres.url (LAMINA_POSTGRES__URL)"),
    ("role ", "correct the user in postgres.url, or create it"),
    ('database "', "create the database, or correct postgres.url"),
    ("certificate", "name the file of the server's root certificate in sslrootcert of postgres.url"),
    ("does not support SSL", "switch TLS on at the server, or correct sslmode in postgres.url"),
    ("pg_hba.conf", "let the user connect from here, or with TLS (sslmode=verify-full in postgres.url)"),
)


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
    """Return the migrations that are still to apply, given the checksums of the applied ones.

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


def refuse_versions(server: int, vector: str | None) -> None:
    """Refuse a server or a pgvector that is too old.

    Args:
        server: As libpq reports it: 180006 is 18.6.
        vector: Version of pgvector that is installed, or would be; ``None`` if the server has none.

    Raises:
        Misconfigured: With the version that was found and the one that is needed.
    """
    if server < LEAST_SERVER:
        found = f"{server // 10_000}.{server % 10_000}"
        raise Misconfigured(f"postgres is version {found}, needed is 15 or later", "name another one in postgres.url")
    if vector is None:
        raise Misconfigured("postgres has no pgvector", "install pgvector 0.7 or later on its machine")
    if tuple(int(part) for part in vector.split(".")[:2]) < LEAST_VECTOR:
        remedy = "install it on the server's machine, and run ALTER EXTENSION vector UPDATE"
        raise Misconfigured(f"postgres has pgvector {vector}, needed is 0.7 or later", remedy)


def connection_refusal(message: str) -> Misconfigured:
    """Return the error, with its remedy, for a connection that was refused.

    Args:
        message: Message of libpq, in any language; an unknown one counts as an outage.
    """
    for part, remedy in _REFUSALS:
        if part in message:
            return Misconfigured(f"postgres refuses the connection: {message}", remedy)
    return Misconfigured(
        f"postgres does not answer: {message}", "start it, or correct postgres.url (LAMINA_POSTGRES__URL)"
    )


def is_outage(message: str) -> bool:
    """Report whether a message of libpq means an outage that may pass, not a fault that an operator must repair."""
    return not any(part in message for part, _ in _REFUSALS)


def wait_for_server(url: str, seconds: float) -> None:
    """Wait until the server accepts or refuses connections, or the time is over; :func:`migrate` reports the cause."""
    deadline = time.monotonic() + seconds
    while (message := _refusal(url)) is not None and is_outage(message) and time.monotonic() < deadline:
        logger.warning("postgres does not answer yet; the start waits: %s", message)
        time.sleep(min(LOOK_S, max(0.0, deadline - time.monotonic())))


def _refusal(url: str) -> str | None:
    """Return the message of libpq if the server refuses a connection."""
    try:
        psycopg.connect(url, connect_timeout=CONNECT_TIMEOUT_S).close()
    except psycopg.OperationalError as error:
        return _first_line(error)
    except psycopg.ProgrammingError:  # No URL: nothing to wait for.
        return None
    return None


def _first_line(error: Exception) -> str:
    return str(error).strip().split("\n")[0]


def migrate(url: str, *, connect_timeout_s: int = CONNECT_TIMEOUT_S) -> list[str]:
    """Bring the database to this release's schema; return the names of the migrations applied.

    Raises:
        Misconfigured: If the database cannot be reached, is too old or newer than this release, lacks an extension,
            or its user may not change it.
    """
    try:
        with psycopg.connect(
            url, connect_timeout=connect_timeout_s, autocommit=True, row_factory=dict_row
        ) as connection:
            row = connection.execute(QUERIES["read_vector_version"]).fetchone()
            refuse_versions(connection.info.server_version, None if row is None else str(row["version"]))
            return _apply_pending(connection)
    except psycopg.errors.InsufficientPrivilege as error:
        raise Misconfigured(f"the user of postgres.url may not: {error.diag.message_primary}", _GRANT) from error
    except psycopg.ProgrammingError as error:
        if error.diag.sqlstate is not None:
            raise
        raise Misconfigured(
            "postgres.url is no URL of a database", "write postgresql://user:password@host:5432/database"
        ) from None
    except psycopg.OperationalError as error:
        raise connection_refusal(_first_line(error)) from error
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
        # Beside running writers a migration may be the one that Postgres ends.
        is_ended = retry_if_exception_type(psycopg.errors.DeadlockDetected)
        retrying = Retrying(retry=is_ended, stop=stop_after_attempt(TRIES), wait=wait_random(0, 1), reraise=True)
        for migration in todo:
            retrying(_apply, connection, migration)
        rekey_entities(connection)  # Before anything is written under a key of this release.
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
