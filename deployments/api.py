"""The HTTP application, over services that may run anywhere."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from http import HTTPStatus

from fastapi import Depends, FastAPI

from deployments import problems
from deployments.bodies import BodyLimit, HeadAsGet
from deployments.parameters import refuse_ambiguous
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
        dependencies=[Depends(refuse_ambiguous)],
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
    app.add_middleware(HeadAsGet)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Flush the services when the process is asked to end."""
    yield
    await app.state.services.close()
