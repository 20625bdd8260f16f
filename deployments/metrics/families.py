"""What stands in Postgres, as metrics."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from deployments.metrics.caches import CacheCollector
from deployments.metrics.scrape import Families, Part
from lamina.caching.shared_caches import SharedCaches
from lamina.core.runs import JOB_NAMES, JobName, RunState
from lamina.maintenance.schedule import Schedule, schedules
from lamina.settings import JobsSettings
from lamina.stores.postgres.builds import Build, Builds
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.database_metrics import Figures, GenerationFigures, JobFigures, Sizes
from lamina.stores.postgres.outbox import Lag, Outbox
from lamina.wiring import utc_now

Label = TypeVar("Label", bound=str)
STORES_AGE_S = 5.0
"""For how long what Postgres tells of itself is told again: nobody scrapes more often."""


def store_parts(caches: SharedCaches, outbox: Outbox, pool: Pool, jobs: JobsSettings) -> Sequence[Part]:
    """Return everything that `/metrics` tells.

    Args:
        caches: The cache shards.
        outbox: What the projections have still to take over.
        pool: Connections to Postgres, which tells of itself.
        jobs: When jobs are due.
    """
    figures, builds = Figures(pool), Builds(pool)

    async def of_caches() -> Families:
        return list(CacheCollector(await caches.figures()).collect())

    async def of_outbox() -> Families:
        return list(lag_families(await outbox.lag()))

    async def of_builds() -> Families:
        return list(build_families(await builds.under_way()))

    async def of_sizes() -> Families:
        return list(size_families(await figures.sizes()))

    async def of_jobs() -> Families:
        due = schedules(jobs.schedule) if jobs.is_scheduled else {}
        return list(job_families(await figures.jobs(), due, utc_now()))

    async def of_generations() -> Families:
        return list(generation_families(await figures.generations()))

    return (
        Part("caches", of_caches),
        Part("outbox", of_outbox),
        Part("builds", of_builds, max_age_s=STORES_AGE_S),
        Part("postgres", of_sizes, max_age_s=STORES_AGE_S),
        Part("jobs", of_jobs, max_age_s=STORES_AGE_S),
        Part("generations", of_generations, max_age_s=STORES_AGE_S),
    )


def lag_families(lags: Mapping[str, Lag]) -> Iterable[Metric]:
    """Yield how far each projection is behind."""
    yield _by(
        "lamina_outbox_pending",
        "Changes that a projection has still to take over.",
        "projection",
        {name: lag.pending for name, lag in lags.items()},
    )
    yield _by(
        "lamina_outbox_lag_seconds",
        "Age of the oldest of them, in seconds.",
        "projection",
        {name: lag.oldest_s for name, lag in lags.items()},
    )


def build_families(builds: Sequence[Build]) -> Iterable[Metric]:
    """Yield how far the projections are that are built anew."""
    pending = {build.projection: build.pending for build in builds}
    yield _by("lamina_build_pending", "Changes that a new build has still to take over.", "projection", pending)


def size_families(sizes: Sizes) -> Iterable[Metric]:
    """Yield how large the database is."""
    yield _by("lamina_store_rows", "Rows of a tier in Postgres, by its statistics.", "tier", sizes.rows)
    yield GaugeMetricFamily("lamina_database_bytes", "What the database takes on disk.", sizes.database_bytes)


def generation_families(figures: GenerationFigures) -> Iterable[Metric]:
    """Yield which vectors are searched."""
    if figures.active is not None:
        yield GaugeMetricFamily("lamina_embedding_generation", "The generation of vectors searched.", figures.active)
    yield GaugeMetricFamily("lamina_embedding_generations_building", "Generations that are built.", figures.building)


def job_families(figures: JobFigures, due: Mapping[JobName, Schedule], now: datetime) -> Iterable[Metric]:
    """Yield what became of jobs, and how often they are due."""
    runs = GaugeMetricFamily("lamina_job_runs", "Runs that are kept, by state.", labels=["job_name", "state"])
    for job in JOB_NAMES:
        for state in RunState:  # All of them: what appears only with its first failure has not risen.
            runs.add_metric([job, state.value], figures.runs.get((job, state), 0))
    yield runs
    yield _by(
        "lamina_job_last_success_timestamp_seconds",
        "When a run on everything was done last.",
        "job_name",
        {job: at.timestamp() for job, at in figures.done_at.items()},
    )
    gaps = {job: gap for job, schedule in due.items() if (gap := interval_s(schedule, now)) is not None}
    yield _by("lamina_job_interval_seconds", "Seconds between two runs by schedule.", "job_name", gaps)
    if figures.drift is not None and figures.audited is not None:
        yield GaugeMetricFamily("lamina_audit_drift", "Memories that the last audit found to differ.", figures.drift)
        yield GaugeMetricFamily("lamina_audit_memories", "Memories that it looked at.", figures.audited)


def interval_s(schedule: Schedule, now: datetime) -> float | None:
    """Return the seconds between the next two times of a schedule; ``None`` if there are no two."""
    first = schedule.next_at(now)
    second = None if first is None else schedule.next_at(first)
    return None if first is None or second is None else (second - first).total_seconds()


def _by(name: str, told: str, label: str, values: Mapping[Label, float]) -> Metric:
    family = GaugeMetricFamily(name, told, labels=[label])
    for key, value in values.items():
        family.add_metric([key], value)
    return family
