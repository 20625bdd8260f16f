"""Read the bodies of requests as JSON that says everything once."""

import asyncio
import re
from collections.abc import Callable, Coroutine
from email.message import Message
from typing import Any

from fastapi import Request, Response
from fastapi.params import Form
from fastapi.routing import APIRoute

from lamina.core.json_values import read_json
from lamina.errors import InvalidInput
from lamina.text.hygiene import shorten

LONG_BODY_BYTES = 50_000
_CHARSETS = ("utf", "us-ascii")
_OTHER_JSON = re.compile(r"application/[^/]+\+json")


class JsonRequest(Request):
    """A request whose body is JSON that says everything once.

    Attributes:
        takes_json: Whether its route takes a JSON body.
    """

    takes_json = False

    async def body(self) -> bytes:
        """Return the body as bytes.

        Raises:
            InvalidInput: If there is one, of another type than JSON, where the route takes JSON.
        """
        body = await super().body()
        if body and self.takes_json:
            self._refuse_type()
        return body

    @property
    def parsed(self) -> Any:
        """The body as it was read; ``None`` if there was none to read."""
        return getattr(self, "_json", None)

    async def json(self) -> Any:
        """Return the body.

        Raises:
            InvalidInput: If it is no such JSON.
        """
        if not hasattr(self, "_json"):
            self._refuse_charset()
            body = await self.body()
            # In a thread: a body of the largest size takes seconds, and no other request waits for it.
            is_long = len(body) > LONG_BODY_BYTES
            self._json = await asyncio.to_thread(read_json, body, "body") if is_long else read_json(body, "body")
        return self._json

    def _refuse_type(self) -> None:
        sent = self.headers.get("Content-Type", "")
        kind = sent.partition(";")[0].strip().lower()
        if kind == "application/json" or _OTHER_JSON.fullmatch(kind):
            return
        reason = f"is {shorten(kind)!r}" if kind else "is missing"
        raise InvalidInput("Content-Type", f"{reason}; send the body as JSON, with Content-Type: application/json")

    def _refuse_charset(self) -> None:
        sent = self.headers.get("Content-Type", "")
        if "charset" not in sent.lower():  # As nearly always; to parse it takes longer than to read the body.
            return
        message = Message()
        message["Content-Type"] = sent
        charset = message.get_content_charset("utf-8")
        if not charset.startswith(_CHARSETS):
            raise InvalidInput("Content-Type", f"names the charset {charset}; send JSON in UTF-8")


class JsonRoute(APIRoute):
    """A route that refuses a body that is no JSON, has a key twice in one object or NaN, or is in another charset."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return the handler over requests whose JSON is read so."""
        handle = super().get_route_handler()
        takes_json = self.body_field is not None and not isinstance(self.body_field.field_info, Form)

        async def handle_json(request: Request) -> Response:
            sent = JsonRequest(request.scope, request.receive)
            sent.takes_json = takes_json
            return await handle(sent)

        return handle_json
