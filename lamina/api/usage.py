"""Use of the service: answers."""

from datetime import date

from pydantic import BaseModel, Field


class UsedDayOut(BaseModel):
    """The use of a tenant on a day."""

    day: date = Field(description="In UTC.")
    requests: int = Field(description="Requests with a valid key.")
    searches: int = Field(description="Searches and contexts, cached ones too, each of a batch.")
    turns: int = Field(description="Requests that store a turn.")
    embedded_tokens: int = Field(description="Estimated tokens that the embedding model read for requests.")
    model_tokens: int = Field(description="Tokens of the language model for requests.")
    bytes: int = Field(description="Bytes of the bodies that were sent.")


class UsageOut(BaseModel):
    """The use of a tenant by day."""

    days: list[UsedDayOut] = Field(description="Days on which something was used, the earliest first.")
    total: dict[str, int] = Field(description="The sum of these days, by the same names.")
    stored: dict[str, int] = Field(description="What the tenant stores, counted some seconds ago.")
