"""A wire to Postgres that counts the statements on it."""

import asyncio
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from psycopg.conninfo import conninfo_to_dict

from tests.support.wires import served

SIMPLE, PARSE, EXECUTE = b"Q", b"P", b"E"
# Of statements with which a pool begins a connection, whenever it needs a further one.
SET_UP = ("TimeZone", "plan_cache_mode", "set_config", "typname")
BOUNDS = ("BEGIN", "COMMIT", "ROLLBACK")


@dataclass
class Wiretap:
    """The statements that a client sent, each as often as it was executed.

    Args:
        url: Of the database, by the wire.
        executed: Their number, without those that begin a connection, and begin and end a transaction.
    """

    url: str = ""
    executed: int = 0

    def take(self) -> int:
        """Return the number of statements since the last call."""
        taken, self.executed = self.executed, 0
        return taken

    def hear(self, kind: bytes, body: bytes) -> None:
        """Count a message of the client."""
        if kind == EXECUTE:
            self.executed += 1
        elif kind in (SIMPLE, PARSE):
            text = (body if kind == SIMPLE else body.partition(b"\0")[2]).partition(b"\0")[0].decode()
            is_left_out = text.startswith(BOUNDS) or any(word in text for word in SET_UP)
            # An Execute follows a Parse.
            self.executed += (not is_left_out) if kind == SIMPLE else -is_left_out


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
