"""`lamina quotas`: set and list the quotas of tenants and keys, in the database itself."""

from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Table

from lamina.cli.common import ConfigOption, DataDirOption, server_of
from lamina.cli.console import console
from lamina.core.quotas import STORED, TENANT, Resource
from lamina.errors import InvalidInput
from lamina.stores.postgres.quotas import Limited, drop_quota, read_quotas, set_quota
from lamina.text.hygiene import clean_id

MOST_DIGITS = 18
"""Of an amount, which is a bigint in Postgres."""

app = typer.Typer(help="Quotas of tenants and keys: set, drop, list.", no_args_is_help=True)
TenantOption = Annotated[str, typer.Option("--tenant", help="Whose quota.")]
KeyOption = Annotated[UUID | None, typer.Option("--key", help="Of one key of the tenant, from `lamina keys list`.")]
ResourceArgument = Annotated[
    Resource, typer.Argument(help="Requests and embedded tokens a minute, model tokens a day.")
]


@app.command("set")
def set_amount(
    resource: ResourceArgument,
    amount: Annotated[str, typer.Argument(help="The most of it, or `none` for no limit.")],
    tenant: TenantOption,
    key: KeyOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Set a quota in place of the setting; routers follow within 5 s."""
    is_number = amount.isascii() and amount.isdigit() and len(amount) <= MOST_DIGITS
    if amount != "none" and not is_number:
        raise InvalidInput(
            "amount", f"is {amount[:40]!r}; name a number of at most {MOST_DIGITS} digits, or none for no limit"
        )
    limited = _limited(tenant, key, resource)
    set_quota(server_of(config, data_dir).url, limited, None if amount == "none" else int(amount))
    console.print(f"{resource.value} of {escape(tenant)}: {amount}", highlight=False)


@app.command("drop")
def drop(
    resource: ResourceArgument,
    tenant: TenantOption,
    key: KeyOption = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Let the setting hold again."""
    drop_quota(server_of(config, data_dir).url, _limited(tenant, key, resource))
    console.print(f"{resource.value} of {escape(tenant)}: as in the settings", highlight=False)


@app.command("list")
def show(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """List the quotas that were set; the settings hold for all others."""
    table = Table("tenant", "key", "resource", "amount", box=None)
    for limited, amount in sorted(read_quotas(server_of(config, data_dir).url).items()):
        most = "none" if amount is None else str(amount)
        table.add_row(escape(limited.tenant), limited.subject or "-", limited.resource.value, most)
    console.print(table)


def _limited(tenant: str, key: UUID | None, resource: Resource) -> Limited:
    if key is not None and resource in STORED:
        raise InvalidInput("key", f"{resource.value} are counted for a tenant alone; leave --key out")
    return Limited(clean_id(tenant, "tenant"), TENANT if key is None else str(key), resource)
