"""`/mcp`: the API's tools for models, over the same routes that everybody calls, behind the same front door."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from http import HTTPMethod, HTTPStatus
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.requests import Request
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.bodies import body_of, receive_body
from deployments.inner_client import follow_events, ids_of, inner_client
from deployments.problems import answer_error, problem
from deployments.services import Services
from lamina.core.json_values import read_json
from lamina.core.principals import VERBS_OF, Principal, Verb
from lamina.core.tokens import scope_of
from lamina.errors import InsufficientScope, InvalidInput
from lamina.host.extras import needing
from lamina.text.hygiene import shorten

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server

PATH = "/mcp"
BODY_MIB = 1
"""Most of a body, which a model writes in one call. The SDK reads it in the loop that serves everybody."""
_READING = frozenset({"resources/list", "resources/read", "prompts/get", "subscriptions/listen"})


class McpRoute(Route):
    """The route of `/mcp`.

    Args:
        behind: The API behind the front door.
        services: The settings, which name the hosts and pages that may ask.
    """

    openapi_extra = body_of(mib=BODY_MIB)

    def __init__(self, behind: ASGIApp, services: Services) -> None:
        super().__init__(PATH, endpoint=_McpEndpoint(behind, services), include_in_schema=False)


class _McpEndpoint:
    """Answers each request by a server that keeps nothing between two of them, so that any replica answers."""

    def __init__(self, behind: ASGIApp, services: Services) -> None:
        self._behind = behind
        jwt = services.settings.auth.jwt
        own = () if jwt is None else (_host_name(jwt.audience),)
        self._hosts = frozenset((*services.settings.mcp.hosts, *own))
        self._origins = services.settings.mcp.origins
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
        principal: Principal = scope["state"]["principal"]
        if principal.issuer is not None:
            body = await Request(scope, receive).body()
            verb = await asyncio.to_thread(needed_verb, body)
            if verb is not None and verb not in principal.allowed_verbs():
                refusal = answer_error(Request(scope), InsufficientScope(scope_of(verb)))
                await refusal(scope, receive, send)
                return
            receive = receive_body(body, receive)
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
            ids = ids_of(Headers(scope=scope))
            async with inner_client(self._behind, principal, ids) as api:
                # The scopes of a token can be extended, by a client that knows of a tool.
                verbs = principal.allowed_verbs() if principal.issuer is None else VERBS_OF[principal.role]
                yield Door(api, partial(follow_events, self._behind, scope, ids), verbs)

        return build_server(open_door)

    def _foreign(self, headers: Headers) -> tuple[HTTPStatus, str] | None:
        """Return the refusal of a request by another name of this service, or from a page of another site.

        Otherwise a page whose name is made to point here could send a browser's requests.
        """
        host, origin = headers.get("host", ""), headers.get("origin")
        if _host_name(f"//{host}") not in self._hosts:
            reason = "is none of the names by which this service is asked; add it to mcp.hosts"
            return HTTPStatus.MISDIRECTED_REQUEST, f"Host: {shorten(host) or 'nothing'} {reason}"
        if origin is None or origin in self._origins or _host_name(origin) in self._hosts:
            return None
        return HTTPStatus.FORBIDDEN, f"Origin: {shorten(origin)} is another site's; add it to mcp.origins"


def _host_name(url: str) -> str:
    """Return the name or address of a URL in lower case, without its port; nothing if it is no URL."""
    try:
        parts = urlsplit(url)
        parts.port  # noqa: B018 - raises for what is no number
    except ValueError:
        return ""
    return "" if "@" in parts.netloc else parts.hostname or ""


def needed_verb(body: bytes) -> Verb | None:
    """Return the verb that a request of the protocol needs; ``None`` if it needs none, or is no such request."""
    from lamina.client.mcp.tools import BY_NAME  # noqa: PLC0415 - with the first request of a token

    try:
        message = read_json(body, "body")
    except InvalidInput:
        return None
    method = message.get("method") if isinstance(message, dict) else None
    if method in _READING:
        return Verb.READ
    params = message.get("params") if method == "tools/call" else None
    name = params.get("name") if isinstance(params, dict) else None
    return BY_NAME[name].verb if isinstance(name, str) and name in BY_NAME else None
