"""The time that the gateway adds to a call of a model, beside the bare call and beside a context alone.

The model is an endpoint of the benchmark's own, which answers at once, whole or in parts. Each question is asked once,
in one of the ways by turns, so that no cache knows it and all ways see the same load.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Annotated, Any
from uuid import uuid4

import httpx
import typer
import uvicorn
from rich.table import Table
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from benchmarks import locomo
from benchmarks.locomo import Locomo
from benchmarks.options import DATA_SETS
from benchmarks.report import publish, stage, table
from benchmarks.service import Endpoint, service
from benchmarks.timing import Latencies, timed, until_indexed
from deployments.environment import free_ports
from lamina.client import AsyncClient

WARM_UP = 10
PARTS = 20
TARGET_MS = 5.0
"""Most milliseconds that the gateway may add to its own search."""

Json = dict[str, Any]
Ask = Callable[[str], Awaitable[float]]


def measure(
    folder: Annotated[
        Path, typer.Option("--locomo", help="Folder of the data set.", envvar="LAMINA_LOCOMO")
    ] = DATA_SETS / "locomo",
    questions: Annotated[int, typer.Option(min=10, help="How many questions are asked in each way.")] = 60,
) -> None:
    """Measure the time that the gateway adds to a call of a model."""
    data = locomo.load(locomo.Options(folder, "", 1))  # A wrong folder shows before anything is started.
    (port,) = free_ports(1)
    upstream = f"http://127.0.0.1:{port}/v1"
    with service(None, None, LAMINA_GATEWAY__BASE_URL=upstream) as endpoint:
        found = asyncio.run(_run(endpoint, port, upstream, data, questions))
    figures = _figures(found)
    publish([_table(figures)], {"gateway": figures})


async def _run(endpoint: Endpoint, port: int, upstream: str, data: Locomo, questions: int) -> Mapping[str, Latencies]:
    scope = {"workspace": f"gateway-{uuid4().hex[:8]}"}
    headers = {"Authorization": f"Bearer {endpoint.key}", "Lamina-Workspace": scope["workspace"]}
    async with (
        _model(port),
        AsyncClient(*endpoint, scope=scope) as lamina,
        httpx.AsyncClient(timeout=60, headers=headers) as http,
    ):
        for session in data.sessions:
            for start in range(0, len(session.messages), locomo.MESSAGES_PER_REQUEST):
                part = session.messages[start : start + locomo.MESSAGES_PER_REQUEST]
                await lamina.record(part, session=session.name)
        stage(f"indexed {await until_indexed(lamina):.1f} s later")
        through = f"{endpoint.url}/openai/v1"
        unrecorded = {"Lamina-Record": "off"}
        ways: Mapping[str, Ask] = {
            "context": lambda text: _context(lamina, text),
            "direct": lambda text: _whole(http, upstream, text, {}),
            "gateway": lambda text: _whole(http, through, text, unrecorded),
            "recorded": lambda text: _whole(http, through, text, {}),
            "direct_first_token": lambda text: _first_token(http, upstream, text, {}),
            "gateway_first_token": lambda text: _first_token(http, through, text, unrecorded),
        }
        taken: dict[str, list[float]] = {name: [] for name in ways}
        texts = iter(_questions(data, (questions + WARM_UP) * len(ways)))
        for _ in range(questions + WARM_UP):
            for name, ask in ways.items():
                taken[name].append(await ask(next(texts)))
    return {name: Latencies.of(all_ms[WARM_UP:]) for name, all_ms in taken.items()}


def _questions(data: Locomo, count: int) -> list[str]:
    """Return different questions, those of the data set in other words at the end where it has too few."""
    texts = [question.text for question in data.questions]
    rounds = -(-count // len(texts))
    return [f"{text} ({turn})" if turn else text for turn in range(rounds) for text in texts][:count]


async def _context(lamina: AsyncClient, text: str) -> float:
    return (await timed(lamina.context(text, budget_tokens=2000))).elapsed_ms


async def _whole(http: httpx.AsyncClient, url: str, text: str, headers: Mapping[str, str]) -> float:
    asked = await timed(http.post(f"{url}/chat/completions", json=_request(text), headers=headers))
    asked.value.raise_for_status()
    return asked.elapsed_ms


async def _first_token(http: httpx.AsyncClient, url: str, text: str, headers: Mapping[str, str]) -> float:
    async def first() -> None:
        body = _request(text) | {"stream": True}
        async with http.stream("POST", f"{url}/chat/completions", json=body, headers=headers) as answer:
            await anext(answer.aiter_bytes())

    return (await timed(first())).elapsed_ms


def _request(text: str) -> Json:
    return {
        "model": "small",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": text}],
    }


@asynccontextmanager
async def _model(port: int) -> AsyncIterator[None]:
    """Serve a model that says the same to everybody."""
    app = Starlette(routes=[Route("/v1/chat/completions", _say, methods=["POST"])])
    server = uvicorn.Server(uvicorn.Config(app, port=port, lifespan="off", access_log=False, log_level="critical"))
    serving = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110 - it tells nobody
        await asyncio.sleep(0.02)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await serving


async def _say(request: Request) -> Response:
    body = await request.json()
    if not body.get("stream"):
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "In May."}}
        return JSONResponse({"id": "c", "object": "chat.completion", "model": "small", "choices": [choice]})

    async def parts() -> AsyncIterator[bytes]:
        for number in range(PARTS):
            choice = {"index": 0, "delta": {"content": "May "}, "finish_reason": None if number < PARTS - 1 else "stop"}
            yield b"data: " + json.dumps({"id": "c", "choices": [choice]}).encode() + b"\n\n"
        yield b"data: [DONE]\n\n"

    return StreamingResponse(parts(), media_type="text/event-stream")


def _figures(found: Mapping[str, Latencies]) -> Json:
    def added(to: str, by: str) -> Json:
        return {name: getattr(found[by], f"{name}_ms") - getattr(found[to], f"{name}_ms") for name in ("p50", "p95")}

    search = {"p50": found["context"].p50_ms, "p95": found["context"].p95_ms}
    whole = added("direct", "gateway")
    return {
        "search_ms": search,
        "direct_ms": {"p50": found["direct"].p50_ms},
        "added_ms": whole,
        "added_first_token_ms": added("direct_first_token", "gateway_first_token"),
        "added_recorded_ms": added("direct", "recorded"),
        "beyond_search_p50_ms": whole["p50"] - search["p50"],
        "target_ms": TARGET_MS,
    }


def _table(figures: Json) -> Table:
    shown = table("What the gateway adds to a call of a model, in ms", "", "p50", "p95")
    labels = {
        "search_ms": "a context alone",
        "added_ms": "added to an answer",
        "added_first_token_ms": "added to the first token of a stream",
        "added_recorded_ms": "added while turns are recorded",
    }
    for name, label in labels.items():
        shown.add_row(label, f"{figures[name]['p50']:.1f}", f"{figures[name]['p95']:.1f}")
    shown.add_row(f"added beyond a context; limit {TARGET_MS:.0f}", f"{figures['beyond_search_p50_ms']:.1f}", "")
    return shown
