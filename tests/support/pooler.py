"""A pooler that keeps a session of Postgres for one transaction, as PgBouncer does in its transaction mode.

It is harder on its clients than PgBouncer: each transaction gets another session than the one before, and each session
forgets everything after each transaction.
"""

import asyncio
import itertools
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field

from psycopg.conninfo import conninfo_to_dict

from tests.support.wires import served

SSL, GSS, CANCEL = 80877103, 80877104, 80877102
PROTOCOL = 196608
SESSIONS = 3
ASKS_FOR_ANSWER = b"QSF"
COPY = b"dcf"
_Message = tuple[bytes, bytes]


@contextmanager
def pooled(url: str, *, sessions: int = SESSIONS) -> Iterator[str]:
    """Run the pooler before the database of a URL on a Unix socket; yield its own URL."""
    target = conninfo_to_dict(url)
    pooler = _Pooler(f"{target['host']}/.s.PGSQL.5432", str(target["user"]), str(target["dbname"]), sessions)
    with served(pooler.serve, pooler.close) as port:
        yield f"postgresql://{target['user']}@127.0.0.1:{port}/{target['dbname']}"


@dataclass(eq=False)
class _Session:
    """A session of the server."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    greeting: list[_Message] = field(default_factory=list)
    key: bytes = b""

    async def until_ready(self) -> list[_Message]:
        """Read up to where the server waits for the next command."""
        messages = [await _read(self.reader)]
        while messages[-1][0] != b"Z":
            messages.append(await _read(self.reader))
        return messages

    async def forget(self) -> None:
        """Lose all state, as a session that another client has had."""
        _write(self.writer, b"Q", b"DISCARD ALL\0")
        assert b"E" not in [kind for kind, _ in await self.until_ready()]


class _Pooler:
    def __init__(self, path: str, user: str, database: str, sessions: int) -> None:
        self._path = path
        self._startup = f"user\0{user}\0database\0{database}\0\0".encode()
        self._left = sessions
        self._free: asyncio.Queue[_Session] = asyncio.Queue()
        self._open: set[_Session] = set()
        self._clients: dict[bytes, _Client] = {}
        self._numbers = itertools.count(1)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one client until it goes."""
        code, rest = await _read_startup(reader)
        while code in (SSL, GSS):
            writer.write(b"N")
            code, rest = await _read_startup(reader)
        if code == CANCEL:
            await self._cancel(rest)
            return
        assert b"\0options\0" not in rest, "PgBouncer refuses the startup parameter `options`"
        key = struct.pack("!II", next(self._numbers), 1)
        client = self._clients[key] = _Client(self, reader, writer)
        try:
            await client.greet(key)
            await client.run()
        finally:
            del self._clients[key]
            client.leave()

    async def take(self) -> _Session:
        """Return a new session, or the one that was free the longest, once there is one."""
        if self._left:
            self._left -= 1
            return await self._connected()
        return await self._free.get()

    def give_back(self, session: _Session) -> None:
        """Let the next transaction have the session."""
        self._free.put_nowait(session)

    def lose(self, session: _Session) -> None:
        """Close a session whose client went amid a transaction."""
        session.writer.close()
        self._open.discard(session)
        self._left += 1

    async def close(self) -> None:
        """Close all sessions."""
        for session in self._open:
            session.writer.close()
            with suppress(OSError):
                await session.writer.wait_closed()

    async def _connected(self) -> _Session:
        session = _Session(*await asyncio.open_unix_connection(self._path))
        self._open.add(session)
        session.writer.write(struct.pack("!II", len(self._startup) + 8, PROTOCOL) + self._startup)
        messages = await session.until_ready()
        session.greeting = [message for message in messages if message[0] == b"S"]
        session.key = next(payload for kind, payload in messages if kind == b"K")
        return session

    async def _cancel(self, key: bytes) -> None:
        client = self._clients.get(key)
        if client is not None and client.session is not None:
            reader, writer = await asyncio.open_unix_connection(self._path)
            writer.write(struct.pack("!II", len(client.session.key) + 8, CANCEL) + client.session.key)
            await reader.read()
            writer.close()


class _Client:
    def __init__(self, pooler: _Pooler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._pooler, self._reader, self._writer = pooler, reader, writer
        self.session: _Session | None = None
        self._waits = 0
        self._is_amid = False
        self._answers: asyncio.Task[None] | None = None

    async def greet(self, key: bytes) -> None:
        """Tell the client that it is connected."""
        session = await self._pooler.take()
        _write(self._writer, b"R", struct.pack("!I", 0))
        for kind, payload in session.greeting:
            _write(self._writer, kind, payload)
        _write(self._writer, b"K", key)
        _write(self._writer, b"Z", b"I")
        self._pooler.give_back(session)

    async def run(self) -> None:
        """Pass on what the client says, until it says goodbye."""
        while (message := await _read(self._reader))[0] != b"X":
            if self.session is None:
                self.session = await self._pooler.take()
                self._answers = asyncio.create_task(self._pass_answers(self.session))
            self._note(message[0])
            _write(self.session.writer, *message)

    def leave(self) -> None:
        """Give up what the client had begun."""
        if self._answers is not None:
            self._answers.cancel()
        if self.session is not None:
            self._pooler.lose(self.session)

    def _note(self, kind: bytes) -> None:
        if kind in ASKS_FOR_ANSWER:
            self._waits, self._is_amid = self._waits + 1, False
        elif kind not in COPY:
            self._is_amid = True

    async def _pass_answers(self, session: _Session) -> None:
        """Pass on what the server says, until the transaction has ended."""
        with suppress(EOFError, OSError):
            while True:
                kind, payload = await _read(session.reader)
                self._waits -= kind == b"Z"
                if kind == b"Z" and payload == b"I" and not self._waits and not self._is_amid:
                    break
                _write(self._writer, kind, payload)
            await session.forget()
            self.session = None
            self._pooler.give_back(session)
            _write(self._writer, b"Z", b"I")
            return
        self._writer.close()


async def _read(reader: asyncio.StreamReader) -> _Message:
    kind, length = struct.unpack("!cI", await reader.readexactly(5))
    return kind, await reader.readexactly(length - 4)


async def _read_startup(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    length, code = struct.unpack("!II", await reader.readexactly(8))
    return code, await reader.readexactly(length - 8)


def _write(writer: asyncio.StreamWriter, kind: bytes, payload: bytes) -> None:
    writer.write(struct.pack("!cI", kind, len(payload) + 4) + payload)
