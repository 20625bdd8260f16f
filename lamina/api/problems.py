"""Errors as the API returns them."""

from typing import Any

from pydantic import BaseModel, Field


class ProblemOut(BaseModel):
    """An error, as RFC 9457 describes it."""

    type: str = Field(description="Kind of error.")
    title: str = Field(description="The kind in words.")
    status: int = Field(description="HTTP status.")
    detail: str = Field(description="What is wrong and what would be right.")
    errors: list[dict[str, str]] | None = Field(None, description="The fields that are wrong: field and reason.")
    fields: dict[str, Any] | None = Field(None, description="The error's own values: part and reason, kind and id, …")
