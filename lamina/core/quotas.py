"""Quotas: how much of each resource a tenant or a key may take."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from enum import StrEnum

from lamina.core.usage import Use

MINUTE_S, DAY_S = 60, 86_400
TENANT = ""
"""Subject of a quota of the whole tenant; that of a key is its id."""


class Resource(StrEnum):
    """A thing that a quota bounds."""

    REQUESTS = "requests"
    EMBEDDED_TOKENS = "embedded_tokens"
    MODEL_TOKENS = "model_tokens"
    ROWS = "rows"
    BYTES = "bytes"
    DOCUMENTS = "documents"
    NAMESPACES = "namespaces"


WINDOWS_S: Mapping[Resource, int] = {
    Resource.REQUESTS: MINUTE_S,
    Resource.EMBEDDED_TOKENS: MINUTE_S,
    Resource.MODEL_TOKENS: DAY_S,
}
"""The resources that are counted in windows of time, in seconds; the others are what is stored, of a tenant alone."""
STORED = tuple(resource for resource in Resource if resource not in WINDOWS_S)
Limits = Mapping[Resource, int]
"""The most of each resource; one that is missing is not limited."""


@dataclass(slots=True)
class Spending:
    """Amounts that a request took of resources which are known only once it works.

    Args:
        amounts: So far.
        tenant: Whose request it is.
        uses: Further things that bills count.
    """

    amounts: dict[Resource, int] = field(default_factory=dict)
    tenant: str = ""
    uses: dict[Use, int] = field(default_factory=dict)

    def add(self, resource: Resource, amount: int) -> None:
        """Count an amount."""
        self.amounts[resource] = self.amounts.get(resource, 0) + amount


_current: ContextVar[Spending | None] = ContextVar("spending", default=None)


@contextmanager
def counted_spending(tenant: str = "") -> Iterator[Spending]:
    """Count the spending of a tenant's request within the block, in tasks that it starts, too."""
    spending = Spending(tenant=tenant)
    token = _current.set(spending)
    try:
        yield spending
    finally:
        _current.reset(token)


def spend(resource: Resource, amount: int) -> None:
    """Count an amount for the request that is worked on; outside of one nothing is counted."""
    spending = _current.get()
    if spending is not None:
        spending.add(resource, amount)


def count_use(use: Use, amount: int) -> None:
    """Count a use for the bill of the request that is worked on."""
    spending = _current.get()
    if spending is not None:
        spending.uses[use] = spending.uses.get(use, 0) + amount


def spending_tenant() -> str:
    """Return the tenant of the request that is worked on; outside of one, as in a job, an empty name."""
    spending = _current.get()
    return "" if spending is None else spending.tenant
