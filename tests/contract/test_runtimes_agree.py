"""ONNX Runtime's vectors and chunks are those of sentence-transformers in float32."""

import numpy as np
import pytest

from lamina.core.ports import Model
from lamina.models.onnx.graph import distance_buckets

pytestmark = pytest.mark.torch

SENTENCES = (
    "We chose Postgres because it is boring and proven.",
    "мой кот любит рыбу и спит на подоконнике",
    "今日は成語しりとりをした、とても楽しかった",
    "שלום לכולם ותודה רבה",
    "مرحبا بالجميع في هذا الصباح",
    "नमस्ते, आप कैसे हैं",
    "Café Zoë serves crème brûlée to Łukasz, İpek and Ærø",
    "안녕하세요 여러분",
    "🎉 party 👩‍👩‍👧 at 18:30 ✈️",
    "def main() -> None:\n\tprint('x', end='\\r\\n')",
    "https://example.org/a/b?c=%20d#e 10.0.0.1 ab-12_CD",
    "\uff26\uff35\uff2c\uff2c \uff57idth and \ufb01ne ligatures, x² ≠ ½",
)
LENGTHS = (1, 2, 3, 5, 8, 13, 21, 34, 55, 144, 377, 987, 2_000)
ODD = (
    "",
    " ",
    "\n",
    "\x00",
    "\u200b",
    "?!",
    "x" * 300,
    "[PAD] [PAD]",
    "[CLS] [SEP] [MASK] [UNK]",
    "a\u0301" * 40,
    "成" * 600,
)
TEXTS = [*ODD, *((sentence + " ") * 100 for sentence in SENTENCES)]
TEXTS += [((sentence + ". ") * length)[:length] for sentence in SENTENCES for length in LENGTHS]
TEXTS += [f"{sentence} {number}" for sentence in SENTENCES for number in (7, 1_900, 123_456)]


def test_two_hundred_texts_have_the_same_vectors_on_both_runtimes(minilm_torch: Model, minilm: Model) -> None:
    assert len(TEXTS) > 200

    assert np.abs(minilm_torch.encode(TEXTS) - minilm.encode(TEXTS)).max() < 1e-5


@pytest.mark.parametrize("number", range(0, len(TEXTS), 9))
def test_a_text_alone_has_the_same_vector_on_both_runtimes(minilm_torch: Model, minilm: Model, number: int) -> None:
    assert np.abs(minilm_torch.encode([TEXTS[number]]) - minilm.encode([TEXTS[number]])).max() < 1e-5


def test_both_runtimes_are_one_model_to_the_stores(minilm_torch: Model, minilm: Model) -> None:
    assert minilm_torch.identity == minilm.identity


def test_both_runtimes_cut_a_long_text_alike(minilm_torch: Model, minilm: Model) -> None:
    text = " ".join(f"{sentence} {number}." for number in range(60) for sentence in SENTENCES)

    assert list(minilm_torch.spans(text)) == list(minilm.spans(text))


def test_the_distances_of_mpnet_have_the_buckets_of_torch() -> None:
    import torch
    from transformers.models.mpnet.modeling_mpnet import MPNetEncoder

    ahead = torch.arange(514)[None, :] - torch.arange(514)[:, None]

    assert np.array_equal(distance_buckets(514, 32), MPNetEncoder.relative_position_bucket(ahead).numpy())
