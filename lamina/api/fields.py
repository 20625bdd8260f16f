"""Types that the requests and answers of several resources share."""

import re
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Annotated, Any, Self, get_args

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    ModelWrapValidatorHandler,
    model_validator,
)
from pydantic_core import (
    CoreSchema,
    ErrorDetails,
    InitErrorDetails,
    PydanticCustomError,
    ValidationError,
    core_schema,
)

from lamina.core.documents import MAX_TITLE_CHARS
from lamina.core.memories import MAX_SOURCE_CHARS, MAX_TAGS
from lamina.text.hygiene import MAX_CONTENT_CHARS, MAX_ID_CHARS, MAX_QUERY_CHARS, excess, shorten

MAX_BATCH = 1000
MAX_MEDIA_TYPE_CHARS = 255
MAX_TIME_CHARS = 64
MAX_TIERS = 64
"""Tiers that a request may name, some of them more than once."""
MOST_UNKNOWN_FIELDS = 20
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
ABSENT: Any = None
"""The default of a field that may be left out; null in the request is refused."""


def _refuse_no_date(value: object) -> object:
    # Numbers, and texts that are numbers, would be taken for seconds or milliseconds, by their size.
    if isinstance(value, str) and (len(value) > MAX_TIME_CHARS or _DATE.match(value) is None):
        raise ValueError("is no time in ISO 8601; send one like 2026-03-01T10:00:00Z")
    if not isinstance(value, str | datetime):
        raise ValueError("is no text; send a time in ISO 8601, like 2026-03-01T10:00:00Z")  # noqa: TRY004 - for pydantic
    return value


Moment = Annotated[datetime, BeforeValidator(_refuse_no_date)]
Flag = Annotated[bool, Field(strict=True)]
Fraction = Annotated[float, Field(strict=True, ge=0, le=1)]
Count = Annotated[int, Field(strict=True)]
Weight = Annotated[float, Field(strict=True, ge=0, le=1000)]


@dataclass(frozen=True, slots=True)
class AtMost:
    """Marks a text of at most so many characters, which are counted as if it were composed (NFC)."""

    characters: int

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Return how pydantic checks it."""
        return core_schema.no_info_after_validator_function(self._check, handler(source))

    def __get_pydantic_json_schema__(self, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Return how the OpenAPI document shows it."""
        return {**handler(schema), "maxLength": self.characters}

    def _check(self, text: str) -> str:
        if (characters := excess(text, self.characters)) is not None:
            found = {"characters": characters, "most": self.characters}
            raise PydanticCustomError(
                "text_too_long", "has {characters} characters; at most {most} are accepted", found
            )
        return text


Id = Annotated[str, AtMost(MAX_ID_CHARS)]
Content = Annotated[str, AtMost(MAX_CONTENT_CHARS)]
Question = Annotated[str, AtMost(MAX_QUERY_CHARS)]
SourceName = Annotated[str, AtMost(MAX_SOURCE_CHARS)]
Title = Annotated[str, AtMost(MAX_TITLE_CHARS)]
MediaType = Annotated[str, AtMost(MAX_MEDIA_TYPE_CHARS)]
Tags = Annotated[list[Id], Field(max_length=MAX_TAGS)]


class Strict(BaseModel):
    """Refuses unknown fields, so that a typing error is never silently ignored."""

    model_config = ConfigDict(extra="forbid")

    @model_validator(mode="wrap")
    @classmethod
    def _name_known(cls, sent: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        """Refuse unknown fields with the names of those that are known.

        An object of very many fields is refused at once: an error for each would take a kilobyte of memory.
        """
        if isinstance(sent, dict) and len(sent) > len(cls.model_fields) + MOST_UNKNOWN_FIELDS:
            unknown = [shorten(str(name)) for name in islice(sent.keys() - cls.model_fields.keys(), 3)]
            raise PydanticCustomError(
                "too_many_fields",
                "has {count} fields, {names} among them; only {known} are known",
                {"count": len(sent), "names": ", ".join(sorted(unknown)), "known": ", ".join(cls.model_fields)},
            )
        try:
            return handler(sent)
        except ValidationError as error:
            found = error.errors(include_url=False)
            if not any(_is_unknown_field(item) for item in found):
                raise
            known = ", ".join(field.alias or name for name, field in cls.model_fields.items()) or "nothing"
            details = [_detail(item, known) for item in found]
            raise ValidationError.from_exception_data(error.title, details) from None


_BUILT_IN = frozenset(get_args(core_schema.ErrorType))


def _is_unknown_field(item: ErrorDetails) -> bool:
    """Report whether it is about a field of the object itself, and not of a part of it."""
    return item["type"] == "extra_forbidden" and len(item["loc"]) == 1


def _detail(item: ErrorDetails, known: str) -> InitErrorDetails:
    """Return an error as it was; one about an unknown field with the names of those that are known."""
    kind: str | PydanticCustomError = item["type"]
    if _is_unknown_field(item):
        kind = PydanticCustomError("unknown_field", f"is not known here; known are {known}")
    elif kind not in _BUILT_IN:
        kind = PydanticCustomError(kind, item["msg"])  # type: ignore[arg-type]
    return InitErrorDetails(type=kind, loc=item["loc"], input=item["input"], ctx=item.get("ctx", {}))


class Output(BaseModel):
    """A part of an answer that shows a value of the library."""

    model_config = ConfigDict(from_attributes=True)

    @classmethod
    def from_attributes(cls, *values: object, **fields: Any) -> Self:
        """Take each field from the first value that has an attribute of its name; ``fields`` are set as given."""
        names = cls.model_fields
        taken = {name: getattr(item, name) for item in reversed(values) for name in names if hasattr(item, name)}
        return cls(**(taken | fields))


class PageOut(BaseModel):
    """A page of a list."""

    next_cursor: str | None = Field(
        description="Send it as `cursor` for the next page; null at the end. The header `Link` has the same."
    )
