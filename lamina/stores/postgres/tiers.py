"""The rows of every tier, under the names that the statements of all tiers ask by."""

from collections.abc import Collection, Mapping
from uuid import UUID

from lamina.core.tiers import TIERS, ProjectionName, Tier, TierName
from lamina.stores.postgres import documents, entities, messages, notes, procedures
from lamina.stores.postgres.connection import Connection
from lamina.stores.postgres.tier_rows import (
    EmbeddingStatements,
    ErasureStatements,
    LinkStatements,
    ProjectionStatements,
    TierRows,
)

# In the order in which they are embedded again, which the cursors of runs follow.
TIER_ROWS: Mapping[TierName, TierRows] = {
    "sessions": messages.TIER_ROWS,
    "notes": notes.TIER_ROWS,
    "documents": documents.TIER_ROWS,
    "graph": entities.TIER_ROWS,
    "procedures": procedures.TIER_ROWS,
}

PROJECTED: Mapping[ProjectionName, ProjectionStatements] = {
    name: rows for tier in TIER_ROWS.values() for name, rows in tier.projected.items()
}
EMBEDDED: Mapping[str, EmbeddingStatements] = {
    kind: rows for tier in TIER_ROWS.values() for kind, rows in tier.embedded.items()
}
LINKED: Mapping[Tier, LinkStatements] = {
    TIERS[name].tier: rows.linked for name, rows in TIER_ROWS.items() if rows.linked is not None
}
ERASED: Mapping[str, ErasureStatements] = {
    kind: rows for tier in TIER_ROWS.values() for kind, rows in tier.erased.items()
}
# The projections that take rows of a kind over once their vectors can be searched.
EMBEDDING_PROJECTIONS: Mapping[str, tuple[ProjectionName, ...]] = {
    kind: tuple(projection for projection, spec in TIERS[name].projections.items() if spec.is_of_generation)
    for name, rows in TIER_ROWS.items()
    for kind in rows.embedded
}


async def find_missing(connection: Connection, tenant: str, ids: Collection[UUID]) -> set[UUID]:
    """Return those of the ids under which no memory of the tenant can be read."""
    missing = set(ids)
    for rows in TIER_ROWS.values():
        cursor = await connection.execute(rows.present, {"tenant": tenant, "ids": sorted(missing)})
        missing -= {row["id"] async for row in cursor}
    return missing
