"""Run an encoder's graph over texts: word pieces, batches, pooling."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray
from tokenizers import Tokenizer

from lamina.errors import Misconfigured
from lamina.models.onnx.folder import OTHERWISE, EncoderFolder
from lamina.models.onnx.graph import IDS, MASK, POSITIONS
from lamina.models.onnx.heads import read_heads, unit_rows
from lamina.models.onnx.pooling import pooled
from lamina.models.passes import CPU_TOKENS, passes

_OF_GPUS = ("CUDAExecutionProvider", "TensorrtExecutionProvider")
_POOLED = "sentence_embedding"
_TYPES = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}


class Encoder:
    """The graph of a model with its tokenizer; thread-safe.

    Args:
        folder: The model.
        graph: Its ONNX file.
        providers: ONNX Runtime's execution providers, the preferred first.
        batch_size: Most texts of one pass.

    Raises:
        Misconfigured: If ONNX Runtime cannot read the graph.
    """

    def __init__(self, folder: EncoderFolder, graph: Path, *, providers: Sequence[str], batch_size: int) -> None:
        self._folder = folder
        self._batch_size = batch_size
        self._heads = read_heads(folder.heads)
        self._tokenizer = Tokenizer.from_file(str(folder.tokenizer))
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(folder.max_length)
        # A prompt that is not pooled takes its word pieces with it, but for the one that closes a text.
        is_left_out = folder.prompt and not folder.pools_prompt
        self._left_out = len(self._tokenizer.encode(folder.prompt)) - 1 if is_left_out else 0
        self._session = _session(graph, providers)
        # ONNX Runtime goes on with the processor where another provider does not start.
        self.provider: str = self._session.get_providers()[0]
        self.pass_tokens = batch_size * folder.max_length if self.provider in _OF_GPUS else CPU_TOKENS
        self._types = {given.name: _TYPES[given.type] for given in self._session.get_inputs()}
        outputs = [output.name for output in self._session.get_outputs()]
        self._output = _POOLED if _POOLED in outputs else outputs[0]

    def encode(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Return one unit row a text: float32, shape (n, d)."""
        pieces = self._pieces(texts)
        rows = np.empty((len(texts), self._folder.dimension), dtype=np.float32)
        lengths = [len(found) for found in pieces]
        for batch in passes(lengths, most_texts=self._batch_size, most_tokens=self.pass_tokens):
            rows[batch] = self._rows([pieces[number] for number in batch])
        return unit_rows(rows)

    def _pieces(self, texts: Sequence[str]) -> list[list[int]]:
        whole = (self._folder.prompt + text for text in texts)
        given = [text.lower() if self._folder.lowers else text for text in whole]
        return [found.ids for found in self._tokenizer.encode_batch_fast(given)]

    def _rows(self, pieces: Sequence[Sequence[int]]) -> NDArray[np.float32]:
        mask = np.zeros((len(pieces), max(map(len, pieces))), dtype=np.int64)
        ids = np.full_like(mask, self._folder.padding)
        for row, found in enumerate(pieces):
            ids[row, : len(found)] = found
            mask[row, : len(found)] = 1
        given = {IDS: ids, MASK: mask, POSITIONS: self._positions(ids)}
        # Another graph asks for the kinds of word pieces, too: a text is of kind 0.
        feeds = {name: given.get(name, np.zeros_like(ids)).astype(kind) for name, kind in self._types.items()}
        (found_rows,) = self._session.run([self._output], feeds)
        if self._output == _POOLED:
            return np.asarray(found_rows, dtype=np.float32)
        mask[:, : self._left_out] = 0
        rows = pooled(found_rows, mask, self._folder.pooling)
        for head in self._heads:
            rows = head(rows)
        return rows

    def _positions(self, ids: NDArray[np.int64]) -> NDArray[np.int64]:
        if not self._folder.counts_from_padding:
            return np.broadcast_to(np.arange(ids.shape[1]), ids.shape)
        is_piece = ids != self._folder.padding
        positions: NDArray[np.int64] = np.cumsum(is_piece, axis=1) * is_piece + self._folder.padding
        return positions


def _session(graph: Path, providers: Sequence[str]) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    # Passes run side by side, each on the thread that calls: no other one waits, and none spins. Two threads of one
    # pass took 61 to 78 ms of CPU for a passage with the machine busy, two passes of a thread each 59 to 66.
    options.intra_op_num_threads = 1
    options.inter_op_num_threads = 1
    # A plan of memory is kept for each shape of a batch, and there are thousands.
    options.enable_mem_pattern = False
    options.log_severity_level = 3
    try:
        return onnxruntime.InferenceSession(str(graph), options, providers=list(providers))
    except Exception as error:  # ONNX Runtime's own errors have only Exception in common.
        raise Misconfigured(f"ONNX Runtime cannot read {graph}: {error}", f"export it anew, or {OTHERWISE}") from error
