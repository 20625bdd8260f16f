"""Maintenance jobs: requests and answers."""

from collections.abc import Iterable
from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import Flag, Id, Output, PageOut, Strict
from lamina.core.runs import JobName, Run, RunState


class JobIn(Strict):
    """A job to run; the tenant is the key's."""

    job: JobName = Field(description="Which job.")
    tenant: Id | None = Field(None, description="May be named, and then is the key's own.")
    workspace: Id | None = Field(None, description="Only this project; all of the tenant's if not given.")
    namespace: Id | None = Field(None, description="Only this subdivision of the workspace.")
    dry_run: Flag = Field(default=False, description="Only tell what it would do.")
    force: Flag = Field(default=False, description="Remove more of a scope than `jobs.most_removed`.")


class CountsOut(Output):
    """How much a run saw and did."""

    units: int = Field(description="Scopes (of some jobs: tenants) that are finished.")
    seen: int = Field(description="Rows looked at.")
    planned: int = Field(description="Rows it decided to change.")
    changed: int = Field(description="Rows it changed; others may have changed one first.")
    removed: int = Field(description="Of these, rows that left every search.")


class HeldOut(Output):
    """A scope that was left alone, because too much of it would have gone."""

    tenant: str = Field(description="Whose.")
    workspace: str | None = Field(description="Which project.")
    namespace: str | None = Field(description="Which subdivision.")
    size: int = Field(description="Rows the scope has.")
    removals: int = Field(description="Rows that would have gone.")


class RunOut(Output):
    """A run of a job."""

    id: UUID = Field(description="Of the run.")
    job: JobName = Field(description="Which job.")
    state: RunState = Field(description="What became of it.")
    workspace: str | None = Field(description="What it is about; all of the tenant's if not given.")
    namespace: str | None = Field(description="The same within the workspace.")
    area: str = Field(description="The same in words.")
    dry_run: bool = Field(description="Whether it only tells what it would do.")
    force: bool = Field(description="Whether it may remove more of a scope than otherwise.")
    requested_by: str = Field(description="Who ordered it: cli, schedule or api.")
    moment: datetime = Field(description="The time from which it decides.")
    plan: dict[str, int] = Field(description="Units and partitions that it is cut into, once it runs.")
    counts: CountsOut = Field(description="How much it saw and did.")
    held: list[HeldOut] = Field(description="Scopes that were left alone, because too much of them would have gone.")
    problems: list[str] = Field(description="What could not be done, and is tried again by the next run.")
    undone: CountsOut | None = Field(
        description="Once undone: rows it had changed (`seen`), and as they were (`changed`)."
    )
    error: str | None = Field(description="Why it, or its undo, failed.")
    created_at: datetime = Field(description="When it was ordered.")
    started_at: datetime | None = Field(description="When it began.")
    finished_at: datetime | None = Field(description="When it ended.")
    undone_at: datetime | None = Field(description="When it was undone.")
    report: list[str] = Field(description="All this in words.")

    @classmethod
    def from_run(cls, run: Run, report: Iterable[str]) -> Self:
        """Show a run; ``report`` says the same in words."""
        order = run.order
        return cls.from_attributes(
            run,
            order,
            workspace=order.area.workspace,
            namespace=order.area.namespace,
            area=str(order.area),
            dry_run=order.is_dry_run,
            force=order.is_forced,
            report=list(report),
        )


class RunsOut(PageOut):
    """Runs, the latest first."""

    runs: list[RunOut] = Field(description="The latest first.")


class ScheduledOut(BaseModel):
    """When a job runs by itself, on all tenants."""

    job: JobName = Field(description="Which job.")
    told: str = Field(description="What it does.")
    schedule: str = Field(description="Cron expression in UTC, or off.")
    next_at: datetime | None = Field(description="When it is due next.")
    last_at: datetime | None = Field(description="When it was last ordered by the schedule.")


class ScheduleOut(BaseModel):
    """The schedule."""

    jobs: list[ScheduledOut] = Field(description="Every job.")
