"""Quotas of tenants and keys, grants of their windows, and sizes of tenants."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from lamina.core.quotas import STORED, WINDOWS_S, Limits, Resource
from lamina.policies.limits.allowance import Ask, Grant
from lamina.stores.postgres.connection import Connection, connect_directly, in_transaction
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("quotas.sql")

REFRESH_S = 5.0
_COUNTING_SHARE = 0.02
"""Most of the time that is spent on counting what a large tenant stores."""


@dataclass(frozen=True, order=True, slots=True)
class Limited:
    """A limit: whose it is, and of which resource."""

    tenant: str
    subject: str
    resource: Resource


@dataclass(frozen=True, slots=True)
class GrantAsk:
    """A question for a slice of a limit."""

    limited: Limited
    amount: int
    ask: Ask


class Quotas(PostgresStore):
    """Reads quotas, takes grants, counts the rows of tenants."""

    async def read(self) -> Mapping[Limited, int | None]:
        """Return the amounts of all quotas; ``None`` stands for no limit."""
        return _amounts(await self._rows(QUERIES["read_quotas"]))

    async def set(self, tenant: str, subject: str, amounts: Mapping[Resource, int | None]) -> None:
        """Set quotas of a subject; one without an amount is as in the settings again."""

        async def act(connection: Connection) -> None:
            for resource, amount in amounts.items():
                row = {**_row(Limited(tenant, subject, resource)), "amount": amount}
                await connection.execute(QUERIES["drop_quota"] if amount is None else QUERIES["set_quota"], row)

        await in_transaction(self._pool, act)

    async def take(self, asks: Sequence[GrantAsk]) -> Mapping[Limited, Grant]:
        """Take slices of the present windows, as far as they are left; each at most once at the same moment."""
        columns: dict[str, list[Any]] = {
            "tenants": [item.limited.tenant for item in asks],
            "subjects": [item.limited.subject for item in asks],
            "resources": [item.limited.resource.value for item in asks],
            "windows_s": [WINDOWS_S[item.limited.resource] for item in asks],
            "amounts": [item.amount for item in asks],
            "settled": [item.ask.settled for item in asks],
            "wanted": [item.ask.wanted for item in asks],
            "needed": [item.ask.needed for item in asks],
        }

        async def act(connection: Connection) -> list[Any]:
            await connection.execute(QUERIES["open_windows"], columns)
            return await (await connection.execute(QUERIES["take_grants"], columns)).fetchall()

        return {
            Limited(row["tenant"], row["subject"], Resource(row["resource"])): Grant(
                row["given"], row["left"], row["ends_in_s"]
            )
            for row in await in_transaction(self._pool, act)
        }

    async def usage(self, tenant: str) -> tuple[Limits, datetime]:
        """Return the size of a tenant, and when it was counted: for a large one, as long ago as counting costs."""

        async def act(connection: Connection) -> Any:
            found = await (await connection.execute(QUERIES["read_usage"], {"tenant": tenant})).fetchone()
            if found is not None and found["age_s"] < max(REFRESH_S, found["took_s"] / _COUNTING_SHARE):
                return found
            lock = await (await connection.execute(QUERIES["lock_count"], {"tenant": tenant})).fetchone()
            if found is not None and lock is not None and not lock["is_ours"]:
                return found  # Another replica counts.
            return await (await connection.execute(QUERIES["count_usage"], {"tenant": tenant})).fetchone()

        row = await in_transaction(self._pool, act)
        return {resource: int(row[resource.value]) for resource in STORED}, row["counted_at"]


def read_quotas(url: str) -> Mapping[Limited, int | None]:
    """Return the amounts of all quotas."""
    with connect_directly(url) as connection:
        return _amounts(connection.execute(QUERIES["read_quotas"]).fetchall())


def set_quota(url: str, limited: Limited, amount: int | None) -> None:
    """Set a quota in place of the setting; ``None`` means no limit."""
    row = {**_row(limited), "amount": amount}
    with connect_directly(url) as connection:
        connection.execute(QUERIES["set_quota"], row)


def drop_quota(url: str, limited: Limited) -> None:
    """Let the setting hold again."""
    with connect_directly(url) as connection:
        connection.execute(QUERIES["drop_quota"], _row(limited))


def _row(limited: Limited) -> dict[str, str]:
    return {"tenant": limited.tenant, "subject": limited.subject, "resource": limited.resource.value}


def _amounts(rows: Iterable[Mapping[str, Any]]) -> Mapping[Limited, int | None]:
    known = {resource.value for resource in Resource}
    return {
        Limited(row["tenant"], row["subject"], Resource(row["resource"])): row["amount"]
        for row in rows
        if row["resource"] in known  # Another release may have more.
    }
