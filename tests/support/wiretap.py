"""A wire to Postgres that counts the statements on it."""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict

from tests.support.wires import served

SIMPLE, PARSE, EXECUTE = b"Q", b"P", b"E"


@dataclass
class Wiretap:
    """The statements that a client sent, each as often as it was executed.

    Args:
        url: Of the database, by the wire.
        executed: Their number, those that begin and end a transaction left out.
    """

    url: str = ""
    executed: int = 0
    texts: list[str] = field(default_factory=list)

    def take(self) -> int:
        """Return the number of statements since the last call."""
        taken, self.executed = self.executed, 0
        self.texts.clear()
        return taken

    def hear(self, kind: bytes, body: bytes) -> None:
        """Count a message of the client."""
        text = (body if kind == SIMPLE else body.partition(b"\0")[2]).partition(b"\0")[0].decode()
        if kind in (SIMPLE, PARSE):
            self.texts.append(text)
        if kind == EXECUTE or (kind == SIMPLE and text.split()[0] not in ("BEGIN", "COMMIT", "ROLLBACK")):
            self.executed += 1


@contextmanager
def wiretapped(url: str) -> Iterator[Wiretap]:
    """Run a wire before the database of a URL on a Unix socket."""
    target, tap = conninfo_to_dict(url), Wiretap()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        answers, server = await asyncio.open_unix_connection(f"{target['host']}/.s.PGSQL.5432")
        back = asyncio.create_task(_copy(answers, writer))
        try:
            kind, startup = b"", await _read(reader)
            server.write(struct.pack("!I", len(startup) + 4) + startup)
            while True:
                kind = await reader.readexactly(1)
                body = await _read(reader)
                tap.hear(kind, body)
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
