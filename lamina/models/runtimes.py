"""Which runtime embeds, and on which of ONNX Runtime's execution providers."""

from collections.abc import Collection, Mapping, Sequence
from typing import Literal

from lamina.errors import Misconfigured
from lamina.host.extras import are_installed

Runtime = Literal["onnx", "torch"]
Precision = Literal["auto", "float32", "bfloat16", "float16", "int8"]
Provider = Literal["auto", "cpu", "cuda", "tensorrt", "openvino"]

CPU_PROVIDER = "CPUExecutionProvider"
_PROVIDERS: Mapping[Provider, Sequence[str]] = {
    "cpu": (),
    "cuda": ("CUDAExecutionProvider",),
    # What TensorRT has no operator for runs on CUDA.
    "tensorrt": ("TensorrtExecutionProvider", "CUDAExecutionProvider"),
    "openvino": ("OpenVINOExecutionProvider",),
}
_PACKAGES: Mapping[Provider, str] = {
    "cuda": "onnxruntime-gpu",
    "tensorrt": "onnxruntime-gpu",
    "openvino": "onnxruntime-openvino",
}


def runtime(wanted: Literal["auto", "onnx", "torch"], device: str, precision: Precision, *, has_torch: bool) -> Runtime:
    """Return the runtime: torch where it is installed and there is a GPU, ONNX Runtime elsewhere.

    Args:
        wanted: ``auto``, or a runtime to use whatever the machine.
        device: ``cpu`` or ``cuda``.
        precision: int8 is ONNX Runtime's alone; half precision is torch's alone, and taken where that is installed.
        has_torch: Whether torch and sentence-transformers are installed.
    """
    if wanted != "auto":
        return wanted
    asks_for_torch = device.startswith("cuda") or precision in ("bfloat16", "float16")
    return "torch" if has_torch and asks_for_torch and precision != "int8" else "onnx"


def providers(wanted: Provider, device: str, available: Collection[str]) -> Sequence[str]:
    """Return ONNX Runtime's execution providers, the preferred first; the processor is always the last.

    Args:
        wanted: ``auto``, which is CUDA on a GPU where it is installed and the processor elsewhere, or one by name.
        device: ``cpu`` or ``cuda``.
        available: Those that the installed ONNX Runtime has.

    Raises:
        Misconfigured: If one is wanted by name that is not installed.
    """
    if wanted == "auto":
        found = [name for name in _PROVIDERS["cuda"] if device.startswith("cuda") and name in available]
        return [*found, CPU_PROVIDER]
    first, *others = [*_PROVIDERS[wanted], CPU_PROVIDER]
    if first not in available:
        raise Misconfigured(
            f"embedding.provider is {wanted}, but the installed ONNX Runtime has only {', '.join(sorted(available))}",
            f"install {_PACKAGES[wanted]} in place of onnxruntime, or set embedding.provider to auto",
        )
    return [first, *(name for name in others if name in available)]


def is_torch_installed() -> bool:
    """Return whether sentence-transformers and torch are installed; imports neither."""
    return are_installed("torch", "sentence_transformers")
