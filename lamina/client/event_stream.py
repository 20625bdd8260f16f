"""Read server-sent events."""

import json
from collections.abc import AsyncIterator
from typing import Any

_DATA = "data: "


async def lines_of(parts: AsyncIterator[str]) -> AsyncIterator[str]:
    """Yield the lines of a text that comes in parts. A line feed alone ends one: ids may hold other ends of lines."""
    rest = ""
    async for part in parts:
        *lines, rest = (rest + part).split("\n")
        for line in lines:
            yield line


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream of `GET /v1/events`; its comments, and the mark of missing events, are none."""
    async for line in lines:
        if line.startswith(_DATA) and "kind" in (event := json.loads(line.removeprefix(_DATA))):
            yield event
