"""The audit of the projections."""

from pydantic import BaseModel, Field

from lamina.api.fields import Flag, Strict


class AuditIn(Strict):
    """Whether to repair drift."""

    repair: Flag = Field(default=False, description="Have what differs taken over from Postgres again.")


class DriftOut(BaseModel):
    """How a projection differs from Postgres, in this key's tenant."""

    expected: int = Field(description="Memories that belong in it.")
    found: int = Field(description="Memories that are in it.")
    missing: int = Field(description="Those that belong in it and are not.")
    surplus: int = Field(description="Those that are in it and do not belong.")
    different: int = Field(description="Those that are in it in another state.")
    pending: int = Field(description="Memories of any tenant that the outbox still holds for it.")
    repaired: int = Field(description="Memories that were put into the outbox to be taken over again.")


class AuditOut(BaseModel):
    """The audit's report."""

    consistent: bool = Field(description="Whether every projection holds what Postgres says.")
    projections: dict[str, DriftOut] = Field(description="One entry a projection that answered.")
    failed: dict[str, str] = Field(description="Projections that could not be compared, and why.")
