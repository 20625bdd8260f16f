"""The erasure of a user."""

from typing import Annotated, Self

from fastapi import APIRouter, Query
from pydantic import BaseModel, Field

from deployments.services import AdminDep, ServicesDep
from lamina.ingest.erasure import Receipt
from lamina.wiring import utc_now

router = APIRouter(prefix="/v1", tags=["operations"])


class ReceiptOut(BaseModel):
    """What an erasure did."""

    user: str = Field(description="Whose memories they were.")
    erased: dict[str, int] = Field(description="Rows that went, by what they were.")
    left: dict[str, int] = Field(description="What was found when everything was looked for again; all 0.")
    complete: bool = Field(description="Whether nothing was found again.")

    @classmethod
    def of(cls, user: str, receipt: Receipt) -> Self:
        """Return a receipt."""
        return cls(user=user, erased=dict(receipt.erased), left=dict(receipt.left), complete=receipt.is_complete)


@router.delete("/users")
async def erase_user(
    user: Annotated[str, Query(description="Whose memories.")], services: ServicesDep, credential: AdminDep
) -> ReceiptOut:
    """Erase everything that belongs to a user, in all workspaces of the key's tenant, and what was made from it.

    It leaves every table, index, cache and archive, and cannot be undone. Needs an admin's key.
    """
    receipt = await services.eraser.erase(credential.tenant, user, utc_now())
    return ReceiptOut.of(user, receipt)
