"""What there is in a tenant: its workspaces, namespaces, sessions, users and agents, with how much each holds."""

from collections.abc import Collection, Mapping
from typing import Any

from psycopg.rows import DictRow

from lamina.core.paging import Page
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import read_rows, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("directory.sql")

MOST_COUNTED = 5_000
"""Rows that are counted of one table for one entry; an entry with more says that it was cut."""
_NO_COUNTS = frozenset({"bytes", "profile_version"})
_ANYWHERE = b"AND /*within*/ true"


def _of_places(text: bytes, within: bytes, of_each: bytes) -> bytes:
    """Return a statement over places; ``within`` narrows the places, ``of_each`` what is counted in each."""
    stored = QUERIES["count_place"].replace(_ANYWHERE, of_each)
    return text.replace(_ANYWHERE, within).replace(b"/*stored*/", stored)


_WORKSPACE_BOUND = b"AND (cardinality(%(workspaces)s::text[]) = 0 OR workspace = ANY(%(workspaces)s))"
_NAMESPACE_BOUND = b"AND namespace = ANY(%(namespaces)s)"
_WORKSPACES = _of_places(QUERIES["list_workspaces"], _WORKSPACE_BOUND, b"")
_WORKSPACES_IN_PART = _of_places(
    QUERIES["list_workspaces"], _WORKSPACE_BOUND + b" " + _NAMESPACE_BOUND, _NAMESPACE_BOUND
)
_OF_NAMESPACE = b"AND namespace = place.namespace"
_NAMESPACES = _of_places(QUERIES["list_namespaces"], b"", _OF_NAMESPACE)
_NAMESPACES_IN_PART = _of_places(QUERIES["list_namespaces"], _NAMESPACE_BOUND, _OF_NAMESPACE)


class Directory(PostgresStore):
    """Lists the workspaces, namespaces, sessions, users and agents of a tenant."""

    async def workspaces(
        self, tenant: str, page: Page, *, workspaces: Collection[str] = (), namespaces: Collection[str] = ()
    ) -> list[DictRow]:
        """Return the workspaces of a tenant by their names.

        Args:
            tenant: Whose.
            page: Of the list.
            workspaces: Only these; none means all.
            namespaces: Only what lies in these; none means all.
        """
        bound = {"tenant": tenant, "workspaces": list(workspaces), "namespaces": list(namespaces)}
        text = _WORKSPACES_IN_PART if namespaces else _WORKSPACES
        return await self._counted(text, {**bound, **page.parameters("workspace")})

    async def namespaces(
        self, tenant: str, workspace: str, page: Page, *, namespaces: Collection[str] = ()
    ) -> list[DictRow]:
        """Return the namespaces of a workspace by their names, some of them or all."""
        bound = {"tenant": tenant, "workspace": workspace, "namespaces": list(namespaces)}
        text = _NAMESPACES_IN_PART if namespaces else _NAMESPACES
        return await self._counted(text, {**bound, **page.parameters("namespace")})

    async def sessions(self, scope: Scope, page: Page) -> list[DictRow]:
        """Return the sessions of a place, the one that was begun last first; of a user, if the scope names one."""
        parameters = {**scope_parameters(scope), **page.parameters("time", "session")}
        return await self._counted(QUERIES["list_sessions"], parameters)

    async def users(self, scope: Scope, page: Page, *, users: Collection[str] = ()) -> list[DictRow]:
        """Return the users of a place by their names, some of them or all."""
        parameters = {**scope_parameters(scope), "names": list(users), **page.parameters("user")}
        return await self._counted(QUERIES["list_users"], parameters)

    async def agents(self, scope: Scope, page: Page) -> list[DictRow]:
        """Return the agents of a place by their names."""
        return await self._counted(QUERIES["list_agents"], {**scope_parameters(scope), **page.parameters("agent")})

    async def _counted(self, text: bytes, parameters: Mapping[str, Any]) -> list[DictRow]:
        rows = await read_rows(self._pool, text, {**parameters, "most": MOST_COUNTED + 1})
        for row in rows:
            numbers = {name: value for name, value in row.items() if isinstance(value, int) and name not in _NO_COUNTS}
            over = [name for name, value in numbers.items() if value > MOST_COUNTED]
            row |= {"is_capped": bool(over), **dict.fromkeys(over, MOST_COUNTED)}
        return rows
