"""Servers that are named are left without what the tests made there, whether they passed or failed."""

from collections.abc import AsyncIterator

import pytest

from lamina.stores.index.meilisearch.client import MeilisearchServer
from lamina.stores.index.qdrant.collections import connect
from tests.support.indexes import MADE, meilisearch_server, qdrant_server
from tests.support.tidying import REMOVED, remove_collections, remove_indexes


@pytest.fixture(scope="module", autouse=True)
async def nothing_is_left_on_servers() -> AsyncIterator[None]:
    """Remove what the tests of a module made: a server that keeps all of it needs gigabytes."""
    yield
    made = {adapter: names.copy() for adapter, names in MADE.items()}
    MADE.clear()
    if names := made.get("qdrant_server"):
        client = connect(qdrant_server(), "tidying")
        await remove_collections(client, names)
        await client.close()
    if names := made.get("meilisearch"):
        server = MeilisearchServer(meilisearch_server())
        await remove_indexes(server, names)
        await server.close()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    if REMOVED:
        told = ", ".join(f"{count} {kind}" for kind, count in sorted(REMOVED.items()))
        terminalreporter.write_line(f"removed from servers: {told}")
