"""The schema as one text: what the migrations add up to."""

import re
import subprocess
import tempfile
from pathlib import Path

from lamina.embedded import EmbeddedPostgres, binaries
from lamina.settings.stores import EmbeddedPostgresSettings
from lamina.stores.postgres.migrate import migrate

SNAPSHOT = Path(__file__).resolve().parents[2] / "lamina" / "stores" / "postgres" / "schema.sql"
_NOISE = re.compile(r"^(--|SET |SELECT pg_catalog|\\(un)?restrict|$)")
_HEADER = "-- What the migrations add up to; written by `make schema`, compared by a test.\n\n"


def dump(url: str) -> str:
    """Return the schema of a database, without what differs between runs."""
    text = subprocess.run(
        [binaries() / "pg_dump", "--schema-only", "--no-owner", "--no-privileges", url],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    lines = [line for line in text.splitlines() if not _NOISE.match(line)]
    return _HEADER + "\n".join(lines) + "\n"


def main() -> None:
    """Write the snapshot anew."""
    with tempfile.TemporaryDirectory(prefix="lamina-schema-") as folder:
        server = EmbeddedPostgres(Path(folder) / "postgres", EmbeddedPostgresSettings())
        url = server.start()
        migrate(url)
        SNAPSHOT.write_text(dump(url))
        server.stop()


if __name__ == "__main__":
    main()
