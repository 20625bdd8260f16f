"""Tier 3: one JSON document a user, with its version and its history."""

from datetime import datetime
from typing import Any

from psycopg.types.json import Json

from lamina.core.json_values import is_same_json
from lamina.core.memories import Metadata, Profile
from lamina.core.profiles import merge
from lamina.core.scope import Scope
from lamina.stores.postgres.connection import Connection, Pool, connect, scope_parameters
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("profiles.sql")


async def patch_profile(connection: Connection, scope: Scope, patch: Metadata, now: datetime) -> Profile:
    """Merge a patch into the user's profile, and store both in its history.

    A patch that changes nothing writes nothing: the version stays.
    """
    parameters: dict[str, Any] = {**scope_parameters(scope), "now": now}
    cursor = await connection.execute(QUERIES["lock_profile"], parameters)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the upsert returns its row
    document = merge(row["document"], patch)
    if is_same_json(document, row["document"]) and row["version"] > 0:
        return Profile(scope.user or "", document, row["version"])
    version = row["version"] + 1
    values = {**parameters, "document": Json(document), "patch": Json(patch), "version": version}
    await connection.execute(QUERIES["put_profile"], values)
    await connection.execute(QUERIES["insert_profile_version"], values)
    return Profile(scope.user or "", document, version, now)


class Profiles:
    """Reads profiles."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def get(self, scope: Scope) -> Profile:
        """Return the user's profile; one that was never written is empty, with version 0."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["get_profile"], scope_parameters(scope))
            row = await cursor.fetchone()
        if row is None:
            return Profile(scope.user or "", {}, 0)
        return Profile(scope.user or "", row["document"], row["version"], row["updated_at"])
