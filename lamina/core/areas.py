"""Areas of maintenance: everything, a tenant, a workspace or a namespace."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Self

from lamina.core.scope import Scope
from lamina.errors import InvalidInput
from lamina.text.hygiene import clean_id

LEVELS = ("tenant", "workspace", "namespace")


@dataclass(frozen=True, slots=True)
class Area:
    """A part of the data; an id that is ``None`` means all.

    Raises:
        InvalidInput: If a level is given without the one above it, or is no id.
    """

    tenant: str | None = None
    workspace: str | None = None
    namespace: str | None = None

    def __post_init__(self) -> None:
        for above, level in zip((None, *LEVELS), LEVELS, strict=False):
            value = getattr(self, level)
            if value is None:
                continue
            if above and getattr(self, above) is None:
                raise InvalidInput("scope", f"names a {level} without its {above}; name both")
            object.__setattr__(self, level, clean_id(value, level))

    @classmethod
    def parse(cls, pairs: Sequence[str]) -> Self:
        """Return the area of ``level=id`` pairs, as in ``tenant=acme``; of none, everything.

        Raises:
            InvalidInput: As :func:`ids_of`, or for a level without the one above it.
        """
        return cls(**ids_of(pairs))

    def ids(self) -> dict[str, str | None]:
        """Return its ids by level."""
        return asdict(self)

    def named(self) -> tuple[str, ...]:
        """Return the ids that it names, the widest first."""
        return tuple(id_ for id_ in (self.tenant, self.workspace, self.namespace) if id_ is not None)

    def scope(self) -> Scope:
        """Return a namespace's scope.

        Raises:
            ValueError: If it is more than one namespace.
        """
        tenant, workspace, namespace = self.named()
        return Scope(tenant, workspace, namespace)

    def __str__(self) -> str:
        return " ".join(f"{level}={id_}" for level, id_ in self.ids().items() if id_ is not None) or "everything"


def ids_of(pairs: Sequence[str]) -> dict[str, str]:
    """Return the ids of ``level=id`` pairs by level.

    Raises:
        InvalidInput: For a pair of another form, or a level named twice.
    """
    ids: dict[str, str] = {}
    for pair in pairs:
        level, equals, id_ = pair.partition("=")
        if not equals or level not in LEVELS or level in ids:
            raise InvalidInput(
                "scope", f"is {pair!r}; write tenant=ID, workspace=ID and namespace=ID, each once and as a whole"
            )
        ids[level] = id_
    return ids
