"""What the routes of maintenance take and return."""

from datetime import datetime
from typing import Self
from uuid import UUID

from pydantic import BaseModel, Field

from deployments.routes.models import Strict
from lamina.maintenance.reporting import report
from lamina.runs import Counts, Held, JobName, Run
from lamina.wiring import JOBS


class JobIn(Strict):
    """What to run, and on what; the tenant is the key's."""

    job: JobName = Field(description="Which job.")
    tenant: str | None = Field(None, description="May be named, and then is the key's own.")
    workspace: str | None = Field(None, description="Only this project; all of the tenant's if not given.")
    namespace: str | None = Field(None, description="Only this subdivision of the workspace.")
    dry_run: bool = Field(default=False, description="Only tell what it would do.")
    force: bool = Field(default=False, description="Remove more than a fifth of a scope, if it comes to that.")


class CountsOut(BaseModel):
    """How much a run saw and did."""

    units: int = Field(description="Scopes (of some jobs: tenants) that are finished.")
    seen: int = Field(description="Rows looked at.")
    planned: int = Field(description="Rows it decided to change.")
    changed: int = Field(description="Rows it changed; others may have changed one first.")
    removed: int = Field(description="Of these, rows that left every search.")

    @classmethod
    def of(cls, counts: Counts) -> Self:
        """Return the counts of a run."""
        return cls.model_validate(counts, from_attributes=True)


class HeldOut(BaseModel):
    """A scope that was left alone, because too much of it would have gone."""

    tenant: str
    workspace: str | None
    namespace: str | None
    size: int = Field(description="Rows the scope has.")
    removals: int = Field(description="Rows that would have gone.")

    @classmethod
    def of(cls, held: Held) -> Self:
        """Return a scope that was held back."""
        return cls.model_validate(held, from_attributes=True)


class RunOut(BaseModel):
    """A run of a job."""

    id: UUID
    job: JobName
    state: str = Field(description="queued, running, done, stopped, failed, undoing or undone.")
    workspace: str | None
    namespace: str | None
    dry_run: bool
    force: bool
    requested_by: str
    moment: datetime = Field(description="The time from which it decides.")
    plan: dict[str, int] = Field(description="Units and partitions that it is cut into, once it runs.")
    counts: CountsOut
    held: list[HeldOut]
    problems: list[str] = Field(description="What could not be done, and is tried again by the next run.")
    error: str | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    undone_at: datetime | None
    report: list[str] = Field(description="All this in words.")

    @classmethod
    def of(cls, run: Run) -> Self:
        """Return a run."""
        order = run.order
        return cls(
            id=run.id,
            job=order.job,
            state=run.state,
            workspace=order.area.workspace,
            namespace=order.area.namespace,
            dry_run=order.is_dry_run,
            force=order.is_forced,
            requested_by=order.requested_by,
            moment=order.moment,
            plan=dict(run.plan),
            counts=CountsOut.of(run.counts),
            held=[HeldOut.of(held) for held in run.held],
            problems=list(run.problems),
            error=run.error,
            created_at=run.created_at,
            started_at=run.started_at,
            finished_at=run.finished_at,
            undone_at=run.undone_at,
            report=list(report(run, JOBS[order.job].told)),
        )


class RunsOut(BaseModel):
    """Runs, the latest first."""

    runs: list[RunOut]


class ScheduledOut(BaseModel):
    """When a job runs by itself, on all tenants."""

    job: JobName
    told: str = Field(description="What it does.")
    schedule: str = Field(description="Cron expression in UTC, or off.")
    next_at: datetime | None
    last_at: datetime | None = Field(description="When it was last ordered on this tenant, by anybody.")


class ScheduleOut(BaseModel):
    """The schedule."""

    jobs: list[ScheduledOut]
