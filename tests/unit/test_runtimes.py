import pytest
from pydantic import ValidationError

from deployments.app import embedder_resources
from lamina.models.runtimes import runtime
from lamina.settings import EmbedderDeploymentSettings, SentenceTransformersSettings


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

    assert runtime("auto", device, has_torch=has_torch) == expected


@pytest.mark.parametrize("wanted", ["onnx", "torch"])
@pytest.mark.parametrize("gpus", [0.0, 1.0])
@pytest.mark.parametrize("has_torch", [True, False])
def test_a_runtime_that_is_named_is_taken_whatever_the_machine_has(wanted: str, gpus: float, has_torch: bool) -> None:
    device, _ = embedder_resources(EmbedderDeploymentSettings(), gpus)

    assert runtime(wanted, device, has_torch=has_torch) == wanted  # type: ignore[arg-type]


def test_nothing_changes_for_those_who_name_no_runtime() -> None:
    assert SentenceTransformersSettings().runtime == "torch"


@pytest.mark.parametrize("precision", ["bfloat16", "float16"])
def test_onnx_runtime_in_half_precision_is_refused(precision: str) -> None:
    with pytest.raises(ValidationError, match=f"precision is {precision}, but runtime onnx computes in float32"):
        SentenceTransformersSettings.model_validate({"runtime": "onnx", "precision": precision})
