"""Memories and documents as resources, each under its id."""

import json
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from lamina.client.client import AsyncClient
from lamina.client.mcp.tools import Json
from lamina.errors import InvalidInput, NotFound
from lamina.text.hygiene import shorten

SCHEME = "lamina://"
PAGE = 50
TITLE_CHARS = 80


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of resource.

    Args:
        title: Name for people, of one of them.
        description: For a model.
        read: Returns one by its id.
        page: Lists them, if they are listed.
    """

    title: str
    description: str
    read: Callable[[AsyncClient, UUID], Coroutine[Any, Any, Json]]
    page: Callable[[AsyncClient, Json], Coroutine[Any, Any, Json]] | None = None


KINDS: Mapping[str, Kind] = {
    "document": Kind(
        "Document",
        "A document by its id; a passage that a search found has it under `document`.",
        lambda api, id_: api.document(id_),
        lambda api, page: api.documents(**page),
    ),
    "note": Kind("Note", "A note by its id.", lambda api, id_: api.note(id_), lambda api, page: api.notes(**page)),
    "procedure": Kind("Procedure", "A procedure by its id.", lambda api, id_: api.procedure(id_)),
}
LISTED = tuple(name for name, kind in KINDS.items() if kind.page is not None)


def uri_of(kind: str, id_: object) -> str:
    """Return the address of a resource."""
    return f"{SCHEME}{kind}/{id_}"


async def read_resource(api: AsyncClient, uri: str) -> tuple[str, str]:
    """Return the media type and the text of a resource.

    Raises:
        NotFound: If nothing has the address.
    """
    kind, _, id_ = uri.removeprefix(SCHEME).partition("/")
    if not uri.startswith(SCHEME) or kind not in KINDS:
        raise NotFound("resource", shorten(uri), f"addresses are {', '.join(uri_of(name, '<id>') for name in KINDS)}")
    try:
        found = await KINDS[kind].read(api, UUID(id_))
    except ValueError as error:
        raise NotFound("resource", shorten(uri), "its id is no UUID; use that of a search's result") from error
    if kind == "document":
        return "text/plain", found["content"]
    return "application/json", json.dumps(found, ensure_ascii=False)


async def list_resources(api: AsyncClient, cursor: str | None) -> tuple[list[Json], str | None]:
    """Return a page of the resources of the configured scope, the latest first, and where the next one begins.

    Raises:
        InvalidInput: For a cursor that is none of ours.
    """
    kind, colon, following = (cursor or LISTED[0]).partition(":")
    if kind not in LISTED or (colon and not following):
        raise InvalidInput("cursor", "is none that a list returned; begin without one")
    page = KINDS[kind].page
    assert page is not None  # noqa: S101 - of those that are listed
    found = await page(api, {"limit": PAGE, **({"cursor": following} if following else {})})
    listed = [_listed(kind, item) for item in found[f"{kind}s"]]
    if found["next_cursor"] is not None:
        return listed, f"{kind}:{found['next_cursor']}"
    rest = LISTED[LISTED.index(kind) + 1 :]
    return listed, rest[0] if rest else None


def _listed(kind: str, item: Json) -> Json:
    first = item.get("title") or next(iter(str(item["content"]).splitlines()), "")
    is_document = kind == "document"
    return {
        "uri": uri_of(kind, item["id"]),
        "name": str(item["id"]),
        "title": shorten(first, TITLE_CHARS) or str(item["id"]),
        "mime_type": "text/plain" if is_document else "application/json",
    }
