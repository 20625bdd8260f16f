"""A wire to Postgres that notes the statements on it."""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict

from tests.support.wires import served

SIMPLE, PARSE, BIND, EXECUTE = b"Q", b"P", b"B", b"E"
BOUNDS = ("BEGIN", "COMMIT", "ROLLBACK")
# Of statements with which a pool begins a connection, and of those that are sent now and then whatever is asked.
OF_ITSELF = ("TimeZone", "plan_cache_mode", "set_config", "typname", "last_used_at", "FROM quotas")


@dataclass
class Wiretap:
    """The statements that clients sent, in order.

    Args:
        url: Of the database, by the wire.
        texts: Of statements that were executed, without those that come of themselves or bound a transaction.
        everything: Of all statements that were executed.
    """

    url: str = ""
    texts: list[str] = field(default_factory=list)
    everything: list[str] = field(default_factory=list)

    def take(self) -> list[str]:
        """Return the statements since the last call."""
        taken, self.texts = self.texts, []
        return taken

    def add(self, text: str) -> None:
        """Note a statement that is executed."""
        self.everything.append(text)
        if not text.startswith(BOUNDS) and not any(word in text for word in OF_ITSELF):
            self.texts.append(text)


@dataclass
class _Session:
    """Prepared statements of one connection, by name."""

    tap: Wiretap
    prepared: dict[bytes, str] = field(default_factory=dict)
    bound: str = ""

    def hear(self, kind: bytes, body: bytes) -> None:
        if kind == SIMPLE:
            self.tap.add(body.partition(b"\0")[0].decode())
        elif kind == PARSE:
            name, text, _ = body.split(b"\0", 2)
            self.prepared[name] = text.decode()
        elif kind == BIND:
            _, name, _ = body.split(b"\0", 2)
            self.bound = self.prepared[name]
        elif kind == EXECUTE:
            self.tap.add(self.bound)


@contextmanager
def wiretapped(url: str) -> Iterator[Wiretap]:
    """Run a wire before the database of a URL on a Unix socket."""
    target, tap = conninfo_to_dict(url), Wiretap()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        session = _Session(tap)
        answers, server = await asyncio.open_unix_connection(f"{target['host']}/.s.PGSQL.5432")
        back = asyncio.create_task(_copy(answers, writer))
        try:
            startup = await _read(reader)
            server.write(struct.pack("!I", len(startup) + 4) + startup)
            while True:
                kind = await reader.readexactly(1)
                body = await _read(reader)
                session.hear(kind, body)
                server.write(kind + struct.pack("!I", len(body) + 4) + body)
        finally:
            back.cancel()
            server.close()

    with served(serve) as port:
        tap.url = (
            f"postgresql://{target['user']}@127.0.0.1:{port}/{target['dbname']}?sslmode=disable&gssencmode=disable"
        )
        yield tap


async def _read(reader: asyncio.StreamReader) -> bytes:
    (length,) = struct.unpack("!I", await reader.readexactly(4))
    return await reader.readexactly(length - 4)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
