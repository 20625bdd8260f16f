"""Tier 3: one JSON document a user, with the times of its fields, its version and its history.

A user has one in each namespace, and one of the whole tenant beneath them, in rows without workspace and namespace.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from psycopg.rows import DictRow
from psycopg.types.json import Json, Jsonb
from pydantic import TypeAdapter

from lamina.core.json_values import is_same_json
from lamina.core.memories import Metadata, Profile, ProfileVersion
from lamina.core.paging import Page
from lamina.core.profiles import (
    FieldTimes,
    ProfileStatement,
    TimedDocument,
    layered,
    revert,
    state,
    until,
    verified_after,
)
from lamina.core.scope import Scope
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Connection, scope_parameters
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("profiles.sql")
MANY = 16
_TIMES = TypeAdapter(dict[str, FieldTimes])
_STATEMENTS = TypeAdapter(list[ProfileStatement])


@dataclass(frozen=True, slots=True)
class ProfileWrite:
    """How a profile is written.

    Args:
        kept_versions: How many versions its history keeps.
        is_verified: Whether the user itself, or an admin, writes.
        is_tenant_wide: Whether the profile of the whole tenant is meant, and not that of the scope's namespace.
    """

    kept_versions: int
    is_verified: bool = False
    is_tenant_wide: bool = False


async def patch_profile(
    connection: Connection, scope: Scope, patch: Metadata, now: datetime, write: ProfileWrite
) -> Profile:
    """Merge a patch into the user's profile, over everything stated before, and store both in its history.

    A patch that changes nothing writes no version, but for the first.
    """
    return await _write(connection, scope, [ProfileStatement(patch)], patch, now, write)


async def add_statements(
    connection: Connection, scope: Scope, statements: Sequence[ProfileStatement], now: datetime, write: ProfileWrite
) -> Profile:
    """Take the statements into the user's profile by their times, and store both in its history.

    Statements that change nothing write no version. Their times are stored even so: a value that was stated again
    outlives an import from the time between.
    """
    patch = _STATEMENTS.dump_python(list(statements), mode="json")
    return await _write(connection, scope, statements, patch, now, write)


async def read_user_names(connection: Connection, scope: Scope) -> list[str]:
    """Return the names that the user's profiles give, in the namespace and in the whole tenant."""
    cursor = await connection.execute(QUERIES["get_profile_layers"], scope_parameters(scope))
    found = [row["document"].get("name") async for row in cursor]
    every = [name for value in found for name in (value if isinstance(value, list) else [value])]
    return [name for name in every if isinstance(name, str)]


async def find_statements(
    connection: Connection, scope: Scope, source: str, *, is_tenant_wide: bool
) -> list[ProfileStatement]:
    """Return what a message stated about its user, as far back as versions of the profile are kept."""
    parameters = {**_owner(scope, is_tenant_wide=is_tenant_wide), "source": source}
    cursor = await connection.execute(QUERIES["find_statements_of"], parameters)
    return _STATEMENTS.validate_python([row["statement"] async for row in cursor])


async def revert_profile(
    connection: Connection, scope: Scope, version: int, now: datetime, write: ProfileWrite
) -> Profile:
    """Give the user's profile the document of an earlier version again, as a version of its own.

    Raises:
        NotFound: If that version is not kept.
    """
    parameters = {**_owner(scope, is_tenant_wide=write.is_tenant_wide), "version": version}
    cursor = await connection.execute(QUERIES["get_profile_version"], parameters)
    row = await cursor.fetchone()
    if row is None:
        raise NotFound("profile version", str(version))
    document = row["document"]
    return await _write(
        connection,
        scope,
        [ProfileStatement(document)],
        {"reverted_to": version},
        now,
        write,
        decide=lambda old: revert(old, document, now),
    )


async def _write(
    connection: Connection,
    scope: Scope,
    statements: Sequence[ProfileStatement],
    patch: Metadata | list[Metadata],
    now: datetime,
    write: ProfileWrite,
    *,
    decide: Callable[[TimedDocument], TimedDocument] | None = None,
) -> Profile:
    owner = _owner(scope, is_tenant_wide=write.is_tenant_wide)
    parameters: dict[str, Any] = {**owner, "now": now, "kept": write.kept_versions}
    cursor = await connection.execute(QUERIES["lock_profile"], parameters)
    row = await cursor.fetchone()
    assert row is not None  # noqa: S101 - the upsert returns its row
    old = _timed(row)
    is_long = len(statements) > MANY  # A turn may state twenty thousand things.
    decided = decide or partial(state, statements=statements, now=now)
    new = await asyncio.to_thread(decided, old) if is_long else decided(old)
    document, version = dict(new.document), row["version"]
    verified = verified_after(frozenset(row["verified_fields"]), old, new, statements, is_verified=write.is_verified)
    times = {
        "field_times": Jsonb(_TIMES.dump_python(dict(new.times), mode="json")),
        "verified_fields": sorted(verified),
    }
    is_all_verified = verified >= document.keys()
    if is_same_json(document, row["document"]) and (version > 0 or isinstance(patch, list)):
        await connection.execute(QUERIES["put_field_times"], {**parameters, **times})
        return Profile(scope.user or "", document, version, is_verified=is_all_verified)
    values = {**parameters, **times, "document": Json(document), "patch": Json(patch), "version": version + 1}
    await connection.execute(QUERIES["put_profile"], values)
    await connection.execute(QUERIES["insert_profile_version"], values)
    return Profile(scope.user or "", document, version + 1, now, is_all_verified)


def _owner(scope: Scope, *, is_tenant_wide: bool) -> dict[str, Any]:
    return scope_parameters(scope) | ({"workspace": "", "namespace": ""} if is_tenant_wide else {})


class Profiles(PostgresStore):
    """Reads profiles."""

    async def get(self, scope: Scope, as_of: datetime | None = None, *, is_tenant_wide: bool = False) -> Profile:
        """Return the user's profile; one that was never written is empty, with version 0.

        With ``as_of`` nothing is in it that was stated later.
        """
        owner = _owner(scope, is_tenant_wide=is_tenant_wide)
        row = await self._row(QUERIES["get_profile"], **owner)
        return _profile(scope, row, as_of)

    async def layered(self, scope: Scope, as_of: datetime | None = None) -> Profile:
        """Return the user's profile in the namespace over that of the whole tenant; its version is the upper one's."""
        rows = {
            row["workspace"]: row for row in await self._rows(QUERIES["get_profile_layers"], **scope_parameters(scope))
        }
        own, beneath = (_profile(scope, rows.get(place), as_of) for place in (scope.workspace, ""))
        if not beneath.document:
            return own
        return replace(
            own,
            document=layered(beneath.document, own.document),
            updated_at=max(filter(None, (own.updated_at, beneath.updated_at)), default=None),
            is_verified=own.is_verified and beneath.is_verified,
        )

    async def versions(self, scope: Scope, page: Page, *, is_tenant_wide: bool = False) -> tuple[ProfileVersion, ...]:
        """Return the states that the user's profile was in, the latest first, as far back as they are kept."""
        return tuple(
            [
                ProfileVersion(**row)
                for row in await self._rows(
                    QUERIES["list_profile_versions"],
                    **_owner(scope, is_tenant_wide=is_tenant_wide),
                    **page.parameters("version"),
                )
            ]
        )


def _profile(scope: Scope, row: DictRow | None, as_of: datetime | None = None) -> Profile:
    if row is None:
        return Profile(scope.user or "", {}, 0, is_verified=True)
    is_verified = frozenset(row["verified_fields"]) >= row["document"].keys()
    document = row["document"] if as_of is None else until(_timed(row), as_of)
    return Profile(scope.user or "", document, row["version"], row["updated_at"], is_verified)


def _timed(row: DictRow) -> TimedDocument:
    return TimedDocument(row["document"], _TIMES.validate_python(row["field_times"])).since(row["updated_at"])
