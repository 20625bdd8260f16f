"""The answer to a batch of notes or of procedures."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from lamina.text.paraphrase import Difference


class BatchItem(BaseModel):
    """The result of one item of a batch."""

    status: Literal["created", "existed", "invalid"] = Field(description="What became of it.")
    id: UUID | None = Field(None, description="Id of the note; none for an invalid item.")
    merged: bool = Field(default=False, description="Whether an existing note says the same in other words.")
    difference: Difference | None = Field(
        None, description="How a merged text differs from that note: spelling, forms, synonyms or wording."
    )
    error: str | None = Field(None, description="What is wrong with an invalid item, naming its field.")


class BatchOut(BaseModel):
    """One result an item, in their order."""

    results: list[BatchItem] = Field(description="One entry an item, in their order.")
    epoch: int | None = Field(None, description="The namespace's epoch; none if nothing was stored.")
