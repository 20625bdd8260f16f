"""A client of the API inside its own process: for doors that are made of the same routes that everybody calls."""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING
from urllib.parse import unquote

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from lamina.core.principals import Principal
from lamina.errors import InvalidInput

if TYPE_CHECKING:
    from lamina.client.client import AsyncClient

SCOPE_FIELDS = ("workspace", "namespace", "user", "agent", "swarm")
_BASE_URL = "http://lamina"
_CHECKED = "checked by the front door"


def inner_client(behind: ASGIApp, principal: Principal, ids: Mapping[str, str]) -> "AsyncClient":
    """Return a client whose calls are those of a principal, as the front door would let them in.

    Args:
        behind: The API behind the front door.
        principal: Whose key was checked.
        ids: Of the scope that every call is for.
    """
    import httpx  # noqa: PLC0415 - half a second, which most services never need

    from lamina.client.client import AsyncClient  # noqa: PLC0415 - as above

    async def as_principal(inner: Scope, receive: Receive, send: Send) -> None:
        await behind({**inner, "state": {"principal": principal}}, receive, send)

    transport = httpx.ASGITransport(as_principal, raise_app_exceptions=False)
    return AsyncClient(_BASE_URL, _CHECKED, scope=dict(ids), connect_retries=0, transport=transport)


def ids_of(headers: Headers, fields: Sequence[str] = SCOPE_FIELDS) -> dict[str, str]:
    """Return the ids that headers such as `Lamina-Workspace` name, each percent-encoded where it is not plain ASCII.

    Raises:
        InvalidInput: For one that is no UTF-8.
    """
    sent = {field: headers[f"lamina-{field}"] for field in fields if f"lamina-{field}" in headers}
    try:
        return {name: unquote(value, errors="strict") for name, value in sent.items()}
    except UnicodeDecodeError as error:
        raise InvalidInput("Lamina-…", "is no UTF-8; percent-encode the id") from error
