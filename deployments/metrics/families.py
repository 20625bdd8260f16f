"""Write the figures of Postgres as metrics."""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import TypeVar

from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric

from deployments.metrics.caches import cache_families
from deployments.metrics.scrape import MAX_AGE_S, Families, Part
from lamina.caching.shared_caches import SharedCaches
from lamina.core.runs import JOB_NAMES, RunState
from lamina.maintenance.schedule import Schedule, schedules
from lamina.settings.jobs import JobsSettings
from lamina.stores.postgres.builds import Build, Builds
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.database_metrics import DatabaseMetrics, GenerationFigures, JobFigures, Sizes
from lamina.stores.postgres.outbox import Lag, Outbox
from lamina.wiring.stores import utc_now

Label = TypeVar("Label", bound=str)
Reading = TypeVar("Reading")
# How long a reading of Postgres is repeated: its statistics are not read more often than this.
STORES_AGE_S = 5.0


def store_parts(caches: SharedCaches, outbox: Outbox, pool: Pool, jobs: JobsSettings) -> Sequence[Part]:
    """Return the parts of `/metrics`.

    Args:
        caches: The cache shards.
        outbox: The changes that projections have still to take over.
        pool: Connections to Postgres, for its statistics.
        jobs: When jobs are due.
    """
    database = DatabaseMetrics(pool)

    return (
        _part("caches", caches.figures, cache_families),
        _part("outbox", outbox.lag, lag_families),
        _part("builds", Builds(pool).under_way, build_families, STORES_AGE_S),
        _part("postgres", database.sizes, size_families, STORES_AGE_S),
        _part("jobs", database.jobs, lambda figures: job_families(figures, jobs, utc_now()), STORES_AGE_S),
        _part("generations", database.generations, generation_families, STORES_AGE_S),
    )


def _part(
    name: str,
    read: Callable[[], Awaitable[Reading]],
    describe: Callable[[Reading], Iterable[Metric]],
    max_age_s: float = MAX_AGE_S,
) -> Part:
    async def read_families() -> Families:
        return list(describe(await read()))

    return Part(name, read_families, max_age_s=max_age_s)


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
    """Yield how many changes each new build of a projection has still to take over."""
    pending = {build.projection: build.pending for build in builds}
    yield _by("lamina_build_pending", "Changes that a new build has still to take over.", "projection", pending)


def size_families(sizes: Sizes) -> Iterable[Metric]:
    """Yield how large the database is."""
    yield _by("lamina_store_rows", "Rows of a tier in Postgres, by its statistics.", "tier", sizes.rows)
    yield GaugeMetricFamily("lamina_database_bytes", "What the database takes on disk.", sizes.database_bytes)


def generation_families(figures: GenerationFigures) -> Iterable[Metric]:
    """Yield the generation of vectors that is searched, and how many are being built."""
    if figures.active is not None:
        yield GaugeMetricFamily("lamina_embedding_generation", "The generation of vectors searched.", figures.active)
    yield GaugeMetricFamily("lamina_embedding_generations_building", "Generations that are built.", figures.building)


def job_families(figures: JobFigures, jobs: JobsSettings, now: datetime) -> Iterable[Metric]:
    """Yield how the runs of jobs ended, and how often jobs are due."""
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
    due = schedules(jobs.schedule) if jobs.is_scheduled else {}
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
