"""Readiness of the service."""

from pydantic import BaseModel, Field

from lamina.api.fields import Output
from lamina.core.queries import RerankerState


class AliveOut(BaseModel):
    """That the process answers."""

    status: str = Field(description="ok.")


class LagOut(Output):
    """How far a projection is behind Postgres."""

    pending: int = Field(description="Memories still to apply.")
    oldest_s: float = Field(description="Age of the oldest of them, in seconds.")


class BuildOut(Output):
    """A projection that is built anew beside the one that searches use."""

    number: int = Field(description="Number of the build, from 1.")
    pending: int = Field(description="Memories that it still has to take over before it is used.")


class ReadyOut(BaseModel):
    """Whether the service can do its work."""

    ready: bool = Field(description="Whether every part answers.")
    parts: dict[str, str] = Field(description="Each part: ok, late or failed; the log says why.")
    stores: dict[str, str] = Field(
        description="The store of each projection: ok, late or failed; the log says why. Unless all are ok, "
        "searches are degraded and changes wait; the service is ready."
    )
    reranker: RerankerState | None = Field(
        None,
        description="ok; paused: left out for a while after its failures; null where there is none. Without it "
        "searches are degraded; the service is ready.",
    )
    outbox: dict[str, LagOut] = Field(description="How far each projection is behind.")
    builds: dict[str, BuildOut] = Field(description="Projections that are being built anew.")
    version: str = Field(description="Version of Lamina.")
