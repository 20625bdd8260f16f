import subprocess
from collections.abc import Awaitable, Callable
from pathlib import Path

import httpx
import pytest
from ray.serve._private.haproxy_templates import HAPROXY_CONFIG_TEMPLATE
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.types import Receive, Scope, Send

from deployments.restarts import GATEWAY_HEADER, AnswerRestarts, write_haproxy
from lamina.settings.serving import FrontDoorSettings

App = Callable[[Scope, Receive, Send], Awaitable[None]]
NO_ROUTES = PlainTextResponse("Path '/v1/notes' not found. Ping http://.../-/routes for available routes.", 404)
PROBLEM = JSONResponse({"detail": "no such note"}, 404, media_type="application/problem+json")


async def answers_nothing(scope: Scope, receive: Receive, send: Send) -> None:
    """End without an answer, as Serve's proxy does whose replica died."""


async def fails(scope: Scope, receive: Receive, send: Send) -> None:
    raise RuntimeError("the replica died")


async def ask(app: App | Response, path: str = "/v1/notes") -> httpx.Response:
    transport = httpx.ASGITransport(AnswerRestarts(app))
    async with httpx.AsyncClient(transport=transport, base_url="http://lamina") as client:
        return await client.get(path)


@pytest.mark.parametrize(
    "app",
    [
        NO_ROUTES,
        PlainTextResponse("Internal Server Error", 500),
        PlainTextResponse("no replica", 503),
        Response(status_code=502),
        answers_nothing,
        fails,
    ],
    ids=["no routes", "500", "503", "502", "no answer", "error"],
)
async def test_a_failure_of_serve_is_answered_by_503_with_retry_after(app: App | Response) -> None:
    answer = await ask(app)

    assert (answer.status_code, answer.headers["Retry-After"]) == (503, "1")
    assert answer.headers["Content-Type"] == "application/problem+json"
    assert answer.json()["type"] == "urn:lamina:service-unavailable"


@pytest.mark.parametrize(
    "app",
    [
        PROBLEM,
        JSONResponse({"ready": False}, 503),
        PlainTextResponse("up 1"),
        Response(status_code=204),
        # Of an endpoint behind the gateway.
        PlainTextResponse("404 page not found", 404, headers={GATEWAY_HEADER: "added"}),
        Response(status_code=502, headers={GATEWAY_HEADER: "off"}),
    ],
)
async def test_an_answer_of_the_application_stays_as_it_is(app: Response) -> None:
    answer = await ask(app)

    assert (answer.status_code, answer.content) == (app.status_code, app.body)


@pytest.mark.parametrize("path", ["/-/healthz", "/-/routes"])
async def test_serves_own_paths_stay_as_they_are(path: str) -> None:
    assert (await ask(PlainTextResponse("no routes", 503), path)).text == "no routes"


def test_haproxy_is_started_with_503_in_place_of_404_and_500(tmp_path: Path) -> None:
    (line,) = [text for text in HAPROXY_CONFIG_TEMPLATE.splitlines() if "http-request return status 404" in text]
    config = tmp_path / "node" / "haproxy.cfg"
    config.parent.mkdir()
    errors = config.with_name("500.http")
    errors.write_text("HTTP/1.1 500 Internal Server Error\r\n\r\n")
    config.write_text(
        "defaults\n    mode http\n    timeout connect 1s\n    timeout client 1s\n    timeout server 1s\n"
        f"    errorfile 502 {errors}\n"
        f"frontend f\n    bind {tmp_path}/f.sock\n    default_backend d\nbackend d\n{line}\n"
    )

    program = write_haproxy(tmp_path, FrontDoorSettings())
    checked = subprocess.run([program, "-db", "-f", config, "-c"], capture_output=True, check=False)

    assert checked.returncode == 0, checked.stderr
    assert "return status 503 content-type application/problem+json" in config.read_text()
    assert "status 404" not in config.read_text()
    assert errors.read_bytes().startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
