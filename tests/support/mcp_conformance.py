"""Run the protocol's own conformance tests against a service: `python -m tests.support.mcp_conformance REVISION…`.

They are an npm package that asks for Node 22 or later and sends no key: one is added before the front door.
"""

import asyncio
import sys
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamina.core.principals import KeyRole
from lamina.models.hashing import HashingModel
from lamina.settings.stores import EmbeddedPostgresSettings
from lamina.stores.postgres.keys import create_key
from tests.support.application import running, settings_for
from tests.support.databases import make_template, new_database
from tests.support.ingress import uvicorn_of
from tests.support.scratch import new_folder
from tests.support.servers import UnsyncedPostgres

PACKAGE = "@modelcontextprotocol/conformance@0.2.0-alpha.12"
REVISIONS = ("2026-07-28", "2025-11-25")
EXPECTED = Path(__file__).with_name("mcp_expected_failures")


def with_key(app: ASGIApp, key: str) -> ASGIApp:
    """Return an application that gives every request without a key this one."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and "authorization" not in Headers(scope=scope):
            scope = {**scope, "headers": [*scope["headers"], (b"authorization", f"Bearer {key}".encode())]}
        await app(scope, receive, send)

    return answer


async def run(revisions: tuple[str, ...], command: tuple[str, ...]) -> int:
    """Serve an empty application and return the number of revisions that fail otherwise than expected."""
    with new_folder() as folder:
        server = UnsyncedPostgres(folder / "postgres", EmbeddedPostgresSettings(max_connections=50))
        server.start()
        make_template(server)
        try:
            with new_database(server) as url:
                settings = settings_for(url, folder)
                async with running(settings, url, HashingModel()) as app:
                    key = create_key(url, tenant="acme", role=KeyRole.ADMIN, name="conformance")
                    async with uvicorn_of(with_key(app.api, key), settings.serve.front_door) as port:
                        return sum([await _failed(port, revision, command) for revision in revisions])
        finally:
            server.stop()


async def _failed(port: int, revision: str, command: tuple[str, ...]) -> int:
    arguments = ("server", "--url", f"http://localhost:{port}/mcp", "--requirements", revision)
    expected = ("--expected-failures", str(EXPECTED / f"{revision}.yaml"))
    process = await asyncio.create_subprocess_exec(*command, *arguments, *expected)
    return int(await process.wait() != 0)


if __name__ == "__main__":
    chosen = tuple(argument for argument in sys.argv[1:] if argument in REVISIONS) or REVISIONS
    given = tuple(argument for argument in sys.argv[1:] if argument not in REVISIONS)
    sys.exit(asyncio.run(run(chosen, given or ("npx", "-y", PACKAGE))))
