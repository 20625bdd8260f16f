"""Modules after pooling: dense layers and normalisation, computed by numpy."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file

from lamina.errors import Misconfigured
from lamina.models.onnx.folder import DENSE, OTHERWISE, required

Floats = NDArray[np.float32]
Head = Callable[[Floats], Floats]
_ACTIVATIONS: Mapping[str, Head] = {
    "Identity": lambda rows: rows,
    "ReLU": lambda rows: np.maximum(rows, np.float32(0)),
    "Sigmoid": lambda rows: np.reciprocal(1 + np.exp(-rows), dtype=np.float32),
    "Tanh": np.tanh,
}


def read_heads(modules: Sequence[tuple[str, Path]]) -> Sequence[Head]:
    """Return what is done with pooled vectors, in order.

    Args:
        modules: Kind and folder of each.

    Raises:
        Misconfigured: If one has parts that run on torch alone.
    """
    return [_dense(folder) if kind == DENSE else unit_rows for kind, folder in modules]


def unit_rows(rows: Floats) -> Floats:
    """Return the rows with a length of 1."""
    unit: Floats = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return unit


def _dense(folder: Path) -> Head:
    config = required(folder / "config.json")
    name = str(config.get("activation_function", "torch.nn.modules.activation.Tanh")).rpartition(".")[2]
    if name not in _ACTIVATIONS or config.get("use_residual"):
        found = "a residual" if name in _ACTIVATIONS else name
        raise Misconfigured(f"the dense layer in {folder} has {found}, which runs on torch alone", OTHERWISE)
    file = folder / "model.safetensors"
    if not file.is_file():
        raise Misconfigured(f"{file} is missing", f"save the model with it, or {OTHERWISE}")
    weights = {name: array.astype(np.float32) for name, array in load_file(file).items()}
    weight, bias = weights["linear.weight"].T, weights.get("linear.bias", np.float32(0))
    activation = _ACTIVATIONS[name]
    return lambda rows: activation(rows @ weight + bias)
