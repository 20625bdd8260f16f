"""Vectors that sentence-transformers gave in float32, to which those of a made graph are compared."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lamina.errors import Misconfigured

TOLERANCE = 1e-3
"""Vectors that differ by less, in each component, may be mixed."""
CHECKED, UNCHECKED, CARRIED = "recorded vectors", "unchecked", "the model's own file"
RECORDED_FILE = Path(__file__).with_name("recorded.npz")

Encode = Callable[[Sequence[str]], NDArray[np.float32]]


def agreement(encode: Encode, weights: str) -> str:
    """Compare a graph with the recorded vectors; return how it was checked.

    Args:
        encode: The graph's vectors of texts.
        weights: SHA-256 of the file of weights; only those of one model are recorded.

    Raises:
        Misconfigured: If a vector differs by more than the tolerance.
    """
    with np.load(RECORDED_FILE) as recorded:
        if weights != str(recorded["weights"]):
            return UNCHECKED
        apart = float(np.abs(encode([str(text) for text in recorded["texts"]]) - recorded["vectors"]).max())
    if apart > TOLERANCE:
        raise Misconfigured(
            f"ONNX Runtime's vectors differ from the recorded ones by {apart:.2g}, more than {TOLERANCE}",
            "set embedding.runtime to torch",
        )
    return CHECKED
