"""An embedding model on ONNX Runtime, which needs neither torch nor transformers."""

import logging
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from lamina.core.ports import ModelReport
from lamina.errors import Misconfigured
from lamina.models.onnx.agreement import BY_TORCH, CARRIED, RECORDED, UNCHECKED, agreement
from lamina.models.onnx.encoder import Encoder
from lamina.models.onnx.folder import read_folder
from lamina.models.onnx.graph_files import made_graph
from lamina.models.packaged import model_folder
from lamina.models.prefixes import identity, prefixes_of
from lamina.models.processors import model_threads
from lamina.models.runtimes import is_torch_installed, providers
from lamina.models.splitting import ADDED, Splitter
from lamina.models.torch_vectors import torch_vectors
from lamina.settings.models import SentenceTransformersSettings

logger = logging.getLogger(__name__)


class OnnxModel:
    """A BERT-family encoder in a folder, by the ONNX file that it carries or by a graph made of its weights.

    Args:
        settings: Model, threads, precision, execution provider and batch size.
        device: ``cpu`` or ``cuda``.
        graphs: Folder of made graphs.

    Raises:
        Misconfigured: If the folder is incomplete, or holds a model of which no graph can be made; or if the execution
            provider is not installed.
    """

    def __init__(self, settings: SentenceTransformersSettings, device: str, graphs: Path) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._settings = settings
        self._is_int8 = settings.precision == "int8"
        # CUDA has no operators for a graph in int8.
        device = "cpu" if self._is_int8 else device
        self._providers = providers(settings.provider, device, onnxruntime.get_available_providers())
        self._folder = read_folder(model_folder(settings.model))
        self.identity = identity(settings, self._folder.dimension)
        longest = prefixes_of(settings).longest
        self._splitter = Splitter(self._folder.tokenizer.read_text(), self._folder.max_length - ADDED, longest)
        graph, checked = self._graph(graphs)
        self._encoder = self._encoder_of(graph)
        self.pass_tokens = self._encoder.pass_tokens
        is_on_processor = self._encoder.provider == "CPUExecutionProvider"
        self.passes_at_once = model_threads(settings.threads) if is_on_processor else 1
        self.report = ModelReport(
            model=self.identity.model,
            dimension=self.identity.dimension,
            runtime="onnx",
            precision="int8" if self._is_int8 else "float32",
            device=self._encoder.provider,
            checked=checked,
            may_be_mixed=checked in (RECORDED, BY_TORCH) and not self._is_int8,
        )
        if checked == UNCHECKED:
            logger.warning("the ONNX graph of %s is unchecked: no vectors of it were recorded", settings.model)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text, float32; word pieces past the model's length are not seen."""
        return self._encoder.encode(texts)

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Cut a long text at its sentences and paragraphs, by the model's own word pieces."""
        return self._splitter.spans(text)

    def lengths(self, texts: Sequence[str]) -> Sequence[int]:
        """Return the word pieces of each text, with those that the model adds."""
        return self._splitter.lengths(texts)

    def _graph(self, graphs: Path) -> tuple[Path, str]:
        if (carried := self._folder.graph) is None:
            return made_graph(self._folder, graphs, self._check, precision="int8" if self._is_int8 else "float32")
        if self._is_int8:
            raise Misconfigured(
                f"embedding.precision is int8, but {carried} is used as it is", "leave embedding.precision out"
            )
        return carried, CARRIED

    def _check(self, graph: Path, origin: str) -> str:
        folder = str(model_folder(self._settings.model))
        by_torch = partial(torch_vectors, folder) if is_torch_installed() else None
        return agreement(self._encoder_of(graph).encode, origin, by_torch, is_int8=self._is_int8)

    def _encoder_of(self, graph: Path) -> Encoder:
        size = self._settings.batch_size
        return Encoder(self._folder, graph, providers=self._providers, batch_size=size)
