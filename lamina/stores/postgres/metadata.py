"""The metadata of memories of any tier, by their ids."""

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from lamina.core.tiers import TIERS, Tier
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("metadata.sql")


class StoredMetadata:
    """Reads metadata.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def metadata_of(self, tenant: str, ids: Mapping[Tier, Sequence[UUID]]) -> Mapping[UUID, dict[str, Any]]:
        """Return the metadata of the tenant's memories by id; of those that are gone, none.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        of_tiers: dict[str, Any] = {name: list(ids.get(spec.tier, ())) for name, spec in TIERS.items()}
        async with connect(self._pool) as connection:
            cursor = await connection.execute(QUERIES["read_metadata"], {"tenant": tenant, **of_tiers})
            return {row["id"]: row["metadata"] async for row in cursor}
