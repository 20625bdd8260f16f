"""Stores of projections and their builds: a build takes its predecessor's place when it is full."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta

import psycopg
from psycopg.rows import DictRow

from lamina.core.tiers import ProjectionName
from lamina.errors import Misconfigured
from lamina.stores.postgres.connection import Pool, connect_directly
from lamina.stores.postgres.generations import Generation
from lamina.stores.postgres.outbox import enqueue_everything
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore, fetch_row, fetch_rows, run_statement
from lamina.text.words import WORDS_VERSION

QUERIES = load_queries("builds.sql")

# The last row of the outbox for a build whose memories are not enqueued yet.
UNBOUNDED = 2**63 - 1
# Replicas that find a store empty within this time of each other start together.
STARTS_APART = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Build:
    """A build in progress.

    Args:
        number: From 1, for each projection.
        pending: Memories that it still has to store.
    """

    projection: str
    number: int
    pending: int


@dataclass(frozen=True, slots=True)
class PreviousStore:
    """The store of a projection before another claim.

    Args:
        store: Its place; ``None`` if none was claimed.
        is_filled_lately: Whether everything was enqueued for it less than :data:`STARTS_APART` ago.
        pending: Memories of the projection in the outbox.
        is_given_up: Whether changes for it were deleted, since no service took them for long.
    """

    store: str | None
    is_filled_lately: bool
    pending: int
    is_given_up: bool = False

    def is_another(self, store: str) -> bool:
        """Report whether the projection was kept elsewhere."""
        return self.store not in (None, store)


class Builds(PostgresStore):
    """Reads and finishes builds."""

    async def asked(self, projection: ProjectionName) -> int | None:
        """Return the build that stores changes beside the searched store; ``None`` if there is none."""
        return await self._build(QUERIES["find_requested_build"], projection)

    async def full(self, projection: ProjectionName) -> int | None:
        """Return the build that has stored everything that existed when it was ordered; ``None`` if there is none."""
        return await self._build(QUERIES["find_full_build"], projection)

    async def finish(self, projection: ProjectionName, build: int) -> None:
        """Record that searches use the build, or that it is given up."""
        await self._run(QUERIES["finish_build"], projection=projection, build=build)

    async def under_way(self) -> Sequence[Build]:
        """Return every build in progress."""
        return [
            Build(row["projection"], row["build"], row["pending"]) for row in await self._rows(QUERIES["list_builds"])
        ]

    async def _build(self, query: bytes, projection: ProjectionName) -> int | None:
        row = await self._row(query, projection=projection, unbounded=UNBOUNDED)
        return None if row is None else int(row["build"])


def order_build(url: str, projection: ProjectionName) -> tuple[int, int]:
    """Order a build of a projection from the running service, beside the old store; return its number and size.

    The order is committed before the memories are read: from then on the indexer applies each change to both stores, so
    a memory that is written meanwhile is either read here or applied to both. A call that was cut off can be repeated.

    Raises:
        Misconfigured: If one is being built.
    """
    with connect_directly(url) as connection:
        parameters = {"projection": projection, "unbounded": UNBOUNDED}
        row = connection.execute(QUERIES["order_build"], parameters).fetchone()
        if row is None:
            raise Misconfigured(
                f"{projection} is being built already", "wait for it; `lamina status` shows how far it is"
            )
        with connection.transaction():
            count = _enqueue_all(connection, projection)
    return int(row["build"]), count


def order_outdated(url: str, projections: Sequence[ProjectionName]) -> bool:
    """Order builds of those projections whose stores hold the words of an earlier release.

    To be called by the process that applies changes: one of that release would build with the words that it knows.

    Returns:
        Whether none is left: one that is being built already has to be built once more afterwards.
    """
    parameters = {"projections": list(projections), "words_version": WORDS_VERSION}
    with connect_directly(url) as connection:
        outdated = connection.execute(QUERIES["find_outdated_words"], parameters).fetchall()
    is_done = True
    for row in outdated:
        try:
            order_build(url, row["projection"])
        except Misconfigured:
            is_done = False
            continue
        with connect_directly(url) as connection:
            connection.execute(QUERIES["mark_words"], parameters | {"projection": row["projection"]})
    return is_done


def claim_store(url: str, projection: ProjectionName, store: str, *, is_new: bool, is_shared: bool) -> bool:
    """Keep a projection in a store from now on; enqueue everything if the store may have missed changes.

    One transaction: a claim that fails leaves everything to the next one.

    Args:
        url: The database.
        projection: Its name.
        store: Its place from now on.
        is_new: Whether the store is empty, or does not answer.
        is_shared: Whether other processes may use the store, too, and claim it at the same time.

    Returns:
        Whether everything was enqueued.
    """
    parameters = {"projection": projection, "store": store, "apart": STARTS_APART, "words_version": WORDS_VERSION}
    with connect_directly(url) as connection, connection.transaction():
        connection.execute(QUERIES["make_store"], parameters)
        row = connection.execute(QUERIES["lock_store"], parameters).fetchone()
        assert row is not None  # noqa: S101 - it was made above
        previous = PreviousStore(row["store"], bool(row["is_filled_lately"]), row["pending"], row["is_given_up"])
        connection.execute(QUERIES["claim_store"], parameters)
        if not needs_filling(previous, store, is_new=is_new, is_shared=is_shared):
            return False
        connection.execute(QUERIES["begin_filling"], parameters)
        # A savepoint: the claim stays when the filling is rolled back.
        with connection.transaction() as filling:
            count = _enqueue_all(connection, projection)
            # A shared server that did not answer may have as much waiting for it as it would get now.
            is_sure = previous.is_another(store) or previous.is_given_up
            if is_shared and not is_sure and 0 < count <= previous.pending:
                raise psycopg.Rollback(filling)
            return True
        return False


def needs_filling(previous: PreviousStore, store: str, *, is_new: bool, is_shared: bool) -> bool:
    """Report whether a store may have missed changes and no other process has enqueued everything just now."""
    if previous.is_another(store) or previous.is_given_up:
        return True
    return is_new and not (is_shared and previous.is_filled_lately)


def _enqueue_all(connection: psycopg.Connection[DictRow], projection: ProjectionName) -> int:
    count = enqueue_everything(connection, projection)
    connection.execute(QUERIES["bound_build"], {"projection": projection})
    return count


def read_installation(url: str) -> str:
    """Return the identity of this installation, which its database got when it was made.

    Raises:
        Misconfigured: If it has none.
    """
    with connect_directly(url) as connection:
        row = connection.execute(QUERIES["read_installation"]).fetchone()
    if row is None:
        raise Misconfigured("archive_identity has no row", "insert one, with the first part of archived_notes.file")
    return str(row["id"])


def served_store(url: str, projection: ProjectionName) -> str | None:
    """Return the store in which the service keeps a projection; ``None`` before its first start."""
    with connect_directly(url) as connection:
        row = connection.execute(QUERIES["find_served_store"], {"projection": projection}).fetchone()
    return None if row is None else row["store"]


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """Whether a store is the one that changes are applied to.

    Args:
        is_active: Whether searches read its generation of vectors, and have done so since it was opened.
        is_here: Whether no other service keeps the projection elsewhere.
    """

    is_active: bool
    is_here: bool


async def read_store_status(
    pool: Pool, projection: ProjectionName, store: str, generation: Generation | None
) -> StoreStatus:
    """Read whether a store is the one that changes are applied to."""
    parameters = {
        "projection": projection,
        "store": store,
        "generation": generation and generation.number,
        "activations": generation and generation.activations,
    }
    row = await fetch_row(pool, QUERIES["read_store_status"], parameters)
    assert row is not None  # noqa: S101 - it has no FROM
    return StoreStatus(row["is_active"], row["is_here"])


def list_tenants(url: str) -> list[str]:
    """Return every tenant that has written a memory."""
    with connect_directly(url) as connection:
        return [row["tenant"] for row in connection.execute(QUERIES["list_tenants"])]


async def read_mark(pool: Pool, projection: ProjectionName) -> int | None:
    """Return the number of a projection's last flush; ``None`` if no service keeps it."""
    row = await fetch_row(pool, QUERIES["read_mark"], {"projection": projection})
    return None if row is None else int(row["mark"])


async def raise_mark(pool: Pool, projection: ProjectionName, mark: int) -> None:
    """Record the number of a flush."""
    await run_statement(pool, QUERIES["raise_mark"], {"projection": projection, "mark": mark})


async def tenants_of(pool: Pool) -> list[str]:
    """Return every tenant that has written a memory."""
    return [row["tenant"] for row in await fetch_rows(pool, QUERIES["list_tenants"])]
