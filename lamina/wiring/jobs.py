"""Maintenance: which job is built of what."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from lamina import __version__
from lamina.caching.keys import digest
from lamina.embedding.lazy import LazyEmbedder
from lamina.maintenance.driving import Driver, FanOut
from lamina.maintenance.pages import Job
from lamina.maintenance.rows import DECAY, EDGES, ENTITIES, SWEEP, RowJob, RowPolicy
from lamina.maintenance.undoing import Undo
from lamina.maintenance.working import Limits, Worker
from lamina.ports import Embedder
from lamina.runs import JobName
from lamina.settings import Settings
from lamina.stores.postgres.connection import Pool
from lamina.wiring.stores import build_model, postgres_url

Build = Callable[[Settings, Pool, Embedder], Job[Any]]


@dataclass(frozen=True, slots=True)
class JobKind:
    """What the runner must know of a job before it builds it.

    Args:
        told: What it does, in a line.
        build: Builds what decides and acts.
        units: What it is cut into: ``units`` (namespaces) or ``tenants``.
        removes: Whether it takes rows out of every search.
    """

    told: str
    build: Build
    units: str = "units"
    removes: bool = False


def _by_row(policy: RowPolicy) -> Build:
    def build(settings: Settings, pool: Pool, embedder: Embedder) -> RowJob:  # noqa: ARG001 - nothing is embedded
        return RowJob(pool, policy, page_rows=settings.jobs.page_rows)

    return build


JOBS: Mapping[JobName, JobKind] = {
    "sweep": JobKind("demotes warm notes past their lifespan", _by_row(SWEEP)),
    "decay": JobKind("lets notes that nobody finds fade from contexts", _by_row(DECAY)),
    "entities": JobKind("lowers the confidence of entities that nobody tells of", _by_row(ENTITIES)),
    "edges": JobKind("lets edges decay by their half-life", _by_row(EDGES)),
}


def build_job_embedder(settings: Settings) -> Embedder:
    """Build an embedder of a worker's own, which loads the model at the first text: agents wait for no job."""
    return LazyEmbedder(lambda: build_model(settings, device="cpu"))


def build_job(settings: Settings, pool: Pool, name: JobName, embedder: Embedder) -> Job[Any]:
    """Build what decides and acts."""
    return JOBS[name].build(settings, pool, embedder)


def build_worker(settings: Settings, pool: Pool, name: JobName, embedder: Embedder) -> Worker:
    """Build what works on the partitions of a job's runs."""
    return Worker(pool, build_job(settings, pool, name, embedder), job_limits(settings, name))


def build_driver(settings: Settings, pool: Pool, name: JobName, fan_out: FanOut) -> Driver:
    """Build what drives a job's runs over any workers."""
    return Driver(
        postgres_url(settings),
        pool,
        job_limits(settings, name),
        fan_out,
        partitions=settings.jobs.partitions,
        undo_window=undo_window(settings),
    )


def build_undo(settings: Settings, pool: Pool, name: JobName) -> Undo:
    """Build what takes a job's runs back."""
    job = build_job(settings, pool, name, build_job_embedder(settings))
    return Undo(postgres_url(settings), pool, job, window=undo_window(settings))


def jobs_namespace(settings: Settings) -> str:
    """Return what tells the scheduler of one database from those of others on the same cluster."""
    return f"lamina-jobs-{digest(postgres_url(settings)).hex()[:16]}"


def jobs_edition(settings: Settings) -> str:
    """Return what changes when a scheduler that is there already must not go on: another release or settings."""
    return digest(__version__, settings.model_dump(mode="json")).hex()[:12]


def undo_window(settings: Settings) -> timedelta:
    """Return how long a run can be undone."""
    return timedelta(days=settings.jobs.undo_days)


def job_limits(settings: Settings, name: JobName) -> Limits:
    """Return what a job is cut into and when it leaves a scope alone."""
    kind = JOBS[name]
    return replace(Limits(), units=kind.units, removes=kind.removes, most_removed=settings.jobs.most_removed)
