"""The choice of the generation of vectors that embedding again fills, and of those that it deletes."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from lamina.core.ports import ModelIdentity


@dataclass(frozen=True, slots=True)
class GenerationStatus:
    """A generation in any state.

    Args:
        state: ``active``, ``building`` or ``retired``.
        retired_at: When another one took its place.
    """

    number: int
    identity: ModelIdentity
    state: str
    retired_at: datetime | None

    @property
    def is_active(self) -> bool:
        """Report whether searches read it."""
        return self.state == "active"


@dataclass(frozen=True, slots=True)
class GenerationTarget:
    """The generation that a run fills, and those whose vectors it deletes.

    Args:
        number: The generation of the configured model, if it has one.
        is_begun: Whether that one is being built or is the active one.
        outdated: Generations that no search reads and that no switch returns to.
    """

    number: int | None = None
    is_begun: bool = False
    outdated: tuple[int, ...] = ()


def choose_target(
    present: Sequence[GenerationStatus], identity: ModelIdentity, moment: datetime, undo_window: timedelta
) -> GenerationTarget:
    """Choose the generation that a run of this model fills, and those that it deletes.

    The vectors of the previous generation stay for ``undo_window``, so that a switch back needs no embedding. Nothing
    is deleted while another generation is built.
    """
    own = next((generation for generation in present if generation.identity == identity), None)
    if own is None:
        return GenerationTarget()
    outdated = (
        generation.number
        for generation in present
        if generation.retired_at is not None and moment - generation.retired_at > undo_window
    )
    return GenerationTarget(own.number, own.state != "retired", tuple(outdated) if own.is_active else ())
