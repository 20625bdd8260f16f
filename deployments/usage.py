"""Count the use of tenants off the path of requests: gathered in memory, added together."""

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import date

from lamina.aio.write_behind import WriteBehind
from lamina.core.ports import Clock
from lamina.core.quotas import Resource, Spending
from lamina.core.usage import Use
from lamina.errors import LaminaError
from lamina.stores.postgres.usage import Sending, UsageTable

logger = logging.getLogger(__name__)
WINDOW_S = 5.0
"""Use that a process may lose when it dies."""
_OF_SPENDING: Mapping[Resource, Use] = {
    Resource.EMBEDDED_TOKENS: Use.EMBEDDED_TOKENS,
    Resource.MODEL_TOKENS: Use.MODEL_TOKENS,
}


class UsageMeter:
    """Counts the use of tenants; what cannot be written yet is kept.

    Args:
        table: Where it is added up.
        clock: The time of day.
    """

    def __init__(self, table: UsageTable, *, clock: Clock) -> None:
        self._table = table
        self._clock = clock
        self._pending: dict[tuple[str, date], Counter[Use]] = {}
        self._due: WriteBehind[None] = WriteBehind(self._write, part="usage", window_s=WINDOW_S)

    def count(self, tenant: str, spending: Spending, body_bytes: int) -> None:
        """Count a request of a tenant, when it is over."""
        used: Counter[Use] = Counter({Use.REQUESTS: 1, Use.BYTES: body_bytes})
        used.update(spending.uses)
        used.update({use: spending.amounts.get(resource, 0) for resource, use in _OF_SPENDING.items()})
        self._add({(tenant, self._clock().date()): used})
        self._due.add(None)

    async def flush(self) -> None:
        """Write what was counted so far."""
        await self._write(())

    async def close(self) -> None:
        """Write what is left, and end."""
        await self._due.close()
        await self.flush()

    def _add(self, amounts: Mapping[tuple[str, date], Counter[Use]]) -> None:
        for key, used in amounts.items():
            self._pending.setdefault(key, Counter()).update(used)

    async def _write(self, _: Sequence[None]) -> None:
        taken, self._pending = self._pending, {}
        if not taken:
            return
        sending = Sending()
        try:
            await self._table.add(taken, sending)
        except BaseException as error:
            if sending.may_be_added:  # A bill has less rather than something twice.
                logger.exception("usage: perhaps not counted: %s: %s", type(error).__name__, _described(taken))
            else:
                self._add(taken)
                logger.warning("usage: not written yet: %s", type(error).__name__)
            if not isinstance(error, LaminaError):
                raise


def _described(amounts: Mapping[tuple[str, date], Counter[Use]]) -> str:
    """Return amounts for the log, from which they can be added by hand."""
    return "; ".join(
        f"{tenant} {day}: {', '.join(f'{use} {amount}' for use, amount in sorted(used.items()) if amount)}"
        for (tenant, day), used in sorted(amounts.items())
    )
