"""The log of a router: JSON lines with the id of the request, a line a request, and never a content."""

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import IO, Any

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.core.request_ids import HEADER, accepted_id, current_request, of_request
from lamina.settings.logs import LogsSettings

LOGGERS = ("lamina", "deployments", "actors")
logger = logging.getLogger(__name__)


class JsonLines(logging.Formatter):
    """Writes a record as one line of JSON.

    Of an error, its type and the places in the code are written: its text may repeat what was sent.
    """

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line: dict[str, Any] = {
            "at": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": current_request(),
            **getattr(record, "fields", {}),
        }
        if record.exc_info and record.exc_info[0] is not None:
            line |= {"error": record.exc_info[0].__name__, "places": _places(record)}
        return json.dumps(line, ensure_ascii=False, default=str)


def _places(record: logging.LogRecord) -> list[str]:
    """Return the file, line and function of each call that led to an error."""
    trace, places = record.exc_info[2] if record.exc_info else None, []
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append(f"{code.co_filename}:{trace.tb_lineno} {code.co_qualname}")
        trace = trace.tb_next
    return places


def install(settings: LogsSettings, stream: IO[str] | None = None) -> None:
    """Write the log of this process as the settings say; once a process."""
    if not settings.json_lines:
        return
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines())
    for name in LOGGERS:
        of_package = logging.getLogger(name)
        of_package.handlers, of_package.propagate = [handler], False
        of_package.setLevel(logging.INFO)


class RequestLog:
    """Gives each request an id, which its answer carries, and writes a line about it.

    Args:
        app: The application.
        settings: Whether a line is written.
    """

    def __init__(self, app: ASGIApp, settings: LogsSettings) -> None:
        self._app = app
        self._settings = settings

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        id_, began, status = accepted_id(Headers(scope=scope).get(HEADER)), time.monotonic(), 0

        async def send_named(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message.get("headers", ()), (HEADER.lower().encode(), id_.encode())]}
            await send(message)

        with of_request(id_):
            try:
                await self._app(scope, receive, send_named)
            finally:
                if self._settings.requests:
                    self._write(scope, status, 1000 * (time.monotonic() - began))

    def _write(self, scope: Scope, status: int, took_ms: float) -> None:
        # The route, and not the path: that may hold names of users and files.
        route = getattr(scope.get("route"), "path", None)
        principal = scope.get("state", {}).get("principal")
        fields = {
            "method": scope["method"],
            "route": route,
            "status": status,
            "took_ms": round(took_ms, 1),
            "tenant": getattr(principal, "tenant", None),
            "key": None if principal is None else str(principal.key_id),
        }
        logger.info("request", extra={"fields": fields})
