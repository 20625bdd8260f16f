"""Who owns what, so that few things move when an owner comes or goes."""

import bisect
import hashlib
from collections.abc import Sequence

_POINT_BYTES = 8
_LENGTH_BYTES = 4


class Ring:
    """Consistent hashing: a key belongs to the first owner's point at or after its own.

    Every process that is given the same names finds the same owners, in whatever order it has them. One name more
    takes about its share of the keys, from everybody; no key moves between the others.

    Args:
        names: The owners; each once, at least one.
        points: Points of each owner. The shares differ by about a factor of ``1 ± 1/√points``.

    Raises:
        ValueError: If there is no name, or one twice.

    Source:
        Karger et al., STOC 1997.
    """

    def __init__(self, names: Sequence[str], *, points: int = 64) -> None:
        if not names or len(set(names)) < len(names):
            raise ValueError(f"a ring needs names, each once, not {list(names)}")
        placed = sorted((_point((name, str(number))), name) for name in names for number in range(points))
        self._points = [point for point, _ in placed]
        self._owners = [name for _, name in placed]

    def owner(self, key: tuple[str, ...]) -> str:
        """Return the name that a key, made of ids, belongs to."""
        place = bisect.bisect_left(self._points, _point(key))
        return self._owners[place % len(self._owners)]


def _point(ids: tuple[str, ...]) -> int:
    """Return where on the ring the ids are: the same in every process, unlike ``hash``."""
    return int.from_bytes(hashlib.blake2b(_encoded(ids), digest_size=_POINT_BYTES).digest())


def _encoded(ids: tuple[str, ...]) -> bytes:
    """Return the ids as bytes, each after its length, so that no two tuples read the same."""
    texts = [id_.encode() for id_ in ids]
    return b"".join(len(text).to_bytes(_LENGTH_BYTES) + text for text in texts)
