"""MCP clients of an application in this process: the SDK's own, and plain requests."""

import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx
import httpx2
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from tests.support.application import Application

MODERN, LEGACY = "2026-07-28", "2025-11-25"
URL = "http://localhost/mcp"
_META = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientCapabilities": {},
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
}
_NAMED = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}


@asynccontextmanager
async def connected(
    app: Application, mode: Any = "auto", key: str | None = None, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Client]:
    """Connect the SDK's client.

    Args:
        app: The application.
        mode: `auto` for the newest revision, `legacy` for the one before.
        key: In place of the writer's.
        headers: Sent with each request, beside the key.
    """
    sent = {"Authorization": f"Bearer {key or app.key}", **(headers or {})}
    transport = httpx2.ASGITransport(app.api, raise_app_exceptions=False)
    async with (
        httpx2.AsyncClient(transport=transport, headers=sent, timeout=60) as http,
        Client(streamable_http_client(URL, http_client=http), mode=mode) as client,
    ):
        yield client


def message(method: str, params: Mapping[str, Any] | None = None, version: str = MODERN) -> dict[str, Any]:
    """Return a request of the protocol."""
    meta = {"_meta": {**_META, "io.modelcontextprotocol/protocolVersion": version}} if version == MODERN else {}
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**(params or {}), **meta}}


def headers_of(method: str, params: Mapping[str, Any] | None = None, version: str = MODERN) -> dict[str, str]:
    """Return the headers that go with a request of the protocol."""
    named = {"Mcp-Name": str((params or {})[_NAMED[method]])} if method in _NAMED else {}
    routing = {"Mcp-Method": method, **named} if version == MODERN else {}
    return {"Accept": "application/json, text/event-stream", "MCP-Protocol-Version": version, **routing}


async def post(
    client: httpx.AsyncClient,
    method: str,
    params: Mapping[str, Any] | None = None,
    version: str = MODERN,
    **headers: str,
) -> httpx.Response:
    """Send one request of the protocol."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    body = json.dumps(message(method, params, version))
    sent = {"Content-Type": "application/json", **headers_of(method, params, version), **named}
    return await client.post(URL, content=body, headers=sent)


async def call(client: httpx.AsyncClient, tool: str, version: str = MODERN, **arguments: Any) -> dict[str, Any]:
    """Call a tool and return its result."""
    answer = await post(client, "tools/call", {"name": tool, "arguments": arguments}, version)
    assert answer.status_code == 200, answer.text
    return dict(answer.json()["result"])
