import pytest
from pydantic import ValidationError

from deployments.app import embedder_resources
from lamina.errors import Misconfigured
from lamina.models.runtimes import Precision, Provider, providers, runtime
from lamina.settings.models import SentenceTransformersSettings
from lamina.settings.serving import EmbedderDeploymentSettings

CPU, CUDA = "CPUExecutionProvider", "CUDAExecutionProvider"
TENSORRT, OPENVINO = "TensorrtExecutionProvider", "OpenVINOExecutionProvider"


@pytest.mark.parametrize(
    ("gpus", "gpu_fraction", "has_torch", "expected"),
    [
        (0.0, 0.25, True, "onnx"),
        (0.0, 0.25, False, "onnx"),
        (1.0, 0.25, True, "torch"),
        (4.0, 0.25, False, "onnx"),
        (4.0, 0.0, True, "onnx"),
    ],
)
def test_auto_is_torch_where_it_is_installed_and_ray_sees_a_gpu(
    gpus: float, gpu_fraction: float, has_torch: bool, expected: str
) -> None:
    device, _ = embedder_resources(EmbedderDeploymentSettings(gpu_fraction=gpu_fraction), gpus)

    assert runtime("auto", device, "auto", has_torch=has_torch) == expected


@pytest.mark.parametrize(
    ("device", "precision", "has_torch", "expected"),
    [
        ("cpu", "bfloat16", True, "torch"),
        ("cpu", "float16", True, "torch"),
        ("cpu", "bfloat16", False, "onnx"),
        ("cpu", "float32", True, "onnx"),
        ("cuda", "float32", True, "torch"),
        ("cuda", "int8", True, "onnx"),
    ],
)
def test_auto_is_the_runtime_that_computes_in_the_precision(
    device: str, precision: Precision, has_torch: bool, expected: str
) -> None:
    assert runtime("auto", device, precision, has_torch=has_torch) == expected


@pytest.mark.parametrize("wanted", ["onnx", "torch"])
@pytest.mark.parametrize("gpus", [0.0, 1.0])
@pytest.mark.parametrize("has_torch", [True, False])
def test_a_runtime_that_is_named_is_taken_whatever_the_machine_has(wanted: str, gpus: float, has_torch: bool) -> None:
    device, _ = embedder_resources(EmbedderDeploymentSettings(), gpus)

    assert runtime(wanted, device, "auto", has_torch=has_torch) == wanted  # type: ignore[arg-type]


def test_who_names_no_runtime_has_auto() -> None:
    assert SentenceTransformersSettings().runtime == "auto"


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_onnx_runtime_in_half_precision_is_refused(precision: str) -> None:
    with pytest.raises(ValidationError, match=f"precision is {precision}, but runtime onnx computes in float32"):
        SentenceTransformersSettings.model_validate({"runtime": "onnx", "precision": precision})


@pytest.mark.parametrize("other", [{"runtime": "torch"}, {"provider": "cuda"}, {"provider": "tensorrt"}])
def test_int8_is_refused_where_nothing_computes_in_it(other: dict[str, str]) -> None:
    with pytest.raises(ValidationError, match="precision is int8, which ONNX Runtime computes on processors alone"):
        SentenceTransformersSettings.model_validate({"precision": "int8", **other})


@pytest.mark.parametrize(
    ("wanted", "device", "available", "expected"),
    [
        ("auto", "cpu", {CPU}, [CPU]),
        ("auto", "cpu", {CPU, CUDA, TENSORRT, OPENVINO, "AzureExecutionProvider"}, [CPU]),
        ("auto", "cuda", {CPU}, [CPU]),
        ("auto", "cuda:1", {CPU, CUDA}, [CUDA, CPU]),
        ("auto", "cuda", {CPU, CUDA, TENSORRT}, [CUDA, CPU]),
        ("cpu", "cuda", {CPU, CUDA}, [CPU]),
        ("cuda", "cpu", {CPU, CUDA}, [CUDA, CPU]),
        ("tensorrt", "cuda", {CPU, CUDA, TENSORRT}, [TENSORRT, CUDA, CPU]),
        ("tensorrt", "cuda", {CPU, TENSORRT}, [TENSORRT, CPU]),
        ("openvino", "cpu", {CPU, OPENVINO}, [OPENVINO, CPU]),
    ],
)
def test_an_execution_provider_is_taken_where_it_is_installed(
    wanted: Provider, device: str, available: set[str], expected: list[str]
) -> None:
    assert providers(wanted, device, available) == expected


@pytest.mark.parametrize(
    ("wanted", "package"),
    [("cuda", "onnxruntime-gpu"), ("tensorrt", "onnxruntime-gpu"), ("openvino", "onnxruntime-openvino")],
)
def test_an_execution_provider_that_is_not_installed_is_refused_with_its_package(
    wanted: Provider, package: str
) -> None:
    with pytest.raises(Misconfigured, match=f"provider is {wanted}, but .* has only {CPU}; install {package}"):
        providers(wanted, "cuda", {CPU})
