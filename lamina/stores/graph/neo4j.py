"""The graph store on Neo4j, through its driver."""

import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import neo4j
from neo4j.exceptions import AuthError, ClientError, ConfigurationError, DriverError, Forbidden, Neo4jError

from lamina.aio.deadline import deadline
from lamina.errors import Misconfigured, Unavailable
from lamina.settings.stores import Neo4jServerSettings
from lamina.stores.graph.store import CypherGraph, Dialect, statement
from lamina.stores.graph.values import Parameters, Row

PART = "graph"
CONNECT_TIMEOUT_S = 2.0
WRITE_TIMEOUT_S = 30.0
LONG_READ_TIMEOUT_S = 30.0
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
_PLAIN_INDEX = "Neo.ClientError.Schema.IndexAlreadyExists"


class Neo4jEngine:
    """Runs Cypher on a Neo4j server or cluster; made in any thread, used in one event loop.

    Every statement is a transaction of its own that is repeated after a fault that passes: a deadlock, a lost
    connection, another leader. All of them may be.

    Reads go to the leader, which shows whatever was applied, by this process or another. Where the settings send
    them to the replicas, they wait there for what this process applied itself: its bookmarks tell how far that is.

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

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement."""
        deadline_s = LONG_READ_TIMEOUT_S if is_long else self._read_deadline_s
        work = neo4j.unit_of_work(timeout=deadline_s)(_rows)
        async with self._answered(deadline_s + GRACE_S), self._session(RETRY_READS_FOR_S) as session:
            if self._settings.reads == "replicas":
                return await session.execute_read(work, text, dict(parameters))
            return await session.execute_write(work, text, dict(parameters))

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement."""
        work = neo4j.unit_of_work(timeout=WRITE_TIMEOUT_S)(_run)
        try:
            async with self._answered(WRITE_TIMEOUT_S), self._session(RETRY_WRITES_FOR_S) as session:
                await session.execute_write(work, text, dict(parameters))
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


async def _rows(transaction: neo4j.AsyncManagedTransaction, text: str, parameters: dict[str, Any]) -> list[Row]:
    result = await transaction.run(text, parameters)
    return [record.values() async for record in result]


async def _run(transaction: neo4j.AsyncManagedTransaction, text: str, parameters: dict[str, Any]) -> None:
    result = await transaction.run(text, parameters)
    await result.consume()


def _code(error: BaseException | None) -> str | None:
    return error.code if isinstance(error, ClientError) else None
