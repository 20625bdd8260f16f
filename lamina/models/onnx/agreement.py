"""Compare the vectors of a made graph with those that sentence-transformers gives in float32."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lamina.errors import Misconfigured
from lamina.models.onnx.folder import OTHERWISE

TOLERANCE = 1e-3
"""Vectors that differ by less, in each component, may be mixed."""
LEAST_COSINE = 0.95
"""Of int8 with float32: the packaged model's worst is 0.976, of a question mark with an exclamation mark."""
RECORDED, BY_TORCH, UNCHECKED, CARRIED = "recorded vectors", "torch", "unchecked", "the model's own file"
RECORDED_FILE = Path(__file__).with_name("recorded.npz")

Encode = Callable[[Sequence[str]], NDArray[np.float32]]
Reference = Callable[[Sequence[str]], NDArray[np.float32] | None]


def agreement(encode: Encode, origin: str, by_torch: Reference | None, *, is_int8: bool) -> str:
    """Compare a graph's vectors with the recorded ones, or else with torch's; return how it was checked.

    Args:
        encode: The graph's vectors of texts.
        origin: What the graph was made from; the vectors of one origin are recorded.
        by_torch: Torch's vectors of the same model, if it can run that; ``None`` where it is not installed.
        is_int8: Whether the graph computes in int8, whose vectors only have nearly the same direction.

    Raises:
        Misconfigured: If the vectors are others.
    """
    with np.load(RECORDED_FILE) as recorded:
        texts = [str(text) for text in recorded["texts"]]
        is_recorded = origin == str(recorded["origin"])
        expected = recorded["vectors"] if is_recorded else None
    if expected is None and by_torch is not None:
        expected = by_torch(texts)
    if expected is None:
        return UNCHECKED
    found = encode(texts)
    apart, cosine = float(np.abs(found - expected).max()), float((found * expected).sum(axis=1).min())
    if cosine < LEAST_COSINE if is_int8 else apart > TOLERANCE:
        compared = "recorded ones" if is_recorded else "ones by torch"
        raise Misconfigured(
            f"ONNX Runtime's vectors differ from the {compared} by {apart:.2g}, a cosine of {cosine:.3f}", OTHERWISE
        )
    return RECORDED if is_recorded else BY_TORCH
