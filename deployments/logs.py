"""The id of each request, and a line of the log about it."""

import logging
import time

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from lamina.core.request_ids import HEADER, accepted_id, of_request
from lamina.settings.logs import LogsSettings

logger = logging.getLogger(__name__)


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
