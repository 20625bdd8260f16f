"""API keys: shown once, stored hashed."""

import hashlib
import secrets
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from lamina.core.memories import new_id
from lamina.errors import NotFound
from lamina.stores.postgres.connection import Pool, connect, connect_directly
from lamina.stores.postgres.queries import load_queries
from lamina.text.hygiene import clean_id

QUERIES = load_queries("keys.sql")

PREFIX = "lamina_"
SECRET_BYTES = 32


class KeyRole(StrEnum):
    """Role of a key; each includes the ones before it."""

    READER = "reader"
    WRITER = "writer"
    ADMIN = "admin"

    def includes(self, needed: "KeyRole") -> bool:
        """Report whether this role grants the needed one."""
        order = list(KeyRole)
        return order.index(self) >= order.index(needed)


@dataclass(frozen=True, slots=True)
class Credential:
    """The tenant and role of a valid key."""

    tenant: str
    role: KeyRole


@dataclass(frozen=True, slots=True)
class KeyInfo:
    """A key as `lamina keys list` shows it; the secret is not kept."""

    id: UUID
    tenant: str
    role: str
    label: str
    hint: str
    created_at: datetime
    revoked_at: datetime | None


def hash_key(key: str) -> bytes:
    """Return the SHA-256 of a key; its 256 random bits need no slow hash."""
    return hashlib.sha256(key.encode(errors="replace")).digest()


class Keys:
    """Looks keys up for the service."""

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def find(self, key: str) -> Credential | None:
        """Return the credential of a key; ``None`` if it is unknown or revoked."""
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["find_key"], {"hash": hash_key(key)})
            row = await cursor.fetchone()
        return Credential(row["tenant"], KeyRole(row["role"])) if row else None


def create_key(url: str, *, tenant: str, role: KeyRole, label: str) -> str:
    """Store a new key and return it; it cannot be shown again."""
    key = PREFIX + secrets.token_urlsafe(SECRET_BYTES)
    row = {
        "id": new_id(),
        "tenant": clean_id(tenant, "tenant"),
        "role": role.value,
        "label": clean_id(label, "label"),
        "hint": key[: len(PREFIX) + 4],
        "hash": hash_key(key),
    }
    with connect_directly(url) as connection:
        connection.execute(QUERIES["insert_key"], row)
    return key


def key_is_valid(url: str, key: str) -> bool:
    """Report whether the key exists and is not revoked."""
    with connect_directly(url) as connection:
        return connection.execute(QUERIES["find_key"], {"hash": hash_key(key)}).fetchone() is not None


def list_keys(url: str) -> list[KeyInfo]:
    """Return all keys, oldest first."""
    with connect_directly(url) as connection:
        return [KeyInfo(**row) for row in connection.execute(QUERIES["list_keys"])]


def revoke_key(url: str, id_: UUID) -> None:
    """Make a key invalid from now on; services notice within their key cache's lifetime.

    Raises:
        NotFound: If there is no such key.
    """
    with connect_directly(url) as connection:
        if connection.execute(QUERIES["revoke_key"], {"id": id_}).fetchone() is None:
            raise NotFound("key", str(id_))
