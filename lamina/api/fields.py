"""Types that the requests and answers of several resources share."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field

MAX_BATCH = 1000
ABSENT: Any = None
"""The default of a field that may be left out; null in the request is refused."""

Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True)]


class Strict(BaseModel):
    """Refuses unknown fields, so that a typing error is never silently ignored."""

    model_config = ConfigDict(extra="forbid")


class Output(BaseModel):
    """A part of an answer that shows a value of the library."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_attributes(cls, *values: object, **fields: Any) -> Self:
        """Take each field from the first value that has an attribute of its name; ``fields`` are set as given."""
        names = cls.model_fields
        taken = {name: getattr(item, name) for item in reversed(values) for name in names if hasattr(item, name)}
        return cls(**(taken | fields))
