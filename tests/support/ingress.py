"""An application behind uvicorn and HAProxy, both as Serve starts them, without Ray."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import uvicorn
from ray.serve._private.common import RequestProtocol
from ray.serve._private.haproxy import BackendConfig, HAProxyApi, HAProxyConfig, ServerConfig
from ray.serve.config import HTTPOptions
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments.environment import free_ports
from deployments.patient_server import PatientProtocol, install
from deployments.restarts import proxy_middlewares, write_haproxy
from lamina.settings.serving import FrontDoorSettings

START_TIMEOUT_S = 60.0


@asynccontextmanager
async def uvicorn_of(
    app: ASGIApp, limits: FrontDoorSettings, *, is_behind_haproxy: bool = True, **options: Any
) -> AsyncIterator[int]:
    """Serve an application as Serve does; gives the port."""
    before = PatientProtocol.limits
    app = _answering_serve(app)
    for middleware in reversed(proxy_middlewares()):
        app = middleware.cls(app, *middleware.args, **middleware.kwargs)
    install(limits, counts_connections=not is_behind_haproxy)
    (port,) = free_ports(1)
    config = uvicorn.Config(
        lambda: app, factory=True, port=port, lifespan="off", access_log=False, log_level="critical", **options
    )
    server = uvicorn.Server(config)
    task = asyncio.create_task(server._serve())  # `serve` would take the signals of the tests.
    async with asyncio.timeout(START_TIMEOUT_S):
        while not server.started:  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(0.02)
    try:
        yield port
    finally:
        server.should_exit = server.force_exit = True
        await task
        PatientProtocol.limits, PatientProtocol.open_connections = before, None


@asynccontextmanager
async def haproxy_before(port: int, limits: FrontDoorSettings, folder: Path, **options: Any) -> AsyncIterator[int]:
    """Run HAProxy with the configuration that Serve writes, before a server; gives its port."""
    own, metrics, stats = free_ports(3)
    config = HAProxyConfig(
        socket_path=str(folder / "admin.sock"),
        server_state_base=str(folder),
        server_state_file=str(folder / "server-state"),
        metrics_socket_path=str(folder / "metrics.sock"),
        http_options=HTTPOptions(host="127.0.0.1", port=own),
        maxconn=limits.connections,
        nbthread=1,
        metrics_port=metrics,
        stats_port=stats,
        has_received_routes=True,
        has_received_servers=True,
        **options,
    )
    (folder / "server-state").touch()
    servers = [ServerConfig("replica", "127.0.0.1", port)]
    backend = BackendConfig("http", "/", app_name="lamina", servers=servers, protocol=RequestProtocol.HTTP)
    api = HAProxyApi(config, {"http": backend}, str(folder / "haproxy.cfg"))
    api._generate_config_file_internal()
    program = write_haproxy(folder, limits)
    process = await asyncio.create_subprocess_exec(program, "-db", "-f", str(folder / "haproxy.cfg"), "-dR")
    try:
        await _wait_for(own)
        yield own
    finally:
        process.terminate()
        await process.wait()


def _answering_serve(app: ASGIApp) -> ASGIApp:
    """Answer the paths that Serve answers for the application."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        await (PlainTextResponse("success") if scope["path"].startswith("/-/") else app)(scope, receive, send)

    return answer


async def _wait_for(port: int) -> None:
    async with httpx.AsyncClient() as client:
        async with asyncio.timeout(START_TIMEOUT_S):
            while not await _is_healthy(client, port):  # noqa: ASYNC110 - it is another process
                await asyncio.sleep(0.05)


async def _is_healthy(client: httpx.AsyncClient, port: int) -> bool:
    with contextlib.suppress(httpx.TransportError):
        return (await client.get(f"http://127.0.0.1:{port}/-/healthz")).status_code == httpx.codes.OK
    return False
