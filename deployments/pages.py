"""The page of the API's reference: Swagger UI from this service alone, under a policy that lets nothing else in."""

from collections.abc import Awaitable, Callable
from importlib.resources import files
from pathlib import Path

from fastapi import FastAPI
from starlette.requests import Request
from starlette.responses import FileResponse, HTMLResponse, Response

# Swagger UI draws its arrows from data: URLs and sets styles on its elements.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {"Content-Security-Policy": POLICY, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer"}
_ASSETS = Path(str(files("fastapi_offline"))) / "static"
_NAMES = ("swagger-ui-bundle.js", "swagger-ui.css", "favicon.png")
# Relative, so that it works below any path of a proxy.
_PAGE = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>{title}</title>
<link rel="icon" href="docs/favicon.png">
<link rel="stylesheet" href="docs/swagger-ui.css">
</head>
<body>
<div id="swagger-ui"></div>
<script src="docs/swagger-ui-bundle.js"></script>
<script src="docs/start.js"></script>
</body>
</html>
"""
# Without its validator, Swagger UI asks nobody about the document.
_START = """SwaggerUIBundle({
  url: "openapi.json", dom_id: "#swagger-ui", layout: "BaseLayout", deepLinking: true, validatorUrl: null
});
"""


def install(app: FastAPI) -> None:
    """Add the page and its files to the application."""

    async def page(request: Request) -> HTMLResponse:  # noqa: ARG001 - Starlette's signature
        return HTMLResponse(_PAGE.format(title=app.title), headers=HEADERS)

    async def start(request: Request) -> Response:  # noqa: ARG001
        return Response(_START, headers=HEADERS, media_type="text/javascript")

    app.add_route("/docs", page, include_in_schema=False)
    app.add_route("/docs/start.js", start, include_in_schema=False)
    for name in _NAMES:
        app.add_route(f"/docs/{name}", _asset(name), include_in_schema=False)


def _asset(name: str) -> Callable[[Request], Awaitable[FileResponse]]:
    async def asset(request: Request) -> FileResponse:  # noqa: ARG001
        return FileResponse(_ASSETS / name, headers=HEADERS)

    return asset
