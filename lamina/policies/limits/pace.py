"""How long a sender or a reader is waited for: a time that every byte extends."""

from dataclasses import dataclass


@dataclass(slots=True)
class Pace:
    """The time that is left for a transfer; only the time spent waiting for the other side counts.

    Args:
        patience_s: For a transfer without a byte.
        bytes_per_s: Bytes that extend it by a second.
    """

    patience_s: float
    bytes_per_s: float
    size_bytes: int = 0
    waited_s: float = 0.0

    def left_s(self) -> float:
        """Return the seconds for which more is waited now, or 0."""
        return max(0.0, self.patience_s + self.size_bytes / self.bytes_per_s - self.waited_s)

    def count(self, size_bytes: int, waited_s: float) -> None:
        """Count bytes that went over, and how long that took."""
        self.size_bytes += size_bytes
        self.waited_s += waited_s
