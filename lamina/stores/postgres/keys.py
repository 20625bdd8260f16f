"""API keys: shown once, stored hashed."""

import hashlib
import math
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import psycopg
from psycopg.rows import DictRow

from lamina.core.memories import new_id
from lamina.core.paging import Page
from lamina.core.principals import Bounds, KeyInfo, KeyRole, Principal, Verb, refuse_wider, within_maker
from lamina.errors import Conflict, NotFound
from lamina.stores.postgres.connection import Connection, connect_directly, in_transaction
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore
from lamina.text.hygiene import clean_id

QUERIES = load_queries("keys.sql")

PREFIX = "lamina_"
SECRET_BYTES = 32
# Six bits a character.
_FORM = re.compile(rf"{PREFIX}[A-Za-z0-9_-]{{{math.ceil(SECRET_BYTES * 8 / 6)}}}")
MAX_KEYS = 10_000
"""Most valid keys of a tenant that can be made over the API."""


@dataclass(frozen=True, slots=True)
class NewSecret:
    """A key with its secret, which cannot be shown again."""

    key: str
    info: KeyInfo


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key; its 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode(errors="replace")).digest()


def has_form_of_key(key: str) -> bool:
    """Report whether a text looks like a key; any other text is none, and need not be looked for."""
    return _FORM.fullmatch(key) is not None


def _hash_narrowed(key: str) -> bytes:
    """Return the hash of a key that is bound, has verbs or an end.

    It is another one, so that a replica of a release that knows no bounds does not find the key, and refuses it.
    """
    return hashlib.sha256(b"narrowed\0" + key.encode(errors="replace")).digest()


def _principal(row: Mapping[str, Any]) -> Principal:
    lists = {name: frozenset(row[name] or ()) for name in ("workspaces", "namespaces", "users", "agents")}
    verbs = frozenset(map(Verb, row["verbs"] or ()))
    return Principal(row["id"], row["tenant"], KeyRole(row["role"]), verbs, Bounds(**lists), row["expires_at"])


def _key_info(row: Mapping[str, Any]) -> KeyInfo:
    principal = _principal(row)
    return KeyInfo(
        id=principal.key_id,
        tenant=principal.tenant,
        role=principal.role,
        verbs=tuple(verb for verb in Verb if verb in principal.verbs),
        bounds=principal.bounds,
        expires_at=principal.expires_at,
        **{name: row[name] for name in ("name", "hint", "created_at", "rotated_at", "last_used_at", "revoked_at")},
    )


def _secret_of(principal: Principal) -> tuple[str, dict[str, object]]:
    """Return a new key and its stored form."""
    key = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    hashed = hash_key(key) if principal.is_whole else _hash_narrowed(key)
    return key, {"hint": key[: len(PREFIX) + 4], "hash": hashed}


def _row_of(principal: Principal, name: str) -> dict[str, object]:
    return {
        "id": principal.key_id,
        "tenant": principal.tenant,
        "role": principal.role.value,
        "name": clean_id(name, "name"),
        "verbs": sorted(principal.verbs) or None,
        "expires_at": principal.expires_at,
        **{field: ids or None for field, ids in principal.bounds.lists().items()},
    }


class Keys(PostgresStore):
    """Looks keys up for the service, and keeps them for admins."""

    async def find(self, keys: Sequence[str]) -> list[Principal | None]:
        """Return the principal of each key; ``None`` for one that is unknown, revoked or expired."""
        hashes = [(hash_key(key), _hash_narrowed(key)) for key in keys]
        rows = await self._rows(QUERIES["find_keys"], hashes=[one for pair in hashes for one in pair])
        found = {(bytes(row["hash"]), principal.is_whole): principal for row in rows for principal in [_principal(row)]}
        return [found.get((whole, True)) or found.get((narrowed, False)) for whole, narrowed in hashes]

    async def note_uses(self, uses: Mapping[UUID, datetime]) -> None:
        """Write when keys were used, each once a minute at most."""
        await self._run(QUERIES["note_key_uses"], ids=list(uses), moments=list(uses.values()))

    async def create(self, maker: Principal, wanted: Principal, name: str) -> NewSecret:
        """Store a new key that reaches no further than the one that makes it, whose narrowing it takes over.

        Raises:
            OutsideBounds: If it names what reaches further.
            Conflict: If the tenant has the most keys that it may have.
        """
        wanted = within_maker(wanted, maker)
        refuse_wider(wanted, maker)
        key, stored = _secret_of(wanted)
        row = {**_row_of(wanted, name), **stored}

        async def write(connection: Connection) -> KeyInfo:
            counted = await (await connection.execute(QUERIES["count_keys"], {"tenant": wanted.tenant})).fetchone()
            if counted is not None and counted["keys"] >= MAX_KEYS:
                raise Conflict(f"this tenant has {MAX_KEYS} valid keys; revoke some first")
            return await _one_key(connection, QUERIES["insert_key"], row)

        return NewSecret(key, await in_transaction(self._pool, write))

    async def page(self, viewer: Principal, page: Page) -> list[KeyInfo]:
        """Return the keys that an admin's key sees, oldest first: those of its tenant, within its bounds."""
        return [_key_info(row) for row in await self._rows(QUERIES["list_keys"], **_visible_to(viewer, None, page))]

    async def get(self, viewer: Principal, id_: UUID) -> KeyInfo:
        """Return a key that an admin's key sees.

        Raises:
            NotFound: If there is none.
        """
        row = await self._row(QUERIES["list_keys"], **_visible_to(viewer, id_, Page(1)))
        if row is None:
            raise NotFound("key", str(id_))
        return _key_info(row)

    async def rotate(self, maker: Principal, id_: UUID) -> NewSecret:
        """Give a key another secret; the one before opens nothing any more.

        Raises:
            NotFound: If the admin's key sees no such key.
            OutsideBounds: If it reaches further than the admin's key.
            Conflict: If it is revoked.
        """
        info = await self.get(maker, id_)
        refuse_wider(info.principal(), maker)
        key, stored = _secret_of(info.principal())

        async def write(connection: Connection) -> KeyInfo:
            locked = await _one_key(connection, QUERIES["lock_key"], {"id": id_})
            if locked.revoked_at is not None:
                raise Conflict(f"key {id_} is revoked; make a new one")
            return await _one_key(connection, QUERIES["rotate_key"], {"id": id_, **stored})

        return NewSecret(key, await in_transaction(self._pool, write))

    async def revoke(self, viewer: Principal, id_: UUID, *, even_last: bool) -> None:
        """Make a key invalid; revoking it again changes nothing.

        Raises:
            NotFound: If the admin's key sees no such key.
            Conflict: If it is the tenant's last key that can make any other, unless ``even_last``.
        """
        info = await self.get(viewer, id_)

        async def write(connection: Connection) -> None:
            cursor = await connection.execute(QUERIES["lock_admins"], {"tenant": info.tenant})
            _refuse_last([row["id"] async for row in cursor], info, even_last=even_last)
            await connection.execute(QUERIES["revoke_key"], {"id": id_})

        await in_transaction(self._pool, write)


async def _one_key(connection: Connection, query: bytes, parameters: Mapping[str, object]) -> KeyInfo:
    row = await (await connection.execute(query, parameters)).fetchone()
    if row is None:
        raise NotFound("key", str(parameters["id"]))
    return _key_info(row)


def _visible_to(viewer: Principal, id_: UUID | None, page: Page) -> dict[str, object]:
    return {"tenant": viewer.tenant, "id": id_, **page.parameters("time", "id"), **viewer.bounds.lists()}


def _refuse_last(admins: list[UUID], info: KeyInfo, *, even_last: bool) -> None:
    if admins == [info.id] and not even_last:
        raise Conflict(
            f"key {info.id} is the last one that can make any key of tenant {info.tenant}; make another one first, or "
            "send last=true (lamina keys revoke --last)"
        )


def create_key(url: str, *, tenant: str, role: KeyRole, name: str) -> str:
    """Store a new key of a whole tenant and return it; it cannot be shown again."""
    return store_key(url, Principal(new_id(), clean_id(tenant, "tenant"), role), name)


def store_key(url: str, wanted: Principal, name: str) -> str:
    """Store a new key and return it; it cannot be shown again."""
    key, stored = _secret_of(wanted)
    with connect_directly(url) as connection:
        connection.execute(QUERIES["insert_key"], {**_row_of(wanted, name), **stored})
    return key


def key_is_valid(url: str, key: str) -> bool:
    """Report whether the key exists and is neither revoked nor expired."""
    hashes = [hash_key(key), _hash_narrowed(key)]
    with connect_directly(url) as connection:
        return connection.execute(QUERIES["find_keys"], {"hashes": hashes}).fetchone() is not None


def list_keys(url: str) -> list[KeyInfo]:
    """Return all keys of all tenants, oldest first."""
    with connect_directly(url) as connection:
        return [_key_info(row) for row in connection.execute(QUERIES["list_all_keys"])]


def rotate_key(url: str, id_: UUID) -> str:
    """Give a key another secret and return it; the one before opens nothing any more.

    Raises:
        NotFound: If there is no such key.
        Conflict: If it is revoked.
    """
    with connect_directly(url) as connection, connection.transaction():
        info = _locked(connection, id_)
        if info.revoked_at is not None:
            raise Conflict(f"key {id_} is revoked; make a new one")
        key, stored = _secret_of(info.principal())
        connection.execute(QUERIES["rotate_key"], {"id": id_, **stored})
    return key


def revoke_key(url: str, id_: UUID, *, even_last: bool = True) -> None:
    """Make a key invalid; services notice within their key cache's lifetime.

    Raises:
        NotFound: If there is no such key.
        Conflict: If it is the tenant's last key that can make any other, unless ``even_last``.
    """
    with connect_directly(url) as connection, connection.transaction():
        info = _locked(connection, id_)
        admins = connection.execute(QUERIES["lock_admins"], {"tenant": info.tenant}).fetchall()
        _refuse_last([row["id"] for row in admins], info, even_last=even_last)
        connection.execute(QUERIES["revoke_key"], {"id": id_})


def _locked(connection: psycopg.Connection[DictRow], id_: UUID) -> KeyInfo:
    row = connection.execute(QUERIES["lock_key"], {"id": id_}).fetchone()
    if row is None:
        raise NotFound("key", str(id_))
    return _key_info(row)
