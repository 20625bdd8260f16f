"""A service for the tests of doors, which run in another environment: `python -m tests.support.door_service`.

Its first line is its address and a key as JSON; it ends with its standard input.
"""

import asyncio
import contextlib
import json
import sys

import uvicorn

from deployments.environment import free_ports
from lamina.embedded import EmbeddedFalkorDB
from lamina.models.hashing import HashingModel
from lamina.settings.stores import EmbeddedFalkorDBSettings, EmbeddedPostgresSettings, FalkorDBServerSettings
from tests.support.application import running, settings_for
from tests.support.databases import make_template, new_database
from tests.support.scratch import new_folder, use_memory_disk
from tests.support.servers import UnsyncedPostgres


async def serve() -> None:
    """Serve an application over real stores, without Ray, until standard input ends."""
    with new_folder() as folder, contextlib.ExitStack() as stack:
        postgres = UnsyncedPostgres(folder / "postgres", EmbeddedPostgresSettings(max_connections=50))
        falkordb = EmbeddedFalkorDB(folder / "graph", EmbeddedFalkorDBSettings())
        for server in (postgres, falkordb):
            server.start()
            stack.callback(server.stop)
        make_template(postgres)
        url = stack.enter_context(new_database(postgres))
        settings = settings_for(url, folder / "data", graph=FalkorDBServerSettings(url=falkordb.url))
        async with running(settings, url, HashingModel()) as application:
            (port,) = free_ports(1)
            server = uvicorn.Server(
                uvicorn.Config(application.api, port=port, lifespan="off", access_log=False, log_level="error")
            )
            serving = asyncio.create_task(server._serve())  # `serve` would take the signals.
            while not server.started:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.02)
            print(json.dumps({"url": f"http://127.0.0.1:{port}", "key": application.key}), flush=True)  # noqa: T201
            await asyncio.to_thread(sys.stdin.read)
            server.should_exit = server.force_exit = True
            await serving


if __name__ == "__main__":
    use_memory_disk()
    asyncio.run(serve())
