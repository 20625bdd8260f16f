"""`lamina keys`: create, list and revoke API keys, in the database itself."""

from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table

from lamina.cli.common import ConfigOption, DataDirOption, console, database_of
from lamina.stores.postgres.keys import KeyRole, create_key, list_keys, revoke_key

app = typer.Typer(help="API keys: create, list, revoke.", no_args_is_help=True)


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Isolation boundary that the key opens.")],
    role: Annotated[KeyRole, typer.Option("--role", help="What the key may do.")] = KeyRole.WRITER,
    label: Annotated[str, typer.Option("--label", help="What the key is for.")] = "cli",
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Create a key and print it; it is stored hashed and cannot be shown again."""
    console.print(
        create_key(database_of(config, data_dir), tenant=tenant, role=role, label=label),
        highlight=False,
        soft_wrap=True,
    )


@app.command("list")
def show_keys(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """List all keys, without their secrets."""
    id_column = Column("id", no_wrap=True, min_width=36)  # `lamina keys revoke` needs it whole
    table = Table(id_column, "tenant", "role", "label", "key", "created", "revoked", box=None)
    for key in list_keys(database_of(config, data_dir)):
        revoked = key.revoked_at.isoformat(" ", "seconds") if key.revoked_at else "-"
        created = key.created_at.isoformat(" ", "seconds")
        table.add_row(str(key.id), escape(key.tenant), key.role, escape(key.label), f"{key.hint}…", created, revoked)
    console.print(table)


@app.command("revoke")
def revoke(
    id: Annotated[UUID, typer.Argument(help="Id of the key, from `lamina keys list`.")],
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Make a key invalid."""
    revoke_key(database_of(config, data_dir), id)
    console.print(f"{id} is revoked", highlight=False)
