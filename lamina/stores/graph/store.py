"""The graph store over any engine that runs the statements in ``cypher/``.

Every node is a ``:Node`` with the id of its memory or entity; the other properties come with its own
change, and until then it is the bare target of a link, which nobody sees. Links are
``RELATES {kind, strength, users, shared, seen_at}``. Values are parameters, always.
"""

import secrets
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import islice
from typing import Literal, Protocol, TypeVar
from uuid import UUID

from lamina.core.fingerprints import fingerprint
from lamina.core.links import FollowedLink, Frontier, Node
from lamina.core.ports import Change
from lamina.core.scope import Scope
from lamina.stores.graph.values import (
    Parameters,
    Row,
    followed_links,
    frontier_parameters,
    link_parameters,
    node_parameters,
    read_nodes,
)

ROWS_OF_A_STATEMENT = 1000
PAGE_OF_AN_AUDIT = 5000
Dialect = Literal["falkordb", "neo4j"]
Item = TypeVar("Item")


class Engine(Protocol):
    """Something that runs Cypher; each failure to answer is an ``Unavailable``, a refusal a ``Misconfigured``."""

    dialect: Dialect

    async def read(self, text: str, parameters: Parameters, *, is_long: bool = False) -> Sequence[Row]:
        """Return the rows of a statement that changes nothing, or give up: at a source's deadline, or a longer one."""
        ...

    async def write(self, text: str, parameters: Parameters) -> None:
        """Run a statement; its changes are visible when the call returns."""
        ...

    async def index_nodes(self) -> None:
        """Make the indexes over nodes, those that are missing."""
        ...

    async def plan(self, statements: Mapping[str, Parameters]) -> None:
        """Have the server plan statements that read, where planning takes it long."""
        ...

    async def flush(self) -> None:
        """Return when everything written so far survives a crash of the engine."""
        ...

    async def close(self) -> None:
        """Release the connections."""
        ...


@cache
def statement(name: str, dialect: Dialect) -> str:
    """Return the text of ``cypher/<name>.cypher`` without its comments, or that of the dialect's own folder there."""
    folder = resources.files(__package__).joinpath("cypher")
    own = folder.joinpath(dialect, f"{name}.cypher")
    text = (own if own.is_file() else folder.joinpath(f"{name}.cypher")).read_text(encoding="utf-8")
    return "\n".join(line for line in text.splitlines() if not line.startswith("//"))


class CypherGraph:
    """Nodes and links, followed and kept; one process applies changes at a time.

    Deleting a node takes the links of others to it along. It has them again only after the changes
    of those others: with a note that was hidden and comes back they are taken over again
    (``enqueue_returned``), deleted memories never come back, and an entity that is found anew gets a
    new id.

    Args:
        engine: What runs the statements.
        rows: Most nodes or links of one statement.
        page: Most nodes that the inventory reads at once.
    """

    def __init__(self, engine: Engine, *, rows: int = ROWS_OF_A_STATEMENT, page: int = PAGE_OF_AN_AUDIT) -> None:
        self._engine = engine
        self._rows = rows
        self._page = page

    async def expand(self, frontier: Frontier) -> list[FollowedLink]:
        """Return the links of the nodes in both directions, in the order of the nodes, strongest first.

        At most ``fan_out`` of each node, ties by the id of the other side. Links that lead back to
        where they start are left out. A hub with 50 000 links costs some 20 ms.

        Raises:
            Unavailable: If the store does not answer in time.
        """
        if not frontier.ids:
            return []
        rows = await self._engine.read(self._text("expand"), frontier_parameters(frontier))
        return followed_links(frontier, rows)

    async def apply(self, changes: Sequence[Change[Node]]) -> None:
        """Replace each node and all links that start from it; idempotent.

        First the new, then what is left of the old: a search in between misses nothing that was
        there before and is there after.

        Raises:
            Unavailable: If the store does not answer; part of the changes may be in.
        """
        await self._engine.index_nodes()
        for name, parameters in self._statements({change.id: change for change in changes}):
            await self._engine.write(self._text(name), parameters)

    async def flush(self) -> None:
        """Return when everything applied so far survives a crash of the store.

        Raises:
            Unavailable: If the store does not answer.
        """
        await self._engine.flush()

    async def nodes(self, after: UUID | None, limit: int, tenant: str | None = None) -> list[tuple[UUID, Node]]:
        """Return nodes with their links in the order of their ids, from the one after ``after`` on.

        Targets of links that have not been applied themselves are no nodes yet. Links stand in the
        order of their targets and kinds; FalkorDB tells strengths to 15 significant digits.

        Raises:
            Unavailable: If the store does not answer in time.
        """
        name = "list_nodes" if tenant is None else "list_nodes_of_tenant"
        parameters = {"after": "" if after is None else str(after), "limit": limit, "tenant": tenant}
        nodes = await self._engine.read(self._text(name), parameters, is_long=True)
        if not nodes:
            return []
        links = await self._engine.read(self._text("list_links"), {"ids": [row[0] for row in nodes]}, is_long=True)
        return read_nodes(nodes, links)

    async def inventory(self, tenant: str) -> dict[UUID, str]:
        """Return every node of the tenant with the fingerprint of its state.

        Raises:
            Unavailable: If the store does not answer in time.
        """
        known: dict[UUID, str] = {}
        after: UUID | None = None
        while page := await self.nodes(after, self._page, tenant):
            own = ((id_, fingerprint(node)) for id_, node in page)
            known |= {id_: state for id_, state in own if state is not None}
            after = page[-1][0]
        return known

    async def prepare(self) -> bool:
        """Have the server plan the statements of a search; report whether there is no node at all.

        Raises:
            Unavailable: If the store does not answer in time.
        """
        nothing = frontier_parameters(Frontier(Scope("nobody"), (), (), 1))
        await self._engine.plan({self._text("expand"): nothing, self._text("any_node"): {}})
        return not await self._engine.read(self._text("any_node"), {})

    async def installation(self) -> str | None:
        """Return the identity of the installation that the graph belongs to."""
        rows = await self._engine.read(self._text("installation"), {}, is_long=True)
        return str(rows[0][0]) if rows else None

    async def belong_to(self, installation: str) -> None:
        """Have the graph belong to an installation from now on."""
        await self._engine.write(self._text("belong_to"), {"installation": installation})

    async def mark(self) -> int:
        """Return the number of the last flush that the graph has; 0 if it has none."""
        rows = await self._engine.read(self._text("mark"), {}, is_long=True)
        return int(rows[0][0] or 0) if rows else 0

    async def set_mark(self, mark: int) -> None:
        """Keep the number of a flush."""
        await self._engine.write(self._text("set_mark"), {"mark": mark})

    async def probe(self) -> None:
        """Return if the server answers."""
        await self.prepare()

    async def close(self) -> None:
        """Release the connections."""
        await self._engine.close()

    def _text(self, name: str) -> str:
        return statement(name, self._engine.dialect)

    def _statements(self, changes: dict[UUID, Change[Node]]) -> Iterator[tuple[str, Parameters]]:
        """Yield the statements of the changes in order, by name, with parameters."""
        last = list(changes.values())
        gone = [str(change.id) for change in last if change.record is None]
        kept = [str(change.id) for change in last if change.record is not None]
        mark = secrets.randbits(62)
        for ids in _slices(gone, self._rows):
            yield "drop_nodes", {"ids": ids}
        for nodes in _slices(node_parameters(last), self._rows):
            yield "put_nodes", {"nodes": nodes}
        for links in _slices(link_parameters(last), self._rows):
            yield "put_links", {"links": links, "round": mark}
        for ids in _slices(kept, self._rows):
            yield "drop_links", {"ids": ids, "round": mark}


def _slices(items: Sequence[Item], size: int) -> Iterator[list[Item]]:
    left = iter(items)
    while part := list(islice(left, size)):
        yield part
