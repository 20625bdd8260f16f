"""The MCP server over standard input and output."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from mcp.server.stdio import stdio_server

from lamina.client.client import AsyncClient
from lamina.client.mcp.server import Door, Request, build_server


async def serve_stdio(api: AsyncClient) -> None:
    """Serve until the input ends; all other output goes to standard error."""

    @asynccontextmanager
    async def open_door(_: Request) -> AsyncIterator[Door]:
        yield Door(api, api.following)

    server = build_server(open_door)
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())
