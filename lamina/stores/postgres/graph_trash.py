"""Entities and facts in the trash: their rows, their mentions and evidence, and the ends of their edges."""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from lamina.core.scope import Scope
from lamina.core.trash import TrashKind
from lamina.stores.postgres.connection import Connection, Pool, connect, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_rows
from lamina.stores.postgres.trash import TITLE_CHARS, TrashPolicy

QUERIES = load_queries("graph_trash.sql")
_ENTRIES = {TrashKind.ENTITY: QUERIES["discard_entity"], TrashKind.FACT: QUERIES["discard_fact"]}
# In the order in which they refer to one another.
_ROWS = (
    QUERIES["discard_edges"],
    QUERIES["discard_evidence"],
    QUERIES["discard_ends"],
    QUERIES["discard_mentions"],
)
_UNFOUNDED = (
    QUERIES["drop_unfounded_edges"],
    QUERIES["drop_unfounded_entities"],
    QUERIES["drop_unfounded_entries"],
)


async def discard_node(
    connection: Connection, policy: TrashPolicy, kind: TrashKind, tenant: str, id_: UUID, now: datetime
) -> None:
    """Put an entity or a fact into the trash if it keeps any, in the transaction that deletes it.

    Args:
        connection: In that transaction, with the entity, or the ends of the edge, locked.
        policy: Whether it keeps any.
        kind: Of the two.
        tenant: Whose it is.
        id_: Of the entity or the edge.
        now: The present time.
    """
    if not policy.keeps:
        return
    row = {"tenant": tenant, "id": id_}
    cursor = await connection.execute(_ENTRIES[kind], {**row, "now": now, "title_chars": TITLE_CHARS})
    if cursor.rowcount:
        for statement in _ROWS:
            await connection.execute(statement, row)


async def strip_discarded(connection: Connection, memories: Sequence[UUID]) -> None:
    """Take out of the trash what memories said of entities and facts, as they are deleted or rewritten.

    Before the same of live rows and after it: a row may be on its way in either direction, and its mover holds it.
    """
    await connection.execute(QUERIES["strip_discarded"], {"ids": list(memories)})


async def erase_user_graph(connection: Connection, tenant: str, user: str) -> int:
    """Take a user's statements and mentions out of the trash, with all that rests on them alone; count them."""
    cursor = await connection.execute(QUERIES["strip_user"], {"tenant": tenant, "user_id": user})
    row = await cursor.fetchone()
    for statement in _UNFOUNDED:
        await connection.execute(statement, {"tenant": tenant})
    return int(row["stripped"]) if row else 0


async def find_returning(
    pool: Pool, scope: Scope, edges: Sequence[tuple[str, str, str]], keys: Sequence[str], cutoff: datetime
) -> list[UUID]:
    """Return the facts and entities in the trash of exactly this scope that are stated again.

    Args:
        pool: Connections to Postgres.
        scope: Of the statement.
        edges: Stated ones: the key of the subject, the type, the key of the object.
        keys: Of the names of stated entities.
        cutoff: What was deleted before stays there.
    """
    subjects, types, objects = zip(*edges, strict=True) if edges else ((), (), ())
    wanted = {
        **scope_parameters(scope),
        "cutoff": cutoff,
        "keys": list(keys),
        "subjects": list(subjects),
        "types": list(types),
        "objects": list(objects),
    }
    async with connect(pool) as connection:
        facts = await (await connection.execute(QUERIES["find_returning_facts"], wanted)).fetchall() if edges else []
        found = await (await connection.execute(QUERIES["find_returning_entities"], wanted)).fetchall() if keys else []
        return [row["id"] for row in (*facts, *found)]


async def find_lost_names(pool: Pool, tenant: str, entries: Sequence[UUID]) -> list[str]:
    """Return the names of entities that entries bring back, and that the graph does not have."""
    rows = await fetch_rows(pool, QUERIES["find_lost_names"], {"tenant": tenant, "ids": list(entries)})
    return [row["name"] for row in rows]
