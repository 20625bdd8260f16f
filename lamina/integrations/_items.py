"""Items of a framework in a session: each comes back as it was, and is a message whose text is searched."""

import base64
import zlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any, NamedTuple
from uuid import uuid4

from lamina.errors import InvalidInput
from lamina.text.turn_parts import fitting_text, is_blank

Json = dict[str, Any]
_MOST_METADATA_CHARS = 32_768
_PART_CHARS = 900_000
"""Of packed bytes in a message, which holds a million."""
_MOST_BYTES = 64 * 1024 * 1024
"""Most bytes of an item: packed data may unpack to a thousand times their size."""


class KeptItem(NamedTuple):
    """An item of a session.

    Args:
        message: The one that stands for it.
        data: Its JSON.
        part_ids: Ids of the messages that hold it, where its own cannot.
    """

    message: Json
    data: str
    part_ids: tuple[str, ...] = ()


def messages_of(
    member: str, data: str, *, role: str, text: str, otherwise: str, metadata: Mapping[str, Any]
) -> list[Json]:
    """Return the messages that keep an item; the last one stands for it, so that no half of one is ever read.

    Args:
        member: Member of their metadata that keeps it.
        data: The item as ASCII JSON.
        role: Who says it.
        text: Its text, by which it is found.
        otherwise: Stands in place of a text that shows nothing.
        metadata: Further ones of each message.

    Raises:
        InvalidInput: If the item is too large.
    """
    if len(data) > _MOST_BYTES:
        raise InvalidInput("item", f"has {len(data)} bytes as JSON; at most {_MOST_BYTES} are kept")
    ref = f"{member}-{uuid4()}"  # Without one, equal messages are one.
    value: Any = data
    parts: list[str] = []
    if len(data) > _MOST_METADATA_CHARS:
        packed = pack(data)
        value = {"zlib": packed}
        if len(packed) > _MOST_METADATA_CHARS:
            parts = [packed[start : start + _PART_CHARS] for start in range(0, len(packed), _PART_CHARS)]
            value = {"parts": len(parts)}
    # No language: they are not embedded.
    held = [
        {
            "role": "tool",
            "content": part,
            "ref": f"{ref}-{place}",
            "importance": 0.0,
            "metadata": {**metadata, member: {"of": ref, "place": place}},
        }
        for place, part in enumerate(parts)
    ]
    shown = fitting_text(text)
    content = fitting_text(otherwise) if is_blank(shown) else shown
    return [*held, {"role": role, "content": content, "ref": ref, "metadata": {**metadata, member: value}}]


def items_of(member: str, messages: Sequence[Json]) -> Iterator[KeptItem]:
    """Yield the items that messages of a session keep, in their order; one that is not there whole is none."""
    parts: defaultdict[str, dict[int, Json]] = defaultdict(dict)
    for message in messages:
        match message["metadata"].get(member):
            case {"of": str(ref), "place": int(place)}:
                parts[ref][place] = message
    for message in messages:
        if member not in message["metadata"]:
            continue
        # What somebody else wrote under this name may be anything.
        with suppress(ValueError, zlib.error):
            match message["metadata"][member]:
                case None:  # As items were kept at first.
                    yield KeptItem(message, message["content"])
                case str(data):
                    yield KeptItem(message, data)
                case {"zlib": str(packed)}:
                    yield KeptItem(message, unpack(packed))
                case {"parts": int(count)} if len(held := parts[str(message["ref"])]) == count:
                    packed = "".join(held[place]["content"] for place in sorted(held))
                    yield KeptItem(message, unpack(packed), tuple(part["id"] for part in held.values()))


def pack(data: str) -> str:
    """Return a text compressed, as base64."""
    return base64.b64encode(zlib.compress(data.encode())).decode()


def unpack(packed: str) -> str:
    """Return the text that was packed.

    Raises:
        ValueError: If it is cut off, or too large.
        zlib.error: If it is no packed text.
    """
    reader = zlib.decompressobj()
    data = reader.decompress(base64.b64decode(packed), _MOST_BYTES)
    if not reader.eof:
        raise ValueError("is cut off, or too large")
    return data.decode()
