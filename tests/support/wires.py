"""Servers between a client and a server: a TLS front, one that never says a word, and one that can stand still."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from ipaddress import IPv4Address
from pathlib import Path
from ssl import PROTOCOL_TLS_SERVER, SSLContext

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]
Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]
SSL_REQUEST_BYTES = 8
START_TIMEOUT_S = 60.0


@contextmanager
def served(serve: Serve, stopped: Callable[[], Awaitable[None]] | None = None) -> Iterator[int]:
    """Serve connections to a free port of this machine in a thread of its own; yield the port.

    Args:
        serve: Serves one connection.
        stopped: Closes what is left in that thread at the end.
    """
    ready: Future[tuple[int, Callable[[], object]]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(_run(serve, ready, stopped)), daemon=True)
    thread.start()
    port, stop = ready.result(START_TIMEOUT_S)
    yield port
    stop()
    thread.join(START_TIMEOUT_S)


async def _run(
    serve: Serve,
    ready: "Future[tuple[int, Callable[[], object]]]",
    stopped: Callable[[], Awaitable[None]] | None,
) -> None:
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    connections: set[asyncio.Task[None]] = set()

    async def closing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            with suppress(OSError, EOFError):
                await serve(reader, writer)
        finally:
            connections.discard(task)
            writer.close()

    server = await asyncio.start_server(closing, "127.0.0.1", 0)
    ready.set_result((server.sockets[0].getsockname()[1], lambda: loop.call_soon_threadsafe(stop.set)))
    await stop.wait()
    server.close()
    for task in connections:
        task.cancel()
    await asyncio.gather(*connections, return_exceptions=True)
    if stopped is not None:
        await stopped()


@contextmanager
def silence() -> Iterator[int]:
    """Run a server that takes connections and says nothing; yield its port."""

    async def say_nothing(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        while await reader.read(1024):
            pass

    with served(say_nothing) as port:
        yield port


@contextmanager
def standing_still(connect: Connect) -> Iterator[tuple[int, threading.Event]]:
    """Run a wire to a server; yield its port, and an event: while it is set, nothing passes."""
    stands = threading.Event()

    async def pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65536):
            while stands.is_set():  # noqa: ASYNC110 - it is set in another thread
                await asyncio.sleep(0.01)
            writer.write(data)
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        far_reader, far_writer = await connect()
        try:
            await asyncio.gather(pass_on(reader, far_writer), pass_on(far_reader, writer))
        finally:
            far_writer.close()

    with served(serve) as port:
        yield port, stands


@dataclass(frozen=True)
class Certificate:
    """Paths of a certificate for ``localhost`` that is its own root, and of its key."""

    file: Path
    key: Path


def new_certificate(folder: Path, name: str) -> Certificate:
    """Make a certificate that is valid for an hour."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    hosts = x509.SubjectAlternativeName([x509.DNSName("localhost"), x509.IPAddress(IPv4Address("127.0.0.1"))])
    now = datetime.now(UTC)
    certificate = (
        x509.CertificateBuilder(issuer, issuer, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(minutes=5))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(hosts, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    made = Certificate(folder / f"{name}.crt", folder / f"{name}.key")
    made.file.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    made.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return made


@contextmanager
def tls_front(connect: Connect, certificate: Certificate, *, after_request: bool) -> Iterator[int]:
    """Run what speaks TLS with clients, and in the clear with a server; yield its port.

    Args:
        connect: Connects to the server.
        certificate: What it shows to clients.
        after_request: Whether clients ask for TLS first, as those of Postgres do.
    """
    context = SSLContext(PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate.file, certificate.key)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if after_request:
            await reader.readexactly(SSL_REQUEST_BYTES)
            writer.write(b"S")
            await writer.drain()
        await writer.start_tls(context)
        far_reader, far_writer = await connect()
        try:
            await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        finally:
            far_writer.close()

    with served(serve) as port:
        yield port


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()
