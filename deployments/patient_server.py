"""Limits of time and memory that uvicorn, Serve's HTTP server, leaves out; HAProxy in front of it has its own.

uvicorn waits without end for the rest of a request's head, keeps all that comes of it, and keeps an answer as long as
its reader takes.
"""

import asyncio
from typing import Any

import uvicorn.config
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from lamina.settings import FrontDoorSettings

MAX_HEAD_BYTES = 64 * 1024
MAX_UNREAD_BYTES = 256 * 1024 * 1024
"""Of all answers of a process that wait for their readers; beyond it the next reader to fall behind is cut off."""


class PatientProtocol(HttpToolsProtocol):
    """A connection whose heads and readers have a deadline, and whose heads have a largest size."""

    limits = FrontDoorSettings()
    unread_bytes = 0

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._head_deadline: asyncio.TimerHandle | None = None
        self._reader_deadline: asyncio.TimerHandle | None = None
        self._head_bytes = self._own_unread_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # uvicorn's own
        """Expect a head."""
        super().connection_made(transport)
        self._expect_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines."""
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
        """Wait for no more of the head."""
        self._end_head()
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


def install(limits: FrontDoorSettings) -> None:
    """Let servers that are started in this process from now on keep the limits."""
    PatientProtocol.limits = limits
    # Serve takes no class of protocol; it takes the one that uvicorn chooses.
    uvicorn.config.HTTP_PROTOCOLS["auto"] = f"{__name__}:{PatientProtocol.__name__}"
