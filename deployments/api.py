"""The HTTP application, over services that may run anywhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import Depends, FastAPI
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from deployments import problems
from deployments.parameters import refuse_unknown
from deployments.routes import (
    archives,
    audits,
    caches,
    documents,
    graph,
    health,
    jobs,
    memory_profiles,
    notes,
    procedures,
    profiles,
    providers,
    search,
    sessions,
    shares,
    turns,
    users,
)
from deployments.routes import (
    responses as response_routes,
)
from deployments.services import Services
from lamina import __version__
from lamina.api.problems import ProblemOut

MAX_BODY_BYTES = 32 * 1024 * 1024
_DESCRIPTION = """Tiered memory for swarms of agents. Before an agent calls its model it asks `/v1/context`
what is worth knowing; after the turn it hands the turn to `/v1/turns`."""


def build_api(services: Services) -> FastAPI:
    """Build the application with all routes."""
    responses: dict[int | str, dict[str, object]] = {
        code: {"model": ProblemOut, "description": HTTPStatus(code).phrase} for code in (401, 403, 422, 503)
    }
    app = FastAPI(
        title="Lamina",
        version=__version__,
        description=_DESCRIPTION,
        redoc_url=None,
        lifespan=_lifespan,
        dependencies=[Depends(refuse_unknown)],
    )
    app.state.services = services
    problems.install(app)
    for router in (
        turns.router,
        notes.router,
        search.router,
        profiles.router,
        sessions.router,
        graph.router,
        procedures.router,
        shares.router,
        memory_profiles.router,
        documents.router,
        audits.router,
        jobs.router,
        archives.router,
        users.router,
        response_routes.router,
        providers.router,
        caches.router,
    ):
        app.include_router(router, responses=responses)
    app.include_router(health.router)
    app.add_middleware(BodyLimit, max_bytes=MAX_BODY_BYTES)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Flush the services when the process is asked to end."""
    yield
    await app.state.services.close()


class BodyLimit:
    """Refuses a request whose body is larger than the limit, before it is read whole."""

    def __init__(self, app: ASGIApp, max_bytes: int) -> None:
        self._app = app
        self._max_bytes = max_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the request on, or answer 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        declared = dict(scope["headers"]).get(b"content-length", b"0")
        if declared.isdigit() and int(declared) > self._max_bytes:
            detail = f"the body is larger than {self._max_bytes} bytes; send it in parts"
            await problems.problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, detail)(scope, receive, send)
            return
        await self._app(scope, self._counted(receive), send)

    def _counted(self, receive: Receive) -> Receive:
        seen = 0

        async def counted() -> Message:
            nonlocal seen
            message = await receive()
            seen += len(message.get("body", b""))
            # A body without a declared length that grows too long: to the application its client is gone.
            return message if seen <= self._max_bytes else {"type": "http.disconnect"}

        return counted
