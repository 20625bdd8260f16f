"""The page of a list that a request asks for, and the way to the next one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode
from uuid import UUID

from fastapi import Depends, Query, Request, Response
from pydantic import AwareDatetime, TypeAdapter

from deployments.services import PrincipalDep
from lamina.api.cursors import MAX_CURSOR_CHARS, read_cursor, write_cursor
from lamina.core.paging import Page
from lamina.errors import InvalidInput

Row = TypeVar("Row")
MAX_OFFSET = 1_000_000
_OF_PAGE = ("cursor", "offset", "limit")

Cursor = Annotated[
    str | None, Query(max_length=MAX_CURSOR_CHARS, description="`next_cursor` of the page before; none for the first.")
]
Offset = Annotated[
    int,
    Query(ge=0, le=MAX_OFFSET, deprecated=True, description="Entries to skip, which writes move. Send `cursor`."),
]


@dataclass(frozen=True, slots=True)
class Listing:
    """A list as a request asks for it.

    Args:
        page: Its page.
        listed: What it is of, which its cursors are checked against.
        request: The request.
        response: The answer, which gets a link to the next page.
    """

    page: Page
    listed: Sequence[Any]
    request: Request
    response: Response

    def cut(self, found: Sequence[Row], position: Callable[[Row], Sequence[Any]]) -> tuple[Sequence[Row], str | None]:
        """Return the rows of the page and the cursor of the next one, if there is one.

        Args:
            found: The rows of the page, and one more where the list goes on.
            position: Returns the values of a row by which the list is ordered.
        """
        shown = found[: self.page.limit]
        if len(found) <= self.page.limit:
            return shown, None
        cursor = write_cursor(position(shown[-1]), self.listed)
        sent = [(name, value) for name, value in self.request.query_params.multi_items() if name not in _OF_PAGE[:2]]
        # Relative to the request, so that it is right below any path of a proxy.
        self.response.headers["Link"] = f'<?{urlencode([*sent, ("cursor", cursor)])}>; rel="next"'
        return shown, cursor


def paged(*order: Any, default: int = 100, most: int = 1000, can_skip: bool = False) -> Any:
    """Return the dependency of a list.

    Args:
        order: Types of the values by which it is ordered.
        default: Entries of a page if the request says nothing.
        most: Most entries of a page.
        can_skip: Whether it takes an offset as well, as lists did before they had cursors.
    """
    types: TypeAdapter[tuple[Any, ...]] = TypeAdapter(tuple[order])  # type: ignore[valid-type]
    Limit = Annotated[int, Query(ge=1, le=most, description="Most entries of the page.")]  # noqa: N806 - a type

    def listing(
        request: Request, response: Response, tenant: str, limit: int, cursor: str | None, offset: int
    ) -> Listing:
        if cursor is not None and offset:
            raise InvalidInput("offset", "is given beside cursor; send one of them")
        query = sorted(item for item in request.query_params.multi_items() if item[0] not in _OF_PAGE)
        listed = (tenant, request.scope["route"].path_format, sorted(request.path_params.items()), query)
        after = () if cursor is None else read_cursor(cursor, types, listed)
        return Listing(Page(limit, after, offset), listed, request, response)

    async def page_in(
        request: Request, response: Response, principal: PrincipalDep, limit: Limit = default, cursor: Cursor = None
    ) -> Listing:
        return listing(request, response, principal.tenant, limit, cursor, 0)

    async def skipping_page_in(
        request: Request,
        response: Response,
        principal: PrincipalDep,
        limit: Limit = default,
        cursor: Cursor = None,
        offset: Offset = 0,
    ) -> Listing:
        return listing(request, response, principal.tenant, limit, cursor, offset)

    return Depends(skipping_page_in if can_skip else page_in)


ByTime = Annotated[Listing, paged(AwareDatetime, UUID, can_skip=True)]
ById = Annotated[Listing, paged(UUID, can_skip=True)]
ByPosition = Annotated[Listing, paged(int, can_skip=True)]
