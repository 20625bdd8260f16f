"""Stamps: the epochs of a scope, read by one small statement, that prove cached answers fresh."""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from psycopg.rows import DictRow

from lamina.aio.coalescing import Coalescer
from lamina.core.scope import Scope
from lamina.core.stamps import Remembered, SharedEpoch, Stamp
from lamina.core.tiers import TIERS, ProjectionName
from lamina.core.workspace_settings import UNSET
from lamina.stores.postgres.connection import Pool, read_rows
from lamina.stores.postgres.embedding_cache import TextKey, text_key
from lamina.stores.postgres.memory_profiles import stored_profile
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.shares import stored_share
from lamina.stores.postgres.workspace_settings import stored_settings

QUERIES = load_queries("stamps.sql")

# Also the number of the pool's connections. Each read serves all requests that came during the one before.
MAX_IN_FLIGHT = 2
StampRequest = tuple[Scope, TextKey | None]


class Stamps:
    """Reads stamps; those requested during a read are read together afterwards, in one statement.

    Args:
        pool: Connections to Postgres.
        projections: The projections that are kept up to date.
        deadline_s: Seconds after which a connection that does not answer is given up.
        generation: Of the embeddings of questions that are read with the stamps; ``None`` if none are kept.
    """

    def __init__(
        self, pool: Pool, projections: Sequence[ProjectionName], *, deadline_s: float, generation: int | None = None
    ) -> None:
        self._pool = pool
        self._deadline_s = deadline_s
        self._generation = generation
        self._projections = list(projections)
        self._calls: Coalescer[StampRequest, Stamp] = Coalescer(
            self._read, part="postgres", max_in_flight=MAX_IN_FLIGHT
        )

    async def read(self, scope: Scope, question: str | None = None) -> Stamp:
        """Return the scope's stamp as of a moment after this call began, with the question's remembered embedding.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        text = None if question is None or self._generation is None else text_key(scope.tenant, question)
        return await self._calls.submit((scope, text))

    async def _read(self, requests: Sequence[StampRequest]) -> list[Stamp]:
        scopes = [scope for scope, _ in requests]
        parameters = {
            "generation": self._generation,
            "text_hashes": [None if text is None else text.digest for _, text in requests],
            "projections": self._projections,
            "tenants": [scope.tenant for scope in scopes],
            "workspaces": [scope.workspace for scope in scopes],
            "namespaces": [scope.namespace for scope in scopes],
            "agents": [scope.agent for scope in scopes],
            "users": [scope.user for scope in scopes],
        }
        # The caller's deadline frees the caller, this one the connection: two that hang would end all stamps.
        async with asyncio.timeout(self._deadline_s):
            rows = await read_rows(self._pool, QUERIES["read_stamps"], parameters)
        return [_stamp(row, text) for row, (_, text) in zip(rows, requests, strict=True)]


def _stamp(row: DictRow, text: TextKey | None) -> Stamp:
    profile = row["profile"]
    return Stamp(
        namespace=row["namespace_epoch"],
        workspace=row["workspace_epoch"],
        shared=tuple(map(_shared_epoch, row["shares"])),
        profile=profile and stored_profile({**profile, "updated_at": _moment(profile["updated_at"])}),
        settings=UNSET if row["settings"] is None else stored_settings(row["settings"], row["settings_updated_at"]),
        user_profile=row["user_profile"],
        is_settled=row["is_settled"],
        question=None if text is None else Remembered(row["embedding"], row["embedding_used_at"]),
        empty=frozenset(spec.tier for name, spec in TIERS.items() if not row[f"has_{name}"]),
    )


def _shared_epoch(item: dict[str, Any]) -> SharedEpoch:
    times = {name: _moment(item[name]) for name in ("created_at", "expires_at")}
    fields = {**item, **times, "id": UUID(item["id"])}
    epoch = fields.pop("epoch")
    return SharedEpoch(stored_share(fields), epoch)


def _moment(text: str | None) -> datetime | None:
    return None if text is None else datetime.fromisoformat(text)
