"""The erasure of a user: progress and receipt."""

from datetime import datetime
from typing import Any, Self
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.api.fields import Output, PageOut
from lamina.core.erasures import Erasure, ErasureState


class ErasureOut(BaseModel):
    """An erasure of a user."""

    id: UUID = Field(description="Of the erasure; ask for it until it is complete.")
    user: str | None = Field(description="Whose memories they were; not kept once nothing of the user is found.")
    state: ErasureState = Field(
        description="`erasing`: rows and projections; `rewriting`: nothing is found, files are rewritten; `complete`."
    )
    erased: dict[str, int] = Field(description="Rows that went, by what they were.")
    left: dict[str, int] = Field(description="What was found when everything was looked for again; all 0 at the end.")
    complete: bool = Field(description="Whether nothing is found anywhere, and the receipt is signed.")
    waits_for: list[str] = Field(description="What it waits for, in words.")
    requested_at: datetime = Field(description="When it was ordered.")
    emptied_at: datetime | None = Field(description="When nothing of the user was found any more.")
    completed_at: datetime | None = Field(description="When it was complete.")
    receipt: dict[str, Any] | None = Field(
        description="The signed receipt: what was erased, and what remains where, until when. `lamina receipts verify` "
        "checks it."
    )

    @classmethod
    def from_erasure(cls, erasure: Erasure, user: str | None = None) -> Self:
        """Show an erasure; ``user`` is named by the request, if it is."""
        names = cls.model_fields.keys() - {"user", "complete"}
        shown = {name: getattr(erasure, name) for name in names}
        return cls(user=user or erasure.user, complete=erasure.is_complete, **shown)


class ErasuresOut(PageOut):
    """Erasures, the latest first."""

    erasures: list[ErasureOut] = Field(description="One entry an erasure.")


class ReceiptKeyOut(Output):
    """The public half of a key that signed receipts."""

    id: str = Field(description="Which key; receipts name it.")
    pem: str = Field(description="The Ed25519 public key, in PEM.")
    created_at: datetime = Field(description="When its first receipt was signed.")


class ReceiptKeysOut(BaseModel):
    """The public keys that check receipts."""

    keys: list[ReceiptKeyOut] = Field(description="One entry a key, the oldest first.")
