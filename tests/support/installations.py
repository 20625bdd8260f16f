"""Installations that earlier code left behind: where they lie, what they hold, and how they are brought back.

Each folder of ``tests/data/installations`` is named for the commit that filled it and holds the whole data directory
(``lamina.tar.xz``), a dump of its database (``database.sql.xz``), and what is to be found there (``manifest.json``).
"""

import asyncio
import json
import lzma
import os
import shutil
import subprocess
import tarfile
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psycopg
from psycopg import sql

from lamina.core.ports import Model
from lamina.embedded import EmbeddedFalkorDB, EmbeddedPostgres, binaries
from lamina.embedded.postgres import SYSTEM_USER
from lamina.projections.ownership import claim_projection
from lamina.settings.loading import Settings
from lamina.settings.models import SentenceTransformersSettings
from lamina.settings.stores import EmbeddedFalkorDBSettings, EmbeddedPostgresSettings, FalkorDBServerSettings
from lamina.stores.postgres.migrate import migrate
from tests.support.application import Application, running, settings_for

FOLDER = Path(__file__).resolve().parents[1] / "data" / "installations"
DATA_DIR = ".lamina"
ARCHIVE = "lamina.tar.xz"
Json = dict[str, Any]


@dataclass
class Expected:
    """A memory that the installation has, and a search that asks for it.

    Args:
        tenant: Whose it is.
        tier: Where it lives.
        ask: Fields of the search.
        id: Of the memory.
        text: What the hit says among other things.
    """

    tenant: str
    tier: str
    ask: Json
    id: str
    text: str


@dataclass
class Manifest:
    """What an installation holds.

    Args:
        commit: The code that filled it.
        data_dir: Where it lay.
        graph_url: Where its graph answered; the database tells the place of every projection.
        keys: An admin's key of each tenant.
        revoked_key: A key that opens nothing any more.
        memories: Everything that a search finds.
        gone: Searches for what was erased, deleted or replaced, and the text that nobody may find.
        counts: How many memories each projection has, by tenant.
        rows: How many rows each table of the database has.
        reads: What reads answered: tenant, path, parameters, and fields of the answer.
        erased: A user of whom nothing is left: tenant, and parameters of reads.
        faded: A note that a run of a job let fade, and the run.
        archived: A note that is in a file of the archive alone.
        retried: A request that was sent with an Idempotency-Key, and its answer.
    """

    commit: str
    data_dir: str
    graph_url: str
    keys: dict[str, str] = field(default_factory=dict)
    revoked_key: str = ""
    memories: list[Expected] = field(default_factory=list)
    gone: list[Json] = field(default_factory=list)
    counts: dict[str, dict[str, int]] = field(default_factory=dict)
    rows: dict[str, int] = field(default_factory=dict)
    reads: list[Json] = field(default_factory=list)
    erased: Json = field(default_factory=dict)
    faded: Json = field(default_factory=dict)
    archived: Json = field(default_factory=dict)
    retried: Json = field(default_factory=dict)


@dataclass(frozen=True)
class Installation:
    """An installation as it is kept.

    Args:
        folder: Where its files are.
    """

    folder: Path

    @property
    def name(self) -> str:
        """Return the commit that filled it, shortened."""
        return self.folder.name

    def manifest(self) -> Manifest:
        """Return what it holds."""
        told = json.loads((self.folder / "manifest.json").read_text())
        return Manifest(**{**told, "memories": [Expected(**memory) for memory in told["memories"]]})

    def keep(self, manifest: Manifest, database: str, data_dir: Path) -> None:
        """Write what was made: the manifest, the dump of the database and the data directory."""
        self.folder.mkdir(parents=True, exist_ok=True)
        text = json.dumps(asdict(manifest), indent=1, ensure_ascii=False)
        (self.folder / "manifest.json").write_text(text + "\n")
        (self.folder / "database.sql.xz").write_bytes(lzma.compress(database.encode(), preset=9))
        left_out = [f"--exclude={name}" for name in ("log", "lock", "postmaster.*")]
        options = ["--sparse", "--xz", "--owner=root:0", "--group=root:0", *left_out]
        # Python's own module writes no holes, of which the files of an index are full.
        subprocess.run(
            ["tar", "--create", *options, "--file", self.folder / ARCHIVE, "--directory", data_dir.parent, DATA_DIR],  # noqa: S607
            env={**os.environ, "XZ_OPT": "-9"},
            check=True,
        )

    def unpack(self, home: Path, part: str = "") -> Path:
        """Bring the data directory back below a folder, or one part of it alone; return it."""
        with tarfile.open(self.folder / ARCHIVE) as archive:
            chosen = [member for member in archive if member.name.startswith(f"{DATA_DIR}/{part}")]
            archive.extractall(home, chosen, filter="data")
        return home / DATA_DIR

    def restore(self, url: str) -> None:
        """Restore the dump into an empty database."""
        subprocess.run(
            [binaries() / "psql", "--quiet", "--no-psqlrc", "--set=ON_ERROR_STOP=1", "--output=/dev/null", url],
            input=lzma.decompress((self.folder / "database.sql.xz").read_bytes()),
            check=True,
        )


def installations() -> list[Installation]:
    """Return every installation that is kept."""
    return [Installation(file.parent) for file in sorted(FOLDER.glob("*/manifest.json"))]


def dump(url: str) -> str:
    """Return a dump of a database, for any server from Postgres 15 on."""
    text = subprocess.run(
        [binaries() / "pg_dump", "--no-owner", "--no-privileges", url], capture_output=True, text=True, check=True
    ).stdout
    return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("SET transaction_timeout"))


def row_counts(url: str) -> dict[str, int]:
    """Return how many rows each table of a database has."""
    with psycopg.connect(url) as connection:
        names = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1").fetchall()
        counts = {}
        for (name,) in names:
            statement = sql.SQL("SELECT count(*) FROM {}").format(sql.Identifier(name))
            (counts[name],) = connection.execute(statement).fetchone() or (0,)
    return counts


@contextmanager
def servers(data_dir: Path) -> Iterator[tuple[str, str]]:
    """Run the embedded servers on a data directory, as ``lamina up`` does; yield the URLs of both."""
    postgres = EmbeddedPostgres(data_dir / "postgres", EmbeddedPostgresSettings())
    _hand_over(postgres.directory)
    falkordb = EmbeddedFalkorDB(data_dir / "graph", EmbeddedFalkorDBSettings())
    try:
        yield postgres.start(), falkordb.start()
    finally:
        falkordb.stop()
        postgres.stop()


def _hand_over(directory: Path) -> None:
    """Give files that root has unpacked to the user that Postgres runs as."""
    if os.geteuid() == 0:
        for path in directory.rglob("*"):
            shutil.chown(path, SYSTEM_USER, SYSTEM_USER)


def begin_wal_anew(directory: Path) -> None:
    """Replace the write-ahead log of a server that was shut down, which needs none of it, by an empty one."""
    owner = directory.stat()
    command = [binaries() / "pg_resetwal", "--pgdata", directory]
    subprocess.run(command, check=True, capture_output=True, user=owner.st_uid, group=owner.st_gid, cwd="/")


def follow_move(url: str, places: Mapping[str, str]) -> None:
    """Tell a database that its projections' places are called otherwise now, so that it takes the files for its own."""
    with psycopg.connect(url, autocommit=True) as connection:
        for before, now in places.items():
            statement = "UPDATE projection_stores SET store = replace(store, %s, %s)"
            connection.execute(statement, [before, now])


@asynccontextmanager
async def opened(
    url: str, data_dir: Path, graph_url: str, model: Model, **overrides: Any
) -> AsyncIterator[Application]:
    """Open an installation as the service does: migrate, claim the stores, take over what they miss."""
    await asyncio.to_thread(migrate, url)
    with psycopg.connect(url) as connection:
        # Answers under keys end after a day, and the recorded installations are older.
        connection.execute("UPDATE idempotency_keys SET created_at = now()")
    async with running(settings_of(url, data_dir, graph_url, **overrides), url, model, follow=False) as app:
        for parts in app.tiers.values():
            for projection in parts.projections:
                is_new = projection in parts.new
                await asyncio.to_thread(claim_projection, app.settings, url, projection, None, is_new=is_new)
        await app.indexer.renew()
        await app.indexed()
        yield app


def settings_of(url: str, data_dir: Path, graph_url: str, **overrides: Any) -> Settings:
    """Return the settings of an installation with the real model."""
    patient = {"source_deadline_s": 20, "tier_deadline_s": 25, "embed_deadline_s": 20}  # The machine may be busy.
    embedding, graph = SentenceTransformersSettings(), FalkorDBServerSettings(url=graph_url)
    return settings_for(url, data_dir, embedding=embedding, graph=graph, search=patient, **overrides)
