"""The graph store on Neo4j, through its driver."""

import asyncio
import logging
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import neo4j
from neo4j.exceptions import ClientError, DriverError, Neo4jError

from lamina.errors import Unavailable
from lamina.settings import Neo4jServerSettings
from lamina.stores.graph.store import CypherGraph, statement
from lamina.stores.graph.values import Parameters, Row

PART = "graph"
CONNECT_TIMEOUT_S = 2.0
WRITE_TIMEOUT_S = 30.0
LONG_READ_TIMEOUT_S = 30.0
# The server ends a statement itself at its deadline; the client waits a little longer for the answer.
GRACE_S = 0.1


class Neo4jEngine:
    """Runs Cypher on a Neo4j server; made in any thread, used in one event loop.

    Args:
        settings: Where it is and who connects.
        read_deadline_s: Seconds after which a read is given up, by the server too.
    """

    def __init__(self, settings: Neo4jServerSettings, *, read_deadline_s: float) -> None:
        # Each statement would be answered with the advice to spell its subquery in a way that FalkorDB does not know.
        logging.getLogger("neo4j.notifications").setLevel(logging.ERROR)
        self._driver = neo4j.AsyncGraphDatabase.driver(
            settings.url,
            auth=(settings.user, settings.password.get_secret_value()),
            max_connection_pool_size=settings.connections,
            connection_acquisition_timeout=CONNECT_TIMEOUT_S,
            connection_timeout=CONNECT_TIMEOUT_S,
        )
        self._database = settings.database
        self._read_deadline_s = read_deadline_s
        self._is_indexed = False

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement."""
        deadline_s = LONG_READ_TIMEOUT_S if is_long else self._read_deadline_s
        async with _answered(deadline_s + GRACE_S), self._session() as session:
            result = await session.run(neo4j.Query(text, timeout=deadline_s), dict(parameters))
            return [record.values() async for record in result]

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement."""
        async with _answered(WRITE_TIMEOUT_S), self._session() as session:
            result = await session.run(neo4j.Query(text, timeout=WRITE_TIMEOUT_S), dict(parameters))
            await result.consume()

    async def index_nodes(self) -> None:
        """Make the index over the ids of nodes, once a process; Neo4j loses none."""
        if self._is_indexed:
            return
        try:
            await self.write(statement("index_nodes"), {})
        except Unavailable as error:
            if not _is_there_already(error.__cause__):
                raise
        self._is_indexed = True

    async def flush(self) -> None:
        """Return at once: a commit of Neo4j is on its disk."""

    async def close(self) -> None:
        """Release the connections."""
        await self._driver.close()

    def _session(self) -> neo4j.AsyncSession:
        # With write access for reads too: a replica of a cluster would show what was applied only later.
        return self._driver.session(database=self._database, default_access_mode=neo4j.WRITE_ACCESS)


def neo4j_graph(settings: Neo4jServerSettings, *, read_deadline_s: float) -> CypherGraph:
    """Return the graph store of a Neo4j server, which is connected to at need."""
    return CypherGraph(Neo4jEngine(settings, read_deadline_s=read_deadline_s))


def _is_there_already(error: BaseException | None) -> bool:
    return isinstance(error, ClientError) and "already" in str(error)


@asynccontextmanager
async def _answered(deadline_s: float) -> AsyncIterator[None]:
    try:
        async with asyncio.timeout(deadline_s):
            yield
    except TimeoutError as error:
        raise Unavailable(PART, f"no answer within {deadline_s:g} s") from error
    except (Neo4jError, DriverError, OSError) as error:
        raise Unavailable(PART, f"{type(error).__name__}: {error}") from error
