"""Maintenance over the cluster: limits and schedules."""

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from lamina.settings.section import Section, require_order
from lamina.settings.serving import CustomResources

OFF = "off"

CRON_FIELDS = 5

Schedule = Annotated[str, Field(min_length=3)]


class DedupSettings(Section):
    """The merge of near-duplicates."""

    jaccard: float = Field(0.85, gt=0, le=1, description="Least share of words in common of two near-duplicates.")
    window_days: float = Field(30.0, gt=0, description="Most days between the writing of one and of the other.")


class SummariesSettings(Section):
    """Summaries of older notes, of consolidated notes, and of compacted sessions."""

    by: Literal["extractive", "language_model"] = Field(
        "extractive", description="Sentences chosen from the sources, or the endpoint of `language_model`."
    )
    tokens: int = Field(400, ge=32, description="Most estimated tokens of a summary.")
    after_days: float = Field(7.0, ge=0, description="Notes younger than this are not summarised.")
    least_sources: int = Field(3, ge=2, description="Notes of a day from which the day gets a summary.")


class CompactionSettings(Section):
    """When older messages of a session become a summary."""

    budget_tokens: int = Field(8192, ge=256, description="Estimated tokens that a session may hold.")
    near: float = Field(0.70, gt=0, le=1, description="Share of the budget from which a forecast warns.")
    due: float = Field(0.85, gt=0, le=1, description="Share of the budget from which a session is compacted.")
    target: float = Field(0.50, gt=0, le=1, description="Share of the budget that is left after a compaction.")
    keep_messages: int = Field(4, ge=1, description="Latest messages that are never compacted.")

    @model_validator(mode="after")
    def _ordered(self) -> Self:
        return require_order(self, "target", "near", "due")


class ConsolidationSettings(Section):
    """When notes of one kind become one."""

    cosine: float = Field(0.80, gt=0, le=1, description="Least cosine of a member and the middle of its cluster.")
    least_members: int = Field(3, ge=3, description="Members from which a cluster is consolidated.")
    shared_neighbours: int = Field(3, ge=1, description="Neighbours that two entities share to be related.")


class LearningSettings(Section):
    """When runs of agents propose procedures."""

    similarity: float = Field(
        0.7, gt=0, le=1, description="Least cosine of the first words of the user in two runs that teach one procedure."
    )
    steps: float = Field(0.5, ge=0, le=1, description="Least share of tools that both call in the same order.")
    successes: int = Field(
        2, ge=0, description="Runs that succeeded from which a procedure is active without a confirmation; 0 is never."
    )
    failures: int = Field(2, ge=1, description="Runs that failed from which one is dropped, if no more succeeded.")


class ArchivalSettings(Section):
    """The archive of cold notes that nobody finds."""

    url: str | None = Field(
        None,
        description="Folder, or URL of an object store (`s3://bucket/path`), for its Parquet files; `archive` in "
        "data_dir if not set.",
    )
    options: dict[str, str] = Field({}, description="Options of the store, as its fsspec driver names them.")
    idle_days: float = Field(180.0, gt=0, description="Days after which a cold note that nobody found is archived.")
    most_hits: int = Field(3, ge=1, description="Notes that were found more often stay.")


class ScheduleSettings(Section):
    """When jobs run by themselves: cron expressions in UTC, or `off`."""

    sweep: Schedule = Field("5 */6 * * *", description="Demotes notes past their lifespan; takes out expired ones.")
    decay: Schedule = Field("15 1 * * *", description="Lets idle notes fade from contexts.")
    dedup: Schedule = Field("30 1 * * *", description="Merges near-duplicates.")
    entities: Schedule = Field(
        "45 1 * * *", description="Lowers the confidence of entities that are no longer mentioned."
    )
    edges: Schedule = Field("0 2 * * *", description="Lets edges decay.")
    summaries: Schedule = Field("15 2 * * *", description="Summarises days, weeks and months.")
    compaction: Schedule = Field("40 * * * *", description="Compacts sessions that are near their budget.")
    consolidation: Schedule = Field("0 3 * * *", description="Consolidates related notes.")
    learning: Schedule = Field("25 * * * *", description="Learns procedures from runs of agents with an outcome.")
    archival: Schedule = Field("30 4 * * 0", description="Archives cold notes that nobody finds.")
    caches: Schedule = Field("50 * * * *", description="Removes what expired from the caches' tables.")
    audit: Schedule = Field("0 5 * * *", description="Compares every projection with Postgres, and repairs it.")
    reembed: Schedule = Field("45 3 * * *", description="Embeds what lacks vectors of the model.")

    @model_validator(mode="after")
    def _readable(self) -> Self:
        for name in type(self).model_fields:
            _refuse_unreadable(name, getattr(self, name))
        return self


def _refuse_unreadable(job: str, schedule: str) -> None:
    if schedule != OFF and len(schedule.split()) != CRON_FIELDS:
        message = f"{job} is {schedule!r}; write five cron fields (minute hour day month weekday) in quotes, or off"
        raise ValueError(message)


class JobsSettings(Section):
    """Maintenance over the cluster."""

    launcher: str = Field("jobs.launching:launch", description="Import path of what starts a run on the cluster.")
    is_scheduled: bool = Field(default=True, description="Whether the service runs jobs by their schedule.")
    parallelism: int = Field(2, ge=1, description="Partitions of a run that are worked on at the same time.")
    partitions: int = Field(16, ge=1, description="Most partitions that a run is cut into, by the hash of the scope.")
    task_cpus: float = Field(0.1, ge=0, description="CPUs that one worker reserves.")
    task_memory_mb: int = Field(0, ge=0, description="Memory that one worker reserves, in MiB; 0 reserves none.")
    task_resources: CustomResources = Field(
        {}, description="Other resources that one worker reserves, by Ray's name: they decide where it runs."
    )
    driver_resources: dict[str, float] = Field(
        {},
        description="Resources that the scheduler and each driver of a run reserve, like `task_resources`.",
    )
    nice: int = Field(
        10, ge=0, le=19, description="Niceness of a worker: how far it yields to everything else on its machine."
    )
    page_rows: int = Field(
        2000, ge=1, description="Rows that are changed together, by jobs that decide on each row by itself."
    )
    most_removed: float = Field(
        0.2, ge=0, le=1, description="A scope that would lose more than this share of its rows is left unchanged."
    )
    undo_days: float = Field(30.0, gt=0, description="Days for which a run can be undone.")
    dedup: DedupSettings = DedupSettings()
    summaries: SummariesSettings = SummariesSettings()
    compaction: CompactionSettings = CompactionSettings()
    consolidation: ConsolidationSettings = ConsolidationSettings()
    learning: LearningSettings = LearningSettings()
    archival: ArchivalSettings = ArchivalSettings()
    schedule: ScheduleSettings = ScheduleSettings()
