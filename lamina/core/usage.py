"""Use of the service, as bills count it."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from enum import StrEnum


class Use(StrEnum):
    """A thing that is counted by tenant and day."""

    REQUESTS = "requests"
    SEARCHES = "searches"
    TURNS = "turns"
    EMBEDDED_TOKENS = "embedded_tokens"
    MODEL_TOKENS = "model_tokens"
    BYTES = "bytes"


@dataclass(frozen=True, slots=True)
class UsedDay:
    """The use of a tenant on a day in UTC."""

    day: date
    amounts: Mapping[Use, int]
