"""The HTTP application, over services that may run anywhere."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import cache
from http import HTTPStatus
from typing import Any

from fastapi import APIRouter, Depends, FastAPI
from fastapi.openapi.utils import get_openapi
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute
from starlette.types import ASGIApp, Receive, Scope, Send

from deployments import pages, problems
from deployments.access import accesses
from deployments.bodies import BodyLimit, HeadAsGet
from deployments.front_door import FrontDoor
from deployments.gateway import GatewayRoute
from deployments.logs import RequestLog
from deployments.mcp import McpRoute
from deployments.oauth import METADATA_PATH, answer_metadata
from deployments.parameters import refuse_ambiguous
from deployments.routes import (
    archives,
    audits,
    bulk,
    caches,
    directories,
    documents,
    events,
    facts,
    feedback,
    files,
    graph,
    health,
    jobs,
    keys,
    memories,
    memory_profiles,
    notes,
    operations,
    procedures,
    profiles,
    providers,
    quotas,
    scopes,
    search,
    sessions,
    shares,
    status,
    trash,
    turns,
    usage,
    users,
    webhooks,
    workspaces,
)
from deployments.routes import (
    responses as response_routes,
)
from deployments.services import Services
from lamina import __version__
from lamina.api.problems import ProblemOut

ROUTERS = (
    turns.router,
    # Before the notes, whose path would take that of one named bulk.
    bulk.router,
    memories.router,
    notes.router,
    search.router,
    profiles.router,
    directories.router,
    profiles.of_tenant,
    sessions.router,
    sessions.messages,
    graph.router,
    facts.router,
    feedback.router,
    procedures.router,
    shares.router,
    memory_profiles.router,
    documents.router,
    # Before the settings, whose path would take that of a file named settings.
    files.router,
    workspaces.router,
    audits.router,
    events.router,
    webhooks.router,
    trash.router,
    operations.router,
    scopes.router,
    jobs.router,
    archives.router,
    users.router,
    keys.router,
    quotas.router,
    usage.router,
    status.router,
    response_routes.router,
    providers.router,
    caches.router,
)
ALL_ROUTERS = (*ROUTERS, health.router)
_TITLE = "Lamina"
_DESCRIPTION = """Tiered memory for swarms of agents. Before an agent calls its model it asks `/v1/context`
what is worth knowing; after the turn it hands the turn to `/v1/turns`."""


def build_api(services: Services) -> FastAPI:
    """Build the application with all routes."""
    app = _with_routes(services)
    pages.install(app)
    app.add_route("/openapi.json", _answer_document, include_in_schema=False)
    for path in (METADATA_PATH, f"{METADATA_PATH}{{resource:path}}"):
        app.add_route(path, answer_metadata, include_in_schema=False)
    # Its calls come to the same routes, of which the key is checked already.
    behind = _within_limits(_with_routes(services))
    app.state.gateway = GatewayRoute(_weighed(behind), services.settings, services.reads.chains)
    doors = [McpRoute(behind, services), app.state.gateway]
    app.router.routes.extend(doors)
    _within_limits(app, *doors)
    app.add_middleware(FrontDoor, services=services)
    app.add_middleware(HeadAsGet)
    app.add_middleware(RequestLog, settings=services.settings.logs)
    return app


def _with_routes(services: Services) -> FastAPI:
    app = _Application(
        title=_TITLE,
        version=__version__,
        description=_DESCRIPTION,
        docs_url=None,
        openapi_url=None,
        redoc_url=None,
        lifespan=_lifespan,
        routes=[*_routes()],
    )
    app.state.services = services
    problems.install(app)
    return app


def _within_limits(app: FastAPI, *others: BaseRoute) -> FastAPI:
    """Hold bodies within the limits of their routes."""
    routes = [*others, *(route for router in ALL_ROUTERS for route in router.routes)]
    app.add_middleware(BodyLimit, routes=routes)
    return app


def _weighed(behind: ASGIApp) -> ASGIApp:
    """Return the API for calls on behalf of a request that was let in: a turn is recorded after its answer was sent."""

    async def call(scope: Scope, receive: Receive, send: Send) -> None:
        await behind({**scope, "state": {**scope["state"], "is_weighed": True}}, receive, send)

    return call


@cache
def _routes() -> Sequence[BaseRoute]:
    """Return the routes, which know no services; their models are read once a process, which takes half a second."""
    every = APIRouter(dependencies=[Depends(refuse_ambiguous)])
    accesses(ALL_ROUTERS)  # The application does not start with a route that every key could call.
    for router in ROUTERS:
        every.include_router(router, responses=_problems(401, 403, 404, 408, 409, 413, 415, 422, 429, 503))
    every.include_router(health.router, responses=_problems(413, 415, 422))
    return every.routes


class _Application(FastAPI):
    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document."""
        return document()


@cache
def document() -> dict[str, Any]:
    """Return the OpenAPI document, in which errors stand under the media type that they have."""
    document = get_openapi(title=_TITLE, version=__version__, description=_DESCRIPTION, routes=_routes())
    for calls in document["paths"].values():
        for call in calls.values():
            _name_media_type_of_problems(call["responses"])
    return document


async def _answer_document(request: Request) -> Response:  # noqa: ARG001 - Starlette's signature
    return Response(_document_json(), media_type="application/json")


@cache
def _document_json() -> bytes:
    """Return the OpenAPI document as JSON; everybody may ask for it, so that it is written once."""
    return json.dumps(document(), ensure_ascii=False, separators=(",", ":")).encode()


def _problems(*codes: int) -> dict[int | str, dict[str, Any]]:
    return {code: {"model": ProblemOut, "description": HTTPStatus(code).phrase} for code in codes}


def _name_media_type_of_problems(responses: dict[str, Any]) -> None:
    for response in responses.values():
        content = response.get("content", {})
        if content.get("application/json", {}).get("schema", {}).get("$ref", "").endswith("/ProblemOut"):
            content[problems.MEDIA_TYPE] = content.pop("application/json")


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    """Flush the services when the process is asked to end."""
    yield
    await app.state.gateway.close()
    await app.state.services.close()
