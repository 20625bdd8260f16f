import pytest

from lamina.models.sentence_transformers import precision


@pytest.mark.parametrize(
    ("wanted", "device", "cpu", "expected"),
    [
        ("auto", "cuda", {}, "float16"),
        ("auto", "cuda:1", {"amx_bf16": True}, "float16"),
        ("auto", "cpu", {"avx512_bf16": True}, "bfloat16"),
        ("auto", "cpu", {"amx_bf16": True}, "bfloat16"),
        ("auto", "cpu", {"avx2": True, "avx512_bf16": False}, "float32"),
        ("float32", "cuda", {}, "float32"),
        ("bfloat16", "cpu", {}, "bfloat16"),
    ],
)
def test_weights_are_half_where_the_device_computes_in_it(
    wanted: str, device: str, cpu: dict[str, bool], expected: str
) -> None:
    assert precision(wanted, device, cpu) == expected
