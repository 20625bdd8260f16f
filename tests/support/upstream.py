"""An OpenAI-compatible endpoint that answers as a test says, and keeps what it was asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from deployments.environment import free_ports
from tests.support.uvicorn_server import serving

USAGE = {"prompt_tokens": 50, "completion_tokens": 7, "prompt_tokens_details": {"cached_tokens": 32}}


@dataclass
class Upstream:
    """The endpoint.

    Args:
        url: Its base URL.
        script: Makes the answer to each request, the next one for each; the last one for all that follow.
        asked: The path, headers and body of each request.
        left: How many of its streams were closed by the other side.
    """

    url: str = ""
    script: list[Callable[[], Response]] = field(default_factory=list)
    asked: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)
    left: int = 0

    @property
    def bodies(self) -> list[Any]:
        """The bodies, read."""
        return [json.loads(body) for _, _, body in self.asked if body]

    async def answer(self, request: Request) -> Response:
        """Answer the next of the script."""
        self.asked.append((request.url.path, dict(request.headers), await request.body()))
        make = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        return make()

    def says(self, text: str, **fields: Any) -> None:
        """Answer the next chat completion with a text."""
        self.script.append(lambda: JSONResponse(completion(text, **fields)))

    def streams(self, *parts: bytes, is_endless: bool = False, breaks: bool = False) -> None:
        """Answer the next request with events."""

        async def sent() -> AsyncIterator[bytes]:
            try:
                for part in parts:
                    yield part
                    await asyncio.sleep(0.01)
                while is_endless:
                    yield b": still here\n\n"
                    await asyncio.sleep(0.05)
            except BaseException:
                self.left += 1
                raise
            if breaks:
                raise ConnectionAbortedError

        self.script.append(lambda: StreamingResponse(sent(), media_type="text/event-stream"))


def completion(text: str | None, **fields: Any) -> dict[str, Any]:
    """Return a chat completion."""
    message = {"role": "assistant", "content": text, **fields}
    choices = [{"index": 0, "message": message, "finish_reason": "stop"}]
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "small",
        "choices": choices,
        "usage": USAGE,
    }


def chunks(*texts: str) -> Sequence[bytes]:
    """Return the events of a chat completion that is streamed."""

    def event(delta: dict[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        chunk = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "small", "choices": [choice]}
        return b"data: " + json.dumps(chunk).encode() + b"\n\n"

    return [*(event({"content": text}) for text in texts), event({}, "stop"), b"data: [DONE]\n\n"]


@asynccontextmanager
async def upstream() -> AsyncIterator[Upstream]:
    """Serve an endpoint."""
    async with upstreams() as (_, renew):
        yield renew()


@asynccontextmanager
async def upstreams() -> AsyncIterator[tuple[str, Callable[[], Upstream]]]:
    """Serve fake model endpoints at one address; yield the address and a function that starts a fresh one.

    A request that has come is answered by the one of before, whose streams may still end.
    """
    (port,) = free_ports(1)
    url = f"http://127.0.0.1:{port}/v1"
    served = Upstream(url)

    def renew() -> Upstream:
        nonlocal served
        served = Upstream(url)
        return served

    async def answer(request: Request) -> Response:
        return await served.answer(request)

    app = Starlette(routes=[Route("/{path:path}", answer, methods=["GET", "POST"])])
    async with serving(uvicorn.Config(app, port=port, lifespan="off", access_log=False, log_level="critical")):
        yield url, renew
