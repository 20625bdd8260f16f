"""`/mcp`: the API's tools for models, over the same routes that everybody calls, behind the same front door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from starlette.datastructures import Headers
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.bodies import body_of
from deployments.problems import problem
from lamina.core.principals import Principal
from lamina.errors import InvalidInput
from lamina.extras import needing
from lamina.settings.doors import McpSettings
from lamina.text.hygiene import shorten

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"
BODY_MIB = 1
"""Most of a body: what a model writes in one call. The SDK reads it in the loop that serves everybody."""
SCOPE_HEADERS = {f"lamina-{name}": name for name in ("workspace", "namespace", "user", "agent", "swarm")}
_BASE_URL = "http://lamina"
_CHECKED = "checked by the front door"


class McpRoute(Route):
    """The route of `/mcp`.

    Args:
        behind: The API behind the front door.
        settings: Which names of this service, and which pages, may ask.
    """

    openapi_extra = body_of(mib=BODY_MIB)

    def __init__(self, behind: ASGIApp, settings: McpSettings) -> None:
        super().__init__(PATH, endpoint=_McpEndpoint(behind, settings), include_in_schema=False)


class _McpEndpoint:
    """Answers each request by a server that keeps nothing between two of them, so that any replica answers."""

    def __init__(self, behind: ASGIApp, settings: McpSettings) -> None:
        self._behind = behind
        self._settings = settings
        self._server: Server[Any] | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # The server of Serve leaves blanks behind a value, which are no part of it.
        scope = {**scope, "headers": [(name, value.strip(b" \t")) for name, value in scope["headers"]]}
        headers = Headers(scope=scope)
        if (foreign := self._foreign(headers)) is not None:
            await problem(*foreign)(scope, receive, send)
            return
        if scope["method"] != HTTPMethod.POST:
            detail = f"{scope['method']} {PATH}: only POST is answered; nothing is kept between two requests"
            refusal = problem(HTTPStatus.METHOD_NOT_ALLOWED, detail, headers={"Allow": "POST"})
            await refusal(scope, receive, send)
            return
        # The library takes half a second to import, in which others are answered; most services never need it.
        with needing("mcp", f"{PATH} is asked for"):
            if self._server is None:
                self._server = await asyncio.to_thread(self._build)
            from mcp.server.streamable_http_manager import StreamableHTTPSessionManager  # noqa: PLC0415 - as above
        # One for each request: what it starts ends with it, and no lifespan has to be kept beside the application's.
        manager = StreamableHTTPSessionManager(self._server, json_response=True, stateless=True)
        async with manager.run():
            await manager.handle_request(scope, receive, send)

    def _build(self) -> "Server[Any]":
        from lamina.client.mcp.server import Door, build_server  # noqa: PLC0415 - as above

        @asynccontextmanager
        async def open_door(context: Any) -> AsyncIterator[Door]:
            scope = context.request.scope
            principal: Principal = scope["state"]["principal"]
            async with self._client(scope, principal) as api:
                yield Door(api, principal.allowed_verbs())

        return build_server(open_door)

    def _client(self, scope: Scope, principal: Principal) -> Any:
        import httpx  # noqa: PLC0415 - as above

        from lamina.client.client import AsyncClient  # noqa: PLC0415 - as above

        async def as_principal(inner: Scope, receive: Receive, send: Send) -> None:
            await self._behind({**inner, "state": {"principal": principal}}, receive, send)

        transport = httpx.ASGITransport(as_principal, raise_app_exceptions=False)
        ids = ids_of(Headers(scope=scope))
        return AsyncClient(_BASE_URL, _CHECKED, scope=ids, connect_retries=0, transport=transport)

    def _foreign(self, headers: Headers) -> tuple[HTTPStatus, str] | None:
        """Return the refusal of a request by another name of this service, or from a page of another site.

        Otherwise a page whose name is made to point here could send a browser's requests.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_name(f"//{host}") not in self._settings.hosts:
            reason = "is none of the names by which this service is asked; add it to mcp.hosts"
            return HTTPStatus.MISDIRECTED_REQUEST, f"Host: {shorten(host) or 'nothing'} {reason}"
        if origin is None or origin in self._settings.origins or _host_name(origin) in self._settings.hosts:
            return None
        return HTTPStatus.FORBIDDEN, f"Origin: {shorten(origin)} is another site's; add it to mcp.origins"


def _host_name(url: str) -> str:
    """Return the name or address of a URL in lower case, without its port; nothing for what is no URL."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for what is no number
    except ValueError:
        return ""
    return "" if "@" in parts.netloc else parts.hostname or ""


def ids_of(headers: Headers) -> dict[str, str]:
    """Return the ids of a scope that headers name, each percent-encoded where it is not plain ASCII.

    Raises:
        InvalidInput: For one that is no UTF-8.
    """
    sent = {name: headers[header] for header, name in SCOPE_HEADERS.items() if header in headers}
    try:
        return {name: unquote(value, errors="strict") for name, value in sent.items()}
    except UnicodeDecodeError as error:
        raise InvalidInput("Lamina-…", "is no UTF-8; percent-encode the id") from error
