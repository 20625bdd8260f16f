"""What an operator watches, read cheaply: nothing in here looks at a memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from psycopg.rows import DictRow

from lamina.core.runs import JobName, RunState
from lamina.core.tiers import TIERS, TierName
from lamina.stores.postgres.connection import Pool, connect
from lamina.stores.postgres.queries import load_queries

QUERIES = load_queries("database_metrics.sql")

TIER_OF_TABLE: Mapping[str, TierName] = {table: spec.name for spec in TIERS.values() for table in spec.tables}


@dataclass(frozen=True, slots=True)
class Sizes:
    """How large the database is.

    Args:
        rows: About how many rows each tier has, by the server's statistics; deleted ones may be among them.
        database_bytes: What the database takes on disk.
    """

    rows: Mapping[TierName, float]
    database_bytes: int


@dataclass(frozen=True, slots=True)
class JobFigures:
    """What became of the runs that are kept.

    Args:
        runs: How many there are of each job in each state.
        done_at: When a run of the job on everything was done last, in UTC.
        drift: In how many memories the last audit of everything found a projection to differ; ``None`` before one.
        audited: How many it looked at.
    """

    runs: Mapping[tuple[JobName, RunState], int]
    done_at: Mapping[JobName, datetime]
    drift: int | None = None
    audited: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationFigures:
    """Which vectors are searched.

    Args:
        active: Number of their generation; ``None`` before the first.
        building: How many others are being built.
    """

    active: int | None
    building: int


class DatabaseMetrics:
    """Reads figures from Postgres.

    Args:
        pool: Connections to Postgres.
    """

    def __init__(self, pool: Pool) -> None:
        self._pool = pool

    async def sizes(self) -> Sizes:
        """Return how large the database is.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        found = await self._rows(QUERIES["figures_sizes"], relations=list(TIER_OF_TABLE))
        rows: dict[TierName, float] = dict.fromkeys(TIER_OF_TABLE.values(), 0.0)
        for row in found:
            rows[TIER_OF_TABLE[row["relation"]]] += row["rows"]
        return Sizes(rows, max((row["database_bytes"] for row in found), default=0))

    async def jobs(self) -> JobFigures:
        """Return what became of the runs.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        found = await self._rows(QUERIES["figures_jobs"])
        audits = await self._rows(QUERIES["figures_audit"])
        audit = audits[0] if audits else {"drift": None, "seen": None}
        return JobFigures(
            runs={(row["job"], RunState(row["state"])): row["runs"] for row in found},
            done_at={row["job"]: row["done_at"] for row in found if row["done_at"] is not None},
            drift=audit["drift"],
            audited=audit["seen"],
        )

    async def generations(self) -> GenerationFigures:
        """Return which vectors are searched.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        row = (await self._rows(QUERIES["figures_generations"]))[0]
        return GenerationFigures(row["active"], row["building"])

    async def _rows(self, query: bytes, **parameters: Any) -> list[DictRow]:
        async with connect(self._pool) as connection:
            return await (await connection.execute(query, parameters)).fetchall()
