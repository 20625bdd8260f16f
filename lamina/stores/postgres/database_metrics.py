"""Metrics of the database for operators; all of them are cheap, none reads a memory."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from lamina.core.runs import JobName, RunState
from lamina.core.tiers import TIERS, TierName
from lamina.stores.postgres.queries import load_queries
from lamina.stores.postgres.store import PostgresStore

QUERIES = load_queries("database_metrics.sql")

TIER_OF_TABLE: Mapping[str, TierName] = {table: spec.name for spec in TIERS.values() for table in spec.tables}


@dataclass(frozen=True, slots=True)
class Sizes:
    """Sizes of the tiers and of the database.

    Args:
        rows: Rows of each tier, estimated by the server's statistics; deleted ones may be among them.
        database_bytes: Its size on disk.
    """

    rows: Mapping[TierName, float]
    database_bytes: int


@dataclass(frozen=True, slots=True)
class JobFigures:
    """Counts of job runs, and the result of the last audit.

    Args:
        runs: Number of runs, by job and state.
        done_at: When the last run of each job on everything was done, in UTC.
        drift: Memories in which the last audit of everything found a projection to differ; ``None`` before one.
        audited: Memories that it compared.
    """

    runs: Mapping[tuple[JobName, RunState], int]
    done_at: Mapping[JobName, datetime]
    drift: int | None = None
    audited: int | None = None


@dataclass(frozen=True, slots=True)
class GenerationFigures:
    """Generations of vectors.

    Args:
        active: Number of the one that searches read; ``None`` before the first.
        building: How many others are being built.
    """

    active: int | None
    building: int


class DatabaseMetrics(PostgresStore):
    """Reads metrics from Postgres."""

    async def sizes(self) -> Sizes:
        """Return the sizes of the tiers and of the database.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        found = await self._rows(QUERIES["measure_sizes"], relations=list(TIER_OF_TABLE))
        rows: dict[TierName, float] = dict.fromkeys(TIER_OF_TABLE.values(), 0.0)
        for row in found:
            rows[TIER_OF_TABLE[row["relation"]]] += row["rows"]
        return Sizes(rows, max((row["database_bytes"] for row in found), default=0))

    async def jobs(self) -> JobFigures:
        """Count job runs.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        found = await self._rows(QUERIES["count_runs"])
        audits = await self._rows(QUERIES["read_last_audit"])
        audit = audits[0] if audits else {"drift": None, "seen": None}
        return JobFigures(
            runs={(row["job"], RunState(row["state"])): row["runs"] for row in found},
            done_at={row["job"]: row["done_at"] for row in found if row["done_at"] is not None},
            drift=audit["drift"],
            audited=audit["seen"],
        )

    async def generations(self) -> GenerationFigures:
        """Return the active generation, and how many are being built.

        Raises:
            Unavailable: If Postgres does not answer.
        """
        row = (await self._rows(QUERIES["count_generations"]))[0]
        return GenerationFigures(row["active"], row["building"])
