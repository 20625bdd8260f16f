"""Answers of models in the response cache: which requests may share one, and the form in which it is kept."""

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Self

from lamina.api.openai.requests import ModelRequest, Shape, is_text_part
from lamina.text.hygiene import MAX_QUERY_CHARS, is_blank

Json = Mapping[str, Any]
MEDIA_TYPES = ("application/json", "text/event-stream")
_EVENT_END = re.compile(r"(?<=\n\n)|(?<=\r\n\r\n)")
_TOOLS = ("tools", "functions", "web_search_options", "plugins", "mcp_servers", "prompt")
"""Members by which a model, or its endpoint, does more than answer; a stored prompt may bring tools of its own."""


class CacheUse(StrEnum):
    """Whether the response cache may answer: never, requests without tools, or those with tools too."""

    OFF = "off"
    ON = "on"
    TOOLS = "tools"


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """An answer as it came: its bytes as text, in the form of its media type."""

    media_type: str
    body: str

    @classmethod
    def from_json(cls, value: Any) -> Self | None:
        """Return an answer that was kept; ``None`` for a value of another form."""
        match value:
            case {"media_type": str(media_type), "body": str(body)} if media_type.startswith(MEDIA_TYPES):
                return cls(media_type, body) if media_type.isprintable() and media_type.isascii() else None
        return None

    def as_json(self) -> dict[str, str]:
        """Return the value that is kept."""
        return {"media_type": self.media_type, "body": self.body}

    def parts(self) -> Sequence[bytes]:
        """Return the bytes, a stream's event by event."""
        if self.media_type.startswith("text/event-stream"):
            return [event.encode() for event in _EVENT_END.split(self.body) if event]
        return [self.body.encode()]


def circumstances(request: ModelRequest, body: Json, context: Sequence[str], use: CacheUse) -> str | None:
    """Return a digest of all that an answer depends on beside its question.

    A history that lies upstream cannot be compared, and a long question is not compared whole.

    Args:
        request: The request, read.
        body: The request as it came, parsed.
        context: What is no part of the body: endpoint, path, headers that the endpoint reads.
        use: Whether the cache may answer requests with tools.

    Returns:
        ``None`` where no kept answer may serve.
    """
    has_tools = request.is_continued or bool(request.results) or any(body.get(name) for name in _TOOLS)
    is_comparable = not is_blank(request.question) and len(request.question) < MAX_QUERY_CHARS - 1
    if request.chain or body.get("background") or not is_comparable or not request.stores:
        return None
    if use is CacheUse.OFF or (has_tools and use is not CacheUse.TOOLS):
        return None
    rest = json.dumps([*context, _without_question(request, body)], sort_keys=True)
    return hashlib.sha256(rest.encode()).hexdigest()


def _without_question(request: ModelRequest, body: Json) -> Json:
    member = request.shape.value
    items = body[member]
    if request.shape is Shape.RESPONSES and isinstance(items, str):
        return {**body, member: None}
    asked = request.before["before_question"]
    return {**body, member: [*items[:asked], _without_text(items[asked]), *items[asked + 1 :]]}


def _without_text(item: Json) -> Json:
    content = item.get("content")
    if not isinstance(content, list):
        return {**item, "content": None}
    return {**item, "content": [{**part, "text": None} if is_text_part(part) else part for part in content]}
