"""Read server-sent events."""

import json
from collections.abc import AsyncIterator
from typing import Any

_DATA = "data: "


async def events_in(lines: AsyncIterator[str]) -> AsyncIterator[dict[str, Any]]:
    """Yield the events of a stream of `GET /v1/events`; its comments, and the mark of missing events, are none."""
    async for line in lines:
        if line.startswith(_DATA) and "kind" in (event := json.loads(line.removeprefix(_DATA))):
            yield event
