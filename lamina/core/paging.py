"""A page of a list: how much of it, and behind which row it begins."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Page:
    """A page of a list.

    It begins behind a row and not after a number of rows, so that what is written or deleted meanwhile moves nothing.

    Args:
        limit: Most rows.
        after: By which the list is ordered, of the last row of the page before; empty for the first page.
        offset: Rows to skip behind that.
    """

    limit: int
    after: tuple[Any, ...] = ()
    offset: int = 0

    def parameters(self, *order: str) -> dict[str, Any]:
        """Return the parameters of a statement that reads one row more, which shows whether another page follows.

        Args:
            order: Names of the values by which the list is ordered; their parameters begin with ``after_``.
        """
        values = self.after or (None,) * len(order)
        after = {f"after_{name}": value for name, value in zip(order, values, strict=True)}
        return {"limit": self.limit + 1, "offset": self.offset, **after}
