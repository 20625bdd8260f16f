"""`lamina keys`: create, list, rotate and revoke API keys, in the database itself."""

from datetime import datetime
from typing import Annotated
from uuid import UUID

import typer
from rich.markup import escape
from rich.table import Column, Table

from lamina.cli.common import ConfigOption, DataDirOption, server_of
from lamina.cli.console import SafeConsole, console
from lamina.core.principals import Bounds, KeyRole, Verb, new_principal
from lamina.stores.postgres.keys import list_keys, revoke_key, rotate_key, store_key
from lamina.wiring.stores import utc_now

app = typer.Typer(help="API keys: create, list, rotate, revoke.", no_args_is_help=True)
PIPE_WIDTH = 10_000
KeyArgument = Annotated[UUID, typer.Argument(help="Id of the key, from `lamina keys list`.")]


@app.command("create")
def create(
    tenant: Annotated[str, typer.Option("--tenant", help="Isolation boundary that the key opens.")],
    role: Annotated[KeyRole, typer.Option("--role", help="The most that the key may do.")] = KeyRole.WRITER,
    name: Annotated[str, typer.Option("--name", "--label", help="What the key is for.")] = "cli",
    verb: Annotated[list[Verb] | None, typer.Option("--verb", help="What it may do of its role; all if none.")] = None,
    workspace: Annotated[list[str] | None, typer.Option("--workspace", help="A workspace it is bound to.")] = None,
    namespace: Annotated[list[str] | None, typer.Option("--namespace", help="A namespace it is bound to.")] = None,
    user: Annotated[list[str] | None, typer.Option("--user", help="A user it is bound to.")] = None,
    agent: Annotated[list[str] | None, typer.Option("--agent", help="An agent it may act as.")] = None,
    expires_at: Annotated[datetime | None, typer.Option("--expires-at", help="When it ends, in UTC.")] = None,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Create a key and print it; it is stored hashed and cannot be shown again. Options for bounds may be repeated."""
    bounds = Bounds.from_lists({"workspaces": workspace, "namespaces": namespace, "users": user, "agents": agent})
    wanted = new_principal(tenant, role, utc_now(), verbs=verb or (), bounds=bounds, expires_at=expires_at)
    console.print(store_key(server_of(config, data_dir).url, wanted, name), highlight=False, soft_wrap=True)


@app.command("list")
def show_keys(config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """List all keys, without their secrets."""
    id_column = Column("id", no_wrap=True, min_width=36)  # `lamina keys revoke` needs it whole
    columns = ("tenant", "role", "name", "key", "narrowed to", "created", "last used", "expires", "revoked")
    table = Table(id_column, *columns, box=None)
    for key in list_keys(server_of(config, data_dir).url):
        moments = (key.created_at, key.last_used_at, key.expires_at, key.revoked_at)
        times = [moment.isoformat(" ", "seconds") if moment else "-" for moment in moments]
        lists: dict[str, list[str]] = {"verbs": [*key.verbs], **key.bounds.lists()}
        narrowed = "; ".join(f"{name} {', '.join(ids)}" for name, ids in lists.items() if ids)
        texts = (key.tenant, key.role, key.name, f"{key.hint}…", narrowed or "-")
        table.add_row(str(key.id), *map(escape, texts), *times)
    # In a pipe there is no width to fit, and a line a key is what other programs read.
    (console if console.is_terminal else SafeConsole(width=PIPE_WIDTH)).print(table)


@app.command("rotate")
def rotate(id: KeyArgument, config: ConfigOption = None, data_dir: DataDirOption = None) -> None:
    """Give a key another secret and print it; the one before opens nothing any more."""
    console.print(rotate_key(server_of(config, data_dir).url, id), highlight=False, soft_wrap=True)


@app.command("revoke")
def revoke(
    id: KeyArgument,
    last: Annotated[bool, typer.Option("--last", help="Even if it is the last admin key of its tenant.")] = False,
    config: ConfigOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Make a key invalid."""
    revoke_key(server_of(config, data_dir).url, id, even_last=last)
    console.print(f"{id} is revoked", highlight=False)
