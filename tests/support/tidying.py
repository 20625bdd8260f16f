"""What tests made on servers that outlive them, and its removal."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from qdrant_client import AsyncQdrantClient

from lamina.stores.graph.store import CypherGraph, Dialect, Engine, statement
from lamina.stores.graph.values import Parameters, Row
from lamina.stores.index.meilisearch.client import MeilisearchServer

MOST_INDEXES = 10_000
IDS_OF_A_STATEMENT = 1_000
REMOVED: Counter[str] = Counter()
"""How much of each kind this run has removed."""


async def remove_collections(client: AsyncQdrantClient, names: Collection[str]) -> int:
    """Remove the collections of these names and of their builds and parts; return how many there were."""
    found = [item.name for item in (await client.get_collections()).collections]
    made = [name for name in found if name.startswith(tuple(names))]
    for name in made:
        await client.delete_collection(name)
    REMOVED["collections of Qdrant"] += len(made)
    return len(made)


async def remove_indexes(server: MeilisearchServer, names: Collection[str]) -> int:
    """Remove the indexes of these names and of their builds; return how many there were."""
    found = (await server.ask("get", f"indexes?limit={MOST_INDEXES}"))["results"]
    made = [item["uid"] for item in found if item["uid"].startswith(tuple(names))]
    tasks = [int((await server.ask("delete", f"indexes/{uid}"))["taskUid"]) for uid in made]
    await server.succeeded(tasks, ignore=["index_not_found"])
    REMOVED["indexes of Meilisearch"] += len(made)
    return len(made)


class TidyEngine:
    """An engine that remembers which nodes it was given, and removes them.

    Args:
        engine: What runs the statements.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self.dialect: Dialect = engine.dialect
        self._given: set[str] = set()

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement."""
        return await self._engine.read(text, parameters, is_long=is_long)

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement, and remember its nodes."""
        self._given |= _ids(parameters)
        await self._engine.write(text, parameters)

    async def index_nodes(self) -> None:
        """Make the indexes, which stay: they hold nothing of a test."""
        await self._engine.index_nodes()

    async def plan(self, statements: Mapping[str, Parameters]) -> None:
        """Have the server plan statements."""
        await self._engine.plan(statements)

    async def flush(self) -> None:
        """Return when everything is durable."""
        await self._engine.flush()

    async def close(self) -> None:
        """Remove every node that was given, and release the connections."""
        given, self._given = self._given, set()
        try:
            await self.remove_nodes(given)
        finally:
            await self._engine.close()

    async def remove_nodes(self, ids: Iterable[str]) -> None:
        """Remove nodes."""
        left = sorted(ids)
        for begin in range(0, len(left), IDS_OF_A_STATEMENT):
            part = left[begin : begin + IDS_OF_A_STATEMENT]
            await self._engine.write(statement("drop_nodes", self.dialect), {"ids": part})
        REMOVED["nodes of the graph"] += len(left)


def tidy(store: CypherGraph) -> CypherGraph:
    """Return the store over the same connections, which removes all that it was given when it is closed."""
    return CypherGraph(TidyEngine(store._engine))


def _ids(parameters: Mapping[str, Any]) -> set[str]:
    nodes: Sequence[Mapping[str, str]] = parameters.get("nodes", ())
    links: Sequence[Mapping[str, str]] = parameters.get("links", ())
    return {node["id"] for node in nodes} | {link[end] for link in links for end in ("source", "target")}
