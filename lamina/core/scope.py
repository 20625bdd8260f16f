"""The scope: who asks, and where."""

from dataclasses import dataclass, fields, replace
from typing import Self

from lamina.text.hygiene import clean_id

DEFAULT_WORKSPACE = "default"
DEFAULT_NAMESPACE = "default"


@dataclass(frozen=True, slots=True)
class Scope:
    """The tuple of ids that every row, key and query carries.

    The tenant comes from the credential; everything else narrows it. Ids are compared as they
    are, never joined into one string.

    Raises:
        InvalidInput: If an id is not 1 to 128 printable characters.
    """

    tenant: str
    workspace: str = DEFAULT_WORKSPACE
    namespace: str = DEFAULT_NAMESPACE
    user: str | None = None
    agent: str | None = None
    session: str | None = None
    swarm: str | None = None

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None:
                object.__setattr__(self, field.name, clean_id(value, field.name))

    def narrowed(self, **ids: str | None) -> Self:
        """Return the same tenant's scope with other ids; the tenant cannot be changed."""
        narrowed = {name: value for name, value in ids.items() if name != "tenant"}
        return replace(self, **narrowed)  # type: ignore[arg-type]  # mypy sees one type for all fields
