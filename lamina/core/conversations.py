"""Messages in their conversation, as the second stage of search reads them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from lamina.core.queries import Failure, Ranking
from lamina.core.tiers import Source


@dataclass(frozen=True, slots=True)
class PlacedMessages:
    """Messages that a query may see, in order; those of a session stand together.

    Args:
        ids: The bytes of their ids.
        session: Number of each one's session, rising.
        position: Its place there; neighbours differ by 1.
        version: Another number after each change of the message.
    """

    ids: Sequence[bytes]
    session: NDArray[np.int64]
    position: NDArray[np.int64]
    version: NDArray[np.int64]


NOWHERE = PlacedMessages((), *np.zeros((3, 0), np.int64))


@dataclass(frozen=True, slots=True)
class JointAnswer:
    """The answer of several sources of one tier that share a statement.

    Args:
        outcomes: The ranking of each source, or its failure.
        placed: The messages that they found and those around them, where they find messages.
    """

    outcomes: Mapping[Source, Ranking | Failure]
    placed: PlacedMessages = NOWHERE


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message without its scope: its text, speaker and time.

    Args:
        vectors: Unit vectors of its chunks by the generation that was asked for, float16, shape (chunks, d).
        spans: Where each of these chunks begins and ends in its text.
        user: Whose it is; ``None`` if it is shared.
        importance: 0..1, how much it matters.
    """

    role: str
    name: str | None
    content: str
    occurred_at: datetime
    vectors: NDArray[np.float16]
    spans: tuple[tuple[int, int], ...] = ()
    user: str | None = None
    importance: float = 0.5
