"""The form of every section of the settings."""

from itertools import pairwise
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

MIB = 1024 * 1024


class Section(BaseModel):
    """A part of the settings: unknown names are refused, values never change."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)


SectionT = TypeVar("SectionT", bound=BaseModel)


def require_order(section: SectionT, *names: str) -> SectionT:
    """Return the section, if the values of these fields do not decrease."""
    for lower, higher in pairwise(names):
        small, large = getattr(section, lower), getattr(section, higher)
        if small > large:
            message = f"{lower} is {small}, more than {higher} ({large})"
            raise ValueError(message)
    return section
