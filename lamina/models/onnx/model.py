"""An embedding model on ONNX Runtime, which needs neither torch nor transformers."""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from lamina.core.ports import ModelIdentity
from lamina.models.onnx.agreement import CARRIED, UNCHECKED, agreement
from lamina.models.onnx.encoder import Encoder
from lamina.models.onnx.folder import read_folder
from lamina.models.onnx.graph_files import made_graph
from lamina.models.packaged import model_path
from lamina.models.splitting import ADDED, Splitter
from lamina.settings import SentenceTransformersSettings

logger = logging.getLogger(__name__)


class OnnxModel:
    """A BERT-family encoder in a folder, by the ONNX file that it carries or by a graph made of its weights.

    Args:
        settings: Model, threads and batch size.
        device: ``cpu`` or ``cuda``.
        graphs: Folder of made graphs.

    Raises:
        Misconfigured: If the folder is incomplete, or holds a model of which no graph can be made.
    """

    def __init__(self, settings: SentenceTransformersSettings, device: str, graphs: Path) -> None:
        os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
        self._settings = settings
        self._device = device
        self._folder = read_folder(Path(model_path(settings.model)))
        self.identity = ModelIdentity(model=settings.model, dimension=self._folder.dimension)
        self._splitter = Splitter(self._folder.tokenizer.read_text(), self._folder.max_length - ADDED)
        graph, self.checked = self._graph(graphs)
        self._encoder = self._encoder_of(graph)
        if self.checked == UNCHECKED:
            logger.warning("the ONNX graph of %s is unchecked: no vectors of it were recorded", settings.model)

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text, float32; word pieces past the model's length are not seen."""
        return self._encoder.encode(texts)

    def spans(self, text: str) -> Sequence[tuple[int, int]]:
        """Cut a long text at its sentences and paragraphs, by the model's own word pieces."""
        return self._splitter.spans(text)

    def _graph(self, graphs: Path) -> tuple[Path, str]:
        if self._folder.graph is not None:
            return self._folder.graph, CARRIED
        check = lambda graph, weights: agreement(self._encoder_of(graph).encode, weights)  # noqa: E731
        return made_graph(self._folder, graphs, check)

    def _encoder_of(self, graph: Path) -> Encoder:
        threads, size = self._settings.threads, self._settings.batch_size
        return Encoder(self._folder, graph, threads=threads, device=self._device, batch_size=size)
