"""`lamina mcp`: the tools for a model over standard input and output."""

import asyncio
from typing import Annotated

import typer

from lamina.cli.common import (
    AT_ONCE,
    ConfigOption,
    DataDirOption,
    KeyFileOption,
    KeyOption,
    UrlOption,
    UserOption,
    address_of,
)
from lamina.client import AsyncClient
from lamina.core.scope import DEFAULT_WORKSPACE
from lamina.host.extras import needing


def serve(
    workspace: Annotated[
        str, typer.Option("--workspace", "-w", help="Project, where a call names no other.")
    ] = DEFAULT_WORKSPACE,
    user: UserOption = None,
    agent: Annotated[str | None, typer.Option("--agent", help="Agent that writes and asks.")] = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
    key_file: KeyFileOption = None,
) -> None:
    """Serve MCP over standard input and output, for a program that starts this one, from a running service."""
    with needing("mcp", "`lamina mcp` speaks MCP"):
        from lamina.client.mcp.stdio import serve_stdio  # noqa: PLC0415 - no other command needs it
    ids = {name: id_ for name, id_ in (("workspace", workspace), ("user", user), ("agent", agent)) if id_}
    service, secret = address_of(config, data_dir, url, key, key_file)

    async def run() -> None:
        async with AsyncClient(service, secret, scope=ids, connect_retries=AT_ONCE) as api:
            await serve_stdio(api)

    asyncio.run(run())
