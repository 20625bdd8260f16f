"""Types that the requests and answers of several resources share."""

import re
from datetime import datetime
from typing import Annotated, Any, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

MAX_BATCH = 1000
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
ABSENT: Any = None
"""The default of a field that may be left out; null in the request is refused."""


def _refuse_no_date(value: object) -> object:
    # Numbers, and texts that are numbers, would be taken for seconds or milliseconds, by their size.
    if isinstance(value, str) and _DATE.match(value) is None:
        raise ValueError("is no time in ISO 8601; send one like 2026-03-01T10:00:00Z")
    if not isinstance(value, str | datetime):
        raise ValueError("is no text; send a time in ISO 8601, like 2026-03-01T10:00:00Z")  # noqa: TRY004 - for pydantic
    return value


Moment = Annotated[datetime, BeforeValidator(_refuse_no_date)]
Flag = Annotated[bool, Field(strict=True)]
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
