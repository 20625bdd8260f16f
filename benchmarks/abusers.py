"""`python -m benchmarks.abusers WAY URL KEY`: misuse a service in one way, without pause, until it is ended.

In a process of its own, so that its work does not count as the service's.
"""

import asyncio
import itertools
import json
import os
import random
import socket
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import suppress
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import httpx

from benchmarks.hostile_inputs import MIB, SENTENCE

NICENESS = 10
TIMEOUT_S = 30.0
CLIENTS = 32
HALF_SENT = 1_000
SENT_A_SECOND = 200
_RANDOM = random.Random(15)  # noqa: S311 - the same inputs each time

Body = Mapping[str, Any]


class Target(NamedTuple):
    """The service, and the key with which it is misused."""

    url: str
    key: str

    @property
    def address(self) -> tuple[str, int]:
        """The host and port."""
        parts = urlsplit(self.url)
        return parts.hostname or "127.0.0.1", parts.port or 80


Way = Callable[[Target], Coroutine[Any, Any, None]]


def main() -> None:
    """Misuse it until this process is ended."""
    os.nice(NICENESS)
    way, url, key = sys.argv[1:]
    asyncio.run(WAYS[way](Target(url, key)))


def _calling(path: str, bodies: Callable[[], Iterator[Body]], *, clients: int = CLIENTS, method: str = "POST") -> Way:
    """Return the way of calling one route from many clients at once."""

    async def misuse(target: Target) -> None:
        every = bodies()
        headers = {"Authorization": f"Bearer {target.key}", "Content-Type": "application/json"}
        limits = httpx.Limits(max_connections=clients)
        async with httpx.AsyncClient(base_url=target.url, headers=headers, timeout=TIMEOUT_S, limits=limits) as client:

            async def call() -> None:
                for body in every:
                    with suppress(httpx.HTTPError):
                        answer = await client.request(method, path, content=json.dumps(body))
                        await asyncio.sleep(0.05 if answer.status_code in (429, 503) else 0)

            await asyncio.gather(*(call() for _ in range(clients)))

    return misuse


def _same(body: Body) -> Callable[[], Iterator[Body]]:
    return lambda: itertools.repeat(body)


def _numbered(make: Callable[[int], Body]) -> Callable[[], Iterator[Body]]:
    return lambda: (make(number) for number in itertools.count())


def _text(chars: int) -> str:
    words = SENTENCE.split()
    return " ".join(_RANDOM.choices(words, k=chars // 4))[:chars]


async def _half_sent(target: Target, opening: bytes) -> None:
    """Hold many connections with unfinished requests, and replace those that the service closes."""
    held: list[socket.socket] = []
    while True:
        for _ in range(SENT_A_SECOND // 10):
            with suppress(OSError):
                one = socket.create_connection(target.address, timeout=1)
                one.settimeout(0)
                one.send(opening)
                held.append(one)
        while len(held) > HALF_SENT:
            held.pop(0).close()
        await asyncio.sleep(0.1)


async def _half_sent_headers(target: Target) -> None:
    await _half_sent(target, b"POST /v1/notes HTTP/1.1\r\nHost: lamina\r\nX-More: ")


async def _half_sent_bodies(target: Target) -> None:
    head = f"POST /v1/notes HTTP/1.1\r\nHost: lamina\r\nAuthorization: Bearer {target.key}\r\n"
    await _half_sent(target, f'{head}Content-Type: application/json\r\nContent-Length: 1000\r\n\r\n{{"con'.encode())


async def _slow_readers(target: Target) -> None:
    """Request a long answer many times, and read none."""
    head = f"GET /openapi.json HTTP/1.1\r\nHost: lamina\r\nAuthorization: Bearer {target.key}\r\n\r\n"
    await _half_sent(target, head.encode() * 20)


async def _wrong_keys(target: Target) -> None:
    """Try keys."""
    async with httpx.AsyncClient(base_url=target.url, timeout=TIMEOUT_S) as client:

        async def guess() -> None:
            while True:
                with suppress(httpx.HTTPError):
                    guessed = f"lamina_{_RANDOM.randbytes(24).hex()}"
                    await client.get("/v1/notes", headers={"Authorization": f"Bearer {guessed}"})

        await asyncio.gather(*(guess() for _ in range(CLIENTS)))


async def _one_note_changed(target: Target) -> None:
    """Make a note, and write version after version of it."""
    headers = {"Authorization": f"Bearer {target.key}"}
    async with httpx.AsyncClient(base_url=target.url, headers=headers, timeout=TIMEOUT_S) as client:
        made = await client.post("/v1/notes", json={"content": f"The note of process {os.getpid()}."})
    versions = _numbered(lambda n: {"content": f"Version {n}. {SENTENCE * 20}"})
    await _calling(f"/v1/notes/{made.json()['id']}", versions, method="PATCH")(target)


def _document(content: str, media_type: str) -> Callable[[], Iterator[Body]]:
    return _numbered(lambda number: {"key": f"d{number}", "content": f"{number} {content}", "media_type": media_type})


def _nested(levels: int) -> Body:
    found: Any = 1
    for _ in range(levels):
        found = [found]
    return {"content": "x", "metadata": {"a": found}}


def _batch(number: int) -> Body:
    return {"notes": [f"Note {number}-{place}: {SENTENCE}" for place in range(100)]}


def _turn(number: int) -> Body:
    said = [{"role": "user", "content": f"{number} {_text(8_000)}"}, {"role": "assistant", "content": _text(8_000)}]
    return {"session": f"s{number % 100}", "messages": said}


WAYS: dict[str, Way] = {
    "searches without pause": _calling("/v1/search", _numbered(lambda n: {"query": f"where is the barometer {n}?"})),
    "the widest searches": _calling(
        "/v1/search", _numbered(lambda n: {"query": f"ship {n} {_text(500)}", "limit": 100, "explain": True})
    ),
    "questions of the greatest length": _calling("/v1/search", _numbered(lambda n: {"query": f"{n} {_text(90_000)}"})),
    "the largest contexts": _calling(
        "/v1/context", _numbered(lambda n: {"query": f"ship {n}?", "budget_tokens": 100_000})
    ),
    "notes without pause": _calling("/v1/notes", _numbered(lambda n: {"content": f"Note {n}: {SENTENCE}"})),
    "notes of the greatest length": _calling("/v1/notes", _numbered(lambda n: {"content": f"{n} {_text(90_000)}"})),
    "batches of notes": _calling("/v1/notes/batch", _numbered(_batch)),
    "long turns": _calling("/v1/turns", _numbered(_turn)),
    "one note written over and over": _one_note_changed,
    "a namespace for each note": _calling(
        "/v1/notes", _numbered(lambda n: {"content": f"Note {n}", "namespace": f"n{n}"})
    ),
    "metadata of the greatest size": _calling(
        "/v1/notes", _numbered(lambda n: {"content": f"Note {n}", "metadata": {"a": "x" * 64_000}})
    ),
    "documents of a megabyte": _calling("/v1/documents", _document(_text(MIB), "text/plain"), clients=8),
    "HTML of many levels": _calling("/v1/documents", _document("<b><i>" * 50_000, "text/html"), clients=8),
    "a million wrong items": _calling("/v1/notes/batch", _same({"notes": [1] * 1_000_000}), clients=4),
    "bodies that are too large": _calling("/v1/notes", _same({"content": "x" * 30 * MIB}), clients=4),
    "JSON of many levels": _calling("/v1/notes", _same(_nested(900))),
    "stacked combining marks": _calling(
        "/v1/notes", _numbered(lambda n: {"content": f"{n} e" + "\u0301\u0323" * 40_000}), clients=8
    ),
    "half-sent headers": _half_sent_headers,
    "half-sent bodies": _half_sent_bodies,
    "answers that nobody reads": _slow_readers,
    "keys that are guessed": _wrong_keys,
}

if __name__ == "__main__":
    main()
