"""Keep the intervals in which edges hold."""

from collections import defaultdict
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from lamina.core.scope import Scope
from lamina.errors import Conflict, InvalidInput, NotFound
from lamina.policies.validity import ENDS, OWN_VALUE, STATES, Claim, decide_validities, exclude_each_other
from lamina.stores.postgres.connection import Connection, Pool, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import fetch_row

QUERIES = load_queries("validity.sql")
STATED_RELATIONS = {"relations": sorted({*STATES, *ENDS}), "own_values": "%" + OWN_VALUE.replace("_", r"\_")}


async def lock_subjects(connection: Connection, subjects: Collection[UUID]) -> None:
    """Let one writer at a time, until its transaction ends, change what is stated of entities.

    Taken after the rows of entities and before those of edges: two writers of one subject would each miss the other's
    statement, or lock its edges in another order.
    """
    if subjects:
        await connection.execute(QUERIES["lock_subjects"], {"ids": sorted(subjects)})


async def find_stated(connection: Connection, entities: Collection[UUID]) -> set[UUID]:
    """Return those of the entities of which something is stated that can end."""
    cursor = await connection.execute(QUERIES["find_stated"], {"ids": sorted(entities), **STATED_RELATIONS})
    return {row["from_id"] async for row in cursor}


async def settle_edges(connection: Connection, subjects: Collection[UUID]) -> None:
    """Decide anew when the edges of these entities hold, and store it.

    Args:
        connection: Inside the transaction that changed their evidence, with the subjects locked.
        subjects: The entities that the edges start from.
    """
    if not subjects:
        return
    wanted = {"ids": sorted(subjects), **STATED_RELATIONS}
    cursor = await connection.execute(QUERIES["find_claims"], wanted)
    claims: defaultdict[UUID, list[Claim]] = defaultdict(list)
    async for row in cursor:
        claims[row.pop("from_id")].append(Claim(**row))
    decided = {id_: held for told in claims.values() for id_, held in decide_validities(told).items()}
    if decided:
        rows = {
            "ids": list(decided),
            "begins": [held.valid_from for held in decided.values()],
            "ends": [held.valid_to for held in decided.values()],
            "replacing": [held.replaced_by for held in decided.values()],
            "before": [_multirange(held.before) for held in decided.values()],
        }
        await connection.execute(QUERIES["put_validities"], rows)


def _multirange(intervals: Sequence[tuple[datetime, datetime]]) -> str:
    """Return intervals as Postgres reads them; one that ends where it began is none."""
    spans = (f"[{begin.isoformat()},{end.isoformat()})" for begin, end in intervals if begin < end)
    return f"{{{','.join(spans)}}}"


@dataclass(frozen=True, slots=True)
class Statements:
    """The statements that an edge rests on.

    Args:
        owners: Whose they are; ``None`` for shared ones.
        latest: When the last one was made.
    """

    owners: frozenset[str | None]
    latest: datetime


async def read_statements(pool: Pool, id_: UUID) -> Statements:
    """Return the statements that an edge rests on.

    Raises:
        NotFound: If it is gone.
    """
    row = await fetch_row(pool, QUERIES["read_statements"], {"id": id_})
    if row is None:
        raise NotFound("fact", str(id_))
    return Statements(frozenset({*(row["users"] or ()), *([None] if row["is_shared"] else [])}), row["latest"])


async def replace_edges(
    connection: Connection, scope: Scope, old: Collection[UUID], new: UUID, at: datetime
) -> dict[UUID, UUID]:
    """Record that edges were replaced by another; return those that held until then, with the entities they start from.

    Args:
        connection: Inside the transaction that stored the new edge.
        scope: Where all of them are; one user's replaces nothing that others state.
        old: The edges that end.
        new: The edge in their place.
        at: When.

    Raises:
        NotFound: If one of them is not there.
        InvalidInput: If one of them began only later.
    """
    parameters = {**scope_parameters(scope), "old": sorted(old), "new": new, "at": at}
    found = await connection.execute(QUERIES["find_replaceable"], parameters)
    rows = {row["id"]: row async for row in found}
    subject = rows.pop(new)["from_id"]
    for id_ in old:
        if id_ not in rows:
            raise NotFound("fact", str(id_))
        if (began := rows[id_]["valid_from"]) > at:
            reason = f"is {at.isoformat()}, but fact {id_}, which is to be replaced, began at {began.isoformat()}"
            raise InvalidInput("valid_from", f"{reason}; name that moment or a later one, or delete what never held")
    subjects = {id_: row["from_id"] for id_, row in rows.items() if row["valid_to"] is None or row["valid_to"] >= at}
    await lock_subjects(connection, {subject, *subjects.values()})
    await connection.execute(QUERIES["begin_again"], parameters)
    await connection.execute(QUERIES["replace_edges"], {**parameters, "old": sorted(subjects)})
    await settle_edges(connection, {subject, *subjects.values()})
    return subjects


async def restate_edge(connection: Connection, scope: Scope, id_: UUID, source: str, at: datetime) -> None:
    """Let an edge begin when a source says that stated another beginning before.

    Within the time in which it held by that word, the source corrects the beginning. After that time the edge begins
    again, in the place of the one that took its own.

    Args:
        connection: Inside the transaction that stored the statement.
        scope: Where the edge is.
        id_: The edge.
        source: As it counts.
        at: When the edge begins.

    Raises:
        Conflict: If the edge held several times, or was taken back: a source has one beginning of it.
    """
    parameters = {**scope_parameters(scope), "id": id_, "source": source, "at": at}
    said = await (await connection.execute(QUERIES["find_statement"], parameters)).fetchone()
    if said is None or at in said["begins"]:
        return
    end = next((end for end in said["ends"] if end is None or end > said["seen_at"]), said["ends"][-1])
    if end is None or at < end:
        await lock_subjects(connection, {said["from_id"]})
        await connection.execute(QUERIES["move_statement"], parameters)
        await settle_edges(connection, {said["from_id"]})
        return
    remedy = "state this with another source (POST /v1/facts)"
    last = said["ends"][-1]
    if last is None or at < last:
        raise Conflict(f"fact {id_} began again on {said['begins'][-1].isoformat()}; {remedy}")
    successor = await (await connection.execute(QUERIES["find_successor"], parameters)).fetchone()
    if (
        successor is not None
        and successor["from_id"] == said["from_id"]
        and exclude_each_other(successor["type"], said["type"])
    ):
        with suppress(NotFound):  # Others state the one in its place, which one user alone ends for nobody.
            await replace_edges(connection, scope, [successor["id"]], id_, at)
            return
    raise Conflict(f"fact {id_} ended on {last.isoformat()}; {remedy}")
