"""The erasure of a user."""

from pydantic import Field

from lamina.api.fields import Output


class ReceiptOut(Output):
    """The receipt of an erasure."""

    user: str = Field(description="Whose memories they were.")
    erased: dict[str, int] = Field(description="Rows that went, by what they were.")
    left: dict[str, int] = Field(description="What was found when everything was looked for again; all 0.")
    complete: bool = Field(description="Whether nothing was found again.")
