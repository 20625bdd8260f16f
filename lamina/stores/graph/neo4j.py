"""The graph store on Neo4j, through its driver."""

import logging
import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache, partial
from typing import Any

import neo4j
from neo4j.exceptions import AuthError, ClientError, ConfigurationError, DriverError, Forbidden, Neo4jError

from lamina.aio.deadline import deadline
from lamina.aio.single_flight import SingleFlight
from lamina.errors import Misconfigured, Unavailable
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.store import CypherGraph, Dialect, statement
from lamina.stores.graph.values import Parameters, Row

PART = "graph"
CONNECT_TIMEOUT_S = 2.0
WRITE_TIMEOUT_S = 30.0
LONG_READ_TIMEOUT_S = 30.0
# A read that its caller gave up goes on for so long: the next one that asks the same waits for it.
LATE_READ_TIMEOUT_S = 10.0
# Neo4j compiles the expressions of a plan when it meets it for the tenth time.
USES_UNTIL_COMPILED = 12
# A deadlock and a change of the leader are over soon; one that lasts longer is reported, and the outbox tries again.
RETRY_WRITES_FOR_S = 5.0
# Long enough for connections that a restart of the server broke; a search goes on without one that is gone.
RETRY_READS_FOR_S = 0.1
FIRST_RETRY_AFTER_S = 0.05
# The server ends a statement itself at its deadline; the client waits a little longer for the answer.
GRACE_S = 0.1
_SCHEMA = ("unique_nodes", "index_tenants")
_MADE_MEANWHILE = "Neo.ClientError.Schema.EquivalentSchemaRuleAlreadyExists"
_RATE_LIMIT = "Neo.ClientError.Security.AuthenticationRateLimit"
_NO_DATABASE = "Neo.ClientError.Database.DatabaseNotFound"
GIVEN = "given"
"""The name of the one parameter."""
_PARAMETER = re.compile(r"\$(\w+)")
_PLAIN_INDEX = "Neo.ClientError.Schema.IndexAlreadyExists"


class Neo4jEngine:
    """Runs Cypher on a Neo4j server or cluster; made in any thread, used in one event loop.

    Every statement is a transaction of its own that is repeated after a fault that passes: a deadlock, a lost
    connection, another leader. All of them may be.

    Reads go to the leader, which shows whatever was applied, by this process or another. Where the settings send
    them to the replicas, they wait there for what this process applied itself: its bookmarks tell how far that is.

    A server plans a statement when it meets it first, in 0.3 to 2.4 s, once more for every size class of a list and
    every type among its parameters, and again when its statistics moved. So all parameters are in one map, which has
    one type whatever is in it, and a read that is late, as one that is planned may be, goes on for those that ask the
    same. Half of the connections at most have such reads.

    Args:
        settings: Where it is and who connects.
        read_deadline_s: Seconds after which a read is given up, by the server too.

    Raises:
        Misconfigured: If the URL is none of Neo4j's.
    """

    dialect: Dialect = "neo4j"

    def __init__(self, settings: Neo4jServerSettings, *, read_deadline_s: float) -> None:
        # Each statement would be answered with the advice to spell its subquery in a way that FalkorDB does not know.
        # The driver's own filter would do, but makes it refuse servers before 5.7.
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        self._settings = settings
        self._driver = _driver(settings)
        self._read_deadline_s = read_deadline_s
        self._applied = neo4j.AsyncGraphDatabase.bookmark_manager()
        self._is_indexed = False
        self._is_planned = False
        self._writes = 0
        self._patient = 0
        self._planning: SingleFlight[None, None] = SingleFlight()
        self._reads: SingleFlight[tuple[str, str, int], Sequence[Row]] = SingleFlight()

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement."""
        if is_long:
            return await self._read(text, parameters, LONG_READ_TIMEOUT_S)
        # One from before a change of this process may not know of it.
        name = (text, repr(sorted(parameters.items())), self._writes)
        async with deadline(PART, self._read_deadline_s + GRACE_S):
            return await self._reads.run(name, partial(self._read_patiently, text, parameters))

    async def plan(self, statements: Mapping[str, Parameters]) -> None:
        """Have the server plan statements that read, by running them, unless it has since the last lost connection."""
        if not self._is_planned:
            # It goes on when a caller gives up: a health check waits for a second.
            await self._planning.run(None, partial(self._plan, statements))

    async def _plan(self, statements: Mapping[str, Parameters]) -> None:
        await self.index_nodes()
        for text, parameters in statements.items():
            for _ in range(USES_UNTIL_COMPILED):
                await self._read(text, parameters, LONG_READ_TIMEOUT_S)
        self._is_planned = True

    async def _read_patiently(self, text: str, parameters: Parameters) -> Sequence[Row]:
        if self._patient >= self._settings.connections // 2:
            return await self._read(text, parameters, self._read_deadline_s)
        self._patient += 1
        try:
            return await self._read(text, parameters, max(LATE_READ_TIMEOUT_S, self._read_deadline_s))
        finally:
            self._patient -= 1

    async def _read(self, text: str, parameters: Parameters, timeout_s: float) -> Sequence[Row]:
        work = neo4j.unit_of_work(timeout=timeout_s)(_rows)
        call = self._call(text, parameters)
        async with self._answered(timeout_s + GRACE_S), self._session(RETRY_READS_FOR_S) as session:
            if self._settings.reads == "replicas":
                return await session.execute_read(work, *call)
            return await session.execute_write(work, *call)

    def _call(self, text: str, parameters: Parameters) -> tuple[str, dict[str, Any]]:
        if self.dialect == "neo4j" and parameters:
            return _of_one_map(text), {GIVEN: dict(parameters)}
        return text, dict(parameters)

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement."""
        self._writes += 1
        work = neo4j.unit_of_work(timeout=WRITE_TIMEOUT_S)(_run)
        try:
            async with self._answered(WRITE_TIMEOUT_S), self._session(RETRY_WRITES_FOR_S) as session:
                await session.execute_write(work, *self._call(text, parameters))
        except Unavailable:
            # A database that was restored as it was earlier would be waited for in vain.
            self._applied = neo4j.AsyncGraphDatabase.bookmark_manager()
            raise

    async def index_nodes(self) -> None:
        """Make ids unique and index the tenants, once a process; Neo4j loses neither."""
        if self._is_indexed:
            return
        for name in _SCHEMA:
            await self._make(statement(name, self.dialect))
        self._is_indexed = True

    async def flush(self) -> None:
        """Return at once: a commit of Neo4j is on its disk."""

    async def close(self) -> None:
        """Release the connections."""
        await self._planning.close()
        await self._reads.close()
        await self._driver.close()

    async def _make(self, text: str) -> None:
        try:
            await self.write(text, {})
        except Unavailable as error:
            if _code(error.__cause__) != _MADE_MEANWHILE:
                raise

    def _session(self, retry_for_s: float) -> neo4j.AsyncSession:
        return self._driver.session(
            database=self._settings.database,
            bookmark_manager=self._applied if self._settings.reads == "replicas" else None,
            max_transaction_retry_time=retry_for_s,
        )

    @asynccontextmanager
    async def _answered(self, deadline_s: float) -> AsyncIterator[None]:
        try:
            async with deadline(PART, deadline_s):
                yield
        except (Neo4jError, DriverError, OSError) as error:
            # A server that was started again has planned nothing, and may be empty; one that answers has not gone.
            if not isinstance(error, Neo4jError):
                self._is_planned = self._is_indexed = False
            raise refusal(error, self._settings) or Unavailable(PART, f"{type(error).__name__}: {error}") from error


def neo4j_graph(settings: Neo4jServerSettings, *, read_deadline_s: float) -> CypherGraph:
    """Return the graph store of a Neo4j server; its first call connects.

    Raises:
        Misconfigured: If the URL is none of Neo4j's.
    """
    return CypherGraph(Neo4jEngine(settings, read_deadline_s=read_deadline_s))


def refusal(error: BaseException, settings: Neo4jServerSettings) -> Misconfigured | None:
    """Return the setting that an operator has to change; ``None`` if a retry may help."""
    who, where = f"the user {settings.user!r}", f"the database {settings.database!r}"
    if isinstance(error, AuthError) or _code(error) == _RATE_LIMIT:
        return Misconfigured(f"neo4j refuses {who}", "correct graph.user and graph.password (LAMINA_GRAPH__PASSWORD)")
    if isinstance(error, Forbidden):
        remedy = f"let it read, write, and make indexes and constraints in {where}"
        return Misconfigured(f"neo4j allows {who} too little: {error.message}", remedy)
    if _code(error) == _NO_DATABASE:
        return Misconfigured(f"neo4j has not {where}", "create it, or correct graph.database")
    if _code(error) == _PLAIN_INDEX:
        return Misconfigured("neo4j has an index on :Node(id) that is no constraint", "drop that index")
    if isinstance(error, ConfigurationError):
        return Misconfigured(f"neo4j cannot be spoken with: {error}", "correct graph.url")
    return None


def _driver(settings: Neo4jServerSettings) -> neo4j.AsyncDriver:
    try:
        return neo4j.AsyncGraphDatabase.driver(
            settings.url,
            auth=(settings.user, settings.password.get_secret_value()),
            max_connection_pool_size=settings.connections,
            connection_acquisition_timeout=CONNECT_TIMEOUT_S,
            connection_timeout=CONNECT_TIMEOUT_S,
            initial_retry_delay=FIRST_RETRY_AFTER_S,
        )
    except ConfigurationError:  # Its text may tell the password.
        remedy = "write bolt://host:7687, or neo4j://host:7687 for a cluster; user and password have their own settings"
        raise Misconfigured("graph.url is not as Neo4j's driver takes it", remedy) from None


@cache
def _of_one_map(text: str) -> str:
    """Return a statement that takes its parameters from one map."""
    return _PARAMETER.sub(rf"${GIVEN}.\1", text)


async def _rows(transaction: neo4j.AsyncManagedTransaction, text: str, parameters: dict[str, Any]) -> list[Row]:
    result = await transaction.run(text, parameters)
    return [record.values() async for record in result]


async def _run(transaction: neo4j.AsyncManagedTransaction, text: str, parameters: dict[str, Any]) -> None:
    result = await transaction.run(text, parameters)
    await result.consume()


def _code(error: BaseException | None) -> str | None:
    return error.code if isinstance(error, ClientError) else None
