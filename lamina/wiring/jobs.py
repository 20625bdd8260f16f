"""Maintenance: the builders of each job."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, assert_never

from pydantic import BaseModel, SecretStr

from lamina import __version__
from lamina.core.areas import Area
from lamina.core.ports import Embedder, Model
from lamina.core.runs import JobName
from lamina.core.tiers import ProjectionName
from lamina.errors import InvalidInput
from lamina.extraction.extractive_summaries import ExtractiveSummarizer, Summarizer
from lamina.extraction.model_summaries import LanguageModelSummarizer
from lamina.maintenance.compaction import CompactionJob, compaction_policy
from lamina.maintenance.consolidation import ConsolidationJob, ConsolidationPolicy
from lamina.maintenance.dedup import DedupJob
from lamina.maintenance.derived_notes import Deriver
from lamina.maintenance.driver import RETRIED, Driver, FanOut
from lamina.maintenance.job import Job
from lamina.maintenance.learning import LearningJob
from lamina.maintenance.reembed import ReembedJob, ReembedPolicy
from lamina.maintenance.row_jobs import DECAY, EDGES, ENTITIES, RowJob, RowPolicy, sweep_of
from lamina.maintenance.summaries import SummaryJob
from lamina.maintenance.sweep import EndedRowsJob, SweepJob, VersionsJob
from lamina.maintenance.tenant_jobs import AuditJob, CacheExpiryJob
from lamina.maintenance.undo import Undo
from lamina.maintenance.worker import JobLimits, Worker
from lamina.models.lazy import LazyEmbedder
from lamina.models.prefixes import prefixes_of
from lamina.policies.caching.cache_keys import digest
from lamina.policies.retention.clusters import EdgePolicy
from lamina.policies.retention.summary_periods import SummaryPolicy
from lamina.projections.audit import Audit
from lamina.settings.loading import Settings
from lamina.stores.postgres.connection import Pool
from lamina.stores.postgres.generations import active_generation, begin_building
from lamina.stores.postgres.response_chains import end_chains
from lamina.stores.postgres.retention import (
    EndedOfTenant,
    count_empty_places,
    count_ended,
    end_empty_places,
    end_of_tenant,
)
from lamina.stores.postgres.vectors import end_refusals
from lamina.wiring.archives import build_archival
from lamina.wiring.caches import build_cache_tables, longest_answer
from lamina.wiring.stores import (
    build_model,
    database_digest,
    learning_policy,
    model_identity,
    session_url,
    similar_links,
    utc_now,
    with_thresholds,
)

NO_GENERATION = 0  # Rows of every generation expire.
OPERATIONS_KEPT = timedelta(days=30)
"""Least time after the end of an operation; as long as its undo has something to bring back."""


@dataclass(frozen=True, slots=True)
class Tools:
    """The tools of jobs beside Postgres.

    Args:
        embedder: Embeds texts, beside the service's own.
        audits: Compares each projection with Postgres, for a tenant.
    """

    embedder: Embedder
    audits: Mapping[ProjectionName, Audit] = field(default_factory=dict)


Build = Callable[[Settings, Pool, Tools], Job[Any]]


@dataclass(frozen=True, slots=True)
class JobKind:
    """The properties of a job that its run needs before it is built.

    Args:
        description: Its work, in a line.
        build: Builds the job.
        units: ``namespaces`` or ``tenants``.
    """

    description: str
    build: Build
    units: str = "namespaces"


def _by_row(policy: RowPolicy) -> Build:
    def build(settings: Settings, pool: Pool, tools: Tools) -> RowJob:  # noqa: ARG001 - it needs none
        return RowJob(pool, policy, page_rows=settings.jobs.page_rows)

    return build


def _sweep(settings: Settings, pool: Pool, tools: Tools) -> SweepJob:  # noqa: ARG001 - it needs none
    versions: dict[str, Any] = {"kept": timedelta(days=settings.history.days), "page_rows": settings.jobs.page_rows}
    # A run is undone by its end, which is up to a day after the moment at which its rows count as deleted.
    kept = max(undo_window(settings), timedelta(days=settings.history.trash_days)) + RETRIED
    deleted: dict[str, Any] = versions | {"kept": kept}
    return SweepJob(
        {
            "notes": RowJob(pool, sweep_of(settings.cold.days_per_doubling), page_rows=settings.jobs.page_rows),
            "note_versions": VersionsJob(pool, "note", **versions),
            "profile_versions": VersionsJob(pool, "profile", **versions),
            "deleted_notes": EndedRowsJob(pool, "notes", **deleted),
            "deleted_procedures": EndedRowsJob(pool, "procedures", **deleted),
            "outcomes": EndedRowsJob(pool, "outcomes", **versions),
        }
    )


def _dedup(settings: Settings, pool: Pool, tools: Tools) -> DedupJob:  # noqa: ARG001 - it needs none
    chosen = settings.jobs.dedup
    return DedupJob(pool, min_jaccard=chosen.jaccard, window=timedelta(days=chosen.window_days))


def build_summarizer(settings: Settings, embedder: Embedder) -> Summarizer:
    """Build the chosen summarizer."""
    match settings.jobs.summaries.by:
        case "extractive":
            return ExtractiveSummarizer(embedder)
        case "language_model":
            return _shared_summarizer(settings)
        case _ as other:
            assert_never(other)


def _shared_summarizer(settings: Settings) -> Summarizer:
    """Return the process's summariser: all its partitions share one budget of calls and one pool of connections."""
    key = digest_with_secrets(settings.language_model)
    if key not in _SUMMARIZERS:
        _SUMMARIZERS[key] = LanguageModelSummarizer(settings.language_model, utc_now)
    return _SUMMARIZERS[key]


def _deriver(settings: Settings, pool: Pool, embedder: Embedder) -> Deriver:
    chosen = settings.write
    return Deriver(
        pool,
        embedder,
        model_identity(settings),
        deadline_s=chosen.embed_deadline_s,
        similar=similar_links(settings),
    )


def _summaries(settings: Settings, pool: Pool, tools: Tools) -> SummaryJob:
    chosen = settings.jobs.summaries
    return SummaryJob(
        pool,
        build_summarizer(settings, tools.embedder),
        _deriver(settings, pool, tools.embedder),
        SummaryPolicy(after=timedelta(days=chosen.after_days), least_notes=chosen.least_sources),
        tokens=chosen.tokens,
    )


def _consolidation(settings: Settings, pool: Pool, tools: Tools) -> ConsolidationJob:
    chosen = settings.jobs.consolidation
    return ConsolidationJob(
        pool,
        build_summarizer(settings, tools.embedder),
        _deriver(settings, pool, tools.embedder),
        ConsolidationPolicy(
            min_cosine=chosen.cosine,
            least_members=chosen.least_members,
            tokens=settings.jobs.summaries.tokens,
            edges=EdgePolicy(least_shared=chosen.shared_neighbours),
        ),
    )


def _learning(settings: Settings, pool: Pool, tools: Tools) -> LearningJob:
    return LearningJob(
        pool,
        tools.embedder,
        model_identity(settings),
        learning_policy(settings),
        deadline_s=settings.write.embed_deadline_s,
    )


def _compaction(settings: Settings, pool: Pool, tools: Tools) -> CompactionJob:
    return CompactionJob(
        pool,
        build_summarizer(settings, tools.embedder),
        tools.embedder,
        model_identity(settings),
        compaction_policy(settings.jobs),
    )


def _reembed(settings: Settings, pool: Pool, tools: Tools) -> ReembedJob:
    chosen = settings.embedding.thresholds
    policy = ReembedPolicy(model_identity(settings), chosen, undo_window(settings), settings.jobs.page_rows)
    return ReembedJob(
        pool, tools.embedder, policy, lambda: begin_building(session_url(settings), policy.identity, chosen)
    )


def _upkeep(settings: Settings, pool: Pool, tools: Tools) -> CacheExpiryJob:  # noqa: ARG001 - it needs none
    tables = build_cache_tables(settings, pool, NO_GENERATION)
    history, trash = timedelta(days=settings.history.days), timedelta(days=settings.history.trash_days)
    kept: Mapping[EndedOfTenant, timedelta] = {
        "events": timedelta(days=settings.events.keep_days),
        "trash": trash,
        "letters": timedelta(0),  # Behind the events, and feedback behind the trash: both go with what they belong to.
        "feedback": timedelta(0),
        "operations": max(OPERATIONS_KEPT, trash),
        "keys": history,
        "shares": history,
        "receipts": timedelta(days=settings.erasure.receipt_days),
        "user_profile_versions": history,
    }
    empty = max(timedelta(days=settings.history.empty_days), longest_answer(settings.caches))

    async def count(now: datetime, tenant: str) -> int:
        expired = await tables.count_expired(now, tenant)
        expired += await count_ended(pool, tenant, kept, now)
        return expired + await count_empty_places(pool, tenant, cutoff=now - empty)

    async def purge(now: datetime, tenant: str) -> int:
        expired = await end_of_tenant(pool, tenant, kept, now)
        await end_chains(pool, tenant, now)
        await end_refusals(pool)
        expired += sum((await tables.purge_expired(now, tenant)).values())
        return expired + await end_empty_places(pool, tenant, now=now, cutoff=now - empty)

    return CacheExpiryJob(count, purge)


JOBS: Mapping[JobName, JobKind] = {
    "sweep": JobKind(
        "demotes warm notes past their lifespan, takes out what has expired, and ends old versions and deleted rows",
        _sweep,
    ),
    "decay": JobKind("lets notes that nobody finds fade from contexts", _by_row(DECAY)),
    "entities": JobKind("lowers the confidence of entities that nothing mentions", _by_row(ENTITIES)),
    "edges": JobKind("lets edges decay by their half-life", _by_row(EDGES)),
    "dedup": JobKind("merges near-duplicates", _dedup),
    "summaries": JobKind("summarises days, weeks and months of older notes", _summaries),
    "consolidation": JobKind("makes one note of related ones, and edges of shared neighbours", _consolidation),
    "learning": JobKind("learns procedures from runs of agents with an outcome", _learning),
    "compaction": JobKind("puts summaries in the place of older messages of full sessions", _compaction),
    "archival": JobKind(
        "moves cold notes that nobody finds to the archive",
        lambda settings, pool, _: build_archival(settings, pool),
    ),
    "reembed": JobKind("embeds what lacks vectors of the configured model", _reembed),
    "caches": JobKind(
        "removes what has expired from the caches' tables, grants, receipts and events that ended, and empty places",
        _upkeep,
        units="tenants",
    ),
    "audit": JobKind(
        "compares every projection with Postgres and repairs it",
        lambda _, __, tools: AuditJob(tools.audits),
        units="tenants",
    ),
}


def refuse_area_within_tenant(job: JobName, area: Area) -> None:
    """Refuse an area within a tenant for a job that works on whole tenants.

    Raises:
        InvalidInput: Naming the job.
    """
    if JOBS[job].units == "tenants" and area.workspace is not None:
        raise InvalidInput("workspace", f"is {area.workspace}, but {job} works on whole tenants; leave it out")


def build_job_embedder(settings: Settings) -> Embedder:
    """Build a worker's own embedder, so that no agent waits for a job; it loads the model at the first text."""
    return LazyEmbedder(lambda: _load_model(settings), prefixes_of(settings.embedding))


_MODELS: dict[bytes, Model] = {}
_SUMMARIZERS: dict[bytes, Summarizer] = {}


def _load_model(settings: Settings) -> Model:
    """Return the model; a process loads it once for all partitions that it works on."""
    key = digest_with_secrets(settings.embedding)
    if key not in _MODELS:
        _MODELS[key] = build_model(settings, device="cpu")
    return _MODELS[key]


def build_job(settings: Settings, pool: Pool, name: JobName, tools: Tools) -> Job[Any]:
    """Build a job."""
    return JOBS[name].build(settings, pool, tools)


def build_worker(settings: Settings, pool: Pool, name: JobName, tools: Tools) -> Worker:
    """Build the worker on the partitions of a job's runs."""
    return Worker(pool, build_job(settings, pool, name, tools), job_limits(settings, name))


async def with_thresholds_of(settings: Settings, pool: Pool) -> Settings:
    """Return the settings with the cosines of the active generation's model."""
    active = await active_generation(pool)
    return settings if active is None else with_thresholds(settings, active)


def build_driver(settings: Settings, pool: Pool, name: JobName, fan_out: FanOut) -> Driver:
    """Build the driver of a job's runs over any workers."""
    return Driver(
        session_url(settings),
        pool,
        job_limits(settings, name),
        fan_out,
        partitions=settings.jobs.partitions,
        undo_window=undo_window(settings),
        clock=utc_now,
    )


def build_undo(settings: Settings, pool: Pool, name: JobName, tools: Tools) -> Undo:
    """Build the undo of a job's runs."""
    job = build_job(settings, pool, name, tools)
    return Undo(session_url(settings), pool, job, window=undo_window(settings))


def jobs_namespace(settings: Settings) -> str:
    """Return the namespace that keeps the scheduler of one database apart on a cluster."""
    return f"lamina-jobs-{database_digest(settings)}"


def jobs_edition(settings: Settings) -> str:
    """Return a digest that changes with release and settings, so that an older scheduler ends."""
    return digest(__version__, digest_with_secrets(settings)).hex()[:12]


def settings_digest(settings: Settings) -> str:
    """Return a digest of the settings by which jobs decide and act: the same wherever its stores and servers are."""
    sections = (
        *(settings.embedding, settings.language_model, settings.write, settings.procedures, settings.cold),
        *(settings.history, settings.erasure, settings.events, settings.caches, settings.jobs),
    )
    return digest(*map(digest_with_secrets, sections)).hex()[:12]


def digest_with_secrets(section: BaseModel) -> bytes:
    """Return a digest of a section that changes with its secrets, too, which a dump of it replaces by stars."""

    def secrets_in(value: Any) -> Iterator[str]:
        if isinstance(value, SecretStr):
            yield value.get_secret_value()
        elif isinstance(value, Mapping | list | tuple):
            for part in value.values() if isinstance(value, Mapping) else value:
                yield from secrets_in(part)

    return digest(section.model_dump(mode="json"), list(secrets_in(section.model_dump())))


def undo_window(settings: Settings) -> timedelta:
    """Return how long a run can be undone."""
    return timedelta(days=settings.jobs.undo_days)


def job_limits(settings: Settings, name: JobName) -> JobLimits:
    """Return the kind of a job's units, and the share of a unit that it may remove."""
    return JobLimits(JOBS[name].units, settings.jobs.most_removed)
