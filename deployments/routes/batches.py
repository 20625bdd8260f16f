"""Batches of items, each of which is stored or refused by itself."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from pydantic import ValidationError

from deployments.problems import describe_errors
from lamina.aio.yielding import map_in_steps
from lamina.api.batches import BatchItem
from lamina.api.documents import DocumentItem
from lamina.errors import InvalidInput
from lamina.text.hygiene import shorten

MOST_REASON_CHARS = 500
Item = TypeVar("Item")
Result = TypeVar("Result", BatchItem, DocumentItem)


@dataclass(frozen=True, slots=True)
class Refused:
    """An item that cannot be stored, and why."""

    reason: str


@dataclass(frozen=True, slots=True)
class Batch(Generic[Item]):
    """Items in the order of the request, each read or refused."""

    items: Sequence[Item | Refused]

    def accepted(self) -> list[Item]:
        """Return the items that can be stored."""
        return [item for item in self.items if not isinstance(item, Refused)]

    def results(self, stored: Iterable[Result], model: type[Result]) -> list[Result]:
        """Return one result an item, in their order.

        Args:
            stored: Results of the accepted items.
            model: Shape of the result of a refused one.
        """
        accepted = iter(stored)
        return [
            model(status="invalid", error=item.reason) if isinstance(item, Refused) else next(accepted)
            for item in self.items
        ]


async def read_batch(field: str, items: Sequence[Any], read: Callable[[Any, str], Item]) -> Batch[Item]:
    """Read each item of a request's field; ``read`` takes an item and its path, such as ``notes.3``."""

    def read_item(placed: tuple[int, Any]) -> Item | Refused:
        place, item = placed
        path = f"{field}.{place}"
        try:
            return read(item, path)
        except (ValidationError, InvalidInput) as error:
            return refuse(error, path)

    return Batch(await map_in_steps(read_item, enumerate(items)))


def refuse(error: ValidationError | InvalidInput, path: str) -> Refused:
    """Describe the errors of the item at a path, by field."""
    if isinstance(error, InvalidInput):
        return Refused(shorten(str(error), MOST_REASON_CHARS))
    return Refused(describe_errors(error.errors(include_url=False, include_input=False), path))
