"""Uvicorn beside a test, in its loop."""

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import uvicorn

from lamina.aio.cancelling import cancel_all

LOOKS, LOOK_S = 10, 0.01


@asynccontextmanager
async def serving(config: uvicorn.Config, sockets: Sequence[socket.socket] | None = None) -> AsyncIterator[None]:
    """Serve within the block, as ``Server.serve`` does, which takes the signals of the tests.

    Its loop looks ten times a second whether it is to end, and then waits for another tenth: 0.2 s of each test.

    Args:
        config: Without a lifespan.
        sockets: To listen at, in place of the configured port; they stay open.
    """
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    await server.startup(sockets=None if sockets is None else list(sockets))
    await server.on_tick(0)  # It gives every answer its date.
    try:
        yield
    finally:
        for listening in server.servers:
            listening.close()
        for connection in list(server.server_state.connections):
            connection.shutdown()
        for _ in range(LOOKS):  # An answer that has no end, or nobody reads, stays open.
            if not server.server_state.connections:
                break
            await asyncio.sleep(LOOK_S)
        for connection in list(server.server_state.connections):
            connection.transport.abort()
        await cancel_all(server.server_state.tasks.copy())
