"""Which runtime embeds: torch or ONNX Runtime."""

from importlib.util import find_spec
from typing import Literal

Runtime = Literal["onnx", "torch"]


def runtime(wanted: Literal["auto", "onnx", "torch"], device: str, *, has_torch: bool) -> Runtime:
    """Return the runtime: torch where it is installed and there is a GPU, ONNX Runtime elsewhere.

    Args:
        wanted: ``auto``, or a runtime to use whatever the machine.
        device: ``cpu`` or ``cuda``.
        has_torch: Whether torch and sentence-transformers are installed.
    """
    if wanted != "auto":
        return wanted
    return "torch" if has_torch and device.startswith("cuda") else "onnx"


def is_torch_installed() -> bool:
    """Return whether sentence-transformers and torch are installed; imports neither."""
    return all(find_spec(name) is not None for name in ("torch", "sentence_transformers"))
