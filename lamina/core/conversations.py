"""Messages in their conversation, as the second stage of search reads them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class PlacedMessages:
    """Messages that a query may see, in order; those of a session stand together.

    Args:
        ids: The bytes of their ids.
        session: Number of each one's session, rising.
        position: Its place there; neighbours differ by 1.
    """

    ids: Sequence[bytes]
    session: NDArray[np.int64]
    position: NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Utterance:
    """A message without its scope: who said what, and when.

    Args:
        vectors: Unit vectors of its chunks by the generation that was asked for, float16, shape (chunks, d).
        spans: Where each of these chunks begins and ends in its text.
        user: Whose it is; ``None`` if it is shared.
    """

    role: str
    name: str | None
    content: str
    occurred_at: datetime
    vectors: NDArray[np.float16]
    spans: tuple[tuple[int, int], ...] = ()
    user: str | None = None
