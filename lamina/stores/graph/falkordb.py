"""The graph store on FalkorDB, through its own client."""

import asyncio
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import cache
from importlib import resources
from typing import Any, cast

from falkordb.asyncio.graph import AsyncGraph
from redis.asyncio import BlockingConnectionPool, Redis
from redis.asyncio.retry import Retry
from redis.backoff import ExponentialBackoff
from redis.exceptions import AuthenticationError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError

from lamina.aio.deadline import deadline
from lamina.core.erasures import Remnant
from lamina.errors import Misconfigured, Unavailable
from lamina.stores.graph.store import CypherGraph, Dialect, statement
from lamina.stores.graph.values import Parameters, Row

logger = logging.getLogger(__name__)
GRAPH = "lamina"
FLUSHED = "lamina:flushed"
BUILD = "lamina:build"
INSTALLATION = "lamina:installation"
MARK = "lamina:mark"
PART = "graph"
CONNECT_TIMEOUT_S = 2.0
WRITE_TIMEOUT_S = 30.0
LONG_READ_TIMEOUT_S = 30.0
COMPACT_TIMEOUT_S = 600.0
STEP_S = 0.05
TELEMETRY = "CMD_INFO"
TELEMETRY_DELAY_S = 1.0
# The server ends a statement itself at its deadline; the client waits a little longer for the answer.
GRACE_S = 0.1


class FalkorDBEngine:
    """Runs Cypher on a graph of a FalkorDB server; made in any thread, used in one event loop.

    Args:
        client: The server; one to be made anew for each event loop.
        graph: Key of the graph.
        read_deadline_s: Seconds after which a read is given up, by the server too.
    """

    dialect: Dialect = "falkordb"

    def __init__(self, client: Any, graph: str = GRAPH, *, read_deadline_s: float) -> None:
        self._client = client
        self._graph: Any = AsyncGraph(client, graph)
        self._read_deadline_s = read_deadline_s

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement; none from a server that knows of no graph yet."""
        deadline_s = LONG_READ_TIMEOUT_S if is_long else self._read_deadline_s
        timeout_ms = max(1, int(deadline_s * 1000))
        async with _answered(deadline_s + GRACE_S):
            try:
                result = await self._graph.ro_query(text, dict(parameters), timeout=timeout_ms)
            except ResponseError as error:
                if "empty key" not in str(error):
                    raise
                return []
            return cast("Sequence[Row]", result.result_set)

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement."""
        async with _answered(WRITE_TIMEOUT_S):
            await self._graph.query(text, dict(parameters))

    async def index_nodes(self) -> None:
        """Make the index over the ids of nodes; a server that was started empty meanwhile lacks it, unnoticed."""
        async with _answered(WRITE_TIMEOUT_S):
            try:
                await self._graph.query(statement("index_nodes", self.dialect))
            except ResponseError as error:
                if "already indexed" not in str(error):
                    raise

    async def plan(self, statements: Mapping[str, Parameters]) -> None:
        """Return at once: it plans in a millisecond."""

    async def flush(self) -> None:
        """Return when everything written so far is on the server's disk.

        A server without an append-only file has no such moment: then the call returns at once, with a warning.
        """
        async with _answered(WRITE_TIMEOUT_S), self._client.client() as one:
            # The server waits for the writes of the asking connection alone; of this one, all before are older.
            await one.set(FLUSHED, 1)
            try:
                written, _ = await one.execute_command("WAITAOF", 1, 0, int(WRITE_TIMEOUT_S * 1000))
            except ResponseError as error:
                if "appendonly is disabled" not in str(error):
                    raise
                logger.warning("graph: the server keeps no append-only file, a crash of it loses what was applied")
                return
        if not written:
            raise Unavailable(PART, f"the server has not written to its disk within {WRITE_TIMEOUT_S:g} s")

    async def close(self) -> None:
        """Release the connections."""
        await self._client.aclose()


class FalkorDBGraph(CypherGraph):
    """The graph store of a FalkorDB server, which can be rebuilt beside itself.

    Args:
        client: The server; one to be made anew for each event loop.
        read_deadline_s: Seconds after which a read is given up, by the server too.
    """

    def __init__(self, client: Any, *, read_deadline_s: float) -> None:
        self._client = client
        self._read_deadline_s = read_deadline_s
        super().__init__(FalkorDBEngine(client, read_deadline_s=read_deadline_s))

    def beside(self, build: int) -> CypherGraph:
        """Return the store of a build, which no search reads yet; its first changes create it.

        Args:
            build: From 1; a later one is higher.
        """
        return CypherGraph(FalkorDBEngine(self._client, _key(build), read_deadline_s=self._read_deadline_s))

    async def switch(self, build: int) -> None:
        """Have searches use the store of the build from now on, and give up those before; idempotent.

        Queries that run are answered from the graph that they began on. A build that took no change leaves the store
        empty; one before the present one changes nothing.

        Raises:
            Unavailable: If the store does not answer; the switch is made or not, as a second call will find.
        """
        async with _answered(WRITE_TIMEOUT_S):
            await self._client.eval(_switch(), 3, _key(build), GRAPH, BUILD, build)
            graphs = [key async for key in self._client.scan_iter(match=f"{GRAPH}:*", _type="graphdata")]
            numbers = {key: key.removeprefix(f"{GRAPH}:") for key in graphs}
            if earlier := [key for key, number in numbers.items() if number.isdecimal() and int(number) < build]:
                await self._client.delete(*earlier)
        await self.flush()

    async def installation(self) -> str | None:
        """Return the identity beside the graphs; ``None`` if there is none."""
        async with _answered(WRITE_TIMEOUT_S):
            return cast("str | None", await self._client.get(INSTALLATION))

    async def belong_to(self, installation: str) -> None:
        """Write the identity beside the graphs: a build replaces all of a graph."""
        async with _answered(WRITE_TIMEOUT_S):
            await self._client.set(INSTALLATION, installation)

    async def mark(self) -> int:
        """Return the number beside the graphs; 0 if there is none."""
        async with _answered(WRITE_TIMEOUT_S):
            return int(await self._client.get(MARK) or 0)

    async def set_mark(self, mark: int) -> None:
        """Write the number beside the graphs: a build replaces all of a graph."""
        async with _answered(WRITE_TIMEOUT_S):
            await self._client.set(MARK, mark)

    async def compact(self, tenant: str) -> Sequence[Remnant]:  # noqa: ARG002 - one file for all
        """Rewrite the files of the server from its memory, and name one that refuses.

        Raises:
            Unavailable: If the store does not answer, or cannot write.
        """
        async with _answered(COMPACT_TIMEOUT_S):
            try:
                await self._write_anew()
            except ResponseError as error:
                ends = f"when the server has written its files anew; asked to, it said: {error}"
                return (Remnant("falkordb: files of the server", "what was deleted from the graph", ends),)
        return ()

    async def _write_anew(self) -> None:
        await self._delete_telemetry()
        state = await self._client.info("persistence")
        if int(state["aof_enabled"]):
            await self._rewrite("BGREWRITEAOF", "aof_rewrite_in_progress", "aof_last_bgrewrite_status")
        if int(state.get("rdb_saves", 0)) or not int(state["aof_enabled"]):
            await self._rewrite("BGSAVE", "rdb_bgsave_in_progress", "rdb_last_bgsave_status")

    async def _delete_telemetry(self) -> None:
        """Delete the stream of finished statements with their parameters; the server adds to it a moment later."""
        _, is_on = await self._client.execute_command("GRAPH.CONFIG", "GET", TELEMETRY)
        if is_on:
            await self._client.execute_command("GRAPH.CONFIG", "SET", TELEMETRY, "no")
            await asyncio.sleep(TELEMETRY_DELAY_S)
        streams = [key async for key in self._client.scan_iter(match=f"telemetry{{{GRAPH}*")]
        if streams:
            await self._client.delete(*streams)
        if is_on:
            await self._client.execute_command("GRAPH.CONFIG", "SET", TELEMETRY, "yes")

    async def _rewrite(self, command: str, running: str, outcome: str) -> None:
        """Run a command that works in the background, after one that runs already, and wait for its end."""
        await self._wait_while(running)
        await self._client.execute_command(command)
        # It may be put off until another one ends; then nothing runs for a moment.
        await asyncio.sleep(STEP_S)
        state = await self._wait_while(running)
        if state[outcome] != "ok":
            raise Unavailable(PART, f"{command} failed; see the server's log")

    async def _wait_while(self, running: str) -> Mapping[str, Any]:
        while True:
            state: Mapping[str, Any] = await self._client.info("persistence")
            scheduled = state.get("aof_rewrite_scheduled", 0)
            if not int(state[running]) and not (running.startswith("aof") and int(scheduled)):
                return state
            await asyncio.sleep(STEP_S)


def falkordb_graph(url: str, *, connections: int, read_deadline_s: float) -> FalkorDBGraph:
    """Return the graph store of a FalkorDB server; its first call connects.

    Args:
        url: ``redis://…``, ``rediss://…`` or ``unix:///path/of/socket``.
        connections: Most connections; callers wait their turn.
        read_deadline_s: Seconds after which a read is given up, by the server too.
    """
    pool = BlockingConnectionPool.from_url(
        url,
        max_connections=connections,
        timeout=CONNECT_TIMEOUT_S,
        decode_responses=True,
        socket_timeout=WRITE_TIMEOUT_S,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        # A restarted server is met once by each connection of before. Statements may be repeated.
        retry=Retry(ExponentialBackoff(cap=0.1, base=0.01), 3, supported_errors=(RedisConnectionError,)),
    )
    # Their client's own class asks the server about clusters, blocking, whenever it is made.
    return FalkorDBGraph(Redis.from_pool(pool), read_deadline_s=read_deadline_s)


@cache
def _switch() -> str:
    return resources.files(__package__).joinpath("switch.lua").read_text(encoding="utf-8")


def _key(build: int) -> str:
    return f"{GRAPH}:{build}"


@asynccontextmanager
async def _answered(deadline_s: float) -> AsyncIterator[None]:
    try:
        async with deadline(PART, deadline_s):
            yield
    except (RedisError, OSError) as error:
        if isinstance(error, AuthenticationError) or isinstance(error.__cause__, AuthenticationError):
            raise Misconfigured("falkordb refuses who connects", "correct user and password in graph.url") from error
        raise Unavailable(PART, f"{type(error).__name__}: {error}") from error
