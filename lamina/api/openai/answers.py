"""Answers of a model, read while they pass: whole ones, and those that come as server-sent events."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from lamina.api.openai.requests import Shape, storable, text_of_parts

Json = Mapping[str, Any]
MOST_BYTES = 8 * 1024 * 1024
"""Of an answer that is remembered; of a longer one nothing is."""


@dataclass(frozen=True, slots=True)
class ModelAnswer:
    """A whole answer.

    Args:
        id: Its id upstream.
        model: Who answered.
        text: What was said.
        input_tokens: Of the prompt.
        cached_tokens: How many of them the provider had in its cache.
        output_tokens: That were written.
    """

    id: str | None
    model: str | None
    text: str
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0


class AnswerReader(Protocol):
    """Reads an answer part by part."""

    def feed(self, data: bytes) -> None:
        """Take the next bytes."""

    def answer(self) -> ModelAnswer | None:
        """Return the answer at its end; ``None`` if it is not whole, or none that can be read."""


def reader_of(shape: Shape, media_type: str) -> AnswerReader:
    """Return a reader of an answer of this media type."""
    return _EventReader(shape) if media_type.startswith("text/event-stream") else _BodyReader(shape)


class _BodyReader:
    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._parts: list[bytes] = []
        self._size_bytes = 0

    def feed(self, data: bytes) -> None:
        self._size_bytes += len(data)
        if self._size_bytes <= MOST_BYTES:
            self._parts.append(data)
        else:
            self._parts.clear()

    def answer(self) -> ModelAnswer | None:
        try:
            body = json.loads(b"".join(self._parts))
        except (ValueError, RecursionError):
            return None
        return _read(self._shape, body) if isinstance(body, dict) else None


class _EventReader:
    """Joins the events of a stream to an answer; a stream that breaks off, or that nobody can read, is none."""

    def __init__(self, shape: Shape) -> None:
        self._shape = shape
        self._line: list[bytes] = []  # The parts of one that has not ended.
        self._size_bytes = 0
        self._is_broken = self._is_finished = False
        self._texts: list[str] = []
        self._last: dict[str, Any] = {}
        self._whole: ModelAnswer | None = None

    def feed(self, data: bytes) -> None:
        self._size_bytes += len(data)
        if self._is_broken or self._size_bytes > MOST_BYTES:
            self._is_broken, self._line = True, []
            return
        self._line.append(data)
        if b"\n" not in data:
            return
        *lines, rest = b"".join(self._line).split(b"\n")
        self._line = [rest]
        for line in lines:
            if line.startswith(b"data:"):
                self._take(line.removeprefix(b"data:").strip())

    def answer(self) -> ModelAnswer | None:
        if self._is_broken or not self._is_finished:
            return None
        if self._shape is Shape.RESPONSES:
            return self._whole
        return _answer(self._last, storable("".join(self._texts)))

    def _take(self, data: bytes) -> None:
        if data == b"[DONE]":
            return
        try:
            event = json.loads(data)
        except (ValueError, RecursionError):
            self._is_broken = True
            return
        if not isinstance(event, dict):
            self._is_broken = True
        elif self._shape is Shape.CHAT:
            self._take_chunk(event)
        elif event.get("type") == "response.completed" and isinstance(event.get("response"), dict):
            self._whole = _read(self._shape, event["response"])
            self._is_finished = True

    def _take_chunk(self, chunk: Json) -> None:
        self._is_broken |= "error" in chunk
        self._last |= {name: chunk[name] for name in ("id", "model", "usage") if chunk.get(name)}
        for choice in _first_choice(chunk):
            delta = choice.get("delta")
            content = delta.get("content") if isinstance(delta, dict) else None
            # A character outside the basic plane may come in two halves.
            self._texts.append(content if isinstance(content, str) else text_of_parts(content))
            self._is_finished |= bool(choice.get("finish_reason"))


def _first_choice(body: Json) -> Iterator[Json]:
    choices = body.get("choices")
    for choice in choices if isinstance(choices, list) else ():
        if isinstance(choice, dict) and choice.get("index", 0) == 0:
            yield choice


def _read(shape: Shape, body: Json) -> ModelAnswer | None:
    if shape is Shape.CHAT:
        messages = [choice.get("message") for choice in _first_choice(body)]
        texts = [text_of_parts(message.get("content")) for message in messages if isinstance(message, dict)]
        return _answer(body, "\n".join(texts)) if texts else None
    output = body.get("output")
    if body.get("status", "completed") != "completed" or not isinstance(output, list):
        return None
    return _answer(body, "\n".join(filter(None, (text_of_parts(_mapping(item).get("content")) for item in output))))


def _answer(body: Json, text: str) -> ModelAnswer:
    usage = _mapping(body.get("usage"))
    details = _mapping(usage.get("prompt_tokens_details") or usage.get("input_tokens_details"))
    id_, model = body.get("id"), body.get("model")
    return ModelAnswer(
        id_ if isinstance(id_, str) else None,
        model if isinstance(model, str) else None,
        text,
        _count(usage.get("prompt_tokens", usage.get("input_tokens"))),
        _count(details.get("cached_tokens")),
        _count(usage.get("completion_tokens", usage.get("output_tokens"))),
    )


def _mapping(value: Any) -> Json:
    return value if isinstance(value, dict) else {}


def _count(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
