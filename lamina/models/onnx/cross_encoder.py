"""A cross-encoder on ONNX Runtime: a folder with a tokenizer and the graph of a model that reads two texts."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lamina.errors import Misconfigured, Unavailable
from lamina.models.onnx.folder import optional
from lamina.models.runtimes import providers

MOST_LENGTH = 512
_GRAPH_FOLDERS = ("", "onnx")
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_REMEDY = "export it with its tokenizer.json, or set rerank.runtime to torch, which the extra gpu installs"


def graph_of(folder: Path) -> Path | None:
    """Return the ONNX file of a folder: the one named model, or the only one; ``None`` if it has none."""
    found = [file for place in _GRAPH_FOLDERS for file in sorted((folder / place).glob("*.onnx"))]
    return next((file for file in found if file.name == "model.onnx"), found[0] if len(found) == 1 else None)


class OnnxCrossEncoder:
    """Scores pairs of texts; blocking and thread-safe.

    Args:
        folder: Of the model.
        device: ``cpu`` or ``cuda``.
        batch_size: Most pairs of one pass.
        max_length: Most word pieces of a pair; ``None`` takes the model's own.
        threads: Of one pass.

    Raises:
        Misconfigured: If the folder lacks the graph or the tokenizer, or ONNX Runtime cannot read the graph.
    """

    def __init__(self, folder: Path, device: str, *, batch_size: int, max_length: int | None, threads: int) -> None:
        graph, tokenizer = graph_of(folder), folder / "tokenizer.json"
        if graph is None or not tokenizer.is_file():
            missing = "ONNX file" if graph is None else tokenizer.name
            raise Misconfigured(f"rerank.model {folder} has no {missing}", _REMEDY)
        self._batch_size = batch_size
        self._tokenizer = Tokenizer.from_file(str(tokenizer))
        self._tokenizer.enable_truncation(max_length or _own_length(folder))
        self._tokenizer.enable_padding(pad_id=int(optional(folder / "config.json", {}).get("pad_token_id") or 0))
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
        options.enable_mem_pattern = False
        options.log_severity_level = 3
        chosen = providers("auto", device, onnxruntime.get_available_providers())
        try:
            self._session = onnxruntime.InferenceSession(str(graph), options, providers=list(chosen))
            self._types = {given.name: _TYPES[given.type] for given in self._session.get_inputs()}
        except Exception as error:  # ONNX Runtime's own errors have only Exception in common.
            raise Misconfigured(f"ONNX Runtime cannot read {graph} of rerank.model: {error}", _REMEDY) from error
        self._output = self._session.get_outputs()[0].name

    def score(self, pairs: Sequence[tuple[str, str]]) -> Sequence[float]:
        """Return the logit of each pair; of a model with two classes the second's above the first's.

        Raises:
            Unavailable: If the model has another number of classes.
        """
        # Pairs of a length together: short ones are not filled up to the longest of all.
        order = sorted(range(len(pairs)), key=lambda place: len(pairs[place][1]))
        scores = np.empty(len(pairs), dtype=np.float64)
        for start in range(0, len(pairs), self._batch_size):
            batch = order[start : start + self._batch_size]
            scores[batch] = self._logits([pairs[place] for place in batch])
        return [float(score) for score in scores]

    def _logits(self, pairs: Sequence[tuple[str, str]]) -> NDArray[np.float64]:
        pieces = self._tokenizer.encode_batch(list(pairs))
        given = {
            "input_ids": [found.ids for found in pieces],
            "attention_mask": [found.attention_mask for found in pieces],
            "token_type_ids": [found.type_ids for found in pieces],
        }
        feeds = {name: np.asarray(given[name], dtype=kind) for name, kind in self._types.items()}
        rows = np.asarray(self._session.run([self._output], feeds)[0], dtype=np.float64).reshape(len(pairs), -1)
        match rows.shape[1]:
            case 1:
                return rows[:, 0]
            case 2:
                difference: NDArray[np.float64] = rows[:, 1] - rows[:, 0]
                return difference
            case classes:
                raise Unavailable("reranker", f"its model has {classes} classes, expected 1 or 2")


def _own_length(folder: Path) -> int:
    described = optional(folder / "tokenizer_config.json", {}).get("model_max_length") or MOST_LENGTH
    positions = optional(folder / "config.json", {}).get("max_position_embeddings") or MOST_LENGTH
    return int(min(MOST_LENGTH, described, positions))
