"""Epochs: how often a scope was written, and how often an agent's knowledge changed."""

from typing import Any
from uuid import UUID

import psycopg

from lamina.core.scope import Scope
from lamina.errors import Unavailable
from lamina.stores.postgres.connection import Connection, Pool, in_transaction, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows

QUERIES = load_queries("epochs.sql")


RENAMING_RETRY_S = 2


async def bump_epoch(
    connection: Connection,
    scope: Scope,
    *,
    teaches: bool = False,
    renaming: UUID | None = None,
    erases: bool = False,
) -> int:
    """Raise the epoch of the scope's namespace; call it last, its row is locked until the commit.

    Args:
        connection: In the transaction of the write.
        scope: Where was written, and by which agent.
        teaches: Whether the knowledge of the agent changed, or of all agents if the scope names none: earlier responses
            become stale. A change of an order or a count teaches nothing, nor do the messages of a conversation, which
            would otherwise make them stale with every turn.
        renaming: The renaming whose step this is; no other write goes into a place that is being renamed.
        erases: Whether this erases a user, which waits for no renaming that was given up halfway: its end may be far.

    Raises:
        Unavailable: If the place is being renamed; the write is undone with its transaction.
    """
    parameters = {**scope_parameters(scope), "teaches": teaches}
    cursor = await connection.execute(QUERIES["bump_epoch"], parameters)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the upsert returns its row
    await _refuse_while_renamed(connection, row["renaming"], renaming, erases=erases)
    if row["epoch"] == 1:  # The first write may have waited for the order of a renaming, whose mark it did not see.
        await refuse_renamed(connection, scope.tenant, scope.workspace, scope.namespace, renaming, erases=erases)
    if teaches:
        # A statement of its own, for it sees the rows of a response that was stored while the one above waited.
        await end_responses(connection, scope.tenant, scope.workspace, scope.agent)
    return int(row["epoch"])


async def refuse_renamed(
    connection: Connection,
    tenant: str,
    workspace: str,
    namespace: str,
    renaming: UUID | None = None,
    *,
    erases: bool = False,
) -> None:
    """Check that a place is not being renamed, and keep it so until the transaction ends.

    Raises:
        Unavailable: If it is renamed by another operation than the one given.
    """
    place = {"tenant": tenant, "workspace": workspace, "namespace": namespace}
    await connection.execute(QUERIES["lock_places"], place)
    # A statement of its own, which sees the mark of the renaming that the one before waited for.
    for row in await (await connection.execute(QUERIES["read_renamings"], place)).fetchall():
        await _refuse_while_renamed(connection, row["renaming"], renaming, erases=erases)


async def _refuse_while_renamed(
    connection: Connection, found: UUID | None, own: UUID | None, *, erases: bool = False
) -> None:
    if found is None or found == own:
        return
    # A statement of its own sees the operation also where the one before waited for the commit that ordered it.
    row = await (await connection.execute(QUERIES["read_open_renaming"], {"renaming": found})).fetchone()
    if row is not None and row["state"] == "failed":
        if erases:
            return
        reason = f"its renaming {found} was given up halfway; order it again, or undo it"
        raise Unavailable("namespace", reason, RENAMING_RETRY_S)
    if row is not None:
        raise Unavailable("namespace", f"it is being renamed by the operation {found}", RENAMING_RETRY_S)


async def read_epoch(connection: Connection, scope: Scope) -> int:
    """Return the epoch of the scope's namespace, after a write that changed nothing."""
    row = await (await connection.execute(QUERIES["read_epoch"], scope_parameters(scope))).fetchone()
    return int(row["epoch"]) if row else 0


async def bump_workspace_epochs(
    connection: Connection, tenant: str, workspace: str, agent: str | None = None, *, by_renaming: bool = False
) -> None:
    """Raise the epochs of a workspace and all its namespaces, and end the responses of an agent, or of all.

    Args:
        connection: In the transaction of the write; its rows are locked until the commit.
        tenant: Owner of the workspace.
        workspace: The workspace.
        agent: The agent whose view of the workspace changed; all agents if not given.
        by_renaming: Whether this is the end of a renaming: it raises also where another one works, whose end may wait
            for this one.

    Raises:
        Unavailable: If the workspace, or a namespace in it, is being renamed.
    """
    parameters = {"tenant": tenant, "workspace": workspace, "agent_id": agent}
    await connection.execute(QUERIES["lock_lesson"], parameters)
    cursor = await connection.execute(QUERIES["bump_workspace_epochs"], parameters)
    if not by_renaming:
        for found in {row["renaming"] async for row in cursor}:
            await _refuse_while_renamed(connection, found, None)
    await end_responses(connection, tenant, workspace, agent)


async def end_responses(connection: Connection, tenant: str, workspace: str, agent: str | None) -> None:
    """Make the responses of a workspace's agent stale, or everybody's if no agent is given."""
    parameters = {"tenant": tenant, "workspace": workspace, "agent_id": agent}
    await connection.execute(QUERIES["end_responses"], parameters)


async def read_former_scopes(pool: Pool, scope: Scope) -> list[Scope]:
    """Return a namespace's scope as it was called before each of its renamings."""
    rows = await fetch_rows(pool, QUERIES["read_former_names"], scope_parameters(scope))
    return [Scope(scope.tenant, *row["place"]) for row in rows]


async def raise_epochs(pool: Pool, tenant: str, workspace: str | None) -> None:
    """Raise the epochs of a workspace, or of all that a tenant has, so that no cached answer is used again.

    Raises:
        Unavailable: If Postgres does not answer.
    """

    async def act(connection: Connection) -> None:
        parameters = {"tenant": tenant, "workspace": workspace}
        if workspace is not None:
            await connection.execute(QUERIES["lock_lesson"], parameters)
        await connection.execute(QUERIES["raise_epochs"], parameters)

    await in_transaction(pool, act)


async def unsettle(connection: Connection, tenant: str) -> None:
    """Raise a tenant's epochs because a projection changes; its scopes are unsettled until the outbox is empty."""
    await connection.execute(QUERIES["unsettle"], {"tenant": tenant})


def unsettle_all(connection: psycopg.Connection[Any]) -> None:
    """Raise the epochs of every tenant; their scopes are unsettled until the outbox is empty."""
    connection.execute(QUERIES["unsettle"], {"tenant": None})
