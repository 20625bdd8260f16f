"""The two clients of an integration that has synchronous and asynchronous methods."""

import asyncio
import hashlib
import json
from collections.abc import Mapping
from functools import cached_property
from weakref import WeakKeyDictionary

from lamina.client import AsyncClient, Client


class Clients:
    """Clients of one service and scope, made when they are needed.

    Args:
        url: Where Lamina listens; ``LAMINA_URL``, then http://127.0.0.1:8000.
        key: API key; ``LAMINA_API_KEY``, or the file that ``LAMINA_API_KEY_FILE`` names.
        scope: Ids sent with every request.
    """

    def __init__(self, url: str | None, key: str | None, scope: Mapping[str, str] | None) -> None:
        self.scope = dict(scope or {})
        self._address = (url, key)
        # Connections belong to the event loop on which they were opened.
        self._of_loops: WeakKeyDictionary[asyncio.AbstractEventLoop, AsyncClient] = WeakKeyDictionary()

    @cached_property
    def plain(self) -> Client:
        """The synchronous client."""
        return Client(*self._address, scope=self.scope)

    def of_loop(self) -> AsyncClient:
        """Return the asynchronous client of the running event loop."""
        loop = asyncio.get_running_loop()
        if loop not in self._of_loops:
            self._of_loops[loop] = AsyncClient(*self._address, scope=self.scope)
        return self._of_loops[loop]

    def close(self) -> None:
        """Close the connections of the synchronous client."""
        if "plain" in vars(self):
            self.plain.close()

    async def aclose(self) -> None:
        """Close the connections of the running event loop."""
        client = self._of_loops.pop(asyncio.get_running_loop(), None)
        if client is not None:
            await client.close()


def digest(*parts: object) -> str:
    """Return the SHA-256 of values as JSON, in hex: a key or tag made of them may be longer than the service takes."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()
