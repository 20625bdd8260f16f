"""Connections to Postgres: one pool a process, and transactions that are repeated after a deadlock."""

import asyncio
import logging
import select
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeVar

import psycopg
from pgvector.psycopg import register_vector_async
from psycopg import AsyncConnection, waiting
from psycopg.abc import PQGen
from psycopg.pq import TransactionStatus
from psycopg.rows import AsyncRowFactory, DictRow, TupleRow, dict_row, tuple_row
from psycopg_pool import AsyncConnectionPool
from tenacity import AsyncRetrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from lamina.core.quotas import spending_tenant
from lamina.core.scope import Scope
from lamina.errors import InvalidInput, Unavailable, describe_error
from lamina.policies.limits.fair_turns import FairTurns
from lamina.settings.stores import PoolSettings
from lamina.stores.postgres.adapters import adapters
from lamina.stores.postgres.queries import load_queries

logger = logging.getLogger(__name__)
LOCK_WAIT_S = 2
LOCK_TRIES = 60
ADAPTERS = adapters()
QUERIES = load_queries("connection.sql")

Connection = AsyncConnection[DictRow]
Before = Callable[[Connection], Awaitable[None]]
"""Runs in a transaction before anything is written, and may refuse it."""
Result = TypeVar("Result")
Row = TypeVar("Row")
Plans = Literal["custom", "generic"]
Pooling = Literal["session", "transaction"]

MAX_ATTEMPTS = 6
# Of a pool of so many connections, every second one is for statements that are planned once: most of a search's.
LEAST_PARTED = 4
LOOKUP_SHARE = 2
# A server whose host is gone says nothing: after some 30 s its connections break, rather than after 15 minutes.
_NOTICES_LOSS = {"keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 4, "tcp_user_timeout": 30_000}
# How long to wait for a connection while the server is known to be down.
OUTAGE_TIMEOUT_S = 1.0
CANCEL_S = 0.25
"""How long a cancelled caller waits for the server to end its statement."""
_WAIT_INTERVAL_S = 0.1


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


class PooledConnection(AsyncConnection[DictRow]):
    """A connection that a cancelled caller leaves within :data:`CANCEL_S`.

    psycopg itself waits 10 s for a server that stands still, and a search would overrun its deadline by as much.
    """

    async def wait(self, gen: PQGen[Result], *args: Any, **options: Any) -> Result:
        """Run an operation; if the caller is cancelled meanwhile, have the server end it, or close the connection."""
        try:
            wishes = {"interval": _WAIT_INTERVAL_S, **options} if not args else options
            return await waiting.wait_async(gen, self.pgconn.socket, *args, **wishes)
        except (asyncio.CancelledError, KeyboardInterrupt, SystemExit):
            if self.pgconn.transaction_status == TransactionStatus.ACTIVE:
                await self._end(gen)
            raise

    async def _end(self, gen: PQGen[Any]) -> None:
        try:
            async with asyncio.timeout(CANCEL_S):
                await self.cancel_safe(timeout=CANCEL_S)
                await waiting.wait_async(gen, self.pgconn.socket, _WAIT_INTERVAL_S)
        except psycopg.errors.QueryCanceled:
            pass
        except BaseException as error:
            why = describe_error(error)
            logger.info("postgres: a cancelled statement does not end, its connection is closed: %s", why)
            self.pgconn.finish()
            if not isinstance(error, Exception):
                raise


class _WaitingByTenant(FairTurns[Any]):
    """Callers that wait for a connection, in turns of the tenants whose requests are worked on."""

    def append(self, caller: Any) -> None:
        """Add the caller in whose context this is called."""
        self.put(spending_tenant(), caller)

    def popleft(self) -> Any:
        """Remove the caller whose turn it is, and return it."""
        return self.take()


class OutageAwarePool(AsyncConnectionPool[Connection]):
    """A pool that gives up after :data:`OUTAGE_TIMEOUT_S` while its server is down, so that requests fail early.

    The server counts as down once an attempt to connect has failed since the pool last gave out a connection. While all
    connections are merely in use, a caller waits for the configured timeout, in turns of the tenants that wait.

    Attributes:
        lookups: The pool for look-ups by key, whose statements are planned once: of a search, planning took 6.4 ms of
            Postgres and execution 5.1. This pool itself where none is apart.
    """

    _failed_before = 0
    _lookups: "OutageAwarePool | None" = None

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._waiting: Any = _WaitingByTenant()  # In place of the pool's own row.

    @property
    def lookups(self) -> "OutageAwarePool":
        """Return the pool for look-ups by key."""
        return self._lookups or self

    def keep_apart(self, lookups: "OutageAwarePool") -> None:
        """Look rows up by key on the connections of another pool, which is closed with this one."""
        self._lookups = lookups

    async def close(self, timeout: float = 5.0) -> None:  # noqa: ASYNC109 - the pool's own
        """Close the connections."""
        if self._lookups is not None:
            await self._lookups.close(timeout)
        await super().close(timeout)

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

    def takes_at_once(self, connection: Connection) -> bool:
        """Report whether the return of a connection waits for nothing: no transaction, nor anybody else at the pool."""
        is_idle = connection.pgconn.transaction_status == TransactionStatus.IDLE
        return is_idle and not (self._waiting or self._lock.locked())


Pool = OutageAwarePool


class TransactionPool(OutageAwarePool):
    """A pool behind PgBouncer in transaction mode, where a session of the server lasts for one transaction.

    So every connection is given out inside a transaction that makes the session's settings itself, and no statement is
    prepared.
    """


def new_pool(url: str, settings: PoolSettings, *, plans: Plans = "custom", pooling: Pooling = "session") -> Pool:
    """Return a closed pool; open it inside the event loop that uses it.

    No connection is checked when it is given out: the statement that fails on a broken one is repeated where it may be.

    Args:
        url: The database.
        settings: How many connections; of four or more, half are kept for look-ups by key.
        plans: ``custom`` plans each execution for its values: the best plan depends on the size of the scope.
            ``generic`` plans a statement once: for a small one by primary keys, planning takes longer than execution.
        pooling: ``session`` where a connection has a session of the server, ``transaction`` where it has one for each
            transaction, as behind PgBouncer in transaction mode. There each execution is planned.
    """
    is_parted = plans == "custom" and pooling == "session" and settings.max_size >= LEAST_PARTED
    apart = settings.max_size // LOOKUP_SHARE if is_parted else 0
    most = settings.max_size - apart
    sizes = {"min_size": min(settings.min_size, most), "max_size": most}
    pool = _new_pool(url, settings.model_copy(update=sizes), plans, pooling)
    if apart:
        sizes = {"min_size": 0, "max_size": apart}
        pool.keep_apart(_new_pool(url, settings.model_copy(update=sizes), "generic", pooling))
    return pool


def _new_pool(url: str, settings: PoolSettings, plans: Plans, pooling: Pooling) -> OutageAwarePool:
    by_session = pooling == "session"
    return (OutageAwarePool if by_session else TransactionPool)(
        url,
        connection_class=PooledConnection,
        min_size=settings.min_size,
        max_size=settings.max_size,
        timeout=settings.timeout_s,
        reconnect_timeout=settings.timeout_s,
        open=False,
        kwargs={
            "context": ADAPTERS,
            "row_factory": dict_row,
            "autocommit": True,
            "connect_timeout": 5,
            **_NOTICES_LOSS,
            "application_name": "lamina",
            # A prepared statement belongs to a session of the server, which PgBouncer may give to another client.
            "prepare_threshold": 1 if by_session else None,
        },
        configure=partial(_configure, plans=plans) if by_session else register_vector_async,
    )


async def _configure(connection: Connection, plans: Plans) -> None:
    await connection.execute(QUERIES["set_for_session"])
    # A plan for all scopes would read the table of a large one from end to end for each small one.
    scans = "off" if plans == "generic" else "on"
    chosen = (
        f"set_config('plan_cache_mode', 'force_{plans}_plan', false), set_config('enable_seqscan', '{scans}', false)"
    )
    await connection.execute(f"SELECT {chosen}".encode())
    await register_vector_async(connection)


async def read_rows(
    pool: Pool, text: bytes, parameters: Mapping[str, Any] | None = None, *, by_key: bool = False
) -> list[DictRow]:
    """Run a statement that only reads and return its rows; one whose connection breaks is run once more.

    Args:
        pool: Connections to Postgres.
        text: The statement.
        parameters: Its parameters.
        by_key: Whether it looks rows up by their keys: then it is planned once for all values.

    Raises:
        Unavailable: If no connection is free in time, or the server does not answer.
    """
    return await _read(pool.lookups if by_key else pool, text, parameters, dict_row)


async def read_tuples(
    pool: Pool, text: bytes, parameters: Mapping[str, Any] | None = None, *, by_key: bool = False
) -> list[TupleRow]:
    """Do the same as :func:`read_rows`, for rows without names: most of a search's are made in a third of the time.

    Raises:
        Unavailable: If no connection is free in time, or the server does not answer.
    """
    return await _read(pool.lookups if by_key else pool, text, parameters, tuple_row)


async def _read(pool: Pool, text: bytes, parameters: Mapping[str, Any] | None, rows: AsyncRowFactory[Row]) -> list[Row]:
    async def read() -> list[Row]:
        async with _take(pool) as connection, connection.cursor(row_factory=rows, binary=True) as cursor:
            with _noticing_breaks(connection):
                await cursor.execute(text, parameters)
                return await cursor.fetchall()

    with _translate_errors():
        return await _repeated_after_break(pool, read)


@asynccontextmanager
async def connect(pool: Pool) -> AsyncIterator[Connection]:
    """Take a connection from the pool: in autocommit, or inside a transaction from a :class:`TransactionPool`.

    Nothing here can repeat the statements of the caller, so a connection that the server has closed is not given out.

    Raises:
        InvalidInput: If a value is too long for an index: no retry would help.
        Unavailable: If none is free in time, or the server does not answer.
    """
    with _translate_errors():
        async with _take(pool, must_be_open=True) as connection:
            yield connection


async def in_transaction(pool: Pool, act: Callable[[Connection], Awaitable[Result]]) -> Result:
    """Run a function in a transaction and return its result; after a deadlock, run it again.

    Once more also if the connection breaks before the commit is sent: then nothing is stored.

    Raises:
        InvalidInput: If a value is too long for an index: no retry would help.
        Unavailable: If the server does not answer, or the deadlock outlives six attempts.
    """

    async def attempt() -> Result:
        async with _take(pool) as connection:
            with _noticing_breaks(connection) as statements:
                # The connections of a pool behind PgBouncer are in one already, which that pool ends.
                async with nullcontext() if isinstance(pool, TransactionPool) else connection.transaction():
                    result = await act(connection)
                    statements.may_be_repeated = False  # The commit follows, of which nobody knows whether it arrived.
            return result

    retrying = AsyncRetrying(
        retry=retry_if_exception_type((psycopg.errors.DeadlockDetected, psycopg.errors.SerializationFailure)),
        stop=stop_after_attempt(MAX_ATTEMPTS),
        # Up to 0.04 s after the first attempt, twice as much after each further one: two rivals meet again seldom.
        wait=wait_random_exponential(multiplier=0.04),
        reraise=True,
    )
    with _translate_errors():
        return await _repeated_after_break(pool, partial(retrying, attempt))


class _BrokenConnectionError(psycopg.OperationalError):
    """A connection broke under statements that may be repeated."""


@dataclass(slots=True)
class _Statements:
    may_be_repeated: bool = True


@contextmanager
def _noticing_breaks(connection: Connection) -> Iterator[_Statements]:
    statements = _Statements()
    try:
        yield statements
    except psycopg.OperationalError as error:
        if connection.closed and statements.may_be_repeated:
            raise _BrokenConnectionError(str(error)) from error
        raise


async def _repeated_after_break(pool: Pool, act: Callable[[], Awaitable[Result]]) -> Result:
    try:
        return await act()
    except _BrokenConnectionError as error:
        logger.info("postgres: a connection broke, its statements are repeated: %s", error)
    # When a server ends, all of its connections break: the pool looks at those that are idle.
    await pool.check()
    return await act()


@asynccontextmanager
async def _take(pool: Pool, *, must_be_open: bool = False) -> AsyncIterator[Connection]:
    # A pool belongs to the event loop that first uses it; constructors run before there is one.
    if pool.closed:
        await pool.open()
    connection = await pool.getconn()
    while must_be_open and _is_closed_by_server(connection):
        await connection.close()
        await _give_back(pool, connection)
        connection = await pool.getconn()
    try:
        if isinstance(pool, TransactionPool):
            async with connection:
                # It begins a transaction and makes the settings of a session in one round trip; the pool ends it.
                with _noticing_breaks(connection):
                    await connection.execute(QUERIES["begin"])
                yield connection
        else:
            yield connection
    finally:
        await _give_back(pool, connection)


_RETURNS = set[asyncio.Task[None]]()


async def _give_back(pool: Pool, connection: Connection) -> None:
    """Return a connection to its pool, to the end also if the caller is cancelled meanwhile.

    A cancelled return waits for the pool's lock no more, and the pool never gets the connection: searches that ran out
    of time under load lost one after another until their tier answered nothing.
    """
    if pool.takes_at_once(connection):
        await pool.putconn(connection)
        return
    task = asyncio.create_task(pool.putconn(connection))
    _RETURNS.add(task)
    task.add_done_callback(_RETURNS.discard)
    await asyncio.shield(task)


def _is_closed_by_server(connection: Connection) -> bool:
    """Report whether its socket has something to read: a closed connection has, one that waits has not."""
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    return bool(waiting.poll(0))


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


def alter_table(connection: psycopg.Connection[DictRow], table: str, *statements: bytes) -> None:
    """Run statements that lock a table, in one transaction that lets the writes of others through while it waits.

    Raises:
        Unavailable: If the table stays locked by others for two minutes.
    """
    for _ in range(LOCK_TRIES):
        try:
            with connection.transaction():
                # Each write that comes after one that waits for this lock waits, too.
                connection.execute(f"SET LOCAL lock_timeout = '{LOCK_WAIT_S}s'".encode())
                for statement in statements:
                    connection.execute(statement)
        except psycopg.errors.LockNotAvailable:
            time.sleep(LOCK_WAIT_S / 4)
        else:
            return
    raise Unavailable("postgres", f"{table} was locked by others for {LOCK_TRIES * LOCK_WAIT_S} s")


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
