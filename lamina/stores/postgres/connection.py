"""Connections to Postgres: one pool a process, and transactions that are repeated after a deadlock."""

import select
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, Literal, TypeVar

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection
from psycopg.rows import DictRow, dict_row
from psycopg_pool import AsyncConnectionPool
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lamina.core.scope import Scope
from lamina.errors import InvalidInput, Unavailable
from lamina.settings import PoolSettings
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("connection.sql")

Connection = AsyncConnection[DictRow]
Pool = AsyncConnectionPool[Connection]
Result = TypeVar("Result")
Plans = Literal["custom", "generic"]
Pooling = Literal["session", "transaction"]

MAX_ATTEMPTS = 6
# How long to wait for a connection while the server is known to be down.
OUTAGE_TIMEOUT_S = 1.0


def scope_parameters(scope: Scope) -> dict[str, Any]:
    """Return the ids of a scope under the names of the statements' parameters."""
    return {
        "tenant": scope.tenant,
        "workspace": scope.workspace,
        "namespace": scope.namespace,
        "user_id": scope.user,
        "agent_id": scope.agent,
        "session_id": scope.session,
        "swarm_id": scope.swarm,
    }


class OutageAwarePool(AsyncConnectionPool[Connection]):
    """A pool that gives up after :data:`OUTAGE_TIMEOUT_S` while its server is down, so that requests fail early.

    The server counts as down once an attempt to connect has failed since the pool last gave out a connection. While all
    connections are merely in use, a caller waits for the configured timeout.
    """

    _failed_before = 0

    @property
    def is_down(self) -> bool:
        """Whether an attempt to connect failed since the last connection was given out."""
        return self._failures() > self._failed_before

    def _failures(self) -> int:
        return self.get_stats().get("connections_errors", 0)

    async def getconn(self, timeout: float | None = None) -> Connection:  # noqa: ASYNC109 - the pool's own
        """Return a connection.

        Raises:
            PoolTimeout: If none is free in time.
        """
        timeout_s = self.timeout if timeout is None else timeout
        connection = await super().getconn(min(timeout_s, OUTAGE_TIMEOUT_S) if self.is_down else timeout_s)
        # The pool only counts failures up, so that a connection given out is the sign that the server is back.
        self._failed_before = self._failures()
        return connection


class TransactionPool(OutageAwarePool):
    """A pool behind PgBouncer in transaction mode, where a session of the server lasts for one transaction.

    So every connection is given out inside a transaction that makes the session's settings itself, and no statement is
    prepared.
    """


def new_pool(url: str, settings: PoolSettings, *, plans: Plans = "custom", pooling: Pooling = "session") -> Pool:
    """Return a closed pool; open it inside the event loop that uses it.

    A connection that was closed from the other side is noticed when it is given out, before a statement fails on it.

    Args:
        url: The database.
        settings: How many connections.
        plans: ``custom`` plans each execution for its values: the best plan depends on the size of the scope.
            ``generic`` plans a statement once: for a small one by primary keys, planning takes longer than execution.
        pooling: ``session`` where a connection has a session of the server, ``transaction`` where it has one for each
            transaction, as behind PgBouncer in transaction mode. There each execution is planned.
    """
    by_session = pooling == "session"
    return (OutageAwarePool if by_session else TransactionPool)(
        url,
        min_size=settings.min_size,
        max_size=settings.max_size,
        timeout=settings.timeout_s,
        reconnect_timeout=settings.timeout_s,
        open=False,
        kwargs={
            "row_factory": dict_row,
            "autocommit": True,
            "connect_timeout": 5,
            "application_name": "lamina",
            # A prepared statement belongs to a session of the server, which PgBouncer may give to another client.
            "prepare_threshold": 5 if by_session else None,
        },
        configure=partial(_configure, plans=plans) if by_session else register_vector_async,
        check=_check,
    )


async def _check(connection: Connection) -> None:
    """Ask the server only where its socket has something to read: a closed connection has, one that waits has not.

    Of the 27 statements of a search, 14 were such questions.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        await AsyncConnectionPool.check_connection(connection)


async def _configure(connection: Connection, plans: Plans) -> None:
    await connection.execute(QUERIES["set_for_session"])
    await connection.execute(f"SET plan_cache_mode = force_{plans}_plan".encode())
    await register_vector_async(connection)


@asynccontextmanager
async def connect(pool: Pool) -> AsyncIterator[Connection]:
    """Take a connection from the pool: in autocommit, or inside a transaction from a :class:`TransactionPool`.

    Raises:
        InvalidInput: If a value is too long for an index: no retry would help.
        Unavailable: If none is free in time, or the server does not answer.
    """
    with _translate_errors():
        async with _take(pool, begin=False) as connection:
            yield connection


async def in_transaction(pool: Pool, act: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Run a function in a transaction and return its result; after a deadlock, run it again.

    Raises:
        InvalidInput: If a value is too long for an index: no retry would help.
        Unavailable: If the server does not answer, or the deadlock outlives six attempts.
    """

    async def attempt() -> Result:
        async with _take(pool, begin=True) as connection:
            return await act(connection)

    retrying = AsyncRetrying(
        retry=retry_if_exception_type((psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)),
        stop=stop_after_attempt(MAX_ATTEMPTS),
        # Up to 0.04 s after the first attempt, twice as much after each further one: two rivals meet again seldom.
        wait=wait_random_exponential(multiplier=0.04),
        reraise=True,
    )
    with _translate_errors():
        return await retrying(attempt)


@asynccontextmanager
async def _take(pool: Pool, *, begin: bool) -> AsyncIterator[Connection]:
    # A pool belongs to the event loop that first uses it; constructors run before there is one.
    if pool.closed:
        await pool.open()
    async with pool.connection() as connection:
        if isinstance(pool, TransactionPool):
            # It begins a transaction and makes the settings of a session in one round trip; the pool ends it.
            await connection.execute(QUERIES["begin"])
            yield connection
        elif begin:
            async with connection.transaction():
                yield connection
        else:
            yield connection


@contextmanager
def _translate_errors() -> Iterator[None]:
    try:
        yield
    except psycopg.errors.ProgramLimitExceeded as error:
        raise InvalidInput("request", "holds a value too long to index; shorten it") from error
    except psycopg.OperationalError as error:  # PoolTimeout is one.
        raise Unavailable("postgres", str(error).strip().split("\n")[0] or type(error).__name__) from error


def connect_directly(url: str) -> psycopg.Connection[DictRow]:
    """Open a blocking connection in autocommit, for commands and for the start of the service."""
    return psycopg.connect(url, autocommit=True, row_factory=dict_row)


async def listen(url: str, channel: str, *, name: str, lock: int | None = None) -> Connection:
    """Open a connection of its own that is notified on a channel.

    Args:
        url: The database; not that of a pooler in transaction mode.
        channel: One of ours, never from input.
        name: Of the connection, as the server lists it.
        lock: An advisory lock to wait for, and to hold for as long as the connection is open.
    """
    connection = await AsyncConnection[DictRow].connect(
        url, autocommit=True, connect_timeout=5, row_factory=dict_row, application_name=name
    )
    try:
        # Before it listens: notifications that come while it waits for the lock would pile up at the server.
        if lock is not None:
            await connection.execute("SELECT pg_advisory_lock(%s)", (lock,))
        await connection.execute(f"LISTEN {channel}".encode())
    except BaseException:  # Also a cancellation while it waits for the lock.
        await connection.close()
        raise
    return connection
