"""Limits of time, memory and connections that uvicorn, Serve's HTTP server, leaves out; HAProxy before it has its own.

uvicorn waits without end for the rest of a request's head, keeps all that comes of it, keeps an answer as long as its
reader takes, reads requests ahead of their turn, and takes every connection.
"""

import asyncio
from typing import Any

import uvicorn.config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lamina.policies.limits.open_connections import OpenConnections
from lamina.settings.serving import FrontDoorSettings

NO_ADDRESS = "unknown"
MAX_HEAD_BYTES = 64 * 1024
MAX_UNREAD_BYTES = 256 * 1024 * 1024
"""Of all answers of a process that wait for their readers; beyond it the next reader to fall behind is cut off."""
MAX_PIPELINED = 16
"""Requests of one connection that wait for the one before; 64 KiB that are read at once could hold 3 600."""


class PatientProtocol(HttpToolsProtocol):
    """A connection whose heads and readers have a deadline, and whose heads and requests in advance have a bound."""

    limits = FrontDoorSettings()
    unread_bytes = 0
    open_connections: OpenConnections | None = None
    """Of this process; ``None`` behind HAProxy, which counts them and has one address for all clients."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._counted_in: OpenConnections | None = None
        self._address = NO_ADDRESS
        self._head_deadline: asyncio.TimerHandle | None = None
        self._reader_deadline: asyncio.TimerHandle | None = None
        self._head_bytes = self._own_unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Expect a head, if there is room for one more connection."""
        super().connection_made(transport)
        self._counted_in = self.open_connections
        self._address = self.client[0] if self.client else NO_ADDRESS
        if self._counted_in is not None and not self._counted_in.admit(self._address):
            transport.abort()
            return
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
        if self._counted_in is not None:
            self._counted_in.leave(self._address)
        self._end_head()
        self.resume_writing()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless a head is too long."""
        super().data_received(data)
        if self._head_deadline is not None:
            self._head_bytes += len(data)
            if self._head_bytes > MAX_HEAD_BYTES:
                self.transport.abort()

    def on_message_begin(self) -> None:
        """Expect the rest of a head."""
        super().on_message_begin()
        if self._head_deadline is None:
            self._expect_head()

    def on_headers_complete(self) -> None:
        """Wait for no more of the head; a client that sends many requests without reading an answer is cut off."""
        self._end_head()
        if len(self.pipeline) >= MAX_PIPELINED:
            self.transport.abort()
        if not self.transport.is_closing():
            super().on_headers_complete()

    def pause_writing(self) -> None:
        """Give the reader the time that its answer's size deserves."""
        super().pause_writing()
        size_bytes = self.transport.get_write_buffer_size()
        if PatientProtocol.unread_bytes + size_bytes > MAX_UNREAD_BYTES:
            self.transport.abort()
            return
        PatientProtocol.unread_bytes += size_bytes
        self._own_unread_bytes = size_bytes
        patience_s = self.limits.body_s + size_bytes / self.limits.body_bytes_per_s
        self._reader_deadline = self.loop.call_later(patience_s, self.transport.abort)

    def resume_writing(self) -> None:
        """Go on: the reader has caught up."""
        PatientProtocol.unread_bytes -= self._own_unread_bytes
        self._own_unread_bytes = 0
        if self._reader_deadline is not None:
            self._reader_deadline.cancel()
            self._reader_deadline = None
        super().resume_writing()

    def _expect_head(self) -> None:
        self._head_bytes = 0
        self._head_deadline = self.loop.call_later(self.limits.headers_s, self.transport.abort)

    def _end_head(self) -> None:
        if self._head_deadline is not None:
            self._head_deadline.cancel()
            self._head_deadline = None


def install(limits: FrontDoorSettings, *, counts_connections: bool) -> None:
    """Let servers that are started in this process from now on keep the limits.

    Args:
        limits: Of clients.
        counts_connections: Whether clients connect to this process; otherwise HAProxy does for all of them.
    """
    PatientProtocol.limits = limits
    PatientProtocol.open_connections = (
        OpenConnections(limits.connections, limits.connections_per_address, limits.trusted_proxies)
        if counts_connections
        else None
    )
    # Serve takes no class of protocol; it takes the one that uvicorn chooses.
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:{PatientProtocol.__name__}"
